"""What keeps the step of a small scene short, against plain twins: compressed rows, following contacts, bounds of speeds, sizes.

Kernels with their twins here: ``pick_contacts``, ``follow`` (``turn_frames`` is in test_middle), ``find_again``, ``fill_pairs``,
``fill_sides``, ``tell``, ``creep``, ``fastest``, ``approach``, ``bend``,
``find_below``, those of ``curved_kernels``,
``move`` by Cayley's map, and those of ``residual_kernels``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from registry import LIMITED
from scipy.spatial.transform import Rotation
from slow_twins import rotate_by_cayley
from small_blocks import soft_block

import femsim as fs
from contact import SOLVERS, make_rows
from contact.compressed import compressed_rows, rows_of_contacts, times_transposed
from contact.linear import DenseCholesky
from contact.metrics import residuals
from contact.solvers import make_solver
from femsim.base.rotations import quaternion_to_matrix
from femsim.model.bodies.articulated import ArticulatedBody, Link
from femsim.model.bodies.tree_kernels import move
from femsim.step import curved_kernels, residual_kernels
from femsim.step.contact_family import matched
from femsim.step.point_pairs_kernels import approach, fill_pairs, fill_sides, find_again
from femsim.step.point_rows_kernels import Pairs, RigidParts, fastest, follow
from femsim.step.rows_kernels import creep, tell, turn_frames
from femsim.step.stepper import Stepper
from femsim.step.thin_kernels import find_below
from femsim.step.turning_kernels import bend


def random_rows(rng: np.random.Generator, contacts: int, n: int) -> sp.csr_matrix:
    J = sp.random(3 * contacts, n, 0.3, format="csr", random_state=rng)
    J.sort_indices()
    return J


def test_compressed_rows_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    J = random_rows(rng, 4, 9)
    own = compressed_rows(J.indptr, J.indices, J.data, 9)
    assert vars(own).keys() == vars(sp.csr_matrix((J.data, J.indices, J.indptr), shape=J.shape)).keys()
    x, y = rng.standard_normal(9), rng.standard_normal(12)
    assert own.shape == (12, 9) and own.has_sorted_indices and (own != J).nnz == 0
    np.testing.assert_array_equal(own @ x, J @ x)
    np.testing.assert_array_equal(own.T @ y, J.T @ y)
    np.testing.assert_array_equal(times_transposed(own, y), J.T @ y)
    assert (own[3:6] != J[3:6]).nnz == 0 and own.copy().shape == own.shape


@pytest.mark.parametrize("chosen", [[True, False, True, True], [False] * 4, [True] * 4])
def test_rows_of_some_contacts(chosen: list[bool]) -> None:
    J = random_rows(np.random.default_rng(1), 4, 7)
    some, expected = rows_of_contacts(J, np.array(chosen)), J[np.repeat(chosen, 3)]
    assert some.shape == expected.shape
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(some, name), getattr(expected, name))


def test_contacts_follow_their_shapes_and_take_the_normals_that_are_found() -> None:
    rng = np.random.default_rng(2)
    turn = Rotation.random(3, random_state=3).as_matrix()
    little = Rotation.from_rotvec(0.2 * rng.standard_normal((3, 3))).as_matrix()
    before, there = turn, little @ turn
    points = rng.standard_normal((5, 3))
    moved = points + 0.1 * rng.standard_normal((5, 3))
    point, shape, keep = np.array([4, 0, 2, 2]), np.array([1, 0, 1, 0]), np.array([0, 2, 3])
    frames, position = Rotation.random(4, random_state=4).as_matrix(), rng.standard_normal((4, 3))
    shape_part = np.array([2, 1])
    now = Pairs(point, shape, np.zeros(4), frames[::-1].copy(), rng.standard_normal((4, 3)))
    now.frame[1, 0] = little[1] @ frames[2, 0] + 0.1 * rng.standard_normal(3)
    now.frame[1, 0] /= np.linalg.norm(now.frame[1, 0])
    now.frame[0, 0] = -(little[2] @ frames[3, 0])
    place = np.array([-1, 1, 0])  # not found, found, found from the other side
    frame, where = np.empty((3, 3, 3)), np.empty((3, 3))
    shift, shifted, centre = rng.standard_normal((3, 3)), rng.standard_normal((3, 3)), rng.standard_normal((2, 3))
    axes, is_turned = Rotation.random(2, random_state=5).as_matrix(), np.array([False, True])
    follow(
        keep, point, shape, frames, position, points, before, shift, moved, there, shifted, shape_part, is_turned, axes, centre,
        now.frame, now.position, place, frame, where,
    )  # fmt: skip
    for k, m in enumerate(keep):
        part = shape_part[shape[m]]
        carried = frames[m] @ little[part].T
        if k == 0:  # on a shape that is turned, it goes round with its point
            first, then = (
                axes[1].T @ (pose[part].T @ (place[point[m]] - origin[part]) - centre[1])
                for place, pose, origin in ((points, before, shift), (moved, there, shifted))
            )
            angle = np.arctan2(then[1], then[0]) - np.arctan2(first[1], first[0])
            carried = carried @ Rotation.from_rotvec(angle * (there[part] @ axes[1, :, 2])).as_matrix().T
        if k != 1:
            np.testing.assert_allclose(frame[k], carried, atol=1e-14)
            np.testing.assert_allclose(where[k], position[m] + moved[point[m]] - points[point[m]], atol=1e-14)
            continue
        axis = np.cross(carried[0], now.frame[1, 0])
        angle = np.arcsin(np.linalg.norm(axis))
        shortest = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
        np.testing.assert_allclose(frame[k], carried @ shortest.T, atol=1e-13)
        np.testing.assert_array_equal(where[k], now.position[1])


def test_contacts_lead_along_curved_shapes_as_by_the_plain_formulas() -> None:
    """Five contacts: the first is on a flat shape, the second of a rigid part, the third is not found at the end.

    The first shape is curved for none, the second for all, the third, a box, for links that have a radius.
    """
    rng = np.random.default_rng(4)
    keep, number, shape, place = np.arange(5), np.array([3, 0, 2, 4, 1]), np.array([0, 1, 2, 1, 2]), np.array([0, 1, -1, 3, 2])
    point_row, radius = np.array([-1, 6, 0, 3, 9]), np.array([0.0, 0.002, 0.001, 0.0, 0.0])
    curved = np.array([np.inf, 0.0, np.finfo(float).tiny])
    chosen = np.empty(5, dtype=np.bool_)
    assert curved_kernels.find_curved(keep, number, shape, point_row, np.zeros(5), curved, chosen)
    np.testing.assert_array_equal(chosen, [False, False, False, True, False])
    assert curved_kernels.find_curved(keep, number, shape, point_row, radius, curved, chosen)
    np.testing.assert_array_equal(chosen, [False, False, True, True, True])
    J, phi, v = random_rows(rng, 5, 12), rng.standard_normal((5, 3)), rng.standard_normal(12)
    rows, u = (J.indptr, J.indices, J.data), (J @ v).reshape(-1, 3) + phi
    speed = curved_kernels.slide(keep, number, shape, point_row, radius, curved, *rows, phi, v)
    assert speed == pytest.approx(np.linalg.norm(u[chosen, 1:], axis=1).max(), rel=1e-15)
    frame = np.array([np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in keep])
    there = Rotation.from_rotvec(0.2 * rng.standard_normal((4, 3))).as_matrix() @ frame[[0, 1, 4, 3]]
    expected, known = frame.copy(), np.empty(5, dtype=np.bool_)
    turn_frames(expected, np.where(chosen, place, -1), there, known)
    assert curved_kernels.turn_to(frame, place, there, chosen)
    np.testing.assert_array_equal(frame, expected)
    np.testing.assert_array_equal(chosen, [False, False, False, True, True])
    gap, gap_there, dt, lead = np.array([0.1, 0.2, -0.1, 0.3, -0.4]), rng.standard_normal(4), 0.01, np.empty((5, 3))
    curved_kernels.lead_there(*rows, phi, v, chosen, place, gap_there, gap, dt, 0.5, 7.0, lead)
    u[3, 0], u[4, 0] = gap_there[3] / dt, (gap_there[2] - gap[4]) / dt - 7.0  # a penetration goes at 7 m/s at most
    np.testing.assert_allclose(lead, u, rtol=0, atol=1e-12)
    own, lacking = phi.copy(), lead.copy()
    curved_kernels.keep_ways(*rows, v, own, lacking)
    np.testing.assert_allclose((J @ v).reshape(-1, 3) + own, u, rtol=0, atol=1e-12)
    np.testing.assert_allclose(own - phi, lacking, rtol=0, atol=1e-12)
    part, shape_part, columns = np.array([0, 1, 1, 2, 2]), np.array([3, 3, 0]), np.array([6, 6, 3, 3, 3])
    before, after, reference, moved = rng.standard_normal((4, 4, 3))
    points, at, points_there, at_there = (rng.standard_normal((5, 3)) for _ in range(4))
    levers, positions = points.copy(), at.copy()
    curved_kernels.take_levers(chosen, place, number, shape, part, shape_part, columns, before, reference, after, moved,
                               points_there, at_there, positions, levers)  # fmt: skip
    for m in (3, 4):
        on, point = shape_part[shape[m]], number[m]
        np.testing.assert_allclose(positions[m] - before[on], at_there[place[m]] - after[on], rtol=0, atol=1e-14)
        own_part = on if columns[point] == 6 else part[point]
        first, then = (before, after) if columns[point] == 6 else (reference, moved)
        np.testing.assert_allclose(levers[point] - first[own_part], points_there[point] - then[own_part], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(positions[:3], at[:3])
    np.testing.assert_array_equal(np.delete(levers, number[3:], axis=0), np.delete(points, number[3:], axis=0))


def test_contacts_are_recognised_by_point_shape_and_feature() -> None:
    """Of two parts with two points each, the first a soft body; friction and restitution are those of its pairs."""
    point, shape, feature = np.array([3, 0, 1]), np.array([1, 0, 1]), np.array([0, 4, 2])
    point_part, shape_part, point_row = np.array([0, 0, 1, 1]), np.array([1, 0]), np.array([6, 9, -1, -1])
    of_pairs, friction, restitution, key = np.array([[1.0, 2.0], [3.0, 4.0]]), np.empty(3), np.empty(3), np.empty(3, dtype=int)
    fill_pairs(
        point, shape, feature, point_part, shape_part, 5, of_pairs, 10.0 * of_pairs, friction, restitution, key
    )  # fmt: skip
    assert friction.tolist() == [3.0, 2.0, 1.0] and restitution.tolist() == [30.0, 20.0, 10.0]
    assert key.tolist() == [(3 * 2 + 1) * 5, 4, (1 * 2 + 1) * 5 + 2]
    place, there = np.full(3, -1), np.empty(3, dtype=int)
    assert find_again(key, point, shape, feature, 2, 5, place, there) and place.tolist() == [0, 1, 2]
    others = key[::-1].copy(), key[:2].copy(), key + np.array([0, 0, 1])  # another order, another number, another contact
    for other, numbers in zip(others, ([2, 1, 0], [0, 1], [0, 1, -1]), strict=True):
        assert find_again(other, point, shape, feature, 2, 5, place, there) and there.tolist() == key.tolist()
        assert place[: len(other)].tolist() == numbers == matched(other, key).tolist()
    many, there = np.arange(400)[::-1].copy(), np.empty(3, dtype=int)  # as many are not looked for one by one
    assert not find_again(many, point, shape, feature, 2, 5, np.empty(400, dtype=int), there)
    part, number, weight = np.empty((2, 2), dtype=int), np.empty((2, 2, 3), dtype=int), np.empty((2, 2, 3))
    at, gap, points = np.arange(9.0).reshape(3, 3), np.array([0.1, 0.2, 0.3]), 10.0 + np.arange(12.0).reshape(4, 3)
    frame, columns, around = np.tile(np.eye(3), (2, 1, 1)), np.array([3, 3, 6, 3]), np.array([9.0, 0.5, 9.0, 0.0])
    position, acting, distance = np.empty((2, 3)), np.empty((2, 2, 3)), np.empty(2)
    fill_sides(
        np.array([0, 2]), point, shape, at, gap, frame, points, point_part, point_row, columns, around, shape_part,
        np.array([1, 2]), part, number, weight, position, acting, distance,
    )  # fmt: skip
    # contact 0 is of a point of a rigid part, contact 2 of a node with a radius: the latter acts where the node is
    assert distance.tolist() == [0.1, 0.3] and position.tolist() == [[0.0, 1.0, 2.0], [5.5, 7.0, 8.0]]
    assert acting.tolist() == [[[0.0, 1.0, 2.0]] * 2, [[13.0, 14.0, 15.0], [6.0, 7.0, 8.0]]]
    assert part.tolist() == [[1, 0], [0, 0]] and number[:, 0].tolist() == [[-1, -1, -1], [0, -1, -1]]
    assert (number[:, 1] == -1).all() and weight.sum() == 2.0 and (weight[:, 0, 0] == 1.0).all()


def test_contacts_press_beside_the_largest_force_and_slip_above_a_speed() -> None:
    lam, u, work = np.zeros((4, 3)), np.zeros((4, 3)), np.arange(12.0).reshape(4, 3)
    lam[:, 0], u[:, 1], u[:, 2] = [2.0, 1.0, 1e-9, -1.0], [0.3, 0.0, 9.0, 9.0], [0.4, 0.0, 9.0, 9.0]
    state, taken = np.empty(4, dtype=int), np.full(4, 7.0)
    tell(lam, u, work[:0], 0.5, state, taken)
    assert state.tolist() == [1, 1, 0, 0] and (taken == 7.0).all()
    tell(lam, u, work, 0.4999, state, taken)
    assert state.tolist() == [2, 1, 0, 0] and taken.tolist() == [-3.0, -9.0, -15.0, -21.0]
    lam[1, 0] = np.nan
    tell(lam, u, work, 0.4, state, taken)
    assert not state.any()


def test_forces_on_parts_are_summed_on_their_bodies() -> None:
    """Of five parts, an obstacle, three of the second body and one of the third; the first body has none."""
    owner, rng = np.array([-1, 1, 2, 1, 1]), np.random.default_rng(3)
    wrench, size = rng.standard_normal((5, 6)), np.arange(1.0, 6.0)
    force, sizes = np.full((3, 3), 9.0), np.full(3, 9.0)
    residual_kernels.sum_on_bodies(owner, wrench, size, force, sizes)
    expected = np.array([np.zeros(3), wrench[[1, 3, 4], :3].sum(axis=0), wrench[2, :3]])
    np.testing.assert_allclose(force, expected, atol=1e-15)
    assert sizes.tolist() == [0.0, 11.0, 3.0]


def test_the_fastest_point_by_nodes_links_and_joints() -> None:
    """Nodes at rows 0 to 5, a rod of two links from 6, a rigid part at 18 with a joint at 24 and a part that nothing moves."""
    v = np.zeros(25)
    nodes = np.array([[0, 6, 3], [6, 18, 6]])
    screw = np.array([[0.0, 3.0, 4.0, 0.0, 0.0, 2.0]])
    row, start = np.array([-1, 18]), np.array([0, 0, 1])
    rigid = RigidParts(row, np.array([[9.0, 9.0, 9.0], [0.0, 0.0, 1.0]]), start, np.array([24]), screw)
    centre, reach = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 3.0]]), np.array([7.0, 0.5])
    assert fastest(v, nodes, *rigid, centre, reach) == 0.0
    v[3:6] = [1.0, 2.0, 2.0]
    assert fastest(v, nodes, *rigid, centre, reach) == pytest.approx(3.0)
    v[9:12] = 50.0  # how a link turns does not move its centre
    assert fastest(v, nodes, *rigid, centre, reach) == pytest.approx(3.0)
    v[12:15] = [0.0, 6.0, 8.0]
    assert fastest(v, nodes, *rigid, centre, reach) == pytest.approx(10.0)
    v[18:24] = [2.0, 0.0, 0.0, 0.0, 4.0, 3.0]
    v[24] = -1.0
    # the centre of the shapes, 2 m from the origin, moves by 2 + 8 along x, and by the joint as the origin does
    assert fastest(v, nodes, *rigid, centre, reach) == pytest.approx(10.0 + 0.5 * 5.0 + (5.0 + 0.5 * 2.0))


def test_no_point_is_faster_than_the_fastest_however_far_the_base_is() -> None:
    """Points of a finger with a base that flies and two joints; where one joint alone turns it, the bound is that of its axis."""
    rng, none = np.random.default_rng(2), np.zeros((0, 3), dtype=np.int64)
    origin, centre, reach = np.array([[0.0, 0.0, 5.0]]), rng.normal(size=(1, 3)), np.array([0.3])
    for k in range(20):
        screw, v = rng.normal(size=(2, 6)), rng.normal(size=8)
        if k == 0:  # an axis along x, 0.1 m above the centre
            v[:] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -2.0, 0.0]
            turn = np.array([1.0, 0.0, 0.0])
            screw[0] = [*np.cross(turn, origin[0] - centre[0] - [0.0, 0.0, 0.1]), *turn]
        found = fastest(v, none, np.array([0]), origin, np.array([0, 2]), np.array([6, 7]), screw, centre, reach)
        away = rng.normal(size=(200, 3))
        levers = centre - origin + reach * away / np.linalg.norm(away, axis=1, keepdims=True)
        moves = v[:3] + v[6:] @ screw[:, :3] + np.cross(v[3:6] + v[6:] @ screw[:, 3:], levers)
        assert np.linalg.norm(moves, axis=1).max() <= found
        if k == 0:
            assert found == pytest.approx(2.0 * (0.1 + 0.3))


def test_how_far_bodies_that_turn_together_leave_their_tangents() -> None:
    """By differences: of a robot with a hinge and a slider, a free part, one that rests, and one that deforms."""
    rng = np.random.default_rng(6)
    row, origin = np.array([0, 9, -1, -1]), rng.normal(size=(4, 3))
    screw = rng.normal(size=(2, 6))
    screw[1, 3:] = 0.0
    parts = RigidParts(row, origin, np.array([0, 2, 2, 2, 2]), np.array([6, 7]), screw)
    v, place, h = rng.normal(size=15), rng.normal(size=(1, 3)), 1e-4
    v[3:6] *= 0.1  # so that robot and part turn the same way
    v[12:15] = v[3:6] + v[6] * screw[0, 3:] + 0.1

    def turn(part: int) -> np.ndarray:
        return (v[3:6] + v[6] * screw[0, 3:] if part == 0 else v[12:15]) if part < 2 else np.zeros(3)

    def acceleration(part: int) -> np.ndarray:
        """Of the point at ``place``: its velocity by turns, turned on by the angular velocity."""
        lever = place[0] - origin[part]
        moves = np.cross(turn(part), lever) + (v[6:8] @ screw[:, :3] if part == 0 else 0.0)
        turned = Rotation.from_rotvec(h * turn(part)).apply(moves)
        back = Rotation.from_rotvec(-h * turn(part)).apply(moves)
        return (turned - back) / (2.0 * h)

    def found(point: int, shape: int) -> float:
        one, own, point_row = np.zeros(1, dtype=np.int64), np.arange(4), np.array([-1, -1, -1, 0])
        return float(bend(one, one + point, one + shape, place, own, point_row, own, v, parts))

    common = turn(0) @ turn(1) / max(turn(0) @ turn(0), turn(1) @ turn(1))
    assert common > 0.3
    expected = common * np.linalg.norm(acceleration(0) - acceleration(1))
    assert found(0, 1) == pytest.approx(expected, rel=1e-6) and found(1, 0) == pytest.approx(expected, rel=1e-6)
    assert found(3, 0) == pytest.approx(np.linalg.norm(acceleration(0)), rel=1e-6)
    assert found(0, 2) == found(2, 1) == found(3, 2) == found(2, 2) == 0.0
    v[12:15] *= -1.0
    assert found(0, 1) == 0.0  # the other way round


def below_twin(points: np.ndarray, nodes: np.ndarray, triangles: np.ndarray, reach: float, least: float) -> np.ndarray:
    inside = ((points > nodes.min(axis=0)) & (points < nodes.max(axis=0))).all(axis=1)
    if not inside.any():
        return inside
    near = points[inside]
    close = np.flatnonzero(((nodes > near.min(axis=0) - reach) & (nodes < near.max(axis=0) + reach)).all(axis=1))
    close = close if len(close) else np.arange(len(nodes))
    for i in np.flatnonzero(inside):
        nearest = close[np.linalg.norm(nodes[close] - points[i], axis=1).argmin()]
        own = nodes[triangles[(triangles == nearest).any(axis=1)]]
        normal = np.cross(own[:, 1] - own[:, 0], own[:, 2] - own[:, 0]).sum(axis=0)
        inside[i] = (points[i] - nodes[nearest]) @ normal < -least * np.linalg.norm(normal)
    return inside


@pytest.mark.parametrize(("reach", "least"), [(np.inf, 0.0), (0.3, 0.1), (1e-9, 0.0)])
def test_points_below_a_surface(reach: float, least: float) -> None:
    mesh = fs.ball_tets(1.0, 4)
    triangles = mesh.surface().triangles
    rng = np.random.default_rng(5)
    for points in (1.3 * rng.uniform(-1.0, 1.0, (40, 3)), np.full((3, 3), 5.0)):
        below = np.empty(len(points), dtype=np.bool_)
        count = find_below(points, mesh.points, triangles, reach, least, below)
        expected = below_twin(points, mesh.points, triangles, reach, least)
        assert count == expected.sum()
        if count:
            np.testing.assert_array_equal(below, expected)


def test_links_on_a_base_have_the_mass_matrix_of_their_jacobians() -> None:
    rng = np.random.default_rng(6)
    mass, offset, axis = rng.uniform(0.5, 2.0, 3), rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
    offset[0] = axis[0] = 0.0
    roots = rng.standard_normal((3, 3, 3))
    inertia = roots @ roots.transpose(0, 2, 1)
    links = [Link(f"l{k}", mass[k], inertia[k], offset[k], axis[k] if k else None) for k in range(3)]
    q = rng.standard_normal(9)
    q[3:7] /= np.linalg.norm(q[3:7])
    zero = np.zeros(3)
    body = ArticulatedBody("b", links, position=zero, quaternion=q[3:7], velocity=zero, angular_velocity=zero)
    R, M, found = quaternion_to_matrix(q[3:7]), np.zeros((8, 8)), body.mass_matrix(q)
    M[3:6, 3:6] = R @ inertia.sum(axis=0) @ R.T
    for k in range(3):
        lever = R @ (offset[k] + (axis[k] * q[6 + k] if k else 0.0))
        S = np.hstack([np.eye(3), np.zeros((3, 5))])
        S[:, 3:6] = np.array([np.cross(e, lever) for e in np.eye(3)]).T
        if k:
            S[:, 5 + k] = R @ axis[k]
        M += mass[k] * S.T @ S
        turn, centre = body.link_pose(q, k)
        np.testing.assert_allclose(centre, q[:3] + lever, atol=1e-14)
        np.testing.assert_allclose(turn, R, atol=1e-15)
        np.testing.assert_array_equal(body.link_lever(q, k, centre), centre - q[:3])  # no joint turns it
    np.testing.assert_allclose(found, M, atol=1e-13)
    np.testing.assert_array_equal(found, found.T)


def test_cayleys_turn_is_that_of_the_plain_formula() -> None:
    rng = np.random.default_rng(7)
    zero = np.zeros(3)
    for _ in range(5):
        q, turn = rng.standard_normal(7), rng.standard_normal(3)
        q[3:] /= np.linalg.norm(q[3:])
        body = ArticulatedBody("b", [Link("b", 1.0, np.eye(3), zero)], position=zero, quaternion=q[3:], velocity=zero,
                               angular_velocity=zero)  # fmt: skip
        out = q.copy()
        move(body.tree, q, np.concatenate([zero, turn]), 1.0, True, out)
        np.testing.assert_allclose(out[3:], rotate_by_cayley(q[3:], turn), rtol=1e-13)


def test_sizes_of_what_the_equations_lack() -> None:
    rng = np.random.default_rng(8)
    diagonal, held, terms = rng.uniform(0.5, 2.0, 7), np.arange(7) == 2, rng.standard_normal((6, 7))
    terms[:4] *= np.array([10.0, 1.0, 1.0, 3.0])[:, None]
    lacking = np.empty(7)
    found = residual_kernels.sizes(diagonal, held, residual_kernels.Terms(*terms), lacking)
    left = terms[0] - terms[1] - terms[2]
    np.testing.assert_array_equal(lacking, np.where(held, 0.0, left))

    def size(force: np.ndarray) -> float:
        return float(np.sqrt((force**2 / diagonal).sum()))

    largest = max(size(terms[3]), size(terms[4]), size(terms[1]), size(np.where(held, left, 0.0)))
    assert found == pytest.approx((size(lacking), largest, size(terms[5]), diagonal.sum()), rel=1e-13)
    terms[4, 0] = 1e200
    assert np.isinf(residual_kernels.sizes(diagonal, held, residual_kernels.Terms(*terms), lacking)[1])
    v, reach = rng.standard_normal((2, 7))
    rounded = np.where(held, 0.0, diagonal * (np.abs(v) + np.abs(reach) / 0.01))
    found_rounding = residual_kernels.rounding(diagonal, held, v, np.abs(reach), 0.01)
    assert found_rounding == pytest.approx(size(rounded), rel=1e-13)


def test_shares_of_what_bodies_lack_of_their_own_forces() -> None:
    """Of three bodies: one with forces of its own, one that has hardly any and is held by its floor, one that lacks nothing."""
    rng = np.random.default_rng(8)
    diagonal, held, terms = rng.uniform(0.5, 2.0, 9), np.arange(9) == 2, rng.standard_normal((6, 9))
    terms[:, 3:6] *= 1e-9
    lacking, scales = np.where(held | (np.arange(9) > 5), 0.0, terms[0]), np.empty(3)
    owned = residual_kernels.Owned(np.array([0, 3, 6]), np.array([3, 6, 9]), np.array([0.0, 0.25, 0.0]))
    given = residual_kernels.Terms(*terms)
    residual_kernels.own_sizes(owned, diagonal, held, given, 0.0, scales)

    def size(force: np.ndarray, rows: slice) -> float:
        return float(np.sqrt((force[rows] ** 2 / diagonal[rows]).sum()))

    first, last = slice(0, 3), slice(6, 9)
    drives = np.where(held, terms[0] - terms[1] - terms[2], 0.0)
    most = [max(size(terms[3], own), size(terms[4], own), size(terms[1], own), size(drives, own)) for own in (first, last)]
    assert scales == pytest.approx([most[0], 0.25, most[1]], rel=1e-13)
    share = residual_kernels.largest_share(owned, diagonal, lacking, scales)
    assert share == pytest.approx(size(lacking, first) / most[0], rel=1e-13)
    assert residual_kernels.largest_share(owned, diagonal, 0.0 * lacking, scales) == 0.0
    residual_kernels.own_sizes(owned, diagonal, held, given, 1e3, scales)
    assert scales == pytest.approx([1e3 * np.sqrt(diagonal[k : k + 3].sum()) for k in (0, 3, 6)], rel=1e-13)


def test_by_how_much_contacts_creep_on_other_rows() -> None:
    """What does not press counts where it sinks in there; of what slips, only what is beyond a part of that."""
    rng = np.random.default_rng(4)
    one, other = random_rows(rng, 5, 8), random_rows(rng, 5, 8)
    phi, there, v = rng.standard_normal((5, 3)), rng.standard_normal((5, 3)), rng.standard_normal(8)
    lam = np.ones((5, 3))
    lam[3, 0] = 0.0
    there[:, 0] = 1.0 - (other @ v)[::3]  # none sinks in
    here, moved = (one @ v).reshape(-1, 3) + phi, (other @ v).reshape(-1, 3) + there
    beyond = np.linalg.norm((moved - here) * [3.0, 1.0, 1.0], axis=1) - 0.2 * np.linalg.norm(here, axis=1)

    def found() -> float:
        rows = one.indptr, one.indices, one.data, phi, other.indptr, other.indices, other.data, there
        return float(creep(*rows, v, lam, 3.0, 0.2))

    assert found() == pytest.approx(beyond[[0, 1, 2, 4]].max(), rel=1e-13)
    lam[:, 0] = np.arange(5) == beyond.argmin()
    assert found() == pytest.approx(max(0.0, beyond.min()), rel=1e-13)
    lam[:, 0] = 0.0
    assert found() == 0.0
    there[2, 0] -= 1.25
    assert found() == pytest.approx(3.0 * 0.25, rel=1e-13)


def test_weights_are_the_same_in_every_frame() -> None:
    """Vectors have the root of their mean in all three rows, the joints of a robot their own, held rows none."""
    rng = np.random.default_rng(9)
    diagonal, held = rng.uniform(0.5, 2.0, 14), np.arange(14) == 4
    found = np.empty(14)
    residual_kernels.vector_weights(diagonal, np.array([0, 6]), np.array([6, 12]), held, found)
    vectors = np.sqrt(np.repeat(diagonal[:12].reshape(-1, 3).mean(axis=1), 3))
    np.testing.assert_array_equal(found, np.where(held, 0.0, np.concatenate([vectors, np.sqrt(diagonal[12:])])))


def test_the_weights_of_a_robot_leave_its_joints_alone() -> None:
    scene = fs.Scene("two", dt=0.01, duration=1.0)
    scene.add_gripper(
        "hand",
        [fs.Finger("left", fs.Box((0.003, 0.01, 0.01)), offset=(0.02, 0, -0.05), closing=(1, 0, 0))],
        position=(0.0, 0.0, 0.5),
    )
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=1.0, position=(0.0, 0.0, 0.05))
    system = Stepper(scene, make_solver("exact")).system
    system.A.data[:] = np.arange(1.0, len(system.A.data) + 1.0)
    own, diagonal = system.free_weight(), system.A.diagonal()
    assert system.n == 13 and own[6] == np.sqrt(diagonal[6])
    for start in (0, 3, 7, 10):
        assert own[start] == own[start + 2] == np.sqrt(diagonal[start : start + 3].mean())


def test_answers_carry_the_residuals_that_they_were_judged_by() -> None:
    """Those of the yardstick, to the last bit, also with rows; none where another law holds."""
    problem = soft_block(1e5, 3)
    for name in sorted(set(SOLVERS) - {"banded"}):
        solution = make_solver(name, tolerance=1e-5).solve(problem)
        assert solution.converged or name in LIMITED | {"cond"}, name
        assert solution.residuals is not None or name in LIMITED | {"cond", "auto"}, name  # auto picks cond here
        assert solution.residuals in (None, residuals(problem, solution.v, solution.lam)), name
        assert solution.told(details={}).residuals == solution.residuals
    assert make_solver("cond", operator="proximal").solve(problem).residuals is None
    rows = make_rows(sp.csr_matrix(([1.0, -1.0], ([0, 0], [2, 5])), shape=(1, problem.n)), np.zeros(1))
    with_rows = replace(problem, rows=rows)
    joined = make_solver("exact", tolerance=1e-8).solve(with_rows)
    assert joined.converged and joined.residuals == residuals(with_rows, joined.v, joined.lam, row_forces=joined.row_forces)


def sliding_box() -> fs.Scene:
    scene = fs.Scene("box", dt=0.01, duration=1.0, default_friction=0.3)
    scene.add_floor()
    push = np.array([5.0, 0.0, 0.0]), np.zeros(3)
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=1.0, position=(0.0, 0.0, 0.05), load=lambda _t: push)
    return scene


def test_a_box_on_four_corners_is_solved_by_dense_factors_and_slides_as_it_must() -> None:
    """With 5 N against mu m g = 2.943 N it gains (5 - 2.943) N / 1 kg."""
    stepper = Stepper(sliding_box(), make_solver("auto"))
    for _ in range(20):
        report = stepper.step()
        assert report.solution.converged and report.solution.details["picked"] == "exact"
        assert report.solution.details["linear_algebra"] == DenseCholesky.name
    assert stepper.state.v[0] == pytest.approx(0.2 * (5.0 - 0.3 * 9.81), rel=1e-6)
    assert abs(stepper.state.v[2]) < 1e-9


def test_no_gap_between_links_closes_faster_than_their_approach() -> None:
    """Points of two links of a robot whose base flies, along the line between them; the bound is sharp for one that slides."""
    rng, room, pair = np.random.default_rng(3), np.zeros((3, 6)), np.array([[0, 2]])
    start, rows, row, reach = np.array([0, 2, 2, 5]), np.array([6, 7, 6, 8, 9]), np.array([0, -1, 0]), np.array([0.3, 9.0, 0.2])
    for k in range(40):
        centre = 0.4 * rng.normal(size=(3, 3)) + [0.0, 0.0, 5.0]
        origin, screw, v = np.tile(rng.normal(size=3), (3, 1)), rng.normal(size=(5, 6)), rng.normal(size=10)
        screw[2] = screw[0]  # the joint that moves both
        if k == 0:
            v[6:], screw[1] = [7.0, -2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
        found = approach(v, pair, row, origin, start, rows, screw, centre, reach, room)
        away = rng.normal(size=(2, 500, 3))
        place = centre[[0, 2], None] + reach[[0, 2], None, None] * away / np.linalg.norm(away, axis=2, keepdims=True)
        if k == 0:
            place[:, 0] = centre[0] + [[0.0, 0.0, 0.3], [0.0, 0.0, 0.4]]
            assert found == pytest.approx(2.0)
        twist = v[:6] + np.array([v[rows[a:b]] @ screw[a:b] for a, b in ((0, 2), (2, 5))])
        moves = twist[:, None, :3] + np.cross(twist[:, None, 3:], place - origin[0])
        way = place[1] - place[0]
        closing = np.einsum("ki,ki->k", moves[0] - moves[1], way) / np.linalg.norm(way, axis=1)
        assert np.abs(closing).max() <= found * (1.0 + 1e-12)
        assert np.abs(closing).max() > 0.2 * found


def test_links_that_move_alike_do_not_approach_each_other() -> None:
    """Two fingers turn about axes side by side, at one rate: no gap between them closes, however fast they are."""
    screw = np.array([[0.0, 0.0, 0.0, 0.0, 5.0, 0.0], [0.0, 0.0, 0.0, 0.0, 5.0, 0.0]])
    v, origin, centre = (
        np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 3.0, 3.0]),
        np.zeros((2, 3)),
        np.array([[1.0, 0, 0], [1.0, 0.2, 0]]),
    )
    arrays = np.zeros(2, dtype=np.int64), origin, np.array([0, 1, 2]), np.array([6, 7]), screw, centre, np.full(2, 0.5)
    assert approach(v, np.array([[0, 1]]), *arrays, np.zeros((2, 6))) == 0.0
    v[7] = -3.0  # towards each other: both tips by 15 m/s, and how far they reach
    assert approach(v, np.array([[0, 1]]), *arrays, np.zeros((2, 6))) == pytest.approx(30.0 * 1.5)
