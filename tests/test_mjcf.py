"""MJCF: the same robot as in URDF has the same tree, mass matrix and weights; all ways to write things; what is wrong is said."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import Box, Capsule, Cylinder, Mesh, Sphere
from femsim.model.bodies.tree import TreeBody

INERTIA = '<inertial pos="0.1 0.02 0" mass="0.8" diaginertia="0.002 0.004 0.005" quat="0.9 0.1 0.3 -0.2"/>'
ARM = f"""<mujoco model="arm"><compiler angle="radian"/>
<default><joint damping="0.3"/><default class="wrist"><joint armature="0.01" frictionloss="0.2" axis="1 0 0"/></default></default>
<worldbody><light pos="0 0 3"/><geom type="plane" size="1 1 1"/>
<body name="base"><inertial pos="0 0 0.05" mass="2" fullinertia="0.01 0.02 0.015 0.001 0.002 -0.001"/>
 <geom type="cylinder" size="0.05 0.02" pos="0 0 0.02"/>
 <body name="upper" pos="0 0 0.1" quat="0.8 0.6 0 0">
  <joint name="shoulder" axis="0 0 1" pos="0.01 0.02 0.03" range="-2 1.5"/>{INERTIA}
  <body name="fore" pos="0.3 0 0.1" axisangle="0 2 0 0.5">
   <joint name="slide" type="slide" axis="0 1 0" range="-0.1 0.2" actuatorfrcrange="-30 20"/>
   <joint name="elbow" axis="0 1 0" pos="0 0 0.05" damping="0.1"/>{INERTIA}
   <body name="tool" pos="0 0.1 0" euler="0.3 0.2 0.1" childclass="wrist">
    <joint name="roll"/><geom type="box" size="0.01 0.02 0.03" pos="0.05 0 0" mass="0.4" name="plate"/>
    <geom type="sphere" size="0.01" contype="0" conaffinity="0" mass="0"/><site name="tip"/>
   </body></body></body></body></worldbody>
