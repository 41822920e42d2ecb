"""Cylinders and cones that are small beside the elements of a soft body: their sides, caps and rims meet its faces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from coarse_pads import add_pad
from scipy.spatial.transform import Rotation

import femsim as fs
from femsim.step.contact_family import Rates
from femsim.step.deforming_contacts import DeformingFamily
from meshes import make_tetmesh

G = 9.81
STIFF = fs.Elastic(3e7, 0.3, 1000.0, rayleigh_beta=2e-3, name="stiff")


@pytest.mark.parametrize(
    ("shape", "turned", "at"),
    [(fs.Cylinder(0.003, 0.012), (0, np.pi / 2, 0), (0.0037, 0.0021)), (fs.Cylinder(0.003, 0.012), (0.0, 1.6, 0.0), (0, 0)),
     (fs.Cylinder(0.0049, 0.006), (0, 0, 0), (0.0037, 0.0021)), (fs.Cylinder(0.0049, 0.006), (0, 0, 0), (0.0, 0.0)),
     (fs.Cylinder(0.012, 0.004), (np.pi, 0, 0), (0.0, 0.0))],
)  # fmt: skip
def test_it_lies_and_stands_between_and_on_nodes(shape: fs.Cylinder, turned: tuple[float, ...], at: tuple[float, float]) -> None:
    """Those of 6 and 10 mm fell through; nodes under a cap are behind it, and none of the round side's business."""
    scene = fs.Scene("lies", dt=0.005, duration=0.1)
    add_pad(scene, STIFF)
    turn = Rotation.from_rotvec(turned).as_matrix()
    height = shape.radius * np.sqrt(1.0 - turn[2, 2] ** 2) + shape.half_length * abs(turn[2, 2])
    scene.add_rigid("pin", shape, density=2000.0, position=(*at, height), rotation=turned)
    scene.sensor("pin", "pin")
    with fs.Simulation(scene) as sim:
        sim.step(60)
        rotation, place = sim.pose("pin")
        assert sim.verdict == "good"
        rest = shape.half_length if abs(turn[2, 2]) > 0.9 else shape.radius
        assert place == pytest.approx([*at, rest], abs=5e-5)
        assert sim.read("pin").force[2] == pytest.approx(G * sim.stepper.system.bodies[1].mass, rel=1e-3)
        assert abs(rotation[2, 2]) == pytest.approx(1.0 if rest == shape.half_length else 0.0, abs=2e-3)


@pytest.mark.parametrize("options", [{}, {"theta": 1.0}])
def test_one_that_slides_ends_rolling_at_two_thirds(options: dict[str, Any]) -> None:
    """Over the edges of the elements, as round as it is; a polygon of 16 corners would stop within half a turn."""
    scene = fs.Scene("rolls", dt=0.002, duration=0.2, default_friction=0.5, **options)
    add_pad(scene, STIFF)
    shape, turned = fs.Cylinder(0.005, 0.012), (np.pi / 2, 0, 0)
    scene.add_rigid("pin", shape, density=2000.0, position=(-0.03, 0.004, 0.005), rotation=turned, velocity=(0.3, 0.0, 0.0))
    with fs.Simulation(scene) as sim:
        sim.step(75)
        v, spin = sim.state.v[-6:-3], sim.state.v[-3:]
        assert sim.verdict == "good"
        assert v[0] == pytest.approx(0.2, rel=1e-2) and 0.005 * spin[1] == pytest.approx(v[0], rel=1e-2)
        assert sim.pose("pin")[1][0] > 0.0  # it has turned by a radian and more, over two edges and more diagonals
        assert abs(v[1]) < 2e-3 and sim.pose("pin")[1][2] == pytest.approx(0.005, abs=1e-5)


