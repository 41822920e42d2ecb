"""Sensitivity: how much of the variance of a metric comes from each parameter, as Sobol indices.

A sweep with the method "saltelli" runs the cases; SALib computes the indices of their metrics. With parameters X_i between
their bounds and a metric Y, the first-order index is Var(E(Y | X_i)) / Var(Y), and the total index E(Var(Y | all but X_i)) /
Var(Y), by the estimators of Saltelli et al. (Computer Physics Communications 181, 2010, table 2). Intervals are z standard
deviations of 1000 bootstrap samples to each side. They treat the points as independent, which is too wide for a sequence.
"""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from femsim.base.errors import InputError, naming_parameters
from femsim.base.files import replacing, write_errors, write_json
from femsim.base.status import FINISHED, Status
from femsim.base.versions import provenance
from femsim.studies.sweeps.case import Row, is_believed
from femsim.studies.sweeps.file import Axis, SweepFile, read_sweep
from femsim.studies.sweeps.sweep import Plan, plan_sweep, sweep
from viz import plot_sensitivity

CONFIDENCE = 0.95
_RESAMPLES = 1000
_LEAST = 8
_WIDE = 0.1


@dataclass(frozen=True)
class Indices:
    """Indices of one metric.

    Attributes
    ----------
    mean, deviation : float, unit of the metric
        Mean and standard deviation over independent samples.
    parameters : tuple of str
        Names.
    first, total : tuple of (float, float), 1
        First-order and total index of each parameter, each with half its 95 % interval.
    """

    mean: float
    deviation: float
    parameters: tuple[str, ...]
    first: tuple[tuple[float, float], ...]
    total: tuple[tuple[float, float], ...]


@dataclass(frozen=True, repr=False)
class SensitivityResult:
    """Outcome of a study of sensitivity.

    Attributes
    ----------
    status : {"converged", "not converged", "interrupted", "failed"}
        "converged": every case is there and converged; "not converged": some did not, or a metric has too few numbers; samples
        of those that failed, or are wrong by their health, are left out; "interrupted" and "failed": of the sweep, or too few
        samples; without indices.
    message : str
        One sentence.
    folder : Path
        Folder of results, that of the sweep.
    indices : dict of str to Indices
        By metric; a metric that does not vary has none.
    warnings : tuple of str
        What a reader should know.
    samples, left_out : int
        Points of the sequence, and points left out because one of their cases has no number, or is wrong by its health.
    counts : dict of str to int
        Cases by status.
    """

    status: Status
    message: str
    folder: Path
    indices: dict[str, Indices]
    warnings: tuple[str, ...]
    samples: int
    left_out: int
    counts: dict[str, int]

    def __repr__(self) -> str:
        return f"<Sensitivity {self.folder.name!r}: {self.status}; indices of {', '.join(self.indices) or 'no metric'}>"


@naming_parameters
def sensitivity(
    path: str | Path,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    many: bool = False,
    on_row: Callable[[Row], None] | None = None,
    on_start: Callable[[int, int, int], None] | None = None,
) -> SensitivityResult:
    """Run the cases of a sweep file that are missing or failed, and compute Sobol indices.

    Parameters
    ----------
    path : path
        Sweep file with the sampling method "saltelli".
    out, resume, scheduler, workers, many, on_row, on_start
        As for :func:`~femsim.studies.sweeps.sweep.sweep`.

    Returns
    -------
    SensitivityResult
        Also when cases failed, the user pressed Ctrl-C, or the scheduler was lost: read ``status``.

    Raises
    ------
    InputError
        As :func:`~femsim.studies.sweeps.sweep.sweep`; a file of another method, with listed parameters, or without metrics; SALib
        is not installed.
    """
    path = Path(path)
    check_design(path)
    try:
        import SALib  # noqa: F401  (before hours of runs)
    except ImportError as error:
        raise InputError('sensitivity needs SALib, which is not installed; install "femsim[identify]".') from error
    swept = sweep(path, out=out, resume=resume, scheduler=scheduler, workers=workers, many=many, on_row=on_row, on_start=on_start)
    plan = plan_sweep(path, out=out, many=many)
    sampling = plan.file.sampling
    assert sampling is not None
    status, message, notes = swept.status, swept.message, []
    indices: dict[str, Indices] = {}
    left_out = 0
    if status in FINISHED:
        table, ended = _table(plan)
        good = {name: np.isfinite(table[:, :, k]).all(axis=1) for k, name in enumerate(plan.file.metrics)}
        few = {name: int(own.sum()) for name, own in good.items() if own.sum() < _LEAST}
        if ended.sum() < _LEAST:
            status = "failed"
            message = f"Only {ended.sum()} of {sampling.count} samples have all their cases; {_LEAST} are needed. {message}"
        else:
            left_out = max([int((~own).sum()) for name, own in good.items() if name not in few], default=int((~ended).sum()))
            indices = {
                name: found
                for k, (name, own) in enumerate(good.items())
                if name not in few and (found := sobol_indices(plan.cases.varied, table[own, :, k], sampling.seed)) is not None
            }
            notes = _notes(plan.file, indices, left_out, few)
        if few and status in FINISHED:
            status = "failed" if len(few) == len(good) else "not converged"
            lacks = "; ".join(f"{name} has numbers in all cases of {count} only" for name, count in few.items())
            message = f"Indices need {_LEAST} of the {sampling.count} samples, and {lacks} (see results.parquet). {message}"
    result = SensitivityResult(
        status, message, swept.folder, indices, tuple(notes), sampling.count, left_out, swept.counts
    )  # fmt: skip
    _write(result, plan)
    return result


