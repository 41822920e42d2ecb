"""Direct solvers behind one face: both backends against dense numpy, also on odd patches, and their refusals."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from small_matrices import BACKENDS, assert_inverse, needs_pardiso, sparse_spd

from contact import ContactError
from contact.linear import DenseCholesky, Factorization, Pardiso, make_factorization
from contact.mkl import address


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("patch", [rows(), rows(7), rows(0, 3, 4, 20, 39), np.arange(5, 30), np.arange(32)])
def test_solves_and_compliance_are_those_of_the_dense_inverse(backend: str, patch: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    A = sparse_spd(rng, 40)
    made = make_factorization(backend)  # type: ignore[arg-type]
    assert made.name == backend
    made.factorize(A, patch)
    assert_inverse(made, A, patch, rng)


@pytest.mark.parametrize("patch", [rows(), rows(7), rows(0, 3, 4, 11), np.arange(12)])
def test_dense_factors_are_those_of_the_dense_inverse_also_with_all_rows_kept(patch: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    A, made = sparse_spd(rng, 12), DenseCholesky()
    made.factorize(A, patch)
    assert_inverse(made, A, patch, rng)
    A.data[:] *= -1.0
    with pytest.raises(ContactError, match="not positive definite"):
        made.factorize(A, patch)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_factorization_serves_new_values_other_patches_and_other_patterns(backend: str) -> None:
    """In an order in which each change comes alone and together with others, also back to a patch of before."""
    rng = np.random.default_rng(1)
    A = sparse_spd(rng, 30)
    stiffer = sp.csc_matrix((A.data * 3.0, A.indices, A.indptr), shape=A.shape)
    stiffer.data[A.indices == np.repeat(np.arange(30), np.diff(A.indptr))] += 1.0
    other, smaller = sparse_spd(rng, 30, 0.3), sparse_spd(rng, 11)
    made = make_factorization(backend)  # type: ignore[arg-type]
    for matrix, patch in (
        (A, rows(2, 3)), (stiffer, rows(2, 3)), (stiffer, rows(1, 3)), (A, rows(0, 1, 2)), (A, rows()), (stiffer, rows()),
        (other, rows()), (other, rows(4, 5)), (smaller, rows(4, 5)), (smaller, rows(0)), (A, rows(2, 3)),
    ):  # fmt: skip
        made.factorize(matrix, patch)
        assert_inverse(made, matrix, patch, rng)


@pytest.mark.parametrize("backend", BACKENDS)
def test_uncoupled_blocks(backend: str) -> None:
    """Bodies that do not touch: a patch in one of them, in several, and one that is all of a body."""
    rng = np.random.default_rng(2)
    A = sp.csc_matrix(sp.block_diag([sparse_spd(rng, 12), 3.0 * sp.eye(1), sparse_spd(rng, 6, 1.0), 2.0 * sp.eye(5)]))
    A.sort_indices()
    made = make_factorization(backend)  # type: ignore[arg-type]
    for patch in (rows(1, 5), rows(12), rows(1, 12, 14, 20), np.arange(13, 19), np.arange(12, 24), rows()):
        made.factorize(A, patch)
        assert_inverse(made, A, patch, rng)
    found = made.solve(np.eye(24)[12])
    assert found[12] == pytest.approx(1.0 / 3.0, rel=1e-15) and np.flatnonzero(found).tolist() == [12]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_matrix_of_one_row(backend: str) -> None:
    made = make_factorization(backend)  # type: ignore[arg-type]
    made.factorize(sp.csc_matrix([[4.0]]), rows())
    assert made.solve(np.array([2.0])) == 0.5 and made.compliance.shape == (0, 0)


@needs_pardiso
def test_unsorted_rows_are_refused_by_pardiso() -> None:
    """MKL would read what is not there: with such a matrix the process ended."""
    A = sparse_spd(np.random.default_rng(0), 40)
    start, stop = A.indptr[3], A.indptr[4]
    A.indices[start:stop], A.data[start:stop] = A.indices[start:stop][::-1].copy(), A.data[start:stop][::-1].copy()
    A.has_sorted_indices = False
    with pytest.raises(ContactError, match="not sorted within its columns"):
        Pardiso().factorize(A, rows(0, 3))


@needs_pardiso
def test_a_patch_of_all_rows_is_refused_by_pardiso() -> None:
    """MKL ends the process at times; superlu takes it."""
    A = sp.csc_matrix(2.0 * sp.eye(4))
    with pytest.raises(ContactError, match=r"all 4 rows of A; .* use backend 'superlu'"):
        make_factorization("pardiso").factorize(A, np.arange(4))
    made = make_factorization("superlu")
    made.factorize(A, np.arange(4))
    assert_inverse(made, A, np.arange(4), np.random.default_rng(0))


UNJOINED = """
import numpy as np, scipy.sparse as sp
from small_matrices import assert_inverse
from contact.linear import make_factorization
made = make_factorization("pardiso")
for seed in range(30):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    patch = np.sort(rng.choice(n, int(rng.integers(1, n)), replace=False))
    A = np.zeros((n, n))
    for row in patch:
        A[row, rng.integers(n)] = -rng.random()
    A += A.T
    np.fill_diagonal(A, 0.0)
    np.fill_diagonal(A, 1.0 + np.abs(A).sum(axis=0))
    for factor in (1.0, 2.0):
        made.factorize(sp.csc_matrix(factor * A), patch)
        assert_inverse(made, sp.csc_matrix(factor * A), patch, rng)
