"""Profiles and bootstrap against closed forms and a slow twin; a calibration with them, interrupted and resumed; bad input."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from inline_engine import Inline
from small_calibrations import FIT, FREE, altered, assert_refused, write

import femsim as fs
from femsim.cli import execute
from femsim.studies.calibration import calibrate as calibrate_module
from femsim.studies.calibration.bootstrap import Bootstrap, block_length, bootstrap_blocks, bootstrap_trials
from femsim.studies.calibration.concerns import interval_concerns
from femsim.studies.calibration.estimate import Estimate, estimate
from femsim.studies.calibration.evaluate import Evaluation
from femsim.studies.calibration.profiles import Profile, profile
from viz import VizError, plot_profiles

Model = Callable[[np.ndarray], np.ndarray]


def noise_of(seed: int, m: int = 100, c: int = 2, memory: float = 0.0) -> np.ndarray:
    """Noise of the first order, unit variance, (m, c)."""
    noise = np.random.default_rng(seed).normal(size=(m, c))
    for k in range(1, m if memory else 0):
        noise[k] = memory * noise[k - 1] + math.sqrt(1 - memory**2) * noise[k]
    return noise


def fitted(errors: Model, start: Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Best fit of a model, and the derivatives (m, c, p) there."""
    from scipy.optimize import least_squares

    found = least_squares(lambda u: errors(u).ravel(), start, bounds=(0.0, 1.0), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    best: np.ndarray = found.x
    sides = [(errors(best + 1e-6 * e), errors(best - 1e-6 * e)) for e in np.eye(len(best))]
    return best, np.stack([(a - b) / 2e-6 for a, b in sides], axis=-1)


def profiled(
    errors: Model, start: Sequence[float], evaluations: int = 40, fails: Callable[[np.ndarray], bool] = lambda _: False
) -> tuple[np.ndarray, Estimate, list[Profile], list[int]]:
    """Best fit, estimate, profiles, and how many points were asked for in each round."""
    best, J = fitted(errors, start)
    found = estimate([errors(best)], [J], np.zeros(len(best)), 0.95, known_noise=False)
    rounds: list[int] = []

    def residuals(units: Sequence[np.ndarray]) -> list[np.ndarray | None]:
        rounds.append(len(units))
        assert all(0.0 <= x <= 1.0 for u in units for x in u)
        return [None if fails(u) else errors(u).ravel() for u in units]

    flat = J.reshape(-1, len(best))
    out = profile(best, errors(best).ravel(), flat, found, residuals, evaluations=evaluations, step=0.005)
    return best, found, out, rounds


# ------------------------------------------------------------------------------------------------ profiles


def test_a_linear_model_has_the_intervals_of_its_jacobian() -> None:
    """Residuals with a memory of 9 samples, which both count as the same number of independent ones."""
    x, noise = np.linspace(0.0, 1.0, 100)[:, None], noise_of(1, memory=0.8)
    best, found, profiles, rounds = profiled(lambda u: 30.0 * (u[0] - 0.4 + (u[1] - 0.6) * x) - noise, [0.4, 0.6])
    assert found.effective < 0.35 * found.samples
    for k, own in enumerate(profiles):
        assert own.ends == pytest.approx((best[k] - found.half[k], best[k] + found.half[k]), rel=1e-6)
        np.testing.assert_allclose(own.rises, [1.0, 0.25, 0.0, 0.25, 1.0], atol=1e-6)
    assert rounds == [4, 4, 4]  # all sides at once: middle, end, and the differences that make sure of it
    assert interval_concerns("ab", lambda _, u: u, best, found, profiles, None) == []


def test_a_prior_is_part_of_what_is_profiled() -> None:
    """A line of which the logs tell the level only, its slope a prior of 0.5 +- 0.02."""
    x, noise, weight = np.linspace(-1.0, 1.0, 100)[:, None], noise_of(9), 50.0
    J = np.stack([20.0 * np.ones((100, 2)), 1e-3 * x * np.ones((100, 2))], axis=-1)
    flat = np.vstack([J.reshape(-1, 2), [[0.0, 0.0], [0.0, weight]]])
    constant = np.concatenate([(-0.4 * J[..., 0] - noise).ravel(), [0.0, -0.5 * weight]])
    best = np.linalg.lstsq(flat, -constant, rcond=None)[0]
    rest = [(J @ best - 0.4 * J[..., 0] - noise)]
    found = estimate(rest, [J], np.array([0.0, weight**2]), 0.95, known_noise=True)
    residuals = lambda units: [flat @ u + constant for u in units]  # noqa: E731
    profiles = profile(best, flat @ best + constant, flat, found, residuals, evaluations=9, step=0.005)
    for k, own in enumerate(profiles):
        assert own.ends == pytest.approx((best[k] - found.half[k], best[k] + found.half[k]), rel=1e-6)
    assert profiles[1].ends == pytest.approx((0.46, 0.54), abs=2e-3)


def test_the_profile_of_an_exponential_is_known() -> None:
    """One parameter, run = e^(3u): the sum of squares rises by n (e^3u - e^3b)^2, so that e^3u = e^3b (1 +- 3 half)."""
    noise = noise_of(2)
    best, found, (own,), _ = profiled(lambda u: np.exp(3.0 * u[0]) - np.exp(1.5) - 14.0 * noise, [0.5])
    half = float(found.half[0])
    expected = [float(best[0]) + math.log(1.0 + sign * 3.0 * half) / 3.0 for sign in (-1.0, 1.0)]
    assert own.ends == pytest.approx(expected, abs=2e-3 * half)
    assert best[0] - own.ends[0] > 1.5 * (own.ends[1] - best[0])  # far from symmetric
    (text,) = interval_concerns("a", lambda _, u: u, best, found, [own], None)
    assert "ends elsewhere than the interval of the Jacobian" in text and "take the profile" in text


def test_the_others_are_fitted_again_along_a_bent_valley() -> None:
    """A line in a = u0 and b = u1 + 4 (u0 - 0.4)^2: the profile of u0 is that of a, whatever b is called."""
    x, noise = np.linspace(0.0, 1.0, 100)[:, None], noise_of(3)

    def errors(u: np.ndarray) -> np.ndarray:
        return np.asarray(3.0 * (u[0] - 0.4 + (u[1] + 4.0 * (u[0] - 0.4) ** 2 - 0.4) * x) - noise)

    best, found, profiles, _ = profiled(errors, [0.4, 0.4])
    half = float(found.half[0])
    assert profiles[0].ends == pytest.approx((best[0] - half, best[0] + half), abs=0.005 * half)
    bend = profiles[0].units[[0, -1], 1] - (best[1] + 4.0 * (best[0] - 0.4) ** 2)
    assert abs(bend).min() > 0.1 * half  # the valley bends


def decay(u: np.ndarray) -> np.ndarray:
    """A decay with amplitude and offset."""
    x = np.linspace(0.0, 1.0, 100)[:, None]
    return np.asarray(20.0 * (u[1] * np.exp(-6.0 * u[0] * x) + u[2] - 0.5 * np.exp(-2.4 * x) - 0.4) - noise_of(4))


def line_at_a_bound(u: np.ndarray) -> np.ndarray:
    """A line whose slope would fall below its bound, where its level is high."""
    x = np.linspace(0.0, 1.0, 100)[:, None]
    return np.asarray(5.0 * (u[0] - 0.4 + (u[1] - 0.02) * x) - noise_of(8))


@pytest.mark.parametrize(
    ("errors", "start", "most", "curved"), [(decay, [0.4, 0.5, 0.4], 70, 0.05), (line_at_a_bound, [0.4, 0.02], 20, 0.05)]
)
def test_profiles_agree_with_a_slow_twin(errors: Model, start: list[float], most: int, curved: float) -> None:
    """Brackets, and a whole nonlinear fit of the others between their bounds at each place."""
    from scipy.optimize import brentq, least_squares

    p = len(start)
    best, found, profiles, rounds = profiled(errors, start)
    assert sum(rounds) <= most  # 61 (without Broyden's corrections 83), and 14 (steps that do not know of bounds: 30)
    flat = fitted(errors, best)[1].reshape(-1, p)
    levels = found.half**2 / np.diag(np.linalg.inv(flat.T @ flat))

    def rise(value: float, k: int) -> float:
        others = [j for j in range(p) if j != k]

        def at(own: np.ndarray) -> np.ndarray:
            unit = np.zeros(p)
            unit[k], unit[others] = value, own
            return errors(unit).ravel()

        fit = least_squares(at, np.clip(best[others], 0.001, 0.999), bounds=(0.0, 1.0), xtol=1e-12, ftol=1e-12, gtol=1e-12)
        return 2.0 * float(fit.cost) - float((errors(best) ** 2).sum()) - float(levels[k])

    found_ends = 0
    for k, own in enumerate(profiles):
        for end, reason, bound in zip(own.ends, own.reasons, (0.0, 1.0), strict=True):
            if reason:
                assert reason == "bound" and rise(bound, k) < 0
            else:
                assert end == pytest.approx(brentq(rise, best[k], bound, args=(k,), xtol=1e-6), abs=0.005 * float(found.half[k]))
                found_ends += 1
    assert found_ends >= 2 * p - 1
    differ = [abs(abs(e - best[k]) / found.half[k] - 1) for k, own in enumerate(profiles) for e in own.ends if math.isfinite(e)]
    assert max(differ) > curved


def test_a_side_without_an_end_says_why() -> None:
    """The bound is nearer than the end; runs fail; the evaluations are spent; and the logs do not depend on a parameter."""
    noise = noise_of(5)
    weak = lambda u: 0.3 * (u[:1] - 0.9) - noise  # noqa: E731
    best, found, (own,), rounds = profiled(weak, [0.5])
    assert own.reasons[1] == "bound" and math.isnan(own.ends[1]) and own.reached[1] == 1.0 and len(rounds) < 5
    (text,) = interval_concerns(["E"], lambda _, u: 10 * u, best, found, [own], None)[:1]
    assert text.startswith("the profile of E has no") and "there is none before the bound" in text

    line = lambda u: 20.0 * (u[:1] - 0.5) - noise  # noqa: E731
    best, found, _, _ = profiled(line, [0.5])
    half = float(found.half[0])
    wall = float(best[0]) + 0.8 * half
    _, _, (own,), _ = profiled(line, [0.5], fails=lambda u: u[0] > wall)
    assert own.reasons == ("", "failed") and wall - 0.05 * half < own.reached[1] <= wall
    assert own.ends[0] == pytest.approx(best[0] - half, abs=1e-6)
    (text,) = interval_concerns(["E"], lambda _, u: 10 * u, best, found, [own], None)
    assert f"no upper end: runs beyond {10 * own.reached[1]:.4g} fail" in text

    best, found, (own,), rounds = profiled(line, [0.5], evaluations=1)
    assert (
        own.reasons == ("budget", "budget") and rounds == [2] and own.reached[1] == pytest.approx(best[0] + 0.5 * found.half[0])
    )
    assert all("raise them" in text for text in interval_concerns(["E"], lambda _, u: u, best, found, [own], None))

    _, found, profiles, _ = profiled(lambda u: 20.0 * (u[:1] - 0.5) + 0.0 * u[1] - noise, [0.5, 0.3])
    assert found.blind.tolist() == [False, True]
    assert profiles[1].reasons == ("bound", "bound") and profiles[1].rises.max() < 1e-12
    assert np.isfinite(profiles[0].ends).all()


def test_a_better_fit_beside_the_best_is_said() -> None:
    """The fit stopped in the wrong valley of two."""
    noise = noise_of(7)

    def errors(u: np.ndarray) -> np.ndarray:
        return 3.0 * np.array([[1.0, 2.0]]) * (8.0 * (u[:1] - 0.5) * (u[:1] - 0.6) + 0.4 * (u[:1] - 0.5)) - noise

    wrong = np.array([0.49])
    J = (errors(wrong + 1e-6) - errors(wrong - 1e-6))[..., None] / 2e-6
    found = estimate([errors(wrong)], [J], np.zeros(1), 0.95, known_noise=False)
    residual = errors(wrong).ravel()
    lowered = profile(
        wrong,
        residual,
        J.reshape(-1, 1),
        found,
        lambda units: [0.9 * errors(u).ravel() for u in units],
        evaluations=9,
        step=0.005,
    )
    texts = interval_concerns(["E"], lambda _, u: u, wrong, found, lowered, None)
    assert any("found a better fit than the refinement: start at E 0." in text for text in texts)


# ------------------------------------------------------------------------------------------------ bootstrap


def line_fit(seed: int, m: int = 200, c: int = 2, memory: float = 0.0) -> tuple[list[np.ndarray], list[np.ndarray], Estimate]:
    """Residuals and derivatives at the best fit of a line, and the intervals of the Jacobian."""
    x, noise = np.linspace(0.0, 1.0, m), noise_of(seed, m, c, memory)
    J = 30.0 * np.stack([np.ones((m, c)), np.outer(x, np.ones(c))], axis=-1)
    change = np.linalg.lstsq(J.reshape(-1, 2), noise.ravel(), rcond=None)[0]
    residuals, jacobians = [J @ change - noise], [J]
    return residuals, jacobians, estimate(residuals, jacobians, np.zeros(2), 0.95, known_noise=False)


def test_a_bootstrap_of_white_residuals_agrees_with_the_jacobian() -> None:
    """Blocks of one sample give s^2 (J^T J)^-1; 20,000 draws leave 1 % of chance in it, and 2 % in an end."""
    residuals, jacobians, found = line_fit(1, 400, 1)
    scale2, J = float((residuals[0] ** 2).sum()) / 398, jacobians[0].reshape(-1, 2)
    drawn = bootstrap_blocks(residuals, jacobians, np.zeros(2), 0.95, draws=20_000, seed=0)
    assert drawn.lengths == (1,) and drawn.blocks == (400,)
    np.testing.assert_allclose(drawn.deviation, np.sqrt(scale2 * np.diag(np.linalg.inv(J.T @ J))), rtol=0.015)
    np.testing.assert_allclose(-drawn.low, found.half, rtol=0.05)
    np.testing.assert_allclose(drawn.high, found.half, rtol=0.05)
    again = bootstrap_blocks(residuals, jacobians, np.zeros(2), 0.95, draws=20_000, seed=0)
    assert np.array_equal(again.low, drawn.low) and np.array_equal(again.high, drawn.high)
    other = bootstrap_blocks(residuals, jacobians, np.zeros(2), 0.95, draws=20_000, seed=1)
    assert not np.array_equal(other.low, drawn.low)


def test_blocks_keep_most_of_what_hangs_together() -> None:
    """Noise of the first order, 0.8: its mean deviates three times as much as white noise; single samples would say one."""
    m = 2000
    true = math.sqrt(9.0 / (2 * m)) / 30.0
    ratios: list[float] = []
    lengths: list[int] = []
    for seed in range(8):
        noise = noise_of(seed, m, memory=0.8)
        J = 30.0 * np.ones((m, 2, 1))
        drawn = bootstrap_blocks([noise - noise.mean()], [J], np.zeros(1), 0.95, draws=500, seed=seed)
        ratios.append(float(drawn.deviation[0]) / true)
        lengths += drawn.lengths
    assert 0.85 < np.mean(ratios) < 1.02
    # Politis and White: (2 G^2 / D)^(1/3) m^(1/3) with G = 2 0.8 / 0.2^2 = 40 and D = 4/3 9^2
    assert np.median(lengths) == pytest.approx((2 * 40**2 / (4 / 3 * 81) * m) ** (1 / 3), rel=0.15)
    assert block_length(np.linspace(0.0, 1.0, 200)[:, None]) == 50  # a quarter


def test_an_offset_of_the_residuals_does_not_move_the_interval() -> None:
    """A slope without a level, residuals of mean 1: blocks move the offset under other derivatives, which must not count."""
    x = np.linspace(0.0, 1.0, 300)[:, None]
    raw = 1.0 + noise_of(1, 300, 1)
    residual = raw - x * (raw * x).sum() / (x**2).sum()
    drawn = bootstrap_blocks([residual], [30.0 * x[..., None]], np.zeros(1), 0.95, draws=4000, seed=0)
    assert abs(drawn.low[0] + drawn.high[0]) < 0.1 * drawn.high[0]


def test_trials_that_differ_as_a_whole_give_the_standard_error_of_their_mean() -> None:
    """Each trial is off by a number of its own; two instruments of the same trials tell nothing more than one."""
    offsets = np.random.default_rng(3).normal(size=8)
    J = np.ones((50, 8, 1)) * 30.0
    residual = np.ones((50, 1)) * (offsets - offsets.mean())
    true = offsets.std(ddof=1) / math.sqrt(8) / 30.0
    options = {"draws": 20_000, "seed": 0}
    one = bootstrap_trials([residual], [J], np.zeros(1), 0.95, trials=[("a", 8)], **options)
    assert one.deviation[0] == pytest.approx(true, rel=0.02) and one.blocks == (8,) and one.lengths == ()
    both = bootstrap_trials([residual] * 2, [J] * 2, np.zeros(1), 0.95, trials=[("a", 8), ("a", 8)], **options)
    assert both.deviation[0] == pytest.approx(true, rel=0.02)
    apart = bootstrap_trials([residual] * 2, [J] * 2, np.zeros(1), 0.95, trials=[("a", 8), ("b", 8)], **options)
    assert apart.deviation[0] == pytest.approx(true / math.sqrt(2), rel=0.02)


def test_trials_weigh_as_often_as_they_are_drawn() -> None:
    """All 5^5 ways to draw five trials that tell differently much."""
    rng = np.random.default_rng(5)
    J = 30.0 * np.arange(1.0, 6.0)[:, None] * np.ones((50, 5, 1))
    noise = np.ones((50, 1)) * rng.normal(size=5)
    residual = noise - J[..., 0] * (noise * J[..., 0]).sum() / (J**2).sum()
    scores, weights = (residual * J[..., 0]).sum(axis=0), (J[..., 0] ** 2).sum(axis=0)
    ways = [np.array(way) for way in itertools.product(range(5), repeat=5)]
    changes = [-math.sqrt(5 / 4) * scores[way].sum() / weights[way].sum() for way in ways]
    drawn = bootstrap_trials([residual], [J], np.zeros(1), 0.95, draws=20_000, seed=0, trials=[("a", 5)])
    assert drawn.deviation[0] == pytest.approx(np.std(changes), rel=0.02)
    assert (drawn.low[0], drawn.high[0]) == pytest.approx(tuple(np.quantile(changes, [0.025, 0.975])), rel=0.05)


@pytest.mark.parametrize("trials", [False, True])
def test_priors_and_parameters_without_effect(trials: bool) -> None:
    """What only a prior tells has the deviation of the prior; what nothing tells has no interval."""
    residuals, jacobians, _ = line_fit(1)
    blind = [np.concatenate([j, np.zeros((*j.shape[:2], 1))], axis=2) for j in jacobians]

    def drawn(prior: float) -> Bootstrap:
        weights = np.array([0.0, 0.0, prior])
        if trials:
            return bootstrap_trials(residuals, blind, weights, 0.95, draws=20_000, seed=0, trials=[("a", 2)])
        return bootstrap_blocks(residuals, blind, weights, 0.95, draws=20_000, seed=0)

    assert drawn(100.0).deviation[2] == pytest.approx(0.1, rel=0.02)
    without = drawn(0.0)
    assert math.isnan(without.low[2]) and math.isnan(without.high[2]) and np.isfinite(without.low[:2]).all()


def test_a_parameter_of_one_trial_has_no_interval_by_trials() -> None:
    """A third of the draws have none of it: their equations had no solution, and all the calibration ended in a traceback."""
    residuals, jacobians, _ = line_fit(1, 5)
    trials, slopes = np.repeat(residuals[0][:, :1], 10, axis=1), np.repeat(jacobians[0][:, :1], 10, axis=1)
    slopes[:, 1:, 1] = 0.0  # the other trials end before the slope acts
    found = estimate([trials], [slopes], np.zeros(2), 0.95, known_noise=False)
    drawn = bootstrap_trials([trials], [slopes], np.zeros(2), 0.95, draws=500, seed=0, trials=[("a", 10)])
    assert np.isfinite([drawn.low[0], drawn.high[0]]).all() and np.isnan([drawn.low[1], drawn.high[1]]).all()
    (text,) = interval_concerns("ab", lambda _, u: u, np.full(2, 0.5), found, [], drawn)
    assert text.startswith("the bootstrap has no interval of b: trials")


def test_too_few_blocks_or_trials_are_said() -> None:
    residuals, jacobians, found = line_fit(2, 40, memory=0.95)
    drawn = bootstrap_blocks(residuals, jacobians, np.zeros(2), 0.95, draws=200, seed=0)
    (text,) = interval_concerns("ab", lambda _, u: u, np.full(2, 0.5), found, [], drawn)
    assert f"draws from {drawn.blocks[0]} blocks of a reading only; its intervals are too narrow" in text


# ------------------------------------------------------------------------------------------------ the whole of it

ASK = '[intervals]\nmethods = ["profile", "bootstrap"]\ndraws = 500\n'
SHORT = FREE + ASK + FIT.replace("evaluations = 8", "evaluations = 2")


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate_module, "Engine", Inline)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, fs.CalibrationResult]:
    folder = tmp_path_factory.mktemp("intervals")
    path = write(folder, SHORT, noise=2e-3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate_module, "Engine", Inline)
        return path, fs.calibrate(path, out=folder / "fit", workers=1)


