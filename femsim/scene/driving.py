"""What drives a scene: motions of rigid bodies, fingers, held nodes, chambers and tendons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.model.actuators import Chamber, Tendon, enclosed_volume, find_chamber, route
from femsim.model.bodies.body import Body
from femsim.model.commands import MOTION, Command
from femsim.model.compliance import CompliantDrive, CompliantHold
from femsim.model.couplings import Coupling
from femsim.model.drives import Motion, PoseFunction, Profile
from femsim.model.frames import PatchFrame, Points, Tetrahedra
from femsim.model.holds import Hold, chosen_nodes
from femsim.model.kept_shape import KeptShape, triad
from femsim.scene import plausible
from femsim.scene.checks import Handle, Vector, function_of_time, name_of, positive
from femsim.scene.contents import SceneContents
from femsim.scene.robots import base_motion, stands

#: What may be one number or several.
Impedance = float | Sequence[float] | None
#: Bulk modulus of a fluid, Pa, and stiffness of a cable, N/m, where nothing is said.
_BULK, _CABLE = 1e7, 1e4
#: Most fluid for the space of its chamber.
_MOST_FLUID = 1000.0


def drive_base(
    scene: SceneContents,
    what: Handle | str,
    motion: PoseFunction,
    fingers: bool | Sequence[str],
    damping: Impedance,
    max_force: Impedance,
) -> None:
    """Drive a rigid body or the base of a gripper exactly along a motion."""
    body = _driven_base(scene, what, fingers)
    if damping is not None or max_force != np.inf:
        raise InputError(
            f"drive of {body.name}: damping and max_force belong to a stiffness, and without one a motion is followed exactly, "
            "whatever that takes; give stiffness=(N/m, N m/rad) too, or leave them out."
        )
    index = scene.bodies.index(body)
    if index in scene.motions and not stands(scene, body.name):
        raise InputError(
            f"drive of {body.name}: a motion drives it exactly already; drive it once, by one motion with all key frames; a "
            "stepped simulation changes its target by set."
        )
    if springs := [hold.name for hold in scene.holds if hold.leader == index and hold.gives_way]:
        raise InputError(
            f"drive of {body.name}: {springs[0]!r} is held on it by a spring already, to its base as it stands; drive it first, "
            "then hold."
        )
    scene.motions[index] = base_motion(body, _path(scene, body.name, motion, led=True))


def drive_softly(
    scene: SceneContents,
    what: Handle | str,
    motion: PoseFunction,
    fingers: bool | Sequence[str],
    stiffness: float | Sequence[float],
    damping: Impedance,
    max_force: Impedance,
) -> None:
    """Drive a rigid body or the base of a gripper along a motion by springs and dampers."""
    body = _driven_base(scene, what, fingers)
    index, start = scene.bodies.index(body), body.initial_q()
    if index in scene.motions:
        free = "; a robot needs base='free' in add_robot to give way" if body.what == "robot" else ""
        raise InputError(
            f"drive of {body.name}: a motion drives it exactly already; drive it once, with stiffness or without{free}."
        )
    inertia = body.inertia(start, start)
    mass = (inertia[0] if isinstance(inertia, np.ndarray) else inertia).diagonal()[:6]
    k, d, limit = _impedance(f"drive of {body.name}", stiffness, damping, max_force, mass)
    scene.notes += plausible.notes_on_spring(f"drive of {body.name}", k, d, mass, scene.dt, scene.theta)
    name = f"{body.name}.drive"
    scene.check_name(name)
    path = base_motion(body, _path(scene, body.name, motion, led=False))
    scene.couplings.append(CompliantDrive(name, body.name, index, start, path, stiffness=k, damping=d, limit=limit))


def _path(scene: SceneContents, name: str, motion: PoseFunction, *, led: bool) -> Command:
    """Keep a motion as a target, with notes on key frames that are implausibly far, or far apart in too little time."""
    if isinstance(motion, Motion):
        scene.notes += plausible.notes_on_motion_turn(name, motion.turns)
        scene.notes += plausible.notes_on_travel(name, motion.travel, scene.largest_size)
        scene.notes += plausible.notes_on_jump(name, *motion.fastest)
        scene.notes += plausible.notes_on_start(name, *motion(0.0))
    return scene.command(name, motion, *MOTION, led=led)


def _driven_base(scene: SceneContents, what: Handle | str, fingers: bool | Sequence[str]) -> Body:
    """Body whose base is to be driven; InputError where fingers are named, or springs drive it already."""
    body = scene.body(name_of(what))
    if fingers:
        raise InputError(f"drive of {body.name}: a motion drives the base; use force or position for fingers.")
    if any(found[0] == body.name for coupling in scene.couplings if (found := coupling.mounted()) is not None):
        raise InputError(f"drive of {body.name}: a motion with stiffness drives it already; drive it once.")
    return body


def _six(what: str, value: float | Sequence[float], pair: str) -> np.ndarray:
    """Numbers along and about x, y, z, (6,), from these or from one along all and one about all."""
    try:
        given = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.full(1, np.nan)
    if given.shape not in ((2,), (6,)) or not (np.isfinite(given).all() and (given >= 0).all()):
        raise InputError(f"{what} is {value!r}; allowed are two numbers, {pair}, or six, along and about x, y, z; none negative.")
    return np.repeat(given, 3) if len(given) == 2 else given.copy()


def _impedance(
    what: str, stiffness: float | Sequence[float], damping: Impedance, max_force: Impedance, mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Stiffness and damping, (6,) each, the latter by default critical for masses and moments (6,); limits."""
    k = _six(f"{what}: stiffness", stiffness, "(N/m, N m/rad)")
    if not k.any():
        raise InputError(f"{what}: stiffness is {stiffness!r}; at least one axis needs some.")
    d = 2.0 * np.sqrt(k * mass) if damping is None else _six(f"{what}: damping", damping, "(N s/m, N m s/rad)")
    return k, d, _limits(what, max_force)


