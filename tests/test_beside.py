"""A second process compiles for a first run: from the end of a list, only what is missing, and never longer than the run."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numba
import pytest
from numba import types

from contact.surface_kernels import Features
from femsim.cli import beside
from femsim.cli.beside import compile_backwards, compiling_beside
from femsim.cli.kernel_list import LIST, Listed, kernels_for, kinds_of, missing, read_list, read_types, write_types
from femsim.scene.scene_file import find_scene, list_scenes, load_scene

ROOT = Path(__file__).resolve().parent.parent
#: Starts the second process and says which, then waits to be killed.
HOLD = """
import sys, time
from femsim.cli import beside
from femsim.scene.scene_file import find_scene, load_scene
beside._cores = lambda: 2
started = []
popen = beside.subprocess.Popen
beside.subprocess.Popen = lambda *given, **named: started.append(popen(*given, **named)) or started[-1]
with beside.compiling_beside("soft_ball_gripping", load_scene(find_scene("soft_ball_gripping"))):
    print(started[0].pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def ball() -> object:
    return load_scene(find_scene("soft_ball_gripping"))


def test_types_are_read_as_they_were_written() -> None:
    group = types.NamedTuple([types.int64[:, ::1], types.float64], Features)
    alike = types.NamedUniTuple(types.float64[::1], 6, Features)
    call = (types.float64[:, :, ::1], group, types.UniTuple(types.float64, 3), alike, types.boolean, types.none, types.uint32[:])
    assert read_types(write_types(call)) == call
    assert read_types("") == ()
    faults = {
        "int64)": ValueError,
        "(int64": ValueError,
        "no.such.Group(int64)": ImportError,
        "contact.No(int64)": AttributeError,
    }
    for wrong, error in faults.items():
        with pytest.raises(error):
            read_types(wrong)
    constant = numba.typeof(b"bytes")
    with pytest.raises(TypeError, match="no writing"):
        write_types([constant])


def test_the_list_has_what_a_first_run_calls_in_its_order() -> None:
    """Nine tenths; where this fails: python docs/make_kernels.py."""
    spec = importlib.util.spec_from_file_location("make_kernels", ROOT / "docs" / "make_kernels.py")
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    called = [" ".join(call) for call in maker.calls("soft_ball_gripping", 0.02)[1]]
    listed = [f"{kernel.module} {kernel.name} {kernel.types}" for kernel in kernels_for("soft_ball_gripping", frozenset())]
    assert len(called) > 30
    known = [line for line in called if line in listed]
    assert len(known) >= 0.9 * len(called), f"python docs/make_kernels.py; new: {sorted(set(called) - set(listed))}"
    assert len(listed) <= 1.1 * len(called), f"python docs/make_kernels.py; no more called: {sorted(set(listed) - set(called))}"
    places = [listed.index(line) for line in known]
    ahead = sum(one < other for k, one in enumerate(places) for other in places[k + 1 :])
    assert ahead >= 0.9 * len(places) * (len(places) - 1) / 2


def test_a_scene_of_the_user_gets_what_scenes_of_its_kinds_share(ball: object, tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text(
        "# words\nscene one Soft theta\nscene two Soft theta\nscene rods Rod theta\n"
        "contact.a first one,two int64\ncontact.b second two float64:2C (int64 int64)\nfemsim.step.c third rods\n"
    )
    scenes, kernels = read_list(path)
    assert scenes["rods"] == {"Rod", "theta"} and [kernel.name for kernel in kernels] == ["first", "second", "third"]
    assert kernels[1] == Listed("contact.b", "second", ("two",), "float64:2C (int64 int64)") and kernels[2].types == ""
    names = {
        name: [kernel.name for kernel in kernels_for(name, frozenset(kinds), path)]
        for name, kinds in (("two", ()), ("mine", ("Soft", "theta")), ("cable", ("Rod", "theta")), ("robot", ("Tree",)))
    }
    assert names == {"two": ["first", "second"], "mine": ["first"], "cable": ["third"], "robot": []}
    assert read_list(tmp_path / "none") == ({}, []) and kernels_for("one", frozenset(), tmp_path / "none") == []
    scenes, _ = read_list()
    assert set(scenes) <= {scene.stem for scene in list_scenes()}
    assert scenes["soft_ball_gripping"] == kinds_of(ball)
    assert LIST.is_file()


def test_it_compiles_from_the_end_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also past a line that is out of date; a kernel with a file is left alone."""
    path = tmp_path / "list"
    path.write_text(
        "scene one Soft\ncontact.a gone one int64\ncontact.jacobian_kernels gather one float64\n"
        "contact.jacobian_kernels there one int64\ncontact.jacobian_kernels gather one int64\n"
    )
    (tmp_path / f"jacobian_kernels.there-1.py{sys.version_info[0]}{sys.version_info[1]}.nbi").touch()
    compiled: list[tuple[str, str]] = []

    def compile_(kernel: Listed) -> None:
        compiled.append((kernel.name, kernel.types))
        if kernel.types == "float64":
            raise TypeError

    monkeypatch.setattr(beside, "kernels_for", lambda name, kinds: kernels_for(name, kinds, path))
    monkeypatch.setattr(beside, "folder_in_use", lambda: str(tmp_path))
    monkeypatch.setattr(beside, "_end_with_input", lambda: None)
    monkeypatch.setattr(beside, "_compile", compile_)
    compile_backwards("one", frozenset())
    assert compiled == [("gather", "int64"), ("gather", "float64"), ("gone", "int64")]
    assert [kernel.name for kernel in missing(kernels_for("one", frozenset(), path), tmp_path)] == ["gone", "gather", "gather"]


def test_what_it_compiles_is_found_by_the_next_process(tmp_path: Path) -> None:
    """The last kernels of the list, by the command of the second process itself."""
    kernels = [kernel for kernel in kernels_for("soft_ball_gripping", frozenset()) if kernel.name == "force_scales"]
    assert kernels
    code = (
        "import sys; from femsim.cli import beside; all_ = beside.kernels_for; "
        "beside.kernels_for = lambda *of: [kernel for kernel in all_(*of) if kernel.name == 'force_scales']; "
        "beside.compile_backwards('soft_ball_gripping', frozenset())"
    )
    load = (
        "from contact.metrics_kernels import force_scales; from femsim.cli.kernel_list import read_types; "
        f"force_scales.compile(read_types({kernels[0].types!r})); print(sum(force_scales._cache_hits.values()))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment) as process:
        assert process.wait(120) == 0
    done = subprocess.run([sys.executable, "-c", load], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize("trouble", ["no folder", "not writable", "one core", "nothing missing", "no list", "no process"])
def test_there_is_none_where_it_would_not_help(
    trouble: str, ball: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []

    class Process:
        def __init__(self, *given: object, **named: object) -> None:
            if trouble == "no process":
                raise OSError(11, "Resource temporarily unavailable")
            started.append(self)

        def kill(self) -> None: ...

        def communicate(self) -> None: ...

    monkeypatch.setattr(beside.subprocess, "Popen", Process)
    monkeypatch.setattr(beside, "_cores", lambda: 1 if trouble == "one core" else 2)
    monkeypatch.setattr(beside, "cache_trouble", lambda: "it cannot be written" if trouble == "not writable" else "")
    monkeypatch.setattr(beside, "folder_in_use", lambda: "" if trouble == "no folder" else str(tmp_path))
    if trouble == "no list":
        monkeypatch.setattr(beside, "kernels_for", lambda name, kinds: [])
    if trouble == "nothing missing":
        for kernel in kernels_for("soft_ball_gripping", frozenset()):
            (tmp_path / f"{kernel.index}1.nbi").touch()
    with compiling_beside("soft_ball_gripping", ball) as there:
        assert not there and not started
    for path in tmp_path.iterdir():
        path.unlink()
    trouble = ""
    monkeypatch.undo()
    monkeypatch.setattr(beside.subprocess, "Popen", Process)
    monkeypatch.setattr(beside, "_cores", lambda: 2)
    monkeypatch.setattr(beside, "folder_in_use", lambda: str(tmp_path))
    monkeypatch.setattr(beside, "cache_trouble", lambda: "")
    with compiling_beside("soft_ball_gripping", ball) as there:
        assert there and len(started) == 1


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])  # TERM ends it as KILL does
def test_it_never_outlives_the_run(how: signal.Signals, tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command, nowhere = [sys.executable, "-c", HOLD], subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=nowhere) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert is_there(pid)
        run.send_signal(how)
        run.wait(60)
    patience = time.monotonic() + 60
    while is_there(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not is_there(pid)


def test_a_run_asks_for_it_unless_one_thread_is_asked_for(
    call: Callable[..., tuple[int, str, str]], scene: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noted(name: str, built: object) -> object:
        asked.append(name)
        return compiling_beside("none", built)

    monkeypatch.setattr(beside, "compiling_beside", noted)
    for number, options in enumerate(([], ["--threads", "2"], ["--threads", "1"])):
        call("run", scene, "--duration", "0.01", "--out", f"run{number}", "--quiet", *options)
    assert asked == [Path(scene).stem] * 2
