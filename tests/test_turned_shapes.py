"""Revolved and Thread: distances against brute force over their surfaces, features, triangles, mass, play, a bowl at rest.

The slow twin of the kernels of ``contact.turned_kernels`` is the nearest of many points on the surface, written down from its
parametrisation.
"""

from __future__ import annotations

import numpy as np
import pytest
from placed_pairs import detect
from scipy.spatial import cKDTree

import femsim as fs
from contact.errors import ContactError
from contact.shapes import Revolved, Thread, signed_distance
from contact.turned_shapes import TURN_POINTS
from femsim.model.solids import mass_properties, visual
from meshes import MeshError, padded_outline, revolved_triangles, solid_mass_properties, thread_triangles

BOWL = Revolved([(0.0, 0.0), (0.035, 0.0), (0.07, 0.05)], 0.003)
#: neither starts on the axis nor is it convex; a funnel with a pointed bottom; a roof, whose inner bend is on the axis
SHAPES = [
    BOWL,
    Revolved([(0.02, 0.0), (0.05, 0.05), (0.03, 0.1)], 0.004),
    Revolved([(0.0, 0.0), (0.05, 0.05)], 0.003),
    Revolved([(0.0, 0.03), (0.05, 0.0), (0.05, -0.05)], 0.002),
]
BOLT = Thread.metric(0.048, 0.005, 0.1)
NUT = Thread.metric(0.048, 0.005, 0.038, play=0.0002, across=0.075)
EVERY = [*SHAPES, BOLT, NUT]


def polyline(shape, per_segment):
    t = np.linspace(0.0, 1.0, per_segment)[:, None]
    return np.concatenate([a + (b - a) * t for a, b in zip(shape.points[:-1], shape.points[1:], strict=True)])


@pytest.mark.parametrize("shape", SHAPES)
def test_revolved_against_the_nearest_of_many_points(shape):
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.12, 0.12, (200, 3))
    x[:20] = [0.03, 0.0, 0.02]
    x[:20, :2] += rng.uniform(-0.002, 0.002, (20, 2))
    x[20] = [0.0, 0.0, 0.2]
    angle = np.linspace(0.0, 2.0 * np.pi, 721)
    r, z = polyline(shape, 200).T
    surface = np.stack([np.outer(r, np.cos(angle)), np.outer(r, np.sin(angle)), np.outer(z, np.ones_like(angle))], -1)
    brute = cKDTree(surface.reshape(-1, 3)).query(x)[0]
    distance, normal = signed_distance(shape, x)
    true = distance + shape.padding
    assert (true <= brute + 1e-12).all()  # no point of the surface is nearer
    between = 0.5 * np.hypot(
        np.sqrt(0.17 * r.max()) * np.pi / 360.0, 0.08 / 200.0
    )  # the nearest of them is this far from the foot
    assert (brute**2 - true**2 <= between**2).all()
    assert np.abs(np.linalg.norm(normal, axis=1) - 1.0).max() < 1e-12
    foot = x - (distance + shape.padding)[:, None] * normal
    on = np.abs(signed_distance(shape, foot)[0] + shape.padding)
    assert on.max() < 1e-12  # the normal leads back to the polyline


def thread_surface(shape, turn, s):
    """Points of the surface at angles and heights above the middle of a ridge, and their normals out of the profile."""
    lead = shape.pitch / (2.0 * np.pi)
    away = np.abs(s - shape.pitch * np.round(s / shape.pitch))
    foot = 0.5 * shape.crest + (shape.major - shape.minor) * np.tan(shape.flank)
    r = np.interp(away, [0.0, 0.5 * shape.crest, foot, 0.5 * shape.pitch], [shape.major, shape.major, shape.minor, shape.minor])
    return np.stack([r * np.cos(turn), r * np.sin(turn), s + lead * turn], axis=-1)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_thread_against_the_nearest_of_many_points(sign):
    """Within 1.5 mm of the surface, far from the ends, the distance errs by less than 0.2 % of itself."""
    shape = BOLT if sign > 0.0 else NUT
    rng = np.random.default_rng(2)
    for _ in range(40):
        turn, s = rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.5) * shape.pitch
        x = thread_surface(shape, turn, s) + rng.uniform(-1.0, 1.0, 3) * 8e-4
        angle = np.arctan2(x[1], x[0])
        t, height = np.meshgrid(angle + np.linspace(-0.12, 0.12, 97), np.linspace(-1.0, 1.0, 1201) * shape.pitch)
        brute = np.sqrt(((thread_surface(shape, t, height) - x) ** 2).sum(axis=-1).min())
        radius = shape.radius_at(x[2] - shape.pitch * angle / (2.0 * np.pi))
        brute *= sign if np.hypot(x[0], x[1]) > radius else -sign
        distance, normal = signed_distance(shape, x[None])
        assert distance[0] == pytest.approx(brute, rel=2e-3, abs=1e-5)
        assert np.linalg.norm(normal[0]) == pytest.approx(1.0, abs=1e-12)
        step = 1e-7
        slope = [(signed_distance(shape, [x + step * e])[0] - signed_distance(shape, [x - step * e])[0])[0] for e in np.eye(3)]
        slope = np.array(slope) / (2.0 * step)
        if abs(np.linalg.norm(slope) - 1.0) < 0.01:  # not across a change of the nearest piece
            assert np.abs(slope - normal[0]).max() < 5e-3


