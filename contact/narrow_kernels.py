"""Compliances of contacts by bodies whose part of A is narrow, as those of rods are: the inverse near its diagonal."""

from __future__ import annotations

import numpy as np

from contact.compiled import njit


@njit(cache=True)
def find_blocks(indptr: np.ndarray, indices: np.ndarray, start: np.ndarray, width: np.ndarray) -> int:
    """Cut a symmetric A into blocks of rows that follow each other and that nothing couples to others.

    Fills the first row and the width of each block, max |i - j| of its entries; ``start``, (n + 1,), also has the end of the
    last one. Returns how many there are.
    """
    count, reach, widest, n = 0, 0, 0, indptr.shape[0] - 1
    start[0] = 0
    for j in range(n):
        for k in range(indptr[j], indptr[j + 1]):
            i = indices[k]
            if i > reach:
                reach = i
            if i - j > widest:
                widest = i - j
        if reach <= j:
            width[count] = widest
            count += 1
            start[count] = j + 1
            reach, widest = j + 1, 0
    return count


@njit(cache=True)
def banded_block(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, first: int, last: int, band: np.ndarray) -> None:
    """Fill the lower band of a block of A, ``band[j - first, i - j]`` = a_ij; it is 0 before."""
    for j in range(first, last):
        for k in range(indptr[j], indptr[j + 1]):
            if indices[k] >= j:
                band[j - first, indices[k] - j] = data[k]


@njit(cache=True)
def factorize_band(band: np.ndarray) -> bool:
    """Replace a lower band by its factors A = L D L^T, D in its first column; False where a pivot is not positive."""
    n, width = band.shape[0], band.shape[1] - 1
    for j in range(n):
        pivot = band[j, 0]
        if not pivot > 0.0:
            return False
        most = min(width, n - 1 - j)
        for i in range(1, most + 1):
            factor = band[j, i] / pivot
            for k in range(i, most + 1):
                band[j + i, k - i] -= factor * band[j, k]
        for i in range(1, most + 1):
            band[j, i] /= pivot
    return True


@njit(cache=True)
def invert_band(factors: np.ndarray, inverse: np.ndarray) -> None:
    """Fill the lower band of A^-1 from that of the factors: Z = D^-1 L^-1 + (I - L^T) Z, from the last row to the first.

    This is Takahashi's recurrence, in which an entry within the band asks only for others within it.
    """
    n, width = factors.shape[0], factors.shape[1] - 1
    for j in range(n - 1, -1, -1):
        most, diagonal = min(width, n - 1 - j), 1.0 / factors[j, 0]
        for i in range(most, 0, -1):
            total = 0.0
            for k in range(1, i):
                total -= factors[j, k] * inverse[j + k, i - k]
            for k in range(i, most + 1):
                total -= factors[j, k] * inverse[j + i, k - i]
            inverse[j, i] = total
            diagonal -= factors[j, i] * total
        inverse[j, 0] = diagonal


@njit(cache=True)
def near_diagonal(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, start: np.ndarray, width: np.ndarray, place: np.ndarray,
    flat: np.ndarray,
) -> bool:  # fmt: skip
    """Fill the inverse of A near its diagonal, block by block, row j from ``place[j]`` to ``place[j + 1]``; 0 before.

    A block of width 0 gets 1 / a_jj, whatever else it has. False where a block is not positive definite.
    """
    for block in range(width.shape[0]):
        first, last, columns = start[block], start[block + 1], width[block] + 1
        inverse = flat[place[first] : place[last]].reshape(last - first, columns)
        if columns == 1:
            for j in range(first, last):
                for k in range(indptr[j], indptr[j + 1]):
                    if indices[k] == j:
                        inverse[j - first, 0] = 1.0 / data[k]
            continue
        factors = np.zeros((last - first, columns))
        banded_block(indptr, indices, data, first, last, factors)
        if not factorize_band(factors):
            return False
        invert_band(factors, inverse)
    return True


@njit(cache=True)
def compliances(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, last: np.ndarray, place: np.ndarray, flat: np.ndarray,
    out: np.ndarray,
) -> None:  # fmt: skip
    """Diagonal of J Z J^T, (3 nc,), for J in compressed rows and Z, a part of A^-1, as ``near_diagonal`` leaves it.

    ``last``, (n,), is the last row + 1 of the block of each row. Places of a block that are farther apart than its width count as
    not coupled.
    """
    for r in range(out.shape[0]):
        out[r] = 0.0
        for k in range(indptr[r], indptr[r + 1]):
            p = indices[k]
            for m in range(indptr[r], indptr[r + 1]):
                q = indices[m]
                if p <= q < last[p] and q - p < place[p + 1] - place[p]:
                    out[r] += (1.0 if p == q else 2.0) * data[k] * data[m] * flat[place[p] + q - p]
