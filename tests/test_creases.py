"""Edges of meshes and axes of capsules that cross edges of others: creases, contacts, and bodies at rest.

The slow twin of the kernels is :func:`plain_crossings`; contacts of creases with cylinders are compared with those of box edges.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from placed_pairs import closest, detect, random_boxes, separation
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import creases
from contact.creases import CREASE, mesh_creases, segments
from contact.detect import Detector, PointContacts
from contact.detect_kernels import DEEPER, HAIR, LEAN, PARALLEL
from contact.errors import ContactError
from contact.rim_kernels import FACE
from contact.shapes import Box, Capsule, Cylinder, Mesh, PlacedShape, Shape, signed_distance
from contact.solvers import make_solver
from femsim.step.stepper import Stepper

FloatArray = NDArray[np.float64]


def hull(points: FloatArray) -> Mesh:
    """Convex hull of points as a mesh."""
    found = ConvexHull(points)
    triangles = found.simplices.copy()
    middle = points.mean(axis=0)
    for t, (a, b, c) in enumerate(triangles):
        if np.cross(points[b] - points[a], points[c] - points[a]) @ (points[a] - middle) < 0.0:
            triangles[t] = c, b, a
    used, numbers = np.unique(triangles, return_inverse=True)
    return Mesh(points[used], numbers.reshape(-1, 3), resolution=24)


def box_mesh(half: Sequence[float] | FloatArray, cuts: int = 0) -> Mesh:
    """A box as a mesh; ``cuts`` more points along its edges, which divide its faces and go along no crease."""
    surface = fs.box_tets(tuple(2.0 * np.asarray(half)), (1 + cuts, 1 + cuts, 1 + cuts)).surface()
    return Mesh(surface.points, surface.triangles, resolution=24)


def crossings(found: PointContacts) -> FloatArray:
    """Gap, normal from the second body to the first, and place of contacts that are no points, sorted: (n, 7)."""
    rows = np.column_stack([found.gap, found.frame[:, 0] * np.where(found.shape == 1, 1.0, -1.0)[:, None], found.position])
    rows = rows[found.feature > 0]
    return rows[np.lexsort(np.round(rows, 9).T[::-1])]


# ------------------------------------------------------------------ what is a crease


@pytest.mark.parametrize("cuts", [0, 2])
def test_the_creases_of_a_box_are_its_edges(cuts: int) -> None:
    """However its faces are divided; where a point divides an edge, both parts are one crease."""
    half = np.array([0.05, 0.02, 0.01])
    ends = [
        np.sort(np.concatenate(found[:2], axis=1).reshape(-1, 2, 3), axis=1)
        for found in (mesh_creases(box_mesh(half, cuts)), segments(Box(half)))
    ]
    found, wanted = (one.reshape(-1, 6)[np.lexsort(np.round(one.reshape(-1, 6), 9).T)] for one in ends)
    np.testing.assert_allclose(found, wanted, atol=1e-15)
    start, end, one, two = mesh_creases(box_mesh(half, cuts))
    middle = 0.5 * (start + end)
    np.testing.assert_allclose(
        np.abs(np.cross(one, two)), np.abs(end - start) / np.linalg.norm(end - start, axis=1)[:, None], atol=1e-12
    )
    assert (np.einsum("ni,ni->n", one, middle) < 0.0).all() and (np.einsum("ni,ni->n", two, middle) < 0.0).all()


def test_creases_that_go_on_are_those_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a loop over all creases that met in the same vertex before, however many pairs are compared at once."""
    rng = np.random.default_rng(11)
    vertices = np.array([rng.choice(12, 2, replace=False) for _ in range(40)])
    along, one, two = (np.eye(3)[rng.integers(0, 3, 40)] + 1e-7 * rng.standard_normal((40, 3)) for _ in range(3))
    expected = []
    for k in range(40):
        for vertex in vertices[k]:
            for other in np.flatnonzero((vertices[:k] == vertex).any(axis=1)):
                pairs = ((one[other], two[other]), (two[other], one[other]))
                alike = any(max(abs(one[k] - x).max(), abs(two[k] - y).max()) < 1e-6 for x, y in pairs)
                if alike and np.linalg.norm(np.cross(along[k], along[other])) < 1e-6:
                    expected.append((k, int(other)))
    for at_once in (7, 1_000_000):
        monkeypatch.setattr(creases, "PAIRS_AT_ONCE", at_once)
        assert [tuple(pair) for pair in creases.going_on(vertices, along, one, two).tolist()] == expected
    assert len(expected) > 5


