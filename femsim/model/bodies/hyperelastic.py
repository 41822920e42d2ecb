"""Soft bodies of any elastic law in principal stretches, with linear or quadratic tetrahedra."""

from __future__ import annotations

import numpy as np

from femsim.model.bodies import hyperelastic_kernels as kernels
from femsim.model.bodies.block_pattern import block_pattern
from femsim.model.bodies.hyperelastic_kernels import PointElements
from femsim.model.bodies.soft import NO_STRESS, SoftBody, von_mises
from meshes.quadratic import EDGES

# quadratic elements keep at most this part of lambda, over mu, at the integration points: as much as Poisson's ratio 1/3
_POINT_RATIO = 2.0
# four points, exact for polynomials of degree 2: barycentric coordinates
_POINTS = np.full((4, 4), (5.0 - 5.0**0.5) / 20.0) + np.eye(4) * (5.0**0.5 / 5.0)
# lumped mass of quadratic elements: the diagonal of the consistent matrix, scaled to the mass (Hinton, Rock and Zienkiewicz 1976)
_MASS = np.array([1.0 / 36.0] * 4 + [4.0 / 27.0] * 6)


class HyperelasticBody(SoftBody):
    """Deformable body of linear or quadratic tetrahedra with the laws of its materials.

    At its start a step is linearised by second derivatives that are projected point by point to be positive semidefinite, so A is
    symmetric positive definite in every state; then by those that are exact, and where they are not definite by those of the
    stretch. Quadratic elements take the volumetric term by the mean dilatation of the element, see
    `hyperelastic_kernels`: they do not lock up to nu = 0.499.

    Parameters
    ----------
    name, points, tets, elastic, velocity, angular_velocity, load, regions
        As in :class:`SoftBody`.
    elements : ndarray, (m, 4) or (m, 10)
        Nodes of the elements: ``tets``, or those of :func:`meshes.quadratic.quadratic`.
    """

    def _make_elements(self) -> None:
        """Constants and state of the elements, masses of the nodes, and the pattern."""
        mixture, elements = self.mixture, self.elements
        m, k = elements.shape
        edges = self.rest[elements[:, 1:4]] - self.rest[elements[:, :1]]
        inverse = np.linalg.inv(edges).transpose(0, 2, 1)
        corner = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)  # (m, 4, 3)
        volume = np.linalg.det(edges) / 6.0
        if k == 4:
            gradient, share = corner[:, None], np.full(4, 0.25)
        else:
            a, b = np.array(EDGES).T
            ends = (4.0 * _POINTS - 1.0)[None, :, :, None] * corner[:, None]
            middle = 4.0 * (_POINTS[None, :, a, None] * corner[:, None, b] + _POINTS[None, :, b, None] * corner[:, None, a])
            gradient, share = np.concatenate([ends, middle], axis=2), _MASS
        points = gradient.shape[1]
        self._gradient = np.ascontiguousarray(gradient)
        self._weight = np.repeat(volume[:, None] / points, points, axis=1)
        mass = (mixture.by_element("density") * volume)[:, None] * share
        self.node_mass[:] = np.bincount(elements.ravel(), weights=mass.ravel(), minlength=self.n_nodes)
        self._lame_lambda, self._lame_mu = mixture.by_element("lame_lambda"), mixture.by_element("lame_mu")
        self._laws = mixture.of, mixture.law, mixture.constants
        self._quaternion = np.tile([1.0, 0.0, 0.0, 0.0], (m, points, 1))
        self._stretches = np.ones((m, points, 3))
        self._left, self._right = np.empty((m, points, 3, 3)), np.empty((m, points, 3, 3))
        self._excess, self._cauchy = np.empty(m), np.zeros((m, points, 6))
        n = self.n_nodes
        keys = elements[:, None, :] * n + elements[:, :, None]
        self._indptr, self._indices, unique, place = block_pattern(keys.ravel(), n)
        self._place = place[np.searchsorted(unique, keys)]
        self._stride = np.diff(self._indptr)[::3].copy()
        self._diagonal_place = place[np.searchsorted(unique, np.arange(n) * (n + 1))]

    @property
    def stress(self) -> np.ndarray:
        """True (Cauchy) stress of each drawn tetrahedron at the last update, (len(tets), 6), Pa: xx, yy, zz, xy, yz, zx."""
        if self.branches is None:
            return self._drawn(self._cauchy)
        whole = self._cauchy.copy()
        self.branches.add_cauchy(self._updated_at.reshape(-1, 3), whole)
        return self._drawn(whole)

    @property
    def strain(self) -> np.ndarray:
        """Co-rotated strain sym(R^T F) - I of each drawn tetrahedron, (len(tets), 6): xx, yy, zz, xy, yz, zx."""
        full = np.einsum("epic,epc,epjc->epij", self._right, self._stretches - 1.0, self._right)
        return self._drawn(full[..., [0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0]])

    @property
    def energy_density(self) -> np.ndarray:
        """Elastic energy by volume at rest of each drawn tetrahedron at the last update, (len(tets),), J/m^3."""
        density = np.empty(self._weight.shape)
        kernels.energy_densities(
            self._stretches, self._weight, *self._laws, self._lame_lambda, self._lame_mu, self._point_lambda(),
            density,
        )  # fmt: skip
        if self.branches is not None:
            density += self.branches.energy_density()
        return self._drawn(density[..., None])[:, 0]

    @property
    def principal_stretches(self) -> np.ndarray:
        """Singular values of F of each drawn tetrahedron at the last update, (len(tets), 3), largest first."""
        return np.ascontiguousarray(np.sort(self._drawn(self._stretches), axis=1)[:, ::-1])

    @property
    def rotations(self) -> np.ndarray:
        """Rotation of each drawn tetrahedron at the last update, (len(tets), 4): unit quaternions w, x, y, z, w >= 0."""
        from scipy.spatial.transform import Rotation  # slow to import

        m, points = self._stretches.shape[:2]
        turn = (self._left @ self._right.transpose(0, 1, 3, 2)).reshape(-1, 3, 3)
        at_points = Rotation.from_matrix(turn).as_quat(scalar_first=True).reshape(m, points, 4)
        at_points[(at_points * at_points[:, :1]).sum(axis=2) < 0.0] *= -1.0
        drawn = self._drawn(at_points)
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        return np.where(drawn[:, :1] < 0.0, -drawn, drawn)

    def _update(self, x: np.ndarray) -> tuple[float, int]:
        """Update stretches and forces; energy and number of inverted elements."""
        energy, inverted = kernels.element_stresses(
            x, self.elements, self._gradient, self._weight, *self._laws, self._lame_lambda, self._lame_mu,
            self._point_lambda(), self._quaternion, self._stretches, self._left, self._right, self._excess,
            self.internal_force, self._cauchy,
        )  # fmt: skip
        return energy, inverted

    def _fill_matrix(
        self,
        stiffness_factor: np.ndarray,
        mass_factor: float,
        data: np.ndarray,
        branch: np.ndarray | None = None,
        *,
        kind: int = kernels.PROJECTED,
        stress: np.ndarray = NO_STRESS,
        share: np.ndarray | None = None,
        branch_stress: np.ndarray = NO_STRESS,
    ) -> None:
        """Fill the CSC entries of mass_factor M + stiffness_factor K at the last update, with stresses of a step.

        All of K is that of the energy, or only a ``share``, (r,): the rest is what damps changes of strain.
        """
        none = self._no_branch
        kernels.element_matrices(
            self.elements, self._gradient, self._weight, *self._laws, self._lame_lambda, self._lame_mu, self._point_lambda(),
            self._stretches, self._left, self._right, self._excess, stress, np.ones_like(none) if share is None else share,
            none if branch is None else branch, branch_stress, kind, self.node_mass, stiffness_factor, mass_factor, self._place,
            self._stride, self._diagonal_place, data,
        )  # fmt: skip

    def _fill_damping(self, data: np.ndarray) -> None:
        """Fill it without what stresses add to the stiffness against turns."""
        self._fill_matrix(self._beta, 0.0, data, kind=kernels.STRETCHING)

    def _fill_tangent(self, elastic: float, viscous: np.ndarray, mass_factor: float, data: np.ndarray, *, positive: bool) -> bool:
        """Fill the second derivatives; where ``positive``, what is surely definite and no turn changes."""
        stiffness = elastic + viscous
        branch, share = self._branch_share(elastic, stiffness), elastic / stiffness
        kind = kernels.STRETCHING if positive else kernels.GUARDED
        stresses = {"stress": self._step_stress, "branch_stress": NO_STRESS if self.branches is None else self.branches.stress}
        self._fill_matrix(stiffness, mass_factor, data, branch, kind=kind, share=share, **stresses)
        return positive

    def point_elements(self) -> PointElements:
        """Its own elements."""
        return PointElements(
            self.elements, self._gradient, self._weight, *self._laws, self._lame_lambda, self._lame_mu, self._point_lambda(),
        )  # fmt: skip

    def von_mises(self) -> np.ndarray:
        """Von Mises stress (of the true stress) of each drawn tetrahedron at the last update, (len(tets),), Pa."""
        return von_mises(self.stress)

    def _rotation_of_elements(self) -> np.ndarray:
        return np.ascontiguousarray(self._quaternion[:, 0])

    def _point_lambda(self) -> np.ndarray:
        """Part of lambda that acts at the integration points, (m,), Pa."""
        if self._weight.shape[1] == 1:
            return self._lame_lambda
        return np.minimum(self._lame_lambda, _POINT_RATIO * self._lame_mu)

    def _drawn(self, values: np.ndarray) -> np.ndarray:
        """From integration points (m, p, c) to drawn tetrahedra (len(tets), c): the nearest point, in the middle the mean."""
        if values.shape[1] > 1:
            values = np.concatenate([values, np.repeat(values.mean(axis=1, keepdims=True), 4, axis=1)], axis=1)
        return values.reshape(len(self.tets), -1)
