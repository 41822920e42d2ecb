"""Solvers of users, solvers with options, sets of problems, time limits, metrics of papers/004 and performance profiles."""

from __future__ import annotations

import csv
import math
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call, assert_sentence
from random_problems import random_global, random_local
from slow_twins import body_between_nodes, closest_in_cone, natural_map_residual

import femsim as fs
from contact import SOLVERS, ContactError, WarmStart, make_solver, measure
from contact.compiled import Kernel
from femsim.base.place import data_folder
from femsim.studies.problems import bench
from femsim.studies.problems.arena import expand_sets, limited, load_plugin, read_entrant
from femsim.studies.problems.bench import BenchRow
from femsim.studies.problems.pages import paper_metrics, profiles_of
from femsim.studies.problems.profiles import largest_ratio, performance_profiles
from femsim.studies.problems.sets import GENERATED, bars, sphere_stack
from viz import plot_performance

PLUGIN = '''
import numpy as np
import femsim as fs


def jacobi(problem, start, relaxation=0.3):
    """Projected Jacobi on W."""
    local, lam = fs.condense(problem), start
    while True:
        trial = lam - relaxation * local.scales[:, None] * local.contact_velocity(lam)
        normal, slip = np.maximum(trial[:, 0], 0.0), np.linalg.norm(trial[:, 1:], axis=1)
        part = np.minimum(1.0, local.friction * normal / np.maximum(slip, 1e-300))
        lam = np.column_stack([normal, part[:, None] * trial[:, 1:]])
        yield lam


fs.register_solver("jacobi", jacobi)
'''


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Put the registry back."""
    before = dict(SOLVERS)
    yield
    SOLVERS.clear()
    SOLVERS.update(before)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("mine.py")
    path.write_text(PLUGIN)
    return path


def exact_forces(problem: Any, tolerance: float) -> Any:
    """Forces of the exact solver."""
    solver: Any = make_solver("exact", tolerance=tolerance)
    return (solver.solve(problem) if isinstance(problem, fs.ContactProblem) else solver.solve_local(problem)).lam


# ---------------------------------------------------------------------- solvers of users


def test_a_function_that_yields_is_judged_iterate_by_iterate(plugin: Path) -> None:
    assert load_plugin(plugin) == ["jacobi"] and SOLVERS["jacobi"].description == "Projected Jacobi on W."
    problem = body_between_nodes(np.random.default_rng(2), 6, 5)
    solution = make_solver("jacobi", tolerance=1e-7, max_iterations=20000, relaxation=0.2).solve(problem)
    assert solution.converged and 5 < solution.iterations == len(solution.history.contact)
    assert natural_map_residual(problem, solution.v, solution.lam) < 1e-6
    assert solution.history.contact[-1] <= 1e-7 < solution.history.contact[-2]
    limited_run = make_solver("jacobi", max_iterations=3, tolerance=1e-9).solve(problem)
    assert limited_run.status == "stopped at the limit" and limited_run.message.startswith("Stopped at the limit of 3")
    warm = make_solver("jacobi", tolerance=1e-6).solve(problem, WarmStart(solution.v, solution.lam))
    assert warm.iterations == 1


@pytest.mark.parametrize("anisotropic", [False, True])
def test_a_function_that_returns_once(anisotropic: bool) -> None:
    problem = random_global(3, anisotropic=anisotropic)
    seen: list[Any] = []

    def solve(given: Any, tolerance: float) -> Any:
        seen.append((given.is_isotropic, tolerance))
        return exact_forces(given, tolerance)

    fs.register_solver("once", solve)
    solution = make_solver("once", tolerance=1e-8).solve(problem)
    assert solution.converged and seen == [(True, 1e-8)], solution.message
    assert measure(problem, solution.v, solution.lam).contact_residual <= 1e-8
    fs.register_solver("once", lambda given: 0.9 * exact_forces(given, 1e-8))  # replaced; and worse
    worse = make_solver("once").solve(problem)
    assert worse.status == "stopped at the limit" and worse.message.startswith("Its function ended after 1 iterations")


def test_velocities_of_a_function_are_taken_as_they_are() -> None:
    problem = body_between_nodes(np.random.default_rng(2), 6, 5)
    right = make_solver("exact", tolerance=1e-10).solve(problem)
    fs.register_solver("both", lambda given: (1.1 * right.v, right.lam))
    solution = make_solver("both").solve(problem)
    assert not solution.converged and np.array_equal(solution.v, 1.1 * right.v)


def test_a_local_problem_goes_to_the_function_as_it_is() -> None:
    problem = random_local(np.random.default_rng(1), 3, asymmetry=0.1)
    assert fs.condense(problem) is problem
    fs.register_solver("local", lambda given: exact_forces(given, 1e-9))
    solver: Any = make_solver("local", tolerance=1e-8)
    assert solver.solve_local(problem).converged


def test_condensing_is_the_delassus_operator() -> None:
    problem = body_between_nodes(np.random.default_rng(2), 6, 5)
    local, A, J = fs.condense(problem), problem.A.toarray(), problem.J.toarray()
    np.testing.assert_allclose(local.W, J @ np.linalg.solve(A, J.T), atol=1e-12)
    np.testing.assert_allclose(local.q.ravel(), J @ np.linalg.solve(A, problem.b) + problem.phi.ravel(), atol=1e-12)


@pytest.mark.parametrize(
    ("name", "function", "words"),
    [
        ("pgs", lambda problem: None, "'pgs' is there already"),
        ("a b", lambda problem: None, "name 'a b'"),
        ("a:b", lambda problem: None, "name 'a:b'"),
        ("mine", 3, "'mine' is int; give a function"),
        ("mine", lambda: None, "takes no argument"),
        ("mine", lambda problem, other: None, "parameter 'other' of solver 'mine' has no default"),
    ],
)
def test_what_cannot_be_a_solver_is_named(name: str, function: Any, words: str) -> None:
    with pytest.raises(ContactError, match=words):
        fs.register_solver(name, function)
    assert "mine" not in SOLVERS


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (np.zeros(4), r"gave forces \(4,\)"),
        (None, "gave forces NoneType"),
        ("nothing", "gave forces str"),
        ((np.zeros(2), np.zeros((5, 3))), r"gave velocities \(2,\)"),
    ],
)
def test_what_is_no_answer_is_named(found: Any, words: str) -> None:
    fs.register_solver("mine", lambda problem: found)
    with pytest.raises(ContactError, match=f"solver 'mine' {words}; it must return, or yield, forces of 5 contacts"):
        make_solver("mine").solve(body_between_nodes(np.random.default_rng(2), 6, 5))


def test_an_answer_that_is_not_finite_is_a_failure() -> None:
    fs.register_solver("mine", lambda problem: np.full((5, 3), np.nan))
    assert make_solver("mine").solve(body_between_nodes(np.random.default_rng(2), 6, 5)).status == "failed"


def test_errors_of_a_function_have_its_name_and_line() -> None:
    def fails(problem: Any) -> Any:
        return 1 / 0

    def fails_later(problem: Any) -> Any:
        yield np.zeros((5, 3))
        raise KeyError("x")

    problem = body_between_nodes(np.random.default_rng(2), 6, 5)
    for function, words in ((fails, "ZeroDivisionError"), (fails_later, "KeyError")):
        fs.register_solver("mine", function)
        with pytest.raises(ContactError, match=rf"solver 'mine' raised {words}: .* \(line \d+ of .*test_arena.py\)"):
            make_solver("mine").solve(problem)


def test_options_of_a_function_are_known() -> None:
    fs.register_solver("mine", lambda problem, start, relaxation=0.3: None)
    with pytest.raises(ContactError, match=r"no option 'relax' \(did you mean 'relaxation'\?\)"):
        make_solver("mine", relax=1.0)
    with pytest.raises(ContactError, match="option tolerance of solver 'mine' is 2"):
        make_solver("mine", tolerance=2)


# ---------------------------------------------------------------------- plugins


def test_plugins_serve_bench_solve_and_run(plugin: Path, call: Call) -> None:
    fs.write_fclib("one.hdf5", body_between_nodes(np.random.default_rng(2), 6, 5))
    command = [
        "bench",
        "one.hdf5",
        "--plugin",
        str(plugin),
        "--solvers",
        "jacobi:relaxation=0.2,exact",
        "--out",
        "out",
        "--quiet",
    ]
    status, _, error = call(*command, "--tolerance", "1e-4", "--max-iterations", "5000", "--repeat", "1")
    assert status == 0, error
    rows = list(csv.DictReader(Path("out/bench.csv").read_text().splitlines()))
    assert [row["solver"] for row in rows] == ["jacobi:relaxation=0.2", "exact"] and rows[0]["status"] == "converged"
    solver = "jacobi:relaxation=0.2:max_iterations=4000"
    status, output, error = call("solve", "one.hdf5", "--plugin", str(plugin), "--solver", solver, "--tolerance", "1e-4")
    assert status == 0 and "jacobi" in output, error
    assert_sentence(*call("solve", "one.hdf5", "--solver", "jacob"), "solver 'jacob' is unknown")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ("'mine.py' does not exist",)),
        ("x = 1\ny = 1 / 0\n", ("mine.py, line 2", "ZeroDivisionError")),
        ("def (:\n", ("mine.py, line 1", "SyntaxError")),
        ("x = 1\n", ("registers no solver", "register_solver")),
        ("import femsim as fs\nfs.register_solver('pgs', lambda p: 0)\n", ("mine.py", "'pgs' is there already")),
        ("raise SystemExit(1)\n", ("mine.py, line 1", "SystemExit")),
    ],
)
def test_plugins_that_fail_are_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, text: str | None, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("mine.py").write_text(text)
    assert_sentence(*call("bench", "small", "--plugin", "mine.py", "--quiet"), *words)
    assert not Path("runs").exists()


# ---------------------------------------------------------------------- solvers and problems on one line


def test_solvers_with_options() -> None:
    assert read_entrant("admm").options == {}
    found = read_entrant("admm: every=3 :penalty=0.5:policy=fixed:accelerate=false:linear=dual")
    assert found.name == "admm"
    assert found.options == {"every": 3, "penalty": 0.5, "policy": "fixed", "accelerate": False, "linear": "dual"}
    make_solver(found.name, **found.options)


@pytest.mark.parametrize(
    ("solvers", "words"),
    [
        ("admn:every=1", ("solver 'admn' is unknown; did you mean 'admm'?",)),
        ("admm:evry=1", ("no option 'evry' (did you mean 'every'?)",)),
        ("admm:every=0", ("option every of solver 'admm' is 0", "integers >= 1")),
        ("admm:every", ("the part 'every'", "name:option=value")),
        ("admm:=3", ("the part '=3'",)),
        ("admm:every=2:every=3", ("gives the option 'every' twice",)),
        ("pgs:relaxation=nan", ("option relaxation of solver 'pgs' is 'nan'", "above 0 up to 1")),
    ],
)
def test_wrong_solvers_are_sentences(tmp_path: Path, call: Call, solvers: str, words: tuple[str, ...]) -> None:
    assert_sentence(*call("bench", "small", "--solvers", solvers, "--out", str(tmp_path / "out"), "--quiet"), *words)


def test_folders_and_sets_are_their_files(tmp_path: Path) -> None:
    for name in ("b.hdf5", "a.h5", "notes.txt"):
        (tmp_path / name).write_text("")
    assert [path.name for path in expand_sets([tmp_path])] == ["a.h5", "b.hdf5"]
    small = expand_sets(["small", "x.hdf5"])
    assert small[:-1] == sorted(data_folder("problems").glob("*.hdf5")) and len(small) >= 11 and small[-1] == Path("x.hdf5")
    (tmp_path / "empty").mkdir()
    with pytest.raises(fs.InputError, match="empty has no problem"):
        expand_sets([tmp_path / "empty"])


def test_sets_that_programs_write_are_solved(tmp_path: Path) -> None:
    rows = fs.bench(["stack", "ring", "mechanisms"], ["exact"], tolerance=1e-6, repeat=1)
    assert len(rows) == 26 and {row.status for row in rows} == {"converged"}
    by_name = {row.problem: row for row in rows}
    assert by_name["ring, closed-8-1000"].contacts == 32 and by_name["ring, closed-8-1000"].row_residual <= 1e-12
    assert by_name["mechanisms, four-bar-twice"].velocities == 24
    again = dict(GENERATED["mechanisms"]())["drawn-4-15-1000-30"]
    same = dict(GENERATED["mechanisms"]())["drawn-4-15-1000-30"]
    assert np.array_equal(again.b, same.b) and again.n == 90 and again.rows is not None and again.rows.n_rows == 68


def test_the_sphere_stack_of_the_paper_weighs_what_it_weighs() -> None:
    problem = sphere_stack()
    found = make_solver("exact", tolerance=1e-10).solve(problem)
    weights = 9.81 * np.cumsum(([1000.0] + [10.0] * 9 + [10000.0] + [10.0] * 10)[::-1])[::-1]
    assert found.lam[:, 0] == pytest.approx(weights, rel=1e-8)
    pulled = make_solver("exact", tolerance=1e-10).solve(sphere_stack(pulled=True))
    assert pulled.lam[10, 0] == 0.0  # the contact below the heavy one opens


def test_bars_are_soft_or_stiff_bodies_that_lie_on_each_other() -> None:
    soft, stiff = (bars(modulus, (2, 1, 1)) for modulus in (1e6, 2e11))
    assert soft.n == stiff.n == 15 * 36 and soft.n_contacts == stiff.n_contacts > 60
    assert stiff.diagonal.max() > 1e4 * soft.diagonal.max()


def test_ten_small_problems_one_of_each_kind_are_solved(tmp_path: Path) -> None:
    rows = fs.bench(["small"], ["exact", "admm"], tolerance=1e-6, max_iterations=5000, repeat=1)
    assert len({row.problem for row in rows}) >= 10
    assert {row.status for row in rows} == {"converged"}, [row for row in rows if row.status != "converged"]


# ---------------------------------------------------------------------- time


def test_a_block_ends_after_its_cpu_time() -> None:
    handler = signal.getsignal(signal.SIGALRM)
    started = time.process_time()
    with pytest.raises(TimeoutError), limited(0.05):
        while time.process_time() - started < 5.0:
            pass
    assert 0.04 < time.process_time() - started < 1.0
    with limited(0.02):
        time.sleep(0.1)  # no CPU time
    with limited(None):
        pass
    assert signal.getsignal(signal.SIGALRM) is handler and signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


def test_a_kernel_is_compiled_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM drops an error that is raised while it hands over the code: numba had none, and the benchmark ended as a bug.

    Nor does the time count: what is over time would else depend on the cache.
    """
    started, reached = time.process_time(), ""
    with pytest.raises(TimeoutError), limited(0.05):
        monkeypatch.setattr(Kernel, "under_way", 1)
        while time.process_time() - started < 0.2:
            pass
        monkeypatch.setattr(Kernel, "spent", Kernel.spent + 0.2)
        monkeypatch.setattr(Kernel, "under_way", 0)
        while time.process_time() - started < 0.23:
            reached = "compiled"
        while time.process_time() - started < 5.0:
            reached = "on its own"
    assert reached == "on its own" and time.process_time() - started < 2.0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_block_ends_also_where_the_error_is_dropped() -> None:
    """Python drops an error that is raised while it deletes an object: such a block went on for ever."""

    class Deleted:
        def __del__(self) -> None:
            until = time.process_time() + 0.1
            while time.process_time() < until:
                pass

    started, one = time.process_time(), Deleted()
    with pytest.raises(TimeoutError), limited(0.05):
        del one
        while time.process_time() - started < 5.0:
            pass
    assert 0.1 < time.process_time() - started < 3.0


