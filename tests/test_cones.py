"""Cones as smooth surfaces: distance and mass, and how they roll, swing, stand, tip and come to lie, as theory says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from placed_pairs import closest, detect, sampled_gap
from scipy.spatial.transform import Rotation

import femsim as fs
from contact.errors import ContactError
from contact.shapes import Box, Capsule, Cone, Cylinder, Plane, Shape, Sphere, signed_distance
from contact.solvers import make_solver
from femsim.model.solids import close_points, mass_properties, visual
from femsim.step.stepper import Stepper
from meshes.surface import boundary_triangles, solid_mass_properties

G, DENSITY = 9.81, 1000.0
RADIUS, HALF = 0.02, 0.03
HEIGHT, ANGLE = 2.0 * HALF, np.arctan(RADIUS / (2.0 * HALF))
CONE = Cone(RADIUS, HALF)
WEIGHT = DENSITY * np.pi * RADIUS**2 * HEIGHT / 3.0 * G


# ------------------------------------------------------------------ geometry


def naive_distance(cone: Cone, p: np.ndarray) -> float:
    """Signed distance of one point: of its radius and z to the sides of the outline, negative within all of them."""
    at = np.array([np.hypot(p[0], p[1]), p[2]])
    h = cone.half_length
    outline = np.array([(0.0, -h), (cone.radius, -h), (cone.top, h), (0.0, h)])
    distances, within = [], True
    for a, b in pairwise(outline):
        side = b - a
        if not side.any():
            continue
        t = np.clip((at - a) @ side / (side @ side), 0.0, 1.0)
        distances.append(np.linalg.norm(at - a - t * side))
        within &= side[0] * (at - a)[1] - side[1] * (at - a)[0] >= 0.0
    return -min(distances) if within else min(distances)


@pytest.mark.parametrize("cone", [Cone(0.3, 0.4), Cone(0.3, 0.4, 0.1), Cone(0.3, 0.05, 0.29)])
def test_the_distance_is_that_of_the_outline(cone: Cone) -> None:
    points = np.random.default_rng(0).uniform(-0.7, 0.7, (600, 3))
    points[:3] = [(0.0, 0.0, 0.6), (0.0, 0.0, 0.0), (0.0, 0.0, -0.6)]
    found, normals = signed_distance(cone, points)
    np.testing.assert_allclose(found, [naive_distance(cone, p) for p in points], rtol=0, atol=1e-14)
    h = 1e-7
    slope = [(signed_distance(cone, points + h * e)[0] - signed_distance(cone, points - h * e)[0]) / (2 * h) for e in np.eye(3)]
    smooth = np.abs(np.linalg.norm(slope, axis=0) - 1.0) < 1e-6  # not on the axis, nor as near to one face as to another
    assert smooth.sum() > 590
    np.testing.assert_allclose(normals[smooth], np.transpose(slope)[smooth], rtol=0, atol=1e-5)


@pytest.mark.parametrize("top", [0.0, 0.012])
def test_mass_is_that_of_the_formulas(top: float) -> None:
    """Sums over discs; the triangles that are drawn tend to the same."""
    cone = Cone(RADIUS, HALF, top)
    mass, centre, inertia = mass_properties(cone)
    z, share = np.polynomial.legendre.leggauss(5)
    z, share = HALF * z, HALF * share
    r = 0.5 * (RADIUS + top) - 0.5 * (RADIUS - top) * z / HALF
    middle = (share * r**2 * z).sum() / (share * r**2).sum()
    side = np.pi * (share * (0.25 * r**4 + r**2 * (z - middle) ** 2)).sum()
    assert mass == pytest.approx(np.pi * (share * r**2).sum(), rel=1e-12)
    np.testing.assert_allclose(centre, [0.0, 0.0, middle], atol=1e-15)
    np.testing.assert_allclose(inertia, np.diag([side, side, 0.5 * np.pi * (share * r**4).sum()]), rtol=1e-12, atol=1e-20)
    drawn = solid_mass_properties(visual(cone, np.zeros(3), np.eye(3)), 1.0)
    assert drawn[0] == pytest.approx(mass, rel=3e-3) and drawn[1][2] == pytest.approx(middle, abs=1e-5)
    points, _ = close_points(cone)
    assert (signed_distance(cone, points)[0] < 1e-15).all() and (points[:, 2].min(), points[:, 2].max()) == (-HALF, HALF)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Cone(0.1, 0.2, 0.1), r"Cone: top is 0\.1 m; give 0, or a radius smaller than that of the base"),
        (lambda: Cone(0.1, 0.2, -0.01), r"Cone: top is -0\.01 m"),
        (lambda: Cone(0.1, 0.2, float("nan")), "Cone: top is nan m"),
        (lambda: Cone(0.0, 0.2), r"Cone: radius is 0\.0 m"),
        (lambda: Cone(0.1, float("inf")), "Cone: half_length is inf m"),
    ],
)
def test_what_is_no_cone_is_refused(make: object, words: str) -> None:
    with pytest.raises(ContactError, match=words):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("other", ["box", "cylinder", "capsule", "sphere", "cone"])
@pytest.mark.parametrize("depth", [None, 1e-3])
def test_the_smallest_gap_is_the_distance_of_a_cone_and_another_shape(other: str, depth: float | None) -> None:
    """Of random pairs that are apart; pressed into each other they are seen, and no deeper than they are."""
    rng, count = np.random.default_rng(2), 30
    make = {
        "box": lambda: Box(rng.uniform(0.2, 1.0, 3)), "cylinder": lambda: Cylinder(*rng.uniform(0.2, 1.0, 2).tolist()),
        "capsule": lambda: Capsule(*rng.uniform(0.2, 1.0, 2).tolist()), "sphere": lambda: Sphere(rng.uniform(0.2, 1.0)),
        "cone": lambda: Cone(*rng.uniform(0.5, 1.0, 2).tolist(), rng.choice([0.0, 0.4])),
    }  # fmt: skip
    while count:
        radius, half, part = rng.uniform(0.2, 1.0, 3).tolist()
        shapes: list[Shape] = [Cone(radius, half, 0.0 if count % 2 else 0.9 * part * radius), make[other]()]
        rotation, way = Rotation.random(2, rng=rng).as_matrix(), rng.normal(size=3)
        translation = np.array([np.zeros(3), way * rng.uniform(0.5, 2.5) / np.linalg.norm(way)])
        distance, direction = closest(shapes, rotation, translation)
        if distance <= 1e-2:
            continue
        count -= 1
        if depth is None:
            assert detect(shapes, rotation, translation, 10.0).gap.min() == pytest.approx(distance, abs=2e-5)
            continue
        translation[1] -= (distance + depth) * direction
        assert -1.1 * depth < detect(shapes, rotation, translation, 1e-3).gap.min() < 0.0


@pytest.mark.parametrize("other", ["box", "cylinder", "capsule", "cone"])
def test_what_overlaps_a_cone_is_seen_as_deep_as_it_is(other: str) -> None:
    """Of random pairs in each other and a little apart; discs were seen up to 150 times too deep or not at all."""
    rng, depths = np.random.default_rng(2), np.array([-0.01, 0.003, 0.03, 0.1])
    make = {
        "box": lambda: Box(rng.uniform(0.2, 1.0, 3)), "cylinder": lambda: Cylinder(*rng.uniform(0.2, 1.0, 2).tolist()),
        "capsule": lambda: Capsule(*rng.uniform(0.2, 1.0, 2).tolist()), "cone": lambda: Cone(*rng.uniform(0.2, 1.0, 2).tolist()),
    }  # fmt: skip
    for depth in np.repeat(depths, 20).tolist():
        shapes: list[Shape] = [Cone(*rng.uniform(0.2, 1.0, 2).tolist()), make[other]()]
        rotation, way = Rotation.random(2, rng=rng).as_matrix(), rng.normal(size=3)
        if rng.random() < 0.25:  # almost along each other
            rotation[1] = rotation[0] @ Rotation.from_rotvec(rng.normal(size=3) * 10.0 ** rng.uniform(-4, -1)).as_matrix()
        way /= np.linalg.norm(way)
        translation = np.array([np.zeros(3), 4.0 * way])
        for _ in range(10):  # gaps change no more than places
            translation[1] -= (sampled_gap(shapes, rotation, translation, 0) + depth) * way
        gap, seen = sampled_gap(shapes, rotation, translation), detect(shapes, rotation, translation, 0.0).gap
        if gap >= 0.0:
            assert seen.size == 0
        elif gap < -1e-4:
            assert 3.0 * gap < seen.min(initial=np.inf) < 0.5 * gap


# ------------------------------------------------------------------ motion


def slab() -> fs.Mesh:
    """A slab as a mesh, its upper side at z = 0."""
    mesh = fs.box_tets((0.4, 0.4, 0.2), (1, 1, 1))
    return fs.Mesh(mesh.points - [0.0, 0.0, 0.1], boundary_triangles(mesh.tets))


GROUNDS: dict[str, tuple[Shape, float]] = {
    "plane": (Plane(), 0.0), "box": (Box((0.2, 0.2, 0.1)), -0.1), "mesh": (slab(), 0.0),
    "cylinder": (Cylinder(0.2, 0.1), -0.1), "cone": (Cone(0.3, 0.1, 0.2), -0.1),
}  # fmt: skip


def start(
    turn: Rotation, place: np.ndarray, spin: float = 0.0, slope: float = 0.0, ground: str = "plane", friction: float = 1.0
) -> Stepper:
    """A cone with its tip at a place, that turns about a line through its tip along +x (rad/s); the slope (rad) leads to +x."""
    scene = fs.Scene("cone", dt=0.005, gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)), default_friction=friction)
    scene.add_obstacle("ground", GROUNDS[ground][0], position=(0.0, 0.0, GROUNDS[ground][1]))
    omega, origin = np.array([spin, 0.0, 0.0]), np.asarray(place) - turn.apply([0.0, 0.0, HALF])
    centre = origin + turn.apply(mass_properties(CONE)[1])
    scene.add_rigid(
        "cone", CONE, density=DENSITY, position=tuple(origin), rotation=tuple(turn.as_rotvec()),
        velocity=tuple(np.cross(omega, centre - place)), angular_velocity=tuple(omega),
    )  # fmt: skip
    return Stepper(scene, make_solver("exact", tolerance=1e-10))


def lying(around: float = 0.0) -> Rotation:
    """On its mantle, which touches the ground along a line from the tip, at an angle (rad) to +x."""
    return Rotation.from_euler("z", around) * Rotation.from_euler("y", -0.5 * np.pi - ANGLE)


def axis(stepper: Stepper) -> np.ndarray:
    """From the base to the tip, world."""
    return np.asarray(Rotation.from_quat(stepper.state.q[3:7], scalar_first=True).apply([0.0, 0.0, 1.0]))


def tip(stepper: Stepper) -> np.ndarray:
    """Place of the tip in the middle of the ground at the start; ``q`` has the centre of mass, a quarter up the height."""
    return np.asarray(stepper.state.q[:3] + 0.75 * HEIGHT * axis(stepper))


@pytest.mark.parametrize("ground", GROUNDS)
def test_a_cone_rolls_around_its_tip(ground: str) -> None:
    """It turns at 4 rad/s about the line where it touches, so its axis goes round at 4 tan(half angle); tip and energy stay.

    On a plane and a box the lowest point of the rim is followed through a step, on others not in every step.
    """
    deepest = 1e-8 if ground in ("plane", "box") else 1e-5
    stepper = start(lying(), np.zeros(3), spin=4.0, ground=ground)
    body, ways = stepper.scene.bodies[0], []
    energy = body.kinetic_energy(stepper.state.q, stepper.state.v)
    for _ in range(200):
        report = stepper.step()
        assert report.solution.converged and report.max_penetration < deepest
        ways.append(np.arctan2(*-axis(stepper)[1::-1]))
    assert abs(np.unwrap(ways)[-1]) == pytest.approx(4.0 * np.tan(ANGLE), rel=1e-3)
    assert np.linalg.norm(tip(stepper)) < 1e-5
    assert body.kinetic_energy(stepper.state.q, stepper.state.v) == pytest.approx(energy, rel=1e-4)


def test_a_cone_on_a_slope_swings_as_a_pendulum() -> None:
    """It rolls to and fro about the line down the slope: the period of a small swing, by the inertia about the line of touch."""
    slope = np.radians(10.0)
    stepper = start(lying(0.02), np.zeros(3), slope=slope)
    mass, _, inertia = mass_properties(CONE)
    reach = 0.75 * HEIGHT
    about = inertia[2, 2] * np.cos(ANGLE) ** 2 + (inertia[0, 0] + mass * reach**2) * np.sin(ANGLE) ** 2
    period = 2.0 * np.pi * np.sqrt(about / (np.tan(ANGLE) ** 2 * mass * G * np.sin(slope) * reach * np.cos(ANGLE)))
    way, dt = [], stepper.settings.dt
    for _ in range(round(0.8 * period / dt)):
        assert stepper.step().solution.converged
        way.append(np.arctan2(*-axis(stepper)[1::-1]))
    w = np.array(way)
    cross = np.flatnonzero(w[:-1] * w[1:] < 0.0)
    times = dt * (cross + 1 + w[cross] / (w[cross] - w[cross + 1]))
    assert len(times) == 2 and 2.0 * (times[1] - times[0]) == pytest.approx(period, rel=1e-3)


@pytest.mark.parametrize("around", [0.0, 0.1])
@pytest.mark.parametrize(("part", "stands"), [(0.97, True), (1.03, False)])
def test_a_cone_tips_on_the_slope_of_theory(part: float, stands: bool, around: float) -> None:
    """The centre of mass, a quarter up the height, passes over the rim."""
    stepper = start(
        Rotation.from_euler("z", around),
        np.array([0.0, 0.0, HEIGHT]),
        slope=np.arctan(part * RADIUS / (0.25 * HEIGHT)),
        friction=5.0,
    )
    for _ in range(80):
        stepper.step()
    assert (axis(stepper)[2] > 1.0 - 1e-9) == stands


@pytest.mark.parametrize(("lean", "up"), [(0.5, 1.0), (1.4, -np.sin(ANGLE))], ids=["on its base", "on its mantle"])
def test_a_cone_dropped_on_its_rim_falls_in_its_plane_and_comes_to_lie(lean: float, up: float) -> None:
    turn = Rotation.from_euler("y", lean)
    stepper = start(turn, np.array([0.0, 0.0, 0.05]) + turn.apply([0.0, 0.0, HALF]))
    for _ in range(300):
        report = stepper.step()
        assert report.solution.converged and abs(stepper.state.q[1]) < 1e-12
    assert axis(stepper)[2] == pytest.approx(up, abs=1e-6) and np.abs(stepper.state.v).max() < 1e-9
    np.testing.assert_allclose(report.forces.wrench[0, :3], [0.0, 0.0, -WEIGHT], atol=1e-6 * WEIGHT)


# ------------------------------------------------------------------ cones on cones


@pytest.mark.parametrize("gap", [0.0, 1e-4, 2e-3])
@pytest.mark.parametrize(("shape", "up"), [(CONE, False), (Cone(RADIUS, HALF, 0.01), False), (Cone(RADIUS, HALF, 0.01), True)])
def test_a_cone_rests_on_its_mirror_image(shape: Cone, up: bool, gap: float) -> None:
    """Base on base, or top on top: it fell through, or no step converged, as no rim took the face of the other one."""
    scene = fs.Scene("mirrored", dt=0.005, default_friction=0.5)
    turned = (np.pi, 0.0, 0.0)
    scene.add_obstacle("lower", shape, rotation=(0.0, 0.0, 0.0) if up else turned)
    scene.add_rigid("upper", shape, mass=0.05, position=(0.0, 0.0, 2.0 * HALF + gap), rotation=turned if up else (0.0, 0.0, 0.0))
    scene.sensor("force", "upper")
    sim = fs.Simulation(scene)
    before = sim.pose("upper")[1]
    for _ in range(20):
        sim.step()
        assert sim.converged
    assert sim.pose("upper")[1] - before == pytest.approx([0.0, 0.0, -gap], abs=1e-9) and sim.verdict == "good"
    assert sim.read("force").force == pytest.approx([0.0, 0.0, 0.05 * G], abs=1e-6)


def test_cones_that_meet_at_their_mantles_do_not_pass_through_each_other() -> None:
    """Crossed frusta at 0.5 m/s: after it neither has passed the other; rolling mantles sink by 4 um a step."""
    frustum = Cone(0.018, 0.02, 0.008)
    scene = fs.Scene("crossed", dt=0.002, gravity=(0.0, 0.0, 0.0))
    scene.add_rigid("lower", frustum, mass=0.1, rotation=(0.5 * np.pi, 0.0, 0.0))
    scene.add_rigid(
        "upper", frustum, mass=0.1, rotation=(0.0, 0.5 * np.pi, 0.0), position=(0.0, 0.0, 0.04), velocity=(0.0, 0.0, -0.5)
    )
    scene.sensor("gap", "lower", kind="gap", partner="upper", reach=0.1)
    sim = fs.Simulation(scene)
    for _ in range(60):
        sim.step()
        assert sim.converged and sim.row()["max_penetration_m"] < 1e-5
    assert sim.pose("upper")[1][2] - sim.pose("lower")[1][2] > 0.02


def test_cones_a_hair_apart_do_not_overlap() -> None:
    """Asked without a margin: the direction of least overlap, which is searched for, gave mantles one of up to 0.1 mm."""
    rng, count = np.random.default_rng(5), 0
    for _ in range(100):
        shapes: list[Shape] = [Cone(base, height, 0.5 * base) for base, height in rng.uniform(0.3, 1.0, (2, 2)).tolist()]
        rotation, way = Rotation.random(2, rng=rng).as_matrix(), rng.normal(size=3)
        translation = np.array([np.zeros(3), way * 2.5 / np.linalg.norm(way)])
        distance, direction = closest(shapes, rotation, translation)
        translation[1] -= (distance - 1e-4) * direction
        found = detect(shapes, rotation, translation, 1e-3)
        if found.n != 1:
            continue
        of_the_first = found.point[0] < len(shapes[0].features()[0])
        translation[1] += (found.gap[0] - 1e-11) * found.frame[0, 0] * (1.0 if of_the_first else -1.0)
        if not 0.0 < detect(shapes, rotation, translation, 1e-3).gap.min() < 1e-10:  # places on rims are searched for
            continue
        count += 1
        assert detect(shapes, rotation, translation, 0.0).n == 0
    assert count > 10


def test_cones_shot_into_each_other_are_seen() -> None:
    """Where a place is inside both they overlap; no contact is much deeper than they are moved."""
    rng, count = np.random.default_rng(3), 0
    for _ in range(120):
        shapes: list[Shape] = [Cone(*rng.uniform(0.3, 1.0, 2).tolist()) for _ in range(2)]
        rotation, way = Rotation.random(2, rng=rng).as_matrix(), rng.normal(size=3)
        translation = np.array([np.zeros(3), way * rng.uniform(0.5, 2.5) / np.linalg.norm(way)])
        distance, direction = closest(shapes, rotation, translation)
        translation[1] -= (distance + 0.3) * direction
        middles = [(0.5 * translation.sum(axis=0) - translation[k]) @ rotation[k] for k in range(2)]
        if distance <= 1e-2 or max(signed_distance(x, at[None])[0][0] for x, at in zip(shapes, middles, strict=True)) > -1e-3:
            continue
        count += 1
        found = detect(shapes, rotation, translation, 1e-3)
        assert found.n > 0 and -0.75 < found.gap.min() < 0.0
    assert count > 10
