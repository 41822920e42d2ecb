"""Rules of contact that a scene states beside its shapes: friction that differs by direction, pairs without contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class AnisotropicPair:
    """Friction of a pair of surfaces that differs by direction.

    Attributes
    ----------
    surfaces : tuple of str
        The two surfaces.
    coefficients : tuple of float
        Coulomb coefficients along ``direction`` and across it.
    direction : ndarray, (3,)
        Direction of the first coefficient in the frame of a part (of the world for obstacles); its part in the tangent plane of
        a contact counts.
    part : int
        Index of the part that carries the direction.
    """

    surfaces: tuple[str, str]
    coefficients: tuple[float, float]
    direction: np.ndarray
    part: int


@dataclass(frozen=True)
class Apart:
    """Some points of a part that never touch another, e.g. the links beside a held end of a rod and its holder.

    Attributes
    ----------
    part : int
        Index of the part with the points.
    first, last : int
        Half-open range of its points: nodes in their order, or links.
    other : int
        Index of the other part.
    """

    part: int
    first: int
    last: int
    other: int
