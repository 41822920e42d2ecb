"""Commands that show runs: render, plot, report, view, play, paraview."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from femsim.base.errors import InputError
from femsim.base.status import NOT_CONVERGED, OK
from femsim.cli.base import Assignments, Flag, Whole, app
from femsim.cli.tools import Bar, default_folder, read_assignments

if TYPE_CHECKING:
    from femsim.studies.comparison.readers import Channel
    from viz import Look


def _pixels(text: str) -> tuple[int, int]:
    """Read WIDTHxHEIGHT."""
    words = text.lower().replace("×", "x").split("x")
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        raise InputError(f"--size is {text!r}; write WIDTHxHEIGHT in pixels, e.g. 1920x1080.")
    return int(words[0]), int(words[1])


@app.command
def render(
    runs: Annotated[tuple[Path, ...], Parameter(negative=())],
    /,
    *,
    out: Path | None = None,
    speed: float = 1.0,
    fps: float = 25.0,
    size: str = "1280x960",
    every: Whole = 1,
    stills: Whole = 5,
    field: str | None = None,
    camera: str = "iso",
    clip: str | None = None,
    mp4: bool = True,
    gif: bool = False,
    html: bool = False,
    arrows: bool = True,
    scale_bar: bool = True,
    transparent: bool = False,
    quiet: Flag = False,
) -> int:
    """Make pictures and a film of a run, or of several side by side, without a display.

    Parameters
    ----------
    runs
        Run folders.
    out
        Folder of the pictures; default RUN/pictures of the first run.
    speed
        Seconds of the run in a second of the film: 0.1 is ten times slower than real time; then written on the film.
    fps
        Pictures a second of the film.
    size
        Pixels, WIDTHxHEIGHT.
    every
        Use every so many frames.
    stills
        Number of PNG pictures, evenly spaced.
    field
        Field that colours soft bodies and rods, e.g. contact_pressure, velocity, bending_moment; default von_mises, tension in
        scenes of rods alone.
    camera
        iso, front, side or top; AZIMUTH,ELEVATION or AZIMUTH,ELEVATION,ZOOM in degrees, counted from front; follow:BODY moves
        with a body, follow:BODY,28,23,2 from such a direction.
    clip
        Cut soft bodies open: y takes away what lies beyond the middle along y, -y along -y, z=0.02 beyond 0.02 m.
    mp4
        Make the film.
    gif
        Make a GIF as well.
    html
        Make run.html as well: one file that plays anywhere.
    arrows
        Draw contact forces.
    scale_bar
        Draw a scale bar; it is true at the middle of the scene.
    transparent
        PNG pictures without a background.
    quiet
        No progress bar.
    """
    from viz import render_run

    _say_killed(runs)
    started, pixels = time.perf_counter(), _pixels(size)
    with Bar("rendering", quiet) as progress:
        result = render_run(
            runs,
            out=out,
            speed=speed,
            fps=fps,
            size=pixels,
            every=every,
            stills=stills,
            field=field,
            camera=camera,
            clip=clip,
            mp4=mp4,
            gif=gif,
            html=html,
            arrows=arrows,
            scale_bar=scale_bar,
            transparent=transparent,
            progress=progress,
        )
    if not quiet:
        for path in (*result.frames, result.mp4, result.gif, result.html):
            if path is not None:
                print(path)
        print(f"{time.perf_counter() - started:.1f} s{_length_of_film(result.seconds, speed)}")
    return OK


def _length_of_film(seconds: float, speed: float) -> str:
    """Say how long a film is, and how to make one that is easier to watch."""
    if seconds == 0.0:
        return ""
    said = f"; the film lasts {seconds:.3g} s{'' if speed == 1.0 else f' at {speed:g} x real time'}"
    if seconds < 1.0:
        return f"{said}, so short that --speed {speed * seconds / 5.0:.1g} shows more"
    if seconds > 60.0:
        return f"{said}; --speed {speed * seconds / 20.0:.1g} makes it shorter"
    return said


def _say_killed(runs: Iterable[Path]) -> None:
    """Say on stderr which runs were killed, before their results are shown."""
    from viz.ending import read_ending

    for run in runs:
        status, message = read_ending(run)
        if status == "killed":
            print(f"femsim: {run}: {message}", file=sys.stderr)


@Parameter(name="*")
@dataclass(frozen=True)
class LookOptions:
    """How figures look."""

    size: Annotated[str, Parameter(help="Width, or WIDTHxHEIGHT, of a figure in mm: 85 is a column of a paper; default 140.")] = (
        ""
    )
    font: Annotated[float, Parameter(help="Size of the labels, pt.")] = 9.0
    labels: Annotated[str, Parameter(help="Names of the runs in legends, with commas; default their folders.")] = ""
    formats: Annotated[str, Parameter(help="Some of png, svg and pdf, with commas; fonts are embedded.")] = "png,svg,pdf"

    def look(self) -> Look:
        """Return the look of the figures."""
        from viz import Look

        width, _, height = self.size.lower().replace("×", "x").removesuffix("mm").strip().partition("x")
        try:
            numbers = [float(text) if text else None for text in (width, height)]
        except ValueError:
            raise InputError(f"--size is {self.size!r}; write a width or WIDTHxHEIGHT in mm, e.g. 85 or 85x60.") from None
        return Look(numbers[0], numbers[1], self.font, _names(self.labels), _names(self.formats))


_LOOK = LookOptions()


def _names(text: str) -> tuple[str, ...]:
    """Read a list with commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


