"""Scenes of all sizes for ``bench_scale.py``: from a sliding box to a pile of cubes; public interface only, of any version."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import femsim as fs

#: Those of the checkout that is measured.
SCENES = Path(fs.__file__).resolve().parents[1] / "scenes"


def box() -> fs.Scene:
    """Pull a rigid box of 10 cm over a floor."""
    scene = fs.Scene("box", dt=0.005, duration=5.0, default_friction=0.3)
    scene.add_floor()
    push = ((1.5, 0.0, 0.0), (0.0, 0.0, 0.0))
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), density=400.0, position=(0.0, 0.0, 0.0501), load=lambda _t: push)
    return scene


def box_and_arm() -> fs.Scene:
    """Pull the same box while a robot arm of seven joints and a gripper moves beside it, under eight servos."""
    scene = box()
    start = {"joint2": 0.604, "joint4": 1.942, "joint6": 0.595}
    arm = scene.add_robot("arm7.urdf", name="arm", position=(0.0, 1.0, 0.0), joints=start)
    for k in range(1, 8):
        at = start.get(f"joint{k}", 0.0)
        motion = fs.Profile([0.0, 0.4, 5.0], [at, at + 0.05, at - 0.05])
        scene.drive_joint(arm, f"joint{k}", motion, stiffness=2000.0)
    scene.drive_joint(arm, "left_jaw", fs.Profile([0.0, 1.0], [0.0, 0.01]), stiffness=2000.0)
    return scene


def quadrupeds(robots: int) -> fs.Scene:
    """Let quadrupeds of 18 velocities, held by twelve servos each, come to rest on a floor, on four feet each."""
    scene = fs.Scene("quadrupeds", dt=0.005, duration=1.0, default_friction=0.6)
    scene.add_floor()
    robot = fs.load_robot("quadruped.urdf")
    legs = [f"{end}_{side}" for end in ("front", "hind") for side in ("left", "right")]
    bent = {f"{leg}_{joint}": angle for leg in legs for joint, angle in (("pitch", 0.6), ("knee", -1.2))}
    for k in range(robots):
        x, y = divmod(k, 6)
        body = scene.add_robot(robot, name=f"robot{k}", base="free", position=(0.9 * x, 0.6 * y, 0.3531), joints=bent)
        for joint in robot.inverse_dynamics(bent):
            scene.drive_joint(body, joint, fs.Profile([0.0], [bent.get(joint, 0.0)]), stiffness=400.0, damping=20.0)
    return scene


def gripped_cube() -> fs.Scene:
    """Grip and lift a cube of 27 nodes."""
    scene = fs.Scene("gripped_cube", dt=0.01, duration=2.0)
    scene.add_floor()
    rubber = fs.Elastic(1e6, 0.35, 1000.0, rayleigh_beta=1e-3, name="cube")
    cube = scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 2), rubber, position=(0.0, 0.0, 0.02))
    pad, away = fs.Box((0.003, 0.02, 0.02)), 0.027
    fingers = [
        fs.Finger("left", pad, offset=(-away, 0.0, -0.06), closing=(1.0, 0.0, 0.0)),
        fs.Finger("right", pad, offset=(away, 0.0, -0.06), closing=(-1.0, 0.0, 0.0)),
    ]
    gripper = scene.add_gripper("gripper", fingers, position=(0.0, 0.0, 0.08), mass=0.5, joint_limits=(-0.01, 0.03))
    scene.set_friction(cube, gripper, 0.5)
    scene.set_friction(cube, "floor", 0.5)
    scene.drive(gripper, force=fs.Profile([0.1, 0.2, 0.5], [0.0, 0.5, 5.0]), fingers=True)
    scene.drive(gripper, fs.Motion([0.7, 1.5], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.06)]))
    return scene


def led_cube(stiffness: tuple[float, float] | None = None) -> fs.Scene:
    """Drag a foam cube of 27 nodes over a floor by the nine of its upper face, exactly or by a spring."""
    scene = fs.Scene("led_cube", dt=0.01, duration=3.0)
    scene.add_floor()
    foam = fs.Elastic(5e4, 0.3, 1000.0, name="foam")
    cube = scene.add_soft("cube", fs.box_tets((0.1, 0.1, 0.1), 2), foam, position=(0.0, 0.0, 0.0502))
    way = fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0), (0.03, 0.0, -0.003)])
    scene.hold(cube, lambda x: x[:, 2] > 0.0999, way, stiffness=stiffness)
    return scene


def cable(links: int) -> fs.Scene:
    """Let a cable swing that is clamped at one end, as in ``bench_cable.py``."""
    scene = fs.Scene("cable", dt=0.005, duration=10.0, theta=1.0)
    rubber = fs.Elastic(2.954e6, 0.49, 1259.0, name="cable")
    line = np.linspace(0.0, 1.0, links + 1)[:, None] * [0.4, 0.0, 0.0]
    section = fs.circular_section(0.002, shear_factor=1.0)
    scene.add_rod("cable", line, section, rubber, start=fs.RodEnd("clamped"), translational_damping=0.1)
    return scene


def rope(links: int) -> fs.Scene:
    """Drag a rope over a floor sideways by one end; every link touches."""
    scene = fs.Scene("rope", dt=0.005, duration=0.5, default_friction=0.3)
    scene.add_floor()
    line = np.linspace((0.0, 0.0, 0.002), (0.00125 * links, 0.0, 0.002), links + 1)
    pull = fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0), (0.0, 0.1, 0.0)], smooth=False)
    rubber = fs.Elastic(2.954e6, 0.49, 1259.0, name="rope")
    scene.add_rod("rope", line, fs.circular_section(0.002), rubber, start=fs.RodEnd("hinged", motion=pull))
    return scene


def pile(cubes: int) -> fs.Scene:
    """Let soft cubes of 125 nodes, four a layer, fall a little."""
    edge = 0.03
    scene = fs.Scene("pile", dt=0.005, duration=0.5, default_friction=0.4)
    scene.add_floor()
    mesh = fs.box_tets((edge, edge, edge), 4)
    rubber = fs.Elastic(1e5, 0.35, 1000.0, rayleigh_beta=2e-3, name="cube")
    for i in range(cubes):
        layer, place = divmod(i, 4)
        x, y = divmod(place, 2)
        at = (x - 0.5) * (edge + 0.002) + 0.006 * (layer % 2), (y - 0.5) * (edge + 0.002) + 0.005 * (layer % 3)
        scene.add_soft(f"cube{i}", mesh, rubber, position=(*at, edge / 2 + 0.0005 + layer * (edge + 0.001)))
    return scene


def pressed_cube(cells: int) -> fs.Scene:
    """Press a cube by a tenth of its height between a base and a plate."""
    edge, half = 0.06, 0.04
    scene = fs.Scene("pressed_cube", dt=0.01, duration=0.4, default_friction=0.5)
    rubber = fs.Elastic(1e6, 0.35, 1000.0, rayleigh_beta=1e-3, name="block")
    scene.add_soft("block", fs.box_tets((edge, edge, edge), cells), rubber, position=(0.0, 0.0, edge / 2))
    scene.add_obstacle("base", fs.Box((half, half, 0.005)), position=(0.0, 0.0, -0.005))
    plate = scene.add_rigid("plate", fs.Box((half, half, 0.005)), mass=1.0, position=(0.0, 0.0, edge + 0.00501))
    path = [(0.0, 0.0, 0.0), (0.0, 0.0, -0.006), (0.003, 0.0, -0.006)]
    scene.drive(plate, fs.Motion([0.0, 0.2, 0.4], path))
    return scene


def finger() -> fs.Scene:
    """Push a free box with a silicone finger of 4760 nodes that bends quickly."""
    scene = fs.Scene("finger", dt=0.01, duration=0.5, default_friction=2.1)
    scene.add_floor()
    silicone = fs.Elastic(83e3, 0.42, 1070.0, rayleigh_beta=1e-2, name="silicone")
    mesh = fs.box_tets((0.015, 0.025, 0.06), (9, 13, 33))
    led = scene.add_soft("finger", mesh, silicone, position=(-0.0226, 0.0, 0.033))
    scene.hold(led, lambda x: x[:, 2] > 0.0605, fs.Motion([0.0, 0.5], [(0.0, 0.0, 0.0), (0.02, 0.0, 0.0)]))
    scene.add_rigid("box", fs.Box((0.015, 0.015, 0.015)), density=1240.0, position=(0.0, 0.0, 0.015))
    return scene


def mat(cells: int) -> fs.Scene:
    """Pull a mat of one layer of cells over a floor by one of its edges, after 0.1 s of rest."""
    scene = fs.Scene("mat", dt=0.01, duration=1.0)
    scene.add_floor()
    rubber = fs.Elastic(75e3, 0.35, 1000.0, rayleigh_beta=1e-3, name="mat")
    held = scene.add_soft("mat", fs.box_tets((0.3, 0.3, 0.01), (cells, cells, 1)), rubber, position=(0.0, 0.0, 0.005))
    scene.set_friction(held, "floor", 0.3)
    scene.hold(held, lambda x: x[:, 0] > 0.1499, fs.Motion([0.1, 1.0], [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0)]))
    return scene


def shipped(name: str) -> fs.Scene:
    """Scene of the folder ``scenes``."""
    return fs.load_scene(SCENES / f"{name}.py")
