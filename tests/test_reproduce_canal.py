"""Stage reproduction of papers/000 and 002: its residual, its cases, and what its page claims, on few cases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import femsim as fs
from contact import make_problem, make_solver
from femsim.studies.reproduction import canal, pouring, quadrupeds, single_step
from femsim.studies.reproduction.budgets import NEVER, Budget, paper_residual, reach
from femsim.studies.reproduction.measuring import Settings

Raw = dict[str, Any]


def block(push: float) -> fs.ContactProblem:
    """A mass of 2 kg on a floor with one contact, pressed by 20 N and pushed to the side; dt 0.01 s, friction 0.4."""
    J = sp.csr_matrix(np.eye(3)[[2, 0, 1]])
    return make_problem(sp.csc_matrix(200.0 * sp.identity(3)), np.array([push, 0.0, -20.0]), J, np.zeros((1, 3)), 0.4, dt=0.01)


def test_the_residual_is_that_of_the_paper() -> None:
    """Of impulses in N s: zero where the law holds, else |l - T(l - u)| with u from the forces, by hand."""
    assert paper_residual(block(4.0), np.array([[20.0, -4.0, 0.0]])) == pytest.approx(0.0, abs=1e-16)
    assert paper_residual(block(12.0), np.array([[20.0, -8.0, 0.0]])) == pytest.approx(0.0, abs=1e-16)
    # half the normal force: falls at 0.05 m/s, so l - u = 0.1 + 0.05
    assert paper_residual(block(0.0), np.array([[10.0, 0.0, 0.0]])) == pytest.approx(0.05)
    # friction missing: slides at 0.06 m/s; the trial -0.06 is within 0.4 * 0.2
    assert paper_residual(block(12.0), np.array([[20.0, 0.0, 0.0]])) == pytest.approx(0.06)
    # slides at 0.12 m/s: the trial -0.12 goes to the cone of impulses, 0.4 * 0.2 N s
    assert paper_residual(block(24.0), np.array([[20.0, 0.0, 0.0]])) == pytest.approx(0.08)


def test_more_iterations_come_nearer_and_are_all_taken() -> None:
    problem = single_step.torn(single_step.laid_nut(0, 2), 0, single_step.NUT)
    budget = Budget("pgs", "pgs", {}, (1, 30))
    first, last = (reach(problem, budget, count) for count in budget.counts)
    assert last.residual < 0.5 * first.residual and first.ms > 0
    newton = [reach(problem, Budget("canal", "canal", {}, (2, 6)), count).newton for count in (2, 6)]
    assert 2 <= newton[0] < newton[1]


def test_a_wrench_of_a_size_is_on_each_body() -> None:
    pile = single_step.last_problem(fs.load_scene("dish_piling", pot_on_top=True), 2)
    added = (single_step.torn(pile, 3, (5.0, 0.2)).b - pile.b).reshape(-1, 2, 3)
    np.testing.assert_allclose(np.linalg.norm(added, axis=2), [[5.0, 0.2]] * 4)
    assert len(np.unique(added[:, 0].round(6), axis=0)) == 4
    again = single_step.torn(pile, 3, (5.0, 0.2))
    np.testing.assert_array_equal(again.b, (single_step.torn(pile, 3, (5.0, 0.2))).b)


def test_nuts_lie_askew_on_many_contacts() -> None:
    nuts = [single_step.laid_nut(pose) for pose in (0, 1)]
    for nut in nuts:
        assert nut.n == 6 and nut.n_contacts == 120
        gaps = nut.phi[:, 0] * nut.dt
        assert gaps.min() > -1e-6 and (gaps < 1e-6).sum() >= 4
        # the wrench of 3 N that laid it is gone: what is left is the weight, and its small speed
        assert np.linalg.norm(nut.b[:2]) < 1.0 and nut.b[2] == pytest.approx(-9.52, rel=0.1)
    assert not np.allclose(nuts[0].J.toarray(), nuts[1].J.toarray())


@pytest.fixture(scope="module")
def raws() -> Raw:
    small = Settings("tiny")
    return {name: part(small) for name, part in canal.EVALUATION.parts.items()}


def test_every_section_is_written(raws: Raw, tmp_path: Path) -> None:
    for section in canal.EVALUATION.sections:
        text = section.write(raws, tmp_path)
        assert "nan" not in text, section.title
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({line.count(" | ") for line in table.splitlines()}) == 1, table
    assert {path.name for path in tmp_path.iterdir()} == {"canal_nuts.png", "canal_dishes.png", "canal_pouring.png"}
    assert all(path.stat().st_size > 5000 for path in tmp_path.iterdir())


def test_the_page_has_the_tables_and_figures_of_the_issue() -> None:
    assert set(canal.EVALUATION.names) == {"I", "II", "III", "fig7", "fig9", "fig11"}


def test_canal_is_the_accurate_one_on_the_dishes() -> None:
    """Figure 9: to 1e-7 in 12 outer iterations, far below the others."""
    pile = single_step.last_problem(fs.load_scene("dish_piling", pot_on_top=True), 24)
    problem = single_step.torn(pile, 0, single_step.DISHES)
    reached = {name: reach(problem, Budget(name, name, {}, (count,)), count) for name, count in
               (("canal", 12), ("subadmm", 100), ("pgs", 100))}  # fmt: skip
    assert reached["canal"].residual < 1e-7 and reached["canal"].unfinished == 0
    assert min(reached["subadmm"].residual, reached["pgs"].residual) > 100 * reached["canal"].residual


def test_a_robot_is_a_subsystem_of_18_velocities() -> None:
    problem = single_step.last_problem(quadrupeds.dropped(2), 24)
    solution = make_solver("subadmm", tolerance=NEVER, max_iterations=10).solve(problem)
    assert problem.n == 144 and solution.details["subsystems"] == 8


def test_spheres_are_poured_and_their_mass_is_given() -> None:
    scene = pouring.pouring(9)
    assert len(scene.bodies) == 10
    state = scene.bodies[1].initial_q()
    assert scene.bodies[1].inertia(state, state)[0][0, 0] == pytest.approx(5.236e-3, rel=1e-3)  # 10 g/cm^3, 5 mm
    assert pouring.exponent([60, 120, 240], [1.0, 4.0, 16.0]) == pytest.approx(2.0)
