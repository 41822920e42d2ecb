"""Detection against a brute-force double loop, frames, broad phase, poses, determinism, validation."""

from __future__ import annotations

import itertools
import tracemalloc

import numba
import numpy as np
import pytest
from placed_pairs import measured_from_triangles
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from contact import sdf_grid
from contact.detect import Detector
from contact.detect_kernels import search
from contact.errors import ContactError
from contact.sdf_grid import begin_grid
from contact.shape_points import first_points
from contact.shapes import (
    Box,
    Capsule,
    Cylinder,
    Mesh,
    PlacedShape,
    Plane,
    Revolved,
    Sphere,
    closest_points_on_triangles,
    signed_distance,
)

OCTAHEDRON = np.vstack([np.eye(3), -np.eye(3)]) * [0.2, 0.3, 0.15]
OCTANTS = [
    [i, j + 1, k + 2] if si * sj * sk > 0 else [i, k + 2, j + 1]
    for (i, si), (j, sj), (k, sk) in itertools.product([(0, 1), (3, -1)], repeat=3)
]
CUBE = np.array(list(itertools.product((-0.2, 0.2), repeat=3))) + np.array([0.1, 0.0, -0.05])
CUBE_TRIANGLES = np.array([list(map(int, t)) for t in "013 032 467 475 045 051 237 276 026 064 157 173".split()])
SHAPES = [
    Plane(),
    Box((0.2, 0.1, 0.3)),
    Sphere(0.25),
    Capsule(0.1, 0.2),
    Cylinder(0.15, 0.2),
    Mesh(OCTAHEDRON, OCTANTS, resolution=24),
    Mesh(CUBE, CUBE_TRIANGLES, resolution=15),
]


def brute_force(detector, points, rotation, translation, margin):
    """(shape, point, gap, normal, position) of all contacts: every shape, every point, in plain Python."""
    margin = np.broadcast_to(margin, len(points))
    contacts = []
    for s, placed in enumerate(detector.shapes):
        for i, point in enumerate(points):
            if detector.point_body[i] == placed.body or not COLLIDE[detector.point_body[i], placed.body]:
                continue
            place = rotation[s].T @ (point - translation[s])
            (distance,), (normal,) = signed_distance(placed.shape, [place])
            if isinstance(placed.shape, Mesh) and detector.point_radius[i] > 0.0:  # convex: the sampled distance is too large
                distance, normal = measured_from_triangles(placed.shape, place)
            gap = distance - detector.point_radius[i]
            if gap < margin[i]:
                world = rotation[s] @ normal
                way = detector.point_radius[i]
                if way > 0.0 and isinstance(placed.shape, Sphere | Capsule):
                    way += gap / 2
                contacts.append((s, i, gap, world, point - way * world))
    return contacts


COLLIDE = np.ones((10, 10), dtype=bool)
COLLIDE[0, 4] = COLLIDE[2, 7] = False


