"""Stage engine: `femsim bench`: what is timed, what is measured, what is written, and that one bad solver stops nothing."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from command_line import Call, assert_sentence
from random_problems import random_local
from slow_twins import body_between_nodes
from small_scene import cube_scene

import femsim as fs
from contact.solvers import Exact, ExactOptions, History, Solution, SolverEntry, WarmStart
from femsim.step.stepper import Stepper
from femsim.studies.problems import bench as benchmark
from viz import plots
from viz.plots import plot_convergence

TOLERANCE = 1e-6


@dataclass(frozen=True)
class FakeOptions:
    tolerance: float = 1e-6
    max_iterations: int = 100


class Fake:
    """A solver that answers right and notes what it was given.

    A new instance takes 10 ms; when it solves again, it takes 4 k^2 ms, k counting the instances that do so.
    """

    description = "fake"
    clock: ClassVar[list[float]] = [0.0]
    seen: ClassVar[list[tuple[int, fs.ContactProblem, WarmStart | None]]] = []
    made: ClassVar[list[Any]] = []
    first: ClassVar[float] = 0.010

    def __init__(self, options: FakeOptions | None = None) -> None:
        self.options = options or FakeOptions()
        self.solved = 0
        Fake.made.append(self)

    def solve(self, problem: fs.ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        Fake.seen.append((len(Fake.made), problem, warm_start))
        self.solved += 1
        reused = sum(solver.solved > 1 for solver in Fake.made)
        Fake.clock[0] += self.first if self.solved == 1 else 0.004 * reused**2
        return self.answer(Exact(ExactOptions(tolerance=1e-13)).solve(problem, warm_start), problem)

    def answer(self, solution: Solution, problem: fs.ContactProblem) -> Solution:
        history = History(np.array([1e-2, 1e-5, 0.0]), np.array([1e-3, 1e-4, 1e-12]), np.array([3.0, 2.0, 0.5]))
        return replace(solution, iterations=3, history=history, timings={"prepare": 1.0, "iterate": 3.0})


class Wrong(Fake):
    """Says that it converged, with forces of one per cent too little and the velocities that belong to them."""

    def answer(self, solution: Solution, problem: fs.ContactProblem) -> Solution:
        lam = 0.99 * solution.lam
        v = np.linalg.solve(problem.A.toarray(), problem.b + problem.J.T @ lam.ravel())
        return replace(solution, v=v, lam=lam)


class Nan(Fake):
    def answer(self, solution: Solution, problem: fs.ContactProblem) -> Solution:
        return replace(solution, lam=solution.lam + np.nan, status="failed", message="I have no idea.")


class Refuser(Fake):
    def solve(self, problem: fs.ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        raise fs.ContactError("I take no such problem.")


class Stopper(Fake):
    """Is interrupted in its second problem."""

    def solve(self, problem: fs.ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        if Fake.seen and Fake.seen[0][1] is not problem:
            raise KeyboardInterrupt
        return super().solve(problem, warm_start)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    """Fakes in the registry, and a clock that only they advance; a product with A takes 2 ms."""
    for kind in (Fake, Wrong, Nan, Refuser, Stopper):
        monkeypatch.setitem(fs.SOLVERS, kind.__name__.lower(), SolverEntry("fake", FakeOptions, kind))
    for name, value in (("clock", [0.0]), ("seen", []), ("made", [])):
        monkeypatch.setattr(Fake, name, value)
    monkeypatch.setattr(benchmark.time, "process_time", lambda: Fake.clock[0])
    monkeypatch.setattr(benchmark, "_matvec_ms", lambda _: 2.0)
    return Fake


@pytest.fixture
def problem() -> fs.ContactProblem:
    return body_between_nodes(np.random.default_rng(0), 5, 4, inertia=3.0)


@pytest.fixture
def path(tmp_path: Path, problem: fs.ContactProblem, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the current folder."""
    monkeypatch.chdir(tmp_path)
    fs.write_fclib("global.hdf5", problem)
    return Path("global.hdf5")


# ---------------------------------------------------------------------- numbers


