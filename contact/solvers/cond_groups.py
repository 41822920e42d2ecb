"""Named groups of arrays that the compiled kernels (``njit``) of COND take.

Layout of the unknown x (see ``contact.nodalize``): rows of nodes and bodies, padded to a multiple of three, then three rows of
each virtual node. ``size`` is the length of x, ``rows`` that of its part before the virtual nodes, nv the number of virtual nodes
and nc that of contacts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Matrix(NamedTuple):
    """A of papers/001 eq. (15): that of the bodies as blocks, and the virtual nodes, which are not assembled.

    Attributes
    ----------
    ptr, col : ndarray, (rows / 3 + 1,) int64, (blocks,) int32
        Compressed rows of 3x3 blocks.
    values : ndarray, (9 blocks + 1,), N s/m
        The blocks, as :func:`contact.solvers.block_rows.apply_blocks` takes them.
    first_virtual : int
        First row of x that belongs to virtual nodes.
    vptr, vdof, vjac : ndarray, (nv + 1,), (nnz,), (nnz, 3)
        J_v of eq. (14) by columns: virtual node q hangs on rows ``vdof[vptr[q]:vptr[q+1]]`` of x.
    gain : ndarray, (nv,), N s/m
        kv of the virtual nodes.
    """

    ptr: np.ndarray
    col: np.ndarray
    values: np.ndarray
    first_virtual: int
    vptr: np.ndarray
    vdof: np.ndarray
    vjac: np.ndarray
    gain: np.ndarray


class Steps(NamedTuple):
    """Step-size matrix W of eq. (20).

    Attributes
    ----------
    w : ndarray, (size,), m/(N s)
        Its diagonal, equal within a node.
    start, size : ndarray, (g,)
        First row and number of rows of each body that has a dense block instead.
    dense, inverse : ndarray, (g, any, any)
        These blocks ``dense[g, :size, :size]`` and their inverses; the latter count for Barzilai-Borwein steps only.
    """

    w: np.ndarray
    start: np.ndarray
    size: np.ndarray
    dense: np.ndarray
    inverse: np.ndarray


class ContactArrays(NamedTuple):
    """The contacts on their nodes.

    Attributes
    ----------
    node : ndarray, (nc, 2)
        First row of x of the nodes of each contact, -1 where there is none.
    block : ndarray, (nc, 2, 3, 3)
        Block of the Jacobian on each node; the identity on virtual nodes, where it is not read.
    first_virtual : int
        First row of x that belongs to virtual nodes.
    phi : ndarray, (nc, 3), m/s
    friction : ndarray, (nc, 2)
        Coefficients along the two tangents.
    mean, stretch : ndarray, (nc,), (nc, 2)
        mubar and N of ``contact.problem.isotropic``.
    rho : ndarray, (nc,), N s/m
        Scale of the natural map.
    coupled : ndarray, (nc,), bool
        Whether another contact uses one of the nodes.
    any_coupled : bool
        Whether there is one such.
    """

    node: np.ndarray
    block: np.ndarray
    first_virtual: int
    phi: np.ndarray
    friction: np.ndarray
    mean: np.ndarray
    stretch: np.ndarray
    rho: np.ndarray
    coupled: np.ndarray
    any_coupled: bool


class Bodies(NamedTuple):
    """The dynamics of the bodies, by which the iterates are judged.

    Attributes
    ----------
    start, stop, stride : ndarray, (groups,)
        First row, last row + 1, and rows from one point to the next of each group, 0 for generalized ones.
    of_row : ndarray, (rows,)
        Group of each row of x before the virtual nodes.
    b : ndarray, (rows,), N
        Right-hand side.
    diagonal, inverse_diagonal : ndarray, (rows,)
        Diagonal of A of the bodies, N s/m, and one over it.
    b_square : float
        Sum of ``b * b * inverse_diagonal``.
    least_force : ndarray, (groups,), N
        Least scale of the balance of a group, from :func:`contact.metrics_kernels.force_scales`; filled at the start.
    """

    start: np.ndarray
    stop: np.ndarray
    stride: np.ndarray
    of_row: np.ndarray
    b: np.ndarray
    diagonal: np.ndarray
    inverse_diagonal: np.ndarray
    b_square: float
    least_force: np.ndarray


class Rules(NamedTuple):
    """Options of the iteration; see ``contact.solvers.cond.CondOptions``.

    Attributes
    ----------
    strict : bool
        Whether the operator is the strict one.
    regularization : float, m/(N s)
        Omega of eq. (37), 0 for none.
    chebyshev, adaptive : bool
        Chebyshev acceleration (Alg. 3), or Barzilai-Borwein steps, or neither.
    update_ratio : float
        Multipliers are updated where the dynamics residual is below this part of what the virtual nodes carry beyond them.
    balance_factor : float
        The balance of each body must hold to this many times the tolerance.
    relaxation, delay, local_sweeps, patience, exact_gain
        As in the options.
    """

    strict: bool
    regularization: float
    chebyshev: bool
    adaptive: bool
    relaxation: float
    delay: int
    local_sweeps: int
    patience: int
    exact_gain: bool
    update_ratio: float
    balance_factor: float


class Iterates(NamedTuple):
    """The iterates; those of the last two iterations change places instead of being copied.

    Attributes
    ----------
    x, x_old, Ax, Ax_old : ndarray, (size,), m/s and N
        Extrapolated iterates of the last two iterations, and A of them.
    star, A_star : ndarray, (size,)
        v* and then v** of this iteration, and A of it.
    best, A_best : ndarray, (size,)
        v** of the best iteration, and A of it.
    lam, best_lam : ndarray, (nc, 3), N
        Forces of this iteration and of the best one.
    """

    x: np.ndarray
    x_old: np.ndarray
    Ax: np.ndarray
    Ax_old: np.ndarray
    star: np.ndarray
    A_star: np.ndarray
    best: np.ndarray
    A_best: np.ndarray
    lam: np.ndarray
    best_lam: np.ndarray


class Work(NamedTuple):
    """Forces of the present iteration, and scratch.

    Attributes
    ----------
    b_now : ndarray, (size,), N
        b of eq. (15) with the multipliers of now.
    multiplier : ndarray, (nv, 3), N
        Multipliers of the virtual nodes.
    force : ndarray, (size,), N
        J^T lam, on the bodies once the virtual nodes have handed theirs over.
    body_Av : ndarray, (size,), N
        A of the bodies times v**, where there are virtual nodes.
    point_velocity : ndarray, (nv, 3), m/s
        Velocity of the point of its body that each virtual node stands for.
    group_force : ndarray, (groups,), N
        Least scale of the balance of each group with the forces of now.
    sums : ndarray, (3, any)
        Lanes of the sums over rows.
    zero : ndarray, (size,)
        Zeros.
    """

    b_now: np.ndarray
    multiplier: np.ndarray
    force: np.ndarray
    body_Av: np.ndarray
    point_velocity: np.ndarray
    group_force: np.ndarray
    sums: np.ndarray
    zero: np.ndarray


class Found(NamedTuple):
    """What the judge says of an iterate.

    Attributes
    ----------
    dynamics, contact : float
        Its residuals.
    mismatch : float
        What the virtual nodes carry beyond their multipliers, relative to all that they carry.
    size : float
        Squared scale of the dynamics residual, for the balances.
    finite : bool
        Whether all of it is finite.
    """

    dynamics: float
    contact: float
    mismatch: float
    size: float
    finite: bool


class Acceleration(NamedTuple):
    """State of Alg. 3.

    Attributes
    ----------
    since_start : int
        Iterations since it started or restarted.
    nu, radius : float
        Factor of eq. (38), and the spectral radius as eq. (39) estimates it.
    step_norm : float
        Length of the last step, 0 before the first.
    """

    since_start: int
    nu: float
    radius: float
    step_norm: float


class Guard(NamedTuple):
    """State of the safeguards.

    Attributes
    ----------
    reference, window : float, int
        Best residual, and iteration, from which progress is counted.
    restarts : int
        Restarts for lack of progress.
    safe_step : float
        Factor on W of the plain iteration, halved where that stalls too.
    safe_until : int
        Iteration up to which Barzilai-Borwein steps are not trusted.
    update_interval : int
        Least iterations between updates of the multipliers.
    """

    reference: float
    window: int
    restarts: int
    safe_step: float
    safe_until: int
    update_interval: int


class Progress(NamedTuple):
    """Where the iteration stands.

    Attributes
    ----------
    iteration : int
        Iterations done.
    finite : bool
        Whether the last one was finite.
    contact : float
        Contact residual when it was evaluated last.
    best, best_at : float, int
        Smallest larger residual, and its iteration.
    updated : int
        Iteration of the last update of the multipliers.
    alpha : float
        Factor on W in the next iteration.
    """

    iteration: int
    finite: bool
    contact: float
    best: float
    best_at: int
    updated: int
    alpha: float


class State(NamedTuple):
    """All that changes; with it the iteration can be continued."""

    progress: Progress
    iterates: Iterates
    work: Work
    acceleration: Acceleration
    guard: Guard
