"""The scene: plain calls that describe bodies, drives and sensors; a ``Stepper`` sets it in motion.

Over 600 lines, nearly all of them docstrings: each parameter says its unit where people look for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from contact import Mesh, Plane, Shape
from femsim.base.errors import InputError, did_you_mean, naming_all_parameters
from femsim.model.bodies.body import Body
from femsim.model.bodies.rod import RodEnd
from femsim.model.bodies.soft_bodies import ElementKind
from femsim.model.drives import PoseFunction
from femsim.model.joints import JointKind
from femsim.model.robots import BaseKind, Robot
from femsim.model.solids import Compound
from femsim.scene import building, driving, joining, pairs, robots
from femsim.scene.building import RodContact
from femsim.scene.checks import Finger, Handle, Vector
from femsim.scene.contents import SceneContents
from femsim.scene.reading import Reading
from femsim.scene.sensing import make_sensor
from materials import Elastic, Law, RodSection
from meshes import FILES, TetMesh, load_surface


@naming_all_parameters
class Scene(SceneContents):
    """Bodies, their drives and sensors.

    Parameters
    ----------
    name : str
        Name of the scene; also the default name of its run folder.
    dt : float, s, or "auto"
        Time step. "auto": as short as the motion needs, between ``dt_bounds``; tables have one row per longest step.
    duration : float, s
        Simulated time.
    theta : float, optional
        Integration parameter in [1/2, 1] of the theta rule, which it chooses: 1 is backward Euler, the choice for slow
        manipulation and statics, since it damps all vibration; 1/2 the mid-point rule of papers/001 eq. (9).
    gravity : (3,) float, m/s^2
        Acceleration of gravity.
    margin : float, m
        Pairs closer than this (plus the distance covered in one step) enter the problem as contacts.
    correction, max_correction : float, 1 and m/s
        Fraction of a penetration that one step removes, in [0, 1], and the largest speed for it. Default 0.2 and 0.5.
    default_friction : float
        Coulomb coefficient of pairs of surfaces that neither the scene nor the material library sets. Default 0.5.
    nonlinear_tolerance : float or None
        Largest residual of the equations of motion at the end of a step, relative to the largest forces in them. Default 1e-4. A
        step is linearised and solved again until it is met. None: one linearisation a step by the theta rule, as in papers/001.
    max_solves : int
        Most linearisations of a step before it is halved. Default 25.
    integrator : {"energy-momentum", "theta"}, optional
        How a step is taken. "energy-momentum", the default where neither ``theta`` is given nor one linearisation a step, takes
        elastic stress from both ends of the step, by which soft bodies, rods and rigid bodies in free motion keep angular
        momentum and never gain energy, at any stiffness; it is second order in dt. A step that neither it nor its halves
        can solve is taken by backward Euler. "theta" evaluates forces at one place within the step; without ``theta`` this is
        its end.
    strain_damping : float
        Fraction of strain changes that "energy-momentum" damps, from 0 (keeps the energy) to 1. Default 0.05.
    dt_bounds : (float, float), s
        Shortest and longest step of ``dt="auto"``. Default 0.1 and 10 ms.
    time_tolerance : float, m
        Largest position error of one such step, root mean square over the worst body. Default 1e-5.
    health : HealthBounds, optional
        Bounds of the health verdict of its runs.
    thin_shapes : bool
        Whether to accept shapes thin enough to pass between the surface nodes of a soft body: needles, small balls. Contact with
        soft bodies acts at their nodes, so such a shape enters without a force: keep the two apart. The health verdict says so
        if it happens.
    most_per_pair : int
        Number of contacts kept for a pair of parts where one has a Revolved or Thread, chosen so that they can carry what all
        could. Default 120.
    largest_size : float, m
        A moving rigid body larger than this gets a note that asks whether it is given in millimetres. Default 3.

    Raises
    ------
    InputError
        A value outside its range.
    """

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
            Surface name for friction; default the name of the material.
        fixed : callable, optional
            ``fixed(points (n, 3) m) -> (n,) bool``: nodes that never move.
        load : callable, optional
            ``load(t) -> (3,)`` total force in N spread by mass, or ``(n, 3)`` nodal forces.
        law : Law or str, optional
            Elastic law instead of the material's: "corotational", "st_venant_kirchhoff", "stable_neo_hookean", or one with
            constants such as ``fs.MooneyRivlin(c10, c01)``, scaled to the material's E and nu (docs/materials.md).
        element : {"linear", "quadratic"}
            Quadratic ones add a node to every edge, bend well on coarse meshes and do not lock up to nu = 0.499.
        added_mass : callable, optional
            ``added_mass(points (n, 3) m) -> (n,) kg`` on the nodes, e.g. a hung weight: inertia and weight without stiffness.
        start_points : callable, optional
            ``start_points(points (n, 3) m) -> (n, 3) m``: where the nodes start, if not at rest, e.g. as a hand holds it. Places
            that ``fixed``, ``added_mass`` and markers are given are those at rest.
        self_contact : bool
            Whether it may have contact with itself, as a folded mat has. Off by default, since it costs detection.

        Raises
        ------
        InputError, MeshError, MaterialError
            Wrong values, mesh or material.
        """
        return building.add_soft(
            self, name, mesh, material, position, rotation, scale, velocity, angular_velocity, surface, fixed, load, law, element,
            added_mass, start_points, self_contact,
        )  # fmt: skip

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
        start, end : RodEnd, optional
            What holds or loads the first and the last of ``points``; default free. ``RodEnd(motion=...)`` drives a frame,
            ``RodEnd(on=...)`` fixes it to a body of the scene; links beside such an end that start within the contact radius of
            contact with that body never have contact with it.
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
            Contact shape: Box, Sphere, Capsule, Cylinder, Mesh, Revolved, Thread, or several of them as one,
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
            Viscous friction of each finger, and the range of its joint; outside it a stiff stop acts.
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
            Their speeds at the start. Default 0.
        velocity, angular_velocity : (3,) float, m/s and rad/s
            Of the centre of mass of a free base at the start, world.
        surface : str
            Surface name for friction, of all its links.
        self_contact : bool
            Whether its links have contact with each other: those that do not hang on one another, and that do not overlap at the
            start, which a note says. ``ignore_contact`` leaves out some of them.

        Raises
        ------
        InputError
            A file or description that is wrong (the message names file and element), or wrong values.
        """
        return robots.add_robot(
            self, robot, name, base, position, rotation, joints or {}, speeds or {}, velocity, angular_velocity, surface,
            self_contact,
        )  # fmt: skip

    def drive_joint(
        self,
        what: Handle | str,
        joint: str,
        motion: Callable[[float], float] | None = None,
        *,
        velocity: Callable[[float], float] | None = None,
        effort: Callable[[float], float] | None = None,
        stiffness: float | None = None,
        damping: float | None = None,
        max_effort: float | None = None,
    ) -> None:
        """Drive a joint of a robot that turns or slides; rad and N m, or m and N.

        Parameters
        ----------
        what : Handle or str
            The robot.
        joint : str
            Name of the joint.
        motion : callable, optional
            Target position ``motion(t)``, e.g. fs.Profile. It is followed exactly, whatever force that takes, or with a
            ``stiffness`` by a servo, which gives way.
        velocity : callable, optional
            Instead: target speed ``velocity(t)``, followed by a servo of ``damping``.
        effort : callable, optional
            ``effort(t)``, alone or added to what a servo exerts.
        stiffness, damping : float, optional
            Of the servo, N m/rad and N m s/rad (N/m and N s/m). Damping of a motion is critical by default, for the inertia that
            the joint moves at the start.
        max_effort : float, optional
            Largest sum of servo and effort. Default: that of the joint.

        Raises
        ------
        InputError
            No such robot or joint, wrong values, or no clear way to drive it.
        """
        robots.drive_joint(self, what, joint, motion, velocity, effort, stiffness, damping, max_effort)

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
        """Add a body of your own that answers what :class:`fs.Body` lists (CONTRIBUTING.md, "A body").

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

    def drive(
        self,
        what: Handle | str,
        motion: PoseFunction | None = None,
        *,
        fingers: bool | Sequence[str] = False,
        force: Callable[[float], float] | None = None,
        position: Callable[[float], float] | None = None,
        stiffness: float | Sequence[float] | None = None,
        damping: float | Sequence[float] | None = None,
        max_force: float | Sequence[float] = np.inf,
    ) -> None:
        """Drive a rigid body or the base of a gripper along a motion, or the fingers of a gripper.

        A motion is followed exactly, whatever that takes; with a ``stiffness`` it is followed as an arm with impedance control
        does, which gives way to contact.

        Parameters
        ----------
        what : Handle or str
            The body.
        motion : callable, optional
            ``motion(t) -> (displacement (3,) m, rotation vector (3,) rad)`` from the start pose, e.g. fs.Motion; the rotation is
            about the centre of mass of the base.
        fingers : bool or sequence of str
            True: all fingers of the gripper; or the names of some.
        force, position : callable, optional
            Closing force of the fingers (N), or their joint position (m, positive closing), which a servo follows; functions of
            time, e.g. fs.Profile.
        stiffness : float or sequence of float, optional
            Of the servo of ``position``, N/m, default 1e4. Of a motion: (N/m, N m/rad), or six along and about x, y, z of the
            world, 0 for an axis that is free; left out, the motion is followed exactly.
        damping : float or sequence of float, optional
            Of the servo, N s/m, default 100. Of a motion with stiffness: (N s/m, N m s/rad) or six; default critical for the
            mass of the body and its moments of inertia at the start.
        max_force : float or sequence of float
            Largest force of the servo or of a motion with stiffness, N; or (N, N m) with the largest torque of the latter.

        Raises
        ------
        InputError
            A body that cannot be driven, or not exactly one way to drive it.
        """
        functions = {"motion": motion, "force": force, "position": position}
        driving.check_drive(self, what, functions)
        if motion is None:
            driving.drive_fingers(self, what, fingers, force, position, stiffness, damping, max_force)
        elif stiffness is None:
            driving.drive_base(self, what, motion, fingers, damping, max_force)
        else:
            driving.drive_softly(self, what, motion, fingers, stiffness, damping, max_force)

    def hold(
        self,
        what: Handle | str,
        where: Callable[[np.ndarray], np.ndarray] | Sequence[int] | np.ndarray,
        motion: PoseFunction | None = None,
        *,
        on: Handle | str | None = None,
        name: str | None = None,
        stiffness: float | Sequence[float] | None = None,
        damping: float | Sequence[float] | None = None,
        max_force: float | Sequence[float] = np.inf,
    ) -> Handle:
        """Hold nodes of a soft body: they follow a rigid motion, as if glued to a robot's hand.

        They follow exactly, whatever that takes; with a ``stiffness`` a spring and a damper pull them, and they move together
        as if glued to a frame without mass. A body can be held at several places; nodes that only stand still are simpler as
        ``fixed`` of :meth:`add_soft`.

        Parameters
        ----------
        what : Handle or str
            The soft body.
        where : callable or sequence of int
            ``where(points (n, 3) m) -> (n,) bool`` of the nodes at the start, or node numbers.
        motion : callable, optional
            ``motion(t) -> (displacement (3,) m, rotation vector (3,) rad)`` from the start, about the mean of the held nodes.
        on : Handle or str, optional
            Instead of a motion: a driven rigid body or gripper with which the nodes go, as if glued to its base. Its ``mount``
            sensor then carries them too.
        name : str, optional
            Name for sensors; default "BODY.hold1", "BODY.hold2" ...
        stiffness : float or sequence of float, optional
            (N/m, N m/rad), or six along and about x, y, z of the world, 0 for an axis that is free. The spring acts where the
            motion has its origin: at the mean of the nodes, with ``on`` at the centre of the base. Needs three nodes that are
            not in one line.
        damping : float or sequence of float, optional
            (N s/m, N m s/rad) or six; default critical for the mass of the whole body and its moments of inertia about this
            origin at the start.
        max_force : float or sequence of float
            Largest force, N, or (N, N m) with the largest torque.

        Returns
        -------
        Handle
            For ``sensor(..., kind="mount")``: force and torque of the drive on the held nodes, about their mean.

        Raises
        ------
        InputError
            Wrong nodes, nodes that are held already, a body that is not driven (yet), not exactly one of motion and on, or
            values of a spring that cannot be.
        """
        return driving.hold(self, what, where, motion, on, name, stiffness, damping, max_force)

    def join(
        self,
        a: Handle | str,
        b: Handle | str,
        kind: JointKind = "weld",
        *,
        at: Vector,
        axis: Vector | None = None,
        limits: tuple[float, float] | None = None,
        friction: float = 0.0,
        breakable: float | Sequence[float] | None = None,
        where: Callable[[np.ndarray], np.ndarray] | None = None,
        contact: bool = False,
        name: str | None = None,
    ) -> Handle:
        """Join two bodies exactly: no spring gives way, and each step ends with the joint closed.

        Parameters
        ----------
        a : Handle or str
            The body that is joined, or a part of it: rigid, a link of a gripper or robot, soft, or a rod, at its
            nearest link.
        b : Handle or str
            What it is joined to: another one, an obstacle, or ``"world"``; two links of one robot close a loop. A driven body
            carries the joint along its motion.
        kind : {"weld", "hinge", "slider", "ball"}
            What is left free: nothing, turns about the axis, the way along the axis of ``b``, all turns. A weld of a soft body
            glues its nodes chosen by ``where``, each by itself; other joints of soft bodies hold a patch of their surface.
        at : (3,), m
            Place at the start, world.
        axis : (3,), optional
            Axis of a hinge or a slider at the start, world.
        limits : (float, float), rad or m, optional
            Range of a hinge or slider, counted from the start; exact stops without rebound.
        friction : float, N m or N
            Dry friction of a hinge or slider. Default none.
        breakable : float or (float, float), N and N m, optional
            Force, and torque, above which it breaks at the end of a step. Default never.
        where : callable, optional
            ``where(points (n, 3) m) -> (n,) bool``: nodes that a weld of a soft body glues, where it starts.
        contact : bool
            Whether the two parts may have contact with each other. Default not, until the joint breaks. What a weld holds has
            none in either case.
        name : str, optional
            Name for sensors; default "A.joint1", "A.joint2" ...

        Returns
        -------
        Handle
            For ``sensor(..., kind="reaction")``: what the joint exerts on ``a``.

        Raises
        ------
        InputError
            No such body, a kind that there is not, an axis that is missing or not needed, or values out of range.
        """
        return joining.join(self, a, b, kind, at, axis, limits, friction, breakable, where, contact, name)

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
        """Put a closed chamber of a soft body under pressure, which follows its walls (a follower load).

        Parameters
        ----------
        what : Handle or str
            The soft body.
        pressure : callable, optional
            ``pressure(t) -> Pa`` above that outside, e.g. fs.Profile; may be negative.
        volume : callable, optional
            Instead: ``volume(t) -> m^3`` of pumped fluid; the pressure follows. For some hundred nodes at most (docs/gripper.md).
        where : callable, int or (k, 3) array of int, optional
            Which chamber: ``where(points (n, 3) m) -> (n,) bool`` holds for all its nodes; its number by volume, 0 the largest;
            or the triangles of a closed surface, node numbers. Default: the only chamber of the body.
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
        return driving.pressurize(self, what, {"pressure": pressure, "volume": volume}, where, bulk, name)

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

        It is fixed at the last point; a motor on the body pulls it at the first.

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
        return driving.add_tendon(self, what, points, {"force": force, "pull": pull}, stiffness, name)

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
            Two bodies (or one twice, for contact with itself), or names of surfaces. What is said of two bodies comes before
            what is said of a body and a surface, and that before two surfaces; the last word on the same two counts.
        coefficient : float or (float, float), 1
            Coulomb coefficient, >= 0; or those along and across ``direction``, both > 0 (papers/001 eq. 12).
        direction : (3,), optional
            With two coefficients: direction of the first, in the frame of ``b``, a rigid body or an obstacle (world frame); its
            part in the tangent plane of a contact counts.

        Raises
        ------
        InputError
            Two coefficients without a direction or on a soft body, values out of range, or a name that means a body and the
            surface of others. Where a body and a surface are named, two of them may quarrel about a pair: then the run does not
            start, and says which.
        """
        driving.set_friction(self, a, b, coefficient, direction)

    def set_restitution(self, a: Handle | str, b: Handle | str, coefficient: float) -> None:
        """Set the share of the approach speed with which the contacts of a pair separate; 0 where nothing is said.

        Rigid bodies rebound by it. Soft bodies rebound by their elasticity: there it is about the nodes of their surface alone.
        With friction, several contacts at once and coefficients above zero, this law of Newton's can add energy.

        Parameters
        ----------
        a, b : Handle or str
            As in :meth:`set_friction`.
        coefficient : float, 1
            From 0 to 1.

        Raises
        ------
        InputError
            A value out of range, or a name that means a body and the surface of others.
        """
        driving.set_restitution(self, a, b, coefficient)

    def set_softness(self, a: Handle | str, b: Handle | str, softness: float) -> None:
        """Set how far each contact of a pair gives way to its normal force (papers/003: compliance); 0 where nothing is said.

        A contact that presses with the force f is c f deep, as if a spring of 1/c N/m were in it; friction stays Coulomb's. So
        a body on n contacts sinks by c m g / n: c is that of one contact, and a finer mesh has more of them. A soft contact
        rebounds by its elasticity, damped as by backward Euler.

        Parameters
        ----------
        a, b : Handle or str
            As in :meth:`set_friction`.
        softness : float, m/N
            Depth by normal force c, >= 0.

        Raises
        ------
        InputError
            A value out of range, or a name that means a body and the surface of others. A pair with a restitution beside it is
            refused when the run starts.
        """
        driving.set_softness(self, a, b, softness)

    def contact_group(self, name: str, members: Sequence[Handle | str]) -> str:
        """Give bodies or links a common name, for :meth:`ignore_contact`.

        Parameters
        ----------
        name : str
            Name of the group, none of a body or surface.
        members : sequence of Handle or str
            Bodies, links of a gripper ("gripper.left"), other groups; those added later do not belong to it.

        Returns
        -------
        str
            The name.

        Raises
        ------
        InputError
            A name that is taken, or a member that does not exist.
        """
        return pairs.contact_group(self, name, members)

    def ignore_contact(self, a: Handle | str, b: Handle | str | None = None) -> None:
        """Leave out the contact of a pair: they pass through each other, and no measure of depth speaks of it.

        Parameters
        ----------
        a, b : Handle or str
            Two bodies, links, obstacles, names of surfaces (all that have one) or of groups. The name of a robot means all its
            links; its base alone is named like the others, ``robot.base`` or what the file calls it. ``b`` left out: the members
            of the group or surface ``a`` have none with each other; of a body and itself see ``self_contact``.

        Raises
        ------
        InputError
            A name that nothing has, or one body alone.
        """
        pairs.ignore_contact(self, a, b)

    def contact_by_faces(self, *bodies: Handle | str, on: bool = True) -> None:
        """Let soft bodies and rods have contact with the corners, edges and faces of rigid parts, as they have with each other.

        Otherwise they have contact with shapes at their own nodes alone: the corner of a box sinks between the nodes of a coarse
        mesh, and a cable lies on an edge only where the centre of a link does. By default a free rigid body or obstacle made of
        `Box` and `Mesh` has it with those of whose surface elements or links it is less than one thick or less than four wide,
        the middle one of the extents of a shape, but where friction differs by direction.

        Parameters
        ----------
        *bodies : Handle or str
            Rigid bodies, obstacles, links of grippers and robots, surfaces or groups, made of `Box` and `Mesh`. Contact of rigid
            parts with each other stays what it is.
        on : bool
            Whether by faces; False: at the nodes alone, always.

        Raises
        ------
        InputError
            A name that nothing has, a body that deforms, or a shape that is round.
        """
        pairs.contact_by_faces(self, bodies, on=on)

    def sense_pairs(self) -> list[str]:
        """Add a sensor of kind "pair", named "A-B", for each pair of parts that may have contact.

        Call it when all bodies, drives and ignored pairs are there.

        Returns
        -------
        list of str
            Names of the sensors.
        """
        return pairs.sense_pairs(self)

    def sensor(
        self,
        name: str,
        on: Handle | str,
        *,
        kind: str = "contact",
        node: int | None = None,
        at: Vector | None = None,
        reading: Reading | None = None,
        partner: Handle | str | None = None,
        where: Callable[[np.ndarray], np.ndarray] | np.ndarray | None = None,
        reach: float | None = None,
    ) -> None:
        """Record a force/torque sensor, a marker or another quantity, one row per step.

        Parameters
        ----------
        name : str
            Column prefix in sensors.csv.
        on : Handle or str
            The part: a body, ``"gripper.left"``, an obstacle; or a joint of a robot, ``"arm.elbow"``, for the link on it.
        kind : str
            "contact" (default), "mount", "start", "end", "reaction", "chamber", "tendon", "joint", "revolute", "prismatic",
            "marker", "gap", "area", "slip", "pair" or "energy"; docs/outputs.md has a table of what each reads, with units, signs
            and points.
        node : int, optional
            Node of a marker on a soft body, or link of a marker on a rod.
        at : (3,), m, optional
            Instead of a node: place of a marker on a soft body at the start, world. It moves as if glued to the nearest element,
            also up to a few elements off the surface, as the ball of a motion capture system.
        reading : Reading, optional
            What an instrument shows of the wrench (frame, point, tool, filter, sampling, bias, noise), in further columns
            ``NAME_measured``.
        partner : Handle or str, optional
            Count contacts with this part, or those of this gripper, alone (contact, area, slip, pair); the other side of a gap.
        where : callable or array of int, optional
            Count contacts on a part of the surface alone (the same kinds): ``where(points (n, 3) m) -> (n,) bool`` on the
            surface at the start, world, or numbers of nodes or links. A contact of several nodes counts by their weights.
        reach : float, m, optional
            Largest gap that is reported. Default 0.01.

        Raises
        ------
        InputError
            Unknown part or kind, or a node or place that does not exist.
        """
        self.sensors.append(make_sensor(self, name, on, kind, node, at, reading, partner, where, reach))


def mesh_file(name: str) -> Path:
    """Path of a mesh: a file of your own, or one that comes with femsim.

    Parameters
    ----------
    name : str
        Path of a file, or the name of a file in ``data/meshes``, e.g. "ball_r30.vtu".

    Raises
    ------
    InputError
        No such file.
    """
    if Path(name).is_file():
        return Path(name)
    path = FILES / name
    if not path.is_file():
        known = sorted(p.name for p in FILES.iterdir())
        raise InputError(f"mesh file {name!r} is found neither here nor with femsim{did_you_mean(name, known)}")
    return path


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