@app.command
def plot(
    runs: Annotated[tuple[Path, ...], Parameter(negative=())],
    /,
    *,
    out: Path | None = None,
    sensors: str = "",
    axes: str = "",
    log: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    card: Path | None = None,
    options: LookOptions = _LOOK,
) -> int:
    """Plot forces, torques, markers, residuals, energy and penetration of runs, overlaid; or metrics of sweeps.

    With --log: one figure of the runs over the log of an experiment, each axis with its own range and the error below.

    Parameters
    ----------
    runs
        Folders of runs, or of sweeps, each of which gets plots of its own.
    out
        Folder of the figures; default RUN/plots of the first run.
    sensors
        Only these sensors and markers, with commas.
    axes
        Only these components, with commas: fx, fy, fz, tx, ty, tz; x, y, z of markers; beside a log also MARKER.x, and columns.
    log
        Log of an experiment; may be given several times (repeated trials).
    card
        TOML file that says what the log does not, as for femsim compare.
    """
    from viz import plot_runs, plot_sweep

    _say_killed(runs)
    look = options.look()
    if card is not None and not log:
        raise InputError("--card says how a log is read, but no log is given; add --log FILE.")
    if log:
        for path in _plot_logs(runs, log, card, out, _names(sensors), _names(axes), look):
            print(path)
        return OK
    sweeps = [folder for folder in runs if (folder / "sweep.json").is_file()]
    single = [folder for folder in runs if folder not in sweeps]
    if sweeps and out is not None and len(runs) > 1:
        raise InputError(f"--out {out} is one folder, but each sweep gets plots of its own; plot one sweep, or leave --out out.")
    if sweeps and not single and (sensors or axes):
        raise InputError("--sensors and --axes choose what runs have measured, but these are sweeps, of which metrics are drawn.")
    written = [path for folder in sweeps for path in plot_sweep(folder, out, look=look)]
    if single:
        written += plot_runs(single, out, sensors=_names(sensors), axes=_names(axes), look=look)
    for path in written:
        print(path)
    return OK


