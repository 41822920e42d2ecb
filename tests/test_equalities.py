"""Equality rows eliminated, beside dense algebra of numpy: rows with and without columns of their own, and rows that repeat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.spatial.transform import Rotation

from contact import ContactError, equality_kernels as kernels, make_problem, make_rows, make_solver
from contact.equalities import Equalities
from contact.problem import Group
from contact.reduction import Reduction


def chain(links: int, seed: int = 0) -> np.ndarray:
    """Rows that join each of ``links`` points with the next one, three a joint, and none with anything else."""
    rng, E = np.random.default_rng(seed), np.zeros((3 * links - 3, 3 * links))
    for k in range(links - 1):
        E[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = np.eye(3)
        E[3 * k : 3 * k + 3, 3 * k + 3 : 3 * k + 6] = -np.eye(3) + 0.2 * rng.standard_normal((3, 3))
    return E


def some_rows(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows (p, N), and what they lack for x = 0 (p,), such that some x satisfies all."""
    rng = np.random.default_rng(1)
    E = {
        "own": np.hstack([np.eye(6), rng.standard_normal((6, 6))]),
        "none": rng.standard_normal((5, 12)),
        "chain": chain(4),
        "mixed": np.vstack([np.hstack([np.eye(4), rng.standard_normal((4, 8))]), np.zeros((3, 12))]),
        "repeated": np.vstack([np.hstack([np.eye(4), rng.standard_normal((4, 8))]), np.zeros((4, 12))]),
        "two sets": np.kron(np.eye(2), np.hstack([np.eye(3), rng.standard_normal((3, 3))])),
        "small pivots": np.hstack([1e-9 * np.eye(6), rng.standard_normal((6, 6))]),
    }[kind]  # fmt: skip
    if kind in ("mixed", "repeated"):
        E[4:, 4:] = rng.standard_normal((len(E) - 4, 8))
    if kind == "repeated":
        E[7] = 2.0 * E[4] - E[5]
    return E, E @ rng.standard_normal(12)


