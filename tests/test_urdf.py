"""Robots from URDF files: what is read, and one sentence for each thing that is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import Call

import femsim as fs
from contact import Box, Cylinder, Mesh, Sphere, sdf_grid
from contact.sdf_grid import begin_grid
from femsim.model import robot_files
from meshes import load_surface, make_trimesh
from meshes.generate import box_triangles

HERE = Path(__file__).resolve().parent
XACRO = "http://www.ros.org/wiki/xacro"
CRANE = (HERE / "crane.urdf").read_text(encoding="utf-8")


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "crane.urdf"
    path.write_text(text, encoding="utf-8")
    surface = box_triangles(np.array([0.02, 0.02, 0.04]))
    lines = ["solid hook"]
    for triangle in surface.triangles:
        lines += ["facet normal 0 0 0", "outer loop"]
        lines += [f"vertex {x} {y} {z}" for x, y, z in surface.points[triangle]] + ["endloop", "endfacet"]
    (tmp_path / "meshes").mkdir(exist_ok=True)
    (tmp_path / "meshes" / "hook.stl").write_text("\n".join([*lines, "endsolid hook"]), encoding="utf-8")
    return path


def test_links_joints_and_shapes_are_read(tmp_path: Path) -> None:
    robot = fs.load_robot(written(tmp_path, CRANE))
    assert (robot.name, robot.root) == ("crane", "base") and robot.joint_names() == ["slew", "luff", "trolley"]
    assert robot.mass == pytest.approx(5.0 + 2.0 + 1.5 + 0.4 + 0.2)
    links = {link.name: link for link in robot.links}
    joints = {joint.name: joint for joint in robot.joints}
    assert [type(piece.shape) for name in ("base", "mast", "jib", "hook") for piece in links[name].shapes] == [
        Cylinder, Box, Box, Sphere, Mesh
    ]  # fmt: skip
    # a box of 0.04 x 0.04 x 0.4 m turned by 90 degrees about y: half extents stay, its inertia is turned into the link
    box = links["jib"].shapes[0]
    np.testing.assert_allclose(box.shape.half_extents, (0.02, 0.02, 0.2))
    np.testing.assert_allclose(box.pose[0] @ [0, 0, 1], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(links["jib"].centre, (0.2, 0, 0))
    np.testing.assert_allclose(np.asarray(links["jib"].inertia), np.diag([4e-4, 0.0201, 0.0202]), atol=1e-12)
    assert joints["slew"].kind == "continuous" and joints["slew"].damping == 0.3
    assert joints["luff"].limits == (-0.2, 1.2) and joints["luff"].max_effort == 50.0 and joints["luff"].max_speed == 0.5
    assert joints["trolley"].kind == "prismatic" and joints["counter"].mimic == ("trolley", -0.5, 0.1)
    np.testing.assert_allclose(joints["luff"].rotation, (0, 0, math.pi / 2), atol=1e-12)
    # the mesh is that of the file, in millimetres there
    np.testing.assert_allclose(np.ptp(links["hook"].shapes[0].shape.points, axis=0), (0.01, 0.01, 0.02), atol=1e-9)
    boundless = "crane.urdf: effort or velocity 0 in <limit> is taken for no bound, of trolley"
    assert robot.notes == ["crane.urdf: <transmission> of the robot is not read", boundless]
    assert joints["slew"].friction > 0.0


def test_the_pose_is_that_of_products_by_hand(tmp_path: Path) -> None:
    """Slewed by 90 degrees and luffed by 30 (about -y of a joint turned by 90 degrees about z), the trolley out by 0.1 m."""
    scene = fs.Scene("crane", dt=0.01)
    scene.add_robot(
        written(tmp_path, CRANE), position=(1, 0, 0), joints={"slew": math.pi / 2, "luff": math.pi / 6, "trolley": 0.1}
    )
    body = scene.bodies[0]
    jib = body.link_pose(body.initial_q(), body.joint_link("luff"))[0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(jib @ [1, 0, 0], [-math.cos(math.pi / 6), 0, 0.5], atol=1e-12)
    hook = body.link_pose(body.initial_q(), body.joint_link("trolley"))[1]
    np.testing.assert_allclose(hook, [1 - 0.4 * math.cos(math.pi / 6), 0, 0.3 + 0.4 * 0.5], atol=1e-12)
    # what mimics the trolley sits at -0.5 * 0.1 + 0.1 along the jib
    counter = body.link_pose(body.initial_q(), body.joint_link("counter"))[1]
    np.testing.assert_allclose(counter, [1 - 0.05 * math.cos(math.pi / 6), 0, 0.3 + 0.05 * 0.5], atol=1e-12)


def changed(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changed('iyy="0.0201"', 'iyy="0.5"'), "link 'jib' has principal moments of inertia .*, which no body has"),
        (changed('ixx="0.0202"', 'ixx="-0.1"'), "link 'jib' has principal moments"),
        (changed('<mass value="1.5"/>', '<mass value="-1"/>'), "link 'jib' has mass -1.0 kg; allowed are numbers from 0"),
        (changed('<mass value="1.5"/>', '<mass value="2e9"/>'), "has value '2e9' in <mass>; allowed are numbers up to 1e.09"),
        (changed('<mass value="1.5"/>', ""), "link 'jib' has an <inertial> without <mass> or <inertia>; give both"),
        (changed("hook.stl", "hok.stl"), "'hook' has the mesh 'meshes/hok.stl', which is not found; put it beside"),
        (changed("meshes/hook.stl", "a" * 5000 + ".stl"), "which is not found; put it beside the robot, or correct its name"),
        (changed("meshes/hook.stl", "package://yard/hook.stl"), r"not found; give load_robot\(..., packages={...}\) its folder"),
        (changed('<parent link="mast"/>', '<parent link="hook"/>'), "part of a cycle of joints; a tree has none"),
        (changed('<child link="jib"/>', '<child link="mast"/>'), "link 'mast' is the child of joints 'slew' and 'luff'; a tree"),
        (changed('type="continuous"', 'type="screw"'), "joint 'slew' has type 'screw'; allowed are fixed, revolute"),
        (changed('<parent link="mast"/>', '<parent link="mats"/>'), "the parent 'mats', which is no link; did you mean"),
        (changed('damping="0.3"', 'dampping="0.3"'), "joint 'slew' has 'dampping' in <dynamics>, which is unknown; did you mean"),
        (changed("multiplier", "multiplyer"), "has 'multiplyer' in <mimic>, which is unknown; did you mean 'multiplier'"),
        (changed('joint="trolley"', 'joint="troley"'), "joint 'counter' mimics 'troley', which is no joint; did you mean"),
        (changed('lower="-0.2"', 'lower="1.2"'), "joint 'luff' has lower and upper 1.2 in <limit>; give it the type fixed"),
        (changed('lower="-0.2"', 'lower="2"'), r"joint 'luff' has limits \(2.0, 1.2\); the lower one must be below"),
        (changed('<limit lower="-0.2" upper="1.2" effort="50" velocity="0.5"/>', ""), "'luff' is revolute and has no <limit>"),
        (changed('axis xyz="0 -1 0"', 'axis xyz="0 0 0"'), r"joint 'luff' has axis \[0.0, 0.0, 0.0\]; allowed are three numbers"),
        (changed('axis xyz="0 -1 0"', 'axis xyz="0 one 0"'), "'luff' has xyz '0 one 0' in <axis>; allowed are 3 finite"),
        (changed('radius="0.1"', 'radius="-0.1"'), "link 'base' has a <cylinder> with wrong sizes: .*radius"),
        (changed("<sphere ", "<spehre "), "link 'jib' has the shape <spehre>; did you mean 'sphere'"),
        (changed("<collision>", "<colision>"), None),
        (changed('name="crane">', f'name="crane" xmlns:xacro="{XACRO}"><xacro:macro/>'), "turn it into URDF first"),
        (changed("<robot ", "<model "), "it is no XML"),
        (lambda text: "<mujocoinclude/>", "is <mujocoinclude>, a part of a model; give the MJCF file that includes it"),
        (lambda text: "<sdf/>", "its root element is <sdf>; a URDF file has <robot>"),
        (lambda text: "<robot name='none'/>", "it has no link; give at least one"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_file_and_element(change: Callable[[str], str], words: str | None, tmp_path: Path) -> None:
    text = change(CRANE)
    if words is None:
        text, words = text.replace("</collision>", "</colision>", 1), "has an element <colision>; did you mean 'collision'"
    with pytest.raises(fs.InputError, match=words) as error:
        fs.load_robot(written(tmp_path, text))
    assert str(tmp_path / "crane.urdf") in str(error.value)


def test_what_is_drawn_only_may_be_missing_or_have_no_size(tmp_path: Path) -> None:
    """Labs bring files without their meshes, and frames are marked by boxes of no size; such a file was refused."""
    drawn = '<visual><geometry><mesh filename="package://yard/jib.stl"/></geometry></visual>'
    none = '<visual><geometry><box size="0 0.0 0"/></geometry></visual>'
    text = changed('<link name="jib">', f'<link name="jib">{drawn}{none}')(CRANE)
    robot = fs.load_robot(written(tmp_path, text))
    assert [note.partition(": ")[2] for note in robot.notes if "visual" in note] == [
        "a visual mesh of link 'jib' is left out: 'package://yard/jib.stl' is not found; give load_robot(..., packages={...}) "
        "its folder, or correct its name",
        "a visual <box> of link 'jib', which has no size, is left out",
    ]
    jib = next(link for link in robot.links if link.name == "jib")
    assert not jib.visuals and len(jib.shapes) == 2
    with pytest.raises(fs.InputError, match="link 'jib' has a <box> with wrong sizes"):
        fs.load_robot(written(tmp_path, changed('size="0.04 0.04 0.4"', 'size="0 0 0"')(CRANE)))


def test_xml_is_read_as_other_readers_do(tmp_path: Path) -> None:
    """Empty lines before the declaration, a mark of the encoding, and prefixes of another program that nothing declares."""
    text = changed("<dynamics ", '<dynamics drake:slip="1" ')(CRANE).replace(
        "</robot>", "<drake:group><drake:one/></drake:group></robot>"
    )
    declared = changed("<robot ", f'<robot xmlns:xacro="{XACRO}" ')(text)
    plain = fs.load_robot(written(tmp_path, CRANE))
    for one in (f"\n \n{CRANE}", f"\ufeff{CRANE}", text, declared):
        robot = fs.load_robot(written(tmp_path, one))
        assert [link.name for link in robot.links] == [link.name for link in plain.links] and robot.mass == plain.mass
    assert {"crane.urdf: <drake:group> of the robot is not read", "crane.urdf: 'drake:slip' in <dynamics> is not read"} <= set(
        robot.notes
    )
    for wrong, words in (("<drake:group>", "no XML"), ("<xacro:macro/>", "turn it into URDF first")):
        with pytest.raises(fs.InputError, match=words):
            fs.load_robot(written(tmp_path, CRANE.replace("</robot>", f"{wrong}</robot>")))


def test_limits_of_a_continuous_joint_are_left_out_with_a_note(tmp_path: Path) -> None:
    """As other readers leave them out; its speed stays."""
    head, slew = CRANE.split('<joint name="slew"')
    limited = slew.replace("</joint>", '<limit lower="-1" upper="1" effort="3" velocity="2"/></joint>', 1)
    robot = fs.load_robot(written(tmp_path, f'{head}<joint name="slew"{limited}'))
    joint = next(joint for joint in robot.joints if joint.name == "slew")
    assert joint.limits == (-math.inf, math.inf) and joint.max_speed == 2.0
    assert any("lower and upper of joint 'slew' are left out; a continuous joint has no stops" in note for note in robot.notes)


def test_a_missing_file_names_those_that_come_with_femsim() -> None:
    with pytest.raises(fs.InputError, match=r"'arm8.urdf' is found neither here nor with femsim; did you mean 'arm7.urdf'"):
        fs.load_robot("arm8.urdf")


def test_packages_are_found_above_the_file_or_where_they_are_said_to_be(tmp_path: Path) -> None:
    text = CRANE.replace("meshes/hook.stl", "package://yard/meshes/hook.stl")
    inside = tmp_path / "yard" / "urdf"
    inside.mkdir(parents=True)
    path = written(inside, text)
    (inside / "meshes").rename(tmp_path / "yard" / "meshes")
    assert fs.load_robot(path).mass > 9.0
    elsewhere = written(tmp_path, text)
    assert fs.load_robot(elsewhere, packages={"yard": tmp_path}).mass > 9.0
    nowhere = written(tmp_path, text.replace("yard", "dock"))
    with pytest.raises(fs.InputError, match=r"not found; packages has 'yard'; give the folder of 'dock'"):
        fs.load_robot(nowhere, packages={"yard": tmp_path})
    with pytest.raises(fs.InputError, match=r"packages says '.*yard' for 'dock', which has no 'meshes/hok.stl'; give its folder"):
        fs.load_robot(
            written(tmp_path, text.replace("yard/meshes/hook", "dock/meshes/hok")), packages={"dock": tmp_path / "yard"}
        )
    with pytest.raises(fs.InputError, match=r"packages is \['dock'\]; give folders by names of packages"):
        fs.load_robot(nowhere, packages=["dock"])  # type: ignore[arg-type]


def test_an_open_collision_mesh_becomes_its_hull(tmp_path: Path) -> None:
    path = written(tmp_path, CRANE)
    file = tmp_path / "meshes" / "hook.stl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:1] + lines[8:]))  # without its first triangle
    robot = fs.load_robot(path)
    assert any("is not closed; its convex hull is taken" in note for note in robot.notes)
    (hook,) = (link for link in robot.links if link.name == "hook")
    np.testing.assert_allclose(np.ptp(hook.shapes[0].shape.points, axis=0), (0.01, 0.01, 0.02), atol=1e-9)


def test_equal_collision_meshes_are_one_shape_but_each_open_one_is_noted(tmp_path: Path) -> None:
    text = CRANE
    hook = text[text.index("<collision>", text.index('<link name="hook"')) :]
    hook = hook[: hook.index("</collision>") + len("</collision>")]
    path = written(
        tmp_path,
        text.replace(
            "</robot>",
            f'<link name="spare"><inertial><mass value="1"/><inertia ixx="1" iyy="1" '
            f'izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{hook}{hook}</link><joint name="rack" type="fixed">'
            '<parent link="hook"/><child link="spare"/></joint></robot>',
        ),
    )
    for is_open in (False, True):
        robot = fs.load_robot(path)
        shapes = {link.name: [piece.shape for piece in link.shapes] for link in robot.links}
        assert isinstance(shapes["hook"][0], Mesh) and shapes["spare"] == 2 * shapes["hook"]
        assert sum("is not closed" in note for note in robot.notes) == 2 * is_open
        file = tmp_path / "meshes" / "hook.stl"
        lines = file.read_text().splitlines()
        file.write_text("\n".join([lines[0], *lines[8:]]))  # without its first facet


def test_a_mesh_file_is_read_once_and_has_no_grid_before_something_is_near(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five links that draw and touch with one file, in two scales: reading it for each, and grids, took most of a start."""
    read, made = [], []
    monkeypatch.setattr(robot_files, "load_surface", lambda path: read.append(path) or load_surface(path))
    monkeypatch.setattr(sdf_grid, "begin_grid", lambda *a, **named: made.append(named["name"]) or begin_grid(*a, **named))
    written(tmp_path, CRANE)
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    links, joints = "", ""
    for k in range(5):
        mesh = f'<geometry><mesh filename="meshes/hook.stl" scale="1 1 {1 + k % 2}"/></geometry>'
        links += f'<link name="l{k}">{inertia}<visual>{mesh}</visual><collision>{mesh}</collision></link>'
        if k:
            ends = f'<parent link="l{k - 1}"/><child link="l{k}"/><origin xyz="0.1 0 0"/>'
            joints += f'<joint name="j{k}" type="continuous">{ends}</joint>'
    path = tmp_path / "chain.urdf"
    path.write_text(f'<robot name="chain">{links}{joints}</robot>')
    scene = fs.Scene("chain", dt=1e-3)
    scene.add_robot(path)
    assert [file.name for file in read] == ["hook.stl"] and made == []
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1, position=(0.2, 0.0, 0.0301))
    simulation = fs.Simulation(scene)
    assert simulation.step(20).converged and made == ["hook"]


