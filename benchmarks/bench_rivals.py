"""Times femsim beside MuJoCo and Drake on the same box, mat and ball, with what each makes of contact.

    python benchmarks/bench_rivals.py [--only box,mat,ball] [--repeat N] [--write FILE]

See README.md of this folder. The cable has a benchmark of its own, ``bench_cable.py``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from functools import partial
from pathlib import Path

# one thread, before numpy is imported; and the packages of this folder's own checkout
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import femsim as fs
from benchmarks import rival_drake, rival_mujoco, rival_tasks as tasks
from benchmarks.rival_tasks import Result, Run, Task, timed
from contact import make_solver
from femsim.step.advance import take_step
from femsim.step.stepper import Stepper

START, END = "<!-- rivals -->", "<!-- end rivals -->"


def ours_box(task: Task, force: float) -> Result:
    """Our box."""
    scene = fs.Scene("box", dt=task.dt, duration=task.dt * task.steps, default_friction=tasks.BOX_FRICTION)
    scene.add_floor()
    shape = fs.Box((tasks.BOX_HALF,) * 3)
    scene.add_rigid(
        "box", shape, mass=tasks.BOX_MASS, position=(0.0, 0.0, tasks.BOX_HALF), load=lambda _t: ((force, 0.0, 0.0), (0.0,) * 3)
    )
    stepper, way, heights = Stepper(scene, make_solver("auto")), [], []

    def look(_: int) -> None:
        way.append(float(stepper.state.q[0]))
        heights.append(float(stepper.state.q[2]))

    times = timed(partial(take_step, stepper), task, look)
    return Result("femsim", *times, tasks.box_quality(task, force, way, heights))


def ours_mat(task: Task, force: float) -> Result:
    """Our mat."""
    scene = fs.Scene("mat", dt=task.dt, duration=task.dt * task.steps, theta=1.0)
    scene.add_floor()
    mat = scene.add_soft(
        "mat", tasks.mat_mesh(), tasks.MAT, position=(0.0, 0.0, tasks.MAT_HEIGHT / 2), load=lambda _t: (force, 0.0, 0.0)
    )
    scene.set_friction(mat, "floor", tasks.MAT_FRICTION)
    stepper, place, depth = Stepper(scene, make_solver("auto")), [], []

    def look(_: int) -> None:
        points = stepper.state.q.reshape(-1, 3)
        place.append(float(points[:, 0].mean()))
        depth.append(-float(points[:, 2].min()))

    times = timed(partial(take_step, stepper), task, look)
    return Result("femsim", *times, tasks.mat_quality(task, force, place, depth))


#: The main job, whose numbers are those of the ball.
SCENE = Path(__file__).resolve().parents[1] / "scenes" / "soft_ball_gripping.py"


def ours_ball(task: Task) -> Result:
    """Our ball and gripper: the main job."""
    stepper, below, depth = Stepper(fs.load_scene(SCENE, dt=task.dt), make_solver("auto")), [], []
    ball = stepper.system.q_slices[0]

    def step() -> None:
        depth.append(take_step(stepper).max_penetration)

    def look(k: int) -> None:
        below.append(tasks.height((k + 1) * task.dt) - float(stepper.state.q[ball].reshape(-1, 3)[:, 2].mean()))

    times = timed(step, task, look)
    return Result("femsim", *times, tasks.ball_quality(task, below, depth))


#: What is done of each kind, with what it is given; what we do of it, and the others, by the names of their packages.
TASKS: dict[str, list[tuple[Task, tuple[float, ...]]]] = {
    "box": [(tasks.BOX_SLIDES, (1.5,)), (tasks.BOX_STICKS, (0.5,))],
    "mat": [(tasks.MAT_SLIDES, (4.0,)), (tasks.MAT_STICKS, (1.5,))],
    "ball": [(tasks.BALL, ())],
}
OURS: dict[str, Run] = {"box": ours_box, "mat": ours_mat, "ball": ours_ball}
RIVALS = {"mujoco": ("MuJoCo", rival_mujoco.RUNS), "pydrake": ("Drake", rival_drake.RUNS)}


def measure(kind: str, task: Task, given: tuple[float, ...], repeat: int) -> list[Result]:
    """Run the installed programs in turns, ours once before, which compiles; of each the run with the least mean counts."""
    runs = [OURS[kind]]
    runs[0](task, *given)
    for package, (_, their) in RIVALS.items():
        if importlib.util.find_spec(package) is not None:
            runs += their[kind]
    found = [[run(task, *given) for run in runs] for _ in range(repeat)]
    return [min(column, key=lambda one: one.mean) for column in zip(*found, strict=True)]


def lines(task: Task, results: list[Result]) -> list[str]:
    """Table of a task."""
    first = results[0].mean
    out = [
        f"| {task.name}, {1e3 * task.dt:g} ms | ms a step, mean / median | of femsim's | {' | '.join(task.quality)} |",
        "| --- " * 6 + "|",
    ]
    for one in results:
        quality = " | ".join("" if np.isnan(value) else f"{value:.3g}" for value in one.quality)
        out.append(f"| {one.program} | {one.mean:.3g} / {one.median:.3g} | {one.mean / first:.2g} | {quality} |")
    return [*out, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default=",".join(TASKS), help=f"default all: {', '.join(TASKS)}")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each program, in turns (default 3)")
    parser.add_argument("--write", type=Path, help="page whose tables are replaced")
    chosen = parser.parse_args()
    names = chosen.only.split(",")
    if unknown := [name for name in names if name not in TASKS]:
        parser.error(f"--only has {unknown[0]!r}; allowed are {', '.join(TASKS)}.")
    for package, (name, _) in RIVALS.items():
        if importlib.util.find_spec(package) is None:
            print(f'{name} is not installed: pip install -e ".[rivals]"', file=sys.stderr)
    text: list[str] = []
    for name in names:
        for task, given in TASKS[name]:
            table = lines(task, measure(name, task, given, chosen.repeat))
            print("\n".join(table), flush=True)
            text += table
    if chosen.write:
        page = chosen.write.read_text(encoding="utf-8")
        before, _, rest = page.partition(START)
        chosen.write.write_text(f"{before}{START}\n" + "\n".join(text) + f"{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
