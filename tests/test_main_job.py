"""The main job as a user runs it: the ball is gripped, lifted and held; forces balance in every step; outputs are complete."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from paraview_runs import run_in_paraview

import femsim as fs
from viz import read_part, read_pvd

SCENE = Path(__file__).resolve().parent.parent / "scenes" / "soft_ball_gripping.py"
G = 9.81


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[fs.Run, list[np.ndarray]]:
    """The shipped scene with its defaults, recorded at 10 frames a second, with the height of the ball after each step."""
    folder = tmp_path_factory.mktemp("main_job") / "run"
    scene = fs.load_scene(SCENE)
    ball = scene.body("ball")
    centres: list[np.ndarray] = []
    run = fs.simulate(
        scene,
        out=folder,
        fps=10.0,
        scene_path=SCENE,
        on_step=lambda s, r: centres.append(ball.node_mass @ s.state.q[: ball.n_q].reshape(-1, 3) / ball.mass),
    )
    return run, centres


def outside_balance(run: fs.Run, dt: float) -> np.ndarray:
    """Residual of dp/dt = gravity + mount - force on the floor for all bodies together, relative to their weight.

    Independent of the solver's own balance: it uses only the tables that a user reads.
    """
    momentum = np.column_stack([run.steps[f"momentum_{c}_kgmps"] for c in "xyz"])
    rate = np.diff(momentum, axis=0) / dt
    mass = sum(body.mass for body in run.stepper.scene.bodies)
    floor, mount = run.sensors["floor"].force[1:], run.sensors["gripper_base"].force[1:]
    residual = rate - mass * np.array([0, 0, -G]) - mount + floor
    return np.linalg.norm(residual, axis=1) / (mass * G)


def test_every_step_converges_and_balances(job: tuple[fs.Run, list[np.ndarray]]) -> None:
    run, _ = job
    assert run.status == "converged"
    assert run.steps["dynamics_residual"].max() <= 1e-8
    assert run.steps["contact_residual"].max() <= 1e-8
    assert run.steps["wrench_balance"].max() <= 1e-6
    assert outside_balance(run, 0.01).max() <= 1e-6
    assert "converged" in run.summary() and "wrench balance" in run.summary()


def test_the_ball_is_lifted_and_held_without_slip_or_penetration(job: tuple[fs.Run, list[np.ndarray]]) -> None:
    run, centres = job
    z = np.array(centres)[:, 2]
    hold = run.steps["time_s"] > 1.7
    np.testing.assert_allclose(z[-1] - z[65], 0.06, atol=5e-4)  # lifted as far as the gripper went, but for its own sag
    assert np.ptp(z[hold]) < 1e-6
    assert run.steps["max_slip_mps"][hold].max() < 1e-6
    assert run.steps["max_penetration_m"].max() < 1e-9
    weight = run.stepper.scene.body("ball").mass * G
    fingers = run.sensors["left_finger"].force + run.sensors["right_finger"].force
    np.testing.assert_allclose(fingers[hold, 2], -weight, rtol=1e-4)
    np.testing.assert_allclose(run.sensors["left_finger"].force[hold, 0], -20.0, rtol=1e-3)
    np.testing.assert_allclose(run.sensors["floor"].force[hold], 0.0, atol=1e-12)


def test_the_run_folder_is_complete(job: tuple[fs.Run, list[np.ndarray]]) -> None:
    run, _ = job
    assert run.folder is not None
    info = json.loads((run.folder / "run.json").read_text())
    assert info["status"] == "converged" and info["parameters"]["young_modulus"] == {"value": 1e6, "unit": "Pa"}
    assert info["bodies"]["ball"]["mesh"]["nodes"] == 1480
    with (run.folder / "steps.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 200 and float(rows[-1]["time_s"]) == pytest.approx(2.0)
    frames = read_pvd(run.folder / "frames.pvd")
    assert len(frames) == 21 and frames[-1][0] == pytest.approx(2.0)
    assert set(frames[0][1]) == {"ball", "gripper", "gripper.left", "gripper.right", "floor", "contacts"}
    ball = read_part(frames[-1][1]["ball"])
    assert ball.n_cells == 6598 and {"velocity", "contact_force", "displacement"} <= set(ball.point_data)
    assert float(ball.cell_data["von_mises"].max()) > 1e4
    pushed = np.asarray(ball.point_data["contact_force"]).sum(axis=0)
    np.testing.assert_allclose(pushed[2], run.stepper.scene.body("ball").mass * G, rtol=1e-3)
    contacts = read_part(frames[-1][1]["contacts"])
    assert contacts.n_points > 0 and "force" in contacts.point_data


def test_paraview_opens_the_run(job: tuple[fs.Run, list[np.ndarray]], tmp_path: Path) -> None:
    """The real program (skipped where it is absent) reads every time step, part and array of the main job."""
    run, _ = job
    assert run.folder is not None
    result = tmp_path / "result.json"
    run_in_paraview([str(run.folder / "frames.pvd"), str(run.folder / "frames" / "ball.vtu.series"), str(result)], tmp_path)
    found = json.loads(result.read_text())
    np.testing.assert_allclose(found["pvd"]["times"], np.linspace(0.0, 2.0, 21), atol=1e-9)
    np.testing.assert_allclose(found["series"]["times"], found["pvd"]["times"])
    for blocks in found["pvd"]["frames"]:
        assert set(blocks) == {"ball", "gripper", "gripper.left", "gripper.right", "floor", "contacts"}
        assert blocks["ball"]["points"] == 1480 and blocks["ball"]["cells"] == 6598
        assert blocks["ball"]["arrays"] == {
            "point velocity": [3, 1480],
            "point contact_force": [3, 1480],
            "point displacement": [3, 1480],
            "point contact_pressure": [1, 1480],
            "cell von_mises": [1, 6598],
        }
        assert {"point force", "point normal", "point gap", "point state"} == set(blocks["contacts"]["arrays"])
    heights = [frame["gripper"]["bounds"][4] for frame in found["pvd"]["frames"]]
    np.testing.assert_allclose(heights[-1] - heights[0], 0.06, atol=1e-9)


def test_cond_alone_does_the_job_to_its_own_tolerance() -> None:
    run = fs.simulate(fs.load_scene(SCENE), solver="cond", duration=0.9)
    assert run.status == "converged"
    assert max(run.steps["dynamics_residual"].max(), run.steps["contact_residual"].max()) <= 1e-5
    assert run.steps["wrench_balance"].max() <= 1e-4
    assert outside_balance(run, 0.01).max() <= 1e-4


def test_cond_at_a_tight_tolerance_balances_to_a_millionth() -> None:
    """Until the fingers press with all of their force."""
    run = fs.simulate(fs.load_scene(SCENE), solver="cond", tolerance=1e-7, duration=0.55, max_iterations=20000)
    assert run.status == "converged" and run.sensors["left_finger"].force[-1, 0] < -15.0
    assert run.steps["wrench_balance"].max() <= 1e-6
    assert outside_balance(run, 0.01).max() <= 1e-6


@pytest.mark.parametrize("young_modulus", [1e5, 1e7])
def test_soft_and_stiff_balls_converge_in_every_step(young_modulus: float) -> None:
    run = fs.simulate(fs.load_scene(SCENE, young_modulus=young_modulus), solver="exact", duration=1.0)
    assert run.status == "converged"
    assert max(run.steps["dynamics_residual"].max(), run.steps["contact_residual"].max()) <= 1e-8


def test_the_same_run_gives_the_same_bits() -> None:
    runs = [fs.simulate(fs.load_scene(SCENE), duration=0.35, tolerance=1e-4) for _ in range(2)]
    assert runs[0].stepper.state.q.tobytes() == runs[1].stepper.state.q.tobytes()
    assert runs[0].stepper.state.v.tobytes() == runs[1].stepper.state.v.tobytes()
    assert runs[0].sensors["left_finger"].force.tobytes() == runs[1].sensors["left_finger"].force.tobytes()


@pytest.mark.parametrize("parameters", [{"pad": "pad.stl"}, {"young_modulus": 5e5, "poisson_ratio": 0.4, "friction": 0.4}])
def test_other_pads_and_the_ends_of_the_paper_s_ranges_lift_the_ball_too(parameters: dict[str, object]) -> None:
    run = fs.simulate(fs.load_scene(SCENE, **parameters), duration=1.0)
    assert run.status == "converged"
    assert run.sensors["floor"].force[-1, 2] == 0.0
    assert run.steps["max_slip_mps"][-1] < 1e-3
    assert run.steps["max_penetration_m"].max() < 1e-9
