"""Parts: what can have contact, be measured and be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from contact import Shape
from meshes import TriMesh


@dataclass
class Part:
    """Something that can have contact: a soft body, a rod, a link of a rigid body or gripper, or an obstacle.

    Attributes
    ----------
    name : str
        Name in outputs and sensors.
    body : int
        Number of its body in the scene, -1 for an obstacle.
    link : int
        Link of a rigid body or gripper, 0 the base.
    surface : str
        Surface material, for friction.
    shapes : list of (shape, rotation, translation)
        Shapes in the frame of the link (its centre of mass), or of the world for obstacles.
    visual : TriMesh or None
        What is drawn of a rigid part, in the same frame.
    nodes : ndarray, (k,)
        Points of a body that deforms, which have contact with shapes: surface nodes, or links.
    turns : bool
        Whether contacts act on the surface of a rod, so that they also turn its links; otherwise at the centres of the links.
    triangles : ndarray, (t, 3)
        Surface of a soft body, node numbers, outward; without it the body has contact with shapes only.
    self_contact : bool
        Whether a soft body or rod has contact with itself.
    by_faces : bool, optional
        Whether soft bodies and rods have contact with the corners, edges and faces of a rigid part, not only by their points;
        None: as :mod:`femsim.step.by_faces` decides.
    regions : tuple of (str, str)
        Name and surface material of each region of a soft body.
    region : ndarray of int, (k,)
        Which of them each of ``nodes`` is in, counted from 1; 0 for none. Empty without any.
    """

    name: str
    body: int
    link: int
    surface: str
    shapes: list[tuple[Shape, np.ndarray, np.ndarray]] = field(default_factory=list)
    visual: TriMesh | None = None
    nodes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    turns: bool = False
    triangles: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    self_contact: bool = False
    by_faces: bool | None = None
    regions: tuple[tuple[str, str], ...] = ()
    region: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __repr__(self) -> str:
        owner = "obstacle" if self.body < 0 else f"body {self.body}" + (f", link {self.link}" if self.link else "")
        made = [f"{len(self.shapes)} shapes"] * bool(self.shapes) + [f"{len(self.nodes)} points"] * bool(len(self.nodes))
        return f"<Part {self.name!r} of {owner}: {', '.join(made) or 'no contact'}>"


class Skin(NamedTuple):
    """What has friction of its own: a part, or a region of a soft body.

    Attributes
    ----------
    name : str
        That of the part, or of the body and the region, ``finger.pad``.
    part : int
        Number of the part.
    surface : str
        Surface material.
    """

    name: str
    part: int
    surface: str


def skins_of(parts: Sequence[Part]) -> list[Skin]:
    """Skins of all parts: first one of each part, so that both have the same numbers, then those of the regions."""
    return skins_of_parts(parts) + skins_of_regions(parts)


def skins_of_parts(parts: Sequence[Part]) -> list[Skin]:
    """Skins of the parts without their regions."""
    return [Skin(part.name, k, part.surface) for k, part in enumerate(parts)]


def skins_of_regions(parts: Sequence[Part]) -> list[Skin]:
    """Skins of the regions of all parts."""
    return [Skin(f"{part.name}.{region}", k, surface) for k, part in enumerate(parts) for region, surface in part.regions]


def skins_of_points(parts: Sequence[Part]) -> list[np.ndarray]:
    """Return the number of the skin of each of the nodes of each part, (k,) int."""
    out, first = [], len(parts)
    for k, part in enumerate(parts):
        found = np.full(len(part.nodes), k)
        if part.regions:
            found = np.where(part.region > 0, first + part.region - 1, k)
        out.append(found)
        first += len(part.regions)
    return out


@dataclass(frozen=True)
class OwnPair:
    """Two links of one robot that may have contact with each other.

    Attributes
    ----------
    a, b : int
        Numbers of their parts.
    rows : ndarray, (k,)
        Rows of v of the robot of the joints between them.
    """

    a: int
    b: int
    rows: np.ndarray
