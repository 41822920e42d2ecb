"""Commands on contact problems: solve, bench, solvers."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from femsim.base.errors import InputError
from femsim.base.status import EXIT_STATUS, NOT_CONVERGED, OK
from femsim.cli.base import Assignments, Flag, Whole, app
from femsim.cli.tools import Bar, default_folder, make_console, make_table, read_assignments

if TYPE_CHECKING:
    from rich.table import Table

    from femsim.studies.problems.bench import BenchRow


@app.command
def solve(
    problem: Path,
    *,
    solver: str = "auto",
    tolerance: float = 1e-6,
    max_iterations: Whole | None = None,
    plugin: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    out: Path | None = None,
) -> int:
    """Solve a contact problem of an FCLib file, and judge the answer on that problem.

    Parameters
    ----------
    problem
        HDF5 file in the layout of FCLib, local or global.
    solver
        Contact solver (see 'femsim solvers'), with options where wanted: NAME:OPTION=VALUE:...
    tolerance
        Largest residual of the contact law and of the dynamics.
    max_iterations
        Iteration limit; default of the solver.
    plugin
        Python file that registers solvers of your own by femsim.register_solver; may be given several times.
    out
        NPZ file for v (global problems), r and u; an existing one is replaced. Default: nothing is written.
    """
    from femsim.studies.problems.arena import load_plugin, read_entrant
    from femsim.studies.problems.solve import solve_problem

    for file in plugin:
        load_plugin(file)
    chosen = read_entrant(solver)
    options = dict(chosen.options)
    tolerance, max_iterations = options.pop("tolerance", tolerance), options.pop("max_iterations", max_iterations)
    result = solve_problem(
        problem, chosen.name, tolerance=tolerance, max_iterations=max_iterations, out=out, solver_options=options
    )
    print(result.summary())
    if out is not None:
        written = f"{out} ({'r, u' if result.v is None else 'v, r, u'})"
        print(f"\n{'solution':<24}{written if result.status != 'failed' else 'not written'}")
    return EXIT_STATUS[result.status]


@app.command
def bench(
    problems: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    /,
    *,
    solvers: str | None = None,
    tolerance: float = 1e-6,
    max_iterations: Whole | None = None,
    steps: str | None = None,
    set_: Assignments = (),
    repeat: Whole = 3,
    time_limit: float | None = None,
    plugin: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    from_: Path | None = None,
    out: Path | None = None,
    quiet: Flag = False,
) -> int:
    """Compare contact solvers on the same problems: times, true residuals, errors, performance profiles.

    One thread, unless OMP_NUM_THREADS says otherwise.

    Parameters
    ----------
    problems
        FCLib files, folders of them, the sets 'small' (a dozen), 'stack', 'ring', 'bars' and 'mechanisms', and scenes, whose
        problems are those of a run solved by 'auto'.
    solvers
        Names separated by commas (see 'femsim solvers'), with options where wanted: NAME:OPTION=VALUE:...; default all but auto
        and presets.
    tolerance
        Largest residual of the contact law and of the dynamics.
    max_iterations
        Iteration limit of every solver; default their own.
    steps
        Steps of scenes: numbers, FROM:TO or FROM:TO:EVERY, separated by commas; default five, spread over the run.
    set_
        NAME=VALUE: a parameter of the scenes (see 'femsim describe SCENE'); may be given several times.
    repeat
        Number of solves; the median time counts.
    time_limit
        CPU time of a solve in s; what takes longer counts as not solved.
    plugin
        Python file that registers solvers of your own by femsim.register_solver; may be given several times.
    from_
        Draw page and profiles of this bench.csv again without solving. Its lines may be a part, or those of several tables
        joined; takes no other option but --out.
    out
        Folder of the page bench.md, bench.json, bench.csv, the profiles and the plots, new or empty. Default runs/bench,
        with a number behind it where that exists.
    quiet
        No progress bar.
    """
    folder = out if out is not None else default_folder("bench", False)
    if from_ is not None:
        given = {
            "a problem": problems, "--solvers": solvers, "--tolerance": tolerance != 1e-6, "--max-iterations": max_iterations,
            "--steps": steps, "--set": set_, "--repeat": repeat != 3, "--time-limit": time_limit, "--plugin": plugin,
        }  # fmt: skip
        return _redraw(from_, folder, [name for name, value in given.items() if value])
    if "numpy" not in sys.modules:  # threads that wait use CPU time too
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    with Bar("benchmarking", quiet) as progress:
        from femsim.studies.problems.arena import load_plugin
        from femsim.studies.problems.bench import bench

        for file in plugin:
            load_plugin(file)
        rows = bench(
            problems,
            None if solvers is None else [name.strip() for name in solvers.split(",") if name.strip()],
            tolerance=tolerance,
            max_iterations=max_iterations,
            steps=None if steps is None else _step_list(steps),
            parameters=read_assignments(set_),
            repeat=repeat,
            time_limit=time_limit,
            out=folder,
            progress=progress,
        )
    print(f"times: CPU ms, median of {repeat}, kernels compiled; tolerance {tolerance:g}; *: most accurate\n")
    console, problem = make_console(), ""
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
        f"\nresult     {folder} (bench.md, bench.json, bench.csv, profiles, a convergence plot of each problem)"
    )
    unsolved = {row.problem for row in rows} - {row.problem for row in rows if row.status == "converged"}
    return NOT_CONVERGED if unsolved or any(row.status != "not applicable" for row in shortfalls) else OK


def _redraw(table: Path, folder: Path, given: list[str]) -> int:
    """Draw a benchmark again from its table."""
    from femsim.studies.problems.redraw import redraw_bench

    if given:
        raise InputError(f"--from solves nothing, but {given[0]} is given; leave it out.")
    rows = redraw_bench(table, folder)
    solved = sum(row.status == "converged" for row in rows)
    print(f"{len(rows)} lines, {solved} of them converged; nothing was solved")
    print(f"result     {folder} (bench.md, bench.csv, profiles)")
    return OK


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

    table = make_table(
        "solver", "status", "iterations", "CPU ms", "first use", "x fastest", "x matvec", "dynamics", "contact", "step m/s",
        "pen. mm", "force error", "v error",
    )  # fmt: skip
    for column in table.columns[2:]:
        column.justify = "right"
    for row in rows:
        answered = row.status not in ("refused", "not applicable", "over time")
        table.add_row(
            row.solver + (" *" if row.solver == row.most_accurate else ""),
            row.status,
            str(row.iterations) if answered else "-",
            *(number(value, ".4g") for value in (row.cpu_ms, row.first_use_ms, row.times_fastest, row.times_matvec)),
            *(number(value, ".1e") for value in (row.dynamics_residual, row.contact_residual, row.step_norm)),
            *(number(value, ".1e") for value in (row.penetration_mm, row.force_error, row.velocity_error)),
        )
    return table


@app.command
def solvers() -> int:
    """List the contact solvers and their options."""
    from dataclasses import fields as options_of

    from contact.solvers import SOLVERS

    console = make_console()
    for name, entry in SOLVERS.items():
        print(f"{name}: {entry.description}\n")
        print("\n".join(f"    {line}".rstrip() for line in entry.options.describe().splitlines()))
        table = make_table("option", "default")
        for option in options_of(entry.options):
            table.add_row(option.name, str(option.default))
        console.print(table)
    return OK
