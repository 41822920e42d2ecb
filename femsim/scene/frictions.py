"""Friction, restitution, softness and absence of contact of pairs of bodies: what statements about bodies say of parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.model.contact_rules import AnisotropicPair
from femsim.model.parts import Part, Skin, skins_of, skins_of_parts
from femsim.scene.checks import Handle
from materials import FrictionTable, friction


@dataclass(frozen=True)
class Side:
    """One of the two that a statement is about.

    Attributes
    ----------
    name : str
        Name of a body or of a surface.
    parts : tuple of int
        Parts of the body; empty for a surface, which is all parts and regions that have it.
    link : bool
        Whether it is one link or region of a body.
    region : bool
        Whether it is a region.
    """

    name: str
    parts: tuple[int, ...] = ()
    link: bool = False
    region: bool = False

    def of(self, skins: Sequence[Skin]) -> np.ndarray:
        """Whether each skin is meant, (ns,) bool."""
        named = self.parts
        if self.region:
            return np.array([skin.name == self.name for skin in skins], dtype=np.bool_)
        return np.array([skin.part in named if named else skin.surface == self.name for skin in skins], dtype=np.bool_)

    def of_parts(self, parts: Sequence[Part]) -> np.ndarray:
        """Whether each part is meant, (np,) bool, as a whole."""
        return self.of(skins_of_parts(parts))


@dataclass(frozen=True)
class FrictionRule:
    """A statement about the friction of a pair, about its restitution, or about its softness.

    Attributes
    ----------
    sides : tuple of Side
        The pair.
    coefficient : float
        Coulomb coefficient, the geometric mean where there are two; or the coefficient of restitution; or the softness, m/N.
    coefficients : tuple of float, optional
        Those along and across ``direction``.
    direction : ndarray, (3,), optional
        Unit vector in the frame of a part.
    carrier : int
        That part; -1 without a direction.
    """

    sides: tuple[Side, Side]
    coefficient: float
    coefficients: tuple[float, float] | None = None
    direction: np.ndarray | None = None
    carrier: int = -1

    @property
    def bodies(self) -> int:
        """How many of the two are bodies."""
        return sum(bool(side.parts) for side in self.sides)

    @property
    def rank(self) -> tuple[int, int]:
        """How much is known of the two: a statement about more bodies, then about more single links, comes before others."""
        return self.bodies, sum(side.link for side in self.sides)

    @property
    def value(self) -> tuple[float, ...]:
        """What two statements about one pair must agree in."""
        direction = () if self.direction is None else tuple(self.direction.tolist())
        return (self.coefficient, *(self.coefficients or ()), *direction)

    def __str__(self) -> str:
        first, second = (f"{'body' if side.parts else 'surface'} {side.name!r}" for side in self.sides)
        return f"{first} and {second}: {self.coefficient if self.coefficients is None else self.coefficients}"


@dataclass(frozen=True)
class IgnoredContact:
    """A statement that two bodies, surfaces or groups have no contact; or the members of one with each other.

    Attributes
    ----------
    sides : tuple of Side
        The two; one and the same for the members of one.
    """

    sides: tuple[Side, Side]

    def __str__(self) -> str:
        first, second = (side.name for side in self.sides)
        return f"{first} and {second}" if first != second else f"within {first}"


class PairFriction(NamedTuple):
    """Friction of all pairs of skins: coefficients (ns, ns), and the rule of each, (ns, ns) int, -1 where no rule says it."""

    values: np.ndarray
    rule: np.ndarray


def side_of(parts: Sequence[Part], what: Handle | str, about: str = "friction") -> Side:
    """Find what is meant by a handle, the name of a body, of one of its links, or of a surface; for friction also of a region.

    A name that a body shares with its own surface means the surface where other bodies have it too.

    Raises
    ------
    InputError
        Nothing has the name, or a body has the name of a surface that is not its own.
    """
    names = [part.name for part in parts]
    if isinstance(what, Handle):
        return Side(what.name, tuple(names.index(name) for name in what.parts))
    skins = skins_of(parts) if about == "friction" else skins_of_parts(parts)
    surfaces = {skin.surface for skin in skins}
    if what not in names:
        region = next((skin for skin in skins if skin.name == what), None)
        if region is not None:
            return Side(what, (region.part,), link=True, region=True)
        if what not in surfaces:
            known = sorted({*(skin.name for skin in skins), *surfaces} - {""})  # materials without a name have none
            raise InputError(f"{about}: body or surface {what!r} is unknown{did_you_mean(what, known)}")
        return Side(what)
    index = names.index(what)
    own, others = parts[index], [skin.name for skin in skins if skin.surface == what and skin.part != index]
    if others and own.surface == what:
        return Side(what)
    if others:
        raise InputError(
            f"{about}: {what!r} is a body and the surface of {', '.join(map(repr, others[:3]))}; "
            "pass the handle that add_... returned for the body, or give one of the two another name."
        )
    if own.body < 0 or own.link > 0:
        return Side(what, (index,), own.link > 0)
    return Side(what, tuple(k for k, part in enumerate(parts) if part.body == own.body))


def add_rule(rules: list[FrictionRule], new: FrictionRule) -> None:
    """Add a statement; one about the same two takes the place of an earlier one."""
    rules[:] = [rule for rule in rules if set(rule.sides) != set(new.sides)]
    rules.append(new)


def pair_friction(parts: Sequence[Part], rules: Sequence[FrictionRule], table: FrictionTable) -> PairFriction:
    """Friction of all pairs of skins: of a statement about two bodies, a body and a surface, two surfaces, in this order.

    What is said of a single link comes before what is said of all of its body.

    Without a statement it is that of the material library for the two surfaces, else the default of ``table``.

    Raises
    ------
    InputError
        Two statements of the same rank say different things of a pair, and none of higher rank decides.
    """
    skins = skins_of(parts)
    surfaces = sorted({skin.surface for skin in skins})
    own = np.array([surfaces.index(skin.surface) for skin in skins], dtype=np.int64)
    known = np.full((len(surfaces), len(surfaces)), table.default)
    for i, a in enumerate(surfaces):
        for j, b in enumerate(surfaces):
            pair = friction(a, b)
            known[i, j] = table.default if pair is None else pair.value
    return _stated(skins, rules, known[np.ix_(own, own)], ("friction", "set_friction"))


def pair_restitution(parts: Sequence[Part], rules: Sequence[FrictionRule]) -> np.ndarray:
    """Coefficients of restitution of all pairs of parts, (np, np), as :func:`pair_friction`; zero without a statement.

    Raises
    ------
    InputError
        Two statements of the same rank say different things of a pair, and none of higher rank decides.
    """
    return _stated(skins_of_parts(parts), rules, np.zeros((len(parts), len(parts))), ("restitution", "set_restitution")).values


def pair_softness(
    parts: Sequence[Part], rules: Sequence[FrictionRule], restitution: Sequence[FrictionRule] = ()
) -> np.ndarray | None:
    """Softness of all pairs of parts, (np, np), m/N, as :func:`pair_friction`; None where no statement makes one soft.

    Raises
    ------
    InputError
        Two statements of the same rank say different things of a pair, or a soft pair has a restitution.
    """
    soft = _stated(skins_of_parts(parts), rules, np.zeros((len(parts), len(parts))), ("softness", "set_softness")).values
    if not soft.any():
        return None
    for i, j in np.argwhere((soft > 0.0) & (pair_restitution(parts, restitution) > 0.0)):
        raise InputError(
            f"{parts[i].name!r} and {parts[j].name!r} have a softness and a restitution; say one of them: a soft contact "
            "rebounds by its own elasticity."
        )
    return soft


def _stated(skins: Sequence[Skin], rules: Sequence[FrictionRule], values: np.ndarray, words: tuple[str, str]) -> PairFriction:
    """Put what rules say into ``values`` (ns, ns); ``words`` are what they are about and the call that makes them."""
    chosen = np.full((len(skins), len(skins)), -1)
    against = np.full_like(chosen, -1)
    for rank in sorted({rule.rank for rule in rules}):
        said = np.full_like(chosen, -1)
        for k, rule in enumerate(rules):
            if rule.rank != rank:
                continue
            first, second = (side.of(skins) for side in rule.sides)
            meant = np.outer(first, second) | np.outer(second, first)
            for i, j in np.argwhere(meant & (said >= 0)):
                if rules[said[i, j]].value != rule.value:
                    against[i, j] = said[i, j]
            against[meant & (said < 0)] = -1  # a statement of lower rank is overruled, and so is a quarrel there
            values[meant], chosen[meant], said[meant] = rule.coefficient, k, k
    quarrel = np.argwhere(against >= 0)
    if len(quarrel):
        i, j = quarrel[0]
        raise InputError(
            f"{words[0]} of {skins[i].name!r} and {skins[j].name!r} is stated twice: {rules[against[i, j]]}; "
            f"{rules[chosen[i, j]]}. Say which holds by {words[1]} of the two bodies {skins[i].name!r} and {skins[j].name!r}."
        )
    return PairFriction(values, chosen)


def anisotropic_pairs(rules: Sequence[FrictionRule], found: PairFriction) -> tuple[AnisotropicPair, ...]:
    """Pairs of skins whose friction differs by direction, rule by rule."""
    return tuple(
        AnisotropicPair(found.rule == k, rule.coefficients, rule.direction, rule.carrier)
        for k, rule in enumerate(rules)
        if rule.coefficients is not None and rule.direction is not None
    )
