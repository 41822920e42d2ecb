"""Hard servos: what they do is counted in full, so that no energy comes from nowhere, whatever dt and stiffness are."""

from __future__ import annotations

import numpy as np
import pytest

import femsim as fs


def arm() -> fs.Robot:
    """Two bars of 0.2 m that turn about y, one on the other."""
    bar = fs.Piece(fs.Box((0.1, 0.01, 0.01)), (0.1, 0, 0))
    links = [fs.RobotLink.solid("base", fs.Piece(fs.Box((0.02, 0.02, 0.02))), 1.0)]
    links += [fs.RobotLink.solid(name, bar, 0.3) for name in ("upper", "fore")]
    shoulder = fs.RobotJoint("shoulder", "base", "upper", axis=(0, 1, 0))
    return fs.Robot("arm", links, [shoulder, fs.RobotJoint("elbow", "upper", "fore", axis=(0, 1, 0), position=(0.2, 0, 0))])


def driven(dt: float, stiffness: float, target: fs.Profile, base: str = "fixed") -> fs.Run:
    scene = fs.Scene("servos", dt=dt, duration=0.3, gravity=(0, 0, 0) if base == "floating" else (0, 0, -9.81))
    robot = scene.add_robot(arm(), position=(0, 0, 0.5), base="free" if base == "floating" else "fixed")
    if base == "driven":
        scene.drive(robot, fs.Motion([0.0, 0.3], [(0.0, 0.0, 0.0), (0.0, 0.1, 0.1)]))
    for joint in ("shoulder", "elbow"):
        scene.drive_joint("arm", joint, target, stiffness=stiffness)
    return fs.simulate(scene)


def created(run: fs.Run) -> tuple[float, float]:
    """How far E - W rises above its lowest value before, and the largest kinetic energy, J."""
    left = run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"] - run.steps["work_J"]
    return float((left - np.minimum.accumulate(left)).max()), float(run.steps["kinetic_energy_J"].max())


@pytest.mark.parametrize("base", ["fixed", "driven", "floating"])
@pytest.mark.parametrize("dt", [0.02, 0.005])
@pytest.mark.parametrize("stiffness", [50.0, 1e3, 1e5])
def test_a_servo_that_follows_makes_no_energy(stiffness: float, dt: float, base: str) -> None:
    """Where dt d/M is large, impulses at the end of each step calm the joints: a third of the energy was theirs, uncounted."""
    run = driven(dt, stiffness, fs.Profile([0.0, 0.3], [0.0, 0.6]), base)
    gained, largest = created(run)
    assert largest > 5e-3 and run.verdict in ("good", "doubtful" if dt > 0.01 else "good")
    assert gained < (0.02 if dt > 0.01 else 3e-3) * largest


@pytest.mark.parametrize("stiffness", [50.0, 1e3])
def test_a_servo_that_is_far_from_its_target_makes_none(stiffness: float) -> None:
    gained, largest = created(driven(0.002, stiffness, fs.Profile([0.0], [0.2])))
    assert gained < 0.01 * largest


def test_a_servo_brakes_with_what_it_takes() -> None:
    """At rest again, it has given what gravity and the ends of the way ask for, and its damping the rest."""
    run = driven(0.005, 1e3, fs.Profile([0.0, 0.2], [0.0, -0.4]))
    kinetic, work = run.steps["kinetic_energy_J"], run.steps["work_J"]
    assert kinetic[-1] < 1e-3 * kinetic.max()
    assert work[-1] == pytest.approx(kinetic[-1], abs=1e-3 * kinetic.max())


def efforts(stiffness: float, dt: float, joints: tuple[str, ...], jump: float = 0.0, most: float | None = None) -> np.ndarray:
    """Efforts of shoulder and elbow in each step, (n, 2), N m; ``joints`` follow a motion, whose start may be a jump away."""
    scene = fs.Scene("efforts", dt=dt, duration=0.3)
    scene.add_robot(arm(), position=(0, 0, 0.5))
    for joint in joints:
        scene.drive_joint("arm", joint, fs.Profile([0.0, 0.3], [jump, jump + 0.6]), stiffness=stiffness, max_effort=most)
    for joint in ("shoulder", "elbow"):
        scene.sensor(joint, f"arm.{joint}", kind="revolute")
    run = fs.simulate(scene)
    return np.column_stack([run.gauges[joint].values["torque_Nm"] for joint in ("shoulder", "elbow")])


@pytest.mark.parametrize(("stiffness", "dt"), [(50.0, 0.01), (1e3, 0.005), (1e5, 0.001)])
def test_a_joint_without_a_motor_exerts_nothing_beside_a_hard_servo(stiffness: float, dt: float) -> None:
    """The servo bears what two bars ask for. Up to twelve times as much was read, and 0.44 N m at the free elbow."""
    shoulder, elbow = efforts(stiffness, dt, ("shoulder",)).T
    assert np.abs(elbow).max() < 1e-12
    assert np.abs(shoulder).max() == pytest.approx(2.42, rel=0.03)


def test_no_motor_exerts_more_than_it_can() -> None:
    """Far from their targets both are at their limit; six times as much was read, where hard servos of others move them."""
    both = efforts(2e3, 0.005, ("shoulder", "elbow"), jump=0.3, most=3.0)
    assert np.abs(both).max() == pytest.approx(3.0, abs=1e-9)
