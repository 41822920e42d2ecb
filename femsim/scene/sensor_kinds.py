"""The kinds of sensors, each declared once: columns with units, sign and point, limits, and what can have it.

The declaration feeds the header of ``sensors.csv``, the series of a :class:`~femsim.run.result.Run`, the checks of
:meth:`~femsim.scene.scene.Scene.sensor`, the plots (by the names of columns) and the table in docs/outputs.md. How a kind is read
after a step stands under its name in :data:`femsim.run.sensors.READERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from femsim.model.bodies.outputs import Marker
from femsim.scene.reading import Reading

#: Group of a :class:`~femsim.run.result.Run` that has the readings of a kind.
Series = Literal["sensors", "markers", "chambers", "tendons", "gauges"]


@dataclass(frozen=True)
class SensorColumn:
    """One column of a kind: what follows ``NAME_`` in the header, ending in the unit, and the unit as it is written."""

    name: str
    unit: str


@dataclass(frozen=True)
class SensorKind:
    """One kind of sensor.

    Attributes
    ----------
    columns : tuple of SensorColumn
        Its columns, in order.
    text : str
        What it reads, with sign and point, for the docs.
    series : str
        Attribute of ``Run`` that has its readings.
    limits : tuple of str
        Options of ``Scene.sensor`` that it takes: "partner", "where", "reach".
    needs_partner : bool
        Whether it must have a partner.
    refusal : str
        What to say where a body does not list the kind among its ``sensor_kinds``; "" for a kind that every part has.
    couplings : tuple of str
        Kinds of couplings, such as a tendon, one of which it reads instead of a part; none where it reads a part.
    holds : bool
        Whether its wrench is what holds the part, so that a weight that hangs on it reads upwards.
    """

    columns: tuple[SensorColumn, ...]
    text: str
    series: Series = "gauges"
    limits: tuple[str, ...] = ()
    needs_partner: bool = False
    refusal: str = ""
    couplings: tuple[str, ...] = ()
    holds: bool = False

    @property
    def is_wrench(self) -> bool:
        """Whether it reads a force and a torque, which an instrument may show."""
        return self.columns is WRENCH


@dataclass(frozen=True)
class SensorSpec:
    """A sensor of a scene, checked.

    Attributes
    ----------
    name, part, kind : str
        Name of the sensor, the part that it is on, its kind.
    marker : Marker, optional
        Point of a marker; None for one on an obstacle, and for other kinds.
    hold, coupling : str
        Name of the hold or the coupling that it reads instead of the part; "" for none.
    reading : Reading, optional
        What an instrument shows of its wrench.
    partners : tuple of str
        Parts that it counts contacts with; none for all.
    where : callable or array of int, optional
        Points of the surface that it counts contacts on.
    reach : float, m
        Distance up to which a gap is seen.
    """

    name: str
    part: str
    kind: str
    marker: Marker | None = None
    hold: str = ""
    coupling: str = ""
    reading: Reading | None = None
    partners: tuple[str, ...] = ()
    where: Callable[[np.ndarray], np.ndarray] | np.ndarray | None = None
    reach: float = 0.01

    @property
    def limited(self) -> bool:
        """Whether it counts some contacts of its part only."""
        return bool(self.partners) or self.where is not None


WRENCH = tuple(SensorColumn(f"{c}_{end}", unit) for c, end, unit in (
    ("fx", "N", "N"), ("fy", "N", "N"), ("fz", "N", "N"), ("tx", "Nm", "N m"), ("ty", "Nm", "N m"), ("tz", "Nm", "N m"),
))  # fmt: skip
POSITION = tuple(SensorColumn(f"{axis}_m", "m") for axis in "xyz")

SENSOR_KINDS: dict[str, SensorKind] = {
    "contact": SensorKind(
        WRENCH,
        "what all contacts exert **on** the part; torque about its centre of mass (the world's origin for obstacles)",
        series="sensors", limits=("partner", "where"),
    ),
    "mount": SensorKind(
        WRENCH,
        "what the drive exerts **on** the driven body (a gripper at rest reads its weight upwards); torque about the centre of "
        "mass of its base, or the mean of held nodes",
        series="sensors",
        refusal="kind 'mount' needs a driven rigid body, the base of a gripper or held nodes, not {part!r}.",
        holds=True,
    ),
    "marker": SensorKind(
        POSITION,
        "position of a node, or of the centre of a link or rigid part",
        series="markers",
    ),
    "start": SensorKind(
        WRENCH,
        "what a rod exerts **on** the holder of its start (a hanging rod reads its weight downwards); torque about the frame "
        "there",
        series="sensors", refusal="kind 'start' needs a rod that is held at its start, not {part!r}.",
    ),
    "end": SensorKind(
        WRENCH,
        "the same at its end",
        series="sensors", refusal="kind 'end' needs a rod that is held at its end, not {part!r}.",
    ),
    "reaction": SensorKind(
        WRENCH,
        "what a joint of `scene.join` exerts **on** the body named first; torque about the joint, or the mean of glued nodes",
        series="sensors", couplings=("reaction",), holds=True,
    ),
    "chamber": SensorKind(
        (SensorColumn("pressure_Pa", "Pa"), SensorColumn("volume_m3", "m^3")),
        "pressure that acted in the step, volume at its end",
        series="chambers", couplings=("chamber",),
    ),
    "tendon": SensorKind(
        (SensorColumn("force_N", "N"), SensorColumn("length_m", "m")),
        "tension that acted in the step, length at its end",
        series="tendons", couplings=("tendon",),
    ),
    "joint": SensorKind(
        WRENCH,
        "what the base of a gripper exerts **on** a finger, or a link of a robot on the next one and all that hangs on it, drive "
        "included; torque about the centre of mass of the finger or link",
        series="sensors",
        refusal="kind 'joint' needs a finger of a gripper, e.g. 'gripper.left', or a link or joint of a robot, not {part!r}.",
        holds=True,
    ),
    "revolute": SensorKind(
        (
            SensorColumn("angle_rad", "rad"), SensorColumn("rate_radps", "rad/s"), SensorColumn("torque_Nm", "N m"),
            SensorColumn("limit_Nm", "N m"), SensorColumn("friction_Nm", "N m"),
        ),
        "a joint of a robot that turns: angle, rate, torque of its motor (or motion), limits and dry friction, all positive as "
        "the angle; without its damping",
        refusal="kind 'revolute' needs a joint of a robot that turns, e.g. 'arm.elbow', not {part!r}.",
    ),
    "prismatic": SensorKind(
        (
            SensorColumn("position_m", "m"), SensorColumn("speed_mps", "m/s"), SensorColumn("force_N", "N"),
            SensorColumn("limit_N", "N"), SensorColumn("friction_N", "N"),
        ),
        "the same of a joint that slides",
        refusal="kind 'prismatic' needs a joint of a robot that slides, e.g. 'arm.jaw', not {part!r}.",
    ),
    "torsion": SensorKind(
        (SensorColumn("torque_Nm", "N m"), SensorColumn("angle_rad", "rad")),
        "what a spring of a robot and its motor pull with, damping included, positive above its rest: each joint bears "
        "minus its coefficient "
        "times that, and what calms it where it swings within a step; the sum of its joints at the end of the step",
        couplings=("torsion",),
    ),
    "spring": SensorKind(
        (SensorColumn("force_N", "N"), SensorColumn("length_m", "m")),
        "the same of one on joints that slide, or with coefficients in m/rad",
        series="tendons", couplings=("spring", "torsion"),
    ),
    "gap": SensorKind(
        (SensorColumn("gap_m", "m"),),
        "smallest distance to `partner`, negative in penetration; `inf` beyond `reach` (0.01 m)",
        limits=("partner", "reach"), needs_partner=True,
    ),
    "area": SensorKind(
        (SensorColumn("area_m2", "m^2"),),
        "a third of the triangles that the soft body's nodes under force (on a rigid part: those pressing) are pressed on; of a "
        "ball 0.9 to 2.1 of Hertz's with 5 to 13 nodes, 1.0 to 1.3 with 21 to 29",
        limits=("partner", "where"),
    ),
    "slip": SensorKind(
        (SensorColumn("slip_m", "m"), SensorColumn("friction_J", "J")),
        "mean tangential speed of loaded contacts, weighted by normal force, integrated over time; work that friction took",
        limits=("partner", "where"),
    ),
    "pair": SensorKind(
        (
            SensorColumn("contacts", "1"), SensorColumn("slipping", "1"), SensorColumn("normal_N", "N"),
            SensorColumn("tangential_N", "N"), SensorColumn("slip_mps", "m/s"),
        ),
        "contacts that press, with `partner` or all; how many of them slip, by more than a thousandth of the scene's `margin` a "
        "second; sums of the magnitudes of their normal and "
        "friction forces; largest speed of slip",
        limits=("partner", "where"),
    ),
    "energy": SensorKind(
        (SensorColumn("kinetic_J", "J"), SensorColumn("elastic_J", "J"), SensorColumn("potential_J", "J")),
        "of the whole body; potential of gravity, zero at the world's origin",
        refusal="{part!r} is an obstacle, which has no energy; name a body that moves.",
    ),
}  # fmt: skip


def names(columns: tuple[SensorColumn, ...]) -> tuple[str, ...]:
    """Names of columns."""
    return tuple(column.name for column in columns)


def sensor_table() -> str:
    """Return the table of all kinds for docs/outputs.md."""
    lines = ["| kind | columns | sign and point |", "|---|---|---|"]
    for kind, declared in SENSOR_KINDS.items():
        shown = "`NAME_fx_N` ... `NAME_tz_Nm`" if declared.is_wrench else ", ".join(f"`NAME_{c.name}`" for c in declared.columns)
        lines.append(f"| `{kind}` | {shown} | {declared.text} |")
    return "\n".join(lines)
