"""What can be commanded in a simulation: every function of time, where it goes then, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from many_drives import many_drives
from small_scene import DT, cube_scene

import femsim as fs
from femsim.model.commands import Command


def test_every_function_of_time_is_a_target() -> None:
    sim = fs.Simulation(many_drives())
    assert set(sim.targets) == {
        "one", "way", "hand", "hand.left", "box.load", "pouch.load", "air", "grasp", "string", "cable.start", "cable.end",
    }  # fmt: skip
    assert sim.targets["air"] == "pressure above that outside, Pa" and sim.targets["one"] == "closing force, N"
    sim.step()
    start = {name: sim.points(name) for name in ("pouch", "bar", "cable")}
    sim.set("way", (0, 0, 0.01))
    sim.set("box.load", ((0.1, 0, 0), (0, 0, 0)))
    sim.set("air", 5e3)
    sim.set("grasp", (0.002, 0, 0))
    sim.set("string", 0.2)
    sim.set("cable.start", ((0, 0, 0.001), (0, 0, 0)))
    sim.set("cable.end", ((0, 1e-3, 0), (0, 0, 0)))
    sim.set("pouch.load", (0, 0, 0.05))
    sim.step()
    assert sim.pose("hand")[1][2] == pytest.approx(0.01, abs=1e-12)
    assert sim.pose("box")[1][0] == pytest.approx(1.0 + 0.1 / 0.1 * DT**2, rel=1e-9)
    assert sim.read("air").pressure == pytest.approx(5e3) and sim.read("string").force == pytest.approx(0.2)
    held = start["bar"][:, 0] < 2.971
    assert np.allclose(sim.points("bar")[held] - start["bar"][held], (0.002, 0, 0), atol=1e-12)
    assert (sim.points("cable") - start["cable"])[-1, 1] > 1e-7 and (sim.points("pouch") - start["pouch"])[:, 2].max() > 1e-6


def test_fingers_follow_their_own_or_a_shared_target() -> None:
    def joint(sim: fs.Simulation) -> float:
        return float(sim.pose("hand.left")[1][0])

    sim = fs.Simulation(many_drives())
    start = joint(sim)
    twin = sim.fork()
    assert joint(sim.step()) < start
    twin.set("one", -1.0)
    assert joint(twin.step()) > start
    twin.set("hand.left", None)
    moved = joint(twin)
    assert joint(twin.step(3)) < moved


def test_a_motion_goes_there_at_constant_speed_and_stays() -> None:
    sim = fs.Simulation(cube_scene())
    way = [sim.pose("box")[1][2]]
    sim.set("box", (0, 0, 0.01), over=4 * DT)
    for _ in range(5):
        way.append(sim.step().pose("box")[1][2])
    assert np.allclose(np.diff(way), [0.0025] * 4 + [0.0], atol=1e-12)
    sim.set("box", None)
    assert sim.step().pose("box")[1][2] == pytest.approx(0.03 + fs.Profile([0, 0.1], [0, 0.01])(sim.time), abs=1e-12)


def test_turns_are_commanded_by_two_vectors_or_six_numbers() -> None:
    turned = []
    for value in (((0, 0, 0.01), (0, 0, 0.5)), (0, 0, 0.01, 0, 0, 0.5)):
        sim = fs.Simulation(cube_scene())
        sim.set("box", value)
        turned.append(sim.step().pose("box")[0])
    assert np.array_equal(*turned) and turned[0][1, 0] == pytest.approx(np.sin(0.5), abs=1e-9)


def test_a_target_beyond_the_range_of_a_joint_is_refused() -> None:
    scene = fs.Scene("arm", dt=0.005, duration=0.1)
    arm = scene.add_robot("arm7.urdf", name="arm")
    still = fs.Profile([0.0], [0.0])
    scene.drive_joint(arm, "joint2", still, stiffness=2000.0)
    scene.drive_joint(arm, "left_jaw", still)
    sim = fs.Simulation(scene)
    with pytest.raises(fs.InputError, match=r"arm\.joint2: the value is 90 rad; .* is -2 to 2; 90 degrees are 1\.571\.$"):
        sim.set("arm.joint2", 90.0)
    with pytest.raises(fs.InputError, match=r"arm\.left_jaw: the value is 1 m; the range of the joint is 0 to 0\.05\.$"):
        sim.set("arm.left_jaw", 1.0)
    sim.set("arm.joint2", 2.0, over=1.0)
    sim.set("arm.left_jaw", 0.05, over=1.0)
    assert sim.step().converged


def test_a_shared_target_is_commanded_as_a_whole_or_not_at_all() -> None:
    """One of two joints had gone when the other refused."""
    scene = fs.Scene("arm", dt=0.01, duration=0.1)
    scene.add_robot("arm7.urdf", name="arm", joints={"left_jaw": 0.02})
    both = fs.Profile([0.0], [0.02], name="both")
    scene.drive_joint("arm", "left_jaw", both)
    scene.drive_joint("arm", "joint1", fs.Profile([0.0], [0.0], name="one"))
    scene.drive_joint("arm", "joint3", both, stiffness=50.0, damping=5.0)
    sim = fs.Simulation(scene)
    with pytest.raises(fs.InputError, match=r"arm.left_jaw: the value is 0.5 m; the range"):
        sim.set("both", 0.5)
    assert not any(command.commanded for command in scene.commands.values())


def test_a_name_of_another_target_is_refused() -> None:
    """A command for one had moved both."""
    scene = fs.Scene("two", dt=0.01, duration=0.1)
    box, cup = (scene.add_rigid(name, fs.Box((0.01,) * 3), mass=0.1, position=(k, 0, 0)) for k, name in enumerate(("box", "cup")))
    own = fs.Motion([0.0], [(0, 0, 0)], name="box")
    scene.drive(box, own)
    with pytest.raises(fs.InputError, match=r"cup: the name 'box' of its Motion is that of another target; give it another"):
        scene.drive(cup, fs.Motion([0.0], [(0, 0, 0)], name="box"))
    scene.drive(cup, own)  # by purpose
    late = fs.Scene("two", dt=0.01, duration=0.1)
    for k, name in enumerate(("cup", "box")):
        late.add_rigid(name, fs.Box((0.01,) * 3), mass=0.1, position=(k, 0, 0))
    late.drive("cup", fs.Motion([0.0], [(0, 0, 0)], name="box"))
    for motion in (
        fs.Motion([0.0], [(0, 0, 0)]),
        fs.Motion([0.0], [(0, 0, 0)], name="lift"),
        lambda t: (np.zeros(3), np.zeros(3)),
    ):
        with pytest.raises(fs.InputError, match=r"cup: the name 'box' of its Motion is that of another target"):
            late.drive("box", motion)


def test_values_of_one_number_are_numbers_and_others_are_named_when_they_come() -> None:
    """Arrays of one number passed the check of the first value and failed in the step."""

    def pushed(value: Callable[[float], Any]) -> float:
        scene = fs.Scene("arm", dt=0.01, duration=0.03)
        scene.add_robot("arm7.urdf", name="arm")
        scene.drive_joint("arm", "joint1", effort=value)
        return float(fs.Simulation(scene).step(3).stepper.state.q[7])

    assert pushed(lambda t: np.array([2.0])) == pushed(lambda t: 2) == pushed(lambda t: 2.0) != 0.0

    def led(value: Callable[[float], Any], **servo: float) -> float:
        scene = fs.Scene("arm", dt=0.01, duration=0.03)
        scene.add_robot("arm7.urdf", name="arm")
        scene.drive_joint("arm", "joint1", value, **servo)
        scene.drive_joint("arm", "joint2", value)  # rates of several
        return float(fs.Simulation(scene).step(3).stepper.state.q[7])

    for servo in ({}, {"stiffness": 50.0}):
        assert led(lambda t: np.array([t * t]), **servo) == led(lambda t: t * t, **servo) != 0.0
    for late in (None, (1.0, 2.0), "x"):
        with pytest.raises(
            fs.InputError, match=r"arm.joint1: its function of time gives .* at 0.0.*5 s; it must give one number"
        ):
            pushed(lambda t, late=late: 0.0 if t < 0.015 else late)
    scene = fs.Scene("box", dt=0.01, duration=0.1)
    scene.drive(scene.add_rigid("box", fs.Box((0.01,) * 3), mass=0.1), lambda t: (np.zeros(3 if t < 0.025 else 2), np.zeros(3)))
    with pytest.raises(fs.InputError, match=r"box: its function of time gives .* at 0.03 s; it must give a pair of \(3,\)"):
        fs.simulate(scene)


@pytest.mark.parametrize("dt", [DT, "auto"])
@pytest.mark.parametrize(("target", "value"), [("way", (0, 0, 0.01)), ("grasp", (0.002, 0, 0)), ("cable.start", (0, 0, 0.004))])
def test_what_is_led_jumps_in_the_whole_step(target: str, value: tuple[float, ...], dt: Any) -> None:
    """It jumped in the first part of a step, faster the shorter that was, and ends of rods without any work."""
    ends = []
    for over in (0.0, DT):
        sim = fs.Simulation(many_drives(), dt=dt)
        sim.set(target, value, over=over)
        ends.append({name: value for name, value in sim.step(2).row().items() if not name.startswith("ms_")})
    assert ends[0] == ends[1]


@pytest.mark.parametrize("dt", [DT, "auto"])
@pytest.mark.parametrize(("target", "value"), [("way", (0, 0, 0.01)), ("grasp", (0.002, 0, 0)), ("cable.start", (0, 0, 0.004))])
def test_what_is_led_and_released_goes_back_in_the_whole_step(target: str, value: tuple[float, ...], dt: Any) -> None:
    """It went back in the first part of a step, and ends of rods without any work."""
    ends = []
    for back in ((0, 0, 0), None):  # what the scene says is (0, 0, 0)
        sim = fs.Simulation(many_drives(), dt=dt)
        sim.set(target, value, over=2 * DT)
        sim.step(2).set(target, back)
        ends.append({name: value for name, value in sim.step(2).row().items() if not name.startswith("ms_")})
    assert ends[0] == ends[1]


def test_a_release_takes_its_time_and_is_kept() -> None:
    """What the scene says moves on meanwhile: the way back ends on it, with its speed."""
    command = Command("x", fs.Profile([0.0, 2.0], [0.0, 4.0], smooth=False), "position", "m")
    command.take(8.0, 0.0, 0.0)
    command.release(1.0, 0.5)
    twin = Command("x", command.given, "position", "m")
    twin.recall(command.memory())
    assert command.memory().keys() == {"times", "start"}
    for one in (command, twin):
        assert [one(t) for t in (0.9, 1.0, 1.25, 1.5, 1.75)] == pytest.approx([8.0, 8.0, 5.25, 3.0, 3.5])
        # of 8 + (t - 1) / 0.5 (2 t - 8)
        assert [float(one.rate(t, 0.01)) for t in (1.25, 1.5, 1.75)] == pytest.approx([-10.0, -8.0, 2.0])
    command.release()
    assert not command.memory() and not command.commanded


def test_a_tray_that_jumps_throws_no_faster_in_short_steps() -> None:
    """In steps of dt="auto" a millimetre took 0.1 ms: the box flew up at 10 m/s."""
    scene = fs.Scene("tray", dt="auto", duration=0.1)
    scene.add_rigid("box", fs.Box((0.01,) * 3), mass=0.1, position=(0, 0, 0.01))
    tray = scene.add_rigid("tray", fs.Box((0.05, 0.05, 0.005)), mass=0.5, position=(0, 0, -0.005))
    scene.drive(tray, fs.Motion([0.0], [(0, 0, 0)], name="height"))
    sim = fs.Simulation(scene)
    assert sim.step(2).dt == DT
    sim.set("height", (0, 0, 1e-3))
    speeds = [sim.step().stepper.state.v[2] for _ in range(4)]
    assert max(speeds) < 0.2  # that of the jump, 1 mm in 10 ms, is 0.1
