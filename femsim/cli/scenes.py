"""Commands that run scenes and show what there is: run, describe, scenes, materials, fit-material, doctor."""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from femsim.base.errors import InputError
from femsim.base.numba_cache import is_folder_empty
from femsim.base.status import OK, WRONG_INPUT, exit_status
from femsim.cli.base import Assignments, Flag, Whole, app
from femsim.cli.tools import default_folder, make_console, make_table, read_assignments
from femsim.model.fields import field_help

if TYPE_CHECKING:
    from femsim.run.result import Run


@app.command
def run(
    scene: Path,
    *,
    set_: Assignments = (),
    solver: str = "auto",
    tolerance: float | None = None,
    max_iterations: Whole | None = None,
    duration: float | None = None,
    dt: float | Literal["auto"] | None = None,
    out: Path | None = None,
    overwrite: Flag = False,
    fps: float = 100.0,
    format: Literal["pvd", "vtkhdf"] = "pvd",
    fields: Annotated[str | None, Parameter(help=field_help())] = None,
    precision: Literal["float64", "float32"] = "float64",
    dump_problems: str | None = None,
    max_halvings: Whole = 6,
    checkpoint_every: str | None = None,
    threads: Whole | None = None,
    max_step_seconds: float | None = None,
    plugin: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    quiet: Flag = False,
) -> int:
    """Run a scene and write a run folder.

    Parameters
    ----------
    scene
        Scene file (.py), or the name of one that comes with femsim.
    set_
        NAME=VALUE: a parameter of the scene (see 'femsim describe SCENE'); may be given several times.
    solver
        Contact solver (see 'femsim solvers'), with options where wanted: NAME:OPTION=VALUE:...
    tolerance
        Tolerance of the true residuals. Default: that of the solver.
    max_iterations
        Most iterations per step. Default: that of the solver.
    duration
        Simulated time in s; default of the scene.
    dt
        Time step in s, or auto: as short as the motion needs; default of the scene.
    out
        Run folder; new or empty unless --overwrite. Default runs/NAME_OF_SCENE, with a number behind it where that exists.
    overwrite
        Replace an existing run folder.
    fps
        Frames a simulated second.
    format
        Format of the frames: a PVD series that ParaView 5.11 and newer open, or VTKHDF, a fraction of the size, for ParaView 5.12
        and newer (needs h5py).
    precision
        Precision of positions in the frames; fields are float32.
    dump_problems
        FROM:TO or a single number: write the contact problems of these steps to RUN/problems, for 'femsim solve'.
    max_halvings
        How often a step that cannot be solved is halved; 0 takes every step as it comes.
    checkpoint_every
        How often to write a checkpoint for 'femsim resume': 60s of wall time, 500 steps, or 0 for never; default 600s.
    threads
        Threads of the linear algebra, default 1. The same number gives the same bits; run.json records it. With 1 given, no
        second process compiles kernels that are missing.
    max_step_seconds
        A step that takes longer (wall time) ends the run, with all steps before it. Default: no limit.
    plugin
        Python file that registers solvers of your own by femsim.register_solver; may be given several times.
    quiet
        No progress bar and no summary.
    """
    from femsim.cli.beside import compiling_beside
    from femsim.scene.scene_file import find_scene, load_scene, scene_errors
    from femsim.studies.problems.arena import load_plugin, read_entrant

    for file in plugin:
        load_plugin(file)
    chosen = read_entrant(solver)
    solver_options = dict(chosen.options)
    if tolerance is None:
        tolerance = solver_options.pop("tolerance", None)
    if max_iterations is None:
        max_iterations = solver_options.pop("max_iterations", None)
    path = find_scene(scene)
    built = load_scene(path, **read_assignments(set_))
    if not quiet and sys.stderr.isatty() and is_folder_empty():
        print("femsim: compiling kernels first, once for all runs: about 20 s ...", file=sys.stderr, flush=True)
    beside = nullcontext() if threads == 1 else compiling_beside(path.stem, built)
    with scene_errors(path, "a function of the scene"), beside:
        from femsim.run.simulate import simulate

        result = simulate(
            built,
            chosen.name,
            tolerance=tolerance,
            max_iterations=max_iterations,
            duration=duration,
            dt=dt,
            out=out if out is not None else default_folder(built.name, overwrite),
            overwrite=overwrite,
            fps=fps,
            fields=None if fields is None else tuple(name.strip() for name in fields.split(",") if name.strip()),
            format=format,
            precision=precision,
            dump_problems=None if dump_problems is None else _step_range(dump_problems),
            max_halvings=max_halvings,
            checkpoint_every=checkpoint_every,
            threads=1 if threads is None else threads,
            max_step_seconds=max_step_seconds,
            quiet=quiet,
            scene_path=path,
            solver_options=solver_options or None,
        )
    return _say(result, quiet)


