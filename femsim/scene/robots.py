"""Robots of a scene: the work behind ``Scene.add_robot``, which says what each parameter is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from contact import Shape
from femsim.base.errors import InputError
from femsim.base.rotations import quaternion_from_vector
from femsim.model.bodies import kinds
from femsim.model.bodies.body import Body
from femsim.model.bodies.tree import TreeBody
from femsim.model.bodies.tree_joints import TreeJoint
from femsim.model.commands import MOTION, FrameMotion
from femsim.model.drives import PoseFunction, at_rest
from femsim.model.joint_friction import JointFriction
from femsim.model.joint_springs import JointSpring
from femsim.model.parts import Part
from femsim.model.robots import BaseKind, Robot, RobotLink
from femsim.model.solids import Piece, visual
from femsim.scene.checks import Handle, Vector, name_of, vector
from femsim.scene.contents import SceneContents
from femsim.scene.own_contact import add_own_contact
from femsim.scene.plausible import notes_on_limits
from meshes import TriMesh, make_trimesh, sphere_triangles

_BASES = ("fixed", "free", "planar")
#: Radius of the ball that stands for a link without a shape in frames, m.
_DOT = 0.002
#: Least eigenvalue of the mass matrix, its diagonal being 1, of a base that can fly: that of rounding is below.
_MASSLESS = 1e-12
#: Joints take part in a motion that moves no mass where they have this part of it.
_TAKES_PART = 0.1


def add_robot(
    scene: SceneContents,
    robot: Robot | str | Path,
    name: str | None,
    base: BaseKind,
    position: Vector,
    rotation: Vector,
    joints: Mapping[str, float | Sequence[float]],
    speeds: Mapping[str, float | Sequence[float]],
    velocity: Vector,
    angular_velocity: Vector,
    surface: str,
    self_contact: bool,
    tree: str | None,
) -> Handle:
    """Add a robot, see :meth:`femsim.scene.scene.Scene.add_robot`."""
    if not isinstance(robot, Robot | str | Path):
        raise InputError(f"robot is {robot!r}; give an fs.Robot, or the name or path of a URDF or MJCF file.")
    if not isinstance(robot, Robot):
        from femsim.model.urdf import load_robot  # with what it needs of SciPy a tenth of a start, for few scenes

        robot = load_robot(robot, tree=tree)
    elif tree is not None:
        raise InputError(f"tree is {tree!r}, and robot an fs.Robot; give tree to load_robot, which reads it.")
    name = robot.name if name is None else name
    scene.check_name(name)
    if base not in _BASES:
        raise InputError(f"base of robot {name} is {base!r}; allowed are {', '.join(map(repr, _BASES))}.")
    moves = vector(f"velocity of {name}", velocity), vector(f"angular_velocity of {name}", angular_velocity)
    if base != "free" and (moves[0].any() or moves[1].any()):
        raise InputError(f"robot {name}: velocity and angular_velocity are those of a free base; this one is {base}.")
    if base == "planar":
        robot = robot.on_plane()
    body = robot.body(
        name, vector(f"position of {name}", position), quaternion_from_vector(vector(f"rotation of {name}", rotation)), joints,
        speeds, *moves,
    )  # fmt: skip
    if base == "free":
        _check_base(name, robot.root, body.joints, body.mass_matrix(body.initial_q()))
    index, first, parts = len(scene.bodies), len(scene.parts), []
    for k, link in enumerate(robot.links):
        label = name if k == 0 else f"{name}.{link.name}"
        if k > 0:
            scene.check_name(label)
        parts.append(Part(label, index, k, surface, _shapes(link), _drawn(link)))
    scene.bodies.append(body)
    scene.parts += parts
    # the name of the robot alone means all its links where contact is ignored
    scene.groups[f"{name}.{robot.links[0].name}"] = (first,)
    if self_contact:
        add_own_contact(scene, body, first, robot.no_contact)
    if any(joint.friction > 0.0 for joint in body.joints):
        scene.couplings.append(JointFriction(body, index))
    scene.couplings += [JointSpring(body, index, spring) for spring in robot.springs]
    scene.notes += robot.notes
    for joint in robot.given:
        if joint.kind == "revolute":
            scene.notes += notes_on_limits(f"joint {name}.{joint.name}", joint.limits)
    if base != "free":
        scene.motions[index] = base_motion(body, scene.command(name, at_rest, *MOTION, led=True))
    return Handle(name, tuple(part.name for part in parts))


def base_motion(body: Body, motion: PoseFunction) -> PoseFunction:
    """Motion of the centre of mass of a base; what a robot is given is that of the frame of its base."""
    tree, start = kinds.robot(body), body.initial_q()
    if tree is None:
        return motion
    arm = start[:3] - tree.frame_pose(start, 0)[1]
    return FrameMotion(motion, arm) if arm.any() else motion


def stands(scene: SceneContents, robot: str) -> bool:
    """Whether the base of a robot stands as ``add_robot`` placed it, and no motion was given for it yet."""
    return scene.commands[robot].given is at_rest


def _check_base(name: str, base: str, joints: Sequence[TreeJoint], M: np.ndarray) -> None:
    """Refuse a free base that joints can leave where it is, whatever pushes it, and joints that undo each other without mass."""
    size = 1.0 / np.sqrt(np.maximum(np.diag(M), np.finfo(np.float64).tiny))
    values, ways = np.linalg.eigh(size[:, None] * M * size)
    if values[0] > _MASSLESS:
        return
    way = np.abs(ways[:, 0])
    if way[:6].max() > _TAKES_PART:
        raise InputError(
            f"robot {name}: its base {base!r} has no mass or inertia of its own, and a joint on it; give it inertia, or say "
            "base='fixed'."
        )
    own = {joint.name: way[joint.row] for joint in joints}
    undone = " and ".join(repr(joint) for joint, part in own.items() if part > _TAKES_PART)
    raise InputError(
        f"robot {name}: where it starts, joints {undone} can turn or slide against each other without moving any mass; give the "
        "links on them inertia, or let them start elsewhere (joints=)."
    )


def _shapes(link: RobotLink) -> list[tuple[Shape, np.ndarray, np.ndarray]]:
    """Shapes of a link and their poses about its centre of mass."""
    centre = np.asarray(link.centre, dtype=np.float64)
    return [(piece.shape, turn, place - centre) for piece in link.shapes for turn, place in [piece.pose]]


def _drawn(link: RobotLink) -> TriMesh:
    """Triangles of a link about its centre of mass; a dot at its frame where it has no shape."""
    centre = np.asarray(link.centre, dtype=np.float64)
    drawn = [visual(one.shape, *reversed(one.pose)) if isinstance(one, Piece) else one for one in (link.visuals or link.shapes)]
    if drawn:
        first = np.cumsum([0, *(len(one.points) for one in drawn)])
        triangles = np.concatenate([one.triangles + start for one, start in zip(drawn, first, strict=False)])
        points = np.concatenate([one.points for one in drawn])
        return make_trimesh(points - centre, triangles, name=link.name, source="")
    dot = sphere_triangles(_DOT)
    return make_trimesh(dot.points - centre, dot.triangles, name=link.name, source="")


def robot_of(scene: SceneContents, call: str, what: Handle | str) -> TreeBody:
    """Look up a robot of a scene.

    Raises
    ------
    InputError
        No such body, or one that is no robot.
    """
    body = scene.body(name_of(what))
    found = kinds.robot(body)
    if found is None:
        raise InputError(f"{call}: {body.name!r} is a {body.what}, no robot; add one by add_robot.")
    return found
