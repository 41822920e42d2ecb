"""Stage contact: the yardstick on hand-made answers, and the projections on the friction cone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from full_sets import CHECKERS, checker
from hypothesis import given, settings, strategies as st
from slow_twins import (
    body_between_nodes,
    natural_map_residual,
    nodes_on_floor,
    project_cones,
    project_strict as slow_project_strict,
    random_frame,
    random_spd,
)

from contact import ContactProblem, Group, make_problem, measure, metrics as m
from contact.cone import project_cone, project_strict
from contact.jacobian_kernels import hush, is_slower
from contact.problem import force_scales
from contact.rows import make_rows

KINDS = ("open", "stick", "slip")


def exact_case(
    rng: np.random.Generator, kinds: tuple[str, ...] = KINDS * 2, *, n_nodes: int = 8
) -> tuple[ContactProblem, np.ndarray, np.ndarray]:
    """A problem made backwards from an answer with open, sticking and sliding contacts on its first nodes."""
    n, nc = 3 * n_nodes, len(kinds)
    A = random_spd(rng, n)
    J = np.zeros((3 * nc, n))
    u, lam = np.zeros((nc, 3)), np.zeros((nc, 3))
    friction = rng.uniform(0.2, 1.0, nc)
    for i, kind in enumerate(kinds):
        J[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = random_frame(rng)
        direction = rng.standard_normal(2)
        direction /= np.linalg.norm(direction)
        if kind == "open":
            u[i] = [rng.uniform(0.1, 1.0), *rng.standard_normal(2)]
            continue
        lam[i, 0] = rng.uniform(0.5, 3.0)
        if kind == "stick":
            lam[i, 1:] = 0.7 * friction[i] * lam[i, 0] * direction
        else:
            u[i, 1:] = rng.uniform(0.1, 1.0) * direction
            lam[i, 1:] = -friction[i] * lam[i, 0] * direction
    v = rng.standard_normal(n)
    b = A @ v - J.T @ lam.ravel()
    phi = u - (J @ v).reshape(-1, 3)
    return make_problem(A, b, J, phi, friction, dt=0.01), v, lam


def random_pair(rng: np.random.Generator) -> tuple[ContactProblem, np.ndarray, np.ndarray]:
    """Soft nodes against a rigid body with a velocity and forces that solve nothing."""
    problem = body_between_nodes(rng, 6, 5, inertia=3.0)
    return problem, rng.standard_normal(problem.n), rng.standard_normal((5, 3))


# ---------------------------------------------------------------------- exact answers


@pytest.mark.parametrize("kinds", [("open",), ("stick",), ("slip",), KINDS * 2])
def test_all_metrics_vanish_at_an_exact_answer(kinds: tuple[str, ...]) -> None:
    for seed in range(5):
        problem, v, lam = exact_case(np.random.default_rng(seed), kinds)
        found = measure(problem, v, lam).as_dict()
        for name, value in found.items():
            assert abs(value) < 1e-13, f"{name} = {value}"


def test_measure_returns_each_metric_and_takes_flat_forces() -> None:
    problem, v, lam = random_pair(np.random.default_rng(0))
    found = measure(problem, v, lam.ravel()).as_dict()
    assert found == measure(problem, v, lam).as_dict()
    u, mu = m.contact_velocity(problem, v), problem.friction
    law = m.measure_law(u, lam, m.natural_map_scale(problem), mu)
    assert found == {
        "dynamics_residual": m.dynamics_residual(problem, v, lam),
        "dynamics_residual_plain": m.dynamics_residual_plain(problem, v, lam),
        "contact_residual": m.contact_residual(problem, v, lam),
        "cone_violation": max((np.hypot(lam[:, 1], lam[:, 2]) - mu * lam[:, 0]).max(), -lam[:, 0].min()),
        "complementarity": abs(u[:, 0] * lam[:, 0]).max(),
        "penetration_velocity": (-u[:, 0]).max(),
        "slip_alignment": law.slip_alignment,
        "balance": m.balance(problem, v, lam),
        "row_residual": 0.0,
    }
    assert found == law.as_dict() | {
        name: found[name] for name in ("dynamics_residual", "dynamics_residual_plain", "balance", "row_residual")
    }
    assert len(set(found.values())) == 9 and sorted(found.values())[1] > 1e-3  # none is a copy of another, none is zero here


def test_what_is_known_is_not_computed_again() -> None:
    problem, v, lam = random_pair(np.random.default_rng(1))
    plain = measure(problem, v, lam)
    assert measure(problem, v, lam, known=m.residuals(problem, v, lam)) == plain
    law = m.law_arguments(problem, v, lam)
    assert measure(problem, v, lam, law=law) == plain
    assert measure(problem, v, lam, law=law._replace(u=law.u + 1.0)) != plain
    told = measure(problem, v, lam, known=m.Residuals(1.0, 2.0, 3.0, 4.0))
    assert told == replace(plain, dynamics_residual=1.0, contact_residual=2.0, balance=3.0, dynamics_residual_plain=4.0)


def test_without_contacts_only_the_dynamics_count() -> None:
    A, v = np.diag([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 1.0])
    problem = make_problem(A, np.array([1.0, 2.0, 4.0]), np.zeros((0, 3)), np.zeros(0), 0.3, dt=0.01)
    assert set(measure(problem, v, np.zeros((0, 3))).as_dict().values()) == {0.0}
    moved = measure(problem, v + np.array([0.5, 0.0, 0.0]), np.zeros((0, 3))).as_dict()
    # r = (0.5, 0, 0), A v = (1.5, 2, 4); in the norm sum x^2/A_ii: 0.5 / sqrt(2.25 + 2 + 4)
    assert moved.pop("dynamics_residual") == pytest.approx(0.5 / math.sqrt(8.25), rel=1e-14)
    assert moved.pop("dynamics_residual_plain") == pytest.approx(0.5 / math.sqrt(22.25), rel=1e-14)
    assert moved.pop("balance") == pytest.approx(0.5 / math.sqrt(21.0), rel=1e-14)
    assert set(moved.values()) == {0.0}


# ---------------------------------------------------------------------- one formula each


def test_contact_velocity_by_hand() -> None:
    J = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    problem = make_problem(np.eye(3), np.zeros(3), J, np.array([[0.5, 0.25, 0.0]]), 0.4, dt=0.01)
    assert np.array_equal(m.contact_velocity(problem, np.array([1.0, 2.0, 3.0])), [[3.5, 1.25, 2.0]])
    assert np.array_equal(problem.phi, [[0.5, 0.25, 0.0]])


@pytest.mark.parametrize("seed", range(4))
def test_dynamics_residual_is_its_formula(seed: int) -> None:
    problem, v, lam = random_pair(np.random.default_rng(seed))
    A, J = problem.A.toarray(), problem.J.toarray()

    def norm(r: np.ndarray) -> float:
        return math.sqrt(sum(r[i] ** 2 / A[i, i] for i in range(len(r))))

    terms = A @ v, problem.b, J.T @ lam.ravel()
    expected = norm(terms[0] - terms[1] - terms[2]) / max(map(norm, terms))
    assert m.dynamics_residual(problem, v, lam) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_contact_residual_is_the_natural_map(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem, v, lam = random_pair(rng)
    for scale in (1e-3, 1.0, 1e3):  # forces below, about and above rho u: every branch of the projection
        expected = natural_map_residual(problem, v, scale * lam)
        assert m.contact_residual(problem, v, scale * lam) == pytest.approx(expected, rel=1e-12)


def plane_problem(rng: np.random.Generator) -> tuple[ContactProblem, np.ndarray, np.ndarray]:
    """Plane bodies that touch, as a problem in space: the second tangents have zero rows. The last contact touches nothing."""
    J = rng.standard_normal((5, 3, 9)) * np.array([1.0, 1.0, 0.0])[:, None]
    J[-1] = 0.0
    phi = rng.standard_normal((5, 3)) * [1.0, 1.0, 0.0]
    phi[-1, 0] = abs(phi[-1, 0])
    problem = make_problem(random_spd(rng, 9), rng.standard_normal(9), J.reshape(15, 9), phi, rng.uniform(0, 1, 5), dt=0.01)
    return problem, rng.standard_normal(9), rng.standard_normal((5, 3)) * [1.0, 1.0, 0.0]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("plane", [False, True])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])  # forces below, about and above rho u
@pytest.mark.parametrize("judge", CHECKERS)
def test_the_independent_checker_agrees(judge: str, plane: bool, seed: int, scale: float) -> None:
    check_fc = checker(judge)
    problem, v, lam = (plane_problem if plane else random_pair)(np.random.default_rng(seed))
    lam *= scale
    dim = 2 if plane else 3
    A, H = problem.A.tocoo(), problem.J.reshape(-1, 3 * problem.n).tocsr()[:, : dim * problem.n].reshape(-1, problem.n).T.tocoo()
    arrays = {
        "M": check_fc.matrix(*A.shape, A.row, A.col, A.data),
        "H": check_fc.matrix(*H.shape, H.row, H.col, H.data),
        "f": problem.b,
        "w": problem.phi[:, :dim].ravel(),
        "mu": problem.friction,
        "d": dim,
        "kind": "global",
    }
    found, theirs = measure(problem, v, lam), check_fc.check(arrays, lam[:, :dim].ravel(), v)
    assert found.contact_residual == pytest.approx(theirs["natmap_si"], rel=1e-12)
    assert found.dynamics_residual_plain == pytest.approx(theirs["dyn"], rel=1e-12)
    assert found.penetration_velocity == pytest.approx(theirs["pen_vel"], rel=1e-12)
    assert found.cone_violation == pytest.approx(max(theirs["cone"], theirs["rn_neg"]), rel=1e-12)


def test_force_scales_by_hand() -> None:
    rows = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [2.0, 0.0, 4.0]])
    assert np.array_equal(force_scales(rows), [3 / 6.0, 3 / 6.0, 3 / 6.0])
    rows[0, 0] = 3.0  # traces 8, none, 6: the second takes their mean 7
    assert np.array_equal(force_scales(rows), [3 / 8.0, 3 / 7.0, 3 / 6.0])
    assert np.array_equal(force_scales(rows * [1.0, 1.0, 0.0]), [2 / 5.0, 2 / 3.5, 1 / 2.0])  # plane; the last has no tangent
    assert np.array_equal(force_scales(np.zeros((2, 3))), [1.0, 1.0])
    assert force_scales(np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize("seed", range(3))
def test_the_plain_residual_is_its_formula(seed: int) -> None:
    problem, v, lam = random_pair(np.random.default_rng(seed))
    terms = problem.A.toarray() @ v, problem.b, problem.J.toarray().T @ lam.ravel()
    expected = np.linalg.norm(terms[0] - terms[1] - terms[2]) / max(map(np.linalg.norm, terms))
    assert m.dynamics_residual_plain(problem, v, lam) == pytest.approx(expected, rel=1e-13)


def test_wrong_answers_of_the_law_are_seen() -> None:
    """One contact on a unit mass: too little friction, wrong direction, adhesion, needless force, and the convex law."""
    frame = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    problem = make_problem(np.eye(3), np.array([2.0, 0, -1.0]), frame, np.zeros(1), 0.5, dt=0.01)
    right = np.array([[1.0, -0.5, 0.0]])
    assert m.contact_residual(problem, np.array([1.5, 0, 0]), right) < 1e-15
    for wrong in ([1.0, -0.4, 0.0], [1.0, 0.0, -0.5], [0.9, -0.45, 0.0], [1.5, -0.75, 0.0], [-0.5, 0.0, 0.0]):
        lam = np.array([wrong])
        v = problem.b + problem.J.T @ lam.ravel()
        assert m.dynamics_residual(problem, v, lam) < 1e-15
        assert m.contact_residual(problem, v, lam) > 1e-2
    # convex relaxation (papers/001 eq. 28): u_n = mu |u_t|
    normal = (1.0 + 0.5 * 2.0) / (1.0 + 0.25)
    lam = np.array([[normal, -0.5 * normal, 0.0]])
    v = problem.b + problem.J.T @ lam.ravel()
    assert v[2] == pytest.approx(0.5 * v[0]) and m.contact_residual(problem, v, lam) > 1e-2


@pytest.mark.parametrize(
    ("lam", "expected"),
    [
        ([[1.0, 0.3, 0.4]], 0.0),  # on the surface of the cone of 0.5
        ([[1.0, 0.6, 0.8]], 0.5),
        ([[-2.0, 0.0, 0.0]], 2.0),  # |lam_t| - mu lam_n = 1 would be less
        ([[-1.0, 3.0, 0.0]], 3.5),
        ([[1.0, 0.0, 0.0], [0.0, 0.0, 0.25]], 0.25),
    ],
)
def test_cone_violation_by_hand(lam: list, expected: float) -> None:
    nc = len(lam)
    problem = make_problem(np.eye(3 * nc), np.zeros(3 * nc), np.eye(3 * nc), np.zeros(nc), 0.5, dt=0.01)
    assert measure(problem, np.zeros(3 * nc), np.array(lam)).cone_violation == pytest.approx(expected, abs=1e-15)


def test_complementarity_and_penetration_by_hand() -> None:
    phi = np.array([[0.5, 9.0, 9.0], [-0.25, 9.0, 9.0], [-2.0, 0.0, 0.0]])
    problem = make_problem(np.eye(9), np.zeros(9), np.eye(9), phi, 0.5, dt=0.01)
    lam = np.array([[3.0, 7.0, 0.0], [-8.0, 0.0, 7.0], [0.5, 0.0, 0.0]])
    assert measure(problem, np.zeros(9), lam).complementarity == 2.0
    assert measure(problem, np.zeros(9), lam).penetration_velocity == 2.0
    v = np.zeros(9)
    v[[3, 6]] = 1.0, 5.0  # normal rows
    assert measure(problem, v, lam).penetration_velocity == 0.0
    assert measure(problem, v, lam).complementarity == 6.0


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.0, math.pi])
def test_slip_alignment_is_one_minus_the_cosine(angle: float) -> None:
    problem, v, lam = exact_case(np.random.default_rng(1), ("stick", "slip", "open", "slip"))
    c, s = math.cos(angle), math.sin(angle)
    lam[3, 1:] = [c * lam[3, 1] - s * lam[3, 2], s * lam[3, 1] + c * lam[3, 2]]
    assert measure(problem, v, lam).slip_alignment == pytest.approx(1.0 - c, abs=1e-14)


def test_slip_alignment_leaves_out_what_barely_slides_or_presses() -> None:
    phi = np.array([[0.0, 1.0, 0.0], [0.0, 1e-7, 0.0], [0.0, 1.0, 0.0]])
    problem = make_problem(np.eye(9), np.zeros(9), np.eye(9), phi, 0.5, dt=0.01)
    lam = np.array([[1.0, -0.5, 0.0], [1.0, 0.5, 0.0], [1e-7, 5e-8, 0.0]])
    assert measure(problem, np.zeros(9), lam).slip_alignment == 0.0
    phi = phi * [[1.0], [20.0], [1.0]]  # 2e-6 of the largest counts
    problem = make_problem(np.eye(9), np.zeros(9), np.eye(9), phi, 0.5, dt=0.01)
    assert measure(problem, np.zeros(9), lam).slip_alignment == 2.0
    lam[1] = 0.0
    lam[2] *= 20.0
    assert measure(problem, np.zeros(9), lam).slip_alignment == 2.0


@pytest.mark.parametrize("seed", range(4))
def test_balance_is_a_plain_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = sp.block_diag([random_spd(rng, 6), random_spd(rng, 7), random_spd(rng, 3)])
    J = np.zeros((9, 16))
    J[:3, :3], J[:3, 6:13] = random_frame(rng), rng.standard_normal((3, 7))
    J[3:6, 3:6] = random_frame(rng)
    J[6:, 13:] = random_frame(rng)
    groups = (Group("soft", 0, 6, "nodes"), Group("body", 6, 13, "generalized"), Group("point", 13, 16, "nodes"))
    b, v, lam = rng.standard_normal(16), rng.standard_normal(16), rng.standard_normal((3, 3))
    problem = make_problem(A, b, J, np.zeros(3), 0.5, dt=0.01, groups=groups)
    r = problem.A @ v - b - J.T @ lam.ravel()
    force, size = J.T @ lam.ravel(), np.linalg.norm(lam, axis=1)
    soft = np.linalg.norm(r[:3] + r[3:6]) / max(
        np.linalg.norm(force[:3] + force[3:6]), np.linalg.norm(b[:3] + b[3:6]), 0.01 * (size[0] + size[1])
    )
    point = np.linalg.norm(r[13:]) / max(np.linalg.norm(force[13:]), np.linalg.norm(b[13:]))
    d = problem.A.diagonal()[6:13]
    parts = [problem.A @ v, b, J.T @ lam.ravel()]
    body = math.sqrt((r[6:13] ** 2 / d).sum()) / max(math.sqrt((p[6:13] ** 2 / d).sum()) for p in parts)
    assert m.balance(problem, v, lam) == pytest.approx(max(soft, body, point), rel=1e-13)
    # each group alone, by making the others exact
    for rows, expected in ((slice(0, 6), soft), (slice(6, 13), body), (slice(13, 16), point)):
        others = np.ones(16, bool)
        others[rows] = False
        exact = problem.b + np.where(others, r, 0.0)
        alone = make_problem(A, exact, J, np.zeros(3), 0.5, dt=0.01, groups=groups)
        assert m.balance(alone, v, lam) == pytest.approx(expected, rel=1e-12)


def test_balance_sees_only_forces_that_do_not_cancel() -> None:
    """An error of the elastic rows that sums to zero over the nodes leaves the balance exact; a common push does not."""
    problem, v, lam = exact_case(np.random.default_rng(2))
    assert m.balance(problem, v, lam) < 1e-14
    error = np.zeros(problem.n)
    error[:6] = [1.0, -2.0, 3.0, -1.0, 2.0, -3.0]
    cancelling = make_problem(problem.A, problem.b + error, problem.J, problem.phi, problem.friction, dt=0.01)
    assert m.balance(cancelling, v, lam) < 1e-14 and m.dynamics_residual(cancelling, v, lam) > 1e-3
    error[3:6] = 0.0
    pushed = make_problem(problem.A, problem.b + error, problem.J, problem.phi, problem.friction, dt=0.01)
    force = (problem.J.T @ lam.ravel()).reshape(-1, 3).sum(axis=0)
    scale = max(np.linalg.norm(force), np.linalg.norm((problem.b + error).reshape(-1, 3).sum(axis=0)))
    assert m.balance(pushed, v, lam) == pytest.approx(math.sqrt(14.0) / scale, rel=1e-12)


def squeezed(force: float, b: np.ndarray) -> tuple[ContactProblem, np.ndarray, np.ndarray]:
    """Two nodes pressed against each other by two fingers, 2 x force in sum and nothing net."""
    J = np.zeros((6, 6))
    J[:3, :3], J[3:, 3:] = np.eye(3), -np.eye(3)
    problem = make_problem(np.eye(6), b, J, np.zeros(2), 0.5, dt=0.01)
    return problem, np.zeros(6), np.array([[force, 0, 0], [force, 0, 0]])


def test_balance_of_a_squeezed_body_is_relative_to_its_net_force() -> None:
    """Fingers that press with 2 x 50 N do not hide an error of 0.1 N: the scale is weight, or a hundredth of the pressing."""
    error = np.array([0.0, 0.1, 0.0, 0.0, 0.0, 0.0])
    problem, v, lam = squeezed(50.0, error)
    assert m.balance(problem, v, lam) == pytest.approx(0.1 / 1.0, rel=1e-12)  # 0.01 * 100 N
    problem, v, lam = squeezed(50.0, np.array([4.0, 0, 0, 0, 0, 0]))
    v[0] = 3.8  # A v - b = -0.2 beside |B| = 4 N
    assert m.balance(problem, v, lam) == pytest.approx(0.2 / 4.0, rel=1e-12)
    lam[1, 0] = 40.0  # F = 10 N net
    assert m.balance(problem, v, lam) == pytest.approx(10.2 / 10.0, rel=1e-12)


def test_balance_is_not_relative_to_what_given_velocities_put_into_b() -> None:
    """Nodes with prescribed velocities pull at the others by 50 N in b; the body's own 4 N are the scale."""
    given = np.array([50.0, 0, 0, 0, 0, 0])
    problem, v, lam = squeezed(0.0, given + np.array([4.0, 0, 0, 0, 0, 0]))
    v[0] = 53.8
    assert m.balance(problem, v, lam) == pytest.approx(0.2 / 54.0, rel=1e-12)
    assert m.balance(replace(problem, b_prescribed=given), v, lam) == pytest.approx(0.2 / 4.0, rel=1e-12)


