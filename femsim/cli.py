"""The command line: ``femsim run | solve | bench | reproduce | describe | scenes | materials | fit-material | solvers | ...``.

Exit status: 0 done and converged, 1 internal error, 2 wrong input, 3 finished but some step did not converge, 130 interrupted.
Heavy imports stay inside the commands, so that ``femsim --help`` is quick.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, CycloptsError, Parameter, Token

import femsim
from femsim.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from femsim.benchmark import BenchRow

OK, INTERNAL, WRONG_INPUT, NOT_CONVERGED, INTERRUPTED = 0, 1, 2, 3, 130
_STATUS = {"converged": OK, "not converged": NOT_CONVERGED, "interrupted": INTERRUPTED, "failed": NOT_CONVERGED}

app = App(
    name="femsim",
    version=femsim.__version__,
    help="Simulate soft and rigid bodies that are manipulated, in exact Signorini-Coulomb contact. Units are SI.",
    help_epilogue="Exit status: 0 converged, 2 wrong input, 3 some step did not converge, 130 interrupted, 1 a bug.",
    suppress_keyboard_interrupt=False,
)


def _whole(kind: object, tokens: Sequence[Token]) -> int:
    """Read a whole number; cyclopts itself would make 1 of 1.5 and say nothing."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value!r} is no whole number") from None


Whole = Annotated[int, Parameter(converter=_whole)]
Flag = Annotated[bool, Parameter(negative=())]

# what the commands share that run many cases
Out = Annotated[Path | None, Parameter(help="Folder of results; default runs/NAME.")]
Resume = Annotated[Flag, Parameter(help="Go on with a folder that exists: run what is missing or failed.")]
Scheduler = Annotated[
    str | None, Parameter(help="Address of a Dask scheduler, tcp://HOST:PORT; default a cluster of this machine's cores.")
]
Workers = Annotated[Whole | None, Parameter(help="Processes on this machine; default one a core.")]
DryRun = Annotated[Flag, Parameter(help="Only show the cases, and estimate time and disk.")]
Yes = Annotated[Flag, Parameter(help="Allow more than 10000 cases.")]


@app.command
def run(
    scene: Path,
    *,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative=())] = (),
    solver: str = "auto",
    tolerance: float | None = None,
    max_iterations: Whole | None = None,
    duration: float | None = None,
    dt: float | None = None,
    out: Path | None = None,
    overwrite: Flag = False,
    fps: float = 100.0,
    format: Literal["pvd", "vtkhdf"] = "pvd",
    fields: str | None = None,
    precision: Literal["float64", "float32"] = "float64",
    dump_problems: str | None = None,
    max_halvings: Whole = 6,
    quiet: Flag = False,
) -> int:
    """Run a scene and write a run folder.

    Parameters
    ----------
    scene
        Scene file.
    set_
        NAME=VALUE: a parameter of the scene (see 'femsim describe SCENE'); may be given several times.
    solver
        Contact solver (see 'femsim solvers').
    tolerance
        Tolerance of the true residuals; default of the solver.
    max_iterations
        Iteration limit a step; default of the solver.
    duration
        Simulated time in s; default of the scene.
    dt
        Time step in s; default of the scene.
    out
        Run folder; it must not exist unless --overwrite. Default runs/NAME_OF_SCENE, with a number behind it where that exists.
    overwrite
        Replace an existing run folder.
    fps
        Frames a simulated second.
    format
        Format of the frames: a PVD series that ParaView 5.11 and newer open, or VTKHDF, a fraction of the size, for ParaView 5.12
        and newer (needs h5py).
    fields
        Fields in the frames, separated by commas: velocity, contact_force, displacement, contact_pressure, von_mises,
        cauchy_stress, strain_energy_density, rotation, principal_stretches; of rods tension, bending_moment, twisting_moment;
        'default' and 'all' stand for lists, so that default,rotation adds one.
    precision
        Precision of positions in the frames; fields are float32.
    dump_problems
        FROM:TO or a single number: write the contact problems of these steps to RUN/problems, for 'femsim solve'.
    max_halvings
        How often a step that cannot be solved is halved; 0 takes every step as it comes.
    quiet
        No progress bar and no summary.
    """
    from femsim.load import find_scene, load_scene, scene_errors

    path = find_scene(scene)
    built = load_scene(path, **_assignments(set_))
    with scene_errors(path, "a function of the scene"):
        result = femsim.simulate(
            built,
            solver,
            tolerance=tolerance,
            max_iterations=max_iterations,
            duration=duration,
            dt=dt,
            out=out if out is not None else _default_folder(built.name, overwrite),
            overwrite=overwrite,
            fps=fps,
            fields=None if fields is None else tuple(name.strip() for name in fields.split(",") if name.strip()),
            format=format,
            precision=precision,
            dump_problems=None if dump_problems is None else _steps(dump_problems),
            max_halvings=max_halvings,
            quiet=quiet,
            scene_path=path,
        )
    if not quiet:
        print(result.summary())
        print(f"\nresult            {result.folder} (open frames.{format} in ParaView; or: femsim render {result.folder})")
    elif result.status != "converged":
        print(f"femsim: {result.status}: {result.message}", file=sys.stderr)
    return _STATUS[result.status]


