"""Problems without a solution, light contacts beside heavy ones and stiff free bodies: what small residuals must not hide."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl
from slow_twins import body_between_nodes, project_cones
from stiff_nets import net_of_springs

import femsim as fs
from contact import (
    SOLVERS,
    ContactProblem,
    Group,
    LocalProblem,
    Solution,
    WarmStart,
    make_local_problem,
    make_problem,
    make_solver,
    measure,
)
from contact.feasibility import closing_contacts, free_velocities
from contact.metrics import contact_velocity
from contact.metrics_kernels import idle_speed, law_errors
from contact.problem import force_scales
from contact.solvers import judge as judging
from contact.solvers.judge import Judge, lenient

FLOOR = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
GLOBAL = [name for name in SOLVERS if name != "banded"]  # that takes rods alone
LOCAL = sorted(name for name, entry in SOLVERS.items() if hasattr(entry.solver, "solve_local"))
#: Units of force and of velocity.
UNITS = [(1.0, 1.0), (1e6, 1e-3), (1e-60, 1e60), (1e70, 1e-70)]


def two_walls(closing: float = 1.5, force: float = 1.0, speed: float = 1.0) -> ContactProblem:
    """A body between two walls that close on it at 1.3 and ``closing`` - 1.3 m/s, and another one that rests on a floor."""
    J = np.zeros((9, 6))
    J[0:3, 0:3], J[3:6, 0:3], J[6:9, 3:6] = FLOOR, -FLOOR, FLOOR
    phi = np.array([[-1.3, 0.1, 0.2], [1.3 - closing, -0.1, -0.2], [0.0, 0.0, 0.0]])
    b = np.array([0.0, 0.0, 0.0, 0.1, 0.0, -0.3])
    groups = (Group("body", 0, 3, "nodes"), Group("other", 3, 6, "nodes"))
    return make_problem(force / speed * np.eye(6), force * b, J, speed * phi, 0.5, dt=0.01, groups=groups)


def condensed(problem: ContactProblem) -> LocalProblem:
    J, A = problem.J.toarray(), problem.A.toarray()
    W = J @ np.linalg.solve(A, J.T)
    return make_local_problem(0.5 * (W + W.T), J @ np.linalg.solve(A, problem.b) + problem.phi.ravel(), problem.friction)


def boxes(*masses: float) -> ContactProblem:
    """Boxes side by side on a floor, each a point, with their weight and a push."""
    n = len(masses)
    b = np.outer(masses, [5e-3, 0.0, -0.0981]).ravel()
    groups = [Group(f"box {i}", 3 * i, 3 * i + 3, "nodes") for i in range(n)]
    A, J = np.kron(np.diag(masses), np.eye(3)), np.kron(np.eye(n), FLOOR)
    return make_problem(A, b, J, np.zeros(n), 0.5, dt=0.01, groups=groups)


# ---------------------------------------------------------------------- problems without a solution


def says_infeasible(solution: Solution) -> None:
    assert not solution.converged and solution.status == "infeasible" and "contacts 0, 1 close" in solution.message
    assert np.array_equal(solution.details["closing_contacts"], [0, 1])


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("name", GLOBAL)
def test_walls_that_close_on_a_body_have_no_solution(name: str, tolerance: float) -> None:
    says_infeasible(make_solver(name, tolerance=tolerance).solve(two_walls()))


@pytest.mark.parametrize("tolerance", [1e-2, 1e-8])
@pytest.mark.parametrize("name", LOCAL)
def test_nor_in_the_local_form(name: str, tolerance: float) -> None:
    says_infeasible(make_solver(name, tolerance=tolerance).solve_local(condensed(two_walls())))  # type: ignore[attr-defined]


@pytest.mark.parametrize("closing", [0.0, -1e-3])
@pytest.mark.parametrize("name", GLOBAL)
def test_walls_that_move_together_have_one(name: str, closing: float) -> None:
    solution = make_solver(name, tolerance=1e-6).solve(two_walls(closing))
    assert solution.converged and "closing_contacts" not in solution.details
    if name in LOCAL:
        assert make_solver(name, tolerance=1e-6).solve_local(condensed(two_walls(closing))).converged  # type: ignore[attr-defined]


@pytest.mark.parametrize(("force", "speed"), UNITS)
def test_the_verdict_does_not_depend_on_units(force: float, speed: float) -> None:
    for name in ("exact", "cond", "apgd"):
        says_infeasible(make_solver(name, tolerance=1e-4).solve(two_walls(1.5, force, speed)))
        assert make_solver(name, tolerance=1e-4).solve(two_walls(-0.1, force, speed)).converged


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", GLOBAL)
def test_units_whose_squares_overflow_do_no_harm(name: str) -> None:
    """Nothing more is asked than that it ends with a verdict."""
    for force, speed in ((1e150, 1.0), (1e-150, 1.0), (1.0, 1e150), (1.0, 1e-150), (1e150, 1e150)):
        for closing in (1.5, -0.1):
            solution = make_solver(name, tolerance=1e-4, max_iterations=200).solve(two_walls(closing, force, speed))
            assert not (solution.converged and closing > 0.0)


def test_the_proof_asks_for_forces_that_cancel_while_contacts_approach() -> None:
    problem = two_walls()
    lam = np.zeros((3, 3))
    lam[:, 0] = [1e4, 1e4, 0.3]
    u = contact_velocity(problem, np.array([0.0, 0.0, 0.5, 0.0, 0.0, 0.0]))
    for case in (problem, condensed(problem)):
        assert np.array_equal(closing_contacts(case, u, lam, 1.3), [0, 1])
        assert not len(closing_contacts(case, -u, lam, 1.3))  # they separate
        assert not len(closing_contacts(case, u, lam * [[1.0], [0.9], [1.0]], 1.3))  # they do not cancel
        assert not len(closing_contacts(case, u, np.zeros((3, 3)), 1.3))
    skew = condensed(problem)
    W = skew.W.copy()
    W[0, 1] += 0.1
    assert not len(closing_contacts(make_local_problem(W, skew.q, 0.5), u, lam, 1.3))  # no proof there


def test_forces_that_an_indefinite_operator_cancels_prove_nothing() -> None:
    """Both contacts pressed are pushed together by their forces; without any they open at 0.5 m/s."""
    W = np.eye(6)
    W[0, 3] = W[3, 0] = -2.0  # eigenvalues 3 and -1
    problem = make_local_problem(W, np.array([[0.5, 0.0, 0.0]] * 2), 0.5)
    lam = np.array([[1.0, 0.0, 0.0]] * 2)
    assert not len(closing_contacts(problem, problem.contact_velocity(lam), lam, 1.0)) and not problem.is_semidefinite
    W[0, 3] = W[3, 0] = -1.0  # eigenvalues 2 and 0: a body between two walls
    closing = make_local_problem(W, np.array([[-0.5, 0.0, 0.0]] * 2), 0.5)
    assert closing_contacts(closing, closing.contact_velocity(lam), lam, 1.0).tolist() == [0, 1] and closing.is_semidefinite


@pytest.mark.parametrize(("name", "seed", "contacts"), [("raisim-ds", 192, 7), ("admm", 387, 3)])
def test_no_indefinite_problem_with_a_solution_is_called_infeasible(name: str, seed: int, contacts: int) -> None:
    rng = np.random.default_rng(seed)
    assert rng.integers(1, 9) == contacts
    n = 3 * contacts
    M = rng.normal(size=(n, n + 3))
    W, friction = M @ M.T / n - 0.4 * np.eye(n), rng.random(contacts)
    problem = make_local_problem(W, rng.normal(size=(contacts, 3)), friction)
    tried: list[Any] = [make_solver(which, tolerance=1e-8, max_iterations=2000) for which in ("exact", name)]
    assert tried[0].solve_local(problem).converged
    assert tried[1].solve_local(problem).status != "infeasible"


@pytest.mark.parametrize("seed", range(6))
def test_no_problem_with_a_solution_is_called_infeasible(seed: int) -> None:
    """Few iterations, so that the answers are wrong in every way."""
    problem = body_between_nodes(np.random.default_rng(seed), 6, 5)
    for name in GLOBAL:
        for limit in (1, 2, 5, 20):
            solution = make_solver(name, tolerance=1e-9, max_iterations=limit).solve(problem)
            assert solution.status in ("converged", "stopped at the limit"), (name, limit)


# ---------------------------------------------------------------------- light beside heavy


@pytest.mark.parametrize("light", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("name", GLOBAL)
def test_a_light_box_beside_a_heavy_one_does_not_fall_through(name: str, light: float) -> None:
    """The warm start holds the heavy one, and lets the light one fall."""
    problem = boxes(1e3, light)
    start = WarmStart(problem.b / problem.diagonal, np.array([[98.1, -5.0, 0.0], [0.0, 0.0, 0.0]]))
    solution = make_solver(name, tolerance=1e-8).solve(problem, start)
    assert solution.converged
    np.testing.assert_allclose(solution.lam[1], light * np.array([0.0981, -0.005, 0.0]), atol=1e-5 * light)
    assert abs(contact_velocity(problem, solution.v)).max() <= 1e-6 * 0.0981


def test_the_judge_refuses_what_the_heavy_box_hides() -> None:
    problem = boxes(1e3, 1e-6)
    v, lam = np.array([0.0, 0.0, 0.0, 0.005, 0.0, -0.0981]), np.array([[98.1, -5.0, 0.0], [0.0, 0.0, 0.0]])
    assert measure(problem, v, lam).contact_residual < 1e-8
    judge = Judge(problem, 1e-8)
    assert not judge.look(v, lam, 0) and judge.error > 0.9
    assert "Only the law of a light or slow contact is missing." in judge.solution({}, {}).message


def test_what_rests_asks_for_no_better_estimate_than_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The later ones are twenty products with A, which took a third of a step of a mat that lies still."""
    asked: list[np.ndarray] = []

    def estimates(problem: ContactProblem) -> Iterator[np.ndarray]:
        for estimate in free_velocities(problem):
            asked.append(estimate)
            yield estimate

    monkeypatch.setattr(judging, "free_velocities", estimates)
    problem = boxes(1.0, 2.0)
    lam = np.array([[0.0981, -5e-3, 0.0], [0.1962, -0.01, 0.0]])
    judge = Judge(problem, 1e-8)
    assert judge.look(np.array([1e-12, 0.0, 1e-13, -1e-12, 0.0, 0.0]), lam, 0) and judge.converged
    assert len(asked) == 1


