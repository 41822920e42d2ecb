"""The drawing: one actor per part, updated from frame to frame."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from viz.camera import VIEW_ANGLE, View, parts_of
from viz.errors import VizError
from viz.ground import Ground
from viz.marks import COLOURS, Marks
from viz.survey import (
    FloatArray,
    Frame,
    Survey,
    drawn_solid,
    field_values,
    has_faces,
    has_radius,
    is_shown_body,
    is_soft,
    to_points,
)

if TYPE_CHECKING:
    import pyvista

BACKGROUND = "#ffffff"
ARROW = "#c8102e"
ROD = "#c98a2b"
#: Rigid bodies that move, a hue for each owner (gripper.left and gripper.right have one); obstacles that never move are grey.
RIGID = ("#8fa3b8", "#a3b5a6", "#b8a892", "#a99fb8", "#9fb3b5")
OBSTACLE = "#c6cbd1"
# Fields by name: quantity in the legend, unit in the file. A name may also end in its unit, for instance `gap_m`.
_QUANTITIES = {
    "von_mises": ("von Mises stress", "Pa"),
    "velocity": ("speed", "m/s"),
    "displacement": ("displacement", "m"),
    "contact_force": ("contact force", "N"),
    "contact_pressure": ("contact pressure", "Pa"),
    "cauchy_stress": ("magnitude of Cauchy stress", "Pa"),
    "strain_energy_density": ("strain energy density", "J/m³"),
    "principal_stretches": ("magnitude of principal stretches", ""),
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
    "J/m³": ((1e6, "MJ/m³"), (1e3, "kJ/m³"), (1.0, "J/m³")),
}


#: Arrows shorter than this share of the longest are specks.
SHORTEST = 0.02


class RigidColours:
    """Quiet hues: one for all obstacles, one for each owner of parts that move."""

    def __init__(self, still: frozenset[str]) -> None:
        self._still = still
        self._owners: list[str] = []

    def of(self, name: str) -> str:
        """Colour of a part."""
        if name in self._still:
            return OBSTACLE
        owner = name.split(".")[0]
        if owner not in self._owners:
            self._owners.append(owner)
        return RIGID[self._owners.index(owner) % len(RIGID)]


def render_environment() -> dict[str, str]:
    """Variables that make VTK draw without a display; empty if there is one or the user has chosen."""
    if os.environ.get("DISPLAY") or "VTK_DEFAULT_OPENGL_WINDOW" in os.environ or not sys.platform.startswith("linux"):
        return {}
    return {"VTK_DEFAULT_OPENGL_WINDOW": "vtkEGLRenderWindow"}


@contextmanager
def without_display() -> Iterator[None]:
    """Apply `render_environment` while a window is created."""
    added = render_environment()
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@dataclass(frozen=True)
class Clip:
    """Cut through the soft bodies, which removes everything beyond a plane across an axis.

    Attributes
    ----------
    axis : int
        0, 1 or 2: x, y or z.
    sign : int
        +1 removes larger coordinates, -1 smaller ones.
    place : float
        Coordinate of the plane [m].
    """

    axis: int
    sign: int
    place: float

    @staticmethod
    def read(text: str, survey: Survey) -> Clip:
        """Read ``[-]AXIS[=PLACE]``; without a place the plane goes through the middle of the scene."""
        axis, equals, place = text.strip().partition("=")
        sign = -1 if axis.startswith("-") else 1
        number = "xyz".find(axis.lstrip("-")) if len(axis.lstrip("-")) == 1 else -1
        try:
            value = float(place) if equals else float((survey.corners.min(axis=0) + survey.corners.max(axis=0))[number] / 2)
        except ValueError:
            value = np.nan
        if number < 0 or not np.isfinite(value):
            raise VizError(
                f"the clip {text!r} is not allowed; write an axis, -axis or axis=place in m, for instance y, -y or z=0.02."
            )
        return Clip(number, sign, value)

    def applied(self, data: pyvista.DataSet) -> Any:
        """Return the rest of a part after the cut."""
        normal, origin = np.zeros((2, 3))
        normal[self.axis], origin[self.axis] = self.sign, self.place
        return data.clip(normal=normal, origin=origin, invert=True)


class Stage:
    """The plotter with one actor per part; `draw` updates them to a frame and takes the picture."""

    def __init__(
        self,
        frame: Frame,
        survey: Survey,
        view: View,
        size: tuple[int, int],
        field: str,
        arrows: bool,
        clip: Clip | None = None,
        title: str = "",
        *,
        transparent: bool = False,
        scale_bar: bool = True,
    ) -> None:
        import pyvista
        from matplotlib.colors import LinearSegmentedColormap

        self._survey, self._view, self._field, self._clip = survey, view, field, clip
        self._transparent = transparent
        quantity, unit, self._scale = legend(field, survey.limit)
        with without_display():
            plotter: Any = pyvista.Plotter(off_screen=True, window_size=list(size), lighting="none")
        self._plotter = plotter
        plotter.set_background(BACKGROUND)
        self._add_lights(view)
        self._skins: dict[str, Skin] = {}
        self._actors: dict[str, Any] = {}
        self._ground: Ground | None = None
        colours = RigidColours(survey.still)
        coloured = False
        for name in frame.series.parts:
            data = self._read(frame, name)
            if name == "floor":
                self._add_floor(data)
            elif is_shown_body(name) and (has_radius(data) or has_faces(data)):
                values = field_values(data, field) if is_soft(data) or has_radius(data) else None
                solid = drawn_solid(data, survey.thinnest)
                skin = self._skins[name] = Skin(solid)
                looks: dict[str, Any] = {"color": ROD if has_radius(data) else COLOURS[0] if is_soft(data) else colours.of(name)}
                if values is not None:
                    coloured = True
                    skin.colour(solid, field, self._scale)
                    looks = {
                        "scalars": "colour",
                        "cmap": LinearSegmentedColormap.from_list("femsim", COLOURS),
                        "clim": (0.0, survey.limit / self._scale),
                        "show_scalar_bar": False,
                    }
                actor = plotter.add_mesh(skin.mesh, ambient=0.36, diffuse=0.74, specular=0.06, specular_power=25, **looks)
                actor.prop.interpolation = "Phong"
                self._actors[name] = actor
        if self._ground is None:
            self._add_shadow()
        self._arrows = Arrows(plotter, survey) if arrows and survey.largest_force > 0 else None
        plotter.camera.view_angle = VIEW_ANGLE
        plotter.camera.up = view.up
        self._followed = parts_of(view.follows, list(self._skins)) if view.follows else []
        self._start = self._middle(frame)
        reach = float(np.linalg.norm(view.position - view.focal_point))
        per_pixel = 2.0 * reach * float(np.tan(np.radians(VIEW_ANGLE / 2))) / size[1]
        bar = (quantity, unit, survey.limit / self._scale, survey.beyond) if coloured else None
        self.marks = Marks(size, title, per_pixel if scale_bar else 0.0, bar)
        plotter.enable_anti_aliasing("msaa", multi_samples=8)

    def _middle(self, frame: Frame) -> FloatArray:
        """Middle of the body that the camera follows; the origin without one."""
        if not self._followed:
            return np.zeros(3)
        bounds = np.array([frame.read(name).bounds for name in self._followed]).reshape(-1, 3, 2)
        return np.asarray((bounds[:, :, 0].min(axis=0) + bounds[:, :, 1].max(axis=0)) / 2)

    def _add_lights(self, view: View) -> None:
        import pyvista

        ahead = view.position - view.focal_point
        reach = float(np.linalg.norm(ahead))
        above = view.up / np.linalg.norm(view.up)
        right = np.cross(above, ahead / reach)
        for side, height, strength in ((-0.6, 0.9, 0.66), (0.9, 0.1, 0.46), (0.0, 2.5, 0.22)):
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
        """Draw a chequered plane that fades out under the scene, instead of the part's triangles."""
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
        self._ground = Ground(self._plotter, centre, up, self._survey, transparent=self._transparent)

    def _add_shadow(self) -> None:
        """Draw the shadow of a scene without a floor, a little below its lowest point."""
        low, high = self._survey.corners.min(axis=0), self._survey.corners.max(axis=0)
        below = np.array([*((low + high) / 2)[:2], low[2] - 0.06 * self._survey.size])
        up = np.array([0.0, 0.0, 1.0])
        self._ground = Ground(self._plotter, below, up, self._survey, chequered=False, transparent=self._transparent)

    def draw(self, frame: Frame) -> npt.NDArray[np.uint8]:
        """Return the picture of a frame without marks, shape (height, width, 3), or 4 where it is transparent."""
        for name, skin in self._skins.items():
            data = drawn_solid(self._read(frame, name), self._survey.thinnest)
            if self._clip is not None and is_soft(data):  # the cut has different points in every frame
                self._actors[name].SetVisibility(data.n_cells > 0)
                if not data.n_cells:
                    continue
                coloured = skin.coloured
                skin = self._skins[name] = Skin(data)
                skin.coloured = coloured
                self._actors[name].mapper.SetInputData(skin.mesh)
            else:
                skin.move(data)
            if skin.coloured:
                skin.colour(data, self._field, self._scale)
        if self._ground is not None:
            self._ground.cast([skin.samples(0.007 * self._survey.size) for skin in self._skins.values()])
        if self._arrows is not None:
            self._arrows.point(frame.read("contacts") if "contacts" in frame.series.parts else None)
        shift = self._middle(frame) - self._start
        self._plotter.camera.position = self._view.position + shift
        self._plotter.camera.focal_point = self._view.focal_point + shift
        self._plotter.renderer.ResetCameraClippingRange()
        self._plotter.render()
        picture = self._plotter.screenshot(None, return_img=True, transparent_background=self._transparent)
        return np.ascontiguousarray(picture[:, :, : 4 if self._transparent else 3], dtype=np.uint8)

    def put_marks(self, picture: npt.NDArray[np.uint8], frame: Frame, speed: str = "") -> npt.NDArray[np.uint8]:
        """Return a picture of `draw` with its marks."""
        return self.marks.put(picture, f"t = {frame.time:.{self._survey.decimals}f} s", speed)

    def _read(self, frame: Frame, name: str) -> pyvista.DataSet:
        """Read a part; of a soft body, the rest after the clip."""
        data = frame.read(name)
        return self._clip.applied(data) if self._clip is not None and is_soft(data) else data

    def close(self) -> None:
        """Free the window."""
        self._plotter.close()


