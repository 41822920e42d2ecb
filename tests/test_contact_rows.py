"""Between detection and the contact problem: Jacobian rows by finite differences, offsets, wrenches, virtual work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from posed_contacts import make_contacts
from scipy.spatial.transform import Rotation
from slow_twins import moved_pose, random_frame

import contact
from contact import ContactProblem, contact_velocity
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.corotational import CorotationalBody
from femsim.step.contact_family import Found
from femsim.step.contacts import ContactForces, ContactRows, Contacts
from femsim.step.point_contacts import PointFamily
from femsim.step.point_rows_kernels import Carried, RigidParts, place_carried, spread_wrenches
from femsim.step.rows_kernels import Sums
from femsim.step.state import State

DT = 0.01
EYE, ORIGIN = np.eye(3), np.zeros(3)
# parts, and where their points and shapes start
RIGID, BALL, BASE, LEFT, RIGHT, FLOOR = range(6)
# bodies of the system; the rigid body comes first, so its columns lie left of the nodes, those of the gripper right
RIGID_V, NODES_V, GRIPPER_V = slice(0, 6), slice(6, 42), slice(42, 50)


# (part of the point, part of the shape): every pair that the rows treat differently
PAIRS = [
    (BALL, FLOOR), (BALL, RIGID), (BALL, BASE), (BALL, LEFT), (BALL, RIGHT), (RIGID, FLOOR), (LEFT, FLOOR), (BASE, FLOOR),
    (RIGID, LEFT), (LEFT, RIGID), (RIGID, BASE), (BASE, RIGID), (RIGHT, RIGID),
]  # fmt: skip


def family(model: Contacts) -> PointFamily:
    """The contacts between points and shapes: no body here has contact with another deforming one."""
    (points,) = model.families
    assert isinstance(points, PointFamily)
    return points


def test_points_of_rigid_parts_are_where_their_parts_carry_them() -> None:
    rng = np.random.default_rng(2)
    pose, place = np.array([random_frame(rng) for _ in range(3)]), rng.normal(size=(3, 3))
    local, part, point = rng.normal(size=(5, 3)), np.array([2, 0, 0, 2, 1]), np.array([1, 3, 4, 6, 7])
    out = np.full((8, 3), 9.0)
    place_carried(*Carried(point, part, local), pose, place, out)
    for k in range(8):
        i = np.flatnonzero(point == k)
        wanted = pose[part[i[0]]] @ local[i[0]] + place[part[i[0]]] if len(i) else np.full(3, 9.0)
        assert out[k] == pytest.approx(wanted, abs=1e-14)


def test_wrenches_on_rigid_parts_are_spread_over_the_rows_that_move_them() -> None:
    """By virtual work: what the rows do to the reference of each part, times its wrench."""
    rng = np.random.default_rng(5)
    row, start, joint_row = np.array([0, -1, 6, 6]), np.array([0, 0, 0, 2, 3]), np.array([12, 13, 12])
    origin, reference, screw, wrench = (
        rng.normal(size=(4, 3)),
        rng.normal(size=(4, 3)),
        rng.normal(size=(3, 6)),
        rng.normal(size=(4, 6)),
    )
    out = np.zeros(14)
    sums = Sums(wrench, np.array([1.0, 1.0, 1.0, 0.0]), np.zeros(14))  # nothing acts on the last part
    spread_wrenches(*RigidParts(row, origin, start, joint_row, screw), reference, sums.wrench, sums.force_sum, out)
    for a in range(14):
        v, power = np.eye(14)[a], 0.0
        for k in (0, 2):
            twist = v[row[k] : row[k] + 6] + sum(v[joint_row[e]] * screw[e] for e in range(start[k], start[k + 1]))
            power += wrench[k, :3] @ (twist[:3] + np.cross(twist[3:], reference[k] - origin[k])) + wrench[k, 3:] @ twist[3:]
        # the screws of joints act where the origin is, as the rows of the base do
        assert out[a] == pytest.approx(power, abs=1e-13)
    assert out[13] != 0.0


def points_of(model: Contacts, part: int) -> np.ndarray:
    return np.flatnonzero(family(model).point_part == part)


def plant(model: Contacts, state: State, rng: np.random.Generator, pairs: list[tuple[int, int]]) -> Found:
    """One contact for each pair at a random position (soft: at a node) with a random frame; gaps of both signs."""
    point, shape, position = [], [], []
    nodes = state.q[model.system.q_slices[1]].reshape(-1, 3)
    for a, b in pairs:
        point.append(int(rng.choice(points_of(model, a))))
        shape.append(int(np.flatnonzero(family(model).shape_part == b)[0]))
        here = nodes[point[-1] - points_of(model, BALL)[0]] if a == BALL else rng.standard_normal(3)
        position.append(here)
    frame = np.array([random_frame(rng) for _ in pairs]).reshape(-1, 3, 3)
    gap = 1e-3 * rng.standard_normal(len(pairs))
    planted = contact.PointContacts(
        np.array(point, np.int64), np.array(shape, np.int64), gap, frame, np.array(position).reshape(-1, 3),
        np.zeros(len(point), np.int64),
    )  # fmt: skip
    return replace(detected(model, state, 0.0), contacts=planted)


def detected(model: Contacts, state: State, margin: float) -> Found:
    (found,) = model.detect(state, model.places.read(state), [margin])
    return found


def rows_of(model: Contacts, found: Found, v_prescribed: np.ndarray | None = None) -> ContactRows:
    return model.rows([found], np.zeros(50) if v_prescribed is None else v_prescribed, DT, stay=True)


def problem_of(model: Contacts, found: Found, v_prescribed: np.ndarray | None = None) -> ContactProblem:
    return rows_of(model, found, v_prescribed).problem(model.system, DT)


def carried(model: Contacts, state: State, part: int, node: int, position: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Where a material point of a part (a node of the soft body) goes when the whole system moves by ``step``."""
    system, owner = model.system, model.parts[part]
    if owner.body < 0:
        return position
    body, q = system.bodies[owner.body], state.q[system.q_slices[owner.body]]
    own = step[system.v_slices[owner.body]]
    if isinstance(body, CorotationalBody):
        return q.reshape(-1, 3)[node] + own.reshape(-1, 3)[node]
    (R_old, c_old), (R, c) = body.link_pose(q, owner.link), body.link_pose(moved_pose(q, own), owner.link)
    return c + R @ R_old.T @ (position - c_old)


