"""Readings of force/torque sensors, glued markers and hung masses: each option does what its formula says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from experiment import shaken_box
from scipy.signal import butter, lfilter
from scipy.spatial.transform import Rotation

import femsim as fs
from contact.solvers import make_solver
from femsim.run.instruments import Instrument
from femsim.run.recorder import Recorder
from femsim.step.stepper import Stepper


def wrist(**options: object) -> tuple[fs.Run, np.ndarray, np.ndarray]:
    """Run with a reading: true and measured wrench, (200, 6)."""
    run = fs.simulate(shaken_box(reading=fs.Reading(**options)))
    true, shown = run.sensors["wrist"], run.sensors["wrist_measured"]
    return run, np.hstack([true.force, true.torque]), np.hstack([shown.force, shown.torque])


def poses(run: fs.Run) -> tuple[np.ndarray, Rotation]:
    """Centre (200, 3) and turns of the box, from the motion itself."""
    motion = run.stepper.scene.motions[0]
    way, turns = zip(*(motion(t) for t in run.sensors["wrist"].time), strict=True)
    return np.add(way, (0.0, 0.0, 0.2)), Rotation.from_rotvec(np.array(turns))


def test_defaults_change_nothing_and_add_no_column(tmp_path: Path) -> None:
    plain = fs.simulate(shaken_box(), out=tmp_path / "plain", fps=1.0)
    read = fs.simulate(shaken_box(reading=fs.Reading()), out=tmp_path / "read", fps=1.0)
    old, new = ((tmp_path / name / "sensors.csv").read_text().splitlines() for name in ("plain", "read"))
    assert "measured" not in old[0] and list(plain.sensors) == ["wrist"]
    assert [line[: len(before)] for line, before in zip(new, old, strict=True)] == old  # new columns stand behind all others
    assert new[0].endswith("dot_z_m,wrist_measured_fx_N,wrist_measured_fy_N,wrist_measured_fz_N,wrist_measured_tx_Nm,"
                           "wrist_measured_ty_Nm,wrist_measured_tz_Nm")  # fmt: skip
    np.testing.assert_array_equal(read.sensors["wrist_measured"].force, plain.sensors["wrist"].force)
    np.testing.assert_array_equal(read.sensors["wrist_measured"].torque, plain.sensors["wrist"].torque)
    result = fs.compare(tmp_path / "read", tmp_path / "plain" / "sensors.csv", {"sensor": "wrist_measured"})
    assert result.vectors["force"][1] < 1e-12 and result.sensor == "wrist_measured"


def test_fixed_frame_and_point() -> None:
    turn, point = Rotation.from_rotvec([0.3, -0.2, 1.0]), np.array([0.1, -0.2, 0.3])
    run, true, shown = wrist(frame=turn.as_rotvec(), point=point)
    centre, _ = poses(run)
    np.testing.assert_allclose(turn.apply(shown[:, :3]), true[:, :3], atol=1e-9)
    np.testing.assert_allclose(
        turn.apply(shown[:, 3:]), true[:, 3:] + np.cross(centre - point, true[:, :3]), atol=1e-9
    )  # fmt: skip
    same = wrist(frame=turn.as_matrix(), point=point)[2]
    np.testing.assert_allclose(same, shown, atol=1e-12)


def test_frame_of_the_body_moves_along() -> None:
    point = np.array([0.0, 0.01, 0.05])
    run, true, shown = wrist(frame="body", point=point)
    _, turns = poses(run)
    np.testing.assert_allclose(turns.apply(shown[:, :3]), true[:, :3], atol=1e-8)
    arm = -turns.apply(point)
    np.testing.assert_allclose(turns.apply(shown[:, 3:]), true[:, 3:] + np.cross(arm, true[:, :3]), atol=1e-8)


def test_weight_of_the_tool_is_taken_off() -> None:
    run, true, shown = wrist(tool=(0.5, (0.0, 0.0, 0.0)))
    assert true[5, 2] == pytest.approx(0.5 * 9.81, rel=1e-6)  # hangs still
    np.testing.assert_allclose(shown[5], 0.0, atol=1e-6)
    np.testing.assert_allclose(shown - true, np.tile([0, 0, -0.5 * 9.81, 0, 0, 0], (200, 1)), atol=1e-9)
    run, true, shown = wrist(tool=(0.2, (0.03, 0.0, 0.0)), frame="body")
    _, turns = poses(run)
    weight = np.array([0.0, 0.0, -0.2 * 9.81])
    expected = np.cross(turns.apply([0.03, 0.0, 0.0]), weight)
    np.testing.assert_allclose(turns.apply(shown[:, 3:]) - true[:, 3:], expected, atol=1e-9)


def test_bias_noise_and_seed() -> None:
    bias = (0.1, 0.2, 0.3, 0.01, 0.02, 0.03)
    _, true, shown = wrist(bias=bias, noise=(0.05, 0.002), seed=7)
    error = shown - true - bias
    np.testing.assert_allclose(error.std(axis=0), [0.05] * 3 + [0.002] * 3, rtol=0.2)  # 200 samples: 4 sigma
    np.testing.assert_allclose(error.mean(axis=0), 0.0, atol=4 * 0.05 / np.sqrt(200))
    np.testing.assert_array_equal(wrist(bias=bias, noise=(0.05, 0.002), seed=7)[2], shown)
    assert np.abs(wrist(bias=bias, noise=(0.05, 0.002), seed=8)[2] - shown).max() > 0.01


def test_noise_by_axis() -> None:
    sizes = (0.01, 0.02, 0.03, 0.004, 0.005, 0.006)
    _, true, shown = wrist(noise=sizes)
    np.testing.assert_allclose((shown - true).std(axis=0), sizes, rtol=0.2)


def test_frame_of_another_part() -> None:
    """A soft cube on a floor, told in the frame of a carried box: the axes and the point are the box's."""
    scene = shaken_box()
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), fs.Elastic(1e6, 0.3, 1000.0), position=(0.3, 0, 0.01))
    scene.sensor("pad", "cube", reading=fs.Reading(frame="box", point=(0.0, 0.0, 0.1)))
    scene.sensor("side", "cube", partner="floor", where=lambda points: points[:, 0] > 0.3, reading=fs.Reading(point=(0, 0, 0)))
    run = fs.simulate(scene)
    centre, turns = poses(run)
    about = centre + turns.apply([0.0, 0.0, 0.1])
    true, shown = run.sensors["pad"], run.sensors["pad_measured"]
    np.testing.assert_allclose(turns.apply(shown.force), true.force, atol=1e-8)
    cube = run.stepper.scene.body("cube")
    reference = cube.centre_of_mass(run.stepper.state.q[run.stepper.system.q_slices[1]])  # it rests
    expected = true.torque + np.cross(reference - about, true.force)
    np.testing.assert_allclose(turns.apply(shown.torque)[-50:], expected[-50:], atol=1e-8)
    # the weight on the half at x > 0.3 has its arm from the origin in the new columns
    side = run.sensors["side_measured"]
    np.testing.assert_allclose(side.force, run.sensors["side"].force, atol=1e-12)
    arm = -side.torque[-1, 1] / side.force[-1, 2]
    assert 0.3 < arm < 0.3101