@app.command
def solve(
    problem: Path,
    *,
    solver: str = "auto",
    tolerance: float = 1e-6,
    max_iterations: Whole | None = None,
    out: Path | None = None,
) -> int:
    """Solve a contact problem of an FCLib file, and judge the answer on that problem.

    Parameters
    ----------
    problem
        HDF5 file in the layout of FCLib, local or global.
    solver
        Contact solver (see 'femsim solvers').
    tolerance
        Largest residual of the contact law and of the dynamics.
    max_iterations
        Iteration limit; default of the solver.
    out
        NPZ file for v (global problems), r and u; an existing one is replaced. Default: nothing is written.
    """
    result = femsim.solve_problem(problem, solver, tolerance=tolerance, max_iterations=max_iterations, out=out)
    print(result.summary())
    if out is not None:
        written = f"{out} ({'r, u' if result.v is None else 'v, r, u'})"
        print(f"\n{'solution':<24}{written if result.status != 'failed' else 'not written'}")
    return _STATUS[result.status]


@app.command
def bench(
    problems: Annotated[tuple[Path, ...], Parameter(negative=())],
    /,
    *,
    solvers: str | None = None,
    tolerance: float = 1e-6,
    max_iterations: Whole | None = None,
    steps: str | None = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative=())] = (),
    repeat: Whole = 3,
    out: Path | None = None,
    quiet: Flag = False,
) -> int:
    """Compare contact solvers on the same problems: times, true residuals, errors, convergence plots.

    One thread, unless OMP_NUM_THREADS says otherwise.

    Parameters
    ----------
    problems
        FCLib files, and scenes, whose problems are those of a run solved by 'auto'.
    solvers
        Names separated by commas (see 'femsim solvers'); default all but auto.
    tolerance
        Largest residual of the contact law and of the dynamics.
    max_iterations
        Iteration limit of every solver; default their own.
    steps
        Steps of scenes: numbers, FROM:TO or FROM:TO:EVERY, separated by commas; default five, spread over the run.
    set_
        NAME=VALUE: a parameter of the scenes (see 'femsim describe SCENE'); may be given several times.
    repeat
        Solves of which the median time is taken.
    out
        Folder of bench.json, bench.csv and the plots; it must not exist. Default runs/bench, with a number behind it where that
        exists.
    quiet
        No progress bar.
    """
    if "numpy" not in sys.modules:  # threads that wait use CPU time too
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    folder = out if out is not None else _default_folder("bench", False)
    with _bar("benchmarking", quiet) as progress:
        rows = femsim.bench(
            problems,
            None if solvers is None else [name.strip() for name in solvers.split(",") if name.strip()],
            tolerance=tolerance,
            max_iterations=max_iterations,
            steps=None if steps is None else _step_list(steps),
            parameters=_assignments(set_),
            repeat=repeat,
            out=folder,
            progress=progress,
        )
    print(f"times: CPU ms, median of {repeat}, kernels compiled; tolerance {tolerance:g}; *: most accurate\n")
    console, problem = _console(), ""
    for row in rows:
        if row.problem != problem:
            problem = row.problem
            size = f"{row.contacts} contacts" + (f", {row.velocities} velocities" if row.velocities else "")
            print(f"{problem}: {size}")
            console.print(_bench_table([other for other in rows if other.problem == problem]))
    shortfalls = [row for row in rows if row.status != "converged"]
    for row in shortfalls:
        print(f"{row.problem}, {row.solver}: {row.status}: {row.message}")
    print(
        "\nCPU ms     of a solver that has met the step before, in a scene; of a new one, as 'first use', for a file\n"
        "x matvec   times scipy's product A x with the same A, in the same run\n"
        "pen. mm    largest penetration that the step adds\n"
        "errors     relative, against the most accurate answer; of v in the norm of A\n"
        f"\nresult     {folder} (bench.json, bench.csv, a convergence plot of each problem)"
    )
    unsolved = {row.problem for row in rows} - {row.problem for row in rows if row.status == "converged"}
    return NOT_CONVERGED if unsolved or any(row.status != "not applicable" for row in shortfalls) else OK


