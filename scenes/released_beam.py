"""A clamped silicone beam is released from straight and swings until it rests (beam of diffPD_sim2real, ETH Zurich).

A good result: the tip sinks by 6.7 mm under the beam's own weight (16.1 mm with 0.51 N on the tip) and swings at 8 Hz (4.6 Hz),
which decays in about a second. docs/comparison.md compares it with motion capture of the real beam, marker by marker.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

import femsim as fs

#: Motion-capture markers on the free end, (x, y, z) m from the centre of the clamped face; they lie outside the surface.
MARKERS = {"tip_1": (0.1, 0.0, 0.021), "tip_2": (0.1, -0.021, 0.009), "tip_3": (0.1, 0.021, -0.009)}


def build(
    tip_load: float = 0.0,
    material: str = "dragon_skin_10_beam",
    young_modulus: float = 0.0,
    poisson_ratio: float = 0.0,
    rayleigh_alpha: float = 0.0,
    rayleigh_beta: float = 0.0015,
    hold_time: float = 0.1,
    release_time: float = 0.0,
    cells: int = 2,
    element: Literal["linear", "quadratic"] = "quadratic",
    dt: float = 0.005,
    theta: float = 0.5,
) -> fs.Scene:
    """Release a clamped beam of 30 x 30 x 100 mm from straight.

    Parameters
    ----------
    tip_load : float, N
        Weight of a mass on the free end that swings with it; the experiment has 0 and 0.51012 N.
    material : str, card
        Material card; the default has the values that the authors of the experiment identified.
    young_modulus : float, Pa
        Young's modulus; 0 takes the card's.
    poisson_ratio : float, 1
        Poisson's ratio; 0 takes the card's, at which linear tetrahedra lock (use 0.4 and 8 cells for these).
    rayleigh_alpha : float, 1/s
        Damping proportional to the mass.
    rayleigh_beta : float, s
        Damping proportional to the stiffness.
    hold_time : float, s
        Time for which the beam is held straight.
    release_time : float, s
        Duration of the release, during which the supporting force fades out smoothly.
    cells : int, 1
        Cells across the beam; equally fine along it.
    element : {"linear", "quadratic"}, kind
        "quadratic" tetrahedra, which do not lock, or "linear" ones.
    dt : float, s
        Time step.
    theta : float, 1
        Integration parameter, 0.5 (mid-point, loses no energy) to 1 (backward Euler).
    """
    length, side, gravity = 0.1, 0.03, 9.81
    scene = fs.Scene("released_beam", dt=dt, duration=3.0, theta=theta, gravity=(0.0, 0.0, -gravity))
    rubber = fs.material(material).elastic().replace(rayleigh_alpha=rayleigh_alpha, rayleigh_beta=rayleigh_beta)
    rubber = rubber.replace(
        young_modulus=young_modulus or rubber.young_modulus, poisson_ratio=poisson_ratio or rubber.poisson_ratio
    )
    mesh = fs.box_tets((length, side, side), (round(cells * length / side), cells, cells), alternating=False)
    weight = rubber.density * mesh.volume * gravity + tip_load
    carried = fs.Profile([0.0, hold_time, hold_time + max(release_time, 1e-6)], [weight, weight, 0.0])

    def hung(points: np.ndarray) -> np.ndarray:
        end = points[:, 0] > length - 1e-9
        return end * (tip_load / gravity / end.sum())

    beam = scene.add_soft(
        "beam",
        mesh,
        rubber,
        element=element,
        position=(0.5 * length, 0.0, 0.0),
        fixed=lambda points: points[:, 0] < 1e-9,
        load=lambda t: np.array([0.0, 0.0, carried(t)]),
        added_mass=hung,
    )
    for name, place in MARKERS.items():
        scene.sensor(name, beam, kind="marker", at=place)
    return scene
