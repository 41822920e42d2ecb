"""Run the experiments for values of the free parameters, and turn their results into residuals."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from femsim.base.errors import InputError
from femsim.run.sensors import sensor_columns
from femsim.run.verdict import headline
from femsim.scene.scene_file import load_scene, scene_parameters
from femsim.studies.calibration.file import CalibrationFile, Experiment, Measurement
from femsim.studies.comparison.card import read_card
from femsim.studies.comparison.compare import compare
from femsim.studies.comparison.comparison import Comparison
from femsim.studies.comparison.log import LEAST_SAMPLES, Log, check_once, no_sensor, read_log
from femsim.studies.comparison.resampling import resample
from femsim.studies.comparison.run_series import RunSeries, make_run_series
from femsim.studies.sweeps.case import Job, Row, is_believed, read_row, satisfies
from femsim.studies.sweeps.engine import Engine
from femsim.studies.sweeps.file import SweepFile
from femsim.studies.sweeps.process import COMPILE_S
from femsim.studies.sweeps.sampling import make_cases

#: Standard deviation before there is an estimate: this part of the largest range of a group's channels.
FIRST_NOISE = 0.05
#: Samples at the ends of a run that stay out where the offset of a log is to be found, since it moves.
_EDGE = 2.0


@dataclass(frozen=True, eq=False)
class Block:
    """Errors of one reading of one experiment.

    Attributes
    ----------
    error : ndarray, (m, c), unit of the channels
        Run minus log; one column per channel and trial, the channels of a trial together; 0 in gaps.
    channels : tuple of str
        Channel of each column: fx ... tz, MARKER.x ..., or single columns of the run without their unit.
    kinds : tuple of str
        What each column measures: force, torque, position ...
    ranges : ndarray, (c,)
        Largest range of the measured channels of the column's group.
    constant : ndarray, (k, c), unit of the channels
        Rows of which the sum of outer products is the covariance of what the tares leave in all rows alike.
    """

    error: np.ndarray
    channels: tuple[str, ...]
    kinds: tuple[str, ...]
    ranges: np.ndarray
    constant: np.ndarray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Values of the free parameters, and the errors of the runs there.

    Attributes
    ----------
    number : int
        From 1.
    phase : str
        "start", "search", "refine" ...
    unit : ndarray, (p,)
        Coordinates of the parameters, 0 to 1.
    blocks : list of Block
        One per fitted reading; empty where a case failed.
    message : str
        What failed or did not converge.
    ran : int
        Cases that ran for it; the others were there already.
    """

    number: int
    phase: str
    unit: np.ndarray
    blocks: list[Block]
    message: str
    ran: int

    @property
    def misfit(self) -> float:
        """Root mean square of the errors over the range of their group; NaN where a case failed."""
        if not self.blocks:
            return math.nan
        scaled = [block.error / block.ranges for block in self.blocks]
        return math.sqrt(sum(float((s**2).sum()) for s in scaled) / sum(s.size for s in scaled))


