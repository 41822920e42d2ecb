"""The fit: from a start between the bounds to the best point, its derivatives and its intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from femsim.studies.calibration.bootstrap import Bootstrap, bootstrap_blocks, bootstrap_trials
from femsim.studies.calibration.estimate import Estimate, estimate, least_squares
from femsim.studies.calibration.evaluate import FIRST_NOISE, Block, Evaluation, Evaluator
from femsim.studies.calibration.profiles import Profile, profile
from femsim.studies.calibration.search import search

#: Residuals of a point whose run fails, in those of the start of the refinement.
_LARGE = 1e3
#: Tolerances that are left to gain where a refinement did not end by them.
_MUCH = 10.0
_LEAST_NOISE = 1e-4  # of the range of a group: what solvers and rounding leave


class _StoppedError(Exception):
    """The refinement cannot go on; the best point so far counts."""


class Fit:
    """The search for the best values: search, refinement, derivatives and intervals at the best point.

    Attributes
    ----------
    names : list of str
        Of the free parameters.
    sigma : list of ndarray, (c,)
        Standard deviation of a sample, by block and column, in SI; given, or estimated from the residuals.
    best : ndarray, (p,), optional
        Best point so far, unit coordinates; None where nothing ran.
    found : Estimate, optional
        Intervals at the best point.
    profiles : list of Profile
        One a parameter, where they are asked for.
    bootstrap : Bootstrap, optional
        Where it is asked for.
    converged : bool
        Whether the refinement ended by its tolerance.
    """

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
        """Search, refine, and find intervals; return a sentence about the end."""
        start = np.array([free.first for free in self.file.free.values()])
        self._evaluate("start", [start])
        search(self.file.search, len(self.names), lambda points: [self._cost(e) for e in self._evaluate("search", points)])
        self.best = self.lowest()
        if self.best is None:
            return f"No run succeeded: {self.evaluator.history[0].message}"
        known = self.noise_known()
        message = ""
        for phase in ("refine",) if known else ("refine", "refine, noise estimated"):
            if phase != "refine":
                self._estimate_noise()
            message = self._refine(phase)
        try:
            central = self._jacobian(self.best, "intervals", central=True)
        except _StoppedError as stop:
            return f"{stop} So there are no intervals."
        blocks = self.at("intervals", self.best).blocks
        residuals = [block.error / sigma for block, sigma in zip(blocks, self.sigma, strict=True)]
        constants = [block.constant / sigma for block, sigma in zip(blocks, self.sigma, strict=True)]
        self.found = estimate(
            residuals, central, self.prior_weight**2, self.file.confidence, known_noise=known, constants=constants
        )
        if "bootstrap" in self.file.intervals.methods:
            self.bootstrap = self._bootstrap(residuals, central, constants)
        if "profile" in self.file.intervals.methods:
            self.profiles = profile(
                self.best, self.residual(self.at("intervals", self.best)), self._stacked(central), self.found, self._residuals,
                evaluations=self.file.intervals.evaluations, step=self.file.refine.step,
            )  # fmt: skip
        return message

    def residual(self, evaluation: Evaluation) -> np.ndarray:
        """Residuals of an evaluation, one block after the other, priors last."""
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

    def at(self, phase: str, unit: np.ndarray) -> Evaluation:
        """Evaluate a point, or remember it."""
        return self._evaluate(phase, [np.asarray(unit)])[0]

    def _first_sigma(self, block: Block) -> np.ndarray:
        given = self.file.noise.model_dump()
        return np.array([given[kind] or FIRST_NOISE * span for kind, span in zip(block.kinds, block.ranges, strict=True)])

    def noise_known(self) -> bool:
        """Whether the file gives the noise of every kind of channel."""
        kinds = {kind for e in self._memory.values() for block in e.blocks for kind in block.kinds}
        return all(getattr(self.file.noise, kind) is not None for kind in kinds)

    def lowest(self) -> np.ndarray | None:
        """Return the point with the smallest cost, (p,); None where nothing ran."""
        there = [e for e in self._memory.values() if e.blocks]
        return min(there, key=self._cost).unit if there else None

    def _refine(self, phase: str) -> str:
        options, base = self.file.refine, self.at(phase, self._start())
        self.converged, failed = False, ""

        def residual(unit: np.ndarray) -> np.ndarray:
            evaluation = self.at(phase, unit)
            nonlocal failed
            failed = failed or ("" if evaluation.blocks else evaluation.message)
            return self.residual(evaluation) if evaluation.blocks else _LARGE * (np.abs(self.residual(base)) + 1.0)

        def jacobian(unit: np.ndarray) -> np.ndarray:
            return self._stacked(self._jacobian(unit, phase, central=False))

        try:
            _, self.converged, left = least_squares(
                residual, jacobian, self._start(), evaluations=options.evaluations, tolerance=options.tolerance
            )
        except _StoppedError as stop:
            self.best = self.lowest()
            return str(stop)
        self.best = self.lowest()
        if failed and left > _MUCH * options.tolerance:  # steps are as short as the tolerance because runs fail
            self.converged = False
            return (
                f"The refinement stopped beside runs that fail, though {100 * left:.2g} % are left to gain; the first: {failed}"
            )
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
        here = self.at(phase, unit)
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
        """Stack the derivatives of all blocks, priors last, as :meth:`residual` does."""
        return np.vstack([*(b.reshape(-1, len(self.names)) for b in blocks), np.diag(self.prior_weight)])

    def _residuals(self, units: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        return [self.residual(e) if e.blocks else None for e in self._evaluate("profile", units)]

    def _bootstrap(
        self, residuals: Sequence[np.ndarray], jacobians: Sequence[np.ndarray], constants: Sequence[np.ndarray]
    ) -> Bootstrap:
        options, prior, level = self.file.intervals, self.prior_weight**2, self.file.confidence
        if options.resample == "blocks":
            return bootstrap_blocks(
                residuals, jacobians, prior, level, draws=options.draws, seed=options.seed, constants=constants
            )
        trials = [(e.name, len(r.logs)) for e in self.evaluator.fitted for r in e.readings]
        return bootstrap_trials(residuals, jacobians, prior, level, draws=options.draws, seed=options.seed, trials=trials)

    def _estimate_noise(self) -> None:
        """Take the root mean square of the residuals of each channel, over all trials, as its noise, where none was given."""
        blocks, given = self.at("noise", self._start()).blocks, self.file.noise.model_dump()
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