def test_the_gap_over_a_face_is_that_of_the_lowest_point_of_a_rim() -> None:
    """By hand, exactly so whether it lies, leans by little or much, or stands."""
    rng = np.random.default_rng(1)
    for k in range(40):
        radius, half = rng.uniform(0.001, 0.004), rng.uniform(0.001, 0.008)
        lean = (0.0, rng.uniform(-0.049, 0.049), 1.0, rng.uniform(0.06, 0.999))[k % 4]
        axis = np.array([np.sqrt(1.0 - lean**2), 0.0, lean])
        turn = Rotation.from_rotvec([0, 0, rng.uniform(0, 6)]) * Rotation.align_vectors([axis], [[0, 0, 1]])[0]
        lowest = radius * np.sqrt(1.0 - lean**2) + half * abs(lean)
        gap = rng.uniform(1e-5, 3e-4)
        scene = fs.Scene("gap", dt=0.005)
        scene.add_soft("block", fs.box_tets((0.1, 0.1, 0.02), 1), STIFF, position=(0, 0, -0.01))
        at = (*rng.uniform(-0.01, 0.01, 2), lowest + gap)
        scene.add_rigid("pin", fs.Cylinder(radius, half), density=1000.0, position=at, rotation=turn.as_rotvec())
        with fs.Simulation(scene) as sim:
            contacts, placed = sim.stepper.contacts, sim.stepper.placed
            near = [family.gaps(sim.state, placed, 1e-3) for family in contacts.families]
            found = min(float(one.gaps.min(initial=1.0)) for one in near)
        assert found == pytest.approx(gap, abs=1e-9)
        if k % 4 == 0:  # one contact at each end, one where it crosses a diagonal, and none of the polygons besides
            assert sum(len(one.gaps) for one in near) in (2, 3)


def test_a_rim_between_two_faces_is_measured_to_the_nearer_one() -> None:
    """Its point can be closest to one of them alone, here a floor or a wall; by hand."""
    rng = np.random.default_rng(2)
    for k in range(20):
        radius, half = rng.uniform(0.003, 0.006), rng.uniform(0.001, 0.004)
        axis = np.array([rng.uniform(0.2, 0.7), rng.uniform(-0.3, 0.3), rng.uniform(0.2, 0.7)])
        axis /= np.linalg.norm(axis)
        turn = Rotation.from_rotvec(rng.uniform(0, 6) * axis) * Rotation.align_vectors([axis], [[0, 0, 1]])[0]
        out = radius * np.sqrt(1.0 - axis**2) + half * axis
        gaps = (1e-4, 4e-4) if k % 2 else (4e-4, 1e-4)
        scene = fs.Scene("corner", dt=0.005)
        scene.add_soft("floor", fs.box_tets((0.1, 0.1, 0.02), 1), STIFF, position=(0, 0, -0.01))
        scene.add_soft("wall", fs.box_tets((0.02, 0.1, 0.1), 1), STIFF, position=(-0.01, 0, 0.05))
        scene.ignore_contact("floor", "wall")
        at = (out[0] + gaps[0], rng.uniform(-0.01, 0.01), out[2] + gaps[1])
        scene.add_rigid("pin", fs.Cylinder(radius, half), density=1000.0, position=at, rotation=turn.as_rotvec())
        with fs.Simulation(scene) as sim:
            near = [family.gaps(sim.state, sim.stepper.placed, 1e-3) for family in sim.stepper.contacts.families]
            found = min(float(one.gaps.min(initial=1.0)) for one in near)
        assert found == pytest.approx(1e-4, abs=1e-9)


