"""SubADMM: its iterates against the equations of papers/000 written plainly, its split, its penalty, and the files of others.

:func:`plain_steps` is the twin of all kernels of ``subadmm_kernels``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from branched import PARENTS, ancestors, two_robots
from fclib_check import check, read_problem
from full_sets import full_set, needs_full_sets
from piles import pile, side_by_side
from random_problems import random_global, random_local
from slow_twins import random_spd
from small_blocks import soft_block

from contact import ContactError, ContactProblem, Group, LocalProblem, WarmStart, make_problem, make_solver, measure, read_fclib
from contact.cone import project_strict
from contact.errors import NotApplicableError
from contact.solvers import subadmm
from contact.solvers.penalty import Sizes
from contact.solvers.subadmm import SubadmmOptions, find_pieces, find_subsystems


def plain_steps(
    problem: ContactProblem,
    bodies: list[np.ndarray],
    betas: list[np.ndarray],
    warm: WarmStart | None = None,
    pieces: list[list[tuple[int, np.ndarray]]] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Papers/000 eqs. 34 to 39 with slacks z and multipliers u of each piece kept; one penalty vector an iteration.

    Pieces are the bodies of a contact, or bodies and some of their columns.
    """
    A, J, nc = problem.A.toarray(), problem.J.toarray(), problem.n_contacts
    v, lam = (np.zeros(problem.n), np.zeros((nc, 3))) if warm is None else (warm.v.copy(), warm.lam.copy())
    rows = [J[3 * m : 3 * m + 3] for m in range(nc)]
    pieces = pieces or [[(j, own) for j, own in enumerate(bodies) if rows[m][:, own].any()] for m in range(nc)]
    z = {(m, k): rows[m][:, own] @ v[own] for m in range(nc) for k, (_, own) in enumerate(pieces[m])}
    u = {key: -lam[key[0]] for key in z}
    for beta in betas:
        H, right = A.copy(), problem.b.copy()
        for m in range(nc):
            for k, (_, own) in enumerate(pieces[m]):
                part = rows[m][:, own]
                H[np.ix_(own, own)] += beta[m] * part.T @ part
                right[own] += part.T @ (beta[m] * z[m, k] - u[m, k])
        for own in bodies:
            v[own] = np.linalg.solve(H[np.ix_(own, own)], right[own])
        for m in range(nc):
            y = {k: beta[m] * rows[m][:, own] @ v[own] + u[m, k] for k, (_, own) in enumerate(pieces[m])}
            lam[m] = project_strict(*(-(sum(y.values()) + beta[m] * problem.phi[m]) / len(y)), problem.friction[m])
            for k, (_, own) in enumerate(pieces[m]):
                z[m, k] = (y[k] + lam[m]) / beta[m]
                u[m, k] += beta[m] * (rows[m][:, own] @ v[own] - z[m, k])
                np.testing.assert_allclose(u[m, k], -lam[m], atol=1e-9 * (1 + np.abs(lam).max()))
    return v, lam


def chain(seed: int) -> ContactProblem:
    """Three bodies of 6, 60 and 6 rows and one without contacts; contacts on one, two and three of them."""
    rng = np.random.default_rng(seed)
    sizes = (6, 60, 6, 4)
    A = sp.block_diag([random_spd(rng, n, 5.0) for n in sizes], format="csc")
    stops = np.cumsum((0, *sizes))
    J = np.zeros((15, 76))
    for m, on in enumerate(((0,), (0, 1), (1, 2), (0, 1, 2), (2,))):
        for j in on:
            few = stops[j] + rng.choice(sizes[j], 4, replace=False)
            J[3 * m : 3 * m + 3, few] = rng.standard_normal((3, 4))
    groups = [Group(f"b{j}", int(stops[j]), int(stops[j + 1]), "generalized") for j in range(4)]
    phi = rng.standard_normal((5, 3)) * [0.3, 0.1, 0.1] - [0.5, 0.0, 0.0]
    return make_problem(A, rng.standard_normal(76), sp.csr_matrix(J), phi, rng.uniform(0.2, 0.8, 5), dt=0.01, groups=groups)


