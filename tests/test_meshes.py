"""Stage meshes: validation, surfaces, primitives, files, quality. Nothing is meshed here."""

import itertools
import math

import meshio
import numpy as np
import pytest

import meshes
from meshes import FILES, MeshError, make_tetmesh, make_trimesh
from meshes.recipes.pad import make_pad, stl_bytes
from meshes.recipes.soft_finger import make_finger
from meshes.surface import distinct_rows

UNIT = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])


def tet(points=UNIT, tets=((0, 1, 2, 3),)):
    return make_tetmesh(points, np.array(tets), name="t", source="here")


def rotation(rng):
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else q[:, [1, 0, 2]]


def test_all_public_names_exist():
    assert all(hasattr(meshes, name) for name in meshes.__all__)


# Validation


def test_arrays_of_a_script_need_no_name():
    """A block whose middle cells are left out, say."""
    mesh = make_tetmesh(UNIT, [[0, 1, 2, 3]])
    assert (mesh.name, mesh.source, mesh.digest) == ("mesh", "arrays", tet().digest)
    with pytest.raises(MeshError, match="mesh 'mesh' from arrays: 1 of 1 tetrahedra are inverted"):
        make_tetmesh(UNIT, [[1, 0, 2, 3]])
    with pytest.raises(MeshError, match=r"create it by make_tetmesh\(points, tets\)"):  # a bare TypeError asked for a digest
        meshes.TetMesh(UNIT, np.array([[0, 1, 2, 3]]))


def test_one_tetrahedron():
    mesh = tet()
    assert mesh.volume == pytest.approx(1 / 6, rel=1e-15)
    assert np.array_equal(mesh.bounds, [[0, 0, 0], [1, 1, 1]])
    assert mesh.points.dtype == np.float64 and mesh.tets.dtype == np.int64
    assert mesh.points.flags.c_contiguous and mesh.tets.flags.c_contiguous
    assert len(mesh.digest) == 64


def test_the_arrays_are_copies_and_the_digest_sees_both():
    points, tets = UNIT.copy(), np.array([[0, 1, 2, 3]])
    mesh = tet(points, tets)
    points[0, 0] = 9.0
    tets[0, 0] = 3
    assert mesh.points[0, 0] == 0.0 and mesh.tets[0, 0] == 0
    assert tet().digest == mesh.digest
    moved = UNIT.copy()
    moved[3, 2] = np.nextafter(1.0, 2.0)
    assert tet(moved).digest != mesh.digest
    assert tet(tets=[[1, 2, 0, 3]]).digest != mesh.digest


def with_point(index, value):
    points = UNIT.copy()
    points[index] = value
    return points


@pytest.mark.parametrize(
    ("points", "tets", "says"),
    [
        (with_point(2, [0.0, math.nan, 0.0]), [[0, 1, 2, 3]], r"node 2 at \(0.0, nan, 0.0\)"),
        (with_point(1, [math.inf, 0.0, 0.0]), [[0, 1, 2, 3]], "node 1"),
        (UNIT[:, :2], [[0, 1, 2, 3]], r"shape \(4, 2\)"),
        ([["a"] * 3] * 4, [[0, 1, 2, 3]], "no array of numbers"),
        (UNIT, [[0, 1, 2]], r"shape \(1, 3\)"),
        (UNIT, [[0.0, 1.0, 2.0, 3.0]], "float64"),
        (UNIT, np.zeros((0, 4), int), "not one tetrahedron"),
        (UNIT, [[0, 1, 2, 4]], r"tetrahedron 0 refers to nodes \[0, 1, 2, 4\].*0 to 3"),
        (UNIT, [[0, 1, 2, -1]], "tetrahedron 0"),
        (UNIT, [[0, 1, 2, 2]], r"zero volume \(elements 0\)"),
        (with_point(3, [0.3, 0.3, 1e-10]), [[0, 1, 2, 3]], "zero volume"),
        (UNIT, [[0, 2, 1, 3]], r"inverted.*elements 0\); all are inverted"),
        (
            np.vstack([UNIT, [[1.0, 1.0, 1.0]]]),
            [[0, 1, 2, 3], [1, 2, 3, 4], [0, 2, 1, 4]],
            r"1 of 3.*\(elements 2\)",
        ),
        (np.vstack([UNIT, [[5.0, 5.0, 5.0]]]), [[0, 1, 2, 3]], r"1 of 5 nodes .* no tetrahedron \(nodes 4\)"),
        (UNIT, [[0, 1, 2, 3]] * 3, "more than two tetrahedra"),
    ],
)  # fmt: skip
def test_wrong_meshes_are_refused(points, tets, says):
    with pytest.raises(MeshError, match=says) as caught:
        tet(points, tets)
    assert "'t' from here" in str(caught.value)


def test_long_lists_are_cut_at_ten_and_counted():
    box = meshes.box_tets((1, 1, 1), 2)
    flipped = box.tets.copy()
    flipped[5:25] = flipped[5:25][:, [0, 2, 1, 3]]
    with pytest.raises(MeshError, match=r"20 of 48 .*\(elements 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, \.\.\.\)"):
        make_tetmesh(box.points, flipped, name="t", source="here")