print("done")
"""


@needs_pardiso
@pytest.mark.parametrize("filling", ["20", "170", "255"])
def test_rows_joined_by_the_patch_alone_do_not_crash_mkl(filling: str) -> None:
    """MKL reads memory that it never set there unless told otherwise; filled with 170, that ended the process."""
    folder, environment = str(Path(__file__).parent), {**os.environ, "MALLOC_PERTURB_": filling}
    done = subprocess.run(
        [sys.executable, "-c", UNJOINED], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr[-2000:]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_numbers_of_other_types_are_solved_for(backend: str, kind: type) -> None:
    """MKL would read and write them as float64, past their end."""
    A = sparse_spd(np.random.default_rng(4), 20)
    made = make_factorization(backend)  # type: ignore[arg-type]
    made.factorize(A, rows(2, 7))
    b = np.arange(20).astype(kind)
    right = np.linalg.solve(A.toarray(), b.astype(float))
    assert np.allclose(made.solve(b), right)
    assert np.allclose(made.begin(b), right[[2, 7]])
    assert np.allclose(made.finish(np.zeros(2)), right)
    single = sp.csc_matrix((A.data.astype(np.float32), A.indices, A.indptr), shape=A.shape)
    made.factorize(single, rows(2, 7))
    assert np.allclose(made.solve(b), right, rtol=1e-4)


@needs_pardiso
def test_factors_of_single_precision_are_right_to_it_at_any_size_of_numbers_and_make_way_for_others() -> None:
    rng = np.random.default_rng(8)
    A, patch, force = sparse_spd(rng, 60), rows(3, 4, 17), np.array([1.0, -2.0, 0.5])
    made, b = Pardiso(), rng.standard_normal(60)
    unit = np.zeros(60)
    unit[patch] = force
    for single in (True, False, True):
        made.factorize(A, patch, single=single)
        for size in (1e-40, 1.0, 1e40):  # float32 ends at 1e-38 and 3e38
            right = np.linalg.solve(A.toarray(), size * np.column_stack([b, unit, b + unit]))
            found = [made.solve(size * b), made.solve(size * np.column_stack([b, unit]))[:, 1]]
            begun = made.begin(size * b)
            found.append(made.finish(size * force))
            wrong = [np.abs(x - right[:, k]).max() / np.abs(right[:, k]).max() for k, x in enumerate(found)]
            wrong.append(np.abs(begun - right[patch, 0]).max() / np.abs(right[:, 0]).max())
            assert max(wrong) < (1e-4 if single else 1e-12)
            assert min(wrong) > 1e-9 or not single  # else it is not what it says
    with pytest.raises(ContactError, match="not positive definite"):
        made.factorize(-A, patch, single=True)


FUZZ = """
import numpy as np, scipy.sparse as sp
from small_matrices import assert_inverse, sparse_spd
from contact.linear import make_factorization
made = make_factorization("pardiso")
for seed in range(40):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    A = sparse_spd(rng, n, rng.choice([0.0, 0.05, 0.3, 1.0]))
    patch = np.sort(rng.choice(n, int(rng.uniform(0.0, 0.8) * n), replace=False))
    made.factorize(A, patch)
    assert_inverse(made, A, patch, rng)
