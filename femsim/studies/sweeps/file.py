"""SWEEP.toml: what it may hold, and the sentences about wrong entries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from femsim.base.errors import InputError
from femsim.base.toml_files import MOST_SENTENCES, Pair, Positive, error_sentences, read_toml
from femsim.studies.sweeps.metrics import Condition, parse_condition, parse_metric

Scalar = bool | int | float | str
Value = Scalar | list[Scalar]
Method = Literal["random", "latin_hypercube", "sobol", "saltelli"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Axis(_Section):
    """How one parameter varies: exactly one of values, range, between and normal.

    Attributes
    ----------
    values : list
        These, in this order; crossed with all other axes.
    range : (float, float)
        First and last of ``count`` values, evenly spaced; crossed with all other axes.
    between : (float, float)
        Bounds of a sampled parameter.
    normal : (float, float)
        Mean and standard deviation of a sampled parameter.
    count : int
        Number of values of a range.
    scale : {"linear", "log"}
        Of range and between.
    """

    values: list[Value] | None = None
    range: Pair | None = None
    between: Pair | None = None
    normal: Pair | None = None
    count: Annotated[int, Field(ge=1)] | None = None
    scale: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _checked(self) -> Axis:
        kinds = [name for name in ("values", "range", "between", "normal") if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(f"has {' and '.join(kinds) or 'none'} of values, range, between and normal; give exactly one")
        if self.values is not None and not self.values:
            raise ValueError("has an empty list of values; give at least one")
        if (self.count is not None) != (self.range is not None):
            raise ValueError("needs count together with range, and only there")
        if self.scale == "log" and (self.values is not None or self.normal is not None):
            raise ValueError("has a scale, which is for range and between only")
        pair = self.range or self.between or self.normal
        if pair is not None:
            if not all(math.isfinite(v) for v in pair):
                raise ValueError(f"is {list(pair)}; give two finite numbers")
            if self.between and pair[0] >= pair[1]:
                raise ValueError(f"is between {list(pair)}; the first must be below the second")
            if self.normal and pair[1] <= 0:
                raise ValueError(f"has the standard deviation {pair[1]:g}, the second of normal; it must be positive")
            if self.scale == "log" and min(pair) <= 0:
                raise ValueError(f"is {list(pair)} on a logarithmic scale; both must be positive")
        return self

    @property
    def sampled(self) -> bool:
        """Whether values are drawn, not listed."""
        return self.between is not None or self.normal is not None


class Sampling(_Section):
    """How sampled parameters are drawn: the method, the number of samples, and the seed.

    "saltelli" is the design for Sobol indices: from ``count`` points of a Sobol sequence in twice the dimensions
    D it makes count (D + 2) samples.
    """

    method: Method = "latin_hypercube"
    count: Annotated[int, Field(ge=1)]
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _checked(self) -> Sampling:
        if self.method in ("sobol", "saltelli") and self.count & (self.count - 1):
            below = 1 << (self.count.bit_length() - 1)
            raise ValueError(
                f"has count {self.count}; a Sobol sequence is balanced for powers of two only: {below} or {2 * below}"
            )
        return self


class Settings(_Section):
    """Options of ``femsim run``, the same for every case; None takes the default there."""

    solver: str = "auto"
    tolerance: Positive | None = None
    max_iterations: Annotated[int, Field(ge=1)] | None = None
    duration: Positive | None = None
    dt: Positive | Literal["auto"] | None = None
    max_halvings: Annotated[int, Field(ge=0, le=20)] = 6
    solver_options: dict[str, Scalar] = {}


class Outputs(_Section):
    """What a case stores beside its metrics.

    Attributes
    ----------
    series : list of str, or "all"
        Columns of steps.csv and sensors.csv that are kept in series.csv.
    frames : list of int, or "all"
        Cases, numbered from 1, that keep a whole run folder with frames.
    fps : float, 1/s
        Frames per simulated second.
    """

    series: list[str] | Literal["all"] = []
    frames: list[Annotated[int, Field(ge=1)]] | Literal["all"] = []
    fps: Positive = 100.0


class Limits(_Section):
    """Limits of a case.

    Attributes
    ----------
    time : float, s, optional
        Wall time after which a case is killed; default none.
    memory : float, GB, optional
        Memory of the process of a case; by default the limit of the Dask worker.
    retries : int
        How often a case is tried again after its process died.
    """

    time: Positive | None = None
    memory: Positive | None = None
    retries: Annotated[int, Field(ge=0, le=10)] = 1


class SweepFile(_Section):
    """A sweep as it stands in its file.

    Attributes
    ----------
    scene : str
        Path of a scene, relative to the file, or the name of a scene that comes with femsim.
    name : str
        Default name of the folder of results; "" takes that of the file.
    parameters : dict
        By name of the parameter: a value for all cases, or an :class:`Axis`.
    sampling : Sampling, optional
        Needed when an axis is sampled.
    cases : list of dict
        Lists of parameters that vary together; crossed with all axes.
    seeds : list of int, or int
        Values of the parameter ``seed`` of the scene, crossed with all; a number N means 0 to N - 1.
    settings, outputs, limits
        See there.
    metrics : dict of str to str
        By name, a reduction of a column; see :mod:`femsim.studies.sweeps.metrics`.
    stop : list of str
        Conditions on columns; the first one that holds after a step stops the case.
    """

    scene: str
    name: str = ""
    parameters: dict[str, Axis | Value] = {}
    sampling: Sampling | None = None
    cases: list[dict[str, Value]] = []
    seeds: list[int] | Annotated[int, Field(ge=1)] = []
    settings: Settings = Settings()
    outputs: Outputs = Outputs()
    limits: Limits = Limits()
    metrics: dict[str, str] = {}
    stop: list[str] = []

    @field_validator("metrics", mode="after")
    @classmethod
    def _metrics(cls, value: dict[str, str]) -> dict[str, str]:
        for text in value.values():
            parse_metric(text)
        return value

    @field_validator("stop", mode="after")
    @classmethod
    def _stop(cls, value: list[str]) -> list[str]:
        for text in value:
            parse_condition(text)
        return value

    @model_validator(mode="after")
    def _checked(self) -> SweepFile:
        sampled = [name for name, axis in self.parameters.items() if isinstance(axis, Axis) and axis.sampled]
        if sampled and self.sampling is None:
            raise ValueError(f"samples {', '.join(sampled)}, but has no [sampling]; say there how many, for instance count = 64")
        if self.sampling is not None and not sampled:
            raise ValueError("has [sampling], but no parameter with between or normal; remove one or add the other")
        for row in self.cases:
            both = sorted(row.keys() & self.parameters.keys())
            if both:
                raise ValueError(f"names {both[0]} in [parameters] and in [[cases]]; leave it in one")
            if row.keys() != self.cases[0].keys():
                raise ValueError("has [[cases]] with different parameters; give each the same ones")
        return self

    def parsed_stop(self) -> list[Condition]:
        """Conditions, read."""
        return [parse_condition(text) for text in self.stop]


def read_sweep(path: str | Path) -> SweepFile:
    """Read a sweep file and check all that can be checked without its scene.

    Parameters
    ----------
    path : path
        TOML file.

    Raises
    ------
    InputError
        The file is missing or not TOML; every wrong entry, one sentence each.
    """
    path = Path(path)
    content = read_toml(path, "sweep file")
    if "experiments" in content:
        raise InputError(f"{path} is a calibration file; femsim calibrate runs it. A sweep file has [parameters].")
    try:
        return SweepFile.model_validate(content)
    except ValidationError as error:
        raise InputError("\n".join(_sentences(error.errors(), path))) from None


def _sentences(entries: Iterable[Any], path: Path) -> list[str]:
    """Turn errors into sentences; of a parameter, which is a table or a value, only those about the form that was given.

    pydantic tries both forms, reports each one's errors, and puts the name of the form into the place.
    """
    entries = list(itertools.islice(entries, MOST_SENTENCES))
    parameters = [entry for entry in entries if len(entry["loc"]) > 2 and entry["loc"][0] == "parameters"]
    of_tables = [e for e in parameters if Axis.__name__ in str(e["loc"][2]) and e["type"] != "model_type"]
    given_as_table = {entry["loc"][1] for entry in of_tables}
    out = error_sentences(SweepFile, [entry for entry in entries if entry not in parameters], path)
    for entry in parameters:
        if entry in of_tables:
            place = tuple(part for part in entry["loc"] if Axis.__name__ not in str(part))
            out += error_sentences(SweepFile, [{**entry, "loc": place}], path)
        elif entry["loc"][1] not in given_as_table:
            name = entry["loc"][1]
            out.append(f"{path}: parameters.{name} is neither a value nor a table with one of values, range, between and normal.")
    return list(dict.fromkeys(out))
