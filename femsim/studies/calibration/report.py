"""The folder of a calibration: calibration.json, evaluations.csv, figures, comparisons and the page."""

from __future__ import annotations

import csv
import math
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from femsim.base.files import replacing, write_errors, write_json
from femsim.base.versions import provenance
from femsim.scene.scene_file import scene_parameters
from femsim.studies.calibration.evaluate import Evaluator
from femsim.studies.calibration.file import CalibrationFile
from femsim.studies.calibration.fit import Fit
from femsim.studies.calibration.result import CalibrationResult, FinalComparisons
from viz import calibration_page, plot_calibration, plot_profiles


def write_results(result: CalibrationResult, path: Path, evaluator: Evaluator, fit: Fit, final: FinalComparisons | None) -> None:
    """Write evaluations.csv, figures and page, and calibration.json last.

    Parameters
    ----------
    result : CalibrationResult
        What the page shows.
    path : Path
        Calibration file.
    evaluator, fit
        Where the result comes from.
    final : FinalComparisons, optional
        None where there is nothing to show.

    Raises
    ------
    InputError
        The folder of results cannot be written.
    """
    folder = result.folder
    units = {p.name: p.unit for p in scene_parameters(evaluator.scene)}
    content = _content(result, path, evaluator, fit, units)
    with write_errors(f"the results in {folder}", "the cases are kept: free the disk and use --resume"):
        _write_evaluations(folder / "evaluations.csv", evaluator)
        if final is not None:
            # the figures belong together: all are made before the first takes its place
            with TemporaryDirectory(prefix=".figures-", dir=folder) as scratch:
                _draw(Path(scratch), content, result, evaluator, fit, final, units)
                shutil.rmtree(folder / "comparisons", ignore_errors=True)
                for old in folder.glob("profiles.*"):  # of a file that asked for them
                    old.unlink()
                for entry in Path(scratch).iterdir():
                    os.replace(entry, folder / entry.name)
        write_json(folder / "calibration.json", content)


def _content(result: CalibrationResult, path: Path, evaluator: Evaluator, fit: Fit, units: Mapping[str, str]) -> dict[str, Any]:
    """Make what calibration.json holds."""
    file = fit.file
    return {
        "status": result.status, "message": result.message, "file": str(path), "scene": str(evaluator.scene),
        "confidence": file.confidence,
        "parameters": {
            name: {
                "value": _finite(value), "unit": units.get(name, ""), "between": list(file.free[name].between),
                "scale": file.free[name].scale, "reference": file.free[name].reference,
                "interval": _ends(result.intervals, name),
                "joint_interval": _ends(result.joint_intervals, name),
                "profile_interval": _ends(result.profile_intervals, name),
                "bootstrap_interval": _ends(result.bootstrap_intervals, name),
            }
            for name, value in result.values.items()
        },
        "readings": {
            name: {"value": value, "interval": [low, high] if math.isfinite(low) else None}
            for name, (value, low, high) in result.readings.items()
        },
        "correlation": [[_finite(float(x)) for x in row] for row in result.correlation], "warnings": list(result.warnings),
        "errors": {"fitted": result.errors, "held_out": result.held_out, "reference": result.reference},
        "intervals": _how(file, fit), "noise": result.noise, "scale": _finite(result.scale),
        "evaluations": result.evaluations, "cases_run": result.cases,
    } | provenance()  # fmt: skip


def _draw(
    folder: Path, content: Mapping[str, Any], result: CalibrationResult, evaluator: Evaluator, fit: Fit, final: FinalComparisons,
    units: Mapping[str, str],
) -> None:  # fmt: skip
    """Write the comparisons, the figures and the page."""
    overlays = {}
    for name, comparisons in final.best.items():
        for number, comparison in enumerate(comparisons, 1):
            title = name if len(comparisons) == 1 else f"{name} {number}"
            overlays[title] = comparison.write(folder / "comparisons" / title.replace(" ", "_")) / "overlay.svg"
    history = evaluator.history
    points = {n: [v[n] for v in (evaluator.values(e.unit) for e in history)] for n in fit.names}
    axes = {n: (units.get(n, ""), fit.file.free[n].scale) for n in fit.names}
    pictures = [folder / "convergence.png", folder / "convergence.svg"]
    plot_calibration([e.phase for e in history], [e.misfit for e in history], points, axes, pictures)
    profiles = _write_profiles(folder, result, fit, axes)
    (folder / "report.html").write_text(calibration_page(content, pictures[1], overlays, profiles), encoding="utf-8")


def _write_profiles(folder: Path, result: CalibrationResult, fit: Fit, axes: Mapping[str, tuple[str, str]]) -> Path | None:
    """Write the points of the profiles and draw them; return the figure as SVG, None without profiles."""
    if not fit.profiles:
        return None
    free = list(fit.file.free.values())
    curves = {}
    with (folder / "profiles.csv").open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["profile_of", *fit.names, "rise_by_level"])
        for k, (name, own) in enumerate(zip(fit.names, fit.profiles, strict=True)):
            rows = [[f.value(float(u)) for f, u in zip(free, unit, strict=True)] for unit in own.units]
            table.writerows([name, *(f"{v:.10g}" for v in row), f"{rise:.6g}"] for row, rise in zip(rows, own.rises, strict=True))
            curves[name] = ([row[k] for row in rows], own.rises.tolist())
    paths = [folder / "profiles.png", folder / "profiles.svg"]
    return plot_profiles(
        curves, result.values, result.intervals, result.profile_intervals, result.bootstrap_intervals, axes, paths
    )[1]  # fmt: skip


def _how(file: CalibrationFile, fit: Fit) -> dict[str, object]:
    """Say how the intervals beside those of the Jacobian were found; empty without any."""
    out: dict[str, object] = {}
    if fit.profiles:
        out["profile"] = {n: {"lower": p.reasons[0], "upper": p.reasons[1]} for n, p in zip(fit.names, fit.profiles, strict=True)}
    if fit.bootstrap is not None:
        out["bootstrap"] = {
            "resample": file.intervals.resample, "draws": file.intervals.draws, "seed": file.intervals.seed,
            "block_lengths": list(fit.bootstrap.lengths), "blocks": list(fit.bootstrap.blocks),
        }  # fmt: skip
    return out


def _ends(intervals: Mapping[str, tuple[float, float]], name: str) -> list[float | None] | None:
    return [_finite(end) for end in intervals[name]] if name in intervals else None


def _write_evaluations(path: Path, evaluator: Evaluator) -> None:
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["evaluation", "phase", *evaluator.file.free, "misfit", "message"])
        for e in evaluator.history:
            values = [f"{v:.10g}" for v in evaluator.values(e.unit).values()]
            table.writerow([e.number, e.phase, *values, f"{e.misfit:.6g}" if math.isfinite(e.misfit) else "", e.message])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