def test_balance_ignores_rounding_of_large_forces_that_cancel() -> None:
    """b of a stiff or fast body may be huge on its nodes and nothing in sum: no scale is below 1e-6 of it."""
    b = np.array([2e6, 0, 0, -2e6, 0, 0])
    problem, v, lam = squeezed(0.0, b)
    v[1] = 1e-3
    assert m.balance(problem, v, lam) == pytest.approx(1e-3 / 4.0, rel=1e-12)


# ---------------------------------------------------------------------- units


@pytest.mark.parametrize("seed", range(4))
def test_relative_residuals_do_not_depend_on_units(seed: int) -> None:
    """A unit s times larger on some rows of v: A -> S A S, b -> S b, J -> J S, v -> v / s."""
    rng = np.random.default_rng(seed)
    problem, v, lam = random_pair(rng)
    soft = problem.groups[0].stop
    s = np.ones(problem.n)
    s[soft:] = 10.0 ** rng.uniform(-4, 4, problem.n - soft)  # rows of a group of nodes share one unit
    S = sp.diags(s)
    scaled = make_problem(
        S @ problem.A @ S,
        S @ problem.b,
        problem.J @ S,
        problem.phi,
        problem.friction,
        dt=problem.dt,
        groups=problem.groups,
    )
    before, after = measure(problem, v, lam).as_dict(), measure(scaled, v / s, lam).as_dict()
    assert (
        abs(after.pop("dynamics_residual_plain") / before.pop("dynamics_residual_plain") - 1.0) > 1e-3
    )  # the one that mixes units
    for name, value in before.items():
        assert after[name] == pytest.approx(value, rel=1e-10), name


