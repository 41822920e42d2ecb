"""Parts of a time series and the checks of their frames, shared by all formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from viz.errors import VizError

__all__ = ["Part", "PartFrame", "PartKind", "PartRegister", "stored_fields"]

PartKind = Literal["tetra", "triangle", "line", "points"]

_CORNERS: dict[str, int] = {"tetra": 4, "triangle": 3, "points": 1}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")


@dataclass(frozen=True)
class PartFrame:
    """One part at one time.

    Attributes
    ----------
    points : ndarray, shape (n, 3)
        Positions [m]. n is fixed by `PvdSeries.add_part`, except for parts of kind "points".
    point_data : mapping of str to ndarray, shape (n,) or (n, k)
        Fields on the points. Floats are stored as float32, integers and booleans as int32.
    cell_data : mapping of str to ndarray, shape (m,) or (m, k)
        Fields on the cells; m = n for parts of kind "points".
    """

    points: npt.ArrayLike
    point_data: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    cell_data: Mapping[str, npt.ArrayLike] = field(default_factory=dict)


@dataclass
class Part:
    """One part: its topology and, after the first frame, its fields.

    Attributes
    ----------
    name : str
        Name.
    kind : {"tetra", "triangle", "line", "points"}
        What the cells are.
    n_points : int
        Number of points; 0 for "points", where it may change.
    cells : ndarray of int32, shape (m, corners)
        Corners of each cell; none for "points".
    points_dtype : dtype
        Precision of stored positions.
    fields : dict, optional
        Trailing shape of each field: ``{"point": {name: shape}, "cell": {name: shape}}``.
    """

    name: str
    kind: PartKind
    n_points: int
    cells: npt.NDArray[np.int32]
    points_dtype: np.dtype[Any]
    fields: dict[str, dict[str, tuple[int, ...]]] | None = None

    def check(self, frame: PartFrame) -> None:
        """Raise VizError unless the frame fits this part; changes nothing."""
        points = checked_points(self.name, frame.points)
        if self.kind != "points" and points.shape[0] != self.n_points:
            raise VizError(
                f"part {self.name!r} has {self.n_points} points but the frame brings {points.shape[0]}; only "
                "parts of "
                "kind 'points' may change their number."
            )
        n_cells = points.shape[0] if self.kind == "points" else len(self.cells)
        fields = {
            "point": _checked_fields(self.name, "point", frame.point_data, points.shape[0]),
            "cell": _checked_fields(self.name, "cell", frame.cell_data, n_cells),
        }
        if self.fields is not None and fields != self.fields:
            raise VizError(
                f"the fields of part {self.name!r} changed from {_listed(self.fields)} to "
                f"{_listed(fields)}; every "
                "frame must bring the same fields with the same number of components."
            )


class PartRegister:
    """The parts of one series and the rules for its frames.

    Parameters
    ----------
    where : str
        The series in messages.
    points_dtype : {"float64", "float32"}
        Precision of stored positions.

    Raises
    ------
    VizError
        When the precision is not one of those.
    """

    def __init__(self, where: str, points_dtype: str) -> None:
        if points_dtype not in ("float64", "float32"):
            raise VizError(f"points_dtype is {points_dtype!r}; allowed are 'float64' and 'float32'.")
        self.parts: dict[str, Part] = {}
        self.n_frames = 0
        self.closed = False
        self._where = where
        self._dtype: np.dtype[Any] = np.dtype(points_dtype)
        self._last_time = -np.inf

    def add(self, name: str, points: npt.ArrayLike | None, cells: npt.ArrayLike | None, kind: PartKind) -> Part:
        """Register a part; the rules are those of `PvdSeries.add_part`."""
        self._require_open()
        if self.n_frames:
            raise VizError(f"part {name!r} was added after the first frame; add all parts before write_frame.")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise VizError(
                f"the part name {name!r} is not allowed; use 1 to 100 letters, digits, '_', '-' or '.', "
                "starting with "
                "a letter or digit (it becomes a file name)."
            )
        if name.casefold() in (other.casefold() for other in self.parts):
            raise VizError(f"the part name {name!r} is taken (upper and lower case count as equal); choose another.")
        if kind not in get_args(PartKind):
            raise VizError(f"part {name!r} has kind {kind!r}; allowed are 'tetra', 'triangle', 'line' and 'points'.")
        if kind in ("points", "line") and cells is not None and np.size(cells):
            raise VizError(f"part {name!r} of kind {kind!r} was given cells; pass cells=None, its points say all.")
        if kind == "points":
            part = Part(name, kind, 0, np.zeros((0, 1), np.int32), self._dtype)
        elif kind == "line":
            n_points = 0 if points is None else checked_points(name, points).shape[0]
            if n_points < 2:
                raise VizError(f"part {name!r} of kind 'line' has {n_points} points; a line needs at least two.")
            part = Part(name, kind, n_points, np.arange(n_points, dtype=np.int32)[None], self._dtype)
        else:
            if points is None or cells is None:
                raise VizError(f"part {name!r} of kind {kind!r} needs both points and cells.")
            n_points = checked_points(name, points).shape[0]
            part = Part(name, kind, n_points, _checked_cells(name, kind, cells, n_points), self._dtype)
        self.parts[name] = part
        return part

    def check(self, time: float, parts: Mapping[str, PartFrame]) -> float:
        """Raise VizError unless the frame fits; return its time."""
        self._require_open()
        time = float(time)
        if not (np.isfinite(time) and time > self._last_time):
            raise VizError(f"frame time {time} s is not allowed; it must be finite and later than {self._last_time} s.")
        if not self.parts:
            raise VizError("write_frame was called before any add_part; register the parts first.")
        if parts.keys() != self.parts.keys():
            missing, unknown = (
                sorted(self.parts.keys() - parts.keys()),
                sorted(parts.keys() - self.parts.keys()),
            )
            raise VizError(f"a frame needs every registered part once; missing: {missing}, not registered: {unknown}.")
        for name, part in self.parts.items():
            part.check(parts[name])
        return time

    def written(self, time: float, parts: Mapping[str, PartFrame]) -> None:
        """Record that a checked frame has been written."""
        for name, part in self.parts.items():
            frame = parts[name]
            part.fields = {
                place: {field: np.asarray(values).shape[1:] for field, values in fields.items()}
                for place, fields in (("point", frame.point_data), ("cell", frame.cell_data))
            }
        self.n_frames += 1
        self._last_time = time

    def go_on(self, n_frames: int, last_time: float) -> None:
        """Go on after so many frames, the last one at a time."""
        self.n_frames, self._last_time = n_frames, last_time

    def _require_open(self) -> None:
        if self.closed:
            raise VizError(f"the series {self._where} is closed; make a new one.")


def checked_points(name: str, points: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(points)
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "fiu":
        raise VizError(
            f"the points of part {name!r} have shape {array.shape} and type {array.dtype}; they must be (n, 3) numbers."
        )
    return array


def _checked_cells(name: str, kind: PartKind, cells: npt.ArrayLike, n_points: int) -> npt.NDArray[np.int32]:
    array = np.asarray(cells)
    corners = _CORNERS[kind]
    if array.ndim != 2 or array.shape[1] != corners or array.dtype.kind not in "iu":
        raise VizError(
            f"the cells of part {name!r} have shape {array.shape} and type {array.dtype}; kind {kind!r} "
            "needs integers "
            f"of shape (m, {corners})."
        )
    if array.size and (array.min() < 0 or array.max() >= n_points):
        raise VizError(f"the cells of part {name!r} name points {array.min()} to {array.max()}; allowed are 0 to {n_points - 1}.")
    return np.ascontiguousarray(array, dtype=np.int32)


def _checked_fields(part: str, place: str, fields: Mapping[str, npt.ArrayLike], length: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for name, values in fields.items():
        array = np.asarray(values)
        if not name or not name.isprintable():
            raise VizError(f"the {place} field name {name!r} of part {part!r} is not allowed; use printable characters.")
        if array.dtype.kind not in "fiub":
            raise VizError(f"the {place} field {name!r} of part {part!r} has type {array.dtype}; it must be real numbers.")
        if array.ndim not in (1, 2) or array.shape[0] != length:
            raise VizError(
                f"the {place} field {name!r} of part {part!r} has shape {array.shape}; it must be "
                f"({length},) or "
                f"({length}, k), one row for each {place}."
            )
        shapes[name] = array.shape[1:]
    return shapes


def _listed(fields: Mapping[str, Mapping[str, tuple[int, ...]]]) -> str:
    return (
        ", ".join(f"{place} {name}{list(shape) or ''}" for place, names in fields.items() for name, shape in names.items())
        or "none"
    )


def stored_fields(fields: Mapping[str, npt.ArrayLike]) -> dict[str, npt.NDArray[Any]]:
    """Copy fields in their stored type: float32 or int32."""
    arrays = {name: np.asarray(values) for name, values in fields.items()}
    return {name: array.astype(np.float32 if array.dtype.kind == "f" else np.int32) for name, array in arrays.items()}
