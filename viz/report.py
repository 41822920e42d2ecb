"""HTML page about a run: its input, results, warnings, and how to repeat it."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from foreign.text import read_json
from viz.ending import how_it_ended
from viz.errors import VizError
from viz.files import no_run
from viz.look import Look
from viz.page import number, page, picture, table, warnings, write_page
from viz.plots import STEP_COLUMNS, plot_runs
from viz.render import render_run
from viz.tables import Table, read_table

__all__ = ["write_report"]

#: Columns of steps.csv whose largest value is reported: description, unit, factor to that unit.
_WORST = {
    "dynamics_residual": ("dynamics residual", "1", 1.0),
    "contact_residual": ("contact residual", "1", 1.0),
    "wrench_balance": ("wrench balance", "1", 1.0),
    "max_penetration_m": ("penetration", "mm", 1e3),
    "max_slip_mps": ("slip of pressing contacts", "mm/s", 1e3),
    "iterations": ("iterations", "1", 1.0),
    "contacts": ("contacts", "1", 1.0),
}
_STAGES = ("assemble", "detect", "solve", "measure", "record")
_PLOTS = {
    "forces": "Forces on the sensors",
    "solver": "Iterations and residuals",
    "energy": "Energies",
    "penetration": "Penetration",
}
# a time of this many seconds is none
_LONG = 1e15
_PIXELS = (960, 720)


def write_report(
    run_dir: str | os.PathLike[str],
    out: Path | None = None,
    *,
    field: str | None = None,
    stills: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write a self-contained HTML page about a run.

    It has warnings (steps that did not converge, inverted elements, a run that stopped early), parameters with units, pictures,
    plots, the largest residuals and their steps, times by stage, and all that is needed to repeat the run. Items that the run
    folder lacks, or that this machine cannot draw, are omitted and named among the warnings.

    Parameters
    ----------
    run_dir : Path
        Run folder with run.json; finished, running or stopped.
    out : Path, optional
        The page, by default ``RUN/report.html``; an existing one is replaced.
    field : str, optional
        Field that colours soft bodies and rods in the pictures; default as in `render_run`.
    stills : int
        Number of pictures, evenly spaced, at least 0.
    progress : callable, optional
        Called as ``progress(done, total)`` after each picture.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    VizError
        When the folder is no run folder, ``run.json`` or a table is broken, the field is unknown, or the page cannot be written.
    """
    run_dir = Path(run_dir)
    info = read_info(run_dir)
    if stills < 0:
        raise VizError(f"stills is {stills}; it must be 0 (no pictures) or more.")
    target = run_dir / "report.html" if out is None else Path(out)
    if target.suffix.lower() not in (".html", ".htm"):
        raise VizError(f"the page {target} would be HTML; let its name end in .html.")
    if not target.parent.is_dir() or target.is_dir():
        raise VizError(f"the page {target} cannot be written; give the name of a file in a folder that exists.")
    try:
        steps: Table = read_table(run_dir / "steps.csv", STEP_COLUMNS)
        notes = _step_warnings(steps)
    except VizError as error:
        steps, notes = {}, [f"No tables: {error}"]
    odd = info.get("notes")
    notes = _status_warnings(info) + [str(note) for note in (odd if isinstance(odd, list) else [])] + notes
    shown = ""
    with tempfile.TemporaryDirectory(prefix="femsim_report_") as scratch:
        if stills:
            try:
                drawn = render_run(
                    run_dir, out=Path(scratch), size=_PIXELS, stills=stills, field=field, mp4=False, progress=progress
                ).frames
            except VizError as error:
                if "has a field" in str(error):  # an error of the user, not a defect of the run
                    raise
                notes.append(f"No pictures: {error}")
            else:
                shown += "<h2>Pictures</h2>\n" + "".join(picture(p, f"Frame {int(p.stem.split('_')[1])}") for p in drawn)
        if steps:
            plots = plot_runs([run_dir], Path(scratch), look=Look(formats=("svg",)), figures=list(_PLOTS))
            shown += "<h2>Plots</h2>\n" + "".join(picture(plot, _PLOTS[plot.stem.partition("_")[0]]) for plot in plots)
    name = str(_section(info, "scene").get("name", run_dir.resolve().name))
    good = info.get("status") == "converged"
    body = (
        f"<h1>{html.escape(name)}</h1>\n"
        f"{_verdict(info)}"
        f'<p><span class="{"good" if good else "bad"}">{html.escape(str(info.get("status", "unknown")))}</span>: '
        f"{html.escape(str(info.get('message') or 'no message'))}<br>Run folder {html.escape(run_dir.resolve().name)}, started "
        f"{html.escape(str(info.get('started', 'at an unknown time')))}.</p>\n"
        + warnings(notes)
        + _parameters(info)
        + shown
        + _health(steps)
        + _timings(info, steps)
        + _setting(info)
        + _reproduction(info, run_dir)
    )
    try:
        write_page(target, page(f"{name}: report of a run", body))
    except OSError as error:
        raise VizError(f"the page {target} cannot be written ({error.strerror}); choose another name.") from error
    return target


