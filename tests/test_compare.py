"""A run beside logs made of it: what was planted is found again, within stated bounds; what is wrong is said."""

from __future__ import annotations

import json
import math
import re
import shutil
import time as clock
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiment import NAMES, SWINGS, pulled, seen_by, shaken_box, write_csv
from scipy.spatial.transform import Rotation
from scipy.stats import t as student

import femsim as fs
from femsim.studies.comparison.agreement import agreement, mean_and_confidence, vector_rmse
from femsim.studies.comparison.readers import Channel
from femsim.studies.comparison.resampling import gap_mask, lowpass
from femsim.studies.comparison.run_series import make_run_series, read_run
from femsim.studies.comparison.words import better_frame, constant_hint, sentence


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare") / "box"
    assert fs.simulate(shaken_box(), out=folder, fps=1.0).status == "converged"
    return folder


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "box"))


def noisy(values: np.ndarray, seed: int = 1, force: float = 0.05, torque: float = 2e-4) -> np.ndarray:
    return values + np.random.default_rng(seed).normal(0.0, [force] * 3 + [torque] * 3, values.shape)


# ------------------------------------------------------------------------------------------------ what was planted is found


@pytest.mark.parametrize("start", [-0.2373, 0.1618, 0.3])
def test_lag_gain_offset_and_sign_are_found(run: Path, tmp_path: Path, start: float) -> None:
    """1 kHz, noise of 0.05 N (0.5 % of the range): lag within 0.5 ms, gain within 2 %, offset within 0.08 N of a force of 5 N."""
    time, values = seen_by(run, start, 2.2, 1000.0)
    planted = noisy(values * 1.08)
    planted[:, :3] += (0.4, -0.3, 0.2)
    planted[:, 2] *= -1.0
    result = fs.compare(run, write_csv(tmp_path / "log.csv", time + 1.7e9, planted))
    assert result.trials[0].offset == pytest.approx(start, abs=5e-4)
    assert result.cutoff == pytest.approx(40.0, rel=1e-3)
    for name, gain, offset in (("fx", 1.08, 0.4), ("fy", 1.08, -0.3), ("fz", -1.08, -0.2)):
        assert result.axes[name].gain == pytest.approx(gain, rel=0.02), name
        assert result.axes[name].offset == pytest.approx(offset, abs=0.08), name
    warning, *constants = result.warnings
    assert warning.startswith("fz of the log is -1.") and "is frame.sign of the card right?" in warning
    assert [text.split(" % of the misfit of ")[1][:2] for text in constants] == ["fx", "fy"]
    given = fs.compare(run, tmp_path / "log.csv", {"time": {"offset": start}})
    assert given.axes["fx"].bias == pytest.approx(-(0.4 + 0.08 * given.simulated[:, 0].mean()), abs=0.02)
    assert math.isnan(given.trials[0].explained)


def test_a_log_that_is_the_run_agrees_to_the_bit(run: Path) -> None:
    result = fs.compare(run, run / "sensors.csv", sensor="wrist")
    assert result.trials[0].offset == pytest.approx(0.01, abs=1e-12) and result.cutoff is None
    assert len(result.time) == 200 and result.channels[0].unit == "N"
    for axis in result.axes.values():
        assert axis.rmse < 1e-12 and axis.gain == pytest.approx(1.0, abs=1e-12) and axis.correlation == pytest.approx(1.0)
    assert result.vectors["force"][1] < 1e-12 and result.warnings == ()
    markers = fs.compare(run, run / "sensors.csv", {"markers": {"dot": ["dot_x_m", "dot_y_m", "dot_z_m"]}})
    assert [c.name for c in markers.channels] == ["dot.x", "dot.y", "dot.z"]
    assert markers.vectors["dot"][0] < 1e-12 and markers.sensor is None


def test_lag_that_is_left_is_reported(run: Path, tmp_path: Path) -> None:
    """A log given as in time but 30 ms late: lag of each moving axis within 1 ms."""
    time, values = seen_by(run, 0.0, 2.0, 1000.0)
    write_csv(tmp_path / "late.csv", time, noisy(np.column_stack([np.interp(time - 0.03, time, v) for v in values.T])))
    result = fs.compare(run, tmp_path / "late.csv", {"time": {"offset": 0.0}})
    for name in ("fx", "fy", "fz"):
        assert result.trials[0].lags[name] == pytest.approx(0.03, abs=1e-3), name


def test_an_axis_that_only_one_of_them_has_gets_no_lag_and_no_gain(run: Path, tmp_path: Path) -> None:
    """Noise of the log beside a force that is rounding in the run: a gain of 1e8 and a lag of 40 ms were told."""
    time, values = seen_by(run, 0.0, 2.0, 1000.0)
    write_csv(tmp_path / "log.csv", time, noisy(values * [1, 0, 1, 1, 1, 1]))
    series = read_run(run)
    columns = {name: 1e-11 * column if name.endswith("_fy_N") else column for name, column in series.columns.items()}
    result = fs.compare(replace(series, columns=columns), tmp_path / "log.csv")
    assert math.isnan(result.axes["fy"].gain) and math.isnan(result.trials[0].lags["fy"])
    assert result.words(["fy"])[0].endswith(" N RMS") and abs(result.trials[0].lags["fx"]) < 1e-3
    rows = {words[0]: words for line in result.summary().splitlines() if (words := line.split())[1:2] == ["N"]}
    assert rows["fy"][-4:] == ["-"] * 4 and "-" not in rows["fx"]  # correlation, lag, gain and offset; they were "nan"


