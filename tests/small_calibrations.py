"""Small calibration files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_scene import scene_file

import femsim as fs

TRUE = {"young_modulus": 2e4, "density": 1300.0}


SCENE = '''"""A soft cube is let go above a floor."""

import femsim as fs


def build(young_modulus: float = 1e4, density: float = 1000.0, unused: float = 1.0, count: int = 1, drop: float = 0.0,
          broken: bool = False) -> fs.Scene:
    """Let it go.

    Parameters
    ----------
    young_modulus : float, Pa
        Young's modulus.
    density : float, kg/m^3
        Density.
    """
    if density > 1990.0:
        raise ValueError("too heavy")
    scene = fs.Scene("cube", dt=0.005, duration=0.15, theta=1.0)
    scene.add_floor()
    rubber = fs.Elastic(young_modulus, 0.3, density, rayleigh_beta=2e-3)
    where = (0.0, 0.0, 0.01 + drop)
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=where, load=(lambda t: 1 / 0) if broken else None)
    scene.sensor("floor", "floor")
    return scene
'''


FREE = "[free]\nyoung_modulus = { between = [5e3, 1e5], scale = 'log', reference = 1e4 }\ndensity = { between = [500, 2000] }\n"


FIT = (
    '[search]\nmethod = "sobol"\nevaluations = 8\nbatch = 8\n[refine]\nevaluations = 10\n'
    '[[experiments]]\nname = "rest"\nreadings = [{ logs = ["rest.csv"], card = { time = { offset = 0.005 } } }]\n'
)


def write(folder: Path, text: str, name: str = "c.toml", noise: float = 1e-4, seed: int = 1) -> Path:
    """Write the scene, logs of it at the true values, and a calibration file."""
    scene = scene_file(folder, SCENE, "cube.py")
    for number, (log, drop) in enumerate((("rest", 0.0), ("drop", 2e-3))):
        if not (folder / f"{log}.csv").exists():
            force = fs.simulate(fs.load_scene(scene, **TRUE, drop=drop)).sensors["floor"]
            rng = np.random.default_rng([seed, number])
            table = np.column_stack([force.time, force.force + rng.normal(0.0, noise, force.force.shape)])
            np.savetxt(folder / f"{log}.csv", table, delimiter=",", header="t,Fx,Fy,Fz", comments="", fmt="%.9g")
    path = folder / name
    path.write_text(f'scene = "cube.py"\n{text}', encoding="utf-8")
    return path


def altered(text: str, old: str, new: str) -> str:
    """Put another text in the place of one that stands there."""
    assert old in text, old
    return text.replace(old, new)


def assert_refused(path: Path, message: str) -> None:
    """A calibration is refused with this message, and leaves no folder."""
    out = path.parent / "fit"
    with pytest.raises(fs.InputError, match=message):
        fs.calibrate(path, out=out, workers=1)
    assert not out.exists()
