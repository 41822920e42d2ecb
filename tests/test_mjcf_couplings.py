"""Joints of MJCF files that equalities couple: over a tendon, and loops that a note says how to close."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import femsim as fs


def written(folder: Path, text: str) -> Path:
    """Write a file."""
    path = folder / "robot.xml"
    path.write_text(text)
    return path


def arm(joint: str, after: str) -> str:
    """A base "a" with a joint "j" and, on what that carries, a joint "k"; something in "j", and behind."""
    upper = '<body name="c"><joint name="k" axis="0 1 0"/><geom size="0.1"/></body>'
    lower = f'<body name="b"><joint name="j" {joint}/><geom size="0.1"/>{upper}</body>'
    return f'<mujoco><worldbody><body name="a"><geom size="0.1"/>{lower}</body></worldbody>{after}</mujoco>'


def test_equality_of_a_fixed_tendon_over_two_joints_couples_them(tmp_path: Path) -> None:
    """3 j + 2 k keeps what it has where the file draws them, and more by what it asks for; such fingers had hung loose."""
    tendon = '<tendon><fixed name="t"><joint joint="j" coef="3"/><joint joint="k" coef="2"/></fixed></tendon>'
    equality = '<equality><tendon tendon1="t" polycoef="0.4"/></equality>'
    robot = fs.load_robot(written(tmp_path, arm('ref="0.2"', tendon + equality)))
    (k,) = (joint for joint in robot.joints if joint.name == "k")
    assert k.mimic is not None and k.mimic[0] == "j" and k.mimic[1] == -1.5
    at_rest = k.mimic[1] * np.radians(0.2) + k.mimic[2]  # j is drawn there, k at 0
    assert at_rest == pytest.approx(0.2) and not any("tendon> is not read" in note for note in robot.notes)
    before = equality.replace("<tendon", '<joint joint1="k" joint2="i"/><tendon')
    third = '<body name="d"><joint name="i"/><geom size="0.1"/></body></body></body>'
    text = arm("", tendon + before).replace("</body></body>", third)
    named = {joint.name: joint.mimic for joint in fs.load_robot(written(tmp_path, text)).joints}
    assert named["k"] == ("i", 1.0, 0.0) and named["j"] == ("i", pytest.approx(-2.0 / 3.0), pytest.approx(0.4 / 3.0))
    apart = arm('range="10 20"', tendon + equality).replace('name="k"', 'name="k" range="20 30"')
    notes = fs.load_robot(written(tmp_path, apart)).notes
    assert any("at no position are both 'k' and 'j' within their ranges" in note for note in notes)
    alone = tendon.replace('<joint joint="j" coef="3"/>', "")
    notes = fs.load_robot(written(tmp_path, arm("", alone + equality))).notes
    assert any("<equality><tendon> is not read; what it couples moves by itself" in note for note in notes)


def test_note_on_a_loop_says_where_to_close_it(tmp_path: Path) -> None:
    """In the frame of the link, which lies at the joint of its body; closed so the bar stands where it hangs."""
    equality = '<equality><connect body1="c" body2="a" anchor="0.1 0 0.2"/></equality>'
    moved = arm("", equality).replace('name="k"', 'name="k" pos="0 0 0.05"')
    robot = fs.load_robot(written(tmp_path, moved))
    (note,) = (note for note in robot.notes if "connect" in note)
    assert "a 'ball' of 'c' and 'a' at (0.1, 0, 0.15) in the frame of 'c'" in note
    assert robot.pose("c", {}, tool=(0.1, 0.0, 0.15))[0] == pytest.approx((0.1, 0.0, 0.2))


def test_note_on_tendons_names_those_that_couple_joints(tmp_path: Path) -> None:
    """Fingers of hands that labs use are coupled by the range or the spring of a tendon; "<tendon> is not read" hid that."""
    two = '<joint joint="j" coef="0.007"/><joint joint="k" coef="-0.008"/>'
    kinds = {
        "r": 'range="-0.001 0.001"', "s": 'stiffness="0.4" range="-1 1" limited="false"', "free": "",
        "off": 'limited="false" range="0 1"',
        "eq": 'range="-1 1"', "d": 'class="c"',
    }  # fmt: skip
    fixed = "".join(f'<fixed name="{name}" {by}>{two}</fixed>' for name, by in kinds.items())
    alone = '<fixed name="one" range="0 1"><joint joint="j" coef="1"/></fixed>'
    default = '<default><default class="c"><tendon frictionloss="0.2"/></default></default>'
    after = f'<tendon>{fixed}{alone}</tendon><equality><tendon tendon1="eq"/></equality>{default}'
    (note,) = (note for note in fs.load_robot(written(tmp_path, arm("", after))).notes if "tendon" in note)
    assert "of <tendon> only joints that an <equality> couples and sums of joints with springs or motors are read" in note
    said = "drive them together: 'r' (0.007 'j' + -0.008 'k', by range -0.001 0.001)"
    assert note.endswith(f"{said}, 'd' (0.007 'j' + -0.008 'k', by frictionloss 0.2)")
    both = "<tendon>" + fixed.split("</fixed>")[1].replace(' limited="false"', "") + "</fixed></tendon>"
    (note,) = (note for note in fs.load_robot(written(tmp_path, arm("", both))).notes if "tendon" in note)
    assert note.endswith("of <tendon> only sums of joints with springs or motors are read, not range -1 1 of 's'")
    assert not fs.load_robot(written(tmp_path, arm("", "<tendon/>"))).notes
