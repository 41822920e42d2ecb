"""What soft robots are driven by: pressure in closed chambers and tendons, as couplings that are implicit in A."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from femsim.base.errors import InputError
from femsim.base.rotations import cross_matrix
from femsim.model.bodies.body import StepSettings
from femsim.model.couplings import CouplingDefaults
from femsim.model.frames import Tetrahedra
from femsim.model.swings import Swing, elastic_tension, end_of_step, ends, moved
from meshes import boundary_triangles

#: Nodes of a chamber whose mean is the origin of its volume.
ANCHORS = 6


class Chamber(CouplingDefaults):
    """Pressure on a closed surface of a soft body, a follower load.

    With the triangles outward from the chamber, into the solid, its volume V = sum det [x0 x1 x2] / 6 is a cubic polynomial of
    the nodes, and the force of a pressure p is p g, g = dV/dx: exact in the place of the start of the step, without net force.
    The stiffness -p d2V/dx2 is symmetric but indefinite. V is the same from every origin; from the mean of a few nodes of the
    chamber each triangle has a part of it, and at the start of a step A gains theta dt times the positive semi-definite part of
    that, so A stays positive definite and knows no rigid translation. Of rest and equilibrium this changes nothing, since it
    multiplies the velocity; what is left out is explicit, and stable at every dt as long as the body withstands the pressure. A
    linearisation about another place has all of the stiffness, unless A must surely be positive definite.

    A given volume is that of a fluid that is pumped in, p = bulk (V_fluid - V) / V_rest, with its compressibility implicit in A.
    That joins all nodes of the chamber by a dense block, so it is for chambers of some hundred nodes at most. In an
    energy-momentum step p is the mean of both ends, so the fluid gives back what it took to third order in the step: its power is
    that of dV/dx in the middle. Where p would alternate it is nearer to that of the end, see :class:`femsim.model.swings.Swing`.

    Parameters
    ----------
    name : str
        Name in messages.
    body : Tetrahedra
        The body.
    index : int
        Its number in the system.
    triangles : ndarray of int, (k, 3)
        Nodes of the body, a closed surface, counter-clockwise seen from the solid.
    pressure : callable, optional
        ``pressure(t) -> Pa``.
    volume : callable, optional
        ``volume(t) -> m^3`` of the fluid, instead.
    bulk : float, Pa
        Bulk modulus of as much fluid as the chamber takes at rest.

    Attributes
    ----------
    pressure, volume : float, Pa and m^3
        Pressure that acted in the last step, and volume at its end.
    pumped : bool
        Whether the volume is given, not the pressure.
    """

    kind = "chamber"

    def __init__(
        self,
        name: str,
        body: Tetrahedra,
        index: int,
        triangles: np.ndarray,
        *,
        pressure: Callable[[float], float] | None = None,
        volume: Callable[[float], float] | None = None,
        bulk: float = 1e7,
    ) -> None:
        self.name, self._pressure, self._target = name, pressure, volume
        self.pumped = volume is not None
        nodes, numbers = np.unique(triangles, return_inverse=True)
        self.nodes, self._triangles = nodes, numbers.reshape(-1, 3)
        self.rows: tuple[tuple[int, np.ndarray], ...] = ((index, (3 * nodes[:, None] + np.arange(3)).ravel()),)
        self.forces: tuple[np.ndarray, ...] = (np.zeros(3),)
        self.power = 0.0
        x = body.rest[nodes]
        self._anchors = _spread_nodes(x, min(ANCHORS, len(nodes)))
        self._make_pattern()
        self._place(x)
        self.pressure = 0.0
        self._stiffness = bulk / self.volume if self.pumped else 0.0
        self._swing = Swing()
        #: whether A has the semi-definite part alone
        self._definite = True

    def reset(self) -> None:
        """Forget the last steps."""
        self._swing.reset()

    def _make_pattern(self) -> None:
        """Entries of the block: pairs of nodes of a triangle, of each node and each anchor, and of anchors."""
        k, a, tri = len(self.nodes), self._anchors, self._triangles
        everyone, one = np.repeat(np.arange(k), len(a)), np.tile(a, k)
        pairs = [
            (np.repeat(tri, 3, axis=1).ravel(), np.tile(tri, (1, 3)).ravel()),
            (everyone, one),
            (one, everyone),
            (np.repeat(a, len(a)), np.tile(a, len(a))),
        ]
        keys = k * np.concatenate([i for i, _ in pairs]) + np.concatenate([j for _, j in pairs])
        unique, self._slot = np.unique(keys, return_inverse=True)
        axis = np.arange(3)
        i, j = np.divmod(unique, k)
        rows = np.broadcast_to(3 * i[:, None, None] + axis[:, None], (len(unique), 3, 3)).ravel()
        columns = np.broadcast_to(3 * j[:, None, None] + axis, (len(unique), 3, 3)).ravel()
        self._flat = 3 * k * rows + columns
        self.entries = (rows, columns) if self._target is None else None

    def _volume_at(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Volume for positions (k, 3) of the nodes, corners (m, 3, 3) seen from the anchors, and products of these, (m, 3, 3)."""
        corners = (x - x[self._anchors].mean(axis=0))[self._triangles]
        across = np.cross(corners[:, [1, 2, 0]], corners[:, [2, 0, 1]])
        return float(np.einsum("ij,ij->", corners[:, 0], across[:, 0]) / 6.0), corners, across

    def _place(self, x: np.ndarray) -> None:
        """Volume and its derivative for positions (k, 3) of the nodes, seen from the anchors."""
        self.volume, self._corners, across = self._volume_at(x)
        gradient = np.empty_like(x)
        for axis in range(3):
            gradient[:, axis] = np.bincount(self._triangles.ravel(), across[:, :, axis].ravel() / 6.0, len(x))
        self.gradient = gradient.ravel()

    def stiffness(self, pressure: float, *, definite: bool = True) -> np.ndarray:
        """Positive semi-definite part of -p d2V/dx2, triangle by triangle, or all of it, as values of the pattern, (m,), N/m."""
        k, a, tri = len(self.nodes), self._anchors, self._triangles
        H = np.zeros((len(tri), 3, 3, 3, 3))  # triangle, corner, axis, corner, axis
        for i, j, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            block = -cross_matrix(self._corners[:, c]) / 6.0  # of x_i . (x_j x x_c) / 6
            H[:, i, :, j, :] = block
            H[:, j, :, i, :] = block.transpose(0, 2, 1)
        count = len(self._flat) // 9
        if not definite:  # of a closed surface what the anchors have cancels
            own = -pressure * H.transpose(0, 1, 3, 2, 4).reshape(-1, 9)
            return np.stack([np.bincount(self._slot[: len(own)], own[:, n], count) for n in range(9)], axis=1).ravel()
        values, vectors = np.linalg.eigh(-pressure * H.reshape(-1, 9, 9))
        vectors *= np.sqrt(np.maximum(values, 0.0))[:, None, :]
        S = (vectors @ vectors.transpose(0, 2, 1)).reshape(-1, 3, 3, 3, 3)
        own = np.ascontiguousarray(S.transpose(0, 1, 3, 2, 4)).reshape(-1, 3, 3)
        # what the corners have in common goes to the anchors: K = (1 - mean)^T S (1 - mean)
        total = np.zeros((k, 3, 3))
        np.add.at(total, tri.ravel(), S.sum(axis=3).reshape(-1, 3, 3))
        to_anchor = np.repeat(total, len(a), axis=0) / -len(a)
        among = np.broadcast_to(total.sum(axis=0) / len(a) ** 2, (len(a) ** 2, 3, 3))
        parts = np.concatenate([own, to_anchor, to_anchor.transpose(0, 2, 1), among]).reshape(-1, 9)
        return np.stack([np.bincount(self._slot, parts[:, n], count) for n in range(9)], axis=1).ravel()

    def prepare(self, q: Sequence[np.ndarray], t: float, v_hat: np.ndarray | None = None) -> None:
        """Read the positions; ``t`` is the time of the forces."""
        x = q[0].reshape(-1, 3)[self.nodes]
        self._place(x)
        self._known_flow, self._last, self._time = 0.0, self.volume, t
        if v_hat is None:
            self._first, self._start, self._begins = self.volume, x, True
            return
        self._known_flow = float(self.gradient @ v_hat)
        if self._settings.conserving and self._target is not None:
            self._last = self._volume_at(end_of_step(x, v_hat, self._settings))[0]
        self._press()

    def _press(self) -> None:
        """Find the pressure of the step where it was placed last."""
        t = self._time
        if self._target is None:
            assert self._pressure is not None
            self._now = _finite(self.name, "pressure", self._pressure(t), t, "Pa")
            return
        begin, end = ends(t, self._settings)
        lacks = self._fluid(end) - self._last
        if self._settings.conserving:
            first = self._fluid(begin) - self._first
            lacks = 0.5 * (first + lacks) + self._swing.damping * (lacks - first)
        self._now = self._stiffness * lacks

    def _fluid(self, t: float) -> float:
        """Volume of the fluid at a time, m^3."""
        assert self._target is not None
        return _finite(self.name, "volume", self._target(t), t, "m^3")

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Fill a semi-definite part of the follower stiffness, that of the fluid, and the force."""
        self._fill(settings, block, b, definite=True)

    def tangent(self, settings: StepSettings, block: np.ndarray, b: np.ndarray, *, positive: bool) -> bool:
        """Fill the same, with all of the follower stiffness unless ``positive``."""
        other = positive and not self._definite
        self._fill(settings, block, b, definite=positive)
        return other

    def _fill(self, settings: StepSettings, block: np.ndarray, b: np.ndarray, *, definite: bool) -> None:
        self._settings, implicit, self._definite = settings, settings.theta * settings.dt, definite
        if self._begins:
            if self.pumped:
                self._swing.begin(self._fluid(ends(self._time, settings)[0]) - self._first, settings)
            self._press()
            self._begins = False
        values = implicit * self.stiffness(self._now, definite=definite)
        if self.entries is None:
            np.multiply.outer(self.gradient, self._stiffness_factor() * self.gradient, out=block)
            block.ravel()[self._flat] += values
        else:
            block[:] = values
        np.multiply(self._now, self.gradient, out=b)

    def _stiffness_factor(self) -> float:
        """Pressure that a flow takes within the step, Pa s/m^3."""
        return self._settings.theta * self._settings.dt * (1.0 + 2.0 * self._swing.damping) * self._stiffness

    def exerted(self) -> np.ndarray:
        """Force of the pressure, (m,), N."""
        return np.asarray(self._now * self.gradient)

    def accept(self, v_hat: np.ndarray) -> None:
        """Take the pressure of the step and its power."""
        flow = float(self.gradient @ v_hat)
        self.pressure = self._now - self._stiffness_factor() * (flow - self._known_flow)
        if (
            not self._settings.conserving
        ):  # where the chamber turns, dV/dx of one place takes the chord of its way for a change of V
            flow = (self._volume_at(moved(self._start, v_hat, self._settings.dt))[0] - self._first) / self._settings.dt
        self.power = self.pressure * flow

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Take the volume at the end of the step."""
        self._place(q[0].reshape(-1, 3)[self.nodes])
        self._swing.end()

    def memory(self) -> dict[str, np.ndarray]:
        """How the fluid was pressed in the last steps."""
        return self._swing.memory()

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Go back to there."""
        self._swing.recall(memory)

    def reading(self) -> tuple[float, float]:
        """Pressure of the last step (Pa) and volume at its end (m^3)."""
        return self.pressure, self.volume

    def acted(self) -> dict[str, np.ndarray]:
        """Also the pressure, (1,), Pa."""
        return super().acted() | {"pressure": np.array([self.pressure])}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted."""
        super().take_acted(acted)
        self.pressure = float(acted["pressure"][0])


