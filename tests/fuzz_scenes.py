"""Random scenes of all kinds of bodies, held against what nature keeps.

    python tests/fuzz_scenes.py --scenes 200 --seed 1 --workers 2 --report data/results/random_scenes.md

Scene N of a seed is always the same: one to four soft bodies, rods and rigid bodies, some joined, in space or over a floor, a
slope, a table or a ball. Each is run for some steps, and again turned as a whole. What is checked knows nothing of what a run
checks itself: the energy in the table, momenta from the velocities, places of nodes and corners against floor and shapes, the
cone of friction over all of the floor, and the run that was turned. A finding is an error that is no sentence, a step that takes
long, a check that fails though the verdict is *good*, and a verdict that is not.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import femsim as fs
from femsim.model.bodies.soft import SoftBody
from femsim.model.solids import mass_properties

#: Seconds of processor time that a scene may take, and one of its steps.
SECONDS, STEP_SECONDS = 120.0, 5.0
#: What may go wrong by: energy from nothing and momenta, of the largest of the scene; places, of the size of the bodies; the
#: turned run, likewise, as long as nothing has bounced.
ENERGY, MOMENTUM, SPIN, PLACE, TURNED = 2e-3, 1e-6, 5e-3, 2e-3, 5e-2
GRAVITY = 9.81


@dataclass(frozen=True)
class Thing:
    """A body as it was drawn: the call that adds it, its radius, m, and corners of rigid ones, m, in their own frame."""

    name: str
    add: Callable[..., Any]
    radius: float
    corners: np.ndarray | None = None
    round_by: float = 0.0


@dataclass(frozen=True)
class Drawn:
    """A scene as it was drawn."""

    settings: dict[str, Any]
    ground: str
    slope: float
    friction: float
    restitution: float
    things: tuple[Thing, ...]
    places: np.ndarray
    turns: np.ndarray
    velocities: np.ndarray
    spins: np.ndarray
    joints: tuple[tuple[int, int, str], ...]

    @property
    def size(self) -> float:
        return min(thing.radius for thing in self.things)


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _rigid(rng: np.random.Generator, name: str) -> Thing:
    r, density, kind = (
        _log(rng, 0.01, 0.05),
        _log(rng, 100.0, 8000.0),
        rng.choice(["box", "ball", "capsule", "disc", "cone", "mesh", "two"]),
    )
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
    corners, round_by, shape = np.zeros((1, 3)), r, None
    reach = r
    if kind == "box":
        half = r * rng.uniform(0.2, 1.0, 3)
        shape, corners, round_by, reach = fs.Box(half), signs * half, 0.0, float(np.linalg.norm(half))
    elif kind == "ball":
        shape = fs.Sphere(r)
    elif kind == "capsule":
        length = r * rng.uniform(0.2, 2.0)
        shape, corners, reach = fs.Capsule(r, length), np.array([(0, 0, length), (0, 0, -length)]), r + length
    elif kind in ("disc", "cone"):
        length, angles = r * rng.uniform(0.2, 1.5), np.linspace(0, 2 * np.pi, 12, endpoint=False)
        ring = np.column_stack([r * np.cos(angles), r * np.sin(angles), np.full(12, -length)])
        round_by, reach = 0.0, float(np.hypot(r, length))
        if kind == "disc":
            shape, corners = fs.Cylinder(r, length), np.vstack([ring, ring * (1, 1, -1)])
        else:
            shape, corners = fs.Cone(r, length), np.vstack([ring, [(0, 0, length)]])
    elif kind == "mesh":
        half = r * rng.uniform(0.3, 1.0, 3)
        surface = fs.box_triangles(2.0 * half)
        shape, corners, round_by, reach = (
            fs.Mesh(surface.points, surface.triangles),
            signs * half,
            0.0,
            float(np.linalg.norm(half)),
        )
    else:
        half = r * np.array([1.0, 0.3, 0.3])
        other = r * np.array([0.3, 0.3, 1.0])
        shape = fs.Compound([fs.Piece(fs.Box(half)), fs.Piece(fs.Box(other), position=(0, 0, r))])
        corners, round_by, reach = np.vstack([signs * half, signs * other + (0, 0, r)]), 0.0, 2.1 * r
    middle = mass_properties(shape)[1]  # where the pose is
    return Thing(
        f"{name}_{kind}",
        lambda scene, **k: scene.add_rigid(f"{name}_{kind}", shape, density=density, **k),
        reach,
        corners - middle,
        round_by,
    )


def _soft(rng: np.random.Generator, name: str) -> Thing:
    r, kind = _log(rng, 0.015, 0.05), rng.choice(["cube", "ball", "rod"])
    young, nu = _log(rng, 1e4, 1e7), float(rng.choice([0.0, 0.3, 0.45, 0.49]))
    mu = 0.5 * young / (1.0 + nu)
    laws: list[fs.Law] = [
        fs.Corotational(), fs.StableNeoHookean(), fs.StVenantKirchhoff(), fs.MooneyRivlin(0.375 * mu, 0.125 * mu),
        fs.Ogden((0.8 * mu, -0.2 * mu), (2.0, -2.0)),
    ]  # fmt: skip
    law = laws[int(rng.choice(5, p=[0.4, 0.3, 0.1, 0.1, 0.1]))]
    material = fs.Elastic(young, nu, _log(rng, 300.0, 2000.0), law=law)
    element = "quadratic" if rng.random() < 0.25 else "linear"
    n = 2 if element == "quadratic" else int(rng.choice([2, 4]))
    if kind == "cube":
        size = 2.0 * r * rng.uniform(0.5, 1.0, 3)
        mesh, reach = fs.box_tets(size, n), 0.5 * float(np.linalg.norm(size))
    elif kind == "ball":
        mesh, reach = fs.ball_tets(r, n), r
    else:
        mesh, reach = fs.cylinder_tets(0.5 * r, 2.0 * r, (n, 4)), 1.2 * r
    return Thing(
        f"{name}_soft_{kind}",
        lambda scene, **k: scene.add_soft(f"{name}_soft_{kind}", mesh, material, element=element, **k),
        reach,
    )


def _rod(rng: np.random.Generator, name: str) -> Thing:
    r, n = _log(rng, 0.03, 0.1), int(rng.integers(6, 16))
    s = np.linspace(-1.0, 1.0, n)
    points = np.column_stack([r * s, 0.3 * r * np.cos(rng.uniform(0, 3) * s), np.zeros(n)])
    points -= points.mean(axis=0)
    thick = float(rng.uniform(0.03, 0.08)) * r
    material = fs.Elastic(_log(rng, 1e6, 1e9), 0.3, 1200.0)
    contact = str(rng.choice(["centre", "surface"]))

    def add(scene: fs.Scene, position: Any, rotation: Any, velocity: Any, angular_velocity: Any) -> Any:
        there = Rotation.from_rotvec(rotation).apply(points) + position
        move = {"velocity": velocity, "angular_velocity": angular_velocity}
        return scene.add_rod(f"{name}_rod", there, fs.circular_section(thick), material, contact=contact, **move)

    return Thing(f"{name}_rod", add, 1.1 * r)


def draw(seed: int, number: int) -> Drawn:
    """Scene N of a seed."""
    rng = np.random.default_rng((seed, number))
    count = int(rng.choice([1, 2, 3, 4], p=[0.2, 0.4, 0.25, 0.15]))
    makers = rng.choice([_rigid, _soft, _rod], size=count, p=[0.45, 0.4, 0.15])
    things = tuple(make(rng, "abcd"[k]) for k, make in enumerate(makers))
    ground = str(rng.choice(["space", "floor", "slope", "table", "ball"], p=[0.25, 0.35, 0.15, 0.15, 0.1]))
    friction, restitution = float(rng.choice([0.0, 0.3, 0.8])), float(rng.choice([0.0, 0.0, 0.5]))
    settings: dict[str, Any] = {"dt": float(rng.choice([0.002, 0.005, 0.01])), "default_friction": friction}
    if rng.random() < 0.15:  # not 1/2, which stiff bodies explode by, as the docs say
        settings["theta"] = 1.0
    places, height = np.zeros((count, 3)), 0.0
    for k, thing in enumerate(things):
        gap = _log(rng, 1e-4, 2e-2)
        height += thing.radius + gap
        places[k] = (*(rng.uniform(-0.3, 0.3, 2) * thing.radius), height)
        height += thing.radius
    slope = float(rng.uniform(0.05, 0.7))
    if ground == "slope":
        places = Rotation.from_rotvec((slope, 0, 0)).apply(places)
    turns = np.where(rng.random((count, 1)) < 0.7, Rotation.from_quat(rng.standard_normal((count, 4))).as_rotvec(), 0.0)
    fast = float(rng.choice([0.0, 0.3, 2.0]))
    velocities = fast * rng.standard_normal((count, 3)) - np.outer(np.arange(count), (0, 0, fast if ground == "space" else 0.0))
    spins = float(rng.choice([0.0, 3.0, 20.0])) * rng.standard_normal((count, 3))
    joints = []
    for k in range(count - 1):
        if rng.random() < 0.2 and "rod" not in things[k].name + things[k + 1].name:
            joints.append((k, k + 1, str(rng.choice(["weld", "hinge", "ball", "slider"]))))
    return Drawn(settings, ground, slope, friction, restitution, things, places, turns, velocities, spins, tuple(joints))


def _beside(points: np.ndarray, way: np.ndarray) -> np.ndarray:
    """Mark the fifth of the points (n, 3) that is furthest along a way, (n,) bool."""
    along = points @ way
    return np.asarray(along >= np.quantile(along, 0.8))


def build(drawn: Drawn, turned: Rotation, **settings: Any) -> fs.Scene:
    """Make the scene, turned as a whole about the origin."""
    there = turned.apply
    down = np.zeros(3) if drawn.ground == "space" else there((0, 0, -GRAVITY))
    scene = fs.Scene("random", gravity=tuple(down), duration=10.0, **drawn.settings, **settings)
    tilt = Rotation.from_rotvec((drawn.slope, 0, 0)) if drawn.ground == "slope" else Rotation.identity()
    if drawn.ground in ("floor", "slope"):
        scene.add_obstacle("ground", fs.Plane(), rotation=(turned * tilt).as_rotvec())
    elif drawn.ground == "table":
        scene.add_obstacle("ground", fs.Box((0.05, 0.05, 0.05)), position=there((0, 0, -0.05)), rotation=turned.as_rotvec())
    elif drawn.ground == "ball":
        scene.add_obstacle("ground", fs.Sphere(0.1), position=there((0, 0, -0.1)))
    if drawn.ground != "space":
        scene.sensor("ground", "ground")
    for k, thing in enumerate(drawn.things):
        thing.add(
            scene, position=there(drawn.places[k]) , rotation=(turned * Rotation.from_rotvec(drawn.turns[k])).as_rotvec(),
            velocity=tuple(there(drawn.velocities[k])), angular_velocity=tuple(there(drawn.spins[k])),
        )  # fmt: skip
    names = [thing.name for thing in drawn.things]
    if drawn.restitution:
        for k, name in enumerate(names):
            for other in (*names[:k], *(["ground"] if drawn.ground != "space" else [])):
                scene.set_restitution(name, other, drawn.restitution)
    for a, b, kind in drawn.joints:
        middle, axis = there(0.5 * (drawn.places[a] + drawn.places[b])), there((1.0, 0.0, 0.0))
        given: dict[str, Any] = {"axis": tuple(axis)} if kind in ("hinge", "slider") else {}
        first, second = (a, b) if "soft" in names[a] else (b, a)
        if kind == "weld" and "soft" in names[first]:
            given["where"] = partial(_beside, way=there(drawn.places[second] - drawn.places[first]))
        scene.join(names[first], names[second], kind, at=tuple(middle), **given)
    return scene


@dataclass
class Told:
    """What became of a run, step by step; places of nodes and corners at the end, (n, 3), m, turned back."""

    rows: list[dict[str, float]]
    spins: np.ndarray
    momenta: np.ndarray
    scale: tuple[float, float]
    forces: np.ndarray
    least: float
    points: list[np.ndarray]
    seconds: list[float]
    verdict: str
    reasons: list[str]


def _momenta(sim: fs.Simulation) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Momentum and angular momentum of all bodies, and sums of their sizes."""
    system, state = sim.stepper.system, sim.state
    p, spin, size_p, size_spin = np.zeros(3), np.zeros(3), 0.0, 0.0
    for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        own = body.momentum(state.q[q], state.v[v])
        if isinstance(body, SoftBody):
            turning = np.cross(state.q[q].reshape(-1, 3), body.node_mass[:, None] * state.v[v].reshape(-1, 3)).sum(axis=0)
        else:
            turning = body.angular_momentum(state.q[q], state.v[v])  # type: ignore[attr-defined]
        p, spin = p + own, spin + turning
        size_p, size_spin = size_p + float(np.linalg.norm(own)), size_spin + float(np.linalg.norm(turning))
    return p, spin, size_p, size_spin


