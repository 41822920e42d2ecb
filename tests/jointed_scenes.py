"""Scenes with what came after bodies: a robot with motors, limits and dry friction; joints that stop, rub and break."""

from __future__ import annotations

#: An arm whose servo presses a soft cube: dry friction, a stop, a link that swings freely.
ROBOT = '''"""An arm presses a soft cube.

It stays there.
"""

from __future__ import annotations

import femsim as fs


def build(stiffness: float = 40.0, steps: int = 24) -> fs.Scene:
    """Press a cube by an arm.

    Parameters
    ----------
    stiffness : float, N m/rad
        Of the servo.
    steps : int, 1
        Number of steps.
    """
    scene = fs.Scene("small_arm", dt=0.01, duration=0.01 * steps)
    scene.add_floor()
    rubber = fs.Elastic(1e5, 0.3, 1000.0, name="rubber")
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=(0.16, 0, 0.01))
    bar = fs.Piece(fs.Box((0.05, 0.01, 0.004)), (0.05, 0, 0))
    links = [fs.RobotLink.solid(name, bar, 0.1) for name in ("upper", "fore", "tail")]
    robot = fs.Robot("arm", [fs.RobotLink.solid("base", fs.Piece(fs.Sphere(0.01)), 0.5), *links], [
        fs.RobotJoint("shoulder", "base", "upper", axis=(0, 1, 0), max_effort=1.2, friction=0.01),
        fs.RobotJoint("elbow", "upper", "fore", axis=(0, 1, 0), position=(0.1, 0, 0), limits=(-0.25, 0.35), damping=0.001),
        fs.RobotJoint("hip", "base", "tail", "spherical", position=(0, 0.05, 0)),
    ])
    arm = scene.add_robot(robot, position=(0, 0, 0.05), joints={"elbow": 0.1})
    scene.drive_joint(arm, "shoulder", fs.Profile([0.0, 0.15], [0.0, 0.3]), stiffness=stiffness)
    scene.sensor("cube", "cube")
    scene.sensor("shoulder", "arm.shoulder", kind="revolute")
    scene.sensor("elbow", "arm.elbow", kind="revolute")
    scene.sensor("mount", "arm", kind="mount", reading=fs.Reading(noise=(0.01, 0.001), rate=30.0, lowpass=20.0, seed=3))
    return scene
'''

#: A door on its way to its stop, a sledge that rubs, a weld that breaks in the impact, and a soft cube glued to what is driven.
JOINED = '''"""Bodies on joints.

One joint breaks.
"""

from __future__ import annotations

import femsim as fs


def build(strength: float = 1.0, steps: int = 24) -> fs.Scene:
    """Let bodies move on joints.

    Parameters
    ----------
    strength : float, N
        Force at which the weld breaks.
    steps : int, 1
        Number of steps.
    """
    scene = fs.Scene("small_joints", dt=0.01, duration=0.01 * steps)
    scene.add_floor()
    scene.add_rigid("door", fs.Box((0.05, 0.01, 0.05)), mass=0.2, position=(0.05, 0, 0.1), angular_velocity=(0, 0, 6.0),
                    velocity=(0, 0.3, 0))
    scene.join("door", "world", "hinge", at=(0, 0, 0.1), axis=(0, 0, 1), limits=(0.0, 0.5), friction=0.004, name="hinge")
    scene.add_rigid("sledge", fs.Box((0.02, 0.02, 0.01)), mass=0.1, position=(0.3, 0, 0.05), velocity=(0.2, 0, 0))
    scene.join("sledge", "world", "slider", at=(0.3, 0, 0.05), axis=(1, 0, 0), limits=(-0.1, 0.02), friction=0.1, name="way")
    scene.add_rigid("low", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(-0.2, 0, 0.06))
    scene.add_rigid("far", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(-0.17, 0, 0.06))
    scene.join("far", "low", at=(-0.185, 0, 0.06), breakable=(strength, 0.2), name="weld")
    rubber = fs.Elastic(1e5, 0.3, 1000.0, name="rubber")
    scene.add_rigid("plate", fs.Box((0.02, 0.02, 0.005)), mass=0.1, position=(0, 0.3, 0.1))
    scene.drive("plate", fs.Motion([0.0, 0.2], [(0, 0, 0), (0, 0, 0.02)]))
    cube = scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=(0, 0.3, 0.085))
    scene.join(cube, "plate", at=(0, 0.3, 0.095), where=lambda x: x[:, 2] > 0.0949, name="glue")
    for name in ("hinge", "way", "weld", "glue"):
        scene.sensor(name, name, kind="reaction")
    return scene
'''
