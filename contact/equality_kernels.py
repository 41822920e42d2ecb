"""Compiled kernels of equality rows: what they join, which of them have columns of their own, and products with a basis.

Matrices are in compressed rows, or symmetric ones in compressed columns. A basis Z of x = Z y has the rows of a unit matrix where
columns are kept, and dense rows, all y of the set, where equalities join them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contact.compiled import njit


class Basis(NamedTuple):
    """Basis Z, x = Z y, of what equalities allow.

    Attributes
    ----------
    kept : ndarray of int64, (N,)
        Entry of y that a column of x is; -1 where rows join it. They grow.
    set_of : ndarray of int64, (N,)
        Set of each column; -1 of those that are kept.
    place : ndarray of int64, (N,)
        Where the row of Z of a joined column starts in ``values``.
    values : ndarray
        These rows.
    start, width : ndarray of int64, (sets,)
        First entry of y of each set, and how many it has; they follow those that are kept, in order.
    """

    kept: np.ndarray
    set_of: np.ndarray
    place: np.ndarray
    values: np.ndarray
    start: np.ndarray
    width: np.ndarray


@njit(cache=True, inner=True)
def root_of(parent: np.ndarray, i: int) -> int:
    """Return the first of those that are joined with i, and shorten the way to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True)
def join(indptr: np.ndarray, indices: np.ndarray, node: np.ndarray, of_row: np.ndarray, of_column: np.ndarray) -> int:
    """Fill the sets of rows (p,) and columns (N,), -1 for none; return how many there are, in the order of their first rows.

    Columns of one node, ``node`` (N,) in 0 to N - 1, belong together.
    """
    p, N = of_row.shape[0], node.shape[0]
    parent, number, count = np.arange(N), np.full(N, -1), 0
    for r in range(p):
        for k in range(indptr[r] + 1, indptr[r + 1]):
            a, b = root_of(parent, node[indices[k - 1]]), root_of(parent, node[indices[k]])
            parent[max(a, b)] = min(a, b)
    for r in range(p):
        of_row[r] = -1
        if indptr[r + 1] > indptr[r]:
            root = root_of(parent, node[indices[indptr[r]]])
            if number[root] < 0:
                number[root] = count
                count += 1
            of_row[r] = number[root]
    for c in range(N):
        of_column[c] = number[root_of(parent, node[c])]
    return count


@njit(cache=True)
def find_own(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    scale: np.ndarray,
    size: np.ndarray,
    least: float,
    rows: np.ndarray,
    entries: np.ndarray,
) -> int:
    """Fill rows and the entries of them by which they are eliminated, in order; return how many.

    A row goes when one of its columns is in no other row that is left, and the entry there is not less than ``least`` of the
    ``size``, (p,), of the vector of the row, columns by their ``scale``. So a chain is eliminated from its ends.
    """
    p, N = indptr.shape[0] - 1, scale.shape[0]
    count, total, gone, found = np.zeros(N, dtype=np.int64), np.zeros(N, dtype=np.int64), np.zeros(p, dtype=np.bool_), 0
    queue, first, last = np.empty(p + data.shape[0], dtype=np.int64), 0, p
    for r in range(p):
        queue[r] = r
        for k in range(indptr[r], indptr[r + 1]):
            if data[k] != 0.0:
                count[indices[k]] += 1
                total[indices[k]] += r
    while first < last:
        r, best, most = queue[first], -1, 0.0
        first += 1
        if gone[r]:
            continue
        for k in range(indptr[r], indptr[r + 1]):
            entry = abs(data[k]) * scale[indices[k]]
            if count[indices[k]] == 1 and entry > most:
                best, most = k, entry
        if best < 0 or most < least * size[r]:
            continue
        rows[found], entries[found], gone[r] = r, best, True
        found += 1
        for k in range(indptr[r], indptr[r + 1]):
            c = indices[k]
            if data[k] != 0.0:
                count[c] -= 1
                total[c] -= r
                if count[c] == 1:
                    queue[last] = total[c]
                    last += 1
    return found


@njit(cache=True)
def by_sets(set_of: np.ndarray, chosen: np.ndarray, ptr: np.ndarray, members: np.ndarray) -> None:
    """Fill those that are ``chosen`` by sets: members of set s from ``ptr[s]`` on, in order; ``ptr`` is 0 before."""
    for i in range(set_of.shape[0]):
        if chosen[i] and set_of[i] >= 0:
            ptr[set_of[i] + 1] += 1
    for s in range(1, ptr.shape[0]):
        ptr[s] += ptr[s - 1]
    filled = ptr.copy()
    for i in range(set_of.shape[0]):
        if chosen[i] and set_of[i] >= 0:
            members[filled[set_of[i]]] = i
            filled[set_of[i]] += 1


