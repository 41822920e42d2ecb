"""Prony terms as parameters of a calibration: they come back, and their readings have intervals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from inline_engine import Inline
from small_scene import scene_file

import femsim as fs
from femsim.studies.calibration import calibrate as calibrate_module
from femsim.studies.calibration.file import CalibrationFile
from femsim.studies.calibration.readings import with_intervals

SCENE = '''"""A block is sheared at once, and held."""

import femsim as fs


def build(young_modulus: float = 1e5, prony_g: float = 0.1, prony_tau: float = 0.1) -> fs.Scene:
    """Shear it.

    Parameters
    ----------
    young_modulus : float, Pa
        Young's modulus.
    prony_g : float, 1
        Part of the modulus that relaxes.
    prony_tau : float, s
        In this time.
    """
    scene = fs.Scene("sheared", dt=0.01, duration=0.3, theta=1.0)
    rubber = fs.Elastic(young_modulus, 0.3, 1000.0, prony=((prony_g, prony_tau),))
    block = scene.add_soft("block", fs.box_tets((0.02, 0.02, 0.02), 1), rubber, fixed=lambda x: x[:, 2] < 0.0)
    pull = fs.Motion([0.0, 0.01, 9.0], [(0, 0, 0), (1e-3, 0, 0), (1e-3, 0, 0)], smooth=False)
    scene.sensor("top", scene.hold(block, lambda x: x[:, 2] > 0.0, pull), kind="mount")
    return scene
'''
CALIBRATION = """scene = "sheared.py"
[free]
young_modulus = { between = [5e4, 2e5], scale = "log" }
prony_g = { between = [0.05, 1.0] }
prony_tau = { between = [0.02, 0.5], scale = "log" }
[search]
method = "sobol"
evaluations = 8
[prony]
terms = [["prony_g", "prony_tau"], [0.1, 2]]
loss_factor = [1, 4.0]
creep = [[0, 0.1]]
[[experiments]]
name = "held"
readings = [{ logs = ["held.csv"], card = { time = { offset = 0.06 } } }]
"""


def test_terms_are_found_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate_module, "Engine", Inline)
    true = {"young_modulus": 9e4, "prony_g": 0.4, "prony_tau": 0.08}
    scene = scene_file(tmp_path, SCENE, "sheared.py")
    force = fs.simulate(fs.load_scene(scene, **true), quiet=True).sensors["top"]
    noise = np.random.default_rng(0).normal(0.0, 1e-3, force.force.shape)
    table = np.column_stack([force.time, force.force + noise])[5:]
    np.savetxt(tmp_path / "held.csv", table, delimiter=",", header="t,Fx,Fy,Fz", comments="", fmt="%.9g")
    (tmp_path / "c.toml").write_text(CALIBRATION)
    result = fs.calibrate(tmp_path / "c.toml", out=tmp_path / "out")
    assert result.status == "converged"
    for name, value in true.items():
        low, high = result.joint_intervals[name]
        assert low < value < high and high / low < 2.0
    terms = ((0.4, 0.08), (0.1, 2.0))
    wanted = {
        "loss factor at 1 Hz": float(fs.loss_factor(terms, 1.0)), "loss factor at 4 Hz": float(fs.loss_factor(terms, 4.0)),
        "creep from 0 to 0.1 s": float(fs.creep(terms, 0.1) / fs.creep(terms, 0.0)) - 1.0,
    }  # fmt: skip
    assert result.readings.keys() == wanted.keys()
    for name, (value, low, high) in result.readings.items():
        assert value == pytest.approx(wanted[name], rel=0.1) and 0.5 * value < low < value < high < 1.5 * value
    told = json.loads((tmp_path / "out" / "calibration.json").read_text())["readings"]
    assert told["loss factor at 4 Hz"]["value"] == result.readings["loss factor at 4 Hz"][0]
    assert "loss factor at 4 Hz" in (tmp_path / "out" / "report.html").read_text()
    for old, new, part in (
        ('"prony_tau"]', '"prony_tua"]', "names 'prony_tua', which is no parameter of the scene; did you mean 'prony_tau'"),
        ("[0.1, 2]", "[-0.1, 2]", "g must be at least 0"),
        ("loss_factor", "los_factor", "los_factor"),
    ):
        (tmp_path / "d.toml").write_text(CALIBRATION.replace(old, new))
        with pytest.raises(fs.InputError, match=part):
            fs.calibrate(tmp_path / "d.toml", out=tmp_path / "other")


def test_the_interval_of_a_reading_is_that_of_draws() -> None:
    """Delta method against 4000 draws from the normal distribution of correlated estimates."""
    file = CalibrationFile.model_validate(
        {
            "scene": "s", "free": {"g": {"between": [0.0, 1.0]}, "tau": {"between": [0.01, 1.0], "scale": "log"}},
            "experiments": [{"name": "e", "readings": [{"logs": ["l"]}]}],
            "prony": {"terms": [["g", "tau"]], "loss_factor": [2.0], "creep": [[0.0, 0.3]]},
        }
    )  # fmt: skip
    best, half, correlation = np.array([0.4, 0.5]), np.array([0.02, 0.01]), np.array([[1.0, -0.6], [-0.6, 1.0]])
    found = with_intervals(file, (), best, half, correlation)
    drawn = np.random.default_rng(0).multivariate_normal(best, correlation * np.outer(half, half) / 1.96**2, 4000)
    for k, name in enumerate(("loss factor at 2 Hz", "creep from 0 to 0.3 s")):
        all_of = []
        for unit in drawn:
            terms = ((unit[0], 0.01 * 100.0 ** unit[1]),)
            all_of.append(fs.loss_factor(terms, 2.0) if k == 0 else fs.creep(terms, 0.3) / fs.creep(terms, 0.0) - 1.0)
        value, low, high = found[name]
        assert low < value < high
        assert [low, high] == pytest.approx(np.quantile(all_of, [0.025, 0.975]), abs=0.06 * (high - low))
    assert np.isnan(with_intervals(file, (), best, None, correlation)[name][1:]).all()
