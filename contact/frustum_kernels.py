"""Compiled kernel of the distance of cones and frusta."""

from __future__ import annotations

from math import inf, sqrt

from contact.compiled import njit


@njit(cache=True, inner=True)
def cone_distance(
    x: float, y: float, z: float, radius: float, half_length: float, top: float
) -> tuple[float, float, float, float]:
    """Signed distance and outward unit normal of a cone or frustum along z, ``radius`` at its base and ``top`` at its upper end.

    Inside, the nearest face wins: mantle before base before top. On the axis the radial direction is +x.
    """
    rho = sqrt(x * x + y * y)
    ux, uy = (x / rho, y / rho) if rho > 0.0 else (1.0, 0.0)
    narrowing, height = radius - top, 2.0 * half_length
    length = sqrt(narrowing * narrowing + height * height)
    nr, nz = height / length, narrowing / length  # normal of the mantle in the plane of the axis
    side = (rho - radius) * nr + (z + half_length) * nz
    below, above = -half_length - z, z - half_length
    nearest, at_r, at_z = inf, 0.0, 0.0
    if side > 0.0:
        along = min(max(((radius - rho) * narrowing + (z + half_length) * height) / (length * length), 0.0), 1.0)
        at_r, at_z = radius - along * narrowing, along * height - half_length
        nearest = sqrt((rho - at_r) ** 2 + (z - at_z) ** 2)
    if below > 0.0:
        r = min(rho, radius)
        distance = sqrt((rho - r) ** 2 + below * below)
        if distance < nearest:
            nearest, at_r, at_z = distance, r, -half_length
    if above > 0.0:
        r = min(rho, top)
        distance = sqrt((rho - r) ** 2 + above * above)
        if distance < nearest:
            nearest, at_r, at_z = distance, r, half_length
    if nearest == inf or nearest == 0.0:  # inside, or on the surface to rounding
        if side >= below and side >= above:
            return side, nr * ux, nr * uy, nz
        if below >= above:
            return below, 0.0, 0.0, -1.0
        return above, 0.0, 0.0, 1.0
    across = (rho - at_r) / nearest
    return nearest, across * ux, across * uy, (z - at_z) / nearest