def _limits(what: str, max_force: Impedance) -> tuple[float, float]:
    """Largest force, N, and torque, N m, from the force alone or from both."""
    try:
        given = np.atleast_1d(np.asarray(max_force, dtype=np.float64))
    except (TypeError, ValueError):
        given = np.full(1, np.nan)
    if given.shape not in ((1,), (2,)) or not (given > 0).all():
        raise InputError(f"{what}: max_force is {max_force!r}; allowed are positive numbers, N or (N, N m).")
    return float(given[0]), float(given[1]) if len(given) == 2 else np.inf


def _servo(name: str, given: Mapping[str, Impedance]) -> dict[str, float]:
    """Check what belongs to the servo of fingers; 1e4 N/m and 100 N s/m where nothing is said."""
    servo = {"stiffness": 1e4, "damping": 1e2}
    for field, value in given.items():
        if isinstance(value, int | float | np.floating | np.integer):
            servo[field] = float(value)
        elif value is not None:
            raise InputError(f"drive of {name}: {field} of fingers is {value!r}; allowed is one number.")
    positive("stiffness of the servo", servo["stiffness"], "N/m")
    if not (servo["damping"] >= 0 and servo["max_force"] > 0):
        raise InputError(
            f"drive of {name}: damping is {servo['damping']} N s/m and max_force {servo['max_force']} N; allowed are "
            "damping >= 0 and max_force > 0."
        )
    return servo


def check_drive(scene: SceneContents, what: Handle | str, functions: Mapping[str, object]) -> None:
    """Refuse a body that cannot be driven, or not exactly one way to drive it."""
    name = name_of(what)
    body = scene.body(name)
    if not body.rigid:
        raise InputError(f"drive: {name!r} {body.advice}")
    if sum(value is not None for value in functions.values()) != 1:
        raise InputError(f"drive of {name}: give exactly one of motion, force and position.")
    for given, value in functions.items():
        function_of_time(f"drive of {name}", given, value, "use fs.Motion or fs.Profile.")