def test_weight_of_a_gripper_and_of_a_held_soft_body_is_taken_off() -> None:
    scene = fs.Scene("carried", dt=0.01, duration=1.0, theta=1.0)
    pad = fs.Box((0.003, 0.01, 0.01))
    fingers = [fs.Finger(n, pad, offset=(s * 0.03, 0, -0.05), closing=(-s, 0, 0)) for n, s in (("left", -1), ("right", 1))]
    hand = scene.add_gripper("hand", fingers, position=(0, 0, 0.2), mass=0.5)
    scene.add_rigid("block", fs.Box((0.01, 0.008, 0.008)), mass=0.05, position=(0, 0, 0.15))
    scene.set_friction("hand", "block", 0.8)
    scene.drive(hand, force=fs.Profile([0.0, 0.02], [2.0, 4.0]), fingers=True)
    scene.drive(hand, fs.Motion([0.0, 0.1], [(0, 0, 0), (0, 0, 0)]))
    bar = scene.add_soft(
        "bar", fs.box_tets((0.06, 0.01, 0.01), (12, 2, 2)), fs.Elastic(1e6, 0.3, 1000.0, rayleigh_beta=0.05), position=(1, 0, 0)
    )
    held = scene.hold(bar, lambda points: points[:, 0] < 0.971, fs.Motion([0.0, 0.1], [(0, 0, 0), (0, 0, 0)]))
    scene.sensor("wrist", hand, kind="mount", reading=fs.Reading(tool="body"))
    scene.sensor("root", held, kind="mount", reading=fs.Reading(tool="body"))
    run = fs.simulate(scene, tolerance=1e-10)
    shown, block = run.sensors["wrist_measured"], 0.05 * 9.81
    np.testing.assert_allclose(shown.force[-1], (0, 0, block), atol=1e-4 * block)
    arm = run.stepper.link_pose(3)[1] - run.stepper.link_pose(0)[1]  # from the hand to the block, which has slid a little
    np.testing.assert_allclose(shown.torque[-1], np.cross(arm, (0, 0, block)), atol=1e-5)
    assert run.sensors["root"].torque[-1, 1] < -1e-3  # the bar bends its clamp
    np.testing.assert_allclose(run.sensors["root_measured"].force[-1], 0.0, atol=1e-5)
    np.testing.assert_allclose(run.sensors["root_measured"].torque[-1], 0.0, atol=1e-6)


