"""Random things that are driven, with meters of the work that is done on them: what ``fuzz_driven.py`` draws its scenes from.

Each is a function of ``KINDS`` that draws all its numbers and returns what adds it to a scene, turned and placed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from hollow_boxes import hollow_box
from scipy.spatial.transform import Rotation

import femsim as fs


@dataclass
class Meter:
    """Work of one drive: a place that is looked at after each step, and the work from one place to the next, J."""

    name: str
    place: Callable[[fs.Simulation], Any]
    work: Callable[[fs.Simulation, Any, Any], float]


@dataclass
class Told:
    """What a thing has to be asked: meters of work; per body sensors of its forces and loads, N; pairs of sensors that cancel."""

    meters: list[Meter] = field(default_factory=list)
    balances: list[tuple[str, tuple[str, ...], np.ndarray]] = field(default_factory=list)
    opposite: list[tuple[str, str]] = field(default_factory=list)


#: A thing as it was drawn: it is added to a scene, turned as a whole, at a place, m.
Thing = Callable[[fs.Scene, str, Rotation, np.ndarray], Told]


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


# ------------------------------------------------------------------ meters


def _pose(sim: fs.Simulation, body: str) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass and rotation of a rigid part."""
    turn, place = sim.pose(body)
    return place, turn


def _centre(sim: fs.Simulation, body: str) -> np.ndarray:
    system = sim.stepper.system
    k = [one.name for one in system.bodies].index(body)
    return np.array(system.bodies[k].centre_of_mass(sim.state.q[system.q_slices[k]]))


def _along(sensor: str, sim: fs.Simulation, before: Any, after: Any) -> float:
    """Work of a wrench on what moves from pose to pose."""
    read = sim.read(sensor)
    turn = Rotation.from_matrix(after[1] @ before[1].T).as_rotvec()
    return float(read.force @ (after[0] - before[0]) + read.torque @ turn)


def _mount(sensor: str, body: str) -> Meter:
    return Meter(sensor, partial(_pose, body=body), partial(_along, sensor))


def _held(sensor: str, body: str, nodes: np.ndarray) -> Meter:
    """Of nodes that move together."""

    def pose(sim: fs.Simulation) -> tuple[np.ndarray, np.ndarray]:
        points = sim.points(body)[nodes]
        return points.mean(axis=0), points - points.mean(axis=0)

    def work(sim: fs.Simulation, before: Any, after: Any) -> float:
        read, turn = sim.read(sensor), Rotation.align_vectors(after[1], before[1])[0].as_rotvec()
        return float(read.force @ (after[0] - before[0]) + read.torque @ turn)

    return Meter(sensor, pose, work)


def _gauge(sensor: str, place: str, force: str, sign: float = 1.0) -> Meter:
    """Of one number times the change of another one of the same sensor."""
    return Meter(
        sensor, lambda sim: sim.row()[f"{sensor}_{place}"],
        lambda sim, before, after: sign * sim.row()[f"{sensor}_{force}"] * (after - before),
    )  # fmt: skip


def _closing(sensor: str, base: str, finger: str, way: tuple[float, float, float]) -> Meter:
    """Of what a base exerts on a finger along the way in which it closes, in the frame of the base."""

    def closed(sim: fs.Simulation) -> float:
        (turn, at), place = sim.pose(base), sim.pose(finger)[1]
        return float((place - at) @ turn @ way)

    def work(sim: fs.Simulation, before: float, after: float) -> float:
        return float(sim.read(sensor).force @ (sim.pose(base)[0] @ way)) * (after - before)

    return Meter(sensor, closed, work)


def _steady(body: str, force: np.ndarray) -> Meter:
    return Meter(f"{body}.load", partial(_centre, body=body), lambda _, before, after: float(force @ (after - before)))


# ------------------------------------------------------------------ things


def _motion(rng: np.random.Generator, far: float, turn: float) -> tuple[np.ndarray, np.ndarray, float]:
    return far * rng.standard_normal(3), turn * rng.standard_normal(3), float(rng.uniform(0.05, 0.2))


