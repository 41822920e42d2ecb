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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from viz.animation import Animation
from viz.camera import Camera, View, followed_body, parts_of, placed_camera
from viz.canvas import render_environment
from viz.ending import read_ending
from viz.errors import VizError
from viz.film import Film, write_png
from viz.marks import over, side_by_side
from viz.schedule import schedule
from viz.stage import Clip, Stage
from viz.survey import Frame, Survey, box_corners, chosen_field, frames_of, is_shown_body, refuse_idle_field

__all__ = ["RenderResult", "RenderingStatus", "probe_rendering", "render_run"]


#: VTK alone, because it is there four times sooner than pyvista; without numpy, which it would import to offer what is not used.
PROBE = """
import sys
sys.modules["numpy"] = None
import vtkmodules.vtkRenderingOpenGL2
from vtkmodules.vtkCommonCore import vtkUnsignedCharArray
from vtkmodules.vtkFiltersSources import vtkSphereSource
from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper, vtkRenderer, vtkRenderWindow
sphere, mapper, actor, renderer = vtkSphereSource(), vtkPolyDataMapper(), vtkActor(), vtkRenderer()
mapper.SetInputConnection(sphere.GetOutputPort())
actor.SetMapper(mapper)
renderer.AddActor(actor)
renderer.SetBackground(0.2, 0.3, 0.4)
window = vtkRenderWindow()
window.SetOffScreenRendering(1)
window.SetSize(16, 16)
window.AddRenderer(renderer)
window.Render()
pixels = vtkUnsignedCharArray()
window.GetPixelData(0, 0, 15, 15, 0, pixels, 0)
seen = bytes(memoryview(pixels))
assert len(seen) == 768 and len(set(seen)) > 6, "the picture is empty"
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
    html : Path or None
        The page with the film in it, or None if not requested.
    seconds : float, s
        How long the film is.
    """

    frames: list[Path]
    mp4: Path | None
    gif: Path | None = None
    html: Path | None = None
    seconds: float = 0.0


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


