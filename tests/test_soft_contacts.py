"""Stage contact: softness of contacts, by every solver, beside closed forms and W with it on the diagonal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from piles import pile
from random_problems import random_global
from registry import LIMITED
from slow_twins import closest_in_cone, nodes_on_floor

from contact import (
    SOLVERS,
    ContactError,
    ContactProblem,
    NotApplicableError,
    WarmStart,
    condense,
    make_local_problem,
    make_problem,
    make_rows,
    make_solver,
    measure,
    read_fclib,
    write_fclib,
)
from contact.feasibility import closing_contacts
from contact.metrics import contact_residual
from contact.reduction import Reduction

#: Those that solve any problem of contacts with A to their tolerance.
WHOLE = sorted(set(SOLVERS) - LIMITED - {"banded"})
#: Those whose contacts act on two bodies or nodes at most; what is soft is one.
TWO_AT_MOST = ("cond", "cond-newton")


def box(softness: object, push: float = 0.0) -> ContactProblem:
    """A point of 2 kg that falls onto a floor, 1 mm above it, pushed along it; dt 10 ms, friction 0.5."""
    b = np.array([-2.0 * 9.81 + 2.0 * -3.0 / 0.01, push, 0.0])  # weight, and 3 m/s downwards
    J = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return make_problem(200.0 * sp.identity(3), b, J, np.array([0.1]), 0.5, dt=0.01, softness=softness)


def soft_pile(seed: int = 1) -> ContactProblem:
    """Four bodies with 64 contacts, most of them soft, some in their normals alone, some hard."""
    problem, rng = pile(16, seed), np.random.default_rng(seed)
    softness = 10.0 ** rng.uniform(-3, 1, (problem.n_contacts, 3)) / problem.scales[:, None]
    softness[::3, 1:], softness[1::5] = 0.0, 0.0
    return replace(problem, softness=softness)


def by_w(problem: ContactProblem) -> np.ndarray:
    """Forces of a problem with isotropic friction and no rows by its W, made without anything of the package but its solver."""
    J, A = problem.J.toarray(), problem.A.toarray()
    softness = np.zeros((problem.n_contacts, 3)) if problem.softness is None else problem.softness
    W = J @ np.linalg.solve(A, J.T)
    q = J @ np.linalg.solve(A, problem.b) + problem.phi.ravel()
    found = make_solver("exact", tolerance=1e-11).solve_local(
        make_local_problem(0.5 * (W + W.T) + np.diag(softness.ravel()), q, problem.friction)
    )
    assert found.converged, found.message
    return found.lam


@pytest.mark.parametrize("name", WHOLE)
def test_a_point_sinks_by_softness_times_force_and_slides_or_sticks(name: str) -> None:
    normal, tangent = 1e-3, 4e-3
    for push, slides in ((100.0, False), (1500.0, True)):
        problem = box([[normal, tangent, tangent]], push)
        found = make_solver(name, tolerance=1e-9, max_iterations=5000).solve(problem)
        assert found.converged, found.message
        falling = (-2.0 * 9.81 - 600.0) / 200.0 + 0.1  # normal velocity without contact
        pressing = -falling / (1 / 200.0 + normal)
        assert found.lam[0, 0] == pytest.approx(pressing, rel=1e-7)
        assert found.v[0] + 0.1 == pytest.approx(-normal * pressing, rel=1e-7)  # it closes by what it gives way
        held = push / 200.0 / (1 / 200.0 + tangent)
        assert (held > 0.5 * pressing) == slides
        assert -found.lam[0, 1] == pytest.approx(min(held, 0.5 * pressing), rel=1e-7)
        if not slides:  # the point creeps with the force that holds it
            assert found.v[1] == pytest.approx(tangent * held, rel=1e-7)


@pytest.mark.parametrize("name", WHOLE)
def test_every_solver_finds_the_forces_of_w_with_softness_on_its_diagonal(name: str) -> None:
    problem, rng = nodes_on_floor(np.random.default_rng(5), 6, 5), np.random.default_rng(6)
    problem = replace(problem, softness=10.0 ** rng.uniform(-2, 1, (5, 3)) / problem.scales[:, None])
    expected = by_w(problem)
    found = make_solver(name, tolerance=1e-9, max_iterations=20000).solve(problem)
    assert found.converged, found.message
    assert found.lam == pytest.approx(expected, abs=1e-6 * np.abs(expected).max())
    assert np.abs(expected - by_w(replace(problem, softness=None))).max() > 0.1 * np.abs(expected).max()


@pytest.mark.parametrize("name", ("admm", "p-fadmm", "canal", "exact", "apgd", "subadmm", "auto"))
def test_soft_contacts_between_bodies(name: str) -> None:
    problem = soft_pile()
    expected = by_w(problem)
    found = make_solver(name, tolerance=1e-8, max_iterations=20000).solve(problem)
    assert found.converged, found.message
    assert found.lam == pytest.approx(expected, abs=3e-5 * np.abs(expected).max())
    assert contact_residual(problem, found.v, found.lam) <= 1e-8


def test_what_takes_two_bodies_at_most_says_so() -> None:
    for name in TWO_AT_MOST:
        with pytest.raises(NotApplicableError, match="of which what is soft in a contact takes one"):
            make_solver(name).solve(soft_pile())


def test_the_residual_counts_softness() -> None:
    problem = soft_pile()
    hard = make_solver("exact").solve(replace(problem, softness=None))
    soft = make_solver("exact").solve(problem)
    assert hard.converged and soft.converged
    assert contact_residual(problem, hard.v, hard.lam) > 1e-3
    assert measure(problem, soft.v, soft.lam).contact_residual <= 1e-8
    assert problem.softness is not None
    u = problem.moved(hard.v).reshape(-1, 3) + problem.phi + problem.softness * hard.lam
    u[:, 0] += problem.friction * np.linalg.norm(u[:, 1:], axis=1)
    pushed = problem.scales[:, None] * u
    wrong = [lam - closest_in_cone(lam - w, mu) for w, lam, mu in zip(pushed, hard.lam, problem.friction, strict=True)]
    by_hand = np.linalg.norm(wrong) / max(np.linalg.norm(hard.lam), np.linalg.norm(pushed))
    assert contact_residual(problem, hard.v, hard.lam) == pytest.approx(by_hand, rel=1e-9)
    W = problem.J.toarray() @ np.diag(1.0 / problem.diagonal) @ problem.J.toarray().T
    assert problem.compliance.ravel() == pytest.approx(W.diagonal() + problem.softness.ravel(), rel=1e-12)


def test_condensed_problems_have_softness_on_the_diagonal_of_w() -> None:
    for problem in (soft_pile(), replace(random_global(3, anisotropic=True), softness=np.linspace(0.0, 0.3, 12).reshape(4, 3))):
        soft, hard = condense(problem), condense(replace(problem, softness=None))
        assert problem.softness is not None
        stretch = np.column_stack([np.ones(problem.n_contacts), problem.tangent_stretch])
        added = (soft.W - hard.W) - np.diag((stretch**2 * problem.softness).ravel())
        assert np.abs(added).max() <= 1e-12 * np.abs(hard.W).max()
        assert soft.q == pytest.approx(hard.q, abs=1e-12 * np.abs(hard.q).max())


def test_two_coefficients_and_two_tangential_softnesses() -> None:
    """The force of least energy in an elliptic cone, by a fine search of the direction in which one contact slides."""
    softness = np.array([[1e-3, 2e-3, 8e-3]])
    problem = box(softness)
    problem = replace(problem, b=problem.b + np.array([0.0, 900.0, 1100.0]), friction=np.array([[0.5, 0.2]]))
    found = make_solver("exact", tolerance=1e-10).solve(problem)
    assert found.converged, found.message
    give = 1 / 200.0 + softness[0]
    q = problem.b / 200.0 + problem.phi[0]
    normal = -q[0] / give[0]
    # tangential forces minimise lam.W lam / 2 + lam.q over the ellipse: the normal does not couple with them
    angle = np.linspace(0.0, 2 * np.pi, 2_000_001)
    force = normal * np.array([[0.5], [0.2]]) * np.array([np.cos(angle), np.sin(angle)])
    best = int(np.argmin(0.5 * (give[1:, None] * force**2).sum(axis=0) + (q[1:, None] * force).sum(axis=0)))
    assert found.lam[0] == pytest.approx([normal, *force[:, best]], rel=1e-5)


def test_soft_contacts_and_rows_together() -> None:
    """Joints, limits and soft rows beside soft contacts, against the same with each soft contact as a body of its own."""
    rng = np.random.default_rng(8)
    problem = soft_pile(2)
    G = rng.standard_normal((4, problem.n))
    low, high = [-np.inf, -np.inf, 0.0, -2.0], [np.inf, np.inf, np.inf, 2.0]
    rows = make_rows(G, 0.1 * rng.standard_normal(4), low, high, [0.0, 0.3, 0.0, 0.0])
    problem = replace(problem, rows=rows)
    found = make_solver("exact", tolerance=1e-9).solve(problem)
    assert found.converged, found.message
    assert problem.softness is not None
    nc, softness = problem.n_contacts, np.maximum(problem.softness, 1e-14)
    other = make_problem(
        sp.block_diag([problem.A, sp.diags(1.0 / softness.ravel())]), np.concatenate([problem.b, np.zeros(3 * nc)]),
        sp.hstack([problem.J, sp.identity(3 * nc)]), problem.phi, problem.friction, dt=problem.dt,
        rows=make_rows(sp.hstack([rows.G, sp.csr_matrix((4, 3 * nc))]), rows.offset, rows.low, rows.high, rows.softness),
    )  # fmt: skip
    again = make_solver("exact", tolerance=1e-9).solve(other)
    assert again.converged, again.message
    assert found.v == pytest.approx(again.v[: problem.n], abs=1e-6 * np.abs(again.v).max())
    assert found.row_forces == pytest.approx(again.row_forces, rel=1e-5, abs=1e-6)


def test_a_start_at_the_answer_ends_at_once() -> None:
    problem = soft_pile()
    found = make_solver("canal", tolerance=1e-9).solve(problem)
    start = WarmStart(found.v, found.lam)
    assert make_solver("canal", tolerance=1e-7).solve(problem, start).iterations <= 1
    reduction = Reduction(problem)
    y = reduction.shorten(found.v, found.lam)
    assert problem.softness is not None
    u = (reduction.reduced.moved(y)).reshape(-1, 3) + reduction.reduced.phi
    expected = problem.moved(found.v).reshape(-1, 3) + problem.phi + problem.softness * found.lam
    assert u == pytest.approx(expected, abs=1e-14)


def test_hardly_soft_is_hard_and_zero_is_none() -> None:
    problem = nodes_on_floor(np.random.default_rng(5), 6, 5)
    hard = make_solver("exact", tolerance=1e-11).solve(problem)
    nearly = make_solver("exact", tolerance=1e-11).solve(replace(problem, softness=np.full((5, 3), 1e-13)))
    assert hard.converged and nearly.converged
    assert nearly.lam == pytest.approx(hard.lam, abs=1e-9)
    assert box(0.0).softness is None and box([0.0]).softness is None
    assert box([2e-3]).softness == pytest.approx(np.full((1, 3), 2e-3))


def test_what_no_hard_contacts_can_do_soft_ones_can() -> None:
    """A point between two walls that close on it by 1 m/s each, and one that nothing can move."""
    J = np.zeros((6, 3))
    J[0, 0], J[3, 0] = 1.0, -1.0
    data = (sp.identity(3), np.zeros(3), J, np.array([-1.0, -1.0]), 0.0)
    assert make_solver("exact").solve(make_problem(*data, dt=0.01)).status == "infeasible"
    problem = make_problem(*data, dt=0.01, softness=0.1)
    for name in ("exact", "admm", "canal"):
        found = make_solver(name, tolerance=1e-9).solve(problem)
        assert found.converged and found.lam[:, 0] == pytest.approx([10.0, 10.0]), (name, found.message)
        assert measure(problem, found.v, found.lam).dynamics_residual <= 1e-9  # though no net force is left to compare with
    many = np.array([[1e9, 0.0, 0.0], [1e9, 0.0, 0.0]])
    approaching = np.array([[-1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    assert len(closing_contacts(replace(problem, softness=None), approaching, many, 1.0)) == 2
    assert not len(closing_contacts(problem, approaching, many, 1.0))
    fixed = (sp.identity(3), np.zeros(3), np.zeros((3, 3)), np.array([-1.0]), 0.0)
    with pytest.raises(ContactError, match="normal row of J is zero"):
        make_problem(*fixed, dt=0.01)
    assert make_solver("exact").solve(make_problem(*fixed, dt=0.01, softness=0.5)).lam[0, 0] == pytest.approx(2.0)


def test_files_keep_softness_bit_for_bit(tmp_path: Path) -> None:
    problem = soft_pile()
    write_fclib(tmp_path / "soft.hdf5", problem)
    again = read_fclib(tmp_path / "soft.hdf5").problem
    assert isinstance(again, ContactProblem) and again.softness is not None
    assert np.array_equal(again.softness, problem.softness)
    write_fclib(tmp_path / "hard.hdf5", replace(problem, softness=None))
    hard = read_fclib(tmp_path / "hard.hdf5").problem
    assert isinstance(hard, ContactProblem) and hard.softness is None


@pytest.mark.parametrize(
    ("softness", "said"),
    [
        ([1.0, 2.0], r"softness has shape \(2,\); allowed are a number, \(1,\) or \(1, 3\)"),
        (-1e-3, "softness of contact 0 is"),
        ([[1e-3, np.nan, 0.0]], "allowed are finite values >= 0"),
        (np.inf, "allowed are finite values >= 0"),
    ],
)
def test_wrong_softness_is_named(softness: object, said: str) -> None:
    with pytest.raises(ContactError, match=said):
        box(softness)