def test_describe_shows_tree_limits_and_masses(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    status, text, _ = call("describe", "arm7.urdf")
    assert status == 0
    for words in ("robot 'arm7', 12.66 kg, 8 joints", "joint2", "-2 to 2 rad", "mimics left_jaw", "80 N", "0.5 N m s/rad"):
        assert words in text, words


def test_describe_replaces_inertia_that_no_body_has_where_asked_for(call: Call, tmp_path: Path) -> None:
    path = written(tmp_path, CRANE.replace('iyy="0.0201"', 'iyy="0.5"'))
    status, _, wrong = call("describe", str(path))
    assert status == 2 and "balance_inertia=True" in wrong
    status, text, _ = call("describe", str(path), "--balance-inertia")
    assert status == 0 and "is replaced by that of a ball" in " ".join(text.split())
    status, _, wrong = call("describe", "scenes/squeezed_ball.py", "--balance-inertia")
    assert status == 2 and "--balance-inertia is for robots" in wrong


def test_odd_attributes_and_degrees_are_noted(tmp_path: Path) -> None:
    text = CRANE.replace('lower="-0.2" upper="1.2"', 'lower="-90" upper="90" jerk="5"')
    plain = fs.load_robot(written(tmp_path, CRANE)).notes
    assert [note for note in fs.load_robot(written(tmp_path, text)).notes if note not in plain] == [
        "crane.urdf: 'jerk' in <limit> is not read",
        "crane.urdf: the range of joint 'luff' is -90 to 90 rad; are these degrees?",
    ]


@pytest.mark.parametrize("first", [0, 1])
def test_an_open_collision_mesh_without_a_hull_is_refused(first: int, tmp_path: Path) -> None:
    """A triangle alone, and a square that is flat."""
    path = written(tmp_path, CRANE)
    corners = ["0 0 0", "0.1 0 0", "0 0.1 0", "0.1 0.1 0"]
    faces = [(0, 1, 2), (1, 3, 2)][: first + 1]
    text = "".join(
        "facet normal 0 0 1\nouter loop\n" + "".join(f"vertex {corners[k]}\n" for k in face) + "endloop\nendfacet\n"
        for face in faces
    )
    (tmp_path / "meshes" / "hook.stl").write_text(f"solid a\n{text}endsolid a\n")
    with pytest.raises(fs.InputError, match="neither closed nor has it a hull of any volume"):
        fs.load_robot(path)


def test_files_of_the_wild_are_read_with_a_note(tmp_path: Path) -> None:
    """What robots of others have and other programs bear: none of it changes what a robot does."""
    text = CRANE.replace('<origin xyz="0.4 0 0"/>\n  </joint>', '<origin xyz="0.4 0 0"/><axis xyz="0 0 0"/>\n  </joint>')
    text = text.replace('lower="-0.2" upper="1.2" ', "").replace(
        '<link name="tip"/>', '<link name="tip"><collision_checking/></link>'
    )
    text = text.replace('scale="0.5 0.5 0.5"', 'scale="0.5 -0.5 0.5"')
    robot = fs.load_robot(written(tmp_path, text))
    assert "crane.urdf: the <limit> of joint 'luff' has no lower and no upper: the joint has no stops" in robot.notes
    assert "crane.urdf: <collision_checking> of link 'tip' is not read" in robot.notes
    assert next(joint for joint in robot.joints if joint.name == "luff").limits == (-math.inf, math.inf)
    (hook,) = next(link for link in robot.links if link.name == "hook").shapes
    surface = make_trimesh(hook.shape.points, hook.shape.triangles, name="hook", source="")
    assert surface.signed_volume == pytest.approx(2e-6)  # outside is outside in a mirror too


def test_a_range_from_zero_to_zero_is_none(tmp_path: Path) -> None:
    """Pendulums of an open collection have it, and swing; the format says 0 where nothing is said."""
    text = CRANE.replace('lower="-0.2" upper="1.2" effort="50"', 'lower="0" upper="0.0" effort="50"')
    robot = fs.load_robot(written(tmp_path, text))
    luff = next(joint for joint in robot.joints if joint.name == "luff")
    assert luff.limits == (-math.inf, math.inf) and luff.max_effort == 50.0
    said = "crane.urdf: lower and upper of joint 'luff' are both 0, which is taken for no range: the joint has no stops; give it"
    assert [note.startswith(said) for note in robot.notes].count(True) == 1
    scene = fs.Scene("crane", dt=0.01, duration=0.1)
    scene.add_robot(robot)
    assert any(said in note for note in fs.simulate(scene).notes)
    robot = fs.load_robot(written(tmp_path, text.replace('lower="0"', "")))  # one of them is enough
    assert next(joint for joint in robot.joints if joint.name == "luff").limits == (-math.inf, math.inf)


def test_an_effort_of_zero_is_no_bound_and_said(tmp_path: Path) -> None:
    """Other programs take it for a motor that does nothing."""
    robot = fs.load_robot(written(tmp_path, CRANE.replace('effort="50"', 'effort="0"')))
    assert next(joint for joint in robot.joints if joint.name == "luff").max_effort == math.inf
    assert "crane.urdf: effort or velocity 0 in <limit> is taken for no bound, of luff, trolley" in robot.notes


def test_a_fixed_joint_mimics_none(tmp_path: Path) -> None:
    """A hand of an open collection whose joints were made fixed was refused."""
    head, counter = CRANE.split('<joint name="counter" type="prismatic"')
    robot = fs.load_robot(written(tmp_path, f'{head}<joint name="counter" type="fixed"{counter}'))
    joint = next(joint for joint in robot.joints if joint.name == "counter")
    assert joint.kind == "fixed" and joint.mimic is None
    assert "crane.urdf: <mimic> of joint 'counter' is left out; a fixed joint does not move" in robot.notes


def test_a_mimic_that_leaves_no_range_has_none(tmp_path: Path) -> None:
    """As a factor with the wrong sign does: such a robot was read, described, and refused by a scene."""
    path = written(tmp_path, CRANE.replace('multiplier="-0.5" offset="0.1"', 'multiplier="-0.5" offset="-0.4"'))
    robot = fs.load_robot(path)
    joints = {joint.name: joint for joint in robot.joints}
    trolley, counter = joints["trolley"], joints["counter"]
    assert counter.limits == (-math.inf, math.inf) and trolley.limits == (-0.2, 0.15)
    said = "crane.urdf: the range of joint 'counter' is left out; it mimics 'trolley', and leaves that no range to move in"
    assert said in robot.notes
    scene = fs.Scene("crane")
    scene.add_robot(robot, joints={"trolley": 0.1})
    own = [replace(joint, limits=(5.0, 6.0)) if joint.name == "counter" else joint for joint in robot.joints]
    with pytest.raises(
        fs.InputError, match="joint 'trolley' has no range in which 'counter', which mimics it, keeps to its limits"
    ):
        fs.Scene("own").add_robot(fs.Robot("own", robot.links, own))


def test_a_bound_of_any_size_is_none_in_effect(tmp_path: Path) -> None:
    robot = fs.load_robot(written(tmp_path, CRANE.replace('upper="1.2" effort="50"', 'upper="1e16" effort="1e300"')))
    assert next(joint for joint in robot.joints if joint.name == "luff").limits == (-0.2, 1e16)


def test_inertia_that_no_body_has_is_balanced_where_asked_for(tmp_path: Path) -> None:
    text = CRANE.replace('iyy="0.0201"', 'iyy="0.5"').replace('<mass value="0.2"/>', '<mass value="0"/>')
    path = written(tmp_path, text)
    with pytest.raises(fs.InputError, match=r"jib.*balance_inertia=True"):
        fs.load_robot(path)
    robot = fs.load_robot(path, balance_inertia=True)
    links = {link.name: link for link in robot.links}
    np.testing.assert_allclose(links["jib"].inertia, (0.0202 + 0.5 + 0.0004) / 3.0 * np.eye(3))
    assert not np.asarray(links["weight"].inertia).any() and len(robot.notes) == 4


COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit meter="0.01" name="centimeter"/><up_axis>Z_UP</up_axis></asset>
  <library_geometries><geometry id="g" name="g"><mesh>
    <source id="p"><float_array id="a" count="12">0 0 0 3 0 0 0 3 0 0 0 3</float_array>
      <technique_common><accessor source="#a" count="4" stride="3">
        <param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
      </accessor></technique_common></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    <triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="s"><node id="n"><translate>0 0 10</translate><scale>2 2 2</scale>
    <instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#s"/></scene>
</COLLADA>
"""


def test_meshes_of_collada_are_in_metres_and_where_their_scene_places_them(tmp_path: Path) -> None:
    pytest.importorskip("collada", reason="the extra mesh is not installed")
    path = written(tmp_path, CRANE.replace("hook.stl", "hook.dae"))
    (tmp_path / "meshes" / "hook.dae").write_text(COLLADA)
    (hook,) = next(link for link in fs.load_robot(path).links if link.name == "hook").shapes
    np.testing.assert_allclose(hook.shape.points.max(axis=0), (0.03, 0.03, 0.08))  # 0.01 m, twice, and half by the file
    np.testing.assert_allclose(hook.shape.points.min(axis=0), (0.0, 0.0, 0.05))
    (tmp_path / "meshes" / "hook.dae").write_text('<!DOCTYPE x [<!ENTITY a "aaaa">]>' + COLLADA)
    with pytest.raises(fs.InputError, match="it defines entities"):
        fs.load_robot(path)
    (tmp_path / "meshes" / "hook.dae").write_text(COLLADA[: len(COLLADA) // 2])
    with pytest.raises(fs.InputError, match=r"link 'hook' has a collision mesh that cannot be read: .*hook\.dae"):
        fs.load_robot(path)


def test_obj_meshes_whose_textures_have_corners_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("trimesh", reason="the extra mesh is not installed")
    path = written(tmp_path, CRANE.replace("hook.stl", "hook.obj"))
    surface = box_triangles(np.array([0.02, 0.02, 0.04]))
    lines = [f"v {x} {y} {z}" for x, y, z in surface.points] + [f"vt 0.{k} 0.5" for k in range(11)]
    lines += [
        "f " + " ".join(f"{corner + 1}/{(3 * k + i) % 11 + 1}" for i, corner in enumerate(t))
        for k, t in enumerate(surface.triangles)
    ]
    (tmp_path / "meshes" / "hook.obj").write_text("mtllib none.mtl\n" + "\n".join(lines))
    (hook,) = next(link for link in fs.load_robot(path).links if link.name == "hook").shapes
    np.testing.assert_allclose(np.ptp(hook.shape.points, axis=0), (0.01, 0.01, 0.02), atol=1e-9)
    assert len(hook.shape.points) == len(surface.points)
