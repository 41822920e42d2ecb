"""A scene in the browser, stepped in real time, whose bodies the mouse pulls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from femsim.base.errors import InputError
from femsim.run.frames import Shown
from femsim.run.hand import Hand
from femsim.run.result import Run
from femsim.run.simulation import Simulation, StepFailedError
from femsim.scene.scene import Scene
from viz import LiveSeries, PlayView

#: Most pictures a second, the share of the time that drawing may take, and s between two looks at the range of colours.
_PICTURES, _SHARE, _LOOK = 30.0, 0.4, 0.5
#: Part of the size of the scene by which the band is stretched where it pulls by the strength that the page says.
_STRETCH = 0.1
#: Seconds by which the simulation may be behind before it stops to catch up.
_BEHIND = 0.2


class Player:
    """A scene that goes on while its page is open.

    Parameters
    ----------
    scene : Scene
        What is simulated; it goes on after its duration.
    host, port, field
        See :func:`play`.
    options
        Of :class:`~femsim.run.simulation.Simulation`.

    Attributes
    ----------
    sim : Simulation
        The simulation.
    view : PlayView
        The page.
    """

    def __init__(
        self, scene: Scene, *, host: str = "127.0.0.1", port: int = 8080, field: str | None = None, **options: Any
    ) -> None:
        self.sim = Simulation(scene, **options)
        stepper, series = self.sim.stepper, LiveSeries()
        self._shown = Shown(stepper, series, options.get("fields"))
        self._shown.write(None)
        loose = [part.name for part in scene.parts if part.body >= 0]
        try:
            self.view = PlayView(series, scene.name, loose=loose, host=host, port=port, field=field)
        except BaseException:
            self.sim.close()
            raise
        self._hand: Hand | None = None
        self._pulled = -1
        self._failure = ""
        self._real = time.monotonic()
        self._drawn = self._looked = 0.0
        self._cost = 0.0

    def close(self) -> Run | None:
        """Close the page, and complete what is recorded."""
        self.view.close()
        return self.sim.close()

    def tick(self) -> None:
        """Take the step that is due, if one is, and draw what is to be drawn."""
        if self.view.asked_again():
            self._start_again()
        now = time.monotonic()
        if self.view.paused:
            self._real = now
            time.sleep(0.5 / _PICTURES)
        elif now < self._real:
            time.sleep(min(self._real - now, 0.5 / _PICTURES))
        else:
            self._real = max(self._real, now - _BEHIND) + self.sim.dt
            self._step()
        self._draw()

    def _step(self) -> None:
        """Pull where the mouse pulls, and take a step."""
        pull = self.view.pull
        if pull is None or pull.number != self._pulled:
            if self._hand is not None:
                self._hand.let_go()
            self._hand = None
        if pull is not None:
            if self._hand is None:
                self._hand = Hand(self.sim, pull.part, pull.at, self.view.strength, _STRETCH * self.view.size)
                self._pulled = pull.number
            self._hand.pull(pull.to)
        try:
            self.sim.step()
        except StepFailedError as error:
            self._failure = f"{error}"
            self.view.pause(True)

    def _start_again(self) -> None:
        """Go back to the start."""
        self.view.pull = self._hand = None
        try:
            self.sim.reset()
        except InputError as error:  # it records
            self._failure = f"{error}"
            return
        self._failure = ""
        self.view.pause(False)
        self._drawn = 0.0

    def _draw(self) -> None:
        """Draw where that is due: often, but not so often that drawing takes the time that steps need."""
        now = time.monotonic()
        if now < self._drawn + max(1.0 / _PICTURES, self._cost / _SHARE):
            return
        self._shown.write(self.sim.report)
        if now > self._looked + _LOOK:
            self._looked = now
            self.view.look()
        self.view.show(self._sentence())
        self._drawn = time.monotonic()
        self._cost = self._drawn - now

    def _sentence(self) -> str:
        """Say how it goes: what failed, or the verdict, its first reason and the pull."""
        if self._failure:
            return f"**{self._failure}**"
        reasons = self.sim.reasons[:1]
        health = f"health: {self.sim.verdict}{''.join(f' ({reason})' for reason in reasons)}"
        behind = time.monotonic() - self._real
        slow = "" if behind < _BEHIND or self.view.paused else "; slower than real time"
        return f"{health}{slow}"


def play(
    scene: Scene,
    solver: str = "auto",
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    field: str | None = None,
    open_browser: bool = True,
    ready: Callable[[str], None] | None = None,
    until: Callable[[], bool] = lambda: False,
    out: str | Path | None = None,
    overwrite: bool = False,
    fields: Sequence[str] | None = None,
    **options: Any,
) -> Run | None:
    """Step a scene in real time in the browser, where the mouse pulls its bodies, until told to stop or Ctrl-C.

    Dragging a body pulls the point under the mouse, see :class:`~femsim.run.hand.Hand`; dragging beside the bodies turns the
    camera. Where steps take longer than they simulate, it goes slower than real time. It does not end with the scene.

    Parameters
    ----------
    scene : Scene
        What is simulated.
    solver
        As in :func:`~femsim.run.simulate.simulate`.
    host : str
        Address at which the page listens; "0.0.0.0" admits other machines.
    port : int
        First port to try, 1 to 65535; if taken, the next ones follow.
    field : str, optional
        Field that colours soft bodies and rods first; default what the scene is about.
    open_browser : bool
        Open the page in this machine's browser.
    ready : callable, optional
        Called once with the address of the page.
    until : callable, optional
        Called before every step and picture; returns whether to stop.
    out, overwrite, fields
        Run folder to record into, with what was pulled; "Start again" is not possible then. Default none.
    options
        More of :class:`~femsim.run.simulation.Simulation`: ``dt``, ``tolerance``, ``threads``, ``fps`` ...

    Returns
    -------
    Run or None
        What was recorded.

    Raises
    ------
    InputError, VizError
        Wrong values, a folder that exists, viser is missing, or a port or host that is not allowed.
    """
    player = Player(
        scene, host=host, port=port, field=field, solver=solver, out=out, overwrite=overwrite, fields=fields, **options
    )
    run = None
    try:
        if ready is not None:
            ready(player.view.url)
        if open_browser:
            import webbrowser

            webbrowser.open(player.view.url)
        while not until():
            player.tick()
    except KeyboardInterrupt:
        pass
    finally:
        run = player.close()
    return run
