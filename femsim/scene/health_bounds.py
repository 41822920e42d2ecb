"""Bounds of the health verdict: how much of each measured quantity makes a run doubtful, and how much makes it wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from femsim.base.errors import InputError, naming_fields

#: Bound above which a run is doubtful, and above which it is wrong; infinity for never.
Bounds = tuple[float, float]
NEVER = math.inf


@naming_fields
@dataclass(frozen=True)
class HealthBounds:
    """Bounds of the health verdict of a run: of each quantity the one that makes it doubtful, and the one that makes it wrong.

    Give it to a scene: ``fs.Scene("name", health=fs.HealthBounds(penetration=(0.05, 0.2)))``. ``math.inf`` switches one off.

    Parameters
    ----------
    energy : (float, float)
        Energy gained from nowhere, relative to the largest energy that passed through the scene.
    penetration : (float, float)
        Depth of two parts in each other, relative to the size of the smaller one: the edge of its surface elements, the smallest
        extent of a shape, the thickness of a rod.
    led_overlap : (float, float)
        The same for two parts that nothing can push, being driven, held or fixed.
    between_nodes : (float, float)
        Depth of a thin shape that went into a soft body between its surface nodes, without a force, relative to the edges of the
        surface elements; into a rod between its links, relative to its radius.
    snagged : (float, float)
        Part of the force of a rigid part on a soft body that pushes surface nodes along the surface, its mean over 50 ms: nodes
        that are caught at a side of a part that slides, because its edge has no contact between them.
    inverted : (float, float)
        Steps in a row in which a body has inverted elements. A body that still has some at the end is wrong, whatever
        the second number.
    creep : (float, float)
        Distance that sticking contacts have crept, relative to the size of the smaller part.
    balance : (float, float)
        Force missing in the momentum balance of a body, ``wrench_balance`` of steps.csv.
    residual : (float, float)
        Residual of the equations of motion, ``nonlinear_residual`` of steps.csv.
    unconverged : (float, float)
        Part of the steps that did not converge. A step whose contacts are proved infeasible is wrong, whatever these are.
    way : (float, float)
        Distance that a body moves in one step, relative to its own extent.
    turn : (float, float), rad
        Turn of a rigid body or of a link of a rod in one step.
    stretch : (float, float)
        Stretch of a rod, relative to that from which its links turn aside; looked at in every tenth step and at the end.
    motor : (float, float)
        Effort, or speed, of a joint that follows a motion exactly, its mean over 50 ms, relative to the most that its robot says.
    halved : (float, float)
        Part of the steps that were taken in sub-steps.
    fallbacks : (float, float)
        Part of the steps that the first solver did not solve, so that another took over.
    limit : (float, float)
        Part of the steps that used more than 80 % of the iterations allowed.
    energy_stop : float
        A run ends as failed when its energy exceeds this many times what was put in.
    left_stop : float
        A run ends as failed when a body is this many sizes of the scene away from where the scene began.

    Raises
    ------
    InputError
        Names the bound that is not two positive numbers, the first at most the second.
    """

    energy: Bounds = (0.01, 0.1)
    penetration: Bounds = (0.1, 0.25)
    led_overlap: Bounds = (0.01, 0.1)
    between_nodes: Bounds = (0.25, 0.5)
    snagged: Bounds = (0.25, NEVER)
    inverted: Bounds = (0.0, 20.0)
    creep: Bounds = (0.05, 0.5)
    balance: Bounds = (1e-3, 0.1)
    residual: Bounds = (0.5, NEVER)
    unconverged: Bounds = (0.0, 0.05)
    way: Bounds = (2.0, NEVER)
    turn: Bounds = (1.0, NEVER)
    stretch: Bounds = (1.0, NEVER)
    motor: Bounds = (1.05, NEVER)
    halved: Bounds = (0.2, NEVER)
    fallbacks: Bounds = (0.2, NEVER)
    limit: Bounds = (0.2, NEVER)
    energy_stop: float = 1e6
    left_stop: float = 1e3

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_stop"):
                if not _is_bound(value) or value <= 1.0:
                    raise InputError(f"health bound {field.name} is {value!r}; allowed are numbers above 1, math.inf for never.")
                continue
            pair = tuple(value) if isinstance(value, tuple | list) else ()
            if len(pair) != 2 or not all(map(_is_bound, pair)) or pair[0] > pair[1]:
                raise InputError(
                    f"health bound {field.name} is {value!r}; give two numbers that are not negative, (doubtful, wrong), the "
                    "first at most the second; math.inf for never."
                )
            object.__setattr__(self, field.name, (float(pair[0]), float(pair[1])))


def _is_bound(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0.0
