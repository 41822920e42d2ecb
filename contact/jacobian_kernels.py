"""Loops over a contact Jacobian in compressed rows, and over A in compressed columns.

Products with vectors sum in the order of scipy's, so the results are the same to the last bit; but what scipy asks before each
product takes it several times as long as the product of a small Jacobian. Indices become unsigned where that pays: a signed one
is asked in each round whether it counts from the end, which doubles the time of a product with A.
"""

from __future__ import annotations

import numpy as np

from contact.compiled import njit


@njit(cache=True)
def gather(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, v: np.ndarray, out: np.ndarray) -> None:
    """Fill out = J v, one entry a row of J; J may be any matrix in compressed rows."""
    for i in range(out.shape[0]):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += data[k] * v[np.uint64(indices[k])]
        out[i] = total


@njit(cache=True)
def contact_velocities(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, v: np.ndarray, phi: np.ndarray, out: np.ndarray
) -> None:
    """Fill out = J v + phi, (nc, 3)."""
    for m in range(out.shape[0]):
        for c in range(3):
            total = 0.0
            for k in range(np.uint64(indptr[3 * m + c]), np.uint64(indptr[3 * m + c + 1])):
                total += data[k] * v[np.uint64(indices[k])]
            out[m, c] = total + phi[m, c]


@njit(cache=True)
def is_slower(u: np.ndarray, lam: np.ndarray, v: np.ndarray, part: float) -> bool:
    """Whether a contact velocity u is at most such a part of the largest component of v, and it or its force lam is not zero.

    ``u`` and ``lam`` are (nc, 3).
    """
    most = 0.0
    for j in range(v.shape[0]):
        most = max(most, abs(v[j]))
    for m in range(u.shape[0]):
        if max(abs(u[m, 0]), abs(u[m, 1]), abs(u[m, 2])) > part * most:
            continue
        for c in range(3):
            if u[m, c] != 0.0 or lam[m, c] != 0.0:
                return True
    return False


@njit(cache=True)
def hush(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, sizes: np.ndarray, phi: np.ndarray, rho: np.ndarray, part: float,
    u: np.ndarray, lam: np.ndarray,
) -> None:  # fmt: skip
    """Set to zero where both are rounding: velocities u up to such a part of |J| sizes + |phi|, forces lam up to rho times that.

    ``u``, ``lam`` and ``phi`` are (nc, 3), ``rho`` is (nc,), ``sizes`` (n,).
    """
    for m in range(u.shape[0]):
        reach = 0.0
        for c in range(3):
            total = abs(phi[m, c])
            for k in range(np.uint64(indptr[3 * m + c]), np.uint64(indptr[3 * m + c + 1])):
                total += abs(data[k]) * sizes[np.uint64(indices[k])]
            reach = max(reach, total)
        fast, strong = 0.0, 0.0
        for c in range(3):
            fast, strong = max(fast, abs(u[m, c])), max(strong, abs(lam[m, c]))
        if fast <= part * reach and strong <= part * reach * rho[m]:
            u[m, :], lam[m, :] = 0.0, 0.0


@njit(cache=True)
def scatter(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, lam: np.ndarray, out: np.ndarray) -> None:
    """Fill out = J^T lam, lam with one entry a row of J."""
    out[:] = 0.0
    for i in range(lam.shape[0]):
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            out[np.uint64(indices[k])] += data[k] * lam[i]


@njit(cache=True)
def scatter_with_squares(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, v: np.ndarray, out: np.ndarray, squares: np.ndarray
) -> None:
    """Fill out = A v as :func:`scatter` does, and squares with the sums of the squares of its terms; A in compressed columns."""
    out[:], squares[:] = 0.0, 0.0
    for j in range(v.shape[0]):
        for k in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i, term = np.uint64(indices[k]), data[k] * v[j]
            out[i] += term
            squares[i] += term * term


