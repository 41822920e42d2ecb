"""Stage contact: joints, limits, motors and dry friction as rows of a problem, by every solver, beside what hands can solve."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from branched import PARENTS, two_robots
from registry import LIMITED
from slow_twins import random_spd

from contact import (
    SOLVERS,
    ContactError,
    ContactProblem,
    Group,
    Solution,
    WarmStart,
    condense,
    make_problem,
    make_rows,
    make_solver,
    measure,
)
from contact.metrics import row_residual
from contact.reduction import Reduction
from contact.rows import Rows
from contact.solvers import with_rows
from contact.solvers.auto import Auto
from contact.solvers.canal import Canal
from contact.solvers.exact import Exact, ExactOptions
from femsim.studies.problems.assemblies import GRAVITY, WORLD, Assembly

#: Those that solve any problem of contacts with A to their tolerance.
WHOLE = sorted(set(SOLVERS) - LIMITED - {"banded"})
LENGTH, WIDTH, MASS, DT = 0.5, 0.02, 2.0, 0.01
#: Of a bar about its middle and about its end, kg m^2.
MIDDLE = MASS * (LENGTH**2 + WIDTH**2) / 12
END = MIDDLE + MASS * LENGTH**2 / 4


def bars(**bounds: float) -> Assembly:
    """Two level bars, hinged to each other and one to the ground, at rest; with bounds, a motor at the ground."""
    made = Assembly(dt=DT)
    first = made.box(MASS, (LENGTH, WIDTH, WIDTH), (LENGTH / 2, 0.0, 0.0))
    made.join(first, WORLD, (0.0, 0.0, 0.0), "hinge")
    if bounds:
        made.row(made.turning(first, WORLD, (0.0, -1.0, 0.0)), **bounds)
    else:
        second = made.box(MASS, (LENGTH, WIDTH, WIDTH), (1.5 * LENGTH, 0.0, 0.0))
        made.join(second, first, (LENGTH, 0.0, 0.0), "hinge")
    return made


def ring(ratio: float, bodies: int = 8) -> ContactProblem:
    """A closed ring of boxes on the floor, the first so many times heavier; 24 rows and 32 contacts with 8 boxes."""
    made, turn = Assembly(), 2.0 * np.pi / bodies
    at = [np.array([np.cos(turn * k), np.sin(turn * k), 0.1]) for k in range(bodies)]
    for k, centre in enumerate(at):
        velocity = (0.5, 0.1 * k, 0.0, 0.0, 0.0, 0.2)
        made.box(ratio if k == 0 else 1.0, (0.3, 0.3, 0.2), centre, velocity=velocity)
    for k in range(bodies):
        angle = turn * (k + 0.5)
        made.join(k, (k + 1) % bodies, (np.cos(angle), np.sin(angle), 0.1), "ball")
    for k, centre in enumerate(at):
        made.corners(k, WORLD, (0.3, 0.3), centre - [0.0, 0.0, 0.1])
    return made.problem()


def random_rows(seed: int, *, anisotropic: bool = False) -> ContactProblem:
    """Bodies with two contacts and rows of every kind: rigid, soft and repeated equalities, limits, a motor, a given force."""
    rng = np.random.default_rng(seed)
    n = 18
    G = rng.standard_normal((9, n))
    G[2] = G[0] - 2.0 * G[1]
    G[8] = 0.0  # nothing moves along it
    inf = np.inf
    low = np.array([-inf, -inf, -inf, -inf, 0.0, -inf, -0.3, 0.4, -1.0])
    high = np.array([inf, inf, inf, inf, inf, 0.2, 0.5, 0.4, 1.0])
    offset = rng.standard_normal(9)
    offset[2] = offset[0] - 2.0 * offset[1]
    rows = make_rows(G, offset, low, high, [0.0, 0.0, 0.0, 0.2, 0.0, 0.3, 0.1, 0.0, 0.0])
    friction = np.array([[0.5, 1.0], [0.3, 0.2]]) if anisotropic else np.array([0.5, 0.3])
    groups = [Group("soft", 0, 6, "nodes"), Group("rod", 6, 12, "links"), Group("body", 12, n, "generalized")]
    J = rng.standard_normal((6, n))
    return make_problem(
        random_spd(rng, n), rng.standard_normal(n), J, rng.standard_normal((2, 3)), friction, dt=0.1, groups=groups, rows=rows
    )


# ---------------------------------------------------------------------- by hand


@pytest.mark.parametrize("name", WHOLE)
def test_two_hinged_bars_begin_to_fall_as_a_double_pendulum(name: str) -> None:
    problem = bars().problem()
    found = make_solver(name, tolerance=1e-8).solve(problem)
    assert found.converged, found.message
    inner = MASS * LENGTH**2  # Lagrange's equations of two level bars
    matrix = [[END + inner, inner / 2], [inner / 2, END]]
    turning = np.linalg.solve(matrix, -MASS * GRAVITY * LENGTH * np.array([1.5, 0.5]))
    assert found.v[[4, 10]] == pytest.approx(-DT * turning, rel=1e-7)
    fall = DT * np.array([0.5 * LENGTH * turning[0], LENGTH * turning[0] + 0.5 * LENGTH * turning[1]])
    assert found.v[[2, 8]] == pytest.approx(fall, rel=1e-7)
    # the ground carries what gravity lacks, along z: the axis of a hinge is first, and z is one of the others
    push = (problem.rows.G.T @ found.row_forces).reshape(2, 6)  # type: ignore[union-attr]
    assert push[:, :3].sum(axis=0) == pytest.approx([0.0, 0.0, MASS * (2 * GRAVITY + fall.sum() / DT)], abs=1e-6)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("most", [2.0, 20.0])
def test_a_motor_holds_a_bar_or_gives_way_at_its_limit(name: str, most: float) -> None:
    needed = MASS * GRAVITY * LENGTH / 2
    problem = bars(low=-most, high=most).problem()
    found = make_solver(name, tolerance=1e-8).solve(problem)
    assert found.converged, found.message
    assert found.row_forces[-1] == pytest.approx(min(needed, most), rel=1e-7)
    assert -found.v[4] == pytest.approx(-DT * max(needed - most, 0.0) / END, abs=1e-7)


def test_a_motor_turns_at_its_speed_and_a_limit_pushes_only_one_way() -> None:
    speed = 0.7
    driven = make_solver("exact").solve(bars(low=-100.0, high=100.0, offset=-speed).problem())
    assert -driven.v[4] == pytest.approx(speed, rel=1e-9)
    needed = MASS * GRAVITY * LENGTH / 2
    assert driven.row_forces[-1] == pytest.approx(needed + END * speed / DT, rel=1e-7)
    stopped = make_solver("exact").solve(bars(low=0.0, high=np.inf).problem())
    assert stopped.v[4] == pytest.approx(0.0, abs=1e-12) and stopped.row_forces[-1] == pytest.approx(needed)
    from_above = make_solver("exact").solve(bars(low=-np.inf, high=0.0).problem())
    assert from_above.v[4] == pytest.approx(DT * needed / END) and from_above.row_forces[-1] == 0.0


def test_a_soft_row_gives_way_by_its_force_and_a_given_force_is_given() -> None:
    needed, softness = MASS * GRAVITY * LENGTH / 2, 1e-3
    found = make_solver("exact").solve(bars(softness=softness).problem())
    force = found.row_forces[-1]
    assert found.v[4] == pytest.approx(softness * force, rel=1e-9)  # w = -v4 + softness force = 0
    assert force == pytest.approx(needed / (1.0 + END * softness / DT), rel=1e-9)
    given = make_solver("exact").solve(bars(low=1.5, high=1.5).problem())
    assert given.row_forces[-1] == 1.5
    assert given.v[4] == pytest.approx(DT * (needed - 1.5) / END, rel=1e-9)


def test_a_row_that_nothing_moves_along_is_answered_where_a_force_does_what_it_asks_for() -> None:
    """Its velocity is offset + softness force: a soft row gives way, a bounded force stays at its bound, a rigid one cannot."""
    inf = np.inf
    cases = (
        (1.0, -inf, inf, 0.5, -2.0), (1e-3, -inf, inf, 1e-6, -1e3), (-1.0, 0.0, inf, 0.5, 2.0), (1.0, -2.0, 2.0, 0.0, -2.0),
        (1.0, 0.0, inf, 0.0, 0.0), (0.0, -inf, inf, 0.0, 0.0), (1.0, -inf, inf, 0.0, None), (-1.0, 0.0, inf, 0.0, None),
        (1.0, -inf, 0.0, 0.0, None),
    )  # fmt: skip
    for offset, low, high, softness, force in cases:
        rows = make_rows(np.zeros((1, 3)), offset, low, high, softness)
        problem = make_problem(10.0 * np.eye(3), np.ones(3), np.zeros((0, 3)), np.zeros(0), 0.0, dt=0.01, rows=rows)
        found = make_solver("exact").solve(problem)
        if force is None:
            assert found.status == "infeasible" and found.details["contradicting_rows"].tolist() == [0], found.message
        else:
            assert found.converged and found.row_forces == pytest.approx([force]), found.message


@pytest.mark.parametrize("name", WHOLE)
def test_rows_that_repeat_others_are_answered(name: str) -> None:
    problem = bars().problem()
    rows = problem.rows
    assert rows is not None
    twice = make_rows(sp.vstack([rows.G, rows.G]), 0.0)
    once, found = (make_solver(name, tolerance=1e-8).solve(replace(problem, rows=r)) for r in (rows, twice))
    assert found.converged, found.message
    assert found.v == pytest.approx(once.v, abs=1e-8)
    assert np.abs(rows.G @ found.v).max() <= 1e-14
    assert found.row_forces == pytest.approx(np.tile(once.row_forces / 2, 2), abs=1e-6)  # of least norm


def test_rows_that_contradict_each_other_are_said() -> None:
    problem = bars().problem()
    rows = problem.rows
    assert rows is not None
    offset = np.zeros(2 * rows.n_rows)
    offset[0] = 0.1
    found = make_solver("exact").solve(replace(problem, rows=make_rows(sp.vstack([rows.G, rows.G]), offset)))
    assert found.status == "infeasible" and "no velocities can do together" in found.message
    assert {0, rows.n_rows} <= set(found.details["contradicting_rows"])
    offset[0] = 1e-5  # far below the speeds of the fall: an error of joints that repeat each other, not a contradiction
    found = make_solver("exact").solve(replace(problem, rows=make_rows(sp.vstack([rows.G, rows.G]), offset)))
    assert found.status == "stopped at the limit" and not found.message.startswith("Converged")
    assert re.match(r"The rows of the problem hold to [\d.e-]+ only \(row \d+ the least\), tolerance 1e-08\. Of ", found.message)
    # no velocities do better: it is solved once, and says by how much
    consistent = replace(problem, rows=make_rows(sp.vstack([rows.G, rows.G]), 0.0))
    assert found.iterations == make_solver("exact").solve(consistent).iterations
    wanted = row_residual(replace(problem, rows=make_rows(sp.vstack([rows.G, rows.G]), offset)), found.v, found.row_forces)
    assert found.details["contradiction"] == pytest.approx(wanted) and 1e-7 < wanted < 1e-3
    assert np.abs(rows.G @ found.v + 0.5 * offset[: rows.n_rows]).max() <= 1e-12
    assert "contradiction" not in make_solver("exact").solve(consistent).details


def test_what_does_not_hold_of_the_given_problem_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of a motor hide what a contact lacks from the problem that is solved: it converged, the given one did not."""
    problem = random_rows(0)
    rows = problem.rows
    assert rows is not None
    wide = replace(problem, rows=make_rows(rows.G[:1], 1.0, -1e12, 1e12))
    assert make_solver("exact").solve(wide).converged  # without the bounds, which do not act
    monkeypatch.setattr(with_rows, "_REPEATS", 0)
    found = make_solver("exact").solve(wide)
    assert found.status == "stopped at the limit", found.message
    law = r"The contact law of the problem holds to [\d.e-]+ only, tolerance 1e-08\. Of the problem of hard contacts that stands"
    assert re.match(law + " for it: Converged in ", found.message), found.message
    alone = make_solver("exact").solve(replace(problem, rows=make_rows(np.zeros((1, problem.n)), 1.0)))
    assert alone.message == "Row 0 asks for what no velocities can do.", alone.message


