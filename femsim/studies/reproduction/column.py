"""Test 1 of papers/003 (Figures 2 to 6): a column of spheres, one a thousand times as heavy, at rest and pulled up."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contact import ContactProblem, Solution, WarmStart, make_solver
from femsim.scene.scene_file import load_scene
from femsim.step.stepper import Stepper
from femsim.studies.reproduction.measuring import REFERENCE, Raw, Settings
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.splittings import (
    FIXED_RHO,
    JACOBI,
    OURS,
    SPECTRAL,
    TOLERANCE,
    Method,
    admm,
    below,
    cells,
    curve,
    draw,
    fadmm,
    p_admm,
    p_fadmm,
    said,
)
from femsim.studies.reproduction.text import image, markdown, number, picture, section

#: Fixed penalties of Figure 6, 1/kg; the paper does not print its own.
RHOS = (5.0, 0.5, FIXED_RHO, 5e-3, 5e-4, 5e-5)
EVERY = (1, 5, 10, 20)


class _KeptError(Exception):
    """The problem of the first step, which is not solved."""

    def __init__(self, problem: ContactProblem) -> None:
        super().__init__()
        self.problem = problem


class _Keep:
    """A solver that gives the first problem out."""

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Raise it."""
        raise _KeptError(problem)


def first_problem(name: str, **parameters: object) -> ContactProblem:
    """Return the contact problem of the first step of a scene."""
    try:
        Stepper(load_scene(name, **parameters), _Keep()).step()
    except _KeptError as kept:
        return kept.problem
    raise AssertionError(f"the first step of {name} has no contact problem")


def measure(settings: Settings) -> Raw:
    """Solve the first step of both cases from nothing by all methods."""
    limit = settings.some(600, 400, 50)
    raw: Raw = {"limit": limit}
    for case in "AB":
        settings.say(f"column {case}")
        problem = first_problem("sphere_stack", case=case)
        dt = problem.dt
        of_rho = [fadmm(dt, rho) for rho in RHOS] + [p_fadmm()]
        others = [OURS, JACOBI, SPECTRAL, Method("`apgd`", "apgd", {}), Method("`pgs`", "pgs", {})]
        methods = [admm(dt, every) for every in EVERY] + [p_admm(every) for every in EVERY[:3]] + of_rho + others
        exact = make_solver("exact", tolerance=REFERENCE).solve(problem)
        rows = [curve(problem, method, limit) for method in methods]
        on_bodies = problem.J.T @ exact.lam.ravel()
        for row in rows:
            wrong = problem.J.T @ np.array(row.pop("forces")).ravel() - on_bodies
            row["error"] = float(np.linalg.norm(wrong) / np.linalg.norm(on_bodies))
        raw[case] = {"rows": rows, "contacts": problem.n_contacts, "dt": dt}
    return raw


#: What the figure shows and the tables leave out.
_DRAWN = ("ADMM, n_s = 10", "P-ADMM, n_s = 10", *(f"FADMM, rho = {rho:g}" for rho in RHOS[1:-1] if rho != 0.05))


def _named(rows: list[Raw], *labels: str) -> list[Raw]:
    return [row for label in labels for row in rows if row["label"] == label]


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Tables and Figures 2 to 6."""
    raw, limit = raws["column"], raws["column"]["limit"]
    a, b = raw["A"]["rows"], raw["B"]["rows"]
    with picture(figures / "admm_column.png", 4) as (first, second, third, fourth):
        draw(first, _named(a, *(f"ADMM, n_s = {every}" for every in EVERY), "P-ADMM, n_s = 5"), "A: how often (Figure 5)")
        draw(second, _named(a, *(f"FADMM, rho = {rho:g}" for rho in RHOS)), "A: fixed rho (Figure 6)")
        draw(third, _named(b, "ADMM, n_s = 5", "P-ADMM, n_s = 5", "FADMM, rho = 0.05", "P-FADMM, rho = 0.05"), "B (Figure 4)")
        draw(fourth, _named(b, JACOBI.label, SPECTRAL.label, "`apgd`", "ADMM, n_s = 5", "P-ADMM, n_s = 5"), "B (Figure 2)")
        for axes in (first, second, third, fourth):
            axes.set_xscale("log")

    def its(rows: list[Raw], label: str) -> str:
        (row,) = _named(rows, label)
        return said(below(row, TOLERANCE), limit)

    (balanced,) = _named(a, "ADMM, n_s = 5")
    best = min(
        (value, row["label"]) for row in _named(a, *(f"FADMM, rho = {r:g}" for r in RHOS)) if (value := below(row, TOLERANCE))
    )
    lines = [
        [label, *("; ".join(cells(row)[1:4]) + f" ({number(row['error'], 2)})" for row in _named([*a, *b], label))]
        for label in (row["label"] for row in a)
        if label not in _DRAWN
    ]
    columns = [f"{case}: iterations to 1e-2; 1e-4; 1e-6 (error of the force on the bodies)" for case in "AB"]
    given = published("test_1", "003")
    return section(
        f"20 spheres of {given['mass']} kg in a column, the {given['heavy']}th of {given['heavy_mass']} kg, one of "
        f"{given['beside']} kg on the "
        f"floor beside it; in B the heavy one is pulled up by twice its weight. Not given, and ours: radius 0.1 m, time step "
        f"{1e3 * raw['A']['dt']:g} ms, friction 0.5. First step, from nothing, {raw['A']['contacts']} contacts, at most "
        f"{limit} iterations. The paper "
        "splits impulses: its rho is ours over the time step.",
        markdown(["method", *columns], lines),
        image("Residuals of the column", figures / "admm_column.png"),
        points=[
            f"A, ADMM with balanced steps: {its(a, 'ADMM, n_s = 5')} iterations (paper: {given['a_admm']}), "
            f"{its(a, 'ADMM, n_s = 1')} with n_s = 1, {its(a, 'ADMM, n_s = 20')} with n_s = 20 (paper: a small n_s is best). "
            "The residual of the dynamics is "
            f"{number(balanced['first_primal'], 2)} after the first iteration (paper: {given['a_primal']}).",
            f"A, FADMM with rho 0.05: {its(a, 'FADMM, rho = 0.05')} (paper: {given['a_fadmm']}); {best[1]} needs {best[0]} "
            "(paper: greatly "
            "improved with other step sizes).",
            f"B, from a fixed rho: FADMM {its(b, 'FADMM, rho = 0.05')}, P-FADMM {its(b, 'P-FADMM, rho = 0.05')} (paper: "
            f"{given['b_fadmm']}).",
            f"B, n_s = 5: ADMM {its(b, 'ADMM, n_s = 5')}, P-ADMM {its(b, 'P-ADMM, n_s = 5')} (paper: {given['b_admm']}). Our "
            "rule takes the root of the ratio of the residuals, the paper's the ratio.",
            f"B, first-order methods, our own plain ones in the convex law: Jacobi {its(b, JACOBI.label)}, spectral gradient "
            f"{its(b, SPECTRAL.label)} (paper: {given['b_jacobi']}).",
        ],
    )  # fmt: skip
