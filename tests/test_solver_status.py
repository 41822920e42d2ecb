"""What is not finite or overflows is never called converged: the judge, and every solver of the registry in both forms."""

from __future__ import annotations

import math
import pkgutil
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from registry import LIMITED

from contact import (
    SOLVERS,
    ContactProblem,
    Group,
    LocalProblem,
    Solution,
    WarmStart,
    make_local_problem,
    make_problem,
    make_solver,
    metrics as yardstick,
)
from contact.errors import ContactError
from contact.local import measure_local
from contact.metrics import Residuals
from contact.metrics_kernels import relative
from contact.solvers.base import SolverOptions
from contact.solvers.judge import BALANCE_FACTOR, Judge, Row, drive

#: Numbers that no answer may hold: the square of the last one overflows.
BAD = (math.nan, math.inf, -math.inf, 1e170)
LOCAL = sorted(name for name, entry in SOLVERS.items() if hasattr(entry.solver, "solve_local"))

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, about the numbers given here


def two_links(load: float = 1.0) -> ContactProblem:
    """Two links of a rod on a floor, pressed and pushed: a problem that every solver of the registry takes."""
    J = np.zeros((6, 12))
    J[0:3, 0:3] = J[3:6, 6:9] = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    A = 2.0 * np.eye(12)
    A[[0, 6], [6, 0]] = -0.5
    b = load * np.tile([0.3, 0.1, -1.0, 0.0, 0.0, 0.0], 2)
    return make_problem(A, b, J, np.zeros(2), 0.5, dt=0.01, groups=(Group("rod", 0, 12, "links"),))


def two_contacts(load: float = 1.0) -> LocalProblem:
    return make_local_problem(np.eye(6) + 0.1, load * np.array([[-1.0, 0.3, 0.0], [-0.5, 0.9, 0.1]]), 0.5)


def is_true(problem: ContactProblem | LocalProblem, solution: Solution, tolerance: float) -> bool:
    """Whether an answer that is called converged holds by the yardstick; one that is not so called says nothing wrong."""
    if not solution.converged:
        return solution.status in ("failed", "stopped at rounding", "stopped at the limit")
    if isinstance(problem, LocalProblem):
        found = measure_local(problem, solution.lam).contact_residual
    else:
        measured = yardstick.measure(problem, solution.v, solution.lam)
        found = measured.dynamics_residual + measured.contact_residual
    return bool(np.isfinite(solution.lam).all() and np.isfinite(solution.v).all() and found <= 2 * tolerance)


@pytest.mark.parametrize("scale", [1.0, *BAD, 0.0])
@pytest.mark.parametrize("residual", BAD[:3])
def test_a_residual_that_is_not_finite_stays_so(residual: float, scale: float) -> None:
    assert math.isnan(relative(residual, scale))


def test_relative_residuals() -> None:
    assert relative(1.0, 4.0) == 0.25 and relative(0.0, 0.0) == 0.0
    assert math.isnan(relative(1.0, math.inf)) and math.isnan(relative(0.0, math.nan))


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("entry", range(6))
def test_the_judge_calls_it_failed_and_keeps_the_best_iterate(bad: float, entry: int) -> None:
    rod, contacts = two_links(), two_contacts()
    for problem, v in ((rod, np.ones(12)), (contacts, np.zeros(0))):
        judge, good = Judge(problem, 1e-3), np.ones(6)
        assert not judge.look(v, good, 0) and not judge.failed
        lam = good.copy()
        lam[entry] = bad
        assert judge.look(v, lam, 1) and judge.failed and not judge.converged
        judge.record([(None, None, 0.0)] * 2)
        solution = judge.solution({}, {})
        assert solution.status == "failed" and np.array_equal(solution.lam.ravel(), good) and "not finite" in solution.message
    wrong = np.ones(12)
    wrong[entry] = bad
    judge = Judge(rod, 1e-3)
    assert judge.look(wrong, np.ones(6), 0) and judge.failed and not judge.converged


