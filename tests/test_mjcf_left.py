"""MJCF: what files say of a start and of friction, which a scene gives, is noted with its numbers."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs

BODIES = """<body name="a" pos="0 0 0.1">{base}<geom size="0.05" friction="0.3"/>
 <frame pos="0.1 0 0" euler="0 30 0"><body name="b"><joint name="turn" axis="0 1 0" ref="20"/><geom size="0.05" condim="1"/>
  <body name="c" pos="0.2 0 0"><joint name="ball" type="ball"/><geom class="pad" size="0.05" pos="0.1 0 0"/></body></body></frame>
 <body name="d" pos="0 0.3 0"><joint name="slide" type="slide" axis="0 1 1"/><joint name="more" axis="1 0 0"/>
  <geom type="box" size="0.1 0.02 0.05" pos="0.05 0 0"/><geom size="0.05" friction="9" contype="0" conaffinity="0"/>
  </body></body>"""
FILE = """<mujoco><default><default class="pad"><geom friction="1.5 0.01 0.001"/></default></default><worldbody>{}</worldbody>
<equality><joint joint1="more" joint2="slide" polycoef="0 2 0 0 0"/></equality>
<keyframe><key name="as drawn" time="1"/><key name="home" qpos="{}"/></keyframe></mujoco>"""
PLACES = [0.3, 0.5, 0.5, -0.5, 0.5, 0.2, 0.4]
POSE = [0.5, -0.2, 0.9, 0.6, 0.0, 0.8, 0.0]


def notes(folder: Path, text: str) -> tuple[fs.Robot, list[str]]:
    (folder / "robot.xml").write_text(text)
    robot = fs.load_robot(folder / "robot.xml")
    return robot, robot.notes


@pytest.mark.parametrize("base", ["", "<freejoint/>"])
def test_who_starts_as_a_note_says_stands_where_the_keyframe_has_it(base: str, tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    places = [*(POSE if base else ()), *PLACES]
    text = FILE.format(BODIES.format(base=base), " ".join(map(str, places)))
    robot, said = notes(tmp_path, text)
    (note,) = (one for one in said if "keyframe" in one)
    assert note.startswith("robot.xml: keyframes are left out ('as drawn', 'home'); start as in 'home' by ")
    assert "'more'" not in note  # it mimics
    call = ast.parse(f"f({note.split(' by ')[1].removesuffix(' in add_robot')})", mode="eval").body
    assert isinstance(call, ast.Call)
    given: dict[str, Any] = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    place = {} if base else {"position": (0, 0, 0.1)}
    scene = fs.Scene("start")
    scene.add_robot(robot, name="r", base="free" if base else "fixed", **place, **given)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 1)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    sim = fs.Simulation(scene)
    for link in "bcd":
        turn, middle = sim.pose(f"r.{link}")
        np.testing.assert_allclose(middle, data.body(link).xipos, atol=1e-5)
        if link != "d":  # whose principal axes MuJoCo orders
            np.testing.assert_allclose(turn, data.body(link).xmat.reshape(3, 3), atol=1e-5)


def test_keyframes_that_ask_for_nothing_or_fit_no_joints_are_named(tmp_path: Path) -> None:
    still = BODIES.format(base="")
    for places, end in (("0 1 0 0 0 0 0", "in 'home' all are at 0"), ("0 1", "('as drawn', 'home')"), ("up", "'home')")):
        _, said = notes(tmp_path, FILE.format(still, places))
        (note,) = (one for one in said if "keyframe" in one)
        assert note.endswith(end), places
    _, said = notes(tmp_path, f"<mujoco><worldbody>{still}</worldbody></mujoco>".replace('class="pad"', ""))
    assert not [one for one in said if "keyframe" in one]


def test_friction_of_geoms_is_noted(tmp_path: Path) -> None:
    """Its own or by its class, 0 by condim 1; not that of geoms without contact."""
    _, said = notes(tmp_path, FILE.format(BODIES.format(base=""), ""))
    assert "robot.xml: friction of geoms is left out (0 of 'b'; 0.3 of 'a'; 1.5 of 'c'); scene.set_friction gives it" in said
    with pytest.raises(fs.InputError, match="geom 1 of body 'a' has friction 'much'"):
        notes(tmp_path, FILE.format(BODIES.format(base=""), "").replace('friction="0.3"', 'friction="much"'))


@pytest.mark.parametrize("order", ["xyz", "zxz", "YXZ", "xxy", "zyy", "ZZX", "YYY"])
def test_any_order_of_euler_angles_is_that_of_mujoco(order: str, tmp_path: Path) -> None:
    """An axis may come twice in a row, at which SciPy refuses a sequence."""
    text = f"""<mujoco><compiler eulerseq="{order}"/><worldbody><body name="a">
    <body name="b" euler="20 -50 70"><joint name="j"/><geom size="0.1" pos="0.1 0.2 0"/></body></body></worldbody></mujoco>"""
    robot, _ = notes(tmp_path, text)
    turns = dict(zip(("first", "second", "third"), np.radians([20.0, -50.0, 70.0]), strict=True))
    by_hand = Rotation.identity()
    for axis, angle in zip(order, turns.values(), strict=True):
        one = Rotation.from_rotvec(angle * np.eye(3)["xyz".index(axis.lower())])
        by_hand = by_hand * one if axis.islower() else one * by_hand
    turn = Rotation.from_rotvec(robot.pose("b")[1]).as_matrix()
    np.testing.assert_allclose(turn, by_hand.as_matrix(), atol=1e-14)
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(turn, data.body("b").xmat.reshape(3, 3), atol=1e-12)
