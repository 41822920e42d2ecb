"""Deformable bars fall on a heap, layers of three across each other (papers/003, test 4, with fewer and coarser bars).

A good result: soft or as stiff as steel, every step converges, no bar is inside another one, and the floor ends up with the
weight of all.
"""

from __future__ import annotations

import numpy as np

import femsim as fs


def build(
    young: float = 1e6,
    layers: int = 2,
    divisions: int = 4,
    friction: float = 0.3,
    dt: float = 0.05,
    duration: float = 0.4,
    seed: int = 1,
) -> fs.Scene:
    """Drop layers of three parallel bars of 240 x 40 x 40 mm, each layer turned at random.

    Parameters
    ----------
    young : float, Pa
        Young's modulus: 1e6 (4.A) or 2e11 (4.B); Poisson's ratio 0.3, density 1000 kg/m^3, stiffness-proportional damping 0.01 s
        for the soft and 1e-4 s for the stiff one (the paper: "Rayleigh 0.01").
    layers : int, 1
        Layers of three bars, 5 in the paper; the lowest starts 0.1 m above the floor, the others 0.1 m above each other.
    divisions : int, 1
        Elements along a bar, a multiple of 4; a quarter of it across. The paper's 208 nodes a bar are
        those of 12.
    friction : float, 1
        Coulomb coefficient of all pairs.
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    seed : int, 1
        Of the random turns.
    """
    if divisions < 4 or divisions % 4:
        raise fs.InputError(f"divisions is {divisions}; allowed are multiples of 4.")
    scene = fs.Scene("falling_bars", dt=dt, duration=duration, theta=1.0, default_friction=friction)
    scene.add_floor()
    material = fs.Elastic(young, 0.3, 1000.0, rayleigh_beta=0.01 if young < 1e9 else 1e-4, name="bar")
    mesh = fs.box_tets((0.24, 0.04, 0.04), (divisions, divisions // 4, divisions // 4))
    turns = np.random.default_rng(seed).uniform(-np.pi, np.pi, layers)
    for layer, turn in enumerate(turns.tolist()):
        for k in range(3):
            beside = 0.08 * (k - 1)
            scene.add_soft(
                f"bar_{layer + 1}_{k + 1}", mesh, material, rotation=(0.0, 0.0, turn),
                position=(-beside * np.sin(turn), beside * np.cos(turn), 0.1 * (layer + 1)),
            )  # fmt: skip
    scene.sensor("floor", "floor")
    return scene
