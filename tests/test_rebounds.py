"""Restitution by the speed at which a gap closes: what a bouncing body keeps does not depend on where steps meet the surface."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import femsim as fs
from contact import make_solver
from femsim.step import end_velocity_kernels as kernels
from femsim.step.advance import take_step
from femsim.step.rebounds import without_gain
from femsim.step.stepper import Stepper

G, RADIUS, HEIGHT = 9.81, 0.01, 0.1
INTEGRATORS: list[dict[str, Any]] = [{"integrator": "energy-momentum"}, {"theta": 1.0}]


def thrown(
    coefficient: float, dt: float, *, gravity: float = -G, place: float = HEIGHT, speed: float = 0.0, **options: Any
) -> Stepper:
    """A ball above a floor, its lowest point at ``place``, m; gravity along z, m/s^2, so that the floor may be a ceiling."""
    scene = fs.Scene("ball", dt=dt, gravity=(0, 0, gravity), default_friction=0.0, **options)
    floor = scene.add_floor()
    ball = scene.add_rigid("ball", fs.Sphere(RADIUS), density=1000.0, position=(0, 0, RADIUS + place), velocity=(0, 0, speed))
    scene.set_restitution(ball, floor, coefficient)
    return Stepper(scene, make_solver("auto"))


def track(stepper: Stepper, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Gap, m, and kinetic and potential energy over mass, J/kg, from the start on."""
    gap, energy = [], []
    for _ in range(steps + 1):
        gap.append(stepper.state.q[2] - RADIUS)
        energy.append(0.5 * stepper.state.v[2] ** 2 - stepper.scene.gravity[2] * gap[-1])
        take_step(stepper)
    return np.array(gap), np.array(energy)


@pytest.mark.parametrize("dt", [0.01, 0.005, 0.002])
@pytest.mark.parametrize("coefficient", [0.5, 0.8, 1.0])
def test_each_rebound_keeps_the_square_of_the_restitution(coefficient: float, dt: float) -> None:
    """Free flight keeps its energy, so that between two landings it is that of the drop times a power of e^2."""
    gap, energy = track(thrown(coefficient, dt, place=0.0987), round(1.2 / dt))
    assert gap.min() > -1e-9 and np.diff(energy).max() < 1e-12
    landings = np.flatnonzero(gap < 1e-9)[:4]
    kept = energy[landings] / energy[0]
    assert kept == pytest.approx(coefficient ** (2.0 * np.arange(1, len(landings) + 1)), rel=1e-6)
    assert len(landings) >= 3


@pytest.mark.parametrize("shape", [fs.Sphere(RADIUS), fs.Capsule(RADIUS, 0.015)])
def test_neither_of_two_like_balls_that_collide_comes_first(shape: Any) -> None:
    """One that is told first spins as it does told second, and as fast as the other: the same force acts half-way on both."""

    def spins(order: str) -> dict[str, np.ndarray]:
        scene = fs.Scene("impact", dt=0.005, gravity=(0, 0, 0), default_friction=0.8)
        start = {"a": {"position": (-0.02, 0, 0), "velocity": (1.0, 0, 0)}, "b": {"position": (0.0107, 0.006, 0)}}
        for name in order:
            scene.add_rigid(name, shape, mass=0.01, **start[name])
        stepper = Stepper(scene, make_solver("auto"))
        for _ in range(8):
            take_step(stepper)
        return {name: stepper.state.v[6 * k + 3 : 6 * k + 6] for k, name in enumerate(order)}

    one, other = spins("ab"), spins("ba")
    assert abs(one["a"][2]) > 1.0
    for name in "ab":
        np.testing.assert_allclose(one[name], other[name], atol=1e-9)
    np.testing.assert_allclose(one["a"], one["b"], atol=1e-9)


EIGHTH, QUARTER = 0.25 * np.pi, 0.5 * np.pi
#: Two bars that cross: shape and turn of the one along x, and of the one along y, and how far apart their axes are at a touch.
CROSSED = {
    "boxes": (fs.Box((0.03, 0.004, 0.004)), (EIGHTH, 0, 0), fs.Box((0.004, 0.03, 0.004)), (0, EIGHTH, 0), 0.008 * 2**0.5),
    "cylinders": (fs.Cylinder(0.004, 0.03), (0, QUARTER, 0), fs.Cylinder(0.004, 0.03), (QUARTER, 0, 0), 0.008),
    "capsules": (fs.Capsule(0.004, 0.03), (0, QUARTER, 0), fs.Capsule(0.004, 0.03), (QUARTER, 0, 0), 0.008),
    "cones": (fs.Cone(0.006, 0.03, 0.003), (0, QUARTER, 0), fs.Cone(0.006, 0.03, 0.003), (QUARTER, 0, 0), 0.0094),
}


