"""Motions of bodies as a whole beside factors of single precision: exact, also where bodies are held, joined or many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from small_blocks import soft_block
from small_matrices import needs_pardiso, sparse_spd

from contact import Group, delassus
from contact.delassus import DelassusOperator
from contact.metrics import residuals
from contact.smooth_motions import SmoothMotions, motions_of
from contact.solvers import Exact

GROUPS = (Group("soft", 0, 30, "nodes"), Group("arm", 30, 37, "generalized"), Group("rod", 37, 61, "links"))


def columns() -> np.ndarray:
    """The motions of these groups: translations, coordinates, translations."""
    T = np.zeros((61, 13))
    for c in range(3):
        T[c:30:3, c] = 1.0
        T[37 + c : 61 : 6, 10 + c] = 1.0
    T[np.arange(30, 37), np.arange(3, 10)] = 1.0
    return T


def test_nothing_is_lacking_of_the_motions_and_no_more_is_changed_than_they_are() -> None:
    rng = np.random.default_rng(5)
    A, T, b = sp.csc_matrix(sparse_spd(rng, 61).toarray() + 0.01), columns(), rng.standard_normal(61)
    before = np.linalg.solve(A.toarray(), b) + 1e-4 * rng.standard_normal(61)
    x = before.copy()
    SmoothMotions(A, motions_of(GROUPS)).correct(x, b)
    assert np.abs(T.T @ (b - A @ before)).max() > 1e-5
    assert np.abs(T.T @ (b - A @ x)).max() < 1e-13 * np.abs(A).max() * 61
    share = np.linalg.lstsq(T, x - before, rcond=None)[0]
    np.testing.assert_allclose(T @ share, x - before, atol=1e-12)


def test_rows_that_stand_alone_keep_what_they_have() -> None:
    rng = np.random.default_rng(6)
    A = sparse_spd(rng, 61).tolil()
    alone = np.array([3, 4, 5, 60])
    diagonal = A.diagonal()
    A[alone, :] = 0.0
    A[:, alone] = 0.0
    A.setdiag(diagonal)
    A, b = A.tocsc(), rng.standard_normal(61)
    x = np.linalg.solve(A.toarray(), b) + 1e-4
    before = x.copy()
    SmoothMotions(A, motions_of(GROUPS)).correct(x, b)
    np.testing.assert_array_equal(x[alone], before[alone])
    T = columns()
    T[alone] = 0.0
    assert np.abs(T.T @ (b - A @ x)).max() < 1e-12 * np.abs(A).max() * 61
    every = sp.diags(np.full(6, 2.0), format="csc")  # of such rows alone: nothing moves as a whole
    y = np.ones(6)
    SmoothMotions(every, motions_of((Group("held", 0, 6, "nodes"),))).correct(y, np.zeros(6))
    np.testing.assert_array_equal(y, np.ones(6))


def test_where_bodies_are_too_many_there_are_none() -> None:
    bodies = tuple(Group(str(k), 12 * k, 12 * k + 12, "nodes") for k in range(17))
    assert len(motions_of(bodies[:16])) == 48 and len(motions_of(bodies)) == 0
    assert len(motions_of(())) == 0


@needs_pardiso
@pytest.mark.parametrize("pressing", [True, False])
def test_a_body_balances_to_rounding_beside_factors_of_single_precision(pressing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does beside those of double precision, and does not without the correction."""
    monkeypatch.setattr(delassus, "_SINGLE_FROM", 0)
    problem = soft_block(2e5, 8)
    if not pressing:
        problem = replace(problem, phi=problem.phi + np.array([1e3, 0.0, 0.0]))
    balances = {}
    for way in ("corrected", "alone", "double"):
        with monkeypatch.context() as patch:
            if way == "alone":
                patch.setattr(SmoothMotions, "correct", lambda *_: None)
            elif way == "double":
                patch.setattr(delassus, "_SINGLE_FROM", 10**9)
            solver = Exact()
            solution = solver.solve(problem)
            assert solution.converged
            balances[way] = residuals(problem, solution.v, solution.lam).balance
    assert max(balances["corrected"], balances["double"]) < 1e-11 < balances["alone"]


@needs_pardiso
def test_a_body_balances_to_rounding_beside_the_factors_of_another_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held at one end, and on springs since then, which its motions as a whole meet."""
    monkeypatch.setattr(delassus, "_SINGLE_FROM", 0)
    problem = soft_block(2e5, 8)
    A, held = problem.A, np.arange(30)
    rows, columns = A.indices, np.repeat(np.arange(problem.n), np.diff(A.indptr))
    data = np.where((rows != columns) & (np.isin(rows, held) | np.isin(columns, held)), 0.0, A.data)
    first = replace(problem, A=sp.csc_matrix((data, rows, A.indptr), shape=A.shape))
    diagonal = np.where(rows == columns, problem.diagonal[columns], 0.0)
    later = replace(first, A=sp.csc_matrix((data + 0.3 * diagonal, rows, A.indptr), shape=A.shape))
    operator = DelassusOperator(refined=True)
    operator.factorize(first)
    assert operator.single and operator.fits(later, later.J)
    operator.operator(later.J)
    force = np.random.default_rng(7).standard_normal(3 * later.n_contacts)
    operator.begin(later.b)
    left = later.b + later.J.T @ force - later.A @ operator.finish(force)
    left[held] = 0.0
    nets = np.array([left[c::3].sum() for c in range(3)])
    assert np.abs(nets).max() < 1e-11 * np.abs(left).sum() and np.abs(left).max() > 1e-3 * np.abs(later.b).max()


def test_motions_that_a_matrix_does_not_resist_are_left_alone() -> None:
    """Newton's matrices may be indefinite there, and those that were factorized before are not."""
    A, x = sp.diags(np.full(61, 2.0), format="lil"), np.ones(61)
    A[30, 33] = A[33, 30] = -3.0
    SmoothMotions(A.tocsc(), motions_of(GROUPS)).correct(x, np.zeros(61))
    np.testing.assert_array_equal(x, np.ones(61))


@needs_pardiso
def test_many_bodies_have_factors_of_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delassus, "_SINGLE_FROM", 0)
    problem = soft_block(2e5, 4)
    operator = DelassusOperator(refined=True)
    operator.factorize(problem)
    assert operator.single
    parts = tuple(Group(str(k), 3 * k, 3 * k + 3, "nodes") for k in range(problem.n // 3))
    operator.factorize(replace(problem, groups=parts))
    assert not operator.single
    plain = DelassusOperator()
    plain.factorize(problem)
    assert not plain.single  # who does not go on needs them as they are
