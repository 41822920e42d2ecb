"""Several shapes as one rigid thing: mass, drawing, contact, wrong input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import femsim as fs
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix
from femsim.model.solids import mass_properties, placed, visual


def halves(turn: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> fs.Compound:
    """Box of 40 x 20 x 60 mm in two unequal parts, the cut across z, moved and turned."""
    R = quaternion_to_matrix(quaternion_from_vector(np.array(turn)))
    away = np.array([0.1, -0.2, 0.3])
    parts = [(fs.Box((0.02, 0.01, 0.01)), (0, 0, -0.02)), (fs.Box((0.02, 0.01, 0.02)), (0, 0, 0.01))]
    return fs.Compound([fs.Piece(shape, R @ np.array(place) + away, turn) for shape, place in parts])


def test_a_box_in_two_parts_has_the_mass_of_the_box() -> None:
    turn = (0.3, -0.5, 0.2)
    R = quaternion_to_matrix(quaternion_from_vector(np.array(turn)))
    whole = mass_properties(fs.Box((0.02, 0.01, 0.03)))
    mass, centre, inertia = mass_properties(halves(turn))
    assert mass == pytest.approx(whole[0], rel=1e-14)
    assert centre == pytest.approx([0.1, -0.2, 0.3], abs=1e-15)
    assert inertia == pytest.approx(R @ whole[2] @ R.T, abs=1e-14 * whole[2].max() + 1e-18)


def test_pieces_are_placed_and_drawn_where_they_are() -> None:
    turn = quaternion_to_matrix(quaternion_from_vector(np.array([0.0, 0.0, np.pi / 2])))
    bar = fs.Compound([fs.Piece(fs.Box((0.03, 0.01, 0.01)), (0.05, 0, 0)), fs.Piece(fs.Sphere(0.01), (0, 0, 0.02))])
    found = placed(bar, turn, np.array([1.0, 0.0, 0.0]))
    assert [place.round(12).tolist() for _, _, place in found] == [[1.0, 0.05, 0.0], [1.0, 0.0, 0.02]]
    drawn = visual(bar, np.array([1.0, 0.0, 0.0]), turn)
    assert drawn.points.min(axis=0) == pytest.approx([0.99, -0.01, -0.01], abs=1e-9)
    assert drawn.points.max(axis=0) == pytest.approx([1.01, 0.08, 0.03], abs=1e-9)
    assert drawn.triangles.max() == len(drawn.points) - 1


@pytest.mark.parametrize("compound", [False, True])
def test_it_slides_and_stops_as_the_box_does(compound: bool) -> None:
    """A box thrown over the floor stops after v^2 / (2 mu g), in one piece or in two."""
    scene = fs.Scene("slide", dt=0.002, duration=0.2, theta=1.0)
    scene.add_floor()
    pieces = [fs.Piece(fs.Box((0.01, 0.02, 0.01)), (x, 0, 0)) for x in (-0.01, 0.01)]
    shape = fs.Compound(pieces) if compound else fs.Box((0.02, 0.02, 0.01))
    body = scene.add_rigid("box", shape, density=1000.0, position=(0, 0, 0.01), velocity=(0.5, 0, 0))
    scene.set_friction(body, "floor", 0.5)
    scene.sensor("place", body, kind="marker")
    scene.sensor("floor", "floor")
    run = fs.simulate(scene)
    assert run.verdict == "good"
    assert run.markers["place"].position[-1, 0] == pytest.approx(0.5**2 / (2 * 0.5 * 9.81), rel=2e-2)
    assert run.sensors["floor"].force[-1, 2] == pytest.approx(-9.81 * 0.032, rel=1e-6)


def test_a_ring_of_pieces_holds_a_ball_and_is_one_obstacle() -> None:
    """A V of two boards: the ball rests in it, and each side carries weight / sqrt 2 without friction."""
    scene = fs.Scene("groove", dt=0.005, duration=0.6, theta=1.0)
    boards = [fs.Piece(fs.Box((0.001, 0.05, 0.05)), (side * 0.05, 0, 0.05), (0, side * np.pi / 4, 0)) for side in (-1, 1)]
    groove = scene.add_obstacle("groove", fs.Compound(boards))
    ball = scene.add_rigid("ball", fs.Sphere(0.02), mass=0.1, position=(0, 0, 0.033))
    scene.set_friction(ball, groove, 0.0)
    scene.sensor("groove", groove)
    scene.sensor("gap", ball, kind="gap", partner=groove)
    run = fs.simulate(scene)
    assert [part.name for part in scene.parts] == ["groove", "ball"]
    assert run.sensors["groove"].force[-1] == pytest.approx([0, 0, -0.981], abs=1e-3)
    assert abs(run.gauges["gap"].values["gap_m"][-1]) < 1e-6


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: fs.Compound([]), r"compound holds nothing; give fs\.Compound\(\[fs\.Piece"),
        (lambda: fs.Compound([fs.Box((1, 1, 1))]), "compound holds a Box"),
        (lambda: fs.Piece(fs.Plane()), "piece of a compound is a Plane"),
        (lambda: fs.Piece(fs.Box((1, 1, 1)), (0, 0)), r"position of a piece is \(0, 0\)"),
        (lambda: fs.Piece(fs.Box((1, 1, 1)), rotation=(0, 0, np.nan)), "rotation of a piece"),
    ],
)
def test_wrong_pieces_are_refused(make: Any, says: str) -> None:
    with pytest.raises(fs.InputError, match=says):
        make()
