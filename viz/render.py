"""Pictures and a film of a run folder, drawn without a display.

VTK's renderer needs OpenGL from the system. Where it is missing the process dies by a segmentation fault
instead of an exception, so `probe_rendering` draws a tiny picture in a child process first, once per process,
and everything here asks it before touching the renderer.
"""

from __future__ import annotations

import difflib
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from viz.errors import VizError
from viz.vtk_series import read_part, read_pvd

if TYPE_CHECKING:
    import pyvista

__all__ = ["RenderResult", "RenderingStatus", "probe_rendering", "render_run"]

FloatArray = npt.NDArray[np.float64]
Camera = str | Sequence[Sequence[float]]

PROBE = """
import pyvista
plotter = pyvista.Plotter(off_screen=True, window_size=(16, 16))
plotter.add_mesh(pyvista.Sphere(), color="black")
picture = plotter.screenshot(None, return_img=True)
assert picture.shape == (16, 16, 3) and picture.std() > 1, "the picture is empty"
"""
PROBE_SECONDS = 120.0
INSTALL_HINT = "apt-get install -y --no-install-recommends libegl1 libgl1-mesa-dri"

# Direction from the scene to the camera, and which way is up in the picture.
CAMERAS: dict[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "iso": ((0.55, -1.0, 0.48), (0.0, 0.0, 1.0)),
    "front": ((0.0, -1.0, 0.0), (0.0, 0.0, 1.0)),
    "side": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "top": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)),
}
VIEW_ANGLE = 24.0  # degrees, vertical: a long lens, little distortion

BACKGROUND = "#ffffff"
INK = "#2b2f36"
ARROW = "#c8102e"
DEFAULT_FIELD = "von_mises"  # a run without soft bodies need not have it
TUBE_SIDES = 16
ROD = "#c98a2b"
RIGID = ("#8fa3b8", "#b9c0c8", "#6f8296", "#a7b7a9", "#c2b8a8")
COLOURS = ("#f0dfb4", "#a9d3b4", "#4fb0b8", "#2a72ad", "#283a86", "#1a1a4d")  # light to dark, also in grey

# Fields by name: quantity in the legend, unit in the file. A name may also end in its unit, as `gap_m` does.
_QUANTITIES = {
    "von_mises": ("von Mises stress", "Pa"),
    "velocity": ("speed", "m/s"),
    "displacement": ("displacement", "m"),
    "contact_force": ("contact force", "N"),
    "tension": ("tension", "N"),
    "bending_moment": ("bending moment", "N m"),
    "twisting_moment": ("twisting moment", "N m"),
    "force": ("force", "N"),
    "pressure": ("pressure", "Pa"),
    "stress": ("stress", "Pa"),
    "strain": ("strain", ""),
}
_UNIT_SUFFIXES = {"Pa": "Pa", "N": "N", "m": "m", "mps": "m/s", "J": "J"}
_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "Pa": ((1e9, "GPa"), (1e6, "MPa"), (1e3, "kPa"), (1.0, "Pa")),
    "m": ((1.0, "m"), (1e-3, "mm"), (1e-6, "µm")),
    "m/s": ((1.0, "m/s"), (1e-3, "mm/s"), (1e-6, "µm/s")),
    "N": ((1e3, "kN"), (1.0, "N"), (1e-3, "mN")),
    "N m": ((1.0, "N m"), (1e-3, "N mm")),
    "J": ((1.0, "J"), (1e-3, "mJ")),
}


@dataclass(frozen=True)
class RenderingStatus:
    """Whether pictures can be drawn on this machine.

    Attributes
    ----------
    ok : bool
        True when the trial picture was right.
    message : str
        What was found; when not ok, also what to install.
    """

    ok: bool
    message: str


@dataclass(frozen=True)
class RenderResult:
    """The files that `render_run` wrote.

    Attributes
    ----------
    frames : list of Path
        The PNG stills, in order of time.
    mp4 : Path or None
        The film, or None when it was not asked for.
    """

    frames: list[Path]
    mp4: Path | None


def probe_rendering() -> RenderingStatus:
    """Draw a 16 x 16 picture in a child process and say whether it worked; asked once per process.

    Returns
    -------
    RenderingStatus
        ``ok`` and a sentence; never raises.
    """
    return _probe_once()