# ---------------------------------------------------------------------- stiff free bodies


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["apgd", "pgs", "exact", "ccs", "cond"])
def test_what_is_called_converged_for_stiff_free_bodies_is_right(name: str, seed: int) -> None:
    """Without the scale of W, apgd and pgs were called converged with forces 0.5 to 4 times the right ones wrong."""
    problem = net_of_springs(seed)
    right = make_solver("exact", tolerance=1e-7).solve(problem).lam
    solution = make_solver(name, tolerance=1e-6, max_iterations=1000).solve(problem)
    wrong = np.linalg.norm(solution.lam - right) / np.linalg.norm(right)
    assert not solution.converged or wrong < 1e-3
    assert solution.converged or name in ("apgd", "pgs", "cond")


def test_the_judge_takes_the_scale_of_the_delassus_operator() -> None:
    """Forces four times too large lift the net, and the velocities seem to say that there is nothing wrong."""
    problem = net_of_springs(0)
    W = condensed(problem)
    lam = 4.0 * make_solver("exact", tolerance=1e-7).solve(problem).lam
    v = sl.cho_solve(sl.cho_factor(problem.A.toarray()), problem.b + problem.J.T @ lam.ravel())
    assert measure(problem, v, lam).contact_residual < 1e-6
    judge = Judge(problem, 1e-3)
    judge.know(force_scales(W.W.diagonal().reshape(-1, 3)), float(np.abs(W.q).max()))
    assert not judge.look(v, lam, 0) and judge.error > 0.1


