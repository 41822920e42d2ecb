"""Descriptions of robots: links and joints by name, checked, and put in order as a tree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from contact import Plane, Shape
from femsim.base.arguments import shown
from femsim.base.errors import InputError, did_you_mean
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix
from femsim.model import robot_checks
from femsim.model.bodies.tree import TreeBody
from femsim.model.bodies.tree_joints import TreeJoint
from femsim.model.bodies.tree_kernels import FIXED, PRISMATIC, REVOLUTE, SPHERICAL, Tree
from femsim.model.joint_springs import JointSpring, RobotSpring, check_springs
from femsim.model.robot_checks import by_joint, limits_of, listed, mimic_of, number_of, numbers_of, rotation_matrix, three
from femsim.model.robot_paths import Following
from femsim.model.solids import Compound, Piece, mass_properties
from meshes import TriMesh

JointKind = Literal["fixed", "revolute", "continuous", "prismatic", "spherical", "universal", "planar", "floating"]
BaseKind = Literal["fixed", "free", "planar"]
Three = Sequence[float] | np.ndarray

_SIMPLE = {"fixed": FIXED, "revolute": REVOLUTE, "continuous": REVOLUTE, "prismatic": PRISMATIC, "spherical": SPHERICAL}
#: Kinds that have no limits, and what to do instead.
_ENDLESS = {
    "continuous": "leave them out, or let it be revolute, which has stops",
    "spherical": "joints of one coordinate have them. Leave them out, or use revolute joints about the axes",
    "planar": "joints of one coordinate have them. Leave them out, or use two prismatic joints and a revolute one",
    "floating": "joints of one coordinate have them. Leave them out, or use three prismatic joints and revolute ones",
}
#: What the arrays of a tree take from its links.
_PARTS = ("centre", "mass", "inertia")
#: How far the sum of two principal moments of inertia may fall short of the third, relative: files round them.
_TRIANGLE = 1e-2
#: Mass that the smallest joint direction must move, relative to the largest.
_SINGULAR = 1e-14
#: Length below which an axis or a quaternion is none.
_LEAST = 1e-9


@dataclass(frozen=True)
class RobotLink:
    """A rigid link of a robot.

    Parameters
    ----------
    name : str
        Its name.
    mass : float, kg
        Mass; 0 for one that is only a frame.
    centre : (3,) float, m
        Centre of mass in the frame of the link.
    inertia : (3, 3) float, kg m^2
        Inertia about the centre of mass, in the axes of the link.
    shapes : sequence of Piece
        What has contact, in the frame of the link.
    visuals : sequence of Piece or TriMesh
        What is drawn, in the same frame; without any the shapes are.
    """

    name: str
    mass: float = 0.0
    centre: Three = (0.0, 0.0, 0.0)
    inertia: Sequence[Sequence[float]] | np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    shapes: Sequence[Piece] = ()
    visuals: Sequence[Piece | TriMesh] = ()

    @classmethod
    def solid(cls, name: str, shape: Shape | Piece | Compound, mass: float) -> RobotLink:
        """Make a link of one homogeneous solid that has contact; centre and inertia follow from its shape."""
        try:
            whole = shape if isinstance(shape, Compound) else Compound([shape if isinstance(shape, Piece) else Piece(shape)])
        except InputError as error:
            raise InputError(f"link {name!r}: {error}") from None
        unit, centre, inertia = mass_properties(whole)
        if not math.isfinite(number_of(mass)):  # the robot refuses negative ones, with the name of its file
            raise InputError(f"link {name!r} has mass {mass!r} kg; allowed are numbers from 0.")
        return cls(name, mass, centre, inertia * (mass / unit), tuple(whole.pieces))


@dataclass(frozen=True)
class RobotJoint:
    """A joint of a robot.

    Parameters
    ----------
    name, parent, child : str
        Its name, and the links that it joins.
    kind : str
        "fixed", "revolute" (with limits), "continuous", "prismatic", "spherical", "universal" (about ``axis``, then ``axis2``),
        "planar" (slides square to ``axis``, turns about it) or "floating". A universal, planar or floating joint is made of
        joints of one coordinate, or of a spherical one, named by what is added to its name: "_1" and "_2"; "_x", "_y" and
        "_turn"; "_x", "_y", "_z" and "_turn". The quaternion of a spherical joint turns the child in the frame of the joint,
        which the parent carries; its speeds are the angular velocity of the child beside the parent in the axes of this frame,
        which do not turn along with the child (those of MuJoCo and Pinocchio do).
    position, rotation : (3,) float, m and rad
        Frame of the joint, and of the child at position zero, in that of the parent; a rotation vector, or a matrix (3, 3).
    axis, axis2 : (3,) float
        Its axis in this frame; normalised.
    limits : (float, float), rad or m
        Range of a revolute or prismatic joint, of both axes of a universal one. Default: none.
    max_effort : float, N m or N
        Most that a motor of it does. Default: no limit.
    max_speed : float, rad/s or m/s
        Speed that a motion which it follows may not exceed. Default: no limit.
    damping : float, N m s/rad or N s/m
        Viscous friction.
    friction : float, N m or N
        Dry friction: what the joint resists where it stands, at most, and where it moves; not of spherical and floating joints.
        ``joint_loss_J`` is what damping and dry friction take; ``work_J`` is less by it.
    rotor_inertia : float, kg m^2 or kg
        Inertia of the motor's rotor as the joint feels it, the square of the gear ratio included.
    mimic : (str, float, float), optional
        Joint that it follows, with factor and offset: position = factor times that of the other, plus offset (rad or m). The
        other may mimic one as well.
    """

    name: str
    parent: str
    child: str
    kind: JointKind = "revolute"
    position: Three = (0.0, 0.0, 0.0)
    rotation: Three = (0.0, 0.0, 0.0)
    axis: Three = (0.0, 0.0, 1.0)
    axis2: Three = (0.0, 1.0, 0.0)
    limits: tuple[float, float] = (-math.inf, math.inf)
    max_effort: float = math.inf
    max_speed: float = math.inf
    damping: float = 0.0
    rotor_inertia: float = 0.0
    mimic: tuple[str, float, float] | None = None
    friction: float = 0.0


def no_body_has(inertia: np.ndarray, mass: float) -> bool:
    """Whether principal moments of an inertia, (3, 3), kg m^2, are negative or one is more than the sum of the others."""
    moments = np.linalg.eigvalsh(inertia)
    rounding = 1e-9 * float(np.abs(inertia).max()) + 1e-12 * mass  # that of a point of this mass a micrometre away
    return bool(moments[0] < -rounding or moments[2] > (1.0 + _TRIANGLE) * (moments[0] + moments[1]) + rounding)


def common_range(joint: RobotJoint, joints: Sequence[RobotJoint]) -> tuple[float, float, list[str]]:
    """Range of a joint and of the ``joints`` that mimic it, rad or m, without those, named as well, that would leave it none."""
    low, high = (-math.inf, math.inf) if joint.kind == "continuous" else joint.limits
    hindering = []
    for other in joints:
        if other.mimic is not None and other.mimic[0] == joint.name and other.kind != "continuous":
            _, factor, offset = other.mimic
            ends = sorted((end - offset) / factor for end in other.limits)
            if max(low, ends[0]) < min(high, ends[1]):
                low, high = max(low, ends[0]), min(high, ends[1])
            else:
                hindering.append(other.name)
    return low, high, hindering


class Robot(Following):
    """A robot: links and joints that form a tree, checked.

    Parameters
    ----------
    name : str
        Name of the model.
    links : sequence of RobotLink
        Its links.
    joints : sequence of RobotJoint
        Its joints, in any order; each link but one is the child of one joint.
    source : str
        File that it was read from, for messages.
    notes : sequence of str
        What seems odd about it, in words.
    no_contact : sequence of (str, str)
        Pairs of its links that have no contact with each other, beside neighbours.
    springs : sequence of RobotSpring
        Springs on joints, or on sums of them.

    Attributes
    ----------
    root : str
        The link that is no child: the base.

    Raises
    ------
    InputError
        Names given twice, unknown links, loops, links that nothing holds, inertia that no body has, or wrong numbers.
    """

    def __init__(
        self,
        name: str,
        links: Sequence[RobotLink],
        joints: Sequence[RobotJoint] = (),
        *,
        source: str = "",
        notes: Sequence[str] = (),
        no_contact: Sequence[tuple[str, str]] = (),
        springs: Sequence[RobotSpring] = (),
    ) -> None:
        self.name, self.source, self.notes = name, source, list(notes)
        self._what = source or f"robot {name!r}"
        links, joints = listed(self._what, "links", links, (RobotLink,)), listed(self._what, "joints", joints, (RobotJoint,))
        for given in (name, *(link.name for link in links), *(joint.name for joint in joints)):
            if not isinstance(given, str):
                raise InputError(f"{self._what}: a robot, link or joint has the name {given!r}; allowed are texts.")
        robot_checks.check_names(self._what, [link.name for link in links], [joint.name for joint in joints])
        if not links:
            raise InputError(f"{self._what}: it has no link; give at least one.")
        for link in links:
            self._check_link(link)
        for joint in joints:
            self._check_joint(joint, [link.name for link in links])
        self.no_contact = self._pairs(no_contact, [link.name for link in links])
        self.given = tuple(joints)
        links, joints = _made_simple(links, joints)
        made = "; universal, planar and floating joints are made of some whose names begin with theirs"
        robot_checks.check_names(self._what, [link.name for link in links], [joint.name for joint in joints], made)
        self.links, self.joints, self.root = self._in_order(links, joints)
        self._check_mimics()
        self.joints = tuple(self._leading(joint) for joint in self.joints)
        self.springs = tuple(listed(self._what, "springs", springs, (RobotSpring,)))
        check_springs(self._what, self.springs, [one.name for one in self.joints if one.kind not in ("fixed", "spherical")])

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {len(self.links)} links, {self.mass:.4g} kg, joints {', '.join(self.joint_names())}>"

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        return float(sum(link.mass for link in self.links))

    def joint_names(self) -> list[str]:
        """Names of the joints that have coordinates of their own."""
        return [joint.name for joint in self.joints if joint.kind != "fixed" and joint.mimic is None]

    # ---- checks

    def _pairs(self, given: Sequence[tuple[str, str]], links: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Check pairs of names of links."""
        for pair in given:
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise InputError(f"{self._what}: no_contact holds {pair!r}; give pairs of links, such as ('thigh', 'trunk').")
            for name in pair:
                if name not in links:
                    raise InputError(f"{self._what}: no_contact names link {name!r}, which it has not{did_you_mean(name, links)}")
        return tuple((first, second) for first, second in given)

    def _check_link(self, link: RobotLink) -> None:
        what = f"{self._what}: link {link.name!r}"
        inertia, centre = numbers_of(link.inertia), numbers_of(link.centre)
        if not 0.0 <= number_of(link.mass) < math.inf:
            raise InputError(f"{what} has mass {link.mass!r} kg; allowed are numbers from 0.")
        if inertia.shape != (3, 3) or centre.shape != (3,) or not (np.isfinite(inertia).all() and np.isfinite(centre).all()):
            raise InputError(
                f"{what} has inertia {shown(link.inertia)} and centre {shown(link.centre)}; allowed are finite (3, 3) and (3,)."
            )
        size = float(np.abs(inertia).max())
        if not np.allclose(inertia, inertia.T, rtol=0.0, atol=1e-9 * size):
            raise InputError(f"{what} has an inertia that is not symmetric; give ixy for both ixy and iyx.")
        if no_body_has(inertia, link.mass):
            moments = ", ".join(f"{m:.4g}" for m in np.linalg.eigvalsh(inertia))
            raise InputError(
                f"{what} has principal moments of inertia {moments} kg m^2, which no body has: each is positive and at most the "
                "sum of the other two; compute them about the centre of mass, in kg m^2, or load the file with "
                "balance_inertia=True, which takes those of a ball instead."
            )
        if link.mass == 0.0 and size > 0.0:
            raise InputError(
                f"{what} has inertia but no mass; give it a mass, or no inertia, or load the file with balance_inertia=True, "
                "which leaves it out."
            )
        listed(what, "visuals", link.visuals, (Piece, TriMesh))
        for piece in listed(what, "shapes", link.shapes, (Piece,)):
            if isinstance(piece.shape, Plane):
                raise InputError(f"{what} has a Plane as shape; use a Box or another solid shape.")

    def _check_joint(self, joint: RobotJoint, links: Sequence[str]) -> None:
        what = f"{self._what}: joint {joint.name!r}"
        if joint.kind not in get_args(JointKind):
            raise InputError(f"{what} has type {joint.kind!r}; allowed are {', '.join(get_args(JointKind))}.")
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                raise InputError(f"{what} has the {role} {link!r}, which is no link{did_you_mean(link, links)}")
        for role, axis in (("axis", joint.axis), ("axis2", joint.axis2)):
            a = numbers_of(axis)
            if a.shape != (3,) or not _LEAST < math.hypot(*a) < math.inf:
                raise InputError(
                    f"{what} has {role} {a.tolist() if a.size else axis!r}; allowed are three numbers, not all zero."
                )
        three(f"{what} has the position", joint.position, "m")
        rotation_matrix(what, joint.rotation)
        if limits_of(what, joint.limits) != (-math.inf, math.inf) and joint.kind in _ENDLESS:
            raise InputError(f"{what} is {joint.kind} and has limits {joint.limits}; {_ENDLESS[joint.kind]}.")
        for role, value in (("damping", joint.damping), ("friction", joint.friction), ("rotor_inertia", joint.rotor_inertia)):
            if not 0.0 <= number_of(value) < math.inf:
                raise InputError(f"{what} has {role} {value!r}; allowed are numbers from 0.")
        if joint.friction > 0.0 and joint.kind in ("spherical", "floating", "fixed"):
            raise InputError(
                f"{what} is {joint.kind} and has friction; joints of one coordinate have it. Give it damping instead."
            )
        for role, value in (("max_effort", joint.max_effort), ("max_speed", joint.max_speed)):
            if not number_of(value) > 0.0:
                raise InputError(f"{what} has {role} {value!r}; allowed are positive numbers, or math.inf for no limit.")
        if joint.mimic is not None:
            mimic_of(what, joint.mimic)

    def _in_order(
        self, links: Sequence[RobotLink], joints: Sequence[RobotJoint]
    ) -> tuple[tuple[RobotLink, ...], tuple[RobotJoint, ...], str]:
        """Links with parents first, the joint above each but the first, and the name of the first."""
        above: dict[str, RobotJoint] = {}
        for joint in joints:
            if joint.child in above:
                raise InputError(
                    f"{self._what}: link {joint.child!r} is the child of joints {above[joint.child].name!r} and {joint.name!r}; "
                    "a tree has no loops, so take one of them away."
                )
            above[joint.child] = joint
        roots = [link.name for link in links if link.name not in above]
        if not roots:
            raise InputError(f"{self._what}: its joints form a cycle without a base; one link must be no child of any joint.")
        if len(roots) > 1:
            raise InputError(
                f"{self._what}: links {roots[0]!r} and {roots[1]!r} are no child of any joint; only the base may be."
            )
        by_name = {link.name: link for link in links}
        below: dict[str, list[RobotJoint]] = {}
        for joint in joints:
            below.setdefault(joint.parent, []).append(joint)
        ordered, chosen, waiting = [by_name[roots[0]]], [], [roots[0]]
        while waiting:
            for joint in below.get(waiting.pop(0), ()):
                ordered.append(by_name[joint.child])
                chosen.append(joint)
                waiting.append(joint.child)
        if len(ordered) < len(links):
            lost = next(link.name for link in links if link.name not in {one.name for one in ordered})
            raise InputError(
                f"{self._what}: link {lost!r} is part of a cycle of joints; a tree has none, so take one joint away."
            )
        return tuple(ordered), tuple(chosen), roots[0]

    def _check_mimics(self) -> None:
        by_name = {joint.name: joint for joint in self.joints}
        for joint in self.joints:
            if joint.mimic is None:
                continue
            what = f"{self._what}: joint {joint.name!r}"
            other, factor, offset = mimic_of(what, joint.mimic)
            if other not in by_name:
                raise InputError(f"{what} mimics {other!r}, which is no joint{did_you_mean(other, by_name)}")
            lead = by_name[other]
            if lead.kind in ("fixed", "spherical") or joint.kind in ("fixed", "spherical"):
                raise InputError(f"{what} mimics {other!r}; both must turn or slide.")
            if not (np.isfinite(factor) and factor != 0.0 and np.isfinite(offset)):
                raise InputError(f"{what} mimics {other!r} with factor {factor!r} and offset {offset!r}; the factor is not zero.")

    def _leading(self, joint: RobotJoint) -> RobotJoint:
        """Joint that mimics one with a coordinate of its own, where the one that it mimics does mimic another."""
        by_name, passed = {one.name: one for one in self.joints}, [joint.name]
        while joint.mimic is not None and (lead := by_name[joint.mimic[0]]).mimic is not None:
            passed.append(lead.name)
            if lead.name in passed[:-1]:
                chain = ", which mimics ".join(repr(name) for name in passed[1:])
                raise InputError(f"{self._what}: joint {passed[0]!r} mimics {chain}; one of them must turn or slide on its own.")
            (_, factor, offset), (other, ratio, beyond) = joint.mimic, lead.mimic
            joint = replace(joint, mimic=(other, factor * ratio, factor * beyond + offset))
        return joint

    def _range(self, joint: RobotJoint) -> tuple[float, float]:
        """Range of a joint, rad or m, in which those that mimic it keep to theirs as well."""
        low, high, hindering = common_range(joint, self.joints)
        if hindering:
            raise InputError(
                f"{self._what}: joint {joint.name!r} has no range in which {hindering[0]!r}, which mimics it, keeps to its "
                "limits; correct these, or factor and offset."
            )
        return low, high

    def _mimics(self, joint: RobotJoint) -> list[tuple[RobotJoint, float]]:
        """Joints that mimic one, with the sizes of their factors."""
        return [(own, abs(own.mimic[1])) for own in self.joints if own.mimic is not None and own.mimic[0] == joint.name]

    def _moving(self, joint: RobotJoint, link: int, row: int, coordinate: int) -> TreeJoint:
        """Joint with coordinates of its own: friction, damping, speed are those of all that moves with it, as it feels them."""
        limits = (-math.inf, math.inf) if joint.kind == "spherical" else self._range(joint)
        damping, friction, speed = joint.damping, joint.friction, joint.max_speed
        for other, factor in self._mimics(joint):
            damping += factor**2 * other.damping
            friction += factor * other.friction
            speed = min(speed, other.max_speed / factor)
        return TreeJoint(joint.name, link, row, coordinate, limits, damping, joint.max_effort, friction, speed)

    # ---- the body

    def on_plane(self) -> Robot:
        """Return the same robot on a base that slides in the plane z = 0 of a further link, "ground", and turns about z."""
        links, joints = [link.name for link in self.links], [joint.name for joint in self.joints]
        taken = [f"link {name!r}" for name in ("ground", "base_x", "base_y") if name in links]
        taken += [f"joint {name!r}" for name in ("base", "base_x", "base_y", "base_turn") if name in joints]
        if taken:
            raise InputError(
                f"{self._what}: a planar base is made of links and joints of its own, and the robot has {' and '.join(taken)} "
                "already; rename that of the robot."
            )
        ground = RobotLink("ground")
        joint = RobotJoint("base", "ground", self.root, "planar")
        all_links, all_joints = [ground, *self.links], [joint, *self.joints]
        return Robot(
            self.name, all_links, all_joints, source=self.source, notes=self.notes, no_contact=self.no_contact,
            springs=self.springs,
        )  # fmt: skip

    def body(
        self,
        name: str,
        position: np.ndarray,
        quaternion: np.ndarray,
        joints: Mapping[str, float | Sequence[float]],
        speeds: Mapping[str, float | Sequence[float]],
        velocity: np.ndarray | None = None,
        angular_velocity: np.ndarray | None = None,
    ) -> TreeBody:
        """Make the body of a scene.

        Parameters
        ----------
        name : str
            Its name.
        position, quaternion : ndarray, (3,) and (4,), m
            Pose of the frame of the base at the start.
        joints : dict of str to float or (4,) float, rad or m
            Positions of joints at the start, quaternions of spherical ones; 0 (or the end of the range next to it) by default.
        speeds : dict of str to float or (3,) float, rad/s or m/s
            Their speeds at the start; 0 by default. Of spherical joints in the axes of the joint on its parent.
        velocity, angular_velocity : ndarray, (3,), m/s and rad/s, optional
            Of the base's centre of mass at the start, world.

        Raises
        ------
        InputError
            Unknown joints, positions out of range, or a joint that moves no mass.
        """
        tree, moving = self._tree()
        known = [joint.name for joint in moving]
        for role, values in (("joints", joints), ("speeds", speeds)):
            by_joint(f"robot {name}", role, values, known)
        for given in (*joints, *speeds):
            if given not in known:
                mimics = {one.name: one.mimic for one in self.joints}
                raise InputError(f"robot {name}: joint {given!r} {robot_checks.unset(given, mimics, known)}")
        q, v = np.zeros(_count(tree.coordinate, tree.kind, 7, 4)), np.zeros(_count(tree.row, tree.kind, 6, 3))
        rotation = quaternion_to_matrix(quaternion)
        q[:3], q[3:7] = position + rotation @ tree.centre[0], quaternion
        for joint in moving:
            speed, said = speeds.get(joint.name, 0.0), f"robot {name}: joint {joint.name!r}"
            if tree.kind[joint.link] == SPHERICAL:
                q[joint.coordinate : joint.coordinate + 4] = _quaternion(name, joint.name, joints.get(joint.name, (1.0, 0, 0, 0)))
                v[joint.row : joint.row + 3] = three(f"{said} has the speed", speeds.get(joint.name, np.zeros(3)), "rad/s")
                continue
            low, high = joint.limits
            start = joints.get(joint.name, min(max(0.0, low), high))
            at, v[joint.row] = number_of(start), number_of(speed)
            if not np.isfinite(at):
                raise InputError(f"{said} starts at {start!r}; allowed is a finite number, {_unit_of(tree, joint)}.")
            if not low <= at <= high:
                raise InputError(robot_checks.out_of_range(said, at, low, high, _unit_of(tree, joint)))
            if not np.isfinite(v[joint.row]):
                raise InputError(f"{said} has the speed {speed!r}; allowed is a finite number, {_unit_of(tree, joint)}/s.")
            q[joint.coordinate] = at
        v[:3], v[3:6] = (
            np.zeros(3) if velocity is None else velocity,
            np.zeros(3) if angular_velocity is None else angular_velocity,
        )
        above = ["", *(joint.name for joint in self.joints)]
        body = TreeBody(name, tree, [link.name for link in self.links], above, moving, q, v)
        self._check_mass(body, q)
        return body

    def inverse_dynamics(
        self,
        joints: Mapping[str, float],
        speeds: Mapping[str, float] | None = None,
        rates: Mapping[str, float] | None = None,
        *,
        rotation: Three = (0.0, 0.0, 0.0),
        gravity: Three = (0.0, 0.0, -9.81),
    ) -> dict[str, float]:
        """Efforts of the motors that give the robot these accelerations on a fixed base; without speeds, those that hold it.

        Parameters
        ----------
        joints, speeds, rates : dict of str to float
            Positions (rad or m), speeds and accelerations of the joints of one coordinate by name; 0 where nothing is said.
        rotation : (3,) float, rad
            Rotation vector of the base.
        gravity : (3,) float, m/s^2
            Acceleration of gravity.

        Returns
        -------
        dict of str to float, N m or N
            Effort of each joint of one coordinate, what damping and springs take included, and dry friction where it moves.

        Raises
        ------
        InputError
            Unknown joints or positions out of range.
        """
        what = f"inverse_dynamics of {self.name}"
        turn = quaternion_from_vector(three(f"{what}: rotation is", rotation, "rad"))
        body = self.body(self.name, np.zeros(3), turn, joints, {} if speeds is None else speeds)
        rate, known = np.zeros(body.n_v), body.joint_names()
        for name, value in by_joint(what, "rates", {} if rates is None else rates, known).items():
            if name not in known:
                raise InputError(f"{what}: rates names {name!r}, no joint of one coordinate{did_you_mean(str(name), known)}")
            rate[body.joint(name).row] = own_rate = number_of(value)
            if not np.isfinite(own_rate):
                raise InputError(f"{what}: the rate of joint {name!r} is {value!r}; allowed is a finite number.")
        v = body.initial_v()
        efforts = body.inverse_dynamics(body.initial_q(), v, rate, three(f"{what}: gravity is", gravity, "m/s^2"))
        for spring in self.springs:
            rows, pulls = JointSpring(body, 0, spring).efforts(body.initial_q(), v)
            efforts[rows] -= pulls
        own = {name: body.joint(name) for name in body.joint_names()}
        taken = {name: joint.damping * v[joint.row] + joint.friction * np.sign(v[joint.row]) for name, joint in own.items()}
        return {name: float(efforts[joint.row] + taken[name]) for name, joint in own.items()}

    def _check_mass(self, body: TreeBody, q: np.ndarray) -> None:
        """Refuse joints that move nothing that has mass."""
        M = body.mass_matrix(q)
        if not body.mass > 0.0:
            raise InputError(f"{self._what}: none of its links has mass; give them inertia.")
        for joint in body.joints:
            own = M[joint.row : joint.row + (3 if body.tree.kind[joint.link] == SPHERICAL else 1), joint.row :]
            own = own[:, : len(own)]
            if not np.linalg.eigvalsh(own)[0] > _SINGULAR * float(np.abs(np.diag(M)).max()):
                raise InputError(
                    f"{self._what}: joint {joint.name!r} moves nothing that has inertia; give its links mass and inertia, or the "
                    "joint rotor_inertia."
                )

    def _tree(self) -> tuple[Tree, list[TreeJoint]]:
        """Arrays of the links in order, and the joints that have coordinates of their own."""
        n, number = len(self.links), {link.name: k for k, link in enumerate(self.links)}
        by_name, moving = {joint.name: k for k, joint in enumerate(self.joints)}, []
        parent, kind = np.full(n, -1), np.zeros(n, dtype=np.int64)
        row, coordinate, leads = np.full(n, -1), np.full(n, -1), np.zeros(n, dtype=np.bool_)
        ratio, offset = np.ones(n), np.zeros(n)
        place, turn, axis = np.zeros((n, 3)), np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3))
        rotor: list[float] = [0.0] * 6
        next_coordinate = 7
        for k, joint in enumerate(self.joints, 1):
            parent[k], kind[k] = number[joint.parent], _SIMPLE[joint.kind]
            place[k], turn[k], axis[k] = (
                np.asarray(joint.position, dtype=np.float64),
                rotation_matrix(joint.name, joint.rotation),
                _unit(joint.axis),
            )
            if joint.kind == "fixed" or joint.mimic is not None:
                continue
            columns = 3 if joint.kind == "spherical" else 1
            row[k], coordinate[k], leads[k] = len(rotor), next_coordinate, True
            moving.append(self._moving(joint, k, len(rotor), next_coordinate))
            more = sum(factor**2 * other.rotor_inertia for other, factor in self._mimics(joint))
            rotor += [joint.rotor_inertia + more] * columns
            next_coordinate += 4 if columns == 3 else 1
        for k, joint in enumerate(self.joints, 1):
            if joint.mimic is not None:
                lead = 1 + by_name[joint.mimic[0]]
                row[k], coordinate[k], ratio[k], offset[k] = row[lead], coordinate[lead], joint.mimic[1], joint.mimic[2]
        centre, mass, inertia = (np.array([getattr(link, part) for link in self.links], dtype=np.float64) for part in _PARTS)
        return Tree(
            parent.astype(np.int64), kind, row.astype(np.int64), coordinate.astype(np.int64), leads, ratio, offset, place, turn,
            axis, centre, mass, inertia, np.array(rotor),
        ), moving  # fmt: skip


