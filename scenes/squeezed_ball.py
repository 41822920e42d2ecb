"""Two fingers squeeze a soft ball on a floor, release it a little, and slip as they pull it up.

A good result: the squeezed ball presses on the floor with more than its weight of 1.1 N; at the end the fingers slip, and the
pull of each is the friction coefficient times its normal force. The forces on fingers and floor therefore determine Young's
modulus, Poisson's ratio and friction (docs/calibration.md).
"""

from __future__ import annotations

import femsim as fs


def build(
    young_modulus: float = 1e5,
    poisson_ratio: float = 0.35,
    friction: float = 0.4,
    damping_time: float = 2e-3,
    squeeze: float = 0.004,
    loose: float = 0.001,
    lift: float = 0.006,
    divisions: int = 6,
    dt: float = 0.02,
) -> fs.Scene:
    """Squeeze a soft ball, release it a little and pull it up.

    Parameters
    ----------
    young_modulus : float, Pa
        Young's modulus of the ball.
    poisson_ratio : float, 1
        Poisson's ratio of the ball.
    friction : float, 1
        Coulomb coefficient between ball and fingers, and ball and floor.
    damping_time : float, s
        Rayleigh damping proportional to the stiffness.
    squeeze, loose : float, m
        Indentation of each finger during the squeeze and during the pull.
    lift : float, m
        Upward travel of the fingers.
    divisions : int, 1
        Cells across the ball.
    dt : float, s
        Time step.
    """
    radius, half_pad = 0.03, 0.003
    scene = fs.Scene("squeezed_ball", dt=dt, duration=1.2, theta=1.0)
    scene.add_floor()
    rubber = fs.Elastic(young_modulus, poisson_ratio, 1000.0, rayleigh_beta=damping_time, name="ball")
    ball = scene.add_soft("ball", fs.ball_tets(radius, divisions), rubber, position=(0.0, 0.0, radius))
    reach = radius + half_pad
    for name, side in (("left", -1.0), ("right", 1.0)):
        finger = scene.add_rigid(name, fs.Box((half_pad, 0.02, 0.02)), mass=0.2, position=(side * (reach + 5e-4), 0.0, radius))
        deep, less = -side * (squeeze + 5e-4), -side * (loose + 5e-4)
        scene.drive(
            finger,
            fs.Motion(
                [0.05, 0.4, 0.5, 0.7, 0.8, 1.2],
                [(0, 0, 0), (deep, 0, 0), (deep, 0, 0), (less, 0, 0), (less, 0, 0), (less, 0, lift)],
            ),
        )
        scene.set_friction(ball, finger, friction)
        scene.sensor(name, finger)
    scene.set_friction(ball, "floor", friction)
    scene.sensor("floor", "floor")
    return scene
