"""Identify parameters of a scene from logs: search, refine, say how certain, check on held-out logs, write a folder."""

from __future__ import annotations

import csv
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from femsim.base.errors import InputError
from femsim.base.files import write_json
from femsim.studies.calibration.estimate import Estimate, concerns, estimate, least_squares
from femsim.studies.calibration.evaluate import FIRST_NOISE, Block, Evaluation, Evaluator
from femsim.studies.calibration.file import CalibrationFile, read_calibration
from femsim.studies.calibration.intervals import (
    Bootstrap,
    Profile,
    bootstrap_blocks,
    bootstrap_trials,
    interval_concerns,
    profile,
)
from femsim.studies.calibration.search import search
from femsim.studies.comparison.comparison import Comparison
from femsim.studies.sweeps.engine import Engine, SchedulerLost
from femsim.studies.sweeps.sweep import check_folder
from viz import calibration_page, plot_calibration, plot_profiles

Status = Literal["converged", "not converged", "interrupted", "failed"]
Errors = dict[str, dict[str, tuple[float, float]]]
_LARGE = 1e3
_LEAST_NOISE = 1e-4  # of the range of a group: what solvers and rounding leave


class _StoppedError(Exception):
    """The refinement cannot go on; the best point so far counts."""


@dataclass(frozen=True, eq=False)
class CalibrationResult:
    """Outcome of a calibration.

    Attributes
    ----------
    status : {"converged", "not converged", "interrupted", "failed"}
        "converged": the refinement ended by its tolerance; "not converged": by its limit of evaluations, or since runs failed
        beside it; "interrupted": by the user; "failed": no run, none beside the best point, or the scheduler lost. The last two
        have no intervals.
    message : str
        One sentence.
    folder : Path
        Folder of results.
    values : dict of str to float
        Best values found; NaN where nothing ran.
    intervals, joint_intervals : dict of str to (float, float)
        Confidence interval of each parameter by itself, and intervals that hold for all at once.
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
        Root of the sum of squared residuals by degrees of freedom, in those standard deviations.
    evaluations, cases : int
        Evaluations asked for, and cases run now for them.
    profile_intervals : dict of str to (float, float)
        Intervals of the profiles, NaN on a side without an end (``warnings`` say why); empty where they were not asked for.
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


def calibrate(
    path: str | Path,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    cases: str | Path | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    on_evaluation: Callable[[Evaluation], None] | None = None,
) -> CalibrationResult:
    """Identify parameters of a scene from logs of experiments.

    Parameters
    ----------
    path : path
        Calibration file.
    out : path, optional
        Folder of results; default runs/NAME. All workers must see it.
    resume : bool
        Go on with a folder that exists: the same points are asked for again, and cases that are there are not run again.
    cases : path, optional
        Folder of the cases, to share them between calibrations; default ``out/cases``.
    scheduler, workers
        As for :func:`~femsim.studies.sweeps.sweep.sweep`.
    on_evaluation : callable, optional
        ``on_evaluation(evaluation)`` after each evaluation.

    Returns
    -------
    CalibrationResult
        Also when runs failed, the user pressed Ctrl-C, or the scheduler was lost: read ``status``.

    Raises
    ------
    InputError
        Anything wrong with the file, its scene, its logs, the folder, or the scheduler.
    """
    path = Path(path)
    file = read_calibration(path)
    folder = (Path(out) if out is not None else Path("runs") / (file.name or path.stem)).resolve()
    check_folder(folder, "calibration", resume=resume)
    there = folder.exists()
    place = Path(cases).resolve() if cases is not None else folder / "cases"
    with Evaluator(path, file, place, Engine(scheduler, workers), on_evaluation) as evaluator:
        try:
            place.mkdir(parents=True, exist_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / "calibration.toml")
            shutil.copyfile(evaluator.scene, folder / "scene.py")
            write_json(folder / "calibration.json", {"status": "running", "message": "", "file": str(path)})
        except OSError as error:
            raise InputError(f"the folder {folder} cannot be written ({error.strerror}); choose another by --out.") from error
        fit = _Fit(evaluator)
        ended: Literal["", "interrupted", "failed"] = ""
        message, figures = "", None
        try:
            message = fit.run()
            if fit.found is not None:
                figures = _Figures(evaluator, fit)
        except KeyboardInterrupt:
            ended, message = "interrupted", "Interrupted; --resume goes on."
        except SchedulerLost as error:
            ended, message = "failed", f"{error} --resume goes on."
        except InputError as error:
            if not there and not any((folder / "cases").glob("*")):  # nothing ran that is kept here
                shutil.rmtree(folder, ignore_errors=True)
            else:
                with suppress(OSError):  # the disk may be what is wrong
                    write_json(folder / "calibration.json", {"status": "failed", "message": str(error), "file": str(path)})
            raise
        if not ended and fit.found is None:
            ended = "failed"
        status: Status = ended or ("converged" if fit.converged else "not converged")
        result = _result(status, message, folder, evaluator, fit, figures)
        _write(result, path, evaluator, fit, figures)
    return result


class _Fit:
    """The state of a fit: noise, memory of evaluations, best point."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator, self.file = evaluator, evaluator.file
        self.names = list(self.file.free)
        priors = [free.prior_in_units() for free in self.file.free.values()]
        self.prior_mean = np.array([prior[0] if prior else 0.0 for prior in priors])
        self.prior_weight = np.array([1.0 / prior[1] if prior else 0.0 for prior in priors])
        self.sigma: list[np.ndarray] = []  # of each block's columns
        self.best: np.ndarray | None = None
        self.found: Estimate | None = None
        self.profiles: list[Profile] = []
        self.bootstrap: Bootstrap | None = None
        self.converged = False
        self._memory: dict[bytes, Evaluation] = {}

    def run(self) -> str:
        """Do all of it; return a sentence."""
        start = np.array([0.5 if f.start is None else f.unit(f.start) for f in self.file.free.values()])
        self._evaluate("start", [start])
        search(self.file.search, len(self.names), lambda points: [self._cost(e) for e in self._evaluate("search", points)])
        self.best = self._lowest()
        if self.best is None:
            return f"No run succeeded: {self.evaluator.history[0].message}"
        known = self._noise_known()
        message = ""
        for phase in ("refine",) if known else ("refine", "refine, noise estimated"):
            if phase != "refine":
                self._estimate_noise()
            message = self._refine(phase)
        try:
            central = self._jacobian(self.best, "intervals", central=True)
        except _StoppedError as stop:
            return f"{stop} So there are no intervals."
        blocks = self._at("intervals", self.best).blocks
        residuals = [block.error / sigma for block, sigma in zip(blocks, self.sigma, strict=True)]
        self.found = estimate(residuals, central, self.prior_weight**2, self.file.confidence, known_noise=known)
        if "bootstrap" in self.file.intervals.methods:
            self.bootstrap = self._bootstrap(residuals, central)
        if "profile" in self.file.intervals.methods:
            self.profiles = profile(
                self.best, self.residual(self._at("intervals", self.best)), self._stacked(central), self.found, self._residuals,
                evaluations=self.file.intervals.evaluations, step=self.file.refine.step,
            )  # fmt: skip
        return message

    def residual(self, evaluation: Evaluation) -> np.ndarray:
        """Residuals of an evaluation behind each other, priors last."""
        parts = [(block.error / sigma).ravel() for block, sigma in zip(evaluation.blocks, self.sigma, strict=True)]
        return np.concatenate([*parts, self.prior_weight * (evaluation.unit - self.prior_mean)])

    def _cost(self, evaluation: Evaluation) -> float:
        return 0.5 * float((self.residual(evaluation) ** 2).sum()) if evaluation.blocks else math.inf

    def _evaluate(self, phase: str, units: Sequence[np.ndarray]) -> list[Evaluation]:
        new = list({unit.tobytes(): unit for unit in units if unit.tobytes() not in self._memory}.values())
        for evaluation in self.evaluator.evaluate(phase, new) if new else ():
            self._memory[evaluation.unit.tobytes()] = evaluation
            if not self.sigma and evaluation.blocks:
                self.sigma = [self._first_sigma(block) for block in evaluation.blocks]
        return [self._memory[unit.tobytes()] for unit in units]

    def _at(self, phase: str, unit: np.ndarray) -> Evaluation:
        return self._evaluate(phase, [np.asarray(unit)])[0]

    def _first_sigma(self, block: Block) -> np.ndarray:
        given = self.file.noise.model_dump()
        return np.array([given[kind] or FIRST_NOISE * span for kind, span in zip(block.kinds, block.ranges, strict=True)])

    def _noise_known(self) -> bool:
        kinds = {kind for e in self._memory.values() for block in e.blocks for kind in block.kinds}
        return all(getattr(self.file.noise, kind) is not None for kind in kinds)

    def _lowest(self) -> np.ndarray | None:
        there = [e for e in self._memory.values() if e.blocks]
        return min(there, key=self._cost).unit if there else None

    def _refine(self, phase: str) -> str:
        options, base = self.file.refine, self.residual(self._at(phase, self._start()))
        self.converged = False

        def residual(unit: np.ndarray) -> np.ndarray:
            evaluation = self._at(phase, unit)
            return self.residual(evaluation) if evaluation.blocks else _LARGE * (np.abs(base) + 1.0)

        def jacobian(unit: np.ndarray) -> np.ndarray:
            return self._stacked(self._jacobian(unit, phase, central=False))

        try:
            _, self.converged = least_squares(
                residual, jacobian, self._start(), evaluations=options.evaluations, tolerance=options.tolerance
            )
        except _StoppedError as stop:
            self.best = self._lowest()
            return str(stop)
        self.best = self._lowest()
        return (
            "The refinement ended by its tolerance."
            if self.converged
            else f"The refinement stopped after {options.evaluations} evaluations; raise refine.evaluations."
        )

    def _start(self) -> np.ndarray:
        assert self.best is not None
        return self.best

    def _jacobian(self, unit: np.ndarray, phase: str, *, central: bool) -> list[np.ndarray]:
        """Give derivatives of the residuals of each block by the coordinates, (m, c, p)."""
        step, p = self.file.refine.step, len(unit)
        sides = [unit + sign * step * np.eye(p)[k] for k in range(p) for sign in (1.0, -1.0)]
        allowed = [bool(np.all((side >= 0.0) & (side <= 1.0))) for side in sides]
        wanted = [ok and (central or k % 2 == 0 or not allowed[k - 1]) for k, ok in enumerate(allowed)]
        got = iter(self._evaluate(phase, [side for side, want in zip(sides, wanted, strict=True) if want]))
        at = [next(got) if want else None for want in wanted]
        here = self._at(phase, unit)
        columns = []
        for k in range(p):
            points = [e for e in at[2 * k : 2 * k + 2] if e is not None and e.blocks]
            if not points and allowed[2 * k + 1] and at[2 * k + 1] is None:  # the run on the first side failed
                points = [e for e in self._evaluate(phase, [sides[2 * k + 1]]) if e.blocks]
            if not points:
                raise _StoppedError(f"Runs beside the best point fail, so that there are no derivatives by {self.names[k]}.")
            a, b = (points[0], points[1]) if len(points) == 2 else (points[0], here)
            width = float(a.unit[k] - b.unit[k])
            columns.append([(x.error - y.error) / width for x, y in zip(a.blocks, b.blocks, strict=True)])
        return [
            np.stack([column[i] for column in columns], axis=-1) / sigma[:, None] for i, sigma in enumerate(self.sigma)
        ]  # fmt: skip

    def _stacked(self, blocks: Sequence[np.ndarray]) -> np.ndarray:
        """Put derivatives of all blocks behind each other, priors last, as :meth:`residual`."""
        return np.vstack([*(b.reshape(-1, len(self.names)) for b in blocks), np.diag(self.prior_weight)])

    def _residuals(self, units: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        return [self.residual(e) if e.blocks else None for e in self._evaluate("profile", units)]

    def _bootstrap(self, residuals: Sequence[np.ndarray], jacobians: Sequence[np.ndarray]) -> Bootstrap:
        options, prior, level = self.file.intervals, self.prior_weight**2, self.file.confidence
        if options.resample == "blocks":
            return bootstrap_blocks(residuals, jacobians, prior, level, draws=options.draws, seed=options.seed)
        trials = [(e.name, len(r.logs)) for e in self.evaluator.fitted for r in e.readings]
        return bootstrap_trials(residuals, jacobians, prior, level, draws=options.draws, seed=options.seed, trials=trials)

    def _estimate_noise(self) -> None:
        """Take the root mean square of the residuals of each channel, over all trials, as its noise, where none was given."""
        blocks, given = self._at("noise", self._start()).blocks, self.file.noise.model_dump()
        self.sigma = []
        for block in blocks:
            square = {
                c: float(np.mean(block.error[:, [d == c for d in block.channels]] ** 2)) for c in dict.fromkeys(block.channels)
            }
            found = [
                given[kind] or max(math.sqrt(square[c]), _LEAST_NOISE * span)
                for c, kind, span in zip(block.channels, block.kinds, block.ranges, strict=True)
            ]
            self.sigma.append(np.array(found))


class _Figures:
    """Comparisons of all experiments at the best point and at the reference."""

    def __init__(self, evaluator: Evaluator, fit: _Fit) -> None:
        assert fit.best is not None
        self.best = evaluator.compare_all(fit.best)
        references = {k: f.reference for k, f in enumerate(fit.file.free.values()) if f.reference is not None}
        point = fit.best.copy()
        for k, value in references.items():
            point[k] = list(fit.file.free.values())[k].unit(value)
        self.reference = evaluator.compare_all(point) if references else {}


def _errors(comparisons: Mapping[str, Sequence[Comparison]], names: Sequence[str]) -> Errors:
    return {n: {g: v for c in comparisons[n] for g, v in _named(c).items()} for n in names if n in comparisons}


def _named(comparison: Comparison) -> dict[str, tuple[float, float]]:
    prefix = f"{comparison.sensor} " if comparison.sensor else ""
    return {f"{prefix}{group}": vector for group, vector in comparison.vectors.items()}


def _result(
    status: Status, message: str, folder: Path, evaluator: Evaluator, fit: _Fit, figures: _Figures | None
) -> CalibrationResult:
    file, names = fit.file, fit.names
    best = fit.best if fit.best is not None else fit._lowest()
    values = evaluator.values(best) if best is not None else dict.fromkeys(names, math.nan)
    found = fit.found
    intervals, joint, profiled, drawn = {}, {}, {}, {}
    if found is None or best is None or figures is None:
        correlation, warnings = np.full((len(names),) * 2, math.nan), []
    else:
        free = list(file.free.values())

        def pairs(low: Iterable[float], high: Iterable[float]) -> dict[str, tuple[float, float]]:
            return {n: (f.value(float(a)), f.value(float(b))) for n, f, a, b in zip(names, free, low, high, strict=True)}

        intervals, joint = (pairs(best - half, best + half) for half in (found.half, found.joint_half))
        if fit.profiles:
            profiled = pairs([p.ends[0] for p in fit.profiles], [p.ends[1] for p in fit.profiles])
        if fit.bootstrap is not None:
            drawn = pairs(best + fit.bootstrap.low, best + fit.bootstrap.high)
        correlation, warnings = found.correlation, concerns(names, best, found)
        warnings += interval_concerns(names, lambda k, u: free[k].value(u), best, found, fit.profiles, fit.bootstrap)
        if fit._noise_known() and found.scale > 1.5:
            warnings.append(
                f"what is left is {found.scale:.2g} times the noise given: the model is not exact, and the intervals are widened "
                "by that"
            )
        if found.effective < 0.5 * found.samples:
            warnings.append(
                f"residuals hang together in time, as those of a model that is not exact: {found.samples} samples count as "
                f"{found.effective:.0f} in the intervals, which do not hold the error of the model itself"
            )
        warnings += [f"{e.name}: its run at the best fit failed" for e in file.experiments if e.name not in figures.best]
    bad = sum(bool(e.message) for e in evaluator.history)
    if bad:
        first = next(e.message for e in evaluator.history if e.message)
        warnings.append(f"{bad} of {len(evaluator.history)} evaluations failed or did not converge, the first: {first}")
    fitted = [e.name for e in file.experiments if not e.held_out]
    held_out = [e.name for e in file.experiments if e.held_out]
    return CalibrationResult(
        status,
        message,
        folder,
        values,
        intervals,
        joint,
        correlation,
        tuple(warnings),
        _errors(figures.best, fitted) if figures else {},
        _errors(figures.best, held_out) if figures else {},
        _errors(figures.reference, [*fitted, *held_out]) if figures else {},
        _noise(evaluator, fit),
        found.scale if found is not None else math.nan,
        len(evaluator.history),
        sum(e.ran for e in evaluator.history),
        profiled,
        drawn,
    )


def _noise(evaluator: Evaluator, fit: _Fit) -> dict[str, float]:
    if fit.found is None or fit.best is None:
        return {}
    owners = [(e.name, r.sensor or "") for e in evaluator.fitted for r in e.readings]
    blocks = fit._at("noise", fit.best).blocks
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
        What was asked for.
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
    for what, errors in (("fitted", result.errors), ("held out", result.held_out)):
        for experiment, groups in errors.items():
            for group, (rms, largest) in groups.items():
                other = result.reference.get(experiment, {}).get(group)
                beside = f"   at the reference {other[0]:.4g}" if other else ""
                lines.append(f"{what:9} {experiment}, {group}: error {rms:.4g} RMS, {largest:.4g} at most{beside}")
    lines += [f"warning: {text}" for text in result.warnings]
    lines.append(f"{result.evaluations} evaluations; {result.cases} cases run now")
    return "\n".join(lines)


def _write(result: CalibrationResult, path: Path, evaluator: Evaluator, fit: _Fit, figures: _Figures | None) -> None:
    """Write evaluations.csv, the figures, the page, and calibration.json last."""
    from femsim.base.versions import machine, versions
    from femsim.scene.scene_file import scene_parameters

    folder, file = result.folder, fit.file
    units = {p.name: p.unit for p in scene_parameters(evaluator.scene)}
    misfits = [misfit(e) for e in evaluator.history]
    content = {
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
        "correlation": [[_finite(float(x)) for x in row] for row in result.correlation], "warnings": list(result.warnings),
        "errors": {"fitted": result.errors, "held_out": result.held_out, "reference": result.reference},
        "intervals": _how(file, fit), "noise": result.noise, "scale": _finite(result.scale),
        "evaluations": result.evaluations, "cases_run": result.cases,
        "versions": versions(), "machine": machine(), "command": " ".join(sys.argv),
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }  # fmt: skip
    try:
        _write_evaluations(folder / "evaluations.csv", evaluator, misfits)
        if figures is not None:
            partial = folder / f".figures-{os.getpid()}"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            overlays = {}
            for name, comparisons in figures.best.items():
                for number, comparison in enumerate(comparisons, 1):
                    title = name if len(comparisons) == 1 else f"{name} {number}"
                    overlays[title] = comparison.write(partial / "comparisons" / title.replace(" ", "_")) / "overlay.svg"
            phases = [e.phase for e in evaluator.history]
            points = {n: [v[n] for v in (evaluator.values(e.unit) for e in evaluator.history)] for n in fit.names}
            pictures = plot_calibration(
                phases, misfits, points, {n: (units.get(n, ""), file.free[n].scale) for n in fit.names},
                [partial / "convergence.png", partial / "convergence.svg"],
            )  # fmt: skip
            profiles = _write_profiles(partial, result, fit, units)
            page = calibration_page(content, pictures[1], overlays, profiles)
            (partial / "report.html").write_text(page, encoding="utf-8")
            shutil.rmtree(folder / "comparisons", ignore_errors=True)
            for old in folder.glob("profiles.*"):  # of a file that asked for them
                old.unlink()
            for entry in partial.iterdir():
                os.replace(entry, folder / entry.name)
            partial.rmdir()
        write_json(folder / "calibration.json", content)
    except OSError as error:
        raise InputError(
            f"the results in {folder} cannot be written ({error.strerror}); the cases are kept: free the disk and use --resume."
        ) from error


def _write_profiles(folder: Path, result: CalibrationResult, fit: _Fit, units: Mapping[str, str]) -> Path | None:
    """Write the points of the profiles and draw them; give the figure as SVG, None without profiles."""
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
    axes = {n: (units.get(n, ""), f.scale) for n, f in zip(fit.names, free, strict=True)}
    paths = [folder / "profiles.png", folder / "profiles.svg"]
    return plot_profiles(
        curves, result.values, result.intervals, result.profile_intervals, result.bootstrap_intervals, axes, paths
    )[1]  # fmt: skip


def _how(file: CalibrationFile, fit: _Fit) -> dict[str, object]:
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


def _write_evaluations(path: Path, evaluator: Evaluator, misfits: Sequence[float]) -> None:
    partial = path.with_name(f".{path.name}-{os.getpid()}")
    with partial.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["evaluation", "phase", *evaluator.file.free, "misfit", "message"])
        for e, value in zip(evaluator.history, misfits, strict=True):
            values = [f"{v:.10g}" for v in evaluator.values(e.unit).values()]
            table.writerow([e.number, e.phase, *values, f"{value:.6g}" if math.isfinite(value) else "", e.message])
    os.replace(partial, path)


def misfit(evaluation: Evaluation) -> float:
    """Root mean square of the errors over the range of their group; NaN where a case failed."""
    if not evaluation.blocks:
        return math.nan
    scaled = [block.error / block.ranges for block in evaluation.blocks]
    return math.sqrt(sum(float((s**2).sum()) for s in scaled) / sum(s.size for s in scaled))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