class Evaluator:
    """Experiments of a calibration, ready to run: ``with Evaluator(...) as evaluator: ...``.

    The folder keeps cases by digest; a case that is there does not run again.

    Parameters
    ----------
    path : Path
        Calibration file; files in it are relative to its folder.
    file : CalibrationFile
        Its content.
    cases : Path
        Folder of the cases.
    engine : Engine
        Starts when the first case has to run.
    on_evaluation : callable, optional
        ``on_evaluation(evaluation)`` after each one.

    Raises
    ------
    InputError
        Unknown parameters, a scene that cannot be built, logs or cards that are wrong.
    """

    def __init__(
        self,
        path: Path,
        file: CalibrationFile,
        cases: Path,
        engine: Engine,
        on_evaluation: Callable[[Evaluation], None] | None = None,
    ) -> None:
        self.path, self.file, self.cases, self._engine, self._on = path, file, cases, engine, on_evaluation
        self.history: list[Evaluation] = []
        self._stack, self._started = ExitStack(), False
        self._samples: dict[tuple[str, int], list[Samples]] = {}
        start = np.array([free.first for free in file.free.values()])  # elsewhere the scene may not be possible
        first = self._case(file.experiments[0], start, check=True)
        self.scene = Path(first.scene)
        self._logs: dict[str, list[list[Log]]] = {}
        self._columns: dict[str, list[str]] = {}
        self._gravity: dict[str, tuple[float, ...]] = {}
        self._masses: dict[str, dict[str, float]] = {}
        self._theta: dict[str, float] = {}
        for experiment in file.experiments:
            scene = load_scene(self.scene, **self._case(experiment, start, check=True).parameters)
            sensors = {s.name: s.kind for s in scene.sensors if s.kind != "marker"}
            sensors |= {f"{s.name}_measured": s.kind for s in scene.sensors if s.reading is not None}
            markers = tuple(s.name for s in scene.sensors if s.kind == "marker")
            adaptive = file.settings.dt == "auto" or (file.settings.dt is None and scene.adaptive)
            self._columns[experiment.name] = [*sensor_columns(scene), *(["substeps"] if adaptive else [])]
            kinds = {s.name: s.kind for s in scene.sensors}
            self._masses[experiment.name] = {body.name: float(body.mass) for body in scene.bodies}
            self._theta[experiment.name] = float(scene.theta)
            gravity = self._gravity[experiment.name] = tuple(float(g) for g in scene.gravity)
            self._logs[experiment.name] = [self._read(r, sensors, markers, gravity) for r in experiment.readings]
            self._check_channels(experiment, kinds)
        self._check_noise()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @property
    def fitted(self) -> list[Experiment]:
        """Experiments of the fit, without those held out."""
        return [e for e in self.file.experiments if not e.held_out]

    def values(self, unit: np.ndarray) -> dict[str, float]:
        """Values of the free parameters at a point of the unit cube."""
        return {name: free.value(float(u)) for (name, free), u in zip(self.file.free.items(), unit, strict=True)}

    def evaluate(self, phase: str, units: Sequence[np.ndarray]) -> list[Evaluation]:
        """Run the fitted experiments at points of the unit cube, all at once.

        Parameters
        ----------
        phase : str
            What they are for.
        units : sequence of ndarray, (p,)
            Points.

        Returns
        -------
        list of Evaluation
            In the order of the points.

        Raises
        ------
        SchedulerLost, InputError
            The cluster is gone; or readings and logs cannot be compared at the first evaluation.
        """
        jobs = [[self._case(e, u) for e in self.fitted] for u in units]
        rows, ran = self._run([job for own in jobs for job in own])
        out = []
        for unit, own in zip(units, jobs, strict=True):
            blocks: list[Block] = []
            message = ""
            for experiment, job in zip(self.fitted, own, strict=True):
                row = rows[job.id]
                if row["status"] != "converged":
                    message = message or f"{experiment.name}: {row['status']}: {row['message']}"
                verdict = row.get("health", {})
                if verdict.get("verdict") == "wrong":
                    message = f"{experiment.name}: {headline(verdict)}"
                if not is_believed(row):
                    blocks = []
                    break
                blocks += self._blocks(experiment, self._run_series(experiment, job))
            count = sum(job.id in ran for job in own)
            out.append(Evaluation(len(self.history) + 1, phase, np.array(unit), blocks, message, count))
            self.history.append(out[-1])
            if self._on is not None:
                self._on(out[-1])
        return out

    def compare_all(self, unit: np.ndarray) -> dict[str, list[Comparison]]:
        """Run all experiments, the held-out ones too, and compare them with their logs.

        Returns
        -------
        dict of str to list of Comparison
            By experiment, one per reading; without experiments whose run failed or is wrong.
        """
        jobs = {e.name: self._case(e, unit) for e in self.file.experiments}
        rows, _ = self._run(list(jobs.values()))
        return {
            e.name: [compare(self._run_series(e, jobs[e.name]), logs) for logs in self._logs[e.name]]
            for e in self.file.experiments
            if is_believed(rows[jobs[e.name].id])
        }

    def _read(
        self, reading: Measurement, sensors: Mapping[str, str], markers: Sequence[str], gravity: Sequence[float]
    ) -> list[Log]:  # fmt: skip
        folder = self.path.parent
        card = read_card(folder / reading.card if isinstance(reading.card, str) else reading.card)
        if reading.sensor is not None:
            if reading.sensor not in sensors:
                raise InputError(
                    f"{self.path}: sensor {reading.sensor!r} is not in the scene"
                    f"{no_sensor(reading.sensor, tuple(sensors), markers)}"
                )
            try:
                card = card.for_sensor(reading.sensor)
            except InputError as error:
                raise InputError(f"{self.path}: {error}") from None
        check_once([folder / log for log in reading.logs])
        return [read_log(folder / log, card, sensors=sensors, markers=markers, gravity=gravity) for log in reading.logs]

    def _check_channels(self, experiment: Experiment, kinds: Mapping[str, str]) -> None:
        """Refuse readings of sensors and markers that the runs will not have, by a run of zeros, before one of an hour.

        Raises
        ------
        InputError
            Names the nearest one.
        """
        columns = dict.fromkeys(self._columns[experiment.name], np.zeros(LEAST_SAMPLES))
        times = {"time_s": np.arange(1.0, LEAST_SAMPLES + 1.0)}
        try:
            series = make_run_series(experiment.name, columns | times, self._gravity[experiment.name], kinds=kinds)
            for logs in self._logs[experiment.name]:
                series.values(logs[0])
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from None

    def _check_noise(self) -> None:
        """Refuse the noise of a kind of channel that no log has."""
        there = {channel.kind for readings in self._logs.values() for logs in readings for channel in logs[0].channels}
        for kind, value in self.file.noise.model_dump().items():
            if value is not None and kind not in there:
                raise InputError(
                    f"{self.path}: noise.{kind} is {value:g}, but the logs have no {kind}, only {' and '.join(sorted(there))}; "
                    "remove it, or name the columns in a card."
                )

    def _case(self, experiment: Experiment, unit: np.ndarray, *, check: bool = False) -> Job:
        """Make the job of an experiment at a point."""
        fixed = self.file.parameters | experiment.parameters
        sweep = SweepFile(
            scene=self.file.scene,
            parameters={**fixed, **self.values(unit)},
            settings=self.file.settings,
            limits=self.file.limits,
        )
        cases = make_cases(sweep, self.path)
        if check:
            numbers = {p.name: p.number for p in scene_parameters(cases.scene)}
            wrong = next((name for name in self.file.free if numbers[name] is not float), None)
            if wrong is not None:
                raise InputError(f"{self.path}: free.{wrong} is no number with a fraction in {cases.scene.name}; fix it.")
        (case,), limits = cases.cases, self.file.limits
        return Job(
            case.number, case.id, case.parameters, str(cases.scene), cases.scene.read_text(encoding="utf-8"), str(self.cases),
            self.file.settings.model_dump(), series="all" if check else self._columns[experiment.name], time=limits.time,
            memory=None if limits.memory is None else 1e9 * limits.memory, retries=limits.retries,
        )  # fmt: skip

    def _run(self, jobs: Sequence[Job]) -> tuple[dict[str, Row], set[str]]:
        """Return the rows of jobs by id, old or new, and the ids that ran now."""
        unique = {job.id: job for job in jobs}
        rows = {key: row for key in unique if (row := read_row(self.cases / key)) is not None}
        # what failed before fails again, but for a case whose process was killed or whose disk was full
        pending = [
            job for key, job in unique.items()
            if not satisfies(row := rows.get(key), job) and not (row and row["status"] == "failed" and not row.get("again"))
        ]  # fmt: skip
        if pending and not self._started:
            self._stack.enter_context(self._engine)
            self._started = True
            # kernels are compiled by one process, not by all at once, and that may take longer than a case
            first, *pending = pending
            patient = None if first.time is None else first.time + COMPILE_S
            batches = [[replace(first, time=patient)], pending]
        else:
            batches = [pending]
        ran = set()
        for row in (row for batch in batches if batch for row in self._engine.run(batch)):
            rows[row["id"]] = row
            ran.add(row["id"])
            if row.get("disk"):
                raise InputError(f"stopped since the disk cannot be written: {row['message']} Free it and use --resume.")
        return rows, ran

    def _run_series(self, experiment: Experiment, job: Job) -> RunSeries:
        with (self.cases / job.id / "series.csv").open(newline="", encoding="utf-8") as stream:
            names = next(csv.reader(stream))
            table = np.loadtxt(stream, delimiter=",", ndmin=2)
        return make_run_series(
            experiment.name, dict(zip(names, table.T, strict=True)), self._gravity[experiment.name],
            self._masses[experiment.name], theta=self._theta[experiment.name],
        )  # fmt: skip

    def _blocks(self, experiment: Experiment, run: RunSeries) -> list[Block]:
        out = []
        for number, logs in enumerate(self._logs[experiment.name]):
            comparison = compare(run, logs)
            samples = self._samples.setdefault((experiment.name, number), samples_of(comparison))
            out.append(block_of(comparison, samples))
        return out


