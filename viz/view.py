"""A run in the browser, even while it is running: bodies, rods, contact forces, curves of sensors; play, scrub, cut, turn.

The server (viser) runs in its own threads and keeps only the shown frame; one loop reads the controls and the run folder and
draws. Frames are read when shown, so a long run costs no memory.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from foreign.text import read_json
from viz.camera import CAMERAS, VIEW_ANGLE, placed_camera
from viz.errors import VizError
from viz.gate import Gate
from viz.marks import COLOURS, INK, round_down
from viz.series import open_frames
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
)
from viz.view_plot import SensorPlot

__all__ = ["RunView", "view_run"]

SURVEYED = 12  # frames that determine colour range, arrow scale and camera
TICK = 1.0 / 30.0  # s between two reads of the controls
LOOK = 0.5  # s between two reads of the run folder
ASPECT = 1.3  # width by height of the picture beside the panel
BELOW = 0.05  # distance of the ground of a scene without a floor, in sizes of the scene
#: What the soft bodies may be cut by, and what the menu says of none.
CUTS, NO_CUT = ("x < at", "x > at", "y < at", "y > at", "z < at", "z > at"), "none"
#: What a view depends on: frame, field, arrows, number of frames, health, cut.
Wanted = tuple[int, str, bool, int, str, str]


class RunView:
    """The page of one run.

    Parameters
    ----------
    run_dir : Path
        Run folder with at least one frame, in either format.
    host : str
        Address at which the server listens; "0.0.0.0" admits other machines.
    port : int
        First port to try, 1 to 65535; if taken, the next ones follow.
    field : str, optional
        Field shown first; by default what the scene is about, as in `render_run`.

    Attributes
    ----------
    url : str
        Address of the page, with the token that it asks for.
    shown : int
        Number of the frame that is shown, from 0.

    Raises
    ------
    VizError
        viser is missing, there are no frames, no body has the field, or the host or port is not allowed.
    """

    def __init__(self, run_dir: Path, *, host: str = "127.0.0.1", port: int = 8080, field: str | None = None) -> None:
        viser = import_viser()
        if not 1 <= port <= 65535:
            raise VizError(f"port is {port}; allowed are 1 to 65535.")
        self._run_dir = Path(run_dir)
        self._series = open_frames(self._run_dir)
        self._surveyed = 0  # number of frames when the colour range was set
        fields = self._fields()
        if field is None:
            field = chosen_field(self._frame(0)) or (fields[0] if fields else "")
        self._survey = self._look_through(field, bool(field))
        self._looked = time.monotonic()
        self._skins: dict[str, Skin] = {}
        self._drawn_points: dict[str, npt.NDArray[Any]] = {}
        self._handles: dict[str, Any] = {}
        self._cut_skins: set[str] = set()  # bodies whose surface is that of a cut
        self._rigid = RigidColours(self._survey.still)
        self._drawn: Wanted | None = None
        self.shown = 0
        self._clock = 0.0
        self._playing = False

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
        server.gui.set_panel_label(self._run_dir.resolve().name)
        server.scene.set_up_direction("+z")
        server.scene.configure_default_lights(enabled=False)
        server.scene.configure_environment_map(hdri=None)
        server.scene.add_light_ambient("/light/around", intensity=1.3)
        view = placed_camera("iso", self._survey.framed, ASPECT)
        for name, (side, strength) in {"left": (-0.6, 1.6), "right": (0.9, 0.9)}.items():
            ahead = view.position - view.focal_point
            across = np.cross(view.up, ahead)
            server.scene.add_light_directional(f"/light/{name}", intensity=strength, position=ahead + side * across + [0, 0, 1])
        camera = server.initial_camera
        camera.position, camera.look_at, camera.up = view.position, view.focal_point, view.up
        camera.fov = float(np.radians(VIEW_ANGLE))
        camera.near = 0.01 * self._survey.size
        self._text = server.gui.add_markdown("")
        self._health = _health_line(run_dir)
        self._play = server.gui.add_button("Play")
        self._play.on_click(lambda _: self._toggle())
        self._slider = server.gui.add_slider("Frame", min=0, max=max(1, len(self._series.times) - 1), step=1, initial_value=0)
        self._speed = server.gui.add_dropdown("Speed", ("0.1 x", "0.25 x", "0.5 x", "1 x", "2 x", "5 x"), initial_value="1 x")
        self._newest = server.gui.add_checkbox("Follow the newest frame", False)
        self._field = server.gui.add_dropdown("Field", fields or (field,), initial_value=field)
        self._bar = server.gui.add_html("")
        self._arrows = server.gui.add_checkbox("Contact forces", True)
        self._arrow_handle: Any = None
        self._camera = server.gui.add_button_group("Camera", tuple(CAMERAS))
        self._camera.on_click(lambda event: self._look_from(event.target.value, event.client))
        self._cut = server.gui.add_dropdown("Cut away", (NO_CUT, *CUTS), initial_value=NO_CUT)
        self._place = server.gui.add_slider("at", min=0.0, max=1.0, step=0.01, initial_value=0.5)
        self._plot = SensorPlot(server.gui, self._run_dir)
        self._add_floor()
        self._draw()

    def close(self) -> None:
        """Stop the server."""
        with redirect_stdout(StringIO()):
            self._server.stop()

    def tick(self, elapsed: float) -> None:
        """Read the controls and the run folder once, and draw accordingly.

        Parameters
        ----------
        elapsed : float, s
            Time since the last update.
        """
        if time.monotonic() - self._looked > LOOK:
            self._tail()
        times = self._series.times
        last = len(times) - 1
        if int(self._slider.value) != self.shown:  # moved by hand
            self.shown = min(int(self._slider.value), last)
            self._clock = times[self.shown]
            self._newest.value = False
        elif self._newest.value:
            self.shown, self._clock = last, times[last]
        elif self._playing:
            self._clock = min(self._clock + elapsed * float(self._speed.value.split()[0]), times[last])
            self.shown = max(0, int(np.searchsorted(times, self._clock + 1e-9, side="right")) - 1)
            if self.shown == last and not self._grows():
                self._toggle()
        if self._wanted() != self._drawn:
            self._draw()
        self._plot.show(times[self.shown])

    def _look_from(self, camera: str, client: Any) -> None:
        """Turn a visitor's camera: one of the names that `render_run` knows, around what is in the picture now."""
        view = placed_camera(camera, self._survey.framed, ASPECT)
        with client.atomic():
            client.camera.up_direction = view.up
            client.camera.position, client.camera.look_at = view.position, view.focal_point

    def _clip(self) -> Clip | None:
        """Return the cut that the controls ask for."""
        cut = str(self._cut.value)
        if cut == NO_CUT:
            return None
        low, high = self._survey.corners.min(axis=0), self._survey.corners.max(axis=0)
        number = "xyz".index(cut[0])
        place = low[number] + float(self._place.value) * (high[number] - low[number])
        return Clip(number, -1 if "<" in cut else 1, float(place))

    def _toggle(self) -> None:
        """Play or pause; at the end, play from the start."""
        self._playing = not self._playing
        self._play.label = "Pause" if self._playing else "Play"
        if self._playing and self.shown == len(self._series.times) - 1 and not self._grows():
            self.shown, self._clock = 0, self._series.times[0]
            self._slider.value = 0

    def _grows(self) -> bool:
        """Whether the run has written a frame recently."""
        return time.time() - self._series.path.stat().st_mtime < 10.0

    def _tail(self) -> None:
        """Read the list of frames again; a file in the middle of a change is read next time."""
        self._looked = time.monotonic()
        self._health = _health_line(self._run_dir)
        self._plot.look()
        try:
            series = open_frames(self._run_dir)
        except VizError:
            return
        if len(series.times) > len(self._series.times):
            self._series = series
            self._slider.max = len(series.times) - 1
            if len(series.times) >= 2 * self._surveyed:
                self._survey = self._look_through(self._field.value, False, self._cut.value != NO_CUT)

    def _frame(self, number: int) -> Frame:
        return Frame(number, self._series.times[number], self._series)

    def _fields(self) -> tuple[str, ...]:
        """Return the fields of soft bodies and rods in the first frame."""
        first, found = self._frame(0), set[str]()
        for name in self._series.parts:
            data = first.read(name)
            if is_shown_body(name) and (is_soft(data) or has_radius(data)):
                found.update(data.point_data.keys(), data.cell_data.keys())
        return tuple(sorted(found - {"radius"}))

    def _look_through(self, field: str, required: bool = True, inside: bool = False) -> Survey:
        """Choose colour range, of the surface or of all that is inside, and arrow scale from some frames of the whole run."""
        self._surveyed = len(self._series.times)
        numbers = np.unique(np.linspace(0, self._surveyed - 1, SURVEYED).round().astype(int))
        return Survey.of([self._frame(int(number)) for number in numbers], field, required, inside=inside)

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
            centre[2] = corners[:, 2].min() - BELOW * self._survey.size
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

    def _wanted(self) -> Wanted:
        """Return the state of the controls, which another thread may change at any time."""
        cut = str(self._cut.value)
        cut += "" if cut == NO_CUT else f" {float(self._place.value)}"
        return self.shown, str(self._field.value), bool(self._arrows.value), len(self._series.times), self._health, cut

    def _draw(self) -> None:
        """Show the frame, field and arrows that the controls select."""
        wanted = self._wanted()
        _, field, arrows, _, _, cut = wanted
        if self._drawn and (field, cut == NO_CUT) != (self._drawn[1], self._drawn[5] == NO_CUT):
            self._survey = self._look_through(field, inside=cut != NO_CUT)
        if self._drawn and (field, cut) != (self._drawn[1], self._drawn[5]):
            self._drawn_points.clear()  # colours or the cut may change while points do not
        clip = self._clip()
        frame = self._frame(self.shown)
        quantity, unit, scale = legend(field, self._survey.limit)
        coloured = False
        with self._server.atomic():
            for name in self._series.parts:
                if is_shown_body(name):
                    coloured |= self._draw_body(frame, name, field, scale, clip)
            self._draw_arrows(frame, arrows)
            when = f"**t = {frame.time:.{self._survey.decimals}f} s**, frame {self.shown} of {len(self._series.times) - 1}"
            self._text.content = self._health + when
            top = f"{self._survey.limit / scale:.3g}"
            self._bar.content = _bar(f"{quantity} [{unit}]" if unit else quantity, top) if coloured else ""
            self._slider.value = self.shown
        self._drawn = wanted

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
            if name in self._handles:
                self._handles[name].visible = data.n_cells > 0
            if not data.n_cells:
                return False
        elif name in self._handles:
            self._handles[name].visible = True
        solid = drawn_solid(data)
        if name not in self._skins or cut or name in self._cut_skins:  # a cut has other points in every frame
            self._skins[name] = Skin(solid)
        self._cut_skins = self._cut_skins | {name} if cut else self._cut_skins - {name}
        skin = self._skins[name]
        skin.move(solid)
        if values is not None:
            skin.colour(solid, field, scale)
            colours = _colours(np.asarray(skin.mesh.point_data["colour"]) * scale / self._survey.limit)
        else:
            colour = ROD if has_radius(data) else COLOURS[0] if deformable else self._rigid.of(name)
            colours = np.tile(_linear(_rgb(colour)), (skin.mesh.n_points, 1))
        glb = _glb(skin.mesh, colours)
        if name in self._handles:
            self._handles[name].glb_data = glb
        else:
            self._handles[name] = self._server.scene.add_glb(f"/bodies/{name}", glb)
        return values is not None

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


