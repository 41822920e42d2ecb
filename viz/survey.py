"""Survey of a run before the first picture: extent, colour range, largest force and camera position."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from viz.errors import VizError
from viz.series import FrameSeries, open_frames

if TYPE_CHECKING:
    import pyvista

FloatArray = npt.NDArray[np.float64]
Camera = str | Sequence[Sequence[float]]
# Direction from the scene to the camera, and which way is up in the picture.
CAMERAS: dict[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "iso": ((0.55, -1.0, 0.48), (0.0, 0.0, 1.0)),
    "front": ((0.0, -1.0, 0.0), (0.0, 0.0, 1.0)),
    "side": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "top": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)),
}
VIEW_ANGLE = 24.0  # degrees, vertical: a long lens, little distortion
DEFAULT_FIELD = "von_mises"  # optional in a run without soft bodies
TUBE_SIDES = 16
FEW_ARROWS = 6  # this many of the largest force hide nothing


@dataclass(frozen=True)
class Frame:
    """One frame of a series: its number from 0, its time [s], and the series."""

    number: int
    time: float
    series: FrameSeries

    def read(self, part: str) -> pyvista.DataSet:
        """Read a part."""
        return self.series.read(self.number, part)


def frames_of(run_dir: Path, every: int) -> list[Frame]:
    """Every n-th frame of a run, and its last."""
    series = open_frames(run_dir)
    frames = [Frame(number, time, series) for number, time in enumerate(series.times)]
    chosen = frames[::every]
    return chosen if chosen[-1] is frames[-1] else [*chosen, frames[-1]]


def is_soft(data: Any) -> bool:
    """Whether a part consists of tetrahedra."""
    return bool(data.IsA("vtkUnstructuredGrid"))


def is_shown_body(name: str) -> bool:
    """Whether a part is drawn as a body."""
    return name not in ("floor", "contacts")


def is_line(data: Any) -> bool:
    """Whether a part is a rod."""
    return bool(data.IsA("vtkPolyData") and data.GetNumberOfLines())


def has_radius(data: Any) -> bool:
    """Whether a part is drawn by the radius that its points carry: a rod, or a cloud of particles."""
    return is_line(data) or bool(data.IsA("vtkPolyData") and not data.GetNumberOfPolys() and "radius" in data.point_data)


def drawn_solid(data: pyvista.DataSet) -> Any:
    """Return the drawn shape of a part, with a fixed number of points: itself, a tube around a line, a ball at each particle."""
    if is_line(data):
        return data.tube(scalars="radius", absolute=True, n_sides=TUBE_SIDES)
    if has_radius(data):
        import pyvista

        return data.glyph(scale="radius", orient=False, geom=pyvista.Sphere(radius=1.0, theta_resolution=16, phi_resolution=12))
    return data


def has_faces(data: Any) -> bool:
    """Return False for parts of loose points without a radius, such as markers, which are not drawn."""
    return bool(data.GetNumberOfPolys() if data.IsA("vtkPolyData") else data.n_cells)


def field_values(data: pyvista.DataSet, field: str) -> FloatArray | None:
    """Return the field as one number per point or cell (vectors by their length), or None without it."""
    for place in (data.point_data, data.cell_data):
        if field in place:
            values = np.asarray(place[field], dtype=np.float64)
            return np.asarray(values if values.ndim == 1 else np.linalg.norm(values, axis=1))
    return None


@dataclass(frozen=True)
class Survey:
    """Data of the whole run that the first picture needs."""

    corners: FloatArray  # (k, 3) m: corners of the boxes around what the camera must show, over all frames
    limit: float  # upper end of the colour range, in the field's own unit
    largest_force: float  # N
    crowd: float  # largest sum of the forces of one frame, in units of the largest force
    decimals: int  # of the time, enough to distinguish neighbouring frames

    @property
    def size(self) -> float:
        """Diagonal of the visible scene [m]."""
        return float(np.linalg.norm(np.ptp(self.corners, axis=0))) or 1.0

    @property
    def arrow_scale(self) -> float:
        """Arrow length per force [m/N]: a quarter of the scene for the largest, less if many would hide it."""
        if self.largest_force == 0.0:
            return 0.0
        return 0.25 * self.size / self.largest_force * min(1.0, math.sqrt(FEW_ARROWS / self.crowd))

    @staticmethod
    def joint(surveys: list[Survey]) -> Survey:
        """Return the survey that pictures of several runs share: same camera, colours and arrows."""
        return Survey(
            np.concatenate([survey.corners for survey in surveys]),
            max(survey.limit for survey in surveys),
            max(survey.largest_force for survey in surveys),
            max(survey.crowd for survey in surveys),
            max(survey.decimals for survey in surveys),
        )

    @staticmethod
    def of(frames: list[Frame], field: str) -> Survey:
        """Scan the frames of a run."""
        boxes: dict[str, list[FloatArray]] = {}
        samples: list[FloatArray] = []
        largest, together = 0.0, 0.0
        soft_names = set[str]()
        must, present = False, set[str]()  # whether some body must have the field, and the fields that bodies have
        for frame in frames:
            for name in frame.series.parts:
                if name == "floor":
                    continue
                data = frame.read(name)
                if name == "contacts":
                    force = np.asarray(data.point_data["force"]) if "force" in data.point_data else np.zeros((0, 3))
                    if force.size:
                        length = np.linalg.norm(force, axis=1)
                        largest, together = max(largest, float(np.nanmax(length))), max(together, float(np.nansum(length)))
                    continue
                if data.n_points:
                    boxes.setdefault(name, []).append(box_corners(data))
                if is_soft(data):
                    soft_names.add(name)
                if is_soft(data) or has_radius(data):
                    must = must or is_soft(data) or field != DEFAULT_FIELD
                    present.update(data.point_data.keys(), data.cell_data.keys())
                    values = field_values(data, field)
                    if values is not None:
                        values = values[np.isfinite(values)]
                        samples.append(values[:: max(1, values.size // 5000)])
        if must and not samples:
            near = difflib.get_close_matches(field, present, 1, 0.3)
            raise VizError(
                f"no soft body or rod of the run has a field {field!r}; "
                + (f"did you mean {near[0]!r}? " if near else "")
                + f"Present are: {', '.join(sorted(present)) or 'none'}."
            )
        if not boxes:
            raise VizError("the frames show no body besides the floor; there is nothing to draw.")
        values = np.concatenate(samples) if samples else np.ones(1)
        limit = float(np.percentile(values, 98.0)) if values.size else 1.0
        if limit == 0.0 and values.any():  # zero nearly everywhere, e.g. contact pressure
            limit = float(np.percentile(values[values > 0.0], 98.0))
        interval = min(np.diff([frame.time for frame in frames]), default=0.01)
        decimals = int(np.clip(np.ceil(-np.log10(interval) - 1e-6), 2, 6))
        crowd = together / largest if largest > 0.0 else 0.0
        return Survey(framed_corners(boxes, soft_names), round_up(limit) if limit > 0 else 1.0, largest, crowd, decimals)


def box_corners(data: pyvista.DataSet) -> FloatArray:
    """Corners of the box around a part, (8, 3) m."""
    x0, x1, y0, y1, z0, z1 = data.bounds
    return np.array([(x, y, z) for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)])


def framed_corners(boxes: dict[str, list[FloatArray]], soft: set[str]) -> FloatArray:
    """Corners of all moving or soft bodies, and of fixed bodies that are not much larger."""
    moving = {name for name, history in boxes.items() if name in soft or np.ptp(history, axis=0).max() > 1e-9} or boxes.keys()
    shown = [np.concatenate(boxes[name]) for name in moving]
    extent = np.ptp(np.concatenate(shown), axis=0).max()
    for name, history in boxes.items():
        if name not in moving and np.ptp(history[0], axis=0).max() <= 2.0 * extent:
            shown.append(history[0])
    corners = np.concatenate(shown)
    return corners[np.isfinite(corners).all(axis=1)]


@dataclass(frozen=True)
class View:
    """Camera position and focal point [m], and its up direction."""

    position: FloatArray
    focal_point: FloatArray
    up: FloatArray


def placed_camera(camera: Camera, survey: Survey, aspect: float) -> View:
    """Place a named or given camera."""
    if isinstance(camera, str):
        if camera not in CAMERAS:
            raise VizError(
                f"the camera {camera!r} is not known; allowed are {', '.join(map(repr, CAMERAS))} or three "
                "3-vectors "
                "(position, focal point, up)."
            )
        direction, up = (np.array(v) for v in CAMERAS[camera])
        return fitted_view(direction / np.linalg.norm(direction), up, survey.corners, aspect)
    try:
        explicit = np.array(camera, dtype=np.float64)
    except (TypeError, ValueError):
        explicit = np.empty(0)
    if explicit.shape != (3, 3) or not np.isfinite(explicit).all():
        raise VizError(f"the camera {camera!r} is not allowed; give three 3-vectors (position, focal point, up).")
    sight = explicit[1] - explicit[0]
    if np.linalg.norm(np.cross(sight, explicit[2])) <= 1e-9 * np.linalg.norm(sight) * np.linalg.norm(explicit[2]):
        raise VizError(f"the camera {camera!r} looks along its own up direction or nowhere; choose another up vector.")
    return View(explicit[0], explicit[1], explicit[2])


def fitted_view(direction: FloatArray, up: FloatArray, corners: FloatArray, aspect: float) -> View:
    """Place the camera so that all corners just fit, with space at the right for the colour bar."""
    right = np.cross(up, direction)
    right /= np.linalg.norm(right)
    above = np.cross(direction, right)
    local = corners @ np.column_stack([right, above, direction])  # x right, y up, z towards the camera
    tan_y = np.tan(np.radians(VIEW_ANGLE / 2))
    reach = np.array([0.80 * tan_y * aspect, 0.80 * tan_y])  # the share of the picture that is filled
    middle = (local.min(axis=0) + local.max(axis=0)) / 2
    distance = 0.0
    for _ in range(20):  # centre what perspective shows, then step back until it fits; converges at once or nearly so
        offset = local - middle
        distance = float((np.abs(offset[:, :2]) / reach + offset[:, 2:]).max()) or 1.0
        seen = offset[:, :2] / (distance - offset[:, 2:])
        middle[:2] += 0.5 * distance * (seen.min(axis=0) + seen.max(axis=0)) / 2
    middle[0] += 0.05 * distance * tan_y * aspect  # shift the scene left, away from the colour bar
    focal = right * middle[0] + above * middle[1] + direction * middle[2]
    return View(focal + distance * direction, focal, above)


def round_down(value: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is not above a positive value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * max(factor for factor in (1, 2, 5) if factor * power <= value))


def round_up(value: float) -> float:
    """Return the smallest number at or above a positive value whose quarter is easy to read."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * min(factor for factor in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10) if factor * power >= value))
