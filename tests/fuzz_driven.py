"""Random scenes of what is driven: robots, drives, holds, chambers, tendons, loads, grippers; held against what nature keeps.

    python tests/fuzz_driven.py --scenes 200 --seed 1

Scene N of a seed is always the same: one to three things side by side, each with what drives it, from ``driven_things.py``.
What is checked is made of sensors and places alone: the work of each drive as its force times the way it moved; the energy in
the table, which may not grow by more; momentum of each body against the forces that its sensors read; forces between two
bodies, which cancel. Then the same again: from a state that was saved, from a file, by a fork, turned as a whole, and by
another solver.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from driven_things import KINDS, Thing, Told
from scipy.spatial.transform import Rotation

import femsim as fs

#: Seconds of processor time that a step may take, and a scene.
STEP_SECONDS, SECONDS = 5.0, 60.0
#: What may go wrong by: energy in a step and work in all, of the largest of the scene, without contact and with it: blows, and
#: what calms hard servos, do their work at the end of a step at another speed than its mean; momentum, of the largest force, as
#: far as steps are solved, by backward Euler beyond the `wrench_balance` in the table (it takes the masses of links where a step
#: begins, which its verdict says); the third law; twins, of 0.1 m, without contact and with it.
ENERGY, WORK = (2e-3, 3e-2), (2e-2, 0.2)
FORCE, OPPOSITE, TWIN = 5e-4, 1e-8, (1e-4, 5e-2)
GRAVITY = 9.81


@dataclass(frozen=True)
class Drawn:
    """A scene as it was drawn."""

    settings: dict[str, Any]
    solver: str
    floor: bool
    things: tuple[tuple[str, Thing], ...]


def draw(seed: int, number: int) -> Drawn:
    """Scene N of a seed."""
    rng = np.random.default_rng((seed, number))
    kinds = rng.choice(list(KINDS), size=int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1])), p=[0.4, 0.15, 0.2, 0.1, 0.15])
    settings: dict[str, Any] = {"dt": [0.002, 0.005, 0.01, "auto"][int(rng.choice(4, p=[0.3, 0.3, 0.3, 0.1]))]}
    if rng.random() < 0.1:
        settings["theta"] = 1.0
    solver = str(rng.choice(["auto", "exact", "cond", "cond-newton"], p=[0.85, 0.05, 0.05, 0.05]))
    return Drawn(settings, solver, bool(rng.random() < 0.8), tuple((str(kind), KINDS[kind](rng)) for kind in kinds))


def build(drawn: Drawn, turned: Rotation, **settings: Any) -> tuple[fs.Scene, Told]:
    """Make the scene, turned as a whole about the origin, and say what to ask it."""
    scene = fs.Scene("driven", gravity=tuple(turned.apply((0, 0, -GRAVITY))), duration=10.0, **drawn.settings, **settings)
    if drawn.floor:
        scene.add_obstacle("ground", fs.Plane(), rotation=turned.as_rotvec())
    told = Told()
    for k, (kind, add) in enumerate(drawn.things):
        one = add(scene, f"{kind}{k}", turned, turned.apply((0.6 * k, 0, 0)))
        told.meters += one.meters
        told.balances += one.balances
        told.opposite += one.opposite
    return scene, told


# ------------------------------------------------------------------ checks


def _momenta(sim: fs.Simulation) -> dict[str, np.ndarray]:
    system, state = sim.stepper.system, sim.state
    slices = zip(system.bodies, system.q_slices, system.v_slices, strict=True)
    return {body.name: np.array(body.momentum(state.q[q], state.v[v])) for body, q, v in slices}


def _energy(row: dict[str, float]) -> float:
    return row["kinetic_energy_J"] + row["elastic_energy_J"] + row["potential_energy_J"]


@dataclass
class Seen:
    """What a run did, step by step, from the second on; q and v at the end and places turned back, m."""

    energy: list[float] = field(default_factory=list)
    size: float = 1e-9
    work: list[float] = field(default_factory=list)
    table: list[float] = field(default_factory=list)
    by_meter: dict[str, float] = field(default_factory=dict)
    unbalanced: tuple[float, str] = (0.0, "")
    apart: tuple[float, str] = (0.0, "")
    seconds: list[float] = field(default_factory=list)
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    verdict: str = ""
    reasons: list[str] = field(default_factory=list)
    touched: bool = False


def look(sim: fs.Simulation, told: Told, turned: Rotation, steps: int) -> Seen:
    """Step a simulation and keep what its sensors and places say."""
    seen, gravity = Seen(), turned.apply((0, 0, -GRAVITY))
    sim.step()
    row, momenta = sim.row(), _momenta(sim)
    places = {meter.name: meter.place(sim) for meter in told.meters}
    masses, dt = {body.name: body.mass for body in sim.stepper.system.bodies}, sim.dt
    seen.energy.append(_energy(row))
    low = high = row["potential_energy_J"]
    for _ in range(steps - 1):
        began = time.process_time()
        sim.step()
        seen.seconds.append(time.process_time() - began)
        before, row, was, momenta = row, sim.row(), momenta, _momenta(sim)
        work = 0.0
        for meter in told.meters:
            there = meter.place(sim)
            done = meter.work(sim, places[meter.name], there)
            places[meter.name], work = there, work + done
            seen.by_meter[meter.name] = seen.by_meter.get(meter.name, 0.0) + done
        seen.energy.append(_energy(row))
        seen.work.append(work)
        given = row["work_J"] - before["work_J"] + row["joint_loss_J"] - before["joint_loss_J"]
        seen.table.append(given + row["potential_energy_J"] - before["potential_energy_J"])
        low, high = min(low, row["potential_energy_J"]), max(high, row["potential_energy_J"])
        largest = row["kinetic_energy_J"] + row["elastic_energy_J"]
        seen.size = max(seen.size, largest, high - low, abs(sum(seen.work)))
        seen.touched |= row["contacts"] > 0
        for body, sensors, load in told.balances:
            forces = np.array([sim.read(sensor).force for sensor in sensors])
            outside = forces.sum(axis=0) + load + masses[body] * gravity
            rate = (momenta[body] - was[body]) / dt
            scale = max(np.abs(forces).max(), GRAVITY * masses[body])
            said = row["wrench_balance"] if row["theta"] == 1.0 else 0.0
            lacking = float(np.abs(rate - outside).max() / scale) - said
            seen.unbalanced = max(seen.unbalanced, (lacking, body))
        for one, other in told.opposite:
            a, b = sim.read(one).force, sim.read(other).force
            seen.apart = max(seen.apart, (float(np.abs(a + b).max() / max(np.abs(a).max(), 1e-3)), one))
        if sum(seen.seconds) > SECONDS:
            break
    seen.points, seen.verdict, seen.reasons = _points(sim, turned), sim.verdict, list(sim.reasons)
    return seen


def _points(sim: fs.Simulation, turned: Rotation) -> np.ndarray:
    """Nodes, centres of links and points 0.1 m along their axes, turned back, (n, 3), m."""
    out, scene = [], sim.stepper.scene
    for part in scene.parts:
        if part.body >= 0 and part.name in scene.rigid_parts():
            turn, place = sim.pose(part.name)
            out.append(place + 0.1 * np.vstack([turn.T, np.zeros(3)]))
        elif part.body >= 0:
            out.append(sim.points(part.name))
    return np.asarray(turned.inv().apply(np.vstack(out)))


def check(drawn: Drawn, seen: Seen) -> list[str]:
    """What nature keeps and the run did not."""
    found, energy, work, table = [], np.array(seen.energy), np.array(seen.work), np.array(seen.table)
    if not (np.isfinite(energy).all() and np.isfinite(work).all()):
        return ["energies are not finite"]
    gained = np.diff(energy) - work
    if gained.max(initial=0.0) > ENERGY[seen.touched] * seen.size:
        found.append(f"energy grows by {gained.max() / seen.size:.2g} of the largest in step {int(gained.argmax()) + 2}")
    away = np.abs(np.cumsum(table - work)).max(initial=0.0) / seen.size
    if away > WORK[seen.touched]:
        k = int(np.abs(table - work).argmax())
        found.append(f"work in the table differs by {away:.2g} of the largest from that of sensors, most in step {k + 2}")
    if seen.unbalanced[0] > FORCE:
        found.append(f"forces on {seen.unbalanced[1]} differ from the change of its momentum by {seen.unbalanced[0]:.2g}")
    if seen.apart[0] > OPPOSITE:
        found.append(f"forces of {seen.apart[1]} and its opposite differ by {seen.apart[0]:.2g}")
    if seen.seconds and max(seen.seconds) > STEP_SECONDS:
        found.append(f"a step takes {max(seen.seconds):.3g} s")
    return found


# ------------------------------------------------------------------ twins


def _bits(sim: fs.Simulation) -> bytes:
    """All that a twin must have alike: coordinates, velocities, and the tables but for their times."""
    row = [value for name, value in sim.row().items() if not name.startswith("ms_")]
    return sim.state.q.tobytes() + sim.state.v.tobytes() + np.array(row).tobytes()


def same_bits(drawn: Drawn, steps: int) -> list[str]:
    """Go on from the middle of a run: as it does, restored, as a fork, and read from a file by another simulation."""
    found, straight = [], Rotation.identity()
    with (
        fs.Simulation(build(drawn, straight)[0], drawn.solver) as sim,
        fs.Simulation(build(drawn, straight)[0], drawn.solver) as other,
        tempfile.TemporaryDirectory() as folder,
    ):
        sim.step(steps)
        saved, twin = sim.save(), sim.fork()
        saved.write(Path(folder) / "saved.npz")
        went = _bits(sim.step(steps))
        sim.restore(saved)
        if _bits(sim.step(steps)) != went:
            found.append("restored, it goes on otherwise")
        if _bits(twin.step(steps)) != went:
            found.append("a fork goes on otherwise")
        other.restore(fs.Saved.read(Path(folder) / "saved.npz"))
        if _bits(other.step(steps)) != went:
            found.append("from a file, it goes on otherwise")
        sim.reset()
        sim.step(steps)
        if not np.array_equal(sim.state.q, saved.state.q):
            found.append("reset, it begins otherwise")
    return found


def run(drawn: Drawn, turned: Rotation, steps: int, solver: str | None = None, **settings: Any) -> Seen:
    """Run a drawn scene, turned as a whole."""
    scene, told = build(drawn, turned, **settings)
    with fs.Simulation(scene, solver or drawn.solver) as sim:
        return look(sim, told, turned, steps)


def twins(drawn: Drawn, seen: Seen, steps: int) -> list[str]:
    """Run it turned, and by another solver; where they differ, both sharply."""
    found, turned = [], Rotation.from_rotvec((0.4, -0.7, 0.5))
    sharp = {"nonlinear_tolerance": 1e-9, "max_solves": 60}
    solver = "exact" if drawn.solver != "exact" else "auto"
    for name, way, other, most in (
        ("turned", turned, drawn.solver, TWIN[seen.touched]),
        (f"by {solver}", Rotation.identity(), solver, TWIN[seen.touched]),
    ):
        said = ""
        for options in ({}, sharp):
            first = run(drawn, Rotation.identity(), steps, **options) if options else seen
            second = run(drawn, way, steps, other, **options)
            if options and first.verdict != "good":
                said = ""
            elif second.verdict != "good":
                said = f"{name} it is {second.verdict}: {second.reasons[0]}"
                continue
            elif (apart := float(np.abs(first.points - second.points).max()) / 0.1) > most:
                said = f"{name} it ends {apart:.2g} of 0.1 m elsewhere"
                continue
            else:
                said = ""
            break
        found += [said] if said else []
    return found


def examine(seed: int, number: int, steps: int, *, twin: bool) -> dict[str, Any]:
    """Run a scene and tell what was found."""
    out: dict[str, Any] = {"number": number, "found": [], "verdict": "", "reasons": [], "seconds": 0.0, "scene": ""}
    began = time.process_time()
    try:
        drawn = draw(seed, number)
        kinds = [kind for kind, _ in drawn.things]
        out["kinds"], out["scene"] = kinds, " ".join([*kinds, drawn.solver, "floor" * drawn.floor, str(drawn.settings)])
        seen = run(drawn, Rotation.identity(), steps)
        out["verdict"], out["reasons"], out["found"] = seen.verdict, seen.reasons, check(drawn, seen)
        out["work"] = {name: float(f"{value:.3g}") for name, value in seen.by_meter.items()}
        if twin:
            out["found"] += same_bits(drawn, max(2, steps // 4))
            out["found"] += twins(drawn, seen, steps) if seen.verdict == "good" else []
    except (fs.InputError, fs.ContactError, fs.StepFailedError) as error:
        out["verdict"], out["reasons"] = out["verdict"] or "refused", [*out["reasons"], str(error)]
    except Exception:
        out["found"].append(traceback.format_exc(limit=-3))
    out["seconds"] = time.process_time() - began
    return out


def table(told: Sequence[dict[str, Any]]) -> str:
    """Count verdicts and findings by kind; a scene of two kinds counts twice."""
    verdicts = ("good", "doubtful", "wrong", "refused")
    lines = ["| kind | scenes | " + " | ".join(verdicts) + " | with a finding |", "|---" * (len(verdicts) + 3) + "|"]
    for kind in KINDS:
        own = [one for one in told if kind in one.get("kinds", ())]
        count = Counter(one["verdict"] for one in own)
        numbers = [len(own), *(count[verdict] for verdict in verdicts), sum(bool(one["found"]) for one in own)]
        lines.append(f"| {kind} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Examine scenes and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=1e9, help="no scene begins later")
    parser.add_argument("--no-twin", action="store_true")
    parser.add_argument("--save", type=Path, help="all that was found, as JSON lines")
    given = parser.parse_args(arguments)
    began, told = time.monotonic(), []
    for number in range(given.first, given.first + given.scenes):
        if time.monotonic() - began > 60.0 * given.minutes:
            break
        one = examine(given.seed, number, given.steps, twin=not given.no_twin)
        told.append(one)
        if given.save:
            with given.save.open("a") as file:
                file.write(json.dumps(one) + "\n")
        if one["found"] or one["verdict"] != "good":
            reasons = [reason[:160] for reason in one["reasons"][:2]]
            print(number, one["verdict"], f"{one['seconds']:.1f} s", one["scene"], reasons, one["found"], flush=True)
    print(table(told))
    print(f"{len(told)} scenes, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