def test_lowpass_is_causal_and_sampling_holds() -> None:
    _, true, shown = wrist(lowpass=8.0)
    b, a = butter(2, 8.0, fs=100.0)
    moved = true - true[0]  # starts settled at the first reading
    np.testing.assert_allclose(shown, true[0] + lfilter(b, a, moved, axis=0), atol=1e-9)
    _, true, shown = wrist(rate=25.0, noise=(0.1, 0.1))
    steps = np.flatnonzero(np.diff(shown[:, 0])) + 1
    assert set(np.diff(steps)) == {4}
    _, true, shown = wrist(rate=25.0)
    np.testing.assert_array_equal(shown[3:], np.repeat(true[3::4], 4, axis=0)[:197])  # samples at multiples of 0.04 s
    np.testing.assert_array_equal(shown[:3], true[[0, 0, 0]])  # the first step is a sample too


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"frame": (1.0, 2.0)}, "allowed are a rotation vector of 3 numbers"),
        ({"frame": np.diag([1.0, 1.0, -1.0])}, "right-handed"),
        ({"point": (1.0, 2.0)}, "point of a reading is (1.0, 2.0); allowed are 3 finite numbers"),
        ({"bias": (1.0,)}, "bias of a reading is (1.0,); allowed are 6"),
        ({"noise": (-0.1, 0.0)}, "allowed are standard deviations >= 0"),
        ({"noise": None}, "noise of a reading is None"),
        ({"noise": (0.1,) * 5 + (-0.1,)}, "allowed are standard deviations >= 0"),
        ({"tool": "gripper"}, "tool of a reading is 'gripper'; allowed are (mass in kg, centre (3,) in m) and 'body'"),
        ({"lowpass": 0.0}, "lowpass of a reading is 0.0 Hz; allowed are positive"),
        ({"rate": "fast"}, "rate of a reading is 'fast' Hz"),
        ({"seed": "a"}, "seed of a reading is 'a'; allowed are whole numbers from 0"),
        ({"seed": -1}, "seed of a reading is -1; allowed are whole numbers from 0"),
        ({"tool": 0.5}, "tool of a reading is 0.5; allowed are (mass in kg, centre (3,) in m)"),
    ],
)
def test_wrong_readings(options: dict[str, object], words: str) -> None:
    with pytest.raises(fs.InputError, match=re.escape(words)):
        fs.Reading(**options)