@njit(cache=True)
def lay_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    source: np.ndarray,
    factor: np.ndarray,
    more: np.ndarray,
    out_indptr: np.ndarray,
    out_indices: np.ndarray,
    out_data: np.ndarray,
) -> int:
    """Fill a matrix whose row r is a row of another times ``factor``, then 1 at column ``more``; return its entries.

    ``source`` (m,) and ``more`` (m,) are -1 where there is none; what is filled has room for what is in them. Columns of ``more``
    lie behind those of the other matrix.
    """
    count = 0
    out_indptr[0] = 0
    for r in range(source.shape[0]):
        if source[r] >= 0:
            for k in range(indptr[source[r]], indptr[source[r] + 1]):
                out_indices[count] = indices[k]
                out_data[count] = factor[r] * data[k]
                count += 1
        if more[r] >= 0:
            out_indices[count] = more[r]
            out_data[count] = 1.0
            count += 1
        out_indptr[r + 1] = count
    return count


@njit(cache=True)
def gather_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    at: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill some rows and columns as a dense matrix, which is 0 before; ``at`` (N,) is scratch. Entries elsewhere are left out."""
    at[:] = -1
    for c in range(columns.shape[0]):
        at[columns[c]] = c
    for r in range(rows.shape[0]):
        for k in range(indptr[rows[r]], indptr[rows[r] + 1]):
            if at[indices[k]] >= 0:
                out[r, at[indices[k]]] += data[k]


@njit(cache=True)
def fill_own(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    rows: np.ndarray,
    entries: np.ndarray,
    offset: np.ndarray,
    nothing: float,
    basis: Basis,
    x0: np.ndarray,
) -> None:
    """Fill the rows of Z and the entries of x0 of the columns by which rows are eliminated, the last ones first.

    What is left of a row of basis, but for ``nothing`` of its terms, is zero.
    """
    for i in range(rows.shape[0] - 1, -1, -1):
        r, own = rows[i], indices[entries[i]]
        s, at, by = basis.set_of[own], basis.place[own], -1.0 / data[entries[i]]
        most, total, largest, width = 0.0, offset[r], 0.0, basis.width[s]
        for m in range(width):
            basis.values[at + m] = 0.0
        for k in range(indptr[r], indptr[r + 1]):
            c = indices[k]
            if k == entries[i]:
                continue
            total += data[k] * x0[c]
            reach = 0.0
            for m in range(width):
                term = by * data[k] * basis.values[basis.place[c] + m]
                basis.values[at + m] += term
                reach = max(reach, abs(term))
            most += reach
        x0[own] = by * total
        for m in range(width):
            largest = max(largest, abs(basis.values[at + m]))
        if largest <= nothing * most:
            for m in range(width):
                basis.values[at + m] = 0.0


@njit(cache=True)
def push_own(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    rows: np.ndarray,
    entries: np.ndarray,
    force: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill the forces of rows that are eliminated, each by its own column, and take from ``force`` (N,) what they push."""
    for i in range(rows.shape[0]):
        r = rows[i]
        out[r] = force[indices[entries[i]]] / data[entries[i]]
        for k in range(indptr[r], indptr[r + 1]):
            force[indices[k]] -= data[k] * out[r]


@njit(cache=True)
def expand(basis: Basis, y: np.ndarray, out: np.ndarray) -> None:
    """Add Z y to out, (N,)."""
    for c in range(out.shape[0]):
        if basis.kept[c] >= 0:
            out[c] += y[basis.kept[c]]
        else:
            at, first, total = basis.place[c], basis.start[basis.set_of[c]], 0.0
            for m in range(basis.width[basis.set_of[c]]):
                total += basis.values[at + m] * y[first + m]
            out[c] += total


@njit(cache=True)
def shorten(basis: Basis, x: np.ndarray, out: np.ndarray) -> None:
    """Fill out = Z^T x."""
    out[:] = 0.0
    for c in range(x.shape[0]):
        if basis.kept[c] >= 0:
            out[basis.kept[c]] += x[c]
        else:
            at, first = basis.place[c], basis.start[basis.set_of[c]]
            for m in range(basis.width[basis.set_of[c]]):
                out[first + m] += basis.values[at + m] * x[c]


