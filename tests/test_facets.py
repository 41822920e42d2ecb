"""What slides over the edges of faceted shapes, walls of a Revolved and triangles of a mesh: forces do no work but for gaps.

Kernels with their twins here: both ``hand_over``, and those of ``leaning_kernels``.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import femsim as fs
from contact.shapes import Mesh, Sphere
from contact.solvers import make_solver
from femsim.step import deforming_rows_kernels, leaning_kernels as leaning
from femsim.step.point_pairs_kernels import hand_over
from femsim.step.stepper import Stepper

FloatArray = NDArray[np.float64]

RADIUS, BALL = 0.1, 0.02
DENSITY = 1000.0
WEIGHT = DENSITY * 4.0 / 3.0 * np.pi * BALL**3 * 9.81


def bowl(radius: float, wall: float, rings: int, facets: int) -> Mesh:
    """Mesh of a bowl, 70 degrees to each side of its lowest point, where the origin is: its inner surface, then its outer one."""
    tilt, angle = np.radians(70.0) * np.arange(1, rings + 1) / rings, 2.0 * np.pi * np.arange(facets) / facets
    points, cells = [], []
    for one in (radius, radius + wall):
        across = np.outer(one * np.sin(tilt), np.ones(facets))
        height = np.outer(radius - one * np.cos(tilt), np.ones(facets))
        points += [
            (0.0, 0.0, radius - one),
            *np.stack([across * np.cos(angle), across * np.sin(angle), height], axis=2).reshape(-1, 3),
        ]
    other = 1 + rings * facets
    for j in range(facets):
        k, m = 1 + j, 1 + (j + 1) % facets
        fan = [(0, k, m)]
        for start in range(0, (rings - 1) * facets, facets):
            fan += [(start + k, start + k + facets, start + m + facets), (start + k, start + m + facets, start + m)]
        cells += fan + [(other + a, other + c, other + b) for a, b, c in fan]
        k, m = k + (rings - 1) * facets, m + (rings - 1) * facets
        cells += [(k, other + k, other + m), (k, other + m, m)]
    return Mesh(points, cells)


def walls(radius: float, count: int, thick: float = 0.001) -> fs.Revolved:
    """So many walls of a bowl whose inner surface has its lowest point at the origin."""
    tilt = np.linspace(0.0, 1.16, count + 1)
    half = 0.5 * thick
    return fs.Revolved(np.column_stack([(radius + half) * np.sin(tilt), radius - (radius + half) * np.cos(tilt)]), half)


def swing(
    shape: Mesh | fs.Revolved, dt: float, friction: float, *, ball: float = BALL, tilt: float = 22.0
) -> tuple[fs.Run, FloatArray]:
    """Let a ball go at so many degrees in a bowl of RADIUS; return the run and its energy as parts of what it can lose."""
    scene = fs.Scene("bowl", dt=dt, duration=1.2, default_friction=friction)
    scene.add_obstacle("bowl", shape)
    start, arm = np.radians(tilt), RADIUS - ball
    place = (arm * np.sin(start), 0.0, RADIUS + 2e-5 - arm * np.cos(start))
    scene.add_rigid("ball", Sphere(ball), density=DENSITY, position=place)
    run = fs.simulate(scene)
    energy = run.steps["kinetic_energy_J"] + run.steps["potential_energy_J"]
    weight = WEIGHT * (ball / BALL) ** 3
    return run, 1.0 + (energy - energy[0]) / (weight * arm * (1.0 - np.cos(start)))


@pytest.mark.parametrize(("dt", "friction"), [(0.01, 0.0), (0.01, 0.5), (0.005, 0.0)])
def test_a_ball_in_a_bowl_of_many_walls_neither_gains_nor_loses_much(dt: float, friction: float) -> None:
    """It gained 26 % in 1.2 s: it went straight on into the next walls, which pushed it out, 0.1 mm at a time."""
    run, energy = swing(walls(RADIUS, 60), dt, friction)
    assert run.verdict == "good"
    assert energy.max() < 1.0005
    assert energy[-1] > 0.96  # 60 walls of plastic edges would take 10 % at small steps
    assert run.steps["max_penetration_m"].max() < 1e-5


def test_nor_does_one_in_a_bowl_of_triangles() -> None:
    """It lost 21 %, pushed along its way by half an edge, forth or back."""
    run, energy = swing(bowl(RADIUS, 0.005, 60, 240), 0.01, 0.0)
    assert run.verdict == "good"
    assert energy.max() < 1.002
    assert energy[-1] > 0.95


def test_a_small_ball_in_a_fine_bowl_keeps_its_swing() -> None:
    """It lost 7 % of its energy in half a swing and 28 % in two, by a tenth of steps in sub-steps, *doubtful*."""
    run, energy = swing(bowl(RADIUS, 0.02, 48, 96), 0.01, 0.0, ball=0.01, tilt=40.0)
    assert run.verdict == "good"
    assert energy.max() < 1.002
    assert energy[-1] > 0.95


@pytest.mark.parametrize(("kind", "kept"), [("walls", 0.998), ("triangles", 0.98)])
def test_a_bowl_that_is_free_takes_the_momentum_of_the_ball(kind: str, kept: float) -> None:
    """The leaning force acts on both at one place and takes no energy: they lost 4 % of that in 20 steps over walls."""
    scene = fs.Scene(
        "free", dt=0.01, gravity=(0.0, 0.0, 0.0), default_friction=0.0, nonlinear_tolerance=1e-8, max_solves=60
    )  # fmt: skip
    shape = walls(RADIUS, 60) if kind == "walls" else bowl(RADIUS, 0.005, 30, 96)
    scene.add_rigid("bowl", shape, mass=0.2)
    scene.add_rigid("ball", Sphere(BALL), mass=0.05, position=(0.0, 0.01, 0.0207), velocity=(0.4, 0.2, -0.01))
    stepper = Stepper(scene, make_solver("auto"))

    def momenta() -> FloatArray:
        state, total = stepper.state, np.zeros((2, 3))
        for body, q, v in zip(stepper.system.bodies, stepper.system.q_slices, stepper.system.v_slices, strict=True):
            total[0] += body.momentum(state.q[q], state.v[v])
            total[1] += body.angular_momentum(state.q[q], state.v[v])  # type: ignore[attr-defined]
        return total

    first, energy, pressed = momenta(), stepper.step().kinetic_energy, 0.0
    for _ in range(40):
        report = stepper.step()
        assert report.solution.converged and kept * energy < report.kinetic_energy < 1.001 * energy
        pressed = max(pressed, float(report.forces.force_sum.max()))
    assert pressed > 0.1
    np.testing.assert_allclose(momenta()[0], first[0], rtol=0, atol=1e-14)
    assert np.linalg.norm(momenta()[1] - first[1]) < 1e-6 * np.linalg.norm(first[1])


def test_a_cable_over_a_pulley_of_facets_hardly_needs_halves() -> None:
    """A kink that came to the next edge was 20 um in it before it had contact: two of three steps were halved, *doubtful*."""
    radius, cord, load = 0.02, 0.0015, 1.0
    scene = fs.Scene("pulley", dt=0.005, duration=0.15, gravity=(0.0, 0.0, 0.0), margin=5e-4)
    drum = fs.cylinder_triangles(radius, 0.012, 64)
    scene.add_obstacle("pulley", Mesh(drum.points, drum.triangles), rotation=(0.5 * np.pi, 0.0, 0.0))
    far, legs, angle = radius + cord + 2e-4, np.arange(1, 11) * 0.0021, np.linspace(0.0, np.pi, 32)
    x = np.concatenate([np.full(10, far), far * np.cos(angle), np.full(10, -far)])
    z = np.concatenate([-legs[::-1], far * np.sin(angle), -legs])
    hangs = fs.RodEnd(load=lambda t: ((0.0, 0.0, -load * min(t / 0.05, 1.0)), (0.0, 0.0, 0.0)))
    pulled = fs.RodEnd("hinged", motion=fs.Motion([0.0, 0.05, 0.15], [(0, 0, 0), (0, 0, 0), (0, 0, -0.008)], smooth=False))
    section, string = fs.circular_section(cord, bending=1e-4), fs.Elastic(3e8, 0.3, 1200.0, name="cord")
    rod = scene.add_rod(
        "rod", np.column_stack([x, 0.0 * x, z]), section, string, rest_curvature=np.zeros(3), start=hangs, end=pulled
    )
    scene.set_friction(rod, "pulley", 0.3)
    scene.sensor("pull", rod, kind="end")
    run = fs.simulate(scene)
    assert run.verdict == "good" and run.steps["substeps"].mean() < 1.2
    pull = np.linalg.norm(run.sensors["pull"].force[-8:].mean(axis=0))
    assert pull == pytest.approx(load * np.exp(0.3 * np.pi), rel=0.05)


def test_a_soft_ball_in_a_bowl_of_facets_goes_as_on_walls() -> None:
    """By faces it lost two thirds of its swing in 0.6 s, *good*."""
    left = []
    for shape in (bowl(RADIUS, 0.005, 24, 48), walls(RADIUS, 24, 0.004)):
        scene = fs.Scene("soft", dt=0.005, duration=0.2, default_friction=0.0)
        scene.add_obstacle("bowl", shape)
        start, arm = np.radians(30.0), RADIUS - BALL
        place = (arm * np.sin(start), 0.0, RADIUS + 3e-4 - arm * np.cos(start))
        scene.add_soft("ball", fs.ball_tets(BALL, 4), fs.Elastic(2e5, 0.4, DENSITY), position=place)
        run = fs.simulate(scene)
        assert run.verdict == "good"
        energy = run.steps["kinetic_energy_J"] + run.steps["potential_energy_J"] + run.steps["elastic_energy_J"]
        left.append(1.0 + (energy[-1] - energy[0]) / (WEIGHT * arm * (1.0 - np.cos(start))))
    assert left[0] == pytest.approx(left[1], abs=0.05) and left[1] > 0.8


# ------------------------------------------------------------------ kernels


def test_the_wall_that_a_point_comes_to_takes_over_from_the_one_it_left() -> None:
    """Two points on shape 0 of many walls, one on shape 1, which has one.

    Point 0 had contacts with three walls: one is found again, of the others the nearer one goes to the nearest wall that is new.
    Point 1 finds only a wall at right angles, point 2 is on the shape of one wall.
    """
    number, shape = np.array([9, 0, 0, 0, 1, 2]), np.array([0, 0, 0, 0, 0, 1])
    gap, keep = np.array([0.0, 3e-4, 1e-4, 0.0, 0.0, 0.0]), np.array([1, 2, 3, 4, 5])
    turn = [0.0, 0.2, 0.1, 0.0, 0.0, 0.0]
    frame = np.array([Rotation.from_rotvec([0.0, a, 0.0]).as_matrix() for a in turn])
    there = np.array([0, 0, 0, 1, 2]), np.array([0, 0, 0, 0, 1])
    gap_there = np.array([2e-4, 0.0, 1e-4, 0.0, 0.0])
    frame_there = np.array([Rotation.from_rotvec([0.0, a, 0.0]).as_matrix() for a in (0.4, 0.0, 0.3, 0.5 * np.pi, 0.0)])
    place, used = np.array([-1, -1, 1, -1, -1]), np.empty(5, dtype=np.bool_)
    walls_of = np.array([True, False])
    hand_over(keep, number, shape, gap, frame, walls_of, *there, gap_there, frame_there, place, used)
    np.testing.assert_array_equal(place, [-1, 2, 1, -1, -1])
    np.testing.assert_array_equal(used, [False, True, True, False, False])


def test_the_edge_that_a_kink_comes_to_takes_over_from_that_beside_it() -> None:
    """Sides of one contact there: edge 4-5 of body 0 at segment 8-9 of body 1; before it was at segment 9-10, or at others."""
    body = np.array([[0, 1], [0, 1], [0, 2], [0, 1], [0, 1]])
    sides = [((4, 5), (9, 10)), ((4, 5), (9, 10)), ((4, 5), (9, 10)), ((4, 5), (11, 12)), ((6, 7), (9, 10))]
    point = np.array([[(*one, -1), (*other, -1)] for one, other in sides])
    gap, frame = np.array([2e-3, 1e-3, 0.0, 0.0, 0.0]), np.array([np.eye(3)] * 5)
    there = np.array([[0, 1], [0, 1]]), np.array([[(4, 5, -1), (8, 9, -1)], [(4, 5, -1), (9, 10, -1)]])
    gap_there, able = np.array([-1e-5, 0.0]), np.ones(5, dtype=np.bool_)
    for turn, expected in ((0.1, [-1, 0, -1, -1, -1]), (1.0, [-1, -1, -1, -1, -1]), (0.0, [-1, -1, -1, -1, -1])):
        able[1] = turn > 0.0
        place, used = np.array([1, -1, -1, -1, -1]), np.empty(2, dtype=np.bool_)
        place[0] = 1  # found again
        frame_there = np.array([Rotation.from_rotvec([0.0, turn, 0.0]).as_matrix(), np.eye(3)])
        deforming_rows_kernels.hand_over(body, point, gap, frame, *there, gap_there, frame_there, able, place, used)
        np.testing.assert_array_equal(place[1:], expected[1:])
        assert place[0] == 1 and used[1] and used[0] == (turn == 0.1)


def test_normals_lean_along_the_way_until_they_say_what_gaps_change_by() -> None:
    """Slow twin: the discrete gradient with poses as matrices.

    Contact 2 is found nowhere at the end, contact 3 is of a point that goes with its shape, contact 4 stays too far off.
    """
    rng = np.random.default_rng(3)
    count, parts = 5, 3
    J = sp.random(3 * count, 12, 0.4, format="csr", random_state=rng)
    J.sort_indices()
    phi, v, dt = rng.standard_normal((count, 3)), rng.standard_normal(12), 0.01
    gap, slip = np.array([1e-3, -2e-3, 0.0, 0.0, 50.0]), np.empty((count, 3))
    phi[4, 0] += gap[4] / dt
    leaning.slips(J.indptr, J.indices, J.data, phi, v, gap, dt, 0.5, 0.05, slip)
    u = (J @ v).reshape(-1, 3) + phi
    u[:, 0] -= np.where(gap > 0.0, gap / dt, -np.minimum(0.5 * -gap / dt, 0.05))
    np.testing.assert_allclose(slip, dt * u, rtol=0, atol=1e-15)
    frame, way = Rotation.random(count, random_state=6).as_matrix(), np.empty((count, 3))
    leaning.ways_of_slips(slip, frame, way)
    np.testing.assert_allclose(way, [turn.T @ one for turn, one in zip(frame, slip, strict=True)], rtol=0, atol=1e-15)

    number, part, place = np.array([4, 0, 2, 1, 3]), np.array([0, 2, 1, 0, 2]), np.array([2, 0, -1, 1, 3])
    first, then, middle = (Rotation.random(parts, random_state=k) for k in (1, 2, 5))
    where, later = rng.standard_normal((parts, 3)), rng.standard_normal((parts, 3))
    start, end = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    end[1] = then[0].as_matrix() @ first[0].as_matrix().T @ (start[1] - where[0]) + later[0]
    poses = (first.as_matrix(), where), end, (then.as_matrix(), later)
    leaning.ways_of_points(number, part, start, *poses, middle.as_matrix(), way)
    for m, (point, k) in enumerate(zip(number, part, strict=True)):
        expected = middle[k].apply(then[k].inv().apply(end[point] - later[k]) - first[k].inv().apply(start[point] - where[k]))
        np.testing.assert_allclose(way[m], expected, rtol=0, atol=1e-13)

    chosen = np.ones(count, dtype=np.bool_)
    assert leaning.may_press(slip, way, gap, chosen)
    np.testing.assert_array_equal(chosen, [True, True, True, False, False])
    gap_there, leant = gap[[1, 3, 0, 4]] + 0.05 * rng.standard_normal(4), frame.copy()
    assert leaning.lean_along(chosen, place, gap_there, gap, slip, way, leant)
    for m in range(count):
        if m > 1:
            np.testing.assert_array_equal(leant[m], frame[m])
            continue
        lacks = gap_there[place[m]] - gap[m] - slip[m, 0]
        normal = frame[m, 0] + lacks / (way[m] @ way[m]) * way[m]
        assert 0.0 < abs(lacks) < 0.5 * np.linalg.norm(way[m])
        assert (normal - frame[m, 0]) @ way[m] == pytest.approx(lacks, rel=1e-12)
        np.testing.assert_allclose(leant[m, 0], normal / np.linalg.norm(normal), rtol=0, atol=1e-13)
        np.testing.assert_allclose(leant[m] @ leant[m].T, np.eye(3), rtol=0, atol=1e-12)
    assert not leaning.may_press(slip, 1e-9 * way, gap, chosen)
    assert not leaning.lean_along(chosen, place, gap_there, gap, slip, way, leant)


def test_contacts_may_lean_on_facets_and_where_normals_of_boxes_turn() -> None:
    """Shapes are a mesh, a box, a ball: on the box the second normal turned, on the mesh the third force acts aside."""
    rng = np.random.default_rng(4)
    number, shape, shape_part = np.array([0, 1, 2, 3, 4]), np.array([1, 1, 0, 0, 2]), np.array([1, 0, 0])
    first = Rotation.random(2, random_state=7).as_matrix()
    middle = Rotation.random(2, random_state=8).as_matrix()
    before = Rotation.random(5, random_state=9).as_matrix()
    carried = np.array([middle[k] @ first[k].T for k in shape_part[shape]])
    frame = np.einsum("mij,mkj->mki", carried, before)
    frame[1] = frame[1] @ Rotation.from_rotvec([1e-5, 2e-5, 0.0]).as_matrix().T
    points = rng.standard_normal((5, 3))
    position = points - 0.1 * frame[:, 0]
    position[2] += 1e-3 * frame[2, 1]
    faceted, edged, out = np.array([True, False, False]), np.array([False, True, False]), np.empty(5, dtype=np.bool_)
    one = number, shape, shape_part, faceted, edged, before, first, frame, middle, position, points
    assert leaning.at_edges(*one, out)
    np.testing.assert_array_equal(out, [False, True, False, True, False])
    faceted[:], edged[:] = False, False
    assert not leaning.at_edges(*one, out) and not out.any()
