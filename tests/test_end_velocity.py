"""Contact at the end of a step: rest, rebound, restitution, energy and momentum of the energy-momentum step with contact.

`Body.inertia` is checked against the kinetic energy, the calming kernels against dense algebra. Over 600 lines: one file for
one module of the step, each law against its closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

import femsim as fs
from contact import ContactError
from contact.masses import as_matrix, product, split_operator, velocities
from contact.masses_kernels import Masses, find_groups
from contact.problem import make_problem
from contact.solvers import make_solver
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.body_defaults import BodyDefaults
from femsim.model.bodies.calming import calm_edges, calm_joints, edge_stiffness
from femsim.step.advance import take_step
from femsim.step.end_velocity import weakened
from femsim.step.mobility import Mobility, mass_times
from femsim.step.state import State
from femsim.step.stepper import Stepper

EM: dict[str, Any] = {"integrator": "energy-momentum"}
BETA = 2e-3


def rubber(young: float = 1e5, beta: float = BETA) -> fs.Elastic:
    return fs.Elastic(young, 0.3, 1000.0, name="rubber", rayleigh_beta=beta)


def energies(stepper: Stepper) -> float:
    """Kinetic, elastic and potential energy of all bodies."""
    state, system = stepper.state, stepper.system
    return sum(
        body.kinetic_energy(state.q[q], state.v[v])
        + body.elastic_energy(state.q[q])
        - body.mass * float(stepper.scene.gravity @ body.centre_of_mass(state.q[q]))
        for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True)
    )


def ended(gained: list[float], lam: list[float], at_end: list[float]) -> tuple[Any, Any]:
    """Stand-ins for what came of a step: work of friction (J) and normal forces (N) of contacts, as found and at the end."""
    forces = np.column_stack([lam, np.zeros((len(lam), 2))])
    solved = SimpleNamespace(solution=SimpleNamespace(lam=forces), problem=SimpleNamespace(dt=0.01))
    work = np.column_stack([np.zeros((len(lam), 2)), gained])
    return solved, SimpleNamespace(work=work, lam=np.column_stack([at_end, np.zeros((len(lam), 2))]))


@pytest.mark.parametrize("anisotropic", [False, True])
def test_friction_is_weakened_only_where_that_takes_its_work_away(anisotropic: bool) -> None:
    friction = np.array([0.4, 0.4, 0.2])
    friction = np.column_stack([friction, 2.0 * friction]) if anisotropic else friction
    rows, newton = SimpleNamespace(friction=friction), SimpleNamespace(still=1e-6)

    def found(now: np.ndarray, *what: list[float]) -> np.ndarray | None:
        solved, end = ended(*what)
        return weakened(now, rows, solved, end, newton)  # type: ignore[arg-type]

    lam = [1.0, 2.0, 4.0]
    half = friction * np.array([1.0, 0.5, 1.0])[(slice(None), None) if anisotropic else slice(None)]
    np.testing.assert_allclose(found(friction, [-1e-3, 1e-4, 0.0], lam, [1.0, 1.0, 4.0]), half)
    assert found(friction, [-1e-3, 0.0, 0.0], lam, [1.0, 1.0, 4.0]) is None  # no work
    assert found(friction, [1e-4, 0.0, 0.0], lam, [1.5, 2.0, 4.0]) is None  # it presses more at the end
    assert found(half, [1e-4, 1e-4, 0.0], lam, [1.5, 1.0, 4.0]) is None  # it has no more than that any longer
    assert found(friction, [1e-4, 1e-9, 0.0], lam, [1.5, 1.0, 4.0]) is None  # next to nothing is what it would take away


# ------------------------------------------------------------------ rebound


def dropped_ball(dt: float, duration: float, **options: Any) -> tuple[float, float, float]:
    """Rebound over drop, largest gain of energy over that of the drop, and penetration (m) of a soft ball without damping."""
    scene = fs.Scene("ball", dt=dt, **(EM | options))
    scene.add_floor()
    mesh = fs.ball_tets(0.03, 4)
    scene.add_soft("ball", mesh, rubber(2e5, 0.0), position=(0, 0, 0.1 - mesh.points[:, 2].min()))
    stepper = Stepper(scene, make_solver("auto"))
    body = scene.bodies[0]
    start, energy = body.centre_of_mass(stepper.state.q)[2], [energies(stepper)]
    height, depth = [start], 0.0
    for _ in range(round(duration / dt)):
        report = stepper.step()
        assert report.solution.converged
        height.append(body.centre_of_mass(stepper.state.q)[2])
        energy.append(energies(stepper))
        depth = max(depth, report.max_penetration)
    lowest = int(np.argmin(height))
    return (max(height[lowest:]) - (start - 0.1)) / 0.1, np.diff(energy).max() / (body.mass * 9.81 * 0.1), depth


def test_a_soft_ball_rebounds_and_gains_no_energy_at_any_step() -> None:
    """From 0.1 m: 200 kPa, nu 0.3, no material damping, radius 30 mm."""
    rebound = {}
    for dt in (0.01, 0.005, 0.002, 0.001, 0.0005):
        rebound[dt], gained, depth = dropped_ball(dt, 0.33)
        assert gained < 1e-6 and depth < 1e-6, dt
    assert rebound[0.002] >= 0.75 and rebound[0.001] >= 0.85
    assert rebound[0.001] == pytest.approx(rebound[0.0005], rel=0.05)
    assert list(rebound.values()) == sorted(rebound.values())


def test_backward_euler_hardly_rebounds() -> None:
    rebound, gained, depth = dropped_ball(0.002, 0.2, integrator="theta")
    assert rebound < 0.4 and depth < 1e-6 and gained < 0.01


# ------------------------------------------------------------------ rest


def soft_cube(scene: fs.Scene) -> None:
    scene.add_soft("cube", fs.box_tets((0.03, 0.03, 0.03), 3), rubber(), position=(0, 0, 0.02), rotation=(0.2, 0.1, 0))


def soft_stack(scene: fs.Scene) -> None:
    for k in range(2):
        scene.add_soft(
            f"slab {k}".replace(" ", "_"), fs.box_tets((0.03, 0.03, 0.02), 2), rubber(), position=(0, 0, 0.0105 + 0.021 * k)
        )


def rigid_box(scene: fs.Scene) -> None:
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0, 0, 0.04), rotation=(0.3, 0.2, 0))


def rigid_stack(scene: fs.Scene) -> None:
    for k in range(3):
        scene.add_rigid(f"box{k}", fs.Box((0.02, 0.02, 0.01)), mass=0.1, position=(0.002 * k, 0, 0.011 + 0.022 * k),
                        rotation=(0, 0, 0.1 * k))  # fmt: skip


def rod(scene: fs.Scene) -> None:
    points = np.column_stack([np.linspace(0, 0.2, 21), np.zeros(21), np.linspace(0.02, 0.03, 21)])
    scene.add_rod("rod", points, fs.circular_section(0.003), fs.Elastic(1e6, 0.3, 1000.0, name="r", rayleigh_beta=BETA))


def soft_on_rigid(scene: fs.Scene) -> None:
    scene.add_rigid("box", fs.Box((0.03, 0.03, 0.01)), mass=0.2, position=(0, 0, 0.011))
    scene.add_soft("cube", fs.box_tets((0.03, 0.03, 0.03), 2), rubber(), position=(0, 0, 0.037))


def rigid_on_soft(scene: fs.Scene) -> None:
    scene.add_soft("mat", fs.box_tets((0.06, 0.06, 0.02), (3, 3, 2)), rubber(), position=(0, 0, 0.0105))
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.01)), mass=0.1, position=(0, 0, 0.032))


@pytest.mark.parametrize("options", [EM, {"theta": 1.0}], ids=["energy-momentum", "backward_euler"])
@pytest.mark.parametrize("fill", [soft_cube, soft_stack, rigid_box, rigid_stack, rod, soft_on_rigid, rigid_on_soft])
def test_bodies_come_to_rest(fill: Callable[[fs.Scene], None], options: dict[str, Any]) -> None:
    """Below 1e-3 mm/s (and 1e-3 mrad/s) within 0.8 s, of which the last half second without bounces; no energy on the way."""
    scene = fs.Scene("rest", dt=0.01, **options)
    scene.add_floor()
    fill(scene)
    stepper = Stepper(scene, make_solver("auto"))
    energy = [energies(stepper)]
    for _ in range(80):
        report = take_step(stepper, 6)
        energy.append(energies(stepper))
        assert report.solution.converged and report.wrench_balance < 1e-5
    assert np.abs(stepper.state.v).max() < 1e-6
    assert np.diff(energy).max() < 1e-5 * (energy[0] - energy[-1])  # what pushes penetration out


def modes(stepper: Stepper, beta: float) -> np.ndarray:
    """Angular frequencies, 1/s, of small vibrations about the present state, whatever presses being glued; small scenes only."""
    system, nothing = stepper.system, np.zeros(stepper.system.n)
    pressing = np.repeat(stepper.step().contacts.lam[:, 0] > 1e-6, 3)
    free = sl.null_space(stepper.problem.J.toarray()[pressing])  # type: ignore[union-attr]
    filled = []
    for dt in (0.01, 0.02):  # dt A = M + dt (dt + beta) K
        system.assemble(stepper.state, StepSettings(dt, 1.0, np.zeros(3)), nothing)
        filled.append(dt * system.A.toarray())
    K = (filled[1] - filled[0]) / (0.02 * (0.02 + beta) - 0.01 * (0.01 + beta))
    M = filled[0] - 0.01 * (0.01 + beta) * K
    squares = sl.eigh(free.T @ K @ free, free.T @ M @ free, eigvals_only=True)
    return np.sqrt(np.maximum(squares, 0.0))


@pytest.mark.parametrize(("beta", "rests"), [(BETA, False), (12e-3, True)])
def test_a_box_on_a_soft_cube_rocks_as_its_slowest_mode_does(beta: float, rests: bool) -> None:
    """What is left after half a second is the damping that the material has, of a mode of 10 Hz, and nothing of contact."""
    scene = fs.Scene("rocking", dt=0.005, **EM)
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 3), rubber(beta=beta), position=(0, 0, 0.02))
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.064, position=(0.003, 0.002, 0.0625))
    stepper = Stepper(scene, make_solver("auto"))
    rows = stepper.system.v_slices[1]
    times, turning = [], []
    for _ in range(120):
        assert stepper.step().solution.converged
        times.append(stepper.state.t)
        turning.append(stepper.state.v[rows][3])
    assert (np.abs(stepper.state.v).max() < 1e-6) == rests
    if rests:
        return
    slowest = modes(stepper, beta)[:2]  # about both axes; almost the same
    rate = 0.5 * (beta + 0.05 * 0.005) * slowest**2
    late = np.array(times) > 0.25
    t, w = np.array(times)[late], np.array(turning)[late]
    passes = np.flatnonzero(w[:-1] * w[1:] < 0.0)
    peaks = [np.abs(w[a : b + 1]).max() for a, b in pairwise(passes)]
    found = np.pi * (len(passes) - 1) / (t[passes[-1]] - t[passes[0]])
    decay = -np.polyfit(t[passes[:-1]], np.log(peaks), 1)[0]
    assert 0.97 * slowest[0] < found < 1.03 * slowest[1]
    assert 0.9 * rate[0] < decay < 1.1 * rate[1]


def test_what_presses_turns_round_no_more() -> None:
    """A node on the floor ends a step with no velocity, not with that which it came with."""
    scene = fs.Scene("landing", dt=0.01, **EM)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0, 0, 0.021), velocity=(0, 0, -1.0))
    stepper = Stepper(scene, make_solver("auto"))
    report = stepper.step()
    assert report.contacts.lam[:, 0].sum() > 0 and np.abs(stepper.state.v).max() < 1e-9
    # the impulse takes all of the momentum and the weight, once
    assert report.forces.wrench[:, 2].max() * 0.01 == pytest.approx(0.1 * (1.0 + 0.01 * 9.81), rel=1e-8)
    assert report.wrench_balance < 1e-8


# ------------------------------------------------------------------ restitution


@pytest.mark.parametrize("options", [EM, {"theta": 1.0}], ids=["energy-momentum", "backward_euler"])
@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.8, 1.0])
def test_a_rigid_box_rebounds_by_the_restitution_of_the_pair(coefficient: float, options: dict[str, Any]) -> None:
    scene = fs.Scene("drop", dt=0.001, **options)
    floor = scene.add_floor()
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0, 0, 0.02 + 0.05))
    scene.set_restitution(box, floor, coefficient)
    stepper = Stepper(scene, make_solver("auto"))
    height, energy = [], [energies(stepper)]
    for _ in range(300):
        stepper.step()
        height.append(stepper.state.q[2] - 0.02)
        energy.append(energies(stepper))
    landed = int(np.flatnonzero(np.array(height) < 1e-6)[0])
    assert max(height[landed : landed + 205]) == pytest.approx(coefficient**2 * 0.05, abs=0.03 * 0.05)
    assert np.diff(energy).max() < 1e-8 and min(height) > -1e-8


def test_two_rigid_balls_share_their_momentum() -> None:
    scene = fs.Scene("carom", dt=0.001, gravity=(0, 0, 0), default_friction=0.0, **EM)
    a = scene.add_rigid("a", fs.Sphere(0.02), mass=0.1, position=(0, 0, 0), velocity=(1.0, 0, 0))
    b = scene.add_rigid("b", fs.Sphere(0.02), mass=0.3, position=(0.045, 0, 0))
    scene.set_restitution(a, b, 0.5)
    stepper = Stepper(scene, make_solver("auto"))
    reports = [stepper.step() for _ in range(20)]
    first, second = stepper.state.v[0], stepper.state.v[6]
    assert second - first == pytest.approx(0.5, rel=1e-9) and 0.1 * first + 0.3 * second == pytest.approx(0.1, rel=1e-9)
    impulse = sum(0.001 * report.forces.wrench[1, 0] for report in reports)
    assert impulse == pytest.approx(0.3 * second, rel=1e-9)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), True, "bouncy"])
def test_restitution_is_validated(wrong: Any) -> None:
    scene = fs.Scene("wrong", theta=1.0)
    floor = scene.add_floor()
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1)
    with pytest.raises(fs.InputError, match=r"restitution of 'box' and 'floor' is .* allowed are numbers from 0"):
        scene.set_restitution(box, floor, wrong)
    with pytest.raises(fs.InputError, match="restitution: body or surface 'ceiling' is unknown"):
        scene.set_restitution(box, "ceiling", 0.5)


def test_two_statements_about_restitution_may_quarrel() -> None:
    scene = fs.Scene("quarrel", theta=1.0)
    floor = scene.add_floor(surface="oak")
    box = scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0, 0, 0.02), surface="tin")
    scene.set_restitution(box, "oak", 0.5)
    scene.set_restitution("tin", floor, 0.6)
    with pytest.raises(fs.InputError, match=r"restitution of 'floor' and 'box' is stated twice.*set_restitution"):
        Stepper(scene, make_solver("auto"))
    scene.set_restitution(box, floor, 0.7)
    run = fs.simulate(scene, duration=scene.dt)
    assert run.info["restitution"] == [{"bodies": ["floor", "box"], "coefficient": 0.7}]


# ------------------------------------------------------------------ energy, momentum, friction


def test_soft_balls_that_collide_keep_their_momentum() -> None:
    """Off centre, with friction, without gravity: the forces that are reported change the momentum of each."""
    scene = fs.Scene("collision", dt=0.002, gravity=(0, 0, 0), **EM)
    for name, x, y, speed in (("a", 0.0, 0.0, 1.0), ("b", 0.062, 0.02, -1.0)):
        scene.add_soft(name, fs.ball_tets(0.03, 4), rubber(beta=0.0), position=(x, y, 0), velocity=(speed, 0, 0))
    stepper = Stepper(scene, make_solver("auto"))
    system = stepper.system
    energy, pressed = [energies(stepper)], 0
    for _ in range(30):
        before = [body.momentum(stepper.state.q[q], stepper.state.v[v])
                  for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True)]  # fmt: skip
        report = stepper.step()
        energy.append(energies(stepper))
        pressed += report.forces.force_sum.max() > 0.1
        for k, (body, q, v) in enumerate(zip(system.bodies, system.q_slices, system.v_slices, strict=True)):
            gained = body.momentum(stepper.state.q[q], stepper.state.v[v]) - before[k]
            assert gained == pytest.approx(0.002 * report.forces.wrench[k, :3], abs=1e-8)
        assert np.abs(report.momentum).max() < 1e-10
    assert pressed > 3 and np.diff(energy).max() < 1e-9


def test_friction_takes_what_it_says() -> None:
    """A rigid box slides to rest: the way v^2 / (2 mu g), and all of its energy is friction's."""
    scene = fs.Scene("slide", dt=0.005, default_friction=0.3, **EM)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.02, 0.03, 0.01)), mass=0.1, position=(0, 0, 0.01), velocity=(1.0, 0, 0))
    stepper = Stepper(scene, make_solver("auto"))
    reports = [stepper.step() for _ in range(100)]
    assert stepper.state.q[0] == pytest.approx(1.0 / (2 * 0.3 * 9.81), rel=1e-3)
    assert reports[-1].friction_loss == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize("coefficient", [1.0, 0.5])
