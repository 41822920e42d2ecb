"""Calls of a scene that add bodies, robots and obstacles; `building` and `robots` do the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from contact import Plane, Shape
from femsim.base.errors import naming_all_parameters
from femsim.model.bodies.body import Body
from femsim.model.bodies.rod_end import RodEnd, RodEndKind
from femsim.model.bodies.soft_bodies import ElementKind
from femsim.model.robots import BaseKind, Robot
from femsim.model.solids import Compound
from femsim.scene import building, robots
from femsim.scene.building import RodContact
from femsim.scene.checks import Finger, Handle, Vector
from femsim.scene.contents import SceneContents
from materials import Elastic, Law, RodSection
from meshes import TetMesh


@partial(naming_all_parameters, at_once=True)
class BodyCalls(SceneContents):
    """Calls of :class:`femsim.scene.scene.Scene` that add bodies, robots and obstacles."""

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
        angular_velocity: Vector = (0.0, 0.0, 0.0),
        surface: str | None = None,
        fixed: Callable[[np.ndarray], np.ndarray] | None = None,
        load: Callable[[float], Vector] | None = None,
        law: Law | str | None = None,
        regions: Mapping[str, str | Elastic] | None = None,
        element: ElementKind = "linear",
        added_mass: Callable[[np.ndarray], np.ndarray] | None = None,
        start_points: Callable[[np.ndarray], np.ndarray] | None = None,
        self_contact: bool = False,
    ) -> Handle:
        """Add a deformable body of tetrahedra, co-rotational unless the material or ``law`` says otherwise.

        Contact with rigid bodies and obstacles is at its surface nodes; with soft bodies, rods and itself, on its whole surface.

        Parameters
        ----------
        name : str
            Name in outputs.
        mesh : TetMesh or path
            Tetrahedra in metres; a path is read by ``load_tetmesh`` (.vtu, .vtk, .msh, .mesh, .inp).
        material : str or Elastic
            Card of the material library, or values of your own.
        position, rotation : (3,) float, m and rad
            Where the origin of the mesh goes, and the rotation vector about it.
        scale : float
            Factor on the mesh coordinates (1e-3 for a mesh in millimetres).
        velocity, angular_velocity : (3,) float, m/s and rad/s
            Initial velocity of the centre of mass, and initial angular velocity about it, as if the body were rigid; world frame.
        surface : str, optional
            Surface name for friction, also of its regions; default the name of ``material``, and for regions that of theirs.
        fixed : callable, optional
            ``fixed(points (n, 3) m) -> (n,) bool``: nodes that never move.
        load : callable, optional
            ``load(t) -> (3,)`` total force in N spread by mass, or ``(n, 3)`` nodal forces.
        law : Law or str, optional
            Elastic law instead of that of ``material``: "corotational", "st_venant_kirchhoff", "stable_neo_hookean", or one with
            constants such as ``fs.MooneyRivlin(c10, c01)``, scaled to the material's E and nu (docs/materials.md).
            Regions keep theirs.
        regions : mapping of str to str or Elastic, optional
            Materials of regions of the mesh, e.g. ``{"base": "pla"}`` for a layer that bends but does not stretch; all other
            elements have ``material``. Regions are the physical groups of a mesh file, or those of ``mesh.with_region``. All
            materials of a body have the same ``rayleigh_alpha``; where laws, Prony terms or ``rayleigh_beta`` differ, a step may
            take twice as long. A part of metal in rubber, a million times as stiff, takes many solves a step: make it a rigid
            body and weld it to the soft one by ``join``.
        element : {"linear", "quadratic"}
            Quadratic ones add a node to every edge, bend well on coarse meshes and do not lock up to nu = 0.499.
        added_mass : callable, optional
            ``added_mass(points (n, 3) m) -> (n,) kg`` on the nodes, e.g. a hung weight: inertia and weight without stiffness.
        start_points : callable, optional
            ``start_points(points (n, 3) m) -> (n, 3) m``: where the nodes start, if not at rest, e.g. as a hand holds it. Places
            that ``fixed``, ``added_mass`` and markers are given are those at rest, all others those at the start. Prony terms
            start relaxed there.
        self_contact : bool
            Whether it may have contact with itself, as a folded mat has. Off by default, since it costs detection.

        Raises
        ------
        InputError, MeshError, MaterialError
            Wrong values, mesh or material.
        """
        return building.add_soft(
            self, name, mesh, material, position, rotation, scale, velocity, angular_velocity, surface, fixed, load, law, regions,
            element, added_mass, start_points, self_contact,
        )  # fmt: skip

    def add_rod(
        self,
        name: str,
        points: np.ndarray,
        section: RodSection,
        material: str | Elastic,
        *,
        start: RodEnd | RodEndKind | None = None,
        end: RodEnd | RodEndKind | None = None,
        normal: Vector | None = None,
        rest_curvature: np.ndarray | None = None,
        velocity: Vector | None = None,
        angular_velocity: Vector = (0.0, 0.0, 0.0),
        translational_damping: float = 0.0,
        rotational_damping: float = 0.0,
        load: Callable[[float], np.ndarray] | None = None,
        contact: RodContact = "centre",
        surface: str | None = None,
        self_contact: bool = False,
    ) -> Handle:
        """Add a Cosserat rod: a cable, string or slender arm, as a chain of rigid links with elastic joints.

        Contact with rigid bodies and obstacles is at the centres of the links, at the distance ``section.contact_radius``; links
        should not be longer than a quarter of the smallest radius that the rod is bent to. Contact with soft bodies, rods and
        itself is along the line through the centres, at the same distance.

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
        start, end : RodEnd or {"free", "clamped", "hinged"}, optional
            What holds or loads the first and the last of ``points``; default free. ``RodEnd(motion=...)`` drives a frame,
            ``RodEnd(on=...)`` fixes it to a body of the scene; links beside such an end that start in that body, or just outside
            where the rod leaves it, never have contact with it. What is wound on it does.
        normal : (3,), optional
            Direction of axis 1 of the section at the first link.
        rest_curvature : ndarray, (3,) or (n - 1, 3), 1/m, optional
            Curvature about axes 1 and 2 and twist of the rod without stress. Default: that of ``points``.
        velocity, angular_velocity : (3,) float, m/s and rad/s, optional
            Initial velocity of the centre of mass, and initial angular velocity about it, as if the rod were rigid; world frame.
        translational_damping, rotational_damping : float, N s/m and N m s/rad per metre of rod
            Drag on the velocity and on the angular velocity.
        load : callable, optional
            ``load(t) -> (3,)`` total force in N spread by mass, or ``(n, 6)`` force (N) and torque (N m) on each link.
        contact : {"centre", "surface"}
            Where contact forces act: at the centre of a link (default; as in papers/001, they turn no link), or at its surface,
            so that friction also turns and twists the rod.
        surface : str, optional
            Surface name for friction; default the name of the material.
        self_contact : bool
            Whether links at least pi times the thickness apart along the rod may have contact. Off by default; costs detection.

        Raises
        ------
        InputError, MaterialError
            Wrong values or material, a link without length, or a centre line that crosses itself.
        """
        damping = (translational_damping, rotational_damping)
        return building.add_rod(
            self, name, points, section, material, (start, end), normal, rest_curvature, velocity, angular_velocity, damping,
            load, contact, surface, self_contact,
        )  # fmt: skip

    def add_rigid(
        self,
        name: str,
        shape: Shape | Compound,
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
        shape : Shape or Compound
            Contact shape: Box, Sphere, Capsule, Cylinder, Cone, Mesh, Revolved, Thread, or several of them as one,
            fs.Compound.
        density, mass : float, kg/m^3 and kg
            One of the two; the inertia is that of the homogeneous shape either way.
        position, rotation : (3,) float, m and rad
            Where the origin of the shape goes, and the rotation vector about it.
        velocity, angular_velocity : (3,) float, m/s and rad/s
            Initial velocities, world frame.
        surface : str
            Surface name for friction.
        load : callable, optional
            ``load(t) -> (force (3,) N, torque (3,) N m)`` at the centre of mass, world frame.
        """
        return building.add_rigid(
            self, name, shape, density, mass, position, rotation, velocity, angular_velocity, surface, load
        )  # fmt: skip

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
        position, rotation : (3,) float, m and rad
            Where the centre of the base goes, and its rotation vector.
        mass : float, kg
            Mass of the base.
        base : Shape, optional
            Shape of the base; default a box above the fingers that is drawn but has no contact.
        surface : str
            Surface name of the pads and the base for friction.
        joint_damping, joint_limits : float, N s/m, and (float, float), m
            Viscous friction of each finger, and the range of its joint, which it cannot leave; 0 is where it starts.
        """
        return building.add_gripper(
            self, name, fingers, position, rotation, mass, base, surface, joint_damping, joint_limits
        )  # fmt: skip

    def add_robot(
        self,
        robot: Robot | str | Path,
        *,
        name: str | None = None,
        base: BaseKind = "fixed",
        position: Vector = (0.0, 0.0, 0.0),
        rotation: Vector = (0.0, 0.0, 0.0),
        joints: Mapping[str, float | Sequence[float]] | None = None,
        speeds: Mapping[str, float | Sequence[float]] | None = None,
        velocity: Vector = (0.0, 0.0, 0.0),
        angular_velocity: Vector = (0.0, 0.0, 0.0),
        surface: str = "rigid",
        self_contact: bool = True,
        tree: str | None = None,
    ) -> Handle:
        """Add a robot: rigid links on joints, from a file or of your own.

        Parameters
        ----------
        robot : Robot or path
            Links and joints; a path, of URDF or MJCF, is read by ``fs.load_robot``.
        name : str, optional
            Name; its parts are ``NAME`` (the base) and ``NAME.LINK``. Default: that of the robot.
        base : {"fixed", "free", "planar"}
            Whether the base stands still (or goes where ``drive`` moves it), flies free, or slides in its plane z = 0 and turns
            about z; by joints "base_x", "base_y" and "base_turn" then.
        position, rotation : (3,) float, m and rad
            Where the frame of the base goes, and its rotation vector.
        joints : dict of str to float or (4,) float, rad or m, optional
            Where joints start, by name; of a spherical joint a quaternion. Default 0, or the end of the range next to it.
        speeds : dict of str to float or (3,) float, rad/s or m/s, optional
            Their speeds at the start; of a spherical joint the angular velocity beside the parent, in the axes of the joint on
            the parent, which do not turn along with the child. Default 0.
        velocity, angular_velocity : (3,) float, m/s and rad/s
            Of the centre of mass of a free base at the start, world.
        surface : str
            Surface name for friction, of all its links.
        self_contact : bool
            Whether its links have contact with each other: those that do not hang on one another, and that do not overlap at the
            start, which a note says. ``ignore_contact`` leaves out some of them.
        tree : str, optional
            Of a path to an MJCF file with several trees the one to add, as ``fs.load_robot`` has it.

        Raises
        ------
        InputError
            A file or description that is wrong (the message names file and element), or wrong values.
        """
        return robots.add_robot(
            self, robot, name, base, position, rotation, joints or {}, speeds or {}, velocity, angular_velocity, surface,
            self_contact, tree,
        )  # fmt: skip

    def add_floor(self, height: float = 0.0, *, surface: str = "floor", name: str = "floor") -> Handle:
        """Add a horizontal floor.

        Parameters
        ----------
        height : float, m
            z of the floor.
        surface, name : str
            Surface name for friction; name in outputs and sensors.
        """
        return self.add_obstacle(name, Plane(), position=(0.0, 0.0, float(height)), surface=surface)

    def add_body(
        self,
        body: Body,
        *,
        shape: Shape | None = None,
        nodes: Sequence[int] | np.ndarray | None = None,
        surface: str = "rigid",
    ) -> Handle:
        """Add a body of your own that answers what :class:`femsim.Body` lists (CONTRIBUTING.md, "A body").

        Parameters
        ----------
        body : Body
            The body; classes derived from ``fs.BodyDefaults`` write what is special about them only.
        shape : Shape, optional
            Contact shape of a rigid body, at its centre of mass; without it the body has no contact.
        nodes : sequence of int, optional
            Nodes of a body that is not rigid that have contact with shapes. Default: all.
        surface : str
            Surface name for friction.

        Raises
        ------
        InputError
            What the body lacks, answers of the wrong size, a shape on a body that is not rigid, or nodes that do not exist.
        """
        return building.add_body(self, body, shape, nodes, surface)

    def add_obstacle(
        self,
        name: str,
        shape: Shape | Compound,
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
        shape : Shape or Compound
            Its shape; a Plane is the half space below its local z = 0. Several shapes are one obstacle as fs.Compound.
        position, rotation : (3,) float, m and rad
            Where the origin of the shape goes, and the rotation vector about it.
        surface : str
            Surface name for friction.
        """
        return building.add_obstacle(self, name, shape, position, rotation, surface)