def random_scene(seed, *, n=120, body_order="together", radius=True):
    """Shapes of all kinds on bodies 0 to 9 and points of bodies 0 to 2, all close together."""
    rng = np.random.default_rng(seed)
    shapes = [
        PlacedShape(
            shape,
            body=3 + k if k % 4 else 0,
            rotation=Rotation.random(rng=rng).as_matrix(),
            translation=rng.normal(0, 0.1, 3),
            surface=k % 3,
        )
        for k, shape in enumerate(SHAPES)
    ]
    body = rng.integers(0, 3, n) if body_order == "mixed" else np.repeat([0, 1, 2], n // 3)
    radii = np.where(rng.random(n) < 0.5, rng.uniform(0, 0.03, n), 0.0) if radius else np.zeros(n)
    detector = Detector(shapes, body, radii, rng.integers(0, 3, n), COLLIDE)
    centre = np.array([[0.4, 0, 0], [-0.3, 0.2, 0], [0, -0.3, 0.3]])
    points = centre[body] + rng.normal(0, 0.2, (n, 3))
    poses = Rotation.random(10, rng=rng).as_matrix(), rng.normal(0, 0.18, (10, 3))
    return detector, points, poses, rng


@pytest.mark.parametrize("body_order", ["together", "mixed"])
@pytest.mark.parametrize("seed", range(12))
def test_detection_equals_brute_force(seed, body_order):
    detector, points, poses, rng = random_scene(seed, body_order=body_order)
    rotation, translation = detector.world_poses(*poses)
    for margin in (0.0, 0.02, -0.01, rng.uniform(-0.01, 0.03, len(points))):
        found = detector.detect(points, rotation, translation, margin)
        expected = brute_force(detector, points, rotation, translation, margin)
        assert found.n == len(found) == len(expected)
        assert [(s, i) for s, i, *_ in expected] == list(zip(found.shape, found.point, strict=True))
        if expected:
            np.testing.assert_allclose(found.gap, [c[2] for c in expected], rtol=0, atol=1e-14)
            # a gradient of the grid moves by rounding over cell size when the point does
            np.testing.assert_allclose(found.frame[:, 0], [c[3] for c in expected], rtol=0, atol=1e-12)
            np.testing.assert_allclose(found.position, [c[4] for c in expected], rtol=0, atol=1e-13)


def test_the_random_scenes_try_every_shape():
    """The comparison above means something: each shape has contacts and pairs are filtered."""
    count = np.zeros(len(SHAPES))
    for seed in range(12):
        detector, points, poses, _ = random_scene(seed)
        found = detector.detect(points, *detector.world_poses(*poses), 0.02)
        count += np.bincount(found.shape, minlength=len(SHAPES))
        assert 0 < found.n < 0.7 * len(points) * len(SHAPES)
        bodies = set(zip(detector.point_body[found.point], detector.shape_body[found.shape], strict=True))
        assert not bodies & {(0, 0), (0, 4), (2, 7)}
    assert (count > 20).all()


@pytest.mark.parametrize("body_order", ["together", "mixed"])
def test_frames(body_order):
    """Rows are normal, tangent, tangent: orthonormal and right-handed; the gap grows along the normal."""
    detector, points, poses, _ = random_scene(5, body_order=body_order)
    rotation, translation = detector.world_poses(*poses)
    found = detector.detect(points, rotation, translation, 0.05).copy()
    assert found.n > 80
    np.testing.assert_allclose(
        np.einsum("nik,njk->nij", found.frame, found.frame),
        np.broadcast_to(np.eye(3), found.frame.shape),
        rtol=0,
        atol=1e-14,
    )
    np.testing.assert_allclose(np.cross(found.frame[:, 0], found.frame[:, 1]), found.frame[:, 2], atol=1e-14)
    for m in np.flatnonzero(found.shape < 5):  # primitives: moving the point along the normal opens the gap as much
        moved = points.copy()
        moved[found.point[m]] += 1e-6 * found.frame[m, 0]
        again = detector.detect(moved, rotation, translation, 0.06)
        same = np.flatnonzero((again.point == found.point[m]) & (again.shape == found.shape[m]))
        assert again.gap[same[0]] - found.gap[m] == pytest.approx(1e-6, rel=1e-6)


def test_frames_of_axis_normals_are_axes_and_hold_still():
    """A floor's tangents are x and y, and rounding in its pose turns them no more than itself."""
    detector = Detector([PlacedShape(Plane(), 1)], [0], [0.0], [0], np.ones((2, 2), dtype=bool))
    for axis in range(3):
        for side in (-1.0, 1.0):
            normal = side * np.eye(3)[axis]
            frames = []
            for seed in range(20):
                tilt = Rotation.from_rotvec(1e-12 * np.random.default_rng(seed).normal(size=3)).as_matrix()
                turn = np.column_stack([np.roll(normal, 1), np.cross(normal, np.roll(normal, 1)), normal])
                found = detector.detect(np.zeros((1, 3)), (tilt @ turn)[None], np.zeros((1, 3)), 1.0)
                frames.append(found.frame[0].copy())
            np.testing.assert_allclose(frames, np.broadcast_to(frames[0], (20, 3, 3)), atol=2e-11)
            np.testing.assert_allclose(np.abs(frames[0]).round(9).sum(axis=1), 1.0)
    found = detector.detect(np.zeros((1, 3)), np.eye(3)[None], np.zeros((1, 3)), 1.0)
    np.testing.assert_array_equal(found.frame[0], [[0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_frames_are_sound_for_every_normal():
    """Also on both sides of the switch of the reference axis."""
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(4000, 3))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    points = 0.5 * normals
    detector = Detector(
        [PlacedShape(Sphere(0.4), 1)],
        np.zeros(4000, dtype=int),
        np.zeros(4000),
        np.zeros(4000, dtype=int),
        np.ones((2, 2), dtype=bool),
    )
    found = detector.detect(points, np.eye(3)[None], np.zeros((1, 3)), 0.2)
    assert found.n == 4000 and {True, False} == set(np.abs(normals[:, 0]) > 0.9)
    np.testing.assert_allclose(found.frame[:, 0], normals, atol=1e-15)
    identity = np.broadcast_to(np.eye(3), (4000, 3, 3))
    np.testing.assert_allclose(np.einsum("nik,njk->nij", found.frame, found.frame), identity, rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.det(found.frame), 1.0, rtol=0, atol=1e-14)


def test_a_sphere_by_hand():
    """A ball of radius 0.1, centre 0.08 above a floor at z = 0.5: penetration 0.02, force at its foot."""
    detector = Detector([PlacedShape(Plane(), 1, surface=1)], [0], [0.1], [2], np.ones((2, 2), dtype=bool))
    found = detector.detect([[1.0, 2.0, 0.58]], np.eye(3)[None], [[0, 0, 0.5]], 0.0)
    assert found.n == 1
    assert found.gap[0] == pytest.approx(-0.02, abs=1e-15)
    np.testing.assert_allclose(found.position[0], [1, 2, 0.48], atol=1e-15)
    np.testing.assert_array_equal(found.frame[0, 0], [0, 0, 1])
    np.testing.assert_array_equal(detector.friction(found, np.arange(9.0).reshape(3, 3)), [7.0])
    with pytest.raises(ContactError, match="surface materials 0 to 2"):
        detector.friction(found, np.ones((2, 2)))


def test_two_spheres_have_one_contact():
    """Each centre finds the other sphere; where only one of them is asked, that one stays."""
    rng = np.random.default_rng(2)
    radius, centres = rng.uniform(0.1, 0.2, 12), rng.uniform(-0.4, 0.4, (12, 3))
    shapes = [PlacedShape(Sphere(r), k) for k, r in enumerate(radius)]
    ones, poses = np.ones((12, 12), dtype=bool), np.broadcast_to(np.eye(3), (12, 3, 3))
    twice = Detector(shapes, np.arange(12), radius, np.zeros(12, dtype=int), ones)
    once = Detector(shapes, np.arange(12), radius, np.zeros(12, dtype=int), ones, shape_centre=np.arange(12))
    lower = Detector(shapes, np.arange(12), radius, np.zeros(12, dtype=int), np.tril(ones), shape_centre=np.arange(12))
    both, kept, one_way = (detector.detect(centres, poses, centres, 0.05) for detector in (twice, once, lower))
    first = both.select(both.point < both.shape)
    assert 10 < first.n == kept.n == one_way.n and both.n == 2 * kept.n
    for name in ("point", "shape", "gap", "frame", "position", "feature"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(first, name))
    assert (one_way.point > one_way.shape).all()
    # the force of a pair acts half-way between both, whichever of them is asked
    order = [np.lexsort((low, high)) for low, high in ((both.point, both.shape), (both.shape, both.point))]
    np.testing.assert_allclose(both.position[order[0]], both.position[order[1]], rtol=0, atol=1e-15)


@pytest.mark.parametrize("centre", [[1, -1], [0, 5], [-2, -1]])
def test_a_centre_that_is_none_is_named(centre: list[int]) -> None:
    shapes = [PlacedShape(Sphere(0.1), 0), PlacedShape(Box((1, 1, 1)), 1)]
    with pytest.raises(ContactError, match="shape_centre"):
        Detector(shapes, [0, 1], [0.1, 0.0], [0, 0], np.ones((2, 2), dtype=bool), shape_centre=centre)


def walls_by_hand(points: np.ndarray, profile: np.ndarray, padding: float) -> list[tuple[int, int, float]]:
    """Point, wall and gap: of each wall its nearest place, unless the next wall begins there and goes on nearer to the point."""
    found = []
    for i, (x, y, z) in enumerate(points):
        here, nearest = np.array([np.hypot(x, y), z]), []
        for a, b in itertools.pairwise(profile):
            t = min(max((here - a) @ (b - a) / ((b - a) @ (b - a)), 0.0), 1.0)
            nearest.append((t, np.linalg.norm(here - a - t * (b - a)) - padding))
        for k, (t, gap) in enumerate(nearest):
            if (t == 0.0 and k > 0) or (t == 1.0 and k + 1 < len(nearest) and nearest[k + 1][0] > 0.0):
                continue
            found.append((i, k, gap))
    return found


def test_each_wall_of_a_turned_shape_is_met():
    profile = np.array([(0.0, 0.0), (0.3, 0.0), (0.3, 0.2), (0.4, 0.25), (0.25, 0.5)])
    rng = np.random.default_rng(4)
    points = np.column_stack([rng.uniform(-0.6, 0.6, (3000, 2)), rng.uniform(-0.2, 0.7, 3000)])
    detector = Detector(
        [PlacedShape(Revolved(profile, 0.01), 1)], np.zeros(3000, int), np.full(3000, 0.02), np.zeros(3000, int),
        np.ones((2, 2), dtype=bool), most_per_pair=10**6,
    )  # fmt: skip
    found = detector.detect(points, np.eye(3)[None], np.zeros((1, 3)), 0.1)
    expected = [(i, k, gap - 0.02) for i, k, gap in walls_by_hand(points, profile, 0.01) if gap - 0.02 < 0.1]
    assert sorted(zip(found.point.tolist(), found.feature.tolist(), strict=True)) == sorted((i, k) for i, k, _ in expected)
    gaps = {(i, k): gap for i, k, gap in expected}
    wanted = [gaps[key] for key in zip(found.point.tolist(), found.feature.tolist(), strict=True)]
    np.testing.assert_allclose(found.gap, wanted, atol=1e-15)
    assert found.n - len(set(found.point.tolist())) > 100  # in corners
    corner = detector.detect(np.array([[0.27, 0.0, 0.03]] * 3000), np.eye(3)[None], np.zeros((1, 3)), 1e-3).select(slice(0, 2))
    np.testing.assert_allclose(corner.gap, 0.0, atol=1e-15)
    np.testing.assert_allclose(corner.frame[:, 0], [[0, 0, 1], [-1, 0, 0]], atol=1e-12)


def test_spheres_have_one_contact_with_what_says_its_distance():
    """Corners, ends of axes and rings of points within the margin of a sphere are not contacts beside that of its centre."""
    for shape in (Box((0.1, 0.1, 0.1)), Capsule(0.05, 0.1), Revolved([(0.0, 0.0), (0.1, 0.0)], 0.01), Sphere(0.1)):
        features, radii = shape.features()
        shapes = [PlacedShape(shape, 0), PlacedShape(Sphere(0.2), 1)]
        n = len(features)
        firsts = first_points([shape, Sphere(0.2)], [0, n])
        detector = Detector(
            shapes,
            [0] * n + [1],
            [*radii, 0.2],
            [0] * (n + 1),
            np.ones((2, 2), dtype=bool),
            **firsts,
        )
        low = -shape.aabb[0][2]
        centre = np.array([0.02, 0.03, -0.2 - low + 1e-4])
        places = np.array([np.zeros(3), centre])
        found = detector.detect(np.vstack([features, centre]), np.broadcast_to(np.eye(3), (2, 3, 3)), places, 0.3)
        assert found.n == 1 and abs(found.gap[0]) < 0.01


def test_a_gap_equal_to_the_margin_is_no_contact():
    detector = Detector([PlacedShape(Plane(), 1)], [0], [0.25], [0], np.ones((2, 2), dtype=bool))
    for margin, n in ((0.5, 0), (np.nextafter(0.5, 1.0), 1)):
        assert detector.detect([[0.0, 0.0, 0.75]], np.eye(3)[None], np.zeros((1, 3)), margin).n == n


def test_a_large_sphere_is_in_contact_with_a_small_mesh():
    """The grid reaches as far as the largest radius tested against it: a centre far outside finds the surface."""
    face = OCTAHEDRON[:3]
    outward = np.cross(face[1] - face[0], face[2] - face[0])
    outward /= np.linalg.norm(outward)
    for radius in (0.0, 0.5):
        detector = Detector([PlacedShape(SHAPES[5], 1)], [0], [radius], [0], np.ones((2, 2), dtype=bool))
        point = face.mean(axis=0) + (radius - 0.001) * outward
        found = detector.detect(point[None], np.eye(3)[None], np.zeros((1, 3)), 0.01)
        assert found.n == 1
        assert found.gap[0] == pytest.approx(-0.001, abs=1e-14)
        np.testing.assert_allclose(found.frame[0, 0], outward, atol=1e-13)
        np.testing.assert_allclose(found.position[0], face.mean(axis=0) - 0.001 * outward, atol=1e-13)


def test_broad_phase_drops_far_pairs_and_no_near_one():
    """The judge is the sampled truth: a pair with a point within reach of the shape may never be missing."""
    kept, wanted, total = 0, 0, 0
    for seed in range(10):
        detector, points, poses, rng = random_scene(seed)
        points = 0.3 * points + rng.normal(0, 0.5, (3, 3))[detector.point_body]
        rotation, translation = detector.world_poses(*poses)
        detector.detect(points, rotation, translation, 0.01)
        pairs = [tuple(pair) for pair in detector.candidates]
        assert pairs == sorted(set(pairs))
        needed = {(s, int(detector.point_body[i])) for s, i, *_ in brute_force(detector, points, rotation, translation, 0.01)}
        assert needed <= set(pairs)
        kept, wanted, total = kept + len(pairs), wanted + len(needed), total + 3 * len(SHAPES)
    assert 0 < wanted <= kept < 0.6 * total


def test_world_poses():
    detector, _, (body_rotation, body_translation), _ = random_scene(3)
    rotation, translation = detector.world_poses(body_rotation, body_translation)
    for s, placed in enumerate(detector.shapes):
        local = np.array([0.1, -0.2, 0.3])
        on_body = placed.rotation @ local + placed.translation
        world = body_rotation[placed.body] @ on_body + body_translation[placed.body]
        np.testing.assert_allclose(rotation[s] @ local + translation[s], world, rtol=0, atol=1e-15)


def test_same_bits_twice_and_in_a_new_detector():
    detector, points, poses, _ = random_scene(4)
    first = detector.detect(points, *detector.world_poses(*poses), 0.02).copy()
    detector.detect(points + 0.1, *detector.world_poses(*poses), 0.02)
    second = detector.detect_on(points, *poses, 0.02).copy()
    other, _, _, _ = random_scene(4)
    third = other.detect(points, *other.world_poses(*poses), 0.02)
    for name in ("point", "shape", "gap", "frame", "position"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes() == getattr(third, name).tobytes()


def test_contacts_of_some_points_are_those_that_a_search_of_all_finds():
    """To the last bit; where edges of meshes cross, what is needless is told by corners that were not asked for."""
    detector, points, poses, rng = random_scene(4)
    asked = rng.permutation(len(points))[:40]
    whole = detector.detect_placed(points, *poses, 0.02).copy()
    some = detector.detect_placed(points, *poses, 0.02, among=asked).copy()
    assert 5 < some.n < whole.n and np.isin(some.point, asked).all()
    own = whole.select(np.isin(whole.point, asked))
    cube = Mesh(0.5 * (CUBE - CUBE.mean(axis=0)), CUBE_TRIANGLES, 15, name="cube")
    corners, _ = cube.features()
    pair = [PlacedShape(cube, 0), PlacedShape(cube, 1)]
    edges = Detector(pair, [0] * 8 + [1] * 8, np.zeros(16), [0] * 16, np.ones((2, 2), dtype=bool), shape_edge=[0, 8])
    turn, place = Rotation.from_euler("xyz", [0.0633, 0.0, 0.1186]).as_matrix(), np.array([-0.027, 0.1824, 0.1963])
    at = np.concatenate([corners, corners @ turn.T + place]), np.stack([np.eye(3), turn]), np.stack([np.zeros(3), place])
    crossing = edges.detect_placed(*at, 0.01).copy()
    assert (crossing.feature > 0).sum() == 1
    for found, expected in ((some, own), (edges.detect_placed(*at, 0.01, among=np.zeros(0, dtype=np.int64)), crossing)):
        for name in ("point", "shape", "gap", "frame", "position", "feature"):
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


def test_bodies_of_one_robot_have_a_smaller_margin():
    """Two pairs of bars cross edge over edge, 5 mm apart; of one pair, whose bodies move together, less is asked for."""
    bar = Mesh((CUBE - CUBE.mean(axis=0)) / np.ptp(CUBE, axis=0) * [0.4, 0.04, 0.04], CUBE_TRIANGLES, 15, name="bar")
    corners, _ = bar.features()
    along_x = Rotation.from_euler("x", 0.25 * np.pi).as_matrix()
    across = Rotation.from_euler("z", 0.5 * np.pi).as_matrix() @ along_x
    rotation, height = np.stack([along_x, across] * 2), 0.04 * np.sqrt(2.0) + 0.005
    translation = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, height], [3.0, 0.0, 0.0], [3.0, 0.0, height]])
    within = np.zeros((4, 4), dtype=bool)
    within[:2, :2] = True
    detector = Detector(
        [PlacedShape(bar, body) for body in range(4)], np.repeat(range(4), 8), np.zeros(32), [0] * 32,
        np.ones((4, 4), dtype=bool), shape_edge=[0, 8, 16, 24], within=within,
    )  # fmt: skip
    points = np.concatenate([corners @ r.T + t for r, t in zip(rotation, translation, strict=True)])
    for closer, n, pairs in ((0.0, 2, 4), (0.004, 2, 4), (0.006, 1, 2)):
        found = detector.detect_placed(points, rotation, translation, 0.01, closer=closer)
        assert (found.n, len(detector.candidates)) == (n, pairs)
        np.testing.assert_allclose(found.gap, 0.005, atol=1e-15)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the meshes whose grids are made, in order."""
    names: list[str] = []

    def make(*arrays, name, **options):
        names.append(name)
        return begin_grid(*arrays, name=name, **options)

    monkeypatch.setattr(sdf_grid, "begin_grid", make)
    return names


def three_meshes():
    """Two cubes of one mesh, 2 m apart, and an octahedron 2 m further, each on a body of its own; body 0 has the points."""
    cube, octahedron = Mesh(CUBE, CUBE_TRIANGLES, 15, name="cube"), Mesh(OCTAHEDRON, OCTANTS, 24, name="octahedron")
    placed = [PlacedShape(shape, 1 + k, translation=(2.0 * k, 0.0, 0.0)) for k, shape in enumerate((cube, cube, octahedron))]
    detector = Detector(placed, [0, 0], [0.0, 0.02], [0, 0], np.ones((4, 4), dtype=bool))
    return detector, [cube, octahedron]


def test_a_mesh_gets_its_grid_when_something_is_near_and_the_bits_are_those_of_one_made_before(made):
    """A run of points around all of them is near none: each point asks on its own, within the box around a shape."""
    poses = np.tile(np.eye(3), (4, 1, 1)), np.zeros((4, 3))
    late, _ = three_meshes()
    early, meshes = three_meshes()
    for mesh in meshes:
        mesh.grid(0.02)
    del made[:]
    low, far = (0.1, 0.0, -0.25), (4.0, 0.2, 0.16)
    for points, wanted in (
        ([(-1.0, 0.0, 0.0), (5.0, 0.0, 0.0)], []),
        ([low, (5.0, 0.0, 0.0)], ["cube"]),
        ([(2.1, 0.0, -0.25), low], ["cube"]),
        ([low, far], ["cube", "octahedron"]),
    ):
        found = late.detect_on(points, *poses, 0.03)
        assert made == wanted
        same = early.detect_on(points, *poses, 0.03)
        for name in ("point", "shape", "gap", "frame", "position", "feature"):
            assert getattr(found, name).tobytes() == getattr(same, name).tobytes()
    assert found.n == 1 and made == wanted


def test_rims_of_cylinders_ask_for_the_grid_of_a_mesh(made):
    """A can lies on a cube with its mantle, where no point of the cube or of its rims is near the other one."""
    cube, can = Mesh(CUBE, CUBE_TRIANGLES, 15, name="cube"), Cylinder(0.05, 0.1)
    rims, _ = can.features()
    detector = Detector(
        [PlacedShape(cube, 0), PlacedShape(can, 1)], [1] * len(rims), np.zeros(len(rims)), [0] * len(rims),
        np.ones((2, 2), dtype=bool), shape_rim=[-1, 0],
    )  # fmt: skip
    turn = Rotation.from_rotvec([0.5 * np.pi, 0.0, 0.0]).as_matrix()
    for height, wanted in ((1.0, []), (0.2 - 1e-3, ["cube"])):
        place = np.array([0.1, 0.0, height])
        found = detector.detect_on(rims @ turn.T + place, [np.eye(3), turn], [np.zeros(3), place], 1e-4)
        assert made == wanted and (found.n > 0) == bool(wanted)
    np.testing.assert_allclose(found.gap, -1e-3, atol=1e-9)


def test_a_grid_that_would_be_too_large_is_refused_before_anything_is_near():
    mesh = Mesh(CUBE, CUBE_TRIANGLES, 400, name="cube")
    with pytest.raises(ContactError, match=r"Mesh cube: a distance grid with resolution 400 .* nodes"):
        Detector([PlacedShape(mesh, 1)], [0], [0.0], [0], np.ones((2, 2), dtype=bool))


def test_spheres_far_larger_than_a_mesh_are_measured_from_its_triangles():
    """No grid reaches so far: a robot with a wheel and a small finger tip was refused. The judge looks at all triangles."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 3))
    points /= 20.0 * np.linalg.norm(points, axis=1, keepdims=True)
    hull = ConvexHull(points)
    normals = np.cross(*(points[hull.simplices[:, k]] - points[hull.simplices[:, 0]] for k in (1, 2)))
    inward = np.einsum("ti,ti->t", normals, hull.equations[:, :3]) < 0.0
    triangles = np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices)
    radius, n = 2.0, 40
    centres = rng.normal(size=(n, 3))
    centres *= (radius + 0.049) / np.linalg.norm(centres, axis=1, keepdims=True)
    mesh = PlacedShape(Mesh(points, triangles, name="tip"), 1)
    detector = Detector([mesh], [0] * n, [radius] * n, [0] * n, np.ones((2, 2), dtype=bool))
    found = detector.detect(centres, np.eye(3)[None], np.zeros((1, 3)), 0.01)
    assert found.point.tolist() == list(range(n))
    for centre, gap, frame in zip(centres, found.gap, found.frame, strict=True):
        ways = centre - closest_points_on_triangles(centre, points[triangles])
        way = ways[np.linalg.norm(ways, axis=1).argmin()]
        assert gap == pytest.approx(np.linalg.norm(way) - radius, abs=1e-14)
        np.testing.assert_allclose(frame[0], way / np.linalg.norm(way), atol=1e-14)