def _turned_motion(turned: Rotation, motion: tuple[np.ndarray, np.ndarray, float]) -> fs.Motion:
    way, turn, time_ = motion
    return fs.Motion([0.0, time_], [np.zeros(3), turned.apply(way)], [np.zeros(3), turned.apply(turn)])


def _elastic(rng: np.random.Generator) -> fs.Elastic:
    prony = ((_log(rng, 0.1, 2.0), _log(rng, 1e-3, 1.0)),) if rng.random() < 0.3 else ()
    damping = {"rayleigh_beta": 1e-3} if rng.random() < 0.3 else {}
    law = [fs.Corotational(), fs.StableNeoHookean()][int(rng.integers(2))]
    nu = float(rng.choice([0.2, 0.4, 0.48]))
    return fs.Elastic(_log(rng, 3e4, 3e6), nu, _log(rng, 500.0, 2000.0), law=law, prony=prony, **damping)


def _impedance(rng: np.random.Generator) -> dict[str, Any]:
    """Of a drive: none, or a spring with or without a limit."""
    if rng.random() < 0.5:
        return {}
    out: dict[str, Any] = {"stiffness": (_log(rng, 50.0, 5e4), _log(rng, 0.1, 50.0))}
    out["damping"] = tuple(x * _log(rng, 1e-3, 0.1) for x in out["stiffness"])  # by default it is about the axes of the world
    return out | ({"max_force": _log(rng, 0.5, 50.0)} if rng.random() < 0.4 else {})


