"""MJCF: meshes whose numbers are in the text or in a .msh file, and ellipsoids, beside MuJoCo and by hand."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import Box, Mesh, Sphere
from meshes import make_trimesh, solid_mass_properties, sphere_triangles

#: An L, 3 m wide and high and 1 m thick.
OUTLINE = [(0, 0), (3, 0), (3, 1), (1, 1), (1, 3), (0, 3)]
POINTS = np.array([(*corner, z) for z in (0.0, 1.0) for corner in OUTLINE])
CAP = [(0, k, k + 1) for k in range(1, 5)]
SIDES = [one for k in range(6) for one in ((k, (k + 1) % 6, (k + 1) % 6 + 6), (k, (k + 1) % 6 + 6, k + 6))]
TRIANGLES = np.array([(a, c, b) for a, b, c in CAP] + [(a + 6, b + 6, c + 6) for a, b, c in CAP] + SIDES)


def words(numbers: np.ndarray) -> str:
    return " ".join(f"{one:g}" for one in numbers.ravel())


VERTEX, FACE = f'vertex="{words(POINTS)}"', f'face="{words(TRIANGLES)}"'
#: The same with points of their own for each triangle, as exporters write it.
SOUP = f'vertex="{words(POINTS[TRIANGLES])}" face="{words(np.arange(60))}"'


def write_msh(file: Path, points: np.ndarray, triangles: np.ndarray) -> None:
    """Points, as many normals, texture coordinates, triangles: by the numbers of each in front."""
    counts = np.array([len(points), len(points), len(points), len(triangles)], dtype="<i4")
    tables = points, np.ones((len(points), 3)), np.zeros((len(points), 2))
    file.write_bytes(
        b"".join([counts.tobytes(), *(t.astype("<f4").tobytes() for t in tables), triangles.astype("<i4").tobytes()])
    )


def one(assets: str, geom: str, more: str = "") -> str:
    """A base with a geom, and a second body that turns about y."""
    return f"""<mujoco><asset>{assets}</asset><worldbody><body name="a">{geom}{more}
    <body name="b"><joint name="j" axis="0 1 0"/><geom size="0.1" mass="1"/></body></body></worldbody></mujoco>"""


def read(folder: Path, text: str) -> fs.Robot:
    (folder / "robot.xml").write_text(text)
    return fs.load_robot(folder / "robot.xml")


def same_body(folder: Path, text: str, rtol: float) -> fs.Robot:
    """Mass, centre and inertia of the base beside MuJoCo's."""
    mujoco = pytest.importorskip("mujoco")
    robot = read(folder, text)
    model = mujoco.MjModel.from_xml_path(str(folder / "robot.xml"))
    base = robot.links[0]
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, model.body_iquat[1])
    R = turn.reshape(3, 3)
    inertia = R @ np.diag(model.body_inertia[1]) @ R.T
    size = float(np.cbrt(base.mass / 1000.0))
    assert base.mass == pytest.approx(model.body_mass[1], rel=rtol)
    np.testing.assert_allclose(base.centre, model.body_ipos[1], rtol=0.0, atol=rtol * size)
    np.testing.assert_allclose(base.inertia, inertia, rtol=0.0, atol=rtol * np.abs(inertia).max())
    return robot


@pytest.mark.parametrize(
    "asset",
    [
        f'<mesh name="m" {VERTEX} {FACE}/>',
        f'<mesh name="m" {SOUP} inertia="exact"/>',
        f'<mesh name="m" {VERTEX}/>',
        f'<mesh name="m" {VERTEX} {FACE} inertia="exact" scale="0.1 -0.2 0.3" refpos="1 2 3" refquat="0.5 0.1 0.3 0.2"/>',
    ],
    ids=["faces", "soup", "hull", "moved"],
)
def test_meshes_from_numbers_weigh_what_mujoco_says(asset: str, tmp_path: Path) -> None:
    geom = '<geom type="mesh" mesh="m" pos="0.1 0.2 0.3" euler="10 20 30"/>'
    robot = same_body(tmp_path, one(asset, geom), 2e-6)
    (piece,) = robot.links[0].shapes
    assert isinstance(piece.shape, Mesh) and robot.notes == []


