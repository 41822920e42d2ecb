"""Calls of the command line, and what they must say."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from femsim.cli import execute

Call = Callable[..., tuple[int, str, str]]


def info(folder: Path) -> dict:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def assert_sentence(status: int, out: str, err: str, *words: str) -> None:
    """Wrong input: status 2, nothing on stdout, and on stderr one line with these words."""
    assert status == 2, err
    assert out == ""
    assert err.startswith("femsim: ") and err.count("\n") == 1 and err.endswith("\n")
    assert "Traceback" not in err
    for word in words:
        assert word in err, f"{word!r} is not in: {err}"


class Command:
    """A command in a process of its own, forked from this one so that nothing is imported or compiled again.

    Parameters
    ----------
    words : str
        Its words.
    out : int or str, optional
        File or descriptor of its standard output; "closed" closes it.
    before : callable, optional
        What the process does first.
    said : Path
        A folder for what it says: files "out" and "err".
    """

    def __init__(self, *words: str, out: str = "", before: Callable[[], object] = lambda: None, said: Path) -> None:
        self.said = said
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 99
            try:
                self._streams(out)
                before()
                status = execute(list(words))
            except BaseException as error:
                os.write(2, f"Traceback: {type(error).__name__}: {error}".encode())
            finally:
                os._exit(status)

    def _streams(self, out: str) -> None:
        with (self.said / "err").open("wb") as err:
            os.dup2(err.fileno(), 2)
        sys.stderr = os.fdopen(os.dup(2), "w", encoding="utf-8", buffering=1)
        if out == "closed":
            os.close(1)
            sys.stdout = None  # type: ignore[assignment]  # as Python does it
            return
        handle = os.open(out or self.said / "out", os.O_WRONLY | os.O_CREAT)
        os.dup2(handle, 1)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")

    def wait(self) -> tuple[int, str]:
        """Wait for its end: exit status (minus the signal that killed it), and what it said on stderr."""
        end = time.monotonic() + 120.0
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError("the command does not end")
            time.sleep(0.01)
        return os.waitstatus_to_exitcode(status), (self.said / "err").read_text(encoding="utf-8")