def test_a_thread_is_right_handed_and_ends_where_it_should():
    lead = BOLT.pitch / (2.0 * np.pi)
    turn = np.linspace(-3.0, 3.0, 13)
    on_ridge = np.column_stack([BOLT.major * np.cos(turn), BOLT.major * np.sin(turn), lead * turn])
    assert np.abs(signed_distance(BOLT, on_ridge)[0]).max() < 1e-15
    assert (signed_distance(BOLT, on_ridge + np.array([0.0, 0.0, 0.5 * BOLT.pitch]))[0] > 1e-3).all()
    above = [[0.0, 0.0, 0.07], [0.01, 0.0, 0.051]]
    assert np.allclose(signed_distance(BOLT, above)[0], [0.02, 0.001], atol=1e-15)
    # a nut: its flats, a corner, through the hole, above the metal
    far = 0.075 / np.sqrt(3.0)
    places = [[0.04, 0.0, 0.0], [0.0, far + 0.001, 0.0], [0.0, 0.0, 0.0], [0.03, 0.0, 0.02], [0.04, 0.0, 0.021]]
    distance, normal = signed_distance(NUT, places)
    axis = np.hypot(NUT.minor, 0.5 * NUT.crest + NUT.run)  # to the edge of the groove
    expected = [0.0025, 0.001, axis, 0.001, np.hypot(0.0025, 0.002)]
    assert np.allclose(distance, expected, rtol=2e-3)
    assert np.allclose(normal[[0, 1, 3]], np.eye(3), atol=1e-12)


@pytest.mark.parametrize("shape", EVERY)
def test_triangles_features_and_bounds_lie_on_the_surface(shape):
    surface = visual(shape, np.zeros(3), np.eye(3))
    assert np.abs(signed_distance(shape, surface.points)[0]).max() < 1e-15
    fs.Mesh(surface.points, surface.triangles)  # closed, oriented outwards
    points, radii = shape.features()
    assert np.abs(signed_distance(shape, points)[0] + radii).max() < 1e-15
    assert len(shape.features(2)[0]) > 2 * len(points)
    lower, upper = shape.aabb
    assert np.allclose(surface.points.min(axis=0), lower, atol=5e-5) and np.allclose(surface.points.max(axis=0), upper, atol=5e-5)
    assert (surface.points >= lower - 1e-12).all() and (surface.points <= upper + 1e-12).all()
    assert np.linalg.norm(surface.points, axis=1).max() <= shape.bounding_radius * (1.0 + 1e-12)


@pytest.mark.parametrize("shape", EVERY)
def test_mass_is_the_limit_of_finer_triangles(shape):
    """The error of the mass of triangles is of second order: two of them tell the limit."""

    def at(segments):
        if isinstance(shape, Thread):
            numbers = (shape.pitch, shape.major, shape.minor, shape.crest, shape.length, shape.flank, shape.across)
            surface = thread_triangles(*numbers, segments=segments)
        else:
            surface = revolved_triangles(padded_outline(shape.points, shape.padding, 64), segments)
        mass, centre, inertia = solid_mass_properties(surface, 1.0)
        return np.concatenate([[mass], mass * centre, inertia.ravel()])

    coarse, fine = at(48), at(96)
    mass, centre, inertia = mass_properties(shape)
    limit = np.split(fine + (fine - coarse) / 3.0, [1, 4])
    assert mass == pytest.approx(limit[0][0], rel=2e-4)
    assert np.allclose(mass * centre, limit[1], atol=2e-4 * mass * shape.bounding_radius)
    assert np.allclose(inertia.ravel(), limit[2], atol=4e-4 * np.abs(inertia).max())


def test_an_m48_nut_with_play_of_a_fifth_of_a_millimetre_sits_a_tenth_from_the_flanks():
    """0.2 mm of radial play leave 0.2 mm sin 30 degrees across a flank; the nut weighs 0.970 kg in steel."""
    for turns in (0.0, 0.3):
        angle = 2.0 * np.pi * turns
        turn = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
        found = detect([BOLT, NUT], np.stack([np.eye(3), turn]), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, turns * 0.005]]), 1.2e-4)
        assert found.gap.min() == pytest.approx(1.0e-4, abs=1e-7)
        assert set(found.shape) == {0, 1}  # the edges of each against the flanks of the other
    assert 7850.0 * mass_properties(NUT)[0] == pytest.approx(0.970, abs=5e-4)
    # lifted by the play of its flanks along the axis, 0.2 mm tan 30 degrees, it is in contact with the lower ones
    lifted = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 2e-4 * np.tan(np.pi / 6.0)]])
    assert detect([BOLT, NUT], np.stack([np.eye(3)] * 2), lifted, 1e-5).gap.min() == pytest.approx(0.0, abs=2e-7)


