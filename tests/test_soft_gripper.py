"""The scene of the soft gripper, coarse: it lifts and holds by forces that balance; its sensor, objects, fingers from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import meshio
import numpy as np
import pytest

import femsim as fs
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper

SCENE = Path(fs.__file__).resolve().parent.parent / "scenes" / "soft_gripper.py"
COARSE = {"cells": (4, 5, 8)}
GRAVITY = 9.81


def gripper(**parameters: Any) -> fs.Scene:
    return fs.load_scene(SCENE, **(COARSE | parameters))


def test_jaws_that_move_lead_the_fingers_without_a_force_of_theirs() -> None:
    """b without what the held nodes put there sums to weight and momentum over dt, finger by finger; the leading is much more."""
    stepper = Stepper(gripper(), fs.make_solver("auto"))
    for _ in range(20):
        before = stepper.state
        stepper.step()
    assert stepper.problem is not None and stepper.problem.b_prescribed is not None
    for body, rows in list(zip(stepper.system.bodies, stepper.system.v_slices, strict=True))[1:]:
        given = stepper.problem.b_prescribed[rows].reshape(-1, 3).sum(axis=0)
        own = stepper.problem.b[rows].reshape(-1, 3).sum(axis=0) - given
        expected = body.node_mass @ before.v[rows].reshape(-1, 3) / stepper.settings.dt - [0, 0, GRAVITY * body.mass]
        np.testing.assert_allclose(own, expected, atol=1e-9 * np.abs(given).max())
        assert np.abs(given[0]) > 10 * np.linalg.norm(own)


def test_object_is_lifted_and_held_by_forces_that_balance() -> None:
    scene = gripper(duration=2.2)
    run = fs.simulate(scene)
    assert run.status == "converged"
    assert run.steps["max_penetration_m"].max() < 1e-6
    assert run.steps["wrench_balance"].max() < 1e-6
    masses = {body.name: body.mass for body in scene.bodies}
    assert masses["object"] == pytest.approx(1240 * 0.03**3)
    held = {name: run.sensors[name].force[-1] for name in run.sensors}
    assert held["object"][2] == pytest.approx(GRAVITY * masses["object"], rel=1e-4)
    assert held["left_jaw"] + held["right_jaw"] == pytest.approx([0, 0, GRAVITY * sum(masses.values())], abs=1e-4)
    assert held["left_finger"][0] == pytest.approx(-held["right_finger"][0], rel=1e-4) and held["left_finger"][0] < -0.1
    centre = run.markers["object_centre"].position
    assert centre[-1] == pytest.approx([0, 0, 0.015 + 0.04], abs=4e-3)
    assert np.linalg.norm(centre[-1] - centre[-2]) / scene.dt < 1e-7  # m/s; 1e-9 in the fine scene, see docs/gripper.md


def test_mounted_object_reads_what_the_fingers_do() -> None:
    run = fs.simulate(gripper(mounted=True, object="cylinder", duration=0.9))
    assert run.status == "converged"
    contact, mount = run.sensors["object"], run.sensors["force_torque"]
    weight = GRAVITY * 1240 * np.pi * 0.015**2 * 0.03
    assert np.abs(run.sensors["left_finger"].force[-1, 0]) > 0.1
    np.testing.assert_allclose(mount.force + contact.force, np.tile([0, 0, weight], (90, 1)), atol=1e-7)
    np.testing.assert_allclose(mount.torque, -contact.torque, atol=1e-9)
    tip = run.markers["left_tip"].position
    assert 0.003 < tip[-1, 0] - tip[0, 0] < 0.006  # the object, 5 mm away, holds it back: the jaw goes 15 mm


def stopped_short(**actuators: float) -> fs.Run:
    """Jaws that stop short of the object: the tips come nearer by the actuators alone."""
    run = fs.simulate(gripper(cells=(5, 8, 12), squeeze=-0.004, duration=0.8, lift_height=0.0, **actuators))
    assert run.status == "converged"
    return run


@pytest.fixture(scope="module")
def idle_tip() -> float:
    """Where the left tip ends without actuators, along x, m."""
    return float(stopped_short().markers["left_tip"].position[-1, 0])


@pytest.mark.parametrize(("parameters", "kind"), [({"tendon_force": 0.4}, "tendon"), ({"pressure": 8e3}, "chamber")])
def test_tendons_and_chambers_bend_the_fingers_inwards(parameters: dict[str, float], kind: str, idle_tip: float) -> None:
    run = stopped_short(**parameters)
    assert run.markers["left_tip"].position[-1, 0] - idle_tip > (0.001 if kind == "tendon" else 0.0002)
    if kind == "tendon":
        assert run.tendons["left_tendon"].force[-1] == pytest.approx(0.4)
        assert run.tendons["left_tendon"].length[-1] < 0.97 * run.tendons["left_tendon"].length[0]
    else:
        assert run.chambers["right_chamber"].pressure[-1] == pytest.approx(8e3)
        assert run.chambers["right_chamber"].volume[-1] > 1.2 * run.chambers["right_chamber"].volume[0]


@pytest.mark.parametrize("kind", ["vtu", "stl"])
def test_fingers_from_files_are_placed_like_made_ones(kind: str, tmp_path: Path) -> None:
    """A made finger, written in millimetres and far away, comes to the place of the made one."""
    made = gripper().body("left")
    surface = fs.box_tets((12.0, 25.0, 50.0), (2, 4, 8)).transformed(translation=(40.0, 0.0, -7.0))
    path = tmp_path / f"finger.{kind}"
    if kind == "vtu":
        fs.save_tetmesh(surface, path)
    else:
        pytest.importorskip("pytetwild")
        meshio.Mesh(surface.points, [("triangle", surface.surface_triangles)]).write(path)
    scene = gripper(finger=str(path), mesh_unit="mm", edge_length=0.006)
    bodies = [scene.body(name) for name in ("left", "right")]
    left, right = (body.rest for body in bodies)
    near = 1e-9 if kind == "vtu" else 1e-4  # the mesher leaves the surface by a thousandth of the size
    assert [left[:, 2].min(), left[:, 2].max()] == pytest.approx([made.rest[:, 2].min(), 0.052], abs=near)
    assert [left[:, 0].max(), made.rest[:, 0].max()] == pytest.approx([-0.020, -0.020], abs=near)
    np.testing.assert_allclose(right, left * [-1, -1, 1], atol=1e-15)
    assert np.all(bodies[0].tets == bodies[1].tets)
    assert bodies[0].mass == pytest.approx(1070 * 0.012 * 0.025 * 0.05, rel=1e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mesh_unit": "inch"}, "unit of length is 'inch'; allowed are 'm', 'cm', 'mm'"),
        ({"cells": (3, 5, 8)}, "at least 4, 5 and 5"),
        ({"finger": "none.stl"}, "none.stl"),
        ({"finger": "ball_r30.vtu", "tendon_force": 1.0}, "for made fingers only"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((fs.InputError, fs.MeshError), match=message):
        gripper(**parameters)


def test_fingers_that_close_as_far_as_they_can_press_on_each_other(tmp_path: Path) -> None:
    """Jaws 0.2 mm from each other, a block of 4 mm between: the fingers meet around it, and no step fails."""
    box = fs.box_triangles((4.0, 4.0, 8.0))
    meshio.Mesh(box.points, [("triangle", box.triangles)]).write(tmp_path / "small.obj")
    small = {"object": str(tmp_path / "small.obj"), "mesh_unit": "mm", "lift_height": 0.0}
    reports: list[StepReport] = []
    run = fs.simulate(gripper(squeeze=0.0069, duration=0.8, **small), on_step=lambda stepper, report: reports.append(report))
    assert run.status == "converged"
    assert run.steps["max_penetration_m"].max() < 1e-6 and not run.steps["inverted_elements"].any()
    left, right = (run.sensors[f"{side}_finger"].force for side in ("left", "right"))
    assert left[-1, 0] < -0.03
    np.testing.assert_allclose(left[:, 0], -right[:, 0], atol=1e-4)
    assert (reports[-1].contacts.point[:, 1, 0] >= 0).sum() > 10  # contacts of the fingers with each other
    with pytest.raises(fs.InputError, match=r"squeeze is 0.008 m, but the jaws meet at 0.007 m"):
        gripper(squeeze=0.008, **small)
