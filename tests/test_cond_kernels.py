"""Stage contact: each compiled kernel of COND against its slow twin on dense matrices.

Over 600 lines: one test a kernel, from the same random problems.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from slow_twins import (
    block_product,
    block_rows,
    body_between_nodes,
    closest_in_cone,
    contact_pass,
    dense_steps,
    frobenius_steps,
    natural_map_residual,
    nodal_jacobian,
    padded_matrix,
    project_strict,
    random_frame,
    random_spd,
)

from contact import (
    ContactProblem,
    Group,
    NodalContactProblem,
    WarmStart,
    make_problem,
    metrics as yardstick,
    metrics_kernels as formulas,
    nodalize,
)
from contact.metrics import natural_map_scale
from contact.problem import isotropic
from contact.solvers import cond_contact_kernels as on_contacts, cond_kernels as kernels, cond_system_kernels as system
from contact.solvers.block_rows import BlockPattern, apply_blocks
from contact.solvers.cond import Cond, CondOptions
from contact.solvers.cond_groups import Acceleration, ContactArrays, Guard, Iterates, Matrix, Rules, Steps


def two_bodies(rng: np.random.Generator, *, anisotropic: bool = False) -> ContactProblem:
    """Four soft nodes of two bodies, a gripper of 8 and a body of 6 coordinates: 26 rows, and contacts of every kind."""
    A = sp.block_diag([random_spd(rng, 6), random_spd(rng, 6), random_spd(rng, 8, 9.0), random_spd(rng, 6, 4.0)], format="csc")
    groups = (
        Group("a", 0, 6, "nodes"),
        Group("b", 6, 12, "nodes"),
        Group("gripper", 12, 20, "generalized"),
        Group("rigid", 20, 26, "generalized"),
    )
    J = np.zeros((21, 26))
    J[0:3, 0:3] = random_frame(rng)  # node 0 on an obstacle
    J[3:6, 0:3], J[3:6, 6:9] = random_frame(rng), random_frame(rng)  # node 0 on a node of b
    J[6:9, 3:6], J[6:9, 12:20] = random_frame(rng), rng.standard_normal((3, 8))  # node on gripper
    J[9:12, 12:20], J[9:12, 20:26] = rng.standard_normal((3, 8)), rng.standard_normal((3, 6))  # body on body
    J[12:15, 20:26] = rng.standard_normal((3, 6))  # body on obstacle
    J[15:18, 9:12], J[15:18, 20:26] = random_frame(rng), rng.standard_normal((3, 6))
    # contact 6 touches nothing that moves
    phi = 0.3 * rng.standard_normal((7, 3))
    phi[6, 0] = abs(phi[6, 0])  # contact 6 touches nothing, so it must not approach
    friction = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 0.3])
    if anisotropic:
        friction = np.column_stack([friction, friction[[0, 2, 1, 3, 6, 4, 5]]])
    return make_problem(A, rng.standard_normal(26), J, phi, friction, dt=0.01, groups=groups)


@dataclass
class Case:
    """A nodalized problem with its kernels' arrays and its dense twins."""

    problem: ContactProblem
    nodal: NodalContactProblem
    matrix: Matrix
    A: np.ndarray
    J: np.ndarray
    rng: np.random.Generator

    @property
    def coupled(self) -> np.ndarray:
        """Contacts with a node that another one uses too."""
        touched = [{int(s) for s in pair if s >= 0} for pair in self.nodal.node]
        return np.array([any(t & o for k, o in enumerate(touched) if k != m) for m, t in enumerate(touched)])

    def contacts(self, regularization: float = 0.0) -> ContactArrays:
        """The arrays of the contacts, from the plain loops above."""
        problem, nodal = self.problem, self.nodal
        rho = natural_map_scale(problem, regularization)
        return ContactArrays(
            nodal.node, nodal.block, nodal.virtual_start, problem.phi, problem.coefficients, isotropic(problem).friction,
            problem.tangent_stretch, rho, self.coupled, bool(self.coupled.any()),
        )  # fmt: skip

    def gamma(self, w: np.ndarray) -> np.ndarray:
        return np.array([sum(w[s] for s in pair if s >= 0) for pair in self.nodal.node])


