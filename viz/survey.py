"""Survey of a run before the first picture: extent, colour range, largest force and camera position."""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field as attribute
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from viz.errors import VizError
from viz.series import FrameSeries, open_frames

if TYPE_CHECKING:
    import pyvista

FloatArray = npt.NDArray[np.float64]
#: What a run is coloured by without a choice, the first that it has: soft bodies by stress, rods by tension.
SOFT_FIELDS = ("von_mises", "strain_energy_density", "contact_pressure", "velocity")
ROD_FIELDS = ("tension", "bending_moment")
#: What people call fields, and the fields that they mean.
WORDS = {
    "stress": "von_mises",
    "mises": "von_mises",
    "vonmises": "von_mises",
    "speed": "velocity",
    "pressure": "contact_pressure",
}
NO_FIELD = ""  # of runs whose bodies have none of those: nothing is coloured
TUBE_SIDES = 16
FEW_ARROWS = 6  # this many of the largest force hide nothing
LONGEST_ARROW = 0.16  # of the scene, for the largest force
STRONGEST = 6  # forces a frame whose arrows the camera shows whole


@dataclass(frozen=True)
class Frame:
    """One frame of a series: its number from 0, its time [s], and the series."""

    number: int
    time: float
    series: FrameSeries

    def read(self, part: str) -> pyvista.DataSet:
        """Read a part."""
        return self.series.read(self.number, part)


class Remembered:
    """Frames that are read twice, to be surveyed and to be drawn, from disk once: the first ones, as far as memory is given.

    Parameters
    ----------
    series : FrameSeries
        The frames; what is read of them must not be changed.
    """

    MEMORY = 256 * 1024  # KiB

    def __init__(self, series: FrameSeries) -> None:
        self._series = series
        self.path, self.times, self.parts = series.path, series.times, series.parts
        self._kept: dict[Hashable, pyvista.DataSet] = {}
        self._used = 0

    def read(self, number: int, part: str) -> pyvista.DataSet:
        """Read a part of a frame."""
        source = self.source(number, part)
        if source in self._kept:
            return self._kept[source]
        data = self._series.read(number, part)
        if self._used < self.MEMORY:
            self._kept[source] = data
            self._used += data.GetActualMemorySize()
        return data

    def source(self, number: int, part: str) -> Hashable:
        """Return what a part of a frame is read from."""
        return self._series.source(number, part)


def frames_of(run_dir: Path, every: int) -> list[Frame]:
    """Every n-th frame of a run, and its last."""
    series = Remembered(open_frames(run_dir))
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


