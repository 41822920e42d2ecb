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


def lever(**motor: float) -> fs.Scene:
    """A bar of 0.3 kg that turns about y and is held level from its end: 0.2943 N m."""
    bar = fs.Piece(fs.Box((0.1, 0.01, 0.01)), (0.1, 0, 0))
    links = [fs.RobotLink.solid("base", fs.Piece(fs.Box((0.02, 0.02, 0.02))), 1.0), fs.RobotLink.solid("bar", bar, 0.3)]
    scene = fs.Scene("lever", dt=0.01, duration=0.5)
    scene.add_robot(fs.Robot("arm", links, [fs.RobotJoint("pivot", "base", "bar", axis=(0, -1, 0), **motor)]))  # type: ignore[arg-type]
    return scene


@pytest.mark.parametrize("dt", [0.01, 0.002, "auto"])
def test_a_motor_that_must_do_more_than_it_can_is_doubtful(dt: float | str) -> None:
    """The range of efforts in a robot's file was passed without a word where a motion is followed exactly."""
    for most, verdict in ((0.3, "good"), (0.25, "doubtful")):
        scene = lever(max_effort=most)
        scene.drive_joint("arm", "pivot", fs.Profile([0.0], [0.0]))
        run = fs.simulate(scene, dt=dt)  # type: ignore[arg-type]
        assert run.verdict == verdict
    (reason,) = run.info["health"]["reasons"]
    assert (reason["kind"], reason["bodies"]) == ("motor", ["arm.pivot"])
    assert reason["value"] == pytest.approx(0.3 * 9.81 * 0.1 / 0.25, rel=1e-3)
    assert "with 0.2943 N m (mean over 50 ms), and its motor does 0.25 at most" in reason["sentence"]
    scene = lever(max_effort=0.25)
    scene.drive_joint("arm", "pivot", fs.Profile([0.0], [0.0]), stiffness=100.0)
    assert fs.simulate(scene).verdict == "good"  # it sinks
    scene = lever(max_effort=0.25)
    scene.health = fs.HealthBounds(motor=(math.inf, math.inf))
    scene.drive_joint("arm", "pivot", fs.Profile([0.0], [0.0]))
    assert fs.simulate(scene).verdict == "good"


def test_a_joint_that_is_set_faster_than_it_can_is_doubtful_and_a_twin_knows() -> None:
    """A corner of a motion, which asks for any effort in one step, is none; going back forgets it."""
    scene = lever(max_speed=2.0, max_effort=5.0)
    scene.drive_joint("arm", "pivot", fs.Profile([0.0], [0.0]))
    simulation = fs.Simulation(scene)
    simulation.set("arm.pivot", 0.38, over=0.2)  # 1.9 rad/s
    assert simulation.step(20).verdict == "good"
    before = simulation.save()
    simulation.set("arm.pivot", 0.0, over=0.1)  # 3.8 rad/s
    assert simulation.step(10).verdict == "doubtful"
    assert "arm.pivot follows its motion exactly at" in simulation.reasons[0] and "does 2 at most" in simulation.reasons[0]
    twin = simulation.fork()
    assert twin.verdict == "doubtful"
    simulation.restore(before)
    assert simulation.verdict == "good" and simulation.step(10).verdict == "good"


def test_a_jaw_with_a_servo_on_an_exact_lift_is_told_what_leads_it_into_the_floor() -> None:
    """Contact cannot press against the lift; the advice was a smaller time step, and a note said that it pushes the jaw out."""
    links = [
        fs.RobotLink("base"),
        fs.RobotLink.solid("jaw", fs.Piece(fs.Box((0.01, 0.01, 0.02))), 0.05),
        fs.RobotLink("hand", 0.5),
    ]
    lift = fs.RobotJoint("lift", "base", "hand", "prismatic", axis=(0, 0, 1))
    slide = fs.RobotJoint("slide", "hand", "jaw", "prismatic", axis=(0, 1, 0))
    scene = fs.Scene("jaw", dt=0.01, duration=0.1)
    scene.add_floor()
    scene.add_robot(fs.Robot("r", links, [lift, slide]), position=(0, 0, 0.018))
    scene.drive_joint("r", "lift", fs.Profile([0.0, 0.05, 0.1], [0.0, -0.008, 0.0]))
    scene.drive_joint("r", "slide", fs.Profile([0.0], [0.0]), stiffness=500.0)
    run = fs.simulate(scene)
    assert any("apart, at up to 0.5 m/s, but r.jaw only along joints that follow no motion" in note for note in run.notes)
    (reason,) = (one for one in run.reasons if "r.jaw and floor are" in one)
    assert "r.jaw is led by joints that follow motions exactly" in reason and "drive those joints with a stiffness" in reason