@functools.cache
def _probe_once() -> RenderingStatus:
    try:
        child = subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, **_render_environment()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        reason = f"a trial picture took longer than {PROBE_SECONDS:.0f} s"
    except OSError as error:
        reason = f"the trial process could not be started ({error})"
    else:
        if child.returncode == 0:
            return RenderingStatus(True, "off-screen rendering works")
        last = (child.stderr.strip().splitlines() or [""])[-1].strip()
        if child.returncode < 0:
            reason = f"the trial process died of {_signal_name(-child.returncode)}"
        else:
            reason = f"the trial process ended with status {child.returncode}"
        reason += f" ({last})" if last else ""
    return RenderingStatus(
        False,
        f"Pictures cannot be drawn on this machine: {reason}. OpenGL from the system is missing or broken; "
        "on Debian or "
        f"Ubuntu run: {INSTALL_HINT}",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _render_environment() -> dict[str, str]:
    """Variables that make VTK draw without a display; nothing where there is one or the user chose."""
    if os.environ.get("DISPLAY") or "VTK_DEFAULT_OPENGL_WINDOW" in os.environ or not sys.platform.startswith("linux"):
        return {}
    return {"VTK_DEFAULT_OPENGL_WINDOW": "vtkEGLRenderWindow"}


@contextmanager
def _without_display() -> Iterator[None]:
    """Hold `_render_environment` while a window is made."""
    added = _render_environment()
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def render_run(
    run_dir: Path,
    *,
    out: Path | None = None,
    fps: float = 25.0,
    size: tuple[int, int] = (1280, 960),
    every: int = 1,
    stills: int = 5,
    field: str = DEFAULT_FIELD,
    mp4: bool = True,
    camera: Camera = "iso",
    arrows: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> RenderResult:
    """Draw a run folder: PNG stills and an mp4 film.

    Parts of tetrahedra (.vtu) are coloured by `field`, lines (rods) drawn as tubes of their point field ``radius`` [m] and
    coloured too where they have it, other surfaces (.vtp) drawn in greys and blues, the part "floor" as a plane with a light
    chequer, the part "contacts" as arrows of its point field ``force`` [N] that end at the contact. Camera, colour range (0
    to the 98th percentile over the run, rounded up) and arrow scale (the largest is a quarter of the scene) are the same in
    all frames.

    Parameters
    ----------
    run_dir : Path
        Run folder with frames.pvd.
    out : Path, optional
        Folder of the pictures, by default ``RUN/pictures``; files of the same name are replaced.
    fps : float
        Film frames a second, > 0; each drawn frame of the run is one film frame.
    size : (int, int)
        Width and height [pixel], 64 to 8192; odd numbers are rounded up (the film needs even ones).
    every : int
        Draw every this many frames of the run, >= 1; the last frame is always drawn.
    stills : int
        Number of PNG pictures, evenly spaced in the drawn frames, first and last included; 0 for none.
    field : str
        Point or cell field of the soft bodies and rods; of vectors the length is shown.
    mp4 : bool
        Write ``run.mp4`` (H.264, yuv420p).
    camera : {"iso", "front", "side", "top"} or (position, focal point, up)
        "front" looks along +y (x right, z up), "side" along -x (y right), "top" along -z (x right, y up).
        Three 3-vectors [m] give a camera outright.
    arrows : bool
        Draw the contact forces.
    progress : callable, optional
        Called as ``progress(done, total)`` after each drawn frame.

    Returns
    -------
    RenderResult
        The files written.

    Raises
    ------
    VizError
        When the run folder, its frames or the field are missing, an option is not allowed, or nothing can be
        drawn on this machine (the message then names the packages to install).
    """
    run_dir = Path(run_dir)
    width, height = _checked_options(size, fps, every, stills, mp4)
    frames = _frames_of(run_dir, every)
    drawn_stills = _still_numbers(len(frames), stills)
    survey = _Survey.of(frames, field)
    view = _placed_camera(camera, survey, width / height)
    status = probe_rendering()
    if not status.ok:
        raise VizError(status.message)

    out = run_dir / "pictures" if out is None else Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise VizError(f"the picture folder {out} cannot be made ({error.strerror}); choose another with out=.") from error
    written: list[Path] = []
    film_path = out / "run.mp4"
    film = _Film(film_path, (width, height), fps) if mp4 else None
    numbers = range(len(frames)) if mp4 else sorted(drawn_stills)
    stage: _Stage | None = None
    try:
        stage = _Stage(frames[0].files, survey, view, (width, height), field, arrows)
        for done, number in enumerate(numbers, start=1):
            picture = stage.draw(frames[number])
            if number in drawn_stills:
                written.append(_write_png(out / f"frame_{frames[number].number:06d}.png", picture))
            if film is not None:
                film.add(picture)
            if progress is not None:
                progress(done, len(numbers))
        if film is not None:
            film.finish()
    finally:
        if stage is not None:
            stage.close()
        if film is not None:
            film.abandon()
    return RenderResult(written, film_path if mp4 else None)


@dataclass(frozen=True)
class _Frame:
    number: int  # in the run, from 0
    time: float  # s
    files: dict[str, Path]


def _checked_options(size: tuple[int, int], fps: float, every: int, stills: int, mp4: bool) -> tuple[int, int]:
    if len(size) != 2 or not all(64 <= pixels <= 8192 for pixels in size):
        raise VizError(f"size is {size}; it must be (width, height) with 64 to 8192 pixels each.")
    if not (np.isfinite(fps) and 0 < fps <= 240):
        raise VizError(f"fps is {fps}; it must be above 0 and at most 240 film frames a second.")
    if every < 1:
        raise VizError(f"every is {every}; it must be 1 (all frames) or more.")
    if stills < 0 or (stills == 0 and not mp4):
        raise VizError(f"stills is {stills} and mp4 is {mp4}; ask for at least one still or the film.")
    return size[0] + size[0] % 2, size[1] + size[1] % 2


def _frames_of(run_dir: Path, every: int) -> list[_Frame]:
    if not run_dir.is_dir():
        raise VizError(f"the run folder {run_dir} does not exist; give the folder that a run wrote.")
    index = run_dir / "frames.pvd"
    if not index.is_file():
        raise VizError(f"{run_dir} holds no frames.pvd; give the folder of a run that recorded frames in pvd format.")
    frames = [_Frame(number, time, files) for number, (time, files) in enumerate(read_pvd(index))]
    if not frames:
        raise VizError(f"{index} lists no frames; the run ended before its first one.")
    chosen = frames[::every]
    return chosen if chosen[-1] is frames[-1] else [*chosen, frames[-1]]


def _still_numbers(n_frames: int, stills: int) -> set[int]:
    return {round(float(x)) for x in np.linspace(0, n_frames - 1, stills)} if stills != 1 else {n_frames - 1}


def _is_soft(file: Path) -> bool:
    return file.suffix == ".vtu"


def _is_shown_body(name: str) -> bool:
    return name not in ("floor", "contacts")


def _is_line(data: Any) -> bool:
    return bool(data.IsA("vtkPolyData") and data.GetNumberOfLines())


def _solid(data: pyvista.DataSet) -> Any:
    """Return what is drawn of a part: the part itself, or the tube around a line, which always has the same points."""
    return data.tube(scalars="radius", absolute=True, n_sides=TUBE_SIDES) if _is_line(data) else data


def _has_faces(data: Any) -> bool:
    """Return False for parts of loose points, such as markers; they are not drawn."""
    return bool(data.GetNumberOfPolys() if data.IsA("vtkPolyData") else data.n_cells)


def _field_values(data: pyvista.DataSet, field: str) -> FloatArray | None:
    """Return the field as one number a point or cell, the length of vectors, or None when it is not there."""
    for place in (data.point_data, data.cell_data):
        if field in place:
            values = np.asarray(place[field], dtype=np.float64)
            return np.asarray(values if values.ndim == 1 else np.linalg.norm(values, axis=1))
    return None


@dataclass(frozen=True)
class _Survey:
    """What has to be known of the whole run before the first picture."""

    corners: FloatArray  # (k, 3) m: corners of the boxes around what the camera must show, over all frames
    limit: float  # upper end of the colour range, in the field's own unit
    largest_force: float  # N
    decimals: int  # of the time, enough to tell neighbouring frames apart

    @property
    def size(self) -> float:
        """Diagonal of what is shown [m]."""
        return float(np.linalg.norm(np.ptp(self.corners, axis=0))) or 1.0

    @staticmethod
    def of(frames: list[_Frame], field: str) -> _Survey:
        boxes: dict[str, list[FloatArray]] = {}
        samples: list[FloatArray] = []
        largest = 0.0
        must, present = False, set[str]()  # whether some body must have the field, and the fields that bodies have
        for frame in frames:
            for name, file in frame.files.items():
                if name == "floor":
                    continue
                data = read_part(file)
                if name == "contacts":
                    force = np.asarray(data.point_data["force"]) if "force" in data.point_data else np.zeros((0, 3))
                    if force.size:
                        largest = max(largest, float(np.nanmax(np.linalg.norm(force, axis=1))))
                    continue
                if data.n_points:
                    boxes.setdefault(name, []).append(_box_corners(data))
                if _is_soft(file) or _is_line(data):
                    must = must or _is_soft(file) or field != DEFAULT_FIELD
                    present.update(data.point_data.keys(), data.cell_data.keys())
                    values = _field_values(data, field)
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
        limit = float(np.percentile(np.concatenate(samples), 98.0)) if samples else 1.0
        interval = min(np.diff([frame.time for frame in frames]), default=0.01)
        decimals = int(np.clip(np.ceil(-np.log10(interval) - 1e-6), 2, 6))
        soft_names = {name for name, file in frames[0].files.items() if _is_soft(file)}
        return _Survey(_framed_corners(boxes, soft_names), _round_up(limit) if limit > 0 else 1.0, largest, decimals)


def _box_corners(data: pyvista.DataSet) -> FloatArray:
    x0, x1, y0, y1, z0, z1 = data.bounds
    return np.array([(x, y, z) for x in (x0, x1) for y in (y0, y1) for z in (z0, z1)])


def _framed_corners(boxes: dict[str, list[FloatArray]], soft: set[str]) -> FloatArray:
    """Corners of all that moves or is soft, and of fixed bodies that are not much larger than those."""
    moving = {name for name, history in boxes.items() if name in soft or np.ptp(history, axis=0).max() > 1e-9} or boxes.keys()
    shown = [np.concatenate(boxes[name]) for name in moving]
    extent = np.ptp(np.concatenate(shown), axis=0).max()
    for name, history in boxes.items():
        if name not in moving and np.ptp(history[0], axis=0).max() <= 2.0 * extent:
            shown.append(history[0])
    corners = np.concatenate(shown)
    return corners[np.isfinite(corners).all(axis=1)]


@dataclass(frozen=True)
class _View:
    position: FloatArray
    focal_point: FloatArray
    up: FloatArray


def _placed_camera(camera: Camera, survey: _Survey, aspect: float) -> _View:
    if isinstance(camera, str):
        if camera not in CAMERAS:
            raise VizError(
                f"the camera {camera!r} is not known; allowed are {', '.join(map(repr, CAMERAS))} or three "
                "3-vectors "
                "(position, focal point, up)."
            )
        direction, up = (np.array(v) for v in CAMERAS[camera])
        return _fitted_view(direction / np.linalg.norm(direction), up, survey.corners, aspect)
    try:
        explicit = np.array(camera, dtype=np.float64)
    except (TypeError, ValueError):
        explicit = np.empty(0)
    if explicit.shape != (3, 3) or not np.isfinite(explicit).all():
        raise VizError(f"the camera {camera!r} is not allowed; give three 3-vectors (position, focal point, up).")
    sight = explicit[1] - explicit[0]
    if np.linalg.norm(np.cross(sight, explicit[2])) <= 1e-9 * np.linalg.norm(sight) * np.linalg.norm(explicit[2]):
        raise VizError(f"the camera {camera!r} looks along its own up direction or nowhere; choose another up vector.")
    return _View(explicit[0], explicit[1], explicit[2])


def _fitted_view(direction: FloatArray, up: FloatArray, corners: FloatArray, aspect: float) -> _View:
    """Place the camera so that all corners just fit, with room at the right for the colour bar."""
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
    return _View(focal + distance * direction, focal, above)


class _Stage:
    """The plotter with one actor a part; `draw` moves them to a frame and takes the picture."""

    def __init__(
        self,
        files: dict[str, Path],
        survey: _Survey,
        view: _View,
        size: tuple[int, int],
        field: str,
        arrows: bool,
    ) -> None:
        import pyvista
        from matplotlib.colors import LinearSegmentedColormap

        self._survey = survey
        self._field = field
        quantity, unit, self._scale = _legend(field, survey.limit)
        with _without_display():
            plotter: Any = pyvista.Plotter(off_screen=True, window_size=list(size), lighting="none")
        self._plotter = plotter
        plotter.set_background(BACKGROUND)
        self._add_lights(view)
        self._skins: dict[str, _Skin] = {}
        self._floor: _Floor | None = None
        pixels = size[1] / 960
        rigid_number = 0
        bar_mapper: Any = None
        looks: dict[str, Any]
        for name, file in files.items():
            data = read_part(file)
            if name == "floor":
                self._add_floor(data)
            elif _is_shown_body(name) and (_is_line(data) or _has_faces(data)):
                values = _field_values(data, field) if _is_soft(file) or _is_line(data) else None
                solid = _solid(data)
                skin = self._skins[name] = _Skin(solid)
                if values is not None:
                    skin.colour(solid, field, self._scale)
                    looks = {
                        "scalars": "colour",
                        "cmap": LinearSegmentedColormap.from_list("femsim", COLOURS),
                        "clim": (0.0, survey.limit / self._scale),
                        "show_scalar_bar": False,
                    }
                elif _is_line(data):
                    looks = {"color": ROD}
                else:
                    looks = {"color": RIGID[rigid_number % len(RIGID)]}
                    rigid_number += 1
                actor = plotter.add_mesh(skin.mesh, ambient=0.36, diffuse=0.74, specular=0.06, specular_power=25, **looks)
                actor.prop.interpolation = "Phong"
                if values is not None and bar_mapper is None:
                    bar_mapper = actor.mapper
        if bar_mapper is not None:
            self._add_scalar_bar(bar_mapper, f"{quantity} [{unit}]" if unit else quantity, pixels)
        self._text = plotter.add_text(" ", position=(0.03, 0.93), viewport=True, font_size=1, color=INK, font="arial")
        self._text.prop.font_size = round(30 * pixels)
        self._arrows = _Arrows(plotter, survey) if arrows and survey.largest_force > 0 else None
        plotter.camera.position = view.position
        plotter.camera.focal_point = view.focal_point
        plotter.camera.up = view.up
        plotter.camera.view_angle = VIEW_ANGLE
        plotter.enable_anti_aliasing("msaa", multi_samples=8)

    def _add_lights(self, view: _View) -> None:
        import pyvista

        ahead = view.position - view.focal_point
        reach = float(np.linalg.norm(ahead))
        above = view.up / np.linalg.norm(view.up)
        right = np.cross(above, ahead / reach)
        for side, height, strength in ((-0.6, 0.9, 0.62), (0.9, 0.1, 0.40), (0.0, 2.5, 0.16)):
            position = view.focal_point + ahead + reach * (side * right + height * above)
            self._plotter.add_light(
                pyvista.Light(
                    position=position,
                    focal_point=view.focal_point,
                    intensity=strength,
                    light_type="scene light",
                )
            )

    def _add_floor(self, data: pyvista.DataSet) -> None:
        """Draw a chequered plane under the scene, fading out, in place of the part's own triangles."""
        import pyvista

        surface = data.extract_surface(algorithm=None) if not isinstance(data, pyvista.PolyData) else data
        normal = np.asarray(surface.compute_normals(consistent_normals=False)["Normals"], dtype=np.float64)
        if len(normal) == 0:
            return
        corners = self._survey.corners
        up = normal.mean(axis=0)
        up = up / np.linalg.norm(up) if np.linalg.norm(up) > 1e-6 else np.array([0.0, 0.0, 1.0])
        centre = (corners.min(axis=0) + corners.max(axis=0)) / 2
        top = np.asarray(surface.points) @ up
        centre = centre + (float(top.max()) - centre @ up) * up
        self._floor = _Floor(self._plotter, centre, up, self._survey)

    def _add_scalar_bar(self, mapper: Any, title: str, pixels: float) -> None:
        """Add the colour bar at the right edge: numbers right of the bar, title upright left of it."""
        bar = self._plotter.add_scalar_bar(
            title="",
            mapper=mapper,
            vertical=True,
            position_x=0.91,
            position_y=0.25,
            width=0.07,
            height=0.5,
            n_labels=5,
            fmt="{:.3g}",
            color=INK,
            label_font_size=round(22 * pixels),
            font_family="arial",
            unconstrained_font_size=True,
        )
        bar.SetTextPositionToSucceedScalarBar()
        bar.SetBarRatio(0.25)
        name = self._plotter.add_text(
            title,
            position=(0.897, 0.5),
            viewport=True,
            font_size=1,
            color=INK,
            font="arial",
            orientation=90.0,
        )
        name.prop.font_size = round(24 * pixels)
        name.prop.justification_horizontal = "center"
        name.prop.justification_vertical = "bottom"

    def draw(self, frame: _Frame) -> npt.NDArray[np.uint8]:
        """Return the picture of a frame, shape (height, width, 3)."""
        for name, skin in self._skins.items():
            if name not in frame.files:
                raise VizError(f"frame {frame.number} (t = {frame.time} s) lists no part {name!r} as the first one did.")
            data = _solid(read_part(frame.files[name]))
            skin.move(data)
            if skin.coloured:
                skin.colour(data, self._field, self._scale)
        if self._floor is not None:
            self._floor.cast([skin.samples(0.007 * self._survey.size) for skin in self._skins.values()])
        if self._arrows is not None:
            self._arrows.point(read_part(frame.files["contacts"]) if "contacts" in frame.files else None)
        self._text.input = f"t = {frame.time:.{self._survey.decimals}f} s"
        self._plotter.renderer.ResetCameraClippingRange()
        self._plotter.render()
        picture = self._plotter.screenshot(None, return_img=True)
        return np.ascontiguousarray(picture[:, :, :3], dtype=np.uint8)

    def close(self) -> None:
        self._plotter.close()


class _Skin:
    """The drawn surface of one part: found once, moved in every frame.

    Sharp edges (more than 40 degrees in the first frame) get a normal a side, all else is shaded smoothly.
    """

    def __init__(self, data: pyvista.DataSet) -> None:
        import pyvista

        self.coloured = False
        self._samples: tuple[npt.NDArray[np.intp], FloatArray] | None = None
        self._n_points = data.n_points
        bare: Any = data.copy()
        bare.clear_data()
        bare.point_data["origin"] = np.arange(data.n_points)
        if not isinstance(data, pyvista.PolyData):
            bare = bare.extract_surface(algorithm="dataset_surface", pass_pointid=False, pass_cellid=False)
        surface = bare.triangulate().compute_normals(split_vertices=True, feature_angle=40.0)
        self._origin = np.asarray(surface.point_data["origin"])
        self._triangles = surface.regular_faces
        self.mesh: Any = pyvista.PolyData(np.array(surface.points, dtype=np.float64), surface.faces)
        self.mesh.point_data.active_normals = surface.point_data["Normals"]

    def move(self, data: pyvista.DataSet) -> None:
        """Update points and normals given a frame of the part."""
        if data.n_points != self._n_points:
            raise VizError(f"a body changed from {self._n_points} to {data.n_points} points; it cannot be drawn as one.")
        points = np.asarray(data.points, dtype=np.float64)[self._origin]
        self.mesh.points = points
        corner = points[self._triangles]
        across = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        normals: FloatArray = np.column_stack(
            [np.bincount(self._triangles.ravel(), np.repeat(across[:, axis], 3), minlength=len(points)) for axis in range(3)]
        )
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        self.mesh.point_data.active_normals = normals.astype(np.float32)

    def samples(self, spacing: float) -> FloatArray:
        """Return points on the surface about a spacing [m] apart, shape (k, 3) m."""
        corner = np.asarray(self.mesh.points)[self._triangles]
        if self._samples is None:  # the pattern is kept: bodies change little in size
            area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1) / 2
            count = np.ceil(area / max(spacing**2, area.sum() / 100_000, 1e-300)).astype(np.intp) + 1
            triangle = np.repeat(np.arange(len(count)), count)
            u, v = np.random.default_rng(0).random((2, len(triangle)))
            u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)
            self._samples = triangle, np.column_stack([1 - u - v, u, v])
        triangle, weight = self._samples
        return np.asarray(np.einsum("ij,ijk->ik", weight, corner[triangle]))

    def colour(self, data: pyvista.DataSet, field: str, scale: float) -> None:
        """Update the colours given a frame of the part; cell values are averaged onto the points."""
        values = _field_values(data, field)
        if values is None:
            raise VizError(f"the field {field!r} is missing in a frame although the first one had it.")
        if field not in data.point_data:
            flat = data.copy(deep=False)
            flat.clear_data()
            flat.cell_data["colour"] = values
            values = np.asarray(flat.cell_data_to_point_data()["colour"])
        self.mesh.point_data["colour"] = values[self._origin] / scale
        self.coloured = True


