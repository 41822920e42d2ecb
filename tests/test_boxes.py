"""Rigid boxes against each other: corners on edges, edges across edges, and scenes of boxes of equal size."""

from __future__ import annotations

import itertools
from math import inf

import numpy as np
import pytest
from placed_pairs import random_boxes, separation
from scipy.spatial.transform import Rotation

import femsim as fs
from contact.detect import Detector, PointContacts
from contact.detect_kernels import DEEPER, HAIR, LEAN, PARALLEL, corner_distance
from contact.edge_kernels import SLACK
from contact.errors import ContactError
from contact.shapes import Box, PlacedShape, Sphere, signed_distance
from contact.solvers import make_solver
from femsim.step.stepper import Stepper

CUBE = (0.01, 0.01, 0.01)


def detect(halves, rotation, translation, margin: float) -> PointContacts:
    """All contacts of two boxes on bodies of their own, whose corners are points 0 to 7 and 8 to 15."""
    boxes = [Box(half) for half in halves]
    points = np.concatenate(
        [box.features()[0] @ turn.T + shift for box, turn, shift in zip(boxes, rotation, translation, strict=True)]
    )
    detector = Detector(
        [PlacedShape(box, k) for k, box in enumerate(boxes)],
        np.repeat([0, 1], 8),
        np.zeros(16),
        np.zeros(16, dtype=int),
        np.ones((2, 2), dtype=bool),
        shape_corner=[0, 8],
    )
    return detector.detect(points, *detector.world_poses(rotation, translation), margin).copy()


def test_the_smallest_gap_is_the_distance_of_two_boxes():
    for halves, rotation, translation, distance, _ in random_boxes(np.random.default_rng(0), 150):
        found = detect(halves, rotation, translation, 10.0)
        assert found.gap.min() == pytest.approx(distance, abs=1e-8)


def test_boxes_pressed_into_each_other_are_seen_and_no_deeper_than_they_are():
    depth, kinds = 1e-5, set()
    for halves, rotation, translation, distance, direction in random_boxes(np.random.default_rng(1), 150):
        translation[1] -= (distance + depth) * direction
        found = detect(halves, rotation, translation, 1e-3)
        assert -depth - 1e-9 < found.gap.min() < 0.0
        deepest = found.gap.argmin()
        sign = 1.0 if found.shape[deepest] == 0 else -1.0  # from the shape to the point
        assert sign * found.frame[deepest, 0] @ direction > 0.0
        kinds.add(bool(found.feature[deepest]))
    assert kinds == {False, True}


def test_boxes_shoved_anyhow_into_each_other_show_about_their_depth():
    """No corner or edge is taken for a deep contact that is none; without the bounds some were six times as deep as the boxes."""
    rng, count = np.random.default_rng(5), 0
    for halves, rotation, translation, distance, direction in random_boxes(rng, 150):
        for shove in (0.003, 0.03, 0.1):
            moved = translation - np.outer([0.0, 1.0], (distance + 1e-3) * direction + shove * rng.normal(size=3))
            depth = separation(halves, rotation, moved, edges=True)
            if depth < 0.0:
                found = detect(halves, rotation, moved, 1e-3)
                assert 1.5 * depth - 1e-5 < found.gap.min() < 0.5 * depth
                count += 1
    assert count > 200


def plain_crossings(halves, rotation, translation, margin: float):
    """Feature, start, gap, normal and place of crossing edges: all pairs of 12 edges in plain words."""

    def extent(k, n):
        return halves[k] @ abs(n @ rotation[k])

    def edges(k):
        """Number, the two outward normals, the ends."""
        for i, (s, t) in itertools.product(range(3), itertools.product((-1.0, 1.0), repeat=2)):
            ends = np.zeros((2, 3))
            ends[:, i], ends[:, (i + 1) % 3], ends[:, (i + 2) % 3] = (
                (-halves[k][i], halves[k][i]),
                s * halves[k][(i + 1) % 3],
                (t * halves[k][(i + 2) % 3]),
            )
            outward = s * rotation[k][:, (i + 1) % 3], t * rotation[k][:, (i + 2) % 3]
            yield 4 * i + 2 * (s > 0) + (t > 0), outward, ends, ends @ rotation[k].T + translation[k]

    apart = translation[0] - translation[1]
    best, full = (separation(halves, rotation, translation, edges) for edges in (False, True))
    if best >= margin:
        return
    hair = HAIR * min(max(halves[0]), max(halves[1]))
    least = max(best - SLACK * abs(best), min(full, DEEPER * full)) - hair
    for (i, out_a, local, a), (j, out_b, _, b) in itertools.product(edges(0), edges(1)):
        da, db = (a[1] - a[0]) / np.linalg.norm(a[1] - a[0]), (b[1] - b[0]) / np.linalg.norm(b[1] - b[0])
        n = np.cross(da, db)
        if np.linalg.norm(n) < PARALLEL:
            continue
        n *= (1.0 if n @ apart >= 0 else -1.0) / np.linalg.norm(n)
        leads_out = all(n @ o <= LEAN for o in out_a) and all(n @ o >= -LEAN for o in out_b)
        along_a, along_b, gap = np.linalg.solve(np.column_stack([-da, db, n]), a[0] - b[0])
        inside_a = hair <= along_a <= np.linalg.norm(a[1] - a[0]) - hair
        inside_b = hair <= along_b <= np.linalg.norm(b[1] - b[0]) - hair
        wide = abs(n @ apart) - extent(0, n) - extent(1, n) < margin
        if leads_out and inside_a and inside_b and wide and least <= gap < margin:
            start = int((local[0] > 0) @ [4, 2, 1])
            yield 1 + 12 * i + j, start, gap, n, a[0] + along_a * da - 0.5 * gap * n