@pytest.mark.parametrize("pair", CROSSED)
def test_nor_does_one_of_two_bars_that_cross(pair: str) -> None:
    """Edges and mantles that are 3 mm apart at the start of the step in which they hit: the force acts half-way there too."""
    *bars, apart = CROSSED[pair]
    start = {"a": {"position": (0.004, 0.006, apart + 0.003), "velocity": (0.3, 0.2, -1.0)}, "b": {}}
    found = {}
    for order in ("ab", "ba"):
        scene = fs.Scene("impact", dt=0.005, gravity=(0, 0, 0), default_friction=0.8)
        for name in order:
            shape, turn = bars[:2] if name == "a" else bars[2:]
            scene.add_rigid(name, shape, mass=0.01, rotation=turn, **start[name])
        stepper = Stepper(scene, make_solver("auto"))
        for _ in range(3):
            take_step(stepper)
        found[order] = {name: stepper.state.v[6 * k : 6 * k + 6] for k, name in enumerate(order)}
    for name in "ab":
        np.testing.assert_allclose(found["ab"][name], found["ba"][name], atol=1e-9)
    assert abs(found["ab"]["b"][4]) > 10.0


@pytest.mark.parametrize("options", INTEGRATORS)
@pytest.mark.parametrize("coefficient", [0.6, 1.0])
def test_a_ball_thrown_at_a_ceiling_gains_nothing(coefficient: float, options: dict[str, Any]) -> None:
    """Gravity slows it on the way: it leaves with e of the speed that it comes with, not of that at the start of the step."""
    stepper = thrown(coefficient, 0.01, gravity=G, place=0.043, speed=-2.0, **options)
    _, energy = track(stepper, 10)
    assert np.diff(energy).max() < 1e-12
    if stepper.settings.conserving:
        arriving = 0.5 * 2.0**2 - G * 0.043
        assert energy[-1] == pytest.approx(coefficient**2 * arriving, rel=1e-9)


def test_a_ball_of_restitution_comes_to_rest() -> None:
    stepper = thrown(0.5, 0.01, place=0.001)
    gap, _ = track(stepper, 40)
    assert abs(stepper.state.v[2]) < 1e-9 and abs(gap[-1]) < 1e-9


def test_a_motor_beyond_gravity_makes_no_rebound() -> None:
    """A push of a hundred weights counts as one: what it does to the speed is at most what gravity would."""
    fast = [rebound(approach=1.0, gap=0.01, fall=-fall)[0] for fall in (G, 100.0 * G)]
    assert fast == pytest.approx([math.sqrt(1.0 + 2.0 * G * 0.01)] * 2, rel=1e-12)


def rebound(approach: float, gap: float, fall: float, dt: float = 0.01, still: float = 1e-6) -> np.ndarray:
    """Speeds with which a contact parts whose gap closes along the only row of v, of restitution 1."""
    out, row = np.empty(1), np.array([0, 1, 1, 1])
    kernels.rebounds(
        row, np.zeros(1, dtype=np.int64), np.ones(1), np.array([-approach]), np.array([fall]), np.zeros((1, 3)),
        np.array([gap]), np.ones(1), np.zeros(1, dtype=np.int64), still, G, dt, out,
    )  # fmt: skip
    return out


@pytest.mark.parametrize("approach", [-0.03, -0.01, 0.0, 0.2, 1.0])
@pytest.mark.parametrize("gap", [0.0, 1e-9, 1e-4, 2e-3])
@pytest.mark.parametrize("fall", [-G, -1.0, 0.0, 5.0])
def test_the_speed_of_an_impact_is_that_of_a_body_that_falls(approach: float, gap: float, fall: float) -> None:
    """Its gap is gap - approach t + fall t^2 / 2, and the first time at which that is 0 says how fast it closes."""
    expected = max(approach, 0.0)
    if gap > 1e-6 * 0.01:
        times = np.roots([0.5 * fall, -approach, gap])
        times = times[(np.abs(times.imag) < 1e-12) & (times.real > 0.0)].real
        late = np.inf if approach > 0.0 else 0.01
        expected = approach - fall * times.min() if times.min(initial=np.inf) <= late else 0.0
    assert rebound(approach, gap, fall)[0] == pytest.approx(expected, abs=1e-9)