def test_friction_of_an_impact_takes_the_energy_of_the_motion_along_the_floor(coefficient: float) -> None:
    """A flat box of 2 kg at 1 m/s down and along: it parts with e, and mu (1 + e) is taken off the speed along the floor."""
    scene = fs.Scene("slide", dt=0.01, theta=0.5, gravity=(0, 0, 0), default_friction=0.2)
    floor = scene.add_floor()
    box = scene.add_rigid("box", fs.Box((0.05, 0.05, 0.0005)), mass=2.0, position=(0, 0, 0.0045), velocity=(1.0, 0, -1.0))
    scene.set_restitution(box, floor, coefficient)
    stepper = Stepper(scene, make_solver("exact"))
    reports = [stepper.step() for _ in range(3)]
    left = 1.0 - 0.2 * (1.0 + coefficient)
    assert stepper.state.v[[0, 2]] == pytest.approx([left, coefficient], rel=1e-9)
    assert reports[-1].friction_loss == pytest.approx(1.0 - left**2, rel=1e-9)
    if coefficient == 1.0:  # then nothing else takes any
        assert 2.0 - reports[-1].kinetic_energy == pytest.approx(reports[-1].friction_loss, rel=1e-9)


def test_an_oblique_impact_slides_or_sticks_as_coulomb_says() -> None:
    """The impulse along the floor is mu times that across it, or what stops the box."""
    for friction, left in ((0.2, 1.0 - 0.2 * (2.0 + 0.001 * 9.81)), (0.9, 0.0)):
        scene = fs.Scene("impact", dt=0.001, default_friction=friction, **EM)
        scene.add_floor()
        scene.add_rigid("box", fs.Box((0.05, 0.05, 0.001)), mass=0.1, position=(0, 0, 0.0015), velocity=(1.0, 0, -2.0))
        stepper = Stepper(scene, make_solver("auto"))
        stepper.step()
        assert stepper.state.v[0] == pytest.approx(left, abs=1e-2) and abs(stepper.state.v[2]) < 0.05