def drive_fingers(
    scene: SceneContents,
    what: Handle | str,
    fingers: bool | Sequence[str],
    force: Callable[[float], float] | None,
    position: Callable[[float], float] | None,
    stiffness: Impedance,
    damping: Impedance,
    max_force: Impedance,
) -> None:
    """Drive fingers of a gripper by a force or a servo."""
    body = scene.body(name_of(what))
    names = body.joint_names()
    chosen = names if fingers is True else [fingers] if isinstance(fingers, str) else list(fingers or ())
    for finger in chosen:
        if finger not in names:
            raise InputError(f"drive of {body.name}: finger {finger!r} is unknown{did_you_mean(finger, names)}")
        if f"{body.name}.{finger}" in scene.commands or chosen.count(finger) > 1:
            raise InputError(
                f"drive of {body.name}: finger {finger!r} is driven already; drive it once, by force or by position; a stepped "
                "simulation changes its target by set."
            )
    if not chosen:
        raise InputError(f"drive of {body.name}: force and position drive fingers; say fingers=True or name some of {names}.")
    servo = _servo(body.name, {"stiffness": stiffness, "damping": damping, "max_force": max_force})
    if position is None:  # they are those of a servo, which pulls to a position
        servo = {}
    for finger in chosen:
        name = f"{body.name}.{finger}"
        closing = None if force is None else scene.command(name, force, "closing force", "N")
        place = None if position is None else scene.command(name, position, "position of the joint, positive closing", "m")
        body.drive_joint(finger, {"force": closing, "position": place, **servo})


def hold(
    scene: SceneContents,
    what: Handle | str,
    where: Callable[[np.ndarray], np.ndarray] | Sequence[int] | np.ndarray,
    motion: PoseFunction | None,
    on: Handle | str | None,
    name: str | None,
    stiffness: float | Sequence[float] | None,
    damping: Impedance,
    max_force: Impedance,
) -> Handle:
    """Hold nodes of a soft body, see :meth:`femsim.scene.scene.Scene.hold`."""
    own = name_of(what)
    body = scene.body(own)
    if body.kind != "nodes":
        raise InputError(f"hold: {own!r} is no soft body; drive a rigid body or gripper by drive, hold a rod by fs.RodEnd.")
    index, rest = scene.bodies.index(body), body.initial_q().reshape(-1, 3)
    held = [other for other in scene.holds if other.body == index]
    name = f"{own}.hold{len(held) + 1}" if name is None else name
    scene.check_name(name)
    nodes = chosen_nodes(f"hold {name}: where", rest, where if callable(where) else np.asarray(where))
    for other, taken in [("fixed", scene.fixed_nodes.get(index, nodes[:0])), *((other.name, other.nodes) for other in held)]:
        both = np.intersect1d(nodes, taken)
        if len(both):
            raise InputError(f"hold {name}: node {both[0]} is held already by {other!r}; a node can follow one motion only.")
    if (motion is None) == (on is None):
        raise InputError(f"hold {name}: give exactly one of motion and on.")
    if stiffness is None and (damping is not None or max_force != np.inf):
        raise InputError(
            f"hold {name}: damping and max_force belong to a stiffness, and without one nodes follow exactly, whatever that "
            "takes; give stiffness=(N/m, N m/rad) too, or leave them out."
        )
    function_of_time(f"hold {name}", "motion", motion, "use fs.Motion.")
    pivot, leader = rest[nodes].mean(axis=0), -1
    if on is not None:
        label = name_of(on)
        bases = {b.name: k for k, b in enumerate(scene.bodies) if k in scene.motions}
        if label == "world":
            raise InputError(
                f"hold {name}: nodes that stand still in the world are given as fixed=... of scene.add_soft instead."
            )
        if label not in bases:
            known = {*scene.part_names, *(b.name for b in scene.bodies)}
            if label not in known:
                raise InputError(f"hold {name}: {label!r} is unknown{did_you_mean(label, sorted(known))}")
            raise InputError(
                f"hold {name}: {label!r} is no rigid body or gripper that a motion drives; drive it first, by "
                "scene.drive(..., motion); nodes cannot go with one that a stiffness drives, or with a link: glue them to it by "
                "scene.join(..., where=...)."
            )
        leader = bases[label]
        pivot = scene.bodies[leader].initial_q()[:3]
    spring: _Spring | None = None
    if stiffness is not None:
        mass = _about(body, rest, pivot)
        spring = _Spring(_three(f"hold {name}", rest[nodes]), *_impedance(f"hold {name}", stiffness, damping, max_force, mass))
        scene.notes += plausible.notes_on_spring(f"hold {name}", spring.stiffness, spring.damping, mass, scene.dt, scene.theta)
    path = None if motion is None else _path(scene, name, motion, led=spring is None)
    new = Hold(name, index, nodes, rest[nodes].copy(), pivot, path, leader, gives_way=spring is not None)
    if spring is not None:
        scene.couplings += _pull(new, rest, scene.motions[leader] if path is None else path, spring)
    scene.holds.append(new)
    return Handle(name, (name,))