# ---------------------------------------------------------------------- the parts


def test_lenient() -> None:
    assert lenient(1e-6, 1.0) == pytest.approx(1e-8) and lenient(2e-6, 2.0) == pytest.approx(1e-8)
    assert lenient(0.02, 1.0) == 0.02 and lenient(0.0, 0.0) == 0.0 and lenient(1.0, 0.0) > 1.0


@pytest.mark.parametrize("relaxed", [False, True])
def test_law_errors_against_numpy(relaxed: bool) -> None:
    rng = np.random.default_rng(1)
    u, lam, phi = rng.standard_normal((3, 30, 3))
    rho, friction = 10.0 ** rng.uniform(-3, 3, 30), rng.uniform(0.0, 1.0, 30)
    lam[:10] = 0.0
    counted = lam.any(axis=1) | (u[:, 0] < 0)
    assert 20 < counted.sum() < 30
    shifted = u.copy()
    if not relaxed:
        shifted[:, 0] += friction * np.hypot(u[:, 1], u[:, 2])
    rho_u = rho[:, None] * shifted
    wrong = (lam - project_cones(lam - rho_u, friction))[counted]
    velocity, pace, force, most = law_errors(u, lam, phi, rho, friction, relaxed)
    assert velocity == pytest.approx(np.abs(wrong / rho[counted, None]).max(), rel=1e-12)
    assert law_errors(u, np.full((30, 3), 1e30), phi, rho, friction, relaxed)[0] >= -u[:, 0].min()  # rounding swallows u
    assert pace == max(np.abs(u[counted]).max(), np.abs(phi[counted]).max())
    assert force == pytest.approx(
        np.linalg.norm(wrong) / max(np.linalg.norm(lam[counted]), np.linalg.norm(rho_u[counted])), rel=1e-12
    )
    assert most == pytest.approx(np.linalg.norm(wrong) / np.linalg.norm(lam[counted]), rel=1e-12)
    for smaller in 10.0 ** rng.uniform(-3, 0, (20, 30)):
        assert law_errors(u, lam, phi, smaller * rho, friction, relaxed)[2] <= most
    assert law_errors(u[:0], lam[:0], phi[:0], rho[:0], friction[:0], relaxed) == (0.0, 0.0, 0.0, 0.0)


