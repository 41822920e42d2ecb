"""The detector of deforming features against slow twins, closed cases and libigl.

Twins: ``signed_distance`` for ``vertex_faces`` and ``depth_inside``, ``segment_distance`` for the closest contact of strands. All
contacts that ``edge_edges`` and ``point_segments`` write are compared in test_deformable_twins, trees, normals and closest points
in test_contact_geometry.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import femsim as fs
import meshes
from contact import ContactError
from contact.deformable import DeformableContacts, DeformableDetector, Strand, Surface
from contact.side_kernels import EDGE_EDGE, POINT_SEGMENT, VERTEX_FACE
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix

BOTH = np.array([[False, True], [True, False]])


def surface(mesh: fs.TetMesh, depth: float = 2e-3) -> tuple[Surface, np.ndarray]:
    shell = mesh.surface()
    return Surface(len(shell.points), shell.triangles, np.full(len(shell.triangles), depth)), shell.points


def turned(points: np.ndarray, vector: tuple[float, float, float]) -> np.ndarray:
    return points @ quaternion_to_matrix(quaternion_from_vector(np.array(vector))).T


def shifted(points: np.ndarray, x: float, y: float, z: float) -> np.ndarray:
    return points + np.array([x, y, z])


def strand(points: np.ndarray, radius: float) -> Strand:
    return Strand(np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))]), radius)


def closest_on_segment(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a + np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0) * (b - a)


def closest_on_triangle(p: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Slow twin: the projection where it lies in the triangle, else the nearest point of the three sides."""
    a, b, c = corners
    weights, *_ = np.linalg.lstsq(np.column_stack([b - a, c - a]), p - a, rcond=None)
    if weights.min() >= 0 and weights.sum() <= 1:
        return a + weights @ np.array([b - a, c - a])
    sides = [closest_on_segment(p, *pair) for pair in ((a, b), (b, c), (c, a))]
    return min(sides, key=lambda q: float(np.linalg.norm(p - q)))


def signed_distance(p: np.ndarray, points: np.ndarray, triangles: np.ndarray) -> float:
    """Slow twin: distance to the nearest triangle, negative where a ray crosses the surface an odd number of times."""
    distance = min(float(np.linalg.norm(p - closest_on_triangle(p, points[t]))) for t in triangles)
    direction, crossings = np.array([0.3217, 0.4133, 0.8519]), 0
    for a, b, c in points[triangles]:
        matrix = np.column_stack([b - a, c - a, -direction])
        if abs(np.linalg.det(matrix)) < 1e-18:
            continue
        s, t, along = np.linalg.solve(matrix, p - a)
        crossings += s >= 0 and t >= 0 and s + t <= 1 and along > 0
    return -distance if crossings % 2 else distance


