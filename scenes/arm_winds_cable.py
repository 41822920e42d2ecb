"""A robot arm of seven joints winds a cable round a post (papers/001, section V-C5, whose robot is a given path there).

The scene of ``cable_winding.py``, but the end of the cable hangs on the hand of an arm (``data/robots/arm7.urdf``), whose joints
follow the path by inverse kinematics, exactly. A good result: every step converges, the cable is wound by 721 degrees
(:func:`wrap_angle`), its force on the hand is that of ``cable_winding.py`` to the solver's tolerance, and the wrist bears
this force and the weight of the hand.
"""

from __future__ import annotations

import numpy as np

import femsim as fs

AXIS = np.array([0.492, -0.2025])  # m, of the post, which stands upright on z = 0
POST_RADIUS, RADIUS, LENGTH = 0.02, 0.002, 0.4  # m
LIFT_STEPS, WIND_STEPS, EASE_STEPS, STEP = 500, 5000, 20, 0.01  # steps of s
#: Where the arm stands, and the point of its hand between the finger tips that holds the cable, m.
BASE, TIPS = (0.05, -0.05, 0.0), (0.0, 0.0, 0.095)
#: Elbow up, hand down: where the search for the first joint positions starts, rad.
BENT = {"joint2": 0.6, "joint4": 1.5, "joint6": 0.9}


def build(
    mu: float = 1.3,
    young_modulus: float = 2.954e6,
    poisson_ratio: float = 0.49,
    density: float = 1259.0,
    links: int = 320,
    damping: float = 4.0,
    duration: float = 55.0,
) -> fs.Scene:
    """Clamp a cable at the post and wind its other end round it by an arm.

    Parameters
    ----------
    mu : float, 1
        Coulomb coefficient between cable and post.
    young_modulus : float, Pa
        Young's modulus of the cable.
    poisson_ratio : float, 1
        Poisson's ratio of the cable.
    density : float, kg/m^3
        Density of the cable.
    links : int, 1
        Number of links; 80 or more.
    damping : float, N s/m^2
        Drag per metre of cable.
    duration : float, s
        Simulated time; the path lasts 55 s.
    """
    scene = fs.Scene("arm_winds_cable", dt=STEP, duration=duration, theta=1.0, margin=5e-4)
    start = np.array([AXIS[0] + POST_RADIUS + RADIUS, AXIS[1], 0.1])
    end = start + LENGTH * np.array([0.0, 1.0, 0.0])

    robot = fs.load_robot("arm7.urdf")
    way = robot.follow(hand_path(end), "hand", joints=BENT, tool=TIPS, position=BASE, turn_free=True)
    arm = scene.add_robot(robot, name="arm", position=BASE, joints={**way.start, "left_jaw": RADIUS})
    for joint in way.joints:
        scene.drive_joint(arm, joint, way.motion(joint))
        scene.sensor(joint, f"arm.{joint}", kind="revolute")
    scene.drive_joint(arm, "left_jaw", fs.Profile([0.0], [RADIUS]))  # the right jaw mimics it

    cable = scene.add_rod(
        "cable",
        start + np.linspace(0.0, 1.0, links + 1)[:, None] * (end - start),
        fs.circular_section(RADIUS, shear_factor=1.0),
        fs.Elastic(young_modulus, poisson_ratio, density, name="cable"),
        start=fs.RodEnd("clamped"),
        end=fs.RodEnd("hinged", on="arm.left_finger"),
        translational_damping=damping,
    )
    height = 0.35
    post = scene.add_obstacle("post", fs.Cylinder(POST_RADIUS, 0.5 * height), position=(*AXIS, 0.5 * height), surface="post")
    scene.set_friction(cable, post, mu)
    scene.ignore_contact(cable, arm)  # the fingers hold its end
    scene.sensor("wrist", "arm.hand_mount", kind="joint")
    scene.sensor("tool", cable, kind="end")
    scene.sensor("clamp", cable, kind="start")
    scene.sensor("post", post)
    return scene


def hand_path(end: np.ndarray) -> fs.ToolPath:
    """Return the positions of the held end, one a step: up a straight line, then a rising involute."""
    reach = POST_RADIUS + RADIUS
    foot = np.array([AXIS[0] + reach, AXIS[1], 0.0])
    lift = foot + np.linspace([0.0, 0.399804, 0.100524], [0.0, 0.302059, 0.362222], LIFT_STEPS)
    part = np.arange(1, WIND_STEPS + 1) / WIND_STEPS
    wound = 12.5 * part  # rad, angle at which the cable leaves the post
    free = 0.302059 + (0.0648157 - 0.302059) * part  # m, horizontal distance from there to the held end
    x = AXIS[0] + reach * np.cos(wound) - free * np.sin(wound)
    y = AXIS[1] + reach * np.sin(wound) + free * np.cos(wound)
    path = np.concatenate([lift, np.column_stack([x, y, 0.362222 + (0.395 - 0.362222) * part])])
    ease = np.minimum(np.arange(1, len(path) + 1) / EASE_STEPS, 1.0)  # it starts a fraction of a millimetre from the end
    times = STEP * np.arange(len(path) + 1)
    return fs.ToolPath("winding", times, np.concatenate([end[None], end + ease[:, None] * (path - end)]))


def wrap_angle(run: fs.Run) -> float:
    """Angle (degree) round the post from the clamp to the point at which the cable is 0.1 mm off it, at the end of a run."""
    number = [body.name for body in run.stepper.system.bodies].index("cable")
    centres = run.stepper.state.q[run.stepper.system.q_slices[number]].reshape(-1, 7)[:, :2] - AXIS
    angle = np.degrees(np.unwrap(np.arctan2(centres[:, 1], centres[:, 0])))
    gap = np.hypot(*centres.T) - POST_RADIUS - RADIUS
    last = int(np.flatnonzero(gap < 1e-4)[-1])
    return float(np.interp(1e-4, gap[last : last + 2], angle[last : last + 2]))
