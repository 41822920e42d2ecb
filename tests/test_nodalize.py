"""Stage contact: nodalization. Which contacts get virtual nodes, and eq. (15) of papers/001 by dense matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.sparse as sp
from slow_twins import body_between_nodes, nodes_on_floor, random_frame, random_spd

from contact import ContactError, ContactProblem, Group, NodalContactProblem, make_problem, nodalize
from contact.nodalize import body_blocks, layout

SOFT, RIGID, TAIL = slice(0, 6), slice(6, 14), slice(14, 20)
GROUPS = (Group("soft", 0, 6, "nodes"), Group("gripper", 6, 14, "generalized"), Group("rigid", 14, 20, "generalized"))


def mixed_problem(rng: np.random.Generator, rows: Sequence[dict[int, np.ndarray]]) -> ContactProblem:
    """Two soft nodes, a gripper of 8 coordinates and a body of 6; ``rows`` gives each contact's blocks of J by first column."""
    A = sp.block_diag([random_spd(rng, 6), random_spd(rng, 8, 9.0), random_spd(rng, 6, 4.0)])
    J = np.zeros((3 * len(rows), 20))
    for m, parts in enumerate(rows):
        for first, block in parts.items():
            J[3 * m : 3 * m + 3, first : first + block.shape[1]] = block
    phi = 0.1 * rng.standard_normal((len(rows), 3))
    return make_problem(A, rng.standard_normal(20), J, phi, 0.4, dt=0.01, groups=GROUPS)


def every_kind(rng: np.random.Generator) -> ContactProblem:
    """Node-obstacle, node-node, node-body, body-body, body-obstacle and a point inside an element."""
    f = [random_frame(rng) for _ in range(6)]
    body = rng.standard_normal((4, 3, 8))
    return mixed_problem(
        rng,
        [
            {0: f[0]},
            {3: f[1], 6: body[0]},
            {6: body[1], 14: body[2][:, :6]},
            {14: body[3][:, :6]},
            {0: 0.25 * f[4], 3: 0.75 * f[4]},
            {0: -f[5], 14: body[0][:, 1:7]},
        ],
    )


def mapping(nodal: NodalContactProblem) -> np.ndarray:
    """J_v, dense (3 nv, n), from the column lists."""
    Jv = np.zeros((3 * nodal.n_virtual, nodal.problem.n))
    for q in range(nodal.n_virtual):
        for e in range(nodal.ptr[q], nodal.ptr[q + 1]):
            Jv[3 * q : 3 * q + 3, np.flatnonzero(nodal.rows == nodal.dof[e])[0]] += nodal.jac[e]
    return Jv


# ---------------------------------------------------------------------- which side gets which node


def test_nodes_on_an_obstacle_need_no_virtual_node() -> None:
    problem = nodes_on_floor(np.random.default_rng(0), 6, 5)
    nodal = nodalize(problem)
    assert nodal.n_virtual == 0 and nodal.size == 18
    assert np.array_equal(nodal.node, np.column_stack([3 * np.arange(5), np.full(5, -1)]))
    for m in range(5):
        J = problem.J.toarray()[3 * m : 3 * m + 3, 3 * m : 3 * m + 3]
        assert np.array_equal(nodal.block[m, 0], J)