def test_over_time_is_a_status_and_not_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fs.write_fclib("one.hdf5", body_between_nodes(np.random.default_rng(2), 6, 5))

    def slow(problem: Any) -> Any:
        while True:
            sum(range(2000))
            yield np.zeros((5, 3))

    fs.register_solver("slow", slow)
    rows = fs.bench(["one.hdf5"], ["slow", "exact"], max_iterations=10**9, repeat=2, time_limit=0.1, out="out")
    assert [row.status for row in rows] == ["over time", "converged"] and "0.1 s" in rows[0].message
    assert math.isnan(rows[0].cpu_ms) and "over time" in Path("out/bench.md").read_text()
    assert profiles_of(rows, "ms")["slow"].solved == 0

    def stuck(problem: Any) -> Any:  # it never comes to its end, not even where it is only warmed up
        while True:
            sum(range(2000))

    fs.register_solver("stuck", stuck)
    monkeypatch.setattr(bench, "_COMPILING", 0.2)
    rows = fs.bench(["one.hdf5"], ["stuck", "exact"], time_limit=0.1, out="stuck")
    assert [row.status for row in rows] == ["over time", "converged"] and "0.3 s" in rows[0].message
    with pytest.raises(fs.InputError, match="time limit is 0"):
        fs.bench(["one.hdf5"], ["exact"], time_limit=0.0)