@pytest.mark.parametrize(("force", "length"), [(1e-3, 1.0), (1.0, 1e3), (1e6, 1e-3)])
def test_relative_residuals_do_not_depend_on_the_units_of_force_and_length(force: float, length: float) -> None:
    problem, v, lam = random_pair(np.random.default_rng(9))
    scaled = make_problem(
        problem.A * (force / length),
        problem.b * force,
        problem.J,
        problem.phi * length,
        problem.friction,
        dt=problem.dt,
        groups=problem.groups,
    )
    before, after = measure(problem, v, lam), measure(scaled, v * length, lam * force)
    for name, factor in (
        ("dynamics_residual", 1.0),
        ("dynamics_residual_plain", 1.0),
        ("contact_residual", 1.0),
        ("slip_alignment", 1.0),
        ("balance", 1.0),
        ("cone_violation", force),
        ("complementarity", force * length),
        ("penetration_velocity", length),
    ):
        assert getattr(after, name) == pytest.approx(factor * getattr(before, name), rel=1e-12), name


# ---------------------------------------------------------------------- projections

coordinate = st.floats(-1e3, 1e3, allow_nan=False, allow_subnormal=False)
coefficient = st.one_of(st.just(0.0), st.floats(1e-3, 5.0))
many = settings(max_examples=300, deadline=None, database=None, derandomize=True)


