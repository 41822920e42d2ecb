"""Many runs from Python: a function that builds scenes, a table of its arguments, all cores."""

from __future__ import annotations

import inspect
import math
import os
import queue
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from femsim.base.arguments import shown
from femsim.base.columns import Columns
from femsim.base.errors import InputError, did_you_mean, naming_parameters
from femsim.base.notebook import card
from femsim.base.status import FINISHED
from femsim.run.result import Run
from femsim.run.showing import table_of
from femsim.run.simulate import simulate
from femsim.run.simulation import Simulation
from femsim.scene.scene import Scene
from femsim.studies.sweeps.case import TABLES_FILE, Job, Row, read_row, run_case
from femsim.studies.sweeps.packing import TAKEN, Packed, names_of_build, names_of_loop, pack
from femsim.studies.sweeps.process import COMPILE_S, CaseProcess
from foreign.text import read_npz

if TYPE_CHECKING:
    from pandas import DataFrame

Build = Callable[..., Scene] | str | Path
Measure = Callable[[Run], Mapping[str, float]]
Loop = Callable[..., object]
#: Options of a run that are the business of what runs it.
_OWN = {"scene", "out", "overwrite", "quiet", "scene_path", "on_step", "until", "checkpoint_every", "dump_problems"}
#: ... and those of a simulation, beside these: what is for a folder.
_OF_FOLDER = {"record", "fps", "fields", "format", "precision"}


@dataclass(frozen=True, repr=False)
class CaseRun:
    """One run of many.

    Attributes
    ----------
    number : int
        Row of the table, from 0.
    parameters : dict
        Arguments of the scene.
    status : {"converged", "not converged", "failed", "timed out", "out of memory", "not run"}
        How it ended; of the last four there is no result.
    message : str
        One sentence.
    error : str
        Traceback where it failed; "" otherwise.
    verdict : str
        What it is worth as physics: "good", "doubtful", "wrong"; "" without a result.
    values : dict of str to float
        What ``measure`` gave.
    table : dict of str to ndarray, (n_steps,)
        All columns of sensors.csv and steps.csv, as :attr:`femsim.run.result.Run.table` gives them; empty without a result.
    wall_s : float, s
        Wall time of the case.
    """

    number: int
    parameters: dict[str, Any]
    status: str
    message: str
    error: str = ""
    verdict: str = ""
    values: dict[str, float] = field(default_factory=dict)
    table: dict[str, np.ndarray] = field(default_factory=dict)
    wall_s: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", Columns(f"column of case {self.number} ({self.status})", self.table))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"<case {self.number} ({given}): {self.status}{'' if self.status == 'converged' else ': ' + self.message}>"

    def to_pandas(self) -> DataFrame:
        """Return the columns of :attr:`table` as a table of pandas, by time (s), as :meth:`femsim.run.result.Run.to_pandas` does.

        Raises
        ------
        InputError
            pandas is not installed, or the case has no result.
        """
        if not self.table:
            raise InputError(f"{self!r} has no table; see its message and error.")
        return table_of(self.table)


class ManyRuns(Sequence[CaseRun]):
    """Results of :func:`run_many`, in the order of its table."""

    def __init__(self, cases: Sequence[CaseRun]) -> None:
        self._cases = list(cases)

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, number: Any) -> Any:
        return self._cases[number]

    def __iter__(self) -> Iterator[CaseRun]:
        return iter(self._cases)

    def __repr__(self) -> str:
        counts = Counter(case.status for case in self)
        return f"<{len(self)} runs: {', '.join(f'{count} {status}' for status, count in sorted(counts.items()))}>"

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for case in self for name in (*case.parameters, *case.values)))
        rows = [
            (
                str(case.number),
                *(str({**case.parameters, **case.values}.get(name, "")) for name in names),
                case.status,
                case.verdict,
            )
            for case in self
        ]
        return card(repr(self).strip("<>"), ("case", *names, "status", "verdict"), rows, [])

    @property
    def failed(self) -> list[CaseRun]:
        """Cases without a result."""
        return [case for case in self if case.status not in FINISHED]

    @property
    def table(self) -> Columns:
        """Columns of :meth:`to_pandas` by name, (n_cases,) each; numbers are NaN, and all else None, where a case has none.

        ``runs.table["peak"]``, or ``runs.table()`` for a dict, as of a :class:`femsim.run.result.Run` and of one case.
        """
        rows = self._rows()
        names = dict.fromkeys(name for row in rows for name in row)
        return Columns("column of these runs", {name: _column([row.get(name) for row in rows]) for name in names})

    def _rows(self) -> list[dict[str, Any]]:
        """Parameters, values, status, verdict and message of each case, by name."""
        return [
            {f"parameter_{name}" if name in TAKEN else name: value for name, value in case.parameters.items()}
            | {**case.values, "status": case.status, "verdict": case.verdict, "message": case.message}
            for case in self
        ]

    def to_pandas(self) -> DataFrame:
        """Return a table with a row a case: parameters, values, status, verdict, message; pandas comes with the extra "sweep".

        A parameter with one of the last three names, or "case", is called parameter_NAME, as in the table of a sweep.

        Raises
        ------
        InputError
            pandas is not installed.
        """
        from femsim.base.packages import require

        require("pandas", "a table of runs", "sweep")
        import pandas

        return pandas.DataFrame(self._rows())