def test_a_calibration_gives_all_three_intervals(calibrated: tuple[Path, fs.CalibrationResult]) -> None:
    """A smooth model and white noise: the three agree, and none of them is another one copied."""
    _, result = calibrated
    assert result.status == "converged" and result.warnings == ()
    for name, true in {"young_modulus": 2e4, "density": 1300.0}.items():
        low, high = result.intervals[name]
        for other in (result.profile_intervals[name], result.bootstrap_intervals[name]):
            assert other[0] < result.values[name] < other[1] and other != (low, high)
            assert other == pytest.approx((low, high), abs=0.15 * (high - low))
        assert result.profile_intervals[name][0] < true < result.profile_intervals[name][1]


def test_the_folder_holds_profiles_and_says_how(calibrated: tuple[Path, fs.CalibrationResult]) -> None:
    _, result = calibrated
    content = json.loads((result.folder / "calibration.json").read_text())
    density = content["parameters"]["density"]
    assert tuple(density["profile_interval"]) == result.profile_intervals["density"]
    assert tuple(density["bootstrap_interval"]) == result.bootstrap_intervals["density"]
    assert content["intervals"]["profile"]["density"] == {"lower": "", "upper": ""}
    assert content["intervals"]["bootstrap"]["resample"] == "blocks" and content["intervals"]["bootstrap"]["block_lengths"] == [1]
    page = (result.folder / "report.html").read_text()
    assert (
        page.count("<svg") == 3
        and "Intervals of 95 %" in page
        and "<th>profile</th><th>bootstrap</th>" in page
        and "src=" not in page
    )
    assert (result.folder / "profiles.png").stat().st_size > 5000
    with (result.folder / "profiles.csv").open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["profile_of"] == "density"]
    values, rises = ([float(row[key]) for row in rows] for key in ("density", "rise_by_level"))
    assert values == sorted(values) and min(rises) == 0.0 and values[rises.index(0.0)] == pytest.approx(result.values["density"])
    assert [rises[0], rises[-1]] == pytest.approx([1.0, 1.0], abs=0.05)
    phases = {row.split(",")[1] for row in (result.folder / "evaluations.csv").read_text().splitlines()[1:]}
    assert "profile" in phases


