"""Stage benchmarks: the tables of docs/solvers.md run on tiny scenes, say what they should, and replace only their blocks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from slow_twins import body_between_nodes

from benchmarks import solver_tables
from benchmarks.tables import anisotropic, cable, saved_problems
from benchmarks.tables.common import Settings, first_below, number, reference_solver, row_of
from contact.solvers import SOLVERS, Exact, ExactOptions, Solution, SolverEntry
from femsim import write_fclib

ROOT = Path(__file__).resolve().parents[1]
FCLIB = Path(__file__).resolve().parents[2] / "shared" / "fclib"
Blocks = dict[str, list[list[str]]]


def cells(text: str) -> list[list[str]]:
    """Rows of the first table in a block, without its header."""
    table = text.split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def first_number(cell: str) -> float:
    found = re.match(r"-?[\d.]+(e-?\d+)?", cell)
    assert found, cell
    return float(found[0])


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Blocks:
    """All blocks in the quick mode, from a copy of the real page, whose other text must stay."""
    folder = tmp_path_factory.mktemp("docs")
    page = folder / "solvers.md"
    before = (ROOT / "docs" / "solvers.md").read_text(encoding="utf-8")
    page.write_text(before, encoding="utf-8")
    data = ["--data", str(FCLIB)] if FCLIB.is_dir() else ["--data", str(folder)]
    solver_tables.main(["--out", str(folder), "--quick", *data])
    after = page.read_text(encoding="utf-8")
    block = re.compile(r"<!-- ([^>]*?) -->\n(.*?)\n?<!-- end \1 -->", re.DOTALL)
    assert block.sub("", after) == block.sub("", before)
    names = {path.name for path in (folder / "pictures").iterdir()}
    assert names == {"solvers_convergence.png", "solvers_invertible.png", "solvers_anisotropic.png", "cable_forces.png"}
    found = dict(block.findall(after))
    assert set(found) == {*solver_tables.NAMES, solver_tables.RUN}
    assert "load" in found.pop(solver_tables.RUN)
    return {name: cells(text) for name, text in found.items() if FCLIB.is_dir() or name not in ("fclib", "targets")}


def test_every_table_has_rows_of_one_length(blocks: Blocks) -> None:
    for name, rows in blocks.items():
        assert rows, name
        assert {len(row) for row in rows} == {len(rows[0])}, name


def test_tighter_stops_make_smaller_errors(blocks: Blocks) -> None:
    """Of COND on the ball: iterations grow and force errors fall from the paper's count over the step norms to the residual."""
    rows = [row for row in blocks["III"] if row[0] == "cond"]
    assert [row[1] for row in rows] == ["38 iterations", "step < 1e-04", "step < 1e-05", "residual 1e-05"]
    iterations, errors = ([first_number(row[column]) for row in rows] for column in (2, 5))
    assert iterations == sorted(iterations)
    assert errors == sorted(errors, reverse=True)
    exact = [row for row in blocks["III"] if row[0] == "exact"]
    assert first_number(exact[-1][5]) < 1e-6 < errors[-1]


def test_cable_rows(blocks: Blocks) -> None:
    """Solvers that reach their residual leave the force of the tool, one stopped by its step does not; all of VIII ran."""
    same = {(row[0], row[1]): first_number(row[5]) for row in blocks["V"] if row[2].startswith("2 of")}
    assert max(same[name, "residual 1e-8"] for name in ("exact", "banded")) < 1e-8 < 1e-4 < same["cond", "step < 1e-4"]
    own = {row[0]: row[5] for row in blocks["V"] if row[2].startswith("own run")}
    assert own["banded"] == "reference" and first_number(own["cond"]) > 0.01
    eight = {(row[0], row[2]): first_number(row[3]) for row in blocks["VIII"]}
    assert eight.pop(("banded", "residual 1e-8")) == 0.0
    assert len(eight) == 4 and min(eight.values()) > 1e-3


def test_a_force_curve_that_ended_is_said() -> None:
    curve = np.zeros((3, 3))
    assert cable.force_error(curve + np.array([3.0, 0.0, 4.0]), curve) == "5.00 / 5.00"
    assert cable.force_error(curve[:1], curve, failed=2) == "failed at step 2"


def test_proximal_operator_hovers_by_friction_times_slip(blocks: Blocks) -> None:
    """u_n = mu |u_t| is what the relaxation has where it slides, and the strict law has u_n = 0."""
    strict, proximal = blocks["operators"]
    assert first_number(strict[4]) < 1e-6
    assert first_number(proximal[4]) == pytest.approx(first_number(proximal[5]), rel=0.05)