def test_each_side_of_each_contact_gets_its_node() -> None:
    rng = np.random.default_rng(1)
    problem = every_kind(rng)
    nodal = nodalize(problem)
    start = 21  # 20 rows, padded
    assert nodal.virtual_start == start and nodal.n_virtual == 6 and nodal.size == start + 18
    assert nodal.node.tolist() == [
        [0, -1],
        [3, start],
        [start + 3, start + 6],
        [start + 9, -1],
        [start + 12, -1],
        [0, start + 15],
    ]
    assert nodal.contact_of.tolist() == [1, 2, 2, 3, 4, 5]
    assert nodal.group_of.tolist() == [1, 1, 2, 2, 0, 2]
    J = problem.J.toarray()
    assert np.array_equal(nodal.block[0, 0], J[0:3, 0:3])
    assert np.array_equal(nodal.block[1, 0], J[3:6, 3:6])
    assert np.array_equal(nodal.block[5, 0], J[15:18, 0:3])
    for m, side in ((1, 1), (2, 0), (2, 1), (3, 0), (4, 0), (5, 1)):
        assert np.array_equal(nodal.block[m, side], np.eye(3))
    expected = np.zeros((18, 20))
    expected[0:3, RIGID] = J[3:6, RIGID]
    expected[3:6, RIGID] = J[6:9, RIGID]
    expected[6:9, TAIL] = J[6:9, TAIL]
    expected[9:12, TAIL] = J[9:12, TAIL]
    expected[12:15, SOFT] = J[12:15, SOFT]
    expected[15:18, TAIL] = J[15:18, TAIL]
    assert np.array_equal(mapping(nodal), expected)


def test_frames_along_the_axes_are_nodal() -> None:
    """Their blocks have one entry a row: the columns of a row are not those of its contact."""
    frame = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    nodal = nodalize(mixed_problem(np.random.default_rng(0), [{3: -frame}]))
    assert nodal.node.tolist() == [[3, -1]] and np.array_equal(nodal.block[0, 0], -frame)


@pytest.mark.parametrize("spoil", [2.0, 1.0 + 1e-6, 0.0])
def test_a_block_that_is_not_orthogonal_is_no_node(spoil: float) -> None:
    """Eq. (13): a stretched or a one-directional block needs a virtual node."""
    frame = random_frame(np.random.default_rng(2))
    frame[1] *= spoil
    nodal = nodalize(mixed_problem(np.random.default_rng(0), [{3: frame}]))
    assert nodal.node.tolist() == [[21, -1]] and nodal.group_of.tolist() == [0]
    np.testing.assert_array_equal(mapping(nodal)[:, 3:6], frame)


def test_three_columns_that_straddle_two_nodes_are_no_node() -> None:
    frame = random_frame(np.random.default_rng(3))
    nodal = nodalize(mixed_problem(np.random.default_rng(0), [{2: frame}]))
    assert nodal.n_virtual == 1


def test_an_orthogonal_block_of_a_body_is_no_node() -> None:
    frame = random_frame(np.random.default_rng(4))
    nodal = nodalize(mixed_problem(np.random.default_rng(0), [{6: frame}]))
    assert nodal.n_virtual == 1 and nodal.group_of.tolist() == [1]


def test_two_nodes_of_two_soft_bodies() -> None:
    rng = np.random.default_rng(5)
    frame = random_frame(rng)
    J = np.zeros((3, 12))
    J[:, 3:6], J[:, 6:9] = -frame, frame
    groups = (Group("a", 0, 6, "nodes"), Group("b", 6, 12, "nodes"))
    nodal = nodalize(make_problem(random_spd(rng, 12), np.zeros(12), J, np.zeros(1), 0.4, dt=0.01, groups=groups))
    assert nodal.node.tolist() == [[3, 6]] and nodal.n_virtual == 0
    assert np.array_equal(nodal.block[0], [-frame, frame])


def test_two_nodes_of_one_body_are_one_point() -> None:
    """Self-contact is not nodal: both nodes lie in one group, so their common point is virtual."""
    frame = random_frame(np.random.default_rng(6))
    nodal = nodalize(mixed_problem(np.random.default_rng(0), [{0: frame, 3: -frame}]))
    assert nodal.node.tolist() == [[21, -1]]


def test_stored_zeros_and_empty_contacts_touch_nothing() -> None:
    frame = random_frame(np.random.default_rng(7))
    problem = mixed_problem(np.random.default_rng(0), [{0: frame, 14: np.ones((3, 6))}, {}])
    problem.J.data[problem.J.indices >= 14] = 0.0
    assert problem.J.nnz == 27
    nodal = nodalize(problem)
    assert nodal.node.tolist() == [[0, -1], [-1, -1]] and nodal.n_virtual == 0


