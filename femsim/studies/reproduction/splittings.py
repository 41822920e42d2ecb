"""What the tests of papers/003 share: its methods on one problem, curves of true residuals, and their table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from contact import ContactProblem, Solution, make_solver
from contact.cone import project_forces
from contact.linear import make_factorization
from contact.metrics import natural_map_scale
from contact.problem import isotropic
from contact.solvers.dense import relative_residual
from femsim.studies.reproduction.measuring import Raw
from femsim.studies.reproduction.text import number

#: Tolerance of the answers, and digits of a stored curve.
TOLERANCE, _DIGITS = 1e-6, 3
#: First rho of the paper for ADMM, and the fixed one of FADMM, 1/kg.
FIRST_RHO, FIXED_RHO = 0.1, 0.05


class Method(NamedTuple):
    """A method of the paper, or one beside it.

    Attributes
    ----------
    label : str
        As the table shows it.
    solver : str
        Name in ``contact.SOLVERS``, or "jacobi" or "spectral" of this module.
    options : dict
        Of the solver.
    """

    label: str
    solver: str
    options: dict[str, Any]


def admm(dt: float, every: int = 5) -> Method:
    """ADMM of the paper, not scaled, with the exact contact law in the place of its convex one.

    Parameters
    ----------
    dt : float, s
        Time step: the paper splits impulses, we split forces, whose rho is dt times as large.
    every : int
        Iterations between changes of the penalty, n_s.
    """
    options = {"scaling": "none", "penalty": FIRST_RHO * dt, "every": every}
    return Method(f"ADMM, n_s = {every}", "p-admm", options)


def p_admm(every: int = 5) -> Method:
    """P-ADMM of the paper: the same, scaled by contact."""
    return Method(f"P-ADMM, n_s = {every}", "p-admm", {"every": every})


def fadmm(dt: float, rho: float = FIXED_RHO) -> Method:
    """FADMM of the paper with a fixed rho, 1/kg."""
    return Method(f"FADMM, rho = {rho:g}", "fadmm", {"penalty": rho * dt})


def p_fadmm(rho: float = FIXED_RHO) -> Method:
    """P-FADMM of the paper with a fixed rho."""
    return Method(f"P-FADMM, rho = {rho:g}", "p-fadmm", {"penalty": rho})


OURS = Method("`admm`, our default", "admm", {})
JACOBI = Method("projected Jacobi", "jacobi", {})
SPECTRAL = Method("spectral projected gradient", "spectral", {})


def curve(problem: ContactProblem, method: Method, limit: int) -> Raw:
    """Solve a problem from nothing; what it took, and the residual after each iteration.

    A solver goes on while a body is not in balance, and its balance is asked for more sharply than these residuals. What it takes
    is that to the residual of :data:`TOLERANCE`, by another solve that ends there, where it comes so far.

    Parameters
    ----------
    problem : ContactProblem
        The problem.
    method : Method
        What solves it.
    limit : int
        Most iterations.
    """
    started = time.process_time()
    if method.solver in _FIXED_POINTS:
        lam, worst = _iterate(problem, _FIXED_POINTS[method.solver], limit)
        details: Raw = {}
    else:
        solution = _solve(problem, method, limit)
        lam, details = solution.lam, solution.details
        worst = np.maximum(solution.history.dynamics, solution.history.contact).tolist()
    seconds = time.process_time() - started
    row = {
        "label": method.label,
        "factorizations": details.get("factorizations"),
        "residual": [float(f"{value:.{_DIGITS}g}") for value in worst],
        "forces": lam.tolist(),
        "first_primal": None if not details else float(solution.history.dynamics[0]),
    }
    reached = below(row, TOLERANCE)
    if reached and reached < len(worst):
        started = time.process_time()
        row["factorizations"] = _solve(problem, method, reached).details.get("factorizations")
        seconds = time.process_time() - started
    return row | {"ms": 1e3 * seconds}


def _solve(problem: ContactProblem, method: Method, limit: int) -> Solution:
    return make_solver(method.solver, tolerance=TOLERANCE, max_iterations=limit, **method.options).solve(problem)


def below(row: Raw, level: float) -> int | None:
    """First iteration, from 1, after which the residual of a row is at most a level; None where it never is."""
    good = [index for index, value in enumerate(row["residual"], 1) if value <= level]
    return good[0] if good else None


def cells(row: Raw) -> list[str]:
    """Columns of a row: iterations to 1e-2, 1e-4 and 1e-6, factorizations, ms."""
    its = [below(row, level) for level in (1e-2, 1e-4, TOLERANCE)]
    shown = [f">{len(row['residual'])}" if value is None else str(value) for value in its]
    return [row["label"], *shown, "-" if row["factorizations"] is None else str(row["factorizations"]), number(row["ms"])]


HEADER = ["method", "iterations to 1e-2", "1e-4", "1e-6", "factorizations", "CPU ms, to there or in all"]


def draw(axes: Any, rows: Sequence[Raw], title: str) -> None:
    """Draw the residuals of rows by iteration into axes."""
    for row in rows:
        axes.semilogy(range(1, len(row["residual"]) + 1), np.maximum(row["residual"], 1e-10), label=row["label"].replace("`", ""))
    axes.set(xlabel="iteration", ylabel="residual", title=title)
    axes.legend(fontsize="x-small")


def said(value: int | None, limit: int) -> str:
    """Write a count of iterations."""
    return f"more than {limit}" if value is None else str(value)


# ---------------------------------------------------------------------- methods that the paper compares with


class _Dual:
    """A problem as u = W lam + q, with W applied by factors of A, in isotropic variables and the convex law of the paper."""

    def __init__(self, problem: ContactProblem) -> None:
        self.problem = same = isotropic(problem)
        factors = make_factorization()
        factors.factorize(same.A.tocsc(), np.zeros(0, dtype=np.int64))
        self._J, self._solve, self._b = same.J, factors.solve, same.b
        self._phi = same.phi.ravel()
        self.scales, self._map = same.scales, natural_map_scale(same)
        self._cone = np.column_stack([same.friction, same.friction])

    def velocity(self, lam: np.ndarray) -> np.ndarray:
        """Contact velocity of forces, (3 nc,)."""
        return np.asarray(self._J @ self._solve(self._b + self._J.T @ lam) + self._phi)

    def project(self, lam: np.ndarray) -> np.ndarray:
        """Closest forces in the cones."""
        out = np.empty((len(lam) // 3, 3))
        project_forces(lam.reshape(-1, 3), self._cone, False, out)
        return out.ravel()

    def residual(self, lam: np.ndarray, u: np.ndarray) -> float:
        """Natural map of the convex law."""
        return relative_residual(lam, u, self.problem.friction, self._map, False)


def _jacobi(dual: _Dual, lam: np.ndarray, relaxation: float = 0.3) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Projected Jacobi: all contacts at once, each by its own compliance, with under-relaxation."""
    gain = relaxation * np.repeat(dual.scales, 3)
    u = dual.velocity(lam)
    while True:
        lam = dual.project(lam - gain * u)
        u = dual.velocity(lam)
        yield lam, u


