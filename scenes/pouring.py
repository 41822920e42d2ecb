"""A robot arm pours spheres from a bottle into a pot (papers/000, pouring; arm, sizes and masses are our own).

The jaws hold the bottle by friction, and the last joint of the arm tips it. A good result: every step converges, all spheres
end in the pot, which carries their weight and its own, and the wrist bears so much less.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs

#: Radius and z of the points of the walls, and their padding, m.
BOTTLE = ([(0.0, 0.0), (0.025, 0.0), (0.025, 0.075), (0.02, 0.1)], 0.002)
POT = ([(0.0, 0.0), (0.065, 0.0), (0.085, 0.08)], 0.003)
#: Bottom of the bottle and its way to the pot, along y; the point between the finger tips that is at its middle, m.
PLACE, ASIDE, GRIP = (0.42, 0.0, 0.24), -0.095, (0.0, 0.0, 0.07)
#: How high over its bottom it is gripped, m.
GRIPPED = 0.045
#: When tipping begins and ends, s.
BEGIN, END = 0.25, 1.75


def build(
    layers: int = 2,
    radius: float = 0.006,
    density: float = 2500.0,
    grip_force: float = 40.0,
    tip: float = 130.0,
    friction: float = 0.3,
    dt: float = 0.004,
    duration: float = 2.5,
) -> fs.Scene:
    """Fill a bottle with spheres and tip it over a pot.

    Parameters
    ----------
    layers : int, 1
        Layers of seven spheres in the bottle.
    radius : float, m
        Radius of the spheres; at most 6 mm.
    density : float, kg/m^3
        Density of the spheres.
    grip_force : float, N
        Force of each jaw.
    tip : float, degree
        Angle by which the bottle is tipped.
    friction : float, 1
        Coulomb coefficient of all pairs but jaws and bottle, which have 0.8.
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    """
    scene = fs.Scene("pouring", dt=dt, duration=duration, default_friction=friction)
    scene.add_floor()
    pot = scene.add_rigid("pot", fs.Revolved(*POT), mass=0.5, position=(PLACE[0], ASIDE, POT[1]))
    bottle = scene.add_rigid("bottle", fs.Revolved(*BOTTLE), mass=0.1, position=PLACE)

    robot = fs.load_robot("arm7.urdf")
    level = (0.0, 0.5 * math.pi, 0.0)  # the hand points along x, its jaws move along y
    held = robot.reach("hand", (PLACE[0], PLACE[1], PLACE[2] + GRIPPED), level, joints={"joint4": 1.2}, tool=GRIP)
    outside = BOTTLE[0][1][0] + BOTTLE[1]
    arm = scene.add_robot(robot, name="arm", joints={**held, "left_jaw": outside})
    for joint, angle in held.items():
        tipped = angle + (math.radians(tip) if joint == "joint7" else 0.0)
        scene.drive_joint(arm, joint, fs.Profile([BEGIN, END], [angle, tipped]))
    # the right jaw mimics the left one, so that its motor moves both
    scene.drive_joint(arm, "left_jaw", effort=fs.Profile([0.0], [-2.0 * grip_force]))
    for finger in ("arm.left_finger", "arm.right_finger"):
        scene.set_friction(finger, bottle, 0.8)

    around = np.arange(6) * math.pi / 3.0
    for layer in range(layers):
        ring = 2.05 * radius * np.column_stack([np.cos(around), np.sin(around)])
        for k, (x, y) in enumerate([(0.0, 0.0), *ring]):
            height = BOTTLE[1] + radius * (1.05 + 2.1 * layer)
            place = (PLACE[0] + x, PLACE[1] + y, PLACE[2] + height)
            scene.add_rigid(f"sphere_{layer}_{k}", fs.Sphere(radius), density=density, position=place)
    scene.sensor("wrist", "arm.hand_mount", kind="joint")
    scene.sensor("bottle", bottle, kind="marker")
    scene.sensor("pot", pot)
    scene.sensor("floor", "floor")
    return scene