def test_idle_speed_against_numpy() -> None:
    """Zero where the law holds, whatever sticks, slides or is open; else the power by which it is off."""
    rng = np.random.default_rng(2)
    u, lam, friction = rng.standard_normal((20, 3)), rng.standard_normal((20, 3)), rng.uniform(0.1, 1.0, 20)
    lam = project_cones(lam, friction)
    speed = np.linalg.norm(u[:, 1:], axis=1)
    off = lam[:, 0] * (np.maximum(u[:, 0], 0.0) + friction * speed) + (lam[:, 1:] * u[:, 1:]).sum(axis=1)
    assert idle_speed(u, lam, friction) == pytest.approx(off.max() / np.linalg.norm(lam, axis=1).max(), rel=1e-12)
    holds_u = np.array([[0.3, 1.0, 2.0], [0.0, 0.0, 0.0], [0.0, 3.0, -4.0]])
    holds = np.array([[0.0, 0.0, 0.0], [2.0, 0.3, 0.1], [5.0, -1.5, 2.0]])
    assert idle_speed(holds_u, holds, np.full(3, 0.5)) == pytest.approx(0.0, abs=1e-15)
    assert idle_speed(holds_u, 0.0 * holds, np.full(3, 0.5)) == 0.0


@pytest.mark.parametrize("solver", ["canal", "cond-newton", "apgd", "ccs", "admm"])
def test_a_force_that_presses_on_what_parts_is_not_converged(solver: str) -> None:
    """A stiff net that slides on one contact, which feels 1e-5 of the diagonal of A: that hid that F_n was 46 N."""
    side, k = 5, 1e7
    lattice = np.arange(side**3).reshape(side, side, side)
    pairs = np.concatenate([np.stack([np.delete(lattice, -1, i), np.delete(lattice, 0, i)], -1).reshape(-1, 2) for i in range(3)])
    D = np.zeros((len(pairs), side**3))
    D[np.arange(len(pairs)), pairs[:, 0]], D[np.arange(len(pairs)), pairs[:, 1]] = 1.0, -1.0
    A = np.kron(k * D.T @ D + np.eye(side**3), np.eye(3))
    b = np.tile([1.0, 0.0, -0.1], side**3)
    J = np.zeros((3, len(b)))
    J[0, 2] = J[1, 0] = J[2, 1] = 1.0
    problem = make_problem(A, b, J, np.zeros(1), 0.3, dt=0.01)
    found = make_solver(solver, tolerance=1e-6).solve(problem)
    assert not found.converged or found.lam[0] == pytest.approx([12.5, -3.75, 0.0], rel=1e-3, abs=1e-6)