def view_run(
    run_dir: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    field: str | None = None,
    open_browser: bool = True,
    ready: Callable[[str], None] | None = None,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Show a run in the browser until told to stop or Ctrl-C; follow a run that is still running.

    Parameters
    ----------
    run_dir, host, port, field
        See `RunView`.
    open_browser : bool
        Open the page in this machine's browser.
    ready : callable, optional
        Called once with the address of the page.
    until : callable, optional
        Called about thirty times per second; returns whether to stop.

    Raises
    ------
    VizError
        As `RunView`, and if a frame cannot be read.
    """
    view = RunView(run_dir, host=host, port=port, field=field)
    try:
        if ready is not None:
            ready(view.url)
        if open_browser:
            import webbrowser

            webbrowser.open(view.url)
        before = time.monotonic()
        while not until():
            time.sleep(TICK)
            now = time.monotonic()
            view.tick(now - before)
            before = now
    finally:
        view.close()


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


def _health_line(run_dir: Path) -> str:
    """Health verdict of a run and its first reason as a paragraph of Markdown; empty where run.json does not say."""
    try:
        health = read_json(run_dir / "run.json").get("health", {})
        reasons = [str(reason["sentence"]) for reason in health.get("reasons", [])[:1]]
        verdict = str(health["verdict"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return f"**health: {verdict}**{''.join(f' ({reason})' for reason in reasons)}\n\n"


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


def _glb(mesh: Any, colours: npt.NDArray[np.uint8]) -> bytes:
    """Pack a surface with normals and colours."""
    import trimesh

    solid = trimesh.Trimesh(
        np.asarray(mesh.points),
        mesh.regular_faces,
        vertex_normals=np.asarray(mesh.point_data.active_normals),
        vertex_colors=colours,
        process=False,
    )
    packed: Any = solid.export(file_type="glb", include_normals=True, tree_postprocessor=_make_matt)
    return bytes(packed)


def _make_matt(tree: dict[str, Any]) -> None:
    """Give a glTF tree one non-metallic material: glTF's default is metal, which is black without an environment."""
    tree["materials"] = [{"pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 0.9}, "doubleSided": True}]
    for mesh in tree["meshes"]:
        for primitive in mesh["primitives"]:
            primitive["material"] = 0


def _bar(title: str, top: str) -> str:
    """HTML of the colour bar."""
    stops = ",".join(COLOURS)
    return (
        f'<div style="padding:.2em 1em;font-size:12px;color:{INK}"><div>{title}</div>'
        f'<div style="height:10px;background:linear-gradient(to right,{stops})"></div>'
        f'<div style="display:flex;justify-content:space-between"><span>0</span><span>{top}</span></div></div>'
    )
