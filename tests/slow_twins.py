"""Slow, plain twins of the compiled kernels and solvers: independent of them, written to be read. The judges in the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from scipy.spatial.transform import Rotation

from contact import ContactProblem, Group, NodalContactProblem, make_problem
from femsim.base.rotations import quaternion_multiply


def bisect(falling: Callable[[float], float], low: float, high: float) -> float:
    """Root of a falling function by halving, to the last bit or to 1e-18 of the interval."""
    width = 1e-18 * (high - low)
    while high - low > width and low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return low


def closest_in_ellipse(t: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Closest point of sum (p_i / a_i)^2 <= 1: p_i = t_i / (1 + s / a_i^2) with the multiplier s found by halving."""
    if not axes.any():
        return np.zeros(2)
    if ((t / axes) ** 2).sum() <= 1.0:
        return t
    s = bisect(lambda s: ((t / axes / (1 + s / axes**2)) ** 2).sum() - 1.0, 0.0, np.linalg.norm(t) * axes.max())
    return t / (1 + s / axes**2)


def project_strict(lam: np.ndarray, mu: float | np.ndarray) -> np.ndarray:
    """Strict operator, straight from papers/001 eq. (26) and Prop. 6; mu is one coefficient or two."""
    normal = max(lam[0], 0.0)
    tangent = lam[1:]
    if np.ndim(mu) == 1:
        return np.concatenate([[normal], closest_in_ellipse(tangent, np.asarray(mu) * normal)])
    length = np.linalg.norm(tangent)
    if length > mu * normal:
        tangent = tangent * (mu * normal / length) if length > 0 else tangent
    return np.concatenate([[normal], tangent])


