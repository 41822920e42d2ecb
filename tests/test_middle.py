"""Contacts that follow the bodies within an energy-momentum step: the angular momentum of bodies that collide, and the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import Detector, PointContacts
from contact.solvers import make_solver
from femsim.model.bodies.soft import SoftBody
from femsim.step.contact_family import matched
from femsim.step.following import PATIENCE, STAYING, Following
from femsim.step.newton import solve_step
from femsim.step.rows_kernels import turn_frames
from femsim.step.stepper import Stepper

DT = 0.01


def rubber(young: float = 1e5) -> fs.Elastic:
    return fs.Elastic(young, 0.3, 1000.0, name="rubber")


def add(scene: fs.Scene, kind: str, name: str, **where: Any) -> None:
    if kind == "soft":
        scene.add_soft(name, fs.ball_tets(0.03, 4), rubber(), **where)
    elif kind == "sphere":
        scene.add_rigid(name, fs.Sphere(0.03), mass=0.1, **where)
    elif kind == "box":
        scene.add_rigid(name, fs.Box((0.03, 0.025, 0.02)), mass=0.1, **where)
    else:
        points = np.column_stack([np.zeros(9), np.linspace(-0.05, 0.05, 9), np.zeros(9)]) + where.pop("position")
        scene.add_rod(name, points, fs.circular_section(0.02), rubber(1e6), contact="surface", **where)


def collision(one: str, other: str, friction: float, **options: Any) -> Stepper:
    """Two bodies that meet off centre at 2 m/s, without gravity; the first one turns."""
    scene = fs.Scene("collision", dt=DT, gravity=(0, 0, 0), default_friction=friction, **options)
    add(scene, one, "a", position=(0.0, 0.0, 0.0), velocity=(1.0, 0, 0), angular_velocity=(0, 0, 3.0))
    add(scene, other, "b", position=(0.062, 0.02, 0.003), velocity=(-1.0, 0, 0))
    return Stepper(scene, make_solver("auto"))


def momenta(stepper: Stepper) -> tuple[np.ndarray, np.ndarray]:
    """Linear and angular momentum of all bodies, (3,) kg m/s and kg m2/s."""
    p, spin, state = np.zeros(3), np.zeros(3), stepper.state
    for body, q, v in zip(stepper.system.bodies, stepper.system.q_slices, stepper.system.v_slices, strict=True):
        p += body.momentum(state.q[q], state.v[v])
        if isinstance(body, SoftBody):
            spin += np.cross(state.q[q].reshape(-1, 3), body.node_mass[:, None] * state.v[v].reshape(-1, 3)).sum(axis=0)
        else:
            spin += body.angular_momentum(state.q[q], state.v[v])  # type: ignore[attr-defined]
    return p, spin


# ------------------------------------------------------------------ momentum


@pytest.mark.parametrize(
    ("one", "other", "friction", "kept"),
    [("sphere", "sphere", 0.5, 1e-7), ("sphere", "sphere", 0.0, 1e-7), ("box", "box", 0.5, 1e-6), ("sphere", "soft", 0.5, 1e-6),
     ("soft", "soft", 0.5, 2e-4), ("soft", "soft", 0.0, 1e-5)],
)  # fmt: skip
def test_bodies_that_collide_keep_their_angular_momentum(one: str, other: str, friction: float, kept: float) -> None:
    """With the contacts of the start it changed by 2 to 8 %; friction of soft on soft acts on points that are a gap apart."""
    stepper = collision(one, other, friction, nonlinear_tolerance=1e-8, max_solves=60)
    p, spin = momenta(stepper)
    pressed = 0.0
    for _ in range(8):
        report = stepper.step()
        pressed = max(pressed, float(report.forces.force_sum.max()))
        assert report.solution.converged and report.wrench_balance < 1e-6
    p_now, spin_now = momenta(stepper)
    assert pressed > 1.0
    assert np.linalg.norm(spin_now - spin) < kept * np.linalg.norm(spin) and np.abs(p_now - p).max() < 1e-8


@pytest.mark.parametrize(
    ("dt", "speed", "friction", "kept"),
    [(0.01, 1.0, 0.0, 1e-4), (0.005, 1.0, 0.0, 1e-4), (0.002, 0.5, 0.0, 1e-4), (0.01, 1.0, 0.5, 2e-4)],
)
def test_edges_that_slide_past_each_other_keep_the_angular_momentum(
    dt: float, speed: float, friction: float, kept: float
) -> None:
    """Half-way they cross no more; with the points and the normal of the start the bodies lost 3.0, 2.4, 0.4 and 0.8 %.

    In the last case contacts find no place twice, but not in a row; fixed after the second time, they took 0.1 %.
    """
    scene = fs.Scene("collision", dt=dt, gravity=(0, 0, 0), default_friction=friction)
    for name, place, sign in (("a", (0.0, 0.0, 0.0), 1), ("b", (0.062, 0.02, 0.003), -1)):
        spin = (0, 0, 3.0 * speed if sign > 0 else 0.0)
        scene.add_soft(
            name, fs.ball_tets(0.03, 4), rubber(2e5), position=place, velocity=(sign * speed, 0, 0), angular_velocity=spin
        )
    stepper = Stepper(scene, make_solver("auto"))
    p, spin = momenta(stepper)
    for _ in range(round(0.024 / speed / dt)):
        assert stepper.step().solution.converged
    p_now, spin_now = momenta(stepper)
    assert np.abs(p_now - p).max() < 1e-8 and abs(p_now[0]) < 1e-3
    assert np.linalg.norm(spin_now - spin) < kept * np.linalg.norm(spin)


@pytest.mark.parametrize("other", ["rigid", "soft"])
def test_bodies_that_meet_slowly_keep_their_angular_momentum(other: str) -> None:
    """In a step they go 15 um, a 60th of the margin; levers of the start took 1.4e-4 and 3e-4."""
    scene = fs.Scene("meeting", dt=0.005, gravity=(0, 0, 0), default_friction=0.5, nonlinear_tolerance=1e-9)
    place = (0.0402, 0.012, 0.0)
    scene.add_rigid("ball", fs.Sphere(0.02), mass=0.1, velocity=(0.003, 0.0, 0.0), angular_velocity=(0.0, 0.0, 0.15))
    if other == "rigid":
        scene.add_rigid("box", fs.Box((0.02, 0.03, 0.02)), mass=0.1, position=place)
    else:
        scene.add_soft("box", fs.box_tets((0.04, 0.06, 0.04), (3, 4, 3)), rubber(1e4), position=place)
    stepper = Stepper(scene, make_solver("exact"))
    _, spin = momenta(stepper)
    pressed = max(stepper.step().forces.force_sum.max() for _ in range(60))
    assert pressed > 1e-3 and np.linalg.norm(momenta(stepper)[1] - spin) < 1e-6 * np.linalg.norm(spin)


def test_contacts_that_stay_on_their_features_keep_the_angular_momentum(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if residuals never fell while contacts were found again. With the rows of one place the bodies lost 3 %."""
    monkeypatch.setattr("femsim.step.stepper.PATIENCE", 0)
    stepper = collision("soft", "soft", 0.0)
    _, spin = momenta(stepper)
    pressed = 0
    for _ in range(8):
        report = stepper.step()
        pressed += report.forces.force_sum.max() > 1.0
        assert report.solution.converged
    assert pressed > 1 and np.linalg.norm(momenta(stepper)[1] - spin) < 1e-3 * np.linalg.norm(spin)


