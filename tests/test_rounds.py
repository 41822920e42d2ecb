"""Spheres and ends of capsules at the faces, edges and corners of meshes, from their own size down to a hundredth of it.

The slow twin of the kernel is :func:`placed_pairs.measured_from_triangles`, beside the sampled distance.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from placed_pairs import detect, measured_from_triangles
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import femsim as fs
from contact.shapes import Box, Capsule, Cone, Cylinder, Mesh, Shape, Sphere, signed_distance

FloatArray = NDArray[np.float64]

HALF = 0.02
CUBE = Box((HALF, HALF, HALF))
SIZES = (1.0, 1 / 5, 1 / 10, 1 / 30, 1 / 100)
#: Gaps as parts of the radius: apart by less than the margin, touching, overlapping.
GAPS = (0.03, 1e-7, -0.04)
MARGIN = 0.06


def cube_mesh() -> Mesh:
    surface = fs.box_triangles((2.0 * HALF, 2.0 * HALF, 2.0 * HALF))
    return Mesh(surface.points, surface.triangles)


def hull(rng: np.random.Generator) -> Mesh:
    """Convex hull of 12 points, about 2 across."""
    points = rng.normal(size=(12, 3)) * 0.5
    found = ConvexHull(points)
    triangles = found.simplices.copy()
    first, second, third = points[triangles].transpose(1, 0, 2)
    inward = np.einsum("ti,ti->t", np.cross(second - first, third - first), found.equations[:, :3]) < 0.0
    triangles[inward] = triangles[inward, ::-1]
    used, numbers = np.unique(triangles, return_inverse=True)
    return Mesh(points[used], numbers.reshape(-1, 3))


def bent(rng: np.random.Generator) -> Mesh:
    """A bar bent by a right angle, 1 across: two faces meet in a valley."""
    outline = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 0.4), (0.4, 0.4), (0.4, 1.0), (0.0, 1.0)]) - 0.3
    points = np.array([(x, y, z) for z in (-0.3, 0.3) for x, y in outline]) @ Rotation.random(rng=rng).as_matrix().T
    lids = [(0, k, k + 1) for k in range(1, 5)]
    sides = [(k, (k + 1) % 6, 6 + k) for k in range(6)] + [((k + 1) % 6, 6 + (k + 1) % 6, 6 + k) for k in range(6)]
    return Mesh(points, [(a, c, b) for a, b, c in lids] + [(6 + a, 6 + b, 6 + c) for a, b, c in lids] + sides)


def beside(mesh: Mesh, gap: float, radius: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Centre of a ball (m) that has the gap (m) to a face, an edge or a corner of a mesh, and the normal there."""
    while True:
        corners = mesh.points[mesh.triangles[rng.integers(len(mesh.triangles))]]
        weights = np.array([rng.dirichlet(np.ones(3)), [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]][rng.integers(3)])
        place = weights @ corners + rng.normal(size=3) * 1.5 * radius
        for _ in range(60):
            distance, normal = measured_from_triangles(mesh, place)
            place = place + normal * (gap + radius - distance)
        distance, normal = measured_from_triangles(mesh, place)
        if abs(distance - radius - gap) < 1e-9 * radius:
            return place, normal


def nearest(shapes: list[Shape], turn: FloatArray, place: FloatArray, margin: float) -> tuple[float, FloatArray, FloatArray]:
    """Least gap of a round body from a mesh (m), the normal out of the mesh, and where the force acts (m)."""
    found = detect(shapes, np.stack([np.eye(3), turn]), np.stack([np.zeros(3), place]), margin)
    assert len(found.gap) > 0
    k = np.flatnonzero(found.shape == 0)[found.gap[found.shape == 0].argmin()]
    assert found.gap[k] <= found.gap.min() + 1e-12
    return float(found.gap[k]), found.frame[k, 0], found.position[k]


# ------------------------------------------------------------------ which contacts there are