class Skin:
    """The drawn surface of one part: extracted once, updated in every frame.

    Sharp edges (more than 40 degrees in the first frame) get one normal per side; the rest is shaded smoothly.
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
        """Return points on the surface at about this spacing [m], shape (k, 3), m."""
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
        values = field_values(data, field)
        if values is None:
            raise VizError(f"the field {field!r} is missing in a frame although the first one had it.")
        if field not in data.point_data:
            values = to_points(data, values)
        self.mesh.point_data["colour"] = values[self._origin] / scale
        self.coloured = True


class Arrows:
    """Contact forces; parts hidden by bodies remain faintly visible."""

    def __init__(self, plotter: Any, survey: Survey) -> None:
        import pyvista
        from vtkmodules.vtkRenderingCore import vtkActor, vtkRenderer

        self._scale, self._longest = survey.arrow_scale, survey.longest_arrow
        self._arrow = pyvista.Arrow(
            start=(-1.0, 0.0, 0.0),
            tip_length=0.3,
            tip_radius=0.08,
            tip_resolution=20,
            shaft_radius=0.028,
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
        """Show the forces of a frame, except those below 1 % of the largest, and arrows too short to be seen."""
        import pyvista

        force = np.zeros((0, 3))
        if contacts is not None and "force" in contacts.point_data:
            force = np.asarray(contacts.point_data["force"], dtype=np.float64)
        length = np.linalg.norm(force, axis=1)
        shown = length > 0  # also excludes NaN
        if shown.any():
            shown &= (length > 1e-2 * length[shown].max()) & (self._scale * length > SHORTEST * self._longest)
        self._actor.SetVisibility(bool(shown.any()))
        self._ghost.SetVisibility(bool(shown.any()))
        if contacts is None or not shown.any():
            return
        tails = pyvista.PolyData(np.asarray(contacts.points, dtype=np.float64)[shown])
        tails.point_data["force"] = force[shown]
        tails.point_data["length"] = np.minimum(self._scale * length[shown], self._longest)
        self._actor.mapper.SetInputData(tails.glyph(orient="force", scale="length", factor=1.0, geom=self._arrow, tolerance=None))


def legend(field: str, limit: float) -> tuple[str, str, float]:
    """Return the quantity's name, the unit shown and the divisor, for a field ("" for none) and its largest value."""
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