<actuator><motor joint="elbow"/></actuator></mujoco>"""


def written(folder: Path, text: str) -> Path:
    (folder / "robot.xml").write_text(text)
    return folder / "robot.xml"


def by_hand() -> fs.Robot:
    """The same by links and joints, worked out by hand: frames of links stand where their joints turn."""
    turn = Rotation.from_quat([0.1, 0.3, -0.2, 0.9]).as_matrix()
    spin = turn @ np.diag([0.002, 0.004, 0.005]) @ turn.T
    own = np.array([[0.01, 0.001, 0.002], [0.001, 0.02, -0.001], [0.002, -0.001, 0.015]])
    centre, p, e = np.array([0.1, 0.02, 0.0]), np.array([0.01, 0.02, 0.03]), np.array([0.0, 0.0, 0.05])
    box = 0.4 / 3.0 * np.diag([0.02**2 + 0.03**2, 0.01**2 + 0.03**2, 0.01**2 + 0.02**2])
    links = [
        fs.RobotLink("base", 2.0, (0, 0, 0.05), own), fs.RobotLink("upper", 0.8, centre - p, spin), fs.RobotLink("fore_1"),
        fs.RobotLink("fore", 0.8, centre - e, spin), fs.RobotLink("tool", 0.4, (0.05, 0, 0), box),
    ]  # fmt: skip
    R = Rotation.from_quat([0.6, 0, 0, 0.8])
    joints = [
        fs.RobotJoint("shoulder", "base", "upper", "revolute", np.array([0, 0, 0.1]) + R.apply(p), R.as_rotvec(), (0, 0, 1),
                      limits=(-2, 1.5), damping=0.3),
        fs.RobotJoint("slide", "upper", "fore_1", "prismatic", np.array([0.3, 0, 0.1]) - p, (0, 0.5, 0), (0, 1, 0),
                      limits=(-0.1, 0.2), damping=0.3),
        fs.RobotJoint("elbow", "fore_1", "fore", "revolute", e, (0, 0, 0), (0, 1, 0), damping=0.1),
        fs.RobotJoint("roll", "fore", "tool", "revolute", np.array([0, 0.1, 0]) - e,
                      Rotation.from_euler("XYZ", [0.3, 0.2, 0.1]).as_rotvec(), (1, 0, 0), damping=0.3, rotor_inertia=0.01,
                      friction=0.2),
    ]  # fmt: skip
    return fs.Robot("arm", links, joints)


def body_of(robot: fs.Robot, joints: dict[str, float]) -> TreeBody:
    return robot.body("arm", np.array([0.1, 0.2, 0.3]), np.array([0.8, 0, 0.6, 0]), joints, {})


@pytest.mark.parametrize("seed", range(3))
def test_a_robot_has_the_mass_matrix_and_dynamics_of_the_same_one_by_hand(seed: int, tmp_path: Path) -> None:
    robot = fs.load_robot(written(tmp_path, ARM))
    rng = np.random.default_rng(seed)
    at = dict(zip(("shoulder", "slide", "elbow", "roll"), rng.uniform(-0.1, 0.2, 4).tolist(), strict=True))
    ours, hand = body_of(robot, at), body_of(by_hand(), at)
    q = ours.initial_q()
    np.testing.assert_allclose(q, hand.initial_q(), atol=1e-14)
    np.testing.assert_allclose(ours.mass_matrix(q), hand.mass_matrix(q), atol=1e-12)
    v, rate, gravity = rng.standard_normal(10), rng.standard_normal(10), np.array([0.3, 0.2, -9.81])
    np.testing.assert_allclose(ours.inverse_dynamics(q, v, rate, gravity), hand.inverse_dynamics(q, v, rate, gravity), atol=1e-12)
    for link in ("upper", "fore", "tool"):
        a, b = (body.link_jacobian(q, body.links.index(link)) for body in (ours, hand))
        np.testing.assert_allclose(a, b, atol=1e-13)


def test_defaults_limits_and_what_is_not_read(tmp_path: Path) -> None:
    robot = fs.load_robot(written(tmp_path, ARM))
    joints = {joint.name: joint for joint in robot.joints}
    assert joints["slide"].limits == (-0.1, 0.2) and joints["slide"].max_effort == 30.0
    assert (joints["elbow"].damping, joints["shoulder"].damping, joints["roll"].damping) == (0.1, 0.3, 0.3)
    assert (joints["roll"].friction, joints["roll"].rotor_inertia) == (0.2, 0.01)
    links = {link.name: link for link in robot.links}
    assert [len(links["tool"].shapes), len(links["tool"].visuals)] == [1, 1]
    world = "robot.xml: geoms of the world are left out; add obstacles to the scene"
    motors = "robot.xml: motors of joint 'slide' are limited to 30 both ways, not to -30 and 20"
    assert sorted(robot.notes) == ["robot.xml: <actuator> is not read", world, motors]


def test_what_makes_another_robot_of_it_is_noted(tmp_path: Path) -> None:
    """It was left out without a word. A box between two points is square, as MuJoCo has it."""
    text = """<mujoco><worldbody><body name="a" pos="0 0 2" euler="180 0 0"><geom size="0.1"/>
      <body name="b" gravcomp="1"><joint name="j" actuatorfrcrange="-5 5" actuatorfrclimited="false"/>
      <geom name="rod" type="box" fromto="0 0 0 0 0 0.3" size="0.05 0.02" shellinertia="true"/>
      </body></body></worldbody></mujoco>"""
    robot = fs.load_robot(written(tmp_path, text))
    said = "\n".join(robot.notes)
    for words in (
        "the pose of body 'a', the base, is left out",
        "gravcomp of body 'b' is left out",
        "geom rod of body 'b' counts as solid",
    ):
        assert words in said
    (box,) = next(link for link in robot.links if link.name == "b").shapes
    np.testing.assert_allclose(box.shape.half_extents, [0.05, 0.05, 0.15])
    assert math.isinf(next(joint for joint in robot.joints if joint.name == "j").max_effort)


def one_body(inner: str, head: str = "", body: str = "") -> str:
    return f'<mujoco>{head}<worldbody><body name="a" {body}>{inner}</body></worldbody></mujoco>'


def test_degrees_turns_and_shapes(tmp_path: Path) -> None:
    """Geoms without inertia have that of their shapes at 1000 kg/m^3; degrees are the default, as small eulerseq is."""
    import meshio

    box = fs.box_tets((0.1, 0.2, 0.3), 1).surface()
    (tmp_path / "parts").mkdir()
    meshio.write(tmp_path / "parts" / "box.stl", meshio.Mesh(box.points, [("triangle", box.triangles)]))
    head = '<compiler meshdir="parts" eulerseq="zyx"/><asset><mesh name="m" file="box.stl" scale="1 1 0.5"/></asset>'
    inner = """<freejoint/><geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0"/>
    <body name="b" euler="90 0 30"><joint name="j" range="-90 45" axis="0 0 1"/><geom type="mesh" mesh="m" density="500"/></body>
    <body name="c" zaxis="1 0 0"><joint name="k" type="ball"/><geom type="cylinder" size="0.1 0.2" mass="3"/></body>
    <body name="d" xyaxes="0 1 0 -1 0 0"><geom size="0.1"/></body>"""
    equality = '<equality><joint joint1="j2" joint2="j" polycoef="0.1 -2 0 0 0"/></equality>'
    inner += '<body name="e" pos="0 0 1"><joint name="j2" range="-10 10"/><geom size="0.1"/></body>'
    robot = fs.load_robot(written(tmp_path, one_body(inner, head).replace("</mujoco>", equality + "</mujoco>")))
    links = {link.name: link for link in robot.links}
    joints = {joint.name: joint for joint in robot.joints}
    assert robot.root == "a" and robot.notes == ["robot.xml: its base has a free joint; say base='free' in add_robot"]
    capsule = links["a"].shapes[0]
    assert isinstance(capsule.shape, Capsule) and capsule.shape.half_length == pytest.approx(0.15)
    assert np.asarray(capsule.position) == pytest.approx([0.15, 0, 0])
    assert np.abs(capsule.pose[0] @ [0, 0, 1]) == pytest.approx([1, 0, 0])
    assert links["a"].mass == pytest.approx(1000 * math.pi * 0.02**2 * (0.3 + 4 / 3 * 0.02))
    assert isinstance(links["b"].shapes[0].shape, Mesh) and links["b"].mass == pytest.approx(500 * 0.1 * 0.2 * 0.15)
    assert joints["j"].limits == pytest.approx((-math.pi / 2, math.pi / 4))
    # z by 90 degrees, then about the new x by 30
    turned = Rotation.from_rotvec(np.asarray(joints["j"].rotation)).as_matrix()
    assert turned @ [1, 0, 0] == pytest.approx([0, 1, 0], abs=1e-12)
    assert turned @ [0, 0, 1] == pytest.approx([math.sin(math.pi / 6), 0, math.cos(math.pi / 6)], abs=1e-12)
    assert joints["k"].kind == "spherical" and links["c"].mass == 3.0 and isinstance(links["c"].shapes[0].shape, Cylinder)
    assert Rotation.from_rotvec(np.asarray(joints["k"].rotation)).apply([0, 0, 1]) == pytest.approx([1, 0, 0])
    assert Rotation.from_rotvec(np.asarray(joints["d_mount"].rotation)).apply([1, 0, 0]) == pytest.approx([0, 1, 0])
    assert isinstance(links["d"].shapes[0].shape, Sphere) and joints["j2"].mimic == ("j", -2.0, 0.1)


def test_what_a_file_excludes_has_no_contact(tmp_path: Path) -> None:
    """Three legs on a trunk: two of them may cross, and the world is none of its links."""
    legs = "".join(
        f'<body name="{leg}" pos="{x} 0 -0.2"><joint axis="0 1 0"/><geom type="capsule" size="0.02 0.05"/></body>'
        for leg, x in (("b", -0.2), ("c", 0.0), ("d", 0.2))
    )
    section = """<contact><exclude body1="c" body2="b"/><exclude body1="world" body2="a"/><other/></contact>"""
    text = one_body(f'<geom type="box" size="0.3 0.1 0.05"/>{legs}').replace("</mujoco>", f"{section}</mujoco>")
    robot = fs.load_robot(written(tmp_path, text))
    assert robot.no_contact == (("c", "b"),) and [note.endswith("<contact><other> is not read") for note in robot.notes] == [True]
    for base in ("free", "planar"):
        scene = fs.Scene("legs")
        scene.add_robot(robot, name="r", base=base)  # type: ignore[arg-type]
        names = {frozenset(scene.part_names[k] for k in (pair.a, pair.b)) for pair in scene.own_pairs}
        assert names == {frozenset(("r.b", "r.d")), frozenset(("r.c", "r.d"))}
    for wrong, said in (
        ([("b", "e")], "no_contact names link 'e', which it has not"),
        (["bc"], "no_contact holds 'bc'; give pairs"),
    ):
        with pytest.raises(fs.InputError, match=said):
            fs.Robot("r", robot.links, robot.joints, no_contact=wrong)  # type: ignore[arg-type]


def test_links_get_names_that_files_can_have(tmp_path: Path) -> None:
    """What names of files may not hold becomes "_", no name is there twice, and all that names a link follows."""
    bodies = """<body name="b/a_b" pos="1 0 0"><geom size="0.1"/></body>
    <body name="b/a b" pos="0.5 0 0"><joint name="b/j 1" axis="0 1 0"/><geom size="0.1"/></body>"""
    section = '<contact><exclude body1="b/a b" body2="b/a_b"/></contact>'
    text = one_body(bodies).replace("</mujoco>", f"{section}</mujoco>").replace("<mujoco", '<mujoco model="my arm"', 1)
    robot = fs.load_robot(written(tmp_path, text))
    assert robot.name == "my_arm" and [link.name for link in robot.links] == ["a", "b_a_b", "b_a_b_"]
    assert robot.no_contact == (("b_a_b_", "b_a_b"),) and robot.joint_names() == ["b/j 1"]
    said = "link 'b/a_b' is called 'b_a_b' here, since files are named by it, and so on with 1 more"
    assert robot.notes == [f"robot.xml: {said}"]
    scene = fs.Scene("s", dt=0.01, duration=0.01)
    arm = scene.add_robot(robot)
    scene.sensor("angle", "my_arm.b/j 1", kind="revolute")
    fs.simulate(scene, out=tmp_path / "run")
    assert {f"{part}.vtp.series" for part in arm.parts} <= {file.name for file in (tmp_path / "run" / "frames").iterdir()}


def test_masks_and_pairs_say_who_has_contact(tmp_path: Path) -> None:
    """By the bits that contype of one and conaffinity of the other share; a pair that is named has contact all the same."""

    def of(masks: dict[str, str], section: str = "") -> tuple[set[frozenset[str]], list[str]]:
        legs = "".join(
            f'<body name="{leg}" pos="{x} 0 -0.2"><joint/><geom name="g{leg}" size="0.02" {masks.get(leg, "")}/></body>'
            for leg, x in (("b", -0.2), ("c", 0.0), ("d", 0.2))
        )
        text = one_body(f'<geom type="box" size="0.3 0.1 0.05"/>{legs}').replace("</mujoco>", f"{section}</mujoco>")
        robot = fs.load_robot(written(tmp_path, text))
        return {frozenset(pair) for pair in robot.no_contact}, [note.rpartition(": ")[2] for note in robot.notes]

    bc, bd, cd = (frozenset(pair) for pair in ("bc", "bd", "cd"))
    assert of({}) == (set(), [])
    assert of({"b": 'contype="1" conaffinity="0"', "c": 'contype="1" conaffinity="0"'}) == ({bc}, [])
    assert of({"b": 'contype="3"', "c": 'conaffinity="2" contype="4"'})[0] == {cd, frozenset("ac")}
    two = 'contype="2" conaffinity="2"'
    found, notes = of({"b": two, "c": two})
    assert found == {bd, cd, frozenset("ab"), frozenset("ac")} and "between bodies of the robot" in notes[0]
    pair = '<contact><pair geom1="gd" geom2="gb"/><pair geom1="gb" geom2="gc" condim="3"/></contact>'
    found, notes = of({"b": two, "c": two}, pair)
    assert found == {cd, frozenset("ab"), frozenset("ac")} and "only the pair is read" in notes[0]
    # nothing of it has contact: its geom is only drawn
    assert of({"b": 'contype="0" conaffinity="0"'}) == (set(), [])
    for masks, section, said in (
        ({"b": 'contype="0.5"'}, "", "contype '0.5'; allowed are whole numbers of 32 bits"),
        ({}, '<contact><pair geom1="gb" geom2="gx"/></contact>', "pairs geom 'gx', which is not there; there are gb"),
    ):
        with pytest.raises(fs.InputError, match=said):
            of(masks, section)


def with_head(head: str, joint: str = "", after: str = "") -> str:
    """A base with a joint "j" and a joint "k" that hangs on it; something in front, in "j", and behind."""
    second = '<body name="c"><joint name="k" axis="0 1 0"/><geom size="0.1"/></body>'
    body = f'<geom size="0.1"/><body name="b"><joint name="j" {joint}/><geom size="0.1"/>{second}</body>'
    return one_body(body, head).replace("</mujoco>", after + "</mujoco>")


def test_sections_of_defaults_add_up(tmp_path: Path) -> None:
    """The second one had erased the first."""
    head = '<default><joint damping="0.5"/></default><default><geom density="500"/><default class="s"><joint armature="2"/>'
    robot = fs.load_robot(written(tmp_path, with_head(head + "</default></default>", 'class="s"')))
    joints = {joint.name: joint for joint in robot.joints}
    assert [joints[name].damping for name in "jk"] == [0.5, 0.5] and joints["j"].rotor_inertia == 2.0
    assert robot.links[0].mass == pytest.approx(500.0 * 4.0 / 3.0 * math.pi * 0.001)


@pytest.mark.parametrize("polynomial, wanted", [("0 -1 0 0 0", (-1.0, 0.0)), ("0.3 2", (2.0, 0.3)), ("0.3", (1.0, 0.3))])
def test_equalities_have_defaults_and_short_polynomials(polynomial: str, wanted: tuple[float, float], tmp_path: Path) -> None:
    equality = f'<equality><joint joint1="k" joint2="j" polycoef="{polynomial}"/></equality>'
    robot = fs.load_robot(written(tmp_path, with_head("", after=equality)))
    assert {joint.name: joint for joint in robot.joints}["k"].mimic == ("j", *wanted)
    off = '<default><equality active="false"/></default>'
    robot = fs.load_robot(written(tmp_path, with_head(off, after=equality)))
    assert {joint.name: joint for joint in robot.joints}["k"].mimic is None and "<equality><joint> is not read" in robot.notes[0]


@pytest.mark.parametrize(
    "text, said",
    [
        (with_head('<option gravity="0 0 -1.62"/>'), ["its gravity, (0, 0, -1.62) m/s^2, is left out; give it to fs.Scene"]),
        (with_head('<option gravity="0 0 -9.81" timestep="0.001"/>'), []),
        (with_head('<option wind="1 0 0" density="1.2" viscosity="0"/>'),
         ["wind of <option> is left out; bodies move without air", "density of <option> is left out; bodies move without air"]),
        (with_head('<option gravity="0 0 -1.62"><flag gravity="disable" warmstart="disable"/></option>'),
         ['<flag gravity="disable"> of <option> is left out; give gravity=(0, 0, 0) to fs.Scene']),
        (with_head('<option><flag limit="disable" contact="disable" gravity="enable"/></option>'),
         ['<flag contact="disable"> of <option> is left out; say scene.ignore_contact',
          '<flag limit="disable"> of <option> is left out; joints keep their stops']),
        (with_head('<option newly="1"><newly/></option>'), ["'newly' in <option> is not read", "<option><newly> is not read"]),
        (with_head("", 'damping="2 1 1"'), ["of the damping of joint 'j' the first number is read; it is linear"]),
        (with_head("", 'newly="1"'), ["'newly' in <joint> is not read"]),
        (one_body('<joint type="free" armature="1"/><geom size="1"/>', '<default><joint damping="3"/></default>'),
         ["its base has a free joint; say base='free' in add_robot", "damping and armature of the free joint are left out"]),
        (one_body('<freejoint/><geom size="1"/>', '<default><joint damping="3"/></default>'),
         ["its base has a free joint; say base='free' in add_robot"]),
    ],
)  # fmt: skip
def test_what_is_left_out_of_surroundings_and_joints_is_noted(text: str, said: list[str], tmp_path: Path) -> None:
    assert fs.load_robot(written(tmp_path, text)).notes == [f"robot.xml: {one}" for one in said]


def test_ranges_that_look_like_radians_are_noted(tmp_path: Path) -> None:
    """Pieces of files leave it to the file that includes them what angles are; alone they are read in degrees, as MuJoCo does."""
    legs = '<body><joint range="-0.5 1.5"/><geom size="0.1"/></body><body><joint range="0 {}"/><geom size="0.1"/></body>'
    said = "ranges of its 2 joints are up to 1.5 degrees, as no <compiler> says what angles are; if they are radians, say <comp"
    for most, head, noted in (("0.7", "", True), ("70", "", False), ("0.7", '<compiler angle="degree"/>', False)):
        notes = fs.load_robot(written(tmp_path, one_body('<geom size="0.1"/>' + legs.format(most), head))).notes
        assert [note.startswith(f"robot.xml: {said}") for note in notes] == [True] * noted


def test_springs_of_joints_are_read(tmp_path: Path) -> None:
    """They swing about their place of rest, x = 0.1 (1 - cos(2 t)) of 1 kg at 4 N/m, beside what drives them; balls have none."""
    slide = '<joint name="j" type="slide" axis="1 0 0" stiffness="4" springref="0.1"/><geom size="0.1" mass="1"/>'
    ball = '<body name="c"><joint name="k" type="ball" stiffness="2"/><geom size="0.1" mass="1"/></body>'
    robot = fs.load_robot(written(tmp_path, one_body(slide + ball)))
    said = "springs of balls are left out: 'k' (2 N m/rad); those of joints of one coordinate are read"
    assert robot.notes == [f"robot.xml: {said}"]
    turns = '<joint name="j" springref="90" stiffness="2"/><geom size="0.1" mass="1"/>'
    (spring,) = fs.load_robot(written(tmp_path, one_body(turns))).springs
    assert (spring.stiffness, spring.rest, spring.joints) == (2.0, pytest.approx(math.pi / 2.0), {"j": 1.0})
    scene = fs.Scene("s", dt=0.01, duration=1.0, gravity=(0, 0, 0), strain_damping=0.0)
    arm = scene.add_robot(fs.load_robot(written(tmp_path, one_body(slide))), name="r")
    scene.drive_joint(arm, "j", effort=lambda t: 0.2)
    scene.sensor("x", "r.j", kind="prismatic")
    assert fs.simulate(scene).gauges["x"].values["position_m"][-1] == pytest.approx(0.15 * (1 - math.cos(2.0)), abs=1e-4)


def test_a_box_between_two_points_is_turned_as_mujoco_has_it(tmp_path: Path) -> None:
    """Its z goes to the first point by the smallest turn: the extents along x and y are those that MuJoCo 3.2 and 4.0 give."""
    text = one_body('<geom type="box" size="0.05" fromto="0 0 0 0.1 0.3 0.2"/>')
    (box,) = fs.load_robot(written(tmp_path, text)).links[0].shapes
    extent = np.abs(box.pose[0]) @ box.shape.half_extents
    assert extent[1] == pytest.approx(0.1921, abs=1e-4)
    np.testing.assert_allclose(box.pose[0] @ [0, 0, 1], -np.array([0.1, 0.3, 0.2]) / math.sqrt(0.14), atol=1e-12)


def test_a_mirrored_mesh_is_no_hole(tmp_path: Path) -> None:
    import meshio

    box = fs.box_tets((0.1, 0.2, 0.3), 1).surface()
    meshio.write(tmp_path / "box.stl", meshio.Mesh(box.points, [("triangle", box.triangles)]))
    head = '<asset><mesh name="m" file="box.stl" scale="2 -1 1"/></asset>'
    robot = fs.load_robot(written(tmp_path, one_body('<geom type="mesh" mesh="m"/>', head)))
    assert robot.links[0].mass == pytest.approx(1000.0 * 0.2 * 0.2 * 0.3) and robot.notes == []


def test_a_base_that_turns_hangs_on_the_world(tmp_path: Path) -> None:
    text = one_body('<joint name="pan" axis="0 0 1"/><geom type="box" size="0.1 0.1 0.1"/>', body='pos="0 0 0.5"')
    robot = fs.load_robot(written(tmp_path, text))
    assert robot.root == "world" and robot.joint_names() == ["pan"] and isinstance(robot.links[1].shapes[0].shape, Box)
    assert robot.pose("a")[0] == pytest.approx([0, 0, 0.5])


INCLUDED = {
    "parts/common.xml": '<mujocoinclude><compiler angle="radian"/><default><joint damping="0.3"/></default></mujocoinclude>',
    "arm.xml": '<mujoco><body name="a"><geom size="0.1"/><include file="parts/hand.xml"/></body></mujoco>',
    "parts/hand.xml": '<mujoco><body name="b" pos="0 0 0.2"><joint name="pan" range="-1 1"/><geom size="0.05"/></body></mujoco>',
}


def test_what_other_files_hold_is_included(tmp_path: Path) -> None:
    """From the folder of the main file, else from that of the one that includes it, as by MuJoCo; it was refused."""
    for name, text in INCLUDED.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    main = '<mujoco><include file="parts/common.xml"/><worldbody><include file="arm.xml"/></worldbody></mujoco>'
    robot = fs.load_robot(written(tmp_path, main))
    (joint,) = robot.joints
    assert [link.name for link in robot.links] == ["a", "b"] and robot.notes == []
    assert (joint.name, joint.limits, joint.damping, tuple(joint.position)) == ("pan", (-1.0, 1.0), 0.3, (0.0, 0.0, 0.2))
    (tmp_path / "parts/arm.xml").write_text(INCLUDED["arm.xml"].replace("parts/", ""))
    aside = fs.load_robot(written(tmp_path, main.replace('"arm', '"parts/arm')))
    assert [link.mass for link in aside.links] == [link.mass for link in robot.links]
    (tmp_path / "hand.xml").write_text(INCLUDED["parts/hand.xml"].replace("0.05", "0.01"))
    first = fs.load_robot(written(tmp_path, main.replace('"arm', '"parts/arm')))
    assert first.links[1].mass == pytest.approx(robot.links[1].mass / 125.0)
    (tmp_path / "parts/hand.xml").write_text("<mujoco>")
    with pytest.raises(fs.InputError, match=r"robot\.xml: <include> has the file .*hand\.xml, which cannot be read .*no XML"):
        fs.load_robot(written(tmp_path, main))
    (tmp_path / "parts/hand.xml").write_text('<mujoco><include file="arm.xml"/></mujoco>')
    with pytest.raises(fs.InputError, match=r"arm\.xml, which is in it already"):
        fs.load_robot(written(tmp_path, main))


def test_a_hundred_files_are_included_at_most(tmp_path: Path) -> None:
    for k in range(102):
        (tmp_path / f"{k}.xml").write_text(f'<mujoco><include file="{k + 1}.xml"/></mujoco>')
    with pytest.raises(fs.InputError, match=r"101\.xml, but more than 100 files are not read"):
        fs.load_robot(tmp_path / "0.xml")


@pytest.mark.parametrize(("body", "own"), [("", 'class="f"'), ('childclass="f"', "")])
def test_a_base_is_free_by_its_class(body: str, own: str, tmp_path: Path) -> None:
    """Only the outer default was asked; what its joint loses is noted."""
    head = '<default><default class="f"><joint type="free" damping="3"/></default></default>'
    robot = fs.load_robot(written(tmp_path, one_body(f'<joint {own}/><geom size="0.1"/>', head, body)))
    said = ["its base has a free joint; say base='free' in add_robot", "damping of the free joint is left out"]
    assert robot.root == "a" and [note.rpartition(": ")[2] for note in robot.notes] == said


@pytest.mark.parametrize(
    "text, said",
    [
        ("<mujoco><include file='a.xml'/></mujoco>", "a.xml, which is not there; correct its name"),
        ("<mujoco><include/></mujoco>", "which is not there; correct its name"),
        ("<mujoco><include file='robot.xml'/></mujoco>", "robot.xml, which is in it already; leave it out"),
        ("<mujoco><worldbody/></mujoco>", "holds 0 bodies; a robot is one tree"),
        ("<mujoco><body/></mujoco>", "<body> is not read here; this file seems to be a part of a model, so give the"),
        ("<mujoco><worldbody><composite/></worldbody></mujoco>", "holds <composite>, which is not read; save the model as one"),
        (one_body("<frame ps='1 0 0'/>"), "has 'ps' in <frame>, which is unknown; did you mean 'pos'"),
        (one_body("<frame pos='1 0'/>"), "has pos '1 0' in <frame>; allowed are 3 finite numbers"),
        (one_body("<frame><composite/></frame>"), "body 'a' holds <composite>"),
        (one_body("<composite/>"), "body 'a' holds <composite>"),
        (one_body("<geom type='ellipsoid' size='1 1'/>"), "geom 1 of body 'a' has size '1 1' in <geom>; allowed are 3 finite"),
        (one_body("<geom type='sdf' size='1 1 1'/>"), "geom 1 of body 'a' is a sdf; allowed are .*, ellipsoid, mesh"),
        (one_body("<geom size='x'/>"), "has size 'x' in <geom>; allowed is a finite number"),
        (one_body("<geom type='box' size='1 1'/>"), "has size '1 1' in <geom>; allowed are 3 finite numbers"),
        (one_body("<geom type='box' size='1 1 -1'/>"), "has the sizes"),
        (one_body("<geom type='mesh' mesh='m'/>"), "has the mesh 'm', which no <asset> names"),
        (one_body("<geom type='capsule' fromto='0 0 0 0 0 0' size='1'/>"), "has a fromto of no length"),
        (one_body("<geom mesh='m'/>"), "has the mesh 'm', which no <asset> names"),
        (one_body("<geom mesh='m'/>", "<compiler fitaabb='yes'/>"), "has fitaabb 'yes' in <compiler>; allowed are true, false"),
        (one_body("<geom size='1' density='-1'/>"), "has the density -1 kg"),
        (one_body("<geom size='1'/><body><joint limited='yes'/><geom size='1'/></body>"), "limited 'yes' in <joint>; allowed"),
        (one_body("<geom size='1'/>", "<compiler settotalmass='x'/>"), "has settotalmass 'x' in <compiler>; allowed"),
        (one_body("<geom size='1' class='c'/>"), "has class 'c', which no <default> defines"),
        (one_body("<geom size='1' quat='0 0 0 0'/>"), "it must not be zero"),
        (one_body("<geom size='1' quat='1 0 0 0' euler='0 0 0'/>"), "is turned by quat and euler; give one"),
        (one_body("<geom size='1'/>", "<compiler angel='radian'/>"), "has 'angel' in <compiler>, which is unknown; did you mean"),
        (one_body("<body><joint name='x'/><geom size='1'/></body>").replace(
            "</mujoco>", "<equality><joint joint1='x' joint2='y' polycoeff='0 2'/></equality></mujoco>"),
         "has 'polycoeff' in <joint>, which is unknown; did you mean 'polycoef'"),
        (one_body("<geom size='1'/>", "<compiler angle='grad'/>"), "has angle 'grad' in <compiler>; allowed are degree, radian"),
        (one_body("<geom size='1'/>", "<compiler autolimits='True'/>"), "has autolimits 'True' in <compiler>; allowed are true"),
        (one_body("<geom size='1'/>", "<compiler inertiafromgeom='yes'/>"), "has inertiafromgeom 'yes' in <compiler>; allowed"),
        (with_head("<option gravty='0 0 0'/>"), "<option> has 'gravty' in <option>, which is unknown; did you mean 'gravity'"),
        (with_head("<option><flag gravty='disable'/></option>"), "has 'gravty' in <flag>, which is unknown; did you mean"),
        (with_head("<option><flag gravity='off'/></option>"), "has gravity 'off' in <flag>; allowed are enable, disable"),
        (with_head("<option><flags gravity='disable'/></option>"), "<option> holds <flags>, .* did you mean <flag>"),
        (with_head("", after="<contact><exclude body_1='a' body2='b'/></contact>"), "has 'body_1' in <exclude>, .* 'body1'"),
        (with_head("", after="<contact><pair geom_1='a' geom2='b'/></contact>"), "has 'geom_1' in <pair>, .* 'geom1'"),
        (with_head("", after="<contact><pair class='c' geom1='a' geom2='b'/></contact>"), "has class 'c', which no <default>"),
        (with_head("", after="<contact><exlude body1='a' body2='b'/></contact>"), "<contact> holds <exlude>, .* <exclude>"),
        (with_head("<default><equality actve='false'/></default>"), "has 'actve' in <equality>, .* did you mean 'active'"),
        (with_head("<default><pair frction='1'/></default>"), "has 'frction' in <pair>, which is unknown; did you mean"),
        (with_head("<default><jont damping='1'/></default>"), "<default> holds <jont>, which is unknown; did you mean <joint>"),
        (with_head("", after="<equality><joint joint1='k' jont2='j'/></equality>"), "has 'jont2' in <joint>, .* 'joint2'"),
        (with_head("", after="<equality><jiont joint1='k' joint2='j'/></equality>"), "<equality> holds <jiont>"),
        (with_head("", after="<equality><joint joint1='k' joint2='j' active='yes'/></equality>"), "has active 'yes' in <joint>"),
        (with_head("", "actuatorfrcrange='-1 1' actuatorfrclimited='no'"), "has actuatorfrclimited 'no' in <joint>; allowed"),
        (one_body("<geom size='1'/>", "<compiler eulerseq='xYz'/>"), "has eulerseq 'xYz'"),
        (one_body("<geom size='1'/>", "<compiler coordinate='global'/>"), "has global coordinates"),
        (one_body("<geom size='1'/>", "<default class='c'/>"), "<default> has class 'c'; the outer one is 'main'"),
        (one_body("<geom size='1'/>", "<default><default class='c'/></default><default><default class='c'/></default>"),
         "has class 'c', as another one has"),
        (with_head("", "dampping='1'"), "has 'dampping' in <joint>, which is unknown; did you mean 'damping'?"),
        (one_body("<geom size='1'/>", "<default><joint dampping='1'/></default>"), "did you mean 'damping'?"),
        (with_head("", after="<equality><joint joint1='k' joint2='j'/><joint joint1='k' joint2='j'/></equality>"),
         "the equality of 'k' is the second of this joint"),
        (one_body("<geom type='mesh' mesh='m'/>", "<asset><mesh name='m' file='no.stl'/></asset>"), "which is not there"),
        (one_body("<inertial pos='0 0 0' mass='1'/>"), "has a <inertial> without diaginertia"),
        (one_body("<inertial pos='0 0 0' mass='1' diaginertia='1 1 9'/>"), "which no body has"),
        (one_body("<body><joint type='free'/><geom size='1'/></body>"), "is 'free'; allowed below the base are"),
        (one_body("<geom size='1'/><body><joint ref='x'/><geom size='1'/></body>"), "has ref 'x' in <joint>; allowed is a"),
        (one_body("<geom size='1'/><body><joint range='1 0'/><geom size='1'/></body>"), "the lower one must be below"),
        (one_body("<geom size='1'/>").replace("</mujoco>", "<equality><joint joint1='x' joint2='y'/></equality></mujoco>"),
         "the equality of 'x' names no joint"),
        (one_body("<geom size='1'/>").replace("</mujoco>", "<contact><exclude body1='a' body2='b'/></contact></mujoco>"),
         "<contact> excludes body 'b', which is not there"),
    ],
)  # fmt: skip
def test_wrong_files_are_a_sentence(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(fs.InputError, match=said) as caught:
        fs.load_robot(written(tmp_path, text))
    assert "robot.xml" in str(caught.value)


FRAMES = """<mujoco><default><default class="big"><geom size="0.2"/><joint damping="2"/></default>
<default class="small"><geom size="0.07" mass="3"/></default></default><worldbody>
<frame pos="0 0 1" euler="10 20 30"><frame pos="0.1 0 0" euler="0 0 40" childclass="big">
<body name="a" pos="0.3 0 0" euler="5 0 0">
 <joint name="first" pos="0.01 0.02 0" axis="1 2 3"/><geom/>
 <frame pos="0.2 0.1 0" xyaxes="0 1 0 -1 0 0" childclass="small"><geom pos="0.1 0 0"/>
  <geom class="big" type="capsule" size="0.05" fromto="0 0 0 0.1 0.2 0.3"/>
  <body name="b" pos="0 0.3 0"><frame euler="0 90 0" pos="0 0 0.1"><joint name="second" pos="0.05 0 0" axis="0 1 1"/></frame>
   <joint name="third" type="slide" axis="1 0 0"/><frame pos="0.05 0 0" euler="30 0 0">
    <inertial pos="0.1 0 0" mass="2" fullinertia="0.1 0.2 0.25 0.01 0.02 0.03"/></frame>
   <frame pos="1 0 0"><body name="c" zaxis="1 1 0"><joint name="last"/><geom type="box" size="0.1 0.2 0.3"/></body></frame>
  </body></frame></body></frame></frame></worldbody></mujoco>"""


def write_ell(folder: Path) -> None:
    """An L, 3 m wide and high and 1 m thick, and the same without one of its triangles."""
    import meshio

    outline = [(0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3)]
    points = np.array([(*corner, z) for z in (0.0, 1.0) for corner in outline])
    cap = [(0, k, k + 1) for k in range(1, 5)]
    sides = [one for k in range(6) for one in ((k, (k + 1) % 6, (k + 1) % 6 + 6), (k, (k + 1) % 6 + 6, k + 6))]
    triangles = np.array([(a, c, b) for a, b, c in cap] + [(a + 6, b + 6, c + 6) for a, b, c in cap] + sides)
    meshio.write(folder / "ell.stl", meshio.Mesh(points, [("triangle", triangles)]), binary=True)
    meshio.write(folder / "open.stl", meshio.Mesh(points, [("triangle", triangles[1:])]), binary=True)


DRAWN = 'contype="0" conaffinity="0"'
MESHES = f"""<mujoco><asset><mesh name="usual" file="ell.stl"/><mesh name="shell" file="ell.stl" inertia="shell"/>
<mesh name="exact" file="open.stl" inertia="exact" scale="1 -0.5 1"/><mesh name="convex" file="ell.stl" inertia="convex"/>
<mesh file="open.stl"/></asset><worldbody><body name="w"><geom type="mesh" mesh="usual"/><body name="x"><joint name="i"/>
 <geom type="mesh" mesh="exact" euler="10 20 30" pos="1 2 3"/><geom type="mesh" mesh="convex" {DRAWN} mass="3"/>
 <body name="y"><joint name="j" axis="1 0 0"/><geom type="mesh" mesh="shell" density="1"/>
  <body name="z"><joint name="k" axis="1 0 0" pos="1 0 0"/><geom type="mesh" mesh="open" density="1" {DRAWN}/></body>
