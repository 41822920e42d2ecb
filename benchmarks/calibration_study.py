"""Are the intervals of a calibration true? E, nu and friction of a squeezed ball from noisy logs of forces.

Logs are made from one run of scenes/squeezed_ball.py (mesh of 343 nodes) at the true values, with noise of another seed for each
calibration; forces of both fingers and the floor, on the clock of the run. Runs are shared between the calibrations.

    python benchmarks/calibration_study.py [--seeds 10] [--workers 2] [--out runs/calibration_study] [--picture FILE.png] [--more]

--more asks for profiles and bootstrap as well. Prints a row a seed and how often the truth lies inside the intervals, and writes
them to OUT/study.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import femsim as fs

TRUE = {"young_modulus": 1.2e5, "poisson_ratio": 0.38, "friction": 0.45}
BOUNDS = {"young_modulus": (5e4, 3e5), "poisson_ratio": (0.2, 0.47), "friction": (0.1, 0.9)}
NOISE_N = 0.02
SENSORS = ("left", "right", "floor")


def write_inputs(folder: Path, run: fs.Run, seed: int, *, more: bool = False) -> Path:
    """Write logs with noise of a seed, and the calibration file; `more` asks for profiles and bootstrap."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    readings = []
    for name in SENSORS:
        series = run.sensors[name]
        table = np.column_stack([series.time, series.force + rng.normal(0.0, NOISE_N, series.force.shape)])
        np.savetxt(folder / f"{name}.csv", table, delimiter=",", header="t,Fx,Fy,Fz", comments="", fmt="%.9g")
        card = f"{{ time = {{ offset = {series.time[0]:.9g} }} }}"
        readings.append(f'{{ logs = ["{name}.csv"], sensor = "{name}", card = {card} }}')
    free = "\n".join(
        f'{name} = {{ between = [{low}, {high}], scale = "{"log" if high > 10 else "linear"}" }}'
        for name, (low, high) in BOUNDS.items()
    )
    path = folder / "study.toml"
    path.write_text(
        f'scene = "squeezed_ball"\n[free]\n{free}\n[search]\nmethod = "sobol"\nevaluations = 32\nbatch = 16\n'
        + ('[intervals]\nmethods = ["profile", "bootstrap"]\n' if more else "")
        + f'[[experiments]]\nname = "squeeze"\nreadings = [{", ".join(readings)}]\n',
        encoding="utf-8",
    )
    return path


def draw(rows: list[dict[str, object]], path: Path) -> None:
    """Draw estimates and intervals over the seeds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 2.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, (name, true) in zip(figure.subplots(1, 3), TRUE.items(), strict=True):
        for row in rows:
            for kind, width in (("joint_intervals", 1.0), ("intervals", 3.0)):
                low, high = row[kind][name]  # type: ignore[index]
                axis.plot([row["seed"]] * 2, [low, high], color="#1f6fb4", linewidth=width, alpha=0.6)
            axis.plot(row["seed"], row["values"][name], "o", color="#1f6fb4", markersize=3)  # type: ignore[index]
        axis.axhline(true, color="#d1602a", linewidth=1.0)
        axis.set_title(name.replace("_", " ") + (" [Pa]" if true > 10 else " [1]"), loc="left", fontsize=9)
        axis.set_xlabel("seed of the noise")
        axis.tick_params(labelsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/calibration_study"))
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--more", action="store_true")
    options = parser.parse_args()
    kinds = ["intervals", *(["profile_intervals", "bootstrap_intervals"] if options.more else [])]
    truth = fs.simulate(fs.load_scene("squeezed_ball", **TRUE))
    rows: list[dict[str, object]] = []
    for seed in range(options.seeds):
        began = time.perf_counter()
        folder = options.out / f"seed_{seed}"
        path = write_inputs(folder, truth, seed, more=options.more)
        result = fs.calibrate(path, out=folder / "fit", cases=options.out / "cases", resume=True, workers=options.workers)
        found = {kind: getattr(result, kind) for kind in [*kinds, "joint_intervals"]}
        inside = {
            kind: {n: bool(pairs[n][0] <= true <= pairs[n][1]) for n, true in TRUE.items()} for kind, pairs in found.items()
        }
        rows.append({
            "seed": seed, "status": result.status, "values": result.values, **found, "inside": inside,
            "all_inside_joint": all(inside["joint_intervals"].values()), "warnings": list(result.warnings),
            "evaluations": result.evaluations, "cases_run": result.cases, "wall_s": time.perf_counter() - began,
        })  # fmt: skip
        errors = ", ".join(f"{n} {100 * (result.values[n] / true - 1):+.2f} %" for n, true in TRUE.items())
        print(
            f"seed {seed}: {result.status}, {errors}; "
            + ", ".join(f"{kind} {list(hits.values())}" for kind, hits in inside.items()),
            flush=True,
        )
        partial = options.out / ".study.json"
        partial.write_text(json.dumps({"true": TRUE, "noise_N": NOISE_N, "rows": rows}, indent=2), encoding="utf-8")
        partial.replace(options.out / "study.json")
    for kind in kinds:
        for name in TRUE:
            hits = sum(row["inside"][kind][name] for row in rows)  # type: ignore[index]
            print(f"{name}: truth inside its {kind.removesuffix('s').replace('_', ' ')} in {hits} of {len(rows)}")
    print(
        f"all three inside the intervals for all at once in {sum(bool(row['all_inside_joint']) for row in rows)} of {len(rows)}"
    )
    if options.picture:
        draw(rows, options.picture)


if __name__ == "__main__":
    main()
