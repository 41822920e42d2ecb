"""Sensors of some contacts, of joints, gap, contact area, slip and energies, against cases that are solved by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import femsim as fs
from femsim.run.selection import GapSearch
from femsim.run.sensors import Sensors
from femsim.step.stepper import Stepper

G = 9.81
RUBBER = fs.Elastic(1e6, 0.3, 1000.0, rayleigh_beta=0.01, name="rubber")


def wrench(run: fs.Run, name: str) -> np.ndarray:
    return np.hstack([run.sensors[name].force, run.sensors[name].torque])


def incline(mu: float = 0.2, slope: float = 0.5) -> fs.Scene:
    """A box on a floor under gravity that is turned by the slope."""
    scene = fs.Scene("incline", dt=0.01, duration=0.3, gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)), theta=1.0)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.005)), mass=0.4, position=(0, 0, 0.005))
    scene.set_friction("box", "floor", mu)
    scene.sensor("slip", "box", kind="slip")
    scene.sensor("seen_by_floor", "floor", kind="slip", partner="box")
    scene.sensor("energy", "box", kind="energy")
    return scene


def test_slip_and_energies_on_an_incline() -> None:
    mu, slope, mass, dt = 0.2, 0.5, 0.4, 0.01
    run = fs.simulate(incline(mu, slope), tolerance=1e-12)
    n = np.arange(1, 31)
    pull = G * (np.sin(slope) - mu * np.cos(slope))
    speed, way = pull * dt * n, pull * dt**2 * n * (n + 1) / 2  # backward Euler
    slip, energy = run.gauges["slip"], run.gauges["energy"]
    np.testing.assert_allclose(slip.values["slip_m"], way, rtol=1e-6)
    np.testing.assert_allclose(slip.values["friction_J"], mu * mass * G * np.cos(slope) * way, rtol=1e-6)
    np.testing.assert_allclose(run.gauges["seen_by_floor"].values["slip_m"], slip.values["slip_m"], rtol=1e-12)
    np.testing.assert_allclose(run.steps["friction_loss_J"], slip.values["friction_J"], rtol=1e-9)
    np.testing.assert_allclose(energy.values["kinetic_J"], 0.5 * mass * speed**2, rtol=1e-6)
    np.testing.assert_allclose(energy.values["potential_J"], mass * G * (0.005 * np.cos(slope) - way * np.sin(slope)), rtol=1e-6)
    assert not energy.values["elastic_J"].any()
    np.testing.assert_allclose(run.steps["potential_energy_J"], energy.values["potential_J"], rtol=1e-12)
    np.testing.assert_array_equal(run.table()["slip_slip_m"], slip.values["slip_m"])
    held = fs.simulate(incline(mu=0.7), tolerance=1e-12)  # 0.7 > tan 0.5
    assert held.gauges["slip"].values["slip_m"][-1] < 1e-9


def test_energies_by_body_sum_to_the_totals_and_are_kept_in_a_fall() -> None:
    scene = fs.Scene("fall", dt=0.01, duration=0.2, theta=0.5)
    cube = scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), RUBBER, position=(0, 0, 1), velocity=(1, 0, 2))
    box = scene.add_rigid("box", fs.Box((0.01, 0.02, 0.03)), mass=0.1, position=(1, 0, 1), angular_velocity=(0, 0, 3))
    rope = scene.add_rod(
        "rope",
        np.linspace((2, 0, 1), (2.2, 0, 1), 9),
        fs.circular_section(0.004),
        fs.Elastic(1e6, 0.3, 1000.0),
        velocity=(0, 1, 0),
    )
    for name, body in (("cube", cube), ("box", box), ("rope", rope)):
        scene.sensor(name, body, kind="energy")
    run = fs.simulate(scene)
    totals = {c: sum(run.gauges[b].values[f"{c}_J"] for b in run.gauges) for c in ("kinetic", "elastic", "potential")}
    for name in totals:
        np.testing.assert_allclose(totals[name], run.steps[f"{name}_energy_J"], rtol=1e-12, atol=1e-15)
    for name, mass in (("cube", 0.008), ("box", 0.1)):
        values = run.gauges[name].values
        total = sum(values.values())
        np.testing.assert_allclose(total, total[0], rtol=1e-12)  # theta = 1/2 keeps it
        height = values["potential_J"] / (mass * G)
        t = run.steps["time_s"]
        np.testing.assert_allclose(height, 1.0 + (2 * t if name == "cube" else 0) - 0.5 * G * t**2, atol=1e-9)
    assert np.abs(run.gauges["rope"].values["elastic_J"]).max() < 1e-12


def pile(**sensors: dict[str, object]) -> fs.Scene:
    """A soft cube on a larger one on the floor, a rod over the upper one, a rigid box beside; sensors by name."""
    scene = fs.Scene("pile", dt=0.01, duration=0.3, theta=1.0)
    scene.add_floor()
    scene.add_soft("base", fs.box_tets((0.04, 0.04, 0.02), (4, 4, 2)), RUBBER, position=(0, 0, 0.01))
    scene.add_soft("top", fs.box_tets((0.02, 0.02, 0.02), 2), RUBBER, position=(0.003, 0.002, 0.0301))
    line = np.linspace((-0.03, 0.004, 0.0422), (0.036, 0.004, 0.0422), 12)
    scene.add_rod("rod", line, fs.circular_section(0.002), fs.Elastic(1e8, 0.3, 1000.0))
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.05, position=(0.1, 0, 0.01), velocity=(0.3, 0.1, 0))
    for name, options in sensors.items():
        on = str(options.pop("on"))
        scene.sensor(name, on, **options)
    return scene


def test_forces_on_parts_of_a_surface_and_of_partners_sum_to_the_whole() -> None:
    def left(points: np.ndarray) -> np.ndarray:
        return points[:, 0] < 0.004

    def right(points: np.ndarray) -> np.ndarray:
        return ~left(points)

    run = fs.simulate(
        pile(
            **{f"{on}_whole": {"on": on} for on in ("base", "top", "rod", "box", "floor")},
            **{f"{on}_left": {"on": on, "where": left} for on in ("base", "top", "rod", "floor")},
            **{f"{on}_right": {"on": on, "where": right} for on in ("base", "top", "rod", "floor")},
            box_left={"on": "box", "where": lambda points: points[:, 0] < 0.095},
            box_right={"on": "box", "where": lambda points: points[:, 0] >= 0.095},
            base_floor={"on": "base", "partner": "floor"},
            base_top={"on": "base", "partner": "top"},
            top_base={"on": "top", "partner": "base"},
            top_rod={"on": "top", "partner": "rod"},
        )
    )
    assert run.status == "converged"
    for on in ("base", "top", "rod", "box", "floor"):
        whole, parts = wrench(run, f"{on}_whole"), [wrench(run, f"{on}_{side}") for side in ("left", "right")]
        np.testing.assert_allclose(parts[0] + parts[1], whole, atol=1e-12)
        assert min(np.abs(part[-1, 2]) for part in parts) > 1e-3, on
    np.testing.assert_allclose(wrench(run, "base_floor") + wrench(run, "base_top"), wrench(run, "base_whole"), atol=1e-12)
    np.testing.assert_allclose(wrench(run, "top_base") + wrench(run, "top_rod"), wrench(run, "top_whole"), atol=1e-12)
    # at rest: the floor carries both cubes and the rod, the lower cube the upper one and the rod
    rod = run.stepper.scene.body("rod").mass
    assert wrench(run, "base_top")[-1, 2] == pytest.approx(-(0.008 + rod) * G, rel=1e-3)
    assert wrench(run, "top_rod")[-1, 2] == pytest.approx(-rod * G, rel=1e-3)
    assert wrench(run, "floor_whole")[-1, 2] == pytest.approx(-(0.032 + 0.008 + rod + 0.05) * G, rel=1e-3)
    # the box has moved; its faces are those of the start
    assert run.stepper.link_pose(4)[1][0] > 0.105


def test_a_sensor_of_some_contacts_is_the_mean_over_the_parts_of_a_step() -> None:
    """A part of a step counts by its length: 1 ms with twice the forces of the step, 9 ms without any."""
    scene = pile(some={"on": "floor", "partner": "box"})
    stepper = Stepper(scene, fs.make_solver("exact"))
    sensors = Sensors(stepper)
    report = stepper.step()
    whole = np.array(sensors.row(report)[1:])
    assert whole[2] < -0.1
    c = report.contacts
    twice, none = replace(c, force=2.0 * c.force), replace(c, force=0.0 * c.force)
    parts = np.array(sensors.row(replace(report, parts=((0.001, twice), (0.009, none))))[1:])
    np.testing.assert_allclose(parts, 0.2 * whole, rtol=1e-12)


def test_area_of_boxes_on_a_floor() -> None:
    run = fs.simulate(
        pile(
            base={"on": "base", "kind": "area", "partner": "floor"},
            below={"on": "floor", "kind": "area"},
            top={"on": "top", "kind": "area", "partner": "base"},
            base_half={"on": "base", "kind": "area", "partner": "floor", "where": lambda points: points[:, 0] < -1e-9},
            base_other={"on": "base", "kind": "area", "partner": "floor", "where": lambda points: points[:, 0] >= -1e-9},
            under={"on": "base", "kind": "area", "partner": "top"},
            under_left={"on": "base", "kind": "area", "partner": "top", "where": lambda points: points[:, 0] < 0.004},
            under_right={"on": "base", "kind": "area", "partner": "top", "where": lambda points: points[:, 0] >= 0.004},
            rod={"on": "rod", "kind": "area", "partner": "top"},
        )
    )
    area = {name: gauge.values["area_m2"] for name, gauge in run.gauges.items()}
    assert area["base"][-1] == pytest.approx(0.04**2, rel=2e-3)
    assert area["top"][-1] == pytest.approx(0.02**2, rel=2e-2)
    np.testing.assert_array_equal(area["below"], area["base"])
    np.testing.assert_allclose(area["base_half"] + area["base_other"], area["base"], rtol=1e-12)
    np.testing.assert_allclose(area["under_left"] + area["under_right"], area["under"], rtol=1e-9)
    # the nodes of the larger cube that carry the upper one, pressed on by either side of a contact, own more than its base
    assert area["under"][-1] > 0.02**2
    assert 0.3 < area["base_half"][-1] / area["base"][-1] < 0.5
    assert 0.0 < area["rod"][-1] <= 0.02**2  # of the nodes of the cube that carry the rod


def test_area_of_a_quadratic_block_is_that_of_its_face() -> None:
    """Corners of its elements carry nothing under an even pressure, and are in contact all the same."""
    scene = fs.Scene("press", dt=0.05, duration=0.3, gravity=(0, 0, 0), theta=1.0)
    scene.add_floor()
    scene.add_soft("block", fs.box_tets((0.04, 0.04, 0.04), 2), RUBBER, position=(0, 0, 0.02), element="quadratic")
    plate = scene.add_rigid("plate", fs.Box((0.05, 0.05, 0.005)), mass=0.1, position=(0, 0, 0.045))
    scene.drive(plate, fs.Motion([0.0, 0.1], [(0, 0, 0), (0, 0, -4e-4)]))
    for other in ("floor", "plate"):
        scene.set_friction("block", other, 0.0)
    scene.sensor("area", "block", kind="area", partner="plate")
    scene.sensor("half", "block", kind="area", partner="plate", where=lambda points: points[:, 0] < 1e-9)
    run = fs.simulate(scene)
    face = (0.04 * 1.003) ** 2  # widened by Poisson's ratio times the strain
    assert run.gauges["area"].values["area_m2"][-1] == pytest.approx(face, rel=1e-4)
    # nodes on the middle line own 6 of the 8 mm that a quarter of the elements, 10 mm wide, gives each of two halves
    assert run.gauges["half"].values["area_m2"][-1] == pytest.approx(0.625 * face, rel=1e-4)


def test_area_in_a_corner_is_that_of_both_faces() -> None:
    """Nodes on the edge between them are pressed on both: the sum of their forces chose one face, which lost half a cell."""
    scene = fs.Scene("corner", dt=0.01, duration=0.2, gravity=(-5.0, 0, -G), theta=1.0)
    scene.add_floor()
    scene.add_obstacle("wall", fs.Box((0.01, 0.1, 0.1)), position=(-0.03, 0, 0.05))
    scene.add_soft("block", fs.box_tets((0.04, 0.06, 0.02), (4, 6, 2)), RUBBER, position=(0, 0, 0.01))
    scene.sensor("all", "block", kind="area")
    for other in ("floor", "wall"):
        scene.set_friction("block", other, 0.0)
        scene.sensor(other, "block", kind="area", partner=other)
    gauges = fs.simulate(scene).gauges
    area = {name: float(gauges[name].values["area_m2"][-1]) for name in ("all", "floor", "wall")}
    assert area == pytest.approx({"all": 3.6e-3, "floor": 2.4e-3, "wall": 1.2e-3}, rel=2e-3)


def test_area_does_not_depend_on_friction() -> None:
    """A plate that a wall pulls down by friction above 1: the force on its edges opposes another face than the wall's most."""
    scene = fs.Scene("pull", dt=0.01, duration=0.1, gravity=(0, 0, 0), theta=1.0)
    scene.add_soft("plate", fs.box_tets((0.002, 0.02, 0.02), (1, 2, 2)), RUBBER, fixed=lambda p: p[:, 0] > 0.001 - 1e-9)
    wall = scene.add_rigid("wall", fs.Box((0.01, 0.1, 0.1)), mass=1.0, position=(-0.011, 0, 0))
    scene.drive(wall, fs.Motion([0.0, 0.05, 0.1], [(0, 0, 0), (5e-5, 0, 0), (5e-5, 0, -2e-4)]))
    scene.set_friction("plate", wall, 3.0)
    scene.sensor("area", "plate", kind="area")
    scene.sensor("force", "plate")
    run = fs.simulate(scene)
    force = run.sensors["force"].force[-1]
    assert -force[2] > force[0] > 0
    assert run.gauges["area"].values["area_m2"][-1] == pytest.approx(4e-4, rel=0.05)


