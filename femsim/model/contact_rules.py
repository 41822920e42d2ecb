"""Rules of contact that a scene states beside its shapes: friction, pairs without contact, how penetration is undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class AnisotropicPair:
    """Friction that differs by direction, of some pairs of parts.

    Attributes
    ----------
    pairs : ndarray, (ns, ns), bool
        Which pairs of skins (:func:`femsim.model.parts.skins_of`).
    coefficients : tuple of float
        Coulomb coefficients along ``direction`` and across it.
    direction : ndarray, (3,)
        Direction of the first coefficient in the frame of a part (of the world for obstacles); its projection on the tangent
        plane of a contact counts.
    part : int
        Index of the part that carries the direction.
    """

    pairs: np.ndarray
    coefficients: tuple[float, float]
    direction: np.ndarray
    part: int


@dataclass(frozen=True)
class NoContact:
    """Some points of a part that have no contact with another, e.g. the links beside a held end of a rod and its holder.

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


class Breaks(Protocol):
    """What may break, as a joint does.

    Attributes
    ----------
    name : str
        Its name.
    broken : bool
        Whether it has.
    """

    name: str
    broken: bool


@dataclass(frozen=True)
class UntilBroken:
    """Two parts, or some points of them, that have no contact with each other as long as a joint between them is whole.

    Attributes
    ----------
    parts : (int, int)
        Indices of the parts.
    nodes : tuple of ndarray or None, (k,)
        Of each part the nodes or links that have none; None: all of it.
    joint : Breaks
        The joint.
    """

    parts: tuple[int, int]
    nodes: tuple[np.ndarray | None, np.ndarray | None]
    joint: Breaks

    @property
    def pair(self) -> tuple[int, int] | None:
        """The parts, the lower number first, where all of both have none; else None."""
        both = self.nodes[0] is None and self.nodes[1] is None
        return (min(self.parts), max(self.parts)) if both else None


@dataclass(frozen=True)
class Welded:
    """Two parts, or some points of them, that nothing can move against each other as long as what holds them is whole.

    Attributes
    ----------
    parts : (int, int)
        Indices of the parts, -1 for the world.
    nodes : tuple of ndarray or None, (k,)
        Of each part the nodes or links that are held; None: all of a rigid part.
    joint : Breaks or None
        The weld; None where nothing can break.
    """

    parts: tuple[int, int]
    nodes: tuple[np.ndarray | None, np.ndarray | None]
    joint: Breaks | None


@dataclass(frozen=True)
class ContactRules:
    """Which parts may have contact, and how.

    Attributes
    ----------
    friction : ndarray, (ns, ns)
        Coulomb coefficient of each pair of skins (:func:`femsim.model.parts.skins_of`).
    restitution : ndarray, (np, np)
        Part of the speed of approach with which the contacts of each pair of parts part, in [0, 1].
    pairs : ndarray, (np, np), bool
        Which pairs of different parts may have contact; (a, b): points of a with shapes of b.
    correction, max_correction : float
        Fraction of a penetration that one step undoes, and the largest speed for it (m/s).
    anisotropic : sequence of AnisotropicPair
        Pairs whose friction differs by direction; ``friction`` holds the geometric mean of their coefficients.
    no_contact : sequence of NoContact
        Points that have no contact with a part though their own part may.
    ignored : ndarray, (np, np), bool, optional
        Pairs whose contact the scene leaves out, which no measure of depth looks at either. Default: none.
    most_per_pair : int
        Contacts of two parts that are kept where one of them has a Revolved or Thread.
    softness : ndarray, (np, np), m/N, optional
        How far a contact of each pair of parts gives way to its normal force. Default: all are hard.
    loose : ndarray, (np,), bool, optional
        Parts that the scene moves by nothing but forces, or not at all: free rigid bodies and obstacles. Default: all.
    until_broken : sequence of UntilBroken
        What has no contact as long as a joint is whole.
    welds : sequence of Welded
        What welds hold, also through other parts: there contact would ask again for what they give.
    led : sequence of Welded
        Parts and nodes that exact motions alone move against each other: no contact can push apart these or what is welded to
        them.
    slow : float, m/s
        A contact that presses is said to stick where its tangential speed is at most this; it decides nothing else.
    """

    friction: np.ndarray
    restitution: np.ndarray
    pairs: np.ndarray
    correction: float
    max_correction: float
    anisotropic: Sequence[AnisotropicPair] = ()
    no_contact: Sequence[NoContact] = ()
    ignored: np.ndarray | None = None
    most_per_pair: int = 120
    softness: np.ndarray | None = None
    loose: np.ndarray | None = None
    until_broken: Sequence[UntilBroken] = ()
    welds: Sequence[Welded] = ()
    led: Sequence[Welded] = ()
    slow: float = 1e-6