# ---------------------------------------------------------------------- with contacts, by every solver


#: ADMM with a fixed or an unscaled penalty needs thousands of iterations where masses differ by 1000.
SLOW = {"fadmm", "admm-ncp-fp", "admm-ncp-la", "admm-ncp-sa"}


@pytest.mark.parametrize("ratio", [1.0, 1000.0])
def test_every_solver_solves_a_closed_ring_on_the_floor(ratio: float) -> None:
    problem = ring(ratio)
    assert problem.rows is not None and (problem.rows.n_rows, problem.n_contacts) == (24, 32)
    best = make_solver("exact", tolerance=1e-10).solve(problem)
    weight = np.sqrt(problem.diagonal)
    for name in WHOLE:
        if ratio > 1.0 and name in SLOW:
            continue
        found = make_solver(name, tolerance=1e-6).solve(problem)
        assert found.converged, (name, found.message)
        residuals = measure(problem, found.v, found.lam, row_forces=found.row_forces)
        assert max(residuals.dynamics_residual, residuals.contact_residual) <= 1e-6 and residuals.balance <= 5e-6, name
        assert residuals.row_residual <= 1e-13, name
        wrong = np.linalg.norm(weight * (found.v - best.v)) / np.linalg.norm(weight * best.v)
        assert wrong <= 1e-2, (name, wrong)


