"""Auto: picks a solver for each problem from its structure and an estimate of what each will cost, and says which."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar

import numpy as np

from contact.errors import ContactError, NotPositiveError
from contact.jacobian_kernels import pushed_unknowns
from contact.linear import NOT_POSITIVE, DenseCholesky
from contact.local import LocalProblem
from contact.metrics import any_of, contact_residual, contact_velocity, residuals
from contact.problem import ContactProblem
from contact.solvers import multigrid
from contact.solvers.banded import Banded, BandedOptions
from contact.solvers.base import (
    Check,
    FactorizationOptions,
    Remembering,
    Solution,
    Solver,
    SolverOptions,
    Told,
    WarmStart,
    below,
)
from contact.solvers.canal import Canal, CanalOptions
from contact.solvers.cond import Cond, CondOptions
from contact.solvers.cond_newton import ON_THE_LAW, RIGHT, CondNewton, CondNewtonOptions
from contact.solvers.definite import Definite
from contact.solvers.exact import Exact, ExactOptions
from contact.solvers.judge import VELOCITY_BOUND, law_error
from contact.solvers.with_rows import takes_rows

#: Products with A in one estimate of the conditioning.
_LANCZOS_STEPS = 30
#: Another estimate is made when the diagonal of A has changed by this factor, or its size.
_CHANGE = 2.0
#: Iterations of COND a decade of the tolerance and square root of the conditioning (measured, see data/results/solvers.md).
_COND_ITERATIONS = 0.6
#: Seconds of one COND iteration for each entry of A and of J, and of one exact solve for each row**1.5, each (row of W)**2 and
#: **3 (one core of an AMD EPYC; only their ratios matter).
_COND_SECOND, _CONTACT_SECOND, _SOLVE_SECOND, _SWEEP_SECOND, _NEWTON_SECOND = 3.5e-10, 2e-9, 1.7e-8, 3e-8, 1e-10
#: Seconds of a row of W that the exact solver makes anew, for each row**1.5: so much where its factors do not serve the next
#: problem, as in piles whose contacts come and go.
_ROW_SECOND = 3e-10
#: Iterations of COND in the first phase of COND-Newton, which is asked where COND is slow.
_PHASE = 150
#: Share of the newest solve in what is learnt of both solvers, the bounds of COND's pace, and the factor on it after a failure.
_LEARNING, _PACE_LEAST, _PACE_MOST, _FAILURE = 0.3, 0.2, 100.0, 10.0
#: CANAL is picked where contacts have more rows than they push, so that W is singular; beside bodies that deform for at most so
#: many rows of A. It is left after so many outer iterations; piles that it suits take 10 to 35, walls of 600 bricks up to 100.
_CANAL_ROWS, _CANAL_ITERATIONS = 200, 160
#: ... except for so few rows and contacts that the exact solver with dense factors and Newton's method alone is tried before,
#: with so many refinements (measured at 1e-8: a box that slides on four contacts takes it 140 us, CANAL 310). It is asked for
#: so much more than the tolerance: where forces are not unique, what each step leaves would add up in them.
_FEW_ROWS, _FEW_CONTACTS, _FEW_ITERATIONS, _FEW_SHARPER = 48, 12, 3, 1e-2
#: ... and where the bodies' first entries of A, their masses, are within this factor: a heavy body on a light one is CANAL's.
_FEW_SPREAD = 100.0
#: Sweeps of the exact solver that comes last where CANAL was picked, and the most contacts for which it is asked: more hardly
#: help where forces are not unique (of 15 hard problems of boxes that a robot pushes 12 are solved with so many, 14 with 20 000,
#: in three times the time), and halves of a step take less (with 280 contacts of pushed bricks it takes 2 to 7 s, the others 1).
_LAST_SWEEPS, _LAST_CONTACTS = 1000, 120
#: Problems for which a pick rests after it failed: so many the first time, twice as many after each failure, up to the most.
_REST_LEAST, _REST_MOST = 8, 64
#: COND is picked above so many rows: of fewer the exact solver takes less (measured: a mat of 18 nodes 0.74 ms to 0.84, one of 32
#: nodes 0.89 to 1.11, a cube of 27 nodes in a gripper 0.70 to 1.46), and a small scene never loads or compiles COND's kernels.
_COND_ROWS = 120
#: Newton steps of COND-Newton are asked for above so many rows: of fewer a solve is mostly what surrounds it, and the exact
#: solver leaves no net force on a body, where forces put back on the cone of friction leave one of the size of the tolerance.
_NEWTON_ROWS = 1000
#: Kinds of starts: far from the contact law, near it, and as good as on it, where the equations of a step are linearised anew;
#: what COND and Newton's method need from each kind: a factor on the iterations expected (measured on
#: mats, cubes and piles: half as many where all but the dynamics holds), and Newton steps before they are learnt (measured
#: on a pile of 7500 rows: a step takes 30 ms, 1900 iterations of COND 400).
_FAR, _NEAR, _ANEW = 0, 1, 2
_SHARES, _STEPS = (1.0, 1.0, 0.5), (6.0, 2.0, 1.0)
#: Newton steps are asked for where they should take at most so much of what the others do: at a tie, what those have set up stays
#: in use, and no hierarchy is made for one solve in 200 (as in the first step of the main job, which also compiles it).
_CLEARLY = 0.9
#: Part of what was learnt of Newton steps that is forgotten with each problem that COND takes, so that they are tried again.
_FORGOTTEN = 0.05
#: Seconds of a Newton step of COND-Newton for each row**1.5.
_NEWTON_STEP_SECOND = 4.5e-8
#: Steps that take as long as alternating steps from far away by eight digits, and parts of one that a turn of those takes and
#: their factors with their ordering (measured on a pile of 7500 rows: 160 ms, where 2100 iterations of COND take 400).
_ALTERNATING_STEPS, _TURN, _TURNING = 3.0, 0.03, 0.7
#: Seconds of such a step for each entry of A where multigrid solves it (measured from 3000 to 32 000 rows: 2.3e-8 to 3.4e-8).
_MULTIGRID_SECOND = 3e-8
#: Solvers that cannot take every problem (contacts that act on three groups, groups of many rows); the exact one is asked then.
_MAY_REFUSE = ("cond", "cond-newton")
#: Above so many rows of contacts the exact solver is not asked: its W alone is 0.3 GB there, and Newton's method factorizes
#: matrices as large. CANAL, which forms no W, takes its place.
_DENSE_ROWS, _DENSE = 6000, ("exact", "last", "brief", "short")
#: Forces of an answer have grown without end where its contact law is off and its residuals are at most this part of that error
#: (measured on walls of boxes that are pushed: 1e-8, with forces of 1e9 N; of one that is only unfinished 1e-2).
_ASTRAY = 1e-4
#: Not asked where CANAL left forces that grew without end: the one begins as CANAL did then, the second follows such forces. The
#: third is not where it came near.
_VAIN = ("fresh", "last", "brief")
#: Factor on the exact solver's own part where A is factorized without MKL.
_SUPERLU = 15.0
#: All that a pick may be, in the order in which a rest names them by number.
_PICKS = ("", "banded", "canal", "few", "cond", "cond-newton", "exact", "fresh", "last", "brief", "wide", "short")
#: The one pick that never rests: its failure costs 1 to 2 ms, what goes on after it 2 to 15 (measured on a rope of 40 links that
#: falls in a heap, where it fails at one problem in fifteen).
_TIRELESS = "banded"
#: Rows of contacts for each of a rod, above which the exact solver is not the first that goes on after it: where links have more
#: than one contact, forces are hardly unique, and it looks long for an answer.
_FREE_SHARE = 0.5
#: After a pick that does not converge these go on, in their order.
_ORDERS = {
    "few": ("few", "canal", "fresh", "cond-newton", "last"), "canal": ("canal", "fresh", "cond-newton", "last"),
    "banded": ("banded", "cond-newton", "exact", "cond"), "cond-newton": ("cond-newton", "cond", "exact"),
    "cond": ("cond", "short", "canal", "exact"), "exact": ("exact", "cond"), "brief": ("exact", "cond"),
    "short": ("short", "cond", "fresh", "exact"),
    "wide": ("wide", "brief", "cond"),
}  # fmt: skip
#: The exact solver is asked with so few sweeps first, and CANAL before it goes on, if more contacts press: where forces are not
#: unique, as along the rim of a box on a soft body, it looks for seconds where CANAL takes tenths of one (measured). Of fewer
#: contacts it is asked with the second number in a refinement, twice that in all, then COND, then CANAL from nothing: a cube
#: between flat pads took it 20 000 sweeps a problem and 12 s a step, where COND takes 20 ms or CANAL 80 (in all half as many or
#: as many as in one refinement take longer in such scenes). After COND likewise, and CANAL from there: as the cube met the pads
#: it took 2 s a problem and 4.6 to 5.1 s a step, 0.6 so; in nine other scenes of pads and plates all steps took 52 s, 47 so.
_SWEEPS, _LONG_SWEEPS = {"brief": 150, "short": 300, "finish": 30}, 2000
_BRIEF_CONTACTS, _BRIEFLY = 100, ("brief", "canal", "exact")
_FEW_SEARCHES, _EXACT = ("short", "finish"), ("brief", "exact", "few", "finish", "last", "short")
#: What these find after it, it takes up with a few sweeps more, so that no net force is left on a body: of two balls that collide
#: COND left 3e-9 of the momentum. Where it comes to no end with them, theirs is the answer.
_UNBALANCED = ("cond", "fresh")
#: CANAL comes before the exact solver, also after COND or COND-Newton, where so many Newton steps with sparse factors should cost
#: less: with hundreds of contacts that press the exact one factorizes dense matrices over them as often (measured on plates on
#: a mat with elements of 10 mm, 600 contacts: 0.1 to 2 s a solve, where it takes 1 to 67). It is asked for few sweeps then.
_CANAL_STEPS = 20.0
#: ... and not where CANAL came within so many tolerances: as there, along the rims, more contacts than a body has velocities ask
#: for what differs by rounding of the gaps, it looked for a minute and found no more, and halves of the step take 3 s (measured).
_NEARLY = 10.0
#: Where :class:`Auto` has the solver of a pick, and why it is picked, where that is not for its estimated cost.
_PLACES = {
    "banded": "_banded", "brief": "_exact", "canal": "_canal", "cond": "_cond", "cond-newton": "_cond_newton", "exact": "_exact",
    "few": "_few",
    "finish": "_exact", "fresh": "_fresh", "last": "_last", "short": "_exact", "wide": "_canal",
}  # fmt: skip
_REASONS = {
    "banded": "rods alone", "canal": "few unknowns with many contacts", "cond-newton": "many iterations of COND",
    "few": "few unknowns with few contacts",
}  # fmt: skip


@dataclass(frozen=True)
class _Rest:
    """Which pick rests, since it failed, and which takes its place.

    Attributes
    ----------
    failed, instead : str
        The pick that failed last, and the one that then converged; empty at first.
    left, length : int
        Problems for which it still rests, and for which it will after the next failure.
    """

    failed: str = ""
    instead: str = ""
    left: int = 0
    length: int = _REST_LEAST

    def replaced(self, pick: str) -> str:
        """Return the pick, or what takes its place while it rests."""
        return self.instead if self.left and pick == self.failed else pick

    def after(self, picked: str, first: str, answered: str, converged: bool) -> _Rest:
        """Return the rest after a problem for which one was ``picked``, another perhaps asked ``first``, and one ``answered``."""
        if picked == self.failed and first != picked:
            # what took its place failed as well: neither is better here
            return replace(self, left=self.left - 1 if answered == first and converged else 0)
        if answered != first and converged and picked != _TIRELESS:
            length = self.length if picked == self.failed else _REST_LEAST
            return _Rest(picked, answered, length, min(2 * length, _REST_MOST))
        return _Rest() if picked == self.failed else self

    def as_numbers(self) -> np.ndarray:
        """Return it as (4,) numbers: both picks by their place in the list of all, problems left, length."""
        return np.array([_PICKS.index(self.failed), _PICKS.index(self.instead), self.left, self.length], dtype=np.float64)

    @classmethod
    def from_numbers(cls, numbers: np.ndarray) -> _Rest:
        """Make it from such numbers."""
        failed, instead, left, length = (int(number) for number in numbers)
        return cls(_PICKS[failed], _PICKS[instead], left, length)


@dataclass(frozen=True)
class AutoOptions(FactorizationOptions):
    """Options of the automatic choice.

    Attributes
    ----------
    max_iterations : int, optional
        Limit of iterations of the solver that is picked. Default: its own.
    """

    solver_name: ClassVar[str] = "auto"

    tolerance: float = 1e-8
    max_iterations: int | None = None  # type: ignore[assignment]  # here only: the limit of the solver that is picked

    def _limit_check(self) -> Check:
        limit = self.max_iterations
        return "max_iterations", limit, limit is None or limit >= 1, "integers >= 1, or None"


def _has_many(problem: ContactProblem, warm_start: WarmStart | None) -> bool:
    """Whether the exact solver is asked briefly first: of few contacts that press its sweeps cost less than CANAL's matrices."""
    return problem.n_contacts > _BRIEF_CONTACTS and _pressing_rows(problem, warm_start) > 3 * _BRIEF_CONTACTS


