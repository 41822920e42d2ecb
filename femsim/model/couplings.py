"""What joins bodies in the system: symmetric blocks of A between their rows, and rod ends that other bodies hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from contact import Mesh, Shape, signed_distance
from femsim.base.errors import InputError
from femsim.base.rotations import (
    cross_matrix,
    quaternion_conjugate,
    quaternion_from_matrix,
    quaternion_multiply,
)
from femsim.model.bodies.articulated import ArticulatedBody
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from meshes import boundary_triangles


class Coupling(Protocol):
    """A force between bodies that is implicit in A.

    The system calls, once a step and in this order: ``prepare`` before the bodies fill their blocks, ``assemble`` after that,
    ``accept`` with the velocity that was solved for, ``settle`` when the bodies have their new coordinates. A step may be put
    back and taken anew (:mod:`femsim.step.advance`): what is kept from step to step must be numbers, tuples or arrays that are
    attributes of the coupling itself.

    Attributes
    ----------
    name : str
        Name in messages.
    rows : tuple of (int, ndarray)
        Each body that it touches, by its number in the system, and the rows of that body's v, in order. The block of the
        coupling is that of all these rows.
    entries : tuple of ndarray or None
        Row and column, within the block, of its entries, each pair once; None where it is dense.
    power : float, W
        What it did from outside on the bodies in the last step; 0 where it only passes on or stores.
    forces : tuple of ndarray, (3,), N
        Total force on each of these bodies in the last step.
    step_means : tuple of str, optional
        Names of attributes that say what acted in the last step: of a step that was taken in parts they become the mean.
    """

    name: str
    rows: tuple[tuple[int, np.ndarray], ...]
    entries: tuple[np.ndarray, np.ndarray] | None
    forces: tuple[np.ndarray, ...]
    power: float

    def prepare(self, q: Sequence[np.ndarray], t: float) -> None:
        """Read the coordinates of its bodies at the start of the step, which ends at time ``t`` (s)."""
        ...

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Fill what it adds to A, symmetric positive semi-definite, (m, m) or the values of ``entries``, and to b, (m,)."""
        ...

    def accept(self, v_hat: np.ndarray) -> None:
        """Take the representative velocity of its rows, (m,)."""
        ...

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Read the coordinates of its bodies at the end of the step."""
        ...


class Frame(Protocol):
    """A frame that a body carries: its pose and how it moves with the body.

    Attributes
    ----------
    rows : ndarray of int, (m,)
        Rows of the body's v that move it.
    lever : ndarray, (3,), m
        Arm on which the frame turns, world, where it was placed last.
    """

    rows: np.ndarray
    lever: np.ndarray

    def place(self, q: np.ndarray) -> np.ndarray:
        """Pose (7,): position (m) and quaternion; remembers the coordinates for what follows."""
        ...

    def jacobian(self) -> np.ndarray:
        """Velocity and angular velocity of the frame by those of the rows, (6, m), where it was placed last."""
        ...


class LinkFrame:
    """Frame fixed to a link of a rigid body or gripper.

    Parameters
    ----------
    body : ArticulatedBody
        The body.
    link : int
        Its link, 0 the base.
    pose : ndarray, (7,)
        Position (m) and quaternion at the start, world.
    """

    def __init__(self, body: ArticulatedBody, link: int, pose: np.ndarray) -> None:
        self._body, self.link = body, link
        q = body.initial_q()
        rotation, centre = body.link_pose(q, link)
        self._local = rotation.T @ (pose[:3] - centre)
        self._turn = quaternion_multiply(quaternion_conjugate(q[3:7]), pose[3:])
        self.rows = np.arange(6) if link == 0 else np.array([*range(6), 5 + link])
        self.place(q)

    def place(self, q: np.ndarray) -> np.ndarray:
        """Pose (7,) at coordinates of the body."""
        rotation, centre = self._body.link_pose(q, self.link)
        self._arm = rotation @ self._local
        self.lever = centre + self._arm - q[:3]
        self._motion = self._body.link_jacobian(q, self.link)[:, self.rows]
        return np.concatenate([centre + self._arm, quaternion_multiply(q[3:7], self._turn)])

    def jacobian(self) -> np.ndarray:
        """Twist of the link, moved to the frame: (6, 6), or (6, 7) with the joint of a finger."""
        G = self._motion.copy()
        G[:3, 3:6] -= cross_matrix(self._arm)
        return G


class PatchFrame:
    """Frame spread over some nodes of a soft body.

    It turns as their weighted positions do, R from the polar decomposition C = R S of C = sum w (x - mean x) (X - mean X)^T, and
    keeps its place in these axes. The velocities follow exactly: with a = R (X - mean X) and P = C R^T symmetric, the angular
    velocity is (tr(P) I - P)^-1 sum w a x v. So forces on the frame are spread over the nodes with the same sum and, since
    a rotation of all nodes is reproduced, the same moment. Nodes in one plane are enough.

    Parameters
    ----------
    body : SoftBody
        The body.
    nodes : ndarray of int, (k,)
        At least three nodes that are not in one line.
    weights : ndarray, (k,)
        Their weights, positive; only ratios count.
    pose : ndarray, (7,)
        Position (m) and quaternion at the start, world.
    """

    def __init__(self, body: SoftBody, nodes: np.ndarray, weights: np.ndarray, pose: np.ndarray) -> None:
        self.nodes, self.weights = nodes, weights / weights.sum()
        self.rows = (3 * nodes[:, None] + np.arange(3)).ravel()
        mean = self.weights @ body.rest[nodes]
        self._rest = body.rest[nodes] - mean
        self._local, self._turn = pose[:3] - mean, pose[3:].copy()
        self.place(body.initial_q())

    def place(self, q: np.ndarray) -> np.ndarray:
        """Pose (7,) at coordinates of the body."""
        x = q.reshape(-1, 3)[self.nodes]
        mean = self.weights @ x
        C = (self.weights[:, None] * (x - mean)).T @ self._rest
        U, _, Vt = np.linalg.svd(C)
        U[:, 2] *= np.sign(np.linalg.det(U) * np.linalg.det(Vt))
        R = U @ Vt
        P = C @ R.T
        self._inverse = np.linalg.inv(np.trace(P) * np.eye(3) - 0.5 * (P + P.T))
        self._arms, self.lever = self._rest @ R.T, R @ self._local
        return np.concatenate([mean + self.lever, quaternion_multiply(quaternion_from_matrix(R), self._turn)])

    def jacobian(self) -> np.ndarray:
        """(6, 3 k): weighted mean velocity, moved to the frame, and angular velocity of the polar rotation."""
        arms = cross_matrix(self._arms)
        turning = np.concatenate([w * self._inverse @ a for w, a in zip(self.weights, arms, strict=True)], 1)
        G = np.vstack([np.kron(self.weights, np.eye(3)), turning])
        G[:3] -= cross_matrix(self.lever) @ turning
        return G


class HeldEnd:
    """End of a rod whose frame another body carries.

    The joint is that of any held end (half a link, see ``Rod``), with the same linearisation. With G the
    Jacobian of the frame and [B_ff, B_fl; B_lf, B_ll] the matrix of the joint, of which the rod has B_ll, A gains
    G^T B_ff G and G^T B_fl, b loses G^T f. Of what the change of G would add, A keeps the tension stiffness of the frame's
    lever d: the pull F . d across d, as at a loaded tip of a rod, by which a pendulum swings back; so A stays positive definite.
    The rod's ``end_wrench`` is what the holder feels.

    Parameters
    ----------
    name : str
        Name in messages.
    rod : Rod
        The rod.
    end : int
        0 for its start, 1 for its end.
    frame : Frame
        Frame of the holder.
    rod_index, holder_index : int
        Numbers of the rod and the holder in the system.
    """

    #: a step fills these, see :mod:`femsim.step.advance`
    step_means = ("forces",)

    def __init__(self, name: str, rod: Rod, end: int, frame: Frame, *, rod_index: int, holder_index: int) -> None:
        self.name, self._rod, self._end, self._frame = name, rod, end, frame
        self._size = len(frame.rows)
        own = np.arange(6) if end == 0 else np.arange(rod.n_v - 6, rod.n_v)
        self.rows: tuple[tuple[int, np.ndarray], ...] = ((holder_index, frame.rows), (rod_index, own))
        self.entries: tuple[np.ndarray, np.ndarray] | None = None
        self.forces: tuple[np.ndarray, ...] = (np.zeros(3), np.zeros(3))
        self.power = 0.0

    def carried_by(self, body: int, link: int) -> bool:
        """Whether a link of a rigid body or gripper carries the end; the body by its number in the system."""
        return self.rows[0][0] == body and isinstance(self._frame, LinkFrame) and self._frame.link == link

    def pull(self) -> tuple[np.ndarray, np.ndarray]:
        """Place of the frame (3,), m, and what the rod exerts on it, (6,) N and N m, after the last step."""
        return self._rod.end_frames[self._end, :3], self._rod.end_wrench[self._end]

    def prepare(self, q: Sequence[np.ndarray], t: float) -> None:
        """Place the frame where the holder has it."""
        self._rod.place_end(self._end, self._frame.place(q[0]))
        self._jacobian = self._frame.jacobian()

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Fill the parts of the joint that touch the holder."""
        B, force = self._rod.end_joint(self._end)
        G, m = self._jacobian, self._size
        block[:] = 0.0
        own = G.T @ B[:6, :6] @ G
        block[:m, :m] = 0.5 * (own + own.T)
        block[:m, m:] = G.T @ B[:6, 6:]
        block[m:, :m] = block[:m, m:].T
        lever, turn = self._frame.lever, G[3:]
        pull = settings.theta * settings.dt * float(-force[:3] @ lever)
        if pull > 0.0:
            axis = lever / np.linalg.norm(lever)
            block[:m, :m] += pull * (turn.T @ turn - np.outer(axis @ turn, axis @ turn))
        b[:m] = -G.T @ force[:6]
        b[m:] = 0.0

    def accept(self, v_hat: np.ndarray) -> None:
        """Tell the rod how the frame moves in the step."""
        self._rod.move_end(self._end, self._jacobian @ v_hat[: self._size])

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Take the force of the step and place the frame where the holder has it now."""
        force = self._rod.end_wrench[self._end, :3].copy()
        self.forces = (force, -force)
        self._rod.place_end(self._end, self._frame.place(q[0]))


def surface_patch(body: SoftBody, point: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Surface nodes that hold a frame at a point: those of the closest triangles and all within a radius of that point.

    Parameters
    ----------
    body : SoftBody
        The body, at rest.
    point : ndarray, (3,), m
        Where the frame is.
    radius : float, m
        Radius of the patch.

    Returns
    -------
    nodes : ndarray of int, (k,)
        Sorted.
    weights : ndarray, (k,), m^2
        A third of the surface around each.
    distance : float, m
        From the point to the surface.
    """
    triangles = boundary_triangles(body.tets)
    corners = body.rest[triangles]
    closest = _closest_points(point, corners)
    distances = np.linalg.norm(closest - point, axis=1)
    nearest = int(np.argmin(distances))
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    weights = np.bincount(triangles.ravel(), np.repeat(area / 3.0, 3), minlength=body.n_nodes)
    near = (np.linalg.norm(body.rest - closest[nearest], axis=1) <= radius) & (weights > 0.0)
    near[triangles[distances <= distances[nearest] + 1e-6 * radius]] = True  # a point on an edge or corner is close to several
    nodes = np.flatnonzero(near)
    return nodes, weights[nodes], float(distances[nearest])


