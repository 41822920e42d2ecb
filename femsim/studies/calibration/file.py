"""CALIB.toml: what it may hold, and the sentences about wrong entries."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from femsim.base.errors import InputError
from femsim.base.toml_files import AsPair, Finite, Positive, checked, read_toml
from femsim.studies.sweeps.file import Limits, Settings, Value

#: Trials of a reading from which a bootstrap can draw: fewer are drawn in too few ways.
LEAST_TRIALS = 5


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Free(_Section):
    """A free parameter.

    Attributes
    ----------
    between : (float, float)
        Bounds, in the unit of the scene.
    scale : {"linear", "log"}
        Scale on which it is searched, and on which its interval is symmetric.
    start : float, optional
        Start value; default the middle of the bounds.
    prior : (float, float), optional
        Mean, which lies between the bounds, and standard deviation of prior knowledge; on a logarithmic scale a normal
        distribution of the logarithm with the standard deviation deviation/mean.
    reference : float, optional
        A value from another source; its errors are reported beside those of the fit.
    """

    between: Annotated[tuple[Finite, Finite], AsPair]
    scale: Literal["linear", "log"] = "linear"
    start: Finite | None = None
    prior: Annotated[tuple[Finite, Positive], AsPair] | None = None
    reference: Finite | None = None

    @model_validator(mode="after")
    def _checked(self) -> Free:
        low, high = self.between
        if low >= high:
            raise ValueError(f"is between {[low, high]}; the first must be below the second")
        if self.scale == "log" and low <= 0:
            raise ValueError(f"is between {[low, high]} on a logarithmic scale; both must be positive")
        for name in ("start", "reference"):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ValueError(f"has {name} {value:g}, which is not between its bounds {low:g} and {high:g}")
        if self.prior is not None and not low <= self.prior[0] <= high:
            raise ValueError(
                f"has a prior of mean {self.prior[0]:g}, which is not between its bounds {low:g} and {high:g}; correct it, or "
                "widen the bounds"
            )
        return self

    @property
    def first(self) -> float:
        """Coordinate of the start value."""
        return 0.5 if self.start is None else self.unit(self.start)

    def unit(self, value: float) -> float:
        """Coordinate of a value: 0 at the lower bound, 1 at the upper one."""
        low, high = self.between
        return math.log(value / low) / math.log(high / low) if self.scale == "log" else (value - low) / (high - low)

    def value(self, unit: float) -> float:
        """Value at a coordinate, the inverse of :meth:`unit`; inf where it is too large for a number."""
        low, high = self.between
        try:
            return float(low * (high / low) ** unit if self.scale == "log" else low + unit * (high - low))
        except OverflowError:  # the interval of a parameter without effect
            return math.inf

    def prior_in_units(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the prior as coordinates; None without one."""
        if self.prior is None:
            return None
        (low, high), (mean, deviation) = self.between, self.prior
        width = math.log(high / low) if self.scale == "log" else high - low
        return self.unit(mean), (deviation / mean if self.scale == "log" else deviation) / width


class Measurement(_Section):
    """The logs of one instrument in an experiment: repeated trials, with one card.

    Attributes
    ----------
    logs : list of str
        Files, relative to the calibration file.
    card : str or dict
        Card file, relative to the calibration file, or what would stand in it.
    sensor : str, optional
        Sensor of the scene, instead of that of the card.
    """

    logs: Annotated[list[str], Field(min_length=1)]
    card: str | dict[str, Any] = {}
    sensor: str | None = None


class Experiment(_Section):
    """One experiment: its parameters of the scene, its logs, and whether it is held out of the fit."""

    name: str
    parameters: dict[str, Value] = {}
    readings: Annotated[list[Measurement], Field(min_length=1)]
    held_out: bool = False

    @field_validator("name")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not value.strip() or any(c in value for c in '/\\:*?"<>|') or value.startswith("."):
            raise ValueError(f"is {value!r}; it names a folder: take letters, digits, blanks, - and _")
        return value


class Noise(_Section):
    """Standard deviation of a sample by kind of channel; a missing one is estimated from the residuals of the fit.

    Attributes
    ----------
    force, torque, position : float, N, N m, m, optional
        Of every channel of that kind, on the grid of the comparison. Lengths that are no positions count as these.
    angle, rate, speed, pressure, area, volume, energy, number : float, rad, rad/s, m/s, Pa, m^2, m^3, J, 1, optional
        Of single columns.
    """

    force: Positive | None = None
    torque: Positive | None = None
    position: Positive | None = None
    angle: Positive | None = None
    rate: Positive | None = None
    speed: Positive | None = None
    pressure: Positive | None = None
    area: Positive | None = None
    volume: Positive | None = None
    energy: Positive | None = None
    number: Positive | None = None


class Search(_Section):
    """The global search: method, number of evaluations, how many at once, seed of the draw.

    "tpe" is Optuna's; "differential_evolution" SciPy's; "sobol" is a design that does not depend on the logs; "none" leaves the
    search out.
    """

    method: Literal["tpe", "differential_evolution", "sobol", "none"] = "tpe"
    evaluations: Annotated[int, Field(ge=1, le=100_000)] = 40
    batch: Annotated[int, Field(ge=1, le=1000)] = 8
    seed: Annotated[int, Field(ge=0)] = 0


