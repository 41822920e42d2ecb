"""Young's modulus from the log of a tensile tester with columns, units, a clock and zeros of its own, by a card."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from inline_engine import Inline

import femsim as fs
from femsim.studies.calibration import calibrate as calibrate_module

SCENE = '''"""A clamped rubber bar is pulled, and let back."""

import femsim as fs


def build(young_modulus: float = 1e5) -> fs.Scene:
    """Pull it.

    Parameters
    ----------
    young_modulus : float, Pa
        Young's modulus.
    """
    scene = fs.Scene("tensile", dt=0.01, duration=0.6, theta=1.0, gravity=(0.0, 0.0, 0.0))
    rubber = fs.Elastic(young_modulus, 0.45, 1000.0, rayleigh_beta=2e-3)
    bar = scene.add_soft("bar", fs.box_tets((0.04, 0.01, 0.01), (4, 1, 1)), rubber, fixed=lambda p: p[:, 0] < -0.0199)
    way = fs.Motion([0.1, 0.3, 0.5], [(0, 0, 0), (0.004, 0, 0), (0.001, 0, 0)])
    clamp = scene.hold(bar, lambda p: p[:, 0] > 0.0199, way, name="clamp")
    scene.sensor("load", clamp, kind="mount")
    scene.sensor("head", bar, kind="marker", at=(0.02, 0.0, 0.0))
    return scene
'''
TRUE = 7.3e4
START, RATE = 0.03, 250.0  # s of the run at the first sample of the log, Hz
NOISE, ZERO = 0.01, 2.5  # of the load, N
CALIBRATION = """scene = "tensile.py"
[free]
young_modulus = { between = [2e4, 3e5], scale = "log" }
[search]
method = "none"
[[experiments]]
name = "pull"
readings = [{ logs = ["bench 7.csv"], card = "bench.toml" }]
"""
CARD = """[columns]
load_fx_N = "-Last"
head_x_m = "Traverse (mm)"
[units]
force = "kN"
[time]
column = "Uhr"
unit = "ms"
[tare]
end = 0.05
"""


def bench_log(folder: Path, zero: float = ZERO) -> None:
    """Write the scene, the card, the calibration, and what the tester wrote of a bar of the true modulus."""
    (folder / "tensile.py").write_text(SCENE, encoding="utf-8")
    (folder / "bench.toml").write_text(CARD, encoding="utf-8")
    (folder / "c.toml").write_text(CALIBRATION, encoding="utf-8")
    table = fs.simulate(fs.load_scene(folder / "tensile.py", young_modulus=TRUE)).table()
    time = np.arange(START, 0.6, 1.0 / RATE)
    load, head = (np.interp(time, table["time_s"], table[column]) for column in ("load_fx_N", "head_x_m"))
    load = load + zero + np.random.default_rng(5).normal(0.0, NOISE, len(time))
    rows = zip(1e5 + 1e3 * (time - START), -1e-3 * load, 1e3 * head + 312.0, strict=True)
    lines = [";".join(f"{value:.7f}" for value in row).replace(".", ",") for row in rows]
    (folder / "bench 7.csv").write_text("Probe 12\nUhr;Last;Traverse (mm)\n" + "\n".join(lines) + "\n", encoding="utf-8")


def test_the_modulus_comes_back_within_its_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros, unit, sign and clock of the log would each move it by far more than the interval is wide."""
    monkeypatch.setattr(calibrate_module, "Engine", Inline)
    bench_log(tmp_path)
    result = fs.calibrate(tmp_path / "c.toml", out=tmp_path / "fit", workers=1)
    assert result.status == "converged", result.message
    low, high = result.joint_intervals["young_modulus"]
    assert low <= TRUE <= high and high - low < 0.05 * TRUE
    assert result.values["young_modulus"] == pytest.approx(TRUE, rel=0.01)
    load, head = result.errors["pull"]["load_fx"][0], result.errors["pull"]["head_x"][0]
    assert 0.3 * NOISE < load < NOISE and head < 1e-5  # filtered at 40 Hz
    assert all("residuals hang together in time" in text for text in result.warnings)  # the filter's


@pytest.mark.parametrize(
    ("card", "said"),
    [
        (CARD.partition("[tare]")[0], "pull: a constant 0.199 N and a gain of 0.763 make 100 % of the misfit of load_fx"),
        (CARD.replace("-Last", "Last"), "it would share 100.0 instead of 81.7 % of its variation: check its sign and unit"),
    ],
)
def test_a_zero_or_a_sign_that_the_modulus_takes_up_is_said(
    card: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zero of 0.2 N made a modulus that was 31 % too large, within an interval that held the truth by luck, without a word."""
    monkeypatch.setattr(calibrate_module, "Engine", Inline)
    bench_log(tmp_path, zero=0.2)
    (tmp_path / "bench.toml").write_text(card.replace('head_x_m = "Traverse (mm)"\n', ""), encoding="utf-8")
    result = fs.calibrate(tmp_path / "c.toml", out=tmp_path / "fit", workers=1)
    assert abs(result.values["young_modulus"] / TRUE - 1.0) > 0.3
    assert any(text.startswith("pull: ") and said in text for text in result.warnings), result.warnings