def robot(rng: np.random.Generator) -> Thing:
    """A tree of links with all kinds of joints and ways to drive them."""
    n, base = int(rng.integers(1, 5)), str(rng.choice(["fixed", "fixed", "free", "planar", "driven"]))
    touching, links, joints, calls, speeds = rng.random() < 0.5, [], [], [], {}
    links.append(fs.RobotLink.solid("base", fs.Piece(fs.Box(rng.uniform(0.01, 0.03, 3))), _log(rng, 0.2, 5.0)))
    turning: list[tuple[str, str]] = []
    for k in range(n):
        length, mass = float(rng.uniform(0.03, 0.08)), _log(rng, 0.05, 1.0)
        shape = [fs.Box((length, 0.01, 0.01)), fs.Sphere(0.3 * length)][int(rng.integers(2))]
        solid = fs.RobotLink.solid(f"l{k}", fs.Piece(shape, (length, 0, 0)), mass)
        links.append(solid if touching else fs.RobotLink(solid.name, solid.mass, solid.centre, solid.inertia))
        kind = str(rng.choice(["revolute", "continuous", "prismatic", "spherical", "universal"], p=[0.4, 0.1, 0.25, 0.15, 0.1]))
        parent = "base" if k == 0 or rng.random() < 0.2 else f"l{k - 1}"
        more: dict[str, Any] = {}
        single = kind in ("revolute", "continuous", "prismatic")
        if single and kind != "continuous" and rng.random() < 0.4:
            reach = float(rng.uniform(0.1, 0.6)) * (0.05 if kind == "prismatic" else 1.0)
            more["limits"] = (-reach, reach)
        if rng.random() < 0.3:
            more["damping"] = _log(rng, 1e-4, 1e-1)
        if single and rng.random() < 0.25:
            more["friction"] = _log(rng, 1e-3, 0.3)
        if single and rng.random() < 0.2:
            more["rotor_inertia"] = _log(rng, 1e-5, 1e-2)
        alike = [name for name, other in turning if (other == "prismatic") == (kind == "prismatic")]
        follows = single and bool(alike) and rng.random() < 0.3
        if follows:
            more["mimic"] = (str(rng.choice(alike)), float(rng.choice([-1.0, 0.5, 2.0])), 0.0)
            more.pop("limits", None)
        axis, place = rng.standard_normal(3), (float(rng.uniform(0.0, 0.1)), 0.03 * k, 0.02)
        joints.append(fs.RobotJoint(f"j{k}", parent, f"l{k}", kind, place, 0.5 * rng.standard_normal(3), axis, **more))  # type: ignore[arg-type]
        if not single or follows:
            continue
        turning.append((f"j{k}", kind))
        size = 0.04 if kind == "prismatic" else 0.8
        to = fs.Profile([0.0, float(rng.uniform(0.05, 0.3))], [0.0, size * float(rng.uniform(-1, 1))])
        way = str(rng.choice(["none", "exact", "servo", "velocity", "effort"], p=[0.25, 0.2, 0.25, 0.15, 0.15]))
        if way == "exact" and "limits" in more:
            way = "servo"
        hard = {"stiffness": _log(rng, 1.0, 1e3)} | ({"max_effort": _log(rng, 0.05, 5.0)} if rng.random() < 0.4 else {})
        effort = float(rng.uniform(-1, 1)) * (3.0 if kind == "prismatic" else 0.3)
        given = {
            "exact": {"motion": to}, "servo": {"motion": to} | hard, "effort": {"effort": fs.Profile([0.0], [effort])},
            "velocity": {
                "velocity": fs.Profile([0.0, 0.05], [0.0, size * float(rng.uniform(-2, 2))]), "damping": _log(rng, 0.1, 50.0),
            },
        }  # fmt: skip
        if way != "none":
            calls.append((f"j{k}", given[way]))
        if way != "exact" and rng.random() < 0.3:
            speeds[f"j{k}"] = size * float(rng.uniform(-3, 3))
    model, motion = fs.Robot("robot", links, joints), _motion(rng, 0.03, 0.3)
    spin, soft = rng.standard_normal(3) * float(rng.choice([0.0, 2.0])), _impedance(rng)

    def add(scene: fs.Scene, name: str, turned: Rotation, place: np.ndarray) -> Told:
        told, free = Told(), base == "free"
        there = "free" if base == "driven" and soft else "fixed" if base == "driven" else base
        scene.add_robot(
            model, name=name, base=there, position=place + turned.apply((0, 0, 0.25)), rotation=turned.as_rotvec(),  # type: ignore[arg-type]
            speeds=speeds, angular_velocity=turned.apply(spin) if free else (0, 0, 0),
        )  # fmt: skip
        if base == "driven":
            scene.drive(name, _turned_motion(turned, motion), **soft)
        for joint, given in calls:
            scene.drive_joint(name, joint, **given)
        sensors = []
        for label in (name, *(f"{name}.{link.name}" for link in links[1:])):
            scene.sensor(f"{label}.contact", label)
            sensors.append(f"{label}.contact")
        if not free:
            scene.sensor(f"{name}.mount", name, kind="mount")
            sensors.append(f"{name}.mount")
            told.meters.append(_mount(f"{name}.mount", name))
        for joint, kind in turning:
            slides = kind == "prismatic"
            scene.sensor(f"{name}.{joint}", f"{name}.{joint}", kind="prismatic" if slides else "revolute")
            told.meters.append(_gauge(f"{name}.{joint}", *(("position_m", "force_N") if slides else ("angle_rad", "torque_Nm"))))
        told.balances.append((name, tuple(sensors), np.zeros(3)))
        return told

    return add


