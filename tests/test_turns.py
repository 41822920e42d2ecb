"""Factors that turn with the bodies: against dense algebra, exact where all is turned, of use for longer where it bends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.transform import Rotation
from slow_twins import nodes_on_floor
from small_blocks import soft_block
from small_matrices import BACKENDS

import femsim as fs
from contact import ContactProblem, WarmStart, make_problem, measure
from contact.delassus import DelassusOperator
from contact.solvers import Exact, ExactOptions
from contact.turns import Turned, Turns, triples, whole_triples
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.node_kernels import node_rotations
from femsim.step.stepper import Stepper
from femsim.step.system import System
from materials import Elastic
from meshes.generate import box_tets


def random_turns(rng: np.random.Generator, rows: np.ndarray) -> Turns:
    return Turns(rows, Rotation.random(len(rows), rng).as_matrix())


def block_diagonal(before: Turns, now: Turns, n: int) -> np.ndarray:
    out = np.eye(n)
    for row, old, new in zip(now.rows, before.rotation, now.rotation, strict=True):
        out[row : row + 3, row : row + 3] = new @ old.T
    return out


def turned(problem: ContactProblem, R: np.ndarray, now: Turns) -> ContactProblem:
    """The same problem after a turn of its rows; its pattern is that of whole blocks."""
    A = sp.csc_matrix(R @ problem.A.toarray() @ R.T)
    A = sp.csc_matrix(0.5 * (A + A.T))
    made = make_problem(A, R @ problem.b, problem.J.toarray() @ R.T, problem.phi, problem.friction, dt=problem.dt)
    return replace(made, turns=now)


def full(problem: ContactProblem, turns: Turns) -> ContactProblem:
    """With every entry of A in its pattern, and turns."""
    n = problem.n
    A = problem.A.toarray()
    whole = sp.csc_matrix((A.T.ravel(), np.tile(np.arange(n), n), n * np.arange(n + 1)), shape=(n, n))
    return replace(problem, A=whole, turns=turns)


def test_kernels_are_products_with_a_block_diagonal_matrix() -> None:
    rng = np.random.default_rng(0)
    n, rows = 17, np.array([2, 8, 11])  # rows 0, 1, 5 to 7 and 14 to 16 do not turn
    before, now = random_turns(rng, rows), random_turns(rng, rows)
    R, since = block_diagonal(before, now, n), Turned(before, now, n)
    x = rng.standard_normal(n)
    np.testing.assert_allclose(since.forth(x), R @ x, atol=1e-14)
    np.testing.assert_allclose(since.back(x), R.T @ x, atol=1e-14)
    J = sp.random(9, n, 0.4, format="csr", random_state=rng)
    np.testing.assert_allclose(since.jacobian(J).toarray(), J.toarray() @ R, atol=1e-14)
    assert list(triples(now, n)) == [-1, -1, 0, 0, 0, -1, -1, -1, 1, 1, 1, 2, 2, 2, -1, -1, -1]
    assert list(whole_triples(np.array([0, 3, 9, 10, 16]), now, n)) == [0, 2, 3, 4, 8, 9, 10, 16]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kept", ["all contacts", "some", "none"])
def test_the_operator_of_a_turned_matrix_is_exact(backend: str, kept: str) -> None:
    """R A^-1 R^T is the inverse of R A R^T: nothing is left of how old the factors are."""
    rng = np.random.default_rng(1)
    problem = nodes_on_floor(rng, 20, 5)
    rows = 3 * np.arange(19)  # the last node does not turn
    before, now = random_turns(rng, rows), random_turns(rng, rows)
    problem, operator = full(problem, before), DelassusOperator(backend)  # type: ignore[arg-type]
    patch = {"all contacts": None, "some": np.unique(problem.J[:6].indices), "none": np.zeros(0, dtype=np.int64)}[kept]
    operator.factorize(problem, patch)
    R = block_diagonal(before, now, problem.n)
    later = full(turned(problem, R, now), now)
    assert operator.fits(later, later.J)
    inverse, J = np.linalg.inv(later.A.toarray()), later.J.toarray()
    b, lam = rng.standard_normal(problem.n), rng.standard_normal(len(J))
    np.testing.assert_allclose(operator.operator(later.J), J @ inverse @ J.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(operator.begin(b), J @ inverse @ b, rtol=0, atol=1e-12)
    np.testing.assert_allclose(operator.finish(lam), inverse @ (b + J.T @ lam), rtol=0, atol=1e-12)
    assert operator.fits(problem, problem.J)  # and back again
    np.testing.assert_allclose(
        operator.operator(problem.J), problem.J @ np.linalg.inv(problem.A.toarray()) @ problem.J.toarray().T, rtol=0, atol=1e-12
    )
    plain = replace(later, turns=None)  # what says nothing of turns is served by the factors as they are
    assert operator.fits(plain, plain.J)
    operator.operator(plain.J)
    np.testing.assert_allclose(operator.begin(b), J @ np.linalg.inv(problem.A.toarray()) @ b, rtol=0, atol=1e-12)


def test_a_problem_that_turns_as_a_whole_takes_as_many_iterations_as_one_that_does_not() -> None:
    rng = np.random.default_rng(2)
    problem = soft_block(1e5, 3)
    rows = np.arange(0, problem.n, 3)
    still = Turns(rows, np.tile(np.eye(3), (len(rows), 1, 1)))
    R = Rotation.random(rng=rng).as_matrix()
    now = Turns(rows, np.tile(R, (len(rows), 1, 1)))
    first = full(problem, still)
    later = full(turned(first, np.kron(np.eye(len(rows)), R), now), now)
    found = []
    for second in (first, later):
        solver = Exact()
        start = solver.solve(first)
        again = replace(second, b=1.1 * second.b)
        turn = np.eye(3) if second is first else R
        found.append(solver.solve(again, WarmStart((start.v.reshape(-1, 3) @ turn.T).ravel(), start.lam)))
        assert found[-1].converged and found[-1].details["factorizations"] == 0
    assert found[0].iterations == found[1].iterations
    np.testing.assert_allclose(found[1].lam, found[0].lam, atol=1e-7 * np.abs(found[0].lam).max())
    solver = Exact()
    start = solver.solve(first)
    unaware = solver.solve(replace(later, turns=None), WarmStart(start.v, start.lam))
    assert unaware.details["factorizations"] == 1  # so the test can fail


# ---------------------------------------------------------------------- bodies


SETTINGS = StepSettings(0.01, 1.0, np.zeros(3))


def bent(body: CorotationalBody, angle: float) -> np.ndarray:
    """Positions of a bar along z bent into an arc, its lower end clamped."""
    x, _, z = body.rest.T
    length = z.max() - z.min()
    turn = angle * (z - z.min()) / length
    radius = length / angle
    arc = np.column_stack([radius - (radius - x) * np.cos(turn), body.rest[:, 1], z.min() + (radius - x) * np.sin(turn)])
    return np.asarray(arc.ravel())


def matrix(body: CorotationalBody, q: np.ndarray) -> np.ndarray:
    indptr, indices = body.pattern()
    data, b, external = np.empty(len(indices)), np.empty(body.n_v), np.empty(body.n_v)
    body.assemble(q, np.zeros(body.n_v), 0.0, SETTINGS, data, b, external)
    return sp.csc_matrix((data, indices, indptr), shape=(body.n_v,) * 2).toarray()


@pytest.mark.parametrize(("degrees", "rotated_at_most", "old_at_least"), [(2.0, 0.1, 0.45), (10.0, 0.55, 4.0), (20.0, 1.3, 15.0)])
def test_turned_factors_of_a_bar_that_bends_contract(degrees: float, rotated_at_most: float, old_at_least: float) -> None:
    """Spectral radius of I - A~^-1 A with the factors of the straight bar, turned and as they are."""
    mesh = box_tets((0.01, 0.01, 0.06), (2, 2, 10))
    body = CorotationalBody("bar", mesh.points, mesh.tets, Elastic(1e5, 0.4, 1000.0), velocity=np.zeros(3))
    old = matrix(body, mesh.points.ravel())
    np.testing.assert_allclose(body.row_rotations(), np.tile(np.eye(3), (body.n_nodes, 1, 1)), atol=1e-12)
    new = matrix(body, bent(body, np.radians(degrees)))
    R = np.zeros_like(old)
    for k, turn in enumerate(body.row_rotations()):
        R[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = turn

    def radius(A: np.ndarray) -> float:
        return float(np.abs(1.0 - np.linalg.eigvals(np.linalg.solve(A, new)).real).max())

    assert radius(R @ old @ R.T) < rotated_at_most
    assert radius(old) > old_at_least


def test_rotations_of_nodes_are_means_of_quaternions_of_either_sign() -> None:
    rng = np.random.default_rng(3)
    elements = np.array([[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]])
    near = Rotation.random(rng=rng) * Rotation.from_rotvec(0.3 * rng.standard_normal((3, 3)))
    q = near.as_quat(scalar_first=True)
    q[1] *= -1.0
    found = np.empty((7, 3, 3))
    node_rotations(elements, q, found)
    for node in range(6):
        around = [k for k, nodes in enumerate(elements) if node in nodes]
        aligned = [q[k] * np.sign(q[k] @ q[around[0]]) for k in around]
        mean = Rotation.from_quat(np.mean(aligned, axis=0), scalar_first=True).as_matrix()
        np.testing.assert_allclose(found[node], mean, atol=1e-14)
    np.testing.assert_array_equal(found[6], np.eye(3))  # in no element
    node_rotations(np.array([[0, 1, 2, 3]] * 2), np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]]), found)
    np.testing.assert_allclose(found[0], Rotation.from_rotvec([np.pi / 2, 0, 0]).as_matrix(), atol=1e-14)


def swinging(law: fs.Law | None = None) -> fs.Scene:
    """A soft bar that falls about its held upper end onto a rigid box."""
    scene = fs.Scene("swinging", dt=0.01, duration=0.3, default_friction=0.5)
    scene.add_floor()
    rubber = fs.Elastic(1e5, 0.4, 1000.0, law=law) if law else fs.Elastic(1e5, 0.4, 1000.0)
    bar = scene.add_soft("bar", fs.box_tets((0.06, 0.01, 0.01), (12, 2, 2)), rubber, position=(0.0, 0.0, 0.03))
    scene.hold(bar, lambda x: x[:, 0] < -0.0299, fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0)] * 2))
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.005)), density=500.0, position=(0.02, 0.0, 0.005))
    return scene


def test_what_is_held_does_not_turn_and_rigid_bodies_say_nothing() -> None:
    scene = swinging()
    system = System(scene.bodies)
    held = np.zeros(system.n, dtype=np.bool_)
    held[4] = True  # one component of the second node
    system.set_prescribed(held)
    state = system.initial_state()
    turn = Rotation.from_rotvec([0.0, 0.0, 0.5]).as_matrix()
    nodes = system.v_slices[0].stop // 3
    state.q[: 3 * nodes] = (state.q[: 3 * nodes].reshape(-1, 3) @ turn.T).ravel()
    system.assemble(state, SETTINGS, np.zeros(system.n))
    turns = system.turns()
    assert turns is not None and list(turns.rows) == list(range(0, 3 * nodes, 3))
    np.testing.assert_array_equal(turns.rotation[1], np.eye(3))
    np.testing.assert_allclose(np.delete(turns.rotation, 1, axis=0), np.tile(turn, (nodes - 1, 1, 1)), atol=1e-9)
    # of a body of which nothing is held, bent or not, there is one rotation: its translations stay free of its stiffness
    system.set_prescribed(np.zeros(system.n, dtype=np.bool_))
    state.q[: 3 * nodes] += 0.001 * np.random.default_rng(5).standard_normal(3 * nodes)
    system.assemble(state, SETTINGS, np.zeros(system.n))
    turns = system.turns()
    assert turns is not None and (turns.rotation == turns.rotation[0]).all()
    assert np.linalg.det(turns.rotation[0]) == pytest.approx(1.0)
    np.testing.assert_allclose(turns.rotation[0], turn, atol=0.1)
    assert System(scene.bodies[1:]).turns() is None


@pytest.mark.parametrize("law", [None, fs.StableNeoHookean()])
def test_a_bar_that_swings_is_factorized_less_often_than_without_turns(
    law: fs.Law | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    whole = DelassusOperator._factorize

    def counted(self: DelassusOperator, *given: Any) -> None:
        made.append(1)
        whole(self, *given)

    monkeypatch.setattr(DelassusOperator, "_factorize", counted)

    def factorizations() -> int:
        stepper = Stepper(swinging(law), Exact(ExactOptions()))
        made.clear()
        for _ in range(20):
            report = stepper.step()
            assert report.solution.converged and stepper.problem is not None
            found = measure(stepper.problem, report.solution.v, report.solution.lam)
            assert max(found.dynamics_residual, found.contact_residual) <= 1e-8
        return len(made)

    turning = factorizations()
    monkeypatch.setattr(System, "turns", lambda _self: None)
    still = factorizations()
    assert 0 < turning < 0.6 * still


def test_turned_factors_are_remembered() -> None:
    """A solver that takes back what another remembers gives the same bits, in the next problem too."""
    rng = np.random.default_rng(4)
    problem = nodes_on_floor(rng, 20, 5)
    rows = 3 * np.arange(20)
    before = random_turns(rng, rows)
    problem = full(problem, before)
    now = Turns(rows, Rotation.from_rotvec(0.1 * rng.standard_normal((20, 3))).as_matrix() @ before.rotation)
    later = full(turned(problem, block_diagonal(before, now, problem.n), now), now)
    one, two = Exact(), Exact()
    one.solve(problem)
    two.recall(one.memory())
    found = [solver.solve(later) for solver in (one, two)]
    assert found[0].details["factorizations"] == 0
    assert np.array_equal(found[0].v, found[1].v) and np.array_equal(found[0].lam, found[1].lam)
    kept = {name: value for name, value in one.memory().items() if not name.startswith("turned")}
    two.recall(kept)
    assert "turned" not in two.memory()