# So many parameters because each option of a picture has one; over 80 lines with them, since what it opens it closes.
def render_run(
    run_dir: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    out: Path | None = None,
    speed: float = 1.0,
    fps: float = 25.0,
    size: tuple[int, int] = (1280, 960),
    every: int = 1,
    stills: int = 5,
    field: str | None = None,
    mp4: bool = True,
    gif: bool = False,
    html: bool = False,
    clip: str | None = None,
    camera: Camera = "iso",
    arrows: bool = True,
    scale_bar: bool = True,
    transparent: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> RenderResult:
    """Draw a run folder, or several side by side: PNG stills, an mp4 film, a GIF, a page that plays.

    The film runs in real time, or at `speed`, which is then written on it; only the frames that it and the stills need are read
    and drawn. Camera, colour range and arrow scale are the same in all frames.

    Parts of tetrahedra (.vtu) are coloured by `field`; so are lines (rods), which are tubes of their point field ``radius`` [m],
    at least 0.15 % of the scene. Of other surfaces (.vtp) those that never move are light grey, the others have a hue for each
    owner. The part "floor" is a plane with a light chequer; without one a shadow is drawn. The range of the colours is that of
    the visible surface, but for a tenth of it and for 5 % of the frames; of a body that is cut, that of 98 % of its points.

    The part "contacts" is drawn as arrows of its point field ``force`` [N] that end at the contact. The largest arrow is a sixth
    of the scene, less if many forces act; those of impacts are cut at a fifth.

    Parameters
    ----------
    run_dir : Path or sequence of Path
        Run folder with frames in either format. Several are drawn side by side with one camera, colour range and arrow scale;
        each shows the frame nearest in time to that of the longest run.
    out : Path, optional
        Folder of the pictures, by default ``RUN/pictures`` of the first run; files of the same name are replaced.
    speed : float
        Seconds of the run in a second of the film, > 0: 1 is real time, 0.1 ten times slower.
    fps : float
        Film frames per second, > 0 and at most 240. A frame of the run is shown until the next one.
    size : (int, int)
        Width and height [pixel] of the picture of a run, 64 to 8192; odd numbers are rounded up (the film needs even ones).
    every : int
        Use every n-th frame of the run, >= 1; the last frame always.
    stills : int
        Number of PNG pictures, evenly spaced in the frames, first and last included; 0 for none.
    field : str, optional
        Point or cell field of the soft bodies and rods; vectors are shown by their length. By default what the scene is about:
        the von Mises stress of soft bodies, the tension where only rods are.
    mp4 : bool
        Write ``run.mp4`` (H.264, yuv420p).
    gif : bool
        Write ``run.gif``, at most 640 pixels wide and 25 frames a second.
    html : bool
        Write ``run.html``, one page with the film in it: play, pause, scrub, speed. At most 600 pictures, 1280 pixels wide.
    clip : str, optional
        Cut soft bodies open: "y" removes the half beyond the middle along +y, "-y" along -y, "z=0.02" the part beyond 0.02 m.
    camera : str or (position, focal point, up)
        "iso", "front" (looks along +y, x right, z up), "side" (along -x, y right) or "top" (along -z, x right, y up).
        "azimuth,elevation" or "azimuth,elevation,zoom": degrees around z from "front" towards +x, and above the horizontal;
        zoom 2 goes twice as near. "follow:BODY" moves with a body ("follow:ball,28,23,2" from such a direction). Three
        3-vectors [m] define any other camera.
    arrows : bool
        Draw the contact forces.
    scale_bar : bool
        Draw a length, which is true at the middle of the scene.
    transparent : bool
        No background in the stills; films have none of that, they stay white.
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
    run_dirs = [Path(run_dir)] if isinstance(run_dir, (str, os.PathLike)) else [Path(folder) for folder in run_dir]
    if not run_dirs:
        raise VizError("no run folder was given; give one or more.")
    width, height = _checked_options(size, fps, speed, every, stills, mp4 or gif or html)
    probe = ThreadPoolExecutor(1)
    status = probe.submit(probe_rendering)  # half a second, while the frames are read
    probe.shutdown(wait=False)
    plan = schedule([frames_of(folder, every) for folder in run_dirs], stills, (fps, speed) if mp4 or gif or html else None)
    times, numbers = plan.times, plan.numbers
    survey, field = _surveyed([plan.looked_at(k) for k in range(len(run_dirs))], field, clip is not None)
    view = _view(camera, survey, width / height, plan.rows[numbers[0]][0])
    cut = None if clip is None else Clip.read(clip, survey)
    if not status.result().ok:
        raise VizError(status.result().message)

    out = _made(run_dirs[0] / "pictures" if out is None else Path(out))
    written: list[Path] = []
    paths = [out / name for name, asked in (("run.mp4", mp4), ("run.gif", gif)) if asked]
    titles = [folder.resolve().name for folder in run_dirs] if len(run_dirs) > 1 else [""]
    words = "" if speed == 1.0 else f"{speed:g} x real time"
    stages: list[Stage] = []
    films: list[Film] = []
    pages: list[Animation] = []
    threads = threadpool_limits(limits=1)  # those of BLAS wait for each other where the software that draws has all cores
    try:
        whole = (len(run_dirs) * width, height)
        for path in paths:
            films.append(Film(path, whole, fps))
        if html:
            pages.append(_page(run_dirs, out / "run.html", whole, len(set(plan.film)), survey.decimals))
        for frame, title in zip(plan.rows[numbers[0]], titles, strict=True):
            looks = {"transparent": transparent, "scale_bar": scale_bar}
            stages.append(Stage(frame, survey, view, (width, height), field, arrows, cut, title, **looks))
        for done, number in enumerate(numbers, start=1):
            row = plan.rows[number]
            drawn = [(stage, stage.draw(frame), frame) for stage, frame in zip(stages, row, strict=True)]
            plain = [stage.put_marks(picture, frame) for stage, picture, frame in drawn]
            if number in plan.stills:
                longest = max(row, key=lambda frame: frame.series.times[-1])
                written.append(write_png(out / f"frame_{longest.number:06d}.png", side_by_side(plain)))
            times_shown = plan.film.count(number)
            if times_shown:
                for page in pages:
                    page.add(over(plain), times[number])
                slow = [stage.put_marks(picture, frame, words) for stage, picture, frame in drawn] if words else plain
                for film in films * times_shown:
                    film.add(over(slow))
            if progress is not None:
                progress(done, len(numbers))
        for film in films:
            film.finish()
        for page in pages:
            page.finish()
    finally:
        threads.restore_original_limits()
        for stage in stages:
            stage.close()
        for film in films:
            film.abandon()
        for page in pages:
            page.abandon()
    made = {kind: out / f"run.{kind}" if asked else None for kind, asked in (("mp4", mp4), ("gif", gif), ("html", html))}
    return RenderResult(written, made["mp4"], made["gif"], made["html"], len(plan.film) / fps)


def _surveyed(runs: list[list[Frame]], field: str | None, inside: bool) -> tuple[Survey, str]:
    """Look at frames of each run: what all pictures have in common, and the field that colours them."""
    required = field is not None
    if field is not None:
        refuse_idle_field(field, [frames[0] for frames in runs])
    field = next((name for frames in runs if (name := chosen_field(frames[0]))), "") if field is None else field
    return Survey.joint([Survey.of(frames, field, required=required, inside=inside) for frames in runs]), field


def _made(folder: Path) -> Path:
    """Make the folder of the pictures."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise VizError(f"the picture folder {folder} cannot be made ({error.strerror}); choose another folder.") from error
    return folder


def _page(run_dirs: Sequence[Path], path: Path, size: tuple[int, int], pictures: int, decimals: int) -> Animation:
    """Begin the page that plays, headed by the names of the runs and how they ended."""
    shown = ", ".join(folder.resolve().name for folder in run_dirs)
    ended = "; ".join(dict.fromkeys(read_ending(folder)[0] for folder in run_dirs))
    return Animation(path, size, pictures, shown, f"femsim, {ended}", decimals)


def _view(camera: Camera, survey: Survey, aspect: float, first: Frame) -> View:
    """Place the camera; one that follows a body starts at the first frame of the first run."""
    body = followed_body(camera)
    box = None
    if body:
        parts = parts_of(body, [name for name in first.series.parts if is_shown_body(name)])
        box = np.concatenate([box_corners(first.read(name)) for name in parts])
    return placed_camera(camera, survey.framed, aspect, box)


def _checked_options(size: tuple[int, int], fps: float, speed: float, every: int, stills: int, film: bool) -> tuple[int, int]:
    if len(size) != 2 or not all(64 <= pixels <= 8192 for pixels in size):
        raise VizError(f"size is {size}; it must be (width, height) with 64 to 8192 pixels each.")
    if not (np.isfinite(fps) and 0 < fps <= 240):
        raise VizError(f"fps is {fps}; it must be above 0 and at most 240 film frames a second.")
    if not (np.isfinite(speed) and 1e-6 <= speed <= 1e6):
        raise VizError(f"speed is {speed}; it must be 1e-6 to 1e6: 1 is real time, 0.1 ten times slower.")
    if every < 1:
        raise VizError(f"every is {every}; it must be 1 (all frames) or more.")
    if stills < 0:
        raise VizError(f"stills is {stills}; it must be 0 (no pictures, only the film) or more.")
    if stills == 0 and not film:
        raise VizError("stills is 0 and no film is asked for; ask for at least one still or a film.")
    return size[0] + size[0] % 2, size[1] + size[1] % 2
