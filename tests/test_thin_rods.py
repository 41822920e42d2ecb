"""A shape that passes between the links of a rod is named: contact with rigid parts is at the centres of links."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import femsim as fs
from femsim.step.stepper import Stepper
from femsim.step.thin_rods import depth_between

CABLE = fs.Elastic(1e8, 0.3, 1000.0, name="cable")
RADIUS = 0.002


def pin_on_rod(links: int, shape: Any = None, height: float = 0.008, **options: Any) -> fs.Scene:
    """A pin of 2 mm falls across the middle of a rod held at both ends."""
    scene = fs.Scene("pin", dt=0.005, duration=0.06, **options)
    points = np.column_stack([np.linspace(-0.1, 0.1, links + 1), np.zeros((links + 1, 2))])
    held = fs.RodEnd("clamped")
    scene.add_rod("rod", points, fs.circular_section(RADIUS), CABLE, start=held, end=held)
    turned = (np.pi / 2, 0, 0)
    scene.add_rigid("pin", shape or fs.Capsule(0.001, 0.02), mass=0.002, position=(0, 0, height), rotation=turned)
    return scene


def reasons(run: fs.Run) -> dict[str, dict[str, Any]]:
    return {reason["kind"]: reason for reason in run.info["health"]["reasons"]}


def test_a_pin_that_falls_between_links_is_noted_and_named() -> None:
    run = fs.simulate(pin_on_rod(10))
    (note,) = run.info["notes"]
    assert "pin is 2 mm across, and fits between the links of rod" in note
    assert "are 20 mm apart: take links of 6 mm" in note
    reason = reasons(run)["between_nodes"]
    assert run.verdict == "wrong" and reason["bodies"] == ["pin", "rod"]
    assert "went between its links" in reason["text"]
    assert 0.5 < reason["value"] <= 1.5  # axes that cross: both radii, of that of the rod


def test_short_links_hold_it() -> None:
    """Links of 5.7 mm have one in the middle, and the pin is thicker than the gaps between them."""
    scene = pin_on_rod(35)
    scene.sensor("pin", "pin", kind="marker")
    run = fs.simulate(scene)
    assert not run.info["notes"] and "between_nodes" not in reasons(run)
    assert run.markers["pin"].position[-1, 2] > 0.0


def test_where_a_rod_is_held_by_the_pin_is_no_depth() -> None:
    scene = fs.Scene("held", dt=0.005, duration=0.05)
    scene.add_rigid("pin", fs.Capsule(0.001, 0.02), mass=0.1, rotation=(np.pi / 2, 0, 0))
    scene.drive("pin", fs.Motion([0.0], [(0, 0, 0)]))
    points = np.column_stack([np.linspace(0.0, 0.1, 6), np.zeros((6, 2))])
    scene.add_rod("rod", points, fs.circular_section(RADIUS), CABLE, start=fs.RodEnd("hinged", on="pin"))
    assert "between_nodes" not in reasons(fs.simulate(scene))


def test_what_it_has_in_common_with_the_rod_at_the_start_does_not_count() -> None:
    """A pin that starts 1.2 mm deep between two links and stays went nowhere; one that goes as deep from beside the rod did."""
    for height, travel in ((0.0018, 0.0), (0.0032, -0.0014)):
        scene = pin_on_rod(10, height=height, gravity=(0.0, 0.0, 0.0))
        scene.drive("pin", fs.Motion([0.0, 0.04], [(0, 0, 0), (0, 0, travel)]))
        assert ("between_nodes" in reasons(fs.simulate(scene))) == (travel != 0.0)


@pytest.mark.parametrize("joined", [False, True])
def test_joined_links_do_not_count(joined: bool) -> None:
    scene = pin_on_rod(10)
    if joined:
        scene.join("pin", "rod", at=(0, 0, 0.004), breakable=1e3)
    (one,) = Stepper(scene, fs.make_solver("exact")).vital_signs.thin_on_rods
    assert one.needle and one.open.tolist() == [not joined] * 9


def test_bounds_switch_it_off() -> None:
    never = fs.HealthBounds(between_nodes=(np.inf, np.inf))
    assert "between_nodes" not in reasons(fs.simulate(pin_on_rod(10, health=never)))


def test_depth_by_hand() -> None:
    """A ball of 3 mm beside a straight rod, its centre 4 mm from the line: both radii less that; where links have contact."""
    x = np.array([[-0.05, 0, 0.004], [-0.01, 0, 0.004], [0.03, 0, 0.004]])
    assert depth_between(x, np.array([True, True]), fs.Sphere(0.003), RADIUS) == pytest.approx(0.001, abs=2e-5)
    assert depth_between(x, np.array([True, False]), fs.Sphere(0.003), RADIUS) == 0.0
    assert depth_between(x + np.array([0, 0, 0.0011]), np.array([True, True]), fs.Sphere(0.003), RADIUS) == 0.0