def test_a_penetration_is_seen_beside_any_force() -> None:
    """Beside 1e20 N, what 1 cm/s would be undone by is less than rounding; the velocity itself is not."""
    u, lam = np.array([[-0.01, 0.0, 0.0]]), np.array([[1e20, 0.0, 0.0]])
    velocity, pace, *force = law_errors(u, lam, np.zeros((1, 3)), np.ones(1), np.full(1, 0.3), False)
    assert (velocity, pace, *force) == (0.01, 0.01, 0.0, 0.0)


@pytest.mark.parametrize("force", [1.0, 1e150, 1e-150])
def test_the_estimate_of_the_free_velocity(force: float) -> None:
    """Of the size of the true one for a stiff body, and exact for bodies of one point each."""
    for problem, near in ((net_of_springs(0), 0.5), (boxes(1.0, 1e-3, 5.0), 1e-9), (two_walls(), 1e-9)):
        scaled = make_problem(
            force * problem.A, force * problem.b, problem.J, problem.phi, problem.friction, dt=0.01, groups=problem.groups
        )
        true, *_, estimate = np.abs(condensed(problem).q).max(), *(np.abs(u).max() for u in free_velocities(scaled))
        assert estimate == pytest.approx(true, rel=near)
    still = make_problem(np.eye(3), np.zeros(3), FLOOR, [[0.5, 0.0, 0.1]], 0.5, dt=0.01)
    assert [u.tolist() for u in free_velocities(still)] == [still.phi.tolist()]


def test_the_first_estimate_of_the_free_velocity_moves_bodies_as_one() -> None:
    """Each component suits the sum of b, as the sums of the blocks of A say; rows of other groups do not count."""
    problem = net_of_springs(0)
    (group,) = problem.groups
    rows = np.zeros((problem.n, 3))
    for c in range(3):
        rows[group.start + c : group.stop : group.stride, c] = 1.0
    t = rows @ ((rows.T @ problem.b) / np.diagonal(rows.T @ (problem.A @ rows)))
    first = next(free_velocities(problem))
    np.testing.assert_allclose(first, problem.moved(t).reshape(-1, 3) + problem.phi, rtol=1e-7)  # the stiffness cancels


# ---------------------------------------------------------------------- in a run


def test_a_run_names_the_bodies_that_close(tmp_path: Path) -> None:
    """A box between two driven plates that meet: no step can keep them apart."""
    scene = fs.Scene("press", dt=0.01, duration=0.02, gravity=(0, 0, 0), theta=1.0)
    scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), density=1000.0)
    for name, side in (("left", -1.0), ("right", 1.0)):
        plate = scene.add_rigid(name, fs.Box((0.1, 0.3, 0.3)), density=1000.0, position=(0.2 * side, 0, 0))
        scene.drive(plate, lambda t, k=side: (np.array([-0.1 * k * t, 0.0, 0.0]), np.zeros(3)))  # type: ignore[misc]
    run = fs.simulate(scene, out=tmp_path / "run", quiet=True)
    assert run.status == "not converged" and "infeasible" in run.message
    assert "First step 1, box and left, box and right: " in run.message
    assert sum(run.info["solver"]["answered"].values()) == 2
