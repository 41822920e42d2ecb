"""Simulate a scene: settings, the run folder, the loop, and the result as an object."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np

from contact.solvers import SOLVERS, make_solver
from contact.solvers.base import FactorizationOptions
from femsim.base.errors import InputError
from femsim.base.files import write_json
from femsim.base.status import FINISHED, Status
from femsim.base.threads import blas_threads, check_threads
from femsim.run.folder import prepare_folder, read_scene, remove_replaced, undo_folder
from femsim.run.frames import check_options, chosen_fields
from femsim.run.health import health
from femsim.run.info import run_info
from femsim.run.loop import run_loop
from femsim.run.patience import Patience
from femsim.run.recorder import Recorder
from femsim.run.result import Run, series_of
from femsim.scene.checks import LONGEST_STEP
from femsim.scene.scene import Scene
from femsim.step.adaptive import StepLengths
from femsim.step.report import StepReport
from femsim.step.stepper import STAGES, Stepper

#: How often a step that cannot be solved is halved, unless something else is asked for, and at most.
MAX_HALVINGS, MOST_HALVINGS = 6, 20


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
        Iteration limit a step; default of the solver.
    duration : float, s, optional
        Simulated time; default of the scene.
    dt : float, s, or "auto", optional
        Time step; default of the scene. "auto": as short as the motion asks for, between the ``dt_bounds`` of the scene.
    out : path, optional
        Run folder; must not exist unless ``overwrite``. None: nothing is written, the result is in memory.
    overwrite : bool
        Replace an existing run folder. The old one is removed when the new one is complete; it comes back when the new one
        cannot start, and stays beside it, as ``.NAME.replaced``, when the new one is interrupted or fails.
    fps : float, 1/s
        Frames a simulated second.
    fields : sequence of str, optional
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
        A step that cannot be solved (not finite, not converged, elements turned inside out) is taken as two halves, each of
        which may be halved again, this often in all; see docs/method.md. 0 takes every step as it comes, at a fixed cost.
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
    """
    limits = (("dt", dt, LONGEST_STEP), ("duration", duration, np.inf), ("max_step_seconds", max_step_seconds, np.inf))
    for name, value, most in limits:
        if value is not None and value != "auto" and not (np.isfinite(value) and 0 < value <= most):
            limit = f" up to {most:g}" if most < np.inf else ""
            raise InputError(f"{name} is {value} s; allowed are positive numbers of seconds{limit}.")
    check_threads(threads)
    if isinstance(max_halvings, bool) or not isinstance(max_halvings, int) or not 0 <= max_halvings <= MOST_HALVINGS:
        raise InputError(f"max_halvings is {max_halvings!r}; allowed are whole numbers from 0 (never) to {MOST_HALVINGS}.")
    duration = scene.duration if duration is None else duration
    factorizes = solver in SOLVERS and issubclass(SOLVERS[solver].options, FactorizationOptions)
    options = {"max_iterations": max_iterations} | ({"threads": threads} if factorizes else {}) | (solver_options or {})
    chosen = make_solver(solver, tolerance=tolerance, **options)
    lengths = _lengths(scene, dt)
    stepper = Stepper(scene, chosen, dt=lengths.longest if lengths else None if dt is None else float(dt))
    dt = stepper.settings.dt
    n_steps = round(duration / dt)
    if n_steps < 1:
        raise InputError(f"duration {duration} s is shorter than half a time step of {dt} s; ask for at least one step.")
    dump = _dumped_steps(dump_problems, n_steps)
    names = chosen_fields(fields)
    check_options(format, precision)
    scene_source = None if scene_path is None else read_scene(Path(scene_path))
    settings = {
        "dt_s": dt, "shortest_dt_s": dt / 2**lengths.levels if lengths else dt,
        "time_tolerance_m": lengths.tolerance if lengths else None,
        "duration_s": duration, "steps": n_steps, "theta": scene.theta, "integrator": scene.integrator,
        "strain_damping": scene.strain_damping, "gravity_mps2": scene.gravity,
        "margin_m": scene.margin, "correction": scene.correction, "max_correction_mps": scene.max_correction,
        "nonlinear_tolerance": scene.nonlinear_tolerance, "max_solves": scene.max_solves, "max_halvings": max_halvings,
        "max_step_s": max_step_seconds,
        "fps": fps, "format": format, "precision": precision, "fields": list(names), "threads": threads,
    }  # fmt: skip
    for note in stepper.notes:
        logging.getLogger("femsim").warning("femsim: note: %s.", note)
    folder = Path(out) if out is not None else None
    replaced = prepare_folder(folder, overwrite) if folder else None
    try:
        info = run_info(scene, scene_path, settings, solver, chosen) | {"notes": stepper.notes}
        if folder and scene_source is not None:
            (folder / "scene.py").write_bytes(scene_source)
        if folder:
            write_json(folder / "run.json", info)
        recorder = Recorder(stepper, folder, fps=fps, fields=names, format=format, precision=precision, dump=dump)
        recorder.on_verdict = lambda: _note_verdict(recorder, info)
    except BaseException:  # also after Ctrl-C the old run comes back
        if folder:
            undo_folder(folder, replaced)
        raise
    return _record(
        stepper, recorder, info, replaced,
        lambda: run_loop(stepper, recorder, n_steps, max_halvings, quiet, on_step, until, Patience(max_step_seconds), lengths),
    )  # fmt: skip