# ---------------------------------------------------------------------- metrics of papers/004


def test_metrics_of_the_paper_against_their_formulas() -> None:
    rng = np.random.default_rng(4)
    for problem in (random_local(rng, 4), random_global(5), random_global(6, anisotropic=True)):
        nc = problem.n_contacts
        lam, v = rng.standard_normal((nc, 3)), rng.standard_normal(getattr(problem, "n", 0))
        found = paper_metrics(problem, v, lam)
        if isinstance(problem, fs.LocalProblem):
            u, mu = problem.W @ lam.ravel() + problem.q.ravel(), problem.friction
            u = u.reshape(-1, 3)
        else:
            u, mu = (problem.J @ v).reshape(-1, 3) + problem.phi, problem.coefficients
            stretch = np.column_stack([np.ones(nc), mu / np.sqrt(mu[:, :1] * mu[:, 1:])])
            u, lam, mu = u * stretch, lam / stretch, np.sqrt(mu[:, 0] * mu[:, 1])
        uh = u + np.column_stack([mu * np.linalg.norm(u[:, 1:], axis=1), np.zeros((nc, 2))])
        maps = [np.linalg.norm(x - closest_in_cone(x - w, m)) for x, w, m in zip(lam, uh, mu, strict=True)]
        duals = [np.linalg.norm(w - (w + closest_in_cone(-w, m))) for w, m in zip(uh, mu, strict=True)]
        power = max(abs(x @ w) for x, w in zip(lam, uh, strict=True))
        assert found["natural_map"] == pytest.approx(max(maps), rel=1e-12)
        assert found["dual_residual"] == pytest.approx(max(duals), rel=1e-12)
        assert found["complementarity"] == pytest.approx(power, rel=1e-12)
        speed, force = np.linalg.norm(u, axis=1).max(), np.linalg.norm(lam, axis=1).max()
        assert found["dual_relative"] == pytest.approx(max(duals) / speed)
        assert found["complementarity_relative"] == pytest.approx(power / speed / force)


