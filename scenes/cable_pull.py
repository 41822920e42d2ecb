"""A gripper pulls a rope over the rounded edge of a table, against a force on the rope's other end.

A good result: the rope does not slip in the grip, and while it slides over the edge the fingers pull with the force of a
perfectly flexible rope, T = (F + mu w l) exp(mu pi / 2) - w h, with the force F on the tail, the weight per metre w, the length l
on the table and the height h from the grip to the edge.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs

RADIUS, EDGE_RADIUS = 0.003, 0.01  # m, of the rope and of the edge
HANGING = 0.06  # m, from the edge down to the end of the rope


def build(
    mu: float = 0.3,
    mu_grip: float = 0.8,
    grip_force: float = 4.0,
    tail_force: float = 0.5,
    pull: float = 0.05,
    length: float = 0.3,
    density: float = 1200.0,
    young_modulus: float = 1e7,
    bending: float = 1e-3,
    damping: float = 0.05,
    links: int = 100,
    dt: float = 0.005,
) -> fs.Scene:
    """Lay a rope over the edge of a table, grip the hanging end and pull it down.

    Parameters
    ----------
    mu : float, 1
        Coulomb coefficient between rope and table.
    mu_grip : float, 1
        Coulomb coefficient between rope and fingers.
    grip_force : float, N
        Closing force of each finger.
    tail_force : float, N
        Horizontal force that pulls back the end on the table.
    pull : float, m
        Distance that the gripper pulls.
    length : float, m
        Length of the rope.
    density : float, kg/m^3
        Density of the rope.
    young_modulus : float, Pa
        Young's modulus of the rope.
    bending : float, 1
        Bending and torsional stiffness, as a fraction of that of a solid circle.
    damping : float, N s/m^2
        Drag per metre of rope.
    links : int, 1
        Number of links; links should be no longer than 3 mm, a quarter of the radius at the edge.
    dt : float, s
        Time step. Contact normals are those at its start, so a rope that slides by s = v dt per step round a radius R sees a
        friction coefficient of mu + s / R.
    """
    scene = fs.Scene("cable_pull", dt=dt, duration=2.0, theta=1.0, margin=5e-4)
    bend = EDGE_RADIUS + RADIUS
    bend /= math.cos(0.5 * length / links / bend)  # a link has contact at its middle, not at its ends
    flat = length - HANGING - 0.5 * math.pi * bend
    if flat <= 0.0:
        raise fs.InputError(f"length is {length} m; a rope that lies on the table is longer than {length - flat:.3f} m.")
    # along the rope from its end on the table: straight, a quarter of a circle over the edge, straight down
    along = np.linspace(0.0, length, links + 1)
    turn = np.clip((along - flat) / bend, 0.0, 0.5 * math.pi)
    down = np.maximum(along - flat - 0.5 * math.pi * bend, 0.0)
    points = np.column_stack(
        [np.minimum(along - flat, 0.0) + bend * np.sin(turn), np.zeros(links + 1), bend * np.cos(turn) - EDGE_RADIUS - down]
    )
    back = fs.Profile([0.2, 0.5], [0.0, -tail_force])  # after the grip has closed
    rope = scene.add_rod(
        "rope",
        points,
        fs.circular_section(RADIUS, bending=bending),
        fs.Elastic(young_modulus, 0.4, density, name="rope"),
        start=fs.RodEnd("free", load=lambda t: (np.array([back(t), 0.0, 0.0]), np.zeros(3))),
        rest_curvature=np.zeros(3),
        translational_damping=damping,
    )
    half = 0.5 * max(length, 0.2)
    top = scene.add_obstacle("table", fs.Box((half, 0.05, 0.02)), position=(-half, 0.0, -0.02), surface="table")
    scene.add_obstacle(
        "edge",
        fs.Cylinder(EDGE_RADIUS, 0.05),
        position=(0.0, 0.0, -EDGE_RADIUS),
        rotation=(0.5 * math.pi, 0.0, 0.0),
        surface="table",
    )
    pad, reach = fs.Box((0.008, 0.003, 0.008)), RADIUS + 0.003 + 0.002
    gripper = scene.add_gripper(
        "gripper",
        [
            fs.Finger("left", pad, offset=(0.0, -reach, -0.06), closing=(0.0, 1.0, 0.0), mass=0.05),
            fs.Finger("right", pad, offset=(0.0, reach, -0.06), closing=(0.0, -1.0, 0.0), mass=0.05),
        ],
        position=(bend + 0.06, 0.0, -EDGE_RADIUS - HANGING + 0.01),
        rotation=(0.0, 0.5 * math.pi, 0.0),
        mass=0.5,
        joint_limits=(-0.01, 0.02),
        surface="pads",
    )
    scene.set_friction(rope, "table", mu)  # the surface, which the edge has too
    scene.set_friction(rope, gripper, mu_grip)
    scene.drive(gripper, force=fs.Profile([0.0, 0.2], [0.0, grip_force]), fingers=True)
    scene.drive(gripper, fs.Motion([0.6, 1.8], [(0.0, 0.0, 0.0), (0.0, 0.0, -pull)]))
    scene.sensor("left", "gripper.left")
    scene.sensor("right", "gripper.right")
    scene.sensor("edge", "edge")
    scene.sensor("table", top)
    scene.sensor("tail", rope, kind="marker", node=0)
    scene.sensor("tip", rope, kind="marker", node=links - 1)
    return scene
