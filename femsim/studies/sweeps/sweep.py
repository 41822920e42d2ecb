"""Run a sweep: the cases that are missing or failed, and a table that is right whenever the sweep ends."""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from femsim.base.errors import InputError, naming_parameters
from femsim.base.files import write_errors, write_json
from femsim.base.notebook import card
from femsim.base.status import FINISHED, Status
from femsim.base.versions import provenance
from femsim.scene.scene_file import scene_parameters
from femsim.studies.sweeps.case import Job, Row, read_row, remove_left, satisfies
from femsim.studies.sweeps.engine import Engine, SchedulerLost
from femsim.studies.sweeps.file import Axis, SweepFile, read_sweep
from femsim.studies.sweeps.folder import begun_folder, check_folder, hold_results
from femsim.studies.sweeps.metrics import parse_metric, unit_of
from femsim.studies.sweeps.process import COMPILE_S, CaseProcess
from femsim.studies.sweeps.results import check_metric_names, make_table, write_table
from femsim.studies.sweeps.sampling import Cases, make_cases

if TYPE_CHECKING:
    from pandas import DataFrame

#: Steps by which a case is tried before the workers start, and most cases that are tried.
_PROBE_STEPS, _PROBES = 3, 3
#: How often the table of results is written while cases run, s.
_TABLE_EVERY_S = 30.0
#: Sizes for an estimate, bytes: what is kept of a case beside its series and frames, and a number in a series, ten digits.
_ROW_BYTES, _NUMBER_BYTES = 4000, 14.0


@dataclass(frozen=True, repr=False)
class SweepResult:
    """Outcome of a sweep.

    Attributes
    ----------
    status : {"converged", "not converged", "interrupted", "failed"}
        "converged": every case is there and converged; "not converged": some did not converge, failed or timed out;
        "interrupted": by the user; "failed": the scheduler or the disk was lost. In the last two the table has rows "not run".
    message : str
        One sentence.
    folder : Path
        Folder of results.
    table : Path
        results.parquet in it.
    counts : dict of str to int
        Cases by status.
    ran, reused : int
        Cases run now, and cases reused from before.
    """

    status: Status
    message: str
    folder: Path
    table: Path
    counts: dict[str, int]
    ran: int
    reused: int

    def __repr__(self) -> str:
        cases = ", ".join(f"{count} {status}" for status, count in sorted(self.counts.items()))
        return f"<Sweep {self.folder.name!r}: {self.status}; cases: {cases or 'none'}>"

    def _repr_html_(self) -> str:
        rows = [(f"cases {status}", count) for status, count in sorted(self.counts.items())]
        lines = [self.message, f"{self.table}: one row a case (to_pandas()); fs.plot_sweep({str(self.folder)!r}) draws it"]
        return card(
            f"Sweep {self.folder.name}: {self.status}", (), [*rows, ("run now", self.ran), ("reused", self.reused)], lines
        )

    def to_pandas(self) -> DataFrame:
        """Return the table, one row a case."""
        import pandas

        return pandas.read_parquet(self.table)


@dataclass(frozen=True)
class Cost:
    """What a sweep would take.

    Attributes
    ----------
    cases, reused : int
        All cases, and those that the folder of results has already.
    steps : int
        Steps of the first missing case.
    case_s, wall_s : float, s
        Time of one case in one process, and of all cases on ``workers`` processes.
    workers : int
        Number of processes assumed.
    disk_bytes : float
        Size of all results.
    timed : bool
        Whether ``case_s`` comes from cases that ran before, not from the first steps of one.
    """

    cases: int
    reused: int
    steps: int
    case_s: float
    wall_s: float
    workers: int
    disk_bytes: float
    timed: bool


@dataclass(frozen=True)
class Plan:
    """A sweep ready to run: its file, its cases, a job for each case, and the rows that are there already, by id."""

    path: Path
    file: SweepFile
    cases: Cases
    folder: Path
    jobs: list[Job]
    rows: dict[str, Row]

    @property
    def pending(self) -> list[Job]:
        """Jobs whose cases are missing or failed."""
        return [job for job in self.jobs if not satisfies(self.rows.get(job.id), job)]


