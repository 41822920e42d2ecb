"""From shapes on bodies to the contact problem: what can touch what, Jacobian rows, warm start, contact forces.

Contacts come in two families: points against shapes (here) and deforming bodies against each other (``deforming_contacts``);
in the problem those of the second follow those of the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from contact import Box, ContactProblem, Detector, PlacedShape, PointContacts, Shape, WarmStart
from contact.edge_kernels import EDGE_PAIRS
from femsim.base.rotations import cross, quaternion_from_vector, quaternion_to_matrix
from femsim.model.bodies.articulated import ArticulatedBody
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from femsim.model.contact_rules import AnisotropicPair, Apart
from femsim.step import point_rows_kernels as kernels
from femsim.step.deforming_contacts import ForceMemory, make_touching
from femsim.step.state import State
from femsim.step.system import System

STATIC = -1


@dataclass
class CollisionBody:
    """One thing that touches others: a soft body, a rod, a link of a rigid body, or a static obstacle.

    Attributes
    ----------
    name : str
        Name in outputs and sensors.
    body : int
        Index of the body in the system, -1 for a static obstacle.
    link : int
        Link of an articulated body.
    surface : str
        Surface material, for friction.
    shapes : list of (shape, rotation, translation)
        Shapes in the frame of the link (its centre of mass), or of the world for obstacles.
    nodes : ndarray, (k,)
        Surface nodes of a soft body.
    turns : bool
        Whether contacts act on the surface of a rod, so that they also turn its links; otherwise at the centres of the links.
    triangles : ndarray, (t, 3)
        Surface of a soft body, node numbers, outward; without it the body touches shapes only.
    self_contact : bool
        Whether a soft body or rod touches itself.
    """

    name: str
    body: int
    link: int
    surface: str
    shapes: list[tuple[Shape, np.ndarray, np.ndarray]] = field(default_factory=list)
    nodes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    turns: bool = False
    triangles: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    self_contact: bool = False


@dataclass
class StepContacts:
    """Contacts of one step and their forces; those between soft bodies and rods come last.

    Attributes
    ----------
    position : ndarray, (nc, 3), m
        Where each force acts on the body that it is given for, world.
    normal : ndarray, (nc, 3)
        From the shape to the point; of two deforming bodies, from the second to the first.
    gap : ndarray, (nc,), m
        Distance at the start of the step.
    force : ndarray, (nc, 3), N
        Force on the point's body (or the first), world; on the other one it is the opposite.
    state : ndarray, (nc,), int64
        0 open, 1 stick, 2 slip.
    part : ndarray, (nc, 2), int64
        Parts of the two sides; the force is that on side 0.
    opposite : ndarray, (nc, 3), m
        Where the force acts on side 1, world.
    lam, u : ndarray, (nc, 3), N and m/s
        Force and velocity of side 0 against side 1 in the frame of the contact, normal first.
    point : ndarray, (nc, 2, 3), int64
        Points of each side that carry the force, by their number in the part (surface nodes in their order, links); -1 for none:
        rigid parts carry it at the place where it acts.
    weight : ndarray, (nc, 2, 3)
        Their shares, which sum to one.
    reference, rotation : ndarray, (nb, 3) and (nb, 3, 3), m and 1
        What torques on each part are about, and how rigid parts are turned, where the forces act.
    """

    position: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    force: np.ndarray
    state: np.ndarray
    part: np.ndarray
    opposite: np.ndarray
    lam: np.ndarray
    u: np.ndarray
    point: np.ndarray
    weight: np.ndarray
    reference: np.ndarray
    rotation: np.ndarray


class Collision:
    """Contacts of a system: detection, Jacobian rows and forces.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of CollisionBody
        What touches.
    friction : ndarray, (ns, ns)
        Coulomb coefficient of each pair of surfaces; surfaces are numbered by ``surfaces``.
    surfaces : list of str
        Names of the surfaces.
    collide : ndarray, (nb, nb), bool
        Which pairs of parts may touch.
    correction, max_correction : float
        Fraction of a penetration that one step takes back, and the largest speed for it (m/s).
    anisotropic : sequence of AnisotropicPair
        Pairs whose friction differs by direction; ``friction`` holds the geometric mean of their coefficients.
    apart : sequence of Apart
        Points and shapes that never touch though their parts may.
    """

    #: a step fills these, see :mod:`femsim.step.advance`
    step_means = ("wrench", "force_sum", "node_force")

    def __init__(
        self,
        system: System,
        parts: list[CollisionBody],
        friction: np.ndarray,
        surfaces: list[str],
        collide: np.ndarray,
        *,
        correction: float,
        max_correction: float,
        anisotropic: Sequence[AnisotropicPair] = (),
        apart: Sequence[Apart] = (),
    ) -> None:
        self.system, self.parts = system, parts
        self.correction, self.max_correction = correction, max_correction
        self._friction, self._anisotropic, self._surfaces = friction, anisotropic, surfaces
        nb = len(parts)
        self._shapes: list[PlacedShape] = []
        bodies, rows, columns, radii, point_surface = [], [], [], [], []
        self._soft_points: list[tuple[slice, int, np.ndarray]] = []
        self._rod_points: list[tuple[slice, int, Rod]] = []
        self._link_points: list[tuple[slice, int, np.ndarray]] = []
        count, corners = 0, []
        for k, part in enumerate(parts):
            surface = surfaces.index(part.surface)
            local: list[np.ndarray] = []
            for shape, rotation, translation in part.shapes:
                self._shapes.append(PlacedShape(shape, k, rotation, translation, surface))
                corners.append(count + sum(len(p) for p in local) if isinstance(shape, Box) else -1)
                features, r = shape.features()  # also of obstacles: what lies on one may overhang it on all sides
                local.append(features @ rotation.T + translation)
                radii.append(r)
            rod = system.bodies[part.body] if part.body >= 0 else None
            if isinstance(rod, Rod):
                new = rod.n_links
                self._rod_points.append((slice(count, count + new), part.body, rod))
                rows.append(system.v_slices[part.body].start + 6 * np.arange(new))
                radii.append(np.full(new, rod.section.contact_radius))
            elif len(part.nodes):
                self._soft_points.append((slice(count, count + len(part.nodes)), part.body, part.nodes))
                rows.append(system.v_slices[part.body].start + 3 * part.nodes)
                radii.append(np.zeros(len(part.nodes)))
                new = len(part.nodes)
            else:
                points = np.concatenate(local) if local else np.zeros((0, 3))
                self._link_points.append((slice(count, count + len(points)), k, points))
                new = len(points)
                rows.append(np.full(new, -1))
            bodies.append(np.full(new, k))
            columns.append(np.full(new, 6 if part.turns else 3))
            point_surface.append(np.full(new, surface))
            count += new
        self.point_body = np.concatenate(bodies).astype(np.int64)
        self.point_row = np.concatenate(rows).astype(np.int64)
        self.point_columns = np.concatenate(columns).astype(np.int64)
        self.shape_body = np.array([s.body for s in self._shapes], dtype=np.int64)
        self._first_point = np.searchsorted(self.point_body, np.arange(nb))
        starts = [int(self._first_point[a.part]) for a in apart]
        self._apart = [(start + a.first, start + a.last, a.other) for start, a in zip(starts, apart, strict=True)]
        self._points = np.empty((count, 3))
        self._detector = Detector(
            self._shapes,
            self.point_body,
            np.concatenate(radii or [np.zeros(0)]),
            np.concatenate(point_surface).astype(np.int64),
            collide,
            shape_corner=corners,
        )
        self._rotation, self._translation = np.tile(np.eye(3), (nb, 1, 1)), np.zeros((nb, 3))
        #: how far the shapes of a part reach from its centre of mass, m
        self._reach = [
            max((float(np.linalg.norm(t)) + s.bounding_radius for s, _, t in part.shapes), default=0.0) for part in parts
        ]
        #: which parts may touch which, themselves included, (nb, nb)
        self.meets = collide | collide.T | np.diag([part.self_contact for part in parts])
        self._row = np.full(nb, STATIC, dtype=np.int64)
        self._joint_row = np.full(nb, STATIC, dtype=np.int64)
        self._origin, self._axis = np.zeros((nb, 3)), np.zeros((nb, 3))
        for k, part in enumerate(parts):
            if part.body >= 0 and isinstance(system.bodies[part.body], ArticulatedBody):
                self._row[k] = system.v_slices[part.body].start
                if part.link > 0:
                    self._joint_row[k] = self._row[k] + 5 + part.link
        self.reference = np.zeros((nb, 3))
        self.wrench, self.force_sum = np.zeros((nb, 6)), np.zeros(nb)
        self.node_force = np.zeros(system.n)
        self._memory = ForceMemory()
        #: contacts between soft bodies and rods; None where there are none to touch
        self.touching = make_touching(system, parts, collide, apart)
        self._part_surface = np.array([surfaces.index(part.surface) for part in parts], dtype=np.int64)

    @property
    def memories(self) -> list[ForceMemory]:
        """What the next step starts from, beside the state."""
        return [self._memory] if self.touching is None else [self._memory, self.touching.memory]

    def pose(self, part: int) -> tuple[np.ndarray, np.ndarray]:
        """World rotation (3, 3) and position (3,) of a part at the last update."""
        return self._rotation[part], self._translation[part]

    def update_poses(self, state: State) -> None:
        """Read the poses of all parts and the world positions of all feature points from a state."""
        system = self.system
        for k, part in enumerate(self.parts):
            if part.body < 0:
                continue
            body, q = system.bodies[part.body], state.q[system.q_slices[part.body]]
            if isinstance(body, ArticulatedBody):
                self._rotation[k], self._translation[k] = body.link_pose(q, part.link)
                self._origin[k] = q[:3]
                axis = body.links[part.link].axis
                if axis is not None:
                    self._axis[k] = self._rotation[k] @ axis
                self.reference[k] = self._translation[k]
            elif isinstance(body, SoftBody | Rod):
                self.reference[k] = body.centre_of_mass(q)
        for where, b, nodes in self._soft_points:
            self._points[where] = state.q[system.q_slices[b]].reshape(-1, 3)[nodes]
        for where, b, rod in self._rod_points:
            self._points[where] = rod.centres(state.q[system.q_slices[b]])
        for where, k, points in self._link_points:
            if len(points):
                self._points[where] = points @ self._rotation[k].T + self._translation[k]
        self._shape_poses = self._detector.world_poses(self._rotation, self._translation)

    def fastest_point(self, v: np.ndarray) -> float:
        """Bound of the speed (m/s) of every point of every part at the velocities v (n,), poses as last updated.

        The points of a rod are the centres of its links: their distance to a shape decides on contact.
        """
        fastest = 0.0
        for k, part in enumerate(self.parts):
            if part.body < 0:
                continue
            own = v[self.system.v_slices[part.body]]
            if self._row[k] < 0:
                x, y, z = own.reshape(-1, self.system.groups[part.body].stride).T[:3]
                speed = math.sqrt((x * x + y * y + z * z).max(initial=0.0))
            else:
                lever = float(np.linalg.norm(self._translation[k] - self._origin[k])) + self._reach[k]
                joint = abs(float(own[5 + part.link])) if part.link > 0 else 0.0
                speed = float(np.linalg.norm(own[:3])) + lever * float(np.linalg.norm(own[3:6])) + joint
            fastest = max(fastest, speed)
        return fastest

    def closing_speeds(self, v: np.ndarray) -> np.ndarray | float:
        """Bounds of the speed (m/s) at which any two of the soft bodies and rods may close at the velocities v (n,)."""
        return 0.0 if self.touching is None else self.touching.closing_speeds(v)

    def detect(self, state: State, margin: float, touch_margin: float | np.ndarray = 0.0) -> None:
        """Find the contacts of a state within a margin (m), and those of soft bodies and rods within ``touch_margin`` (m)."""
        self.update_poses(state)
        self.contacts = self._found(margin)
        if self.touching is not None:
            self.touching.detect(state, touch_margin)

    def _found(self, margin: float) -> PointContacts:
        """Contacts within a margin, m, at the poses of the last update, without those of points and shapes kept apart."""
        found = self._detector.detect(self._points, *self._shape_poses, margin)
        if not self._apart:
            return found
        keep = np.ones(len(found), dtype=np.bool_)
        for first, last, other in self._apart:
            keep &= (found.point < first) | (found.point >= last) | (self.shape_body[found.shape] != other)
        return found.select(keep)

    def max_penetration(self, state: State) -> float:
        """Largest penetration depth in a state, m."""
        self.update_poses(state)
        gap = self._found(0.0).gap
        deepest = float(-gap.min()) if len(gap) else 0.0
        return deepest if self.touching is None else max(deepest, self.touching.max_penetration(state))

    def gaps(self, state: State, reach: float) -> tuple[np.ndarray, np.ndarray]:
        """Parts (n, 2) and gaps (n,), m, of all that is closer than ``reach`` (m) in a state."""
        self.update_poses(state)
        c = self._found(reach)
        part, gap = np.stack([self.point_body[c.point], self.shape_body[c.shape]], axis=1), c.gap.copy()
        if self.touching is not None:
            more, more_gap = self.touching.gaps(state, reach)
            part, gap = np.concatenate([part, more]), np.concatenate([gap, more_gap])
        return part, gap

    def problem(self, v_prescribed: np.ndarray, dt: float) -> ContactProblem:
        """Contact problem of the step from the assembled system and the detected contacts."""
        c, system = self.contacts, self.system
        n = len(c.gap)
        friction = self._detector.friction(c, self._friction)
        if self._anisotropic:
            friction = self._turn_frames(friction)
        # integers of scipy's own choice, which it then does not check and copy
        indptr, phi = np.empty(3 * n + 1, dtype=np.int32), np.empty((n, 3))
        indices, data = np.empty(42 * n, dtype=np.int32), np.empty(42 * n)
        keep = np.empty(n, dtype=np.int64)
        kept, entries = kernels.fill_rows(
            c.point, c.shape, c.gap, c.frame, c.position, self.point_body, self.point_row, self.point_columns, self._points,
            self.shape_body, self._row, self._origin, self._joint_row, self._axis, system.prescribed, v_prescribed, dt,
            self.correction, self.max_correction, keep, indptr, indices, data, phi,
        )  # fmt: skip
        self._keep = keep[:kept]
        self._point, self._shape = c.point[self._keep], c.shape[self._keep]
        J = sp.csr_matrix((data[:entries], indices[:entries], indptr[: 3 * kept + 1]), shape=(3 * kept, system.n))
        phi, friction = phi[:kept], friction[self._keep]
        self._follow_turns(v_prescribed, dt, phi)
        if self.touching is not None:
            more, more_phi = self.touching.rows(v_prescribed, dt, self.correction, self.max_correction)
            sides = self._part_surface[self.touching.part[self.touching.kept]]
            more_friction = self._friction[sides[:, 0], sides[:, 1]]
            if friction.ndim == 2:
                more_friction = np.repeat(more_friction[:, None], 2, axis=1)
            J = sp.vstack([J, more], format="csr")
            phi, friction = np.concatenate([phi, more_phi]), np.concatenate([friction, more_friction])
        return ContactProblem(system.A, system.b, J, phi, friction, dt, system.groups, system.led)

    def _follow_turns(self, v_prescribed: np.ndarray, dt: float, phi: np.ndarray) -> None:
        """Add to phi (kept, 3) how far the way of points on driven bases that turn in the step lies off its tangent.

        What such a base holds then ends the step where the base is, instead of creeping outwards by half of (dt w)^2 r.
        """
        c, keep = self.contacts, self._keep
        for k, row in enumerate(self._row):
            turn = v_prescribed[row + 3 : row + 6]
            if row < 0 or not (self.system.prescribed[row + 3] and turn.any()):
                continue
            rotation = quaternion_to_matrix(quaternion_from_vector(dt * turn))
            bend = (rotation - np.eye(3)) / dt - np.cross(np.eye(3), turn)
            for side, sign in ((self.point_body[c.point[keep]], 1.0), (self.shape_body[c.shape[keep]], -1.0)):
                own = keep[side == k]
                lever = (c.position[own] - self._origin[k]) @ bend.T
                phi[side == k] += sign * np.einsum("mij,mj->mi", c.frame[own], lever)

    def _turn_frames(self, friction: np.ndarray) -> np.ndarray:
        """Turn the first tangents of contacts of anisotropic pairs into their directions; return the coefficients, (nc, 2)."""
        c, detector = self.contacts, self._detector
        both = np.repeat(friction[:, None], 2, axis=1)
        sides = detector.point_surface[c.point], detector.shape_surface[c.shape]
        for pair in self._anisotropic:
            a, b = (self._surfaces.index(name) for name in pair.surfaces)
            own = np.flatnonzero(((sides[0] == a) & (sides[1] == b)) | ((sides[0] == b) & (sides[1] == a)))
            normal = c.frame[own, 0]
            direction = self._rotation[pair.part] @ pair.direction
            tangent = direction - (normal @ direction)[:, None] * normal
            length = np.linalg.norm(tangent, axis=1)
            # along the normal there is no first direction: such a contact keeps the mean coefficient
            own, normal, tangent = (x[length > 1e-6] for x in (own, normal, tangent / np.maximum(length, 1e-300)[:, None]))
            c.frame[own, 1], c.frame[own, 2] = tangent, np.cross(normal, tangent)
            both[own] = pair.coefficients
        return both

    def _keys(self) -> np.ndarray:
        """Return what each kept contact with a shape is known by from step to step, (kept,)."""
        return (self._point * len(self._shapes) + self._shape) * (EDGE_PAIRS + 1) + self.contacts.feature[self._keep]

    def warm_start(self, v_hat: np.ndarray) -> WarmStart:
        """Velocity of the last step and the forces of contacts that persist, turned into this step's frames."""
        lam = self._memory.recall(self._keys(), self.contacts.frame[self._keep])
        if self.touching is not None:
            lam = np.concatenate([lam, self.touching.recall()])
        return WarmStart(v_hat, lam)

    def accept(self, lam: np.ndarray, u: np.ndarray) -> StepContacts:
        """Take the forces of a solution: wrenches on parts, forces on nodes, memory for the next warm start.

        Parameters
        ----------
        lam : ndarray, (nc, 3), N
            Contact forces, normal first.
        u : ndarray, (nc, 3), m/s
            Contact velocities J v + phi.
        """
        c, keep = self.contacts, self._keep
        world = np.empty((len(keep), 3))
        kernels.sum_wrenches(
            keep, c.point, c.shape, c.frame, c.position, self.point_body, self.point_row, self.point_columns, self._points,
            self.shape_body, self.reference, lam, self.wrench, self.force_sum, self.node_force, world,
        )  # fmt: skip
        self._memory.remember(self._keys(), world)
        position, normal, gap = c.position[keep], c.frame[keep, 0], c.gap[keep]
        part = np.empty((len(keep), 2), dtype=np.int64)
        part[:, 0], part[:, 1] = self.point_body[self._point], self.shape_body[self._shape]
        point, weight = np.full((len(keep), 2, 3), -1), np.zeros((len(keep), 2, 3))
        point[:, 0, 0] = np.where(self.point_row[self._point] >= 0, self._point - self._first_point[part[:, 0]], -1)
        weight[:, 0, 0] = 1.0
        opposite = position
        if self.touching is not None:
            more = self.touching.accept(lam[len(keep) :], self.reference, self.wrench, self.force_sum, self.node_force)
            t, kept = self.touching.touches, self.touching.kept
            position, opposite = (np.concatenate([position, t.position[kept, side]]) for side in (0, 1))
            normal, gap = np.concatenate([normal, t.frame[kept, 0]]), np.concatenate([gap, t.gap[kept]])
            world, part = np.concatenate([world, more]), np.concatenate([part, self.touching.part[kept]])
            point = np.concatenate([point, self.touching.own_points()])
            weight = np.concatenate([weight, t.weight[kept]])
        pressing = lam[:, 0] > 1e-9 * max(float(lam[:, 0].max(initial=0.0)), 1e-300)
        slips = pressing & (np.sqrt(u[:, 1] ** 2 + u[:, 2] ** 2) > 1e-6)
        return StepContacts(
            position, normal, gap, world, pressing.astype(np.int64) + slips, part, opposite, lam, u, point, weight,
            self.reference.copy(), self._rotation.copy(),
        )  # fmt: skip

    def generalized_force(self) -> np.ndarray:
        """Contact forces on all rows of v, (n,), including prescribed rows: J^T lam without the columns taken out."""
        out = self.node_force.copy()
        for k, row in enumerate(self._row):
            if row < 0:
                continue
            force, torque = self.wrench[k, :3], self.wrench[k, 3:]
            out[row : row + 3] += force
            out[row + 3 : row + 6] += torque + cross(self.reference[k] - self._origin[k], force)
            if self._joint_row[k] >= 0:
                out[self._joint_row[k]] += self._axis[k] @ force
        return out