def solve_contact(
    problem: ContactProblem, *, sweeps: int = 20000, tolerance: float = 1e-13, regularization: float = 0.0, relaxed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Reference solution by block Gauss-Seidel on the dense Delassus operator with strict (``relaxed``: proximal) projections.

    Each contact uses the scalar majoriser of its diagonal block, so its fixed points satisfy the Signorini-Coulomb law exactly.
    ``regularization`` times the identity adds to the operator (papers/001 eq. 37).
    """
    project = closest_in_cone if relaxed else project_strict
    lu = spla.splu(problem.A.tocsc())
    J = problem.J.toarray()
    AinvJT = lu.solve(J.T) if J.size else np.zeros((problem.n, 0))
    D = J @ AinvJT + regularization * np.eye(len(J))
    q = J @ lu.solve(problem.b) + problem.phi.ravel()
    nc = problem.n_contacts
    lam = np.zeros(3 * nc)
    for _ in range(sweeps):
        change = 0.0
        for m in range(nc):
            rows = slice(3 * m, 3 * m + 3)
            gamma = np.linalg.norm(D[rows, rows], 2)
            if gamma == 0:
                continue
            u = D[rows] @ lam + q[rows]
            new = project(lam[rows] - u / gamma, problem.friction[m])
            change = max(change, np.abs(new - lam[rows]).max())
            lam[rows] = new
        if change <= tolerance * max(np.abs(lam).max(initial=0.0), 1e-300):
            break
    v = lu.solve(problem.b) + AinvJT @ lam
    return v, lam.reshape(-1, 3)


def random_frame(rng: np.random.Generator) -> np.ndarray:
    """Random rotation matrix; rows are a contact frame."""
    q, r = np.linalg.qr(rng.standard_normal((3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def random_spd(rng: np.random.Generator, n: int, condition: float = 50.0) -> np.ndarray:
    """Random symmetric positive definite matrix of a given condition number."""
    q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return q @ np.diag(np.geomspace(1.0, condition, n)) @ q.T


def nodes_on_floor(
    rng: np.random.Generator, n_nodes: int, n_contacts: int, *, friction: float = 0.4, condition: float = 50.0
) -> ContactProblem:
    """Nodes coupled by a random A; the first ones press on an obstacle with random frames."""
    n = 3 * n_nodes
    J = sp.lil_matrix((3 * n_contacts, n))
    for m in range(n_contacts):
        J[3 * m : 3 * m + 3, 3 * m : 3 * m + 3] = random_frame(rng)
    return make_problem(
        random_spd(rng, n, condition),
        rng.standard_normal(n),
        J,
        0.2 * rng.standard_normal(n_contacts) - 0.3,
        friction,
        dt=0.01,
    )


def body_between_nodes(
    rng: np.random.Generator, n_nodes: int, n_contacts: int, *, friction: float = 0.4, inertia: float = 1.0
) -> ContactProblem:
    """Nodes coupled by a random A touch one rigid body of six coordinates (D-contacts that need virtual nodes)."""
    n = 3 * n_nodes
    A = sp.block_diag([random_spd(rng, n), inertia * random_spd(rng, 6, 5.0)], format="csc")
    J = sp.lil_matrix((3 * n_contacts, n + 6))
    for m in range(n_contacts):
        frame = random_frame(rng)
        r = 0.5 * rng.standard_normal(3)
        cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        J[3 * m : 3 * m + 3, 3 * m : 3 * m + 3] = frame
        J[3 * m : 3 * m + 3, n : n + 3] = -frame
        J[3 * m : 3 * m + 3, n + 3 :] = frame @ cross
    groups = (Group("soft", 0, n, "nodes"), Group("rigid", n, n + 6, "generalized"))
    b = rng.standard_normal(n + 6)
    return make_problem(A, b, J, 0.2 * rng.standard_normal(n_contacts) - 0.3, friction, dt=0.01, groups=groups)


def closest_in_cone(x: np.ndarray, mu: float | np.ndarray) -> np.ndarray:
    """Closest point of |t| <= mu n: the best of the apex, the point itself and the foot on the ray of the surface towards it.

    With two coefficients: of |(t / mu)| <= n, by halving the normal part, each with the closest point of its ellipse.
    """
    if np.ndim(mu) == 1:
        mu = np.asarray(mu)

        def pull(n: float) -> float:  # minus the derivative of half the squared distance at height n
            p = closest_in_ellipse(x[1:], mu * n)
            return float(x[0] - n + (x[1:] - p) @ p / n)

        high = abs(x[0]) + np.linalg.norm(x[1:]) * (1 + mu.max())
        n = bisect(pull, 0.0, high) if high > 0 else 0.0
        return np.concatenate([[n], closest_in_ellipse(x[1:], mu * n)])
    length = np.linalg.norm(x[1:])
    direction = x[1:] / length if length > 0 else np.array([1.0, 0.0])
    ray = np.concatenate([[1.0], mu * direction])
    candidates = [np.zeros(3), max(x @ ray, 0.0) / (ray @ ray) * ray]
    if length <= mu * x[0]:
        candidates.append(x)
    return min(candidates, key=lambda p: np.linalg.norm(x - p))


def project_cones(lam: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """Closest points of the circular friction cones, vectorised.

    Parameters
    ----------
    lam : ndarray, (nc, 3), N
        Trial forces, normal first.
    friction : ndarray, (nc,)
        Coulomb coefficients.

    Returns
    -------
    ndarray, (nc, 3), N
    """
    normal, tangent = lam[:, 0], lam[:, 1:]
    length = np.linalg.norm(tangent, axis=1)
    polar = friction * length <= -normal
    inside = ~polar & (length <= friction * normal)
    edge = ~(polar | inside)
    on_edge = (normal + friction * length) / (1.0 + friction**2)
    out = np.where(polar[:, None], 0.0, lam)
    out[edge, 0] = on_edge[edge]
    out[edge, 1:] = tangent[edge] * (friction * on_edge / np.where(length > 0, length, 1.0))[edge, None]
    return out


def natural_map_residual(
    problem: ContactProblem, v: np.ndarray, lam: np.ndarray, *, de_saxce: bool = True, regularization: float = 0.0
) -> float:
    """``||lam - P_K(lam - rho uh)|| / max(||lam||, ||rho uh||)``, contact by contact with dense matrices.

    With two coefficients in the variables lam_t / N and N u_t, N = mu / sqrt(mu1 mu2), in which the cone is circular.
    """
    A, J = problem.A.toarray(), problem.J.toarray()
    residual, force, velocity = [], [], []
    for m in range(problem.n_contacts):
        mu, N = problem.friction[m], np.ones(3)
        if np.ndim(mu) == 1 and mu.any():
            N[1:] = mu / np.sqrt(mu.prod())
        mean = float(np.sqrt(np.prod(mu))) if np.ndim(mu) == 1 else mu
        block = N[:, None] * J[3 * m : 3 * m + 3]
        rho = 3.0 / np.trace(block @ np.diag(1.0 / np.diag(A)) @ block.T + regularization * np.diag(N**2))
        u = block @ v + N * (problem.phi[m] + regularization * lam[m])
        if de_saxce:
            u[0] += mean * np.linalg.norm(u[1:])
        residual.append(lam[m] / N - closest_in_cone(lam[m] / N - rho * u, mean))
        force.append(lam[m] / N)
        velocity.append(rho * u)
    return float(np.linalg.norm(residual) / max(np.linalg.norm(force), np.linalg.norm(velocity)))


def padded_matrix(nodal: NodalContactProblem) -> np.ndarray:
    """A of eq. (15) in the layout of x: dense, with ones on the diagonal of padding rows."""
    start, size = nodal.virtual_start, nodal.size
    place = np.concatenate([nodal.rows, np.arange(start, size)])
    A = np.eye(size)
    A[np.ix_(place, place)] = nodal.assembled().A.toarray()
    return A


def nodal_jacobian(nodal: NodalContactProblem) -> np.ndarray:
    """Contact Jacobian (3 nc, size) of a nodalized problem in the layout of x, dense."""
    J = np.zeros((3 * nodal.problem.n_contacts, nodal.size))
    for m in range(nodal.problem.n_contacts):
        for side in range(2):
            s = nodal.node[m, side]
            if s >= 0:
                J[3 * m : 3 * m + 3, s : s + 3] += nodal.block[m, side]
    return J


def block_rows(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """3x3 blocks of a dense matrix that are not zero, row by row: start of each block row, block column, and values.

    The values of a block follow each other by columns, and one number stands behind the last block.
    """
    ptr, col, blocks = [0], [], []
    for i in range(len(A) // 3):
        for j in range(len(A) // 3):
            block = A[3 * i : 3 * i + 3, 3 * j : 3 * j + 3]
            if block.any():
                col.append(j)
                blocks.append(block.T.ravel())
        ptr.append(len(col))
    return np.array(ptr), np.array(col, dtype=np.int32), np.concatenate([*blocks, [1e6]])


def block_product(ptr: np.ndarray, col: np.ndarray, values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Product of such blocks with x, one sum for each column of the blocks of a row, in the order of the compiled one."""
    y = np.empty(3 * (len(ptr) - 1))
    for i in range(len(ptr) - 1):
        sums = np.zeros((3, 3))
        for k in range(ptr[i], ptr[i + 1]):
            for c in range(3):
                for r in range(3):
                    sums[c, r] += values[9 * k + 3 * c + r] * x[3 * col[k] + c]
        y[3 * i : 3 * i + 3] = (sums[0] + sums[1]) + sums[2]
    return y


def frobenius_steps(A: np.ndarray) -> np.ndarray:
    """Steps w, equal within a node, that minimise ||I - W A||_F (papers/001 IV-C1): tr(A_ii) / ||rows of node i||_F^2."""
    w = np.empty(len(A))
    for i in range(0, len(A), 3):
        w[i : i + 3] = np.trace(A[i : i + 3, i : i + 3]) / (A[i : i + 3] ** 2).sum()
    return w


def dense_steps(w: np.ndarray, start: np.ndarray, size: np.ndarray, dense: np.ndarray) -> np.ndarray:
    """Step matrix W: diagonal, with a dense block on each body."""
    W = np.diag(w)
    for g in range(len(start)):
        rows = slice(start[g], start[g] + size[g])
        W[rows, rows] = dense[g, : size[g], : size[g]]
    return W


def contact_pass(
    J: np.ndarray,
    gamma: np.ndarray,
    w: np.ndarray,
    phi: np.ndarray,
    friction: np.ndarray,
    lam: np.ndarray,
    x: np.ndarray,
    project: Callable[[np.ndarray, np.ndarray], np.ndarray],
    chosen: Sequence[int],
    regularization: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, float]:
    """One pass of Alg. 2 over the chosen contacts with dense rows of J; returns (lam, x, relative change)."""
    lam, x = lam.copy(), x.copy()
    change = largest = 0.0
    for m in chosen:
        rows = J[3 * m : 3 * m + 3]
        if gamma[m] + regularization == 0.0:
            lam[m] = 0.0
            continue
        u = rows @ x + phi[m] + regularization * lam[m]
        new = project(lam[m] - u / (gamma[m] + regularization), friction[m])
        x += w * (rows.T @ (new - lam[m]))
        change, largest = max(change, np.abs(new - lam[m]).sum()), max(largest, np.abs(new).sum())
        lam[m] = new
    return lam, x, change / largest if largest > 0 else change


def rotation_of(F: np.ndarray) -> np.ndarray:
    """Rotation closest to F: U diag(1, 1, det(U V^T)) V^T of its singular value decomposition."""
    U, _, Vt = np.linalg.svd(F)
    return U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt


def element_matrices(rest: np.ndarray, tets: np.ndarray, lame_lambda: float, lame_mu: float) -> np.ndarray:
    """Stiffness matrices V B^T D B of linear tetrahedra as in a textbook, (m, 12, 12), N/m."""
    D = np.zeros((6, 6))
    D[:3, :3] = lame_lambda
    D += np.diag([2.0 * lame_mu] * 3 + [lame_mu] * 3)
    out = []
    for tet in tets:
        corners = np.column_stack([np.ones(4), rest[tet]])
        a = np.linalg.inv(corners)[1:]  # column i: gradient of the shape function of corner i
        B = np.zeros((6, 12))
        for i in range(4):
            x, y, z = a[:, i]
            B[:, 3 * i : 3 * i + 3] = [[x, 0, 0], [0, y, 0], [0, 0, z], [y, x, 0], [0, z, y], [z, 0, x]]
        out.append(abs(np.linalg.det(corners)) / 6.0 * B.T @ D @ B)
    return np.array(out)


def moved_pose(q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Coordinates of an articulated body after a small motion (velocity times time): scipy's rotations, turned in the world."""
    out = q.copy()
    out[:3] += step[:3]
    turned = Rotation.from_rotvec(step[3:6]) * Rotation.from_quat(q[[4, 5, 6, 3]])
    x, y, z, w = turned.as_quat()
    new = np.array([w, x, y, z])
    out[3:7] = new if new @ q[3:7] >= 0 else -new
    out[7:] += step[6:]
    return out


Pose = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def rotation_rate(pose: Pose, q: np.ndarray, link: int, v: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """World angular velocity of a link: axial vector of dR/dt R^T by central differences."""
    ahead, back = (pose(moved_pose(q, s * v), link)[0] for s in (h, -h))
    W = (ahead - back) / (2 * h) @ pose(q, link)[0].T
    return 0.5 * np.array([W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]])


def link_velocity(pose: Pose, q: np.ndarray, link: int, v: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Velocity of the centre of mass of a link and its angular velocity, (6,), by central differences of its pose."""
    ahead, back = (pose(moved_pose(q, s * v), link)[1] for s in (h, -h))
    return np.concatenate([(ahead - back) / (2 * h), rotation_rate(pose, q, link, v, h)])


def local_force(block: np.ndarray, q: np.ndarray, mu: float) -> np.ndarray:
    """Force of one contact alone, u = block lam + q under the Signorini-Coulomb law, by cases and halving.

    Open, else sticking, else sliding at the s > 0 with |lam_t(s)| = mu lam_n(s) for (block + diag(0, s, s)) lam = -q.
    """
    if q[0] >= 0:
        return np.zeros(3)
    if mu == 0:
        return np.array([-q[0] / block[0, 0], 0.0, 0.0])

    def force(s: float) -> np.ndarray:
        return np.linalg.solve(block + np.diag([0.0, s, s]), -q)

    def outside(s: float) -> float:
        return float(np.linalg.norm(force(s)[1:]) - mu * force(s)[0])

    if outside(0.0) <= 0:
        return force(0.0)
    high = float(np.trace(block))
    while outside(high) > 0:
        high *= 2.0
    return force(bisect(outside, 0.0, high))


def dense_sweep(W: np.ndarray, q: np.ndarray, friction: np.ndarray, lam: np.ndarray, strict: bool) -> tuple[np.ndarray, float]:
    """One Gauss-Seidel sweep on u = W lam + q: exact local solves, or cone projections by 3 over the trace of the block.

    At most 1.9 over its row sum norm.

    Returns the forces, (3k,), and the largest change over the largest force.
    """
    lam = lam.copy()
    change = 0.0
    for m in range(len(friction)):
        rows = slice(3 * m, 3 * m + 3)
        block, u = W[rows, rows], W[rows] @ lam + q[rows]
        if strict:
            new = local_force(block, u - block @ lam[rows], friction[m])
        else:
            step = min(3.0 / np.trace(block), 1.9 / np.linalg.norm(block, np.inf))
            new = closest_in_cone(lam[rows] - step * u, friction[m])
        change = max(change, np.abs(new - lam[rows]).max())
        lam[rows] = new
    return lam, change / np.abs(lam).max()


def alart_curnier(
    W: np.ndarray,
    q: np.ndarray,
    friction: np.ndarray,
    scale: np.ndarray,
    lam: np.ndarray,
    closed: Sequence[int],
    slides: Sequence[bool],
) -> np.ndarray:
    """Rows (3 a closed contact) of the Alart-Curnier equations on given sets: u_n; u_t or w (lam_t - mu lam_n y_t / |y_t|).

    With y_t = lam_t - u_t / w and w the scale of the contact.
    """
    u, out = W @ lam + q, []
    for m, slide in zip(closed, slides, strict=True):
        rows = slice(3 * m, 3 * m + 3)
        y = lam[rows][1:] - u[rows][1:] / scale[m]
        tangent = scale[m] * (lam[rows][1:] - friction[m] * lam[3 * m] * y / np.linalg.norm(y)) if slide else u[rows][1:]
        out += [u[3 * m], *tangent]
    return np.array(out)


def rotate_by_cayley(q: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Rotate q by Cayley's map of a vector (3,), world frame: (1 + turn/2) q, normalised.

    The axes then change by turn x their mean, as points do that go by the mid-point rule.
    """
    turned = quaternion_multiply(np.concatenate(([1.0], 0.5 * np.asarray(turn, dtype=np.float64))), q)
    return np.asarray(turned / np.linalg.norm(turned))