@njit(cache=True)
def pick_contacts(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, chosen: np.ndarray,
    out_indptr: np.ndarray, out_indices: np.ndarray, out_data: np.ndarray,
) -> int:  # fmt: skip
    """Fill the rows of J of the contacts that are ``chosen``, (nc,) bool, three each; return how many entries they have."""
    row, entry = 0, 0
    out_indptr[0] = 0
    for i in range(indptr.shape[0] - 1):
        if not chosen[i // 3]:
            continue
        for k in range(indptr[i], indptr[i + 1]):
            out_indices[entry], out_data[entry] = indices[k], data[k]
            entry += 1
        row += 1
        out_indptr[row] = entry
    return entry


@njit(cache=True, inner=True, error_model="numpy")
def compliances(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, diagonal: np.ndarray, out: np.ndarray) -> None:
    """Fill the diagonal of J D^-1 J^T, one entry a row of J, for D = diag(diagonal) with positive entries."""
    for i in range(out.shape[0]):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * data[k] / diagonal[indices[k]]
        out[i] = total


@njit(cache=True)
def diagonal(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, out: np.ndarray) -> bool:
    """Fill the diagonal, ``out`` (n,), of a square matrix in compressed columns; return whether every entry was found.

    ``indptr`` (n + 1,), ``indices`` and ``data`` (nnz,), the rows of each column sorted.
    scipy reads the whole matrix for it, which takes four times as long on the gripped ball (125 us instead of 30).
    """
    for j in range(out.shape[0]):
        first, last = indptr[j], indptr[j + 1]
        while first < last:
            middle = (first + last) // 2
            if indices[middle] < j:
                first = middle + 1
            else:
                last = middle
        if first == indptr[j + 1] or indices[first] != j:
            return False
        out[j] = data[first]
    return True


@njit(cache=True)
def mark_columns(indptr: np.ndarray, indices: np.ndarray, out: np.ndarray) -> int:
    """Set out (n,), bool, where a column of J has entries; return how many rows have some."""
    rows = 0
    for i in range(indptr.shape[0] - 1):
        rows += indptr[i + 1] > indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            out[indices[k]] = True
    return rows


@njit(cache=True)
def pushed_unknowns(
    indptr: np.ndarray, indices: np.ndarray, start: np.ndarray, stop: np.ndarray, diagonal: np.ndarray, columns: np.ndarray
) -> tuple[int, int, float, float]:
    """Return what contacts push of rigid bodies and robots, the rows from ``start`` to ``stop`` (groups,) of each.

    Rows of J that have entries, and the unknowns that they push: all of a body on whose first six rows they act, else the joints
    on which they act; and the least and the largest first entry of A, its ``diagonal`` (n,), of such bodies, 1 where there is
    none. What has fewer rows is no body, as that of the dry friction of a joint. ``columns``, (n,), are marked as by
    :func:`mark_columns`.
    """
    rows, pushed = mark_columns(indptr, indices, columns), 0
    least, largest, bodies = 1.0, 1.0, 0
    for g in range(start.shape[0]):
        whole, joints = False, 0
        for i in range(start[g], stop[g]):
            joints += columns[i]
            whole = whole or (columns[i] and i < start[g] + 6 <= stop[g])
        pushed += stop[g] - start[g] if whole else joints
        if whole:
            first = diagonal[start[g]]
            least, largest = (min(least, first), max(largest, first)) if bodies else (first, first)
            bodies += 1
    return rows, pushed, least, largest


@njit(cache=True, inner=True)
def taking_part(indptr: np.ndarray, indices: np.ndarray, stops: np.ndarray, out: np.ndarray) -> None:
    """Set out (groups, nc), bool, where a contact has columns in a group; groups follow one another and end before ``stops``."""
    for i in range(indptr.shape[0] - 1):
        for k in range(indptr[i], indptr[i + 1]):
            group = 0
            while indices[k] >= stops[group]:
                group += 1
            out[group, i // 3] = True