@njit(cache=True, inner=True)
def count_touching(indptr: np.ndarray, indices: np.ndarray, basis: Basis, touching: np.ndarray, met: np.ndarray) -> None:
    """Fill how many kept columns have entries in each set, (sets,) of 0, and which sets have entries in which, (sets, sets)."""
    sets = basis.start.shape[0]
    seen = np.full(sets, -1)
    for j in range(basis.kept.shape[0]):
        for k in range(indptr[j], indptr[j + 1]):
            s = basis.set_of[indices[k]]
            if s < 0:
                continue
            if basis.kept[j] < 0:
                met[s, basis.set_of[j]] = met[basis.set_of[j], s] = True
            elif seen[s] != j:
                seen[s] = j
                touching[s] += 1


@njit(cache=True)
def project(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, basis: Basis, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Z^T A Z, (n, n), in compressed columns, exactly symmetric, for a symmetric A; what it counts, it makes room for."""
    sets = basis.start.shape[0]
    touching, met = np.zeros(sets, dtype=np.int64), np.zeros((sets, sets), dtype=np.bool_)
    count_touching(indptr, indices, basis, touching, met)
    out_ptr, work = np.zeros(n + 1, dtype=np.int32), np.full((4, sets), -1)
    count_entries(indptr, indices, basis, touching, met, out_ptr, work[0])
    rows, out = np.empty(out_ptr[n], dtype=np.int32), np.zeros(out_ptr[n])
    fill_kept(indptr, indices, data, basis, out_ptr, rows, out, work)
    project_sets(indptr, indices, data, basis, met, touching, out_ptr, rows, out)
    return out_ptr, rows, out


@njit(cache=True, inner=True, _nrt=False)
def count_entries(
    indptr: np.ndarray,
    indices: np.ndarray,
    basis: Basis,
    touching: np.ndarray,
    met: np.ndarray,
    out_ptr: np.ndarray,
    seen: np.ndarray,
) -> None:
    """Fill where the columns of :func:`project` begin, (n + 1,) of 0; ``seen`` (sets,) is scratch."""
    seen[:] = -1
    for j in range(basis.kept.shape[0]):
        if basis.kept[j] < 0:
            continue
        count = 0
        for k in range(indptr[j], indptr[j + 1]):
            s = basis.set_of[indices[k]]
            if s < 0:
                count += 1
            elif seen[s] != j:
                seen[s] = j
                count += basis.width[s]
        out_ptr[basis.kept[j] + 1] = count
    for s in range(basis.start.shape[0]):
        count = touching[s]
        for t in range(basis.start.shape[0]):
            if met[s, t]:
                count += basis.width[t]
        for m in range(basis.width[s]):
            out_ptr[basis.start[s] + m + 1] = count
    for y in range(out_ptr.shape[0] - 1):
        out_ptr[y + 1] += out_ptr[y]


@njit(cache=True, inner=True)
def fill_kept(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    basis: Basis,
    out_ptr: np.ndarray,
    rows: np.ndarray,
    out: np.ndarray,
    work: np.ndarray,
) -> None:
    """Fill the columns of :func:`project` that are kept, and what they have in those of sets; ``work`` (4, sets) is scratch."""
    seen, touched, segment, filled = work[0], work[1], work[2], work[3]
    seen[:], filled[:] = -1, 0
    for j in range(basis.kept.shape[0]):
        y = basis.kept[j]
        if y < 0:
            continue
        at, many = out_ptr[y], 0
        for k in range(indptr[j], indptr[j + 1]):
            s = basis.set_of[indices[k]]
            if s < 0:
                rows[at], out[at] = basis.kept[indices[k]], data[k]
                at += 1
            elif seen[s] != j:
                seen[s] = j
                touched[many] = s
                many += 1
        touched[:many].sort()
        for i in range(many):
            s = touched[i]
            segment[s] = at
            for m in range(basis.width[s]):
                rows[at + m] = basis.start[s] + m
            at += basis.width[s]
        for k in range(indptr[j], indptr[j + 1]):
            s = basis.set_of[indices[k]]
            if s >= 0:
                place = basis.place[indices[k]]
                for m in range(basis.width[s]):
                    out[segment[s] + m] += data[k] * basis.values[place + m]
        for i in range(many):  # what stands in the columns of the set
            s = touched[i]
            for m in range(basis.width[s]):
                other = out_ptr[basis.start[s] + m] + filled[s]
                rows[other], out[other] = y, out[segment[s] + m]
            filled[s] += 1


@njit(cache=True, inner=True)
def project_sets(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    basis: Basis,
    met: np.ndarray,
    touching: np.ndarray,
    out_ptr: np.ndarray,
    rows: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fill the entries of :func:`project` between sets."""
    sets, widest = basis.start.shape[0], 0
    at = np.zeros((sets, sets), dtype=np.int64)  # of the block of rows of t in the columns of s
    for s in range(sets):
        below = touching[s]
        widest = max(widest, basis.width[s])
        for t in range(sets):
            if met[s, t]:
                at[s, t] = below
                below += basis.width[t]
    for s in range(sets):
        for m in range(basis.width[s]):
            for t in range(sets):
                if met[s, t]:
                    for i in range(basis.width[t]):
                        rows[out_ptr[basis.start[s] + m] + at[s, t] + i] = basis.start[t] + i
    part, seen, touched = np.zeros((sets, widest)), np.full(sets, -1), np.empty(sets, dtype=np.int64)
    for c in range(basis.kept.shape[0]):
        s = basis.set_of[c]
        if s < 0:
            continue
        many = 0
        for k in range(indptr[c], indptr[c + 1]):
            t = basis.set_of[indices[k]]
            if t < 0 or t > s:
                continue
            if seen[t] != c:
                seen[t] = c
                part[t, : basis.width[t]] = 0.0
                touched[many] = t
                many += 1
            place = basis.place[indices[k]]
            for i in range(basis.width[t]):
                part[t, i] += data[k] * basis.values[place + i]
        for h in range(many):
            t = touched[h]
            for m in range(basis.width[s]):
                first, value = out_ptr[basis.start[s] + m] + at[s, t], basis.values[basis.place[c] + m]
                for i in range(basis.width[t]):
                    out[first + i] += part[t, i] * value
    make_symmetric(basis, met, at, out_ptr, out)


@njit(cache=True, inner=True, _nrt=False)
def make_symmetric(basis: Basis, met: np.ndarray, at: np.ndarray, out_ptr: np.ndarray, out: np.ndarray) -> None:
    """Fill the blocks of later sets in the columns of earlier ones from their transposes, ``at`` (sets, sets) in the columns."""
    for s in range(basis.start.shape[0]):
        for t in range(s + 1):
            if not met[s, t]:
                continue
            for m in range(basis.width[s]):
                for i in range(basis.width[t] if t < s else m):
                    a = out_ptr[basis.start[s] + m] + at[s, t] + i
                    b = out_ptr[basis.start[t] + i] + at[t, s] + m
                    if t == s:
                        out[a] = 0.5 * (out[a] + out[b])
                    out[b] = out[a]


@njit(cache=True)
def project_rows(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, basis: Basis, scale: np.ndarray, nothing: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return J Z in compressed rows, without zeros; rows of which but rounding is left are empty.

    That is ``nothing`` of the terms, of rows that equalities touch: sum |J_ij| times ``scale`` (N,), or times the row of Z where
    that is longer.
    """
    p, sets = indptr.shape[0] - 1, basis.start.shape[0]
    bound, seen, touched = 0, np.full(sets, -1), np.empty(sets, dtype=np.int64)
    for r in range(p):
        for k in range(indptr[r], indptr[r + 1]):
            s = basis.set_of[indices[k]]
            if s < 0:
                bound += 1
            elif seen[s] != r:
                seen[s] = r
                bound += basis.width[s]
    out_ptr, columns, out = np.zeros(p + 1, dtype=np.int32), np.empty(bound, dtype=np.int32), np.empty(bound)
    segment, at = np.zeros(sets, dtype=np.int64), 0
    seen[:] = -1
    for r in range(p):
        first, many, most, largest = at, 0, 0.0, 0.0
        for k in range(indptr[r], indptr[r + 1]):
            s = basis.set_of[indices[k]]
            reach = scale[indices[k]]
            if s >= 0:
                for m in range(basis.width[s]):
                    reach = max(reach, abs(basis.values[basis.place[indices[k]] + m]))
            most += abs(data[k]) * reach
            if s < 0:
                if data[k] != 0.0:
                    columns[at], out[at] = basis.kept[indices[k]], data[k]
                    largest = max(largest, abs(data[k]))
                    at += 1
            elif seen[s] != r:
                seen[s] = r
                touched[many] = s
                many += 1
        touched[:many].sort()
        end = at
        for i in range(many):
            segment[touched[i]] = end
            out[end : end + basis.width[touched[i]]] = 0.0
            end += basis.width[touched[i]]
        for k in range(indptr[r], indptr[r + 1]):
            s = basis.set_of[indices[k]]
            if s >= 0:
                place = basis.place[indices[k]]
                for m in range(basis.width[s]):
                    out[segment[s] + m] += data[k] * basis.values[place + m]
        for i in range(many):
            for m in range(basis.width[touched[i]]):
                value = out[segment[touched[i]] + m]
                if value != 0.0:
                    columns[at], out[at] = basis.start[touched[i]] + m, value
                    largest = max(largest, abs(value))
                    at += 1
        if many and largest <= nothing * most:
            at = first
        out_ptr[r + 1] = at
    return out_ptr, columns[:at].copy(), out[:at].copy()
