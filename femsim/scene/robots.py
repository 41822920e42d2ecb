"""Robots of a scene: the work behind ``Scene.add_robot`` and ``Scene.drive_joint``, which say what each parameter is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from contact import Shape
from femsim.base.errors import InputError, did_you_mean
from femsim.base.rotations import quaternion_from_vector
from femsim.model.bodies import kinds
from femsim.model.bodies.body import Body
from femsim.model.bodies.tree import TreeBody
from femsim.model.bodies.tree_kernels import FIXED
from femsim.model.commands import MOTION, FrameMotion
from femsim.model.drives import PoseFunction, Profile
from femsim.model.joint_friction import JointFriction
from femsim.model.parts import Part
from femsim.model.robots import BaseKind, Robot, RobotLink
from femsim.model.solids import Piece, visual
from femsim.model.urdf import load_robot
from femsim.scene.checks import Handle, Vector, function_of_time, name_of, positive, vector
from femsim.scene.contents import SceneContents
from femsim.scene.own_contact import add_own_contact
from femsim.scene.plausible import notes_on_joint_jump, notes_on_joint_speed, notes_on_joint_start, notes_on_joint_velocity
from meshes import TriMesh, make_trimesh, sphere_triangles

_BASES = ("fixed", "free", "planar")
#: Radius of the ball that stands for a link without a shape in frames, m.
_DOT = 0.002
#: How far from its start a joint that follows a motion exactly may be at time zero, rad or m.
_JUMP = 1e-6
#: Time after which a motion shows how fast it begins, s.
_SOON = 1e-6
#: Least eigenvalue of the mass matrix, its diagonal being 1, of a base that can fly: that of rounding is below.
_MASSLESS = 1e-12


def _still(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Motion of a base that stands where it is."""
    return np.zeros(3), np.zeros(3)


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
) -> Handle:
    """Add a robot, see :meth:`femsim.scene.scene.Scene.add_robot`."""
    if not isinstance(robot, Robot | str | Path):
        raise InputError(f"robot is {robot!r}; give an fs.Robot, or the name or path of a URDF or MJCF file.")
    if not isinstance(robot, Robot):
        robot = load_robot(robot)
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
        _check_base(name, robot.root, body.mass_matrix(body.initial_q()))
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
    scene.notes += robot.notes
    if base != "free":
        scene.motions[index] = base_motion(body, scene.command(name, _still, *MOTION))
    return Handle(name, tuple(part.name for part in parts))


def base_motion(body: Body, motion: PoseFunction) -> PoseFunction:
    """Motion of the centre of mass of a base; what a robot is given is that of the frame of its base."""
    tree, start = kinds.robot(body), body.initial_q()
    if tree is None:
        return motion
    arm = start[:3] - tree.frame_pose(start, 0)[1]
    return FrameMotion(motion, arm) if arm.any() else motion