def test_area_under_a_box_is_that_of_its_face() -> None:
    """By faces its edges press nodes beyond them too, by a share; with all of these the area read 1.5 times that of the box."""
    scene = fs.Scene("press", dt=0.01, duration=0.03, theta=1.0)
    mesh, soft = fs.box_tets((0.06, 0.06, 0.005), (12, 12, 1)), fs.Elastic(2e5, 0.4, 1000.0)
    scene.add_soft("pad", mesh, soft, position=(0, 0, -0.0025), fixed=lambda p: p[:, 2] < -0.0049)
    scene.add_rigid("box", fs.Box((0.021, 0.017, 0.01)), mass=0.6, position=(0.003, 0.002, 0.01), rotation=(0, 0, 0.4))
    for name in ("pad", "box"):
        scene.sensor(name, name, kind="area")
    gauges = fs.simulate(scene).gauges
    pad, box = (float(gauges[name].values["area_m2"][-1]) for name in ("pad", "box"))
    assert pad == box == pytest.approx(0.042 * 0.034, rel=0.12)


def test_gap_after_a_restore_is_that_of_the_state() -> None:
    """Boxes fall from several heights: what was found for one is not shown for another after as many steps."""

    def fallen(height: float) -> Stepper:
        scene = fs.Scene("drop", dt=0.01, duration=0.1, theta=1.0)
        scene.add_floor()
        scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0, 0, 0.01 + height))
        scene.sensor("gap", "box", kind="gap", partner="floor", reach=0.1)
        stepper = Stepper(scene, fs.make_solver("exact"))
        stepper.step()
        return stepper

    stepper = fallen(0.03)
    search = GapSearch(stepper)
    for height in (0.03, 0.05, 0.02):
        stepper.restore(fallen(height).state)
        assert search.found()[1].min() == pytest.approx(height - G * 0.01**2, abs=1e-12)
        assert search.found() is search.found()  # once for all sensors


