"""Multigrid for the Newton systems of large soft bodies: its kernels against plain products, its answers against dense ones.

The kernels of ``multigrid_kernels`` have their twins here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from small_blocks import soft_block

from contact import ContactError, ContactProblem, Group, WarmStart, make_problem, make_solver, measure
from contact.solvers import auto as auto_module, multigrid, multigrid_kernels as kernels, primal_kernels
from contact.solvers.auto import Auto, AutoOptions
from contact.solvers.cond_newton import CondNewton, CondNewtonOptions
from contact.solvers.krylov import gmres
from contact.solvers.multigrid import MultigridWay
from contact.solvers.newton_ways import SparseWay, columns_of
from femsim import box_tets


def block(divisions: int = 6, young: float = 1e5, friction: float = 0.4) -> ContactProblem:
    """A soft block on a floor, with the places of its nodes."""
    points = box_tets((0.04, 0.04, 0.04), divisions).points
    return replace(soft_block(young, divisions, friction), points=points.ravel())


def with_plate(problem: ContactProblem) -> ContactProblem:
    """The same with a body of seven coordinates that is tied to a node, and another one that nothing touches."""
    n, rng = problem.n, np.random.default_rng(3)
    root = rng.standard_normal((7, 7))
    A = sp.lil_matrix(sp.block_diag([problem.A, root @ root.T + np.eye(7), 2.0 * sp.identity(2)]))
    A[n : n + 3, n - 3 : n] = A[n - 3 : n, n : n + 3] = 0.1 * np.eye(3)
    J = sp.hstack([problem.J, sp.csr_matrix((problem.J.shape[0], 9))])
    groups = (*problem.groups, Group("tied", n, n + 7, "generalized"), Group("free", n + 7, n + 9, "generalized"))
    b = np.concatenate([problem.b, rng.standard_normal(9)])
    assert problem.points is not None
    points = np.concatenate([problem.points, np.zeros(9)])
    return make_problem(A, b, J, problem.phi, problem.friction, dt=0.01, groups=groups, points=points)


def stiff_gains(nc: int, scale: float = 1.0) -> np.ndarray:
    """Gains of sticking, sliding and open contacts in turns, as Newton's method makes them: stiff where something is held."""
    gain = np.zeros((nc, 3, 3))
    gain[::3] = 1e5 * np.eye(3)
    gain[1::3] = np.diag([1e5, 0.3, 0.0])
    gain[1::3, 1, 0] = 0.4e5
    return scale * gain