def test_three_bodies_are_refused() -> None:
    rng = np.random.default_rng(8)
    good = {0: random_frame(rng)}
    bad = {0: random_frame(rng), 6: np.ones((3, 8)), 14: np.ones((3, 6))}
    with pytest.raises(ContactError, match=r"contact 1 acts on three bodies.*at most two"):
        nodalize(mixed_problem(rng, [good, bad]))


@pytest.mark.parametrize("name", ["gain", "gain_factor"])
@pytest.mark.parametrize("value", [0.0, -2.5, np.nan, np.inf])
def test_a_gain_that_is_not_positive_is_refused(name: str, value: float) -> None:
    problem = every_kind(np.random.default_rng(0))
    with pytest.raises(ContactError, match=f"{name} of the virtual nodes is {value}; allowed are positive"):
        nodalize(problem, **{name: value})


# ---------------------------------------------------------------------- eq. (15)


@pytest.mark.parametrize("with_multiplier", [False, True])
def test_assembled_is_equation_15_by_dense_matrices(with_multiplier: bool) -> None:
    rng = np.random.default_rng(10)
    problem = every_kind(rng)
    given = rng.standard_normal((6, 3)) if with_multiplier else None
    nodal = nodalize(problem, gain=30.0, multiplier=given)
    found = nodal.assembled()
    Jv, A = mapping(nodal), problem.A.toarray()
    np.testing.assert_allclose(
        found.A.toarray(),
        np.block([[A + 30.0 * Jv.T @ Jv, -30.0 * Jv.T], [-30.0 * Jv, 30.0 * np.eye(18)]]),
        rtol=1e-13,
        atol=1e-12,
    )
    m = np.zeros(18) if given is None else given[[1, 2, 2, 3, 4, 5]].ravel()
    np.testing.assert_allclose(found.b, np.concatenate([problem.b + Jv.T @ m, -m]), rtol=1e-13, atol=1e-13)
    assert np.array_equal(nodal.multiplier.ravel(), m)
    # J: rotations on predefined nodes, identities on virtual ones
    J, old = np.zeros((18, 38)), problem.J.toarray()
    J[0:3, 0:3], J[3:6, 3:6], J[15:18, 0:3] = old[0:3, 0:3], old[3:6, 3:6], old[15:18, 0:3]
    for rows, q in ((3, 0), (6, 1), (6, 2), (9, 3), (12, 4), (15, 5)):
        J[rows : rows + 3, 20 + 3 * q : 23 + 3 * q] = np.eye(3)
    np.testing.assert_array_equal(found.J.toarray(), J)
    assert found.groups == (*GROUPS, Group("virtual nodes", 20, 38, "nodes"))
    assert np.array_equal(found.phi, problem.phi) and np.array_equal(found.friction, problem.friction)
    assert found.dt == problem.dt


def test_assembled_with_a_gain_for_each_node() -> None:
    problem = every_kind(np.random.default_rng(11))
    nodal = nodalize(problem)
    assert len(set(nodal.gain)) == 6
    Jv, K = mapping(nodal), np.diag(np.repeat(nodal.gain, 3))
    A = problem.A.toarray() + Jv.T @ K @ Jv
    np.testing.assert_allclose(
        nodal.assembled().A.toarray(), np.block([[A, -Jv.T @ K], [-K @ Jv, K]]), rtol=1e-13, atol=1e-13 * A.max()
    )


def test_assembled_without_virtual_nodes_is_the_problem_itself() -> None:
    problem = nodes_on_floor(np.random.default_rng(12), 4, 3)
    found = nodalize(problem).assembled()
    assert np.array_equal(found.A.toarray(), problem.A.toarray()) and np.array_equal(found.b, problem.b)
    assert np.array_equal(found.J.toarray(), problem.J.toarray()) and found.groups == problem.groups


