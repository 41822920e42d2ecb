"""Compiled kernels of the primal Newton step: the law linearised contact by contact, and A + J^T G J on a kept pattern."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.solvers.banded_kernels import solve_tridiagonal

#: States of a contact.
OPEN, STICK, SLIDE = 0, 1, 2


class Law(NamedTuple):
    """Coulomb coefficients (nc,), compliances (nc,) in m/(N s), and shift and trial scale relative to those."""

    friction: np.ndarray
    compliance: np.ndarray
    shift: float
    trial_scale: float


class Columns(NamedTuple):
    """J by contacts: columns ``col[ptr[m]:ptr[m+1]]`` with three entries ``jac`` each, normal first."""

    ptr: np.ndarray
    col: np.ndarray
    jac: np.ndarray


class LinkBlocks(NamedTuple):
    """Contacts on links: link of each, (nc,), and its rows of J there, (nc, 3, 6)."""

    link: np.ndarray
    jacobian: np.ndarray


@njit(cache=True)
def count_columns(indptr: np.ndarray, indices: np.ndarray, n: int, ptr: np.ndarray) -> None:
    """Fill where the columns of each contact begin, ptr (nc + 1,), from J in compressed rows; one mark a column of J is made."""
    seen = np.full(n, -1, dtype=np.int64)
    ptr[0] = 0
    for m in range(ptr.shape[0] - 1):
        total = 0
        for k in range(indptr[3 * m], indptr[3 * m + 3]):
            if seen[indices[k]] != m:
                seen[indices[k]] = m
                total += 1
        ptr[m + 1] = ptr[m] + total


@njit(cache=True)
def fill_columns(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n: int, ptr: np.ndarray, col: np.ndarray, jac: np.ndarray
) -> None:
    """Fill columns (k,) and entries (k, 3) of each contact; one place a column of J is made."""
    place = np.full(n, -1, dtype=np.int64)
    for m in range(ptr.shape[0] - 1):
        end = ptr[m]
        for c in range(3):
            for k in range(indptr[3 * m + c], indptr[3 * m + c + 1]):
                j = indices[k]
                if place[j] < ptr[m]:
                    place[j] = end
                    col[end] = j
                    jac[end, 0] = jac[end, 1] = jac[end, 2] = 0.0
                    end += 1
                jac[place[j], c] = data[k]


@njit(cache=True, inner=True)
def find(indptr: np.ndarray, indices: np.ndarray, i: int, j: int) -> int:
    """Place of entry (i, j) in compressed rows with sorted columns; -1 where there is none."""
    first, last = indptr[i], indptr[i + 1]
    while first < last:
        middle = (first + last) // 2
        if indices[middle] < j:
            first = middle + 1
        else:
            last = middle
    return first if first < indptr[i + 1] and indices[first] == j else -1


@njit(cache=True)
def entry_places(
    own_indptr: np.ndarray, own_indices: np.ndarray, indptr: np.ndarray, indices: np.ndarray, places: np.ndarray
) -> bool:
    """Fill the place of each entry of one pattern, (nnz,), in another one of the same size; False where one is missing."""
    for i in range(own_indptr.shape[0] - 1):
        at = indptr[i]
        for k in range(own_indptr[i], own_indptr[i + 1]):
            while at < indptr[i + 1] and indices[at] < own_indices[k]:
                at += 1
            if at == indptr[i + 1] or indices[at] != own_indices[k]:
                return False
            places[k] = at
    return True


@njit(cache=True)
def block_places(columns: Columns, indptr: np.ndarray, indices: np.ndarray, places: np.ndarray, lacking: np.ndarray) -> None:
    """Fill the places of the entries of each contact's J^T G J, row by row, and ``lacking``, (nc,) bool: those without all."""
    end = 0
    for m in range(columns.ptr.shape[0] - 1):
        lacking[m] = False
        for a in range(columns.ptr[m], columns.ptr[m + 1]):
            for b in range(columns.ptr[m], columns.ptr[m + 1]):
                places[end] = find(indptr, indices, columns.col[a], columns.col[b])
                lacking[m] |= places[end] < 0
                end += 1


@njit(cache=True)
def assemble(
    A: np.ndarray, A_places: np.ndarray, columns: Columns, places: np.ndarray, gain: np.ndarray, values: np.ndarray
) -> None:
    """Fill values = A + J^T gain J on the pattern, gain (nc, 3, 3), N s/m: nothing where the pattern lacks a contact."""
    values[:] = 0.0
    for k in range(A.shape[0]):
        values[A_places[k]] += A[k]
    ptr, jac = columns.ptr, columns.jac
    end = 0
    for m in range(ptr.shape[0] - 1):
        size = ptr[m + 1] - ptr[m]
        G = gain[m]
        if G[0, 0] == 0.0 and G[1, 1] == 0.0 and G[2, 2] == 0.0:
            end += size * size
            continue
        for a in range(ptr[m], ptr[m + 1]):
            x_0 = jac[a, 0] * G[0, 0] + jac[a, 1] * G[1, 0] + jac[a, 2] * G[2, 0]
            x_1 = jac[a, 0] * G[0, 1] + jac[a, 1] * G[1, 1] + jac[a, 2] * G[2, 1]
            x_2 = jac[a, 0] * G[0, 2] + jac[a, 1] * G[1, 2] + jac[a, 2] * G[2, 2]
            for b in range(ptr[m], ptr[m + 1]):
                values[places[end]] += x_0 * jac[b, 0] + x_1 * jac[b, 1] + x_2 * jac[b, 2]
                end += 1


