"""Boxes land on a floor and on each other: the same motion from another place, in another direction, of another size.

Four corners on a floor have many force fields, and with friction each moves the box a little differently: which of them a
step finds must not hang on rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs
from contact.solvers.dense import DenseSolver
from femsim.step.stepper import Stepper

CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))
HALF = np.array([0.05, 0.04, 0.03])


@dataclass(frozen=True)
class Frame:
    """How a scene is told: its origin (m), its turn about the vertical (rad), the mass of its kg and the length of its m."""

    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: float = 0.0
    mass: float = 1.0
    length: float = 1.0


#: Height, tilt, velocity and angular velocity: dropped on a corner, and laid down flat while it slides and spins.
STARTS = {
    "tilted": (0.12, (0.3, 0.5, 0.2), (0.5, 0.2, 0.0), (1.0, -2.0, 0.5)),
    "flat": (0.035, (0.0, 0.0, 0.2), (0.5, 0.2, 0.0), (0.0, 0.0, 0.5)),
}


def corners(start: str, frame: Frame, tolerance: float, **options: Any) -> np.ndarray:
    """Corners of the box after each step of 0.4 s, (200, 8, 3), m, told in the frame of the plain scene; backward Euler."""
    turn, shift = Rotation.from_euler("z", frame.turn), np.array(frame.shift)
    height, tilt, velocity, omega = STARTS[start]
    scene = fs.Scene(
        "box", dt=0.002, duration=0.4, gravity=(0, 0, -9.81 * frame.length), margin=1e-3 * frame.length,
        max_correction=0.5 * frame.length, **(options or {"theta": 1.0}),
    )  # fmt: skip
    scene.add_floor(frame.shift[2])
    scene.add_rigid(
        "box", fs.Box(tuple(HALF * frame.length)), mass=0.5 * frame.mass,
        position=shift + turn.apply([0, 0, height * frame.length]), rotation=(turn * Rotation.from_rotvec(tilt)).as_rotvec(),
        velocity=turn.apply(velocity) * frame.length, angular_velocity=turn.apply(omega),
    )  # fmt: skip
    scene.set_friction("box", "floor", 0.3)
    path = []

    def keep(stepper: Stepper, report: object) -> None:
        q = stepper.state.q
        centre = turn.inv().apply(q[:3] - shift) / frame.length
        path.append(centre + (turn.inv() * Rotation.from_quat(q[3:7], scalar_first=True)).apply(CORNERS * HALF))

    run = fs.simulate(scene, solver="exact", tolerance=tolerance, on_step=keep)
    assert run.status == "converged"
    return np.array(path)


@pytest.mark.parametrize("start", STARTS)
def test_place_direction_and_mass_do_not_matter(start: str) -> None:
    plain = corners(start, Frame(), 1e-10)
    assert np.ptp(plain[-1, :4, 2]) < 0.1 and plain[-1, :, 2].min() < 1e-3  # it did land
    frame = Frame(shift=(1.3, -2.7, 0.9), turn=0.7371, mass=1000.0)
    np.testing.assert_allclose(corners(start, frame, 1e-10), plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("start", STARTS)
def test_nor_do_they_by_energy_momentum(start: str) -> None:
    """A turned box needs its equations solved sharply: how many solves a step takes hangs on the residual in each direction."""
    for frame, tolerance in (
        (Frame(shift=(1300.0, -2700.0, 900.0), mass=1000.0, length=1000.0), 1e-4),
        (Frame(turn=0.7371), 1e-9),
    ):
        options = {"integrator": "energy-momentum", "nonlinear_tolerance": tolerance}
        plain = corners(start, Frame(), 1e-10, **options)
        np.testing.assert_allclose(corners(start, frame, 1e-10, **options), plain, rtol=0, atol=1e-9, err_msg=str(frame))


def test_units_do_not_matter() -> None:
    """In millimetres other steps take one refinement more, since one norm of the judge mixes N and N m; so more sharply."""
    plain = corners("flat", Frame(), 1e-12)
    np.testing.assert_allclose(corners("flat", Frame(length=1000.0), 1e-12), plain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_change_by_rounding_does_not_change_forces_that_are_not_unique(seed: int) -> None:
    """Four corners of a block that is pushed, turned and lands unevenly: W has rank 6 of 12."""
    rng = np.random.default_rng(seed)
    place = np.array([[x, y, -0.03] for x, y in product((-0.05, 0.05), (-0.04, 0.04))])
    J = np.concatenate([np.hstack([np.eye(3), -np.cross(np.eye(3), -r)]) for r in place])
    J = J.reshape(4, 3, 6)[:, [2, 0, 1]].reshape(12, 6)  # normal first
    inertia = np.diag([0.5] * 3 + [4e-4, 6e-4, 7e-4]) / 0.002
    W = J @ np.linalg.inv(inertia) @ J.T
    q = J @ (np.array([0.3, 0.2, -0.05, 0.1, -0.1, 0.5]) + 0.02 * rng.standard_normal(6))

    def forces(noise: float) -> np.ndarray:
        disturbed = W * (1.0 + noise * rng.standard_normal(W.shape))
        solver = DenseSolver(np.ascontiguousarray(disturbed.T), np.full(4, 0.3), 1.0 / np.full(4, np.trace(W) / 12.0))
        lam = np.zeros(12)
        assert solver.solve(q * (1.0 + noise * rng.standard_normal(12)), lam, 1e-10, 1000).residual < 1e-10
        return lam

    plain = forces(0.0)
    for _ in range(5):
        np.testing.assert_allclose(forces(1e-15), plain, rtol=0, atol=1e-8 * np.abs(plain).max())


def cubes(size: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of two soft cubes in each step, in their size, and contacts, all and slipping, (30, 2): one slides on the other.

    All vertices of one are a thousandth of an edge beside those of the other. All lengths are ``size`` times as large, also those
    in speeds and in the stiffness.
    """
    scene = fs.Scene(
        "cubes", dt=0.005, duration=0.15, gravity=(0, 0, -9.81 * size), margin=1e-3 * size, max_correction=0.5 * size, theta=1.0,
        largest_size=3.0 * max(size, 1.0),
    )  # fmt: skip
    scene.add_floor()
    rubber = fs.Elastic(1e5 * size**2, 0.3, 1000.0)
    for name, height, speed, aside in (("low", 0.01, 0.0, 0.0), ("high", 0.03, 2e-4, 2e-5)):
        mesh = fs.box_tets((0.04 * size, 0.04 * size, 0.02 * size), 2)
        scene.add_soft(
            name, mesh, rubber, position=(aside * size, 0.5 * aside * size, height * size), velocity=(speed * size, 0, 0)
        )
    scene.set_friction("high", "low", 0.0)
    scene.sensor("between", "high", kind="pair", partner="low")
    path: list[np.ndarray] = []
    run = fs.simulate(scene, tolerance=1e-10, on_step=lambda stepper, report: path.append(stepper.state.q / size))
    assert run.status == "converged"
    counts = run.gauges["between"].values
    return np.array(path), np.column_stack([counts["contacts"], counts["slipping"]])


def test_the_size_of_soft_bodies_does_not_matter() -> None:
    """Once 0.1 um was too near to an edge for any size, and 1 um/s was slipping."""
    plain, counts = cubes(1.0)
    assert counts[:, 1].max() > 4 and np.ptp(plain, axis=0).max() > 1e-5
    for size in (1e-3, 1e3):
        scaled, others = cubes(size)
        np.testing.assert_allclose(scaled, plain, rtol=0, atol=1e-14, err_msg=str(size))
        np.testing.assert_array_equal(others, counts, err_msg=str(size))