def test_gap_is_the_height_of_a_fall_and_changes_nothing() -> None:
    def drop(gap: bool) -> fs.Run:
        scene = fs.Scene("drop", dt=0.01, duration=0.1, theta=1.0)
        scene.add_floor()
        scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0, 0, 0.04))
        scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), RUBBER, position=(0.1, 0, 0.01))
        scene.add_soft("above", fs.box_tets((0.01, 0.01, 0.01), 2), RUBBER, position=(0.1, 0, 0.045))
        if gap:
            scene.sensor("near", "box", kind="gap", partner="floor", reach=0.02)
            scene.sensor("far", "floor", kind="gap", partner="box")
            scene.sensor("soft", "above", kind="gap", partner="cube", reach=0.05)
            scene.sensor("area", "above", kind="area")
        return fs.simulate(scene, tolerance=1e-10)

    run, plain = drop(True), drop(False)
    n = np.arange(1, 11)
    height = 0.03 - G * 0.01**2 * n * (n + 1) / 2
    falling = height > 0.002
    near, far = (run.gauges[name].values["gap_m"] for name in ("near", "far"))
    for gap, reach in ((near, 0.02), (far, 0.01)):
        expected = np.where(height < reach, height, np.inf)
        np.testing.assert_allclose(gap[falling], expected[falling], atol=1e-9)
    assert np.isinf(near[0])
    assert abs(far[-1]) < 1e-4  # it lies on the floor
    np.testing.assert_allclose(run.gauges["soft"].values["gap_m"][:5], height[:5] - 0.01, atol=2e-5)  # 20 mm at the start
    assert not run.gauges["area"].values["area_m2"][:5].any()
    for name, column in plain.steps.items():
        if not name.startswith("ms_"):
            np.testing.assert_array_equal(run.steps[name], column, err_msg=name)