def drawn_solid(data: pyvista.DataSet, thinnest: float = 0.0) -> Any:
    """Return the drawn shape of a part, with a fixed number of points: itself, a tube around a line, a ball at each particle.

    Rods below a radius of `thinnest` [m] are drawn with that one.
    """
    if is_line(data):
        if np.asarray(data.point_data["radius"]).min() < thinnest:
            data = data.copy()
            data.point_data["radius"] = np.maximum(np.asarray(data.point_data["radius"]), thinnest)
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

    corners: FloatArray  # (k, 3) m: corners of the boxes around the bodies that the camera must show, over all frames
    limit: float  # upper end of the colour range, in the field's own unit
    largest_force: float  # N: largest of a frame, but for 5 % of the frames (impacts)
    crowd: float  # largest sum of the forces of one frame, in units of the largest force
    decimals: int  # of the time, enough to distinguish neighbouring frames
    beyond: bool = False  # whether some values lie above the limit
    still: frozenset[str] = frozenset()  # parts that never move
    pushes: FloatArray = attribute(default_factory=lambda: np.zeros((0, 6)))  # (k, 6) m, N: the strongest forces of each frame

    @functools.cached_property
    def size(self) -> float:
        """Diagonal of the visible scene [m]."""
        return float(np.linalg.norm(np.ptp(self.corners, axis=0))) or 1.0

    @property
    def thinnest(self) -> float:
        """Radius below which a rod could not be seen [m]."""
        return 0.0015 * self.size

    @property
    def arrow_scale(self) -> float:
        """Arrow length per force [m/N]: a sixth of the scene for the largest, less if many would hide it."""
        if self.largest_force == 0.0:
            return 0.0
        return LONGEST_ARROW * self.size / self.largest_force * min(1.0, math.sqrt(FEW_ARROWS / max(self.crowd, 1e-9)))

    @property
    def longest_arrow(self) -> float:
        """Length at which arrows are cut [m], in a step whose forces are far above those of the rest."""
        return 1.25 * LONGEST_ARROW * self.size

    @property
    def framed(self) -> FloatArray:
        """What the camera must show, (k, 3) m: the bodies and the tails of the strongest forces."""
        if not len(self.pushes):
            return self.corners
        force = self.pushes[:, 3:] * self.arrow_scale
        length = np.linalg.norm(force, axis=1, keepdims=True)
        tails = self.pushes[:, :3] - force * np.minimum(1.0, self.longest_arrow / np.maximum(length, 1e-300))
        return np.concatenate([self.corners, tails])

    @staticmethod
    def joint(surveys: list[Survey]) -> Survey:
        """Return the survey that pictures of several runs share: same camera, colours and arrows."""
        return Survey(
            np.concatenate([survey.corners for survey in surveys]),
            max(survey.limit for survey in surveys),
            max(survey.largest_force for survey in surveys),
            max(survey.crowd for survey in surveys),
            max(survey.decimals for survey in surveys),
            any(survey.beyond for survey in surveys),
            frozenset.intersection(*(survey.still for survey in surveys)),
            np.concatenate([survey.pushes for survey in surveys]),
        )

    @staticmethod
    def of(frames: list[Frame], field: str, required: bool = True, *, inside: bool = False) -> Survey:
        """Scan the frames of a run; a field that is required and missing is an error. `inside` also looks into soft bodies."""
        boxes: dict[str, list[FloatArray]] = {}
        heights, highest = [], 0.0  # of the field: what nearly all of the visible surface stays below in a frame; the largest
        forces = Forces()
        skins: dict[str, Surface] = {}
        must, present = False, set[str]()  # whether some body must have the field, and the fields that bodies have
        for frame in frames:
            together: list[FloatArray] = []
            for name in frame.series.parts:
                if name == "floor":
                    continue
                data = frame.read(name)
                if name == "contacts":
                    forces.add(data)
                    continue
                if data.n_points:
                    boxes.setdefault(name, []).append(box_corners(data))
                if is_soft(data) or has_radius(data):
                    if name not in skins:
                        skins[name] = Surface(data, inside)
                    must = must or (required and (is_soft(data) or field != SOFT_FIELDS[0]))  # stress is no matter of rods
                    present.update(data.point_data.keys(), data.cell_data.keys())
                    values = skins[name].values(data, field)
                    if values is not None:
                        together.append(values[np.isfinite(values)])
            values = np.concatenate(together) if together else np.zeros(0)
            if values.size:
                highest = max(highest, float(values.max()))
                top = float(np.percentile(values, INSIDE_SHARE if inside else SURFACE_SHARE, method="higher"))
                if top <= 0.0 and (values > 0.0).any():  # zero nearly everywhere, e.g. contact pressure
                    top = float(np.percentile(values[values > 0.0], 98.0))
                heights.append(top)
        if must and not heights:
            near = [name for name in (WORDS.get(field.lower(), ""),) if name in present]
            near = near or difflib.get_close_matches(field, present, 1, 0.3)
            raise VizError(
                f"no soft body or rod of the run has a field {field!r}; "
                + (f"did you mean {near[0]!r}? Present" if near else "present")
                + f" are: {', '.join(sorted(present)) or 'none'}; femsim run --fields records others."
            )
        if not boxes:
            raise VizError("the frames show no body besides the floor; there is nothing to draw.")
        shown = [height for height in heights if height > 0.0]
        limit = float(np.percentile(shown, 95.0, method="higher")) if shown else 0.0  # but for one frame in 20, of impacts
        limit = round_up(limit) if limit > 0.0 else 1.0
        interval = min(np.diff([frame.time for frame in frames]), default=0.01)
        decimals = int(np.clip(np.ceil(-np.log10(interval) - 1e-6), 2, 6))
        corners, still = framed_corners(boxes, set(skins))
        return Survey(corners, limit, forces.largest, forces.crowd, decimals, highest > limit, still, forces.strongest)


#: Percent of the visible surface that the colour range covers.
SURFACE_SHARE = 90.0
#: Percent of all points, where a cut shows the inside; what is strained most is a small part of a body.
INSIDE_SHARE = 98.0


def chosen_field(frame: Frame) -> str:
    """Return what a scene is about: stress of soft bodies; tension where only rods are."""
    soft, rods = set[str](), set[str]()
    for name in frame.series.parts:
        if is_shown_body(name):
            data = frame.read(name)
            if is_soft(data) or has_radius(data):
                (soft if is_soft(data) else rods).update(data.point_data.keys(), data.cell_data.keys())
    return next((name for known, own in ((SOFT_FIELDS, soft), (ROD_FIELDS, rods)) for name in known if name in own), NO_FIELD)


def refuse_idle_field(field: str, frames: Iterable[Frame]) -> None:
    """Raise VizError where a field is asked for, but no frame has a soft body or rod that it could colour."""
    for frame in frames:
        for name in frame.series.parts:
            if is_shown_body(name):
                data = frame.read(name)
                if is_soft(data) or has_radius(data):
                    return
    raise VizError(f"the field {field!r} has nothing to colour: there are neither soft bodies nor rods; leave it out.")


