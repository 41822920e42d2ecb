"""Alternating steps between dynamics and contact law, with factors of A + J^T R J and Anderson's extrapolation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from contact.problem import ContactProblem
from contact.solvers import alternating_kernels as kernels
from contact.solvers.definite import Definite
from contact.solvers.newton_ways import SparseWay
from contact.solvers.primal_kernels import OPEN, Columns
from contact.sparse_lu import PardisoCholesky

#: R of contacts, as multiples of their force per velocity, where nothing presses, along what slides and along what holds
#: (measured on 13 problems of a pile: 580 turns; 700 with one value for the first two, 910 where more for the first of them).
_FREE, _SLIDING, _HELD = 0.05, 0.4, 6.0
#: What is left of R of open contacts that factors leave out.
_LEFT_OUT = 1e-3
#: Entries of the rows of J of a contact that acts on one point.
_ONE_POINT = 9
#: Turns that the extrapolation looks back on.
_MEMORY = 20
#: Part of what the dynamics lack that factors of a problem before may leave in a turn, and the turns in which it is asked.
_LEAVES, _ASKED = 0.25, 2
#: R is made anew after so many turns, where more than this share of the states are others by then; so often at most, but for
#: contacts that press though they were left out. Factors of a problem before are tried where no larger share is others.
_AGE, _OTHERS, _RENEWALS = 14, 0.01, 2
#: Extrapolation begins anew where the gap grows by this factor over the least one.
_GROWN = 30.0


def serves(problem: ContactProblem) -> bool:
    """Whether most contacts join points of soft bodies to each other, as in piles and folds.

    Where they join bodies to rigid ones, the others take less.
    """
    if not problem.n_contacts:
        return False
    points = np.zeros(problem.n, dtype=np.int64)
    for group in problem.groups:
        if group.kind == "nodes":
            points[group.start : group.stop] = 1
    J = problem.J
    joined = np.add.reduceat(np.append(points[J.indices], 0), J.indptr[:-1:3])
    return bool(2 * (joined > _ONE_POINT).sum() > problem.n_contacts)


class Extrapolation:
    """Anderson's extrapolation of z + f(z), in scales where all entries are comparable.

    Parameters
    ----------
    size, memory : int
        Entries of z, and differences that are kept.
    """

    def __init__(self, size: int, memory: int = _MEMORY) -> None:
        self._f, self._g = np.empty((memory, size)), np.empty((memory, size))
        self._gram = np.zeros((memory, memory))
        self.restart()

    def restart(self) -> None:
        """Forget all turns."""
        self._count, self._last = 0, None

    _last: tuple[np.ndarray, np.ndarray] | None

    def after(self, z: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return where to go from z (size,), which z + f (size,) answered."""
        g, last = z + f, self._last
        self._last = f.copy(), g
        if last is None:
            return g
        memory = len(self._f)
        at = self._count % memory
        np.subtract(f, last[0], out=self._f[at])
        length = float(np.sqrt(self._f[at] @ self._f[at]))
        if not length > 0.0:
            return g
        self._f[at] /= length
        np.subtract(g, last[1], out=self._g[at])
        self._g[at] /= length
        self._count += 1
        kept = min(self._count, memory)
        found = self._f[:kept]
        self._gram[at, :kept] = self._gram[:kept, at] = found @ self._f[at]
        M = self._gram[:kept, :kept].copy()
        M[np.diag_indices(kept)] += 1e-12
        return np.asarray(g - np.linalg.solve(M, found @ f) @ self._g[:kept])


