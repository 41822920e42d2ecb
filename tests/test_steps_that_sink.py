"""Steps whose equations hold, but whose bodies sink: which is taken where halves, or backward Euler, sink too; and with what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import femsim as fs
from contact import make_solver
from femsim.step.advance import take_step
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper

DT = 0.01


def landing(monkeypatch: pytest.MonkeyPatch, ends: Callable[[Stepper], str]) -> Stepper:
    """A rigid box that slides on a floor, whose steps end as they are told: "solved", "sank" or "unsolved"."""
    plain = Stepper.step

    def step(self: Stepper, *, whole: bool = True, pushing: bool = True) -> StepReport:
        report, how = plain(self, whole=whole, pushing=pushing), ends(self)
        report.sank = how == "sank"
        if how == "unsolved":
            report.solution = replace(report.solution, status="stopped at the limit")
        return report

    monkeypatch.setattr(Stepper, "step", step)
    scene = fs.Scene("landing", dt=DT, default_friction=0.3)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.02)), mass=1.0, position=(0, 0, 0.02), velocity=(0.5, 0, 0))
    return Stepper(scene, make_solver("exact"))


def test_a_solved_step_that_sinks_is_better_than_one_that_is_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backward Euler took it although it solved nothing: 0.8 J came from nowhere in a scene of 0.15 J."""
    stepper = landing(monkeypatch, lambda self: "sank" if self.settings.conserving else "unsolved")
    report = take_step(stepper, 3)
    alone = landing(monkeypatch, lambda self: "solved")
    assert alone.step().theta == report.theta == 0.5
    assert report.solution.converged and len(report.parts) == 1
    np.testing.assert_array_equal(stepper.state.v, alone.state.v)


def test_backward_euler_takes_it_where_it_does_not_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = landing(monkeypatch, lambda self: "sank" if self.settings.conserving else "solved")
    assert take_step(stepper, 3).theta == 1.0


def test_parts_that_sink_are_better_than_a_step_that_is_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = landing(monkeypatch, lambda self: "unsolved" if self.settings.dt > 0.9 * DT else "sank")
    report = take_step(stepper, 1)
    assert len(report.parts) == 2 and report.theta == 0.5 and report.solution.converged


def test_but_no_parts_are_taken_for_one_that_sinks_as_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = landing(monkeypatch, lambda self: "sank")
    report = take_step(stepper, 1)
    assert len(report.parts) == 1 and report.theta == 0.5


def test_steps_after_one_that_sank_without_some_contacts_have_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where that went on, each step was taken twice."""
    asked: list[bool] = []
    stepper = landing(monkeypatch, lambda self: "solved")
    plain = Stepper.step

    def step(self: Stepper, *, whole: bool = True, pushing: bool = True) -> StepReport:
        report = plain(self, whole=whole, pushing=pushing)
        asked.append(whole)
        report.spared = not whole and self.state.step in (2, 5)
        return report

    monkeypatch.setattr(Stepper, "step", step)
    for _ in range(13):
        take_step(stepper, 3)
    # the second step is taken twice, the next eight have all contacts at once, and then others are tried again
    assert asked == [False, False, True, *8 * [True], *3 * [False]]
