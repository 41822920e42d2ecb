"""Stage traits of problems and the page of papers/004: categories by hand, counts by category, ranks, a page of few problems."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import femsim as fs
from contact import make_problem, make_solver
from femsim.studies.problems.bench import BenchRow
from femsim.studies.problems.pages import solved_by_category
from femsim.studies.problems.profiles import performance_profiles
from femsim.studies.problems.sets import GENERATED, box_stack
from femsim.studies.problems.traits import Traits, traits
from femsim.studies.reproduction import suite
from femsim.studies.reproduction.measuring import Settings


def named(problem_set: str, name: str) -> fs.ContactProblem:
    return dict(GENERATED[problem_set]())[name]


def test_traits_by_hand() -> None:
    """A box on four corners: 12 forces on 6 velocities. Two boxes of 1 : 1000."""
    one, two = traits(box_stack(1, 1.0)), traits(box_stack(2, 1000.0))
    assert (one.velocities, one.contacts, one.rows, one.rank, one.constraints) == (6, 4, 0, 6.0, 12)
    assert one.density == 2.0 and math.isnan(one.mass_ratio) and one.categories == ("redundant", "dense")
    assert two.rank == 12.0 and two.mass_ratio == pytest.approx(1000.0) and two.categories == ("redundant", "dense", "mass ratio")


def test_joints_and_soft_bodies_are_seen() -> None:
    """A four-bar in space: hinges repeat each other, and given twice they add no rank."""
    once, twice = traits(named("mechanisms", "four-bar-free")), traits(named("mechanisms", "four-bar-twice"))
    assert once.rows == 20 and twice.rows == 40 and once.rank == twice.rank < once.constraints
    assert "joints" in once.categories and "soft" not in once.categories
    fixed = make_problem(
        sp.csc_matrix(sp.identity(6)), np.zeros(6), sp.csr_matrix(np.eye(6)[:3]), np.zeros((1, 3)), 0.4, dt=0.01,
        groups=[fs.Group("nodes", 0, 6, "nodes")],
    )  # fmt: skip
    assert traits(fixed).categories == ("independent", "soft")


def test_the_local_form_has_a_rank_and_no_bodies() -> None:
    local = fs.make_local_problem(np.ones((6, 6)) + np.zeros((6, 6)), np.zeros(6), np.array([0.3, 0.3]))
    found = traits(local)
    assert found.rank == 1.0 and found.constraints == 6 and found.categories == ("redundant", "dense")


def test_solved_are_counted_by_category() -> None:
    known = {"a": traits(box_stack(1, 1.0)), "b": Traits(6, 1, 0, 3.0, 0.5, math.nan, soft=False)}
    rows = [BenchRow(problem, 1, 6, solver, status, "") for problem, solver, status in
            (("a", "x", "converged"), ("b", "x", "not converged"), ("a", "y", "converged"), ("b", "y", "converged"))]  # fmt: skip
    header, lines = solved_by_category(rows, known)
    assert header == ["solver", "all (2)", "independent (1)", "redundant (1)", "dense (1)"]
    assert lines == [["y", "2", "1", "1", "1"], ["x", "1", "0", "1", "1"]]


def test_a_benchmark_writes_the_traits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fs.write_fclib("box.hdf5", box_stack(1, 1.0))
    fs.bench(["box.hdf5"], ["pgs"], repeat=1, out="out")
    (line,) = csv.DictReader(Path("out/problems.csv").read_text().splitlines())
    assert line["problem"] == "box" and line["rank"] == "6" and line["categories"] == "redundant dense"
    page = Path("out/bench.md").read_text()
    assert "| solver | all (1) | redundant (1) | dense (1) |" in page and "6 velocities; redundant, dense." in page


def test_ranks_are_by_area_and_shared() -> None:
    nan = math.nan
    found = suite.ranks(performance_profiles({"a": [1.0, 1.0], "b": [2.0, 4.0], "c": [1.0, 1.0], "d": [nan, nan]}))
    assert {name: rank for name, (rank, _) in found.items()} == {"a": 1, "c": 1, "b": 3, "d": 4}
    assert found["a"][1] == 1.0 and found["d"][1] == 0.0


def test_admm_by_eigenvalues_bears_contacts_that_cannot_move() -> None:
    """Where W is 0 (all that a contact acts on is held) there is no condition to take a penalty from."""
    problem = named("mechanisms", "four-bar-fixed")
    solution = make_solver("admm-ncp-sa", tolerance=1e-6).solve(problem)
    assert solution.converged


def test_the_page_on_the_mechanisms(tmp_path: Path) -> None:
    raw: dict[str, Any] = suite.measure(Settings("tiny"))
    solvers = {row["solver"] for row in raw["rows"]}
    assert solvers == {*suite.PAPER, *suite.OURS} and len(raw["rows"]) == len(solvers) * len(raw["traits"])
    assert set(raw["traits"]) == {row["problem"] for row in raw["rows"]}
    for row in raw["rows"]:
        if row["status"] == "converged" and row["first"][2] is not None:
            assert row["first"][0] <= row["first"][1] <= row["first"][2] <= row["iterations"]
    text = suite.write({"suite": raw}, tmp_path)
    assert "nan" not in text and (tmp_path / "dual_profiles.png").stat().st_size > 5000
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count(" | ") for line in table.splitlines()}) == 1, table