def test_a_coin_that_leans_rolls_on_its_rim_as_on_a_floor() -> None:
    """On a polygon it lost a fifth of its speed within a turn; on a hard pad it goes as on the floor, which knows its rim."""
    ends, energies = [], []
    for soft in (False, True):
        scene = fs.Scene("coin", dt=0.002, duration=0.2, default_friction=0.8)
        if soft:
            add_pad(scene, STIFF)
        else:
            scene.add_floor()
        turned = Rotation.from_rotvec([0.1, 0, 0]) * Rotation.from_rotvec([np.pi / 2, 0, 0])
        height = 0.012 * np.cos(0.1) + 0.001 * np.sin(0.1)
        scene.add_rigid(
            "coin", fs.Cylinder(0.012, 0.001), density=5000.0, position=(-0.04, 0, height + 1e-6),
            rotation=turned.as_rotvec(), velocity=(0.4, 0, 0), angular_velocity=(0, 0.4 / 0.012, 0),
        )  # fmt: skip
        with fs.Simulation(scene) as sim:
            sim.step(90)
            assert sim.verdict == "good"
            ends.append(sim.pose("coin")[1])
            energies.append(0.5 * float(sim.state.v[-6:-3] @ sim.state.v[-6:-3]))
    assert ends[0][0] > 0.03
    assert ends[1][0] == pytest.approx(ends[0][0], abs=3e-4) and ends[1][1] == pytest.approx(ends[0][1], abs=1e-3)
    assert energies[1] == pytest.approx(energies[0], rel=1e-2)


def leaning_coin(spin: float) -> fs.Scene:
    """A coin that leans by 0.1 rad a hair above a pad, and turns about its axis, rad/s; no corner of its caps is lowest."""
    scene = fs.Scene("coin", dt=0.002)
    add_pad(scene, STIFF)
    turned = Rotation.from_rotvec([0.1, 0, 0]) * Rotation.from_rotvec([np.pi / 2, 0, 0]) * Rotation.from_rotvec([0, 0, 0.2])
    height = 0.012 * np.cos(0.1) + 0.001 * np.sin(0.1) + 1e-6
    scene.add_rigid(
        "coin", fs.Cylinder(0.012, 0.001), density=5000.0, position=(0.003, 0.001, height), rotation=turned.as_rotvec(),
        angular_velocity=tuple(spin * turned.as_matrix()[:, 2]),
    )  # fmt: skip
    return scene


def test_a_rim_that_is_led_on_stays_where_it_is_closest() -> None:
    """Its rows on the same features are those that are found, in the same place and where the coin has turned."""
    with fs.Simulation(leaning_coin(spin=30.0)) as sim:
        stepper, contacts, dt = sim.stepper, sim.stepper.contacts, sim.dt
        none, near = np.zeros(stepper.system.n), [5e-5] * len(contacts.families)
        rows = contacts.rows(contacts.detect(stepper.state, stepper.placed, near), none, dt)
        for there in (stepper.state, stepper.system.moved(stepper.state, sim.state.v, dt)):
            found = contacts.rows(contacts.detect(there, contacts.places.read(there), near), none, dt)
            led = contacts.on_same_features(rows, there, none, dt)
            assert led.J.shape[0] == 3
            np.testing.assert_allclose(led.J.toarray(), found.J.toarray(), atol=2e-6)  # levers differ by the gap


def test_rims_are_as_fast_as_their_circles() -> None:
    """The points that are closest go round them, and contacts are looked for as far as that takes them in a step."""
    with fs.Simulation(leaning_coin(spin=30.0)) as sim:
        stepper, v = sim.stepper, sim.state.v
        family = stepper.contacts.families[1]
        assert isinstance(family, DeformingFamily)
        speeds = family.speeds(stepper.placed, Rates(v, np.zeros(len(v))))
    pad, line, caps, *rims = range(5)
    np.testing.assert_allclose(speeds[pad, [line, caps, *rims]], 30.0 * 0.012 * np.array([0.0, 1.0, 1.0, 1.0]), atol=1e-9)