@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_every_kind_hold_beside_contacts(seed: int, anisotropic: bool) -> None:
    problem = random_rows(seed, anisotropic=anisotropic)
    rows = problem.rows
    assert rows is not None
    found = make_solver("exact", tolerance=1e-10).solve(problem)
    assert found.converged, found.message
    w, lam = rows.velocity(found.v, found.row_forces), found.row_forces
    assert np.abs(lam - np.clip(lam - w, rows.low, rows.high)).max() <= 1e-8
    assert lam[7] == 0.4 and lam[8] == -np.sign(rows.offset[8])
    forces = problem.b + problem.J.T @ found.lam.ravel() + rows.G.T @ found.row_forces
    assert problem.A @ found.v == pytest.approx(forces, abs=1e-8)
    residuals = measure(problem, found.v, found.lam, row_forces=found.row_forces)
    assert max(residuals.contact_residual, residuals.row_residual, residuals.dynamics_residual) <= 1e-10


def plain_twin(problem: ContactProblem, sweeps: int) -> tuple[np.ndarray, np.ndarray]:
    """Projected Gauss-Seidel on the rows of a problem without contacts: v, (n,), and forces, (p,)."""
    rows = problem.rows
    assert rows is not None
    inverse = np.linalg.inv(problem.A.toarray())
    G = rows.G.toarray()
    W = G @ inverse @ G.T + np.diag(rows.softness)
    q, lam = G @ inverse @ problem.b + rows.offset, np.zeros(rows.n_rows)
    for _ in range(sweeps):
        for i in range(len(q)):
            if W[i, i] > 0.0:
                lam[i] = np.clip(lam[i] - (W[i] @ lam + q[i]) / W[i, i], rows.low[i], rows.high[i])
    return inverse @ (problem.b + G.T @ lam), lam


