"""A stiff bar on a hinge against the pendulum that it is: what each way to step makes of a fall from level."""

from __future__ import annotations

from math import cos, degrees, sin
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import femsim as fs

LENGTH, SIDE, GRAVITY, TIME = 0.1, 0.02, 9.81, 0.3
#: Moment of inertia about the middle of an end face, per mass, m2.
INERTIA = LENGTH**2 / 3 + SIDE**2 / 12


def angle_of_bar(dt: float, element: Any, **options: Any) -> float:
    """Angle of a bar of rubber (1 MPa, nu 0.45) after 0.3 s, degrees from level."""
    scene = fs.Scene("falling", dt=dt, duration=TIME, **options)
    mesh = fs.box_tets((LENGTH, SIDE, SIDE), (4, 2, 2))
    bar = scene.add_soft(
        "bar", mesh, fs.Elastic(1e6, 0.45, 1000.0, name="rubber"), law="stable_neo_hookean", element=element,
        fixed=lambda x: (x[:, 0] < -0.5 * LENGTH + 1e-9) & (np.abs(x[:, 2]) < 1e-9),
    )  # fmt: skip
    tip = int(np.argmin(((mesh.points - (0.5 * LENGTH, 0, 0)) ** 2).sum(axis=1)))
    scene.sensor("tip", bar, kind="marker", node=tip)
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged"
    position = run.markers["tip"].position
    return float(np.degrees(np.unwrap(np.arctan2(position[:, 2], position[:, 0] + 0.5 * LENGTH)))[-1])


def rigid_pendulum() -> float:
    """Angle of the rigid bar, degrees."""
    found = solve_ivp(
        lambda _, y: [y[1], -0.5 * LENGTH * GRAVITY * cos(y[0]) / INERTIA], (0.0, TIME), [0.0, 0.0], rtol=1e-9, atol=1e-12
    )
    return degrees(found.y[0, -1])


def backward_euler_pendulum(dt: float) -> float:
    """Angle of the rigid bar if each of its points steps by backward Euler: x1 = x0 + dt v1, v1 = v0 + dt a1, degrees."""
    angle, turn, way, before = 0.0, 0.0, np.array([1.0, 0.0]), np.zeros(2)

    def lack(turn: float) -> float:
        """Moment about the hinge that the step lacks, per mass."""
        c, s = cos(angle + turn), sin(angle + turn)
        change = ((c, s) - way) / dt - before
        return float(INERTIA * (c * change[1] - s * change[0]) + 0.5 * dt * LENGTH * GRAVITY * c)

    for _ in range(round(TIME / dt)):
        turn = float(brentq(lack, turn - 0.3, turn + 0.3, xtol=1e-13))
        angle += turn
        now = np.array([cos(angle), sin(angle)])
        way, before = now, (now - way) / dt
    return degrees(angle)


@pytest.mark.parametrize("element", ["linear", "quadratic"])
@pytest.mark.parametrize("options", [{}, {"theta": 0.5}], ids=["energy-momentum", "mid-point"])
def test_a_stiff_bar_swings_like_a_pendulum(options: dict[str, Any], element: str) -> None:
    """It is to be within 2 % after 0.3 s at 10 ms."""
    assert angle_of_bar(0.01, element, **options) == pytest.approx(rigid_pendulum(), rel=5e-3)


@pytest.mark.parametrize("dt", [0.01, 0.004])
def test_what_lacks_at_theta_1_is_backward_eulers(dt: float) -> None:
    """The step at theta = 1 is solved: it is where backward Euler takes a rigid bar, and that does not swing through."""
    exact = backward_euler_pendulum(dt)
    assert rigid_pendulum() < exact - 10.0
    assert angle_of_bar(dt, "linear", theta=1.0) == pytest.approx(exact, abs=1.0)
