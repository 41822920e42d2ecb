"""Grasp a soft ball and lift it: the example of an environment with a gripper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from contact import Box
from femsim.gym.environment import Reach, SceneEnv
from femsim.model.drives import Motion, Profile
from femsim.run.simulation import Simulation
from femsim.scene.checks import Finger
from femsim.scene.scene import Scene
from materials import Elastic
from meshes import ball_tets

_RADIUS, _OPEN, _ARM = 0.03, 0.045, 0.06  # m: of the ball; of the fingers to the middle; from the hand down to the fingers
_ABOVE, _LIFT = 0.05, 0.04  # m: of the fingers over the ball's centre at the start; what the ball is to be lifted by
_STRONGEST = 8.0  # N, of a finger: more crushes a soft ball
_STIFFNESS, _DAMPING, _PUSH = (4e3, 50.0), (60.0, 0.5), (20.0, 2.0)  # of the hand, which gives way as that of a robot does


class GraspBall(SceneEnv):
    """A gripper over a soft ball of 3 cm on a floor: lower it, close it, lift the ball by 4 cm.

    The hand follows its speed by a spring that gives way at 20 N. The ball lies up to 1 cm beside the middle of the gripper, its
    Young's modulus is from 50 to 500 kPa, its friction with the fingers from 0.4 to 0.8.

    Actions: speed of the hand, up to 0.15 m/s upwards, and of its closing force, up to 32 N/s. Observations, 12 numbers:
    displacement of the hand upwards, m; closing force, N; centre of the ball beside the hand, (3,), m; height gained by the ball,
    m; forces on both fingers, (2, 3), N. Reward: height gained relative to 4 cm, less 0.001 for each newton of closing force, and
    1 where it is done. Options of ``reset``: ``young_modulus``, Pa; ``beside``, m; ``friction``.
    """

    targets: ClassVar[Mapping[str, Reach]] = {
        "hand": Reach((0.0, 0.0, -0.052), (0.0, 0.0, 0.02), rate=0.15),
        "grip": Reach(0.0, _STRONGEST, rate=4.0 * _STRONGEST),
    }
    horizon = 2.0

    def build(
        self,
        rng: np.random.Generator,
        young_modulus: float | None = None,
        beside: float | None = None,
        friction: float | None = None,
    ) -> Scene:
        """Build the scene; place, stiffness and friction of the ball vary, but for those that are given (Pa, m, 1)."""
        scene = Scene("grasp_ball", dt=0.01, duration=self.horizon, theta=1.0)
        drawn = (
            float(np.exp(rng.uniform(np.log(5e4), np.log(5e5)))),
            float(rng.uniform(-0.01, 0.01)),
            float(rng.uniform(0.4, 0.8)),
        )
        stiff, beside, rub = (
            own if given is None else given for own, given in zip(drawn, (young_modulus, beside, friction), strict=True)
        )
        rubber = Elastic(stiff, 0.4, 1000.0, rayleigh_beta=2e-3, name="rubber")
        ball = scene.add_soft("ball", ball_tets(_RADIUS, 4), rubber, position=(beside, 0.0, _RADIUS))
        scene.add_floor()
        pad = Box((0.008, 0.015, 0.02))  # wider than the elements of the ball: a narrow one passes between its nodes
        left = Finger("left", pad, offset=(-_OPEN, 0.0, -_ARM), closing=(1.0, 0.0, 0.0))
        right = Finger("right", pad, offset=(_OPEN, 0.0, -_ARM), closing=(-1.0, 0.0, 0.0))
        gripper = scene.add_gripper(
            "gripper", [left, right], position=(0.0, 0.0, _RADIUS + _ABOVE + _ARM), mass=0.5, joint_limits=(-0.01, 0.035)
        )
        scene.set_friction(ball, gripper, rub)
        scene.contact_by_faces(gripper)  # else an edge on the ball's shoulder catches nodes
        still = Motion([0.0], [(0.0, 0.0, 0.0)], name="hand")
        scene.drive(gripper, still, stiffness=_STIFFNESS, damping=_DAMPING, max_force=_PUSH)
        scene.drive(gripper, force=Profile([0.0], [0.0], name="grip"), fingers=True)
        scene.sensor("left", "gripper.left")
        scene.sensor("right", "gripper.right")
        return scene

    def gained(self, sim: Simulation) -> float:
        """Height of the ball's centre over its start, m."""
        return float(sim.points("ball")[:, 2].mean()) - _RADIUS

    def observe(self, sim: Simulation) -> Any:
        """See the class."""
        hand = sim.pose("gripper")[1]
        forces = [sim.read(name).force if sim.state.step else np.zeros(3) for name in ("left", "right")]
        lift = hand[2] - (_RADIUS + _ABOVE + _ARM)
        return [lift, self._values[-1], *(sim.points("ball").mean(axis=0) - hand), self.gained(sim), *np.concatenate(forces)]

    def reward(self, sim: Simulation) -> float:
        """See the class."""
        return self.gained(sim) / _LIFT - 1e-3 * float(self._values[-1]) + float(self.success(sim))

    def success(self, sim: Simulation) -> bool:
        """Whether the ball is 4 cm higher than at the start."""
        return self.gained(sim) > _LIFT
