"""Kernels around the condensed contact problem, and what a pick reads of a problem: each against its formula."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from contact import Group, contact_velocity, delassus_kernels, make_problem
from contact.jacobian_kernels import mark_columns, pushed_unknowns
from contact.metrics import dynamics_residual
from contact.problem import ContactProblem
from contact.solvers import exact_kernels as kernels


def some_problem(seed: int) -> tuple[ContactProblem, np.ndarray, np.ndarray]:
    """A problem of 5 contacts, a velocity, and forces, which the first three do not have."""
    rng = np.random.default_rng(seed)
    root, J = rng.standard_normal((9, 9)), sp.random(15, 9, 0.6, random_state=seed).toarray() + np.eye(15, 9)
    problem = make_problem(root @ root.T + np.eye(9), rng.standard_normal(9), J, rng.standard_normal((5, 3)), 0.4, dt=0.01)
    lam = rng.standard_normal((5, 3))
    lam[:3] = 0.0
    return problem, rng.standard_normal(9), lam


def begun(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> tuple[int, float, np.ndarray, np.ndarray, np.ndarray]:
    A, J, u, Av, chosen = problem.A, problem.J, np.empty((5, 3)), np.empty(9), np.empty(5, dtype=np.bool_)
    found = kernels.begin(
        A.indptr, A.indices, A.data, J.indptr, J.indices, J.data, problem.phi, problem.b, problem.weight, v, lam, 1e-10, u, Av,
        chosen,
    )  # fmt: skip
    return *found, u, Av, chosen


@pytest.mark.parametrize("seed", range(5))
def test_a_refinement_begins_with_what_presses_or_approaches(seed: int) -> None:
    problem, v, lam = some_problem(seed)
    problem.phi[0, 0] = -(problem.moved(v)[0])  # stands still to rounding
    count, residual, u, Av, chosen = begun(problem, v, lam)
    assert np.array_equal(u, contact_velocity(problem, v)) and np.array_equal(Av, problem.times(v))
    assert residual == dynamics_residual(problem, v, lam)
    expected = lam.any(axis=1) | (u[:, 0] <= 1e-10 * np.abs(u).max())
    assert np.array_equal(chosen, expected) and count == expected.sum() >= 3
    lacking = np.empty(9)
    J = problem.J
    kernels.lacking(J.indptr, J.indices, J.data, problem.b, lam, Av, lacking)
    np.testing.assert_allclose(lacking, problem.b + J.T @ lam.ravel() - problem.A @ v, rtol=0, atol=1e-12)


def test_contacts_that_approach_are_added_and_no_others() -> None:
    u = np.array([[1.0, 0, 5], [-1e-3, 0, 0], [4e-10, 0, 0], [6e-10, 0, 0], [-1.0, 0, 0]])
    chosen = np.array([False, False, False, False, True])
    assert kernels.approach(u, 1e-10, chosen) and chosen.tolist() == [False, True, True, False, True]
    assert not kernels.approach(u, 1e-10, chosen) and chosen.tolist() == [False, True, True, False, True]


def test_speeds_without_forces_are_those_of_contacts_that_press_or_would_approach() -> None:
    q = np.array([[1.0, -9.0, 0.0], [-0.5, 0.0, 0.25], [2.0, -3.0, 0.0], [0.0, 8.0, 8.0]])
    lam = np.zeros((4, 3))
    assert kernels.speed_without_forces(q.ravel(), lam.ravel()) == 0.5
    for component in range(3):
        lam[:] = 0.0
        lam[2, component] = -1.0
        assert kernels.speed_without_forces(q.ravel(), lam.ravel()) == 3.0
    q[1, 2] = np.nan
    assert np.isnan(kernels.speed_without_forces(q.ravel(), lam.ravel()))


def test_contacts_push_all_of_a_body_on_which_they_act_and_of_a_robot_that_stands_its_joints() -> None:
    groups = [
        Group(name, *ends, "generalized") for name, ends in {"a": (0, 6), "arm": (6, 15), "b": (15, 21), "rub": (21, 22)}.items()
    ]
    start, stop = np.array([g.start for g in groups]), np.array([g.stop for g in groups])
    diagonal, J = np.arange(1.0, 23.0), sp.lil_matrix((7, 22))
    J[0, 13], J[1, 14], J[1, 13] = 1.0, 1.0, 1.0  # joints of the arm
    for used, expected in (
        ((), (2, 2, 1.0, 1.0)), ((20,), (3, 8, 16.0, 16.0)), ((20, 0), (4, 14, 1.0, 16.0)), ((20, 0, 6), (5, 21, 1.0, 16.0)),
        ((20, 0, 6, 21), (6, 22, 1.0, 16.0)),
    ):  # fmt: skip
        for row, column in enumerate(used):
            J[2 + row, column] = 1.0
        found, columns, marked = J.tocsr(), np.zeros(22, dtype=np.bool_), np.zeros(22, dtype=np.bool_)
        assert pushed_unknowns(found.indptr, found.indices, start, stop, diagonal, columns) == expected
        mark_columns(found.indptr, found.indices, marked)
        assert np.array_equal(columns, marked)


def test_a_small_matrix_is_filled_and_its_part_made_symmetric() -> None:
    A, rows = sp.random(6, 6, 0.5, random_state=1, format="csc"), np.array([1, 2, 5])
    dense, unit, part = np.zeros((6, 6)), np.zeros((3, 6)), np.empty((3, 3))
    delassus_kernels.fill_dense(A.indptr, A.indices, A.data, rows, dense, unit)
    assert np.array_equal(dense.T, A.toarray()) and np.array_equal(unit, np.eye(6)[rows])
    columns = np.random.default_rng(2).standard_normal((3, 6))
    delassus_kernels.pick_symmetric(columns, rows, part)
    assert np.array_equal(part, 0.5 * (columns[:, rows] + columns[:, rows].T))
