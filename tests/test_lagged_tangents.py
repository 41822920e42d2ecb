"""Tangents of soft bodies that serve for a second linearisation: what stays, what does not, what it saves and changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import femsim as fs
from contact import ContactProblem, Solution, WarmStart
from contact.solvers import Exact, make_solver
from femsim.model.bodies.corotational import CorotationalBody
from femsim.step import system as system_module
from femsim.step.stepper import Stepper
from femsim.step.system import System


@pytest.fixture(autouse=True)
def small_bodies_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_module, "LAGS_FROM", 0)


def bar(*, joined: bool, tolerance: float = 1e-4) -> Stepper:
    """A bar that bends as it falls; joined, it is held at one face, and a tendon pulls."""
    scene = fs.Scene("bar", dt=0.005, nonlinear_tolerance=tolerance, integrator="energy-momentum")
    fixed = (lambda x: x[:, 0] < -0.0399) if joined else None
    scene.add_soft(
        "bar", fs.box_tets((0.08, 0.02, 0.01), (8, 2, 1)), fs.Elastic(2e5, 0.3, 1000.0, name="rubber"), fixed=fixed,
        velocity=(0.0, 0.0, 0.0), angular_velocity=(0.0, 0.0, 0.0) if joined else (3.0, 20.0, 0.0),
    )  # fmt: skip
    if joined:
        scene.add_tendon("bar", [(-0.03, 0.005, 0.0), (0.03, -0.005, 0.004)], force=lambda t: 0.3)
    return Stepper(scene, Exact())


@pytest.mark.parametrize("joined", [False, True])
def test_the_equations_are_those_of_the_place_with_the_bodies_block_of_before(joined: bool) -> None:
    stepper = bar(joined=joined)
    system, state, settings, nothing = stepper.system, stepper.state, stepper.settings, np.zeros(stepper.system.n)
    system.assemble(state, settings, nothing)
    rng, free = np.random.default_rng(3), ~system.prescribed
    here = 0.3 * rng.standard_normal(system.n) * free
    there = here + 0.1 * rng.standard_normal(system.n) * free
    filled = []
    for place, lagged in ((here, False), (there, True), (there, True), (there, False)):
        system.residual(settings, place, nothing)
        system.linearise(settings, place, lagged=lagged)
        lacking = system.A @ place - system.b
        assert system.residual(settings, place, lacking) < 1e-12  # a force as large balances what is lacking
        filled.append(system.A.toarray())
    (before, kept, again, new), size = filled, np.abs(filled[0]).max()
    np.testing.assert_array_equal(again, kept)  # what couplings add is not added twice
    assert np.abs(new - before).max() > 1e-3 * size
    if not joined:
        np.testing.assert_array_equal(kept, before)
        return
    # the tendon's block is that of the place; whatever it does not reach stays, prescribed rows too
    tendon = np.zeros(system.n, dtype=bool)
    tendon[[row for coupling in system.couplings for _, rows in coupling.rows for row in rows]] = True
    same = ~(tendon[:, None] & tendon[None, :])
    np.testing.assert_array_equal(kept[same], before[same])
    assert np.abs(kept - before).max() > 1e-9 * size


def count_tangents(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count in one place how often tangents of co-rotational bodies are filled."""
    count, fill = [0], CorotationalBody.tangent

    def counting(self: CorotationalBody, *arguments: Any) -> None:
        count[0] += 1
        fill(self, *arguments)

    monkeypatch.setattr(CorotationalBody, "tangent", counting)
    return count


@pytest.mark.parametrize("joined", [False, True])
def test_a_second_linearisation_takes_them_and_leads_to_the_same_motion(joined: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    count, stepper = count_tangents(monkeypatch), bar(joined=joined)
    saved = solves = 0
    for _ in range(25):
        count[0], ahead = 0, stepper.state.ahead
        report = stepper.step()
        assert report.solution.converged and report.nonlinear_residual <= 1e-4
        saved += report.solves - (not ahead) - count[0]
        solves += report.solves
    with monkeypatch.context() as patched:
        patched.setattr(system_module, "LAGS_FROM", 10**9)
        fresh = bar(joined=joined)
        needed = sum(fresh.step().solves for _ in range(25))
    assert saved >= 8 and solves <= needed
    sharp = bar(joined=joined, tolerance=1e-9)  # there they serve for the last digits only
    for _ in range(25):
        sharp.step()
    moved = np.abs(sharp.state.q - sharp.system.initial_state().q).max()
    assert np.abs(stepper.state.q - sharp.state.q).max() < 2e-3 * moved
    energies = [one.system.energy(one.state.copy()) for one in (stepper, sharp)]
    assert energies[0] == pytest.approx(energies[1], rel=2e-3)


class GivesUp:
    """An exact solver that gives up the third and fourth problem that it is asked for."""

    def __init__(self) -> None:
        self.solver, self.asked = make_solver("exact"), 0

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        solution = self.solver.solve(problem, warm_start)
        self.asked += 1
        return replace(solution, status="stopped at the limit") if self.asked in (3, 4) else solution


def test_where_they_lead_to_a_problem_that_is_not_solved_others_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper, asked, fill = bar(joined=True), [], System.linearise

    def noting(self: System, *arguments: Any, **how: Any) -> bool:
        asked.append(bool(how.get("lagged")))
        return fill(self, *arguments, **how)

    monkeypatch.setattr(System, "linearise", noting)
    state = stepper.state.copy()
    assert stepper.step().solves == 3 and asked == [False, True]  # the first problem is that of the start
    right = stepper.state.q
    stepper.restore(state)
    asked.clear()
    monkeypatch.setattr(stepper, "solver", GivesUp())
    report = stepper.step()
    # those that are surely positive definite do not help; then come those of the place
    assert report.solution.converged and asked == [False, True, False, False]
    assert np.abs(stepper.state.q - right).max() < 1e-6


def test_tangents_of_small_bodies_do_not_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost nothing, and where steel lies on jelly a step would fail by them."""
    monkeypatch.setattr(system_module, "LAGS_FROM", 1000)
    stepper = bar(joined=True)
    assert not stepper.system.lags
    steps = [stepper.step() for _ in range(10)]
    twin = bar(joined=True)
    monkeypatch.setattr("femsim.step.newton._LAGGED", 0.0)
    for step in steps:
        assert twin.step().solves == step.solves
    np.testing.assert_array_equal(stepper.state.q, twin.state.q)
    monkeypatch.setattr(system_module, "LAGS_FROM", 0)
    assert bar(joined=True).system.lags
