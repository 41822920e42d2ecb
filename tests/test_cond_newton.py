"""COND finished by Newton: its kernels against plain twins and finite differences, its ways against one another, its counts.

The kernels of ``primal_kernels`` and ``augmented_kernels`` have their twins here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from full_sets import full_set, needs_full_sets
from random_problems import random_global, random_local
from small_blocks import soft_block

from contact import ContactProblem, Group, WarmStart, make_problem, make_solver, measure, read_fclib
from contact.cone import project_cone
from contact.problem import isotropic, to_isotropic
from contact.solvers import alternating, augmented_kernels, banded_kernels, primal_kernels as kernels
from contact.solvers.augmented import AugmentedLagrangian
from contact.solvers.cond_newton import CondNewton, CondNewtonOptions
from contact.solvers.newton_ways import BandedWay, DenseWay, SparseWay
from contact.solvers.primal_newton import PrimalNewton


def random_contacts(seed: int, nc: int = 40) -> tuple[kernels.Law, np.ndarray, np.ndarray]:
    """Law, forces and velocities with open, sticking and sliding contacts among them."""
    rng = np.random.default_rng(seed)
    law = kernels.Law(rng.uniform(0.2, 0.8, nc), rng.uniform(0.5, 2.0, nc), 1e-2, 1.0)
    return law, rng.standard_normal((nc, 3)) + np.array([0.5, 0.0, 0.0]), 0.5 * rng.standard_normal((nc, 3))


def law_function(law: kernels.Law, m: int, lam: np.ndarray, u: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Alart and Curnier's function of one contact with a proximal shift, written plainly; zero where the law holds."""
    sigma, rho, mu = law.shift * law.compliance[m], 1.0 / (law.trial_scale * law.compliance[m]), law.friction[m]
    y = lam - rho * (u + sigma * (lam - centre))
    if y[0] <= 0.0:
        return np.asarray(lam)
    length = float(np.hypot(y[1], y[2]))
    bound = mu * y[0]
    tangent = y[1:] if length <= bound else bound * y[1:] / length
    return np.concatenate([lam[:1] - y[:1], lam[1:] - tangent])


def gained(law: kernels.Law, lam: np.ndarray, u: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, ...]:
    nc = len(lam)
    gain, change, state = np.empty((nc, 3, 3)), np.empty((nc, 3)), np.full(nc, -1, dtype=np.int8)
    changed = kernels.linearise(law, lam, u, centre, gain, change, state)
    assert changed == nc
    return gain, change, state


def test_a_step_solves_the_linearised_law() -> None:
    law, lam, u = random_contacts(0)
    centre = lam + 0.1 * np.random.default_rng(1).standard_normal(lam.shape)
    # pressed contacts do not approach: the bound of friction is then the same by the force and by the trial force
    standing = -law.shift * law.compliance * (lam[:, 0] - centre[:, 0])
    u[:, 0] = np.where(lam[:, 0] > 0, standing, u[:, 0])
    gain, change, state = gained(law, lam, u, centre)
    assert set(state) == {0, 1, 2}
    h = 1e-7
    for m in range(len(lam)):
        du = np.random.default_rng(m).standard_normal(3)
        dlam = change[m] - gain[m] @ du
        value = law_function(law, m, lam[m], u[m], centre[m])
        ahead, behind = (law_function(law, m, lam[m] + s * h * dlam, u[m] + s * h * du, centre[m]) for s in (1, -1))
        np.testing.assert_allclose(value + (ahead - behind) / (2 * h), 0.0, atol=2e-5 * (1 + np.abs(dlam).max()))


