"""Robots whose exact motors drive them into walls and into each other: nothing pushes back, so the verdict has to say it."""

from __future__ import annotations

import math

import pytest

import femsim as fs


def arm() -> fs.Robot:
    """A bar of 0.2 m, 20 mm thick, that turns about z."""
    bar = fs.Piece(fs.Box((0.1, 0.01, 0.01)), (0.1, 0, 0))
    links = [fs.RobotLink.solid("base", fs.Piece(fs.Box((0.02, 0.02, 0.02))), 1.0), fs.RobotLink.solid("upper", bar, 0.3)]
    return fs.Robot("arm", links, [fs.RobotJoint("shoulder", "base", "upper", axis=(0, 0, 1))])


def turned_scene() -> fs.Scene:
    """Scene with an arm; where it goes is driven by the tests: 0.6 rad in 0.2 s, its tip 0.11 m aside."""
    scene = fs.Scene("turned", dt=0.01, duration=0.25)
    scene.add_robot(arm(), position=(0, 0, 0.2))
    return scene


WAY = fs.Profile([0.0, 0.2], [0.0, 0.6])


@pytest.mark.parametrize("stiffness", [None, 500.0])
def test_an_exact_motor_in_a_wall_is_wrong_and_a_servo_gives_way(stiffness: float | None) -> None:
    scene = turned_scene()
    scene.add_obstacle("wall", fs.Box((0.2, 0.02, 0.2)), position=(0.15, 0.06, 0.2))
    scene.drive_joint("arm", "shoulder", WAY, stiffness=stiffness)
    run = fs.simulate(scene)
    if stiffness is None:
        reasons = run.info["health"]["reasons"]
        assert run.verdict == "wrong" and run.steps["led_overlap_m"].max() > 0.015
        assert ("led_overlap", ["arm.upper", "wall"]) in [(one["kind"], one["bodies"]) for one in reasons]
    else:
        assert run.verdict == "good" and run.steps["led_overlap_m"].max() < 1e-6 and run.steps["contacts"][-1] > 0


def test_two_robots_in_each_other_are_wrong_and_named() -> None:
    scene = turned_scene()
    scene.drive_joint("arm", "shoulder", WAY)
    scene.add_robot(arm(), name="other", position=(0.3, 0.1, 0.2), rotation=(0, 0, math.pi))
    scene.drive_joint("other", "shoulder", fs.Profile([0.0], [0.0]))
    run = fs.simulate(scene)
    assert run.verdict == "wrong"
    assert run.info["health"]["reasons"][0]["kind"] == "led_overlap"
    assert run.info["health"]["reasons"][0]["bodies"] == ["arm.upper", "other.upper"]


def test_a_fixed_base_that_a_command_moves_is_looked_at_again() -> None:
    """Where driven parts stand still nobody looks anew what is in what; a base that is set elsewhere goes deeper, and back."""
    scene = turned_scene()
    scene.add_obstacle("wall", fs.Box((0.1, 0.1, 0.1)), position=(0, 0, 0.31))
    with fs.Simulation(scene) as simulation:
        depths = []
        for height in (0.0, 0.004, 0.004, 0.0):
            simulation.set("arm", (0.0, 0.0, height))
            simulation.step(2)
            depths.append(simulation.row()["led_overlap_m"])
        assert depths[1] - depths[0] == pytest.approx(0.004, abs=1e-9) and depths[1] == depths[2]
        assert depths[3] == pytest.approx(depths[0], abs=1e-9)
