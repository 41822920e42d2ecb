"""When in a run a log starts: shifts, signs and gains that fit, against the plain sum and against what was planted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from experiment import SWINGS, pulled, write_csv

import femsim as fs
from femsim.studies.comparison.alignment import find_lag


def test_lag_against_the_plain_sum() -> None:
    """The quick search gives the shift whose overlap a line explains best, as loops over all shifts find it."""
    rng = np.random.default_rng(5)
    long = np.cumsum(rng.normal(size=160))[:, None]
    short = long[37:117] * 2.0 + rng.normal(0, 0.3, (80, 1)) + 4.0
    best = max(range(-40, 121), key=lambda shift: plain_score(long[:, 0], short[:, 0], shift))
    lag = find_lag(long, short, np.ones(1), least=-1000, greatest=1000)
    assert lag is not None and best == 37 and abs(lag.samples - best) < 0.5
    assert lag.explained == pytest.approx(plain_score(long[:, 0], short[:, 0], 37), rel=1e-9)
    other = find_lag(short, long, np.ones(1), least=-1000, greatest=1000)
    assert other is not None and other.samples == pytest.approx(-lag.samples, abs=0.05)
    flipped = find_lag(long, -short, np.ones(1), least=-1000, greatest=1000)
    assert flipped is not None and flipped.samples == pytest.approx(lag.samples, abs=0.05)
    bounded = find_lag(long, short, np.ones(1), least=50, greatest=60)
    assert bounded is not None and 50 <= bounded.samples <= 60
    assert find_lag(np.ones((50, 1)), short, np.ones(1), least=-99, greatest=99) is None


def test_long_records_are_correlated_by_transforms_to_the_same_score() -> None:
    rng = np.random.default_rng(6)
    long = np.cumsum(rng.normal(size=1500))[:, None]
    short = long[437:1237] * 2.0 + rng.normal(0, 0.3, (800, 1)) + 4.0
    lag = find_lag(long, short, np.ones(1), least=-10_000, greatest=10_000)
    assert lag is not None and abs(lag.samples - 437) < 0.5
    assert lag.explained == pytest.approx(plain_score(long[:, 0], short[:, 0], 437), rel=1e-9)


def plain_score(a: np.ndarray, b: np.ndarray, shift: int) -> float:
    pairs = [(a[j + shift], b[j]) for j in range(len(b)) if 0 <= j + shift < len(a)]
    if len(pairs) < 0.5 * min(len(a), len(b)):
        return -1.0
    x, y = np.array(pairs).T
    gain = float(np.clip(np.polyfit(x, y, 1)[0], 0.5, 2.0))
    explained = 1.0 - np.var(y - gain * x) / np.var(y)
    share = max(np.var(part) * len(part) / (np.var(whole) * len(whole)) for part, whole in ((x, a), (y, b)))
    return float(max(explained, 0.0) * min(share, 1.0))


def test_a_swing_is_not_aligned_half_a_period_or_a_few_periods_off() -> None:
    """Let go from rest at 8 Hz, the log dies out faster than the run: the true lag of 10.5 samples, to a quarter of a sample."""
    time = np.arange(0.0, 2.0, 0.01)

    def swing(damping: float, start: float) -> np.ndarray:
        t = np.maximum(time - start, 0.0)
        return (np.exp(-damping * t) * np.sin(16 * np.pi * t))[:, None]

    run = swing(1.0, 0.3)
    for damping in (1.0, 2.0, 4.0):
        log = (swing(damping, 0.195) + np.random.default_rng(0).normal(0.0, 0.05, (200, 1)))[:170]
        lag = find_lag(run, log, np.ones(1), least=-100, greatest=100)
        assert lag is not None and lag.samples == pytest.approx(10.5, abs=0.25), damping
    climbed = find_lag(run, run[3:], np.ones(1), least=-50, greatest=50, near=0)
    assert climbed is not None and climbed.samples == pytest.approx(3, abs=0.05)
    steady = np.sin(16 * np.pi * time)[:, None] * (time[:, None] > 0.3)  # better a whole period later, where all of it is a swing
    late = np.sin(16 * np.pi * (time - 0.02))[:, None]
    climbed = find_lag(steady, late, np.ones(1), least=-50, greatest=50, near=0)
    assert climbed is not None and climbed.samples == pytest.approx(-2, abs=0.3)


@pytest.mark.parametrize("name", SWINGS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_wrong_sign_does_not_move_a_swing_by_half_a_period(tmp_path: Path, name: str, sign: float) -> None:
    """Half a period off, a swing that grows has the right sign and nearly the right size: its lag was wrong without a word."""
    time = np.arange(1, 401) * 0.01
    run, own = pulled(time, fx=SWINGS[name](time)), np.arange(0.4, 3.4, 0.01)
    values = sign * SWINGS[name](own) + np.random.default_rng(2).normal(0.0, 0.01, len(own))
    result = fs.compare(run, write_csv(tmp_path / "log.csv", own - 0.4, values[:, None], "time,Fx"))
    assert result.trials[0].offset == pytest.approx(0.4, abs=2e-3)
    assert result.axes["fx"].gain == pytest.approx(sign, abs=0.02)
    assert [text for text in result.warnings if "sign" in text] == list(result.warnings) and len(result.warnings) == (sign < 0)
    late = fs.compare(run, tmp_path / "log.csv", {"time": {"offset": 0.38}})
    assert late.trials[0].lags["fx"] == pytest.approx(-0.02, abs=2e-3)  # also of the turned one


def test_another_gain_that_fits_better_elsewhere_is_said(tmp_path: Path) -> None:
    time = np.arange(1, 401) * 0.01
    run, own = pulled(time, fx=SWINGS["grows"](time)), np.arange(0.4, 3.4, 0.01)
    result = fs.compare(run, write_csv(tmp_path / "log.csv", own - 0.4, 3.0 * SWINGS["grows"](own)[:, None], "time,Fx"))
    assert result.trials[0].offset == pytest.approx(1.17, abs=0.01)  # a period off, where the run is stronger
    (text,) = [text for text in result.warnings if "by a gain beyond 1/2 to 2, and from 0.4 s of the run on, it" in text]
    assert text.endswith("100.0 instead of 95.4 % of its variation: check its sign and unit, or give time.offset in the card")
    noise = np.random.default_rng(1).normal(0.0, 0.2, len(own))
    for sign in (1.0, -1.0):
        write_csv(tmp_path / "log.csv", own - 0.4, sign * SWINGS["grows"](own)[:, None] + noise[:, None], "time,Fx")
        result = fs.compare(run, tmp_path / "log.csv")
        assert any("turned to the opposite sign, and from 0." in text for text in result.warnings) == (sign < 0)


@pytest.mark.parametrize("rest", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("end", [1.7, 2.0])
def test_a_log_that_rests_before_the_run_and_ends_early_is_not_put_into_another_period(
    tmp_path: Path, rest: float, end: float
) -> None:
    """A swing that grows; the log is a copy of the run that begins and ends at other times."""
    time = np.arange(1, 201) * 0.01
    swing = 5.0 * np.sin(3.0 * np.pi * time) * time**2
    own = np.arange(1 - round(100 * rest), round(100 * end) + 1) * 0.01
    log = write_csv(tmp_path / "log.csv", own - own[0], np.interp(own, [0.0, *time], [0.0, *swing])[:, None], "time,Fx")
    result = fs.compare(pulled(time, fx=swing), log)
    assert result.trials[0].offset == pytest.approx(own[0], abs=1e-3) and result.warnings == ()
    assert result.axes["fx"].rmse < 1e-9


def test_a_lag_that_any_start_fits_is_called_uncertain(tmp_path: Path) -> None:
    """A part of an even ramp lies anywhere on it; with the bend where it begins it does not."""
    time = np.arange(1, 201) * 0.01
    run = pulled(time, fx=np.clip(time - 0.2, 0.0, None))
    for start, uncertain in ((0.5, True), (0.1, False)):
        own = np.arange(start, 1.6, 0.002)
        log = write_csv(tmp_path / "log.csv", own - start, np.clip(own - 0.2, 0.0, None)[:, None], "time,Fx")
        words = [w for w in fs.compare(run, log).warnings if "apart fit the run alike, so the lag found is uncertain" in w]
        assert bool(words) == uncertain, start


def test_a_fraction_of_a_sample_is_found_where_the_overlap_changes_with_the_shift() -> None:
    """A part is lifted once: a shift loses more of the record on one side than on the other, and must not be drawn there."""
    time = np.arange(0.0, 1.6, 0.01)

    def lifted(late: float) -> np.ndarray:  # m; late in samples
        t = np.clip((time - 0.01 * late - 0.7) / 0.9, 0.0, 1.0)
        return (0.03 * t * t * (1.5 - 0.5 * t))[:, None]  # still moving when the record ends

    same = find_lag(lifted(0.0), lifted(0.0), np.ones(1), least=-50, greatest=50)
    assert same is not None and same.samples == 0.0
    for late in (0.3, -0.4, 8.3, -9.4):  # also beyond what the longer overlap is worth
        lag = find_lag(lifted(late), lifted(0.0), np.ones(1), least=-50, greatest=50)
        assert lag is not None and lag.samples == pytest.approx(late, abs=0.03), late
        channels = np.hstack([lifted(late), -2.0 * lifted(late)])  # a wrong sign: any gain
        lag = find_lag(-channels, np.hstack([lifted(0.0), -2.0 * lifted(0.0)]), np.full(2, 0.5), least=-50, greatest=50)
        assert lag is not None and lag.samples == pytest.approx(late, abs=0.03), late
        gaps = lifted(0.0)
        gaps[40:44] = np.nan
        lag = find_lag(lifted(late), gaps, np.ones(1), least=-50, greatest=50)
        assert lag is not None and lag.samples == pytest.approx(late, abs=0.03), late


def test_the_lag_that_is_left_is_found_in_forces_that_do_not_swing() -> None:
    """Climbed from no lag: a force that rises and holds, a step, a ramp, a swing that dies out; noise of 0.3 % of the range."""
    time = np.arange(0.0, 2.0, 0.01)
    shapes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "rises and holds": lambda t: np.clip((t - 0.5) / 0.5, 0.0, 1.0),
        "step": lambda t: 0.5 * np.tanh((t - 1.0) / 0.05),
        "ramp from rest": lambda t: np.clip(t - 0.3, 0.0, None),
        "dies out": lambda t: np.exp(-2.0 * t) * np.cos(3.0 * np.pi * t),
    }
    for name, shape in shapes.items():
        for late in (-10.0, -3.0, 2.0, 5.0, 10.0):
            for noise in (0.0, 0.003):
                run, log = shape(time)[:, None], shape(time - 0.01 * late)[:, None]
                log = log + np.random.default_rng(3).normal(0.0, 1.0, log.shape) * noise * np.ptp(log)
                lag = find_lag(run, log, np.ones(1), least=-20, greatest=20, near=0)
                assert lag is not None and -lag.samples == pytest.approx(late, abs=0.4 if noise else 0.05), (name, late, noise)


@pytest.mark.parametrize("late", [0.0, 0.4, 0.75])
def test_kinks_do_not_draw_the_lag(late: float) -> None:
    """A force of straight parts, in a record that begins just before a kink: lags were a tenth of a sample too long."""
    time = 0.005 * np.arange(1, 121)

    def force(t: np.ndarray) -> np.ndarray:
        return np.interp(t, [0.0, 0.05, 0.08, 0.3, 0.33, 1.0], [0.0, 0.0, 5.0, 4.3, 1.9, 1.9])[:, None]

    for noise, close in ((0.0, 1e-3), (0.015, 0.03)):
        log = force(time + 0.005 * late)[14:-1] + np.random.default_rng(1).normal(0.0, noise, (105, 1))
        lag = find_lag(force(time), log, np.ones(1), least=-50, greatest=80)
        assert lag is not None and lag.samples == pytest.approx(14.0 + late, abs=close), noise


def test_rounding_errors_of_a_torque_do_not_take_part_in_the_lag(tmp_path: Path) -> None:
    """A run beside another run: they shared half of their variation only, as torques of 1e-13 N m counted as the force does."""
    time = np.arange(1, 401) * 0.01
    noise = np.random.default_rng(6).normal(0.0, 1e-13, (6, 400))
    force = SWINGS["grows"](time)
    run = pulled(time, fz=force, fx=noise[0], tx=noise[1], ty=noise[2])
    log = write_csv(tmp_path / "log.csv", time, np.column_stack([noise[3], force, noise[4], noise[5]]), "time,Fx,Fz,Tx,Ty")
    result = fs.compare(run, log)
    assert result.trials[0].explained > 0.999 and result.trials[0].offset == pytest.approx(0.01, abs=1e-4)
    assert result.warnings == ()


def test_a_given_start_that_fits_far_worse_than_another_is_said(tmp_path: Path) -> None:
    """With the sign turned, or too late; not a sample off, where the run swings on and many fit, or where a unit is wrong."""
    time, own = np.arange(1, 401) * 0.01, np.arange(0.4, 2.6, 0.004)

    def press(t: np.ndarray) -> np.ndarray:
        return np.interp(t, [0.6, 1.1, 1.4, 2.0], [0.0, 8.0, 8.0, -3.0])

    log = write_csv(tmp_path / "log.csv", own - 0.4, press(own)[:, None], "time,Fx")

    def said(offset: float) -> tuple[str, ...]:
        return fs.compare(pulled(time, fx=press(time)), log, {"time": {"offset": offset}}).warnings

    assert said(0.4) == said(0.41) == ()
    for wrong in (-0.4, 0.5, 0.9):
        (text,) = said(wrong)
        assert f"from 0.4 s of the run on, instead of {wrong} s as time.offset of the card says, it would share 100.0" in text
    swing = np.sin(16.0 * np.pi * time)
    write_csv(log, time[:250] - time[0], swing[:250, None], "time,Fx")
    assert fs.compare(pulled(time, fx=swing), log, {"time": {"offset": 0.16}}).warnings == ()
    grown = SWINGS["grows"](time)
    write_csv(log, time[39:340] - time[39], 3.0 * grown[39:340, None], "time,Fx")
    assert not any("clock" in text for text in fs.compare(pulled(time, fx=grown), log, {"time": {"offset": 0.4}}).warnings)