def plan_sweep(path: str | Path, *, out: str | Path | None = None, many: bool = False) -> Plan:
    """Read a sweep file, make its cases and look for results that are there already.

    Parameters
    ----------
    path : path
        Sweep file.
    out : path, optional
        Folder of results; default runs/NAME.
    many : bool
        Allow more than ``MANY_CASES`` cases.

    Raises
    ------
    InputError
        Anything wrong with the file or its scene.
    """
    path = Path(path)
    file = read_sweep(path)
    cases = make_cases(file, path, many=many)
    check_metric_names(file.metrics, cases.cases[0].parameters, path)
    chosen = file.outputs.frames
    beyond = [] if chosen == "all" else [number for number in chosen if number > len(cases.cases)]
    if beyond:
        raise InputError(f"{path}: outputs.frames names case {beyond[0]}; allowed are 1 to {len(cases.cases)}.")
    folder = (Path(out) if out is not None else Path("runs") / (file.name or path.stem)).resolve()
    source = cases.scene.read_text(encoding="utf-8")
    memory = None if file.limits.memory is None else 1e9 * file.limits.memory
    jobs = [
        Job(
            case.number, case.id, case.parameters, str(cases.scene), source, str(folder / "cases"),
            file.settings.model_dump(), file.metrics, file.stop, file.outputs.series,
            file.outputs.fps if chosen == "all" or case.number in chosen else 0.0,
            time=file.limits.time, memory=memory, retries=file.limits.retries,
        )
        for case in cases.cases
    ]  # fmt: skip
    found = {job.id: read_row(folder / "cases" / job.id) for job in jobs} if (folder / "cases").is_dir() else {}
    return Plan(path, file, cases, folder, jobs, {key: row for key, row in found.items() if row is not None})


@naming_parameters
def sweep(
    path: str | Path,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    many: bool = False,
    on_row: Callable[[Row], None] | None = None,
    on_start: Callable[[int, int, int], None] | None = None,
) -> SweepResult:
    """Run the cases of a sweep file that are missing or failed.

    Parameters
    ----------
    path : path
        Sweep file.
    out : path, optional
        Folder of results; default runs/NAME. All workers must see it.
    resume : bool
        Continue in a folder that exists.
    scheduler : str, optional
        Address of an existing Dask scheduler; default a new cluster on this machine.
    workers : int, optional
        Processes of the new cluster; default one per core.
    many : bool
        Allow more than ``MANY_CASES`` cases.
    on_row : callable, optional
        ``on_row(row)`` after each case.
    on_start : callable, optional
        ``on_start(total, reused, threads)`` when the cluster is there.

    Returns
    -------
    SweepResult
        Also when cases failed, the user pressed Ctrl-C, or the scheduler was lost: read ``status``.

    Raises
    ------
    InputError
        Anything wrong with the file or its scene, a folder that exists or cannot be written, a scheduler that does not answer.
    """
    with ExitStack() as held:
        plan = plan_sweep(path, out=out, many=many)
        check_folder(plan.folder, "sweep", resume=resume)
        if there := plan.folder.exists():
            held.enter_context(hold_results(plan.folder))
        return _sweep(plan, Engine(scheduler, workers), None if there else held, on_row, on_start)