# ---------------------------------------------------------------------- profiles


def test_profiles_by_hand() -> None:
    """Four problems; b is fastest on the first, where it fails on the second; nobody solves the last."""
    nan = math.nan
    found = performance_profiles({"a": [2.0, 3.0, 1.0, nan], "b": [1.0, nan, 4.0, nan], "c": [nan, 6.0, 1.0, math.inf]})
    assert [found[name].solved for name in "abc"] == [3, 2, 2]
    np.testing.assert_array_equal(found["a"].tau, [1.0, 2.0])
    np.testing.assert_array_equal(found["a"].share, [0.5, 0.75])
    np.testing.assert_array_equal(found["b"].tau, [1.0, 4.0])
    np.testing.assert_array_equal(found["c"].share, [0.25, 0.5])
    assert [found["a"].at(tau) for tau in (0.5, 1.0, 1.9, 2.0, 100.0)] == [0.0, 0.5, 0.5, 0.75, 0.75]
    assert largest_ratio(found) == 4.0
    # over log2 tau from 0 to 2: 0.5 to 1, then 0.75
    assert found["a"].area(4.0) == pytest.approx(0.625)
    assert found["b"].area(4.0) == pytest.approx(0.25) and found["c"].area(4.0) == pytest.approx(0.375)
    assert found["b"].area(1.0) == 0.25