def test_meshes_from_numbers_by_hand(tmp_path: Path) -> None:
    """The L encloses 5 m^3, its hull 7; equal points are one, so that the surface is closed."""
    exact = read(tmp_path, one(f'<mesh name="m" {SOUP} inertia="exact"/>', '<geom type="mesh" mesh="m" density="1"/>'))
    assert exact.links[0].mass == pytest.approx(5.0, rel=1e-14)
    assert len(exact.links[0].shapes[0].shape.points) == 12
    whole = read(tmp_path, one(f'<mesh name="m" {VERTEX}/>', '<geom type="mesh" mesh="m" density="1"/>'))
    assert whole.links[0].mass == pytest.approx(7.0, rel=1e-14)


def test_a_mesh_of_several_geoms_is_one_shape(tmp_path: Path) -> None:
    """Its grid of distances, which takes most of the time, is then computed once."""
    robot = read(tmp_path, one(f'<mesh name="m" {VERTEX} {FACE}/>', '<geom type="mesh" mesh="m"/>' * 2))
    first, second = robot.links[0].shapes
    assert first.shape is second.shape


def test_msh_files_of_mujoco(tmp_path: Path) -> None:
    write_msh(tmp_path / "ell.msh", POINTS, TRIANGLES)
    write_msh(tmp_path / "points.msh", POINTS, TRIANGLES[:0])
    geom = '<geom type="mesh" mesh="ell" density="1"/>'
    assert read(tmp_path, one('<mesh file="ell.msh" inertia="exact"/>', geom)).links[0].mass == pytest.approx(5.0, rel=1e-14)
    hull = one('<mesh name="ell" file="points.msh"/>', geom)
    assert read(tmp_path, hull).links[0].mass == pytest.approx(7.0, rel=1e-14)
    same_body(tmp_path, one('<mesh file="ell.msh" scale="1 2 0.5"/>', geom), 2e-6)
    whole = (tmp_path / "ell.msh").read_bytes()
    for wrong in (whole[:-1], whole + b"0", whole[:7], b"", b"$MeshFormat 4.1 0 8", np.array([-1] * 4, dtype="<i4").tobytes()):
        (tmp_path / "ell.msh").write_bytes(wrong)
        with pytest.raises(fs.InputError, match=r"ell\.msh, which cannot be read: its size is not that of a"):
            read(tmp_path, one('<mesh file="ell.msh"/>', geom))