</body></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("text", [FRAMES, MESHES], ids=["frames", "meshes"])
def test_frames_and_masses_of_meshes_are_those_of_mujoco(text: str, tmp_path: Path) -> None:
    """Files that MuJoCo saves keep their frames. Meshes of the usual kind weigh more than they enclose; MuJoCo keeps them in
    single precision."""
    mujoco = pytest.importorskip("mujoco")
    write_ell(tmp_path)
    model = mujoco.MjModel.from_xml_path(str(written(tmp_path, text)))
    data, robot = mujoco.MjData(model), fs.load_robot(tmp_path / "robot.xml")
    np.testing.assert_allclose(
        [link.mass for link in robot.links if link.mass > 0.0], [m for m in model.body_mass if m > 0.0], rtol=1e-7
    )
    scene = fs.Scene("frames")
    scene.add_robot(robot, name="arm", self_contact=False)
    body = scene.bodies[0]
    rng = np.random.default_rng(1)
    for _ in range(3):
        q = body.initial_q().copy()
        for k in range(model.njnt):
            q[body.joint(model.joint(k).name).coordinate] = data.qpos[k] = rng.uniform(-1.0, 1.0)  # type: ignore[attr-defined]
        mujoco.mj_forward(model, data)
        M, theirs = body.mass_matrix(q)[6:, 6:], np.zeros((model.nv, model.nv))  # type: ignore[attr-defined]
        mujoco.mj_fullM(model, data, theirs)
        np.testing.assert_allclose(M, theirs, rtol=0.0, atol=1e-7 * np.abs(theirs).max())