def pressed(rng: np.random.Generator) -> Thing:
    """A plate that is driven down on a cube, soft or rigid, with soft or bouncing contact."""
    soft, motion, spring, elastic = rng.random() < 0.6, _motion(rng, 0.004, 0.1), _impedance(rng), _elastic(rng)
    motion = (motion[0] - (0, 0, 0.008), *motion[1:])
    pair = str(rng.choice(["plain", "softness", "restitution"]))
    softness, back, gap = _log(rng, 1e-6, 1e-4), float(rng.uniform(0.2, 1.0)), _log(rng, 2e-4, 5e-3)
    if not soft and not spring:
        spring = {"stiffness": (1e3, 5.0), "damping": (20.0, 0.1)}

    def add(scene: fs.Scene, name: str, turned: Rotation, place: np.ndarray) -> Told:
        cube, plate, up = f"{name}.cube", f"{name}.plate", partial(_up, turned, place)
        if soft:
            scene.add_soft(cube, fs.box_tets((0.03, 0.03, 0.03), 2), elastic, position=up(0.0155), rotation=turned.as_rotvec())
        else:
            scene.add_rigid(cube, fs.Box((0.015, 0.015, 0.015)), density=1000.0, position=up(0.0155), rotation=turned.as_rotvec())
        scene.add_rigid(plate, fs.Box((0.03, 0.03, 0.005)), mass=0.3, position=up(0.036 + gap), rotation=turned.as_rotvec())
        scene.drive(plate, _turned_motion(turned, motion), **spring)
        if pair == "softness":
            scene.set_softness(cube, plate, softness)
        elif pair == "restitution":
            scene.set_restitution(cube, plate, back)
        scene.sensor(f"{name}.mount", plate, kind="mount")
        for label, other in ((cube, plate), (plate, cube)):
            scene.sensor(f"{label}.all", label)
            scene.sensor(f"{label}.one", label, partner=other)
        scene.sensor(f"{name}.slip", cube, kind="slip")
        if soft:
            scene.sensor(f"{name}.area", cube, kind="area")
        return Told(
            [_mount(f"{name}.mount", plate)],
            [(cube, (f"{cube}.all",), np.zeros(3)), (plate, (f"{plate}.all", f"{name}.mount"), np.zeros(3))],
            [(f"{cube}.one", f"{plate}.one")],
        )

    return add


def _up(turned: Rotation, place: np.ndarray, height: float) -> tuple[float, ...]:
    return tuple(place + turned.apply((0, 0, height)))


def held(rng: np.random.Generator) -> Thing:
    """A soft bar, held at one end by a motion, exact or a spring, with a load, a push or a tendon."""
    elastic, motion, spring, load = _elastic(rng), _motion(rng, 0.01, 0.3), _impedance(rng), 0.3 * rng.standard_normal(3)
    element, tendon = ("quadratic" if rng.random() < 0.3 else "linear"), str(rng.choice(["none", "force", "pull"]))
    pull, stiff = float(rng.uniform(0.2, 2.0)), _log(rng, 1e2, 1e4)
    mesh = fs.box_tets((0.08, 0.02, 0.02), (4, 2, 2))

    def add(scene: fs.Scene, name: str, turned: Rotation, place: np.ndarray) -> Told:
        bar = f"{name}.bar"
        at = np.array(_up(turned, place, 0.1))
        loaded = turned.apply(load)
        scene.add_soft(
            bar, mesh, elastic, position=tuple(at), rotation=turned.as_rotvec(), element=element,  # type: ignore[arg-type]
            load=lambda t: loaded,
        )  # fmt: skip
        end = lambda x: turned.inv().apply(x - at)[:, 0] < -0.0399  # noqa: E731
        hold = scene.hold(bar, end, _turned_motion(turned, motion), **spring)
        scene.sensor(f"{name}.mount", hold, kind="mount")
        scene.sensor(f"{name}.contact", bar)
        start = scene.bodies[-1].initial_q().reshape(-1, 3)
        told = Told([_held(f"{name}.mount", bar, np.flatnonzero(end(start))), _steady(bar, loaded)])
        if tendon != "none":
            points = turned.apply([(0.038, 0, 0.008), (0, 0, 0.008), (-0.038, 0, 0.008)]) + at
            if tendon == "force":
                rope = scene.add_tendon(bar, points, force=fs.Profile([0.0, 0.1], [0.0, pull]))
            else:
                rope = scene.add_tendon(bar, points, pull=fs.Profile([0.0, 0.1], [0.0, 0.002 * pull]), stiffness=stiff)
            scene.sensor(f"{name}.tendon", rope, kind="tendon")
            told.meters.append(_gauge(f"{name}.tendon", "length_m", "force_N", -1.0))
        told.balances.append((bar, (f"{name}.mount", f"{name}.contact"), loaded))
        return told

    return add