def test_a_tumbling_cube_never_gains_energy() -> None:
    scene = fs.Scene("tumbling", dt=0.005, **EM)
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber(1e6, 0.0), position=(0, 0, 0.03), velocity=(1.0, 0, 0),
                   angular_velocity=(0, 60.0, 0))  # fmt: skip
    stepper = Stepper(scene, make_solver("auto"))
    energy = [energies(stepper)]
    for _ in range(60):
        report = stepper.step()
        energy.append(energies(stepper))
    assert np.diff(energy).max() < 1e-6 * energy[0] and 0 < report.friction_loss < energy[0] - energy[-1]


@pytest.mark.parametrize(("cells", "seed"), [(1, 3), (1, 6), (2, 0), (2, 3)])
def test_friction_that_is_taken_back_gives_no_energy(cells: int, seed: int) -> None:
    """Thrown cubes that stick: where a node that pressed is lifted within the step, its friction goes from positions too.

    Before, positions kept what momentum lost: the first of them gained 1 % of its energy in a step.
    """
    scene = fs.Scene("thrown", dt=0.01, default_friction=5.0, **EM)
    scene.add_floor()
    turn = np.random.default_rng(seed).normal(size=3)
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), cells), rubber(1e5, 0.0), position=(0, 0, 0.025), rotation=turn,
                   velocity=(2.0, 0, -1.0), angular_velocity=(0, 60.0, 0))  # fmt: skip
    stepper = Stepper(scene, make_solver("auto"))
    energy = [energies(stepper)]
    for _ in range(30):
        report = take_step(stepper, 6)
        assert report.solution.converged
        energy.append(energies(stepper))
    assert np.diff(energy).max() < 1e-6 * energy[0] and report.friction_loss > 0.02 * energy[0]


