"""The drawing: one actor per part, updated from frame to frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from viz.camera import VIEW_ANGLE, View, parts_of
from viz.canvas import Canvas
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
    "material": ("number of the material", ""),
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


#: A picture is drawn anew when a point moved by this share of a pixel, or a colour by this share of a level of 256.
UNSEEN_SHIFT, UNSEEN_SHADE = 0.05, 0.5
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


def _same(one: FloatArray, other: FloatArray) -> bool:
    """Whether nothing of what two pictures show differs by 1 or more."""
    return one.shape == other.shape and not np.any(np.abs(one - other) >= 1.0)


class Stage:
    """The canvas with one actor per part; `draw` updates them to a frame and takes the picture."""

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
        self._survey, self._view, self._field, self._clip = survey, view, field, clip
        self._transparent = transparent
        quantity, unit, self._scale = legend(field, survey.limit)
        self._canvas = Canvas(view, size, transparent)
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
                colour = ROD if has_radius(data) else COLOURS[0] if is_soft(data) else colours.of(name)
                actor = self._actors[name] = self._canvas.add(skin.mesh, colour)
                if values is not None:
                    coloured = True
                    skin.colour(solid, field, self._scale)
                    self._canvas.colour(actor, "colour", survey.limit / self._scale)
        if self._ground is None:
            self._add_shadow()
        self._arrows = Arrows(self._canvas, survey) if arrows and survey.largest_force > 0 else None
        self._followed = parts_of(view.follows, list(self._skins)) if view.follows else []
        self._start = self._middle(frame)
        reach = float(np.linalg.norm(view.position - view.focal_point))
        self._per_pixel = 2.0 * reach * float(np.tan(np.radians(VIEW_ANGLE / 2))) / size[1]
        bar = (quantity, unit, survey.limit / self._scale, survey.beyond) if coloured else None
        self.marks = Marks(size, title, self._per_pixel if scale_bar else 0.0, bar)
        self._resting = {name: np.asarray(frame.read(name).points) for name in self._skins if name in survey.still}
        self._scenery: npt.NDArray[np.uint8] | None = None  # picture of what rests
        self._last: tuple[FloatArray, npt.NDArray[np.uint8]] | None = None  # what the last picture showed, and the picture
        self._settled = False  # whether the ground has its shadow
        self._spacing = 0.007 * survey.size  # of the points that cast a shadow, m

    def _middle(self, frame: Frame) -> FloatArray:
        """Middle of the body that the camera follows; the origin without one."""
        if not self._followed:
            return np.zeros(3)
        bounds = np.array([frame.read(name).bounds for name in self._followed]).reshape(-1, 3, 2)
        return np.asarray((bounds[:, :, 0].min(axis=0) + bounds[:, :, 1].max(axis=0)) / 2)

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
        self._ground = Ground(self._canvas, centre, up, self._survey, transparent=self._transparent)

    def _add_shadow(self) -> None:
        """Draw the shadow of a scene without a floor, a little below its lowest point."""
        low, high = self._survey.corners.min(axis=0), self._survey.corners.max(axis=0)
        below = np.array([*((low + high) / 2)[:2], low[2] - 0.06 * self._survey.size])
        up = np.array([0.0, 0.0, 1.0])
        self._ground = Ground(self._canvas, below, up, self._survey, chequered=False, transparent=self._transparent)

    def draw(self, frame: Frame) -> npt.NDArray[np.uint8]:
        """Return the picture of a frame without marks, shape (height, width, 3), or 4 where it is transparent."""
        for name, skin in list(self._skins.items()):
            self._update(name, skin, frame)
        moving = [skin for name, skin in self._skins.items() if name not in self._resting]
        changed = [np.asarray(skin.mesh.points) for skin in moving]
        changed.append(self._cast(moving))
        if self._arrows is not None:
            changed.append(self._arrows.point(frame.read("contacts") if "contacts" in frame.series.parts else None))
        if self._followed:
            shift = self._middle(frame) - self._start
            self._canvas.look(View(self._view.position + shift, self._view.focal_point + shift, self._view.up))
            return self._canvas.whole()
        shown = self._shown(changed, moving)
        if self._last is None or not _same(shown, self._last[0]):
            self._last = shown, self._drawn(changed, moving)
        return self._last[1]

    def _drawn(self, changed: list[FloatArray], moving: list[Skin]) -> npt.NDArray[np.uint8]:
        """Draw the canvas, or that of it which changes."""
        rectangle = self._canvas.around(changed)
        if rectangle is None:
            return self._canvas.whole()
        if self._scenery is None:
            self._scenery = self._picture_of_rest()
            self._cast(moving)
        return self._canvas.part(rectangle, self._scenery)

    def _shown(self, changed: list[FloatArray], moving: list[Skin]) -> FloatArray:
        """Return all that a picture depends on, in units of what one could just see."""
        places = [points.ravel() / (UNSEEN_SHIFT * self._per_pixel) for points in changed]
        colours = [np.asarray(skin.mesh.point_data["colour"]) for skin in moving if skin.coloured]
        grey_level = self._survey.limit / self._scale / 256
        return np.concatenate([*places, *(values / (UNSEEN_SHADE * grey_level) for values in colours)])

    def _cast(self, moving: list[Skin]) -> FloatArray:
        """Draw the shadows; return corners of the rectangle of the ground where those of what moves are, (k, 3) m."""
        if self._ground is None:
            return np.zeros((0, 3))
        if not self._settled:
            self._ground.settle([self._skins[name].samples(self._spacing) for name in self._resting])
            self._settled = True
        return self._ground.cast([skin.samples(self._spacing) for skin in moving])

    def _picture_of_rest(self) -> npt.NDArray[np.uint8]:
        """Draw what rests, alone."""
        others = [actor for name, actor in self._actors.items() if name not in self._resting]
        others += self._arrows.actors if self._arrows is not None else []
        shown = [bool(actor.GetVisibility()) for actor in others]
        for actor in others:
            actor.SetVisibility(False)
        if self._ground is not None:
            self._ground.cast([])
        picture = self._canvas.whole()
        for actor, visible in zip(others, shown, strict=True):
            actor.SetVisibility(visible)
        return picture

    def _update(self, name: str, skin: Skin, frame: Frame) -> None:
        """Show a part as it is in a frame."""
        data = self._read(frame, name)
        if name in self._resting:
            if np.array_equal(np.asarray(data.points), self._resting[name]):
                return
            del self._resting[name]  # it moves after all
            self._scenery, self._settled, self._last = None, False, None
        data = drawn_solid(data, self._survey.thinnest)
        if self._clip is not None and is_soft(data):  # the cut has different points in every frame
            self._actors[name].SetVisibility(data.n_cells > 0)
            if not data.n_cells:
                return
            coloured = skin.coloured
            skin = self._skins[name] = Skin(data)
            skin.coloured = coloured
            self._actors[name].GetMapper().SetInputData(skin.mesh)
        else:
            skin.move(data)
        if skin.coloured:
            skin.colour(data, self._field, self._scale)

    def put_marks(self, picture: npt.NDArray[np.uint8], frame: Frame, speed: str = "") -> npt.NDArray[np.uint8]:
        """Return a picture of `draw` with its marks."""
        return self.marks.put(picture, f"t = {frame.time:.{self._survey.decimals}f} s", speed)

    def _read(self, frame: Frame, name: str) -> pyvista.DataSet:
        """Read a part; of a soft body, the rest after the clip."""
        data = frame.read(name)
        return self._clip.applied(data) if self._clip is not None and is_soft(data) else data

    def close(self) -> None:
        """Free the window."""
        self._canvas.close()


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

    def __init__(self, canvas: Canvas, survey: Survey) -> None:
        import pyvista

        self._scale, self._longest = survey.arrow_scale, survey.longest_arrow
        self._arrow = pyvista.Arrow(
            start=(-1.0, 0.0, 0.0),
            tip_length=0.3,
            tip_radius=0.08,
            tip_resolution=12,
            shaft_radius=0.028,
            shaft_resolution=8,
        )
        self._actor = canvas.add(self._arrow, ARROW, ambient=0.3, diffuse=0.75, specular=0.1)
        self._ghost = canvas.add_ghost(self._actor, 0.35)

    @property
    def actors(self) -> list[Any]:
        """What draws them."""
        return [self._actor, self._ghost]

    def point(self, contacts: pyvista.DataSet | None) -> FloatArray:
        """Show the forces of a frame, except those below 1 % of the largest, and arrows too short to be seen.

        Returns the points of the arrows, shape (k, 3), m.
        """
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
            return np.zeros((0, 3))
        tails = pyvista.PolyData(np.asarray(contacts.points, dtype=np.float64)[shown])
        tails.point_data["force"] = force[shown]
        tails.point_data["length"] = np.minimum(self._scale * length[shown], self._longest)
        arrows = tails.glyph(orient="force", scale="length", factor=1.0, geom=self._arrow, tolerance=None)
        for actor in self.actors:
            actor.GetMapper().SetInputData(arrows)
        return np.asarray(arrows.points, dtype=np.float64)


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