def segment_distance(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> float:
    """Slow twin: distance of two segments by the four ends and, where they cross, the common perpendicular."""
    ends = [(p, closest_on_segment(p, c, d)) for p in (a, b)] + [(p, closest_on_segment(p, a, b)) for p in (c, d)]
    best = min(float(np.linalg.norm(p - q)) for p, q in ends)
    s, t = np.linalg.lstsq(np.column_stack([b - a, c - d]), c - a, rcond=None)[0]
    if 0 <= s <= 1 and 0 <= t <= 1:
        best = min(best, float(np.linalg.norm(a + s * (b - a) - c - t * (d - c))))
    return best


def check_geometry(contacts: DeformableContacts, points: np.ndarray, radii: np.ndarray) -> None:
    """Weights sum to one; the sides are the weighted points moved by the radius, gap times normal apart; frames are good."""
    np.testing.assert_allclose(contacts.weight.sum(axis=2), 1.0, atol=1e-12)
    assert (contacts.weight >= 0).all() and (contacts.point[contacts.weight > 0] >= 0).all()
    centre = np.einsum("msi,msic->msc", contacts.weight, points[contacts.point])
    normal = contacts.frame[:, 0]
    r = radii[contacts.body]
    np.testing.assert_allclose(contacts.position[:, 0], centre[:, 0] - r[:, :1] * normal, atol=1e-14)
    np.testing.assert_allclose(contacts.position[:, 1], centre[:, 1] + r[:, 1:] * normal, atol=1e-14)
    np.testing.assert_allclose(contacts.position[:, 0] - contacts.position[:, 1], contacts.gap[:, None] * normal, atol=1e-11)
    np.testing.assert_allclose(
        contacts.frame @ contacts.frame.transpose(0, 2, 1), np.tile(np.eye(3), (len(contacts), 1, 1)), atol=1e-12
    )
    np.testing.assert_allclose(np.linalg.det(contacts.frame), 1.0, atol=1e-12)
    assert len(np.unique(contacts.key)) == len(contacts)


@pytest.fixture(scope="module")
def hollow() -> tuple[Surface, np.ndarray]:
    """A block with a notch, so that it has concave edges, turned to no axis."""
    box = fs.box_tets((0.06, 0.04, 0.04), (6, 4, 4))
    middle = box.points[box.tets].mean(axis=1)
    low = middle.min(axis=0)
    notch = (np.abs(middle[:, 0] - 0.5 * (box.points[:, 0].min() + box.points[:, 0].max())) < 0.01) & (
        middle[:, 2] > low[2] + 0.02
    )
    used, tets = np.unique(box.tets[~notch], return_inverse=True)
    mesh = fs.make_tetmesh(box.points[used], tets.reshape(-1, 4), name="notch", source="test")
    body, points = surface(mesh, depth=0.005)
    return body, turned(points, (0.3, -0.5, 0.8))


def near_points(points: np.ndarray, count: int, spread: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    return points[rng.integers(0, len(points), count)] + spread * rng.standard_normal((count, 3))


def test_distances_to_a_surface_are_those_of_the_slow_twin(hollow: tuple[Surface, np.ndarray]) -> None:
    """Every point within the margin, or inside down to the depth, has its signed distance as its least gap; others none."""
    body, points = hollow
    probes = near_points(points, 150, 0.004)
    margin = 0.003
    detector = DeformableDetector([Strand(np.arange(150.0), 0.0), body], BOTH, np.concatenate([probes, points]))
    contacts = detector.detect(np.concatenate([probes, points]), margin)
    check_geometry(contacts, np.concatenate([probes, points]), np.zeros(2))
    own = contacts.kind == VERTEX_FACE
    inside = 0
    for k, p in enumerate(probes):
        expected = signed_distance(p, points, body.triangles)
        gaps = contacts.gap[own & (contacts.point[:, 0, 0] == k)]
        if -0.005 < expected < margin:
            np.testing.assert_allclose(gaps.min(), expected, atol=1e-13)
            assert expected > 0 or len(gaps) == 1
            inside += expected < 0
        elif expected >= margin:
            assert not len(gaps)
    assert inside > 20


def wedge(depth: float) -> tuple[Surface, np.ndarray]:
    """A prism with edges of 1 m, three of which have 60 degrees between their faces."""
    points = np.array(
        [[np.cos(a) / np.sqrt(3.0), np.sin(a) / np.sqrt(3.0), z] for z in (0, 1) for a in np.arange(3) * np.pi / 1.5]
    )
    sides = [(k, (k + 1) % 3, (k + 1) % 3 + 3) for k in range(3)] + [(k, (k + 1) % 3 + 3, k + 3) for k in range(3)]
    return Surface(6, np.array([(2, 1, 0), (3, 4, 5), *sides]), np.full(8, depth)), points


@pytest.mark.parametrize("shape", ["ball", "wedge"])
def test_a_small_body_over_a_facet_of_a_large_one_is_not_in_it(shape: str) -> None:
    """Vertices at its side face other facets, which they are behind: sizes of elements off, they were 10 times its size deep."""
    large, its = surface(meshes.ball_tets(1.0, 4), depth=0.3) if shape == "ball" else wedge(0.3)
    small, own = surface(meshes.ball_tets(0.02, 4))
    rng, margin = np.random.default_rng(0), 0.002
    detector = DeformableDetector([large, small], BOTH, np.concatenate([its, own]))
    for k in range(100):
        corners = its[large.triangles[rng.integers(len(large.triangles))]]
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
        place = rng.dirichlet(np.ones(3)) @ corners + 0.021 * normal / np.linalg.norm(normal)
        points = np.concatenate([its, turned(own, tuple(rng.normal(size=3))) + place])
        contacts = detector.detect(points, margin)
        assert contacts.gap.min(initial=np.inf) > 0.0, k
        check_geometry(contacts, points, np.zeros(2))


def test_points_beside_the_seam_of_two_boxes_are_inside() -> None:
    """A slab pressed by 0.1 mm on two flush boxes of one surface: its nodes are nearer to the side of the other box."""
    box, its = surface(meshes.box_tets((0.1, 0.1, 0.1), 1), depth=0.01)
    pair = Surface(16, np.concatenate([box.triangles, box.triangles + 8]), np.full(24, 0.01), rigid=True)
    both = np.concatenate([shifted(its - its.max(axis=0), 0.0, 0.05, 0.0), shifted(its - its.max(axis=0), 0.1, 0.05, 0.0)])
    slab, own = surface(meshes.box_tets((0.04, 0.04, 0.01), (8, 8, 1)))
    for past in (-5e-5, 0.0, 5e-5):
        points = np.concatenate([both, shifted(own - own.mean(axis=0), past, 0.0, 0.005 - 1e-4)])
        contacts = DeformableDetector([pair, slab], BOTH, points).detect(points, 1e-3)
        held = contacts.point[(contacts.kind == VERTEX_FACE) & (contacts.body[:, 0] == 1), 0, 0]
        assert len(np.unique(held)) == 81
        np.testing.assert_allclose(contacts.gap[contacts.kind == VERTEX_FACE], -1e-4, atol=1e-12)


def test_distances_to_a_surface_are_those_of_libigl(hollow: tuple[Surface, np.ndarray]) -> None:
    igl = pytest.importorskip("igl", reason="libigl is not installed")
    body, points = hollow
    probes = near_points(points, 2000, 0.003)
    where = np.concatenate([probes, points])
    contacts = DeformableDetector([Strand(np.arange(2000.0), 0.0), body], BOTH, where).detect(where, 0.004)
    expected = igl.signed_distance(probes, points, body.triangles)[0]
    own = contacts.kind == VERTEX_FACE
    least = np.full(2000, np.inf)
    np.minimum.at(least, contacts.point[own, 0, 0], contacts.gap[own])
    seen = np.abs(expected) < 0.004
    assert seen.sum() > 1000
    np.testing.assert_allclose(least[seen], expected[seen], atol=1e-12)


def test_a_moved_and_bent_surface_needs_no_new_tree(hollow: tuple[Surface, np.ndarray]) -> None:
    body, points = hollow
    probes = near_points(points, 100, 0.004)
    start = np.concatenate([probes, points])
    detector = DeformableDetector([Strand(np.arange(100.0), 0.0), body], BOTH, start)
    moved = shifted(turned(start * [1.3, 0.8, 1.0] + 0.02 * np.sin(40 * start[:, [1, 2, 0]]), (1.0, 2.0, -0.5)), 0.5, 0.1, -3.0)
    fresh = DeformableDetector([Strand(np.arange(100.0), 0.0), body], BOTH, moved)
    for _ in range(2):
        a, b = detector.detect(moved, 0.003), fresh.detect(moved, 0.003)
        order_a, order_b = np.argsort(a.key), np.argsort(b.key)
        assert len(a) > 50
        np.testing.assert_array_equal(a.key[order_a], b.key[order_b])
        np.testing.assert_allclose(a.gap[order_a], b.gap[order_b], atol=1e-15)


def test_strands_are_as_far_apart_as_the_slow_twin_says() -> None:
    """Random pairs of polylines: the least gap is the least distance of their segments minus the radii."""
    rng = np.random.default_rng(5)
    line = np.linspace(-0.1, 0.1, 12)
    seen = set()
    for _ in range(40):
        a = np.column_stack([line, 0 * line, 0 * line]) + 0.004 * rng.standard_normal((12, 3))
        turn = (*rng.uniform(-0.3, 0.3, 2), rng.uniform(0.7, 2.4))
        b = shifted(turned(np.column_stack([line, 0 * line, 0 * line])[:9], turn), 0.0, 0.0, 0.01)
        where = np.concatenate([a, b])
        contacts = DeformableDetector([strand(a, 0.003), strand(b, 0.002)], BOTH, where).detect(where, 0.03)
        check_geometry(contacts, where, np.array([0.003, 0.002]))
        expected = min(segment_distance(*p, *q) for p in itertools.pairwise(a) for q in itertools.pairwise(b))
        least = contacts.gap.argmin()
        np.testing.assert_allclose(contacts.gap[least], expected - 0.005, atol=1e-12)
        seen.add(int(contacts.kind[least]))
    assert seen == {EDGE_EDGE, POINT_SEGMENT}


@pytest.mark.parametrize("swap", [False, True])
def test_strands_along_each_other_are_in_contact_at_the_points_of_the_finer(swap: bool) -> None:
    """Two parallel lines: every point of the finer one, and of the other one its ends."""
    fine, coarse = (np.column_stack([np.linspace(-0.1, 0.1, n), np.zeros(n), np.zeros(n)]) for n in (31, 20))
    bodies = [shifted(coarse, 0.0, 0.0, 0.0045), fine][:: -1 if swap else 1]
    where = np.concatenate(bodies)
    contacts = DeformableDetector([strand(p, 0.002) for p in bodies], BOTH, where).detect(where, 1e-3)
    assert len(contacts) == 31  # the ends lie on each other and count once
    assert len(np.unique(contacts.point[contacts.body[:, 0] == (0 if swap else 1), 0, 0])) >= 29
    np.testing.assert_allclose(contacts.gap, 5e-4, atol=1e-14)


def test_crossing_edges_of_cubes_give_one_contact() -> None:
    """Two cubes on their edges, crossed: one edge-edge contact with the gap and the normal of the closed form."""
    body, points = surface(fs.box_tets((0.1, 0.1, 0.1), 1), depth=0.05)
    points = points - points.mean(axis=0)
    half = 0.1 / np.sqrt(2)
    low = turned(points, (np.pi / 4, 0.0, 0.0))
    for gap in (0.004, -0.003):
        high = shifted(turned(turned(points, (np.pi / 4, 0.0, 0.0)), (0.0, 0.0, 1.1)), 0.002, 0.001, 2 * half + gap)
        where = np.concatenate([high, low])
        contacts = DeformableDetector([body, body], BOTH, where).detect(where, 0.01)
        check_geometry(contacts, where, np.zeros(2))
        assert contacts.kind.tolist() == [EDGE_EDGE]
        np.testing.assert_allclose(contacts.gap, gap, atol=1e-14)
        np.testing.assert_allclose(contacts.frame[0, 0], [0.0, 0.0, 1.0], atol=1e-12)


def test_edges_that_crossed_go_on_as_lines_for_half_their_length() -> None:
    """Then their points are as far apart as before, along the normal; further out, and where they are parallel, weights stay."""
    body, points = surface(fs.box_tets((0.1, 0.1, 0.1), 1), depth=0.05)
    low = turned(points - points.mean(axis=0), (np.pi / 4, 0.0, 0.0))
    rise = shifted(turned(low, (0.0, 0.0, 1.1)), 0.0, 0.0, 0.2 / np.sqrt(2) + 0.004)
    contacts = DeformableDetector([body, body], BOTH, np.concatenate([rise, low])).detect(np.concatenate([rise, low]), 0.01)
    assert contacts.kind.tolist() == [EDGE_EDGE]
    tilt = (0.0, 0.05, 0.0)
    for way, beyond in ((0.03, False), (0.09, True), (-0.09, True)):
        where = np.concatenate([turned(shifted(rise, way, 0.0, 0.0), tilt), turned(low, tilt)])
        weight, frame = contacts.on_same_features(where)
        place = np.einsum("msi,msic->msc", weight, where[contacts.point])
        np.testing.assert_allclose(frame[0, 0], turned(np.array([0.0, 0.0, 1.0]), tilt), atol=1e-12)
        np.testing.assert_allclose(place[0, 0] - place[0, 1], 0.004 * frame[0, 0], atol=1e-12)
        np.testing.assert_allclose(weight.sum(axis=2), 1.0, atol=1e-14)
        assert (weight.min() < -0.3) == beyond
    for gone in (shifted(rise, 0.12, 0.0, 0.0), shifted(turned(low, (0.0, 0.0, 0.04)), 0.0, 0.0, 0.145)):
        weight, frame = contacts.on_same_features(np.concatenate([gone, low]))
        np.testing.assert_array_equal(weight, contacts.weight)
        assert not frame.any()


def test_a_vertex_beside_its_face_stays_on_the_plane_of_it() -> None:
    """By half of its height; further out, and where it is on an edge or a vertex, weights stay."""
    body, points = surface(fs.box_tets((0.1, 0.1, 0.1), 1), depth=0.05)
    corner = turned(points - points.mean(axis=0), (np.pi / 4, np.arctan(np.sqrt(0.5)), 0.0))
    tip = shifted(corner, *(np.array([0.01, 0.02, 0.052]) - corner[corner[:, 2].argmin()]))
    detector = DeformableDetector([body, body], BOTH, np.concatenate([points, tip]))
    contacts = detector.detect(np.concatenate([points, tip]), 0.003)
    assert contacts.kind.tolist() == [VERTEX_FACE] and (contacts.point[0, 1] >= 0).all()
    tilt = (0.2, -0.1, 0.3)
    for way, beyond in ((0.005, False), (0.06, True), (0.2, True)):
        where = np.concatenate([turned(points, tilt), turned(shifted(tip, way, 0.0, 0.0), tilt)])
        weight, frame = contacts.on_same_features(where)
        if way == 0.2:
            np.testing.assert_array_equal(weight, contacts.weight)
            assert not frame.any()
            continue
        place = np.einsum("msi,msic->msc", weight, where[contacts.point])
        np.testing.assert_allclose(frame[0, 0], turned(np.array([0.0, 0.0, 1.0]), tilt), atol=1e-12)
        np.testing.assert_allclose(place[0, 0] - place[0, 1], 0.002 * frame[0, 0], atol=1e-12)
        np.testing.assert_allclose(weight.sum(axis=2), 1.0, atol=1e-14)
        assert (weight.min() < 0.0) == beyond


@pytest.mark.parametrize("gap", [1e-3, 1e-12, 0.0, -1e-5])
def test_stacked_cubes_of_the_same_mesh_are_in_contact_vertex_by_vertex(gap: float) -> None:
    """All 25 pairs of vertices come once, each with the vertical normal, also at the rim where three faces meet."""
    body, points = surface(fs.box_tets((0.1, 0.1, 0.1), 4))
    where = np.concatenate([shifted(points, 0.0, 0.0, 0.1 + gap), points])
    contacts = DeformableDetector([body, body], BOTH, where).detect(where, 2e-3)
    pairs = {(int(a), int(b)) for a, b in zip(contacts.point[:, 0, 0], contacts.point[:, 1].max(axis=1), strict=True)}
    assert len(contacts) == len(pairs) == 25
    np.testing.assert_allclose(contacts.frame[:, 0], np.tile([0, 0, 1.0], (25, 1)), atol=1e-9)
    np.testing.assert_allclose(contacts.gap, gap, atol=1e-14)


def test_a_rim_that_hangs_over_by_a_hair_is_not_locked_sideways() -> None:
    """A slightly wider cube on a cube: its corners stand beside the faces below, but no contact there looks sideways."""
    body, points = surface(fs.box_tets((0.1, 0.1, 0.1), 4))
    wider = (points - points.mean(axis=0)) * [1.002, 1.002, 1.0] + points.mean(axis=0) + [0, 0, 0.1 + 1e-6]
    where = np.concatenate([wider, points])
    contacts = DeformableDetector([body, body], BOTH, where).detect(where, 2e-3)
    assert len(contacts) >= 25
    assert np.abs(contacts.frame[:, 0, 2]).min() > 0.9


@pytest.mark.parametrize("tilt", [0.0, 0.01, -0.01])
@pytest.mark.parametrize("sunk", [-1e-6, 0.0, 3e-6, 1e-4])
def test_edges_up_from_a_corner_on_a_face_do_not_cross_its_border(sunk: float, tilt: float) -> None:
    """A cube on the border of another, 3 mm over it: its upright edges pass that border 3 mm inside, but are above the face."""
    body, points = surface(fs.box_tets((0.03, 0.03, 0.03), 4), depth=3.75e-3)
    upper = shifted(turned(points, (tilt, 0, 0)), 6e-3, -0.027, 0.0)
    upper[:, 2] += 0.015 - sunk - upper[:, 2].min()
    both = np.concatenate([points, upper])
    found = DeformableDetector([body, body], BOTH, both).detect(both, 1e-3)
    assert found.gap.min() > -1e-4 - 3e-3 * abs(tilt) - 1e-9
    assert len(found) >= 2


@pytest.mark.parametrize(
    "ends",
    [
        [(-0.00182, 0.00046, 0.0155), (0.01396, 0.0006, 0.01828)],
        [(0.00177, 0.01731, 0.01491), (0.00208, 0.00009, 0.01943)],
        [(0.02802, -0.00372, 0.02033), (0.00313, -0.00329, 0.0155)],
    ],
)
def test_a_link_that_leans_on_a_cube_does_not_cross_the_edges_far_beside_it(ends: list[tuple[float, float, float]]) -> None:
    """It touches the top of a cube at its end or side, and runs out over an edge; it is 12 to 15 mm inside of other edges."""
    body, points = surface(fs.box_tets((0.03, 0.03, 0.03), 1), depth=0.015)
    link = np.array(ends)
    both = np.concatenate([link, points])
    found = DeformableDetector([strand(link, 5e-4), body], BOTH, both).detect(both, 1e-3)
    assert len(found) and found.gap.min() > -5e-5


def test_a_mat_is_in_contact_with_itself_only_where_it_is_folded() -> None:
    """Flat: nothing. Folded over with a gap of 3 mm: vertices of one layer against the other, with that gap."""
    mesh = fs.box_tets((0.2, 0.03, 0.004), (20, 3, 1))
    body, points = surface(mesh)
    detector = DeformableDetector([body], np.array([[True]]), points)
    assert not len(detector.detect(points, 0.0035))
    x, middle = points[:, 0] - points[:, 0].mean(), points[:, 2].mean()
    radius = 0.0035
    angle, beyond = np.clip(x / radius, 0, np.pi), np.maximum(x - np.pi * radius, 0)
    line = np.column_stack([np.where(x < 0, x, radius * np.sin(angle) - beyond), points[:, 1], radius - radius * np.cos(angle)])
    normal = np.column_stack([-np.sin(angle), 0 * angle, np.cos(angle)])
    folded = line + (points[:, 2] - middle)[:, None] * normal
    contacts = detector.detect(folded, 0.0035)
    check_geometry(contacts, folded, np.zeros(1))
    level = (contacts.position[:, 0, 0] < -0.025) & (contacts.position[:, 0, 0] > -0.085)  # between the bend and the tip
    assert level.sum() >= 2 * 6 * 4  # each vertex there; crossing edges come on top where rounding has it
    np.testing.assert_allclose(contacts.gap[level & (contacts.kind == VERTEX_FACE)], 0.003, atol=1e-9)
    assert contacts.gap[level].min() > 0  # in the crease, of one cell, what is drawn here may pass itself


def test_a_spike_beside_an_edge_of_its_own_body_is_not_in_it() -> None:
    """Hanging beside a block: it faces its upper face alone, of which the edge is the closest, half a metre above its tip."""
    block = fs.box_tets((1.0, 1.0, 1.0), 1).surface()
    corner, triangles = shifted(block.points, 0.5, 0.5, 0.5), block.triangles
    for aside in (0.1, 0.04, -0.1):
        tip = np.array([1.0 + aside, 0.45, 0.52])
        spike = tip + np.array([(0, 0, 0), (0.03, -0.03, 2), (0.03, 0.03, 2), (-0.03, 0.0, 2)])
        points = np.concatenate([corner, spike])
        faces = np.concatenate([triangles, np.array([[0, 2, 1], [0, 3, 2], [0, 1, 3], [1, 2, 3]]) + len(corner)])
        detector = DeformableDetector([Surface(len(points), faces, np.ones(len(faces)))], np.array([[True]]), points)
        found = detector.detect(points, 0.05)
        inside = signed_distance(tip, corner, triangles)
        assert inside == pytest.approx(aside)
        gaps = found.gap[(found.kind == VERTEX_FACE) & (found.point[:, 0, 0] == len(corner))]
        assert (gaps.min() < 0.0) if aside < 0.0 else not (gaps < 0.0).any()


@pytest.mark.parametrize("rigid", [True, False])
def test_a_rigid_line_lies_on_a_ridge_that_is_nearly_flat_between_its_ends(rigid: bool) -> None:
    """A capsule or a cylinder, by 2 degrees: else it sinks in by 0.02 of its width. Links of a rod are held off by its faces."""
    height = np.tan(np.radians(1.0))
    roof = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0), (0, -1, height), (0, 1, height), (0, 0, -1)], dtype=float)
    around = [0, 4, 1, 2, 5, 3]
    under = [[6, b, a] for a, b in zip(around, [*around[1:], around[0]], strict=True)]
    triangles = np.array([[0, 4, 5], [0, 5, 3], [4, 1, 2], [4, 2, 5], *under])
    line = np.array([(-0.5, 0.2, height + 0.1), (0.5, 0.2, height + 0.1)])
    bodies = [Surface(7, triangles, np.full(len(triangles), 0.5)), Strand(np.array([0.0, 1.0]), 0.1, rigid=rigid)]
    points = np.concatenate([roof, line])
    found = DeformableDetector(bodies, BOTH, points).detect(points, 1e-3)
    crossings = found.gap[found.kind == EDGE_EDGE]
    assert len(crossings) == int(rigid) and np.abs(crossings).max(initial=0.0) < 1e-12