def test_project_cones_against_brute_force() -> None:
    """No point of a fine grid on the cone's boundary or inside lies closer."""
    rng = np.random.default_rng(0)
    lam, friction = 2.0 * rng.standard_normal((200, 3)), rng.uniform(0.0, 1.5, 200)
    friction[:20] = 0.0
    projected = project_cones(lam, friction)
    normal = np.linspace(0.0, 8.0, 161)[:, None, None]
    turn = np.linspace(0.0, 2 * np.pi, 19)[None, :, None]
    part = np.linspace(0.0, 1.0, 81)[None, None, :]
    for x, mu, p in zip(lam, friction, projected, strict=True):
        radius = part * mu * normal
        angle = turn + math.atan2(x[2], x[1])  # the plane of x is among those tried
        distance = np.sqrt((normal - x[0]) ** 2 + (radius * np.cos(angle) - x[1]) ** 2 + (radius * np.sin(angle) - x[2]) ** 2)
        ours = np.linalg.norm(x - p)
        assert distance.min() - 0.08 <= ours <= distance.min() + 1e-12  # 0.08: half a cell of the grid
        assert np.linalg.norm(p[1:]) <= mu * p[0] + 1e-12


@many
@given(st.tuples(coordinate, coordinate, coordinate), coefficient, st.floats(0.0, 2e3), st.floats(0.0, 6.3), coefficient)
def test_project_cone_is_the_closest_point(
    x: tuple[float, float, float], mu: float, normal: float, turn: float, part: float
) -> None:
    """Variational inequality (x - p).(y - p) <= 0 for every y of the cone, which holds for the projection alone."""
    p = np.array(project_cone(*x, mu))
    size = 1.0 + float(np.linalg.norm(x))
    assert math.hypot(p[1], p[2]) <= mu * p[0] + 1e-12 * size and p[0] >= 0.0
    radius = min(part, 1.0) * mu * normal
    y = np.array([normal, radius * math.cos(turn), radius * math.sin(turn)])
    assert (np.array(x) - p) @ (y - p) <= 1e-11 * size * (size + normal * (1 + mu))
    np.testing.assert_allclose(project_cones(np.array([x]), np.array([mu]))[0], p, rtol=1e-13, atol=1e-13 * size)