def test_forces_that_are_reported_change_the_momentum_of_each_body() -> None:
    """Force and torque, though they act at the middle of the step and at its end."""
    stepper = collision("sphere", "box", 0.5, nonlinear_tolerance=1e-8)
    system = stepper.system
    turned = 0.0
    for _ in range(6):
        old = stepper.state
        report = stepper.step()
        for k, (body, q, v) in enumerate(zip(system.bodies, system.q_slices, system.v_slices, strict=True)):
            gained = body.momentum(stepper.state.q[q], stepper.state.v[v]) - body.momentum(old.q[q], old.v[v])
            wrench = report.forces.wrench[k]
            assert gained == pytest.approx(DT * wrench[:3], abs=1e-9)
            about = np.cross(report.contacts.reference[k], gained)  # the torque is about where the body is in the middle
            spin = body.angular_momentum(stepper.state.q[q], stepper.state.v[v]) - body.angular_momentum(old.q[q], old.v[v])
            assert spin - about == pytest.approx(DT * wrench[3:], abs=2e-8)
            turned = max(turned, float(np.abs(spin).max()))
    assert turned > 1e-4


@pytest.mark.parametrize("other", ["rod", "box", "faces of a box"])
def test_the_torque_on_a_rod_is_about_where_the_force_acts(other: str) -> None:
    """On its centre line: friction at its surface, which turns no link, read as radius times force about its axis too."""
    scene = fs.Scene("across", dt=0.005, duration=0.04, gravity=(0, 0, 0), nonlinear_tolerance=1e-11)
    line, section = np.linspace(-0.05, 0.05, 9)[:, None], fs.circular_section(0.006)
    if other == "rod":
        scene.add_rod("other", line * [1.0, 0.0, 0.0], section, rubber(1e6))
    else:
        scene.add_rigid("other", fs.Box((0.05, 0.03, 0.005)), mass=0.02, position=(0, 0, 0.001))
        scene.contact_by_faces("other", on=other != "box")
    scene.add_rod("rod", line * [0.0, 1.0, 0.0] + [0, 0.003, 0.0125], section, rubber(1e6), velocity=(0.3, 0.1, -0.5))
    for part, partner in (("other", "rod"), ("rod", "other")):
        scene.sensor(part, part)
        scene.sensor(f"{part} by its partner", part, partner=partner)
    spins = [np.zeros((2, 3))]

    def keep(stepper: Stepper, report: Any) -> None:
        system, q, v = stepper.system, stepper.state.q, stepper.state.v
        each = zip(system.bodies, system.q_slices, system.v_slices, stepper.placed.reference, strict=True)
        spins.append(
            np.array(
                [
                    body.angular_momentum(q[own], v[rows]) - np.cross(centre, body.momentum(q[own], v[rows]))  # type: ignore[attr-defined]
                    for body, own, rows, centre in each
                ]
            )
        )

    run = fs.simulate(scene, on_step=keep)
    turned = np.diff(spins, axis=0) / 0.005
    assert run.status == "converged" and np.abs(turned[:, :, 1]).max() > 5e-4
    for k, part in enumerate(("other", "rod")):
        for name in (part, f"{part} by its partner"):
            np.testing.assert_allclose(run.sensors[name].torque, turned[:, k], atol=1e-9)


