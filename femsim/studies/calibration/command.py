"""What ``femsim calibrate`` shows: the smallest misfit so far, then values, intervals, errors and warnings."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from femsim.scene.scene_file import scene_parameters
from femsim.studies.calibration.calibrate import calibrate
from femsim.studies.calibration.evaluate import Evaluation
from femsim.studies.calibration.file import read_calibration
from femsim.studies.calibration.result import CalibrationResult, summary


def run_calibration(file: Path, *, quiet: bool, **options: Any) -> CalibrationResult:
    """Calibrate with a line of progress on stderr and a summary on stdout.

    Parameters
    ----------
    file : Path
        Calibration file.
    quiet : bool
        Print neither.
    **options
        Of :func:`~femsim.studies.calibration.calibrate.calibrate`.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(), TextColumn("calibrating: {task.fields[text]}"), TimeElapsedColumn(), console=console,
        disable=quiet or not console.is_terminal, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=None, text="first run, kernels compiled ...")
        best = math.inf

        def on_evaluation(evaluation: Evaluation) -> None:
            nonlocal best
            best = min(best, evaluation.misfit) if math.isfinite(evaluation.misfit) else best
            bar.update(task, text=f"evaluation {evaluation.number} ({evaluation.phase}), smallest misfit {best:.4g}")

        result = calibrate(file, on_evaluation=on_evaluation, **options)
    if not quiet:
        units = {p.name: p.unit for p in scene_parameters(result.folder / "scene.py")}
        print(summary(result, read_calibration(file), units))
        page = " (report.html, comparisons/)" if result.intervals else ""
        print(f"\nresult    {result.folder}{page}")
    elif result.status != "converged":
        print(f"femsim: {result.status}: {result.message}", file=sys.stderr)
    return result