class Refine(_Section):
    """The local refinement.

    Attributes
    ----------
    evaluations : int
        Largest number of residual evaluations, not counting those for derivatives.
    step : float
        Difference step for derivatives, as a part of the range between the bounds.
    tolerance : float
        Relative change of the cost, and of the parameters, at which it ends.
    """

    evaluations: Annotated[int, Field(ge=1, le=10_000)] = 15
    step: Annotated[float, Field(gt=0, le=0.1)] = 0.005
    tolerance: Annotated[float, Field(gt=0, le=0.1)] = 1e-4


class Intervals(_Section):
    """Intervals beside those of the Jacobian.

    Attributes
    ----------
    methods : list of {"profile", "bootstrap"}
        "profile": at values on both sides of the best one, runs fit the other parameters again; "bootstrap": residuals are drawn
        again and fitted with the model linearised at the best fit, without runs.
    evaluations : int
        Of a profile: largest number of evaluations on one side of a parameter.
    resample : {"blocks", "trials"}
        What a bootstrap draws: blocks of samples that follow each other, or whole trials.
    draws, seed : int
        Of a bootstrap.
    """

    methods: list[Literal["profile", "bootstrap"]] = []
    evaluations: Annotated[int, Field(ge=1, le=10_000)] = 25
    resample: Literal["blocks", "trials"] = "blocks"
    draws: Annotated[int, Field(ge=100, le=100_000)] = 2000
    seed: Annotated[int, Field(ge=0)] = 0


class PronyReadings(_Section):
    """What fitted Prony terms mean.

    Attributes
    ----------
    terms : list of (g, tau)
        Each a parameter of the scene, by name, or a number (1 and s): the terms of the material that the scene makes.
    loss_factor : list of float, Hz
        Frequencies at which the loss factor is told.
    creep : list of (float, float), s
        Times after loading between which the growth of the strain is told.
    poisson_ratio : float
        Of the material in the long term, for tension and bending.
    """

    terms: Annotated[list[Annotated[tuple[str | Finite, str | Finite], AsPair]], Field(min_length=1)]
    loss_factor: list[Positive] = []
    creep: list[Annotated[tuple[Annotated[float, Field(ge=0)], Positive], AsPair]] = []
    poisson_ratio: Annotated[float, Field(gt=-1, le=0.5)] = 0.5


class CalibrationFile(_Section):
    """A calibration as it stands in its file.

    Attributes
    ----------
    scene : str
        Path of a scene, relative to the file, or the name of a scene that comes with femsim.
    name : str
        Default name of the folder of results; "" takes that of the file.
    free : dict of str to Free
        Free parameters.
    parameters : dict
        Values for all experiments.
    experiments : list of Experiment
        At least one that is not held out.
    prony : PronyReadings, optional
        What fitted Prony terms mean.
    noise, search, refine, intervals : Noise, Search, Refine, Intervals
        The sections of these names.
    settings, limits
        As in a sweep, see :mod:`femsim.studies.sweeps.file`.
    confidence : float
        Level of the intervals.
    """

    scene: str
    name: str = ""
    free: Annotated[dict[str, Free], Field(min_length=1)]
    parameters: dict[str, Value] = {}
    experiments: Annotated[list[Experiment], Field(min_length=1)]
    prony: PronyReadings | None = None
    noise: Noise = Noise()
    search: Search = Search()
    refine: Refine = Refine()
    intervals: Intervals = Intervals()
    settings: Settings = Settings()
    limits: Limits = Limits()
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95

    @model_validator(mode="after")
    def _checked(self) -> CalibrationFile:
        names = [e.name for e in self.experiments]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise ValueError(f"has two experiments named {twice!r}; give each a name of its own")
        if all(e.held_out for e in self.experiments):
            raise ValueError("holds all experiments out; at least one must be fitted")
        for e in self.experiments:
            both = sorted(self.free.keys() & {*e.parameters, *self.parameters})
            if both:
                raise ValueError(f"names {both[0]} in [free] and as a fixed parameter; leave it in one")
        if "bootstrap" in self.intervals.methods and self.intervals.resample == "trials":
            for e in self.experiments:
                few = min(len(r.logs) for r in e.readings)
                if few < LEAST_TRIALS and not e.held_out:
                    raise ValueError(
                        f"draws trials for the bootstrap, but a reading of {e.name!r} has {few}; give at least {LEAST_TRIALS} "
                        'logs, or take intervals.resample "blocks"'
                    )
        return self


def read_calibration(path: str | Path) -> CalibrationFile:
    """Read a calibration file and check all that can be checked without its scene and logs.

    Parameters
    ----------
    path : path
        TOML file.

    Raises
    ------
    InputError
        The file is missing or not TOML; every wrong entry, one sentence each.
    """
    content = read_toml(Path(path), "calibration file")
    fixed = content.get("parameters")
    varied = isinstance(fixed, dict) and any(isinstance(value, dict) for value in fixed.values())
    if "experiments" not in content and (varied or "metrics" in content):
        raise InputError(f"{path} is a sweep file; femsim sweep runs it. A calibration file has [free] and [[experiments]].")
    return checked(CalibrationFile, content, path)