@pytest.mark.parametrize("restitution", [0.0, 0.7])
@pytest.mark.parametrize("belt", [0.0, 1.0])
def test_the_torque_on_a_ball_that_lands_is_what_turns_it(belt: float, restitution: float) -> None:
    """Also where all moves along with the floor; it was about one place for a ball that flies on within the step."""
    scene = fs.Scene("landing", dt=0.005, duration=0.1)
    scene.add_rigid("ball", fs.Sphere(0.02), mass=0.1, position=(0, 0, 0.04), velocity=(1.0 + belt, 0, 0))
    scene.add_rigid("floor", fs.Box((1.0, 1.0, 0.1)), mass=1.0, position=(0, 0, -0.1))
    scene.drive("floor", lambda t: (np.array([belt * t, 0.0, 0.0]), np.zeros(3)))
    scene.set_friction("ball", "floor", 0.1)
    scene.set_restitution("ball", "floor", restitution)
    scene.sensor("ball", "ball")
    spins = [np.zeros(3)]
    run = fs.simulate(scene, on_step=lambda stepper, report: spins.append(stepper.state.v[3:6].copy()))
    torque = 0.4 * 0.1 * 0.02**2 * np.diff(spins, axis=0) / 0.005
    assert run.status == "converged" and np.abs(torque).max() > 0.02
    np.testing.assert_allclose(run.sensors["ball"].torque, torque, atol=1e-6)


@pytest.mark.parametrize("restitution", [0.0, 0.7])
@pytest.mark.parametrize("more", [False, True])
def test_a_hinge_bears_no_torque_about_its_axis_where_its_ball_lands(more: bool, restitution: float) -> None:
    """The wheel of a cart lands as it flies on: its axle runs through its middle, and what hangs on it by another hinge too."""
    ball = fs.RobotLink.solid("ball", fs.Piece(fs.Sphere(0.02)), 0.1)
    joints = [fs.RobotJoint("axle", "cart", "ball", axis=(0, 1, 0), position=(0, 0, -0.05))]
    links = [fs.RobotLink.solid("cart", fs.Piece(fs.Box((0.03, 0.01, 0.01))), 0.2), ball]
    if more:
        links.append(fs.RobotLink("hub", 0.05, inertia=np.diag([1e-5, 1e-5, 1e-5])))
        joints.append(fs.RobotJoint("hub", "ball", "hub", axis=(1, 0, 0)))
    scene = fs.Scene("landing", dt=0.005, duration=0.15)
    scene.add_robot(fs.Robot("cart", links, joints), base="free", position=(0, 0, 0.1), velocity=(1.0, 0, 0))
    floor = scene.add_floor()
    scene.set_friction("cart", floor, 0.1)
    scene.set_restitution("cart", floor, restitution)
    scene.sensor("axle", "cart.ball", kind="joint")
    scene.sensor("ball", "cart.ball")
    run = fs.simulate(scene)
    assert run.status == "converged" and np.abs(run.sensors["ball"].torque[:, 1]).max() > 0.05
    assert np.abs(run.sensors["axle"].torque[:, 1]).max() < 1e-5