def test_crossing_edges_equal_their_slow_twin():
    count = 0
    for halves, rotation, translation, distance, direction in random_boxes(np.random.default_rng(2), 80):
        for way in (0.5 * distance, distance + 1e-3):
            moved = translation - np.outer([0.0, 1.0], way * direction)
            found, expected = detect(halves, rotation, moved, 0.3), {}
            for feature, start, *rest in plain_crossings(halves, rotation, moved, 0.3):
                expected[feature, start] = rest
            edge = np.flatnonzero(found.feature)
            assert {(int(found.feature[m]), int(found.point[m])) for m in edge} == set(expected)
            assert (np.diff(edge) == 1).all() and (found.shape[edge] == 1).all()  # behind the corners
            for m in edge:
                gap, normal, place = expected[found.feature[m], found.point[m]]
                assert found.gap[m] == pytest.approx(gap, abs=1e-12)
                np.testing.assert_allclose(found.frame[m, 0], normal, atol=1e-12)
                np.testing.assert_allclose(found.position[m], place, atol=1e-11)
                count += 1
    assert count > 100


def plain_corner(point, half, edge, deepest):
    """Distance and normal of a box for a corner: the point's own or that of the face it rests on."""
    (distance,), (normal,) = signed_distance(Box(half), [point])

    def faces(n):
        return (edge @ n >= -LEAN).all()

    if faces(normal) and 1.0 in np.abs(normal):
        return distance, normal
    side, over = np.where(point >= 0.0, 1.0, -1.0), np.abs(point) - half
    resting = []
    for k in range(3):
        n = side[k] * np.eye(3)[k]
        if (np.delete(over, k) <= HAIR * max(half)).all() and faces(n) and over[k] >= DEEPER * deepest - HAIR * max(half):
            resting.append((over[k], -k, n))
    if resting:
        depth, _, n = max(resting, key=lambda r: r[:2])
        return depth, n
    return (inf, np.zeros(3)) if distance > 0.0 and not faces(normal) else (distance, normal)


def test_corners_equal_their_slow_twin():
    rng = np.random.default_rng(3)
    half, changed = np.array([0.3, 0.2, 0.5]), 0
    for _ in range(3000):
        # where it is interesting: about the borders, some exactly on them
        point = np.sign(rng.normal(size=3)) * half * rng.choice([1.0, 1.0 + 1e-12, 1.0 - 1e-9, 0.5, 0.99, 1.01], 3)
        angle = 10.0 ** rng.uniform(-12, 0.3)
        turn = Rotation.from_rotvec(angle * rng.normal(size=3)).as_matrix()
        edge = np.ascontiguousarray(np.sign(rng.normal(size=(3, 1))) * turn)
        deepest = -0.5 * rng.random() ** 4
        distance, *normal = corner_distance(*point, *half, edge, deepest)
        expected, direction = plain_corner(point, half, edge, deepest)
        assert distance == expected or distance == pytest.approx(expected, abs=1e-15)
        np.testing.assert_allclose(normal, direction, atol=1e-12)
        changed += not np.allclose(signed_distance(Box(half), [point])[1][0], normal)
    assert 500 < changed < 2500


