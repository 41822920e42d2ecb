"""Compiled iteration of COND, papers/001 Algorithms 1 to 3; see ``cond_groups`` for the arrays.

One iteration is :func:`step` (Alg. 1: eq. 20), :func:`solve_contacts` (Alg. 2: eq. 24), :func:`judge` (true residuals instead of
the step norm of Alg. 1), :func:`extrapolate` (Alg. 3), :func:`update_multipliers` (papers/000 eq. 11) and :func:`guard`
(restarts, smaller steps).

The kernels are compiled without numba's reference counts (``_nrt=False``). That proves that they allocate nothing, since they
would not compile otherwise, and an iteration does not count the references to each array of each group that it hands on.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from contact.metrics_kernels import NET_FRACTION, holding_forces, relative_to_terms, worst_balance
from contact.solvers.block_rows import apply_blocks
from contact.solvers.cond_contact_kernels import add_coupled_forces, add_coupled_steps, contact_sweep, natural_residual
from contact.solvers.cond_groups import (
    Acceleration,
    Bodies,
    ContactArrays,
    Found,
    Guard,
    Iterates,
    Matrix,
    Progress,
    Rules,
    State,
    Steps,
    Work,
)
from contact.solvers.cond_system_kernels import add_virtual_nodes, apply_matrix, apply_steps, barzilai_borwein

#: An accelerated iteration that is this many times worse than the best iterate goes back to it.
RETREAT = 100.0
#: Acceleration restarts unless the best residual has fallen to this part of itself within the patience.
PROGRESS = 0.9
#: Iterations with safe steps after going back, before Barzilai-Borwein steps are tried again.
SAFE_STEPS = 10
#: Restarts after which the plain iteration runs for the rest ...
MAX_RESTARTS = 1
#: ... with steps halved by each further one, so many times.
MAX_HALVINGS = 6


@njit(cache=True, inner=True, _nrt=False)
def copy_forces(source: np.ndarray, target: np.ndarray) -> None:
    """Copy forces (nc, 3)."""
    for m in range(source.shape[0]):
        for c in range(3):
            target[m, c] = source[m, c]


@njit(cache=True, _nrt=False)
def begin(matrix: Matrix, bodies: Bodies, iterates: Iterates, work: Work) -> None:
    """Fill iterates and right-hand side from the start in ``iterates.best`` and ``best_lam`` and from the multipliers."""
    copy_forces(iterates.best_lam, iterates.lam)
    for i in range(iterates.x.shape[0]):
        work.zero[i] = 0.0
        iterates.x[i] = iterates.x_old[i] = iterates.best[i]
        work.b_now[i] = bodies.b[i] if i < matrix.first_virtual else 0.0
    for q in range(matrix.gain.shape[0]):
        for c in range(3):
            work.b_now[matrix.first_virtual + 3 * q + c] = -work.multiplier[q, c]
            for e in range(matrix.vptr[q], matrix.vptr[q + 1]):
                work.b_now[matrix.vdof[e]] += matrix.vjac[e, c] * work.multiplier[q, c]
    apply_matrix(matrix, iterates.x, iterates.Ax)
    for i in range(iterates.x.shape[0]):
        iterates.Ax_old[i] = iterates.A_best[i] = iterates.Ax[i]
    holding_forces(bodies.start, bodies.stop, bodies.stride, bodies.b, iterates.Ax, bodies.least_force)


@njit(cache=True, inner=True, _nrt=False)
def step(steps: Steps, contacts: ContactArrays, alpha: float, b: np.ndarray, iterates: Iterates) -> None:
    """Fill star with v* = v - alpha W (A v - b), eq. (20), plus the last forces of contacts that share a node."""
    apply_steps(steps, alpha, b, iterates.Ax, iterates.x, iterates.star)
    if contacts.any_coupled:
        add_coupled_steps(contacts, alpha, steps.w, iterates.lam, iterates.star)


@njit(cache=True, inner=True, _nrt=False)
def solve_contacts(
    contacts: ContactArrays,
    rules: Rules,
    alpha: float,
    w: np.ndarray,
    tolerance: float,
    lam: np.ndarray,
    star: np.ndarray,
    force: np.ndarray,
) -> None:
    """Update star to v** = v* + alpha W J^T lam, eq. (24), with lam by Alg. 2; fill force with J^T lam.

    Contacts that share a node take further passes until their forces settle to a tenth of the tolerance.
    """
    strict, regularization = rules.strict, rules.regularization
    for i in range(force.shape[0]):
        force[i] = 0.0
    contact_sweep(True, strict, regularization, contacts, alpha, w, lam, star, force)
    if contacts.any_coupled:
        for _ in range(rules.local_sweeps):
            change = contact_sweep(False, strict, regularization, contacts, alpha, w, lam, star, force)
            if change < 0.1 * tolerance:
                break
        add_coupled_forces(contacts, lam, force)


@njit(cache=True, inner=True, _nrt=False)
def hand_over(
    matrix: Matrix,
    exact_gain: bool,
    star: np.ndarray,
    A_star: np.ndarray,
    multiplier: np.ndarray,
    force: np.ndarray,
    point_velocity: np.ndarray,
) -> float:
    """Add the forces on virtual nodes to those on their bodies (eq. 18), and fill the velocities of the points they stand for.

    Returns what the virtual nodes carry beyond their multipliers, relative to all that they carry; 0 without multipliers, where
    a virtual node stands for itself.
    """
    vptr, vdof, vjac, gain = matrix.vptr, matrix.vdof, matrix.vjac, matrix.gain
    mismatch = 0.0
    total = 0.0
    for q in range(gain.shape[0]):
        row = matrix.first_virtual + 3 * q
        for c in range(3):
            carried = A_star[row + c]  # kv (v_v - J_v v), what the node carries beyond its multiplier
            mismatch += carried * carried
            total += multiplier[q, c] ** 2 + force[row + c] ** 2
            point_velocity[q, c] = star[row + c]
            if exact_gain:
                point_velocity[q, c] -= carried / gain[q]
        for e in range(vptr[q], vptr[q + 1]):
            pushed = vjac[e, 0] * force[row] + vjac[e, 1] * force[row + 1] + vjac[e, 2] * force[row + 2]
            force[vdof[e]] += pushed
    return math.sqrt(mismatch / total) if exact_gain and total > 0.0 else 0.0


@njit(cache=True, inner=True, _nrt=False)
def judge(
    matrix: Matrix,
    contacts: ContactArrays,
    bodies: Bodies,
    rules: Rules,
    tolerance: float,
    decides: bool,
    contact: float,
    iterates: Iterates,
    work: Work,
) -> Found:
    """Return the true residuals of (v**, lam) on the problem without virtual nodes; fill A v**, the product of the iteration.

    Where no node is shared or virtual, the projection satisfies the law to rounding in every iteration (Prop. 4); its residual is
    then evaluated only where it ``decides`` or the dynamics pass, and stays ``contact``, its last value, in between.
    """
    star, A_star, force, b = iterates.star, iterates.A_star, work.force, bodies.b
    apply_blocks(matrix.ptr, matrix.col, matrix.values, star, A_star)
    Av = A_star
    mismatch = 0.0
    bound = matrix.gain.shape[0] > 0
    if bound:
        Av = work.body_Av
        for i in range(b.shape[0]):
            Av[i] = A_star[i]
        add_virtual_nodes(matrix, star, A_star)
        mismatch = hand_over(matrix, rules.exact_gain, star, A_star, work.multiplier, force, work.point_velocity)
    r_2, a_2, f_2 = residual_sums(Av, b, force, bodies.inverse_diagonal, work.sums)
    dynamics = math.sqrt(relative_to_terms(r_2, a_2, bodies.b_square, f_2))
    if contacts.any_coupled or bound or decides or dynamics <= tolerance:
        contact = natural_residual(contacts, rules.strict, rules.regularization, iterates.lam, star, work.point_velocity)
    finite = math.isfinite(bodies.b_square + r_2 + a_2 + f_2) and math.isfinite(dynamics) and math.isfinite(contact)
    return Found(dynamics, contact, mismatch, max(bodies.b_square, max(a_2, f_2)), finite)


@njit(cache=True, inner=True, _nrt=False)
def balanced(
    bodies: Bodies, node: np.ndarray, lam: np.ndarray, Av: np.ndarray, size: float, tolerance: float, factor: float, work: Work
) -> bool:
    """Whether the balance of each body holds to ``factor`` times the tolerance, and the plain norm of the dynamics to it."""
    least_forces(bodies, node, lam, work.group_force)
    imbalance = worst_balance(
        bodies.start, bodies.stop, bodies.stride, work.group_force, bodies.diagonal, bodies.b, Av, work.force, size
    )
    return imbalance <= factor * tolerance and plain_residual(bodies.b, Av, work.force) <= tolerance


@njit(cache=True, inner=True, _nrt=False)
def least_forces(bodies: Bodies, node: np.ndarray, lam: np.ndarray, out: np.ndarray) -> None:
    """Fill the least scale of the balance of each group: a part of the forces that press on it, or what holds it at the start."""
    for g in range(out.shape[0]):
        out[g] = 0.0
    for m in range(lam.shape[0]):
        magnitude = math.sqrt(lam[m, 0] ** 2 + lam[m, 1] ** 2 + lam[m, 2] ** 2)
        for side in range(2):
            if 0 <= node[m, side] < bodies.of_row.shape[0]:
                out[bodies.of_row[node[m, side]]] += magnitude
    for g in range(out.shape[0]):
        out[g] = max(NET_FRACTION * out[g], bodies.least_force[g])


@njit(cache=True, _nrt=False)
def spread_bodies(
    b_of_v: np.ndarray, diagonal_of_v: np.ndarray, rows: np.ndarray, b: np.ndarray, diagonal: np.ndarray, inverse: np.ndarray
) -> float:
    """Fill b, the diagonal of A and one over it by rows of x from those by rows of v; padding rows get 0 and 1.

    Returns the sum of ``b * b * inverse``.
    """
    for i in range(b.shape[0]):
        b[i] = 0.0
        diagonal[i] = inverse[i] = 1.0
    total = 0.0
    for k in range(rows.shape[0]):
        i = rows[k]
        b[i] = b_of_v[k]
        diagonal[i] = diagonal_of_v[k]
        inverse[i] = 1.0 / diagonal[i]
        total += b[i] * b[i] * inverse[i]
    return total


@njit(cache=True, inner=True, _nrt=False)
def residual_sums(
    Av: np.ndarray, b: np.ndarray, force: np.ndarray, weight: np.ndarray, sums: np.ndarray
) -> tuple[float, float, float]:
    """Add up weight times the squares of A v - b - J^T lam, of A v and of J^T lam over the rows.

    ``sums`` (3, any) is overwritten. Each lane of ``sums`` adds every so many rows: one chain of additions would
    wait for each of its results.
    """
    lanes = sums.shape[1]
    sums[:] = 0.0
    r_sum, a_sum, f_sum = sums[0], sums[1], sums[2]
    for start in range(0, b.shape[0], lanes):
        stop = min(start + lanes, b.shape[0])
        A_part, b_part, f_part, d_part = Av[start:stop], b[start:stop], force[start:stop], weight[start:stop]
        for i in range(stop - start):
            r = A_part[i] - b_part[i] - f_part[i]
            r_sum[i] += r * r * d_part[i]
        for i in range(stop - start):
            a_sum[i] += A_part[i] * A_part[i] * d_part[i]
            f_sum[i] += f_part[i] * f_part[i] * d_part[i]
    r_total = a_total = f_total = 0.0
    for i in range(lanes):
        r_total += r_sum[i]
        a_total += a_sum[i]
        f_total += f_sum[i]
    return r_total, a_total, f_total


@njit(cache=True, inner=True, _nrt=False)
def plain_residual(b: np.ndarray, Av: np.ndarray, force: np.ndarray) -> float:
    """Dynamics residual in the plain 2-norm, as ``metrics.dynamics_residual_plain``; arrays as long as ``b`` count."""
    r_2 = 0.0
    a_2 = 0.0
    b_2 = 0.0
    f_2 = 0.0
    for i in range(b.shape[0]):
        r_2 += (Av[i] - b[i] - force[i]) ** 2
        a_2 += Av[i] * Av[i]
        b_2 += b[i] * b[i]
        f_2 += force[i] * force[i]
    return math.sqrt(relative_to_terms(r_2, a_2, b_2, f_2))


@njit(cache=True, inner=True, _nrt=False)
def distance(x: np.ndarray, y: np.ndarray, weight: np.ndarray, sums: np.ndarray) -> float:
    """Norm of x - y with weights, square root of the sum of weight (x - y)^2; ``sums`` (3, any) is overwritten."""
    lanes = sums.shape[1]
    total = sums[0]
    total[:] = 0.0
    for start in range(0, x.shape[0], lanes):
        stop = min(start + lanes, x.shape[0])
        x_part, y_part, d_part = x[start:stop], y[start:stop], weight[start:stop]
        for i in range(stop - start):
            d = x_part[i] - y_part[i]
            total[i] += d * d * d_part[i]
    square = 0.0
    for i in range(lanes):
        square += total[i]
    return math.sqrt(square)


@njit(cache=True, inner=True, _nrt=False)
def blend(nu: float, relaxation: float, star: np.ndarray, x: np.ndarray, x_old: np.ndarray) -> None:
    """Replace x_old by nu (u (v** - x) + x - x_old) + x_old, eq. (38) with the under-relaxation u of Wang 2015."""
    for i in range(x.shape[0]):
        x_old[i] = nu * (relaxation * (star[i] - x[i]) + x[i] - x_old[i]) + x_old[i]


@njit(cache=True, inner=True, _nrt=False)
def extrapolate(
    rules: Rules, plain: bool, diagonal: np.ndarray, iterates: Iterates, acceleration: Acceleration, sums: np.ndarray
) -> Acceleration:
    """Alg. 3: replace x_old by the next iterate of eq. (38), and A of it by linearity; by v** itself where it is ``plain``.

    The norm of the step weighs each row by its ``diagonal`` of A, so that it does not depend on units.
    """
    since_start, nu, radius = acceleration.since_start + 1, acceleration.nu, acceleration.radius
    if plain or not rules.chebyshev or since_start < rules.delay:
        nu = 1.0
    elif since_start == rules.delay:
        nu = 2.0 / (2.0 - radius * radius)
    else:
        nu = 4.0 / (4.0 - radius * radius * nu)
    blend(nu, rules.relaxation, iterates.star, iterates.x, iterates.x_old)
    blend(nu, rules.relaxation, iterates.A_star, iterates.Ax, iterates.Ax_old)
    step_norm = distance(iterates.x_old, iterates.x, diagonal, sums)
    if acceleration.step_norm > 0.0:
        radius = min(step_norm / acceleration.step_norm, 1.0)  # eq. (39)
    return Acceleration(since_start, nu, radius, step_norm)


@njit(cache=True, inner=True, _nrt=False)
def update_multipliers(matrix: Matrix, A_star: np.ndarray, multiplier: np.ndarray, b_now: np.ndarray) -> None:
    """Let the multipliers take over what the virtual nodes carry now: augmented-Lagrangian update, papers/000 eq. (11)."""
    for q in range(matrix.gain.shape[0]):
        row = matrix.first_virtual + 3 * q
        for c in range(3):
            change = A_star[row + c]
            multiplier[q, c] += change
            b_now[row + c] -= change
            for e in range(matrix.vptr[q], matrix.vptr[q + 1]):
                b_now[matrix.vdof[e]] += matrix.vjac[e, c] * change


@njit(cache=True, inner=True, _nrt=False)
def back_to_best(iterates: Iterates) -> None:
    """Start again from the best iterate."""
    for i in range(iterates.x.shape[0]):
        iterates.x[i] = iterates.x_old[i] = iterates.best[i]
        iterates.Ax[i] = iterates.Ax_old[i] = iterates.A_best[i]
    copy_forces(iterates.best_lam, iterates.lam)


@njit(cache=True, inner=True, _nrt=False)
def guard(rules: Rules, tolerance: float, iteration: int, merit: float, best: float, watch: Guard) -> tuple[bool, Guard]:
    """Whether to go back to the best iterate and restart the acceleration, and the state of the safeguards after that.

    That is where the best residual has not fallen to ``PROGRESS`` of itself within ``patience`` iterations, or where ``merit``,
    the larger residual of an adaptive iteration, is ``RETREAT`` times that of the best one. Restarts for lack of progress also
    halve the rate of the multipliers' updates, and after ``MAX_RESTARTS`` of them the plain iteration with the step
    ``safe_step`` runs for the rest, halved each time it stalls for a quarter of the patience (the strict operator can make the
    plain iteration cycle where friction is large).
    """
    reference, window, restarts, safe_step, safe_until, interval = watch
    if merit <= tolerance:  # only the balance of the bodies or the plain norm is missing
        window = iteration
    stalled = iteration - window >= (rules.patience if restarts <= MAX_RESTARTS else rules.patience // 4)
    if stalled and best < PROGRESS * reference:
        stalled = False
        reference = best
        window = iteration
    stalled = stalled and restarts <= MAX_RESTARTS + MAX_HALVINGS
    back = stalled or (rules.adaptive and merit > RETREAT * best)
    if back:
        if stalled:
            restarts += 1
            interval *= 2
            if restarts > MAX_RESTARTS + 1:
                safe_step *= 0.5
        safe_until = iteration + SAFE_STEPS
        window = iteration
        reference = best
    return back, Guard(reference, window, restarts, safe_step, safe_until, interval)


@njit(cache=True, _nrt=False)
def iterate(
    matrix: Matrix,
    steps: Steps,
    contacts: ContactArrays,
    bodies: Bodies,
    rules: Rules,
    diagonal: np.ndarray,
    tolerance: float,
    limit: int,
    state: State,
    history: np.ndarray,
) -> State:
    """Iterate until an answer passes, ``limit`` more times, or until a value is not finite.

    One product with A an iteration: A is applied to v** (so that the residual of the returned pair is exact and free), and
    A of the extrapolated iterate follows from the same linear combination.

    Parameters
    ----------
    matrix, steps, contacts, bodies, rules, state
        See ``cond_groups``; arrays of the state are updated, and the state that is returned continues it.
    diagonal : ndarray, (size,), N s/m
        Diagonal of A of eq. (15).
    tolerance : float
        Bound of the residuals.
    limit : int
        Most iterations of this call.
    history : ndarray, (iterations in all, 3)
        Updated: dynamics residual, contact residual and step norm of each iteration.
    """
    iteration, finite, contact, best, best_at, updated, alpha = state.progress
    i, work, acceleration, watch = state.iterates, state.work, state.acceleration, state.guard
    last = iteration + limit
    finite, done = True, False
    while finite and not done and iteration < last:
        iteration += 1
        step(steps, contacts, alpha, work.b_now, i)
        solve_contacts(contacts, rules, alpha, steps.w, tolerance, i.lam, i.star, work.force)
        decides = iteration == 1 or iteration == last
        found = judge(matrix, contacts, bodies, rules, tolerance, decides, contact, i, work)
        contact, merit = found.contact, max(found.dynamics, found.contact)
        plain = watch.restarts > MAX_RESTARTS
        acceleration = extrapolate(rules, plain, diagonal, i, acceleration, work.sums)
        i = Iterates(i.x_old, i.x, i.Ax_old, i.Ax, i.star, i.A_star, i.best, i.A_best, i.lam, i.best_lam)
        history[iteration - 1, 0] = found.dynamics
        history[iteration - 1, 1] = contact
        history[iteration - 1, 2] = acceleration.step_norm
        finite = found.finite and math.isfinite(acceleration.step_norm)

        if finite and merit <= tolerance:
            Av = work.body_Av if matrix.gain.shape[0] > 0 else i.A_star
            done = balanced(bodies, contacts.node, i.lam, Av, found.size, tolerance, rules.balance_factor, work)
        if done or (finite and merit < best):
            best, best_at = merit, iteration
            copy_forces(i.lam, i.best_lam)
            i = Iterates(i.x, i.x_old, i.Ax, i.Ax_old, i.best, i.A_best, i.star, i.A_star, i.lam, i.best_lam)
        if rules.exact_gain and iteration - updated >= watch.update_interval:
            if found.dynamics < rules.update_ratio * found.mismatch:
                updated = iteration
                update_multipliers(matrix, i.A_best if best_at == iteration else i.A_star, work.multiplier, work.b_now)

        back, watch = guard(rules, tolerance, iteration, merit, best, watch)
        if back:
            back_to_best(i)
            acceleration = Acceleration(0, 1.0, 0.0, 0.0)
        if watch.restarts > MAX_RESTARTS:
            alpha = watch.safe_step
        elif rules.adaptive:  # both Barzilai-Borwein sizes in turn (IV-C2), where they can be trusted
            one, two = barzilai_borwein(steps, i.x, i.x_old, i.Ax, i.Ax_old, work.zero, work.force)
            alpha = one if iteration % 2 else two
            if alpha <= 0.0 or iteration < watch.safe_until:
                alpha = watch.safe_step
    progress = Progress(iteration, finite, contact, best, best_at, updated, alpha)
    return State(progress, i, work, acceleration, watch)