def test_creases_of_a_mesh_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = box_mesh(np.array([0.1, 0.2, 0.3]), 0)
    found = segments(mesh)
    monkeypatch.setattr(creases, "mesh_creases", None)
    assert segments(mesh) is found


def test_edges_that_turn_little_or_inwards_are_no_creases() -> None:
    for turn, count in ((0.9 * CREASE, 6), (1.1 * CREASE, 7)):  # a roof on a wedge: ridge, two eaves, the rest
        height = 0.5 * np.tan(0.5 * turn)
        section = [(-0.5, 0.0), (0.0, height), (0.5, 0.0)]
        roof = hull(np.array([(x, y, z) for x in (-1.0, 1.0) for y, z in [*section, (0.0, -5.0)]]))
        start, end, _, _ = mesh_creases(roof)
        along = np.abs((end - start)[:, 0]) > 1.9
        assert along.sum() == count - 3
    notch = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)], dtype=float)  # an L has one edge that turns inwards
    lower, upper = (np.column_stack([notch, np.full(6, z)]) for z in (0.0, 1.0))
    caps = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    walls = [((k, j, 6 + j), (k, 6 + j, 6 + k)) for k, j in zip(range(6), (1, 2, 3, 4, 5, 0), strict=True)]
    triangles = [(c, b, a) for a, b, c in caps] + [(6 + a, 6 + b, 6 + c) for a, b, c in caps] + list(itertools.chain(*walls))
    start, end, _, _ = mesh_creases(Mesh(np.concatenate([lower, upper]), np.array(triangles)))
    assert len(start) == 17 and not ((start[:, :2] == 1.0).all(axis=1) & (end[:, :2] == 1.0).all(axis=1)).any()


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        ([0, 0], "of its body"),
        ([-2, -1], "give -1"),
        ([3, -1], "give -1"),
        ([0], r"give a whole number for each of the 2 shapes"),
    ],
)
def test_edges_must_be_of_the_points_of_their_shape(edge: list[int], words: str) -> None:
    capsule = Capsule(0.01, 0.02)
    with pytest.raises(ContactError, match=words):
        Detector([PlacedShape(capsule, 0), PlacedShape(capsule, 1)], [0, 0, 1, 1], [0.01] * 4, [0] * 4,
                 np.ones((2, 2), dtype=bool), shape_edge=edge)  # fmt: skip


# ------------------------------------------------------------------ which contacts there are


def plain_crossings(
    shapes: Sequence[Shape],
    exact: Sequence[Shape],
    rotation: FloatArray,
    translation: FloatArray,
    margin: float,
    points: PointContacts,
) -> FloatArray:
    """Gap, normal and place of crossing segments, all pairs in plain words; ``exact``: the shapes, none sampled."""

    def placed(k: int) -> list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
        start, end, one, two = segments(shapes[k])
        turn = rotation[k]
        return list(zip(start @ turn.T + translation[k], end @ turn.T + translation[k], one @ turn.T, two @ turn.T, strict=True))

    def inside(k: int, place: FloatArray, beside: float) -> bool:
        return bool(signed_distance(exact[k], ((place - translation[k]) @ rotation[k])[None])[0][0] <= beside)

    def way_out(ends: FloatArray, place: FloatArray, along: FloatArray, one: FloatArray, two: FloatArray) -> float:
        """How far the ends of a segment (2, 3) reach behind the nearer of the faces at an edge, of which ``place`` is a point."""
        normals = [np.cross(along, one), np.cross(along, two)]
        outward = [-n * np.sign(n @ other) for n, other in zip(normals, (two, one), strict=True)]
        return min(max(-(ends - place) @ n) for n in outward) if one.any() else np.inf

    radius = [shape.radius if isinstance(shape, Capsule) else 0.0 for shape in shapes]
    rows = []
    for (a0, a1, one_a, two_a), (b0, b1, one_b, two_b) in itertools.product(placed(0), placed(1)):
        along, other = (a1 - a0) / np.linalg.norm(a1 - a0), (b1 - b0) / np.linalg.norm(b1 - b0)
        normal = np.cross(along, other)
        if np.linalg.norm(normal) < PARALLEL:
            continue
        normal /= np.linalg.norm(normal)
        outward = one_a + two_a - one_b - two_b
        if normal @ (outward if outward.any() else a0 - b0) < 0.0:
            normal = -normal
        offset = normal @ (a0 - b0)
        faced = max(normal @ one_b, normal @ two_b) <= LEAN and min(normal @ one_a, normal @ two_a) >= -LEAN
        if offset - sum(radius) >= margin or not faced:
            continue
        s, t, _ = np.linalg.solve(np.column_stack([along, -other, -normal]), b0 - a0)
        hair = 0.5 * HAIR * min(np.linalg.norm(a1 - a0), np.linalg.norm(b1 - b0))
        if not (hair < s < np.linalg.norm(a1 - a0) - hair and hair < t < np.linalg.norm(b1 - b0) - hair):
            continue
        at_a, at_b = a0 + s * along, b0 + t * other
        if offset < -hair and not (inside(1, at_a, hair - LEAN * offset) and inside(0, at_b, hair - LEAN * offset)):
            continue
        aside = way_out(np.array([a0, a1]), at_b, other, one_b, two_b), way_out(np.array([b0, b1]), at_a, along, one_a, two_a)
        if offset < -hair and DEEPER * min(aside) < -offset:
            continue
        gap = offset - sum(radius)
        rows.append([gap, *normal, *(at_a - (radius[0] + 0.5 * gap) * normal)])
    hair = HAIR * min(0.5 * (shape.aabb[1] - shape.aabb[0]).max() for shape in shapes)
    own = points.feature == 0
    gaps = np.concatenate([points.gap[own], [row[0] for row in rows]])
    places = np.concatenate([points.position[own], np.array([row[4:] for row in rows]).reshape(-1, 3)])
    kept = []
    for row in rows:
        near = np.linalg.norm(places - row[4:], axis=1) <= -DEEPER * row[0]
        if any(radius) or row[0] >= -hair or not (near & (DEEPER * gaps > row[0])).any():
            kept.append(row)
    found = np.array(kept).reshape(-1, 7)
    return found[np.lexsort(np.round(found, 9).T[::-1])]