def test_rows_are_what_the_yardstick_says(path: Path, problem: fs.ContactProblem, fakes: type[Fake]) -> None:
    right, wrong = fs.bench([path], ["fake", "wrong"], tolerance=TOLERANCE, repeat=2)
    assert (right.problem, right.contacts, right.velocities) == ("global", problem.n_contacts, problem.n)
    assert (right.status, wrong.status) == ("converged", "not converged")  # whatever it says of itself
    assert right.most_accurate == wrong.most_accurate == "fake"
    exact = Exact(ExactOptions(tolerance=1e-13)).solve(problem)
    lam = 0.99 * exact.lam
    v = np.linalg.solve(problem.A.toarray(), problem.b + problem.J.T @ lam.ravel())
    metrics = fs.measure(problem, v, lam)
    assert abs(exact.lam).max() > 0 and metrics.contact_residual > 1e-3 and metrics.penetration_velocity > 1e-6
    assert wrong.contact_residual == pytest.approx(metrics.contact_residual, rel=1e-9)
    assert wrong.dynamics_residual == pytest.approx(metrics.dynamics_residual, abs=1e-12) and wrong.dynamics_residual < 1e-12
    assert wrong.penetration_mm == pytest.approx(1e3 * problem.dt * metrics.penetration_velocity, rel=1e-9)
    assert wrong.force_error == pytest.approx(0.01, rel=1e-9) and right.force_error == right.velocity_error == 0.0
    root = np.linalg.cholesky(problem.A.toarray())
    error = np.linalg.norm(root.T @ (v - exact.v)) / np.linalg.norm(root.T @ exact.v)
    assert wrong.velocity_error == pytest.approx(error, rel=1e-8) and error > 1e-4
    assert right.iterations == 3 and right.step_norm == 0.5
    assert right.residual == max(right.contact_residual, right.dynamics_residual) < 1e-12


def test_times_of_a_file_are_those_of_new_solvers(path: Path, fakes: type[Fake]) -> None:
    fast, slow = fs.bench([path], ["fake", "wrong"], repeat=3)
    assert len(fakes.made) == len(fakes.seen) + 2  # each solve by a new one; two were made to check their options
    assert len(fakes.seen) == 2 * (1 + 3)
    assert fast.cpu_ms == fast.first_use_ms == pytest.approx(10.0)
    assert fast.times_matvec == pytest.approx(5.0)
    assert (fast.times_fastest, slow.times_fastest) == (pytest.approx(1.0), pytest.approx(1.0))
    np.testing.assert_allclose(fast.curve_ms, [5.0, 7.5, 10.0])  # a quarter of the time before the first of three iterations
    np.testing.assert_allclose(fast.curve_residual, [1e-2, 1e-4, 1e-12])


