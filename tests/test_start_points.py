"""Bodies that start deformed: what is joined to them, runs through them or fills them does so where they start."""

from __future__ import annotations

import numpy as np
import pytest
from hollow_boxes import hollow_box

import femsim as fs

RUBBER = fs.Elastic(1e5, 0.3, 1000.0)
#: Stretched by a fifth along x, and elsewhere.
APART = np.array([0.3, 0.0, 0.0])


def placed(x: float, y: float, z: float) -> np.ndarray:
    """Point of the body at the start by where it is in a body around the origin, stretched."""
    return APART + np.array([x, y, z])


def stretched(points: np.ndarray) -> np.ndarray:
    return points * [1.2, 1.0, 1.0] + APART


def scene_of(mesh: fs.TetMesh | None = None, fixed: bool = False) -> fs.Scene:
    """A cube of 40 mm, its ends 24 mm from its middle at the start."""
    scene = fs.Scene("start", dt=0.001, duration=0.003, gravity=(0, 0, 0))
    everywhere = (lambda x: np.ones(len(x), dtype=bool)) if fixed else None
    scene.add_soft("b", mesh or fs.box_tets((0.04,) * 3, 4), RUBBER, start_points=stretched, fixed=everywhere)
    return scene


@pytest.mark.parametrize("kind", ["hold", "weld", "glued plate"])
def test_ends_stay_where_they_start(kind: str) -> None:
    """A weld held the shape at rest: both ends jumped by 4 mm in the first step."""
    scene = scene_of()
    for side in (1.0, -1.0):
        end = APART[0] + side * 0.024

        def of_end(x: np.ndarray, end: float = end) -> np.ndarray:
            return np.abs(x[:, 0] - end) < 1e-4

        if kind == "hold":
            scene.hold("b", of_end, lambda t: ((0, 0, 0), (0, 0, 0)))
        elif kind == "weld":
            scene.join("b", "world", at=(end, 0, 0), where=of_end)
        else:
            place = placed(side * 0.0261, 0.0, 0.0)
            plate = scene.add_rigid(f"plate{int(side > 0)}", fs.Box((0.002, 0.03, 0.03)), mass=1.0, position=place)
            scene.drive(plate, lambda t: ((0, 0, 0), (0, 0, 0)))
            scene.join("b", plate, at=(end, 0, 0), where=of_end)
    scene.sensor("end", "b", kind="marker", at=(0.02, 0.01, 0.01))
    run = fs.simulate(scene)
    assert run.status == "converged"
    np.testing.assert_allclose(run.markers["end"].position, [placed(0.024, 0.01, 0.01)] * 3, atol=1e-9)


def test_a_ball_and_the_end_of_a_rod_are_on_the_surface_at_the_start() -> None:
    scene = scene_of(fixed=True)
    start = placed(0.024, 0.0, 0.0)
    line = start + np.linspace(0.0, 0.04, 5)[:, None] * [1.0, 0.0, 0.0]
    hose = fs.Elastic(1e7, 0.4, 1100.0)
    rod = scene.add_rod("rod", line, fs.circular_section(0.002), hose, start=fs.RodEnd("clamped", on="b"))
    scene.sensor("rod", rod, kind="start")
    above = placed(0.024, 0.0, 0.05)
    weight = scene.add_rigid("weight", fs.Sphere(0.005), mass=0.1, position=above)
    scene.join("b", weight, "ball", at=tuple(placed(0.0, 0.0, 0.02)))
    scene.sensor("ball", "weight", kind="marker")
    run = fs.simulate(scene)
    assert run.status == "converged"
    np.testing.assert_allclose(run.sensors["rod"].force, 0.0, atol=1e-9)
    np.testing.assert_allclose(run.markers["ball"].position, [above] * 3, atol=1e-9)


def test_a_tendon_runs_through_points_at_the_start_without_tension() -> None:
    scene = scene_of(fixed=True)
    route = [placed(-0.024, 0.02, 0.02), placed(0.0, 0.02, 0.02), placed(0.024, 0.02, 0.02)]
    scene.sensor("cable", scene.add_tendon("b", route, pull=lambda t: 0.001, stiffness=1000.0), kind="tendon")
    run = fs.simulate(scene)
    np.testing.assert_allclose(run.tendons["cable"].length, 0.048, rtol=1e-12)
    np.testing.assert_allclose(run.tendons["cable"].force, 1.0, rtol=1e-9)


def test_a_chamber_is_chosen_by_its_nodes_at_the_start() -> None:
    scene = scene_of(hollow_box(), fixed=True)
    inside = scene.pressurize("b", lambda t: 100.0, where=lambda x: (np.abs(x - APART) < 0.0099).all(axis=1))
    scene.sensor("air", inside, kind="chamber")
    run = fs.simulate(scene)
    np.testing.assert_allclose(run.chambers["air"].volume, 1.2e-6, rtol=1e-9)