def test_without_a_centre_of_its_own_it_is_the_step_of_the_chain() -> None:
    law, lam, u = random_contacts(2)
    gain, change, _ = gained(law, lam, u, lam)
    nc = len(lam)
    nothing = np.zeros(nc, np.int64), np.zeros((nc, 3, 6)), np.zeros((nc, 3))
    contacts = banded_kernels.LinkContacts(*nothing, law.friction, law.compliance)
    rules = banded_kernels.ProximalRules(law.shift, law.trial_scale)
    work = banded_kernels.NewtonWork(*(np.zeros((1, 6)),) * 5, np.empty((nc, 3, 3)), np.empty((nc, 3)))
    for m in range(nc):
        banded_kernels.linearise(contacts, m, rules, lam, u, work)
    np.testing.assert_allclose(work.gain, gain, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(work.change, change, rtol=1e-12, atol=1e-12)


def rods(links: int = 40, seed: int = 0) -> ContactProblem:
    """A chain of links on a floor."""
    rng = np.random.default_rng(seed)
    n = 6 * links
    A = sp.block_diag([np.eye(6) + (lambda G: G @ G.T)(rng.standard_normal((6, 6))) for _ in range(links)], format="lil")
    for i in range(links - 1):
        B = 0.2 * rng.standard_normal((6, 6))
        A[6 * i : 6 * i + 6, 6 * i + 6 : 6 * i + 12], A[6 * i + 6 : 6 * i + 12, 6 * i : 6 * i + 6] = B, B.T
    A += 2.0 * sp.identity(n)
    J = np.zeros((3 * links, n))
    for i in range(links):
        J[3 * i : 3 * i + 3, 6 * i : 6 * i + 6] = np.hstack([np.eye(3)[[2, 0, 1]], 0.1 * rng.standard_normal((3, 3))])
    b = rng.standard_normal(n) - np.tile([0, 0, 1.0, 0, 0, 0], links)
    return make_problem(A, b, J, np.zeros(links), 0.4, dt=0.01, groups=(Group("rod", 0, n, "links"),))


def random_gains(nc: int, seed: int) -> np.ndarray:
    """Positive gains of sticking and sliding contacts, and none of open ones."""
    rng = np.random.default_rng(seed)
    gain = np.array([np.diag(rng.uniform(0.1, 30.0, 3)) for _ in range(nc)])
    gain[:, 1, 0] = 0.3 * gain[:, 0, 0]
    gain[::3] = 0.0
    return gain


def taken(way: BandedWay | DenseWay | SparseWay, problem: ContactProblem) -> bool:
    ptr = np.empty(problem.n_contacts + 1, dtype=np.int64)
    J = problem.J
    kernels.count_columns(J.indptr, J.indices, problem.n, ptr)
    columns = kernels.Columns(ptr, np.empty(ptr[-1], dtype=np.int32), np.empty((ptr[-1], 3)))
    kernels.fill_columns(J.indptr, J.indices, J.data, problem.n, *columns)
    for m in range(problem.n_contacts):
        part = slice(ptr[m], ptr[m + 1])
        np.testing.assert_array_equal(J[3 * m : 3 * m + 3].toarray()[:, columns.col[part]], columns.jac[part].T)
    return way.take(problem, columns)


@pytest.mark.parametrize("backend", ["auto", "superlu"])
@pytest.mark.parametrize("make", [rods, lambda: isotropic(random_global(3))])
def test_all_ways_solve_the_same_system(backend: str, make: object) -> None:
    problem = make()  # type: ignore[operator]
    gain, r = random_gains(problem.n_contacts, 5), np.random.default_rng(6).standard_normal(problem.n)
    J = problem.J.toarray()
    system = problem.A.toarray() + J.T @ sp.block_diag(list(gain)).toarray() @ J
    right = np.linalg.solve(system, r)
    ways = [DenseWay(), SparseWay(backend)] + ([BandedWay()] if problem.groups[0].kind == "links" else [])  # type: ignore[arg-type]
    for way in ways:
        assert taken(way, problem) or way.name == "dense"
        if way.name == "dense" and problem.n > 150:
            continue
        assert way.factorize(gain)
        np.testing.assert_allclose(way.solve(r), right, rtol=0, atol=1e-9 * np.abs(right).max())


def test_old_factors_with_krylov_steps_solve_the_new_system() -> None:
    problem, way = rods(), SparseWay()
    gain, r = random_gains(problem.n_contacts, 5), np.ones(problem.n)
    assert taken(way, problem) and way.factorize(gain)
    way.solve(r)
    assert (way.factorizations, way.krylov_steps) == (1, 0)
    gain *= 1.1
    assert way.factorize(gain)
    x = way.solve(r)
    assert way.factorizations == 1 and 0 < way.krylov_steps <= 10
    J = problem.J.toarray()
    system = problem.A.toarray() + J.T @ sp.block_diag(list(gain)).toarray() @ J
    assert np.linalg.norm(system @ x - r) <= 1e-7 * np.linalg.norm(r)
    gain[::3] = 2.0 * np.eye(3)  # a third of all contacts closes
    assert way.factorize(gain) and way.factorizations == 2


def test_rows_of_the_law_are_those_of_the_plain_twin() -> None:
    """D (dlam + gain moved) with D written as a matrix, and back again."""
    law, lam, u = random_contacts(3)
    gain, _, _ = gained(law, lam, u, lam)
    rho, rng = 1.0 / law.compliance, np.random.default_rng(4)
    dlam, moved = rng.standard_normal((2, len(lam), 3))
    rows, back = np.empty_like(lam), np.empty_like(lam)
    kernels.law_rows(rho, gain, dlam, moved, rows)
    for m, G in enumerate(gain):
        along, across = 1.0 / (rho[m] + G[0, 0]), 1.0 / (rho[m] + G[1, 1] + G[2, 2])
        share = G[1:, 0] / G[0, 0] if G[0, 0] > 0 else np.zeros(2)
        D = np.array([[along, 0, 0], [-across * share[0], across, 0], [-across * share[1], 0, across]])
        np.testing.assert_allclose(rows[m], D @ (dlam[m] + G @ moved[m]), rtol=1e-9, atol=1e-12)
    kernels.from_law_rows(rho, gain, rows, back)
    np.testing.assert_allclose(back, dlam + np.einsum("mij,mj->mi", gain, moved), rtol=1e-9, atol=1e-9)


def with_moved_contacts(problem: ContactProblem, angle: float) -> ContactProblem:
    """The same contacts with their frames turned, and a part of each force on another node."""
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    turned = sp.block_diag([turn] * problem.n_contacts) @ problem.J
    J = sp.csr_matrix((1 - angle) * turned + angle * turned[:, np.roll(np.arange(problem.n), 300)])
    return make_problem(problem.A, problem.b, J, problem.phi, problem.friction, dt=problem.dt, groups=problem.groups)


@pytest.mark.parametrize("backend", ["auto", "superlu"])
def test_factors_serve_on_where_contacts_have_moved(backend: str) -> None:
    """A step with older factors is that with its own, though the new matrix has entries for which the old one has no place."""
    first = isotropic(soft_block(1e5))
    moved = with_moved_contacts(first, 0.005)
    found = make_solver("cond-newton").solve(first)
    states, steps = [], []
    for problems in ((first, moved), (moved,)):
        newton = PrimalNewton(backend)  # type: ignore[arg-type]
        for problem in problems:
            newton.take(problem)
            v, lam = found.v.copy(), found.lam.copy()
            assert newton.way.name == "sparse" and newton.step(newton.law(1e-5, 1.0), v, lam, lam.copy(), 1e-8)
        states.append(newton.state)
        steps.append((v - found.v, lam - found.lam))
        assert newton.sparse.factorizations == 1
        assert (newton.sparse.krylov_steps > 0) == (len(problems) == 2)
    assert set(states[0]) == {1, 2}
    for one, other in zip(*steps, strict=True):
        assert np.linalg.norm(other) > 1e-3 * np.linalg.norm(found.v)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * np.abs(other).max())