@pytest.mark.parametrize("size", [0.0, 1e-16, 1e-12, 3e-9])
def test_equal_boxes_on_each_other_have_the_normal_of_their_faces(size):
    """However rounding moves them, the eight corners push up, and nothing pushes sideways."""
    rng = np.random.default_rng(4)
    for _ in range(30):
        turn = Rotation.from_rotvec(size / 0.01 * rng.uniform(-1, 1, 3)).as_matrix()
        place = np.array([[0, 0, 0], [0, 0, 0.02] + size * rng.uniform(-1, 1, 3)])
        found = detect([CUBE, CUBE], np.array([np.eye(3), turn]), place, 1e-3)
        assert found.n == 8 and set(found.point) == {1, 3, 5, 7, 8, 10, 12, 14}
        np.testing.assert_allclose(np.abs(found.gap), 0.0, atol=10 * size)
        np.testing.assert_allclose(np.abs(found.frame[:, 0] @ [0, 0, 1]), 1.0, atol=1e-9)


@pytest.mark.parametrize("turn", [(0, 0, 0), (0, 0, np.pi / 2), (0.3, -0.2, 0.7)])
@pytest.mark.parametrize("depth", [1e-6, 1e-3])
def test_equal_boxes_flush_on_each_other_are_as_deep_without_a_margin(turn, depth):
    """Their corners lie on the edges, which are no depth: without a margin, as depths are measured, they were not seen."""
    pose = Rotation.from_rotvec(turn).as_matrix()
    shift = np.tile((0.1, -0.2, 0.3), (2, 1))
    shift[1] += pose @ (0.0, 0.0, 0.02 - depth)
    found = detect([CUBE, CUBE], np.array([pose, pose]), shift, 0.0)
    np.testing.assert_allclose(found.gap, np.full(8, -depth), rtol=1e-6, atol=1e-12)
    apart = np.array([shift[0], shift[1] + pose @ (0.0, 0.0, 2 * depth)])
    assert not len(detect([CUBE, CUBE], np.array([pose, pose]), apart, 0.0))


def test_an_overhanging_corner_meets_nothing_sideways():
    """A box that is wider than the one below by 0.1 mm is held where edges cross, not at its corners beside the lower one."""
    found = detect([CUBE, (0.0101, 0.0099, 0.01)], np.tile(np.eye(3), (2, 1, 1)), np.array([[0, 0, 0], [0, 0, 0.02]]), 1e-3)
    assert found.n == 4 and (found.feature > 0).all()
    np.testing.assert_allclose(found.frame[:, 0], np.tile([0.0, 0.0, -1.0], (4, 1)), atol=1e-15)
    np.testing.assert_allclose(np.abs(found.position), np.tile([0.01, 0.0099, 0.01], (4, 1)), atol=1e-15)


@pytest.mark.parametrize(
    ("corner", "words"),
    [
        ([0], ["shape_corner", "(1,)", "2 shapes"]),
        ([0.0, -1.0], ["shape_corner", "float64", "whole number"]),
        ([1, -1], [r"shape_corner\[0\] is 1", "eight points of its body"]),
        ([-2, -1], [r"shape_corner\[0\] is -2", "give -1"]),
        ([-1, 8], [r"shape_corner\[1\] is 8", "for a box"]),
        ([9, -1], [r"shape_corner\[0\] is 9"]),
    ],
)
def test_corners_that_are_none_are_refused(corner, words):
    shapes = [PlacedShape(Box(CUBE), 0), PlacedShape(Sphere(0.1), 1)]
    arguments = shapes, np.repeat([0, 1], 8), np.zeros(16), np.zeros(16, dtype=int), np.ones((2, 2), dtype=bool)
    with pytest.raises(ContactError, match=".*".join(words)):
        Detector(*arguments, shape_corner=corner)


class Watch:
    """What the steps of a run show at worst, from a step on."""

    def __init__(self, settled: int) -> None:
        self.settled, self.steps = settled, 0
        self.penetration = self.balance = self.kinetic = self.sideways = self.gain = 0.0
        self.energy = inf

    def __call__(self, stepper, report) -> None:
        assert report.solution.converged and len(report.parts) == 1
        assert max(report.metrics.dynamics_residual, report.metrics.contact_residual) <= 1e-8
        self.steps += 1
        self.penetration = max(self.penetration, report.max_penetration)
        self.balance = max(self.balance, report.wrench_balance)
        # what gravity and drives give comes in by their work; contacts only take
        energy = report.kinetic_energy - report.work
        self.gain = max(self.gain, energy - self.energy)
        self.energy = energy
        if report.step >= self.settled:
            self.kinetic = max(self.kinetic, report.kinetic_energy)
        touching = report.contacts.lam[:, 0] > 1e-3
        axis = np.abs(report.contacts.normal[touching])
        self.sideways = max(self.sideways, float((1.0 - axis.max(axis=1)).max(initial=0.0)))
        self.normals = {int(k) for k in axis.argmax(axis=1)}


