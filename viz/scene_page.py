"""Bodies, contact forces and floor of a frame on a page in the browser, and the controls of how they look.

The server (viser) runs in its own threads; what it holds is changed by one loop alone, which reads the controls and draws.
"""

from __future__ import annotations

import socket
from contextlib import redirect_stdout
from io import StringIO
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from viz.camera import CAMERAS, VIEW_ANGLE, placed_camera
from viz.errors import VizError
from viz.gate import Gate
from viz.marks import COLOURS, INK, round_down
from viz.page_body import PageBody
from viz.series import FrameSeries
from viz.stage import ARROW, ROD, Clip, RigidColours, Skin, legend
from viz.survey import (
    FloatArray,
    Frame,
    Survey,
    chosen_field,
    drawn_solid,
    field_values,
    has_faces,
    has_radius,
    is_shown_body,
    is_soft,
    refuse_idle_field,
)

__all__ = ["ScenePage", "import_viser"]

ASPECT = 1.0  # width by height of the picture before a browser has said it: that of a small window beside the panel
#: Part of the size of the scene by which points of a body move against each other that nobody sees: it is not loaded again.
_UNSEEN = 2e-4
#: What the soft bodies may be cut by, and what the menu says of none.
CUTS, NO_CUT = ("x < at", "x > at", "y < at", "y > at", "z < at", "z > at"), "none"