@pytest.mark.parametrize("seed", range(4))
def test_rows_alone_are_what_projected_sweeps_find(seed: int) -> None:
    problem = random_rows(seed)
    problem = replace(problem, J=problem.J[:0], phi=problem.phi[:0], friction=problem.friction[:0])
    v, lam = plain_twin(problem, 4000)
    found = make_solver("exact", tolerance=1e-10).solve(problem)
    assert found.converged
    assert found.v == pytest.approx(v, abs=1e-7)
    assert found.row_forces[3:8] == pytest.approx(lam[3:8], abs=1e-6)  # the first three depend on each other


def test_equalities_are_those_of_the_saddle_point() -> None:
    problem = random_rows(5)
    rows = problem.rows
    assert rows is not None
    equal = make_rows(rows.G[:3], rows.offset[:3])
    problem = replace(problem, rows=equal, J=problem.J[:0], phi=problem.phi[:0], friction=problem.friction[:0])
    found = make_solver("exact", tolerance=1e-10).solve(problem)
    G = equal.G.toarray()
    saddle = np.block([[problem.A.toarray(), G.T], [G, np.zeros((3, 3))]])
    v = np.linalg.lstsq(saddle, np.concatenate([problem.b, -equal.offset]), rcond=1e-12)[0][: problem.n]
    assert found.v == pytest.approx(v, abs=1e-10)


# ---------------------------------------------------------------------- the way there and back


