"""Scenes as environments of gymnasium: the rules of its checker, the two examples, seeds, processes, wrong calls."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import femsim as fs
from contact import ContactError
from femsim.step.stepper import Stepper

gymnasium = pytest.importorskip("gymnasium")

from femsim.gym import GraspBall, Reach, SceneEnv, ThreadCable  # noqa: E402 (only where gymnasium is)

ROOT = Path(fs.__file__).resolve().parent.parent


class Press(SceneEnv):
    """Press a plate on a floor by a spring: the smallest scene with a target of each kind."""

    targets: ClassVar[dict[str, Reach]] = {"push": Reach((0.0, 0.0, -0.01), (0.0, 0.0, 0.01), rate=0.05)}
    period, horizon = 0.02, 0.1

    def build(self, rng: np.random.Generator) -> fs.Scene:
        scene = fs.Scene("press", dt=0.01, duration=1.0, theta=1.0)
        scene.add_floor()
        scene.add_rigid("plate", fs.Box((0.01, 0.01, 0.01)), mass=0.1 * (1.0 + rng.random()), position=(0, 0, 0.015))
        scene.drive("plate", fs.Motion([0.0], [(0, 0, 0)], name="push"), stiffness=(500.0, 5.0))
        scene.sensor("floor", "floor")
        return scene

    def observe(self, sim: fs.Simulation) -> Any:
        return sim.pose("plate")[1]

    def reward(self, sim: fs.Simulation) -> float:
        return -float(sim.read("floor").force[2])


def grasp(seen: np.ndarray) -> np.ndarray:
    """Lower, close, lift."""
    if seen[1] < 1.0 and seen[0] > -0.05:
        return np.array([-1.0, -1.0])
    return np.array([0.0, 1.0]) if seen[1] < 6.0 else np.array([1.0, 0.0])


def thread(seen: np.ndarray) -> np.ndarray:
    """Bring the tip before the hole, then go ahead, keeping it in the middle."""
    tip = seen[3:6]
    ahead = 1.0 if np.abs(tip[1:]).max() < 0.002 or tip[0] > 0 else np.clip(-20.0 * (tip[0] + 0.02), -1.0, 1.0)
    return np.array([ahead, *np.clip(-60.0 * tip[1:], -1.0, 1.0)])


def episode(env: Any, policy: Any, seed: int, most: int = 100) -> tuple[list[np.ndarray], list[float], dict[str, Any]]:
    seen, info = env.reset(seed=seed)
    all_seen, rewards = [seen], []
    for _ in range(most):
        seen, reward, done, over, info = env.step(policy(seen))
        all_seen.append(seen)
        rewards.append(reward)
        if done or over:
            break
    return all_seen, rewards, info


@pytest.mark.parametrize("name", ["GraspBall", "ThreadCable"])
def test_examples_keep_the_rules_of_gymnasium(name: str) -> None:
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(infinity|too high|too low|symmetric).*")
        warnings.simplefilter("error", append=True)
        check_env(gymnasium.make(f"femsim/{name}-v0").unwrapped, skip_render_check=True)


@pytest.mark.parametrize(("name", "policy"), [("GraspBall", grasp), ("ThreadCable", thread)])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_simple_policy_solves_the_examples_and_none_does_not(name: str, policy: Any, seed: int) -> None:
    env = gymnasium.make(f"femsim/{name}-v0")
    seen, rewards, info = episode(env, policy, seed)
    assert info["success"] and info["converged"] and info["verdict"] == "good" and not info["failed"]
    idle, nothing, stayed = episode(env, lambda seen: np.zeros(env.action_space.shape), seed, most=5)
    assert np.array_equal(idle[0], seen[0])  # the same scene
    assert not stayed["success"] and max(nothing) < rewards[-1] - 0.5
    if name == "GraspBall":
        ball = env.unwrapped.sim.points("ball")
        assert seen[-1][5] > 0.04 and abs(ball[:, 2].min()) < 1e-3  # lifted; then again on the floor
        left, right = seen[-1][6:9], seen[-1][9:12]
        weight = 1000.0 * 9.81 * 4.0 / 3.0 * np.pi * 0.03**3
        assert -(left + right)[2] == pytest.approx(weight, rel=0.2)  # the polyhedron is lighter, the hand moves


def test_no_policy_crushes_the_ball_or_passes_through_it() -> None:
    """Of 35 episodes of random actions 17 were wrong: the hand pressed without limit, and fingers went between nodes."""
    env, rng = GraspBall(), np.random.default_rng(4)
    verdicts = []
    for number in range(5):
        speed = rng.choice([-1.0, 1.0], (4, *env.action_space.shape))  # held for a while, as exploration does
        env.reset(seed=number)
        over = False
        while not over:
            _, _, done, cut, info = env.step(speed[int(10.0 * env.sim.time / env.horizon) % 4])
            over = done or cut
        verdicts.append(info["verdict"])
    assert "wrong" not in verdicts


def test_seeds_make_the_same_episodes_also_in_processes() -> None:
    env = ThreadCable()
    both = [episode(env, thread, seed, most=6) for seed in (3, 4)]
    again = episode(env, thread, 3, most=6)
    assert np.array_equal(both[0][0], again[0]) and both[0][1] == again[1]
    assert not np.array_equal(both[0][0][0], both[1][0][0])
    envs = gymnasium.make_vec("femsim/ThreadCable-v0", num_envs=2, vectorization_mode="async")
    try:
        seen, _ = envs.reset(seed=[3, 4])
        for k in range(6):
            for own in (0, 1):
                assert np.array_equal(seen[own], both[own][0][k]), (own, k)
            seen, reward, _, _, info = envs.step(np.stack([thread(one) for one in seen]))
            assert reward.tolist() == [both[0][1][k], both[1][1][k]]
        assert (info["time"] == 0.3).all() or np.allclose(info["time"], 0.3)
    finally:
        envs.close()


class Felt(Press):
    """Feels the floor by an instrument with noise."""

    def build(self, rng: np.random.Generator) -> fs.Scene:
        scene = super().build(np.random.default_rng(0))  # the same each time, but for its noise
        scene.sensor("felt", "floor", reading=fs.Reading(noise=(1.0, 0.0), seed=1))
        return scene

    def observe(self, sim: fs.Simulation) -> Any:
        return sim.read("felt_measured").force if sim.state.step else np.zeros(3)


def test_noise_of_readings_differs_from_episode_to_episode_and_repeats_by_the_seed() -> None:
    env = Felt()

    def felt(seed: int | None) -> np.ndarray:
        env.reset(seed=seed)
        return np.asarray(env.step(np.zeros(env.action_space.shape))[0])

    first, again, other, next_one = felt(1), felt(1), felt(2), felt(None)
    np.testing.assert_array_equal(first, again)
    assert (first != other).all() and (other != next_one).all()


class Weighed(Press):
    """Has a plate of a mass that is asked for."""

    def build(self, rng: np.random.Generator, mass: float | None = None) -> fs.Scene:
        scene = super().build(rng)
        scene.add_rigid("weight", fs.Sphere(0.01), mass=0.2 if mass is None else mass, position=(0.1, 0, 0.05))
        return scene


def test_options_of_reset_are_parameters_of_build() -> None:
    env = Weighed()
    for options, mass in ((None, 0.2), ({}, 0.2), ({"mass": 0.7}, 0.7), (None, 0.2)):
        env.reset(seed=1, options=options)
        assert env.sim.stepper.scene.body("weight").mass == pytest.approx(mass)
    drawn = env.reset(seed=1)[0]
    np.testing.assert_array_equal(drawn, env.reset(seed=1, options={"mass": 0.3})[0])  # what is drawn stays
    kept = env.sim
    with pytest.raises(fs.InputError, match=r"reset\(\) has no option 'mas'.* did you mean 'mass'"):
        env.reset(options={"mas": 1.0})
    assert env.sim is kept and env.step(np.zeros(1))[4]["converged"]  # the episode goes on
    ball, cable = GraspBall(), ThreadCable()
    seen, _ = ball.reset(seed=0, options={"beside": 0.004, "young_modulus": 2e5, "friction": 0.5})
    assert seen[2] == pytest.approx(0.004, abs=1e-9)
    seen, _ = cable.reset(seed=0, options={"hole": (0.01, -0.005)})
    assert seen[:3] == pytest.approx([-0.15, -0.01, 0.005])


class Bent(SceneEnv):
    """Moves a joint of an arm, from another place in each episode."""

    targets: ClassVar[dict[str, Reach]] = {"arm.joint2": Reach(-1.0, 1.0, rate=0.5)}
    period, horizon = 0.02, 0.1

    def build(self, rng: np.random.Generator) -> fs.Scene:
        scene, bent = fs.Scene("bent", dt=0.01, duration=1.0, theta=1.0), float(rng.uniform(0.2, 0.8))
        arm = scene.add_robot("arm7.urdf", name="arm", joints={"joint2": bent})
        scene.drive_joint(arm, "joint2", fs.Profile([0.0], [bent]))
        scene.sensor("bent", "arm.joint2", kind="revolute")
        return scene

    def observe(self, sim: fs.Simulation) -> Any:
        return sim.read("bent").values["angle_rad"] if sim.time else 0.0

    def reward(self, sim: fs.Simulation) -> float:
        return 0.0


def test_targets_start_where_the_scene_has_them() -> None:
    """From 0, the default before, the joint moved by all its angle in the first period of an action of 0."""
    env, angles = Bent(), []
    for seed in (1, 2):
        env.reset(seed=seed)
        there = env.sim.stepper.scene.bodies[0].initial_q()[env.sim.stepper.scene.bodies[0].joint("joint2").coordinate]
        assert env.step(np.zeros(1))[0] == pytest.approx([there], abs=1e-12)
        assert env.step(np.ones(1))[0] == pytest.approx([there + 0.01], abs=1e-12)
        angles.append(there)
    assert angles[0] != angles[1]
    env = type("From", (Bent,), {"targets": {"arm.joint2": Reach(-1.0, 1.0, rate=0.5, start=0.1)}})()
    env.reset(seed=1)
    assert env.step(np.zeros(1))[0] == pytest.approx([0.1], abs=1e-12)


def test_copies_of_an_environment_go_their_own_way() -> None:
    env = Felt()
    env.reset(seed=1)
    env.step(np.ones(1))
    deep, shallow = copy.deepcopy(env), copy.copy(env)
    before = env.sim.pose("plate")[1]
    deep.step(-np.ones(1))
    np.testing.assert_array_equal(env.sim.pose("plate")[1], before)
    np.testing.assert_array_equal(env.step(np.ones(1))[0], shallow.step(np.ones(1))[0])  # noise, too
    places = [one.sim.pose("plate")[1] for one in (env, shallow, deep)]
    assert np.array_equal(places[0], places[1]) and places[0][2] > before[2] > places[2][2]
    deep.close()
    np.testing.assert_array_equal(env.reset()[0], shallow.reset()[0])  # the next scene, too
    np.testing.assert_array_equal(env.step(np.ones(1))[0], shallow.step(np.ones(1))[0])


def test_actions_move_targets_at_their_rate_and_episodes_end_by_time() -> None:
    env = Press()
    assert env.action_space.shape == (1,) and env.observation_space.shape == (3,)
    env.reset(seed=0)
    places, over = [], False
    while not over:
        seen, _, done, over, info = env.step(np.array([5.0]))  # as 1
        places.append(seen[2])
        assert not done
    assert len(places) == 5 and info["time"] == pytest.approx(0.1)
    assert env.sim.state.step == 10
    command = env.sim._engine.scene.commands["plate"]
    assert command(1.0)[0] == pytest.approx([0.0, 0.0, 5 * 0.02 * 0.05])
    assert np.all(np.diff(places) > 0)


def test_a_step_that_fails_ends_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    env = Press()
    env.reset(seed=0)
    env.step(np.zeros(1))

    def broken(self: Stepper, *, whole: bool = True, pushing: bool = True) -> Any:
        raise ContactError("no solution.")

    monkeypatch.setattr(Stepper, "step", broken)
    _, _, done, over, info = env.step(np.zeros(1))
    assert done and not over and "step 3 at 0.03 s failed: no solution" in info["failed"]
    env.reset(seed=1)  # the first step of an episode: reward() reads a sensor, which has no reading yet
    _, reward, done, over, info = env.step(np.zeros(1))
    assert (reward, done, over, info["success"]) == (0.0, True, False, False) and "step 1 at 0.01 s failed" in info["failed"]


def test_a_closed_environment_asks_for_reset() -> None:
    env = Press()
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(fs.InputError, match=r"step\(\) comes before reset\(\)"):
        env.step(np.zeros(1))
    env.reset()
    assert env.step(np.zeros(1))[4]["converged"]


def wrong(act: bool = False, **changes: Any) -> Any:
    """What makes an environment with changes, and acts once if asked."""

    def call() -> None:
        env = type("Wrong", (Press,), changes)()
        if act:
            env.reset()
            env.step(np.zeros(1))

    return call


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (wrong(targets={"pusch": Reach(0, 1)}), "target 'pusch' is unknown; did you mean 'push'"),
        (wrong(targets={}), "has no target; name some of push, plate"),
        (wrong(targets={"push": Reach((0, 0, 1), (0, 0, -1))}), "allowed are finite numbers, low <= high"),
        (wrong(targets={"push": Reach(0.0, np.inf)}), "allowed are finite numbers"),
        (wrong(targets={"push": Reach((0, 0, 0), (1, 1))}), "reach of 'push'.*one number, or as many"),
        (wrong(targets={"push": Reach(0, 1)}), "plate: the value is 0.0; allowed are .*displacement"),
        (wrong(targets={"push": Reach("low", 1)}), "reach of 'push'"),
        (wrong(targets={"push": Reach(0, 1, start=np.nan)}), "reach of 'push'.*finite numbers"),
        (type("Far", (Bent,), {"targets": {"arm.joint2": Reach(0.0, 90.0)}}), r"is 90 rad; the range .* is -2 to 2; 90 degrees"),
        (wrong(targets={"push": (0, 1)}), "targets is .*femsim.gym.Reach each"),
        (wrong(targets=["push"]), "targets is ..push...*femsim.gym.Reach each"),
        (lambda: Reach(0.0, 1.0, rate="fast"), "rate is 'fast'"),  # type: ignore[arg-type]
        (lambda: Reach(0.0, 1.0, rate=np.nan), "rate is nan"),
        (wrong(period="short"), "period is 'short'"),
        (wrong(period=np.nan), "period is nan"),
        (wrong(horizon=-1.0), "horizon is -1.0"),
        (lambda: Press().reset(seed=-1), "seed is -1"),
        (lambda: Press(render_mode="human"), r"Press: render_mode is 'human', .*; leave it out, and record .*out=FOLDER"),  # type: ignore[arg-type]
        (lambda: Press().render(), r"Press: it draws nothing; record an episode by fs.Simulation\(env.build\(rng\), out=FOLDER"),
        (lambda: Press().reset(seed="a"), "seed is 'a'"),  # type: ignore[arg-type]
        (lambda: Press().reset(seed=True), "seed is True"),
        (lambda: Press().reset(options="heavy"), "options is 'heavy'; give a dict"),  # type: ignore[arg-type]
        (lambda: Press().reset(options={"mass": 1.0}), r"reset\(\) has no option 'mass', as build\(\) has no .*; there is none"),
        (wrong(period=0.001), "period is 0.001 s, but a step 0.01 s"),
        (wrong(period=0.035), "period is 0.035 s, no whole number of steps of 0.01 s; 0.04 s is one"),
        (wrong(options={"solver": "fast"}), "solver 'fast' is unknown"),
        (lambda: Press().step(np.zeros(2)), "action is .*allowed are 1 numbers from -1 to 1"),
        (lambda: Press().step(np.array([np.nan])), "action is .*allowed are 1 numbers"),
        (lambda: Press().step("up"), "action is 'up'"),
        (lambda: Press().step(np.zeros(1)), r"Press: step\(\) comes before reset\(\), which begins an episode; call"),
        (wrong(observe=lambda env, sim: None), r"observe\(\) returned None; allowed are numbers"),
        (wrong(observe=lambda env, sim: []), r"observe\(\) returned \[\]; allowed are numbers"),
        (wrong(observe=lambda env, sim: [[1.0], [1.0, 2.0]]), "allowed are numbers, e.g. a list"),
        (wrong(observe=lambda env, sim: np.zeros(1 + sim.state.step), act=True), "returned 3 numbers, but 1 at first"),
        (wrong(reward=lambda env, sim: None, act=True), r"reward\(\) returned None; allowed is a finite number"),
        (wrong(reward=lambda env, sim: np.nan, act=True), r"reward\(\) returned nan"),
    ],
)
def test_wrong_calls_are_answered_with_a_sentence(call: Any, match: str) -> None:
    with pytest.raises((fs.InputError, ContactError), match=match):
        call()


def test_without_gymnasium_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = None\ntry:\n import femsim.gym\nexcept Exception as e: print(type(e).__name__, e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stdout.strip() == 'InputError femsim.gym needs gymnasium: pip install "femsim[gym]".', done.stderr
    assert GraspBall.__doc__
