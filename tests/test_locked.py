"""Fingers of four-bar linkages that touch a floor at an angle at which friction holds them, whatever presses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import femsim as fs
from contact import ContactError, make_solver
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
        (60.0, 0.8, 5.0, {"lifts": True}),
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


def resting(**load: Any) -> fs.Scene:
    """A box that rests on a floor, 1e-8 m too deep."""
    scene = fs.Scene("resting", dt=0.005, duration=0.1)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.02)), mass=0.1, position=(0, 0, 0.02 - 1e-8), **load)
    return scene


def runaway(monkeypatch: pytest.MonkeyPatch, at: int = -1, *, always: bool = False) -> list[bool]:
    """Ways in which steps are taken from now on, whether pushing.

    In the step after number ``at`` contacts press ten thousand times as much as they should where they push, as a solver leaves
    them that finds no forces; or ``always``.
    """
    plain, asked = Stepper.step, list[bool]()

    def step(self: Stepper, *, whole: bool = True, pushing: bool = True) -> StepReport:
        number = self.state.step
        report = plain(self, whole=whole, pushing=pushing)
        asked.append(pushing)
        if number == at and (pushing or always):
            forces = report.forces
            grown = replace(forces.contacts, force=1e4 * forces.contacts.force)
            report.forces = replace(forces, contacts=grown, force_sum=1e4 * forces.force_sum)
        return report

    monkeypatch.setattr(Stepper, "step", step)
    return asked


def test_a_step_whose_forces_run_away_is_taken_without_pushing_and_so_are_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = runaway(monkeypatch, at=3)
    stepper = Stepper(resting(), make_solver("exact"))
    reports = [take_step(stepper, 0) for _ in range(15)]
    assert asked == [*4 * [True], *9 * [False], *3 * [True]]
    assert [k for k, report in enumerate(reports) if report.vitals.locked] == [3]
    assert reports[3].solves == 2 and reports[3].contacts.force[:, 2].sum() == pytest.approx(0.981, rel=1e-6)
    gaps = np.array([report.contacts.gap.min() for report in reports])
    assert gaps[4:12] == pytest.approx(gaps[3], rel=1e-6)  # it stays as deep as it was, and goes on to rise then
    assert gaps[14] == pytest.approx(0.64 * gaps[12], rel=1e-3)


def test_forces_that_are_as_large_without_pushing_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = runaway(monkeypatch, at=3, always=True)
    stepper = Stepper(resting(), make_solver("exact"))
    reports = [take_step(stepper, 0) for _ in range(6)]
    assert asked == [*4 * [True], False, *2 * [True]] and not any(report.vitals.locked for report in reports)
    assert reports[3].solves == 2 and reports[3].contacts.force[:, 2].sum() == pytest.approx(9810.0, rel=1e-6)


@pytest.mark.parametrize("raises", [True, False])
def test_a_step_that_fails_without_pushing_leaves_the_first_one(monkeypatch: pytest.MonkeyPatch, raises: bool) -> None:
    runaway(monkeypatch, at=3)
    plain = Stepper.step

    def step(self: Stepper, *, whole: bool = True, pushing: bool = True) -> StepReport:
        if not pushing and raises:
            raise ContactError("no solution.")
        report = plain(self, whole=whole, pushing=pushing)
        if not pushing:
            report.solution = replace(report.solution, status="stopped at the limit")
        return report

    monkeypatch.setattr(Stepper, "step", step)
    stepper = Stepper(resting(), make_solver("exact"))
    reports = [take_step(stepper, 0) for _ in range(6)]
    assert reports[3].contacts.force[:, 2].sum() == pytest.approx(9810.0, rel=1e-6) and not reports[3].vitals.locked
    assert stepper.state.step == 6 and stepper.state.t == pytest.approx(0.03)


def test_what_is_locked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    runaway(monkeypatch, at=3)
    run = fs.simulate(resting(), solver="exact")
    (reason,) = run.info["health"]["reasons"]
    assert run.verdict == "doubtful" and reason["kind"] == "locked" and reason["bodies"] == ["box", "floor"]
    assert "friction locks the contacts of box and floor" in reason["text"] and "of 5e-09 m" in reason["text"]
    assert "Lower the friction" in reason["advice"] and reason["step"] == 4


def test_a_blow_that_comes_from_elsewhere_is_left_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The box is pressed all at once: it bears that with pushing and without."""

    def pressed_later(t: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        return (0.0, 0.0, 0.0 if t < 0.052 else -400.0), (0.0, 0.0, 0.0)

    def taken(*, watched: bool) -> tuple[np.ndarray, list[bool]]:
        with monkeypatch.context() as patch:
            asked = runaway(patch)
            if not watched:
                patch.setattr("femsim.step.advance.runs_away", lambda *_: False)
            stepper = Stepper(resting(load=pressed_later), make_solver("exact"))
            for _ in range(20):
                take_step(stepper, 0)
            return np.concatenate([stepper.state.q, stepper.state.v]), asked

    (with_it, asked), (without, _) = taken(watched=True), taken(watched=False)
    assert asked.count(False) == 1
    assert with_it.tobytes() == without.tobytes()


def test_a_state_remembers_that_nothing_is_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    runaway(monkeypatch, at=3)
    with fs.Simulation(resting(), solver="exact") as simulation:
        simulation.step(6)
        assert simulation.state.unpushed == 6
        kept = simulation.save()
        simulation.step(10)
        end = simulation.state.copy()
        simulation.restore(kept)
        assert simulation.state.unpushed == 6
        simulation.step(10)
        assert simulation.state == end


@pytest.mark.parametrize("soft", [True, False])
def test_an_overlap_that_nothing_locks_is_undone_in_zero_gravity(soft: bool) -> None:
    """A cube at rest, and a string round a post, 5e-6 m too deep and without friction, were called locked and stayed so."""
    scene = fs.Scene("floating", dt=0.005, duration=0.1, gravity=(0, 0, 0))
    if soft:
        scene.add_soft("body", fs.box_tets((0.02, 0.02, 0.02), 2), "ecoflex_00_50", position=(0, 0, 0.01 - 5e-6))
        other = scene.add_floor()
    else:
        angle = np.linspace(-np.pi / 2, np.pi / 2, 26)
        points = np.column_stack([0.006 * np.cos(angle), 0.006 * np.sin(angle), 0.0 * angle])
        scene.add_rod("body", points, fs.circular_section(0.001), fs.Elastic(1e6, 0.49, 1000.0, name="rubber"))
        other = scene.add_obstacle("post", fs.Cylinder(0.005, 0.01))
    scene.set_friction("body", other, 0.0)
    run = fs.simulate(scene)
    depth = run.steps["max_penetration_m"]
    assert run.verdict == "good" and not run.info["health"]["reasons"]
    assert depth[0] > 3e-6 and depth[-1] < 0.1 * depth[0]
