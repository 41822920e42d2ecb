"""The solver for chains: its kernels against dense algebra, its answers against the exact solver and hand-solvable cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from random_chains import chain

import femsim as fs
from contact import ContactError, ContactProblem, Group, WarmStart, make_problem, measure
from contact.metrics import law_arguments
from contact.metrics_kernels import law_errors
from contact.solvers import banded_kernels as kernels, make_solver
from contact.solvers.banded import Banded, BandedOptions
from femsim.step.advance import take_step
from femsim.step.stepper import Stepper

RNG_SEED = 11


def gathered(problem: ContactProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    n, nc = problem.n // 6, problem.n_contacts
    diagonal, upper = np.empty((n, 6, 6)), np.empty((n, 6, 6))
    link, jacobian = np.empty(nc, dtype=np.int64), np.empty((nc, 3, 6))
    place = np.empty((n, 2, 6, 6), dtype=np.int64)
    assert kernels.find_links(problem.A.indptr, problem.A.indices, place)
    kernels.gather_links(place, problem.A.data, diagonal, upper)
    assert kernels.gather_contacts(problem.J.indptr, problem.J.indices, problem.J.data, link, jacobian)
    return diagonal, upper, link, jacobian


def test_gathered_blocks_are_those_of_the_matrices() -> None:
    problem = chain(5, 7, np.random.default_rng(RNG_SEED))
    diagonal, upper, link, jacobian = gathered(problem)
    A, J = problem.A.toarray(), problem.J.toarray()
    for i in range(5):
        np.testing.assert_array_equal(diagonal[i], A[6 * i : 6 * i + 6, 6 * i : 6 * i + 6])
        right = A[6 * i : 6 * i + 6, 6 * i + 6 : 6 * i + 12]
        np.testing.assert_array_equal(upper[i], right if i < 4 else np.zeros((6, 6)))
    np.testing.assert_array_equal(link, np.arange(7) % 5)
    for m in range(7):
        np.testing.assert_array_equal(jacobian[m], J[3 * m : 3 * m + 3, 6 * link[m] : 6 * link[m] + 6])


@pytest.mark.parametrize("n", [1, 2, 7])
def test_tridiagonal_solve_against_numpy(n: int) -> None:
    """Diagonal blocks need not be symmetric, and one that needs pivoting is there."""
    rng = np.random.default_rng(RNG_SEED)
    diagonal, upper, x = (
        rng.standard_normal((n, 6, 6)) + 6 * np.eye(6),
        rng.standard_normal((n, 6, 6)),
        rng.standard_normal((n, 6)),
    )
    diagonal[0, 0, 0] = 0.0
    dense = np.zeros((6 * n, 6 * n))
    for i in range(n):
        dense[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = diagonal[i]
        if i + 1 < n:
            dense[6 * i : 6 * i + 6, 6 * i + 6 : 6 * i + 12] = upper[i]
            dense[6 * i + 6 : 6 * i + 12, 6 * i : 6 * i + 6] = upper[i].T
    expected = np.linalg.solve(dense, x.ravel())
    assert kernels.solve_tridiagonal(diagonal, np.empty((n, 6, 6)), upper, x)
    np.testing.assert_allclose(x.ravel(), expected, rtol=1e-9, atol=1e-12)


def test_singular_block_is_said() -> None:
    diagonal, x = np.zeros((2, 6, 6)), np.ones((2, 6))
    assert not kernels.solve_tridiagonal(diagonal, np.empty((2, 6, 6)), np.zeros((2, 6, 6)), x)


def test_what_decays_along_a_chain_ends_as_zero() -> None:
    """Weakly coupled ways of links: their entries would go through all numbers that take a processor long."""
    n = 60
    diagonal, upper, x = np.tile(np.eye(6), (n, 1, 1)), np.tile(0.1 * np.eye(6), (n, 1, 1)), np.ones((n, 6))
    diagonal[0, 0, 4] = diagonal[0, 4, 0] = 1e-250
    upper[-1] = 0.0
    right, whole = np.empty((n, 6, 6)), diagonal.copy()
    assert kernels.solve_tridiagonal(whole, right, upper, x)
    for blocks in (whole[1:], right):
        assert (np.abs(blocks[blocks != 0.0]) >= 1e-100).all()
    expected = np.linalg.solve(np.eye(n) + 0.1 * (np.eye(n, k=1) + np.eye(n, k=-1)), np.ones(n))
    np.testing.assert_allclose(x, np.repeat(expected[:, None], 6, axis=1), rtol=1e-13)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_residuals_that_newton_steps_see_are_those_of_the_yardstick(steps: int) -> None:
    problem = chain(8, 5, np.random.default_rng(RNG_SEED), mu=0.4)
    solution = make_solver("banded", max_iterations=steps).solve(problem)
    found = measure(problem, solution.v, solution.lam)
    history = solution.history
    assert len(history.contact) == steps and found.contact_residual > 1e-10
    assert history.dynamics[-1] == pytest.approx(found.dynamics_residual, rel=1e-6, abs=1e-15)
    assert history.contact[-1] == pytest.approx(found.contact_residual, rel=1e-9)


def slow_newton_step(
    problem: ContactProblem, v: np.ndarray, lam: np.ndarray, shift: float, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same step by one dense system in (dv, dlam), written from the formulas."""
    A, J, mu = problem.A.toarray(), problem.J.toarray(), problem.friction
    n, nc = problem.n, problem.n_contacts
    compliance = problem.compliance.sum(axis=1) / 3.0
    u = (J @ v).reshape(-1, 3) + problem.phi
    M, r = np.zeros((n + 3 * nc, n + 3 * nc)), np.zeros(n + 3 * nc)
    M[:n, :n], M[:n, n:], r[:n] = A, -J.T, problem.b + J.T @ lam.ravel() - A @ v
    for m in range(nc):
        rows, own = n + 3 * m + np.arange(3), np.eye(3)
        sigma, rho = shift * compliance[m], 1.0 / (scale * compliance[m])
        J_own = J[3 * m : 3 * m + 3]
        y = lam[m] - rho * u[m]
        if y[0] <= 0:
            M[rows[:, None], rows], r[rows] = own, -lam[m]
            continue
        length = np.linalg.norm(y[1:])
        M[rows[0], :n], M[rows[0], rows[0]], r[rows[0]] = J_own[0], sigma, -u[m, 0]
        if length <= mu[m] * y[0]:
            M[rows[1:], :n], r[rows[1:]] = J_own[1:], -u[m, 1:]
            M[rows[1], rows[1]] = M[rows[2], rows[2]] = sigma
            continue
        d = y[1:] / length
        T = mu[m] * y[0] / length * (np.eye(2) - np.outer(d, d))
        # d(lam_t) - mu d d(lam_n) - T (d(lam_t) - rho (J_t dv + sigma d(lam_t))) = mu lam_n d - lam_t
        M[rows[1:], :n] = rho * T @ J_own[1:]
        M[np.ix_(rows[1:], rows[1:])] = np.eye(2) - T * (1.0 - rho * sigma)
        M[rows[1:], rows[0]] = -mu[m] * d
        r[rows[1:]] = mu[m] * lam[m, 0] * d - lam[m, 1:]
    step = np.linalg.solve(M, r)
    return v + step[:n], lam + step[n:].reshape(-1, 3)