def test_box_follows_the_integration_to_first_order(blocks: Blocks) -> None:
    assert float(blocks["V-G"][0][3]) == pytest.approx(1.0, abs=0.1)


def test_isotropic_integration_is_a_straight_stop() -> None:
    end = anisotropic.dissipation_path((0.3, 0.3))[-1]
    length = 2.0 / (2.0 * 0.3 * anisotropic.GRAVITY)  # |v|^2 / (2 mu g)
    np.testing.assert_allclose(end, np.full(2, length / np.sqrt(2.0)), rtol=1e-5)


def test_inverse_gives_the_forces_of_the_forward_solve(blocks: Blocks) -> None:
    """Tighter residuals bring both nearer together."""
    coarse, fine = (first_number(row[4]) for row in blocks["V-F"] if row[0] == "ball")
    assert fine < 0.1 * coarse


def test_problem_files_are_solved_and_nobody_is_wrong(blocks: Blocks) -> None:
    if "fclib" not in blocks:
        pytest.skip("the optional data folder is absent")
    assert all(row[-1] == "none" for row in blocks["fclib"])
    assert all(row[2] == "yes" for row in blocks["targets"])


class Liar(Exact):
    """Returns forces of one per cent too much and says converged."""

    description: ClassVar[str] = "liar"

    def solve(self, problem: Any, warm_start: Any = None) -> Solution:
        solution = super().solve(problem, warm_start)
        return replace(solution, lam=1.01 * solution.lam)


def test_a_solver_that_says_converged_and_is_not_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not FCLIB.is_dir():
        pytest.skip("the optional data folder is absent")
    monkeypatch.setitem(SOLVERS, "liar", SolverEntry("liar", ExactOptions, Liar))
    path = tmp_path / "problem.hdf5"
    write_fclib(path, body_between_nodes(np.random.default_rng(0), 4, 3))
    checker = saved_problems.load_checker(FCLIB)
    honest, liar = (saved_problems.outcome(checker, name, path, 1e-6, 1.0) for name in ("exact", "liar"))
    assert honest.passed and not honest.wrong
    assert liar.wrong and not liar.passed
    assert liar.command_passed  # the command measures anew


def test_forces_are_compared_on_the_nodes() -> None:
    problem = body_between_nodes(np.random.default_rng(1), 4, 3)
    exact = reference_solver().solve(problem)
    wrong = replace(exact, lam=1.5 * exact.lam)
    row = row_of(problem, wrong, exact, 0.002)
    nodes = np.concatenate([np.arange(g.start, g.stop) for g in problem.groups if g.kind == "nodes"])
    size = float(np.linalg.norm((problem.J.T @ exact.lam.ravel())[nodes]))
    assert size > 0
    assert row.force_error == pytest.approx(0.5 * size)
    assert row.relative_error == pytest.approx(0.5)
    assert row.ms == 2.0
    assert row.dynamics > 1e-3 > row_of(problem, exact, exact, 0.002).dynamics


def test_first_below() -> None:
    assert first_below(np.array([1.0, 1e-5, 1.0, 1e-6]), 1e-4) == 2
    assert first_below(np.array([1.0, 0.5]), 1e-4) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234.5, "1234"),
        (12.345, "12.3"),
        (0.00123456, "0.00123"),
        (1.234e-8, "1.23e-8"),
        (np.nan, "-"),
        (-2.5, "-2.50"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_blocks_are_found_once_or_refused() -> None:
    page = "a\n<!-- III -->\nold\n<!-- end III -->\nb"
    assert solver_tables.replace_block(page, "III", r"new \1") == "a\n<!-- III -->\nnew \\1\n<!-- end III -->\nb"
    for wrong in ("a", page + page):
        with pytest.raises(ValueError, match="once"):
            solver_tables.replace_block(wrong, "III", "new")


def test_wrong_arguments_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in ((["--only", "X"], "'X'"), (["--out", str(tmp_path)], "solvers.md")):
        with pytest.raises(SystemExit):
            solver_tables.main(arguments)
        assert said in capsys.readouterr().err


def test_quick_scenes_are_small() -> None:
    settings = Settings(Path(), quick=True)
    assert settings.ball(1e6).bodies[0].n_v < 300
    assert settings.mat().bodies[0].n_v < 300
