"""The result of a calibration: values, intervals, errors, and what a reader should know."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from femsim.base.notebook import card
from femsim.base.status import Status
from femsim.scene.scene_file import scene_parameters
from femsim.studies.calibration.concerns import concerns, interval_concerns
from femsim.studies.calibration.estimate import Estimate
from femsim.studies.calibration.evaluate import Evaluator
from femsim.studies.calibration.file import CalibrationFile
from femsim.studies.calibration.fit import Fit
from femsim.studies.calibration.readings import with_intervals
from femsim.studies.comparison.comparison import Comparison

Errors = dict[str, dict[str, tuple[float, float]]]


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationResult:
    """Outcome of a calibration.

    Attributes
    ----------
    status : {"converged", "not converged", "interrupted", "failed"}
        "converged": the refinement reached its tolerance; "not converged": it reached its limit of evaluations, or runs beside
        the best point failed; "interrupted": by the user; "failed": no run succeeded, none beside the best point, or the
        scheduler was lost. The last two have no intervals.
    message : str
        One sentence.
    folder : Path
        Folder of results.
    values : dict of str to float
        Best values found; NaN where nothing ran.
    intervals, joint_intervals : dict of str to (float, float)
        Confidence interval of each parameter by itself, and joint intervals of all parameters.
    correlation : ndarray, (p, p), 1
        Of the estimates, in the order of ``values``.
    warnings : tuple of str
        What the logs cannot tell, and what a reader should know.
    errors, held_out, reference : dict
        By experiment and group of channels: root mean square and largest length of the error vector, in SI; of the experiments
        fitted, of those held out, and of all at the reference values (empty without any).
    noise : dict of str to float
        Standard deviation of a sample by "EXPERIMENT, CHANNEL", in SI; given or estimated.
    scale : float
        Root of the sum of squared residuals over the degrees of freedom, in those standard deviations.
    evaluations, cases : int
        Number of evaluations, and of cases that ran now for them.
    profile_intervals : dict of str to (float, float)
        Intervals of the profiles, NaN on a side without an end (``warnings`` say why); empty where they were not asked for.
    readings : dict of str to (float, float, float)
        Loss factors and creep that the terms of ``[prony]`` mean: value, and the ends of its interval, NaN without one.
    bootstrap_intervals : dict of str to (float, float)
        Intervals of the bootstrap, NaN for a parameter on which the logs do not depend; empty where it was not asked for.
    """

    status: Status
    message: str
    folder: Path
    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    joint_intervals: dict[str, tuple[float, float]]
    correlation: np.ndarray
    warnings: tuple[str, ...]
    errors: Errors
    held_out: Errors
    reference: Errors
    noise: dict[str, float]
    scale: float
    evaluations: int
    cases: int
    profile_intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    bootstrap_intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    readings: dict[str, tuple[float, float, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        found = "; ".join(f"{name} = {value} ({ends})" for name, value, ends in self._found())
        return f"<Calibration {self.folder.name!r}: {self.status}; {found}>"

    def _found(self) -> Iterator[tuple[str, str, str]]:
        for name, value in self.values.items():
            low, high = self.intervals.get(name, (float("nan"), float("nan")))
            yield name, f"{value:.5g}", f"{low:.5g} to {high:.5g}" if low == low else "-"

    def _repr_html_(self) -> str:
        lines = [self.message, f"{self.evaluations} evaluations", *(f"warning: {text}" for text in self.warnings)]
        return card(
            f"Calibration {self.folder.name}: {self.status}", ("parameter", "value (SI)", "interval"), list(self._found()), lines
        )


@dataclass(frozen=True)
class FinalComparisons:
    """All experiments, held-out ones too, beside their logs: at the best fit, and at the reference values (empty without any)."""

    best: dict[str, list[Comparison]]
    reference: dict[str, list[Comparison]]


def compare_finally(evaluator: Evaluator, fit: Fit) -> FinalComparisons:
    """Run all experiments at the best fit and, where the file gives reference values, with those in their place."""
    assert fit.best is not None
    free = list(fit.file.free.values())
    references = {k: f.reference for k, f in enumerate(free) if f.reference is not None}
    point = fit.best.copy()
    for k, value in references.items():
        point[k] = free[k].unit(value)
    return FinalComparisons(evaluator.compare_all(fit.best), evaluator.compare_all(point) if references else {})


def make_result(
    status: Status, message: str, folder: Path, evaluator: Evaluator, fit: Fit, final: FinalComparisons | None
) -> CalibrationResult:
    """Make the result of a fit, also of one that was interrupted or failed; then without intervals."""
    file, names, found = fit.file, fit.names, fit.found
    best = fit.best if fit.best is not None else fit.lowest()
    fitted = [e.name for e in file.experiments if not e.held_out]
    held_out = [e.name for e in file.experiments if e.held_out]
    result = CalibrationResult(
        status=status,
        message=message,
        folder=folder,
        values=evaluator.values(best) if best is not None else dict.fromkeys(names, math.nan),
        intervals={},
        joint_intervals={},
        correlation=np.full((len(names),) * 2, math.nan),
        warnings=(),
        errors=_errors(final.best, fitted) if final else {},
        held_out=_errors(final.best, held_out) if final else {},
        reference=_errors(final.reference, [*fitted, *held_out]) if final else {},
        noise=_noise(evaluator, fit),
        scale=found.scale if found is not None else math.nan,
        evaluations=len(evaluator.history),
        cases=sum(e.ran for e in evaluator.history),
    )
    if best is not None:
        half = found.half if found is not None and final is not None else None
        told = with_intervals(
            file, scene_parameters(evaluator.scene), best, half, result.correlation if found is None else found.correlation
        )
        result = replace(result, readings=told)
    warnings = []
    if found is not None and best is not None and final is not None:
        result = _with_intervals(result, fit, found, best)
        warnings += _warnings(fit, found, best, final)
    return replace(result, warnings=(*warnings, *_failures(evaluator)))


def _with_intervals(result: CalibrationResult, fit: Fit, found: Estimate, best: np.ndarray) -> CalibrationResult:
    """Add intervals of every kind, in the units of the parameters."""

    def pairs(low: Iterable[float], high: Iterable[float]) -> dict[str, tuple[float, float]]:
        ends = zip(fit.file.free.items(), low, high, strict=True)
        return {name: (free.value(float(a)), free.value(float(b))) for (name, free), a, b in ends}

    profiles, drawn = fit.profiles, fit.bootstrap
    return replace(
        result,
        correlation=found.correlation,
        intervals=pairs(best - found.half, best + found.half),
        joint_intervals=pairs(best - found.joint_half, best + found.joint_half),
        profile_intervals=pairs([p.ends[0] for p in profiles], [p.ends[1] for p in profiles]) if profiles else {},
        bootstrap_intervals=pairs(best + drawn.low, best + drawn.high) if drawn is not None else {},
    )


def _warnings(fit: Fit, found: Estimate, best: np.ndarray, final: FinalComparisons) -> list[str]:
    """Say what the logs cannot tell, and how far to trust the intervals."""
    free = list(fit.file.free.values())
    out = concerns(fit.names, best, found)
    out += interval_concerns(fit.names, lambda k, u: free[k].value(u), best, found, fit.profiles, fit.bootstrap)
    if fit.noise_known() and found.scale > 1.5:
        out.append(
            f"what is left is {found.scale:.2g} times the noise given: the model is not exact, and the intervals are widened "
            "by that"
        )
    if found.effective < 0.5 * found.samples:
        out.append(
            f"residuals hang together in time, as those of a model that is not exact: {found.samples} samples count as "
            f"{found.effective:.0f} in the intervals, which do not hold the error of the model itself"
        )
    for name, comparisons in final.best.items():
        out += [f"{name}: {text}" for one in comparisons for text in (*one.warnings, *one.better_frames())]
    return out + [
        f"{e.name}: its run at the best fit failed or is wrong" for e in fit.file.experiments if e.name not in final.best
    ]


def _failures(evaluator: Evaluator) -> list[str]:
    bad = [e.message for e in evaluator.history if e.message]
    return [f"{len(bad)} of {len(evaluator.history)} evaluations failed or did not converge, the first: {bad[0]}"] if bad else []


def _errors(comparisons: Mapping[str, Sequence[Comparison]], names: Sequence[str]) -> Errors:
    return {n: {g: v for c in comparisons[n] for g, v in _named(c).items()} for n in names if n in comparisons}


def _named(comparison: Comparison) -> dict[str, tuple[float, float]]:
    prefix = f"{comparison.sensor} " if comparison.sensor else ""
    return {f"{prefix}{group}": vector for group, vector in comparison.vectors.items()}


def _noise(evaluator: Evaluator, fit: Fit) -> dict[str, float]:
    if fit.found is None or fit.best is None:
        return {}
    owners = [(e.name, r.sensor or "") for e in evaluator.fitted for r in e.readings]
    blocks = fit.at("noise", fit.best).blocks
    return {
        f"{name}, {f'{sensor} ' if sensor else ''}{channel}": float(s)
        for (name, sensor), block, sigma in zip(owners, blocks, fit.sigma, strict=True)
        for channel, s in zip(block.channels, sigma, strict=True)
    }


def summary(result: CalibrationResult, file: CalibrationFile, units: Mapping[str, str]) -> str:
    """Table of a result as text: values, intervals, errors, warnings.

    Parameters
    ----------
    result : CalibrationResult
        The result.
    file : CalibrationFile
        Content of the calibration file.
    units : mapping of str to str
        Units of the parameters.
    """
    lines = [f"status    {result.status}: {result.message}", ""]
    for name, value in result.values.items():
        unit = units.get(name, "").replace("1", "")
        text = f"{name:24} {value:.6g} {unit}".rstrip()
        if name in result.intervals:
            low, high = result.intervals[name]
            text += f"   {100 * file.confidence:g} % interval {low:.6g} to {high:.6g}"
        for what, others in (("profile", result.profile_intervals), ("bootstrap", result.bootstrap_intervals)):
            if name in others:
                text += f"   {what} " + " to ".join(f"{end:.6g}" if math.isfinite(end) else "no end" for end in others[name])
        reference = file.free[name].reference
        lines.append(text + (f"   reference {reference:g}" if reference is not None else ""))
    for name, (value, low, high) in result.readings.items():
        told = f"   {100 * file.confidence:g} % interval {low:.4g} to {high:.4g}" if math.isfinite(low) else ""
        lines.append(f"{name:24} {value:.4g}{told}")
    for what, errors in (("fitted", result.errors), ("held out", result.held_out)):
        for experiment, groups in errors.items():
            for group, (rms, largest) in groups.items():
                other = result.reference.get(experiment, {}).get(group)
                beside = f"   at the reference {other[0]:.4g}" if other else ""
                lines.append(f"{what:9} {experiment}, {group}: error {rms:.4g} RMS, {largest:.4g} at most{beside}")
    lines += [f"warning: {text}" for text in result.warnings]
    lines.append(f"{result.evaluations} evaluations; {result.cases} cases run now")
    return "\n".join(lines)