def rows_of(problem: ContactProblem) -> list[np.ndarray]:
    return [np.arange(group.start, group.stop) for group in problem.groups]


# ---------------------------------------------------------------------- the iteration


@pytest.mark.parametrize("split", ["subsystem", "none"])
@pytest.mark.parametrize("problem", [chain(0), chain(1), pile(3, 0)], ids=["chain", "other chain", "pile"])
def test_its_iterates_are_those_of_the_equations_with_slacks_and_multipliers(problem: ContactProblem, split: str) -> None:
    bodies = rows_of(problem) if split == "subsystem" else [np.arange(problem.n)]
    rng = np.random.default_rng(5)
    lam = np.abs(rng.standard_normal((problem.n_contacts, 3))) * [1.0, 0.1, 0.1]
    warm = WarmStart(0.1 * rng.standard_normal(problem.n), lam)
    for count in (1, 2, 25):
        found = make_solver(
            "subadmm", split=split, adaptive="fixed", penalty=0.7, max_iterations=count, tolerance=1e-14
        ).solve(problem, warm)  # fmt: skip
        v, forces = plain_steps(problem, bodies, [0.7 * problem.scales] * count, warm)
        if found.details["returned_iteration"] == count:
            np.testing.assert_allclose(found.v, v, atol=1e-10 * np.abs(v).max())
            np.testing.assert_allclose(found.lam, forces, atol=1e-10 * np.abs(forces).max())
        else:
            assert count < 25
    assert found.details["returned_iteration"] == 25


def test_slacks_stay_what_they_are_where_the_penalty_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fourfold:
        def __init__(self, every: int, gamma: float, rarer: float) -> None:
            assert (every, gamma, rarer) == (10, 10.0, 2.0)

        def factor(self, iteration: int, sizes: Sizes) -> float:
            return 0.25 if iteration == 10 else 1.0

    monkeypatch.setattr(subadmm, "_SlackRule", Fourfold)
    problem = chain(2)
    found = make_solver("subadmm", max_iterations=30, tolerance=1e-14).solve(problem)
    betas = [problem.scales] * 10 + [4.0 * problem.scales] * 20
    v, lam = plain_steps(problem, rows_of(problem), betas)
    assert found.details["returned_iteration"] == 30 and found.details["factorizations"] == 2
    assert found.details["penalty"] == 4.0
    np.testing.assert_allclose(found.v, v, atol=1e-10 * np.abs(v).max())
    np.testing.assert_allclose(found.lam, lam, atol=1e-10 * np.abs(lam).max())


@pytest.mark.parametrize("seed", range(3))
def test_it_knows_its_own_residuals(seed: int) -> None:
    """Also without a product with A."""
    problem = chain(seed)
    for count in (3, 10):
        found = make_solver("subadmm", max_iterations=count + 1, tolerance=1e-14).solve(problem)
        once = make_solver("subadmm", max_iterations=count, tolerance=1e-14).solve(problem)
        if once.details["returned_iteration"] == count:
            true = measure(problem, once.v, once.lam)
            assert found.history.dynamics[count - 1] == pytest.approx(true.dynamics_residual, rel=1e-6)
            assert found.history.contact[count - 1] == pytest.approx(true.contact_residual, rel=1e-6)


# ---------------------------------------------------------------------- the split


def test_groups_that_are_coupled_are_one_subsystem() -> None:
    problem = chain(0)
    np.testing.assert_array_equal(find_subsystems(problem), np.repeat([0, 1, 2, 3], (6, 60, 6, 4)))
    A = problem.A.tolil()
    A[3, 74] = A[74, 3] = 0.01
    coupled = make_problem(A, problem.b, problem.J, problem.phi, problem.friction, dt=0.01, groups=problem.groups)
    np.testing.assert_array_equal(find_subsystems(coupled), np.repeat([0, 1, 2, 0], (6, 60, 6, 4)))
    bodies = [np.r_[0:6, 72:76], np.arange(6, 66), np.arange(66, 72)]
    found = make_solver("subadmm", adaptive="fixed", max_iterations=25, tolerance=1e-14).solve(coupled)
    v, _ = plain_steps(coupled, bodies, [coupled.scales] * 25)
    assert found.details["subsystems"] == 3 and found.details["large"] == 1
    np.testing.assert_allclose(found.v, v, atol=1e-10 * np.abs(v).max())


