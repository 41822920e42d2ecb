"""A cable is pulled over a pulley that turns on a bearing with dry friction, against a dead weight.

A good result: while the pulley turns with the cable, the pull T2 is the weight T1 plus the torque of the bearing over the radius
R + r at which the cable runs. A bearing that takes more than friction between cable and pulley can give stands, the cable slides,
and T2 is T1 exp(mu theta R / (R + r)): the capstan formula, for a cable whose friction acts at its surface. The force ripples as
links pass the lift-off points; average over the last second.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs


def build(
    bearing: float = 0.005,
    mu: float = 0.3,
    wrap: float = 180.0,
    weight: float = 1.0,
    speed: float = 0.02,
    pulley_radius: float = 0.02,
    rod_radius: float = 0.002,
    link_angle: float = 0.12,
    young_modulus: float = 3e8,
    bending: float = 1e-4,
    dt: float = 0.005,
) -> fs.Scene:
    """Pull a cable over a pulley.

    Parameters
    ----------
    bearing : float, N m
        Dry friction of the bearing; it may be zero.
    mu : float, 1
        Coulomb coefficient between cable and pulley.
    wrap : float, degree
        Angle that the cable lies on the pulley; at most 180.
    weight : float, N
        Dead weight T1 on one end.
    speed : float, m/s
        Speed of the other, driven end.
    pulley_radius : float, m
        Radius of the pulley, of aluminium and 12 mm wide.
    rod_radius : float, m
        Radius of the cable.
    link_angle : float, rad
        Angle that a link covers on the pulley; at most 0.25.
    young_modulus : float, Pa
        Young's modulus of the cable.
    bending : float, 1
        Bending and torsional stiffness, as a fraction of that of a solid circle: a cable consists of many threads.
    dt : float, s
        Time step.
    """
    scene = fs.Scene("pulley", dt=dt, duration=2.0, gravity=(0.0, 0.0, 0.0), margin=5e-4)
    radius, angle, leg = pulley_radius + rod_radius, math.radians(wrap), 0.06
    touching = radius / math.cos(0.5 * link_angle)  # a link has contact at its middle, not at its ends
    around = np.linspace(-leg, radius * angle + leg, math.ceil((radius * angle + 2.0 * leg) / (radius * link_angle)) + 1)
    on_pulley = np.clip(around / radius, 0.0, angle)
    beyond = around - radius * on_pulley
    turn = math.pi - on_pulley  # the weight hangs on the left, the cable passes over the top
    points = np.column_stack(
        [
            touching * np.cos(turn) + beyond * np.sin(turn),
            np.zeros(len(around)),
            touching * np.sin(turn) - beyond * np.cos(turn),
        ]
    )
    out = points[-1] - points[-2]
    out /= np.linalg.norm(out)
    cable = scene.add_rod(
        "cable",
        points,
        fs.circular_section(rod_radius, bending=bending),
        fs.Elastic(young_modulus, 0.3, 1200.0, name="cable"),
        start=fs.RodEnd("free", load=lambda t: (np.array([0.0, 0.0, -weight]), np.zeros(3))),
        end=fs.RodEnd("hinged", motion=fs.Motion([0.0, 2.0], [(0.0, 0.0, 0.0), tuple(2.0 * speed * out)], smooth=False)),
        rest_curvature=np.zeros(3),
        contact="surface",
    )
    wheel = fs.Piece(fs.Cylinder(pulley_radius, 0.006))
    mark = fs.Piece(fs.Box((0.0015, 0.4 * pulley_radius, 0.001)), (0.0, 0.5 * pulley_radius, 0.0065))
    pulley = scene.add_rigid(
        "pulley", fs.Compound([wheel, mark]), density=2700.0, rotation=(0.5 * math.pi, 0.0, 0.0), surface="pulley"
    )
    scene.join(pulley, "world", "hinge", at=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0), friction=bearing, name="bearing")
    scene.set_friction(cable, pulley, mu)
    scene.sensor("pull", cable, kind="end")
    scene.sensor("bearing", "bearing", kind="reaction")
    scene.sensor("pulley", pulley)
    return scene