def test_readings_that_do_not_fit_their_sensor() -> None:
    for options, words in (
        ({"lowpass": 50.0}, "lowpass of a reading is 50 Hz"),
        ({"rate": 200.0}, "rate of a reading is 200 Hz"),
    ):
        with pytest.raises(fs.InputError, match=words):
            fs.simulate(shaken_box(reading=fs.Reading(**options)))
    scene = shaken_box(reading=fs.Reading())
    cube = scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), "ecoflex_00_50", position=(0.3, 0, 0))
    for call, words in (
        (lambda: scene.sensor("a", cube, reading=fs.Reading(frame="body")), "no frame of its own"),
        (
            lambda: scene.sensor("a", cube, reading=fs.Reading(frame="bx")),
            "frame of its reading is 'bx'; allowed are 'world', 'body', ",
        ),
        (lambda: scene.sensor("a", cube, reading=fs.Reading(frame="bx")), "did you mean 'box'?"),
        (lambda: scene.sensor("a", "box", reading=fs.Reading(tool=(1.0, (0, 0, 0)))), "of kind 'contact' carries none"),
        (lambda: scene.sensor("a", "box", kind="marker", reading=fs.Reading()), "a marker has none"),
        (lambda: scene.sensor("wrist_measured", "box"), "exists already"),
        (lambda: scene.sensor("m", cube, kind="marker", at=(0.5, 0, 0)), "far outside 'cube', which spans [0.29, -0.01, -0.01]"),
        (lambda: scene.sensor("m", cube, kind="marker", at=(0.3, 0, 0), node=2), "leave one of them out"),
        (lambda: scene.sensor("m", "box", kind="marker", at=(0, 0, 0.2)), "'at' places a marker on a soft body"),
        (lambda: scene.sensor("m", cube, kind="marker", at=(0.3, 0)), "at is (0.3, 0); allowed are 3"),
    ):
        with pytest.raises(fs.InputError, match=re.escape(words)):
            call()


def test_a_marker_off_the_surface_is_glued_to_the_element_that_is_nearest() -> None:
    """Of a bar whose cells grow: 3 mm before its fine end it hung on a larger element 8 mm away."""
    mesh = fs.box_tets((1.0, 0.01, 0.01), (12, 1, 1))
    points, s = mesh.points.copy(), mesh.points[:, 0] + 0.5
    points[:, 0] = 0.012 * s + 0.15 * s**3
    scene = fs.Scene("bar", dt=0.01, duration=0.01)
    scene.add_soft("bar", fs.make_tetmesh(points, mesh.tets, name="bar", source="test"), "ecoflex_00_50")
    scene.sensor("ball", "bar", kind="marker", at=(-0.003, 0.0, 0.0))
    marker = scene.sensors[-1].marker
    assert marker is not None
    assert points[list(marker.points), 0].max() < 0.0012
    np.testing.assert_allclose(marker.weights @ points[list(marker.points)], [-0.003, 0, 0], atol=1e-15)


def test_glued_markers_follow_a_body_that_is_not_deformed() -> None:
    scene = fs.Scene("free", dt=0.001, duration=0.05, gravity=(0, 0, 0), theta=1.0)
    cube = scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), "ecoflex_00_50", velocity=(1.0, 0.5, 0.0))
    places = {"inside": np.array([0.003, 0.002, -0.004]), "outside": np.array([0.0, 0.0, 0.014])}
    for name, place in places.items():
        scene.sensor(name, cube, kind="marker", at=place)
    run = fs.simulate(scene)
    for name, place in places.items():
        marker = run.markers[name]
        np.testing.assert_allclose(marker.position, place + np.outer(marker.time, (1.0, 0.5, 0.0)), atol=1e-12)


