"""A run in the browser, even while it is running: bodies, rods, contact forces, curves of sensors; play, scrub, cut, turn.

The server (viser) runs in its own threads and keeps only the shown frame; one loop reads the controls and the run folder and
draws. Frames are read when shown, so a long run costs no memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from foreign.text import read_json
from viz.errors import VizError
from viz.scene_page import NO_CUT, ScenePage
from viz.series import FrameSeries, open_frames
from viz.survey import Survey
from viz.view_plot import SensorPlot

__all__ = ["RunView", "view_run"]

SURVEYED = 12  # frames that determine colour range, arrow scale and camera
TICK = 1.0 / 30.0  # s between two reads of the controls
LOOK = 0.5  # s between two reads of the run folder
#: What a view depends on: frame, field, arrows, cut, number of frames, health.
Wanted = tuple[int, str, bool, str, int, str]


class RunView(ScenePage):
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
        self._run_dir = Path(run_dir)
        self._series: FrameSeries
        self._surveyed = 0  # number of frames when the colour range was set
        label = self._run_dir.resolve().name
        super().__init__(open_frames(self._run_dir), label, host=host, port=port, field=field)
        server = self._server
        self._looked = time.monotonic()
        self._drawn: Wanted | None = None
        self.shown = 0
        self._clock = 0.0
        self._playing = False
        self._text = server.gui.add_markdown("")
        self._health = _health_line(run_dir)
        self._play = server.gui.add_button("Play")
        self._play.on_click(lambda _: self._toggle())
        self._slider = server.gui.add_slider("Frame", min=0, max=max(1, len(self._series.times) - 1), step=1, initial_value=0)
        self._speed = server.gui.add_dropdown("Speed", ("0.1 x", "0.25 x", "0.5 x", "1 x", "2 x", "5 x"), initial_value="1 x")
        self._newest = server.gui.add_checkbox("Follow the newest frame", False)
        self._add_looks()
        self._plot = SensorPlot(server.gui, self._run_dir)
        self._draw()

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
        chosen = int(self._slider.value)
        if chosen != self.shown:  # moved by hand
            self.shown = min(chosen, last)
            self._clock = times[self.shown]
            self._newest.value = False
        elif self._newest.value:
            self.shown, self._clock = last, times[last]
        elif self._playing:
            self._clock = min(self._clock + elapsed * float(self._speed.value.split()[0]), times[last])
            self.shown = max(0, int(np.searchsorted(times, self._clock + 1e-9, side="right")) - 1)
            if self.shown == last and not self._grows():
                self._toggle()
        if self._slider.value == chosen != self.shown:  # not where the visitor has moved it meanwhile
            self._slider.value = self.shown
        if self._wanted() != self._drawn:
            self._draw()
        else:
            self._settle()
        self._plot.show(times[self.shown])

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

    def _look_through(self, field: str, required: bool = True, inside: bool = False) -> Survey:
        """Choose colour range, of the surface or of all that is inside, and arrow scale from some frames of the whole run."""
        self._surveyed = len(self._series.times)
        numbers = np.unique(np.linspace(0, self._surveyed - 1, SURVEYED).round().astype(int))
        return Survey.of([self._frame(int(number)) for number in numbers], field, required, inside=inside)

    def _wanted(self) -> Wanted:
        """Return what the page must show now."""
        return self.shown, *self._chosen_looks(), len(self._series.times), self._health

    def _draw(self) -> None:
        """Show the frame, field and arrows that the controls select."""
        wanted = self._wanted()
        _, field, arrows, cut, _, _ = wanted
        frame = self._frame(self.shown)
        with self._server.atomic():
            self._draw_frame(frame, field, arrows, cut)
            when = f"**t = {frame.time:.{self._survey.decimals}f} s**, frame {self.shown} of {len(self._series.times) - 1}"
            self._text.content = self._health + when
        self._drawn = wanted


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


def _health_line(run_dir: Path) -> str:
    """Health verdict of a run and its first reason as a paragraph of Markdown; empty where run.json does not say."""
    try:
        health = read_json(run_dir / "run.json").get("health", {})
        reasons = [str(reason["sentence"]) for reason in health.get("reasons", [])[:1]]
        verdict = str(health["verdict"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return f"**health: {verdict}**{''.join(f' ({reason})' for reason in reasons)}\n\n"
