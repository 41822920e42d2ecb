"""What cannot be: joints that contradict each other, motions beyond the range of a joint, functions that give no motion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import femsim as fs
from femsim.base.place import ROOT

ARM = ROOT / "data" / "robots" / "arm7.urdf"
BOX = fs.Box((0.02, 0.02, 0.02))


def along(speed: float) -> Callable[[float], tuple[np.ndarray, np.ndarray]]:
    return lambda t: (np.array([speed * t, 0.0, 0.0]), np.zeros(3))


def two_welds(speed: float, first: float = np.inf, second: float = np.inf, dt: float | str = 0.01) -> fs.Scene:
    """A box welded to two others, of which one is driven away."""
    scene = fs.Scene("two_welds", duration=0.03, dt=dt)
    left = scene.add_rigid("left", BOX, mass=0.1)
    right = scene.add_rigid("right", BOX, mass=0.1, position=(0.2, 0, 0))
    middle = scene.add_rigid("middle", BOX, mass=0.1, position=(0.1, 0, 0))
    scene.drive(left, along(0.2))
    scene.drive(right, along(speed))
    scene.join(middle, left, at=(0.05, 0, 0), name="first", breakable=first)
    scene.join(middle, right, at=(0.15, 0, 0), name="second", breakable=second)
    return scene


def driven_and_welded() -> fs.Scene:
    scene = fs.Scene("driven_and_welded", duration=0.03)
    box = scene.add_rigid("box", BOX, mass=0.1)
    scene.drive(box, along(0.5))
    scene.join(box, "world", at=(0.05, 0, 0), name="weld")
    return scene


def held_and_glued() -> fs.Scene:
    scene = fs.Scene("held_and_glued", duration=0.03)
    pad = scene.add_soft("pad", fs.box_tets((0.02, 0.02, 0.02), 1), "ecoflex_00_50", position=(0, 0, 0.1))
    plate = scene.add_rigid("plate", BOX, mass=0.1, position=(0, 0, 0.08))
    scene.drive(plate, along(0.1))
    scene.hold(pad, lambda x: x[:, 2] < 0.0901, lambda t: ((0, 0, 0), (0, 0, 0)), name="grip")
    scene.join(pad, plate, at=(0, 0, 0.09), where=lambda x: x[:, 2] < 0.0901, name="bond")
    return scene


def arm_welded_to_the_world() -> fs.Scene:
    scene = fs.Scene("arm", duration=0.03)
    arm = scene.add_robot(ARM, name="arm")
    for number in range(1, 8):
        scene.drive_joint(arm, f"joint{number}", lambda t: t)
    scene.join("arm.hand", "world", at=(0.0, 0.0, 0.9), name="weld")
    return scene


@pytest.mark.parametrize(
    ("make", "joints", "leaders"),
    [
        (lambda: two_welds(0.5), ["first", "second"], ["the motion of left", "the motion of right"]),
        (driven_and_welded, ["weld"], ["the motion of box"]),
        (held_and_glued, ["bond"], ["the motion of plate", "the hold grip"]),
        (arm_welded_to_the_world, ["weld"], ["the base of arm", "the motions of joints of arm"]),
    ],
)
def test_joints_that_contradict_each_other_are_infeasible_and_named(
    make: Callable[[], fs.Scene], joints: list[str], leaders: list[str], tmp_path: Path
) -> None:
    """So is what leads what they hold: of nodes that a hold held and glue too, only the glue was named."""
    run = fs.simulate(make(), out=tmp_path / "run")
    reasons = [one for one in run.info["health"]["reasons"] if one["kind"] == "infeasible"]
    assert run.verdict == "wrong" and run.status == "not converged"
    assert [one["bodies"] for one in reasons] == [joints]
    assert "cannot hold" in reasons[0]["text"] and "stiffness" in reasons[0]["advice"]
    assert "infeasible" in run.info["message"] and all(name in run.info["message"] for name in (*joints, *leaders))
    assert f"what is joined is led by {' and '.join(leaders)}" in reasons[0]["text"]


@pytest.mark.parametrize("speed", [0.2, 0.2 + 1e-12])
def test_joints_that_repeat_each_other_are_not(speed: float) -> None:
    """Both ends are driven alike, to rounding: each joint holds."""
    run = fs.simulate(two_welds(speed))
    assert run.verdict == "good" and run.status == "converged"


@pytest.mark.parametrize(
    ("strengths", "dt"),
    [((40.0, np.inf), 0.01), ((np.inf, 40.0), 0.01), ((60.0, 40.0), 0.01), ((40.0, 60.0), 0.01), ((np.inf, 40.0), "auto")],
)
def test_of_joints_that_contradict_each_other_the_weakest_breaks(strengths: tuple[float, float], dt: float | str) -> None:
    """Exact motions pull with any force, so it breaks in the first step; the box stays on the other, and nothing is wrong."""
    scene = two_welds(-0.3, dt=dt, first=strengths[0], second=strengths[1])
    run = fs.simulate(scene)
    assert run.verdict == "good" and run.status == "converged"
    middle = run.stepper.state.q[run.stepper.system.q_slices[2]][:3] - np.array([0.1, 0.0, 0.0])
    speed = 0.2 if strengths[0] > strengths[1] else -0.3
    np.testing.assert_allclose(middle, [speed * scene.duration, 0, 0], atol=1e-8)


@pytest.mark.parametrize("dt", [0.01, "auto"])
def test_a_weld_breaks_where_a_motion_leads_what_it_holds_into_the_floor(dt: float | str) -> None:
    """Its force has no bound, so the box stays on the floor; it went through it, and the weld bore 1 N."""
    scene = fs.Scene("pressed", duration=0.1, dt=dt)
    scene.add_floor()
    press = scene.add_rigid("press", BOX, mass=0.1, position=(0, 0, 0.1))
    scene.drive(press, lambda t: (np.array([0.0, 0.0, -3.0 * t * t]), np.zeros(3)))
    box = scene.add_rigid("box", BOX, mass=0.1, position=(0, 0, 0.03))
    scene.join(box, press, at=(0, 0, 0.06), name="weld", breakable=50.0)
    scene.sensor("box", "box")
    run = fs.simulate(scene)
    assert run.verdict == "good" and scene.couplings[0].broken
    assert run.stepper.state.q[run.stepper.system.q_slices[1]][2] == pytest.approx(0.02, abs=1e-5)
    assert run.sensors["box"].force[-1] == pytest.approx([0, 0, 0.981], abs=1e-6)


def test_a_turn_breaks_what_bears_no_torque() -> None:
    scene = fs.Scene("turned", duration=0.03, gravity=(0, 0, 0))
    box = scene.add_rigid("box", BOX, mass=0.1)
    scene.drive(box, lambda t: ((0, 0, 0), (0, 0, 5.0 * t)))
    scene.join(box, "world", at=(0.0, 0, 0), name="weld", breakable=(np.inf, 1.0))
    scene.join(box, "world", "hinge", at=(0.0, 0, 0), axis=(0, 0, 1), name="hinge", breakable=(1.0, 1.0))
    run = fs.simulate(scene)
    assert run.verdict == "good", run.info["health"]
    assert [joint.broken for joint in scene.couplings] == [True, False]


def test_a_driven_body_may_turn_in_a_hinge_that_repeats_its_motion() -> None:
    """No velocity is free there: what rounding leaves open of the joint is no contradiction."""
    scene = fs.Scene("turned", duration=0.2)
    box = scene.add_rigid("box", BOX, mass=0.1)
    scene.drive(box, lambda t: (np.zeros(3), np.array([0.0, 0.0, 5.0 * t])))
    scene.join(box, "world", "hinge", at=(0.0, 0, 0), axis=(0, 0, 1))
    run = fs.simulate(scene)
    assert run.status == "converged" and run.verdict == "good"


def test_a_motion_beyond_the_range_of_its_joint_is_refused() -> None:
    scene = fs.Scene("arm", duration=0.2)
    arm = scene.add_robot(ARM, name="arm")
    scene.drive_joint(arm, "joint4", lambda t: 20.0 * t)
    with pytest.raises(
        fs.InputError, match=r"joint arm\.joint4 is driven to 2\.6 at 0\.13 s; its range is -2\.4 to 2\.4\. .*stiffness"
    ):
        fs.simulate(scene)


@pytest.mark.parametrize("first", ["motion", "velocity", "effort"])
def test_a_joint_is_driven_once(first: str) -> None:
    scene = fs.Scene("arm", duration=0.2)
    arm = scene.add_robot(ARM, name="arm")
    still = fs.Profile([0.0], [0.0])
    scene.drive_joint(arm, "joint4", **{first: still}, **({"damping": 1.0} if first == "velocity" else {}))
    with pytest.raises(fs.InputError, match=r"drive_joint of arm\.joint4: it is driven already; drive it once"):
        scene.drive_joint(arm, "joint4", still)
    scene.drive_joint(arm, "joint5", still)


@pytest.mark.parametrize("motion", [lambda t: (0.0, 0.0, t), lambda t: None, lambda t: t])
def test_a_function_that_gives_no_motion_is_named(motion: Callable) -> None:
    scene = fs.Scene("box", duration=0.02)
    scene.drive(scene.add_rigid("box", BOX, mass=0.1), motion)
    with pytest.raises(fs.InputError, match=r"^box: its function of time gives .* must give a pair of \(3,\) arrays"):
        fs.simulate(scene)


def test_a_function_that_gives_no_number_is_named() -> None:
    scene = fs.Scene("arm", duration=0.02)
    arm = scene.add_robot(ARM, name="arm")
    scene.drive_joint(arm, "joint1", lambda t: (0.0, t), stiffness=10.0)
    with pytest.raises(
        fs.InputError, match=r"^arm\.joint1: its function of time gives \(0\.0, .* must give one number: position"
    ):
        fs.simulate(scene)