class Alternation:
    """Alternating steps on one problem after another: the law of each contact by itself, then the dynamics of all bodies.

    With z = lam - R u, a contact's force lam and velocity u follow from z alone, and hold the law; the dynamics then give ::

        (A + J^T R J) v = b + J^T (2 lam - z - R phi)

    and z is reflected, z + 2 (lam - z - R (J v + phi)). Where it comes to rest, dynamics and law agree. This is ADMM without
    damping (Peaceman and Rachford), which Anderson's extrapolation makes converge in tens of turns for any conditioning of A; a
    turn takes one substitution. The factors may be rough: velocities are corrected by what the dynamics lack. So those of the
    problem before serve, with their R, where it has as many contacts in nearly the same states, as where the equations of a step
    are linearised anew: until they leave too much of what the dynamics lack.

    Parameters
    ----------
    definite : Definite
        Asked whether A is positive definite: A + J^T R J may be so where A is not.
    threads : int
        Threads of the factorization.
    """

    def __init__(self, definite: Definite, threads: int = 1) -> None:
        self._way, self._definite = SparseWay(factors=PardisoCholesky(threads), lag=False), definite
        self._made_for: _MadeFor | None = None

    @property
    def factorizations(self) -> int:
        """Factorizations of all problems so far."""
        return self._way.factorizations

    def memory(self) -> dict[str, np.ndarray]:
        """Return what one problem leaves for the next: the pattern, and what gives the factors again."""
        made = {} if self._made_for is None else {**self._way.memory(), **self._made_for._asdict()}
        return self._way.pattern() | made

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        self._made_for = None
        if "factorized" not in memory:
            self._way.recall_pattern(memory)
            return
        self._way.recall(memory)
        self._made_for = _MadeFor(*(memory[name] for name in _MadeFor._fields))

    def take(self, law: ContactProblem, columns: Columns, v: np.ndarray, lam: np.ndarray) -> Turns:
        """Take a problem with one friction coefficient a contact, its J by contacts, and where to begin."""
        self._way.take(law, columns)
        return Turns(law, self, v, lam, self._definite.says(law.A))

    def factorize(self, penalty: np.ndarray, state: np.ndarray, n: int) -> bool:
        """Make factors with R (nc, 3), N s/m, by these states; False where the matrix, of n rows, is not positive definite."""
        gain = np.zeros((len(state), 3, 3))
        gain[:, range(3), range(3)] = penalty
        out = self.left_out(state)
        gain[out] = 0.0
        good = self._way.factorize(gain)
        self._made_for = _MadeFor(penalty.copy(), state.copy(), out.copy(), np.array(n)) if good else None
        return good

    def left_out(self, state: np.ndarray) -> np.ndarray:
        """Open contacts, (nc,) bool, that factors by these states leave out, since the pattern has no places for them."""
        return self._way.left_out(state != OPEN)

    def made_for(self, problem: ContactProblem) -> _MadeFor | None:
        """Return what the factors were made for, where that may be this problem."""
        made = self._made_for
        return made if made is not None and len(made.state) == problem.n_contacts and int(made.columns) == problem.n else None

    def substitute(self, r: np.ndarray) -> np.ndarray:
        """Return what the factors answer to r (n,), N."""
        return self._way.factors.solve(r)


class _MadeFor(NamedTuple):
    """R (nc, 3), N s/m, states (nc,), contacts that were left out (nc,) and columns of J with which factors were made."""

    penalty: np.ndarray
    state: np.ndarray
    left_out: np.ndarray
    columns: np.ndarray


