"""Sweeps with their options, and the presets of papers/004: what each says of its own law, and that none calls it ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from full_sets import full_set, needs_full_sets
from random_problems import random_local
from slow_twins import body_between_nodes, natural_map_residual

from contact import SOLVERS, ContactError, make_local_problem, make_problem, make_solver, measure_local, read_fclib
from contact.metrics import natural_map
from contact.problem import force_scales

PRESETS = sorted(name for name, entry in SOLVERS.items() if entry.preset_of == "pgs")
OTHER_LAW = {"pgs-ccp": "relaxation", "nbgs": "least energy", "raisim": "least energy"}


def sliding(coupling: float = 0.0) -> Any:
    """One contact that slides; coupling is W_nt."""
    W = np.array([[1.0, coupling, 0.0], [coupling, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return make_local_problem(W, np.array([[-1.0, 0.8, 0.3]]), 0.4)


def solve_local(name: str, problem: Any, **options: Any) -> Any:
    solver: Any = make_solver(name, **({"tolerance": 1e-9, "max_iterations": 5000} | options))
    return solver.solve_local(problem)


@pytest.mark.parametrize("name", PRESETS)
def test_what_a_preset_calls_converged_holds_our_law(name: str) -> None:
    """By the metrics, on random problems; and of the exact laws most converge."""
    rng = np.random.default_rng(5)
    converged = 0
    for _ in range(20):
        problem = random_local(rng, 4)
        solution = solve_local(name, problem, tolerance=1e-7)
        found = measure_local(problem, solution.lam).contact_residual
        assert not solution.converged or found <= 1e-7, solution.message
        converged += solution.converged
    assert converged >= (0 if name in OTHER_LAW or name in ("pgs-ncp", "raisim-ds-es") else 17)


@pytest.mark.parametrize("name", sorted(OTHER_LAW))
def test_another_law_is_met_and_said_and_not_called_converged(name: str) -> None:
    solution = solve_local(name, sliding(0.3))
    assert solution.status == "stopped at the limit" and solution.iterations < 500
    assert "Ended where its own law holds" in solution.message and OTHER_LAW[name] in solution.message
    assert solution.details["law_residual"] <= 1e-10
    assert measure_local(sliding(0.3), solution.lam).contact_residual > 1e-3


@pytest.mark.parametrize("name", ["nbgs", "raisim"])
def test_the_ellipse_is_coulomb_where_nothing_couples(name: str) -> None:
    assert solve_local(name, sliding()).converged


def test_the_relaxed_law_is_met_by_the_metrics() -> None:
    problem = random_local(np.random.default_rng(3), 5)
    solution = solve_local("pgs-ccp", problem, max_iterations=20000)
    scales = force_scales(problem.W.diagonal().reshape(-1, 3))
    relaxed = natural_map(problem.contact_velocity(solution.lam), solution.lam, scales, problem.friction, relaxed=True)
    assert relaxed == pytest.approx(solution.details["law_residual"], rel=1e-3) and relaxed <= 1e-10


@pytest.mark.parametrize("name", ["pgs", "pgs-ccp-ds", "raisim-ds"])
def test_exact_presets_solve_problems_with_a_matrix(name: str) -> None:
    problem = body_between_nodes(np.random.default_rng(2), 6, 5)
    solution = make_solver(name, tolerance=1e-9, max_iterations=20000).solve(problem)
    assert solution.converged, solution.message
    assert natural_map_residual(problem, solution.v, solution.lam) < 1e-8


def test_the_plateau_ends_early_and_the_judge_decides() -> None:
    problem = body_between_nodes(np.random.default_rng(2), 6, 5)
    early = make_solver("raisim-ds-es", tolerance=1e-12, plateau=1e-2).solve(problem)
    late = make_solver("raisim-ds-es", tolerance=1e-12, plateau=1e-14).solve(problem)
    assert early.iterations < late.iterations
    assert early.status == "stopped at the limit" and "plateau rule" in early.message


def test_decay_lowers_the_relaxation_to_its_least() -> None:
    solution = solve_local("pgs", random_local(np.random.default_rng(1), 6), tolerance=1e-12, decay=0.9, least_relaxation=0.7)
    assert solution.iterations > 4 and solution.details["relaxation"] == 0.7


@needs_full_sets
@pytest.mark.parametrize("file", ["OneObject-i100000-316", "OneObject-i100000-316_symW"])
def test_a_shorter_step_ends_the_cycle(file: str) -> None:
    """Without it the sweeps go round at 6e-5 for ever."""
    problem: Any = read_fclib(full_set("fclib") / f"{file}.hdf5").problem
    assert solve_local("pgs", problem, tolerance=1e-6, max_iterations=3000).converged
    assert not solve_local("pgs", problem, tolerance=1e-6, max_iterations=3000, least_relaxation=1.0).converged


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"operator": "loose"}, "operator of solver 'pgs' is 'loose'; allowed are 'strict' and 'lagged' and 'proximal'"),
        ({"local": "elipse"}, "local of solver 'pgs' is 'elipse'; allowed are 'auto', 'exact', 'decoupled', 'decoupled-min'"),
        ({"local": "ellipse"}, "local of solver 'pgs' is 'ellipse'; allowed are .* with operator 'strict'"),
        ({"operator": "lagged", "local": "exact"}, "local of .* is 'exact'; allowed are 'auto', 'cone', 'ellipse', 'bisection'"),
        ({"relaxation": 0.0}, "relaxation"),
        ({"relaxation": 1.5}, "relaxation"),
        ({"decay": 0.0}, "decay"),
        ({"least_relaxation": 2.0}, "least_relaxation"),
        ({"stop": "soon"}, "stop"),
        ({"plateau": 1.0}, "plateau"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ContactError, match=words):
        make_solver("pgs", **options)


def test_unknown_names_get_a_near_match() -> None:
    with pytest.raises(ContactError, match=r"solver 'rasim-ds' is unknown \(did you mean 'raisim-ds'\?\); there are 'auto'"):
        make_solver("rasim-ds")
    with pytest.raises(ContactError, match=r"solver 'pgs' has no option 'relaxtion' \(did you mean 'relaxation'\?\); it has tol"):
        make_solver("pgs", relaxtion=0.5)


def test_a_preset_names_itself_in_errors() -> None:
    with pytest.raises(ContactError, match="option plateau of solver 'raisim-ds-es' is 3"):
        make_solver("raisim-ds-es", plateau=3.0)


def test_no_contact() -> None:
    problem = make_problem(np.eye(3), np.ones(3), np.zeros((0, 3)), np.zeros((0, 3)), 0.4, dt=0.01)
    for name in PRESETS:
        assert make_solver(name).solve(problem).converged
