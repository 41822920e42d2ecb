"""Compiled kernels for chains of links: A block tridiagonal with 6x6 blocks, every contact on one link.

One call is some regularised semi-smooth Newton steps on (v, lam): the contact forces are eliminated link by link, what is left
is block tridiagonal and solved by one block LU sweep along the chain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from contact.compiled import njit
from contact.metrics_kernels import larger, law_parts, relative

Row = tuple[float, float, float, float, float, float]


class Chain(NamedTuple):
    """A and b of rods.

    Attributes
    ----------
    diagonal, upper : ndarray, (n, 6, 6), N s/m
        Diagonal blocks and those right of them.
    b, weight : ndarray, (n, 6)
        b in N, and the weight of each row in the norm of the dynamics residual.
    """

    diagonal: np.ndarray
    upper: np.ndarray
    b: np.ndarray
    weight: np.ndarray


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
    """Scratch of a Newton step: its velocities ``step`` (n, 6), blocks, and ``gain``, ``change`` of :func:`linearise`.

    ``rest`` and ``push``, (n, 6), are b - A v and J^T lam.
    """

    rest: np.ndarray
    push: np.ndarray
    step: np.ndarray
    diagonal: np.ndarray
    upper: np.ndarray
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
#: Entries of a chain below this are 0, far below all rounding: along a straight rod what couples two ways of a link decays from
#: link to link to numbers that a processor takes a hundred times as long for.
_NOTHING = 1e-100


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


@njit(cache=True, forceinline=True)
def _scaled(factor: float, x: Row) -> Row:
    """Return factor x."""
    return factor * x[0], factor * x[1], factor * x[2], factor * x[3], factor * x[4], factor * x[5]


@njit(cache=True, forceinline=True)
def _put_kept(a: np.ndarray, i: int, r: int, x: Row) -> None:
    """Write row r of block i of (n, 6, 6), 0 for numbers below :data:`_NOTHING`."""
    for c in range(6):
        a[i, r, c] = x[c] if abs(x[c]) > _NOTHING else 0.0


@njit(cache=True, inner=True, error_model="numpy")
def _reduce(a: np.ndarray, i: int, right: np.ndarray, x: np.ndarray) -> bool:
    """Solve with block i of (n, 6, 6) in place, by elimination with partial pivoting; False when it is singular.

    The right-hand sides are the six columns of ``right[i]``, (n, 6, 6), and row i of x (n, 6); the block is overwritten.
    """
    for k in range(6):
        p, largest = k, abs(a[i, k, k])
        for r in range(k + 1, 6):
            size = abs(a[i, r, k])
            if size > largest:
                p, largest = r, size
        if largest == 0.0:
            return False
        if p != k:
            own, other = _row(a, i, k), _row(a, i, p)
            _put_row(a, i, k, other)
            _put_row(a, i, p, own)
            own, other = _row(right, i, k), _row(right, i, p)
            _put_row(right, i, k, other)
            _put_row(right, i, p, own)
            x[i, k], x[i, p] = x[i, p], x[i, k]
        inverse = 1.0 / a[i, k, k]
        row, behind, value = _scaled(inverse, _row(a, i, k)), _scaled(inverse, _row(right, i, k)), inverse * x[i, k]
        _put_row(right, i, k, behind)
        x[i, k] = value
        for r in range(k + 1, 6):
            factor = a[i, r, k]
            _put_row(a, i, r, _less(_row(a, i, r), factor, row))
            _put_row(right, i, r, _less(_row(right, i, r), factor, behind))
            x[i, r] -= factor * value
        _put_row(a, i, k, row)
    for k in range(5, 0, -1):
        behind, value = _row(right, i, k), x[i, k]
        for r in range(k):
            factor = a[i, r, k]
            _put_row(right, i, r, _less(_row(right, i, r), factor, behind))
            x[i, r] -= factor * value
    return True


@njit(cache=True, inner=True, error_model="numpy")
def solve_tridiagonal(diagonal: np.ndarray, upper: np.ndarray, symmetric_upper: np.ndarray, x: np.ndarray) -> bool:
    """Solve in place a block tridiagonal system; the blocks below the diagonal are the transposes of ``symmetric_upper``.

    ``diagonal`` (n, 6, 6) is overwritten, ``upper`` (n, 6, 6) by D^-1 U, x (n, 6) by the solution. False when a block is
    singular.
    """
    n = x.shape[0]
    for i in range(n):
        for r in range(6 if i > 0 else 0):
            row, value = _row(diagonal, i, r), x[i, r]
            for k in range(6):
                factor = symmetric_upper[i - 1, k, r]
                row = _less(row, factor, _row(upper, i - 1, k))
                value -= factor * x[i - 1, k]
            _put_kept(diagonal, i, r, row)
            x[i, r] = value
        for r in range(6):
            _put_row(upper, i, r, _row(symmetric_upper, i, r))
        if not _reduce(diagonal, i, upper, x):
            return False
        for r in range(6):
            _put_kept(upper, i, r, _row(upper, i, r))
    for i in range(n - 2, -1, -1):
        for r in range(6):
            value = x[i, r]
            for c in range(6):
                value -= upper[i, r, c] * x[i + 1, c]
            x[i, r] = value
    return True


@njit(cache=True, _nrt=False)
def take_velocities(chain: Chain, contacts: LinkContacts, v: np.ndarray, u: np.ndarray, rest: np.ndarray) -> None:
    """Fill u = J v + phi, (nc, 3), and rest = b - A v, (n, 6)."""
    diagonal, upper, link, jacobian = chain.diagonal, chain.upper, contacts.link, contacts.jacobian
    n = v.shape[0]
    for i in range(n):
        for r in range(6):
            total = chain.b[i, r]
            for c in range(6):
                total -= diagonal[i, r, c] * v[i, c]
            if i + 1 < n:
                for c in range(6):
                    total -= upper[i, r, c] * v[i + 1, c]
            if i > 0:
                for c in range(6):
                    total -= upper[i - 1, c, r] * v[i - 1, c]
            rest[i, r] = total
    for m in range(link.shape[0]):
        for r in range(3):
            total = contacts.phi[m, r]
            for c in range(6):
                total += jacobian[m, r, c] * v[link[m], c]
            u[m, r] = total


@njit(cache=True, inner=True, _nrt=False)
def take_forces(contacts: LinkContacts, lam: np.ndarray, push: np.ndarray) -> None:
    """Fill push = J^T lam, (n, 6)."""
    link, jacobian = contacts.link, contacts.jacobian
    for i in range(push.shape[0]):
        for c in range(6):
            push[i, c] = 0.0
    for m in range(link.shape[0]):
        for r in range(3):
            for c in range(6):
                push[link[m], c] += jacobian[m, r, c] * lam[m, r]


@njit(cache=True, inner=True, _nrt=False)
def residuals(
    chain: Chain, contacts: LinkContacts, lam: np.ndarray, u: np.ndarray, work: NewtonWork
) -> tuple[float, float, float]:
    """Dynamics and contact residual of ``contact.metrics``, and the latter relative to the forces alone.

    u, ``work.rest`` and ``work.push`` are those of the iterate.
    """
    wrong = moved = loads = pushed = 0.0
    for i in range(chain.b.shape[0]):
        for c in range(6):
            weight, b, push = chain.weight[i, c], chain.b[i, c], work.push[i, c]
            r, a, b, f = weight * (work.rest[i, c] + push), weight * (b - work.rest[i, c]), weight * b, weight * push
            wrong, moved, loads, pushed = wrong + r * r, moved + a * a, loads + b * b, pushed + f * f
    dynamics = relative(math.sqrt(wrong), math.sqrt(larger(moved, larger(loads, pushed))))
    wrong = strength = motion = 0.0
    for m in range(lam.shape[0]):
        v_n, v_0, v_1, e_n, e_0, e_1 = law_parts(
            u[m, 0], u[m, 1], u[m, 2], lam[m, 0], lam[m, 1], lam[m, 2], 1.0 / contacts.compliance[m], contacts.friction[m], False
        )
        wrong += e_n * e_n + e_0 * e_0 + e_1 * e_1
        strength += lam[m, 0] * lam[m, 0] + lam[m, 1] * lam[m, 1] + lam[m, 2] * lam[m, 2]
        motion += v_n * v_n + v_0 * v_0 + v_1 * v_1
    wrong = math.sqrt(wrong)
    return dynamics, relative(wrong, math.sqrt(larger(strength, motion))), relative(wrong, math.sqrt(strength))


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
    i, jacobian, gain, block = contacts.link[m], contacts.jacobian, work.gain, work.diagonal
    turns = False
    for r in range(3):
        for c in range(6):
            work.step[i, c] += jacobian[m, r, c] * work.change[m, r]
            turns |= c >= 3 and jacobian[m, r, c] != 0.0
    if gain[m, 0, 0] == 0.0:
        return
    for c in range(6 if turns else 3):  # forces on a round rod act at the centres of its links
        x, y, z = jacobian[m, 0, c], jacobian[m, 1, c], jacobian[m, 2, c]
        g_0 = x * gain[m, 0, 0] + y * gain[m, 1, 0] + z * gain[m, 2, 0]
        g_1 = x * gain[m, 0, 1] + y * gain[m, 1, 1] + z * gain[m, 2, 1]
        g_2 = x * gain[m, 0, 2] + y * gain[m, 1, 2] + z * gain[m, 2, 2]
        for k in range(6):
            block[i, c, k] += g_0 * jacobian[m, 0, k] + g_1 * jacobian[m, 1, k] + g_2 * jacobian[m, 2, k]


@njit(cache=True, inner=True, _nrt=False)
def newton_step(
    chain: Chain,
    contacts: LinkContacts,
    rules: ProximalRules,
    v: np.ndarray,
    lam: np.ndarray,
    u: np.ndarray,
    work: NewtonWork,
) -> bool:
    """One step on v (n, 6) and lam (nc, 3) in place; False when the system is singular.

    u and ``work.rest`` must be those of :func:`take_velocities`, and are then those of the v before.
    (A + J^T gain J) dv = b + J^T (lam + change) - A v, with gain and change of :func:`linearise`.
    """
    link, jacobian, step = contacts.link, contacts.jacobian, work.step
    take_forces(contacts, lam, work.push)
    n = v.shape[0]
    for i in range(n):
        for r in range(6):
            step[i, r] = work.rest[i, r] + work.push[i, r]
            for c in range(6):
                work.diagonal[i, r, c] = chain.diagonal[i, r, c]
    for m in range(link.shape[0]):
        linearise(contacts, m, rules, lam, u, work)
        eliminate(contacts, m, work)
    if not solve_tridiagonal(work.diagonal, work.upper, chain.upper, step):
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
    return True


@njit(cache=True, inner=True, _nrt=False)
def _joined(upper: np.ndarray, i: int) -> bool:
    """Whether block i of (n, 6, 6) has an entry."""
    for r in range(6):
        for c in range(6):
            if upper[i, r, c] != 0.0:
                return True
    return False


@njit(cache=True, _nrt=False)
def number_chains(upper: np.ndarray, chain: np.ndarray) -> None:
    """Fill the number of the chain, (n,), of each link: one ends where nothing joins it to the next."""
    chain[:1] = 0
    for i in range(1, chain.shape[0]):
        chain[i] = chain[i - 1] + (0 if _joined(upper, i - 1) else 1)


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


@njit(cache=True, _nrt=False)
def iterate(
    chain: Chain,
    contacts: LinkContacts,
    rules: ProximalRules,
    v: np.ndarray,
    lam: np.ndarray,
    u: np.ndarray,
    work: NewtonWork,
    going: SpreadWork,
    spreads: bool,
    aim: float,
    rows: np.ndarray,
) -> tuple[int, bool]:
    """Take Newton steps until both residuals are at most ``aim``, or as many as ``rows``, (steps, 3), has.

    Where the error of the contact law is larger than that beside the forces alone, one more is taken: in less time than the judge
    takes to find scales of contacts by which it is none. Each fills a row: dynamics and contact residual, and the norm of its
    velocities. Without contacts one is taken, and its residuals stay as they are. ``spreads`` says whether the first of them lets
    contacts spread what they hold too much, as those after it do. Returns how many were taken, and whether the last one was
    possible. The 11 parameters are the problem, the iterate, and room.
    """
    take_velocities(chain, contacts, v, u, work.rest)
    met = False
    for k in range(rows.shape[0]):
        if k > 0 or spreads:
            spread(contacts, work.gain, lam, going)
        if not newton_step(chain, contacts, rules, v, lam, u, work):
            rows[k, 0] = rows[k, 1] = rows[k, 2] = math.nan
            return k + 1, False
        total = 0.0
        for i in range(v.shape[0]):
            for c in range(6):
                total += work.step[i, c] * work.step[i, c]
        rows[k, 2] = math.sqrt(total)
        if lam.shape[0] == 0:
            return k + 1, True
        take_velocities(chain, contacts, v, u, work.rest)
        take_forces(contacts, lam, work.push)
        rows[k, 0], rows[k, 1], beside_forces = residuals(chain, contacts, lam, u, work)
        if not (rows[k, 0] > aim or rows[k, 1] > aim):  # met, or not finite
            if met or not beside_forces > aim:
                return k + 1, True
            met = True
    return rows.shape[0], True
