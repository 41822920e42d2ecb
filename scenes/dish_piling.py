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

Dish = tuple[list[tuple[float, float]], float]


def _pot_below() -> dict[str, tuple[Dish, float]]:
    """Shapes and heights of their origins, m, from the floor up."""
    plate = POT[1] + POT[0][2][1] + _on_rim(PLATE, POT)
    bowl = plate + PLATE[1] + BOWL[1]
    return {"pot": (POT, POT[1]), "plate": (PLATE, plate), "bowl": (BOWL, bowl), "upper_bowl": (BOWL, bowl + _nested(BOWL))}


def _pot_above() -> dict[str, tuple[Dish, float]]:
    """Return the same with the pot on top; the edge of its bottom stands on the slope of the plate."""
    upper = BOWL[1] + _nested(BOWL)
    plate = upper + BOWL[0][2][1] + _on_rim(PLATE, BOWL)
    radius, slope = POT[0][1][0], _slope(PLATE)
    pot = plate + slope * (radius - PLATE[0][1][0]) + (POT[1] + PLATE[1]) * math.hypot(1.0, slope)
    return {"bowl": (BOWL, BOWL[1]), "upper_bowl": (BOWL, upper), "plate": (PLATE, plate), "pot": (POT, pot)}


def _slope(dish: Dish) -> float:
    """Rise over run of the wall."""
    (_, (r0, z0), (r1, z1)), _ = dish
    return (z1 - z0) / (r1 - r0)


def _on_rim(dish: Dish, below: Dish) -> float:
    """Height over a rim, m, of a dish whose wall lies on it: their lines are the two paddings apart."""
    slope = _slope(dish)
    return (dish[1] + below[1]) * math.hypot(1.0, slope) - slope * (below[0][2][0] - dish[0][1][0])


def _nested(dish: Dish) -> float:
    """Height of a dish in one of its kind, m: their walls are twice the padding apart."""
    return 2.0 * dish[1] * math.hypot(1.0, _slope(dish))


def build(
    friction: float = 0.5,
    dish_mass: float = 0.1,
    pot_mass: float = 5.0,
    pot_on_top: bool = False,
    dt: float = 1.0 / 240.0,
    duration: float = 2.0,
) -> fs.Scene:
    """Pile four dishes: the pot on the floor, the plate on its rim, a bowl on the plate and a bowl in that; or the pot on top.

    Parameters
    ----------
    friction : float, 1
        Coulomb coefficient of all pairs.
    dish_mass, pot_mass : float, kg
        Mass of the plate and of each bowl; of the pot.
    pot_on_top : bool, choice
        A bowl on the floor, a bowl in that, the plate on its rim and the pot on the plate instead, as the paper has them.
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    """
    scene = fs.Scene("dish_piling", dt=dt, duration=duration, theta=1.0, default_friction=friction)
    floor = scene.add_floor()
    places = _pot_above() if pot_on_top else _pot_below()
    bodies = {}
    for name, (shape, height) in places.items():
        mass = pot_mass if name == "pot" else dish_mass
        bodies[name] = scene.add_rigid(name, fs.Revolved(*shape), mass=mass, position=(0.0, 0.0, height))
    scene.sensor("floor", floor)
    scene.sensor("pot", bodies["pot"], kind="marker")
    scene.sensor("upper_bowl", bodies["upper_bowl"], kind="marker")
    return scene