@app.command
def resume(
    run: Path,
    *,
    force: Flag = False,
    plugin: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    quiet: Flag = False,
) -> int:
    """Continue a run that was killed, interrupted or failed, from its last checkpoint; without one from its start.

    Parameters
    ----------
    run
        Run folder.
    force
        Go on also where the scene file or what it reads has changed.
    plugin
        Python file that registers the solver of the run, where it is one of your own; may be given several times.
    quiet
        No progress bar and no summary.
    """
    from femsim.run.resume import resume as go_on
    from femsim.scene.scene_file import scene_errors
    from femsim.studies.problems.arena import load_plugin

    for file in plugin:
        load_plugin(file)
    with scene_errors(run, "a function of the scene"):
        result = go_on(run, force=force, quiet=quiet)
    return _say(result, quiet)


@app.command
def repair(run: Path) -> int:
    """Mend the folder of a run that was killed or ran out of disk.

    Parameters
    ----------
    run
        Run folder.
    """
    from femsim.run.repair import repair as mend

    done = mend(run)
    print("\n".join(done) if done else "nothing to mend")
    return OK


def _say(result: Run, quiet: bool) -> int:
    """Print how a run ended, for a quiet command only where it did not converge or is not good; return the exit status."""
    from femsim.run.verdict import headline

    if not quiet:
        print(result.summary())
        shown = f"open frames.{result.info['settings']['format']} in ParaView; or: femsim render {result.folder}"
        print(f"\nresult            {result.folder} ({shown})")
    else:
        if result.status != "converged":
            print(f"femsim: {result.status}: {result.message}", file=sys.stderr)
        if result.verdict != "good":
            print(f"femsim: health {headline(result.info['health'])}", file=sys.stderr)
    return exit_status(result.status, result.verdict)


def _step_range(text: str) -> tuple[int, int]:
    """Read FROM:TO, or a single number."""
    first, colon, last = text.partition(":")
    try:
        return int(first), int(last if colon else first)
    except ValueError:
        raise InputError(f"--dump-problems {text!r} is neither a step nor FROM:TO; write for instance 10:20.") from None


