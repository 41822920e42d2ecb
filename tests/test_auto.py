"""The automatic choice: its estimate of the conditioning, what it picks, how it says so, and what it does when that was wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from piles import pile
from slow_twins import body_between_nodes, random_spd
from small_blocks import soft_block

import femsim as fs
from contact import ContactError, ContactProblem, Group, WarmStart, make_local_problem, make_problem, measure
from contact.errors import NotPositiveError
from contact.jacobian_kernels import mark_columns
from contact.metrics import residuals
from contact.solvers import Auto, AutoOptions, Cond, CondOptions, Exact, ExactOptions, auto as auto_module, make_solver
from contact.solvers.auto import conditioning
from contact.solvers.base import Solution
from contact.solvers.canal import Canal, CanalOptions
from contact.solvers.cond_newton import CondNewton, CondNewtonOptions
from femsim.step.stepper import Stepper


def true_conditioning(problem: ContactProblem) -> float:
    root = np.sqrt(problem.A.diagonal())
    return float(np.linalg.cond(problem.A.toarray() / np.outer(root, root)))


def no_contact(A: np.ndarray) -> ContactProblem:
    n = len(A)
    groups = (Group("all", 0, n, "generalized"),)
    return make_problem(A, np.zeros(n), sp.csr_matrix((0, n)), np.zeros(0), 0.3, dt=0.01, groups=groups)


# ---------------------------------------------------------------------- the estimate


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("condition", [1.5, 30.0, 1e4])
def test_the_estimate_is_a_lower_bound_and_exact_for_small_mild_matrices(seed: int, condition: float) -> None:
    rng = np.random.default_rng(seed)
    small, large = no_contact(random_spd(rng, 9, condition)), no_contact(random_spd(rng, 120, condition))
    if condition < 100:  # else rounding costs the vectors their orthogonality
        assert conditioning(small) == pytest.approx(true_conditioning(small), rel=1e-6)
    assert conditioning(small) <= true_conditioning(small) * (1 + 1e-9)
    assert conditioning(large) <= true_conditioning(large) * (1 + 1e-9)


@pytest.mark.parametrize("young", [1e4, 1e6, 1e8])
def test_the_estimate_is_near_for_a_free_soft_block(young: float) -> None:
    problem = soft_block(young, 4)
    estimate, truth = conditioning(problem), true_conditioning(problem)
    assert truth / 3.0 <= estimate <= truth * (1 + 1e-9)


def test_the_estimate_does_not_depend_on_units_and_bears_edge_cases() -> None:
    problem = soft_block(1e5, 3)
    scaled = no_contact(1e-9 * problem.A.toarray())
    assert conditioning(scaled) == pytest.approx(conditioning(problem), rel=1e-9)
    assert conditioning(no_contact(np.eye(3))) == pytest.approx(1.0) == conditioning(no_contact(np.array([[4.0]])))
    assert conditioning(no_contact(np.zeros((0, 0)))) == 1.0


# ---------------------------------------------------------------------- the choice


def test_a_soft_block_is_for_cond_and_a_stiff_one_for_exact() -> None:
    for young, expected in ((1e4, "cond"), (1e8, "exact")):
        problem = soft_block(young)
        solver = Auto(AutoOptions(tolerance=1e-6))
        assert solver.pick(problem) == expected
        solution = solver.solve(problem)
        found = measure(problem, solution.v, solution.lam)
        assert solution.converged and max(found.dynamics_residual, found.contact_residual) <= 1e-6
        assert solution.details["picked"] == expected
        assert solution.details["conditioning"] == pytest.approx(conditioning(problem))
        assert f"Picked {expected} for a conditioning of about {conditioning(problem):.0f}." in solution.message


def test_few_unknowns_are_for_exact_however_soft(monkeypatch: pytest.MonkeyPatch) -> None:
    """COND takes no less time there, and its kernels need not be loaded."""
    problem = soft_block(1e3, 2)
    assert problem.n <= 120 and 3 * problem.n_contacts <= problem.n
    solution = Auto(AutoOptions(tolerance=1e-8)).solve(problem)
    assert solution.converged and solution.details["tried"] == ("exact",)
    assert "Picked exact for few unknowns." in solution.message
    monkeypatch.setattr(auto_module, "_COND_ROWS", 0)
    assert Auto(AutoOptions(tolerance=1e-8)).pick(problem) == "cond"  # by the estimates of both


def test_where_cond_stops_at_its_limit_exact_goes_on() -> None:
    problem = soft_block(1e4)
    solution = Auto(AutoOptions(tolerance=1e-8, max_iterations=4)).solve(problem)
    assert solution.converged and solution.details["picked"] == "exact"
    assert "did not converge; exact went on." in solution.message and "cond, picked for" in solution.message
    found = measure(problem, solution.v, solution.lam)
    assert max(found.dynamics_residual, found.contact_residual) <= 1e-8


def test_after_cond_the_exact_solver_is_not_swept_for_long_before_canal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cube that meets two pads took it 2 s a problem; CANAL takes 70 ms, and only what this leaves is swept for longer."""
    asked, solve = [], Exact.solve

    def short_of_it(self: Exact, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        asked.append(self.max_sweeps)
        return replace(solve(self, problem, warm_start), status="stopped at the limit")

    monkeypatch.setattr(Exact, "solve", short_of_it)
    solver = Auto(AutoOptions(tolerance=1e-8, max_iterations=4))
    solver._canal = Canal(CanalOptions(tolerance=1e-15, max_iterations=1))
    assert solver.solve(soft_block(1e4)).details["tried"] == ("cond", "exact", "canal", "exact")
    assert asked[0] < asked[1]


def test_canal_takes_the_place_of_exact_where_a_dense_matrix_of_contacts_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_module, "_DENSE_ROWS", 12)
    problem = soft_block(1e8)
    solution = Auto(AutoOptions(tolerance=1e-8)).solve(problem)
    assert solution.converged and solution.details["tried"] == ("canal",)
    found = measure(problem, solution.v, solution.lam)
    assert max(found.dynamics_residual, found.contact_residual) <= 1e-8
    stopped = Auto(AutoOptions(tolerance=1e-8, max_iterations=4)).solve(soft_block(1e4))
    assert stopped.details["tried"] == ("cond", "canal") and "exact" not in stopped.message


