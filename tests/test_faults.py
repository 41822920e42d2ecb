"""Faults, each really caused: full disks, read-only and vanished folders, closed and full output, signals, odd locales.

A command runs in a process of its own, forked from this one; `command` gives its exit status and what it said.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Command
from small_scene import FILE, scene_file

import femsim as fs
from femsim.cli import execute

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or sys.platform != "linux", reason="faults are caused as on Linux")
LONG = "steps=100000"


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All kernels are in this process, so that those that fork from it compile nothing."""
    folder = tmp_path_factory.mktemp("warm")
    scene = fs.load_scene(scene_file(folder))
    fs.simulate(scene, out=folder / "run", fields=("all",))


@pytest.fixture
def command(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Command]:
    def start(*words: str, **options: object) -> Command:
        return Command(*words, said=tmp_path_factory.mktemp("said"), **options)  # type: ignore[arg-type]

    return start


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < end, "it did not come to that within a minute"
        time.sleep(0.005)


def rows(folder: Path) -> int:
    path = folder / "steps.csv"
    return path.read_bytes().count(b"\n") - 1 if path.exists() else -1


def info(folder: Path) -> dict:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def assert_sentence(status: int, err: str, *words: str) -> None:
    assert status == 2, err
    assert "Traceback" not in err and "bug" not in err
    assert err.splitlines()[-1].startswith("femsim: "), err
    for word in words:
        assert word in err, err