def _record(
    stepper: Stepper,
    recorder: Recorder,
    info: dict[str, Any],
    replaced: Path | None,
    loop: Callable[[], tuple[Status, str, float]],
) -> Run:
    """Run the loop, and keep run.json true however it ends; ``replaced`` is the run that this one replaces."""
    folder, started = recorder.folder, time.perf_counter()
    kept = f" The run that it was to replace is kept in {replaced}." if replaced else ""
    try:
        with blas_threads(info["settings"]["threads"]):
            status, message, first_step = loop()
        recorder.close()  # frames are written behind the steps, and the last one may fail
    except BaseException as error:  # run.json says how it ended, also by Ctrl-C or sys.exit
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        message = f"Stopped after step {stepper.state.step} by {type(error).__name__}: {error}{kept}"
        recorder.health.finish(len(recorder.steps.rows))
        info.update(
            status=status, message=message, problems=recorder.problems, solver=info["solver"] | {"answered": recorder.answered},
            health=health(recorder.steps.table()) | recorder.health.findings.as_json(),
        )  # fmt: skip
        if folder:
            with suppress(OSError):  # the disk may be what failed
                write_json(folder / "run.json", info)
        if kept:
            error.add_note(kept.strip())
        raise
    finally:
        recorder.close()
    wall = time.perf_counter() - started
    finished = status in FINISHED
    message += "" if finished else kept
    steps, sensors = recorder.steps.table(), recorder.sensor_table.table()
    recorder.health.finish(len(steps["step"]))
    info.update(
        status=status,
        message=message,
        timings_s={stage: stepper.timings[stage] for stage in STAGES} | {"wall": wall, "first_step": first_step},
        health=health(steps) | recorder.health.findings.as_json(),
        problems=recorder.problems,
        solver=info["solver"] | {"answered": recorder.answered},
    )
    if folder:
        write_json(folder / "run.json", info)
    if folder and finished:
        remove_replaced(folder)
    return Run(status, message, folder, steps, stepper=stepper, info=info, **series_of(stepper.scene.sensors, sensors))


def _lengths(scene: Scene, dt: float | Literal["auto"] | None) -> StepLengths | None:
    """Lengths that an adaptive run may take; None where all steps have one length."""
    if dt != "auto" and not (dt is None and scene.adaptive):
        return None
    return StepLengths.between(*scene.dt_bounds, scene.time_tolerance)


def _note_verdict(recorder: Recorder, info: dict[str, Any]) -> None:
    """Say in run.json what the verdict has become, for who looks on."""
    info["health"] = recorder.health.findings.as_json()
    if recorder.folder:
        with suppress(OSError):  # the tables will say so
            write_json(recorder.folder / "run.json", info)


def _dumped_steps(asked: tuple[int, int] | None, n_steps: int) -> range:
    if asked is None:
        return range(0)
    first, last = asked
    if not 1 <= first <= last <= n_steps:
        raise InputError(
            f"dump_problems is {first}:{last}; allowed are steps FROM:TO with 1 <= FROM <= TO <= {n_steps}, the last step."
        )
    return range(first, last + 1)