@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_contacts_of_parts_of_a_body_that_lands_add_up_to_what_turns_it(restitution: float) -> None:
    """Contacts that a sensor chooses act at the end of the step too; they were taken half-way: 0.07 of 0.47 N m too little."""
    scene = fs.Scene("landing", dt=0.005, duration=0.08)
    fast = {"velocity": (10.0, 0, -2.0), "angular_velocity": (0, 20.0, 5.0)}
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0, 0, 0.06), rotation=(0.3, 0.5, 0.2), **fast)
    floor = scene.add_rigid("floor", fs.Box((1.0, 0.5, 0.1)), mass=1.0, position=(0.4, 0, -0.1))
    scene.set_friction(box, floor, 0.3)
    scene.set_restitution(box, floor, restitution)
    scene.sensor("with floor", box, partner=floor)
    scene.sensor("front", box, where=lambda points: points[:, 0] > 0.0)
    scene.sensor("back", box, where=lambda points: points[:, 0] <= 0.0)
    spins = []

    def keep(stepper: Stepper, report: Any) -> None:
        own, q, v = stepper.system.bodies[0], stepper.state.q[:7], stepper.state.v[:6]
        spins.append(own.angular_momentum(q, v) - np.cross(q[:3], own.momentum(q, v)))  # type: ignore[attr-defined]

    run = fs.simulate(scene, on_step=keep)
    turned, front, back = np.diff(spins, axis=0) / 0.005, run.sensors["front"].torque, run.sensors["back"].torque
    assert run.status == "converged" and np.abs(turned).max() > 0.2
    for torque in (run.sensors["with floor"].torque, front + back):
        np.testing.assert_allclose(torque[1:], turned, atol=1e-4)


def test_a_hinge_bears_no_torque_about_its_axis_where_what_hangs_on_it_turns_fast() -> None:
    """Weight acts half-way through the step: at 20 rad/s where it ends made 3.2e-3 N m, of 0.025 that the arm weighs."""
    wheel, arm = (
        fs.RobotLink.solid("wheel", fs.Piece(fs.Sphere(0.02)), 0.1),
        fs.RobotLink("arm", 0.05, (0.05, 0, 0), np.eye(3) * 2e-5),
    )
    joints = [fs.RobotJoint("axle", "base", "wheel", axis=(0, 1, 0)), fs.RobotJoint("arm", "wheel", "arm", axis=(1, 0, 0))]
    scene = fs.Scene("turning", dt=DT, duration=0.2)
    scene.add_robot(fs.Robot("robot", [fs.RobotLink("base", 1.0, inertia=np.eye(3)), wheel, arm], joints), speeds={"axle": 20.0})
    scene.sensor("axle", "robot.wheel", kind="joint")
    torque = fs.simulate(scene).sensors["axle"].torque[:, 1]
    assert np.abs(torque).max() < 4e-4


@pytest.mark.parametrize("dt", [0.005, "auto"])
@pytest.mark.parametrize("carried", ["joined", "rod"])
def test_an_axle_bears_no_torque_about_itself_where_its_wheel_lands_with_what_it_carries(carried: str, dt: float | str) -> None:
    """The wheel flies on and spins as it lands: joints pulled half-way at levers of the end, 24 and 3 % of what they bore."""
    ball = fs.RobotLink.solid("ball", fs.Piece(fs.Sphere(0.02)), 0.1)
    axle = fs.RobotJoint("axle", "cart", "ball", axis=(0, 1, 0), position=(0, 0, -0.05))
    cart = fs.Robot("cart", [fs.RobotLink.solid("cart", fs.Piece(fs.Box((0.03, 0.01, 0.01))), 0.2), ball], [axle])
    scene = fs.Scene("landing", dt=dt, duration=0.05, dt_bounds=(1e-4, 1e-2))
    scene.add_robot(cart, base="free", position=(0, 0, 0.1), velocity=(5.0, 0, -1.0), speeds={"axle": 20.0})
    floor = scene.add_floor(0.02)
    if carried == "joined":
        spun = {"velocity": (5.0, 0, -1.6), "angular_velocity": (0, 20.0, 0)}
        scene.add_rigid("load", fs.Box((0.005, 0.005, 0.005)), mass=0.03, position=(0.03, 0, 0.05), **spun)
        scene.join("load", "cart.ball", at=(0.02, 0, 0.05))
    else:
        section, end = fs.circular_section(0.002), fs.RodEnd("clamped", on="cart.ball")
        spun = {"velocity": (5.0, 0, -2.2), "angular_velocity": (0, 20.0, 0)}
        scene.add_rod("load", np.linspace((0.0195, 0, 0.05), (0.0995, 0, 0.05), 9), section, rubber(5e6), start=end, **spun)
    scene.ignore_contact("load", "cart")
    scene.ignore_contact("load", floor)
    scene.set_friction("cart", floor, 0.1)
    scene.set_restitution("cart", floor, 0.7)
    scene.sensor("axle", "cart.ball", kind="joint")
    run = fs.simulate(scene)
    assert run.status == "converged" and np.abs(run.sensors["axle"].force).max() > 30.0
    assert np.abs(run.sensors["axle"].torque[:, 1]).max() < (6e-5 if carried == "joined" else 1e-6)


