"""Threads that meet inside a kernel: what each sees of the others, and that nobody waits for one that does not come."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from contact.compiled import njit
from contact.together import Team, wait


@njit(cache=False, nogil=True)
def smooth(values: np.ndarray, rounds: int, met: np.ndarray, thread: int, threads: int) -> None:
    """Each thread replaces its column by the mean of all columns of the round before, plus its number."""
    for k in range(rounds):
        total = 0.0
        for other in range(threads):
            total += values[k, other]
        values[k + 1, thread] = total / threads + thread
        wait(met, thread, threads)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_threads_see_what_the_others_wrote_before_they_met(threads: int) -> None:
    rounds = 300
    expected = np.zeros((rounds + 1, threads))
    for k in range(rounds):
        expected[k + 1] = sum(expected[k].tolist()) / threads + np.arange(threads)
    with Team(threads) as team:
        for _ in range(20):
            values = np.zeros((rounds + 1, threads))
            done = team.run(lambda thread, values=values: smooth(values, rounds, team.met, thread, threads))
            assert len(done) == threads
            np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_nobody_waits_for_a_thread_that_has_failed(lost: int) -> None:
    values = np.zeros((100, 3))
    with Team(3) as team:

        def work(thread: int) -> None:
            if thread == lost:
                raise ValueError(f"thread {thread}")
            smooth(values, 99, team.met, thread, 3)

        with pytest.raises(ValueError, match=f"thread {lost}"):
            team.run(work)


def test_a_team_without_its_threads_says_so_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    values, start, started = np.zeros((100, 3)), threading.Thread.start, 0

    def refuse(self: threading.Thread) -> None:
        nonlocal started
        started += 1
        if started > 1:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"), Team(3) as team:
        team.run(lambda thread: smooth(values, 99, team.met, thread, 3))