def _step_list(text: str) -> list[int]:
    """Read steps: numbers, FROM:TO or FROM:TO:EVERY, separated by commas."""
    chosen: list[int] = []
    for piece in text.split(","):
        try:
            first, *rest = (int(number) for number in piece.split(":"))
            last, every = (rest + [first, 1][len(rest) :])[:2] if len(rest) < 3 else (0, 0)
        except ValueError:
            first = last = every = 0
        if not 1 <= first <= last <= 1_000_000 or every < 1:
            raise InputError(
                f"--steps {text!r} has the part {piece!r}; allowed are numbers from 1, FROM:TO and FROM:TO:EVERY, separated by "
                "commas, for instance 5,10:200:10."
            )
        chosen += range(first, last + 1, every)
    return chosen


def _bench_table(rows: list[BenchRow]) -> Table:
    """Table of the solvers on one problem."""

    def number(value: float, form: str) -> str:
        return format(value, form) if math.isfinite(value) else "-"

    table = _table(
        "solver", "status", "iterations", "CPU ms", "first use", "x fastest", "x matvec", "dynamics", "contact", "step m/s",
        "pen. mm", "force error", "v error",
    )  # fmt: skip
    for column in table.columns[2:]:
        column.justify = "right"
    for row in rows:
        answered = row.status not in ("refused", "not applicable")
        table.add_row(
            row.solver + (" *" if row.solver == row.most_accurate else ""),
            row.status,
            str(row.iterations) if answered else "-",
            *(number(value, ".4g") for value in (row.cpu_ms, row.first_use_ms, row.times_fastest, row.times_matvec)),
            *(number(value, ".1e") for value in (row.dynamics_residual, row.contact_residual, row.step_norm)),
            *(number(value, ".1e") for value in (row.penetration_mm, row.force_error, row.velocity_error)),
        )
    return table


def _default_folder(name: str, overwrite: bool) -> Path:
    """Choose runs/NAME; where it exists and is not to be replaced, the first of runs/NAME-2, ... that does not."""
    if overwrite:
        return Path("runs") / name
    return _free_name(Path("runs") / name)


def _free_name(path: Path) -> Path:
    """Return the path; where it exists, the first of PATH-2, ... that does not."""
    numbers = (path if number == 1 else path.with_name(f"{path.name}-{number}") for number in itertools.count(1))
    return next(folder for folder in numbers if not folder.exists())


def _steps(text: str) -> tuple[int, int]:
    """Read FROM:TO, or a single number."""
    first, colon, last = text.partition(":")
    try:
        return int(first), int(last if colon else first)
    except ValueError:
        raise InputError(f"--dump-problems {text!r} is neither a step nor FROM:TO; write for instance 10:20.") from None


def _assignments(texts: tuple[str, ...]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"--set {text!r} is not NAME=VALUE; write for instance --set young_modulus=5e5.")
        values[name.strip()] = value.strip()
    return values


