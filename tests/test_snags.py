"""A rigid box that slides on a soft pad: its edge between the nodes, what the next ones push, and that the verdict says so."""

from __future__ import annotations

import numpy as np
import pytest

import femsim as fs
from femsim.step import vitals_kernels

LOAD, FRICTION = 5.0, 0.4


def slide(way: float, *, by_faces: bool = False) -> fs.Scene:
    """Press a box of 20 mm with 5 N on a pad of 4 mm elements, and move it aside."""
    scene = fs.Scene("slide", dt=0.01, duration=0.15, theta=1.0, gravity=(0, 0, 0))
    rubber, mesh = fs.Elastic(1e6, 0.4, 1000.0), fs.box_tets((0.032, 0.032, 0.008), (8, 8, 1))
    scene.add_soft("pad", mesh, rubber, position=(0, 0, -0.004), fixed=lambda x: x[:, 2] < -0.0079)
    box = fs.Box((0.009, 0.009, 0.006))
    scene.add_rigid("box", box, mass=0.05, position=(0, 0, 0.006), load=lambda t: ((0, 0, -LOAD), (0, 0, 0)))
    motion = fs.Motion([0.03, 0.15], [(0, 0, 0), (way, 0, 0)])
    scene.drive("box", motion, stiffness=(1e6, 1e6, 0, 1e3, 1e3, 1e3))
    scene.set_friction("box", "pad", FRICTION)
    scene.contact_by_faces("box", on=by_faces)
    scene.sensor("box", "box")
    return scene


def test_a_simulation_that_goes_back_says_the_same_again() -> None:
    """The means over 50 ms are kept in what is saved, as in checkpoints."""
    with fs.Simulation(slide(0.004)) as sim:
        sim.step(13)
        saved = sim.save()
        first = sim.step(2).reasons
        sim.restore(saved)
        assert first and sim.step(2).reasons == first


def test_an_edge_that_catches_nodes_is_no_friction() -> None:
    """Sliding takes mu N = 2 N. At the nodes a side of the box ploughs those ahead of it; by faces its edge presses them down."""
    caught = fs.simulate(slide(0.004))
    (reason,) = caught.info["health"]["reasons"]
    assert -caught.sensors["box"].force[-1, 0] > 5.0 * FRICTION * LOAD  # the wrong number of which it speaks
    assert caught.verdict == "doubtful" and reason["kind"] == "snagged" and reason["bodies"] == ["box", "pad"]
    assert reason["value"] > 0.2 and "contact_by_faces('box')" in reason["advice"]
    assert fs.simulate(slide(0.0)).verdict == "good"
    right = fs.simulate(slide(0.004, by_faces=True))
    assert right.verdict == "good" and -right.sensors["box"].force[-1, 0] == pytest.approx(FRICTION * LOAD, rel=0.05)


def test_a_pin_between_the_nodes_is_named_by_what_it_drags() -> None:
    """A pin of 6 mm that is led 1 mm deep between nodes 10 mm apart presses none; it dragged one along with 10 N, *good*."""
    scene = fs.Scene("pin", dt=0.01, duration=0.5, default_friction=0.3)
    rubber, mesh = fs.Elastic(1e5, 0.4, 1000.0, rayleigh_beta=2e-3), fs.box_tets((0.04, 0.04, 0.02), (4, 4, 2))
    scene.add_soft("pad", mesh, rubber, position=(0, 0, -0.01), fixed=lambda x: x[:, 2] < -0.0199)
    scene.add_rigid("pin", fs.Box((0.003, 0.003, 0.01)), density=3000.0, position=(-0.0037, 0.002, 0.0101))
    scene.drive("pin", fs.Motion([0.0, 0.2, 0.5], [(0, 0, 0), (0, 0, -0.0011), (0.0075, 0, -0.0011)]))
    scene.sensor("pin", "pin")
    dragged = fs.simulate(scene)
    force = dragged.sensors["pin"].force[-1]
    (reason,) = dragged.info["health"]["reasons"]
    assert abs(force[0]) > 5.0 and abs(force[2]) < 1.0
    assert reason["kind"] == "snagged" and reason["value"] > 0.9 and "contact_by_faces('pin')" in reason["advice"]
    scene.contact_by_faces("pin")
    right = fs.simulate(scene)
    force = right.sensors["pin"].force[-1]
    assert right.verdict == "good" and force[2] > 3.0 and abs(force[0]) == pytest.approx(0.3 * force[2], rel=0.1)


