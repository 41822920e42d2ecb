"""Scenes of bowls and threads: dishes at rest, a nut on its bolt."""

from __future__ import annotations

import numpy as np
import pytest

import femsim as fs
from contact.solvers import make_solver
from femsim.model.solids import mass_properties
from femsim.step.stepper import Stepper


@pytest.mark.parametrize(("pot_on_top", "force_error"), [(False, 1e-6), (True, 1e-4)])
def test_four_dishes_stay_where_they_are(pot_on_top: bool, force_error: float):
    scene = fs.load_scene("dish_piling", duration=0.1, pot_on_top=pot_on_top)
    run = fs.simulate(scene, out=None)
    assert run.status == "converged"
    assert run.steps["kinetic_energy_J"].max() < 1e-12 and run.steps["max_penetration_m"].max() < 1e-9
    weight = (5.0 + 3 * 0.1) * 9.81
    assert run.sensors["floor"].force[-1] == pytest.approx([0.0, 0.0, -weight], abs=force_error)
    places = np.asarray(run.markers["upper_bowl"].position)
    assert np.ptp(places, axis=0).max() < 1e-8
    # the plate and the bowls hold each other: contacts of slopes, not of rims alone
    assert run.steps["contacts"].min() > 150


@pytest.mark.parametrize(("friction", "spin"), [(0.0, -2.0), (0.0, 0.0), (0.3, 0.0)])
def test_a_nut_sinks_by_a_pitch_a_turn_or_stays(friction: float, spin: float):
    """Without friction it gains g / (1 + I/(m lead^2)) along the axis; with it the thread locks itself."""
    scene = fs.load_scene("bolt_nut", friction=friction, spin=spin, duration=0.1)
    stepper = Stepper(scene, make_solver("auto"))
    for _ in range(24):
        report = stepper.step()
        assert report.solution.status == "converged"
        assert report.max_penetration < 1e-6
    v, lead, time = stepper.state.v, 0.005 / (2.0 * np.pi), 24 / 240
    if friction:
        assert np.abs(v).max() < 1e-9
        return
    assert v[2] / v[5] == pytest.approx(lead, rel=0.01)
    mass, _, inertia = mass_properties(fs.Thread.metric(0.048, 0.005, 0.038, play=0.0002, across=0.075))
    fall = 9.81 / (1.0 + inertia[2, 2] / (mass * lead**2))
    assert v[2] == pytest.approx(spin * lead - fall * time, rel=0.01)


def test_threads_that_enter_a_nut_do_not_hold_it():
    """By its weight and 100 N a nut of 10 mm pitch spins up as the lead says, while 32 points a turn enter at its end."""
    bolt, nut = fs.Thread.metric(0.048, 0.01, 0.1), fs.Thread.metric(0.048, 0.01, 0.038, play=2e-4, across=0.0768)
    volume, _, inertia = mass_properties(nut)
    mass, lead = 7850.0 * volume, 0.01 / (2.0 * np.pi)
    speed_up = (9.81 * mass + 100.0) * lead / (7850.0 * inertia[2, 2] + mass * lead**2)
    for theta in (1.0, None):
        scene = fs.Scene("nut", dt=1.0 / 240.0, duration=0.25, margin=2e-4, **({} if theta is None else {"theta": theta}))
        still = scene.add_obstacle("bolt", bolt)
        place = (0.0, 0.0, -2e-4 * np.tan(np.pi / 6.0))
        free = scene.add_rigid("nut", nut, density=7850.0, position=place, load=lambda t: ((0.0, 0.0, -100.0), (0.0, 0.0, 0.0)))
        scene.set_friction(still, free, 0.0)
        run = fs.simulate(scene, out=None)
        assert run.verdict == "good"
        assert run.stepper.state.v[5] == pytest.approx(-0.25 * speed_up, rel=5e-3)


def test_a_bolt_that_turns_fast_is_not_braked():
    """Points that its end leaves do not hold it; turned by Cayley's map, up to 0.8 rad a step, it does not sink into the nut."""
    pitch, play = 0.01, 2e-4
    bolt, nut = fs.Thread.metric(0.048, pitch, 0.04), fs.Thread.metric(0.048, pitch, 0.1, play=play, across=0.077)
    volume, _, inertia = mass_properties(bolt)
    mass, lead = 7850.0 * volume, pitch / (2.0 * np.pi)
    speed_up = (9.81 * mass + 100.0) * lead / (7850.0 * inertia[2, 2] + mass * lead**2)
    scene = fs.Scene("bolt", dt=1.0 / 240.0, duration=0.1, margin=2e-4)
    still = scene.add_obstacle("nut", nut)
    free = scene.add_rigid(
        "bolt", bolt, density=7850.0, position=(0.0, 0.0, pitch - play * np.tan(np.pi / 6.0)), velocity=(0.0, 0.0, -40.0 * lead),
        angular_velocity=(0.0, 0.0, -40.0), load=lambda t: ((0.0, 0.0, -100.0), (0.0, 0.0, 0.0)),
    )  # fmt: skip
    scene.set_friction(still, free, 0.0)
    run = fs.simulate(scene, out=None)
    assert run.verdict == "good"
    steps = run.steps
    assert steps["substeps"].max() == 1 and steps["max_penetration_m"].max() < 1e-8
    speed = run.stepper.state.v
    assert speed[5] == pytest.approx(-40.0 - 0.1 * speed_up, rel=0.02)
    assert speed[2] == pytest.approx(lead * speed[5], rel=5e-3)
    assert steps["kinetic_energy_J"][-1] <= steps["kinetic_energy_J"][0] + steps["work_J"][-1] - steps["work_J"][0]


@pytest.mark.parametrize("theta", [None, 1.0])
def test_a_ring_that_turns_round_a_pin_keeps_its_spin(theta: float | None):
    """Loaded, without friction; its points, 32 a turn, took 7 to 12 % of it in a quarter of a second."""
    radius, play = 0.01, 2e-4
    scene = fs.Scene(
        "ring", dt=1.0 / 240.0, duration=0.1, margin=2e-4, gravity=(0, 0, 0), **({} if theta is None else {"theta": theta})
    )
    pin = scene.add_obstacle("pin", fs.Cylinder(radius, 0.04))
    wall = fs.Revolved([(radius + play + 0.002, -0.01), (radius + play + 0.002, 0.01)], 0.002)
    ring = scene.add_rigid(
        "ring", wall, density=7850.0, angular_velocity=(0.0, 0.0, 50.0), load=lambda t: ((0.0, -5.0, 0.0), (0.0, 0.0, 0.0))
    )  # fmt: skip
    scene.set_friction(pin, ring, 0.0)
    scene.sensor("pin", pin)
    run = fs.simulate(scene, out=None)
    assert run.verdict == "good"
    assert run.stepper.state.v[5] == pytest.approx(50.0, rel=1e-9)
    assert run.sensors["pin"].force[12:].mean(axis=0) == pytest.approx([0.0, -5.0, 0.0], abs=0.01)
