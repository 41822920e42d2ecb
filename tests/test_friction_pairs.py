"""Friction belongs to pairs of bodies: what is stated of two bodies, of a body and a surface, of two surfaces, and quarrels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import femsim as fs
from femsim.run.info import describe_friction
from meshes import box_tets

GRAVITY = (3.0, 0.0, -9.0)


def two_cubes(*, named: bool = False) -> tuple[fs.Scene, fs.Handle, fs.Handle]:
    """Two soft cubes on a floor, pulled sideways; their materials have one name, or none."""
    scene = fs.Scene("two_cubes", dt=0.01, duration=0.1, gravity=GRAVITY, theta=1.0)
    scene.add_floor()
    mesh, name = box_tets((0.02, 0.02, 0.02), 1), {"name": "rubber"} if named else {}
    rough = scene.add_soft("rough", mesh, fs.Elastic(1e5, 0.4, 1000.0, **name), position=(0, 0, 0.01))
    smooth = scene.add_soft("smooth", mesh, fs.Elastic(2e5, 0.4, 1000.0, **name), position=(0, 0.1, 0.01))
    return scene, rough, smooth


def coefficient(scene: fs.Scene, a: str, b: str) -> float:
    names, values = scene.part_names, scene.pair_friction().values
    assert np.array_equal(values, values.T)
    return float(values[names.index(a), names.index(b)])


@pytest.mark.parametrize("named", [False, True])
def test_each_body_keeps_its_own_friction(named: bool, tmp_path: Path) -> None:
    """3 m/s^2 beside 9 m/s^2 of weight: with 0.9 a cube stays, with 0.1 it is braked by 0.9 m/s^2."""
    scene, rough, smooth = two_cubes(named=named)
    scene.set_friction(rough, "floor", 0.9)
    scene.set_friction(smooth, "floor", 0.1)
    scene.sensor("rough", rough)
    scene.sensor("smooth", smooth)
    run = fs.simulate(scene, out=tmp_path / "run", quiet=True)
    ratio = [run.sensors[name].force[-1, 0] / run.sensors[name].force[-1, 2] for name in ("rough", "smooth")]
    assert ratio == pytest.approx([-3.0 / 9.0, -0.1], rel=0.02)
    said = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["friction"]
    assert {(*sorted(pair["bodies"]), pair["coefficient"]) for pair in said if "bodies" in pair} == {
        ("floor", "rough", 0.9), ("floor", "smooth", 0.1)
    }  # fmt: skip
    (line,) = [line for line in run.summary().splitlines() if line.startswith("friction")]
    assert "rough" in line and " 0.9" in line and "smooth" in line and " 0.1" in line


def test_what_is_said_of_bodies_comes_before_what_is_said_of_surfaces() -> None:
    scene, rough, smooth = two_cubes(named=True)
    assert coefficient(scene, "rough", "floor") == 0.5
    scene.set_friction(rough, "floor", 0.9)
    scene.set_friction("rubber", "floor", 0.3)  # later, but of a surface
    assert coefficient(scene, "rough", "floor") == 0.9 and coefficient(scene, "smooth", "floor") == 0.3
    scene.set_friction("rubber", "rubber", 0.2)
    assert coefficient(scene, "rough", "smooth") == coefficient(scene, "rough", "rough") == 0.2
    scene.set_friction(rough, rough, 0.7)
    assert coefficient(scene, "rough", "rough") == 0.7 and coefficient(scene, "smooth", "smooth") == 0.2
    scene.set_friction("floor", "rough", 0.8)  # the last word on the same two
    assert coefficient(scene, "rough", "floor") == 0.8 and len(scene.friction_rules) == 4
    assert smooth.parts == ("smooth",)


def test_statements_that_quarrel_are_refused_by_name_until_one_of_the_bodies_decides() -> None:
    scene, rough, _ = two_cubes(named=True)
    block = scene.add_rigid("block", fs.Box((0.02, 0.02, 0.02)), density=1000.0, position=(0, 0.2, 0.01), surface="steel")
    scene.set_friction(rough, "steel", 0.1)
    scene.set_friction("rubber", block, 0.6)
    with pytest.raises(fs.InputError) as error:
        fs.simulate(scene, quiet=True)
    assert "friction of 'rough' and 'block' is stated twice" in str(error.value)
    assert "body 'rough' and surface 'steel': 0.1; surface 'rubber' and body 'block': 0.6" in str(error.value)
    assert "set_friction of the two bodies" in str(error.value)
    scene.set_friction(rough, block, 0.4)
    assert coefficient(scene, "rough", "block") == 0.4 and coefficient(scene, "smooth", "block") == 0.6


def test_the_same_said_twice_is_no_quarrel() -> None:
    scene, rough, _ = two_cubes(named=True)
    block = scene.add_rigid("block", fs.Box((0.02, 0.02, 0.02)), density=1000.0, position=(0, 0.2, 0.01), surface="steel")
    scene.set_friction(rough, "steel", 0.6)
    scene.set_friction("rubber", block, 0.6)
    assert coefficient(scene, "rough", "block") == 0.6


def test_a_name_of_a_body_and_of_the_surface_of_others_is_refused() -> None:
    scene = fs.Scene("names", theta=1.0)
    for name, surface, x in (("steel", "wood", 0.0), ("second", "steel", 1.0)):
        scene.add_rigid(name, fs.Box((0.1, 0.1, 0.1)), density=1000.0, position=(x, 0, 1), surface=surface)
    with pytest.raises(fs.InputError, match="'steel' is a body and the surface of 'second'; pass the handle"):
        scene.set_friction("steel", "second", 0.3)
    scene.set_friction("wood", "second", 0.3)
    assert coefficient(scene, "steel", "second") == 0.3


def test_two_floors_of_one_surface_share_what_is_said_of_it() -> None:
    scene = fs.Scene("floors", theta=1.0)
    scene.add_floor()
    scene.add_obstacle("ramp", fs.Box((1.0, 1.0, 0.1)), position=(3, 0, 0), surface="floor")
    scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), density=1000.0, position=(0, 0, 1))
    scene.set_friction("box", "floor", 0.2)
    assert coefficient(scene, "box", "floor") == coefficient(scene, "box", "ramp") == 0.2
    assert [p for p in describe_friction(scene) if "bodies" in p] == [
        {"bodies": ["floor", "box"], "coefficient": 0.2}, {"bodies": ["ramp", "box"], "coefficient": 0.2}
    ]  # fmt: skip


def test_the_links_of_a_body_go_with_its_name_and_each_has_its_own() -> None:
    scene = fs.Scene("hand", theta=1.0)
    scene.add_floor()
    pad = fs.Box((0.01, 0.02, 0.04))
    fingers = [fs.Finger(side, pad, (x, 0, 0), (-x, 0, 0)) for side, x in (("left", -0.05), ("right", 0.05))]
    hand = scene.add_gripper("hand", fingers, position=(0, 0, 1))
    assert len(hand.parts) >= 2
    scene.set_friction("hand", "floor", 0.3)
    assert {coefficient(scene, part, "floor") for part in hand.parts} == {0.3}
    scene.set_friction(hand.parts[-1], "floor", 0.8)
    assert [coefficient(scene, part, "floor") for part in hand.parts] == [0.3] * (len(hand.parts) - 1) + [0.8]


def test_what_has_no_name_is_not_offered() -> None:
    """Both materials have no name: what may be named are the bodies, the floor and its surface."""
    scene, *_ = two_cubes()
    with pytest.raises(fs.InputError, match=r"'smoth' is unknown; did you mean 'smooth'\? There are floor, rough, smooth\.$"):
        scene.set_friction("smoth", "floor", 0.5)