class _Floor:
    """The ground: a chequer that fades into the background, darkened softly under bodies that are near it."""

    PIXELS = 640
    SHADOW = 0.42  # how dark the darkest spot gets, of 1

    def __init__(self, plotter: Any, centre: FloatArray, up: FloatArray, survey: _Survey) -> None:
        import pyvista

        half = 2.0 * survey.size
        helper = np.array([1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
        x = np.cross(np.cross(up, helper), up)
        x /= np.linalg.norm(x)
        self._axes = np.column_stack([x, np.cross(up, x), up])
        self._centre = centre
        self._half = half
        self._reach = 0.3 * survey.size  # height at which a body's shadow has faded away
        corners = centre + half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) @ self._axes[:, :2].T
        plane: Any = pyvista.PolyData(corners, [4, 0, 1, 2, 3])
        plane.active_texture_coordinates = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.float32)

        ticks = ((np.arange(self.PIXELS) + 0.5) / self.PIXELS * 2 - 1) * half
        a, b = np.meshgrid(ticks, ticks)
        side = _round_down(survey.size / 4)
        a0, b0 = (self._axes.T @ centre)[:2]  # the squares' edges stand at round coordinates
        odd = (np.floor((a + a0) / side) + np.floor((b + b0) / side)) % 2 > 0
        tone = np.where(odd[:, :, None], np.array([232.0, 236.0, 241.0]), np.array([246.0, 248.0, 250.0]))
        fade = np.clip(1.0 - np.hypot(a, b) / half, 0.0, 1.0)[:, :, None]
        self._bright = 255.0 + (tone - 255.0) * np.minimum(1.0, 1.8 * fade)
        self._image: Any = pyvista.ImageData(dimensions=(self.PIXELS, self.PIXELS, 1))
        self._image.point_data["rgb"] = self._bright.reshape(-1, 3).astype(np.uint8)
        texture: Any = pyvista.Texture(self._image)  # type: ignore[no-untyped-call]
        texture.interpolate = True
        texture.mipmap = True
        plotter.add_mesh(plane, texture=texture, lighting=False)

    def cast(self, samples: list[FloatArray]) -> None:
        """Darken the ground given points on the surfaces of all bodies, each (k, 3) m."""
        from scipy.ndimage import gaussian_filter

        dark = np.zeros((self.PIXELS, self.PIXELS))
        for points in samples:
            a, b, height = ((points - self._centre) @ self._axes).T
            column = np.floor((a / self._half + 1) / 2 * self.PIXELS)
            row = np.floor((b / self._half + 1) / 2 * self.PIXELS)
            strength = 1.0 - np.abs(height) / self._reach
            on = (strength > 0) & (column >= 0) & (column < self.PIXELS) & (row >= 0) & (row < self.PIXELS)
            np.maximum.at(dark, (row[on].astype(np.intp), column[on].astype(np.intp)), strength[on])
        shade = self.SHADOW * gaussian_filter(dark, 0.011 * self.PIXELS)
        picture = self._bright * (1.0 - shade[:, :, None] * np.array([1.0, 0.96, 0.90]))
        self._image.point_data["rgb"][:] = picture.reshape(-1, 3).astype(np.uint8)
        self._image.Modified()


