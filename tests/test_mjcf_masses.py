"""What weighs in MJCF files by their <compiler>, joints that damping locks, and meshes of one name: as MuJoCo 4.0.0 has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import femsim as fs


def read(folder: Path, text: str) -> fs.Robot:
    """Read a file with a text."""
    path = folder / "robot.xml"
    path.write_text(text)
    return fs.load_robot(path)


def boxed(compiler: str, within: str) -> str:
    """A body "a" of two boxes, 8 kg of group 1 (by its class) and 4 kg of group 2, and what else is within."""
    default = '<default><default class="drawn"><geom group="1"/></default></default>'
    geoms = '<geom class="drawn" type="box" size=".1 .1 .1"/><geom group="2" type="box" size=".1 .05 .1" pos=".1 0 0"/>'
    world = f'<worldbody><body name="a">{geoms}{within}</body></worldbody>'
    return f'<mujoco><compiler angle="radian" {compiler}/>{default}{world}</mujoco>'


def test_geoms_of_some_groups_have_the_mass(tmp_path: Path) -> None:
    """All of metaworld's files say so; others have contact all the same, and may be meshes that enclose nothing."""
    mesh = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2"/></asset><default>'
    text = boxed('inertiagrouprange="2 3"', '<geom type="mesh" mesh="m" contype="0" conaffinity="0"/>')
    robot = read(tmp_path, text.replace("<default>", mesh, 1))
    (link,) = robot.links
    assert link.mass == pytest.approx(4.0) and link.centre == pytest.approx((0.1, 0.0, 0.0)) and len(link.shapes) == 2
    assert read(tmp_path, boxed("", "")).mass == pytest.approx(12.0)


def test_bodies_have_at_least_what_the_compiler_says(tmp_path: Path) -> None:
    """Each principal moment by itself, also of an inertia that is given."""
    turned = '<inertial mass="0.5" pos="0 0 0.1" quat="1 2 3 0" diaginertia="1e-5 2e-4 2e-4"/>'
    small = '<body name="b"><joint axis="1 0 0"/><geom size="0.01"/></body>'
    text = boxed('boundmass="0.02" boundinertia="1e-4"', small + f'<body name="c"><joint axis="1 0 0"/>{turned}</body>')
    a, b, c = read(tmp_path, text).links
    assert (a.mass, b.mass, c.mass) == pytest.approx((12.0, 0.02, 0.5))
    assert np.asarray(b.inertia) == pytest.approx(1e-4 * np.eye(3))
    assert np.linalg.eigvalsh(c.inertia) == pytest.approx([1e-4, 2e-4, 2e-4])
    axis = np.array([-4.0, 12.0, -6.0])  # 14 times x, turned by the quaternion
    assert np.asarray(c.inertia) @ axis == pytest.approx(1e-4 * axis)


def test_joints_that_damping_locks_stay_where_the_file_draws_them(tmp_path: Path) -> None:
    """1e11 N s/m hold the base of a robot that labs use; its places are those of MuJoCo at the ref of the locked joints."""
    locked = '<joint type="slide" name="x" axis="1 0 0" damping="1e11" ref="0.3"/><joint name="y" damping="1e11" ref="0.2"/>'
    body = f'<body name="b">{locked}<joint name="z" axis="0 1 0" pos="0.1 0 0.2"/><geom size="0.1" pos="0 0 0.3"/></body>'
    robot = read(tmp_path, f'<mujoco><compiler angle="radian"/><worldbody>{body}</worldbody></mujoco>')
    assert robot.joint_names() == ["z"]
    assert [note for note in robot.notes if "joint 'x' is read as fixed" in note and "1e+11" in note]
    place = robot.pose("b", {"z": 0.5}, tool=robot.links[-1].centre)[0]
    turned = np.array([0.1 - 0.1 * np.cos(0.5) + 0.1 * np.sin(0.5), 0.0, 0.2 + 0.1 * np.sin(0.5) + 0.1 * np.cos(0.5)])
    assert place == pytest.approx(turned)
    for pair in ('joint1="x" joint2="z"', 'joint1="z" joint2="x"'):  # refused as a mimic of what neither turns nor slides
        coupled = f"<equality><joint {pair}/></equality>"
        other = read(tmp_path, f'<mujoco><compiler angle="radian"/><worldbody>{body}</worldbody>{coupled}</mujoco>')
        assert other.joint_names() == ["z"] and "is left out; 'x' is read as fixed" in other.notes[-1]


def test_of_two_meshes_of_one_name_the_first_is_read_and_a_note_says_so(tmp_path: Path) -> None:
    """MuJoCo refuses such a file; a part of a package has one, which takes the first when it puts models together."""
    first = '<mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>'
    text = boxed("", '<geom type="mesh" mesh="m"/>')
    once = read(tmp_path, text.replace("<default>", f"<asset>{first}{first}</asset><default>", 1))
    assert not once.notes
    twice = read(tmp_path, text.replace("<default>", f'<asset>{first}<mesh name="m" file="no.stl"/></asset><default>', 1))
    assert twice.mass == once.mass and [note for note in twice.notes if "the mesh 'm' is given twice; the first is read" in note]


def test_a_weld_to_another_tree_is_named_by_its_kind(tmp_path: Path) -> None:
    """It had been "the equality of '' and ''", of the body without a name in another tree."""
    trees = '<body name="a"><joint name="j"/><geom size="0.1"/></body><body name="m" mocap="true"><site/></body>'
    weld = '<equality><weld body1="m" body2="a"/></equality>'
    path = tmp_path / "robot.xml"
    path.write_text(f"<mujoco><worldbody>{trees}</worldbody>{weld}</mujoco>")
    notes = fs.load_robot(path, tree="a").notes
    assert [note for note in notes if "<equality><weld> is not read" in note] and not [note for note in notes if "''" in note]