# ------------------------------------------------------------------ no energy from friction and several contacts


def tumbling(
    coefficient: float, friction: float, dt: float, options: dict[str, Any], half: tuple[float, float, float], soft: float = 0.0
) -> Stepper:
    """A box that is thrown at the floor askew; with a softness a ball that lies on the floor beside it."""
    scene = fs.Scene("box", dt=dt, default_friction=friction, **options)
    floor = scene.add_floor()
    box = scene.add_rigid(
        "box", fs.Box(half), density=1000.0, position=(0, 0, 0.1), velocity=(0.7, 0.3, -0.8), angular_velocity=(7.0, -6.0, 5.0)
    )
    scene.set_restitution(box, floor, coefficient)
    if soft:
        ball = scene.add_rigid("ball", fs.Sphere(0.01), mass=0.05, position=(-1.0, 0, 0.01))
        scene.set_softness(ball, floor, soft)
    return Stepper(scene, make_solver("auto"))


@pytest.mark.parametrize("options", INTEGRATORS)
@pytest.mark.parametrize(("coefficient", "friction", "dt"), [(0.95, 0.4, 0.01), (0.95, 1.0, 0.002), (1.0, 1.0, 0.01)])
@pytest.mark.parametrize("half", [(0.02, 0.01, 0.012), (0.028, 0.009, 0.021)])
def test_a_tumbling_box_gains_nothing(
    coefficient: float, friction: float, dt: float, options: dict[str, Any], half: tuple[float, float, float]
) -> None:
    """Newton's law alone gave such boxes up to a seventh of their energy in one step, where several corners stick and part."""
    stepper, energy, lost = tumbling(coefficient, friction, dt, options, half), [], []
    for _ in range(round(0.8 / dt)):
        report = take_step(stepper)
        energy.append(report.kinetic_energy + stepper.system.bodies[0].mass * G * stepper.state.q[2])
        lost.append(report.friction_loss)
    assert np.diff(energy).max() < 3e-6 * energy[0]
    assert energy[-1] > 0.1 * energy[0]
    assert np.diff(np.add(energy, lost)).max() < 6e-6 * energy[0], "friction took no more than was lost: no energy from nowhere"
    assert np.diff(lost).min() > -3e-6 * energy[0]


@pytest.mark.parametrize("options", INTEGRATORS)
def test_nor_does_one_beside_a_soft_contact(options: dict[str, Any]) -> None:
    """What lies softly a metre away stores nothing of a box: where it turned the guard off, a step gained 14 %."""
    stepper, energy = tumbling(0.95, 0.4, 0.01, options, (0.028, 0.009, 0.021), soft=1e-5), []
    for _ in range(60):
        report = take_step(stepper)
        box = stepper.system.bodies[0]
        energy.append(box.kinetic_energy(stepper.state.q[:7], stepper.state.v[:6]) + box.mass * G * stepper.state.q[2])
        assert report.solution.converged
    assert np.diff(energy).max() < 3e-6 * energy[0]


@pytest.mark.parametrize(("kind", "options"), [("weld", {}), ("hinge", {"axis": (1.0, 0.4, 0.2)}), ("ball", {})])
def test_joined_balls_gain_nothing(kind: Any, options: dict[str, Any]) -> None:
    """Two balls that a joint holds 0.09 m apart: by Newton's law alone a ball joint gave them 0.4 % in a step."""
    scene = fs.Scene("joined", dt=0.01, default_friction=0.6)
    floor = scene.add_floor()
    for name, height in (("a", 0.06), ("b", 0.15)):
        ball = scene.add_rigid(
            name, fs.Sphere(0.02), density=1000.0, position=(0.01 * height, 0, height), velocity=(0.4, -0.3, -0.5),
            angular_velocity=(5.0, 3.0, -4.0),
        )  # fmt: skip
        scene.set_restitution(ball, floor, 1.0)
    scene.join("a", "b", kind, at=(0, 0, 0.105), **options)
    stepper, energy, landed = Stepper(scene, make_solver("auto")), [], 0
    for _ in range(80):
        report, state = take_step(stepper), stepper.state
        landed += report.forces.force_sum.max() > 1.0
        heights = [body.mass * state.q[q][2] for body, q in zip(stepper.system.bodies, stepper.system.q_slices, strict=True)]
        energy.append(report.kinetic_energy + G * sum(heights))
    assert np.diff(energy).max() < 2e-5 * energy[0], "1e-5 is of the nonlinear tolerance, in flight at 23 rad/s"
    assert landed > 2


