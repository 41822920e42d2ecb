"""The Delassus operator from one factorization: against dense algebra, also after rows were added and for a later A."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from slow_twins import body_between_nodes, nodes_on_floor, random_spd
from small_matrices import BACKENDS

from contact import ContactError, ContactProblem, make_problem
from contact.delassus import DelassusOperator


def changed(problem: ContactProblem, A: sp.spmatrix) -> ContactProblem:
    return make_problem(A, problem.b, problem.J, problem.phi, problem.friction, dt=problem.dt, groups=problem.groups)


def soft(seed: int = 0, n_nodes: int = 20, n_contacts: int = 5) -> ContactProblem:
    return nodes_on_floor(np.random.default_rng(seed), n_nodes, n_contacts)


def assert_exact(operator: DelassusOperator, problem: ContactProblem, J: sp.csr_matrix) -> None:
    """W, J A^-1 b and A^-1 (b + J^T lam) for the A that is factorized."""
    rng = np.random.default_rng(9)
    inverse, dense = np.linalg.inv(problem.A.toarray()), J.toarray()
    b, lam = rng.standard_normal(problem.n), rng.standard_normal(J.shape[0])
    W = operator.operator(J)
    np.testing.assert_allclose(W, dense @ inverse @ dense.T, rtol=0, atol=1e-12)
    assert np.array_equal(W, W.T) and W.flags.c_contiguous and W.shape == (J.shape[0],) * 2
    np.testing.assert_allclose(operator.begin(b), dense @ inverse @ b, rtol=0, atol=1e-12)
    np.testing.assert_allclose(operator.finish(lam), inverse @ (b + dense.T @ lam), rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_after_a_factorization_that_failed_there_is_none(backend: str) -> None:
    """Nor that of the matrix before, some of whose parts are gone: the next problem gets its own."""
    problem, operator = soft(), DelassusOperator(backend)
    operator.factorize(problem)
    assert operator.fits(problem, problem.J)
    with pytest.raises(ContactError, match="not positive definite"):
        operator.factorize(replace(problem, A=-problem.A), np.union1d(np.unique(problem.J.indices), [problem.n - 7]))
    assert not operator.fits(problem, problem.J)
    operator.factorize(problem)
    assert_exact(operator, problem, problem.J)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kept", ["contacts", "one more", "none"])
def test_the_operator_is_that_of_dense_algebra(backend: str, kept: str) -> None:
    for problem in (soft(), body_between_nodes(np.random.default_rng(1), 12, 4, inertia=3.0)):
        rows = np.unique(problem.J.indices)
        patch = {"contacts": None, "one more": np.union1d(rows, [problem.n - 7]), "none": np.zeros(0, dtype=np.int64)}[kept]
        operator = DelassusOperator(backend)  # type: ignore[arg-type]
        assert not operator.factorized and not operator.fits(problem, problem.J)
        operator.factorize(problem, patch)
        assert operator.factorized and operator.fits(problem, problem.J)
        assert len(operator.factorization.patch) == len(rows if patch is None else patch)
        assert_exact(operator, problem, problem.J)
        assert_exact(operator, problem, problem.J[3:9])  # fewer contacts than rows are kept for
        operator.forget()
        assert not operator.factorized and not operator.fits(problem, problem.J)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_outside_the_patch_are_added_exactly_until_they_are_too_many(backend: str) -> None:
    problem = soft(n_nodes=24, n_contacts=24)
    first, more, all_but_two, everything = (problem.J[: 3 * k] for k in (2, 5, 18, 22))
    operator = DelassusOperator(backend)  # type: ignore[arg-type]
    operator.factorize(problem, np.unique(first.indices))
    for J in (more, first, all_but_two, more):
        assert operator.fits(problem, J)
        assert_exact(operator, problem, J)
    assert len(operator.factorization.patch) == 6
    assert not operator.fits(problem, everything)  # more than 48 in all
    assert_exact(operator, problem, all_but_two)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_of_before_are_kept_again_where_they_hold_nearly_all_that_are_asked_for(backend: str) -> None:
    """So that the order of elimination stays; other backends have none, and take the patch that they are given."""
    problem = soft(n_nodes=40, n_contacts=24)
    kept, near, far = (problem.J[:24], problem.J[6:36], problem.J[12:63])
    patches = [np.unique(J.indices) for J in (kept, near, far)]
    stiffer = changed(problem, 2.0 * problem.A)
    operator = DelassusOperator(backend)  # type: ignore[arg-type]
    operator.factorize(problem, patches[0], kept)
    operator.forget()
    operator.factorize(stiffer, patches[1], near)
    assert_exact(operator, stiffer, near)
    assert np.array_equal(operator.factorization.patch, patches[0 if backend == "pardiso" else 1])
    twin = DelassusOperator(backend)  # type: ignore[arg-type]
    twin.recall(operator.memory())
    assert np.array_equal(twin.operator(near), operator.operator(near))
    for one in (operator, twin):
        one.forget()
    other = DelassusOperator(backend)  # type: ignore[arg-type]
    other.recall(operator.memory())  # also of factors that were dropped
    for one in (operator, other):
        one.factorize(problem, patches[1], near)
    assert np.array_equal(other.factorization.patch, operator.factorization.patch)
    assert np.array_equal(other.operator(near), operator.operator(near))
    twin.recall({})
    twin.factorize(problem, patches[1], kept)
    assert np.array_equal(twin.factorization.patch, patches[1])  # nothing is known of what was kept before
    operator.factorize(problem, patches[2], far)  # 39 rows of it are new
    assert_exact(operator, problem, far)
    assert np.array_equal(operator.factorization.patch, patches[2])
    with pytest.raises(ContactError, match="not positive definite"):
        operator.factorize(replace(problem, A=-problem.A), patches[0], kept)
    operator.factorize(problem, patches[1], near)  # nothing is left of what was kept before the failure
    assert_exact(operator, problem, problem.J[6:36])
    assert np.array_equal(operator.factorization.patch, patches[1])


def test_a_patch_of_nearly_everything_is_solved_for_column_by_column() -> None:
    for problem in (soft(2, 5, 5), soft(3, 40, 1)):
        operator = DelassusOperator()
        patch = np.arange(9 * problem.n // 10) if problem.n_contacts == 1 else None
        operator.factorize(problem, patch)
        assert len(operator.factorization.patch) == 0
        assert operator.fits(problem, problem.J)
        assert_exact(operator, problem, problem.J)
    wide = soft(4, 80, 60)  # 180 columns, three chunks
    operator = DelassusOperator()
    operator.factorize(wide, np.zeros(0, dtype=np.int64))
    assert_exact(operator, wide, wide.J)


def test_another_pattern_or_size_is_refused_and_other_values_are_served() -> None:
    """The arrays of a pattern need not be the same object: scipy makes new views of them with each matrix."""
    rng = np.random.default_rng(5)
    problem = soft()
    operator = DelassusOperator()
    operator.factorize(problem)
    stiffer = changed(problem, problem.A + 0.1 * random_spd(rng, problem.n))
    assert stiffer.A.indices is not problem.A.indices
    assert operator.fits(stiffer, stiffer.J)
    assert_exact(operator, problem, stiffer.J)  # it stays the older A
    holes = problem.A.toarray()
    holes[3, 40] = holes[40, 3] = 0.0
    assert not operator.fits(changed(problem, sp.csc_matrix(holes)), problem.J)
    assert not operator.fits(soft(0, 21), soft(0, 21).J)
    moved = holes.copy()  # as many entries in each column, in other places
    moved[[3, 40, 4, 41], [40, 3, 41, 4]] = 0.0
    before = changed(problem, sp.csc_matrix(moved))
    moved[[3, 40, 4, 41], [40, 3, 41, 4]] = problem.A.toarray()[[3, 40, 4, 41], [40, 3, 41, 4]]
    moved[[3, 41, 4, 40], [41, 3, 40, 4]] = 0.0
    after = changed(problem, sp.csc_matrix(moved))
    assert np.array_equal(before.A.indptr, after.A.indptr)
    operator.factorize(before)
    assert operator.fits(before, problem.J) and not operator.fits(after, problem.J)


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_rows_of_j_the_answer_is_the_free_velocity(backend: str) -> None:
    for problem in (soft(6, 4, 0), soft(7)):
        operator, nothing = DelassusOperator(backend), problem.J[:0]  # type: ignore[arg-type]
        operator.factorize(problem)
        assert operator.fits(problem, nothing)
        assert operator.operator(nothing).shape == (0, 0) and operator.begin(problem.b).shape == (0,)
        v = operator.finish(np.zeros(0))
        np.testing.assert_allclose(v, np.linalg.solve(problem.A.toarray(), problem.b), atol=1e-12)