def test_glued_markers_use_the_gradient_of_their_element() -> None:
    """A column that hangs from its top is stretched: a marker off its lower end moves as far as its element says."""
    scene = fs.Scene("hang", dt=0.05, duration=3.0, theta=1.0)
    column = scene.add_soft(
        "column", fs.box_tets((0.01, 0.01, 0.04), (2, 2, 8)), fs.Elastic(1e4, 0.0, 1000.0, rayleigh_beta=0.05),
        fixed=lambda points: points[:, 2] > 0.02 - 1e-9,
    )  # fmt: skip
    points = scene.body("column").rest
    bottom = int(np.argmin(np.linalg.norm(points - (0, 0, -0.02), axis=1)))
    above = int(np.argmin(np.linalg.norm(points - (0, 0, -0.015), axis=1)))
    for name, node in (("bottom", bottom), ("above", above)):
        scene.sensor(name, column, kind="marker", node=node)
    scene.sensor("off", column, kind="marker", at=(0.0, 0.0, -0.021))
    run = fs.simulate(scene)
    low, high, off = (run.markers[name].position[-1, 2] for name in ("bottom", "above", "off"))
    assert off < low < -0.0201
    assert off == pytest.approx(low + 0.2 * (low - high), rel=1e-3)  # 1 mm beyond an element of 5 mm


def test_added_mass_has_weight_and_inertia() -> None:
    """A free cube with a carried mass falls as before, and weighs more on the floor."""
    scene = fs.Scene("carry", dt=0.01, duration=1.0, theta=1.0)
    scene.add_floor()
    scene.add_soft(
        "cube", fs.box_tets((0.02, 0.02, 0.02), 2), fs.Elastic(1e5, 0.3, 1000.0, rayleigh_beta=0.01), position=(0, 0, 0.01),
        added_mass=lambda points: np.where(points[:, 2] > 0.02 - 1e-9, 0.001, 0.0),
    )  # fmt: skip
    scene.sensor("cube", "cube")
    assert scene.body("cube").mass == pytest.approx(0.008 + 9 * 0.001)
    run = fs.simulate(scene)
    assert run.sensors["cube"].force[-1, 2] == pytest.approx(0.017 * 9.81, rel=1e-6)
    assert run.steps["wrench_balance"].max() < 1e-6
    for wrong, words in ((lambda x: np.ones(3), "gave shape"), (lambda x: -np.ones(len(x)), "gave -1 kg at node 0")):
        with pytest.raises(fs.InputError, match=f"added_mass of other {words}"):
            scene.add_soft("other", fs.box_tets((0.02, 0.02, 0.02), 2), "ecoflex_00_50", added_mass=wrong)


def test_readings_of_the_ends_of_a_rod() -> None:
    """By default what the frame feels; about another point of the world the same force, and the torque of its arm."""
    scene = fs.Scene("held", dt=0.01, duration=0.05, theta=1.0)
    points = np.linspace((0.0, 0.0, 0.1), (0.1, 0.0, 0.1), 9)
    held = fs.RodEnd("clamped")
    scene.add_rod("rod", points, fs.circular_section(0.002), "ecoflex_00_50", start=held, end=held)
    scene.sensor("start", "rod", kind="start", reading=fs.Reading())
    scene.sensor("end", "rod", kind="end", reading=fs.Reading(point=points[0]))
    run = fs.simulate(scene)
    start, end, moved = run.sensors["start"], run.sensors["end"], run.sensors["end_measured"]
    assert start.force[-1, 2] < 0.0
    np.testing.assert_array_equal(run.sensors["start_measured"].force, start.force)
    np.testing.assert_array_equal(run.sensors["start_measured"].torque, start.torque)
    np.testing.assert_array_equal(moved.force, end.force)
    np.testing.assert_allclose(moved.torque, end.torque + np.cross(points[-1] - points[0], end.force), rtol=1e-12, atol=1e-15)


def test_a_marker_on_a_rigid_body_has_no_node() -> None:
    """It was ignored."""
    scene = fs.Scene("marker")
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1)
    with pytest.raises(fs.InputError, match="node is 3, but 'box' is rigid and has no nodes; leave it out"):
        scene.sensor("at", "box", kind="marker", node=3)


