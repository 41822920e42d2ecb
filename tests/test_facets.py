"""What slides over the edges of faceted shapes, walls of a Revolved and triangles of a mesh: forces do no work but for gaps.

Kernels with their twins here: ``hand_over`` and, of ``curved_kernels``, ``closing``, ``may_lean`` and ``lean_along``.
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
from femsim.step import curved_kernels
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


@pytest.mark.parametrize("friction", [0.0, 0.5])
@pytest.mark.parametrize("dt", [0.01, 0.005])
def test_a_ball_in_a_bowl_of_many_walls_neither_gains_nor_loses_much(dt: float, friction: float) -> None:
    """It gained 26 % in 1.2 s: it went straight on into the next walls, which pushed it out, 0.1 mm at a time."""
    run, energy = swing(walls(RADIUS, 60), dt, friction)
    assert run.verdict == "good"
    assert energy.max() < 1.0005
    assert energy[-1] > 0.96  # 60 walls of plastic edges would take 10 % at small steps
    assert run.steps["max_penetration_m"].max() < 1e-5


@pytest.mark.parametrize("dt", [0.01, 0.005])
def test_nor_does_one_in_a_bowl_of_triangles(dt: float) -> None:
    """It lost 21 and 12 %, pushed along its way by half an edge, forth or back."""
    run, energy = swing(bowl(RADIUS, 0.005, 60, 240), dt, 0.0)
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


def test_normals_lean_along_the_way_until_they_say_what_gaps_change_by() -> None:
    """Slow twin: the discrete gradient of the docstring with poses as matrices.

    What is found nowhere, or goes with its shape, stays. Contact 4 is that of a vertex at the ball of contact 0, at one place.
    """
    rng = np.random.default_rng(3)
    count, parts = 5, 3
    J = sp.random(3 * count, 12, 0.4, format="csr", random_state=rng)
    J.sort_indices()
    phi, v, dt = rng.standard_normal((count, 3)), rng.standard_normal(12), 0.01
    gap, across = np.array([1e-3, -2e-3, 0.0, 0.0, 2e-3]), np.empty(count)
    curved_kernels.closing(J.indptr, J.indices, J.data, phi, v, gap, dt, 0.5, 0.05, across)
    offset = np.where(gap > 0.0, gap / dt, -np.minimum(0.5 * -gap / dt, 0.05))
    np.testing.assert_allclose(across, dt * ((J @ v).reshape(-1, 3)[:, 0] + phi[:, 0] - offset), rtol=0, atol=1e-15)

    number, part, place = np.array([4, 0, 2, 1, 3]), np.array([0, 2, 1, 0, 2]), np.array([2, 0, -1, 1, 3])
    first, then, middle = (
        Rotation.random(parts, random_state=1),
        Rotation.random(parts, random_state=2),
        Rotation.random(parts, random_state=5),
    )
    where, later = rng.standard_normal((parts, 3)), rng.standard_normal((parts, 3))
    start, end = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    end[1] = then[0].as_matrix() @ first[0].as_matrix().T @ (start[1] - where[0]) + later[0]  # contact 3 goes with its shape
    radius, gap_there = rng.random(5), gap[[1, 3, 0, 4]] + 0.05 * rng.standard_normal(4)
    frame, position = Rotation.random(count, random_state=6).as_matrix(), rng.standard_normal((count, 3))
    poses = (first.as_matrix(), where), end, (then.as_matrix(), later)
    leant, moved = frame.copy(), position.copy()
    assert curved_kernels.lean_along(
        number, part, across, place, gap_there, gap, radius, start, *poses, middle.as_matrix(), 1e-9, leant, moved
    )  # fmt: skip
    for m, (point, k) in enumerate(zip(number, part, strict=True)):
        if m in (2, 3):
            np.testing.assert_array_equal(moved[m], position[m])
            np.testing.assert_array_equal(leant[m], frame[m])
            continue
        way = middle[k].apply(then[k].inv().apply(end[point] - later[k]) - first[k].inv().apply(start[point] - where[k]))
        lacks = gap_there[place[m]] - gap[m] - across[m]
        normal = frame[m, 0] + lacks / (way @ way) * way
        assert 0.0 < abs(lacks) < 0.5 * np.linalg.norm(way)
        assert (normal - frame[m, 0]) @ way == pytest.approx(lacks, rel=1e-12)
        normal /= np.linalg.norm(normal)
        np.testing.assert_allclose(leant[m, 0], normal, rtol=0, atol=1e-13)
        np.testing.assert_allclose(leant[m] @ leant[m].T, np.eye(3), rtol=0, atol=1e-12)
        np.testing.assert_allclose(moved[m], position[m] - radius[point] * (normal - frame[m, 0]), rtol=0, atol=1e-13)
    assert not curved_kernels.lean_along(
        number, part, across, place, gap_there, gap, radius, start, *poses, middle.as_matrix(), 100.0, leant, moved
    )  # fmt: skip


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
    assert curved_kernels.may_lean(*one, out)
    np.testing.assert_array_equal(out, [False, True, False, True, False])
    faceted[:], edged[:] = False, False
    assert not curved_kernels.may_lean(*one, out) and not out.any()
