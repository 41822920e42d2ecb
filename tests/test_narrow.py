"""Scales of contacts by W for bodies whose part of A is narrow, against dense inverses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from random_chains import chain
from stiff_nets import net_of_springs

from contact import ContactProblem, make_problem, make_solver, measure
from contact.narrow import narrow_scales
from contact.narrow_kernels import factorize_band, find_blocks, invert_band
from contact.problem import force_scales
from contact.solvers.judge import Judge, law_error


def banded(n: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """A positive definite matrix of some width."""
    factor = np.tril(rng.standard_normal((n, n))) * (np.subtract.outer(np.arange(n), np.arange(n)) <= width)
    return np.asarray(factor @ factor.T + 0.1 * np.eye(n))


def lower_band(A: np.ndarray, width: int) -> np.ndarray:
    """Row j has a_jj, a_(j+1)j, ..."""
    out, n = np.zeros((len(A), width + 1)), len(A)
    for j in range(n):
        for i in range(min(width, n - 1 - j) + 1):
            out[j, i] = A[j + i, j]
    return out


def by_inverse(problem: ContactProblem) -> np.ndarray:
    """Scales of a problem by a dense inverse."""
    J = problem.J.toarray()
    W = J @ np.linalg.solve(problem.A.toarray(), J.T)
    softness = 0.0 if problem.softness is None else problem.softness
    return force_scales(np.diag(W).reshape(-1, 3) + softness)


@pytest.mark.parametrize(("n", "width"), [(1, 0), (7, 1), (30, 5), (12, 11)])
def test_the_inverse_near_the_diagonal(n: int, width: int) -> None:
    A = banded(n, width, np.random.default_rng(n))
    factors, inverse = lower_band(A, width), np.zeros((n, width + 1))
    assert factorize_band(factors)
    invert_band(factors, inverse)
    np.testing.assert_allclose(inverse, lower_band(np.linalg.inv(A), width), rtol=1e-9, atol=1e-12)
    assert not factorize_band(lower_band(A - 2.0 * np.linalg.eigvalsh(A)[0] * np.eye(n), width))


def test_blocks_are_cut_where_nothing_couples() -> None:
    rng = np.random.default_rng(0)
    A = sp.csc_matrix(sp.block_diag([banded(4, 2, rng), [[2.0]], banded(9, 3, rng)]))
    A.eliminate_zeros()
    start, width = np.zeros(15, dtype=np.int64), np.zeros(14, dtype=np.int64)
    count = find_blocks(A.indptr, A.indices, start, width)
    assert (start[: count + 1].tolist(), width[:count].tolist()) == ([0, 4, 5, 14], [2, 0, 3])


@pytest.mark.parametrize("seed", range(3))
def test_scales_of_chains_and_nets_are_those_of_the_inverse(seed: int) -> None:
    links = chain(12, 9, np.random.default_rng(seed))
    for problem in (links, net_of_springs(seed, stiffness=1e4)):
        found = narrow_scales(problem)
        assert found is not None
        np.testing.assert_allclose(found, by_inverse(problem), rtol=1e-8)


def test_soft_contacts_give_way_too() -> None:
    hard = net_of_springs(0, stiffness=1e4)
    problem = make_problem(hard.A, hard.b, hard.J, hard.phi, 0.5, dt=0.01, softness=0.3)
    np.testing.assert_allclose(narrow_scales(problem), by_inverse(problem), rtol=1e-8)


def test_wide_blocks_count_with_the_diagonal_and_alone_with_nothing() -> None:
    """A body of 99 rows, each coupled to all beside a narrow one: a contact of both adds what each has."""
    rng = np.random.default_rng(5)
    wide, narrow = banded(99, 98, rng), banded(9, 4, rng)
    A = sp.csc_matrix(sp.block_diag([wide, narrow]))
    J = np.zeros((6, 108))
    J[:3, :3], J[:3, 99:102], J[3:, 102:105] = np.eye(3), -np.eye(3), np.eye(3)
    problem = make_problem(A, np.zeros(108), J, np.zeros(2), 0.5, dt=0.01)
    inverse = np.linalg.inv(narrow)
    of_both = (1.0 / np.diag(wide)[:3]).sum() + np.trace(inverse[:3, :3])
    np.testing.assert_allclose(narrow_scales(problem), [3.0 / of_both, 3.0 / np.trace(inverse[3:6, 3:6])], rtol=1e-9)
    alone = make_problem(sp.csc_matrix(wide), np.zeros(99), J[:3, :99], np.zeros(1), 0.5, dt=0.01)
    assert narrow_scales(alone) is None


def test_no_scales_of_a_matrix_that_is_not_positive_definite() -> None:
    A = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    problem = make_problem(sp.csc_matrix(A), np.zeros(3), np.eye(3), np.zeros(1), 0.5, dt=0.01)
    assert narrow_scales(problem) is None


def test_the_judge_holds_narrow_bodies_to_the_scale_of_w() -> None:
    """Forces that are too large lift the net; by the diagonal of A nothing is wrong, and no solver told the judge of W.

    Four times too large they part what they press as well. By 2 %, the speeds at which they do are within the tolerance.
    """
    problem = net_of_springs(0)
    right = make_solver("exact", tolerance=1e-7).solve(problem).lam
    for factor, tolerance in ((4.0, 1e-3), (1.02, 0.05), (1.0, 1e-3)):
        lam = factor * right
        v = np.linalg.solve(problem.A.toarray(), problem.b + problem.J.T @ lam.ravel())
        assert measure(problem, v, lam).contact_residual < 1e-6
        assert Judge(problem, tolerance).look(v, lam, 0) == (factor == 1.0)
        assert factor == 1.0 or law_error(problem, v, lam) > 0.1
