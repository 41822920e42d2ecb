"""Problem sets that programs write: stacks, rings, bars and mechanisms of any size, each from its numbers alone.

`stack`
    papers/003 scene 1: a column of 20 spheres of 10 kg, the tenth of 10 000 kg, one more of 1000 kg below, at rest and with
    that pulled up by twice the weight of the heavy one (radius and friction are not given there; ours: 0.1 m, 0.5); columns
    of boxes with ratios of masses of 1 to 1000, where four contacts a face are more than the motion can tell apart.
`ring`
    Closed rings of boxes on the floor, joined by balls, and the same open, ratios of masses of 1 to 1000.
`bars`
    papers/003 scene 4: 15 deformable bars of 208 nodes in five layers, Young's modulus 1e6 and 2e11 Pa (the size of a bar is not
    given there; ours: 0.6 x 0.15 x 0.15 m).
`mechanisms`
    The five primitives of papers/004 Table II (box, fixed boxes, nunchaku, four-bar fixed and free), an arm with motors and
    limits, hinges given twice, and chains drawn by number of loops, bodies, ratio of masses and contacts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from contact import ContactProblem, Solution, Solver, WarmStart, make_solver
from femsim.scene.scene import Scene
from femsim.step.stepper import Stepper
from femsim.studies.problems.assemblies import GRAVITY, WORLD, Assembly
from materials import Elastic
from meshes import box_tets

Named = Iterator[tuple[str, ContactProblem]]
_UP = (0.0, 0.0, 1.0)


def sphere_stack(*, pulled: bool = False, radius: float = 0.1, friction: float = 0.5) -> ContactProblem:
    """Column of papers/003 scene 1.A; ``pulled`` is 1.B."""
    made = Assembly()
    masses = [1000.0] + [10.0] * 9 + [10000.0] + [10.0] * 10
    for k, mass in enumerate(masses):
        made.sphere(mass, radius, (0.0, 0.0, radius * (2 * k + 1)), lift=2.0 * GRAVITY * mass if pulled and mass > 1e3 else 0.0)
        made.contact(k, k - 1, (0.0, 0.0, 2 * radius * k), _UP, friction=friction)
    return made.problem()


def box_stack(count: int, ratio: float) -> ContactProblem:
    """Column of boxes pushed sideways, the uppermost so many times heavier than the others."""
    made = Assembly()
    for k in range(count):
        mass = ratio if k == count - 1 else 1.0
        made.box(mass, (0.2, 0.2, 0.1), (0.01 * (k % 2), 0.0, 0.05 + 0.1 * k), load=(0.1 * mass, 0.05, 0.0, 0.0, 0.0, 0.01))
        made.corners(k, k - 1, (0.18, 0.18), np.array([0.0, 0.0, 0.1 * k]))
    return made.problem()


def ring(ratio: float, bodies: int = 8, *, closed: bool = True) -> ContactProblem:
    """Boxes on the floor joined by balls, moving, the first so many times heavier; 24 rows and 32 contacts with 8 boxes."""
    made, turn = Assembly(), 2.0 * np.pi / bodies
    at = [np.array([np.cos(turn * k), np.sin(turn * k), 0.1]) for k in range(bodies)]
    for k, centre in enumerate(at):
        made.box(ratio if k == 0 else 1.0, (0.3, 0.3, 0.2), centre, velocity=(0.5, 0.1 * k, 0.0, 0.0, 0.0, 0.2))
    for k in range(bodies if closed else bodies - 1):
        angle = turn * (k + 0.5)
        made.join(k, (k + 1) % bodies, (np.cos(angle), np.sin(angle), 0.1), "ball")
    for k, centre in enumerate(at):
        made.corners(k, WORLD, (0.3, 0.3), centre - [0.0, 0.0, 0.1])
    return made.problem()


def fixed_boxes(ratio: float = 1000.0) -> ContactProblem:
    """Two boxes welded to each other on the floor, the upper one heavier."""
    made = Assembly()
    made.box(1.0, (0.2, 0.2, 0.1), (0.0, 0.0, 0.05), velocity=(0.3, 0.0, 0.0, 0.0, 0.0, 0.0))
    made.box(ratio, (0.2, 0.2, 0.1), (0.0, 0.0, 0.15), velocity=(0.3, 0.0, 0.0, 0.0, 0.0, 0.0))
    made.join(1, 0, (0.0, 0.0, 0.1), "weld")
    made.corners(0, WORLD, (0.2, 0.2), np.zeros(3))
    return made.problem()


def nunchaku() -> ContactProblem:
    """Two sticks on the floor, joined to a short chain link by balls."""
    made = Assembly()
    for x, length in ((-0.25, 0.4), (0.0, 0.1), (0.25, 0.4)):
        body = made.box(1.0, (length, 0.05, 0.05), (x, 0.0, 0.025), velocity=(0.2, x, 0.0, 0.0, 0.0, 1.0))
        made.corners(body, WORLD, (length, 0.05), np.array([x, 0.0, 0.0]))
    made.join(0, 1, (-0.05, 0.0, 0.025), "ball")
    made.join(1, 2, (0.05, 0.0, 0.025), "ball")
    return made.problem()


def four_bar(*, fixed: bool, twice: bool = False) -> ContactProblem:
    """Four bars in a rectangle, joined by hinges; the lowest held by the world, or all free on the floor.

    ``twice`` gives each hinge twice: rows that repeat others.
    """
    made = Assembly()
    made.box(1.0, (0.4, 0.05, 0.05), (0.0, 0.0, 0.025))
    made.box(1.0, (0.05, 0.05, 0.3), (0.2, 0.0, 0.2), velocity=(0.1, 0.0, 0.0, 0.0, 0.3, 0.0))
    made.box(1.0, (0.4, 0.05, 0.05), (0.0, 0.0, 0.375), velocity=(0.2, 0.0, 0.0, 0.0, 0.0, 0.0))
    made.box(1.0, (0.05, 0.05, 0.3), (-0.2, 0.0, 0.2), velocity=(0.1, 0.0, 0.0, 0.0, 0.3, 0.0))
    for _ in range(2 if twice else 1):
        for a, b, x, z in ((1, 0, 0.2, 0.025), (2, 1, 0.2, 0.375), (3, 2, -0.2, 0.375), (0, 3, -0.2, 0.025)):
            made.join(a, b, (x, 0.0, z), "hinge")
    if fixed:
        made.join(0, WORLD, (0.0, 0.0, 0.0), "weld")
    made.corners(0, WORLD, (0.4, 0.05), np.zeros(3))
    return made.problem()


def arm(links: int = 6) -> ContactProblem:
    """Arm of links on hinges with motors and one limit, whose tip lies on the floor."""
    made, length = Assembly(), 0.3
    for k in range(links):
        body = made.box(3.0 / (k + 1), (length, 0.06, 0.06), (length * (k + 0.5), 0.0, 0.03))
        axis = (0.0, 1.0, 0.0) if k % 2 == 0 else (0.0, 0.0, 1.0)
        made.join(body, body - 1, (length * k, 0.0, 0.03), "hinge", axis)
        turning = made.turning(body, body - 1, axis)
        made.row(turning, offset=-0.2 * (-1.0) ** k, low=-15.0 / (k + 1), high=15.0 / (k + 1))
        if k == 2:
            made.row(turning, low=0.0, high=np.inf)
    made.corners(links - 1, WORLD, (0.06, 0.06), np.array([length * links - 0.03, 0.0, 0.0]))
    return made.problem()


def mechanism(loops: int, bodies: int, ratio: float, contacts: int, seed: int) -> ContactProblem:
    """Chain of random bodies joined by balls and hinges, closed by loops, with contacts on the floor.

    Parameters
    ----------
    loops, bodies, contacts : int
        Joints beside those of the chain, bodies, and contacts, these on bodies that are drawn.
    ratio : float
        Largest mass over the least one.
    seed : int
        Of all that is drawn.
    """
    made, rng = Assembly(), np.random.default_rng(seed)
    masses = ratio ** np.linspace(0.0, 1.0, bodies) if bodies > 1 else np.ones(1)
    centres = np.cumsum(rng.uniform(0.1, 0.3, (bodies, 3)) * [1.0, rng.choice([-1.0, 1.0]), 0.2], axis=0)
    for mass, centre in zip(rng.permutation(masses), centres, strict=True):
        made.box(float(mass), tuple(rng.uniform(0.05, 0.2, 3)), centre, velocity=tuple(0.3 * rng.standard_normal(6)))
    for k in range(1, bodies):
        made.join(k, k - 1, 0.5 * (centres[k] + centres[k - 1]), "hinge" if k % 2 else "ball", tuple(rng.standard_normal(3)))
    for _ in range(loops):
        a, b = rng.choice(bodies, 2, replace=False)
        made.join(int(a), int(b), 0.5 * (centres[a] + centres[b]), "ball")
    for body in rng.integers(0, bodies, contacts).tolist():
        point = centres[body] + 0.1 * rng.standard_normal(3) * [1.0, 1.0, 0.0]
        made.contact(body, WORLD, point - [0.0, 0.0, 0.05], _UP, friction=float(rng.uniform(0.2, 0.8)))
    return made.problem()


def bars(modulus: float, cells: tuple[int, int, int] = (12, 3, 3)) -> ContactProblem:
    """15 bars of papers/003 scene 4, in five layers across each other, one step after they were laid down, 50 ms long.

    Parameters
    ----------
    modulus : float, Pa
        Young's modulus; density 1000 kg/m^3, nu 0.3, Rayleigh 0.01 s, friction 0.3.
    cells : (int, int, int)
        Cells along and across a bar. Default 12, 3 and 3: 208 nodes.
    """
    scene = Scene("bars", dt=0.05, duration=0.1, default_friction=0.3, theta=1.0, nonlinear_tolerance=None)
    scene.add_floor()
    side, length = 0.15, 0.6
    material = Elastic(modulus, 0.3, 1000.0, rayleigh_beta=0.01, name="bar")
    for layer in range(5):
        for k in range(3):
            across = (k - 1) * 1.4 * side
            scene.add_soft(
                f"bar_{layer}_{k}", box_tets((length, side, side), cells), material,
                position=(0.0, across, side * (layer + 0.5)) if layer % 2 == 0 else (across, 0.0, side * (layer + 0.5)),
                rotation=(0.0, 0.0, 0.0) if layer % 2 == 0 else (0.0, 0.0, np.pi / 2),
            )  # fmt: skip
    kept = _Kept()
    Stepper(scene, kept).step()
    return kept.problems[0]


class _Kept:
    """A solver that keeps the problems that it is given."""

    def __init__(self) -> None:
        self.problems: list[ContactProblem] = []
        self._solver: Solver = make_solver("exact", max_iterations=1)

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Keep it, and do one iteration."""
        self.problems.append(problem)
        return self._solver.solve(problem, warm_start)