def test_a_median_is_taken(path: Path, fakes: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    costs = iter([100.0, 7.0, 1.0, 50.0])  # the first is the warm-up

    def solve(self: Fake, problem: fs.ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        Fake.clock[0] += 1e-3 * next(costs)
        return Exact().solve(problem)

    monkeypatch.setattr(Fake, "solve", solve)
    (row,) = fs.bench([path], ["fake"], repeat=3)
    assert row.cpu_ms == pytest.approx(7.0)
    np.testing.assert_allclose(row.curve_ms, 7.0 * np.arange(1, row.iterations + 1) / row.iterations)  # no stage "iterate"


def test_the_fastest_is_one_that_converged(path: Path, fakes: type[Fake], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wrong, "first", 0.004)
    right, wrong = fs.bench([path], ["fake", "wrong"], repeat=1)
    assert (right.cpu_ms, wrong.cpu_ms) == (pytest.approx(10.0), pytest.approx(4.0))
    assert (right.times_fastest, wrong.times_fastest) == (pytest.approx(1.0), pytest.approx(0.4))


def test_the_product_with_the_matrix_is_timed(problem: fs.ContactProblem) -> None:
    local = random_local(np.random.default_rng(1), 3, asymmetry=0.0)
    for given in (problem, local):
        assert 1e-5 < benchmark._matvec_ms(given) < 10.0


def test_no_force_and_no_contact_are_no_errors(tmp_path: Path, problem: fs.ContactProblem) -> None:
    free = fs.make_problem(problem.A, problem.b, problem.J[:0], np.zeros((0, 3)), 0.3, dt=0.01, groups=problem.groups)
    fs.write_fclib(tmp_path / "free.hdf5", free)
    rows = fs.bench([tmp_path / "free.hdf5"], ["cond", "exact"], repeat=1)
    assert [row.status for row in rows] == ["converged"] * 2
    assert all(math.isnan(row.force_error) and row.contacts == 0 and row.velocity_error < 1e-5 for row in rows)


# ---------------------------------------------------------------------- scenes


def test_the_problems_of_a_scene_are_those_of_its_run(scene: str, fakes: type[Fake]) -> None:
    rows = fs.bench([scene], ["fake"], steps=[4, 2], repeat=3, parameters={"young_modulus": "2e5"})
    assert [row.problem for row in rows] == ["small_cube, step 2", "small_cube, step 4"]
    # warm-up: all four by a new one each; first use: the two asked for, three times; in order: all four by one, three times
    instances = [instance for instance, _, _ in fakes.seen]
    assert instances == [*range(2, 12), *[12] * 4, *[13] * 4, *[14] * 4]  # the first was made to check its options
    for row in rows:
        assert (row.first_use_ms, row.cpu_ms) == (pytest.approx(10.0), pytest.approx(16.0)) and row.status == "converged"

    stepper = Stepper(fs.load_scene(scene, young_modulus=2e5), fs.make_solver("auto"))
    for step in range(1, 5):
        v_hat = stepper.state.v_hat
        stepper.step()
        _, seen, start = fakes.seen[9 + step]
        assert stepper.problem is not None and start is not None
        for name in ("b", "phi", "friction"):
            np.testing.assert_array_equal(getattr(seen, name), getattr(stepper.problem, name), err_msg=name)
        for name in ("A", "J"):
            assert abs(getattr(seen, name) - getattr(stepper.problem, name)).max() == 0
        np.testing.assert_array_equal(start.v, v_hat)
        assert start.lam.shape == (seen.n_contacts, 3) and start.lam.any() == (step > 1)
        assert seen is fakes.seen[step - 1][1]  # the same problem for every instance


def test_steps_are_spread_when_none_are_named() -> None:
    assert benchmark._chosen_steps(cube_scene(), Path("s.py"), None) == [1, 2, 3, 4]
    assert benchmark._chosen_steps(cube_scene(duration=2.0), Path("s.py"), None) == [40, 80, 120, 160, 200]
    assert benchmark._chosen_steps(cube_scene(), Path("s.py"), [3, 1, 3]) == [1, 3]


def test_a_run_that_does_not_converge_is_said(scene: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Doubter(fs.SOLVERS["exact"].solver):
        def solve(self, problem: fs.ContactProblem, warm_start: WarmStart | None = None) -> Solution:
            return replace(super().solve(problem, warm_start), status="stopped at the limit")

    monkeypatch.setitem(fs.SOLVERS, "auto", SolverEntry("", ExactOptions, Doubter))
    with pytest.warns(UserWarning, match=r"small_cube.py: 2 of 2 steps of the run that gives the problems did not converge"):
        (row,) = fs.bench([scene], ["exact"], steps=[2], repeat=1)
    assert row.status == "converged"  # our numbers decide


# ---------------------------------------------------------------------- solvers that cannot


@pytest.mark.usefixtures("undrawn")
def test_one_that_refuses_is_a_row_and_the_rest_goes_on(path: Path, fakes: type[Fake], call: Call) -> None:
    rows = fs.bench([path], ["refuser", "nan", "fake"], repeat=1)
    assert [row.status for row in rows] == ["refused", "failed", "converged"]
    assert rows[0].message == "I take no such problem." and math.isnan(rows[0].cpu_ms) and rows[0].residual == math.inf
    assert rows[1].message == "I have no idea." and rows[1].cpu_ms == pytest.approx(10.0) and math.isnan(rows[1].force_error)
    assert {row.most_accurate for row in rows} == {"fake"}
    status, out, err = call("bench", str(path), "--solvers", "refuser,nan,fake", "--repeat", "1", "--quiet", "--out", "out")
    assert (status, err) == (3, "")
    assert "global, refuser: refused: I take no such problem." in out and "fake *" in out
    rows = json.loads(Path("out/bench.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["rows"]
    assert [row["cpu_ms"] for row in rows] == [None, pytest.approx(10.0), pytest.approx(10.0)]


@pytest.mark.usefixtures("undrawn")
def test_a_nonsymmetric_operator_is_not_for_all(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    local = random_local(np.random.default_rng(1), 3, asymmetry=0.1)
    fs.write_fclib("local.hdf5", local)
    status, out, _ = call("bench", "local.hdf5", "--solvers", "cond,exact", "--repeat", "1", "--quiet", "--out", "one")
    assert status == 0 and "local, cond: not applicable: W is not symmetric" in out
    assert (
        call("bench", "local.hdf5", "--solvers", "cond", "--repeat", "1", "--quiet", "--out", "two")[0] == 3
    )  # nobody solved it
    _, row = fs.bench(["local.hdf5"], ["cond", "exact"], repeat=1)
    assert row.status == "converged" and row.velocities == 0 and math.isnan(row.dynamics_residual + row.velocity_error)
    assert row.force_error == 0.0 and row.contact_residual <= TOLERANCE


def test_a_symmetric_operator_is_for_all(tmp_path: Path) -> None:
    fs.write_fclib(tmp_path / "local.hdf5", random_local(np.random.default_rng(1), 3, asymmetry=0.0))
    rows = fs.bench([tmp_path / "local.hdf5"], ["cond", "exact"], tolerance=1e-8, repeat=1)
    assert [row.status for row in rows] == ["converged"] * 2 and rows[0].force_error < 1e-5


# ---------------------------------------------------------------------- command and files


def test_the_command_prints_and_writes(path: Path, call: Call, problem: fs.ContactProblem) -> None:
    fs.write_fclib("other.hdf5", problem)
    command = ("bench", str(path), "other.hdf5", "--solvers", "cond, exact", "--tolerance", "1e-7", "--repeat", "2", "--quiet")
    status, out, err = call(*command)
    assert (status, err) == (0, "")
    for words in ("times: CPU ms, median of 2", f"global: {problem.n_contacts} contacts, {problem.n} velocities", "other: ",
                  "x fastest", "x matvec", "force error", "pen. mm", "converged", "runs/bench (bench.md"):  # fmt: skip
        assert words in out
    assert sorted(file.name for file in Path("runs/bench").iterdir()) == [
        "bench.csv", "bench.json", "bench.md", "global.png", "other.png", "problems.csv", "profile.csv",
        "profile_iterations.png", "profile_ms.png", "solved.csv",
    ]  # fmt: skip
    content = json.loads(Path("runs/bench/bench.json").read_text(encoding="utf-8"))
    assert content["settings"]["tolerance"] == 1e-7 and content["settings"]["solvers"] == ["cond", "exact"]
    assert content["versions"]["numpy"] == np.__version__ and content["machine"]["cpus"] and content["machine"]["threads"]
    with open("runs/bench/bench.csv", newline="", encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    assert [(row["problem"], row["solver"]) for row in table] == [(p, s) for p in ("global", "other") for s in ("cond", "exact")]
    for line, row in zip(table, content["rows"], strict=True):
        assert set(row) == {f.name for f in fields(fs.BenchRow)} and set(row) - set(line) == {"curve_ms", "curve_residual"}
        assert float(line["cpu_ms"]) == pytest.approx(row["cpu_ms"], rel=1e-5) and 0 < row["cpu_ms"] < 1e3
        assert row["status"] == "converged" and max(row["dynamics_residual"], row["contact_residual"]) <= 1e-7
        assert len(row["curve_ms"]) == len(row["curve_residual"]) == row["iterations"]
        assert row["curve_ms"][-1] == pytest.approx(row["cpu_ms"], rel=1e-5)
    assert Path("runs/bench/global.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert call(*command)[0] == 0 and Path("runs/bench-2/bench.json").is_file()


@pytest.mark.usefixtures("undrawn")
def test_not_converged_is_3(path: Path, call: Call) -> None:
    status, out, _ = call("bench", str(path), "--solvers", "cond,exact", "--max-iterations", "2", "--repeat", "1", "--quiet")
    assert status == 3 and "global, cond: not converged: Stopped at the limit of 2 iterations" in out


@pytest.mark.usefixtures("undrawn")
def test_a_scene_by_the_command(scene: str, call: Call) -> None:
    command = ("bench", scene, "--solvers", "cond,exact", "--steps", "2:4:2,1", "--set", "side=0.03", "--repeat", "1", "--quiet")
    status, out, err = call(*command, "--out", "out")
    assert (status, err) == (0, "")
    assert [f"small_cube, step {step}: " in out for step in range(1, 5)] == [True, True, False, True]
    assert json.loads(Path("out/bench.json").read_text())["settings"]["parameters"] == {"side": "0.03"}
    assert Path("out/small_cube_step_4.png").is_file()


def test_all_solvers_but_auto_and_presets_are_compared_by_default(path: Path) -> None:
    expected = [name for name, entry in fs.SOLVERS.items() if name != "auto" and not entry.preset_of]
    assert [row.solver for row in fs.bench([path], repeat=1)] == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["global.hdf5", "--solvers", "cnod"], ("solver 'cnod' is unknown; did you mean 'cond'?",)),
        (["global.hdf5", "--solvers", ","], ("no solver was named", "cond")),
        (["globl.hdf5"], ("'globl.hdf5' does not exist; did you mean 'global.hdf5'?",)),
        (["small_cub.py"], ("'small_cub.py' does not exist; did you mean 'small_cube.py'?",)),
        (["text.hdf5"], ("text.hdf5 is no HDF5 file",)),
        (["global.hdf5", "--tolerance", "0"], ("tolerance", "between 0 and 1")),
        (["global.hdf5", "--max-iterations", "0"], ("max_iterations", ">= 1")),
        (["global.hdf5", "--repeat", "0"], ("repeat is 0", "from 1")),
        (["global.hdf5", "--steps", "3"], ("steps are given, but only scenes have them",)),
        (["global.hdf5", "--set", "side=1"], ("parameters are given, but only scenes have them",)),
        (["small_cube.py", "--steps", "5"], ("step 5", "1 to 4")),
        (["small_cube.py", "--set", "sid=1"], ("no parameter 'sid'", "did you mean 'side'")),
        (["small_cube.py", "--steps", "0"], ("--steps '0'", "FROM:TO:EVERY")),
        (["small_cube.py", "--steps", "3:2"], ("'3:2'",)),
        (["small_cube.py", "--steps", "1:4:0"], ("'1:4:0'",)),
        (["small_cube.py", "--steps", "1:4:1:1"], ("'1:4:1:1'",)),
        (["small_cube.py", "--steps", "1,,2"], ("the part ''",)),
        (["small_cube.py", "--steps", "1:99999999999"], ("'1:99999999999'",)),
        (["small_cube.py", "--steps", "1.5"], ("'1.5'",)),
        (["global.hdf5", "--out", "here"], ("here exists", "out")),
        (["global.hdf5", "--out", "text.hdf5/out"], ("text.hdf5/out", "cannot be made", "Not a directory")),
    ],
)
def test_wrong_input_is_2_and_a_sentence(
    path: Path, scene: str, call: Call, arguments: list[str], words: tuple[str, ...]
) -> None:
    Path("text.hdf5").write_text("u = W r + q")
    Path("here").mkdir()
    Path("here/mine.txt").touch()
    before = sorted(Path().iterdir())
    assert_sentence(*call("bench", *arguments, "--quiet"), *words)
    assert sorted(Path().iterdir()) == before


def test_no_problem_is_wrong_input() -> None:
    with pytest.raises(fs.InputError, match="no problem was named"):
        fs.bench([])


@pytest.mark.usefixtures("undrawn")
def test_an_interrupt_keeps_what_is_done(path: Path, fakes: type[Fake], problem: fs.ContactProblem) -> None:
    fs.write_fclib("other.hdf5", problem)
    with pytest.raises(KeyboardInterrupt):
        fs.bench([path, "other.hdf5"], ["stopper"], repeat=1, out="out")
    assert [row["problem"] for row in json.loads(Path("out/bench.json").read_text())["rows"]] == ["global"]
    assert sorted(file.name for file in Path("out").iterdir()) == [
        "bench.csv", "bench.json", "bench.md", "global.png", "problems.csv", "profile.csv", "profile_iterations.png",
        "profile_ms.png", "solved.csv",
    ]  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        fs.bench(["other.hdf5"], ["stopper"], repeat=1, out="empty")
    assert not Path("empty").exists()


@pytest.mark.usefixtures("undrawn")
def test_files_of_one_name_are_told_apart(path: Path) -> None:
    Path("more").mkdir()
    Path("more/global.hdf5").write_bytes(path.read_bytes())
    rows = fs.bench([path, "more/global.hdf5"], ["exact"], repeat=1, out="out")
    assert [row.problem for row in rows] == ["global", "global-2"] and Path("out/global-2.png").is_file()


# ---------------------------------------------------------------------- the plot

CURVES = {
    "cond": (np.array([1.0, 2.0, 3.0, 4.0]), np.array([1e-1, 0.0, np.nan, 1e-7])),
    "exact": (np.array([20.0]), np.array([1e-12])),
}


def test_the_plot_shows_each_curve_over_time_and_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: drawn.append(figure))
    plot_convergence(CURVES, tmp_path / "p.png", title="ball", tolerance=1e-6)
    over_time, over_iterations = drawn[0].axes
    assert "split evenly over iterations" in over_time.get_xlabel() and "[ms]" in over_time.get_xlabel()
    assert "residual" in over_time.get_ylabel() and over_time.get_title(loc="left") == "ball"
    for axis, x in ((over_time, CURVES["cond"][0]), (over_iterations, [1, 2, 3, 4])):
        assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
        tolerance, cond, exact = axis.lines
        assert list(tolerance.get_ydata()) == [1e-6, 1e-6]
        np.testing.assert_array_equal(cond.get_xdata(), x)
        np.testing.assert_array_equal(cond.get_ydata(), [1e-1, np.nan, np.nan, 1e-7])
        assert exact.get_marker() == "." and exact.get_color() != cond.get_color()
    assert over_time.get_xlim() == pytest.approx((1.0, 100.0)) and over_iterations.get_xlim() == pytest.approx((1.0, 10.0))
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["cond", "exact"]


def test_the_suffix_is_the_format_and_the_bytes_repeat(tmp_path: Path) -> None:
    for suffix, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        files = [plot_convergence(CURVES, tmp_path / f"{name}.{suffix}", tolerance=1e-6) for name in "ab"]
        assert files[0].read_bytes().startswith(start) and files[0].read_bytes() == files[1].read_bytes()
        assert b"Date" not in files[0].read_bytes()


@pytest.mark.parametrize(
    ("curves", "name", "words"),
    [
        (CURVES, "p.gif", "'.gif'; allowed are .png, .svg and .pdf"),
        ({}, "p.png", "no curve"),
        ({"cond": (np.ones(2), np.ones(3))}, "p.png", r"'cond' has times of shape \(2,\)"),
        ({"cond": (np.ones(0), np.ones(0))}, "p.png", "at least one"),
        (CURVES, "absent/p.png", "cannot be written"),
    ],
)
def test_a_plot_that_cannot_be_is_a_sentence(tmp_path: Path, curves: Any, name: str, words: str) -> None:
    with pytest.raises(fs.VizError, match=words):
        plot_convergence(curves, tmp_path / name)
