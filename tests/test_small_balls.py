"""Balls and capsules that fit between the nodes of a soft body: they rest, roll and bounce on its faces, and on rods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from coarse_pads import add_pad

import femsim as fs
from contact import DeformableDetector, Strand, Surface
from femsim.model.parts import Part

G = 9.81
STIFF = fs.Elastic(1e8, 0.3, 1000.0, rayleigh_beta=1e-4, name="stiff")


@pytest.mark.parametrize(
    ("shape", "height", "turned"),
    [(fs.Sphere(0.003), 0.003, (0, 0, 0)), (fs.Sphere(0.0125), 0.0125, (0, 0, 0)),
     (fs.Capsule(0.004, 0.012), 0.004, (0, np.pi / 2, 0)), (fs.Capsule(0.004, 0.012), 0.016, (0, 0, 0))],
)  # fmt: skip
def test_it_lies_on_the_face_between_nodes(shape: fs.Sphere | fs.Capsule, height: float, turned: tuple[float, ...]) -> None:
    """A ball of 14 mm fell through the pad, good; one of 25 mm lay 2 mm deep between four nodes."""
    scene = fs.Scene("lies", dt=0.005, duration=0.1)
    add_pad(scene, STIFF)
    scene.add_rigid("stone", shape, density=2000.0, position=(0.0037, 0.0021, height), rotation=turned)
    scene.sensor("stone", "stone")
    with fs.Simulation(scene) as sim:
        sim.step(30 if height > 0.015 else 100)  # upright it may fall over
        rotation, place = sim.pose("stone")
        assert sim.verdict == "good"
        assert place == pytest.approx([0.0037, 0.0021, height], abs=1e-5)
        assert sim.read("stone").force[2] == pytest.approx(G * sim.stepper.system.bodies[1].mass, rel=1e-3)
        assert abs(rotation[2, 2] - np.cos(turned[1])) < 1e-4


@pytest.mark.parametrize("options", [{}, {"theta": 1.0}, {"theta": 1.0, "nonlinear_tolerance": None}])
def test_a_ball_that_slides_ends_rolling_at_five_sevenths(options: dict[str, Any]) -> None:
    """Over the edges of the elements, whatever the friction between; by hand for a ball on a plane."""
    scene = fs.Scene("rolls", dt=0.002, duration=0.2, default_friction=0.5, **options)
    add_pad(scene, STIFF)
    scene.add_rigid("ball", fs.Sphere(0.005), density=2000.0, position=(-0.03, 0.004, 0.005), velocity=(0.28, 0.0, 0.0))
    with fs.Simulation(scene) as sim:
        sim.step(50)
        v, spin = sim.state.v[-6:-3], sim.state.v[-3:]
        assert sim.verdict == "good"
        assert v[0] == pytest.approx(0.2, rel=5e-3) and 0.005 * spin[1] == pytest.approx(v[0], rel=5e-3)
        assert sim.pose("ball")[1][0] > -0.013  # past two edges of squares and more diagonals
        assert abs(v[1]) < 2e-3 and sim.pose("ball")[1][2] == pytest.approx(0.005, abs=1e-5)


def test_a_ball_meets_the_middle_of_a_link() -> None:
    """Of a cable between two holders, of links of 20 mm: at its nodes it has contact with nothing there, and falls through."""
    heights = []
    for on in (True, False):
        scene = fs.Scene("wire", dt=0.005, duration=0.1, default_friction=0.5)
        x = np.linspace(-0.05, 0.05, 6)
        ends = fs.RodEnd("clamped")
        points = np.column_stack([x, 0 * x, 0 * x])
        scene.add_rod("wire", points, fs.circular_section(0.002), fs.Elastic(1e9, 0.3, 1200.0), start=ends, end=ends)
        # beside the middle of the wire, half-way between two centres of links
        scene.add_rigid("bead", fs.Sphere(0.003), density=1000.0, position=(0.01, 0.0, 0.0051))
        scene.contact_by_faces("bead", on=on)
        with fs.Simulation(scene) as sim:
            sim.step(12)
            heights.append(sim.pose("bead")[1][2])
    assert heights[0] > 0.0045 > heights[1]


def test_what_is_thrown_keeps_its_momentum() -> None:
    scene = fs.Scene("thrown", dt=0.005, duration=0.1, gravity=(0, 0, 0), default_friction=0.5)
    scene.add_soft("cube", fs.box_tets((0.06, 0.06, 0.06), 3), fs.Elastic(2e5, 0.3, 1000.0), velocity=(0, 0, 0.2))
    scene.add_rigid(
        "stick", fs.Capsule(0.006, 0.01), density=2000.0, position=(0.004, 0.007, 0.05), rotation=(0.3, 1.2, 0.0),
        velocity=(0.3, 0.1, -1.0), angular_velocity=(2.0, -3.0, 5.0),
    )  # fmt: skip
    with fs.Simulation(scene) as sim:
        soft, rigid = sim.stepper.system.bodies

        def momenta() -> tuple[np.ndarray, np.ndarray]:
            q, v, n = sim.state.q, sim.state.v, soft.n_v
            p = soft.momentum(q[:n], v[:n]) + rigid.momentum(q[n:], v[n:])
            spin = np.cross(q[:n].reshape(-1, 3), soft.node_mass[:, None] * v[:n].reshape(-1, 3)).sum(axis=0)
            return p, spin + rigid.angular_momentum(q[n:], v[n:])

        p, spin = momenta()
        pressed, energies = 0.0, []
        for _ in range(20):
            sim.step()
            pressed = max(pressed, float(np.abs(sim.report.forces.force_sum).max()))
            energies.append(sim.row()["kinetic_energy_J"] + sim.row()["elastic_energy_J"])
        p_now, spin_now = momenta()
        assert pressed > 0.5 and sim.verdict == "good"
        assert np.abs(p_now - p).max() < 1e-8 and np.linalg.norm(spin_now - spin) < 1e-3 * np.linalg.norm(spin)
        assert np.diff(energies).max() < 1e-5 * max(energies)


def test_the_centre_of_a_ball_is_held_off_by_each_of_two_facets() -> None:
    """In a shallow valley; a point of a rod, which is held by the nearer one alone, sinks into the other by turns."""
    points = np.array([(-1, -1, 0.03), (0, -1, 0), (1, -1, 0.03), (-1, 1, 0.03), (0, 1, 0), (1, 1, 0.03), (0, 0, -1.0)])
    triangles = [[0, 1, 3], [1, 4, 3], [1, 2, 4], [2, 5, 4], [0, 3, 6], [3, 4, 6], [4, 5, 6], [5, 2, 6], [2, 1, 6], [1, 0, 6]]
    valley = Surface(7, np.array(triangles), np.full(10, 0.1))
    where = np.vstack([points, [(0.001, 0.1, 0.3)]])
    for rigid, expected in ((True, 2), (False, 1)):
        ball = Strand(np.zeros(1), 0.3, rigid=rigid)
        found = DeformableDetector([valley, ball], np.array([[False, True], [True, False]]), where).detect(where, 0.01)
        assert len(found) == expected
        np.testing.assert_allclose(np.abs(found.frame[:, 0, 0]), 0.03 / np.hypot(1.0, 0.03))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (fs.Sphere(0.0149), True),
        (fs.Sphere(0.0151), False),
        (fs.Capsule(0.0149, 0.2), True),
        (fs.Cylinder(0.0149, 0.02), True),
        (fs.Cylinder(0.03, 0.0049), True),
        (fs.Cylinder(0.0151, 0.02), False),
        (fs.Cone(0.0149, 0.02), True),
        (fs.Cone(0.0151, 0.02), False),
        (fs.Revolved([(0.0, 0.0), (0.005, 0.0)], 0.002), False),
    ],
)
def test_free_ones_and_obstacles_below_three_elements_across_have_it_by_default(shape: fs.Sphere, expected: bool) -> None:
    scene = fs.Scene("default", dt=0.005, duration=0.1)
    add_pad(scene, STIFF)
    scene.add_rigid("free", shape, density=1000.0, position=(0, 0, 0.3))
    scene.add_obstacle("held", shape, position=(0, 0, 0.8))
    scene.add_rigid("driven", shape, density=1000.0, position=(0, 0, 1.3))
    scene.drive("driven", fs.Motion([0, 1], [(0, 0, 0), (0, 0, 0.1)]))
    x = np.linspace(0.0, 0.3, 11)
    scene.add_rod("rod", np.column_stack([x, 0 * x, 0 * x + 2.0]), fs.circular_section(0.002), STIFF)
    with fs.Simulation(scene) as sim:
        by = sim.stepper.contacts.by_faces
        of = {part.name: k for k, part in enumerate(scene.parts)}
        for name, wanted in (("free", expected), ("held", expected), ("driven", False)):
            assert by[of[name], of["pad"]] == wanted and not by[of[name], of["rod"]]


def test_a_driven_ball_that_nodes_let_through_is_said() -> None:
    """It is 14 mm across, where nodes are 10 mm apart, and 14 along the diagonal of a square."""
    scene = fs.Scene("driven", dt=0.01, duration=0.3)
    add_pad(scene, STIFF)
    ball = scene.add_rigid("ball", fs.Sphere(0.00705), density=1000.0, position=(0.005, 0.005, 0.0071))
    scene.drive(ball, fs.Motion([0, 0.3], [(0, 0, 0), (0, 0, -0.02)]))
    run = fs.simulate(scene)
    assert run.verdict != "good" and "went between its surface nodes" in " ".join(run.reasons)
    assert "Sphere, Capsule, Cylinder and Cone" in " ".join(run.reasons)


def test_two_balls_on_a_stick_lie_on_both() -> None:
    """Pieces of one part, each of which has a line of its own; of a plate, which has none, there is word."""
    scene = fs.Scene("two", dt=0.005)
    add_pad(scene, STIFF)
    balls = [fs.Piece(fs.Sphere(0.005), position=(x, 0, 0)) for x in (-0.012, 0.012)]
    stick = fs.Piece(fs.Capsule(0.002, 0.01), rotation=(0, np.pi / 2, 0))
    scene.add_rigid("two", fs.Compound([*balls, stick]), density=1000.0, position=(0.0037, 0.0021, 0.005))
    with fs.Simulation(scene) as sim:
        sim.step(40)
        assert sim.verdict == "good" and sim.pose("two")[1] == pytest.approx([0.0037, 0.0021, 0.005], abs=2e-5)
        of = {part.name: k for k, part in enumerate(scene.parts)}
        assert sim.stepper.contacts.by_faces[of["two"], of["pad"]]
    x = np.linspace(0.0, 0.3, 4)
    scene.add_rod("rod", np.column_stack([x, 0 * x, 0 * x + 2.0]), fs.circular_section(0.002), STIFF)
    wheel = fs.Compound([fs.Piece(fs.Cylinder(0.03, 0.003)), fs.Piece(fs.Box((0.002, 0.002, 0.02)))])
    scene.add_rigid("wheel", wheel, density=1000.0, position=(0, 0, 0.5))
    with fs.Simulation(scene) as sim:  # a rod meets a part with a round piece at its nodes, however small others are
        of = {part.name: k for k, part in enumerate(scene.parts)}
        by = sim.stepper.contacts.by_faces
        assert by[of["wheel"], of["pad"]] and not by[of["wheel"], of["rod"]] and not by[of["two"], of["rod"]]
    with_plate = fs.Compound([*balls, fs.Piece(fs.Revolved([(0.0, 0.0), (0.005, 0.0)], 0.002))])
    scene.add_rigid("three", with_plate, density=1000.0, position=(0, 0, 0.1))
    with pytest.raises(fs.InputError, match="'three' has a Revolved; name parts that are made of Box, Mesh, Sphere"):
        scene.contact_by_faces("three")
    part: Part = scene.parts[-1]
    assert part.by_faces is None


def test_contacts_of_a_stick_with_a_wire_move_as_both_do_there() -> None:
    """The velocity of the stick's surface is v + w x r, that of the wire its centre line's, which is linear along it here."""
    scene, place = fs.Scene("stick", dt=1e-3, gravity=(0, 0, 0)), np.array([0.002, 0.0, 0.00499])
    x = np.linspace(-0.05, 0.05, 11)
    scene.add_rod("wire", np.column_stack([x, 0 * x, 0 * x]), fs.circular_section(0.002), STIFF)
    scene.add_rigid("stick", fs.Capsule(0.003, 0.02), density=1000.0, position=place, rotation=(0.1, 0.5 * np.pi, 0.0))
    scene.contact_by_faces("stick")
    with fs.Simulation(scene) as sim:
        stepper = sim.stepper
        found = stepper.contacts.detect(stepper.state, stepper.placed, [2e-3] * len(stepper.contacts.families))
        rows = stepper.contacts.rows(found, np.zeros(stepper.system.n), scene.dt)
        v = np.zeros(stepper.system.n)
        v[-6:] = (0.1, 0.2, 0.3, 2.0, -3.0, 5.0)
        still, rate = np.array([0.4, -0.3, 0.2]), np.array([5.0, 7.0, -6.0])
        links = v[:-6].reshape(-1, 6)
        links[:, :3] = still + np.outer(sim.points("wire")[:, 0], rate)
        (here,) = [one for one in found if len(one.contacts)]
        c = here.contacts
        side = (c.body == 1).argmax(axis=1)  # the wire is the first of both
        own = v[-6:-3] + np.cross(v[-3:], c.position[np.arange(len(c)), side] - place)
        on_wire = np.einsum(
            "mi,mic->mc", c.weight[np.arange(len(c)), 1 - side], here.points[c.point[np.arange(len(c)), 1 - side]]
        )
        own -= still + np.outer(on_wire[:, 0], rate)
        wanted = (1.0 - 2.0 * side)[:, None] * np.einsum("mij,mj->mi", c.frame, own)
        assert len(c) > 2
        np.testing.assert_allclose((rows.J @ v).reshape(-1, 3), wanted, atol=1e-12)