def make_case(seed: int, *, bodies: str = "many", with_multiplier: bool = False, anisotropic: bool = False) -> Case:
    rng = np.random.default_rng(seed)
    problem = two_bodies(rng, anisotropic=anisotropic) if bodies == "many" else body_between_nodes(rng, 6, 5)
    multiplier = np.zeros((problem.n_contacts, 3)) if with_multiplier else None
    nodal = nodalize(problem, multiplier=multiplier)
    padded = np.eye(nodal.virtual_start)
    padded[np.ix_(nodal.rows, nodal.rows)] = problem.A.toarray()
    matrix = Matrix(*block_rows(padded), nodal.virtual_start, nodal.ptr, nodal.dof, nodal.jac, nodal.gain)
    return Case(problem, nodal, matrix, padded_matrix(nodal), nodal_jacobian(nodal), rng)


CASES = [(seed, bodies) for seed in range(3) for bodies in ("many", "one")]


# ---------------------------------------------------------------------- A


def test_scatter_entries_by_hand() -> None:
    values = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 7.0])
    system.scatter_entries(np.array([10.0, 11.0, 12.0]), np.array([4, 0, 2], dtype=np.uint32), values)
    assert values.tolist() == [11, 0, 12, 1, 10, 7]


@pytest.mark.parametrize("empty_row", [False, True])
def test_apply_blocks_is_the_dense_product(empty_row: bool) -> None:
    """Whatever stands behind the last block; and rows behind those of the blocks are left alone."""
    rng = np.random.default_rng(11)
    dense = rng.standard_normal((15, 15)) * np.kron(rng.random((5, 5)) < 0.5, np.ones((3, 3)))
    if empty_row:
        dense[6:9] = 0.0
    ptr, col, values = block_rows(dense)
    x, y = rng.standard_normal(15), np.full(18, 7.0)
    apply_blocks(ptr, col, values, x, y)
    np.testing.assert_allclose(y[:15], dense @ x, rtol=1e-13, atol=1e-14)
    assert np.array_equal(y[:15], block_product(ptr, col, values, x))  # to the last bit: sums are never reordered
    assert np.all(y[15:] == 7.0)


