"""The scene: plain calls that describe bodies, drives and sensors; a ``Stepper`` sets it in motion."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

import meshes
from contact import Box, Mesh, Plane, Shape
from femsim.base.errors import InputError, did_you_mean
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix
from femsim.model.actuators import ACTUATOR_COLUMNS, Actuator, Chamber, Tendon, find_chamber, route
from femsim.model.bodies.articulated import ArticulatedBody, JointDrive, Link
from femsim.model.bodies.rod import Rod, RodEnd
from femsim.model.bodies.soft import SoftBody
from femsim.model.bodies.soft_bodies import ElementKind, make_soft_body
from femsim.model.contact_rules import AnisotropicPair, Apart
from femsim.model.couplings import Coupling, HeldEnd, LinkFrame, PatchFrame, check_reach, holder_gap, surface_patch
from femsim.model.drives import PoseFunction
from femsim.model.holds import Hold, chosen_nodes, nodes_where
from femsim.model.solids import mass_properties, visual, with_arm
from femsim.scene.reading import Reading
from materials import Elastic, FrictionTable, Law, RodSection, friction, material
from meshes import (
    TetMesh,
    TriMesh,
    load_surface,
    load_tetmesh,
    require_simple,
)

Vector = Sequence[float] | np.ndarray
SensorKind = Literal["contact", "mount", "marker", "start", "end", "chamber", "tendon", "joint", "gap", "area", "slip", "energy"]
#: Columns of the kinds that are no wrench and no marker.
GAUGE_COLUMNS: dict[str, tuple[str, ...]] = {
    "gap": ("gap_m",),
    "area": ("area_m2",),
    "slip": ("slip_m", "friction_J"),
    "energy": ("kinetic_J", "elastic_J", "potential_J"),
}
RodContact = Literal["centre", "surface"]
#: A body of a mesh longer than this, in m, is taken for a mesh in millimetres, and a warning says so.
LARGE = 3.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")


@dataclass(frozen=True)
class Handle:
    """What ``add_...`` returns; name it in ``drive``, ``sensor`` and ``set_friction``.

    Attributes
    ----------
    name : str
        Name of the body.
    parts : tuple of str
        Names of what can touch and be sensed: the body itself, or the links of a gripper.
    """

    name: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Finger:
    """One prismatic finger of a gripper.

    Parameters
    ----------
    name : str
        Name, e.g. "left".
    pad : Shape
        Contact shape of the finger; also what is drawn.
    offset : (3,) float, m
        Centre of the pad in the frame of the gripper's base at joint position zero.
    closing : (3,) float
        Direction in which the finger closes, frame of the base; normalised.
    mass : float, kg
        Mass of the finger.
    rotation : (3,) float, rad
        Rotation vector of the pad in the frame of the base.
    """

    name: str
    pad: Shape
    offset: Vector
    closing: Vector
    mass: float = 0.1
    rotation: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class SensorSpec:
    """A sensor of the scene; see :meth:`Scene.sensor`."""

    name: str
    part: str
    kind: SensorKind
    node: int = -1
    hold: str = ""
    corners: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    reading: Reading | None = None
    actuator: str = ""
    partners: tuple[str, ...] = ()
    where: Callable[[np.ndarray], np.ndarray] | np.ndarray | None = None
    reach: float = 0.01

    @property
    def counts_contacts(self) -> bool:
        """Whether it chooses among the contacts of its part; a whole contact sensor takes them all."""
        limited = bool(self.partners) or self.where is not None
        return self.kind in ("gap", "area", "slip") or (self.kind == "contact" and limited)


@dataclass
class Part:
    """Something with a surface: its shapes, how it is drawn, and the body it belongs to."""

    name: str
    body: int
    link: int
    surface: str
    shapes: list[tuple[Shape, np.ndarray, np.ndarray]]
    visual: TriMesh | None
    nodes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    turns: bool = False
    triangles: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    self_contact: bool = False


def _vector(what: str, value: Vector, size: int = 3) -> np.ndarray:
    array = np.asarray(value, dtype=np.float64)
    if array.shape != (size,) or not np.all(np.isfinite(array)):
        raise InputError(f"{what} is {value!r}; allowed are {size} finite numbers.")
    return array


def _positive(what: str, value: float, unit: str) -> float:
    if not (isinstance(value, int | float | np.floating) and np.isfinite(value) and value > 0):
        raise InputError(f"{what} is {value!r} {unit}; allowed are positive numbers.")
    return float(value)


class Scene:
    """Bodies, what drives them and what is measured.

    Parameters
    ----------
    name : str
        Name of the scene; also the default name of its run folder.
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    theta : float
        Integration parameter in [1/2, 1]: 1 (default) is backward Euler, 1/2 the mid-point rule of papers/001 eq. (9), which
        keeps energy but lets nodes in contact chatter.
    gravity : (3,) float, m/s^2
        Acceleration of gravity.
    margin : float, m
        Contacts closer than this (plus the way of a step) enter the problem before they touch.
    correction : float
        Part of a penetration that one step takes back, in [0, 1]. Default 0.2.
    max_correction : float, m/s
        Largest speed of that correction. Default 0.5.
    default_friction : float
        Coulomb coefficient of pairs of surfaces that neither the scene nor the material library sets. Default 0.5.

    Raises
    ------
    InputError
        A value outside its range.
    """

    def __init__(
        self,
        name: str,
        *,
        dt: float = 0.01,
        duration: float = 1.0,
        theta: float = 1.0,
        gravity: Vector = (0.0, 0.0, -9.81),
        margin: float = 1e-3,
        correction: float = 0.2,
        max_correction: float = 0.5,
        default_friction: float = 0.5,
    ) -> None:
        if not 0.5 <= theta <= 1.0:
            raise InputError(f"theta is {theta}; allowed are values from 0.5 (mid-point) to 1 (backward Euler).")
        if not 0.0 <= correction <= 1.0:
            raise InputError(f"correction is {correction}; allowed are values from 0 to 1.")
        self.name = name
        self.dt = _positive("dt", dt, "s")
        self.duration = _positive("duration", duration, "s")
        self.theta = theta
        self.gravity = _vector("gravity", gravity)
        self.margin = _positive("margin", margin, "m")
        self.correction = correction
        self.max_correction = _positive("max_correction", max_correction, "m/s")
        self.bodies: list[SoftBody | Rod | ArticulatedBody] = []
        self.parts: list[Part] = []
        self.motions: dict[int, PoseFunction] = {}
        self.fixed_nodes: dict[int, np.ndarray] = {}
        self.sensors: list[SensorSpec] = []
        self.frictions = FrictionTable(default_friction)
        self.anisotropic: list[AnisotropicPair] = []
        self.couplings: list[Coupling] = []
        self.holds: list[Hold] = []
        self.apart: list[Apart] = []
        self.parameters: dict[str, Any] = {}
        self.meshes: dict[str, dict[str, Any]] = {}

    # ------------------------------------------------------------------ bodies

    def add_soft(
        self,
        name: str,
        mesh: TetMesh | str | Path,
        material: str | Elastic,
        *,
        position: Vector = (0.0, 0.0, 0.0),
        rotation: Vector = (0.0, 0.0, 0.0),
        scale: float = 1.0,
        velocity: Vector = (0.0, 0.0, 0.0),
        surface: str | None = None,
        fixed: Callable[[np.ndarray], np.ndarray] | None = None,
        load: Callable[[float], Vector] | None = None,
        law: Law | str | None = None,
        element: ElementKind = "linear",
        added_mass: Callable[[np.ndarray], np.ndarray] | None = None,
        self_contact: bool = False,
    ) -> Handle:
        """Add a deformable body of tetrahedra, co-rotational unless the material or ``law`` says otherwise.

        Its surface nodes touch rigid bodies and obstacles, its surface other soft bodies, rods and, where wanted, itself.

        Parameters
        ----------
        name : str
            Name in outputs.
        mesh : TetMesh or path
            Tetrahedra in metres; a path is read by ``load_tetmesh`` (.vtu, .vtk, .msh, .mesh, .inp).
        material : str or Elastic
            Card of the material library, or values of your own.
        position : (3,) float, m
            Where the origin of the mesh goes.
        rotation : (3,) float, rad
            Rotation vector of the mesh about its origin.
        scale : float
            Factor on the mesh coordinates (1e-3 for a mesh in millimetres).
        velocity : (3,) float, m/s
            Initial velocity.
        surface : str, optional
            Surface name for friction; default the name of the material.
        fixed : callable, optional
            ``fixed(points (n, 3) m) -> (n,) bool``: nodes that never move.
        load : callable, optional
            ``load(t) -> (3,)`` total force in N spread by mass, or ``(n, 3)`` nodal forces.
        law : Law or str, optional
            Elastic law instead of the material's: "corotational", "st_venant_kirchhoff", "stable_neo_hookean", or one with
            constants such as ``fs.MooneyRivlin(c10, c01)``, scaled to the material's E and nu (docs/materials.md).
        element : {"linear", "quadratic"}
            Quadratic tetrahedra add a node to every edge (nodes n is then that of all), bend well on coarse meshes and do not
            lock up to nu = 0.499. Default linear.
        added_mass : callable, optional
            ``added_mass(points (n, 3) m) -> (n,) kg``: what the nodes carry beside the material, e.g. a hung weight. It has
            weight and inertia, and no stiffness.
        self_contact : bool
            Whether its surface touches itself, as a mat that is folded does. Off by default, since it costs detection.

        Raises
        ------
        InputError, MeshError, MaterialError
            Wrong values, mesh or material.
        """
        self._check_name(name)
        if element not in get_args(ElementKind):
            raise InputError(f"element of {name} is {element!r}; allowed are 'linear' and 'quadratic'.")
        if not isinstance(mesh, TetMesh):
            mesh = load_tetmesh(mesh)
        elastic = self._material(material)
        if law is not None:
            elastic = elastic.replace(law=law)
        require_simple(mesh.surface())
        turn = quaternion_to_matrix(quaternion_from_vector(_vector(f"rotation of {name}", rotation)))
        scale = _positive(f"scale of {name}", scale, "")
        mesh = replace(mesh, points=scale * mesh.points @ turn.T + _vector(f"position of {name}", position))
        source, digest = mesh.source, mesh.digest
        _warn_of_size(name, mesh.points)
        body, mesh = make_soft_body(name, mesh, elastic, element=element, velocity=_vector(f"velocity of {name}", velocity))
        points = mesh.points
        if load is not None:
            body.load = _checked_load(name, load, (len(points), 3))
        if added_mass is not None:
            body.carry(_node_masses(name, added_mass, points))
        index = len(self.bodies)
        if fixed is not None:
            self.fixed_nodes[index] = nodes_where(f"fixed of {name}", points, fixed)
        self.bodies.append(body)
        part = Part(name, index, 0, surface or elastic.name, [], None, mesh.surface_nodes, self_contact=self_contact)
        part.triangles = mesh.surface_triangles
        self.parts.append(part)
        self.meshes[name] = {
            "source": source,
            "digest": digest,
            "nodes": len(points),
            "tets": len(body.elements),
            "element": element,
            "law": elastic.law.kind,
        }
        return Handle(name, (name,))

    def add_rod(
        self,
        name: str,
        points: np.ndarray,
        section: RodSection,
        material: str | Elastic,
        *,
        start: RodEnd | None = None,
        end: RodEnd | None = None,
        normal: Vector | None = None,
        rest_curvature: np.ndarray | None = None,
        velocity: Vector | None = None,
        translational_damping: float = 0.0,
        rotational_damping: float = 0.0,
        load: Callable[[float], np.ndarray] | None = None,
        contact: RodContact = "centre",
        surface: str | None = None,
        self_contact: bool = False,
    ) -> Handle:
        """Add a Cosserat rod: a cable, string or slender arm, as a chain of rigid links with elastic joints.

        The centre of each link touches rigid bodies and obstacles at the distance ``section.contact_radius``; links should not be
        longer than a quarter of the smallest radius that the rod is bent to. Soft bodies, other rods and, where wanted, the rod
        itself are touched by the line through the centres, at the same distance.

        Parameters
        ----------
        name : str
            Name in outputs.
        points : ndarray, (n + 1, 3), m
            Ends of the n links along the rod at the start, world. Their distances are the lengths of the links at rest.
        section : RodSection
            Cross section, e.g. ``fs.circular_section(radius)``.
        material : str or Elastic
            Card of the material library, or values of your own.
        start, end : RodEnd, optional
            What holds or loads the first and the last of ``points``; default free. A frame is led by ``RodEnd(motion=...)``, or
            carried by a body of the scene by ``RodEnd(on=...)``; the links beside such an end that start within the contact
            radius of touching the holder never touch it.
        normal : (3,), optional
            Direction of axis 1 of the section at the first link.
        rest_curvature : ndarray, (3,) or (n - 1, 3), 1/m, optional
            Curvature about axes 1 and 2 and twist of the rod without stress. Default: that of ``points``.
        velocity : (3,) float, m/s, optional
            Initial velocity.
        translational_damping, rotational_damping : float, N s/m and N m s/rad per metre of rod
            Drag on the velocity and on the angular velocity.
        load : callable, optional
            ``load(t) -> (3,)`` total force in N spread by mass, or ``(n, 6)`` force (N) and torque (N m) on each link.
        contact : {"centre", "surface"}
            Where contact forces act: at the centre of a link (default; as in papers/001, a nodal contact, which turns no link),
            or at its surface, so that friction also turns and twists the rod.
        surface : str, optional
            Surface name for friction; default the name of the material.
        self_contact : bool
            Whether the rod touches itself, where it is at least pi times its thickness away along it. Off by default, since it
            costs detection.

        Raises
        ------
        InputError, MaterialError
            Wrong values or material, a link without length, or a centre line that crosses itself.
        """
        self._check_name(name)
        if contact not in get_args(RodContact):
            raise InputError(f"contact of {name} is {contact!r}; allowed are 'centre' and 'surface'.")
        elastic = self._material(material)
        ends = _rod_end(f"start of {name}", start), _rod_end(f"end of {name}", end)
        holders = [self._holder(f"{side} of {name}", name, e) for side, e in zip(("start", "end"), ends, strict=True)]
        # what an obstacle carries stands
        first, last = (
            replace(e, on=None) if h >= 0 and self.parts[h].body < 0 else e for e, h in zip(ends, holders, strict=True)
        )
        body = Rod(
            name, points, section, elastic, rest_curvature=rest_curvature,
            normal=None if normal is None else _vector(f"normal of {name}", normal),
            velocity=None if velocity is None else _vector(f"velocity of {name}", velocity),
            start=first, end=last,
            translational_damping=translational_damping, rotational_damping=rotational_damping,
        )  # fmt: skip
        if load is not None:
            body.load = _checked_load(name, load, (body.n_links, 6))
        for k, holder in enumerate(holders):
            if holder >= 0:
                self._check_end(body, k, holder)
        for k, holder in enumerate(holders):
            if holder >= 0:
                self._hold_end(body, k, holder)
        part = Part(name, len(self.bodies), 0, surface or elastic.name, [], None, np.arange(body.n_links), contact == "surface")
        part.self_contact = self_contact
        self.parts.append(part)
        self.bodies.append(body)
        return Handle(name, (name,))

    def add_rigid(
        self,
        name: str,
        shape: Shape,
        *,
        density: float | None = None,
        mass: float | None = None,
        position: Vector = (0.0, 0.0, 0.0),
        rotation: Vector = (0.0, 0.0, 0.0),
        velocity: Vector = (0.0, 0.0, 0.0),
        angular_velocity: Vector = (0.0, 0.0, 0.0),
        surface: str = "rigid",
        load: Callable[[float], tuple[Vector, Vector]] | None = None,
    ) -> Handle:
        """Add a free rigid body; ``drive`` makes it follow a motion.

        Parameters
        ----------
        name : str
            Name in outputs.
        shape : Shape
            Contact shape, centred: Box, Sphere, Capsule, Cylinder or Mesh.
        density : float, kg/m^3
            Density; or give ``mass``.
        mass : float, kg
            Mass; the inertia is that of the homogeneous shape either way.
        position : (3,) float, m
            Where the origin of the shape goes.
        rotation : (3,) float, rad
            Rotation vector.
        velocity, angular_velocity : (3,) float, m/s and rad/s
            Initial velocities, world frame.
        surface : str
            Surface name for friction.
        load : callable, optional
            ``load(t) -> (force (3,) N, torque (3,) N m)`` at the centre of mass, world frame.
        """
        self._check_name(name)
        if isinstance(shape, Plane):
            raise InputError(f"shape of {name} is a Plane, which has no mass; use add_floor or add_obstacle.")
        if (density is None) == (mass is None):
            raise InputError(f"{name} has density {density} and mass {mass}; give exactly one of them.")
        if isinstance(shape, Mesh):
            _warn_of_size(name, shape.points)
        unit_mass, centre, unit_inertia = mass_properties(shape)
        if mass is None:
            mass = _positive(f"density of {name}", density if density is not None else 0.0, "kg/m^3") * unit_mass
        mass = _positive(f"mass of {name}", mass, "kg")
        quaternion = quaternion_from_vector(_vector(f"rotation of {name}", rotation))
        link = Link(name, mass, unit_inertia * (mass / unit_mass), np.zeros(3))
        body = ArticulatedBody(
            name, [link],
            position=_vector(f"position of {name}", position) + quaternion_to_matrix(quaternion) @ centre,
            quaternion=quaternion,
            velocity=_vector(f"velocity of {name}", velocity),
            angular_velocity=_vector(f"angular_velocity of {name}", angular_velocity),
            load=None if load is None else _rigid_load(name, load),
        )  # fmt: skip
        self.parts.append(
            Part(
                name,
                len(self.bodies),
                0,
                surface,
                [(shape, np.eye(3), -centre)],
                visual(shape, -centre, np.eye(3)),
            )
        )
        self.bodies.append(body)
        return Handle(name, (name,))

    def add_gripper(
        self,
        name: str,
        fingers: Sequence[Finger],
        *,
        position: Vector = (0.0, 0.0, 0.0),
        rotation: Vector = (0.0, 0.0, 0.0),
        mass: float = 1.0,
        base: Shape | None = None,
        surface: str = "rigid",
        joint_damping: float = 10.0,
        joint_limits: tuple[float, float] = (-np.inf, np.inf),
    ) -> Handle:
        """Add a gripper: a 6-DOF rigid base with prismatic fingers. Drive the base and the fingers by ``drive``.

        Parameters
        ----------
        name : str
            Name; its parts are ``NAME`` (the base) and ``NAME.FINGER``.
        fingers : sequence of Finger
            Fingers with pads.
        position : (3,) float, m
            Where the centre of the base goes.
        rotation : (3,) float, rad
            Rotation vector of the base.
        mass : float, kg
            Mass of the base.
        base : Shape, optional
            Shape of the base (touches and is drawn); default a box above the fingers that touches nothing.
        surface : str
            Surface name of the pads and the base for friction.
        joint_damping : float, N s/m
            Viscous friction of each finger.
        joint_limits : (float, float), m
            Range of each joint position; outside it a stiff stop acts.
        """
        self._check_name(name)
        if not fingers:
            raise InputError(f"gripper {name} has no finger; give at least one fs.Finger.")
        names = [f.name for f in fingers]
        if len(set(names)) != len(names):
            raise InputError(f"fingers of gripper {name} are named {names}; each needs a name of its own.")
        for finger in fingers:
            self._check_name(f"{name}.{finger.name}")
            if isinstance(finger.pad, Plane):
                raise InputError(f"pad of {name}.{finger.name} is a Plane, which has no mass; use a Box or another solid shape.")
        if not (joint_damping >= 0 and joint_limits[0] < joint_limits[1]):
            raise InputError(
                f"gripper {name} has joint_damping {joint_damping} and joint_limits {joint_limits}; allowed are damping >= 0 "
                "and a lower limit below the upper one."
            )
        index = len(self.bodies)
        visible = base or Box((0.05, 0.02, 0.01))
        unit_mass, _, unit_inertia = mass_properties(visible)
        mass = _positive(f"mass of {name}", mass, "kg")
        links = [Link(name, mass, unit_inertia * (mass / unit_mass), np.zeros(3))]
        parts = [
            Part(
                name,
                index,
                0,
                surface,
                [(base, np.eye(3), np.zeros(3))] if base else [],
                visual(visible, np.zeros(3), np.eye(3)),
            )
        ]
        for k, finger in enumerate(fingers):
            full = f"{name}.{finger.name}"
            axis = _vector(f"closing direction of {full}", finger.closing)
            if not np.linalg.norm(axis) > 0:
                raise InputError(f"closing direction of {full} is zero; give the direction in which it closes.")
            turn = quaternion_to_matrix(quaternion_from_vector(_vector(f"rotation of {full}", finger.rotation)))
            unit_mass, centre, unit_inertia = mass_properties(finger.pad)
            mass_f = _positive(f"mass of {full}", finger.mass, "kg")
            links.append(
                Link(
                    full,
                    mass_f,
                    turn @ unit_inertia @ turn.T * (mass_f / unit_mass),
                    _vector(f"offset of {full}", finger.offset),
                    axis / np.linalg.norm(axis),
                )
            )
            shift = -turn @ centre
            drawn = with_arm(visual(finger.pad, shift, turn), _vector(f"offset of {full}", finger.offset), axis)
            parts.append(Part(full, index, k + 1, surface, [(finger.pad, turn, shift)], drawn))
        body = ArticulatedBody(
            name, links,
            position=_vector(f"position of {name}", position),
            quaternion=quaternion_from_vector(_vector(f"rotation of {name}", rotation)),
            velocity=np.zeros(3), angular_velocity=np.zeros(3),
            drives=[JointDrive(friction_damping=joint_damping, limits=joint_limits) for _ in fingers],
        )  # fmt: skip
        self.bodies.append(body)
        self.parts += parts
        return Handle(name, tuple(p.name for p in parts))

    def add_floor(self, height: float = 0.0, *, surface: str = "floor", name: str = "floor") -> Handle:
        """Add a horizontal floor.

        Parameters
        ----------
        height : float, m
            z of the floor.
        surface : str
            Surface name for friction.
        name : str
            Name in outputs and sensors.
        """
        return self.add_obstacle(name, Plane(), position=(0.0, 0.0, float(height)), surface=surface)

    def add_obstacle(
        self,
        name: str,
        shape: Shape,
        *,
        position: Vector = (0.0, 0.0, 0.0),
        rotation: Vector = (0.0, 0.0, 0.0),
        surface: str = "rigid",
    ) -> Handle:
        """Add a shape that never moves.

        Parameters
        ----------
        name : str
            Name in outputs and sensors.
        shape : Shape
            Its shape; a Plane is the half space below its local z = 0.
        position : (3,) float, m
            Where the origin of the shape goes.
        rotation : (3,) float, rad
            Rotation vector.
        surface : str
            Surface name for friction.
        """
        self._check_name(name)
        turn = quaternion_to_matrix(quaternion_from_vector(_vector(f"rotation of {name}", rotation)))
        place = _vector(f"position of {name}", position)
        self.parts.append(Part(name, -1, 0, surface, [(shape, turn, place)], visual(shape, place, turn)))
        return Handle(name, (name,))

    # ------------------------------------------------------- drives, friction, sensors

    def drive(
        self,
        what: Handle | str,
        motion: PoseFunction | None = None,
        *,
        fingers: bool | Sequence[str] = False,
        force: Callable[[float], float] | None = None,
        position: Callable[[float], float] | None = None,
        stiffness: float = 1e4,
        damping: float = 1e2,
        max_force: float = np.inf,
    ) -> None:
        """Drive a rigid body or the base of a gripper along a motion, or the fingers of a gripper.

        Parameters
        ----------
        what : Handle or str
            The body.
        motion : callable, optional
            ``motion(t) -> (displacement (3,) m, rotation vector (3,) rad)`` from the start pose, e.g. fs.Motion; followed
            exactly.
        fingers : bool or sequence of str
            True: all fingers of the gripper; or the names of some.
        force : callable, optional
            Closing force of the fingers, N, as a function of time, e.g. fs.Profile.
        position : callable, optional
            Joint position of the fingers, m, positive closing; followed by a servo.
        stiffness, damping : float, N/m and N s/m
            Servo of ``position``.
        max_force : float, N
            Largest force of that servo.

        Raises
        ------
        InputError
            A body that cannot be driven, or not exactly one way to drive it.
        """
        index, body = self._articulated(what)
        if sum(x is not None for x in (motion, force, position)) != 1:
            raise InputError(f"drive of {body.name}: give exactly one of motion, force and position.")
        for what_drives, value in (("motion", motion), ("force", force), ("position", position)):
            if value is not None and not callable(value):
                raise InputError(
                    f"drive of {body.name}: {what_drives} is {value!r}, but must be a function of time in s; "
                    "use fs.Motion or fs.Profile."
                )
        if not (damping >= 0 and max_force > 0):
            raise InputError(
                f"drive of {body.name}: damping is {damping} N s/m and max_force {max_force} N; allowed are damping >= 0 and "
                "max_force > 0."
            )
        if motion is not None:
            if fingers:
                raise InputError(f"drive of {body.name}: a motion drives the base; use force or position for fingers.")
            self.motions[index] = motion
            return
        names = [link.name.rsplit(".", 1)[-1] for link in body.links[1:]]
        chosen = names if fingers is True else list(fingers or ())
        for finger in chosen:
            if finger not in names:
                raise InputError(f"drive of {body.name}: finger {finger!r} is unknown{did_you_mean(finger, names)}")
        if not chosen:
            raise InputError(f"drive of {body.name}: force and position drive fingers; say fingers=True or name some of {names}.")
        for finger in chosen:
            drive = body.drives[names.index(finger)]
            drive.force, drive.position = force, position
            drive.stiffness = _positive("stiffness of the servo", stiffness, "N/m")
            drive.damping, drive.max_force = damping, max_force

    def hold(
        self,
        what: Handle | str,
        where: Callable[[np.ndarray], np.ndarray] | Sequence[int] | np.ndarray,
        motion: PoseFunction | None = None,
        *,
        on: Handle | str | None = None,
        name: str | None = None,
    ) -> Handle:
        """Hold nodes of a soft body: they follow a rigid motion exactly, as if glued to a robot's hand.

        A body can be held at several places; nodes that only stand still are simpler as ``fixed`` of :meth:`add_soft`.

        Parameters
        ----------
        what : Handle or str
            The soft body.
        where : callable or sequence of int
            ``where(points (n, 3) m) -> (n,) bool`` of the nodes at the start, or node numbers.
        motion : callable, optional
            ``motion(t) -> (displacement (3,) m, rotation vector (3,) rad)`` from the start, e.g. fs.Motion; a rotation is about
            the mean of the held nodes.
        on : Handle or str, optional
            Instead of a motion: a driven rigid body or gripper with which the nodes go, as if glued to its base. Its ``mount``
            sensor then carries them too.
        name : str, optional
            Name for sensors; default "BODY.hold1", "BODY.hold2" ...

        Returns
        -------
        Handle
            For ``sensor(..., kind="mount")``: force and torque of the drive on the held nodes, about their mean.

        Raises
        ------
        InputError
            No soft body, nodes that do not exist or are held already, a body that is not driven (yet), or not exactly one of
            motion and on.
        """
        own = what.name if isinstance(what, Handle) else what
        body = self.body(own)
        if not isinstance(body, SoftBody):
            raise InputError(f"hold: {own!r} is no soft body; drive a rigid body or gripper by drive, hold a rod by fs.RodEnd.")
        index = self.bodies.index(body)
        held = [hold for hold in self.holds if hold.body == index]
        name = f"{own}.hold{len(held) + 1}" if name is None else name
        self._check_name(name)
        nodes = chosen_nodes(f"hold {name}: where", body.rest, where if callable(where) else np.asarray(where))
        for other, taken in [("fixed", self.fixed_nodes.get(index, nodes[:0])), *((hold.name, hold.nodes) for hold in held)]:
            both = np.intersect1d(nodes, taken)
            if len(both):
                raise InputError(f"hold {name}: node {both[0]} is held already by {other!r}; a node can follow one motion only.")
        if (motion is None) == (on is None):
            raise InputError(f"hold {name}: give exactly one of motion and on.")
        if motion is not None and not callable(motion):
            raise InputError(f"hold {name}: motion is {motion!r}, but must be a function of time in s; use fs.Motion.")
        pivot, leader = body.rest[nodes].mean(axis=0), -1
        if on is not None:
            label = on.name if isinstance(on, Handle) else on
            bases = {b.name: k for k, b in enumerate(self.bodies) if k in self.motions}
            if label not in bases:
                raise InputError(
                    f"hold {name}: {label!r} is no rigid body or gripper that a motion drives; drive it first, by "
                    "scene.drive(..., motion)."
                )
            leader = bases[label]
            pivot = self.bodies[leader].initial_q()[:3]
        self.holds.append(Hold(name, index, nodes, body.rest[nodes].copy(), pivot, motion, leader))
        return Handle(name, (name,))

    def pressurize(
        self,
        what: Handle | str,
        pressure: Callable[[float], float] | None = None,
        *,
        volume: Callable[[float], float] | None = None,
        where: Callable[[np.ndarray], np.ndarray] | int | np.ndarray | None = None,
        bulk: float = 1e7,
        name: str | None = None,
    ) -> Handle:
        """Put a closed chamber of a soft body under pressure: it acts on the walls where they are (a follower load).

        Parameters
        ----------
        what : Handle or str
            The soft body.
        pressure : callable, optional
            ``pressure(t) -> Pa`` above that outside, e.g. fs.Profile; negative sucks.
        volume : callable, optional
            Instead: ``volume(t) -> m^3`` of fluid in the chamber, by a pump; the pressure follows. For chambers of some hundred
            nodes at most (docs/gripper.md).
        where : callable, int or (k, 3) array of int, optional
            Which chamber: ``where(points (n, 3) m) -> (n,) bool`` holds for all its nodes, or its number by volume from the
            largest, 0; or the triangles of a closed surface, node numbers. Default: the only chamber of the body.
        bulk : float, Pa
            Bulk modulus of the fluid of ``volume``; water has 2e9.
        name : str, optional
            Name for sensors; default "BODY.chamber1", "BODY.chamber2" ...

        Returns
        -------
        Handle
            For ``sensor(..., kind="chamber")``: pressure and volume.

        Raises
        ------
        InputError
            No soft body, no such chamber, a surface that is not closed, or not exactly one of pressure and volume.
        """
        index, body = self._actuated("pressurize", what)
        name = self._actuator_name(body.name, "chamber", name)
        if (pressure is None) == (volume is None):
            raise InputError(f"pressurize {name}: give exactly one of pressure and volume.")
        for key, value in (("pressure", pressure), ("volume", volume)):
            if value is not None and not callable(value):
                raise InputError(f"pressurize {name}: {key} is {value!r}, but must be a function of time in s; use fs.Profile.")
        triangles = find_chamber(body, where)
        bulk = _positive(f"bulk of {name}", bulk, "Pa")
        self.couplings.append(Chamber(name, body, index, triangles, pressure=pressure, volume=volume, bulk=bulk))
        return Handle(name, (name,))

    def add_tendon(
        self,
        what: Handle | str,
        points: np.ndarray | Sequence[Vector] | Sequence[int],
        force: Callable[[float], float] | None = None,
        *,
        pull: Callable[[float], float] | None = None,
        stiffness: float = 1e4,
        name: str | None = None,
    ) -> Handle:
        """Run a tendon through points of a soft body: a cable that slides without friction and is pulled.

        It is fixed at the last point; at the first, where a motor sits on the body, it is pulled.

        Parameters
        ----------
        what : Handle or str
            The soft body.
        points : (n, 3) array or sequence, m, or sequence of int
            Points in or on the body where it starts, world, or its nodes; at least two.
        force : callable, optional
            ``force(t) -> N`` tension, e.g. fs.Profile, not negative.
        pull : callable, optional
            Instead: ``pull(t) -> m`` of cable that the motor takes in; the tension follows, none where the cable is slack.
        stiffness : float, N/m
            Force per elongation of the cable, with ``pull``.
        name : str, optional
            Name for sensors; default "BODY.tendon1", "BODY.tendon2" ...

        Returns
        -------
        Handle
            For ``sensor(..., kind="tendon")``: tension and length.

        Raises
        ------
        InputError
            No soft body, points outside it or in one place, or not exactly one of force and pull.
        """
        index, body = self._actuated("add_tendon", what)
        name = self._actuator_name(body.name, "tendon", name)
        if (force is None) == (pull is None):
            raise InputError(f"add_tendon {name}: give exactly one of force and pull.")
        for key, value in (("force", force), ("pull", pull)):
            if value is not None and not callable(value):
                raise InputError(f"add_tendon {name}: {key} is {value!r}, but must be a function of time in s; use fs.Profile.")
        try:
            way = np.asarray(points)
        except ValueError:
            raise InputError(f"add_tendon {name}: points are no array; allowed are (n, 3) numbers in m, or nodes.") from None
        nodes, weights = route(body, way)
        stiffness = _positive(f"stiffness of {name}", stiffness, "N/m")
        self.couplings.append(Tendon(name, index, nodes, weights, body.rest, force=force, pull=pull, stiffness=stiffness))
        return Handle(name, (name,))

    def set_friction(
        self,
        a: Handle | str,
        b: Handle | str,
        coefficient: float | tuple[float, float],
        *,
        direction: Vector | None = None,
    ) -> None:
        """Set the Coulomb coefficient of a pair, or its two coefficients where friction differs by direction.

        Parameters
        ----------
        a, b : Handle or str
            Two bodies (their surfaces), or two surface names.
        coefficient : float or (float, float), 1
            Coulomb coefficient, >= 0; or that along ``direction`` and that across it, both > 0 (papers/001 eq. 12: the force
            stays in an ellipse and dissipates most).
        direction : (3,), optional
            With two coefficients: direction of the first, in the frame of ``b``, which must be a rigid body or an obstacle
            (whose frame is the world's). Its part in the tangent plane of a contact counts.

        Raises
        ------
        InputError
            Two coefficients without a direction or on a soft body, or values out of range.
        """
        surfaces = self._surface(a), self._surface(b)
        self.anisotropic = [pair for pair in self.anisotropic if sorted(pair.surfaces) != sorted(surfaces)]
        what = f"friction of {surfaces[0]!r} and {surfaces[1]!r}"
        if isinstance(coefficient, (int, float, np.floating, np.integer)):
            if direction is not None:
                raise InputError(f"{what}: a direction needs two coefficients (along it, across it); {coefficient} is one.")
            self.frictions.set(*surfaces, coefficient)
            return
        along, across = (float(x) for x in _vector(f"{what}, coefficients", coefficient, 2))
        if min(along, across) <= 0:
            raise InputError(f"{what}: coefficients are {along} and {across}; allowed are two positive numbers.")
        carrier = b.parts[0] if isinstance(b, Handle) else b
        rigid = [p.name for p in self.parts if p.body < 0 or isinstance(self.bodies[p.body], ArticulatedBody)]
        if carrier not in rigid:
            raise InputError(
                f"{what}: the second of the pair carries the direction, so it must be one of {rigid}, not {carrier!r}."
            )
        if direction is None:
            raise InputError(f"{what}: two coefficients need direction=(x, y, z), the direction of the first one.")
        axis = _vector(f"{what}, direction", direction)
        if not np.linalg.norm(axis) > 0:
            raise InputError(f"{what}: direction is {tuple(axis)}; give a vector that is not zero.")
        self.frictions.set(*surfaces, math.sqrt(along * across))
        self.anisotropic.append(
            AnisotropicPair(surfaces, (along, across), axis / np.linalg.norm(axis), [p.name for p in self.parts].index(carrier))
        )

    def sensor(
        self,
        name: str,
        on: Handle | str,
        *,
        kind: SensorKind = "contact",
        node: int | None = None,
        at: Vector | None = None,
        reading: Reading | None = None,
        partner: Handle | str | None = None,
        where: Callable[[np.ndarray], np.ndarray] | np.ndarray | None = None,
        reach: float | None = None,
    ) -> None:
        """Record a force/torque sensor, a marker or another quantity, one row a step.

        Parameters
        ----------
        name : str
            Column prefix in sensors.csv.
        on : Handle or str
            The part: a body, ``"gripper.left"``, an obstacle.
        kind : {"contact", "mount", "marker", "start", "end", "chamber", "tendon", "joint", "gap", "area", "slip", "energy"}
            contact: wrench that all contacts exert on the part (N, N m, world frame, about its centre of mass).
            mount: wrench that the drive exerts on a driven body (what a force/torque sensor between robot and gripper
            carries), about the centre of mass of its base; or on held nodes of a soft body, about their mean. start, end:
            wrench of a rod on what holds this end, about the frame there. marker: position of a node of a soft body, of the
            centre of a link of a rod, or of the centre of a rigid part (m). chamber: pressure (Pa) and volume (m^3) of a
            chamber. tendon: its tension (N) and length (m). joint: wrench that the base of a gripper exerts on a finger through
            its joint, about the finger's centre of mass. gap: smallest distance to ``partner`` (m), inf
            beyond ``reach``. area: area of the loaded nodes of the soft body, or of those that press on the rigid part (m^2).
            slip: way slipped in the contacts, the mean weighted by normal force, summed over time (m), and work that their
            friction took (J). energy: kinetic, elastic and gravity's potential energy of the body (J).
        node : int, optional
            Node of a marker on a soft body, or link of a marker on a rod.
        at : (3,), m, optional
            Instead of a node: place of a marker on a soft body at the start, world. It moves with the nearest element as if glued
            to it, also where it stands off the surface by less than a few elements, as the ball of a motion capture does.
        reading : Reading, optional
            What an instrument there shows of the wrench (frame, point, weight of the tool, filter, sampling, bias, noise), in
            further columns named ``NAME_measured``.
        partner : Handle or str, optional
            Count contacts with this part alone, or with those of this gripper (contact, area, slip); the other side of a gap.
        where : callable or array of int, optional
            Count contacts on a part of the surface alone (contact, area, slip): ``where(points (n, 3) m) -> (n,) bool`` on the
            surface as it is at the start, world, or node numbers of a soft body, links of a rod. A force that several nodes
            carry counts by their shares.
        reach : float, m, optional
            How far a gap is seen. Default 0.01.

        Raises
        ------
        InputError
            Unknown part or kind, or a node or place that does not exist.
        """
        part = on.parts[0] if isinstance(on, Handle) else on
        names = [p.name for p in self.parts]
        actuator = self._sensed_actuator(name, part, kind)
        if actuator is not None:
            part = self.bodies[actuator.rows[0][0]].name
        hold = self._sensed_hold(name, part, kind)
        if hold is not None:
            part = self.bodies[hold.body].name
        if part not in names:
            raise InputError(f"sensor {name}: part {part!r} is unknown{did_you_mean(part, names)}")
        if kind not in get_args(SensorKind):
            raise InputError(f"sensor {name} has kind {kind!r}; allowed are {', '.join(map(repr, get_args(SensorKind)))}.")
        if not name or any(c in name for c in ',"\n'):
            raise InputError(f"sensor name {name!r} is empty or holds a comma, quote or line break; choose another.")
        taken = {s.name for s in self.sensors} | {f"{s.name}_measured" for s in self.sensors if s.reading is not None}
        if taken & ({name} if reading is None else {name, f"{name}_measured"}):
            raise InputError(f"sensor {name!r} exists already; choose another name.")
        entry = self.parts[names.index(part)]
        body = self.bodies[entry.body] if entry.body >= 0 else None
        if kind == "mount" and hold is None and not (isinstance(body, ArticulatedBody) and entry.link == 0):
            raise InputError(
                f"sensor {name}: kind 'mount' needs a driven rigid body, the base of a gripper or held nodes, not {part!r}."
            )
        if kind in ("start", "end") and not (isinstance(body, Rod) and body.ends[kind == "end"].kind != "free"):
            raise InputError(f"sensor {name}: kind {kind!r} needs a rod that is held at its {kind}, not {part!r}.")
        if kind == "joint" and not (isinstance(body, ArticulatedBody) and entry.link > 0):
            raise InputError(f"sensor {name}: kind 'joint' needs a finger of a gripper, e.g. 'gripper.left', not {part!r}.")
        if kind == "energy" and body is None:
            raise InputError(f"sensor {name}: {part!r} is an obstacle, which has no energy; name a body that moves.")
        partners = self._check_limits(name, part, kind, partner, where is not None, reach)
        if reading is not None:
            _check_reading(name, kind, body, reading)
            rigid = [p.name for p in self.parts if p.body < 0 or isinstance(self.bodies[p.body], ArticulatedBody)]
            if reading.turns and reading.frame not in ("body", *rigid):
                raise InputError(
                    f"sensor {name}: frame of its reading is {reading.frame!r}; allowed are 'world', 'body', the name of a rigid "
                    f"part, and a rotation vector or matrix{did_you_mean(reading.frame, rigid)}"
                )
        corners: tuple[int, ...] = ()
        weights: tuple[float, ...] = ()
        if at is not None:
            if kind != "marker" or node is not None or not isinstance(body, SoftBody):
                raise InputError(f"sensor {name}: 'at' places a marker on a soft body, instead of a node; leave one of them out.")
            corners, weights = _material_point(name, body, at)
        elif kind == "marker" and isinstance(body, SoftBody | Rod):
            count = body.n_links if isinstance(body, Rod) else body.n_nodes
            if node is None or not 0 <= node < count:
                raise InputError(f"sensor {name}: node {node} of {part!r}; allowed are 0 to {count - 1}.")
        led = hold.name if hold else ""
        moved = actuator.name if actuator else ""
        chosen = -1 if node is None else node
        reach = 0.01 if reach is None else _positive(f"reach of sensor {name}", reach, "m")
        self.sensors.append(SensorSpec(name, part, kind, chosen, led, corners, weights, reading, moved, partners, where, reach))

    # ------------------------------------------------------------------ helpers

    def body(self, name: str) -> SoftBody | Rod | ArticulatedBody:
        """Look up a body by name.

        Raises
        ------
        InputError
            No such body.
        """
        names = [b.name for b in self.bodies]
        if name not in names:
            raise InputError(f"body {name!r} is unknown in scene {self.name!r}{did_you_mean(name, names)}")
        return self.bodies[names.index(name)]

    def friction_matrix(self, surfaces: list[str]) -> np.ndarray:
        """Coefficients of all pairs of surfaces, (k, k): set in the scene, else in the material library, else the default."""
        values = self.frictions.matrix(surfaces)
        for i, a in enumerate(surfaces):
            for j, b in enumerate(surfaces):
                if (min(a, b), max(a, b)) not in self.frictions.pairs:
                    pair = friction(a, b)
                    values[i, j] = pair.value if pair is not None else values[i, j]
        return values

    def _sensed_hold(self, sensor: str, part: str, kind: str) -> Hold | None:
        """Hold that a sensor is on, named itself or by its body; None where it is on something else."""
        own = [hold for hold in self.holds if hold.name == part]
        if own and kind != "mount":
            raise InputError(f"sensor {sensor}: held nodes {part!r} have no kind {kind!r}; use 'mount', or name the body.")
        if not own and kind == "mount":
            own = [hold for hold in self.holds if self.bodies[hold.body].name == part]
        if len(own) > 1:
            raise InputError(f"sensor {sensor}: {part!r} is held at several places; name one of {[hold.name for hold in own]}.")
        return own[0] if own else None

    def _sensed_actuator(self, sensor: str, part: str, kind: str) -> Actuator | None:
        """Actuator that a sensor is on, named itself or by its body; None where the sensor is of another kind."""
        own = [a for a in self._actuators() if a.name == part]
        if own and own[0].kind != kind:
            raise InputError(f"sensor {sensor}: {part!r} has no kind {kind!r}; use {own[0].kind!r}, or name the body.")
        if kind not in ACTUATOR_COLUMNS:
            return None
        own = own or [a for a in self._actuators() if a.kind == kind and self.bodies[a.rows[0][0]].name == part]
        if len(own) != 1:
            raise InputError(f"sensor {sensor}: {part!r} has {[a.name for a in own]} of kind {kind!r}; name one of them.")
        return own[0]

    def _actuators(self) -> list[Actuator]:
        return [c for c in self.couplings if isinstance(c, Actuator)]

    def _actuated(self, call: str, what: Handle | str) -> tuple[int, SoftBody]:
        body = self.body(what.name if isinstance(what, Handle) else what)
        if not isinstance(body, SoftBody):
            raise InputError(f"{call}: {body.name!r} is no soft body; name one of add_soft.")
        return self.bodies.index(body), body

    def _actuator_name(self, body: str, kind: str, name: str | None) -> str:
        """Name of the next actuator of a kind of a body, checked."""
        count = sum(a.kind == kind and self.bodies[a.rows[0][0]].name == body for a in self._actuators())
        name = f"{body}.{kind}{count + 1}" if name is None else name
        self._check_name(name)
        return name

    def _check_limits(
        self, sensor: str, part: str, kind: str, partner: Handle | str | None, where: bool, reach: float | None
    ) -> tuple[str, ...]:
        """Refuse limits of a sensor that its kind does not have; return the parts of its partner, none for all."""
        for option, given, kinds in (
            ("partner", partner is not None, ("contact", "gap", "area", "slip")),
            ("where", where, ("contact", "area", "slip")),
            ("reach", reach is not None, ("gap",)),
        ):
            if given and kind not in kinds:
                raise InputError(f"sensor {sensor}: {option} is for the kinds {', '.join(kinds)}, not {kind!r}; leave it out.")
        if partner is None and kind == "gap":
            raise InputError(f"sensor {sensor}: a gap is that of {part!r} to something; name it as partner.")
        if partner is None:
            return ()
        names = [p.name for p in self.parts]
        if isinstance(partner, Handle):
            return partner.parts
        bodies = [self.bodies[p.body].name if p.body >= 0 else "" for p in self.parts]
        found = tuple(name for name, body in zip(names, bodies, strict=True) if partner == body) or (partner,)
        if not set(found) <= set(names):
            raise InputError(f"sensor {sensor}: partner {partner!r} is unknown{did_you_mean(partner, names)}")
        return found

    def _holder(self, what: str, rod: str, end: RodEnd) -> int:
        """Part that carries an end of a rod; -1 for none."""
        if end.on is None:
            return -1
        name = end.on if isinstance(end.on, str) else end.on.parts[0]
        names = [p.name for p in self.parts]
        if name == rod:
            raise InputError(f"{what} is held by the rod itself; name another body, or join the tips by one ring of points.")
        if name not in names:
            raise InputError(
                f"{what} is held by {name!r}, which the scene does not have (yet); add it first{did_you_mean(name, names)}"
            )
        part = self.parts[names.index(name)]
        if part.body >= 0 and isinstance(self.bodies[part.body], Rod):
            raise InputError(f"{what} is held by {name!r}, a rod; allowed are rigid bodies, grippers, soft bodies and obstacles.")
        return names.index(name)

    def _end_gap(self, holder: int, points: np.ndarray, radius: float) -> np.ndarray:
        """Signed distance of points (k, 3) to a rigid part as it starts, distance to the surface of a soft one, (k,), m."""
        part = self.parts[holder]
        body = self.bodies[part.body] if part.body >= 0 else None
        if isinstance(body, SoftBody):
            return np.array([surface_patch(body, point, radius)[2] for point in points])
        pose = body.link_pose(body.initial_q(), part.link) if isinstance(body, ArticulatedBody) else (np.eye(3), np.zeros(3))
        return holder_gap(part.shapes, pose[0], pose[1], points)

    def _check_end(self, rod: Rod, end: int, holder: int) -> None:
        """Refuse an end that is too far from its holder."""
        side, radius = ("start", "end")[end], rod.section.contact_radius
        gap = self._end_gap(holder, rod.end_frames[end : end + 1, :3], radius)
        check_reach(f"{side} of {rod.name}", self.parts[holder].name, float(gap[0]), radius)

    def _hold_end(self, rod: Rod, end: int, holder: int) -> None:
        """Couple an end of a rod, which is the next body and part, to its holder, and let the links beside it not touch that."""
        part, radius, pose = self.parts[holder], rod.section.contact_radius, rod.end_frames[end].copy()
        gap = self._end_gap(holder, rod.centres(rod.initial_q()), radius)
        near = (gap if end == 0 else gap[::-1]) < 2.0 * radius
        count = int(np.argmin(near)) if not near.all() else len(near)
        links = (0, count) if end == 0 else (rod.n_links - count, rod.n_links)
        self.apart.append(Apart(len(self.parts), *links, holder))
        if part.body < 0:
            return
        body = self.bodies[part.body]
        if isinstance(body, SoftBody):
            nodes, weights, _ = surface_patch(body, pose[:3], radius)
            frame: LinkFrame | PatchFrame = PatchFrame(body, nodes, weights, pose)
        else:
            assert isinstance(body, ArticulatedBody)
            frame = LinkFrame(body, part.link, pose)
        name = f"{rod.name}.{('start', 'end')[end]}"
        self.couplings.append(HeldEnd(name, rod, end, frame, rod_index=len(self.bodies), holder_index=part.body))

    def _check_name(self, name: str) -> None:
        taken = ["contacts", *(p.name for p in self.parts), *(h.name for h in self.holds), *(c.name for c in self.couplings)]
        if name in taken:
            raise InputError(f"body name {name!r} is taken; choose another.")
        if not _NAME.fullmatch(name):
            raise InputError(
                f"body name {name!r} is not allowed, since files are named by it; use letters, digits, '_', '-' and '.', "
                "at most 100, a letter or digit first."
            )

    def _articulated(self, what: Handle | str) -> tuple[int, ArticulatedBody]:
        name = what.name if isinstance(what, Handle) else what
        body = self.body(name)
        if not isinstance(body, ArticulatedBody):
            if isinstance(body, Rod):
                raise InputError(f"drive: {name!r} is a rod; hold an end of it by fs.RodEnd with a motion when you add it.")
            raise InputError(f"drive: {name!r} is a soft body; drive rigid bodies and grippers, or hold nodes of it by hold.")
        return self.bodies.index(body), body

    def _surface(self, what: Handle | str) -> str:
        name = what.parts[0] if isinstance(what, Handle) else what
        for part in self.parts:
            if part.name == name:
                return part.surface
        known = sorted({p.surface for p in self.parts})
        if name not in known:
            raise InputError(f"friction: body or surface {name!r} is unknown{did_you_mean(name, known)}")
        return name

    @staticmethod
    def _material(value: str | Elastic) -> Elastic:
        return value if isinstance(value, Elastic) else material(value).elastic()


def _checked_load(name: str, load: Callable[[float], Vector], each: tuple[int, int]) -> Callable[[float], np.ndarray]:
    """Check the shape of what a load gives, (3,) in all or one row a node or link; that it is finite is the step's business."""

    def checked(t: float) -> np.ndarray:
        force = np.asarray(load(t), dtype=np.float64)
        if force.shape not in ((3,), each):
            raise InputError(f"load of {name} gave shape {force.shape} at {t:g} s; allowed are (3,) and {each}, in N.")
        return force

    return checked


def _node_masses(name: str, added_mass: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> np.ndarray:
    """Check what the nodes carry, (n,) kg."""
    mass = np.asarray(added_mass(points), dtype=np.float64)
    if mass.shape != (len(points),) or not (np.isfinite(mass).all() and (mass >= 0).all()):
        raise InputError(
            f"added_mass of {name} gave shape {mass.shape}; allowed are ({len(points)},) numbers of kg, none negative."
        )
    return mass


def _check_reading(sensor: str, kind: SensorKind, body: SoftBody | Rod | ArticulatedBody | None, reading: Reading) -> None:
    """Refuse options of a reading that its sensor cannot have."""
    if kind == "marker" or kind in ACTUATOR_COLUMNS | GAUGE_COLUMNS:
        what = f"kind {kind!r}" if kind in GAUGE_COLUMNS else f"a {kind}"
        raise InputError(f"sensor {sensor}: a reading is of forces and torques; {what} has none, leave it out.")
    if isinstance(body, SoftBody | Rod) and isinstance(reading.frame, str) and reading.frame == "body":
        raise InputError(
            f"sensor {sensor}: a soft body or rod has no frame of its own; give its reading the frame 'world', or that of a "
            "rigid part by its name."
        )
    if reading.tool is not None and kind != "mount":
        raise InputError(
            f"sensor {sensor}: 'tool' takes a weight off a sensor of kind 'mount'; one of kind {kind!r} carries none."
        )


def _material_point(sensor: str, body: SoftBody, at: Vector) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Corners and weights of the point at ``at`` (world, at the start) that moves with the nearest element, also outside it."""
    point = _vector(f"sensor {sensor}: at", at)
    edges = body.rest[body.tets[:, 1:]] - body.rest[body.tets[:, :1]]
    inner = np.einsum("mi,mij->mj", point - body.rest[body.tets[:, 0]], np.linalg.inv(edges))
    weights = np.column_stack([1.0 - inner.sum(axis=1), inner])
    nearest = int(np.argmax(weights.min(axis=1)))
    if weights[nearest].min() < -4.0:
        low, high = (limits.round(4).tolist() for limits in (body.rest.min(axis=0), body.rest.max(axis=0)))
        raise InputError(
            f"sensor {sensor}: at is {tuple(float(x) for x in point)} m, far outside {body.name!r}, which spans {low} to {high}; "
            "give a point in it or near it."
        )
    return tuple(int(n) for n in body.tets[nearest]), tuple(float(w) for w in weights[nearest])


def _rod_end(what: str, end: RodEnd | None) -> RodEnd:
    """End of a rod with checked functions."""
    end = end or RodEnd()
    for field_name, value in (("motion", end.motion), ("load", end.load)):
        if value is not None and not callable(value):
            raise InputError(f"{what}: {field_name} is {value!r}, but must be a function of time in s; use e.g. fs.Motion.")
    return end if end.load is None else replace(end, load=_rigid_load(what, end.load))


def _rigid_load(name: str, load: Callable[[float], tuple[Vector, Vector]]) -> Callable[[float], tuple[np.ndarray, np.ndarray]]:
    def checked(t: float) -> tuple[np.ndarray, np.ndarray]:
        wrench = np.asarray(load(t), dtype=np.float64)
        if wrench.shape != (2, 3):
            raise InputError(
                f"load of {name} gave shape {wrench.shape} at {t:g} s; allowed is (force, torque), (3,) each, N and N m."
            )
        return wrench[0], wrench[1]

    return checked


def mesh_file(name: str) -> Path:
    """Path of a mesh: a file of your own, or one that comes with femsim.

    Parameters
    ----------
    name : str
        Path of a file, or a file name in ``meshes/files``, e.g. "ball_r30.vtu".

    Raises
    ------
    InputError
        No such file.
    """
    if Path(name).is_file():
        return Path(name)
    folder = Path(meshes.__file__).parent / "files"
    path = folder / name
    if not path.is_file():
        known = sorted(p.name for p in folder.iterdir() if p.suffix in (".vtu", ".stl"))
        raise InputError(f"mesh file {name!r} is found neither here nor with femsim{did_you_mean(name, known)}")
    return path


def _warn_of_size(name: str, points: np.ndarray) -> None:
    """Warn of a mesh (n, 3) that is probably in millimetres."""
    size = float(np.ptp(points, axis=0).max())
    if size > LARGE:
        warnings.warn(
            f"body {name!r} is {size:.4g} m long; if its mesh is in millimetres, give scale=1e-3 (scenes with the parameter "
            "mesh_unit: --set mesh_unit=mm).",
            stacklevel=3,
        )


def mesh_shape(path: str | Path, *, scale: float = 1.0, resolution: int = 48) -> Mesh:
    """Read a closed surface as a contact shape.

    Parameters
    ----------
    path : path
        .stl, .obj, .ply, .vtk or .vtu, in metres after ``scale``.
    scale : float
        Factor on the coordinates (1e-3 for millimetres).
    resolution : int
        Cells of its distance grid along the longest side.
    """
    surface = load_surface(path, scale=scale)
    return Mesh(surface.points, surface.triangles, resolution=resolution, name=str(path))