def test_joint_of_a_finger() -> None:
    """Weight, acceleration of the base, grip, and a rod that the finger holds."""
    scene = fs.Scene("hand", dt=0.01, duration=1.0, theta=1.0)
    pad = fs.Box((0.003, 0.01, 0.01))
    hand = scene.add_gripper(
        "hand",
        [fs.Finger("left", pad, offset=(-0.03, 0, -0.05), closing=(1, 0, 0), mass=0.1),
         fs.Finger("right", pad, offset=(0.03, 0, -0.05), closing=(-1, 0, 0), mass=0.2)],
        position=(0, 0, 0.2), mass=0.5,
    )  # fmt: skip
    scene.add_rigid("block", fs.Box((0.01, 0.01, 0.01)), mass=0.05, position=(0, 0, 0.15))
    root = np.array([0.033, 0.0, 0.15])
    whisker = scene.add_rod(
        "whisker", np.linspace(root, root + np.array([0.03, 0, 0]), 5), fs.circular_section(0.002),
        fs.Elastic(1e9, 0.3, 1000.0, rayleigh_beta=0.01), start=fs.RodEnd("clamped", on="hand.right"),
    )  # fmt: skip
    scene.set_friction("hand", "block", 0.8)
    scene.drive(hand, force=fs.Profile([0.0, 0.02], [2.0, 4.0]), fingers=True)
    scene.drive(hand, lambda t: (np.array([0, 0, max(t - 0.5, 0.0) ** 2]), np.zeros(3)))
    scene.sensor("left", "hand.left", kind="joint")
    scene.sensor("right", "hand.right", kind="joint")
    scene.sensor("wrist", hand, kind="mount")
    scene.sensor("block", "block", kind="contact", partner=hand)
    balance = []

    def at_rest(stepper: Any, report: Any) -> None:
        if report.step == 46:
            rod = scene.body("whisker")
            arm = rod.centre_of_mass(stepper.state.q[stepper.system.q_slices[2]]) - stepper.link_pose(2)[1]
            balance.append(-report.forces.wrench[2, 3:] - np.cross(arm, (0, 0, -rod.mass * G)))

    run = fs.simulate(scene, tolerance=1e-10, on_step=at_rest)
    assert run.status == "converged"
    mass = scene.body("whisker").mass
    left, right, wrist = (wrench(run, name) for name in ("left", "right", "wrist"))
    assert whisker.parts == ("whisker",)
    for k, pull in ((45, G), (-1, G + 2.0)):  # at rest, and lifted by 2 m/s^2
        # each finger carries half of the block
        assert left[k, 2] + right[k, 2] == pytest.approx((0.3 + 0.05 + mass) * pull, rel=1e-4)
        assert left[k, 0] == pytest.approx(4.0, rel=1e-4) and right[k, 0] == pytest.approx(-4.0, rel=1e-4)
        assert wrist[k, 2] == pytest.approx(left[k, 2] + right[k, 2] + 0.5 * pull, rel=1e-4)
    assert wrench(run, "block")[45, 2] == pytest.approx(0.05 * G, rel=1e-4)
    # balance of the right finger about its centre: what touches it, and the weight of the rod at the centre of that
    np.testing.assert_allclose(right[45, 3:], balance[0], atol=1e-7)


