"""Triangles against distances, and contacts thinned out: rims across edges, against brute force; wrenches that are kept.

The slow twin of ``contact.face_kernels`` is the least of the distances of many points on a surface; that of
``contact.thinning_kernels`` is the same choice written with arrays.
"""

from __future__ import annotations

import numpy as np
import pytest
from placed_pairs import detect
from scipy.spatial.transform import Rotation

from contact.errors import ContactError
from contact.shapes import Box, Capsule, Cylinder, Mesh, Revolved, Shape, Thread, signed_distance
from contact.thinning_kernels import DIRECTIONS, TIE
from meshes import box_triangles

BOWL = Revolved([(0.0, 0.0), (0.035, 0.0), (0.07, 0.05)], 0.003)
POT = Revolved([(0.0, 0.0), (0.09, 0.0), (0.095, 0.11)], 0.004)
BAR = np.array([0.2, 0.006, 0.01])


def mesh_bar() -> Mesh:
    surface = box_triangles(BAR)
    return Mesh(surface.points, surface.triangles)


OTHERS = {
    "box": lambda: Box(0.5 * BAR), "capsule": lambda: Capsule(0.004, 0.1), "cylinder": lambda: Cylinder(0.01, 0.05),
    "wall": lambda: POT, "thread": lambda: Thread.metric(0.048, 0.005, 0.4),
}  # fmt: skip


def wall_points(shape: Revolved, turn_count: int, along: int) -> np.ndarray:
    """Points on the polyline that is turned, (n, 3)."""
    t = np.linspace(0.0, 1.0, along)[:, None]
    line = np.concatenate([a + (b - a) * t for a, b in zip(shape.points[:-1], shape.points[1:], strict=True)])
    turn = np.linspace(0.0, 2.0 * np.pi, turn_count, endpoint=False)
    r, z = line[:, :1], line[:, 1:]
    return np.stack(np.broadcast_arrays(r * np.cos(turn), r * np.sin(turn), z), axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("other", OTHERS)
def test_the_least_gap_is_the_least_distance_over_the_wall(other):
    """Poses at which they are just apart; contacts of points alone would miss it."""
    rng = np.random.default_rng(3)
    shape, sample, missed = OTHERS[other](), wall_points(BOWL, 720, 121), []
    for _ in range(12):
        turn = Rotation.random(rng=rng).as_matrix()
        way = rng.normal(size=3)
        way /= np.linalg.norm(way)
        low, high = 0.0, 0.4
        for _ in range(14):  # so far along the way that 0.5 mm are left
            middle = 0.5 * (low + high)
            gap = signed_distance(shape, (sample[::7] - middle * way) @ turn)[0].min() - BOWL.padding
            low, high = (middle, high) if gap < 5e-4 else (low, middle)
        rotation, translation = np.stack([np.eye(3), turn]), np.stack([np.zeros(3), high * way])
        brute = signed_distance(shape, (sample - high * way) @ turn)[0].min() - BOWL.padding
        found = detect([BOWL, shape], rotation, translation, 5e-3)
        missed.append(found.gap[found.feature == 0].min(initial=5e-3) - brute)
        # triangles of 14 mm span three ridges of a thread, of which each sees one
        assert found.gap.min() == pytest.approx(brute, abs=2e-4 if other == "thread" else 3e-5)
        own = found.gap.argmin()
        place, normal = found.position[own], found.frame[own, 0]
        distance = signed_distance(BOWL, place[None])[0], signed_distance(shape, (place - translation[1])[None] @ turn)[0]
        apart = found.gap[own]
        assert sorted(np.abs(np.ravel(distance))) == pytest.approx(
            [0.0, apart], abs=1e-5
        )  # on one of them, so far from the other
        assert np.linalg.norm(normal) == pytest.approx(1.0)
    assert max(missed) > 1e-4


def test_the_edge_of_a_mesh_is_seen_by_a_wall():
    """A bar lies across the rim of a bowl: its corners are far, and the rim's points are beside it."""
    turn = Rotation.from_euler("z", np.pi / 32).as_matrix()  # between two points of the ring
    height = 0.05 + 0.003 + 0.005
    for gap in (1e-4, -1e-4):
        found = detect(
            [BOWL, mesh_bar()], np.stack([turn, np.eye(3)]), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, height + gap]]), 4e-4
        )
        deepest = found.position[found.gap < gap + 2e-5]
        assert found.gap.min() == pytest.approx(gap, abs=2e-5)
        assert deepest[:, 0].min() < -0.069 and deepest[:, 0].max() > 0.069
        assert np.abs(found.frame[found.gap < gap + 2e-5, 0, 2]).min() > 0.999