def test_flatness_is_judged_by_the_element_itself_at_any_scale():
    for scale in (1e-9, 1.0, 1e9):
        assert tet(scale * UNIT).volume == pytest.approx(scale**3 / 6, rel=1e-12)
        with pytest.raises(MeshError, match="zero volume"):
            tet(scale * with_point(3, [0.3, 0.3, 1e-10]))


# Surfaces


@pytest.mark.parametrize("mesh", [tet(), meshes.box_tets((1, 2, 3), (2, 1, 3)), meshes.ball_tets(1.0, 4)])
def test_boundary_is_closed_outward_and_encloses_the_volume(mesh):
    surface = mesh.surface()
    assert surface.is_closed and surface.is_consistently_oriented
    assert surface.signed_volume == pytest.approx(mesh.volume, rel=1e-12)
    assert np.array_equal(surface.points, mesh.points[mesh.surface_nodes])
    # twin: a face is on the boundary if no other element has it
    faces = [frozenset(f) for cell in mesh.tets.tolist() for f in itertools.combinations(cell, 3)]
    single = {f for f in faces if faces.count(f) == 1}
    assert {frozenset(t) for t in mesh.surface_triangles.tolist()} == single
    assert len(mesh.surface_triangles) == len(single)


def test_open_and_badly_oriented_surfaces_are_seen():
    box = meshes.box_triangles((1, 1, 1))
    opened = make_trimesh(box.points, box.triangles[1:], name="s", source="here")
    assert not opened.is_closed and opened.is_consistently_oriented
    twisted = box.triangles.copy()
    twisted[3] = twisted[3, ::-1]
    twisted_box = make_trimesh(box.points, twisted, name="s", source="here")
    assert twisted_box.is_closed and not twisted_box.is_consistently_oriented
    inside_out = make_trimesh(box.points, box.triangles[:, ::-1], name="s", source="here")
    assert inside_out.signed_volume == pytest.approx(-1.0)
    for surface, says in (
        (opened, "3 edges"),
        (twisted_box, "opposite orientation"),
        (inside_out, "inside out"),
    ):
        with pytest.raises(MeshError, match=says):
            meshes.solid_mass_properties(surface, 1.0)
    for density in (0.0, -1.0, math.nan):
        with pytest.raises(MeshError, match="density"):
            meshes.solid_mass_properties(box, density)


def test_mass_properties_of_a_box_moved_and_turned():
    """Box: I = m/12 (b^2 + c^2), turned by R I R^T, whatever the distance from the origin."""
    rng = np.random.default_rng(11)
    size, density = np.array([0.2, 0.3, 0.5]), 800.0
    mass = density * size.prod()
    principal = mass / 12.0 * (np.sum(size**2) - size**2)
    for _ in range(5):
        R, t = rotation(rng), rng.normal(size=3)
        for box in (meshes.box_triangles(size), meshes.box_tets(size, (2, 3, 1)).surface()):
            moved = make_trimesh(box.points @ R.T + t, box.triangles, name="b", source="here")
            m, com, inertia = meshes.solid_mass_properties(moved, density)
            assert m == pytest.approx(mass, rel=1e-12)
            assert np.allclose(com, t, atol=1e-14)
            assert np.allclose(inertia, R @ np.diag(principal) @ R.T, atol=1e-11 * principal.max())


def test_mass_properties_against_a_sum_over_tetrahedra():
    """Twin: mid-edge-free exact quadrature (degree 2, four points) over the elements of an uneven solid."""
    rng = np.random.default_rng(5)
    box = meshes.box_tets((1, 1, 1), 3)
    points = box.points + 0.05 * rng.uniform(-1, 1, box.points.shape)
    solid = make_tetmesh(points, box.tets, name="lump", source="here")
    a, b = 0.5854101966249685, 0.1381966011250105
    weights = np.full((4, 4), b) + (a - b) * np.eye(4)
    samples = np.einsum("qk,mkj->mqj", weights, solid.points[solid.tets])
    volumes = np.abs(np.linalg.det(solid.points[solid.tets[:, 1:]] - solid.points[solid.tets[:, :1]])) / 6
    w = 7.0 * np.repeat(volumes / 4, 4)
    x = samples.reshape(-1, 3)
    com = w @ x / w.sum()
    d = x - com
    inertia = np.einsum("i,ijk->jk", w, np.einsum("ij,ij->i", d, d)[:, None, None] * np.eye(3) - d[:, :, None] * d[:, None])
    m, c, i = meshes.solid_mass_properties(solid.surface(), 7.0)
    assert m == pytest.approx(w.sum(), rel=1e-12)
    assert np.allclose(c, com, atol=1e-13)
    assert np.allclose(i, inertia, atol=1e-12 * np.trace(inertia))


