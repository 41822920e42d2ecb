"""Fingers of four-bar linkages that touch a floor at an angle at which friction holds them, whatever presses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import femsim as fs
from contact import make_solver
from femsim.step.advance import take_step
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper

CRANK = 0.1


def bar(name: str) -> fs.RobotLink:
    return fs.RobotLink.solid(name, fs.Piece(fs.Box((CRANK / 2, 0.004, 0.004)), (CRANK / 2, 0, 0)), 0.02)


def finger(
    angle: float, friction: float, stiffness: float, *, loop: bool = True, lifts: bool = False, dt: float = 0.005, **scene: Any
) -> fs.Scene:
    """A finger on two cranks that a servo presses on a floor, which it meets where they are at an angle, degrees, to the level.

    It sinks by the cosine of the angle and slides by its sine, so friction locks it where its tangent is above 1 / friction.
    """
    touching, push = math.radians(angle), 0.35
    start, height = touching - 0.3, CRANK * math.sin(touching) + 0.07
    links = [
        fs.RobotLink.solid("base", fs.Piece(fs.Box((0.01, 0.01, 0.03))), 0.5),
        bar("crank"),
        bar("rocker"),
        fs.RobotLink.solid("finger", fs.Piece(fs.Box((0.005, 0.01, 0.06)), (0, 0, -0.03)), 0.05),
    ]
    mimic = {} if loop else {"mimic": ("upper", -1.0, 0.0)}
    joints = [
        fs.RobotJoint("upper", "base", "crank", axis=(0, 1, 0), position=(0, 0, 0.02)),
        fs.RobotJoint("lower", "base", "rocker", axis=(0, 1, 0), position=(0, 0, -0.02)),
        fs.RobotJoint("tip", "crank", "finger", axis=(0, 1, 0), position=(CRANK, 0, 0), **mimic),
    ]
    built = fs.Scene("finger", dt=dt, duration=0.4 if lifts else 0.25, **scene)
    pose = {"upper": start, "lower": start} | ({"tip": -start} if loop else {})
    built.add_robot(fs.Robot("arm", links, joints), position=(0, 0, height), joints=pose, self_contact=False)
    if loop:
        at = (CRANK * math.cos(start), 0, height - 0.02 - CRANK * math.sin(start))
        built.join("arm.rocker", "arm.finger", "ball", at=at, name="loop")
    built.add_floor()
    built.set_friction("arm", "floor", friction)
    motion = fs.Profile([0.0, 0.1, 0.25, 0.35], [start, start + push, start + push, start if lifts else start + push])
    built.drive_joint("arm", "upper", motion, stiffness=stiffness, damping=0.05)
    built.sensor("tip", "arm.finger", kind="contact")
    return built


@pytest.mark.parametrize(
    ("angle", "friction", "stiffness", "more"),
    [
        (60.0, 0.8, 5.0, {}),
        (60.0, 0.8, 5.0, {"dt": 0.002}),
        (60.0, 0.8, 50.0, {}),
        (60.0, 0.8, 5.0, {"lifts": True}),
        (60.0, 0.8, 5.0, {"lifts": True, "dt": 0.002}),
        (65.0, 0.7, 20.0, {}),
        (70.0, 0.9, 20.0, {"loop": False, "lifts": True}),
    ],
)
def test_a_finger_that_friction_locks_presses_no_more_than_its_servo_can(
    angle: float, friction: float, stiffness: float, more: dict[str, Any]
) -> None:
    """Forces grew to 1e5 N beside a motor of 1 N m, some in runs called good, and a finger that was lifted stayed locked."""
    run = fs.simulate(finger(angle, friction, stiffness, **more))
    force, servo = np.linalg.norm(run.sensors["tip"].force, axis=1), stiffness * 0.35
    assert run.status == "converged" and run.verdict in ("good", "doubtful")
    assert {reason["kind"] for reason in run.info["health"]["reasons"]} <= {"locked"}
    assert run.steps["max_penetration_m"].max() < 2e-8
    # the servo alone, by the arm of the finger; with what stops the links in a step
    assert force.max() < servo / (CRANK * math.cos(math.radians(angle))) + 10.0
    assert 0.1 < force[int(0.2 / more.get("dt", 0.005)) :].max()
    if more.get("lifts"):
        assert force[-1] == 0.0


def test_what_is_locked_is_named() -> None:
    run = fs.simulate(finger(60.0, 0.8, 50.0))
    (reason,) = run.info["health"]["reasons"]
    assert run.verdict == "doubtful" and reason["kind"] == "locked" and reason["bodies"] == ["arm.finger", "floor"]
    assert "friction locks the contacts of arm.finger and floor" in reason["text"] and "Lower the friction" in reason["advice"]


def pushes(monkeypatch: pytest.MonkeyPatch) -> tuple[list[bool], list[float]]:
    """Ways in which steps are taken from now on, whether pushing, and the sums of the contact forces that came of it, N."""
    plain, asked, sums = Stepper.step, list[bool](), list[float]()

    def step(self: Stepper, *, whole: bool = True, pushing: bool = True) -> StepReport:
        report = plain(self, whole=whole, pushing=pushing)
        asked.append(pushing)
        sums.append(float(report.forces.force_sum.max()))
        return report

    monkeypatch.setattr(Stepper, "step", step)
    return asked, sums


def test_a_step_whose_forces_run_away_is_taken_without_pushing_and_so_are_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, sums = pushes(monkeypatch)
    stepper = Stepper(finger(60.0, 0.8, 50.0), make_solver("auto"))
    reports = [take_step(stepper, 0) for _ in range(40)]
    first = asked.index(False)
    assert asked[first - 1] and sums[first] < 0.1 * sums[first - 1]
    assert asked[first : first + 9] == 9 * [False] and asked[first + 9]
    locked = [k for k, report in enumerate(reports) if report.vitals.locked]
    assert locked[0] == first - 1 and reports[locked[0]].solves >= 2


def test_a_blow_that_comes_from_elsewhere_is_left_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box that overlaps the floor by rounding is pressed all at once: it bears that with pushing and without."""

    def pressed_later(t: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        return (0.0, 0.0, 0.0 if t < 0.052 else -400.0), (0.0, 0.0, 0.0)

    def taken(*, watched: bool) -> tuple[np.ndarray, list[bool]]:
        with monkeypatch.context() as patch:
            asked, _ = pushes(patch)
            if not watched:
                patch.setattr("femsim.step.advance.runs_away", lambda *_: False)
            scene = fs.Scene("blow", dt=0.005)
            scene.add_floor()
            box = fs.Box((0.05, 0.05, 0.02))
            scene.add_rigid("box", box, mass=0.1, position=(0, 0, 0.02 - 1e-8), load=pressed_later)
            stepper = Stepper(scene, make_solver("exact"))
            for _ in range(20):
                take_step(stepper, 0)
            return np.concatenate([stepper.state.q, stepper.state.v]), asked

    (with_it, asked), (without, _) = taken(watched=True), taken(watched=False)
    assert asked.count(False) == 1
    assert with_it.tobytes() == without.tobytes()


def test_a_state_remembers_that_nothing_is_pushed() -> None:
    with fs.Simulation(finger(60.0, 0.8, 50.0)) as simulation:
        simulation.step()
        while not simulation.report.vitals.locked:
            simulation.step()
        simulation.step(2)
        assert simulation.state.unpushed == 6
        kept = simulation.save()
        simulation.step(10)
        end = simulation.state.copy()
        simulation.restore(kept)
        assert simulation.state.unpushed == 6
        simulation.step(10)
        assert simulation.state == end