def test_stored_zeros_of_the_matrix_join_nothing() -> None:
    problem = chain(0)
    A = problem.A.tocoo()
    stored = sp.csc_matrix((np.r_[A.data, 0.0, 0.0], (np.r_[A.row, 3, 74], np.r_[A.col, 74, 3])), shape=A.shape)
    with_zeros = replace(problem, A=stored)
    assert stored.nnz == A.nnz + 2
    np.testing.assert_array_equal(find_subsystems(with_zeros), find_subsystems(problem))
    one, other = (make_solver("subadmm", max_iterations=20).solve(p) for p in (problem, with_zeros))
    np.testing.assert_array_equal(one.v, other.v)


def test_pieces_hold_the_jacobian() -> None:
    problem = chain(3)
    pieces = find_pieces(problem, find_subsystems(problem))
    np.testing.assert_array_equal(np.diff(pieces.first), [1, 2, 2, 3, 1])
    J = np.zeros(problem.J.shape)
    for p, m in enumerate(pieces.contact):
        own = slice(pieces.ptr[p], pieces.ptr[p + 1])
        J[3 * m : 3 * m + 3, pieces.col[own]] += pieces.jac[own].T
        assert len(set(find_subsystems(problem)[pieces.col[own]])) == 1
    np.testing.assert_array_equal(J, problem.J.toarray())


def branches(problem: ContactProblem) -> list[list[tuple[int, np.ndarray]]]:
    """Pieces of two_robots by branches: what is on the way from the last column to the ground, then what is left."""
    out: list[list[tuple[int, np.ndarray]]] = []
    for m in range(problem.n_contacts):
        columns, own = set(problem.J[3 * m : 3 * m + 3].indices.tolist()), []
        for j, group in enumerate(problem.groups):
            left = {column - group.start for column in columns if group.start <= column < group.stop}
            while left:
                way = left if group.parents is None else left & set(ancestors(PARENTS, max(left)))
                own.append((j, group.start + np.array(sorted(way))))
                left = left - way
        out.append(own)
    return out


@pytest.mark.parametrize("seed", range(2))
def test_split_by_body_each_branch_of_a_robot_has_slacks_of_its_own(seed: int) -> None:
    problem = two_robots(seed)
    pieces = branches(problem)
    assert [len(own) for own in pieces] == [1, 2, 3, 1, 2, 4, 2, 2]
    count = 25
    options = {"adaptive": "fixed", "penalty": 0.7, "max_iterations": count, "tolerance": 1e-14}
    found = make_solver("subadmm", split="body", **options).solve(problem)  # type: ignore[arg-type]
    v, lam = plain_steps(problem, rows_of(problem), [0.7 * problem.scales] * count, pieces=pieces)
    assert (found.details["trees"], found.details["pieces"]) == (2, 17) and found.details["returned_iteration"] == count
    np.testing.assert_allclose(found.v, v, atol=1e-10 * np.abs(v).max())
    np.testing.assert_allclose(found.lam, lam, atol=1e-10 * np.abs(lam).max())


def test_a_robot_whose_legs_a_spring_joins_and_a_chain_are_no_trees() -> None:
    problem, sprung = two_robots(0), two_robots(0, spring=0.1)
    chained = replace(problem, groups=(Group("all", 0, 17, "generalized", tuple(range(-1, 16))),))
    for other, trees in ((sprung, 1), (chained, 0), (pile(2, 0), 0)):
        one, body = (
            make_solver("subadmm", split=split, max_iterations=20, tolerance=1e-14).solve(other)
            for split in ("subsystem", "body")
        )
        assert body.details["trees"] == trees
        if not trees:
            np.testing.assert_array_equal(one.v, body.v)


