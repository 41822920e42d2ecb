"""Scenes as environments of gymnasium, for reinforcement learning; needs the extra "gym".

`environment`
    `SceneEnv`, the base: it builds a scene, turns actions into targets, steps, observes.
`grasp`, `thread`
    Two examples: grasp and lift a soft ball, thread a cable through a hole.

Importing this registers the examples::

    import gymnasium
    import femsim.gym

    env = gymnasium.make("femsim/GraspBall-v0")
    envs = gymnasium.make_vec("femsim/ThreadCable-v0", num_envs=4, vectorization_mode="async")
"""

from femsim.base.packages import require

require("gymnasium", "femsim.gym", "gym")

import gymnasium  # noqa: E402 (only where it is installed)

from femsim.gym.environment import Reach, SceneEnv  # noqa: E402
from femsim.gym.grasp import GraspBall  # noqa: E402
from femsim.gym.thread import ThreadCable  # noqa: E402

__all__ = ["GraspBall", "Reach", "SceneEnv", "ThreadCable"]

for _name, _made in (("GraspBall", GraspBall), ("ThreadCable", ThreadCable)):
    if f"femsim/{_name}-v0" not in gymnasium.registry:
        gymnasium.register(f"femsim/{_name}-v0", entry_point=f"{_made.__module__}:{_name}")