@app.command
def describe(scene: Path) -> int:
    """Show what a scene is and its parameters with units and defaults.

    Parameters
    ----------
    scene
        Scene file.
    """
    from femsim.load import load_scene, scene_doc, scene_parameters

    print(f"{scene}\n{scene_doc(scene)}\n")
    table = _table("parameter", "default", "unit", "meaning")
    parameters = scene_parameters(scene)
    for p in parameters:
        table.add_row(p.name, "must be given" if p.required else str(p.default), p.unit, p.description)
    console = _console()
    console.print(table)
    if any(p.required for p in parameters):
        return OK
    built = load_scene(scene)
    bodies = _table("body", "kind", "mass", "unknowns", "mesh")
    for body in built.bodies:
        mesh = built.meshes.get(body.name)
        text = f"{mesh['nodes']} nodes, {mesh['tets']} tets, {Path(mesh['source']).name}" if mesh else ""
        kind = {"nodes": "soft", "links": "rod", "generalized": "rigid"}[body.kind]
        bodies.add_row(body.name, kind, f"{body.mass:.4g} kg", str(body.n_v), text)
    console.print(bodies)
    print(
        f"time step {built.dt:g} s, duration {built.duration:g} s; sensors: {', '.join(s.name for s in built.sensors) or 'none'}"
    )
    return OK


@app.command
def scenes() -> int:
    """List the scenes that come with femsim."""
    from femsim.load import list_scenes, scene_doc

    table = _table("scene", "what")
    for path in list_scenes():
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        table.add_row(str(shown), scene_doc(path).splitlines()[0])
    _console().print(table)
    return OK


@app.command
def materials() -> int:
    """List the library of materials and friction pairs, with sources."""
    from materials import friction_pairs, material
    from materials import materials as names

    table = _table("material", "E", "nu", "density", "source of E")
    for name in names():
        m = material(name)
        table.add_row(
            name,
            f"{m.young_modulus.value:.4g} {m.young_modulus.unit}",
            f"{m.poisson_ratio.value:g}",
            f"{m.density.value:g} {m.density.unit}",
            m.young_modulus.source,
        )
    pairs = _table("friction pair", "mu", "source")
    for pair in friction_pairs():
        pairs.add_row(f"{pair.a} / {pair.b}", f"{pair.value:g}", pair.source)
    console = _console()
    console.print(table)
    console.print(pairs)
    return OK


@app.command
def solvers() -> int:
    """List the contact solvers and their options."""
    import inspect
    from dataclasses import fields as options_of

    from contact.solvers import SOLVERS

    console = _console()
    for name, entry in SOLVERS.items():
        print(f"{name}: {entry.description}\n")
        doc = inspect.getdoc(entry.options) or ""
        print("\n".join(f"    {line}".rstrip() for line in doc.splitlines()))
        table = _table("option", "default")
        for option in options_of(entry.options):
            table.add_row(option.name, str(option.default))
        console.print(table)
    return OK


@app.command
def fit_material(
    test: Path,
    *,
    law: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    min_strain: float = 0.05,
    max_strain: float = 1.0,
    plot: Path | None = None,
    out: Path | None = None,
    poisson_ratio: float = 0.49,
    density: float = 1000.0,
) -> int:
    """Fit elastic laws to a tensile test, print their constants and errors, and draw them.

    Parameters
    ----------
    test
        CSV file with columns 'engineering strain' (or 'stretch') and 'engineering stress (MPa)'.
    law
        Law to fit; may be given several times. Default all: corotational, st_venant_kirchhoff, stable_neo_hookean, neo_hookean,
        mooney_rivlin, ogden_1, ogden_2, ogden_3.
    min_strain, max_strain
        Engineering strains between which samples are used.
    plot
        Picture (.png, .svg, .pdf). Default NAME_OF_TEST_fit.png here.
    out
        Material card (.toml) of the best law.
    poisson_ratio, density
        Of the card: a tensile test does not tell them; density in kg/m3.
    """
    from femsim.material_fit import FIT_LAWS, fit_material, plot_fit, write_card

    fit = fit_material(test, law or FIT_LAWS, min_strain=min_strain, max_strain=max_strain)
    print(fit.summary())
    if out is not None:
        write_card(out, fit, fit.best, poisson_ratio=poisson_ratio, density=density)
        print(f"card              {out} ({fit.best.label})")
    print(f"picture           {plot_fit(fit, plot if plot is not None else Path(f'{test.stem}_fit.png'))}")
    return OK


@app.command
def doctor(*, rendering: Flag = False) -> int:
    """Say what works on this machine.

    Parameters
    ----------
    rendering
        Only whether pictures can be made (exit status 0 or 2).
    """
    from femsim.doctor import examine

    report, healthy = examine(only_rendering=rendering)
    print(report)
    return OK if healthy else WRONG_INPUT


