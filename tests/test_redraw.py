"""Stage engine: the page and the profiles of a benchmark, drawn again from its table; and tables that are none."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Call
from slow_twins import body_between_nodes

import femsim as fs

COLUMNS = (
    "problem,contacts,velocities,solver,status,message,iterations,cpu_ms,first_use_ms,times_fastest,times_matvec,"
    "dynamics_residual,contact_residual,row_residual,step_norm,penetration_mm,force_error,velocity_error,factorizations,"
    "natural_map,dual_residual,dual_relative,complementarity,complementarity_relative,most_accurate,tolerance"
).split(",")


def table(path: Path, lines: list[dict[str, Any]], columns: list[str] = COLUMNS) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([line.get(name, "") for name in columns] for line in lines)
    return path


def line(problem: str, solver: str, cpu: Any, status: str = "converged", iterations: Any = 1) -> dict[str, Any]:
    return {
        "problem": problem, "contacts": 1, "velocities": 3, "solver": solver, "status": status, "message": "So, said.",
        "iterations": iterations, "cpu_ms": cpu, "tolerance": 1e-6,
    }  # fmt: skip


def points(folder: str, measure: str) -> dict[str, list[tuple[float, float]]]:
    out: dict[str, list[tuple[float, float]]] = {}
    for point in csv.DictReader(Path(folder, "profile.csv").read_text().splitlines()):
        if point["measure"] == measure:
            out.setdefault(point["solver"], []).append((float(point["tau"]), float(point["share"])))
    return out


def test_three_solvers_on_four_problems_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    """A fast failure is no yardstick, and the problem that nobody solves stays in the count."""
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "bench.csv", [
        line("p", "a", 10.0), line("p", "b", 20.0), line("p", "c", 1.0, "not converged"),
        line("q", "a", 30.0), line("q", "b", 10.0), line("q", "c", 80.0),
        line("r, step 2", "a", "", "refused", 0), line("r, step 2", "b", 5.0), line("r, step 2", "c", 5.0),
        line("s", "a", 9.0, "failed"), line("s", "b", "", "over time", 0), line("s", "c", "", "not applicable", 0),
    ])  # fmt: skip
    status, out, _ = call("bench", "--from", "bench.csv", "--out", "out")
    assert status == 0 and "12 lines, 7 of them converged; nothing was solved" in out
    assert points("out", "ms") == {
        "a": [(1.0, 0.25), (3.0, 0.5)], "b": [(1.0, 0.5), (2.0, 0.75)], "c": [(1.0, 0.25), (8.0, 0.5)],
    }  # fmt: skip
    page = Path("out/bench.md").read_text()
    assert "| a | 2 of 4 | 0.25 | 0.25 | 0.50 |" in page and "4 problems, tolerance 1e-06." in page and "- c: So, said." in page
    assert Path("out/profile_ms.png").read_bytes().startswith(b"\x89PNG")


def test_a_benchmark_drawn_again_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in (2, 7):
        fs.write_fclib(f"p{seed}.hdf5", body_between_nodes(np.random.default_rng(seed), 6, 5))
    rows = fs.bench(["p7.hdf5", "p2.hdf5"], ["pgs", "pgs:max_iterations=1"], repeat=1, tolerance=1e-5, out="out")
    again = fs.redraw_bench("out/bench.csv", "again")
    for row, other in zip(rows, again, strict=True):
        assert other.cpu_ms == pytest.approx(row.cpu_ms, rel=1e-5) and other.curve_ms.size == 0
        assert (other.problem, other.solver, other.status, other.tolerance) == (row.problem, row.solver, row.status, 1e-5)
    assert Path("out/bench.csv").read_bytes() == Path("again/bench.csv").read_bytes()
    assert Path("out/problems.csv").read_bytes() == Path("again/problems.csv").read_bytes()
    for name, values in points("out", "iterations").items():
        np.testing.assert_allclose(points("again", "iterations")[name], values, rtol=1e-5)
    by_kind = [Path(folder, "bench.md").read_text().split("## Solved")[1].split("## p7")[0] for folder in ("out", "again")]
    assert by_kind[0] == by_kind[1] and by_kind[0].count("|") > 12
    assert sorted(file.name for file in Path("again").iterdir()) == [
        "bench.csv", "bench.md", "problems.csv", "profile.csv", "profile_iterations.png", "profile_ms.png", "solved.csv",
    ]  # fmt: skip
    fs.redraw_bench("again/bench.csv", "thrice")
    for file in Path("again").iterdir():
        assert file.suffix == ".png" or file.read_bytes() == Path("thrice", file.name).read_bytes()


def test_a_solver_that_went_astray_is_drawn_again(tmp_path: Path) -> None:
    """Its steps grow to any size, which `femsim bench` writes as it is; no profile is drawn from them."""
    astray = line("p", "b", 2.0, "not converged") | {"step_norm": "1.89124e+105", "velocity_error": "1e308"}
    rows = fs.redraw_bench(table(tmp_path / "b.csv", [line("p", "a", 1.0), astray]), tmp_path / "out")
    assert rows[1].step_norm == 1.89124e105 and rows[1].velocity_error == 1e308
    assert "1.89124e+105" in (tmp_path / "out" / "bench.csv").read_text()


GOOD = line("p", "a", 1.0)
WRONG: list[tuple[list[dict[str, Any]], list[str], tuple[str, ...]]] = [
    ([GOOD], [name for name in COLUMNS if name != "cpu_ms"], ("lacks the column 'cpu_ms'",)),
    ([GOOD], ["cpums", *COLUMNS[1:]], ("column 'cpums'", "unknown", "did you mean 'cpu_ms'")),
    ([GOOD], [*COLUMNS, "status"], ("column 'status' 2 times",)),
    ([GOOD, line("q", "a", "fast")], COLUMNS, ("line 3", "column 'cpu_ms'", "'fast'")),
    ([line("q", "a", "inf")], COLUMNS, ("line 2", "column 'cpu_ms'")),
    ([line("q", "a", 1e105)], COLUMNS, ("line 2", "column 'cpu_ms'", "from 0 to 1e+100")),
    ([GOOD | {"step_norm": "inf"}], COLUMNS, ("line 2", "column 'step_norm'")),
    ([line("q", "a", -1.0)], COLUMNS, ("line 2", "column 'cpu_ms'")),
    ([line("q", "a", "")], COLUMNS, ("line 2", "column 'cpu_ms' has no value")),
    ([line("q", "a", 1.0, iterations=1.5)], COLUMNS, ("line 2", "column 'iterations'", "whole numbers")),
    ([line("q", "a", 1.0, "convergd")], COLUMNS, ("line 2", "column 'status'", "did you mean 'converged'")),
    ([GOOD | {"solver": ""}], COLUMNS, ("line 2", "column 'solver' is empty")),
    ([GOOD | {"problem": "a\x00b"}], COLUMNS, ("column 'problem'", "printed")),
    ([GOOD | {"tolerance": 0.0}], COLUMNS, ("line 2", "column 'tolerance'")),
    ([GOOD, line("q", "a", 1.0) | {"tolerance": 1e-8}], COLUMNS, ("line 3", "column 'tolerance'", "each by itself")),
    ([GOOD, line("q", "a", 1.0), GOOD], COLUMNS, ("line 4", "column 'solver'", "again (line 2)")),
    ([], COLUMNS, ("no line below its columns",)),
]


@pytest.mark.parametrize(("lines", "columns", "words"), WRONG)
def test_what_is_no_table_is_named(
    tmp_path: Path, lines: list[dict[str, Any]], columns: list[str], words: tuple[str, ...]
) -> None:
    path = table(tmp_path / "b.csv", lines, columns)
    with pytest.raises(fs.InputError) as caught:
        fs.redraw_bench(path, tmp_path / "out")
    assert str(path) in str(caught.value) and str(caught.value).endswith(".")
    for word in words:
        assert word in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "no UTF-8 text"),
        (b"", "lacks the column 'problem'"),
        (b'"problem', "is no CSV"),
        (",".join(COLUMNS).encode() + b"\na,b\n", "line 2 has 2 cells, but the table has 26 columns"),
    ],
)
def test_damaged_tables_are_sentences(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "b.csv"
    path.write_bytes(content)
    with pytest.raises(fs.InputError, match=words):
        fs.redraw_bench(path, tmp_path / "out")
    with pytest.raises(fs.InputError, match="No such file"):
        fs.redraw_bench(tmp_path / "none.csv", tmp_path / "out")


def test_traits_beside_are_checked_too(tmp_path: Path) -> None:
    table(tmp_path / "b.csv", [GOOD])
    (tmp_path / "problems.csv").write_text(
        "problem,velocities,contacts,rows,rank,density,mass_ratio,soft,categories\np,3,1,0,3,1,nan,no,\n"
    )
    with pytest.raises(fs.InputError, match=r"problems.csv, line 2: column 'soft' holds 'no', allowed are True and False"):
        fs.redraw_bench(tmp_path / "b.csv", tmp_path / "out")


@pytest.mark.parametrize("more", [("p.hdf5",), ("--solvers", "pgs"), ("--tolerance", "1e-4"), ("--repeat", "1")])
def test_nothing_else_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call, more: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "b.csv", [GOOD])
    status, _, err = call("bench", *more, "--from", "b.csv")
    assert status == 2 and "--from solves nothing" in err


def test_words_of_a_table_are_no_formulas(tmp_path: Path) -> None:
    path = table(tmp_path / "b.csv", [line("p", "a$^$", 1.0), line("p", "b", 2.0)])
    fs.redraw_bench(path, tmp_path / "out")
    assert (tmp_path / "out" / "profile_ms.png").is_file()
