"""Times a step of scenes of all sizes beside what they took at commit 444f2af and what they should take; writes the table.

    python -m benchmarks.bench_scale                             # all but the largest, about ten minutes
    python -m benchmarks.bench_scale rope pile --checkout FOLDER # some rows, in turns with another checkout of this repository
    python -m benchmarks.bench_scale --full --write data/results/scale.md

Each row is measured in fresh processes, one thread, CPU time of ``take_step``, steps at the start left out. ``--repeat`` of them
are run, in turns with those of the other checkout; the least mean of a process counts. With a checkout of 444f2af the quotient of
what it takes and what it took says how busy the machine is.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

# one thread, before numpy is imported; and the packages of a checkout, by default that of this folder
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, os.environ.get("FEMSIM_CHECKOUT", sys.path[0]))

import benchmarks

# the scenes are those of this folder, also where the other checkout has fewer
benchmarks.__path__ = [str(Path(__file__).resolve().parent)]

import femsim as fs  # noqa: E402
from benchmarks import scale_scenes as scenes  # noqa: E402
from contact import make_solver  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- scale -->", "<!-- end scale -->"


@dataclass(frozen=True)
class Row:
    """A line of the table: a scene, its steps, and CPU ms a step: at 444f2af (0: not there), that must and should be.

    ``nodes`` is for the growth of the pressed cube; ``big`` rows need ``--full``.
    """

    name: str
    build: Callable[[], fs.Scene]
    then: float
    must: float
    aim: float | None
    steps: int = 60
    first: int = 6
    nodes: int = 0
    big: bool = False


ROWS = {
    "ball": Row("ball of 1480 nodes, main job", partial(scenes.shipped, "soft_ball_gripping"), 8.0, 5.0, 3.0, 194),
    "finger": Row("finger of 4760 nodes that pushes a box", scenes.finger, 173.0, 35.0, 20.0, 20),
    "gripper": Row("soft gripper", partial(scenes.shipped, "soft_gripper"), 29.0, 20.0, 12.0, 60),
    "mat": Row("mat of 1458 nodes pulled, 729 contacts", partial(scenes.mat, 26), 10.6, 7.0, 4.0, 40, 14),
    "mat10k": Row("mat of 10 082 nodes pulled", partial(scenes.mat, 70), 322.0, 100.0, 50.0, 6, 14, big=True),
    "mat50k": Row("mat of 49 928 nodes pulled", partial(scenes.mat, 157), 7015.0, 700.0, 350.0, 3, 14, big=True),
    "cube1k": Row("pressed cube, 1000 nodes", partial(scenes.pressed_cube, 9), 12.4, 12.4, None, 20, 6, 1000),
    "cube10k": Row("pressed cube, 10 648 nodes", partial(scenes.pressed_cube, 21), 210.0, 140.0, 80.0, 20, 6, 10648),
    "cube30k": Row("pressed cube, 29 791 nodes", partial(scenes.pressed_cube, 30), 1170.0, 600.0, 300.0, 8, 6, 29791, big=True),
    "cube80k": Row("pressed cube, 79 507 nodes", partial(scenes.pressed_cube, 42), 8548.0, 2200.0, 1000.0, 4, 6, 79507, big=True),
    "pile20": Row("pile of 20 cubes of 125 nodes", partial(scenes.pile, 20), 414.0, 120.0, 60.0, 20),
    "pile50": Row("pile of 50 cubes of 125 nodes", partial(scenes.pile, 50), 10300.0, 600.0, 200.0, 5, big=True),
    "rope320": Row("rope of 320 links dragged", partial(scenes.rope, 320), 5.6, 1.5, None, 40),
    "rope1000": Row("rope of 1000 links dragged", partial(scenes.rope, 1000), 345.0, 5.0, None, 20),
    "rope2500": Row("rope of 2500 links dragged", partial(scenes.rope, 2500), 8166.0, 15.0, None, 10, big=True),
    "cable160": Row("cable of 160 links", partial(scenes.cable, 160), 0.58, 0.40, 0.25, 150),
    "cable320": Row("cable of 320 links", partial(scenes.cable, 320), 0.78, 0.60, 0.40, 150),
    "box": Row("rigid box sliding", scenes.box, 0.74, 0.25, 0.1, 200, 40),
    "boxarm": Row("... beside an arm of 7 joints and a gripper, 8 servos", scenes.box_and_arm, 0.0, 0.40, None, 200, 40),
    "quadrupeds": Row("27 quadrupeds on a floor, 486 velocities", partial(scenes.quadrupeds, 27), 0.0, 10.0, None, 100, 20),
    "held": Row("cube of 27 nodes dragged by 9 of them, held exactly", scenes.led_cube, 0.0, 7.0, None, 50, 10),
    "springheld": Row("... held by a spring", partial(scenes.led_cube, stiffness=(500.0, 20.0)), 0.0, 10.5, None, 50, 10),
    "cube27": Row("cube of 27 nodes in a gripper", scenes.gripped_cube, 1.10, 0.5, 0.3, 180, 10),
}
#: Output of the main job: CPU ms a step that the default output adds.
OUTPUT = ("output", "what default output adds to the main job", 2.2, 0.7)


def measure(name: str) -> dict[str, Any]:
    """Measure a row in this process: CPU ms a step, which solver answered how many steps, and how many did not converge."""
    if name == OUTPUT[0]:
        return measure_output()
    row, found = ROWS[name], []
    picked: Counter[str] = Counter()
    bad = solves = 0
    stepper, take = _stepper(row.build())
    for _ in range(row.first):
        take(stepper)
    for _ in range(row.steps):
        started = time.process_time()
        report = take(stepper)
        found.append(1e3 * (time.process_time() - started))
        picked[report.solution.details.get("picked", "?")] += 1
        bad += not report.solution.converged
        solves += getattr(report, "solves", 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return {
        "mean": statistics.fmean(found), "median": statistics.median(found), "worst": max(found), "bad": bad,
        "solves": solves / row.steps, "picked": dict(picked), "memory": memory,
    }  # fmt: skip


def _stepper(scene: fs.Scene) -> tuple[Any, Callable[[Any], Any]]:
    """Return a stepper and what takes a step, by the names of this version or by those of 444f2af."""
    try:
        from femsim.step.advance import take_step
        from femsim.step.stepper import Stepper
    except ImportError:
        import importlib

        own = importlib.import_module("femsim.stepper").Stepper
        return own(scene, make_solver("auto")), lambda stepper: stepper.step()
    return Stepper(scene, make_solver("auto")), take_step


def measure_output() -> dict[str, Any]:
    """CPU ms a step that the default output of a run adds to the main job, the least of three pairs."""
    added = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            spent = []
            for out in (None, Path(folder) / "run"):
                started = time.process_time()
                run = fs.simulate(scenes.shipped("soft_ball_gripping"), out=out)
                spent.append(1e3 * (time.process_time() - started) / len(run.steps["time_s"]))
        added.append(spent[1] - spent[0])
    nothing: dict[str, Any] = {"bad": 0, "picked": {}, "solves": 1.0, "memory": 0.0}
    return {"mean": min(added), "median": statistics.median(added), "worst": max(added), **nothing}


def in_process(name: str, checkout: Path) -> dict[str, Any]:
    """Measure a row in a fresh process with the packages of a checkout."""
    environment = os.environ | {"FEMSIM_CHECKOUT": str(checkout), "PYTHONPATH": str(checkout)}
    asked = [sys.executable, str(Path(__file__).resolve()), name, "--here"]
    done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} with {checkout} failed:\n{done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def best(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Measurement with the least mean."""
    return min(found, key=lambda one: float(one["mean"]))