@pytest.mark.parametrize("n", [9, 10, 11])
def test_the_block_pattern_holds_a(n: int) -> None:
    """Blocks gathered through the pattern are A, padded by ones on the diagonal; new values need no new pattern."""
    rng = np.random.default_rng(n)
    for drop in (0.0, 2.0):  # full, and with holes in the blocks
        dense = random_spd(rng, n)
        dense[np.abs(dense) < drop] = 0.0
        dense[3, 0] = 0.5  # a matrix that is not symmetric tells rows from columns
        A = sp.csc_matrix(dense)
        size = 3 * ((n + 2) // 3) + 3
        rows = np.sort(rng.permutation(size)[:n])  # padding anywhere
        pattern = BlockPattern(A, rows, size)
        for factor in (1.0, -3.0):
            A.data *= factor
            system.scatter_entries(A.data, pattern.places, pattern.values)
            blocks = pattern.values[:-1].reshape(-1, 3, 3).transpose(0, 2, 1)
            found = sp.bsr_matrix((blocks, pattern.col, pattern.ptr), shape=(size, size)).toarray()
            expected = np.eye(size)
            expected[np.ix_(rows, rows)] = A.toarray()
            assert np.array_equal(found, expected)
        other = sp.csc_matrix(np.where(np.eye(n, k=-1), 2.0, dense if drop else np.tril(dense)))
        assert pattern.matches(A) and pattern.matches(A.copy()) and not pattern.matches(other)


@pytest.mark.parametrize("seed", range(3))
def test_mark_coupled(seed: int) -> None:
    """Also a contact of a node with itself, contacts of one node only, and of none."""
    rng = np.random.default_rng(seed)
    node = 3 * rng.integers(-1, 12, (9, 2))
    node[node < 0] = -1
    node[0] = 33  # both sides on one node
    coupled = np.empty(9, dtype=np.bool_)
    on_contacts.mark_coupled(node, np.empty(36, dtype=np.int64), coupled)
    uses = [int((node == s).sum()) if s >= 0 else 0 for s in node.ravel()]
    assert coupled.tolist() == [max(uses[2 * m : 2 * m + 2]) > 1 for m in range(9)]
    assert coupled.any() and not coupled.all()


@pytest.mark.parametrize(("seed", "bodies"), CASES)
def test_apply_matrix(seed: int, bodies: str) -> None:
    case = make_case(seed, bodies=bodies)
    x, y = case.rng.standard_normal(case.nodal.size), np.full(case.nodal.size, np.nan)
    system.apply_matrix(case.matrix, x, y)
    np.testing.assert_allclose(y, case.A @ x, rtol=1e-11, atol=1e-12 * np.abs(case.A).max())


@pytest.mark.parametrize(("seed", "bodies"), CASES)
def test_extended_diagonal(seed: int, bodies: str) -> None:
    case = make_case(seed, bodies=bodies)
    diagonal = np.full(case.nodal.size, np.nan)
    of_bodies = np.ones(case.nodal.virtual_start)
    of_bodies[case.nodal.rows] = case.problem.diagonal
    system.extended_diagonal(case.matrix, of_bodies, diagonal)
    np.testing.assert_allclose(diagonal, np.diag(case.A), rtol=1e-13)


def test_spread_bodies_by_hand() -> None:
    """Row 1 of x is padding."""
    b, diagonal, inverse = np.full((3, 3), np.nan)
    square = kernels.spread_bodies(np.array([3.0, 5.0]), np.array([2.0, 4.0]), np.array([0, 2]), b, diagonal, inverse)
    assert (b.tolist(), diagonal.tolist(), inverse.tolist()) == ([3.0, 0.0, 5.0], [2.0, 1.0, 4.0], [0.5, 1.0, 0.25])
    assert square == 3.0 * 3.0 * 0.5 + 5.0 * 5.0 * 0.25


# ---------------------------------------------------------------------- W


def test_frobenius_steps_are_the_minimum() -> None:
    """The twin itself: no other step of a node gives a smaller ||I - W A||_F."""
    A = random_spd(np.random.default_rng(0), 9)
    w = frobenius_steps(A)
    best = np.linalg.norm(np.eye(9) - np.diag(w) @ A)
    for node in range(3):
        for factor in (0.99, 1.01):
            other = w.copy()
            other[3 * node : 3 * node + 3] *= factor
            assert np.linalg.norm(np.eye(9) - np.diag(other) @ A) > best


@pytest.mark.parametrize("bodies", ["many", "one"])
def test_node_steps(bodies: str) -> None:
    """Frobenius on block rows, with the square of the rows of A as it is and the trace of the extended diagonal."""
    case = make_case(4, bodies=bodies)
    nodal, start = case.nodal, case.nodal.virtual_start
    w = np.diag(case.A).copy()
    system.node_steps(case.matrix, 0, start // 3, w)
    np.testing.assert_allclose(w[start:], np.repeat(1.0 / nodal.gain, 3), rtol=1e-15)
    plain = np.eye(start)
    plain[np.ix_(nodal.rows, nodal.rows)] = case.problem.A.toarray()
    soft = case.problem.groups[-2].start if bodies == "many" else case.problem.groups[0].stop
    np.testing.assert_allclose(w[:soft], frobenius_steps(plain)[:soft], rtol=1e-13)  # no virtual node acts on these
    trace = np.diag(case.A)[:start].reshape(-1, 3).sum(axis=1)
    square = (plain.reshape(-1, 3, start) ** 2).sum(axis=(1, 2))
    np.testing.assert_allclose(w[:start], np.repeat(trace / square, 3), rtol=1e-13)


def test_node_steps_of_some_rows_leave_the_others() -> None:
    case = make_case(5, bodies="one")
    w = np.diag(case.A).copy()
    before = w.copy()
    system.node_steps(case.matrix._replace(gain=case.nodal.gain[:0]), 2, 4, w)
    assert np.array_equal(np.delete(w, slice(6, 12)), np.delete(before, slice(6, 12)))
    assert not np.isclose(w[6:12], before[6:12]).any()


def bodies_of(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, size and a random positive definite step block of each body; blocks are padded by numbers that must not count."""
    bodies = [g for g in case.problem.groups if g.kind == "generalized"]
    dense = case.rng.standard_normal((len(bodies), 8, 8))
    for k, g in enumerate(bodies):
        dense[k, : g.stop - g.start, : g.stop - g.start] = random_spd(case.rng, g.stop - g.start, 3.0)
    return np.array([g.start for g in bodies]), np.array([g.stop - g.start for g in bodies]), dense


@pytest.mark.parametrize("bodies", ["many", "one"])
def test_jacobi_steps(bodies: str) -> None:
    case = make_case(4, bodies=bodies)
    start = case.nodal.virtual_start
    w = np.diag(case.A).copy()
    system.jacobi_steps(case.matrix, w)
    mean = np.diag(case.A)[:start].reshape(-1, 3).mean(axis=1)
    np.testing.assert_allclose(w, np.repeat(1.0 / np.concatenate([mean, case.nodal.gain]), 3), rtol=1e-14)


@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize(("seed", "bodies"), CASES)
def test_apply_steps(seed: int, bodies: str, alpha: float) -> None:
    case = make_case(seed, bodies=bodies)
    w, blocks = case.rng.uniform(0.1, 1.0, case.nodal.size), bodies_of(case)
    b, Ax, x = case.rng.standard_normal((3, case.nodal.size))
    star = np.full(case.nodal.size, np.nan)
    system.apply_steps(Steps(w, *blocks, blocks[2]), alpha, b, Ax, x, star)
    np.testing.assert_allclose(star, x + alpha * dense_steps(w, *blocks) @ (b - Ax), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("bodies", ["many", "one"])
def test_barzilai_borwein_is_its_formula(bodies: str) -> None:
    """Both sizes in the inner product of W^-1; they lie between the inverse eigenvalues of W A."""
    case = make_case(7, bodies=bodies)
    w, (start, size, dense) = case.rng.uniform(0.1, 1.0, case.nodal.size), bodies_of(case)
    inverse = np.full_like(dense, 5.0)
    for g, n in enumerate(size):
        inverse[g, :n, :n] = np.linalg.inv(dense[g, :n, :n])
    W = dense_steps(w, start, size, dense)
    x, x_old = case.rng.standard_normal((2, case.nodal.size))
    s, z, step = x - x_old, case.A @ (x - x_old), np.empty(case.nodal.size)
    steps, zero = Steps(w, start, size, dense, inverse), np.zeros(len(x))
    found = system.barzilai_borwein(steps, x, x_old, case.A @ x, case.A @ x_old, zero, step)
    np.testing.assert_allclose(found, [s @ np.linalg.solve(W, s) / (s @ z), s @ z / (z @ W @ z)], rtol=1e-9)
    eigenvalues = np.linalg.eigvals(W @ case.A).real
    assert 1 / eigenvalues.max() < found[1] < found[0] < 1 / eigenvalues.min()
    still = system.barzilai_borwein(steps, x, x, case.A @ x, case.A @ x, zero, step)
    assert still == (0.0, 0.0)


@pytest.mark.parametrize("bodies", ["many", "one"])
def test_largest_eigenvalue(bodies: str) -> None:
    case = make_case(6, bodies=bodies)
    w, blocks = 1.0 / np.diag(case.A), bodies_of(case)
    W = dense_steps(w, *blocks)
    exact = np.linalg.eigvals(W @ case.A)
    assert np.abs(exact.imag).max() < 1e-10 * exact.real.max()
    x = case.rng.standard_normal(case.nodal.size)
    steps, scratch = Steps(w, *blocks, blocks[2]), np.full((3, len(x)), np.nan)
    estimates = [system.largest_eigenvalue(case.matrix, steps, x, 1, scratch) for _ in range(400)]
    assert estimates[-1] == pytest.approx(exact.real.max(), rel=1e-9)
    assert np.all(np.array(estimates) <= exact.real.max() * (1 + 1e-12))  # from below
    assert np.all(np.diff(estimates) >= -1e-12 * exact.real.max())  # and rising, so x was updated
    x /= np.linalg.norm(x)
    np.testing.assert_allclose(W @ (case.A @ x), exact.real.max() * x, atol=1e-4 * exact.real.max())


# ---------------------------------------------------------------------- contacts


@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("regularization", [0.0, 0.4])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("seed", "bodies"), CASES)
def test_contact_sweep(seed: int, bodies: str, first: bool, strict: bool, regularization: float, anisotropic: bool) -> None:
    case = make_case(seed, bodies=bodies, anisotropic=anisotropic)
    nodal, problem = case.nodal, case.problem
    w, alpha = np.repeat(case.rng.uniform(0.2, 1.0, nodal.size // 3), 3), 0.7
    lam, x = case.rng.standard_normal((problem.n_contacts, 3)), case.rng.standard_normal(nodal.size)
    coupled = case.coupled
    assert coupled.tolist() == ([True, True, *[False] * 5] if bodies == "many" else [False] * 5)
    begin = np.where(coupled[:, None] | (not first), lam, 0.0)  # the others are solved once, from zero
    friction = problem.coefficients if anisotropic else problem.friction
    expected_lam, expected_x, _ = contact_pass(
        case.J, case.gamma(alpha * w), alpha * w, problem.phi, friction, begin, x,
        project_strict if strict else closest_in_cone,
        range(problem.n_contacts) if first else np.flatnonzero(coupled), regularization,
    )  # fmt: skip
    before = case.rng.standard_normal(nodal.size)
    force = before.copy()
    change = on_contacts.contact_sweep(first, strict, regularization, case.contacts(), alpha, w, lam, x, force)
    np.testing.assert_allclose(lam, expected_lam, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(x, expected_x, rtol=1e-11, atol=1e-13)
    alone = np.where(coupled[:, None] | (not first), 0.0, lam)
    np.testing.assert_allclose(force, before + case.J.T @ alone.ravel(), rtol=1e-11, atol=1e-13)
    moved, largest = np.abs(lam - begin)[coupled].sum(axis=1), np.abs(lam)[coupled].sum(axis=1)
    expected_change = moved.max(initial=0.0) / max(largest.max(initial=0.0), 1e-300)
    assert change == pytest.approx(expected_change if largest.any() else moved.max(initial=0.0), rel=1e-12)
    if bodies == "many":
        assert change > 0.1  # something happened


def test_one_pass_solves_contacts_that_share_no_node() -> None:
    """With a diagonal surrogate the strict projection satisfies the Signorini-Coulomb law exactly (Prop. 4)."""
    case = make_case(7, bodies="one")
    nodal, problem = case.nodal, case.problem
    w = np.repeat(case.rng.uniform(0.2, 1.0, nodal.size // 3), 3)
    lam, x = case.rng.standard_normal((5, 3)), case.rng.standard_normal(nodal.size)
    start = x.copy()  # v* of the surrogate problem
    on_contacts.contact_sweep(True, True, 0.0, case.contacts(), 1.0, w, lam, x, np.zeros(nodal.size))
    surrogate = make_problem(np.diag(1.0 / w), start / w, case.J, problem.phi, problem.friction, dt=0.01)
    found = yardstick.measure(surrogate, x, lam)
    assert found.dynamics_residual < 1e-14 and found.contact_residual < 1e-14
    assert lam[:, 0].max() > 0.0


@pytest.mark.parametrize("anisotropic", [False, True])
def test_passes_over_a_shared_node_converge_to_the_law(anisotropic: bool) -> None:
    """A node in two contacts: lam is kept per contact, and repeated passes solve both."""
    case = make_case(8, anisotropic=anisotropic)
    nodal, problem = case.nodal, case.problem
    w = np.repeat(case.rng.uniform(0.2, 1.0, nodal.size // 3), 3)
    phi = problem.phi.copy()
    phi[:6, 0] -= 2.0  # press all that can be moved
    lam, start = np.zeros((7, 3)), case.rng.standard_normal(nodal.size)
    x = start.copy()
    contacts = case.contacts()._replace(phi=phi)
    changes = [
        on_contacts.contact_sweep(k == 0, True, 0.0, contacts, 1.0, w, lam, x, np.zeros(nodal.size)) for k in range(200)
    ]  # fmt: skip
    assert changes[1] > 1e-3 and changes[-1] < 1e-14
    surrogate = make_problem(np.diag(1.0 / w), start / w, case.J, phi, problem.friction, dt=0.01)
    # contact 6 touches nothing: the law cannot hold there
    touching = slice(0, 6)
    law = natural_map_residual(
        make_problem(surrogate.A, surrogate.b, case.J[:18], phi[touching], problem.friction[touching], dt=0.01), x, lam
    )
    assert law < 1e-13 and yardstick.dynamics_residual(surrogate, x, lam) < 1e-13
    assert np.all(lam[6] == 0.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1.0, -0.5])
def test_forces_of_contacts_that_share_a_node(alpha: float, weighted: bool) -> None:
    """J^T lam, and alpha W J^T lam, of the chosen contacts only, on nodes and on virtual nodes."""
    case = make_case(9)
    w = np.repeat(case.rng.uniform(0.2, 1.0, case.nodal.size // 3), 3)
    lam, y = case.rng.standard_normal((7, 3)), case.rng.standard_normal(case.nodal.size)
    for chosen in (case.coupled, np.ones(7, dtype=bool), ~case.coupled):
        contacts = case.contacts()._replace(coupled=chosen)
        added = case.J.T @ np.where(chosen[:, None], lam, 0.0).ravel()
        found = y.copy()
        if weighted:
            on_contacts.add_coupled_steps(contacts, alpha, w, lam, found)
            added = alpha * w * added
        else:
            on_contacts.add_coupled_forces(contacts, lam, found)
        np.testing.assert_allclose(found, y + added, rtol=1e-13, atol=1e-14)


# ---------------------------------------------------------------------- residuals


@pytest.mark.parametrize("rows", [1, 255, 256, 700])
def test_sums_over_rows(rows: int) -> None:
    """In lanes, whatever the number of rows."""
    rng = np.random.default_rng(rows)
    Av, b, force = rng.standard_normal((3, rows + 6))
    weight, sums = rng.uniform(0.5, 2.0, rows + 6), np.full((3, 256), np.nan)
    found = kernels.residual_sums(Av, b[:rows], force, weight, sums)
    r = (Av - b - force)[:rows]
    expected = [(weight[:rows] * part**2).sum() for part in (r, Av[:rows], force[:rows])]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert kernels.distance(Av, b, weight, sums) == pytest.approx(math.sqrt((weight * (Av - b) ** 2).sum()), rel=1e-13)


@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("regularization", [0.0, 0.3])
@pytest.mark.parametrize("force", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("seed", "bodies"), CASES)
def test_natural_residual_is_that_of_the_yardstick(
    seed: int, bodies: str, force: float, regularization: float, anisotropic: bool
) -> None:
    """With the velocities of the points on the bodies the kernel judges the original problem."""
    case = make_case(seed, bodies=bodies, anisotropic=anisotropic)
    problem, nodal = case.problem, case.nodal
    if bodies == "many":  # contact 6 touches nothing, its scale is arbitrary
        problem = make_problem(
            problem.A, problem.b, problem.J[:18], problem.phi[:6], problem.friction[:6], dt=0.01, groups=problem.groups
        )
        nodal = nodalize(problem)
    v, lam = case.rng.standard_normal(problem.n), force * case.rng.standard_normal((problem.n_contacts, 3))
    x = nodal.extend(v)
    points = x[nodal.virtual_start :].reshape(-1, 3).copy()
    x[nodal.virtual_start :] = 1e3 * case.rng.standard_normal(3 * nodal.n_virtual)  # their own velocities must not enter
    contacts = Case(problem, nodal, case.matrix, case.A, case.J, case.rng).contacts(regularization)
    for strict in (True, False):
        found = on_contacts.natural_residual(contacts, strict, regularization, lam, x, points)
        law = {"regularization": regularization, "relaxed": not strict}
        assert found == pytest.approx(yardstick.contact_residual(problem, v, lam, **law), rel=1e-11)
        twin = natural_map_residual(problem, v, lam, de_saxce=strict, regularization=regularization)
        assert found == pytest.approx(twin, rel=1e-10)


def test_natural_residual_of_nothing_is_zero() -> None:
    case = make_case(0, bodies="one")
    none = ContactArrays(*(part[:0] if isinstance(part, np.ndarray) else part for part in case.contacts()))
    found = on_contacts.natural_residual(none, True, 0.0, np.zeros((0, 3)), np.zeros(case.nodal.size), np.zeros((5, 3)))
    assert found == 0.0


def balance_arrays(problem: ContactProblem, v: np.ndarray, lam: np.ndarray) -> tuple:
    """Arguments of worst_balance with the scales of metrics.balance, by plain loops."""
    J = problem.J.toarray()
    least = np.zeros(len(problem.groups))
    for g, group in enumerate(problem.groups):
        rows = slice(group.start, group.stop)
        pressing = sum(np.linalg.norm(lam[m]) for m in range(problem.n_contacts) if J[3 * m : 3 * m + 3, rows].any())
        if group.kind == "nodes":
            weight = np.linalg.norm(problem.b[rows].reshape(-1, 3).sum(axis=0))
            least[g] = max(0.01 * pressing, weight, 1e-6 * np.abs(problem.b[rows]).sum())
    diagonal = problem.A.diagonal()
    terms = problem.A @ v, problem.b, J.T @ lam.ravel()
    return (
        np.array([g.start for g in problem.groups]),
        np.array([g.stop for g in problem.groups]),
        np.array([{"nodes": 3, "links": 6, "generalized": 0}[g.kind] for g in problem.groups]),
        least,
        diagonal,
        problem.b,
        terms[0],
        terms[2],
        max((t * t / diagonal).sum() for t in terms),
    )


@pytest.mark.parametrize("seed", range(6))
def test_worst_balance_is_that_of_the_yardstick(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = two_bodies(rng)
    v, lam = rng.standard_normal(26), 0.05 * rng.standard_normal((7, 3))  # A v is the largest term of the bodies
    found = formulas.worst_balance(*balance_arrays(problem, v, lam))
    assert found == pytest.approx(yardstick.balance(problem, v, lam), rel=1e-12)
    # and group by group, with every other group in balance
    r = problem.A @ v - problem.b - problem.J.T @ lam.ravel()
    for group in problem.groups:
        others = np.ones(26, bool)
        others[group.start : group.stop] = False
        alone = make_problem(
            problem.A, problem.b + np.where(others, r, 0.0), problem.J, problem.phi, problem.friction,
            dt=0.01, groups=problem.groups,
        )  # fmt: skip
        found = formulas.worst_balance(*balance_arrays(alone, v, lam))
        assert found == pytest.approx(yardstick.balance(alone, v, lam), rel=1e-11) and found > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_plain_residual_is_that_of_the_yardstick(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = two_bodies(rng)
    v, lam = rng.standard_normal(26), [0.05, 50.0, 0.0][seed] * rng.standard_normal((7, 3))
    found = kernels.plain_residual(problem.b, problem.A @ v, problem.J.T @ lam.ravel())
    assert found == pytest.approx(yardstick.dynamics_residual_plain(problem, v, lam), rel=1e-12) and found > 1e-3
    assert kernels.plain_residual(*np.zeros((3, 5))) == 0.0


def test_holding_forces_are_those_that_hold_each_group() -> None:
    """|sum of b - A x| over the nodes, at least 1e-3 of |sum of b| and 1e-6 of the sum of all |b| of all groups."""
    rng = np.random.default_rng(10)
    b, Ax = rng.standard_normal(24), rng.standard_normal(24)
    b[12:18] = np.tile([3.0, 4.0, 12.0], 2)
    b[18:] = [1e3, -1e3, 0.0, -1e3, 1e3, 0.0]
    Ax[12:] = b[12:]
    scales = np.full(3, np.nan)
    formulas.holding_forces(np.array([0, 12, 18]), np.array([12, 18, 24]), np.array([3, 3, 3]), b, Ax, scales)
    assert scales[0] == pytest.approx(np.linalg.norm((b - Ax)[:12].reshape(-1, 3).sum(axis=0)), rel=1e-13)
    assert scales[1:] == pytest.approx([1e-3 * 26.0, 1e-6 * np.abs(b).sum()], rel=1e-13)


# ---------------------------------------------------------------------- the iteration


def rules(**changes: object) -> Rules:
    plain = Rules(True, 0.0, True, False, 1.0, 3, 5, 100, True, 0.1, 5.0)
    return plain._replace(**changes)


def iterates(rng: np.random.Generator, size: int, contacts: int) -> Iterates:
    return Iterates(*rng.standard_normal((8, size)), *rng.standard_normal((2, contacts, 3)))


def test_extrapolation_is_equations_38_and_39() -> None:
    """nu is 1 up to the delay, then 2 / (2 - r^2), then 4 / (4 - r^2 nu); A of the iterate follows by linearity."""
    rng = np.random.default_rng(0)
    A, diagonal, relaxation = random_spd(rng, 12), rng.uniform(0.5, 2.0, 12), 0.8
    state, x_old, x = Acceleration(0, 1.0, 0.0, 0.0), *rng.standard_normal((2, 12))
    expected_nu, radius, last = 1.0, 0.0, 0.0
    for k in range(1, 7):
        star = rng.standard_normal(12)
        i = iterates(rng, 12, 0)._replace(
            x=x.copy(), x_old=x_old.copy(), Ax=A @ x, Ax_old=A @ x_old, star=star, A_star=A @ star
        )  # fmt: skip
        state = kernels.extrapolate(rules(relaxation=relaxation), False, diagonal, i, state, np.empty((3, 256)))
        expected_nu = 1.0 if k < 3 else 2 / (2 - radius**2) if k == 3 else 4 / (4 - radius**2 * expected_nu)
        new = expected_nu * (relaxation * (star - x) + x - x_old) + x_old
        np.testing.assert_allclose(i.x_old, new, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(i.Ax_old, A @ new, rtol=1e-10, atol=1e-12)
        length = math.sqrt((diagonal * (new - x) ** 2).sum())
        radius, last = min(length / last, 1.0) if last else 0.0, length
        assert state.since_start == k
        np.testing.assert_allclose((state.nu, state.radius, state.step_norm), (expected_nu, radius, last), rtol=1e-12)
        x_old, x = x, new
    for changed, plain in ((rules(chebyshev=False), False), (rules(), True)):
        assert kernels.extrapolate(changed, plain, diagonal, i, state, np.empty((3, 256))).nu == 1.0


def test_the_guard_by_hand() -> None:
    """Progress, a stall, a second one that halves the step, an adaptive iteration that is far off, an answer nearly there."""
    new = Guard(1.0, 10, 0, 0.5, 0, 20)
    assert kernels.guard(rules(), 1e-6, 109, 0.5, 0.95, new) == (False, new)
    assert kernels.guard(rules(), 1e-6, 110, 0.5, 0.85, new) == (False, new._replace(reference=0.85, window=110))
    back, after = kernels.guard(rules(), 1e-6, 110, 0.96, 0.95, new)
    assert back and after == Guard(0.95, 110, 1, 0.5, 110 + kernels.SAFE_STEPS, 40)
    plain = Guard(1.0, 10, kernels.MAX_RESTARTS + 1, 0.5, 0, 20)
    assert not kernels.guard(rules(), 1e-6, 34, 0.96, 0.95, plain)[0]
    back, after = kernels.guard(rules(), 1e-6, 35, 0.96, 0.95, plain)
    assert back and after.safe_step == 0.25 and after.restarts == kernels.MAX_RESTARTS + 2
    given_up = plain._replace(restarts=kernels.MAX_RESTARTS + kernels.MAX_HALVINGS + 1)
    assert not kernels.guard(rules(), 1e-6, 500, 0.96, 0.95, given_up)[0]
    assert kernels.guard(rules(adaptive=True), 1e-6, 20, 1.1 * kernels.RETREAT, 1.0, new) == (
        True, Guard(1.0, 20, 0, 0.5, 20 + kernels.SAFE_STEPS, 20),
    )  # fmt: skip
    assert not kernels.guard(rules(), 1e-6, 20, 1.1 * kernels.RETREAT, 1.0, new)[0]
    assert kernels.guard(rules(), 1e-6, 500, 1e-7, 1e-7, new) == (False, new._replace(window=500))


def test_virtual_nodes_hand_their_forces_to_their_bodies() -> None:
    """Eq. (18): J^T lam of the nodal problem becomes that of the original one; and the points' velocities are J_v v."""
    case = make_case(3, with_multiplier=True)
    nodal, n, rng = case.nodal, case.nodal.virtual_start, case.rng
    lam, x = rng.standard_normal((7, 3)), rng.standard_normal(nodal.size)
    multiplier, points, force = rng.standard_normal((nodal.n_virtual, 3)), np.empty((nodal.n_virtual, 3)), case.J.T @ lam.ravel()
    on_virtual, Ax = force[n:].copy(), case.A @ x
    found = kernels.hand_over(case.matrix, True, x, Ax, multiplier, force, points)
    np.testing.assert_allclose(force[nodal.rows], case.problem.J.T @ lam.ravel(), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(points.ravel(), nodal.extend(x[nodal.rows])[n:], rtol=1e-9, atol=1e-10)
    expected = np.linalg.norm(Ax[n:]) / np.linalg.norm(np.concatenate([multiplier.ravel(), on_virtual]))
    assert found == pytest.approx(expected, rel=1e-12)
    assert kernels.hand_over(case.matrix, False, x, Ax, multiplier, force, points) == 0.0
    np.testing.assert_array_equal(points.ravel(), x[n:])


def test_an_update_of_the_multipliers_keeps_the_residual() -> None:
    """What the virtual nodes carry moves from A x into the right-hand side, on both sides of the coupling."""
    case = make_case(4, with_multiplier=True)
    x, b, multiplier = *case.rng.standard_normal((2, case.nodal.size)), np.zeros((case.nodal.n_virtual, 3))
    Ax, before = case.A @ x, b.copy()
    kernels.update_multipliers(case.matrix, Ax, multiplier, b)
    carried = Ax[case.nodal.virtual_start :]
    np.testing.assert_allclose(multiplier.ravel(), carried, rtol=1e-14)
    np.testing.assert_allclose((b - before)[case.nodal.virtual_start :], -carried, rtol=1e-12)
    plain = np.zeros(case.nodal.size)
    system.add_virtual_nodes(case.matrix, x, plain)
    np.testing.assert_allclose(b - before, -plain, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"step": "barzilai-borwein"}, {"chebyshev": False}, {"patience": 20}])
def test_an_iteration_that_is_interrupted_goes_on_as_if_it_were_not(options: dict) -> None:
    """The judge may ask for more: the state that a call returns continues it, to the last bit."""
    problem = body_between_nodes(np.random.default_rng(1), 6, 5)
    solver = Cond(CondOptions(max_iterations=60, **options))
    start = WarmStart(np.zeros(problem.n), np.zeros((5, 3)))

    def run(limits: list[int]) -> tuple[np.ndarray, ...]:
        solver = Cond(CondOptions(max_iterations=60, **options))
        method = solver._prepare(nodalize(problem, multiplier=start.lam), start.v, start.lam.copy())
        rows = [row for limit in limits for row in method.until(1e-14, limit)]
        v, lam = method.answer()
        return v.copy(), lam.copy(), np.array(rows)

    assert solver.solve(problem).iterations == 60
    for one, other in zip(run([60]), run([1, 7, 30, 22]), strict=True):
        assert np.array_equal(one, other)
