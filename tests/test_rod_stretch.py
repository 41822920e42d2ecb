"""Rods that are stretched so far that their links turn aside: shear is softer than stretch."""

from __future__ import annotations

import math

import numpy as np
import pytest

import femsim as fs

RUBBER, RADIUS, LENGTH = fs.Elastic(1e6, 0.49, 1000.0, name="rubber"), 0.001, 0.1


def pulled(stretch: float, theta: float | None) -> fs.Run:
    """A level rubber string, whose far end is led away."""
    scene = fs.Scene("pulled", dt=0.005, duration=1.0, gravity=(0, 0, -1e-3), **({} if theta is None else {"theta": theta}))
    motion = fs.Motion([0.0, 0.8], [(0, 0, 0), (stretch * LENGTH, 0, 0)])
    points = np.linspace((0, 0, 0), (LENGTH, 0, 0), 41)
    scene.add_rod(
        "string",
        points,
        fs.circular_section(RADIUS),
        RUBBER,
        start=fs.RodEnd("clamped"),
        end=fs.RodEnd("clamped", motion=motion),
        translational_damping=0.05,
        rotational_damping=1e-7,
    )
    scene.sensor("pull", "string", kind="start")
    return fs.simulate(scene)


def least_turn(stretch: float, shear: float) -> float:
    """Angle, rad, at which links in line, stretched as a whole, store least, of many; ``shear`` is k G / E."""
    angle, way = np.linspace(0.0, 1.0, 10001), 1.0 + stretch
    energy = (way * np.cos(angle) - 1.0) ** 2 + shear * (way * np.sin(angle)) ** 2
    return float(angle[np.argmin(energy)])


@pytest.mark.parametrize("theta", [None, 1.0])
def test_a_rod_is_doubtful_from_the_stretch_at_which_its_links_turn_aside(theta: float | None) -> None:
    """Backward Euler called the string good at any stretch, and so did energy-momentum steps, which found 2 % less at 0.45."""
    shear = fs.circular_section(RADIUS).shear_factor_1 / (2 * (1 + 0.49))
    assert least_turn(0.42, shear) == 0.0 and least_turn(0.45, shear) > 0.1
    stiffness = 1e6 * math.pi * RADIUS**2
    good, far = pulled(0.42, theta), pulled(0.45, theta)
    assert good.verdict == "good" and good.sensors["pull"].force[-1, 0] == pytest.approx(0.42 * stiffness, rel=1e-3)
    (reason,) = far.info["health"]["reasons"]
    assert far.verdict == "doubtful" and reason["kind"] == "stretch" and reason["bodies"] == ["string"]
    assert reason["text"].startswith("string is stretched by 4") and "from 43% on" in reason["text"]
    assert 1.0 < reason["value"] < 1.1 and 0.74 <= reason["time_s"] <= 0.8


def test_a_stretch_counts_at_the_end_of_a_run_of_nine_steps() -> None:
    scene = fs.Scene("short", dt=0.005, duration=0.045, gravity=(0, 0, 0), theta=1.0)
    motion = fs.Motion([0.0, 0.04], [(0, 0, 0), (0.6 * LENGTH, 0, 0)])
    points = np.linspace((0, 0, 0), (LENGTH, 0, 0), 6)
    scene.add_rod(
        "string", points, fs.circular_section(RADIUS), RUBBER, start=fs.RodEnd("clamped"), end=fs.RodEnd("clamped", motion=motion)
    )
    assert {reason["kind"] for reason in fs.simulate(scene).info["health"]["reasons"]} == {"stretch"}
