"""Run a scene: the loop, the progress, the run folder, and the result as an object."""

from __future__ import annotations

import itertools
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np

from contact import ContactError
from contact.solvers import make_solver
from femsim.base.errors import InputError
from femsim.base.files import write_json
from femsim.base.versions import machine, versions
from femsim.model.actuators import ACTUATOR_COLUMNS
from femsim.model.bodies.rod import Rod
from femsim.run.frames import check_options, chosen_fields
from femsim.run.recorder import MARKER, WRENCH, Recorder
from femsim.scene.scene import GAUGE_COLUMNS, Scene
from femsim.step.advance import take_step
from femsim.step.report import StepReport
from femsim.step.stepper import STAGES, Stepper

Status = Literal["converged", "not converged", "interrupted", "failed"]
#: How often a step that cannot be solved is halved, unless something else is asked for, and at most.
MAX_HALVINGS, MOST_HALVINGS = 6, 20


@dataclass(frozen=True)
class SensorSeries:
    """Readings of a force/torque sensor.

    Attributes
    ----------
    time : ndarray, (n_steps,), s
        End of each step.
    force : ndarray, (n_steps, 3), N
        World frame.
    torque : ndarray, (n_steps, 3), N m
        World frame, about the centre of mass of the part, or about the frame that holds the end of a rod.
    """

    time: np.ndarray
    force: np.ndarray
    torque: np.ndarray


@dataclass(frozen=True)
class MarkerSeries:
    """Readings of a marker: ``time`` (n_steps,) s and ``position`` (n_steps, 3) m, world frame."""

    time: np.ndarray
    position: np.ndarray


@dataclass(frozen=True)
class ChamberSeries:
    """Readings of a chamber: ``time`` (n_steps,) s; ``pressure`` (n_steps,) Pa in and ``volume`` (n_steps,) m^3 after a step."""

    time: np.ndarray
    pressure: np.ndarray
    volume: np.ndarray


@dataclass(frozen=True)
class TendonSeries:
    """Readings of a tendon: ``time`` (n_steps,) s; ``force`` (n_steps,) N in and ``length`` (n_steps,) m after a step."""

    time: np.ndarray
    force: np.ndarray
    length: np.ndarray


@dataclass(frozen=True)
class GaugeSeries:
    """Readings of a sensor of kind gap, area, slip or energy.

    Attributes
    ----------
    time : ndarray, (n_steps,), s
        End of each step.
    values : dict of str to ndarray, (n_steps,)
        By what the column in sensors.csv says after the name of the sensor: ``gap_m``; ``area_m2``; ``slip_m`` and
        ``friction_J``; ``kinetic_J``, ``elastic_J`` and ``potential_J``.
    """

    time: np.ndarray
    values: dict[str, np.ndarray]