def test_shapes_without_values_of_their_own_need_no_code_for_those_and_give_the_same_bits():
    """Shapes that have grids, profiles or threads make twice as much code; here one of them is far away, and adds no contact."""
    full, points, poses, _ = random_scene(4)
    assert any(isinstance(placed.shape, Mesh) for placed in full.shapes)
    simple = [placed for placed in full.shapes if not isinstance(placed.shape, Mesh)]
    far = PlacedShape(Mesh(CUBE, CUBE_TRIANGLES, resolution=15), body=9, translation=np.array([1e3, 0.0, 0.0]))
    found = []
    for shapes, what in ((simple, numba.types.none), ([*simple, far], numba.types.float64[::1])):
        detector = Detector(shapes, full.point_body, full.point_radius, np.zeros(len(points), dtype=int), COLLIDE)
        found.append(detector.detect(points, *detector.world_poses(*poses), 0.02).copy())
        assert any(signature[21] == what for signature in search.signatures)
    assert found[0].n > 20
    for name in ("point", "shape", "gap", "frame", "position"):
        assert getattr(found[0], name).tobytes() == getattr(found[1], name).tobytes()


def test_answers_are_views_and_detection_allocates_nothing():
    detector, points, poses, _ = random_scene(4, n=3000)
    rotation, translation = detector.world_poses(*poses)
    found = detector.detect(points, rotation, translation, 0.02)
    assert found.n > 500 and found.gap.base is detector.detect(points, rotation, translation, 0.02).gap.base
    tracemalloc.start()
    detector.world_poses(*poses)
    detector.detect(points, rotation, translation, 0.02)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8000  # one float per point would be 24000