@app.command
def render(
    runs: Annotated[tuple[Path, ...], Parameter(negative=())],
    /,
    *,
    out: Path | None = None,
    fps: float = 25.0,
    every: Whole = 1,
    stills: Whole = 5,
    field: str = "von_mises",
    camera: str = "iso",
    clip: str | None = None,
    mp4: bool = True,
    gif: bool = False,
    arrows: bool = True,
    quiet: Flag = False,
) -> int:
    """Make PNG pictures and an mp4 of a run, or of several side by side, without a display.

    Parameters
    ----------
    runs
        Run folders.
    out
        Folder of the pictures; default RUN/pictures of the first run.
    fps
        Pictures a second of the film.
    every
        Use every so many frames.
    stills
        Number of PNG pictures, evenly spaced.
    field
        Field that colours soft bodies and rods, e.g. von_mises, contact_pressure, tension.
    camera
        iso, front, side or top.
    clip
        Cut soft bodies open: y takes away what lies beyond the middle along y, -y along -y, z=0.02 beyond 0.02 m.
    mp4
        Make the film.
    gif
        Make a GIF as well.
    arrows
        Draw contact forces.
    quiet
        No progress bar.
    """
    from viz import render_run

    started = time.perf_counter()
    with _bar("rendering", quiet) as progress:
        result = render_run(
            runs,
            out=out,
            fps=fps,
            every=every,
            stills=stills,
            field=field,
            camera=camera,
            clip=clip,
            mp4=mp4,
            gif=gif,
            arrows=arrows,
            progress=progress,
        )
    if not quiet:
        for path in (*result.frames, result.mp4, result.gif):
            if path is not None:
                print(path)
        print(f"{time.perf_counter() - started:.1f} s")
    return OK


@app.command
def plot(
    runs: Annotated[tuple[Path, ...], Parameter(negative=())],
    /,
    *,
    out: Path | None = None,
) -> int:
    """Plot forces, solver residuals, energy and penetration of runs, laid over each other, or metrics of sweeps over parameters.

    Parameters
    ----------
    runs
        Folders of runs, or of sweeps, each of which gets plots of its own.
    out
        Folder of the figures; default RUN/plots of the first run.
    """
    from viz import plot_runs, plot_sweep

    sweeps = [folder for folder in runs if (folder / "sweep.json").is_file()]
    single = [folder for folder in runs if folder not in sweeps]
    for path in [path for folder in sweeps for path in plot_sweep(folder)] + (plot_runs(single, out) if single else []):
        print(path)
    return OK


@app.command
def report(
    run: Path,
    *,
    out: Path | None = None,
    field: str = "von_mises",
    stills: Whole = 4,
    quiet: Flag = False,
) -> int:
    """Write one HTML page about a run: warnings, parameters, pictures, plots, timings, and what is needed to repeat it.

    Parameters
    ----------
    run
        Run folder.
    out
        The page; default RUN/report.html, an older one is replaced.
    field
        Field that colours soft bodies and rods in the pictures.
    stills
        Number of pictures.
    quiet
        No progress bar.
    """
    from viz import write_report

    with _bar("reporting", quiet) as progress:
        path = write_report(run, out, field=field, stills=stills, progress=progress)
    print(path)
    return OK