def test_a_strand_is_in_contact_with_itself_where_it_is_far_enough_along() -> None:
    """A helix with turns 5 mm apart and a thickness of 4 mm: gaps of about 1 mm, all a whole turn apart; a straight one: none."""
    angle = np.linspace(0, 6 * np.pi, 160)
    helix = np.column_stack([0.02 * np.cos(angle), 0.02 * np.sin(angle), 0.005 * angle / (2 * np.pi)])
    body = strand(helix, 0.002)
    contacts = DeformableDetector([body], np.array([[True]]), helix).detect(helix, 0.002)
    check_geometry(contacts, helix, np.array([0.002]))
    np.testing.assert_allclose(contacts.gap.min(), 0.001, atol=5e-5)
    apart = np.abs(body.arc[contacts.point[:, 0, 0]] - body.arc[contacts.point[:, 1].max(axis=1)])
    assert len(contacts) > 80 and apart.min() > 0.1
    straight = np.column_stack([np.linspace(0, 0.2, 160), np.zeros(160), np.zeros(160)])
    assert not len(DeformableDetector([strand(straight, 0.002)], np.array([[True]]), straight).detect(straight, 0.01))


def test_overlaps_are_found_however_deep() -> None:
    body, points = surface(fs.box_tets((0.1, 0.1, 0.1), 4))
    for shift, depth in ((0.03, 0.02), (0.12, 0.0)):
        moved = 0.5 * points + [0, 0, shift + 0.03 if shift > 0.1 else shift]
        where = np.concatenate([moved, points])
        found = DeformableDetector([body, body], BOTH, where).overlaps(where)
        if depth:
            (a, b, deepest, bound), *_ = found
            assert (a, b) == (0, 1) and bound == 2e-3
            expected = max(-signed_distance(p, points, body.triangles) for p in moved)
            np.testing.assert_allclose(deepest, expected, atol=1e-12)
        else:
            assert not found


