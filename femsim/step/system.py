"""The sparse system A v = b + J^T lam of all bodies: one CSC matrix with a fixed pattern, residuals, prescribed velocities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from contact import Rows
from contact.compiled import Fixed
from contact.jacobian_kernels import scatter
from contact.masses_kernels import Masses
from contact.metrics import any_of, norm
from contact.metrics_kernels import relative
from contact.once import once
from contact.turns import Turns
from femsim.base.rotations import nearest_rotation
from femsim.model.bodies.body import Body, StepSettings, StepStart
from femsim.model.bodies.kinds import robot
from femsim.model.couplings import Coupling
from femsim.step import residual_kernels as kernels
from femsim.step.joints import Joints
from femsim.step.layout import lay_out
from femsim.step.mobility import Mobility, mass_times
from femsim.step.residual_kernels import Owned, Terms
from femsim.step.state import Memory, State
from femsim.step.whole_tangents import WholeTangents

#: Rounding of the forces in the equations of a step, over the largest terms that they are sums of; and the nonlinear residual
#: above which it is never the excuse.
_ROUNDINGS, _MOST_ROUNDING = 32.0 * np.finfo(np.float64).eps, 1e-6
#: Rows of v from which tangents of a body take long enough to be kept; those of small bodies cost nothing, and lag for nothing.
LAGS_FROM = 1000
#: Rows from which on several bodies of nodes count as a pile, whose contacts take most of a step.
PILES_FROM = 1000
#: Least part of the largest forces of a scene that the forces of one body are taken for: solvers leave 1e-8 of the former.
_OWN = 1e-4
_NO_FORCES = np.zeros((0, 3))

# every step hands over the same kinds of arrays
_sizes, _own_sizes = Fixed(kernels.sizes), Fixed(kernels.own_sizes)
_largest_share, _worst_body = Fixed(kernels.largest_share), Fixed(kernels.worst_body)


class System:
    """Bodies side by side in one matrix; its pattern is computed once.

    Parameters
    ----------
    bodies : sequence of Body
        Their rows of v follow one another in this order.
    couplings : sequence of Coupling
        What joins them; the pattern of A holds their blocks too.

    Attributes
    ----------
    A : scipy.sparse.csc_matrix, (n, n)
        Refilled in place by :meth:`assemble`.
    b, external : ndarray, (n,), N
        Right-hand side, and the part of it that gravity, loads and joints make.
    pushed : ndarray, (n,), N and N m, or None
        What somebody adds to the external forces from outside the scene, see :mod:`femsim.step.push`.
    calmed : ndarray, (n,), N s and N m s
        Impulses on prescribed rows by which the last :meth:`advance` calmed velocities, see ``Body.calm``.
    b_prescribed : ndarray, (n,), N, or None
        The part of b that prescribed velocities make, see ``ContactProblem.b_prescribed``.
    groups : tuple of Group
        Rows of each body.
    at_rest : ndarray, (n,)
        Zeros, never written to.
    prescribed, prescribes : ndarray, (n,), bool, and bool
        Rows of v whose velocity is given, and whether there are any.
    coupled : frozenset of int
        Bodies that couplings push from outside; those of the joints of a robot alone push within it.
    joints : Joints
        Couplings that hold by rows of the contact problem, see :meth:`joint_rows`.
    opening : float, m or rad
        The largest opening of a joint where the last :meth:`residual` led.
    conserving : bool
        Whether the last :meth:`assemble` was that of an energy-momentum step.
    scale : float
        What the last :meth:`residual` is relative to, in its norm.
    worst_share : float
        The last :meth:`residual` of the body that lacks most of its own forces, or of a thousandth of the largest ones in the
        scene if these are more; 0 where there is one body.
    rounding : float
        Part of the last :meth:`residual` that the rounding of its terms may make, at most 1e-6; 0 where more is lacking.
    """

    def __init__(self, bodies: Sequence[Body], couplings: Sequence[Coupling] = ()) -> None:
        self.bodies, self.couplings = tuple(bodies), tuple(couplings)
        layout = lay_out(self.bodies, self.couplings)
        self.q_slices, self.v_slices, self.groups = layout.q, layout.v, layout.groups
        #: where the entries of each body's block stand in A.data, and where the body fills them if others change them there
        self._entries = layout.entries
        self._buffers: list[np.ndarray | None] = [None] * len(self.bodies)
        self._coupled_rows, self._coupled_entries, self._between = layout.coupled_rows, layout.coupled_entries, layout.between
        self.n_q, self.n = sum(body.n_q for body in self.bodies), sum(body.n_v for body in self.bodies)
        #: bodies of points
        self._of_points = [k for k, body in enumerate(self.bodies) if body.kind == "nodes" and body.n_q == body.n_v]
        #: whether any body has tangents that may lag
        self.lags = any(body.kind == "nodes" and body.n_v >= LAGS_FROM for body in self.bodies)
        #: whether many rows are those of several bodies of nodes, and none those of rods, as in a pile
        soft = [body for body in self.bodies if body.kind == "nodes"]
        self.is_pile = (
            self.n >= PILES_FROM and len(soft) > 1 and not self.lags and not any(body.kind == "links" for body in self.bodies)
        )
        #: whether couplings, or bodies themselves, hold bodies to others or to the world
        self.is_held = bool(self.couplings) or any(body.is_held for body in self.bodies)
        last = [
            min(v.start + 6, v.stop) if body.kind == "generalized" else v.stop
            for body, v in zip(self.bodies, self.v_slices, strict=True)
        ]
        #: first and last row, half-open, of the vectors of each body
        self._vectors = np.array([v.start for v in self.v_slices], dtype=np.int64), np.array(last, dtype=np.int64)
        self._mobility = Mobility(self.bodies, self.q_slices, self.v_slices)
        self.coupled = frozenset(
            k for c in self.couplings for k, r in c.rows if self.bodies[k].kind != "generalized" or (r < 6).any()
        )
        self.A = sp.csc_matrix((np.zeros(len(layout.rows)), layout.rows, layout.starts), shape=(self.n, self.n))
        self._make_arrays()
        self.joints = Joints(self.couplings, self._coupled_rows, self.q_slices, self.n)
        self._columns_of_entries = np.repeat(np.arange(self.n), np.diff(self.A.indptr))
        self._on_diagonal = np.flatnonzero(self._columns_of_entries == self.A.indices)
        self.set_prescribed(np.zeros(self.n, dtype=np.bool_))
        self._starts = self._started(self.initial_state())

    def _make_arrays(self) -> None:
        """Make what steps fill, and what is known before the first."""
        nv = self.n
        self.b, self.external, self.calmed = np.zeros(nv), np.zeros(nv), np.zeros(nv)
        self.pushed: np.ndarray | None = None
        self._residual, self._inertia, self._external_there = np.zeros(nv), np.zeros(nv), np.zeros(nv)
        self._reach, self.scale, self._lacks = np.ones(nv), 0.0, 0.0
        self._lacking, self._given, self.at_rest = np.zeros(nv), np.zeros(nv), np.zeros(nv)
        starts, stops = (np.array([getattr(v, end) for v in self.v_slices], dtype=np.int64) for end in ("start", "stop"))
        self._owned = Owned(starts, stops, np.zeros(len(self.bodies)))
        self._own_scales, self.worst_share = np.ones(len(self.bodies)), 0.0
        #: driven bodies with generalized coordinates, by number; of their rows b of the last linearisation, what they lacked at
        #: the last residual, both without couplings, and by how much the forces of drives at the answer are beyond it
        self._driven: list[int] = []
        self._driven_b, self._driven_lacks, self._beyond = np.zeros(nv), np.zeros(nv), np.zeros(nv)
        self._dt, self.conserving = 1.0, False
        self.b_prescribed: np.ndarray | None = None
        self.rounding = self.opening = 0.0
        self._known_diagonal: np.ndarray | None = None
        #: first row of each body that turned last, and the rows of :meth:`turns` of all of them
        self._turned: tuple[tuple[int, ...], np.ndarray] = (), np.zeros(0, dtype=np.int64)

    def _started(self, state: State, v: np.ndarray | None = None) -> list[StepStart]:
        """Where each body is in a state, and its velocity, or that of ``v``, (n,)."""
        velocity = state.v if v is None else v
        return [StepStart(state.q[q], velocity[rows], state.t) for q, rows in zip(self.q_slices, self.v_slices, strict=True)]

    def coupling_forces(self, body: int) -> np.ndarray:
        """Force of each coupling on a body in the last step, (k, 3), N."""
        if not self.couplings:
            return _NO_FORCES
        pairs = [pair for c in self.couplings for pair in zip(c.rows, c.forces, strict=True)]
        return np.array([force for (k, _), force in pairs if k == body]).reshape(-1, 3)

    def initial_state(self) -> State:
        """State of all bodies at time zero."""
        empty = [np.zeros(0)]
        return State(
            np.concatenate([body.initial_q() for body in self.bodies] or empty),
            np.concatenate([body.initial_v() for body in self.bodies] or empty),
            0.0,
        )

    def remember(self, state: State) -> State:
        """State with what bodies and couplings remember in it."""
        bodies, couplings = self.memories(state.q)
        return replace(state, bodies=bodies, couplings=couplings)

    def memories(self, q: np.ndarray) -> tuple[tuple[Memory, ...], tuple[Memory, ...]]:
        """Return what bodies and couplings remember at coordinates (nq,)."""
        bodies = [body.memory(q[own]) for body, own in zip(self.bodies, self.q_slices, strict=True)]
        return tuple(bodies), tuple([coupling.memory() for coupling in self.couplings])

    def recall(self, state: State) -> None:
        """Make bodies and couplings remember what a state says."""
        for body, q, memory in zip(self.bodies, self.q_slices, state.bodies, strict=True):
            body.recall(memory, state.q[q])
        for coupling, memory in zip(self.couplings, state.couplings, strict=True):
            coupling.recall(memory)
            coupling.settle([state.q[self.q_slices[k]] for k, _ in coupling.rows])

    def energy(self, state: State) -> float:
        """Kinetic and elastic energy of the bodies in a state, J; asking for it is no step."""
        found = 0.0
        for body, q, v, memory in zip(self.bodies, self.q_slices, self.v_slices, state.bodies, strict=True):
            found += body.kinetic_energy(state.q[q], state.v[v]) + body.elastic_energy(state.q[q])
            body.recall(memory, state.q[q])
        return found

    def _things(self) -> list[Body | Coupling]:
        return [*self.bodies, *self.couplings]

    def acted(self) -> dict[str, dict[str, np.ndarray]]:
        """Name what acted in bodies and couplings in the last step."""
        return {thing.name: thing.acted() for thing in self._things()}

    def take_acted(self, acted: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Make bodies and couplings answer that this acted."""
        for thing in self._things():
            thing.take_acted(acted[thing.name])

    def set_prescribed(self, prescribed: np.ndarray) -> None:
        """Choose the rows of v whose velocity is given: (n,) bool."""
        self.prescribed, self.prescribes = prescribed, bool(prescribed.any())
        rows, columns = self.A.indices, self._columns_of_entries
        touched = prescribed[rows] | prescribed[columns]
        off_diagonal = rows != columns
        self._cleared = np.flatnonzero(touched & off_diagonal)
        self._coupling = np.flatnonzero(prescribed[columns] & ~prescribed[rows])
        self._columns = np.flatnonzero(prescribed[columns])
        self._rows = np.flatnonzero(prescribed)
        self._ends = np.zeros(len(self._rows))
        self._diagonal = np.flatnonzero(~off_diagonal & touched)
        self._driven = [
            k
            for k, (body, v) in enumerate(zip(self.bodies, self.v_slices, strict=True))
            if body.kind == "generalized" and prescribed[v].any()
        ]
        shared = {k for coupling in self.couplings for k, _ in coupling.rows}
        for k, v in enumerate(self.v_slices):
            if (tree := robot(self.bodies[k])) is not None:
                tree.base_free = not prescribed[v][:6].any()
            aside, places = k in shared or bool(prescribed[v].any()), self._entries[k]
            size = places.stop - places.start if isinstance(places, slice) else len(places)
            if aside and self._buffers[k] is None:
                self._buffers[k] = np.empty(size)
            elif not aside:
                self._buffers[k] = None

    def assemble(self, state: State, settings: StepSettings, v_prescribed: np.ndarray, v_end: np.ndarray | None = None) -> None:
        """Fill A and b of eq. (9), bodies and what couples them, then move prescribed velocities to the right-hand side.

        A prescribed row keeps its diagonal, where that is positive, and the equation a v = a v_prescribed, so A stays symmetric
        positive definite with the same pattern; its original equation is kept for :meth:`reaction`. Prescribed velocities go
        from v to v_end (by default v_prescribed) within the step, whatever theta is, so they enter b by the start velocity for
        which eq. (9) says the same.
        """
        self._dt, self.conserving, self._known_diagonal, v_start = settings.dt, settings.conserving, None, state.v
        if self._rows.size:
            v_start = state.v.copy()
            ends = v_prescribed if v_end is None else v_end
            self._ends = ends[self._rows]
            v_start[self._rows] = v_prescribed[self._rows] - settings.theta * (self._ends - state.v[self._rows])
            for body, v in zip(self.bodies, self.v_slices, strict=True):
                if len(driven := body.driven_rows()):
                    body.end_driven(ends[v][driven])
        self._starts = self._started(state, v_start)
        for coupling in self.couplings:
            coupling.prepare([state.q[self.q_slices[k]] for k, _ in coupling.rows], state.t + settings.theta * settings.dt)
        for k, (body, start, v) in enumerate(zip(self.bodies, self._starts, self.v_slices, strict=True)):
            body.assemble(start.q, start.v, start.t, settings, self._block(k), self.b[v], self.external[v])
            self._restore_block(k)
        for k in self._driven:
            self._driven_b[self.v_slices[k]] = self.b[self.v_slices[k]]
        for coupled, b in self._add_couplings(settings)[0]:
            self.b[coupled] += b
        if self.pushed is not None:
            self.b += self.pushed
            self.external += self.pushed
        self._prescribe(v_prescribed)

    def points(self) -> np.ndarray:
        """Where the points of bodies of points were at the start of the step that was assembled, (n,), m; other rows are zero."""
        if not self._of_points:
            return self.at_rest
        found = np.zeros(self.n)
        for k in self._of_points:
            found[self.v_slices[k]] = self._starts[k].q
        return found

    def moved(self, state: State, v_hat: np.ndarray, time: float) -> State:
        """Where a velocity, (n,), leads from a state in a time, s; only its coordinates are of then."""
        moved = [
            body.moved(state.q[q], v_hat[v], time) for body, q, v in zip(self.bodies, self.q_slices, self.v_slices, strict=True)
        ]
        return State(np.concatenate(moved), state.v, state.t, state.v_hat)

    def residual(self, settings: StepSettings, v_hat: np.ndarray, contact_force: np.ndarray, still: float = 0.0) -> float:
        """Measure what the equations of the step lack at v_hat, all forces evaluated where it leads: the nonlinear residual.

        It is M (v_hat - v)/(theta dt) - f(q + theta dt v_hat) - J^T lam on the rows that are not prescribed, in the norm
        ||r||^2 = sum r_i^2 / A_ii, relative to the largest of the rate of momentum, external forces, contact forces and the
        forces of drives; and at least to 1e-3 of the elastic forces, sqrt(2 E / (theta dt)), to 1e-6 of b, and to the forces
        that make the speed ``still``.

        Coordinates and velocities are rounded, so stiff forces are too: ``rounding`` becomes 32 times the rounding of
        A_ii (|v_hat_i| + |q_i|/(theta dt)) in the same norm and on the same scale, where the residual is below 1e-6.

        Parameters
        ----------
        settings : StepSettings
            Those of the last :meth:`assemble`, with which the step began.
        v_hat : ndarray, (n,)
            Representative velocity; prescribed rows have that which is prescribed.
        contact_force : ndarray, (n,), N and N m
            J^T lam.
        still : float, m/s
            Speed that counts as none.
        """
        implicit, out, external = settings.theta * settings.dt, self._residual, self._external_there
        moved = [
            body.moved(start.q, v_hat[v], implicit)
            for body, start, v in zip(self.bodies, self._starts, self.v_slices, strict=True)
        ]
        for coupling, coupled in zip(self.couplings, self._coupled_rows, strict=True):
            coupling.prepare([moved[k] for k, _ in coupling.rows], self._starts[0].t + implicit, v_hat[coupled])
        elastic, owned = 0.0, self._owned
        for k, (body, q, start, v) in enumerate(zip(self.bodies, moved, self._starts, self.v_slices, strict=True)):
            elastic += (own := body.elastic_energy(q))
            owned.floors[k] = 1e-3 * math.sqrt(2.0 * max(own, 0.0) / implicit)
            body.residual(q, start, settings, v_hat[v], external[v], out[v], self._inertia[v])
        for k in self._driven:
            self._driven_lacks[self.v_slices[k]] = out[self.v_slices[k]]
        for coupling, coupled in zip(self.couplings, self._coupled_rows, strict=True):
            out[coupled] -= coupling.exerted()
        if self.pushed is not None:
            out -= self.pushed
            external += self.pushed
        diagonal = self.diagonal()
        terms = Terms(out, contact_force, self.joints.push(), self._inertia, external, self.b)
        self._lacks, largest, b_size, trace = _sizes(diagonal, self.prescribed, terms, self._lacking)
        self.opening = self.joints.opening()
        floor = 1e-3 * math.sqrt(2.0 * max(elastic, 0.0) / implicit)
        self.scale = scale = max(largest, floor, 1e-6 * b_size, still * math.sqrt(trace))
        residual, self.rounding, self.worst_share = relative(self._lacks, scale), 0.0, 0.0
        if len(self.bodies) > 1:
            np.maximum(owned.floors, _OWN * scale, out=owned.floors)
            _own_sizes(owned, diagonal, self.prescribed, terms, still, self._own_scales)
            self.worst_share = _largest_share(owned, diagonal, self._lacking, self._own_scales)
        else:
            self._own_scales[:] = scale
        if residual <= _MOST_ROUNDING:
            for body, q, v in zip(self.bodies, moved, self.v_slices, strict=True):
                _fill_reach(body, q, self._reach[v])
            rounded = _ROUNDINGS * kernels.rounding(diagonal, self.prescribed, v_hat, self._reach, implicit)
            self.rounding = min(relative(rounded, scale), _MOST_ROUNDING)
        return residual

    def share(self, lacking: np.ndarray) -> float:
        """Return the largest part of its own forces at the last :meth:`residual` that a body lacks, of (n,), N and N m."""
        return float(_largest_share(self._owned, self.diagonal(), lacking, self._own_scales))

    def diagonal(self) -> np.ndarray:
        """Diagonal of A, (n,), taken out of it once; nobody writes to it."""
        if self._known_diagonal is None:
            self._known_diagonal = self.A.data[self._on_diagonal]
        return self._known_diagonal

    def free_weight(self) -> np.ndarray:
        """Root of the diagonal of A, (n,), the same in every frame: vectors have one value for three rows; 0 where prescribed."""
        root = np.empty(self.n)
        kernels.vector_weights(self.diagonal(), *self._vectors, self.prescribed, root)
        return root

    def lacks_most(self) -> int:
        """Return the number of the body with the largest share in the last :meth:`residual`; -1 where nothing is lacking."""
        if len(self.bodies) == 1:
            return 0 if self._lacks > 0.0 else -1
        return int(_worst_body(self._owned, self.diagonal(), self._lacking))

    def linearise(self, settings: StepSettings, v_hat: np.ndarray, *, positive: bool = False, lagged: bool = False) -> bool:
        """Fill A and b about v_hat, at which :meth:`residual` was asked last: A v = b is Newton's equation for the next v_hat.

        ``positive`` asks for an A that is surely positive definite; returns whether the last one may have been another one. An A
        whose diagonal is not positive is never left: its diagonal is the norm of the residual. ``lagged`` keeps the blocks of
        large bodies of nodes as they were filled last, which is near enough for a small step.
        """
        self.external[:] = self._external_there
        other = self._fill_tangents(settings, positive=positive, lagged=lagged)
        if not positive and self.diagonal().min(initial=1.0) <= 0.0:
            self._fill_tangents(settings, positive=True)
        scatter(self.A.indptr, self.A.indices, self.A.data, v_hat, self.b)
        self.b -= self._residual
        for k in self._driven:
            self._driven_b[self.v_slices[k]] = self._driven_force(k, v_hat) - self._driven_lacks[self.v_slices[k]]
        self._prescribe(v_hat)
        return other

    def _fill_tangents(self, settings: StepSettings, *, positive: bool, lagged: bool = False) -> bool:
        """Fill A with the tangents of bodies and couplings; whether any that were asked to be positive definite are others."""
        other, self._known_diagonal = False, None
        for k, body in enumerate(self.bodies):
            if not (lagged and body.kind == "nodes" and body.n_v >= LAGS_FROM):
                own = self._block(k)
                if positive:
                    other |= body.positive_tangent(settings, own)
                else:
                    body.tangent(settings, own)
            self._restore_block(k)
        return self._add_couplings(settings, positive)[1] or other

    def _block(self, k: int) -> np.ndarray:
        """Entries of a body's block of A, to be filled: an array that nothing else changes until the body is asked again.

        Those that others change in A are aside: :meth:`_restore_block` puts them there.
        """
        buffer = self._buffers[k]
        return self.A.data[self._entries[k]] if buffer is None else buffer

    def _restore_block(self, k: int) -> None:
        """Put a body's block into A as the body has filled it: undo what others changed there."""
        if (buffer := self._buffers[k]) is not None:
            self.A.data[self._entries[k]] = buffer

    def _add_couplings(
        self, settings: StepSettings, positive: bool | None = None
    ) -> tuple[list[tuple[np.ndarray, np.ndarray]], bool]:
        """Add the blocks of the couplings to A, those of the start of a step or, with ``positive``, their tangents.

        Returns the rows and the force of each, and whether any that were asked to be positive definite are others.
        """
        forces: list[tuple[np.ndarray, np.ndarray]] = []
        if not self.couplings:
            return forces, False
        data, other = self.A.data, False
        data[self._between] = 0.0
        for coupling, coupled, places in zip(self.couplings, self._coupled_rows, self._coupled_entries, strict=True):
            m = len(coupled)
            block, b = np.empty((m, m) if coupling.entries is None else len(places)), np.empty(m)
            if positive is None:
                coupling.assemble(settings, block, b)
            else:
                other |= coupling.tangent(settings, block, b, positive=positive)
            data[places] += block.ravel()
            forces.append((coupled, b))
        return forces, other

    def _prescribe(self, v_prescribed: np.ndarray) -> None:
        """Move prescribed velocities, (n,), to the right-hand side."""
        if not self.prescribes:
            return
        self._given = np.where(self.prescribed, v_prescribed, 0.0)
        data, rows, columns = self.A.data, self.A.indices, self._columns_of_entries
        self._column_data = data[self._columns].copy()
        self._reaction_b = self.b[self._rows].copy()
        own = self.b.copy()
        np.subtract.at(self.b, rows[self._coupling], data[self._coupling] * v_prescribed[columns[self._coupling]])
        data[self._cleared] = 0.0
        self._raise_diagonal()
        self.b[self._rows] = data[self._diagonal] * v_prescribed[self._rows]
        self.b_prescribed = self.b - own

    def _raise_diagonal(self) -> None:
        """Give prescribed rows that nothing resists, as turns of points about a base, a diagonal of the size of the others."""
        own = self.A.data[self._diagonal]
        if not any_of(nothing := own <= 0.0):
            return
        self.A.data[self._diagonal[nothing]] = max(float(self.diagonal().max()), np.finfo(np.float64).tiny)
        self._known_diagonal = None

    @property
    def lacking(self) -> np.ndarray:
        """What the equations lacked at the last :meth:`residual`, (n,), N and N m, zero on prescribed rows; only to be read."""
        return self._lacking

    def whole_tangents(self, settings: StepSettings) -> np.ndarray | None:
        """Entries of A, (nnz,), with the whole tangents of bodies where :meth:`residual` was asked last; None where none has any.

        Those of other bodies and of couplings are of the last linearisation.
        """
        data: np.ndarray | None = None
        for k, body in enumerate(self.bodies):
            if body.kind != "links":
                continue
            own = self._block(k)
            whole = np.empty(len(own))
            if not body.whole_tangent(settings, whole):
                return None
            data = self.A.data.copy() if data is None else data
            data[self._entries[k]] += whole - own
        return data

    def turned(self, v: np.ndarray) -> float:
        """Return the fastest turn of a link of a rod by velocities, (n,), rad/s."""
        both = zip(self.bodies, self.v_slices, strict=True)
        turns = [v[own].reshape(-1, 6)[:, 3:] for body, own in both if body.kind == "links"]
        return max((float(np.abs(turn).max()) for turn in turns), default=0.0)

    @once
    def whole(self) -> WholeTangents:
        """Newton's method by them, over the rows of all bodies that are not of nodes."""
        inside = np.zeros(self.n, dtype=np.bool_)
        for body, v in zip(self.bodies, self.v_slices, strict=True):
            inside[v] = body.kind != "nodes"
        return WholeTangents(self.A, inside)

    def turns(self) -> Turns | None:
        """How rows of bodies have turned where their elements were updated last; None where none turn. What is held does not.

        A body of which nothing is held turns as a whole: factors that turn node by node resist its translation, and would let
        its momentum balance to the tolerance of the solver only, where others balance it to rounding.
        """
        turned = zip(self.v_slices, (body.row_rotations() for body in self.bodies), strict=True)
        found = [(v, turn) for v, turn in turned if turn is not None]
        if not found:
            return None
        for v, turn in found:
            if self.prescribes and any_of(self.prescribed[v]):
                turn[self.prescribed[v].reshape(-1, 3).any(axis=1)] = np.eye(3)
            else:
                turn[:] = nearest_rotation(turn.sum(axis=0))
        which = tuple([v.start for v, _ in found])
        if which != self._turned[0]:
            self._turned = which, np.concatenate([np.arange(v.start, v.stop, 3) for v, _ in found])
        return Turns(self._turned[1], np.concatenate([turn for _, turn in found]))

    def _driven_force(self, k: int, v_hat: np.ndarray) -> np.ndarray:
        """Return A v of the own block of such a body, which is dense, (n_v,), N and N m."""
        own = v_hat[self.v_slices[k]]
        return np.asarray(self._block(k).reshape(len(own), -1) @ own)

    def lead(self, v_hat: np.ndarray) -> None:
        """Let drives of generalized coordinates exert what these ask for at v_hat, (n,), where :meth:`residual` was asked last.

        No residual says what the linearisation lacks on prescribed rows: where motions lead all of a body, its first one, which
        is off by order dt where it turns about no principal axis, would be all that there is.
        """
        for k in self._driven:
            v = self.v_slices[k]
            beyond = self._driven_lacks[v] - (self._driven_force(k, v_hat) - self._driven_b[v])
            self._beyond[v] = np.where(self.prescribed[v], beyond, 0.0)
            self.external[v] = self._external_there[v]

    def driven_lack(self, v_hat: np.ndarray) -> float:
        """Return what the linearisation lacks on prescribed rows at v_hat, (n,), where :meth:`residual` was asked last.

        It is the error of the forces of drives, in the norm of the residual and on its scale: those rows are no part of it.
        Generalized coordinates are left out, see :meth:`lead`.
        """
        if not self._rows.size:
            return 0.0
        lacking = self._residual - self._by_prescribed(v_hat)
        for k in self._driven:
            lacking[self.v_slices[k]] = 0.0
        lacking = lacking[self._rows] / np.sqrt(self.diagonal()[self._rows])
        return float(relative(norm(lacking), self.scale))

    def _by_prescribed(self, v_hat: np.ndarray) -> np.ndarray:
        """Return A v - b of the last linearisation on prescribed rows, (n,), as they were before they were prescribed."""
        out = np.zeros(self.n)
        columns = self._columns_of_entries[self._columns]
        # row p of the symmetric A is its column p
        np.add.at(out, columns, self._column_data * v_hat[self.A.indices[self._columns]])
        out[self._rows] -= self._reaction_b
        return out

    def reaction(self, v_hat: np.ndarray, contact_force: np.ndarray) -> np.ndarray:
        """Generalized force (n,) that the drives exert on prescribed rows, N or N m; zero elsewhere.

        It is that of the last linearisation, so that bodies of nodes balance to the tolerance of the solver, and where
        coordinates are generalized that at the answer, see :meth:`lead`.

        Parameters
        ----------
        v_hat : ndarray, (n,)
            Representative velocity of the step.
        contact_force : ndarray, (n,)
            Generalized contact force J^T lam including prescribed rows.
        """
        if not self._rows.size:
            return np.zeros(self.n)
        out = self._by_prescribed(v_hat)
        out[self._rows] += self._beyond[self._rows] - contact_force[self._rows]
        return out

    def joint_rows(self) -> Rows | None:
        """Rows of the joints for the contact problem, in the order of the couplings; None where nothing is joined by rows."""
        return self.joints.rows(self._given, self.prescribed, self._dt)

    def accept(self, v_hat: np.ndarray, row_forces: np.ndarray | None = None) -> None:
        """Let couplings and bodies take the solution of A v = b + J^T lam + G^T lam_r, for the forces that they report."""
        if row_forces is not None:
            self.joints.take(row_forces)
        for coupling, coupled in zip(self.couplings, self._coupled_rows, strict=True):
            coupling.accept(v_hat[coupled])
        for body, v in zip(self.bodies, self.v_slices, strict=True):
            body.accept(v_hat[v])

    def touch(self, settings: StepSettings, force: np.ndarray) -> None:
        """Tell bodies whose strain is damped whether contacts push on them, by the forces on rows of v (n,), N and N m."""
        if settings.strain_damping > 0.0:
            for body, v in zip(self.bodies, self.v_slices, strict=True):
                body.touch(any_of(force[v]))

    def mobility(self, old: State, new: State) -> Masses:
        """Inverse masses at the end of a step from one state to another, with nothing on prescribed rows."""
        return self._mobility.masses(old, new, self.prescribed)

    def carried(self, old: State, new: State, change: np.ndarray) -> np.ndarray:
        """Momentum that a change of velocity (n,) at the end of a step gives to prescribed rows, (n,), N s and N m s."""
        out = np.zeros(self.n)
        if not self.prescribes:
            return out
        for body, q, v in zip(self.bodies, self.q_slices, self.v_slices, strict=True):
            held = self.prescribed[v]
            if not (any_of(held) and any_of(change[v])):
                continue
            inertia = body.inertia(old.q[q], new.q[q])
            if not isinstance(inertia, sp.dia_matrix):
                out[v] = np.where(held, mass_times(inertia, change[v]), 0.0)
        return out

    def advance(self, state: State, v_hat: np.ndarray, settings: StepSettings) -> State:
        """State at the end of the step; prescribed rows have the velocity with which they end it."""
        new = State(np.empty(self.n_q), np.empty(self.n), state.t + settings.dt, v_hat.copy())
        for body, q, v in zip(self.bodies, self.q_slices, self.v_slices, strict=True):
            body.advance(state.q[q], state.v[v], v_hat[v], settings, new.q[q], new.v[v])
        new.v[self._rows] = self._ends
        self.calmed[:] = 0.0
        if settings.conserving and settings.strain_damping > 0.0:
            for body, q, v in zip(self.bodies, self.q_slices, self.v_slices, strict=True):
                body.calm(new.q[q], v_hat[v], new.v[v], settings, self.prescribed[v], self.calmed[v])
        for coupling in self.couplings:
            coupling.settle([new.q[self.q_slices[k]] for k, _ in coupling.rows])
        return new


def _fill_reach(body: Body, q: np.ndarray, out: np.ndarray) -> None:
    """Fill the sizes of the coordinates that each row of v changes, (n_v,), m; those of turns stay the 1 that they are."""
    if body.kind == "nodes":
        np.abs(q, out=out)
    elif body.kind == "links":
        np.abs(q.reshape(-1, 7)[:, :3], out=out.reshape(-1, 6)[:, :3])
    else:
        np.abs(q[:3], out=out[:3])
        if body.n_q == body.n_v + 1:  # no joint turns by a quaternion
            np.abs(q[7:], out=out[6:])