def _points(drawn: Drawn, sim: fs.Simulation, turned: Rotation) -> list[np.ndarray]:
    """Nodes, links, corners of each thing in the frame in which it was drawn."""
    out = []
    for thing in drawn.things:
        if thing.corners is None:
            points = sim.points(thing.name)
        else:
            rotation, position = sim.pose(thing.name)
            points = thing.corners @ rotation.T + position
        out.append(turned.inv().apply(points))
    return out


def _height(drawn: Drawn, points: list[np.ndarray]) -> float:
    """Least height of nodes, links and corners over the ground, m; only planes are asked, which all things know."""
    if drawn.ground not in ("floor", "slope"):
        return 0.0
    normal = Rotation.from_rotvec((drawn.slope if drawn.ground == "slope" else 0.0, 0, 0)).apply((0, 0, 1.0))
    heights = [
        float((one @ normal).min()) - (thing.round_by if thing.corners is not None else 0.0)
        for thing, one in zip(drawn.things, points, strict=True)
    ]
    return min(heights)


def run(drawn: Drawn, turned: Rotation, steps: int, **settings: Any) -> Told:
    """Run a drawn scene, turned as a whole."""
    with fs.Simulation(build(drawn, turned, **settings)) as sim:
        rows, spins, momenta, forces, seconds, least = [], [], [], [], [], 0.0
        scale = (0.0, 0.0)

        def look() -> tuple[float, float]:
            p, spin, size_p, size_spin = _momenta(sim)
            momenta.append(turned.inv().apply(p))
            spins.append(turned.inv().apply(spin))
            return max(scale[0], size_p), max(scale[1], size_spin)

        scale = look()
        for _ in range(steps):
            began = time.process_time()
            sim.step()
            seconds.append(time.process_time() - began)
            rows.append(sim.row())
            scale = look()
            if drawn.ground != "space":
                forces.append(turned.inv().apply(sim.read("ground").force))
            least = min(least, _height(drawn, _points(drawn, sim, turned)))
            if sum(seconds) > SECONDS:
                break
        points = _points(drawn, sim, turned)
        kept = rows, np.array(spins), np.array(momenta), scale, np.array(forces)
        return Told(*kept, least, points, seconds, sim.verdict, list(sim.reasons))


