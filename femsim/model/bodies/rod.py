"""Rods: Cosserat theory in maximal coordinates, a chain of rigid links with elastic joints; their energies and outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from contact import GroupKind
from femsim.base.errors import InputError
from femsim.model.bodies import rod_kernels as kernels
from femsim.model.bodies.body import BodyForces, BodyStep
from femsim.model.bodies.deforming import Deforming, strand
from femsim.model.bodies.outputs import Drawing, DrawnFrame, describe_elastic
from femsim.model.bodies.rod_end import RodEnd
from femsim.model.bodies.rod_joints import RodJoints
from femsim.model.bodies.rod_make import make_rod
from femsim.model.bodies.rod_output import rod_fields
from femsim.model.bodies.rod_shape import checked
from femsim.model.bodies.rod_step import Load, SteppedRod
from femsim.model.frames import RodFrame
from femsim.model.parts import Part
from materials import Elastic, RodSection


class Rod(SteppedRod):
    """Cosserat rod: stretch, shear, bending and twist between rigid links (papers/001 section V-C5, their ref. [66]).

    ``q`` holds for each link its centre (3) and quaternion (4), ``v`` the velocity of the centre (3) and the world angular
    velocity (3); so the centre of link i is the node of rows 6 i to 6 i + 2 of the contact problem. The axes of a link are those
    of the section: 1 and 2 across, 3 along the rod. Neighbours i and j are joined by a spring with strain
    e = [R^T g ; log(R_i^T R_j) - phi_0], R half-way between the two, g the gap at the joint; its stiffness is
    diag(k1 GA, k2 GA, EA, EI1, EI2, GJ) / L. Of the second derivative of the energy, A keeps J^T K J with the exact J and, of
    what the stress adds, the tension stiffness of the pull within [0, 0.7 k GA]; it drops what compression, shear
    and moments add, and the derivative of the tangent map of the rotation. So A is positive definite; the force itself is exact.

    Departures from the paper, which does not give its strain: the rest rotation is subtracted from the logarithm, so that
    helices are exact and both directions along the rod are equal; damping is per metre of rod, so that results do not depend
    on the number of links; the frames of held ends are followed exactly. The spin of a link is advanced by the torque on it.

    The step is linearised: at theta = 1 energy never grew in tests while no link turned by more than 0.3 rad a step, but can
    where a strongly bent rod springs loose in one large step; at theta = 1/2 a taut rod needs damping.

    The 13 parameters are those of :meth:`femsim.scene.scene.Scene.add_rod`, all but four optional.

    Parameters
    ----------
    name : str
        Name in outputs.
    points : ndarray, (n + 1, 3), m
        Ends of the n links along the rod at the start, world. Their distances are the lengths of the links at rest.
    section : RodSection
        Cross section.
    elastic : Elastic
        Material; ``rayleigh_alpha`` damps by mass, ``rayleigh_beta`` the joints by stiffness.
    normal : ndarray, (3,), optional
        Direction of axis 1 of the section at the first link, made square to it; carried along the rod without twist. Default: the
        coordinate axis that is most across the first link.
    rest_curvature : ndarray, (3,) or (n - 1, 3), 1/m, optional
        Curvature about axes 1 and 2 and twist about axis 3 of the rod without stress, for all or each inner joint. Default: that
        of ``points``, so the rod starts without stress; zeros make a straight rod that is bent at the start.
    velocity : ndarray, (3,), m/s, optional
        Of all links at the start; zero by default.
    angular_velocity : ndarray, (3,), rad/s, optional
        Of the rod as a whole at the start, about its centre of mass, world; zero by default.
    start, end : RodEnd
        What happens at the first and the last of ``points``.
    translational_damping : float, N s/m per m
        Drag on the velocity of the rod, per metre.
    rotational_damping : float, N m s/rad per m
        Drag on its angular velocity, per metre.
    load : callable, optional
        ``load(t) -> (n, 6)`` force and torque on the centre of each link, N and N m, or ``(3,)`` total force spread by mass, N.

    Attributes
    ----------
    n_links : int
        Number of links.
    lengths : ndarray, (n,), m
        Lengths of the links at rest.
    translational_damping, rotational_damping : float
        As given, per metre.
    end_frames : ndarray, (2, 7), m
        Position and quaternion of the frames of start and end, where the last step left them.
    end_wrench : ndarray, (2, 6), N and N m
        Force and torque of the rod on the frames of its start and end, world, about the frame; as the last step counted them,
        at theta = 1 at its end, damping of the joints included. Zero at free ends. Filled by :meth:`accept`.
    end_power : float, W
        Power that the frames with a motion of their own gave the rod in the last step.

    Raises
    ------
    InputError
        Points that are not finite, links of no length, a kink sharper than 2 rad, a centre line that crosses itself, or a
        parameter out of range.
    """

    kind: GroupKind = "links"

    def __init__(
        self,
        name: str,
        points: np.ndarray,
        section: RodSection,
        elastic: Elastic,
        *,
        normal: np.ndarray | None = None,
        rest_curvature: np.ndarray | None = None,
        velocity: np.ndarray | None = None,
        angular_velocity: np.ndarray | None = None,
        start: RodEnd | None = None,
        end: RodEnd | None = None,
        translational_damping: float = 0.0,
        rotational_damping: float = 0.0,
        load: Load | None = None,
    ) -> None:
        self.name, self.section = name, section
        for field, value in (("translational_damping", translational_damping), ("rotational_damping", rotational_damping)):
            if not 0.0 <= value < np.inf:
                raise InputError(f"rod {name}: {field} is {value!r}, but must be finite and at least 0, per metre of rod.")
        self.translational_damping, self.rotational_damping = float(translational_damping), float(rotational_damping)
        self._velocity, self._angular_velocity = (
            np.zeros(3) if value is None else checked(name, field, value, (3,))
            for field, value in (("velocity", velocity), ("angular_velocity", angular_velocity))
        )
        ends = (start or RodEnd(), end or RodEnd())
        make = make_rod(name, points, section, elastic, ends, normal, rest_curvature)
        damping = make.lengths[:, None] * [self.translational_damping, self.rotational_damping]
        super().__init__(make, ends, elastic, damping, load)
        self._q0, self._spin = make.q, np.empty((self.n_links, 3))

    # ---- quantities

    def initial_q(self) -> np.ndarray:
        """Centres and quaternions at the start."""
        return self._q0.copy()

    def initial_v(self) -> np.ndarray:
        """Velocities at the start: the rod turns about its centre of mass as if rigid."""
        arm = self.centres(self._q0) - self.centre_of_mass(self._q0)
        v = np.empty((self.n_links, 6))
        v[:, :3] = self._velocity + np.cross(self._angular_velocity, arm)
        v[:, 3:] = self._angular_velocity
        return v.ravel()

    def inertia(self, q: np.ndarray, q_new: np.ndarray) -> np.ndarray:
        """Mass and inertia of each link where it ends, one block after the other, (2 n_links, 3, 3)."""
        blocks = np.empty((2 * self.n_links, 3, 3))
        kernels.link_masses(q_new.reshape(-1, 7), self.link_mass, self.link_inertia, blocks)
        return blocks

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Linear momentum, kg m/s."""
        return np.asarray(self.link_mass @ v.reshape(-1, 6)[:, :3])

    def centre_of_mass(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass, (3,), m."""
        return np.asarray(self.link_mass @ self.centres(q) / self.mass)

    def angular_momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Angular momentum about the origin, (3,), kg m^2/s."""
        kernels.spins(q.reshape(-1, 7), v, self.link_inertia, self._spin)
        orbit = np.cross(self.centres(q), self.link_mass[:, None] * v.reshape(-1, 6)[:, :3])
        return np.asarray((orbit + self._spin).sum(axis=0))

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic energy, J."""
        kernels.spins(q.reshape(-1, 7), v, self.link_inertia, self._spin)
        velocity = v.reshape(-1, 6)
        x, y, z = velocity.T[:3]
        return float(0.5 * (self.link_mass @ (x * x + y * y + z * z) + (velocity[:, 3:] * self._spin).sum()))

    def elastic_energy(self, q: np.ndarray) -> float:
        """Elastic energy of the joints, those of held ends included, J; frames as the last step left them."""
        self.update_joints(q)
        return self.strained.energy

    # ---- balance

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step; frames that no body carries hold their ends from outside the system, and may move."""
        outside = step.external.reshape(-1, 6)[:, :3].sum(axis=0) + self.drag(step.v_hat)
        held = -self.end_wrench[[end.on is None for end in self.ends], :3].sum(axis=0)
        return BodyForces(outside, held, None, self.end_power, float(np.abs(step.b.reshape(-1, 6)[:, :3]).sum()))

    def acted(self) -> dict[str, np.ndarray]:
        """Wrench (2, 6) on the frames of the ends, N and N m, and the power (1,) of those that move, W."""
        return {"end_wrench": self.end_wrench.copy(), "end_power": np.array([self.end_power])}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted at the ends."""
        self.end_wrench[:], self.end_power = acted["end_wrench"], float(acted["end_power"][0])

    def drag(self, v_hat: np.ndarray) -> np.ndarray:
        """Total force (3,), N, of the damping that acts against the world: per metre and mass-proportional."""
        factor = self._damping[:, 0] + self.elastic.rayleigh_alpha * self.link_mass
        return np.asarray(-factor @ v_hat.reshape(-1, 6)[:, :3])

    def centres(self, q: np.ndarray) -> np.ndarray:
        """Centres of the links, (n, 3), m; a view."""
        return q.reshape(-1, 7)[:, :3]

    def quaternions(self, q: np.ndarray) -> np.ndarray:
        """Orientations of the links, (n, 4), w first; a view."""
        return q.reshape(-1, 7)[:, 3:]

    def axes(self, q: np.ndarray) -> np.ndarray:
        """World rotations of the links, (n, 3, 3), their columns the axes 1, 2, 3."""
        rotation = np.empty((self.n_links, 9))
        kernels.rotations(np.ascontiguousarray(q.reshape(-1, 7)), rotation)
        return rotation.reshape(-1, 3, 3)

    def centre_line(self, q: np.ndarray) -> np.ndarray:
        """Return the ends of the links along the rod, (n + 1, 3), m: the two tips, and between links the middle of their ends."""
        half = 0.5 * self.lengths[:, None] * self.axes(q)[:, :, 2]
        before, behind = self.centres(q) - half, self.centres(q) + half
        return np.concatenate([before[:1], 0.5 * (behind[:-1] + before[1:]), behind[-1:]])

    def strains(self, q: np.ndarray) -> np.ndarray:
        """Strains of the joints beyond rest, (n + 1, 6): shear along 1 and 2, stretch, bending about 1 and 2 and twist (1/m).

        In the axes half-way between the two links; the first and the last row are the joints of the ends, zero where free.
        """
        self.update_joints(q)
        return self.strained.strain / self._joints.lengths[:, None]

    def stretch(self, q: np.ndarray) -> tuple[float, float]:
        """Largest stretch between two links, and that from which these give way sideways, infinite where none do.

        Links of stretch e stay in line as long as k G A (1 + e) is above E A e. Beyond, those that turn aside store less energy.
        """
        stiffness = self._joints.stiffness[1:-1]
        shear, along = np.minimum(stiffness[:, 0], stiffness[:, 1]), stiffness[:, 2]
        if not (along > shear).any():
            return 0.0, np.inf
        stretch = np.linalg.norm(self.strains(q)[1:-1, :3] + [0.0, 0.0, 1.0], axis=1) - 1.0
        most = np.divide(shear, along - shear, out=np.full(len(shear), np.inf), where=along > shear)
        worst = int(np.argmax(stretch / most))
        return float(stretch[worst]), float(most[worst])

    def joint_wrenches(self, q: np.ndarray) -> np.ndarray:
        """Elastic force (N) and moment (N m) in each joint, (n + 1, 6), world.

        What lies behind the joint exerts them on what lies before it, about the end of the link before it; so a pull has
        a force along axis 3. The first and the last row are the joints of the ends, zero where free.
        """
        self.update_joints(q)
        return self.strained.wrenches()

    def joints(self) -> RodJoints:
        """Joints of the rod as numbers, not to be changed."""
        return self._joints

    def frames_at(self, t: float) -> np.ndarray:
        """Position (m) and quaternion of the frames of start and end at a time, (2, 7)."""
        frames = np.empty((2, 7))
        self._frames.place(t, frames)
        return frames

    # ---- contact

    @property
    def contact_radius(self) -> float:
        """Contact radius of the section, m."""
        return self.section.contact_radius

    def contact_points(self, q: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Centres of links, (k, 3), m."""
        return self.centres(q)[nodes]

    def contact_rows(self, nodes: np.ndarray) -> np.ndarray:
        """Six rows a link."""
        return 6 * nodes

    def deforming(self, part: Part) -> Deforming | None:
        """Its centre line, to its two ends."""
        return strand(self.centres(self._q0), self.lengths, self.section.contact_radius)

    # ---- outputs

    what = "rod"
    holds_rods = False
    advice = "is a rod; hold an end of it by fs.RodEnd with a motion when you add it."

    def hold_frame(self, link: int, pose: np.ndarray, radius: float) -> RodFrame:
        """Frame fixed to the nearest link."""
        return RodFrame(self, pose)

    def drawing(self, link: int) -> Drawing:
        """Centre line at the start."""
        return Drawing("line", self.centre_line(self._q0))

    def frame(self, q: np.ndarray, v: np.ndarray, force: np.ndarray, names: Collection[str]) -> DrawnFrame:
        """Centre line with its fields and the radius of its contacts."""
        line, v, force = self.centre_line(q), v.reshape(-1, 6)[:, :3], force.reshape(-1, 6)[:, :3]
        fields = rod_fields(
            self.centre_line(self._q0), line, self.axes(q), self.quaternions(q), v, force, self.joint_wrenches(q), names
        )  # fmt: skip
        return DrawnFrame(line, {"radius": np.full(len(line), self.section.contact_radius)} | fields)

    def sensor_kinds(self, link: int) -> frozenset[str]:
        """Energy, and the wrench at each end that something holds."""
        held = {side for side, end in zip(("start", "end"), self.ends, strict=True) if end.kind != "free"}
        return super().sensor_kinds(link) | held

    def held_end(self, end: int, back: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Wrench of the last step on the frame of an end, and where that was."""
        return self.end_wrench[end], self.end_frames[end, :3] - back * self._frames.twist(end)[:3]

    def describe(self) -> dict[str, Any]:
        """Its material, links, section, ends and damping."""
        return {
            "material": describe_elastic(self.elastic), "links": self.n_links, "length_m": float(self.lengths.sum()),
            "section": vars(self.section), "ends": [end.kind for end in self.ends],
            "translational_damping_Nspm2": self.translational_damping,
            "rotational_damping_Nmsprad_pm": self.rotational_damping,
        }  # fmt: skip
