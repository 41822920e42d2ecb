"""Times femsim beside MuJoCo on the same box, mat and ball, with what each makes of contact: penetration, friction, creep.

    python benchmarks/bench_rivals.py [--only box,mat,ball] [--repeat N] [--write FILE]

See README.md of this folder. The cable has a benchmark of its own, ``bench_cable.py``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

# one thread, before numpy is imported; and the packages of this folder's own checkout
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import femsim as fs
from contact import make_solver
from femsim.step.advance import take_step
from femsim.step.stepper import Stepper
from meshes import TetMesh

START, END = "<!-- rivals -->", "<!-- end rivals -->"
GRAVITY = 9.81
#: Steps before the first that counts: what is compiled is compiled there.
FIRST_COUNTED = 5
#: Contact of MuJoCo: as it comes, and as stiff and dry as holds: twice the time step, elliptic cones, stiffer tangents.
CONTACTS = {
    "default": ("", ""),
    "stiff": ('solref="{twice} 1" solimp="0.99 0.999 0.0005"', 'cone="elliptic" impratio="10"'),
}


@dataclass(frozen=True)
class Task:
    """What is simulated: its name, time step (s), steps, what its columns of quality say, and whether friction holds."""

    name: str
    dt: float
    steps: int
    quality: tuple[str, str, str]
    sticks: bool = False


BOX_SLIDES = Task("box slides, 1.5 N", 0.005, 200, ("off the way of theory, mm", "highest lift, mm", "-"))
BOX_STICKS = Task("box sticks, 0.5 N", 0.005, 200, ("creep at the end, mm/s", "highest lift, mm", "-"), True)
MAT_SLIDES = Task("mat slides, 4 N", 0.005, 60, ("friction found, of 0.3", "deepest node, mm", "deepest at the end, mm"))
MAT_STICKS = Task("mat sticks, 1.5 N", 0.005, 60, ("creep at the end, mm/s", *MAT_SLIDES.quality[1:]), True)
BALL = Task("ball gripped and lifted", 0.005, 400, ("slip in the lift, mm", "creep at the end, mm/s", "deepest while held, mm"))


@dataclass(frozen=True)
class Result:
    """A program on a task: CPU ms of a step, mean and median, and what the task asks of quality."""

    program: str
    mean: float
    median: float
    quality: tuple[float, float, float]


def timed(step: Callable[[], Any], task: Task, look: Callable[[int], None]) -> tuple[float, float]:
    """Take the steps of a task, look after each; mean and median CPU ms of those that count."""
    spent = []
    for k in range(task.steps):
        started = time.thread_time()
        step()
        spent.append(1e3 * (time.thread_time() - started))
        look(k)
    return statistics.fmean(spent[FIRST_COUNTED:]), statistics.median(spent[FIRST_COUNTED:])


# ---------------------------------------------------------------------- MuJoCo


def mujoco_of(task: Task, contact: str, body: str) -> tuple[Any, Any]:
    """Model and data of MuJoCo, with a floor and one of the :data:`CONTACTS`; of its solvers the one that is quicker there."""
    import mujoco

    mujoco.set_mju_user_warning(lambda _: None)  # of soft bodies that its linear solver does not get to the end; else in a file
    solver = "CG" if "flexcomp" in body else "Newton"
    geoms, options = CONTACTS[contact]
    geoms = geoms.format(twice=2.0 * task.dt)
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <option timestep="{task.dt}" gravity="0 0 {-GRAVITY}" integrator="discrete" solver="{solver}" {options}/>
      <default><geom {geoms}/></default>
      <worldbody>
        <geom name="floor" type="plane" size="5 5 0.1" friction="0.3 0 0"/>
        {body.format(contact=geoms)}
      </worldbody>
    </mujoco>""")
    return model, mujoco.MjData(model)


