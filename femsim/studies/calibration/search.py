"""Look for a good start between the bounds. The same seed asks for the same points, so that existing cases are reused."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from femsim.base.errors import InputError
from femsim.studies.calibration.file import Search

Costs = Callable[[Sequence[np.ndarray]], list[float]]
_FAILED = 1e100  # its square is a number too


def search(options: Search, dimension: int, costs: Costs) -> None:
    """Ask for the cost of points of the unit cube, in batches; the caller keeps the best.

    Parameters
    ----------
    options : Search
        Method, number of evaluations, batch, seed.
    dimension : int
        Number of free parameters.
    costs : callable
        ``costs(points (k, dimension)) -> (k,)``, inf where a case failed.

    Raises
    ------
    InputError
        Optuna is needed and not installed.
    """
    if options.method != "none":
        {"tpe": _tpe, "differential_evolution": _evolve, "sobol": _sobol}[options.method](options, dimension, costs)


def _sobol(options: Search, dimension: int, costs: Costs) -> None:
    from scipy.stats import qmc

    sampler = qmc.Sobol(dimension, rng=np.random.default_rng(options.seed))
    # a power of two is drawn, for balance; the first ones are taken
    points = sampler.random_base2(max(1, math.ceil(math.log2(options.evaluations))))[: options.evaluations]
    for first in range(0, options.evaluations, options.batch):
        costs(points[first : min(first + options.batch, options.evaluations)])


def _tpe(options: Search, dimension: int, costs: Costs) -> None:
    try:
        import optuna
    except ImportError as error:
        raise InputError(
            'search.method "tpe" needs optuna, which is not installed; install "femsim[identify]", or take '
            '"differential_evolution".'
        ) from error
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        startup = max(options.batch, options.evaluations // 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(seed=options.seed, n_startup_trials=startup, multivariate=True)
        study = optuna.create_study(sampler=sampler)
        axes: dict[str, optuna.distributions.BaseDistribution] = {
            f"u{k}": optuna.distributions.FloatDistribution(0.0, 1.0) for k in range(dimension)
        }
        for first in range(0, options.evaluations, options.batch):
            trials = [study.ask(axes) for _ in range(min(options.batch, options.evaluations - first))]
            points = [np.array([trial.params[name] for name in axes]) for trial in trials]
            for trial, cost in zip(trials, costs(points), strict=True):
                if math.isfinite(cost):
                    study.tell(trial, cost)
                else:
                    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    finally:
        optuna.logging.set_verbosity(verbosity)


def _evolve(options: Search, dimension: int, costs: Costs) -> None:
    from scipy.optimize import differential_evolution

    def together(_: Callable[[np.ndarray], float], points: Iterable[np.ndarray]) -> list[float]:
        return [cost if math.isfinite(cost) else _FAILED for cost in costs([np.array(point) for point in points])]

    def single(point: np.ndarray) -> float:
        return together(single, [point])[0]

    size = max(5, min(options.batch, options.evaluations))
    differential_evolution(
        single, [(0.0, 1.0)] * dimension, init=_population(size, dimension, options.seed), polish=False, tol=0.0, atol=0.0,
        maxiter=max(0, options.evaluations // size - 1), rng=np.random.default_rng(options.seed), updating="deferred",
        workers=together,
    )  # fmt: skip


def _population(size: int, dimension: int, seed: int) -> np.ndarray:
    from scipy.stats import qmc

    return np.asarray(qmc.LatinHypercube(dimension, rng=np.random.default_rng(seed)).random(size))