# One parameter for each option of the command.
def _plot_logs(
    runs: tuple[Path, ...],
    logs: tuple[Path, ...],
    card: Path | None,
    out: Path | None,
    sensors: tuple[str, ...],
    axes: tuple[str, ...],
    look: Look,
) -> list[Path]:
    """Draw runs over logs; say what is seen, a sentence an axis."""
    from femsim.studies.comparison.compare import compare
    from viz import plot_comparison
    from viz.look import unknown

    if not runs:
        raise InputError("no run folder was given; give one or more.")
    if len(sensors) > 1:
        raise InputError(f"a log belongs to one sensor, but --sensors names {', '.join(sensors)}; name one.")
    names = look.names([folder.resolve().name for folder in runs])
    results = [compare(folder, logs, card, sensor=sensors[0] if sensors else None) for folder in runs]
    for axis in axes:
        if not any(axis in _axis_names(c) for c in results[0].channels):
            raise InputError(unknown("the axis", axis, [c.name for c in results[0].channels]))
    channels = [c for c in results[0].channels if not axes or not _axis_names(c).isdisjoint(axes)]
    chosen = [c.name for c in channels]
    columns = [k for k, c in enumerate(results[0].channels) if c.name in chosen]
    folder = out if out is not None else runs[0] / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    for name, result in zip(names, results, strict=True):
        print(f"{name}: {'; '.join(result.words(chosen))}.")
    return plot_comparison(
        results[0].time,
        [trial.values[:, columns] for trial in results[0].trials],
        [result.drawn(name, results[0], chosen) for name, result in zip(names, results, strict=True)],
        [c.drawn for c in channels],
        [folder / f"comparison.{kind}" for kind in look.formats],
        look,
    )


def _axis_names(channel: Channel) -> set[str]:
    """Names by which --axes takes a channel: fx, tip_1.x or x, elbow_torque or elbow_torque_Nm."""
    return {channel.name, channel.name.rpartition(".")[2], channel.column}


@app.command
def report(
    run: Path,
    *,
    out: Path | None = None,
    field: str | None = None,
    stills: Whole = 4,
    quiet: Flag = False,
) -> int:
    """Write one HTML page about a run: warnings, parameters, pictures, plots, timings.

    Parameters
    ----------
    run
        Run folder.
    out
        The page; default RUN/report.html, an older one is replaced.
    field
        Field that colours soft bodies and rods in the pictures; default von_mises, tension in scenes of rods alone.
    stills
        Number of pictures.
    quiet
        No progress bar.
    """
    from viz import write_report

    _say_killed((run,))
    with Bar("reporting", quiet) as progress:
        path = write_report(run, out, field=field, stills=stills, progress=progress)
    print(path)
    return OK


@app.command
def view(
    target: Path,
    *,
    set_: Assignments = (),
    out: Path | None = None,
    field: str | None = None,
    port: Whole = 8080,
    host: str = "127.0.0.1",
    open: bool = True,
) -> int:
    """Show a run in the browser, also while it goes on; a scene is run first. Ctrl-C ends it.

    Parameters
    ----------
    target
        Run folder, or a scene as for femsim run: that is run into a new folder and shown from its first frame on.
    set_
        NAME=VALUE: a parameter of the scene; may be given several times.
    out
        Run folder of a scene, new or empty. Default runs/NAME_OF_SCENE, with a number behind it where that exists.
    field
        Field that colours soft bodies and rods first; default von_mises, tension in scenes of rods alone.
    port
        Port of the page, or the next free one.
    host
        Address to listen at; 0.0.0.0 lets other machines see the page.
    open
        Open the page in this machine's browser.
    """
    from femsim.base.signals import interruptible
    from femsim.scene.scene_file import list_scenes
    from viz import view_run
    from viz.scene_page import import_viser

    import_viser()  # before a scene is run for nothing
    running = None
    if target.suffix == ".py" or (not target.exists() and str(target) in [file.stem for file in list_scenes()]):
        folder, running = _start(target, set_, out)
        if running.poll() not in (None, OK, NOT_CONVERGED):
            return running.returncode
    else:
        folder = target
        _say_killed((folder,))
        if set_ or out is not None:
            raise InputError("--set and --out are for scenes; a run folder is shown as it is.")
    try:
        with interruptible() as interrupted:  # an exception could be lost in a callback of VTK
            view_run(
                folder,
                host=host,
                port=port,
                field=field,
                open_browser=open,
                until=interrupted,
                ready=lambda url: print(f"{url}  ({folder}; Ctrl-C ends it)", flush=True),
            )
    finally:
        if running is not None:
            _stop(running)
    return OK