@pytest.mark.usefixtures("undrawn")
def test_tables_and_api(tmp_path: Path) -> None:
    run = fs.simulate(pile(gap={"on": "box", "kind": "gap", "partner": "base"}, top={"on": "top"},
                           area={"on": "top", "kind": "area"}), duration=0.12, out=tmp_path / "run")  # fmt: skip
    head, *rows = (tmp_path / "run" / "sensors.csv").read_text().splitlines()
    assert head == "time_s,gap_gap_m,top_fx_N,top_fy_N,top_fz_N,top_tx_Nm,top_ty_Nm,top_tz_Nm,area_area_m2"
    assert rows[0].split(",")[1] == "inf"
    assert list(run.sensors) == ["top"] and list(run.gauges) == ["gap", "area"]
    np.testing.assert_allclose([float(row.split(",")[-1]) for row in rows], run.gauges["area"].values["area_m2"], rtol=1e-9)
    # a comparison passes over the other columns
    again = fs.compare(tmp_path / "run", tmp_path / "run" / "sensors.csv", {"sensor": "top", "time": {"offset": 0.01}})
    assert again.vectors["force"][1] < 1e-12
    assert {path.name for path in fs.plot_run(tmp_path / "run")} >= {"gauges.png", "gauges.svg", "forces.png"}


