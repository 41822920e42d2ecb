"""Broad phase: which bodies have points near which shapes, by their bounding boxes in the world."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from contact.compiled import Fixed
from contact.detect_kernels import candidate_pairs, group_boxes
from contact.errors import ContactError
from contact.shapes import ShapeTable

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class BroadPhase:
    """Bounding boxes of runs of points against bounding boxes of shapes.

    A run is a maximal range of consecutive points of one body, so walking the pairs walks the points in their
    order. Keep the points of a body together: alternating bodies give the same contacts, but slowly.

    Parameters
    ----------
    table : ShapeTable
        The s shapes.
    shape_body : ndarray, (s,)
        Body of each shape.
    point_body : ndarray, (p,)
        Body of each point.
    may_contact : ndarray of bool, (nb, nb)
        Whether points of body i are tested against shapes of body j, at [i, j].

    Attributes
    ----------
    run_start : ndarray, (r + 1,)
        First point of each run, and the number of points.
    run_body : ndarray, (r,)
        Body of each run.
    pairs : ndarray, (s r, 2)
        Shape and run of each candidate pair; only the first ones, as many as ``candidates`` returned, are valid.
    """

    def __init__(self, table: ShapeTable, shape_body: IntArray, point_body: IntArray, may_contact: npt.NDArray[np.bool_]) -> None:
        cuts = np.flatnonzero(np.diff(point_body)) + 1
        starts = np.concatenate([np.zeros(min(len(point_body), 1), dtype=np.int64), cuts])
        self.run_start: IntArray = np.append(starts, len(point_body)).astype(np.int64)
        self.pairs: IntArray = np.zeros((len(shape_body) * len(starts), 2), dtype=np.int64)
        self.run_body: IntArray = np.ascontiguousarray(point_body[starts], dtype=np.int64)
        self._shape_body = shape_body
        self._may_contact = may_contact
        self._table = table
        self._box = np.empty((len(starts), 2, 3))
        self._group_boxes, self._candidate_pairs = Fixed(group_boxes), Fixed(candidate_pairs)

    def candidates(self, points: FloatArray, reach: FloatArray, shape_rotation: FloatArray, shape_translation: FloatArray) -> int:
        """Find the pairs whose boxes overlap, sorted by shape, then run; they are in ``pairs``.

        Parameters
        ----------
        points : ndarray, (p, 3), m
            World positions.
        reach : ndarray, (p,), m
            Radius plus margin of each point.
        shape_rotation, shape_translation : ndarray, (s, 3, 3) and (s, 3), m
            World poses of the shapes.

        Returns
        -------
        int
            Number of pairs.

        Raises
        ------
        ContactError
            When a point is not finite.
        """
        bad = self._group_boxes(points, reach, self.run_start, self._box)
        if bad >= 0:
            raise ContactError(
                f"detect: points[{bad}] is {points[bad].tolist()}; positions must be finite: the step before "
                "this one went wrong (try a smaller time step)."
            )
        return int(
            self._candidate_pairs(
                self._box,
                self.run_body,
                self._shape_body,
                self._may_contact,
                self._table.kind,
                self._table.box_centre,
                self._table.box_half,
                shape_rotation,
                shape_translation,
                self.pairs,
            )
        )
