"""A way to solve the Newton systems of large soft bodies: GMRES with a two-level cycle, whose work grows with the points alone.

Direct factors of a cube of 10 600 points take 0.7 s and 18 ms a substitution, and iterations that see points alone grow with the
size of the body. Here the smooth part is left to the rigid modes of aggregates of about 27 points, and the rest to one sweep of
block Gauss-Seidel down and one up; a decimal digit takes 2 to 3 steps at any size.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from contact.errors import ContactError
from contact.linear import Backend, make_factorization
from contact.nodalize import layout
from contact.problem import ContactProblem, Group
from contact.solvers import multigrid_kernels as kernels, primal_kernels
from contact.solvers.block_rows import BlockPattern
from contact.solvers.cond_system_kernels import scatter_entries
from contact.solvers.krylov import gmres
from contact.solvers.newton_ways import Way

#: Rows from which on it pays; of fewer the other ways take less.
_LEAST_ROWS = 2400
#: Edge of the boxes of points that make aggregates, in mean lengths of the edges of the mesh, and its growth while there are more
#: aggregates than so many.
_BOX, _LARGER, _MOST_AGGREGATES = 2.3, 1.25, 1500
#: Rows of bodies that are no points, all of which stay in the coarse matrix.
_MOST_OTHERS = 600
#: What is added to the diagonal of the coarse matrix, in which aggregates of few points leave modes without any stiffness.
_SHIFT = 1e-9
#: Most steps of GMRES.
_STEPS = 60
#: The coarse matrix is made anew when this part of the contacts has changed its state, or when a digit takes this much more
#: steps than with a new one.
_DIFFERING, _SLOWER = 0.02, 1.5
#: Digits from which on steps for each of them are a measure.
_MEASURES = 1.0


def serves(problem: ContactProblem) -> bool:
    """Whether a problem may be solved so: many rows of points at known places, hardly any others, contacts on one point each."""
    return _single_points(problem) is not None


def _single_points(problem: ContactProblem) -> np.ndarray | None:
    """Return the block row that each contact acts on, (nc,), -1 for none; None where the problem cannot be solved so."""
    if problem.points is None or problem.n < _LEAST_ROWS or any(group.kind == "links" for group in problem.groups):
        return None
    if sum(group.stop - group.start for group in problem.groups if group.kind != "nodes") > _MOST_OTHERS:
        return None
    found = np.empty(problem.n_contacts, dtype=np.int64)
    single = kernels.find_points(problem.J.indptr, problem.J.indices, _points_of(problem.groups), found)
    return found if single else None


@lru_cache(maxsize=16)
def _points_of(groups: tuple[Group, ...]) -> np.ndarray:
    """Block row of x of each row of v that is a point's, (n,); -1 of others."""
    places = layout(groups)
    return np.where(places.stride[places.of_row[places.rows]] == 3, places.rows // 3, -1)


class _Structure:
    """What depends on the pattern of A and on the aggregates alone."""

    def __init__(self, problem: ContactProblem, aggregate: np.ndarray | None) -> None:
        self.groups = problem.groups
        places = layout(problem.groups)
        self.rows, self.size = places.rows, places.size
        self.pattern = BlockPattern(problem.A, places.rows, places.size)
        ptr, col = self.pattern.ptr, self.pattern.col
        self.of_block = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        self.diagonal = np.flatnonzero(self.of_block == col)
        body = places.of_row[::3]
        self.is_point = places.stride[body] == 3
        self.kind = np.where(self.is_point, kernels.POINT, (np.arange(len(body)) - places.start[body] // 3) % 2 + kernels.FIRST)
        #: body of each block row that is a point, -1 of others
        self.body = np.where(self.is_point, body, -1)
        self.bodies = len(problem.groups)
        self.box = _BOX * self._edge(self.points(problem))
        if aggregate is None:
            aggregate = self._aggregate(self.points(problem), body)
        self.aggregate = aggregate
        self.count = int(aggregate.max()) + 1
        self._place_coarse()

    def points(self, problem: ContactProblem) -> np.ndarray:
        """Places of the block rows, (rows, 3), m; zero of those that are no points."""
        found = np.zeros(self.size)
        found[self.rows] = problem.points
        return found.reshape(-1, 3)

    def _edge(self, points: np.ndarray) -> float:
        """Mean distance of points that A joins, m."""
        i, j = self.of_block, self.pattern.col
        joined = self.is_point[i] & self.is_point[j] & (i < j)
        length = np.linalg.norm(points[i[joined]] - points[j[joined]], axis=1)
        return float(length.mean()) if len(length) and length.mean() > 0.0 else 1.0

    def _aggregate(self, points: np.ndarray, body: np.ndarray) -> np.ndarray:
        """Return the aggregate of each block row: boxes of points of one body, and pairs of the others."""
        while True:
            keys = np.zeros((len(body), 4), dtype=np.int64)
            keys[:, 0] = body
            for k in np.unique(body):
                own = np.flatnonzero(body == k)
                if not self.is_point[own[0]]:
                    keys[own, 1] = np.arange(len(own)) // 2
                    continue
                low, extent = points[own].min(axis=0), np.ptp(points[own], axis=0)
                boxes = np.maximum(np.round(extent / self.box), 1.0)
                edge = np.where(extent > 0.0, extent / boxes, 1.0)
                keys[own, 1:] = np.minimum((points[own] - low) / edge, boxes - 1.0)
            aggregate = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
            if aggregate.max() < _MOST_AGGREGATES or self.box * len(body) > 1e12:
                return np.asarray(aggregate)
            self.box *= _LARGER

    def _place_coarse(self) -> None:
        """Find where the blocks of A go in the coarse matrix, and the entries of that one in compressed columns."""
        i, j, count = self.aggregate[self.of_block], self.aggregate[self.pattern.col], self.count
        keys, place = np.unique(j * count + i, return_inverse=True)
        transposed = np.searchsorted(keys, i * count + j)
        self.coarse = kernels.Coarse(place.ravel().astype(np.int64), transposed.astype(np.int64))
        self.coarse_blocks = len(keys)
        column, row = keys // count, keys % count
        values = sp.csc_matrix(
            (
                np.arange(36.0 * len(keys)) + 1.0,
                (
                    (6 * row[:, None, None] + np.arange(6)[:, None] + np.zeros(6, dtype=np.int64)).ravel(),
                    (6 * column[:, None, None] + np.zeros((6, 1), dtype=np.int64) + np.arange(6)).ravel(),
                ),
            ),
            shape=(6 * count, 6 * count),
        )
        values.sort_indices()
        self.indptr, self.indices = values.indptr, values.indices
        self.entries = values.data.astype(np.int64) - 1
        self.on_diagonal = np.flatnonzero(self.indices == np.repeat(np.arange(6 * count), np.diff(self.indptr)))


class MultigridWay:
    """GMRES with a two-level cycle, for contacts that act on one point each; where that stops, another way goes on.

    The coarse matrix and its factors stay from problem to problem until they are too slow.

    Parameters
    ----------
    direct : Way
        The other way, which takes any problem; it has the problem at hand from then on.
    backend, threads
        Of the factors of the coarse matrix, see ``contact.linear.make_factorization``.
    """

    def __init__(self, direct: Way, backend: Backend = "auto", threads: int = 1) -> None:
        self._direct, self._gave_up = direct, False
        self._factors = make_factorization(backend, threads)
        self.forget()

    @property
    def name(self) -> str:
        """Name of the way that the last system was solved."""
        return self._direct.name if self._gave_up else "multigrid"

    def forget(self) -> None:
        """Drop everything."""
        self._structure: _Structure | None = None
        self._kept: dict[str, np.ndarray] = {}
        self._modes: kernels.Modes | None = None
        #: matrix of the translations of each body, (bodies, 3, 3), made when it is asked for
        self._translations: np.ndarray | None = None
        self.steps = self.renewals = 0

    def memory(self) -> dict[str, np.ndarray]:
        """Return what gives aggregates, modes and coarse matrix again, and the states of the contacts and the pace then."""
        return self._kept

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take it back."""
        self.forget()
        self._kept = dict(memory)

    def take(self, problem: ContactProblem, columns: primal_kernels.Columns) -> bool:
        """Take a problem whose contacts act on one point each, with many points."""
        point = _single_points(problem)
        if point is None:
            return False
        structure = self._fit(problem)
        self._gave_up = False
        self._problem, self._columns, self._point = problem, columns, point
        self._states = np.empty(problem.n_contacts, dtype=np.int8)
        scatter_entries(problem.A.data, structure.pattern.places, structure.pattern.values)
        n = structure.size // 3
        self._blocks = kernels.Blocks(
            structure.pattern.ptr, structure.pattern.col, structure.pattern.values, structure.diagonal, np.zeros((n, 3, 3))
        )
        self._held, self._inverse = np.zeros((n, 3, 3)), np.empty((n, 3, 3))
        self._weight = np.ones(structure.size)
        self._weight[structure.rows] = problem.weight
        return True

    def _fit(self, problem: ContactProblem) -> _Structure:
        """Make the structure, or take the last one; what is kept goes with a pattern, of which it may have been recalled."""
        known = self._structure
        if known is not None and known.pattern.matches(problem.A) and known.groups == problem.groups:
            return known
        A, kept = problem.A, self._kept
        same = bool(kept) and np.array_equal(kept["indptr"], A.indptr) and np.array_equal(kept["indices"], A.indices)
        self._structure = made = _Structure(problem, kept["aggregate"] if same else None)
        self._modes, self._kept = None, kept if same else {}
        return made

    def factorize(self, gain: np.ndarray) -> bool:
        """Take gains (nc, 3, 3), N s/m; make the coarse matrix anew where the last one does not serve. False if that fails."""
        self._gain, self._translations = gain, None
        if self._gave_up:
            return self._direct.factorize(gain)
        kernels.add_gains(self._columns, self._structure.rows, self._point, gain, self._blocks.added, self._held)  # type: ignore[union-attr]
        kernels.invert_diagonal(self._blocks, self._inverse)
        kernels.find_kinds(gain, self._states)
        try:
            if not self._serves():
                self._renew()
            elif self._modes is None:
                self._make(self._kept["modes"], self._kept["coarse"])
        except ContactError:
            self._kept, self._modes = {}, None
            return self._give_up()
        return True

    def _give_up(self) -> bool:
        """Leave this problem to the direct way; whether it has factors."""
        self._gave_up = True
        return self._direct.take(self._problem, self._columns) and self._direct.factorize(self._gain)

    def _serves(self) -> bool:
        """Whether the coarse matrix that is kept will do."""
        kept = self._kept
        if not kept or len(kept["states"]) != len(self._states) or kept["pace"][1] > _SLOWER * kept["pace"][0]:
            return False
        return int(np.count_nonzero(kept["states"] != self._states)) <= _DIFFERING * len(self._states)

    def _renew(self) -> None:
        """Make modes and coarse matrix of what was taken."""
        structure = self._structure
        assert structure is not None
        points, count = structure.points(self._problem), np.bincount(structure.aggregate, minlength=structure.count)
        sums = [np.bincount(structure.aggregate, points[:, c], structure.count) for c in range(3)]
        centre = np.column_stack(sums) / count[:, None]
        modes = kernels.Modes(structure.aggregate, np.empty((len(structure.aggregate), 3, 6)))
        kernels.fill_modes(self._blocks, structure.kind, points, centre, structure.box, self._held, modes)
        blocks = np.empty((structure.coarse_blocks, 6, 6))
        kernels.galerkin(self._blocks, self._held, modes, structure.coarse, blocks)
        data = blocks.ravel()[structure.entries]
        diagonal = data[structure.on_diagonal]
        data[structure.on_diagonal] += np.where(diagonal > 0.0, _SHIFT * diagonal, 1.0)
        self._kept = {
            "indptr": self._problem.A.indptr, "indices": self._problem.A.indices, "aggregate": structure.aggregate,
            "modes": modes.shape, "coarse": data, "states": self._states.copy(), "pace": np.zeros(2),
        }  # fmt: skip
        self._make(modes.shape, data)
        self.renewals += 1

    def _make(self, shape: np.ndarray, data: np.ndarray) -> None:
        """Factorize the coarse matrix."""
        structure = self._structure
        assert structure is not None
        size = 6 * structure.count
        self._modes = kernels.Modes(structure.aggregate, shape)
        coarse = sp.csc_matrix((data, structure.indices, structure.indptr), shape=(size, size))
        self._factors.factorize(coarse, np.zeros(0, dtype=np.int64))

    def solve(self, r: np.ndarray, left: float = 0.0) -> np.ndarray:
        """Take steps of GMRES, or the direct way where they do not lead there."""
        if self._gave_up:
            return self._direct.solve(r, left)
        structure = self._structure
        assert structure is not None
        right = np.zeros(structure.size)
        right[structure.rows] = r
        found = gmres(self._cycle, self._weight, right, left, _STEPS)
        self.steps += found.steps
        if found.digits > _MEASURES:
            pace, first = found.steps / found.digits, self._kept["pace"][0]
            self._kept = self._kept | {"pace": np.array([first or pace, pace if found.x is not None else np.inf])}
        if found.x is not None:
            return np.asarray(self._balanced(found.x, right)[structure.rows])
        return self._direct.solve(r, left) if self._give_up() else np.full(len(r), np.nan)

    def _balanced(self, x: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Move each body as a whole until what is left of the residual has no sum over it: forces then balance to rounding."""
        structure = self._structure
        assert structure is not None
        if self._translations is None:
            self._free, self._translations = np.empty(structure.size), np.empty((structure.bodies, 3, 3))
            kernels.find_free(self._blocks, self._free)
            kernels.translations(self._blocks, structure.body, self._free, self._translations)
            idle = self._translations.diagonal(axis1=1, axis2=2) == 0.0
            self._translations += idle[:, :, None] * np.eye(3)
        lacking = np.empty((structure.bodies, 3))
        kernels.net_lacking(self._blocks, structure.body, self._free, right, x, lacking)
        moved = np.linalg.solve(self._translations, lacking[:, :, None])[:, :, 0]
        points = structure.body >= 0
        x = x.reshape(-1, 3).copy()
        x[points] += self._free.reshape(-1, 3)[points] * moved[structure.body[points]]
        return x.ravel()

    def _cycle(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One cycle for a right-hand side, and the product with its answer."""
        structure, modes = self._structure, self._modes
        assert structure is not None
        assert modes is not None
        x, product, coarse = np.zeros(len(b)), np.empty(len(b)), np.empty((structure.count, 6))
        kernels.sweep_down(self._blocks, self._inverse, modes, b, x, coarse)
        correction = self._factors.solve(coarse.ravel()).reshape(-1, 6)
        kernels.sweep_up(self._blocks, self._inverse, modes, b, correction, x, product)
        return x, product
