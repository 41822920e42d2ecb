"""Small sparse matrices and the backends that factorize them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from contact import ContactError
from contact.linear import Factorization, make_factorization


def backend_runs(name: str) -> bool:
    try:
        make_factorization(name)  # type: ignore[arg-type]
    except ContactError:
        return False
    return True


needs_pardiso = pytest.mark.skipif(not backend_runs("pardiso"), reason="MKL Pardiso does not run on this machine")


BACKENDS = [pytest.param("pardiso", marks=needs_pardiso), "superlu"]


def sparse_spd(rng: np.random.Generator, n: int, density: float = 0.1) -> sp.csc_matrix:
    """Random sparse symmetric positive definite matrix, well conditioned."""
    B = sp.random(n, n, density, random_state=rng, format="csc")
    A = sp.csc_matrix(B @ B.T + sp.diags(rng.uniform(0.5, 2.0, n)))
    A.sort_indices()
    return A


def assert_inverse(made: Factorization, A: sp.csc_matrix, patch: np.ndarray, rng: np.random.Generator) -> None:
    """Everything that a factorization can be asked, against the dense inverse."""
    inverse = np.linalg.inv(A.toarray())
    n, m = A.shape[0], len(patch)
    atol = 1e-12 * abs(inverse).max() * n
    assert np.array_equal(made.patch, patch)
    assert made.compliance.shape == (m, m) and made.compliance.flags.c_contiguous
    np.testing.assert_allclose(made.compliance, inverse[np.ix_(patch, patch)], rtol=0, atol=atol)
    assert np.array_equal(made.compliance, made.compliance.T)
    b, force = rng.standard_normal(n), rng.standard_normal(m)
    kept = b.copy()
    for right in (b, rng.standard_normal((n, 1)), rng.standard_normal((n, 5)), np.asfortranarray(rng.standard_normal((n, 2)))):
        found = made.solve(right)
        assert found.shape == right.shape
        np.testing.assert_allclose(found, inverse @ right, rtol=0, atol=10 * atol)
    np.testing.assert_allclose(made.begin(b), (inverse @ b)[patch], rtol=0, atol=10 * atol)
    loaded = b.copy()
    loaded[patch] += force
    for _ in range(2):  # finish may be asked again, and begin and solve leave b alone
        np.testing.assert_allclose(made.finish(force), inverse @ loaded, rtol=0, atol=10 * atol)
    assert np.array_equal(b, kept)
