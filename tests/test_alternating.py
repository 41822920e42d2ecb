"""Alternating steps: kernels against plain twins, the extrapolation, factors of single precision, and piles of soft bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import femsim as fs
from contact import ContactError, ContactProblem, WarmStart, contact_velocity, make_solver
from contact.metrics import residuals
from contact.solvers import alternating, alternating_kernels as kernels, cond_newton
from contact.solvers.alternating import Extrapolation
from contact.solvers.cond_newton import CondNewton
from contact.sparse_lu import PardisoCholesky
from femsim.step.advance import take_step
from femsim.step.stepper import Stepper

pardiso = pytest.mark.skipif(CondNewton().linear_algebra != "pardiso", reason="without MKL there are no alternating steps")


def law_of_one(mu: float, z: np.ndarray) -> tuple[np.ndarray, int]:
    """Force and state of a contact, written plainly."""
    if z[0] <= 0.0:
        return np.zeros(3), 0
    length = np.hypot(z[1], z[2])
    if length <= mu * z[0]:
        return z.copy(), 1
    return np.concatenate([z[:1], mu * z[0] * z[1:] / length]), 2


def some_contacts(nc: int = 60) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(4)
    return rng.uniform(0.2, 0.9, nc), rng.uniform(0.5, 2.0, nc), rng.standard_normal((nc, 3)) + np.array([0.4, 0.0, 0.0])


def test_forces_of_the_law_against_a_plain_twin() -> None:
    friction, _, z = some_contacts()
    lam, state = np.empty_like(z), np.full(len(z), -1, dtype=np.int8)
    assert kernels.law_forces(friction, z, lam, state) == len(z)
    wanted = [law_of_one(mu, one) for mu, one in zip(friction, z, strict=True)]
    np.testing.assert_allclose(lam, [one[0] for one in wanted], rtol=1e-15)
    assert state.tolist() == [one[1] for one in wanted] and set(state.tolist()) == {0, 1, 2}
    z[:5] *= -1.0
    changed = sum(law_of_one(mu, one)[1] != was for mu, one, was in zip(friction, z, state, strict=True))
    assert 0 < kernels.law_forces(friction, z, lam, state) == changed


def test_what_z_says_holds_the_contact_law_with_any_penalty() -> None:
    friction, scales, z = some_contacts()
    lam, state, penalty = np.empty_like(z), np.full(len(z), -1, dtype=np.int8), np.empty_like(z)
    kernels.law_forces(friction, z, lam, state)
    kernels.penalties(state, scales, 0.1, 0.3, 3.0, penalty)
    wanted = [[(0.1, 3.0, 3.0)[s], *((0.1, 3.0, 0.3)[s],) * 2] for s in state]
    np.testing.assert_allclose(penalty, scales[:, None] * np.array(wanted), rtol=1e-15)
    u = (lam - z) / penalty
    assert (u[:, 0] >= 0).all() and np.abs(u[:, 0] * lam[:, 0]).max() == 0.0
    sliding = state == 2
    np.testing.assert_allclose(np.linalg.norm(lam[sliding, 1:], axis=1), friction[sliding] * lam[sliding, 0])
    assert (np.einsum("mi,mi->m", u[sliding, 1:], lam[sliding, 1:]) < 0).all() and not u[state == 1].any()
    other = 7.0 * penalty
    kernels.change_penalty(lam, penalty, other, z)
    np.testing.assert_allclose((lam - z) / other, u, rtol=1e-12, atol=1e-15)
    again = np.empty_like(lam)
    kernels.law_forces(friction, z, again, state)
    np.testing.assert_allclose(again, lam, rtol=1e-12, atol=1e-15)


def test_drive_and_gap_against_plain_twins() -> None:
    rng = np.random.default_rng(1)
    z, lam, u = rng.standard_normal((3, 60, 3))
    penalty, out = rng.uniform(0.1, 2.0, z.shape), np.empty_like(z)
    kernels.drive(penalty, lam, z, u, out)
    np.testing.assert_allclose(out, 2 * lam - z - penalty * u, rtol=1e-12, atol=1e-14)
    kernels.gap(penalty, lam, z, u, out)
    np.testing.assert_allclose(out, 2 * (lam - z - penalty * u) / np.sqrt(penalty), rtol=1e-12, atol=1e-14)


def test_extrapolation_solves_linear_equations_in_as_many_turns_as_they_have_unknowns() -> None:
    rng = np.random.default_rng(0)
    size = 8
    B, c = rng.standard_normal((size, size)), rng.standard_normal(size)  # z <- B z + c alone diverges
    z, extrapolation = np.zeros(size), Extrapolation(size, 12)
    for _ in range(size + 2):
        z = extrapolation.after(z, B @ z + c - z)
    np.testing.assert_allclose(z, np.linalg.solve(np.eye(size) - B, c), rtol=1e-5)


@pardiso
def test_factors_of_single_precision() -> None:
    rng = np.random.default_rng(2)
    n = 60
    G = sp.random(n, n, 0.1, random_state=3)
    K = sp.csr_matrix(G @ G.T + sp.identity(n))
    scale = sp.diags(10.0 ** rng.uniform(-4, 4, n))
    K = sp.csr_matrix(scale @ K @ scale)
    K.sort_indices()
    factors, b = PardisoCholesky(), np.asarray(scale @ rng.standard_normal(n))
    factors.analyse(K.indptr, K.indices)
    assert factors.factorize(K.data)
    x = np.linalg.solve(K.toarray(), b)
    found = factors.solve(b)
    root = scale.diagonal()
    assert np.abs(root * (found - x)).max() <= 1e-5 * np.abs(root * x).max() and found.dtype == np.float64
    full = int(np.argmax(np.diff(K.indptr)))
    for spoiled in (-1.0, 0.2):  # a negative pivot at once, and one that elimination makes
        values = K.data.copy()
        values[np.flatnonzero(K.indices == np.repeat(np.arange(n), np.diff(K.indptr)))[full]] *= spoiled
        assert not factors.factorize(values)
    assert factors.factorize(K.data)


def pile(gravity: float = 9.81, speed: float = 0.0) -> fs.Scene:
    """Six soft cubes of 64 nodes, two a layer, that fall on each other, or meet with a speed where there is no gravity."""
    scene = fs.Scene("pile", dt=0.005, duration=0.1, default_friction=0.4, gravity=(0.0, 0.0, -gravity))
    if gravity:
        scene.add_floor()
    mesh, rubber = fs.box_tets((0.03, 0.03, 0.03), 3), fs.Elastic(1e5, 0.35, 1000.0, rayleigh_beta=2e-3)
    for i in range(6):
        layer, place = divmod(i, 2)
        at = ((place - 0.5) * 0.032 + 0.006 * layer, 0.004 * layer, 0.0155 + 0.031 * layer)
        scene.add_soft(f"cube{i}", mesh, rubber, position=at, velocity=(0.0, 0.0, speed * (1 - layer)))
    return scene


class Watched:
    """A solver that keeps what it was asked."""

    def __init__(self) -> None:
        self.solver, self.asked = make_solver("auto"), []  # type: ignore[var-annotated]

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> object:
        # sharply, and with a matrix that the next one does not overwrite
        self.asked.append((replace(problem, A=problem.A.copy(), b=problem.b.copy(), enough=0.0), warm_start))
        return self.solver.solve(problem, warm_start)


@pytest.fixture(scope="module")
def problems() -> Iterator[list[tuple[ContactProblem, WarmStart]]]:
    watched = Watched()
    stepper = Stepper(pile(), watched)  # type: ignore[arg-type]
    for _ in range(16):
        take_step(stepper)
    yield [(problem, warm) for problem, warm in watched.asked if problem.n_contacts and alternating.serves(problem)][-6:]


@pardiso
def test_piles_are_solved_by_turns_alone(problems: list[tuple[ContactProblem, WarmStart]]) -> None:
    solver = CondNewton()
    assert len(problems) == 6
    for problem, warm in problems:
        found = solver.solve(problem, warm)
        assert found.converged and residuals(problem, found.v, found.lam).worst <= 1e-8
        assert 5 < found.details["turns"] <= 100 and found.details["newton_steps"] == found.details["cond_iterations"] == 0
        wanted = make_solver("exact", tolerance=1e-11).solve(problem, warm)
        assert np.abs(found.v - wanted.v).max() <= 1e-5 * np.abs(wanted.v).max()


@pardiso
def test_from_nothing_and_where_the_first_law_is_far(problems: list[tuple[ContactProblem, WarmStart]]) -> None:
    problem, _ = problems[0]
    for b in (problem.b, 100.0 * problem.b, -problem.b):
        found = CondNewton().solve(replace(problem, b=b))
        assert found.converged and found.details["turns"] and not found.details["cond_iterations"]


@pardiso
def test_memory_gives_the_same_bits(problems: list[tuple[ContactProblem, WarmStart]]) -> None:
    first = CondNewton()
    served = 0
    for problem, warm in problems:
        second = CondNewton()
        second.recall(first.memory())
        answers = [solver.solve(problem, warm) for solver in (first, second)]
        assert answers[0].v.tobytes() == answers[1].v.tobytes() and answers[0].lam.tobytes() == answers[1].lam.tobytes()
        assert answers[0].details == answers[1].details
        served += answers[0].details["factorizations"] == 0
    assert served  # factors of a problem before, made again by the second solver


@pardiso
@pytest.mark.parametrize("other", [2e-2, 0.0])
@pardiso
def test_factors_serve_the_next_problem_where_it_is_nearly_the_same(
    problems: list[tuple[ContactProblem, WarmStart]], other: float
) -> None:
    problem, warm = problems[0]
    solver = CondNewton()
    first = solver.solve(problem, warm)
    assert first.details["factorizations"] > 0
    later = replace(problem, A=sp.csc_matrix((1.0 + other) * problem.A), b=problem.b * (1.0 + other) ** 2)
    second = solver.solve(later, WarmStart(first.v, first.lam))
    assert second.converged and residuals(later, second.v, second.lam).worst <= 1e-8
    assert second.details["factorizations"] == 0 < second.details["turns"] <= first.details["turns"]
    wanted = make_solver("exact", tolerance=1e-11).solve(later, warm)
    assert np.abs(second.v - wanted.v).max() <= 1e-5 * np.abs(wanted.v).max()


def without(problem: ContactProblem, warm: WarmStart, gone: np.ndarray) -> tuple[ContactProblem, WarmStart]:
    """Return a problem and where it begins without some contacts, (nc,) bool."""
    keep = np.flatnonzero(~gone)
    rows = (3 * keep[:, None] + np.arange(3)).ravel()
    less = replace(problem, J=problem.J[rows], phi=problem.phi[keep], friction=problem.friction[keep])
    return less, WarmStart(warm.v, warm.lam[keep])


@pardiso
@pytest.mark.parametrize("case", ["open", "pressing", "coming"])
def test_the_ordering_is_kept_while_contacts_that_it_lacks_are_open(
    problems: list[tuple[ContactProblem, WarmStart]], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alternating, "_OTHERS", 1.0)  # nothing else asks for other factors
    problem, warm = problems[-1]
    wanted = make_solver("exact", tolerance=1e-11).solve(problem, warm)
    normal, pressing = wanted.lam[:, 0], wanted.lam[:, 0] > 0
    # entries of the matrix that one contact alone has
    touched = np.abs(problem.J.toarray()).reshape(-1, 3, problem.n).any(axis=1)
    own = (touched.astype(int).T @ touched == 1) & (problem.A.toarray() == 0)
    alone = pressing & [bool(own[np.ix_(one, one)].any()) for one in touched]
    gone = {"open": ~pressing, "pressing": alone, "coming": normal == normal[alone].max()}[case]
    solver = CondNewton()
    first = solver.solve(*without(problem, warm, gone))
    assert first.converged and first.details["turns"]
    before = solver.memory()["alternation/indices"]
    if case == "coming":  # its bodies move apart where the solve begins, and all others have their states
        lam, row = np.zeros_like(warm.lam), problem.J[3 * int(np.argmax(gone))].toarray().ravel()
        lam[~gone] = first.lam
        closing = contact_velocity(problem, first.v)[gone, 0]
        warm = WarmStart(first.v - 1.01 * closing / (row @ row) * row, lam)
        assert closing < 0 < contact_velocity(problem, warm.v)[gone, 0]
    found = solver.solve(problem, warm)
    assert found.converged and residuals(problem, found.v, found.lam).worst <= 1e-8
    assert 5 < found.details["turns"] <= 80 and found.details["newton_steps"] == found.details["cond_iterations"] == 0
    assert np.abs(found.v - wanted.v).max() <= 1e-5 * np.abs(wanted.v).max()
    kept = np.array_equal(before, solver.memory()["alternation/indices"])
    assert kept == (case == "open")


@pardiso
def test_factors_that_leave_too_much_are_made_anew(problems: list[tuple[ContactProblem, WarmStart]]) -> None:
    problem, warm = problems[0]
    solver = CondNewton()
    first = solver.solve(problem, warm)
    # the same contacts in the same states with the same forces, but another matrix
    heavier = sp.csc_matrix(problem.A * 20.0)
    b = heavier @ first.v - problem.pushed(first.lam)
    b += 1e-3 * np.random.default_rng(0).standard_normal(problem.n) * np.abs(b).max()
    later = replace(problem, A=heavier, b=b)
    second = solver.solve(later, WarmStart(first.v, first.lam))
    assert second.converged and second.details["factorizations"] > 0 and not second.details["newton_steps"]
    fresh = CondNewton().solve(later, WarmStart(first.v, first.lam))
    assert second.details["turns"] <= fresh.details["turns"] + 15


@pytest.mark.parametrize("solver", ["cond-newton", "auto"])
def test_a_matrix_that_is_not_positive_definite_has_no_answer(
    problems: list[tuple[ContactProblem, WarmStart]], solver: str
) -> None:
    problem, warm = problems[0]
    group = problem.groups[0]
    # the first body would rather slide than stand; what contacts hold it by makes A + J^T R J positive definite again
    push = np.zeros(problem.n)
    push[group.start : group.stop : 3] = 1.0
    push /= np.linalg.norm(push)
    less = 1.5 * float(push @ problem.times(push))
    A = sp.csc_matrix(problem.A - less * sp.csc_matrix(np.outer(push, push)))
    assert np.linalg.eigvalsh(A.toarray()).min() < 0
    for start in (warm, None):
        with pytest.raises(ContactError, match="A is not positive definite"):
            make_solver(solver).solve(replace(problem, A=A), start)
    assert CondNewton().solve(problem, warm).details["turns"]


@pardiso
def test_where_turns_lead_nowhere_the_rest_goes_on(
    problems: list[tuple[ContactProblem, WarmStart]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cond_newton, "_MOST_TURNS", 3)
    problem, warm = problems[0]
    found = CondNewton().solve(problem, warm)
    assert found.converged and found.details["turns"] == 3 and found.details["newton_steps"] > 0


@pardiso
def test_a_falling_pile_gains_no_energy() -> None:
    """As much as one solved exactly, in each step."""
    runs = [fs.simulate(pile(), solver=name, tolerance=1e-8) for name in ("cond-newton", "exact")]
    for run in runs:
        assert run.status == "converged" and run.steps["contacts"].max() > 100
        energy = np.asarray(run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"] - run.steps["work_J"])
        assert np.diff(energy).max() <= 1e-8 * run.steps["kinetic_energy_J"].max()
    ours, theirs = (run.steps["kinetic_energy_J"] for run in runs)
    np.testing.assert_allclose(ours, theirs, atol=1e-3 * theirs.max())


@pardiso
def test_cubes_that_collide_keep_their_momentum() -> None:
    run = fs.simulate(pile(gravity=0.0, speed=0.4), solver="cond-newton", tolerance=1e-8)
    assert run.status == "converged" and run.steps["contacts"].max() > 100
    p = np.column_stack([run.steps[f"momentum_{c}_kgmps"] for c in "xyz"])
    assert np.abs(p - p[0]).max() <= 1e-7 * 0.4 * 6 * 0.03**3 * 1000.0
    energy = np.asarray(run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"] - run.steps["work_J"])
    assert np.diff(energy).max() <= 1e-8 * energy[0] and energy[-1] < 0.9 * energy[0]


def test_only_bodies_that_touch_each_other_are_served(problems: list[tuple[ContactProblem, WarmStart]]) -> None:
    problem = problems[0][0]
    on_floor = np.flatnonzero(np.diff(problem.J.indptr)[::3] <= 3)
    assert alternating.serves(problem) and 0 < len(on_floor) < problem.n_contacts
    rows = (3 * on_floor[:, None] + np.arange(3)).ravel()
    alone = replace(problem, J=problem.J[rows], phi=problem.phi[on_floor], friction=problem.friction[on_floor])
    assert not alternating.serves(alone)
