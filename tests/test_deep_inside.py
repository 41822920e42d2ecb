"""Rigid parts that start deep in each other are refused, also where no corner, edge or face of them is in contact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import femsim as fs
from femsim.step.deep_inside import common_ball
from femsim.step.stepper import Stepper

BOX = fs.Box((0.03, 0.02, 0.01))
CYLINDER = fs.Cylinder(0.02, 0.03)
BOWL = fs.Revolved([(0, 0), (0.03, 0), (0.04, 0.03)], 0.002)
ASKEW: dict[str, Any] = {"position": (-1e-4, -0.0084, 0.0073), "rotation": (-2.06, -0.812, 1.148)}


def two(first: Any, second: Any, obstacle: bool = False, **place: Any) -> fs.Scene:
    """The first stands at the origin, the second where ``place`` says."""
    scene = fs.Scene("two", dt=0.01, duration=0.01, theta=1.0)
    if obstacle:
        scene.add_obstacle("first", first)
    else:
        scene.add_rigid("first", first, mass=1.0)
    scene.add_rigid("second", second, mass=1.0, **place)
    return scene


def start(scene: fs.Scene) -> Stepper:
    return Stepper(scene, fs.make_solver("exact"))


@pytest.mark.parametrize("obstacle", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        (BOX, BOX, ASKEW),  # no corner of one sees a face of the other
        (CYLINDER, CYLINDER, {}),  # their rims and axes are the same
        (CYLINDER, fs.Cylinder(0.03, 0.005), {}),
        (fs.Compound([fs.Piece(BOX, (0, 0, 0.05)), fs.Piece(BOX, (0, 0, 0.0))]), BOX, ASKEW),
    ],
)
def test_what_contact_does_not_see_is_refused(first: Any, second: Any, place: dict[str, Any], obstacle: bool) -> None:
    with pytest.raises(fs.InputError, match=r"first and second overlap by [\d.]+ mm or more at the start, more than half"):
        start(two(first, second, obstacle, **place))


@pytest.mark.parametrize(
    ("first", "second", "place"),
    [
        (BOX, BOX, {"position": (0, 0, 0.02)}),  # on each other
        (CYLINDER, CYLINDER, {"position": (0.04, 0, 0)}),
        (BOWL, fs.Sphere(0.01), {"position": (0, 0, 0.012)}),  # in the bowl, not in its wall
        (BOWL, BOWL, {"position": (0, 0, 0.013)}),
        (fs.Thread.metric(0.048, 0.005, 0.1), fs.Thread.metric(0.048, 0.005, 0.038, play=2e-4, across=0.075), {}),
    ],
)
def test_what_only_has_contact_is_not(first: Any, second: Any, place: dict[str, Any]) -> None:
    start(two(first, second, **place))


def test_pairs_without_contact_are_not_judged() -> None:
    ignored, joined, driven = (two(BOX, BOX, obstacle=True, **ASKEW) for _ in range(3))
    ignored.ignore_contact("first", "second")
    joined.join("second", "first", at=(0, 0, 0))
    driven.drive("second", fs.Motion([0.0], [(0, 0, 0)]))
    for scene in (ignored, joined, driven):
        start(scene)


def test_of_a_breakable_joint_a_note_says_that_they_pass() -> None:
    scene = two(BOX, BOX, **ASKEW)
    scene.join("second", "first", at=(0, 0, 0), breakable=1.0)
    (note,) = start(scene).notes
    assert "they pass through each other also when the joint between them breaks" in note


def test_the_ball_that_two_boxes_have_in_common() -> None:
    """Boxes of 20 mm across, 12 mm in each other: a ball of 12 mm, between the places that are tried."""
    found = common_ball(BOX, BOX, np.eye(3), np.array([0.0, 0.0, 0.008]), 1e-3)
    assert found == pytest.approx(0.012, abs=1e-9)
    assert common_ball(BOX, BOX, np.eye(3), np.array([0.0, 0.0, 0.0195]), 1e-3) == 0.0


def test_it_is_the_same_seen_from_either_shape() -> None:
    """A thin plate leans by 30 degrees through a long box: turned the other way it would miss its corner."""
    plate, bar = fs.Box((0.02, 0.02, 0.002)), fs.Box((0.05, 0.005, 0.005))
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    turn, place = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]]), np.array([0.045, 0.0, 0.009])
    deep = common_ball(bar, plate, turn, place, 1e-4)
    assert deep > 1e-3 and deep == pytest.approx(common_ball(plate, bar, turn.T, -turn.T @ place, 1e-4), rel=0.3)
    assert common_ball(bar, plate, turn.T, place, 1e-4) < 0.5 * deep
