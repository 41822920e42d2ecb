"""Whether a matrix is positive definite, against its eigenvalues; and COND-Newton on matrices that are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from small_blocks import soft_block

from contact import ContactError, ContactProblem
from contact.linear import Backend
from contact.solvers import multigrid
from contact.solvers.augmented import AugmentedLagrangian
from contact.solvers.cond_newton import CondNewton, CondNewtonOptions
from contact.solvers.definite import Definite

BACKENDS: tuple[Backend, ...] = ("auto", "superlu")


def lowered(A: sp.csc_matrix, share: float, seed: int = 0) -> sp.csc_matrix:
    """A less a part along one direction on few rows, which as the others see it has 1 - share left of its stiffness."""
    n = A.shape[0]
    rows = np.random.default_rng(seed).choice(n, 4, replace=False)
    block = np.zeros((n, 4))
    block[rows, range(4)] = 1.0
    flexible = np.linalg.inv(np.linalg.inv(A.toarray())[np.ix_(rows, rows)])  # A seen from these rows
    values, vectors = np.linalg.eigh(flexible)
    x = block @ vectors[:, 0]
    return sp.csc_matrix(A - share * values[0] * sp.csc_matrix(np.outer(x, x)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("divisions", [2, 5])
def test_against_eigenvalues(backend: Backend, divisions: int) -> None:
    A, asked = soft_block(1e5, divisions).A, Definite(backend)
    # beyond the rounding of single precision the factors in double decide
    for share in (0.0, 0.9, 1.0 - 1e-9, 1.0 + 1e-9, 1.1, 1.0 - 1e-9):
        other = lowered(A, share)
        least = np.linalg.eigvalsh(other.toarray()).min()
        assert (least > 0) == (share < 1.0) == asked.says(other), share
    assert asked.says(sp.csc_matrix((0, 0)))


@pytest.mark.parametrize("seed", [1, 17, 18])
def test_what_single_precision_cannot_see_is_refused(seed: int) -> None:
    """Their least eigenvalues are -1e-11 of their diagonals, and they have factors in single precision."""
    A = lowered(soft_block(1e5, 5).A, 1.0 + 1e-9, seed)
    asked = Definite()
    assert not asked.says_roughly(A) and not asked.says(A)


def test_single_precision_alone_is_not_enough() -> None:
    asked, A = Definite(), soft_block(1e5, 5).A
    assert not asked.says_roughly(lowered(A, 1.0 - 1e-9)) and asked.says(lowered(A, 1.0 - 1e-9))


def held(problem: ContactProblem) -> ContactProblem:
    """Let a block that sticks to the floor rather slide than stand, by far less than what contacts hold."""
    push = np.zeros(problem.n)
    push[::3] = 1.0 / np.sqrt(problem.n / 3)
    A = problem.A.toarray() - 1.2 * float(push @ problem.times(push)) * np.outer(push, push)
    assert np.linalg.eigvalsh(A)[0] < 0 < np.linalg.eigvalsh(A)[1] and A.diagonal().min() > 0
    return replace(problem, A=sp.csc_matrix(A), friction=np.full(problem.n_contacts, 5.0))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("divisions", [2, 4])
def test_an_answer_for_a_matrix_that_is_not_positive_definite_is_refused(
    backend: Backend, divisions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = held(soft_block(1e5, divisions))
    solver = CondNewton(CondNewtonOptions(backend=backend))
    with pytest.raises(ContactError, match="A is not positive definite"):
        solver.solve(problem)
    monkeypatch.setattr(Definite, "says", lambda self, A: True)  # it is this that refuses: dynamics and contact law hold
    found = solver.solve(problem)
    assert found.converged and found.details["way"] == ("dense" if divisions == 2 else "sparse")


@pytest.mark.parametrize("way", ["dense", "sparse", "multigrid"])
def test_the_long_search_does_not_begin_for_a_matrix_that_is_not_positive_definite(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found nothing in 509 factorizations, for 20 s, where factors break down after 5 ms."""
    monkeypatch.setattr(multigrid, "_LEAST_ROWS", 0 if way == "multigrid" else 10**6)
    problem = soft_block(1e5, 2 if way == "dense" else 5)
    A = problem.A - 0.5 * sp.diags(problem.diagonal)
    assert np.linalg.eigvalsh(A.toarray())[0] < 0.0
    solver, begun = CondNewton(), []
    advance = AugmentedLagrangian.advance
    monkeypatch.setattr(AugmentedLagrangian, "advance", lambda self, residual: begun.append(1) or advance(self, residual))
    with pytest.raises(ContactError, match="A is not positive definite"):
        solver.solve(replace(problem, A=sp.csc_matrix(A)))
    assert not begun
    # one that is takes as long as it needs, and is asked once
    asked: list[int] = []
    says = Definite.says
    monkeypatch.setattr(Definite, "says", lambda self, matrix: asked.append(1) or says(self, matrix))
    assert CondNewton().solve(problem).converged and len(asked) <= 1