def _stack() -> Named:
    yield "spheres", sphere_stack()
    yield "spheres-pulled", sphere_stack(pulled=True)
    for count in (2, 5, 10):
        for ratio in (1.0, 1000.0):
            yield f"boxes-{count}-{ratio:g}", box_stack(count, ratio)


def _ring() -> Named:
    for bodies in (8, 24):
        yield f"open-{bodies}", ring(1.0, bodies, closed=False)
        for ratio in (1.0, 30.0, 1000.0):
            yield f"closed-{bodies}-{ratio:g}", ring(ratio, bodies)


def _bars() -> Named:
    for modulus in (1e6, 2e11):
        yield f"bars-{modulus:g}", bars(modulus)


def _mechanisms() -> Named:
    yield "box", box_stack(1, 1.0)
    yield "boxes-fixed", fixed_boxes()
    yield "nunchaku", nunchaku()
    yield "four-bar-fixed", four_bar(fixed=True)
    yield "four-bar-free", four_bar(fixed=False)
    yield "four-bar-twice", four_bar(fixed=False, twice=True)
    yield "arm", arm()
    for loops, bodies, ratio, contacts in ((0, 5, 1.0, 3), (2, 8, 30.0, 8), (4, 15, 1000.0, 30)):
        yield f"drawn-{loops}-{bodies}-{ratio:g}-{contacts}", mechanism(loops, bodies, ratio, contacts, 1)


#: Sets by name; each gives its problems, one after the other, with their names.
GENERATED: dict[str, Callable[[], Named]] = {"stack": _stack, "ring": _ring, "bars": _bars, "mechanisms": _mechanisms}
