"""The result of a run as an object: tables, readings of sensors, status, and a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from femsim.base.columns import Columns
from femsim.base.errors import InputError, Named, no_attribute
from femsim.base.notebook import Shown, card
from femsim.base.status import Status
from femsim.run.showing import film_of, plots_of, table_of
from femsim.run.verdict import Verdict, headline
from femsim.scene.sensor_kinds import POSITION, SENSOR_KINDS, WRENCH, SensorSpec, names
from femsim.step.stepper import STAGES, Stepper

if TYPE_CHECKING:
    from pandas import DataFrame

#: Most pairs of bodies of which a summary says the friction.
_MOST_PAIRS = 8
#: Most reasons of the health verdict that a summary lists.
_MOST_REASONS = 5
#: What others call parts of a run.
_OTHER_WORDS = {
    "time": "steps['time_s']", "times": "steps['time_s']", "t": "steps['time_s']", "data": "table", "results": "table",
    "forces": "sensors", "positions": "markers", "to_dataframe": "to_pandas", "df": "to_pandas", "health": "verdict",
    "converged": "status",
}  # fmt: skip
#: A first step that takes more ms than this, and so many times the median of the others, compiled kernels.
_COMPILES, _MANY_TIMES = 1000.0, 20.0


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return (
            f"<SensorSeries, {_steps(self.time)}, force up to {_largest(self.force)} N, torque up to {_largest(self.torque)} N m>"
        )

    def at(self, k: int) -> SensorSeries:
        """Return the reading after one step, given its row, without the time axis."""
        return SensorSeries(self.time[k], self.force[k], self.torque[k])

    @classmethod
    def of(cls, time: np.ndarray, columns: dict[str, np.ndarray]) -> SensorSeries:
        """Make it of its columns by name."""
        return cls(time, *np.split(np.column_stack(list(columns.values())), 2, axis=1))

    def by_column(self) -> dict[str, np.ndarray]:
        """Columns by name, (n_steps,) each."""
        return dict(zip(names(WRENCH), np.column_stack([self.force, self.torque]).T, strict=True))


@dataclass(frozen=True, repr=False)
class MarkerSeries:
    """Readings of a marker: ``time`` (n_steps,) s and ``position`` (n_steps, 3) m, world frame."""

    time: np.ndarray
    position: np.ndarray

    def __repr__(self) -> str:
        way = self.position - self.position[:1] if np.ndim(self.time) else np.zeros(3)
        return f"<MarkerSeries, {_steps(self.time)}, moves by {_largest(way)} m>"

    def at(self, k: int) -> MarkerSeries:
        """Return the reading after one step, given its row, without the time axis."""
        return MarkerSeries(self.time[k], self.position[k])

    @classmethod
    def of(cls, time: np.ndarray, columns: dict[str, np.ndarray]) -> MarkerSeries:
        """Make it of its columns by name."""
        return cls(time, np.column_stack(list(columns.values())))

    def by_column(self) -> dict[str, np.ndarray]:
        """Columns by name, (n_steps,) each."""
        return dict(zip(names(POSITION), self.position.T, strict=True))


@dataclass(frozen=True, repr=False)
class ChamberSeries:
    """Readings of a chamber: ``time`` (n_steps,) s; ``pressure`` (n_steps,) Pa in and ``volume`` (n_steps,) m^3 after a step."""

    time: np.ndarray
    pressure: np.ndarray
    volume: np.ndarray

    def __repr__(self) -> str:
        most = f"pressure up to {_largest(self.pressure)} Pa, volume up to {_largest(self.volume)} m3"
        return f"<ChamberSeries, {_steps(self.time)}, {most}>"

    def at(self, k: int) -> ChamberSeries:
        """Return the reading after one step, given its row, without the time axis."""
        return ChamberSeries(self.time[k], self.pressure[k], self.volume[k])

    @classmethod
    def of(cls, time: np.ndarray, columns: dict[str, np.ndarray]) -> ChamberSeries:
        """Make it of its columns by name."""
        return cls(time, *columns.values())

    def by_column(self) -> dict[str, np.ndarray]:
        """Columns by name, (n_steps,) each."""
        return dict(zip(names(SENSOR_KINDS["chamber"].columns), (self.pressure, self.volume), strict=True))


@dataclass(frozen=True, repr=False)
class TendonSeries:
    """Readings of a tendon or spring: ``time`` (n_steps,) s; ``force`` (n_steps,) N in, ``length`` (n_steps,) m after a step."""

    time: np.ndarray
    force: np.ndarray
    length: np.ndarray

    def __repr__(self) -> str:
        return (
            f"<TendonSeries, {_steps(self.time)}, force up to {_largest(self.force)} N, length up to {_largest(self.length)} m>"
        )

    def at(self, k: int) -> TendonSeries:
        """Return the reading after one step, given its row, without the time axis."""
        return TendonSeries(self.time[k], self.force[k], self.length[k])

    @classmethod
    def of(cls, time: np.ndarray, columns: dict[str, np.ndarray]) -> TendonSeries:
        """Make it of its columns by name."""
        return cls(time, *columns.values())

    def by_column(self) -> dict[str, np.ndarray]:
        """Columns by name, (n_steps,) each."""
        return dict(zip(names(SENSOR_KINDS["tendon"].columns), (self.force, self.length), strict=True))


@dataclass(frozen=True, repr=False)
class GaugeSeries:
    """Readings of a sensor of kind revolute, prismatic, torsion, gap, area, slip, pair or energy.

    Attributes
    ----------
    time : ndarray, (n_steps,), s
        End of each step.
    values : dict of str to ndarray, (n_steps,)
        By what the column in sensors.csv says after the name of the sensor: ``angle_rad`` to ``friction_Nm`` of a joint that
        turns, ``position_m`` to ``friction_N`` of one that slides; ``torque_Nm`` and ``angle_rad`` of a torsion spring;
        ``gap_m``; ``area_m2``; ``slip_m`` and ``friction_J``; ``contacts`` to ``slip_mps`` of a pair; ``kinetic_J``,
        ``elastic_J`` and ``potential_J``.
    """

    time: np.ndarray
    values: dict[str, np.ndarray]

    def __repr__(self) -> str:
        return f"<GaugeSeries, {_steps(self.time)}, {', '.join(self.values)}>"

    def at(self, k: int) -> GaugeSeries:
        """Return the reading after one step, given its row, without the time axis."""
        return GaugeSeries(self.time[k], {name: values[k] for name, values in self.values.items()})

    @classmethod
    def of(cls, time: np.ndarray, columns: dict[str, np.ndarray]) -> GaugeSeries:
        """Make it of its columns by name."""
        return cls(time, columns)

    def by_column(self) -> dict[str, np.ndarray]:
        """Columns by name, (n_steps,) each."""
        return self.values


def _steps(time: np.ndarray) -> str:
    return f"{len(time)} steps" if np.ndim(time) else f"t = {float(time):g} s"


def _largest(values: np.ndarray) -> str:
    """Largest length of vectors, or largest number."""
    values = np.asarray(values)
    size = np.linalg.norm(values, axis=-1) if values.ndim and values.shape[-1] == 3 else np.abs(values)
    return f"{float(np.max(size, initial=0.0)):.4g}"


#: The class that holds the readings of each group of a run, in the order of :attr:`Run.table`.
SERIES: dict[str, Any] = {
    "sensors": SensorSeries,
    "markers": MarkerSeries,
    "chambers": ChamberSeries,
    "tendons": TendonSeries,
    "gauges": GaugeSeries,
}


@dataclass(frozen=True, repr=False)
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
        All other sensors by name.
    end : Stepper, optional
        The simulation at its end; None of a copy, and of a run that was read from its folder. :attr:`stepper` is the same, or
        says so.
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
    end: Stepper | None = field(repr=False)
    info: dict[str, Any] = field(repr=False)

    def __post_init__(self) -> None:
        kinds = {"steps": "column of steps.csv"} | {group: f"{group.removesuffix('s')} of this run" for group in SERIES}
        readings = {name: f"run.{group}[{name!r}]" for group in SERIES for name in getattr(self, group)}
        for group, what in kinds.items():
            object.__setattr__(self, group, Named(what, getattr(self, group), readings))

    if not TYPE_CHECKING:  # which knows the names better

        def __getattr__(self, name: str) -> NoReturn:
            """Name the nearest of what a run has; asked for what is not there."""
            known = {*type(self).__annotations__, *dir(type(self))}
            raise no_attribute("a run", name, [word for word in known if not word.startswith("_")], _OTHER_WORDS)

    def __getstate__(self) -> dict[str, Any]:
        """Give copies, and other processes, all but the simulation at its end, which cannot be copied."""
        return {**vars(self), "end": None}

    def __fspath__(self) -> str:
        """Folder of the run, so that a run may be given where a run folder is asked for; InputError if it has none."""
        if self.folder is None:
            raise InputError("the run has no folder, from which files are read; give fs.simulate(..., out=FOLDER).")
        return str(self.folder)

    def __repr__(self) -> str:
        where = f", {self.folder}" if self.folder else ""
        return f"<Run {self.name!r}: {self.status}, {self._length()}, health {self.verdict}{where}>"

    def _repr_html_(self) -> str:
        cells = [(line[:19].strip(), line[19:].strip()) for line in self.summary().splitlines() if line.strip()]
        sensors = ", ".join(f"{name} ({group})" for group in SERIES for name in getattr(self, group))
        where = [f"folder {self.folder}; run.show() plays it"] if self.folder else ["no folder: it was run without out="]
        return card(repr(self).strip("<>"), (), cells, [f"readings: {sensors or 'none'}; run.plot() draws them", *where])

    @property
    def stepper(self) -> Stepper:
        """The simulation at its end: state, system, last contacts.

        Raises
        ------
        InputError
            The run was read from its folder, which has the tables and frames only, or is a copy.
        """
        if self.end is None:
            source = f"was read from {self.folder}, which" if self.folder else "is a copy, which"
            raise InputError(
                f"the run {source} has tables and frames but not the simulation at its end; simulate "
                "the scene again, or go on with an unfinished run by fs.resume."
            )
        return self.end

    @property
    def name(self) -> str:
        """Name of the scene."""
        return str(self.info.get("scene", {}).get("name", "run"))

    def _length(self) -> str:
        times = self.steps["time_s"]
        return f"{len(times)} steps to {times[-1]:g} s" if len(times) else "no step"

    def show(self, **options: Any) -> Shown:
        """Draw the run as a film with play, pause and speed, which a notebook shows.

        Parameters
        ----------
        **options
            Of :func:`viz.render.render_run`: speed, fps, size, camera, field, clip ...; with out= the files stay there.

        Returns
        -------
        Shown

        Raises
        ------
        InputError, VizError
            The run has no folder; or as `render_run`.
        """
        return film_of(self.folder, **options)

    def plot(self, out: Path | None = None, **options: Any) -> Shown:
        """Plot readings, residuals and energies, which a notebook shows; needs no run folder.

        Parameters
        ----------
        out : Path, optional
            Folder in which the figures stay.
        **options
            Of :func:`viz.plots.plot_runs`: sensors, axes, look.

        Returns
        -------
        Shown

        Raises
        ------
        VizError
            As `plot_runs`.
        """
        return plots_of(self.name, self.steps, {"time_s": self.steps["time_s"], **self._readings()}, out, **options)

    def to_pandas(self) -> DataFrame:
        """Return the columns of :attr:`table` as a table of pandas, by time (s); pandas comes with the extra "sweep".

        Raises
        ------
        InputError
            pandas is not installed.
        """
        return table_of(self.table)

    def _readings(self) -> dict[str, np.ndarray]:
        """Columns of sensors.csv without the time."""
        return {
            f"{name}_{column}": values
            for group in SERIES
            for name, series in getattr(self, group).items()
            for column, values in series.by_column().items()
        }

    @property
    def verdict(self) -> Verdict:
        """What the run is worth as physics: "good", "doubtful" or "wrong"."""
        found: Verdict = self.info.get("health", {}).get("verdict", "good")
        return found

    @property
    def notes(self) -> list[str]:
        """What seems odd about the scene, and what of its files is not read, a sentence each."""
        return list(self.info.get("notes", []))

    @property
    def reasons(self) -> list[str]:
        """Why, one sentence each; empty when good. ``info["health"]["reasons"]`` has their numbers, too."""
        return [reason["sentence"] for reason in self.info.get("health", {}).get("reasons", [])]

    @property
    def table(self) -> Columns:
        """Columns of sensors.csv and steps.csv together, (n_steps,) each, by name; SI units, world frame.

        ``run.table["time_s"]``, or ``run.table()`` for a dict, as of a case of :func:`femsim.run_many`.
        """
        return Columns("column of this run", dict(self.steps) | self._readings())

    def summary(self) -> str:
        """Health of the run in a few lines: verdict, steps, iterations, time by stage, penetration, residuals, balance."""
        s = self.steps
        n = len(s["step"])
        health = self.info.get("health", {})
        reasons = health.get("reasons", [])
        lines = [f"health             {headline(health)}"] if health else []
        lines += [f"{'':19}{reason['sentence']}" for reason in reasons[1:_MOST_REASONS]]
        lines += [f"note               {note}" for note in self.notes]
        lines.append(f"status             {self.status}: {self.message}")
        if n == 0:
            return "\n".join(lines)
        bad = int(n - s["converged"].sum())
        lines.append(f"steps              {n} ({s['time_s'][-1]:.3f} s simulated), {bad} not converged")
        if self.info.get("settings", {}).get("time_tolerance_m") is not None:
            lines.append(f"parts of a step    {_parts(s)}")
        elif s["substeps"].max() > 1:
            lines.append(f"halved steps       {_halved(s)}")
        damped = int((s["theta"] == 1.0).sum())
        if damped and self.info.get("settings", {}).get("integrator") == "energy-momentum":
            lines.append(f"backward Euler     {damped} steps that energy-momentum could not solve{_at(s, 'theta', 'first')}")
        lines.append(f"iterations         mean {s['iterations'].mean():.1f}, largest {int(s['iterations'].max())}")
        lines.append(f"answered by        {_answered(self.info.get('solver', {}).get('answered', {}))}")
        lines += [f"energy             {text}" for text in _energies(health.get("energy", {}), float(s["theta"].max()))]
        lines += [f"friction           {text}" for text in _frictions(self.info.get("friction", []))]
        stages = ", ".join(f"{stage} {np.median(s[f'ms_{stage}']):.2f}" for stage in STAGES)
        lines.append(f"ms a step          {np.median(s['ms_step']):.2f} median ({stages}), {_mean(s['ms_step'])}")
        lines.append(f"max penetration    {1e3 * s['max_penetration_m'].max():.3g} mm{_at(s, 'max_penetration_m')}")
        lines.append(f"dynamics residual  {s['dynamics_residual'].max():.2e}{_at(s, 'dynamics_residual')}")
        lines.append(f"contact residual   {s['contact_residual'].max():.2e}{_at(s, 'contact_residual')}")
        solves = f"{s['solves'].mean():.2f} solves a step, largest {int(s['solves'].max())}"
        lines.append(f"nonlinear residual {s['nonlinear_residual'].max():.2e}{_at(s, 'nonlinear_residual')}, {solves}")
        lines.append(f"wrench balance     {s['wrench_balance'].max():.2e}{_at(s, 'wrench_balance')}")
        if s["inverted_elements"].max() > 0:
            lines.append(f"inverted elements  {int(s['inverted_elements'].max())}{_at(s, 'inverted_elements')}")
        return "\n".join(lines)


def end_with(run: Run) -> None:
    """Pass on an interrupt that ended one of several runs, which ends all of them.

    Raises
    ------
    KeyboardInterrupt
        The run was interrupted.
    """
    if run.status == "interrupted":
        raise KeyboardInterrupt


def _answered(steps: Mapping[str, int]) -> str:
    """Solvers and their numbers of steps, most first."""
    return ", ".join(f"{name} in {count} steps" for name, count in sorted(steps.items(), key=lambda item: -item[1])) or "unknown"


def _energies(energy: Mapping[str, float | None], theta: float) -> list[str]:
    """One line on where the energy of a run went; none where nothing passed, or where it is not finite."""
    passed = energy.get("passed_J")
    took = {name: energy.get(f"{name}_loss_J") for name in ("friction", "viscous", "other")}
    if not passed or None in took.values():
        return []
    parts = {name: f"{100.0 * (loss or 0.0) / passed:z.1f} %" for name, loss in took.items()}
    joints = f", {100.0 * joint / passed:z.1f} % to joints" if (joint := energy.get("joint_loss_J")) else ""
    prony = f", {parts['viscous']} to Prony terms" if took["viscous"] else ""
    slows = " (theta = 1 damps motion, and drives work against it)" if theta == 1.0 else ""
    rest = f"{parts['other']} to damping, impacts and the time step{slows}"
    return [f"{passed:.3g} J at most; lost {parts['friction']} to friction{joints}{prony}, {rest}"]


def _frictions(pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line on the pairs of bodies whose friction was stated; none where only surfaces have it."""
    said = [
        f"{' - '.join(pair['bodies'])} {', '.join(f'{mu:g}' for mu in pair.get('coefficients', [pair['coefficient']]))}"
        for pair in pairs
        if "bodies" in pair
    ]
    more = f"; {len(said) - _MOST_PAIRS} more in run.json" if len(said) > _MOST_PAIRS else ""
    return [f"{'; '.join(said[:_MOST_PAIRS])}{more}"] if said else []