def chosen(found, bodies: np.ndarray, most: int) -> list[int]:
    """The twin: numbers of the contacts that are kept."""
    middle = found.position - found.position.mean(axis=0)
    normal = np.where(bodies, 1.0, -1.0)[:, None] * found.frame[:, 0]
    wrench = np.hstack([normal, np.cross(middle, normal) / np.linalg.norm(middle, axis=1).mean()])
    taken: list[int] = []
    deepest = int(found.gap.argmin())

    def farthest(value: np.ndarray) -> int:
        best = 0
        for k in range(len(value)):
            if value[k] > value[best] + TIE * abs(value[best]):
                best = k
        return best

    for axis in DIRECTIONS:
        best = farthest(wrench @ axis)
        if best not in taken and 3 * len(taken) < 2 * most:
            taken.append(best)
    while len(taken) < most:
        if len(taken) == most - 1 and deepest not in taken:
            taken.append(deepest)
            break
        apart = ((wrench[:, None] - wrench[taken]) ** 2).sum(axis=2).min(axis=1)
        apart *= ((wrench - wrench.mean(axis=0)) ** 2).sum(axis=1)
        apart[taken] = -1.0
        taken.append(farthest(apart))
    return sorted(taken)


def placed_nut():
    """An M48 nut on its bolt, lifted and tilted within its play."""
    bolt, nut = Thread.metric(0.048, 0.005, 0.1), Thread.metric(0.048, 0.005, 0.038, play=0.0002, across=0.075)
    turn = Rotation.from_rotvec([2e-3, 1e-3, 0.0]).as_matrix()
    return [bolt, nut], np.stack([np.eye(3), turn]), np.array([[0.0, 0.0, 0.0], [2e-5, 0.0, 6e-5]])


def placed_bowls():
    """Two bowls, one in the other, tilted a little."""
    turn = Rotation.from_rotvec([0.004, 0.002, 0.3]).as_matrix()
    return (
        [BOWL, BOWL],
        np.stack([np.eye(3), turn]),
        np.array([[0.0, 0.0, 0.0], [0.0002, 0.0, 0.006 * np.hypot(35.0, 50.0) / 35.0]]),
    )


@pytest.mark.parametrize(("make", "margin", "most"), [(placed_nut, 2e-4, 120), (placed_bowls, 1.2e-3, 60)])
def test_contacts_that_are_kept_carry_what_all_could(make, margin, most):
    """The support of their normal forces in 100 directions of forces and torques: 2 % less in one of them at most."""
    shapes, rotation, translation = make()
    every = detect(shapes, rotation, translation, margin)
    kept = detect(shapes, rotation, translation, margin, most=most)
    assert every.n > 1.3 * most and kept.n == most
    assert kept.gap.min() == every.gap.min() == detect(shapes, rotation, translation, margin, most=2).gap.min()

    bolt = every.point < len(shapes[0].features()[0])  # its points come first
    names = (every.point * 2 + every.shape) * 10**6 + every.feature
    same = names[chosen(every, bolt, most)]
    assert ((kept.point * 2 + kept.shape) * 10**6 + kept.feature == same).all()

    def support(found, directions):
        normal = np.where(found.point < len(shapes[0].features()[0]), 1.0, -1.0)[:, None] * found.frame[:, 0]
        arm = (found.position - every.position.mean(axis=0)) / 0.024
        return (np.hstack([normal, np.cross(arm, normal)]) @ directions.T).max(axis=0)

    directions = np.random.default_rng(4).normal(size=(100, 6))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    whole = support(every, directions)
    lost = np.sort(whole - support(kept, directions)) / np.abs(whole).max()
    assert lost[-2] < 0.02 and lost[-1] < 0.03 and lost.mean() < 1e-3


def test_the_same_contacts_are_kept_when_bodies_move_a_little():
    shapes, rotation, translation = placed_nut()
    before = detect(shapes, rotation, translation, 2e-4, most=120)
    after = detect(shapes, rotation, translation + np.array([[0.0, 0.0, 0.0], [1e-7, 0.0, -1e-7]]), 2e-4, most=120)
    names = [set(zip(found.point, found.shape, found.feature, strict=True)) for found in (before, after)]
    assert len(names[0] & names[1]) >= 100


def test_other_shapes_keep_all_their_contacts():
    """A mesh with 288 points on a box, and a bowl far off: contacts are thinned out only where a turned shape is one of two."""
    x, y = (g.ravel() for g in np.meshgrid(np.linspace(-0.05, 0.05, 12), np.linspace(-0.05, 0.05, 12)))
    shapes: list[Shape] = [Mesh(*slab(x, y)), Box((0.1, 0.1, 0.01)), BOWL]
    places = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -0.0199], [1.0, 0.0, 0.0]])
    assert detect(shapes, np.stack([np.eye(3)] * 3), places, 1e-3, most=10).n > 100


def slab(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A slab with 12 x 12 points above and below."""
    n = np.arange(144).reshape(12, 12)
    quads = np.stack([n[:-1, :-1], n[:-1, 1:], n[1:, 1:], n[1:, :-1]], axis=-1).reshape(-1, 4)
    top = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    border = np.concatenate([n[0, :-1], n[:-1, -1], n[-1, :0:-1], n[:0:-1, 0]])
    after = np.roll(border, -1)
    side = np.concatenate([np.column_stack([border + 144, after + 144, after]), np.column_stack([border + 144, after, border])])
    points = np.concatenate([np.column_stack([x, y, np.full(144, z)]) for z in (0.01, -0.01)])
    return points, np.concatenate([top, top[:, ::-1] + 144, side])


def test_wrong_numbers_are_named():
    with pytest.raises(ContactError, match="most_per_pair is 0"):
        detect([BOWL, POT], np.stack([np.eye(3)] * 2), np.zeros((2, 3)), 1e-3, most=0)
