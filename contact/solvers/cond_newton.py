"""COND finished by Newton: COND's iteration finds the states of the contacts, sparse Newton steps do what is smooth."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact.errors import NotPositiveError
from contact.linear import NOT_POSITIVE
from contact.metrics import Residuals, residuals
from contact.problem import ContactProblem, from_isotropic, isotropic, to_isotropic
from contact.solvers import alternating, multigrid, primal_kernels as kernels
from contact.solvers.alternating import Alternation, Turns
from contact.solvers.augmented import AugmentedLagrangian
from contact.solvers.base import FactorizationOptions, Solution, WarmStart, below, start_pair
from contact.solvers.cond import Cond, CondOptions, FixedPoint
from contact.solvers.converted import Converting
from contact.solvers.definite import Definite
from contact.solvers.judge import Judge, Row, barring, drive
from contact.solvers.primal_newton import PrimalNewton
from contact.solvers.with_rows import takes_rows

#: Iterations of COND between two looks at the states, and the fewest of a phase without and with a warm start.
_CHUNK, _FIRST, _FIRST_WARM = 5, 10, 5
#: A warm start whose contact law holds to this has its states right but for a few: Newton's method takes it as it is.
RIGHT = 1e-3
#: ... and where it holds to this, as where the equations of a step are linearised anew, all states are right.
ON_THE_LAW = 1e-6
#: What is left, after each problem whose first phase was long enough, of the length that the first phase of the next one has.
_SHORTER = 0.95
#: States have settled when at most this share of them changed between two looks; a phase ends at the latest after so many.
_SETTLED, _LONGEST = 0.02, 200
#: A phase is so many times as long as the one before where its states were not right yet.
_LONGER = 4
#: Most Newton steps after a phase, and steps that do not halve the residual before it is given up.
_NEWTON, _VAIN = 6, 3
#: ... and from a start that holds the contact law nearly, where the states of a whole front of contacts may be wrong nonetheless.
_VAIN_AT_START = 2
#: Proximal shift relative to the compliance of a contact, the same in all steps, so that factors serve several; trial forces.
_SHIFT, _TRIAL_SCALE = 1e-5, 1.0
#: Newton steps that iterate leave this part of the residual in the dynamics, since the contact law, which they linearise, leaves
#: about so many times the square of it (measured on mats that slide); where that is no more than what is asked for, they go on to
#: this part of what is, so that they are the last.
_FORCED, _CURVED, _BELOW = 1e-2, 0.04, 0.1
#: ... and with older factors, where each digit takes a step or two, this part, unless that is so little more than what is asked.
_FORCED_OLDER, _NEARLY_OLDER = 1e-3, 10.0
#: A cycle has gained where it leaves at most this part of the residual; this many in vain hand over to the augmented Lagrangian.
_GAINED, _VAIN_CYCLES = 0.1, 3
#: Rows up to which factors of A are made before that even where multigrid does without, to see whether A is definite: the
#: augmented Lagrangian needs those of larger matrices, and looks for seconds where there is nothing to find.
_ASKED_ROWS = 100_000
#: Newton's method takes over from the augmented Lagrangian below this residual; it restarts its acceleration when that doubles.
_NEAR, _WORSE = 1e-2, 2.0
#: The true residual of alternating steps is asked for after so many turns, and earlier where their gap says that it is below so
#: many times the aim. They are given up where it is not halved in so many turns, and after the most.
_TURNS, _SURELY, _MOST_TURNS = 30, 1.5, 240
#: Outer iterations within which the residual of the augmented Lagrangian must halve.
_PATIENCE = 15


@dataclass(frozen=True)
class CondNewtonOptions(FactorizationOptions):
    """Options of COND finished by Newton.

    Attributes
    ----------
    max_iterations : int
        Limit of iterations of COND and Newton steps together. Default 2000; 10 to 60 are usual.
    """

    solver_name: ClassVar[str] = "cond-newton"

    tolerance: float = 1e-8
    max_iterations: int = 2000


class CondNewton(Converting):
    """Phases of COND's iteration, each followed by a few semi-smooth Newton steps on (v, lam).

    COND's sweep settles contacts and stiff local modes within tens of iterations, but not the smooth modes of a body, which its
    diagonal step does not see. Newton steps do those, once the states of the contacts (open, sticking, sliding) are about right.
    A phase lasts until the states settle; the first one of a problem is about as long as all phases of the last problem were that
    needed more than one. A warm start that holds the contact law nearly, as where the equations of a step are linearised anew,
    goes to Newton's method at once. Both work on the sparse A; W is never formed. Where cycles gain nothing, as in chains that
    slide everywhere, the augmented Lagrangian of papers/000, whose inner problems are convex, leads on, and Newton's method
    finishes again.

    Where most contacts join soft bodies to each other, as in piles, alternating steps (:mod:`contact.solvers.alternating`) come
    first: their factors serve tens of turns, and need not be right about the states.

    Parameters
    ----------
    options : CondNewtonOptions, optional
        Options; defaults are documented there.
    phase : int
        Iterations of COND in the first phase of the first problem at least; what problems need is learnt from it on.

    Notes
    -----
    ``Solution.details`` holds ``turns`` (of alternating steps), ``cond_iterations``, ``newton_steps`` (both kinds), ``cycles``
    (phases of COND), ``outer`` (outer iterations of the augmented Lagrangian), ``factorizations`` of the sparse way, of
    alternating steps and of coarse matrices, ``krylov_steps`` with multigrid or older factors, ``states`` (open, stick, slide)
    and ``way`` (how the Newton systems are solved: banded, dense, multigrid or sparse).
    """

    description = (
        "COND finished by Newton: COND settles the states of the contacts, sparse Newton steps do the rest; W is not formed"
    )

    def __init__(self, options: CondNewtonOptions | None = None, phase: int = _FIRST) -> None:
        self.options = o = options or CondNewtonOptions()
        self._cond = Cond(CondOptions(tolerance=o.tolerance, max_iterations=o.max_iterations))
        self._newton = PrimalNewton(o.backend, o.threads)
        self.linear_algebra = self._newton.sparse.linear_algebra
        self._definite = Definite(o.backend, o.threads)
        self._alternation = Alternation(self._definite, o.threads) if self.linear_algebra == "pardiso" else None
        self._phase = phase

    @property
    def phase(self) -> int:
        """Iterations of COND in the first phase of the next problem at least, unless its start is nearly right."""
        return self._phase

    def alternates(self, problem: ContactProblem) -> bool:
        """Whether a large problem whose Newton systems have sparse factors is solved by alternating steps first."""
        return self._alternation is not None and alternating.serves(problem) and not multigrid.serves(problem)

    def memory(self) -> dict[str, np.ndarray]:
        """Return what one solve leaves for the next: COND's eigenvector, pattern and factors of the Newton system, the phase."""
        parts = {"cond": self._cond.memory(), "newton": self._newton.memory()}
        if self._alternation is not None:
            parts["alternation"] = self._alternation.memory()
        own = {f"{name}/{key}": value for name, part in parts.items() for key, value in part.items()}
        return own | {"phase": np.array(self._phase)}

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        for name, one in (("cond", self._cond), ("newton", self._newton), ("alternation", self._alternation)):
            if one is not None:
                one.recall(below(memory, name))
        self._phase = int(memory.get("phase", _FIRST))

    @takes_rows
    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve the problem.

        Parameters
        ----------
        problem : ContactProblem
            Any problem with contacts between at most two bodies, friction isotropic or not.
        warm_start : WarmStart, optional
            Velocity and forces of the previous step. Default zero.

        Raises
        ------
        ContactError
            A is not positive definite: asked where a cycle was in vain, and of an answer that holds dynamics and contact law.
            Where multigrid solves the Newton systems only before the augmented Lagrangian: factors of A are what it spares.
        """
        search = _Search(
            problem, warm_start, self.options, self._cond, self._newton, self._alternation, self._definite, self._phase
        )
        judge = Judge(problem, self.options.tolerance)
        drive(search, judge, self.options.max_iterations)
        self._phase = search.next_phase(self._phase)
        states = np.bincount(search.states(), minlength=3).tolist()
        details = {**search.counts, **search.spent(), "states": states, "way": self._newton.way.name}
        solution = judge.solution(search.timings, details)
        if solution.converged:
            search.ask()
        return solution


class _Search:
    """The iterations of :class:`CondNewton` on one problem: cycles of COND and Newton, and the augmented Lagrangian."""

    failed = False

    def __init__(
        self,
        problem: ContactProblem,
        warm_start: WarmStart | None,
        options: CondNewtonOptions,
        cond: Cond,
        newton: PrimalNewton,
        alternation: Alternation | None,
        definite: Definite,
        phase: int,
    ) -> None:
        self.problem, self._options, self._cond, self._newton = problem, options, cond, newton
        self.law, nc = isotropic(problem), problem.n_contacts
        self.timings = dict.fromkeys(("prepare", "alternating", "cond", "newton", "augmented"), 0.0)
        started = time.perf_counter()
        self.v, self.lam = start_pair(problem, warm_start)
        newton.take(self.law)
        self._alternation, self._definite, self._asked = alternation, definite, False
        #: whether alternating steps lead on
        self._alternates = alternation is not None and newton.way is newton.sparse and alternating.serves(problem)
        self._turns: Turns | None = None
        self._before = self._work()
        self._rules = newton.law(_SHIFT, _TRIAL_SCALE)
        self._states = np.full(nc, -1, dtype=np.int8)
        self._fixed_point: FixedPoint | None = None
        #: true residuals of a warm start that Newton's method may take as it is
        self._start = None if warm_start is None else residuals(problem, self.v, self.lam)
        if self._start is not None and not self._start.contact <= RIGHT:
            self._start = None
        self._least = _FIRST_WARM if warm_start is not None and phase == _FIRST else phase
        #: smallest true residual so far, that of v and lam, and its row
        self.worst, self.best = np.inf, -1
        self._kept = Residuals(np.inf, np.inf, np.inf, np.inf)
        self.rows: list[Row] = []
        self.counts = {"turns": 0, "cond_iterations": 0, "newton_steps": 0, "cycles": 0, "outer": 0}
        self._vain = 0
        #: whether COND goes on where it was, because Newton's steps led nowhere
        self._goes_on = False
        self._end = 0
        self.over = False
        self.timings["prepare"] = time.perf_counter() - started

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return self.v, self.lam

    def ask(self, *, spare: bool = True) -> None:
        """Raise NotPositiveError where A is not positive definite; alternating steps begin with factors that say so.

        ``spare`` where the answer is not worth factors that multigrid does without.
        """
        known = self._asked or (self._turns is not None and self._turns.is_definite)
        if not known and not (spare and self._newton.way.name == "multigrid"):
            if not self._definite.says(self.problem.A):
                raise NotPositiveError(NOT_POSITIVE)
            self._asked = True

    def states(self) -> np.ndarray:
        """States of the contacts at the answer, (nc,) int8."""
        u = self.law.moved(self.v).reshape(-1, 3) + self.law.phi
        kernels.find_states(self._rules, to_isotropic(self.problem, self.lam), u, self._states)
        return self._states

    def spent(self) -> dict[str, int]:
        """Factorizations and Krylov steps of this problem."""
        found = [now - before for now, before in zip(self._work(), self._before, strict=True)]
        return {"factorizations": found[0], "krylov_steps": found[1]}

    def _work(self) -> tuple[int, int]:
        """Factorizations, those of coarse matrices too, and Krylov steps of all problems so far."""
        sparse, multigrid = self._newton.sparse, self._newton.multigrid
        alternating = 0 if self._alternation is None else self._alternation.factorizations
        return sparse.factorizations + multigrid.renewals + alternating, sparse.krylov_steps + multigrid.steps

    def until(self, aim: float, limit: int) -> list[Row]:
        """Cycles until the residuals are at most ``aim``; a cycle is not begun when the limit is reached."""
        first, self._end = len(self.rows), len(self.rows) + limit
        while len(self.rows) < self._end and not self.over:
            if self._start is not None and not self._alternates:
                self._correct_start(aim, self._start.worst)
            elif self._alternates:
                self._alternate(aim)
            elif self._vain >= _VAIN_CYCLES:
                self._augmented(aim)
            else:
                self._cycle(aim)
            if self.worst <= aim:
                break
            if self._vain:
                self.ask()
            self.over = self.over or self._rounding_bars(aim)
        return self.rows[first:]

    def _rounding_bars(self, aim: float) -> bool:
        """Whether nothing but rounding is left of the best pair, and that is more than ``aim``."""
        return barring(self.problem, self.v, self.lam, self._kept, aim) > 0

    def next_phase(self, phase: int) -> int:
        """Length of the first phase of the next problem, where that of this one was ``phase``."""
        if self.counts["cycles"] == 0:
            return phase
        if self.counts["cycles"] == 1:
            return max(int(_SHORTER * phase), _FIRST)
        return min(self.counts["cond_iterations"], _LONGEST)

    def _alternate(self, aim: float) -> None:
        """Alternating steps from the start, or on where they were; where they lead nowhere, the rest goes on from the best."""
        started, turns, gap_at, since, asked = time.perf_counter(), self._turns, np.inf, 0, self.worst
        if turns is None:
            assert self._alternation is not None
            turns = self._turns = self._alternation.take(
                self.law, self._newton.columns, self.v, to_isotropic(self.problem, self.lam)
            )
        while len(self.rows) < self._end and self.worst > aim:
            if not turns.failed:
                turns.turn()
            if turns.failed or self.counts["turns"] >= _MOST_TURNS:
                self._alternates = False
                break
            self.counts["turns"] += 1
            self.rows.append((None, None, turns.step))
            since += 1
            if turns.gap <= gap_at or since == _TURNS:
                residual = self._keep(turns.v, from_isotropic(self.problem, turns.lam))
                gap_at = _SURELY * turns.gap * aim / residual
                if since == _TURNS:
                    if self.worst > 0.5 * asked:
                        self._alternates = False
                        break
                    since, asked = 0, self.worst
        self.timings["alternating"] += time.perf_counter() - started

    def _correct_start(self, aim: float, residual: float) -> None:
        """Newton steps from the start, whose true residual is given; COND goes on from there where they lead nowhere."""
        started, start = time.perf_counter(), (self.v, self.lam)
        self._start = None
        self._correct(aim, self.v, to_isotropic(self.problem, self.lam), residual, residual, _VAIN_AT_START)
        if not self.worst <= residual:
            self.v, self.lam = start
        self.timings["newton"] += time.perf_counter() - started

    def _cycle(self, aim: float) -> None:
        """Go through a phase of COND, and Newton steps from where it leads."""
        before = self.worst
        v, lam, settled = self._settle(aim)
        if self.worst > aim and len(self.rows) < self._end:
            started = time.perf_counter()
            self._correct(aim, v, to_isotropic(self.problem, lam), settled)
            self.timings["newton"] += time.perf_counter() - started
            self._goes_on = self.worst > 0.5 * min(before, settled)
            if self._goes_on:  # the states were not right yet
                self._least = min(_LONGER * self._least, _LONGEST)
        self._vain = 0 if self.worst <= _GAINED * before else self._vain + 1

    def _settle(self, aim: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Iterate COND, from the best pair or on where it was, until the states settle; return its best pair and residual."""
        started, done = time.perf_counter(), 0
        if self._fixed_point is None:
            self._fixed_point, _ = self._cond.iterations(self.problem, WarmStart(self.v, self.lam))
        elif not self._goes_on:
            self._fixed_point.again(self.v, self.lam)
        self.counts["cycles"] += 1
        while done < _LONGEST and len(self.rows) < self._end:
            asked = min(_CHUNK, self._end - len(self.rows))
            found = self._fixed_point.until(aim, asked)
            done += len(found)
            self.rows += [(dynamics, contact, step) for dynamics, contact, step in found.tolist()]
            v, lam = self._fixed_point.answer()
            u = self.law.moved(v).reshape(-1, 3) + self.law.phi
            changed = kernels.find_states(self._rules, to_isotropic(self.problem, lam), u, self._states)
            if len(found) < asked or self._fixed_point.failed:
                break
            if done >= self._least and changed <= _SETTLED * len(self._states):
                break
        self.counts["cond_iterations"] += done
        residual = self._keep(v, lam) if self._fixed_point.best >= 0 else np.inf
        self.timings["cond"] += time.perf_counter() - started
        return v, lam, residual

    def _correct(
        self, aim: float, v: np.ndarray, lam: np.ndarray, residual: float, least: float = np.inf, most_vain: int = _VAIN
    ) -> None:
        """Newton steps from v and the isotropic lam, whose true residual is given, until so many do not halve the least one."""
        v, lam, vain, newton = v.copy(), lam.copy(), 0, self._newton
        for _ in range(min(_NEWTON, self._end - len(self.rows))):
            older, size = newton.way is newton.sparse, min(residual, 1.0)
            last = _FORCED_OLDER * size <= _NEARLY_OLDER * aim if older else _CURVED * size * size <= aim
            share = _BELOW * aim if last else (_FORCED_OLDER if older else _FORCED) * size
            if not newton.step(self._rules, v, lam, lam.copy(), share):
                return
            self.counts["newton_steps"] += 1
            self.rows.append((None, None, newton.step_size))
            residual = self._keep_admissible(v, lam)
            vain += not residual <= 0.5 * least
            if residual <= aim or vain >= most_vain:
                return
            least = min(residual, least)

    def _augmented(self, aim: float) -> None:
        """Outer iterations of the augmented Lagrangian from the best pair, and Newton steps where its states settle."""
        started, newton = time.perf_counter(), self._newton
        self.ask(spare=self.problem.n > _ASKED_ROWS)
        outer = AugmentedLagrangian(newton, self.v, to_isotropic(self.problem, self.lam))
        residual, least, since = self.worst, np.inf, 0
        while len(self.rows) < self._end and self.worst > aim:
            before = outer.newton_steps
            outer.max_newton = min(outer.max_newton, self._end - len(self.rows))
            outer.advance(residual)
            steps = outer.newton_steps - before
            self.counts["outer"] += 1
            self.counts["newton_steps"] += steps
            self.rows += [(None, None, 0.0)] * max(steps, 1)
            if outer.failed:
                break
            residual = self._keep_admissible(outer.v, outer.lam)
            if residual > _WORSE * least:
                outer.restart()
            since = 0 if residual <= 0.5 * least else since + 1
            least = min(residual, least)
            if residual > aim and residual <= _NEAR and outer.changed <= _SETTLED * len(self._states):
                self._correct(aim, outer.v, outer.lam, residual)
            if since > _PATIENCE or self._rounding_bars(aim):
                break
        self.over = self.worst > aim
        self.timings["augmented"] += time.perf_counter() - started

    def _keep_admissible(self, v: np.ndarray, lam: np.ndarray) -> float:
        """Do so with isotropic forces as the cone allows them: Newton's method leaves them outside by about the tolerance."""
        allowed = np.empty_like(lam)
        kernels.into_cone(self.law.friction, lam, allowed)
        return self._keep(v, from_isotropic(self.problem, allowed))

    def _keep(self, v: np.ndarray, lam: np.ndarray) -> float:
        """Write the true residuals of a pair into the last row, and keep the pair where it is the best; return the larger one."""
        found, row = residuals(self.problem, v, lam), len(self.rows) - 1
        self.rows[row] = (found.dynamics, found.contact, self.rows[row][2])
        worst = found.worst if np.isfinite(found.worst) else np.inf
        if worst < self.worst or self.best < 0:
            self.worst, self.best, self.v, self.lam, self._kept = worst, row, v.copy(), lam.copy(), found
        return worst
