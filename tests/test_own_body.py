"""A body that femsim has never seen takes part in everything by its answers alone, or is refused with what it lacks.

Three particles of 0.1, 0.2 and 0.3 kg and 5 mm radius fall 20 mm onto a floor (backward Euler, plastic contact) and stay there:
force 0.6 g = 5.886 N, centres at 5 mm.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from particles import Particles

import femsim as fs
from femsim.step.stepper import Stepper
from viz.survey import drawn_solid

G = 9.81
MASSES = np.array([0.1, 0.2, 0.3])
STARTS = np.array([[0.0, 0, 0.025], [0.1, 0, 0.025], [0, 0.1, 0.025]])


def scene(**options: object) -> fs.Scene:
    scene = fs.Scene("particles", dt=0.005, duration=0.2, theta=1.0)
    scene.add_floor()
    scene.add_body(Particles("cloud", STARTS, MASSES, 0.005, np.array([0.3, 0, 0])), **options)  # type: ignore[arg-type]
    scene.set_friction("cloud", "floor", 0.4)
    return scene


def test_every_output_is_right(tmp_path: Path) -> None:
    built = scene()
    built.sensor("floor", "floor")
    built.sensor("cloud", "cloud")
    built.sensor("second", "cloud", kind="marker", node=1)
    built.sensor("energy", "cloud", kind="energy")
    built.sensor("gap", "cloud", kind="gap", partner="floor", reach=1.0)
    built.sensor("slip", "cloud", kind="slip")
    run = fs.simulate(built, out=tmp_path / "run", fields=["all"])
    assert run.status == "converged"
    weight = G * MASSES.sum()
    # the balance of forces, relative to the net force, in flight, impact, sliding and rest
    assert run.steps["wrench_balance"].max() < 1e-8
    assert run.steps["max_penetration_m"].max() < 1e-9
    floor, cloud = run.sensors["floor"].force, run.sensors["cloud"].force
    np.testing.assert_allclose(floor, -cloud, atol=1e-12)
    np.testing.assert_allclose(cloud[-1], [0, 0, weight], rtol=1e-6, atol=1e-6)
    flight = run.steps["time_s"] < 0.05
    assert not cloud[flight].any()
    # markers and energies are those of the particles
    marker = run.markers["second"].position
    np.testing.assert_allclose(marker[flight, 0], 0.1 + 0.3 * run.steps["time_s"][flight], rtol=1e-12)
    assert marker[-1, 2] == pytest.approx(0.005, abs=1e-9)
    kinetic = run.gauges["energy"].values["kinetic_J"]
    np.testing.assert_allclose(kinetic, run.steps["kinetic_energy_J"], rtol=1e-9)
    potential = run.gauges["energy"].values["potential_J"]
    assert potential[-1] == pytest.approx(weight * 0.005, rel=1e-6)
    np.testing.assert_allclose(run.steps["potential_energy_J"], potential, rtol=1e-9)
    assert run.gauges["gap"].values["gap_m"][-1] == pytest.approx(0.0, abs=1e-9)
    # sliding stops by friction: the work of friction is what is left of the sliding energy
    slipped = run.gauges["slip"].values["friction_J"][-1]
    assert 0.0 < slipped <= 0.5 * MASSES.sum() * 0.3**2 * (1 + 1e-9)
    assert np.abs(run.stepper.state.v).max() < 1e-6
    # files: tables, description and frames
    with (run.folder / "sensors.csv").open(newline="") as file:
        assert "second_z_m" in next(csv.reader(file))
    entry = json.loads((run.folder / "run.json").read_text())["bodies"]["cloud"]
    assert entry["mass_kg"] == pytest.approx(0.6) and entry["what"] == "cloud of particles"
    frames = fs.open_frames(run.folder)
    last = frames.read(len(frames.times) - 1, "cloud")
    np.testing.assert_allclose(last.points, run.stepper.state.q.reshape(-1, 3), rtol=1e-12)
    np.testing.assert_allclose(last.point_data["contact_force"][:, 2], G * MASSES, rtol=1e-5)
    np.testing.assert_allclose(last.point_data["displacement"], last.points - STARTS, atol=1e-7)
    # pictures draw a ball of 5 mm at each
    balls = np.asarray(drawn_solid(last).points)
    distances = np.linalg.norm(balls[:, None] - last.points, axis=2).min(axis=1)
    np.testing.assert_allclose(distances, 0.005, rtol=1e-4)


def test_a_restored_state_goes_on_to_the_same_bits() -> None:
    stepper = Stepper(scene(), fs.make_solver("exact"))
    for _ in range(15):
        stepper.step()
    before = stepper.state.copy()
    first = [stepper.step().forces.wrench for _ in range(5)]
    after = stepper.state.copy()
    stepper.restore(before)
    again = [stepper.step().forces.wrench for _ in range(5)]
    assert stepper.state == after and np.array_equal(first, again)


@pytest.mark.parametrize("options", [{"theta": 1.0}, {}], ids=["backward", "energy-momentum"])
def test_it_is_saved_and_restored_like_any_other(options: dict[str, float], tmp_path: Path) -> None:
    """In both schemes, with a filtered sensor, from a file, in a simulation of its own."""

    def simulation() -> fs.Simulation:
        built = fs.Scene("particles", dt=0.005, duration=0.2, **options)  # type: ignore[arg-type]
        built.add_floor()
        built.add_body(Particles("cloud", STARTS, MASSES, 0.005, np.array([0.3, 0, 0])))
        built.set_friction("cloud", "floor", 0.4)
        built.sensor("cloud", "cloud", reading=fs.Reading(noise=(0.01, 0.001), lowpass=20.0, seed=1))
        return fs.Simulation(built, "exact")

    def rows(sim: fs.Simulation) -> list[dict[str, float]]:
        steps = [sim.step().row() for _ in range(5)]
        return [{name: value for name, value in row.items() if not name.startswith("ms_")} for row in steps]

    sim = simulation()
    sim.step(10)
    sim.save().write(tmp_path / "saved.npz")
    wanted = rows(sim)
    assert max(row["cloud_fz_N"] for row in wanted) > 0.0  # it lands
    other = simulation()
    other.restore(fs.Saved.read(tmp_path / "saved.npz"))
    assert rows(other) == wanted


def test_pairs_and_groups_have_it() -> None:
    """A box of 0.1 kg falls onto the second particle: each pair has its own sensor, and who is ignored falls through."""
    built = scene()
    built.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0.117, 0, 0.041))
    assert built.sense_pairs() == ["cloud-floor", "box-floor", "cloud-box"]
    run = fs.simulate(built)
    assert run.status == "converged" and run.steps["wrench_balance"].max() < 1e-6
    # what the floor gave is what gravity gave and the momentum of all; the box slides off the particle
    pressed = {name: run.gauges[name].values["normal_N"] for name in ("cloud-floor", "box-floor", "cloud-box")}
    assert pressed["cloud-box"].max() > 0.0
    up, momentum = pressed["cloud-floor"] + pressed["box-floor"], run.steps["momentum_z_kgmps"]
    weight = G * (MASSES.sum() + 0.1)
    assert built.dt * (up - weight)[1:].sum() == pytest.approx(momentum[-1] - momentum[0], abs=1e-6 * weight)
    assert momentum.min() < -0.1 * weight * built.duration  # they fell
    ignoring = scene()
    ignoring.contact_group("all", ["cloud", "floor"])
    ignoring.ignore_contact("all")
    fallen = fs.simulate(ignoring).stepper.state.q[2::3]
    np.testing.assert_allclose(fallen, 0.025 - 0.5 * G * 0.2 * (0.2 + 0.005), rtol=1e-9)  # the sum of backward Euler


def test_a_default_scheme_rebounds_and_adapts() -> None:
    """It rebounds with half of its speed of impact, 0.626 m/s, less what gravity takes; and takes steps of its own length."""
    built = fs.Scene("particles", dt=0.005, duration=0.2, theta=1.0)
    built.add_floor()
    built.add_body(Particles("cloud", STARTS, MASSES, 0.005, np.zeros(3)))
    built.set_restitution("cloud", "floor", 0.5)
    run = fs.simulate(built)
    assert run.steps["momentum_z_kgmps"].max() == pytest.approx(0.5 * MASSES.sum() * np.sqrt(2 * G * 0.02), abs=0.03)
    adaptive = fs.simulate(scene(), dt="auto")
    assert adaptive.status == "converged" and adaptive.steps["substeps"].max() > adaptive.steps["substeps"].min()
    np.testing.assert_allclose(adaptive.stepper.state.q[2::3], 0.005, atol=1e-9)


def test_what_it_lacks_is_named() -> None:
    class Half:
        name, kind, n_q, n_v = "half", "nodes", 3, 3

        def initial_q(self) -> np.ndarray:
            return np.zeros(3)

    with pytest.raises(
        fs.InputError, match=r"'half' lacks accept, acted, .*initial_v.*momentum.*; give its class these, or derive"
    ):
        fs.Scene("s", theta=1.0).add_body(Half())  # type: ignore[arg-type]

    class Derived(fs.BodyDefaults):
        name, kind, n_q, n_v = "derived", "nodes", 3, 3

    with pytest.raises(fs.InputError, match=r"'derived' lacks advance, assemble, .*, initial_q, .*; give its class these"):
        fs.Scene("s", theta=1.0).add_body(Derived())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "points"}, "kind of body 'cloud' is 'points'; allowed are 'nodes', 'links', 'generalized'"),
        ({"n_v": 8}, "has n_q 9 and n_v 8; allowed are 3 coordinates and 3 velocities"),
        ({"n_q": 12, "n_v": 12}, "initial_q has length 9; it must be 12"),
    ],
)
def test_answers_of_the_wrong_size_are_named(change: dict[str, object], words: str) -> None:
    body = Particles("cloud", STARTS, MASSES, 0.005, np.zeros(3))
    for name, value in change.items():
        setattr(body, name, value)
    with pytest.raises(fs.InputError, match=words):
        fs.Scene("s", theta=1.0).add_body(body)


def test_what_it_cannot_have_is_said() -> None:
    with pytest.raises(fs.InputError, match="'cloud' is not rigid, so a shape cannot be fixed to it"):
        scene(shape=fs.Sphere(0.01))
    with pytest.raises(fs.InputError, match=r"nodes of 'cloud' are .*; allowed are whole numbers from 0 to 2"):
        scene(nodes=[0, 3])
    built = scene()
    with pytest.raises(fs.InputError, match="'cloud'"):
        built.drive("cloud", fs.Motion([0, 1], [(0, 0, 0), (0, 0, 1)]))
    with pytest.raises(fs.InputError, match="cloud"):
        built.add_tendon("cloud", [0, 1], lambda t: 1.0)
    for kind in ("weld", "ball"):
        with pytest.raises(fs.InputError, match="cloud: a cloud of particles carries no frame, for a joint or the end of a rod"):
            built.join("cloud", "world", kind, at=(0, 0, 0.025))  # type: ignore[arg-type]
    with pytest.raises(fs.InputError, match="drive_joint: 'cloud' is a cloud of particles, no robot; add one by add_robot"):
        built.drive_joint("cloud", "x", lambda t: 0.0)
    with pytest.raises(fs.InputError, match="nothing of kind 'reaction' is on 'cloud'; there is none"):
        built.sensor("s", "cloud", kind="reaction")