@many
@given(st.tuples(coordinate, coordinate, coordinate), coefficient)
def test_project_strict_agrees_with_the_slow_twin(x: tuple[float, float, float], mu: float) -> None:
    p = project_strict(*x, mu)
    np.testing.assert_allclose(p, slow_project_strict(np.array(x), mu), rtol=1e-14, atol=1e-100)


@pytest.mark.parametrize(
    ("x", "mu", "strict", "closest"),
    [
        ((2.0, 0.5, 0.0), 0.5, (2.0, 0.5, 0.0), (2.0, 0.5, 0.0)),  # inside
        ((2.0, 0.6, 0.8), 0.5, (2.0, 0.6, 0.8), (2.0, 0.6, 0.8)),  # on the surface
        ((1.0, 3.0, 4.0), 0.5, (1.0, 0.3, 0.4), (2.8, 0.84, 1.12)),  # edge: n = (1 + 0.5 * 5) / 1.25
        ((0.0, 3.0, 4.0), 0.5, (0.0, 0.0, 0.0), (2.0, 0.6, 0.8)),  # no normal force: the two differ most
        ((-1.0, 1.0, 0.0), 0.5, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),  # polar cone: apex
        ((-0.5, 1.0, 0.0), 0.5, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),  # boundary of the polar cone
        ((0.0, 0.0, 0.0), 0.5, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ((-1.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),  # mu = 0: the polar test must come first
        ((-1.0, 1.0, 0.0), 0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ((2.0, 1.0, 1.0), 0.0, (2.0, 0.0, 0.0), (2.0, 0.0, 0.0)),
        ((2.0, 0.0, 0.0), 0.0, (2.0, 0.0, 0.0), (2.0, 0.0, 0.0)),
    ],
)
def test_each_branch_of_the_projections(x: tuple, mu: float, strict: tuple, closest: tuple) -> None:
    np.testing.assert_allclose(project_strict(*x, mu), strict, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(project_cone(*x, mu), closest, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(project_cones(np.array([x]), np.array([mu]))[0], closest, rtol=1e-15, atol=1e-15)


@many
@given(coordinate, coordinate, coordinate, coefficient)
def test_projecting_twice_changes_nothing(x: float, y: float, z: float, mu: float) -> None:
    for project in (project_strict, project_cone):
        once = project(x, y, z, mu)
        np.testing.assert_allclose(project(*once, mu), once, rtol=1e-12, atol=1e-100)


def test_what_rounding_makes_of_two_bodies_that_fly_side_by_side_is_no_contact() -> None:
    frame, A = random_frame(np.random.default_rng(0)), np.diag(np.repeat([0.3, 0.1], 3))
    v = np.tile([1.0, 2.0, 3.0], 2)
    problem = make_problem(A, A @ v, np.hstack([frame, -frame]), np.zeros((1, 3)), [0.5], dt=0.005)
    apart = v + np.repeat([0.0, 4e-16], 3)  # the last digits of v
    rubs = np.array([[0.0, 1e-17, 0.0]])
    assert np.abs(m.contact_velocity(problem, apart)).max() > 1e-16
    assert m.contact_residual(problem, apart, rubs) == 0.0
    assert m.contact_residual(problem, v + np.repeat([0.0, 1e-12], 3), rubs) > 0.1  # this is motion
    assert m.contact_residual(problem, apart, np.array([[0.0, 1e-9, 0.0]])) > 0.1  # and this a force
    assert m.contact_residual(problem, v, rubs) == 0.0  # no velocity at all
    huge = replace(problem, A=1e155 * problem.A, b=1e155 * problem.b)  # squares of its terms overflow
    assert m.contact_residual(huge, v, np.array([[0.0, 1e145, 0.0]])) > 0.1


@pytest.mark.parametrize("kind, wanted", [("generalized", 0.0), ("nodes", 1.0)])
def test_rounding_is_that_of_a_whole_robot_but_not_of_other_bodies(kind: Any, wanted: float) -> None:
    """A light joint that turns at 1e-16 rad/s in a heavy robot that moves at 1 m/s, and a light point beside a heavy one."""
    A, v = np.diag(np.repeat([10.0, 1e-3], 3)), np.array([1.0, 1.0, 1.0, -1e-16, 0.0, 0.0])
    groups = [Group("all", 0, 6, kind)]
    problem = make_problem(A, A @ v, np.eye(6)[3:], np.zeros((1, 3)), [0.5], dt=0.005, groups=groups)
    assert m.contact_residual(problem, v, np.zeros((1, 3))) == wanted
    held = replace(problem, rows=make_rows(np.eye(6)[3:4], 0.0))
    assert (m.row_residual(held, v, np.zeros(1)) < 1e-8) is (kind == "generalized")


@pytest.mark.parametrize("seed", [0, 1])
def test_what_counts_as_rounding_by_its_formula(seed: int) -> None:
    """The kernels against plain loops, where some velocities are rounding, some forces are not, and some are neither."""
    rng = np.random.default_rng(seed)
    J, sizes, phi = rng.standard_normal((12, 9)), rng.uniform(0.5, 1.0, 9), 0.1 * rng.standard_normal((4, 3))
    J, rho = sp.csr_matrix(J * (rng.random((12, 9)) < 0.5)), rng.uniform(1.0, 9.0, 4)
    reach = (abs(J) @ sizes).reshape(4, 3) + abs(phi)
    u = reach.max(axis=1)[:, None] * [[1e-15], [1e-15], [2e-14], [1.0]] * rng.choice([-1.0, 1.0], (4, 3))
    lam = (rho * reach.max(axis=1))[:, None] * [[1e-15], [2e-14], [1e-15], [1.0]] * np.ones((1, 3))
    wanted_u, wanted_lam = u.copy(), lam.copy()
    wanted_u[0], wanted_lam[0] = 0.0, 0.0
    one, none = np.array([0.0, -1.0]), np.zeros((2, 3))
    assert is_slower(u, lam, one, 1e-12) and not is_slower(u[3:], lam[3:], one, 1e-12)
    assert is_slower(none, lam[:2], one, 1e-12) and not is_slower(none, none, one, 1e-12)
    hush(J.indptr, J.indices, J.data, sizes, phi, rho, 1e-14, u, lam)
    assert np.array_equal(u, wanted_u) and np.array_equal(lam, wanted_lam)


def test_the_balance_may_be_relative_to_a_given_load() -> None:
    """That of COND is what would hold each body at the start, however fast it moves; the other residuals do not know of it."""
    rng = np.random.default_rng(0)
    problem = nodes_on_floor(rng, 6, 4)
    v, lam = rng.standard_normal(18), rng.standard_normal((4, 3))
    plain, loaded = m.residuals(problem, v, lam), m.residuals(problem, v, lam, loads=np.array([1e6]))
    wrong = (problem.A @ v - problem.b - problem.J.T @ lam.ravel()).reshape(-1, 3).sum(axis=0)
    assert loaded.balance == pytest.approx(np.linalg.norm(wrong) / 1e6, rel=1e-12) and plain.balance > 1e3 * loaded.balance
    assert loaded._replace(balance=plain.balance) == plain