def test_profiles_of_nothing_and_of_equal_costs() -> None:
    none = performance_profiles({"a": [math.nan], "b": [math.nan]})
    assert none["a"].solved == 0 and none["a"].at(10.0) == 0.0 and largest_ratio(none) == 1.0
    same = performance_profiles({"a": [1e-6], "b": [2e-3]}, floor=0.01)
    assert same["a"].at(1.0) == same["b"].at(1.0) == 1.0
    zero = performance_profiles({"a": [0.0], "b": [3.0]})
    assert zero["a"].at(1.0) == 1.0 and zero["b"].at(1e300) == 0.0


def test_a_fast_failure_is_no_yardstick() -> None:
    def row(problem: str, solver: str, status: Any, iterations: int) -> BenchRow:
        return BenchRow(problem, 1, 3, solver, status, "", iterations=iterations, cpu_ms=1.0)

    rows = [row("p", "good", "converged", 100), row("p", "bad", "not converged", 1), row("q", "good", "over time", 5)]
    found = profiles_of([*rows, row("q", "bad", "refused", 1)], "iterations")
    assert found["good"].at(1.0) == 0.5 and found["bad"].solved == 0


def test_the_plot_of_profiles(tmp_path: Path) -> None:
    curves = {"a": (np.array([1.0, 3.0]), np.array([0.5, 1.0])), "b": (np.zeros(0), np.zeros(0))}
    path = plot_performance(curves, tmp_path / "p.png", label="ms", title="t")
    assert path.read_bytes().startswith(b"\x89PNG")
    bad: list[tuple[Any, str, str]] = [
        (curves, "p.gif", "'.gif'"),
        ({}, "p.png", "no profile"),
        (curves, "no/p.png", "cannot be"),
    ]
    for wrong, name, words in bad:
        with pytest.raises(fs.VizError, match=words):
            plot_performance(wrong, tmp_path / name, label="ms")


