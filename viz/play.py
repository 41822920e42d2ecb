"""A simulation in the browser while it is stepped: its newest frame, and the mouse that pulls its bodies."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from viz.camera import placed_camera
from viz.cells import CellRows, Field, make_data_set
from viz.errors import VizError
from viz.parts import PartFrame, PartKind, PartRegister
from viz.scene_page import ASPECT, NO_CUT, ScenePage
from viz.stage import RigidColours
from viz.survey import FloatArray, Survey

if TYPE_CHECKING:
    import pyvista

__all__ = ["LiveSeries", "PlayView", "Pull"]

#: Sections of polygonal data, and corners of a cell, of each kind of part; tetrahedra are VTK's kind 10.
_SECTIONS = {"triangle": "Polys", "line": "Lines", "points": "Verts", "tetra": ""}
_TETRAHEDRON = 10
#: How much more than the bodies, as they are now, a camera shows: they move, and one does not know where.
_ROOM = 1.5
#: The camera steps back after bodies that leave its picture, until it shows so many times what it showed first.
_MOST_ROOM = 4.0


class LiveSeries:
    """The newest frame of a simulation, in memory: given as to `PvdSeries`, read as from a file.

    Attributes
    ----------
    path : Path
        No file.
    times : list of float, s
        Time of the newest frame.
    parts : list of str
        Names of the parts.
    """

    def __init__(self) -> None:
        self.path, self.times, self.parts = Path(), list[float](), list[str]()
        self._register = PartRegister("the simulation", "float64")
        self._frame: Mapping[str, PartFrame] = {}

    def add_part(self, name: str, points: npt.ArrayLike | None, cells: npt.ArrayLike | None, kind: PartKind) -> None:
        """Register a part; the rules are those of `PvdSeries.add_part`."""
        self._register.add(name, points, cells, kind)
        self.parts.append(name)

    def write_frame(self, time: float, parts: Mapping[str, PartFrame]) -> None:
        """Take the state at a time, s, in place of the one before."""
        self.times, self._frame = [time], dict(parts)

    def read(self, number: int, part: str) -> pyvista.DataSet:
        """Read a part of the newest frame, number 0."""
        if part not in self._frame or number:
            raise VizError(f"frame {number} has no part {part!r}; there is frame 0 with {', '.join(self._frame)}.")
        frame, own = self._frame[part], self._register.parts[part]
        points = np.asarray(frame.points, dtype=np.float64)
        cells = own.cells if own.kind != "points" else np.arange(len(points))[:, None]
        ends = cells.shape[1] * np.arange(1, len(cells) + 1, dtype=np.int64)
        types = np.full(len(cells), _TETRAHEDRON, dtype=np.uint8) if own.kind == "tetra" else None
        rows = {_SECTIONS[own.kind]: CellRows(cells.ravel().astype(np.int64), ends, types)} if len(cells) else {}
        fields = [
            Field(place, name, np.asarray(values))
            for place, data in (("PointData", frame.point_data), ("CellData", frame.cell_data))
            for name, values in data.items()
        ]
        return make_data_set(points, rows, fields)

    def source(self, number: int, part: str) -> Hashable:
        """Return what a part is read from: memory of its own."""
        return number, part


@dataclass(frozen=True)
class Pull:
    """What the mouse pulls.

    Attributes
    ----------
    part : str
        The part that it holds.
    at : ndarray, (3,), m
        Where it took hold, world.
    to : ndarray, (3,), m
        Where it is now, in the plane of the picture through that point.
    number : int
        Counts the pulls.
    """

    part: str
    at: FloatArray
    to: FloatArray
    number: int


class PlayView(ScenePage):
    """The page of a simulation that is stepped by whoever made the page, who asks it what the visitor wants.

    Parameters
    ----------
    series : LiveSeries
        With the frame of the start.
    label : str
        Title of the panel.
    host, port, field
        See `RunView`.
    loose : collection of str
        Parts that can be pulled.

    Attributes
    ----------
    pull : Pull or None
        What is pulled now.
    paused : bool
        Whether the visitor stopped it.
    """

    _below = 1.0  # what hangs free at the start may sag or fall

    def __init__(
        self, series: LiveSeries, label: str, *, loose: Collection[str], host: str = "127.0.0.1", port: int = 8080,
        field: str | None = None,
    ) -> None:  # fmt: skip
        self._loose, self._seen = frozenset(loose), False
        self.pull: Pull | None = None
        self.paused = self._again = False
        self._pulls = 0
        super().__init__(series, label, host=host, port=port, field=field)
        self._rigid = RigidColours(frozenset(series.parts) - self._loose)
        self._in_view = self._framed()
        self._most_seen = _MOST_ROOM * float(np.ptp(self._in_view, axis=0).max())
        gui = self._server.gui
        self._text = gui.add_markdown("")
        self._go = gui.add_button("Pause")
        self._go.on_click(lambda _: self.pause(not self.paused))
        self._restart = gui.add_button("Start again")
        self._restart.on_click(lambda _: self._ask_again())
        self._strength = gui.add_slider("Pull", min=0.5, max=20.0, step=0.5, initial_value=3.0, hint="times the weight")
        self._add_looks()
        self.show("")

    @property
    def strength(self) -> float:
        """How many times its weight a body is pulled by a mouse that is a tenth of the scene away."""
        return float(self._strength.value)

    @property
    def size(self) -> float:
        """Size of the scene, m."""
        return float(self._survey.size)

    def pause(self, paused: bool) -> None:
        """Stop, or let it go on."""
        self.paused = paused
        self._go.label = "Go on" if paused else "Pause"

    def asked_again(self) -> bool:
        """Whether the visitor has asked for the start since the last call."""
        asked, self._again = self._again, False
        return asked

    def _ask_again(self) -> None:
        self._again = True

    def look(self) -> None:
        """Widen the range of colours and of arrows by what the newest frame shows, and the picture by where its bodies are."""
        self._step_back()
        now = Survey.of([self._frame(0)], str(self._field.value), False, inside=self._cut.value != NO_CUT)
        seen = Survey.joint([self._survey, now]) if self._seen else now
        self._seen = True
        self._survey = replace(
            seen, corners=self._survey.corners, still=self._survey.still, pushes=self._survey.pushes, decimals=2
        )

    def _step_back(self) -> None:
        """Show bodies that have left the picture to each visitor who has not turned the camera."""
        old, corners = self._in_view, Survey.of([self._frame(0)], "", False).corners
        inside = (corners >= old.min(axis=0)).all() and (corners <= old.max(axis=0)).all()
        grown = np.vstack([old, self._framed()])
        if inside or self.pull is not None or not np.ptp(grown, axis=0).max() <= self._most_seen:
            return
        before, self._in_view = self._first_view, grown
        view = self._first_view = placed_camera("iso", grown, ASPECT)
        near = 1e-3 * float(np.linalg.norm(before.position - before.focal_point))
        for camera in (self._server.initial_camera, *(client.camera for client in self._server.get_clients().values())):
            moved = np.subtract(camera.position, before.position), np.subtract(camera.look_at, before.focal_point)
            if all(float(np.linalg.norm(by)) < near for by in moved):
                camera.position, camera.look_at = view.position, view.focal_point

    def _framed(self) -> FloatArray:
        corners = Survey.of([self._frame(0)], "", False).corners
        return corners.mean(axis=0) + _ROOM * (corners - corners.mean(axis=0))

    def _look_through(self, field: str, required: bool = True, inside: bool = False) -> Survey:
        self._seen = False
        return super()._look_through(field, required, inside)

    def show(self, sentence: str) -> None:
        """Draw the newest frame, and say a sentence (Markdown) below its time; viser itself draws an arrow to the mouse."""
        field, arrows, cut = self._chosen_looks()
        frame = self._frame(0)
        with self._server.atomic():
            self._draw_frame(frame, field, arrows, cut)
            self._text.content = f"**t = {frame.time:.2f} s**\n\n{sentence}"

    def _added(self, name: str, frame: Any) -> None:
        if name not in self._loose:
            return

        async def drag(event: Any) -> None:  # as a coroutine, so that calls come in the order of the mouse
            self.drag(name, event.phase, event.start_position, event.end_position)

        frame.on_drag("left")(drag)

    def drag(self, name: str, phase: str, at: npt.ArrayLike, to: npt.ArrayLike) -> None:
        """Take what the mouse does with a part: "start" at a point (3,), m, "update" to another one, "end"."""
        if phase == "end":
            self.pull = None
        elif phase == "start" or self.pull is None:
            self._pulls += 1
            self.pull = Pull(name, np.array(at, dtype=np.float64), np.array(to, dtype=np.float64), self._pulls)
        else:
            self.pull = replace(self.pull, to=np.array(to, dtype=np.float64))