class _Arrows:
    """Contact forces; the parts hidden by bodies show through faintly."""

    def __init__(self, plotter: Any, survey: _Survey) -> None:
        import pyvista
        from vtkmodules.vtkRenderingCore import vtkActor, vtkRenderer

        self._scale = 0.25 * survey.size / survey.largest_force  # m of arrow a newton
        self._arrow = pyvista.Arrow(
            start=(-1.0, 0.0, 0.0),
            tip_length=0.24,
            tip_radius=0.05,
            tip_resolution=20,
            shaft_radius=0.016,
            shaft_resolution=16,
        )
        self._actor = plotter.add_mesh(self._arrow.copy(), color=ARROW, ambient=0.3, diffuse=0.75, specular=0.1)
        self._ghost = vtkActor()
        self._ghost.SetMapper(self._actor.mapper)
        self._ghost.GetProperty().DeepCopy(self._actor.prop)
        self._ghost.GetProperty().SetOpacity(0.35)
        overlay = vtkRenderer()
        overlay.SetLayer(1)
        overlay.InteractiveOff()
        overlay.SetActiveCamera(plotter.camera)
        overlay.AddActor(self._ghost)
        for light in plotter.renderer.lights:
            overlay.AddLight(light)
        plotter.render_window.SetNumberOfLayers(max(2, plotter.render_window.GetNumberOfLayers()))
        plotter.render_window.AddRenderer(overlay)

    def point(self, contacts: pyvista.DataSet | None) -> None:
        """Show the forces of a frame; forces below 1 % of the longest arrow are left out."""
        import pyvista

        force = np.zeros((0, 3))
        if contacts is not None and "force" in contacts.point_data:
            force = np.asarray(contacts.point_data["force"], dtype=np.float64)
        length = np.linalg.norm(force, axis=1)
        shown = length > 0  # also leaves out what is not a number
        if shown.any():
            shown &= length > 1e-2 * length.max()
        self._actor.SetVisibility(bool(shown.any()))
        self._ghost.SetVisibility(bool(shown.any()))
        if contacts is None or not shown.any():
            return
        tails = pyvista.PolyData(np.asarray(contacts.points, dtype=np.float64)[shown])
        tails.point_data["force"] = force[shown]
        tails.point_data["length"] = length[shown]
        self._actor.mapper.SetInputData(
            tails.glyph(orient="force", scale="length", factor=self._scale, geom=self._arrow, tolerance=None)
        )


