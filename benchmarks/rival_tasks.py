"""Tasks on which simulators are timed side by side, and how what they make of contact is told.

:mod:`benchmarks.rival_mujoco` and :mod:`benchmarks.rival_drake` do them by other programs, ``bench_rivals.py`` by ours.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import femsim as fs
from meshes import TetMesh

GRAVITY = 9.81
#: Steps before the first that counts: what is compiled is compiled there.
FIRST_COUNTED = 5


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


#: Does a task, told what the task is given.
Run = Callable[..., Result]


def timed(step: Callable[[], Any], task: Task, look: Callable[[int], None]) -> tuple[float, float]:
    """Take the steps of a task, look after each; mean and median CPU ms of those that count."""
    spent = []
    for k in range(task.steps):
        started = time.thread_time()
        step()
        spent.append(1e3 * (time.thread_time() - started))
        look(k)
    return statistics.fmean(spent[FIRST_COUNTED:]), statistics.median(spent[FIRST_COUNTED:])


# ---------------------------------------------------------------------- the box

BOX_MASS, BOX_HALF, BOX_FRICTION = 0.4, 0.05, 0.3


def box_quality(task: Task, force: float, way: list[float], height: list[float]) -> tuple[float, float, float]:
    """Columns of the box, by its ways and heights, m."""
    lift = 1e3 * max(0.0, *(h - BOX_HALF for h in height))
    if task.sticks:
        return 1e3 * (way[-1] - way[-21]) / (20 * task.dt), lift, float("nan")
    theory = 0.5 * (force / BOX_MASS - BOX_FRICTION * GRAVITY) * (task.steps * task.dt) ** 2
    return 1e3 * abs(way[-1] - theory), lift, float("nan")


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


# ---------------------------------------------------------------------- the ball: the main job, `scenes/soft_ball_gripping.py`

BALL_MATERIAL = fs.Elastic(1e6, 0.35, 1000.0, rayleigh_beta=1e-3, name="ball")
#: Friction, radius and half of the sides of a pad.
BALL_FRICTION, BALL_RADIUS, PAD = 0.5, 0.03, (0.003, 0.02, 0.02)
#: Servo that leads the hand of the others, N/m and N s/m.
STIFF, DAMP = 2e3, 40.0
#: Distance of the middle of a pad from that of the ball, m, and mass of a finger and of the hand, kg.
REACH, FINGER, HAND = 0.037, 0.05, 0.5
CLOSE = fs.Profile([0.1, 0.2, 0.5], [0.0, 0.5, 20.0])
RAISE = fs.Motion([0.7, 1.5], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.06)])


def ball_mesh() -> tuple[TetMesh, float]:
    """Mesh of 1480 nodes, and how high it stands with its lowest node on the floor, m."""
    mesh = fs.load_tetmesh(fs.mesh_file("ball_r30.vtu"))
    return mesh, -float(mesh.points[:, 2].min())


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
