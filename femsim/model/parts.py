"""Parts: what can have contact, be measured and be drawn."""

from __future__ import annotations

from dataclasses import dataclass, field

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
        None: with those to whose elements it is small, if nothing drives it.
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

    def __repr__(self) -> str:
        owner = "obstacle" if self.body < 0 else f"body {self.body}" + (f", link {self.link}" if self.link else "")
        made = [f"{len(self.shapes)} shapes"] * bool(self.shapes) + [f"{len(self.nodes)} points"] * bool(len(self.nodes))
        return f"<Part {self.name!r} of {owner}: {', '.join(made) or 'no contact'}>"


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
