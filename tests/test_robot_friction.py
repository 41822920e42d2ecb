"""Dry friction of joints: what it takes, where it holds, and that it holds exactly."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

import femsim as fs
from contact import make_solver
from femsim.step.stepper import Stepper

G = 9.81
MASS, ARM, FRICTION = 0.5, 0.1, 0.05
PULL = MASS * G * ARM


def pendulum(friction: float = FRICTION) -> fs.Robot:
    rod = fs.RobotLink.solid("rod", fs.Piece(fs.Box((0.01, 0.01, 0.1)), (0, 0, -ARM)), MASS)
    return fs.Robot("p", [fs.RobotLink("base"), rod], [fs.RobotJoint("pin", "base", "rod", axis=(0, 1, 0), friction=friction)])


@pytest.mark.parametrize("settings", [{}, {"theta": 1.0}])
def test_a_pendulum_stops_within_its_friction_and_holds_exactly(settings: dict[str, float]) -> None:
    scene = fs.Scene("stops", dt=0.005, duration=2.0, **settings)  # type: ignore[arg-type]
    scene.add_robot(pendulum(), joints={"pin": 0.8})
    scene.sensor("pin", "p.pin", kind="revolute")
    run = fs.simulate(scene)
    values = run.gauges["pin"].values
    angle, rub, rate = values["angle_rad"], values["friction_Nm"], values["rate_radps"]
    assert run.status == "converged" and run.steps["wrench_balance"].max() < 1e-9
    # where it first turns back the weight has done as much work as the friction
    back = brentq(lambda x: PULL * (math.cos(x) - math.cos(0.8)) - FRICTION * (0.8 + x), 0.05, 0.8)
    assert settings or -angle.min() == pytest.approx(back, abs=1e-3)
    assert np.abs(rub).max() <= FRICTION * (1 + 1e-9)
    assert (rub[np.abs(rate) > 0.05] * rate[np.abs(rate) > 0.05] < 0.0).all()  # it brakes
    rest = slice(-60, None)
    assert np.ptp(angle[rest]) < 1e-15 and np.abs(rate[rest]).max() < 1e-12
    assert abs(PULL * math.sin(angle[-1])) < FRICTION
    np.testing.assert_allclose(rub[rest], PULL * math.sin(angle[-1]), atol=1e-9)
    if not settings:
        assert np.abs(run.steps["kinetic_energy_J"] - run.steps["work_J"]).max() < 2e-5


@pytest.mark.parametrize("share, moves", [(0.98, False), (1.02, True)])
def test_it_gives_way_where_the_weight_asks_for_more(share: float, moves: bool) -> None:
    start = math.asin(share * FRICTION / PULL)
    scene = fs.Scene("cone", dt=0.01, duration=0.2)
    scene.add_robot(pendulum(), joints={"pin": start})
    stepper = Stepper(scene, make_solver("auto"))
    assert all(stepper.step().solution.converged for _ in range(20))
    assert (abs(float(stepper.state.q[7]) - start) > 1e-5) is moves


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_what_a_stop_bears_is_not_put_on_friction(theta: float) -> None:
    """A pendulum that starts at rest on its stop: friction, which stands too, bears no more than it can, the stop the rest."""
    rod = pendulum().links[1]
    joint = fs.RobotJoint("pin", "base", "rod", axis=(0, 1, 0), friction=0.1, limits=(0.5, 2.0))
    scene = fs.Scene("stop", dt=0.005, duration=0.1, theta=theta)
    scene.add_robot(fs.Robot("p", [fs.RobotLink("base"), rod], [joint]), joints={"pin": 0.5})
    scene.sensor("pin", "p.pin", kind="revolute")
    values = fs.simulate(scene).gauges["pin"].values
    rub, stop = values["friction_Nm"], values["limit_Nm"]
    assert np.abs(rub).max() <= 0.1 * (1 + 1e-9)
    np.testing.assert_allclose(rub + stop, PULL * math.sin(0.5), rtol=1e-6)
    np.testing.assert_allclose(values["angle_rad"], 0.5, atol=1e-12)


def test_a_motor_that_leads_a_joint_overcomes_its_friction_and_that_of_joints_that_mimic_it() -> None:
    bars = [fs.RobotLink.solid(name, fs.Piece(fs.Box((0.02, 0.02, 0.02))), 0.1) for name in ("left", "right")]
    joints = [
        fs.RobotJoint("jaw", "base", "left", "prismatic", axis=(0, 1, 0), friction=3.0),
        fs.RobotJoint("other", "base", "right", "prismatic", axis=(0, 1, 0), friction=2.0, mimic=("jaw", -1.0, 0.0)),
    ]
    robot = fs.Robot("jaws", [fs.RobotLink("base"), *bars], joints)
    assert robot.inverse_dynamics({}, {"jaw": -0.1})["jaw"] == pytest.approx(-5.0)
    scene = fs.Scene("led", dt=0.01, duration=0.1)
    scene.add_robot(robot)
    scene.drive_joint("jaws", "jaw", lambda t: 0.1 * t)
    scene.sensor("jaw", "jaws.jaw", kind="prismatic")
    values = fs.simulate(scene).gauges["jaw"].values
    assert values["friction_N"][-1] == pytest.approx(-5.0, rel=1e-9)
    assert values["force_N"][-1] == pytest.approx(5.0, rel=1e-9)


def test_a_free_robot_with_friction_keeps_its_momenta() -> None:
    scene = fs.Scene("free", dt=0.005, duration=0.2, gravity=(0, 0, 0), nonlinear_tolerance=1e-9)
    heavy = fs.RobotLink.solid("base", fs.Piece(fs.Box((0.05, 0.05, 0.05))), 1.0)
    robot = fs.Robot("p", [heavy, *pendulum().links[1:]], pendulum(0.02).joints)
    scene.add_robot(robot, base="free", speeds={"pin": 3.0}, velocity=(0.1, 0.2, 0.3))
    stepper, (body,) = Stepper(scene, make_solver("exact", tolerance=1e-12)), scene.bodies
    first, spins = stepper.state, []
    for _ in range(40):
        assert stepper.step().solution.converged
        spins.append(body.angular_momentum(stepper.state.q, stepper.state.v))  # type: ignore[attr-defined]
    p, start = body.momentum(first.q, first.v), body.angular_momentum(first.q, first.v)  # type: ignore[attr-defined]
    np.testing.assert_allclose(body.momentum(stepper.state.q, stepper.state.v), p, atol=1e-12)
    assert abs(stepper.state.v[6]) < 1.0
    np.testing.assert_allclose(spins, np.tile(start, (40, 1)), atol=1e-10)


def test_a_joint_at_rest_in_a_robot_that_falls_is_solved_though_only_rounding_moves_it() -> None:
    links = [fs.RobotLink.solid(name, fs.Piece(fs.Box((0.02, 0.01, 0.01)), (0.03, 0, 0)), 0.3) for name in ("base", "arm")]
    pin = fs.RobotJoint("pin", "base", "arm", position=(0.05, 0.02, 0.01), axis=(0.5, -0.8, 0.7), friction=0.05)
    scene = fs.Scene("falls", dt=0.002)
    scene.add_robot(fs.Robot("r", links, [pin]), base="free")
    with fs.Simulation(scene) as sim:
        sim.step(20)
        assert sim.verdict == "good", sim.reasons
        assert abs(sim.state.v[6]) < 1e-12


def test_links_that_touch_in_a_robot_that_falls_are_held_by_their_joints() -> None:
    """Impulses between them move nothing: what their operator holds is rounding, by which steps were halved thrice."""
    turned = {"position": (0, 0, 0.02), "friction": 1.0}
    links = [fs.RobotLink.solid("base", fs.Piece(fs.Box((0.05, 0.03, 0.02))), 3.0)]
    links += [fs.RobotLink.solid(f"l{k}", fs.Piece(fs.Box((0.05, 0.03, 0.01))), 0.5) for k in range(3)]
    links += [fs.RobotLink.solid("arm", fs.Piece(fs.Box((0.01, 0.01, 0.05))), 0.2)]
    joints = [
        fs.RobotJoint("j0", "base", "l0", **{**turned, "position": (0, 0, 0.03)}, axis=(0, 1, 0)),
        fs.RobotJoint("j1", "l0", "l1", **turned, axis=(1, 0, 0)),
        fs.RobotJoint("j2", "l1", "l2", **turned, axis=(0, 1, 0)),
        fs.RobotJoint("side", "l0", "arm", **{**turned, "position": (0.06, 0, 0)}, axis=(0, 0, 1)),
    ]
    scene = fs.Scene("falls", dt=0.005)
    scene.add_robot(fs.Robot("r", links, joints), base="free", rotation=(0.3, 0.4, 0.5))
    with fs.Simulation(scene) as sim:
        for _ in range(20):
            sim.step()
            assert sim.row()["substeps"] == 1 and sim.row()["contacts"] > 0
        assert sim.verdict == "good"


def test_a_state_restored_goes_on_to_the_last_bit() -> None:
    scene = fs.Scene("again", dt=0.01, duration=1.0)
    scene.add_robot(pendulum(), joints={"pin": 0.3})
    stepper = Stepper(scene, make_solver("exact", lag=False))
    for _ in range(10):
        stepper.step()
    kept, ends = stepper.state, []
    for _ in range(2):
        stepper.restore(kept)
        ends.append([stepper.step() and stepper.state.q[7] for _ in range(30)])
    assert ends[0] == ends[1]


def test_it_is_read_from_urdf(tmp_path: Path) -> None:
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = f"""<robot name="r"><link name="a"/><link name="b">{inertia}</link><joint name="j" type="continuous">
    <parent link="a"/><child link="b"/><dynamics damping="0.1" friction="0.7"/></joint></robot>"""
    (tmp_path / "r.urdf").write_text(text)
    robot = fs.load_robot(tmp_path / "r.urdf")
    assert robot.joints[0].friction == 0.7 and not robot.notes


@pytest.mark.parametrize("change, said", [({"friction": -1.0}, "has friction -1.0"), ({"kind": "spherical"}, "have it")])
def test_wrong_friction_is_a_sentence(change: dict[str, object], said: str) -> None:
    joint = fs.RobotJoint("j", "a", "b", **({"friction": 1.0} | change))  # type: ignore[arg-type]
    with pytest.raises(fs.InputError, match=said):
        fs.Robot("r", [fs.RobotLink("a"), fs.RobotLink("b", 1.0, (0, 0, 0), np.eye(3))], [joint])


@pytest.mark.parametrize(
    "damping, friction, servo", [(1e-3, 0.0, 0.0), (0.0, 2e-3, 0.0), (1e-3, 1e-3, 0.0), (0.0, 0.0, 1e-3), (5.0, 0.0, 5.0)]
)
def test_what_joints_lose_is_said_as_such(damping: float, friction: float, servo: float) -> None:
    """A wheel runs down: what its joint takes is what it had, but for what a servo brakes; the balance stays exact."""
    wheel = fs.RobotLink.solid("wheel", fs.Piece(fs.Cylinder(0.05, 0.01)), 0.5)
    pin = fs.RobotJoint("pin", "base", "wheel", "continuous", damping=damping, friction=friction)
    scene = fs.Scene("wheel", dt=0.01, duration=0.2, gravity=(0, 0, 0))
    robot = scene.add_robot(fs.Robot("r", [fs.RobotLink("base"), wheel], [pin]), speeds={"pin": 10.0})
    if servo:
        scene.drive_joint(robot, "pin", velocity=lambda t: 0.0, damping=servo)
    run = fs.simulate(scene, tolerance=1e-12)
    kinetic, work, lost = (run.steps[name] for name in ("kinetic_energy_J", "work_J", "joint_loss_J"))
    start = 0.5 * 0.5 * 0.5 * 0.05**2 * 10.0**2
    np.testing.assert_allclose(kinetic - work, start, rtol=1e-9)
    taken = (start - kinetic) * (0.0 if not damping + friction else 0.5 if damping and servo else 1.0)
    np.testing.assert_allclose(lost, taken, atol=1e-9 * start)
    said = "" if not taken.any() else f", {100.0 * taken[-1] / start:.1f} % to joints"
    assert f"lost 0.0 % to friction{said}, " in run.summary()
