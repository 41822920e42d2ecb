"""Calibration: planted values are found, intervals cover, what cannot be told is said, interrupted work is kept, bad input."""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from experiment import pulled
from inline_engine import Inline
from small_calibrations import FIT, FREE, TRUE, assert_refused, write

import femsim as fs
from femsim.cli import execute
from femsim.studies.calibration import calibrate as calibrate_module
from femsim.studies.calibration.bootstrap import bootstrap_blocks
from femsim.studies.calibration.concerns import concerns
from femsim.studies.calibration.estimate import estimate, least_squares
from femsim.studies.calibration.evaluate import Evaluation, Evaluator, block_of, samples_of
from femsim.studies.calibration.file import Free, Search, read_calibration
from femsim.studies.calibration.search import search
from femsim.studies.comparison.card import read_card
from femsim.studies.comparison.compare import compare
from femsim.studies.comparison.comparison import Comparison
from femsim.studies.comparison.readers import Channel
from femsim.studies.sweeps import case as case_module, engine as engine_module
from femsim.studies.sweeps.folder import hold_results
from viz.ending import is_locked

DROP = (
    '[[experiments]]\nname = "drop"\nheld_out = true\nparameters = { drop = 2e-3 }\n'
    'readings = [{ logs = ["drop.csv"], card = { time = { offset = 0.005 } } }]\n'
)


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate_module, "Engine", Inline)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, fs.CalibrationResult]:
    folder = tmp_path_factory.mktemp("calibrate")
    path = write(folder, FREE + FIT + DROP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate_module, "Engine", Inline)
        return path, fs.calibrate(path, out=folder / "fit")


# ------------------------------------------------------------------------------------------------ the whole of it


def test_planted_values_are_found_and_lie_in_the_intervals(fitted: tuple[Path, fs.CalibrationResult]) -> None:
    _, result = fitted
    assert result.status == "converged", result.message
    for name, true in TRUE.items():
        low, high = result.joint_intervals[name]
        assert low <= true <= high and low < result.intervals[name][0] < result.values[name] < result.intervals[name][1] < high
        assert result.values[name] == pytest.approx(true, rel=0.01), name
        assert (high - low) / true < 0.03
    assert result.noise["rest, fz"] == pytest.approx(1e-4, rel=0.5)
    assert result.scale == pytest.approx(1.0, abs=0.2)
    assert result.warnings == ()


def test_held_out_and_reference_errors_are_reported(fitted: tuple[Path, fs.CalibrationResult]) -> None:
    _, result = fitted
    held, fit = result.held_out["drop"]["floor force"][0], result.errors["rest"]["floor force"][0]
    assert fit == pytest.approx(math.sqrt(3) * 1e-4, rel=0.4) and held < 10 * fit
    assert result.reference["drop"]["floor force"][0] > 20 * held
    assert set(result.held_out) == {"drop"} and set(result.errors) == {"rest"}


def test_the_folder_holds_all_of_it(fitted: tuple[Path, fs.CalibrationResult]) -> None:
    path, result = fitted
    content = json.loads((result.folder / "calibration.json").read_text())
    assert content["status"] == "converged" and content["parameters"]["young_modulus"]["unit"] == "Pa"
    assert content["parameters"]["density"]["value"] == result.values["density"]
    rows = (result.folder / "evaluations.csv").read_text().splitlines()
    assert rows[0] == "evaluation,phase,young_modulus,density,misfit,message" and len(rows) == result.evaluations + 1
    page = (result.folder / "report.html").read_text()
    assert page.count("<svg") == 3 and "held out" in page and "src=" not in page
    for name in ("convergence.png", "comparisons/rest/overlay.png", "comparisons/drop/report.html", "scene.py"):
        assert (result.folder / name).stat().st_size > 500, name
    assert (result.folder / "calibration.toml").read_text() == path.read_text()
    assert not list(result.folder.glob(".*"))


@pytest.mark.usefixtures("inline")
def test_resume_runs_nothing_twice_and_gives_the_same(fitted: tuple[Path, fs.CalibrationResult]) -> None:
    path, result = fitted
    assert result.cases > 10
    again = fs.calibrate(path, out=result.folder, resume=True)
    assert again.cases == 0 and again.values == result.values and again.intervals == result.intervals
    with pytest.raises(fs.InputError, match=r"exists; go on with it by --resume"):
        fs.calibrate(path, out=result.folder)


