"""A hanging cable is lifted by its lower end until both ends are level: the catenary.

A good result: sag and end forces are those of the catenary. With length L, span d and weight per metre w, the parameter a solves
L = 2 a sinh(d / (2 a)); the sag is a (cosh(d / (2 a)) - 1), the inward pull at each end w a and the vertical force w L / 2.
Bending at the lowest point reduces the inward pull, noticeably for a solid rod (``bending`` = 1); a string or rope of many
threads is far more flexible.
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
        Final distance between its ends.
    radius : float, m
        Radius of the cable.
    young_modulus : float, Pa
        Young's modulus.
    poisson_ratio : float, 1
        Poisson's ratio.
    density : float, kg/m^3
        Density.
    bending : float, 1
        Bending and torsional stiffness, as a fraction of that of a solid circle.
    damping : float, N s/m^2
        Drag per metre of cable, which brings it to rest.
    links : int, 1
        Number of links; use an odd number, so that the marker "middle" is the middle of the cable.
    dt : float, s
        Time step.
    """
    if not 0.0 < span < length:
        raise fs.InputError(f"span is {span} m; allowed are values between 0 and the length, {length} m.")
    scene = fs.Scene("hanging_cable", dt=dt, duration=5.0, theta=1.0)
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