@pytest.mark.parametrize("shift", [1e-6, 0.1])
def test_newton_step_against_a_dense_one(shift: float) -> None:
    rng = np.random.default_rng(RNG_SEED)
    problem = chain(6, 9, rng, mu=0.4)
    diagonal, upper, link, jacobian = gathered(problem)
    v, lam = rng.standard_normal((6, 6)), rng.standard_normal((9, 3))
    lam[:, 0] = np.abs(lam[:, 0]) * np.array([1, 1, 0, 1, 1, 1, 0, 1, 1])
    expected_v, expected_lam = slow_newton_step(problem, v.ravel(), lam, shift, 10.0)
    compliance = problem.compliance.sum(axis=1) / 3.0
    blocks = kernels.Chain(diagonal, upper, problem.b.reshape(6, 6), problem.weight.reshape(6, 6))
    contacts = kernels.LinkContacts(link, jacobian, problem.phi, problem.friction, compliance)
    u, rest = np.empty((9, 3)), np.empty((6, 6))
    kernels.take_velocities(blocks, contacts, v, u, rest)
    np.testing.assert_allclose(rest.ravel(), problem.b - problem.A @ v.ravel(), atol=1e-12)
    np.testing.assert_allclose(u, (problem.J @ v.ravel()).reshape(-1, 3) + problem.phi, atol=1e-13)
    states = set()
    for m in range(9):
        y = lam[m] - u[m] / (10.0 * problem.compliance[m].sum() / 3.0)
        states.add("open" if y[0] <= 0 else "stick" if np.linalg.norm(y[1:]) <= 0.4 * y[0] else "slip")
    assert states == {"open", "stick", "slip"}
    work = kernels.NewtonWork(rest, *np.empty((2, 6, 6)), *np.empty((2, 6, 6, 6)), np.empty((9, 3, 3)), np.empty((9, 3)))
    rules = kernels.ProximalRules(shift, 10.0)
    assert kernels.newton_step(blocks, contacts, rules, v, lam, u, work)
    kernels.take_velocities(blocks, contacts, v, u, rest)
    scale = np.abs(expected_lam).max()
    np.testing.assert_allclose(v.ravel(), expected_v, atol=1e-8)
    np.testing.assert_allclose(lam, expected_lam, atol=1e-8 * scale)
    np.testing.assert_allclose(u, (problem.J @ v.ravel()).reshape(-1, 3) + problem.phi, atol=1e-12)
    np.testing.assert_allclose(rest.ravel(), problem.b - problem.A @ v.ravel(), atol=1e-12)


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0])
def test_same_answer_as_the_exact_solver(mu: float) -> None:
    rng = np.random.default_rng(RNG_SEED)
    solved = 0
    for _ in range(20):
        problem = chain(8, 5, rng, mu=mu)
        ours, exact = make_solver("banded").solve(problem), make_solver("exact", tolerance=1e-10).solve(problem)
        if not ours.converged:
            continue
        solved += 1
        metrics = measure(problem, ours.v, ours.lam)
        assert max(metrics.dynamics_residual, metrics.contact_residual) <= 1e-8
        np.testing.assert_allclose(ours.v, exact.v, atol=1e-6 * np.abs(exact.v).max())
        np.testing.assert_allclose(ours.lam, exact.lam, atol=1e-6 * np.abs(exact.lam).max())
    assert solved >= 18


