"""Pictures and a film of a run folder, drawn without a display.

VTK's renderer needs the system's OpenGL. Without it the process ends in a segmentation fault instead of an exception, so
`probe_rendering` first draws a tiny picture in a child process, once per process, and every function here checks it before it
uses the renderer.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from viz.errors import VizError
from viz.film import Film, write_png
from viz.stage import Clip, Stage, render_environment
from viz.survey import DEFAULT_FIELD, Camera, Frame, Survey, frames_of, placed_camera

__all__ = ["RenderResult", "RenderingStatus", "probe_rendering", "render_run"]


PROBE = """
import pyvista
plotter = pyvista.Plotter(off_screen=True, window_size=(16, 16))
plotter.add_mesh(pyvista.Sphere(), color="black")
picture = plotter.screenshot(None, return_img=True)
assert picture.shape == (16, 16, 3) and picture.std() > 1, "the picture is empty"
"""
PROBE_SECONDS = 120.0
INSTALL_HINT = "apt-get install -y --no-install-recommends libegl1 libgl1-mesa-dri"


@dataclass(frozen=True)
class RenderingStatus:
    """Whether pictures can be drawn on this machine.

    Attributes
    ----------
    ok : bool
        True if the trial picture was correct.
    message : str
        The finding; if not ok, also what to install.
    """

    ok: bool
    message: str


@dataclass(frozen=True)
class RenderResult:
    """The files that `render_run` wrote.

    Attributes
    ----------
    frames : list of Path
        The PNG stills, in time order.
    mp4, gif : Path or None
        The films, or None if not requested.
    """

    frames: list[Path]
    mp4: Path | None
    gif: Path | None = None


def probe_rendering() -> RenderingStatus:
    """Draw a 16 x 16 picture in a child process and report whether it worked; runs once per process.

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
            env={**os.environ, **render_environment()},
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


