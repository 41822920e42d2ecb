"""The setup script, as far as it can be tried without installing anything."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GO = ROOT / "go"

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="there is no POSIX shell on this machine")


def go(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(GO), *words], env=os.environ | environment, cwd="/", capture_output=True, text=True, timeout=60, check=False
    )


def test_the_script_is_well_formed_and_can_be_started() -> None:
    assert subprocess.run(["sh", "-n", str(GO)], capture_output=True, text=True, check=False).stderr == ""
    assert os.access(GO, os.X_OK)


@pytest.mark.parametrize("word", ["help", "-h", "--help"])
def test_help_prints_how_to_use_it(word: str) -> None:
    done = go(word)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert [line.split("  ")[1].strip() for line in lines[2:6]] == ["./go", "./go test [...]", "./go setup", "./go help"]
    assert "FEMSIM_VENV" in done.stdout and "set -eu" not in done.stdout and not any(line.startswith("#") for line in lines)


def test_an_unknown_word_is_refused() -> None:
    done = go("tests")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "go: 'tests' is not known; there are: ./go, ./go test, ./go setup, ./go help.\n"


def test_a_python_that_is_none_is_refused(tmp_path: Path) -> None:
    done = go("setup", FEMSIM_PYTHON=str(tmp_path / "python3"), FEMSIM_VENV=str(tmp_path / "venv"))
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed" in done.stderr and str(tmp_path / "python3") in done.stderr
    assert not (tmp_path / "venv").exists()


def test_kernels_are_compiled_before_the_main_job_which_is_rendered_and_said_to_be_ready(tmp_path: Path) -> None:
    """With programs that only write down how they are called, where the virtual environment has Python and femsim."""
    (tmp_path / "bin").mkdir()
    for name in ("python", "femsim"):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/calls"\n')
        program.chmod(0o755)
    done = go(FEMSIM_VENV=str(tmp_path))
    calls = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("femsim")]
    *_, run = calls[-1].split()
    scene = "scenes/soft_ball_gripping.py"
    assert calls == [
        "femsim doctor --rendering",
        "femsim doctor --compile",
        f"femsim run {scene} --out {run}",
        f"femsim render {run}",
    ]
    assert done.returncode == 0 and f"go: ready: the film is {run}/pictures/run.mp4" in done.stdout


def test_the_readme_names_the_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert "    ./go" in readme and "    ./go test" in readme