@pytest.mark.parametrize("hand", [False, True])
def test_a_hold_turns_what_hits_the_nodes_that_it_holds(hand: bool) -> None:
    """A plate turns about the middle of its held side, which a ball hits: 0.005 of 0.45 N m were missing."""
    scene = fs.Scene("hit", dt=0.005, duration=0.03)
    plate = scene.add_soft("plate", fs.box_tets((0.08, 0.02, 0.01), (4, 1, 1)), rubber(3e5), position=(0, 0, 0.06))
    low = float(scene.bodies[0].initial_q().reshape(-1, 3)[:, 2].min())
    turn = fs.Motion([0.0, 0.3], [(0, 0, 0), (0, 0, 0)], [(0, 0, 0), (0, -4.5, 0)], smooth=False)

    def held(points: np.ndarray) -> np.ndarray:
        return np.asarray(points[:, 2] < low + 1e-6)

    ball = scene.add_rigid("ball", fs.Sphere(0.02), mass=0.05, position=(-0.03, 0.002, low - 0.03), velocity=(0, 0, 1.0))
    if hand:
        driven = scene.add_rigid("hand", fs.Box((0.02, 0.02, 0.005)), mass=0.3, position=(0, 0, low))
        scene.ignore_contact(driven, plate)
        scene.ignore_contact(driven, ball)
        scene.drive(driven, turn)
        scene.hold(plate, held, on=driven, name="hold")
    else:
        scene.hold(plate, held, turn, name="hold")
    scene.set_friction(plate, ball, 0.4)
    scene.sensor("turned", "hand" if hand else "hold", kind="mount")
    scene.sensor("ball", ball)
    middle, spins = np.array([0.0, 0.0, low]), []

    def keep(stepper: Stepper, report: Any) -> None:
        spin, weight = np.zeros(3), np.zeros(3)
        for body, q, v in zip(stepper.system.bodies, stepper.system.q_slices, stepper.system.v_slices, strict=True):
            x, u = stepper.state.q[q], stepper.state.v[v]
            if isinstance(body, SoftBody):
                spin += np.cross(x.reshape(-1, 3) - middle, body.node_mass[:, None] * u.reshape(-1, 3)).sum(axis=0)
            else:
                spin += body.angular_momentum(x, u) - np.cross(middle, body.momentum(x, u))  # type: ignore[attr-defined]
            weight += np.cross(body.centre_of_mass(x) - middle, body.mass * scene.gravity)
        spins.append((spin, weight))

    run = fs.simulate(scene, on_step=keep)
    spin, weight = (np.array(each) for each in zip(*spins, strict=True))
    turned = np.diff(spin, axis=0) / 0.005 - 0.5 * (weight[1:] + weight[:-1])
    assert run.status == "converged" and np.abs(run.sensors["ball"].force).max() > 5.0 and np.abs(turned).max() > 0.3
    np.testing.assert_allclose(run.sensors["turned"].torque[1:], turned, rtol=0, atol=5e-5)


@pytest.mark.parametrize("dt", [0.005, 0.01, "auto"])
def test_a_motor_exerts_what_its_joint_bears_where_a_link_behind_is_hit(dt: float | str) -> None:
    """The tip swings on: with levers half-way, or of the last of some sub-steps, the joint read 0.01 to 0.2 beside 0.27 N m."""
    tip = fs.RobotLink("tip", 0.05, (0.1, 0, 0), np.eye(3) * 1e-5, (fs.Piece(fs.Sphere(0.02), (0.1, 0, 0)),))
    links = [fs.RobotLink("base", 1.0, inertia=np.eye(3)), fs.RobotLink("hub", 0.1, inertia=np.eye(3) * 4e-5), tip]
    axes = {"axis": (0, 1, 0)}
    joints = [fs.RobotJoint("motor", "base", "hub", **axes), fs.RobotJoint("free", "hub", "tip", position=(0.05, 0, 0), **axes)]
    scene = fs.Scene("hit", dt=dt, duration=0.08, gravity=(0, 0, 0))  # type: ignore[arg-type]
    arm = scene.add_robot(fs.Robot("arm", links, joints), speeds={"motor": 8.0})
    fast = {"velocity": (0, 0, 2.0), "angular_velocity": (0, 20.0, 0)}
    ball = scene.add_rigid("ball", fs.Sphere(0.03), mass=0.2, position=(0.13, 0, -0.08), **fast)
    scene.drive_joint(arm, "motor", motion=lambda t: 8.0 * t)
    scene.set_friction(arm, ball, 0.3)
    scene.set_restitution(arm, ball, 0.7)
    scene.sensor("motor", "arm.motor", kind="revolute")
    scene.sensor("joint", "arm.motor", kind="joint")
    run = fs.simulate(scene)
    torque = run.gauges["motor"].values["torque_Nm"]
    assert run.status == "converged" and np.abs(torque).max() > 0.2
    np.testing.assert_allclose(run.sensors["joint"].torque[1:, 1], torque[1:], atol=1e-3)