def _sweep(
    plan: Plan,
    engine: Engine,
    held: ExitStack | None,
    on_row: Callable[[Row], None] | None,
    on_start: Callable[[int, int, int], None] | None,
) -> SweepResult:
    """Run what is missing in the folder of a plan; a new one, which ``held`` is to hold, is made after the first steps."""
    pending, rows = plan.pending, plan.rows
    reused = len(plan.jobs) - len(pending)
    ran = 0

    def count(row: Row) -> None:
        nonlocal ran
        ran += 1
        if on_row is not None:
            on_row(row)

    stopped = False
    with ExitStack() as stack:
        if pending:  # workers start while the first steps run
            stack.enter_context(engine)
            try:
                _probe(plan, pending)
            except KeyboardInterrupt:  # the folder is made all the same, so that --resume finds it
                stopped = True
        _begin(plan, held)
        ended: Literal["", "interrupted", "failed"]
        started = time.perf_counter()
        try:
            if stopped:
                raise KeyboardInterrupt
            if pending and on_start is not None:
                on_start(len(plan.jobs), reused, engine.threads)
            ended, message = _run_pending(plan, engine, pending, count)
        except KeyboardInterrupt:
            ended, message = "interrupted", "Interrupted."
        except SchedulerLost as error:
            ended, message = "failed", str(error)
            for job in pending:  # workers may have finished some that we were not told of
                row = read_row(plan.folder / "cases" / job.id)
                if row is not None:
                    rows[job.id] = row
    if not ended:
        remove_left(plan.folder / "cases", [job.id for job in plan.jobs])
    counts, good, text = _counted(plan)
    status: Status = ended or ("converged" if good else "not converged")
    others = "; the same command with --resume runs the others" if sum(counts[name] for name in FINISHED) < len(plan.jobs) else ""
    message = f"{message} {text}{others}.".strip()
    times = {"wall_s": time.perf_counter() - started, "ran": ran, "reused": reused}
    with write_errors(f"the table in {plan.folder}", f"{text}, which are kept: free the disk and use --resume"):
        table = write_table(make_table(plan.cases.cases, rows, plan.file.metrics), plan.folder)
        _write_info(plan, status, message, dict(counts) | times)
    return SweepResult(status, message, plan.folder, table, dict(counts), ran, reused)


def _begin(plan: Plan, held: ExitStack | None) -> None:
    """Make the folder of a plan, which ``held`` is to hold if it is new, with what it begins with."""
    with begun_folder(plan.folder, held):
        (plan.folder / "cases").mkdir(exist_ok=True)
        shutil.copyfile(plan.path, plan.folder / "sweep.toml")
        shutil.copyfile(plan.cases.scene, plan.folder / "scene.py")
        _write_info(plan, "running", "", {})


def _counted(plan: Plan) -> tuple[Counter[str], bool, str]:
    """Cases by their status, whether all converged and none is wrong by its health, and that in words."""
    rows = plan.rows
    counts = Counter(rows[job.id]["status"] if job.id in rows else "not run" for job in plan.jobs)
    wrong = sum(rows.get(job.id, {}).get("health", {}).get("verdict") == "wrong" for job in plan.jobs)
    text = f"{sum(counts[name] for name in FINISHED)} of {len(plan.jobs)} cases are finished"
    text += f", {counts['not converged']} of them not converged" if counts["not converged"] else ""
    text += f", {wrong} wrong by their health (column verdict)" if wrong else ""
    for name in plan.file.metrics:
        values = [rows[job.id]["metrics"].get(name) for job in plan.jobs if job.id in rows and rows[job.id]["status"] in FINISHED]
        lacking = sum(value is None or not math.isfinite(value) for value in values)
        text += f", {lacking} have no number of metric {name} (column message)" if lacking else ""
    return counts, counts["converged"] == len(plan.jobs) and not wrong, text


def _run_pending(
    plan: Plan, engine: Engine, pending: list[Job], on_row: Callable[[Row], None]
) -> tuple[Literal["", "failed"], str]:
    """Run cases and collect their rows, with a table from time to time; stop where the disk cannot be written."""
    written = time.monotonic()
    for row in engine.run(pending) if pending else ():
        plan.rows[row["id"]] = row
        on_row(row)
        if row.get("disk"):
            return "failed", f"Stopped since the disk cannot be written: {row['message']}"
        if time.monotonic() > written + _TABLE_EVERY_S:
            with suppress(OSError):  # the last table decides
                write_table(make_table(plan.cases.cases, plan.rows, plan.file.metrics), plan.folder)
            written = time.monotonic()
    return "", ""


