"""A pad of elements that small things fall between."""

from __future__ import annotations

import femsim as fs


def add_pad(scene: fs.Scene, material: fs.Elastic) -> None:
    """Add a pad of elements of 10 mm below z = 0, held at its lower side."""
    scene.add_soft(
        "pad", fs.box_tets((0.1, 0.1, 0.02), (10, 10, 2)), material, position=(0, 0, -0.01), fixed=lambda x: x[:, 2] < -0.0199
    )