def test_transformed():
    rng = np.random.default_rng(2)
    R, t = rotation(rng), np.array([1.0, 2.0, 3.0])
    mesh = meshes.box_tets((1, 2, 3), 2)
    moved = mesh.transformed(R, t, 0.5)
    assert np.allclose(moved.points, [0.5 * R @ p + t for p in mesh.points], atol=1e-14)
    assert moved.volume == pytest.approx(mesh.volume / 8, rel=1e-12)
    assert moved.digest != mesh.digest and mesh.transformed().digest == mesh.digest
    for bad, says in (
        ({"rotation": -np.eye(3)}, "rotation"),
        ({"rotation": 2 * np.eye(3)}, "rotation"),
        ({"translation": [0, 0]}, "translation"),
        ({"translation": [0, 0, math.nan]}, "translation"),
        ({"scale": 0.0}, "scale"),
        ({"scale": -1.0}, "scale"),
    ):
        with pytest.raises(MeshError, match=says):
            mesh.transformed(**bad)


# Primitives


def test_box_tets():
    mesh = meshes.box_tets((0.1, 0.2, 0.3), (2, 3, 4))
    assert mesh.points.shape == (60, 3) and mesh.tets.shape == (144, 4)
    assert mesh.volume == pytest.approx(0.006, rel=1e-12)
    assert np.allclose(mesh.bounds, [[-0.05, -0.1, -0.15], [0.05, 0.1, 0.15]], atol=1e-16)


@pytest.mark.parametrize("count", [2, 4, 8, 12])
def test_ball_tets(count):
    mesh = meshes.ball_tets(0.03, count)
    assert mesh.points.shape == ((count + 1) ** 3, 3) and mesh.tets.shape == (6 * count**3, 4)
    assert np.allclose(np.linalg.norm(mesh.points[mesh.surface_nodes], axis=1), 0.03, rtol=1e-14)
    assert meshes.quality(mesh).scaled_jacobian_min > 0.3
    sphere = 4 / 3 * math.pi * 0.03**3
    # the polyhedron misses a part of the order (edge / radius)^2
    assert 0.0 < 1.0 - mesh.volume / sphere < 3.0 / count**2


@pytest.mark.parametrize("count", [2, 6, 10])
def test_cylinder_tets(count):
    mesh = meshes.cylinder_tets(0.5, 1.0, (count, count))
    radii = np.linalg.norm(mesh.points[:, :2], axis=1)
    mantle = np.setdiff1d(mesh.surface_nodes, np.flatnonzero(radii < 0.5 - 1e-9))
    assert len(mantle) == 4 * count * (count + 1)
    n = 4 * count  # the disc is a regular polygon
    assert mesh.volume == pytest.approx(0.5 * n * 0.25 * math.sin(2 * math.pi / n), rel=1e-9)
    assert meshes.quality(mesh).scaled_jacobian_min > 0.3


@pytest.mark.parametrize(
    ("surface", "volume", "size"),
    [
        (meshes.box_triangles((1, 2, 3)), 6.0, (1, 2, 3)),
        # a cube less 12 prisms (c^2 / 2) along the edges; of each corner cube c^3 a sixth is left
        (meshes.chamfered_box_triangles((1, 1, 1), 0.1), 1 - 0.06 * 0.8 - 8 * 0.1**3 * 5 / 6, (1, 1, 1)),
        (meshes.cylinder_triangles(0.5, 2.0, 64), 64 * 0.25 * math.sin(2 * math.pi / 64), (1, 1, 2)),
    ],
)  # fmt: skip
def test_flat_sided_surfaces(surface, volume, size):
    assert surface.is_closed and surface.is_consistently_oriented
    assert surface.signed_volume == pytest.approx(volume, rel=1e-12)
    assert np.allclose(np.diff(surface.bounds, axis=0)[0], size, atol=1e-14)


def test_box_tets_of_alternating_cells_are_their_own_mirror_image():
    """With even counts a reflection maps the mesh on itself; cells that are all alike have one diagonal, which it turns over."""
    size, divisions = np.array([0.4, 0.2, 0.02]), (4, 2, 2)
    mesh = meshes.box_tets(size, divisions)
    plain = meshes.box_tets(size, divisions, alternating=False)
    assert [m.source.endswith(", alternating=False)") for m in (mesh, plain)] == [False, True]
    assert mesh.volume == pytest.approx(size.prod(), rel=1e-14)
    assert np.array_equal(mesh.points, plain.points) and len(mesh.tets) == 6 * 16
    faces = np.sort(mesh.tets[:, list(itertools.combinations(range(4), 3))].reshape(-1, 3), axis=1)
    _, times = np.unique(faces, axis=0, return_counts=True)
    assert times.max() == 2 and (times == 1).sum() == len(mesh.surface_triangles)  # any two cells fit

    def cells(mesh, flip):
        order = np.array([np.flatnonzero(np.abs(mesh.points - flip * p).sum(axis=1) < 1e-12)[0] for p in mesh.points])
        return {tuple(sorted(order[t])) for t in mesh.tets}

    for axis in range(3):
        flip = np.where(np.arange(3) == axis, -1.0, 1.0)
        assert cells(mesh, flip) == cells(mesh, np.ones(3))
        assert cells(plain, flip) != cells(plain, np.ones(3))


