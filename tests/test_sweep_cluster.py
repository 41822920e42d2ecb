"""Sweeps on real processes: workers, schedulers and clients are killed, and nothing that was finished is lost."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pandas
import psutil
import pytest
from small_calibrations import FIT, FREE, write
from small_scene import scene_file

import femsim

ROOT = Path(femsim.__file__).resolve().parent.parent
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
PATIENCE = 120.0

SCENE = '''"""A box on a floor, as long as it is told to wait."""

import time

import femsim as fs


def build(k: float = 1.0, wait: float = 0.0, seed: int = 0):
    """Wait, then put a cube on a floor."""
    with open(__file__.replace("slow.py", "log.txt"), "a") as log:  # one line a run, in one write
        log.write(f"{k:g} {seed}\\\\n")
    time.sleep(wait)
    scene = fs.Scene("slow", dt=0.01, duration=0.03, theta=1.0)
    scene.add_floor()
    rubber = fs.Elastic(1e5 * k, 0.3, 1000.0)
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=(0.0, 0.0, 0.01), velocity=(0.1, 0.0, -0.1))
    scene.sensor("cube", "cube")
    return scene
'''.replace("\\\\n", "\\n")

COUNT = 9


def sweep_file(folder: Path, wait: float, count: int = COUNT) -> Path:
    scene_file(folder, SCENE, "slow.py")
    path = folder / "s.toml"
    path.write_text(
        f'scene = "slow.py"\nmetrics = {{ top = "absmax(cube_fz_N)", end = "final(cube_fx_N)" }}\noutputs.series = "all"\n'
        f"parameters = {{ wait = {wait}, k = {{ range = [1, 10], count = {count} }} }}\n"
    )
    return path


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a process; at the end it and all it started are gone."""
    with ExitStack() as stack:

        def start(*command: str, stderr: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [sys.executable, *command],
                env=ENVIRONMENT,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
            stack.callback(end, process)
            return process

        def end(process: subprocess.Popen[bytes]) -> None:
            try:
                family = [*psutil.Process(process.pid).children(recursive=True)]
            except psutil.NoSuchProcess:
                family = []
            process.kill()
            process.wait()
            for other in family:
                if other.is_running():
                    other.kill()
            if process.stdout is not None:
                process.stdout.close()

        yield start


COMMAND = ("-c", "from femsim.cli import main; main()")


def femsim_sweep(*arguments: str) -> tuple[str, ...]:
    return (*COMMAND, "sweep", *arguments)


def until(true: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait for something to be true, while a process lives."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "waited too long"
        assert process is None or process.poll() is None, f"ended with {process.returncode}"
        time.sleep(0.02)


def finished(out: Path) -> set[str]:
    return {path.parent.name for path in out.glob("cases/[!.]*/case.json")}


def times_of(out: Path) -> dict[str, int]:
    """When each case ended that has."""
    return {id_: (out / "cases" / id_ / "case.json").stat().st_mtime_ns for id_ in finished(out)}


def table(out: Path) -> pandas.DataFrame:
    return pandas.read_parquet(out / "results.parquet")


def is_complete(out: Path, count: int = COUNT) -> bool:
    rows = table(out)
    return list(rows["case"]) == list(range(1, count + 1)) and rows["id"].is_unique and set(rows["status"]) == {"converged"}


def runs_of(folder: Path) -> list[str]:
    """What was begun; the first entries are those of the first steps before a sweep."""
    return (folder / "log.txt").read_text().split("\n")[:-1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cluster(started: Callable[..., subprocess.Popen[bytes]], workers: int) -> tuple[str, list[subprocess.Popen[bytes]]]:
    """A scheduler and workers, each started on its own as on a cluster; its processes, the scheduler first."""
    address = f"tcp://127.0.0.1:{free_port()}"
    host, port = address.removeprefix("tcp://").split(":")
    options = ("--no-dashboard",)
    processes = [started("-m", "distributed.cli.dask_scheduler", "--host", host, "--port", port, *options)]
    for _ in range(workers):
        processes.append(started("-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--nworkers", "1", *options))
    return address, processes


def workers_of(pid: int) -> set[psutil.Process]:
    """The Dask workers that a process started and that have a process for cases; those that end meanwhile are none."""
    found = set()
    for process in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):
            if any("femsim.studies.sweeps.process" in " ".join(child.cmdline()) for child in process.children()):
                found.add(process)
    return found


@pytest.fixture(scope="module")
def lost_and_run_again(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, femsim.SweepResult, list[str]]:
    """A sweep of one worker, which ended all cases and was killed before the client had read more than the first row: its
    folder, what it returned, and the cases whose rows were read.
    """
    folder = tmp_path_factory.mktemp("one_worker")
    out = folder / "out"
    seen: list[str] = []

    def on_row(row: dict[str, Any]) -> None:
        if not seen:
            until(lambda: len(finished(out)) == COUNT)
            (victim,) = workers_of(os.getpid())
            victim.kill()
            until(lambda: set(workers_of(os.getpid())) - {victim})
        seen.append(row["id"])

    return out, femsim.sweep(sweep_file(folder, 0.0), out=out, workers=1, on_row=on_row), seen


def test_rows_that_are_lost_with_their_worker_are_asked_for_again(
    lost_and_run_again: tuple[Path, femsim.SweepResult, list[str]],
) -> None:
    out, result, seen = lost_and_run_again
    assert result.status == "converged" and is_complete(out) and len(set(seen)) == COUNT, table(out)["message"].to_list()


def test_a_killed_worker_costs_only_what_it_was_doing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    before: dict[str, int] = {}

    def on_row(row: dict[str, Any]) -> None:
        if not before and len(finished(out)) >= 3:
            before.update(times_of(out))
            victim, *_ = workers_of(os.getpid())
            victim.kill()

    result = femsim.sweep(sweep_file(tmp_path, 0.4), out=out, workers=2, on_row=on_row)
    assert result.status == "converged" and before, table(out)["message"].to_list()
    assert is_complete(out)
    # cases that had ended were not run again: their files are those from before
    assert before.items() < times_of(out).items()
    assert not [path.name for path in (out / "cases").iterdir() if path.name.startswith(".")]


def test_a_client_that_is_killed_interrupted_or_asked_to_end_loses_nothing(
    tmp_path: Path, started: Callable[..., subprocess.Popen[bytes]], call: Any
) -> None:
    """Resumed after each: by 9, by Ctrl-C, and by signals that reach it alone, as from a batch system, or its whole group, as
    from a terminal that hangs up.
    """
    count, out = 12, tmp_path / "out"
    file = sweep_file(tmp_path, 0.4, count)
    client = started(*femsim_sweep(str(file), "--out", str(out), "--quiet", "--workers", "1"))
    until(lambda: len(finished(out)) >= 3, client)
    family = psutil.Process(client.pid).children(recursive=True)
    client.send_signal(signal.SIGKILL)
    client.wait()
    until(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family))  # nobody is left behind
    assert 3 <= len(finished(out)) < count
    for number, send in ((signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill), (signal.SIGHUP, os.killpg)):
        before = times_of(out)
        client = started(*femsim_sweep(str(file), "--out", str(out), "--resume", "--workers", "1"), stderr=subprocess.STDOUT)
        until(lambda known=before: times_of(out).items() > known.items(), client)
        send(client.pid, number)
        text = client.communicate(timeout=PATIENCE)[0].decode()
        assert client.returncode == 130 and "interrupted: Interrupted." in text and "--resume runs the others" in text, text
        assert "Traceback" not in text and set(table(out)["status"]) == {"converged", "not run"}
        assert before.items() < times_of(out).items()  # what had ended was not run again
    before, begun = times_of(out), len(runs_of(tmp_path))
    assert call("sweep", str(file), "--out", str(out), "--quiet", "--resume", "--workers", "1")[0] == 0
    assert is_complete(out, count) and before.items() < times_of(out).items()
    # built to see its columns, the first steps, twice, and what was missing
    assert len(runs_of(tmp_path)) == begun + 3 + count - len(before)


def test_a_calibration_killed_again_and_again_goes_on(
    tmp_path: Path, started: Callable[..., subprocess.Popen[bytes]], undrawn: None, call: Any
) -> None:
    """By 9 and by Ctrl-C: it ends as one that was never stopped, and no case runs twice."""
    file, out = write(tmp_path, FREE + FIT), tmp_path / "cut"
    whole = femsim.calibrate(file, out=tmp_path / "whole", workers=1)
    words = ("calibrate", str(file), "--quiet", "--out", str(out), "--workers", "1")
    before: dict[str, int] = {}
    for name in ("SIGKILL", "SIGINT"):
        client = started(*COMMAND, *words, *(["--resume"] if before else []), stderr=subprocess.STDOUT)
        known = len(before) + 3
        until(lambda least=known: len(finished(out)) >= least, client)
        client.send_signal(getattr(signal, name))
        text = client.communicate(timeout=PATIENCE)[0].decode()
        assert client.returncode == (-9 if name == "SIGKILL" else 130) and "Traceback" not in text, text
        if name != "SIGKILL":
            assert json.loads((out / "calibration.json").read_text())["status"] == "interrupted"
        now = times_of(out)
        assert before.items() <= now.items()
        before = now
    assert call(*words, "--resume")[0] == 0
    assert before.items() <= times_of(out).items()
    found = json.loads((out / "calibration.json").read_text())["parameters"]
    assert {name: one["value"] for name, one in found.items()} == whole.values and finished(out) == finished(tmp_path / "whole")


def test_a_killed_scheduler_is_said_and_the_sweep_resumed(
    tmp_path: Path, started: Callable[..., subprocess.Popen[bytes]], call: Any
) -> None:
    """Also the same sweep on a scheduler and workers that were started separately, and on one that does not answer."""
    out, file = tmp_path / "out", sweep_file(tmp_path, 0.4)
    address, (scheduler, *_) = cluster(started, 1)
    client = started(*femsim_sweep(str(file), "--out", str(out), "--scheduler", address))
    until(lambda: len(finished(out)) >= 3, client)
    scheduler.kill()
    text = client.communicate(timeout=PATIENCE)[0].decode()
    assert client.returncode == 3
    assert "failed: The scheduler was lost." in text and "--resume runs the others" in text
    rows, there = table(out), finished(out)
    assert set(rows["status"]) == {"converged", "not run"} and rows["id"].is_unique
    assert 3 <= (rows["status"] == "converged").sum() <= len(there) < COUNT
    address, _ = cluster(started, 1)
    assert call("sweep", str(file), "--out", str(out), "--resume", "--scheduler", address)[0] == 0
    assert is_complete(out)


def test_results_do_not_depend_on_the_number_of_workers(
    lost_and_run_again: tuple[Path, femsim.SweepResult, list[str]], tmp_path: Path, call: Any
) -> None:
    outs = lost_and_run_again[0], tmp_path / "out"
    assert call("sweep", str(sweep_file(tmp_path, 0.0)), "--out", str(outs[1]), "--quiet", "--workers", "2")[0] == 0
    one, two = map(table, outs)
    exact = ["case", "id", "k", "wait", "top", "end", "status", "steps_done", "mean_iterations", "largest_dynamics_residual"]
    pandas.testing.assert_frame_equal(one[exact], two[exact], check_exact=True)
    assert one["top"].nunique() == COUNT
    for id_ in one["id"]:
        series = [pandas.read_csv(out / "cases" / id_ / "series.csv") for out in outs]
        times = [name for name in series[0] if name.startswith("ms_")]
        pandas.testing.assert_frame_equal(*(table.drop(columns=times) for table in series), check_exact=True)


def test_a_scheduler_that_does_not_answer(tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("femsim.studies.sweeps.engine._CONNECT_S", 1.0)
    status, _, error = call(
        "sweep", str(sweep_file(tmp_path, 0.0)), "--out", str(tmp_path / "out"), "--scheduler", f"tcp://127.0.0.1:{free_port()}"
    )
    assert status == 2 and "does not answer in 1 s" in error and "dask scheduler" in error


def test_a_script_needs_no_guard_and_is_run_once(tmp_path: Path) -> None:
    """Multiprocessing would run it again in each worker, and again in those that replace lost ones."""
    sweep_file(tmp_path, wait=0.0, count=2)
    script = "import os, femsim as fs\nopen('log', 'a').write('run ')\nprint(fs.sweep('s.toml', out='o', workers=1))\n"
    (tmp_path / "script.py").write_text(
        script + "import multiprocessing.spawn as s; print('init_main_from_path' in s.get_preparation_data(''))"
    )
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout == "<Sweep 'o': converged; cases: 2 converged>\nTrue\n", done.stdout + done.stderr
    assert (tmp_path / "log").read_text() == "run "