@pytest.mark.parametrize("size", SIZES)
def test_balls_beside_convex_meshes_have_the_true_gap_and_normal(size: float) -> None:
    """Of balls of 1/30 half had none beside edges, as the sampled distance is too large there, or one with another normal."""
    rng = np.random.default_rng(0)
    for k in range(24):
        mesh = hull(rng)
        radius = size * float(np.ptp(mesh.points, axis=0).max())
        for part in GAPS:
            place, outward = beside(mesh, part * radius, radius, rng)
            gap, normal, force = nearest([mesh, Sphere(radius)], Rotation.random(rng=rng).as_matrix(), place, MARGIN * radius)
            assert gap == pytest.approx(part * radius, abs=1e-8 * radius), (k, part)
            np.testing.assert_allclose(normal, outward, atol=1e-8)
            np.testing.assert_allclose(force, place - radius * outward, atol=1e-8 * radius)


@pytest.mark.parametrize("size", SIZES)
def test_ends_of_capsules_beside_convex_meshes_have_the_true_gap_and_normal(size: float) -> None:
    """They lean by up to 60 degrees, so that the end is nearest."""
    rng = np.random.default_rng(1)
    for k in range(24):
        mesh = hull(rng)
        radius = size * float(np.ptp(mesh.points, axis=0).max())
        for part in GAPS:
            place, outward = beside(mesh, part * radius, radius, rng)
            across = np.cross(outward, rng.normal(size=3))
            lean = rng.uniform(0.0, np.pi / 3.0)
            along = np.cos(lean) * outward + np.sin(lean) * across / np.linalg.norm(across)
            turn = Rotation.align_vectors(along[None], [[0.0, 0.0, 1.0]])[0].as_matrix()
            shapes = [mesh, Capsule(radius, 2.0 * radius)]
            gap, normal, _ = nearest(shapes, turn, place + 2.0 * radius * along, MARGIN * radius)
            assert gap == pytest.approx(part * radius, abs=1e-8 * radius), (k, part)
            np.testing.assert_allclose(normal, outward, atol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_balls_beside_a_bent_bar_have_the_smaller_of_both_distances(size: float) -> None:
    """Which is the true one, but for places in the valley, where the sampled distance lies between the normals of two faces."""
    rng, true, valley = np.random.default_rng(2), 0, 0
    for _ in range(24):
        mesh = bent(rng)
        radius = size * float(np.ptp(mesh.points, axis=0).max())
        for part in GAPS:
            place, outward = beside(mesh, part * radius, radius, rng)
            gap, normal, _ = nearest([mesh, Sphere(radius)], np.eye(3), place, MARGIN * radius)
            (sampled,), (mixed,) = signed_distance(mesh, place[None]) if size < 0.1 else ([np.inf], [outward])
            assert gap <= part * radius + 1e-8 * radius
            if sampled < radius * (1.0 + part) - 1e-6 * radius:
                assert gap == pytest.approx(sampled - radius, abs=1e-8 * radius)
                np.testing.assert_allclose(normal, mixed, atol=1e-6)
                valley += 1
            elif gap > (part - 1e-6) * radius:
                np.testing.assert_allclose(normal, outward, atol=1e-6)
                true += 1
    assert true > 60 and (valley > 0 or size > 0.05)


@pytest.mark.parametrize("radius", [1e-3, 0.01, 0.1])
def test_the_distance_of_a_ball_does_not_depend_on_the_margin(radius: float) -> None:
    """Those within a margin are, to the last bit, those within a larger one whose gap is below it."""
    rng, count, mesh = np.random.default_rng(3), 0, cube_mesh()
    for _ in range(40):
        place, _ = beside(mesh, rng.uniform(-0.1, 0.1) * radius, radius, rng)
        poses = np.tile(np.eye(3), (2, 1, 1)), np.stack([place, np.zeros(3)])
        less, more = (detect([Sphere(radius), mesh], *poses, m * radius, mutual=False) for m in (0.02, 0.2))
        assert less.gap.tolist() == more.gap[more.gap < 0.02 * radius].tolist() and more.n == 1
        count += less.n
    assert 10 < count < 40


# ------------------------------------------------------------------ in motion

LYING = (0.4, -0.3, 0.2)
#: What falls, and on which point of a cube that lies askew.
FALLING: dict[str, tuple[Shape, tuple[float, float, float]]] = {
    "ball on an edge": (Sphere(0.002), (0.004, HALF, HALF)),
    "tiny ball on an edge": (Sphere(4e-4), (0.004, HALF, HALF)),
    "ball on a corner": (Sphere(0.002), (HALF, HALF, HALF)),
    "end of a capsule on an edge": (Capsule(0.002, 0.004), (0.004, HALF, HALF)),
    "capsule across an edge": (Capsule(0.002, 0.012), (0.004, HALF, HALF)),
}


def path(block: Shape, what: str) -> FloatArray:
    """Places of a body that falls on a block, step after step, and where its axis points, m."""
    shape, point = FALLING[what]
    place = Rotation.from_rotvec(LYING).apply(point) + np.array([1e-4, 2e-4, shape.radius * 1.05])
    turn = np.zeros(3)
    if what == "capsule across an edge":
        turn = Rotation.align_vectors([[0.3, 1.0, 0.1]], [[0.0, 0.0, 1.0]])[0].as_rotvec()
    elif isinstance(shape, Capsule):
        place[2] += shape.half_length
    scene = fs.Scene("falls", dt=0.002, default_friction=0.3)
    scene.add_obstacle("block", block, rotation=LYING)
    scene.add_rigid("body", shape, density=2000.0, position=tuple(place), rotation=tuple(turn))
    rows = []
    with fs.Simulation(scene) as sim:
        for _ in range(30):
            sim.step()
            turned, now = sim.pose("body")
            rows.append(np.concatenate([now, HALF * turned[:, 2]]))
        fallen = 0.5 * 9.81 * 0.06**2
        assert place[2] - now[2] < 0.9 * fallen  # it was held up
    return np.array(rows)


@pytest.mark.parametrize("what", FALLING)
def test_what_falls_on_a_mesh_goes_as_on_a_box(what: str) -> None:
    """Small balls fell past edges, or into them and out again."""
    np.testing.assert_allclose(path(cube_mesh(), what), path(CUBE, what), rtol=0.0, atol=1e-6)


# ------------------------------------------------------------------ vertices at round bodies


def plate(size: tuple[float, float, float], cells: tuple[int, int, int], rough: float = 0.0) -> Mesh:
    """Fine mesh of a plate whose vertices are off their places by up to ``rough``, m."""
    box = fs.box_tets(size, cells)
    return Mesh(box.points + np.random.default_rng(3).uniform(-rough, rough, box.points.shape), box.surface_triangles)


def test_vertices_that_have_a_nearer_neighbour_leave_spheres_alone() -> None:
    """The slow twin asks each vertex and all its neighbours for their distances."""
    shape = Sphere(0.02)
    mesh = plate((0.12, 0.12, 0.02), (20, 20, 4), rough=0.001)
    place, turn = np.array([0.003, 0.002, 0.0195]), Rotation.from_rotvec((1.5, 0.2, 0.1)).as_matrix()
    used, numbers = np.unique(mesh.triangles, return_inverse=True)
    distance, _ = signed_distance(shape, (mesh.points[used] - place) @ turn)
    wanted = []
    for i in np.flatnonzero(distance < MARGIN):
        around = np.unique(numbers.reshape(-1, 3)[(numbers.reshape(-1, 3) == i).any(axis=1)])
        if distance[i] <= distance[around].min():
            wanted.append(i)
    found = detect([mesh, shape], np.stack([np.eye(3), turn]), np.stack([np.zeros(3), place]), MARGIN)
    assert 1 < len(wanted) < 40
    seen = np.sort(found.gap[(found.shape == 1) & (found.feature == 0)])
    np.testing.assert_allclose(seen, np.sort(distance[wanted]), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_a_ball_at_a_vertex_has_one_contact_there(turned: bool) -> None:
    """The vertex had another one, and which of both bore the force was for rounding to say; a second peak keeps its own."""
    peaks = np.array([(x, y, 0.0) for x in (-0.01, 0.01) for y in (-0.01, 0.01)])
    both = [(0, 1, 4), (1, 3, 4), (3, 2, 4), (2, 0, 4), (1, 0, 5), (3, 1, 5), (2, 3, 5), (0, 2, 5)]
    mesh = Mesh(np.vstack([peaks, (0.0, 0.0, 0.004), (0.0, 0.0, -0.01)]), [(a, b, c)[::-1] for a, b, c in both])
    turn = Rotation.from_rotvec((1.0, 2.0, 0.5) if turned else (0.0, 0.0, 0.0)).as_matrix()
    place = turn @ np.array([1e-4, 2e-4, 0.0145])
    found = detect([mesh, Sphere(0.01)], np.stack([turn, np.eye(3)]), np.stack([np.zeros(3), place]), 1e-3)
    assert found.n == 1
    assert found.gap[0] == pytest.approx(np.linalg.norm([1e-4, 2e-4, 0.0105]) - 0.01, abs=1e-12)


def test_a_ball_that_slides_on_a_fine_mesh_without_friction_keeps_its_speed() -> None:
    """Vertices ahead braked it: after half a second 0.43 of its energy was left, *good*."""
    scene = fs.Scene("slides", dt=0.01, duration=0.3, default_friction=0.0)
    scene.add_obstacle("plate", plate((0.3, 0.06, 0.01), (150, 30, 1)), position=(0.0, 0.0, -0.005))
    scene.add_rigid("ball", Sphere(0.01), mass=0.1, position=(-0.11, 2e-4, 0.01), velocity=(0.6, 0, 0))
    run = fs.simulate(scene)
    assert run.verdict == "good"
    np.testing.assert_allclose(run.steps["kinetic_energy_J"], 0.5 * 0.1 * 0.6**2, rtol=1e-6)


QUARTER = 0.5 * np.pi
#: Bodies by their shape and angle of turn about x: lying, and standing.
HELD = [
    (Capsule(0.01, 0.02), QUARTER),
    (Cylinder(0.01, 0.02), QUARTER),
    (Cylinder(0.01, 0.02), 0.0),
    (Cone(0.01, 0.02, 0.008), 0.0),
]


LARGER = [(Cylinder(0.03, 0.02), 0.0), (Cone(0.03, 0.02, 0.02), 0.0), (Cone(0.01, 0.02, 0.0), QUARTER + np.arctan2(0.01, 0.04))]


@pytest.mark.parametrize(("body", "turn"), [*HELD[:2], *LARGER])
def test_vertices_beside_a_body_on_its_ends_press_it_where_they_are_above_the_plane_under_these(body: Shape, turn: float) -> None:
    """Of level vertices away from the ends every tenth is raised by 10 um: the slow twin asks these for their distances."""
    flat = plate((0.12, 0.12, 0.02), (60, 60, 1))
    turned = Rotation.from_rotvec((turn, 0.0, 0.0)).as_matrix()
    lowest = min((point @ turned.T)[2] - radius for point, radius in zip(*body.features(), strict=True))
    place = np.array([3e-4, 7e-4, 0.01 - lowest])
    away = np.min(
        [np.linalg.norm(flat.points[:, :2] - (place + point @ turned.T)[:2], axis=1) for point in body.features()[0]], axis=0
    )
    top = np.flatnonzero((flat.points[:, 2] > 0.0) & (away > 0.007))
    points = flat.points.copy()
    points[top[::10], 2] += 1e-5
    distance, _ = signed_distance(body, (points[top[::10]] - place) @ turned)
    found = detect([Mesh(points, flat.triangles), body], np.stack([np.eye(3), turned]), np.stack([np.zeros(3), place]), 0.004)
    assert (distance < 0.004).sum() > 3
    seen = found.gap[(found.shape == 1) & (found.feature == 0)]
    np.testing.assert_allclose(np.sort(seen), np.sort(distance[distance < 0.004]), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(("body", "turn"), HELD)
def test_what_lies_on_its_ends_on_a_fine_mesh_slides_without_friction_as_on_a_box(body: Shape, turn: float) -> None:
    """Vertices ahead braked it: of its energy a lying capsule or cylinder kept 0.2, a standing one 3e-4, *good*."""
    scene, speed = fs.Scene("slides", dt=0.01, duration=0.3, default_friction=0.0), 0.6 if turn else 0.2
    box = fs.box_tets((0.3, 0.06, 0.01), (150, 30, 1))
    inner = (np.abs(box.points[:, 0]) < 0.149) & (np.abs(box.points[:, 1]) < 0.029)
    off = np.random.default_rng(3).uniform(-3e-4, 3e-4, box.points.shape) * np.array([1.0, 1.0, 0.0])
    scene.add_obstacle("plate", Mesh(box.points + inner[:, None] * off, box.surface_triangles), position=(0.0, 0.0, -0.005))
    place = (-0.11, 2e-4, 0.01 if turn else 0.02)
    scene.add_rigid("body", body, mass=0.1, position=place, rotation=(turn, 0, 0), velocity=(speed, 0, 0))
    run = fs.simulate(scene)
    assert run.verdict == "good"
    np.testing.assert_allclose(run.steps["kinetic_energy_J"], 0.05 * speed**2, rtol=1e-6)


@pytest.mark.parametrize("cells", [(150, 30, 1), (1, 1, 1)])
def test_a_cylinder_rolls_down_a_mesh_as_by_theory(cells: tuple[int, int, int]) -> None:
    """Its rims got new names as it rolled, so that their contacts turned with it: it had 0.82 of its energy."""
    scene = fs.Scene("rolls", dt=0.01, duration=0.4, default_friction=0.5, gravity=(0.98, 0.0, -9.76))
    scene.add_obstacle("plate", plate((0.3, 0.06, 0.01), cells), position=(0.0, 0.0, -0.005))
    scene.add_rigid("body", Cylinder(0.01, 0.02), density=1000.0, position=(-0.11, 2e-4, 0.01), rotation=(QUARTER, 0, 0))
    run = fs.simulate(scene)
    assert run.verdict == "good"
    np.testing.assert_allclose(run.steps["kinetic_energy_J"][-1], 3e-3 * np.pi * (0.98 * 0.4 * 2.0 / 3.0) ** 2, rtol=1e-5)


def test_a_rim_near_the_border_of_a_mesh_whose_sampled_distance_is_too_large_leaves_the_rest_to_vertices() -> None:
    """The rim had its contact beside its lowest point, and the mantle sank in by 87 um."""
    scene = fs.Scene("slides", dt=0.01, duration=0.6, default_friction=0.3)
    scene.add_obstacle("plate", plate((0.2, 0.2, 0.01), (100, 100, 1)), position=(0.0, 0.0, -0.005))
    turn = (Rotation.from_rotvec((0.15, 0.0, 0.0)) * Rotation.from_rotvec((QUARTER, 0.0, 0.0))).as_rotvec()
    scene.add_rigid(
        "body", Cylinder(0.01, 0.02), density=1000.0, position=(0.0, 0.0, 0.03), rotation=turn, velocity=(0.2, 0.1, 0.0),
        angular_velocity=(3.0, 2.0, 5.0),
    )  # fmt: skip
    assert fs.simulate(scene).steps["max_penetration_m"].max() < 2e-5


@pytest.mark.parametrize("body", [Capsule(0.01, 0.02), Cylinder(0.01, 0.02)])
def test_what_lies_across_a_smooth_ridge_comes_to_rest(body: Shape) -> None:
    """It lies on vertices alone: of those that are nearer than their neighbours it rocked, gained energy, and was *wrong*."""
    scene = fs.Scene("ridge", dt=0.01, duration=0.6, default_friction=0.5)
    box = fs.box_tets((0.12, 0.06, 0.02), (60, 30, 4))
    bent = box.points - np.outer((box.points[:, 2] / 0.02 + 0.5) * box.points[:, 1] ** 2 / 0.1, (0.0, 0.0, 1.0))
    scene.add_obstacle("ridge", Mesh(bent, box.surface_triangles), position=(0.0, 0.0, -0.01))
    scene.add_rigid("body", body, density=1000.0, position=(3e-4, 2e-4, 0.0101), rotation=(QUARTER, 0, 0))
    run = fs.simulate(scene)
    assert run.verdict == "good"
    assert run.steps["kinetic_energy_J"][-1] < 1e-9
