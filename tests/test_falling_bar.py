"""A stiff bar on a hinge against the pendulum that it is: what each way to step makes of a fall from level."""

from __future__ import annotations

from math import cos, degrees, sin
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import femsim as fs
from materials import MooneyRivlin, Ogden

LENGTH, SIDE, GRAVITY, TIME = 0.1, 0.02, 9.81, 0.3
#: Moment of inertia about the middle of an end face, per mass, m2.
INERTIA = LENGTH**2 / 3 + SIDE**2 / 12
YOUNG, NU = 1e6, 0.45
MU = YOUNG / (2.0 * (1.0 + NU))
LAWS: list[fs.Law] = [
    fs.Corotational(), fs.StVenantKirchhoff(), fs.StableNeoHookean(), MooneyRivlin(0.375 * MU, 0.125 * MU),
    Ogden((0.8 * MU, -0.2 * MU), (1.7, -3.2)),
]  # fmt: skip


def angle_of_bar(dt: float, element: Any, law: fs.Law = LAWS[2], **options: Any) -> float:
    """Angle of a bar of rubber (1 MPa, nu 0.45) after 0.3 s, degrees from level."""
    scene = fs.Scene("falling", dt=dt, duration=TIME, **options)
    mesh = fs.box_tets((LENGTH, SIDE, SIDE), (4, 2, 2))
    bar = scene.add_soft(
        "bar", mesh, fs.Elastic(YOUNG, NU, 1000.0, law=law, name="rubber"), element=element,
        fixed=lambda x: (x[:, 0] < -0.5 * LENGTH + 1e-9) & (np.abs(x[:, 2]) < 1e-9),
    )  # fmt: skip
    tip = int(np.argmin(((mesh.points - (0.5 * LENGTH, 0, 0)) ** 2).sum(axis=1)))
    scene.sensor("tip", bar, kind="marker", node=tip)
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged"
    position = run.markers["tip"].position
    return float(np.degrees(np.unwrap(np.arctan2(position[:, 2], position[:, 0] + 0.5 * LENGTH)))[-1])


def of_modulus(law: fs.Law, young: float, nu: float) -> fs.Law:
    """The law with constants for another modulus (Pa) and Poisson's ratio."""
    mu = young / (2.0 * (1.0 + nu))
    if isinstance(law, MooneyRivlin):
        return MooneyRivlin(0.375 * mu, 0.125 * mu)
    return Ogden((0.8 * mu, -0.2 * mu), (1.7, -3.2)) if isinstance(law, Ogden) else law


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
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_a_stiff_bar_swings_like_a_pendulum(law: fs.Law, element: str) -> None:
    """It is to be within 2 % after 0.3 s at 10 ms by every law."""
    assert angle_of_bar(0.01, element, law) == pytest.approx(rigid_pendulum(), rel=5e-3)


@pytest.mark.parametrize("element", ["linear", "quadratic"])
def test_it_does_so_by_the_mid_point_rule_too(element: str) -> None:
    assert angle_of_bar(0.01, element, theta=0.5) == pytest.approx(rigid_pendulum(), rel=5e-3)


@pytest.mark.parametrize("element", ["linear", "quadratic"])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_a_bar_that_is_let_go_swings_as_far_as_its_energy_says(law: fs.Law, element: Any) -> None:
    """Nearly incompressible, clamped, half a second by the mid-point rule: 13.6 mm, energy within 1 % of the drop.

    Linear elements lock at this Poisson's ratio and swing less far; what they have of energy they keep as well.
    """
    scene = fs.Scene("released", dt=0.005, duration=0.5, theta=0.5)
    mesh = fs.box_tets((0.1, 0.03, 0.03), (6, 2, 2))
    rubber = fs.Elastic(263824.0, 0.499, 1070.0, law=of_modulus(law, 263824.0, 0.499), name="rubber")
    scene.add_soft("bar", mesh, rubber, element=element, fixed=lambda x: x[:, 0] > 0.0499)
    tip = int(np.argmin(((mesh.points - (-0.05, 0, 0)) ** 2).sum(axis=1)))
    scene.sensor("tip", "bar", kind="marker", node=tip)
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged"
    height = run.markers["tip"].position[:, 2]  # of the middle of the end
    assert height[:25].min() == pytest.approx(-0.0136, rel=0.01) or element == "linear"
    energy = sum(run.steps[f"{kind}_energy_J"] for kind in ("kinetic", "elastic", "potential"))
    assert np.abs(energy).max() < 0.01 * -run.steps["potential_energy_J"].min()


@pytest.mark.parametrize("dt", [0.01, 0.004])
def test_what_lacks_at_theta_1_is_backward_eulers(dt: float) -> None:
    """The step at theta = 1 is solved: it is where backward Euler takes a rigid bar, and that does not swing through."""
    exact = backward_euler_pendulum(dt)
    assert rigid_pendulum() < exact - 10.0
    assert angle_of_bar(dt, "linear", theta=1.0) == pytest.approx(exact, abs=1.0)


@pytest.mark.parametrize("hinged", [False, True])
def test_a_bar_of_metal_swings_like_a_pendulum_too(hinged: bool) -> None:
    """Velocities have no digits left for the forces of 500 GPa, but what each linearisation changes of them has.

    Solved for the velocities themselves, all 30 steps were halved.
    """
    scene = fs.Scene("metal", dt=0.01, duration=TIME)
    mesh, held = fs.box_tets((LENGTH, SIDE, SIDE), (4, 2, 2)), lambda x: (x[:, 0] < -0.05 + 1e-9) & (np.abs(x[:, 2]) < 1e-9)
    scene.add_soft("bar", mesh, fs.Elastic(5e11, 0.3, 1000.0), fixed=None if hinged else held)
    if hinged:
        scene.join("bar", "world", "hinge", at=(-0.5 * LENGTH, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
    tip = int(np.argmin(((mesh.points - (0.5 * LENGTH, 0, 0)) ** 2).sum(axis=1)))
    scene.sensor("tip", "bar", kind="marker", node=tip)
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged"
    assert run.steps["substeps"].max() == 1
    assert run.steps["solves"].sum() < 8 * 30
    position = run.markers["tip"].position
    angle = float(np.degrees(np.unwrap(np.arctan2(position[:, 2], position[:, 0] + 0.5 * LENGTH)))[-1])
    assert angle == pytest.approx(rigid_pendulum(), rel=5e-3)
