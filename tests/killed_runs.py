"""Runs in a process of their own that is killed, forked from this one so that nothing is imported or compiled again."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import femsim as fs


def in_child(work: Callable[[], Any]) -> int:
    """Start a process that does something and ends; return its number."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException as error:
        os.write(2, f"the child failed: {type(error).__name__}: {error}\n".encode())
        os._exit(1)


def killed_at(step: int, run: Callable[..., Any], number: int = signal.SIGKILL) -> None:
    """Do a run, ``run(on_step=...)``, that is killed when a step is done."""

    def kill(stepper: Any, report: Any) -> None:
        if report.step == step:
            os.kill(os.getpid(), number)

    _, status = os.waitpid(in_child(lambda: run(on_step=kill)), 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number, status


def killed_after(seconds: float, run: Callable[..., Any], started: Callable[[], bool]) -> bool:
    """Do a run that is killed so long after it has started; whether it was, and had not ended before."""
    pid = in_child(run)
    end = time.monotonic() + 600.0  # a busy machine may let it wait for minutes
    while not started():
        assert time.monotonic() < end
        time.sleep(0.001)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def cube_run(scene: Path, folder: Path, steps: int, **options: Any) -> Callable[..., fs.Run]:
    """A run of the small cube, to be called with further options."""
    return lambda **more: fs.simulate(
        fs.load_scene(scene, steps=steps), out=folder, scene_path=scene, **({"checkpoint_every": 5} | options | more)
    )
