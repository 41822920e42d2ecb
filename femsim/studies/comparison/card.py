"""The card of a log: a small TOML file that says what the log itself does not.

Which column is what, units, frame, point of the torques, sign, tare, filter. What the card leaves out is recognised by its name,
or has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from femsim.base.errors import InputError, did_you_mean
from femsim.base.toml_files import Finite, Positive, checked, read_toml
from femsim.base.units import TIME_UNITS, UNITS, plain_unit
from femsim.base.wrenches import rotation_matrix

Triple = tuple[Finite, Finite, Finite]
#: What the card of a material has, and that of a log has not.
_MATERIAL_KEYS = {"young_modulus", "poisson_ratio", "density", "law", "prony", "rayleigh_alpha", "rayleigh_beta"}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TimeCard(_Section):
    """Table ``[time]``: the clock of the log. Its times count from the first sample of the file."""

    column: str | None = Field(default=None, description="column of the time stamps; default: recognised by its name")
    unit: str | None = Field(default=None, description="s, ms, us, ns, min or h; default: from the header, else s")
    rate: Positive | None = Field(default=None, description="samples a second, where no column holds the time")
    offset: Finite | Literal["auto"] = Field(
        default="auto", description="time of the run at the first sample of the log, s, or 'auto'"
    )
    max_lag: Positive | None = Field(default=None, description="largest |offset| that 'auto' looks at, s")
    repair: bool = Field(
        default=False, description="sort rows by time and keep the first of equal stamps, instead of refusing the log"
    )

    @field_validator("unit")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        if value and value not in TIME_UNITS:
            raise ValueError(f"{value!r} is unknown{did_you_mean(value, TIME_UNITS)}")
        return value

    @model_validator(mode="after")
    def _one_clock(self) -> TimeCard:
        if self.column is not None and self.rate is not None:
            raise ValueError(f"has column {self.column!r} and rate {self.rate:g}; keep one: with a rate, no stamps are read")
        return self


class UnitsCard(_Section):
    """Table ``[units]``: a name, or the SI value of one unit of the log (1e-6 for counts of a micronewton)."""

    force: str | Positive | None = Field(default=None, description="N, mN, kN, kg or kgf, g or gf, lbf; default: header, else N")
    torque: str | Positive | None = Field(
        None, description="N m, N mm, mN m, N cm, kgf cm, lbf in, lbf ft; default: header, else N m"
    )
    length: str | Positive | None = Field(default=None, description="m, cm, mm, um, in; default: from the file, else m")
    angle: str | Positive | None = Field(default=None, description="rad, deg; default: header, else rad")
    rate: str | Positive | None = Field(default=None, description="rad/s, deg/s, rpm; default: header, else rad/s")
    speed: str | Positive | None = Field(default=None, description="m/s, cm/s, mm/s; default: header, else m/s")
    pressure: str | Positive | None = Field(
        default=None, description="Pa, hPa, kPa, MPa, mbar, bar, psi; default: header, else Pa"
    )
    area: str | Positive | None = Field(default=None, description="m2, cm2, mm2; default: header, else m2")
    volume: str | Positive | None = Field(default=None, description="m3, l, ml, cm3, mm3; default: header, else m3")
    energy: str | Positive | None = Field(default=None, description="J, mJ, kJ; default: header, else J")
    number: str | Positive | None = Field(default=None, description="1, %; default: header, else 1")

    @field_validator(*UNITS)
    @classmethod
    def _known(cls, value: str | float | None, info: ValidationInfo) -> str | float | None:
        known = UNITS[str(info.field_name)]
        if isinstance(value, str) and plain_unit(value) not in known:
            raise ValueError(f"{value!r} is unknown{did_you_mean(value, known)}")
        return value


class FrameCard(_Section):
    """Table ``[frame]``: from the axes and the point of the log to those of the run."""

    rotation: list[Any] | None = Field(
        None, description="rotation that takes vectors of the log to the world: vector (3) or matrix (3 x 3, rows of the world)"
    )
    angle: Literal["rad", "deg"] = Field(default="rad", description="unit of the rotation vector")
    sign: Literal[1, -1] = Field(
        default=1, description="-1 when the log's forces are those of the sensed part on its surroundings"
    )
    point: Triple = Field(
        default=(0.0, 0.0, 0.0), description="point of the log's torques, from the point of the run's sensor, world, m"
    )
    translation: Triple = Field(default=(0.0, 0.0, 0.0), description="added to positions after the rotation, m")

    @field_validator("rotation")
    @classmethod
    def _is_rotation(cls, value: list[Any] | None) -> list[Any] | None:
        if value is not None:
            rotation_matrix("", value)
        return value

    def matrix(self) -> np.ndarray:
        """Rotation that takes vectors of the log to the world, (3, 3)."""
        if self.rotation is None:
            return np.eye(3)
        return rotation_matrix("frame.rotation", self.rotation, degrees=self.angle == "deg")


class TareCard(_Section):
    """Table ``[tare]``: window of the log, s from its first sample.

    Its mean is subtracted from wrenches, and that of the run in the same window from the run's; displacements of markers count
    from it.
    """

    start: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    end: Positive
    run: bool = Field(
        default=True, description="whether the run is tared too; false where its sensor shows what the log shows then"
    )

    @model_validator(mode="after")
    def _in_order(self) -> TareCard:
        if self.end <= self.start:
            raise ValueError(f"runs from {self.start} to {self.end} s; the end must lie behind the start")
        return self


class GravityCard(_Section):
    """Table ``[gravity]``: what hangs on the sensor and the run leaves out; its weight is taken off before anything else.

    How the log shows it follows from what the log is compared with, and from ``frame.sign``. Sensors of kind contact, start and
    end show loads **on** the sensed part: a weight pulls downwards. Those of kind mount, joint and reaction show what **holds**
    the part: at rest a weight reads upwards. With sign = -1 the log shows the opposite of either: upwards for contact, start and
    end, downwards for mount, joint and reaction, as an instrument that shows the load on itself.
    """

    mass: Positive = Field(description="kg")
    centre: Triple = Field(default=(0.0, 0.0, 0.0), description="centre of mass in the frame of the sensor, m")


class FilterCard(_Section):
    """Table ``[filter]``: zero-phase Butterworth low-pass on both, the log and the run."""

    cutoff: Positive = Field(description="Hz")
    order: int = Field(default=4, ge=1, le=8, description="order of one pass; it goes forwards and backwards")


class Card(_Section):
    """What the file of a log does not say; every field has a default. :func:`read_card` reads it from TOML."""

    sensor: str | None = Field(
        default=None, description="sensor of the run; default: the only one, or the one that the columns name"
    )
    axes: dict[Literal["fx", "fy", "fz", "tx", "ty", "tz"], str] = Field(
        default_factory=dict, description="column of each component; default: recognised by their names"
    )
    markers: dict[str, str | Annotated[list[str], Field(min_length=3, max_length=3)]] = Field(
        default_factory=dict, description="marker of the run = label of the log (C3D), or its three columns (CSV)"
    )
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="column of the run's sensors.csv, with its unit = column of the log, or '-' and its name for the opposite "
        "sign: joints, tendons, chambers; of JointState in a ROS bag JOINT.position, JOINT.velocity or JOINT.effort",
    )
    marker_values: Literal["position", "displacement", "fitted"] = Field(
        default="position",
        description="compare positions; displacements from the tare window (else the first sample) and from the run's first "
        "row; or positions after a rigid fit of the markers of that window to the run's first row",
    )
    topic: str | None = Field(default=None, description="topic of a ROS bag; default: the only one of its kind")
    rate: Positive | None = Field(default=None, description="rate of the common grid, Hz; default: the lower of log and run")
    window: tuple[Finite, Finite] | None = Field(default=None, description="part of the run's time that is compared, s")
    accept_large: bool = Field(
        default=False, description="take forces above 1e4 N, torques above 1e3 N m and lengths above 100 m as true"
    )
    time: TimeCard = TimeCard.model_validate({})
    units: UnitsCard = UnitsCard.model_validate({})
    frame: FrameCard = FrameCard.model_validate({})
    tare: TareCard | None = None
    gravity: GravityCard | None = None
    filter: FilterCard | None = None

    @field_validator("window")
    @classmethod
    def _in_order(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value and value[1] <= value[0]:
            raise ValueError(f"is {value}; the end must lie behind the start")
        return value

    @model_validator(mode="after")
    def _no_column_twice(self) -> Card:
        given = [(f"axes.{name}", column) for name, column in self.axes.items()]
        given += [(f"markers.{name}", c) for name, value in self.markers.items() if not isinstance(value, str) for c in value]
        first: dict[str, str] = {}
        for place, column in given:
            if column in first:
                both = f"twice under {place}" if first[column] == place else f"under {first[column]} and under {place}"
                raise ValueError(f"has the column {column!r} {both}; a column is one component")
            first[column] = place
        return self

    @model_validator(mode="after")
    def _one_kind(self) -> Card:
        frame = self.frame
        of_wrench = self.axes or self.sensor or self.gravity or frame.sign != 1 or frame.point != (0, 0, 0)
        if self.markers and of_wrench:
            raise ValueError("has markers beside sensor, axes, gravity, frame.sign or frame.point of a wrench; keep one kind")
        if self.columns and (
            self.markers or self.marker_values != "position" or of_wrench or frame != FrameCard.model_validate({})
        ):
            raise ValueError(
                "has columns, which are compared one by one, beside markers, sensor, axes, gravity or frame; keep one kind (for "
                "the opposite sign write '-' before the column of the log)"
            )
        return self

    def for_sensor(self, sensor: str) -> Card:
        """Return the card with another sensor of the run.

        Raises
        ------
        InputError
            It maps markers or columns, which belong to no sensor.
        """
        for name in ("markers", "columns"):
            if getattr(self, name):
                raise InputError(f"sensor {sensor!r} is asked for, but the card maps {name}; leave one of them out.")
        return self.model_copy(update={"sensor": sensor})


def read_card(source: Card | Mapping[str, Any] | str | Path | None) -> Card:
    """Read a card from a TOML file, or check one given as a mapping.

    Parameters
    ----------
    source : Card, mapping, path or None
        None is the card with all defaults.

    Raises
    ------
    InputError
        A file that cannot be read or is not TOML, the card of a material, unknown fields, or values that are not allowed; all at
        once.
    """
    if isinstance(source, Card):
        return source
    named = isinstance(source, (str, Path))
    content = read_toml(Path(source), "card") if isinstance(source, (str, Path)) else source or {}
    if found := sorted(_MATERIAL_KEYS.intersection(content)):
        raise InputError(
            f"{source if named else 'the card'} is the card of a material (it has {', '.join(found)}), which fs.load_card reads; "
            "the card of a log says what the log does not: [axes], [columns] or [markers], [time], [units], [frame]."
        )
    return checked(Card, content, source if named else "the card")