KINDS = [("mesh", "mesh"), ("mesh", "box"), ("box", "mesh"), ("mesh", "capsule"), ("box", "capsule"), ("capsule", "capsule")]


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_crossing_edges_are_those_of_the_slow_twin(kinds: tuple[str, str]) -> None:
    """Apart, pressed into each other, and shoved anyhow into each other."""
    rng = np.random.default_rng(2)
    make = {"mesh": box_mesh, "box": Box, "capsule": lambda half: Capsule(half[0], half[1] + half[2])}
    counts = np.zeros(3, dtype=int)
    for halves, rotation, translation, distance, direction in random_boxes(rng, 40):
        shapes = [make[kind](half) for kind, half in zip(kinds, halves, strict=True)]
        exact = [Box(half) if kind == "mesh" else shape for kind, half, shape in zip(kinds, halves, shapes, strict=True)]
        pushes = (0.0, distance + 1e-4, distance + 0.03)
        for k, (push, margin) in enumerate(zip(pushes, (10.0, 1e-3, 1e-3), strict=True)):
            moved = translation - np.outer([0.0, 1.0], push * direction)
            found = detect(shapes, rotation, moved, margin)
            wanted = plain_crossings(shapes, exact, rotation, moved, margin, found)
            np.testing.assert_allclose(crossings(found), wanted, atol=1e-9)
            counts[k] += len(wanted)
    assert (counts > 0).all() and counts.sum() >= 10, counts


def test_edges_that_are_left_out_in_bunches_are_no_contacts() -> None:
    """A bar lies anywhere on bars that are one mesh, of 144 creases: it crosses what it does of each alone."""
    short, bar = box_mesh(np.array([0.05, 0.01, 0.01])), box_mesh(np.array([0.01, 0.2, 0.01]))
    shifts = np.column_stack([np.linspace(-0.33, 0.33, 12), np.zeros((12, 2))])
    row = Mesh(
        np.concatenate([bar.points + shift for shift in shifts]),
        np.concatenate([bar.triangles + len(bar.points) * k for k in range(12)]),
    )
    rotation = Rotation.from_rotvec([[0.3, 0.02, 0.4], [0.0, 0.0, 0.0]]).as_matrix()
    total = 0
    for x in np.linspace(-0.35, 0.35, 9):
        place = np.array([x, 0.02, 0.026])
        whole = crossings(detect([short, row], rotation, np.stack([place, np.zeros(3)]), 5e-3))
        each = [detect([short, bar], rotation, np.stack([place, shift]), 5e-3) for shift in shifts]
        alone = np.concatenate([crossings(found) for found in each])
        assert len(whole) == len(alone)
        np.testing.assert_allclose(whole, alone[np.lexsort(np.round(alone, 9).T[::-1])], atol=1e-12)
        total += len(whole)
    assert total == 23