class Surface:
    """Which points of a deformable body one sees, and what a field is there; the topology is that of the first frame."""

    def __init__(self, data: pyvista.DataSet, inside: bool = False) -> None:
        self._seen: npt.NDArray[np.intp] | None = None
        if is_soft(data) and not inside:
            bare: Any = data.copy(deep=False)
            bare.clear_data()
            bare.point_data["origin"] = np.arange(data.n_points)
            skin = bare.extract_surface(algorithm="dataset_surface", pass_pointid=False, pass_cellid=False)
            self._seen = np.asarray(skin.point_data["origin"])

    def values(self, data: pyvista.DataSet, field: str) -> FloatArray | None:
        """Return the field at the points that one sees; values of cells are averaged onto the points, as they are drawn."""
        values = field_values(data, field)
        if values is None:
            return None
        if field not in data.point_data:
            values = to_points(data, values)
        return values if self._seen is None else values[self._seen]


def to_points(data: Any, values: FloatArray) -> FloatArray:
    """Average values of cells onto the points; a point of no cell gets 0."""
    if is_soft(data):
        from vtkmodules.util.numpy_support import vtk_to_numpy

        cells = data.GetCells()
        corners: Any = vtk_to_numpy(cells.GetConnectivityArray())  # type: ignore[no-untyped-call]
        ends: Any = vtk_to_numpy(cells.GetOffsetsArray())  # type: ignore[no-untyped-call]
        total = np.bincount(corners, np.repeat(values, np.diff(ends)), data.n_points)
        return np.asarray(total / np.maximum(np.bincount(corners, minlength=data.n_points), 1))
    flat = data.copy(deep=False)
    flat.clear_data()
    flat.cell_data["values"] = values
    return np.asarray(flat.cell_data_to_point_data()["values"], dtype=np.float64)


class Forces:
    """Contact forces of a run, frame by frame."""

    def __init__(self) -> None:
        self._largest: list[float] = []  # of each frame with a contact
        self._sums: list[float] = []
        self._strongest: list[FloatArray] = []

    def add(self, contacts: pyvista.DataSet) -> None:
        """Add the part "contacts" of a frame."""
        force = np.asarray(contacts.point_data["force"], float) if "force" in contacts.point_data else np.zeros((0, 3))
        length = np.linalg.norm(force, axis=1)
        known = np.flatnonzero(np.isfinite(length))
        if not known.size or not length[known].max() > 0.0:
            return
        self._largest.append(float(length[known].max()))
        self._sums.append(float(length[known].sum()))
        chosen = known[np.argsort(length[known])[-STRONGEST:]]
        self._strongest.append(np.column_stack([np.asarray(contacts.points, float)[chosen], force[chosen]]))

    @property
    def largest(self) -> float:
        """Largest force of a frame [N], but for 5 % of the frames with contact; 0 without any."""
        return float(np.percentile(self._largest, 95.0, method="higher")) if self._largest else 0.0

    @property
    def crowd(self) -> float:
        """Largest sum of the forces of one frame, in units of the largest force."""
        return max(self._sums) / self.largest if self._sums else 0.0

    @property
    def strongest(self) -> FloatArray:
        """Points [m] and forces [N] of the strongest contacts of all frames, (k, 6)."""
        return np.concatenate(self._strongest) if self._strongest else np.zeros((0, 6))


def box_corners(data: pyvista.DataSet) -> FloatArray:
    """Corners of the box around a part, (8, 3) m."""
    x0, x1, y0, y1, z0, z1 = data.bounds
    return np.array([(x, y, z) for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)])


def framed_corners(boxes: dict[str, list[FloatArray]], soft: set[str]) -> tuple[FloatArray, frozenset[str]]:
    """Corners of all moving or soft bodies, and of fixed bodies that are not much larger; and which bodies never move."""
    moving = {name for name, history in boxes.items() if name in soft or np.ptp(history, axis=0).max() > 1e-9}
    still = frozenset(boxes.keys() - moving)
    moving = moving or set(boxes)
    shown = [np.concatenate(boxes[name]) for name in boxes if name in moving]
    extent = np.ptp(np.concatenate(shown), axis=0).max()
    for name, history in boxes.items():
        if name not in moving and np.ptp(history[0], axis=0).max() <= 2.0 * extent:
            shown.append(history[0])
    corners = np.concatenate(shown)
    return corners[np.isfinite(corners).all(axis=1)], still


def round_down(value: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is not above a positive value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * max(factor for factor in (1, 2, 5) if factor * power <= value))


def round_up(value: float) -> float:
    """Return the smallest number at or above a positive value whose quarter is easy to read."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * min(factor for factor in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10) if factor * power >= value))
