"""SubADMM: the alternating direction method of papers/000 that splits a problem by its bodies."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from contact.errors import ContactError
from contact.linear import make_factorization
from contact.problem import ContactProblem, from_isotropic, isotropic, row_parents, to_isotropic
from contact.solvers import subadmm_kernels as kernels
from contact.solvers.base import Check, FactorizationOptions, Solution, WarmStart, start_pair
from contact.solvers.converted import Converting
from contact.solvers.judge import Judge, Row, drive
from contact.solvers.penalty import Fixed, Rule, Sizes
from contact.solvers.with_rows import takes_rows
from contact.together import Team

#: Subsystems of at most so many rows are dense blocks of one kernel; larger ones are solved by sparse factors.
_SMALL = 48
#: ... or dense ones, where more than this share of the entries is filled.
_DENSE_SHARE = 0.3
#: Iterations between two looks at the penalty are a multiple of this.
_CHUNK = 10
#: Fewer pieces of contacts than this are not worth a second thread.
_MANY = 1500
#: Least and largest factor on the penalty, and how much later than the last look at it the next one is.
_LEAST, _MOST, _RARER = 0.1, 10.0, 2.0


@dataclass(frozen=True)
class SubadmmOptions(FactorizationOptions):
    """Options of SubADMM.

    Attributes
    ----------
    tolerance : float
        As for all solvers. Default 1e-4, which is cheap; 1e-8 is only where the problem is well conditioned.
    split : {"body", "subsystem", "none"}
        Each subsystem has its own slacks and its own linear system, or all are one: plain ADMM, the ablation "No Sub" of
        papers/000 Table III. Subsystems are the groups of a problem; those that A couples are one. ``"body"``: branches of a
        kinematic tree, by ``Group.parents``, have their own slacks too, and its factors the pattern of the tree; worth it from
        some tens of iterations on. Default ``"subsystem"``, "No Body" there.
    penalty : float
        Penalty of a contact as a multiple of its force per velocity (``scaling``).
    scaling : {"contact", "mean"}
        Penalties relative to each contact (``ContactProblem.scales``), or one for all: the geometric mean of those (in papers/000
        of the masses over the contacts on them).
    adaptive : {"balanced", "paper", "fixed"}
        ``"paper"``: by the root of the ratio of slack error to dynamics residual, both relative, after each ``every`` iterations
        where one is ``gamma`` times the other (papers/000 eq. 43), which may go on for ever. ``"balanced"``: the same after
        ``every`` iterations, twice as many, four times as many, and so on.
    gamma : float
        See ``adaptive``.
    every : int
        See ``adaptive``; a multiple of 10.
    threads : int
        Threads for bodies and contacts, where these are many; factors of large bodies are made by one. The answer is the same,
        bit by bit, for any number. Default 1.
    """

    solver_name: ClassVar[str] = "subadmm"

    tolerance: float = 1e-4
    max_iterations: int = 1000
    split: Literal["body", "subsystem", "none"] = "subsystem"
    penalty: float = 1.0
    scaling: Literal["contact", "mean"] = "contact"
    adaptive: Literal["balanced", "paper", "fixed"] = "balanced"
    gamma: float = 10.0
    every: int = 10

    def _checks(self) -> list[Check]:
        rules = ("balanced", "paper", "fixed")
        return [
            *super()._checks(),
            ("split", self.split, self.split in ("body", "subsystem", "none"), "'body', 'subsystem' and 'none'"),
            ("penalty", self.penalty, 0 < self.penalty < np.inf, "positive numbers"),
            ("scaling", self.scaling, self.scaling in ("contact", "mean"), "'contact' and 'mean'"),
            ("adaptive", self.adaptive, self.adaptive in rules, ", ".join(map(repr, rules))),
            ("gamma", self.gamma, 1 < self.gamma < np.inf, "numbers above 1"),
            ("every", self.every, self.every >= _CHUNK and self.every % _CHUNK == 0, f"multiples of {_CHUNK}"),
        ]


class Subadmm(Converting):
    """Subsystem-based ADMM (papers/000 section VI).

    Each contact has one slack for each subsystem that takes part in it (a piece p), so that the linear systems fall apart::

        (A_j + sum beta J_p^T J_p) v_j = b_j + sum J_p^T (beta z_p + lam),    lam+ = T(lam - beta / k (J v + phi)),
        z_p+ = J_p v + (lam+ - lam) / beta

    with the strict operator T, k pieces of a contact, and the sums over the pieces of subsystem j. The multipliers of the papers
    are -lam and are not kept (eqs. 34 to 39). Every subsystem, and then every contact, is treated by itself, by as many threads
    as ``threads`` says. There is no proof of convergence, for the strict operator is not that of a convex problem.

    Departures: penalties relative to each contact; looks at them ever rarer. Split by body, a piece of a contact between two
    links of one tree has no columns of joints that move both alike, which cancel in J: with them in both pieces, as eq. 31 has
    it, the penalty holds the whole tree against the world, and it takes 1.1 to 1.3 times the iterations. Entries of H come from
    J_p, not from composite bodies (eqs. 40, 41), which gives the same matrix. A local problem is one subsystem: then this is
    plain ADMM.

    Parameters
    ----------
    options : SubadmmOptions, optional
        Options; defaults are documented there.

    Notes
    -----
    ``Solution.details`` holds ``subsystems``, ``trees`` (those split by body), ``large`` (those solved by sparse or large dense
    factors), ``pieces``, ``factorizations``, ``penalty`` (the last, relative) and ``returned_iteration``.
    """

    description = "SubADMM: ADMM split by bodies, each with its own small linear system; many bodies, loose tolerances"

    def __init__(self, options: SubadmmOptions | None = None) -> None:
        self.options = options or SubadmmOptions()

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
            A is not positive definite.
        """
        clock = time.perf_counter
        started = clock()
        iterations = _Iterations(problem, warm_start, self.options)
        prepared = clock()
        judge = Judge(problem, self.options.tolerance)
        with iterations.team:
            drive(iterations, judge, self.options.max_iterations)
        times = {"prepare": prepared - started, "iterate": clock() - prepared}
        return judge.solution(times, iterations.details())


