"""Condensed contact problems group by group: `solve_split` beside the solver `exact`, `DenseSolver` and CANAL, and roots of W."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from piles import pile

import femsim as fs
from contact import split
from contact.masses import operator_root, split_operator
from contact.masses_kernels import BlockRows
from contact.metrics import contact_residual, natural_map
from contact.problem import force_scales, make_problem
from contact.solvers import make_solver
from contact.solvers.dense import DenseSolver
from contact.split import solve_split
from femsim.step.advance import take_step
from femsim.step.stepper import Stepper


def block_rows(W: np.ndarray) -> BlockRows:
    """Dense W by the blocks that are not zero."""
    blocks = sp.bsr_matrix(W, blocksize=(3, 3))
    return BlockRows(blocks.indptr.astype(np.int64), blocks.indices.astype(np.int64), blocks.data)


def test_groups_of_contacts_are_solved_as_the_whole_is() -> None:
    """Random contacts on lumped masses and on one another: `exact` on the whole problem, and each contact alone."""
    rng = np.random.default_rng(3)
    n, nc = 30, 14
    mass = rng.uniform(0.5, 2.0, n)
    J = np.zeros((3 * nc, n))
    for m in range(nc):
        nodes = [m % 10] if m < 6 else [6 + m % 4, 6 + (m + 1) % 4]
        frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        for sign, node in zip((1.0, -1.0), nodes, strict=False):
            J[3 * m : 3 * m + 3, 3 * node : 3 * node + 3] = sign * frame
    friction = rng.uniform(0.0, 0.8, nc)
    free, phi = rng.normal(size=n), 0.1 * rng.normal(size=(nc, 3))
    W = block_rows(J @ np.diag(1.0 / mass) @ J.T)
    forces = np.zeros((nc, 3))
    assert solve_split(W, (J @ free).reshape(nc, 3) + phi, friction, forces, 1e-11) < 1e-10
    problem = make_problem(sp.diags(mass), mass * free, sp.csr_matrix(J), phi, friction, dt=1.0)
    solution = make_solver("exact", tolerance=1e-10).solve(problem)
    v = free + (J.T @ forces.ravel()) / mass
    assert solution.converged and v == pytest.approx(solution.v, abs=1e-8) and (forces[:, 0] > 0).sum() > 3


@pytest.mark.parametrize("ways", [1, 2])
def test_a_contact_of_links_that_can_go_few_ways_holds_its_law(ways: int) -> None:
    """Contacts alone on bodies with one or two ways to go, whose blocks are singular: u = R (v + R^T lam) under the law."""
    rng, nc = np.random.default_rng(ways), 200
    R, v = rng.normal(size=(nc, 3, ways)), rng.normal(size=(nc, ways))
    friction, forces = rng.uniform(0.1, 1.0, nc), np.zeros((nc, 3))
    q = np.einsum("irc,ic->ir", R, v)
    solve_split(block_rows(sl.block_diag(*(r @ r.T for r in R))), q, friction, forces, 1e-11)
    u = q + np.einsum("irc,isc,is->ir", R, R, forces)
    assert (forces[:, 0] > 0.0).sum() > 50 and (np.abs(u[forces[:, 0] > 0.0, 0]) < 1e-9).all() and u[:, 0].min() > -1e-9
    tangential, slip = np.linalg.norm(forces[:, 1:], axis=1), np.linalg.norm(u[:, 1:], axis=1)
    assert (tangential <= friction * forces[:, 0] * (1.0 + 1e-9) + 1e-12).all()
    along = (forces[:, 1:] * u[:, 1:]).sum(axis=1)  # friction that slides is as large as it may be, against the slip
    assert np.abs(along + friction * forces[:, 0] * slip).max() < 1e-7


def test_a_contact_of_links_that_hardly_go_a_third_way_holds_its_law() -> None:
    """Blocks that are nearly singular, which a contact alone solves to 1e-8 only."""
    rng, nc = np.random.default_rng(5), 400
    R = rng.normal(size=(nc, 3, 3))
    R[:, :, 2] *= 10.0 ** rng.uniform(-7, -3, (nc, 1))
    friction, forces, W = rng.uniform(0.2, 3.0, nc), np.zeros((nc, 3)), R @ R.transpose(0, 2, 1)
    q = np.einsum("irc,ic->ir", R, rng.normal(size=(nc, 3)))
    assert solve_split(block_rows(sl.block_diag(*W)), q, friction, forces, 1e-11, 2000) < 1e-8
    u, scales = q + np.einsum("irc,ic->ir", W, forces), force_scales(np.diagonal(W, axis1=1, axis2=2))
    worst = max(natural_map(u[i : i + 1], forces[i : i + 1], scales[i : i + 1], friction[i : i + 1]) for i in range(nc))
    assert (forces[:, 0] > 0.0).sum() > 100 and worst < 1e-10


def test_a_finger_that_is_lifted_lets_go_though_friction_could_hold_it() -> None:
    """Four contacts of a link with one way to go, so steep that forces in the cone hold what lifts it: where they start."""
    way = np.tile([0.5, 0.9, 0.0], 4)
    W, q, held = block_rows(np.outer(way, way)), 0.1 * way.reshape(4, 3), np.tile([0.0625, -0.0625, 0.0], (4, 1))
    assert np.abs(np.outer(way, way) @ held.ravel() + q.ravel()).max() < 1e-15
    assert solve_split(W, q, np.ones(4), held, 1e-11) == 0.0 and not held.any()


def test_small_groups_have_the_bits_of_a_solver_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of 2 to 60 contacts, near their answers and far, some immovable: few of them need a solver of their own."""
    rng, made = np.random.default_rng(7), []

    def counted(*arguments: np.ndarray) -> DenseSolver:
        made.append(len(arguments[1]))
        return DenseSolver(*arguments)

    monkeypatch.setattr("contact.split.DenseSolver", counted)
    sizes = [2, 3, 4, 4, 5, 8, 12, 60] * 3
    parts, friction, count = [], rng.uniform(0.0, 0.9, sum(sizes)), sum(sizes)
    for size in sizes:
        J = rng.normal(size=(3 * size, 3 * size + 6))
        parts.append(0.05 * J @ J.T + 10.0 * np.eye(3 * size))
    parts[2][:, 3:6] = parts[2][3:6] = 0.0  # nothing moves its second contact
    W, q, start = block_rows(sl.block_diag(*parts)), rng.normal(size=(count, 3)), rng.normal(size=(count, 3))
    forces, worst, at = start.copy(), 0.0, 0
    found = solve_split(W, q, friction, forces, 1e-7)
    assert forces[:, 0].any() and 3 <= len(made) < len(sizes) and 60 in made and min(made) < 60
    for size, part in zip(sizes, parts, strict=True):
        own, lam = slice(at, at + size), start[at : at + size].ravel()
        solver = DenseSolver(np.ascontiguousarray(part.T), friction[own], force_scales(part.diagonal().reshape(-1, 3)))
        worst = max(worst, solver.solve(q[own].ravel(), lam, 1e-7, 20000).residual)
        assert lam.tobytes() == forces[own].tobytes()
        at += size
    assert found == worst
    # and from their answers
    again = forces.copy()
    assert solve_split(W, q, friction, again, 1e-7) == found and again.tobytes() == forces.tobytes()


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_many_contacts_of_few_bodies_are_solved_by_the_velocities_that_they_move(seed: int) -> None:
    """120 contacts of four dishes, whose forces are not unique: sweeps and proximal points leave 2e-6 to 1e-5 of them."""
    problem = pile(30, seed)
    half, nc = np.linalg.solve(problem.A.toarray(), problem.J.T.toarray()), problem.n_contacts
    W, q = problem.J @ half, (half.T @ problem.b).reshape(nc, 3) + problem.phi
    forces = np.zeros((nc, 3))
    assert solve_split(block_rows(W), q, problem.friction, forces, 1e-11, enough=1e-6) < 1e-8
    v = np.linalg.solve(problem.A.toarray(), problem.b + problem.J.T @ forces.ravel())
    assert contact_residual(problem, v, forces) < 1e-7


