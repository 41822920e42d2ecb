"""Name the folder of compiled kernels by a digest of their sources, before a test changes the environment.

Files of tests are the units that processes share out: long ones come first, then those of many tests, so that none of them has
a long one left when the others have ended.

Signals mean what they mean in a terminal, also where the tests run in the background or under nohup, which ignore some of them:
programs that tests start inherit that.
"""

from __future__ import annotations

import gc
import signal
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from small_scene import scene_file

from femsim.base.numba_cache import folder_in_use
from femsim.cli import execute

#: Files that take long for few tests: scenes that run whole, processes that are started, kernels compiled in other folders.
#: Of two that call the same kernels one stands far behind the other, which has compiled them by then; `wheel` and `recipes`
#: link what `main_job` has compiled. The second process begins with files that call hardly any, while the first one compiles
#: those of all scenes.
LONG = (
    "sweep_cluster", "layers", "mutants", "references", "kernel_sources", "robot_scenes", "main_job", "wheel", "recipes",
    "reproduce_canal", "notebooks", "cable_scenes", "names", "reproduce", "driven_scenes", "docs", "bad_files",
    "soft_mat_folding", "fuzz", "released_beam", "compiled_ahead", "reproduce_splittings", "numba_cache", "guide",
    "installation", "determinism", "beside", "plots", "resume_joints", "killed", "invariance", "soft_gripper", "evenness",
    "whole_state", "showing", "calibrate_prony", "deformable_twins",
)  # fmt: skip

folder_in_use()

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A scene file in the current folder."""
    monkeypatch.chdir(tmp_path)
    return scene_file(tmp_path).name


@pytest.fixture(scope="session")
def drawing() -> None:
    """For tests that draw: they are skipped where nothing can be drawn."""
    from viz import probe_rendering

    status = probe_rendering()
    if not status.ok:
        pytest.skip(status.message)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made but not turned into pixels, which takes most of their time: for tests of what is around them."""
    from matplotlib.figure import Figure

    draw = Figure.savefig

    def save(figure: Figure, path: str | Path, **options: Any) -> None:
        if str(path).endswith((".png", ".pdf")):
            Path(path).write_bytes(b"a picture")
        else:
            draw(figure, path, **options)

    monkeypatch.setattr(Figure, "savefig", save)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process: exit status, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = execute(list(arguments))
        done = capsys.readouterr()
        return status, done.out, done.err

    return run


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage from the first test on, and never in the modules and tests, which stay: 4 s less of 10 s of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files in the order in which they are begun."""
    tests = Counter(item.path for item in items)
    place = {f"test_{name}": number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: (place.get(item.path.stem, len(LONG)), -tests[item.path], item.path))