@pytest.mark.parametrize("name", Residuals._fields)
def test_each_residual_alone_keeps_an_answer_from_being_converged(name: str) -> None:
    """The balance of a body may be five times the tolerance; none may be NaN."""
    tolerance = 1e-3
    bound = BALANCE_FACTOR * tolerance if name == "balance" else tolerance
    for value, good, excess in ((bound, True, tolerance), (1.001 * bound, False, 1.001 * tolerance), (math.nan, False, math.inf)):
        found = Residuals(0.0, 0.0, 0.0, 0.0)._replace(**{name: value})
        judge = Judge(two_links(), tolerance, lambda v, lam, law, found=found: found)
        assert judge.look(np.zeros(12), np.zeros(6), 0) == (good or math.isnan(value))
        assert (judge.converged, judge.failed) == (good, math.isnan(value))
        assert judge.excess == pytest.approx(0.0 if name == "contact" and math.isfinite(value) else excess)


@pytest.mark.parametrize(("balance", "good"), [(0.9e-9, True), (1.1e-9, False), (math.nan, False)])
def test_a_balance_may_be_off_by_rounding_however_sharp_an_answer_should_be(balance: float, good: bool) -> None:
    """A link of a rod that no load pulls had 1e-10 of the forces that cancel in it: at 1e-11 three pendulums in 39 failed."""
    judge = Judge(two_links(), 1e-11, lambda v, lam, law: Residuals(0.0, 0.0, balance, 0.0))
    judge.look(np.zeros(12), np.zeros(6), 0)
    assert judge.converged == good and judge.failed == math.isnan(balance)


def test_the_best_iterate_is_kept_although_the_method_goes_on_in_its_arrays() -> None:
    rod = two_links()
    found = make_solver("exact", tolerance=1e-10).solve(rod)
    judge, v, lam = Judge(rod, 1e-6), found.v.copy(), found.lam.copy()
    assert judge.look(v, lam, 0)
    v[:], lam[:] = 7.0, 8.0
    judge.record([(None, None, 0.0)])
    solution = judge.solution({}, {})
    assert np.array_equal(solution.v, found.v) and np.array_equal(solution.lam, found.lam)


@pytest.mark.parametrize("bad", BAD)
def test_forces_without_any_velocity_are_judged_too(bad: float) -> None:
    """Where nothing moves, the scale alone overflows: the residual must not become 0 for that."""
    fixed = make_local_problem(np.zeros((3, 3)), np.array([[1.0, 0.0, 0.0]]), 0.5)
    judge = Judge(fixed, 1e-3)
    assert judge.look(np.zeros(0), np.array([bad, 0.0, 0.0]), 0) and judge.failed and not judge.converged


@pytest.mark.parametrize("limit", [1, 200])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", SOLVERS)
def test_no_solver_takes_a_bad_start_for_the_answer(name: str, bad: float, limit: int) -> None:
    """What is not finite is refused. Else a solver may get over a bad number, but what it calls converged is an answer."""
    rod = two_links()
    for v, lam in ((bad, 0.0), (0.0, bad), (bad, bad)):
        solver, start = make_solver(name, tolerance=1e-6, max_iterations=limit), WarmStart(np.full(12, v), np.full((2, 3), lam))
        if math.isfinite(bad):
            assert is_true(rod, solver.solve(rod, start), 1e-6)
        else:
            with pytest.raises(ContactError, match=rf"of the warm start holds {bad} at entry 0; every value must be finite"):
                solver.solve(rod, start)
    assert name in LIMITED or make_solver(name, tolerance=1e-6).solve(rod).converged


@pytest.mark.parametrize("limit", [1, 200])
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", LOCAL)
def test_no_local_form_takes_a_bad_start_for_the_answer(name: str, bad: float, limit: int) -> None:
    problem = two_contacts()
    for entries in ([0], [4], list(range(6))):
        start = np.zeros(6)
        start[entries] = bad
        solver: Any = make_solver(name, tolerance=1e-6, max_iterations=limit)
        warm = WarmStart(np.zeros(0), start.reshape(2, 3))
        if math.isfinite(bad):
            assert is_true(problem, solver.solve_local(problem, warm), 1e-6)
        else:
            with pytest.raises(ContactError, match=rf"lam of the warm start holds {bad} at entry {entries[0]}"):
                solver.solve_local(problem, warm)
    assert name in LIMITED or make_solver(name, tolerance=1e-6).solve_local(problem).converged  # type: ignore[attr-defined]