def flex(name: str, mesh: TetMesh, material: fs.Elastic, friction: float, place: tuple[float, float, float]) -> str:
    """Soft body of MuJoCo on the same tetrahedra, its points without a size of their own as far as it allows."""
    points = " ".join(f"{x:.9g}" for x in (mesh.points + place).ravel())
    elements = " ".join(map(str, mesh.tets.ravel()))
    corners = mesh.points[mesh.tets]
    volume = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])).sum() / 6.0
    return f"""
    <flexcomp name="{name}" type="direct" dim="3" point="{points}" element="{elements}" mass="{material.density * volume}"
              radius="1e-5">
      <contact selfcollide="none" friction="{friction} 0 0" {{contact}}/>
      <elasticity young="{material.young_modulus}" poisson="{material.poisson_ratio}" damping="{material.rayleigh_beta}"/>
    </flexcomp>"""


def points_of(data: Any) -> np.ndarray:
    """Places of the nodes of a flex, (n, 3), m."""
    return np.asarray(data.flexvert_xpos).reshape(-1, 3).copy()


# ---------------------------------------------------------------------- the box

BOX_MASS, BOX_HALF, BOX_FRICTION = 0.4, 0.05, 0.3


def box_quality(task: Task, force: float, way: list[float], height: list[float]) -> tuple[float, float, float]:
    """Columns of the box, by its ways and heights, m."""
    lift = 1e3 * max(0.0, *(h - BOX_HALF for h in height))
    if task.sticks:
        return 1e3 * (way[-1] - way[-21]) / (20 * task.dt), lift, float("nan")
    theory = 0.5 * (force / BOX_MASS - BOX_FRICTION * GRAVITY) * (task.steps * task.dt) ** 2
    return 1e3 * abs(way[-1] - theory), lift, float("nan")


def ours_box(task: Task, force: float) -> Result:
    """Our box."""
    scene = fs.Scene("box", dt=task.dt, duration=task.dt * task.steps, default_friction=BOX_FRICTION)
    scene.add_floor()
    shape = fs.Box((BOX_HALF,) * 3)
    scene.add_rigid("box", shape, mass=BOX_MASS, position=(0.0, 0.0, BOX_HALF), load=lambda _t: ((force, 0.0, 0.0), (0.0,) * 3))
    stepper, way, height = Stepper(scene, make_solver("auto")), [], []

    def look(_: int) -> None:
        way.append(float(stepper.state.q[0]))
        height.append(float(stepper.state.q[2]))

    times = timed(partial(take_step, stepper), task, look)
    return Result("femsim", *times, box_quality(task, force, way, height))


def mujoco_box(task: Task, force: float, contact: str) -> Result:
    """Make the same box for MuJoCo."""
    import mujoco

    model, data = mujoco_of(
        task, contact,
        f'<body pos="0 0 {BOX_HALF}"><freejoint/><geom type="box" size="{BOX_HALF} {BOX_HALF} {BOX_HALF}" mass="{BOX_MASS}" '
        f'friction="{BOX_FRICTION} 0 0"/></body>',
    )  # fmt: skip
    data.xfrc_applied[1, 0] = force
    way, height = [], []

    def look(_: int) -> None:
        way.append(float(data.qpos[0]))
        height.append(float(data.qpos[2]))

    times = timed(partial(mujoco.mj_step, model, data), task, look)
    return Result(f"MuJoCo, {contact}", *times, box_quality(task, force, way, height))


# ---------------------------------------------------------------------- the mat

MAT = fs.Elastic(75e3, 0.35, 1000.0, rayleigh_beta=1e-3, name="mat")
MAT_FRICTION, MAT_SIDE, MAT_HEIGHT = 0.3, 0.3, 0.01


def mat_mesh() -> TetMesh:
    """Mesh of 1458 nodes and 4056 tetrahedra."""
    return fs.box_tets((MAT_SIDE, MAT_SIDE, MAT_HEIGHT), (26, 26, 1), alternating=False)


