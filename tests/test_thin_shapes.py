"""A shape that passes between the surface nodes of a soft body is named: contact at the nodes does not see it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import femsim as fs
from contact import closest_points_on_triangles
from femsim.run.verdict import Reason
from femsim.step.stepper import Stepper
from femsim.step.thin_shapes import depth_inside

RUBBER = fs.Elastic(1e5, 0.3, 1000.0, rayleigh_beta=1e-3, name="rubber")
SIDE = 0.02


def pressed(shape: Any, height: float, deep: float = 0.008, *, off: float = 0.0, **options: Any) -> fs.Scene:
    """Drive a shape down into a cube of 3 x 3 x 3 cells, with nodes 6.7 mm apart and beside x = 0, which alone have contact."""
    scene = fs.Scene("pressed", dt=0.01, duration=0.2, theta=1.0, **options)
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((SIDE, SIDE, SIDE), 3), RUBBER, position=(off, 0, SIDE / 2))
    plate = scene.add_rigid("plate", shape, mass=0.1, position=(0, 0, height))
    scene.drive(plate, fs.Motion([0, 0.2], [(0, 0, 0), (0, 0, -deep)]))
    scene.contact_by_faces(plate, on=False)
    return scene


def reasons(run: fs.Run) -> dict[str, dict[str, Any]]:
    return {reason["kind"]: reason for reason in run.info["health"]["reasons"]}


def test_a_plate_that_comes_with_its_edge_is_noted_and_named() -> None:
    """1 mm thick, between nodes that are 6.7 mm apart: 7 mm deep without a force."""
    run = fs.simulate(pressed(fs.Box((0.0005, 0.008, 0.01)), 0.031))
    (note,) = run.info["notes"]
    assert "plate is 1 mm thick, and the surface nodes of cube are 6.67 mm apart" in note
    reason = reasons(run)["between_nodes"]
    assert run.info["health"]["verdict"] == "wrong" and reason["bodies"] == ["cube", "plate"]
    assert "plate is" in reason["text"] and "mm inside of cube" in reason["text"]
    assert reason["value"] * 6.67e-3 == pytest.approx(0.007, rel=0.05)
    assert set(Reason.__dataclass_fields__) <= set(reason)


def test_the_depth_is_that_of_the_shape() -> None:
    """A tip of 1 mm goes in: the depth of its end below the top of the cube, which nothing deforms."""
    scene = pressed(fs.Capsule(0.0005, 0.01), 0.0311, 0.006, off=0.0012, thin_shapes=True, gravity=(0, 0, 0))
    stepper = Stepper(scene, fs.make_solver("exact"))
    for _ in range(20):
        report = stepper.step()
        _, place = stepper.system.bodies[1].link_pose(stepper.state.q[stepper.system.q_slices[1]], 0)
        end = place[2] - 0.0105
        if SIDE - end > 0.1 * SIDE / 3:  # less does not count
            assert report.vitals.between.depth == pytest.approx(SIDE - end, abs=1e-6)
        else:
            assert report.vitals.between.depth == 0.0
    assert report.vitals.between.parts == (2, 1) and report.vitals.between.depth > 0.004


@pytest.mark.parametrize(
    ("shape", "height"),
    [
        (fs.Box((0.012, 0.012, 0.0005)), SIDE + 0.001),  # flat, over the whole cube
        (fs.Box((0.004, 0.008, 0.01)), 0.0305),  # thicker than the nodes are apart
    ],
)
def test_what_the_nodes_hold_is_not_named(shape: Any, height: float) -> None:
    run = fs.simulate(pressed(shape, height, 0.004))
    assert "between_nodes" not in reasons(run)
    assert np.abs(run.steps["elastic_energy_J"]).max() > 1e-4  # it presses


@pytest.mark.parametrize(
    ("shape", "half", "cells", "force"), [(fs.Box((0.0045, 0.0045, 0.01)), 0.01, 8, 1.35), (fs.Sphere(0.009), 0.009, 8, 0.5)]
)
def test_a_punch_that_few_nodes_bear_is_noted_with_elements_that_do(shape: Any, half: float, cells: int, force: float) -> None:
    """Wherever it comes down, the elements asked for give about its force (that of a fine mesh), coarser ones perhaps none."""
    errors: dict[int, list[float]] = {3: [], cells: []}
    for n, found in errors.items():
        for at in ((0.0005, 0.0005), (0.0012, 0.0009), (0.0025, 0.0025)):
            scene = fs.Scene("punch", dt=0.1, duration=0.2, theta=1.0, gravity=(0, 0, 0))
            scene.add_floor()
            mesh = fs.box_tets((0.036, 0.036, 0.018), (n, n, max(1, n // 2)))
            scene.add_soft("cube", mesh, RUBBER, position=(0, 0, 0.009))
            punch = scene.add_rigid("punch", shape, mass=0.1, position=(*at, 0.018 + half + 1e-5))
            scene.drive(punch, fs.Motion([0, 0.2], [(0, 0, 0), (0, 0, -0.00101)]))
            scene.sensor("punch", punch)
            run = fs.simulate(scene)
            notes = [note for note in run.info["notes"] if "few of them or none bear it" in note]
            assert len(notes) == (n == 3) and run.verdict == "good"
            assert all(f"punch is {9 if half == 0.01 else 18} mm across" in note for note in notes)
            assert all(f"take elements of {36 / cells:.2g} mm" in note for note in notes)
            found.append(abs(float(run.sensors["punch"].force[-1, 2]) / force - 1.0))
    assert max(errors[cells]) < 0.2 and max(errors[3]) > 0.6, errors


def test_bounds_switch_it_off() -> None:
    never = fs.HealthBounds(between_nodes=(np.inf, np.inf))
    assert "between_nodes" not in reasons(fs.simulate(pressed(fs.Box((0.0005, 0.008, 0.01)), 0.031, health=never)))


@pytest.mark.parametrize("shape", [fs.Sphere(0.004), fs.Capsule(0.004, 0.002)])
def test_balls_are_as_deep_as_their_surface(shape: fs.Sphere | fs.Capsule) -> None:
    """8 mm across, 2.8 mm in between nodes 6.7 mm apart: their centres stay outside, and a ball that bore nothing was good."""
    length = getattr(shape, "half_length", 0.0)
    scene = pressed(shape, SIDE + 0.0045 + length, 0.0033, thin_shapes=True, gravity=(0, 0, 0))
    stepper = Stepper(scene, fs.make_solver("exact"))
    for _ in range(20):
        report = stepper.step()
    points = stepper.state.q[stepper.system.q_slices[0]].reshape(-1, 3)
    _, place = stepper.system.bodies[1].link_pose(stepper.state.q[stepper.system.q_slices[1]], 0)
    top = points[:, 2].max()
    assert place[2] - length > SIDE  # no centre is inside
    assert report.vitals.between.depth == pytest.approx(top - (place[2] - length - 0.004), rel=0.1)
    reason = reasons(fs.simulate(scene))["between_nodes"]
    assert reason["bodies"] == ["cube", "plate"] and reason["value"] > 0.25


def test_depth_inside_agrees_with_the_tetrahedra() -> None:
    """Of points in a deformed ball with a dent, those are inside that some tetrahedron has."""
    mesh, shift = fs.ball_tets(1.0, 6), np.array([3.0, -2.0, 5.0])
    dent = np.exp(-8.0 * ((mesh.points - [0, 0, 1]) ** 2).sum(axis=1))
    points = mesh.points * (1.0 - 0.4 * dent)[:, None] + shift
    nodes, triangles = points[mesh.surface_nodes], mesh.surface().triangles
    corners = points[mesh.tets]
    frames = np.linalg.inv(np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2))
    count = 0
    for point in np.random.default_rng(1).uniform(-1.1, 1.1, (300, 3)) + shift:
        weights = np.einsum("tij,tj->ti", frames, point - corners[:, 0])
        inside = bool(((weights >= 0.0).all(axis=1) & (weights.sum(axis=1) <= 1.0)).any())
        assert (depth_inside(point[None], nodes, triangles) > 0.0) == inside
        count += inside
    assert 50 < count < 250
    assert depth_inside(np.zeros((0, 3)), nodes, triangles) == 0.0
    middle = depth_inside(np.array([shift, shift + np.array([0.5, 0.0, 0.0])]), nodes, triangles)
    assert 0.5 < middle < 1.0  # of the two the deeper one
    to_surface = closest_points_on_triangles(shift, nodes[triangles]) - shift
    assert middle == pytest.approx(np.sqrt((to_surface**2).sum(axis=1).min()), rel=1e-12)


def cup_mesh(radius: float, wall: float, height: float) -> fs.Mesh:
    """A cup of 16 sides about z, its bottom at z = 0."""
    profile = [(0, 0), (radius, 0), (radius, height), (radius - wall, height), (radius - wall, wall), (0, wall)]
    angle = 2 * np.pi * np.arange(16) / 16
    points = np.array([(r * np.cos(a), r * np.sin(a), z) for r, z in profile for a in angle])
    here, there, ring = np.arange(16), np.roll(np.arange(16), -1), 16 * np.arange(5)[:, None]
    first = np.stack([ring + here, ring + there, ring + 16 + there], axis=-1)
    second = np.stack([ring + here, ring + 16 + there, ring + 16 + here], axis=-1)
    # the middles of bottom and inside are rings of radius 0: one point each
    number = np.arange(96)
    number[:16], number[80:] = 0, 80
    cells = number[np.concatenate([first, second]).reshape(-1, 3)]
    cells = cells[(cells != np.roll(cells, 1, axis=1)).all(axis=1)]
    used, cells = np.unique(cells, return_inverse=True)
    return fs.Mesh(points[used], cells.reshape(-1, 3))


@pytest.mark.parametrize("kind", ["revolved", "mesh"])
def test_the_wall_of_a_cup_counts_as_thin(kind: str) -> None:
    """Upside down on a cube with nodes 20 mm apart its rim of 2 mm goes between them, though the cup is larger than they are."""
    scene = fs.Scene("cup", dt=0.01, duration=0.12, theta=1.0)
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((0.12, 0.12, 0.04), (6, 6, 2)), RUBBER, position=(0, 0, 0.02))
    shape: Any = fs.Revolved([(0, 0), (0.03, 0), (0.03, 0.04)], 0.001)
    shape = cup_mesh(0.031, 0.002, 0.041) if kind == "mesh" else shape
    scene.add_rigid("cup", shape, mass=0.5, position=(0.002, 0.003, 0.0835), rotation=(np.pi, 0, 0))
    if kind == "mesh":
        scene.contact_by_faces("cup", on=False)
    run = fs.simulate(scene)
    (note,) = run.info["notes"]
    assert note.startswith("cup is 2 mm thick") if kind == "revolved" else re.match(r"cup is [123]\.?\d* mm thick", note)
    assert ("contact_by_faces" in note) == (kind == "mesh")
    reason = reasons(run)["between_nodes"]
    assert run.verdict == "wrong" and reason["bodies"] == ["cube", "cup"]


def test_a_wall_that_is_driven_through_is_judged_by_its_thickness() -> None:
    """Depth is relative to the wall of 2 mm, not to the pot of 40 mm or the ball of 20 mm."""
    scene = fs.Scene("pot", dt=0.005, duration=0.05)
    scene.add_obstacle("pot", fs.Revolved([(0, 0), (0.03, 0), (0.03, 0.04)], 0.001))
    ball = scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1, position=(0, 0, 0.03))
    scene.drive(ball, fs.Motion([0, 0.05], [(0, 0, 0), (0.06, 0, 0)], smooth=False))
    run = fs.simulate(scene)
    reason = reasons(run)["led_overlap"]
    assert run.verdict == "wrong" and "of the thickness of pot (2 mm)" in reason["text"]
    assert reason["value"] > 0.25


def bristles(radius: float) -> fs.Scene:
    """Three pins above a cube."""
    scene = fs.Scene("bristles", dt=0.01, duration=0.02, gravity=(0, 0, 0))
    scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 4), RUBBER, position=(0, 0, 0))
    for k, name in enumerate("abc"):
        scene.add_rigid(name, fs.Capsule(radius * (1.0 + 0.1 * k), 0.03), mass=0.1, position=(0.012 * (k - 1), 0, 0.07))
        scene.contact_by_faces(name, on=False)
    return scene


def test_all_thin_and_narrow_parts_of_a_hand_are_named_at_once() -> None:
    """A hand of 24 joints was refused for one link after the other, and then had 14 notes of two lines each."""
    with pytest.raises(fs.InputError, match=r"contact_by_faces\('a'\), and the same of 'b', 'c', which are thin"):
        fs.simulate(bristles(0.001))
    said = [note for note in fs.simulate(bristles(0.005)).notes if "few of them or none bear it" in note]
    assert len(said) == 1 and said[0].startswith("a is 10 mm across") and said[0].endswith("; b, c are narrow beside it as well")