def test_warm_start_of_the_solution_needs_one_step() -> None:
    problem = chain(8, 5, np.random.default_rng(RNG_SEED))
    first = make_solver("banded").solve(problem)
    again = make_solver("banded").solve(problem, WarmStart(first.v, first.lam))
    assert first.converged and again.converged and again.iterations == 1 < first.iterations


def test_no_contact_gives_the_free_velocity_and_several_rods_are_chains_of_their_own() -> None:
    rng = np.random.default_rng(RNG_SEED)
    one, two = chain(3, 0, rng), chain(4, 0, rng)
    A = sp.block_diag([one.A, two.A], format="csc")
    groups = (Group("a", 0, 18, "links"), Group("b", 18, 42, "links"))
    problem = make_problem(
        A, np.concatenate([one.b, two.b]), sp.csr_matrix((0, 42)), np.zeros((0, 3)), 0.3, dt=0.01, groups=groups
    )
    solution = make_solver("banded").solve(problem)
    assert solution.converged and solution.iterations == 1
    np.testing.assert_allclose(solution.v, np.linalg.solve(A.toarray(), problem.b), rtol=1e-10, atol=1e-12)


def test_two_coefficients_of_friction() -> None:
    problem = chain(6, 4, np.random.default_rng(RNG_SEED), mu=0.5)
    problem = replace(problem, friction=np.tile([0.6, 0.2], (4, 1)))
    ours, exact = make_solver("banded").solve(problem), make_solver("exact").solve(problem)
    assert ours.converged and measure(problem, ours.v, ours.lam).contact_residual <= 1e-8
    np.testing.assert_allclose(ours.lam, exact.lam, atol=1e-6 * np.abs(exact.lam).max())