@pytest.mark.parametrize("theta", [None, 1.0])
def test_axes_of_a_reading_are_those_of_when_the_force_acts(theta: float | None) -> None:
    """Weight in the frame of a hand that turns at 6 rad/s: a mean over the step, by backward Euler that at its end."""
    dt, rate = 0.01, 6.0
    scene = fs.Scene("wrist", dt=dt, duration=0.2, **({} if theta is None else {"theta": theta}))
    hand = scene.add_rigid("hand", fs.Box((0.03, 0.02, 0.02)), mass=0.5)
    scene.drive(hand, lambda t: (np.zeros(3), np.array([0.0, rate * t, 0.0])))
    scene.sensor("wrist", hand, kind="mount", reading=fs.Reading(frame="body"))
    run = fs.simulate(scene, quiet=True)
    angle = rate * (run.steps["time_s"] - (0.5 * dt if theta is None else 0.0))
    weight = 0.5 * 9.81 * np.column_stack([-np.sin(angle), np.zeros_like(angle), np.cos(angle)])
    np.testing.assert_allclose(run.sensors["wrist_measured"].force, weight, atol=1e-4)


def test_a_reading_of_a_joint_moves_its_torque_from_the_joint() -> None:
    """A box and a soft bar stick out of a wall: about their centres of mass what holds them has no torque."""
    scene = fs.Scene("wall", dt=0.01, duration=0.3, theta=1.0)
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=1.0, position=(0.5, 0, 0))
    stiff = fs.Elastic(1e8, 0.3, 1000.0, rayleigh_beta=0.01)
    bar = scene.add_soft("bar", fs.box_tets((0.06, 0.02, 0.02), (6, 2, 2)), stiff, position=(0.03, 0.3, 0))
    scene.join("box", "world", at=(0.3, 0, 0), name="arm")
    scene.join(bar, "world", at=(0, 0.3, 0), where=lambda x: x[:, 0] < 1e-6, name="glue")
    scene.sensor("arm", "arm", kind="reaction", reading=fs.Reading(point=(0.5, 0, 0)))
    scene.sensor("glue", "glue", kind="reaction", reading=fs.Reading(point=(0.03, 0.3, 0)))
    run = fs.simulate(scene)
    np.testing.assert_allclose(run.sensors["arm"].torque[-1], (0, -0.2 * 9.81, 0), atol=1e-6)
    np.testing.assert_allclose(run.sensors["arm_measured"].torque[-1], 0.0, atol=1e-6)
    np.testing.assert_allclose(run.sensors["glue"].torque[-1], (0, -0.024 * 9.81 * 0.03, 0), atol=1e-5)
    np.testing.assert_allclose(run.sensors["glue_measured"].torque[-1], 0.0, atol=1e-5)


def test_a_gripper_that_turns_leaves_no_torque_of_its_weight() -> None:
    """Its centre of mass counts where its base does: where both are when the torque acts."""
    scene = fs.Scene("turning", dt=0.005, duration=0.5)
    finger = fs.Finger("f", fs.Box((0.01, 0.01, 0.01)), offset=(0, 0.1, 0), closing=(0, 0, 1), mass=0.5)
    hand = scene.add_gripper("hand", [finger])
    scene.drive(hand, lambda t: (np.zeros(3), np.array([3.0 * t, 0.0, 0.0])))
    scene.drive(hand, position=lambda t: 0.0, fingers=True, stiffness=1e6, damping=2e3)
    scene.sensor("wrist", hand, kind="mount", reading=fs.Reading(tool="body"))
    np.testing.assert_allclose(fs.simulate(scene).sensors["wrist_measured"].torque[-1], 0.0, atol=1e-5)