def _start(scene: Path, assignments: tuple[str, ...], out: Path | None) -> tuple[Path, subprocess.Popen[bytes]]:
    """Start a scene in a process of its own; return its folder and the process when there is a frame, or it has ended."""
    from femsim.base.files import is_free
    from femsim.scene.scene_file import find_scene, load_scene
    from viz import VizError, open_frames

    path = find_scene(scene)
    folder = out if out is not None else default_folder(load_scene(path, **read_assignments(assignments)).name, False)
    if not is_free(folder):
        raise InputError(f"the run folder {folder} exists already; choose another by --out, or show it: femsim view {folder}.")
    words = ["run", str(path), "--out", str(folder), "--quiet", *(f"--set={text}" for text in assignments)]
    # a session of its own: Ctrl-C reaches this process alone, which then ends the other one once
    process = subprocess.Popen(
        [sys.executable, "-c", f"from femsim.cli import execute; raise SystemExit(execute({words!r}))"], start_new_session=True
    )
    try:
        while process.poll() is None:
            try:
                open_frames(folder)
                break
            except VizError:  # none yet
                time.sleep(0.1)
    except KeyboardInterrupt:
        _stop(process)
        raise
    return folder, process


def _stop(run: subprocess.Popen[bytes]) -> None:
    """End a run after the step in progress; all results so far are written."""
    run.terminate()
    run.wait()


@app.command
def play(
    scene: Path,
    *,
    set_: Assignments = (),
    solver: str = "auto",
    dt: float | None = None,
    out: Path | None = None,
    field: str | None = None,
    port: Whole = 8080,
    host: str = "127.0.0.1",
    open: bool = True,
) -> int:
    """Step a scene in real time in the browser, and pull its bodies with the mouse. Ctrl-C ends it.

    Parameters
    ----------
    scene
        Scene file (.py), or the name of one that comes with femsim. It continues after its duration.
    set_
        NAME=VALUE: a parameter of the scene; may be given several times.
    solver
        Contact solver.
    dt
        Time step instead of the scene's, s.
    out
        Run folder to record into, with what was pulled, new or empty. Default: nothing is kept.
    field
        Field that colours soft bodies and rods first; default von_mises, tension in scenes of rods alone.
    port
        Port of the page, or the next free one.
    host
        Address to listen at; 0.0.0.0 lets other machines see the page, and pull.
    open
        Open the page in this machine's browser.
    """
    from femsim.base.files import is_free
    from femsim.base.signals import interruptible
    from femsim.run.play import play as play_scene
    from femsim.scene.scene_file import find_scene, load_scene
    from viz.scene_page import import_viser

    import_viser()  # before a scene is built for nothing
    if out is not None and not is_free(out):
        raise InputError(f"the output folder {out} exists; choose another by --out.")
    built = load_scene(find_scene(scene), **read_assignments(set_))
    with interruptible() as interrupted:
        run = play_scene(
            built,
            solver,
            dt=dt,
            out=out,
            field=field,
            port=port,
            host=host,
            open_browser=open,
            until=interrupted,
            ready=lambda url: print(f"{url}  (drag a body to pull it; Ctrl-C ends it)", flush=True),
        )
    if run is not None:
        print(run.summary())
    return OK


@app.command
def paraview(run: Path, *, field: str | None = None) -> int:
    """Write RUN/show_in_paraview.py, a script that shows a run in ParaView 5.11 or newer.

    Parameters
    ----------
    run
        Run folder.
    field
        Field that colours soft bodies and rods; default von_mises, tension in scenes of rods alone.
    """
    from viz import write_paraview_script

    path = write_paraview_script(run, field)
    print(f"{path}\n\nparaview --script={path}")
    return OK
