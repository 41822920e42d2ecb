"""A driven hand that turns: what it holds turns with it, and the force on its mount is the rate of momentum."""

from __future__ import annotations

import math

import numpy as np
import pytest

import femsim as fs
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix


@pytest.fixture(scope="module")
def run() -> fs.Run:
    """A cube held between two pads, 0.1 m from the axis of a quarter turn in 0.5 s (up to 0.047 rad a step)."""
    scene = fs.Scene("turning_hand", dt=0.01, duration=1.2, gravity=(0.0, 0.0, 0.0), theta=1.0)
    rubber = fs.Elastic(1e6, 0.3, 1000.0, rayleigh_beta=2e-3, name="rubber")
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=(0.1, 0.0, 0.0))
    pad = fs.Box((0.02, 0.002, 0.02))
    hand = scene.add_gripper(
        "hand",
        [fs.Finger("left", pad, (0.1, 0.0125, 0.0), (0, -1, 0)), fs.Finger("right", pad, (0.1, -0.0125, 0.0), (0, 1, 0))],
    )
    scene.set_friction("cube", hand, 0.8)
    scene.drive(hand, fs.Motion([0.3, 0.8], [(0, 0, 0), (0, 0, 0)], [(0, 0, 0), (0, 0, 0.5 * math.pi)]))
    # one finger is held in place, so that the pair does not swing
    scene.drive(hand, fingers=["left"], position=fs.Profile([0.0, 0.1], [0.0, 5e-4]), stiffness=1e6)
    scene.drive(hand, fingers=["right"], force=fs.Profile([0.0, 0.2], [0.0, 20.0]))
    scene.sensor("wrist", hand, kind="mount")
    return fs.simulate(scene)


def test_what_a_hand_holds_turns_with_it(run: fs.Run) -> None:
    """Along the tangents of its steps the cube would creep outwards by the sum of (dt w)^2 r / 2, 3.9 mm."""
    state, system = run.stepper.state, run.stepper.system
    cube = state.q[system.q_slices[0]].reshape(-1, 3).mean(axis=0)
    turn = quaternion_to_matrix(quaternion_from_vector(np.array([0.0, 0.0, 0.5 * math.pi])))
    held = turn.T @ cube
    assert run.status == "converged"
    assert held[[0, 2]] == pytest.approx([0.1, 0.0], abs=2e-6)
    assert run.steps["max_penetration_m"].max() < 1e-7


def test_the_mount_of_a_turning_hand_balances(run: fs.Run) -> None:
    """Every step balances, and the impulses of the drive sum to the momentum, which is zero at the end."""
    assert run.steps["wrench_balance"].max() < 1e-6
    force = run.sensors["wrist"].force
    assert np.linalg.norm(force, axis=1).max() > 0.5
    assert np.abs(force.sum(axis=0)).max() < 1e-6 * np.abs(force).sum()