class Samples(NamedTuple):
    """Samples of a trial that count: their times on the clock of the log, (m,), s, and which of them are in no gap."""

    time: np.ndarray
    there: np.ndarray


def samples_of(comparison: Comparison) -> list[Samples]:
    """Choose the samples of each trial: those of the common grid, where the first run puts it, moved onto those of the log.

    Between these interpolation would smooth the noise, and white noise would hang together. Where the offset is to be found, none
    is so near to the ends of the run that another offset would put it outside.
    """
    time, ends = comparison.time, comparison.run_time[[0, -1]]
    inner = np.minimum(time - ends[0], ends[1] - time) >= _EDGE / comparison.rate
    return [
        Samples(_onto(time - t.offset, t.own_time), np.isfinite(t.values).all(axis=1) & (inner | math.isnan(t.explained)))
        for t in comparison.trials
    ]  # fmt: skip


def _onto(time: np.ndarray, stamps: np.ndarray) -> np.ndarray:
    """Move times, all alike, so that the middle one is at the nearest stamp: all of them are where both have one rate."""
    middle = time[len(time) // 2]
    return np.asarray(time + (stamps[np.abs(stamps - middle).argmin()] - middle))


def block_of(comparison: Comparison, samples: Sequence[Samples]) -> Block:
    """Errors of all trials at fixed samples of the logs, whatever the lag that a comparison finds.

    Interpolation smooths the noise of a log, so that on the grid of a run a lag of half a sample would fit better than the true
    one, and parameters that make it. A run has no noise.
    """
    columns, first, last = [], comparison.run_time[0], comparison.run_time[-1]
    for trial, own in zip(comparison.trials, samples, strict=True):
        at = own.time + trial.offset
        # at the ends of the run samples come and go by degrees: a jump would be a derivative
        there = own.there * np.clip(1.0 + np.minimum(at - first, last - at) * comparison.rate, 0.0, 1.0)
        weight = there * np.sqrt(len(at) / max(float((there**2).sum()), 1.0))  # an overlap that shrinks must not pay
        simulated = resample(comparison.run_time, comparison.run_values, np.clip(at, first, last))
        measured = resample(trial.own_time, trial.own_values, np.clip(own.time, trial.own_time[0], trial.own_time[-1]))
        columns.append(weight[:, None] * (simulated - measured))
    groups = [c.group for c in comparison.channels]
    measured = comparison.measured[np.isfinite(comparison.measured).all(axis=1)]
    spans = dict.fromkeys(groups, 0.0)
    for group, span in zip(groups, np.ptp(measured, axis=0), strict=True):
        spans[group] = max(spans[group], float(span))
    repeat = len(comparison.trials)
    return Block(
        np.hstack(columns),
        tuple([c.name for c in comparison.channels] * repeat),
        tuple([c.kind for c in comparison.channels] * repeat),
        np.array([spans[g] or 1.0 for g in groups] * repeat),
        np.vstack([np.kron(own, trial.tare_error) for own, trial in zip(np.eye(repeat), comparison.trials, strict=True)]),
    )
