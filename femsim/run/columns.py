"""The columns of steps.csv, each declared once: name, unit, text, how it is read, and what it is for a halved step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from femsim.step.report import StepReport

#: What a column is for a step that was halved: the value at its end, the sum over its parts, or that of the worst part.
Joins = Literal["end", "sum", "worst"]


@dataclass(frozen=True)
class StepColumn:
    """One column of steps.csv.

    Attributes
    ----------
    name : str
        Name in the header, ending in the unit where there is one.
    unit : str
        Unit, "1" for none.
    text : str
        What it is, for the docs.
    read : callable
        ``read(report, ms)``: the number after a step, from its report and the wall times of its stages in ms.
    joins : {"end", "sum", "worst"}
        What it is for a halved step.
    """

    name: str
    unit: str
    text: str
    read: Callable[[StepReport, Mapping[str, float]], float]
    joins: Joins = "end"


def _stage(name: str) -> StepColumn:
    return StepColumn(f"ms_{name}", "ms", "wall time of the stage; `ms_record`: tables and frames", lambda r, ms: ms[name], "sum")


def _momentum(axis: int) -> StepColumn:
    text = "momentum of all bodies"
    return StepColumn(f"momentum_{'xyz'[axis]}_kgmps", "kg m/s", text, lambda r, ms: float(r.momentum[axis]))


_DEEPEST = "numbers, in `parts` of run.json, of the two parts deepest in each other for their size; -1 for none"

STEP_COLUMNS: tuple[StepColumn, ...] = (
    StepColumn("step", "1", "from 1", lambda r, ms: r.step),
    StepColumn("time_s", "s", "end of the step", lambda r, ms: r.time),
    StepColumn(
        "contacts", "1", "in the problem, with open ones within the margin", lambda r, ms: len(r.contacts.gap)
    ),
    StepColumn("iterations", "1", "of the solver", lambda r, ms: r.solution.iterations, "sum"),
    StepColumn(
        "dynamics_residual", "1", "relative residual of A v = b + J^T lam (`contact/metrics.py`)",
        lambda r, ms: r.metrics.dynamics_residual, "worst",
    ),
    StepColumn(
        "contact_residual", "1",
        "relative natural-map residual of the contact law on the real contact points",
        lambda r, ms: r.metrics.contact_residual, "worst",
    ),
    StepColumn(
        "step_norm", "1", "length of the solver's last step; **not** an error measure",
        lambda r, ms: float(r.solution.history.step_norm[-1]) if len(r.solution.history.step_norm) else 0.0,
    ),
    StepColumn(
        "max_penetration_m", "m", "deepest penetration, measured on the geometry",
        lambda r, ms: r.max_penetration,
    ),
    StepColumn("max_slip_mps", "m/s", "largest tangential speed of a pressing contact", lambda r, ms: r.max_slip, "worst"),
    StepColumn("kinetic_energy_J", "J", "kinetic energy", lambda r, ms: r.kinetic_energy),
    StepColumn("elastic_energy_J", "J", "elastic energy of bodies and soft contacts", lambda r, ms: r.elastic_energy),
    StepColumn(
        "work_J", "J",
        "of gravity, loads, drives and joints since the start",
        lambda r, ms: r.work,
    ),
    _momentum(0),
    _momentum(1),
    _momentum(2),
    StepColumn(
        "wrench_balance", "1",
        "worst body's \\|dp/dt - loads - contact - drive\\|, relative to the largest of these forces (at least 1 % of the sum of "
        "their magnitudes)",
        lambda r, ms: r.wrench_balance, "worst",
    ),
    StepColumn(
        "virtual_slip_mps", "m/s", "largest speed of a virtual node relative to its body (error of a fixed gain)",
        lambda r, ms: float(r.solution.details.get("virtual_slip", 0.0)), "worst",
    ),
    StepColumn(
        "inverted_elements", "1", "tetrahedra of negative volume", lambda r, ms: r.inverted_elements
    ),
    StepColumn(
        "converged", "1", "1 where the tolerance was reached by true residuals",
        lambda r, ms: int(r.solution.converged), "worst",
    ),
    StepColumn(
        "substeps", "1",
        "parts that the step was taken in",
        lambda r, ms: len(r.parts), "sum",
    ),
    _stage("assemble"),
    _stage("detect"),
    _stage("solve"),
    _stage("measure"),
    _stage("record"),
    StepColumn("ms_step", "ms", "wall time of all stages", lambda r, ms: sum(ms.values()), "sum"),
    StepColumn(
        "potential_energy_J", "J", "of gravity, zero at the world's origin",
        lambda r, ms: r.potential_energy,
    ),
    StepColumn(
        "friction_loss_J", "J", "taken by friction of contacts",
        lambda r, ms: r.friction_loss,
    ),
    StepColumn(
        "viscous_loss_J", "J",
        "taken by Prony terms",
        lambda r, ms: r.viscous_loss,
    ),
    StepColumn(
        "joint_loss_J", "J",
        "taken by damping and friction of joints; `work_J` is less by it",
        lambda r, ms: r.joint_loss,
    ),
    StepColumn(
        "other_loss_J", "J",
        "the rest of `work_J`, taken by damping, impacts and the time step",
        lambda r, ms: r.other_loss,
    ),
    StepColumn(
        "nonlinear_residual", "1",
        "what the [equations of motion](method.md#the-step-is-solved-not-only-linearised) lack, relative to the largest forces",
        lambda r, ms: r.nonlinear_residual, "worst",
    ),
    StepColumn("solves", "1", "contact problems solved", lambda r, ms: r.solves, "sum"),
    StepColumn(
        "theta", "1",
        "integration parameter; 1 where backward Euler took an energy-momentum step",
        lambda r, ms: r.theta, "worst",
    ),
    StepColumn(
        "time_error_m", "m",
        "estimated [error of position](method.md#steps-as-long-as-the-motion-asks-for); 0 unless dt is \"auto\"",
        lambda r, ms: r.time_error, "worst",
    ),
    StepColumn(
        "deepest_part_a", "1",
        _DEEPEST,
        lambda r, ms: r.vitals.worst.parts[0],
    ),
    StepColumn("deepest_part_b", "1", _DEEPEST, lambda r, ms: r.vitals.worst.parts[1]),
    StepColumn(
        "penetration_share", "1",
        "their `penetration` in the [verdict](health.md#what-is-judged)",
        lambda r, ms: r.vitals.worst.share,
    ),
    StepColumn(
        "led_overlap_m", "m",
        "`led_overlap` of the verdict, in m",
        lambda r, ms: r.vitals.led.depth,
    ),
    StepColumn(
        "stick_creep_mps", "m/s", "`max_slip_mps` of contacts well inside their friction cone",
        lambda r, ms: r.vitals.creep.depth, "worst",
    ),
    StepColumn(
        "way_share", "1", "`way` of the verdict",
        lambda r, ms: r.vitals.way[1], "worst",
    ),
    StepColumn(
        "turn_rad", "rad", "`turn` of the verdict",
        lambda r, ms: r.vitals.turn[1], "worst",
    ),
)  # fmt: skip


def step_columns() -> list[str]:
    """Header of steps.csv."""
    return [column.name for column in STEP_COLUMNS]


def step_row(report: StepReport, ms: Mapping[str, float]) -> list[float]:
    """Row of steps.csv after a step, from its report and the wall times of its stages in ms."""
    return [column.read(report, ms) for column in STEP_COLUMNS]


def step_table() -> str:
    """Return the table of all columns for docs/outputs.md."""
    joins = {"end": "", "sum": " (sum)", "worst": " (worst)"}
    rows: dict[tuple[str, str], list[str]] = {}
    for c in STEP_COLUMNS:
        rows.setdefault((c.unit, f"{c.text}{joins[c.joins]}"), []).append(f"`{c.name}`")
    lines = ["| column | meaning |", "|---|---|"]
    lines += [f"| {', '.join(names)} | {text} |" for (_, text), names in rows.items()]
    return "\n".join(lines)


def cell(value: float) -> str:
    """Write a number as the tables have it: ten digits hide what rounding makes of times, which are sums of steps."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