def eliminated(E: np.ndarray, offset: np.ndarray, scale: np.ndarray) -> tuple[Equalities, np.ndarray]:
    """What is eliminated, with the basis as a dense matrix."""
    found = Equalities(sp.csr_matrix(E), np.arange(12) // 3 * 3, scale, offset, np.arange(len(E)))
    basis, size = found.basis, int(np.count_nonzero(found.kept) + found.basis.width.sum())
    span = np.zeros((12, size))
    for k in range(size):
        kernels.expand(basis, np.eye(size)[k], column := np.zeros(12))
        span[:, k] = column
    return found, span


KINDS = ("own", "none", "chain", "mixed", "repeated", "two sets", "small pivots")


@pytest.mark.parametrize("kind", KINDS)
def test_the_basis_spans_all_that_rows_allow(kind: str) -> None:
    (E, offset), scale = some_rows(kind), np.random.default_rng(2).uniform(0.5, 2.0, 12)
    found, span = eliminated(E, offset, scale)
    rank = np.linalg.matrix_rank(E)
    assert span.shape[1] == 12 - rank == np.linalg.matrix_rank(span)
    assert np.abs(E @ span).max() < 1e-12 * np.abs(span).max()
    assert np.abs(E @ found.x0 + offset).max() < 1e-12 * max(1.0, np.abs(found.x0).max())
    assert np.linalg.cond(span / scale[:, None]) < 1e3
    x, y = np.random.default_rng(3).standard_normal(12), np.empty(span.shape[1])
    kernels.shorten(found.basis, x, y)
    assert y == pytest.approx(span.T @ x, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_forces_of_rows_are_the_least_that_make_the_force(kind: str) -> None:
    (E, offset), scale = some_rows(kind), np.random.default_rng(2).uniform(0.5, 2.0, 12)
    found, _ = eliminated(E, offset, scale)
    force = E.T @ np.random.default_rng(4).standard_normal(len(E))
    length = np.linalg.norm(E * scale, axis=1)
    least = np.linalg.lstsq((E / length[:, None]).T, force, rcond=1e-12)[0] / length
    assert found.forces(force) == pytest.approx(least, abs=1e-10, rel=1e-9)


def test_least_forces_do_not_hang_on_the_axes_of_a_vector() -> None:
    """Three joints of three rows on five columns, each told in other axes."""
    rng, columns = np.random.default_rng(6), np.arange(5)
    E, force, number = rng.standard_normal((9, 5)), rng.standard_normal(5), np.repeat([0, 3, 6], 3)
    turn = sl.block_diag(*Rotation.random(3, random_state=7).as_matrix())
    plain, turned = (
        Equalities(sp.csr_matrix(rows), np.zeros(5, dtype=np.int64), 1.0 + columns, np.zeros(9), number).forces(force)
        for rows in (E, turn @ E)
    )
    assert E.T @ plain == pytest.approx(force, abs=1e-12)
    assert turned == pytest.approx(turn @ plain, abs=1e-12)


@pytest.mark.parametrize("tilt", [1e-13, 1e-10, 1e-7, 1e-4])
def test_what_rounding_leaves_of_a_component_of_a_vector_holds_nothing(tilt: float) -> None:
    """A point that moves in a plane, told in axes that are off it by a hair: two of its three rows say all."""
    rng, turn = np.random.default_rng(8), Rotation.from_rotvec((tilt, 0.3 * tilt, 0.0)).as_matrix()
    E = turn @ np.vstack([rng.standard_normal((2, 4)), np.zeros(4)])
    E[2] += 1e-16 * rng.standard_normal(4)  # of levers of 1 m
    found = Equalities(sp.csr_matrix(E), np.zeros(4, dtype=np.int64), np.ones(4), E @ np.ones(4), np.zeros(3, dtype=np.int64))
    force = found.forces(E.T @ [1.0, 2.0, 0.0])
    assert found.basis.width.tolist() == [2]
    assert np.abs(E @ found.x0 + E @ np.ones(4)).max() < 1e-14
    assert force == pytest.approx([1.0, 2.0, 0.0], abs=10.0 * tilt)


@pytest.mark.parametrize("kind", KINDS)
def test_products_with_the_basis_are_those_of_dense_matrices(kind: str) -> None:
    """A with gaps, rows with zeros; the matrix is symmetric to the last bit, and indices are in order."""
    (E, offset), rng = some_rows(kind), np.random.default_rng(5)
    found, span = eliminated(E, offset, np.ones(12))
    half = np.where(rng.random((12, 12)) < 0.4, rng.standard_normal((12, 12)), 0.0)
    A, J = sp.csc_matrix(half + half.T + 10.0 * np.eye(12)), sp.csr_matrix(half[:9])
    n = span.shape[1]
    indptr, indices, data = kernels.project(A.indptr, A.indices, A.data, found.basis, n)
    small = sp.csc_matrix((data, indices, indptr), shape=(n, n))
    assert small.has_sorted_indices and (small != small.T).nnz == 0
    assert small.toarray() == pytest.approx(span.T @ A.toarray() @ span, abs=1e-10 * max(1.0, np.abs(span).max() ** 2))
    indptr, indices, data = kernels.project_rows(J.indptr, J.indices, J.data, found.basis, np.ones(12), 1e-12)
    rows = sp.csr_matrix((data, indices, indptr), shape=(9, n))
    assert rows.has_sorted_indices and rows.toarray() == pytest.approx(
        J.toarray() @ span, abs=1e-11 * max(1.0, np.abs(span).max())
    )


def test_a_chain_is_eliminated_from_its_ends_without_a_dense_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a dense decomposition")

    monkeypatch.setattr("contact.equalities._decompose", refuse)
    E = chain(200)
    found = Equalities(sp.csr_matrix(E), np.arange(600) // 3 * 3, np.ones(600), np.zeros(len(E)), np.arange(len(E)))
    assert found.basis.width.tolist() == [3]
    with pytest.raises(AssertionError, match="dense"):  # a loop has no end
        loop = np.vstack([E, np.roll(np.eye(600), -597, axis=1)[:3] - np.eye(600)[:3]])
        Equalities(sp.csr_matrix(loop), np.arange(600) // 3 * 3, np.ones(600), np.zeros(len(loop)), np.arange(len(loop)))


def test_rows_that_contradict_each_other_are_missed_by_the_least() -> None:
    """Two rows ask for what no x gives; the row with a column of its own is satisfied."""
    E = np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 0.0, 2.0]])
    found = Equalities(sp.csr_matrix(E), np.zeros(3, dtype=np.int64), np.ones(3), np.array([-1.0, -3.0, 5.0]), np.arange(3))
    assert E @ found.x0 + [-1.0, -3.0, 5.0] == pytest.approx([1.0, -1.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("solver", ["exact", "auto"])
def test_a_matrix_that_is_not_positive_definite_is_not_answered(solver: str) -> None:
    """Elimination keeps it so: on what rows allow, the matrix is indefinite."""
    A = sl.block_diag(np.eye(3), np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    problem = make_problem(
        A, np.ones(6), np.zeros((0, 6)), np.zeros(0), 0.3, dt=0.1, groups=[Group("a", 0, 3, "nodes"), Group("b", 3, 6, "nodes")]
    )
    problem = replace(problem, rows=make_rows(np.eye(6)[[0]], 0.1))
    assert np.linalg.eigvalsh(Reduction(problem).reduced.A.toarray()).min() < -0.9
    with pytest.raises(ContactError, match="not positive definite"):
        make_solver(solver).solve(problem)
    for place, entry in ((5, np.nan), (0, -1.0)):  # the second is held by the row, and gone from what is left
        wrong = A.copy()
        wrong[place, place] = entry
        wrong[4, 3] = wrong[3, 4] = 0.0
        with pytest.raises(ContactError, match="not positive definite"):
            make_solver(solver).solve(replace(problem, A=sp.csc_matrix(wrong)))


def test_rows_are_laid_with_their_factors_and_one_entry_more() -> None:
    rng = np.random.default_rng(5)
    G = sp.random_array((6, 9), density=0.4, random_state=rng, format="csr")
    G.sort_indices()
    source, factor = np.array([4, -1, 0, 0, -1, 5]), np.array([2.0, 7.0, -1.0, 0.5, 1.0, 1.0])
    more = np.array([10, 9, -1, 11, -1, 9])
    indptr, indices, data = np.full(7, -5), np.full(60, -5), np.full(60, np.nan)
    count = kernels.lay_rows(G.indptr, G.indices, G.data, source, factor, more, indptr, indices, data)
    expected = np.zeros((6, 12))
    for r in range(6):
        if source[r] >= 0:
            expected[r, :9] = factor[r] * G.toarray()[source[r]]
        if more[r] >= 0:
            expected[r, more[r]] = 1.0
    laid = sp.csr_array((data[:count], indices[:count], indptr), shape=(6, 12))
    laid.check_format()
    assert laid.has_sorted_indices
    np.testing.assert_array_equal(laid.toarray(), expected)