def test_thick_strands_outside_the_box_of_a_body_reach_it() -> None:
    """Neither points nor edges are left out whose radius and margin bridge what is between the boxes, nor a chain of one."""
    cube, points = surface(fs.box_tets((0.1, 0.1, 0.1), 4))
    points = points - points.mean(axis=0)
    low = np.column_stack([np.linspace(-0.04, 0.04, 5), np.full(5, 0.007), np.full(5, 0.05 + 0.0045)])
    high = shifted(low[:, [1, 0, 2]], -0.002, 0.0, 0.0085)
    alone = np.array([[0.03, -0.02, 0.05 + 0.0045]])
    where = np.concatenate([points, low, high, alone])
    bodies = [cube, strand(low, 0.004), strand(high, 0.004), Strand(np.zeros(1), 0.004)]
    contacts = DeformableDetector(bodies, ~np.eye(4, dtype=bool), where).detect(where, 1e-3)
    between = [tuple(sorted(pair)) for pair in contacts.body.tolist()]
    assert [between.count(pair) for pair in ((0, 1), (1, 2), (0, 3), (0, 2))] == [5, 1, 1, 0]
    np.testing.assert_allclose(contacts.gap, 5e-4, atol=1e-12)


def test_more_contacts_than_expected_find_room() -> None:
    body, points = surface(fs.ball_tets(0.03, 8))
    where = np.concatenate([points, shifted(points, 0.0, 0.0, 0.06)])
    detector = DeformableDetector([body, body], BOTH, where)
    many = detector.detect(where, 0.05)
    check_geometry(many, where, np.zeros(2))
    assert set(detector.detect(where, 0.001).key) <= set(many.key)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"may_contact": np.ones((2, 2))}, "symmetric matrix of bool"),
        ({"points": np.zeros((3, 3))}, "shape"),
        ({"points": np.full((5, 3), np.nan)}, "finite"),
        ({"triangles": np.array([[0, 1, 2]])}, "open"),
        ({"triangles": np.array([[0, 1, 9]])}, "whole"),
        ({"depth": np.zeros(1)}, "depth"),
    ],
)
def test_wrong_input_is_refused(change: dict[str, np.ndarray], message: str) -> None:
    tetrahedron = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    given = {
        "triangles": tetrahedron,
        "depth": np.zeros(4),
        "may_contact": BOTH,
        "points": np.arange(15.0).reshape(5, 3),
    } | change
    if "triangles" in change:
        given["depth"] = np.zeros(len(given["triangles"]))
    with pytest.raises(ContactError, match=message):
        DeformableDetector(
            [Surface(4, given["triangles"], given["depth"]), Strand(np.zeros(1), 0.1)], given["may_contact"], given["points"]
        )