def test_the_round_side_does_not_press_what_lies_behind_a_cap() -> None:
    """A corner that leans to the axis has come through a cap by 0.1 mm, and is 3 mm behind the round side."""
    scene = fs.Scene("cap", dt=0.005)
    corners = np.array([(0.05, 0, 0), (3, 0, -0.4), (-0.5, 2, -1), (-0.5, -2, -1)]) * 0.02
    scene.add_soft("tip", make_tetmesh(corners, np.array([[0, 2, 1, 3]]), name="tip", source=""), STIFF)
    scene.add_rigid("pin", fs.Cylinder(0.004, 0.01), density=1000.0, position=(0.0, 0.0, 0.01 - 1e-4))
    with fs.Simulation(scene) as sim:
        near = [family.gaps(sim.state, sim.stepper.placed, 1e-4) for family in sim.stepper.contacts.families]
        assert min(float(one.gaps.min(initial=0.0)) for one in near) == pytest.approx(-1e-4, rel=1e-6)
        sim.step()
        assert sim.verdict == "good"


def test_a_collision_with_a_soft_block_keeps_momenta_and_makes_no_energy() -> None:
    rng, touched = np.random.default_rng(3), 0.0
    for _ in range(3):
        scene = fs.Scene("collide", dt=0.005, duration=0.3, gravity=(0, 0, 0), default_friction=0.4)
        rubber = fs.Elastic(2e5, 0.4, 1000.0)
        scene.add_soft("block", fs.box_tets((0.03, 0.03, 0.03), 2), rubber, rotation=rng.normal(size=3))
        spin = tuple(rng.normal(size=3) * 5.0)
        scene.add_rigid(
            "pin", fs.Cylinder(0.005, 0.01), density=2000.0, position=(*rng.uniform(-0.004, 0.004, 2), 0.045),
            rotation=rng.normal(size=3), velocity=(0.0, 0.0, -0.6), angular_velocity=spin,
        )  # fmt: skip
        with fs.Simulation(scene) as sim:
            soft, rigid = sim.stepper.system.bodies

            def momenta() -> tuple[np.ndarray, np.ndarray]:
                q, v, n = sim.state.q, sim.state.v, soft.n_v  # noqa: B023
                turns = np.cross(q[:n].reshape(-1, 3), soft.node_mass[:, None] * v[:n].reshape(-1, 3)).sum(axis=0)  # noqa: B023
                whole = soft.momentum(q[:n], v[:n]) + rigid.momentum(q[n:], v[n:])  # noqa: B023
                return whole, turns + rigid.angular_momentum(q[n:], v[n:])  # noqa: B023

            p, spins = momenta()
            energies = []
            for _ in range(40):
                sim.step()
                touched = max(touched, float(np.abs(sim.report.forces.force_sum).max()))
                energies.append(sim.row()["kinetic_energy_J"] + sim.row()["elastic_energy_J"])
            p_now, spins_now = momenta()
            assert sim.verdict == "good"
            assert np.abs(p_now - p).max() < 1e-12 and np.linalg.norm(spins_now - spins) < 1e-3 * np.linalg.norm(spins)
            assert np.diff(energies).max() < 1e-5 * max(energies)
    assert touched > 0.1


def test_a_block_balances_on_a_post_thinner_than_its_elements() -> None:
    """Which was refused: it would have passed between the nodes of its lower face, 20 mm apart."""
    scene = fs.Scene("post", dt=0.005, duration=0.1, default_friction=0.6)
    scene.add_obstacle("post", fs.Cylinder(0.004, 0.015), position=(0.003, 0.002, 0.015))
    rubber = fs.Elastic(1e5, 0.4, 1000.0, rayleigh_beta=2e-3, name="rubber")
    scene.add_soft("block", fs.box_tets((0.04, 0.04, 0.04), 2), rubber, position=(0.003, 0.002, 0.05))
    with fs.Simulation(scene) as sim:
        sim.step(60)
        assert sim.verdict == "good"
        assert 0.0297 < sim.points("block")[:, 2].min() < 0.03
        assert sim.points("block").mean(axis=0)[:2] == pytest.approx([0.003, 0.002], abs=1e-3)


