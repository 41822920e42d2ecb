"""Small parts and frames of a series."""

from pathlib import Path

import numpy as np

from viz import HdfSeries, PartFrame, PvdSeries

TET_POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=float)


TETS = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])


TRIANGLES = np.array([[0, 1, 2], [0, 2, 3]])


def make_series(folder: Path, **options) -> PvdSeries:
    series = PvdSeries(folder / "frames.pvd", folder / "frames", **options)
    add_small_parts(series)
    return series


def add_small_parts(series: PvdSeries | HdfSeries) -> None:
    series.add_part("ball", TET_POINTS, TETS, "tetra")
    series.add_part("pad", TET_POINTS[:4], TRIANGLES, "triangle")
    series.add_part("contacts", None, None, "points")


def make_frame(number: int, seed: int = 1) -> dict[str, PartFrame]:
    """Random but repeatable values; the number of contacts is 0, 1, 2, 0, ..."""
    rng = np.random.default_rng([seed, number])
    k = number % 3
    return {
        "ball": PartFrame(
            TET_POINTS + rng.standard_normal((5, 3)) / 3,
            {"velocity": rng.standard_normal((5, 3)), "marker": rng.integers(-9, 9, 5)},
            {"von_mises": rng.random(2)},
        ),
        "pad": PartFrame(TET_POINTS[:4] + rng.standard_normal((4, 3))),
        "contacts": PartFrame(
            rng.standard_normal((k, 3)),
            {"force": rng.standard_normal((k, 3)), "gap": rng.standard_normal(k), "state": np.arange(k) > 0},
        ),
    }