def test_sphere_and_capsule_converge_to_the_volume():
    sphere = [meshes.sphere_triangles(0.5, s) for s in range(5)]
    missing = [1 - s.signed_volume / (math.pi / 6) for s in sphere]
    assert [len(s.triangles) for s in sphere] == [20 * 4**s for s in range(5)]
    assert 3.8 < missing[3] / missing[4] < 4.2  # second order
    for s in sphere:
        assert s.is_closed and s.is_consistently_oriented
        assert np.allclose(np.linalg.norm(s.points, axis=1), 0.5, rtol=1e-14)
    capsule = [meshes.capsule_triangles(0.5, 2.0, n, n // 4) for n in (16, 32, 64)]
    missing = [1 - c.signed_volume / (math.pi * 0.25 * 2 + math.pi / 6) for c in capsule]
    assert 3.7 < missing[1] / missing[2] < 4.3
    for c in capsule:
        assert c.is_closed and c.is_consistently_oriented
        beyond = np.maximum(np.abs(c.points[:, 2]) - 1.0, 0.0)
        assert np.allclose(np.hypot(np.hypot(c.points[:, 0], c.points[:, 1]), beyond), 0.5, rtol=1e-14)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: meshes.box_tets((1, 0, 1), 2), "box_tets: size"),
        (lambda: meshes.box_tets((1, 1), 2), "box_tets: size"),
        (lambda: meshes.box_tets((1, 1, 1), 0), "box_tets: divisions"),
        (lambda: meshes.box_tets((1, 1, 1), (2, 2)), "box_tets: divisions"),
        (lambda: meshes.ball_tets(math.nan, 4), "ball_tets: radius"),
        (lambda: meshes.ball_tets(1.0, 3), "must be even; take 4"),
        (lambda: meshes.cylinder_tets(1.0, 1.0, (5, 2)), "must be even; take 6"),
        (lambda: meshes.cylinder_triangles(1.0, -1.0), "cylinder_triangles"),
        (lambda: meshes.cylinder_triangles(1.0, 1.0, 2), "segments is 2"),
        (lambda: meshes.capsule_triangles(1.0, 1.0, 8, 0), "rings is 0"),
        (lambda: meshes.sphere_triangles(1.0, 8), "subdivisions is 8"),
        (lambda: meshes.chamfered_box_triangles((1, 1, 1), 0.5), "chamfer is 0.5"),
    ],
)
def test_wrong_primitives_are_refused(make, says):
    with pytest.raises(MeshError, match=says):
        make()


# Files


def test_committed_ball():
    ball = meshes.load_tetmesh(FILES / "ball_r30.vtu")
    assert 1400 <= len(ball.points) <= 1500 and 6300 <= len(ball.tets) <= 6900
    assert ball.volume == pytest.approx(4 / 3 * math.pi * 0.03**3, rel=1e-9)
    radii = np.linalg.norm(ball.points[ball.surface_nodes], axis=1)
    assert np.ptp(radii) < 1e-12 and abs(radii[0] - 0.03) < 1e-4
    measured = meshes.quality(ball)
    assert measured.scaled_jacobian_min > 0.2 and measured.min_dihedral_deg > 20.0
    text = (FILES.parent / "README.md").read_text(encoding="utf-8")
    assert ball.digest in text and f"{len(ball.points)}, {len(ball.surface_nodes)} of them" in text
    assert (FILES / "ball_r30.vtu").stat().st_size < 500_000


def test_committed_pad():
    pad = meshes.load_surface(FILES / "pad.stl", closed=True)
    assert len(pad.points) == 24 and len(pad.triangles) == 44
    assert pad.signed_volume == pytest.approx(make_pad().signed_volume, rel=1e-6)
    assert np.allclose(np.diff(pad.bounds, axis=0)[0], [0.006, 0.04, 0.04], rtol=1e-6)
    committed = (FILES / "pad.stl").read_bytes()
    assert stl_bytes(make_pad(), committed[:80].decode().rstrip()) == committed


def test_committed_finger():
    finger = meshes.load_tetmesh(FILES / "soft_finger.vtu")
    assert finger.digest == make_finger().digest and len(finger.points) == 135
    assert np.allclose(finger.bounds, [[-0.012, -0.006, 0.0], [0.012, 0.006, 0.05]], atol=1e-12)


def test_vtu_round_trip_is_exact(tmp_path):
    mesh = meshes.ball_tets(0.03, 4)
    again = meshes.load_tetmesh(meshes.save_tetmesh(mesh, tmp_path / "ball.vtu"))
    assert again.digest == mesh.digest and again.name == "ball"
    with pytest.raises(MeshError, match=r"suffix is '\.msh'"):
        meshes.save_tetmesh(mesh, tmp_path / "ball.msh")
    with pytest.raises(MeshError, match="cannot be written"):
        meshes.save_tetmesh(mesh, tmp_path / "nowhere" / "ball.vtu")


