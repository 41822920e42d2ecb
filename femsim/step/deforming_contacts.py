"""Contact of soft bodies and rods with each other and with themselves, on the side of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from contact import DeformableContacts, DeformableDetector, Strand, Surface
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from femsim.model.contact_rules import Apart
from femsim.step import deforming_rows_kernels as kernels
from femsim.step.state import State
from femsim.step.system import System

#: Part of the thickness of the elements below a surface that a point may have passed and is still pushed out.
DEPTH = 0.5


class TouchingPart(Protocol):
    """What is asked of a part: a soft body with a surface, or a rod."""

    body: int
    nodes: np.ndarray
    triangles: np.ndarray
    self_contact: bool
    turns: bool


class ForceMemory:
    """Forces of the contacts of the last step by key, for warm starts."""

    def __init__(self) -> None:
        self._keys, self._forces = np.zeros(0, dtype=np.int64), np.zeros((0, 3))

    def remember(self, keys: np.ndarray, world: np.ndarray) -> None:
        """Take the world forces (nc, 3) of contacts with unique keys (nc,)."""
        order = np.argsort(keys, kind="stable")
        self._keys, self._forces = keys[order], world[order]

    def recall(self, keys: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """Return the forces (nc, 3) in the frames (nc, 3, 3) of contacts that were there; zero for new ones."""
        lam = np.zeros((len(keys), 3))
        if len(self._keys) and len(keys):
            place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            same = self._keys[place] == keys
            lam[same] = np.einsum("mij,mj->mi", frames[same], self._forces[place[same]])
        return lam


class Touching:
    """Contacts between the soft bodies and rods of a system.

    A soft body touches with its surface, a rod with its centre line at its contact radius: the chain of the centres of its links,
    continued straight to its two ends. The ends move with the two links beside them.

    Parameters
    ----------
    system : System
        The bodies.
    parts : dict of int to TouchingPart
        Soft bodies and rods by the number of their part.
    meets : ndarray, (nb, nb), bool
        Which of them may touch each other, and on the diagonal themselves.
    apart : sequence of Apart
        Links that do not touch one of the parts though their rod may; others are passed over.
    """

    def __init__(self, system: System, parts: dict[int, TouchingPart], meets: np.ndarray, apart: Sequence[Apart] = ()) -> None:
        self.system, self.parts = system, list(parts)
        bodies: list[Surface | Strand] = []
        node, node_weight, row, rest = [], [], [], []
        self._columns = np.full(system.n, 3, dtype=np.int64)
        self._where: list[tuple[slice, int, np.ndarray]] = []
        count = 0
        for part in parts.values():
            body = system.bodies[part.body]
            if isinstance(body, Rod):
                new, weights = _rod_points(body)
                bodies.append(Strand(_arc(body), body.section.contact_radius))
                rest.append(_positions(body, body.initial_q(), np.zeros(0)))
                start = system.v_slices[part.body].start
                # the first and the last point are the ends, which lie on no node
                own = start + 6 * np.clip(np.arange(len(new)) - (body.n_links > 1), 0, body.n_links - 1)
                if part.turns:
                    self._columns[start : start + body.n_v] = 6
            else:
                assert isinstance(body, SoftBody)
                new = np.column_stack([np.arange(len(part.nodes)), np.full(len(part.nodes), -1)])
                weights = np.column_stack([np.ones(len(new)), np.zeros(len(new))])
                triangles = np.searchsorted(part.nodes, part.triangles)
                bodies.append(Surface(len(new), triangles, DEPTH * _thickness(body, part.triangles)))
                rest.append(body.rest[part.nodes])
                own = system.v_slices[part.body].start + 3 * part.nodes
            self._where.append((slice(count, count + len(new)), part.body, part.nodes))
            node.append(np.where(new >= 0, new + count, -1))
            node_weight.append(weights)
            row.append(own)
            count += len(new)
        self._node = np.ascontiguousarray(np.concatenate([np.zeros((0, 2)), *node]), dtype=np.int64)
        self._node_weight = np.concatenate([np.zeros((0, 2)), *node_weight])
        self._row = np.concatenate([np.zeros(0), *row]).astype(np.int64)
        self._points = np.concatenate([np.zeros((0, 3)), *rest])
        self._number = np.array(self.parts, dtype=np.int64)
        self._detector = DeformableDetector(bodies, meets, self._points)
        self._apart = [self._points_apart(a) for a in apart if a.part in parts and a.other in parts]
        self.memory = ForceMemory()
        self._rows = np.empty(2 * kernels.SIDE_NODES, dtype=np.int64)
        self._pull, self._lever = np.empty(2 * kernels.SIDE_NODES), np.empty((2 * kernels.SIDE_NODES, 3))
        self.touches: DeformableContacts
        self._keep = np.zeros(0, dtype=np.int64)

    def _read(self, state: State) -> np.ndarray:
        for where, b, nodes in self._where:
            self._points[where] = _positions(self.system.bodies[b], state.q[self.system.q_slices[b]], nodes)
        return self._points

    def closing_speeds(self, v: np.ndarray) -> np.ndarray:
        """Bounds of the speed (m/s) at which points of each two bodies may near each other at the velocities v (n,), (nb, nb)."""
        own = v[self._row[:, None] + np.arange(3)]
        each = np.einsum("pi,pic->pc", self._node_weight, own[self._node])
        means = np.array([each[where].mean(axis=0) for where, _, _ in self._where])
        spread = np.array(
            [np.linalg.norm(each[where] - mean, axis=1).max() for (where, _, _), mean in zip(self._where, means, strict=True)]
        )
        return np.linalg.norm(means[:, None] - means, axis=2) + spread[:, None] + spread

    def _points_apart(self, apart: Apart) -> tuple[int, int, int, int]:
        """First and last point, half-open, of links that are kept apart, the number of their rod here, and of the other body."""
        rod, other = self.parts.index(apart.part), self.parts.index(apart.other)
        where = self._where[rod][0]
        # points are the two ends and the centres between them; an end belongs to the link beside it
        n = where.stop - where.start - 2
        first = where.start + (apart.first + 1 if apart.first > 0 else 0)
        last = where.start + apart.last + 1 if apart.last < n else where.stop
        return first, last, rod, other

    def _found(self, state: State, margin: float | np.ndarray) -> DeformableContacts:
        """Contacts of a state within a margin, without those of links that are kept apart from a body."""
        found = self._detector.detect(self._read(state), margin)
        keep = np.ones(len(found), dtype=np.bool_)
        for first, last, rod, other in self._apart:
            near = np.asarray(((found.point >= first) & (found.point < last)).any(axis=2))
            for side in (0, 1):
                keep &= ~(near[:, side] & (found.body[:, side] == rod) & (found.body[:, 1 - side] == other))
        return found if keep.all() else found.select(keep)

    def detect(self, state: State, margin: float | np.ndarray) -> None:
        """Find the contacts of a state within a margin, one number or one for each two bodies (nb, nb), m."""
        self.touches = self._found(state, margin)

    def max_penetration(self, state: State) -> float:
        """Largest penetration depth in a state, m."""
        return max(-float(self._found(state, 0.0).gap.min(initial=0.0)), 0.0)

    def overlaps(self, state: State) -> list[tuple[int, int, float, float]]:
        """Parts that overlap, (part, part, depth, largest depth that is undone), m; slow. A rod may overlap what holds it."""
        joined = {frozenset((rod, other)) for _, _, rod, other in self._apart}
        found = self._detector.overlaps(self._read(state))
        return [(self.parts[a], self.parts[b], depth, bound) for a, b, depth, bound in found if {a, b} not in joined]

    def gaps(self, state: State, reach: float) -> tuple[np.ndarray, np.ndarray]:
        """Parts (n, 2) and gaps (n,), m, of all contacts of a state closer than ``reach`` (m)."""
        found = self._found(state, reach)
        return np.asarray(self._number[found.body]), np.asarray(found.gap).copy()

    def own_points(self) -> np.ndarray:
        """Points of each side of the contacts in the problem by their number in the part, (kept, 2, 3): surface nodes, links."""
        point, body = self.touches.point[self._keep], self.touches.body[self._keep, :, None]
        first = np.array([where.start for where, _, _ in self._where])
        links = np.array([getattr(self.system.bodies[b], "n_links", 0) for _, b, _ in self._where])
        own, last = point - first[body], links[body] - 1
        # the two ends of a rod belong to the links beside them
        own = np.where(last > 0, np.clip(own - 1, 0, last), own)
        return np.asarray(np.where(point >= 0, own, -1))

    @property
    def part(self) -> np.ndarray:
        """Parts of the two sides of each contact, (nc, 2)."""
        return np.asarray(self._number[self.touches.body])

    @property
    def kept(self) -> np.ndarray:
        """Contacts that are in the problem, (kept,)."""
        return self._keep

    def rows(
        self, v_prescribed: np.ndarray, dt: float, correction: float, max_correction: float
    ) -> tuple[sp.csr_matrix, np.ndarray]:
        """Jacobian (3 kept, n) and phi (kept, 3) of the contacts, without those that nothing can press."""
        c, system = self.touches, self.system
        n = len(c)
        keep, indptr, phi = np.empty(n, dtype=np.int64), np.empty(3 * n + 1, dtype=np.int32), np.empty((n, 3))
        indices, data = np.empty(kernels.MOST_ENTRIES * n, dtype=np.int32), np.empty(kernels.MOST_ENTRIES * n)
        kept, entries = kernels.fill_touch_rows(
            c.point, c.weight, c.position, c.gap, c.frame, self._node, self._node_weight, self._row, self._columns, self._points,
            system.prescribed, v_prescribed, dt, correction, max_correction, self._rows, self._pull, self._lever,
            keep, indptr, indices, data, phi,
        )  # fmt: skip
        self._keep = keep[:kept]
        J = sp.csr_matrix((data[:entries], indices[:entries], indptr[: 3 * kept + 1]), shape=(3 * kept, system.n))
        return J, phi[:kept]

    def recall(self) -> np.ndarray:
        """Return the forces of the last step of contacts that persist, in this step's frames, (kept, 3) N."""
        return self.memory.recall(self.touches.key[self._keep], self.touches.frame[self._keep])

    def accept(
        self, lam: np.ndarray, reference: np.ndarray, wrench: np.ndarray, force_sum: np.ndarray, node_force: np.ndarray
    ) -> np.ndarray:
        """Add the forces lam (kept, 3) to those on parts and nodes; answer the world forces on side 0, (kept, 3)."""
        c, world = self.touches, np.empty((len(self._keep), 3))
        kernels.add_touch_wrenches(
            self._keep, c.point, c.weight, c.position, c.frame, self.part, self._node, self._node_weight, self._row,
            self._columns, self._points, reference, np.ascontiguousarray(lam), self._rows, self._pull, self._lever,
            wrench, force_sum, node_force, world,
        )  # fmt: skip
        self.memory.remember(c.key[self._keep], world)
        return world