def test_what_does_not_fit_is_refused_with_a_sentence() -> None:
    problem = chain(4, 3, np.random.default_rng(RNG_SEED))
    assert Banded().fits(problem)
    far = problem.A.tolil()
    far[0, 20] = far[20, 0] = 0.1
    across = problem.J.tolil()
    across[0, 6 * 3] = 0.2
    for other in (replace(problem, A=sp.csc_matrix(far)), replace(problem, J=sp.csr_matrix(across))):
        with pytest.raises(ContactError, match="block tridiagonal with 6x6 blocks and each contact act on one link"):
            make_solver("banded").solve(other)
        assert not Banded().fits(other)
    assert not Banded().fits(replace(problem, groups=(Group("soft", 0, problem.n, "nodes"),)))


def spread_plainly(
    chain_of: list[int], tangents: list[np.ndarray], bound: list[float], sticks: list[bool], force: list[np.ndarray]
) -> list[np.ndarray]:
    """Twin of :func:`kernels.spread` for contacts in the order of their links: tangential forces, (2,) each, afterwards."""
    n, force = len(bound), [f.copy() for f in force]
    too_much = [s and np.linalg.norm(f) > (1 + kernels.SLIDES) * b for s, f, b in zip(sticks, force, bound, strict=True)]
    held = list(sticks)  # those that stick still, too much or not
    excess = [np.zeros(3)] * n
    for i in range(n):
        if too_much[i]:
            size = np.linalg.norm(force[i])
            excess[i] = kernels.PASSED_ON * tangents[i].T @ (force[i] * (1 - bound[i] / size))
            force[i] = (1 + kernels.SLIDES) * force[i] * bound[i] / size

    def beside(i: int, j: int) -> bool:
        return 0 <= j < n and chain_of[i] == chain_of[j] and held[j]

    for side in (1, -1):
        going = np.zeros(3)
        order = list(range(n))[::side]
        for k, i in enumerate(order):
            if k and chain_of[i] != chain_of[order[k - 1]]:
                going = np.zeros(3)
            if held[i] and not too_much[i] and going.any():
                whole = force[i] + tangents[i] @ going
                size = np.linalg.norm(whole)
                going = np.zeros(3) if size <= bound[i] else tangents[i].T @ (whole * (1 - bound[i] / size))
                if size > bound[i]:
                    force[i], held[i] = (1 + kernels.SLIDES) * whole * bound[i] / size, False
            elif too_much[i] and beside(i, i + side):
                going = going + excess[i] * (0.5 if beside(i, i - side) else 1.0)
    return force


@pytest.mark.parametrize("seed", range(6))
def test_spread_against_a_plain_twin(seed: int) -> None:
    """Contacts of two chains in any order, some of which slide or are open, some of which hold several times too much."""
    rng = np.random.default_rng(seed)
    n, nc = 14, 20
    link, jacobian = rng.integers(n, size=nc), np.zeros((nc, 3, 6))
    jacobian[:, :, :3] = [np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(nc)]
    upper, chain_of = np.ones((n, 6, 6)), np.zeros(n, dtype=np.int64)
    upper[8] = upper[n - 1] = 0.0
    kernels.number_chains(upper, chain_of)
    assert chain_of.tolist() == [0] * 9 + [1] * 5
    lam, friction = rng.standard_normal((nc, 3)), rng.uniform(0.2, 0.8, nc)
    lam[:, 0] = rng.uniform(1.0, 2.0, nc)
    lam[:, 1:] *= np.where(rng.uniform(size=nc) < 0.2, 4.0, 0.1)[:, None]
    gain, sticks = np.zeros((nc, 3, 3)), rng.uniform(size=nc) < 0.8
    gain[sticks] = 1e6 * np.eye(3)
    gain[~sticks & (rng.uniform(size=nc) < 0.5)] = 1.0  # slides; the others are open
    order = np.argsort(link, kind="stable")
    work = kernels.SpreadWork(order, chain_of, np.empty(nc, dtype=np.int64), np.empty((nc, 3)), np.empty(3))
    contacts = kernels.LinkContacts(link, jacobian, np.zeros((nc, 3)), friction, np.ones(nc))
    wanted = spread_plainly(
        [int(chain_of[link[m]]) for m in order], [jacobian[m, 1:, :3] for m in order],
        [float(friction[m] * lam[m, 0]) for m in order], [bool(sticks[m]) for m in order], [lam[m, 1:] for m in order],
    )  # fmt: skip
    before = lam.copy()
    count = kernels.spread(contacts, gain, lam, work)
    assert lam[order, 1:] == pytest.approx(np.array(wanted), rel=1e-12) and (lam[:, 0] == before[:, 0]).all()
    assert 0 < count < (lam != before).any(axis=1).sum()  # others took something


