"""Compiled kernels for chains of links: A block tridiagonal with 6x6 blocks, every contact on one link.

One call is one regularised semi-smooth Newton step on (v, lam): the contact forces are eliminated link by link, what is left is
block tridiagonal and solved by one block LU sweep along the chain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit

Row = tuple[float, float, float, float, float, float]


class Chain(NamedTuple):
    """A and b of rods: diagonal blocks and those above them, ``diagonal`` and ``upper`` (n, 6, 6), N s/m; ``b`` (n, 6), N."""

    diagonal: np.ndarray
    upper: np.ndarray
    b: np.ndarray


class LinkContacts(NamedTuple):
    """Contacts on links.

    Attributes
    ----------
    link, jacobian : ndarray, (nc,), (nc, 3, 6)
        Link of each contact, and its rows of J there.
    phi, friction, compliance : ndarray, (nc, 3), (nc,), (nc,)
        Offsets in m/s, Coulomb coefficients, velocity per force in m/(N s).
    """

    link: np.ndarray
    jacobian: np.ndarray
    phi: np.ndarray
    friction: np.ndarray
    compliance: np.ndarray


class ProximalRules(NamedTuple):
    """Proximal shift and scale of the trial forces, relative to the compliance of a contact."""

    shift: float
    trial_scale: float


class NewtonWork(NamedTuple):
    """Scratch of a Newton step: its velocities ``step`` (n, 6), factors, and ``gain``, ``change`` of :func:`linearise`."""

    step: np.ndarray
    diagonal: np.ndarray
    upper: np.ndarray
    pivot: np.ndarray
    gain: np.ndarray
    change: np.ndarray


class SpreadWork(NamedTuple):
    """What :func:`spread` needs: contacts in the ``order`` (nc,) of their links, ``chain`` (n,) of each link; and scratch.

    ``kind`` (nc,) int64 is one of :data:`OTHER`, :data:`STICKS` and :data:`TOO_MUCH`, ``excess`` (nc, 3) is in world axes, as is
    ``left`` (3,).
    """

    order: np.ndarray
    chain: np.ndarray
    kind: np.ndarray
    excess: np.ndarray
    left: np.ndarray


#: Kinds of contacts for :func:`spread`: those that stick, those of them that hold more than friction allows, and others.
OTHER, STICKS, TOO_MUCH = 0, 1, 2
#: Part of what a contact holds too much that goes on to others: inertia takes some, and contacts that slide in vain cost more
#: steps than those that come one step later. A contact is made to slide by a force larger than friction by the second number.
PASSED_ON, SLIDES = 0.75, 1e-5


@njit(cache=True)
def find_links(indptr: np.ndarray, indices: np.ndarray, place: np.ndarray) -> bool:
    """Fill where the entries of the diagonal blocks and of those right of them stand in a CSC matrix; False when it has others.

    ``place`` (n, 2, 6, 6) int64 is -1 for entries that the pattern has not.
    """
    place[:] = -1
    for j in range(place.shape[0]):
        for c in range(6):
            column = 6 * j + c
            for k in range(indptr[column], indptr[column + 1]):
                row = indices[k] - 6 * j
                if row < -6 or row >= 12:
                    return False
                if row < 0:
                    place[j - 1, 1, row + 6, c] = k
                elif row < 6:
                    place[j, 0, row, c] = k
    return True


@njit(cache=True)
def gather_links(place: np.ndarray, data: np.ndarray, diagonal: np.ndarray, upper: np.ndarray) -> None:
    """Fill the diagonal blocks (n, 6, 6) and those right of them with the entries that :func:`find_links` has found."""
    for i in range(place.shape[0]):
        for r in range(6):
            for c in range(6):
                own, right = place[i, 0, r, c], place[i, 1, r, c]
                diagonal[i, r, c] = data[np.uint64(own)] if own >= 0 else 0.0
                upper[i, r, c] = data[np.uint64(right)] if right >= 0 else 0.0


@njit(cache=True)
def gather_contacts(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, link: np.ndarray, jacobian: np.ndarray) -> bool:
    """Fill the link of each contact and its rows of J there, (nc, 3, 6), from CSR; False when a contact acts on several links."""
    for m in range(link.shape[0]):
        link[m] = -1
        for r in range(3):
            for c in range(6):
                jacobian[m, r, c] = 0.0
            for k in range(indptr[3 * m + r], indptr[3 * m + r + 1]):
                i = indices[k] // 6
                if link[m] >= 0 and link[m] != i:
                    return False
                link[m] = i
                jacobian[m, r, indices[k] - 6 * i] = data[k]
        if link[m] < 0:
            link[m] = 0
    return True


# Rows of six numbers go as tuples below: kept in registers, they take a third of the time of loops over arrays.


@njit(cache=True, forceinline=True)
def _row(a: np.ndarray, i: int, r: int) -> Row:
    """Row r of block i of (n, 6, 6)."""
    return a[i, r, 0], a[i, r, 1], a[i, r, 2], a[i, r, 3], a[i, r, 4], a[i, r, 5]


@njit(cache=True, forceinline=True)
def _put_row(a: np.ndarray, i: int, r: int, x: Row) -> None:
    """Write row r of block i of (n, 6, 6)."""
    a[i, r, 0], a[i, r, 1], a[i, r, 2], a[i, r, 3], a[i, r, 4], a[i, r, 5] = x


@njit(cache=True, forceinline=True)
def _less(x: Row, factor: float, y: Row) -> Row:
    """Return x - factor y."""
    return (
        x[0] - factor * y[0], x[1] - factor * y[1], x[2] - factor * y[2],
        x[3] - factor * y[3], x[4] - factor * y[4], x[5] - factor * y[5],
    )  # fmt: skip


@njit(cache=True, inner=True)
def _factorize(a: np.ndarray, i: int, pivot: np.ndarray) -> bool:
    """LU with partial pivoting of block i of (n, 6, 6) in place; False when it is singular."""
    for k in range(6):
        p = k
        for r in range(k + 1, 6):
            if abs(a[i, r, k]) > abs(a[i, p, k]):
                p = r
        pivot[i, k] = p
        if a[i, p, k] == 0.0:
            return False
        if p != k:
            own, other = _row(a, i, k), _row(a, i, p)
            _put_row(a, i, k, other)
            _put_row(a, i, p, own)
        inverse = 1.0 / a[i, k, k]
        for r in range(k + 1, 6):
            factor = a[i, r, k] * inverse
            a[i, r, k] = factor
            for c in range(k + 1, 6):
                a[i, r, c] -= factor * a[i, k, c]
    return True


@njit(cache=True, inner=True)
def _substitute(a: np.ndarray, pivot: np.ndarray, i: int, right: np.ndarray, x: np.ndarray) -> None:
    """Solve in place with the factors of :func:`_factorize`: six columns, ``right[i]`` of (n, 6, 6), and row i of x (n, 6)."""
    for k in range(6):
        p = pivot[i, k]
        if p != k:
            own, other = _row(right, i, k), _row(right, i, p)
            _put_row(right, i, k, other)
            _put_row(right, i, p, own)
            x[i, k], x[i, p] = x[i, p], x[i, k]
    for r in range(1, 6):
        row, value = _row(right, i, r), x[i, r]
        for c in range(r):
            row = _less(row, a[i, r, c], _row(right, i, c))
            value -= a[i, r, c] * x[i, c]
        _put_row(right, i, r, row)
        x[i, r] = value
    for r in range(5, -1, -1):
        row, value, d = _row(right, i, r), x[i, r], a[i, r, r]
        for c in range(r + 1, 6):
            row = _less(row, a[i, r, c], _row(right, i, c))
            value -= a[i, r, c] * x[i, c]
        _put_row(right, i, r, (row[0] / d, row[1] / d, row[2] / d, row[3] / d, row[4] / d, row[5] / d))
        x[i, r] = value / d


@njit(cache=True, inner=True)
def solve_tridiagonal(
    diagonal: np.ndarray, upper: np.ndarray, symmetric_upper: np.ndarray, pivot: np.ndarray, x: np.ndarray
) -> bool:
    """Solve in place a block tridiagonal system; the blocks below the diagonal are the transposes of ``symmetric_upper``.

    ``diagonal`` (n, 6, 6) is overwritten by its factors, ``upper`` (n, 6, 6) by D^-1 U; x (n, 6) by the solution. False when a
    block is singular.
    """
    n = x.shape[0]
    for i in range(n):
        for r in range(6 if i > 0 else 0):
            row, value = _row(diagonal, i, r), x[i, r]
            for k in range(6):
                factor = symmetric_upper[i - 1, k, r]
                row = _less(row, factor, _row(upper, i - 1, k))
                value -= factor * x[i - 1, k]
            _put_row(diagonal, i, r, row)
            x[i, r] = value
        if not _factorize(diagonal, i, pivot):
            return False
        for r in range(6):
            _put_row(upper, i, r, _row(symmetric_upper, i, r))
        _substitute(diagonal, pivot, i, upper, x)
    for i in range(n - 2, -1, -1):
        for r in range(6):
            value = x[i, r]
            for c in range(6):
                value -= upper[i, r, c] * x[i + 1, c]
            x[i, r] = value
    return True


@njit(cache=True, inner=True)
def dynamics(
    diagonal: np.ndarray,
    upper: np.ndarray,
    b: np.ndarray,
    link: np.ndarray,
    jacobian: np.ndarray,
    v: np.ndarray,
    lam: np.ndarray,
    residual: np.ndarray,
) -> None:
    """Fill residual = b + J^T lam - A v, (n, 6)."""
    n = v.shape[0]
    for i in range(n):
        for r in range(6):
            total = b[i, r]
            for c in range(6):
                total -= diagonal[i, r, c] * v[i, c]
            if i + 1 < n:
                for c in range(6):
                    total -= upper[i, r, c] * v[i + 1, c]
            if i > 0:
                for c in range(6):
                    total -= upper[i - 1, c, r] * v[i - 1, c]
            residual[i, r] = total
    for m in range(link.shape[0]):
        for r in range(3):
            for c in range(6):
                residual[link[m], c] += jacobian[m, r, c] * lam[m, r]


@njit(cache=True)
def contact_velocities(link: np.ndarray, jacobian: np.ndarray, phi: np.ndarray, v: np.ndarray, u: np.ndarray) -> None:
    """Fill u = J v + phi, (nc, 3)."""
    for m in range(link.shape[0]):
        for r in range(3):
            total = phi[m, r]
            for c in range(6):
                total += jacobian[m, r, c] * v[link[m], c]
            u[m, r] = total


@njit(cache=True, inner=True, _nrt=False)
def linearise(contacts: LinkContacts, m: int, rules: ProximalRules, lam: np.ndarray, u: np.ndarray, work: NewtonWork) -> None:
    """Fill change and gain of contact m, dlam = change - gain J dv: the law of Alart and Curnier with a proximal shift.

    sigma = shift * compliance adds to the diagonal of the Delassus operator around the present forces, so that nothing of it
    stays in the answer. Trial forces are lam - u / (trial_scale * compliance).
    """
    mu, gain, change = contacts.friction, work.gain, work.change
    sigma = rules.shift * contacts.compliance[m]
    rho = 1.0 / (rules.trial_scale * contacts.compliance[m])
    for r in range(3):
        for c in range(3):
            gain[m, r, c] = 0.0
    y_n = lam[m, 0] - rho * u[m, 0]
    if y_n <= 0.0:
        for r in range(3):
            change[m, r] = -lam[m, r]
    else:
        change[m, 0] = -u[m, 0] / sigma
        gain[m, 0, 0] = 1.0 / sigma
        y_0, y_1 = lam[m, 1] - rho * u[m, 1], lam[m, 2] - rho * u[m, 2]
        length = math.sqrt(y_0 * y_0 + y_1 * y_1)
        if length <= mu[m] * y_n:
            for r in range(1, 3):
                change[m, r] = -u[m, r] / sigma
                gain[m, r, r] = 1.0 / sigma
        else:
            d_0, d_1 = y_0 / length, y_1 / length
            turn = mu[m] * y_n / length
            # across the direction of slip: (1 - turn (1 - rho sigma)) dlam = right - rho turn J dv; along it nothing
            across = 1.0 / (1.0 - turn * (1.0 - rho * sigma))
            r_0, r_1 = mu[m] * lam[m, 0] * d_0 - lam[m, 1], mu[m] * lam[m, 0] * d_1 - lam[m, 2]
            along = d_0 * r_0 + d_1 * r_1
            bound = mu[m] * change[m, 0]
            change[m, 1] = along * d_0 + across * (r_0 - along * d_0) + bound * d_0
            change[m, 2] = along * d_1 + across * (r_1 - along * d_1) + bound * d_1
            gain[m, 1, 0] = mu[m] * d_0 / sigma
            gain[m, 2, 0] = mu[m] * d_1 / sigma
            slope = across * rho * turn
            gain[m, 1, 1] = slope * (1.0 - d_0 * d_0)
            gain[m, 1, 2] = -slope * d_0 * d_1
            gain[m, 2, 1] = -slope * d_0 * d_1
            gain[m, 2, 2] = slope * (1.0 - d_1 * d_1)


@njit(cache=True, inner=True, _nrt=False)
def eliminate(contacts: LinkContacts, m: int, work: NewtonWork) -> None:
    """Add J^T change of contact m to the right-hand side, and J^T gain J to the block of its link."""
    i, jacobian = contacts.link[m], contacts.jacobian
    for r in range(3):
        for c in range(6):
            work.step[i, c] += jacobian[m, r, c] * work.change[m, r]
        for s in range(3):
            g = work.gain[m, r, s]
            if g != 0.0:
                for c in range(6):
                    factor = g * jacobian[m, r, c]
                    if factor != 0.0:
                        for k in range(6):
                            work.diagonal[i, c, k] += factor * jacobian[m, s, k]


@njit(cache=True, _nrt=False)
def newton_step(
    chain: Chain,
    contacts: LinkContacts,
    rules: ProximalRules,
    v: np.ndarray,
    lam: np.ndarray,
    u: np.ndarray,
    work: NewtonWork,
) -> bool:
    """One step on v (n, 6) and lam (nc, 3) in place; False when the system is singular. u must be J v + phi.

    (A + J^T gain J) dv = b + J^T (lam + change) - A v, with gain and change of :func:`linearise`.
    """
    link, jacobian, step = contacts.link, contacts.jacobian, work.step
    dynamics(chain.diagonal, chain.upper, chain.b, link, jacobian, v, lam, step)
    n = v.shape[0]
    for i in range(n):
        for r in range(6):
            for c in range(6):
                work.diagonal[i, r, c] = chain.diagonal[i, r, c]
    for m in range(link.shape[0]):
        linearise(contacts, m, rules, lam, u, work)
        eliminate(contacts, m, work)
    if not solve_tridiagonal(work.diagonal, work.upper, chain.upper, work.pivot, step):
        return False
    for i in range(n):
        for c in range(6):
            v[i, c] += step[i, c]
    for m in range(link.shape[0]):
        for r in range(3):
            lam[m, r] += work.change[m, r]
        for s in range(3):
            moved = 0.0
            for c in range(6):
                moved += jacobian[m, s, c] * step[link[m], c]
            for r in range(3):
                lam[m, r] -= work.gain[m, r, s] * moved
    contact_velocities(link, jacobian, contacts.phi, v, u)
    return True


@njit(cache=True)
def number_chains(upper: np.ndarray, chain: np.ndarray) -> None:
    """Fill the number of the chain, (n,), of each link: one ends where nothing joins it to the next."""
    for i in range(1, chain.shape[0]):
        chain[i] = chain[i - 1] + (0 if upper[i - 1].any() else 1)


@njit(cache=True, inner=True, _nrt=False)
def _take(contacts: LinkContacts, m: int, lam: np.ndarray, work: SpreadWork) -> None:
    """Give contact m, which sticks, what friction elsewhere could not hold, ``work.left``; what it cannot hold stays there."""
    jacobian, left = contacts.jacobian, work.left
    x_0, x_1 = lam[m, 1], lam[m, 2]
    for c in range(3):
        x_0 += jacobian[m, 1, c] * left[c]
        x_1 += jacobian[m, 2, c] * left[c]
    length, bound = math.sqrt(x_0 * x_0 + x_1 * x_1), contacts.friction[m] * lam[m, 0]
    held = 1.0 if length <= bound else bound / length
    for c in range(3):
        left[c] = (1.0 - held) * (jacobian[m, 1, c] * x_0 + jacobian[m, 2, c] * x_1)
    if held < 1.0:
        lam[m, 1], lam[m, 2] = (1.0 + SLIDES) * held * x_0, (1.0 + SLIDES) * held * x_1
        work.kind[m] = OTHER


@njit(cache=True, inner=True, _nrt=False)
def _find_excess(contacts: LinkContacts, gain: np.ndarray, lam: np.ndarray, work: SpreadWork) -> int:
    """Fill kinds and what contacts hold too much, which is taken from them; return how many do."""
    count, jacobian = 0, contacts.jacobian
    for m in range(work.order.shape[0]):
        length, bound = math.sqrt(lam[m, 1] ** 2 + lam[m, 2] ** 2), contacts.friction[m] * lam[m, 0]
        work.kind[m] = OTHER
        if bound > 0.0 and gain[m, 0, 0] != 0.0 and gain[m, 1, 0] == 0.0 and gain[m, 2, 0] == 0.0:
            work.kind[m] = STICKS if length <= (1.0 + SLIDES) * bound else TOO_MUCH
        if work.kind[m] == TOO_MUCH:
            count += 1
            held = bound / length
            for c in range(3):
                work.excess[m, c] = PASSED_ON * (1.0 - held) * (jacobian[m, 1, c] * lam[m, 1] + jacobian[m, 2, c] * lam[m, 2])
            lam[m, 1], lam[m, 2] = (1.0 + SLIDES) * held * lam[m, 1], (1.0 + SLIDES) * held * lam[m, 2]
    return count


@njit(cache=True, inner=True, _nrt=False)
def _sticks(contacts: LinkContacts, work: SpreadWork, at: int, m: int) -> bool:
    """Whether there is a contact at a place of the order, on the chain of contact m, that sticks."""
    if at < 0 or at >= work.order.shape[0]:
        return False
    other = work.order[at]
    return work.chain[contacts.link[other]] == work.chain[contacts.link[m]] and work.kind[other] != OTHER


@njit(cache=True, _nrt=False)
def spread(contacts: LinkContacts, gain: np.ndarray, lam: np.ndarray, work: SpreadWork) -> int:
    """Let more contacts slide at once where sticking ones hold more than friction allows; return how many did.

    A stiff chain that is pulled hands its force to the first contact that sticks, so that Newton's method lets one contact slide
    in each step. Here what one holds too much goes on along the chain to those that stick, away from where contacts slide, until
    friction holds it. ``lam`` is changed so that the next linearisation takes them as sliding; ``gain`` is that of the last one.
    """
    count, left, nc = _find_excess(contacts, gain, lam, work), work.left, work.order.shape[0]
    if count == 0:
        return 0
    for side in (1, -1):
        left[:] = 0.0
        for k in range(nc):
            at = k if side == 1 else nc - 1 - k
            m = work.order[at]
            if k > 0 and work.chain[contacts.link[m]] != work.chain[contacts.link[work.order[at - side]]]:
                left[:] = 0.0
            if work.kind[m] == STICKS and left.any():
                _take(contacts, m, lam, work)
            elif work.kind[m] == TOO_MUCH and _sticks(contacts, work, at + side, m):
                share = 0.5 if _sticks(contacts, work, at - side, m) else 1.0
                for c in range(3):
                    left[c] += share * work.excess[m, c]
    return count
