"""The table of a sweep: one row per case."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femsim.base.errors import InputError
from femsim.base.files import replacing
from femsim.studies.sweeps.case import Row, is_number
from femsim.studies.sweeps.sampling import Case

if TYPE_CHECKING:
    from pandas import DataFrame

TABLE = "results.parquet"
#: Columns out of the health of a run, and packages whose version is a column.
_HEALTH = (
    "mean_iterations", "largest_dynamics_residual", "largest_contact_residual", "largest_wrench_balance",
    "largest_max_penetration_m",
)  # fmt: skip
_VERSIONS = ("numpy", "scipy", "numba")
#: Columns other than parameters and metrics. A parameter with one of these names is called parameter_NAME in the table.
COLUMNS = (
    "case", "id", "status", "message", "verdict", "verdict_reason", "attempts", "steps_done", "unconverged_steps",
    *_HEALTH, "wall_s", "cpu_s", "overhead_s", "ended_s", "worker", "femsim", *_VERSIONS,
)  # fmt: skip


def parameter_column(name: str) -> str:
    """Name of the column of a parameter."""
    return f"parameter_{name}" if name in COLUMNS else name


def check_metric_names(metrics: Mapping[str, str], parameters: Mapping[str, Any], path: Path) -> None:
    """Refuse metrics whose column exists already.

    Raises
    ------
    InputError
        A metric has the name of a parameter or of a column of every table.
    """
    for name in metrics:
        if name in COLUMNS or name in {parameter_column(p) for p in parameters}:
            raise InputError(f"{path}: metrics.{name}: the table has a column of this name already; choose another.")


def make_table(cases: list[Case], rows: Mapping[str, Row], metrics: Mapping[str, str]) -> DataFrame:
    """Make the table of the cases of a sweep.

    Parameters
    ----------
    cases : list of Case
        In the order of the table.
    rows : mapping of str to dict
        By id; a case without one has the status "not run".
    metrics : mapping of str to str
        Metrics by name.

    Returns
    -------
    DataFrame
        Case, id, parameters, metrics, then the rest of ``COLUMNS``; NaN for numbers that a case does not have.
    """
    import pandas

    nan = math.nan
    records = []
    for case in cases:
        row = rows.get(case.id, {"status": "not run", "message": ""})
        health, versions = row.get("health", {}), row.get("versions")
        versions = versions if isinstance(versions, dict) else {}
        records.append(
            {"case": case.number, "id": case.id}
            | {parameter_column(name): value for name, value in case.parameters.items()}
            | {name: row.get("metrics", {}).get(name, nan) for name in metrics}
            | {"status": row["status"], "message": row["message"], **_verdict(health), "attempts": _number(row, "attempts", 0)}
            | {"steps_done": _number(health, "steps", 0), "unconverged_steps": _number(health, "unconverged_steps", 0)}
            | {name: float(_number(health, name)) for name in _HEALTH}
            | {name: float(_number(row, name)) for name in ("wall_s", "cpu_s", "overhead_s", "ended_s")}
            | {"worker": str(row.get("worker", "")), "femsim": str(row.get("version", ""))}
            | {name: str(versions.get(name, "")) for name in _VERSIONS}
        )
    table = pandas.DataFrame.from_records(records)
    for name in (parameter_column(p) for p in (cases[0].parameters if cases else ())):
        kinds = {type(value) for value in table[name]}
        if not (kinds <= {int, float} or len(kinds) == 1) or kinds & {tuple, list, Path}:
            table[name] = [str(value) for value in table[name]]
    return table


def _verdict(health: Mapping[str, Any]) -> dict[str, str]:
    """Health verdict of a case, and the sentence of its first reason; empty for cases without results."""
    reasons = health.get("reasons")
    first = reasons[0] if isinstance(reasons, list) and reasons else None
    said = str(first.get("sentence", "")) if isinstance(first, dict) else ""
    return {"verdict": str(health.get("verdict", "")), "verdict_reason": said}


def _number(held: Mapping[str, Any], name: str, otherwise: float = math.nan) -> float:
    """Return a number of a row, which a file may hold wrongly."""
    value = held.get(name, otherwise)
    return value if is_number(value) else otherwise


def write_table(table: DataFrame, folder: Path) -> Path:
    """Write the table as Parquet, in one step."""
    path = folder / TABLE
    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)
    return path