def test_a_dragged_rope_begins_to_slide_in_a_few_newton_steps() -> None:
    """Each step a dozen contacts more slide; one contact after another would take as many Newton steps.

    Errors of the law are small beside the forces alone, so that the judge need not ask for scales of contacts by W.
    """
    scene = fs.Scene("dragged", dt=0.005, duration=1.0, default_friction=0.3)
    scene.add_floor()
    line, pull = (
        np.linspace((0.0, 0.0, 0.002), (0.5, 0.0, 0.002), 401),
        fs.Motion([0.0, 1.0], [(0, 0, 0), (0, 0.1, 0)], smooth=False),
    )
    rubber = fs.Elastic(2.954e6, 0.49, 1259.0, name="rope")
    scene.add_rod("rope", line, fs.circular_section(0.002), rubber, start=fs.RodEnd("hinged", motion=pull))
    stepper = Stepper(scene, make_solver("auto"))
    sliding, taken = [], []
    for _ in range(14):
        report = take_step(stepper)
        assert report.solution.converged and stepper.problem is not None
        law = law_arguments(stepper.problem, report.solution.v, report.solution.lam)
        assert law_errors(law.u, law.lam, law.phi, law.rho, law.friction, False)[3] <= 1e-8
        sliding.append(int((report.forces.contacts.state == 2).sum()))
        taken.append(report.solution.iterations / report.solves if report.solution.details["tried"] == ("banded",) else np.inf)
    assert max(np.diff(sliding[3:])) > 10
    assert max(taken[3:]) <= 6


def test_limit_is_reported() -> None:
    problem = chain(8, 5, np.random.default_rng(RNG_SEED))
    stopped = Banded(BandedOptions(max_iterations=1)).solve(problem)
    assert stopped.status == "stopped at the limit" and "1 iterations" in stopped.message
    solution = make_solver("auto").solve(problem)
    assert solution.details["picked"] == "banded" and "rods alone" in solution.message


@pytest.mark.parametrize(("links", "contacts", "then"), [(40, 20, "exact"), (20, 30, "cond-newton")])
def test_auto_goes_on_with_what_should_cost_less_and_asks_again(links: int, contacts: int, then: str) -> None:
    """Several contacts with unlike frames on one link: forces are hardly unique, and Newton alone cycles at times."""
    rng, solver, answered = np.random.default_rng(3), make_solver("auto"), []
    for _ in range(20):
        hard = chain(links, contacts, rng, mu=0.7, coupled=1e4)
        solution = solver.solve(hard)
        answered.append(solution.details["picked"])
        assert solution.converged and solution.details["tried"][0] == "banded"
        assert measure(hard, solution.v, solution.lam).contact_residual <= 1e-8
        if solution.details["picked"] != "banded":
            assert solution.details["tried"][1] == then
            assert f"banded, picked for rods alone, did not converge; {then} " in solution.message
    assert then in answered[:-1]  # and one more was asked afterwards


@pytest.mark.parametrize(("option", "value"), [("tolerance", 0.0), ("tolerance", 2.0), ("max_iterations", 0)])
def test_bad_options(option: str, value: float) -> None:
    with pytest.raises(ContactError, match=f"option {option} of solver 'banded'"):
        make_solver("banded", **{option: value})