def make_touching(
    system: System, parts: Sequence[TouchingPart], collide: np.ndarray, apart: Sequence[Apart] = ()
) -> Touching | None:
    """Contacts between those of the parts that deform, or None where none of them may touch.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of TouchingPart
        All parts; rods and those with triangles count.
    collide : ndarray, (np, np), bool
        Which different parts may touch.
    apart : sequence of Apart
        Links that do not touch one of the parts though their rod may.
    """
    able = [k for k, p in enumerate(parts) if p.body >= 0 and (len(p.triangles) or isinstance(system.bodies[p.body], Rod))]
    meets = collide[np.ix_(able, able)]
    meets = meets | meets.T
    np.fill_diagonal(meets, [parts[k].self_contact for k in able])
    return Touching(system, {k: parts[k] for k in able}, meets, apart) if meets.any() else None


def _rod_points(rod: Rod) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (n, 2) and weights of the points of a rod: its ends, and the centres of its links between them.

    An end lies half a link beyond the last centre, on the line through the last two centres. A rod of one link is its centre.
    """
    n = rod.n_links
    if n == 1:
        return np.array([[0, -1]]), np.array([[1.0, 0.0]])
    node = np.column_stack([np.arange(n + 2), np.full(n + 2, -1)])
    weight = np.column_stack([np.ones(n + 2), np.zeros(n + 2)])
    for end, near, far, link, next_link in ((0, 1, 2, 0, 1), (n + 1, n, n - 1, n - 1, n - 2)):
        beyond = rod.lengths[link] / (rod.lengths[link] + rod.lengths[next_link])
        node[end], weight[end] = (near, far), (1.0 + beyond, -beyond)
    return node, weight


def _arc(rod: Rod) -> np.ndarray:
    """Place of the points of a rod along it, m."""
    ends = np.concatenate([[0.0], np.cumsum(rod.lengths)])
    middle = 0.5 * (ends[1:] + ends[:-1])
    return middle if rod.n_links == 1 else np.concatenate([ends[:1], middle, ends[-1:]])


def _positions(body: object, q: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Positions of the points of a body at its coordinates q, (n, 3) m."""
    if not isinstance(body, Rod):
        return q.reshape(-1, 3)[nodes]
    centres = body.centres(q)
    if body.n_links == 1:
        return centres
    _, weight = _rod_points(body)
    ends = [weight[end, 0] * centres[near] + weight[end, 1] * centres[far] for end, near, far in ((0, 0, 1), (-1, -1, -2))]
    return np.concatenate([ends[:1], centres, ends[1:]])


def _thickness(body: SoftBody, triangles: np.ndarray) -> np.ndarray:
    """Return the least height at rest of the tetrahedra below each surface triangle and those round its corners, (k,) m.

    The neighbours count because the elements at the rim of a thin body are wider than it is thick.
    """
    n = body.n_nodes

    def key(corners: np.ndarray) -> np.ndarray:
        low, middle, high = np.sort(corners, axis=-1).reshape(-1, 3).T
        return np.asarray((low * n + middle) * n + high)

    faces = key(body.tets[:, [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]])
    order = np.argsort(faces, kind="stable")
    tet = order[np.searchsorted(faces, key(triangles), sorter=order)] // 4
    edges = body.rest[body.tets[tet, 1:]] - body.rest[body.tets[tet, :1]]
    a, b, c = (body.rest[triangles[:, i]] for i in range(3))
    height = np.abs(np.linalg.det(edges)) / np.linalg.norm(np.cross(b - a, c - a), axis=1)
    least = np.full(n, np.inf)
    np.minimum.at(least, triangles, height[:, None])
    return np.asarray(least[triangles].min(axis=1))