@pytest.mark.parametrize("kinds", [("mesh", "mesh"), ("mesh", "box"), ("box", "mesh")], ids="-".join)
def test_edges_of_meshes_cross_like_those_of_boxes(kinds: tuple[str, str]) -> None:
    """The same gaps, normals and places as by the kernel of boxes; pressed in, none much deeper than the boxes are."""
    make, count, pressed = {"mesh": box_mesh, "box": Box}, 0, 0
    for halves, rotation, translation, distance, direction in random_boxes(np.random.default_rng(0), 50):
        shapes = [make[kind](half) for kind, half in zip(kinds, halves, strict=True)]
        wanted = crossings(detect([Box(half) for half in halves], rotation, translation, 10.0))
        np.testing.assert_allclose(crossings(detect(shapes, rotation, translation, 10.0)), wanted, atol=1e-9)
        count += len(wanted)
        translation[1] -= (distance + 1e-4) * direction
        depth = separation(halves, rotation, translation, edges=True)
        rows = crossings(detect(shapes, rotation, translation, 1e-3))
        assert (rows[:, 0] > DEEPER * depth - 1e-9).all() and depth < 0.0
        pressed += len(rows)
    assert count > 40 and pressed > 20


@pytest.mark.parametrize("kinds", [("capsule", "capsule"), ("box", "capsule"), ("capsule", "box")], ids="-".join)
def test_the_smallest_gap_of_a_capsule_is_its_distance(kinds: tuple[str, str]) -> None:
    rng, crossed = np.random.default_rng(3), 0
    make = {"box": Box, "capsule": lambda half: Capsule(0.3 * half[0], half[1] + half[2])}
    for halves, rotation, translation, _, _ in random_boxes(rng, 60):
        shapes = [make[kind](half) for kind, half in zip(kinds, halves, strict=True)]
        distance, direction = closest(shapes, rotation, translation)
        if distance < 1e-2:
            continue
        found = detect(shapes, rotation, translation, 10.0)
        assert found.gap.min() == pytest.approx(distance, abs=2e-5)
        crossed += bool(found.feature[found.gap.argmin()])
        translation[1] -= (distance + 1e-3) * direction
        assert -1.6e-3 < detect(shapes, rotation, translation, 1e-3).gap.min() < 0.0
    assert crossed > 5


@pytest.mark.parametrize("mutual", [True, False])
def test_creases_on_a_cylinder_are_contacts_as_edges_of_a_box(mutual: bool) -> None:
    """Apart, and pressed by a thousandth; contacts of rims with faces are others for a mesh, whose distance is sampled."""
    rng, count = np.random.default_rng(4), 0
    for halves, rotation, translation, _, _ in random_boxes(rng, 40):
        cylinder = Cylinder(*halves[0, :2].tolist())
        distance, direction = closest([cylinder, Box(halves[1])], rotation, translation)
        if distance < 1e-2:
            continue
        for push in (0.0, distance + 1e-3):
            moved = translation - np.outer([0.0, 1.0], push * direction)
            margin = 10.0 if push == 0.0 else 1e-2
            found, wanted = (
                detect([cylinder, other], rotation, moved, margin, mutual) for other in (box_mesh(halves[1]), Box(halves[1]))
            )
            on_faces = (wanted.feature >= FACE) & (wanted.feature < FACE + 6)
            rows, others = crossings(found.select(found.feature >= 104)), crossings(wanted.select(~on_faces))
            np.testing.assert_allclose(rows, others, atol=1e-6)
            count += len(rows)
    assert count > 50


# ------------------------------------------------------------------ bodies at rest

BAR = (0.05, 0.01, 0.01)
SHAPES: dict[str, Shape] = {
    "box": Box(BAR),
    "mesh": box_mesh(BAR),
    "capsule": Capsule(0.01, 0.04),
    "cylinder": Cylinder(0.01, 0.05),
}
ALONG_X = {kind: (0.0, 0.5 * np.pi, 0.0) if kind in ("capsule", "cylinder") else (0.0, 0.0, 0.0) for kind in SHAPES}
NEW = [
    pair for pair in itertools.product(SHAPES, SHAPES) if set(pair) & {"mesh", "capsule"} and set(pair) != {"capsule", "cylinder"}
]