def mat_quality(task: Task, force: float, place: list[float], depth: list[float]) -> tuple[float, float, float]:
    """Columns of the mat, by the mean place of its nodes and the deepest of them, m."""
    deep = 1e3 * max(depth), 1e3 * depth[-1]
    x, n = np.array(place), 30
    t = task.dt * np.arange(len(x))
    if task.sticks:
        return 1e3 * float(np.polyfit(t[-n:], x[-n:], 1)[0]), *deep
    pushed = 2.0 * float(np.polyfit(t[-n:], x[-n:], 2)[0])
    mass = MAT.density * MAT_SIDE * MAT_SIDE * MAT_HEIGHT
    return (force - mass * pushed) / (mass * GRAVITY), *deep


def ours_mat(task: Task, force: float) -> Result:
    """Our mat."""
    scene = fs.Scene("mat", dt=task.dt, duration=task.dt * task.steps, theta=1.0)
    scene.add_floor()
    mat = scene.add_soft("mat", mat_mesh(), MAT, position=(0.0, 0.0, MAT_HEIGHT / 2), load=lambda _t: (force, 0.0, 0.0))
    scene.set_friction(mat, "floor", MAT_FRICTION)
    stepper, place, depth = Stepper(scene, make_solver("auto")), [], []

    def look(_: int) -> None:
        points = stepper.state.q.reshape(-1, 3)
        place.append(float(points[:, 0].mean()))
        depth.append(-float(points[:, 2].min()))

    times = timed(partial(take_step, stepper), task, look)
    return Result("femsim", *times, mat_quality(task, force, place, depth))


def mujoco_mat(task: Task, force: float, contact: str) -> Result:
    """Make the same mat for MuJoCo; the pull is shared by the nodes by their masses."""
    import mujoco

    model, data = mujoco_of(task, contact, flex("mat", mat_mesh(), MAT, MAT_FRICTION, (0.0, 0.0, MAT_HEIGHT / 2)))
    data.xfrc_applied[1:, 0] = force * model.body_mass[1:] / model.body_mass.sum()
    place, depth = [], []

    def look(_: int) -> None:
        points = points_of(data)
        place.append(float(points[:, 0].mean()))
        depth.append(-float(points[:, 2].min()))

    times = timed(partial(mujoco.mj_step, model, data), task, look)
    return Result(f"MuJoCo, {contact}", *times, mat_quality(task, force, place, depth))


# ---------------------------------------------------------------------- the ball

#: The main job: `scenes/soft_ball_gripping.py`, whose numbers these are.
SCENE = Path(__file__).resolve().parents[1] / "scenes" / "soft_ball_gripping.py"
BALL_MATERIAL = fs.Elastic(1e6, 0.35, 1000.0, rayleigh_beta=1e-3, name="ball")
BALL_FRICTION, BALL_RADIUS, PAD = 0.5, 0.03, (0.003, 0.02, 0.02)
#: Servo that leads the hand of MuJoCo, N/m and N s/m.
STIFF, DAMP = 2e3, 40.0
#: Distance of the middle of a pad from that of the ball, m, and mass of a finger and of the hand, kg.
REACH, FINGER, HAND = 0.037, 0.05, 0.5
CLOSE = fs.Profile([0.1, 0.2, 0.5], [0.0, 0.5, 20.0])
RAISE = fs.Motion([0.7, 1.5], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.06)])


def height(t: float) -> float:
    """How high the hand is led at a time, m."""
    return float(RAISE(t)[0][2])


def ball_quality(task: Task, below: list[float], depth: list[float]) -> tuple[float, float, float]:
    """Columns of the ball, by how far its middle is below that of the hand, and its deepest node in a pad, m."""
    held, end = round(0.7 / task.dt), len(below) - 1
    n = round(0.2 / task.dt)
    return (
        1e3 * abs(below[round(1.5 / task.dt)] - below[held]), 1e3 * abs(below[end] - below[end - n]) / (n * task.dt),
        1e3 * max(depth[held:]),
    )  # fmt: skip