class Tendon(CouplingDefaults):
    """Cable without mass through points of a soft body, on which it slides without friction: one tension T in all of it.

    Its length L is the sum of the distances of successive points, its force -T dL/dx, without net force or moment on the body.
    A gains theta dt T d2L/dx2, which is positive semi-definite since each segment only turns, and for an elastic cable its
    stiffness theta dt k (dL/dx)(dL/dx)^T: all of the derivative of the force.

    In an energy-momentum step dL/dx is such that its product with the way of the nodes is the change of L, and T that change of
    the energy k/2 <L - free>^2 over it: a cable that becomes slack or taut gives back what it took, at any step. Where T would
    alternate it is nearer to that of the end, see :class:`femsim.model.swings.Swing`.

    Parameters
    ----------
    name : str
        Name in messages.
    index : int
        Number of the body in the system.
    nodes : ndarray of int, (n, 4)
        Nodes of the tetrahedron that each point lies in.
    weights : ndarray, (n, 4)
        Their weights; they sum up to 1.
    rest : ndarray, (m, 3), m
        Nodes of the body where the cable is put in, without tension.
    force : callable, optional
        ``force(t) -> N``, not negative.
    pull : callable, optional
        ``pull(t) -> m`` by which the free cable is shorter than there; where that leaves it slack, T is 0.
    stiffness : float, N/m
        Force per elongation of the cable, with ``pull``.

    Attributes
    ----------
    force, length : float, N and m
        Tension that acted in the last step, and length at its end.
    """

    kind = "tendon"

    def __init__(
        self,
        name: str,
        index: int,
        nodes: np.ndarray,
        weights: np.ndarray,
        rest: np.ndarray,
        *,
        force: Callable[[float], float] | None = None,
        pull: Callable[[float], float] | None = None,
        stiffness: float = 1e4,
    ) -> None:
        self.name, self._given_force, self._pull = name, force, pull
        self.nodes, numbers = np.unique(nodes, return_inverse=True)
        weight_of = np.zeros((len(nodes), len(self.nodes)))
        np.add.at(weight_of, (np.repeat(np.arange(len(nodes)), 4), numbers.ravel()), weights.ravel())
        self._segments = np.diff(weight_of, axis=0)  # of each segment, its vector by the nodes
        self.rows: tuple[tuple[int, np.ndarray], ...] = ((index, (3 * self.nodes[:, None] + np.arange(3)).ravel()),)
        self.entries: tuple[np.ndarray, np.ndarray] | None = None
        self.forces: tuple[np.ndarray, ...] = (np.zeros(3),)
        self.power = 0.0
        self._place(rest[self.nodes])
        self._rest_length = self.length
        self._stiffness = stiffness if pull is not None else 0.0
        self.force = 0.0
        self._swing = Swing()

    def reset(self) -> None:
        """Forget the last steps."""
        self._swing.reset()

    def _length_at(self, x: np.ndarray) -> float:
        """Length for positions (k, 3) of the nodes, m."""
        return float(np.linalg.norm(self._segments @ x, axis=1).sum())

    def _place(self, x: np.ndarray, end: np.ndarray | None = None) -> None:
        """Length and directions for positions (k, 3) of the nodes; with those at the ``end`` of the step that of its middle."""
        along = self._segments @ x
        self._lengths = np.linalg.norm(along, axis=1)
        self.length = float(self._lengths.sum())
        if end is None:
            self._first, self._last = self._lengths, self._lengths
        else:
            self._last = np.linalg.norm(self._segments @ end, axis=1)
            self._lengths = 0.5 * (self._first + self._last)
        self._directions = along / self._lengths[:, None]
        self.gradient = (self._segments.T @ self._directions).ravel()

    def prepare(self, q: Sequence[np.ndarray], t: float, v_hat: np.ndarray | None = None) -> None:
        """Read the positions; ``t`` is the time of the forces."""
        x = q[0].reshape(-1, 3)[self.nodes]
        self._time, self._begins = t, v_hat is None
        if v_hat is None:
            self._start = x
            self._place(x)
            self._known_rate = 0.0
            return
        self._place(x, end_of_step(x, v_hat, self._settings) if self._settings.conserving else None)
        self._known_rate = float(self.gradient @ v_hat)
        self._stretch()

    def _stretch(self) -> None:
        """Find the tension of the step where it was placed last."""
        t = self._time
        if self._pull is not None:
            first, last = self._elongations()
            self._now, self._slope = elastic_tension(self._stiffness, first, last, self._swing.damping)
        else:
            assert self._given_force is not None
            self._now, self._slope = _finite(self.name, "force", self._given_force(t), t, "N"), 0.0
            if self._now < 0.0:
                raise InputError(f"{self.name}: force is {self._now:g} N at {t:g} s; a tendon pulls, so it must not be negative.")

    def _elongations(self) -> tuple[float, float]:
        """How much longer than free it is at both ends of an energy-momentum step, else where it acts, m."""
        begin, end = ends(self._time, self._settings)
        return float(self._first.sum()) - self._free(begin), float(self._last.sum()) - self._free(end)

    def _free(self, t: float) -> float:
        """Length of the free cable at a time, m."""
        assert self._pull is not None
        return self._rest_length - _finite(self.name, "pull", self._pull(t), t, "m")

    def assemble(self, settings: StepSettings, block: np.ndarray, b: np.ndarray) -> None:
        """Fill the derivative of the force, and the force."""
        self._settings = settings
        if self._begins:
            if self._pull is not None:
                self._swing.begin(max(self._elongations()[0], 0.0), settings)
            self._stretch()
            self._begins = False
        d, m = self._directions, len(b)
        across = (np.eye(3) - d[:, :, None] * d[:, None, :]) * (self._now / self._lengths)[:, None, None]
        turning = np.einsum("si,sab,sj->iajb", self._segments, across, self._segments, optimize=True).reshape(m, m)
        np.multiply(settings.theta * settings.dt, turning + self._slope * np.outer(self.gradient, self.gradient), out=block)
        np.multiply(-self._now, self.gradient, out=b)

    def exerted(self) -> np.ndarray:
        """Force of the tension, (m,), N."""
        return np.asarray(-self._now * self.gradient)

    def accept(self, v_hat: np.ndarray) -> None:
        """Take the tension of the step and its power."""
        rate = float(self.gradient @ v_hat)
        implicit = self._settings.theta * self._settings.dt
        self.force = self._now + implicit * self._slope * (rate - self._known_rate)
        if not self._settings.conserving:  # as of a chamber
            before, after = (self._length_at(x) for x in (self._start, moved(self._start, v_hat, self._settings.dt)))
            rate = (after - before) / self._settings.dt
        self.power = -self.force * rate

    def settle(self, q: Sequence[np.ndarray]) -> None:
        """Take the length at the end of the step."""
        self._place(q[0].reshape(-1, 3)[self.nodes])
        self._swing.end()

    def memory(self) -> dict[str, np.ndarray]:
        """How the cable was stretched in the last steps."""
        return self._swing.memory()

    def recall(self, memory: Mapping[str, np.ndarray]) -> None:
        """Go back to there."""
        self._swing.recall(memory)

    def reading(self) -> tuple[float, float]:
        """Tension of the last step (N) and length at its end (m)."""
        return self.force, self.length

    def acted(self) -> dict[str, np.ndarray]:
        """Also the tension, (1,), N."""
        return super().acted() | {"force": np.array([self.force])}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer that these acted."""
        super().take_acted(acted)
        self.force = float(acted["force"][0])


def route(body: Tetrahedra, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the points of a tendon in a body.

    Parameters
    ----------
    body : Tetrahedra
        The body, where it starts.
    points : ndarray, (n, 3), m, or (n,) of int
        Points in the order of the tendon, or nodes.

    Returns
    -------
    nodes : ndarray of int, (n, 4)
        Nodes of the tetrahedron of each.
    weights : ndarray, (n, 4)
        Their weights.

    Raises
    ------
    InputError
        Fewer than two points, a point outside the body, a node that does not exist, or two successive points in one place.
    """
    what = f"tendon of {body.name}"
    if points.ndim == 1 and points.dtype.kind in "iu" and len(points):
        if not 0 <= points.min() <= points.max() < body.n_nodes:
            raise InputError(f"{what}: points name nodes {points.min()} to {points.max()}; allowed are 0 to {body.n_nodes - 1}.")
        points = body.rest[points]
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 2 or not np.isfinite(points).all():
        raise InputError(f"{what}: points have shape {points.shape}; allowed are at least two, (n, 3) finite numbers in m.")
    near = np.flatnonzero(np.linalg.norm(np.diff(points, axis=0), axis=1) < 1e-9 * np.ptp(body.rest, axis=0).max())
    if len(near):
        raise InputError(f"{what}: points {near[0]} and {near[0] + 1} are in one place, {points[near[0]]} m; leave one out.")
    corners = body.rest[body.tets]
    inverse = np.linalg.inv((corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1))
    nodes, weights = np.empty((len(points), 4), dtype=np.int64), np.empty((len(points), 4))
    for k, point in enumerate(points):
        inner = np.einsum("eij,ej->ei", inverse, point - corners[:, 0])
        bary = np.column_stack([1.0 - inner.sum(axis=1), inner])
        best = int(np.argmax(bary.min(axis=1)))
        if bary[best].min() < -1e-6:
            far = np.linalg.norm(body.rest - point, axis=1)
            raise InputError(
                f"{what}: point {k}, {point} m, lies outside the body, {1e3 * far.min():.4g} mm from its node {far.argmin()} at "
                f"{body.rest[far.argmin()]} m; a tendon runs through points inside or on the surface, in the world at the start."
            )
        nodes[k], weights[k] = body.tets[best], np.maximum(bary[best], 0.0) / np.maximum(bary[best], 0.0).sum()
    return nodes, weights


