"""Hands that follow a motion by springs and dampers: closed forms, contact, limits, memory, wrong input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import femsim as fs
from contact.solvers import make_solver
from femsim.base.rotations import quaternion_from_vector
from femsim.model.bodies.body import StepSettings
from femsim.model.compliance import CompliantDrive
from femsim.step.stepper import Stepper

#: A cube of 1 kg: half side, m, and moment of inertia, kg m^2.
HALF, MOMENT = 0.05, 1.0 * (0.1**2 + 0.1**2) / 12.0
STILL = fs.Motion([0.0], [(0.0, 0.0, 0.0)])


def cube(
    motion: Any = STILL, *, step: dict[str, Any] | None = None, scene: dict[str, Any] | None = None, **drive: Any
) -> fs.Scene:
    """Cube of 1 kg on a compliant drive, with a mount sensor."""
    out = fs.Scene("cube", **({"dt": 0.01, "duration": 1.0} | (step or {}) | (scene or {})))
    body = out.add_rigid("cube", fs.Box((HALF, HALF, HALF)), density=1000.0)
    out.drive(body, motion, **({"stiffness": (500.0, 2.0)} | drive))
    out.sensor("wrist", on=body, kind="mount")
    out.sensor("place", on=body, kind="marker")
    return out


def last(run: fs.Run, name: str = "wrist") -> np.ndarray:
    """Last wrench of a sensor, (6,)."""
    return np.concatenate([run.sensors[name].force[-1], run.sensors[name].torque[-1]])


@pytest.mark.parametrize("step", [{}, {"theta": 1.0}, {"theta": 1.0, "nonlinear_tolerance": None}])
def test_a_hand_sags_by_its_weight_over_its_stiffness(step: dict[str, Any]) -> None:
    run = fs.simulate(cube(step=step))
    assert run.verdict == "good"
    assert last(run) == pytest.approx([0, 0, 9.81, 0, 0, 0], abs=1e-6)
    assert run.markers["place"].position[-1] == pytest.approx([0, 0, -9.81 / 500.0], abs=1e-8)


def test_a_torque_turns_it_by_its_stiffness() -> None:
    scene = fs.Scene("turned", dt=0.01, duration=1.5, gravity=(0, 0, 0), theta=1.0)
    torque = np.array([0.3, -0.2, 0.6])
    body = scene.add_rigid("cube", fs.Box((HALF, HALF, HALF)), density=1000.0, load=lambda t: (np.zeros(3), torque))
    scene.drive(body, STILL, stiffness=(500.0, 2.0))
    stepper = Stepper(scene, fs.make_solver("exact"))
    for _ in range(150):
        stepper.step()
    assert stepper.state.q[3:7] == pytest.approx(quaternion_from_vector(torque / 2.0), abs=1e-9)


@pytest.mark.parametrize("torque", [5.0, 7.0])
@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.6, -0.64, 0.48)])
def test_a_spring_that_is_turned_by_more_than_half_a_turn_is_said(torque: float, axis: tuple[float, float, float]) -> None:
    """2 N m/rad bear 5 N m at 2.5 rad and never 7 N m: past half a turn the spring pulls along with them."""
    scene = fs.Scene("turned", dt=0.01, duration=3.0, gravity=(0, 0, 0))
    load = torque * np.array(axis)
    body = scene.add_rigid("cube", fs.Box((HALF,) * 3), density=1000.0, load=lambda t: (np.zeros(3), min(t / 2, 1.0) * load))
    scene.drive(body, STILL, stiffness=(500.0, 2.0))
    run = fs.simulate(scene)
    said = ["more than half a turn away" in reason for reason in run.reasons]
    assert said == ([] if torque == 5.0 else [True])
    assert run.verdict == ("good" if torque == 5.0 else "doubtful")


def test_what_an_older_checkpoint_remembers_of_a_drive_is_taken_back() -> None:
    """It has the velocity alone; the run was stopped by a KeyError, called a bug."""
    scene = fs.Scene("older", dt=0.01)
    scene.drive(scene.add_rigid("cube", fs.Box((HALF,) * 3), density=1000.0), STILL, stiffness=(500.0, 2.0))
    (drive,) = Stepper(scene, make_solver("auto")).system.couplings
    drive.recall({"twist": np.ones(6)})
    assert drive.memory()["twist"].tolist() == [1.0] * 6 and not drive.memory()["turn"].any()


def test_an_axis_without_stiffness_may_turn_round_and_round() -> None:
    scene = fs.Scene("turning", dt=0.01, duration=1.0, gravity=(0, 0, 0))
    body = scene.add_rigid("cube", fs.Box((HALF,) * 3), density=1000.0, angular_velocity=(0, 0, 10.0))
    scene.drive(body, STILL, stiffness=(500.0, 500.0, 500.0, 2.0, 2.0, 0.0))
    run = fs.simulate(scene)
    assert (run.verdict, run.reasons) == ("good", [])


@pytest.mark.parametrize("turning", [False, True])
def test_it_swings_as_a_spring_does_and_keeps_its_energy(turning: bool) -> None:
    """Without damping: the period of mass or moment on its spring, second order in dt, and no energy gained or lost."""
    errors = []
    for dt in (0.01, 0.005, 0.0025):
        scene = fs.Scene("swing", dt=dt, duration=1.0, gravity=(0, 0, 0), nonlinear_tolerance=1e-10)
        start = {"angular_velocity": (0, 0, 2.0)} if turning else {"velocity": (0.3, 0, 0)}
        body = scene.add_rigid("cube", fs.Box((HALF, HALF, HALF)), density=1000.0, **start)
        scene.drive(body, STILL, stiffness=(60.0, 0.1), damping=(0.0, 0.0))
        stepper, steps = Stepper(scene, fs.make_solver("exact", tolerance=1e-12)), round(1.0 / dt)
        way, energy = np.empty(steps), np.empty(steps)
        for k in range(steps):
            stepper.step()
            q, v = stepper.state.q, stepper.state.v
            way[k] = 2.0 * np.arcsin(q[6]) if turning else q[0]
            kinetic = 0.5 * (v[:3] @ v[:3] + MOMENT * v[3:6] @ v[3:6])
            energy[k] = kinetic + 0.5 * (0.1 if turning else 60.0) * way[k] ** 2
        pace = np.sqrt(0.1 / MOMENT) if turning else np.sqrt(60.0)
        most = (2.0 if turning else 0.3) / pace
        errors.append(np.abs(way - most * np.sin(pace * dt * np.arange(1, steps + 1))).max() / most)
        assert np.ptp(energy) < (1e-2 if turning else 1e-9) * energy[0]  # Cayley's turn and the rotation vector differ a little
    order = np.log2(np.array(errors[:-1]) / errors[1:])
    assert order == pytest.approx(2.0, abs=0.1)


def test_the_work_of_the_drive_is_the_change_of_energy() -> None:
    motion = fs.Motion([0.0, 0.4], [(0, 0, 0), (0.1, 0.0, 0.2)], [(0, 0, 0), (0.0, 0.5, 0.3)])
    run = fs.simulate(cube(motion, step={"dt": 0.005}, damping=(40.0, 0.2)))
    kinetic, potential, work = (run.steps[name] for name in ("kinetic_energy_J", "potential_energy_J", "work_J"))
    assert np.abs(kinetic - work).max() < 1e-3 * np.abs(work).max()
    assert run.steps["wrench_balance"].max() < 1e-6
    assert potential[-1] > 0.1


def test_it_presses_with_its_stiffness_and_no_harder_than_its_limit() -> None:
    """Pushed 40 mm into the floor: stiffness times the way that is left; with a limit, the limit; never through the floor."""
    down = fs.Motion([0.0, 0.5], [(0, 0, 0), (0, 0, -0.05)])
    for most, force in ((np.inf, 500.0 * 0.04), (12.0, 12.0)):
        scene = fs.Scene("press", dt=0.01, duration=1.2, gravity=(0, 0, 0), theta=1.0)
        scene.add_floor()
        body = scene.add_rigid("cube", fs.Box((HALF, HALF, HALF)), density=1000.0, position=(0, 0, HALF + 0.01))
        scene.drive(body, down, stiffness=(500.0, 2.0), max_force=most)
        scene.sensor("wrist", on=body, kind="mount")
        scene.sensor("touch", on=body, kind="contact")
        run = fs.simulate(scene)
        assert run.verdict == "good"
        assert last(run)[2] == pytest.approx(-force, rel=1e-6)
        assert last(run, "touch")[2] == pytest.approx(force, rel=1e-6)
        assert np.abs(run.sensors["wrist"].force).max() <= most * (1 + 1e-9)


def test_a_limit_of_torque_is_its_own() -> None:
    motion = fs.Motion([0.0, 0.1], [(0, 0, 0), (0.02, 0, 0)], [(0, 0, 0), (0, 0, 1.0)])
    run = fs.simulate(cube(motion, max_force=(1e3, 0.05), scene={"gravity": (0, 0, 0)}))
    torque = np.linalg.norm(run.sensors["wrist"].torque, axis=1)
    assert torque.max() == pytest.approx(0.05, rel=1e-3)
    assert np.linalg.norm(run.sensors["wrist"].force, axis=1).max() > 0.5


@pytest.mark.parametrize(
    ("theta", "lost", "named"),
    [
        (1.0, (0.055, 1.0), "0.06"),
        (0.5, (0.0501, 1.0), "0.055"),  # the middle of a step
        (0.5, (0.0551, 1.0), "0.06"),
        (0.5, (0.0549, 0.0551), "0.055"),
        (0.5, (-1.0, 0.004), "0"),
    ],
)
def test_a_motion_that_is_lost_is_named_with_a_time_at_which_it_was_asked(
    theta: float, lost: tuple[float, float], named: str
) -> None:
    asked = []

    def motion(t: float) -> tuple[np.ndarray, np.ndarray]:
        asked.append(t)
        return np.full(3, np.nan if lost[0] < t < lost[1] else 0.0), np.zeros(3)

    with pytest.raises(
        fs.InputError, match=rf"the motion of cube is not finite at {named} s; correct .* theta 1/2 in its middle"
    ):
        fs.simulate(cube(motion, step={"theta": theta}))
    assert asked[-1] == pytest.approx(float(named), abs=1e-12) and lost[0] < asked[-1] < lost[1]


def test_a_motion_that_is_lost_late_is_named_with_all_digits() -> None:
    k, q0 = np.ones(6), np.array([0.0, 0, 0, 1, 0, 0, 0])
    drive = CompliantDrive("d", "b", 0, q0, lambda t: (np.full(3, np.nan), np.zeros(3)), stiffness=k, damping=k)
    with pytest.raises(fs.InputError, match=r"the motion of b is not finite at 123.45675 s"):
        drive.prepare([q0], 123.45675)


@pytest.mark.parametrize("limit", [(np.inf, np.inf), (3.0, 0.2)])
def test_what_it_adds_to_a_is_the_derivative_of_its_wrench(limit: tuple[float, float]) -> None:
    """Small turns, so that the way turns as the base does; beyond the limits too."""
    rng, q0 = np.random.default_rng(0), np.array([0.0, 0, 0, 1, 0, 0, 0])
    settings = StepSettings(dt=0.01, theta=0.5, gravity=np.zeros(3))
    k, d = np.array([300.0, 300, 300, 2, 2, 2]), np.array([5.0, 5, 5, 0.1, 0.1, 0.1])
    drive = CompliantDrive("d", "b", 0, q0, fs.Motion([0.0, 1.0], [(0, 0, 0), (1, 2, 3)]), stiffness=k, damping=d, limit=limit)
    q = np.concatenate([[0.01, -0.02, 0.005], quaternion_from_vector(np.array([1e-4, 2e-4, -1e-4]))])
    block, b = np.empty((6, 6)), np.empty(6)
    drive.prepare([q], 0.105)
    drive.assemble(settings, block, b)

    def wrench(v: np.ndarray) -> np.ndarray:
        turned = quaternion_from_vector(np.array([1e-4, 2e-4, -1e-4]) + 0.005 * v[3:])
        drive.prepare([np.concatenate([q[:3] + 0.005 * v[:3], turned])], 0.105, v)
        return drive.exerted()

    v = 0.02 * rng.standard_normal(6)
    here = wrench(v)
    drive.assemble(settings, block, b)
    assert block == pytest.approx(block.T, abs=1e-12) and np.linalg.eigvalsh(block).min() > -1e-12
    step = 1e-5
    slope = np.array([(wrench(v + step * e) - wrench(v - step * e)) / (2 * step) for e in np.eye(6)]).T
    assert -slope == pytest.approx(block, rel=1e-3, abs=2e-4 * np.abs(block).max())
    if limit[0] < np.inf:
        assert np.linalg.norm(here[:3]) == pytest.approx(3.0) and np.linalg.norm(here[3:]) <= 0.2 + 1e-12


def test_a_gripper_on_a_compliant_base_lifts_and_its_wrist_bears_all() -> None:
    scene = fs.Scene("lift", dt=0.01, duration=1.2, theta=1.0)
    scene.add_floor()
    part = scene.add_rigid("part", fs.Box((0.02, 0.02, 0.02)), density=2000.0, position=(0, 0, 0.02))
    pads = [
        fs.Finger(name, fs.Box((0.005, 0.02, 0.03)), (side * 0.04, 0, -0.05), (-side, 0, 0))
        for name, side in (("left", -1), ("right", 1))
    ]
    hand = scene.add_gripper("hand", pads, position=(0, 0, 0.085))
    scene.set_friction(part, hand, 0.8)
    scene.drive(hand, fs.Motion([0.4, 0.9], [(0, 0, 0), (0, 0, 0.05)]), stiffness=(5000.0, 50.0))
    scene.drive(hand, fingers=True, force=fs.Profile([0.0, 0.2], [0.0, 15.0]))
    scene.sensor("wrist", on=hand, kind="mount")
    scene.sensor("part", on=part, kind="marker")
    run = fs.simulate(scene)
    assert run.verdict == "good"
    assert run.markers["part"].position[-1, 2] > 0.06
    weight = 9.81 * sum(body.mass for body in scene.bodies)
    assert last(run)[2] == pytest.approx(weight, rel=1e-5)


def test_a_run_goes_on_to_the_last_bit_from_a_saved_state() -> None:
    """Near its limit the velocity of the last step decides on which side a step begins: it is part of the state."""
    motion = fs.Motion([0.0, 0.3], [(0, 0, 0), (0, 0, 0.3)])
    with fs.Simulation(cube(motion, max_force=14.0)) as simulation:
        simulation.step(15)
        saved = simulation.save()
        simulation.step(20)
        first = simulation.read("wrist")
        simulation.restore(saved)
        simulation.step(20)
        assert np.array_equal(simulation.read("wrist").force, first.force)


def test_a_command_moves_the_target() -> None:
    with fs.Simulation(cube()) as simulation:
        simulation.set("cube", (0.0, 0.03, 0.0), over=0.1)
        simulation.step(100)
        assert simulation.read("place").position[1] == pytest.approx(0.03, abs=1e-6)


def test_a_peg_finds_its_hole_where_an_exact_hand_is_stopped() -> None:
    """It ends flush with one wall and presses on it with the stiffness times what the hole is off, less the play."""
    run = fs.simulate(fs.load_scene("peg_in_hole", offset=0.0015, dt=0.02))
    assert run.verdict == "good"
    assert run.markers["peg"].position[-1, 0] == pytest.approx(0.0015 - 0.0002, abs=1e-8)
    assert run.sensors["wrist"].force[-1, 0] == pytest.approx(-2000.0 * 0.0013, rel=1e-5)
    assert run.markers["peg"].position[-1, 2] < 0.03 - 0.003 - 0.034
    stopped = fs.simulate(fs.load_scene("peg_in_hole", stiffness=None, dt=0.02, duration=1.0))
    assert stopped.verdict == "wrong" and "drive with a stiffness" in stopped.info["health"]["reasons"][0]["advice"]


@pytest.mark.parametrize(
    ("drive", "says"),
    [
        ({"stiffness": 500.0}, r"stiffness is 500\.0; allowed are two numbers, \(N/m, N m/rad\), or six"),
        ({"stiffness": (500.0, -1.0)}, "none negative"),
        ({"stiffness": (0.0, 0.0)}, "at least one axis needs some"),
        ({"stiffness": "soft"}, "stiffness is 'soft'"),
        ({"stiffness": None, "max_force": 5.0}, "without one a motion is followed exactly"),
        ({"stiffness": None, "damping": (1.0, 1.0)}, r"give stiffness=\(N/m, N m/rad\) too"),
        ({"damping": (1.0, 2.0, 3.0)}, r"damping is \(1\.0, 2\.0, 3\.0\)"),
        ({"max_force": -3.0}, r"max_force is -3\.0; allowed are positive numbers"),
        ({"max_force": (1.0, 2.0, 3.0)}, r"N or \(N, N m\)"),
        ({"fingers": True}, "a motion drives the base"),
    ],
)
def test_wrong_drives_are_refused(drive: dict[str, Any], says: str) -> None:
    with pytest.raises(fs.InputError, match=says):
        cube(**drive)


def test_a_body_is_driven_once() -> None:
    scene = cube()
    for again in ({}, {"stiffness": (1.0, 1.0)}):
        with pytest.raises(fs.InputError, match="a motion with stiffness drives it already"):
            scene.drive("cube", STILL, **again)
    scene = fs.Scene("other")
    body = scene.add_rigid("cube", fs.Box((HALF, HALF, HALF)), density=1000.0)
    scene.drive(body, STILL)
    for again in ({}, {"stiffness": (1.0, 1.0)}):
        with pytest.raises(fs.InputError, match="drives it exactly already; drive it once"):
            scene.drive(body, STILL, **again)
    soft = scene.add_soft("rubber", fs.box_tets((0.1, 0.1, 0.1), 1), fs.Elastic(1e5, 0.3, 1e3), position=(0, 0, 1))
    other = cube()
    other_soft = other.add_soft("rubber", fs.box_tets((0.1, 0.1, 0.1), 1), fs.Elastic(1e5, 0.3, 1e3), position=(0, 0, 1))
    with pytest.raises(fs.InputError, match="nodes cannot go with one that a stiffness drives"):
        other.hold(other_soft, [0, 1, 2], on="cube")
    assert soft.name == "rubber"


def test_the_base_of_a_robot_stands_until_it_is_driven_once() -> None:
    scene = fs.Scene("arm")
    arm = scene.add_robot("arm7.urdf", name="arm")
    scene.drive(arm, STILL)
    with pytest.raises(fs.InputError, match=r"drive of arm: a motion drives it exactly already; drive it once"):
        scene.drive(arm, STILL)


def test_a_base_is_driven_before_a_spring_holds_nodes_on_it() -> None:
    """The spring had kept its end where the base stood, while the base went away."""
    scene = fs.Scene("arm")
    arm = scene.add_robot("arm7.urdf", name="arm")
    soft = scene.add_soft("rubber", fs.box_tets((0.1, 0.1, 0.1), 1), fs.Elastic(1e5, 0.3, 1e3), position=(0, 0, 1))
    scene.hold(soft, [0, 1, 2], on=arm, stiffness=(1e3, 1.0))
    with pytest.raises(fs.InputError, match=r"drive of arm: 'rubber.hold1' is held on it by a spring already"):
        scene.drive(arm, STILL)


def test_a_finger_is_driven_once() -> None:
    """The second drive had replaced the first without a word."""
    scene, box = fs.Scene("hand"), fs.Box((0.01, 0.01, 0.01))
    fingers = [fs.Finger(name, box, (side * 0.1, 0, 0), (-side, 0, 0)) for name, side in (("left", -1), ("right", 1))]
    hand, closing = scene.add_gripper("hand", fingers), fs.Profile([0.0], [1.0])
    scene.drive(hand, force=closing, fingers="left")
    for again in ({"force": closing, "fingers": True}, {"position": closing, "fingers": ["left"]}):
        with pytest.raises(fs.InputError, match=r"drive of hand: finger 'left' is driven already; drive it once, by force or"):
            scene.drive(hand, **again)
    with pytest.raises(fs.InputError, match="finger 'right' is driven already"):
        scene.drive(hand, force=closing, fingers=["right", "right"])
    scene.drive(hand, position=closing, fingers=["right"])


@pytest.mark.parametrize(
    ("stiffness", "damping", "noted"), [(1e5, None, False), (1e9, None, True), (1e6, 0.0, True), (1e3, 0.0, False)]
)
def test_a_spring_that_steps_cannot_follow_is_noted(stiffness: float, damping: float | None, noted: bool) -> None:
    """Where its motion stops, what is noted is so: the force turns round from step to step for long."""
    scene = fs.Scene("stiff", dt=0.005, duration=0.5)
    box = scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=1.0)
    path = lambda t: ((0.1 * min(t, 0.2), 0.0, 0.0), (0.0, 0.0, 0.0))  # noqa: E731
    scene.drive(box, path, stiffness=(stiffness, 1.0), damping=None if damping is None else (damping, 0.1))
    scene.sensor("mount", box, kind="mount")
    found = [note for note in scene.notes if "hardly calms in steps of 5 ms" in note]
    assert bool(found) == noted
    force = fs.simulate(scene, quiet=True).sensors["mount"].force[-20:, 0]
    turns = np.sign(force[1:]) != np.sign(force[:-1])
    assert (turns.mean() > 0.5 and np.abs(force).max() > 1.0) == noted


def test_backward_euler_calms_any_spring() -> None:
    scene = fs.Scene("stiff", dt=0.005, theta=1.0)
    box = scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=1.0)
    scene.drive(box, fs.Motion([0.0], [(0.0, 0.0, 0.0)]), stiffness=(1e9, 1e9))
    assert scene.notes == []