@app.command
def describe(scene: Path, *, tree: str | None = None, balance_inertia: bool = False) -> int:
    """Show what a scene is and its parameters with units and defaults, or the tree of a robot.

    Parameters
    ----------
    scene
        Scene file, or a robot: a URDF or MJCF file (.xml), or the name of one that comes with femsim, such as arm7.urdf.
    tree
        Of an MJCF file with several robots the one to show, by the name of its body in the world.
    balance_inertia
        Of a robot: replace inertias that no body has, as fs.load_robot(..., balance_inertia=True) does.
    """
    if scene.suffix in (".urdf", ".xml", ".mjcf"):
        return _describe_robot(scene, tree, balance_inertia)
    if tree is not None:
        raise InputError(f"--tree is {tree!r}; it chooses in robots of MJCF, and {scene} is a scene, so leave it out.")
    if balance_inertia:
        raise InputError(f"--balance-inertia is for robots, and {scene} is a scene, so leave it out.")
    from femsim.run.info import describe_drives
    from femsim.run.simulate import notes_of
    from femsim.scene.scene_file import load_scene, scene_doc, scene_errors, scene_parameters

    parameters = scene_parameters(scene)  # before anything is printed: it may be no scene
    print(f"{scene}\n{scene_doc(scene)}\n")
    table = make_table("parameter", "default", "unit", "meaning")
    for p in parameters:
        table.add_row(p.name, "must be given" if p.required else str(p.default), p.unit, p.description)
    console = make_console()
    console.print(table)
    if any(p.required for p in parameters):
        return OK
    built = load_scene(scene)
    bodies = make_table("body", "kind", "mass", "unknowns", "mesh")
    for body in built.bodies:
        mesh = built.meshes.get(body.name)
        text = f"{mesh['nodes']} nodes, {mesh['tets']} tets, {Path(mesh['source']).name}" if mesh else ""
        bodies.add_row(body.name, body.what, f"{body.mass:.4g} kg", str(body.n_v), text)
    console.print(bodies)
    for name, drive in describe_drives(built).items():
        print(f"driven: {name}, {_how_driven(drive)}")
    print(
        f"time step {built.dt:g} s, duration {built.duration:g} s; sensors: {', '.join(s.name for s in built.sensors) or 'none'}"
    )
    with scene_errors(scene, "a function of the scene"):  # what a run would refuse, or note
        for note in notes_of(built):
            print(f"note: {note}")
    return OK


def _how_driven(drive: dict[str, Any]) -> str:
    """Say how a base or held nodes follow their motion."""
    what = f"{drive['nodes']} nodes of {drive['body']}, " if "nodes" in drive else ""
    if drive["exact"]:
        return f"{what}exactly"
    parts = drive["stiffness"][:3], drive["stiffness"][3:]
    along, about = (", ".join(f"{k:g}" for k in (part[:1] if len(set(part)) == 1 else part)) for part in parts)
    limits = [f"{drive[name]:g} {unit}" for name, unit in (("max_force_N", "N"), ("max_torque_Nm", "N m")) if drive[name]]
    most = f", at most {' and '.join(limits)}" if limits else ""
    return f"{what}by a spring of {along} N/m and {about} N m/rad{most}"


def _describe_robot(path: Path, tree: str | None, balance_inertia: bool) -> int:
    """Show the tree of a robot: links with their masses, and joints with type, range, effort and damping."""
    from femsim.model.urdf import load_robot

    robot = load_robot(path, tree=tree, balance_inertia=balance_inertia)
    depth = {robot.root: 0}
    table = make_table("link", "mass", "joint", "type", "range", "max effort", "max speed", "damping")
    for link, joint in zip(robot.links, [None, *robot.joints], strict=True):
        shown = f"{link.mass:.4g} kg" if link.mass else "frame"
        if joint is None:
            table.add_row(link.name, shown, "", "base", "", "", "", "")
            continue
        depth[link.name] = depth[joint.parent] + 1
        angle, force = ("m", "N") if joint.kind == "prismatic" else ("rad", "N m")
        low, high = joint.limits
        limits = {
            "range": f"{low:.4g} to {high:.4g} {angle}" if math.isfinite(high - low) else "",
            "effort": f"{joint.max_effort:.4g} {force}" if math.isfinite(joint.max_effort) else "",
            "speed": f"{joint.max_speed:.4g} {angle}/s" if math.isfinite(joint.max_speed) else "",
            "damping": f"{joint.damping:.4g} {force} s/{angle}" if joint.damping else "",
        }
        follows = f", mimics {joint.mimic[0]}" if joint.mimic else ""
        table.add_row("  " * depth[link.name] + link.name, shown, joint.name, joint.kind + follows, *limits.values())
    print(f"{path}: robot {robot.name!r}, {robot.mass:.4g} kg, {len(robot.joint_names())} joints to drive")
    make_console().print(table)
    for note in robot.notes:
        print(f"note: {note}")
    return OK


