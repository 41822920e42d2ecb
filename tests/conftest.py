"""Name the folder of compiled kernels by a digest of their sources, before a test changes the environment.

Signals mean what they mean in a terminal, also where the tests run in the background or under nohup, which ignore some of them:
programs that tests start inherit that.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from small_scene import scene_file

from femsim.base.numba_cache import folder_in_use
from femsim.cli import execute

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


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process: exit status, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = execute(list(arguments))
        done = capsys.readouterr()
        return status, done.out, done.err

    return run
