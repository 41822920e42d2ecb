"""First contact problems of steps that are solved loosely: when they are, what stays exact, what it saves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from slow_twins import nodes_on_floor

import femsim as fs
from contact import ContactProblem, Solution, Solver, WarmStart, metrics
from contact.solvers import Exact, make_solver
from femsim.step import newton, system as system_module
from femsim.step.state import State
from femsim.step.stepper import Stepper


class Noting:
    """A solver, by default the exact one; it notes what is enough for each problem, what was found, and how good that is."""

    def __init__(self) -> None:
        self.solver: Solver = Exact()
        self.asked = list[tuple[float, int, float]]()

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        solution = self.solver.solve(problem, warm_start)
        assert solution.converged
        worst = metrics.residuals(problem, solution.v, solution.lam).worst
        self.asked.append((problem.enough, solution.iterations, worst))
        return solution


@pytest.fixture(autouse=True)
def small_bodies_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_module, "LAGS_FROM", 0)


def bending(solver: Noting, *, spin: float = 20.0) -> Stepper:
    """A bar that bends as it falls on the floor at an angle."""
    scene = fs.Scene("bar", dt=0.005)
    scene.add_soft(
        "bar", fs.box_tets((0.08, 0.02, 0.01), (8, 2, 1)), fs.Elastic(2e5, 0.3, 1000.0, name="rubber"),
        position=(0.0, 0.0, 0.01), angular_velocity=(3.0, spin, 0.0),
    )  # fmt: skip
    scene.add_floor()
    return Stepper(scene, solver)


def test_a_step_that_needs_more_than_one_is_begun_loosely_and_ended_sharply(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Noting()
    stepper, loose, spent = bending(solver), 0, 0
    for _ in range(40):
        again = stepper.state.again
        solver.asked.clear()
        report = stepper.step()
        assert report.solution.converged and report.nonlinear_residual <= stepper.newton.tolerance
        enough, iterations, worst = zip(*solver.asked, strict=True)
        assert enough[0] == (0.3 * stepper.newton.tolerance if again else 0.0) and not any(enough[1:])
        assert worst[-1] <= 1e-8 and stepper.state.again <= (report.solves > 1)
        loose, spent = loose + (again and worst[0] > 1e-8), spent + sum(iterations)
    assert loose >= 10
    twin_solver = Noting()
    twin = bending(twin_solver)
    monkeypatch.setattr(newton, "_LOOSE", 0.0)
    sharp = [twin.step() for _ in range(40)]
    assert all(report.solution.converged for report in sharp)
    moved = np.abs(twin.state.q - twin.system.initial_state().q).max()
    assert np.abs(stepper.state.q - twin.state.q).max() < 1e-3 * moved
    assert spent < 0.98 * sum(iterations for _, iterations, _ in twin_solver.asked)


def test_a_loose_answer_that_is_enough_is_followed_by_a_sharp_one() -> None:
    solver = Noting()
    stepper = bending(solver, spin=0.0)
    for _ in range(200):  # it lies still in the end, and one linearisation is enough
        stepper.step()
    assert not stepper.state.again
    stepper.state = replace(stepper.state, again=True, v_hat=stepper.state.v_hat + 1e-4)
    solver.asked.clear()
    report = stepper.step()
    (enough, _, _), (sharp, _, worst) = solver.asked
    assert enough > 1e-8 and sharp == 0.0 and worst <= 1e-8
    assert report.solves == 2 and not stepper.state.again
    assert report.solution.residuals is None or report.solution.residuals.worst <= 1e-8


def test_rods_beside_a_large_body_balance() -> None:
    """Solved again on the same linearisation, they took their forces from joints that had moved on, and lacked a quarter."""
    scene = fs.Scene("rope", dt=0.005, default_friction=0.3)
    scene.add_floor()
    pull = fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0), (0.0, 0.003, 0.0)], smooth=False)
    line, rubber = np.linspace((0.0, 0.0, 0.002), (0.1, 0.0, 0.002), 41), fs.Elastic(2.954e6, 0.49, 1259.0, name="rope")
    scene.add_rod("rope", line, fs.circular_section(0.002), rubber, start=fs.RodEnd("hinged", motion=pull))
    scene.add_soft("bar", fs.box_tets((0.08, 0.02, 0.01), (4, 1, 1)), fs.Elastic(2e5, 0.3, 1000.0), position=(0, -1, 0.005))
    solver = Noting()
    solver.solver = make_solver("auto")
    stepper, enough_after_all = Stepper(scene, solver), 0
    for _ in range(40):
        stepper.state = replace(stepper.state, again=True)
        report = stepper.step()
        assert report.solution.converged and report.wrench_balance < 1e-4
        enough_after_all += report.solves == 2 and not stepper.state.again
    assert enough_after_all > 0


def two_bars(solver: Noting, *, rod: bool = False) -> Stepper:
    """A bar that falls across another one on a floor, turning, perhaps beside a rod."""
    scene = fs.Scene("bars", dt=0.005, default_friction=0.4)
    scene.add_floor()
    mesh, rubber = fs.box_tets((0.06, 0.02, 0.01), (4, 2, 1)), fs.Elastic(1e5, 0.3, 1000.0, rayleigh_beta=1e-3)
    scene.add_soft("low", mesh, rubber, position=(0.0, 0.0, 0.0052))
    scene.add_soft("high", mesh, rubber, position=(0.02, 0.004, 0.0165), angular_velocity=(0.0, 8.0, 3.0))
    if rod:
        line = np.linspace((0.0, 0.5, 0.002), (0.05, 0.5, 0.002), 6)
        scene.add_rod("rod", line, fs.circular_section(0.002), fs.Elastic(1e6, 0.4, 1000.0))
    return Stepper(scene, solver)


def test_a_pile_is_begun_loosely_and_ended_as_if_it_had_not_been(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_module, "LAGS_FROM", 10**9)
    monkeypatch.setattr(system_module, "PILES_FROM", 0)
    solver, loose, energy = Noting(), 0, []
    stepper = two_bars(solver)
    for _ in range(40):
        again = stepper.state.again
        solver.asked.clear()
        report = stepper.step()
        assert report.solution.converged and report.nonlinear_residual <= stepper.newton.tolerance
        enough, _, worst = zip(*solver.asked, strict=True)
        assert enough[0] == (stepper.newton.tolerance if again else 0.0) and not any(enough[1:]) and worst[-1] <= 1e-8
        energy.append(report.kinetic_energy + report.elastic_energy - report.work)
        loose += again and worst[0] > 1e-6
    assert loose >= 10 and np.diff(energy).max() <= 1e-7 * np.ptp(energy)
    monkeypatch.setattr(newton, "_LOOSE_PILE", 0.0)
    twin = two_bars(Noting())
    for _ in range(40):
        twin.step()
    moved = np.abs(twin.state.q - twin.system.initial_state().q).max()
    assert np.abs(stepper.state.q - twin.state.q).max() < 1e-3 * moved


def test_two_large_bodies_are_no_pile(monkeypatch: pytest.MonkeyPatch) -> None:
    """As two soft fingers: their tangents may lag, and a first answer as loose as that of a pile led their run elsewhere."""
    monkeypatch.setattr(system_module, "PILES_FROM", 0)
    solver = Noting()
    stepper = two_bars(solver)
    stepper.state = replace(stepper.state, again=True)
    stepper.step()
    assert solver.asked[0][0] == 0.3 * stepper.newton.tolerance


def test_a_pile_with_rods_is_not_begun_loosely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_module, "LAGS_FROM", 10**9)
    monkeypatch.setattr(system_module, "PILES_FROM", 0)
    for rod in (False, True):
        solver = Noting()
        stepper = two_bars(solver, rod=rod)
        for _ in range(5):
            stepper.state = replace(stepper.state, again=True)
            stepper.step()
        assert any(enough for enough, _, _ in solver.asked) != rod


def test_small_bodies_and_one_linearisation_a_step_are_not_begun_loosely(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (10**9, 0):
        monkeypatch.setattr(system_module, "LAGS_FROM", limit)
        solver = Noting()
        stepper = bending(solver)
        if not limit:
            stepper.newton = replace(stepper.newton, tolerance=None)
        for _ in range(5):
            stepper.state = replace(stepper.state, again=True)
            stepper.step()
        assert not any(enough for enough, _, _ in solver.asked)


def test_a_state_that_is_saved_knows_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    stepper, path = bending(Noting()), tmp_path_factory.mktemp("state") / "state.npz"
    while not stepper.state.again:
        stepper.step()
    stepper.state.save(path)
    assert State.load(path) == stepper.state and State.load(path).again
    assert State.load(path) != replace(stepper.state, again=False)


@pytest.mark.parametrize("name", ["exact", "cond", "auto", "canal"])
def test_solvers_stop_at_what_is_enough_and_never_before_their_tolerance(name: str) -> None:
    problem = nodes_on_floor(np.random.default_rng(4), 20, 8)
    sharp = make_solver(name, tolerance=1e-8)
    iterations = []
    for enough in (0.0, 1e-3):
        asked = replace(problem, enough=enough)
        solution = sharp.solve(asked)
        assert solution.converged
        assert metrics.residuals(problem, solution.v, solution.lam).worst <= max(enough, 1e-8)
        iterations.append(solution.iterations)
    assert iterations[1] <= iterations[0]
    loose = make_solver(name, tolerance=1e-2)
    np.testing.assert_array_equal(loose.solve(replace(problem, enough=1e-4)).v, loose.solve(problem).v)
