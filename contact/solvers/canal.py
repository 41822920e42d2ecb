"""CANAL: the augmented Lagrangian of papers/000 and 002 as a solver, with convex inner problems solved by Newton's method."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from contact.metrics import Residuals, norm, residuals
from contact.metrics_kernels import TINY
from contact.problem import ContactProblem, from_isotropic, isotropic, to_isotropic
from contact.solvers.augmented import AugmentedLagrangian, Inner, Plan
from contact.solvers.base import Check, FactorizationOptions, Solution, WarmStart, start_pair
from contact.solvers.canal_ways import Base, DenseBase, PatchBase, SparseBase, SparseCholesky, WayName, choose
from contact.solvers.converted import Converting
from contact.solvers.judge import Judge, Row, barring, drive
from contact.solvers.newton_ways import SparseWay
from contact.solvers.penalty_path import PenaltyPath
from contact.solvers.strict_newton import Globalization, StrictNewton
from contact.solvers.with_rows import takes_rows

#: The acceleration starts anew where the residual is this many times the smallest one.
_WORSE = 2.0
#: So many iterations come before a path of the penalty, and between two of them; it is tried where the best residual fell by less
#: than the second number over the third number of iterations.
_PATIENCE, _STALL, _STALL_OVER = 20, 0.1, 10
#: The judge, if it was not content, looks again after so many iterations.
_WAIT = 8
#: Forces of so many times those of the problem, for each contact but at least the second number, are no start, and iterations
#: that lead to the third number of times more of them are left. Measured where bodies lean on one another, stack or screw: at
#: most 5, or 0.9 for each contact of a column of 160 boxes; where forces that hold each other grow without end, 1e2 to 1e8.
_STRONG, _STRONG_LEAST, _ASTRAY = 4.0, 1e2, 10.0
#: First penalty of the path that follows then.
_FROM_NOTHING = 1.0


@dataclass(frozen=True)
class CanalOptions(FactorizationOptions):
    """Options of CANAL.

    Attributes
    ----------
    max_iterations : int
        Limit of outer iterations. Default 200; 10 to 40 are usual, more where contacts slide fast.
    max_newton : int
        Most Newton steps of an outer iteration. Default 30; 1 to 5 are usual.
    beta : float
        First penalty as a multiple of the force per velocity of each contact (``ContactProblem.scales``).
    beta_growth : float
        Factor by which it grows.
    beta_max : float
        Its largest value, relative as ``beta`` is.
    beta_rule : {"balanced", "paper"}
        When it grows: where the error of the constraints fell by less than a factor of 4 and is not small beside that of the slip
        speeds, or whenever it fell so little (papers/000 Alg. 1), which drives it to its largest where slip is slow.
    acceleration : int
        Window of the Anderson acceleration of the slip speeds, which sets in where no contact changes its state, or where they
        are slow; 0 for none.
    inner : {"adaptive", "tight"}
        Inner problems are solved to a tenth of the last residual, or always to 1e-10.
    inner_method : {"newton", "damped", "dogleg"}
        ``"newton"``: Newton with exact line search on the convex surrogate. The others are the baselines of papers/000 Table II,
        semi-smooth Newton on the equation with the strict operator, by backtracking or in a trust region; they may get stuck.
    way : {"auto", "dense", "patch", "sparse"}
        Linear algebra: dense Cholesky factors of all rows, the same of the rows that contacts act on (A is factorized once), or
        sparse Cholesky factors. Default by the sizes.
    path : bool
        Whether a path of the penalty with the strict operator (``contact.solvers.penalty_path``) is tried where iterations stall,
        as they do where slip speeds go to and fro.
    """

    solver_name: ClassVar[str] = "canal"

    tolerance: float = 1e-8
    max_iterations: int = 200
    max_newton: int = 30
    beta: float = 10.0
    beta_growth: float = 10.0
    beta_max: float = 1e6
    beta_rule: Literal["balanced", "paper"] = "balanced"
    acceleration: int = 5
    inner: Literal["adaptive", "tight"] = "adaptive"
    inner_method: Literal["newton"] | Globalization = "newton"
    way: Literal["auto"] | WayName = "auto"
    path: bool = True

    def _checks(self) -> list[Check]:
        methods, ways = ("newton", *get_args(Globalization)), ("auto", *get_args(WayName))
        return [
            *super()._checks(),
            ("max_newton", self.max_newton, self.max_newton >= 1, "integers >= 1"),
            ("beta", self.beta, 0 < self.beta < np.inf, "positive numbers"),
            ("beta_growth", self.beta_growth, 1 < self.beta_growth < np.inf, "numbers above 1"),
            ("beta_max", self.beta_max, self.beta <= self.beta_max < np.inf, "numbers that are not below beta"),
            ("beta_rule", self.beta_rule, self.beta_rule in ("balanced", "paper"), "'balanced' and 'paper'"),
            ("acceleration", self.acceleration, self.acceleration >= 0, "integers >= 0"),
            ("inner", self.inner, self.inner in ("adaptive", "tight"), "'adaptive' and 'tight'"),
            ("inner_method", self.inner_method, self.inner_method in methods, ", ".join(map(repr, methods))),
            ("way", self.way, self.way in ways, ", ".join(map(repr, ways))),
        ]

    @property
    def plan(self) -> Plan:
        """What the outer iterations need of these."""
        return Plan(
            self.beta, self.beta_growth, self.beta_max, self.max_newton, self.acceleration, self.beta_rule, self.inner
        )  # fmt: skip


class Canal(Converting):
    """Cascaded Newton-based augmented Lagrangian (papers/000 section V, papers/002).

    The De Saxce form of the contact law makes a convex problem of a step as soon as the slip speeds in it are given; they are
    those of the last outer iteration, as the forces are (``contact.solvers.augmented`` has the equations). Inner problems are
    minimised by Newton's method with exact line search, whose matrices are positive definite whatever the contacts do. It suits
    problems of few unknowns with many contacts, where W is singular, and large ratios of mass or stiffness.

    Departures from the papers: penalties relative to each contact; they grow only where the constraints are what lags; slip
    speeds are accelerated; inner tolerances follow the residual, and true residuals end it.

    Parameters
    ----------
    options : CanalOptions, optional
        Options; defaults are documented there.
    path_first : bool
        Whether a path from nothing comes before the outer iterations, without a warm start. Default no.
    gives_up : bool
        Whether it ends where a path brought nothing and iterations stall after it, for who asks others then. Default no.

    Notes
    -----
    An iteration is an outer one, or a point of a path. ``Solution.details`` holds ``newton_steps``, ``line_search_evaluations``,
    ``factorizations``, ``unfinished`` (inner problems not solved to their tolerance), ``paths`` (how many were tried),
    ``from_nothing`` (whether one of them began there), ``beta``
    (the last of the outer iterations, relative), ``al_error`` and ``slip_error`` (m/s, of the constraints and of the slip speeds
    that were given), ``way`` and ``linear_algebra``.
    """

    description = "CANAL: augmented Lagrangian, convex inner problems by Newton's method; few unknowns with many contacts"

    def __init__(self, options: CanalOptions | None = None, *, path_first: bool = False, gives_up: bool = False) -> None:
        self.options = o = options or CanalOptions()
        self._path_first, self._gives_up = path_first, gives_up
        self._sparse = SparseWay(factors=SparseCholesky(o.backend, o.threads))
        self.linear_algebra = self._sparse.linear_algebra

    def memory(self) -> dict[str, np.ndarray]:
        """Return what one solve leaves for the next: pattern and factors of the sparse way."""
        return self._sparse.memory()

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        self._sparse.recall(memory)

    @takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem.

        Parameters
        ----------
        problem : ContactProblem
            Any problem, friction isotropic or not.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.

        Raises
        ------
        ContactError
            A is not positive definite, and the way of the linear algebra needs its factors.
        """
        clock = time.perf_counter
        started, o = clock(), self.options
        judge = Judge(problem, o.tolerance)
        iterations = _Iterations(problem, warm_start, self._base(isotropic(problem)), o)
        iterations.base.tell(judge)
        iterations.gives_up = self._gives_up
        if self._path_first:
            iterations.leave()
        prepared = clock()
        drive(iterations, judge, o.max_iterations, _WAIT)
        times = {"prepare": prepared - started, "iterate": clock() - prepared}
        ended = f"Ended after {{}} iterations, which {iterations.why}" if iterations.over else ""
        return judge.solution(times, {**iterations.details(), "linear_algebra": self.linear_algebra}, ended=ended)

    def _base(self, law: ContactProblem) -> Base:
        """Set the linear algebra up for a problem with one friction coefficient a contact."""
        o = self.options
        way = choose(law) if o.way == "auto" else o.way
        touched = len(np.unique(law.J.indices)) if way == "patch" else 0
        if way == "patch" and 0 < touched < law.n:
            return PatchBase(law, o.backend, o.threads)
        # without contacts, or with contacts on every row, there is nothing to leave out
        return SparseBase(law, self._sparse) if way == "sparse" else DenseBase(law)