class _Film:
    """An mp4 that is written under a temporary name and renamed when it is whole."""

    def __init__(self, path: Path, size: tuple[int, int], fps: float) -> None:
        try:
            import imageio_ffmpeg
        except ImportError as error:
            raise VizError("the film needs imageio-ffmpeg; pip install imageio-ffmpeg, or ask for mp4=False.") from error
        self._path = path
        self._temporary = path.with_name(f".{path.stem}.tmp.mp4")
        source = [
            "-f",
            "rawvideo",
            "-pix_fmt",
            "rgb24",
            "-s",
            f"{size[0]}x{size[1]}",
            "-r",
            str(fps),
            "-i",
            "-",
        ]
        coding = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart"]
        self._process = subprocess.Popen(
            [
                imageio_ffmpeg.get_ffmpeg_exe(),
                "-y",
                "-loglevel",
                "error",
                *source,
                *coding,
                str(self._temporary),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def add(self, picture: npt.NDArray[np.uint8]) -> None:
        """Append a picture, shape (height, width, 3)."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(picture.tobytes())
        except BrokenPipeError:
            self._end()

    def finish(self) -> None:
        """Complete the film and give it its name."""
        self._end()
        os.replace(self._temporary, self._path)

    def abandon(self) -> None:
        """Throw away an unfinished film; nothing after `finish`."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        self._temporary.unlink(missing_ok=True)

    def _end(self) -> None:
        _, complaint = self._process.communicate()
        if self._process.returncode != 0:
            lines = complaint.decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise OSError(f"ffmpeg could not write {self._path}: {lines[-1]}; is the disk full?")


def _write_png(path: Path, picture: npt.NDArray[np.uint8]) -> Path:
    import imageio.v3

    temporary = path.with_name(f".{path.name}.tmp")
    imageio.v3.imwrite(temporary, picture, extension=".png")
    os.replace(temporary, path)
    return path


def _round_down(value: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is not above a positive value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * max(factor for factor in (1, 2, 5) if factor * power <= value))


def _round_up(value: float) -> float:
    """Return the smallest number with a quarter that is easy to read, at or above a positive value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * min(factor for factor in (1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10) if factor * power >= value))


def _legend(field: str, limit: float) -> tuple[str, str, float]:
    """Return the quantity's name, the unit shown and what to divide by, for a field and its largest value."""
    quantity, unit = _QUANTITIES.get(field, ("", ""))
    if not quantity:
        stem, _, suffix = field.rpartition("_")
        known = stem and suffix in _UNIT_SUFFIXES
        quantity, unit = (stem, _UNIT_SUFFIXES[suffix]) if known else (field, "")
        quantity = quantity.replace("_", " ")
    for factor, shown in _SCALES.get(unit, ()):
        if limit >= factor:
            return quantity, shown, factor
    return quantity, unit, 1.0
