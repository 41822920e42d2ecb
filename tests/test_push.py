"""Forces from outside a scene on points of its parts: momentum, work, contact, drives, and what is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import femsim as fs
from femsim.model.bodies.articulated import ArticulatedBody

G = 9.81


def floating(**options: Any) -> fs.Scene:
    """A box, a soft cube and a cord that nothing holds, without gravity."""
    scene = fs.Scene("floating", dt=0.005, duration=1.0, gravity=(0.0, 0.0, 0.0), **options)
    rubber = fs.Elastic(1e5, 0.4, 1000.0)
    scene.add_rigid("box", fs.Box((0.05, 0.04, 0.03)), mass=0.5, position=(0.0, 0.0, 1.0))
    scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 3), rubber, position=(0.5, 0.0, 1.0))
    points = np.column_stack([np.linspace(0.0, 0.3, 11), np.ones(11), np.ones(11)])
    scene.add_rod("cord", points, fs.circular_section(0.004), rubber)
    return scene


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_what_is_pushed_gains_the_momentum_and_the_energy_that_is_given(theta: float) -> None:
    sim = fs.Simulation(floating(theta=theta))
    forces = {"box": (0.1, 0.0, 0.0), "cube": (0.0, 0.05, 0.0), "cord": (0.0, 0.0, 0.01)}
    for (name, force), at in zip(forces.items(), [(0.05, 0.04, 1.03), (0.54, 0.0, 1.0), (0.3, 1.0, 1.0)], strict=True):
        sim.push(name, force, at)
    row = sim.step(40).row()
    given = np.sum(list(forces.values()), axis=0) * 40 * 0.005
    np.testing.assert_allclose([row[f"momentum_{axis}_kgmps"] for axis in "xyz"], given, atol=1e-12)
    assert row["kinetic_energy_J"] > 1e-3
    if theta == 0.5:
        assert row["kinetic_energy_J"] + row["elastic_energy_J"] == pytest.approx(row["work_J"], rel=2e-3)
    for name in forces:
        sim.push(name, None)
    after = sim.step(10).row()
    np.testing.assert_allclose([after[f"momentum_{axis}_kgmps"] for axis in "xyz"], given, atol=1e-12)


def test_the_lever_of_a_push_turns_a_box() -> None:
    """In its first step by the angular momentum r x F dt, and a push at the centre of mass not at all."""
    sim = fs.Simulation(floating())
    sim.push("box", (0.0, 0.0, 0.2), at=(0.05, 0.04, 1.0))
    sim.step()
    body, given = sim.stepper.scene.bodies[0], 0.005 * np.cross([0.05, 0.04, 0.0], [0.0, 0.0, 0.2])
    assert isinstance(body, ArticulatedBody)
    q, v = sim.state.q[: body.n_q], sim.state.v[: body.n_v]
    turned = body.angular_momentum(q, v) - np.cross(body.centre_of_mass(q), body.momentum(q, v))
    np.testing.assert_allclose(turned, given, atol=1e-12)
    half = np.array([0.05, 0.04, 0.03])
    inertia = 0.5 / 3.0 * (np.sum(half**2) - half**2)
    np.testing.assert_allclose(v[3:5], (given / inertia)[:2], rtol=1e-7)  # about z its precession gives it 5e-6 rad/s
    sim.reset()
    sim.push("box", (0.0, 0.0, 0.2))
    sim.step()
    np.testing.assert_allclose(sim.state.v[:6], [0.0, 0.0, 0.2 * 0.005 / 0.5, 0.0, 0.0, 0.0], atol=1e-14)


@pytest.mark.parametrize("divisions", [2, 4, 8])
@pytest.mark.parametrize("at", [(0.03, 0.02, 0.0), (0.03, 0.02, 0.02), (0.03, 0.004, 0.0113), (0.01, 0.003, 0), (0.034, 0, 0.01)])
def test_a_push_on_a_soft_body_acts_where_it_is(at: tuple[float, float, float], divisions: int) -> None:
    """Nodes shared it whose mean lay up to 5 mm beside; the last point is outside, before the face at x = 0.03 m."""
    scene = fs.Scene("bar", dt=0.002, duration=1.0, gravity=(0.0, 0.0, 0.0))
    scene.add_soft("bar", fs.box_tets((0.06, 0.04, 0.04), divisions), fs.Elastic(1e6, 0.4, 1000.0))
    sim, force = fs.Simulation(scene), np.array([0.0, 0.1, 0.05])
    sim.push("bar", force, at)
    push = sim.save().pushes["bar"]
    assert push["weights"].min() >= 0.0 and push["weights"].sum() == pytest.approx(1.0)
    fewest = 1 if at[2] == 0.02 else 3 if at[:2] == (0.03, 0.02) else 5  # at a corner, on an edge, elsewhere
    assert divisions < 8 or len(push["nodes"]) >= fewest, "where the mesh is fine, all that can share it"
    assert at[:2] != (0.03, 0.02) or len(push["nodes"]) <= 3, "of an edge its own nodes alone, whatever rounding leaves others"
    before, masses = sim.points("bar"), scene.bodies[0].inertia(sim.state.q, sim.state.q).diagonal()[::3]
    sim.step()
    v = sim.state.v.reshape(-1, 3)
    spin = (masses[:, None] * np.cross(before, v)).sum(axis=0)
    np.testing.assert_allclose(spin, 0.002 * np.cross(np.minimum(at, 0.03), force), atol=1e-8)  # 0.05 mm


def test_a_push_on_a_rod_acts_where_it_is() -> None:
    """Also at its tip, half a link beyond the centre of the last one."""
    sim = fs.Simulation(floating())
    for x in (0.3, 0.2, 0.123):
        sim.push("cord", (0.0, 0.0, 0.01), at=(x, 1.002, 1.0))
        push = sim.save().pushes["cord"]
        np.testing.assert_allclose(push["weights"] @ sim.points("cord")[push["nodes"]], [x, 1.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("part", ["cube", "cord"])
def test_a_push_at_the_centre_of_mass_does_not_deform(part: str) -> None:
    sim = fs.Simulation(floating())
    before = sim.points(part)
    sim.push(part, (0.0, 0.0, 0.02))
    moved = sim.step(20).points(part) - before
    np.testing.assert_allclose(moved, np.broadcast_to(moved[0], moved.shape), atol=1e-12)
    assert moved[0, 2] > 1e-4


def test_a_link_of_a_robot_takes_the_work_of_its_point() -> None:
    """Two links on an axis each, and a constant force at the end of the second: its work is all that moves them."""
    links = [fs.RobotLink("base", 1.0, inertia=np.eye(3) * 1e-3)]
    links += [fs.RobotLink(name, 0.4, (0.1, 0.0, 0.0), np.diag([1e-5, 1e-3, 1e-3])) for name in ("upper", "lower")]
    joints = [
        fs.RobotJoint("shoulder", "base", "upper", "continuous", (0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0)),
        fs.RobotJoint("elbow", "upper", "lower", "continuous", (0.2, 0.0, 0.0), axis=(0.0, 1.0, 0.0)),
    ]
    scene = fs.Scene("arm", dt=0.002, duration=1.0, gravity=(0.0, 0.0, 0.0))
    scene.add_robot(fs.Robot("arm", links, joints), name="arm")
    sim, force = fs.Simulation(scene), np.array([0.0, 0.3, 0.2])

    def end() -> np.ndarray:
        rotation, centre = sim.pose("arm.lower")
        return centre + rotation @ [0.1, 0.0, 0.0]

    start = end()
    np.testing.assert_allclose(start, [0.4, 0.0, 0.0], atol=1e-12)
    sim.push("arm.lower", force, at=start)
    row = sim.step(100).row()
    work = float(force @ (end() - start))
    assert work > 0.01 and row["work_J"] == pytest.approx(work, rel=2e-3)
    assert row["kinetic_energy_J"] == pytest.approx(work, rel=2e-3)


def test_a_box_slides_when_it_is_pushed_by_more_than_friction_holds() -> None:
    scene = fs.Scene("box", dt=0.005, duration=1.0, default_friction=0.4)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.02)), mass=0.5, position=(0.0, 0.0, 0.02))
    scene.sensor("floor", "floor")
    sim = fs.Simulation(scene)
    sim.push("box", (0.95 * 0.4 * 0.5 * G, 0.0, 0.0), at=(-0.05, 0.0, 0.01))
    sim.step(40)
    assert abs(sim.state.q[0]) < 1e-9
    assert sim.read("floor").force[0] == pytest.approx(0.95 * 0.4 * 0.5 * G, rel=1e-6)
    sim.push("box", (1.5 * 0.4 * 0.5 * G, 0.0, 0.0), at=(-0.05, 0.0, 0.01))
    sim.step(40)
    assert sim.state.v[0] == pytest.approx(0.5 * 0.4 * G * 40 * 0.005, rel=1e-3)


def test_a_drive_bears_the_push_on_what_it_holds() -> None:
    scene = fs.Scene("held", dt=0.005, duration=1.0)
    body = scene.add_rigid("body", fs.Box((0.05, 0.05, 0.02)), mass=0.5, position=(0.0, 0.0, 0.5))
    scene.drive(body, lambda t: (np.zeros(3), np.zeros(3)))
    scene.sensor("mount", "body", kind="mount")
    sim = fs.Simulation(scene)
    quiet = sim.step(2).read("mount")
    sim.push("body", (1.0, -2.0, 0.5), at=(0.05, 0.0, 0.5))
    pushed = sim.step(2).read("mount")
    np.testing.assert_allclose(np.abs(pushed.force - quiet.force), [1.0, 2.0, 0.5], atol=1e-9)
    np.testing.assert_allclose(np.abs(pushed.torque - quiet.torque), [0.0, 0.025, 0.1], atol=1e-9)


def test_a_push_is_saved_forked_and_forgotten_with_the_simulation(tmp_path: Path) -> None:
    sim = fs.Simulation(floating())
    sim.push("cube", (0.0, 0.05, 0.0), at=(0.54, 0.0, 1.0))
    sim.push("box", (0.1, 0.0, 0.0))
    saved, twin = sim.step(3).save(), sim.fork()
    saved.write(tmp_path / "saved.npz")
    end = sim.step(5).state.q.tobytes()
    assert twin.step(5).state.q.tobytes() == end
    other = fs.Simulation(floating())
    other.restore(fs.Saved.read(tmp_path / "saved.npz"))
    assert other.step(5).state.q.tobytes() == end
    sim.restore(saved)
    sim.push("box", None)
    assert sim.step(5).state.q.tobytes() != end
    sim.reset()
    assert np.abs(sim.step(5).state.v).max() < 1e-12
    empty = fs.Scene("empty", dt=0.005, duration=1.0)
    empty.add_rigid("other", fs.Sphere(0.1), mass=1.0)
    with pytest.raises(fs.InputError, match="another scene: its body 0 is box of 7 coordinates, that of 'empty' is other of 7"):
        fs.Simulation(empty).restore(saved)


@pytest.mark.parametrize(
    ("part", "force", "at", "sentence"),
    [
        ("bx", (0, 0, 1), None, "no part is called so; did you mean 'box'"),
        ("floor", (0, 0, 1), None, "it is an obstacle, which no force moves; push a body"),
        ("box", (0, 1), None, r"force is \(0, 1\); allowed are 3 finite numbers"),
        ("box", (0, 0, np.nan), None, "force is .* allowed are 3 finite numbers"),
        ("box", "up", None, "force is 'up'; allowed are 3 finite numbers"),
        ("cube", (0, 0, 1), (np.inf, 0, 0), "at is .* allowed are 3 finite numbers"),
        ("cube", (0, 0, 1), (1, 1, 1), r"at is \(1.0, 1.0, 1.0\) m, far outside it, which spans \[0.48, -0.02, 0.98\] to \[0.52"),
        ("cord", (0, 0, 1), (0, 0.5, 1), "far outside it, .* give a point in it or near it"),
    ],
)
def test_wrong_pushes_are_said(part: str, force: Any, at: Any, sentence: str) -> None:
    scene = floating()
    scene.add_floor()
    sim = fs.Simulation(scene)
    with pytest.raises(fs.InputError, match=sentence):
        sim.push(part, force, at)
    assert not sim.save().pushes
