"""An industrial robot, led by its tool along a given path, pushes a row of stacked boxes aside (papers/003, test 3).

No motor turns its joints: the path of the tool alone moves the arm, whose boom is 75 times as heavy as the tool. A gravity
compensator, a spring in a tube that turns on the turret, and whose rod turns on the boom, closes a loop that is over-constrained:
pins and tube hold two more ways than the loop has. Sizes, masses and path are our own; the paper gives the boxes, mu and dt.

A good result: every step converges, the loop stays closed, the robot alone takes one iteration, and the force that leads the tool
bears what the spring leaves of the weight of the arm until the tool comes to the boxes.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs

Three = tuple[float, float, float]
#: Pins of the compensator on turret and boom, and the shoulder, m, in the frame of the turret; the boom stands upright.
TUBE, ROD, SHOULDER = np.array([-0.35, 0.0, 0.2]), np.array([0.1, 0.0, 0.65]), np.array([0.25, 0.0, 0.3])
#: Length of boom and forearm, from the wrist to the middle of the paddle, m.
BOOM, FOREARM, REACH = 1.0, 1.1, 0.25
#: Half of a box and of the paddle, m; how many stacks of how many boxes, and the way from one stack to the next, m.
BOX, PADDLE = (0.2, 0.2, 0.15), (0.15, 0.03, 0.1)
STACKS, HIGH, APART = 5, 3, 0.45
#: Where the boxes stand and how high the tool goes, m.
ROW, LEVEL = 1.75, 0.45
#: How long the tool rests first, s.
REST = 0.2
#: Joint positions near those of the start, rad.
BENT = {"turn": -0.8, "shoulder": 0.4, "elbow": 0.6}


def robot() -> fs.Robot:
    """Six revolute joints, and beside the boom the tube, piston and rod of the compensator; the scene joins rod and boom."""

    def bar(name: str, mass: float, a: Three, b: Three, radius: float, *more: fs.Piece) -> fs.RobotLink:
        """Link that weighs like a bar from a to b, m, drawn so and with more."""
        along = np.subtract(b, a)
        length = float(np.linalg.norm(along))
        across = np.eye(3) - np.outer(along, along) / length**2
        inertia = mass * (length**2 / 12.0 * across + 0.5 * radius**2 * np.eye(3))
        return fs.RobotLink(name, mass, tuple(0.5 * np.add(a, b)), inertia, visuals=[_drawn(a, b, radius), *more])

    paddle, stem = fs.Piece(fs.Box(PADDLE), (REACH, 0.0, 0.0)), _drawn((0.0, 0.0, 0.0), (REACH, 0.0, 0.0), 0.02)
    length, lug = float(np.linalg.norm(ROD - TUBE)), tuple(ROD - SHOULDER)
    links = [
        bar("base", 400.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.35), 0.25),
        bar("turret", 250.0, (-0.4, 0.0, 0.15), (0.3, 0.0, 0.25), 0.11),
        bar("boom", 300.0, (0.0, 0.0, 0.0), (0.0, 0.0, BOOM), 0.09, _drawn((0.0, 0.0, lug[2]), lug, 0.04)),
        bar("elbow_block", 120.0, (-0.1, 0.0, 0.1), (0.35, 0.0, 0.1), 0.11),
        bar("forearm", 60.0, (0.0, 0.0, 0.0), (FOREARM - 0.35, 0.0, 0.0), 0.06),
        bar("wrist", 15.0, (-0.05, 0.0, 0.0), (0.08, 0.0, 0.0), 0.05),
        fs.RobotLink("tool", 4.0, (0.2, 0.0, 0.0), 0.02 * np.eye(3), shapes=[paddle], visuals=[paddle, stem]),
        bar("tube", 20.0, (0.0, 0.0, 0.0), (0.7 * length, 0.0, 0.0), 0.05),
        bar("piston", 2.0, (0.0, 0.0, 0.0), (0.1 * length, 0.0, 0.0), 0.045),
        bar("rod", 8.0, (0.0, 0.0, 0.0), (length, 0.0, 0.0), 0.025),
    ]
    upright, across, along = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)
    lean = (0.0, -math.atan2(ROD[2] - TUBE[2], ROD[0] - TUBE[0]), 0.0)
    joints = [
        fs.RobotJoint("turn", "base", "turret", "continuous", (0.0, 0.0, 0.35), axis=upright),
        fs.RobotJoint("shoulder", "turret", "boom", limits=(-1.0, 1.4), position=tuple(SHOULDER), axis=across),
        fs.RobotJoint("elbow", "boom", "elbow_block", limits=(-2.5, 2.0), position=(0.0, 0.0, BOOM), axis=across),
        fs.RobotJoint("roll", "elbow_block", "forearm", "continuous", (0.35, 0.0, 0.1), axis=along),
        fs.RobotJoint("bend", "forearm", "wrist", limits=(-2.2, 2.2), position=(FOREARM - 0.35, 0.0, 0.0), axis=across),
        fs.RobotJoint("flange", "wrist", "tool", "continuous", (0.08, 0.0, 0.0), axis=along),
        fs.RobotJoint("tube_pin", "turret", "tube", "continuous", tuple(TUBE), lean, axis=across),
        fs.RobotJoint("stroke", "tube", "piston", "prismatic", axis=along, limits=(-0.25, 0.4)),
        fs.RobotJoint("spin", "piston", "rod", "continuous", axis=along),
    ]
    return fs.Robot("lifter", links, joints)


def build(
    mass: float = 8.0, friction: float = 0.4, spring: float = 2.0e4, speed: float = 1.0, boxes: bool = True, dt: float = 0.01
) -> fs.Scene:
    """Push five stacks of three boxes over a floor.

    Parameters
    ----------
    mass : float, kg
        Of each box, 0.4 m wide and deep, 0.3 m high.
    friction : float, 1
        Coulomb coefficient of all pairs.
    spring : float, N/m
        Stiffness of the compensator, which is stretched by 0.15 m where the boom stands upright.
    speed : float, m/s
        Largest speed of the tool.
    boxes : bool, choice
        False: the robot alone.
    dt : float, s
        Time step.
    """
    arm = robot()
    path, turn = tool_path(speed, dt)
    start = arm.reach("tool", path.positions[0], turn, joints=BENT, tool=(REACH, 0.0, 0.0))
    start |= compensator(start["shoulder"])
    scene = fs.Scene("robot_boxes", dt=dt, duration=path.duration, default_friction=friction)
    scene.add_floor()
    scene.add_robot(arm, name="robot", joints=start)
    rod, _ = arm.pose("boom", start, tool=tuple(ROD - SHOULDER))
    scene.join("robot.rod", "robot.boom", "hinge", at=rod, axis=across(start["turn"]), name="loop")
    scene.drive_joint("robot", "stroke", fs.Profile([0.0], [-0.15]), stiffness=spring, damping=0.02 * spring)
    guide = scene.add_rigid("guide", fs.Sphere(0.01), mass=1.0, position=path.positions[0])
    scene.drive(guide, path.motion(name="tool"))
    scene.join("robot.tool", guide, "weld", at=path.positions[0], name="lead")
    for stack in range(STACKS if boxes else 0):
        for level in range(HIGH):
            place = (ROW, APART * (stack - 0.5 * (STACKS - 1)), BOX[2] * (1 + 2 * level))
            scene.add_rigid(f"box_{stack}_{level}", fs.Box(BOX), mass=mass, position=place)
    for joint in ("turn", "shoulder", "elbow", "roll", "bend", "flange"):
        scene.sensor(joint, f"robot.{joint}", kind="revolute")
    scene.sensor("spring", "robot.stroke", kind="prismatic")
    scene.sensor("loop", "loop", kind="reaction")
    scene.sensor("lead", "lead", kind="reaction")
    scene.sensor("push", "robot.tool")
    scene.sensor("floor", "floor")
    return scene


def compensator(lean: float) -> dict[str, float]:
    """Positions of its joints that close the loop where the boom leans forward, rad: (rad, m)."""
    arm, c, s = ROD - SHOULDER, math.cos(lean), math.sin(lean)
    reach = SHOULDER + np.array([c * arm[0] + s * arm[2], 0.0, c * arm[2] - s * arm[0]]) - TUBE
    rest = ROD - TUBE
    return {
        "tube_pin": math.atan2(rest[2], rest[0]) - math.atan2(reach[2], reach[0]),
        "stroke": float(np.linalg.norm(reach) - np.linalg.norm(rest)),
    }


def across(turn: float) -> tuple[float, float, float]:
    """Direction of the axes of shoulder and elbow where the turret has turned, rad."""
    return -math.sin(turn), math.cos(turn), 0.0


def tool_path(speed: float, dt: float) -> tuple[fs.ToolPath, tuple[float, float, float]]:
    """Places of the middle of the paddle, one a step, along the row and up; and how the tool is turned, rad."""
    corners = np.array([(ROW, -1.3, LEVEL), (ROW, 0.1, LEVEL), (ROW, -0.05, LEVEL), (ROW, -0.05, LEVEL + 0.7)])
    legs = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    ends = np.concatenate([[REST], REST + np.cumsum(0.5 * math.pi * legs / speed)])  # eased in and out by a cosine
    times = np.arange(0.0, ends[-1] + 0.2, dt)
    leg = np.clip(np.searchsorted(ends, times, side="right") - 1, 0, len(legs) - 1)
    part = np.clip((times - ends[leg]) / np.diff(ends)[leg], 0.0, 1.0)[:, None]
    places = corners[leg] + (0.5 - 0.5 * np.cos(math.pi * part)) * np.diff(corners, axis=0)[leg]
    return fs.ToolPath("tool", times, places), (0.0, 0.0, 0.0)


def _drawn(a: Three, b: Three, radius: float) -> fs.Piece:
    """Cylinder from a to b, m, to look at."""
    along = np.subtract(b, a)
    half = 0.5 * float(np.linalg.norm(along))
    across = np.cross([0.0, 0.0, 1.0], along) / (2.0 * half)
    sine = float(np.linalg.norm(across))
    turn = across * (math.atan2(sine, along[2] / (2.0 * half)) / max(sine, 1e-12))
    return fs.Piece(fs.Cylinder(radius, half), tuple(0.5 * np.add(a, b)), tuple(turn))
