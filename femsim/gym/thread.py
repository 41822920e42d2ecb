"""Thread a cable through a hole: the example of an environment with a rod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from contact import Box
from femsim.gym.environment import Reach, SceneEnv
from femsim.model.bodies.rod_end import RodEnd
from femsim.model.drives import Motion
from femsim.model.solids import Compound, Piece
from femsim.run.simulation import Simulation
from femsim.scene.scene import Scene
from materials import Elastic, circular_section

_LENGTH, _RADIUS, _LINKS = 0.12, 0.002, 16  # of the cable, m
_WALL, _HOLE, _THICK = 0.15, 0.006, 0.003  # m: where the wall is; half the width of its hole; half its thickness
_THROUGH = 0.015  # m that the tip is to stand out behind the wall


class ThreadCable(SceneEnv):
    """A hand holds a cable of 12 cm at one end: bring its tip, which sags, through a hole of 12 mm in a wall.

    The hole is up to 1.5 cm beside and above the hand, the Young's modulus of the cable from 20 to 80 MPa.

    Actions: velocity of the hand, (3,), up to 0.1 m/s each. Observations, 12 numbers: displacement of the hand, places of the tip
    and of the middle of the cable, beside the hole, (3,) each, m; force of the cable on the hand, (3,), N. Reward: less ten for
    each metre from the tip to a place 15 mm behind the hole, and 1 where it is there.
    Options of ``reset``: ``young_modulus``, Pa; ``hole``, beside and above, m.
    """

    targets: ClassVar[Mapping[str, Reach]] = {"hand": Reach((-0.02, -0.04, -0.04), (0.08, 0.04, 0.06), rate=0.1)}
    horizon = 3.0

    def build(
        self, rng: np.random.Generator, young_modulus: float | None = None, hole: tuple[float, float] | None = None
    ) -> Scene:
        """Build the scene; place of the hole (beside, above) and stiffness of the cable vary, but for those given (m, Pa)."""
        scene = Scene("thread_cable", dt=0.01, duration=self.horizon, theta=1.0)
        drawn, own = rng.uniform(-0.015, 0.015, 2), float(rng.uniform(2e7, 8e7))
        self._hole = np.array([_WALL, *(drawn if hole is None else hole)])
        rubber = Elastic(own if young_modulus is None else young_modulus, 0.45, 1200.0, rayleigh_beta=1e-3, name="rubber")
        points = np.linspace((0.0, 0.0, 0.0), (_LENGTH, 0.0, 0.0), _LINKS + 1)
        hand = Motion([0.0], [(0.0, 0.0, 0.0)], name="hand")
        cable = scene.add_rod(
            "cable", points, circular_section(_RADIUS), rubber, start=RodEnd("clamped", motion=hand), translational_damping=0.2
        )
        wide = 0.05  # half of each of the four pieces round the hole
        sides = [((0.0, s * (_HOLE + wide), 0.0), (_THICK, wide, _HOLE + 2 * wide)) for s in (-1.0, 1.0)]
        sides += [((0.0, 0.0, s * (_HOLE + wide)), (_THICK, _HOLE, wide)) for s in (-1.0, 1.0)]
        wall = scene.add_obstacle(
            "wall", Compound([Piece(Box(half), position) for position, half in sides]), position=tuple(self._hole.tolist())
        )
        scene.set_friction(cable, wall, 0.2)
        scene.sensor("hand", cable, kind="start")
        return scene

    def tip(self, sim: Simulation) -> np.ndarray:
        """Place of the centre of the last link beside the hole, (3,), m."""
        return np.asarray(sim.points("cable")[-1] - self._hole)

    def observe(self, sim: Simulation) -> Any:
        """See the class."""
        points = sim.points("cable")
        force = sim.read("hand").force if sim.state.step else np.zeros(3)
        return np.concatenate([self._values - self._hole, self.tip(sim), points[_LINKS // 2] - self._hole, force])

    def reward(self, sim: Simulation) -> float:
        """See the class."""
        return -10.0 * float(np.linalg.norm(self.tip(sim) - [_THROUGH, 0.0, 0.0])) + float(self.success(sim))

    def success(self, sim: Simulation) -> bool:
        """Whether the tip stands out behind the wall, and through the hole."""
        points = sim.points("cable") - self._hole
        inside = points[np.abs(points[:, 0]) <= _THICK + _LENGTH / _LINKS]
        through = len(inside) > 0 and bool((np.abs(inside[:, 1:]) < _HOLE).all())
        return bool(points[-1, 0] > _THROUGH) and through
