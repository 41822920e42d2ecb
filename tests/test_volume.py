"""Surfaces that are filled with tetrahedra, surfaces that cross themselves, and the wrong unit of length."""

from __future__ import annotations

import sys
from pathlib import Path

import meshio
import numpy as np
import pytest

import femsim as fs
from meshes.volume import crossing_triangles


def two_boxes(shift: tuple[float, float, float], turn: float = 0.3) -> fs.TriMesh:
    """Two boxes of 20 mm in one surface, the second turned about z and shifted."""
    box = fs.box_triangles((0.02, 0.02, 0.02))
    c, s = np.cos(turn), np.sin(turn)
    other = box.points @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) + shift
    points, triangles = np.concatenate([box.points, other]), np.concatenate([box.triangles, box.triangles + len(box.points)])
    return fs.make_trimesh(points, triangles, name="boxes", source="test")


def crossing_twin(surface: fs.TriMesh) -> list[int]:
    """Triangles that an edge without a common corner pierces, pair by pair, by solving for where they meet."""
    found = []
    for number, corners in enumerate(surface.triangles):
        a, b, c = surface.points[corners]
        for other in surface.triangles:
            for i in range(3):
                ends = other[[i, (i + 1) % 3]]
                if set(ends) & set(corners):
                    continue
                p, q = surface.points[ends]
                system = np.column_stack([b - a, c - a, p - q])
                if abs(np.linalg.det(system)) < 1e-18:
                    continue
                s, t, r = np.linalg.solve(system, p - a)
                if s > 0 and t > 0 and s + t < 1 and 0 < r < 1:
                    found.append(number)
    return sorted(set(found))


