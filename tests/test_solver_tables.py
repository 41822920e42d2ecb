"""Stage benchmarks: the tables of the pages on solvers run on tiny scenes, say what they should, replace only their blocks."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from full_sets import DATA, FOLDER, full_set
from slow_twins import body_between_nodes

from benchmarks import solver_tables
from benchmarks.tables import saved_problems
from contact.solvers import SOLVERS, Exact, ExactOptions, Solution, SolverEntry
from femsim import write_fclib

ROOT = Path(__file__).resolve().parents[1]
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
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The full set of FCLib files with its checker, or three of our own problems with ours."""
    if FOLDER is not None:
        return full_set("fclib")
    folder = tmp_path_factory.mktemp("files")
    for name in ("plane_blocks", "stack", "ball_on_floor"):
        shutil.copy(DATA / "problems" / f"{name}.hdf5", folder)
    (folder / "check_fc.py").write_text("from fclib_check import check, read_problem\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory, files: Path) -> Blocks:
    """All blocks in the quick mode, from copies of the real pages, whose other text must stay."""
    folder = tmp_path_factory.mktemp("project")
    before, pages = "", [folder / page for page in solver_tables.PAGES]
    for page in pages:
        page.parent.mkdir(parents=True)
        shutil.copy(ROOT / page.relative_to(folder), page)
        before += page.read_text(encoding="utf-8")
    solver_tables.main(["--out", str(folder), "--quick", "--data", str(files)])
    after = "".join(page.read_text(encoding="utf-8") for page in pages)
    block = re.compile(r"<!-- ([^>]*?) -->\n(.*?)\n?<!-- end \1 -->", re.DOTALL)
    assert block.sub("", after) == block.sub("", before)
    names = {path.name for path in (folder / "docs" / "pictures").iterdir()}
    assert names == {"solvers_convergence.png"}
    found = dict(block.findall(after))
    assert set(found) == {*solver_tables.NAMES, solver_tables.RUN}
    assert "load" in found.pop(solver_tables.RUN)
    return {name: cells(text) for name, text in found.items()}


def test_every_table_has_rows_of_one_length(blocks: Blocks) -> None:
    for name, rows in blocks.items():
        assert rows, name
        assert {len(row) for row in rows} == {len(rows[0])}, name


def test_proximal_operator_hovers_by_friction_times_slip(blocks: Blocks) -> None:
    """u_n = mu |u_t| is what the relaxation has where it slides, and the strict law has u_n = 0."""
    strict, proximal = blocks["operators"]
    assert first_number(strict[4]) < 1e-6
    assert first_number(proximal[4]) == pytest.approx(first_number(proximal[5]), rel=0.05)


def test_problem_files_are_solved_and_nobody_is_wrong(blocks: Blocks) -> None:
    assert len(blocks["fclib"]) == 3
    assert all(row[-1] == "none" for row in blocks["fclib"])
    assert all(row[2] == "yes" for row in blocks["targets"])


class Liar(Exact):
    """Returns forces of one per cent too much and says converged."""

    description: ClassVar[str] = "liar"

    def solve(self, problem: Any, warm_start: Any = None) -> Solution:
        solution = super().solve(problem, warm_start)
        return replace(solution, lam=1.01 * solution.lam)


def test_a_solver_that_says_converged_and_is_not_is_found_out(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOLVERS, "liar", SolverEntry("liar", ExactOptions, Liar))
    path = tmp_path / "problem.hdf5"
    write_fclib(path, body_between_nodes(np.random.default_rng(0), 4, 3))
    checker = saved_problems.load_checker(files)
    honest, liar = (saved_problems.outcome(checker, name, path, 1e-6, 1.0) for name in ("exact", "liar"))
    assert honest.passed and not honest.wrong
    assert liar.wrong and not liar.passed
    assert liar.command_passed  # the command measures anew


def test_blocks_are_found_once_or_refused(tmp_path: Path) -> None:
    pages = [tmp_path / "a.md", tmp_path / "b.md"]
    pages[0].write_text("none", encoding="utf-8")
    block = "a\n<!-- III -->\nold\n<!-- end III -->\nb"
    pages[1].write_text(block, encoding="utf-8")
    solver_tables.replace_block(pages, "III", r"new \1")
    assert [page.read_text(encoding="utf-8") for page in pages] == ["none", "a\n<!-- III -->\nnew \\1\n<!-- end III -->\nb"]
    for first, second in (("none", "a"), ("none", block + block), (block, block)):
        pages[0].write_text(first, encoding="utf-8")
        pages[1].write_text(second, encoding="utf-8")
        with pytest.raises(ValueError, match="once"):
            solver_tables.replace_block(pages, "III", "new")
        assert [page.read_text(encoding="utf-8") for page in pages] == [first, second]


def test_wrong_arguments_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in ((["--only", "X"], "'X'"), (["--out", str(tmp_path)], "solvers.md"), (["--data", "."], "check_fc.py")):
        with pytest.raises(SystemExit):
            solver_tables.main(arguments)
        assert said in capsys.readouterr().err