@njit(cache=True)
def add_contacts(columns: Columns, gain: np.ndarray, H: np.ndarray) -> None:
    """Add J^T gain J to H, (n, n), contact by contact; gain is (nc, 3, 3)."""
    ptr, col, jac = columns
    for m in range(gain.shape[0]):
        G = gain[m]
        if not G.any():
            continue
        for b in range(ptr[m], ptr[m + 1]):
            x_n, x_0, x_1 = jac[b, 0], jac[b, 1], jac[b, 2]
            y_n = G[0, 0] * x_n + G[0, 1] * x_0 + G[0, 2] * x_1
            y_0 = G[1, 0] * x_n + G[1, 1] * x_0 + G[1, 2] * x_1
            y_1 = G[2, 0] * x_n + G[2, 1] * x_0 + G[2, 2] * x_1
            for a in range(ptr[m], ptr[m + 1]):
                H[col[a], col[b]] += jac[a, 0] * y_n + jac[a, 1] * y_0 + jac[a, 2] * y_1


@njit(cache=True)
def solve_links(
    contacts: LinkBlocks, chain: tuple[np.ndarray, np.ndarray], gain: np.ndarray, work: tuple[np.ndarray, ...], x: np.ndarray
) -> bool:
    """Solve (A + J^T gain J) x = r for a chain of links, x (n, 6) in place of r; False where a block is singular.

    ``chain``: blocks (n, 6, 6) on and right of the diagonal of A; ``work``: two arrays like them.
    """
    diagonal, upper = work
    diagonal[:] = chain[0]
    link, jacobian = contacts.link, contacts.jacobian
    for m in range(link.shape[0]):
        i = link[m]
        for r in range(3):
            for s in range(3):
                g = gain[m, r, s]
                if g != 0.0:
                    for c in range(6):
                        factor = g * jacobian[m, r, c]
                        if factor != 0.0:
                            for k in range(6):
                                diagonal[i, c, k] += factor * jacobian[m, s, k]
    return solve_tridiagonal(diagonal, upper, chain[1], x)


@njit(cache=True)
def differing(gain: np.ndarray, other: np.ndarray) -> int:
    """Count contacts whose gains (nc, 3, 3) differ by more than a factor of ten somewhere on the diagonal."""
    total = 0
    for m in range(gain.shape[0]):
        for c in range(3):
            a, b = gain[m, c, c], other[m, c, c]
            if a > 10.0 * b or b > 10.0 * a:
                total += 1
                break
    return total


@njit(cache=True)
def into_cone(friction: np.ndarray, lam: np.ndarray, out: np.ndarray) -> None:
    """Fill the forces ``out`` (nc, 3): ``lam``, tangents cut at the cone of friction (nc,), and nothing where it pulls."""
    for m in range(lam.shape[0]):
        normal = max(lam[m, 0], 0.0)
        length = math.sqrt(lam[m, 1] * lam[m, 1] + lam[m, 2] * lam[m, 2])
        bound = friction[m] * normal
        share = 1.0 if length <= bound else bound / length
        out[m, 0], out[m, 1], out[m, 2] = normal, share * lam[m, 1], share * lam[m, 2]


@njit(cache=True)
def find_states(law: Law, lam: np.ndarray, u: np.ndarray, state: np.ndarray) -> int:
    """Fill the state of each contact, (nc,) int8, by the law of Alart and Curnier; return how many differ from what was there."""
    changed = 0
    for m in range(lam.shape[0]):
        rho = 1.0 / (law.trial_scale * law.compliance[m])
        y_n = lam[m, 0] - rho * u[m, 0]
        y_0, y_1 = lam[m, 1] - rho * u[m, 1], lam[m, 2] - rho * u[m, 2]
        now = OPEN if y_n <= 0.0 else (STICK if math.sqrt(y_0 * y_0 + y_1 * y_1) <= law.friction[m] * y_n else SLIDE)
        changed += now != state[m]
        state[m] = now
    return changed