@pytest.mark.usefixtures("inline", "undrawn")
def test_a_profile_that_was_interrupted_goes_on_and_asks_the_same(
    calibrated: tuple[Path, fs.CalibrationResult], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = calibrated
    seen = 0

    def stop(evaluation: Evaluation) -> None:
        nonlocal seen
        seen += evaluation.phase == "profile"
        if seen == 5:
            raise KeyboardInterrupt

    cut = fs.calibrate(path, out=tmp_path / "cut", cases=result.folder / "cases", on_evaluation=stop)
    assert cut.status == "interrupted" and cut.intervals == {} and cut.profile_intervals == {}
    whole = fs.calibrate(path, out=tmp_path / "cut", cases=result.folder / "cases", resume=True)
    assert whole.cases == 0 and whole.evaluations == result.evaluations
    assert whole.profile_intervals == result.profile_intervals and whole.bootstrap_intervals == result.bootstrap_intervals
    assert (
        execute(["calibrate", str(path), "--out", str(tmp_path / "cut"), "--cases", str(result.folder / "cases"), "--resume"])
        == 0
    )
    out = capsys.readouterr().out
    low, high = result.profile_intervals["density"]
    assert f"profile {low:.6g} to {high:.6g}   bootstrap " in out

    path.with_name("plain.toml").write_text(path.read_text().replace(ASK, ""))
    plain = fs.calibrate(path.with_name("plain.toml"), out=tmp_path / "cut", cases=result.folder / "cases", resume=True)
    assert plain.intervals == result.intervals and plain.profile_intervals == {} == plain.bootstrap_intervals
    assert not list((tmp_path / "cut").glob("profiles.*"))  # nothing old beside it
    assert "Intervals of" not in (tmp_path / "cut" / "report.html").read_text()


@pytest.mark.usefixtures("inline", "undrawn")
def test_a_side_without_an_end_is_in_all_outputs(
    calibrated: tuple[Path, fs.CalibrationResult], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A parameter without effect: no end of its profile, no interval of its bootstrap."""
    free = FREE.replace(
        "density = { between = [500, 2000] }", "unused = { between = [0.1, 1], scale = 'log' }\n[parameters]\ndensity = 1300.0\n"
    )
    path = write(tmp_path, free + ASK + FIT.replace("evaluations = 8", "evaluations = 2"), noise=2e-3)
    result = fs.calibrate(path, out=tmp_path / "fit", workers=1)
    assert all(math.isnan(end) for end in (*result.profile_intervals["unused"], *result.bootstrap_intervals["unused"]))
    assert sum("the profile of unused has no" in text for text in result.warnings) == 2
    content = json.loads((result.folder / "calibration.json").read_text())
    assert result.intervals["unused"] == (0.0, math.inf) and content["parameters"]["unused"]["interval"] == [0.0, None]
    assert content["parameters"]["unused"]["profile_interval"] == [None, None]
    assert content["parameters"]["unused"]["bootstrap_interval"] == [None, None]
    assert content["intervals"]["profile"]["unused"] == {"lower": "bound", "upper": "bound"}
    assert "<td>no end to no end</td>" in (result.folder / "report.html").read_text()
    assert execute(["calibrate", str(path), "--out", str(tmp_path / "fit"), "--resume"]) == 0
    assert "profile no end to no end" in capsys.readouterr().out


def test_profiles_are_drawn_on_wide_axes_and_without_ends(tmp_path: Path) -> None:
    """A parameter over decades, one without an upper end, one of which only the best fit is known; and none at all."""
    curves = {
        "wide": ([1.0, 10.0, 100.0], [1.0, 0.0, 1.0]),
        "open": ([0.1, 0.4, 1.0], [1.0, 0.0, 0.3]),
        "lost": ([0.5], [0.0]),
        "fourth": ([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]),
    }
    values = {name: points[len(points) // 2] for name, (points, _) in curves.items()}
    intervals = {"wide": (2.0, 50.0), "open": (0.1, 0.7), "lost": (0.4, 0.6), "fourth": (-1.0, 1.0)}
    profiles = {"wide": (1.0, 100.0), "open": (0.1, math.nan), "lost": (math.nan, math.nan), "fourth": (-1.0, 1.0)}
    axes = {name: ("Pa", "log" if name == "wide" else "linear") for name in curves}
    paths = [tmp_path / "p.png", tmp_path / "p.svg"]
    assert plot_profiles(curves, values, intervals, profiles, {}, axes, paths) == paths
    text = paths[1].read_text()
    assert all(f">{name} [Pa]<" in text for name in curves) and ">bootstrap<" not in text and ">profile<" in text
    assert text.count(">Jacobian<") == 1 and paths[0].stat().st_size > 10_000
    with pytest.raises(VizError, match="without a parameter"):
        plot_profiles({}, {}, {}, {}, {}, {}, paths)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("draws", "drawz", r"intervals\.drawz: the key is unknown; did you mean 'draws'\? There are draws, evaluations"),
        ("[intervals]", "[interval]", r"interval: the key is unknown; did you mean 'intervals'"),
        ('"profile"', '"profil"', r"intervals\.methods\.1 is 'profil', but must be 'profile' or 'bootstrap'"),
        ("500", "10", r"intervals\.draws is 10, but must be greater than or equal to 100"),
        ("draws", "evaluations = 0\ndraws", r"intervals\.evaluations is 0"),
        ("draws", 'resample = "trails"\ndraws', r"intervals\.resample is 'trails', but must be 'blocks' or 'trials'"),
        (
            "draws",
            'resample = "trials"\ndraws',
            r"a reading of 'rest' has 1; give at least 5 logs, or take intervals\.resample \"blocks\"",
        ),
    ],
)
def test_wrong_options_are_refused_in_words(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert_refused(write(tmp_path, FREE + altered(ASK, old, new) + FIT), message)
