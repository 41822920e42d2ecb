"""A hand of two jaws grips a nut by its flats and screws it down an upright bolt, M48 (papers/000: bolt and nut).

The hand hangs on a slide along the bolt, which gives way and presses down, and floats across it; its wrist turns by a motion.
A good result: the nut sinks by one pitch a turn, and the wrist gives the torque of a screw under the load W of the press and of
the weight of the nut, W (mu' r - P / 2 pi) / (1 + mu' P / (2 pi r)) with mu' = mu / cos 30 deg and r between the inner and the
outer radius of the flanks.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs

#: Of M48: diameter, pitch; length of the bolt, height of the nut, its width across flats, m.
DIAMETER, PITCH = 0.048, 0.005
LENGTH, HEIGHT, ACROSS = 0.1, 0.038, 0.075
#: Masses of slide, of the two links that float, of palm and of each jaw, kg.
SLIDE, FLOAT, PALM, JAW = 0.5, 0.1, 0.5, 0.1
#: When the wrist starts to turn, s.
START = 0.1


def hand() -> fs.Robot:
    """Slide along z, float along x and y, wrist about z, and two jaws of which one mimics the other."""

    def inertia(mass: float) -> np.ndarray:
        return mass * 1e-3 * np.eye(3)

    head = fs.Piece(fs.Box((0.02, 0.02, 0.01)), (0.0, 0.0, 0.15))
    stem = fs.Piece(fs.Cylinder(0.012, 0.035), (0.0, 0.0, 0.105))
    links = [
        fs.RobotLink("frame", 1.0, inertia=inertia(1.0), visuals=[head]),
        fs.RobotLink("slide", SLIDE, inertia=inertia(SLIDE), visuals=[stem]),
        fs.RobotLink("cross", FLOAT, inertia=inertia(FLOAT)),
        fs.RobotLink("block", FLOAT, inertia=inertia(FLOAT)),
        fs.RobotLink("palm", PALM, inertia=inertia(PALM), visuals=[fs.Piece(fs.Box((0.06, 0.02, 0.008)), (0.0, 0.0, 0.065))]),
    ]
    joints = [
        fs.RobotJoint("slide", "frame", "slide", "prismatic", axis=(0.0, 0.0, 1.0), limits=(-0.1, 0.1)),
        fs.RobotJoint("float_x", "slide", "cross", "prismatic", axis=(1.0, 0.0, 0.0), limits=(-0.002, 0.002)),
        fs.RobotJoint("float_y", "cross", "block", "prismatic", axis=(0.0, 1.0, 0.0), limits=(-0.002, 0.002)),
        fs.RobotJoint("wrist", "block", "palm", "continuous", axis=(0.0, 0.0, 1.0)),
    ]
    for name, side in (("left", -1.0), ("right", 1.0)):
        pad = fs.Piece(fs.Box((0.006, 0.015, 0.012)), (0.006 * side, 0.0, 0.0))
        arm = fs.Piece(fs.Box((0.006, 0.015, 0.034)), (0.006 * side, 0.0, 0.025))
        links.append(fs.RobotLink(name, JAW, (0.006 * side, 0.0, 0.0), inertia(JAW), shapes=[pad], visuals=[arm]))
        mimic = ("left", 1.0, 0.0) if side > 0.0 else None
        place, out = (0.5 * ACROSS * side, 0.0, 0.0), (side, 0.0, 0.0)
        joints.append(fs.RobotJoint(name, "palm", name, "prismatic", place, axis=out, limits=(-0.005, 0.03), mimic=mimic))
    return fs.Robot("hand", links, joints)


def build(
    friction: float = 0.1,
    grip: float = 200.0,
    press: float = 100.0,
    turns: float = 0.25,
    play: float = 0.0002,
    dt: float = 1.0 / 240.0,
    duration: float = 1.5,
) -> fs.Scene:
    """Screw a nut of steel down a bolt.

    Parameters
    ----------
    friction : float, 1
        Coulomb coefficient of bolt and nut.
    grip : float, N
        Force of each jaw; its coefficient of friction with the nut is 0.8.
    press : float, N
        Force of the slide downwards, beside the weight of the hand, which it bears.
    turns : float, 1
        Turns downwards, until the end.
    play : float, m
        Radial play of the threads.
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    """
    scene = fs.Scene("nut_by_hand", dt=dt, duration=duration, theta=1.0, margin=2e-4)
    bolt = scene.add_obstacle("bolt", fs.Thread.metric(DIAMETER, PITCH, LENGTH))
    # one pitch above the middle; lowered by the play, so that its upper flanks lie on the lower ones of the bolt
    height = PITCH - play * math.tan(math.pi / 6.0)
    nut = scene.add_rigid(
        "nut", fs.Thread.metric(DIAMETER, PITCH, HEIGHT, play=play, across=ACROSS), density=7850.0, position=(0.0, 0.0, height)
    )
    scene.set_friction(bolt, nut, friction)
    robot = scene.add_robot(hand(), position=(0.0, 0.0, height))
    scene.set_friction(robot, nut, 0.8)
    weight = 9.81 * (SLIDE + 2.0 * FLOAT + PALM + 2.0 * JAW)
    scene.drive_joint(robot, "slide", effort=fs.Profile([0.0], [weight - press]))
    scene.drive_joint(robot, "left", effort=fs.Profile([0.0], [-2.0 * grip]))  # moves the right jaw too
    scene.drive_joint(robot, "wrist", fs.Profile([START, duration], [0.0, -2.0 * math.pi * turns]))
    scene.sensor("wrist", "hand.wrist", kind="revolute")
    scene.sensor("bolt", bolt)
    scene.sensor("left", "hand.left", partner="nut")
    scene.sensor("right", "hand.right", partner="nut")
    scene.sensor("nut", nut, kind="marker")
    return scene
