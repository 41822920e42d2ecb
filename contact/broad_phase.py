"""Broad phase: which bodies may have points near which shapes; kernels compare their bounding boxes in the world."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from contact.compiled import njit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class BroadPhase:
    """Runs of points, and room for the pairs of runs and shapes whose boxes overlap, see `contact.detect_kernels`.

    A run is a maximal range of consecutive points of one body, so walking the pairs walks the points in their
    order. Keep the points of a body together: alternating bodies give the same contacts, but slowly.

    Parameters
    ----------
    n_shapes : int
        Number of shapes.
    point_body : ndarray, (p,)
        Body of each point.

    Attributes
    ----------
    run_start : ndarray, (r + 1,)
        First point of each run, and the number of points.
    run_body : ndarray, (r,)
        Body of each run.
    pairs : ndarray, (s r, 2)
        Shape and run of each candidate pair, sorted; only the first ones, as many as the last search found, are valid.
    box : ndarray, (r, 2, 3), m
        Bounds of each run in the last search.
    """

    def __init__(self, n_shapes: int, point_body: IntArray) -> None:
        cuts = np.flatnonzero(np.diff(point_body)) + 1
        starts = np.concatenate([np.zeros(min(len(point_body), 1), dtype=np.int64), cuts])
        self.run_start: IntArray = np.append(starts, len(point_body)).astype(np.int64)
        self.run_body: IntArray = np.ascontiguousarray(point_body[starts], dtype=np.int64)
        self.pairs: IntArray = np.zeros((n_shapes * len(starts), 2), dtype=np.int64)
        self.box: FloatArray = np.empty((len(starts), 2, 3))


@njit(cache=True, _nrt=False)
def any_able(pairs: IntArray, count: int, able: BoolArray) -> bool:
    """Whether any of the first ``count`` pairs (n, 2) of a shape and a run of points is one of those that are able, (s, runs)."""
    for k in range(count):
        if able[pairs[k, 0], pairs[k, 1]]:
            return True
    return False