def system_of(problem: ContactProblem, gain: np.ndarray) -> np.ndarray:
    J = problem.J.toarray()
    return np.asarray(problem.A.toarray() + J.T @ sl.block_diag(*gain) @ J)


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let multigrid take small problems."""
    monkeypatch.setattr(multigrid, "_LEAST_ROWS", 0)


def prepared(problem: ContactProblem, gain: np.ndarray) -> MultigridWay:
    way = MultigridWay(SparseWay())
    assert way.take(problem, columns_of(problem))
    assert way.factorize(gain)
    return way


# ---------------------------------------------------------------------- kernels


@pytest.mark.usefixtures("any_size")
def test_a_cycle_is_sweep_correction_sweep() -> None:
    problem = with_plate(block(3))
    gain = stiff_gains(problem.n_contacts)
    way = prepared(problem, gain)
    structure, modes = way._structure, way._modes
    assert structure is not None
    assert modes is not None
    rows, size = structure.rows, structure.size
    K = np.eye(size)
    K[np.ix_(rows, rows)] = system_of(problem, gain)
    P = np.zeros((size, 6 * structure.count))
    for i, a in enumerate(structure.aggregate):
        P[3 * i : 3 * i + 3, 6 * a : 6 * a + 6] = modes.shape[i]
    lower = np.kron(np.tril(np.ones((size // 3, size // 3))), np.ones((3, 3))) * K
    upper = np.kron(np.triu(np.ones((size // 3, size // 3))), np.ones((3, 3))) * K
    b = np.zeros(size)
    b[rows] = np.random.default_rng(1).standard_normal(problem.n)
    x, product, coarse = np.zeros(size), np.empty(size), np.empty((structure.count, 6))
    kernels.sweep_down(way._blocks, way._inverse, modes, b, x, coarse)
    plain = np.linalg.solve(lower, b)
    np.testing.assert_allclose(x, plain, rtol=0, atol=1e-9 * np.abs(plain).max())
    left = P.T @ (b - K @ plain)
    np.testing.assert_allclose(coarse.ravel(), left, rtol=0, atol=1e-8 * np.abs(left).max())
    correction = np.random.default_rng(2).standard_normal(coarse.shape) * np.abs(plain).max()
    kernels.sweep_up(way._blocks, way._inverse, modes, b, correction, x, product)
    plain = plain + P @ correction.ravel()
    plain += np.linalg.solve(upper, b - K @ plain)
    np.testing.assert_allclose(x, plain, rtol=0, atol=1e-9 * np.abs(plain).max())
    np.testing.assert_allclose(product, K @ plain, rtol=0, atol=1e-8 * np.abs(b).max() + 1e-9 * np.abs(K @ plain).max())


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("held", [False, True])
def test_a_rough_answer_leaves_no_net_force(held: bool) -> None:
    """Of GMRES to two digits: what is left sums to nothing over the rows that are free to move."""
    problem, gain = block(4), stiff_gains(block(4).n_contacts)
    free = np.ones(problem.n, dtype=bool)
    if held:  # two nodes and one direction of a third are prescribed
        free[[30, 31, 32, 60, 61, 62, 91]] = False
        keep = sp.diags(free.astype(float))
        A = keep @ problem.A @ keep + sp.diags((~free) * problem.diagonal)
        J = problem.J @ keep
        problem = replace(
            make_problem(A, problem.b, J, problem.phi, problem.friction, dt=problem.dt, groups=problem.groups),
            points=problem.points,
        )
    way, r = prepared(problem, gain), np.random.default_rng(5).standard_normal(problem.n)
    x = way.solve(r, 1e-2 * float(np.linalg.norm(problem.weight * r)))
    left = r - system_of(problem, gain) @ x
    assert np.abs(left[free]).max() > 1e-6
    sums = np.where(free, left, 0.0).reshape(-1, 3).sum(axis=0)
    assert np.abs(sums).max() < 1e-11 * np.abs(r).sum()
    assert not held or np.abs(left[~free]).max() < 1e-13


@pytest.mark.usefixtures("any_size")
def test_the_coarse_matrix_is_that_of_the_modes() -> None:
    problem = with_plate(block(4))
    gain = stiff_gains(problem.n_contacts)
    way = prepared(problem, gain)
    structure, modes = way._structure, way._modes
    assert structure is not None
    assert modes is not None
    P = np.zeros((structure.size, 6 * structure.count))
    for i, a in enumerate(structure.aggregate):
        P[3 * i : 3 * i + 3, 6 * a : 6 * a + 6] = modes.shape[i]
    held = gain.copy()
    held[:, 1:, 0] = 0.0  # what makes it symmetric
    own = np.eye(structure.size)
    own[np.ix_(structure.rows, structure.rows)] = system_of(problem, held)
    plain = P.T @ own @ P
    size = 6 * structure.count
    found = sp.csc_matrix((way._kept["coarse"], structure.indices, structure.indptr), shape=(size, size)).toarray()
    empty = np.flatnonzero(plain.diagonal() == 0.0)
    plain[empty, empty] = 1.0
    np.testing.assert_allclose(found, plain, rtol=0, atol=1e-8 * np.abs(plain).max())
    assert np.linalg.eigvalsh(found).min() > 0.0
    assert len(empty)  # of the body that nothing touches


@pytest.mark.usefixtures("any_size")
def test_modes_are_rigid_and_bend_to_what_contacts_hold() -> None:
    problem = block(6)
    nothing = np.zeros((problem.n_contacts, 3, 3))
    free = prepared(problem, nothing)
    structure = free._structure
    assert structure is not None
    assert free._modes is not None
    assert problem.points is not None
    points, omega = problem.points.reshape(-1, 3), np.array([0.3, -0.2, 0.5])
    for a in range(structure.count):
        own = np.flatnonzero(structure.aggregate == a)
        centre = points[own].mean(axis=0)
        moved = free._modes.shape[own] @ np.concatenate([[1.0, 2.0, 3.0], omega])
        rigid = np.array([1.0, 2.0, 3.0]) + np.cross(omega, points[own] - centre) / structure.box
        np.testing.assert_allclose(moved, rigid, atol=1e-12)
    held = prepared(problem, stiff_gains(problem.n_contacts))
    assert held._modes is not None
    assert structure.count > 1
    for m, point in enumerate(held._point):
        moved, before = held._modes.shape[point], free._modes.shape[point]
        normal, tangent = np.abs(moved[2]).max(), np.abs(moved[:2]).max()
        assert normal < (1e-2 if m % 3 < 2 else np.inf)
        assert tangent < 1e-2 if m % 3 == 0 else tangent > 0.1
        assert m % 3 < 2 or np.array_equal(moved, before)


def test_contacts_find_their_points() -> None:
    problem = with_plate(block(2))
    point_of = multigrid._points_of(problem.groups)
    assert (point_of >= 0).sum() == 81 and (point_of[81:] == -1).all()
    found = np.empty(problem.n_contacts, dtype=np.int64)
    assert kernels.find_points(problem.J.indptr, problem.J.indices, point_of, found)
    assert sorted(found) == sorted(set(problem.J.indices // 3))
    for column in (60, 82):  # a second point, a body that is none
        J = problem.J.tolil()
        J[0, column] = 1.0
        other = replace(problem, J=sp.csr_matrix(J))
        assert not kernels.find_points(other.J.indptr, other.J.indices, point_of, found)
        assert not multigrid.serves(other)
    kinds = np.empty(4, dtype=np.int8)
    kernels.find_kinds(np.concatenate([stiff_gains(3), 2.0 * stiff_gains(1)]), kinds)
    assert kinds.tolist() == [primal_kernels.STICK, primal_kernels.SLIDE, primal_kernels.OPEN, primal_kernels.STICK]


def test_gmres_reaches_what_is_asked_or_says_so() -> None:
    rng = np.random.default_rng(0)
    K = np.eye(60) + 0.3 * rng.standard_normal((60, 60)) / np.sqrt(60)
    weight, r = rng.uniform(0.1, 10.0, 60), rng.standard_normal(60)

    def both(b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = b / K.diagonal()
        return x, K @ x

    for left in (1e-2, 1e-8):
        found = gmres(both, weight, r, left, 40)
        assert found.x is not None
        assert 0.0 < np.linalg.norm(weight * (r - K @ found.x)) <= 1.0001 * left
    assert gmres(both, weight, r, 1e-2, 40).steps < found.steps < 30
    exact = gmres(both, weight, r, 0.0, 60).x
    assert exact is not None
    np.testing.assert_allclose(exact, np.linalg.solve(K, r), rtol=1e-7)
    assert gmres(both, weight, r, 1e-8, 5).x is None
    assert gmres(both, weight, r, 1e-8, 5).steps == 3  # the pace says so early
    assert gmres(both, weight, 0.0 * r, 0.0, 5) == (pytest.approx(0.0 * r), 0, 0.0)
    assert gmres(lambda b: (b * np.nan, b * np.nan), weight, r, 0.0, 5).x is None


# ---------------------------------------------------------------------- the way


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_it_solves_newton_systems_as_dense_factors_do(scale: float) -> None:
    problem = with_plate(block(5))
    problem = replace(problem, A=sp.csc_matrix(scale * problem.A))
    gain, r = stiff_gains(problem.n_contacts, scale), np.random.default_rng(6).standard_normal(problem.n)
    way = prepared(problem, gain)
    x, plain = way.solve(r), np.linalg.solve(system_of(problem, gain), r)
    assert way.name == "multigrid"
    np.testing.assert_allclose(x, plain, rtol=0, atol=1e-7 * np.abs(plain).max())
    assert 0 < way.steps < 40 and way.renewals == 1


@pytest.mark.usefixtures("any_size")
def test_steps_do_not_grow_with_the_body_and_the_modes_are_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def solved(divisions: int) -> MultigridWay:
        problem = block(divisions, 1e6)
        way = prepared(problem, stiff_gains(problem.n_contacts))
        way.solve(problem.b)
        return way

    small, large = solved(5), solved(15)
    assert small.name == large.name == "multigrid"
    assert 0 < large.steps <= 1.4 * small.steps + 2
    monkeypatch.setattr(kernels, "fill_modes", lambda *arguments: arguments[-1].shape.fill(0.0))
    without = solved(15)
    assert without.name == "sparse" or without.steps > 2 * large.steps


@pytest.mark.usefixtures("any_size")
def test_the_coarse_matrix_is_kept_until_it_does_not_serve() -> None:
    problem = block(5)
    gain = stiff_gains(problem.n_contacts)
    way = prepared(problem, gain)
    way.solve(problem.b)
    stiffer = replace(problem, A=sp.csc_matrix((1.05 * problem.A.data, problem.A.indices, problem.A.indptr), problem.A.shape))
    assert way.take(stiffer, columns_of(stiffer)) and way.factorize(1.1 * gain) and way.renewals == 1
    plain = np.linalg.solve(system_of(stiffer, 1.1 * gain), problem.b)
    found = way.solve(problem.b)
    np.testing.assert_allclose(found, plain, rtol=0, atol=1e-7 * np.abs(plain).max())
    assert way.factorize(np.zeros_like(gain)) and way.renewals == 2  # all open
    way._kept["pace"][:] = 1.0, 2.0  # slow
    assert way.factorize(np.zeros_like(gain)) and way.renewals == 3


def test_it_takes_only_what_it_is_made_for(any_size: None, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = block(3)
    assert multigrid.serves(problem)
    assert not multigrid.serves(replace(problem, points=None))
    links = replace(problem, groups=(Group("rope", 0, problem.n, "links"),))
    assert not multigrid.serves(links)
    monkeypatch.setattr(multigrid, "_MOST_OTHERS", 8)
    assert not multigrid.serves(with_plate(problem))
    monkeypatch.setattr(multigrid, "_LEAST_ROWS", problem.n + 1)
    assert not multigrid.serves(problem)
    with pytest.raises(ContactError, match="points"):
        make_problem(problem.A, problem.b, problem.J, problem.phi, 0.4, dt=0.01, points=np.zeros(3))


# ---------------------------------------------------------------------- the solver


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("friction", [0.0, 0.4, 2.5])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_newton_with_it_agrees_with_the_exact_solver(friction: float, unit: float) -> None:
    problem = block(6, 3e4, friction)
    scaled = replace(problem, A=sp.csc_matrix(unit * problem.A), b=unit * problem.b)
    ours = CondNewton(CondNewtonOptions(tolerance=1e-10)).solve(scaled)
    exact = make_solver("exact", tolerance=1e-11).solve(scaled)
    assert ours.converged and exact.converged, ours.message
    assert ours.details["way"] == "multigrid" and ours.details["krylov_steps"] > 0
    np.testing.assert_allclose(ours.v, exact.v, atol=1e-6 * np.abs(exact.v).max())
    found = measure(scaled, ours.v, ours.lam)
    assert max(found.dynamics_residual, found.contact_residual) <= 1e-10


@pytest.mark.parametrize(("changed", "steps"), [(1e-3, 1), (3e-3, 2), (1e-2, 2)])
def test_newton_steps_leave_about_what_the_law_leaves(
    changed: float, steps: int, any_size: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a start on the law: the last step is sharp at once, those before it are rough, for as many of them."""
    problem = block()
    first = CondNewton().solve(problem)
    other = replace(problem, b=problem.b * (1.0 + changed * np.random.default_rng(0).standard_normal(problem.n)))

    def solved() -> tuple[int, int]:
        found = CondNewton().solve(other, WarmStart(first.v, first.lam))
        assert found.converged and found.details["way"] == "multigrid" and found.details["cond_iterations"] == 0
        return found.details["newton_steps"], found.details["krylov_steps"]

    found = solved()
    monkeypatch.setattr("contact.solvers.cond_newton._FORCED", 1e-6)
    sharp = solved()
    assert found[0] == sharp[0] == steps
    assert found[1] == sharp[1] if steps == 1 else found[1] <= 0.85 * sharp[1]


