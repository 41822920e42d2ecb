"""Corners and vertices exactly on edges of other shapes: parts that lie flush, which the distance alone cannot hold.

The slow twin of the kernel is :func:`plainly_faced`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from placed_pairs import detect
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import femsim as fs
from contact.creases import edges_of_corners, segments
from contact.detect_kernels import DEEPER, HAIR, LEAN
from contact.facing_kernels import AWAY
from contact.shapes import Box, Mesh, Shape, signed_distance

FloatArray = NDArray[np.float64]

HALF = 0.02


def box_mesh(*lengths: float) -> Mesh:
    """A box as a mesh of 12 triangles."""
    surface = fs.box_triangles(lengths)
    return Mesh(surface.points, surface.triangles)


CUBE, CUBE_MESH, NARROW = Box((HALF, HALF, HALF)), box_mesh(0.04, 0.04, 0.04), box_mesh(0.04, 0.02, 0.04)
PAIRS = {"mesh-mesh": (CUBE_MESH, CUBE_MESH), "mesh-box": (CUBE, CUBE_MESH), "box-mesh": (CUBE_MESH, CUBE)}


def hull(points: FloatArray) -> Mesh:
    """Convex hull of points as a mesh."""
    found = ConvexHull(points)
    triangles = found.simplices.copy()
    corners = points[triangles]
    inward = np.einsum("ti,ti->t", np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), found.equations[:, :3])
    triangles[inward < 0.0] = triangles[inward < 0.0, ::-1]
    used, numbers = np.unique(triangles, return_inverse=True)
    return Mesh(points[used], numbers.reshape(-1, 3))


# ------------------------------------------------------------------ at rest


def speed_in_the_end(scene: fs.Scene, steps: int, bodies: list[str]) -> tuple[fs.Simulation, float]:
    """Run steps; how fast (m/s) bodies move in the last one."""
    sim = fs.Simulation(scene)
    sim.step(steps - 1)
    before = [sim.pose(name)[1] for name in bodies]
    sim.step()
    return sim, max(float(np.abs(sim.pose(name)[1] - at).max()) for name, at in zip(bodies, before, strict=True)) / scene.dt


@pytest.mark.parametrize("angle", [0.0, 0.15, 0.5, 1.25])
@pytest.mark.parametrize("pair", [*PAIRS, "on a narrower one"])
def test_a_cube_rests_on_one_of_the_same_footprint(pair: str, angle: float) -> None:
    """Dropped by 0.1 mm it fell through at most angles, as each corner is exactly on an edge; as boxes it never did."""
    lower, upper = PAIRS.get(pair, (NARROW, CUBE_MESH))
    scene = fs.Scene("flush", dt=0.005)
    scene.add_obstacle("lower", lower, rotation=(0.0, 0.0, angle))
    scene.add_rigid("upper", upper, mass=0.1, position=(0.0, 0.0, 0.0401), rotation=(0.0, 0.0, angle))
    scene.sensor("force", "upper")
    sim, speed = speed_in_the_end(scene, 30, ["upper"])
    assert sim.pose("upper")[1] == pytest.approx([0.0, 0.0, 0.04], abs=1e-9) and speed < 1e-6
    assert sim.read("force").force == pytest.approx([0.0, 0.0, 0.981], abs=1e-6)
    assert sim.verdict == "good"


@pytest.mark.parametrize("offset", [0.0, 1e-9, 1e-7, 1e-6])
def test_cubes_stand_side_by_side(offset: float) -> None:
    """Flush, as CAD places them: neither shoves the other away, and the floor carries both."""
    along = np.array([np.cos(0.5), np.sin(0.5), 0.0])
    scene = fs.Scene("side by side", dt=0.005)
    scene.add_floor()
    scene.add_rigid("left", CUBE_MESH, mass=0.1, position=(0.0, 0.0, HALF), rotation=(0.0, 0.0, 0.5))
    scene.add_rigid(
        "right", CUBE_MESH, mass=0.1, position=tuple((0.04 + offset) * along + [0.0, 0.0, HALF]), rotation=(0.0, 0.0, 0.5)
    )
    scene.sensor("floor", "floor")
    sim, speed = speed_in_the_end(scene, 30, ["left", "right"])
    assert speed < 1e-6 and sim.read("floor").force == pytest.approx([0.0, 0.0, -1.962], abs=1e-6)
    assert sim.pose("left")[1] == pytest.approx([0.0, 0.0, HALF], abs=1e-9)


def test_three_cubes_stand_on_each_other() -> None:
    scene = fs.Scene("stack", dt=0.005)
    scene.add_floor()
    names = [f"cube_{k}" for k in range(3)]
    for k, name in enumerate(names):
        scene.add_rigid(name, CUBE_MESH, mass=0.1, position=(0.0, 0.0, HALF + 0.0401 * k), rotation=(0.0, 0.0, 0.3))
    scene.sensor("floor", "floor")
    sim, speed = speed_in_the_end(scene, 50, names)
    assert speed < 1e-6 and sim.read("floor").force == pytest.approx([0.0, 0.0, -2.943], abs=1e-6)
    np.testing.assert_allclose([sim.pose(name)[1][2] for name in names], [0.02, 0.06, 0.1], atol=1e-9)


# ------------------------------------------------------------------ which contacts there are


@pytest.mark.parametrize("pressed", [0.0, 1e-12, 1e-5, 1e-3])
def test_halves_of_a_body_press_on_the_face_between_them_alone(pressed: float) -> None:
    """A convex body and its image behind a face: each corner of that face has it for its contact, whatever the other faces."""
    rng, count = np.random.default_rng(0), 0
    for _ in range(12):
        points = rng.normal(size=(9, 3))
        points[:4, 2] = points[:, 2].min() - 0.3  # the face between
        points[:4, :2] *= 1.3
        body = hull(points)
        image = Mesh(body.points * [1.0, 1.0, -1.0], body.triangles[:, ::-1])
        level = float(body.points[:, 2].min())
        turn = Rotation.random(rng=rng).as_matrix()
        shift = turn @ np.array([0.0, 0.0, 2.0 * level + pressed])
        found = detect([body, image], np.stack([turn, turn]), np.stack([np.zeros(3), shift]), 1e-2)
        normal = found.frame[:, 0] @ turn
        corners = int((body.points[:, 2] < level + 1e-12).sum())
        assert (found.feature == 0).sum() == 2 * corners
        np.testing.assert_allclose(np.abs(normal[:, 2]), 1.0, atol=1e-9)
        np.testing.assert_allclose(found.gap, -pressed, atol=1e-9)
        count += corners
    assert count >= 36


@pytest.mark.parametrize("pair", PAIRS)
def test_flush_cubes_are_as_deep_without_a_margin(pair: str) -> None:
    """What is measured after a step; the sides of both are no contacts, nor where one is beside the other by little."""
    turn = np.tile(Rotation.from_rotvec([0.0, 0.0, 0.5]).as_matrix(), (2, 1, 1))
    for offset in (0.0, 1e-9, 1e-7, 1e-6, 1e-5):
        shift = turn[0] @ np.array([offset, 0.0, 0.04 - 1e-4])
        found = detect(PAIRS[pair], turn, np.stack([np.zeros(3), shift]), 0.0)
        assert len(found.gap) >= 4
        np.testing.assert_allclose(found.gap, -1e-4, atol=1e-12)
        np.testing.assert_allclose(np.abs(found.frame[:, 0, 2]), 1.0, atol=1e-9)


@pytest.mark.parametrize("lower", ["mesh", "box"])
def test_corners_of_bodies_that_are_apart_are_no_nearer_than_these(lower: str) -> None:
    """Round ones of some faces in any position, one above the other: planes of faces go on where the faces end."""
    rng, count, apart = np.random.default_rng(0), 0, 1e-3
    for _ in range(30):
        bodies: list[Shape] = []
        for _ in range(2):
            points = rng.normal(size=(40, 3))
            bodies.append(hull(points / np.linalg.norm(points, axis=1, keepdims=True) * [8e-3, 8e-3, 2e-2]))
        if lower == "box":
            bodies[0] = Box((8e-3, 8e-3, 2e-2))
        turns = Rotation.random(2, rng=rng).as_matrix()
        below, above = (body.features()[0] @ turn.T for body, turn in zip(bodies, turns, strict=True))
        shift = below[below[:, 2].argmax()] - above[above[:, 2].argmin()] + [0.0, 0.0, apart]
        found = detect(tuple(bodies), turns, np.stack([np.zeros(3), shift]), 6e-3)
        assert found.gap.min() >= apart * (1.0 - 1e-6)
        count += len(found.gap)
    assert count > 60


def pressed(bodies: list[Mesh], depth: float, rng: np.random.Generator) -> tuple[FloatArray, float, FloatArray]:
    """Place (m) of the second of two convex bodies about the origin, their overlap (m), about ``depth``, and the way out of it.

    They overlap where their difference, which is convex too, holds the place.
    """
    first, second = (body.points for body in bodies)
    faces = ConvexHull((first[:, None] - second).reshape(-1, 3)).equations
    way = rng.normal(size=3)
    along = np.maximum(faces[:, :3] @ way, 1e-300)
    reached = (-faces[:, 3] / along).argmin()
    place = -faces[reached, 3] / along[reached] * way - depth * faces[reached, :3]
    levels = faces[:, :3] @ place + faces[:, 3]
    return place, float(-levels.max()), faces[levels.argmax(), :3]


def test_leaning_boxes_are_pressed_out_of_each_other_the_shortest_way() -> None:
    """Corners beside edges, where the sampled distance errs, were no contacts, nor were edges of less than a right angle."""
    rng, exact = np.random.default_rng(0), 0
    for _ in range(100):
        points = [CUBE_MESH.points @ (np.eye(3) + rng.uniform(-0.4, 0.4, (3, 3))) for _ in range(2)]
        bodies = [hull(corners) for corners in points]
        place, overlap, way = pressed(bodies, 1e-3 * HALF, rng)
        found = detect(bodies, np.tile(np.eye(3), (2, 1, 1)), np.stack([np.zeros(3), place]), HALF / 100.0)
        deepest = found.gap.argmin()
        outward = way if found.point[deepest] >= len(bodies[0].points) else -way
        assert found.gap[deepest] == pytest.approx(-overlap, rel=0.5)
        exact += abs(found.gap[deepest] + overlap) < 1e-6 * overlap and found.frame[deepest, 0] @ outward > 1.0 - 1e-9
    assert exact >= 95


def test_sharp_bodies_are_no_deeper_than_they_overlap() -> None:
    """Their corners near sharp edges were held by faces far behind these, up to 9 times as deep, and edges there went unseen."""
    rng, overlapping, seen = np.random.default_rng(0), 0, 0
    for _ in range(120):
        clouds = rng.normal(size=(2, 6, 3))
        bodies = [hull(cloud - cloud.mean(axis=0)) for cloud in clouds]
        place, overlap, _ = pressed(bodies, 0.05, rng)
        found = detect(bodies, np.tile(np.eye(3), (2, 1, 1)), np.stack([np.zeros(3), place]), 1e-2)
        if overlap > 0.0:
            assert found.gap.min(initial=0.0) >= -DEEPER * overlap
            overlapping, seen = overlapping + 1, seen + int(found.gap.min(initial=0.0) < 0.0)
    assert overlapping > 100 and seen >= overlapping - 1


@pytest.mark.parametrize("beyond", [2e-4, 3e-4])
def test_a_sharp_edge_rests_on_another_one_near_its_end(beyond: float) -> None:
    """Wedges of 30 degrees across each other, 0.1 mm deep: the end of one, beside the other, is behind the far face of this."""
    section = np.array([[0.0, 0.0], [-1.0, 0.0], [1.0, 0.0]]) * 0.04 * np.tan(np.pi / 12.0)
    section[1:, 1] = -0.04
    wedge = np.array([(x, y, z) for x in (-0.03, 0.03) for y, z in section])
    above = wedge[:, [1, 0, 2]] * [1.0, 1.0, -1.0] + [0.0, beyond - 0.03, -1e-4]
    lying = Rotation.from_rotvec([0.5, -0.4, 0.7])  # so that the bounding boxes overlap by far more
    found = detect([hull(lying.apply(body)) for body in (wedge, above)], np.tile(lying.inv().as_matrix(), (2, 1, 1)),
                   np.zeros((2, 3)), 1e-3)  # fmt: skip
    deepest = found.gap.argmin()
    assert found.gap[deepest] == pytest.approx(-1e-4, abs=1e-12)
    assert abs(found.frame[deepest, 0, 2]) == pytest.approx(1.0, abs=1e-9)


def test_each_of_many_cubes_holds_the_corners_over_its_edges() -> None:
    """They are one mesh of 144 creases, which are looked at in bunches; one of the same size is over each."""
    apart, cube = 0.02, box_mesh(0.02, 0.02, 0.02)
    shifts = np.column_stack([np.linspace(-0.33, 0.33, 12), np.zeros((12, 2))])
    points = np.concatenate([cube.points + shift for shift in shifts])
    row = Mesh(points, np.concatenate([cube.triangles + len(cube.points) * k for k in range(12)]))
    turn = Rotation.from_rotvec([0.3, -0.2, 0.5]).as_matrix()
    for shift in shifts:
        place = turn @ (shift + np.array([0.0, 0.0, 0.02 + apart]))
        found = detect([row, cube], np.stack([turn, turn]), np.stack([np.zeros(3), place]), 0.025)
        assert (found.feature == 0).sum() == 4
        np.testing.assert_allclose(found.gap, apart, atol=1e-12)
        np.testing.assert_allclose(np.abs(found.frame[:, 0] @ turn[:, 2]), 1.0, atol=1e-9)


def test_the_far_side_of_a_ball_is_not_behind_the_far_face_of_a_thin_wall() -> None:
    """Both belong to bodies with parts elsewhere, so that their bounding boxes overlap by far: tips of two fingers pushed so."""

    def joined(*parts: tuple[Any, tuple[float, float, float]]) -> Mesh:
        first = np.cumsum([0, *(len(part.points) for part, _ in parts[:-1])])
        points = np.concatenate([part.points + np.array(place) for part, place in parts])
        triangles = np.concatenate([part.triangles + k for (part, _), k in zip(parts, first, strict=True)])
        return Mesh(points, triangles, resolution=250)

    block = box_mesh(0.004, 0.004, 0.004)
    wall = joined((box_mesh(0.0002, 0.005, 0.005), (0.0007, 0.0, 0.0)), (block, (-0.01, 0.0, 0.0)))
    ball = joined((fs.sphere_triangles(0.0005, 2), (0.0, 0.0, 0.0)), (block, (0.0, 0.01, 0.0)))
    for turn in (np.eye(3), Rotation.from_rotvec([0.4, -0.3, 0.8]).as_matrix()):
        for lift in (0.0, 0.0003, 0.0008):
            shift = turn @ np.array([0.0, lift, 0.5 * lift])
            found = detect((wall, ball), np.stack([turn, turn]), np.stack([np.zeros(3), shift]), 2e-3)
            points = found.feature == 0
            assert points.sum() >= 8
            wanted = 0.0006 - (found.position[points] @ turn)[:, 0]
            assert (found.gap[points] > wanted - 1e-9).all()


def between_ends(place: FloatArray, first: FloatArray, last: FloatArray) -> float:
    """Distance of a place from a segment."""
    part = np.clip((place - first) @ (last - first) / np.sum((last - first) ** 2), 0.0, 1.0)
    return float(np.linalg.norm(first + part * (last - first) - place))


def measured(half: FloatArray, place: FloatArray, hair: float) -> tuple[float, FloatArray]:
    """Signed distance of a box and its normal, on the surface that of the face, edge or corner there."""
    distance, normal = (x[0] for x in signed_distance(Box(half), place[None]))
    if abs(distance) > hair:
        return float(distance), normal
    out = np.sign(place) * (abs(place - distance * normal) >= half)
    return float(distance), out / np.linalg.norm(out)


def plainly_faced(
    shapes: tuple[Shape, Shape], rotation: FloatArray, translation: FloatArray, margin: float
) -> list[tuple[float, ...]]:
    """Gap, normal and place of the contacts of corners of both shapes with the other one, by the rules in plain words."""
    rows = []
    for a, b in ((1, 0), (0, 1)):
        start, edges = edges_of_corners(shapes[a])
        half = 0.5 * (shapes[b].aabb[1] - shapes[b].aabb[0])
        own_half = 0.5 * (shapes[a].aabb[1] - shapes[a].aabb[0])
        hair = HAIR * half.max()
        cell = shapes[b].grid().spacing if isinstance(shapes[b], Mesh) else hair
        between = translation[0] - translation[1]
        axes = np.concatenate([rotation[0].T, rotation[1].T])
        depth = [own_half @ abs(axis @ rotation[a]) + half @ abs(axis @ rotation[b]) - abs(axis @ between) for axis in axes]
        overlap = max(0.0, min(*depth, *half, *own_half))
        for k, point in enumerate(shapes[a].features()[0] @ rotation[a].T + translation[a]):
            place = (point - translation[b]) @ rotation[b]
            spokes = edges[start[k] : start[k + 1], :3] @ rotation[a].T @ rotation[b]
            lengths = edges[start[k] : start[k + 1], 3]
            distance, normal = (x[0] for x in signed_distance(shapes[b], place[None]))
            if distance >= max(margin, cell):
                continue
            creases = list(zip(*segments(shapes[b]), strict=True))
            beside = min(between_ends(place, first, last) for first, last, _, _ in creases)
            if isinstance(shapes[b], Mesh) and beside < cell:
                distance, normal = measured(half, place, hair)
            apart = distance > hair and (distance + lengths * (spokes @ normal)).min() > 0.0
            deep = hair if (spokes @ normal).min() >= -LEAN or apart else hair + DEEPER * overlap
            faces = []
            for first, last, one, two in creases:
                along = (last - first) / np.linalg.norm(last - first)
                away = place - first
                if -hair <= away @ along <= np.linalg.norm(last - first) + hair:
                    for inward, other in ((one, two), (two, one)):
                        out = np.cross(along, inward)
                        out *= -np.sign(out @ other)
                        level, facing = away @ out, (spokes @ out).min()
                        if -hair <= away @ inward <= deep and -deep <= level < margin and facing >= -LEAN:
                            foot = abs(signed_distance(shapes[b], (place - level * out)[None])[0][0])
                            if foot <= cell:
                                faces.append((level, facing, out))
            if faces:
                near = [face for face in faces if face[0] >= max(face[0] for face in faces) - hair]
                distance, _, normal = max(near, key=lambda face: face[1])
            elif (spokes @ normal).min() < -AWAY and distance > -hair:
                continue
            if distance < margin:
                rows.append((distance, *(rotation[b] @ normal), *point))
    return rows


@pytest.mark.parametrize("kinds", [("mesh", "mesh"), ("mesh", "box"), ("box", "mesh")], ids="-".join)
def test_contacts_of_corners_are_those_of_the_slow_twin(kinds: tuple[str, str]) -> None:
    """Flush in one or two directions, exactly or by little, pressed in or apart; and anyhow near each other."""
    rng, count = np.random.default_rng(1), 0
    halves = rng.uniform(0.4, 1.0, (2, 3))
    halves[1, :2] = halves[0, 0], 0.7
    shapes = tuple(Box(h) if kind == "box" else box_mesh(*(2.0 * h)) for kind, h in zip(kinds, halves, strict=True))
    for k in range(60):
        turn = Rotation.random(rng=rng)
        small = 10.0 ** rng.uniform(-9, -3, 3) * rng.choice([-1.0, 0.0, 1.0], 3)
        place = np.array([0.0, halves[0, 1] - 0.7, halves[0, 2] + halves[1, 2]]) + small
        wobble = Rotation.from_rotvec(rng.normal(size=3) * (10.0 ** rng.uniform(-9, -1) if k % 2 else 0.0))
        rotation = np.stack([turn.as_matrix(), (turn * wobble).as_matrix()])
        translation = np.stack([np.zeros(3), turn.apply(place)])
        found = detect(shapes, rotation, translation, 1e-2)
        rows = np.column_stack([found.gap, found.frame[:, 0], found.position])[found.feature == 0]
        wanted = np.array(plainly_faced(shapes, rotation, translation, 1e-2)).reshape(-1, 7)
        assert len(rows) == len(wanted)
        np.testing.assert_allclose(rows, wanted, atol=1e-8)
        count += len(rows)
    assert count > 200


def test_the_edges_of_corners_lead_along_those_of_the_shape() -> None:
    """Three at a corner of a box, the same and diagonals of faces at one of its mesh, in the order of the features."""
    for shape in (CUBE, CUBE_MESH):
        start, edges = edges_of_corners(shape)
        corners = shape.features()[0]
        assert len(start) == len(corners) + 1 and start[-1] == len(edges)
        np.testing.assert_allclose(np.linalg.norm(edges[:, :3], axis=1), 1.0, atol=1e-15)
        for k, corner in enumerate(corners):
            own, length = edges[start[k] : start[k + 1], :3], edges[start[k] : start[k + 1], 3:]
            ends = corner + length * own
            assert (abs(ends[:, None] - corners).max(axis=2).min(axis=1) < 1e-15).all()
            assert (own * np.sign(corner) <= 1e-15).all()  # into the box
            assert sum(np.abs(np.abs(edge).max() - 1.0) < 1e-12 for edge in own) == 3