def estimate_cost(
    path: str | Path, *, out: str | Path | None = None, workers: int | None = None, many: bool = False
) -> tuple[Plan, Cost]:
    """Estimate what a sweep would take, from cases that ran before or else from the first steps of its first case.

    Parameters
    ----------
    path, out, workers, many
        As for :func:`sweep`.

    Returns
    -------
    (Plan, Cost)
        The cases, and the estimate.

    Raises
    ------
    InputError
        As :func:`sweep`; also a first case that fails.
    """
    plan = plan_sweep(path, out=out, many=many)
    threads = Engine(None, workers).workers
    pending = plan.pending
    before = [row["wall_s"] for row in plan.rows.values() if row["status"] in FINISHED]
    if not pending:
        return plan, Cost(len(plan.jobs), len(plan.jobs), 0, 0.0, 0.0, threads, 0.0, True)
    row, frame_bytes = _probe(plan, pending)
    if row["status"] not in FINISHED:
        raise InputError(f"{plan.path}: the first cases fail, so that nothing can be estimated: {row['message']}")
    steps = row.get("planned_steps", 0)
    done = max(1, int(row["health"].get("steps", 1)))
    case_s = sum(before) / len(before) if before else row["overhead_s"] + steps * row["stepping_s"] / done
    columns = len(row["columns"]) if plan.file.outputs.series == "all" else len(plan.file.outputs.series) + 1
    disk = len(pending) * (_ROW_BYTES + (_NUMBER_BYTES * columns * steps if plan.file.outputs.series else 0.0))
    frames = sum(job.fps > 0 for job in pending)
    disk += frames * frame_bytes * max(1.0, steps * row["dt"] * plan.file.outputs.fps)
    wall = case_s * math.ceil(len(pending) / threads)
    return plan, Cost(len(plan.jobs), len(plan.jobs) - len(pending), steps, case_s, wall, threads, disk, bool(before))


def _probe(plan: Plan, pending: list[Job]) -> tuple[Row, float]:
    """Run the first steps of a case twice: the first run compiles kernels before the workers need them, the second is timed.

    Before that its scene is built, to see at once whether it writes the columns that are asked for. Where the first case fails,
    others are tried.

    Returns
    -------
    (dict, float)
        Row of the second run, and bytes per frame (0 without frames).

    Raises
    ------
    InputError
        Metrics, series or stop conditions name columns that the scene does not write, or windows lie outside the run.
    """
    process = CaseProcess(warm_up=False)
    candidates = sorted(pending, key=lambda job: not job.fps)[:_PROBES]
    frames: list[int] = []
    row: Row = {}
    try:
        for job in candidates:
            # compiling may take long, and a compilation that is cut short has to be done again
            patient = None if job.time is None else job.time + COMPILE_S
            row = process.run(replace(job, only_built=True, folder="", time=patient, retries=0))
            if row.get("sweep_wrong"):
                raise InputError(f"{plan.path}: {row['message']}")
            if row["status"] not in FINISHED:
                continue
            last = replace(pending[-1], only_built=True, folder="", time=patient, retries=0)
            if row["missed"] and process.run(last).get("missed"):  # the duration may be a parameter, and only some too short
                raise InputError(f"{plan.path}: {row['missed']}; write other times in s, or take a longer duration.")
            with tempfile.TemporaryDirectory() as scratch:
                row = process.run(replace(job, steps=_PROBE_STEPS, folder=scratch, time=patient, retries=0))
                frames = [path.stat().st_size for path in Path(scratch).rglob("frames/*") if path.is_file()]
            if row["status"] in FINISHED:
                row = process.run(replace(job, steps=_PROBE_STEPS, folder="", fps=0.0, retries=0))
                break
    finally:
        process.close()
    return row, sum(frames) / (_PROBE_STEPS + 1)


def _units(plan: Plan) -> dict[str, str]:
    """Units of varied parameters and of metrics, for the axes of plots; "" where none is known."""
    known = {parameter.name: parameter.unit for parameter in scene_parameters(plan.cases.scene)}
    own = {name: known.get(name, "") for name in plan.cases.varied}
    return own | {name: unit_of(parse_metric(text).column) for name, text in plan.file.metrics.items()}


def _scales(plan: Plan) -> dict[str, str]:
    """How ranges and samples of parameters are spaced, "linear" or "log"; those of lists of values are left out."""
    axes = {name: axis for name, axis in plan.file.parameters.items() if isinstance(axis, Axis)}
    return {name: axis.scale for name, axis in axes.items() if axis.values is None}


def _write_info(plan: Plan, status: str, message: str, counts: dict[str, Any]) -> None:
    write_json(
        plan.folder / "sweep.json",
        {
            "status": status, "message": message, "file": str(plan.path), "scene": str(plan.cases.scene),
            "varied": plan.cases.varied, "units": _units(plan), "scales": _scales(plan), "metrics": plan.file.metrics,
            "cases": len(plan.jobs), "counts": counts,
        } | provenance(),
    )  # fmt: skip
