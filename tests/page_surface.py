"""The surface that a page in the browser holds of a body, put where its node is."""

from __future__ import annotations

import io
from typing import Any

import numpy as np


def placed(node: Any, frame: Any) -> Any:
    """Read the GLB of a node of viser, and move it and then the frame that it is in as the browser does."""
    import trimesh

    solid: Any = trimesh.load(io.BytesIO(node.glb_data), file_type="glb", process=False, force="mesh")
    points = np.asarray(solid.vertices, dtype=np.float64)
    for pose in (node, frame):
        w, *u = np.asarray(pose.wxyz, dtype=np.float64)
        across = 2.0 * np.cross(u, points)
        points = points + w * across + np.cross(u, across) + np.asarray(pose.position)
    solid.vertices = points
    return solid