def sobol_indices(parameters: Sequence[str], values: np.ndarray, seed: int) -> Indices | None:
    """Compute the indices of a metric.

    Parameters
    ----------
    parameters : sequence of str
        Names, D of them.
    values : ndarray, (n, D + 2)
        Metric at each point of the sequence: at the first point, at that point with each parameter of the second, at the second.
    seed : int
        Of the bootstrap.

    Returns
    -------
    Indices, or None where the metric does not vary.
    """
    from SALib.analyze.sobol import analyze

    independent = values[:, [0, -1]]
    mean, deviation = float(independent.mean()), float(independent.std())
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        return None
    with warnings.catch_warnings():  # that a bootstrap sample does not vary
        warnings.simplefilter("ignore")
        found = analyze(
            {"num_vars": len(parameters), "names": list(parameters), "bounds": [[0.0, 1.0]] * len(parameters)},
            values.ravel(), calc_second_order=False, num_resamples=_RESAMPLES, conf_level=CONFIDENCE,
            seed=seed + 1,  # SALib takes 0 for none
        )  # fmt: skip
    first, total = (
        tuple((float(x), float(half)) for x, half in zip(found[name], found[f"{name}_conf"], strict=True))
        for name in ("S1", "ST")
    )
    return Indices(mean, deviation, tuple(parameters), first, total)


def check_design(path: Path) -> None:
    """Refuse a sweep file that is not a study of sensitivity, with an InputError."""
    file = read_sweep(path)
    axes = {name: axis for name, axis in file.parameters.items() if isinstance(axis, Axis)}
    listed = [f"parameters.{name}" for name, axis in axes.items() if not axis.sampled]
    listed += [name for name, given in (("[[cases]]", file.cases), ("seeds", file.seeds)) if given]
    if listed:
        raise InputError(f"{path}: {listed[0]} is a list; in a study of sensitivity parameters are fixed, or between or normal.")
    if file.sampling is None or file.sampling.method != "saltelli":
        have = "none" if file.sampling is None else f'"{file.sampling.method}"'
        raise InputError(
            f'{path}: sampling.method is {have}; a study of sensitivity needs "saltelli", and parameters with between or normal.'
        )
    if not file.metrics:
        raise InputError(f'{path}: metrics is missing; name at least one, for instance squeeze = "mean(floor_fz_N)".')
    if file.sampling.count < _LEAST:
        raise InputError(f"{path}: sampling.count is {file.sampling.count}; at least {_LEAST} are needed, 128 are a good start.")


def _table(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Metrics of all cases of the design, (samples, D + 2, metrics), NaN where none is believed; samples whose cases all are."""
    names = list(plan.file.metrics)
    rows: dict[str, Mapping[str, float]] = {key: row.get("metrics", {}) for key, row in plan.rows.items() if is_believed(row)}
    flat = [[float(rows.get(key, {}).get(name, math.nan)) for name in names] for key in plan.cases.order]
    per_sample = len(plan.cases.varied) + 2
    ended = np.asarray(np.array([key in rows for key in plan.cases.order]).reshape(-1, per_sample).all(axis=1))
    return np.array(flat).reshape(-1, per_sample, len(names)), ended


def _notes(file: SweepFile, indices: Mapping[str, Indices], left_out: int, few: Mapping[str, int]) -> list[str]:
    notes = [f"{name} does not vary, and has no indices" for name in file.metrics if name not in indices and name not in few]
    notes += [f"{name} has numbers in all cases of {count} samples only, and no indices" for name, count in few.items()]
    if left_out:
        notes.append(
            f"{left_out} samples are left out, since a case of theirs gave no number or is wrong; the indices are of the others"
        )
    for name, own in indices.items():
        widest = max(half for _, half in (*own.first, *own.total))
        if widest > _WIDE:
            notes.append(f"indices of {name} are known to +-{widest:.2f} only: double sampling.count and use --resume")
    return notes


def _write(result: SensitivityResult, plan: Plan) -> None:
    """Write sensitivity.csv and the pictures, then sensitivity.json, each in one step."""
    content = {
        "status": result.status, "message": result.message, "scene": str(plan.cases.scene), "metrics": plan.file.metrics,
        "confidence": CONFIDENCE, "samples": result.samples, "left_out": result.left_out, "cases": result.counts,
        "warnings": list(result.warnings),
        "indices": {
            metric: {
                "mean": own.mean, "standard_deviation": own.deviation,
                "parameters": {
                    name: {"first": first[0], "first_half": first[1], "total": total[0], "total_half": total[1]}
                    for name, first, total in zip(own.parameters, own.first, own.total, strict=True)
                },
            }
            for metric, own in result.indices.items()
        },
    } | provenance()  # fmt: skip
    folder = result.folder
    with write_errors(f"the results in {folder}", "the cases are kept: free the disk and use --resume"):
        if result.indices:
            with replacing(folder / "sensitivity.csv") as partial, partial.open("w", newline="", encoding="utf-8") as stream:
                table = csv.writer(stream)
                table.writerow(["metric", "parameter", "first", "first_half", "total", "total_half"])
                for metric, own in result.indices.items():
                    for name, first, total in zip(own.parameters, own.first, own.total, strict=True):
                        table.writerow([metric, name, *(f"{x:.6g}" for x in (*first, *total))])
            bars = {m: (own.parameters, own.first, own.total) for m, own in result.indices.items()}
            for ending in ("png", "svg"):
                plot_sensitivity(bars, folder / f"sensitivity.{ending}")
        write_json(folder / "sensitivity.json", content)