#: Starts that do not fit ``two_links`` and ``two_contacts``, and what is said of them.
UNFIT: tuple[tuple[Any, str], ...] = (
    (WarmStart(np.zeros(12), np.zeros((1, 3))), r"lam .* has shape \(1, 3\); it needs \(2, 3\), three forces for each of 2"),
    (WarmStart(np.zeros(12), np.zeros((0, 3))), r"lam .* has shape \(0, 3\); it needs \(2, 3\)"),
    (WarmStart(np.zeros(12), np.zeros((4, 3))), r"lam .* has shape \(4, 3\); it needs \(2, 3\)"),
    (WarmStart(np.zeros(12), np.zeros((3, 2))), r"lam .* has shape \(3, 2\); it needs \(2, 3\)"),
    (WarmStart(np.zeros(12), None), r"lam of the warm start is NoneType; it needs real numbers of shape \(2, 3\)"),  # type: ignore[arg-type]
    (WarmStart(np.zeros(12), np.zeros((2, 3), complex)), "lam of the warm start is ndarray; it needs real numbers"),
    (WarmStart(np.zeros(12), [[0.0], [0.0, 1.0]]), "lam of the warm start is list; it needs real numbers"),  # type: ignore[arg-type]
    (WarmStart(np.zeros(12), np.zeros((2, 3)), np.zeros(4)), r"row_forces .* has shape \(4,\); it needs \(0,\)"),
    ((np.zeros(12), np.zeros((2, 3))), "the warm start is tuple; give a WarmStart"),
)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_start_that_does_not_fit_the_problem_is_refused(name: str) -> None:
    """Kernels read as many forces as the problem has contacts: what an array lacks was read from memory behind it."""
    solver: Any = make_solver(name)
    short = WarmStart(np.zeros(11), np.zeros((2, 3)))
    for start, said in (*UNFIT, (short, r"v .* has shape \(11,\); it needs \(12,\), one velocity for each row of A")):
        with pytest.raises(ContactError, match=said):
            solver.solve(two_links(), start)
    for start, said in UNFIT if name in LOCAL else ():
        with pytest.raises(ContactError, match=said):
            solver.solve_local(two_contacts(), start)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_start_of_lists_or_whole_numbers_is_that_of_floats(name: str) -> None:
    v, lam = np.zeros(12), np.array([[3.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    given = (WarmStart(v, lam), WarmStart(v.tolist(), lam.tolist()), WarmStart(v, lam.astype(int)), WarmStart(v, lam.ravel()))  # type: ignore[arg-type]
    for problem in (two_links(), two_contacts())[: 1 + (name in LOCAL)]:
        solvers = [make_solver(name, max_iterations=20) for _ in given]
        solves: list[Any] = [s.solve if isinstance(problem, ContactProblem) else s.solve_local for s in solvers]  # type: ignore[attr-defined]
        first, *others = (solve(problem, start) for solve, start in zip(solves, given, strict=True))
        for other in others:
            np.testing.assert_array_equal(other.lam, first.lam)


@pytest.mark.parametrize("name", SOLVERS)
def test_loads_whose_squares_overflow_are_a_failure(name: str) -> None:
    solution = make_solver(name).solve(two_links(1e170))
    assert solution.status == "failed" and "not finite" in solution.message


@pytest.mark.parametrize("name", LOCAL)
def test_loads_of_a_local_problem_whose_squares_overflow_are_no_answer(name: str) -> None:
    solution = make_solver(name).solve_local(two_contacts(1e170))  # type: ignore[attr-defined]
    assert not solution.converged


#: Seeds of W without any sign for which iterations run away: before the judge looked, exact gave NaN, 9e153 and 5e154 N.
RUNAWAYS = (3, 17, 80, 85)


@pytest.mark.parametrize("seed", RUNAWAYS)
@pytest.mark.parametrize("name", ["exact", "auto", "pgs", "apgd"])
def test_forces_that_run_away_are_no_answer(name: str, seed: int) -> None:
    """W with positive blocks of each contact and anything between them; nothing says that there is a solution."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 5)
    W = rng.standard_normal((3 * n, 3 * n))
    W += 0.0 if seed % 2 else 3.0 * np.eye(3 * n)
    for i in range(n):
        own = slice(3 * i, 3 * i + 3)
        W[own, own] = W[own, own] @ W[own, own].T * 0.3
    problem = make_local_problem(W, rng.standard_normal((n, 3)) * [1.0, 0.3, 0.3] - 0.5, float(rng.uniform(0, 2)))
    limits = {"max_sweeps": 3000} if name == "exact" else {"max_iterations": 3000}
    solution = make_solver(name, **limits).solve_local(problem)  # type: ignore[attr-defined]
    assert is_true(problem, solution, 1e-5) and np.isfinite(solution.lam).all()


# ---------------------------------------------------------------------- the driver


class Scripted:
    """A method that answers with given forces of :func:`two_contacts`, one after the other."""

    over = failed = False

    def __init__(self, *answers: np.ndarray, rows: int = 2) -> None:
        self.answers, self.rows, self.best, self.asked = list(answers), rows, -1, list[tuple[float, int]]()

    def until(self, aim: float, limit: int) -> list[Row]:
        self.asked.append((aim, limit))
        self.best += min(self.rows, limit)
        return [(0.0, 0.5, 1.0)] * min(self.rows - 1, limit - 1) + [(None, None, 2.0)]

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(0), self.answers[min(len(self.asked), len(self.answers)) - 1]


def answer_and_others() -> tuple[LocalProblem, np.ndarray, np.ndarray, np.ndarray]:
    problem = two_contacts()
    lam = make_solver("exact", tolerance=1e-12).solve_local(problem).lam  # type: ignore[attr-defined]
    return problem, lam, 1.5 * lam, 1.1 * lam


def test_a_method_that_the_judge_does_not_believe_is_asked_for_more() -> None:
    problem, right, far, near = answer_and_others()
    judge, method = Judge(problem, 1e-6), Scripted(far, near, right)
    drive(method, judge, 50)
    solution = judge.solution({"a": 1.0}, {"b": 2})
    assert [limit for _, limit in method.asked] == [50, 48, 46] and [aim for aim, _ in method.asked] == sorted(
        {aim for aim, _ in method.asked}, reverse=True
    )
    assert solution.converged and solution.iterations == 6 and np.array_equal(solution.lam, right)
    assert "Converged in 6 iterations" in solution.message and solution.timings == {"a": 1.0} and solution.details == {"b": 2}
    known = [measure_local(problem, lam).contact_residual for lam in (far, near, right)]
    np.testing.assert_array_equal(solution.history.contact, [0.5, known[0], 0.5, known[1], 0.5, known[2]])
    np.testing.assert_array_equal(solution.history.step_norm, [1.0, 2.0] * 3)


def test_at_the_limit_the_best_answer_is_returned() -> None:
    problem, _, far, near = answer_and_others()
    judge, method = Judge(problem, 1e-6), Scripted(far, near, far, rows=3)
    drive(method, judge, 7)
    solution = judge.solution({}, {}, "A note.")
    assert [limit for _, limit in method.asked] == [7, 4, 1]
    assert solution.status == "stopped at the limit" and solution.iterations == 7 and np.array_equal(solution.lam, near)
    assert solution.message.startswith("Stopped at the limit of 7 iterations (dynamics residual 0.00e+00, contact residual ")
    assert solution.message.endswith("returned is the best iterate, that of iteration 6). A note.")


@pytest.mark.parametrize(("over", "failed"), [(True, False), (True, True), (False, True)])
def test_a_method_that_cannot_go_on_is_asked_once(over: bool, failed: bool) -> None:
    """It failed, whatever its best answer is, unless that converged."""
    problem, right, far, _ = answer_and_others()
    for lam, status in ((far, "failed" if failed else "stopped at the limit"), (right, "converged")):
        method = Scripted(lam)
        method.over, method.failed = over, failed
        judge = Judge(problem, 1e-6)
        drive(method, judge, 50)
        assert len(method.asked) == 1 and judge.solution({}, {}).status == status


@pytest.mark.parametrize(
    ("name", "where"), [("canal", "augmented.AugmentedLagrangian.advance"), ("subadmm", "subadmm_kernels.iterate")]
)
def test_a_method_that_fails_after_a_good_iterate_ends(name: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was asked for more: a swinging rope led `canal` to an error there, and `subadmm` would never have ended."""
    module, _, function = f"contact.solvers.{where}".rpartition(".")
    owner = pkgutil.resolve_name(module)
    real, calls = getattr(owner, function), 0

    def fails_later(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        done = real(*args)
        if calls > 1 and name == "canal":
            args[0].failed, args[0].dynamics = True, math.inf
        elif calls > 1:
            args[8][:] = math.nan
        return done

    monkeypatch.setattr(owner, function, fails_later)
    solution = make_solver(name, tolerance=1e-14).solve(two_links())
    assert calls == 2 and solution.status == "failed" and np.isfinite(solution.v).all()


# ---------------------------------------------------------------------- common options


@pytest.mark.parametrize("name", SOLVERS)
def test_all_options_extend_the_common_ones_and_are_described(name: str) -> None:
    options = SOLVERS[name].options
    assert issubclass(options, SolverOptions) and options.solver_name == name
    text = options.describe()
    for field in fields(options):
        assert sum(line.startswith(f"{field.name} :") for line in text.splitlines()) == 1, field.name
    for option, value in (("tolerance", 0.0), ("tolerance", math.nan), ("max_iterations", 0)):
        with pytest.raises(ContactError, match=f"option {option} of solver '{name}' is {value!r}; allowed are"):
            options(**{option: value})


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("admm", {"every": "abc"}, "option every of solver 'admm' is 'abc'; allowed are integers >= 1"),
        ("admm", {"every": 1.5}, "option every of solver 'admm' is 1.5; allowed are integers >= 1"),
        ("admm", {"every": True}, "option every of solver 'admm' is True; allowed are integers >= 1"),
        ("admm", {"penalty": "abc"}, "option penalty of solver 'admm' is 'abc'; allowed are positive numbers and 'spectral'"),
        ("admm", {"accelerate": "abc"}, "option accelerate of solver 'admm' is 'abc'; allowed are True and False (on and off)."),
        ("admm", {"scaling": 3}, "option scaling of solver 'admm' is 3; allowed are 'contact' and 'none'"),
        ("cond", {"chebyshev": "abc"}, "is 'abc'; allowed are True and False (on and off), and None."),
        ("cond", {"gain": "x"}, "option gain of solver 'cond' is 'x'; allowed are positive numbers in N s/m, or None"),
        ("cond", {"gain": math.inf}, "option gain of solver 'cond' is inf; allowed are positive numbers"),
        ("pgs", {"relaxation": "nan"}, "option relaxation of solver 'pgs' is 'nan'; allowed are numbers above 0 up to 1"),
        ("pgs", {"relaxation": [1]}, "option relaxation of solver 'pgs' is [1]; allowed are"),
        ("pgs", {"relaxation": np.ones(2)}, "option relaxation of solver 'pgs' is array([1., 1.]); allowed are"),
        ("exact", {"lag": 2}, "option lag of solver 'exact' is 2; allowed are True and False"),
        ("exact", {"threads": 100000}, "option threads of solver 'exact' is 100000; allowed are integers from 1 to "),
        ("exact", {"max_iterations": math.inf}, "option max_iterations of solver 'exact' is inf; allowed are integers >= 1"),
        ("exact", {"max_iterations": 10**400}, "option max_iterations of solver 'exact' is 1000"),
        ("exact", {"max_iterations": 10**9999}, "option max_iterations of solver 'exact' is one int that is too long to show"),
        ("exact", {"tolerance": 10**400}, "option tolerance of solver 'exact' is 1000"),
        ("auto", {"max_iterations": 1.5}, "option max_iterations of solver 'auto' is 1.5; allowed are integers >= 1, or None"),
    ],
)
def test_options_of_another_kind_are_named(name: str, options: dict[str, Any], said: str) -> None:
    """A text would end in a traceback, half an iteration would be accepted, and "off" would mean on."""
    with pytest.raises(ContactError) as caught:
        make_solver(name, **options)
    assert said in str(caught.value), caught.value


def test_words_are_flags_and_numbers_without_a_fraction_are_whole() -> None:
    """As they are written on a command line."""
    for word, flag in (("off", False), ("no", False), ("False", False), (0, False), ("on", True), ("Yes", True), ("true", True)):
        options = SOLVERS["ccs"].options(virtual_nodes=word)  # type: ignore[call-arg]
        assert options.virtual_nodes is flag  # type: ignore[attr-defined]
    options = SOLVERS["admm"].options(max_iterations=1e3, every=np.int64(7), penalty=2)  # type: ignore[call-arg, arg-type]
    assert [repr(getattr(options, n)) for n in ("max_iterations", "every", "penalty")] == ["1000", "7", "2.0"]


def test_a_solver_is_named_by_a_text() -> None:
    with pytest.raises(ContactError, match="a solver is named by a text, not by NoneType; there are 'auto', "):
        make_solver(None)  # type: ignore[arg-type]