def relative_velocity(model: Contacts, found: Found, state: State, v: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Velocity of the point's side relative to the shape's side in each contact frame, by central differences."""
    c, out = found.contacts, []
    first = points_of(model, BALL)[0]
    for m in range(len(c)):
        a, b, node = family(model).point_part[c.point[m]], family(model).shape_part[c.shape[m]], c.point[m] - first
        ends = [
            carried(model, state, a, node, c.position[m], s * v) - carried(model, state, b, -1, c.position[m], s * v)
            for s in (h, -h)
        ]
        out.append(c.frame[m] @ (ends[0] - ends[1]) / (2 * h))
    return np.array(out)


def offsets(model: Contacts, found: Found) -> np.ndarray:
    """Normal part of phi by its formula."""
    gap = found.contacts.gap
    back = np.maximum(model.rules.correction * gap / DT, -model.rules.max_correction)
    return np.where(gap >= 0, gap / DT, back)


# ---------------------------------------------------------------------- rows


@pytest.mark.parametrize("pair", PAIRS)
def test_rows_are_the_relative_velocity(pair: tuple[int, int]) -> None:
    """J v against central differences of the motion of both material points, for random frames, positions and velocities."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model, state = make_contacts(rng)
        found = plant(model, state, rng, [pair])
        problem = problem_of(model, found)
        assert problem.n_contacts == 1 and problem.J.shape == (3, 50)
        for _ in range(3):
            v = rng.standard_normal(50)
            np.testing.assert_allclose((problem.J @ v).reshape(1, 3), relative_velocity(model, found, state, v), atol=2e-8)


def test_columns_are_sorted_and_only_of_the_two_bodies() -> None:
    """The nodalization walks the rows in order of columns."""
    rng = np.random.default_rng(4)
    model, state = make_contacts(rng)
    found = plant(model, state, rng, PAIRS)
    J = problem_of(model, found).J
    gripper = {BASE: range(42, 48), LEFT: range(42, 49), RIGHT: [*range(42, 48), 49], RIGID: range(6), FLOOR: []}
    for m, (a, b) in enumerate(PAIRS):
        own = list(gripper[a]) if a != BALL else []
        if a == BALL:
            node = found.contacts.point[m] - points_of(model, BALL)[0]
            own = list(range(6 + 3 * node, 9 + 3 * node))
        for row in range(3 * m, 3 * m + 3):
            assert J.indices[J.indptr[row] : J.indptr[row + 1]].tolist() == sorted([*own, *gripper[b]])


def test_each_contact_has_the_friction_of_its_surfaces() -> None:
    rng = np.random.default_rng(5)
    model, state = make_contacts(rng)
    found = plant(model, state, rng, [(BALL, FLOOR), (RIGID, RIGHT), (LEFT, RIGID)])
    problem = problem_of(model, found)
    # friction[i, j] = 5 (i + j), with steel 0, rubber 1, pad 2, wood 3
    assert problem.friction.tolist() == [20.0, 10.0, 0.0]


# ---------------------------------------------------------------------- offsets


@pytest.mark.parametrize(
    ("gap", "expected"),
    [(0.0, 0.0), (2e-3, 0.2), (-1e-3, -0.02), (-0.024, -0.48), (-0.025, -0.5), (-0.1, -0.5)],
)
def test_phi_is_the_gap_over_the_step_or_a_part_of_the_penetration(gap: float, expected: float) -> None:
    """Open: the whole gap may close. Penetration: a fifth goes back, at most 0.5 m/s."""
    rng = np.random.default_rng(6)
    model, state = make_contacts(rng, correction=0.2, max_correction=0.5)
    found = plant(model, state, rng, [(BALL, FLOOR)])
    found.contacts.gap[0] = gap
    np.testing.assert_allclose(problem_of(model, found).phi, [[expected, 0, 0]], atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_prescribed_motion_goes_into_phi(seed: int) -> None:
    """With the base of the gripper and two nodes driven, J v + phi is the relative velocity of the whole motion."""
    rng = np.random.default_rng(seed)
    model, state = make_contacts(rng)
    prescribed = np.zeros(50, bool)
    prescribed[42:48] = True  # the gripper's base; its fingers stay free
    prescribed[6:12] = True  # nodes 0 and 1
    prescribed[14] = True  # and one component of node 2
    model.system.set_prescribed(prescribed)
    found = plant(model, state, rng, PAIRS)
    found.contacts.point[3] = points_of(model, BALL)[2]
    found.contacts.position[3] = state.q[model.system.q_slices[1]].reshape(-1, 3)[2]
    given = rng.standard_normal(50)
    rows = rows_of(model, found, np.where(prescribed, given, 1e9))
    problem, kept = rows.problem(model.system, DT), rows.families[0].keep
    assert np.all(problem.J.toarray()[:, prescribed] == 0.0)
    assert not np.isin(problem.J.indices, np.flatnonzero(prescribed)).any()  # no column at all
    u = contact_velocity(problem, np.where(prescribed, 0.0, given))
    u[:, 0] -= offsets(model, found)[kept]
    expected = relative_velocity(model, found, state, given) + off_tangent(model, found, given[GRIPPER_V])
    np.testing.assert_allclose(u, expected[kept], atol=3e-8)


def off_tangent(model: Contacts, found: Found, v: np.ndarray) -> np.ndarray:
    """Velocity that what the driven gripper carries has in the step as a whole beyond that at its start, (nc, 3).

    Of a free rigid part that is its centre: its points turn with it as those of the gripper do.
    """
    c, out = found.contacts, np.zeros((len(found.contacts.gap), 3))
    turn = Rotation.from_rotvec(DT * v[3:6])
    for m in range(len(out)):
        sides = family(model).point_part[c.point[m]], family(model).shape_part[c.shape[m]]
        for part, other, sign in ((*sides, 1.0), (*sides[::-1], -1.0)):
            if part in (BASE, LEFT, RIGHT):
                place = found.placed.translation[other] if other == RIGID else c.position[m]
                lever = place - found.placed.origin[part]
                out[m] += sign * c.frame[m] @ ((turn.apply(lever) - lever) / DT - np.cross(v[3:6], lever))
    assert np.abs(out).max() > 1e-4
    return out


def test_a_contact_without_unknowns_is_dropped() -> None:
    """Driven against driven or against the floor: nothing could answer; the others keep their order."""
    rng = np.random.default_rng(7)
    model, state = make_contacts(rng)
    prescribed = np.zeros(50, bool)
    prescribed[42:48] = True
    prescribed[6:9] = True
    model.system.set_prescribed(prescribed)
    found = plant(model, state, rng, [(BASE, FLOOR), (RIGID, FLOOR), (BALL, BASE), (LEFT, FLOOR), (BALL, BASE)])
    contacts = found.contacts
    nodes = points_of(model, BALL)
    contacts.point[2], contacts.point[4] = nodes[0], nodes[5]
    rows = rows_of(model, found)
    problem = rows.problem(model.system, DT)
    assert rows.families[0].keep.tolist() == [1, 3, 4] and problem.n_contacts == 3
    assert problem.J.shape == (9, 50) and np.diff(problem.J.indptr).tolist() == [6] * 3 + [1] * 3 + [3] * 3
    np.testing.assert_allclose(problem.phi[:, 0], offsets(model, found)[[1, 3, 4]], rtol=1e-13)
    np.testing.assert_allclose(problem.J.toarray()[6:, 6 + 15 : 6 + 18], contacts.frame[4], rtol=1e-15)


def test_no_contacts_make_an_empty_problem() -> None:
    rng = np.random.default_rng(8)
    model, state = make_contacts(rng)
    found = plant(model, state, rng, [])
    rows = rows_of(model, found)
    problem = rows.problem(model.system, DT)
    assert problem.n_contacts == 0 and problem.J.shape == (0, 50) and problem.phi.shape == (0, 3)
    forces, memory = model.accept(rows, np.zeros((0, 3)), np.zeros((0, 3)))
    assert len(forces.contacts.force) == 0 and np.all(forces.generalized == 0.0)
    assert model.warm_start(rows, memory, np.zeros(50)).lam.shape == (0, 3)


# ---------------------------------------------------------------------- with real detection


def near_state(model: Contacts, rng: np.random.Generator) -> State:
    """Sphere and soft block just above the floor, a finger beside the block."""
    system = model.system
    state = system.initial_state()
    shape = model.parts[RIGID].shapes[0]
    rotation, _ = system.bodies[0].link_pose(state.q[system.q_slices[0]], 0)
    state.q[:3] = [0.5, 0.0, 0.031] - rotation @ shape[2]  # centre of the sphere 31 mm high
    soft = system.q_slices[1]
    state.q[soft] = (system.bodies[1].rest - system.bodies[1].rest.min(axis=0) + [0.0, 0.0, 0.0005]).ravel()
    state.q[soft] += 1e-4 * rng.standard_normal(36)
    body, q = system.bodies[2], state.q[system.q_slices[2]]
    R, centre = body.link_pose(q, LEFT - BASE)
    _, turn, place = model.parts[LEFT].shapes[0]
    # a point 1 mm outside the middle of the finger's long face shall lie on the upper node of the block
    node = state.q[soft].reshape(-1, 3)[np.argmax(state.q[soft].reshape(-1, 3)[:, 2])]
    q[:3] += node - (centre + R @ (place + turn @ [0.011, 0.002, 0.003]))
    return state


def test_the_gap_changes_as_the_normal_row_says() -> None:
    """d gap/dt by detecting again at moved states: soft nodes on floor and on a finger, a sphere and a box on the floor."""
    rng = np.random.default_rng(9)
    model, _ = make_contacts(rng)
    state = near_state(model, rng)
    found = detected(model, state, 0.003)
    c, points = found.contacts, family(model)
    pairs = set(zip(points.point_part[c.point], points.shape_part[c.shape], strict=True))
    assert {(BALL, FLOOR), (BALL, LEFT), (RIGID, FLOOR)} <= pairs
    problem = problem_of(model, found)
    keys = [tuple(k) for k in zip(c.point, c.shape, strict=True)]
    for _ in range(4):
        v, h = rng.standard_normal(50), 1e-6
        gaps = []
        for s in (h, -h):
            moved = state.copy()
            for body, q, own in zip(model.system.bodies, model.system.q_slices, model.system.v_slices, strict=True):
                step = s * v[own]
                moved.q[q] = state.q[q] + step if isinstance(body, CorotationalBody) else moved_pose(state.q[q], step)
            near = detected(model, moved, 0.004).contacts
            gaps.append({(p, k): g for p, k, g in zip(near.point, near.shape, near.gap, strict=True)})
        rate = [(gaps[0][k] - gaps[1][k]) / (2 * h) for k in keys]
        np.testing.assert_allclose((problem.J @ v)[::3], rate, atol=2e-8)


def test_max_penetration_and_poses_follow_the_state() -> None:
    rng = np.random.default_rng(10)
    model, _ = make_contacts(rng)
    state = near_state(model, rng)
    state.q[model.system.q_slices[2]][:3] = [0.0, 0.0, 5.0]  # the gripper away from everything
    assert model.max_penetration(state, model.places.read(state)) == 0.0
    state.q[2] -= 0.006
    placed = model.places.read(state)
    assert model.max_penetration(state, placed) == pytest.approx(0.005, abs=1e-12)
    rotation, position = placed.rotation[LEFT], placed.translation[LEFT]
    expected = model.system.bodies[2].link_pose(state.q[model.system.q_slices[2]], 1)
    assert np.array_equal(rotation, expected[0]) and np.array_equal(position, expected[1])


# ---------------------------------------------------------------------- forces


def accepted(seed: int) -> tuple[Contacts, State, ContactRows, np.ndarray, ContactForces]:
    rng = np.random.default_rng(seed)
    model, state = make_contacts(rng)
    rows = rows_of(model, plant(model, state, rng, PAIRS * 2))
    lam = rng.standard_normal((len(rows.phi), 3))
    return model, state, rows, lam, model.accept(rows, lam, np.zeros_like(lam))[0]


@pytest.mark.parametrize("seed", range(3))
def test_wrenches_are_plain_sums(seed: int) -> None:
    model, state, rows, lam, forces = accepted(seed)
    found, c = forces.contacts, rows.families[0].found.contacts
    wrench, size, nodes = np.zeros((6, 6)), np.zeros(6), np.zeros(50)
    references = [ORIGIN] * 6
    for k, part in enumerate(model.parts):
        if part.body < 0:
            continue
        body, q = model.system.bodies[part.body], state.q[model.system.q_slices[part.body]]
        if isinstance(body, CorotationalBody):
            references[k] = body.node_mass @ q.reshape(-1, 3) / body.node_mass.sum()
        else:
            references[k] = body.link_pose(q, part.link)[1]
    for m in range(len(c)):
        force = lam[m] @ c.frame[m]
        np.testing.assert_allclose(found.force[m], force, rtol=1e-13, atol=1e-14)
        for part, sign in ((family(model).point_part[c.point[m]], 1.0), (family(model).shape_part[c.shape[m]], -1.0)):
            lever = c.position[m] - references[part]
            wrench[part] += sign * np.concatenate([force, np.cross(lever, force)])
            size[part] += np.linalg.norm(force)
        if family(model).point_part[c.point[m]] == BALL:
            row = 6 + 3 * (c.point[m] - points_of(model, BALL)[0])
            nodes[row : row + 3] += force
    np.testing.assert_allclose(forces.wrench, wrench, atol=1e-12)
    np.testing.assert_allclose(forces.force_sum, size, rtol=1e-12)
    np.testing.assert_allclose(forces.node_force, nodes, atol=1e-13)
    np.testing.assert_allclose(forces.wrench[:, :3].sum(axis=0), 0.0, atol=1e-12)  # action and reaction
    assert np.array_equal(found.position, c.position) and np.array_equal(found.normal, c.frame[:, 0])
    # another solution of the same rows knows nothing of the first
    forces, _ = model.accept(rows, 2.0 * lam, np.zeros_like(lam))
    np.testing.assert_allclose(forces.wrench, 2.0 * wrench, atol=1e-11)
    np.testing.assert_allclose(forces.node_force, 2.0 * nodes, atol=1e-12)
    np.testing.assert_allclose(forces.force_sum, 2.0 * size, rtol=1e-12)


def test_forces_at_the_end_of_a_step_are_what_acts_there_beside_what_acts_at_its_start() -> None:
    model, state, rows, lam, _ = accepted(5)
    rng = np.random.default_rng(6)
    there = State(state.q + 1e-3 * rng.standard_normal(len(state.q)), state.v, 0.0)
    moved = model.moved(rows, there, np.zeros(model.system.n), 0.01, middle=False)
    assert moved.families is not rows.families
    u, late = np.zeros_like(lam), 0.3 * rng.standard_normal(lam.shape)
    forces, _ = model.accept(rows, lam, u, late=(moved, late))
    early, end = model.accept(rows, lam - late, u)[0], model.accept(moved, late, u)[0]
    shift = np.cross(moved.placed.reference - rows.placed.reference, end.wrench[:, :3])
    assert np.abs(shift).max() > 1e-6
    wrench = early.wrench + end.wrench + np.concatenate([np.zeros_like(shift), shift], axis=1)
    np.testing.assert_allclose(forces.wrench, wrench, atol=1e-13)
    for name in ("node_force", "generalized"):
        np.testing.assert_allclose(getattr(forces, name), getattr(early, name) + getattr(end, name), atol=1e-13)
    np.testing.assert_allclose(forces.contacts.force, early.contacts.force + end.contacts.force, atol=1e-14)
    size = np.zeros(len(model.parts))
    np.add.at(size, forces.contacts.part, np.linalg.norm(lam, axis=1)[:, None])
    np.testing.assert_allclose(forces.force_sum, size, rtol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_virtual_work(seed: int) -> None:
    """generalized_force . v = lam . J v for every v, and J^T lam component by component."""
    model, state, rows, lam, forces = accepted(seed)
    found = rows.families[0].found
    problem = rows.problem(model.system, DT)
    force = forces.generalized
    np.testing.assert_allclose(force, problem.J.T @ lam.ravel(), atol=1e-12)
    v = np.random.default_rng(seed + 100).standard_normal(50)
    assert force @ v == pytest.approx(lam.ravel() @ (problem.J @ v), rel=1e-11)
    assert force @ v == pytest.approx((lam * relative_velocity(model, found, state, v)).sum(), rel=1e-6)


def test_virtual_work_with_prescribed_rows() -> None:
    """The generalized force also holds the rows that J has lost: their work is that of the offset."""
    rng = np.random.default_rng(11)
    model, state = make_contacts(rng)
    prescribed = np.zeros(50, bool)
    prescribed[42:48] = True
    model.system.set_prescribed(prescribed)
    found = plant(model, state, rng, [p for p in PAIRS if p != (BASE, FLOOR)])
    v = rng.standard_normal(50)
    rows = rows_of(model, found, v)
    problem = rows.problem(model.system, DT)
    lam = rng.standard_normal((problem.n_contacts, 3))
    u = contact_velocity(problem, np.where(prescribed, 0.0, v))
    force = model.accept(rows, lam, u)[0].generalized
    u[:, 0] -= offsets(model, found)
    u -= off_tangent(model, found, v[GRIPPER_V])
    assert force @ v == pytest.approx((lam * u).sum(), rel=1e-11)
    np.testing.assert_allclose(force[~prescribed], (problem.J.T @ lam.ravel())[~prescribed], atol=1e-12)
    assert np.abs(force[prescribed]).min() > 1e-3


def test_states_of_contacts() -> None:
    """0 open, 1 stick, 2 slip: by a normal force above 1e-9 of the largest and a slip above 1e-6 m/s."""
    rng = np.random.default_rng(12)
    model, state = make_contacts(rng)
    found = plant(model, state, rng, [(BALL, FLOOR)] * 5)
    lam = np.array([[10.0, 0, 0], [10.0, 0, 0], [0.0, 0, 0], [5e-9, 0, 0], [2e-8, 1e-9, 0]])
    u = np.array([[0, 9e-7, 0], [0, 0, 1.1e-6], [1.0, 5.0, 0], [0, 1.0, 0], [0, 0, 0]])
    assert model.accept(rows_of(model, found), lam, u)[0].contacts.state.tolist() == [1, 2, 0, 0, 1]


# ---------------------------------------------------------------------- warm start


def test_forces_of_contacts_that_persist_keep_their_world_direction() -> None:
    """Recognised by point and shape in whatever order; turned into the new frames; new contacts start from zero."""
    rng = np.random.default_rng(13)
    model, state = make_contacts(rng)
    found = plant(model, state, rng, PAIRS)
    v_hat = rng.standard_normal(50)
    rows = rows_of(model, found)
    assert np.all(model.warm_start(rows, model.no_memory(), v_hat).lam == 0.0)  # nothing known yet
    old = found.contacts
    lam = rng.standard_normal((len(PAIRS), 3))
    world = np.einsum("mi,mij->mj", lam, old.frame)
    _, memory = model.accept(rows, lam, np.zeros_like(lam))
    order = rng.permutation(len(PAIRS))[:-3]  # three have gone, the rest is shuffled
    point, shape = old.point[order].copy(), old.shape[order].copy()
    fresh = points_of(model, BALL)
    fresh = int(next(p for p in fresh if p not in old.point[[k for k, pair in enumerate(PAIRS) if pair[0] == BALL]]))
    point[2], shape[2] = fresh, np.flatnonzero(family(model).shape_part == FLOOR)[0]  # a new contact
    frame = np.array([random_frame(rng) for _ in order])
    planted = contact.PointContacts(
        point, shape, np.zeros(len(order)), frame, rng.standard_normal((len(order), 3)), old.feature[order]
    )
    start = model.warm_start(rows_of(model, replace(found, contacts=planted)), memory, v_hat)
    assert np.array_equal(start.v, v_hat)
    expected = np.einsum("mij,mj->mi", frame, world[order])
    expected[2] = 0.0
    np.testing.assert_allclose(start.lam, expected, atol=1e-13)


def test_the_problem_shares_the_matrix_and_groups_of_the_system() -> None:
    """No copy is made: COND recognises the pattern of A by its arrays."""
    rng = np.random.default_rng(14)
    model, state = make_contacts(rng)
    system = model.system
    system.assemble(state, StepSettings(DT, 0.5, np.array([0, 0, -9.81])), np.zeros(50))
    found = plant(model, state, rng, PAIRS)
    problem = problem_of(model, found)
    assert problem.A is system.A and problem.b is system.b
    assert problem.groups is system.groups and problem.dt == DT
    assert [(g.start, g.stop) for g in problem.groups] == [(s.start, s.stop) for s in (RIGID_V, NODES_V, GRIPPER_V)]
