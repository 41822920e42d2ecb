"""PGS: sweeps over the contacts with exchangeable local solvers (papers/001 section V-C1, papers/004 Alg. 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from contact.solvers import dense_kernels as kernels
from contact.solvers.base import Check
from contact.solvers.condensed import Condensed, CondensedOptions, CondensedSolver, Law
from contact.solvers.local_kernels import (
    BISECTION,
    CONE,
    DECOUPLED,
    DECOUPLED_LARGE,
    ELLIPSE,
    EXACT,
    Rule,
    sweep_contacts,
    sweep_until,
)

LocalSolver = Literal["auto", "exact", "cone", "decoupled", "decoupled-min", "ellipse", "bisection"]
_LOCAL: dict[LocalSolver, int] = {
    "exact": EXACT, "cone": CONE, "decoupled": DECOUPLED_LARGE, "decoupled-min": DECOUPLED, "ellipse": ELLIPSE,
    "bisection": BISECTION,
}  # fmt: skip
#: Local solvers that hold the law by themselves; the others take a correction or hold another law.
_STRICT: tuple[LocalSolver, ...] = ("exact", "decoupled", "decoupled-min")

#: Where the least contact residual of so many sweeps is that of as many before, to this part, the forces go round in a circle:
#: the relaxation falls by the factor.
_PERIOD, _SAME, _BRAKE = 300, 1e-3, 0.9


@dataclass(frozen=True)
class PgsOptions(CondensedOptions):
    """Options of sweeps over the contacts.

    Attributes
    ----------
    max_iterations : int
        Limit of sweeps over all contacts. Default 1000.
    operator : {"strict", "lagged", "proximal"}
        Strict: a local solver that holds the Signorini-Coulomb law itself. Lagged: one that does not, with the correction of De
        Saxce, s = mu |u_t| of the present velocity, whose fixed points hold the law. Proximal: the same without correction; where
        contacts slide the fixed points hold another law, which is reported in ``law_residual``, but our metrics do not pass it
        and the status says "stopped at the limit". Default strict.
    local : {"auto", "exact", "cone", "decoupled", "decoupled-min", "ellipse", "bisection"}
        Local solver of a contact, papers/004 Algs. 2 to 4. Strict ones: "exact", the law of the contact alone; "decoupled",
        normal force first and tangent after, by the larger entry of W_tt ("decoupled-min": by the smaller one, as the text has
        it, which diverges where the two differ by more than 2). Others: "cone", a gradient step and closest point of the cone;
        "ellipse", least energy on the section of the cone with u_n = 0, by a search of all angles; "bisection", by a walk from
        the angle of the sticking force. Default "auto": "exact" for the strict operator, else "cone".
    relaxation : float
        Part of the way to the force of the local solver, in (0, 1]. Default 1.
    decay : float
        Factor on the relaxation after each sweep, in (0, 1]. Default 1.
    least_relaxation : float
        The relaxation does not fall below this one. Default 0.5: where 300 sweeps come no nearer than the 300 before, it falls
        by a tenth, which ends cycles. With the value of ``relaxation`` it never changes.
    stop : {"law", "plateau"}
        Law: only the contact law ends the sweeps. Plateau: also the relative change of the energy lam.W lam / 2 + lam.q below
        ``plateau``, which says little about accuracy; the verdict is by the law in both cases. Default law.
    plateau : float
        See ``stop``. Default 1e-6.
    check_every : int
        Sweeps after which u = W lam + q is evaluated afresh, against the rounding of its updates. A verdict always comes from a
        fresh one. Default 50.
    """

    solver_name: ClassVar[str] = "pgs"

    operator: Literal["strict", "lagged", "proximal"] = "strict"  # type: ignore[assignment]
    local: LocalSolver = "auto"
    relaxation: float = 1.0
    decay: float = 1.0
    least_relaxation: float = 0.5
    stop: Literal["law", "plateau"] = "law"
    plateau: float = 1e-6
    check_every: int = 50

    def _checks(self) -> list[Check]:
        strict = self.operator == "strict"
        fitting = [name for name in get_args(LocalSolver) if name == "auto" or (name in _STRICT) == strict]
        least, allowed = self.least_relaxation, f"{', '.join(map(repr, fitting))} with operator {self.operator!r}"
        return [
            *super()._checks(),
            ("local", self.local, self.local in fitting, allowed),
            ("relaxation", self.relaxation, 0 < self.relaxation <= 1, "numbers above 0 up to 1"),
            ("decay", self.decay, 0 < self.decay <= 1, "numbers above 0 up to 1"),
            ("least_relaxation", least, 0 < least <= 1, "numbers above 0 up to 1"),
            ("stop", self.stop, self.stop in ("law", "plateau"), "'law' and 'plateau'"),
            ("plateau", self.plateau, 0 < self.plateau < 1, "numbers between 0 and 1"),
            ("check_every", self.check_every, self.check_every >= 1, "integers >= 1"),
        ]

    def _operators(self) -> tuple[str, ...]:
        return "strict", "lagged", "proximal"

    @property
    def local_solver(self) -> LocalSolver:
        """The local solver that "auto" stands for, or the one that was named."""
        if self.local != "auto":
            return self.local
        return "exact" if self.operator == "strict" else "cone"

    @property
    def law(self) -> Law:
        """Law that holds where the forces no longer change."""
        if self.operator != "proximal":
            return "coulomb"
        return "relaxed" if self.local_solver == "cone" else "energy"


class _Sweeps:
    """One iteration = one sweep of block Gauss-Seidel over all contacts."""

    def __init__(self, problem: Condensed, lam: np.ndarray, options: PgsOptions) -> None:
        self.problem, self.lam, self.options = problem, lam, options
        self._rule = Rule(_LOCAL[options.local_solver], options.operator == "lagged", options.relaxation)
        self._least = min(options.least_relaxation, options.relaxation)
        self._least_now, self._least_before, self._sweeps = np.inf, np.inf, 0
        self.u = np.empty_like(lam)
        self._blocks = np.empty((len(problem.friction), 3, 3))
        kernels.diagonal_blocks(problem.WT, self._blocks)
        self.over, self._energy = False, np.inf
        self.change = np.inf
        self.refresh()

    def advance(self) -> None:
        problem, options = self.problem, self.options
        self.change = sweep_contacts(problem.WT, self._blocks, problem.friction, self._rule, 1, self.lam, self.u)
        self._sweeps += 1
        if options.decay < 1.0:
            self._relax(options.decay)
        if self._sweeps % options.check_every == 0:
            self.refresh()
        if options.stop == "plateau":
            before, self._energy = self._energy, 0.5 * float(self.lam @ (self.u + problem.q))
            self.over = abs(self._energy - before) <= options.plateau * abs(self._energy)

    def many(self, aim: float, limit: int, least: float, best: np.ndarray) -> tuple[np.ndarray, int]:
        """Sweep up to where velocities are evaluated afresh or steps may become shorter, where only the contact law ends it."""
        options, problem = self.options, self.problem
        if options.law != "coulomb" or options.stop != "law" or options.decay < 1.0:
            return np.empty((0, 2)), -1
        left = options.check_every - self._sweeps % options.check_every
        count = min(left, _PERIOD - self._sweeps % _PERIOD, limit)
        rows = np.empty((count, 2))
        done, place = sweep_until(
            problem.WT, problem.q, self._blocks, problem.friction, problem.rho, self._rule, count == left, (aim, least), self.lam,
            self.u, best, rows,
        )  # fmt: skip
        self._sweeps += done
        return rows[:done], place

    def watch(self, residual: float) -> None:
        """Shorten the steps where they go round in a circle."""
        if residual < self._least_now:
            self._least_now = residual
        if self._sweeps % _PERIOD == 0:
            circles = abs(self._least_now - self._least_before) <= _SAME * self._least_before < np.inf
            if circles and self._least_now > self.options.tolerance:
                self._relax(_BRAKE)
            self._least_now, self._least_before = np.inf, self._least_now

    def _relax(self, factor: float) -> None:
        self._rule = self._rule._replace(relaxation=max(self._least, factor * self._rule.relaxation))

    def refresh(self) -> None:
        kernels.velocities(self.problem.WT, self.problem.q, self.lam, self.u)

    def details(self) -> dict[str, float]:
        """Numbers for the solution."""
        return {"relaxation": self._rule.relaxation}


class Pgs(CondensedSolver[PgsOptions]):
    """Projected Gauss-Seidel on u = W lam + q, contact after contact (papers/001 ref. 17; papers/004 Alg. 5).

    A is factorised afresh in every solve (the symbolic analysis is kept while the pattern of A and the contacts' rows stay), W is
    assembled, then the sweeps run on dense rows of W. ``pgs-ccp``, ``pgs-ncp``, ``nbgs``, ``raisim`` and their like are the same
    with other defaults, see :mod:`contact.solvers.presets`.

    Parameters
    ----------
    options : PgsOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    ``Solution.details``: ``operator``, ``law_residual`` (natural map of the law that was solved; of the ellipse without
    correction, which has no such map, the largest change of a force in the last sweep over the largest force),
    ``returned_iteration`` (the best by that law), ``relaxation`` (the last) and ``backend``. In the history the contact
    residual is that of each sweep, the dynamics residual that of the answer they led to (every sweep has a v that is exact to
    rounding), and the step is the change of the contact velocities.
    """

    description = "PGS: projected Gauss-Seidel on the assembled Delassus operator (baseline of papers/001)"

    def __init__(self, options: PgsOptions | None = None) -> None:
        super().__init__(options or PgsOptions())

    def _start(self, problem: Condensed, lam: np.ndarray) -> _Sweeps:
        return _Sweeps(problem, lam, self.options)
