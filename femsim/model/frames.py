"""Frames that bodies carry and that hold the ends of rods: their poses, and how they move with the body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from contact import closest_points_on_triangles
from femsim.base.rotations import (
    cross_matrix,
    quaternion_conjugate,
    quaternion_multiply,
    quaternion_to_matrix,
)
from femsim.model import patch_kernels as kernels
from meshes import boundary_triangles


class Linked(Protocol):
    """A body of rigid links, each with a pose.

    Attributes
    ----------
    n_v : int
        Number of its velocities: six of the base, then those of the joints.
    """

    n_v: int

    def initial_q(self) -> np.ndarray:
        """Coordinates at the start, (n_q,)."""
        ...

    def link_pose(self, q: np.ndarray, link: int) -> tuple[np.ndarray, np.ndarray]:
        """World rotation (3, 3) and centre of mass (3,), m, of a link."""
        ...

    def link_turn(self, q: np.ndarray, link: int) -> np.ndarray:
        """Quaternion of a link, (4,), of either sign."""
        ...

    def link_rows(self, link: int) -> np.ndarray:
        """Rows of v behind the first six that move a link too."""
        ...

    def link_lever(self, q: np.ndarray, link: int, point: np.ndarray) -> np.ndarray:
        """Arm (3,), m, from where the link turns to a point on it."""
        ...

    def link_jacobian(self, q: np.ndarray, link: int) -> np.ndarray:
        """Velocity of the centre of mass and angular velocity of a link by those of the rows, (6, n_v)."""
        ...

    def moved(self, q: np.ndarray, v_hat: np.ndarray, time: float) -> np.ndarray:
        """Coordinates (n_q,) that q becomes at velocity v_hat in a time, s."""
        ...

    def hangs_on(self, link: int) -> list[int]:
        """Links that the joint of a link carries: its own and all behind it."""
        ...


class Tetrahedra(Protocol):
    """A body of tetrahedra.

    Attributes
    ----------
    name : str
        Name in messages.
    rest : ndarray, (n, 3), m
        Nodes at rest.
    tets : ndarray of int, (m, 4)
        Their corners.
    n_nodes : int
        Number of nodes.
    """

    name: str
    rest: np.ndarray
    tets: np.ndarray
    n_nodes: int

    @property
    def middles(self) -> np.ndarray:
        """Nodes in the middle of the edges of quadratic elements, each with the two ends of its edge, (k, 3)."""
        ...


@dataclass
class Placed:
    """Tetrahedra of a body with its nodes in another place than at rest, e.g. where they start."""

    name: str
    rest: np.ndarray
    tets: np.ndarray
    n_nodes: int
    middles: np.ndarray


class HoldFrame(Protocol):
    """A frame that a body carries: its pose and how it moves with the body.

    Attributes
    ----------
    rows : ndarray of int, (m,)
        Rows of the body's v that move it.
    lever : ndarray, (3,), m
        Arm on which the frame turns, world, where it was placed last.
    rigid : bool
        Whether a rigid link carries it, so that its rows turn one after the other: of a base, then of joints from there on.
    carriers : tuple of int
        Links on joints that carry it, from the base on; none where it is no link of a robot or gripper that does.
    """

    rows: np.ndarray
    lever: np.ndarray
    rigid: bool
    carriers: tuple[int, ...]

    def place(self, q: np.ndarray) -> np.ndarray:
        """Pose (7,): position (m) and quaternion; remembers the coordinates for what follows."""
        ...

    def jacobian(self) -> np.ndarray:
        """Velocity and angular velocity of the frame by those of the rows, (6, m), where it was placed last."""
        ...

    def moved(self, q: np.ndarray, v: np.ndarray, time: float) -> np.ndarray:
        """Coordinates of the body for ``place``, moved from q for a time (s) at the velocities (m,) of the rows."""
        ...

    def centres(self) -> np.ndarray:
        """Centres of mass of the carriers where the frame was placed last, (k, 3), m."""
        ...


class LinkFrame:
    """Frame fixed to a link of a rigid body, gripper or robot.

    Parameters
    ----------
    body : Linked
        The body.
    link : int
        Its link, 0 the base.
    pose : ndarray, (7,)
        Position (m) and quaternion at the start, world.
    """

    rigid = True

    def __init__(self, body: Linked, link: int, pose: np.ndarray) -> None:
        self._body, self._link = body, link
        self.carriers = tuple(k for k in range(1, link + 1) if link in body.hangs_on(k))
        q = body.initial_q()
        rotation, centre = body.link_pose(q, link)
        self._local = rotation.T @ (pose[:3] - centre)
        self._turn = quaternion_multiply(quaternion_conjugate(body.link_turn(q, link)), pose[3:])
        self.rows = np.concatenate([np.arange(6), body.link_rows(link)])
        self.place(q)

    def __repr__(self) -> str:
        return f"<LinkFrame on link {self._link}>"

    def place(self, q: np.ndarray) -> np.ndarray:
        """Pose (7,) at coordinates of the body."""
        rotation, centre = self._body.link_pose(q, self._link)
        self._centres = np.array([self._body.link_pose(q, k)[1] for k in self.carriers]).reshape(-1, 3)
        self._arm = rotation @ self._local
        self.lever = self._body.link_lever(q, self._link, centre + self._arm)
        self._motion = self._body.link_jacobian(q, self._link)[:, self.rows]
        return np.concatenate([centre + self._arm, quaternion_multiply(self._body.link_turn(q, self._link), self._turn)])

    def jacobian(self) -> np.ndarray:
        """Twist of the link, moved to the frame: (6, 6 + k) with the k joints between base and link."""
        G = self._motion.copy()
        G[:3] -= cross_matrix(self._arm) @ G[3:]
        return G

    def moved(self, q: np.ndarray, v: np.ndarray, time: float) -> np.ndarray:
        """Coordinates of the body, its other joints at rest."""
        v_hat = np.zeros(self._body.n_v)
        v_hat[self.rows] = v
        return self._body.moved(q, v_hat, time)

    def centres(self) -> np.ndarray:
        """Centres of mass of the carriers where the frame was placed last, (k, 3), m."""
        return self._centres


class Chain(Protocol):
    """A body of links one after the other, seven coordinates each.

    Attributes
    ----------
    n_v : int
        Number of its velocities, six for each link.
    """

    n_v: int

    def initial_q(self) -> np.ndarray:
        """Coordinates at the start, (n_q,)."""
        ...

    def moved(self, q: np.ndarray, v_hat: np.ndarray, time: float) -> np.ndarray:
        """Coordinates (n_q,) that q becomes at velocity v_hat in a time, s."""
        ...


class RodFrame:
    """Frame fixed to the nearest link of a rod.

    Parameters
    ----------
    body : Chain
        The rod.
    pose : ndarray, (7,)
        Position (m) and quaternion at the start, world.
    """

    rigid = True
    carriers: tuple[int, ...] = ()

    def __init__(self, body: Chain, pose: np.ndarray) -> None:
        links = body.initial_q().reshape(-1, 7)
        self._link = int(np.argmin(np.linalg.norm(links[:, :3] - pose[:3], axis=1)))
        own = links[self._link]
        self._body, self.rows = body, 6 * self._link + np.arange(6)
        self._local = quaternion_to_matrix(own[3:]).T @ (pose[:3] - own[:3])
        self._turn = quaternion_multiply(quaternion_conjugate(own[3:]), pose[3:])
        self.place(links.ravel())

    def __repr__(self) -> str:
        return f"<RodFrame on link {self._link}>"

    def place(self, q: np.ndarray) -> np.ndarray:
        """Pose (7,) at coordinates of the rod."""
        own = q[7 * self._link : 7 * self._link + 7]
        self.lever = quaternion_to_matrix(own[3:]) @ self._local
        return np.concatenate([own[:3] + self.lever, quaternion_multiply(own[3:], self._turn)])

    def jacobian(self) -> np.ndarray:
        """Twist of the link, moved to the frame, (6, 6)."""
        G = np.eye(6)
        G[:3, 3:] = -cross_matrix(self.lever)
        return G

    def moved(self, q: np.ndarray, v: np.ndarray, time: float) -> np.ndarray:
        """Coordinates of the rod, its other links at rest."""
        v_hat = np.zeros(self._body.n_v)
        v_hat[self.rows] = v
        return self._body.moved(q, v_hat, time)

    def centres(self) -> np.ndarray:
        """None: no joint of a robot carries it."""
        return np.zeros((0, 3))


class Pointed(Protocol):
    """What has nodes at ``rest``, (n, 3), m."""

    @property
    def rest(self) -> np.ndarray:
        """Where they start."""
        ...


@dataclass(frozen=True)
class Points:
    """Nodes that start at ``rest``, (n, 3), m."""

    rest: np.ndarray


class OnNodes:
    """What frames on some nodes of a soft body, (k,), share."""

    rigid = False
    carriers: tuple[int, ...] = ()

    def __init__(self, nodes: np.ndarray) -> None:
        self.nodes, self.rows = nodes, (3 * nodes[:, None] + np.arange(3)).ravel()

    def moved(self, q: np.ndarray, v: np.ndarray, time: float) -> np.ndarray:
        """Coordinates of the body, its other nodes at rest."""
        out = q.copy()
        out[self.rows] += time * v
        return out

    def centres(self) -> np.ndarray:
        """None: nodes carry it."""
        return np.zeros((0, 3))


class PatchFrame(OnNodes):
    """Frame spread over some nodes of a soft body.

    It turns as their weighted positions do, R from the polar decomposition C = R S of C = sum w (x - mean x) (X - mean X)^T, and
    keeps its place in these axes. The velocities follow exactly: with a = R (X - mean X) and P = C R^T symmetric, the angular
    velocity is (tr(P) I - P)^-1 sum w a x v. So forces on the frame are spread over the nodes with the same sum and, since
    a rotation of all nodes is reproduced, the same moment. Nodes in one plane are enough.

    Parameters
    ----------
    body : Pointed
        The body.
    nodes : ndarray of int, (k,)
        At least three nodes that are not in one line.
    weights : ndarray, (k,)
        Their weights, positive; only ratios count.
    pose : ndarray, (7,)
        Position (m) and quaternion at the start, world.
    """

    def __init__(self, body: Pointed, nodes: np.ndarray, weights: np.ndarray, pose: np.ndarray) -> None:
        super().__init__(nodes)
        self.weights = weights / weights.sum()
        mean = self.weights @ body.rest[nodes]
        self._rest = body.rest[nodes] - mean
        self._local, self._turn = pose[:3] - mean, pose[3:].copy()
        self.place(body.rest.ravel())

    def __repr__(self) -> str:
        return f"<PatchFrame on {len(self.nodes)} nodes>"

    def place(self, q: np.ndarray) -> np.ndarray:
        """Pose (7,) at coordinates of the body."""
        pose, self.lever, self._jacobian = np.empty(7), np.empty(3), np.empty((6, len(self.rows)))
        x = q.reshape(-1, 3)[self.nodes]
        kernels.place_patch(x, self.weights, self._rest, self._local, self._turn, pose, self.lever, self._jacobian)
        return pose

    def jacobian(self) -> np.ndarray:
        """(6, 3 k): weighted mean velocity, moved to the frame, and angular velocity of the polar rotation."""
        return self._jacobian

    def width(self, q: np.ndarray) -> float:
        """Least eigenvalue of tr(P) I - P at coordinates of the body, relative to that at rest.

        It is how wide the nodes are across the line that they are nearest to. Where it is zero no rotation fits them best, and
        the least torque turns the frame.
        """
        x = q.reshape(-1, 3)[self.nodes]
        return self._across(x) / self._across(self._rest)

    def _across(self, x: np.ndarray) -> float:
        """Sum of the two least singular values of C at places (k, 3) of the nodes, the least with the sign of its determinant."""
        C = ((x - self.weights @ x) * self.weights[:, None]).T @ self._rest
        if not np.isfinite(C).all():
            return np.nan
        s = np.linalg.svd(C, compute_uv=False)
        return float(s[1] + np.copysign(s[2], np.linalg.det(C)))


def width_of(frame: HoldFrame | None, q: np.ndarray) -> float:
    """Width of the patch of nodes that a frame is spread over, see :meth:`PatchFrame.width`; 1 for all other frames."""
    return frame.width(q) if isinstance(frame, PatchFrame) else 1.0


def surface_patch(body: Tetrahedra, point: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Surface nodes that hold a frame at a point: those of the closest triangles and all within a radius of that point.

    Parameters
    ----------
    body : Tetrahedra
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
    closest = closest_points_on_triangles(point, corners)
    distances = np.linalg.norm(closest - point, axis=1)
    nearest = int(np.argmin(distances))
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    weights = np.bincount(triangles.ravel(), np.repeat(area / 3.0, 3), minlength=body.n_nodes)
    near = (np.linalg.norm(body.rest - closest[nearest], axis=1) <= radius) & (weights > 0.0)
    near[triangles[distances <= distances[nearest] + 1e-6 * radius]] = True  # a point on an edge or corner is close to several
    nodes = np.flatnonzero(near)
    return nodes, weights[nodes], float(distances[nearest])


def reach_of_ring(body: Tetrahedra, point: np.ndarray) -> float:
    """Radius, m, of a patch of :func:`surface_patch` that goes beyond the triangles that are closest to a point.

    It is the mean distance of the corners next to theirs. The closest triangles alone fold easily: a torque on three or four
    nodes without neighbours in the patch presses them into one line.
    """
    triangles = boundary_triangles(body.tets)
    closest = closest_points_on_triangles(point, body.rest[triangles])
    distances = np.linalg.norm(closest - point, axis=1)
    size = float(np.ptp(body.rest, axis=0).max())
    first = triangles[distances <= distances.min() + 1e-9 * size]
    around = np.setdiff1d(triangles[np.isin(triangles, first).any(axis=1)], first)
    if not len(around):
        return 0.0
    return float(np.linalg.norm(body.rest[around] - closest[int(np.argmin(distances))], axis=1).mean())