@pytest.mark.parametrize("seed", range(2))
def test_the_reduced_problem_has_the_velocities_of_the_given_one(seed: int) -> None:
    problem = random_rows(seed)
    rng, way = np.random.default_rng(seed), Reduction(problem)
    y = rng.standard_normal(way.reduced.n)
    v, _, _ = way.expand(y, np.zeros((way.reduced.n_contacts, 3)))
    rows = problem.rows
    assert rows is not None
    assert np.abs((rows.G @ v + rows.offset)[:3]).max() <= 1e-12
    assert way.reduced.moved(y)[:6] + way.reduced.phi[:2].ravel() == pytest.approx(problem.moved(v) + problem.phi.ravel())
    # the unknowns of softness and motors are no part of v, so they start at zero: without them y comes back
    without = Reduction(replace(problem, rows=make_rows(rows.G[:3], rows.offset[:3])))
    y = rng.standard_normal(without.reduced.n)
    assert without.shorten(without.expand(y, np.zeros((2, 3)))[0], np.zeros((2, 3))) == pytest.approx(y, abs=1e-12)


def test_all_velocities_of_a_node_are_joined_together_and_others_stay_nodes() -> None:
    problem = make_problem(np.eye(12), np.ones(12), np.zeros((0, 12)), np.zeros(0), 0.3, dt=0.1,
                           groups=[Group("soft", 0, 12, "nodes")], rows=make_rows(np.eye(12)[[4]]))  # fmt: skip
    reduced = Reduction(problem).reduced
    assert [(g.name, g.start, g.stop, g.kind) for g in reduced.groups] == [
        ("soft", 0, 9, "nodes"),
        ("joined 0", 9, 11, "generalized"),
    ]


def test_a_robot_that_no_equality_holds_stays_a_tree() -> None:
    problem = two_robots(0)
    held = Reduction(replace(problem, rows=make_rows(np.eye(17)[[8]]))).reduced
    assert [group.parents for group in held.groups] == [PARENTS, None, None]
    limited = Reduction(replace(problem, rows=make_rows(np.eye(17)[[8]], low=0.0))).reduced
    assert limited.groups == problem.groups


def welded_on_the_floor() -> ContactProblem:
    """Two boxes whose axes are the world's, welded, so that each direction is joined by itself; both on the floor."""
    weld = np.hstack([np.eye(6), -np.eye(6)])
    weld[1, 5], weld[1, 11], weld[2, 4], weld[2, 10] = 0.1, 0.1, -0.1, -0.1
    jacobian = np.zeros((6, 12))
    for k in range(2):  # a corner of each on the floor, normal z first
        jacobian[3 * k : 3 * k + 3, 6 * k : 6 * k + 6] = [
            [0, 0, 1, 0.1, -0.1, 0],
            [1, 0, 0, 0, 0.1, -0.1],
            [0, 1, 0, -0.1, 0, 0.1],
        ]
    return make_problem(
        np.diag([1.0, 1.0, 1.0, 0.01, 0.01, 0.01] * 2), [0.3, 0, -1.0, 0, 0, 0] * 2, jacobian, np.zeros(2), 0.3, dt=0.1,
        groups=[Group("a", 0, 6, "generalized"), Group("b", 6, 12, "generalized")], rows=make_rows(weld),
    )  # fmt: skip


def test_all_velocities_of_a_body_are_joined_together() -> None:
    """Else contacts of a body would act on many groups, which COND refuses; so `auto` ended runs of boxes that are welded."""
    problem = welded_on_the_floor()
    reduced = Reduction(problem).reduced
    assert [(g.start, g.stop, g.kind) for g in reduced.groups] == [(0, 6, "generalized")]
    for name in ("cond", "auto", "exact"):
        answer = make_solver(name, tolerance=1e-9).solve(problem)
        assert answer.converged, answer.message
        assert answer.v == pytest.approx(make_solver("exact").solve(problem).v, abs=1e-7)