def test_only_the_energy_momentum_step_follows() -> None:
    """Backward Euler and one linearisation a step keep the contacts of the start where rigid bodies only slide, as before."""
    for options in ({"theta": 1.0}, {"theta": 0.5}, {"nonlinear_tolerance": None}):
        stepper = collision("sphere", "sphere", 0.5, **options)
        for _ in range(4):
            problem = stepper.step().contacts
        assert np.isfinite(problem.position).all() and not stepper.follows


# ------------------------------------------------------------------ rows


def rows_of(stepper: Stepper) -> tuple[Any, Any]:
    """Rows of the contacts of a state within 30 mm, and where its velocity leads in half a step."""
    contacts, state = stepper.contacts, stepper.state
    found = contacts.detect(state, contacts.places.read(state), [0.03] * len(contacts.families))
    rows = contacts.rows(found, np.zeros(stepper.system.n), DT)
    return rows, stepper.system.moved(state, state.v, 0.5 * DT)


def rotation_of_all(stepper: Stepper, state: Any, spin: np.ndarray) -> np.ndarray:
    """Velocity of all bodies that turn about the origin as one."""
    v = np.zeros(stepper.system.n)
    for body, q, own in zip(stepper.system.bodies, stepper.system.q_slices, stepper.system.v_slices, strict=True):
        if isinstance(body, SoftBody):
            v[own] = np.cross(spin, state.q[q].reshape(-1, 3)).ravel()
        else:
            poses = state.q[q].reshape(-1, 7)
            v[own] = np.column_stack([np.cross(spin, poses[:, :3]), np.tile(spin, (len(poses), 1))]).ravel()
    return v


@pytest.mark.parametrize(("one", "other"), [("sphere", "sphere"), ("box", "box"), ("sphere", "soft"), ("soft", "soft"),
                                            ("rod", "soft"), ("rod", "rod"), ("rod", "sphere")])  # fmt: skip
def test_bodies_that_turn_as_one_slide_nowhere(one: str, other: str) -> None:
    """So forces on them have no moment in sum; two points of soft bodies apart by a gap move along each other by gap x spin."""
    stepper = collision(one, other, 0.5)
    rows, there = rows_of(stepper)
    moved = stepper.contacts.moved(rows, there, np.zeros(stepper.system.n), DT, middle=True)
    assert len(rows.phi) > 0 and np.abs(moved.J - rows.J).max() > 1e-3
    v = rotation_of_all(stepper, there, np.array([3.0, -5.0, 2.0]))
    u = (moved.J @ v).reshape(-1, 3)
    before = rows.J @ v
    if (one, other) == ("soft", "soft"):
        found = stepper.contacts.detect(there, stepper.contacts.places.read(there), [0.03] * 2)[1].contacts
        seen = np.isin(rows.families[1].key, found.key)
        assert seen.any() and np.abs(u[seen, 0]).max() < 1e-12
        gap = np.abs(u[:, 1:]).max(axis=1) / np.linalg.norm([3.0, -5.0, 2.0])
        assert (gap[seen] < 0.05).all()
    else:
        assert np.abs(u).max() < 1e-12
    assert np.abs(before).max() > 1e-3


def test_where_nothing_moved_rows_are_the_same() -> None:
    stepper = collision("sphere", "soft", 0.5)
    rows, _ = rows_of(stepper)
    for middle in (True, False):
        same = stepper.contacts.moved(rows, stepper.state, np.zeros(stepper.system.n), DT, middle=middle)
        assert np.abs(same.J - rows.J).max() < 1e-12 and np.abs(same.phi - rows.phi).max() < 1e-12