def test_factors_do_not_serve_where_many_contacts_change_or_another_problem_comes() -> None:
    first, other, newton = isotropic(soft_block(1e5)), isotropic(soft_block(1e5, 5)), PrimalNewton()
    lam = make_solver("cond-newton").solve(first).lam
    cases = (first, lam, 1), (first, -lam, 2), (other, np.ones((other.n_contacts, 3)), 3)
    for problem, start, factorizations in cases:
        newton.take(problem)
        v, lam = np.zeros(problem.n), start.copy()
        assert newton.step(newton.law(1e-5, 1.0), v, lam, lam.copy(), 1e-10)
        assert newton.sparse.factorizations == factorizations


def test_the_slope_of_the_projection_is_its_derivative() -> None:
    rng = np.random.default_rng(7)
    nc = 60
    trial, mu, beta = rng.standard_normal((nc, 3)), rng.uniform(0.1, 1.0, nc), rng.uniform(0.5, 2.0, nc)
    force, gain, state = np.empty((nc, 3)), np.empty((nc, 3, 3)), np.full(nc, -1, dtype=np.int8)
    augmented_kernels.project_with_slope(trial, mu, beta, force, gain, state)
    assert set(state) == {0, 1, 2}
    h = 1e-6
    for m in range(nc):
        assert tuple(force[m]) == project_cone(*trial[m], mu[m])
        for c in range(3):
            e = h * np.eye(3)[c]
            slope = (np.array(project_cone(*(trial[m] + e), mu[m])) - project_cone(*(trial[m] - e), mu[m])) / (2 * h)
            np.testing.assert_allclose(gain[m, :, c], beta[m] * slope, atol=1e-6 * beta[m])
        values = np.linalg.eigvalsh(gain[m] / beta[m])
        assert values.min() >= -1e-12 and values.max() <= 1 + 1e-12