def crossed_bars(
    upper: str, lower: str, *, edge: bool = False, gap: float = 1e-4, turn: float = 0.5 * np.pi, dt: float = 0.005
) -> fs.Scene:
    """A bar across a bar that is fixed, which lies on a face or, with ``edge``, on an edge; the upper one is 100 mm long."""
    scene = fs.Scene("crossed", dt=dt, duration=0.3, theta=1.0, default_friction=0.5)
    lying = Rotation.from_rotvec(ALONG_X[lower])
    stands = edge and lower in ("box", "mesh")
    if stands:
        lying = Rotation.from_euler("x", 45, degrees=True) * lying
    scene.add_obstacle("lower", SHAPES[lower], rotation=tuple(lying.as_rotvec()))
    across = Rotation.from_euler("z", turn) * Rotation.from_rotvec(ALONG_X[upper])
    top = 0.01 * (np.sqrt(2.0) if stands else 1.0)
    body = scene.add_rigid(
        "upper", SHAPES[upper], density=1000.0, position=(0.0, 0.0, top + 0.01 + gap), rotation=tuple(across.as_rotvec())
    )
    scene.sensor("force", body)
    scene.sensor("centre", body, kind="marker")
    return scene


def weight_of(scene: fs.Scene) -> float:
    """Weight of its only body, N."""
    return 9.81 * float(scene.bodies[0].mass)


@pytest.mark.parametrize("edge", [False, True], ids=["face", "edge"])
@pytest.mark.parametrize("pair", NEW, ids="-on-".join)
def test_a_bar_lies_across_a_bar(pair: tuple[str, str], edge: bool) -> None:
    """It fell through, as no vertex of one is near the other; it rests at the height of its thickness and is carried."""
    scene = crossed_bars(*pair, edge=edge)
    run = fs.simulate(scene, quiet=True)
    top = 0.01 * (np.sqrt(2.0) if edge and pair[1] in ("box", "mesh") else 1.0)
    assert run.status == "converged" and run.steps["max_penetration_m"].max() < 1e-9
    assert run.markers["centre"].position[-1] == pytest.approx([0.0, 0.0, top + 0.01], abs=1e-8)
    assert run.sensors["force"].force[-1] == pytest.approx([0.0, 0.0, weight_of(scene)], abs=1e-6 * weight_of(scene))


@pytest.mark.parametrize(
    ("pair", "edge", "turn", "offsets"),
    [
        (("mesh", "mesh"), False, 90.0, 4 * [np.hypot(0.01, 0.01)]),  # bottom edges over top edges
        (("mesh", "box"), False, 60.0, 2 * [0.01 / np.cos(np.radians(30))] + 2 * [0.02]),
        (("box", "mesh"), True, 90.0, 2 * [0.01]),  # bottom edges over the ridge
        (("cylinder", "mesh"), False, 90.0, 2 * [0.01]),  # the mantle over both top edges
        (("capsule", "mesh"), True, 90.0, [0.0]),
        (("capsule", "capsule"), False, 50.0, [0.0]),
    ],
)  # fmt: skip
def test_contacts_of_crossed_bars_are_where_they_should_be(
    pair: tuple[str, str], edge: bool, turn: float, offsets: list[float]
) -> None:
    """By hand: where edges cross in the plane of contact, and how the weight is shared among them by symmetry."""
    scene = crossed_bars(*pair, edge=edge, turn=np.radians(turn))
    stepper = Stepper(scene, make_solver("auto"))
    for _ in range(30):
        found = stepper.step().forces.contacts
    assert len(found.gap) == len(offsets)
    np.testing.assert_allclose(np.sort(np.linalg.norm(found.position[:, :2], axis=1)), np.sort(offsets), atol=1e-7)
    np.testing.assert_allclose(np.abs(found.normal[:, 2]), 1.0, atol=1e-9)


def test_a_box_on_a_slab_has_no_contacts_of_edges() -> None:
    """Within the slab its four corners carry it; where it overhangs, also sunk, no side of it presses on a border."""
    block, slab = Box((0.02, 0.02, 0.02)), box_mesh((0.05, 0.05, 0.01))
    still = np.tile(np.eye(3), (2, 1, 1))
    for gap in (1e-6, 0.0, -1e-9, -1e-6, -1e-4):
        for shift, corners, edges in ((0.01, 4, 0), (0.04, 2, 2)):
            place = np.array([[shift, 0.003, 0.03 + gap], [0.0, 0.0, 0.0]])
            found = detect([block, slab], still, place, 1e-3)
            assert (found.feature == 0).sum() == corners and (found.feature > 0).sum() == edges
            np.testing.assert_allclose(found.gap, gap, atol=1e-12)
            np.testing.assert_allclose(np.abs(found.frame[:, 0, 2]), 1.0, atol=1e-12)