class _Strength:
    """How strong contact forces are beside those of a problem with one friction coefficient a contact.

    Residuals are relative to contact forces, and fall where forces that hold each other, as those of a body that just fits
    between others, grow without end.
    """

    def __init__(self, law: ContactProblem) -> None:
        self._root = np.sqrt(law.scales)[:, None]
        size = max(math.hypot(norm(law.weight * law.b), norm(self._root * law.phi)), TINY)
        self._bound = size * max(_STRONG * law.n_contacts, _STRONG_LEAST)

    def of(self, lam: np.ndarray) -> float:
        """Size of forces (nc, 3), N, over the largest one to start with, which goes by b and the forces that phi takes."""
        return norm(lam / self._root) / self._bound


class _Iterations:
    """Outer iterations on one problem, paths of the penalty between them, and the best pair by the residuals that they see."""

    #: whether nothing is left to change: where an iteration no longer halves the residual, and there are no contacts or rounding
    #: bars the dynamics from the tolerance; or where forces grow without end once more; and what to say then
    over, why = False, "leave nothing but rounding"
    #: whether iterations that stall after a path that brought nothing are the end too
    gives_up = False

    def __init__(self, problem: ContactProblem, warm_start: WarmStart | None, base: Base, options: CanalOptions) -> None:
        self.problem, self.base, self._options = problem, base, options
        method = options.inner_method
        #: whether forces that grow without end are left
        self._leaves = options.path and method == "newton"
        self._strength = _Strength(isotropic(problem))
        (v, lam), self._residual = start_pair(problem, warm_start), 1.0
        if warm_start is not None:
            if self._leaves and not self._strength.of(to_isotropic(problem, lam)) <= 1.0:
                lam = np.zeros_like(lam)
            self._residual = residuals(problem, v, lam).worst
        lam = to_isotropic(problem, lam)
        inner: Inner = base.inner() if method == "newton" else self._strict(method)
        self._outer = AugmentedLagrangian(base, base.start(v), lam, options.plan, inner)
        self._paths: list[PenaltyPath] = []
        #: and the best residual before the present one
        self._on_path, self._began = False, np.inf
        #: iterations done when the last path ended
        self._returned = 0
        self._leasts: list[float] = []
        #: how many iterations come before the next path
        self._patience = _PATIENCE if self._leaves else math.inf
        self.best, self._done, self._least = -1, 0, np.inf
        self._v, self._lam = self._outer.v.copy(), lam
        #: whether the last aim was met
        self._met = False
        #: the number of the path that began from nothing, since forces grew without end; 0 without one
        self._left = 0

    def _strict(self, method: Globalization) -> StrictNewton:
        return StrictNewton(self.base, method, self._options.backend, self._options.threads)

    @property
    def failed(self) -> bool:
        return self._outer.failed

    def until(self, aim: float, limit: int) -> list[Row]:
        """Outer iterations, or points of a path, until the residuals of the pair are at most ``aim``."""
        rows: list[Row] = []
        if self._met and self.base.correct(self._v, self._lam):
            self._least = np.inf  # the judge was not content, and what was best was so of another problem
        while len(rows) < limit and not self._outer.failed:
            now = self._now()
            before, known = now.v.copy(), self._residual
            now.advance(known)
            astray = self._strength.of(now.lam) / _ASTRAY if self._leaves else 0.0
            self._residual = now.residual * max(astray, 1.0)
            rows.append((now.dynamics, now.contact, norm(now.v - before)))
            if self._residual < self._least or self.best < 0:
                self.best, self._least = self._done, self._residual
                self._v, self._lam = now.v.copy(), now.lam
            self._done += 1
            self._leasts.append(self._least)
            if now is self._outer:
                if self._residual > _WORSE * self._least:
                    self._outer.restart()
                hardly = self._residual > 0.5 * known
                self.over = hardly and (not self.problem.n_contacts or self._rounding_bars(aim))
                if self.gives_up and not self.over and self._is_vain:
                    self.over, self.why = True, "no longer lead on"
                if astray > 1.0:
                    self.leave()
            if self._residual <= aim or self.over:
                break
        self._met = self._least <= aim
        rows[-1] = (None, None, rows[-1][2]) if self.best == self._done - 1 else rows[-1]
        return rows

    def _now(self) -> AugmentedLagrangian | PenaltyPath:
        """Return what goes on: the outer iterations, or where they stall a path from the best pair, for as long as it lasts."""
        outer, paths = self._outer, self._paths
        if self._on_path and paths[-1].over:
            self._on_path, self._residual = False, outer.residual
            if self._left == len(paths):
                outer.begin(self._v, self._lam)
                self._residual = self._least
            self._returned = self._done
            # one that brought nothing is not tried again
            self._patience = self._done + _PATIENCE if self._least < self._began else math.inf
        elif not self._on_path and self._done >= self._patience and self._stalls:
            self._follow(PenaltyPath(self.base, self._strict("damped"), (self._v, self._lam), self._least))
        return paths[-1] if self._on_path else outer

    def _follow(self, path: PenaltyPath) -> None:
        """Go on along a path."""
        self._paths.append(path)
        self._on_path, self._residual, self._began = True, path.residual, self._least

    def leave(self) -> None:
        """Leave forces that grow without end: the first time for a path from nothing, then for good."""
        if not self._left:
            nothing = self.base.start(np.zeros(self.problem.n)), np.zeros_like(self._lam)
            self._follow(PenaltyPath(self.base, self._strict("damped"), nothing, 1.0, _FROM_NOTHING))
            self._left = len(self._paths)
        else:
            self.over, self.why = True, "lead to forces that grow without end"

    @property
    def _stalls(self) -> bool:
        """Whether the best residual has hardly fallen over the last iterations."""
        return self._least > _STALL * self._leasts[-1 - _STALL_OVER]

    @property
    def _is_vain(self) -> bool:
        """Whether iterations stall since a path that brought nothing."""
        brought_nothing = bool(self._paths) and self._patience == math.inf
        return brought_nothing and self._done - self._returned > _STALL_OVER and self._stalls

    def _rounding_bars(self, aim: float) -> bool:
        """Whether nothing but rounding is left of the last pair, and that is more than ``aim``."""
        outer = self._outer
        if not outer.contact <= aim < outer.dynamics:
            return False
        known = Residuals(outer.dynamics, outer.contact, 0.0, 0.0)
        lam = from_isotropic(self.problem, outer.lam)
        return barring(self.problem, self.base.whole(outer.v, outer.lam), lam, known, aim) > 0

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return self.base.whole(self._v, self._lam), from_isotropic(self.problem, self._lam)

    def details(self) -> dict[str, object]:
        """Numbers for the solution."""
        outer, paths = self._outer, self._paths
        on_paths = sum(path.newton_steps for path in paths)
        return {
            "newton_steps": outer.newton_steps + on_paths,
            "line_search_evaluations": outer.evaluations + sum(path.evaluations for path in paths),
            "factorizations": outer.factorizations + on_paths,
            "unfinished": outer.unfinished + sum(path.unfinished for path in paths),
            "paths": len(paths),
            "from_nothing": self._left > 0,
            "beta": outer.beta,
            "al_error": outer.al_error,
            "slip_error": outer.slip_error,
            "way": self.base.name,
        }