def read_info(run_dir: Path) -> dict[str, Any]:
    """Read run.json of a run folder.

    Raises
    ------
    VizError
        When the folder or the file is missing, or the file is broken.
    """
    path = run_dir / "run.json"
    if not path.is_file():
        raise VizError(no_run(run_dir))
    try:
        info = read_json(path)
    except (OSError, ValueError) as error:
        raise VizError(f"{path} is no JSON ({error}); was it changed by hand or cut short?") from error
    if not isinstance(info, dict):
        raise VizError(f"{path} must hold an object, as a run writes it, but holds a {type(info).__name__}.")
    status, message = how_it_ended(run_dir, info)
    return info | {"status": status, "message": message}


def _section(info: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a part of run.json; empty if an older run has none."""
    found = info.get(name)
    return found if isinstance(found, Mapping) else {}


def _verdict(info: Mapping[str, Any]) -> str:
    """First line of the page: the health verdict, and its reasons."""
    health = _section(info, "health")
    if "verdict" not in health:
        return ""
    verdict = str(health["verdict"])
    found = health.get("reasons")
    sentences = [str(one.get("sentence", "")) for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
    listed = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    line = f'<p>Health: <span class="{"good" if verdict == "good" else "bad"}">{html.escape(verdict)}</span></p>\n'
    return line + (f"<ul>{listed}</ul>\n" if listed else "")


def _status_warnings(info: Mapping[str, Any]) -> list[str]:
    status = info.get("status")
    if status == "running":
        return ["The run had not ended when this page was made; this page shows it up to its last finished step."]
    return [] if status == "converged" else [f"The run is {status}: {info.get('message') or 'no message'}"]


def _step_warnings(steps: Table) -> list[str]:
    """Warnings about steps that did not converge and inverted elements."""
    notes = []
    number_of, time = steps.get("step", np.arange(1.0, len(steps["time_s"]) + 1.0)), steps["time_s"]
    for column, words in (("converged", "did not converge"), ("inverted_elements", "ended with inverted elements")):
        if column not in steps:
            continue
        bad = np.flatnonzero(steps[column] == 0 if column == "converged" else steps[column] > 0)
        if bad.size:
            listed = ", ".join(str(int(n)) for n in number_of[bad[:12]]) + (", ..." if bad.size > 12 else "")
            most = "" if column == "converged" else f"; at most {int(steps[column].max())} at once"
            notes.append(
                f"{bad.size} of {len(time)} steps {words}{most}: steps {listed} (first at {time[bad[0]]:.4g} s, last at "
                f"{time[bad[-1]]:.4g} s)."
            )
    return notes


def _parameters(info: Mapping[str, Any]) -> str:
    rows = [
        [name, _plain(entry.get("value")), str(entry.get("unit", ""))]
        for name, entry in _section(info, "parameters").items()
        if isinstance(entry, Mapping)
    ]
    return f"<h2>Parameters</h2>\n{table(['parameter', 'value', 'unit'], rows)}" if rows else ""


def _health(steps: Table) -> str:
    if not steps:
        return ""
    rows = []
    for column, (words, unit, factor) in _WORST.items():
        values = steps.get(column, np.zeros(0)) * factor
        if values.size and np.isfinite(values).any():
            worst = int(np.nanargmax(values))
            rows.append([words, number(values[worst]), number(float(np.nanmedian(values))), unit, number(steps["time_s"][worst])])
    return f"<h2>Health</h2>\n{table(['quantity', 'largest', 'median', 'unit', 'largest at, s'], rows)}"


def _timings(info: Mapping[str, Any], steps: Table) -> str:
    told = _section(info, "timings_s").items()
    spent = {name: value for name, value in told if isinstance(value, int | float) and abs(value) < _LONG}
    rows = []
    for stage in _STAGES:
        ms = steps.get(f"ms_{stage}", np.zeros(0))
        seconds = spent.get(stage, ms.sum() / 1e3)
        if ms.size:
            rows.append([stage, number(seconds), number(float(np.median(ms))), number(float(ms.max()))])
    if not rows:
        return ""
    whole = f"The run took {number(spent['wall'])} s" if "wall" in spent else "The run reports no total time"
    first = (
        f", its first step {number(spent['first_step'])} s (which compiles or loads the kernels)" if "first_step" in spent else ""
    )
    return f"<h2>Timings</h2>\n{table(['stage', 'total s', 'median ms per step', 'largest ms'], rows)}<p>{whole}{first}.</p>\n"


def _setting(info: Mapping[str, Any]) -> str:
    """List bodies, friction, solver and settings."""
    parts = []
    settings = [[name, _plain(value)] for name, value in _section(info, "settings").items()]
    bodies = []
    for name in _section(info, "bodies"):
        body = _section(_section(info, "bodies"), name)
        made = [_values(body, *(_section(body, part) for part in ("material", "mesh", "section")))]
        regions = _section(body, "regions")
        made += [f"region {region}: {_values(_section(regions, region))}" for region in regions]
        bodies.append([name, _plain(body.get("mass_kg")), _plain(body.get("velocities")), "; ".join(made)])
    pairs = info.get("friction")
    friction = [
        [_plain(pair.get("bodies", pair.get("surfaces", "-")), " / "), _plain(pair.get("coefficients", pair.get("coefficient")))]
        for pair in (pairs if isinstance(pairs, list) else [])
        if isinstance(pair, Mapping)
    ]
    solver = _section(info, "solver")
    options = [["name", str(solver.get("name", "-"))], ["linear algebra", str(solver.get("linear_algebra", "-"))]]
    options += [[name, _plain(value)] for name, value in _section(solver, "options").items()]
    for title, head, rows in (
        ("Bodies", ["body", "mass, kg", "unknowns", "made of"], bodies),
        ("Friction", ["bodies or surfaces", "coefficient"], friction),
        ("Solver", ["option", "value"], options),
        ("Settings", ["setting", "value"], settings),
    ):
        if rows:
            parts.append(f"<h2>{title}</h2>\n{table(head, rows, text=True)}")
    return "".join(parts)


def _reproduction(info: Mapping[str, Any], run_dir: Path) -> str:
    rows = [["command", str(info.get("command", "-"))], ["scene file", str(_section(info, "scene").get("file") or "-")]]
    rows += [[f"version of {name}", str(value)] for name, value in _section(info, "versions").items()]
    rows += [[f"machine: {name}", str(value)] for name, value in _section(info, "machine").items()]
    rows += [
        [f"mesh of {name}, digest", str(mesh.get("digest", "-"))]
        for name in _section(info, "bodies")
        if (mesh := _section(_section(_section(info, "bodies"), name), "mesh"))
    ]
    source = run_dir / "scene.py"
    scene = ""
    if source.is_file():
        text = html.escape(source.read_text(encoding="utf-8", errors="replace"))
        scene = f"<details><summary>The scene that ran</summary><pre>{text}</pre></details>\n"
    return f"<h2>To repeat this run</h2>\n{table(['what', 'value'], rows, text=True)}{scene}"


def _values(*groups: Mapping[str, Any]) -> str:
    """Names and values of parts of run.json in a line, without those that have columns of their own."""
    return ", ".join(
        str(value) if key == "what" else f"{key} {_plain(value)}"
        for group in groups
        for key, value in group.items()
        if not isinstance(value, Mapping) and key not in ("mass_kg", "velocities", "digest")
    )


def _plain(value: Any, between: str = ", ") -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return between.join(map(_plain, value)) if isinstance(value, list) else str(value)