@dataclass(frozen=True)
class Run:
    """Result of a simulation.

    Attributes
    ----------
    status : {"converged", "not converged", "interrupted", "failed"}
        "converged": every step reached the tolerance by true residuals.
    message : str
        One sentence.
    folder : Path, optional
        Run folder; None when nothing was written.
    steps : dict of str to ndarray
        Columns of steps.csv, (n_steps,).
    sensors : dict of str to SensorSeries
        Force/torque sensors by name; ``NAME_measured`` where the sensor has a reading, in the frame and about the point of that.
    markers : dict of str to MarkerSeries
        Markers by name.
    chambers : dict of str to ChamberSeries
        Sensors of chambers by name.
    tendons : dict of str to TendonSeries
        Sensors of tendons by name.
    gauges : dict of str to GaugeSeries
        Sensors of kind gap, area, slip and energy by name.
    stepper : Stepper
        The simulation at its end: state, system, last contacts.
    info : dict
        Content of run.json.
    """

    status: Status
    message: str
    folder: Path | None
    steps: dict[str, np.ndarray]
    sensors: dict[str, SensorSeries]
    markers: dict[str, MarkerSeries]
    chambers: dict[str, ChamberSeries]
    tendons: dict[str, TendonSeries]
    gauges: dict[str, GaugeSeries]
    stepper: Stepper = field(repr=False)
    info: dict[str, Any] = field(repr=False)

    def table(self) -> dict[str, np.ndarray]:
        """Columns of sensors.csv and steps.csv together, (n_steps,) each, by name; SI units, world frame."""
        columns = dict(self.steps)
        for name, series in self.sensors.items():
            data = np.column_stack([series.force, series.torque])
            columns |= {f"{name}_{c}": data[:, k] for k, c in enumerate(WRENCH)}
        for name, marker in self.markers.items():
            columns |= {f"{name}_{c}": marker.position[:, k] for k, c in enumerate(MARKER)}
        for name, chamber in self.chambers.items():
            readings = zip(ACTUATOR_COLUMNS["chamber"], (chamber.pressure, chamber.volume), strict=True)
            columns |= {f"{name}_{c}": values for c, values in readings}
        for name, tendon in self.tendons.items():
            readings = zip(ACTUATOR_COLUMNS["tendon"], (tendon.force, tendon.length), strict=True)
            columns |= {f"{name}_{c}": values for c, values in readings}
        for name, gauge in self.gauges.items():
            columns |= {f"{name}_{c}": values for c, values in gauge.values.items()}
        return columns

    def summary(self) -> str:
        """Health of the run in a few lines: steps, iterations, time by stage, penetration, residuals, balance."""
        s = self.steps
        n = len(s["step"])
        lines = [f"status            {self.status}: {self.message}"]
        if n == 0:
            return lines[0]
        bad = int(n - s["converged"].sum())
        lines.append(f"steps             {n} ({s['time_s'][-1]:.3f} s simulated), {bad} not converged")
        if s["substeps"].max() > 1:
            lines.append(f"halved steps      {_halved(s)}")
        lines.append(f"iterations        mean {s['iterations'].mean():.1f}, largest {int(s['iterations'].max())}")
        stages = ", ".join(f"{stage} {np.median(s[f'ms_{stage}']):.2f}" for stage in STAGES)
        lines.append(f"ms a step         {np.median(s['ms_step']):.2f} median ({stages}), {s['ms_step'].mean():.2f} mean")
        lines.append(f"max penetration   {1e3 * s['max_penetration_m'].max():.3g} mm{_at(s, 'max_penetration_m')}")
        lines.append(f"dynamics residual {s['dynamics_residual'].max():.2e}{_at(s, 'dynamics_residual')}")
        lines.append(f"contact residual  {s['contact_residual'].max():.2e}{_at(s, 'contact_residual')}")
        lines.append(f"wrench balance    {s['wrench_balance'].max():.2e}{_at(s, 'wrench_balance')}")
        if s["inverted_elements"].max() > 0:
            lines.append(f"inverted elements {int(s['inverted_elements'].max())}{_at(s, 'inverted_elements')}")
        return "\n".join(lines)


def _halved(steps: dict[str, np.ndarray]) -> str:
    halved = steps["substeps"][steps["substeps"] > 1]
    return f"{len(halved)}, into {int(halved.min())} to {int(halved.max())} sub-steps{_at(steps, 'substeps', 'most')}"


def _at(steps: dict[str, np.ndarray], name: str, what: str = "worst") -> str:
    worst = int(np.argmax(steps[name]))
    return f" ({what}, step {int(steps['step'][worst])} at {steps['time_s'][worst]:.3f} s)"