def test_wrong_sensors() -> None:
    scene = pile()
    hand = scene.add_gripper("hand", [fs.Finger("one", fs.Box((0.01, 0.01, 0.01)), (0, 0, 0), (1, 0, 0))], position=(1, 0, 1))
    for options, words in (
        ({"on": "box", "kind": "gap"}, "sensor s: a gap is that of 'box' to something; name it as partner"),
        ({"on": "box", "kind": "gap", "partner": "flor"}, "partner 'flor' is unknown; did you mean 'floor'?"),
        (
            {"on": "box", "kind": "energy", "partner": "floor"},
            "partner is for the kinds contact, gap, area, slip, pair, not 'energy'",
        ),
        ({"on": "box", "kind": "gap", "partner": "floor", "where": np.array([1])}, "where is for the kinds contact, area, slip"),
        ({"on": "box", "reach": 0.1}, "reach is for the kinds gap, not 'contact'"),
        ({"on": "box", "kind": "gap", "partner": "floor", "reach": -1.0}, "reach of sensor s is -1.0 m; allowed are positive"),
        ({"on": "floor", "kind": "energy"}, "'floor' is an obstacle, which has no energy"),
        ({"on": hand, "kind": "joint"}, "kind 'joint' needs a finger of a gripper"),
        ({"on": "top", "kind": "slip", "reading": fs.Reading()}, "kind 'slip' has none"),
    ):
        with pytest.raises(fs.InputError, match=re.escape(words)):
            scene.sensor("s", **options)
    for options, words in (
        ({"on": "hand", "partner": "hand.one"}, "sensor s: 'hand' never has contact with 'hand.one' here"),
        ({"on": "top", "partner": "top"}, "'top' never has contact with 'top' here"),
        ({"on": "box", "kind": "area", "partner": "floor"}, "'box' has no contact with a soft body"),
        ({"on": "top", "where": np.array([999])}, "where of sensor s names node 999; allowed are 0 to 26"),
        ({"on": "top", "where": lambda points: points[:, 0] > 9}, "where of sensor s chooses no node"),
        ({"on": "top", "where": np.array([13])}, "chooses only nodes inside 'top'"),
        ({"on": "box", "where": np.array([1])}, "'box' is rigid and has no nodes; give a condition"),
    ):
        scene = pile()
        scene.add_gripper("hand", [fs.Finger("one", fs.Box((0.01, 0.01, 0.01)), (0, 0, 0), (1, 0, 0))], position=(1, 0, 1))
        scene.sensor("s", **options)
        with pytest.raises(fs.InputError, match=re.escape(words)):
            fs.simulate(scene)
    scene = pile(s={"on": "box", "where": lambda points: points[:, 0]})
    with pytest.raises(fs.InputError, match="where of sensor s gave shape"):
        fs.simulate(scene)


