"""What driven bodies carry: it sticks, presses and turns as closed forms say, since both end a step with velocities alike."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import femsim as fs
from femsim.base.rotations import angular_velocity, quaternion_from_vector, quaternion_to_matrix
from femsim.model.commands import MOTION, Command, FrameMotion, rate_of
from femsim.model.drives import at_rest
from femsim.model.holds import Hold

G = 9.81
MU = 0.4


def tray(motion: Callable[[float], object], *, soft: bool = False, dt: float = 0.01, **options: float) -> fs.Run:
    """A driven tray of 1 kg with a box of 0.3 kg on it, or a soft one of 0.27 kg that damps itself."""
    scene = fs.Scene("tray", dt=dt, duration=0.4, **options)
    plate = scene.add_rigid("tray", fs.Box((0.5, 0.3, 0.01)), mass=1.0, position=(0.0, 0.0, -0.01))
    scene.drive(plate, motion)
    if soft:
        rubber = fs.Elastic(1e6, 0.4, 1000.0, rayleigh_beta=2e-3)
        box = scene.add_soft("box", fs.box_tets((0.06, 0.06, 0.03), (3, 3, 2)), rubber, position=(0.0, 0.0, 0.015))
    else:
        box = scene.add_rigid("box", fs.Box((0.03, 0.03, 0.02)), mass=0.3, position=(0.0, 0.0, 0.02))
    scene.set_friction(box, plate, MU)
    scene.sensor("box", box)
    scene.sensor("place", box, kind="marker", **({"node": 0} if soft else {}))
    scene.sensor("tray", plate, kind="marker")
    scene.sensor("mount", plate, kind="mount")
    run = fs.simulate(scene)
    assert run.status == "converged" and run.verdict == "good"
    return run


def aside(run: fs.Run) -> np.ndarray:
    """Way of the box on the tray, (steps, 3), m."""
    way = run.markers["place"].position - run.markers["tray"].position
    return np.asarray(way - way[0])


@pytest.mark.parametrize("dt", [0.01, 0.0025])
@pytest.mark.parametrize("options", [{}, {"theta": 0.5}], ids=["energy-momentum", "mid-point"])
def test_what_friction_can_hold_does_not_creep_on_what_speeds_up(dt: float, options: dict[str, float]) -> None:
    """At 0.95 of what friction can hold, from the first step on; the forces and the work are those of a rigid whole."""
    a = 0.95 * MU * G
    run = tray(lambda t: ((0.5 * a * t * t, 0.0, 0.0), (0.0, 0.0, 0.0)), dt=dt, **options)
    assert np.abs(aside(run)).max() < 1e-9
    np.testing.assert_allclose(run.sensors["box"].force[:, 0], 0.3 * a, rtol=1e-6)
    np.testing.assert_allclose(run.sensors["mount"].force[:, 0], 1.3 * a, rtol=1e-6)
    assert abs(run.steps["friction_loss_J"][-1]) < 1e-9
    np.testing.assert_allclose(run.steps["work_J"], 0.5 * 1.3 * (a * run.steps["time_s"]) ** 2, atol=1e-8)


def test_what_friction_cannot_hold_slides_as_far_as_it_must() -> None:
    a = 1.15 * MU * G
    run = tray(lambda t: ((0.5 * a * t * t, 0.0, 0.0), (0.0, 0.0, 0.0)))
    np.testing.assert_allclose(aside(run)[-1, 0], -0.5 * 0.15 * MU * G * (0.4**2 - 0.01**2), rtol=5e-3)
    np.testing.assert_allclose(run.sensors["box"].force[:, 0], MU * 0.3 * G, rtol=1e-6)


def test_a_soft_body_sticks_likewise() -> None:
    """It shears first; at 0.9 no node of it creeps."""
    a = 0.9 * MU * G
    run = tray(fs.Motion([0.0, 0.8], [(0.0, 0.0, 0.0), (0.64 * a / 6.0, 0.0, 0.0)]), soft=True)
    way = aside(run)[:, 0]
    assert np.abs(way).max() < 2e-6 and run.steps["friction_loss_J"][-1] < 1e-5


@pytest.mark.parametrize("a", [3.0, -6.0, -9.0])
def test_what_lies_on_a_lift_presses_steadily(a: float) -> None:
    """Also where the lift falls by more than half of g; it did press in every second step only."""
    run = tray(lambda t: ((0.0, 0.0, 0.5 * a * t * t), (0.0, 0.0, 0.0)))
    np.testing.assert_allclose(run.sensors["box"].force[:, 2], 0.3 * (G + a), rtol=1e-6)
    np.testing.assert_allclose(run.sensors["mount"].force[:, 2], 1.3 * (G + a), rtol=1e-6)
    assert np.abs(aside(run)[:, 2]).max() < 1e-9


def test_a_turntable_that_speeds_up_takes_a_box_along() -> None:
    """Radial and tangential force together stay within what friction holds; the box turns with the table."""
    scene = fs.Scene("turntable", dt=0.01, duration=1.0)
    table = scene.add_rigid("table", fs.Cylinder(0.3, 0.01), mass=1.0, position=(0.0, 0.0, -0.01))
    scene.drive(table, lambda t: ((0.0, 0.0, 0.0), (0.0, 0.0, 2.0 * t * t)))
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.01)), mass=0.3, position=(0.2, 0.0, 0.01))
    scene.set_friction(box, table, MU)
    scene.sensor("box", box)
    scene.sensor("place", box, kind="marker")
    run = fs.simulate(scene)
    assert run.status == "converged" and run.verdict == "good"
    time, place = run.steps["time_s"], run.markers["place"].position
    angle = 2.0 * time**2
    assert np.abs(np.hypot(*place[:, :2].T) - 0.2).max() < 2e-5
    assert np.abs(np.unwrap(np.arctan2(place[:, 1], place[:, 0])) - angle).max() < 2e-4
    middle = time - 0.005
    force = np.linalg.norm(run.sensors["box"].force[:, :2], axis=1)
    np.testing.assert_allclose(force, 0.3 * 0.2 * np.hypot(4.0, (4.0 * middle) ** 2), rtol=2e-3, atol=2e-3)


def test_the_effort_of_a_joint_that_follows_a_motion_is_of_second_order() -> None:
    """It is that of the middle of the step, by inverse dynamics."""
    robot, start = fs.load_robot("arm7.urdf"), {"joint2": 0.6, "joint4": 1.9, "joint6": 0.6}
    joints = [f"joint{k}" for k in range(1, 8)]
    motions = {k: fs.Profile([0.0, 0.25], [start.get(k, 0.0), start.get(k, 0.0) + 0.3]) for k in joints}

    def wanted(t: float) -> np.ndarray:
        h = 1e-5
        place = {k: p(t) for k, p in motions.items()} | {"left_jaw": 0.02}
        speed = {k: (p(t + h) - p(t - h)) / (2.0 * h) for k, p in motions.items()}
        rate = {k: (p(t + h) - 2.0 * p(t) + p(t - h)) / h**2 for k, p in motions.items()}
        efforts = robot.inverse_dynamics(place, speed, rate)
        return np.array([efforts[k] for k in joints])

    errors = []
    for dt in (0.01, 0.005):
        scene = fs.Scene("arm", dt=dt, duration=0.25)
        scene.add_robot(robot, name="arm", joints={**start, "left_jaw": 0.02})
        scene.drive_joint("arm", "left_jaw", fs.Profile([0.0], [0.02]))
        for k in joints:
            scene.drive_joint("arm", k, motions[k])
            scene.sensor(k, f"arm.{k}", kind="revolute")
        run = fs.simulate(scene)
        assert run.verdict == "good" and run.steps["wrench_balance"].max() < 1e-12
        found = np.array([run.gauges[k].values["torque_Nm"] for k in joints]).T
        exact = np.array([wanted(t - 0.5 * dt) for t in run.steps["time_s"]])
        errors.append(np.abs(found - exact)[2:-2].max())
    assert errors[0] < 0.1 and errors[1] < 0.35 * errors[0]


# ---------------------------------------------------------------------- rates


def difference(function: Callable[[float], object], t: float, h: float = 1e-6) -> np.ndarray:
    return np.asarray((np.asarray(function(t)) - np.asarray(function(t - h))) / h)


@pytest.mark.parametrize("smooth", [True, False, "spline", "monotone"])
def test_rates_of_profiles_and_motions_are_their_slopes(smooth: bool) -> None:
    profile = fs.Profile([0.1, 0.3, 0.35, 1.0], [1.0, -2.0, 4.0, 4.5], smooth=smooth)
    for t in (0.05, 0.1, 0.2, 0.3, 0.32, 0.5, 1.0, 1.2):
        assert profile.rate(t) == pytest.approx(float(difference(profile, t)), rel=1e-4, abs=1e-2)
    motion = fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0), (1.0, 2.0, 3.0)], [(0.0, 0.0, 0.0), (0.1, 0.2, 0.3)], smooth=bool(smooth))
    np.testing.assert_allclose(np.array(motion.rate(0.4)), difference(motion, 0.4), atol=1e-4)


def test_values_that_are_held_from_step_to_step_move_in_all_of_it() -> None:
    """What a tray carries that goes on in jumps, by a function or by commands, does not stop at the end of each step."""

    def held(t: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        return (1e-4 * round(t / 0.01 - 1e-6), 0.0, 0.0), (0.0, 0.0, 0.0)

    run = tray(held)
    assert np.abs(aside(run)[1:] - aside(run)[1]).max() < 1e-9 and run.steps["friction_loss_J"][-1] < 1e-3
    scene = fs.Scene("commanded", dt=0.01, duration=1.0)
    plate = scene.add_rigid("tray", fs.Box((0.5, 0.3, 0.01)), mass=1.0, position=(0.0, 0.0, -0.01))
    scene.drive(plate, fs.Motion([0.0], [(0.0, 0.0, 0.0)]))
    box = scene.add_rigid("box", fs.Box((0.03, 0.03, 0.02)), mass=0.3, position=(0.0, 0.0, 0.02))
    scene.set_friction(box, plate, MU)
    sim, ways = fs.Simulation(scene), []
    for k in range(30):
        sim.set("tray", ((1e-4 * k, 0.0, 0.0), (0.0, 0.0, 0.0)))
        sim.step()
        ways.append(sim.pose("box")[1][0] - sim.pose("tray")[1][0])
    assert np.ptp(ways) < 1e-9


def test_what_stands_is_not_differenced() -> None:
    """A base that stands is where it was asked to be, and its rate is that of three places of the step, to the last bit."""
    command = Command("base", at_rest, *MOTION)
    for motion in (command, FrameMotion(command, np.array([0.1, 0.2, 0.3]))):
        expected = rate_of(lambda t, motion=motion: motion(t), 0.5, 0.01)
        np.testing.assert_array_equal(rate_of(motion, 0.5, 0.01), expected)
        assert not expected.any()
    asked: list[float] = []
    command.given = lambda t: (asked.append(t), at_rest(t))[1]  # another function is asked at four places
    rate_of(command, 0.5, 0.01)
    assert len(asked) == 4
    command.given = at_rest
    command.take((0.0, 0.0, 1e-3), 0.0, 0.0)  # and one that is commanded moves
    assert rate_of(FrameMotion(command, np.zeros(3)), 0.01, 0.01)[0, 2] == pytest.approx(0.1)


def test_rates_of_functions_and_commands() -> None:
    assert rate_of(lambda t: 3.0, 1.0, 0.01) == 0.0  # to the last bit
    assert rate_of(lambda t: 0.1 + 2.0 * t * t, 1.0, 0.01) == pytest.approx(4.0, abs=1e-9)
    moved, turned = rate_of(lambda t: ((t, 0.0, 0.0), (0.0, t * t, 0.0)), 0.5, 0.01)
    np.testing.assert_allclose([moved, turned], [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)], atol=1e-9)
    command = Command("x", fs.Profile([0.0, 2.0], [0.0, 4.0], smooth=False), "position", "m")
    assert command.rate(1.0, 0.01) == pytest.approx(2.0)
    command.take(8.0, 1.0, 0.5)  # from 2 to 8
    assert [float(command.rate(t, 0.01)) for t in (1.0, 1.2, 1.5, 1.51)] == pytest.approx([0.0, 12.0, 12.0, 0.0])
    command.take(1.0, 1.5, 0.0)  # a jump, which takes the step that begins there
    assert command.rate(1.51, 0.01) == pytest.approx(-700.0) and command.rate(1.52, 0.01) == 0.0


@pytest.mark.parametrize("size", [1e-9, 1e-4, 0.3, 3.0])
def test_angular_velocities_are_those_of_the_rotations(size: float) -> None:
    rng = np.random.default_rng(0)
    vector, rate, h = size * rng.standard_normal(3), rng.standard_normal(3), 1e-6

    def turned(t: float) -> np.ndarray:
        return quaternion_to_matrix(quaternion_from_vector(vector + t * rate))

    skew = (turned(h) - turned(-h)) / (2.0 * h) @ turned(0.0).T
    np.testing.assert_allclose(angular_velocity(vector, rate), [skew[2, 1], skew[0, 2], skew[1, 0]], atol=1e-8)


def test_held_nodes_end_with_the_velocity_of_their_motion() -> None:
    rng = np.random.default_rng(1)
    hold = Hold("grip", 0, np.arange(4), rng.standard_normal((4, 3)), rng.standard_normal(3), None)
    motion = fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0), (0.1, 0.2, 0.0)], [(0.0, 0.0, 0.0), (0.5, -1.0, 0.7)])
    found = hold.velocities(motion, 0.4, 1e-3)
    np.testing.assert_allclose(found, difference(lambda t: hold.positions(motion, t), 0.4), atol=1e-5)
    assert np.abs(found).max() > 0.1


@pytest.mark.parametrize(("theta", "thick"), [(None, 1.0), (0.5, 1.0), (0.75, 1.0), (1.0, 1.0), (0.5, 0.05), (1.0, 0.05)])
def test_who_turns_a_body_about_no_principal_axis_bears_its_gyroscopic_torque(theta: float | None, thick: float) -> None:
    """omega x I omega, at a constant rate, between its values at both ends of the step; of a thin rod too."""
    axis, rate, dt = np.array([1.0, 1.0, 0.0]) / math.sqrt(2.0), 6.0, 0.002
    scene = fs.Scene("spun", dt=dt, duration=0.2, gravity=(0.0, 0.0, 0.0), **({} if theta is None else {"theta": theta}))
    box = scene.add_rigid("box", fs.Box((0.1, 0.03 * thick, 0.02 * thick)), mass=1.0)
    scene.drive(box, lambda t: (np.zeros(3), axis * rate * t))
    scene.sensor("mount", box, kind="mount")
    found = fs.simulate(scene).sensors["mount"].torque[-1]
    long, wide, high = 0.01, (0.03 * thick) ** 2, (0.02 * thick) ** 2
    inertia, spin = np.diag([wide + high, long + high, long + wide]) / 3.0, rate * axis
    turn = quaternion_to_matrix(quaternion_from_vector(axis * rate * (0.2 - 0.5 * dt)))
    wanted = np.cross(spin, turn @ inertia @ turn.T @ spin)
    np.testing.assert_allclose(found, wanted, atol=0.02 * np.linalg.norm(wanted))


def turned(scene: fs.Scene, name: str, pivot: np.ndarray) -> tuple[fs.Simulation, np.ndarray, np.ndarray]:
    """Drive a body from the origin about ``pivot`` at a constant rate, about no axis of its own, for 0.2 s after the first step.

    Returns
    -------
    simulation, impulse, change : Simulation, and ndarray, (3,), N m s
        The simulation, impulse of the torques of its mount, and by how much the angular momentum about ``pivot`` changed.
    """

    def turn(t: float) -> tuple[np.ndarray, np.ndarray]:
        turned = np.array([4.0, 0.0, 5.0]) * t
        return pivot - quaternion_to_matrix(quaternion_from_vector(turned)) @ pivot, turned

    scene.drive(name, turn)
    scene.sensor("mount", name, kind="mount")
    sim = fs.Simulation(scene)
    body, impulse, momenta = scene.bodies[0], np.zeros(3), []
    for _ in range(round(0.2 / sim.dt) + 1):
        sim.step()
        q, v = sim.stepper.state.q, sim.stepper.state.v
        momenta.append(body.angular_momentum(q, v) - np.cross(pivot, body.momentum(q, v)))
        impulse += sim.read("mount").torque * sim.dt if len(momenta) > 1 else 0.0
    assert sim.verdict == "good" and sim.row()["wrench_balance"] < 1e-13
    return sim, impulse, momenta[-1] - momenta[0]


def test_the_work_of_who_turns_a_body_about_no_principal_axis_does_not_grow() -> None:
    """Turned at a constant rate it keeps its energy; the torque had been that of the start of the step, off by order dt."""
    for dt, bound in ((0.01, 4e-4), (0.005, 1e-4)):
        scene = fs.Scene("box", dt=dt, duration=1.0, gravity=(0.0, 0.0, 0.0))
        scene.add_rigid("box", fs.Box((0.02, 0.05, 0.1)), mass=2.0, rotation=(0.0, 0.6, 0.0))
        sim, impulse, change = turned(scene, "box", np.zeros(3))
        np.testing.assert_allclose(impulse, change, atol=bound * np.linalg.norm(change))
        work = sim.row()["work_J"]
        sim.step(50)
        assert abs(sim.row()["work_J"] - work) < 1e-11


def test_who_turns_a_gripper_bears_what_its_fingers_need() -> None:
    """Fingers that slide outwards while it turns: the impulse of the torque changes the angular momentum, to second order."""
    for dt, bound in ((0.01, 8e-4), (0.005, 2e-4)):
        scene = fs.Scene("gripper", dt=dt, duration=1.0, gravity=(0.0, 0.0, 0.0))
        pad = fs.Box((0.01, 0.01, 0.04))
        fingers = [
            fs.Finger("left", pad, (0.03, 0.0, -0.05), (1.0, 0.0, 0.0), 0.2),
            fs.Finger("right", pad, (-0.03, 0.02, -0.05), (-1.0, 0.0, 0.0), 0.1),
        ]
        hand = scene.add_gripper("hand", fingers, mass=0.5)
        _, impulse, change = turned(scene, hand.name, np.zeros(3))
        np.testing.assert_allclose(impulse, change, atol=bound * np.linalg.norm(change))


@pytest.mark.parametrize("servo", [{}, {"stiffness": 50.0, "damping": 5.0}], ids=["exact", "servo"])
def test_who_turns_an_arm_bears_the_torques_of_its_joints(servo: dict[str, float]) -> None:
    """Also those of impulses that calm stiff servos at the end of steps: 0.4 % of the torque had been left out."""
    for dt, bound in ((0.01, 4e-4), (0.005, 1e-4)):
        scene = fs.Scene("arm", dt=dt, duration=1.0, gravity=(0.0, 0.0, 0.0))
        scene.add_robot("arm7.urdf", name="arm", joints={"joint2": 0.5, "joint4": -1.2})
        for joint, at in (("joint2", 0.5), ("joint4", -1.2)):
            scene.drive_joint("arm", joint, motion=lambda t, at=at: at + 0.3 * math.sin(3.0 * t), **servo)
        for joint in (1, 3, 5, 6, 7):
            scene.drive_joint("arm", f"joint{joint}", motion=lambda t: 0.2 * math.sin(2.0 * t), **servo)
        _, impulse, change = turned(scene, "arm", scene.bodies[0].initial_q()[:3])
        np.testing.assert_allclose(impulse, change, atol=bound * np.linalg.norm(change))


@pytest.mark.parametrize("theta", [None, 0.5, 0.75])
@pytest.mark.parametrize("soft", [False, True], ids=["rigid", "held"])
def test_the_work_of_a_motion_that_jumps_is_the_energy_that_it_gives(soft: bool, theta: float | None) -> None:
    """It starts and stops at once: force times velocity of the step gave twice the energy, and took nothing back."""
    scene = fs.Scene("jump", dt=0.01, duration=0.1, gravity=(0.0, 0.0, 0.0), **({} if theta is None else {"theta": theta}))
    motion = fs.Motion([0.0, 0.05, 1.0], [(0.0, 0.0, 0.0), *[(0.015, 0.0, 0.0)] * 2], smooth=False)
    if soft:
        block = scene.add_soft("block", fs.box_tets((0.1, 0.1, 0.1), 2), fs.Elastic(1e6, 0.3, 2000.0))
        scene.hold(block, lambda x: np.ones(len(x), dtype=np.bool_), motion, name="hand")
    else:
        scene.drive(scene.add_rigid("block", fs.Box((0.05, 0.05, 0.05)), mass=2.0), motion)
    run = fs.simulate(scene)
    work = run.steps["work_J"]
    np.testing.assert_allclose(work[:5], 0.5 * 2.0 * 0.3**2, rtol=1e-9)
    np.testing.assert_allclose(work[5:], 0.0, atol=1e-10)
    assert run.verdict == "good"


@pytest.mark.parametrize("restitution", [0.0, 0.7])
@pytest.mark.parametrize("dt", [0.005, 0.01])
def test_the_work_of_a_drive_is_its_power_where_what_it_turns_is_hit(dt: float, restitution: float) -> None:
    """Forces at the end of a step counted twice with the way that levers go within it: 0.034 of 0.356 J in one step."""
    scene = fs.Scene("struck", dt=dt, duration=0.1, gravity=(0.0, 0.0, 0.0))
    fast = {"velocity": (10.0, 0.0, -2.0), "angular_velocity": (0.0, 20.0, 0.0)}
    scene.add_rigid("box", fs.Box((0.02,) * 3), mass=0.1, position=(0.04, 0.0, 0.1), rotation=(0.3, 0.5, 0.2), **fast)
    scene.add_rigid("bat", fs.Box((0.3, 0.1, 0.02)), mass=0.5)
    way, turn = np.array([10.0, 0.0, 0.3]), np.array([0.0, -8.0, 0.0])
    scene.drive("bat", fs.Motion([0.0, 1.0], [(0.0,) * 3, way], [(0.0,) * 3, turn], smooth=False))
    scene.set_friction("box", "bat", 0.3)
    scene.set_restitution("box", "bat", restitution)
    scene.sensor("mount", "bat", kind="mount")
    run = fs.simulate(scene)
    power = run.sensors["mount"].force @ way + run.sensors["mount"].torque @ turn
    assert run.status == "converged" and np.abs(power[1:]).max() * dt > 0.1
    np.testing.assert_allclose(np.diff(run.steps["work_J"]), dt * power[1:], atol=1e-4)


@pytest.mark.parametrize("motion", [fs.Motion([0.0], [(0.1, 0.0, 0.0)]), fs.Motion([0.0, 0.004], [(0.0,) * 3, (0.1, 0.0, 0.0)])])
@pytest.mark.parametrize("theta", [None, 0.5, 1.0])
def test_what_starts_and_stops_within_a_step_strikes_what_it_meets(motion: fs.Motion, theta: float | None) -> None:
    """It had moved a box by 99 mm with no force, and left it at rest there."""
    options = {} if theta is None else {"theta": theta}
    scene = fs.Scene("struck", dt=0.005, duration=0.02, gravity=(0.0, 0.0, 0.0), **options)
    shape = fs.Box((0.05, 0.03, 0.02))
    scene.drive(scene.add_rigid("ram", shape, mass=0.5), motion)
    scene.add_rigid("box", shape, mass=0.5, position=(0.101, 0.0, 0.0))
    scene.sensor("box", "box")
    assert len(scene.notes) == 1 and ("is it a jump?" in scene.notes[0] or "takes it there in the first step" in scene.notes[0])
    run = fs.simulate(scene)
    impulse = run.sensors["box"].force[:, 0].sum() * 0.005
    assert impulse == pytest.approx(run.steps["momentum_x_kgmps"][-1], rel=1e-6)
    assert 0.5 * 0.099 / 0.005 * 0.999 <= impulse <= 0.5 * 0.1 / 0.005 * 1.001
    assert run.steps["work_J"][-1] >= run.steps["kinetic_energy_J"][-1] * (1.0 - 1e-6)


def lost(after: float) -> Callable[[float], float]:
    return lambda t: 0.1 if t < after else math.nan


@pytest.mark.parametrize("what", ["base", "hold", "joint", "servo", "effort"])
def test_a_motion_that_is_lost_on_the_way_is_named(what: str) -> None:
    scene = fs.Scene("lost", dt=0.01, duration=0.1)
    if what == "base":
        box = scene.add_rigid("cart", fs.Box((0.1, 0.1, 0.1)), mass=1.0)
        scene.drive(box, lambda t: ((lost(0.05)(t) - 0.1, 0.0, 0.0), (0.0, 0.0, 0.0)))
        words = "motion of cart is not finite at 0.05 s"
    elif what == "hold":
        soft = scene.add_soft("pad", fs.box_tets((0.1, 0.1, 0.1), 1), fs.Elastic(1e6, 0.3, 1000.0))
        motion = lambda t: ((lost(0.05)(t) - 0.1, 0.0, 0.0), (0.0, 0.0, 0.0))  # noqa: E731
        scene.hold(soft, lambda x: x[:, 2] > 0.0, motion, name="grip")
        words = "motion of the hold 'grip' is not finite"
    else:
        scene.add_robot("arm7.urdf", name="arm", joints={"joint1": 0.1})
        options = {
            "joint": {"motion": lost(0.05)},
            "servo": {"motion": lost(0.05), "stiffness": 10.0},
            "effort": {"effort": lost(0.05)},
        }
        scene.drive_joint("arm", "joint1", **options[what])
        words = "motion of a joint of arm is not finite" if what == "joint" else "joint arm.joint1: its drive gives"
    with pytest.raises(fs.InputError, match=words):
        fs.simulate(scene)


@pytest.mark.parametrize("leader", [False, True])
def test_the_mount_of_turning_nodes_bears_the_weight_in_the_middle_of_the_step(leader: bool) -> None:
    """A bar with a weight aside turns at 10 rad/s: the moment turns with it, and has no part along the axis.

    Levers of the start of the step with forces of its middle: it lagged by 1.1 times the turn in a step.
    """
    rate, dt = 10.0, 0.01
    scene = fs.Scene("turn", dt=dt, duration=0.8)
    rubber = fs.Elastic(3e5, 0.45, 1000.0, rayleigh_beta=4e-3)
    mesh = fs.box_tets((0.06, 0.02, 0.02), (6, 2, 2))
    bar = scene.add_soft("bar", mesh, rubber, added_mass=lambda x: np.where(np.abs(x[:, 0] - 0.02) < 1e-4, 0.01, 0.0))

    def ends(x: np.ndarray) -> np.ndarray:
        return np.abs(x[:, 0]) > 0.0299

    def spin(t: float) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(3), np.array([0.0, 0.0, rate * t])

    held = "hand"
    if leader:
        hand = scene.add_rigid("hand", fs.Box((0.008, 0.008, 0.008)), mass=1e-6)
        scene.drive(hand, spin)
        scene.hold(bar, ends, on=hand)
    else:
        scene.hold(bar, ends, spin, name="hand")
    scene.sensor("wrist", held, kind="mount")
    run = fs.simulate(scene)
    torque, time = run.sensors["wrist"].torque[-1], run.steps["time_s"][-1]
    behind = rate * time - (np.arctan2(torque[1], torque[0]) + 0.5 * np.pi)
    assert (behind + np.pi) % (2 * np.pi) - np.pi == pytest.approx(0.5 * rate * dt, abs=2e-3)
    assert abs(torque[2]) < 1e-5 * np.linalg.norm(torque)


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_the_base_of_a_robot_turns_about_its_frame(base: fs.BaseKind) -> None:
    """Not about its centre of mass, 0.1 m away; pose, end velocity and work agree, also after a command."""

    def motion(t: float) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.2 * t * t, 0.0, 0.0]), np.array([0.0, 0.0, 6.0 * t * t])

    bar = fs.RobotLink.solid("bar", fs.Piece(fs.Box((0.1, 0.01, 0.01)), (0.1, 0.0, 0.0)), 0.4)
    scene = fs.Scene("swing", dt=0.01, duration=0.2, gravity=(0, 0, 0))
    robot = scene.add_robot(fs.Robot("r", [bar]), base=base, position=(0.3, 0.0, 0.0), rotation=(0.0, 0.0, 0.5 * math.pi))
    scene.drive(robot, motion, **({} if base == "fixed" else {"stiffness": (1e5, 1e3)}))
    scene.sensor("middle", robot, kind="marker")
    near = {"abs": 1e-12 if base == "fixed" else 2e-3}
    with fs.Simulation(scene) as sim:
        sim.step(20)
        moved, (_, _, angle) = motion(0.2)
        place = sim.pose(robot, tool=(0.0, 0.0, 0.0))[1]
        assert place == pytest.approx(moved + np.array([0.3, 0.0, 0.0]), **near)
        middle = place + 0.1 * np.array([-math.sin(angle), math.cos(angle), 0.0])
        assert [sim.row()[f"middle_{axis}_m"] for axis in "xyz"] == pytest.approx(middle, **near)
        if base == "fixed":
            spin = 2.4
            speed = np.array([0.08, 0.0, 0.0]) + spin * np.array([-math.cos(angle), -math.sin(angle), 0.0]) * 0.1
            own = 0.5 * 0.4 * float(speed @ speed) + 0.5 * 0.4 / 3.0 * (0.1**2 + 0.01**2) * spin**2
            assert sim.row()["work_J"] == pytest.approx(own, rel=1e-6) == pytest.approx(sim.row()["kinetic_energy_J"], rel=1e-6)
            sim.set("r", ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
            sim.step()
            assert sim.pose(robot)[1] == pytest.approx([0.3, 0.1, 0.0], abs=1e-12)