def in_two() -> tuple[meshes.TetMesh, np.ndarray]:
    """A bar of 96 tetrahedra and which of them are in its upper half."""
    mesh = meshes.box_tets((0.02, 0.02, 0.04), (2, 2, 4))
    return mesh, mesh.points[mesh.tets].mean(axis=1)[:, 2] > 0.0


@pytest.mark.parametrize(
    ("suffix", "kind", "tag"), [(".msh", "gmsh22", "gmsh:physical"), (".mesh", "medit", "medit:ref"), (".vtu", "vtu", "Material")]
)
def test_regions_of_a_file_are_read_by_their_tags(tmp_path, suffix, kind, tag):
    """Stiff inserts became as soft as the rest without a word. Tags of triangles on the boundary are none of regions."""
    mesh, upper = in_two()
    triangles = mesh.surface_triangles
    for number, tags in enumerate((np.zeros(96, dtype=np.int64), upper.astype(np.int64))):
        path = tmp_path / f"{number}{suffix}"
        own = {tag: [tags + 1, np.arange(len(triangles)) + 5]}
        names = {}
        if kind == "gmsh22":
            own["gmsh:geometrical"] = own[tag]
            names = {"skin": np.array([1, 2]), "soft": np.array([1, 3]), "hard": np.array([2, 3])}  # number, dimension
        cells = [("tetra", mesh.tets), ("triangle", triangles)]
        meshio.write(path, meshio.Mesh(mesh.points, cells, cell_data=own, field_data=names), file_format=kind)
        read = meshes.load_tetmesh(path)
        first, second = ("soft", "hard") if names else ("1", "2")
        assert list(read.regions) == [first, second][: number + 1] and read.transformed(scale=2.0).regions is read.regions
        np.testing.assert_array_equal(read.regions[first], np.flatnonzero(tags == 0))
        if number:
            np.testing.assert_array_equal(read.regions[second], np.flatnonzero(upper))
    assert not mesh.regions


def test_a_volume_of_gmsh_may_be_in_several_groups(tmp_path):
    """Its tag is the first of them alone; a surface may have the number of a volume."""
    mesh, upper = in_two()
    head = [
        "$MeshFormat",
        "4.1 0 8",
        "$EndMeshFormat",
        "$PhysicalNames",
        "4",
        '3 1 "soft"',
        '3 2 "hard"',
        '3 7 "all"',
        '2 1 "skin"',
    ]
    box = "-1 -1 -1 1 1 1"
    entities = [
        "$EndPhysicalNames",
        "$Entities",
        "0 0 1 2",
        f"9 {box} 1 1 0",
        f"1 {box} 2 1 7 0",
        f"2 {box} 2 2 7 0",
        "$EndEntities",
    ]
    nodes = ["$Nodes", f"1 {len(mesh.points)} 1 {len(mesh.points)}", f"3 1 0 {len(mesh.points)}"]
    nodes += [
        *map(str, range(1, len(mesh.points) + 1)),
        *(" ".join(map(str, point)) for point in mesh.points.tolist()),
        "$EndNodes",
    ]
    cells = ["$Elements", "3 97 1 97", "2 9 2 1", "1 1 2 3"]
    for entity, chosen in ((1, ~upper), (2, upper)):
        cells += [f"3 {entity} 4 {chosen.sum()}"]
        cells += [" ".join(map(str, [2 + k, *(mesh.tets[k] + 1)])) for k in np.flatnonzero(chosen).tolist()]
    path = tmp_path / "bar.msh"
    path.write_text("\n".join([*head, *entities, *nodes, *cells, "$EndElements", ""]))
    read = meshes.load_tetmesh(path)
    regions = {name: cells.tolist() for name, cells in read.regions.items()}
    assert regions["hard"] == list(range(48, 96)) and regions["all"] == list(range(96)) and regions["soft"] == list(range(48))
    assert (read.points[read.tets[read.regions["hard"]]].mean(axis=1)[:, 2] > 0.0).all()


ABAQUS = """*Heading
** a comment, with, commas
*NODE
{nodes}
*ELEMENT, TYPE=C3D4
{first}
*ELEMENT, type=S3, ELSET=Skin
9001, 1, 2, 3
*ELEMENT, TYPE=C3D4, elset=Pad
{second}
*NSET, NSET=FOOT
1, 2, 3
*ELSET, ELSET=CLAMP
101, 102,
103
*elset, elset="every second", generate
101, 105, 2
*ELSET, ELSET=both
CLAMP, Pad
*ELSET, ELSET=shell
9001
*ELSET, ELSET=Clamp
201
"""


def abaqus_text() -> str:
    """The bar of two blocks of elements, labelled from 101 and from 201, with element sets of all kinds."""
    mesh, upper = in_two()

    def lines(start: int, rows: np.ndarray) -> str:
        return "\n".join(", ".join(map(str, [start + k, *row])) for k, row in enumerate(rows.tolist()))

    return ABAQUS.format(
        nodes=lines(1, mesh.points), first=lines(101, mesh.tets[~upper] + 1), second=lines(201, mesh.tets[upper] + 1)
    )