def test_auto_asks_another_solver_where_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contact on three bodies, which COND does not take, as what was picked and as what goes on."""
    jacobian = np.zeros((3, 9))
    jacobian[0, [2, 5, 8]] = jacobian[1, [0, 3, 6]] = jacobian[2, [1, 4, 7]] = 1.0
    problem = make_problem(
        np.eye(9), [0.1, 0, -1.0] * 3, jacobian, np.zeros(1), 0.3, dt=0.1,
        groups=[Group(name, 3 * k, 3 * k + 3, "generalized") for k, name in enumerate("abc")],
    )  # fmt: skip
    with pytest.raises(ContactError, match="acts on three bodies"):
        make_solver("cond").solve(problem)
    for pick in ("cond", "cond-newton"):
        monkeypatch.setattr(Auto, "_pick", lambda *_, pick=pick: pick)
        answer = make_solver("auto").solve(problem)
        assert answer.converged and answer.details["picked"] == "exact", answer.message
    monkeypatch.setattr(Auto, "_pick", lambda *_: "exact")
    solver = make_solver("auto")
    for one_of in (Exact, Canal):
        monkeypatch.setattr(one_of, "solve", lambda self, one, start: replace(answer, status="stopped at the limit"))
    assert solver.solve(problem).status == "stopped at the limit"


def test_a_warm_start_from_the_answer_needs_one_iteration() -> None:
    problem = ring(1.0)
    cold = make_solver("pgs", tolerance=1e-6).solve(problem)
    warm = make_solver("pgs", tolerance=1e-6).solve(problem, WarmStart(cold.v, cold.lam, cold.row_forces))
    assert warm.iterations == 1 < cold.iterations
    motor = bars(low=-2.0, high=2.0).problem()
    cold = make_solver("pgs", tolerance=1e-6).solve(motor)
    warm = make_solver("pgs", tolerance=1e-6).solve(motor, WarmStart(cold.v, cold.lam, cold.row_forces))
    assert warm.iterations == 1 and warm.row_forces == pytest.approx(cold.row_forces)


def test_what_is_held_fast_stands_still() -> None:
    made = Assembly()
    body = made.box(1.0, (0.1, 0.1, 0.1), (0.0, 0.0, 0.05))
    made.join(body, WORLD, (0.0, 0.0, 0.0), "weld")
    made.corners(body, WORLD, (0.1, 0.1), np.zeros(3))
    found = make_solver("exact").solve(made.problem())
    assert found.converged and not found.v.any()
    assert np.abs(found.row_forces).max() == pytest.approx(GRAVITY)


def test_a_function_of_a_user_meets_joints_eliminated() -> None:
    problem = ring(1.0)
    local = condense(problem)
    assert local.n_contacts == 32
    exact = make_solver("exact", tolerance=1e-10).solve(problem)
    assert local.contact_velocity(exact.lam) == pytest.approx(problem.moved(exact.v).reshape(-1, 3), abs=1e-9)


# ---------------------------------------------------------------------- the yardstick


def test_the_yardstick_sees_each_wrong_force_and_velocity() -> None:
    problem = bars(low=-2.0, high=2.0).problem()
    found = make_solver("exact").solve(problem)
    good = measure(problem, found.v, found.lam, row_forces=found.row_forces)
    assert max(good.row_residual, good.dynamics_residual, good.balance) <= 1e-12
    force = found.row_forces.copy()
    force[-1] = 2.5
    assert row_residual(problem, found.v, force) > 0.05
    assert measure(problem, found.v, found.lam, row_forces=force).dynamics_residual > 0.01
    assert row_residual(problem, found.v + np.eye(6)[0] * 0.01, found.row_forces) > 0.01
    with pytest.raises(ContactError, match="6 rows; give one force for each"):
        measure(problem, found.v, found.lam)


def test_a_residual_of_rows_does_not_depend_on_units() -> None:
    problem = bars().problem()
    rows = problem.rows
    assert rows is not None
    v, force = np.random.default_rng(0).standard_normal(problem.n), np.random.default_rng(1).standard_normal(rows.n_rows)
    scale = np.logspace(-3, 3, rows.n_rows)
    scaled = Rows(sp.csr_matrix(sp.diags(scale) @ rows.G), scale * rows.offset, rows.low, rows.high, rows.softness, rows.vector)
    same = row_residual(replace(problem, rows=scaled), v, force / scale)
    assert same == pytest.approx(row_residual(problem, v, force), rel=1e-12)


# ---------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: make_rows(np.eye(2), [1.0, 2.0, 3.0]), "offset of the rows has shape"),
        (lambda: make_rows(np.eye(2), [1.0, np.nan]), "offset of the rows holds nan at entry 1"),
        (lambda: make_rows(np.eye(2), low=[0.0, 2.0], high=1.0), "row 1 has the bounds 2.0 and 1.0"),
        (lambda: make_rows(np.eye(2), low=np.inf), "row 0 has the bounds inf and inf"),
        (lambda: make_rows(np.eye(2), softness=-1.0), "softness of row 0 is -1.0"),
        (lambda: make_rows(np.eye(2), vector=[1, 1]), "each at most the number of its row"),
        (lambda: make_problem(np.eye(3), np.ones(3), np.zeros((0, 3)), np.zeros(0), 0.3, dt=1.0, rows=make_rows(np.eye(2))),
         "needs 3 columns"),
    ],
)  # fmt: skip
def test_wrong_rows_are_a_sentence(make, said: str) -> None:
    with pytest.raises(ContactError, match=said):
        make()


def test_a_solver_of_rods_alone_says_what_it_lacks() -> None:
    with pytest.raises(ContactError, match="rods alone"):
        make_solver("banded").solve(ring(1.0))


@pytest.mark.parametrize("solver", ["auto", "exact", "canal", "pgs", "apgd", "ccs", "admm", "subadmm"])
@pytest.mark.parametrize("bound", [1e6, 1e9, 1e12])
def test_bounds_that_do_not_act_are_as_none(solver: str, bound: float) -> None:
    """A motor that needs 47 N was not driven where it might have given a million: that was the scale of all."""
    A = np.array([[100.0, 10.0, 0.0], [10.0, 100.0, 5.0], [0.0, 5.0, 100.0]])
    G, J = np.array([[1.0, 0.3, 0.2], [0.0, 1.0, 0.0]]), np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])

    def solved(most: float) -> Solution:
        rows = make_rows(G, [-0.5, -0.5], low=[-most, -most], high=[most, 3.0])  # the second motor gives its 3 N
        problem = make_problem(A, np.array([1.0, 0.0, -9.81]), J, np.zeros(1), 0.5, dt=0.01, rows=rows)
        return make_solver(solver, tolerance=1e-8).solve(problem)

    found, wanted = solved(bound), solved(np.inf)
    assert found.converged and wanted.converged
    np.testing.assert_allclose(found.row_forces, wanted.row_forces, rtol=1e-6)
    np.testing.assert_allclose(found.lam, wanted.lam, rtol=1e-5, atol=1e-6)
    assert found.row_forces[1] == pytest.approx(3.0) and 30.0 < found.row_forces[0] < 60.0


class Counting:
    """APGD that stops after three iterations and counts how often it is asked."""

    def __init__(self) -> None:
        self.solver = make_solver("apgd", tolerance=1e-12, max_iterations=3)
        self.options, self.asked = self.solver.options, 0

    @with_rows.takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        self.asked += 1
        return self.solver.solve(problem, warm_start)


@pytest.mark.parametrize(("bound", "other"), [(100.0, False), (1e9, True)])
def test_bounds_that_are_not_wide_cause_no_other_attempt(bound: float, other: bool) -> None:
    """A solver that was told to stop early stops: it is not asked again without the bounds of ordinary motors."""
    A = np.array([[100.0, 10.0, 0.0], [10.0, 100.0, 5.0], [0.0, 5.0, 100.0]])
    rows = make_rows(np.array([[1.0, 0.3, 0.2]]), -0.5, low=-bound, high=bound)
    problem = make_problem(A, np.array([1.0, 0.0, -9.81]), np.eye(3)[[2, 0, 1]], np.zeros(1), 0.5, dt=0.01, rows=rows)
    solver = Counting()
    assert not solver.solve(problem).converged and (solver.asked > 1) == other


class Rough:
    """A solver whose velocities are off by its tolerance times the largest: all that its own law is relative to."""

    def __init__(self, options: ExactOptions) -> None:
        self.options = options

    @with_rows.takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        found = Exact(ExactOptions(tolerance=1e-13)).solve(problem, warm_start)
        return replace(found, v=found.v + 0.5 * self.options.tolerance * np.abs(found.v).max(), residuals=None)


def test_rows_of_a_slow_joint_beside_fast_bodies_are_sharpened_to_what_they_need() -> None:
    """A light motor that turns at 1e-5 m/s and a block that slides at 10 m/s: rows ask for a millionth of the tolerance."""
    A, b = np.diag([1.0, 1.0, 1.0, 1e-6]), np.array([10.0, 0.0, -0.1, 0.0])
    rows = make_rows(np.array([[0.0, 0.0, 0.0, 1.0]]), -1e-5, low=-1e-9, high=1e-9)
    groups = [Group("block", 0, 3, "nodes"), Group("motor", 3, 4, "generalized")]
    problem = make_problem(A, b, np.eye(4)[[2, 0, 1]], np.zeros((1, 3)), [0.0], dt=0.01, groups=groups, rows=rows)
    found = Rough(ExactOptions(tolerance=1e-6)).solve(problem)
    assert found.converged, found.message
    assert row_residual(problem, found.v, found.row_forces) <= 1e-6 and found.v[3] == pytest.approx(1e-5, rel=1e-5)