@pytest.mark.usefixtures("any_size")
def test_redundant_contacts_and_none_at_all() -> None:
    problem = block(5)
    twice = make_problem(
        problem.A, problem.b, sp.vstack([problem.J, problem.J]), np.tile(problem.phi, (2, 1)), 0.4, dt=0.01,
        groups=problem.groups, points=problem.points,
    )  # fmt: skip
    ours, once = CondNewton().solve(twice), CondNewton().solve(problem)
    assert ours.converged and ours.details["way"] == "multigrid"
    np.testing.assert_allclose(ours.v, once.v, atol=1e-6 * np.abs(once.v).max())
    empty = sp.csr_matrix((0, problem.n))
    alone = make_problem(
        problem.A, problem.b, empty, np.zeros(0), 0.4, dt=0.01, groups=problem.groups, points=problem.points
    )  # fmt: skip
    free = CondNewton().solve(alone)
    assert free.converged
    np.testing.assert_allclose(free.v, sp.linalg.spsolve(problem.A, problem.b), atol=1e-7)


@pytest.mark.usefixtures("any_size")
def test_what_has_no_solution_stays_infeasible() -> None:
    """Two contacts push one node to and fro."""
    problem = block(4)
    J = sp.vstack([problem.J, -problem.J[:3]])
    phi = np.vstack([problem.phi, [[-0.5, 0.0, 0.0]]])
    phi[0, 0] = -0.5
    asked = make_problem(problem.A, problem.b, J, phi, 0.4, dt=0.01, groups=problem.groups, points=problem.points)
    assert CondNewton(CondNewtonOptions(max_iterations=200)).solve(asked).status == "infeasible"


