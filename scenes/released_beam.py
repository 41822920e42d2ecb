"""A clamped silicone beam is let go by the hand that held it straight, alone or with a weight hung on its end (ETH Zurich).

A good result: the end sinks by 6.5 mm under the beam's own weight (17 mm with 0.51 N on it), swings at 7.7 Hz (4.3 Hz), loses
three tenths in each period, and creeps. docs/comparison.md compares it with motion capture of the real beam, marker by marker.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

import femsim as fs

#: Motion-capture markers on the free end, (x, y, z) m from the centre of the clamped face; they lie outside the surface.
#: Where the logs show them before the release, in the frame of the clamp; between the two loads they were put on anew.
ALONE = {"tip_1": (0.0993, -0.0004, 0.0205), "tip_2": (0.1005, -0.0207, 0.0091), "tip_3": (0.0993, 0.0212, -0.0085)}
WITH_WEIGHT = {"tip_1": (0.0986, 0.0002, 0.0204), "tip_2": (0.0997, -0.0207, 0.0091), "tip_3": (0.1008, 0.0211, -0.0088)}
LENGTH, SIDE, GRAVITY = 0.1, 0.03, 9.81
#: The clamp keeps the rubber from contracting, which stiffens the beam like this much less length (found with these elements).
CLAMPED = 0.0023
#: Height of the free end in the hand over that of a straight beam, m: what the rest of the released beam shows.
HELD_ALONE, HELD_WITH_WEIGHT = -0.00025, 0.00014
#: How far the hand bends the free end to the left (y), m: mean of both trials, from the way of the markers to their rest.
ASIDE_ALONE, ASIDE_WITH_WEIGHT = 0.00022, 0.00006


def build(
    load: float = 0.0,
    pitch: float = 6.5,
    held: float | None = None,
    aside: float | None = None,
    grip: float = 0.0063,
    material: str = "dragon_skin_10_beam",
    young_modulus: float | None = None,
    poisson_ratio: float | None = None,
    g_fast: float | None = None,
    g_middle: float | None = None,
    g_slow: float | None = None,
    rayleigh_beta: float = 0.0,
    hold_time: float = 0.1,
    release_time: float = 0.022,
    weight_release: float = 0.11,
    cells: int = 2,
    element: Literal["linear", "quadratic"] = "quadratic",
    dt: float = 0.005,
    theta: float | None = None,
    strain_damping: float = 0.01,
) -> fs.Scene:
    """Let go of a clamped beam of 30 x 30 x 100 mm that a hand holds at its free end.

    Parameters
    ----------
    load : float, N
        Weight of a mass that hangs on the upper edge of the free end and moves with it; filmed were 0 and 0.51012 N.
    pitch : float, deg
        How far the clamp points down: 6.5 by the markers on clamp and beam.
    held : float or None, m
        Height of the free end in the hand, over that of a straight beam; None is what the logs show, see docs/calibration.md.
    aside : float or None, m
        How far the hand bends the free end to the left (y); None is what the logs show.
    grip : float, m
        Distance of the hand from the free end.
    material : str, card
        Material card; the default has values found from this beam.
    young_modulus : float or None, Pa
        Young's modulus, the long-term one where there are Prony terms; None takes the card's.
    poisson_ratio : float or None, 1
        Poisson's ratio; None takes the card's, at which linear tetrahedra lock (use 0.4 and 8 cells for these).
    g_fast, g_middle, g_slow : float or None, 1
        Parts of the modulus in the three Prony terms of the card, in the order of their times; None takes the card's.
    rayleigh_beta : float, s
        Damping proportional to the stiffness, beside the Prony terms.
    hold_time : float, s
        Time for which the hand holds still.
    release_time : float, s
        Time in which the hand then lets go of the beam.
    weight_release : float, s
        Time in which it lets go of the weight.
    cells : int, 1
        Cells across the beam; equally fine along it.
    element : {"linear", "quadratic"}, kind
        "quadratic" tetrahedra, which do not lock, or "linear" ones.
    dt : float, s
        Time step.
    theta : float or None, 1
        Integration parameter of the theta rule, 1 is backward Euler; None takes the energy-momentum step.
    strain_damping : float, 1
        Damping of the energy-momentum step. It calms the vibrations that the hand's shape starts, and takes 2 % of the swings'
        decay; with 0.05, the default of scenes, a tenth.
    """
    scene = fs.Scene(
        "released_beam", dt=dt, duration=4.0, theta=theta, gravity=(0.0, 0.0, -GRAVITY), strain_damping=strain_damping
    )
    rubber = fs.material(material).elastic()
    given = {"young_modulus": young_modulus, "poisson_ratio": poisson_ratio}
    rubber = rubber.replace(rayleigh_beta=rayleigh_beta, **{key: value for key, value in given.items() if value is not None})
    parts = [g_fast, g_middle, g_slow]
    if any(g is not None for g in parts):
        if len(rubber.prony) != len(parts):
            raise fs.InputError(f"material {material} has {len(rubber.prony)} Prony terms; g_fast ... g_slow need three.")
        terms = zip(parts, rubber.prony, strict=True)
        rubber = rubber.replace(prony=tuple((own if g is None else g, tau) for g, (own, tau) in terms))
    mesh = fs.box_tets((LENGTH, SIDE, SIDE), (round(cells * LENGTH / SIDE), cells, cells))
    if held is None:
        held = HELD_WITH_WEIGHT if load else HELD_ALONE
    if aside is None:
        aside = ASIDE_WITH_WEIGHT if load else ASIDE_ALONE
    if not 0.0 <= grip <= 0.5 * LENGTH:
        raise fs.InputError(f"grip is {grip} m; give 0 to {0.5 * LENGTH:g} m from the free end.")
    hand = Hand(rubber, math.radians(pitch), (aside, held), grip, load)
    hand.beam = fs.Profile([hold_time, hold_time + max(release_time, 1e-6)], [1.0, 0.0])
    hand.weight = fs.Profile([hold_time, hold_time + max(weight_release, 1e-6)], [1.0, 0.0])
    beam = scene.add_soft(
        "beam",
        mesh,
        rubber,
        element=element,
        position=tuple(0.5 * LENGTH * hand.turn[:, 0]),
        rotation=(0.0, math.radians(pitch), 0.0),
        fixed=lambda points: (points @ hand.turn)[:, 0] < 1e-9,
        added_mass=hand.hang if load else None,
        start_points=hand.bend,
        load=hand,
    )
    for name, place in (WITH_WEIGHT if load else ALONE).items():
        scene.sensor(name, beam, kind="marker", at=tuple(hand.turn @ place))
    return scene


class Hand:
    """The hand near the free end: it carries the weight that hangs there, and props up the beam, which sags a little before it.

    Deflection and force are those of Timoshenko's beam.

    Parameters
    ----------
    rubber : fs.Elastic
        Of the beam.
    angle : float, rad
        Pitch of the clamp.
    held : tuple, m
        How far the free end is to the left of a straight beam, and above it.
    grip : float, m
        Distance of the hand from the free end.
    load : float, N
        Weight that hangs on the upper edge.
    """

    beam: fs.Profile
    weight: fs.Profile

    def __init__(self, rubber: fs.Elastic, angle: float, held: tuple[float, float], grip: float, load: float) -> None:
        across = math.cos(angle)
        self.turn = np.array([[across, 0.0, math.sin(angle)], [0.0, 1.0, 0.0], [-math.sin(angle), 0.0, across]])
        self._load, self._length, self._place = load, LENGTH - CLAMPED, LENGTH - CLAMPED - grip
        self._bending = rubber.young_modulus * SIDE**4 / 12
        self._shear = 5 / 6 * SIDE**2 * rubber.young_modulus / (2 + 2 * rubber.poisson_ratio)
        self._line_load = rubber.density * SIDE**2 * GRAVITY * across
        sag, rise = self._sag(self._length)[0], self._rise(self._length)[0]
        self._push = np.array([held[0], held[1] + sag]) / rise

    def _rise(self, x: Any) -> tuple[Any, Any]:
        """Deflection (m/N) and turn (rad/N) of the section at x under a push of the hand."""
        a = self._place
        bent, beyond = np.minimum(x, a), np.maximum(x - a, 0.0)
        turn = bent * (2 * a - bent) / (2 * self._bending)
        return bent**2 * (3 * a - bent) / (6 * self._bending) + bent / self._shear + turn * beyond, turn

    def _sag(self, x: Any) -> tuple[Any, Any]:
        """Deflection (m) and turn (rad) of the section at x under the beam's weight, both down."""
        L, per_bending = self._length, self._line_load / self._bending
        deflection = per_bending * x**2 * (x**2 - 4 * L * x + 6 * L**2) / 24 + self._line_load * x * (L - 0.5 * x) / self._shear
        return deflection, per_bending * x * (x**2 - 3 * L * x + 3 * L**2) / 6

    def bend(self, points: np.ndarray) -> np.ndarray:
        """Put points of the straight beam where they are in the hand: sections move and turn."""
        self._touch(points)
        own = points @ self.turn
        x = np.maximum(own[:, 0] - CLAMPED, 0.0)
        (rise, turn), (sag, sag_turn) = self._rise(x), self._sag(x)
        own[:, 0] -= own[:, 1] * self._push[0] * turn + own[:, 2] * (self._push[1] * turn - sag_turn)
        own[:, 1] += self._push[0] * rise
        own[:, 2] += self._push[1] * rise - sag
        return np.asarray(own @ self.turn.T)

    def hang(self, points: np.ndarray) -> np.ndarray:
        """Hang the weight on the upper edge of the free end; kg on each node."""
        self._touch(points)
        return self._load / GRAVITY * self._on_edge[:, 2]

    def _touch(self, points: np.ndarray) -> None:
        """Find the nodes that the hand holds, and those that the weight hangs on."""
        own = points @ self.turn
        edge = (own[:, 0] > LENGTH - 1e-9) & (own[:, 2] > 0.5 * SIDE - 1e-9)
        self._on_beam = np.outer(self._held_nodes(own[:, 0]), self.turn[:, 1:] @ self._push)
        self._on_edge = np.outer(edge / edge.sum(), (0.0, 0.0, 1.0))

    def _held_nodes(self, x: np.ndarray) -> np.ndarray:
        """Share of the push on each node: of the sections of nodes before and behind the hand, by the law of the lever."""
        sections = np.unique(np.round(x, 9))
        place = self._place + CLAMPED
        share = np.array([np.interp(place, sections, row) for row in np.eye(len(sections))])
        index = np.searchsorted(sections, np.round(x, 9))
        return np.asarray((share / np.bincount(index))[index])

    def __call__(self, t: float) -> np.ndarray:
        """Push at a time: forces on the nodes, N."""
        return np.asarray(self.beam(t) * self._on_beam + self.weight(t) * self._load * self._on_edge)