def find_chamber(body: Tetrahedra, where: Callable[[np.ndarray], np.ndarray] | int | np.ndarray | None) -> np.ndarray:
    """Find the surface of a closed chamber in a body.

    Parameters
    ----------
    body : Tetrahedra
        The body, where it starts.
    where : callable, int, (k, 3) array of int or None
        ``where(points (n, 3) m) -> (n,) bool`` holds for all nodes of the chamber and of no other; a number of the chamber, by
        volume from the largest; triangles of node numbers; or None for the only one.

    Returns
    -------
    ndarray of int, (k, 3)
        Triangles, counter-clockwise seen from the solid: their volume is positive.

    Raises
    ------
    InputError
        No closed chamber, no such one or several; triangles that are no closed surface, or whose nodes do not exist.
    """
    what = f"chamber of {body.name}"
    if where is not None and not callable(where) and not isinstance(where, int | np.integer):
        return _given_surface(what, body, np.asarray(where))
    triangles = boundary_triangles(body.tets)[:, ::-1]  # seen from the solid
    label = _components(triangles, body.n_nodes)
    found = sorted(
        (
            (size, own)
            for own in (triangles[label == k] for k in np.unique(label))
            if (size := enclosed_volume(body.rest, own)) > 0
        ),
        key=lambda pair: -pair[0],
    )
    if not found:
        raise InputError(
            f"{what}: its surface encloses no chamber, only its outside (a chamber with a hole in its wall is part of that); "
            "close the chamber in the mesh."
        )
    sizes = ", ".join(f"{1e9 * volume:.4g}" for volume, _ in found)
    if callable(where):
        mask = np.asarray(where(body.rest))
        if mask.shape != (body.n_nodes,) or mask.dtype != np.bool_:
            raise InputError(f"{what}: where gave shape {mask.shape} and type {mask.dtype}; allowed is one bool a node.")
        chosen = [own for _, own in found if mask[own].all()]
        if len(chosen) != 1:
            raise InputError(f"{what}: where holds for all nodes of {len(chosen)} of {len(found)} chambers; it must for one.")
        return chosen[0]
    if where is None and len(found) > 1:
        raise InputError(f"{what}: there are {len(found)}, of {sizes} mm^3; choose one by its number, from 0.")
    number = int(where or 0)
    if not 0 <= number < len(found):
        raise InputError(f"{what}: number {number} does not exist; there are {len(found)}, of {sizes} mm^3, numbered from 0.")
    return found[number][1]


