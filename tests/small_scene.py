"""A small scene for tests of everything around the engine: a soft cube of 27 nodes on a floor, a few milliseconds a step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import femsim as fs

STEPS = 4
DT = 0.01

FILE = '''"""A soft cube on a floor.

It stays there.
"""

from __future__ import annotations

import femsim as fs


def build(
    young_modulus: float = 1e5, side: float = 0.02, steps: int = 4, floor: bool = True, where: tuple[float, float] = (0.0, 0.0)
) -> fs.Scene:
    """Put a cube on a floor.

    Parameters
    ----------
    young_modulus : float, Pa
        Young's modulus of the
        cube.
    side : float, m
        Edge length.
    steps : int, 1
        Number of steps.
    floor : bool
        Whether there is a floor.
    where : (2,) float, m
        Place of the cube.
    """
    scene = fs.Scene("small_cube", dt=0.01, duration=0.01 * steps, theta=1.0)
    if floor:
        scene.add_floor()
    rubber = fs.Elastic(young_modulus, 0.3, 1000.0, name="rubber")
    scene.add_soft("cube", fs.box_tets((side, side, side), 2), rubber, position=(*where, 0.5 * side))
    scene.sensor("cube", "cube")
    return scene
'''


def cube_scene(*, load: Callable[[float], Any] | None = None, **options: Any) -> fs.Scene:
    """Cube of 2 cm that moves on a floor, with each kind of sensor, and a driven box that does nothing."""
    scene = fs.Scene("small_cube", **({"dt": DT, "duration": STEPS * DT, "theta": 1.0} | options))
    scene.add_floor()
    rubber = fs.Elastic(1e5, 0.3, 1000.0, name="rubber")
    scene.add_soft(
        "cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=(0, 0, 0.01), velocity=(0.1, 0.05, -0.1), load=load
    )
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0.1, 0, 0.03))
    scene.drive("box", fs.Motion([0.0, 0.1], [(0, 0, 0), (0, 0, 0.01)]))
    scene.sensor("floor", "floor")
    scene.sensor("cube", "cube")
    scene.sensor("arm", "box", kind="mount")
    scene.sensor("corner", "cube", kind="marker", node=3)
    return scene


def scene_file(folder: Path, text: str = FILE, name: str = "small_cube.py") -> Path:
    """Write a scene file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def same(a: dict[str, float], b: dict[str, float]) -> bool:
    """Whether two rows hold the same bits, wall times apart."""
    return a.keys() == b.keys() and all(a[name] == b[name] for name in a if not name.startswith("ms_"))


def last_row(run: fs.Run) -> dict[str, float]:
    return {name: float(values[-1]) for name, values in run.table().items()}