def simulate(
    scene: Scene,
    solver: str = "auto",
    *,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    duration: float | None = None,
    dt: float | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    fps: float = 100.0,
    fields: Sequence[str] | None = None,
    format: str = "pvd",
    precision: str = "float64",
    dump_problems: tuple[int, int] | None = None,
    max_halvings: int = MAX_HALVINGS,
    quiet: bool = True,
    scene_path: str | Path | None = None,
    solver_options: dict[str, Any] | None = None,
    on_step: Callable[[Stepper, StepReport], None] | None = None,
    until: Callable[[dict[str, float]], str | None] | None = None,
) -> Run:
    """Simulate a scene.

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
    dt : float, s, optional
        Time step; default of the scene.
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
    quiet : bool
        No progress bar.
    scene_path : path, optional
        Scene file, copied into the run folder.
    solver_options : dict, optional
        Further options of the solver.
    on_step : callable, optional
        ``on_step(stepper, report)`` after each step.
    until : callable, optional
        ``until(row)`` after each step, with what the step wrote to both tables by name of the column; a sentence, which is added
        to the message, ends the run there, None goes on.

    Returns
    -------
    Run
        Also when steps did not converge or the run was interrupted: read ``status``.

    Raises
    ------
    InputError, ContactError
        Wrong values, a folder that exists or cannot be written, an unknown solver.
    """
    for name, value, unit in (("dt", dt, "s"), ("duration", duration, "s")):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value} {unit}; allowed are positive numbers of seconds.")
    if isinstance(max_halvings, bool) or not isinstance(max_halvings, int) or not 0 <= max_halvings <= MOST_HALVINGS:
        raise InputError(f"max_halvings is {max_halvings!r}; allowed are whole numbers from 0 (never) to {MOST_HALVINGS}.")
    duration = scene.duration if duration is None else duration
    chosen = make_solver(solver, tolerance=tolerance, max_iterations=max_iterations, **(solver_options or {}))
    scene_dt = scene.dt
    scene.dt = scene.dt if dt is None else float(dt)
    try:
        stepper = Stepper(scene, chosen)
    finally:
        settings_dt, scene.dt = scene.dt, scene_dt
    n_steps = round(duration / settings_dt)
    if n_steps < 1:
        raise InputError(f"duration {duration} s is shorter than half a time step of {settings_dt} s; ask for at least one step.")
    dump = _dumped_steps(dump_problems, n_steps)
    names = chosen_fields(fields)
    check_options(format, precision)
    scene_source = None if scene_path is None else _read_scene(Path(scene_path))
    folder = Path(out) if out is not None else None
    replaced = _prepare_folder(folder, overwrite) if folder else None
    info: dict[str, Any] = {
        "status": "running",
        "message": "",
        "scene": {"name": scene.name, "file": str(scene_path) if scene_path else None},
        "parameters": scene.parameters,
        "settings": {
            "dt_s": settings_dt, "duration_s": duration, "steps": n_steps, "theta": scene.theta,
            "gravity_mps2": scene.gravity, "margin_m": scene.margin, "correction": scene.correction,
            "max_correction_mps": scene.max_correction, "max_halvings": max_halvings, "fps": fps, "format": format,
            "precision": precision, "fields": list(names),
        },
        "bodies": _describe_bodies(scene),
        "friction": _describe_friction(scene),
        "solver": {
            "name": solver,
            "options": vars(getattr(chosen, "options", None)) if hasattr(chosen, "options") else {},
            "linear_algebra": getattr(chosen, "linear_algebra", None),
        },
        "versions": versions(),
        "machine": machine(),
        "command": " ".join(sys.argv),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }  # fmt: skip
    try:
        if folder and scene_source is not None:
            (folder / "scene.py").write_bytes(scene_source)
        if folder:
            write_json(folder / "run.json", info)
        recorder = Recorder(stepper, folder, fps=fps, fields=names, format=format, precision=precision, dump=dump)
    except BaseException:
        if folder:
            _undo_folder(folder, replaced)
        raise
    started = time.perf_counter()
    kept = f" The run that it was to replace is kept in {replaced}." if replaced else ""
    try:
        status, message, first_step = _loop(stepper, recorder, n_steps, max_halvings, quiet, on_step, until)
        recorder.close()  # frames are written behind the steps, and the last one may fail
    except BaseException as error:
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        message = f"Stopped after step {stepper.state.step} by {type(error).__name__}: {error}{kept}"
        info.update(status=status, message=message, problems=recorder.problems)
        if folder:
            with suppress(OSError):  # the disk may be what failed
                write_json(folder / "run.json", info)
        if kept:
            error.add_note(kept.strip())
        raise
    finally:
        recorder.close()
    wall = time.perf_counter() - started
    finished = status in ("converged", "not converged")
    message += "" if finished else kept
    steps = {name: recorder.steps.column(name) for name in recorder.steps.columns}
    info.update(
        status=status,
        message=message,
        timings_s={stage: stepper.timings[stage] for stage in STAGES} | {"wall": wall, "first_step": first_step},
        health=_health(steps),
        problems=recorder.problems,
    )
    if folder:
        write_json(folder / "run.json", info)
    if folder and finished:
        _remove_replaced(folder)
    return Run(status, message, folder, steps, *_series(recorder, scene), stepper, info)


def _dumped_steps(asked: tuple[int, int] | None, n_steps: int) -> range:
    if asked is None:
        return range(0)
    first, last = asked
    if not 1 <= first <= last <= n_steps:
        raise InputError(
            f"dump_problems is {first}:{last}; allowed are steps FROM:TO with 1 <= FROM <= TO <= {n_steps}, the last step."
        )
    return range(first, last + 1)