def holder_gap(
    shapes: Sequence[tuple[Shape, np.ndarray, np.ndarray]], rotation: np.ndarray, translation: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Signed distance of points (k, 3) to the shapes of a part at a pose, (k,), m; -inf for a part that has none."""
    gap = np.full(len(points), np.inf if shapes else -np.inf)
    for shape, turn, place in shapes:
        local = ((points - translation) @ rotation - place) @ turn
        distance = signed_distance(shape, np.ascontiguousarray(local))[0]
        if isinstance(shape, Mesh):  # far from it its grid says only that
            for k in np.flatnonzero(np.isinf(distance)):
                closest = _closest_points(local[k], shape.points[shape.triangles])
                distance[k] = np.linalg.norm(closest - local[k], axis=1).min()
        gap = np.minimum(gap, distance)
    return gap


def check_reach(what: str, holder: str, distance: float, radius: float) -> None:
    """Refuse an end that lies further from its holder than the rod's contact radius."""
    if distance > radius * (1.0 + 1e-9):
        raise InputError(
            f"{what} is held by {holder!r}, but lies {1e3 * distance:.4g} mm from its surface; allowed is the rod's contact "
            f"radius of {1e3 * radius:.4g} mm, so move the end or the holder."
        )


def _closest_points(point: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return the point (m, 3) of each triangle, corners (m, 3, 3), that is closest to a point (3,)."""
    best = np.empty((len(corners), 3))
    least = np.full(len(corners), np.inf)
    candidates = []
    for k in range(3):
        a, side = corners[:, k], corners[:, (k + 1) % 3] - corners[:, k]
        along = np.clip(((point - a) * side).sum(axis=1) / (side * side).sum(axis=1), 0.0, 1.0)
        candidates.append((a + along[:, None] * side, np.ones(len(corners), dtype=np.bool_)))
    a, first, second = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(first, second)
    square = (normal * normal).sum(axis=1)
    r = point - a
    s = (np.cross(r, second) * normal).sum(axis=1) / square
    t = (np.cross(first, r) * normal).sum(axis=1) / square
    candidates.append((a + s[:, None] * first + t[:, None] * second, (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0)))
    for found, valid in candidates:
        distance = np.where(valid, np.linalg.norm(found - point, axis=1), np.inf)
        closer = distance < least
        best[closer], least[closer] = found[closer], distance[closer]
    return best
