"""A column of 20 spheres, the tenth of which weighs a thousand times as much as each other one (papers/003, test 1).

A good result: every contact carries what stands on it. Where the heavy sphere is pulled up by twice its weight (case B), the
contact below it opens, and those above carry what they lift.
"""

from __future__ import annotations

import femsim as fs

#: Number of spheres, the heavy one counted from the floor, and acceleration of gravity, m/s^2.
COUNT, HEAVY, GRAVITY = 20, 10, 9.8


def build(
    case: str = "A",
    mass: float = 10.0,
    ratio: float = 1000.0,
    beside: float = 1000.0,
    radius: float = 0.1,
    softness: float = 0.0,
    dt: float = 0.01,
    duration: float = 0.1,
) -> fs.Scene:
    """Stack the spheres, one more beside them on the floor.

    Parameters
    ----------
    case : str, 1
        "A": the heavy sphere rests; "B": it is pulled up by twice its weight.
    mass : float, kg
        Mass of each sphere but the heavy one.
    ratio : float, 1
        Mass of the heavy sphere over that of another.
    beside : float, kg
        Mass of the sphere on the floor beside the column.
    radius : float, m
        Radius of the spheres (the paper gives none).
    softness : float, m/N
        How far each contact gives way to its normal force.
    dt : float, s
        Time step (the paper gives none).
    duration : float, s
        Simulated time.
    """
    if case not in ("A", "B"):
        raise fs.InputError(f"case is {case!r}; allowed are 'A' and 'B'.")
    scene = fs.Scene("sphere_stack", dt=dt, duration=duration, theta=1.0, gravity=(0.0, 0.0, -GRAVITY))
    floor = scene.add_floor()
    pull = (0.0, 0.0, 2.0 * ratio * mass * GRAVITY)
    for number in range(1, COUNT + 1):
        heavy = number == HEAVY
        scene.add_rigid(
            f"sphere_{number}", fs.Sphere(radius), mass=ratio * mass if heavy else mass,
            position=(0.0, 0.0, (2 * number - 1) * radius),
            load=(lambda _: (pull, (0.0, 0.0, 0.0))) if heavy and case == "B" else None,
        )  # fmt: skip
    scene.add_rigid("beside", fs.Sphere(radius), mass=beside, position=(4.0 * radius, 0.0, radius))
    scene.set_softness("rigid", "rigid", softness)
    scene.set_softness("rigid", "floor", softness)
    scene.sensor("floor", floor)
    scene.sensor("lowest", "sphere_1", partner=floor)
    scene.sensor("above", f"sphere_{HEAVY + 1}", partner=f"sphere_{HEAVY}")
    scene.sensor("below", f"sphere_{HEAVY}", partner=f"sphere_{HEAVY - 1}")
    return scene
