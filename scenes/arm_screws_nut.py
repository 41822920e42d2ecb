"""A robot arm with compliant joints screws a nut onto an upright bolt, M48 (papers/000 and 002: assembly).

A clamp holds the nut, and the last joint turns it without end. The path of the hand begins above the bolt, leans, and goes down
faster than the thread; the servos of the joints give way by what the thread takes. A good result: the nut catches the thread and
sinks by one pitch a turn, and nothing goes into anything.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

import femsim as fs

#: Of M48: diameter, pitch; length of the bolt, height of the nut, its width across flats, m.
DIAMETER, PITCH = 0.048, 0.005
LENGTH, HEIGHT, ACROSS = 0.1, 0.038, 0.075
#: Middle of the bolt, and of the nut in the frame of the hand, m; clear way between bolt and nut at the start, m.
BOLT, HELD, ABOVE = (0.4, 0.0, 0.15), (0.0, 0.0, 0.1), 0.002
#: Pointing down: rotation vector of the hand, rad.
DOWN = (math.pi / math.sqrt(2.0), math.pi / math.sqrt(2.0), 0.0)
#: How long the arm rests, and how long it takes to full speed and from it, s.
REST, EASED = 0.05, 0.25
#: Turns in which the nut goes through the clear way, before it meets the bolt, 1.
FREE = ABOVE / PITCH


def robot() -> fs.Robot:
    """``arm7.urdf`` with a nut clamped to its hand instead of fingers, motors of any torque and a last joint without end."""
    arm = fs.load_robot("arm7.urdf")
    gone = ("left_finger", "right_finger", "tool")
    links = [link for link in arm.links if link.name not in gone]
    joints = [replace(joint, max_effort=math.inf, max_speed=math.inf) for joint in arm.joints if joint.child not in gone]
    joints = [replace(joint, limits=(-math.inf, math.inf)) if joint.name == "joint7" else joint for joint in joints]
    thread = fs.Thread.metric(DIAMETER, PITCH, HEIGHT, play=0.0002, across=ACROSS)
    nut = fs.RobotLink.solid("nut", fs.Piece(thread), 0.97)
    sides = [fs.Piece(fs.Box((0.006, 0.02, 0.035)), (side * (0.5 * ACROSS + 0.006), 0.0, 0.025)) for side in (-1.0, 1.0)]
    joints.append(fs.RobotJoint("clamp", "hand", "nut", "fixed", HELD, DOWN))  # upright where the hand points down
    return fs.Robot("arm", [*links, replace(nut, visuals=[*nut.shapes, *sides])], joints)


def build(
    turns: float = 2.25,
    speed: float = 1.0,
    aside: float = 1.0,
    ahead: float = 2.0,
    stiffness: float = 800.0,
    damping: float = 80.0,
    friction: float = 0.1,
    dt: float = 1.0 / 240.0,
) -> fs.Scene:
    """Screw a nut onto a bolt by an arm.

    Parameters
    ----------
    turns : float, 1
        Turns of the nut on the thread.
    speed : float, 1/s
        Turns a second.
    aside : float, mm
        How far beside the axis of the bolt the path of the hand ends.
    ahead : float, mm
        How far below where the thread leads it.
    stiffness, damping : float, N m/rad and N m s/rad
        Of the servos of the joints; the weight of the arm at the start is borne besides.
    friction : float, 1
        Coulomb coefficient of bolt and nut.
    dt : float, s
        Time step.
    """
    times, turned = plan(turns, speed, dt)
    above = 0.5 * (LENGTH + HEIGHT) + ABOVE
    path = np.tile(np.add(BOLT, (0.0, 0.0, above)), (len(times), 1))
    on = np.maximum(turned - 2.0 * math.pi * FREE, 0.0)  # turns on the thread, rad
    path[:, 1] += 1e-3 * aside * on / on[-1]
    path[:, 2] -= PITCH * turned / (2.0 * math.pi) + 1e-3 * ahead * on / on[-1]
    arm = robot()
    start = arm.reach("hand", path[0], DOWN, joints={"joint2": 0.5, "joint4": 1.5, "joint6": 1.1}, tool=HELD)
    way = arm.follow(fs.ToolPath("plan", times, path), "hand", joints=start, tool=HELD)

    scene = fs.Scene("arm_screws_nut", dt=dt, duration=float(times[-1]), theta=1.0, margin=2e-4)
    scene.add_floor()
    # turned so that the nut fits it where it begins
    turn = -math.remainder(2.0 * math.pi * above / PITCH, 2.0 * math.pi)
    bolt = scene.add_obstacle("bolt", fs.Thread.metric(DIAMETER, PITCH, LENGTH), position=BOLT, rotation=(0.0, 0.0, turn))
    head = 0.5 * (BOLT[2] - 0.5 * LENGTH)
    scene.add_obstacle("head", fs.Cylinder(0.036, head), position=(BOLT[0], BOLT[1], head))
    scene.add_robot(arm, name="arm", joints=start)
    bears = arm.inverse_dynamics(start)
    for joint in way.joints:
        angles = way.motion(joint)
        wanted = np.array([angles(t) for t in times]) + (turned if joint == "joint7" else 0.0)
        scene.drive_joint(
            "arm", joint, fs.Profile(times.tolist(), wanted.tolist(), smooth="spline"), effort=fs.Profile([0.0], [bears[joint]]),
            stiffness=stiffness, damping=damping,
        )  # fmt: skip
        scene.sensor(joint, f"arm.{joint}", kind="revolute")
    scene.set_friction(bolt, "arm.nut", friction)
    scene.sensor("wrist", "arm.hand_mount", kind="joint")
    scene.sensor("bolt", bolt)
    scene.sensor("nut", "arm.nut", kind="marker")
    return scene


def plan(turns: float, speed: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Give times, one a step, s, and how far the hand has turned, rad: at a constant speed, with eased ends."""
    whole = FREE + turns
    duration = whole / speed + EASED
    times = np.arange(0.0, REST + duration + 0.1, dt)
    t = np.clip(times - REST, 0.0, duration)
    ends = np.minimum(t, duration - t)  # time from the nearer end
    part = np.where(ends < EASED, 0.5 * ends**2 / EASED, ends - 0.5 * EASED)
    return times, 2.0 * math.pi * speed * np.where(t < 0.5 * duration, part, whole / speed - part)
