"""A flat box slides over a floor with anisotropic friction (papers/001, section V-G).

A good result: the path bends towards the slippery direction and ends where the law of maximum dissipation,
dv/dt = -g M^2 v / |M v| with M = diag(mu1, mu2), takes a point mass; the box rotates by less than a degree.
"""

from __future__ import annotations

import femsim as fs


def build(
    mu_along: float = 0.5,
    mu_across: float = 0.2,
    angle: float = 0.0,
    speed_x: float = 1.0,
    speed_y: float = 1.0,
    height: float = 0.002,
    dt: float = 0.005,
) -> fs.Scene:
    """Slide a box of 0.2 x 0.2 m over an anisotropic floor.

    Parameters
    ----------
    mu_along : float, 1
        Coulomb coefficient along the first direction of the floor.
    mu_across : float, 1
        Coulomb coefficient across it.
    angle : float, rad
        Angle between the first direction and the x axis.
    speed_x, speed_y : float, m/s
        Initial velocity.
    height : float, m
        Height of the box; a flatter box behaves more like a point mass.
    dt : float, s
        Time step.
    """
    import math

    scene = fs.Scene("anisotropic_box", dt=dt, duration=1.0, theta=1.0)
    scene.add_floor()
    box = scene.add_rigid(
        "box",
        fs.Box((0.1, 0.1, 0.5 * height)),
        density=1000.0,
        position=(0.0, 0.0, 0.5 * height),
        velocity=(speed_x, speed_y, 0.0),
    )
    scene.set_friction(box, "floor", (mu_along, mu_across), direction=(math.cos(angle), math.sin(angle), 0.0))
    scene.sensor("box", box, kind="marker")
    scene.sensor("floor", "floor")
    return scene
