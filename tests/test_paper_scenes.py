"""Scenes of papers/003: what each contact of a column with a heavy sphere carries, bars at rest, a ball and bricks."""

from __future__ import annotations

import numpy as np
import pytest

import femsim as fs

G = 9.8


@pytest.mark.parametrize("case", ["A", "B"])
def test_the_contacts_of_the_column_carry_what_stands_on_them(case: str):
    run = fs.simulate(fs.load_scene("sphere_stack", case=case, duration=0.03), out=None, tolerance=1e-10)
    assert run.status == "converged"
    force = {name: run.sensors[name].force[-1, 2] for name in ("lowest", "above", "below", "floor")}
    if case == "A":
        expected = {"lowest": 10190.0 * G, "above": 100.0 * G, "below": 10100.0 * G, "floor": -11190.0 * G}
    else:  # ten spheres above go up with the heavy one, pulled by twice its weight; nine stay
        upwards = (20000.0 - 10100.0) / 10100.0 * G
        expected = {"lowest": 90.0 * G, "above": 100.0 * (G + upwards), "below": 0.0, "floor": -1090.0 * G}
    for name, value in expected.items():
        assert force[name] == pytest.approx(value, rel=1e-6, abs=1e-6), name


def test_the_soft_contacts_of_the_column_are_as_deep_as_they_are_pressed():
    """By 1e-9 m/N the lowest sphere is 0.1 mm deep in the floor."""
    run = fs.simulate(fs.load_scene("sphere_stack", softness=1e-9, duration=0.3), out=None, tolerance=1e-10)
    assert run.status == "converged" and run.info["health"]["verdict"] == "good"
    assert run.sensors["lowest"].force[-1, 2] == pytest.approx(10190.0 * G, rel=1e-3)
    assert run.steps["max_penetration_m"][-1] == pytest.approx(1e-9 * 10190.0 * G, rel=1e-3)
    loads = [10190.0 - 10.0 * k for k in range(9)] + [10100.0] + [10.0 * k for k in range(10, 0, -1)] + [1000.0]
    held = sum(0.5e-9 * (mass * G) ** 2 for mass in loads)
    assert run.steps["elastic_energy_J"][-1] == pytest.approx(held, rel=2e-3)
    assert run.info["softness"][0] == {"bodies": ["floor", "sphere_1"], "m_per_N": 1e-9}


def test_soft_bricks_bear_less():
    size = {"walls": 1, "rows": 2, "bricks": 2, "friction": 0.0, "duration": 0.04}
    hard, soft = (fs.simulate(fs.load_scene("wrecking_ball", softness=c, **size), out=None) for c in (0.0, 1e-7))
    ball = 8000.0 * 4.0 / 3.0 * np.pi * 4.0**3
    np.testing.assert_allclose(soft.steps["momentum_y_kgmps"], 16.0 * ball, rtol=1e-7)
    assert soft.steps["elastic_energy_J"].max() > 1.0 and hard.steps["elastic_energy_J"].max() == 0.0
    assert hard.info["softness"] == []


def test_bars_come_to_rest_with_their_weight_on_the_floor():
    run = fs.simulate(fs.load_scene("falling_bars", layers=1, divisions=4, duration=0.4), out=None)
    assert run.status == "converged" and run.steps["kinetic_energy_J"][-1] < 1e-6
    weight = 3 * 1000.0 * 0.24 * 0.04**2 * 9.81
    assert run.sensors["floor"].force[-1, 2] == pytest.approx(-weight, rel=1e-3)


def test_the_ball_gives_the_wall_what_it_loses():
    """Without friction nothing takes momentum along its way; with it, the ball is slower than the bricks it pushes together "
    "are."""
    run = fs.simulate(fs.load_scene("wrecking_ball", walls=1, rows=2, bricks=2, friction=0.0, duration=0.06), out=None)
    assert run.status == "converged" and run.steps["max_penetration_m"].max() < 0.05
    ball = 8000.0 * 4.0 / 3.0 * np.pi * 4.0**3
    np.testing.assert_allclose(run.steps["momentum_y_kgmps"], 16.0 * ball, rtol=1e-7)
    moved = np.ptp(run.markers["ball"].position[:, 1])
    assert 0.9 * 16.0 * 0.04 < moved < 16.0 * 0.04


def test_notes_on_bricks_are_said_once(caplog: pytest.LogCaptureFixture):
    scene = fs.load_scene("wrecking_ball", walls=1, rows=1, bricks=3)
    assert scene.notes == []
    scene = fs.Scene("bricks", dt=0.02, duration=0.02)
    for number in range(3):
        scene.add_rigid(f"brick_{number}", fs.Box((2.0, 1.0, 1.0)), density=100.0, position=(5.0 * number, 0.0, 0.0))
    with caplog.at_level("WARNING", logger="femsim"):
        fs.simulate(scene, out=None)
    assert [text for text in caplog.messages if "measures 4 m" in text] == [
        "femsim: note: brick_0 measures 4 m: is it given in millimetres? Then divide by 1000; else give the scene largest_size=4 "
        "(and 2 more like this)."
    ]


def test_wrong_parameters_are_named():
    for name, parameters in (("sphere_stack", {"case": "C"}), ("falling_bars", {"divisions": 6}), ("wrecking_ball", {"rows": 0})):
        with pytest.raises(fs.InputError, match=f"{next(iter(parameters))} is"):
            fs.load_scene(name, **parameters)
