"""A robot with a closed loop, a crank that drives a slide by a rod, pushes boxes over a table (papers/003, scene 3).

A good result: the boxes end where the stroke of the crank leaves them, and the work of its motor is what friction of the boxes on
the table took, mu m g times their ways; the torque is the push times what the slide moves per angle of the crank.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs

#: Radius of the crank, length of the rod, and how high they turn above the table, m.
CRANK, ROD, HEIGHT = 0.05, 0.14, 0.02
#: From the joint of the slide to the face of its plate, and half a box, m.
PLATE, HALF = 0.03, 0.02
#: When the crank starts and ends its half turn, s.
START, END = 0.1, 1.7


def robot() -> fs.Robot:
    """Frame, crank and rod, which turn about upright axes, and the slide; the rod is joined to the slide by the scene."""

    def bar(name: str, length: float, up: float) -> fs.RobotLink:
        seen = fs.Piece(fs.Box((0.5 * length + 0.006, 0.006, 0.003)), (0.5 * length, 0.0, up))
        inertia = 0.05 / 12.0 * length**2
        return fs.RobotLink(name, 0.05, (0.5 * length, 0.0, 0.0), np.diag([1e-6, inertia, inertia]), visuals=[seen])

    post = fs.Piece(fs.Cylinder(0.015, 0.5 * HEIGHT), (0.0, 0.0, -0.5 * HEIGHT))
    plate = fs.Piece(fs.Box((0.004, 0.03, 0.015)), (PLATE - 0.004, 0.0, 0.0))
    stem = fs.Piece(fs.Box((0.5 * PLATE, 0.006, 0.006)), (0.5 * PLATE - 0.004, 0.0, 0.0))
    links = [
        fs.RobotLink("frame", 1.0, inertia=1e-3 * np.eye(3), visuals=[post]),
        bar("crank", CRANK, 0.008),
        bar("rod", ROD, 0.015),
        fs.RobotLink("slide", 0.1, (0.5 * PLATE, 0.0, 0.0), 5e-5 * np.eye(3), shapes=[plate], visuals=[plate, stem]),
    ]
    joints = [
        fs.RobotJoint("motor", "frame", "crank", "continuous", axis=(0.0, 0.0, 1.0)),
        fs.RobotJoint("pin", "crank", "rod", "continuous", (CRANK, 0.0, 0.0), axis=(0.0, 0.0, 1.0)),
        fs.RobotJoint("guide", "frame", "slide", "prismatic", axis=(1.0, 0.0, 0.0), limits=(0.0, 0.3)),
    ]
    return fs.Robot("pusher", links, joints)


def build(boxes: int = 3, mass: float = 0.2, friction: float = 0.4, gap: float = 0.002, dt: float = 0.01) -> fs.Scene:
    """Push a row of boxes.

    Parameters
    ----------
    boxes : int, 1
        How many stand in a row.
    mass : float, kg
        Of each box, a cube of 40 mm.
    friction : float, 1
        Coulomb coefficient of boxes and table.
    gap : float, m
        Between the plate of the slide and the first box at the start.
    dt : float, s
        Time step.
    """
    scene = fs.Scene("crank_pusher", dt=dt, duration=2.0, default_friction=0.0)
    table = scene.add_floor()
    back = ROD - CRANK  # where the slide stands at first; the crank points away from the boxes
    turn = math.pi
    pusher = scene.add_robot(robot(), position=(0.0, 0.0, HEIGHT), joints={"motor": turn, "pin": -turn, "guide": back})
    end = (back, 0.0, HEIGHT)
    scene.join("pusher.rod", "pusher.slide", "ball", at=end, name="loop")
    scene.drive_joint(pusher, "motor", fs.Profile([START, END], [turn, 0.0]))
    first = back + PLATE + gap + HALF
    for k in range(boxes):
        place = (first + 2.0 * HALF * k, 0.0, HALF)
        box = scene.add_rigid(f"box_{k}", fs.Box((HALF, HALF, HALF)), mass=mass, position=place)
        scene.set_friction(box, table, friction)
        scene.sensor(f"box_{k}", box, kind="marker")
    scene.sensor("motor", "pusher.motor", kind="revolute")
    scene.sensor("guide", "pusher.guide", kind="prismatic")
    scene.sensor("push", "pusher.slide")
    scene.sensor("loop", "loop", kind="reaction")
    return scene
