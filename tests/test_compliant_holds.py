"""Nodes of soft bodies held by springs: closed forms, limits, momenta, energy, sensors, memory, what is said, wrong input."""

from __future__ import annotations

import cProfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs
from benchmarks.scale_scenes import led_cube
from femsim.base.rotations import cross, cross_matrix, quaternion_from_vector
from femsim.cli.scenes import describe
from femsim.model.bodies.body import StepSettings
from femsim.model.compliance import CompliantHold
from femsim.model.frames import PatchFrame, Points
from femsim.model.kept_shape import KeptShape, triad
from femsim.step.stepper import Stepper

FOAM = fs.Elastic(5e4, 0.3, 1000.0, name="foam")
STILL = fs.Motion([0.0], [(0.0, 0.0, 0.0)])
#: Of a cube of 1 kg with sides of 0.1 m.
WEIGHT = 9.81
EXACT = {"tolerance": 1e-12}


def top(x: np.ndarray) -> np.ndarray:
    """Upper face of the cube at the start."""
    return np.asarray(x[:, 2] > 0.0499)


def cube(
    motion: Any = STILL, *, scene: dict[str, Any] | None = None, body: dict[str, Any] | None = None, **hold: Any
) -> fs.Scene:
    """Soft cube of 1 kg whose upper face a spring holds, with a mount sensor."""
    out = fs.Scene("cube", **({"dt": 0.01, "duration": 1.5} | (scene or {})))
    soft = out.add_soft("cube", fs.box_tets((0.1, 0.1, 0.1), 2), FOAM, **(body or {}))
    held = out.hold(soft, top, motion, name="grip", **({"stiffness": (500.0, 20.0)} | hold))
    out.sensor("wrist", held, kind="mount")
    return out