def test_slip_is_tangential_and_counts_contacts_with_oneself_once() -> None:
    """Contacts that are made up: both sides on the sensed body, half of them leaving at 5 m/s while they slide at 0.3 m/s."""
    stepper = Stepper(pile(slid={"on": "base", "kind": "slip"}), fs.make_solver("exact"))
    sensors = Sensors(stepper)
    report = stepper.step()
    c = report.contacts
    base = stepper.scene.part_names.index("base")
    lam, u = np.zeros_like(c.lam), np.zeros_like(c.u)
    lam[:, 0], lam[:, 1], u[:, 0], u[:, 1], u[:, 2] = 2.0, -0.5, 5.0, 0.3, 0.4
    for sides in ((base, base), (base, base + 1)):
        told = replace(
            c,
            lam=lam,
            u=u,
            taken=np.full(len(lam), 0.02 * 0.5 * 0.3),
            part=np.tile(sides, (len(lam), 1)),
            state=np.full(len(lam), 2),
        )
        before = np.array(sensors.row(replace(report, parts=((0.02, replace(told, lam=0.0 * lam, taken=0.0 * lam[:, 0])),)))[1:])
        slip, friction = np.array(sensors.row(replace(report, parts=((0.02, told),)))[1:]) - before
        assert slip == pytest.approx(0.02 * 0.5, rel=1e-12) and friction == pytest.approx(0.02 * 0.5 * 0.3 * len(lam), rel=1e-12)


def test_friction_takes_the_same_by_sensor_and_column_where_a_body_lands_and_slides() -> None:
    """In an energy-momentum step the forces that act belong to the velocities at its end, not to those of the step."""
    scene = fs.Scene("thrown", dt=0.005, duration=0.3)
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), RUBBER, position=(0, 0, 0.015), velocity=(0.5, 0.2, -0.3))
    scene.sensor("slip", "cube", kind="slip")
    run = fs.simulate(scene)
    taken, slip = run.steps["friction_loss_J"], run.gauges["slip"]
    assert scene.integrator == "energy-momentum" and taken[-1] > 5e-4 and slip.values["slip_m"][-1] > 5e-3
    np.testing.assert_allclose(slip.values["friction_J"], taken, rtol=1e-9, atol=1e-15)


def test_what_slides_past_without_a_touch_does_not_slip() -> None:
    """A box at 1 m/s, 0.1 mm above a floor: within the margin of contacts, but nothing presses."""
    scene = fs.Scene("past", dt=0.001, gravity=(0, 0, 0), theta=1.0)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0, 0, 0.0201), velocity=(1.0, 0, -0.01))
    report = Stepper(scene, fs.make_solver("exact")).step()
    assert len(report.contacts.u) and report.contacts.u[:, 1:].any() and not report.contacts.lam.any()
    assert report.max_slip == 0.0
