"""MJCF files with several trees in the world: one is chosen by name, and loose ones are added by calls of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import femsim as fs
from femsim.cli import execute

TREES = """<mujoco model="table"><worldbody><geom type="plane" size="1 1 1"/>
<body name="arm" pos="0.1 0.2 0.3" euler="0 0 90"><geom name="ga" type="box" size="0.1 0.1 0.1"/>
 <body name="fore" pos="0.3 0 0"><joint name="elbow" axis="0 1 0"/><geom name="gf" size="0.05"/>
  <body name="hand" pos="0.3 0 0"><joint name="wrist" axis="0 1 0"/><geom size="0.05"/></body></body></body>
<body name="cube" pos="0.5 0 0.05"><freejoint/><geom name="gc" type="box" size="0.05 0.05 0.05"/></body>
<frame pos="0 1 0"><body name="ball" pos="0 0 1"><freejoint/><geom size="0.05" mass="0.3"/></body></frame>
</worldbody>
<equality><joint joint1="wrist" joint2="elbow"/></equality>
<contact><exclude body1="arm" body2="hand"/><exclude body1="cube" body2="hand"/><pair geom1="gc" geom2="gf"/>
</contact></mujoco>"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "table.xml").write_text(TREES)
    return tmp_path / "table.xml"


def test_a_tree_is_chosen_by_the_name_of_its_body(file: Path) -> None:
    """What the file says between trees is left out; each robot has the name of its tree."""
    arm, cube, ball = (fs.load_robot(file, tree=tree) for tree in ("arm", "cube", "ball"))
    assert [robot.name for robot in (arm, cube, ball)] == ["arm", "cube", "ball"]
    assert [link.name for link in arm.links] == ["arm", "fore", "hand"] and [link.name for link in cube.links] == ["cube"]
    assert arm.no_contact == (("arm", "hand"),) and arm.joint_names() == ["elbow"]
    assert (cube.mass, ball.mass) == pytest.approx((1.0, 0.3))
    (left,) = (note for note in cube.notes if "equality" in note)
    assert left == "table.xml: the equality of 'wrist' and 'elbow' is left out; it is one of another tree"
    assert not any("equality" in note for note in arm.notes)


def test_the_note_says_where_the_file_puts_a_tree(file: Path) -> None:
    """Also within a frame, as MuJoCo has it; by these numbers a scene is put together as in the file."""
    notes = {tree: "\n".join(fs.load_robot(file, tree=tree).notes) for tree in ("arm", "ball")}
    assert "in add_robot, by position=(0.1, 0.2, 0.3) and rotation=(0, 0, 1.5708) as in the file" in notes["arm"]
    assert "by position=(0, 1, 1) and rotation=(0, 0, 0) as in the file" in notes["ball"]


def test_loose_bodies_of_a_file_fall_beside_its_robot(file: Path) -> None:
    scene = fs.Scene("table", dt=0.01, duration=0.1)
    scene.add_robot(file, tree="arm", position=(0.1, 0.2, 0.3), rotation=(0, 0, np.pi / 2))
    scene.add_robot(file, tree="ball", base="free", position=(0, 1, 1))
    scene.add_robot(file, tree="cube", name="die", base="free", position=(0.5, 0, 0.05))
    scene.sensor("ball", "ball", kind="marker")
    run = fs.simulate(scene)
    assert [body.name for body in scene.bodies] == ["arm", "ball", "die"]
    assert run.markers["ball"].position[-1] == pytest.approx([0.0, 1.0, 1.0 - 0.5 * 9.81 * 0.01], abs=1e-6)


@pytest.mark.parametrize("tree, said", [
    (None, "<worldbody> holds 3 trees, of the bodies 'arm', 'cube', 'ball'; a robot is one: say which by tree='arm' in"),
    ("bal", "<worldbody> has no tree of the name 'bal'; its bodies are 'arm', 'cube', 'ball'; give"),
    ("hand", "<worldbody> has no tree of the name 'hand'; its bodies"),
    ("", "<worldbody> has no tree of the name ''; its bodies"),
])  # fmt: skip
def test_a_tree_that_is_not_there_is_said(tree: str | None, said: str, file: Path) -> None:
    with pytest.raises(fs.InputError, match=said):
        fs.load_robot(file, tree=tree)
    with pytest.raises(fs.InputError, match=said):
        fs.Scene("s").add_robot(file, tree=tree)


def test_the_tree_that_is_proposed_is_the_one_with_most_joints(file: Path) -> None:
    """Files of scenes hold tables and targets before their robot."""
    file.write_text(TREES.replace('<body name="arm"', '<body name="table"><geom size="0.1"/></body><body name="arm"'))
    with pytest.raises(fs.InputError, match=r"of the bodies 'table', 'arm', 'cube', 'ball'; .* say which by tree='arm' in"):
        fs.load_robot(file)


def test_other_wrong_choices_are_a_sentence(file: Path) -> None:
    robot = fs.load_robot(file, tree="cube")
    with pytest.raises(fs.InputError, match=r"tree is 'cube', and robot an fs\.Robot; give tree to load_robot"):
        fs.Scene("s").add_robot(robot, tree="cube")
    with pytest.raises(fs.InputError, match=r"arm7\.urdf: tree is 'arm'; a URDF file is one tree, so leave it out"):
        fs.load_robot("arm7.urdf", tree="arm")
    with pytest.raises(fs.InputError, match="tree is 3; give the name of a body"):
        fs.load_robot(file, tree=3)  # type: ignore[arg-type]
    file.write_text(TREES.replace("<worldbody>", '<compiler settotalmass="5"/><worldbody>'))
    with pytest.raises(fs.InputError, match="has settotalmass, which is that of all trees"):
        fs.load_robot(file, tree="arm")
    file.write_text(TREES.replace('name="ball"', 'name="cube"'))
    with pytest.raises(fs.InputError, match="has two trees or more of the name 'cube'; its bodies"):
        fs.load_robot(file, tree="cube")


def test_misspelt_names_are_no_other_tree(file: Path) -> None:
    file.write_text(TREES.replace('body2="hand"', 'body2="hnd"', 1))
    with pytest.raises(fs.InputError, match="<contact> excludes body 'hnd', which is not there"):
        fs.load_robot(file, tree="arm")


def test_describe_shows_a_tree(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["describe", str(file), "--tree", "arm"]) == 0
    assert "robot 'arm'" in capsys.readouterr().out
    assert execute(["describe", str(file)]) == 2
    assert "'arm', 'cube', 'ball'" in capsys.readouterr().err