def check(drawn: Drawn, told: Told) -> list[str]:
    """What nature keeps and the run did not."""
    found = []
    held = np.array([row["kinetic_energy_J"] + row["elastic_energy_J"] + row["potential_energy_J"] for row in told.rows])
    kinetic = np.array([row["kinetic_energy_J"] + row["elastic_energy_J"] for row in told.rows])
    if not np.isfinite(held).all():
        return ["energies are not finite"]
    size = max(kinetic.max(), np.ptp([row["potential_energy_J"] for row in told.rows]), 1e-9)
    gain = np.diff(held).max(initial=0.0) / size
    if gain > ENERGY:
        found.append(f"energy grows by {gain:.2g} of the largest in step {int(np.diff(held).argmax()) + 2}")
    dt = drawn.settings["dt"]
    if drawn.ground == "space":
        pace = float(np.sqrt(2.0 * sum(told_masses(drawn)) * max(row["kinetic_energy_J"] for row in told.rows)))
        lost = np.abs(told.momenta - told.momenta[0]).max() / max(pace, 1e-12)
        if lost > MOMENTUM:
            found.append(f"momentum changes by {lost:.2g}")
        lost = np.abs(told.spins - told.spins[0]).max() / max(told.scale[1], 1e-12)
        if lost > SPIN and drawn.settings.get("theta") != 1.0:  # which brakes what turns
            found.append(f"angular momentum changes by {lost:.2g}")
    else:
        mass = sum(told_masses(drawn))
        weight = np.array((0, 0, -GRAVITY * mass))
        pull = np.diff(told.momenta, axis=0) / dt - weight + told.forces
        wrong = np.abs(pull).max() / max(np.abs(told.forces).max(), GRAVITY * mass)
        if wrong > 1e-5:
            found.append(f"forces on the ground differ from the momentum by {wrong:.2g} of the largest")
    if drawn.ground in ("floor", "slope"):
        normal = Rotation.from_rotvec((drawn.slope if drawn.ground == "slope" else 0.0, 0, 0)).apply((0, 0, 1.0))
        press = -told.forces @ normal
        across = np.linalg.norm(told.forces + np.outer(press, normal), axis=1)
        beyond = (across - drawn.friction * press).max(initial=0.0) / max(press.max(initial=0.0), 1e-9)
        if beyond > 1e-5 or press.min(initial=0.0) < -1e-6 * max(press.max(initial=0.0), 1e-9):
            found.append(f"forces on the ground leave the cone of friction by {beyond:.2g}")
        if told.least < -PLACE * drawn.size:
            found.append(f"something is {-told.least:.2g} m in the ground")
    if max(told.seconds) > STEP_SECONDS:
        found.append(f"a step takes {max(told.seconds):.3g} s")
    return found