@app.command
def view(
    target: Path,
    *,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative=())] = (),
    out: Path | None = None,
    field: str = "von_mises",
    port: Whole = 8080,
    host: str = "127.0.0.1",
    open: bool = True,
) -> int:
    """Show a run in the browser, also while it goes on: play, pause, scrub, choose a field. A scene is run first. Ctrl-C ends it.

    Parameters
    ----------
    target
        Run folder, or scene file (.py): that is run into a new folder and shown from its first frame on.
    set_
        NAME=VALUE: a parameter of the scene; may be given several times.
    out
        Run folder of a scene; it must not exist. Default runs/NAME_OF_SCENE, with a number behind it where that exists.
    field
        Field that colours soft bodies and rods first, e.g. von_mises, tension.
    port
        Port of the page; where it is taken, the next free one.
    host
        Address to listen at; 0.0.0.0 lets other machines see the page.
    open
        Open the page in this machine's browser.
    """
    from femsim.run import interruptible
    from viz import view_run
    from viz.view import import_viser

    import_viser()  # before a scene is run for nothing
    running = None
    if target.suffix == ".py":
        folder, running = _start(target, set_, out)
        if running.poll() not in (None, OK, NOT_CONVERGED):
            return running.returncode
    else:
        folder = target
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
    from femsim.load import find_scene, load_scene
    from viz import VizError, open_frames

    path = find_scene(scene)
    folder = out if out is not None else _default_folder(load_scene(path, **_assignments(assignments)).name, False)
    if folder.exists():
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
def paraview(run: Path, *, field: str = "von_mises") -> int:
    """Write RUN/show_in_paraview.py, a script that shows a run in ParaView 5.11 or newer with sensible colours.

    Parameters
    ----------
    run
        Run folder.
    field
        Field that colours soft bodies and rods, e.g. von_mises, tension.
    """
    from viz import write_paraview_script

    path = write_paraview_script(run, field)
    print(f"{path}\n\nparaview --script={path}")
    return OK


@app.command
def compare(
    run: Path,
    logs: Annotated[tuple[Path, ...], Parameter(negative=())],
    /,
    *,
    card: Path | None = None,
    sensor: str | None = None,
    json: Flag = False,
    out: Path | None = None,
) -> int:
    """Compare a run with the log of an experiment, axis by axis; several logs are repeated trials.

    Parameters
    ----------
    run
        Run folder.
    logs
        Text table (.csv ...), C3D markers (.c3d), or WrenchStamped of a ROS bag (.mcap, .bag, folder of a rosbag2).
    card
        TOML file that says what the log does not: columns, units, frame, tare, filter (see docs/comparison.md).
    sensor
        Sensor of the run that the log belongs to, instead of that of the card.
    json
        Print the numbers as JSON, and write nothing unless --out is given.
    out
        Folder of the report, the overlay and the numbers; it must not exist. Default RUN/comparison, with a number behind it
        where that exists.
    """
    from json import dumps

    result = femsim.compare(run, logs, card, sensor=sensor)
    folder = out if out is not None or json else _free_name(run / "comparison")
    if folder is not None:
        result.write(folder)
    if json:
        print(dumps(result.to_dict(), indent=2))
    else:
        print(f"{result.summary()}\n\nreport    {folder}/report.html (and overlay.png, comparison.json, comparison.csv)")
    return OK


@app.command
def sweep(
    file: Path,
    /,
    *,
    out: Out = None,
    resume: Resume = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    quiet: Flag = False,
) -> int:
    """Run a scene for many parameters, on all cores or on a cluster; see docs/sweeps.md.

    Parameters
    ----------
    file
        Sweep file (TOML).
    quiet
        No progress bar and no summary.
    """
    from femsim.sweeps.command import dry_run as show
    from femsim.sweeps.command import run_sweep

    if dry_run:
        show(file, _console(), out=out, workers=workers, many=yes)
        return OK
    result = run_sweep(file, quiet=quiet, out=out, resume=resume, scheduler=scheduler, workers=workers, many=yes)
    return INTERRUPTED if result.status == "interrupted" else OK if result.status == "converged" else NOT_CONVERGED


@app.command
def calibrate(
    file: Path,
    /,
    *,
    out: Out = None,
    resume: Resume = False,
    cases: Path | None = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    quiet: Flag = False,
) -> int:
    """Find parameters of a scene from logs of experiments, with intervals and held-out checks; see docs/calibration.md.

    Parameters
    ----------
    file
        Calibration file (TOML).
    cases
        Folder of the cases, to share them between calibrations; default OUT/cases.
    quiet
        No progress bar and no summary.
    """
    from femsim.calibration.command import run_calibration

    result = run_calibration(file, quiet=quiet, out=out, resume=resume, cases=cases, scheduler=scheduler, workers=workers)
    return _STATUS[result.status]