def test_nothing_to_detect():
    everything = np.ones((2, 2), dtype=bool)
    no_points = Detector([PlacedShape(SHAPES[1], 1)], [], [], [], everything)
    assert no_points.detect(np.empty((0, 3)), np.eye(3)[None], np.zeros((1, 3)), 1.0).n == 0
    no_shapes = Detector([], [0], [0.0], [0], everything)
    assert no_shapes.detect(np.zeros((1, 3)), np.empty((0, 3, 3)), np.empty((0, 3)), 1.0).n == 0


def test_too_many_contacts_say_how_many_fit():
    everything = np.ones((2, 2), dtype=bool)
    arguments = (
        [PlacedShape(Plane(), 1)] * 3,
        np.zeros(5, dtype=int),
        np.zeros(5),
        np.zeros(5, dtype=int),
        everything,
    )
    pose = np.tile(np.eye(3), (3, 1, 1)), np.zeros((3, 3))
    assert Detector(*arguments).detect(np.zeros((5, 3)), *pose, 0.1).n == 15
    assert Detector(*arguments, max_contacts=15).detect(np.zeros((5, 3)), *pose, 0.1).n == 15
    with pytest.raises(ContactError, match=r"15 contacts.*max_contacts = 14.*at least 15"):
        Detector(*arguments, max_contacts=14).detect(np.zeros((5, 3)), *pose, 0.1)