def test_masses_of_meshes_by_hand(tmp_path: Path) -> None:
    """The L encloses 5 m^3, its hull 7 of them; its surface is 22 m^2. What is drawn only needs no closed surface."""
    write_ell(tmp_path)
    robot = fs.load_robot(written(tmp_path, MESHES.replace('"usual" file="ell.stl"', '"usual" file="ell.stl" inertia="exact"')))
    masses = {link.name: link.mass for link in robot.links}
    assert masses["w"] == pytest.approx(5000.0) and masses["y"] == pytest.approx(22.0)
    z = next(link for link in robot.links if link.name == "z")
    assert len(z.shapes) == 0 and not any("'z'" in note for note in robot.notes)
    hull = MESHES.replace('mesh="usual"', 'mesh="convex"')
    assert fs.load_robot(written(tmp_path, hull)).links[0].mass == pytest.approx(7000.0)
    turned = MESHES.replace('file="ell.stl"/>', 'file="ell.stl" inertia="outer"/>', 1)
    with pytest.raises(
        fs.InputError, match="mesh 'usual' has inertia 'outer' in <mesh>; allowed are convex, exact, legacy, shell"
    ):
        fs.load_robot(written(tmp_path, turned))


def test_a_drawn_mesh_that_is_missing_is_noted_where_it_weighs_nothing(tmp_path: Path) -> None:
    inner = f'{INERTIA}<geom size="0.1"/><geom type="mesh" mesh="m" contype="0" conaffinity="0"/>'
    text = one_body(inner, '<asset><mesh name="m" file="no.stl"/></asset>')
    robot = fs.load_robot(written(tmp_path, text))
    assert "geom 2 of body 'a', which is drawn only, is left out: mesh 'm' has the file" in "\n".join(robot.notes)
    assert len(robot.links[0].shapes) == 1 and not robot.links[0].visuals
    with pytest.raises(fs.InputError, match="which is not there"):
        fs.load_robot(written(tmp_path, text.replace(INERTIA, "")))


