"""What frames and sensors show of a soft body beside its nodes: fields of elements, and pressure and area on its surface."""

from __future__ import annotations

import numpy as np

from femsim.model.bodies import soft_output_kernels as kernels
from meshes import boundary_triangles


class PressedSurface:
    """Pressure and area of contact on the surface of a body of tetrahedra.

    Parameters
    ----------
    tets : ndarray of int, (m, 4)
        Its tetrahedra.
    n_nodes : int
        Number of its nodes.

    Attributes
    ----------
    triangles : ndarray of int, (k, 3)
        The surface, outward.
    """

    def __init__(self, tets: np.ndarray, n_nodes: int) -> None:
        self.triangles = np.ascontiguousarray(boundary_triangles(tets), dtype=np.int64)
        corners = self.triangles.ravel()
        self._around = np.argsort(corners, kind="stable") // 3
        self._first = np.concatenate([[0], np.cumsum(np.bincount(corners, minlength=n_nodes))])

    def pressure(self, x: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Contact pressure on each node, (n,), Pa, from positions x (n, 3) m and contact forces (n, 3) N."""
        return self._pressed(x, force)[0]

    def area(self, x: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Tributary area of each node that a force presses on, (n,), m^2; 0 at the others."""
        return self._pressed(x, force)[1]

    def _pressed(self, x: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pressure, area = np.empty(len(x)), np.empty(len(x))
        kernels.contact_pressure(x, self.triangles, self._first, self._around, force, pressure, area)
        return pressure, area