BAD_DETECTORS = {
    "may_contact": ({"may_contact": np.ones((2, 3), dtype=bool)}, ["may_contact", "(2, 3)"]),
    "may_contact type": ({"may_contact": np.ones((2, 2))}, ["may_contact", "float64", "bool"]),
    "body": ({"point_body": [0, 2]}, ["point_body[1]", "2", "0 to 1"]),
    "body type": ({"point_body": [0.0, 1.0]}, ["point_body", "float64"]),
    "radius": ({"point_radius": [0.0, -0.1]}, ["point_radius[1]", "-0.1"]),
    "radius length": ({"point_radius": [0.0]}, ["point_radius", "(1,)", "2 points"]),
    "surface": ({"point_surface": [0, -1]}, ["point_surface[1]", "-1"]),
    "shape body": ({"shapes": [PlacedShape(Plane(), 5)]}, ["body of shapes[0]", "5", "0 to 1"]),
    "within": ({"within": np.ones((3, 3), dtype=bool)}, ["within", "(3, 3)", "(2, 2)"]),
    "room": ({"max_contacts": -1}, ["max_contacts", "-1"]),
}


@pytest.mark.parametrize("case", BAD_DETECTORS)
def test_bad_detectors_say_what_is_wrong(case):
    good = {
        "shapes": [PlacedShape(Plane(), 1)],
        "point_body": [0, 0],
        "point_radius": [0.0, 0.0],
        "point_surface": [0, 0],
        "may_contact": np.ones((2, 2), dtype=bool),
    }
    Detector(**good)
    change, words = BAD_DETECTORS[case]
    with pytest.raises(ContactError) as caught:
        Detector(**(good | change))
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": np.zeros((3, 3))}, ["points", "(3, 3)", "(2, 3)"]),
        ({"points": np.array([[0, 0, 0], [0, np.nan, 0]])}, ["points[1]", "nan", "finite"]),
        ({"points": np.array([[0, 0, np.inf], [0, 0, 0]])}, ["points[0]", "inf"]),
        ({"shape_rotation": np.eye(3)}, ["shape_rotation", "(3, 3)", "(1, 3, 3)"]),
        ({"shape_translation": np.zeros(3)}, ["shape_translation", "(3,)", "(1, 3)"]),
        ({"margin": np.zeros(3)}, ["margin", "(3,)", "2 points"]),
        ({"margin": np.nan}, ["margin", "nan"]),
    ],
)
def test_bad_steps_say_what_is_wrong(change, words):
    detector = Detector([PlacedShape(Plane(), 1)], [0, 0], [0.0, 0.0], [0, 0], np.ones((2, 2), dtype=bool), max_contacts=2)
    good = {
        "points": np.zeros((2, 3)),
        "shape_rotation": np.eye(3)[None],
        "shape_translation": np.zeros((1, 3)),
        "margin": 0.1,
    }
    assert detector.detect(**good).n == 2
    with pytest.raises(ContactError) as caught:
        detector.detect(**(good | change))
    assert all(word in str(caught.value) for word in words), str(caught.value)
