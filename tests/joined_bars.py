"""Bars joined by hinges in the plane y = 0, and what Lagrange's equations say of two of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import femsim as fs

LENGTH, WIDTH, MASS, GRAVITY = 0.5, 0.02, 2.0, 9.81
#: Of a bar about its middle, kg m^2.
MIDDLE = MASS * (LENGTH**2 + WIDTH**2) / 12


def bar(scene: fs.Scene, name: str, start: np.ndarray, end: np.ndarray, **options: Any) -> None:
    """Add a bar from one place to another, (3,) m with y = 0, of the common width and mass per length."""
    way = np.asarray(end) - np.asarray(start)
    length, angle = float(np.linalg.norm(way)), float(np.arctan2(-way[2], way[0]))
    scene.add_rigid(
        name,
        fs.Box((length / 2, WIDTH / 2, WIDTH / 2)),
        mass=MASS * length / LENGTH,
        position=0.5 * (np.asarray(start) + np.asarray(end)),
        rotation=(0.0, angle, 0.0),
        **options,
    )


def double_pendulum(dt: float, duration: float = 1.0, **options: Any) -> fs.Scene:
    """Two level bars, hinged to each other and one to the world, at rest."""
    scene = fs.Scene("pendulum", dt=dt, duration=duration, **options)
    bar(scene, "a", [0.0, 0.0, 0.0], [LENGTH, 0.0, 0.0])
    bar(scene, "b", [LENGTH, 0.0, 0.0], [2 * LENGTH, 0.0, 0.0])
    scene.join("a", "world", "hinge", at=(0, 0, 0), axis=(0, 1, 0), name="ground")
    scene.join("b", "a", "hinge", at=(LENGTH, 0, 0), axis=(0, 1, 0), name="elbow")
    scene.sensor("ground", "ground", kind="reaction")
    scene.sensor("elbow", "elbow", kind="reaction")
    return scene


def angles(time: float) -> np.ndarray:
    """Angles (2,), rad, above the level, of both bars after a time, s, by quadrature."""
    own, inner = MIDDLE + MASS * LENGTH**2 / 4, MASS * LENGTH**2

    def rates(_: float, y: np.ndarray) -> list[float]:
        a, b, da, db = y
        c, s = np.cos(a - b), np.sin(a - b)
        matrix = [[own + inner, inner / 2 * c], [inner / 2 * c, own]]
        right = [
            -inner / 2 * s * db**2 - 1.5 * MASS * GRAVITY * LENGTH * np.cos(a),
            inner / 2 * s * da**2 - 0.5 * MASS * GRAVITY * LENGTH * np.cos(b),
        ]
        return [da, db, *np.linalg.solve(matrix, right)]

    return np.asarray(solve_ivp(rates, (0.0, time), [0.0] * 4, rtol=1e-11, atol=1e-12).y[:2, -1])


def four_bar(dt: float, duration: float, **options: Any) -> fs.Scene:
    """A crank, a coupler and a rocker between two hinges of the ground: one loop, one freedom."""
    scene = fs.Scene("four_bar", dt=dt, duration=duration, **options)
    corners = [np.array(p, dtype=float) for p in ([0, 0, 0], [0.1, 0, 0.17], [0.5, 0, 0.4], [0.5, 0, 0.0])]
    names = ("crank", "coupler", "rocker")
    for name, start, end in zip(names, corners, corners[1:], strict=False):
        bar(scene, name, start, end)
    for name, (a, b), at in zip(
        ("first", "second", "third", "fourth"),
        (("crank", "world"), ("coupler", "crank"), ("rocker", "coupler"), ("rocker", "world")),
        corners,
        strict=True,
    ):
        scene.join(a, b, "hinge", at=at, axis=(0, 1, 0), name=name)
        scene.sensor(name, name, kind="reaction")
    return scene