@pytest.mark.usefixtures("any_size")
def test_direct_factors_go_on_where_its_steps_do_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = block(5)
    monkeypatch.setattr(multigrid, "_STEPS", 1)
    solution = CondNewton().solve(problem)
    assert solution.converged and solution.details["way"] == "sparse"


@pytest.mark.usefixtures("any_size")
def test_restored_it_gives_the_same_bits() -> None:
    problem = block(6)
    assert problem.points is not None
    solver, other = CondNewton(), CondNewton()
    first = solver.solve(problem)
    anew = replace(problem, b=problem.b * (1.0 + 0.05 * np.random.default_rng(0).standard_normal(problem.n)))
    moved = replace(anew, points=1.1 * problem.points)  # aggregates and modes are those of before
    other.recall(solver.memory())
    start = WarmStart(first.v, first.lam)
    one, two = solver.solve(moved, start), other.solve(moved, start)
    assert one.details["krylov_steps"] == two.details["krylov_steps"] > 0
    assert np.array_equal(one.v, two.v) and np.array_equal(one.lam, two.lam)
    assert not np.array_equal(CondNewton().solve(moved, start).v, one.v)


def test_auto_asks_for_it_where_a_body_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = block(11, 1e6)
    solver = Auto(AutoOptions(tolerance=1e-8))
    exact = make_solver("exact", tolerance=1e-9).solve(problem)
    start = WarmStart(exact.v, exact.lam)
    anew = replace(problem, b=problem.b * (1.0 + 0.05 * np.random.default_rng(0).standard_normal(problem.n)))
    monkeypatch.setattr(auto_module, "_SOLVE_SECOND", 1.0)  # the exact solver is dear, and so are direct Newton steps
    monkeypatch.setattr(auto_module, "_NEWTON_STEP_SECOND", 1e-5)
    assert solver.pick(anew, start) == "cond-newton"
    assert solver.pick(replace(anew, points=None), start) == "cond"
    solution = solver.solve(anew, start)
    assert solution.converged and solution.details["way"] == "multigrid" and solution.details["newton_steps"] <= 3
    solver._steps[:] = 100.0  # as learnt where fronts of contacts slide
    assert solver.pick(anew, start) == "cond"
    other = Auto(AutoOptions(tolerance=1e-8))
    other.recall(solver.memory())
    assert other.pick(anew, start) == "cond"
    for _ in range(80):  # what is not used is forgotten
        solver._learn(anew, "cond", make_solver("cond", tolerance=1e-3).solve(problem))
    assert solver._steps[2] < 5.0