@njit(cache=True)
def linearise(
    law: Law, lam: np.ndarray, u: np.ndarray, centre: np.ndarray, gain: np.ndarray, change: np.ndarray, state: np.ndarray
) -> int:
    """Fill change (nc, 3), N, and gain (nc, 3, 3), N s/m, of dlam = change - gain J dv, and the states; return how many changed.

    The law of Alart and Curnier between lam and w = u + sigma (lam - centre), sigma = shift * compliance: a proximal point step
    around ``centre``, of which nothing is left where lam = centre. Trial forces are lam - w / (trial_scale * compliance).
    """
    changed = 0
    for m in range(lam.shape[0]):
        sigma = law.shift * law.compliance[m]
        rho = 1.0 / (law.trial_scale * law.compliance[m])
        mu = law.friction[m]
        w_n = u[m, 0] + sigma * (lam[m, 0] - centre[m, 0])
        w_0 = u[m, 1] + sigma * (lam[m, 1] - centre[m, 1])
        w_1 = u[m, 2] + sigma * (lam[m, 2] - centre[m, 2])
        gain[m] = 0.0
        y_n = lam[m, 0] - rho * w_n
        y_0, y_1 = lam[m, 1] - rho * w_0, lam[m, 2] - rho * w_1
        length = math.sqrt(y_0 * y_0 + y_1 * y_1)
        if y_n <= 0.0:
            now = OPEN
            for r in range(3):
                change[m, r] = -lam[m, r]
        else:
            change[m, 0] = -w_n / sigma
            gain[m, 0, 0] = 1.0 / sigma
            if length <= mu * y_n:
                now = STICK
                change[m, 1], change[m, 2] = -w_0 / sigma, -w_1 / sigma
                gain[m, 1, 1] = gain[m, 2, 2] = 1.0 / sigma
            else:
                now = SLIDE
                d_0, d_1 = y_0 / length, y_1 / length
                turn = mu * y_n / length
                # across the direction of slip: (1 - turn (1 - rho sigma)) dlam = right - rho turn J dv; along it nothing
                across = 1.0 / (1.0 - turn * (1.0 - rho * sigma))
                r_0, r_1 = mu * lam[m, 0] * d_0 - lam[m, 1], mu * lam[m, 0] * d_1 - lam[m, 2]
                along = d_0 * r_0 + d_1 * r_1
                bound = mu * change[m, 0]
                change[m, 1] = along * d_0 + across * (r_0 - along * d_0) + bound * d_0
                change[m, 2] = along * d_1 + across * (r_1 - along * d_1) + bound * d_1
                gain[m, 1, 0] = mu * d_0 / sigma
                gain[m, 2, 0] = mu * d_1 / sigma
                slope = across * rho * turn
                gain[m, 1, 1] = slope * (1.0 - d_0 * d_0)
                gain[m, 1, 2] = gain[m, 2, 1] = -slope * d_0 * d_1
                gain[m, 2, 2] = slope * (1.0 - d_1 * d_1)
        changed += now != state[m]
        state[m] = now
    return changed


@njit(cache=True)
def law_rows(rho: np.ndarray, gain: np.ndarray, dlam: np.ndarray, moved: np.ndarray, out: np.ndarray) -> None:
    """Fill rows (nc, 3), m/s, of the law, D (dlam + gain moved), where D makes velocities of forces of all sizes.

    D divides by rho (nc,), N s/m, and the gain, and takes from friction what the force along the normal makes it.
    """
    for m in range(dlam.shape[0]):
        G = gain[m]
        along, across = 1.0 / (rho[m] + G[0, 0]), 1.0 / (rho[m] + G[1, 1] + G[2, 2])
        out[m, 0] = along * (dlam[m, 0] + G[0, 0] * moved[m, 0])
        for r in range(1, 3):
            share = G[r, 0] / G[0, 0] if G[0, 0] > 0.0 else 0.0
            out[m, r] = across * (dlam[m, r] - share * dlam[m, 0] + G[r, 1] * moved[m, 1] + G[r, 2] * moved[m, 2])


@njit(cache=True)
def from_law_rows(rho: np.ndarray, gain: np.ndarray, rows: np.ndarray, out: np.ndarray) -> None:
    """Fill dlam + gain moved, (nc, 3), N, of what :func:`law_rows` makes of it."""
    for m in range(rows.shape[0]):
        G = gain[m]
        out[m, 0] = (rho[m] + G[0, 0]) * rows[m, 0]
        for r in range(1, 3):
            share = G[r, 0] / G[0, 0] if G[0, 0] > 0.0 else 0.0
            out[m, r] = (rho[m] + G[1, 1] + G[2, 2]) * rows[m, r] + share * out[m, 0]


@njit(cache=True)
def add_forces(gain: np.ndarray, change: np.ndarray, moved: np.ndarray, lam: np.ndarray) -> None:
    """Add change - gain J dv to the forces lam (nc, 3); ``moved`` is J dv, (nc, 3)."""
    for m in range(lam.shape[0]):
        for r in range(3):
            step = change[m, r]
            for s in range(3):
                step -= gain[m, r, s] * moved[m, s]
            lam[m, r] += step
