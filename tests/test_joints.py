"""Joints between bodies of a scene: closed where each step ends, with the forces that hand and quadrature ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from joined_bars import GRAVITY, LENGTH, MASS, WIDTH, angles, bar, double_pendulum, four_bar

import femsim as fs
from contact import make_solver
from femsim.base.errors import InputError
from femsim.base.rotations import quaternion_to_matrix
from femsim.model.joined import NodeFrame
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper
from materials import circular_section


def stepped(scene: fs.Scene, steps: int | None = None) -> tuple[Stepper, list[StepReport]]:
    """Take all steps of a scene; each must converge and balance."""
    stepper = Stepper(scene, make_solver("auto"))
    reports = [stepper.step() for _ in range(steps or round(scene.duration / scene.dt))]
    assert all(report.solution.converged for report in reports)
    assert max(report.wrench_balance for report in reports) <= 1e-6
    return stepper, reports


def of(stepper: Stepper, name: str) -> Any:
    """Joint of a name."""
    return next(coupling for coupling in stepper.system.couplings if coupling.name == name)


def pose(stepper: Stepper, body: int) -> np.ndarray:
    return stepper.state.q[stepper.system.q_slices[body]]


def test_two_hinged_bars_swing_as_quadrature_says_and_keep_their_energy() -> None:
    a, b = angles(0.5)
    middle = LENGTH * np.array([np.cos(a) + 0.5 * np.cos(b), np.sin(a) + 0.5 * np.sin(b)])
    wrong = []
    for dt in (0.01, 0.005):
        stepper, reports = stepped(double_pendulum(dt, 0.5))
        wrong.append(float(np.abs(pose(stepper, 1)[[0, 2]] - middle).max()))
        energy = [report.kinetic_energy + report.potential_energy for report in reports]
        assert max(energy) <= 1e-9 and energy[-1] >= -1e-4 * reports[-1].kinetic_energy
        assert stepper.system.opening <= 2e-9
    assert wrong[1] <= 1.5e-4
    assert 3.0 <= wrong[0] / wrong[1] <= 5.0  # of second order


def test_the_reaction_is_what_moves_the_bars() -> None:
    scene = double_pendulum(0.005, 0.1)
    run = fs.simulate(scene)
    ground = run.sensors["ground"].force
    stepper = Stepper(scene, make_solver("auto"))
    before = np.zeros(3)
    for push in ground:
        after = stepper.step().momentum
        rate = (after - before) / 0.005
        before = after
        assert push == pytest.approx(rate + np.array([0.0, 0.0, 2 * MASS * GRAVITY]), abs=1e-5)
    assert np.abs(run.sensors["ground"].torque).max() <= 1e-9  # a hinge in its plane, without friction
    assert np.abs(ground[:, 2]).min() > 1.0


def test_a_loop_of_four_bars_closes() -> None:
    stepper, reports = stepped(four_bar(0.01, 1.0))
    energy = [report.kinetic_energy + report.potential_energy for report in reports]
    assert max(np.diff(energy)) <= 1e-6 and energy[0] - energy[-1] <= 2e-3 * max(r.kinetic_energy for r in reports)
    crank, coupler = pose(stepper, 0), pose(stepper, 1)
    length = float(np.hypot(0.1, 0.17))
    tip = crank[:3] + quaternion_to_matrix(crank[3:7]) @ [length / 2, 0.0, 0.0]
    reach = float(np.hypot(0.4, 0.23))
    assert coupler[:3] - quaternion_to_matrix(coupler[3:7]) @ [reach / 2, 0.0, 0.0] == pytest.approx(tip, abs=1e-8)
    assert np.linalg.norm(tip) == pytest.approx(length, abs=1e-8)
    assert reports[-1].kinetic_energy > 0.1


def test_free_joined_bodies_keep_momentum_and_spin() -> None:
    scene = fs.Scene("free", dt=0.01, duration=0.5, gravity=(0, 0, 0), nonlinear_tolerance=1e-10)
    bar(scene, "a", [0, 0, 0], [LENGTH, 0, 0], velocity=(0.1, 0.2, -0.3), angular_velocity=(1.0, 2.0, 3.0))
    bar(scene, "b", [LENGTH, 0, 0], [2 * LENGTH, 0, 0])
    scene.join("b", "a", "ball", at=(LENGTH, 0, 0))
    stepper = Stepper(scene, make_solver("auto", tolerance=1e-12))
    first = stepper.step()

    def spin() -> np.ndarray:
        system, state = stepper.system, stepper.state
        return np.sum(
            [b.angular_momentum(state.q[q], state.v[v]) for b, q, v in
             zip(system.bodies, system.q_slices, system.v_slices, strict=True)], axis=0
        )  # fmt: skip

    start = spin()
    reports = [stepper.step() for _ in range(49)]
    assert reports[-1].momentum == pytest.approx(MASS * np.array([0.1, 0.2, -0.3]), abs=1e-10)
    assert spin() == pytest.approx(start, abs=1e-9)
    assert first.kinetic_energy * (1 - 1e-2) <= reports[-1].kinetic_energy <= first.kinetic_energy * (1 + 1e-12)


def test_a_weld_bears_weight_and_moment() -> None:
    scene = fs.Scene("weld", dt=0.01, duration=0.05)
    bar(scene, "a", [0, 0, 0], [LENGTH, 0, 0])
    bar(scene, "b", [LENGTH, 0, 0], [2 * LENGTH, 0, 0])
    scene.join("a", "world", at=(0, 0, 0), name="wall")
    scene.join("b", "a", at=(LENGTH, 0, 0), name="middle")
    stepper, _ = stepped(scene)
    weight = MASS * GRAVITY
    assert of(stepper, "wall").wrench == pytest.approx([0, 0, 2 * weight, 0, -2 * weight * LENGTH, 0], abs=1e-8)
    assert of(stepper, "middle").wrench == pytest.approx([0, 0, weight, 0, -weight * LENGTH / 2, 0], abs=1e-8)


@pytest.mark.parametrize("strength, holds", [(1.2 * MASS * GRAVITY, True), (0.8 * MASS * GRAVITY, False)])
def test_a_weld_breaks_above_its_strength(strength: float, holds: bool) -> None:
    scene = fs.Scene("break", dt=0.01, duration=0.1)
    bar(scene, "a", [0, 0, 0], [LENGTH, 0, 0])
    scene.join("a", "world", at=(LENGTH / 2, 0, 0), breakable=strength, name="weld")
    stepper, _ = stepped(scene)
    fallen = 0.09  # the first step still holds, and bears more than it may
    assert of(stepper, "weld").broken is not holds
    assert pose(stepper, 0)[2] == pytest.approx(0.0 if holds else -0.5 * GRAVITY * fallen**2, abs=1e-9)
    assert of(stepper, "weld").wrench[2] == pytest.approx(MASS * GRAVITY if holds else 0.0, abs=1e-9)
    again = Stepper(scene, make_solver("auto"))  # a new run begins whole
    assert not of(again, "weld").broken
    again.restore(stepper.state)
    assert of(again, "weld").broken is not holds
    fresh = fs.Scene("break", dt=0.01, duration=0.1)  # as in a process that goes on with a run
    bar(fresh, "a", [0, 0, 0], [LENGTH, 0, 0])
    fresh.join("a", "world", at=(LENGTH / 2, 0, 0), breakable=strength, name="weld")
    other = Stepper(fresh, make_solver("auto"))
    other.restore(stepper.state)
    for one in (stepper, other):
        one.step()
    np.testing.assert_array_equal(other.state.q, stepper.state.q)


def slope(**options: Any) -> fs.Scene:
    """A box on a rail that falls by 30 degrees."""
    scene = fs.Scene("slope", dt=0.01, duration=0.2)
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=MASS)
    axis = (np.cos(np.pi / 6), 0.0, -np.sin(np.pi / 6))
    scene.join("box", "world", "slider", at=(0, 0, 0), axis=axis, name="rail", **options)
    return scene


def test_a_slider_slides_sticks_and_stops() -> None:
    pull = MASS * GRAVITY / 2  # along the rail
    stepper, _ = stepped(slope())
    assert of(stepper, "rail").position == pytest.approx(0.5 * GRAVITY / 2 * 0.2**2, rel=1e-6)
    assert np.linalg.norm(of(stepper, "rail").wrench[:3]) == pytest.approx(MASS * GRAVITY * np.cos(np.pi / 6), rel=1e-7)
    stepper, reports = stepped(slope(friction=0.5 * pull))
    assert of(stepper, "rail").position == pytest.approx(0.25 * GRAVITY / 2 * 0.2**2, rel=1e-6)
    gained = reports[-1].kinetic_energy + reports[-1].potential_energy
    assert gained == pytest.approx(-0.5 * pull * of(stepper, "rail").position, rel=1e-6)
    assert reports[-1].work == pytest.approx(gained - reports[-1].potential_energy, abs=1e-6)
    stepper, _ = stepped(slope(friction=1.5 * pull))
    assert of(stepper, "rail").position == pytest.approx(0.0, abs=1e-10)
    assert of(stepper, "rail").wrench[:3] == pytest.approx([0, 0, MASS * GRAVITY], abs=1e-7)
    stepper, reports = stepped(slope(limits=(0.0, 0.02)))
    assert of(stepper, "rail").position == pytest.approx(0.02, abs=1e-9)
    assert of(stepper, "rail").wrench[:3] == pytest.approx([0, 0, MASS * GRAVITY], abs=1e-7)
    assert reports[-1].kinetic_energy <= 1e-12


def test_a_hinge_stops_at_its_limit_with_the_torque_of_the_weight() -> None:
    scene = fs.Scene("limit", dt=0.01, duration=0.4)
    bar(scene, "a", [0, 0, 0], [LENGTH, 0, 0])
    scene.join("a", "world", "hinge", at=(0, 0, 0), axis=(0, 1, 0), limits=(0.0, 0.3), name="hinge")
    stepper, _ = stepped(scene)
    assert of(stepper, "hinge").position == pytest.approx(0.3, abs=1e-9)
    torque = -MASS * GRAVITY * LENGTH / 2 * np.cos(0.3)
    assert of(stepper, "hinge").wrench == pytest.approx([0, 0, MASS * GRAVITY, 0, torque, 0], abs=1e-6)


def test_a_hinge_counts_whole_turns() -> None:
    scene = fs.Scene("turns", dt=0.01, duration=0.4, gravity=(0, 0, 0))
    scene.add_rigid("disc", fs.Box((0.05, 0.01, 0.05)), mass=MASS, angular_velocity=(0, 30.0, 0))
    scene.join("disc", "world", "hinge", at=(0, 0, 0), axis=(0, 1, 0), name="axle")
    stepper, _ = stepped(scene)
    # Cayley's map turns by 2 arctan(dt w / 2) a step
    assert of(stepper, "axle").position == pytest.approx(40 * 2.0 * np.arctan(0.15), rel=1e-9)


def test_a_body_hangs_on_a_driven_one_which_feels_it() -> None:
    scene = fs.Scene("driven", dt=0.01, duration=0.3)
    scene.add_rigid("hand", fs.Box((0.05, 0.05, 0.05)), mass=1.0)
    bar(scene, "a", [0.05, 0, 0], [0.05 + LENGTH, 0, 0])
    scene.drive("hand", fs.Motion([0.0, 0.3], [(0, 0, 0), (0, 0, 0.1)]))
    scene.join("a", "hand", at=(0.05, 0, 0), name="weld")
    scene.sensor("mount", "hand", kind="mount")
    run = fs.simulate(scene)
    stepper, reports = stepped(scene)
    lifted = pose(stepper, 0)[2]
    assert lifted == pytest.approx(0.1, abs=1e-9) and pose(stepper, 1)[2] == pytest.approx(0.1, abs=1e-9)
    before = np.zeros(3)
    for push, report in zip(run.sensors["mount"].force, reports, strict=True):
        rate, before = (report.momentum - before) / 0.01, report.momentum
        assert push == pytest.approx(rate + np.array([0.0, 0.0, (MASS + 1.0) * GRAVITY]), abs=1e-5)


def test_a_soft_cube_is_glued_to_a_plate() -> None:
    scene = fs.Scene("glue", dt=0.01, duration=0.1)
    scene.add_rigid("plate", fs.Box((0.03, 0.03, 0.002)), mass=0.1, position=(0, 0, 0.022))
    cube = scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 2), "ecoflex_00_50")
    scene.drive("plate", fs.Motion([0.0, 0.1], [(0, 0, 0), (0, 0, 0.01)]))
    scene.join(cube, "plate", at=(0, 0, 0.02), where=lambda x: x[:, 2] > 0.0199, name="glue")
    scene.sensor("glue", "glue", kind="reaction")
    start = scene.bodies[1].initial_q().reshape(-1, 3)
    glued = start[:, 2] > 0.0199
    assert glued.sum() >= 9
    stepper = Stepper(scene, make_solver("auto"))
    q, v = stepper.system.q_slices[1], stepper.system.v_slices[1]
    body, before = scene.bodies[1], np.zeros(3)
    for _ in range(10):
        report = stepper.step()
        assert report.solution.converged and report.wrench_balance <= 1e-6
        after = body.momentum(stepper.state.q[q], stepper.state.v[v])
        rate, before = (after - before) / 0.01, after
        assert of(stepper, "glue").wrench[:3] == pytest.approx(rate + np.array([0.0, 0.0, body.mass * GRAVITY]), abs=1e-6)
    moved = stepper.state.q[q].reshape(-1, 3)
    assert moved[glued] == pytest.approx(start[glued] + np.array([0.0, 0.0, 0.01]), abs=1e-8)
    assert not np.allclose(moved[~glued], start[~glued] + np.array([0.0, 0.0, 0.01]), atol=1e-5)  # it hangs


def test_a_plug_hangs_on_a_cable() -> None:
    scene = fs.Scene("plug", dt=0.01, duration=0.3, theta=1.0)
    points = np.column_stack([np.zeros(11), np.zeros(11), np.linspace(0.0, -0.2, 11)])
    section = circular_section(0.002)
    scene.add_rod("cable", points, section, fs.Elastic(young_modulus=1e6, poisson_ratio=0.45, density=1100.0),
                  start=fs.RodEnd("clamped"))  # fmt: skip
    scene.add_rigid("plug", fs.Box((0.005, 0.005, 0.01)), mass=0.02, position=(0, 0, -0.21))
    scene.join("plug", "cable", at=(0, 0, -0.2), name="weld")
    stepper, _ = stepped(scene)
    assert of(stepper, "weld").wrench[2] == pytest.approx(0.02 * GRAVITY, rel=0.2)
    cable = stepper.state.q[stepper.system.q_slices[0]].reshape(-1, 7)
    plug = pose(stepper, 1)
    gap = plug[:3] - cable[-1, :3]
    assert np.linalg.norm(gap) == pytest.approx(0.01 + 0.01, abs=1e-8)


def test_a_state_restored_goes_on_to_the_last_bit() -> None:
    scene = double_pendulum(0.01, 0.2)
    stepper = Stepper(scene, make_solver("exact", lag=False))
    for _ in range(5):
        stepper.step()
    kept = stepper.state
    ends = []
    for _ in range(2):
        stepper.restore(kept)
        for _ in range(5):
            stepper.step()
        ends.append(stepper.state)
    assert np.array_equal(ends[0].q, ends[1].q) and np.array_equal(ends[0].v, ends[1].v)


def test_joined_parts_touch_each_other_only_where_it_is_said() -> None:
    for contact in (False, True):
        scene = fs.Scene("touch", dt=0.01, duration=0.02)
        scene.add_rigid("a", fs.Box((0.05, 0.05, 0.05)), mass=1.0)
        scene.add_rigid("b", fs.Box((0.05, 0.05, 0.05)), mass=1.0, position=(0, 0, 0.1))
        scene.join("b", "a", "ball", at=(0, 0, 0.05), contact=contact)
        stepper = Stepper(scene, make_solver("auto"))
        stepper.step()
        assert stepper.problem is not None and (stepper.problem.n_contacts > 0) == contact


@pytest.mark.parametrize(
    "change, said",
    [
        (dict(kind="revolute", axis=(0, 1, 0)), "did you mean 'hinge'"),
        (dict(kind="hinge"), "a hinge has an axis; give it"),
        (dict(axis=(0, 1, 0)), "has no axis; leave it out"),
        (dict(friction=1.0), "neither limits nor friction"),
        (dict(kind="hinge", axis=(0, 0, 0)), "is zero; give a direction"),
        (dict(kind="hinge", axis=(0, 1, 0), limits=(0.1, 0.2)), "a lower one <= 0"),
        (dict(kind="hinge", axis=(0, 1, 0), limits=(0.0, 0.0)), "for no play use a weld"),
        (dict(breakable=-1.0), "allowed are positive numbers, N or"),
        (dict(b="q"), "'q' is unknown in scene"),
        (dict(b="a"), "both are the same; join two bodies"),
        (dict(a="world", b="a"), "stands still; name the body that moves first"),
        (dict(where=lambda x: x[:, 2] > 0), "where says which nodes of a soft body"),
        (dict(a="soft"), "say which by where"),
        (dict(b="soft"), "name the soft body first"),
        (dict(a="soft", b="other", where=lambda x: x[:, 2] > 0), "does not glue two soft bodies to each other"),
        (dict(a="soft", where=lambda x: x[:, 2] > 9.0), "where of join of soft and b"),
    ],
)
def test_wrong_joints_are_a_sentence(change: dict[str, Any], said: str) -> None:
    scene = fs.Scene("wrong", dt=0.01, duration=0.1)
    bar(scene, "a", [0, 0, 0], [LENGTH, 0, 0])
    bar(scene, "b", [0, 0, 1], [LENGTH, 0, 1])
    for name, height in (("soft", -1), ("other", -2)):
        scene.add_soft(name, fs.box_tets((WIDTH, WIDTH, WIDTH), 1), "ecoflex_00_50", position=(0, 0, height))
    given: dict[str, Any] = dict(a="a", b="b", at=(0, 0, 0)) | change
    join: Callable[..., Any] = scene.join
    with pytest.raises(InputError, match=said):
        join(given.pop("a"), given.pop("b"), **given)


def test_glued_nodes_as_a_frame_move_as_their_mean() -> None:
    rng = np.random.default_rng(1)
    frame, q = NodeFrame(np.array([1, 3, 4])), rng.normal(size=18)
    v = rng.normal(size=9)
    moved = frame.place(frame.moved(q, v, 0.1)) - frame.place(q)
    assert frame.jacobian() @ v == pytest.approx(np.concatenate([moved[:3] / 0.1, np.zeros(3)]), abs=1e-12)


def door(strength: float) -> fs.Scene:
    """A bar on a hinge falls against its stop with a bar at its end, on a weld that bears so much torque."""
    scene = fs.Scene("door", dt=0.005, duration=0.5)
    bar(scene, "door", [0, 0, 0], [LENGTH, 0, 0])
    bar(scene, "end", [LENGTH, 0, 0], [2 * LENGTH, 0, 0])
    scene.join("door", "world", "hinge", at=(0, 0, 0), axis=(0, 1, 0), limits=(-1.0, 0.2), name="hinge")
    scene.join("end", "door", at=(LENGTH, 0, 0), breakable=(np.inf, strength), name="weld")
    return scene


@pytest.mark.parametrize("dt", [0.002, 0.005])
def test_a_hinge_that_falls_on_its_stop_ends_there(dt: float) -> None:
    """The step that meets the stop ends at it, not half a step beyond; nothing comes back of what it had."""
    scene = door(np.inf)
    stepper, hinge = Stepper(scene, make_solver("auto"), dt=dt), scene.couplings[0]
    turned, kept = [], []
    for _ in range(round(0.3 / dt)):
        report = stepper.step()
        q = pose(stepper, 0)
        turned.append(2.0 * float(np.arctan2(q[5], q[3])))
        kept.append(report.kinetic_energy - report.work)
    assert hinge.position == pytest.approx(turned[-1], abs=1e-12) and turned[-1] == pytest.approx(0.2, abs=1e-9)
    assert max(turned) <= 0.2 + 1e-9 and max(np.diff(kept)) <= 1e-9
    fallen = 2.0 * MASS * LENGTH * np.sin(0.2)  # of both bars: half of a length and one and a half
    assert kept[-1] == pytest.approx(-GRAVITY * fallen, abs=1e-8)


def test_a_weld_that_breaks_as_a_hinge_stops_gives_no_energy() -> None:
    """It breaks at the end of the step: until then the velocities are those of bodies that it holds, which stand."""
    run = fs.simulate(door(np.inf), "exact")
    gone = run.steps["kinetic_energy_J"] - run.steps["work_J"]
    stop = int(np.argmin(np.diff(gone))) + 1
    scene = door(np.inf)
    scene.sensor("weld", "weld", kind="reaction")
    bears = float(np.linalg.norm(fs.simulate(scene, "exact", duration=0.005 * (stop + 1)).sensors["weld"].torque[stop]))
    for share, holds in ((0.98, False), (1.02, True)):
        stepper, steps = stepped(door(share * bears), stop + 1)
        assert of(stepper, "weld").broken is not holds  # by the force that acts, which the sensor reads
        assert steps[-1].kinetic_energy < 1e-6 * steps[-2].kinetic_energy
    run = fs.simulate(door(0.98 * bears), "exact")
    assert (
        run.verdict != "wrong"
        and np.diff(run.steps["kinetic_energy_J"] - run.steps["work_J"]).max() < 1e-6 * run.steps["kinetic_energy_J"].max()
    )


def test_dry_friction_stops_a_slider_which_then_bears_nothing() -> None:
    scene = fs.Scene("brake", dt=0.01, duration=0.5)
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=MASS, velocity=(0.5, 0, 0))
    scene.join("box", "world", "slider", at=(0, 0, 0), axis=(1, 0, 0), friction=1.5 * MASS, name="rail")
    stepper, _ = stepped(scene)  # it stands after a third of a second
    assert of(stepper, "rail").position == pytest.approx(0.5**2 / 3.0, rel=2e-3)
    assert of(stepper, "rail").wrench[:3] == pytest.approx([0, 0, MASS * GRAVITY], abs=1e-8)
    assert abs(stepper.state.v[0]) < 1e-12


@pytest.mark.parametrize("stops", [False, True])
def test_loops_that_cannot_move_converge(stops: bool) -> None:
    """Random loops of boxes with more joints than they need; a hinge on its stop cannot turn, and closes by rounding alone."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 9))
        turn = 2.0 * np.pi * np.arange(n) / n
        at = 0.025 * n * np.column_stack([np.cos(turn), np.sin(turn), np.zeros(n)]) + rng.uniform(-0.02, 0.02, (n, 3))
        scene = fs.Scene("loop", dt=0.01, duration=0.1)
        for k in range(n):
            shape = fs.Box(tuple(rng.uniform(0.02, 0.05, 3)))
            scene.add_rigid(f"b{k}", shape, density=float(rng.uniform(300, 8000)), position=at[k], rotation=rng.uniform(-1, 1, 3))
        hinges = rng.permutation([True, *(rng.random(n - 1) < 0.5)])
        for k, hinge in enumerate(hinges):
            kind: dict[str, Any] = {"kind": "hinge", "axis": rng.standard_normal(3)} if hinge else {"kind": "weld"}
            ends = {"limits": (0.0, 0.2)} if hinge and stops else {}
            scene.join(f"b{k}", f"b{(k + 1) % n}", at=0.5 * (at[k] + at[(k + 1) % n]), **kind, **ends)
        scene.join("b0", "world", kind="weld", at=at[0])
        run = fs.simulate(scene)
        assert (run.status, run.verdict) == ("converged", "good"), (seed, run.message)