class ScenePage:
    """A page that draws frames; what it draws, and when, is said by those who make it.

    Parameters
    ----------
    series : FrameSeries
        The frames, at least one.
    label : str
        Title of the panel.
    host, port, field
        See `RunView`.

    Attributes
    ----------
    url : str
        Address of the page, with the token that it asks for.

    Raises
    ------
    VizError
        viser is missing, no body has the field, or the host or port is not allowed.
    """

    _below = 0.05  # distance of the ground of a scene without a floor, in sizes of the scene

    def __init__(self, series: FrameSeries, label: str, *, host: str, port: int, field: str | None) -> None:
        viser = import_viser()
        if not 1 <= port <= 65535:
            raise VizError(f"port is {port}; allowed are 1 to 65535.")
        self._series: FrameSeries = series
        fields = self._fields()
        if field is not None:
            refuse_idle_field(field, [self._frame(0)])
        else:
            field = chosen_field(self._frame(0)) or (fields[0] if fields else "")
        self._first_field = field
        self._survey = self._look_through(field, bool(field))
        self._skins: dict[str, Skin] = {}
        self._drawn_points: dict[str, npt.NDArray[Any]] = {}
        self._bodies: dict[str, PageBody] = {}
        self._cut_skins: set[str] = set()  # bodies whose surface is that of a cut
        self._rigid = RigidColours(self._survey.still)
        self._looks: tuple[str, str] | None = None  # field and cut that were drawn last

        try:
            socket.create_server((host, 0)).close()  # viser would wait forever
        except OSError as error:
            raise VizError(f"the host {host!r} cannot be listened at ({error}); use 127.0.0.1 or 0.0.0.0.") from error
        gate = Gate(host)
        with redirect_stdout(StringIO()), gate.at_the_door():  # viser prints addresses; we print ours once
            server = self._server = viser.ViserServer(host=host, port=port, label="femsim", verbose=False)
        name = "localhost" if host in ("127.0.0.1", "0.0.0.0") else host
        self.url = f"http://{name}:{server.get_port()}/?token={gate.token}"
        server.gui.configure_theme(show_logo=False, show_share_button=False)
        server.gui.main_panel.dock_right()  # the picture is beside it, so that nothing is behind
        server.gui.set_panel_label(label)
        server.scene.set_up_direction("+z")
        server.scene.configure_default_lights(enabled=False)
        server.scene.configure_environment_map(hdri=None)
        server.scene.add_light_ambient("/light/around", intensity=1.3)
        view = self._first_view = placed_camera("iso", self._framed(), ASPECT)
        for name, (side, strength) in {"left": (-0.6, 1.6), "right": (0.9, 0.9)}.items():
            ahead = view.position - view.focal_point
            across = np.cross(view.up, ahead)
            server.scene.add_light_directional(f"/light/{name}", intensity=strength, position=ahead + side * across + [0, 0, 1])
        camera = server.initial_camera
        camera.position, camera.look_at, camera.up = view.position, view.focal_point, view.up
        camera.fov = float(np.radians(VIEW_ANGLE))
        camera.near = 0.01 * self._survey.size
        self._add_floor()

    def _add_looks(self) -> None:
        """Add the controls of how a frame is drawn."""
        gui, first = self._server.gui, self._first_field
        self._field = gui.add_dropdown("Field", self._fields() or (first,), initial_value=first)
        self._bar = gui.add_html("")
        self._arrows = gui.add_checkbox("Contact forces", True)
        self._arrow_handle: Any = None
        self._camera = gui.add_button_group("Camera", tuple(CAMERAS))
        self._camera.on_click(lambda event: self._look_from(event.target.value, event.client))
        self._cut = gui.add_dropdown("Cut away", (NO_CUT, *CUTS), initial_value=NO_CUT)
        self._place = gui.add_slider("at", min=0.0, max=1.0, step=0.01, initial_value=0.5)

    def close(self) -> None:
        """Stop the server."""
        with redirect_stdout(StringIO()):
            self._server.stop()

    def _look_from(self, camera: str, client: Any) -> None:
        """Turn a visitor's camera: one of the names that `render_run` knows, around what is in the picture now."""
        view = placed_camera(camera, self._framed(), client.camera.aspect)
        with client.atomic():
            client.camera.up_direction = view.up
            client.camera.position, client.camera.look_at = view.position, view.focal_point

    def _framed(self) -> FloatArray:
        """Return what a camera must show, (k, 3) m."""
        return self._survey.framed

    def _clip(self) -> Clip | None:
        """Return the cut that the controls ask for."""
        cut = str(self._cut.value)
        if cut == NO_CUT:
            return None
        low, high = self._survey.corners.min(axis=0), self._survey.corners.max(axis=0)
        number = "xyz".index(cut[0])
        place = low[number] + float(self._place.value) * (high[number] - low[number])
        return Clip(number, -1 if "<" in cut else 1, float(place))

    def _fields(self) -> tuple[str, ...]:
        """Return the fields of soft bodies and rods in the first frame."""
        first, found = self._frame(0), set[str]()
        for name in self._series.parts:
            data = first.read(name)
            if is_shown_body(name) and (is_soft(data) or has_radius(data)):
                found.update(data.point_data.keys(), data.cell_data.keys())
        return tuple(sorted(found - {"radius"}))

    def _add_floor(self) -> None:
        """Draw a grid in the plane of the part "floor"; without one, a level grid below all that ever moves."""
        corners = self._survey.corners
        centre, normal = corners.mean(axis=0), np.array([0.0, 0.0, 1.0])
        if "floor" in self._series.parts:
            points = np.asarray(self._frame(0).read("floor").points, dtype=np.float64)
            _, _, axes = np.linalg.svd(points - points.mean(axis=0))
            normal = axes[2] * (1.0 if axes[2][2] >= 0.0 else -1.0)
            centre = centre + ((points.mean(axis=0) - centre) @ normal) * normal
        else:
            centre[2] = corners[:, 2].min() - self._below * self._survey.size
        turn = np.array([1.0 + normal[2], -normal[1], normal[0], 0.0])  # quaternion w, x, y, z from +z to the normal
        size = self._survey.size
        self._server.scene.add_grid(
            "/floor",
            width=6.0 * size,
            height=6.0 * size,
            cell_size=round_down(size / 4),
            section_size=4.0 * round_down(size / 4),
            plane_color=(244, 246, 249),
            plane_opacity=1.0,
            cell_color=(214, 220, 227),
            section_color=(190, 198, 208),
            position=centre - 1e-3 * size * normal,
            wxyz=turn / np.linalg.norm(turn),
        )

    def _frame(self, number: int) -> Frame:
        return Frame(number, self._series.times[number], self._series)

    def _look_through(self, field: str, required: bool = True, inside: bool = False) -> Survey:
        """Choose colour range, of the surface or of all that is inside, and arrow scale."""
        return Survey.of([self._frame(0)], field, required, inside=inside)

    def _chosen_looks(self) -> tuple[str, bool, str]:
        """Return field, whether arrows are shown, and cut, as the controls say, which another thread may change at any time."""
        cut = str(self._cut.value)
        cut += "" if cut == NO_CUT else f" {float(self._place.value)}"
        return str(self._field.value), bool(self._arrows.value), cut

    def _draw_frame(self, frame: Frame, field: str, arrows: bool, cut: str) -> None:
        """Show a frame as the controls say."""
        self._settle()
        if self._looks and (field, cut == NO_CUT) != (self._looks[0], self._looks[1] == NO_CUT):
            self._survey = self._look_through(field, inside=cut != NO_CUT)
        if self._looks and (field, cut) != self._looks:
            self._drawn_points.clear()  # colours or the cut may change while points do not
        self._looks = field, cut
        clip = self._clip()
        quantity, unit, scale = legend(field, self._survey.limit)
        coloured = False
        for name in self._series.parts:
            if is_shown_body(name):
                coloured |= self._draw_body(frame, name, field, scale, clip)
        self._draw_arrows(frame, arrows)
        top = f"{self._survey.limit / scale:.3g}"
        self._bar.content = _bar(f"{quantity} [{unit}]" if unit else quantity, top) if coloured else ""

    def _draw_body(self, frame: Frame, name: str, field: str, scale: float, clip: Clip | None) -> bool:
        """Draw a part; return whether a field colours it."""
        data = frame.read(name)
        if not (has_radius(data) or has_faces(data)):
            return False
        deformable = is_soft(data) or has_radius(data)
        values = field_values(data, field) if deformable else None
        before = self._drawn_points.get(name)
        if before is not None and values is None and np.array_equal(before, data.points):
            return False
        self._drawn_points[name] = np.array(data.points)
        cut = clip is not None and is_soft(data)
        if clip is not None and cut:
            data = clip.applied(data)
            if not data.n_cells:
                if name in self._bodies:
                    self._bodies[name].hide()
                return False
        solid = drawn_solid(data)
        fresh = name not in self._skins or cut or name in self._cut_skins  # a cut has other points in every frame
        if fresh:
            self._skins[name] = Skin(solid)
        self._cut_skins = self._cut_skins | {name} if cut else self._cut_skins - {name}
        skin = self._skins[name]
        skin.move(solid)
        mesh = skin.mesh
        if values is not None:
            skin.colour(solid, field, scale)
            colours = _colours(np.asarray(mesh.point_data["colour"]) * scale / self._survey.limit)
        else:
            colour = ROD if has_radius(data) else COLOURS[0] if deformable else self._rigid.of(name)
            colours = np.tile(_linear(_rgb(colour)), (mesh.n_points, 1))
        if name not in self._bodies:
            self._bodies[name] = PageBody(self._server.scene, name)
            self._added(name, self._bodies[name].frame)
        normals = np.asarray(mesh.point_data.active_normals, np.float64)
        points = np.array(mesh.points, np.float64)
        self._bodies[name].draw(points, normals, mesh.regular_faces, colours, _UNSEEN * self._survey.size, fresh=fresh)
        return values is not None

    def _settle(self) -> None:
        """Show what was sent with the last picture and has been loaded since."""
        for body in self._bodies.values():
            body.settle()

    def _added(self, name: str, frame: Any) -> None:
        """Say that a body is on the page now, in a frame of its own."""

    def _draw_arrows(self, frame: Frame, shown: bool) -> None:
        """Draw contact forces as arrows that end at the contacts, except those below 1 % of the largest."""
        ends = np.zeros((0, 2, 3))
        scale = self._survey.arrow_scale
        if shown and scale > 0 and "contacts" in self._series.parts:
            contacts = frame.read("contacts")
            if contacts.n_points and "force" in contacts.point_data:
                force, at = np.asarray(contacts.point_data["force"], np.float64), np.asarray(contacts.points, np.float64)
                length = np.linalg.norm(force, axis=1)
                kept = length > 0.01 * np.nanmax(length, initial=0.0)  # also excludes NaN
                ends = np.stack([at - scale * force, at], axis=1)[kept]
        if self._arrow_handle is None and len(ends):
            thick = 0.003 * self._survey.size
            self._arrow_handle = self._server.scene.add_arrows(
                "/contacts", ends, _rgb(ARROW), shaft_radius=thick, head_radius=3 * thick, head_length=8 * thick
            )
        elif self._arrow_handle is not None:
            if len(ends):
                self._arrow_handle.points = ends.astype(np.float32)
            self._arrow_handle.visible = len(ends) > 0


