"""A robot arm of seven joints closes its gripper on a soft ball and lifts it.

The arm is read from URDF (``data/robots/arm7.urdf``); its joints follow the path of the hand exactly, its jaws close by a force.
A good result: the ball is held without slip; while it is held the wrist bears the weight of hand and ball, and the torques of
the joints are those of the arm alone and of the ball at its hand.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs

#: Shoulder above the floor, upper arm and forearm, wrist to finger tips, m, of arm7.urdf.
SHOULDER, UPPER, FORE, HAND = 0.25, 0.32, 0.30, 0.215
#: Where the ball lies, how high the finger tips are above the floor, and how far the jaws are open, m.
PLACE, TIPS, OPEN = 0.36, 0.006, 0.034
#: When the jaws have closed, and when the arm has lifted, s.
CLOSED, LIFTED = 0.3, 0.7


def reach(x: float, z: float) -> dict[str, float]:
    """Joint positions, rad, for finger tips that point down at a place (m) in the plane y = 0."""
    height = z + HAND - SHOULDER
    far = math.hypot(x, height)
    bend = math.acos((far**2 - UPPER**2 - FORE**2) / (2.0 * UPPER * FORE))
    first = math.atan2(x, height) - math.atan2(FORE * math.sin(bend), UPPER + FORE * math.cos(bend))
    return {"joint2": first, "joint4": bend, "joint6": math.pi - first - bend}


def build(
    grip_force: float = 15.0, lift: float = 0.06, young_modulus: float = 3e5, friction: float = 0.6, dt: float = 0.01
) -> fs.Scene:
    """Grip a soft ball with a robot arm and lift it.

    Parameters
    ----------
    grip_force : float, N
        Force of each jaw.
    lift : float, m
        How high the hand goes.
    young_modulus : float, Pa
        Stiffness of the ball.
    friction : float, 1
        Coulomb coefficient between ball and jaws.
    dt : float, s
        Time step.
    """
    scene = fs.Scene("arm_lifts_ball", dt=dt, duration=1.0)
    scene.add_floor()
    rubber = fs.Elastic(young_modulus, 0.35, 1100.0, name="rubber")
    ball = scene.add_soft("ball", fs.mesh_file("ball_r30.vtu"), rubber, position=(PLACE, 0.0, 0.0301))

    start = reach(PLACE, TIPS)
    arm = scene.add_robot("arm7.urdf", name="arm", joints={**start, "left_jaw": OPEN})
    times = np.linspace(CLOSED, LIFTED, 21)
    way = lift * (0.5 - 0.5 * np.cos(np.pi * np.linspace(0.0, 1.0, 21)))
    path = [reach(PLACE, TIPS + up) for up in way]
    for k in range(1, 8):
        joint = f"joint{k}"
        angles = [pose.get(joint, 0.0) for pose in path]
        scene.drive_joint(arm, joint, fs.Profile(times.tolist(), angles, smooth=False))
        scene.sensor(joint, f"arm.{joint}", kind="revolute")
    # the right jaw mimics the left one, so that its motor moves both
    scene.drive_joint(arm, "left_jaw", effort=fs.Profile([0.0, CLOSED], [0.0, -2.0 * grip_force], name="grip_force"))
    scene.set_friction(ball, arm, friction)

    scene.sensor("wrist", "arm.hand_mount", kind="joint")
    scene.sensor("left", "arm.left_finger")
    scene.sensor("right", "arm.right_finger")
    scene.sensor("jaw", "arm.left_jaw", kind="prismatic")
    scene.sensor("ball", ball, kind="marker", node=0)
    return scene