@pytest.mark.parametrize("flat", [False, True])
def test_what_pushes_along_the_surface(flat: bool) -> None:
    """The corner of a cube lies on three faces, so all three normals push inwards; on a flat surface one along it does not.

    Part 2 presses nothing in, so all that it pushes along the flat one counts.
    """
    half = np.sqrt(0.5)
    x = np.array([[0, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1.0]])
    corner = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1]])  # faces +z, +x, +y
    triangles = corner[:1] if flat else corner
    normal = -np.array([[0, 0, 1], [1, 0, 0], [half, half, 0], [-1, 0, 0.0], [0, 0, 1], [1, 0, 0]])
    part = np.array([[1, 0], [1, 0], [1, 2], [1, 2], [0, 1], [1, 0]])  # one of another body, and one that bears nothing
    lam = np.column_stack([[1.0, 2.0, 4.0, 8.0, 16.0, 0.0], np.ones(6), np.ones(6)])
    first = np.array([0, *[len(triangles)] * 4])
    sums = np.full((3, 5), np.nan)
    point = np.zeros((6, 2, 3), dtype=np.int64)
    vitals_kernels.press(1, part, lam, point, normal, x, triangles, first, np.arange(len(triangles)), 0.5, sums)
    along = [2, 0, 12] if flat else [0, 0, 8]
    np.testing.assert_array_equal(sums[:, :2], np.column_stack([[3, 0, 12], along]))


def test_what_first_has_one_contact_and_then_many() -> None:
    """A ball pressed down on one node pushes it straight in; the normals of many were read as if they were those of one."""
    scene = fs.Scene("ball", dt=0.01, duration=0.1, theta=1.0, gravity=(0, 0, 0))
    rubber, mesh = fs.Elastic(3e5, 0.4, 1000.0, rayleigh_beta=1e-3), fs.box_tets((0.04, 0.04, 0.012), (10, 10, 3))
    scene.add_soft("pad", mesh, rubber, position=(0, 0, -0.006), fixed=lambda x: x[:, 2] < -0.0119)
    press = (0.0, 0.0, -1.0)
    scene.add_rigid("ball", fs.Sphere(0.005), mass=0.1, position=(0, 0, 0.005), load=lambda t: (press, (0, 0, 0)))
    scene.drive("ball", fs.Motion([0.0, 0.1], [(0, 0, 0), (0, 0, 0)]), stiffness=(1e5, 1e5, 0, 1e3, 1e3, 1e3))
    run = fs.simulate(scene)
    assert run.steps["contacts"][0] <= 1 < run.steps["contacts"].max() and run.verdict == "good"


def test_a_free_box_slides_on_a_soft_pad_as_far_as_friction_lets_it() -> None:
    """v^2 / (2 mu g) by default; at the nodes the first ones that its edge passed stopped it within 0.3 mm."""
    speed, friction = 0.3, 0.3
    scene = fs.Scene("slides", dt=0.01, duration=0.15)
    rubber, mesh = fs.Elastic(1e6, 0.4, 1000.0), fs.box_tets((0.08, 0.03, 0.006), (16, 6, 1))
    scene.add_soft("pad", mesh, rubber, position=(0, 0, -0.003), fixed=lambda x: x[:, 2] < -0.0029)
    box = fs.Box((0.0125, 0.0105, 0.006))
    scene.add_rigid("box", box, density=1000.0, position=(-0.02, 0, 0.006), velocity=(speed, 0, 0))
    scene.set_friction("box", "pad", friction)
    with fs.Simulation(scene) as sim:
        _, place = sim.step(15).pose("box")
        assert sim.verdict == "good" and place[0] + 0.02 == pytest.approx(speed**2 / (2 * friction * 9.81), rel=2e-3)