@pytest.mark.parametrize(
    "asset, said",
    [
        (f'<mesh name="m" {VERTEX} file="a.stl"/>', "mesh 'm' has both file and vertex or none of them; give one"),
        ('<mesh name="m"/>', "mesh 'm' has both file and vertex or none of them; give one"),
        (f'<mesh name="m" file="a.stl" {FACE}/>', "mesh 'm' has file and face; leave out face"),
        ('<mesh name="m" builtin="sphere" params="1"/>', "mesh 'm' is the builtin 'sphere'; give its vertex and face"),
        (f"<mesh {VERTEX}/>", "a <mesh> has neither name nor file; name it"),
        ('<mesh name="m" vertex="0 0 0 1"/>', "mesh 'm' has 4 numbers in vertex; allowed are three for each"),
        ('<mesh name="m" vertex="0 0 x"/>', "mesh 'm' has vertex '0 0 x' in <mesh>; allowed are 3 finite numbers"),
        ('<mesh name="m" vertex="0 0 1e300"/>', "mesh 'm' has vertex '0 0 1e300' in <mesh>; allowed are numbers up to 1e"),
        (f'<mesh name="m" {VERTEX} face="0 1"/>', "mesh 'm' has 2 numbers in face; allowed are three for each"),
        (f'<mesh name="m" {VERTEX} face="0 1 1.5"/>', "mesh 'm' has a face with numbers that are not whole"),
        (f'<mesh name="m" {VERTEX} face="0 1 12"/>', r"mesh 'm' cannot be read: .* refers to nodes \[0, 1, 12\]"),
        (f'<mesh name="m" {VERTEX} face="0 1 -1"/>', r"mesh 'm' cannot be read: .* refers to nodes \[0, 1, -1\]"),
        (f'<mesh name="m" {VERTEX} face="0 1 1"/>', "mesh 'm' cannot be read: .* there is not one triangle"),
        (f'<mesh name="m" {VERTEX} {FACE} refquat="0 0 0 0"/>', "mesh 'm' has refquat '0 0 0 0'; it must not be zero"),
        (f'<mesh name="m" {VERTEX} {FACE} scale="1 0 1"/>', "mesh 'm' has the scale '1 0 1'; allowed are numbers other than 0"),
        ('<mesh name="m" vertex="0 0 0 1 0 0 0 1 0 1 1 0"/>', "mesh 'm' has 4 points and no face, and their hull has no volume"),
        ('<mesh name="m" vertex="0 0 0 1 0 0 0 1 0"/>', "mesh 'm' has 3 points and no face, and their hull has no volume"),
    ],
)
def test_wrong_meshes_are_a_sentence(asset: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(fs.InputError, match=said) as caught:
        read(tmp_path, one(asset, '<geom type="mesh" mesh="m"/>'))
    assert "robot.xml" in str(caught.value)


@pytest.mark.parametrize("geom", ['size="0.1 0.2 0.05" pos="1 0 0" euler="0 30 0"', 'size="0.05" fromto="0 0 0 0.1 0.2 0.2"'])
def test_ellipsoids_weigh_what_mujoco_says(geom: str, tmp_path: Path) -> None:
    same_body(tmp_path, one("", f'<geom type="ellipsoid" {geom}/>'), 1e-12)


def test_an_ellipsoid_has_its_own_inertia_and_a_mesh_of_its_volume(tmp_path: Path) -> None:
    """Its points are 0.29 % outside, the middles of its triangles at most 0.17 % inside, each of its own size there."""
    half = np.array([0.3, 0.2, 0.1])
    robot = read(tmp_path, one("", f'<geom type="ellipsoid" size="{words(half)}" density="1"/>'))
    link = robot.links[0]
    volume = 4.0 / 3.0 * math.pi * 0.3 * 0.2 * 0.1
    assert link.mass == pytest.approx(volume, rel=1e-14)
    np.testing.assert_allclose(link.inertia, volume / 5.0 * np.diag([0.05, 0.1, 0.13]), rtol=1e-14, atol=1e-18)
    shape = link.shapes[0].shape
    assert isinstance(shape, Mesh)
    own = solid_mass_properties(make_trimesh(shape.points, shape.triangles, name="", source=""), 1.0)
    assert own[0] == pytest.approx(volume, rel=1e-13)
    np.testing.assert_allclose(own[2], link.inertia, rtol=0.0, atol=1e-5 * np.abs(link.inertia).max())
    reach = np.linalg.norm(shape.points / half, axis=1)
    middles = np.linalg.norm(shape.points[shape.triangles].mean(axis=1) / half, axis=1)
    assert reach.max() == pytest.approx(1.0029, abs=1e-4) == reach.min() and middles.min() == pytest.approx(
        1.0 - 0.0017, abs=1e-4
    )


def test_an_ellipsoid_that_is_drawn_only_is_drawn(tmp_path: Path) -> None:
    drawn = '<geom type="ellipsoid" size="0.3 0.2 0.1" contype="0" conaffinity="0"/>'
    link = read(tmp_path, one("", '<geom size="0.1"/>', drawn)).links[0]
    assert len(link.shapes) == 1 and isinstance(link.visuals[0].shape, Mesh)  # type: ignore[union-attr]


def test_an_ellipsoid_lies_on_its_flat_side(tmp_path: Path) -> None:
    """It lies on the floor at half its height, to the error of its surface."""
    (tmp_path / "robot.xml").write_text(
        '<mujoco><worldbody><body name="a"><freejoint/><geom type="ellipsoid" size="0.3 0.2 0.1"/></body></worldbody></mujoco>'
    )
    scene = fs.Scene("pebble", dt=0.01, duration=0.5)
    scene.add_floor()
    scene.add_robot(tmp_path / "robot.xml", name="pebble", base="free", position=(0, 0, 0.1003), rotation=(0, 0, 0.2))
    scene.sensor("pebble", "pebble", kind="marker")
    scene.sensor("force", "pebble")
    run = fs.simulate(scene)
    assert run.markers["pebble"].position[-1][2] == pytest.approx(0.1, rel=3e-3)
    weight = 4.0 / 3.0 * math.pi * 0.006 * 1000.0 * 9.81
    assert run.sensors["force"].force[-1][2] == pytest.approx(weight, rel=1e-3)


def pebble(assets: str = "") -> str:
    """Asset of a lopsided body of 12 points and their hull."""
    points = np.random.default_rng(3).normal(size=(12, 3)) * [0.1, 0.2, 0.4] + [0.3, -0.1, 0.2]
    return f'<mesh name="p" vertex="{words(points)}" {assets}/>'


@pytest.mark.parametrize("kind", ["sphere", "capsule", "cylinder", "box", "ellipsoid"])
@pytest.mark.parametrize("around", [False, True])
def test_geoms_fitted_to_a_mesh_are_those_of_mujoco(kind: str, around: bool, tmp_path: Path) -> None:
    """Sizes, place, axes but for their signs, and what the body weighs: its mass is that of the geom, not that of the mesh."""
    mujoco = pytest.importorskip("mujoco")
    for asset in ("", 'inertia="shell"', 'inertia="exact"'):
        geom = f'<geom type="{kind}" mesh="p" pos="1 2 3" euler="10 20 30" fitscale="0.9" size="5 5 5" density="300"/>'
        text = one(pebble(asset), geom).replace("<asset>", f'<compiler fitaabb="{str(around).lower()}"/><asset>')
        robot = same_body(tmp_path, text, 1e-6)
        model = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
        (piece,) = robot.links[0].shapes
        np.testing.assert_allclose(piece.position, model.geom_pos[0], rtol=0.0, atol=1e-7)
        theirs = Rotation.from_quat(model.geom_quat[0][[1, 2, 3, 0]])
        turn = (theirs.inv() * Rotation.from_rotvec(piece.rotation)).as_matrix()
        if kind != "ellipsoid":
            shape, count = piece.shape, {"sphere": 1, "box": 3}.get(kind, 2)
            sizes = shape.half_extents if isinstance(shape, Box) else (shape.radius, getattr(shape, "half_length", 0.0))[:count]  # type: ignore[union-attr]
            np.testing.assert_allclose(sizes, model.geom_size[0][:count], rtol=1e-6)
        np.testing.assert_allclose(np.abs(turn), np.eye(3), rtol=0.0, atol=1e-6)


def test_a_geom_fitted_to_a_cube_keeps_its_axes_and_a_short_capsule_is_a_sphere(tmp_path: Path) -> None:
    """Rounding in the inertia of a cube turned it anyhow; around a cube a capsule has no length."""
    rng, corners = np.random.default_rng(0), np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    for _ in range(8):
        half, middle = rng.uniform(0.01, 1.0), rng.uniform(-1.0, 1.0, 3)
        numbers = " ".join(map(repr, (half * corners + middle).ravel().tolist()))
        asset = f'<mesh name="p" vertex="{numbers}"/>'
        (piece,) = read(tmp_path, one(asset, '<geom type="box" mesh="p"/>')).links[0].shapes
        assert isinstance(piece.shape, Box)
        np.testing.assert_allclose(piece.shape.half_extents, half, rtol=1e-9)
        turn = Rotation.from_rotvec(piece.rotation).as_matrix()
        np.testing.assert_allclose(np.sort(np.abs(turn).ravel()), [0.0] * 6 + [1.0] * 3, rtol=0.0, atol=1e-9)
    text = one(asset, '<geom type="capsule" mesh="p"/>').replace("<asset>", '<compiler fitaabb="true"/><asset>')
    (piece,) = read(tmp_path, text).links[0].shapes
    assert isinstance(piece.shape, Sphere) and piece.shape.radius == pytest.approx(half)
    np.testing.assert_allclose(piece.position, middle, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("geom, said", [
    ('mesh="q"', "geom 1 of body 'a' has the mesh 'q', which no <asset> names; correct its name"),
    ('mesh="p" fromto="0 0 0 1 1 1"', "has fromto, and is fitted to the mesh 'p'; leave one of them out"),
    ('mesh="p" fitscale="-1"', "has the sizes"),
    ('mesh="flat"', "is fitted to the mesh 'flat': it encloses nothing, or is inside out; give its sizes instead"),
    ('mesh="hull"', "is fitted to the mesh 'hull': it encloses nothing, or is inside out; give its sizes instead"),
    ('contype="0" conaffinity="0" mesh="hull" type="mesh"', "has a mesh that encloses nothing, or is inside out; give the body"),
])  # fmt: skip
def test_wrong_fits_are_a_sentence(geom: str, said: str, tmp_path: Path) -> None:
    flat = '<mesh name="flat" vertex="0 0 0 1 0 0 0 1 0 1 1 0" face="0 1 2 1 3 2"/>'
    hull = flat.replace('"flat"', '"hull" inertia="convex"')
    with pytest.raises(fs.InputError, match=said):
        read(tmp_path, one(pebble() + flat + hull, f"<geom {geom}/>" if "type=" in geom else f'<geom type="box" {geom}/>'))


def test_what_is_small_beside_a_large_ball_needs_no_large_grid(tmp_path: Path) -> None:
    """As teeth beside a neck. A mesh of too many cells is refused with a way out, since `ignore_contact` comes later."""
    tooth = '<body pos="1 0 0"><joint/><geom size="0.1"/><body pos="1 0 0"><joint/><geom type="ellipsoid" size="2e-3 2e-3 4e-3"/>'
    (tmp_path / "dog.xml").write_text(
        f'<mujoco><worldbody><body><geom size="0.1"/>{tooth}</body></body></body></worldbody></mujoco>'
    )
    fs.Scene("s").add_robot(tmp_path / "dog.xml")
    ball = sphere_triangles(0.05, 1)
    fine = fs.Mesh(ball.points, ball.triangles, resolution=400)
    links = [fs.RobotLink.solid(name, fs.Piece(fine, (0.2 * k, 0, 0)), 1.0) for k, name in enumerate("abc")]
    joints = [fs.RobotJoint(f"to {name}", "a", name, axis=(0, 0, 1)) for name in "bc"]
    robot = fs.Robot("fine", links, joints)
    with pytest.raises(fs.InputError, match=r"robot fine: its links .* lower Mesh.resolution. Or say self_contact=False in add"):
        fs.Scene("s").add_robot(robot)
    fs.Scene("s").add_robot(robot, self_contact=False)


@pytest.mark.parametrize("begin", ["o", "g"])
def test_of_an_obj_with_several_objects_the_first_with_faces_is_read_as_in_mujoco(tmp_path: Path, begin: str) -> None:
    """A cube of 0.1 m, beside which another one stands in the file: mass, centre and shape are those of the first."""
    faces = ((1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4))
    text = f"{begin} empty\n"
    for k, left in enumerate((0.0, 0.5)):
        corners = [(left + 0.1 * i, 0.1 * j, 0.1 * k) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
        text += f"{begin} cube{k}\n" + "".join("v {} {} {}\n".format(*corner) for corner in corners) + "usemtl grey\n"
        text += "".join("f " + " ".join(str(8 * k + n) for n in face) + "\n" for face in faces)
    (tmp_path / "cubes.obj").write_text(text)
    model = """<mujoco><asset><mesh name="m" file="cubes.obj"/></asset><worldbody><body name="b"><joint type="slide"/>
    <geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""
    (tmp_path / "cubes.xml").write_text(model)
    robot = fs.load_robot(tmp_path / "cubes.xml")
    link = next(link for link in robot.links if link.name == "b")
    assert link.mass == pytest.approx(1.0, rel=1e-12)
    shape = link.shapes[0].shape
    assert isinstance(shape, Mesh) and np.ptp(shape.points, axis=0) == pytest.approx([0.1] * 3)
    assert any("mesh 'm' is the first of 2 objects of cubes.obj, as in MuJoCo" in note for note in robot.notes)
    try:
        import mujoco
    except ImportError:
        return
    assert float(mujoco.MjModel.from_xml_path(str(tmp_path / "cubes.xml")).body_mass[1]) == pytest.approx(1.0, rel=1e-6)
