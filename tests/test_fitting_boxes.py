"""A box that just fits between floor and a ceiling that slides: forces of both may hold each other and grow without end."""

from __future__ import annotations

import numpy as np
import pytest

import femsim as fs
from contact import ContactProblem
from contact.metrics import residuals
from contact.solvers import Auto, Canal, WarmStart, make_solver

#: Density, half sizes (m) and mass (kg) of the box; its height over its depth is more than friction can tip.
DENSITY, HALF = 2000.0, (0.05, 0.03, 0.04)
MASS = 8 * DENSITY * HALF[0] * HALF[1] * HALF[2]
MU = 0.5


def scene() -> fs.Scene:
    """The box on a floor, and a driven plate that slides over it at 0.3 m/s without a gap."""
    scene = fs.Scene("fit", dt=0.005, default_friction=MU)
    scene.add_floor()
    scene.add_rigid("box", fs.Box(HALF), density=DENSITY, position=(0.0, 0.0, HALF[2]))
    plate = scene.add_rigid("plate", fs.Box((0.2, 0.2, 0.02)), mass=1.0, position=(0.0, 0.0, 2 * HALF[2] + 0.02))
    scene.drive(plate, fs.Motion([0.0, 0.1, 1.0], [[0, 0, 0], [0, 0.03, 0], [0, 0.3, 0]]))
    return scene


@pytest.fixture(scope="module")
def problem() -> ContactProblem:
    """That of a step under way: eight contacts, four of them below."""
    with fs.Simulation(scene()) as sim:
        sim.step(24)
        found = sim.stepper.problem
        assert found is not None and found.n_contacts == 8 and sim.verdict == "good"
        return found


def squeezed(problem: ContactProblem, force: float) -> WarmStart:
    """The box at rest with so much on each contact, N, and as much friction as they bear against what slides."""
    slides = np.abs(problem.phi[:, 1:]).max(axis=1) > 0.1
    lam = np.zeros((8, 3))
    lam[:, 0] = force
    lam[slides, 1:] = -MU * force * problem.phi[slides, 1:] / np.linalg.norm(problem.phi[slides, 1:], axis=1)[:, None]
    return WarmStart(np.zeros(problem.n), lam)


@pytest.mark.parametrize(("force", "path"), [(3.0, True), (10.0, True), (100.0, True), (1e4, False), (1e6, False)])
def test_canal_leaves_forces_that_grow_without_end(problem: ContactProblem, force: float, path: bool) -> None:
    """For a path from nothing, or at once where the start is far too strong; the answer is the weight of the box alone."""
    found = make_solver("canal").solve(problem, squeezed(problem, force))
    assert found.converged and found.iterations < 20, found.message
    assert found.details["from_nothing"] == path
    assert residuals(problem, found.v, found.lam).worst <= 1e-8
    np.testing.assert_allclose(np.sort(found.lam[:, 0]), 4 * [0.0] + 4 * [MASS * 9.81 / 4], atol=1e-6 * MASS * 9.81)


def test_without_paths_they_are_followed(problem: ContactProblem) -> None:
    """They are an answer too, or near one: what holds itself has many."""
    found = make_solver("canal", path=False).solve(problem, squeezed(problem, 10.0))
    assert np.abs(found.lam).max() > 1e3 * MASS and found.details["paths"] == 0


def test_a_path_may_come_first(problem: ContactProblem) -> None:
    found = Canal(path_first=True).solve(problem)
    assert found.converged and found.details["from_nothing"] and found.details["paths"] == 1


def test_the_box_stays_while_the_plate_slides() -> None:
    with fs.Simulation(scene()) as sim:
        for _ in range(60):
            sim.step()
            assert np.abs(sim.report.solution.lam).max() < MASS * 9.81
        assert sim.verdict == "good"
        assert np.abs(sim.pose("box")[1] - (0.0, 0.0, HALF[2])).max() < 1e-6


@pytest.mark.parametrize("force", [1.0, 100.0, 1e6])
def test_auto_keeps_forces_small(problem: ContactProblem, force: float) -> None:
    found = Auto().solve(problem, squeezed(problem, force))
    assert found.converged and np.abs(found.lam).max() < MASS * 9.81


def test_forces_of_a_tall_column_are_a_start() -> None:
    """They add up to the weight of 200 boxes, which the forces of the problem, of one box each, do not show."""
    scene = fs.Scene("column", dt=0.005)
    scene.add_floor()
    for k in range(200):
        scene.add_rigid(f"box_{k}", fs.Box((0.05, 0.05, 0.02)), density=500.0, position=(0.0, 0.0, 0.02 + 0.04 * k))
    with fs.Simulation(scene) as sim:
        sim.step()
        problem, weight = sim.stepper.problem, 200 * 500.0 * 8 * 0.05 * 0.05 * 0.02 * 9.81
        assert problem is not None and sim.verdict == "good"
    found = make_solver("canal").solve(problem)
    again = make_solver("canal").solve(problem, WarmStart(found.v, found.lam))
    assert found.converged and again.converged and again.iterations == 1
    assert not found.details["from_nothing"] and not again.details["from_nothing"]
    assert np.abs(found.lam[:, 0]).max() > weight / 8