@pytest.mark.parametrize("theta", [None, 1.0])
def test_a_driven_base_that_turns_carries_what_lies_on_it(theta: float | None) -> None:
    """By the chord of its turn, whether rows stay as at the start or are those of the middle, where nodes are on the chord."""
    scene = fs.Scene("turntable", dt=DT, theta=theta)
    table = scene.add_rigid("table", fs.Box((0.1, 0.1, 0.01)), mass=1.0, position=(0, 0, -0.01))
    scene.drive(table, fs.Motion([0.0, 1.0], np.zeros((2, 3)), [(0, 0, 0), (0, 0, 10.0)], smooth=False))
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 1), rubber(), position=(0.06, 0.0, 0.0101))
    stepper = Stepper(scene, make_solver("auto"))
    angle, turn = 10.0 * DT, np.zeros(stepper.system.n)
    turn[5] = 10.0 if theta else 2.0 * np.tan(0.5 * angle) / DT  # an energy-momentum step turns by Cayley's map
    contacts, state = stepper.contacts, stepper.state
    stepper.system.assemble(state, stepper.settings, turn)
    found = contacts.detect(state, contacts.places.read(state), [1e-3] * len(contacts.families))
    rows, stay = (contacts.rows(found, turn, DT, stay=stay) for stay in (False, True))
    half, whole = (Rotation.from_rotvec([0, 0, part * angle]).as_matrix() for part in (0.5, 1.0))
    q = state.q.copy()
    q[stepper.system.q_slices[1]] = (q[stepper.system.q_slices[1]].reshape(-1, 3) @ (0.5 * (np.eye(3) + whole)).T).ravel()
    q[3:7] = Rotation.from_matrix(half).as_quat(scalar_first=True)
    moved = contacts.moved(rows, replace(state, q=q), turn, DT, middle=True)
    own = rows.families[0]
    place = own.found.contacts.position[own.keep] - np.array([0, 0, -0.01])
    way = place @ (whole - np.eye(3)).T / DT
    for one in (stay, moved) if theta else (moved,):
        there = np.einsum("mic,mc->mi", one.families[0].frame, -way)
        assert one.surface == pytest.approx(there, abs=1e-9)
    # at the start and at the end its surface goes the way it goes then
    end = contacts.moved(moved, replace(state, q=q), turn, DT, middle=False)
    for one, then in (rows, place), (end, place @ (0.5 * (np.eye(3) + whole)).T):
        assert one.surface == pytest.approx(np.einsum("mic,mc->mi", one.families[0].frame, -np.cross(turn[3:6], then)), abs=1e-9)