@pytest.mark.parametrize("held", [False, True])
def test_the_root_of_the_operator_gives_the_operator(held: bool) -> None:
    """R R^T = W of some contacts of a soft cube, two rigid boxes and a driven one, and R is sparse as J is."""
    scene = fs.Scene("root", dt=0.01)
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((0.04,) * 3, 2), fs.Elastic(1e5, 0.3, 1000.0), position=(0, 0, 0.02))
    for name, place in (("one", (0.2, 0, 0.02)), ("two", (0.2, 0, 0.06))):
        scene.add_rigid(name, fs.Box((0.03, 0.02, 0.02)), density=500.0, position=place)
    if held:
        scene.drive("two", fs.Motion([0.0, 1.0], [(0, 0, 0), (0, 0, -0.01)]))
    stepper = Stepper(scene, make_solver("auto"))
    start = stepper.state
    take_step(stepper)
    problem = stepper.problem
    assert problem is not None
    masses = stepper.system.mobility(start, stepper.state)
    contacts = np.arange(0, problem.n_contacts, 2)
    W, R = split_operator(masses, problem, contacts, 0.01), operator_root(masses, problem, contacts, 0.01)
    whole = sp.bsr_matrix((W.blocks, W.indices, W.indptr), shape=(R.shape[0],) * 2).toarray()
    np.testing.assert_allclose((R @ R.T).toarray(), whole, atol=1e-12 * np.abs(whole).max())
    assert R.nnz <= problem.J.nnz