def _loop(
    stepper: Stepper,
    recorder: Recorder,
    n_steps: int,
    max_halvings: int,
    quiet: bool,
    on_step: Callable[[Stepper, StepReport], None] | None,
    until: Callable[[dict[str, float]], str | None] | None,
) -> tuple[Status, str, float]:
    """Step until the end, an interrupt or a failure; return status, sentence and the seconds of the first step."""
    unconverged, first_step, first_bad, halved, first_halved = 0, 0.0, 0, 0, 0
    ended, done = "", n_steps
    if recorder.frame_due(stepper.state.t):
        recorder.frame(None)
    with interruptible() as interrupted, _progress(quiet, n_steps, stepper.settings.dt) as advance:
        for number in range(1, n_steps + 1):
            timings, began = dict(stepper.timings), time.perf_counter()
            try:
                report = take_step(stepper, max_halvings)
            except (ContactError, np.linalg.LinAlgError) as error:  # the step gave numbers that nothing can go on with
                return "failed", f"Step {number} at {number * stepper.settings.dt:.4f} s failed: {error}", first_step
            recorder.problem(number)
            if not report.finite:
                return (
                    "failed",
                    f"Step {number} at {report.time:.4f} s failed: {report.solution.message}",
                    first_step,
                )
            recorder.step(report, timings)
            if number == 1:
                first_step = time.perf_counter() - began
            if not report.solution.converged:
                unconverged += 1
                first_bad = first_bad or number
            if len(report.parts) > 1:
                halved += 1
                first_halved = first_halved or number
            if on_step is not None:
                on_step(stepper, report)
            advance(report)
            if until is not None and (reason := until(recorder.last_row())):
                ended, done = f" Ended after step {number} of {n_steps}: {reason}", number
                break
            if interrupted() and number < n_steps:
                return (
                    "interrupted",
                    f"Interrupted after step {number} of {n_steps}; all steps so far are recorded.",
                    first_step,
                )
    if halved:
        ended = f" Taken in sub-steps: {halved} of {done}, first step {first_halved}.{ended}"
    if unconverged:
        return (
            "not converged",
            f"{unconverged} of {done} steps stopped at the iteration limit, first step {first_bad}; "
            f"raise max_iterations or the tolerance.{ended}",
            first_step,
        )
    return "converged", f"All {done} steps converged by true residuals.{ended}", first_step


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM end the loop after the step in progress; a second Ctrl-C is the ordinary one."""
    hit = False

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal hit
        if hit:
            raise KeyboardInterrupt
        hit = True

    previous: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, handler)
    except ValueError:  # not in the main thread: signals are the caller's business
        previous = {}
    try:
        yield lambda: hit
    finally:
        for caught, old in previous.items():
            signal.signal(caught, old)


@contextmanager
def _progress(quiet: bool, n_steps: int, dt: float) -> Iterator[Callable[[StepReport], None]]:
    """Progress bar with simulated time, speed and remaining time."""
    if quiet:
        yield lambda report: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("simulating"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
        console=console,
    ) as bar:
        task = bar.add_task("", total=n_steps, text="compiling kernels (first run only) ...")
        started, first = time.perf_counter(), [0.0]

        def advance(report: StepReport) -> None:
            now = time.perf_counter() - started
            if report.step == 1:
                first[0] = now
            speed = (report.step - 1) * dt / max(now - first[0], 1e-9)
            text = f"{report.time:.2f} s of {n_steps * dt:.2f} s, {speed:.2f} x real time"
            bar.update(task, completed=report.step, text=text)

        yield advance


def _prepare_folder(folder: Path, overwrite: bool) -> Path | None:
    """Make the run folder; an old run is set aside until the new one is complete. Return where it went."""
    replaced = None
    if folder.exists():
        if folder.resolve() in (Path.cwd(), *Path.cwd().parents):
            raise InputError(f"the output folder {folder} is the one you are in; choose another by --out.")
        if not overwrite:
            raise InputError(f"the output folder {folder} exists; choose another by --out, or replace it by --overwrite.")
        if not (folder / "run.json").is_file():
            raise InputError(
                f"the folder {folder} is not a run (it has no run.json), so it is not replaced; choose another by --out."
            )
    try:
        if folder.exists():
            # never the name of one that an earlier run set aside and then did not complete
            replaced = next(name for name in _replaced_names(folder) if not name.exists())
            folder.rename(replaced)
        folder.mkdir(parents=True)
        (folder / ".writable").touch()
        (folder / ".writable").unlink()
    except OSError as error:
        if replaced is not None and replaced.exists():
            _undo_folder(folder, replaced)
        raise InputError(f"the output folder {folder} cannot be written ({error.strerror}); choose another by --out.") from error
    return replaced


def _replaced_names(folder: Path) -> Iterator[Path]:
    """Names of runs set aside, in the order of use."""
    name = f".{folder.name}.replaced"
    yield folder.with_name(name)
    yield from (folder.with_name(f"{name}-{number}") for number in itertools.count(2))


def _undo_folder(folder: Path, replaced: Path | None) -> None:
    """Remove the folder of a run that did not start, and put the old run back."""
    shutil.rmtree(folder, ignore_errors=True)
    if replaced is not None:
        replaced.rename(folder)


def _remove_replaced(folder: Path) -> None:
    """Remove all runs that were set aside for this one, which is complete."""
    for path in itertools.takewhile(Path.exists, _replaced_names(folder)):
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)


def _read_scene(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"the scene file {path} cannot be read ({error.strerror}); correct scene_path.") from error


def _series(
    recorder: Recorder, scene: Scene
) -> tuple[
    dict[str, SensorSeries], dict[str, MarkerSeries], dict[str, ChamberSeries], dict[str, TendonSeries], dict[str, GaugeSeries]
]:
    table = recorder.sensor_table
    data = np.array(table.rows, dtype=np.float64).reshape(len(table.rows), len(table.columns))
    sensors: dict[str, SensorSeries] = {}
    markers: dict[str, MarkerSeries] = {}
    chambers: dict[str, ChamberSeries] = {}
    tendons: dict[str, TendonSeries] = {}
    gauges: dict[str, GaugeSeries] = {}
    column = 1
    for sensor in scene.sensors:
        if sensor.kind == "marker":
            markers[sensor.name] = MarkerSeries(data[:, 0], data[:, column : column + 3])
            column += 3
        elif sensor.kind in ACTUATOR_COLUMNS:
            readings = data[:, 0], data[:, column], data[:, column + 1]
            if sensor.kind == "chamber":
                chambers[sensor.name] = ChamberSeries(*readings)
            else:
                tendons[sensor.name] = TendonSeries(*readings)
            column += 2
        elif sensor.kind in GAUGE_COLUMNS:
            own = GAUGE_COLUMNS[sensor.kind]
            gauges[sensor.name] = GaugeSeries(data[:, 0], {c: data[:, column + k] for k, c in enumerate(own)})
            column += len(own)
        else:
            sensors[sensor.name] = SensorSeries(data[:, 0], data[:, column : column + 3], data[:, column + 3 : column + 6])
            column += 6
    for sensor in scene.sensors:
        if sensor.reading is not None:
            series = SensorSeries(data[:, 0], data[:, column : column + 3], data[:, column + 3 : column + 6])
            sensors[f"{sensor.name}_measured"] = series
            column += 6
    return sensors, markers, chambers, tendons, gauges


def _health(steps: dict[str, np.ndarray]) -> dict[str, float]:
    if not len(steps["step"]):
        return {}
    worst = (
        "dynamics_residual",
        "contact_residual",
        "wrench_balance",
        "max_penetration_m",
        "max_slip_mps",
        "inverted_elements",
    )
    return {
        "steps": len(steps["step"]),
        "unconverged_steps": int(len(steps["step"]) - steps["converged"].sum()),
        "halved_steps": int((steps["substeps"] > 1).sum()),
        "most_substeps": int(steps["substeps"].max()),
        "mean_iterations": float(steps["iterations"].mean()),
        "mean_ms_step": float(steps["ms_step"].mean()),
        **{f"largest_{name}": float(steps[name].max()) for name in worst},
    }


def _describe_bodies(scene: Scene) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for body in scene.bodies:
        entry: dict[str, Any] = {"mass_kg": body.mass, "velocities": body.n_v}
        elastic = getattr(body, "elastic", None)
        if elastic is not None:
            entry["material"] = {
                "name": elastic.name, "young_modulus_Pa": elastic.young_modulus, "poisson_ratio": elastic.poisson_ratio,
                "density_kgpm3": elastic.density, "rayleigh_alpha_1ps": elastic.rayleigh_alpha, "rayleigh_beta_s":
                elastic.rayleigh_beta,
            }  # fmt: skip
            if not isinstance(body, Rod):
                entry["mesh"] = scene.meshes.get(body.name)
        if isinstance(body, Rod):
            entry |= {
                "links": body.n_links, "length_m": float(body.lengths.sum()), "section": vars(body.section),
                "ends": [end.kind for end in body.ends],
                "translational_damping_Nspm2": body.translational_damping,
                "rotational_damping_Nmsprad_pm": body.rotational_damping,
            }  # fmt: skip
        out[body.name] = entry
    return out


def _describe_friction(scene: Scene) -> list[dict[str, Any]]:
    surfaces = sorted({p.surface for p in scene.parts})
    matrix = scene.friction_matrix(surfaces)
    pairs: list[dict[str, Any]] = [
        {"surfaces": [a, b], "coefficient": float(matrix[i, j])}
        for i, a in enumerate(surfaces)
        for j, b in enumerate(surfaces)
        if i <= j
    ]
    for pair in scene.anisotropic:
        entry = next(p for p in pairs if sorted(p["surfaces"]) == sorted(pair.surfaces))
        entry |= {"coefficients": list(pair.coefficients), "direction": list(pair.direction), "of": scene.parts[pair.part].name}
    return pairs