def told_masses(drawn: Drawn) -> list[float]:
    """Masses of all things, kg."""
    scene = build(drawn, Rotation.identity())
    return [body.mass for body in scene.bodies]


def _turned(drawn: Drawn, told: Told, steps: int) -> list[str]:
    """What the scene does otherwise where it is turned as a whole, also where its steps are solved sharply."""
    turned = Rotation.from_rotvec((0.4, -0.7, 0.5))
    for sharp in ({}, {"nonlinear_tolerance": 1e-9, "max_solves": 60}):
        one = run(drawn, Rotation.identity(), steps, **sharp) if sharp else told
        other = run(drawn, turned, steps, **sharp)
        if sharp and "good" != one.verdict:
            return []
        if other.verdict != "good":
            said = f"turned it is {other.verdict}: {other.reasons[0]}"
            continue
        apart = max(float(np.abs(a - b).max()) for a, b in zip(one.points, other.points, strict=True)) / drawn.size
        if apart <= TURNED:
            return []
        said = f"turned it ends {apart:.2g} of its size elsewhere"
    return [said]


def examine(seed: int, number: int, steps: int, *, turn: bool) -> dict[str, Any]:
    """Run a scene and tell what was found."""
    out: dict[str, Any] = {"number": number, "found": [], "verdict": "", "reasons": [], "seconds": 0.0}
    began = time.process_time()
    try:
        drawn = draw(seed, number)
        out["scene"] = " ".join(
            [drawn.ground, *(thing.name for thing in drawn.things), *(kind for _, _, kind in drawn.joints), str(drawn.settings)]
        )
        told = run(drawn, Rotation.identity(), steps)
        out["verdict"], out["reasons"], out["found"] = told.verdict, told.reasons, check(drawn, told)
        if turn and told.verdict == "good":
            out["found"] += _turned(drawn, told, steps)
    except (fs.InputError, fs.ContactError, fs.StepFailedError) as error:
        out["verdict"], out["reasons"] = "refused", [str(error)]
    except Exception:
        out["found"].append(traceback.format_exc(limit=-3))
    out["seconds"] = time.process_time() - began
    return out


