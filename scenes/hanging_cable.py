"""A hanging cable is lifted by its lower end until both ends are level: the catenary.

A good result: the middle and the pull at the ends are those of the catenary. With the length L, the span d and the weight w a
metre, the parameter a solves L = 2 a sinh(d / (2 a)); the sag is a (cosh(d / (2 a)) - 1), the pull inwards at each end w a, the
weight that each end carries w L / 2. What bends in the lowest point takes a part of that pull: with ``bending`` = 1 the cable is
a full rod, and the pull inwards is off; a string or rope, made of many threads, bends far more easily.
"""

from __future__ import annotations

import numpy as np

import femsim as fs


def build(
    length: float = 1.0,
    span: float = 0.6,
    radius: float = 0.002,
    young_modulus: float = 1e8,
    poisson_ratio: float = 0.4,
    density: float = 1200.0,
    bending: float = 1e-4,
    damping: float = 0.1,
    links: int = 81,
    dt: float = 0.01,
) -> fs.Scene:
    """Hang a cable up by one end and lift the other to the same height.

    Parameters
    ----------
    length : float, m
        Length of the cable.
    span : float, m
        Distance of its ends in the end.
    radius : float, m
        Radius of the cable.
    young_modulus : float, Pa
        Young's modulus.
    poisson_ratio : float, 1
        Poisson's ratio.
    density : float, kg/m^3
        Density.
    bending : float, 1
        Second moments of the section as a part of those of a full circle.
    damping : float, N s/m^2
        Drag per metre of cable, so that it comes to rest.
    links : int, 1
        Number of links; with an odd number the marker "middle" is the middle of the cable.
    dt : float, s
        Time step.
    """
    if not 0.0 < span < length:
        raise fs.InputError(f"span is {span} m; allowed are values between 0 and the length, {length} m.")
    scene = fs.Scene("hanging_cable", dt=dt, duration=5.0)
    cable = scene.add_rod(
        "cable",
        np.linspace((0.0, 0.0, 0.0), (0.0, 0.0, -length), links + 1),
        fs.circular_section(radius, bending=bending),
        fs.Elastic(young_modulus, poisson_ratio, density, name="cable"),
        start=fs.RodEnd("hinged"),
        end=fs.RodEnd("hinged", motion=fs.Motion([0.0, 2.0], [(0.0, 0.0, 0.0), (span, 0.0, length)])),
        translational_damping=damping,
    )
    scene.sensor("left", cable, kind="start")
    scene.sensor("right", cable, kind="end")
    scene.sensor("middle", cable, kind="marker", node=links // 2)
    return scene