def conditioning(problem: ContactProblem) -> float:
    """Estimate the condition number of D^-1/2 A D^-1/2, D the diagonal of A, from below.

    The extreme eigenvalues of a Lanczos process of 30 steps that starts from the translation of everything plus a small fixed
    disturbance: the translation is the slow mode of a free body, which decides how COND converges.
    """
    n = problem.n
    if n == 0:
        return 1.0
    root = np.sqrt(problem.diagonal)
    x = root * (np.tile([1.0, 0.8, 0.6], n // 3 + 1)[:n] + 0.1 * np.random.default_rng(0).standard_normal(n))
    x /= np.linalg.norm(x)
    old, beta = np.zeros(n), 0.0
    alphas: list[float] = []
    betas: list[float] = []
    for _ in range(min(_LANCZOS_STEPS, n)):
        y = (problem.A @ (x / root)) / root - beta * old
        alpha = float(x @ y)
        y -= alpha * x
        alphas.append(alpha)
        beta = float(np.linalg.norm(y))
        if beta <= 1e-12 * abs(alpha):
            break
        betas.append(beta)
        old, x = x, y / beta
    inner = betas[: len(alphas) - 1]
    values = np.linalg.eigvalsh(np.diag(alphas) + np.diag(inner, 1) + np.diag(inner, -1))
    return float(values[-1] / max(values[0], 1e-16 * values[-1]))


def _contact_pick(problem: ContactProblem) -> str:
    """Pick for few unknowns where contacts have more rows than unknowns that they push, so that W is singular; else none.

    Of rigid bodies and robots alone those count that contacts push, not what moves beside them: all unknowns of a body on which
    they act as a whole, else the joints. Beside bodies that deform all unknowns count, since only the solvers that are picked
    then keep the wrenches of couplings balanced to rounding. "few" is for few unknowns and contacts, where the bodies that
    contacts push (not only their joints) are alike enough.
    """
    n, nc, J = problem.n, problem.n_contacts, problem.J
    start, stop, stride = problem.group_rows
    columns = np.zeros(n, dtype=np.bool_)
    rows, pushed, least, largest = pushed_unknowns(J.indptr, J.indices, start, stop, problem.diagonal, columns)
    if not (3 * nc > n if any_of(stride) else rows > pushed):
        return ""
    return "few" if n <= _FEW_ROWS and nc <= _FEW_CONTACTS and largest <= _FEW_SPREAD * least else "canal"


def _is_rigid(problem: ContactProblem) -> bool:
    """Whether no body deforms."""
    return all(group.kind == "generalized" for group in problem.groups)


def _pressing_rows(problem: ContactProblem, warm_start: WarmStart | None) -> int:
    """Rows of the contacts that press or approach at the start."""
    v, lam = (np.zeros(problem.n), np.zeros((0, 3))) if warm_start is None else (warm_start.v, warm_start.lam)
    pressing = contact_velocity(problem, v)[:, 0] <= 0
    if len(lam):
        pressing |= lam.any(axis=1)
    return 3 * int(pressing.sum())


def _kind_of(problem: ContactProblem, warm_start: WarmStart | None) -> int:
    """Kind of a start by its contact residual."""
    if warm_start is None:
        return _FAR
    residual = contact_residual(problem, warm_start.v, warm_start.lam)
    return _ANEW if residual <= ON_THE_LAW else (_NEAR if residual <= RIGHT else _FAR)


def _fits_dense(problem: ContactProblem, warm_start: WarmStart | None) -> bool:
    """Whether the contacts that press or approach are few enough for dense matrices over them."""
    return 3 * problem.n_contacts <= _DENSE_ROWS or _pressing_rows(problem, warm_start) <= _DENSE_ROWS


def _known_as(name: str) -> str:
    """Name by which a solver is known; "few" and "last" are exact ones, "fresh" is CANAL from nothing."""
    return "exact" if name in _EXACT else ("canal" if _PLACES[name] in ("_canal", "_fresh") else name)


class Auto(Told):
    """Banded for rods alone, CANAL for few unknowns with many contacts, COND where A is well conditioned, exact elsewhere.

    For very few unknowns and contacts, such as those of a box on a floor, the exact solver with dense factors and Newton's method
    alone comes before CANAL; up to 120 unknowns the exact solver comes before COND; for more than 2000 contacts that press or
    approach CANAL takes the place of the exact solver, and for more than 100 it comes before it where its sparse factors should
    cost less.

    COND is also for many contacts on large bodies; where Newton steps cost less than the iterations that it needs, as in
    piles and where a step is linearised anew, COND finished by Newton takes its place. Where the one that was picked does not
    converge, others go on: after CANAL the same from nothing, COND finished by Newton, then for few contacts the exact
    solver; after a few sweeps of the exact one COND, CANAL from nothing, and the exact one for longer; after COND a few sweeps
    of the exact one, CANAL, and the exact one for longer, unless CANAL came near; after the banded solver the exact one, or
    COND finished by Newton where links have many contacts. A problem that one of them finds infeasible goes to no other. A
    pick that failed where another converged rests: that one takes its place for the next problems that it would be picked
    for. The banded solver never rests: its failures are cheap.

    Compared are COND's iterations, 0.6 sqrt(kappa) for each decade of the tolerance (measured), times the entries of A and J, the
    exact solver's solves with the factors of A and dense work on the contacts that press or approach, and the Newton steps
    of COND-Newton, by multigrid where a body is large. What COND and Newton's method then really need, by kinds of starts,
    corrects their sides of the comparison, so the choice depends on the problems solved before, never on a clock.

    Parameters
    ----------
    options : AutoOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    ``Solution.details`` holds ``picked`` ("banded", "canal", "cond", "cond-newton" or "exact", whose answer it is) and its
    ``max_iterations``, ``tried`` (all that were asked, in order) and ``conditioning`` (1 before the first estimate), beside those
    of the solver.
    """

    description = (
        "Auto: banded, CANAL, COND, COND-Newton or exact, picked for each problem from its structure and estimated conditioning"
    )

    def __init__(self, options: AutoOptions | None = None) -> None:
        self.options = o = options or AutoOptions()
        cond = CondOptions(tolerance=o.tolerance)
        exact = ExactOptions(tolerance=o.tolerance, backend=o.backend, threads=o.threads)
        if o.max_iterations is not None:
            cond, exact = replace(cond, max_iterations=o.max_iterations), replace(exact, max_iterations=o.max_iterations)
        newton = CondNewtonOptions(tolerance=o.tolerance, backend=o.backend, threads=o.threads)
        self._cond_newton = CondNewton(
            newton if o.max_iterations is None else replace(newton, max_iterations=o.max_iterations), _PHASE
        )
        most = min(exact.max_iterations, _FEW_ITERATIONS)
        few = replace(exact, tolerance=_FEW_SHARPER * o.tolerance, max_iterations=most, lag=False)
        self._few = Exact(few, DenseCholesky(), only_newton=True)
        self._last = Exact(replace(exact, max_sweeps=_LAST_SWEEPS, lag=False))
        canal = CanalOptions(tolerance=o.tolerance, max_iterations=_CANAL_ITERATIONS, backend=o.backend, threads=o.threads)
        canal = canal if o.max_iterations is None else replace(canal, max_iterations=o.max_iterations)
        self._canal, self._fresh = Canal(canal, gives_up=True), Canal(canal, path_first=True, gives_up=True)
        self._cond, self._exact, self._banded = Cond(cond), Exact(exact), Banded(BandedOptions(tolerance=o.tolerance))
        self.linear_algebra, self._definite = self._exact.linear_algebra, Definite(o.backend, o.threads)
        self._slow_factors = _SUPERLU if self.linear_algebra == "superlu" else 1.0
        #: of A, and factorizations that the exact solver makes for a problem; then COND's iterations over those expected, Newton
        #: steps by kinds of starts, and the kind of the last problem
        self._conditioning, self._renewed = 1.0, 0.0
        self._pace, self._steps, self._kind = 1.0, np.array(_STEPS), _FAR
        self._diagonal = np.zeros(0)
        self._resting = _Rest()

    def memory(self) -> dict[str, np.ndarray]:
        """Return what one solve leaves for the next: the estimates, and what solvers keep."""
        own = {
            "estimates": np.array([self._conditioning, self._renewed]), "diagonal": self._diagonal,
            "pace": np.array(self._pace), "steps": self._steps.copy(), "rest": self._resting.as_numbers(),
        }  # fmt: skip
        return own | {f"{name}/{key}": value for name, one in self._remembering().items() for key, value in one.memory().items()}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        self._conditioning, self._renewed = (float(value) for value in memory.get("estimates", (1.0, 0.0)))
        self._pace, self._steps = float(memory.get("pace", 1.0)), np.array(memory.get("steps", _STEPS))
        self._diagonal = np.array(memory.get("diagonal", np.zeros(0)))
        self._resting = _Rest.from_numbers(memory["rest"]) if "rest" in memory else _Rest()
        for name, one in self._remembering().items():
            one.recall(below(memory, name))

    def _remembering(self) -> dict[str, Remembering]:
        """Solvers whose next answer depends on the last, to the last bit."""
        return {"cond": self._cond, "cond-newton": self._cond_newton, "exact": self._exact, "last": self._last}

    def pick(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> str:
        """Name of the solver that should be the fastest one for this problem."""
        return _known_as(self._resting.replaced(self._pick(problem, warm_start)))

    def _pick(self, problem: ContactProblem, warm_start: WarmStart | None) -> str:
        """Name the same, or "few" for the exact solver with dense factors."""
        self._kind = _FAR
        if self._banded.fits(problem):
            return "banded"
        if problem.n_contacts and (problem.n <= _CANAL_ROWS or _is_rigid(problem)):
            pick = _contact_pick(problem)
            if pick:
                return pick
        if problem.n <= _COND_ROWS:
            return "exact"
        self._estimate(problem)
        if problem.n > _NEWTON_ROWS:
            self._kind = _kind_of(problem, warm_start)
        iterations = self._pace * _SHARES[self._kind] * self._expected_iterations(problem)
        rows = float(_pressing_rows(problem, warm_start))
        exact = self._exact_seconds(problem, rows)
        cond = iterations * self._iteration_seconds(problem)
        if problem.n > _NEWTON_ROWS and self._newton_seconds(problem) < _CLEARLY * min(cond, exact):
            return "cond-newton"
        if cond >= _SHARES[self._kind] * exact:  # a good start spares the exact solver as much
            return "exact" if rows <= _DENSE_ROWS else "canal"
        return "cond"

    def _exact_seconds(self, problem: ContactProblem, rows: float) -> float:
        """Seconds that the exact solver should take, of so many rows of contacts that press or approach."""
        anew = self._renewed * _ROW_SECOND * rows
        solves = self._slow_factors * (_SOLVE_SECOND * self._share(problem) + anew) * problem.n**1.5
        return float(solves + _SWEEP_SECOND * rows**2 + _NEWTON_SECOND * rows**3)

    def _order(self, problem: ContactProblem, warm_start: WarmStart | None, picked: str, first: str, many: bool) -> Iterator[str]:
        """Give the one that is asked first for a problem, then those that go on after a pick, each once."""
        dense = _fits_dense(problem, warm_start)
        given = [first if dense or first not in _DENSE else "canal"]
        yield given[0]
        order = _ORDERS[picked]
        if picked == "banded":
            rows = float(_pressing_rows(problem, warm_start))
            if rows <= _FREE_SHARE * problem.n and self._exact_seconds(problem, rows) < self._newton_seconds(problem):
                order = ("exact", *order)
        elif picked in _MAY_REFUSE and many and self._is_wide(problem, warm_start):
            order = (picked, "canal", "cond", "brief")
        asked = {"exact": _BRIEFLY, "short": ("brief",)} if many else {}
        for name in chain.from_iterable(asked.get(one, (one,)) for one in order):
            allowed = name if dense or name not in _DENSE else "canal"
            if allowed not in given:
                given.append(allowed)
                yield allowed

    def _is_wide(self, problem: ContactProblem, warm_start: WarmStart | None) -> bool:
        """Whether CANAL should cost less than the exact solver."""
        rows = float(_pressing_rows(problem, warm_start))
        return bool(_CANAL_STEPS * self._direct_step_seconds(problem) < self._exact_seconds(problem, rows))

    def _newton_seconds(self, problem: ContactProblem) -> float:
        """Seconds that COND finished by Newton should take.

        From a start that holds the contact law nearly, as where the equations of a step are linearised anew, Newton's method goes
        on at once; from others there is a phase of COND first, or alternating steps solve the problem.
        """
        step = self._newton_step_seconds(problem)
        if self._kind == _FAR and self._cond_newton.alternates(problem):
            return _ALTERNATING_STEPS * self._share(problem) * step
        seconds = float(self._steps[self._kind]) * step
        return seconds + (self._cond_newton.phase * self._iteration_seconds(problem) if self._kind == _FAR else 0.0)

    def _newton_step_seconds(self, problem: ContactProblem) -> float:
        """Seconds of one Newton step."""
        direct = self._direct_step_seconds(problem)
        return min(direct, _MULTIGRID_SECOND * problem.A.nnz) if multigrid.serves(problem) else direct

    def _direct_step_seconds(self, problem: ContactProblem) -> float:
        """Seconds of one with direct factors."""
        return float(self._slow_factors * _NEWTON_STEP_SECOND * problem.n**1.5)

    @staticmethod
    def _iteration_seconds(problem: ContactProblem) -> float:
        """Seconds of one COND iteration."""
        return float(_COND_SECOND * problem.A.nnz + _CONTACT_SECOND * problem.J.nnz)

    def _expected_iterations(self, problem: ContactProblem) -> float:
        """Return the iterations that COND should need for a problem of this conditioning."""
        return max(_COND_ITERATIONS * self._decades(problem) * math.sqrt(self._conditioning), 10.0)

    def _decades(self, problem: ContactProblem) -> float:
        """Digits that are asked for."""
        return -math.log10(max(self.options.tolerance, problem.enough))

    def _share(self, problem: ContactProblem) -> float:
        """Part that the digits asked for take of the steps for eight of them: half of these come first, however few they are."""
        return 0.5 + self._decades(problem) / 16.0

    def _learn(self, problem: ContactProblem, name: str, found: Solution) -> None:
        """Take in what a solver needed beside what was expected, a failure many times more, or what factors were made."""
        kind = self._kind
        if name in ("exact", "brief", "short"):
            self._renewed += _LEARNING * (found.details["factorizations"] - self._renewed)
        elif name == "cond-newton" and kind != _FAR:
            # phases of COND, and steps with direct factors where others were expected, count as the steps that take as long
            expected, details = self._newton_step_seconds(problem), found.details
            taken = expected if details["way"] == "multigrid" else self._direct_step_seconds(problem)
            alternating = taken * (_TURN * details["turns"] + _TURNING * details["factorizations"]) if details["turns"] else 0.0
            seen = (
                alternating + taken * details["newton_steps"] + self._iteration_seconds(problem) * details["cond_iterations"]
            ) / expected
            self._steps[kind] += _LEARNING * (seen - self._steps[kind])
        elif name == "cond":
            iterations = _SHARES[kind] * self._expected_iterations(problem)
            seen = found.iterations / iterations if found.converged else _FAILURE * self._pace
            self._pace = min(max(self._pace + _LEARNING * (seen - self._pace), _PACE_LEAST), _PACE_MOST)
            self._steps += _FORGOTTEN * (_STEPS - self._steps)

    def _estimate(self, problem: ContactProblem) -> None:
        """Update the estimate of the conditioning when A has changed much."""
        diagonal = problem.diagonal
        if len(diagonal) == len(self._diagonal) and len(diagonal):
            ratio = diagonal / self._diagonal
            if ratio.max() < _CHANGE and ratio.min() > 1.0 / _CHANGE:
                return
        self._conditioning, self._diagonal = conditioning(problem), diagonal

    @takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Pick a solver and solve; where it does not converge, another one goes on from there.

        Parameters
        ----------
        problem : ContactProblem
            Any problem.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.

        Raises
        ------
        ContactError
            A is not positive definite, and a solver needs it to be.
        """
        picked, many = self._pick(problem, warm_start), _has_many(problem, warm_start)
        if picked == "exact":
            picked = ("wide" if self._is_wide(problem, warm_start) else "brief") if many else "short"
        if picked == "canal" and problem.group_rows[2].any() and not self._definite.says(problem.A):
            # CANAL does not see it where contacts hold what A does not, and those that come after it look long for an answer
            raise NotPositiveError(NOT_POSITIVE)
        first = self._resting.replaced(picked)
        answers: dict[str, Solution] = {}
        start = warm_start
        for name in self._order(problem, warm_start, picked, first, many):
            if name in _VAIN and self._is_vain(name, problem, answers):
                continue
            try:
                found = answers[name] = self._asked(name, problem, None if name == "fresh" else start)
            except ContactError as error:
                if name not in _MAY_REFUSE or isinstance(error, NotPositiveError):
                    raise
                continue
            if name == first:
                self._learn(problem, name, found)
            if found.status in ("converged", "infeasible") or (found.status == "stopped at rounding" and name != "few"):
                break  # "few" has a sharper tolerance, which rounding may bar alone
            start = self._next_start(problem, found, warm_start)
        else:
            name = min(answers, key=lambda one: self._error(problem, answers[one]))
        solution = answers[name]
        self._resting = self._resting.after(picked, first, name, solution.converged)
        tried = tuple(map(_known_as, answers))
        if first != picked:
            reason = f"problems like one that {_known_as(picked)} failed at"
        elif picked in _REASONS:
            reason = _REASONS[picked]
        else:
            reason = "few unknowns" if problem.n <= _COND_ROWS else f"a conditioning of about {self._conditioning:.0f}"
        said = f"Picked {_known_as(name)} for {reason}."
        if len(answers) > 1:
            said = f"{tried[0]}, picked for {reason}, did not converge; {' and '.join(tried[1:])} went on."
            said += "" if solution.converged else f" The answer of {_known_as(name)} is the best."
        if picked == "short" and name in _UNBALANCED and solution.converged:
            finished, tried = self._asked("finish", problem, WarmStart(solution.v, solution.lam)), (*tried, "exact")
            if finished.converged:
                name, solution, said = "finish", finished, f"{said} The exact solver finished what {_known_as(name)} found."
        options: SolverOptions = getattr(self, _PLACES["exact" if name == "few" else name]).options
        details = {
            **solution.details, "picked": _known_as(name), "tried": tried, "conditioning": self._conditioning,
            "max_iterations": options.max_iterations,
        }  # fmt: skip
        return solution.told(message=f"{solution.message} {said}", details=details)

    def _asked(self, name: str, problem: ContactProblem, start: WarmStart | None) -> Solution:
        """Ask the solver that has this place, the exact one with the sweeps that it has there."""
        solver: Solver = getattr(self, _PLACES[name])
        self._exact.max_sweeps = _SWEEPS.get(name, _LONG_SWEEPS)
        self._exact.all_sweeps = 2 * _SWEEPS[name] if name in _FEW_SEARCHES else sys.maxsize
        return solver.solve(problem, start)

    def _is_vain(self, name: str, problem: ContactProblem, answers: Mapping[str, Solution]) -> bool:
        """Whether one of these that may be vain is, after what CANAL gave."""
        canal = answers.get("canal", answers.get("wide"))
        if name == "brief":
            return canal is not None and self._error(problem, canal) <= _NEARLY * self.options.tolerance
        astray = canal is not None and bool(canal.details.get("from_nothing"))
        return astray or (name == "last" and problem.n_contacts > _LAST_CONTACTS)

    def _next_start(self, problem: ContactProblem, found: Solution, warm_start: WarmStart | None) -> WarmStart | None:
        """Where the next solver goes on: from what was found; from where the first began if forces have grown without end."""
        if found.status == "failed":
            return None
        astray = self._error(problem, found) > residuals(problem, found.v, found.lam).worst
        return warm_start if astray else WarmStart(found.v, found.lam)

    @staticmethod
    def _error(problem: ContactProblem, solution: Solution) -> float:
        """Larger true residual of an answer, or the error of its contact law where this alone is large; inf where it failed.

        Residuals are relative to the forces, and fall where forces that hold each other, as those of a box between others, grow
        without end.
        """
        if solution.status == "failed":
            return math.inf
        worst, law = residuals(problem, solution.v, solution.lam).worst, law_error(problem, solution.v, solution.lam)
        return law if worst <= _ASTRAY * law and law > VELOCITY_BOUND else worst

    def solve_local(self, problem: LocalProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve a problem given as u = W lam + q by the exact solver, the only one among these that takes any W."""
        solution = self._exact.solve_local(problem, warm_start)
        return replace(solution, details={**solution.details, "picked": "exact"})
