"""A scene with one of each thing that follows a function of time."""

from __future__ import annotations

import numpy as np
from hollow_boxes import hollow_box
from small_scene import DT, STEPS

import femsim as fs

RUBBER = fs.Elastic(1e5, 0.3, 1000.0, name="rubber")


def many_drives() -> fs.Scene:
    """One of each thing that follows a function of time; nothing touches anything."""
    scene = fs.Scene("drives", dt=DT, duration=STEPS * DT, gravity=(0, 0, 0), theta=1.0)
    one = fs.Profile([0.0], [1.0], name="one")
    gripper = scene.add_gripper("hand", [fs.Finger("left", fs.Box((0.01, 0.01, 0.01)), offset=(0.05, 0, 0), closing=(-1, 0, 0))])
    scene.drive(gripper, fs.Motion([0.0], [(0, 0, 0)], name="way"))
    scene.drive(gripper, force=one, fingers=True)
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(1, 0, 0), load=lambda t: ((0, 0, 0), (0, 0, 0)))
    scene.add_soft(
        "pouch", hollow_box(), RUBBER, position=(2, 0, 0), fixed=lambda x: x[:, 0] < 1.986, load=lambda t: (0.0, 0.0, 0.0)
    )
    scene.pressurize("pouch", fs.Profile([0.0], [0.0]), name="air")
    bar = scene.add_soft("bar", fs.box_tets((0.06, 0.01, 0.01), (6, 1, 1)), RUBBER, position=(3, 0, 0))
    scene.hold(bar, lambda x: x[:, 0] < 2.971, fs.Motion([0.0], [(0, 0, 0)]), name="grasp")
    scene.add_tendon(bar, [(2.98, 0, 0), (3.02, 0, 0)], fs.Profile([0.0], [0.0]), name="string")
    points = np.linspace((4.0, 0, 0), (4.1, 0, 0), 6)
    scene.add_rod(
        "cable", points, fs.circular_section(0.002), RUBBER, start=fs.RodEnd("clamped", motion=fs.Motion([0.0], [(0, 0, 0)])),
        end=fs.RodEnd(load=lambda t: ((0, 0, 0), (0, 0, 0))),
    )  # fmt: skip
    scene.sensor("hand", "hand", kind="mount")
    scene.sensor("air", "air", kind="chamber")
    scene.sensor("string", "string", kind="tendon")
    return scene