def _spectral(dual: _Dual, lam: np.ndarray, memory: int = 10) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Spectral projected gradient, scaled by contact, with a search over the last energies; falls back to the best iterate."""
    weight = np.repeat(1.0 / dual.scales, 3)  # of the metric: compliance of each contact
    q = dual.velocity(np.zeros_like(lam))
    u = dual.velocity(lam)
    energies, step = [0.5 * float(lam @ (u + q))], 1.0
    while True:
        direction = dual.project(lam - step * u / weight) - lam
        moved = dual.velocity(lam + direction) - u
        slope, bend = float(u @ direction), float(direction @ moved)
        part = 1.0
        while energies[-1] + part * slope + 0.5 * part * part * bend > max(energies[-memory:]) + 1e-4 * part * slope:
            part *= 0.5
            if part < 1e-8:
                break
        lam, u = lam + part * direction, u + part * moved
        energies.append(0.5 * float(lam @ (u + q)))
        size = float(direction @ (weight * direction))
        step = float(np.clip(size / bend, 1e-6, 1e6)) if bend > 0 else 1.0
        yield lam, u


_FIXED_POINTS = {"jacobi": _jacobi, "spectral": _spectral}


def _iterate(problem: ContactProblem, method: Any, limit: int) -> tuple[np.ndarray, list[float]]:
    dual = _Dual(problem)
    best, found = np.zeros(3 * problem.n_contacts), list[float]()
    for lam, u in method(dual, best):
        found.append(dual.residual(lam, u))
        if found[-1] <= min(found):
            best = lam
        if found[-1] <= TOLERANCE or len(found) == limit:
            break
    return best.reshape(-1, 3), found