def render_run(
    run_dir: Path | Sequence[Path],
    *,
    out: Path | None = None,
    fps: float = 25.0,
    size: tuple[int, int] = (1280, 960),
    every: int = 1,
    stills: int = 5,
    field: str = DEFAULT_FIELD,
    mp4: bool = True,
    gif: bool = False,
    clip: str | None = None,
    camera: Camera = "iso",
    arrows: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> RenderResult:
    """Draw a run folder, or several side by side: PNG stills, an mp4 film, a GIF.

    Parts of tetrahedra (.vtu) are coloured by `field`; lines (rods) are tubes of their point field ``radius`` [m], also coloured
    if they have the field; other surfaces (.vtp) are grey or blue, the part "floor" is a plane with a light chequer, and the part
    "contacts" is drawn as arrows of its point field ``force`` [N] that end at the contact. Camera, colour range (0 to the 98th
    percentile over the run, rounded up) and arrow scale (the largest is a quarter of the scene, less if many forces act) are the
    same in all frames.

    Parameters
    ----------
    run_dir : Path or sequence of Path
        Run folder with frames in either format. Several are drawn side by side with one camera, colour range and arrow scale;
        each shows the frame nearest in time to that of the longest run.
    out : Path, optional
        Folder of the pictures, by default ``RUN/pictures`` of the first run; files of the same name are replaced.
    fps : float
        Film frames per second, > 0; each drawn frame of the run is one film frame.
    size : (int, int)
        Width and height [pixel] of the picture of a run, 64 to 8192; odd numbers are rounded up (the film needs even ones).
    every : int
        Draw every n-th frame of the run, >= 1; the last frame is always drawn.
    stills : int
        Number of PNG pictures, evenly spaced in the drawn frames, first and last included; 0 for none.
    field : str
        Point or cell field of the soft bodies and rods; vectors are shown by their length.
    mp4 : bool
        Write ``run.mp4`` (H.264, yuv420p).
    gif : bool
        Write ``run.gif``, at most 640 pixels wide and 25 frames a second.
    clip : str, optional
        Cut soft bodies open: "y" removes the half beyond the middle along +y, "-y" along -y, "z=0.02" the part beyond 0.02 m.
    camera : {"iso", "front", "side", "top"} or (position, focal point, up)
        "front" looks along +y (x right, z up), "side" along -x (y right), "top" along -z (x right, y up).
        Three 3-vectors [m] define any other camera.
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
        When the run folder, its frames or the field are missing, an option is not allowed, or this machine cannot draw (the
        message then names the packages to install).
    """
    run_dirs = [Path(run_dir)] if isinstance(run_dir, (str, Path)) else [Path(folder) for folder in run_dir]
    if not run_dirs:
        raise VizError("no run folder was given; give one or more.")
    width, height = _checked_options(size, fps, every, stills, mp4 or gif)
    runs = [frames_of(folder, every) for folder in run_dirs]
    survey = Survey.joint([Survey.of(frames, field) for frames in runs])
    view = placed_camera(camera, survey, width / height)
    cut = None if clip is None else Clip.read(clip, survey)
    rows = _side_by_side(runs)
    drawn_stills = _still_numbers(len(rows), stills)
    status = probe_rendering()
    if not status.ok:
        raise VizError(status.message)

    out = run_dirs[0] / "pictures" if out is None else Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise VizError(f"the picture folder {out} cannot be made ({error.strerror}); choose another with out=.") from error
    written: list[Path] = []
    paths = [out / name for name, asked in (("run.mp4", mp4), ("run.gif", gif)) if asked]
    titles = [folder.name for folder in run_dirs] if len(run_dirs) > 1 else [""]
    numbers = range(len(rows)) if paths else sorted(drawn_stills)
    stages: list[Stage] = []
    films: list[Film] = []
    try:
        for path in paths:
            films.append(Film(path, (len(runs) * width, height), fps))
        for frame, title in zip(rows[0], titles, strict=True):
            stages.append(Stage(frame, survey, view, (width, height), field, arrows, cut, title))
        for done, number in enumerate(numbers, start=1):
            row = rows[number]
            picture = np.hstack([stage.draw(frame) for stage, frame in zip(stages, row, strict=True)])
            if number in drawn_stills:
                longest = max(row, key=lambda frame: frame.series.times[-1])
                written.append(write_png(out / f"frame_{longest.number:06d}.png", picture))
            for film in films:
                film.add(picture)
            if progress is not None:
                progress(done, len(numbers))
        for film in films:
            film.finish()
    finally:
        for stage in stages:
            stage.close()
        for film in films:
            film.abandon()
    return RenderResult(written, out / "run.mp4" if mp4 else None, out / "run.gif" if gif else None)


def _side_by_side(runs: list[list[Frame]]) -> list[list[Frame]]:
    """For each frame of the longest run, the frames of all runs nearest to it in time."""
    longest = max(runs, key=lambda frames: (frames[-1].time, len(frames)))
    times = [np.array([frame.time for frame in frames]) for frames in runs]
    return [
        [frames[int(np.argmin(np.abs(own - frame.time)))] for frames, own in zip(runs, times, strict=True)] for frame in longest
    ]


def _checked_options(size: tuple[int, int], fps: float, every: int, stills: int, film: bool) -> tuple[int, int]:
    if len(size) != 2 or not all(64 <= pixels <= 8192 for pixels in size):
        raise VizError(f"size is {size}; it must be (width, height) with 64 to 8192 pixels each.")
    if not (np.isfinite(fps) and 0 < fps <= 240):
        raise VizError(f"fps is {fps}; it must be above 0 and at most 240 film frames a second.")
    if every < 1:
        raise VizError(f"every is {every}; it must be 1 (all frames) or more.")
    if stills < 0 or (stills == 0 and not film):
        raise VizError(f"stills is {stills} and no film is asked for; ask for at least one still or a film.")
    return size[0] + size[0] % 2, size[1] + size[1] % 2


def _still_numbers(n_frames: int, stills: int) -> set[int]:
    return {round(float(x)) for x in np.linspace(0, n_frames - 1, stills)} if stills != 1 else {n_frames - 1}