@pytest.mark.parametrize("gain", [None, 1e-2, 1.0, 1e4])
def test_a_stays_positive_definite(gain: float | None) -> None:
    """Prop. 1 of papers/001."""
    A = nodalize(every_kind(np.random.default_rng(13)), gain=gain).assembled().A.toarray()
    np.testing.assert_allclose(A, A.T, rtol=0.0, atol=1e-15 * A.max())
    assert np.linalg.eigvalsh(A).min() > 0.0


@pytest.mark.parametrize("with_multiplier", [False, True])
@pytest.mark.parametrize("gain", [None, 3.0, 1e3])
def test_no_additional_force_enters_the_dynamics(gain: float | None, with_multiplier: bool) -> None:
    """Eq. (18): for any force, v of eq. (15) solves A v = b + J^T lam of the original problem, whatever kv and m are."""
    rng = np.random.default_rng(14)
    problem = every_kind(rng)
    multiplier = rng.standard_normal((6, 3)) if with_multiplier else None
    nodal = nodalize(problem, gain=gain, multiplier=multiplier)
    found, lam = nodal.assembled(), rng.standard_normal(18)
    x = np.linalg.solve(found.A.toarray(), found.b + found.J.T @ lam)
    v = np.linalg.solve(problem.A.toarray(), problem.b + problem.J.T @ lam)
    np.testing.assert_allclose(x[:20], v, rtol=1e-9, atol=1e-10)
    # and the virtual nodes move relative to their points by (lam - m)/kv, eq. (14)
    force = lam.reshape(-1, 3)[nodal.contact_of] - nodal.multiplier
    slip = x[20:] - mapping(nodal) @ v
    np.testing.assert_allclose(slip.reshape(-1, 3), force / nodal.gain[:, None], rtol=1e-7, atol=1e-10)
    full = np.insert(x, 14, 0.0)  # with the padding of x behind the gripper's 8 rows
    assert nodal.virtual_slip(full) == pytest.approx(np.linalg.norm(slip.reshape(-1, 3), axis=1).max(), rel=1e-8)


def test_extend_moves_virtual_nodes_with_their_bodies() -> None:
    rng = np.random.default_rng(15)
    problem = every_kind(rng)
    nodal, v = nodalize(problem), rng.standard_normal(20)
    x = nodal.extend(v)
    assert x.shape == (39,) and np.array_equal(x[nodal.rows], v) and x[14] == 0.0
    assert nodal.rows.tolist() == [*range(14), *range(15, 21)]  # the gripper's 8 rows are padded to 9
    np.testing.assert_allclose(x[21:], mapping(nodal) @ v, rtol=1e-13)
    assert nodal.virtual_slip(x) == 0.0
    # so that each contact has the velocity of the original problem
    found = nodal.assembled()
    np.testing.assert_allclose(found.J @ np.delete(x, 14), problem.J @ v, rtol=1e-12, atol=1e-13)


def test_nodes_behind_a_padded_group() -> None:
    """A body of 4 coordinates takes 6 rows of x, so that the nodes behind it start at row 6; each contact finds its own."""
    rng, groups = np.random.default_rng(21), (Group("body", 0, 4, "generalized"), Group("soft", 4, 10, "nodes"))
    places = layout(groups)
    assert places.rows.tolist() == [0, 1, 2, 3, 6, 7, 8, 9, 10, 11] and places.padding.tolist() == [4, 5] and places.size == 12
    assert places.of_row.tolist() == [0] * 6 + [1] * 6 and places.in_v.of_row.tolist() == [0] * 4 + [1] * 6
    assert (places.start.tolist(), places.stop.tolist(), places.stride.tolist()) == ([0, 6], [4, 12], [0, 3])
    J = np.zeros((6, 10))
    J[:3, 7:], J[3:, 4:7], J[3:, :4] = random_frame(rng), random_frame(rng), rng.standard_normal((3, 4))
    problem = make_problem(random_spd(rng, 10), np.zeros(10), J, np.zeros((2, 3)), 0.4, dt=0.01, groups=groups)
    nodal = nodalize(problem)
    assert nodal.node[0].tolist() == [9, -1] and sorted(nodal.node[1]) == [6, 12]


