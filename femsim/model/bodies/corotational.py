"""Soft bodies of the co-rotational law with linear tetrahedra: the default, and the quickest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from femsim.model.bodies import (
    corotational_kernels as kernels,
    corotational_momentum_kernels as momentum,
    corotational_tangent_kernels as tangents,
    soft_output_kernels as outputs,
)
from femsim.model.bodies.block_pattern import block_pattern
from femsim.model.bodies.hyperelastic_kernels import PointElements
from femsim.model.bodies.mixture import Region
from femsim.model.bodies.soft import NO_STRESS, Load, SoftBody, von_mises
from materials import Elastic


class CorotationalBody(SoftBody):
    """Deformable body of linear tetrahedra with the co-rotational law.

    Parameters
    ----------
    name, points, tets, elastic, velocity, angular_velocity, load, regions
        As in :class:`SoftBody`; the finite elements are ``tets``. All materials damp evenly, see `Mixture`.
    """

    def __init__(
        self,
        name: str,
        points: np.ndarray,
        tets: np.ndarray,
        elastic: Elastic,
        *,
        velocity: np.ndarray,
        angular_velocity: np.ndarray | None = None,
        load: Load | None = None,
        regions: Sequence[Region] = (),
    ) -> None:
        super().__init__(
            name, points, tets, elastic, elements=tets, velocity=velocity, angular_velocity=angular_velocity, load=load,
            regions=regions,
        )  # fmt: skip

    def _make_elements(self) -> None:
        """Constants and state of the elements, masses of the nodes, and the pattern."""
        n, m, mixture = self.n_nodes, len(self.tets), self.mixture
        edges = self.rest[self.tets[:, 1:]] - self.rest[self.tets[:, :1]]  # rows x_a - x_0
        inverse = np.linalg.inv(edges)
        volume = np.linalg.det(edges) / 6.0
        corner_mass = mixture.by_element("density") * volume / 4.0
        self.node_mass[:] = np.bincount(self.tets.ravel(), weights=np.repeat(corner_mass, 4), minlength=n)
        # for the kernels: whole chunks of elements, see corotational_kernels
        chunks, padding = -(-m // kernels.CHUNK), -m % kernels.CHUNK
        gradient = np.pad(inverse.transpose(0, 2, 1).reshape(m, 9), ((0, padding), (0, 0)))  # corners 1 to 3
        self._gradient = gradient.reshape(chunks, kernels.CHUNK, 9).transpose(0, 2, 1).ravel()
        self._volume = np.pad(volume, (0, padding))
        self._lame_lambda = np.pad(mixture.by_element("lame_lambda"), (0, padding), mode="edge")
        self._lame_mu = np.pad(mixture.by_element("lame_mu"), (0, padding), mode="edge")
        self._ratio = np.empty(m + padding)
        self._quaternion = np.tile(np.repeat([1.0, 0.0, 0.0, 0.0], kernels.CHUNK), chunks)
        self._scratch = np.zeros(kernels.SCRATCH)
        self._step_scratch = np.zeros(momentum.STEP_SCRATCH)
        self._rotated = np.empty((m, 4, 3))
        self._diagonal = np.empty((n, 6))
        self._strain = np.zeros((m, 6))
        self._make_pattern()

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

    def _update(self, x: np.ndarray) -> tuple[float, int]:
        """Update rotations, strains and forces; energy and number of inverted elements."""
        np.divide(self._lame_lambda, self._lame_mu, out=self._ratio)
        energy, inverted = kernels.element_forces(
            x, self.tets, self._gradient, self._volume, self._lame_lambda, self._lame_mu,
            self._quaternion, self._scratch, self._rotated, self.internal_force, self._strain,
        )  # fmt: skip
        return energy, inverted

    def _step_forces(self, x0: np.ndarray, x1: np.ndarray, damping: np.ndarray, force: np.ndarray, stress: np.ndarray) -> None:
        """Fill forces and stresses of an energy-momentum step, elements in chunks."""
        momentum.step_forces_in_chunks(
            x0, x1, self.tets, self._gradient, self._volume, self._lame_lambda, self._lame_mu, damping[0], self._step_scratch,
            force, stress[:, 0],
        )  # fmt: skip

    def _fill_matrix(
        self, stiffness_factor: np.ndarray, mass_factor: float, data: np.ndarray, branch: np.ndarray | None = None
    ) -> None:
        """Fill the CSC entries of mass_factor M + stiffness_factor K at the last update; a branch leaves the bulk modulus."""
        ratio, factor = self._ratio, stiffness_factor[0]
        if branch is not None:
            ratio = (ratio - 2.0 / 3.0 * branch[0]) / (1.0 + branch[0])
            factor *= 1.0 + branch[0]
        kernels.stiffness_blocks(
            self._column_ptr, self._column_start, self._stride, self._block_row, self._mirror, self._block_ptr,
            self._corner_row, self._corner_column, self._rotated.reshape(-1, 3), ratio, self.node_mass,
            factor, mass_factor, self._diagonal, data,
        )  # fmt: skip

    def _fill_tangent(self, elastic: float, viscous: np.ndarray, mass_factor: float, data: np.ndarray, *, positive: bool) -> bool:
        """Fill the second derivatives, see ``corotational_tangent_kernels``."""
        scratch, blocks = self._tangent_room
        branch, stress = (0.0, NO_STRESS) if self.branches is None else (self.branches.stiffness[0], self.branches.stress)
        tangents.element_tangents(
            self._gradient, self._volume, self._lame_lambda, self._lame_mu, self._quaternion, self._strain,
            self._step_stress[:, 0], elastic, viscous[0], float(branch), stress[:, 0], positive, scratch, blocks,
        )  # fmt: skip
        tangents.tangent_blocks(
            self._column_ptr, self._column_start, self._stride, self._block_row, self._mirror, self._block_ptr,
            self._corner_row, self._corner_column, blocks, self.node_mass, mass_factor, self._diagonal, data,
        )  # fmt: skip
        return positive

    @cached_property
    def _tangent_room(self) -> tuple[np.ndarray, np.ndarray]:
        """Scratch for the second derivatives and the blocks of each element, made where a step needs them."""
        return np.zeros(tangents.TANGENT_SCRATCH), np.empty((len(self.tets), 6, 9))

    @cached_property
    def _points(self) -> tuple[np.ndarray, np.ndarray]:
        """Gradients (m, 1, 4, 3), 1/m, and volumes (m, 1), m^3."""
        edges = self.rest[self.tets[:, 1:]] - self.rest[self.tets[:, :1]]
        inverse = np.linalg.inv(edges).transpose(0, 2, 1)
        gradient = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)
        return np.ascontiguousarray(gradient[:, None]), np.linalg.det(edges)[:, None] / 6.0

    def point_elements(self) -> PointElements:
        """Its tetrahedra with one point each; the energy is the same."""
        mixture, lame_lambda, lame_mu = self.mixture, self.lame_lambda, self.lame_mu
        return PointElements(
            self.tets, *self._points, mixture.of, mixture.law, mixture.constants, lame_lambda, lame_mu, lame_lambda
        )

    @property
    def strain(self) -> np.ndarray:
        """Co-rotated strain sym(R^T F) - I of each tetrahedron at the last update, (m, 6): xx, yy, zz, xy, yz, zx; a view."""
        return self._strain

    @property
    def stress(self) -> np.ndarray:
        """True stress of each tetrahedron, (m, 6), Pa: xx, yy, zz, xy, yz, zx, world frame; NaN where inverted."""
        stress = np.empty((len(self.tets), 6))
        outputs.cauchy_stress(self._strain, self.lame_lambda, self.lame_mu, self._quaternions(), stress)
        if self.branches is not None:
            self.branches.add_cauchy(self._updated_at.reshape(-1, 3), stress[:, None])
        return stress

    def von_mises(self) -> np.ndarray:
        """Von Mises value of the true stress of each tetrahedron, (m,), Pa; NaN where inverted."""
        if self.branches is not None:
            return von_mises(self.stress)
        out = np.empty(len(self.tets))
        outputs.von_mises_stress(self._strain, self.lame_lambda, self.lame_mu, out)
        return out

    @property
    def energy_density(self) -> np.ndarray:
        """Elastic energy by volume at rest of each tetrahedron, (m,), J/m^3."""
        out = np.empty(len(self.tets))
        outputs.strain_energy_density(self._strain, self.lame_lambda, self.lame_mu, out)
        return out if self.branches is None else out + self.branches.energy_density()[:, 0]

    @property
    def principal_stretches(self) -> np.ndarray:
        """Eigenvalues of the stretch U = sym(R^T F) of each tetrahedron, (m, 3), largest first."""
        out = np.empty((len(self.tets), 3))
        outputs.principal_stretches(self._strain, out)
        return out

    @property
    def rotations(self) -> np.ndarray:
        """Rotation of each tetrahedron from rest, (m, 4): unit quaternions w, x, y, z, w >= 0."""
        quaternions = self._quaternions()
        return np.where(quaternions[:, :1] < 0.0, -quaternions, quaternions)

    def _rotation_of_elements(self) -> np.ndarray:
        return self._quaternions()

    def _quaternions(self) -> np.ndarray:
        """Rotations of the last update, (m, 4), unpacked from chunks."""
        packed = self._quaternion.reshape(-1, 4, kernels.CHUNK)
        return np.ascontiguousarray(packed.transpose(0, 2, 1).reshape(-1, 4)[: len(self.tets)])