@pytest.mark.parametrize("options", INTEGRATORS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_robot_that_tumbles_gains_nothing(seed: int, options: dict[str, Any]) -> None:
    """By Newton's law alone a foot or an edge gave quadrupeds up to half of their energy in a step.

    What is left is of the step itself, whose ways are bent; that of backward Euler is of first order.
    """
    rng = np.random.default_rng(seed)
    scene = fs.Scene("robot", dt=0.01, default_friction=0.8, **options)
    floor = scene.add_floor()
    turned, velocity, turning = 0.8 * rng.normal(size=3), 0.5 * rng.normal(size=3), 3.0 * rng.normal(size=3)
    robot = scene.add_robot(
        "quadruped.urdf", base="free", position=(0, 0, 0.6), rotation=turned, velocity=velocity, angular_velocity=turning
    )
    scene.set_restitution(robot, floor, 1.0)
    simulation, held = fs.Simulation(scene), []
    for _ in range(45):
        report = simulation.step().report
        held.append(report.kinetic_energy + report.elastic_energy - report.work)
    whole = max(held) + scene.bodies[0].mass * G * 0.6
    assert np.diff(held).max() < (2e-3 if simulation.stepper.settings.conserving else 1e-2) * whole
    assert simulation.verdict == "good"


def test_a_racket_gives_a_box_what_it_has_beside_it() -> None:
    """A driven plate comes at 1 m/s: seen from it a box that it meets askew has no more energy afterwards."""
    scene = fs.Scene("racket", dt=0.005, gravity=(0, 0, 0), default_friction=0.6)
    plate = scene.add_rigid("plate", fs.Box((0.1, 0.1, 0.01)), density=1000.0, position=(0, 0, -0.05))
    scene.drive(plate, fs.Motion([0.0, 1.0], [(0, 0, 0), (0, 0, 1.0)], smooth=False))
    box = scene.add_rigid("box", fs.Box((0.02, 0.01, 0.015)), density=1000.0, angular_velocity=(9.0, -5.0, 3.0))
    scene.set_restitution(box, plate, 1.0)
    stepper = Stepper(scene, make_solver("auto"))
    rows, energy = stepper.system.v_slices[1], []
    for _ in range(60):
        take_step(stepper)
        seen = stepper.state.v[rows].copy()
        seen[2] -= 1.0
        energy.append(stepper.system.bodies[1].kinetic_energy(stepper.state.q[stepper.system.q_slices[1]], seen))
    assert stepper.state.v[rows][2] > 1.2, "they have met"
    assert np.diff(energy).max() < 3e-6 * energy[0]


def test_energy_that_soft_contacts_give_back_lessens_no_rebound() -> None:
    """A box on a soft floor that is on its way up, and a ball that falls on it more than once: each time it leaves with e."""
    scene = fs.Scene("trampoline", dt=0.002, default_friction=0.0)
    floor = scene.add_floor()
    box = scene.add_rigid("box", fs.Box((0.03, 0.03, 0.01)), mass=0.3, position=(0, 0, 0.01), velocity=(0, 0, -0.3))
    ball = scene.add_rigid("ball", fs.Sphere(0.01), mass=0.05, position=(0, 0, 0.0305), velocity=(0, 0, -0.5))
    scene.set_softness(box, floor, 1e-4)
    scene.set_restitution(box, ball, 0.8)
    stepper, parts = Stepper(scene, make_solver("auto")), []
    for _ in range(12):
        before = stepper.state.v[8] - stepper.state.v[2]
        take_step(stepper)
        after = stepper.state.v[8] - stepper.state.v[2]
        parts += [-after / before] if before < 0.0 <= after else []
    assert parts == pytest.approx([0.8, 0.8], rel=1e-9)


def test_rebounds_are_lessened_until_nothing_is_gained() -> None:
    """Three groups: one that gains nothing, one that gains above a part of 0.3, one whose gain is not that of its rebound."""
    rebound, group = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 1, 1, 2])

    def gained(found: np.ndarray) -> np.ndarray:
        share = (found / rebound)[[0, 1, 3]]
        return np.array([-0.2, 2.0 * (share[1] ** 2 - 0.09) if abs(share[1] - 0.3) > 1e-3 else 0.0, 0.5])

    found = without_gain(lambda one: one, gained, group, rebound) / rebound
    assert found[0] == 1.0 and found[3] == 0.0
    assert 0.28 < found[1] <= 0.301 and found[2] == pytest.approx(found[1], rel=1e-12)