def figure(ms: float) -> str:
    """Milliseconds to three digits."""
    return f"{ms:.0f}" if ms >= 100 else f"{ms:.3g}"


def verdict(ms: float, must: float, aim: float | None, busy: float) -> str:
    """Whether a target is reached, by the time that this row would take where the machine is not busy."""
    quiet = ms / busy
    if aim is not None and quiet <= aim:
        return "aim reached"
    return "reached" if quiet <= must else f"{quiet / must:.1f} times too much"


def line(name: str, now: dict[str, Any], other: dict[str, Any] | None) -> str:
    """Row of the table."""
    if name == OUTPUT[0]:
        title, then, must, aim = OUTPUT[1], OUTPUT[2], OUTPUT[3], None
    else:
        row = ROWS[name]
        title, then, must, aim = row.name, row.then, row.must, row.aim
    busy = 1.0 if other is None or not then else max(other["mean"] / then, 1e-9)
    ran = ", ".join(f"`{solver}` {steps}" for solver, steps in now["picked"].items()) or "-"
    cells = [
        title, figure(then) if then else "-", "-" if other is None else figure(other["mean"]),
        f"{figure(now['mean'])} / {figure(now['median'])} / {figure(now['worst'])}",
        "-" if other is None else f"{now['mean'] / other['mean']:.2f}", figure(must), "-" if aim is None else figure(aim),
        verdict(now["mean"], must, aim, busy), f"{now['solves']:.2g}", ran, str(now["bad"]),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def growth(found: dict[str, dict[str, Any]]) -> str:
    """Sentence on the exponent by which the pressed cube grows with its nodes; empty for less than two sizes."""
    sizes = [(ROWS[name].nodes, now["mean"]) for name, now in found.items() if name in ROWS and ROWS[name].nodes]
    if len(sizes) < 2:
        return ""
    import numpy as np

    exponent = np.polyfit(*np.log(np.array(sizes)).T, 1)[0]
    return (
        f"The pressed cube grows as n^{exponent:.2f} from {sizes[0][0]} to {sizes[-1][0]} nodes: must 1.25, aim 1.1, then 1.48."
    )


def table(now: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> str:
    """Return the table and what follows from it."""
    heads = (
        "work", "444f2af, quiet", "444f2af beside", "now: mean / median / worst", "now / then", "must", "aim", "must, if quiet",
        "solves a step", "answered", "not converged",
    )  # fmt: skip
    rows = [line(name, found, other.get(name)) for name, found in now.items()]
    text = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *rows]
    said = growth(now)
    return "\n".join([*text, "", said] if said else text)


def write(path: Path, text: str) -> None:
    """Replace what stands between the marks of a page."""
    page = path.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    path.write_text(f"{before}{START}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help=f"rows whose names begin so; default all: {', '.join([*ROWS, OUTPUT[0]])}")
    parser.add_argument("--checkout", type=Path, help="another checkout, measured in turns")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="the largest scenes too")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    parser.add_argument("--here", action="store_true", help="measure one row in this process and print JSON")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.rows[0])))
        return
    every = [name for name in [*ROWS, OUTPUT[0]] if options.full or name in options.rows or not (name in ROWS and ROWS[name].big)]
    names = [name for name in every if not options.rows or name.startswith(tuple(options.rows))]
    now: dict[str, dict[str, Any]] = {}
    other: dict[str, dict[str, Any]] = {}
    for name in names:
        both: tuple[list[dict[str, Any]], list[dict[str, Any]]] = ([], [])
        for _ in range(options.repeat):
            both[0].append(in_process(name, ROOT))
            if options.checkout:
                both[1].append(in_process(name, options.checkout.resolve()))
        now[name] = best(both[0])
        if both[1]:
            other[name] = best(both[1])
        print(line(name, now[name], other.get(name)), flush=True)
    text = table(now, other)
    print(f"\n{text}")
    if options.write:
        write(options.write, text)


if __name__ == "__main__":
    main()
