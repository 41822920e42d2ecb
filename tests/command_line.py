"""Calls of the command line, and what they must say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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