def test_the_far_side_of_a_thin_plate_is_no_contact() -> None:
    """Two plates of half a millimetre cross, pressed in by a tenth of it, with a margin of ten times their thickness."""
    plate = box_mesh((0.05, 0.01, 0.00025))
    turn = np.array([Rotation.from_euler("z", 90, degrees=True).as_matrix(), np.eye(3)])
    found = detect([plate, plate], turn, np.array([[0.0, 0.0, 0.00045], [0.0, 0.0, 0.0]]), 5e-3)
    np.testing.assert_allclose(crossings(found)[:, :4], np.tile([-5e-5, 0.0, 0.0, 1.0], (4, 1)), atol=1e-12)


def test_stones_that_turn_about_a_common_edge_are_not_as_deep_as_it_is_long() -> None:
    """Two stones of an arch that falls: their edges of 0.3 m pass each other by a hair, at one end more than at the other."""
    left = [(0.763742, -0.15, 0.65095), (0.804579, -0.149999, 0.742231), (0.541901, -0.150001, 0.820551),
            (0.526081, -0.150002, 0.72181), (0.763739, 0.15, 0.650946), (0.804576, 0.150001, 0.742228),
            (0.541898, 0.149999, 0.820547), (0.526078, 0.149998, 0.721807)]  # fmt: skip
    right = [(0.523725, -0.149997, 0.722249), (0.5419, -0.150005, 0.820583), (0.268164, -0.14999, 0.834795),
             (0.276059, -0.149984, 0.735107), (0.523743, 0.150003, 0.72227), (0.541918, 0.149995, 0.820604),
             (0.268182, 0.15001, 0.834816), (0.276077, 0.150016, 0.735128)]  # fmt: skip
    found = detect([hull(np.array(left)), hull(np.array(right))], np.tile(np.eye(3), (2, 1, 1)), np.zeros((2, 3)), 1e-3)
    assert (found.gap > -1e-4).all()


def test_contacts_keep_their_names_while_bodies_move_a_little() -> None:
    turn = np.array([Rotation.from_euler("z", 70, degrees=True).as_matrix(), np.eye(3)])
    names = []
    for k in range(5):
        wobble = Rotation.from_rotvec([1e-4 * k, -2e-4 * k, 0.01 * k]).as_matrix() @ turn[0]
        found = detect(
            [SHAPES["mesh"]] * 2, np.array([wobble, turn[1]]), np.array([[1e-3 * k, 0.0, 0.02], [0.0, 0.0, 0.0]]), 1e-3
        )
        names.append({(p, s, f) for p, s, f in zip(found.point, found.shape, found.feature, strict=True)})
    assert len(names[0]) == 4 and all(own == names[0] for own in names)


def test_a_pile_of_crossed_bars_stands() -> None:
    """Four layers of two bars, each across the one below, of meshes, boxes and cylinders: every layer carries those above."""
    scene = fs.Scene("pile", dt=0.005, duration=0.4, theta=1.0, default_friction=0.5)
    scene.add_floor()
    kinds = ["mesh", "box", "mesh", "cylinder"]
    total, masses = 0.0, []
    for level, kind in enumerate(kinds):
        for side in (-0.03, 0.03):
            turned = Rotation.from_euler("z", 90.0 * (level % 2), degrees=True) * Rotation.from_rotvec(ALONG_X[kind])
            place = np.array([0.0, side, 0.01 + 0.02 * level])[[1, 0, 2] if level % 2 else [0, 1, 2]]
            body = scene.add_rigid(
                f"{kind}_{level}_{side}", SHAPES[kind], density=1000.0, position=tuple(place), rotation=tuple(turned.as_rotvec())
            )
            scene.sensor(f"at_{level}_{side}", body, kind="marker")
    masses = [float(body.mass) for body in scene.bodies]
    total = 9.81 * sum(masses)
    scene.sensor("floor", "floor")
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged"
    assert run.sensors["floor"].force[-1][2] == pytest.approx(-total, rel=1e-6)
    for level in range(len(kinds)):
        for side in (-0.03, 0.03):
            path = run.markers[f"at_{level}_{side}"].position
            np.testing.assert_allclose(path[-1], path[0], atol=1e-6)
    assert run.steps["kinetic_energy_J"][-1] < 1e-12