@pytest.mark.parametrize("seed", [0, 3])
def test_many_contacts_have_no_sweeps_where_a_root_is_known(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = pile(40, seed)
    A, nc = problem.A.toarray(), problem.n_contacts
    R = sp.csr_matrix(problem.J @ sl.fractional_matrix_power(A, -0.5).real)
    q = (problem.J @ np.linalg.solve(A, problem.b)).reshape(nc, 3) + problem.phi
    monkeypatch.setattr(DenseSolver, "sweep", None)
    forces = np.zeros((nc, 3))
    W = block_rows((R @ R.T).toarray())
    assert solve_split(W, q, problem.friction, forces, 1e-11, enough=1e-6, root=lambda: R) < 1e-8
    assert (forces[:, 0] > 0.0).any()


def test_a_plate_that_lands_on_a_mat_is_solved_by_its_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """140 nodes under a plate, those of its rim by two contacts: proximal points took 14 s of such a step."""
    rng = np.random.default_rng(5)
    side, masses = 14, np.concatenate([np.full(3 * 140, 2e-4), np.full(3, 0.2), np.full(3, 1e-4)])
    places = np.array([(i / side - 0.5, j / 10 - 0.5, 0.0) for i in range(side) for j in range(10)]) * 0.06
    rim = np.flatnonzero(np.abs(places[:, 1]) > 0.02)
    J = np.zeros((3 * (140 + len(rim)), len(masses)))
    for k, node in enumerate([*range(140), *rim]):
        frame = np.eye(3)[[2, 0, 1]] if k < 140 else np.linalg.qr(rng.normal(size=(3, 3)))[0]
        frame *= np.sign(frame[0, 2])
        row = slice(3 * k, 3 * k + 3)
        J[row, 3 * node : 3 * node + 3], J[row, -6:-3] = -frame, frame
        J[row, -3:] = -frame @ np.cross(places[node], np.eye(3)).T
    R = sp.csr_matrix(J / np.sqrt(masses))
    q = (J @ np.concatenate([1e-3 * rng.normal(size=3 * 140), (0, 0, -0.05), rng.normal(size=3)])).reshape(-1, 3)
    assert 0.7 < R.shape[1] / R.shape[0] < 1.0
    monkeypatch.setattr(DenseSolver, "sweep", None)
    forces = np.zeros_like(q)
    assert (
        solve_split(block_rows((R @ R.T).toarray()), q, np.full(len(q), 0.5), forces, 1e-11, enough=1e-6, root=lambda: R) < 1e-8
    )
    assert (forces[:, 0] > 0.0).sum() > 50


def test_what_canal_leaves_is_not_swept_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a jam 20 000 sweeps took 3 s for each such problem, and left what 300 leave."""
    problem = pile(40, 0)
    A, nc = problem.A.toarray(), problem.n_contacts
    R = sp.csr_matrix(problem.J @ sl.fractional_matrix_power(A, -0.5).real)
    q = (problem.J @ np.linalg.solve(A, problem.b)).reshape(nc, 3) + problem.phi
    solve, told = DenseSolver.solve, []

    def counted(solver: DenseSolver, q: np.ndarray, lam: np.ndarray, tolerance: float, most: int, **options: float) -> Any:
        found = solve(solver, q, lam, tolerance, most, **options)
        told.append((most, found.sweeps))
        return found

    monkeypatch.setattr(DenseSolver, "solve", counted)
    monkeypatch.setattr(split, "Canal", lambda options: make_solver("canal", max_iterations=1, tolerance=1e-30))
    W, forces = block_rows((R @ R.T).toarray()), np.zeros((nc, 3))
    solve_split(W, q, problem.friction, forces, 1e-30, root=lambda: R)
    ((most, sweeps),) = told
    assert sweeps <= most == 300


@pytest.mark.parametrize("seed", range(5))
def test_the_end_of_a_step_never_adds_energy(seed: int) -> None:
    """Without friction, whatever the forces of the step were."""
    rng = np.random.default_rng(seed)
    n, nc = 12, 6
    mass, J = rng.uniform(0.1, 2.0, n), rng.normal(size=(3 * nc, n))
    W, before = J @ np.diag(1.0 / mass) @ J.T, np.zeros((nc, 3))
    before[:, 0] = rng.uniform(0.0, 3.0, nc)
    v = rng.normal(size=n)
    forces = before.copy()
    q = (J @ v - W @ before.ravel()).reshape(nc, 3)
    assert solve_split(block_rows(W), q, np.zeros(nc), forces, 1e-11) < 1e-9
    after = v + (J.T @ (forces - before).ravel()) / mass
    assert mass @ after**2 <= mass @ v**2 * (1 + 1e-9)
