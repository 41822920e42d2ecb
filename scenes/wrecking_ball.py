"""A ball of 2100 t goes through walls of loose bricks of 3.2 t (papers/003, test 2, with fewer bricks).

A good result: every step converges, and what the ball loses in momentum the bricks have, but for the floor. Steps are linearised
once, as in the paper, so bricks that turn fast go some centimetres into each other.
"""

from __future__ import annotations

import math

import femsim as fs

#: Length, width and height of a brick, diameter of the ball, m; densities, kg/m^3.
BRICK, BALL = (3.96, 4.0, 2.0), 8.0
BRICK_DENSITY, BALL_DENSITY = 100.0, 8000.0
#: Distance of the middles of neighbours in a row, of walls, and of the ball from the first wall at the start, m.
PITCH, BETWEEN, AHEAD = 4.0, 9.0, 0.1


def build(
    walls: int = 2,
    rows: int = 3,
    bricks: int = 4,
    speed: float = 16.0,
    friction: float = 0.4,
    softness: float = 0.0,
    dt: float = 0.02,
    duration: float = 0.6,
) -> fs.Scene:
    """Build parallel walls, each row half a brick beside the one below, and send the ball through their middle.

    Parameters
    ----------
    walls, rows, bricks : int, 1
        Walls, rows of a wall and bricks of a row: 4, 10 and 15 in the paper, whose steps want the solver `admm` or `canal`.
    speed : float, m/s
        Speed of the ball at the start, level (the paper gives none).
    friction : float, 1
        Coulomb coefficient of all pairs.
    softness : float, m/N
        How far each contact gives way to its normal force; the paper varies it (Figure 10).
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    """
    for name, value in (("walls", walls), ("rows", rows), ("bricks", bricks)):
        if value < 1:
            raise fs.InputError(f"{name} is {value}; allowed are whole numbers from 1.")
    scene = fs.Scene(
        "wrecking_ball", dt=dt, duration=duration, theta=1.0, default_friction=friction, nonlinear_tolerance=None,
        margin=0.02, largest_size=BALL,  # the margin is less than the clearance of bricks in a row
    )  # fmt: skip
    floor = scene.add_floor()
    length, width, height = BRICK
    brick = fs.Box((0.5 * length, 0.5 * width, 0.5 * height))
    for wall in range(walls):
        for row in range(rows):
            beside = 0.25 * PITCH * (-1.0) ** row
            for number in range(bricks):
                scene.add_rigid(
                    f"brick_{wall + 1}_{row + 1}_{number + 1}", brick, density=BRICK_DENSITY,
                    position=(PITCH * (number - 0.5 * (bricks - 1)) + beside, BETWEEN * wall, height * (row + 0.5)),
                )  # fmt: skip
    radius = 0.5 * BALL
    middle = max(0.5 * rows * height, radius)
    scene.add_rigid(
        "ball", fs.Sphere(radius), mass=BALL_DENSITY * 4.0 / 3.0 * math.pi * radius**3,
        position=(0.0, -0.5 * width - radius - AHEAD, middle), velocity=(0.0, speed, 0.0),
    )  # fmt: skip
    scene.set_softness("rigid", "rigid", softness)
    scene.set_softness("rigid", "floor", softness)
    scene.sensor("floor", floor)
    scene.sensor("ball", "ball", kind="marker")
    return scene