def _given_surface(what: str, body: Tetrahedra, triangles: np.ndarray) -> np.ndarray:
    """Check triangles of node numbers and turn them to be seen from the solid."""
    if triangles.ndim != 2 or triangles.shape[1] != 3 or not len(triangles) or triangles.dtype.kind not in "iu":
        raise InputError(f"{what}: the surface has shape {triangles.shape} and type {triangles.dtype}; allowed is int, (k, 3).")
    if not 0 <= triangles.min() <= triangles.max() < body.n_nodes:
        raise InputError(f"{what}: the surface names node {triangles.max()}; allowed are 0 to {body.n_nodes - 1}.")
    edges = triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    counts = np.unique(np.sort(edges, axis=1), axis=0, return_counts=True)[1]
    once, many = int((counts == 1).sum()), int((counts > 2).sum())
    if once or many:
        raise InputError(
            f"{what}: the surface is not closed: {once} of its edges belong to one triangle and {many} to more than two; every "
            "edge must belong to two."
        )
    if len(np.unique(edges, axis=0)) < len(edges):
        raise InputError(f"{what}: neighbouring triangles of the surface run in opposite senses; make all run alike.")
    triangles = _through_middles(triangles, body)
    return np.asarray(triangles if enclosed_volume(body.rest, triangles) > 0 else triangles[:, ::-1], dtype=np.int64)


