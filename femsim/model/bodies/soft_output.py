"""What frames and sensors show of a soft body beside its nodes: fields of elements, and pressure and area on its surface."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from femsim.model.bodies import soft_output_kernels as kernels
from femsim.model.bodies.soft_kernels import CHUNK
from meshes import boundary_triangles


def corotational_fields(
    strain: np.ndarray, lame_lambda: np.ndarray, lame_mu: np.ndarray, packed: np.ndarray, names: Collection[str]
) -> dict[str, np.ndarray]:
    """Fields of co-rotational elements; formulas in :mod:`femsim.model.bodies.soft_output_kernels`.

    Parameters
    ----------
    strain : ndarray, (m, 6)
        Co-rotated strain sym(R^T F) - I: xx, yy, zz, xy, yz, zx.
    lame_lambda, lame_mu : ndarray, (m,), Pa
        Lame constants.
    packed : ndarray
        Rotations of the elements: unit quaternions in chunks, see :mod:`femsim.model.bodies.soft_kernels`.
    names : collection of str
        Fields that are wanted; names of others are passed over.

    Returns
    -------
    dict of str to ndarray
        ``von_mises`` (m,) Pa, of the Cauchy stress; ``cauchy_stress`` (m, 6) Pa: XX, YY, ZZ, XY, YZ, XZ, world frame;
        ``strain_energy_density`` (m,) J per m^3 at rest; ``rotation`` (m, 4): unit quaternion w, x, y, z of the rotation
        from rest, w >= 0; ``principal_stretches`` (m, 3), largest first. Stress of inverted elements is NaN.
    """
    m = len(strain)
    quaternion = np.empty((0, 4))
    if "cauchy_stress" in names or "rotation" in names:
        unpacked = packed.reshape(-1, 4, CHUNK).transpose(0, 2, 1).reshape(-1, 4)[:m]
        quaternion = np.ascontiguousarray(unpacked)
    out: dict[str, np.ndarray] = {}
    if "von_mises" in names:
        out["von_mises"] = np.empty(m)
        kernels.von_mises_stress(strain, lame_lambda, lame_mu, out["von_mises"])
    if "cauchy_stress" in names:
        out["cauchy_stress"] = np.empty((m, 6))
        kernels.cauchy_stress(strain, lame_lambda, lame_mu, quaternion, out["cauchy_stress"])
    if "strain_energy_density" in names:
        out["strain_energy_density"] = np.empty(m)
        kernels.strain_energy_density(strain, lame_lambda, lame_mu, out["strain_energy_density"])
    if "rotation" in names:
        out["rotation"] = np.where(quaternion[:, :1] < 0.0, -quaternion, quaternion)
    if "principal_stretches" in names:
        out["principal_stretches"] = np.empty((m, 3))
        kernels.principal_stretches(strain, out["principal_stretches"])
    return out


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
