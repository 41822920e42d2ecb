"""What is shown of a soft body beside its positions and velocities: fields of elements, and contact pressure on its surface."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from femsim.model.bodies import soft_output_kernels as kernels
from femsim.model.bodies.soft import SoftBody
from meshes import boundary_triangles

#: Fields of elements that :meth:`SoftOutput.elements` knows.
ELEMENT_FIELDS = ("von_mises", "cauchy_stress", "strain_energy_density", "rotation", "principal_stretches")


class SoftOutput:
    """Fields of a soft body at its last update; formulas in :mod:`femsim.model.bodies.soft_output_kernels`.

    Parameters
    ----------
    body : SoftBody
        The body.
    """

    def __init__(self, body: SoftBody) -> None:
        self.body = body
        self._triangles = np.ascontiguousarray(boundary_triangles(body.tets), dtype=np.int64)
        corners = self._triangles.ravel()
        self._around = np.argsort(corners, kind="stable") // 3
        self._first = np.concatenate([[0], np.cumsum(np.bincount(corners, minlength=body.n_nodes))])

    def elements(self, q: np.ndarray, names: Collection[str]) -> dict[str, np.ndarray]:
        """Fields of elements.

        Parameters
        ----------
        q : ndarray, (3 n,), m
            Node positions.
        names : collection of str
            Which of :data:`ELEMENT_FIELDS`; other names are passed over.

        Returns
        -------
        dict of str to ndarray
            ``von_mises`` (m,) Pa, of the Cauchy stress; ``cauchy_stress`` (m, 6) Pa: XX, YY, ZZ, XY, YZ, XZ, world frame;
            ``strain_energy_density`` (m,) J a m^3 at rest; ``rotation`` (m, 4): unit quaternion w, x, y, z of the rotation
            from rest, w >= 0; ``principal_stretches`` (m, 3), largest first. Stress of inverted elements is NaN.
        """
        body = self.body
        body.update_elements(q)
        values: dict[str, Callable[[], np.ndarray]] = {
            "von_mises": body.von_mises,
            "cauchy_stress": lambda: body.stress,
            "strain_energy_density": lambda: body.energy_density,
            "rotation": lambda: body.rotations,
            "principal_stretches": lambda: body.principal_stretches,
        }
        return {name: value() for name, value in values.items() if name in names}

    def contact_pressure(self, x: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Contact pressure on each node, (n,), Pa, from positions x (n, 3) m and contact forces (n, 3) N."""
        return self._pressed(x, force)[0]

    def contact_area(self, x: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Tributary area of each node that a force presses on, (n,), m^2; 0 at the others."""
        return self._pressed(x, force)[1]

    def _pressed(self, x: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pressure, area = np.empty(len(x)), np.empty(len(x))
        kernels.contact_pressure(x, self._triangles, self._first, self._around, force, pressure, area)
        return pressure, area
