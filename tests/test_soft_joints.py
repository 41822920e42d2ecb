"""Joints that hold a patch of the surface of a soft body: what it carries, how wide it is, and what is said where it folds."""

from __future__ import annotations

import numpy as np
import pytest

import femsim as fs
from femsim.model.frames import PatchFrame, Points

SIDE = 0.04


def soft_cube(scene: fs.Scene, n: int) -> fs.Handle:
    return scene.add_soft("cube", fs.box_tets((SIDE, SIDE, SIDE), n), fs.Elastic(2e4, 0.45, 1000.0))


def test_a_hinge_on_a_soft_cube_carries_a_weight_beside_it() -> None:
    """The weight is on its axis, across which the hinge holds it; on the closest three nodes alone it sank by half a radian."""
    mass, beside = 0.02, 0.05
    scene = fs.Scene("lever", dt=0.02, theta=1.0, gravity=(0.0, 0.0, -9.81))
    cube = soft_cube(scene, 4)
    scene.hold(cube, lambda x: x[:, 2] < -0.49 * SIDE, lambda t: ((0, 0, 0), (0, 0, 0)))
    arm = scene.add_rigid("arm", fs.Sphere(0.005), mass=mass, position=(0.003, 0.002 + beside, 0.5 * SIDE))
    axle = scene.join(cube, arm, "hinge", at=(0.003, 0.002, 0.5 * SIDE), axis=(0, 1, 0))
    scene.sensor("axle", axle, kind="reaction")
    sim = fs.Simulation(scene)
    sim.step(40)
    turn, read, weight = sim.pose("arm")[0], sim.read("axle"), np.array([0.0, 0.0, -9.81 * mass])
    np.testing.assert_allclose(read.force, weight, atol=1e-3 * 9.81 * mass)
    np.testing.assert_allclose(read.torque, np.cross(turn @ [0.0, beside, 0.0], weight), atol=1e-3 * 9.81 * mass * beside)
    assert np.arccos(turn[1, 1]) < 0.2
    assert sim.verdict == "good"


def test_a_patch_goes_beyond_the_closest_triangle() -> None:
    """The corners next to the closest triangle are 16 mm away in the mean, so of a grid of 10 mm nine are in the patch."""
    scene = fs.Scene("grid", dt=0.1)
    scene.join(soft_cube(scene, 4), "world", "ball", at=(0.001, 0.002, 0.5 * SIDE))
    places = scene.bodies[0].initial_q().reshape(-1, 3)[scene.couplings[0].rows[0][1][::3] // 3]
    grid = [(x, y, 0.5 * SIDE) for x in (-0.01, 0.0, 0.01) for y in (-0.01, 0.0, 0.01)]
    np.testing.assert_allclose(places[np.lexsort((places[:, 1], places[:, 0]))], grid, atol=1e-12)


def test_the_width_of_a_square_patch_is_that_of_its_narrower_side() -> None:
    square = np.array([(x, y, 0.0) for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
    frame = PatchFrame(Points(square), np.arange(4), np.ones(4), np.array([0, 0, 0, 1.0, 0, 0, 0]))
    for factors in ((0.3, 1.0), (1.0, 0.3), (0.3, 2.0)):
        narrow = square * (*factors, 1.0)
        assert frame.width(narrow.ravel()) == pytest.approx(0.3)
        turned = narrow @ np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        assert frame.width(turned.ravel()) == pytest.approx(0.3)


@pytest.mark.parametrize(("left", "verdict"), [(0.7, "good"), (0.3, "doubtful"), (0.05, "wrong")])
def test_a_patch_that_folds_is_told(left: float, verdict: str) -> None:
    """All nodes of a cube are moved, and the face that a ball joint holds becomes as narrow as they say."""
    scene = fs.Scene("press", dt=0.1, gravity=(0.0, 0.0, 0.0))
    cube = soft_cube(scene, 2)
    for k in range(3):
        place, way = (k - 1) * 0.5 * SIDE, 0.5 * k * SIDE * (1.0 - left)
        scene.hold(
            cube,
            lambda x, place=place: np.abs(x[:, 0] - place) < 1e-6,
            lambda t, way=way: ((-way * min(t, 1.0), 0, 0), (0, 0, 0)),
        )
    weight = scene.add_rigid("weight", fs.Sphere(0.005), mass=0.01, position=(0.0, 0.0, SIDE))
    joint = scene.join(cube, weight, "ball", at=(0.001, 0.002, 0.5 * SIDE))
    sim = fs.Simulation(scene)
    sim.step(10)
    assert sim.verdict == verdict, sim.reasons
    told = [one for one in sim.reasons if joint.name in one]
    assert len(told) == (verdict != "good")
    assert all("of their width" in one and "weld a rigid plate" in one for one in told)
