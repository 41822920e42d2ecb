"""What ``femsim sweep`` and ``femsim sensitivity`` show: progress, failures as they happen, a summary, and the dry run."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from femsim.base.status import FINISHED
from femsim.studies.sweeps.case import Row
from femsim.studies.sweeps.sensitivity import SensitivityResult, sensitivity
from femsim.studies.sweeps.sweep import SweepResult, estimate_cost, sweep

if TYPE_CHECKING:
    from rich.console import Console

_Result = TypeVar("_Result")
_SHOWN_CASES = 10
_SHOWN_FAILURES = 5


def run_sweep(file: Path, *, quiet: bool, **options: Any) -> SweepResult:
    """Run a sweep with a progress bar on stderr and a summary on stdout.

    Parameters
    ----------
    file : Path
        Sweep file.
    quiet : bool
        Print neither.
    **options
        Of :func:`~femsim.studies.sweeps.sweep.sweep`.
    """
    result = _with_progress(sweep, file, quiet, options)
    if _says_more(result, quiet):
        print("cases     " + ", ".join(f"{count} {status}" for status, count in sorted(result.counts.items())))
        print(f"run now   {result.ran}, taken from before {result.reused}")
        print(f"\nresult    {result.table} (one row a case; femsim plot {result.folder})")
    return result


def run_sensitivity(file: Path, *, quiet: bool, **options: Any) -> SensitivityResult:
    """Compute Sobol indices with a progress bar on stderr and a table on stdout.

    Parameters
    ----------
    file : Path
        Sweep file.
    quiet : bool
        Print neither.
    **options
        Of :func:`~femsim.studies.sweeps.sensitivity.sensitivity`.
    """
    result = _with_progress(sensitivity, file, quiet, options)
    if _says_more(result, quiet):
        for metric, own in result.indices.items():
            print(f"\n{metric}: mean {own.mean:.6g}, standard deviation {own.deviation:.6g}")
            for name, (first, first_half), (total, total_half) in zip(own.parameters, own.first, own.total, strict=True):
                print(f"  {name:24} first order {first:6.3f} +- {first_half:.3f}   total {total:6.3f} +- {total_half:.3f}")
        print("".join(f"\nwarning: {text}" for text in result.warnings))
        print(f"result    {result.folder}{' (sensitivity.json, .csv, .png)' if result.indices else ''}")
    return result


def _says_more(result: SweepResult | SensitivityResult, quiet: bool) -> bool:
    """Print the status, for a quiet call on stderr and only where it is not "converged"; say whether a summary follows."""
    if not quiet:
        print(f"status    {result.status}: {result.message}")
    elif result.status != "converged":
        print(f"femsim: {result.status}: {result.message}", file=sys.stderr)
    return not quiet


def _with_progress(function: Callable[..., _Result], file: Path, quiet: bool, options: dict[str, Any]) -> _Result:
    """Call a function that runs the cases of a file, with a progress bar."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("sweeping"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"), TimeRemainingColumn(),
        console=console, disable=quiet or not console.is_terminal, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=None, text="first steps of a case, kernels compiled ...")
        started, ran, bad = 0.0, 0, 0

        def on_start(total: int, reused: int, threads: int) -> None:
            nonlocal started
            started = time.monotonic()
            where = f"on {threads} workers" if threads else "waiting for workers"
            bar.update(task, total=total, completed=reused, text=where)

        def on_row(row: Row) -> None:
            nonlocal ran, bad
            ran += 1
            if row["status"] not in FINISHED:
                bad += 1
                if bad <= _SHOWN_FAILURES and not quiet:
                    text = f"case {row['case']} {row['status']}: {row['message']}"
                    bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
            rate = ran / max(time.monotonic() - started, 1e-9)
            bar.update(task, advance=1, text=f"{rate:.3g} a second, {bad} failed")

        return function(file, on_row=on_row, on_start=on_start, **options)


def dry_run(file: Path, console: Console, **options: Any) -> None:
    """Show the cases of a sweep and what it would take.

    Parameters
    ----------
    file : Path
        Sweep file.
    console : Console
        Where tables go.
    **options
        Of :func:`~femsim.studies.sweeps.sweep.estimate_cost`.
    """
    from rich.table import Table

    plan, cost = estimate_cost(file, **options)
    cases = plan.cases
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("case", "id", *cases.varied):
        table.add_column(name, overflow="fold")
    for case in cases.cases[:_SHOWN_CASES]:
        values = (case.parameters[name] for name in cases.varied)
        table.add_row(str(case.number), case.id, *(f"{v:.6g}" if isinstance(v, float) else str(v) for v in values))
    console.print(table)
    if len(cases.cases) > _SHOWN_CASES:
        print(f"... {len(cases.cases) - _SHOWN_CASES} more")
    doubles = f", {cases.duplicates} equal ones left out" if cases.duplicates else ""
    print(f"\ncases     {cost.cases}{doubles}; {cost.reused} are there already")
    if cost.cases > cost.reused:
        source = "mean of those" if cost.timed else "from the first steps of one"
        print(f"a case    {cost.steps} steps, {_seconds(cost.case_s)} ({source})")
        print(f"all       {_seconds(cost.wall_s)} on {cost.workers} workers")
        print(f"disk      {_bytes(cost.disk_bytes)} in {plan.folder}")


def _seconds(seconds: float) -> str:
    if seconds < 120.0:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200.0 else f"{seconds / 3600:.3g} h"


def _bytes(number: float) -> str:
    power = min(4, max(0, int(math.log10(max(number, 1.0)) // 3)))
    return f"{number / 1000**power:.3g} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"
