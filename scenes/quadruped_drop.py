"""Eight quadrupeds are dropped in two layers: the lower four land on their feet, the upper ones on them (papers/000, Table III).

Servos hold the legs. A good result: all come to rest, and the floor then bears the weight of all; the feet of one robot alone
(``robots=1``) bear its own.
"""

from __future__ import annotations

import math

import femsim as fs

LEGS = [f"{end}_{side}" for end in ("front", "hind") for side in ("left", "right")]
#: Distances of the robots along x, y and z, and by how much the upper layer is shifted along x and y, m.
APART, SHIFT = (0.8, 0.5, 0.55), (0.12, 0.07)
#: Angles of hip pitch and knee, rad, length of thigh and of shank and radius of the feet, m.
PITCH, KNEE, LEG, FOOT = 0.6, -1.2, 0.2, 0.022


def build(
    robots: int = 8,
    height: float = 0.05,
    stiffness: float = 400.0,
    damping: float = 20.0,
    friction: float = 0.6,
    dt: float = 0.005,
    duration: float = 4.0,
) -> fs.Scene:
    """Drop quadrupeds, four in a layer.

    Parameters
    ----------
    robots : int, 1
        How many.
    height : float, m
        How far the feet of the lowest layer fall.
    stiffness : float, N m/rad
        Of the servos, twelve a robot.
    damping : float, N m s/rad
        Of the servos.
    friction : float, 1
        Coulomb coefficient of all pairs.
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    """
    scene = fs.Scene("quadruped_drop", dt=dt, duration=duration, default_friction=friction, theta=1.0)
    scene.add_floor()
    robot = fs.load_robot("quadruped.urdf")
    bent = {f"{leg}_{joint}": angle for leg in LEGS for joint, angle in (("pitch", PITCH), ("knee", KNEE))}
    standing = 2.0 * LEG * math.cos(PITCH) + FOOT
    for k in range(robots):
        layer, place = divmod(k, 4)
        x, y = divmod(place, 2)
        at = (APART[0] * x + SHIFT[0] * layer, APART[1] * y + SHIFT[1] * layer, standing + height + APART[2] * layer)
        body = scene.add_robot(robot, name=f"robot_{k}", base="free", position=at, joints=bent)
        for joint in robot.inverse_dynamics(bent):
            scene.drive_joint(body, joint, fs.Profile([0.0], [bent.get(joint, 0.0)]), stiffness=stiffness, damping=damping)
        for leg in LEGS:
            scene.sensor(f"{k}_{leg}", f"robot_{k}.{leg}_foot", partner="floor")
    scene.sensor("floor", "floor")
    return scene