def test_contacts_are_found_again_where_a_pair_has_more_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a thread other ones are kept at the middle: those of the start have the normals of their places all the same.

    They are looked for among their own points, 30 of the thousand that are near.
    """
    few, all_of_them = (
        Stepper(fs.load_scene("bolt_nut", most_per_pair=most, duration=0.1), make_solver("auto")) for most in (30, 10**6)
    )
    state, nothing = few.state, np.zeros(6)

    def rows(stepper: Stepper, at: Any) -> Any:
        found = stepper.contacts.detect(at, stepper.contacts.places.read(at), [1e-3])
        return stepper.contacts.rows(found, nothing, DT).families[0]

    q = state.q.copy()
    angle = 0.1
    q[2] += 0.005 * angle / (2.0 * np.pi)
    q[3:7] = Rotation.from_rotvec([0.0, 0.0, angle]).as_quat(scalar_first=True)
    there = replace(state, q=q)
    start = few.contacts.rows(few.contacts.detect(state, few.placed, [1e-3]), nothing, DT)
    seen: list[int] = []

    def counted(detector: Detector, *args: Any, **options: Any) -> PointContacts:
        seen.append(len(found := detect(detector, *args, **options)))
        return found

    detect = Detector.detect_placed
    monkeypatch.setattr(Detector, "detect_placed", counted)
    own, fresh = few.contacts.moved(start, there, nothing, DT, middle=True).families[0], rows(all_of_them, there)
    assert seen[0] < 60 < 500 < seen[1]
    place = matched(own.key, fresh.key)
    stay = place >= 0  # one is outside the end of the nut there, through which its thread goes
    assert len(own.key) == 30 and stay.sum() == 29 and (matched(own.key, rows(few, there).key) < 0).sum() > 1
    same_way = stay & (np.einsum("mc,mc->m", fresh.frame[place, 0], start.families[0].frame[:, 0]) > 0.0)
    assert same_way.sum() > 25
    np.testing.assert_allclose(own.frame[same_way, 0], fresh.frame[place[same_way], 0], rtol=0, atol=1e-12)


# ------------------------------------------------------------------ the parts


def test_contacts_that_find_no_place_stay_where_they_are() -> None:
    """Their levers change to and fro with each linearisation, so that the forces of one are never those where it leads."""
    scene = fs.Scene("levers", dt=DT)
    scene.add_floor()
    scene.add_rigid("ball", fs.Sphere(0.03), mass=0.1, position=(0, 0, 0.03))
    stepper = Stepper(scene, make_solver("exact"))
    stepper.system.assemble(stepper.state, stepper.settings, np.zeros(6))
    rows, _ = rows_of(stepper)
    sides = [replace(rows, J=rows.J * size) for size in (0.95, 1.05)]
    asked: list[int] = []

    def follow(v_hat: np.ndarray, on: Any = None, *, guess: bool = False) -> Any:
        if on is not None:
            return on
        asked.append(1)
        return sides[len(asked) % 2]

    def solve(patience: int) -> Any:
        asked.clear()
        warm = stepper.contacts.warm_start(rows, stepper.state.contacts, stepper.state.v_hat)
        return solve_step(stepper.system, stepper.settings, rows, stepper.solver, warm, stepper.newton, None, follow, patience)

    found = solve(PATIENCE)
    assert found.solution.converged and not found.followed and found.solves <= PATIENCE + 3
    never = solve(1000)
    assert never.followed and not never.solution.converged and never.solves == stepper.newton.max_solves


def test_frames_turn_on_the_shortest_way() -> None:
    rng = np.random.default_rng(0)
    frame = Rotation.random(20, random_state=1).as_matrix()
    normal = frame[:, 0] + 0.8 * rng.normal(size=(20, 3)) * 0.5
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    out, turned = np.concatenate([frame, frame[:2]]), np.empty(22, dtype=np.bool_)
    there = np.repeat(normal[:, None], 3, axis=1)
    there[5] *= -1.0 if frame[5, 0] @ normal[5] > 0.0 else 1.0  # to the other side
    turn_frames(out, np.array([*range(20), -1, 5]), there, turned)
    np.testing.assert_array_equal(turned[:20], np.einsum("mc,mc->m", frame[:, 0], there[:, 0]) > 0.0)
    assert not turned[[5, 20]].any() and 10 < turned.sum()
    np.testing.assert_array_equal(out[[5, 20]], frame[[5, 0]])
    for one, old, n in zip(out[:20][turned[:20]], frame[turned[:20]], normal[turned[:20]], strict=True):
        axis = np.cross(old[0], n)
        angle = np.arctan2(np.linalg.norm(axis), old[0] @ n)
        turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
        np.testing.assert_allclose(one, old @ turn.T, atol=1e-12)


def test_a_point_beyond_the_edge_of_a_box_keeps_its_face() -> None:
    """The next face is at right angles: rounding decided which one a point had at the end of a step that led it over the edge."""
    frame = Rotation.random(40, random_state=2).as_matrix()
    there = np.roll(frame, -1, axis=1)
    there[::2, 0] += 1e-3 * frame[::2, 0]  # as far as loose solvers let it sink
    out, turned = frame.copy(), np.empty(40, dtype=np.bool_)
    turn_frames(out, np.arange(40), there, turned)
    assert not turned.any()
    np.testing.assert_array_equal(out, frame)


def test_keys_are_matched() -> None:
    assert matched(np.array([5, 7, 1, 9]), np.array([9, 1, 5])).tolist() == [2, -1, 1, 0]
    assert matched(np.array([5, 7]), np.array([5, 7])).tolist() == [0, 1]
    assert matched(np.array([5]), np.zeros(0, dtype=np.int64)).tolist() == [-1]


@pytest.mark.parametrize("dt", [0.01, 0.005])
def test_a_collision_whose_contact_changes_its_place_keeps_angular_momentum(dt: float) -> None:
    """A capsule and the rim of a cylinder: the search went between two places and ended with levers of neither; 6 % were lost."""
    settings = {"dt": dt, "gravity": (0, 0, 0), "default_friction": 0.0, "nonlinear_tolerance": 1e-8, "max_solves": 60}
    scene = fs.Scene("collision", duration=0.07, **settings)  # type: ignore[arg-type]
    spin = {"velocity": (1.0, 0.2, 0.0), "angular_velocity": (1.0, 2.0, 3.0)}
    scene.add_rigid("capsule", fs.Capsule(0.01, 0.03), mass=0.1, rotation=(0.1, 0.2, 0.3), **spin)
    aside = {"position": (0.055, 0.012, 0.004), "rotation": (0.5, 0.2, 0.3), "velocity": (-1.0, 0.0, 0.1)}
    scene.add_rigid("cylinder", fs.Cylinder(0.02, 0.02), mass=0.1, **aside)
    stepper = Stepper(scene, make_solver("auto"))

    before, pressed = momenta(stepper)[1], 0.0
    for _ in range(round(0.07 / dt)):
        report = stepper.step()
        pressed += report.contacts.lam[:, 0].sum()
    assert pressed > 1.0
    np.testing.assert_allclose(momenta(stepper)[1], before, atol=1e-6 * np.linalg.norm(before))


@pytest.mark.parametrize("patience", [PATIENCE, 0])
def test_contacts_follow_then_stay_on_features_then_where_they_are(patience: int) -> None:
    def follow(v_hat: Any, on: Any = None, *, guess: bool = False) -> Any:
        return f"{on} at {v_hat}" if on else f"at {v_hat}"

    following: Any = Following(follow, patience)  # type: ignore[arg-type]
    assert following.begin("start", 0, 1) == "at 1"
    for k in range(patience + STAYING):
        assert following.followed == (k < patience)
        assert following.rows("led", 1, 2) == ("at 2" if k < patience else "led at 2" if patience else "at 1 at 2")
        assert following.rows("led", 2, 2) == "led"
        following.judge("led", 0.6, 1.0)
    assert not following.followed and following.now is None and following.rows("led", 1, 2) == "led"
    helped: Any = Following(follow, PATIENCE)  # type: ignore[arg-type]
    for _ in range(3 * PATIENCE):
        helped.judge("led", 0.6, 1.0)
        helped.judge("led", 0.5, 1.0)
    assert helped.followed