class Turns:
    """The turns of :class:`Alternation` on one problem.

    Parameters
    ----------
    law : ContactProblem
        Problem with one friction coefficient a contact.
    alternation : Alternation
        Has factors of A + J^T R J, and has taken the problem.
    v, lam : ndarray, (n,) m/s and (nc, 3) N
        Where to begin.
    is_definite : bool
        Whether A is positive definite; else it has failed.

    Attributes
    ----------
    v, lam : ndarray, (n,) m/s and (nc, 3) N
        Pair of the last turn; lam holds the law with the velocities that contacts have in z.
    is_definite : bool
        Whether A is known to be positive definite.
    failed : bool
        Whether a matrix is not positive definite, or a value not finite.
    gap : float
        How far law and dynamics are apart, sqrt(N m/s).
    step : float, m/s
        Change of v in the last turn.
    """

    def __init__(self, law: ContactProblem, alternation: Alternation, v: np.ndarray, lam: np.ndarray, is_definite: bool) -> None:
        nc = law.n_contacts
        self._law, self._alternation = law, alternation
        self.v, self.lam = v.copy(), np.zeros((nc, 3))
        self._state, self._factored = np.full(nc, -1, dtype=np.int8), np.full(nc, -1, dtype=np.int8)
        #: turns in which older factors are still asked what they leave
        self._older = 0
        self._u = law.moved(self.v).reshape(-1, 3) + law.phi
        self._Av = law.times(self.v)
        self._work, self._f = np.empty((nc, 3)), np.empty((nc, 3))
        self._extrapolation = Extrapolation(3 * nc)
        self._age = self._renewals = 0
        self._least = np.inf
        self.gap, self.step = np.inf, 0.0
        self.is_definite = is_definite
        self.failed = not is_definite or not (self._take_older(lam) or self._start(lam))

    @property
    def Av(self) -> np.ndarray:
        """Product of A with v, (n,), N."""
        return self._Av

    def _take_older(self, lam: np.ndarray) -> bool:
        """Begin at forces (nc, 3), N, with the factors that are there; whether they may serve."""
        made = self._alternation.made_for(self._law)
        if made is None:
            return False
        self._R = made.penalty.copy()
        self._z = lam - self._R * self._u
        kernels.law_forces(self._law.friction, self._z, self.lam, self._state)
        if int((self._state != made.state).sum()) > _OTHERS * len(self._state):
            return False
        self._factored[:], self._left_out = made.state, made.left_out
        self._root = np.sqrt(self._R).ravel()
        self._older = _ASKED
        return True

    def _start(self, lam: np.ndarray) -> bool:
        """Begin at forces (nc, 3), N, with new factors; False where the matrix is not positive definite."""
        self._R = np.repeat(_SLIDING * self._law.scales, 3).reshape(-1, 3)
        self._z = lam - self._R * self._u
        kernels.law_forces(self._law.friction, self._z, self.lam, self._state)
        return self._renew()

    def _renew(self) -> bool:
        """Make R by the states that contacts have now, and factors with it; False where the matrix is not positive definite."""
        old = self._R.copy()
        kernels.penalties(self._state, self._law.scales, _FREE, _SLIDING, _HELD, self._R)
        self._left_out = self._alternation.left_out(self._state)
        self._R[self._left_out] *= _LEFT_OUT
        kernels.change_penalty(self.lam, old, self._R, self._z)
        self._factored[:] = self._state
        self._root = np.sqrt(self._R).ravel()
        self._extrapolation.restart()
        self._age, self._least, self._older = 0, np.inf, 0
        return self._alternation.factorize(self._R, self._state, self._law.n)

    def turn(self) -> None:
        """Take a turn."""
        law, z = self._law, self._z
        kernels.law_forces(law.friction, z, self.lam, self._state)
        if self._age >= _AGE and self._is_outdated():
            self._renewals += 1
            if not self._renew():
                self.failed = True
                return
        if not self._drive(z):
            self.failed = True
            return
        kernels.gap(self._R, self.lam, z, self._u, self._f)
        f = self._f.ravel()
        self.gap = float(np.sqrt(f @ f))
        if self.gap > _GROWN * self._least:
            self._extrapolation.restart()
            self._least = np.inf
        self._least = min(self._least, self.gap)
        self._z = (self._root * self._extrapolation.after(z.ravel() / self._root, f)).reshape(-1, 3)
        self._age += 1

    def _is_outdated(self) -> bool:
        """Whether R should be made anew: by other states, or since a contact presses that factors leave out."""
        others = self._state != self._factored
        if (others & self._left_out).any():
            return True
        return self._renewals < _RENEWALS and int(others.sum()) > _OTHERS * len(others)

    def _drive(self, z: np.ndarray) -> bool:
        """Let the dynamics answer z (nc, 3), N; False where a matrix is not positive definite, or a value not finite."""
        law = self._law
        while True:
            kernels.drive(self._R, self.lam, z, self._u, self._work)
            r = law.b + law.pushed(self._work) - self._Av
            dv = self._alternation.substitute(r)
            self.step = float(np.sqrt(dv @ dv))
            if not np.isfinite(self.step):
                return False
            v = self.v + dv
            Av, u = law.times(v), law.moved(v).reshape(-1, 3) + law.phi
            if self._older:
                left = r - (Av - self._Av) - law.pushed(self._R * (u - self._u))
                self._older -= 1
                if np.linalg.norm(law.weight * left) > _LEAVES * np.linalg.norm(law.weight * r):
                    if not self._renew():
                        return False
                    continue
            self.v, self._Av, self._u = v, Av, u
            return True
