"""A hand swings a bob on a cable through three whiskers on a soft pad.

Other bodies hold the rods: the cable hangs from the driven hand and carries the bob, and the whiskers are clamped to the pad. The
bob bends them one after another and slips off; its contact force acts on the pad through their roots and on the hand through
the cable. A good result: every step converges, the whiskers are upright again at the end, and the hand carries its own weight
and that of cable and bob, the pad that of the whiskers.
"""

from __future__ import annotations

import numpy as np

import femsim as fs


def build(
    dt: float = 0.005,
    duration: float = 2.5,
    travel: float = 0.2,
    seconds: float = 1.5,
    links: int = 12,
    pad_stiffness: float = 1e5,
    bob_mass: float = 0.04,
    mu: float = 0.2,
) -> fs.Scene:
    """Build the scene.

    Parameters
    ----------
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    travel : float, m
        Travel of the hand.
    seconds : float, s
        Duration of the travel.
    links : int, 1
        Links of the cable and of each whisker.
    pad_stiffness : float, Pa
        Young's modulus of the pad.
    bob_mass : float, kg
        Mass of the bob.
    mu : float, 1
        Coulomb coefficient between bob and whiskers.
    """
    scene = fs.Scene("held_rods", dt=dt, duration=duration, theta=1.0)
    rubber = fs.Elastic(5e6, 0.45, 1200.0, rayleigh_beta=0.005, name="rubber")
    foam = fs.Elastic(pad_stiffness, 0.3, 300.0, rayleigh_beta=0.01, name="foam")
    thin = fs.circular_section(0.0015)
    start = -0.5 * travel
    hand = scene.add_rigid("hand", fs.Box((0.02, 0.01, 0.01)), mass=0.3, position=(start, 0.0, 0.25), surface="hand")
    scene.drive(hand, fs.Motion([0.1, 0.1 + seconds], [(0, 0, 0), (travel, 0, 0)]))
    bob = scene.add_rigid("bob", fs.Sphere(0.015), mass=bob_mass, position=(start, 0.0, 0.075), surface="bob")
    cable = scene.add_rod(
        "cable", np.linspace((start, 0, 0.24), (start, 0, 0.09), links + 1), thin, rubber, translational_damping=0.05,
        start=fs.RodEnd("clamped", on=hand), end=fs.RodEnd("clamped", on=bob),
    )  # fmt: skip
    pad = scene.add_soft(
        "pad", fs.box_tets((0.1, 0.04, 0.02), (10, 4, 2)), foam, position=(0, 0, 0.01), fixed=lambda x: x[:, 2] < 1e-6
    )  # fmt: skip
    for k, x in enumerate((-0.03, 0.0, 0.03)):
        whisker = scene.add_rod(
            f"whisker{k}", np.linspace((x, 0, 0.02), (x, 0, 0.08), links + 1), thin, rubber, translational_damping=0.2,
            start=fs.RodEnd("clamped", on=pad), surface="whisker",
        )  # fmt: skip
        scene.sensor(f"root{k}", whisker, kind="start")
    scene.set_friction("bob", "whisker", mu)
    scene.ignore_contact("bob", "pad")  # the cable is too short for that, and the pad's elements too coarse for a bob
    scene.sensor("hand", hand, kind="mount")
    scene.sensor("cable", cable, kind="end")
    scene.sensor("bob", bob)
    return scene