def find_subsystems(problem: ContactProblem) -> np.ndarray:
    """Return the subsystem of each row of A, (n,) int64: groups, of which those that A couples are one."""
    A, (start, stop, _) = problem.A, problem.group_rows
    system = np.repeat(np.arange(len(start)), stop - start)
    kernels.join_groups(A.indptr, A.indices, A.data, system, np.arange(len(start)))
    return system


class Forest(NamedTuple):
    """Row that each row of A hangs on, (n,) int64, -1 for none, and which subsystems are trees with branches, (subsystems,).

    ``entries`` is how many their factors have.
    """

    parent: np.ndarray
    is_tree: np.ndarray
    entries: int = 0


def _no_trees(system: np.ndarray) -> Forest:
    return Forest(system, np.zeros(system.max(initial=-1) + 1, dtype=np.bool_))


def find_trees(problem: ContactProblem, system: np.ndarray) -> Forest:
    """Return which of the subsystems, given for each row of A, (n,), are kinematic trees with branches."""
    if all(group.parents is None for group in problem.groups):
        return _no_trees(system)
    A, parent, is_tree = problem.A, row_parents(problem.groups), _no_trees(system).is_tree
    entries = kernels.find_trees(A.indptr, A.indices, A.data, parent, system, is_tree)
    return Forest(parent, is_tree, entries)


def find_pieces(law: ContactProblem, system: np.ndarray, forest: Forest | None = None) -> kernels.Pieces:
    """Return J of a problem by contacts and subsystems, of trees by branches."""
    forest = forest or _no_trees(system)
    J, most = law.J, len(law.J.data)
    contact, ptr = np.empty(most, dtype=np.int64), np.empty(most + 1, dtype=np.int64)
    col, jac = np.empty(most, dtype=np.int64), np.empty((most, 3))
    found = kernels.split_columns(J.indptr, J.indices, J.data, system, forest.parent, forest.is_tree, contact, ptr, col, jac)
    contact, ptr, end = contact[:found].copy(), ptr[: found + 1].copy(), int(ptr[found])
    first = np.searchsorted(contact, np.arange(law.n_contacts + 1)).astype(np.int64)
    return kernels.Pieces(contact, ptr, col[:end].copy(), jac[:end].copy(), first)


def _systems(system: np.ndarray, forest: Forest, pieces: kernels.Pieces) -> kernels.Systems:
    """Rows and pieces of each subsystem, and room for the matrices of the small ones and of trees."""
    sizes = np.bincount(system) if len(system) else np.zeros(0, dtype=np.int64)
    row, ptr = _sorted(system, len(sizes))
    piece, own = _sorted(system[pieces.col[pieces.ptr[:-1]]], len(sizes))
    parent, is_tree, _ = forest
    small = (sizes <= _SMALL) & ~is_tree
    ends = np.cumsum(np.where(small, sizes**2, 0))
    start = np.where(small, ends - sizes**2, np.where(is_tree, kernels.TREE, kernels.LARGE)).astype(np.int64)
    place = np.empty(len(system), dtype=np.int64)
    place[row] = np.arange(len(row)) - ptr[system[row]]
    data, line = np.zeros(int(ends[-1]) if len(ends) else 0), np.zeros(len(system) + 1, dtype=np.int64)
    up, tree = np.empty(forest.entries, dtype=np.int64), np.empty(forest.entries)
    if forest.entries:
        kernels.lay_trees(parent, is_tree, ptr, row, place, line, up)
    return kernels.Systems(ptr, row, own, piece, start, system, place, data, line, up, tree)


