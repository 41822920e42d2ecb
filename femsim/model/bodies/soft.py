"""Soft bodies: co-rotational linear tetrahedra with lumped mass and Rayleigh damping."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from contact import GroupKind
from femsim.base.errors import InputError
from femsim.model.bodies import soft_kernels as kernels
from femsim.model.bodies.body import BodyDefaults, BodyForces, BodyStep, StepSettings
from femsim.model.bodies.deforming import Deforming, surface
from femsim.model.bodies.outputs import Drawing, DrawnFrame, Marker, describe_elastic, point_fields
from femsim.model.bodies.soft_output import PressedSurface, corotational_fields
from femsim.model.frames import PatchFrame, surface_patch
from femsim.model.parts import Part
from materials import Elastic

Load = Callable[[float], np.ndarray]


def block_pattern(keys: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """CSC pattern of a matrix of 3 x 3 blocks.

    Parameters
    ----------
    keys : ndarray of int64
        column n + row of the blocks, in any order, repeated or not.
    n : int
        Block rows.

    Returns
    -------
    indptr, indices : ndarray of int64
        The pattern, (3 n + 1,) and sorted rows.
    unique : ndarray of int64
        The keys, sorted, each once.
    place : ndarray of int64
        Where the block of each unique key begins in its first scalar column.
    """
    unique = np.unique(keys)
    column, row = unique // n, unique % n
    block_count = np.bincount(column, minlength=n)
    block_start = np.concatenate([[0], np.cumsum(block_count)])
    # CSC of scalars: the three columns of a block column have the same rows
    indptr = np.concatenate([[0], np.cumsum(np.repeat(3 * block_count, 3))]).astype(np.int64)
    rows_of_column = (3 * row[:, None] + np.arange(3)).ravel()
    indices = np.concatenate([np.tile(rows_of_column[3 * block_start[c] : 3 * block_start[c + 1]], 3) for c in range(n)]).astype(
        np.int64
    )
    place = indptr[3 * column] + 3 * (np.arange(len(unique)) - block_start[column])
    return indptr, indices, unique, place


class SoftBody(BodyDefaults):
    """Deformable body of linear tetrahedra with the co-rotational law; others are in `femsim.model.bodies.hyperelastic`.

    Parameters
    ----------
    name : str
        Name in outputs.
    points : ndarray, (n, 3), m
        Rest positions, already placed in the world.
    tets : ndarray, (m, 4)
        Node numbers, positive volume.
    elastic : Elastic
        Material (SI).
    velocity : ndarray, (3,), m/s
        Initial velocity of all nodes.
    load : callable, optional
        ``load(t) -> (n, 3)`` nodal forces in N, or ``(3,)`` total force spread by mass.
    """

    kind: GroupKind = "nodes"

    def __init__(
        self,
        name: str,
        points: np.ndarray,
        tets: np.ndarray,
        elastic: Elastic,
        *,
        velocity: np.ndarray,
        load: Load | None = None,
    ) -> None:
        self.name = name
        self.rest = np.ascontiguousarray(points, dtype=np.float64)
        self.tets = np.ascontiguousarray(tets, dtype=np.int64)
        self.elastic = elastic
        self.load = load
        self._velocity = np.asarray(velocity, dtype=np.float64)
        n = self.n_nodes = len(self.rest)
        self.n_q = self.n_v = 3 * n
        self.node_mass = np.empty(n)
        self.internal_force = np.empty((n, 3))
        self.inverted_elements = 0
        self._energy = 0.0
        self._updated_at = np.full(self.n_q, np.nan)
        self._make_elements()
        self._row_mass = np.repeat(self.node_mass, 3)
        self.reset()

    def _make_elements(self) -> None:
        """Constants and state of the elements, masses of the nodes, and the pattern."""
        n, m, elastic = self.n_nodes, len(self.tets), self.elastic
        edges = self.rest[self.tets[:, 1:]] - self.rest[self.tets[:, :1]]  # rows x_a - x_0
        inverse = np.linalg.inv(edges)
        volume = np.linalg.det(edges) / 6.0
        self.node_mass[:] = np.bincount(self.tets.ravel(), weights=np.repeat(elastic.density * volume / 4.0, 4), minlength=n)
        # for the kernels: whole chunks of elements, see soft_kernels
        chunks, padding = -(-m // kernels.CHUNK), -m % kernels.CHUNK
        gradient = np.pad(inverse.transpose(0, 2, 1).reshape(m, 9), ((0, padding), (0, 0)))  # corners 1 to 3
        self._gradient = gradient.reshape(chunks, kernels.CHUNK, 9).transpose(0, 2, 1).ravel()
        self._volume = np.pad(volume, (0, padding))
        self._lame_lambda = np.full(m + padding, elastic.lame_lambda)
        self._lame_mu = np.full(m + padding, elastic.lame_mu)
        self._ratio = np.empty(m + padding)
        self._quaternion = np.empty(chunks * 4 * kernels.CHUNK)
        self._scratch = np.zeros(kernels.SCRATCH)
        self._rotated = np.empty((m, 4, 3))
        self._diagonal = np.empty((n, 6))
        self._strain = np.zeros((m, 6))
        self._make_pattern()

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        return float(self.node_mass.sum())

    @property
    def elements(self) -> np.ndarray:
        """Nodes of the finite elements, here the tetrahedra ``tets``."""
        return self.tets

    @property
    def lame_lambda(self) -> np.ndarray:
        """First Lame constant of each element, (m,), Pa; a view."""
        return self._lame_lambda[: len(self.tets)]

    @property
    def lame_mu(self) -> np.ndarray:
        """Second Lame constant of each element, (m,), Pa; a view."""
        return self._lame_mu[: len(self.tets)]

    @property
    def strain(self) -> np.ndarray:
        """Co-rotated strain sym(R^T F) - I of each tetrahedron at the last update, (m, 6): xx, yy, zz, xy, yz, zx; a view."""
        return self._strain

    def _make_pattern(self) -> None:
        """CSC pattern, and for each block (i, j), i < j: its place, that of its mirror, and the corners that make it."""
        n, m = self.n_nodes, len(self.tets)
        pair_a, pair_b = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
        i, j = self.tets[:, pair_a].ravel(), self.tets[:, pair_b].ravel()
        keys = j * n + i  # column-major block order
        self._indptr, self._indices, unique, place = block_pattern(keys, n)
        column, row = unique // n, unique % n
        upper = row < column
        upper_keys = unique[upper]
        use = i < j
        slot = np.searchsorted(upper_keys, keys[use])
        order = np.argsort(slot, kind="stable")
        first = np.repeat(4 * np.arange(m), 16)
        # half the size of int64, and corners without a sign: less to read in every step
        self._column_ptr = np.concatenate([[0], np.cumsum(np.bincount(column[upper], minlength=n))]).astype(np.int32)
        self._column_start = self._indptr[:-1:3].astype(np.int32)
        self._stride = np.diff(self._indptr)[::3].astype(np.int32)
        self._block_row = row[upper].astype(np.int32)
        self._mirror = place[np.searchsorted(unique, row[upper] * n + column[upper])].astype(np.int32)
        self._block_ptr = np.concatenate([[0], np.cumsum(np.bincount(slot, minlength=len(upper_keys)))]).astype(np.int32)
        self._corner_row = (first + np.tile(pair_a, m))[use][order].astype(np.uint32)
        self._corner_column = (first + np.tile(pair_b, m))[use][order].astype(np.uint32)

    def carry(self, mass: np.ndarray) -> None:
        """Hang further mass on the nodes, (n,) kg: weight and inertia without stiffness."""
        self.node_mass = self.node_mass + mass
        self._row_mass = np.repeat(self.node_mass, 3)

    def reset(self) -> None:
        """Forget the last positions: the search for rotations starts as in a new body, so a second run gives the same bits."""
        self._quaternion.reshape(-1, 4, kernels.CHUNK)[:] = np.array([1.0, 0.0, 0.0, 0.0])[:, None]
        self._started_from = self._quaternion.copy()
        self._updated_at[:] = np.nan

    def memory(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Where the search for the rotations at q starts, or has started."""
        known = np.array_equal(q, self._updated_at)
        return {"rotations": self._started_from if known else self._quaternion.copy()}

    def recall(self, memory: Mapping[str, np.ndarray], q: np.ndarray) -> None:
        """Make the update at q again: all that follows from it has the same bits as then."""
        self._quaternion[:] = memory["rotations"]
        self._updated_at[:] = np.nan
        self.update_elements(q)

    def initial_q(self) -> np.ndarray:
        """Node positions at the start."""
        return self.rest.ravel().copy()

    def initial_v(self) -> np.ndarray:
        """Node velocities at the start."""
        return np.tile(self._velocity, self.n_nodes)

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """CSC pattern of the body's block of A."""
        return self._indptr, self._indices

    def update_elements(self, q: np.ndarray) -> None:
        """Update rotations, forces and energy for positions q; also counts inverted elements. No work when q is the last one."""
        if np.array_equal(q, self._updated_at):
            return
        self._started_from = self._quaternion.copy()
        self._updated_at[:] = q
        np.divide(self._lame_lambda, self._lame_mu, out=self._ratio)
        self._energy, self.inverted_elements = kernels.element_forces(
            q.reshape(-1, 3), self.tets, self._gradient, self._volume, self._lame_lambda, self._lame_mu,
            self._quaternion, self._scratch, self._rotated, self.internal_force, self._strain,
        )  # fmt: skip

    def _fill_matrix(self, stiffness_factor: float, mass_factor: float, data: np.ndarray) -> None:
        """Fill the CSC entries of mass_factor M + stiffness_factor K at the last update."""
        kernels.stiffness_blocks(
            self._column_ptr, self._column_start, self._stride, self._block_row, self._mirror, self._block_ptr,
            self._corner_row, self._corner_column, self._rotated.reshape(-1, 3), self._ratio, self.node_mass,
            stiffness_factor, mass_factor, self._diagonal, data,
        )  # fmt: skip

    def assemble(
        self,
        q: np.ndarray,
        v: np.ndarray,
        t: float,
        settings: StepSettings,
        data: np.ndarray,
        b: np.ndarray,
        external: np.ndarray,
    ) -> None:
        """Fill A = M/(theta dt) + alpha M + (theta dt + beta) K and b = M v/(theta dt) - f + f_ext (eq. 9 for theta = 1/2)."""
        implicit = settings.theta * settings.dt
        self.update_elements(q)
        self._fill_matrix(implicit + self.elastic.rayleigh_beta, 1.0 / implicit + self.elastic.rayleigh_alpha, data)
        force = external.reshape(-1, 3)
        np.multiply(self.node_mass[:, None], settings.gravity, out=force)
        if self.load is not None:
            load = np.asarray(self.load(t + settings.dt), dtype=np.float64)
            force += load if load.ndim == 2 else (self.node_mass / self.mass)[:, None] * load
        np.multiply(self._row_mass, v, out=b)
        b /= implicit
        b += external
        b -= self.internal_force.ravel()

    def advance(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        settings: StepSettings,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Fill q + dt v_hat and v + (v_hat - v)/theta."""
        np.multiply(settings.dt, v_hat, out=q_new)
        q_new += q
        np.subtract(v_hat, v, out=v_new)
        v_new /= settings.theta
        v_new += v

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Linear momentum, kg m/s."""
        return np.asarray(self.node_mass @ v.reshape(-1, 3))

    def centre_of_mass(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass, (3,), m."""
        return np.asarray(self.node_mass @ q.reshape(-1, 3) / self.mass)

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic energy, J."""
        return float(0.5 * np.dot(self._row_mass * v, v))

    def elastic_energy(self, q: np.ndarray) -> float:
        """Elastic energy of the co-rotated strain, J."""
        self.update_elements(q)
        return self._energy

    # ---- balance

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step; mass-proportional damping acts against the world."""
        outside = step.external.reshape(-1, 3).sum(axis=0)
        outside -= self.elastic.rayleigh_alpha * self.momentum(step.q, step.v_hat)
        return BodyForces(outside, step.drive.reshape(-1, 3).sum(axis=0), None, 0.0, float(np.abs(step.b).sum()))

    def inside_out(self, q: np.ndarray) -> np.ndarray:
        """Tetrahedra that are inverted beyond recovery, (m,) bool: their volume is that at rest with the opposite sign, or more.

        The elastic laws push an inverted element back (that of Saint Venant and Kirchhoff does not always), so it may be
        inverted for a moment; only a step that went too far makes its mirror image, or more, of it.
        """

        def volume(x: np.ndarray) -> np.ndarray:
            return np.asarray(np.linalg.det(x[self.tets[:, 1:]] - x[self.tets[:, :1]]))

        return np.asarray(volume(q.reshape(-1, 3)) <= -volume(self.rest))

    # ---- contact

    def deforming(self, part: Part) -> Deforming | None:
        """Its surface, where the part has triangles."""
        return surface(self.rest, self.tets, part.nodes, part.triangles) if len(part.triangles) else None

    # ---- outputs

    what = "soft body"
    advice = "is a soft body; drive rigid bodies and grippers, or hold nodes of it by hold."

    def tetrahedra(self) -> SoftBody:
        """Its own nodes and tetrahedra."""
        return self

    @cached_property
    def _surface(self) -> PressedSurface:
        return PressedSurface(self.tets, self.n_nodes)

    def pressed_surface(self) -> PressedSurface:
        """Surface of its tetrahedra."""
        return self._surface

    def drawing(self, link: int) -> Drawing:
        """Tetrahedra at rest."""
        return Drawing("tetra", self.rest, self.tets)

    def frame(self, q: np.ndarray, v: np.ndarray, force: np.ndarray, names: Collection[str]) -> DrawnFrame:
        """Nodes with their fields, tetrahedra with those of elements."""
        x, force = q.reshape(-1, 3), force.reshape(-1, 3)
        fields = point_fields(x, self.rest, v.reshape(-1, 3), force, names)
        if "contact_pressure" in names:
            fields["contact_pressure"] = self._surface.pressure(x, force)
        return DrawnFrame(x, fields, self.element_fields(q, names))

    def element_fields(self, q: np.ndarray, names: Collection[str]) -> dict[str, np.ndarray]:
        """Fields of its elements at positions q (3 n,), m, as in :func:`femsim.model.bodies.soft_output.corotational_fields`."""
        self.update_elements(q)
        return corotational_fields(self.strain, self.lame_lambda, self.lame_mu, self._quaternion, names)

    def marker(self, what: str, link: int, node: int | None, at: np.ndarray | None) -> Marker:
        """Marker at a node, or glued to the element that is nearest to a place, also outside it."""
        if at is None or node is not None:
            return super().marker(what, link, node, at)
        edges = self.rest[self.tets[:, 1:]] - self.rest[self.tets[:, :1]]
        inner = np.einsum("mi,mij->mj", at - self.rest[self.tets[:, 0]], np.linalg.inv(edges))
        weights = np.column_stack([1.0 - inner.sum(axis=1), inner])
        nearest = int(np.argmax(weights.min(axis=1)))
        if weights[nearest].min() < -4.0:
            low, high = (limits.round(4).tolist() for limits in (self.rest.min(axis=0), self.rest.max(axis=0)))
            raise InputError(
                f"{what}: at is {tuple(float(x) for x in at)} m, far outside {self.name!r}, which spans {low} to {high}; "
                "give a point in it or near it."
            )
        return Marker(link, tuple(int(n) for n in self.tets[nearest]), tuple(float(w) for w in weights[nearest]))

    def describe(self) -> dict[str, Any]:
        """Its material."""
        return {"material": describe_elastic(self.elastic)}

    def surface_distance(self, points: np.ndarray) -> np.ndarray:
        """Distance to the closest triangle of its surface at rest."""
        return np.array([surface_patch(self, point, 0.0)[2] for point in points])

    def hold_frame(self, link: int, pose: np.ndarray, radius: float) -> PatchFrame:
        """Frame spread over the surface nodes within the radius."""
        nodes, weights, _ = surface_patch(self, pose[:3], radius)
        return PatchFrame(self, nodes, weights, pose)
