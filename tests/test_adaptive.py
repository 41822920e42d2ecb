"""Steps of a length that the motion asks for: the estimate of their error against closed forms, and what a run makes of it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import femsim as fs
from contact.solvers import make_solver
from femsim.base.errors import InputError
from femsim.step.adaptive import StepLengths, local_error, take_adaptive_step
from femsim.step.advance import NOT_CONVERGED, Attempt, attempt
from femsim.step.state import State
from femsim.step.stepper import Stepper

MASS = 0.03**3 * 1000.0


def cube(**settings: Any) -> fs.Scene:
    """A cube of 30 mm in free flight unless ``load`` says otherwise; no contact."""
    load = settings.pop("load", None)
    scene = fs.Scene("cube", **{"dt": 0.01, "duration": 0.1, "theta": 1.0} | settings)
    scene.add_soft("cube", fs.box_tets((0.03,) * 3, (1, 1, 1)), fs.Elastic(1e5, 0.3, 1000.0), load=load)
    return scene


def dropped(**settings: Any) -> fs.Scene:
    """A soft cube that falls 20 mm onto a floor and rebounds."""
    scene = fs.Scene("dropped", **{"duration": 0.15, "integrator": "energy-momentum"} | settings)
    scene.add_floor()
    cells = fs.box_tets((0.03,) * 3, (2, 2, 2))
    scene.add_soft("cube", cells, fs.Elastic(2e5, 0.3, 1000.0), position=(0, 0, 0.035), law="stable_neo_hookean")
    return scene


def errors_of_steps(scene: fs.Scene, steps: int) -> tuple[list[float], Stepper]:
    """Estimate of each of some steps of one length."""
    stepper, found = Stepper(scene, make_solver("auto")), []
    for _ in range(steps):
        old = stepper.state
        stepper.step()
        found.append(local_error(stepper.system, old, stepper.state, stepper.settings.theta))
    return found, stepper


def test_backward_euler_falls_short_by_half_of_g_dt_squared() -> None:
    """The error of each step of a free fall, which the estimate gives to rounding."""
    found, _ = errors_of_steps(cube(), 4)
    assert found == pytest.approx([0.5 * 9.81 * 0.01**2] * 4, rel=1e-9)


@pytest.mark.parametrize("dt", [0.01, 0.005])
def test_the_mid_point_rule_errs_with_the_rate_of_acceleration(dt: float) -> None:
    """A force that grows by 2 N/s: |q'''| dt^3 / 12. A constant one makes no error from the second step on."""
    rate = 2.0
    growing, _ = errors_of_steps(cube(dt=dt, theta=0.5, gravity=(0, 0, 0), load=lambda t: (rate * t, 0.0, 0.0)), 5)
    assert growing[1:] == pytest.approx([rate / MASS * dt**3 / 12.0] * 4, rel=1e-6)
    falling, _ = errors_of_steps(cube(dt=dt, theta=0.5), 4)
    assert max(falling[1:]) < 1e-12
    assert falling[0] == pytest.approx(9.81 * dt**2 / 6.0, rel=1e-9)  # nothing is known of the step before


def test_given_velocities_make_no_error() -> None:
    """A driven body moves as it is told, however suddenly."""
    scene = fs.Scene("driven", dt=0.01, duration=0.05, gravity=(0, 0, 0), theta=1.0)
    box = scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), density=1000.0)
    scene.drive(box, lambda t: (np.array([1e-3 * math.sin(300.0 * t), 0.0, 0.0]), np.zeros(3)))
    assert max(errors_of_steps(scene, 5)[0]) == 0.0


def test_short_steps_where_it_lands_and_long_ones_in_flight() -> None:
    """One long step at a time in flight, many short ones in the impact, and an error that is as asked for."""
    run = fs.simulate(dropped(dt="auto", dt_bounds=(1e-4, 1e-2), time_tolerance=1e-5))
    parts = run.steps["substeps"]
    assert run.status == "converged"
    assert (parts[1:5] == 1).all() and parts.max() > 10 and parts.max() <= 128
    assert run.steps["time_error_m"].max() <= 1e-5
    assert run.steps["time_s"] == pytest.approx(0.01 * np.arange(1, 16), abs=1e-12)
    assert "parts of a step" in run.summary() and "halved" not in run.summary() and "sub-steps" not in run.message
    assert run.info["settings"]["shortest_dt_s"] == pytest.approx(1e-2 / 128)


def released(**settings: Any) -> fs.Scene:
    """A rubber cantilever that is let go level: it swings, slowest at both ends of its way."""
    scene = fs.Scene(
        "released",
        **{"duration": 0.16, "integrator": "energy-momentum", "strain_damping": 0.0, "nonlinear_tolerance": 1e-8} | settings,
    )
    bar = fs.box_tets((0.1, 0.015, 0.015), (6, 1, 1))
    scene.add_soft("bar", bar, fs.Elastic(3e5, 0.3, 1000.0), fixed=lambda x: x[:, 0] < x[:, 0].min() + 1e-9)
    return scene


def test_a_smaller_tolerance_gives_a_smaller_error() -> None:
    """Of second order: a hundredth of the error of a step is a twentieth of that of the way."""

    def place(**settings: Any) -> np.ndarray:
        return fs.simulate(released(**settings)).stepper.state.q

    true = place(dt=1.25e-4)
    auto = [place(dt="auto", dt_bounds=(1e-4, 2e-2), time_tolerance=tolerance) for tolerance in (1e-4, 1e-6)]
    coarse, fine = (float(np.abs(q - true).max()) for q in auto)
    assert 2e-5 < coarse < 3e-3
    assert fine < coarse / 10.0


def test_the_same_input_takes_the_same_steps(tmp_path: Path) -> None:
    """To the last bit, also from a state that was saved on the way."""
    scene, lengths = dropped(), StepLengths.between(1e-4, 1e-2, 1e-5)
    stepper = Stepper(scene, make_solver("cond"), dt=lengths.longest)
    for number in range(1, 13):
        report = take_adaptive_step(stepper, lengths)
        if number == 8:
            stepper.state.save(tmp_path / "state.npz")
    again = Stepper(scene, make_solver("cond"), dt=lengths.longest)
    again.restore(State.load(tmp_path / "state.npz"))
    for _ in range(4):
        twin = take_adaptive_step(again, lengths)
    assert stepper.state == again.state
    assert len(twin.parts) == len(report.parts) and twin.solution.iterations == report.solution.iterations
    assert stepper.settings.dt == lengths.longest


def test_a_part_that_cannot_be_solved_is_taken_again_shorter() -> None:
    """With a tolerance that no error exceeds, only the equations decide: what two linearisations do not solve."""
    scene = dropped(max_solves=2)
    loose = StepLengths.between(1e-4, 1e-2, 1.0)
    stepper = Stepper(scene, make_solver("auto"), dt=loose.longest)
    reports = [take_adaptive_step(stepper, loose) for _ in range(10)]
    assert max(len(report.parts) for report in reports) > 1
    whole = Stepper(scene, make_solver("auto"), dt=loose.longest)
    assert not all(whole.step().solution.converged for _ in range(10))
    assert sum(report.solution.converged for report in reports) >= 9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dt": "fast"}, "dt is 'fast'; allowed are a number of seconds and \"auto\""),
        ({"dt": "auto", "dt_bounds": (1e-2, 1e-4)}, "give the shortest step first"),
        ({"dt": "auto", "dt_bounds": (0.0, 1e-4)}, "dt_bounds is 0.0 s; allowed are positive numbers"),
        ({"dt": "auto", "dt_bounds": (1e-12, 1.0)}, "40 halvings apart; allowed are at most 20"),
        ({"dt": "auto", "dt_bounds": 1e-3}, "dt_bounds is 0.001; give the shortest and the longest step in s"),
        ({"dt": "auto", "time_tolerance": -1.0}, "time_tolerance is -1.0 m"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], message: str) -> None:
    """Each says what is allowed."""
    with pytest.raises(InputError) as caught:
        fs.simulate(cube(**settings))
    assert message in str(caught.value)


@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_what_acts_in_all_parts_of_a_shortest_step_that_is_halved_is_read(restitution: float) -> None:
    """Sensors of some contacts read the last half alone: with restitution 0 N of the 26 N of the hit."""

    def hit(dt: float | str) -> fs.Run:
        scene = fs.Scene("hit", dt=dt, duration=0.04, **({"dt_bounds": (0.01, 0.01)} if dt == "auto" else {}))  # type: ignore[arg-type]
        fast = {"velocity": (10.0, 0.0, -2.0), "angular_velocity": (0.0, 20.0, 5.0)}
        scene.add_rigid("box", fs.Box((0.02,) * 3), mass=0.1, position=(0.0, 0.0, 0.06), rotation=(0.3, 0.5, 0.2), **fast)
        scene.add_rigid("table", fs.Box((1.0, 0.5, 0.1)), mass=1.0, position=(0.4, 0.0, -0.1))
        scene.set_friction("box", "table", 0.3)
        scene.set_restitution("box", "table", restitution)
        scene.sensor("whole", "box")
        scene.sensor("with table", "box", partner="table")
        scene.sensor("slip", "box", kind="slip")
        return fs.simulate(scene)

    run, fixed = hit("auto"), hit(0.01)
    assert run.steps["substeps"].max() == 2 and np.abs(run.sensors["whole"].force).max() > 10.0
    np.testing.assert_array_equal(run.steps["substeps"], fixed.steps["substeps"])
    np.testing.assert_allclose(run.sensors["with table"].force, run.sensors["whole"].force, atol=1e-9)
    lost = run.gauges["slip"].values["friction_J"][-1]
    assert lost == pytest.approx(run.steps["friction_loss_J"][-1], rel=1e-9) and lost > 0.1


def test_contacts_in_frames_have_the_mean_forces_of_the_whole_step(tmp_path: Path) -> None:
    """They had those of its last part, which a box that has just landed leaves with another force than the step has."""
    scene = fs.Scene("land", dt="auto", duration=0.12)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.01, 0.02, 0.01)), mass=0.1, position=(0, 0, 0.03), rotation=(0.2, 0.0, 0.0))
    scene.sensor("box", "box")
    run = fs.simulate(scene, out=tmp_path / "run")
    frames = fs.open_frames(tmp_path / "run")
    shown = np.array([np.asarray(frames.read(k, "contacts")["force"]).sum(axis=0) for k in range(1, len(frames.times))])
    landed = np.abs(run.sensors["box"].force[:, 2]) > 1e-3
    assert len(shown) == 12 and (run.steps["substeps"][landed] > 1).sum() >= 2
    np.testing.assert_allclose(shown, run.sensors["box"].force, atol=1e-5 * np.abs(shown).max())  # fields are float32


def carriage(**settings: Any) -> fs.Scene:
    """A carriage that runs along a bar at 2 m/s without a force, and a shaken box for which "auto" takes short steps."""
    scene = fs.Scene("carriage", **{"duration": 0.05} | settings)
    links = [fs.RobotLink.solid(name, fs.Piece(fs.Box((0.01,) * 3)), 0.2) for name in ("base", "bar", "carriage")]
    joints = [
        fs.RobotJoint("hinge", "base", "bar", position=(0.03, 0, 0), axis=(1, 0, 0)),
        fs.RobotJoint("rail", "bar", "carriage", "prismatic", position=(0.03, 0, 0), axis=(1, 0, 0)),
    ]
    scene.add_robot(fs.Robot("arm", links, joints), base="fixed", speeds={"rail": 2.0})
    scene.add_rigid(
        "box", fs.Box((0.01,) * 3), mass=1.0, position=(0, 1, 0), load=lambda t: ((math.sin(100 * t), 0, 0), (0, 0, 0))
    )
    scene.sensor("bar", "arm.bar", kind="joint")
    return scene


def torque_of_carriage(time: np.ndarray) -> np.ndarray:
    """Torque (n,), N m, about the centre of the bar by which its hinge bears the weight of the carriage at these times, s."""
    return -0.2 * 9.81 * (0.03 + 2.0 * time)


@pytest.mark.parametrize("theta", [None, 1.0])
def test_the_torque_in_a_joint_is_the_mean_of_all_parts_of_a_step(theta: float | None) -> None:
    """By backward Euler the weight acted where it is at the end of the longest step, 7.5 mm further out than in its parts."""
    run = fs.simulate(carriage(dt="auto", dt_bounds=(0.0025, 0.01), time_tolerance=1e-15, theta=theta))
    np.testing.assert_array_equal(run.steps["substeps"], 4)
    acted = run.steps["time_s"] - (0.005 if theta is None else 0.00375)  # in the middle of each part, or at its end
    np.testing.assert_allclose(run.sensors["bar"].torque[:, 1], torque_of_carriage(acted), rtol=1e-9)


def test_the_torque_in_a_joint_is_that_of_the_scheme_that_took_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where backward Euler takes a step of the energy-momentum scheme, the weight acts at its end, not in its middle."""

    def spoiled(stepper: Stepper) -> Attempt:
        found = attempt(stepper)
        return replace(found, grade=NOT_CONVERGED) if stepper.settings.conserving else found

    monkeypatch.setattr("femsim.step.advance.attempt", spoiled)
    run = fs.simulate(carriage(dt=0.01))
    np.testing.assert_array_equal(run.steps["theta"], 1.0)
    np.testing.assert_allclose(run.sensors["bar"].torque[:, 1], torque_of_carriage(run.steps["time_s"]), rtol=1e-9)


@pytest.mark.parametrize("theta", [None, 1.0])
def test_the_wrench_in_a_joint_that_turns_is_the_mean_of_its_parts(theta: float | None) -> None:
    """An arm whirls: the torque about the moving centre of its link was that of the chord of the longest step, 8 mN m off."""

    def whirl(**settings: Any) -> fs.Run:
        scene = fs.Scene("whirl", duration=0.05, theta=theta, nonlinear_tolerance=1e-10, **settings)
        piece = fs.Piece(fs.Box((0.1, 0.01, 0.01)), (0.1, 0, 0))
        links = [fs.RobotLink.solid(name, piece, mass) for name, mass in (("base", 1.0), ("up", 0.4), ("fore", 0.3))]
        joints = [
            fs.RobotJoint("a", "base", "up", axis=(0, 1, 0)),
            fs.RobotJoint("b", "up", "fore", position=(0.2, 0, 0), axis=(0, 1, 0.3)),
        ]
        scene.add_robot(fs.Robot("arm", links, joints), joints={"b": 0.6}, speeds={"a": 15.0, "b": 15.0})
        scene.sensor("up", "arm.up", kind="joint")
        return fs.simulate(scene, tolerance=1e-10)

    run, short = whirl(dt="auto", dt_bounds=(0.0025, 0.01), time_tolerance=1e-15), whirl(dt=0.0025)
    np.testing.assert_array_equal(run.steps["substeps"], 4)
    for name in ("force", "torque"):
        mean = getattr(short.sensors["up"], name).reshape(5, 4, 3).mean(axis=1)
        np.testing.assert_allclose(getattr(run.sensors["up"], name), mean, atol=1e-6 * np.abs(mean).max())


@pytest.mark.parametrize("shortest", [1e-3, 1e-4])
def test_a_joint_breaks_when_it_bears_too_much(shortest: float) -> None:
    """It broke at the end of the longest step: the box fell up to 10 ms late, 0.4 m/s too slow, whatever the tolerance."""
    jump, weight, pull = 0.2003, 9.81, 30.0
    scene = fs.Scene("breaks", dt="auto", dt_bounds=(shortest, 1e-2), time_tolerance=1e-5, duration=0.4)
    scene.add_rigid("box", fs.Box((0.05,) * 3), mass=1.0, load=lambda t: ((0.0, 0.0, -pull if t > jump else 0.0), (0.0,) * 3))
    scene.join("box", "world", at=(0, 0, 0), breakable=(18.0, 5.0), name="weld")
    scene.sensor("box", "box", kind="marker")
    scene.sensor("weld", "weld", kind="reaction")
    run = fs.simulate(scene)
    speed = (weight + pull) * np.maximum(run.markers["box"].time - jump, 0.0)
    behind = 0.5 * speed**2 / (weight + pull) + run.markers["box"].position[:, 2]
    assert (np.abs(behind) <= 2.0 * shortest * speed + 1e-9).all()
    held, late = run.sensors["weld"].force[:, 2], 2.0 * shortest * pull / 0.01
    np.testing.assert_allclose(held, [weight] * 20 + [held[20]] + [0.0] * 19, atol=1e-9)
    assert weight * 0.03 < held[20] < weight * 0.03 + 2.0 * late
    assert run.steps["substeps"][:20].max() == 1 and run.steps["substeps"][20] > 2