@app.command
def scenes() -> int:
    """List the scenes that come with femsim; 'femsim run NAME' runs one from any folder."""
    from femsim.scene.scene_file import SCENES, list_scenes, scene_doc

    table = make_table("scene", "what")
    for path in list_scenes():
        table.add_row(path.stem, scene_doc(path).splitlines()[0])
    console = make_console()
    console.print(table)
    console.print(f"Files to copy and change: {SCENES}", soft_wrap=True, highlight=False)
    return OK


@app.command
def materials() -> int:
    """List the library of materials and friction pairs, with sources."""
    from materials import friction_pairs, material, materials as names

    table = make_table("material", "E", "nu", "density", "source of E")
    for name in names():
        m = material(name)
        table.add_row(
            name,
            f"{m.young_modulus.value:.4g} {m.young_modulus.unit}",
            f"{m.poisson_ratio.value:g}",
            f"{m.density.value:g} {m.density.unit}",
            m.young_modulus.source,
        )
    pairs = make_table("friction pair", "mu", "source")
    for pair in friction_pairs():
        pairs.add_row(f"{pair.a} / {pair.b}", f"{pair.value:g}", pair.source)
    console = make_console()
    console.print(table)
    console.print(pairs)
    return OK


@app.command
def fit_material(
    test: Path,
    *,
    law: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    prony: int = 0,
    also: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
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
    prony
        Number of Prony terms to fit with the law: for tests with a column 'time (s)' in which the stretch is held or goes back,
        or with others pulled at other rates. The law is then the first of --law, or ogden_1.
    also
        Further tests of the same material, for --prony; may be given several times.
    min_strain
        Least engineering strain of the samples that are used.
    max_strain
        Largest.
    plot
        Picture (.png, .svg, .pdf). Default NAME_OF_TEST_fit.png here.
    out
        Material card (.toml) of the best law.
    poisson_ratio
        Of the card; a tensile test does not tell it.
    density
        Of the card, in kg/m3.
    """
    from femsim.studies.material_fit.card import write_card
    from femsim.studies.material_fit.fit import FIT_LAWS, fit_material
    from femsim.studies.material_fit.plot import plot_fit, plot_viscous_fit
    from femsim.studies.material_fit.viscous_fit import fit_viscous

    picture = plot if plot is not None else Path(f"{test.stem}_fit.png")
    if also and not prony:
        raise InputError("--also goes with --prony; a law alone is fitted to one test.")
    if out is not None and out.exists():
        raise InputError(f"the card {out} exists; choose another by --out, or remove it.")
    if prony:
        viscous = fit_viscous((test, *also), prony, law[0] if law else "ogden_1", min_strain=min_strain, max_strain=max_strain)
        print(viscous.summary())
        if out is not None:
            write_card(out, viscous.fit, viscous.law, poisson_ratio=poisson_ratio, density=density, prony=viscous.prony)
            print(f"card              {out} ({viscous.law.label}, {prony} terms)")
        print(f"picture           {plot_viscous_fit(viscous, picture)}")
        return OK
    fit = fit_material(test, law or FIT_LAWS, min_strain=min_strain, max_strain=max_strain)
    print(fit.summary())
    if out is not None:
        write_card(out, fit, fit.best, poisson_ratio=poisson_ratio, density=density)
        print(f"card              {out} ({fit.best.label})")
    print(f"picture           {plot_fit(fit, picture)}")
    return OK


@app.command
def doctor(*, rendering: Flag = False, compile: Flag = False) -> int:
    """Say what works on this machine.

    Parameters
    ----------
    rendering
        Only whether pictures can be made (exit status 0 or 2).
    compile
        Compile the kernels of the common scenes instead, once after each installation or update: one to two minutes. The first
        run of a scene otherwise compiles what it needs.
    """
    if compile:
        from femsim.cli.compilation import SCENES, compile_ahead

        wrong = compile_ahead(SCENES, lambda line: print(line, flush=True))
        for line in wrong:
            print(f"femsim: {line}", file=sys.stderr)
        return WRONG_INPUT if wrong else OK
    from femsim.cli.doctor import examine

    report, healthy = examine(only_rendering=rendering)
    print(report)
    return OK if healthy else WRONG_INPUT