def _through_middles(triangles: np.ndarray, body: Tetrahedra) -> np.ndarray:
    """Divide triangles at the nodes in the middle of their edges, which a mesh of linear elements does not have.

    Pressure on the corners of quadratic elements alone would dent their faces.
    """
    middle = {(int(a), int(b)): int(m) for m, a, b in body.middles}
    if not middle:
        return triangles
    divided: list[list[int]] = []
    for corners in triangles.tolist():
        ring: list[int] = []  # the corners, with the middles between them
        for a, b in zip(corners, corners[1:] + corners[:1], strict=True):
            ring += [a, middle.get((min(a, b), max(a, b)), -1)]
        for k in (0, 2, 4):  # cut off each corner between two middles
            if ring[k - 1] >= 0 and ring[k + 1] >= 0:
                divided.append([ring[k - 1], ring[k], ring[k + 1]])
                ring[k] = -1
        rest = [node for node in ring if node >= 0]
        divided += [[rest[0], rest[i], rest[i + 1]] for i in range(1, len(rest) - 1)]
    return np.array(divided)


def enclosed_volume(points: np.ndarray, triangles: np.ndarray) -> float:
    """Volume that a closed surface encloses, m^3; negative where its triangles are seen from inside."""
    corners = (points - points[triangles].mean(axis=(0, 1)))[triangles]
    return float(np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0)


def _components(triangles: np.ndarray, n: int) -> np.ndarray:
    """Return the number of the connected surface of each triangle, (k,); triangles are neighbours by an edge."""
    edges = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    _, edge = np.unique(edges[:, 0] * n + edges[:, 1], return_inverse=True)
    owner = np.repeat(np.arange(len(triangles)), 3)
    incidence = sp.csr_matrix((np.ones(len(edge)), (owner, edge)))
    return np.asarray(connected_components(incidence @ incidence.T, directed=False)[1])


def _spread_nodes(x: np.ndarray, count: int) -> np.ndarray:
    """Numbers of nodes that lie far from each other, the first far from the mean, (count,)."""
    chosen = [int(np.argmax(np.linalg.norm(x - x.mean(axis=0), axis=1)))]
    distance = np.linalg.norm(x - x[chosen[0]], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(x - x[chosen[-1]], axis=1))
    return np.array(chosen)


def _finite(name: str, what: str, value: float, t: float, unit: str) -> float:
    """Value of a function of time, InputError where it is no finite number."""
    if not (isinstance(value, int | float | np.floating | np.integer) and np.isfinite(value)):
        raise InputError(f"{name}: {what} is {value!r} {unit} at {t:g} s; allowed are finite numbers.")
    return float(value)