def ours_ball(task: Task) -> Result:
    """Our ball and gripper: the main job."""
    stepper, below, depth = Stepper(fs.load_scene(SCENE, dt=task.dt), make_solver("auto")), [], []
    ball = stepper.system.q_slices[0]

    def step() -> None:
        depth.append(take_step(stepper).max_penetration)

    def look(k: int) -> None:
        below.append(height((k + 1) * task.dt) - float(stepper.state.q[ball].reshape(-1, 3)[:, 2].mean()))

    times = timed(step, task, look)
    return Result("femsim", *times, ball_quality(task, below, depth))


def mujoco_ball(task: Task, contact: str) -> Result:
    """Make the same ball for MuJoCo, and a hand on a slide, led by a servo, whose fingers slide, pushed by the same force."""
    import mujoco

    mesh = fs.load_tetmesh(fs.mesh_file("ball_r30.vtu"))
    size = " ".join(map(str, PAD))
    fingers = "".join(
        f'<body pos="{side * REACH} 0 0"><joint name="{name}" type="slide" axis="{-side} 0 0"/><geom type="box" '
        f'size="{size}" mass="{FINGER}" friction="{BALL_FRICTION} 0 0"/></body>'
        for name, side in (("left", -1.0), ("right", 1.0))
    )
    hand = (
        f'<body pos="0 0 {BALL_RADIUS}"><joint name="lift" type="slide" axis="0 0 1"/>'
        f'<inertial pos="0 0 0" mass="{HAND}" diaginertia="1e-3 1e-3 1e-3"/>{fingers}</body>'
    )
    ball = flex("ball", mesh, BALL_MATERIAL, BALL_FRICTION, (0.0, 0.0, -float(mesh.points[:, 2].min())))
    model, data = mujoco_of(task, contact, hand + ball)
    lift, *pads = (int(model.joint(name).dofadr[0]) for name in ("lift", "left", "right"))
    place, below, depth = int(model.joint("lift").qposadr[0]), [], []

    def step() -> None:
        t = data.time + task.dt
        rate = (height(t) - height(t - task.dt)) / task.dt
        data.qfrc_applied[lift] = STIFF * (height(t) - data.qpos[place]) + DAMP * (rate - data.qvel[lift])
        data.qfrc_applied[pads] = CLOSE(t)
        mujoco.mj_step(model, data)

    def look(_: int) -> None:
        below.append(float(data.qpos[place]) - float(points_of(data)[:, 2].mean()))
        depth.append(max([0.0, *(-np.asarray(data.contact.dist))]))

    times = timed(step, task, look)
    return Result(f"MuJoCo, {contact}", *times, ball_quality(task, below, depth))


# ---------------------------------------------------------------------- all

Run = Callable[..., Result]
TASKS: dict[str, list[tuple[Task, Run, Run, tuple[float, ...]]]] = {
    "box": [(BOX_SLIDES, ours_box, mujoco_box, (1.5,)), (BOX_STICKS, ours_box, mujoco_box, (0.5,))],
    "mat": [(MAT_SLIDES, ours_mat, mujoco_mat, (4.0,)), (MAT_STICKS, ours_mat, mujoco_mat, (1.5,))],
    "ball": [(BALL, ours_ball, mujoco_ball, ())],
}


def measure(task: Task, ours: Run, other: Run, given: tuple[float, ...], repeat: int) -> list[Result]:
    """Run the programs in turns; of each the run with the least mean counts."""
    runs: list[Callable[[], Result]] = [partial(ours, task, *given)]
    if importlib.util.find_spec("mujoco") is not None:
        runs += [partial(other, task, *given, contact) for contact in CONTACTS]
    found = [[run() for run in runs] for _ in range(repeat)]
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
    if importlib.util.find_spec("mujoco") is None:
        print('MuJoCo is not installed: pip install -e ".[rivals]"', file=sys.stderr)
    text: list[str] = []
    for name in names:
        for work in TASKS[name]:
            text += lines(work[0], measure(*work, chosen.repeat))
            print("\n".join(text[-len(CONTACTS) - 4 :]), flush=True)
    if chosen.write:
        page = chosen.write.read_text(encoding="utf-8")
        before, _, rest = page.partition(START)
        chosen.write.write_text(f"{before}{START}\n" + "\n".join(text) + f"{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