@pytest.mark.parametrize("head", ["", "<compiler balanceinertia='true'/>"])
def test_an_inertia_that_no_body_has_is_balanced_where_that_is_asked_for(head: str, tmp_path: Path) -> None:
    """The message gave the advice for MJCF, too, where nothing followed it; MuJoCo's own option was read past."""
    file = written(tmp_path, one_body('<inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.05"/>', head))
    if not head:
        with pytest.raises(fs.InputError, match=r"which no body has: .* balance_inertia=True"):
            fs.load_robot(file)
    robot = fs.load_robot(file, balance_inertia=not head)
    np.testing.assert_allclose(robot.links[0].inertia, 0.07 / 3.0 * np.eye(3))
    assert "is replaced by that of a ball" in robot.notes[0]


def test_a_range_from_0_to_0_is_none(tmp_path: Path) -> None:
    """As MuJoCo has it, and as it is read from URDF; where the joint says that it is limited, it is wrong there, too."""
    inner = '<geom size="0.1"/><body name="b"><joint name="j" range="0 0"/><geom size="0.1"/></body>'
    robot = fs.load_robot(written(tmp_path, one_body(inner)))
    assert robot.joints[0].limits == (-math.inf, math.inf)
    assert robot.notes == ["robot.xml: the range of joint 'j' is 0 to 0, which is none: the joint has no stops"]
    with pytest.raises(fs.InputError, match="the lower one must be below"):
        fs.load_robot(written(tmp_path, one_body(inner.replace("range", 'limited="true" range'))))


