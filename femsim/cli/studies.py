"""Commands on many runs and on experiments: compare, sweep, sensitivity, calibrate, reproduce."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from femsim.base.status import EXIT_STATUS, NOT_CONVERGED, OK
from femsim.cli.base import CaseOptions, Flag, SweepOptions, app
from femsim.cli.tools import free_name, make_console

if TYPE_CHECKING:
    from femsim.studies.sweeps.sensitivity import SensitivityResult
    from femsim.studies.sweeps.sweep import SweepResult

_CASE_DEFAULTS, _SWEEP_DEFAULTS = CaseOptions(), SweepOptions()


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
        Text table (.csv ...), C3D markers (.c3d), or WrenchStamped or JointState of a ROS bag (.mcap, .bag, folder of a rosbag2).
    card
        TOML file that says what the log does not: columns, units, frame, tare, filter (see docs/comparison.md).
    sensor
        Sensor of the run that the log belongs to, instead of that of the card.
    json
        Print the numbers as JSON, and write nothing unless --out is given.
    out
        Folder of the report, the overlay and the numbers, new or empty. Default RUN/comparison, with a number behind it
        where that exists.
    """
    from json import dumps

    from femsim.studies.comparison.compare import compare

    result = compare(run, logs, card, sensor=sensor)
    folder = out if out is not None or json else free_name(run / "comparison")
    if folder is not None:
        result.write(folder)
    if json:
        print(dumps(result.to_dict(), indent=2))
    else:
        print(f"{result.summary()}\n\nreport    {folder}/report.html (and overlay.png, comparison.json, comparison.csv)")
    return OK


@app.command
def sweep(file: Path, /, *, options: SweepOptions = _SWEEP_DEFAULTS, quiet: Flag = False) -> int:
    """Run a scene for many parameters, on all cores or on a cluster; see docs/sweeps.md.

    Parameters
    ----------
    file
        Sweep file (TOML).
    quiet
        No progress bar and no summary.
    """
    from femsim.studies.sweeps.command import run_sweep

    return _run_cases(run_sweep, file, options, quiet)


@app.command
def sensitivity(file: Path, /, *, options: SweepOptions = _SWEEP_DEFAULTS, quiet: Flag = False) -> int:
    """Say how much of the variance of each metric each parameter causes (Sobol indices); see docs/sweeps.md.

    Parameters
    ----------
    file
        Sweep file (TOML) with the sampling method "saltelli".
    quiet
        No progress bar and no table.
    """
    from femsim.studies.sweeps.command import run_sensitivity
    from femsim.studies.sweeps.sensitivity import check_design

    if options.dry_run:
        check_design(file)
    return _run_cases(run_sensitivity, file, options, quiet)


def _run_cases(run: Callable[..., SweepResult | SensitivityResult], file: Path, options: SweepOptions, quiet: bool) -> int:
    """Run the cases of a sweep file, or show them; return the exit status."""
    given = asdict(options)
    many = given.pop("yes")
    if given.pop("dry_run"):
        from femsim.studies.sweeps.command import dry_run

        dry_run(file, make_console(), out=options.out, workers=options.workers, many=many)
        return OK
    return EXIT_STATUS[run(file, quiet=quiet, many=many, **given).status]


@app.command
def calibrate(file: Path, /, *, options: CaseOptions = _CASE_DEFAULTS, cases: Path | None = None, quiet: Flag = False) -> int:
    """Find parameters of a scene from logs of experiments, with intervals; see docs/calibration.md.

    Parameters
    ----------
    file
        Calibration file (TOML).
    cases
        Folder of the cases, to share them between calibrations; default OUT/cases.
    quiet
        No progress bar and no summary.
    """
    from femsim.studies.calibration.command import run_calibration

    result = run_calibration(file, quiet=quiet, cases=cases, **asdict(options))
    return EXIT_STATUS[result.status]


@app.command
def reproduce(
    paper: Literal["cond", "admm", "canal", "dual"],
    /,
    *,
    quick: Flag = False,
    only: str | None = None,
    out: Path | None = None,
    data: Path | None = None,
    fresh: Flag = False,
    quiet: Flag = False,
) -> int:
    """Repeat the tables and figures of a paper by runs of our own, beside the paper's, on one page.

    Results are stored part by part, and an interrupted call continues where it stopped. One thread, unless OMP_NUM_THREADS says
    otherwise. Exit status 3 when a part failed; the page says which.

    Parameters
    ----------
    paper
        cond: papers/001, section V, Tables I to IX and Figures 6 to 14. admm: papers/003, section 8, tests 1 to 4.
        canal: papers/000 and 002, Tables I to III and Figures 7, 9 and 11, assembly and piling.
        dual: solvers of papers/004 on problems of our own.
    quick
        Fewer trials and steps of the same scenes: minutes instead of half an hour.
    only
        Tables, figures and tests to make again, separated by commas, for instance III,VII,fig11 or test1.
    out
        Folder of the page (index.md or, of another paper, its name), figures and raw numbers. Default runs/reproduction with
        --quick, else docs/reproduction, and data/results/reproduction for the raw numbers.
    data
        Folder with authors_program_N160.csv, the forces of the program published with the paper, for Figure 9.
    fresh
        Make all parts anew, also those that are stored.
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

    from femsim.studies.reproduction.command import reproduce

    result = reproduce(
        out if out is not None else Path("runs" if quick else "docs") / "reproduction",
        paper,
        raw=None if quick or out is not None else Path("data") / "results" / "reproduction",
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


@app.command
def selftest(
    *names: str, long: Flag = False, list_: Annotated[Flag, Parameter(name="--list")] = False, out: Path | None = None
) -> int:
    """Run stress scenes, in which femsim must keep its bounds or say what went wrong.

    Parameters
    ----------
    names
        Scenes to run; default all.
    long
        Ten simulated seconds each, an hour in all. Default: until the hard part of each has happened.
    list_
        Only list the scenes and what must hold in each.
    out
        Page to write a table of outcomes to (.md).
    """
    from femsim.base.files import check_output
    from femsim.studies.selftest.command import selftest as run_all, write_outcomes
    from femsim.studies.selftest.scenes import chosen
    from femsim.studies.selftest.stress import Outcome

    if list_:
        for stress in chosen(names):
            print(f"{stress.name:<32}{stress.what}: {stress.demand}")
        return OK
    if out is not None:
        check_output(out, "name a page such as selftest.md")

    outcomes: list[Outcome] = []
    asked = len(chosen(names))

    def say(outcome: Outcome) -> None:
        outcomes.append(outcome)
        word = outcome.ended if outcome.passed else "FAILED"
        text = " ".join(outcome.text.split())[:200]
        print(f"{word:<9}{outcome.stress.name:<32}{outcome.seconds:6.1f} s  {text}", flush=True)
        if out is not None:  # hours may pass until the last one
            write_outcomes(out, outcomes, long=long, asked=asked)

    run_all(names, long=long, each=say)
    failed = [outcome.stress.name for outcome in outcomes if not outcome.passed]
    print(
        f"{len(outcomes) - len(failed)} of {len(outcomes)} ended as they state"
        + (f"; not: {', '.join(failed)}" if failed else "")
    )
    return NOT_CONVERGED if failed else OK
