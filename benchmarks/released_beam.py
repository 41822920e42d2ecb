"""What data/results/checks.md says of the beam beside `femsim calibrate`: its rest, and its damping at other time steps.

    python benchmarks/released_beam.py rest     # fits modulus, pitch and the hand to both rests; two minutes
    python benchmarks/released_beam.py trials   # what both trials of each log say of it, at once
    python benchmarks/released_beam.py steps    # runs at 5, 2 and 1 ms; five minutes

Both read scenes/released_beam.py and data/logs/beam_*.csv.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

import femsim as fs

ROOT = Path(__file__).resolve().parents[1]
SCENE = ROOT / "scenes" / "released_beam.py"
LOADS = {"gravity": 0.0, "load52": 0.51012}
CAPTURE = np.array([[0, 0, 1], [0, -1, 0], [1, 0, 0]])
#: What a rest is known to, mm; and what is known before any rest is seen: height of the hand and its distance from the end, mm,
#: and pitch, deg.
KNOWN = {"gravity": 0.1, "load52": 0.2}
HEIGHT, GRIP, PITCH = (0.0, 0.3), (10.0, 10.0), (6.6, 0.3)


def rest_of_trials(name: str) -> NDArray[np.float64]:
    """Displacement of the three markers from the hand to the last second of both trials, (2, 3, 3), mm."""
    out = []
    for trial in "ab":
        with (ROOT / "data" / "logs" / f"beam_{name}_V2_{trial}.csv").open(encoding="utf-8") as file:
            rows = np.array(list(csv.reader(file))[1:], dtype=np.float64)
        places = 1e3 * rows[:, 1:10].reshape(-1, 3, 3) @ CAPTURE.T
        out.append(places[-100:].mean(axis=0) - places[20:40].mean(axis=0))
    return np.array(out)


def measured_rest(name: str) -> NDArray[np.float64]:
    """Displacement of the three markers in the last second, mean of both trials, (3, 3), mm."""
    return np.asarray(rest_of_trials(name).mean(axis=0))


def show_trials() -> None:
    """Print the way to rest of each marker along x and z: mean of the trials, each trial, and half of what they differ by."""
    for name in LOADS:
        trials = rest_of_trials(name)
        for axis, column in (("z", 2), ("x", 0)):
            for marker, (a, b) in enumerate(trials[:, :, column].T, start=1):
                print(f"{name} {axis} tip_{marker}: {0.5 * (a + b):.3f} ({a:.3f}, {b:.3f}), +- {0.5 * abs(a - b):.3f} mm")


def rest(load: float, modulus: float, held: float, grip: float, pitch: float) -> NDArray[np.float64]:
    """Displacement of the three markers from the hand to rest, (3, 3), mm; by long steps that damp every swing."""
    scene = fs.load_scene(
        SCENE, load=load, young_modulus=1e3 * modulus, held=1e-3 * held, grip=1e-3 * grip, pitch=pitch,
        dt=0.3, theta=1.0, hold_time=0.0,
    )  # fmt: skip
    body = scene.body("beam")
    start = body.initial_q().reshape(-1, 3)
    glued = [sensor.marker for sensor in scene.sensors if sensor.marker is not None]
    run = fs.simulate(scene, duration=12.0)
    ends = [marker.position[-1] for marker in run.markers.values()]
    return 1e3 * np.array([end - start[list(m.points)].T @ m.weights for end, m in zip(ends, glued, strict=True)])


def fit_rest() -> None:
    """Fit modulus (kPa), the hand in both experiments (heights and distance from the end, mm) and pitch (deg); say the rest."""
    names = list(LOADS)
    seen = {name: measured_rest(name) for name in names}

    def errors(values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        modulus, *heights, grip, pitch = values
        found = {n: rest(LOADS[n], modulus, height, grip, pitch) for n, height in zip(names, heights, strict=True)}
        return {n: (found[n] - seen[n])[:, [0, 2]] for n in names}

    def residual(values: NDArray[np.float64]) -> NDArray[np.float64]:
        parts = [error.ravel() / KNOWN[name] for name, error in errors(values).items()]
        known = (HEIGHT, HEIGHT, GRIP, PITCH)
        prior = [(value - mean) / error for value, (mean, error) in zip(values[1:], known, strict=True)]
        return np.concatenate([*parts, prior])

    fit = least_squares(
        residual, [260.0, 0.1, 0.1, 8.0, 6.6], x_scale=[10, 0.3, 0.3, 5, 1], diff_step=[1e-3, 0.5, 0.5, 0.1, 0.01], max_nfev=8
    )
    deviation = np.sqrt(np.diag(np.linalg.inv(fit.jac.T @ fit.jac)))
    for what, value, error in zip(
        ("modulus kPa", "held alone mm", "held with weight mm", "grip mm", "pitch deg"), fit.x, deviation, strict=True
    ):
        print(f"{what:20} {value:8.3f} +- {error:.3f}")
    for name, error in errors(fit.x).items():
        way = np.linalg.norm(seen[name][:, [0, 2]], axis=1)
        for k in range(3):
            x, z = error[k]
            x_seen, _, z_seen = seen[name][k]
            print(
                f"{name} tip_{k + 1}: "
                f"x {x_seen:7.3f} mm {x:+.3f} ({100 * x / x_seen:+.1f} %, {100 * x / way[k]:+.1f} % of its way), "
                f"z {z_seen:7.3f} mm {z:+.3f} ({100 * z / z_seen:+.1f} %)"
            )


def heights(load: float, dt: float, **parts: float) -> NDArray[np.float64]:
    """Mean height of the markers every 10 ms for 0.8 s, mm."""
    run = fs.simulate(fs.load_scene(SCENE, load=load, dt=dt, **parts), duration=0.8)
    every = round(0.01 / dt)
    return np.asarray(1e3 * np.mean([m.position[every - 1 :: every, 2] for m in run.markers.values()], axis=0))


def compare_steps() -> None:
    """Say which change of the Prony parts a shorter step amounts to: least squares with derivatives at 5 ms."""
    own = {
        f"g_{name}": g
        for name, (g, _) in zip(("fast", "middle", "slow"), fs.material("dragon_skin_10_beam").elastic().prony, strict=True)
    }
    base = {name: heights(load, 0.005) for name, load in LOADS.items()}
    slopes = [
        np.concatenate([(heights(load, 0.005, **{part: g + 0.01}) - base[name]) / 0.01 for name, load in LOADS.items()])
        for part, g in own.items()
    ]  # fmt: skip
    for dt in (0.002, 0.001):
        change = {name: heights(load, dt) - base[name] for name, load in LOADS.items()}
        shift = np.linalg.lstsq(np.column_stack(slopes), np.concatenate(list(change.values())), rcond=None)[0]
        rms = ", ".join(f"{name} {np.sqrt(np.mean(c**2)):.3f} mm" for name, c in change.items())
        print(
            f"{1e3 * dt:g} ms: differs by {rms} RMS; as if",
            *(f"{p} {g:.4f} {s:+.4f}" for (p, g), s in zip(own.items(), shift, strict=True)),
        )


if __name__ == "__main__":
    {"rest": fit_rest, "trials": show_trials, "steps": compare_steps}[sys.argv[1]]()