def test_regions_of_abaqus_are_its_element_sets(tmp_path):
    """They may overlap; meshio gave Pad to the first block. Case and quotes do not count; sets of nodes are none."""
    path = tmp_path / "bar.inp"
    path.write_text(abaqus_text())
    read = meshes.load_tetmesh(path)
    upper = list(range(48, 96))
    assert {name: cells.tolist() for name, cells in read.regions.items()} == {
        "Pad": upper, "CLAMP": [0, 1, 2, 48], "every second": [0, 2, 4], "both": [0, 1, 2, *upper],
    }  # fmt: skip
    assert (read.points[read.tets[read.regions["Pad"]]].mean(axis=1)[:, 2] > 0.0).all()


def test_element_sets_that_cannot_be_told_are_none(tmp_path):
    """A set of a set that the file lacks: meshio reads the elements."""
    path = tmp_path / "bar.inp"
    path.write_text(abaqus_text().replace("CLAMP, Pad", "CLAMP, Pod"))
    read = meshes.load_tetmesh(path)
    assert len(read.tets) == 96 and not read.regions


def test_numbers_of_elements_are_no_regions(tmp_path):
    mesh = meshes.box_tets((0.1, 0.1, 0.1), 6)
    path = tmp_path / "box.vtu"
    meshio.write(path, meshio.Mesh(mesh.points, [("tetra", mesh.tets)], cell_data={"material": [np.arange(len(mesh.tets))]}))
    assert len(mesh.tets) > 1000 and not meshes.load_tetmesh(path).regions


def test_named_regions_are_saved_with_the_mesh(tmp_path):
    mesh, upper = in_two()
    named = mesh.with_region("hard layer", lambda x: x[:, 2] > 0.0).with_region("all", lambda x: np.ones(len(x), dtype=bool))
    assert named.digest == mesh.digest and not mesh.regions
    read = meshes.load_tetmesh(meshes.save_tetmesh(named, tmp_path / "bar.vtu"))
    assert list(read.regions) == ["hard layer", "all"]
    np.testing.assert_array_equal(read.regions["hard layer"], np.flatnonzero(upper))
    np.testing.assert_array_equal(read.regions["all"], np.arange(96))


@pytest.mark.parametrize(
    ("name", "where", "words"),
    [
        ("", lambda x: x[:, 2] > 0.0, "the name of a region is '', but must be a text"),
        ("top", lambda x: x[:, 2] > 0.0, "region 'top' exists already; choose another name"),
        ("low", lambda x: x[:, 2], r"gave float64 of shape \(96,\), but must give a boolean for each of the 96 centres"),
        ("low", lambda x: x[0] > 0.0, r"gave bool of shape \(3,\)"),
        ("low", [0, 1], "where of region 'low' is of type list, but must be a function of the centres of tetrahedra"),
        ("low", lambda x: x[:, 2] > 1.0, r"no tetrahedron is in region 'low'; their centres span \[.*\] m: move its border"),
    ],
)
def test_wrong_regions(name, where, words):
    mesh = in_two()[0].with_region("top", lambda x: x[:, 2] > 0.0)
    with pytest.raises(MeshError, match=words):
        mesh.with_region(name, where)


@pytest.mark.parametrize("suffix", [".vtu", ".vtk", ".msh", ".mesh", ".inp"])
def test_tetrahedra_of_every_format(tmp_path, suffix):
    mesh = meshes.box_tets((1000, 2000, 3000), 2)
    path = tmp_path / f"box{suffix}"
    cells = [("triangle", mesh.surface_triangles), ("tetra", mesh.tets)]
    written = meshio.Mesh(mesh.points, cells[1:] if suffix == ".msh" else cells)  # its writer wants one type
    formats = {".msh": "gmsh", ".mesh": "medit", ".inp": "abaqus"}
    meshio.write(path, written, file_format=formats.get(suffix, suffix[1:]))
    read = meshes.load_tetmesh(path, scale=1e-3)
    assert np.array_equal(read.tets, mesh.tets)
    assert np.allclose(read.points, mesh.points * 1e-3, atol=1e-12)


@pytest.mark.parametrize("suffix", [".stl", ".obj", ".ply", ".vtk", ".vtu"])
def test_surfaces_of_every_format(tmp_path, suffix):
    sphere = meshes.sphere_triangles(30.0, 1)
    path = tmp_path / f"ball{suffix}"
    if suffix == ".stl":
        path.write_bytes(stl_bytes(sphere, "sphere"))
    else:
        meshio.write(path, meshio.Mesh(sphere.points, [("triangle", sphere.triangles)]))
    read = meshes.load_surface(path, scale=1e-3, closed=True)
    assert len(read.points) == 42 and len(read.triangles) == 80
    assert read.signed_volume == pytest.approx(sphere.signed_volume * 1e-9, rel=1e-6)


