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
    middles : ndarray of int, (k, 3)
        Nodes in the middle of the edges of quadratic elements, each with the two ends of its edge.

    Attributes
    ----------
    triangles : ndarray of int, (k, 3)
        The surface, outward.
    """

    def __init__(self, tets: np.ndarray, n_nodes: int, middles: np.ndarray) -> None:
        self.triangles = np.ascontiguousarray(boundary_triangles(tets), dtype=np.int64)
        corners = self.triangles.ravel()
        self._around = np.argsort(corners, kind="stable") // 3
        self._first = np.concatenate([[0], np.cumsum(np.bincount(corners, minlength=n_nodes))])
        self._middles = middles[np.isin(middles[:, 0], corners)]

    def pressure(self, x: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Contact pressure on each node, (n,), Pa, from positions x (n, 3) m and contact forces (n, 3) N."""
        pressure = np.empty(len(x))
        kernels.contact_pressure(x, self.triangles, self._first, self._around, self._spread(force), pressure)
        return pressure

    def area(self, x: np.ndarray, node: np.ndarray, force: np.ndarray) -> np.ndarray:
        """Tributary area of each node that forces press on, (n,), m^2; 0 at the others.

        From positions x (n, 3) m and forces (m, 3) N, each on a node, (m,); those on the middle of an edge press on its ends too.
        """
        if len(self._middles):
            ends = np.full((len(x), 2), -1)
            ends[self._middles[:, 0]] = self._middles[:, 1:]
            given = np.column_stack([node, ends[node]])
            node, force = given[given >= 0], np.repeat(force, (given >= 0).sum(axis=1), axis=0)
        area, counted = np.empty(len(x)), np.empty(len(self._around), dtype=np.bool_)
        kernels.pressed_area(x, self.triangles, self._first, self._around, node, force, counted, area)
        return area

    def _spread(self, force: np.ndarray) -> np.ndarray:
        """Spread forces (n, 3), N, as an even pressure would load the nodes of linear triangles.

        An even pressure loads a face of a quadratic element at the middles of its edges alone (a third each), while the area
        of its four triangles is a quarter by each middle and a twelfth by each corner: so a middle gives an eighth to each end.
        """
        if not len(self._middles):
            return force
        middle, given = self._middles[:, 0], 0.125 * force[self._middles[:, 0]]
        out = force.copy()
        out[middle] -= 2.0 * given
        np.add.at(out, self._middles[:, 1], given)
        np.add.at(out, self._middles[:, 2], given)
        return out