def _column(values: list[Any]) -> np.ndarray:
    """Numbers as floats, NaN where there is none; all else as objects."""
    if all(value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool)) for value in values):
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    out = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):  # one by one: a list of lists would be taken for a matrix
        out[k] = value
    return out


@naming_parameters
def run_many(
    build: Build,
    table: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]] | DataFrame,
    *,
    measure: Measure | None = None,
    loop: Loop | None = None,
    seed: int | None = None,
    workers: int | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    on_case: Callable[[CaseRun], None] | None = None,
    **settings: Any,
) -> ManyRuns:
    """Run a scene many times with different parameters, on all cores; from a script or a notebook.

    Each case runs in a process of its own kind with one thread, as those of sweeps do: one that raises, hangs, grows or crashes
    does not affect the others. Results do not depend on the number of workers. For sweeps that go on after a crash,
    grids, samples and clusters see :func:`~femsim.studies.sweeps.sweep.sweep`.

    Parameters
    ----------
    build : callable or path
        ``build(**parameters) -> Scene``, also one of a notebook; or a scene file.
    table : sequence of mapping, mapping of sequences, or DataFrame
        Parameters of each case: a list of dicts, a dict of columns of one length, or a table of pandas.
    measure : callable, optional
        ``measure(run) -> {name: number}``, called where the case ran, with its :class:`~femsim.run.result.Run`. A name that is
        a parameter, "case", "status", "verdict" or "message" fails the case.
    loop : callable, optional
        ``loop(sim)`` steps the :class:`~femsim.run.simulation.Simulation` of each case, where that runs: it reads sensors, sets
        targets, and ends where it likes. Parameters that it names, ``loop(sim, gain)``, come from the table. Default: each case
        runs to the end of its scene.
    seed : int, optional
        Gives each case a whole number of its own as parameter ``seed``, by its row: the same table has the same numbers.
    workers : int, optional
        Processes; default one per core that this process may use. 0: in this process, one after the other, e.g. to debug.
    time_limit, memory_limit : float, s and bytes, optional
        A case that takes more is killed, and its status says so. Not with ``workers=0``. The first case of each process may take
        two minutes more, since kernels may have to be compiled.
    on_case : callable, optional
        ``on_case(case)`` as each ends, in whatever order.
    **settings
        Options of :func:`~femsim.run.simulate.simulate` for all cases: solver, duration, dt, tolerance ... With a loop those of
        a simulation, which have no duration.

    Returns
    -------
    ManyRuns
        In the order of the table, also where some failed; after Ctrl-C the rest is "not run".

    Raises
    ------
    InputError
        A table without rows or of columns of different length, unknown parameters or options, or functions that cannot be
        sent to another process.
    """
    options = inspect.signature(simulate if loop is None else Simulation.__init__).parameters
    known = [name for name in options if name not in _OWN | ({"self", *_OF_FOLDER} if loop is not None else set())]
    for name in settings:
        if loop is not None and name == "duration":
            raise InputError("run_many: a loop ends by itself; leave 'duration' out, and let it step until sim.time is that.")
        if name not in known:
            raise InputError(f"run_many: option {name!r} is unknown{did_you_mean(name, known)}")
    for what, function in (("measure", measure), ("loop", loop), ("on_case", on_case)):
        if function is not None and not callable(function):
            raise InputError(f"run_many: {what} is {function!r}; allowed are functions and None.")
    for what, number in (("workers", workers), ("seed", seed)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, Integral) or number < 0):
            raise InputError(f"run_many: {what} is {number!r}; allowed are whole numbers from 0.")
    for what, limit in (("time_limit", time_limit), ("memory_limit", memory_limit)):
        if limit is not None and not (limit > 0 and workers != 0):
            raise InputError(
                f"run_many: {what} is {limit!r}; allowed are positive numbers, with processes (workers other than 0)."
            )
    cases = _cases(build, loop, table, seed)
    results = [CaseRun(k, dict(own), "not run", "It was not run.") for k, own in enumerate(cases)]
    count = min(_cores() if workers is None else workers, len(cases))
    with tempfile.TemporaryDirectory() as scratch:
        jobs = [
            Job(
                k, f"{k:06d}", {}, "", "", scratch, settings,
                time=None if time_limit is None else time_limit + COMPILE_S * (k < count), memory=memory_limit, retries=0,
                built=pack(Packed(build, own, measure, loop)),
            )
            for k, own in enumerate(cases)
        ]  # fmt: skip
        rows = (run_case(job) for job in jobs) if workers == 0 else _in_processes(jobs, count)
        with suppress(KeyboardInterrupt), closing(rows):
            for row in rows:
                k = int(row["case"])
                results[k] = _case_run(k, cases[k], row, Path(scratch))
                if on_case is not None:
                    on_case(results[k])
        for k, job in enumerate(jobs):  # what ended when Ctrl-C came
            if results[k].status == "not run" and (ended := read_row(Path(scratch) / job.id)) is not None:
                results[k] = _case_run(k, cases[k], ended, Path(scratch))
    return ManyRuns(results)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _cases(build: Build, loop: Loop | None, table: Any, seed: int | None) -> list[dict[str, Any]]:
    """Arguments of each case."""
    if hasattr(table, "to_dict") and hasattr(table, "columns"):  # a table of pandas
        table = {str(name): _values(table[name]) for name in table.columns}
    if isinstance(table, Mapping):
        for name, column in table.items():
            if isinstance(column, str) or not hasattr(column, "__len__"):
                raise InputError(
                    f"run_many: column {name!r} of the table is {shown(column)}; allowed are lists, one value a case."
                )
        sizes = {str(name): len(column) for name, column in table.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(f"run_many: columns of the table have {sizes} rows; allowed is one length.")
        count = next(iter(sizes.values()), 0)
        table = [{str(name): column[k] for name, column in table.items()} for k in range(count)]
    if not isinstance(table, Sequence) or not all(isinstance(row, Mapping) for row in table):
        raise InputError("run_many: the table is none; give a list of dicts, a dict of columns, or a DataFrame.")
    if not table:
        raise InputError("run_many: the table has no row; give one dict of parameters for each case, {} for none.")
    rows = [{str(name): value.item() if isinstance(value, np.generic) else value for name, value in row.items()} for row in table]
    if seed is not None:
        numbers = np.random.SeedSequence(seed).generate_state(len(rows), np.uint32)
        rows = [{"seed": int(number), **row} for number, row in zip(numbers, rows, strict=True)]
    names, of_loop = names_of_build(build), names_of_loop(loop)
    known = None if names is None else [*names, *sorted(of_loop - set(names))]
    where = "the scene or the loop" if of_loop else "the scene"
    for k, row in enumerate(rows):
        for name in row:
            if known is not None and name not in known:
                raise InputError(f"run_many: parameter {name!r} of row {k} is none of {where}{did_you_mean(name, known)}")
    return rows


def _values(column: Any) -> list[Any]:
    """Values of a column of pandas, which has lost None among texts and whole numbers: NaN of numbers, None of all else."""
    if column.dtype == object:
        return list(column.tolist())
    absent = math.nan if column.dtype.kind == "f" else None
    return [absent if gone else value for value, gone in zip(column.tolist(), column.isna(), strict=True)]


def _case_run(k: int, parameters: Mapping[str, Any], row: Row, folder: Path) -> CaseRun:
    """Make the result of a case of its row and its tables, which are read once."""
    file = folder / row["id"] / TABLES_FILE
    table = read_npz(file) if row["status"] in FINISHED and file.is_file() else {}
    file.unlink(missing_ok=True)
    return CaseRun(
        k, dict(parameters), row["status"], row["message"], row.get("traceback", ""), str(row["health"].get("verdict", "")),
        {name: math.nan if value is None else value for name, value in row.get("values", {}).items()}, table, row["wall_s"],
    )  # fmt: skip


def _in_processes(jobs: Sequence[Job], workers: int) -> Generator[Row]:
    """Run jobs in so many processes, each with a thread that waits for it; yield rows as they end."""
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    ended: queue.SimpleQueue[Row | BaseException] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    processes = [CaseProcess() for _ in range(workers)]
    stop = threading.Event()

    def work(process: CaseProcess) -> None:
        try:
            while not stop.is_set():
                ended.put(process.run(waiting.get_nowait()))
        except queue.Empty:
            pass
        except BaseException as error:  # a process that does not start; after stop, one that was closed
            ended.put(error)

    threads = [threading.Thread(target=work, args=(process,), daemon=True) for process in processes]
    try:
        for thread in threads:
            thread.start()
        for _ in jobs:
            row = ended.get()
            if isinstance(row, BaseException):
                raise row
            yield row
    finally:
        stop.set()
        for process in processes:
            process.stop()
        for thread in threads:
            thread.join(timeout=5.0)
