"""MJCF: models of other files that one attaches, with a prefix in all names and their own defaults, beside MuJoCo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import femsim as fs

RADIAN = '<compiler angle="radian" meshdir="parts"/>'
TETRAHEDRON = 'vertex="0 0 0 1 0 0 0 1 0 0 0 1"'
HAND = f"""<mujoco model="grip"><compiler angle="radian"/>
<default><joint armature="0.1"/><default class="finger"><joint damping="0.5" axis="1 0 0"/></default></default>
<asset><mesh name="tip" {TETRAHEDRON} scale="0.1 0.1 0.1"/></asset>
<worldbody><geom name="palm" size="0.1"/><body name="left" pos="0 0.1 0" childclass="finger"><joint name="l" range="-1 1"/>
 <geom type="mesh" mesh="tip"/><body name="nail" pos="0 0 0.1"><joint name="n"/><geom size="0.02"/></body></body>
<body name="right" pos="0 -0.1 0"><joint name="r" class="finger"/><geom size="0.05"/></body></worldbody>
<equality><joint joint1="n" joint2="l" polycoef="0 0.5"/><joint joint1="r" joint2="l"/></equality>
<contact><exclude body1="nail" body2="right"/></contact></mujoco>"""
FORE = f"""<mujoco model="fore">{RADIAN}<default><joint damping="3"/></default>
<asset><model name="hand" file="hand.xml"/><mesh file="ell.stl"/></asset><worldbody>
<body name="fore" euler="0 0.4 0" pos="0.1 0 0.5"><joint name="elbow" axis="0 1 0"/><geom type="mesh" mesh="ell"/>
<frame pos="0 0 0.4" euler="0.3 0 0"><attach model="hand" prefix="h_"/></frame></body></worldbody></mujoco>"""
ARM = """<mujoco model="arm"><compiler angle="radian"/><default><joint frictionloss="0.7" armature="0.02"/></default>
<asset><model name="fore" file="deep/fore.xml"/><model file="deep/hand.xml"/></asset><worldbody><body name="base">
<geom size="0.2"/><frame pos="1 0 0" euler="0 0 0.5"><attach model="fore" prefix="a_"/></frame>
<attach model="fore" body="fore" prefix="b_"/>
<body name="mast" pos="0 1 0"><joint name="turn"/><geom size="0.1"/><attach model="grip" body="left" prefix="c_"/></body></body>
</worldbody></mujoco>"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    import meshio

    (tmp_path / "deep" / "parts").mkdir(parents=True)
    (tmp_path / "deep" / "hand.xml").write_text(HAND)
    (tmp_path / "deep" / "fore.xml").write_text(FORE)
    box = fs.box_tets((0.1, 0.2, 0.3), 1).surface()
    meshio.write(tmp_path / "deep" / "parts" / "ell.stl", meshio.Mesh(box.points, [("triangle", box.triangles)]), binary=True)
    (tmp_path / "arm.xml").write_text(ARM)
    return tmp_path / "arm.xml"


