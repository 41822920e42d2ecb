"""MJCF: copies by <replicate>, their places, names and what the file says of them, beside MuJoCo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs

#: Three fingers about a palm, each of two links and ten scales; feet in two rows of two; degrees, and turns about z, y, x.
HAND = """<mujoco model="hand"><compiler eulerseq="zyx"/><default><default class="soft"><joint damping="0.2"/></default></default>
<worldbody><body name="palm"><geom type="box" size="0.1 0.1 0.02"/>
<frame pos="0 0 0.02" euler="30 0 0"><replicate count="3" offset="0.1 0 0.01" euler="120 10 5" sep="-" childclass="soft">
 <frame pos="0.05 0 0"><body name="root"><joint name="r" axis="0 1 0" range="-60 60"/>
  <geom name="palm" size="0.02" pos="0 0 0.03"/>
  <replicate count="10" offset="0 0 0.004" euler="3 0 0"><geom name="scale" type="box" size="0.01 0.02 0.001" pos="0.02 0 0"/>
  </replicate>
  <body name="tip" pos="0 0 0.06"><joint name="t" axis="0 1 0"/><geom name="h" size="0.015"/></body></body></frame>
</replicate></frame>
<replicate count="2" offset="0.2 0 0"><replicate count="2" offset="0 0.2 0" sep="_">
 <body name="foot" pos="-0.1 -0.1 -0.05"><joint name="f" type="slide"/><geom size="0.02"/></body></replicate></replicate>
</body></worldbody>
<equality><joint name="e" joint1="t" joint2="r" polycoef="0 0.7"/></equality>
<contact><exclude name="x" body1="palm" body2="tip"/><exclude body1="root-0" body2="foot"/><exclude body1="tip-0" body2="tip-2"/>
<exclude body1="palm" body2="foot"/><pair geom1="palm" geom2="h"/></contact></mujoco>"""


def read(folder: Path, text: str, tree: str | None = None) -> fs.Robot:
    (folder / "robot.xml").write_text(text)
    return fs.load_robot(folder / "robot.xml", tree=tree)


def test_copies_are_those_of_mujoco(tmp_path: Path) -> None:
    """Names, masses, places, damping, who has no contact with whom, and which joint follows which."""
    mujoco = pytest.importorskip("mujoco")
    robot = read(tmp_path, HAND)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    data = mujoco.MjData(model)
    names = [model.body(i).name for i in range(1, model.nbody)]
    links = {link.name: link for link in robot.links}
    assert sorted(links) == sorted(names) and "foot_10" in names
    for name in names:
        body = model.body(name)
        assert links[name].mass == pytest.approx(float(body.mass[0]), rel=1e-12)
        assert len(links[name].shapes) == int(body.geomnum[0])
        moments = np.linalg.eigvalsh(np.asarray(links[name].inertia))
        np.testing.assert_allclose(moments, np.sort(body.inertia), rtol=1e-9)
    joints = {joint.name: joint for joint in robot.joints if joint.kind != "fixed"}
    assert sorted(joints) == sorted(model.joint(i).name for i in range(model.njnt))
    assert {name: joint.damping for name, joint in joints.items()} == {
        model.joint(i).name: model.dof_damping[i] for i in range(model.nv)
    }
    apart = {frozenset((names[(pair >> 16) - 1], names[(pair & 0xFFFF) - 1])) for pair in map(int, model.exclude_signature)}
    assert {frozenset(pair) for pair in robot.no_contact} == apart and len(apart) == 3 + 4 + 1 + 4
    followed = {joint.name: joint.mimic[0] for joint in joints.values() if joint.mimic is not None}
    assert followed == {model.joint(model.eq_obj1id[i]).name: model.joint(model.eq_obj2id[i]).name for i in range(model.neq)}
    q = {name: 0.1 + 0.03 * k for k, name in enumerate(sorted(joints)) if joints[name].mimic is None}
    for name, joint in joints.items():
        other, factor, _ = joint.mimic or (name, 1.0, 0.0)
        data.qpos[model.joint(name).qposadr[0]] = factor * q[other]
    mujoco.mj_forward(model, data)
    for name in names:
        place, turn = robot.pose(name, q)
        np.testing.assert_allclose(place, data.body(name).xpos, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(Rotation.from_rotvec(turn).as_matrix().ravel(), data.body(name).xmat, rtol=0.0, atol=1e-12)


def test_copies_are_named_with_zeros_in_front_and_are_trees_of_their_own(tmp_path: Path) -> None:
    """Ten of them have two digits, by how many there are. One of several is chosen by its name."""
    text = """<mujoco><worldbody><replicate count="10" offset="1 0 0"><body name="ball"><freejoint name="f"/><geom size="0.1"/>
    </body></replicate><replicate count="0"><body/></replicate></worldbody></mujoco>"""
    robot = read(tmp_path, text, "ball03")
    assert [link.name for link in robot.links] == ["ball03"]
    assert any("position=(3, 0, 0)" in note for note in robot.notes)


def test_copies_of_attached_models_have_prefix_and_number(tmp_path: Path) -> None:
    leg = """<mujoco><worldbody><replicate count="2"><body name="leg"><joint name="j"/><geom size="0.1"/></body></replicate>
    </worldbody><equality><joint joint1="j0" joint2="j1"/></equality></mujoco>"""
    (tmp_path / "leg.xml").write_text(leg)
    outer = """<mujoco><asset><model name="m" file="leg.xml"/></asset><worldbody><body name="b"><geom size="0.1"/>
    <replicate count="2" sep="_"><attach model="m" prefix="p_"/></replicate></body></worldbody></mujoco>"""
    robot = read(tmp_path, outer)
    assert {one.name: one.mimic and one.mimic[0] for one in robot.joints} == {
        "p_j0_0": "p_j1_0", "p_j1_0": None, "p_j0_1": "p_j1_1", "p_j1_1": None,
    }  # fmt: skip
    (tmp_path / "leg.xml").write_text(
        leg.replace("<worldbody>", "<worldbody><body name='u'>").replace("</world", "</body></world")
    )
    with pytest.raises(fs.InputError, match="<attach> names the body 'u', which has a <replicate>; attach all of 'm'"):
        read(tmp_path, outer.replace("prefix", 'body="u" prefix'))


@pytest.mark.parametrize("old, new, said", [
    ('count="3"', "", "a <replicate> has a <replicate> without count; give it"),
    ('count="3"', 'count="2.5"', "a <replicate> has count '2.5'; allowed are whole numbers"),
    ('count="3"', 'count="4000"', "a <replicate> makes more than 100000 elements of the file; allowed are so many in all"),
    ('offset="0.1 0 0.01"', 'offset="0.1 0"', "a <replicate> has offset '0.1 0' in <replicate>; allowed are 3 finite numbers"),
    ('offset="0.1 0 0.01"', 'ofset="1 0 0"', "has 'ofset' in <replicate>, which is unknown; did you mean 'offset'"),
    ("</replicate>\n  <body", "<frame><joint/></frame></replicate><body", "a <replicate> holds <joint>, which a body has for"),
    ("<frame pos", '<body name="root-1"/><frame pos', "link 'root-1' is there twice"),
    ('body1="palm" body2="foot"', 'body1="palm" body2="fot"', "<contact> excludes body 'fot', which is not there"),
])  # fmt: skip
def test_wrong_copies_are_a_sentence(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in HAND
    with pytest.raises(fs.InputError, match=said) as caught:
        read(tmp_path, HAND.replace(old, new, 1))
    assert "robot.xml" in str(caught.value)