def test_frame_point_sign_units_tare_and_weight_are_undone(run: Path, tmp_path: Path) -> None:
    time, values = seen_by(run, 0.0, 2.0, 100.0)
    turn = Rotation.from_euler("xyz", (20, -35, 110), degrees=True)
    arm, mass, centre = np.array([0.03, -0.02, 0.05]), 0.7, np.array([0.01, 0.02, -0.04])
    force = -values[:, :3]  # the reaction, about a point at arm, in axes of the sensor, with a tool and a bias
    torque = -values[:, 3:] - np.cross(arm, force)
    weight = turn.inv().apply([0.0, 0.0, -9.81 * mass])
    shown = np.column_stack([turn.inv().apply(force) + weight, turn.inv().apply(torque) + np.cross(centre, weight)])
    shown += (0.3, 0.1, -0.2, 0.01, 0.0, 0.02)
    write_csv(tmp_path / "log.csv", 1e3 * time, shown * ([1e3] * 3 + [1e3] * 3), "t (ms),Fx [mN],Fy [mN],Fz [mN],Tx,Ty,Tz")
    card = {
        "time": {"offset": 0.0},
        "units": {"torque": "N mm"},
        "frame": {"rotation": turn.as_rotvec(degrees=True).tolist(), "angle": "deg", "sign": -1, "point": arm.tolist()},
        "gravity": {"mass": mass, "centre": centre.tolist()},
    }
    biased = fs.compare(run, tmp_path / "log.csv", card)
    assert biased.vectors["force"][0] == pytest.approx(np.linalg.norm((0.3, 0.1, -0.2)), rel=1e-3)
    raw = fs.read_log(tmp_path / "log.csv", card)
    tared = fs.read_log(tmp_path / "log.csv", card | {"tare": {"end": 0.2}})
    at_rest = values[:15].mean(axis=0)
    # the tare takes the bias and the weight of the box, which hangs still in that time
    np.testing.assert_allclose(tared.values[:15].mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(raw.values - tared.values, raw.values[:15].mean(axis=0)[None].repeat(200, 0), atol=1e-3)
    without = fs.read_log(tmp_path / "log.csv", card | {"frame": card["frame"] | {"point": [0.0, 0.0, 0.0]}})
    np.testing.assert_allclose(raw.values[:, 3:] - without.values[:, 3:], np.cross(arm, raw.values[:, :3]), atol=1e-9)
    bias = turn.apply([0.3, 0.1, -0.2])
    moment = turn.apply([0.01, 0.0, 0.02]) + np.cross(arm, bias)
    np.testing.assert_allclose(raw.values[:, 3:], values[:, 3:] - moment, atol=1e-6)
    np.testing.assert_allclose(raw.values[:15, :3].mean(axis=0), at_rest[:3] - bias, atol=1e-6)
    matrix = card | {"frame": card["frame"] | {"rotation": turn.as_matrix().tolist()}}
    np.testing.assert_allclose(fs.read_log(tmp_path / "log.csv", matrix).values, raw.values, atol=1e-9)


@pytest.mark.parametrize("kind", ["contact", "mount"])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_weight_on_the_sensor_is_taken_off_as_the_sensor_shows_it(run: Path, tmp_path: Path, kind: str, sign: int) -> None:
    """An adapter of 0.3 kg that the run leaves out: a load for contacts, held by a mount; both logs may be of the other sign."""
    time, values = seen_by(run, 0.0, 2.0, 100.0)
    weight, centre = np.array([0.0, 0.0, -0.3 * 9.81]), np.array([0.02, -0.01, 0.04])
    adapter = np.concatenate([weight, np.cross(centre, weight)]) * (1.0 if kind == "contact" else -1.0)
    log = write_csv(tmp_path / "log.csv", time, sign * (values + adapter))
    series = read_run(run)
    assert series.kinds == {"wrist": "mount"}
    card = {"time": {"offset": 0.0}, "frame": {"sign": sign}, "gravity": {"mass": 0.3, "centre": centre.tolist()}}
    result = fs.compare(replace(series, kinds={"wrist": kind}), log, card)
    assert result.vectors["force"][1] < 1e-9 and result.vectors["torque"][1] < 1e-9 and result.warnings == ()
    assert any("kind" in w for w in fs.compare(replace(series, kinds={}), log, card).warnings) and fs.read_log(log, card).warnings


def test_repeated_trials_give_mean_spread_and_confidence(run: Path, tmp_path: Path) -> None:
    paths, gains = [], (0.9, 1.0, 1.2)
    for k, gain in enumerate(gains):
        time, values = seen_by(run, -0.1 * k, 2.2, 1000.0)
        paths.append(write_csv(tmp_path / f"log{k}.csv", time, noisy(gain * values, seed=k)))
    result = fs.compare(run, paths)
    assert [t.offset for t in result.trials] == pytest.approx([0.0, -0.1, -0.2], abs=1e-3)
    found = [t.axes["fx"].gain for t in result.trials]
    assert found == pytest.approx(gains, rel=0.02)
    mean, half = result.confidence()["fx"]["gain"]
    assert mean == pytest.approx(np.mean(found))
    assert half == pytest.approx(student.ppf(0.975, 2) * np.std(found, ddof=1) / math.sqrt(3))
    assert result.axes["fx"].gain == pytest.approx(np.mean(gains), rel=0.01)
    # three copies of one signal times 0.9, 1, 1.2: deviation of 0.153 times its root mean square
    expected = np.std(gains, ddof=1) * np.sqrt(np.mean(result.simulated[:, 0] ** 2))
    assert result.spread()["fx"] == pytest.approx(expected, rel=0.05)
    assert fs.compare(run, paths[0]).spread() == {}
    content = result.to_dict()
    assert content["axes"]["fx"]["confidence"]["gain"] == pytest.approx([mean, half])


def test_a_log_that_is_listed_twice_is_no_second_trial(run: Path, tmp_path: Path) -> None:
    log = write_csv(tmp_path / "log.csv", *seen_by(run, 0.0, 2.0, 500.0))
    for again in (log, tmp_path / "." / "log.csv", str(log), fs.read_log(log)):
        with pytest.raises(fs.InputError, match=r"log\.csv is listed twice"):
            fs.compare(run, [log, again])


def test_residual_is_cheap_and_scaled(run: Path, tmp_path: Path) -> None:
    time, values = seen_by(run, 0.0, 2.0, 100.0)
    log = fs.read_log(write_csv(tmp_path / "log.csv", time, values + 0.1), {"time": {"offset": 0.0}, "sensor": "wrist"})
    memory = fs.simulate(shaken_box())
    began = clock.perf_counter()
    result = fs.compare(memory, log)
    assert clock.perf_counter() - began < 0.5
    plain = result.residual(scaled=False)
    assert plain.shape == (6 * len(result.time),)
    np.testing.assert_allclose(plain, -0.1, atol=1e-9)
    assert result.axes["fx"].bias == pytest.approx(-0.1, abs=1e-9)
    ranges = np.ptp(result.measured, axis=0)
    np.testing.assert_allclose(result.residual()[:5], -0.1 / ranges[:3].max(), rtol=1e-6)
    np.testing.assert_allclose(result.residual()[-5:], -0.1 / ranges[3:].max(), rtol=1e-6)


def test_gaps_are_left_out(run: Path, tmp_path: Path) -> None:
    time, values = seen_by(run, 0.0, 2.0, 200.0)
    values[100:120] = 50.0  # nonsense just before the gap would show
    keep = np.r_[0:100, 160:400]
    result = fs.compare(run, write_csv(tmp_path / "log.csv", time[keep], values[keep]), {"time": {"offset": 0.0}})
    assert any("gaps of up to 0.305 s" in text for text in result.warnings)
    missing = ~np.isfinite(result.measured).all(axis=1)
    assert missing.sum() == pytest.approx(30, abs=1)
    assert result.vectors["force"][1] < 1e-6
    values = values[keep]
    with pytest.raises(fs.InputError, match="numbers in only 27 % of the time"):
        few = np.r_[0:60, 290:340]
        fs.compare(run, write_csv(tmp_path / "few.csv", time[keep][few], values[few]), {"time": {"offset": 0.0}})


# ------------------------------------------------------------------------------------------------------------ formulas


def test_formulas() -> None:
    s, m = np.array([0.0, 1.0, 2.0, 5.0]), np.array([1.0, 1.0, 4.0, 8.0])
    a = agreement(s, m)
    assert a.rmse == pytest.approx(math.sqrt((1 + 0 + 4 + 9) / 4)) and a.nrmse == pytest.approx(a.rmse / 7)
    assert a.bias == -1.5 and a.peak_error == -3.0 and a.largest_error == 3.0
    slope, offset = np.polyfit(s, m, 1)
    assert (a.gain, a.offset) == pytest.approx((slope, offset))
    error = m - slope * s - offset
    assert a.gain_error == pytest.approx(math.sqrt(error @ error / 2 / ((s - 2) ** 2).sum()))
    assert a.correlation == pytest.approx(np.corrcoef(s, m)[0, 1])
    flat = agreement(np.full(4, 3.0), m)
    assert math.isnan(flat.gain) and math.isnan(flat.correlation) and flat.bias == -0.5
    assert math.isnan(agreement(s, np.full(4, 0.1)).correlation) and agreement(s, np.full(4, 0.1)).gain == pytest.approx(
        0, abs=1e-12
    )
    assert vector_rmse(np.array([[3.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 4.0], [0.0, 0.0]])) == pytest.approx(
        (math.sqrt(12.5), 5.0)
    )
    assert mean_and_confidence([2.0, math.nan])[0] == 2.0 and math.isnan(mean_and_confidence([2.0])[1])


@pytest.mark.parametrize(
    ("card", "words"),
    [
        ({"rate": 1e7}, "rate is 1e+07 Hz, but run and log have 1 s in common at most; allowed is what gives 10 to 5000000"),
        ({"rate": 1e-300}, "rate is 1e-300 Hz, but run and log have 1 s in common"),
        ({"filter": {"cutoff": 1e-300}}, "less than one wave of it; it must be above 1 Hz"),
        ({"time": {"offset": 1e300}}, "run and logs share 0 samples at 100 Hz"),
        ({"time": {"max_lag": 1e300}}, ""),
    ],
)
def test_numbers_of_a_card_beyond_all_bounds_are_refused(tmp_path: Path, card: dict[str, Any], words: str) -> None:
    """The fuzzer found that they ended in an OverflowError, and a rate by far too high would have taken all memory."""
    time = np.arange(1, 401) * 0.01
    run, own = pulled(time, fx=SWINGS["grows"](time)), np.arange(0.0, 1.0001, 0.01)
    log = write_csv(tmp_path / "log.csv", own, SWINGS["grows"](own)[:, None], "time,Fx")
    if words:
        with pytest.raises(fs.InputError, match=re.escape(words)):
            fs.compare(run, log, card)
    else:
        assert fs.compare(run, log, card).trials[0].offset == pytest.approx(0.0, abs=0.011)


def test_lowpass_has_no_phase_and_half_the_amplitude_at_the_cutoff() -> None:
    time = np.arange(0.0, 4.0, 1e-3)
    for frequency, amplitude in ((1.0, 1.0), (20.0, 0.5), (200.0, 0.0)):
        wave = np.sin(2 * np.pi * frequency * time)[:, None]
        middle = slice(1000, 3000)
        np.testing.assert_allclose(lowpass(wave, 1000.0, 20.0)[middle], amplitude * wave[middle], atol=2e-3)


def test_gap_mask_by_hand() -> None:
    time = np.r_[np.arange(0.0, 1.0, 0.1), np.arange(2.0, 3.0, 0.1)]
    mask, longest = gap_mask(time, np.zeros((len(time), 1)), np.array([-0.1, 0.0, 0.55, 0.9, 0.95, 1.5, 2.0, 2.5, 3.5]))
    assert mask.tolist() == [False, True, True, True, False, False, True, True, False] and longest == pytest.approx(1.1)


# --------------------------------------------------------------------------------------------------------- command line


@pytest.mark.parametrize("size", [1, 2, 4, 8, 30])
def test_packets_of_samples_are_no_gaps(tmp_path: Path, size: int) -> None:
    """Samples of 500 Hz that are stamped as their packet arrives; NaN and a pause stay gaps."""
    time = np.arange(1, 301) * 0.01
    force = 5.0 * np.sin(3.0 * np.pi * time) * np.exp(-0.3 * time)
    true = np.arange(0.02, 2.9, 0.002)
    k = np.arange(len(true))
    stamps = true[np.minimum((k // size + 1) * size - 1, len(true) - 1)] - (size - 1 - k % size) * 5e-5
    values = np.interp(true, time, force)
    log = write_csv(tmp_path / "log.csv", stamps, values[:, None], "time,Fx")
    result = fs.compare(pulled(time, fx=force), log, {"time": {"offset": stamps[0]}})
    assert result.warnings == () and np.isfinite(result.measured).all()
    assert fs.read_log(log).rate == pytest.approx(500.0, rel=0.03)
    assert result.axes["fx"].nrmse < 0.02 + 0.01 * size  # stamps are late by up to a packet
    values[700:900] = np.nan
    broken = np.delete(np.column_stack([stamps, values]), np.s_[300:450], axis=0)
    write_csv(log, broken[:, 0], broken[:, 1:], "time,Fx")
    result = fs.compare(pulled(time, fx=force), log, {"time": {"offset": stamps[0]}})
    (warning,) = result.warnings
    assert "has gaps of up to 0.4" in warning
    missing = time[~np.isin(np.round(time, 6), np.round(result.time[np.isfinite(result.measured[:, 0])], 6))]
    assert ((missing > 0.7) & (missing < 0.8)).any() and ((missing > 1.5) & (missing < 1.7)).any()


def test_command_writes_a_report_and_keeps_old_ones(
    copy: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    time, values = seen_by(copy, -0.1, 2.2, 500.0)
    log = str(write_csv(tmp_path / "log.csv", time, noisy(values)))
    before = (copy / "sensors.csv").read_bytes()
    status, out, err = call("compare", str(copy), log)
    assert (status, err) == (0, "") and "its first sample is at -0.1" in out and "report" in out
    assert sorted(p.name for p in (copy / "comparison").iterdir()) == [
        "comparison.csv", "comparison.json", "overlay.png", "overlay.svg", "report.html",
    ]  # fmt: skip
    page = (copy / "comparison" / "report.html").read_text()
    assert "<svg" in page and "wrist" in page and "src=" not in page and not re.search(r'<link|href="http', page)
    series = np.genfromtxt(copy / "comparison" / "comparison.csv", delimiter=",", names=True)
    assert len(series) > 150 and "time_s" in series.dtype.names and len(series.dtype.names) == 13
    assert call("compare", str(copy), log)[0] == 0 and (copy / "comparison-2" / "report.html").is_file()
    assert (copy / "sensors.csv").read_bytes() == before
    status, out, err = call("compare", str(copy), log, "--json")
    numbers = json.loads(out)
    assert (
        status == 0 and numbers["logs"][0]["offset_s"] == pytest.approx(-0.1, abs=2e-3) and not (copy / "comparison-3").exists()
    )
    assert set(numbers["axes"]) == set(NAMES) and numbers["axes"]["fx"]["rmse"] < 0.1
    status, out, err = call("compare", str(copy), log, "--out", str(copy / "comparison"))
    assert status == 2 and "exists; choose another by --out" in err
    (tmp_path / "empty").mkdir()
    assert call("compare", str(copy), log, "--out", str(tmp_path / "empty"))[0] == 0
    assert (tmp_path / "empty" / "report.html").is_file()
    assert not [p.name for p in copy.iterdir() if p.name.startswith(".")]
    card = tmp_path / "card.toml"
    card.write_text("[tim]\nunit = 's'\n[time]\nunitt = 's'\n")
    status, out, err = call("compare", str(copy), log, "--card", str(card))
    assert (
        status == 2
        and "tim: the key is unknown; did you mean 'time'" in err
        and "time.unitt: the key is unknown; did you mean 'unit'" in err
    )
    assert call("compare", str(copy), str(tmp_path / "none.csv"))[0] == 2


# ------------------------------------------------------------------------------------------------------------- bad runs


def test_runs_that_are_broken_or_old(copy: Path, tmp_path: Path) -> None:
    log = copy / "sensors.csv"
    text, info = log.read_text(), json.loads((copy / "run.json").read_text())
    good = tmp_path / "log.csv"
    good.write_text(text)
    # killed in the middle of a row
    (copy / "run.json").write_text(json.dumps(info | {"status": "running"}))
    log.write_text("\n".join(text.splitlines()[:120]) + "\n1.2,3.4")
    result = fs.compare(copy, good, sensor="wrist")
    assert any("was killed" in w for w in result.warnings) and any("cut off" in w for w in result.warnings)
    assert result.time[-1] == pytest.approx(1.19)
    (copy / "run.json").write_text(json.dumps(info | {"status": "interrupted", "message": "Interrupted after step 9"}))
    assert any("'interrupted': Interrupted after step 9" in w for w in fs.compare(copy, good, sensor="wrist").warnings)
    # older: no settings
    (copy / "run.json").write_text(json.dumps({"status": "converged"}))
    assert any("older femsim" in w for w in fs.compare(copy, good, sensor="wrist").warnings)
    for wreck, words in (
        (lambda: log.write_text("\n".join(text.splitlines()[:5])), "has 4 steps; at least 10"),
        (lambda: log.write_text(text.splitlines()[0] + "\n"), "no readings to compare"),
        (
            lambda: log.write_text("time_s,a,b\n" + "".join(f"{k},2,3\n" for k in range(20))),
            "has only a, b; a comparison takes markers",
        ),
        (lambda: log.write_text("step,a,b\n" + "1,2,3\n" * 20), "no column time_s"),
        (log.unlink, "has no sensors.csv"),
        (lambda: (copy / "run.json").write_text("{"), "the run is damaged"),
        ((copy / "run.json").unlink, "is not a run folder"),
    ):
        wreck()
        with pytest.raises(fs.InputError, match=words):
            fs.compare(copy, good, sensor="wrist")


def test_what_does_not_fit_is_said(run: Path, tmp_path: Path) -> None:
    time, values = seen_by(run, 0.0, 2.0, 100.0)
    log = write_csv(tmp_path / "log.csv", time, values)
    for card, words in (
        ({"sensor": "wrst"}, "sensor 'wrst', which is asked for, is not in the run; did you mean 'wrist'"),
        ({"markers": {"dott": "Dot"}}, "marker 'dott', which the run does not have; did you mean 'dot'"),
        ({"filter": {"cutoff": 80.0}}, "filter.cutoff is 80 Hz, but the slowest signal has 100 samples"),
        ({"time": {"offset": 50.0}}, "share 0 samples at 100 Hz"),
        ({"window": [1.0, 1.05]}, "share 6 samples"),
        ({"time": {"rate": -1.0}}, "time.rate is -1.0, but must be greater than 0"),
        ({"units": {"force": "newtons"}}, "units.force 'newtons' is unknown"),
        ({"tare": {"start": 5.0, "end": 6.0}}, "no complete sample between 5 and 6 s, the tare window"),
        ({"frame": {"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 2]]}}, "orthonormal"),
    ):
        with pytest.raises(fs.InputError, match=re.escape(words)):
            fs.compare(run, log, card)
    with pytest.raises(fs.InputError, match="cannot be aligned"):
        fs.compare(run, write_csv(tmp_path / "flat.csv", time, np.ones((200, 6))))
    with pytest.raises(fs.InputError, match="no log is given"):
        fs.compare(run, [])
    with pytest.raises(fs.InputError, match="read already has its card"):
        fs.compare(run, fs.read_log(log), {"time": {"offset": 0.0}})
    with pytest.raises(fs.InputError, match="the card maps markers"):
        fs.compare(run, log, {"markers": {"dot": "Dot"}}, sensor="wrist")
    other = write_csv(tmp_path / "one.csv", time, values[:, 2:3], "time,Fz")
    with pytest.raises(fs.InputError, match="different channels"):
        fs.compare(run, [log, other])
    assert [c.name for c in fs.compare(run, other).channels] == ["fz"]
    # one in lbf without a unit was within a factor of ten, and nothing was said
    for size, unit in ((1e-3, "mN"), (4.44822, "lbf"), (9.80665, "kg"), (1.0 / 4.44822, "lbf")):
        wrong = fs.compare(run, write_csv(tmp_path / "unit.csv", time, values / size))
        told = f"fz of the log is {1.0 / size:.3g} times that of the run: is its unit right ({unit})?"
        assert any(told in w for w in wrong.warnings)


# ------------------------------------------------------------------------------------------------------------- constant offsets


@pytest.mark.parametrize(("unit", "factor"), [("ms", 1e3), ("us", 1e6), ("s", 1.0)])
@pytest.mark.parametrize("offset", [0.0, "auto"])
def test_times_in_another_unit_are_named(run: Path, tmp_path: Path, unit: str, factor: float, offset: object) -> None:
    time, values = seen_by(run, 0.0, 2.0, 100.0)
    log = write_csv(tmp_path / "log.csv", factor * time, values)
    if unit == "s":  # under a header that says ms
        log.write_text(log.read_text().replace("time", "time_ms", 1))
    with pytest.raises(fs.InputError, match=re.escape(f'if its times are in {unit}, set time.unit = "{unit}" in the card')):
        fs.compare(run, log, {"time": {"offset": offset}})
    assert fs.compare(run, log, {"time": {"offset": offset, "unit": unit}}).axes["fx"].rmse < 0.1


def test_what_a_run_has_is_said_where_it_has_no_force(tmp_path: Path) -> None:
    """It was said to have no sensor; and a marker that is asked for as a force was not named."""
    scene = fs.Scene("gap", dt=0.01, duration=0.2, theta=1.0)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.02, 0.03, 0.05)), mass=0.5, position=(0.0, 0.0, 0.1))
    scene.sensor("near", "box", kind="gap", partner="floor", reach=1.0)
    log = write_csv(tmp_path / "log.csv", np.arange(20.0), np.zeros((20, 1)), "time,Fx")
    run = fs.simulate(scene, out=tmp_path / "gap")
    for one in (run, tmp_path / "gap"):
        with pytest.raises(fs.InputError, match=r"has only near \(gap\); a comparison takes markers, and sensors of the kinds"):
            fs.compare(one, log)
    scene.sensor("dot", "box", kind="marker")
    scene.sensor("hit", "box")
    run = fs.simulate(scene)
    for sensor, words in (("dot", "it is a marker. Leave sensor out"), ("hot", "There is only hit. Markers are dot.")):
        with pytest.raises(fs.InputError, match=re.escape(words)):
            fs.compare(run, log, sensor=sensor)


def test_a_tare_takes_the_same_window_from_both_sides(run: Path, tmp_path: Path) -> None:
    """A log that was tared against a plain mount sensor: only what the log lost in its window is lost in the run too."""
    time, values = seen_by(run, 0.0, 2.0, 1000.0)
    write_csv(tmp_path / "log.csv", time, noisy(values + np.array([3.0, 0.0, -11.8, 0.0, 0.0, 0.0])))
    card = {"time": {"offset": 0.0}, "tare": {"end": 0.2}}
    both = fs.compare(run, tmp_path / "log.csv", card, sensor="wrist")
    assert both.vectors["force"][0] < 0.1 and not any("a constant" in text for text in both.warnings)
    early = (both.time > 0.02) & (both.time < 0.18)
    np.testing.assert_allclose(both.simulated[early].mean(axis=0), both.measured[early].mean(axis=0), atol=0.02)
    one = fs.compare(run, tmp_path / "log.csv", card | {"tare": {"end": 0.2, "run": False}}, sensor="wrist")
    assert one.vectors["force"][0] > 1.0


def test_the_error_of_a_tare_is_that_of_its_mean(run: Path, tmp_path: Path) -> None:
    """While the box moves: noise of 0.1 N in Fx, the world's z, makes 0.1 / 10 of 100 samples, thrice that of memory 0.8."""
    time, values = seen_by(run, 0.0, 2.0, 100.0)
    noise, hanging = (np.random.default_rng(0).normal(0.0, 0.1, len(time)) for _ in range(2))
    for k in range(1, len(time)):
        hanging[k] = 0.8 * hanging[k - 1] + 0.6 * hanging[k]
    turn = np.array([[0, 0, -1], [0, 1, 0], [1, 0, 0]])
    card = {"time": {"offset": 0.0}, "frame": {"rotation": turn.tolist(), "sign": -1}, "tare": {"start": 0.405, "end": 1.405}}
    for added, expected in ((noise, 0.01), (noise + 3.0 * time, 0.01), (hanging, 0.03)):
        shown = -values @ np.kron(np.eye(2), turn)
        shown[:, 0] += added
        error = fs.compare(run, write_csv(tmp_path / "log.csv", time, shown), card).trials[0].tare_error
        spread = np.sqrt(np.diag(error.T @ error))
        assert spread[2] == pytest.approx(expected, rel=0.3)
        assert np.delete(spread, 2).max() < 1e-3 * spread[2]
    assert fs.compare(run, tmp_path / "log.csv", card | {"tare": None}).trials[0].tare_error.shape == (0, 6)


def test_a_tare_before_the_run_takes_its_first_row(run: Path, tmp_path: Path) -> None:
    time, values = seen_by(run, 0.0, 2.0, 1000.0)
    rest = np.repeat(values[:1], 500, axis=0)
    write_csv(tmp_path / "log.csv", np.arange(len(time) + 500) / 1000.0, noisy(np.concatenate([rest, values])) + 0.7)
    card = {"time": {"offset": -0.5}, "tare": {"end": 0.4}}
    result = fs.compare(run, tmp_path / "log.csv", card, sensor="wrist")
    assert any("is tared by its nearest row" in text for text in result.warnings)
    assert result.vectors["force"][0] < 0.15


def test_a_constant_misfit_is_said_with_its_cause(run: Path, tmp_path: Path) -> None:
    time, values = seen_by(run, 0.0, 2.0, 1000.0)
    masses = {name: entry["mass_kg"] for name, entry in json.loads((run / "run.json").read_text())["bodies"].items()}
    (heavy, mass) = max(masses.items(), key=lambda item: item[1])
    for shift, words in (
        ((0.0, 0.0, 9.81 * mass, 0.0, 0.0, 0.0), f"the weight of {mass:.3g} kg: {heavy}"),
        ((4.0, 0.0, 0.0, 0.0, 0.0, 0.0), "a bias of the sensor"),
    ):
        write_csv(tmp_path / "log.csv", time, noisy(values - shift))
        result = fs.compare(run, tmp_path / "log.csv", {"time": {"offset": 0.0}}, sensor="wrist")
        (text,) = [text for text in result.warnings if text.startswith("a constant")]
        assert words in text and f"a constant {np.linalg.norm(shift):.3g} N makes" in text
    write_csv(tmp_path / "log.csv", time, noisy(values))
    good = fs.compare(run, tmp_path / "log.csv", {"time": {"offset": 0.0}}, sensor="wrist")
    assert not any(text.startswith("a constant") for text in good.warnings)


def test_a_constant_that_a_gain_hides_is_said() -> None:
    """A fit of a stiffness turns a zero of the force into a gain; and a gain alone, noise or another shape are no constant."""
    fz, noise = Channel("fz", "force", "N"), np.random.default_rng(3).normal(0.0, 0.02, 400)
    wave = 5.0 + 5.0 * np.sin(np.linspace(0.0, 9.0, 400))

    def said(simulated: np.ndarray, measured: np.ndarray) -> str:
        return constant_hint(fz, simulated, measured, agreement(simulated, measured))

    assert said(wave, 0.8 * wave + 2.0 + noise).startswith("a constant 2 N and a gain of 0.8 make 100 % of the misfit of fz: a b")
    assert said(wave, wave + 2.0 + noise).startswith("a constant 2 N makes 100 % of the misfit of fz")
    small = 50.0 + 0.1 * wave
    for simulated, measured in (
        (wave, 1.3 * wave + noise), (wave, wave + 0.1 + noise), (wave, wave + noise), (wave, -wave), (wave, np.full(400, 3.0)),
        (wave, np.roll(wave, 20) + 0.3), (small, 1.05 * small + noise), (np.full(400, 3.0), wave),
    ):  # fmt: skip
        assert not said(simulated, measured)


def test_words_are_what_a_person_would_say() -> None:
    """Each kind of misfit gets its sentence, with the size that was put in."""
    fz = Channel("fz", "force", "N")
    t = np.linspace(0.0, 1.0, 400)
    wave = 10.0 * np.sin(9.0 * t)

    def said(simulated: np.ndarray, measured: np.ndarray = wave, lag: float = 0.0, channel: Channel = fz) -> str:
        return sentence(channel, agreement(simulated, measured), lag, float(np.ptp(measured)))

    assert said(wave + 0.1 * np.sin(50 * t)).startswith("fz agrees within 0.07")
    above = wave + 12.0  # a scale or a sign, although a constant would lessen the misfit as much
    assert said(wave + 11.8) == "fz of the run reads 11.8 N too high; its shape is right"
    assert said(wave - 11.8, lag=0.032) == "fz of the run reads 11.8 N too low; its shape is right; the log comes 32 ms later"
    assert said(-wave) == said(-above, above) == "fz has the opposite sign; its shape is right"
    assert said(-0.3 * wave - 4.0, above).startswith("fz of the run reads 1")  # more than the sign
    assert said(2.0 * wave) == "fz of the run is 2 times that of the log; its shape is right"
    assert said(0.9 * above, above) == "fz of the run is 0.9 times that of the log; its shape is right"
    assert said(10.0 * np.cos(31.0 * t)).startswith("fz differs in shape")
    assert said(wave + 11.8, channel=Channel("tip.z", "tip", "m")).startswith("tip.z of the run reads 1.18e+04 mm too high")


def test_a_frame_that_fits_better_is_suggested() -> None:
    channels = [Channel(f"f{axis}", "force", "N") for axis in "xyz"]
    t = np.linspace(0.0, 1.0, 300)
    run = np.column_stack([np.sin(7 * t), 0.4 * np.cos(11 * t), 3.0 * t**2])
    turn = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]])  # world from log
    log = run @ turn  # so that turn applied to the log gives the run
    text = better_frame(channels, run, log)
    assert f"rotation = {turn.tolist()}" in text and "sign" not in text
    np.testing.assert_allclose(log @ turn.T, run)
    assert "with sign = -1 in [frame]" in better_frame(channels, run, -run)
    for a, b, order in (("fx", "fy", [1, 0, 2]), ("fx", "fz", [2, 1, 0]), ("fy", "fz", [0, 2, 1])):  # no frame, but columns
        assert f"{a} and {b} swapped: are axes.{a} and axes.{b} of the card" in better_frame(channels, run, run[:, order])
    assert better_frame(channels, run, run + 0.01) == ""
    assert better_frame(channels[:1], run[:, :1], -run[:, :1]) == ""  # one axis has no frame
    still = run * [1.0, 0.0, 0.0]
    text = better_frame(channels, still, still[:, [1, 0, 2]])
    assert "rotation = [[0, 1, 0], [-1, 0, 0], [0, 0, 1]]" in text and "leaves open which of several" in text
    assert better_frame(channels, still, still) == ""


def test_one_command_draws_two_runs_and_a_log_for_a_paper(
    run: Path, copy: Path, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    log = str(write_csv(tmp_path / "log.csv", *seen_by(copy, -0.1, 2.2, 500.0)))
    words = ["--log", log, "--sensors", "wrist", "--axes", "fx", "--size", "85x50", "--labels", "one,two"]
    status, out, err = call("plot", str(run), str(copy), *words, "--formats", "pdf,svg", "--out", str(tmp_path / "paper"))
    assert (status, err) == (0, "") and "one: fx agrees within" in out
    assert sorted(path.name for path in (tmp_path / "paper").iterdir()) == ["comparison.pdf", "comparison.svg"]
    svg = (tmp_path / "paper" / "comparison.svg").read_text(encoding="utf-8")
    assert float(re.findall(r'width="([0-9.]+)pt"', svg)[0]) == pytest.approx(85 / 25.4 * 72, abs=0.1)
    for text in ("one", "two", "log", "fx [N]", "error [N]", "time [s]"):
        assert f">{text}<" in svg
    status, _, err = call("plot", str(run), "--log", log, "--sensors", "wrist", "--axes", "fq")
    assert status == 2 and "the axis 'fq' is not known; did you mean 'f" in err
    status, _, err = call("plot", str(run), "--card", "x.toml")
    assert status == 2 and "--log" in err
    status, _, err = call("plot", str(run), "--size", "wide")
    assert status == 2 and "85x60" in err


def test_a_tare_where_the_force_changes_takes_the_same_from_both(tmp_path: Path) -> None:
    """The mean of 26 rows of the run was not that of 63 samples of the log: a constant came of it."""
    time = np.arange(1, 401) * 0.01
    run, own = pulled(time, fx=SWINGS["grows"](time)), np.arange(0.2, 3.8, 0.004)
    log = write_csv(tmp_path / "log.csv", own - 0.2, SWINGS["grows"](own)[:, None] + 3.0, "time,Fx")
    result = fs.compare(run, log, {"tare": {"start": 1.0, "end": 1.25}})
    assert abs(result.axes["fx"].bias) < 2e-3 and result.warnings == ()


def test_what_counts_silently_of_markers_is_said(tmp_path: Path) -> None:
    """Displacements from a moment when the run has moved, a tare that positions do not use, zeros where a marker was hidden."""
    time, own = np.arange(1, 301) * 0.01, np.arange(0.3, 2.7, 0.004)

    def way(t: np.ndarray) -> np.ndarray:
        return np.column_stack([0.03 * np.sin(3.0 * t) * t, 0.006 * t**2, 0.2 + 0.02 * np.cos(5.0 * t)])

    run = make_run_series(
        "way", {"time_s": time, **{f"m_{axis}_m": column for axis, column in zip("xyz", way(time).T, strict=True)}}, (0, 0, -9.81)
    )
    values, header = way(own), "time,m_x,m_y,m_z"

    def warned(values: np.ndarray, card: dict[str, Any]) -> tuple[str, ...]:
        return fs.compare(run, write_csv(tmp_path / "log.csv", own - own[0], values, header), card).warnings

    assert warned(values, {}) == ()  # m_x is a torque too, but not one that is left out
    (text,) = warned(values + 0.1, {"marker_values": "displacement"})
    assert "its markers count from 0.3 s of the run, when they are up to 18.6 mm from the run's first row" in text
    (text,) = warned(values - values[0] + way(time[:1])[0], {"marker_values": "displacement", "time": {"offset": 0.01}})
    assert "its markers count" not in text and "from 0.3 s of the run on, instead of 0.01 s as time.offset" in text
    (text,) = warned(values, {"tare": {"end": 0.1}})
    assert text.startswith("the tare of the card is not used, since marker_values is 'position'")
    (text,) = warned(values + 0.3, {"time": {"offset": 0.3}})
    assert text.startswith("marker m of the log lies 520 mm from that of the run on average, and none moves by more than 1")
    assert not any("lies" in text for text in warned(values + 0.3, {"marker_values": "displacement", "time": {"offset": 0.3}}))
    hidden = np.where((np.arange(len(own)) // 50 == 3)[:, None], 0.0, values)
    (text, *_) = warned(hidden, {"time": {"offset": 0.3}})
    assert "marker m jumps to 0, 0, 0 exactly, in 50 of 601 samples" in text
    assert "is frame.rotation of the card right" in warned(values * [1, -1, 1], {"time": {"offset": 0.3}})[0]