print("done")
"""


@needs_pardiso
def test_random_patches_up_to_the_largest_used_do_not_crash_mkl() -> None:
    """A process of its own, since MKL may end it where it fails."""
    folder = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", FUZZ], cwd=folder, env=None, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr[-2000:]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("matrix", "patch"),
    [
        (np.diag([1.0, -1, 2, 3]), rows(3)),  # outside the patch
        (np.diag([1.0, -1, 2, 3]), rows(1)),  # in the patch: the Schur complement
        (np.diag([1.0, -1, 2, 3]), rows()),
        ([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]], rows(2)),  # with a positive diagonal
        ([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]], rows(0, 2)),
        ([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]], rows()),
        (np.ones((3, 3)), rows(1)),  # singular
        (np.ones((3, 3)), rows()),
    ],
)
def test_a_matrix_that_is_not_positive_definite_is_refused_and_the_next_one_is_not(
    backend: str, matrix: np.ndarray, patch: np.ndarray
) -> None:
    made = make_factorization(backend)  # type: ignore[arg-type]
    with pytest.raises(ContactError, match="A is not positive definite"):
        made.factorize(sp.csc_matrix(np.array(matrix)), patch)
    rng = np.random.default_rng(3)
    A = sparse_spd(rng, 9)
    made.factorize(A, rows(2, 4))
    assert_inverse(made, A, rows(2, 4), rng)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_matrix_gives_the_same_bits(backend: str) -> None:
    rng = np.random.default_rng(4)
    A, patch, b = sparse_spd(rng, 200, 0.03), np.arange(20, 60), rng.standard_normal(200)
    found = []
    for _ in range(3):
        made = make_factorization(backend)  # type: ignore[arg-type]
        made.factorize(A, patch)
        made.factorize(A, patch)
        made.begin(b)
        found.append(made.compliance.tobytes() + made.solve(b).tobytes() + made.finish(b[:40]).tobytes())
    assert found[0] == found[1] == found[2]


def test_unknown_backends_are_named() -> None:
    for name in ("mkl", "", "Pardiso"):
        with pytest.raises(ContactError, match=rf"backend is '{name}'; allowed are 'auto', 'pardiso' and 'superlu'"):
            make_factorization(name)  # type: ignore[arg-type]


def test_without_pypardiso_auto_takes_superlu_and_pardiso_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert make_factorization().name == "superlu"
    with pytest.raises(ContactError, match=r"'pardiso' does not run here .*not installed.*; install pypardiso, or use 'superlu'"):
        make_factorization("pardiso")


@needs_pardiso
def test_auto_takes_pardiso_where_it_runs() -> None:
    assert make_factorization().name == "pardiso"


def resident_kilobytes() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


@needs_pardiso
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_factors_are_released() -> None:
    """50 factorizations of a matrix whose factors take about 2 MB each: made and dropped, and made over one another."""
    grid = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(12, 12))
    eye = sp.eye(12)
    A = -sp.csc_matrix(sp.kron(sp.kron(grid, eye), eye) + sp.kron(sp.kron(eye, grid), eye) + sp.kron(sp.kron(eye, eye), grid))
    A = sp.csc_matrix(A + sp.eye(12**3))
    A.sort_indices()

    def work(made: Factorization, first: int) -> None:
        made.factorize(A, np.arange(first, first + 20))

    for again in range(2):
        kept = make_factorization("pardiso")
        for k in range(25):
            work(make_factorization("pardiso"), k)
            work(kept, k)
            if k == 3:
                gc.collect()
                start = resident_kilobytes()
        gc.collect()
        assert resident_kilobytes() - start < 10_000, again


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros(2, np.float32), np.zeros(5)[2:], np.zeros(0), np.zeros((2, 3), order="F")]
)
def test_addresses_are_those_of_numpy(array: np.ndarray) -> None:
    assert address(array) == array.ctypes.data
    array.flags.writeable = False
    assert address(array) == array.ctypes.data