@pytest.mark.parametrize("theta", [None, 1.0])
def test_arms_about_a_fixed_point_are_those_of_when_the_force_acts(theta: float | None) -> None:
    """What moves level at 0.5 m/s: a box, held nodes and the held ends of two rods, about a point of the world."""
    dt, speed, up = 0.01, 0.5, np.linspace((0.0, 0.0, 0.0), (0.0, 0.0, -0.05), 6)
    scene = fs.Scene("level", dt=dt, duration=0.1, **({} if theta is None else {"theta": theta}))
    motion, rubber = fs.Motion([0.0, 1.0], [(0, 0, 0), (speed, 0, 0)], smooth=False), fs.Elastic(1e7, 0.3, 1000.0)
    box = scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=1.0, velocity=(speed, 0, 0))
    scene.drive(box, motion)
    cube = scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=(0, 1, 0), velocity=(speed, 0, 0))
    held = scene.hold(cube, lambda x: x[:, 2] > 0.0099, motion)
    for name, end, y in (("own", fs.RodEnd("clamped", motion=motion), 2.0), ("carried", fs.RodEnd("clamped", on=box), 0.0)):
        rod = scene.add_rod(name, up + np.array((0, y, 0)), fs.circular_section(0.004), rubber, start=end, velocity=(speed, 0, 0))
        scene.sensor(name, rod, kind="start", reading=fs.Reading(point=(0, y, 0)))
    scene.sensor("box", box, kind="mount", reading=fs.Reading(point=(0, 0, 0)))
    scene.sensor("cube", held, kind="mount", reading=fs.Reading(point=(0, 1, 0)))
    run = fs.simulate(scene)
    way = speed * (run.steps["time_s"][-1] - (0.5 * dt if theta is None else 0.0))
    for name in ("box", "cube", "own", "carried"):
        true, shown = run.sensors[name], run.sensors[f"{name}_measured"]
        arm = (shown.torque[-1, 1] - true.torque[-1, 1]) / -true.force[-1, 2]
        above = 0.01 * true.force[-1, 0] / -true.force[-1, 2] if name == "cube" else 0.0  # held nodes are 10 mm above the point
        assert arm - above == pytest.approx(way, abs=1e-4)


@pytest.mark.parametrize("stiffness", [None, (1e6, 1e4)])
def test_a_tool_turns_with_the_held_nodes_that_carry_it(stiffness: tuple[float, float] | None) -> None:
    """A hanging bar, held above and turned by 1.5 rad: its weight, given as a tool, leaves no torque."""
    scene = fs.Scene("turned", dt=0.02, duration=0.6, theta=1.0)
    stiff = fs.Elastic(1e8, 0.3, 1000.0, rayleigh_beta=0.01)
    bar = scene.add_soft("bar", fs.box_tets((0.02, 0.02, 0.06), (2, 2, 6)), stiff, position=(0, 0, -0.03))
    motion = fs.Motion([0.0, 0.3], [(0, 0, 0), (0, 0, 0)], [(0, 0, 0), (1.5, 0, 0)])
    held = scene.hold(bar, lambda x: x[:, 2] > -1e-6, motion, stiffness=stiffness)
    scene.sensor("wrist", held, kind="mount", reading=fs.Reading(tool=(0.024, (0, 0, -0.03))))
    run = fs.simulate(scene)
    assert run.sensors["wrist"].torque[-1, 0] == pytest.approx(0.024 * 9.81 * 0.03 * np.sin(1.5), rel=1e-2)
    np.testing.assert_allclose(run.sensors["wrist_measured"].torque[-1], 0.0, atol=5e-5)


def test_frames_and_samples_are_on_time_after_many_steps() -> None:
    """Times are sums of steps: after 342 s in steps of 1 ms each frame and sample came a step late."""
    dt, time = 0.001, 0.0
    scene = fs.Scene("box", dt=dt, duration=0.01)
    scene.add_rigid("box", fs.Box((0.01,) * 3), mass=1.0)
    recorder = Recorder(Stepper(scene, make_solver("auto")), None, fps=100.0)
    instrument = Instrument(fs.Reading(rate=20.0), dt, np.zeros(3))
    pose, frames, samples = (np.eye(3), np.zeros(3)), [], []
    for step in range(1_000_000):
        if step:
            time += dt
        if recorder.frame_due(time):
            frames.append(step)
        if (step % 50 < 2 or step % 50 == 49) and instrument.read(time, np.full(6, float(step)), np.zeros(3), pose, None)[
            0
        ] == step:
            samples.append(step)
    assert frames == list(range(0, 1_000_000, 10))
    assert samples == list(range(0, 1_000_000, 50))