def import_viser() -> ModuleType:
    """Import viser.

    Raises
    ------
    VizError
        Says how to install it.
    """
    try:
        import viser
    except ImportError as error:
        raise VizError(
            f'the view in the browser needs the package viser ({error}); install it: pip install "femsim[view]".'
        ) from error
    return viser


def _rgb(colour: str) -> tuple[int, int, int]:
    """Read #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _linear(rgb: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Convert display colours (0 to 255) to the linear ones of GLB files."""
    return np.asarray(255.0 * (np.asarray(rgb, np.float64) / 255.0) ** 2.2 + 0.5, np.uint8)


def _colours(share: FloatArray) -> npt.NDArray[np.uint8]:
    """Colours of values from 0 (first) to 1 (last), (n, 3)."""
    stops = np.array([_rgb(colour) for colour in COLOURS], np.float64)
    place = np.linspace(0.0, 1.0, len(stops))
    clipped = np.nan_to_num(np.clip(share, 0.0, 1.0))
    return _linear(np.column_stack([np.interp(clipped, place, stops[:, k]) for k in range(3)]))


def _bar(title: str, top: str) -> str:
    """HTML of the colour bar."""
    stops = ",".join(COLOURS)
    return (
        f'<div style="padding:.2em 1em;font-size:12px;color:{INK}"><div>{title}</div>'
        f'<div style="height:10px;background:linear-gradient(to right,{stops})"></div>'
        f'<div style="display:flex;justify-content:space-between"><span>0</span><span>{top}</span></div></div>'
    )
