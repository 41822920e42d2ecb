"""Which material each element of a soft body has, as its kernels take it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from femsim.model.bodies import law_kernels as laws
from femsim.model.bodies.outputs import describe_elastic
from materials import Corotational, Elastic, Law, MooneyRivlin, Ogden, StableNeoHookean, StVenantKirchhoff

_CODES: dict[type[Law], int] = {
    Corotational: laws.COROTATIONAL,
    StVenantKirchhoff: laws.ST_VENANT_KIRCHHOFF,
    StableNeoHookean: laws.STABLE_NEO_HOOKEAN,
    MooneyRivlin: laws.MOONEY_RIVLIN,
    Ogden: laws.OGDEN,
}


class Region(NamedTuple):
    """Part of a soft body that has a material of its own.

    Attributes
    ----------
    name : str
        As in its mesh.
    elastic : Elastic
        Material.
    elements : ndarray of int
        Numbers of its elements.
    """

    name: str
    elastic: Elastic
    elements: np.ndarray


class Mixture:
    """The r materials of the m elements of a soft body: first that of the body, then those of its regions.

    Parameters
    ----------
    elastic : Elastic
        Material of all elements that no region has.
    regions : sequence of Region
        No two of them have an element in common, and all materials have the same ``rayleigh_alpha``.
    elements : int
        m.

    Attributes
    ----------
    of : ndarray of int64, (m,)
        Which material each element has.
    law : ndarray of int64, (r,)
        Codes of the laws, see ``law_kernels``.
    constants : ndarray, (r, c)
        Constants of the laws over their shear moduli.
    rayleigh_beta : ndarray, (r,), s
        Stiffness-proportional damping.
    """

    def __init__(self, elastic: Elastic, regions: Sequence[Region], elements: int) -> None:
        self.regions = tuple(regions)
        self.materials = (elastic, *(region.elastic for region in regions))
        self.of = np.zeros(elements, dtype=np.int64)
        for number, region in enumerate(regions, start=1):
            self.of[region.elements] = number
        self.law = np.array([_CODES[type(one.law)] for one in self.materials], dtype=np.int64)
        self.constants = _over_shear_moduli([one.law for one in self.materials])
        self.rayleigh_beta = np.array([one.rayleigh_beta for one in self.materials])

    def __repr__(self) -> str:
        return f"<Mixture: {len(self.materials)} materials of {len(self.of)} elements>"

    def by_element(self, name: str) -> np.ndarray:
        """Value of a field of :class:`materials.Elastic` in each element, (m,)."""
        return np.array([getattr(one, name) for one in self.materials])[self.of]

    def of_nodes(self, elements: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Which material fills most of the elements (m, 4 or 10) around each node at rest (n, 3), m: (n,) int."""
        corner, share = rest[elements[:, :4]], np.zeros((len(rest), len(self.materials)))
        volume = np.abs(np.linalg.det(corner[:, 1:] - corner[:, :1]))
        np.add.at(share, (elements, self.of[:, None]), volume[:, None])
        return share.argmax(axis=1)

    @property
    def damps_evenly(self) -> bool:
        """Whether all materials have the same damping and the same Prony terms."""
        first, *others = self.materials
        return all(one.rayleigh_beta == first.rayleigh_beta and one.prony == first.prony for one in others)

    def describe(self) -> dict[str, Any]:
        """Entry in ``run.json``: the material of the body, and that of each region with its law and number of elements."""
        entry: dict[str, Any] = {"material": describe_elastic(self.materials[0])}
        if self.regions:
            entry["regions"] = {
                region.name: describe_elastic(region.elastic) | {"law": region.elastic.law.kind, "elements": len(region.elements)}
                for region in self.regions
            }
        return entry


def _over_shear_moduli(of: Sequence[Law]) -> np.ndarray:
    """Constants of laws over their initial shear moduli, a row each: of Ogden all mu_p, then all alpha_p, as many in each row."""
    terms = max([1, *(len(law.mu) for law in of if isinstance(law, Ogden))])
    out = np.zeros((len(of), 2 * terms))
    for row, law in zip(out, of, strict=True):
        if isinstance(law, MooneyRivlin):
            row[:2] = np.array([law.c10, law.c01]) / law.shear_modulus
        elif isinstance(law, Ogden):
            row[: len(law.mu)] = np.array(law.mu) / law.shear_modulus
            row[terms:] = 1.0  # a term without modulus
            row[terms : terms + len(law.alpha)] = law.alpha
    return out