def run(scene: fs.Scene, settled: int) -> tuple[fs.Run, Watch]:
    watch = Watch(settled)
    result = fs.simulate(scene, on_step=watch)
    assert watch.steps == round(scene.duration / scene.dt)
    assert watch.penetration < 1e-9 and watch.balance < 1e-6 and watch.sideways < 1e-9 and watch.gain < 1e-9
    return result, watch


def grip(pad: tuple[float, float], at: tuple[float, float], turn: float) -> fs.Scene:
    """A hand of two boxes closes on a block of 2 cm with 4 N and lifts it."""
    scene = fs.Scene("grip", dt=0.01, duration=0.4, theta=1.0)
    fingers = [
        fs.Finger(name, fs.Box((0.003, *pad)), offset=(side * 0.013, at[0], at[1] - 0.05), closing=(-side, 0, 0))
        for name, side in (("left", -1), ("right", 1))
    ]
    hand = scene.add_gripper("hand", fingers, position=(0, 0, 0.2), mass=0.5)
    scene.add_rigid("block", fs.Box(CUBE), mass=0.05, position=(0, 0, 0.15), rotation=(turn, 0, 0))
    scene.set_friction("hand", "block", 0.8)
    scene.drive(hand, force=fs.Profile([0.0, 0.02], [2.0, 4.0]), fingers=True)
    scene.drive(hand, fs.Motion([0.1, 0.3], [(0, 0, 0), (0, 0, 0.02)]))
    scene.sensor("wrist", hand, kind="mount")
    scene.sensor("left", "hand.left")
    scene.sensor("right", "hand.right")
    return scene


@pytest.mark.parametrize(
    ("pad", "at", "turn"),
    [
        ((0.01, 0.01), (0, 0), 0.0),
        ((0.008, 0.008), (0, 0), 0.0),
        ((0.012, 0.012), (0, 0), 0.0),
        ((0.01, 0.01), (0, 0.01), 0.0),
        ((0.01, 0.01), (0.01, 0), 0.0),
        ((0.005, 0.03), (0, 0), 0.0),
        ((0.01, 0.01), (0, 0), 1e-4),
        ((0.01, 0.01), (0, 0), 0.7),
        ((0.01 + 1e-6, 0.01 - 1e-6), (0, 0), 0.0),
    ],
    ids=["equal", "smaller", "larger", "half_up", "half_aside", "across", "hardly_turned", "turned", "hair"],
)
def test_a_box_is_held_by_boxes(pad, at, turn):
    result, watch = run(grip(pad, at, turn), settled=32)
    assert watch.kinetic < 1e-15 and watch.normals == {0}
    for side, sign in (("left", -1.0), ("right", 1.0)):
        np.testing.assert_allclose(result.sensors[side].force[-1], [4.0 * sign, 0.0, -0.5 * 0.05 * 9.81], atol=2e-3)
    np.testing.assert_allclose(result.sensors["wrist"].force[-1], [0.0, 0.0, 0.75 * 9.81], atol=1e-6)


def stack(low, high, at, *, obstacle: bool, velocity=(0.0, 0.0, 0.0), turn: float = 0.0) -> fs.Scene:
    scene = fs.Scene("stack", dt=0.01, duration=0.25, theta=1.0)
    if obstacle:
        scene.add_obstacle("low", fs.Box(low), position=(0, 0, low[2]))
    else:
        scene.add_floor()
        scene.add_rigid("low", fs.Box(low), mass=0.2, position=(0, 0, low[2]))
    place = (*at, 2 * low[2] + high[2])
    scene.add_rigid("high", fs.Box(high), mass=0.1, position=place, velocity=velocity, rotation=(0, 0, turn))
    scene.set_friction("low", "high", 0.5)
    scene.sensor("high", "high")
    return scene


TABLE = (0.05, 0.05, 0.01)


@pytest.mark.parametrize("obstacle", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "at", "turn"),
    [
        (CUBE, CUBE, (0, 0), 0.0),
        (CUBE, CUBE, (0.006, 0), 0.0),
        (CUBE, CUBE, (0, 0), 0.5),
        (TABLE, CUBE, (0.04, 0), 0.0),
        (TABLE, CUBE, (0.04, 0.04), 0.0),
        ((0.005, 0.005, 0.01), CUBE, (0, 0), 0.0),
        ((0.03, 0.005, 0.01), (0.005, 0.03, 0.01), (0, 0), 0.0),
    ],
    ids=["equal", "aside", "turned", "flush", "flush_corner", "pedestal", "across"],
)
def test_a_box_rests_on_a_box(low, high, at, turn, obstacle):
    result, watch = run(stack(low, high, at, turn=turn, obstacle=obstacle), settled=1)
    assert watch.kinetic < 1e-15 and watch.normals == {2}
    np.testing.assert_allclose(result.sensors["high"].force[-1], [0, 0, 0.1 * 9.81], atol=1e-6)