def test_colours_of_points_of_obj_files_are_left_out(tmp_path):
    sphere = meshes.sphere_triangles(1.0, 1)
    for more in (" 0.5 0.7 0.6", " 0.5 0.7 0.6 1.0", " 1.0"):
        lines = [f"v {x!r} {y!r} {z!r}{more}" for x, y, z in sphere.points.tolist()]
        lines += [f"f {a} {b} {c}" for a, b, c in (sphere.triangles + 1).tolist()]
        path = tmp_path / "ball.obj"
        path.write_text("\n".join(lines))
        read = meshes.load_surface(path, closed=True)
        assert len(read.points) == 42 and read.signed_volume == pytest.approx(sphere.signed_volume, rel=1e-12)


def test_faces_of_obj_files_may_count_points_from_their_end(tmp_path):
    """-1 is the last point before the face: with texture and normals that have numbers of their own, squares, points between."""
    corners = [(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)]
    squares = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    lines = ["vt 0 0", "vn 0 0 1", "vn 1 0 0", "o cube", *(f"v {x} {y} {z}" for x, y, z in corners), "s off"]
    lines += ["f " + " ".join(f"{corner - 8}/-1/-2" for corner in square) for square in squares[:3]]
    lines += ["vt 1 1", "v 9 9 9", "v 9 9 8"]
    lines += ["  f\t" + " ".join(f"{corner - 10}//-1" for corner in square) for square in squares[3:5]]
    lines += ["f " + " ".join(f"{corner + 1 if corner % 2 else corner - 10}" for corner in squares[5])]
    path = tmp_path / "cube.obj"
    path.write_text("\n".join(lines))
    read = meshes.load_surface(path, closed=True)
    assert read.signed_volume == pytest.approx(1.0, rel=1e-12) and len(read.triangles) == 12
    path.write_text("\n".join([*lines[:12], "f -1 -2 -9"]))
    with pytest.raises(meshes.MeshError, match="a face refers to point -9 where it has 8"):
        meshes.load_surface(path)


def test_stl_in_text_is_read_with_empty_lines_and_refused_where_it_is_cut_off(tmp_path):
    pytest.importorskip("trimesh", reason="the extra mesh is not installed")
    sphere = meshes.sphere_triangles(1.0, 1)
    corners = sphere.points[sphere.triangles].tolist()
    facets = ["\n".join(f"  vertex {x!r} {y!r} {z!r}" for x, y, z in facet) for facet in corners]
    text = "\n\n".join(f" facet normal 0 0 0\n  outer loop\n{facet}\n  endloop\n endfacet" for facet in facets)
    path = tmp_path / "ball.stl"
    path.write_text(f"solid scene\n{text}\n\nendsolid scene\n")
    read = meshes.load_surface(path, closed=True)
    assert len(read.points) == 42 and read.signed_volume == pytest.approx(sphere.signed_volume, rel=1e-6)
    whole = path.read_text()
    path.write_text(whole[: whole.rindex(" facet")])  # after a triangle
    with pytest.raises(meshes.MeshError, match=r"ball\.stl: the file cannot be read as \.stl \(it is cut off: a text"):
        meshes.load_surface(path)


def test_glb_files_are_read_as_their_scene_places_them(tmp_path):
    trimesh = pytest.importorskip("trimesh", reason="the extra mesh is not installed")
    there = np.eye(4)
    there[:3, 3] = 0.0, 0.0, 3.0
    scene = trimesh.Scene([trimesh.creation.box((1.0, 1.0, 1.0))])
    scene.add_geometry(trimesh.creation.box((2.0, 1.0, 1.0)), transform=there)
    path = tmp_path / "two.glb"
    path.write_bytes(scene.export(file_type="glb"))
    read = meshes.load_surface(path)
    assert read.signed_volume == pytest.approx(3.0, rel=1e-6)
    assert read.points.min(axis=0) == pytest.approx((-1.0, -0.5, -0.5)) and read.points.max(axis=0) == pytest.approx(
        (1.0, 0.5, 3.5)
    )
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(meshes.MeshError, match=r"two.glb: the file cannot be read as .glb"):
        meshes.load_surface(path)


def test_quads_are_cut_and_repeated_points_merged(tmp_path):
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    path = tmp_path / "cube.vtu"
    meshio.write(path, meshio.Mesh(corners[np.ravel(faces)], [("quad", np.arange(24).reshape(6, 4))]))
    cube = meshes.load_surface(path, closed=True)
    assert len(cube.points) == 8 and len(cube.triangles) == 12 and cube.signed_volume == pytest.approx(1.0)