@pytest.mark.parametrize("split", ["body", "subsystem", "none"])
def test_every_split_agrees_with_the_exact_solver(split: str) -> None:
    problem = two_robots(3)
    ours = make_solver("subadmm", split=split, tolerance=1e-9, max_iterations=20000).solve(problem)
    exact = make_solver("exact", tolerance=1e-11).solve(problem)
    assert ours.converged and exact.converged, ours.message
    np.testing.assert_allclose(ours.v, exact.v, atol=1e-6 * np.abs(exact.v).max())


# ---------------------------------------------------------------------- threads


@pytest.mark.parametrize("problem", [chain(0), pile(5, 1), side_by_side(40), soft_block(1e5, 4), two_robots(0)])
def test_any_number_of_threads_gives_the_same_bits(problem: ContactProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of the residuals, and where the penalty changes."""
    monkeypatch.setattr(subadmm, "_MANY", 0)
    teams: list[int] = []
    made = subadmm.Team
    monkeypatch.setattr(subadmm, "Team", lambda threads: teams.append(threads) or made(threads))
    one, *others = (
        make_solver(
            "subadmm", split="body", max_iterations=60, adaptive="paper", gamma=1.01, tolerance=1e-14, threads=threads
        ).solve(problem)
        for threads in (1, 2, 3, 7)
    )
    assert teams == [1, 2, 3, 7] and one.details["factorizations"] > 1
    for other in others:
        np.testing.assert_array_equal(one.v, other.v)
        np.testing.assert_array_equal(one.lam, other.lam)
        np.testing.assert_array_equal(one.history.dynamics, other.history.dynamics)
        np.testing.assert_array_equal(one.history.contact, other.history.contact)
        assert one.details == other.details


def test_few_contacts_are_not_worth_a_second_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contact.together.ThreadPoolExecutor", None)  # nobody makes one
    assert make_solver("subadmm", max_iterations=20, threads=2).solve(chain(0)).iterations == 20


# ---------------------------------------------------------------------- whole solves


@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_the_exact_solver(seed: int, anisotropic: bool) -> None:
    problem = random_global(seed, anisotropic=anisotropic)
    ours = make_solver("subadmm", tolerance=1e-9, max_iterations=20000).solve(problem)
    exact = make_solver("exact", tolerance=1e-11).solve(problem)
    assert ours.converged, ours.message
    np.testing.assert_allclose(ours.v, exact.v, atol=1e-6 * np.abs(exact.v).max())


def test_a_soft_body_is_a_large_subsystem_and_a_warm_start_helps() -> None:
    problem = soft_block(1e5, 4)
    cold = make_solver("subadmm", tolerance=1e-6).solve(problem)
    warm = make_solver("subadmm", tolerance=1e-6).solve(problem, WarmStart(cold.v, cold.lam))
    assert cold.converged and (cold.details["subsystems"], cold.details["large"]) == (1, 1)
    assert warm.converged and 2 * warm.iterations < cold.iterations


def test_an_adapted_penalty_saves_iterations_and_looks_at_it_ever_rarer() -> None:
    problem = soft_block(1e5, 4)
    fixed, balanced = (
        make_solver("subadmm", tolerance=1e-6, adaptive=rule, penalty=0.01).solve(problem) for rule in ("fixed", "balanced")
    )
    assert balanced.converged and balanced.details["penalty"] > 0.02
    assert 2 * balanced.iterations < fixed.iterations and fixed.details["factorizations"] == 1
    for options, expected in (
        (SubadmmOptions(adaptive="balanced"), [10, 20, 40, 80, 160]),
        (SubadmmOptions(adaptive="paper", every=30), [30, 60, 90, 120, 150, 180]),
        (SubadmmOptions(adaptive="fixed"), []),
    ):
        rule = subadmm._Iterations(problem, None, options)._rule
        sizes = Sizes(1e3, 0.0, 0.0, 0.0, 1.0, 1.0)
        assert [i for i in range(1, 200) if rule.factor(i, sizes) != 1.0] == expected
    rule = subadmm._SlackRule(10, 10.0, 0.0)
    for primal, factor in ((9.0, 1.0), (0.12, 1.0), (16.0, 0.25), (1 / 16.0, 4.0), (1e9, 0.1), (1e-9, 10.0), (np.inf, 1.0)):
        assert rule.factor(10, Sizes(primal, 0.0, 0.0, 0.0, 1.0, 1.0)) == pytest.approx(factor)
    # where the contact law holds far better than the dynamics, the penalty does not grow, but may fall
    for primal, contact, factor in ((1e9, 0.9e-3, 1.0), (1e9, 1.1e-3, 0.1), (1e-9, 1e-9, 10.0)):
        assert rule.factor(10, Sizes(primal, 0.0, 0.0, 0.0, 1.0, contact)) == pytest.approx(factor)


def test_one_penalty_for_all_is_the_geometric_mean() -> None:
    problem = chain(0)
    found = make_solver("subadmm", adaptive="fixed", scaling="mean", max_iterations=25, tolerance=1e-14).solve(problem)
    mean = np.exp(np.log(problem.scales).mean())
    v, _ = plain_steps(problem, rows_of(problem), [np.full(5, mean)] * 25)
    assert found.details["returned_iteration"] == 25
    np.testing.assert_allclose(found.v, v, atol=1e-10 * np.abs(v).max())


def test_a_matrix_that_is_not_positive_definite_is_refused_for_small_and_large_bodies() -> None:
    for size, filled in ((4, 0.0), (60, 0.0), (60, 1e-3)):
        A = sp.lil_matrix(np.eye(size) + filled)
        A[0, 1] = A[1, 0] = 2.0
        J = sp.csr_matrix(([1.0] * 3, ([0, 1, 2], [1, 2, 3])), shape=(3, size))
        group = (Group("all", 0, size, "generalized"),)
        problem = make_problem(A, np.ones(size), J, np.zeros(1), 0.5, dt=0.01, groups=group)
        with pytest.raises(ContactError, match="A is not positive definite"):
            make_solver("subadmm").solve(problem)
    robots = two_robots(0)
    A = robots.A.copy()
    A[0, 0] = 1e-3
    with pytest.raises(ContactError, match="A is not positive definite"):
        make_solver("subadmm", split="body", penalty=1e-6).solve(replace(robots, A=A))


def test_a_local_problem_is_solved_by_way_of_an_equivalent_one() -> None:
    problem = random_local(np.random.default_rng(0), 8, rank=12)
    solution = make_solver("subadmm").solve_local(problem)  # type: ignore[attr-defined]
    assert solution.converged and solution.details["subsystems"] == 1
    with pytest.raises(NotApplicableError, match="W is not symmetric"):
        make_solver("subadmm").solve_local(random_local(np.random.default_rng(0), 3, asymmetry=0.1))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("split", "link"), ("penalty", 0.0), ("scaling", "mass"), ("adaptive", "doubling"), ("gamma", 1.0), ("every", 5),
        ("every", 15), ("threads", 0),
    ],
)  # fmt: skip
def test_options_outside_their_range_are_named(option: str, value: object) -> None:
    with pytest.raises(ContactError, match=f"option {option} of solver 'subadmm' is {value!r}; allowed are"):
        make_solver("subadmm", **{option: value})


@needs_full_sets
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("LMGC_GFC00046_sym", 30), ("ball_E1_dt1e-3", 40), ("ball_E10_dt1e-2", 50), ("Spheres-i099-356-679", 40),
        ("2d_gfc2d_granularflowonwall_00069_00350", 60), ("rockfall_14_25792_noroll_symW", 40), ("BoxesStack1-i100000-32", 40),
    ],
)  # fmt: skip
def test_files_of_the_full_set_to_1e_4(name: str, most: int) -> None:
    path = full_set("fclib") / f"{name}.hdf5"
    problem, solver = read_fclib(path).problem, make_solver("subadmm")
    local = isinstance(problem, LocalProblem)
    found = solver.solve_local(problem) if local else solver.solve(problem)  # type: ignore[attr-defined,arg-type]
    assert found.converged and found.iterations <= most, found.message
    given = read_problem(path)
    measured = check(given, found.lam[:, : given["d"]], None if local else found.v)
    assert max(measured["natmap_si"], measured["dyn"]) <= 1.1e-4