def test_one_linearisation_a_step_turns_velocities_round_as_in_the_paper() -> None:
    for tolerance, left in ((None, 1.0), (1e-4, 0.0)):
        scene = fs.Scene("paper", dt=0.01, theta=0.5, gravity=(0, 0, 0), nonlinear_tolerance=tolerance)
        scene.add_floor()
        scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0, 0, 0.02), velocity=(0, 0, -1.0))
        stepper = Stepper(scene, make_solver("auto"))
        stepper.step()
        assert stepper.state.v[2] == pytest.approx(left, abs=1e-8)


def test_a_gripper_that_closes_is_in_balance() -> None:
    """Its base is driven, its fingers meet a cube: the drive bears what the stop of the fingers asks of it."""
    scene = fs.Scene("grip", dt=0.01, **EM)
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber(), position=(0, 0, 0))
    fingers = [fs.Finger(name, fs.Box((0.002, 0.01, 0.01)), offset=(-sign * 0.014, 0, -0.05), closing=(sign, 0, 0))
               for name, sign in (("left", 1.0), ("right", -1.0))]  # fmt: skip
    gripper = scene.add_gripper("gripper", fingers, position=(0, 0, 0.05), mass=0.5, joint_limits=(-0.01, 0.03))
    scene.drive(gripper, force=lambda _: 2.0, fingers=True)
    scene.drive(gripper, fs.Motion([0.0, 0.3], [(0.0, 0.0, 0.0), (0.05, 0.0, 0.02)]))
    stepper = Stepper(scene, make_solver("auto"))
    reports = [stepper.step() for _ in range(25)]
    assert max(report.wrench_balance for report in reports) < 1e-8
    assert reports[-1].forces.force_sum.max() > 3.0 and all(report.solution.converged for report in reports)