# ---------------------------------------------------------------------- gains


def test_a_given_gain_is_used_everywhere() -> None:
    assert np.array_equal(nodalize(every_kind(np.random.default_rng(16)), gain=42.0).gain, np.full(6, 42.0))


@pytest.mark.parametrize("factor", [10.0, 2.5])
@pytest.mark.parametrize("shared", [False, True])
def test_automatic_gains_are_their_formulas(factor: float, shared: bool) -> None:
    """Not shared: factor tr(A_ii)/3 of the other side's node. Shared: factor / (1/that + count x the point's compliance)."""
    problem = every_kind(np.random.default_rng(17))
    multiplier = np.zeros((6, 3)) if shared else None
    nodal = nodalize(problem, gain_factor=factor, multiplier=multiplier)
    A, Jv = problem.A.toarray(), mapping(nodal)
    inverse = np.zeros((20, 20))  # full inverse of bodies, diagonal of nodes
    inverse[RIGID, RIGID], inverse[TAIL, TAIL] = np.linalg.inv(A[RIGID, RIGID]), np.linalg.inv(A[TAIL, TAIL])
    inverse[SOFT, SOFT] = np.diag(1.0 / np.diag(A)[SOFT])
    compliance = [np.trace(Jv[3 * q : 3 * q + 3] @ inverse @ Jv[3 * q : 3 * q + 3].T) / 3.0 for q in range(6)]
    node = {0: 3, 5: 0}  # virtual node -> predefined node on the other side of its contact
    stiffness = {q: np.trace(A[i : i + 3, i : i + 3]) / 3.0 for q, i in node.items()}
    count = {0: 1, 1: 2, 2: 3}  # virtual nodes on each group
    for q in range(6):
        if shared:
            touching = 1.0 / stiffness[q] if q in stiffness else 0.0
            expected = factor / (touching + count[int(nodal.group_of[q])] * compliance[q])
        else:
            expected = factor * stiffness[q] if q in stiffness else factor / compliance[q]
        assert nodal.gain[q] == pytest.approx(expected, rel=1e-12), q


def test_the_default_factor_is_ten() -> None:
    problem = body_between_nodes(np.random.default_rng(18), 6, 5)
    A = problem.A.toarray()
    expected = [10.0 * np.trace(A[3 * m : 3 * m + 3, 3 * m : 3 * m + 3]) / 3.0 for m in range(5)]
    np.testing.assert_allclose(nodalize(problem).gain, expected, rtol=1e-13)


def test_automatic_gains_follow_the_units_of_force() -> None:
    problem = every_kind(np.random.default_rng(19))
    scaled = make_problem(1e3 * problem.A, problem.b, problem.J, problem.phi, problem.friction, dt=0.01, groups=problem.groups)
    for multiplier in (None, np.zeros((6, 3))):
        before, after = nodalize(problem, multiplier=multiplier), nodalize(scaled, multiplier=multiplier)
        np.testing.assert_allclose(after.gain, 1e3 * before.gain, rtol=1e-12)


def test_body_blocks_are_the_diagonal_blocks_of_generalized_groups() -> None:
    problem = every_kind(np.random.default_rng(20))
    A, blocks = problem.A.toarray(), body_blocks(problem)
    assert blocks.shape == (3, 8, 8)
    assert np.array_equal(blocks[0], np.eye(8))
    assert np.array_equal(blocks[1], A[RIGID, RIGID])
    padded = np.eye(8)
    padded[:6, :6] = A[TAIL, TAIL]
    assert np.array_equal(blocks[2], padded)