def test_attached_models_are_those_of_mujoco(file: Path) -> None:
    """Names, masses, damping, rotors and mass matrix: models in models, whole worlds and single bodies."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(file))
    data, robot = mujoco.MjData(model), fs.load_robot(file)
    masses = {model.body(i).name: float(model.body_mass[i]) for i in range(1, model.nbody)}
    assert {link.name: pytest.approx(link.mass, rel=1e-6) for link in robot.links} == masses
    joints = {joint.name: joint for joint in robot.joints if joint.kind != "fixed"}
    assert set(joints) == {model.joint(i).name for i in range(model.njnt)}
    for i in range(model.njnt):
        joint = joints[model.joint(i).name]
        theirs = model.dof_damping[i], model.dof_armature[i], model.dof_frictionloss[i]
        assert (joint.damping, joint.rotor_inertia, joint.friction) == pytest.approx(theirs)
        assert not model.jnt_limited[i] or joint.limits == pytest.approx(model.jnt_range[i])
    assert sum(joint.mimic is not None for joint in joints.values()) == model.neq == 5
    free = [joint for joint in joints.values() if joint.mimic is None]
    q = dict(zip([joint.name for joint in free], np.random.default_rng(2).uniform(-0.5, 0.5, len(free)), strict=True))
    ratio = np.zeros((model.nv, len(free)))
    for i in range(model.njnt):
        joint = joints[model.joint(i).name]
        other, factor, offset = joint.mimic or (joint.name, 1.0, 0.0)
        data.qpos[i] = factor * q[other] + offset
        ratio[i, [one.name for one in free].index(other)] = factor
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    ours = robot.body("r", np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), q, {})
    columns = [ours.joint(one.name).coordinate - 7 for one in free]
    found = ours.mass_matrix(ours.initial_q())[6:, 6:][np.ix_(columns, columns)]
    wanted = ratio.T @ M @ ratio
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-6 * np.abs(wanted).max())
    for name in ("a_h_nail", "b_h_right", "c_left"):
        np.testing.assert_allclose(robot.pose(name, q)[0], data.xpos[model.body(name).id], rtol=0.0, atol=1e-9)


def test_what_attached_models_leave_out_is_known_by_prefix(file: Path) -> None:
    robot = fs.load_robot(file)
    assert set(robot.no_contact) == {("a_h_nail", "a_h_right"), ("b_h_nail", "b_h_right")}
    assert {link.name: len(link.shapes) for link in robot.links}["a_fore"] == 2  # with the palm


@pytest.mark.parametrize("old, new, said", [
    ('model="grip" body', 'model="gip" body', "<attach> names the model 'gip', which no <asset> has; did you mean 'grip'"),
    ('body="left"', 'body="lft"', "<attach> names the body 'lft', which its model has not; did you mean 'left'"),
    ('file="deep/hand.xml"', 'name="grip" file="no.xml"', r"<attach> has the model 'grip' of .*no\.xml, which is not there"),
    ('file="deep/hand.xml"', 'name="grip" file="deep/parts/ell.stl"', r"<attach> has the file .*ell\.stl, which cannot be read"),
    ('angle="radian"', "", r"<attach> has the file .*fore\.xml, whose <compiler> .* in angle \(there 'radian' and here"),
    ('prefix="b_"', 'prefix="a_"', "<attach> puts in the model 'fore' twice with the prefix 'a_'; give each another prefix"),
    ("deep/fore.xml", "arm.xml", "<attach> puts in more than 100 models; allowed are 100, none of them within itself"),
])  # fmt: skip
def test_wrong_attachments_are_a_sentence(old: str, new: str, said: str, file: Path) -> None:
    file.write_text(ARM.replace(old, new))
    with pytest.raises(fs.InputError, match=said) as caught:
        fs.load_robot(file)
    assert "arm.xml" in str(caught.value)


def test_a_model_may_be_no_urdf(file: Path) -> None:
    (file.parent / "deep" / "hand.xml").write_text("<robot/>")
    with pytest.raises(fs.InputError, match="whose root is <robot>; give one of MJCF"):
        fs.load_robot(file)


def test_without_a_prefix_classes_of_one_name_are_two(tmp_path: Path) -> None:
    """Each file keeps its own, as MuJoCo has it."""
    head = '<mujoco><compiler angle="radian"/><default><default class="k"><joint damping="{}"/></default></default>'
    inner = '<worldbody><body name="in"><joint name="i" class="k"/><geom size="0.1"/></body></worldbody></mujoco>'
    (tmp_path / "inner.xml").write_text(head.format(2) + inner)
    outer = """<asset><model name="m" file="inner.xml"/></asset><worldbody><body name="out" childclass="k"><geom size="0.1"/>
    <body name="arm"><joint name="o"/><geom size="0.1"/><attach model="m" prefix=""/></body></body></worldbody></mujoco>"""
    (tmp_path / "outer.xml").write_text(head.format(3) + outer)
    joints = fs.load_robot(tmp_path / "outer.xml").joints
    assert {joint.name: joint.damping for joint in joints} == {"i": 2.0, "o": 3.0}