def _halved(steps: dict[str, np.ndarray]) -> str:
    halved = steps["substeps"][steps["substeps"] > 1]
    return f"{len(halved)}, into {int(halved.min())} to {int(halved.max())} sub-steps{_at(steps, 'substeps', 'most')}"


def _parts(steps: dict[str, np.ndarray]) -> str:
    most, error = _at(steps, "substeps", "most"), 1e3 * steps["time_error_m"].max()
    return f"mean {steps['substeps'].mean():.1f}, largest {int(steps['substeps'].max())}{most}, time error up to {error:.2g} mm"


def _mean(ms: np.ndarray) -> str:
    """Say the mean time of the (n,) steps, ms, as the progress bar does: without a first one that compiles kernels."""
    first, others = ms[0], ms[1:]
    if len(others) and first > max(_COMPILES, _MANY_TIMES * np.median(others)):
        return f"{others.mean():.2f} mean after the first step of {1e-3 * first:.1f} s, which compiles kernels once for all"
    return f"{ms.mean():.2f} mean"


def _at(steps: dict[str, np.ndarray], name: str, what: str = "worst") -> str:
    worst = int(np.argmax(steps[name]))
    return f" ({what}, step {int(steps['step'][worst])} at {steps['time_s'][worst]:.3f} s)"


def series_of(sensors: Sequence[SensorSpec], table: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Sort the columns of sensors.csv into the readings of all sensors, by group and name."""
    groups: dict[str, dict[str, Any]] = {group: {} for group in SERIES}
    time = table["time_s"]

    def add(name: str, kind: str) -> None:
        declared = SENSOR_KINDS[kind]
        own = {column.name: table[f"{name}_{column.name}"] for column in declared.columns}
        groups[declared.series][name] = SERIES[declared.series].of(time, own)

    for sensor in sensors:
        add(sensor.name, sensor.kind)
    for sensor in sensors:
        if sensor.reading is not None:
            add(f"{sensor.name}_measured", sensor.kind)
    return groups
