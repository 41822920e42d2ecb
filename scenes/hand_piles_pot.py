"""A hand of four fingers on an arm puts a heavy pot on a pile of light dishes (papers/000 and 002: piling; 47 velocities).

Arm and fingers follow their paths by compliant servos, which also bear the weight of the robot and, while it is held, of the pot.
The fingers reach into the pot and press outwards; two bowls and a plate stand where it is put. A good result: the pot does not
slip in the hand, the pile does not move, and in the end it bears the pot, which has fifty times the mass of each dish below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

import femsim as fs

#: Radius and z of the points of the walls, and their padding, m.
POT = ([(0.0, 0.0), (0.09, 0.0), (0.095, 0.11)], 0.004)
PLATE = ([(0.0, 0.0), (0.06, 0.0), (0.1, 0.015)], 0.003)
BOWL = ([(0.0, 0.0), (0.035, 0.0), (0.07, 0.05)], 0.003)
#: Where the pile and, at the start, the pot stand on the floor, m.
PILE, STANDS = (0.40, 0.13), (0.40, -0.13)
#: Names of the fingers, and where they begin, from the axis of the palm and from its frame, m.
FINGERS, ROOT, PALM = ("finger1", "finger2", "finger3", "finger4"), 0.055, 0.03
#: Length and radius of the links of a finger, m.
LINKS = ((0.045, 0.008), (0.035, 0.008), (0.03, 0.01))
#: Length of a finger, m.
LENGTH = sum(length for length, _ in LINKS)
#: Masses of the palm, of the root of a finger and of each of its links, kg.
PALM_MASS, ROOT_MASS, LINK_MASS = 0.4, 0.02, 0.03
#: How deep below the rim the tips press; way up before and after going aside, m.
DEPTH, OVER = 0.055, 0.03
#: Angle of the first bend where tips touch the wall, and where they are free of it, rad.
TOUCH, FREE = 0.235, 0.12
#: Times to rest, to press, to lift, to go aside, to lower, to let go, to go up, and to rest, s.
TIMES = (0.05, 0.3, 0.35, 0.6, 0.4, 0.3, 0.4, 0.2)
#: Pointing down: rotation vector of the hand, rad.
DOWN = (math.pi / math.sqrt(2.0), math.pi / math.sqrt(2.0), 0.0)
#: Stiffness of the joints of fingers, N m/rad.
FINGER = 20.0


def robot(load: float = 0.0) -> fs.Robot:
    """``arm7.urdf`` with a hand of sixteen joints instead of its fingers, which holds a mass, kg, where it grips."""
    arm = fs.load_robot("arm7.urdf")
    gone = ("hand", "left_finger", "right_finger", "tool")
    links = [link for link in arm.links if link.name not in gone]
    joints = [replace(joint, max_effort=math.inf) for joint in arm.joints if joint.child not in gone]
    disc = fs.Piece(fs.Cylinder(ROOT + 0.008, 0.5 * PALM), (0.0, 0.0, 0.5 * PALM))
    links.append(fs.RobotLink.solid("palm", disc, PALM_MASS))
    joints.append(fs.RobotJoint("hand_mount", "flange", "palm", "fixed", (0.0, 0.0, 0.035)))
    for k, finger in enumerate(FINGERS):
        angle = 0.5 * math.pi * k
        root, across = (ROOT * math.cos(angle), ROOT * math.sin(angle), PALM), (-math.sin(angle), math.cos(angle), 0.0)
        # it turns about its own length, then bends three times
        links.append(fs.RobotLink(f"{finger}_root", ROOT_MASS, inertia=2e-4 * ROOT_MASS * np.eye(3)))
        joints.append(fs.RobotJoint(f"{finger}_turn", "palm", f"{finger}_root", limits=(-0.5, 0.5), position=root))
        below, place = f"{finger}_root", (0.0, 0.0, 0.0)
        for j, (length, radius) in enumerate(LINKS, start=1):
            bone = fs.Piece(fs.Capsule(radius, 0.5 * length), (0.0, 0.0, 0.5 * length))
            links.append(fs.RobotLink.solid(f"{finger}_{j}", bone, LINK_MASS))
            bend = fs.RobotJoint(f"{finger}_bend{j}", below, f"{finger}_{j}", limits=(-1.2, 1.6), position=place, axis=across)
            joints.append(bend)
            below, place = f"{finger}_{j}", (0.0, 0.0, length)
    if load:
        links.append(fs.RobotLink("load", load, inertia=1e-3 * load * np.eye(3)))
        joints.append(fs.RobotJoint("grip", "palm", "load", "fixed", (0.0, 0.0, PALM + LENGTH)))
    return fs.Robot("hand_arm", links, joints)


def heights() -> dict[str, float]:
    """Heights of the origins of the dishes of the pile and of the pot on it, m, as they touch each other."""
    slope, wall = 0.015 / 0.04, 0.05 / 0.035
    upper = BOWL[1] + 2.0 * BOWL[1] * math.hypot(1.0, wall)
    # the slope of the plate lies on the rim of the bowl; the edge of the bottom of the pot stands on that slope
    plate = upper + BOWL[0][2][1] + 2.0 * BOWL[1] * math.hypot(1.0, slope) - slope * (BOWL[0][2][0] - PLATE[0][1][0])
    pot = plate + slope * (POT[0][1][0] - PLATE[0][1][0]) + (POT[1] + PLATE[1]) * math.hypot(1.0, slope)
    return {"bowl": BOWL[1], "upper_bowl": upper, "plate": plate, "pot": pot}


def build(
    pot_mass: float = 5.0,
    dish_mass: float = 0.1,
    squeeze: float = 0.25,
    stiffness: float = 2000.0,
    friction: float = 0.5,
    dt: float = 1.0 / 240.0,
) -> fs.Scene:
    """Put a pot on a pile of dishes by a hand.

    Parameters
    ----------
    pot_mass, dish_mass : float, kg
        Masses of the pot, and of the plate and each bowl.
    squeeze : float, rad
        How far beyond the wall of the pot the fingers want to bend.
    stiffness : float, N m/rad
        Of the servos of the arm; fingers have 20 N m/rad.
    friction : float, 1
        Coulomb coefficient of all pairs but fingers and pot, which have 0.8.
    dt : float, s
        Time step.
    """
    where, ends = heights(), np.cumsum(TIMES)
    scene = fs.Scene("hand_piles_pot", dt=dt, duration=float(ends[-1]), theta=1.0, default_friction=friction)
    scene.add_floor()
    for name, shape in (("bowl", BOWL), ("upper_bowl", BOWL), ("plate", PLATE)):
        scene.add_rigid(name, fs.Revolved(*shape), mass=dish_mass, position=(*PILE, where[name]))
    pot = scene.add_rigid("pot", fs.Revolved(*POT), mass=pot_mass, position=(*STANDS, POT[1]))

    arm, laden, path = robot(), robot(pot_mass), plan(where["pot"], dt)
    start = arm.reach("palm", path.positions[0], DOWN, joints={"joint1": -0.3, "joint2": 0.5, "joint4": 1.6, "joint6": 1.0})
    way = arm.follow(path, "palm", joints=start)
    grip = fs.Profile([ends[0], ends[1], ends[4], ends[5]], [FREE, TOUCH + squeeze, TOUCH + squeeze, FREE], name="grip")
    motions = dict.fromkeys(arm.joint_names(), fs.Profile([0.0], [0.0]))
    motions |= {f"{finger}_bend1": grip for finger in FINGERS} | {joint: way.motion(joint) for joint in way.joints}
    scene.add_robot(arm, name="robot", joints={joint: motion(0.0) for joint, motion in motions.items()})
    # the motors bear the robot, and the pot from when it is lifted to when it stands
    times = np.arange(0.0, ends[-1], 0.02)
    share = np.interp(times, [ends[1], ends[1] + 0.1, ends[4] - 0.1, ends[4]], [0.0, 1.0, 1.0, 0.0])
    borne = [efforts(arm, laden, motions, time, part) for time, part in zip(times, share, strict=True)]
    for joint, motion in motions.items():
        effort = fs.Profile(times.tolist(), [each[joint] for each in borne], smooth=False)
        servo = stiffness if joint in way.joints else FINGER
        scene.drive_joint("robot", joint, motion, effort=effort, stiffness=servo)
    for finger in FINGERS:
        scene.set_friction(f"robot.{finger}_3", pot, 0.8)
        scene.sensor(finger, f"robot.{finger}_3", partner="pot")
    scene.sensor("wrist", "robot.hand_mount", kind="joint")
    scene.sensor("plate", "plate", partner="pot")
    scene.sensor("floor", "floor")
    for dish in ("bowl", "plate", "pot"):
        scene.sensor(f"{dish}_place", dish, kind="marker")
    return scene


def plan(pile: float, dt: float) -> fs.ToolPath:
    """Path of the palm, one place a step: over the pot, tips inside; up, aside, down onto the pile of a height, m, and up."""
    above = POT[0][2][1] - DEPTH + PALM + LENGTH
    here, there = np.array([*STANDS, POT[1] + above]), np.array([*PILE, pile + above])
    high, out = there[2] + OVER, there[2] + OVER + DEPTH
    lifted, over, gone = (np.array([*place, z]) for place, z in ((STANDS, high), (PILE, high), (PILE, out)))
    corners = np.array([here, here, here, lifted, over, there, there, gone, gone])
    knots = np.concatenate([[0.0], np.cumsum(TIMES)])
    times = np.arange(0.0, knots[-1] + dt, dt)
    leg = np.clip(np.searchsorted(knots, times, side="right") - 1, 0, len(TIMES) - 1)
    part = np.clip((times - knots[leg]) / np.diff(knots)[leg], 0.0, 1.0)[:, None]
    return fs.ToolPath("plan", times, corners[leg] + (0.5 - 0.5 * np.cos(math.pi * part)) * np.diff(corners, axis=0)[leg])


def efforts(
    arm: fs.Robot, laden: fs.Robot, motions: Mapping[str, Callable[[float], float]], time: float, share: float
) -> dict[str, float]:
    """Give what the motors bear at a time, s, in N m: the robot, and in the joints of the arm this share of the load."""
    pose = {joint: motion(time) for joint, motion in motions.items()}
    alone, with_load = arm.inverse_dynamics(pose), laden.inverse_dynamics(pose)
    return {
        joint: effort + (share * (with_load[joint] - effort) if joint.startswith("joint") else 0.0)
        for joint, effort in alone.items()
    }