def _count(first: np.ndarray, kind: np.ndarray, base: int, spherical: int) -> int:
    """Length of q or v, by the first entry of each joint."""
    return max([base, *(int(f) + (spherical if k == SPHERICAL else 1) for f, k in zip(first, kind, strict=True) if f >= 0)])


def _quaternion(robot: str, joint: str, value: float | Sequence[float]) -> np.ndarray:
    q = numbers_of(value)
    if q.shape != (4,) or not _LEAST < math.hypot(*q) < math.inf:
        raise InputError(f"robot {robot}: spherical joint {joint!r} starts at {value!r}; allowed is a quaternion (w, x, y, z).")
    return np.asarray(q / math.hypot(*q))


def _unit_of(tree: Tree, joint: TreeJoint) -> str:
    """Return the unit of the position of a joint of one coordinate."""
    return "m" if tree.kind[joint.link] == PRISMATIC else "rad"


def _unit(axis: Three) -> np.ndarray:
    a = np.asarray(axis, dtype=np.float64)
    return np.asarray(a / math.hypot(*a))


def _made_simple(links: Sequence[RobotLink], joints: Sequence[RobotJoint]) -> tuple[list[RobotLink], list[RobotJoint]]:
    """Replace universal, planar and floating joints by chains of simple ones with links without mass between."""
    links, out = list(links), []
    for joint in joints:
        axis = _unit(joint.axis)
        if joint.kind == "universal":
            chain: list[tuple[str, JointKind, np.ndarray]] = [("1", "revolute", axis), ("2", "revolute", _unit(joint.axis2))]
        elif joint.kind == "planar":
            first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
            first = np.array([1.0, 0.0, 0.0]) if axis[2] == 1.0 else first / np.linalg.norm(first)
            chain = [("x", "prismatic", first), ("y", "prismatic", np.cross(axis, first)), ("turn", "revolute", axis)]
        elif joint.kind == "floating":
            chain = [(c, "prismatic", e) for c, e in zip("xyz", np.eye(3), strict=True)]
            chain.append(("turn", "spherical", axis))
        else:
            out.append(joint)
            continue
        above = joint.parent
        for k, (end, kind, own) in enumerate(chain):
            last = k == len(chain) - 1
            child = joint.child if last else f"{joint.name}_{end}"
            if not last:
                links.append(RobotLink(child))
            place, turn = (joint.position, joint.rotation) if k == 0 else (np.zeros(3), np.zeros(3))
            limits = joint.limits if joint.kind == "universal" else (-math.inf, math.inf)
            out.append(
                replace(
                    joint, name=f"{joint.name}_{end}", parent=above, child=child, kind=kind, position=place, rotation=turn,
                    axis=own, limits=limits,
                )
            )  # fmt: skip
            above = child
    return links, out