# ------------------------------------------------------------------ the disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    if (
        shutil.which("mount") is None
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("this process may not mount a disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("format", ["pvd", "vtkhdf"])
def test_a_full_disk_ends_a_run_with_a_sentence(
    format: str, scene: str, small_disk: Path, command: Callable[..., Command]
) -> None:
    if format == "vtkhdf":
        pytest.importorskip("h5py")
    folder = small_disk / "run"
    status, err = command("run", scene, "--set", LONG, "--out", str(folder), "--format", format, "--quiet").wait()
    assert_sentence(status, err, str(folder), "No space left on device; free the disk, or choose another folder by --out")
    ended = info(folder)
    assert ended["status"] in ("failed", "running")  # the disk may be too full to say so
    frames = fs.open_frames(folder)
    assert len(frames.times) > 3 and frames.read(len(frames.times) - 1, "cube").n_points == 27


@pytest.mark.parametrize("format", ["pvd", "vtkhdf"])
def test_a_full_disk_with_room_for_a_word_says_failed_and_goes_on_when_there_is_room(
    format: str, scene: str, small_disk: Path, command: Callable[..., Command]
) -> None:
    """Other files take the room, and give it back."""
    folder = small_disk / "run"
    begun = command("run", scene, "--set", "steps=400", "--out", str(folder), "--format", format, "--checkpoint-every", "5")
    wait_for(lambda: len(list(folder.glob("checkpoints/*.checkpoint"))) == 2)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    status, err = begun.wait()
    assert_sentence(status, err, str(folder), "No space left on device")
    filler.unlink()
    if format == "pvd":
        (small_disk / "run" / "frames.pvd").read_bytes()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    run = fs.resume(folder)
    assert run.status == "converged" and len(run.steps["step"]) == 400 and len(fs.open_frames(folder).times) == 401


@pytest.mark.parametrize("format", ["pvd", "vtkhdf"])
def test_a_limit_of_file_sizes_is_said(format: str, scene: str, tmp_path: Path, command: Callable[..., Command]) -> None:
    import resource

    def limit() -> None:
        size = 30_000 if format == "pvd" else 150_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    status, err = command(
        "run", scene, "--set", LONG, "--out", "run", "--format", format, "--fields", "all", "--quiet", before=limit
    ).wait()
    assert_sentence(status, err, "File too large; raise the limit of file sizes")
    assert info(tmp_path / "run")["status"] == "failed"
    assert "File too large" in info(tmp_path / "run")["message"]
    assert len(fs.open_frames(tmp_path / "run").times) > 3


def test_a_read_only_place_is_said(scene: str, small_disk: Path, command: Callable[..., Command]) -> None:
    begun = command("run", scene, "--set", LONG, "--out", str(small_disk / "run"), "--quiet", "--fps", "1")
    wait_for(lambda: rows(small_disk / "run") > 3)
    os.kill(begun.pid, signal.SIGTERM)
    assert begun.wait()[0] == 130
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for out in ("new", "run"):
        words = ["--overwrite"] if out == "run" else []
        status, err = command("run", scene, "--out", str(small_disk / out), "--quiet", *words).wait()
        assert_sentence(status, err, str(small_disk / out), "Read-only file system", "choose another by --out")
    status, err = command("resume", str(small_disk / "run"), "--quiet").wait()
    assert_sentence(status, err, str(small_disk / "run"), "Read-only file system; choose a folder that you may write to")


@pytest.mark.parametrize("format", ["pvd", "vtkhdf"])
@pytest.mark.parametrize("fault", ["moved", "removed"])
def test_a_folder_that_is_moved_or_removed(
    fault: str, format: str, scene: str, tmp_path: Path, command: Callable[..., Command]
) -> None:
    begun = command("run", scene, "--set", LONG, "--out", "run", "--format", format, "--quiet")
    wait_for(lambda: rows(tmp_path / "run") > 3)
    (tmp_path / "run").rename(tmp_path / "away")
    if fault == "removed":
        while (tmp_path / "away").exists():  # the run may still make files there
            shutil.rmtree(tmp_path / "away", ignore_errors=True)
    status, err = begun.wait()
    assert_sentence(status, err, "run", "No such file or directory; it or its folder was moved or removed meanwhile")
    assert not (tmp_path / "run").exists()
    if fault == "moved":
        assert info(tmp_path / "away")["status"] == "failed" and "No such file" in info(tmp_path / "away")["message"]


# ------------------------------------------------------------------ output


def test_a_full_standard_output(scene: str, tmp_path: Path, command: Callable[..., Command]) -> None:
    for words in (["run", scene, "--out", "run"], ["materials"], ["describe", scene]):
        status, err = command(*words, out="/dev/full").wait()
        assert_sentence(status, err, "standard output: No space left on device; results in files are complete")
    assert info(tmp_path / "run")["status"] == "converged"
    assert command("run", scene, "--out", "quiet", "--quiet", out="/dev/full").wait() == (0, "")


def test_a_closed_standard_output(scene: str, tmp_path: Path, command: Callable[..., Command]) -> None:
    for words in (["run", scene, "--out", "run"], ["materials"]):
        status, err = command(*words, out="closed").wait()
        assert_sentence(status, err, "standard output: Bad file descriptor; results in files are complete")
    assert info(tmp_path / "run")["status"] == "converged"
    assert command("run", scene, "--out", "quiet", "--quiet", out="closed").wait() == (0, "")
    assert rows(tmp_path / "quiet") == rows(tmp_path / "run") == 4


def test_a_terminal_that_hangs_up(tmp_path: Path) -> None:
    """The window is closed: the run ends after its step, with its results; nothing is printed to a terminal that is gone."""
    path = scene_file(tmp_path)
    words = ["run", str(path), "--set", LONG, "--out", str(tmp_path / "run")]
    pid, master = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os._exit(execute(words))
    wait_for(lambda: rows(tmp_path / "run") > 3)
    os.close(master)
    wait_for(lambda: info(tmp_path / "run")["status"] != "running")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 130 and info(tmp_path / "run")["status"] == "interrupted"
    assert rows(tmp_path / "run") == info(tmp_path / "run")["health"]["steps"]


# ------------------------------------------------------------------ one way to end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_ends_a_run_after_the_step_in_progress(
    number: int, scene: str, tmp_path: Path, command: Callable[..., Command]
) -> None:
    begun = command(
        "run", scene, "--set", LONG, "--out", "run", before=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    )
    wait_for(lambda: rows(tmp_path / "run") > 3)
    os.kill(begun.pid, number)
    status, err = begun.wait()
    assert status == 130 and "Traceback" not in err
    assert "status             interrupted: Interrupted after step" in (begun.said / "out").read_text()
    assert rows(tmp_path / "run") == info(tmp_path / "run")["health"]["steps"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_second_one_ends_at_once(number: int, tmp_path: Path, command: Callable[..., Command]) -> None:
    slow = FILE.replace('scene.sensor("cube", "cube")', 'scene.add_soft("b", fs.box_tets((side, side, side), 1), rubber, '
                        "position=(0.1, 0, 0.01), load=wait)")  # fmt: skip
    slow = slow.replace("def build(", "def wait(t):\n    import time\n\n    if t > 0.05:\n        time.sleep(600.0)\n"
                        "    return 0.0, 0.0, 0.0\n\n\ndef build(")  # fmt: skip
    path = scene_file(tmp_path, slow)
    folder = tmp_path / "run"
    begun = command(
        "run",
        str(path),
        "--set",
        LONG,
        "--out",
        str(folder),
        "--quiet",
        before=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_for(lambda: len(list(folder.glob("frames/cube_*"))) >= 4)
    time.sleep(0.5)  # now it sleeps in a step
    os.kill(begun.pid, number)
    time.sleep(0.2)
    assert os.waitpid(begun.pid, os.WNOHANG) == (0, 0), "the first one lets the step in progress end"
    os.kill(begun.pid, number)
    status, err = begun.wait()
    assert (status, err) == (130, "femsim: interrupted.\n")
    ended = info(folder)
    assert ended["status"] == "interrupted" and rows(folder) >= 3
    assert re.fullmatch(r"Stopped after step \d+ by KeyboardInterrupt", ended["message"])