@pytest.mark.usefixtures("inline", "undrawn")
def test_an_interrupted_calibration_goes_on(
    fitted: tuple[Path, fs.CalibrationResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, result = fitted

    def stop(evaluation: Evaluation) -> None:
        if evaluation.number == 12:
            raise KeyboardInterrupt

    shared = result.folder / "cases"
    cut = fs.calibrate(path, out=tmp_path / "cut", cases=shared, on_evaluation=stop)
    assert cut.status == "interrupted" and cut.intervals == {} and cut.evaluations == 12
    assert json.loads((tmp_path / "cut" / "calibration.json").read_text())["status"] == "interrupted"
    assert len((tmp_path / "cut" / "evaluations.csv").read_text().splitlines()) == 13
    whole = fs.calibrate(path, out=tmp_path / "cut", cases=shared, resume=True)
    assert whole.status == "converged" and whole.values == result.values and whole.cases == 0


@pytest.mark.usefixtures("inline", "undrawn")
def test_the_command_prints_values_and_says_what_is_wrong(
    fitted: tuple[Path, fs.CalibrationResult], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, result = fitted
    arguments = ["calibrate", str(path), "--out", str(tmp_path / "o"), "--cases", str(result.folder / "cases")]
    assert execute(arguments) == 0
    out = capsys.readouterr().out
    assert "95 % interval" in out and "reference 10000" in out and "held out  drop, floor force" in out
    assert execute(arguments) == 2
    assert "--resume" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ numbers


def linear(seed: int, memory: float = 0.0) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Residuals at the least-squares fit of a line with planted (0.4, 0.6): noise of the first order, unit variance."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, 200)
    design = np.stack([50.0 * np.ones((200, 2)), 50.0 * np.outer(x, [1.0, -1.0])], axis=-1)
    noise = rng.normal(size=(200, 2))
    for k in range(1, 200 if memory else 0):
        noise[k] = memory * noise[k - 1] + math.sqrt(1 - memory**2) * noise[k]
    flat = design.reshape(-1, 2)
    change = np.linalg.lstsq(flat, noise.ravel(), rcond=None)[0]
    return [noise - design @ change], [-design], np.array([0.4, 0.6]) + change


@pytest.mark.parametrize(("memory", "least", "most"), [(0.0, 0.93, 0.97), (0.8, 0.91, 0.98)])
def test_intervals_cover_as_often_as_they_say(memory: float, least: float, most: float) -> None:
    """95 % intervals of white noise hold the truth 95 times in 100; of noise with a memory of 9 samples nearly so."""
    hits, joint, count = 0, 0, 1000
    for seed in range(count):
        residuals, jacobians, unit = linear(seed, memory)
        found = estimate(residuals, jacobians, np.zeros(2), 0.95, known_noise=False)
        inside = np.abs(unit - [0.4, 0.6])
        hits += int((inside <= found.half).sum())
        joint += bool((inside <= found.joint_half).all())
    assert least <= hits / (2 * count) <= most
    assert joint / count >= least


def test_the_error_of_a_tare_is_in_the_intervals() -> None:
    """Noise of unit variance, and the error of a mean of 20 samples in each channel, which the best fit takes up in part.

    The level alone then deviates by sqrt(1/400 + 1/40) / 50, which without the tare is told three times too small.
    """
    constant, hits, without, count = [np.eye(2) / math.sqrt(20)], 0, 0, 400
    for seed in range(count):
        residuals, jacobians, unit = linear(seed)
        off = np.random.default_rng([seed, 1]).normal(size=2) / math.sqrt(20)
        flat = jacobians[0].reshape(-1, 2)
        change = np.linalg.lstsq(flat, -np.tile(off, 200), rcond=None)[0]
        residuals = [residuals[0] + off + (flat @ change).reshape(-1, 2)]
        for constants in (constant, []):
            found = estimate(residuals, jacobians, np.zeros(2), 0.95, known_noise=False, constants=constants)
            inside = int((np.abs(unit + change - [0.4, 0.6]) <= found.half).sum())
            hits, without = (hits + inside, without) if constants else (hits, without + inside)
    assert without / (2 * count) < 0.75 and 0.93 <= hits / (2 * count) <= 0.97
    level = [jacobians[0][..., :1]]
    found = estimate(residuals, level, np.zeros(1), 0.95, known_noise=True, constants=constant)
    assert found.deviation[0] == pytest.approx(math.sqrt(1 / 400 + 1 / 40) / 50, rel=0.05)
    drawn = bootstrap_blocks(residuals, level, np.zeros(1), 0.95, draws=4000, seed=0, constants=constant)
    assert drawn.deviation[0] == pytest.approx(found.deviation[0], rel=0.05)


@pytest.mark.usefixtures("inline", "undrawn")
def test_steps_that_are_short_because_runs_fail_are_no_convergence(tmp_path: Path) -> None:
    """All runs above 1990 kg/m^3 fail, and the truth lies there: the start was the best value, "converged", with an interval."""
    free = "[free]\ndensity = { between = [500, 3000], start = 1985 }\n[parameters]\nyoung_modulus = 2e4\n"
    path = write(tmp_path, free + FIT.replace('"sobol"', '"none"'))
    rows = np.loadtxt(tmp_path / "rest.csv", delimiter=",", skiprows=1) * [1.0, 2.0, 2.0, 2.0]
    np.savetxt(tmp_path / "rest.csv", rows, delimiter=",", header="t,Fx,Fy,Fz", comments="")
    result = fs.calibrate(path, out=tmp_path / "fit")
    assert (
        result.status == "not converged"
        and "stopped beside runs that fail, though 33 % are left" in result.message
        and "too heavy" in result.message
    )


@pytest.mark.usefixtures("inline", "undrawn")
def test_a_tare_of_noisy_samples_widens_the_interval_of_a_fit(tmp_path: Path) -> None:
    """The samples of the tare, in which the cube falls, alternate by 1 mN about the same mean: all else is the same."""
    free = "[free]\ndensity = { between = [500, 2000], start = 1300 }\n[parameters]\nyoung_modulus = 2e4\ndrop = 7e-3\n"
    card = "{ time = { offset = 0.005 }, window = [0.06, 0.15], tare = { start = 0.0, end = 0.0276 } }"
    fit = FIT.replace('"sobol"', '"none"').replace("{ time = { offset = 0.005 } }", card)
    path, widths = write(tmp_path, free + "[noise]\nforce = 1e-4\n" + fit), []
    force = fs.simulate(fs.load_scene(tmp_path / "cube.py", **TRUE, drop=7e-3)).sensors["floor"]
    table = np.column_stack([force.time, force.force + np.random.default_rng(0).normal(0.0, 1e-4, force.force.shape)])
    assert abs(force.force[:6]).max() == 0.0
    for added in (0.0, 1e-3):
        table[:6, 1:] = 0.0
        table[:6, 3] = added * (-1.0) ** np.arange(6)
        np.savetxt(tmp_path / "rest.csv", table, delimiter=",", header="t,Fx,Fy,Fz", comments="", fmt="%.9g")
        result = fs.calibrate(path, out=tmp_path / f"{added}", cases=tmp_path / "cases")
        assert result.values["density"] == pytest.approx(TRUE["density"], rel=2e-3)
        widths.append(np.ptp(result.intervals["density"]))
    # of what is constant, by the mean of 6 samples of which a line takes 2, beside the noise of 19
    assert widths[1] / widths[0] == pytest.approx(math.sqrt(1.0 + 1e-3**2 / 4 / (1e-4**2 / 19)), rel=0.4)


def test_noise_that_is_given_is_not_made_smaller() -> None:
    residuals, jacobians, _ = linear(1)
    small = [0.1 * r for r in residuals]
    free, known = (estimate(small, jacobians, np.zeros(2), 0.95, known_noise=k) for k in (False, True))
    assert known.deviation == pytest.approx(10 * free.deviation, rel=0.1) and known.scale == pytest.approx(0.1, rel=0.1)


def test_a_prior_narrows_what_the_logs_leave_open() -> None:
    residuals, jacobians, _ = linear(1)
    blind = [np.concatenate([j, np.zeros((*j.shape[:2], 1))], axis=2) for j in jacobians]
    without = estimate(residuals, blind, np.zeros(3), 0.95, known_noise=True)
    assert without.blind.tolist() == [False, False, True]
    assert any("do not depend on c" in text for text in concerns("abc", np.full(3, 0.5), without))
    informed = estimate(residuals, blind, np.array([0.0, 0.0, 100.0]), 0.95, known_noise=True)
    assert informed.deviation[2] == pytest.approx(0.1)
    np.testing.assert_allclose(informed.deviation[:2], without.deviation[:2])


def test_correlated_flat_and_bounded_parameters_are_said() -> None:
    residuals, jacobians, _ = linear(1)
    twins = [np.stack([j[..., 0], j[..., 0] * 1.0 + 1e-3 * j[..., 1]], axis=-1) for j in jacobians]
    found = estimate(residuals, twins, np.zeros(2), 0.95, known_noise=True)
    texts = concerns(["a", "b"], np.array([0.5, 1.0]), found)
    assert any("a and b are correlated by -1.000" in text for text in texts)
    assert any(text.startswith("flat direction") for text in texts)
    assert any("b is at its upper bound" in text for text in texts)
    assert any("the interval of a goes beyond its bounds" in text for text in texts)
    assert concerns(["a", "b"], np.array([0.5, 0.5]), estimate(*linear(1)[:2], np.zeros(2), 0.95, known_noise=True)) == []


def test_least_squares_finds_the_bottom_of_a_valley() -> None:
    def residual(u: np.ndarray) -> np.ndarray:
        return np.array([10 * (u[1] - u[0] ** 2), 0.3 - u[0]])

    def jacobian(u: np.ndarray) -> np.ndarray:
        return np.array([[-20 * u[0], 10.0], [-1.0, 0.0]])

    best, ended, left = least_squares(residual, jacobian, np.array([1.0, 0.0]), evaluations=50, tolerance=1e-8)
    assert ended and best == pytest.approx([0.3, 0.09], abs=1e-6) and left > 0.5  # a whole step, of nearly nothing


@pytest.mark.parametrize("method", ["tpe", "differential_evolution", "sobol"])
def test_a_search_finds_the_right_valley_and_repeats_itself(method: str) -> None:
    """Four valleys of which one is deep; cases that fail do no harm."""

    def asked(seed: int) -> list[tuple[float, ...]]:
        points: list[tuple[float, ...]] = []

        def costs(batch: Sequence[np.ndarray]) -> list[float]:
            points.extend(tuple(u.tolist()) for u in batch)
            return [
                math.inf if u[0] < 0.1 else float(((u - 0.73) ** 2).sum() - 0.1 * np.cos(12 * (u - 0.73)).sum()) for u in batch
            ]

        search(Search.model_validate({"method": method, "evaluations": 64, "batch": 16, "seed": seed}), 2, costs)
        return points

    first = asked(0)
    assert len(first) == 64 and first == asked(0) and (method == "sobol" or first != asked(1))
    assert all(0.0 <= x <= 1.0 for point in first for x in point)
    assert min(max(abs(x - 0.73) for x in point) for point in first) < 0.12


def test_coordinates_and_priors_on_both_scales() -> None:
    line = Free.model_validate({"between": [1, 5], "prior": [2, 1]})
    assert line.unit(2.0) == 0.25 and line.value(0.25) == 2.0 and line.prior_in_units() == (0.25, 0.25)
    log = Free.model_validate({"between": [1.0, 100.0], "scale": "log", "prior": [10.0, 1.0]})
    assert log.value(0.5) == pytest.approx(10.0) and log.unit(10.0) == pytest.approx(0.5)
    assert log.prior_in_units() == pytest.approx((0.5, 0.1 / math.log(100.0)))


# ------------------------------------------------------------------------------------------------ what is wrong


@pytest.mark.usefixtures("inline", "undrawn")
def test_a_parameter_without_effect_is_said(tmp_path: Path) -> None:
    free = FREE.replace("density = { between = [500, 2000] }", "unused = { between = [0, 1] }\n")
    path = write(tmp_path, free + "[parameters]\ndensity = 1300.0\n" + FIT.replace("evaluations = 8", "evaluations = 2"))
    result = fs.calibrate(path, out=tmp_path / "fit", workers=1)
    assert result.values["young_modulus"] == pytest.approx(2e4, rel=0.02)
    assert any("do not depend on unused" in text for text in result.warnings)


@pytest.mark.usefixtures("inline", "undrawn")
def test_runs_that_fail_cost_nothing_but_themselves(tmp_path: Path) -> None:
    """A density above 1990 cannot be built: the fit goes on without those runs; a broken scene ends it in words."""
    path = write(tmp_path, FREE.replace("[500, 2000]", "[600, 2400]") + FIT)
    result = fs.calibrate(path, out=tmp_path / "fit", workers=2)
    assert result.status == "converged"
    assert result.values == {name: pytest.approx(true, rel=0.01) for name, true in TRUE.items()}
    (warning,) = result.warnings
    assert "evaluations failed or did not converge, the first: rest: failed" in warning and "too heavy" in warning
    broken = write(tmp_path, FREE + "[parameters]\nbroken = true\n" + FIT, "broken.toml")
    nothing = fs.calibrate(broken, out=tmp_path / "nothing", workers=2)
    assert nothing.status == "failed" and "division by zero" in nothing.message and math.isnan(nothing.values["density"])
    assert json.loads((tmp_path / "nothing" / "calibration.json").read_text())["parameters"]["density"]["value"] is None
    with pytest.raises(fs.InputError, match="too heavy"):
        fs.calibrate(write(tmp_path, FREE.replace("[500, 2000]", "[1991, 2000]") + FIT), out=tmp_path / "heavy")


@pytest.mark.usefixtures("inline", "undrawn")
def test_runs_that_a_full_disk_or_a_kill_ended_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others that failed would fail again."""
    path, out = write(tmp_path, FREE + FIT), tmp_path / "fit"

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(case_module, "_write_series", full)
        with pytest.raises(fs.InputError, match=r"stopped since the disk cannot be written: .* Free it and use --resume"):
            fs.calibrate(path, out=out, workers=1)
    again = fs.calibrate(path, out=out, workers=1, resume=True)
    assert again.status == "converged" and again.values["density"] == pytest.approx(1300.0, rel=0.01)
    assert not any("evaluations failed" in text for text in again.warnings)


@pytest.mark.usefixtures("inline", "undrawn")
def test_runs_that_are_wrong_are_not_fitted_to(tmp_path: Path) -> None:
    """Above a density a driven probe goes into a wall far away: status converged, but the verdict is wrong."""
    path = write(tmp_path, FREE + FIT)
    probe = (
        "    if density > 1700.0:\n"
        "        scene.add_obstacle('wall', fs.Box((0.01, 0.01, 0.01)), position=(1, 0, 1))\n"
        "        scene.add_rigid('probe', fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(1, 0, 1.03))\n"
        "        scene.drive('probe', fs.Motion([0, 0.1], [(0, 0, 0), (0, 0, -0.02)]))\n"
    )
    scene = tmp_path / "cube.py"
    scene.write_text(scene.read_text().replace("    scene.sensor(", probe + "    scene.sensor("))
    result = fs.calibrate(path, out=tmp_path / "fit", workers=1)
    assert result.status == "converged" and result.values["density"] == pytest.approx(1300.0, rel=0.01)
    (warning,) = result.warnings
    assert "the first: rest: wrong: probe and wall are 10 mm in each other" in warning


@pytest.mark.usefixtures("inline", "undrawn")
def test_a_fit_says_what_its_log_lacks(tmp_path: Path) -> None:
    """Compare alone said it."""
    path = write(tmp_path, FREE + FIT)
    rows = (tmp_path / "rest.csv").read_text().splitlines(keepends=True)
    (tmp_path / "rest.csv").write_text("".join(rows[:9] + rows[19:]))
    result = fs.calibrate(path, out=tmp_path / "fit", workers=1)
    assert result.values["density"] == pytest.approx(1300.0, rel=0.02)
    (text,) = result.warnings
    assert text.startswith("rest: ") and "rest.csv has gaps of up to" in text


@pytest.mark.usefixtures("inline", "undrawn")
def test_a_fit_to_columns_in_the_wrong_order_says_so(tmp_path: Path) -> None:
    """With x and y swapped only a bias was suspected."""
    path = write(tmp_path, FREE + FIT)
    scene = tmp_path / "cube.py"
    aslant = scene.read_text().replace("position=where", "position=where, velocity=(-0.4, 1.0, 0.0)")
    scene.write_text(aslant)
    force = fs.simulate(fs.load_scene(scene, **TRUE)).sensors["floor"]
    log = np.column_stack([force.time, force.force[:, [1, 0, 2]]])
    np.savetxt(tmp_path / "rest.csv", log, delimiter=",", header="t,Fx,Fy,Fz", comments="", fmt="%.9g")
    result = fs.calibrate(path, out=tmp_path / "fit", workers=1)
    assert any(text.startswith("rest: forces would fit") and "fx and fy swapped" in text for text in result.warnings), (
        result.warnings
    )


@pytest.mark.usefixtures("inline", "undrawn")
def test_runs_that_fail_on_both_sides_of_the_best_point_leave_no_intervals(tmp_path: Path) -> None:
    """The scene takes no Young's modulus but that of the start; the search is left out."""
    path = write(tmp_path, FREE + FIT.replace('"sobol"', '"none"'))
    scene = tmp_path / "cube.py"
    guard = "    if abs(young_modulus - 5e3 * 20**0.5) > 1.0:\n        raise ValueError('another one')\n"
    scene.write_text(scene.read_text().replace("    if density > 1990.0:", guard + "    if density > 1990.0:"))
    result = fs.calibrate(path, out=tmp_path / "fit", workers=1)
    assert result.status == "failed" and result.intervals == {} and result.values["density"] == pytest.approx(1250.0, abs=15.1)
    assert result.message.startswith("Runs beside the best point fail, so that there are no derivatives by young_modulus.")
    assert any("another one" in text for text in result.warnings)


def test_errors_in_gaps_of_logs_are_none(tmp_path: Path) -> None:
    """They had been drawn straight from one side to the other, as if that was measured."""
    path = write(tmp_path, FREE + FIT)
    rows = (tmp_path / "rest.csv").read_text().splitlines(keepends=True)
    (tmp_path / "rest.csv").write_text("".join(rows[:9] + rows[19:]))
    with Evaluator(path, read_calibration(path), tmp_path / "cases", Inline(None, 1), None) as evaluator:
        error = evaluator.evaluate("start", [np.array([0.5, 0.5])])[0].blocks[0].error
    empty = np.flatnonzero((error == 0.0).all(axis=1))
    assert len(empty) >= 9 and np.ptp(empty) == len(empty) - 1 and (error[empty[0] - 1] != 0.0).all()
    assert len(error) - len(empty) >= 15


@pytest.mark.parametrize("rate", [100.0, 71.0, 130.0])
def test_noise_counts_alike_wherever_a_run_puts_the_log(rate: float) -> None:
    """Halfway between its samples interpolation had halved its square, by which fits with a lag to find were drawn there."""
    time, own = 0.01 * np.arange(1, 301), np.arange(0.0, 2.0, 1.0 / rate)
    noise, run = np.random.default_rng(3).normal(0.0, 0.1, len(own)), pulled(time, fx=np.sin(3.0 * time))
    found = []
    for offset in (0.5, 0.502, 0.505):
        channel = Channel("fx", "force", "N")
        values = (np.sin(3.0 * (own + 0.5)) + noise)[:, None]
        log = fs.Log("log.csv", own, (channel,), values, read_card({"time": {"offset": offset}}), "pull")
        found.append(compare(run, log))
    samples = samples_of(found[0])
    errors = [block_of(one, samples).error for one in found]
    at, first = samples[0].time, errors[0]
    for other, offset in zip(errors[1:], (0.502, 0.505), strict=True):
        moved = np.sin(3.0 * (at + offset)) - np.sin(3.0 * (at + 0.5))
        np.testing.assert_allclose((other - first)[5:-5, 0], moved[5:-5], atol=2e-4)


def test_white_noise_stays_white_wherever_a_run_puts_the_log() -> None:
    """Samples between those of the log had 0.6 of its square and hung together, as of a model that is not exact."""
    time = 0.01 * np.arange(1, 301)
    run, noise = pulled(time, fx=np.sin(3.0 * time)), np.random.default_rng(5).normal(0.0, 0.1, 200)
    channels, own = (Channel("fx", "force", "N"),), 0.01 * np.arange(200)
    for offset in (0.51, 0.513, 0.515, 0.518):
        values = (np.sin(3.0 * (own + offset)) + noise)[:, None]
        log = fs.Log("log.csv", own, channels, values, read_card({"time": {"offset": offset}}), "pull")
        found = compare(run, log)
        error = block_of(found, samples_of(found)).error[2:-2, 0]
        assert error.std() == pytest.approx(noise.std(), rel=0.01)
        assert abs(np.corrcoef(error[1:], error[:-1])[0, 1] - np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.02


def test_samples_at_the_ends_of_a_run_make_no_jump(tmp_path: Path) -> None:
    """A noisy one that came in by a small move of the offset was a derivative of every parameter, which narrowed intervals."""
    time = 0.01 * np.arange(1, 301)
    run, noise = pulled(time, fx=np.sin(3.0 * time)), np.random.default_rng(5).normal(0.0, 0.2, 300)
    values, channels = (np.sin(3.0 * time) + noise)[:, None], (Channel("fx", "force", "N"),)

    def found(offset: float) -> Comparison:
        log = fs.Log("log.csv", time - time[0], channels, values, read_card({"time": {"offset": offset}}), "pull")
        return compare(run, log)

    samples = samples_of(found(0.01))
    error = [block_of(found(0.01 + shift), samples).error for shift in (-1e-4, 0.0, 1e-4)]
    assert max(np.abs(np.diff(error, axis=0)).max(axis=(1, 2))) < 0.01
    log = fs.Log("log.csv", time - time[0], channels, values, read_card({}), "pull")
    edges = samples_of(compare(run, log))[0].there
    assert not edges[:2].any() and not edges[-2:].any() and edges[3:-3].all()


def test_a_parameter_that_may_be_none_can_be_free(tmp_path: Path) -> None:
    """As in scenes whose None takes the value of a card."""
    path = write(tmp_path, FREE + FIT)
    scene = tmp_path / "cube.py"
    assert "density: float =" in scene.read_text()
    scene.write_text(scene.read_text().replace("density: float =", "density: float | None ="))
    evaluator = Evaluator(path, read_calibration(path), tmp_path / "cases", Inline(None, 1), None)
    assert set(evaluator.values(np.array([0.5, 0.5]))) == set(TRUE)


def test_a_scene_that_is_impossible_in_the_middle_of_the_bounds_starts_where_it_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, FREE.replace("2000] }", "2000], start = 700 }") + FIT)
    scene = tmp_path / "cube.py"
    head, body = scene.read_text().split("    scene = fs.Scene", 1)
    scene.write_text(f"{head}    if density > 1000.0:\n        raise ValueError('too heavy')\n    scene = fs.Scene{body}")
    with Evaluator(path, read_calibration(path), tmp_path / "cases", Inline(None, 1), None) as evaluator:
        (found,) = evaluator.evaluate("start", [np.array([0.5, 200.0 / 1500.0])])
    assert found.blocks and not found.message


def test_runs_of_step_means_are_compared_in_the_middle_of_their_steps(tmp_path: Path) -> None:
    """A log of what the same run reads, where its steps have their middles: at the true values nothing is left."""
    path = write(tmp_path, FREE + FIT.replace("offset = 0.005", "offset = 0.0025"), noise=0.0)
    scene = tmp_path / "cube.py"
    scene.write_text(scene.read_text().replace(", theta=1.0", ""))
    force = fs.simulate(fs.load_scene(scene, **TRUE)).sensors["floor"]
    rows = np.column_stack([force.time, force.force])
    np.savetxt(tmp_path / "rest.csv", rows, delimiter=",", header="t,Fx,Fy,Fz", comments="", fmt="%.9g")
    with Evaluator(path, read_calibration(path), tmp_path / "cases", Inline(None, 1), None) as evaluator:
        (found,) = evaluator.compare_all(np.array([math.log(4.0) / math.log(20.0), 800.0 / 1500.0]))["rest"]
    assert found.axes["fz"].rmse < 1e-6 * np.ptp(found.measured[:, 2])


def test_rows_of_many_steps_are_compared_as_those_of_a_run(tmp_path: Path) -> None:
    path = write(tmp_path, FREE + '[settings]\ndt = "auto"\n' + FIT, noise=0.0)
    run = fs.simulate(fs.load_scene(tmp_path / "cube.py", **TRUE), dt="auto")
    assert np.ptp(run.steps["substeps"]) > 0
    with Evaluator(path, read_calibration(path), tmp_path / "cases", Inline(None, 1), None) as evaluator:
        (found,) = evaluator.compare_all(np.array([math.log(4.0) / math.log(20.0), 800.0 / 1500.0]))["rest"]
    wanted = fs.compare(run, tmp_path / "rest.csv", {"time": {"offset": 0.005}})
    assert np.abs(found.run_values - wanted.run_values).max() < 1e-9 * np.ptp(wanted.run_values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FREE.replace("density", "densty") + FIT, r"densty: the scene cube.py has no such parameter; did you mean 'density'"),
        (FREE.replace("density", "count") + FIT, r"free\.count is no number with a fraction"),
        (
            FREE.replace("[500, 2000]", "[2000, 500]") + FIT,
            r"free\.density is between \[2000.0, 500.0\]; the first must be below",
        ),
        (FREE.replace("scale =", "scal =") + FIT, r"free\.young_modulus\.scal: the key is unknown; did you mean 'scale'"),
        (FREE.replace("reference = 1e4", "start = 1e6") + FIT, r"start 1e\+06, which is not between its bounds"),
        (FREE + FIT.replace("rest.csv", "gone.csv"), r"gone\.csv"),
        (FREE + FIT.replace('"rest.csv"', '"rest.csv", "rest.csv"'), r"rest\.csv is listed twice"),
        (
            FREE.replace("2000] }", "2000], prior = [3000, 10] }") + FIT,
            r"free\.density has a prior of mean 3000, which is not between its bounds 500 and 2000",
        ),
        (
            FREE.replace("reference = 1e4", "prior = [-1, 1]") + FIT,
            r"free\.young_modulus has a prior of mean -1, which is not between its bounds",
        ),
        (FREE + "[noise]\ntorque = 0.1\n" + FIT, r"c\.toml: noise\.torque is 0\.1, but the logs have no torque, only force"),
        (FREE + FIT.replace("card =", "sensor = 'flor', card ="), r"sensor 'flor' is not in the scene; did you mean 'floor'"),
        (FREE + FIT.replace('name = "rest"', 'name = "rest"\nheld_out = true'), r"holds all experiments out"),
        (FREE + FIT + FIT[FIT.index("[[") :], r"two experiments named 'rest'"),
        (FREE + FIT.replace('name = "rest"', 'name = "a/b"'), r"experiments\.1\.name is 'a/b'; it names a folder"),
        (FREE + "[parameters]\ndensity = 1.0\n" + FIT, r"names density in \[free\] and as a fixed parameter"),
        (FREE + FIT.replace("offset =", "ofset ="), r"time\.ofset: the key is unknown; did you mean 'offset'"),
        (FIT, r"free is missing"),
        ("[free", r"is not valid TOML"),
    ],
)
def test_wrong_files_are_refused_in_words(tmp_path: Path, text: str, message: str) -> None:
    assert_refused(write(tmp_path, text), message)


@pytest.mark.parametrize(
    ("sensor", "card", "message"),
    [
        (
            '"near", "cube", kind="gap", partner="floor"',
            'sensor = "near", ',
            r"c\.toml: the run rest has only near \(gap\); a comparison takes markers, and sensors of the kinds contact, mount",
        ),
        ('"tip", "cube", kind="marker", node=0', 'sensor = "tipp", ', r"c\.toml: sensor 'tipp' is not in rest"),
    ],
)
@pytest.mark.usefixtures("inline")
def test_readings_that_no_run_will_have_are_refused_before_the_first(
    sensor: str, card: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are none of forces, or the scene has none: a scene without force sensors has no names to check the card against."""
    path = write(tmp_path, FREE + FIT.replace("card = { ", f"card = {{ {card}"))
    scene = tmp_path / "cube.py"
    scene.write_text(scene.read_text().replace('"floor", "floor"', sensor))
    monkeypatch.setattr(Inline, "run", lambda self, jobs: pytest.fail("a case runs"))
    assert_refused(path, message)


def test_a_missing_file_and_a_folder_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(fs.InputError, match=r"cannot be read"):
        read_calibration(tmp_path / "none.toml")
    path = write(tmp_path, FREE + FIT)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(fs.InputError, match=r"is no calibration"):
        fs.calibrate(path, out=tmp_path / "mine", resume=True)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "precious"
    with pytest.raises(fs.InputError, match=r"thesis\.tex is a file, not a folder"):
        fs.calibrate(path, out=tmp_path / "mine" / "thesis.tex", resume=True)


def test_one_calibration_at_a_time_works_on_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate_module, "Engine", Inline)
    path, out = write(tmp_path, FREE + FIT), tmp_path / "fit"

    def look(_: object) -> None:
        assert is_locked(out)
        raise KeyboardInterrupt

    assert fs.calibrate(path, out=out, workers=1, on_evaluation=look).status == "interrupted"
    assert is_locked(out) is False
    with hold_results(out), pytest.raises(fs.InputError, match=r"another process is working on the folder .*fit; wait"):
        fs.calibrate(path, out=out, resume=True)


def test_what_ends_before_any_run_leaves_no_folder_and_later_says_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that does not answer; then logs that do not overlap with the run, which shows after the first run only."""
    path = write(tmp_path, FREE + FIT)
    monkeypatch.setattr(engine_module, "_CONNECT_S", 1.0)
    with pytest.raises(fs.InputError, match=r"does not answer"):
        fs.calibrate(path, out=tmp_path / "fit", scheduler="tcp://127.0.0.1:1")
    assert not (tmp_path / "fit").exists()
    monkeypatch.setattr(calibrate_module, "Engine", Inline)
    late = write(tmp_path, FREE + FIT.replace("offset = 0.005", "offset = 5.0"), "late.toml")
    with pytest.raises(fs.InputError, match=r"share 0 samples"):
        fs.calibrate(late, out=tmp_path / "late", workers=1)
    content = json.loads((tmp_path / "late" / "calibration.json").read_text())
    assert content["status"] == "failed" and "share 0 samples" in content["message"]


def test_the_squeezed_ball_slips_with_its_friction() -> None:
    """While the fingers pull and slip, each carries friction times what it presses; the floor has the rest of the weight."""
    run = fs.simulate(fs.load_scene("squeezed_ball", friction=0.3, dt=0.02, divisions=4))
    assert run.status == "converged"
    left, floor = run.sensors["left"].force, run.sensors["floor"].force
    assert left[-5:, 2] / left[-5:, 0] == pytest.approx(0.3, rel=1e-3)
    assert abs(floor[22:25, 2]).mean() > 1.15 * abs(floor[2, 2])
