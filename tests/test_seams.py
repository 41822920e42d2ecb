"""Boxes that are flush with each other are one surface: what slides over their seam does not catch; walls and steps stop it."""

from __future__ import annotations

import numpy as np
import pytest

import femsim as fs
from contact import make_solver
from femsim.step.seams import Seams
from femsim.step.stepper import Stepper

RUBBER = fs.Elastic(2e5, 0.4, 1000.0, name="rubber")
SPEED, FRICTION = 0.4, 0.2


def ground(scene: fs.Scene, kind: str, rise: float = 0.0) -> list[str]:
    """A floor of 0.2 m whose top is at 5 mm: one box, two obstacles, a compound; the second half rises by so much, m."""
    if kind == "one":
        scene.add_obstacle("a", fs.Box((0.1, 0.05, 0.005)))
        return ["a"]
    half, middle = (0.05, 0.05) if kind != "overlapping" else (0.055, 0.045)
    pieces = [fs.Piece(fs.Box((half, 0.05, 0.005)), (side * middle, 0.0, rise * (side > 0))) for side in (-1, 1)]
    if kind == "two":
        for name, piece in zip("ab", pieces, strict=True):
            scene.add_obstacle(name, piece.shape, position=piece.position)
        return ["a", "b"]
    scene.add_obstacle("a", fs.Compound(pieces))
    return ["a"]


def way(kind: str, what: str, *, rise: float = 0.0, by_faces: bool = True) -> float:
    """How far along x, m, a body comes that slides or rolls from 50 mm before the seam, in 0.2 s."""
    scene = fs.Scene("seam", dt=0.005, duration=0.2, theta=1.0)
    names = ground(scene, kind, rise)
    if what == "soft":
        mesh = fs.box_tets((0.03, 0.03, 0.02), (3, 3, 2))
        body = scene.add_soft("body", mesh, RUBBER, position=(-0.05, 0.003, 0.015), velocity=(SPEED, 0, 0))
    else:
        shape = fs.Box((0.015, 0.015, 0.01)) if what == "box" else fs.Sphere(0.01)
        body = scene.add_rigid("body", shape, density=1000.0, position=(-0.05, 0.003, 0.015), velocity=(SPEED, 0, 0))
    for name in names:
        scene.set_friction(body, name, FRICTION)
        scene.contact_by_faces(name, on=by_faces)
    run = fs.simulate(scene)
    assert run.verdict == "good"
    place = run.stepper.state.q.reshape(-1, 3).mean(axis=0) if what == "soft" else run.stepper.state.q[:3]
    return float(place[0]) + 0.05


@pytest.mark.parametrize(("what", "by_faces"), [("soft", True), ("soft", False), ("box", True), ("sphere", True)])
def test_what_slides_over_a_seam_does_not_catch(what: str, by_faces: bool) -> None:
    """Soft blocks stopped at it, by faces and at the nodes, *good*: they met the edge of the next box in their way."""
    whole = way("one", what, by_faces=by_faces)
    assert whole > 0.039
    for kind in ("two", "compound", "overlapping"):
        assert way(kind, what, by_faces=by_faces) == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize("what", ["soft", "box"])
def test_a_step_stops_it(what: str) -> None:
    """One of a millimetre does, and one of ten nanometres is flush."""
    assert way("compound", what, rise=1e-3) == pytest.approx(0.035, abs=2e-3)
    assert way("compound", what, rise=1e-8) == pytest.approx(way("one", what), abs=1e-4)


def test_what_covers_an_edge() -> None:
    """Boxes beside each other with the edge at the origin, seen by a point on the first one or just above it."""
    scene = fs.Scene("covers", dt=0.005, duration=0.1)
    for name, x, z in (("a", -0.05, -0.02), ("b", 0.05, -0.02), ("wall", 0.2, 0.0)):
        scene.add_obstacle(name, fs.Box((0.05, 0.05, 0.02)), position=(x, 0.0, z))
    scene.add_obstacle("strip", fs.Box((0.01, 0.01, 5e-6)), position=(0.03, 0.03, 5e-6))
    ball = scene.add_rigid("ball", fs.Sphere(0.01), density=1000.0, position=(0, 0, 0.1))
    stepper, names = Stepper(scene, make_solver("exact")), scene.part_names

    def covered(on: str, place: tuple[float, ...], point: tuple[float, ...], *, pairs: np.ndarray) -> bool:
        seams, p, x = Seams(scene.parts, pairs), np.array([place]), np.array([point])
        on_part, other = np.array([names.index(on)]), np.array([names.index(ball.name)])
        gap = np.linalg.norm(x - p, axis=1)
        return bool(seams.covered(on_part, other, p, x, gap, stepper.placed)[0])

    all_pairs = np.ones((5, 5), dtype=np.bool_)
    assert covered("b", (0, 0, 0), (-1e-3, 0, 0), pairs=all_pairs) and covered("b", (0, 0, 0), (-1e-3, 0, 1e-3), pairs=all_pairs)
    assert not covered("a", (-1e-3, 0, 0), (-1e-3, 0, 1e-3), pairs=all_pairs)  # what it stands on
    assert not covered("wall", (0.15, 0, 0), (0.149, 0, 0), pairs=all_pairs)  # nothing beside it
    assert not covered("strip", (0.02, 0.03, 0), (0.019, 0.03, 0), pairs=all_pairs)  # a strip of a hundredth of a millimetre
    without = all_pairs.copy()
    without[names.index("a")] = without[:, names.index("a")] = False
    assert not covered("b", (0, 0, 0), (-1e-3, 0, 1e-3), pairs=without)  # which has no contact with the first one


def test_a_wall_on_a_floor_stops_what_slides_on_it() -> None:
    scene = fs.Scene("wall", dt=0.005, duration=0.2)
    pieces = [fs.Piece(fs.Box((0.1, 0.05, 0.005))), fs.Piece(fs.Box((0.005, 0.05, 0.02)), (0.05, 0, 0.015))]
    scene.add_rigid("tray", fs.Compound(pieces), density=1e6)
    scene.add_floor(height=-0.005)
    mesh = fs.box_tets((0.03, 0.03, 0.02), (3, 3, 2))
    scene.add_soft("soft", mesh, RUBBER, position=(-0.02, 0.02, 0.015), velocity=(0.8, 0, 0))
    scene.add_rigid("box", fs.Box((0.015, 0.015, 0.01)), density=1000.0, position=(-0.02, -0.02, 0.015), velocity=(0.8, 0, 0))
    run = fs.simulate(scene)
    with fs.Simulation(scene) as sim:
        sim.step(40)
        assert 0.04 < sim.points("soft")[:, 0].max() < 0.0451 and 0.025 < sim.pose("box")[1][0] < 0.03001
    assert run.verdict == "good" and run.steps["max_penetration_m"].max() < 1e-6
