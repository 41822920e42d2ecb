"""A hand puts a square peg into a square hole that is not quite where it should be; the hand gives way.

A good result: the bevel of the hole guides the peg aside, it goes in flush with one wall, and presses on it with the sideways
stiffness of the hand times what the hole is off, less the play. A hand that follows its path exactly (``stiffness=None``) is
driven into the bevel, and the run says so.
"""

from __future__ import annotations

import math

import femsim as fs

#: Half sides of the peg, m; depth of the hole, thickness of its walls, and height of its bevel, m.
SIDE, HEIGHT = 0.01, 0.03
DEPTH, WALL, BEVEL = 0.04, 0.02, 0.003


def build(
    offset: float = 0.001,
    play: float = 0.0002,
    stiffness: float | None = 2000.0,
    turning_stiffness: float = 20.0,
    max_force: float = 50.0,
    friction: float = 0.2,
    depth: float = 0.035,
    dt: float = 0.01,
    duration: float = 2.0,
) -> fs.Scene:
    """Put a peg of 20 x 20 x 60 mm into a hole.

    Parameters
    ----------
    offset : float, m
        How far the hole is off to the side (x); up to the bevel, 3 mm, the peg still finds it.
    play : float, m
        Gap between the peg and each wall when it is in the middle.
    stiffness : float or None, N/m
        Of the hand along each axis; None for one that follows its path exactly.
    turning_stiffness : float, N m/rad
        Of the hand about each axis.
    max_force : float, N
        Largest force of the hand.
    friction : float, 1
        Coulomb coefficient of peg and hole.
    depth : float, m
        How far into the hole the hand goes.
    dt : float, s
        Time step.
    duration : float, s
        Simulated time; the hand goes down from 0.2 s to 1.5 s.
    """
    scene = fs.Scene("peg_in_hole", dt=dt, duration=duration, theta=1.0)
    inner, pieces = SIDE + play, []
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        half = (0.5 * WALL, inner + WALL) if x else (inner, 0.5 * WALL)
        place = (x * (inner + 0.5 * WALL), y * (inner + 0.5 * WALL), -BEVEL - 0.5 * DEPTH)
        pieces.append(fs.Piece(fs.Box((*half, 0.5 * DEPTH)), place))
        # the bevel is a board at 45 degrees; its upper face goes from the top of the wall outwards
        middle, thick = inner + 0.5 * BEVEL, 0.002
        out, down = middle + thick / math.sqrt(2.0), -0.5 * BEVEL - thick / math.sqrt(2.0)
        board = (BEVEL / math.sqrt(2.0), inner, thick) if x else (inner, BEVEL / math.sqrt(2.0), thick)
        turn = (y * math.pi / 4, -x * math.pi / 4, 0.0)
        pieces.append(fs.Piece(fs.Box(board), (x * out, y * out, down), turn))
    hole = scene.add_obstacle("hole", fs.Compound(pieces), position=(offset, 0.0, 0.0))
    peg = scene.add_rigid("peg", fs.Box((SIDE, SIDE, HEIGHT)), density=2700.0, position=(0.0, 0.0, HEIGHT + 0.005))
    scene.set_friction(peg, hole, friction)
    way = fs.Motion([0.2, 1.5], [(0.0, 0.0, 0.0), (0.0, 0.0, -0.005 - BEVEL - depth)])
    if stiffness is None:
        scene.drive(peg, way)
    else:
        scene.drive(peg, way, stiffness=(stiffness, turning_stiffness), max_force=max_force)
    scene.sensor("wrist", peg, kind="mount")
    scene.sensor("peg", peg, kind="marker")
    return scene