@app.command
def sensitivity(
    file: Path,
    /,
    *,
    out: Out = None,
    resume: Resume = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    quiet: Flag = False,
) -> int:
    """Say how much of the variance of each metric comes from each parameter (indices of Sobol); see docs/sweeps.md.

    Parameters
    ----------
    file
        Sweep file (TOML) with the sampling method "saltelli".
    quiet
        No progress bar and no table.
    """
    from femsim.sweeps.command import dry_run as show
    from femsim.sweeps.command import run_sensitivity

    if dry_run:
        show(file, _console(), out=out, workers=workers, many=yes)
        return OK
    result = run_sensitivity(file, quiet=quiet, out=out, resume=resume, scheduler=scheduler, workers=workers, many=yes)
    return _STATUS[result.status]


@app.command
def reproduce(
    paper: Literal["cond"],
    /,
    *,
    quick: Flag = False,
    only: str | None = None,
    out: Path | None = None,
    data: Path | None = None,
    fresh: Flag = False,
    quiet: Flag = False,
) -> int:
    """Repeat the evaluation of a paper: every table and figure by runs of our own, beside the paper's, on one page.

    Results are stored part by part, and a call that was interrupted goes on where it was. One thread, unless OMP_NUM_THREADS says
    otherwise. Exit status 3 when a part failed; the page says which.

    Parameters
    ----------
    paper
        cond: papers/001, section V, Tables I to IX and Figures 6 to 14.
    quick
        Fewer trials and steps of the same scenes: minutes instead of half an hour.
    only
        Tables and figures to make again, separated by commas, for instance III,VII,fig11.
    out
        Folder of the page (index.md, figures, raw numbers). Default docs/reproduction, with --quick runs/reproduction.
    data
        Folder with authors_program_N160.csv, the forces of the program published with the paper, for Figure 9.
    fresh
        Keep nothing that is stored.
    quiet
        Say nothing while it runs.
    """
    if "numpy" not in sys.modules:  # threads that wait use CPU time too
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(name, "1")
    began = time.perf_counter()

    def say(text: str) -> None:
        if not quiet:
            print(f"[{time.perf_counter() - began:6.0f} s] {text}", file=sys.stderr, flush=True)

    result = femsim.reproduce(
        out if out is not None else Path("runs" if quick else "docs") / "reproduction",
        size="quick" if quick else "full",
        only=[name.strip() for name in only.split(",") if name.strip()] if only is not None else (),
        data=data,
        fresh=fresh,
        say=say,
    )
    for part, failure in result.failures.items():
        print(f"femsim: {part}: {failure}", file=sys.stderr)
    kept = f", stored before: {', '.join(result.kept)}" if result.kept else ""
    print(f"made: {', '.join(result.made) or 'nothing'}{kept}; {result.seconds:.0f} s\npage              {result.page}")
    return NOT_CONVERGED if result.failures else OK


def _console() -> Console:
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:  # rich would end the process with status 1
            raise BrokenPipeError

    return Output() if sys.stdout.isatty() else Output(width=160)


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


class _bar:  # noqa: N801 (used as a function)
    """Progress bar for ``progress(done, total)`` callbacks."""

    def __init__(self, what: str, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), disable=quiet)
        self._task = self._bar.add_task(what, total=None)

    def __enter__(self) -> _bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)


def _wrong_input() -> tuple[type[Exception], ...]:
    from contact.errors import ContactError
    from materials.errors import MaterialError
    from meshes.errors import MeshError
    from viz.errors import VizError

    return InputError, MeshError, MaterialError, ContactError, VizError


def main() -> None:
    """Entry point of the ``femsim`` command."""
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: list[str]) -> int:
    """Run a command and return its exit status; every error becomes a sentence.

    Parameters
    ----------
    arguments : list of str
        What stands behind ``femsim``.
    """
    try:
        status = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
        return status if isinstance(status, int) else OK
    except BrokenPipeError:  # the reader of our output has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except CycloptsError as error:
        print(f"femsim: {' '.join(str(error).split())} (see 'femsim --help')", file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        print("femsim: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, _wrong_input()):
            print(f"femsim: {error}", file=sys.stderr)
            return WRONG_INPUT
        if isinstance(error, OSError) and error.filename:
            print(
                f"femsim: {error.filename}: {error.strerror}; free the disk or choose another folder by --out.", file=sys.stderr
            )
            return WRONG_INPUT
        traceback.print_exc()
        print("femsim: this is a bug in femsim; please report it with the lines above and the command you gave.", file=sys.stderr)
        return INTERNAL