def held_nodes(scene: fs.Scene, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the held nodes now and at the start, (k, 3), m; the cube is the first body."""
    hold = scene.holds[0]
    return q[: scene.bodies[0].n_q].reshape(-1, 3)[hold.nodes], hold.rest


def moved(scene: fs.Scene, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Displacement of their mean, m, and rotation vector, rad."""
    x, rest = held_nodes(scene, q)
    turn, _ = Rotation.align_vectors(x - x.mean(axis=0), rest - rest.mean(axis=0))
    return x.mean(axis=0) - rest.mean(axis=0), turn.as_rotvec()


def bent(scene: fs.Scene, q: np.ndarray) -> float:
    """Largest change of a distance between held nodes, m."""
    x, rest = held_nodes(scene, q)
    return float(np.abs(np.linalg.norm(x[:, None] - x, axis=2) - np.linalg.norm(rest[:, None] - rest, axis=2)).max())


@pytest.mark.parametrize("step", [{}, {"theta": 1.0}, {"theta": 1.0, "nonlinear_tolerance": None}])
def test_a_held_block_sags_by_its_weight_over_the_stiffness(step: dict[str, Any]) -> None:
    scene = cube(scene=step | {"duration": 2.0})
    run = fs.simulate(scene)
    assert run.verdict == "good" and run.steps["wrench_balance"].max() < 1e-6
    way, turn = moved(scene, run.stepper.state.q)
    assert way == pytest.approx([0, 0, -WEIGHT / 500.0], abs=1e-7) and np.abs(turn).max() < 1e-4
    assert run.sensors["wrist"].force[-1] == pytest.approx([0, 0, WEIGHT], abs=1e-5)
    assert bent(scene, run.stepper.state.q) < 1e-12


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_torque_turns_the_nodes_by_the_angular_stiffness(axis: int) -> None:
    """Forces with a moment and no sum on a cube without weight; about its own place, so the spring turns it and moves nothing."""
    moment = np.zeros(3)
    moment[axis] = 0.4
    scene = fs.Scene("turned", dt=0.01, duration=2.0, gravity=(0, 0, 0), theta=1.0)
    points = fs.box_tets((0.1, 0.1, 0.1), 2).points
    arms = points - points.mean(axis=0)
    spin = np.linalg.solve((arms**2).sum() * np.eye(3) - arms.T @ arms, moment)
    load = np.cross(spin, arms)
    scene.add_soft("cube", fs.box_tets((0.1, 0.1, 0.1), 2), fs.Elastic(5e6, 0.3, 1000.0), load=lambda t: load)
    scene.hold("cube", lambda x: np.ones(len(x), dtype=bool), STILL, stiffness=(500.0, 2.0))
    run = fs.simulate(scene)
    way, turn = moved(scene, run.stepper.state.q)
    # the load is dead, so its moment about the turned cube is less by the cosine
    turned = Rotation.from_rotvec(turn).apply(arms)
    assert turn == pytest.approx(np.cross(turned, load).sum(axis=0) / 2.0, abs=1e-7)
    assert np.abs(turn).max() > 0.15 and np.abs(way).max() < 1e-9


def test_it_lets_go_at_its_largest_force_and_falls() -> None:
    """6 N of 9.81 N: all falls with the rest of the weight."""
    scene = cube(scene={"duration": 1.0}, max_force=6.0)
    run = fs.simulate(scene)
    assert run.verdict == "good"
    assert np.abs(run.sensors["wrist"].force).max() == pytest.approx(6.0, rel=1e-9)
    speed = scene.bodies[0].momentum(run.stepper.state.q, run.stepper.state.v)[2] / scene.bodies[0].mass
    assert speed == pytest.approx(-(WEIGHT - 6.0), rel=0.02)  # until the limit is reached it falls faster


def test_the_largest_torque_is_its_own() -> None:
    turning = fs.Motion([0.0, 0.1], [(0, 0, 0), (0.02, 0, 0)], [(0, 0, 0), (0, 0, 1.0)])
    run = fs.simulate(cube(turning, scene={"duration": 0.4, "gravity": (0, 0, 0)}, max_force=(1e3, 0.05)))
    assert np.linalg.norm(run.sensors["wrist"].torque, axis=1).max() == pytest.approx(0.05, rel=1e-3)
    assert np.linalg.norm(run.sensors["wrist"].force, axis=1).max() > 0.5


def test_a_stiffer_hold_comes_to_the_exact_one() -> None:
    """The error goes with one over the stiffness, of places and of forces."""
    motion = fs.Motion([0.0, 0.3], [(0, 0, 0), (0.02, 0, 0.05)], [(0, 0, 0), (0.0, 0.4, 0.2)])
    step = {"theta": 1.0, "duration": 0.5, "nonlinear_tolerance": 1e-7}
    exact = fs.simulate(cube(motion, scene=step, stiffness=None))
    wrist, errors = exact.sensors["wrist"], []
    for k in (1e5, 1e6, 1e7):
        run = fs.simulate(cube(motion, scene=step, stiffness=(k, 0.01 * k)))
        assert run.verdict == "good"
        own = run.sensors["wrist"]
        pairs = ((run.stepper.state.q, exact.stepper.state.q), (own.force, wrist.force), (own.torque, wrist.torque))
        errors.append([np.abs(one - other).max() for one, other in pairs])
    away, force, torque = errors[-1]
    assert away < 2e-6 and force < 1e-3 * np.abs(wrist.force).max() and torque < 1e-2 * np.abs(wrist.torque).max()
    assert errors[1][0] / away == pytest.approx(10.0, rel=0.1) and errors[1][1] / force == pytest.approx(10.0, rel=0.2)


def test_nodes_without_a_spring_keep_momenta_and_energy() -> None:
    """Next to no stiffness: a tumbling cube whose face is rigid keeps both momenta to rounding, and its energy."""
    scene = cube(
        scene={"gravity": (0, 0, 0), "nonlinear_tolerance": 1e-10, "strain_damping": 0.0},
        body={"velocity": (0.1, 0, 0), "angular_velocity": (1.0, 2.0, 3.0)},
        stiffness=(1e-12, 0.0), damping=(0.0, 0.0),
    )  # fmt: skip
    stepper, body = Stepper(scene, fs.make_solver("exact", **EXACT)), scene.bodies[0]
    mass = body.inertia(body.initial_q(), body.initial_q()).diagonal()[::3]  # type: ignore[union-attr]

    def kept() -> np.ndarray:
        q, v = stepper.state.q.reshape(-1, 3), stepper.state.v.reshape(-1, 3)
        return np.concatenate([mass @ v, np.cross(q, mass[:, None] * v).sum(axis=0), [stepper.system.energy(stepper.state)]])

    start = kept()
    for _ in range(100):
        assert stepper.step().solution.converged
    assert np.abs(kept() - start)[:6].max() < 2e-12
    assert kept()[6] == pytest.approx(start[6], rel=1e-6)
    assert bent(scene, stepper.state.q) < 1e-9


def test_the_energy_of_an_undamped_spring_is_kept_and_its_work_counted() -> None:
    scene = cube(
        scene={"gravity": (0, 0, 0), "nonlinear_tolerance": 1e-10, "strain_damping": 0.0}, body={"velocity": (0.3, 0, 0.1)},
        stiffness=(60.0, 0.5), damping=(0.0, 0.0),
    )  # fmt: skip
    stepper, whole, beside, moving = Stepper(scene, fs.make_solver("exact", **EXACT)), [], [], []
    for _ in range(150):
        report = stepper.step()
        way, turn = moved(scene, stepper.state.q)
        held = stepper.system.energy(stepper.state)
        whole.append(held + 0.5 * (60.0 * way @ way + 0.5 * turn @ turn))
        beside.append(held - report.work)
        moving.append(held)
    assert np.ptp(whole) < 1e-3 * whole[0] and np.ptp(beside) < 1e-5 * whole[0]  # as of driven bodies, see test_compliance
    assert np.ptp(moving) > 0.8 * whole[0]  # the spring takes most of it in turn


def test_it_presses_on_the_floor_with_its_stiffness_where_an_exact_hold_goes_through() -> None:
    """Led 20 mm down, 1 mm above the floor: stiffness times the way that is left, or the limit."""

    def pressed(**hold: Any) -> fs.Run:
        scene = fs.Scene("pressed", dt=0.01, duration=0.5)
        scene.add_floor()
        soft = scene.add_soft("cube", fs.box_tets((0.03, 0.03, 0.03), 2), FOAM, position=(0, 0, 0.016))
        down = fs.Motion([0.0, 0.25], [(0, 0, 0), (0, 0, -0.02)])
        scene.hold(soft, lambda x: x[:, 2] < 0.002, down, name="grip", **hold)
        scene.sensor("grip", "grip", kind="mount")
        scene.sensor("touch", soft, kind="contact")
        return fs.simulate(scene)

    for most, force in ((np.inf, 500.0 * 0.019), (3.0, 3.0)):
        run = pressed(stiffness=(500.0, 1.0), max_force=most)
        assert run.verdict == "good"
        assert run.sensors["grip"].force[-1, 2] == pytest.approx(-force, rel=1e-5)
        assert run.sensors["touch"].force[-1, 2] == pytest.approx(force + WEIGHT * 0.027, rel=1e-3)
    stopped = pressed()
    advice = [reason["advice"] for reason in stopped.info["health"]["reasons"]]
    assert stopped.verdict == "wrong" and "hold with a stiffness or by a force, which give way" in advice[0]


def test_what_goes_with_a_hand_is_borne_by_it() -> None:
    """On a hand that is driven exactly: its mount reads its own weight and the wrench on the nodes, about its centre."""
    scene = fs.Scene("hand", dt=0.01, duration=2.0)
    soft = scene.add_soft("cube", fs.box_tets((0.1, 0.1, 0.1), 2), FOAM)
    hand = scene.add_rigid("hand", fs.Box((0.01, 0.01, 0.01)), mass=0.2, position=(0.03, 0, 0.08))
    scene.drive(hand, fs.Motion([0.0, 0.3], [(0, 0, 0), (0.01, 0, 0.02)]))
    scene.ignore_contact(soft, hand)
    scene.hold(soft, top, on=hand, name="grip", stiffness=(2000.0, 50.0))
    for name in ("grip", "hand"):
        scene.sensor(name, name, kind="mount")
    run = fs.simulate(scene)
    assert run.verdict == "good"
    grip, own = run.sensors["grip"], run.sensors["hand"]
    q = run.stepper.state.q
    x, base = held_nodes(scene, q)[0].mean(axis=0), q[scene.bodies[0].n_q :][:3]
    assert grip.force[-1] == pytest.approx([0, 0, WEIGHT], abs=1e-4)
    assert own.force[-1] - grip.force[-1] == pytest.approx([0, 0, 0.2 * 9.81], abs=1e-9)
    assert own.torque[-1] == pytest.approx(grip.torque[-1] + cross(x - base, grip.force[-1]), abs=1e-6)
    # the weight hangs beside the hand: the spring turns by its moment there
    body = scene.bodies[0]
    centre = body.centre_of_mass(q[: body.n_q])
    assert own.torque[-1] == pytest.approx(cross(centre - base, [0, 0, WEIGHT]), abs=1e-4)
    _, turn = moved(scene, q)
    assert turn[1] == pytest.approx(-own.torque[-1, 1] / 50.0, rel=1e-5) and abs(turn[1]) > 3e-3


def drive_of(points: np.ndarray, limit: tuple[float, float]) -> CompliantHold:
    """Spring on three of some nodes, about a point beside them."""
    start = np.array([0.02, -0.01, 0.03, 1.0, 0.0, 0.0, 0.0])
    frame = PatchFrame(Points(points), triad(points), np.ones(3), start)  # type: ignore[arg-type]
    k, d = np.array([300.0, 300, 300, 2, 2, 2]), np.array([5.0, 5, 5, 0.1, 0.1, 0.1])
    motion = fs.Motion([0.0, 1.0], [(0, 0, 0), (1, 2, 3)])
    return CompliantHold("h", 0, frame, start, points.mean(axis=0), motion, stiffness=k, damping=d, limit=limit)


@pytest.mark.parametrize("limit", [(np.inf, np.inf), (3.0, 0.2)])
def test_what_it_adds_to_a_is_the_derivative_of_its_force(limit: tuple[float, float]) -> None:
    """Along rigid motions of small turns, which is all that the nodes can do."""
    rng = np.random.default_rng(0)
    points = 0.05 * rng.standard_normal((6, 3))
    drive, settings = drive_of(points, limit), StepSettings(dt=0.01, theta=0.5, gravity=np.zeros(3))
    (rows,) = (own for _, own in drive.rows)
    block, b = np.empty((9, 9)), np.empty(9)
    turn = quaternion_from_vector(np.array([1e-4, 2e-4, -1e-4]))
    origin = np.array([0.02, -0.01, 0.03])
    q = Rotation.from_quat(turn[[1, 2, 3, 0]]).apply(points - origin) + (origin + np.array([0.01, -0.02, 0.005]))
    origin = origin + np.array([0.01, -0.02, 0.005])  # of the frame, where the spring acts
    drive.prepare([q.ravel()], 0.105)
    drive.assemble(settings, block, b)

    def rigid(place: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Velocities of the three nodes by that of the frame and its angular velocity, (9, 6)."""
        arms = place.ravel()[rows].reshape(-1, 3) - at
        return np.vstack([np.hstack([np.eye(3), -cross_matrix(arm)]) for arm in arms])

    def wrench(xi: np.ndarray) -> np.ndarray:
        place, at = q + 0.005 * (xi[:3] + np.cross(xi[3:], q - origin)), origin + 0.005 * xi[:3]
        drive.prepare([place.ravel()], 0.105, rigid(place, at) @ xi)
        return np.asarray(rigid(place, at).T @ drive.exerted())

    xi = 0.02 * rng.standard_normal(6)
    here = wrench(xi)
    drive.assemble(settings, block, b)
    own = rigid(q, origin).T @ block @ rigid(q, origin)
    assert block == pytest.approx(block.T, abs=1e-12) and np.linalg.eigvalsh(block).min() > -1e-9
    step = 1e-5
    slope = np.array([(wrench(xi + step * e) - wrench(xi - step * e)) / (2 * step) for e in np.eye(6)]).T
    assert -slope == pytest.approx(own, rel=1e-3, abs=2e-4 * np.abs(own).max())
    if limit[0] < np.inf:
        assert np.linalg.norm(here[:3]) == pytest.approx(3.0) and np.linalg.norm(here[3:]) <= 0.2 + 1e-12


@pytest.mark.parametrize("flat", [False, True])
def test_rows_of_a_kept_shape_leave_rigid_motions_alone_and_nothing_else(flat: bool) -> None:
    """Their number, their rank, and that their forces have neither sum nor moment; nodes in one plane too."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((7, 3)) * [1.0, 1.0, 0.0 if flat else 1.0]
    shape = KeptShape("shape", 0, np.arange(7), points, triad(points))  # type: ignore[arg-type]
    turn, way = Rotation.from_rotvec([0.3, -0.5, 1.1]), np.array([0.2, 0.1, -0.4])
    q = turn.apply(points) + way
    shape.prepare([q.ravel()], 0.0)
    shape.assemble(StepSettings(dt=0.01, theta=1.0, gravity=np.zeros(3)), np.empty(0), np.empty(21))
    held = shape.constraint()
    assert held is not None and np.abs(shape.opening).max() < 1e-14
    assert held.G.shape == (15, 21) and np.linalg.matrix_rank(held.G) == 15
    rigid = np.array([*np.tile(np.eye(3), 7), *(np.cross(e, q).ravel() for e in np.eye(3))])
    assert np.abs(held.G @ rigid.T).max() < 1e-13
    assert np.isinf(held.low).all() and np.isinf(held.high).all()
    # the opening has the derivative that the rows say
    change = 1e-6 * rng.standard_normal(21)
    shape.prepare([q.ravel() + change], 0.0)
    assert shape.opening == pytest.approx(held.G @ change, abs=1e-11)


def test_in_a_step_a_kept_shape_acts_at_the_mean_of_both_ends() -> None:
    """A rigid displacement by Cayley's turn asks nothing of the rows, however large: they do no work."""
    rng = np.random.default_rng(2)
    points = rng.standard_normal((5, 3))
    shape = KeptShape("shape", 0, np.arange(5), points, triad(points))  # type: ignore[arg-type]
    settings = StepSettings(dt=0.1, theta=0.5, gravity=np.zeros(3), conserving=True)
    shape.prepare([points.ravel()], 0.0)
    shape.assemble(settings, np.empty(0), np.empty(15))
    half = np.tan(0.4) * np.array([0.6, 0.0, 0.8])  # turn by 0.8 rad
    turned = Rotation.from_rotvec(0.8 * np.array([0.6, 0.0, 0.8])).apply(points)
    v = (turned - points) / 0.1
    assert 0.1 * v == pytest.approx(np.cross(half, points + turned), abs=1e-12)
    shape.prepare([points.ravel() + 0.05 * v.ravel()], 0.0, v.ravel())
    held = shape.constraint()
    assert held is not None
    assert np.abs(held.G @ v.ravel()).max() < 1e-12 and np.abs(shape.opening).max() < 1e-12


def test_a_run_goes_on_to_the_last_bit_from_a_saved_state() -> None:
    """Near its limit, with the forces of the rows and the velocity of the last step in the state."""
    motion = fs.Motion([0.0, 0.3], [(0, 0, 0), (0, 0, 0.3)])
    with fs.Simulation(cube(motion, max_force=14.0)) as simulation:
        simulation.step(12)
        saved = simulation.save()
        simulation.step(10)
        first = simulation.read("wrist"), simulation.state.q.copy()
        simulation.restore(saved)
        simulation.step(10)
        assert np.array_equal(simulation.read("wrist").force, first[0].force)
        assert np.array_equal(simulation.state.q, first[1])


def test_a_command_moves_the_target() -> None:
    scene = cube(scene={"gravity": (0, 0, 0)})
    with fs.Simulation(scene) as simulation:
        assert "grip" in simulation.targets
        simulation.set("grip", (0.0, 0.03, 0.0), over=0.1)
        simulation.step(120)
        assert moved(scene, simulation.state.q)[0] == pytest.approx([0.0, 0.03, 0.0], abs=1e-5)


def test_a_run_and_describe_say_how_it_is_held(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = fs.simulate(cube(scene={"duration": 0.01}, max_force=(7.0, np.inf)), out=tmp_path / "run")
    told = run.info["drives"]["grip"]
    assert told["body"] == "cube" and told["nodes"] == 9 and told["exact"] is False
    assert told["stiffness"] == [500.0] * 3 + [20.0] * 3
    assert told["damping"][:3] == pytest.approx([2.0 * np.sqrt(500.0)] * 3)
    assert told["max_force_N"] == 7.0 and told["max_torque_Nm"] is None
    path = tmp_path / "held.py"
    path.write_text(
        '"""Held by a spring."""\nimport femsim as fs\n\n\ndef build() -> fs.Scene:\n    scene = fs.Scene("held")\n'
        '    soft = scene.add_soft("cube", fs.box_tets((0.1, 0.1, 0.1), 1), fs.Elastic(1e5, 0.3, 1e3))\n'
        "    still = fs.Motion([0.0], [(0, 0, 0)])\n"
        "    scene.hold(soft, lambda x: x[:, 2] > 0, still, stiffness=(500.0, 2.0), max_force=9.0)\n"
        "    scene.hold(soft, lambda x: x[:, 2] < 0, still)\n    return scene\n"
    )
    assert describe(path) == 0
    out = capsys.readouterr().out
    assert "driven: cube.hold1, 4 nodes of cube, by a spring of 500 N/m and 2 N m/rad, at most 9 N" in out
    assert "driven: cube.hold2, 4 nodes of cube, exactly" in out


@pytest.mark.parametrize(
    ("hold", "says"),
    [
        ({"stiffness": 500.0}, r"hold grip: stiffness is 500\.0; allowed are two numbers"),
        ({"stiffness": (0.0, 0.0)}, "at least one axis needs some"),
        ({"damping": (1.0, -1.0)}, "none negative"),
        ({"max_force": "much"}, "hold grip: max_force is 'much'; allowed are positive numbers"),
        ({"max_force": (1.0, 0.0)}, r"N or \(N, N m\)"),
        ({"stiffness": None, "max_force": 5.0}, "without one nodes follow exactly"),
        ({"stiffness": None, "damping": (1.0, 1.0)}, r"give stiffness=\(N/m, N m/rad\) too"),
    ],
)
def test_wrong_springs_are_refused(hold: dict[str, Any], says: str) -> None:
    with pytest.raises(fs.InputError, match=says):
        cube(**hold)


def test_nodes_in_a_line_and_nodes_held_twice_are_refused() -> None:
    scene = cube()
    before = (len(scene.holds), len(scene.couplings), len(scene.commands))
    with pytest.raises(fs.InputError, match=r"2 nodes in one line.*or hold them exactly"):
        scene.hold("cube", [0, 1], STILL, stiffness=(500.0, 20.0))
    with pytest.raises(fs.InputError, match="is held already by 'grip'"):
        scene.hold("cube", top, STILL)
    assert before == (len(scene.holds), len(scene.couplings), len(scene.commands))
    assert triad(np.outer(np.arange(5.0), [1.0, 2.0, 3.0])) is None and triad(np.zeros((4, 3))) is None
    assert repr(scene.holds[0]) == "<Hold 'grip': 9 nodes of body 0 follow a motion by a spring>"


def test_a_hold_that_gives_way_takes_hardly_more_work_than_an_exact_one() -> None:
    """Calls of a step, which nothing else on the machine changes; without kernels for the rows there were five times as many."""
    calls = []
    for spring in ({}, {"stiffness": (500.0, 20.0)}):
        stepper, found = Stepper(led_cube(**spring), fs.make_solver("auto")), []
        for _ in range(31):
            with cProfile.Profile() as profile:
                stepper.step()
            found.append(sum(entry.callcount for entry in profile.getstats()))
        calls.append(np.median(found))
    assert calls[1] < 1.5 * calls[0], calls


def test_a_hold_does_not_know_where_it_is_nor_how_it_is_turned() -> None:
    """Corners are as far from the middle but for rounding, which chose the three that bear the wrench: ends were 1e-5 m apart."""
    mesh, ends, up = fs.box_tets((0.08, 0.02, 0.02), (4, 2, 2)), [], np.array((0.0, 0.0, 0.1))
    for turned, place in ((np.zeros(3), 0.0 * up), (np.zeros(3), up), (np.array((0.4, -0.7, 0.5)), up)):
        there = Rotation.from_rotvec(turned)
        scene = fs.Scene("bar", dt=0.01, gravity=(0.0, 0.0, 0.0), nonlinear_tolerance=1e-9)
        bar = scene.add_soft("bar", mesh, FOAM, position=place, rotation=turned)
        motion = fs.Motion([0.0, 0.1], [np.zeros(3)] * 2, [np.zeros(3), there.apply((0.45, -0.42, -0.06))])
        scene.hold(bar, np.flatnonzero(mesh.points[:, 0] < -0.0399), motion, stiffness=(50.0, 0.9), damping=(0.1, 0.01))
        with fs.Simulation(scene) as sim:
            ends.append(there.inv().apply(sim.step(10).points(bar) - place))
    assert np.ptp(ends, axis=0).max() < 1e-11