@pytest.mark.parametrize(
    "shape", [fs.Sphere(0.01), fs.Cylinder(0.004, 0.01), fs.Capsule(0.004, 0.006)], ids=lambda s: type(s).__name__
)
def test_a_box_rests_on_an_obstacle_that_is_smaller(shape):
    scene = fs.Scene("post", dt=0.01, duration=0.1, theta=1.0)
    scene.add_obstacle("post", shape, position=(0, 0, 0.01))
    scene.add_rigid("high", fs.Box(CUBE), mass=0.1, position=(0, 0, 0.03))
    scene.sensor("high", "high")
    result, _ = run(scene, settled=1)
    np.testing.assert_allclose(result.sensors["high"].force[-1], [0, 0, 0.1 * 9.81], atol=1e-6)


@pytest.mark.parametrize("obstacle", [False, True])
@pytest.mark.parametrize(
    ("low", "at", "direction"),
    [(TABLE, (0.0, 0.04), (1, 0)), (TABLE, (0.033, 0.0), (1, 0)), ((0.02, 0.01, 0.01), (0.018, 0.0), (-1, 0))],
    ids=["along_the_edge", "over_the_edge", "inwards"],
)
def test_a_box_slides_on_a_box_as_by_hand(low, at, direction, obstacle):
    """Nothing catches on an edge: the way is that of friction alone, v^2/(2 mu g), but for what the steps make of it."""
    positions = []
    scene = stack(low, CUBE, at, obstacle=obstacle, velocity=(0.3 * direction[0], 0.3 * direction[1], 0.0))
    scene.set_friction("low", "floor", 100.0) if not obstacle else None
    watch = Watch(1)

    def on_step(stepper, report):
        watch(stepper, report)
        positions.append(stepper.state.q[stepper.system.q_slices[-1]][:2].copy())

    fs.simulate(scene, on_step=on_step)
    speed, way, expected = 0.3, 0.0, []
    for _ in positions:
        speed = max(speed - 0.5 * 9.81 * scene.dt, 0.0)  # backward Euler
        way += speed * scene.dt
        expected.append(np.add(at, way * np.array(direction)))
    np.testing.assert_allclose(positions, expected, atol=1e-7)
    assert watch.penetration < 1e-9


def test_crossing_edges_start_from_their_own_forces_of_the_last_step():
    """Two edges that start at one corner are two contacts, also in the memory for warm starts."""
    stepper = Stepper(stack(CUBE, CUBE, (0.002, 0.001), obstacle=True, turn=0.5), make_solver("exact"))
    for _ in range(3):
        report = stepper.step()
    contacts, state = stepper.contacts, stepper.state
    (found,) = contacts.detect(state, stepper.placed, [1e-3])
    rows = contacts.rows([found], np.zeros(stepper.system.n), 0.01)
    starts = list(zip(found.contacts.point, found.contacts.shape, strict=True))
    assert len(set(starts)) < len(starts) == 8
    start = contacts.warm_start(rows, state.contacts, state.v_hat).lam
    assert np.ptp(start[:, 0]) > 0.01
    np.testing.assert_allclose(start, report.contacts.lam, atol=1e-9)


def test_boxes_that_touch_and_fly_side_by_side_fall_freely():
    """However they are turned: all that contacts see is rounding, of which the exact solver made a force of their weight."""
    for seed in range(6):
        turn = Rotation.from_rotvec(np.random.default_rng(seed).standard_normal(3))
        scene = fs.Scene("flight", dt=0.005)
        for name, half, mass, at in (
            ("a", (0.02, 0.03, 0.01), 0.3, (0, 0, 0)),
            ("b", (0.015, 0.02, 0.01), 0.1, (0.003, 0.001, 0.02)),
        ):
            pose = {"position": turn.apply(at), "rotation": turn.as_rotvec()}
            scene.add_rigid(name, fs.Box(half), mass=mass, velocity=(1, 2, 3), **pose)
        with fs.Simulation(scene, "exact") as sim:
            sim.step(12)
            assert sim.verdict == "good" and sim.row()["contacts"] > 0, sim.reasons
            assert sim.state.v[[2, 8]] == pytest.approx(3.0 - 9.81 * sim.time, abs=1e-12)
