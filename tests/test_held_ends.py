"""Rods held by bodies of the scene, and held nodes of soft bodies: statics, swings, momentum, solvers, sensors, bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs
from contact.metrics import residuals
from contact.solvers import make_solver
from femsim.step.stepper import Stepper

RUBBER = fs.Elastic(2e6, 0.4, 1200.0, rayleigh_beta=0.01, name="rubber")
STIFF = fs.Elastic(2e9, 0.4, 1200.0, name="stiff")
FOAM = fs.Elastic(1e5, 0.3, 1000.0, rayleigh_beta=0.01, name="foam")
ROUND = fs.circular_section(0.003)
G, FREE = 9.81, (0.0, 0.0, 0.0)


def line(n: int, start: tuple[float, ...], end: tuple[float, ...]) -> np.ndarray:
    return np.linspace(start, end, n + 1)


def still(t: float) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(3), np.zeros(3)


def gained(run: fs.Run) -> np.ndarray:
    """Energy beyond the work done, step by step, J."""
    return run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"] - run.steps["work_J"]


def add_hand(scene: fs.Scene, **options: object) -> fs.Handle:
    """Put in a gripper with one finger that points down and slides up and down."""
    pad = fs.Finger("pad", fs.Box((0.005, 0.01, 0.02)), (0.05, 0.0, -0.03), (0.0, 0.0, 1.0), mass=0.1)
    return scene.add_gripper("hand", [pad], base=fs.Box((0.05, 0.02, 0.01)), joint_damping=0.0, **options)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- on grippers and rigid bodies


@pytest.mark.parametrize("kind", ["clamped", "hinged"])
@pytest.mark.parametrize("acceleration", [0.0, 3.0])
def test_a_driven_gripper_carries_its_rod(kind: str, acceleration: float) -> None:
    """Still or with constant acceleration a: the rod pulls by m (g + a), the mount carries gripper and rod."""
    scene = fs.Scene("hang", dt=0.01, duration=1.0, theta=1.0)
    hand = add_hand(scene)
    scene.drive(hand, lambda t: (np.array([0.0, 0.0, 0.5 * acceleration * t * t]), np.zeros(3)))
    scene.drive(hand, fingers=True, position=lambda t: 0.0)
    rod = scene.add_rod("rod", line(8, (0.02, 0, -0.01), (0.02, 0, -0.11)), ROUND, RUBBER, start=fs.RodEnd(kind, on=hand))
    scene.sensor("top", rod, kind="start")
    scene.sensor("mount", hand, kind="mount")
    run = fs.simulate(scene)
    pull = (G + acceleration) * scene.bodies[1].mass
    assert run.status == "converged" and run.steps["wrench_balance"].max() < 1e-9
    assert run.sensors["top"].force[-1] == pytest.approx([0.0, 0.0, -pull], abs=1e-6 * pull)
    assert run.sensors["top"].torque[-1] == pytest.approx(np.zeros(3), abs=1e-9)
    all_of_it = (G + acceleration) * (scene.bodies[0].mass + scene.bodies[1].mass)
    assert run.sensors["mount"].force[-1] == pytest.approx([0.0, 0.0, all_of_it], rel=1e-6, abs=1e-9)
    # of the finger at x = 0.05 and of the rod at x = 0.02: r x F of the drive balances them
    moment = -(0.05 * 0.1 * (G + acceleration) + 0.02 * pull)
    assert run.sensors["mount"].torque[-1] == pytest.approx([0.0, moment, 0.0], rel=1e-6, abs=1e-9)
    assert np.diff(gained(run)).max() < 1e-9


def test_a_finger_feels_the_rod_in_its_joint() -> None:
    """A servo of stiffness k under finger and rod gives way by (m_finger + m_rod) g / k."""
    scene = fs.Scene("finger", dt=0.01, duration=1.5, theta=1.0)
    hand = add_hand(scene)
    scene.drive(hand, still)
    scene.drive(hand, fingers=True, position=lambda t: 0.0, stiffness=1e3, damping=50.0)
    rod = scene.add_rod(
        "rod", line(6, (0.05, 0, -0.05), (0.05, 0, -0.11)), ROUND, RUBBER, start=fs.RodEnd("clamped", on="hand.pad")
    )
    scene.sensor("top", rod, kind="start")
    run = fs.simulate(scene)
    weight = G * scene.bodies[1].mass
    assert run.stepper.state.q[7] == pytest.approx(-(0.1 * G + weight) / 1e3, rel=1e-6)
    assert run.sensors["top"].force[-1] == pytest.approx([0.0, 0.0, -weight], abs=1e-6 * weight)


def test_the_joint_of_a_finger_bears_the_moment_of_a_rod_that_sticks_out() -> None:
    """The rod lies level beside the pad: its weight acts in its own centre of mass."""
    scene = fs.Scene("finger", dt=0.01, duration=1.5, theta=1.0)
    hand = add_hand(scene)
    scene.drive(hand, still)
    scene.drive(hand, fingers=True, position=lambda t: 0.0, stiffness=1e3, damping=50.0)
    stiff = fs.Elastic(1e8, 0.3, 1000.0, rayleigh_beta=0.01, name="stiff")
    scene.add_rod(
        "rod", line(6, (0.055, 0, -0.03), (0.115, 0, -0.03)), ROUND, stiff, start=fs.RodEnd("clamped", on="hand.pad")
    )  # fmt: skip
    scene.sensor("joint", "hand.pad", kind="joint")
    run = fs.simulate(scene)
    state, weight = run.stepper.state, G * scene.bodies[1].mass
    centre = scene.bodies[1].centre_of_mass(state.q[run.stepper.system.q_slices[1]])
    pad = run.stepper.link_pose(scene.part_names.index("hand.pad"))[1]
    assert run.sensors["joint"].force[-1] == pytest.approx([0.0, 0.0, 0.1 * G + weight], abs=1e-4 * weight)
    assert run.sensors["joint"].torque[-1] == pytest.approx(np.cross(centre - pad, [0.0, 0.0, weight]), abs=1e-4 * weight * 0.04)


@pytest.mark.parametrize("kind", ["clamped", "hinged"])
def test_a_body_hangs_on_a_rod(kind: str) -> None:
    """At rest the rod carries body and itself at the top and the body alone at the bottom."""
    scene = fs.Scene("bob", dt=0.01, duration=1.0, theta=1.0)
    bob = scene.add_rigid("bob", fs.Sphere(0.02), mass=0.2, position=(0, 0, -0.12))
    ends = {"start": fs.RodEnd("clamped"), "end": fs.RodEnd(kind, on=bob)}
    rod = scene.add_rod("rod", line(5, (0, 0, 0), (0, 0, -0.1)), ROUND, RUBBER, **ends)
    for end in ends:
        scene.sensor(end, rod, kind=end)
    run = fs.simulate(scene)
    assert run.status == "converged" and run.steps["contacts"].max() == 0
    weight = G * scene.bodies[1].mass
    assert run.sensors["end"].force[-1] == pytest.approx([0, 0, 0.2 * G], rel=1e-6, abs=1e-9)
    assert run.sensors["start"].force[-1] == pytest.approx([0, 0, -0.2 * G - weight], rel=1e-6, abs=1e-9)
    assert run.steps["wrench_balance"].max() < 1e-9 and np.diff(gained(run)).max() < 1e-9


@pytest.mark.parametrize("kind", ["clamped", "hinged"])
def test_a_pendulum_swings_with_its_period(kind: str) -> None:
    """A stiff rod with a bob clamped to it is one rigid pendulum; hinged at its top, the bob is a second one below it."""
    length, d, m, half = 0.2, 0.02, 0.2, 0.02
    angle, dt = 0.05, 2e-3
    down = np.array([math.sin(angle), 0.0, -math.cos(angle)])
    scene = fs.Scene("pendulum", dt=dt, duration=0.8, theta=1.0)
    bob = scene.add_rigid("bob", fs.Box((half,) * 3), mass=m, position=(length + d) * down, rotation=(0.0, -angle, 0.0))
    scene.add_rod(
        "rod", np.linspace(np.zeros(3), length * down, 6), ROUND, STIFF, start=fs.RodEnd("hinged"), end=fs.RodEnd(kind, on=bob),
        rotational_damping=0.0 if kind == "clamped" else 1e-5,
    )  # fmt: skip
    scene.sensor("bob", bob, kind="marker")
    run = fs.simulate(scene)
    assert run.status == "converged"
    rod_mass, inertia = scene.bodies[1].mass, 2.0 / 3.0 * m * half**2
    # linear modes of (theta of the rod, phi of the bob): M q'' + K q = 0; clamped: theta = phi
    M = np.array([[rod_mass * length**2 / 3 + m * length**2, m * length * d], [m * length * d, inertia + m * d * d]])
    K = G * np.diag([rod_mass * length / 2 + m * length, m * d])
    omega = math.sqrt(K.sum() / M.sum()) if kind == "clamped" else math.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).min())
    x, t = run.markers["bob"].position[:, 0], run.steps["time_s"]
    crossings = [t[k] - dt * x[k] / (x[k] - x[k - 1]) for k in range(1, len(x)) if x[k - 1] * x[k] < 0]
    assert 2 * (crossings[1] - crossings[0]) == pytest.approx(2 * math.pi / omega, rel=5e-3)
    assert np.diff(gained(run)).max() < 1e-9


def floating(dt: float, holder: str) -> tuple[fs.Scene, np.ndarray, np.ndarray]:
    """A rod clamped to a spinning box, or to a soft block at rest with the rod moving off; momenta over 0.1 s."""
    scene = fs.Scene("space", dt=dt, duration=0.1, gravity=FREE, theta=1.0)
    if holder == "rigid":
        body = scene.add_rigid("body", fs.Box((0.02, 0.01, 0.015)), mass=0.05, velocity=(0.1, 0, 0.2), angular_velocity=(1, 2, 3))
    else:
        body = scene.add_soft("body", fs.box_tets((0.04, 0.02, 0.03), (4, 2, 3)), FOAM)
    points = line(6, (0.02, 0, 0), (0.1, 0.02, 0.0))
    scene.add_rod("rod", points, ROUND, RUBBER, start=fs.RodEnd("clamped", on=body), velocity=(0.0, 0.2, 0.1))
    stepper = Stepper(scene, make_solver("exact", tolerance=1e-12))
    linear, angular = [], []
    state = stepper.state
    for _ in range(round(0.1 / dt) + 1):
        p, h = np.zeros(3), np.zeros(3)
        for moving, q, v in zip(scene.bodies, stepper.system.q_slices, stepper.system.v_slices, strict=True):
            p += moving.momentum(state.q[q], state.v[v])
            if hasattr(moving, "angular_momentum"):
                h += moving.angular_momentum(state.q[q], state.v[v])
            else:
                x, u = state.q[q].reshape(-1, 3), state.v[v].reshape(-1, 3)
                h += np.cross(x, moving.node_mass[:, None] * u).sum(axis=0)
        linear.append(p)
        angular.append(h)
        report = stepper.step()
        assert report.wrench_balance < 1e-9
        state = stepper.state
    return scene, np.array(linear), np.array(angular)


@pytest.mark.parametrize("holder", ["rigid", "soft"])
def test_momentum_of_a_body_with_a_rod_in_space(holder: str) -> None:
    """Linear momentum stays to rounding; angular momentum drifts by the first-order error of the linearised step alone."""
    drifts = []
    for dt in (2e-3, 1e-3):
        _, linear, angular = floating(dt, holder)
        assert linear == pytest.approx(np.tile(linear[0], (len(linear), 1)), abs=1e-12)
        drifts.append(np.abs(angular - angular[0]).max() / np.linalg.norm(angular[0]))
    assert drifts[0] < 0.02 and drifts[1] < 0.6 * drifts[0]


# ---------------------------------------------------------------------- on soft bodies


def on_block(young: float | None, load: Callable[[float], np.ndarray] | None = None, kind: str = "clamped") -> fs.Run:
    """A rod that stands on a soft block (None: on a standing frame) glued to the ground, at rest after 2 s."""
    scene = fs.Scene("block", dt=0.02, duration=1.4, theta=1.0)
    end = fs.RodEnd(kind)
    if young is not None:
        soft = fs.Elastic(young, 0.3, 1000.0, rayleigh_beta=0.01, name="block")
        mesh = fs.box_tets((0.04, 0.04, 0.02), (4, 4, 2))
        block = scene.add_soft("block", mesh, soft, fixed=lambda x: x[:, 2] < -0.0099)
        end = fs.RodEnd(kind, on=block)
    rod = scene.add_rod(
        "rod", line(8, (0, 0, 0.01), (0, 0, 0.09)), ROUND, RUBBER, start=end, translational_damping=1.0, load=load
    )  # fmt: skip
    scene.sensor("root", rod, kind="start")
    scene.sensor("tip", rod, kind="marker", node=7)
    run = fs.simulate(scene)
    assert run.status == "converged" and np.diff(gained(run)).max() < 1e-9
    assert run.steps["wrench_balance"].max() < 5e-8
    return run


def test_a_rod_on_a_soft_block_stands_on_its_weight_and_load() -> None:
    """The block feels weight and load; the stiffer it is, the closer the tip to that of a rod on a standing frame."""
    push = np.array([0.01, 0.005, 0.0])
    frame = on_block(None, lambda t: push)
    tip = frame.markers["tip"].position[-1]
    moved = np.linalg.norm(tip - [0, 0, 0.085])
    away = []
    for young in (1e5, 1e6, 1e8):
        run = on_block(young, lambda t: push)
        weight = G * run.stepper.scene.bodies[1].mass
        assert run.sensors["root"].force[-1] == pytest.approx([*push[:2], -weight], abs=1e-4 * weight)
        away.append(np.linalg.norm(run.markers["tip"].position[-1] - tip))
    assert moved > 0.005 and away[0] > 5 * away[1] > 100 * away[2] and away[2] < 1e-3 * moved
    assert away[0] > 0.01 * moved  # a soft block does give way
    assert run.sensors["root"].torque[-1] == pytest.approx(frame.sensors["root"].torque[-1], rel=1e-2, abs=1e-7)


def test_a_ball_joint_on_a_soft_block_pulls_without_torque() -> None:
    run = on_block(1e5, lambda t: np.array([0.0, 0.0, 0.2]), "hinged")
    weight = G * run.stepper.scene.bodies[1].mass
    assert run.sensors["root"].force[-1] == pytest.approx([0, 0, 0.2 - weight], abs=1e-5)
    assert np.abs(run.sensors["root"].torque).max() < 1e-12


# ---------------------------------------------------------------------- contact and solvers


def pushed(holder: str, dt: float) -> Stepper:
    """A rod on a body that lies on the floor, both pushed; after ten steps."""
    scene = fs.Scene("pushed", dt=dt, duration=1.0, theta=1.0)
    scene.add_floor()
    if holder == "rigid":
        body = scene.add_rigid("body", fs.Sphere(0.02), mass=0.05, position=(0, 0, 0.02))
    else:
        body = scene.add_soft("body", fs.box_tets((0.04, 0.04, 0.02), (2, 2, 1)), FOAM, position=(0, 0, 0.01))
    scene.add_rod(
        "rod", line(5, (0.0183, 0, 0.012) if holder == "rigid" else (0.02, 0, 0.01), (0.07, 0, 0.003)), ROUND, RUBBER,
        start=fs.RodEnd("clamped", on=body), load=lambda t: np.array([0.1, 0.1, -0.1]), contact="surface",
    )  # fmt: skip
    stepper = Stepper(scene, make_solver("exact", tolerance=1e-11))
    for _ in range(10):
        report = stepper.step()
        assert report.solution.converged and report.wrench_balance < 1e-9
    return stepper


@pytest.mark.parametrize("holder", ["rigid", "soft"])
def test_all_solvers_agree_on_joined_bodies(holder: str) -> None:
    """To 1e-8 by true residuals; COND, which is slow on rods, at a small step and to 2e-8."""
    stepper = pushed(holder, 2e-4)
    problem = stepper.problem
    assert problem is not None and problem.n_contacts >= 2
    assert problem.takes_part.any(axis=1).all()  # holder and rod
    reference = stepper.state.v_hat
    assert not make_solver("banded").fits(problem)  # type: ignore[attr-defined]
    for name in ("auto", "exact", "cond", "pgs", "apgd", "ccs"):
        limit = {} if name in ("auto", "exact") else {"max_iterations": 50_000}
        tolerance = 2e-8 if name == "cond" else 1e-8  # its rounding on rods ends between the two
        solution = make_solver(name, tolerance=tolerance, **limit).solve(problem)
        dynamics, law, balance, plain = residuals(problem, solution.v, solution.lam)
        assert solution.converged and max(dynamics, law, plain) <= tolerance and balance <= 5e-8, (name, solution.message)
        assert solution.v == pytest.approx(reference, abs=1e-5 * np.abs(reference).max()), name


def test_links_beside_a_held_end_do_not_touch_their_holder() -> None:
    """A rod that starts inside its holder leaves it in peace; the links further out do touch it when they are bent back."""
    scene = fs.Scene("inside", dt=0.01, duration=0.2, gravity=FREE, theta=1.0)
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=1.0)
    scene.add_rod("rod", line(12, (0, 0, 0), (0, 0, 0.06)), ROUND, RUBBER, start=fs.RodEnd("clamped", on=box))
    run = fs.simulate(scene)
    assert run.steps["contacts"].max() == 0 and run.steps["kinetic_energy_J"].max() < 1e-20
    excluded = scene.no_contact[0]
    # centres at 2.5, 7.5, ... mm: apart while nearer to the surface at 20 mm than twice the radius
    assert (excluded.first, excluded.last, excluded.other) == (0, 5, 0)
    bent = fs.Scene("bent", dt=0.01, duration=0.3, gravity=FREE, theta=1.0)
    bent.add_obstacle("post", fs.Box((0.02, 0.02, 0.02)))
    bent.add_rod(
        "rod", line(12, (0.019, 0, 0.02), (0.019, 0, 0.08)), ROUND, RUBBER, start=fs.RodEnd("clamped", on="post"),
        end=fs.RodEnd("free", load=lambda t: (np.array([-0.3, 0.0, -0.3]), np.zeros(3))), translational_damping=0.5,
    )  # fmt: skip
    run = fs.simulate(bent)
    assert run.steps["contacts"].max() > 0 and run.steps["max_penetration_m"].max() < 1e-4


def test_an_end_on_an_obstacle_is_an_end_on_a_standing_frame() -> None:
    """The same bits, and still a rod alone for the banded solver."""
    results = []
    for on in (None, "wall"):
        scene = fs.Scene("wall", dt=0.01, duration=0.2, theta=1.0)
        scene.add_obstacle("wall", fs.Box((0.01, 0.05, 0.05)), position=(-0.01, 0, 0))
        rod = scene.add_rod("rod", line(8, (0, 0, 0), (0.08, 0, 0)), ROUND, RUBBER, start=fs.RodEnd("clamped", on=on))
        scene.sensor("root", rod, kind="start")
        run = fs.simulate(scene)
        assert run.status == "converged" and not scene.couplings
        solution = run.stepper.solver.solve(run.stepper.problem)
        assert solution.details["picked"] == "banded"
        results.append(run.sensors["root"].force)
    assert np.array_equal(*results)


def test_a_second_run_gives_the_same_bits() -> None:
    scene = fs.Scene("twice", dt=0.01, duration=0.2, theta=1.0)
    bob = scene.add_rigid("bob", fs.Sphere(0.02), mass=0.1, position=(0.1, 0, -0.02))
    rod = scene.add_rod(
        "rod", line(5, (0, 0, 0), (0.1, 0, 0)), ROUND, RUBBER, start=fs.RodEnd("clamped"), end=fs.RodEnd("clamped", on=bob)
    )  # fmt: skip
    scene.sensor("bob", rod, kind="end")
    runs = [fs.simulate(scene).sensors["bob"] for _ in range(2)]
    assert runs[0].force.tobytes() == runs[1].force.tobytes() and np.abs(runs[0].torque).max() > 1e-4
    body = scene.bodies[1]
    assert not np.array_equal(body.end_frames[1, :3], [0.1, 0, 0])  # type: ignore[union-attr]
    Stepper(scene, make_solver("auto"))  # frames as at the start before any step, for the first frame that is written
    assert np.array_equal(body.end_frames[1, :3], [0.1, 0, 0])  # type: ignore[union-attr]


# ---------------------------------------------------------------------- held nodes


def test_held_nodes_follow_a_motion_and_a_driven_body_exactly() -> None:
    """A bar between a turning motion and a driven arm: positions to rounding, the drives carry its weight, energy balances."""
    scene = fs.Scene("bar", dt=0.01, duration=1.0, theta=1.0)
    bar = scene.add_soft("bar", fs.box_tets((0.1, 0.02, 0.02), (10, 2, 2)), FOAM)
    turn = fs.Motion([0, 0.5], [(0, 0, 0), (0, 0, 0.05)], [(0, 0, 0), (0, 0.3, 0)])
    left = scene.hold(bar, lambda x: x[:, 0] < -0.049, turn)
    arm = scene.add_rigid("arm", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0.07, 0, 0))
    scene.drive(arm, fs.Motion([0, 0.5], [(0, 0, 0), (0.01, 0, 0.05)], [(0, 0, 0), (0.3, 0, 0)]))
    ends = np.flatnonzero(scene.bodies[0].rest[:, 0] > 0.049)
    right = scene.hold("bar", ends, on=arm, name="grip")
    for name, on in (("left", left), ("right", "grip"), ("arm", arm)):
        scene.sensor(name, on, kind="mount")
    assert (left.name, right.name) == ("bar.hold1", "grip")
    run = fs.simulate(scene)
    assert run.status == "converged" and run.steps["wrench_balance"].max() < 1e-6
    q = run.stepper.state.q[: scene.bodies[0].n_q].reshape(-1, 3)
    for hold, motion in zip(scene.holds, (turn, scene.motions[1]), strict=True):
        assert q[hold.nodes] == pytest.approx(hold.positions(motion, run.stepper.state.t), abs=1e-15)
    turned = np.array([-0.05, 0, 0.05]) + Rotation.from_rotvec([0, 0.3, 0]).apply(scene.holds[0].rest - [-0.05, 0, 0])
    assert q[scene.holds[0].nodes] == pytest.approx(turned, abs=1e-15)
    turned = np.array([0.08, 0, 0.05]) + Rotation.from_rotvec([0.3, 0, 0]).apply(scene.holds[1].rest - [0.07, 0, 0])
    assert q[ends] == pytest.approx(turned, abs=1e-15)
    # the mean of the left nodes is lifted by the motion, whatever it turns
    assert q[scene.holds[0].nodes].mean(axis=0) == pytest.approx([-0.05, 0, 0.05], abs=1e-15)
    forces = {name: sensor.force[-1] for name, sensor in run.sensors.items()}
    weight = G * scene.bodies[0].mass
    assert forces["left"] + forces["right"] == pytest.approx([0, 0, weight], abs=1e-5 * weight)
    assert forces["arm"] - forces["right"] == pytest.approx([0, 0, 0.1 * G], abs=1e-9)
    # moments about the mean of the left nodes: the weight acts in the centre of mass
    torque = {name: sensor.torque[-1] for name, sensor in run.sensors.items()}
    means = [q[hold.nodes].mean(axis=0) for hold in scene.holds]
    centre = scene.bodies[0].node_mass @ q / scene.bodies[0].mass - means[0]
    total = torque["left"] + torque["right"] + np.cross(means[1] - means[0], forces["right"])
    assert total == pytest.approx(np.cross(centre, [0, 0, weight]), abs=1e-4 * 0.05 * weight)
    base = run.stepper.state.q[scene.bodies[0].n_q :][:3]
    assert torque["arm"] == pytest.approx(torque["right"] + np.cross(means[1] - base, forces["right"]), abs=1e-7)
    assert np.diff(gained(run)).max() < 1e-9 and run.steps["work_J"][-1] > 0.5 * 0.05 * weight


def test_what_is_driven_ends_each_step_on_its_motion() -> None:
    """Also while it speeds up and turns, body and held nodes alike."""

    def motion(t: float) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.1 * t**2, 0.0, 0.05 * np.sin(5.0 * t)]), np.array([0.0, 2.0 * t, 0.0])

    scene = fs.Scene("driven", dt=0.01, theta=1.0)
    arm = scene.add_rigid("arm", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0.07, 0, 0))
    scene.drive(arm, motion)
    block = scene.add_soft("block", fs.box_tets((0.02, 0.02, 0.02), 1), FOAM, position=(0, 0.1, 0))
    scene.hold(block, lambda x: x[:, 0] < 0.0, motion)
    stepper = Stepper(scene, make_solver("exact"))
    hold = scene.holds[0]
    for _ in range(5):
        stepper.step()
        t = stepper.state.t
        q = stepper.state.q[:7]
        assert q[:3] == pytest.approx(np.array([0.07, 0, 0]) + motion(t)[0], abs=1e-15)
        turned = Rotation.from_quat(q[[4, 5, 6, 3]]).as_rotvec()
        assert turned == pytest.approx(motion(t)[1], abs=1e-14)
        nodes = stepper.state.q[7:].reshape(-1, 3)[hold.nodes]
        assert nodes == pytest.approx(hold.positions(motion, t), abs=1e-15)


def test_a_slab_held_on_both_faces_stores_the_work_of_its_drive() -> None:
    """All nodes are held, so no equation of a free one asks for a second look: the drive's force stayed the linearised one.

    Simple shear by 1/2 in six steps: the energy at the end is that of the law, and the drive did as much work.
    """
    edge, height, mu = 0.02, 0.01, 2e5 / 2.6
    scene = fs.Scene("slab", dt=0.05, duration=0.3, gravity=FREE, strain_damping=0.0)
    slab = fs.Elastic(2e5, 0.3, 1.0, law="st_venant_kirchhoff")
    block = scene.add_soft("slab", fs.box_tets((edge, edge, height), (2, 2, 1)), slab, fixed=lambda x: x[:, 2] < 0.0)
    held = scene.hold(block, lambda x: x[:, 2] > 0.0, fs.Motion([0.0, 0.3], [FREE, (0.5 * height, 0.0, 0.0)]))
    scene.sensor("top", held, kind="mount")
    run = fs.simulate(scene)
    shear, lame = 0.5, 2e5 * 0.3 / (1.3 * 0.4)
    energy = (mu * (shear**2 / 2 + shear**4 / 4) + lame / 2 * (shear**2 / 2) ** 2) * edge**2 * height
    assert run.steps["elastic_energy_J"][-1] == pytest.approx(energy, rel=1e-9)
    assert run.steps["work_J"][-1] == pytest.approx(energy, rel=1e-3)
    assert run.steps["wrench_balance"].max() < 1e-9


def test_a_rod_on_held_nodes_hangs_from_their_drive() -> None:
    """The frame of the rod lies in nodes that are driven: the mount carries block and rod."""
    scene = fs.Scene("chain", dt=0.02, duration=1.5, theta=1.0)
    block = scene.add_soft("block", fs.box_tets((0.03, 0.03, 0.02), (3, 3, 2)), FOAM)
    grip = scene.hold(block, lambda x: np.ones(len(x), dtype=bool), still)
    rod = scene.add_rod("rod", line(5, (0, 0, -0.01), (0, 0, -0.06)), ROUND, RUBBER, start=fs.RodEnd("hinged", on=block))
    scene.sensor("mount", block, kind="mount")
    scene.sensor("root", rod, kind="start")
    run = fs.simulate(scene)
    both, weight = G * (scene.bodies[0].mass + scene.bodies[1].mass), G * scene.bodies[1].mass
    assert run.sensors["mount"].force[-1] == pytest.approx([0, 0, both], abs=1e-6 * both)
    assert run.sensors["root"].force[-1] == pytest.approx([0, 0, -weight], abs=1e-6 * both)
    assert grip.parts == ("block.hold1",)


# ---------------------------------------------------------------------- bad input


def world() -> fs.Scene:
    scene = fs.Scene("bad", theta=1.0)
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1)
    scene.add_soft(
        "block", fs.box_tets((0.04, 0.04, 0.02), (2, 2, 1)), FOAM, position=(0.2, 0, 0), fixed=lambda x: x[:, 2] < -0.009
    )
    add_hand(scene, position=(0.5, 0, 0))
    scene.add_obstacle("plate", fs.Box((0.1, 0.1, 0.01)), position=(1, 0, 0))
    scene.add_rod("other", line(2, (0, 1, 0), (0.1, 1, 0)), ROUND, RUBBER)
    scene.drive("hand", still)
    return scene


START = {
    "box": (0.02, 0, 0),
    "block": (0.2, 0, 0.01),
    "hand": (0.5, 0, 0.01),
    "hand.pad": (0.55, 0, -0.05),
    "plate": (1, 0, 0.01),
}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fs.RodEnd("clamped", on="box", motion=still), ("motion and a holder", "drive the holder")),
        (lambda: fs.RodEnd("free", on="box"), ("free end", "'clamped' or 'hinged'")),
        (lambda: ("bax", START["box"]), ("start of rod", "'bax'", "add it first", "did you mean 'box'")),
        (lambda: ("rod", START["box"]), ("start of rod", "the rod itself", "ring", "one small rigid body")),
        (lambda: ("other", (0, 1, 0)), ("'other'", "a rod", "allowed are", "scene.join")),
        (lambda: ("box", (0.0241, 0, 0)), ("'box'", "4.1 mm", "3 mm")),
        (lambda: ("block", (0.2, 0, 0.02)), ("'block'", "10 mm", "3 mm")),
        (lambda: ("hand.pad", (0.5, 0, 0.01)), ("'hand.pad'", "mm from its surface")),
        (lambda: ("plate", (1, 0, 0.02)), ("'plate'", "10 mm")),
    ],
)  # fmt: skip
def test_bad_holders_are_refused(make: Callable[[], object], words: tuple[str, ...]) -> None:
    """And the scene stays as it was."""
    scene = world()
    before = [len(x) for x in (scene.bodies, scene.parts, scene.couplings, scene.no_contact)]
    with pytest.raises(fs.InputError) as caught:
        made = make()
        assert isinstance(made, tuple)
        on, start = made
        scene.add_rod("rod", line(3, start, (5, 5, 5)), ROUND, RUBBER, start=fs.RodEnd("clamped", on=on))
    for word in words:
        assert word in str(caught.value)
    assert [len(x) for x in (scene.bodies, scene.parts, scene.couplings, scene.no_contact)] == before


def test_rods_are_joined_as_their_messages_say() -> None:
    """A ring, whose ends a small ball holds, hangs on a string, to which it is welded: the string bears both."""
    scene = fs.Scene("ring", dt=0.01, duration=0.5, theta=1.0)
    angle, radius = np.linspace(0.0, 2 * np.pi, 31), 0.05
    ring = np.column_stack([radius * np.sin(angle), 0.0 * angle, -radius * np.cos(angle)])
    scene.add_rigid("clip", fs.Sphere(0.003), mass=0.001, position=tuple(ring[0]))
    scene.add_rod(
        "ring", ring, ROUND, RUBBER, start=fs.RodEnd("clamped", on="clip"), end=fs.RodEnd("clamped", on="clip"),
        translational_damping=2.0,
    )  # fmt: skip
    scene.add_rod("string", line(4, (0, 0, 0.2), (0, 0, radius)), ROUND, RUBBER, start=fs.RodEnd("clamped"))
    with pytest.raises(fs.InputError, match=r"both are the same; .* ring are held on one small rigid body"):
        scene.join("ring", "ring", at=tuple(ring[0]))
    scene.join("string", "ring", at=(0, 0, radius))
    scene.sensor("root", "string", kind="start")
    run = fs.simulate(scene)
    weight = 9.81 * sum(body.mass for body in scene.bodies)
    assert run.verdict == "good" and run.sensors["root"].force[-1, 2] == pytest.approx(-weight, rel=0.02)


@pytest.mark.parametrize("on", list(START))
def test_all_holders_are_taken_at_their_surface(on: str) -> None:
    scene = world()
    rod = scene.add_rod("rod", line(3, START[on], (5, 5, 5)), ROUND, RUBBER, start=fs.RodEnd("clamped", on=on))
    scene.sensor("root", rod, kind="start")
    assert len(scene.couplings) == (on != "plate")


@pytest.mark.parametrize(
    ("what", "where", "options", "words"),
    [
        ("box", [0], {"motion": still}, ("'box' is no soft body",)),
        ("blok", [0], {"motion": still}, ("'blok'", "block")),
        ("block", [0, 18], {"motion": still}, ("node 18", "0 to 17")),
        ("block", [0.5], {"motion": still}, ("float64", "node numbers")),
        ("block", [True, False], {"motion": still}, ("type bool", "lambda p: p[:, 2] > 0.01; np.flatnonzero makes numbers")),
        ("block", lambda x: x, {"motion": still}, ("where gave shape (18, 3)", "(18,)")),
        ("block", lambda x: x[:, 2] > 1, {"motion": still}, ("chooses no node", "reaches from")),
        ("block", lambda x: x[:, 2] < 0, {"motion": still}, ("held already by 'fixed'",)),
        ("block", lambda x: x[:, 2] > 0, {}, ("exactly one of motion and on",)),
        ("block", lambda x: x[:, 2] > 0, {"motion": still, "on": "hand"}, ("exactly one of motion and on",)),
        ("block", lambda x: x[:, 2] > 0, {"motion": 3.0}, ("motion is 3.0", "fs.Motion")),
        ("block", lambda x: x[:, 2] > 0, {"on": "box"}, ("'box'", "drive it first")),
        ("block", lambda x: x[:, 2] > 0, {"on": "hand.pad"}, ("'hand.pad'", "drive it first", "glue them to it by scene.join")),
        ("block", lambda x: x[:, 2] > 0, {"on": "hand.pat"}, ("'hand.pat' is unknown; did you mean 'hand.pad'?",)),
        ("block", lambda x: x[:, 2] > 0, {"motion": still, "name": "box"}, ("'box' is taken",)),
    ],
)  # fmt: skip
def test_bad_holds_are_refused(what: str, where: object, options: dict[str, object], words: tuple[str, ...]) -> None:
    scene = world()
    with pytest.raises(fs.InputError) as caught:
        scene.hold(what, where, **options)  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)
    assert not scene.holds


def test_bad_sensors_on_held_nodes_are_refused() -> None:
    scene = world()
    with pytest.raises(fs.InputError, match=r"driven rigid body, the base of a gripper or held nodes, not 'block'"):
        scene.sensor("s", "block", kind="mount")
    top = np.flatnonzero(scene.bodies[1].rest[:, 2] > 0)
    scene.hold("block", top[-1:], still)
    assert top[-1] == 17
    with pytest.raises(fs.InputError, match=r"node 17 is held already by 'block.hold1'"):
        scene.hold("block", [17], still)
    scene.hold("block", top[:1], still)
    with pytest.raises(fs.InputError, match=r"'block' is held at several places; name one of \['block.hold1', 'block.hold2'\]"):
        scene.sensor("s", "block", kind="mount")
    with pytest.raises(fs.InputError, match=r"held nodes 'block.hold1' have no kind 'contact'"):
        scene.sensor("s", "block.hold1")
    with pytest.raises(fs.InputError, match="is taken"):
        scene.add_rigid("block.hold1", fs.Sphere(0.1), mass=1.0)


def test_outputs_of_held_things(tmp_path: Path) -> None:
    """Columns and units of the sensors in the run folder."""
    scene = world()
    scene.duration = 0.03
    rod = scene.add_rod("rod", line(3, START["block"], (0.2, 0, 0.04)), ROUND, RUBBER, start=fs.RodEnd("clamped", on="block"))
    scene.hold("block", [17], still)
    scene.sensor("root", rod, kind="start")
    scene.sensor("drive", "block", kind="mount")
    run = fs.simulate(scene, out=tmp_path / "run")
    header = (tmp_path / "run" / "sensors.csv").read_text().splitlines()[0].split(",")
    units = ("fx_N", "fy_N", "fz_N", "tx_Nm", "ty_Nm", "tz_Nm")
    assert header == ["time_s", *(f"{name}_{unit}" for name in ("root", "drive") for unit in units)]
    assert np.abs(run.sensors["drive"].force).max() > 1e-6


def test_the_scene_of_held_rods() -> None:
    """A bob on a cable bends whiskers on a pad: weights at the start, pushes on the way that cable and pad both feel."""
    scene = fs.load_scene("held_rods", links=4, dt=0.01, duration=0.9)
    run = fs.simulate(scene)
    assert run.status == "converged" and run.steps["wrench_balance"].max() < 1e-6
    weight = {body.name: G * body.mass for body in scene.bodies}
    assert run.sensors["root1"].force[0] == pytest.approx([0, 0, -weight["whisker1"]], rel=0.2, abs=1e-5)
    pushes = run.sensors["bob"].force[:, 0]
    assert pushes.min() < -1e-3  # the first whisker holds the bob back ...
    assert run.sensors["root0"].force[:, 0].max() > 0.5 * -pushes.min()  # ... and pulls at the pad the other way
    carried = weight["hand"] + weight["bob"] + weight["cable"]
    assert run.sensors["hand"].force[:, 2].mean() == pytest.approx(carried, rel=0.05)
    assert np.diff(gained(run)).max() < 1e-9


@pytest.mark.filterwarnings("ignore:.*overlap by")
def test_links_beside_a_held_end_do_not_touch_the_soft_body_that_holds_it() -> None:
    """A rod that starts inside a soft block leaves it in peace; one that only lies beside it does not."""
    for held in (True, False):
        scene = fs.Scene("inside", dt=0.01, duration=0.05, gravity=FREE, theta=1.0)
        block = scene.add_soft("block", fs.box_tets((0.04, 0.04, 0.04), 2), RUBBER)
        end = fs.RodEnd("clamped", on=block) if held else None
        scene.add_rod("rod", line(12, (0, 0, 0.0195), (0, 0, 0.08)), ROUND, RUBBER, start=end)
        stepper = Stepper(scene, make_solver("auto", tolerance=1e-8))
        report = stepper.step()
        assert report.solution.converged and (len(report.contacts.gap) == 0) == held
        assert (report.max_penetration > 0.0) != held


def test_a_string_wound_on_the_drum_that_holds_its_end_lies_on_it() -> None:
    """One turn, and a pull at the loose end: links along the drum were left out as if they were in it, and it fell through."""
    radius, thick, angle = 0.03, 0.001, 0.2
    scene = fs.Scene("drum", dt=0.005, duration=0.05, theta=1.0, gravity=(0.0, 0.0, 0.0), default_friction=0.3)
    scene.add_obstacle("drum", fs.Cylinder(radius, 0.02), rotation=(np.pi / 2, 0.0, 0.0))
    turn = np.linspace(-2.0 * np.pi, 0.0, 33)
    away = np.append(radius + thick, np.full(32, (radius + thick) / np.cos(0.5 * (turn[1] - turn[0]))))
    wound = np.column_stack([away * np.cos(turn), 5e-4 * turn, -away * np.sin(turn)])
    leg = wound[-1] - angle * radius * np.arange(1, 5)[:, None] * np.array([0.0, 0.0, 1.0])
    pull = fs.RodEnd("free", load=lambda t: (np.array([0.0, 0.0, -1.0]), np.zeros(3)))
    section = fs.circular_section(thick, bending=1e-3)
    string = fs.Elastic(5e8, 0.3, 1000.0, name="string")
    rod = scene.add_rod("string", np.vstack([wound, leg]), section, string, start=fs.RodEnd("clamped", on="drum"), end=pull)
    scene.sensor("drum", "drum")
    simulation = fs.Simulation(scene)
    start = simulation.points(rod).copy()
    simulation.step(10)
    assert np.abs(simulation.points(rod) - start).max() < 0.5 * thick  # 1 N in 50 ms moves a loose gram of it by a metre
    assert simulation.read("drum").force[2] == pytest.approx(-1.0, rel=0.2)
