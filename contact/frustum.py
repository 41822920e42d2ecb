"""Cones and frusta as shapes; lengths in m. Their distance is in :mod:`contact.frustum_kernels`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contact.checked import positive, whole
from contact.errors import ContactError

FloatArray = npt.NDArray[np.float64]

#: Points on each ring of the features of a cylinder or cone. For fixed points the polygon lies at most 2 % of the radius inside
#: the rim; a Detector that is told of the rims moves them (:mod:`contact.rim_kernels`).
RIM_POINTS = 16


@dataclass(frozen=True)
class Cone:
    """A cone about the axis z of its frame, or a frustum: a cone without its tip.

    Attributes
    ----------
    radius : float, m
        Radius of the base, at z = -half_length.
    half_length : float, m
        Half the height.
    top : float, m
        Radius at z = half_length: 0 for a cone, smaller than ``radius`` for a frustum.
    """

    radius: float
    half_length: float
    top: float = 0.0

    def __post_init__(self) -> None:
        positive("Cone", "radius", self.radius)
        positive("Cone", "half_length", self.half_length)
        if self.top != 0.0:
            positive("Cone", "top", self.top)
        if self.top >= self.radius:
            raise ContactError(f"Cone: top is {self.top} m; give 0, or a radius smaller than that of the base, {self.radius} m.")

    @property
    def bounding_radius(self) -> float:
        """Radius of the enclosing ball about the origin, m."""
        return float(np.hypot(self.radius, self.half_length))

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m."""
        upper = np.array([self.radius, self.radius, self.half_length], dtype=np.float64)
        return -upper, upper

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """Points (k, 3) m and radii (k,) m: RIM_POINTS on both rims, at the tip all of them, and ``extra`` rings between."""
        whole("Cone.features", "extra", extra, 0)
        angle = 2.0 * np.pi * np.arange(RIM_POINTS) / RIM_POINTS
        ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(RIM_POINTS)])
        part = np.linspace(0.0, 1.0, 2 + extra)
        radius = (1.0 - part) * self.radius + part * self.top
        z = np.array([0.0, 0.0, self.half_length])
        points = np.concatenate([r * ring + (2.0 * t - 1.0) * z for r, t in zip(radius, part, strict=True)])
        return points, np.zeros(len(points))