def test_a_step_whose_end_is_not_found_has_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("femsim.step.end_velocity.solve_split", lambda *_, **__: 1e-3)
    scene = fs.Scene("unsolved", dt=0.01, **EM)
    scene.add_floor()
    rigid_box(scene)
    scene.gravity[2] = -100.0
    stepper = Stepper(scene, make_solver("auto"))
    said = [take_step(stepper).solution for _ in range(10)]
    assert not all(one.converged for one in said) and any("velocities at the end" in one.message for one in said)


# ------------------------------------------------------------------ the parts


def test_inertia_is_the_second_derivative_of_the_kinetic_energy() -> None:
    scene = fs.Scene("bodies", theta=1.0)
    scene.add_floor()
    rigid_box(scene)
    rod(scene)
    soft_cube(scene)
    for body in scene.bodies:
        q = body.initial_q()
        inertia, plain = body.inertia(q, q), BodyDefaults.inertia(body, q, q).toarray()  # type: ignore[arg-type]
        own = (sp.block_diag(inertia) if isinstance(inertia, np.ndarray) else inertia).toarray()
        assert own == pytest.approx(plain, abs=1e-10 * np.abs(own).max()) and own.any()


class Weighs:
    """A body that has nothing but a mass matrix."""

    def __init__(self, inertia: np.ndarray | sp.spmatrix, n_v: int) -> None:
        self.n_v, self._inertia = n_v, inertia

    def inertia(self, _q: np.ndarray, _q_new: np.ndarray) -> np.ndarray | sp.spmatrix:
        return self._inertia


