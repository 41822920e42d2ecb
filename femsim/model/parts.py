"""What can come into contact and be sensed: the parts of bodies, and obstacles."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from contact import Shape
from meshes import TriMesh


@dataclass
class Part:
    """Something with a surface: its shapes, how it is drawn, and the body it belongs to."""

    name: str
    body: int
    link: int
    surface: str
    shapes: list[tuple[Shape, np.ndarray, np.ndarray]]
    visual: TriMesh | None
    nodes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    turns: bool = False
    triangles: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    self_contact: bool = False