REFS = f"""<mujoco><compiler settotalmass="5"/><worldbody>
<body name="a" pos="0 0 0.1" euler="0 20 0">{INERTIA}
 <body name="b" pos="0.2 0 0" euler="0 0 30"><joint name="turn" axis="1 2 0" ref="40" range="-60 100" limited="true"/>
  <joint name="slide" type="slide" axis="0 3 1" ref="0.15"/><joint name="last" ref="-25" axis="0 0 1"/>{INERTIA}
  <body name="c" pos="0 0.1 0"><joint name="along" axis="0 1 0" ref="15"/><geom type="box" size="0.1 0.02 0.03"/></body>
  <body name="d" pos="0 0.2 0"><joint name="ball" type="ball" ref="30"/><geom size="0.05"/></body></body></body></worldbody>
<equality><joint joint1="along" joint2="last" polycoef="0.1 -0.7 0 0 0"/></equality></mujoco>"""


def test_ref_and_settotalmass_are_those_of_mujoco(tmp_path: Path) -> None:
    """Poses of bodies, mass matrix without that of the mimic, ranges, and what an equality asks for."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(REFS)
    data, robot = mujoco.MjData(model), fs.load_robot(written(tmp_path, REFS))
    assert "start there by joints={'turn': 0.698132, 'slide': 0.15, 'last': -0.436332, 'along': 0.261799}" in robot.notes[-1]
    assert robot.mass == pytest.approx(5.0, rel=1e-14) == model.body_mass.sum()
    (turn,) = (joint for joint in robot.joints if joint.name == "turn")
    assert turn.limits == pytest.approx(model.jnt_range[0], rel=1e-12)
    rng, fixed = np.random.default_rng(3), Rotation.from_euler("y", math.radians(20))
    for k in range(4):
        q = rng.uniform(-0.5, 0.9, 3)
        drawn = np.array([math.radians(40), 0.15, math.radians(-25)])
        q = drawn if k == 0 else q
        at = dict(zip(("turn", "slide", "last"), q.tolist(), strict=True))
        follows = math.radians(15) + 0.1 - 0.7 * (q[2] - math.radians(-25))
        data.qpos[:] = [*q, follows, 1.0, 0.0, 0.0, 0.0]
        mujoco.mj_forward(model, data)
        assert np.abs(data.efc_pos[data.efc_type == 0]).max() < 1e-12
        M, ratio = np.zeros((model.nv, model.nv)), np.zeros((model.nv, 6))
        mujoco.mj_fullM(model, data, M)
        ratio[[0, 1, 2, 4, 5, 6], range(6)], ratio[3, 2] = 1.0, -0.7
        ours = robot.body("r", np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), at, {})
        np.testing.assert_allclose(ours.mass_matrix(ours.initial_q())[6:, 6:], ratio.T @ M @ ratio, atol=1e-12)
        for link, body in (("c", 3), ("d", 4)):
            place, turned = robot.pose(link, at)
            np.testing.assert_allclose(fixed.apply(place) + np.array([0, 0, 0.1]), data.xpos[body], atol=1e-12)
            whole = (fixed * Rotation.from_rotvec(turned)).as_matrix()
            np.testing.assert_allclose(whole, data.xmat[body].reshape(3, 3), atol=1e-12)
