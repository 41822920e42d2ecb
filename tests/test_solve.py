"""Stage engine: `femsim solve` and `--dump-problems`: the verdict is on the problem of the file, and files are what they say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from command_line import Call, assert_sentence, info
from fclib_check import status as checker_status
from full_sets import FOLDER, full_set
from random_problems import random_global, random_local
from slow_twins import body_between_nodes, project_cones
from small_scene import cube_scene

import femsim as fs
from contact.solvers import Cond, CondOptions, History, Solution, SolverEntry, WarmStart

PLANE = [False, True]


@pytest.fixture
def global_file(tmp_path: Path) -> Path:
    fs.write_fclib(tmp_path / "global.hdf5", body_between_nodes(np.random.default_rng(0), 5, 4, inertia=3.0))
    return tmp_path / "global.hdf5"


def local_file(folder: Path, *, plane: bool = False, asymmetry: float = 0.0) -> Path:
    path = folder / "local.hdf5"
    problem = random_local(np.random.default_rng(1), 3, plane=plane, asymmetry=asymmetry)
    fs.write_fclib(path, problem, spacedim=2 if plane else 3)
    return path


def checked(problem: Path, solution: Path, tolerance: float) -> int:
    """Exit status of our independent checker; that of the full set, where it is there, must be the same."""
    status = checker_status(problem, solution, tolerance)
    if FOLDER is not None:
        command = [sys.executable, "-B", str(full_set("fclib") / "check_fc.py"), problem, solution, "--tol", str(tolerance)]
        assert subprocess.run(command, capture_output=True, check=False).returncode == status
    return status


@pytest.mark.parametrize("plane", PLANE)
@pytest.mark.parametrize("form", ["global", "local"])
def test_a_problem_is_solved_and_the_checker_agrees(tmp_path: Path, call: Call, form: str, plane: bool) -> None:
    path = tmp_path / "p.hdf5"
    if form == "local":
        path = local_file(tmp_path, plane=plane)
    else:
        fs.write_fclib(path, random_global(2, plane=plane), spacedim=2 if plane else 3)
    out = tmp_path / "solution.npz"
    arguments = ("solve", str(path), "--solver", "cond", "--tolerance", "1e-8", "--max-iterations", "50000", "--out", str(out))
    status, text, err = call(*arguments)
    assert (status, err) == (0, ""), text
    contacts, dim = (3 if form == "local" else 4), (2 if plane else 3)
    assert f"{path}: {form}, {dim}D, {contacts} contacts" in text
    for words in ("converged: All residuals are at most the tolerance 1e-08.", "cond, ", "contact residual", "slip alignment"):
        assert words in text
    assert ("dynamics residual plain" in text) == (form == "global")
    with np.load(out) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    assert set(found) == ({"v", "r", "u"} if form == "global" else {"r", "u"})
    assert found["r"].shape == found["u"].shape == (dim * contacts,)
    read = fs.read_fclib(path)
    lam = np.zeros((contacts, 3))
    lam[:, :dim] = found["r"].reshape(contacts, dim)
    velocity = read.problem.contact_velocity(lam) if form == "local" else read.problem.J @ found["v"] + read.problem.phi.ravel()
    np.testing.assert_allclose(found["u"], read.flatten(velocity), rtol=1e-12, atol=1e-15)
    assert checked(path, out, 1e-8) == 0 and [p.name for p in tmp_path.glob(".*")] == []
    assert checked(path, out, 1e-30) == 1  # the checker looks


def test_not_converged_is_3_and_is_written(tmp_path: Path, global_file: Path, call: Call) -> None:
    out = tmp_path / "solution.npz"
    out.write_text("old")
    status, text, err = call("solve", str(global_file), "--solver", "cond", "--max-iterations", "3", "--out", str(out))
    assert (status, err) == (3, "")
    assert "not converged: The " in text and "above the tolerance 1e-06" in text and "limit of 3 iterations" in text
    assert f"{out} (v, r, u)" in text
    assert checked(global_file, out, 1e-6) == 1


def test_nothing_is_written_unasked(tmp_path: Path, global_file: Path, call: Call) -> None:
    before = sorted(tmp_path.iterdir())
    status, text, _ = call("solve", str(global_file))
    assert status == 0 and "solution" not in text
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.hdf5"], ("absent.hdf5 does not exist",)),
        (["text.hdf5"], ("text.hdf5 is no HDF5 file",)),
        (["global.hdf5", "--solver", "cnd"], ("'cnd'", "'cond'")),
        (["global.hdf5", "--tolerance", "0"], ("tolerance", "between 0 and 1")),
        (["global.hdf5", "--max-iterations", "0"], ("max_iterations", ">= 1")),
        (["global.hdf5", "--max-iterations", "1.5"], ("'1.5'", "whole number")),
        (["global.hdf5", "--out", "."], ("is a folder", "solution.npz")),
        (["global.hdf5", "--out", "absent/s.npz"], ("absent/s.npz", "does not exist", "solution.npz")),
        (["global.hdf5", "--out", "global.hdf5"], ("is the problem itself", "another")),
        (["global.hdf5", "--out", "/dev/null/s.npz"], ("/dev/null/s.npz", "does not exist")),
    ],
)
def test_wrong_input_is_2_and_a_sentence(
    global_file: Path,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: tuple[str, ...],
) -> None:
    monkeypatch.chdir(global_file.parent)
    Path("text.hdf5").write_text("u = W r + q")
    before = global_file.read_bytes()
    assert_sentence(*call("solve", *arguments), *words)
    assert global_file.read_bytes() == before


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, global_file: Path, call: Call, monkeypatch: Any) -> None:
    out = tmp_path / "solution.npz"
    out.write_text("old")
    monkeypatch.setattr(np, "savez", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    status, _, err = call("solve", str(global_file), "--out", str(out))
    assert status == 2 and "solution.npz cannot be written (No space left on device)" in err
    assert out.read_text() == "old" and list(tmp_path.glob(".*")) == []


# ---------------------------------------------------------------------- who solves what


@dataclass(frozen=True)
class FakeOptions:
    tolerance: float = 1e-6
    max_iterations: int = 100


class Fake:
    """A solver that says what it is told to say."""

    description = "fake"
    answers: ClassVar[list[tuple[Callable[[Any], np.ndarray], str]]] = []
    asked: ClassVar[list[tuple[float, int, bool]]] = []

    def __init__(self, options: FakeOptions | None = None) -> None:
        self.options = options or FakeOptions()

    def solve(self, problem: fs.ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        Fake.asked.append((self.options.tolerance, self.options.max_iterations, warm_start is not None))
        lam, status = Fake.answers[min(len(Fake.asked), len(Fake.answers)) - 1]
        forces = lam(problem)
        v = np.linalg.solve(problem.A.toarray(), problem.b + problem.J.T @ forces.ravel())
        return Solution(v, forces, status, "I say so.", 7, History(*np.zeros((3, 7))))  # type: ignore[arg-type]


class FakeLocal(Fake):
    def solve_local(self, problem: fs.LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        lam, status = Fake.answers[0]
        return Solution(np.zeros(0), lam(problem), status, "I say so.", 7, History(*np.zeros((3, 7))))  # type: ignore[arg-type]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[Fake]:
    monkeypatch.setitem(fs.SOLVERS, "fake", SolverEntry("fake", FakeOptions, Fake))
    monkeypatch.setitem(fs.SOLVERS, "fake-local", SolverEntry("fake", FakeOptions, FakeLocal))
    monkeypatch.setattr(Fake, "asked", [])
    return Fake


def zero(problem: Any) -> np.ndarray:
    return np.zeros((problem.n_contacts, 3))


def exact(problem: fs.ContactProblem) -> np.ndarray:
    return Cond(CondOptions(tolerance=1e-10, max_iterations=50000)).solve(problem).lam


def test_a_solver_that_lies_is_not_believed(global_file: Path, fake: type[Fake]) -> None:
    fake.answers = [(zero, "converged")]
    result = fs.solve_problem(global_file, "fake")
    assert result.status == "not converged" and "contact residual" in result.message and "I say so." in result.message
    assert [tolerance for tolerance, *_ in fake.asked] == pytest.approx([1e-6, 1e-7, 1e-8, 1e-9, 1e-10])
    assert [warm for *_, warm in fake.asked] == [False, True, True, True, True]
    assert result.iterations == 35 and not result.r.any()
    fake.asked.clear()
    fs.solve_problem(global_file, "fake", max_iterations=17)  # the limit is on all of them
    assert [limit for _, limit, _ in fake.asked] == [17, 10, 3]


def test_a_solver_that_doubts_is_believed_by_the_numbers(global_file: Path, fake: type[Fake]) -> None:
    fake.answers = [(exact, "stopped at the limit")]
    result = fs.solve_problem(global_file, "fake", tolerance=1e-8)
    assert result.status == "converged" and result.iterations == 7 and len(fake.asked) == 1
    assert max(result.residuals.values()) <= 1e-8 and set(result.residuals) == {
        "contact_residual", "dynamics_residual", "dynamics_residual_plain",
    }  # fmt: skip


def test_asking_again_helps_and_the_best_answer_counts(global_file: Path, fake: type[Fake]) -> None:
    fake.answers = [(zero, "converged"), (exact, "converged")]
    assert fs.solve_problem(global_file, "fake").status == "converged" and len(fake.asked) == 2
    fake.asked.clear()
    fake.answers = [(lambda p: 1.001 * exact(p), "converged"), (zero, "stopped at the limit")]
    result = fs.solve_problem(global_file, "fake")
    assert result.status == "not converged" and len(fake.asked) == 2 and result.r.any()


def test_values_that_are_not_finite_are_3_and_not_written(
    tmp_path: Path,
    global_file: Path,
    fake: type[Fake],
    call: Call,
) -> None:
    fake.answers = [(lambda p: zero(p) + np.nan, "failed")]
    out = tmp_path / "s.npz"
    status, text, _ = call("solve", str(global_file), "--solver", "fake", "--out", str(out))
    assert status == 3 and "failed: The answer is not finite" in text and "not written" in text
    assert not out.exists()


def test_a_matrix_that_cannot_be_solved_is_a_sentence(global_file: Path, fake: type[Fake], call: Call) -> None:
    fake.answers = [(lambda p: (_ for _ in ()).throw(np.linalg.LinAlgError("Singular matrix")), "failed")]
    assert_sentence(*call("solve", str(global_file), "--solver", "fake"), "global.hdf5", "'fake'", "Singular matrix", "another")


def test_a_file_that_cond_would_invert_densely_is_refused(tmp_path: Path, call: Call) -> None:
    """Rows that are no triples count as one body of generalized coordinates, which is inverted densely."""
    n = 5002
    J = sp.csr_array((np.ones(3), (np.arange(3), np.arange(3))), shape=(3, n))
    group = fs.Group("all", 0, n, "generalized")
    fs.write_fclib(tmp_path / "p.hdf5", fs.make_problem(sp.eye_array(n), np.ones(n), J, np.zeros(1), 0.3, dt=1.0, groups=[group]))
    assert_sentence(*call("solve", str(tmp_path / "p.hdf5"), "--solver", "cond"), "p.hdf5", "5002 rows", "another solver")


def test_a_nonsymmetric_operator_goes_only_to_who_takes_it(tmp_path: Path, fake: type[Fake], call: Call) -> None:
    path = local_file(tmp_path, asymmetry=0.1)
    refused = call("solve", str(path), "--solver", "cond")
    assert_sentence(*refused, "local.hdf5", "'cond'", "not symmetric", "takes W as it is")
    assert_sentence(*call("solve", str(path), "--solver", "fake"), "local.hdf5", "'fake'", "choose from", "exact", "fake-local")
    problem = fs.read_fclib(path).problem
    assert isinstance(problem, fs.LocalProblem)

    def by_sweeps(local: fs.LocalProblem) -> np.ndarray:
        """Projected fixed point on the problem as it is, W not symmetrised: enough for three contacts."""
        r, rho = np.zeros((3, 3)), 1.0 / np.linalg.norm(local.W, 2)
        for _ in range(20000):
            u = local.contact_velocity(r)
            u[:, 0] += local.friction * np.linalg.norm(u[:, 1:], axis=1)
            r = project_cones(r - rho * u, local.friction)
        return r

    fake.answers = [(by_sweeps, "converged")]
    out = tmp_path / "s.npz"
    assert call("solve", str(path), "--solver", "fake-local", "--out", str(out))[0] == 0
    assert checked(path, out, 1e-6) == 0


# ---------------------------------------------------------------------- problems of a run


def test_problems_of_a_run_are_written_and_have_its_answers(tmp_path: Path) -> None:
    forces = {}
    run = fs.simulate(
        cube_scene(), tolerance=1e-9, max_iterations=50000, out=tmp_path / "run", dump_problems=(2, 3),
        on_step=lambda stepper, report: forces.setdefault(report.step, (report.solution.v.copy(), report.solution.lam.copy())),
    )  # fmt: skip
    names = ["problems/step_00002.hdf5", "problems/step_00003.hdf5"]
    assert run.info["problems"] == info(tmp_path / "run")["problems"] == names
    assert sorted(p.name for p in (tmp_path / "run" / "problems").iterdir()) == [Path(name).name for name in names]
    for step, name in zip((2, 3), names, strict=True):
        read = fs.read_fclib(tmp_path / "run" / name)
        assert read.info["title"] == f"small_cube, step {step}" and read.problem.dt == 0.01
        assert [group.name for group in read.problem.groups] == ["cube", "box"]
        result = fs.solve_problem(tmp_path / "run" / name, "cond", tolerance=1e-9, max_iterations=50000)
        v, lam = forces[step]
        assert result.status == "converged" and abs(lam).max() > 1e-3
        np.testing.assert_allclose(result.v, v, atol=1e-6 * abs(v).max())
        np.testing.assert_allclose(result.r, lam.ravel(), atol=1e-5 * abs(lam).max())


def test_the_command_line_asks_for_problems(scene: str, call: Call) -> None:
    assert call("run", scene, "--dump-problems", "2", "--quiet", "--out", "one")[0] == 0
    assert info(Path("one"))["problems"] == ["problems/step_00002.hdf5"]
    assert call("run", scene, "--dump-problems", "1:4", "--quiet", "--out", "all")[0] == 0
    assert len(list(Path("all/problems").iterdir())) == 4
    assert call("run", scene, "--quiet", "--out", "none")[0] == 0
    assert info(Path("none"))["problems"] == [] and not Path("none/problems").exists()
    assert call("solve", "all/problems/step_00004.hdf5", "--tolerance", "1e-5")[0] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0:2", ("0:2", "1 <= FROM <= TO <= 4")),
        ("3:2", ("3:2", "1 <= FROM <= TO <= 4")),
        ("2:5", ("2:5", "1 <= FROM <= TO <= 4")),
        ("5", ("5:5", "1 <= FROM <= TO <= 4")),
        ("1:", ("'1:'", "FROM:TO", "10:20")),
        ("1:2:3", ("'1:2:3'", "FROM:TO")),
        ("1.5", ("'1.5'", "FROM:TO")),
        ("all", ("'all'", "FROM:TO")),
    ],
)
def test_steps_that_are_none_are_refused_at_the_door(scene: str, call: Call, text: str, words: tuple[str, ...]) -> None:
    assert_sentence(*call("run", scene, "--dump-problems", text, "--out", "bad"), "dump", *words)
    assert not Path("bad").exists()


def test_problems_need_a_folder_and_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(fs.InputError, match="dump_problems asks for files, but no run folder"):
        fs.simulate(cube_scene(), dump_problems=(1, 2))
    for steps in ((), (1,), (1, 2, 3)):
        with pytest.raises(fs.InputError, match=r"dump_problems is .*FROM:TO"):
            fs.simulate(cube_scene(), dump_problems=steps, out=tmp_path / "run")  # type: ignore[arg-type]
    with pytest.raises(fs.InputError, match=r"more than 1e\+15 steps"):
        fs.simulate(cube_scene(), duration=1e300)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(fs.ContactError, match=r"pip install \"femsim\[hdf\]\""):
        fs.simulate(cube_scene(), dump_problems=(1, 2), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_problem_of_a_step_that_failed_is_written_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("femsim.step.stepper.StepReport.finite", False)
    run = fs.simulate(cube_scene(), out=tmp_path / "run", dump_problems=(1, 3))
    assert run.status == "failed" and info(tmp_path / "run")["problems"] == ["problems/step_00001.hdf5"]
    assert fs.read_fclib(tmp_path / "run" / "problems" / "step_00001.hdf5").problem.n_contacts > 0


def test_the_tolerance_is_no_further_option(global_file: Path) -> None:
    with pytest.raises(fs.InputError, match="solver_options holds a tolerance; give it as the argument tolerance"):
        fs.solve_problem(global_file, "admm", solver_options={"tolerance": 0.5})
    with pytest.raises(fs.InputError, match="solver_options is list; give a dict"):
        fs.solve_problem(global_file, "admm", solver_options=[1])  # type: ignore[arg-type]
