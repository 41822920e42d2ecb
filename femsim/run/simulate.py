"""Simulate a scene: settings, the run folder, the loop, and the result as an object."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Literal

import numpy as np

from contact import Remembering, Solver
from contact.solvers import SOLVERS, make_solver
from contact.solvers.base import FactorizationOptions
from femsim.base.errors import InputError, naming_parameters
from femsim.base.signals import end_by
from femsim.base.status import FINISHED, Status
from femsim.base.threads import blas_threads, check_threads
from femsim.run.checkpoint import Checkpoint, Checkpoints, Every, remove_checkpoints
from femsim.run.folder import digest_of, read_scene, remove_replaced, take_folder
from femsim.run.frames import check_options, chosen_fields
from femsim.run.health import health
from femsim.run.info import run_info
from femsim.run.loop import Course, OnStep, Until, run_loop
from femsim.run.patience import Patience
from femsim.run.recorder import Recorder
from femsim.run.result import Run, series_of
from femsim.run.run_file import RunFile
from femsim.run.sensors import Sensors
from femsim.run.turn import turn_of
from femsim.scene.checks import LONGEST_STEP
from femsim.scene.plausible import grouped, notes_on_duration
from femsim.scene.scene import Scene
from femsim.step.adaptive import StepLengths
from femsim.step.report import StepReport
from femsim.step.stepper import STAGES, Stepper

#: How often a step that cannot be solved is halved, unless something else is asked for, and at most.
MAX_HALVINGS, MOST_HALVINGS = 6, 20
#: Steps that no run has.
_MOST_STEPS = 1e15


@naming_parameters
def simulate(
    scene: Scene,
    solver: str = "auto",
    *,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    duration: float | None = None,
    dt: float | Literal["auto"] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    fps: float = 100.0,
    fields: Sequence[str] | None = None,
    format: str = "pvd",
    precision: str = "float64",
    dump_problems: tuple[int, int] | None = None,
    max_halvings: int = MAX_HALVINGS,
    threads: int = 1,
    max_step_seconds: float | None = None,
    quiet: bool = True,
    scene_path: str | Path | None = None,
    solver_options: dict[str, Any] | None = None,
    checkpoint_every: str | int | None = None,
    on_step: Callable[[Stepper, StepReport], None] | None = None,
    until: Callable[[dict[str, float]], str | None] | None = None,
) -> Run:
    """Simulate a scene. Every option of a run is one keyword, so there are more than ten.

    Parameters
    ----------
    scene : Scene
        What to simulate; it can be simulated again, always from its start.
    solver : str
        Name in ``contact.solvers.SOLVERS``.
    tolerance : float, optional
        Tolerance of the true residuals; default of the solver.
    max_iterations : int, optional
        Most iterations per step. Default: that of the solver.
    duration : float, s, optional
        Simulated time; default of the scene. Where it is no whole number of steps, the run takes the nearest number, and notes
        when it ends.
    dt : float, s, or "auto", optional
        Time step; default of the scene. "auto": as short as the motion needs, between the ``dt_bounds`` of the scene.
    out : path, optional
        Run folder; new or empty unless ``overwrite``. None: nothing is written, the result is in memory.
    overwrite : bool
        Replace an existing run folder. The old one is removed when the new one is complete; it comes back when the new one
        cannot start, and stays beside it, as ``.NAME.replaced``, when the new one is interrupted or fails.
    fps : float, 1/s
        Frames a simulated second.
    fields : str or sequence of str, optional
        Fields in the frames: names out of ``femsim.run.frames.FIELDS``, "all" or "default" (the default).
    format : {"pvd", "vtkhdf"}
        Format of the frames: a PVD series for ParaView 5.11 and newer, or VTKHDF, a fraction of the size, for ParaView 5.12 and
        newer (needs h5py).
    precision : {"float64", "float32"}
        Precision of positions in the frames; fields are float32.
    dump_problems : (int, int), optional
        First and last step whose contact problems are written to ``problems/`` of the run folder, as FCLib files that
        :func:`~femsim.studies.problems.solve.solve_problem` reads. Default none.
    max_halvings : int
        A step that cannot be solved (not finite, not converged, elements turned inside out, bodies sunk into each other, energy
        made from nothing) is taken as two halves, each of which may be halved again, this often in all; see docs/method.md. 0
        takes every step as it comes, at a fixed cost.
    threads : int
        Threads of BLAS and of the direct solver. On one machine, results are the same bits for the same number; run.json
        records it. Default 1, which is fastest for the scenes that come with femsim.
    max_step_seconds : float, s, optional
        Longest wall time of a step; a step that takes longer ends the run as failed, with all steps before it. Default: no limit.
        Of a step that takes 100 times the median of those before, and at least 10 s, the logger "femsim" warns.
    quiet : bool
        No progress bar.
    scene_path : path, optional
        Scene file, copied into the run folder.
    solver_options : dict, optional
        Further options of the solver.
    checkpoint_every : str or int, optional
        How often the run writes what :func:`~femsim.run.resume.resume` goes on with: ``"60s"`` of wall time, ``500`` steps, 0
        for never. Default ``"600s"``: a run under ten minutes has none, unless it is interrupted.
    on_step : callable, optional
        ``on_step(stepper, report)`` after each step.
    until : callable, optional
        ``until(row)``, called after each step with the new row of both tables by name of the column. A sentence ends the run
        there and is added to the message; None continues.

    Returns
    -------
    Run
        Also when steps did not converge or the run was interrupted: read ``status``.

    Raises
    ------
    InputError, ContactError
        Wrong values, a folder that exists or cannot be written, an unknown solver.
    SystemExit
        After SIGTERM or SIGHUP, once all is written, in a script that does not handle them: the process was asked to end.
    """
    call = Call(
        solver, tolerance, max_iterations, duration, dt, fps, fields, format, precision, dump_problems, max_halvings,
        threads, max_step_seconds, solver_options, checkpoint_every,
    )  # fmt: skip
    begun = begin(scene, call)
    for note in grouped(begun.stepper.notes):
        logging.getLogger("femsim").warning("femsim: note: %s.", note)
    with opened(scene, begun, solver, out, overwrite, scene_path) as (recorder, file, replaced):
        return record(begun, recorder, file, Course(), replaced, quiet=quiet, on_step=on_step, until=until)


@dataclass(frozen=True)
class Call:
    """What was asked for beside the scene, see :func:`simulate`; run.json keeps it, and a run that goes on reads it there."""

    solver: str = "auto"
    tolerance: float | None = None
    max_iterations: int | None = None
    duration: float | None = None
    dt: float | Literal["auto"] | None = None
    fps: float = 100.0
    fields: Sequence[str] | None = None
    format: str = "pvd"
    precision: str = "float64"
    dump_problems: Sequence[int] | None = None
    max_halvings: int = MAX_HALVINGS
    threads: int = 1
    max_step_seconds: float | None = None
    solver_options: dict[str, Any] | None = None
    checkpoint_every: str | int | None = None


@dataclass(frozen=True)
class Begun:
    """A run that is about to start: the stepper at its start, number of steps, what run.json says of it, options of its parts."""

    stepper: Stepper
    n_steps: int
    dump: range
    every: Every
    lengths: StepLengths | None
    frames: dict[str, Any]
    settings: dict[str, Any]
    call: dict[str, Any]


def begin(scene: Scene, call: Call) -> Begun:
    """Check what was asked for, and make the stepper.

    Raises
    ------
    InputError, ContactError
        Wrong values, an unknown solver.
    """
    if not isinstance(scene, Scene):
        how = f"fs.load_scene({str(scene)!r}) makes one" if isinstance(scene, (str, Path)) else "build() returns one"
        raise InputError(f"scene is {scene!r:.80}; give an fs.Scene: {how}.")
    dt, duration, max_halvings = call.dt, call.duration, call.max_halvings
    limits = (("dt", dt, LONGEST_STEP), ("duration", duration, np.inf), ("max_step_seconds", call.max_step_seconds, np.inf))
    for name, value, most in limits:
        if value is not None and value != "auto" and not (np.isfinite(value) and 0 < value <= most):
            limit = f" up to {most:g}" if most < np.inf else ""
            raise InputError(f"{name} is {value} s; allowed are positive numbers of seconds{limit}.")
    check_threads(call.threads)
    if isinstance(max_halvings, bool) or not isinstance(max_halvings, int) or not 0 <= max_halvings <= MOST_HALVINGS:
        raise InputError(f"max_halvings is {max_halvings!r}; allowed are whole numbers from 0 (never) to {MOST_HALVINGS}.")
    duration = scene.duration if duration is None else duration
    chosen = solver_of(call)
    lengths = _lengths(scene, dt)
    turn = turn_of(scene)
    with turn.lock:  # bodies are put at their start
        turn.refuse_within_step("begin", scene)
        with turn.step():
            stepper = Stepper(scene, chosen, dt=lengths.longest if lengths else None if dt is None else float(dt))
    dt = stepper.settings.dt
    if duration / dt > _MOST_STEPS:
        raise InputError(f"duration {duration} s in steps of {dt} s is more than {_MOST_STEPS:.0e} steps; ask for fewer.")
    n_steps = round(duration / dt)
    if n_steps < 1:
        raise InputError(f"duration {duration} s is shorter than half a time step of {dt} s; ask for at least one step.")
    stepper.notes += notes_on_duration(duration, dt, n_steps)
    names = chosen_fields(call.fields)
    check_options(call.format, call.precision)
    settings = {
        "dt_s": dt, "shortest_dt_s": dt / 2**lengths.levels if lengths else dt,
        "time_tolerance_m": lengths.tolerance if lengths else None,
        "duration_s": duration, "steps": n_steps, "theta": scene.theta, "integrator": scene.integrator,
        "strain_damping": scene.strain_damping, "gravity_mps2": scene.gravity,
        "margin_m": scene.margin, "correction": scene.correction, "max_correction_mps": scene.max_correction,
        "nonlinear_tolerance": scene.nonlinear_tolerance, "max_solves": scene.max_solves, "max_halvings": max_halvings,
        "max_step_s": call.max_step_seconds,
        "fps": call.fps, "format": call.format, "precision": call.precision, "fields": list(names), "threads": call.threads,
    }  # fmt: skip
    frames = {"fps": call.fps, "fields": names, "format": call.format, "precision": call.precision}
    return Begun(
        stepper, n_steps, _dumped_steps(call.dump_problems, n_steps), Every.of(call.checkpoint_every), lengths, frames, settings,
        asdict(call),
    )  # fmt: skip


def notes_of(scene: Scene) -> list[str]:
    """Check a scene as a run of it does at its start, without a step; return what the run would note.

    Raises
    ------
    InputError, ContactError
        What the run would refuse.
    """
    stepper = begin(scene, Call()).stepper
    Sensors(stepper)
    return grouped(stepper.notes)


def solver_of(call: Call) -> Solver:
    """Make the solver that was asked for.

    Raises
    ------
    InputError, ContactError
        Unknown solver or option, or a tolerance among the options.
    """
    if "tolerance" in (call.solver_options or {}):
        raise InputError("solver_options holds a tolerance; give it as the argument tolerance.")
    if isinstance(call.solver, PurePath) or (isinstance(call.solver, str) and not {"/", "\\"}.isdisjoint(call.solver)):
        raise InputError(f"solver {str(call.solver)!r} is unknown; a folder for results is out={str(call.solver)!r}.")
    factorizes = call.solver in SOLVERS and issubclass(SOLVERS[call.solver].options, FactorizationOptions)
    options = {"max_iterations": call.max_iterations} | ({"threads": call.threads} if factorizes else {})
    return make_solver(call.solver, tolerance=call.tolerance, **(options | (call.solver_options or {})))


@contextmanager
def opened(
    scene: Scene, begun: Begun, solver: str, out: str | Path | None, overwrite: bool, scene_path: str | Path | None
) -> Iterator[tuple[Recorder, RunFile, Path | None]]:
    """Make the run folder and hold it; yield what records into it, run.json, and where the run that it replaces lies now.

    Where the start fails, a run that was to be replaced is put back.
    """
    scene_source = None if scene_path is None else read_scene(Path(scene_path))
    folder = Path(out) if out is not None else None
    with ExitStack() as held:
        taken = take_folder(folder, overwrite, held) if folder else None
        try:
            info = run_info(scene, scene_path, begun.settings, solver, begun.stepper.solver) | {
                "notes": begun.stepper.notes, "call": begun.call,
            }  # fmt: skip
            if folder and scene_source is not None:
                (folder / "scene.py").write_bytes(scene_source)
                info["scene"]["digest"] = digest_of(scene_source)
            file = RunFile(folder, info, taken.handle if taken else -1)
            file.write()
            recorder = Recorder(begun.stepper, folder, dump=begun.dump, **begun.frames)
        except BaseException:  # also after Ctrl-C the old run comes back
            if taken:
                taken.give_back()
            raise
        yield recorder, file, taken.replaced if taken else None


def record(
    begun: Begun,
    recorder: Recorder,
    file: RunFile,
    course: Course,
    replaced: Path | None,
    *,
    quiet: bool,
    on_step: OnStep | None = None,
    until: Until | None = None,
    done: Checkpoint | None = None,
) -> Run:
    """Run the loop, and keep run.json true however it ends.

    ``course`` is where it starts, ``done`` the checkpoint that it goes on from, ``replaced`` the run that this one replaces.
    """
    stepper, info, started = begun.stepper, file.info, time.perf_counter()
    kept = f" The run that it was to replace is kept in {replaced}." if replaced else ""
    recorder.on_verdict = partial(note_verdict, recorder, file)
    checkpoints = Checkpoints(recorder.folder, begun.every)
    if done is not None:
        checkpoints.go_on(done)

    def save() -> None:
        rows = {"steps": recorder.steps.rows, "sensors": recorder.sensor_table.rows}
        solver = stepper.solver.memory() if isinstance(stepper.solver, Remembering) else {}
        carried = {"course": course.carried(stepper, time.perf_counter() - started), "recorder": recorder.carried()}
        checkpoints.save(course.done, stepper.state, solver, carried, rows)

    def after_step() -> None:
        file.beat(course.done)
        if checkpoints.due(course.done):
            save()

    try:
        with blas_threads(info["settings"]["threads"]):
            end = run_loop(
                stepper, recorder, begun.n_steps, course, after_step, max_halvings=begun.call["max_halvings"], quiet=quiet,
                on_step=on_step, until=until, patience=Patience(begun.call["max_step_seconds"]), lengths=begun.lengths,
            )  # fmt: skip
        if end.status == "interrupted":
            save()
        wall = course.wall + time.perf_counter() - started
        run = finish(stepper, recorder, file, course, end.status, end.message, wall, kept)
    except BaseException as error:  # run.json says how it ended, also by Ctrl-C or sys.exit
        status: Status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        message = f"Stopped after step {course.done} by {type(error).__name__}{f': {error}' if str(error) else ''}{kept}"
        _tell_end(recorder, file, course, status, message)
        file.write_last()
        if kept:
            error.add_note(kept.strip())
        raise
    finally:
        with suppress(OSError):  # what failed has been raised already
            recorder.close()
    if recorder.folder and run.status in FINISHED:
        remove_checkpoints(recorder.folder)
        remove_replaced(recorder.folder)
    end_by(end.signal)
    return run


def finish(
    stepper: Stepper, recorder: Recorder, file: RunFile, course: Course, status: Status, message: str, wall: float, kept: str = ""
) -> Run:
    """Close the files of a run that came to an end, and say in run.json how; ``wall`` is its time, s."""
    info = file.info
    recorder.close()  # frames are written behind the steps, and the last one may fail
    info["timings_s"] = {stage: stepper.timings[stage] for stage in STAGES} | {"wall": wall, "first_step": course.first_step}
    _tell_end(recorder, file, course, status, message + ("" if status in FINISHED else kept))
    file.write()
    sensors = series_of(recorder.sensors.specs, recorder.sensor_table.table())
    return Run(status, info["message"], recorder.folder, recorder.steps.table(), end=stepper, info=info, **sensors)


def _tell_end(recorder: Recorder, file: RunFile, course: Course, status: Status, message: str) -> None:
    """Put into run.json, not yet written, how a run ended, how far it came, and what its tables say."""
    steps = recorder.steps.table()
    file.set_step(course.done)
    recorder.health.finish(len(steps["step"]))
    file.info.update(
        status=status, message=message, health=health(steps) | recorder.health.as_json(), problems=recorder.problems,
        solver=file.info["solver"] | {"answered": recorder.answered},
    )  # fmt: skip


def _lengths(scene: Scene, dt: float | Literal["auto"] | None) -> StepLengths | None:
    """Lengths that an adaptive run may take; None where all steps have one length."""
    if dt != "auto" and not (dt is None and scene.adaptive):
        return None
    return StepLengths.between(*scene.dt_bounds, scene.time_tolerance)


def note_verdict(recorder: Recorder, file: RunFile) -> None:
    """Say in run.json what the verdict has become, for who looks on."""
    file.info["health"] = recorder.health.as_json()
    with suppress(OSError):  # the tables will say so
        file.write()


def _dumped_steps(asked: Sequence[int] | None, n_steps: int) -> range:
    if asked is None:
        return range(0)
    if len(asked) != 2 or not 1 <= asked[0] <= asked[1] <= n_steps:
        raise InputError(
            f"dump_problems is {':'.join(map(str, asked)) or 'empty'}; allowed are steps FROM:TO with 1 <= FROM <= TO <= "
            f"{n_steps}, the last step."
        )
    return range(asked[0], asked[1] + 1)