def test_wrong_files_are_named(tmp_path):
    good = meshes.save_tetmesh(meshes.box_tets((1, 1, 1), 1), tmp_path / "brick.vtu")
    sphere = meshes.sphere_triangles(1.0, 0)
    shell = tmp_path / "shell.vtu"
    meshio.write(shell, meshio.Mesh(sphere.points, [("triangle", sphere.triangles)]))
    opened = tmp_path / "open.vtu"
    meshio.write(opened, meshio.Mesh(sphere.points, [("triangle", sphere.triangles[1:])]))
    inverted = tmp_path / "inverted.vtu"
    meshio.write(inverted, meshio.Mesh(UNIT, [("tetra", [[0, 2, 1, 3]])]))
    holes = tmp_path / "holes.vtu"
    meshio.write(holes, meshio.Mesh(with_point(1, [math.nan, 0, 0]), [("tetra", [[0, 1, 2, 3]])]))
    noise = [tmp_path / f"noise{suffix}" for suffix in (".vtu", ".vtk", ".msh", ".stl", ".ply")]
    for path in noise:
        path.write_text("no mesh\n")
    cases = [
        (
            lambda: meshes.load_tetmesh(tmp_path / "brik.vtu"),
            "no such file; did you mean 'brick.vtu'.*shell.vtu",
        ),
        (lambda: meshes.load_tetmesh(tmp_path / "no" / "a.vtu"), "folder .* does not exist either"),
        (lambda: meshes.load_tetmesh(tmp_path / "a.stl"), r"suffix is '\.stl', but must be one of \.vtu"),
        (lambda: meshes.load_tetmesh(shell), "no linear tetrahedra .its cells: triangle"),
        (lambda: meshes.load_tetmesh(inverted), "inverted"),
        (lambda: meshes.load_tetmesh(holes), "node 1"),
        (lambda: meshes.load_tetmesh(good, scale=0.0), "scale"),
        (lambda: meshes.load_surface(good), "no triangles .its cells: tetra"),
        (lambda: meshes.load_surface(opened, closed=True), "not closed: 3 edges"),
        *[(lambda path=path: meshes.load_tetmesh(path), "cannot be read") for path in noise[:3]],
        *[(lambda path=path: meshes.load_surface(path), "(cannot be read|no triangles)") for path in (*noise[:2], *noise[3:])],
    ]
    for call, says in cases:
        with pytest.raises(MeshError, match=says) as caught:
            call()
        assert str(tmp_path) in str(caught.value)
    assert not meshes.load_surface(opened).is_closed


# Quality


def test_quality_of_a_regular_and_a_corner_tetrahedron():
    """Regular: scaled Jacobian 1, dihedral acos(1/3), radius ratio 1. Corner of a cube: acos(1/sqrt 3)."""
    regular = tet(np.array([[1.0, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]), [[0, 1, 2, 3]])
    measured = meshes.quality(regular)
    assert measured.scaled_jacobian_min == pytest.approx(1.0)
    assert measured.min_dihedral_deg == pytest.approx(math.degrees(math.acos(1 / 3)))
    assert measured.radius_ratio_max == pytest.approx(1.0)
    assert meshes.quality(tet()).min_dihedral_deg == pytest.approx(math.degrees(math.acos(1 / math.sqrt(3))))
    text = meshes.describe(regular)
    assert regular.digest in text and "70.5 deg" in text and "tetrahedra       1" in text


def test_quality_against_its_definition():
    """Twin: sqrt(2) det / max over the corners of the product of the three edges that meet there."""
    mesh = meshes.ball_tets(1.0, 4)
    expected = []
    for corners in mesh.points[mesh.tets]:
        det = np.linalg.det(corners[1:] - corners[0])
        lengths = np.linalg.norm(corners[:, None] - corners[None], axis=2) + np.eye(4)
        expected.append(math.sqrt(2.0) * det / lengths.prod(axis=1).max())
    measured = meshes.quality(mesh)
    assert measured.scaled_jacobian_min == pytest.approx(min(expected), rel=1e-10)
    assert measured.scaled_jacobian_median == pytest.approx(np.median(expected), rel=1e-10)
    assert min(expected) < 0.9 * np.median(expected)


def test_a_binary_stl_is_read_as_meshio_reads_it(tmp_path):
    """Its triangles are in this order, and its points in that in which they come first; equal ones, also 0 and -0, are one."""
    rng = np.random.default_rng(3)
    corners = rng.integers(-2, 3, (200, 3, 3)).astype("<f4")
    corners[corners == 0.0] *= rng.choice([-1.0, 1.0], int((corners == 0.0).sum())).astype("<f4")
    table = np.zeros(200, dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    table["corners"] = corners
    (tmp_path / "a.stl").write_bytes(b"solid a".ljust(80) + np.uint32(200).tobytes() + table.tobytes())
    ours, theirs = meshes.load_surface(tmp_path / "a.stl"), meshio.read(tmp_path / "a.stl")
    cells = theirs.cells[0].data
    whole = (cells[:, 0] != cells[:, 1]) & (cells[:, 1] != cells[:, 2]) & (cells[:, 2] != cells[:, 0])
    assert 0 < whole.sum() < 200
    np.testing.assert_array_equal(ours.points[ours.triangles], theirs.points[cells[whole]])
    assert len(ours.points) == len(np.unique(ours.points + 0.0, axis=0)) <= 125


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_distinct_rows_are_those_of_numpy(kind):
    rows = np.random.default_rng(4).integers(-2, 3, (500, 3)).astype(kind)
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    ours = distinct_rows(rows)
    np.testing.assert_array_equal(ours[0], first)
    np.testing.assert_array_equal(ours[1], inverse.reshape(-1))