def test_an_end_stops_what_meets_it_and_not_what_is_screwed_through_it():
    """Along the flank a thread enters a nut and leaves it; a bolt that begins at the end of a nut stands on its face.

    Points of the bolt that are in contact with the nut have normals of shape 1, and the other way round.
    """
    slack = 2e-4 * np.tan(np.pi / 6.0)

    def ends(turns, height, spin=0.0, bolt=BOLT, nut=NUT):
        """Contacts with normals along the axis of both, where the nut has turned by so much and is at a height, m."""
        angle = 2.0 * np.pi * turns + spin
        turn = np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, 1.0]])
        found = detect([bolt, nut], np.stack([np.eye(3), turn]), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, height]]), 1e-4)
        return int((np.abs(found.frame[:, 0, 2]) > 0.99).sum())

    for turns in np.arange(0.0, 1.0, 0.037):  # both ends inside the bolt; the ends of the bolt inside or outside the nut
        assert ends(turns, turns * 0.005 - slack) == 0
        assert ends(turns + 7.0, (turns + 7.0) * 0.005 - slack) == 0
    beside = 0.05 + 0.019 + 5e-5  # just above the tip of the bolt: its crest is below the face, wherever the threads begin
    assert all(ends(0.0, beside, spin) > 0 for spin in np.linspace(0.0, 6.0, 5))
    # threads of another pitch do not go on through each other
    other = Thread.metric(0.048, 0.01, 0.038, play=0.0002, across=0.077)
    assert ends(0.0, 0.0, nut=other) > 0


def test_a_bowl_rests_on_a_floor_with_its_weight():
    scene = fs.Scene("bowl", dt=0.01, duration=0.05)
    floor = scene.add_floor()
    bowl = scene.add_rigid("bowl", BOWL, mass=0.1, position=(0.0, 0.0, 0.003))
    scene.sensor("floor", floor)
    scene.sensor("bowl", bowl, kind="marker")
    run = fs.simulate(scene, out=None)
    assert run.sensors["floor"].force[-1] == pytest.approx([0.0, 0.0, -0.981], abs=1e-7)
    assert (np.abs(run.sensors["floor"].force[1:, :2]) < 1e-7).all()


def test_wrong_numbers_are_named():
    bad = [
        (lambda: Revolved([(0.0, 0.0)], 0.001), "points has 1 rows"),
        (lambda: Revolved([(0.0, 0.0), (0.0, 0.05)], 0.001), r"points\[1\] has radius 0.0"),
        (lambda: Revolved([(0.0, 0.0), (0.05, 0.0), (0.05, 0.0)], 0.001), "points 1 and the next one are equal"),
        (lambda: Revolved([(0.0, 0.0), (0.05, 0.0), (0.048, 0.002), (0.1, 0.1)], 0.004), "overlaps itself in bend 1"),
        (lambda: Revolved([(0.0, 0.0), (0.05, 0.0), (0.05, 0.01), (0.02, 0.005)], 0.003), "segments 0 and 2"),
        (lambda: Revolved([(0.0, 0.0), (0.05, 0.0)], 0.0), "padding is 0.0 m"),
        (lambda: Thread.metric(0.048, 0.05, 0.1), "minor is"),
        (lambda: Thread(0.005, 0.024, 0.021, 0.003, 0.1), "a ridge is"),
        (lambda: Thread(0.005, 0.024, 0.021, 0.0006, 0.1, flank=2.0), "flank is 2.0 rad"),
        (lambda: Thread.metric(0.048, 0.005, 0.1, across=0.04), "across is 0.04 m"),
    ]
    for make, text in bad:
        with pytest.raises(ContactError, match=text):
            make()
    with pytest.raises(MeshError, match="multiple of 12"):
        thread_triangles(0.005, 0.024, 0.021, 0.0006, 0.1, np.pi / 6, segments=50)
    assert len(BOWL.features()[0]) == 1 + 2 * TURN_POINTS


def test_walls_may_be_finely_sampled_but_not_fold_onto_themselves() -> None:
    """Neighbours of short segments are nearer than twice the padding without an overlap; legs of a fold are not."""
    for count in (20, 60, 100):
        angle = np.linspace(0.0, np.pi / 3.0, count)
        Revolved(np.column_stack([0.2 * np.sin(angle), 0.2 - 0.2 * np.cos(angle)]), 0.002)
    turn = np.linspace(0.0, np.pi, 40)
    for gap, fits in ((0.0046, True), (0.0042, True), (0.0036, False), (0.003, False)):
        bend = np.column_stack([0.1 + 0.5 * gap * np.sin(turn), 0.5 * gap * (1.0 - np.cos(turn))])
        fold = np.concatenate([[(0.05, 0.0)], bend, [(0.05, gap)]])
        if fits:
            Revolved(fold, 0.002)
        else:
            with pytest.raises(ContactError, match=r"overlaps itself|come within"):
                Revolved(fold, 0.002)
    with pytest.raises(ContactError, match="come within"):  # legs that lean towards each other behind a wide bend
        Revolved([(0.05, 0.0), (0.1, 0.01), (0.11, 0.01), (0.11, 0.02), (0.1, 0.02), (0.05, 0.003)], 0.002)