def some_masses(rng: np.random.Generator, held: np.ndarray) -> tuple[np.ndarray, Masses]:
    """Mass matrix of three bodies with 30 rows, whose blocks stand in any order, one after another, and on the diagonal."""

    def positive(size: int) -> np.ndarray:
        b = rng.normal(size=(size, size))
        return np.asarray(b @ b.T + np.eye(size))

    order = rng.permutation(14)
    mixed = sp.block_diag([positive(k) for k in (1, 3, 3, 6, 1)]).toarray()[order][:, order]
    rows, lumped = np.array([positive(5), positive(5)]), rng.uniform(0.5, 2.0, 6)
    bodies = [Weighs(sp.csc_matrix(mixed), 14), Weighs(rows, 10), Weighs(sp.dia_matrix((lumped[None], [0]), shape=(6, 6)), 6)]
    slices, state = [slice(0, 14), slice(14, 24), slice(24, 30)], State(np.zeros(30), np.zeros(30), 0.0)
    made = Mobility(bodies, slices, slices)  # type: ignore[arg-type]
    made.masses(state, state, ~held)  # so that the second finds the layout of the first
    return sp.block_diag([mixed, *rows, np.diag(lumped)]).toarray(), made.masses(state, state, held)


def test_masses_are_inverted_wherever_their_rows_stand() -> None:
    """Against the inverse of the rows that are not held."""
    rng = np.random.default_rng(0)
    held = rng.uniform(size=30) < 0.2
    whole, masses = some_masses(rng, held)
    plain, free = np.zeros((30, 30)), np.flatnonzero(~held)
    plain[np.ix_(free, free)] = np.linalg.inv(whole[np.ix_(free, free)])
    impulse = rng.normal(size=30)
    assert velocities(masses, impulse) == pytest.approx(plain @ impulse, abs=1e-12) and held.any()
    assert as_matrix(masses).toarray() == pytest.approx(plain, abs=1e-12)
    assert mass_times(sp.csr_matrix(whole), impulse) == pytest.approx(whole @ impulse)
    assert mass_times(np.array([whole[14:19, 14:19], whole[19:24, 19:24]]), impulse[14:24]) == pytest.approx(
        whole[14:24] @ impulse
    )