class _Spring(NamedTuple):
    """What holds nodes that may give way: three of them, see :func:`triad`, stiffness and damping, (6,), and limits."""

    three: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    limit: tuple[float, float]


def _three(what: str, points: np.ndarray) -> np.ndarray:
    """Numbers of three held nodes that show how all turn."""
    chosen = triad(points)
    if chosen is None:
        raise InputError(
            f"{what}: where chooses {len(points)} nodes in one line, and a spring turns what it holds; choose more, or hold them "
            "exactly, without a stiffness."
        )
    return chosen


def _about(body: Body, points: np.ndarray, pivot: np.ndarray) -> np.ndarray:
    """Mass of a body of nodes, three times, and its moments of inertia about the axes through a point, (6,)."""
    inertia, start = body.inertia(body.initial_q(), body.initial_q()), points - pivot
    mass = (inertia[0] if isinstance(inertia, np.ndarray) else inertia).diagonal()[::3]
    squares = mass @ (start * start)
    return np.concatenate([np.full(3, mass.sum()), squares.sum() - squares])


def _pull(held: Hold, points: np.ndarray, motion: PoseFunction, spring: _Spring) -> list[Coupling]:
    """Make what pulls nodes of a body that starts at points (n, 3), m, and what keeps their shape."""
    start = np.concatenate([held.pivot, [1.0, 0.0, 0.0, 0.0]])
    frame = PatchFrame(Points(points), held.nodes[spring.three], np.ones(3), start)
    pull = CompliantHold(
        held.name, held.body, frame, start, held.rest.mean(axis=0), motion,
        stiffness=spring.stiffness, damping=spring.damping, limit=spring.limit,
    )  # fmt: skip
    return [pull, KeptShape(f"{held.name}.shape", held.body, held.nodes, held.rest, spring.three)]


def pressurize(
    scene: SceneContents,
    what: Handle | str,
    functions: dict[str, Callable[[float], float] | None],
    where: Callable[[np.ndarray], np.ndarray] | int | np.ndarray | None,
    bulk: float | None,
    name: str | None,
) -> Handle:
    """Put a chamber under pressure, see :meth:`femsim.scene.scene.Scene.pressurize`."""
    index, body = _actuated(scene, "pressurize", what)
    name = _actuator_name(scene, body.name, "chamber", name)
    _check_one_function(f"pressurize {name}", functions)
    triangles = find_chamber(_at_start(scene, index), where)
    for other in scene.couplings:
        if isinstance(other, Chamber) and other.rows[0][0] == index and np.array_equal(other.nodes, np.unique(triangles)):
            raise InputError(f"pressurize {name}: {other.name} is the same chamber; pressurize it once, by one function of time.")
    if bulk is not None and functions["volume"] is None:
        raise InputError(f"pressurize {name}: bulk is that of the fluid of volume; leave it out, or give volume, not pressure.")
    bulk = positive(f"bulk of {name}", _BULK if bulk is None else bulk, "Pa")
    units = {"pressure": ("pressure above that outside", "Pa"), "volume": ("volume of pumped fluid", "m^3")}
    taken = _commands(scene, name, functions, units)
    fluid = taken["volume"]
    if fluid is not None:
        space = enclosed_volume(body.rest, triangles)
        taken["volume"] = _checked_fluid(name, fluid, space)
        given = functions["volume"]
        for volume in reversed(given.extremes()) if isinstance(given, Profile) else ():
            _check_fluid(name, volume, space, "")
    scene.couplings.append(Chamber(name, body, index, triangles, bulk=bulk, **taken))
    return Handle(name, (name,))