def test_a_bolt_lies_on_its_head_and_the_end_of_its_shaft() -> None:
    """Two cylinders of one part; its tilt by hand. Its head is 8 mm across, its shaft 4, the elements 10."""
    scene = fs.Scene("bolt", dt=0.005, duration=0.1, default_friction=0.5)
    add_pad(scene, STIFF)
    head, shaft = fs.Cylinder(0.004, 0.0015), fs.Cylinder(0.002, 0.01)
    bolt = fs.Compound([fs.Piece(head, position=(0, 0, 0.0115)), fs.Piece(shaft)])
    lean = np.arctan(0.1)  # the rim of the head is 2 mm further out than that of the end, 20 mm away
    scene.add_rigid("bolt", bolt, density=2000.0, position=(0.003, 0.001, 0.0036), rotation=(0, np.pi / 2 - lean, 0))
    with fs.Simulation(scene) as sim:
        sim.step(200)
        rotation, place = sim.pose("bolt")
        axis = rotation[:, 2]
        place = place + rotation @ scene.parts[-1].shapes[1][2]  # from the centre of mass to the middle of the shaft
        lowest = [place[2] + z * axis[2] - r * np.hypot(axis[0], axis[1]) for z, r in ((0.01, 0.004), (-0.01, 0.002))]
        assert sim.verdict == "good" and lowest == pytest.approx([0.0, 0.0], abs=1e-5)


@pytest.mark.parametrize(("shape", "turned"), [(fs.Cone(0.004, 0.008), False), (fs.Cone(0.006, 0.006, 0.003), True)])
def test_a_small_cone_stands_on_its_base_and_lies_on_its_side(shape: fs.Cone, turned: bool) -> None:
    """As a pyramid, or a frustum of one, of 24 sides: the heights of its centre by hand. Between nodes it fell through."""
    scene = fs.Scene("cone", dt=0.005, duration=0.1, default_friction=0.5)
    add_pad(scene, STIFF)
    angle = np.arctan((shape.radius - shape.top) / (2.0 * shape.half_length)) if turned else 0.0
    lies = 0.5 * (shape.radius + shape.top) * np.cos(angle)
    height = lies if turned else shape.half_length
    axis = (0.0, np.pi / 2 + angle, 0.0) if turned else (0.0, 0.0, 0.0)
    scene.add_rigid("cone", shape, density=2000.0, position=(0.0, 0.0, height), rotation=axis)
    with fs.Simulation(scene) as sim:
        sim.step(80)
        rotation, place = sim.pose("cone")
        middle = place + rotation @ scene.parts[-1].shapes[0][2]  # from the centre of mass
        assert sim.verdict == "good"
        assert middle[2] == pytest.approx(height, abs=0.009 * shape.radius + 2e-5)
        assert abs(rotation[2, 2]) == pytest.approx(np.sin(angle) if turned else 1.0, abs=2e-2)


@pytest.mark.parametrize("free", [False, True])
def test_what_stands_on_a_cap_beside_its_middle_is_not_beside_the_round_side(free: bool) -> None:
    """The middle of the cap is beside the block, 20 mm from its side and 30 within the radius: it was refused, or blown away."""
    scene = fs.Scene("plate", dt=0.005, duration=0.1, default_friction=0.2)
    scene.add_obstacle("plate", fs.Cylinder(0.05, 0.0025), position=(0, 0, -0.0025))
    rubber = fs.Elastic(1e5, 0.4, 1000.0, rayleigh_beta=2e-3, name="rubber")
    start, speed = (0.005, 0.3) if free else (0.03, 0.0)
    scene.add_soft(
        "block", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=(start, 0, 0.01), velocity=(speed, 0, 0)
    )  # fmt: skip
    with fs.Simulation(scene) as sim:
        sim.step(50)
        assert sim.verdict == "good"
        assert sim.points("block").mean(axis=0) == pytest.approx(
            [start + speed**2 / (2.0 * 0.2 * G), 0.0, 0.01], abs=3e-4
        )  # fmt: skip
