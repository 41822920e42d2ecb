"""Calls of a scene that move and join bodies; `driving`, `joint_driving` and `joining` do the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from femsim.base.errors import naming_all_parameters
from femsim.model.drives import PoseFunction
from femsim.model.joints import JointKind
from femsim.scene import driving, joining, joint_driving
from femsim.scene.checks import Handle, Vector
from femsim.scene.contents import SceneContents


@partial(naming_all_parameters, at_once=True)
class MotionCalls(SceneContents):
    """Calls of :class:`femsim.scene.scene.Scene` that move bodies, hold them and join them."""

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
            ``motion(t) -> (displacement (3,) m, rotation vector (3,) rad)`` from the start pose, e.g. fs.Motion: of the centre of
            mass of a body or of the base of a gripper and about it; of the frame of a robot's base, as ``add_robot`` places it.
        fingers : bool or sequence of str
            True: all fingers of the gripper; or the names of some.
        force, position : callable, optional
            Closing force of the fingers (N), or their joint position (m, positive closing), which a servo follows; functions of
            time, e.g. fs.Profile.
        stiffness : float or sequence of float, optional
            Of the servo of ``position``, N/m, default 1e4. Of a motion: (N/m, N m/rad), or six along and about x, y, z of the
            world, 0 for an axis that is free; left out, the motion is followed exactly. The spring turns the body the shorter way
            round, so a motion more than half a turn away pulls it to the other side; the verdict says so.
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
        """Drive a joint of a robot that turns or slides, or a sum of joints; rad and N m, or m and N.

        Parameters
        ----------
        what : Handle or str
            The robot.
        joint : str
            Name of the joint, or of a :class:`femsim.RobotSpring`, such as a tendon of an MJCF file: a motor beside the spring
            pulls its sum. It never follows a motion exactly.
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
        joint_driving.drive_joint(self, what, joint, motion, velocity, effort, stiffness, damping, max_effort)

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
        ``fixed`` of :meth:`femsim.Scene.add_soft`.

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
        bulk: float | None = None,
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
            Instead: ``volume(t) -> m^3`` of pumped fluid, up to 1000 times the chamber; the pressure follows. For some hundred
            nodes at most (docs/gripper.md).
        where : callable, int or (k, 3) array of int, optional
            Which chamber: ``where(points (n, 3) m) -> (n,) bool`` holds for all its nodes; its number by volume, 0 the largest;
            or the triangles of a closed surface, node numbers. Default: the only chamber of the body.
        bulk : float, Pa, optional
            How stiff the fluid of ``volume`` is: the pressure is bulk (volume - V) / V_rest, V the space in the chamber, V_rest
            that at rest. So it is the bulk modulus of a fluid that fills about V_rest; of n times as much give bulk / n. Default
            1e7; water has 2e9.
        name : str, optional
            Name for sensors; default "BODY.chamber1", "BODY.chamber2" ...

        Returns
        -------
        Handle
            For ``sensor(..., kind="chamber")``: pressure and volume.

        Raises
        ------
        InputError
            No soft body, no such chamber, one that is under pressure already, a surface that is not closed, not exactly one of
            pressure and volume, or bulk without volume. In a run: a pressure that is not finite, a volume of fluid out of range.
        """
        return driving.pressurize(self, what, {"pressure": pressure, "volume": volume}, where, bulk, name)

    def add_tendon(
        self,
        what: Handle | str,
        points: np.ndarray | Sequence[Vector] | Sequence[int],
        force: Callable[[float], float] | None = None,
        *,
        pull: Callable[[float], float] | None = None,
        stiffness: float | None = None,
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
        stiffness : float, N/m, optional
            Force per elongation of the cable, with ``pull``. Default 1e4.
        name : str, optional
            Name for sensors; default "BODY.tendon1", "BODY.tendon2" ...

        Returns
        -------
        Handle
            For ``sensor(..., kind="tendon")``: tension and length.

        Raises
        ------
        InputError
            No soft body, points outside it or in one place, not exactly one of force and pull, or stiffness without pull.
        """
        return driving.add_tendon(self, what, points, {"force": force, "pull": pull}, stiffness, name)
