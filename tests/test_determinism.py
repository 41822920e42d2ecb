"""The same run gives the same bits: twice, in another process, and whatever the environment says about threads."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest

import femsim as fs

ROOT = Path(fs.__file__).resolve().parent.parent
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
CODE = """
import hashlib, sys
import femsim as fs
scene = fs.Scene("a", dt=0.01, duration=0.07, theta=1.0)
scene.add_floor()
cube, rubber = fs.box_tets((0.04, 0.04, 0.04), 6), fs.Elastic(1e5, 0.3, 1000.0)
scene.add_soft("cube", cube, rubber, position=(0, 0, 0.0255), rotation=(0.1, 0.2, 0))
scene.add_rigid("ball", fs.Sphere(0.01), density=2000.0, position=(0, 0, 0.0605))
for solver, threads in (("exact", 1), ("cond", 1), ("exact", 2)) * int(sys.argv[1]):
    run = fs.simulate(scene, solver, threads=threads)
    digest = hashlib.sha256()
    for name, values in run.steps.items():
        if not name.startswith("ms_"):
            digest.update(values.tobytes())
    for name, value in sorted(run.stepper.state.arrays().items()):
        digest.update(value.tobytes())
    print(digest.hexdigest(), run.info["settings"]["threads"])
"""


def digests(times: int, **environment: str) -> list[list[str]]:
    """Of each run in a process of its own: what came out, and the number of threads; one list each time."""
    clean = {name: value for name, value in os.environ.items() if name not in THREADS}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(times)], env=clean | {"PYTHONPATH": path} | environment,
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return [lines[k : k + 3] for k in range(0, 3 * times, 3)]


def test_the_same_bits_twice_and_for_any_environment() -> None:
    """By both solvers, and by as many threads as are asked for, which is recorded."""
    pytest.importorskip("threadpoolctl", reason="an installation from before it was needed")
    first, second = digests(2)
    assert [line.split()[1] for line in first] == ["1", "1", "2"] and first[0].split()[0] != first[1].split()[0]
    assert first == second
    assert digests(1, **dict.fromkeys(THREADS, "4")) == [first]


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, 100_000])
def test_a_number_of_threads_that_cannot_be_is_refused(threads: int) -> None:
    scene = fs.Scene("a", dt=0.01, theta=1.0)
    scene.add_rigid("ball", fs.Sphere(0.1), density=1e3)
    with pytest.raises(fs.InputError, match="threads is"):
        fs.simulate(scene, threads=threads)


def test_blas_has_as_many_threads_as_asked_for() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl", reason="an installation from before it was needed")
    from femsim.base.threads import blas_threads

    with threadpoolctl.threadpool_limits(limits=1):
        for count in (1, 2):
            with blas_threads(count):
                assert {p["num_threads"] for p in threadpoolctl.threadpool_info()} == {count}


def test_threads_that_ask_for_blas_at_once_do_not_undo_what_the_others_need() -> None:
    """The first of two runs that ended gave BLAS its threads back, and the other one ended with other bits under load."""
    threadpoolctl = pytest.importorskip("threadpoolctl", reason="an installation from before it was needed")
    from femsim.base.threads import blas_threads

    def seen() -> set[int]:
        return {p["num_threads"] for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"}

    with threadpoolctl.threadpool_limits(limits=2):
        first, second = ExitStack(), ExitStack()
        first.enter_context(blas_threads(1))
        second.enter_context(blas_threads(1))
        first.close()
        assert seen() == {1}
        second.close()
        assert seen() == {2}
        first.enter_context(blas_threads(1))
        second.enter_context(blas_threads(3))
        assert seen() == {3}
        second.close()
        assert seen() == {1}
        first.close()
        assert seen() == {2}
        found: list[set[int]] = []

        def beside() -> None:
            with blas_threads(1):
                found.append(seen())

        for _ in range(2):  # one that was the first must let the next one set them
            thread = Thread(target=beside)
            thread.start()
            thread.join()
            with blas_threads(1):
                found.append(seen())
            assert seen() == {2}
        assert found == 4 * [{1}]