def inflated(rng: np.random.Generator) -> Thing:
    """A hollow box under pressure or with pumped fluid, that stands on the floor or flies."""
    elastic, pumped, most, bulk = _elastic(rng), rng.random() < 0.5, float(rng.uniform(-0.05, 0.2)), _log(rng, 1e4, 1e7)
    holes = int(rng.integers(1, 3))
    mesh = hollow_box(holes)

    def add(scene: fs.Scene, name: str, turned: Rotation, place: np.ndarray) -> Told:
        box = f"{name}.box"
        scene.add_soft(box, mesh, elastic, position=_up(turned, place, 0.0155), rotation=turned.as_rotvec())
        told, sensors = Told(), []
        for k in range(holes):
            if pumped:
                volume = fs.Profile([0.0, 0.1], [1e-6, (1 + 2 * most) * 1e-6])
                room = scene.pressurize(box, volume=volume, where=k, bulk=bulk)
            else:
                room = scene.pressurize(box, fs.Profile([0.0, 0.1], [0.0, most * elastic.young_modulus]), where=k)
            scene.sensor(f"{name}.room{k}", room, kind="chamber")
            told.meters.append(_gauge(f"{name}.room{k}", "volume_m3", "pressure_Pa"))
        scene.sensor(f"{name}.contact", box)
        sensors.append(f"{name}.contact")
        told.balances.append((box, tuple(sensors), np.zeros(3)))
        return told

    return add


def gripped(rng: np.random.Generator) -> Thing:
    """A ball or cube between two fingers that close by force or position, on a base that moves."""
    soft, motion, elastic, friction = rng.random() < 0.5, _motion(rng, 0.01, 0.3), _elastic(rng), float(rng.choice([0.3, 1.0]))
    by_force, force, spring, closed = rng.random() < 0.5, _log(rng, 0.5, 20.0), _impedance(rng), float(rng.uniform(0.002, 0.01))

    def add(scene: fs.Scene, name: str, turned: Rotation, place: np.ndarray) -> Told:
        thing, at = f"{name}.thing", np.array(_up(turned, place, 0.1))
        if soft:
            scene.add_soft(thing, fs.ball_tets(0.015, 2), elastic, position=tuple(at), rotation=turned.as_rotvec())
        else:
            scene.add_rigid(thing, fs.Box((0.015, 0.01, 0.01)), mass=0.05, position=tuple(at), rotation=turned.as_rotvec())
        pad = fs.Box((0.003, 0.01, 0.015))
        fingers = [fs.Finger(side, pad, (sign * 0.02, 0, -0.05), (-sign, 0, 0)) for side, sign in (("left", -1), ("right", 1))]
        scene.add_gripper(name, fingers, position=_up(turned, place, 0.15), rotation=turned.as_rotvec(), joint_damping=0.0)
        scene.drive(name, _turned_motion(turned, motion), **spring)
        if by_force:
            scene.drive(name, fingers=True, force=fs.Profile([0.0, 0.02], [0.0, force]))
        else:
            scene.drive(name, fingers=True, position=fs.Profile([0.0, 0.05], [0.0, closed]), max_force=20.0)
        told, own = Told(), []
        for side in ("left", "right"):
            scene.set_friction(f"{name}.{side}", thing, friction)
            scene.sensor(f"{name}.{side}.on", f"{name}.{side}", partner=thing)
            scene.sensor(f"{name}.{side}.back", thing, partner=f"{name}.{side}")
            scene.sensor(f"{name}.{side}.contact", f"{name}.{side}")
            own.append(f"{name}.{side}.contact")
            scene.sensor(f"{name}.{side}.joint", f"{name}.{side}", kind="joint")
            way = (1.0 if side == "left" else -1.0, 0.0, 0.0)
            told.meters.append(_closing(f"{name}.{side}.joint", name, f"{name}.{side}", way))
            told.opposite.append((f"{name}.{side}.on", f"{name}.{side}.back"))
        scene.sensor(f"{name}.mount", name, kind="mount")
        scene.sensor(f"{thing}.contact", thing)
        told.meters.append(_mount(f"{name}.mount", name))
        told.balances += [(name, (*own, f"{name}.mount"), np.zeros(3)), (thing, (f"{thing}.contact",), np.zeros(3))]
        return told

    return add


KINDS: dict[str, Callable[[np.random.Generator], Thing]] = {
    "robot": robot, "pressed": pressed, "held": held, "inflated": inflated, "gripped": gripped,
}  # fmt: skip