def test_a_mass_matrix_that_is_none_is_refused() -> None:
    made = Mobility([Weighs(np.array([[[1.0, 2.0], [2.0, 1.0]]]), 2)], [slice(0, 2)], [slice(0, 2)])  # type: ignore[list-item]
    state = State(np.zeros(2), np.zeros(2), 0.0)
    with pytest.raises(ContactError, match="not positive definite"):
        made.masses(state, state, np.zeros(2, dtype=bool))


def test_the_operator_of_masses_is_that_of_dense_algebra() -> None:
    """J M^-1 J^T of some of the contacts, each on a few rows; groups are those that its graph joins."""
    rng = np.random.default_rng(5)
    whole, masses = some_masses(rng, np.zeros(30, dtype=bool))
    J = np.zeros((36, 30))
    for m in range(12):
        J[3 * m : 3 * m + 3, rng.integers(30, size=1 + m % 2)] = rng.normal(size=(3, 1))
    problem = make_problem(sp.eye(30), np.zeros(30), sp.csr_matrix(J), np.zeros(12), 0.5, dt=1.0)
    kept = np.array([0, 2, 3, 5, 6, 8, 9, 11])
    own = J.reshape(12, 3, 30)[kept].reshape(-1, 30)
    W = split_operator(masses, problem, kept, 0.25)
    dense = sp.bsr_matrix((W.blocks, W.indices, W.indptr), shape=(24, 24)).toarray()
    plain = 0.25 * own @ np.linalg.inv(whole) @ own.T
    assert dense == pytest.approx(plain, abs=1e-12)
    assert product(W, np.arange(24.0).reshape(8, 3)).ravel() == pytest.approx(plain @ np.arange(24.0))
    order, ptr = np.empty(8, dtype=np.int64), np.empty(9, dtype=np.int64)
    count = find_groups(W.indptr, W.indices, order, ptr)
    graph = sp.csr_matrix(np.abs(plain.reshape(8, 3, 8, 3)).max(axis=(1, 3)) > 0)
    wanted, label = connected_components(graph, directed=False)
    assert count == wanted and 1 < count < 8
    found = {tuple(order[ptr[k] : ptr[k + 1]]) for k in range(count)}
    assert found == {tuple(np.flatnonzero(label == k)) for k in range(wanted)}


def test_calmed_edges_keep_momentum_and_rigid_motion() -> None:
    """Against the dense algebra of each edge; held points take the impulse."""
    mesh = fs.box_tets((0.03, 0.02, 0.02), 2)
    x, n = mesh.points, len(mesh.points)
    edges, stiffness = edge_stiffness(x, mesh.tets, np.full(len(mesh.tets), 1e5))
    volume = np.abs(np.linalg.det(x[mesh.tets[:, 1:]] - x[mesh.tets[:, :1]])).sum() / 6.0
    lengths = np.linalg.norm(x[edges[:, 1]] - x[edges[:, 0]], axis=1)
    assert (stiffness * lengths**2).sum() == pytest.approx(6 * 1e5 * volume)
    rng = np.random.default_rng(1)
    mobility = 1.0 / rng.uniform(1e-4, 1e-3, n)
    v = rng.normal(size=(n, 3))
    impulse, push = 1e-6 * stiffness, np.zeros((n, 3))
    slow = v.copy()
    calm_edges(x, edges, impulse, mobility, np.zeros_like(v), slow, push)
    mass = 1.0 / mobility
    for moment in (np.eye(3)[None].repeat(n, 0), np.cross(np.eye(3)[None], x[:, None]) * -1.0):
        total = np.einsum("n,nij,nj->i", mass, moment, slow - v)
        assert np.abs(total).max() < 1e-14
    assert mass @ (slow**2).sum(axis=1) < 0.9 * mass @ (v**2).sum(axis=1) and not push.any()
    twin = v.copy()
    for (a, b), c in zip(edges, impulse, strict=True):
        row = np.zeros((n, 3))
        row[b] = (x[b] - x[a]) / np.linalg.norm(x[b] - x[a])
        row[a] = -row[b]
        D = np.outer(row.ravel(), row.ravel())
        twin = np.linalg.solve(np.diag(np.repeat(mass, 3)) + c * D, np.repeat(mass, 3) * twin.ravel()).reshape(n, 3)
    assert slow == pytest.approx(twin, abs=1e-10)
    turning = np.cross([1.0, 2.0, 3.0], x) + np.array([0.1, 0.2, 0.3])
    same = turning.copy()
    calm_edges(x, edges, impulse, mobility, np.zeros_like(v), same, push)
    assert same == pytest.approx(turning, abs=1e-14)
    held = mobility.copy()
    held[:5] = 0.0
    slow = v.copy()
    calm_edges(x, edges, impulse, held, np.zeros_like(v), slow, push)
    assert (slow[:5] == v[:5]).all() and push[:5].any() and not push[5:].any()
    assert (mass[5:, None] * (slow - v)[5:]).sum(axis=0) + push.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-14)


