"""An M48 nut on its bolt (papers/000, 002): without friction it spins down by its weight, with friction it stays.

A good result: the nut sinks by one pitch a turn, however fast it spins; with a coefficient above the tangent of the lead angle
over the flanks (0.03) it does not move at all.
"""

from __future__ import annotations

import math

import femsim as fs

#: Of M48: diameter, pitch; length of the bolt, height of the nut, its width across flats, m.
DIAMETER, PITCH = 0.048, 0.005
LENGTH, HEIGHT, ACROSS = 0.1, 0.038, 0.075


def build(
    friction: float = 0.0,
    play: float = 0.0002,
    turns: float = 1.0,
    spin: float = 0.0,
    most_per_pair: int = 120,
    dt: float = 1.0 / 240.0,
    duration: float = 0.5,
) -> fs.Scene:
    """Put a nut of steel on an upright bolt, flanks on flanks.

    Parameters
    ----------
    friction : float, 1
        Coulomb coefficient of bolt and nut.
    play : float, m
        Radial play of the threads.
    turns : float, 1
        Turns by which the nut starts above the middle of the bolt.
    spin : float, rad/s
        Spin at the start, positive upwards; the nut sinks or rises with it.
    most_per_pair : int, 1
        Contacts of bolt and nut that are kept.
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    """
    scene = fs.Scene("bolt_nut", dt=dt, duration=duration, theta=1.0, margin=2e-4, most_per_pair=most_per_pair)
    bolt = scene.add_obstacle("bolt", fs.Thread.metric(DIAMETER, PITCH, LENGTH))
    angle = math.fmod(2.0 * math.pi * turns, 2.0 * math.pi)
    nut = scene.add_rigid(
        "nut", fs.Thread.metric(DIAMETER, PITCH, HEIGHT, play=play, across=ACROSS), density=7850.0,
        # lowered by the play, so that its upper flanks lie on the lower ones of the bolt
        position=(0.0, 0.0, turns * PITCH - play * math.tan(math.pi / 6.0)), rotation=(0.0, 0.0, angle),
        velocity=(0.0, 0.0, spin * PITCH / (2.0 * math.pi)), angular_velocity=(0.0, 0.0, spin),
    )  # fmt: skip
    scene.set_friction(bolt, nut, friction)
    scene.sensor("bolt", bolt)
    scene.sensor("nut", nut, kind="marker")
    return scene
