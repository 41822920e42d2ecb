"""Parameters of a scene from single columns of logs: planted values are found again, what no run will have is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from driven_joint import write_scene, write_table
from inline_engine import Inline
from small_calibrations import altered, assert_refused

import femsim as fs
from femsim.studies.calibration import calibrate as calibrate_module


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate_module, "Engine", Inline)


TRUE = {"damping": 0.08, "mass": 0.5}
CARD_LINE = 'columns = { elbow_torque_Nm = "-effort [mNm]" }'
READINGS = f'readings = [{{ logs = ["torque.csv"], card = {{ {CARD_LINE}, time = {{ offset = 0.005 }} }} }}]\n'
FIT = (
    "[free]\ndamping = { between = [0.01, 0.3] }\nmass = { between = [0.2, 1.0] }\n"
    '[search]\nmethod = "none"\n[noise]\ntorque = 0.01\n[[experiments]]\nname = "swing"\n' + READINGS
)


def calibration(folder: Path, fit: str = FIT) -> Path:
    """A scene, a log of its torque at the true values with noise, and a calibration file."""
    scene = write_scene(folder)
    run = fs.simulate(fs.load_scene(scene, **TRUE))
    rng = np.random.default_rng(4)
    torque = -1e3 * (run.table()["elbow_torque_Nm"] + rng.normal(0.0, 0.01, len(run.steps["time_s"])))
    write_table(folder / "torque.csv", "time,effort [mNm]", np.column_stack([run.steps["time_s"], torque]))
    path = folder / "c.toml"
    path.write_text(f'scene = "driven_joint.py"\n{fit}', encoding="utf-8")
    return path


@pytest.mark.usefixtures("inline")
def test_damping_and_mass_are_found_from_a_torque(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    path = calibration(tmp_path)
    result = fs.calibrate(path, out=tmp_path / "fit", workers=1)
    assert result.status == "converged", result.message
    for name, true in TRUE.items():
        low, high = result.joint_intervals[name]
        assert low <= true <= high and (high - low) / true < 0.1, name
        assert result.values[name] == pytest.approx(true, rel=0.03)
    assert result.scale == pytest.approx(1.0, abs=0.15) and result.noise == {"swing, elbow_torque": 0.01}
    assert result.errors["swing"]["elbow_torque"][0] == pytest.approx(0.01, rel=0.15)
    status, _, err = call("calibrate", str(path), "--out", str(tmp_path / "fit"), "--resume", "--workers", "1", "--quiet")
    assert (status, err) == (0, "")
    content = json.loads((tmp_path / "fit" / "calibration.json").read_text())
    assert content["parameters"]["damping"]["value"] == pytest.approx(result.values["damping"], rel=1e-6)
    assert "elbow torque [N m]" in (tmp_path / "fit" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "elbow_torque_Nm",
            "elbow_torq_Nm",
            r"c\.toml: column 'elbow_torq_Nm', which \[columns\] of the card names, .* swing; did you mean 'elbow_torque_Nm'",
        ),
        ("logs =", 'sensor = "elbow", logs =', r"c\.toml: sensor 'elbow' is asked for, but the card maps columns"),
        ("torque = 0.01", "angle = 0.01", r"c\.toml: noise\.angle is 0\.01, but the logs have no angle, only torque"),
        (
            CARD_LINE,
            'axes = { tx = "effort" }',
            r"c\.toml: the run swing has only elbow \(revolute\); .* Or name columns of its sensors\.csv under \[columns\]",
        ),
    ],
)
@pytest.mark.usefixtures("inline")
def test_a_calibration_to_columns_that_are_not_there_is_refused_before_it_runs(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = calibration(tmp_path, altered(FIT, old, new))
    monkeypatch.setattr(Inline, "run", lambda self, jobs: pytest.fail("a case runs"))
    assert_refused(path, message)