def test_the_exact_step_is_where_the_convex_function_is_smallest() -> None:
    rng = np.random.default_rng(8)
    nc = 30
    trial, moved = rng.standard_normal((nc, 3)), rng.standard_normal((nc, 3))
    mu, beta = np.full(nc, 0.5), rng.uniform(0.5, 2.0, nc)

    def function(alpha: float) -> float:
        forces = np.array([project_cone(*t, 0.5) for t in trial - alpha * beta[:, None] * moved])
        return float(-40.0 * alpha + 0.5 * alpha**2 * 0.7 + (np.square(forces).sum(axis=1) / (2 * beta)).sum())

    alpha, count = augmented_kernels.exact_step(trial, moved, mu, beta, -40.0, 0.7, 1e-10)
    assert count < 30 and alpha > 0
    assert all(function(alpha) <= function(alpha + d) for d in (-1e-3, 1e-3, -0.1, 0.1))


def test_the_augmented_lagrangian_alone_solves_a_problem() -> None:
    problem = isotropic(random_global(4))
    newton = PrimalNewton()
    newton.take(problem)
    outer = AugmentedLagrangian(newton, np.zeros(problem.n), np.zeros((problem.n_contacts, 3)))
    worst = 1.0
    for _ in range(60):
        outer.advance(worst)
        found = measure(problem, outer.v, outer.lam)
        worst = max(found.dynamics_residual, found.contact_residual)
        if worst <= 1e-9:
            break
    assert worst <= 1e-9
    exact = make_solver("exact", tolerance=1e-10).solve(problem)
    np.testing.assert_allclose(outer.v, exact.v, atol=1e-7 * np.abs(exact.v).max())


@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_the_exact_solver_in_few_iterations(seed: int, anisotropic: bool) -> None:
    problem = random_global(seed, anisotropic=anisotropic)
    ours, exact = make_solver("cond-newton", tolerance=1e-10).solve(problem), make_solver("exact", tolerance=1e-11).solve(problem)
    assert ours.converged and exact.converged, ours.message
    np.testing.assert_allclose(ours.v, exact.v, atol=1e-7 * np.abs(exact.v).max())
    counts = ours.details
    assert ours.iterations == counts["cond_iterations"] + counts["newton_steps"] <= 60
    assert sum(counts["states"]) == problem.n_contacts


def test_a_rod_takes_the_banded_way_and_a_warm_start_saves_newton_steps() -> None:
    problem, solver = rods(), make_solver("cond-newton")
    cold = solver.solve(problem)
    warm = solver.solve(problem, WarmStart(cold.v, cold.lam))
    assert cold.converged and warm.converged
    assert cold.details["way"] == "banded"
    assert warm.details["newton_steps"] < cold.details["newton_steps"]


def test_a_local_problem_is_solved_by_way_of_an_equivalent_one() -> None:
    problem = random_local(np.random.default_rng(0), 8, rank=12)
    solver = make_solver("cond-newton")
    solution = solver.solve_local(problem)  # type: ignore[attr-defined]
    assert solution.converged and solution.details["way"] == "dense"


def test_what_it_remembers_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternating, "serves", lambda problem: False)  # whose memory is tested with them

    def case(k: int) -> ContactProblem:
        first = rods(60)
        coupled = make_problem(
            first.A, first.b + 0.02 * k * np.sin(np.arange(first.n)), first.J, first.phi, first.friction, dt=first.dt,
            groups=(Group("soft", 0, first.n, "nodes"),),
        )  # fmt: skip
        return coupled

    old = make_solver("cond-newton")
    found = old.solve(case(0))
    assert found.details["way"] == "sparse"
    new = make_solver("cond-newton")
    new.recall(old.memory())  # type: ignore[attr-defined]
    start = WarmStart(found.v, found.lam)
    one, other = old.solve(case(1), start), new.solve(case(1), start)
    assert one.details["krylov_steps"] > 0  # the old factors served
    np.testing.assert_array_equal(one.v, other.v)
    np.testing.assert_array_equal(one.lam, other.lam)


