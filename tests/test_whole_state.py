"""A scene with all that moves or remembers: saved, disturbed and restored, it goes on to the last bit as if nothing had been.

A robot with a servo and a limit; a soft body with Prony terms, a chamber and a tendon, glued to a plate that a hinge with dry
friction lets turn; a rod that a free body holds; a wheel that its hinge stops after more than a turn; a gripper on a compliant
drive, with a box on a weld that breaks after the first save; sensors with noise, a filter and slip; friction on the floor.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hollow_boxes import hollow_box

import femsim as fs
from materials import circular_section

RUBBER = fs.Elastic(1e5, 0.3, 1000.0, name="rubber", prony=((0.3, 0.02),))
#: Steps before the save, and after it; the weld breaks between.
BEFORE, AFTER = 4, 5
SIDES = {"left": -0.03, "right": 0.03}


def add_arm(scene: fs.Scene) -> None:
    """Hang up two links of 100 mm; a servo holds the first, the second swings against its stop."""
    rod = fs.Piece(fs.Capsule(0.01, 0.03), (0, 0, -0.05))
    links = [fs.RobotLink.solid("base", fs.Piece(fs.Box((0.02, 0.02, 0.02))), 1.0)]
    links += [fs.RobotLink.solid(name, rod, 0.2) for name in ("upper", "lower")]
    joints = [
        fs.RobotJoint("shoulder", "base", "upper", axis=(0, 1, 0)),
        fs.RobotJoint("elbow", "upper", "lower", position=(0, 0, -0.1), axis=(0, 1, 0), limits=(-0.5, 1.0)),
    ]
    scene.add_robot(fs.Robot("arm", links, joints), position=(0.5, 0, 0.5), speeds={"elbow": 2.0})
    scene.drive_joint("arm", "shoulder", fs.Profile([0, 0.1], [0.0, 0.3]), stiffness=50.0)
    scene.sensor("elbow", "arm.lower", kind="revolute")


def add_gripper(scene: fs.Scene) -> None:
    """Let a compliant drive carry a gripper, welded to a box that is pulled down more and more until the weld breaks."""
    pad = fs.Box((0.005, 0.01, 0.01))
    fingers = [fs.Finger(side, pad, (x, 0, -0.05), (-np.sign(x), 0, 0), mass=0.05) for side, x in SIDES.items()]
    scene.add_gripper("hand", fingers, mass=0.5, position=(-0.5, 0, 0.3))
    scene.drive("hand", fs.Motion([0, 0.1], [(0, 0, 0), (0.01, 0, 0)]), stiffness=(2e3, 20.0))
    scene.drive("hand", fingers=True, force=lambda t: 2.0)
    scene.add_rigid(
        "box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(-0.5, 0, 0.2), load=lambda t: ((0, 0, -400.0 * t), (0, 0, 0))
    )
    scene.join("box", "hand", "weld", at=(-0.5, 0, 0.25), breakable=20.0, name="weld")
    scene.sensor("weld", "weld", kind="reaction")


def add_soft(scene: fs.Scene) -> None:
    """Glue a soft box with a chamber and a tendon to a plate on a hinge; a free box slides into it."""
    scene.add_rigid("plate", fs.Box((0.02, 0.02, 0.005)), mass=0.2, position=(0, 0, 0.005))
    scene.join("plate", "world", "hinge", at=(0, 0, 0), axis=(0, 0, 1), friction=0.001, name="hinge")
    scene.add_soft("soft", hollow_box(), RUBBER, position=(0, 0, 0.025), velocity=(0.0, 0.3, 0.0))
    scene.join("soft", "plate", at=(0, 0, 0.01), where=lambda x: x[:, 2] < 0.0101, name="glue")
    scene.pressurize("soft", fs.Profile([0, 0.1], [0.0, 3e4]), name="chamber")
    top = [(-0.015, 0.015, 0.04), (0.015, 0.015, 0.04)]
    scene.add_tendon("soft", top, fs.Profile([0, 0.1], [0.0, 1.0]), name="tendon")
    scene.add_rigid("slider", fs.Box((0.005, 0.005, 0.005)), mass=0.05, position=(0.025, 0, 0.005), velocity=(-0.5, 0.3, 0))
    scene.sensor("floor", "floor", reading=fs.Reading(noise=(0.01, 0.001), rate=60.0, lowpass=30.0, seed=3))
    scene.sensor("slid", "slider", kind="slip")
    scene.sensor("glue", "glue", kind="reaction")
    scene.sensor("chamber", "chamber", kind="chamber")
    scene.sensor("tendon", "tendon", kind="tendon")


def add_wheel(scene: fs.Scene) -> None:
    """Let a wheel turn by 1 rad a step on a hinge that stops it after more than a turn."""
    scene.add_rigid("wheel", fs.Sphere(0.02), mass=0.1, position=(1, 0, 0.5), angular_velocity=(0, 100, 0))
    scene.join("wheel", "world", "hinge", at=(1, 0, 0.5), axis=(0, 1, 0), limits=(-1.0, 11.0), name="axle")
    scene.sensor("axle", "axle", kind="reaction")


def add_rod(scene: fs.Scene) -> None:
    """Let a free box hold the end of a rod that swings into the floor."""
    scene.add_rigid("holder", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0, 0.5, 0.1))
    points = np.linspace((0.01, 0.5, 0.1), (0.11, 0.5, 0.02), 8)
    scene.add_rod("rod", points, circular_section(0.003), RUBBER.replace(prony=()), start=fs.RodEnd("clamped", on="holder"))


def scene(**options: float) -> fs.Scene:
    built = fs.Scene("all", dt=0.01, duration=0.5, **options)  # type: ignore[arg-type]
    built.add_floor()
    for add in (add_arm, add_gripper, add_soft, add_wheel, add_rod):
        add(built)
    return built


def rows(sim: fs.Simulation, steps: int) -> list[dict[str, float]]:
    """All that is measured, step by step, without times."""
    out = []
    for _ in range(steps):
        out.append({name: value for name, value in sim.step().row().items() if not name.startswith("ms_")})
    return out


def assert_same(found: list[dict[str, float]], wanted: list[dict[str, float]]) -> None:
    """Name what differs in any bit, and in which step."""
    pairs = enumerate(zip(found, wanted, strict=True))
    wrong = [(k, name) for k, (a, b) in pairs for name in b if np.float64(a[name]).tobytes() != np.float64(b[name]).tobytes()]
    assert not wrong


@pytest.mark.parametrize("options", [{}, {"theta": 1.0}, {"theta": 0.75}], ids=["energy-momentum", "backward", "between"])
def test_saved_disturbed_and_restored_it_goes_on_to_the_last_bit(options: dict[str, float], tmp_path: Path) -> None:
    sim = fs.Simulation(scene(**options), "exact")
    first = rows(sim, BEFORE)
    whole = sim.save()
    breaking = rows(sim, AFTER)
    broken = sim.save()
    apart = rows(sim, AFTER)
    # the scene does what it says: the weld holds at the first save and not at the second; stops, friction and filter act
    assert abs(first[-1]["weld_fz_N"]) > 10.0 and breaking[-1]["weld_fz_N"] == 0.0
    assert max(abs(row["elbow_limit_Nm"]) for row in breaking) > 0.0 < breaking[-1]["slid_friction_J"]
    assert max(abs(row["axle_ty_Nm"]) for row in apart) > 0.0
    assert min(row["contacts"] for row in breaking) > 0 and apart[-1]["floor_measured_fz_N"] != apart[-1]["floor_fz_N"]
    # back to before the weld broke, to the other side of it, and in a simulation that has only the file
    sim.restore(whole)
    assert_same(rows(sim, AFTER), breaking)
    sim.restore(whole)
    sim.restore(broken)
    assert_same(rows(sim, AFTER), apart)
    broken.write(tmp_path / "saved.npz")
    other = fs.Simulation(scene(**options), "exact")
    rows(other, 1)
    other.restore(fs.Saved.read(tmp_path / "saved.npz"))
    assert_same(rows(other, AFTER), apart)