def test_few_sweeps_are_for_many_contacts_that_press(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 734 contacts of a gripper 26 pressed: their sweeps cost nothing, and CANAL, which went on, took 7 s."""
    asked: list[int] = []
    plain = Exact.solve

    def solve(self: Exact, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        asked.append(min(self.max_sweeps, self.all_sweeps // 2))
        return plain(self, problem, warm_start)

    monkeypatch.setattr(Exact, "solve", solve)
    problem = soft_block(1e8, 10)
    assert problem.n_contacts > 100
    low = np.where(np.arange(problem.n_contacts) < 20, 0.0, 1.0)
    few = make_problem(problem.A, problem.b, problem.J, low, 0.4, dt=0.01, groups=problem.groups)
    for case in (few, problem):
        assert Auto(AutoOptions(tolerance=1e-6)).solve(case).converged
    assert asked[0] == 2 * asked[1] < ExactOptions().max_sweeps / 50


def test_a_good_start_favours_neither_cond_nor_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """It spares both the same part: the step of a gripper with many contacts does not try thousands of iterations."""
    problem = soft_block(1e5, 6)
    picks: dict[int, list[str]] = {}
    monkeypatch.setattr(auto_module, "_NEWTON_ROWS", 0)
    monkeypatch.setattr(Auto, "_newton_seconds", lambda *_: np.inf)
    for kind in (auto_module._FAR, auto_module._ANEW):
        monkeypatch.setattr(auto_module, "_kind_of", lambda *_, kind=kind: kind)
        picks[kind] = []
        for seconds in np.geomspace(1e-8, 1.0, 60):
            monkeypatch.setattr(Auto, "_iteration_seconds", staticmethod(lambda *_, seconds=seconds: seconds))
            picks[kind].append(Auto().pick(problem))
    assert set(picks[auto_module._FAR]) == {"cond", "exact"}
    assert picks[auto_module._ANEW] == picks[auto_module._FAR]


@pytest.mark.parametrize(("steps", "second"), [(0.0, "canal"), (np.inf, "exact")])
def test_after_cond_the_cheaper_one_goes_on_where_many_contacts_press(
    steps: float, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plate on a mat: the exact solver factorized dense matrices of 1800 rows a hundred times, 8 s for what takes CANAL one."""
    monkeypatch.setattr(auto_module, "_CANAL_STEPS", steps)
    problem = soft_block(1e4, 10)
    solver = Auto(AutoOptions(tolerance=1e-8, max_iterations=4))
    assert solver.pick(problem) in ("cond", "cond-newton")
    assert solver.solve(problem).details["tried"][1] == second


@pytest.mark.parametrize(("steps", "first"), [(0.0, "canal"), (np.inf, "exact")])
def test_the_cheaper_one_is_asked_first_where_many_contacts_press(
    steps: float, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coin that rests on a mat took the exact solver 3.3 s a solve, CANAL 0.3."""
    monkeypatch.setattr(auto_module, "_CANAL_STEPS", steps)
    problem = soft_block(1e8, 10)
    solver = Auto(AutoOptions(tolerance=1e-8))
    assert solver.pick(problem) == "exact"
    solution = solver.solve(problem)
    assert solution.converged and solution.details["tried"] == (first,)
    found = measure(problem, solution.v, solution.lam)
    assert max(found.dynamics_residual, found.contact_residual) <= 1e-8


@pytest.mark.parametrize(("off", "tried"), [(0.0, ("canal", "cond")), (1e-3, ("canal", "exact"))])
def test_the_exact_solver_is_not_asked_where_canal_came_near(off: float, tried: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plate on a mat whose rim asks for what differs by rounding: 1.04e-8 by CANAL in 4 s, no less by the exact one in 60."""
    plain = Canal.solve

    def solve(self: Canal, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        found = plain(self, problem, warm_start)
        return replace(found, v=(1.0 + off) * found.v, status="stopped at the limit")

    monkeypatch.setattr(Canal, "solve", solve)
    monkeypatch.setattr(auto_module, "_CANAL_STEPS", 0.0)
    assert Auto(AutoOptions(tolerance=1e-8)).solve(soft_block(1e8, 10)).details["tried"] == tried


def test_a_pick_that_failed_rests_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """For 8 problems, for 16 after it failed again; what it remembers goes through its memory."""
    monkeypatch.setattr(auto_module, "_FAILURE", 1.0)  # else COND looks dearer, and is picked no more
    problem = soft_block(1e4)
    solver = Auto(AutoOptions(tolerance=1e-8, max_iterations=4))

    def tried(times: int) -> list[tuple[str, ...]]:
        return [solver.solve(problem).details["tried"] for _ in range(times)]

    assert solver.pick(problem) == "cond"
    assert tried(2) == [("cond", "exact"), ("exact",)]
    assert solver.pick(problem) == "exact"
    assert "Picked exact for problems like one that cond failed at." in solver.solve(problem).message
    other = Auto(solver.options)
    other.recall(solver.memory())
    solver = other
    assert tried(7) == 6 * [("exact",)] + [("cond", "exact")]
    assert tried(17) == 16 * [("exact",)] + [("cond", "exact")]
    solver.recall({})
    assert solver.pick(problem) == "cond"


def test_a_rest_ends_where_its_stand_in_fails_and_is_forgotten_where_the_pick_does_well() -> None:
    rest = auto_module._Rest().after("canal", "canal", "exact", True)
    assert (rest.failed, rest.instead, rest.left, rest.length) == ("canal", "exact", 8, 16)
    assert rest.replaced("canal") == "exact" and rest.replaced("cond") == "cond"
    assert rest.after("cond", "cond", "cond", True) == rest
    assert rest.after("canal", "exact", "exact", True).left == 7
    assert rest.after("canal", "exact", "cond", True).left == rest.after("canal", "exact", "exact", False).left == 0
    assert replace(rest, left=0).after("canal", "canal", "canal", True) == auto_module._Rest()
    assert auto_module._Rest.from_numbers(rest.as_numbers()) == rest
    assert auto_module._Rest().after("cond", "cond", "exact", False) == auto_module._Rest()


def test_where_exact_fails_cond_goes_on() -> None:
    """From where exact stopped, and the answer says who gave it; an infeasible problem goes to nobody else."""
    problem = soft_block(1e8, 3)
    solver = Auto(AutoOptions(tolerance=1e-6))
    assert solver.pick(problem) == "exact"
    solver._exact = Exact(ExactOptions(tolerance=1e-15, max_iterations=1, max_sweeps=1))
    solver._cond = Cond(CondOptions(tolerance=1e-6, max_iterations=50000))
    solution = solver.solve(problem)
    assert solution.converged and solution.details["picked"] == "cond"
    assert "exact, picked for a conditioning of about" in solution.message
    assert "did not converge; cond went on." in solution.message
    solver._cond = Cond(CondOptions(tolerance=1e-6, max_iterations=1))
    solver.recall({})
    solution = solver.solve(problem)
    assert solution.details["tried"] == ("exact", "cond", "canal", "exact") and solution.converged
    assert solution.message.endswith("cond and canal went on.")
    solver._fresh = Canal(CanalOptions(tolerance=1e-6, max_iterations=1))
    solver._exact = Exact(ExactOptions(tolerance=1e-15, max_iterations=1))
    solver.recall({})
    solution = solver.solve(problem)
    assert solution.status == "stopped at the limit" and "cond and canal and exact went on. The answer of" in solution.message
    answers = [one.solve(problem) for one in (solver._exact, solver._cond, solver._fresh)]
    best = min(residuals(problem, one.v, one.lam).worst for one in answers)
    assert residuals(problem, solution.v, solution.lam).worst <= 1.001 * best


def test_what_is_not_finite_is_a_reported_failure() -> None:
    problem = soft_block(1e4, 3)
    problem.b[0] = np.nan
    solution = Auto().solve(problem)
    assert solution.status == "failed" and "not finite" in solution.message


def test_failures_of_cond_lead_to_exact_and_its_successes_back() -> None:
    """One solver over a sequence: after enough failures it does not try COND any more."""
    problem = soft_block(1e4)
    failing = Auto(AutoOptions(tolerance=1e-8, max_iterations=4))
    messages = [failing.solve(problem).message for _ in range(12)]
    assert "did not converge" in messages[0] and "Picked exact" in messages[-1]
    working = Auto(AutoOptions(tolerance=1e-4))
    assert all("Picked cond" in working.solve(problem).message for _ in range(12))


def test_the_estimate_is_renewed_when_the_diagonal_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counting(problem: ContactProblem) -> float:
        asked.append(problem)
        return conditioning(problem)

    monkeypatch.setattr(auto_module, "conditioning", counting)
    monkeypatch.setattr(auto_module, "_COND_ROWS", 0)
    problem, solver = body_between_nodes(np.random.default_rng(0), 6, 5), Auto()

    def scaled(factor: float, row: int | None = None) -> ContactProblem:
        root = np.ones(problem.n)
        root[slice(None) if row is None else row] = np.sqrt(factor)
        A = sp.diags(root) @ problem.A @ sp.diags(root)
        return make_problem(A, problem.b, problem.J, problem.phi, problem.friction, dt=0.01, groups=problem.groups)

    for case, expected in (
        (problem, 1), (problem, 1), (scaled(1.9), 1), (scaled(0.6), 1), (scaled(2.1), 2), (scaled(1.2), 2),
        (problem, 3), (scaled(2.5, row=4), 4), (problem, 5), (soft_block(1e4, 2), 6),
    ):  # fmt: skip
        solver.pick(case)
        assert len(asked) == expected, expected


def test_contacts_that_press_count_for_the_choice() -> None:
    """The dense work of the exact solver grows with them; a warm start says which they are."""
    problem = soft_block(1e5, 7)
    solver = Auto(AutoOptions(tolerance=1e-4))
    above = make_problem(problem.A, problem.b, problem.J, np.ones(problem.n_contacts), 0.4, dt=0.01, groups=problem.groups)
    forces = np.zeros((problem.n_contacts, 3))
    forces[:, 0] = 1.0
    chosen = [solver.pick(p, w) for p, w in ((above, None), (problem, None), (above, WarmStart(np.zeros(problem.n), forces)))]
    assert chosen[1] == chosen[2] == "cond" and chosen[0] == "exact", chosen


def test_a_start_whose_contacts_are_right_is_for_newton_where_cond_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a step is linearised anew: the contact law holds at the start, the dynamics do not."""
    problem = soft_block(1e4, 7)
    before = make_solver("exact", tolerance=1e-10).solve(problem)
    start = WarmStart(before.v, before.lam)
    anew = replace(problem, b=problem.b * (1.0 + 0.05 * np.random.default_rng(0).standard_normal(problem.n)))
    asked = residuals(anew, start.v, start.lam)
    assert asked.contact < 1e-6 < 1e-4 < asked.dynamics
    solver = Auto(AutoOptions(tolerance=1e-8))
    assert solver.pick(anew, start) == "cond"  # quicker than two Newton steps
    iterations = auto_module._SHARES[auto_module._ANEW] * solver._expected_iterations(problem)
    step = iterations * solver._iteration_seconds(anew) / anew.n**1.5 / solver._slow_factors
    for share, picked in ((0.95, "cond"), (0.85, "cond-newton")):  # at a tie what is set up already stays in use
        monkeypatch.setattr(auto_module, "_NEWTON_STEP_SECOND", share * step)
        assert solver.pick(anew, start) == picked
    monkeypatch.setattr(auto_module, "_NEWTON_STEP_SECOND", 5e-10)
    wrong = WarmStart(before.v, -before.lam)
    assert [solver.pick(anew, one) for one in (start, wrong, None)] == ["cond-newton", "cond", "cond"]
    solution = solver.solve(anew, start)
    assert solution.converged and solution.details["picked"] == "cond-newton" and solution.details["newton_steps"] <= 3
    assert "Picked cond-newton for many iterations of COND." in solution.message
    found = measure(anew, solution.v, solution.lam)
    assert max(found.dynamics_residual, found.contact_residual) <= 1e-8


def test_where_cond_and_exact_are_dear_newton_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a pile: COND needs many iterations, and the exact solver new factors for every problem."""
    problem = soft_block(1e5, 7)
    solver = Auto(AutoOptions(tolerance=1e-8))
    solver._pace = 50.0
    monkeypatch.setattr(auto_module, "_NEWTON_STEP_SECOND", 1e-9)
    assert solver.pick(problem) == "exact"
    monkeypatch.setattr(auto_module, "_ROW_SECOND", 0.0)
    for _ in range(8):  # its factors serve none of them
        solver._exact.recall({})
        solution = solver.solve(problem)
        assert solution.details["picked"] == "exact" and solution.details["factorizations"] == 1
    monkeypatch.setattr(auto_module, "_ROW_SECOND", 1e-6)
    assert solver.pick(problem) == "cond-newton"
    other = Auto(AutoOptions(tolerance=1e-8))
    assert other.pick(problem) == "exact"
    other.recall(solver.memory())
    assert other.pick(problem) == "cond-newton"
    for _ in range(30):  # its factors serve again
        solver._learn(problem, "exact", replace(solution, details=solution.details | {"factorizations": 0}))
    assert solver.pick(problem) == "exact"


def test_local_problems_go_to_exact() -> None:
    problem = make_local_problem(0.5 * np.eye(3), np.array([-1.0, 0.1, -0.1]), 0.5)
    solution = Auto().solve_local(problem)
    assert solution.converged and solution.details["picked"] == "exact"
    np.testing.assert_allclose(solution.lam, [[2.0, -0.2, 0.2]], atol=1e-8)


@pytest.mark.parametrize(
    ("options", "word"),
    [({"tolerance": 1.0}, "tolerance"), ({"max_iterations": 0}, "max_iterations"), ({"backend": "mkl"}, "'mkl'"),
     ({"threads": 0}, "threads")],
)  # fmt: skip
def test_wrong_options_are_named(options: dict, word: str) -> None:
    with pytest.raises(ContactError, match=word):
        AutoOptions(**options)


# ---------------------------------------------------------------------- few unknowns with few contacts


def box_on_its_corners() -> ContactProblem:
    """Box of 1 kg and half a metre's edges that falls 0.1 m/s onto four corners, friction 0.3, pushed sideways."""
    corners = 0.25 * np.array([[1.0, 1.0, -1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, -1.0]])
    J = np.zeros((12, 6))
    for k, arm in enumerate(corners):
        for c, axis in enumerate(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])):
            J[3 * k + c] = np.concatenate([axis, np.cross(arm, axis)])
    A = np.diag([100.0] * 3 + [100.0 / 24.0] * 3)
    b = A @ np.array([0.2, 0.0, -0.1, 0.0, 0.0, 0.0])
    return make_problem(A, b, sp.csr_matrix(J), np.zeros(4), 0.3, dt=0.01, groups=(Group("box", 0, 6, "generalized"),))


@pytest.mark.parametrize(("ratio", "picked"), [(1.0, "exact"), (1e6, "canal")])
def test_a_heavy_body_on_a_light_one_is_no_case_for_dense_factors(ratio: float, picked: str) -> None:
    """Newton's method alone let the heavy one of `selftest heavy_on_light` sink in and make energy."""
    scene = fs.Scene("two", dt=0.01)
    scene.add_floor()
    for k, mass in enumerate((1e-3, 1e-3 * ratio)):
        scene.add_rigid(f"box{k}", fs.Box((0.01, 0.01, 0.01)), mass=mass, position=(0, 0, 0.01 + 0.02 * k))
    stepper = Stepper(scene, make_solver("auto"))
    report = stepper.step()
    assert report.solution.converged and report.solution.details["picked"] == picked


def test_few_contacts_on_few_unknowns_are_solved_by_dense_factors() -> None:
    """The impulse of 0.1 m/s stops it, and friction takes 0.03 m/s of its 0.2."""
    problem, solver = box_on_its_corners(), Auto(AutoOptions())
    assert solver.pick(problem) == "exact"
    solution = solver.solve(problem)
    assert solution.converged and solution.details["tried"] == ("exact",) and solution.details["linear_algebra"] == "lapack"
    np.testing.assert_allclose(solution.v, [0.17, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-9)
    assert "Picked exact for few unknowns with few contacts." in solution.message


def beside(problem: ContactProblem, moved: np.ndarray) -> ContactProblem:
    """The same with a body of 15 coordinates beside it, of 1e5 kg, that contacts move only by its columns ``moved``."""
    n, own = problem.n, 15
    rows = sp.lil_matrix((3 * len(moved), own))
    rows[3 * np.arange(len(moved)), moved] = 1.0
    J = sp.block_diag([problem.J, rows.tocsr()]).tocsr()
    A = sp.block_diag([problem.A, 1e7 * sp.eye(own)]).tocsc()
    b, phi = np.concatenate([problem.b, np.full(own, 1e6)]), np.concatenate([problem.phi[:, 0], np.zeros(len(moved))])
    friction = np.concatenate([problem.friction, np.zeros(len(moved))])
    groups = (*problem.groups, Group("arm", n, n + own, "generalized"))
    return make_problem(A, b, J, phi, friction, dt=problem.dt, groups=groups)


@pytest.mark.parametrize("moved", [[], [7], [7, 9, 14]])
def test_what_moves_beside_the_contacts_changes_no_pick(moved: list[int]) -> None:
    """A robot whose joints at most are at their limits: COND was picked for the box beside it, at ten times the cost."""
    problem, solver = beside(box_on_its_corners(), np.array(moved, dtype=np.int64)), Auto(AutoOptions())
    solution = solver.solve(problem)
    assert solution.converged and "Picked exact for few unknowns with few contacts." in solution.message
    np.testing.assert_allclose(solution.v[:6], [0.17, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(solution.v[6:], 0.1, rtol=1e-12)


def test_exact_finishes_what_cond_found() -> None:
    """COND leaves the dynamics to the tolerance, by which two balls that collide lost momentum; also while exact rests."""
    problem = soft_block(1e8, 3)
    solver = Auto(AutoOptions(tolerance=1e-6))
    solver._exact = Exact(ExactOptions(tolerance=1e-6, max_iterations=1))
    solver._cond = Cond(CondOptions(tolerance=1e-6, max_iterations=50000))
    left = []
    for one in (solver._cond, solver, solver):
        solution = one.solve(problem)
        left.append(np.abs(problem.A @ solution.v - problem.b - problem.J.T @ solution.lam.ravel()).max())
    assert max(left[1:]) < 1e-6 * left[0]
    assert solution.converged and solution.details["tried"] == ("cond", "exact") and solution.details["picked"] == "exact"
    assert "Picked cond for problems like one that exact failed at. The exact solver finished what" in solution.message


def test_columns_on_which_contacts_act_are_marked() -> None:
    rng = np.random.default_rng(3)
    J = sp.random(12, 20, 0.1, "csr", random_state=rng)
    found = np.zeros(20, dtype=np.bool_)
    rows = mark_columns(J.indptr, J.indices, found)
    dense = J.toarray() != 0.0
    assert rows == dense.any(axis=1).sum() < 12 and (found == dense.any(axis=0)).all() and not found.all()


def test_where_dense_factors_fail_canal_goes_on() -> None:
    problem, solver = box_on_its_corners(), Auto(AutoOptions())
    solver._few = Exact(ExactOptions(max_iterations=1, max_sweeps=1))
    solution = solver.solve(problem)
    assert solution.converged and solution.details["tried"] == ("exact", "canal") and solution.details["picked"] == "canal"
    assert "exact, picked for few unknowns with few contacts, did not converge; canal went on." in solution.message
    np.testing.assert_allclose(solution.v, [0.17, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-9)


def test_a_deforming_body_whose_matrix_is_not_positive_definite_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contacts may hold what A does not: CANAL answered, or those after it looked for an answer for a quarter of a second."""
    monkeypatch.setattr(Canal, "solve", None)
    A, J = 100.0 * np.eye(6), np.tile(np.hstack([np.eye(3), np.eye(3)]), (13, 1))
    A[4, 5] = A[5, 4] = 101.0
    groups = (Group("block", 0, 6, "nodes"),)
    problem = make_problem(sp.csc_matrix(A), np.ones(6), sp.csr_matrix(J), np.zeros(13), 0.3, dt=0.01, groups=groups)
    with pytest.raises(NotPositiveError, match="A is not positive definite"):
        Auto(AutoOptions()).solve(problem)


def test_canal_goes_on_from_nothing_where_its_start_led_it_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before COND finished by Newton and the exact solver, which look for long where forces are not unique."""
    problem, tolerance = pile(8, 0), 1e-8
    solver = Auto(AutoOptions(tolerance=tolerance))
    starts: list[bool] = []
    original = Canal.solve

    def astray(self: Canal, given: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        starts.append(warm_start is not None)
        found = original(self, given, warm_start)
        return found if warm_start is None else replace(found, status="stopped at the limit")

    monkeypatch.setattr(Canal, "solve", astray)
    start = WarmStart(np.zeros(problem.n), np.ones((problem.n_contacts, 3)))
    found = solver.solve(problem, start)
    assert found.converged and found.details["tried"] == ("canal", "canal") and starts == [True, False]
    # it takes the place of the one that failed, and is not asked from a start either
    starts.clear()
    assert solver.solve(problem, start).details["tried"] == ("canal",) and starts == [False]


#: Places of eight points on a side of a box, in halves of its width.
RING = [(y, z) for y in (-1.0, 0.0, 1.0) for z in (-1.0, 0.0, 1.0) if y or z]


def box_between_walls() -> ContactProblem:
    """A box that falls between two walls, which it touches at eight points each, without a force."""
    mass, dt, J = np.array([1.0, 1.0, 1.0, 2e-3, 2e-3, 2e-3]), 0.01, []
    for side in (-1.0, 1.0):
        frame = np.array([[-side, 0, 0], [0, 1, 0], [0, 0, -side]])
        for y, z in RING:
            point = 0.0625 * np.array([side, y, z])
            J.append(np.hstack([frame, np.cross(point, frame)]))
    b, groups = np.array([0.0, 0.0, -9.81, 0.0, 0.0, 0.0]), (Group("box", 0, 6, "generalized"),)
    return make_problem(np.diag(mass) / dt, b, sp.csr_matrix(np.vstack(J)), np.zeros(16), 0.5, dt=dt, groups=groups)


def test_forces_that_hold_each_other_and_grow_without_end_are_neither_a_start_nor_the_best_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside 1e9 N of two walls that squeeze a box it may slide: the residuals, relative to forces, are those of an answer."""
    problem, strongest = box_between_walls(), []
    squeezed, free = np.zeros((16, 3)), problem.b / problem.A.diagonal()
    squeezed[:, 0] = 2.0**30  # N; sums of binary fractions of it are exact
    assert residuals(problem, free, squeezed).worst < 1e-8
    start = WarmStart(np.zeros(6), np.zeros((16, 3)))

    def runaway(self: Canal, given: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        return replace(Exact().solve(given), v=free, lam=squeezed, status="stopped at the limit")

    def stopped(self: CondNewton, given: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        assert warm_start is not None
        strongest.append(np.abs(warm_start.lam).max())
        return replace(Cond().solve(given), v=1.00001 * free, lam=np.zeros((16, 3)), status="stopped at the limit")

    monkeypatch.setattr(Canal, "solve", runaway)
    monkeypatch.setattr(CondNewton, "solve", stopped)
    monkeypatch.setattr(auto_module.Auto, "_order", lambda *_: iter(("canal", "cond-newton")))
    found = Auto(AutoOptions()).solve(problem, start)
    assert found.details["tried"] == ("canal", "cond-newton") and found.details["picked"] == "cond-newton"
    assert strongest == [0.0] and not found.lam.any()


def test_what_comes_last_for_forces_that_are_not_unique_takes_few_sweeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With its own 20 000 a problem took seconds, and so did the next ones: single steps of 34 s of `robot_boxes`."""
    problem, solver = pile(8, 0), Auto(AutoOptions())
    asked: list[int] = []
    original = Exact.solve

    def stopped(self: object, given: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        return replace(original(Exact(ExactOptions(tolerance=1e-8)), given), status="stopped at the limit")

    def seen(self: Exact, given: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        asked.append(self.options.max_sweeps)
        return original(self, given, warm_start)

    monkeypatch.setattr(Canal, "solve", stopped)
    monkeypatch.setattr(CondNewton, "solve", stopped)
    monkeypatch.setattr(Exact, "solve", seen)
    for tried in (("canal", "canal", "cond-newton", "exact"), ("exact",)):  # it takes the place of those that failed
        found = solver.solve(problem)
        assert found.converged and found.details["tried"] == tried and found.details["picked"] == "exact"
    assert asked == [1000, 1000]
    twin, memory = Auto(AutoOptions()), solver.memory()
    twin.recall(memory)
    assert "last/data" in memory and memory.keys() == twin.memory().keys()
    np.testing.assert_array_equal(twin.solve(problem).v, solver.solve(problem).v)


@pytest.mark.parametrize(
    ("dishes", "astray", "tried"),
    [(8, True, ("canal", "cond-newton")), (40, False, ("canal", "canal", "cond-newton"))],
)
def test_the_exact_solver_does_not_come_last_where_it_would_look_long(
    monkeypatch: pytest.MonkeyPatch, dishes: int, astray: bool, tried: tuple[str, ...]
) -> None:
    """Many contacts took it 2 to 7 s a problem, and forces without end, which CANAL has left, it follows to 1e10 N."""
    original = CondNewton.solve

    def stopped(self: object, given: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        found = original(CondNewton(CondNewtonOptions(max_iterations=1)), given)
        return replace(found, status="stopped at the limit", details={"from_nothing": astray})

    monkeypatch.setattr(Canal, "solve", stopped)
    monkeypatch.setattr(CondNewton, "solve", stopped)
    found = Auto(AutoOptions()).solve(pile(dishes, 0))
    assert found.details["tried"] == tried and not found.converged


def test_fewer_digits_spare_the_exact_solver_half_of_what_they_spare_cond() -> None:
    """Near the tie of both for eight digits COND is picked for four, and where it takes twice as long it is not."""
    for young, picked in ((1.5e5, "cond"), (3e5, "exact")):
        problem = soft_block(young)
        assert make_solver("auto").pick(problem) == "exact"
        assert make_solver("auto").pick(replace(problem, enough=1e-4)) == picked