def _sorted(owner: np.ndarray, owners: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what belongs to each owner, one after the other, in its order, and where each begins."""
    ends = np.cumsum(np.bincount(owner, minlength=owners))
    return np.argsort(owner, kind="stable").astype(np.int64), np.concatenate([[0], ends]).astype(np.int64)


def _cut(work: np.ndarray, shares: int) -> np.ndarray:
    """Return where shares of about equal work begin, (shares + 1,) int64."""
    done = np.concatenate([[0.0], np.cumsum(work)])
    return np.searchsorted(done, np.linspace(0.0, done[-1], shares + 1)).clip(0, len(work)).astype(np.int64)


class _Large:
    """The large subsystems together, which fall apart in the factorization too."""

    def __init__(self, law: ContactProblem, rows: np.ndarray, pieces: kernels.Pieces, options: SubadmmOptions) -> None:
        self.rows, place = rows, np.full(law.n, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        self._A = sp.csc_matrix(law.A[rows][:, rows])
        own = place[pieces.col] >= 0
        owner = np.repeat(np.arange(len(pieces.contact)), np.diff(pieces.ptr))[own]
        entries = pieces.jac[own].ravel(), ((3 * owner[:, None] + np.arange(3)).ravel(), np.repeat(place[pieces.col[own]], 3))
        self._J = sp.csr_matrix(entries, shape=(3 * len(pieces.contact), len(rows)))
        self._contact = np.repeat(pieces.contact, 3)
        filled = self._A.nnz + float(np.square(np.diff(pieces.ptr)).sum())
        self._dense = filled > _DENSE_SHARE * len(rows) ** 2
        self._factorization = make_factorization(options.backend)  # by one thread, for the bits of several depend on their number

    def factorize(self, beta: np.ndarray) -> None:
        """Factorize A + sum beta J_p^T J_p; ContactError where A is not positive definite."""
        H = sp.csc_matrix(self._A + self._J.T @ sp.diags(beta[self._contact]) @ self._J)
        if not self._dense:
            H.sort_indices()
            self._factorization.factorize(H, np.zeros(0, dtype=np.int64))
            return
        self._factor, bad = sl.lapack.dpotrf(H.toarray(order="F"), lower=1, overwrite_a=1, clean=0)
        if bad:
            raise ContactError("A is not positive definite (its factorization broke down); check materials, time step and units.")

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Solve for the rows of large subsystems of a right-hand side (n,)."""
        if self._dense:
            return np.asarray(sl.lapack.dpotrs(self._factor, right[self.rows], lower=1)[0])
        return self._factorization.solve(right[self.rows])


class _SlackRule:
    """Root of the ratio of slack error to dynamics residual, both relative (papers/000 eq. 43).

    Parameters
    ----------
    every : int
        Iterations before the first look.
    gamma : float
        Ratio, or its inverse, from which on the penalty changes.
    rarer : float
        Iterations until the next look as a multiple of those before it; at least ``every``.
    """

    def __init__(self, every: int, gamma: float, rarer: float) -> None:
        self._every, self._gamma, self._rarer, self._next = every, gamma, rarer, every

    def factor(self, iteration: int, sizes: Sizes) -> float:
        """Return the factor on 1 / beta."""
        if iteration < self._next or iteration % self._every or not (sizes.primal > 0 and sizes.dynamics > 0):
            return 1.0
        self._next = math.ceil(self._rarer * iteration)
        ratio = sizes.primal / sizes.dynamics
        if not np.isfinite(ratio) or 1 / self._gamma < ratio < self._gamma:
            return 1.0
        # where all contacts stick, their velocities vanish with the error, which so stays as large beside them for any penalty
        if ratio > 1.0 and sizes.contact < sizes.dynamics / self._gamma**3:
            return 1.0
        return 1.0 / float(np.clip(np.sqrt(ratio), _LEAST, _MOST))


class _Iterations:
    """Iterations on one problem, in isotropic variables; the best iterate of those at which it looked."""

    over = False

    def __init__(self, problem: ContactProblem, warm_start: WarmStart | None, options: SubadmmOptions) -> None:
        self.problem, self._options = problem, options
        law = isotropic(problem)
        v, lam = start_pair(problem, warm_start)
        lam = to_isotropic(problem, lam)
        system = np.zeros(problem.n, dtype=np.int64) if options.split == "none" else find_subsystems(problem)
        forest = find_trees(problem, system) if options.split == "body" else _no_trees(system)
        self._pieces = find_pieces(law, system, forest)
        self._data = kernels.Data(law.b, law.weight, law.phi, law.friction, law.scales)
        self._systems = systems = _systems(system, forest, self._pieces)
        self.subsystems, self.trees = len(systems.start), int(forest.is_tree.sum())
        self.large = int((systems.start == kernels.LARGE).sum())
        rows = np.flatnonzero(systems.start[system] == kernels.LARGE)
        self._large = _Large(law, rows, self._pieces, options) if len(rows) else None
        self._A = law.A
        moved = np.empty((len(self._pieces.contact), 3))
        kernels.move_all(self._pieces, systems, v, moved)
        self._state = kernels.State(v, lam, np.zeros_like(lam), moved)
        right, residual, pushed, x = np.empty((4, problem.n))
        blocks = -(-len(lam) // kernels.BLOCK)
        sums = np.empty((self.subsystems, 3)), np.empty((blocks, 5))
        self._room = kernels.Room(right, residual, pushed, np.empty_like(moved), np.empty_like(lam), x, *sums)
        self.team = Team(options.threads if len(moved) >= _MANY else 1)
        work = np.diff(systems.own) + 0.1 * np.diff(systems.ptr)
        cuts = _cut(work, self.team.threads), _cut(np.ones(blocks), self.team.threads)
        self._shares = kernels.Shares(*cuts, self.team.met)
        scales = law.scales
        if options.scaling == "mean" and len(scales):
            scales = np.full(len(scales), np.exp(np.log(scales).mean()))
        self._scales, self.penalty, self.factorizations = scales, options.penalty, 0
        rarer = _RARER if options.adaptive == "balanced" else 0.0
        self._rule: Rule = Fixed() if options.adaptive == "fixed" else _SlackRule(options.every, options.gamma, rarer)
        self._factorize()
        self.best, self.failed, self._done, self._least = -1, False, 0, np.inf
        self._v, self._lam = v.copy(), lam.copy()

    def _factorize(self) -> None:
        self._beta, A = self.penalty * self._scales, self._A

        def factorize(thread: int) -> bool:
            bounds = self._shares.system[thread : thread + 2].tolist()
            return kernels.factorize_systems(A.indptr, A.indices, A.data, self._pieces, self._beta, self._systems, *bounds)

        if not all(self.team.run(factorize)):
            raise ContactError("A is not positive definite (its factorization broke down); check materials, time step and units.")
        if self._large is not None:
            self._large.factorize(self._beta)
        self.factorizations += 1

    def until(self, aim: float, limit: int) -> list[Row]:
        """Iterate until both residuals are at most ``aim``; the penalty may change after each ten iterations."""
        rows: list[Row] = []
        while len(rows) < limit and not self.failed:
            before = self._state.v.copy()
            found = self._chunk(min(_CHUNK - self._done % _CHUNK, limit - len(rows)), aim)
            step = float(np.linalg.norm(self._state.v - before)) / len(found)
            rows += [(float(dynamics), float(contact), step) for dynamics, contact, _ in found]
            factor = 1.0
            for dynamics, contact, slack in found.tolist():
                self._done += 1
                factor = self._rule.factor(self._done, Sizes(slack, 0.0, 0.0, 0.0, dynamics, contact))
            worst = float(found[-1, :2].max())
            self.failed = not np.isfinite(found[-1]).all()
            if worst < self._least or self.best < 0:
                self.best, self._least = self._done - 1, worst
                self._v, self._lam = self._state.v.copy(), self._state.lam.copy()
            if worst <= aim:
                break
            if factor != 1.0 and not self.failed:
                self.penalty /= factor
                self._factorize()
        if rows and self.best == self._done - 1:
            rows[-1] = (None, None, rows[-1][2])
        return rows

    def _chunk(self, count: int, aim: float) -> np.ndarray:
        """Iterate; return the rows (k, 3) of ``kernels.residuals``."""
        rows, room, state, large, run = np.empty((count, 3)), self._room, self._state, self._large, self.team.run
        given = self._pieces, self._systems, self._data, self._beta, state, room, self._shares
        if large is None:
            return rows[: run(lambda thread: kernels.iterate(*given, thread, rows, aim))[0]]
        for i, row in enumerate(rows):
            run(lambda thread: kernels.solve_bodies(*given, thread))
            state.v[large.rows] = large.solve(room.right)
            row[:] = run(lambda thread: kernels.update_contacts(*given, thread))[0]
            if row[:2].max() <= aim or not np.isfinite(row).all():
                return rows[: i + 1]
        return rows

    def answer(self) -> tuple[np.ndarray, np.ndarray]:
        return self._v, from_isotropic(self.problem, self._lam)

    def details(self) -> dict[str, object]:
        """Numbers for the solution."""
        return {
            "subsystems": self.subsystems,
            "trees": self.trees,
            "large": self.large,
            "pieces": len(self._pieces.contact),
            "factorizations": self.factorizations,
            "penalty": self.penalty,
            "returned_iteration": self.best + 1,
        }
