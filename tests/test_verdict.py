"""The word at the end is about physics: health verdicts, stops, and what cannot hold."""

from __future__ import annotations

import impossible_scenes as impossible
import pytest

import femsim as fs
from femsim.step.stepper import Stepper


def test_a_step_that_is_proved_infeasible_is_not_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of it close on the same body: each step of the run is tried once, those that sink before twice."""
    tried: list[int] = []
    step = Stepper.step

    def counted(self: Stepper) -> object:
        tried.append(self.state.step)
        return step(self)

    monkeypatch.setattr(Stepper, "step", counted)
    run = fs.simulate(impossible.crushed_box())
    bad = [int(number) - 1 for number in run.steps["step"][run.steps["converged"] == 0]]
    assert len(bad) >= 6 and run.status == "not converged" and "infeasible" in run.message
    assert [tried.count(number) for number in bad] == [1] * len(bad)