def _check_fluid(name: str, volume: float, space: float, when: str) -> None:
    """Refuse a volume of fluid, m^3, that is negative or far more than the space that it is pumped into, m^3."""
    if volume < -1e-9 * space or volume > _MOST_FLUID * space:  # that below zero is rounding
        many = "" if volume < 0.0 else f", {volume / space:.3g} times the {space:.4g} m^3 of the chamber"
        raise InputError(
            f"{name}: volume of the fluid is {volume:.6g} m^3{when}{many}; allowed are 0 to {_MOST_FLUID * space:.4g} m^3. Write "
            "it in m^3: 1 ml is 1e-6."
        )


def _checked_fluid(name: str, volume: Callable[[float], float], space: float) -> Callable[[float], float]:
    """Check the volume of a fluid, m^3, whenever it is asked for."""

    def checked(t: float) -> float:
        value = volume(t)
        if isinstance(value, int | float | np.floating | np.integer):  # the chamber refuses all else
            _check_fluid(name, float(value), space, f" at {t:g} s")
        return value

    return checked


def add_tendon(
    scene: SceneContents,
    what: Handle | str,
    points: np.ndarray | Sequence[Vector] | Sequence[int],
    functions: dict[str, Callable[[float], float] | None],
    stiffness: float | None,
    name: str | None,
) -> Handle:
    """Run a tendon through a soft body, see :meth:`femsim.scene.scene.Scene.add_tendon`."""
    index, body = _actuated(scene, "add_tendon", what)
    name = _actuator_name(scene, body.name, "tendon", name)
    _check_one_function(f"add_tendon {name}", functions)
    try:
        path = np.asarray(points)
    except ValueError:
        raise InputError(f"add_tendon {name}: points are no array; allowed are (n, 3) numbers in m, or nodes.") from None
    started = _at_start(scene, index)
    nodes, weights = route(started, path)
    if stiffness is not None and functions["pull"] is None:
        raise InputError(f"add_tendon {name}: stiffness is that of a cable that is pulled; leave it out, or give pull.")
    stiffness = positive(f"stiffness of {name}", _CABLE if stiffness is None else stiffness, "N/m")
    units = {"force": ("tension, not negative", "N"), "pull": ("length of cable taken in", "m")}
    taken = _commands(scene, name, functions, units)
    scene.couplings.append(Tendon(name, index, nodes, weights, started.rest, stiffness=stiffness, **taken))
    return Handle(name, (name,))


def _actuated(scene: SceneContents, call: str, what: Handle | str) -> tuple[int, Tetrahedra]:
    """Body of an actuator: its number and its tetrahedra."""
    body = scene.body(name_of(what))
    tetrahedra = body.tetrahedra()
    if tetrahedra is None:
        raise InputError(f"{call}: {body.name!r} is no soft body; name one of add_soft.")
    return scene.bodies.index(body), tetrahedra


def _at_start(scene: SceneContents, index: int) -> Tetrahedra:
    """Tetrahedra of a soft body where its nodes start."""
    started = scene.bodies[index].tetrahedra_at_start()
    assert started is not None
    return started


def _actuator_name(scene: SceneContents, body: str, kind: str, name: str | None) -> str:
    """Name of the next actuator of a kind of a body, checked."""
    count = sum(scene.bodies[c.rows[0][0]].name == body for c in scene.sensed_couplings() if c.kind == kind)
    name = f"{body}.{kind}{count + 1}" if name is None else name
    scene.check_name(name)
    return name


def _commands(
    scene: SceneContents,
    name: str,
    functions: Mapping[str, Callable[[float], float] | None],
    units: Mapping[str, tuple[str, str]],
) -> dict[str, Callable[[float], float] | None]:
    """Keep the one of these functions that was given under the name of the actuator."""
    return {k: None if given is None else scene.command(name, given, *units[k]) for k, given in functions.items()}


def _check_one_function(call: str, functions: dict[str, Callable[[float], float] | None]) -> None:
    """Refuse anything but exactly one function of time."""
    if sum(value is not None for value in functions.values()) != 1:
        raise InputError(f"{call}: give exactly one of {' and '.join(functions)}.")
    for given, value in functions.items():
        function_of_time(call, given, value, "use fs.Profile.")