def test_forces_are_cut_at_the_cone() -> None:
    rng = np.random.default_rng(0)
    friction, lam = rng.uniform(0.0, 1.0, 60), rng.standard_normal((60, 3))
    lam[0] = 0.0
    kernels.into_cone(friction, lam, out := np.empty_like(lam))
    for mu, before, after in zip(friction, lam, out, strict=True):
        normal, length = max(before[0], 0.0), float(np.hypot(*before[1:]))
        share = min(1.0, mu * normal / length) if length else 1.0
        np.testing.assert_allclose(after, [normal, *(share * before[1:])], rtol=1e-15, atol=1e-300)


@pytest.mark.parametrize("seed", range(6))
def test_answers_are_within_the_cone(seed: int) -> None:
    """To rounding, though it is solved to no more than the tolerance."""
    problem = random_global(seed)
    found = make_solver("cond-newton", tolerance=1e-4).solve(problem)
    lam = to_isotropic(problem, found.lam)
    assert found.converged and (np.hypot(lam[:, 1], lam[:, 2]) <= isotropic(problem).friction * lam[:, 0] * (1 + 1e-14)).all()


def test_a_start_that_is_nearly_right_goes_to_newton_at_once() -> None:
    problem = soft_block(1e5, 4)
    solver = CondNewton(CondNewtonOptions(tolerance=1e-10))
    before = solver.solve(problem)
    assert before.converged and before.details["cond_iterations"] >= 10
    start = WarmStart(before.v, before.lam)
    anew = replace(problem, b=problem.b * (1.0 + 0.02 * np.random.default_rng(0).standard_normal(problem.n)))
    found = solver.solve(anew, start)
    assert found.converged and found.details["cond_iterations"] == found.details["cycles"] == 0 < found.details["newton_steps"]
    np.testing.assert_allclose(
        found.lam, make_solver("exact", tolerance=1e-11).solve(anew).lam, atol=1e-8 * np.abs(found.lam).max()
    )
    wrong = solver.solve(anew, WarmStart(before.v, -before.lam))
    assert wrong.converged and wrong.details["cond_iterations"] > 0


def test_a_start_from_which_newton_leads_nowhere_is_left_to_cond(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = soft_block(1e5, 4)
    found = make_solver("cond-newton", tolerance=1e-10).solve(problem)
    anew = replace(problem, b=1.1 * problem.b)
    monkeypatch.setattr(PrimalNewton, "step", lambda *_: False)
    solution = make_solver("cond-newton").solve(anew, WarmStart(found.v, found.lam))
    assert solution.converged and solution.details["newton_steps"] == 0 < solution.details["cond_iterations"]


def test_phases_become_as_long_as_problems_need_and_shorter_again(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solver = soft_block(1e5, 4), CondNewton(phase=40)
    assert solver.solve(problem).details["cond_iterations"] >= 40 and solver.phase == 38
    short = CondNewton()
    assert short.solve(problem).details["cycles"] == 1 and short.phase == 10  # never shorter
    other = CondNewton()
    other.recall(solver.memory())
    assert other.phase == 38
    with monkeypatch.context() as patch:
        patch.setattr(PrimalNewton, "step", lambda *_: False)
        again = solver.solve(problem)
    assert again.details["cycles"] > 1 and solver.phase == min(again.details["cond_iterations"], 200) > 38
    start = WarmStart(again.v, again.lam)
    kept = solver.phase
    assert solver.solve(problem, start).details["cycles"] == 0 and solver.phase == kept


@needs_full_sets
@pytest.mark.parametrize(
    ("name", "most_cond", "most_newton"),
    [
        ("ball_E0.1_dt1e-2", 30, 6),
        ("ball_E1_dt1e-3", 30, 6),
        ("ball_E10_dt1e-2", 30, 7),
        ("mat_E0.5_dt1e-2_mu0.4", 60, 9),
        ("Spheres-i099-356-679", 60, 15),
        ("chain160_dt1e-3_mu0.3", 450, 250),
    ],
)
def test_problems_of_the_full_set_from_nothing(name: str, most_cond: int, most_newton: int) -> None:
    problem = read_fclib(full_set("fclib") / f"{name}.hdf5").problem
    assert isinstance(problem, ContactProblem)
    solution = make_solver("cond-newton").solve(problem)
    assert solution.converged, solution.message
    assert solution.details["cond_iterations"] <= most_cond
    assert solution.details["newton_steps"] <= most_newton