def test_calmed_joints_keep_momentum_and_rigid_motion() -> None:
    scene = fs.Scene("arc", theta=1.0)
    angle = np.linspace(0, 2.0, 9)
    points = 0.1 * np.column_stack([np.sin(angle), 1 - np.cos(angle), 0.2 * angle])
    scene.add_rod("rod", points, fs.circular_section(0.003), fs.Elastic(1e6, 0.3, 1000.0, name="r"))
    body: Any = scene.bodies[0]
    n, q = body.n_links, body.initial_q()
    poses = np.vstack([body.end_frames[:1], q.reshape(-1, 7), body.end_frames[1:]])
    mass, inertia = (np.pad(a, [(1, 1)] + [(0, 0)] * (a.ndim - 1), constant_values=np.inf)
                     for a in (body.link_mass, body.link_inertia))  # fmt: skip
    joints = body.joints()

    def calmed(v: np.ndarray, kind: np.ndarray = joints.kind) -> tuple[np.ndarray, np.ndarray]:
        out, push = v.copy(), np.zeros((n + 2, 6))
        calm_joints(poses, joints.arm, kind, joints.stiffness, 1e-5, mass, inertia, np.zeros_like(v), out, push)
        return out, push

    rng = np.random.default_rng(2)
    v = np.zeros((n + 2, 6))
    v[1:-1] = rng.normal(size=(n, 6))
    slow, push = calmed(v)
    flat, calm = v[1:-1].ravel(), slow[1:-1].ravel()
    assert not push.any() and body.kinetic_energy(q, calm) < 0.7 * body.kinetic_energy(q, flat)
    assert body.momentum(q, calm) == pytest.approx(body.momentum(q, flat), abs=1e-15)
    assert body.angular_momentum(q, calm) == pytest.approx(body.angular_momentum(q, flat), abs=1e-15)
    turn = np.array([1.0, -2.0, 0.5])
    v[:, :3], v[:, 3:] = np.cross(turn, poses[:, :3]) + 0.1, turn
    assert calmed(v)[0] == pytest.approx(v, abs=1e-12)
    kind = joints.kind.copy()
    kind[0] = 1
    v[0] = 0.0
    slow, push = calmed(v, kind)
    assert not slow[0].any() and push[0].all() and not push[1:].any()
    lost = body.momentum(q, v[1:-1].ravel()) - body.momentum(q, slow[1:-1].ravel())
    assert push[0, :3] == pytest.approx(lost, rel=1e-9)


def test_calming_outlives_places_that_a_failed_step_leads_to() -> None:
    """Numbers that rounding has eaten are no error: the step that led there is seen to have failed."""
    identity = np.array([1.0, 0.0, 0.0, 0.0])
    for far in (1e20, 1e150, math.inf, math.nan):
        poses = np.array([[0.0, 0.0, 0.0, *identity], [far, -far, far, *identity], [-far, far, 0.0, *identity]])
        mass, inertia, v = np.full(3, 1e-3), np.full((3, 3), 1e-9), np.full((3, 6), far)
        kind = np.array([1, 1])
        still, push = np.zeros((2, 3, 6))
        calm_joints(poses, np.full(3, 0.01), kind, np.full((2, 6), 1e4), 1e-5, mass, inertia, still, v, push)


def test_calming_takes_what_is_too_fast_and_the_drive_bears_it() -> None:
    """A stiff cube, held at its bottom and let go with velocities on its top: they die out, and forces balance."""
    speeds = {}
    for damping in (0.0, 0.05):
        scene = fs.Scene("stiff", dt=0.01, gravity=(0, 0, 0), strain_damping=damping, **EM)
        scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber(1e7, 0.0), fixed=lambda x: x[:, 2] < -0.0099)
        stepper = Stepper(scene, make_solver("auto"))
        top = stepper.state.q.reshape(-1, 3)[:, 2] > 0.0
        stepper.state.v.reshape(-1, 3)[top] = 0.01 * np.random.default_rng(0).normal(size=(int(top.sum()), 3))
        for _ in range(40):
            assert stepper.step().wrench_balance < 1e-5
        speeds[damping] = np.abs(stepper.state.v).max()
    assert speeds[0.05] < 1e-3 * speeds[0.0]
