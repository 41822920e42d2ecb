"""Answers that suit most bodies: a class derived from `BodyDefaults` writes only what is special about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import scipy.sparse as sp

from contact import GroupKind
from femsim.base.errors import InputError
from femsim.model.bodies.body import Body, BodyForces, BodyStep, LinkPlaces, StepSettings, StepStart
from femsim.model.bodies.deforming import Deforming
from femsim.model.bodies.outputs import OutputDefaults
from femsim.model.parts import Part


def translations(kind: GroupKind, rows: np.ndarray) -> np.ndarray:
    """Rows of v that translate a body, (n, 3): of nodes all, of links the first three of six, of a rigid body the first three."""
    if kind == "nodes":
        return rows.reshape(-1, 3)
    return rows.reshape(-1, 6)[:, :3] if kind == "links" else rows[None, :3]


class BodyDefaults(OutputDefaults):
    """Answers that suit a body without elements, joints or memory; a body overrides those that do not fit it."""

    name: str
    kind: GroupKind
    inverted_elements: int = 0
    _linear_matrix: tuple[np.ndarray, np.ndarray, sp.csc_matrix] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def reset(self) -> None:
        """Nothing is remembered."""

    def memory(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Nothing is remembered."""
        return {}

    def recall(self, memory: Mapping[str, np.ndarray], q: np.ndarray) -> None:
        """Nothing is remembered."""

    # ---- the step of a body whose forces are linear in v_hat: what `assemble` says holds at the end of the step too

    def moved(self: Body, q: np.ndarray, v_hat: np.ndarray, time: float) -> np.ndarray:
        """Where ``advance`` puts it in this time."""
        q_new, v_new = np.empty(self.n_q), np.empty(self.n_v)
        self.advance(q, v_hat, v_hat, StepSettings(time, 1.0, np.zeros(3)), q_new, v_new)
        return q_new

    def residual(
        self,
        moved: np.ndarray,
        start: StepStart,
        settings: StepSettings,
        v_hat: np.ndarray,
        external: np.ndarray,
        out: np.ndarray,
        inertia: np.ndarray,
    ) -> None:
        """Fill A v_hat - b of ``assemble``, which for such a body is all there is."""
        own = cast(Body, self)
        indptr, indices = own.pattern()
        self._linear = np.empty(len(indices))
        b = np.empty(own.n_v)
        own.assemble(start.q, start.v, start.t, settings, self._linear, b, external)
        A = self._kept_matrix(indptr, indices)
        A.data = self._linear
        out[:] = A @ v_hat - b
        inertia[:] = A @ (v_hat - start.v)

    def _kept_matrix(self, indptr: np.ndarray, indices: np.ndarray) -> sp.csc_matrix:
        """Matrix of a pattern, with any entries; kept, for scipy takes longer to make one than to multiply a small one."""
        kept = self._linear_matrix
        if kept is None or kept[0] is not indptr or kept[1] is not indices:
            n = len(indptr) - 1
            kept = self._linear_matrix = indptr, indices, sp.csc_matrix((np.zeros(len(indices)), indices, indptr), shape=(n, n))
        return kept[2]

    def tangent(self, settings: StepSettings, data: np.ndarray) -> None:
        """Fill A of ``assemble``."""
        data[:] = self._linear

    def positive_tangent(self: Body, settings: StepSettings, data: np.ndarray) -> bool:
        """Fill the tangent, which is positive definite."""
        self.tangent(settings, data)
        return False

    def whole_tangent(self, settings: StepSettings, data: np.ndarray) -> bool:
        """Fill nothing: the tangent is near enough."""
        return False

    def row_rotations(self) -> np.ndarray | None:
        """Return None: it does not turn, or its block of A does not turn with it."""
        return None

    def accept(self, v_hat: np.ndarray) -> None:
        """Nothing is kept."""

    def calm(
        self, q: np.ndarray, v_hat: np.ndarray, v: np.ndarray, settings: StepSettings, held: np.ndarray, push: np.ndarray
    ) -> None:
        """Nothing inside it moves."""

    def touch(self, touched: bool) -> None:
        """Nothing inside it moves."""

    def fly(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        external: np.ndarray,
        dt: float,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Leave what the solver found."""

    def inertia(self: Body, q: np.ndarray, q_new: np.ndarray) -> sp.csc_matrix:
        """Second derivative of the kinetic energy at q_new, within the pattern of A."""
        indptr, indices = self.pattern()
        columns = np.repeat(np.arange(self.n_v), np.diff(indptr))
        own = np.empty(self.n_v)
        for i in range(self.n_v):
            own[i] = self.kinetic_energy(q_new, np.eye(1, self.n_v, i)[0])
        entries = np.empty(len(indices))
        for k, (i, j) in enumerate(zip(indices, columns, strict=True)):
            both = np.zeros(self.n_v)
            both[i] += 1.0
            both[j] += 1.0
            entries[k] = self.kinetic_energy(q_new, both) - own[i] - own[j]
        return sp.csc_matrix((entries, indices, indptr), shape=(self.n_v, self.n_v))

    # ---- balance

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces by the layout of the rows; nothing is damped against the world."""
        outside, held, b = (translations(self.kind, rows) for rows in (step.external, step.drive, step.b))
        drive = step.drive[:6].copy() if step.driven else None
        return BodyForces(outside.sum(axis=0), held.sum(axis=0), drive, 0.0, float(np.abs(b).sum()))

    def acted(self) -> dict[str, np.ndarray]:
        """Nothing acts inside the body."""
        return {}

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Nothing acts inside the body."""

    def inside_out(self, q: np.ndarray) -> np.ndarray:
        """No elements."""
        return np.zeros(0, dtype=np.bool_)

    def damping_power(self, v_hat: np.ndarray) -> float:
        """No drive is damped."""
        return 0.0

    def elastic_energy(self, q: np.ndarray) -> float:
        """Nothing is elastic."""
        return 0.0

    def viscous_loss(self) -> float:
        """Nothing is viscous."""
        return 0.0

    is_held = False

    # ---- contact

    rigid = False

    def contact_points(self, q: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Positions of its nodes, for a body whose coordinates are those of nodes."""
        self._check_nodes("contact_points")
        return np.asarray(q.reshape(-1, 3)[nodes])

    def contact_rows(self, nodes: np.ndarray) -> np.ndarray:
        """Three rows a node."""
        self._check_nodes("contact_rows")
        return 3 * nodes

    def deforming(self, part: Part) -> Deforming | None:
        """No contact with other deforming bodies."""
        return None

    def reference(self: Body, q: np.ndarray, link: int) -> np.ndarray:
        """Centre of mass."""
        return self.centre_of_mass(q)

    def link_pose(self, q: np.ndarray, link: int) -> tuple[np.ndarray, np.ndarray]:
        """Pose of the world: its parts have none of their own."""
        return np.eye(3), np.zeros(3)

    def link_origin(self, q: np.ndarray, link: int) -> np.ndarray:
        """Origin of the world."""
        return np.zeros(3)

    def link_places(self: Body, q: np.ndarray, links: Sequence[int]) -> LinkPlaces:
        """One by one."""
        poses = [self.link_pose(q, link) for link in links]
        return LinkPlaces(
            np.array([rotation for rotation, _ in poses]),
            np.array([centre for _, centre in poses]),
            np.array([self.link_origin(q, link) for link in links]),
            np.array([self.reference(q, link) for link in links]),
            np.concatenate([self.link_screws(q, link) for link in links]),
        )

    def link_rows(self, link: int) -> np.ndarray:
        """No joint."""
        return np.zeros(0, dtype=np.int64)

    def rows_between(self, a: int, b: int) -> np.ndarray:
        """No joint."""
        return np.zeros(0, dtype=np.int64)

    def row_parents(self) -> tuple[int, ...] | None:
        """No tree."""
        return None

    def link_screws(self, q: np.ndarray, link: int) -> np.ndarray:
        """No joint."""
        return np.zeros((0, 6))

    def driven_rows(self) -> np.ndarray:
        """No joint follows a motion."""
        return np.zeros(0, dtype=np.int64)

    def driven_velocity(self, q: np.ndarray, t: float, dt: float) -> np.ndarray:
        """No joint follows a motion."""
        return np.zeros(0)

    def driven_rate(self, t: float, dt: float) -> np.ndarray:
        """No joint follows a motion."""
        return np.zeros(0)

    def end_driven(self, velocity: np.ndarray) -> None:
        """No joint follows a motion."""

    def limits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """No joint has hard limits."""
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros((0, 2)), none

    def _check_nodes(self, what: str) -> None:
        if self.kind != "nodes":
            raise InputError(
                f"body {self.name!r} of kind {self.kind!r} has contact, but no {what} of its own; the default is that of bodies "
                f"of kind 'nodes', so give its class a method {what}."
            )
