"""A pot, a plate and two bowls stand in each other (papers/000, dishes) and come to rest.

A good result: the pile does not move, nothing goes into anything, and the floor carries the weight of all four.
"""

from __future__ import annotations

import math

import femsim as fs

#: Radius and z of the points of the walls, and their padding, m.
POT = ([(0.0, 0.0), (0.09, 0.0), (0.095, 0.11)], 0.004)
PLATE = ([(0.0, 0.0), (0.06, 0.0), (0.1, 0.015)], 0.003)
BOWL = ([(0.0, 0.0), (0.035, 0.0), (0.07, 0.05)], 0.003)


def build(
    friction: float = 0.5,
    dish_mass: float = 0.1,
    pot_mass: float = 5.0,
    dt: float = 1.0 / 240.0,
    duration: float = 2.0,
) -> fs.Scene:
    """Pile four dishes: the pot on the floor, the plate on its rim, a bowl on the plate and a bowl in that.

    Parameters
    ----------
    friction : float, 1
        Coulomb coefficient of all pairs.
    dish_mass, pot_mass : float, kg
        Mass of the plate and of each bowl; of the pot.
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    """
    scene = fs.Scene("dish_piling", dt=dt, duration=duration, theta=1.0, default_friction=friction)
    floor = scene.add_floor()
    pot = scene.add_rigid("pot", fs.Revolved(*POT), mass=pot_mass, position=(0.0, 0.0, POT[1]))
    # the slope of the plate lies on the rim of the pot: their lines are the two paddings apart
    rise, run = PLATE[0][2][1], PLATE[0][2][0] - PLATE[0][1][0]
    slope, apart = rise / run, POT[1] + PLATE[1]
    height = POT[1] + POT[0][2][1] + apart * math.hypot(1.0, slope) - (POT[0][2][0] - PLATE[0][1][0]) * slope
    scene.add_rigid("plate", fs.Revolved(*PLATE), mass=dish_mass, position=(0.0, 0.0, height))
    height += PLATE[1] + BOWL[1]
    scene.add_rigid("bowl", fs.Revolved(*BOWL), mass=dish_mass, position=(0.0, 0.0, height))
    # the slopes of the bowls are twice the padding apart
    rise, run = BOWL[0][2][1], BOWL[0][2][0] - BOWL[0][1][0]
    height += 2.0 * BOWL[1] * math.hypot(rise, run) / run
    upper = scene.add_rigid("upper_bowl", fs.Revolved(*BOWL), mass=dish_mass, position=(0.0, 0.0, height))
    scene.sensor("floor", floor)
    scene.sensor("pot", pot, kind="marker")
    scene.sensor("upper_bowl", upper, kind="marker")
    return scene