def report(told: Sequence[dict[str, Any]], options: str) -> str:
    """Say what was found, as a page."""
    verdicts = Counter(one["verdict"] or "error" for one in told)
    said = Counter(kind for one in told if one["verdict"] != "good" for kind in {_kind(reason) for reason in one["reasons"]})
    seconds, found = sum(one["seconds"] for one in told), [one for one in told if one["found"]]
    lines = [
        "# Random scenes", "",
        f"Written by `python tests/fuzz_scenes.py {options}`, {seconds:.0f} s of processor time. The tool says what is drawn and",
        "what it is held against: one to four bodies, thirty steps each, and again turned as a whole what is *good*.", "",
        "| scenes | " + " | ".join(verdicts) + " | with a finding |", "|---" * (len(verdicts) + 2) + "|",
        f"| {len(told)} | " + " | ".join(str(n) for n in verdicts.values()) + f" | {len(found)} |", "",
        "What was said of those that are not *good*:", "",
        *(f"- {count} times: {kind}" for kind, count in said.most_common()), "",
        "Findings:", "",
        *(f"- {one['number']}, {one['verdict']} ({one['scene']}): {'; '.join(one['found'])}" for one in found),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


#: Words by which reasons are counted.
_KINDS = (
    "turns", "sub-steps", "inverted", "went between", "in each other", "came from nowhere", "did not converge",
    "along its surface",
)  # fmt: skip


def _kind(reason: str) -> str:
    """What a reason is about, without its names and numbers."""
    for kind in _KINDS:
        if kind in reason:
            return kind
    return " ".join(word for word in reason.split() if not any(letter.isdigit() or letter in "_'" for letter in word))[:90]


def main(arguments: Sequence[str] | None = None) -> None:
    """Examine scenes and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="no scene begins later")
    parser.add_argument("--no-turn", action="store_true")
    parser.add_argument("--save", type=Path, help="all that was found, as JSON lines")
    parser.add_argument("--report", type=Path, help="the same as a page")
    given = parser.parse_args(arguments)
    began, told = time.monotonic(), []
    examine(given.seed, given.first, 2, turn=False)  # kernels are there for all workers
    with ProcessPoolExecutor(given.workers) as pool:
        waiting, numbers = set(), iter(range(given.first, given.first + given.scenes))
        save = given.save.open("a") if given.save else None
        while True:
            while len(waiting) < 2 * given.workers and time.monotonic() - began < 60.0 * given.minutes:
                number = next(numbers, None)
                if number is None:
                    break
                waiting.add(pool.submit(examine, given.seed, number, given.steps, turn=not given.no_turn))
            if not waiting:
                break
            done = next(as_completed(waiting))
            waiting.discard(done)
            one = done.result()
            told.append(one)
            if save:
                save.write(json.dumps(one) + "\n")
                save.flush()
            if one["found"] or one["verdict"] != "good":
                reasons = [reason[:160] for reason in one["reasons"][:2]]
                print(
                    one["number"], one["verdict"], f"{one['seconds']:.1f} s", one.get("scene"), reasons, one["found"], flush=True
                )
    told.sort(key=lambda one: int(one["number"]))
    if given.report:
        words = f"--scenes {len(told)} --first {given.first} --seed {given.seed} --report {given.report}"
        given.report.write_text(report(told, words))
    found = sum(bool(one["found"]) for one in told)
    print(Counter(one["verdict"] for one in told), f"findings {found}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