@pytest.mark.parametrize("shift", [(0.012, 0.003, 0.004), (0.0, 0.0, 0.015), (0.03, 0.0, 0.0), (0.0, 0.0, 0.0201)])
@pytest.mark.parametrize("few", [0, 20_000])
def test_crossing_triangles_are_those_of_the_slow_twin(
    shift: tuple[float, float, float], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among those that a tree finds in reach, and among all."""
    monkeypatch.setattr("meshes.volume._FEW_PAIRS", few)
    surface = two_boxes(shift)
    expected = crossing_twin(surface)
    assert crossing_triangles(surface).tolist() == expected
    assert bool(expected) == (np.linalg.norm(shift) < 0.02)


def test_good_surfaces_do_not_cross_themselves() -> None:
    for surface in (fs.sphere_triangles(0.01, 3), fs.box_tets((0.1, 0.02, 0.02), (10, 2, 2)).surface()):
        assert not len(crossing_triangles(surface))


@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_rounding_on_flat_sides_is_no_crossing(precision: type) -> None:
    """Flat sides of many triangles, turned and put far off: none of their edges lies in its plane exactly any more."""
    box = fs.box_tets((0.1, 0.02, 0.02), (4, 4, 4)).surface()
    for seed in range(25):
        turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((3, 3)))[0]
        turned = (box.points @ (turn * np.linalg.det(turn)).T + (0.1, -0.2, 0.3)).astype(precision)
        assert not len(crossing_triangles(fs.make_trimesh(turned, box.triangles, name="box", source="test")))


def test_a_surface_file_is_filled(tmp_path: Path) -> None:
    pytest.importorskip("pytetwild")
    sphere = fs.sphere_triangles(10.0, 2)
    meshio.Mesh(sphere.points, [("triangle", sphere.triangles)]).write(tmp_path / "ball.stl")
    mesh = fs.load_volume(tmp_path / "ball.stl", edge_length=0.005, scale=1e-3)
    assert mesh.volume == pytest.approx(1e-9 * sphere.signed_volume, rel=5e-3)
    assert mesh.name == "ball" and mesh.source.endswith("ball.stl")


def test_tetrahedra_are_taken_as_they_are(tmp_path: Path) -> None:
    box = fs.box_tets((2.0, 1.0, 1.0), (2, 1, 1))
    mesh = fs.load_volume(fs.save_tetmesh(box, tmp_path / "box.vtu"), edge_length=1.0, scale=0.1)
    np.testing.assert_array_equal(mesh.tets, box.tets)
    np.testing.assert_allclose(mesh.points, 0.1 * box.points, rtol=1e-15)


def test_bad_surfaces_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = fs.box_triangles((0.02, 0.02, 0.02))
    opened = fs.make_trimesh(box.points, box.triangles[1:], name="open", source="test")
    with pytest.raises(fs.MeshError, match="not closed: 3 edges"):
        fs.tetrahedralize(opened, 0.005)
    third = np.concatenate([box.triangles, [[0, 1, 7]]])  # an edge with three triangles
    with pytest.raises(fs.MeshError, match="not closed"):
        fs.tetrahedralize(fs.make_trimesh(box.points, third, name="fin", source="test"), 0.005)
    with pytest.raises(fs.MeshError, match="inside out"):
        fs.tetrahedralize(fs.make_trimesh(box.points, box.triangles[:, ::-1], name="in", source="test"), 0.005)
    with pytest.raises(fs.MeshError, match=r"crosses itself: .* pierce .* overlap itself"):
        fs.tetrahedralize(two_boxes((0.012, 0.003, 0.004)), 0.005)
    with pytest.raises(fs.MeshError, match=r"it is 0.02 x 0.02 x 0.02 m, but edge_length is 0.03 m, longer .*mesh_unit=m "):
        fs.tetrahedralize(box, 0.03)
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(fs.MeshError, match="edge_length"):
            fs.tetrahedralize(box, wrong)
    millimetres = fs.box_triangles((20.0, 20.0, 20.0))
    with pytest.raises(fs.MeshError, match=r"20 x 20 x 20 m .* millimetres, .*mesh_unit=mm"):
        fs.tetrahedralize(millimetres, 0.005)
    monkeypatch.setitem(sys.modules, "pytetwild", None)
    with pytest.raises(fs.MeshError, match=r"pytetwild, .*femsim\[mesh\]"):
        fs.tetrahedralize(box, 0.005)


def hollow(shift: float = 0.0, cavity: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """A block with a cavity inside, shifted sideways, of which only some triangles are there."""
    outer, inner = fs.box_triangles((0.012, 0.025, 0.05)), fs.box_triangles((0.004, 0.012, 0.03))
    walls = inner.triangles[cavity, ::-1] + len(outer.points)
    return np.concatenate([outer.points, inner.points + np.array([shift, 0.0, 0.0])]), np.concatenate([outer.triangles, walls])


@pytest.mark.parametrize(
    ("points", "triangles", "message"),
    [
        (*hollow(cavity=slice(2, None)), "is not closed: 4 edges"),
        (*hollow(shift=0.006), "crosses itself: edges of other parts pierce 4 of its 24 triangles"),
        (np.diag([0.0, 0.0, 1.0]), np.array([[0, 1, 2]] * 4), "each of its triangles has two corners in one place"),
        (np.diag([1.0, 1.0, np.nan]), np.array([[0, 1, 2]]), "not finite"),
    ],
)
def test_files_that_are_no_body(points: np.ndarray, triangles: np.ndarray, message: str, tmp_path: Path) -> None:
    path = tmp_path / "body.obj"
    meshio.Mesh(points, [("triangle", triangles)]).write(path)
    with pytest.raises(fs.MeshError, match=rf"body\.obj.*{message}"):
        fs.load_volume(path, edge_length=0.005)


def test_a_cavity_of_a_surface_file_is_a_chamber(tmp_path: Path) -> None:
    pytest.importorskip("pytetwild")
    points, triangles = hollow()
    meshio.Mesh(points, [("triangle", triangles)]).write(tmp_path / "finger.stl")
    scene = fs.Scene("hollow", theta=1.0)
    finger = scene.add_soft("finger", fs.load_volume(tmp_path / "finger.stl", edge_length=0.006), "ecoflex_00_50")
    scene.pressurize(finger, lambda t: 1e3)
    assert scene.couplings[0].volume == pytest.approx(0.004 * 0.012 * 0.03, rel=1e-3)


def test_a_rest_shape_that_overlaps_itself_is_refused() -> None:
    box = fs.box_tets((0.02, 0.02, 0.02), 1)
    points = np.concatenate([box.points, box.points @ np.diag([1.0, 0.9, 0.8]) + (0.012, 0.003, 0.004)])
    both = fs.make_tetmesh(points, np.concatenate([box.tets, box.tets + len(box.points)]), name="both", source="test")
    with pytest.raises(fs.MeshError, match="'both' from test crosses itself"):
        fs.Scene("overlap", theta=1.0).add_soft("body", both, "ecoflex_00_50")


def test_bodies_in_millimetres_are_noticed() -> None:
    scene = fs.Scene("units", theta=1.0)
    scene.add_soft("cube", fs.box_tets((20.0, 20.0, 20.0), 1), "ecoflex_00_50")
    box = fs.box_triangles((20.0, 20.0, 30.0))
    scene.add_rigid("block", fs.Mesh(box.points, box.triangles), mass=1.0, position=(0, 0, 50.0))
    small = fs.box_tets((20.0, 20.0, 20.0), 1)
    scene.add_soft("small", small, "ecoflex_00_50", scale=fs.length_scale("mm"), position=(0, 0, 90.0))
    notes = fs.Simulation(scene).notes
    assert len(notes) == 2, notes
    for note, words in zip(notes, ("cube is 20 m long", "block is 30 m long"), strict=True):
        assert words in note and "scale=1e-3" in note and "mesh_unit=mm" in note and "largest_size=" in note


def test_units_of_length() -> None:
    assert [fs.length_scale(unit) for unit in ("m", "cm", "mm")] == [1.0, 0.01, 0.001]
    with pytest.raises(fs.MeshError, match=r"unit of length is 'inch'; allowed are 'm', 'cm', 'mm'"):
        fs.length_scale("inch")