def test_the_files_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in (2, 7):
        fs.write_fclib(f"p{seed}.hdf5", body_between_nodes(np.random.default_rng(seed), 6, 5))
    rows = fs.bench(["p7.hdf5", "p2.hdf5"], ["pgs", "pgs:max_iterations=1"], repeat=1, out="out")
    solved = list(csv.DictReader(Path("out/solved.csv").read_text().splitlines()))
    assert {(line["measure"], line["solver"]) for line in solved} == {
        (measure, solver) for measure in ("iterations", "ms") for solver in ("pgs", "pgs:max_iterations=1")
    }
    by_iterations = profiles_of(rows, "iterations")
    for line in solved:
        if line["measure"] == "iterations":
            profile = by_iterations[line["solver"]]
            assert int(line["solved"]) == profile.solved and float(line["share_at_1"]) == pytest.approx(profile.at(1.0))
    points = list(csv.DictReader(Path("out/profile.csv").read_text().splitlines()))
    assert {point["solver"] for point in points if point["measure"] == "iterations"} == {"pgs"}
    page = Path("out/bench.md").read_text()
    assert "| pgs | 2 of 2 |" in page and "| pgs:max_iterations=1 | 0 of 2 |" in page and "## p2" in page and "## p7" in page
    assert Path("out/profile_ms.png").is_file() and Path("out/profile_iterations.png").is_file()
