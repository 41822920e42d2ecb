"""A string is pulled over a post against a dead weight: the capstan (Euler and Eytelwein).

A good result: once the string slides, the pull T2 at the driven end is the weight T1 times exp(mu theta cos(alpha)), with the
wrap angle theta and the small helix angle alpha that keeps the turns apart. For a polygon of links at an angle of h = L / (R + r)
to each other, T2 / T1 = [(1 + mu tan(h / 2)) / (1 - mu tan(h / 2))]^(theta cos(alpha) / h), which exceeds the exponential by a
relative mu (1 + mu^2) h^2 theta / 12. The force ripples as links pass the lift-off points; average over the last second.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs


def build(
    mu: float = 0.3,
    wrap: float = 180.0,
    weight: float = 1.0,
    speed: float = 0.004,
    post_radius: float = 0.02,
    rod_radius: float = 0.002,
    link_angle: float = 0.12,
    young_modulus: float = 3e8,
    bending: float = 1e-4,
    dt: float = 0.005,
) -> fs.Scene:
    """Pull a string over a post.

    Parameters
    ----------
    mu : float, 1
        Coulomb coefficient between string and post.
    wrap : float, degree
        Wrap angle.
    weight : float, N
        Dead weight T1 on the other end.
    speed : float, m/s
        Speed of the driven end.
    post_radius : float, m
        Radius of the post.
    rod_radius : float, m
        Radius of the string.
    link_angle : float, rad
        Angle that a link covers on the post; at most 0.25.
    young_modulus : float, Pa
        Young's modulus of the string; a stiffer string slides earlier.
    bending : float, 1
        Bending and torsional stiffness, as a fraction of that of a solid circle: a string consists of many threads.
    dt : float, s
        Time step.
    """
    scene = fs.Scene("capstan", dt=dt, duration=2.0, theta=1.0, gravity=(0.0, 0.0, 0.0), margin=5e-4)
    radius = post_radius + rod_radius
    # the string is a geodesic of a cylinder: straight on the unrolled surface, with a free leg at both ends
    climb = 2.5 * rod_radius / (2.0 * math.pi * radius)  # axial distance per distance round the post
    angle, leg = math.radians(wrap), 0.05
    touching = radius / math.cos(0.5 * link_angle)  # a link has contact at its middle, not at its ends
    around = np.linspace(-leg, radius * angle + leg, math.ceil((radius * angle + 2.0 * leg) / (radius * link_angle)) + 1)
    on_post = np.clip(around / radius, 0.0, angle)
    beyond = around - radius * on_post
    turn = math.pi - on_post  # the weight hangs on the left, the string passes over the top
    points = np.column_stack(
        [
            touching * np.cos(turn) + beyond * np.sin(turn),
            climb * (around - 0.5 * radius * angle),
            touching * np.sin(turn) - beyond * np.cos(turn),
        ]
    )
    pull = np.array([0.0, -climb, -1.0]) / math.hypot(1.0, climb)
    out = points[-1] - points[-2]
    out /= np.linalg.norm(out)
    string = scene.add_rod(
        "string",
        points,
        fs.circular_section(rod_radius, bending=bending),
        fs.Elastic(young_modulus, 0.3, 1200.0, name="string"),
        start=fs.RodEnd("free", load=lambda t: (weight * pull, np.zeros(3))),
        end=fs.RodEnd("hinged", motion=fs.Motion([0.0, 2.0], [(0.0, 0.0, 0.0), tuple(2.0 * speed * out)], smooth=False)),
        rest_curvature=np.zeros(3),
    )
    height = 0.05 + 0.5 * climb * radius * angle
    post = scene.add_obstacle("post", fs.Cylinder(post_radius, height), rotation=(0.5 * math.pi, 0.0, 0.0), surface="post")
    scene.set_friction(string, post, mu)
    scene.sensor("pull", string, kind="end")
    scene.sensor("post", post)
    return scene