def block_under_bar(ahead: float) -> tuple[DeformableDetector, np.ndarray]:
    """A flat block of 4 x 4 squares of 10 mm; on it a rigid bar whose edge along y stands so far, m, before a row of nodes."""
    block, bar = meshes.box_tets((0.04, 0.04, 0.01), (4, 4, 1)).surface(), meshes.box_tets((0.02, 0.02, 0.01), 1).surface()
    bodies = [
        Surface(len(one.points), one.triangles, np.full(len(one.triangles), 0.005), rigid=one is bar) for one in (block, bar)
    ]
    points = np.concatenate([block.points, bar.points + np.array([-ahead, 0.0013, 0.01])])
    return DeformableDetector(bodies, [[False, True], [True, False]], points), points


def soft_sides(found: DeformableContacts) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the block in contacts, (n, 3) each."""
    side = np.argmin(found.body, axis=1)
    each = np.arange(len(found))
    return found.point[each, side], found.weight[each, side]


def test_what_crosses_an_edge_just_before_a_vertex_holds_it() -> None:
    """The vertex has no contact with the face before the edge has passed it; behind the edge the face holds it."""
    for ahead in (2e-4, -2e-4):
        detector, points = block_under_bar(ahead)
        found = detector.detect(points, 1e-4)
        node = int(np.argmin(np.linalg.norm(points[: detector.start[1]] - (0.01, 0.0, 0.005), axis=1)))
        point, weight = soft_sides(found)
        on_node = ((point == node) & (weight > 0.95)).any(axis=1)
        assert set(found.kind[on_node]) == {EDGE_EDGE if ahead > 0.0 else VERTEX_FACE}


def test_crossings_that_hang_on_the_same_vertices_are_not_needed_twice() -> None:
    """Vertices off the bar hang on those below it by several edges. Beside its corners some still do."""
    detector, points = block_under_bar(0.003)
    found = detector.detect(points, 1e-4)
    rows, (point, weight) = np.zeros((len(found), detector.start[1])), soft_sides(found)
    for row, own, share in zip(rows, point, weight, strict=True):
        np.add.at(row, own[share > 0.0], share[share > 0.0])
    needed, corners = found.needed(detector.bodies), found.body[:, 0] == 1
    assert needed[corners].all() and needed[found.kind == VERTEX_FACE].all()
    every, fewer = rows[~corners], rows[needed & ~corners]
    rank = np.linalg.matrix_rank(every)
    assert len(every) - rank >= 6
    assert np.linalg.matrix_rank(fewer) == rank and len(fewer) - rank <= 2
