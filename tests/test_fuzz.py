"""The fuzzer of readers on 8200 inputs, and that it would see each of the failures that it is there for."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import fuzz
import numpy as np
import pytest

from femsim.base.errors import InputError

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="its workers are forked"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def test_no_input_fails() -> None:
    """As many inputs as there is time for in a minute, at most."""
    tally = fuzz.fuzz(8200, seed=20, most_seconds=60.0)
    assert not tally.failures, tally.failures[:5]
    assert tally.inputs > 100 and sum(ended["refused"] for ended in tally.ended.values()) > 50


def test_an_input_is_always_the_same(tmp_path: Path) -> None:
    seeds = [fuzz.Seed("path", "a.path", b"0 0 0\n1 0 0\n"), fuzz.Seed("json", "run.json", b'{"status": "converged"}')]
    first = [fuzz.changed(seeds, 3, number) for number in range(40)]
    assert first == [fuzz.changed(seeds, 3, number) for number in range(40)]
    assert len({data for _, data in first}) > 30
    assert first != [fuzz.changed(seeds, 4, number) for number in range(40)]


@pytest.mark.parametrize(("kind", "name", "beside"), [("robot", "a.xml", "robot.urdf"), ("bench", "problems.csv", "bench.csv")])
def test_a_file_is_read_and_not_only_the_one_beside_it(tmp_path: Path, kind: str, name: str, beside: str) -> None:
    good = next(seed for seed in fuzz.seeds(tmp_path) if seed.kind == kind and seed.name.endswith(name))
    path = tmp_path / good.name
    path.write_bytes(good.data)
    assert (path.parent / beside).is_file() and fuzz.judge(kind, path) == "read"
    path.write_bytes(good.data[:-20])
    assert fuzz.judge(kind, path) == "refused"


def _hang(_: Any) -> list[np.ndarray]:
    while True:
        pass


def _sleep_in_the_child_only(path: Path) -> list[np.ndarray]:
    import foreign.child

    if foreign.child._inline:
        _hang(path)
    raise InputError("refused")


@pytest.mark.parametrize(
    ("reader", "words"),
    [
        (lambda _: [np.array([1.0, np.inf])], "accepted a value that is not finite"),
        (lambda _: {}["x"], "KeyError"),
        (lambda _: [np.ones(80_000_000)], "MemoryError"),
        (_hang, "ended the process of the user"),
        (_sleep_in_the_child_only, ""),
    ],
)
def test_a_failure_is_seen(reader: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "seeds", lambda folder: [fuzz.Seed("json", "run.json", b"{}")])
    monkeypatch.setattr(fuzz, "warm", lambda *_: None)
    monkeypatch.setattr(fuzz, "read", lambda kind, path: reader(path))
    monkeypatch.setattr(fuzz, "QUICK", 0.3)
    monkeypatch.setattr(fuzz, "SECONDS", 1.0)
    began = time.monotonic()
    tally = fuzz.fuzz(2, seed=1)
    assert tally.inputs == 2 and time.monotonic() - began < 60
    if words:
        assert len(tally.failures) == 2 and all(words in text for text in tally.failures), tally.failures
    else:
        assert not tally.failures and tally.ended["json"] == {"refused by itself": 2}
