"""Run folders to draw: a cube that rises and a box, and what is seen of them in pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from viz import PartFrame, PvdSeries
from viz.camera import View
from viz.canvas import Canvas

#: Of the pictures, pixels.
SIZE = (320, 240)
BOX_FACES = np.array([
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
])  # fmt: skip


def cube_tets(half: float) -> tuple[np.ndarray, np.ndarray]:
    """A cube as five tetrahedra."""
    points = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float) * half
    return points, np.array([[0, 4, 2, 1], [6, 4, 7, 2], [5, 4, 1, 7], [3, 1, 2, 7], [1, 4, 2, 7]])


def write_run(folder: Path, n_frames: int = 7, *, at_cells: bool = True) -> Path:
    """Write a soft cube that rises 60 mm, a rigid box 80 mm to its right, a huge floor and one contact of 3 N."""
    points, tets = cube_tets(0.02)
    floor = np.array([[-5, -5, 0], [5, -5, 0], [5, 5, 0], [-5, 5, 0]], dtype=float)
    with PvdSeries(folder / "frames.pvd", folder / "frames") as series:
        series.add_part("cube", points, tets, "tetra")
        series.add_part("box", points, BOX_FACES, "triangle")
        series.add_part("floor", floor, np.array([[0, 1, 2], [0, 2, 3]]), "triangle")
        series.add_part("contacts", None, None, "points")
        for number in range(n_frames):
            lift = np.array([0.0, 0.0, 0.02 + 0.06 * number / max(1, n_frames - 1)])
            stress = np.full(5 if at_cells else 8, 2e4 * number / max(1, n_frames - 1))
            touching = number == 0
            series.write_frame(
                0.04 * number,
                {
                    "cube": PartFrame(
                        points + lift,
                        {"velocity": np.full((8, 3), 0.1)} | ({} if at_cells else {"von_mises": stress}),
                        {"von_mises": stress} if at_cells else {},
                    ),
                    "box": PartFrame(points + lift + [0.08, 0, 0]),
                    "floor": PartFrame(floor + 0.001 * number * np.eye(3)[0]),  # a conveyor: moving, still not framed
                    "contacts": PartFrame(
                        np.full((int(touching), 3), [0.04, 0.0, 0.06]),
                        {"force": np.full((int(touching), 3), [0, 0, 3.0])},
                    ),
                },
            )
    return folder


def an_empty_canvas() -> Canvas:
    return Canvas(View(np.array([0.0, -3.0, 0.0]), np.zeros(3), np.array([0.0, 0.0, 1.0])), (64, 64))


def read_png(path: Path) -> np.ndarray:
    import imageio.v3

    return imageio.v3.imread(path).astype(int)


def is_rigid(picture: np.ndarray) -> np.ndarray:
    """Mask of the bluish grey of the box: darker than the floor, blue above red by the colour's own ratio."""
    red, green, blue = np.moveaxis(picture, -1, 0)
    return (blue > 70) & (blue < 215) & (blue > 1.2 * red) & (blue < 1.6 * red) & (green > red) & (green < blue)


def is_soft(picture: np.ndarray) -> np.ndarray:
    """Mask of the sand colour at the low end of the range: red above blue, little saturated; no arrows."""
    red, green, blue = np.moveaxis(picture, -1, 0)
    return (red > 1.15 * blue) & (green > 0.75 * red)
