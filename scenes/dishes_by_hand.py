"""A robot arm takes a bowl and a cup by their rims and piles them on a plate (papers/000, dishes; sizes and masses are our own).

A good result: every step converges, neither dish slips out of the jaws, the pile comes to rest where it was put, and in the end
the plate carries both and the wrist nothing but the hand.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs

#: Radius and z of the points of the walls, and their padding, m; the rims stand upright.
PLATE = ([(0.0, 0.0), (0.07, 0.0), (0.11, 0.015)], 0.003)
BOWL = ([(0.0, 0.0), (0.04, 0.0), (0.06, 0.025), (0.06, 0.05)], 0.003)
CUP = ([(0.0, 0.0), (0.03, 0.0), (0.03, 0.06)], 0.002)
#: Where the plate stands, and the bowl and the cup at the start, m.
PILE, BOWL_AT, CUP_AT = (0.40, 0.05), (0.34, -0.12), (0.34, -0.26)
#: How far the finger tips reach below a rim, over what they carry a dish, and how far the jaws are open, m.
DEPTH, OVER, OPEN = 0.018, 0.05, 0.02
#: Times to close, to lift, to go aside, to lower, to open and to go up, s.
TIMES = (0.25, 0.3, 0.6, 0.4, 0.25, 0.3)
#: Pointing down, jaws along x: rotation vector, rad; the point between the finger tips, m.
DOWN, TIPS = (math.pi / math.sqrt(2.0), math.pi / math.sqrt(2.0), 0.0), (0.0, 0.0, 0.1)


def build(
    grip_force: float = 15.0, bowl_mass: float = 0.15, cup_mass: float = 0.1, friction: float = 0.5, dt: float = 0.005
) -> fs.Scene:
    """Pile a bowl and a cup on a plate by a hand.

    Parameters
    ----------
    grip_force : float, N
        Largest force of each jaw.
    bowl_mass, cup_mass : float, kg
        Masses of the dishes; the plate has 0.3 kg.
    friction : float, 1
        Coulomb coefficient of all pairs but dishes and jaws, which have 0.8.
    dt : float, s
        Time step.
    """
    on_plate = PLATE[1] + PLATE[1] + BOWL[1]  # z of the origin of the bowl, whose bottom lies on that of the plate
    in_bowl = on_plate + BOWL[1] + CUP[1]
    moves = [(BOWL, (*BOWL_AT, BOWL[1]), on_plate), (CUP, (*CUP_AT, CUP[1]), in_bowl)]
    path, jaws = plan(moves, dt)
    scene = fs.Scene("dishes_by_hand", dt=dt, duration=path.duration + 0.3, default_friction=friction)
    scene.add_floor()
    standing = {"plate": (PLATE, PILE, 0.3), "bowl": (BOWL, BOWL_AT, bowl_mass), "cup": (CUP, CUP_AT, cup_mass)}
    dishes = {
        name: scene.add_rigid(name, fs.Revolved(*dish), mass=mass, position=(*place, dish[1]))
        for name, (dish, place, mass) in standing.items()
    }
    robot = fs.load_robot("arm7.urdf")
    start = robot.reach("hand", path.positions[0], DOWN, joints={"joint2": 0.6, "joint4": 1.9, "joint6": 0.6}, tool=TIPS)
    way = robot.follow(path, "hand", joints=start, tool=TIPS)
    arm = scene.add_robot(robot, name="arm", joints={**way.start, "left_jaw": OPEN})
    for joint in way.joints:
        scene.drive_joint(arm, joint, way.motion(joint))
    # the right jaw mimics the left one, so that its motor moves both
    scene.drive_joint(arm, "left_jaw", jaws, stiffness=2e4, damping=200.0, max_effort=2.0 * grip_force)
    for finger in ("arm.left_finger", "arm.right_finger"):
        for dish in ("bowl", "cup"):
            scene.set_friction(finger, dishes[dish], 0.8)
    scene.sensor("wrist", "arm.hand_mount", kind="joint")
    scene.sensor("jaw", "arm.left_jaw", kind="prismatic")
    scene.sensor("plate", dishes["plate"], partner="floor")
    for dish in ("bowl", "cup"):
        scene.sensor(dish, dishes[dish], kind="marker")
    return scene


#: A dish by its walls and padding, where its origin is, and the height to which it goes, m.
Move = tuple[tuple[list[tuple[float, float]], float], tuple[float, float, float], float]


def plan(moves: list[Move], dt: float) -> tuple[fs.ToolPath, fs.Profile]:
    """Path of the finger tips, one place a step, and opening of a jaw, m, by which dishes are piled one after another."""
    close, lift, aside, lower, open_, rise = TIMES
    times, jaw = [0.0], [(0.0, OPEN)]
    places: list[np.ndarray] = []
    for (profile, padding), (x, y, z), height in moves:
        rim, top = profile[-1][0], profile[-1][1] + padding - DEPTH
        here, there = np.array([x + rim, y, z + top]), np.array([PILE[0] + rim, PILE[1], height + top])
        above = np.array([0.0, 0.0, OVER + 0.06])
        if places:  # from the dish before to this one
            times += [times[-1] + aside, times[-1] + aside + lower]
            places.append(here + above)
        places.append(here)
        begin = times[-1]
        jaw += [(begin + 1e-3, OPEN), (begin + close, 0.0)]
        times += (begin + np.cumsum([close, lift, aside, lower, open_, rise])).tolist()
        jaw += [(times[-3], 0.0), (times[-2], OPEN)]
        places += [here, here + above, there + above, there, there, there + above]
    fine, corners = np.arange(0.0, times[-1] + 1e-9, dt), np.array(places)
    leg = np.clip(np.searchsorted(times, fine, side="right") - 1, 0, len(times) - 2)
    part = np.clip((fine - np.array(times)[leg]) / np.diff(times)[leg], 0.0, 1.0)[:, None]
    path = fs.ToolPath("plan", fine, corners[leg] + (0.5 - 0.5 * np.cos(np.pi * part)) * np.diff(corners, axis=0)[leg])
    return path, fs.Profile([t for t, _ in jaw], [x for _, x in jaw], name="opening")
