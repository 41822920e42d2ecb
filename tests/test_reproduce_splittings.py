"""Stage reproduction of papers/003: what its page claims, on small problems, and the first-order methods beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import femsim as fs
from contact import make_problem
from femsim.studies.reproduction import bars, column, robot, splittings, wall
from femsim.studies.reproduction.measuring import Settings
from femsim.studies.reproduction.splittings import JACOBI, OURS, SPECTRAL, admm, below, curve, fadmm, p_admm

Raw = dict[str, Any]


def block(slides: bool) -> fs.ContactProblem:
    """A mass of 2 kg on a floor with four contacts in one place, pressed by its weight and pushed to the side; dt 0.01 s."""
    A = sp.csc_matrix(200.0 * sp.identity(3))
    push = 12.0 if slides else 4.0
    J = sp.csr_matrix(np.vstack([np.eye(3)[[2, 0, 1]]] * 4))
    return make_problem(A, np.array([push, 0.0, -20.0]), J, np.zeros((4, 3)), 0.4, dt=0.01)


@pytest.mark.parametrize("method", [JACOBI, SPECTRAL, OURS, admm(0.01), p_admm(), fadmm(0.01)], ids=lambda method: method.label)
def test_methods_find_the_forces_of_a_block_at_rest(method: splittings.Method) -> None:
    """They carry its weight and its push; what a row says of them is what they did."""
    row = curve(block(False), method, 3000)
    total = np.array(row["forces"]).sum(axis=0)
    np.testing.assert_allclose(total, [20.0, -4.0, 0.0], atol=2e-4)
    assert row["residual"][-1] <= splittings.TOLERANCE and below(row, splittings.TOLERANCE) == len(row["residual"])
    assert below(row, 0.0) is None or row["residual"][-1] == 0.0


@pytest.mark.parametrize("method", [JACOBI, SPECTRAL], ids=lambda method: method.label)
def test_the_convex_law_lifts_what_slides(method: splittings.Method) -> None:
    """u_n = mu |u_t|: the tangential force is that of the cone, and the normal one holds the weight and lifts."""
    problem = block(True)
    row = curve(problem, method, 5000)
    total = np.array(row["forces"]).sum(axis=0)
    v = problem.A.toarray()[0, 0] ** -1 * (problem.b + np.array([total[1], total[2], total[0]]))
    assert v[0] > 0 and v[2] == pytest.approx(0.4 * v[0], rel=1e-4)
    assert total[1] == pytest.approx(-0.4 * total[0], rel=1e-4)


@pytest.fixture(scope="module")
def raws() -> Raw:
    return {"column": column.measure(Settings("quick")), "wall": wall.measure(Settings("tiny"))}


def test_the_column_is_as_the_paper_says(raws: Raw) -> None:
    rows = {case: {row["label"]: row for row in raws["column"][case]["rows"]} for case in "AB"}

    def its(case: str, label: str) -> float:
        return below(rows[case][label], splittings.TOLERANCE) or np.inf

    assert its("A", "ADMM, n_s = 5") < 20 and its("A", "ADMM, n_s = 1") < 10
    assert rows["A"]["ADMM, n_s = 5"]["first_primal"] < 1e-12
    assert its("A", "FADMM, rho = 0.05") > 100 > its("A", "FADMM, rho = 0.0005")
    assert its("B", "P-FADMM, rho = 0.05") < its("B", "FADMM, rho = 0.05") < 150
    assert its("B", "P-ADMM, n_s = 5") < its("B", JACOBI.label) == np.inf
    assert rows["A"]["ADMM, n_s = 5"]["error"] < 1e-3 < 0.1 < rows["A"][JACOBI.label]["error"]


def test_the_tiny_wall_gives_its_section(raws: Raw, tmp_path: Path) -> None:
    text = wall.write(raws, tmp_path)
    assert "6 bricks" in text and "nan" not in text and (tmp_path / "admm_wall.png").stat().st_size > 5000
    raw = raws["wall"]
    assert raw["velocities"] == 42 and raw["speeds"][0] < 16.0 and raw["penetration"] < 0.01
    named = {row["label"]: row for row in raw["rows"]}
    assert below(named["`canal`"], 1e-6)
    assert raw["soft"][0][1]["residual"] == named[OURS.label]["residual"]  # softness 0 is hard
    one, other = raw["soft"][-1]
    assert below(one, 1e-6) and one["softness"] == 1e-4 and one["sum"] == pytest.approx(other["sum"], rel=1e-3)
    sums = [pair[0]["sum"] for pair in raw["soft"]]
    assert sums == sorted(sums, reverse=True) and sums[-1] < 0.1 * sums[0]  # contacts that give way press less in the step


def test_a_robot_at_rest_beside_boxes_gives_its_section(tmp_path: Path) -> None:
    raw = robot.measure(Settings("tiny"))
    text = robot.write({"robot": raw}, tmp_path)
    assert "nan" not in text and "| the robot alone | 3 | 0 to 0 | 1 | 1 | 1 | 100 %" in text
    for case in raw.values():
        assert case["converged"] == case["steps"] == 3 and case["opening"] < 1e-8
    contacts, iterations, factorizations, _, early = np.array(raw["boxes"]["rows"]).T
    assert contacts.min() >= 60 and 1 <= iterations.min() and iterations.max() < 15 and factorizations.max() <= 2
    assert (early <= splittings.TOLERANCE).all()


def test_the_tiny_bars_give_their_section(tmp_path: Path) -> None:
    raw = bars.measure(Settings("tiny"))
    text = bars.write({"bars": raw}, tmp_path)
    assert "nan" not in text and (tmp_path / "admm_bars.png").stat().st_size > 5000
    for case in raw.values():
        solved = {row["label"] for row in case["rows"] if below(row, splittings.TOLERANCE)}
        assert solved >= {OURS.label, "P-ADMM, n_s = 5", "`canal`"}
        assert case["linear"]["saddle"][0] > 0 and case["relaxed"][2] <= 1e-6