def _check_base(name: str, base: str, M: np.ndarray) -> None:
    """Refuse a free base that joints can leave where it is, whatever pushes it: one without mass of its own."""
    size = 1.0 / np.sqrt(np.maximum(np.diag(M), np.finfo(np.float64).tiny))
    if not np.linalg.eigvalsh(size[:, None] * M * size)[0] > _MASSLESS:
        raise InputError(
            f"robot {name}: its base {base!r} has no mass or inertia of its own, and a joint on it; give it inertia, or say "
            "base='fixed'."
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


def drive_joint(
    scene: SceneContents,
    what: Handle | str,
    joint: str,
    motion: Callable[[float], float] | None,
    velocity: Callable[[float], float] | None,
    effort: Callable[[float], float] | None,
    stiffness: float | None,
    damping: float | None,
    max_effort: float | None,
) -> None:
    """Drive a joint of a robot, see :meth:`femsim.scene.scene.Scene.drive_joint`."""
    body = robot_of(scene, "drive_joint", what)
    names = body.joint_names()
    if joint not in names:
        raise InputError(f"drive_joint of {body.name}: joint {joint!r} {_undriven(body, joint, names)}")
    own, label = body.joint(joint), f"{body.name}.{joint}"
    call = f"drive_joint of {label}"
    if {label, f"{label}.velocity", f"{label}.effort"} & set(scene.commands):
        raise InputError(f"{call}: it is driven already; drive it once, a stepped simulation changes its target by set.")
    for given, function in {"motion": motion, "velocity": velocity, "effort": effort}.items():
        function_of_time(call, given, function, "use fs.Profile.")
    if (motion is not None and velocity is not None) or (motion is None and velocity is None and effort is None):
        raise InputError(f"{call}: give a motion or a velocity, an effort, or one of the former with an effort added to it.")
    if motion is None and stiffness is not None:
        raise InputError(f"{call}: a stiffness belongs to a motion; leave it out, or give the motion that it pulls to.")
    turns = body.turns(joint)
    unit, force = ("rad", "N m") if turns else ("m", "N")
    exact = motion is not None and stiffness is None
    if exact and (effort is not None or damping is not None or max_effort is not None):
        raise InputError(
            f"{call}: without a stiffness the motion is followed exactly, whatever that takes; give stiffness too, or leave out "
            "damping, effort and max_effort."
        )
    gain = 0.0 if stiffness is None else positive(f"stiffness of {label}", stiffness, f"{force}/{unit}")
    if velocity is not None and damping is None:
        raise InputError(f"{call}: a servo follows a velocity by damping times the speed error; give damping, {force} s/{unit}.")
    if damping is None:
        damping = 0.0 if motion is None else 2.0 * float(np.sqrt(gain * body.mass_matrix(body.initial_q())[own.row, own.row]))
    if not (np.isfinite(damping) and damping >= 0.0):
        raise InputError(f"{call}: damping is {damping!r} {force} s/{unit}; allowed are numbers from 0.")
    most = own.max_effort if max_effort is None else max_effort
    if not most > 0.0:
        raise InputError(f"{call}: max_effort is {most!r} {force}; allowed are positive numbers.")
    if exact and motion is not None:
        first, start = motion(0.0), float(body.initial_q()[own.coordinate])
        try:
            begin = float(np.asarray(first).item())
        except (TypeError, ValueError):
            said = f"{call}: motion gives {first!r} at 0 s; it must give one number, the place in {unit}; use fs.Profile."
            raise InputError(said) from None
        if not abs(begin - start) <= _JUMP:
            raise InputError(
                f"{call}: the motion begins at {begin:g} {unit} and the joint at {start:g}; let it start there by joints="
                f"{{{joint!r}: {begin:g}}} of add_robot, or give a stiffness, which pulls it there."
            )
    if exact and motion is not None and (speed := float(body.initial_v()[own.row])):
        scene.notes += notes_on_joint_start(label, unit, speed, (float(motion(_SOON)) - begin) / _SOON)
    if exact and isinstance(motion, Profile):
        too_fast = notes_on_joint_speed(label, unit, *motion.fastest, own.max_speed, body.with_mimics(joint))
        scene.notes += too_fast or notes_on_joint_jump(label, unit, motion.times, motion.values, scene.dt)
    if isinstance(velocity, Profile):
        speed = max(velocity.extremes(), key=abs)
        scene.notes += notes_on_joint_velocity(label, unit, speed, own.max_speed, body.with_mimics(joint))
    others = {
        "velocity": (velocity, ".velocity", "speed of the joint", f"{unit}/s"),
        "effort": (effort, ".effort", "effort of the joint", force),
    }
    within = (float(own.limits[0]), float(own.limits[1]))
    functions = {} if motion is None else {"position": scene.command(label, motion, "position of the joint", unit, within)}
    for field, (wanted, end, said, units) in others.items():
        if wanted is not None:
            functions[field] = scene.command(label + (end if functions else ""), wanted, said, units)
    body.drive_joint(joint, {**functions, "stiffness": gain, "damping": damping, "max_effort": most, "exact": exact})


def _undriven(body: TreeBody, joint: str, names: Sequence[str]) -> str:
    """Why a joint is none that is driven; the end of a sentence."""
    link = body.joint_link(joint)
    if link < 0:
        return f"is unknown{did_you_mean(joint, names)}"
    kind, row = int(body.tree.kind[link]), int(body.tree.row[link])
    leaders = [one.name for one in body.joints if one.row == row and one.name in names]
    if kind != FIXED and leaders:
        return f"mimics {leaders[0]!r}; drive that one, it follows."
    return f"is {'fixed' if kind == FIXED else 'spherical'}; motors are for joints of one coordinate: {', '.join(names)}."


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
