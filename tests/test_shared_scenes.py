"""One scene under several runs and simulations: turns, threads, states to look at, copies and pickles."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest
from small_scene import DT, STEPS, cube_scene, last_row, same

import femsim as fs
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper


def test_others_may_run_the_scene_meanwhile() -> None:
    expected = fs.Simulation(cube_scene()).step(STEPS).row()
    scene = cube_scene()
    first, second = fs.Simulation(scene), fs.Simulation(scene)
    first.step(2)
    second.step(3)
    run = fs.simulate(scene)
    assert same(last_row(run), expected)
    assert same(first.step(2).row(), expected) and same(second.step().row(), expected)


def test_what_was_commanded_outlasts_a_run_of_the_scene() -> None:
    scene = cube_scene(load=lambda t: (0, 0, 0))
    sim = fs.Simulation(scene)
    sim.set("cube.load", (0.5, 0, 0))
    expected = sim.fork().step(STEPS).row()
    assert not same(last_row(fs.simulate(scene)), expected)
    assert same(sim.step(STEPS).row(), expected)


@pytest.mark.parametrize("copies", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_simulation_is_forked_not_copied(copies: Callable[[Any], Any]) -> None:
    """A copy stood at the start, and stepped the bodies of the other."""
    sim = fs.Simulation(cube_scene())
    with pytest.raises(fs.InputError, match=r"cannot be copied or pickled; fork\(\) makes a twin"):
        copies(sim)


def test_a_scene_is_copied_also_after_a_run() -> None:
    """The stepper of the run had been copied with it, which cannot be."""
    scene = cube_scene()
    first = fs.simulate(scene)
    again = fs.simulate(copy.deepcopy(scene))
    for name, series in first.sensors.items():
        np.testing.assert_array_equal(again.sensors[name].force, series.force)


def pulled_down(_: float) -> tuple[float, float, float]:
    return 0.0, 0.0, -0.01


def turned(_: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return (0.0, 0.0, 0.0), (0.0, 0.0, 1e-5)


def test_a_scene_is_pickled_with_its_loads() -> None:
    """Soft bodies and loads held functions that cannot be: an error of Python about a local object."""
    scene = cube_scene()
    scene.add_soft("soft", fs.box_tets((0.02,) * 3, 1), "ecoflex_00_50", position=(1.0, 0.0, 0.01), load=pulled_down)
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1, position=(2.0, 0.0, 1.0), load=turned)
    again = pickle.loads(pickle.dumps(scene))
    assert fs.Simulation(again).step(2).state == fs.Simulation(scene).step(2).state


@pytest.mark.parametrize("copies", [copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])
def test_a_run_is_copied_and_pickled(copies: Callable[[fs.Run], fs.Run]) -> None:
    """It held the simulation at its end, with libraries that cannot be: an error of ctypes."""
    run = fs.simulate(cube_scene())
    again = copies(run)
    assert again.summary() == run.summary() and same(last_row(again), last_row(run))
    with pytest.raises(fs.InputError, match="the run is a copy, which has tables"):
        _ = again.stepper
    assert run.stepper.state.step == STEPS


def test_threads_that_step_a_simulation_and_its_fork_wait_for_each_other() -> None:
    """They moved the shared bodies at once: of 20 steps each they counted 10 and 9, to wrong places."""
    alone = fs.Simulation(cube_scene()).step(21)
    sim = fs.Simulation(cube_scene()).step()
    twins = [sim, sim.fork()]
    threads = [Thread(target=lambda one=one: [one.step() for _ in range(20)]) for one in twins]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert all(twin.state == alone.state for twin in twins)


def test_threads_that_run_a_scene_and_step_a_simulation_of_it_take_turns() -> None:
    """They moved the shared bodies at once, and so did a simulation that on_step stepped: other numbers, called good."""

    def loaded() -> fs.Scene:
        scene = cube_scene()
        scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1, position=(1.0, 0.0, 1.0), load=lambda t: ((0, 0, 1), (0, 0, 0)))
        return scene

    def pulled(scene: fs.Scene) -> fs.Simulation:
        sim = fs.Simulation(scene)
        sim.set("ball.load", ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
        return sim

    alone, run_alone = pulled(loaded()).step(20).state, fs.Simulation(loaded()).step(20).state
    assert alone != run_alone
    for in_thread in (True, False):
        scene, states = loaded(), []
        sim = pulled(scene)

        def on_step(stepper: Stepper, _: StepReport, sim: fs.Simulation | None = None if in_thread else sim) -> None:
            if sim is not None:
                sim.step()
            states.append(stepper.state)  # noqa: B023

        run = Thread(target=lambda scene=scene, on_step=on_step: fs.simulate(scene, duration=20 * DT, on_step=on_step))  # type: ignore[misc]
        run.start()
        if in_thread:
            sim.step(20)
        run.join(60.0)
        assert sim.state == alone and states[-1] == run_alone, in_thread


def test_a_state_is_to_look_at() -> None:
    """What was written into it moved bodies half: contacts, work and the verdict did not know."""
    sim = fs.Simulation(cube_scene()).step(2)
    before = sim.state.copy()
    saved = sim.save()
    for state in (sim.state, saved.state):
        for write in (lambda state: state.q.fill(5.0), lambda state: state.v.__setitem__(0, 5.0)):
            with pytest.raises(ValueError, match="read-only"):
                write(state)
        with pytest.raises(AttributeError, match=r"q of the state of a simulation cannot be set, .* state\.copy\(\) is yours"):
            state.q = before.q
    for own in (before, copy.deepcopy(sim.state), pickle.loads(pickle.dumps(saved.state))):
        own.q[0] += 1.0
    after = sim.step().state
    sim.restore(saved)
    assert sim.step().state == after and sim.state.q is not after.q


def test_a_function_of_the_scene_takes_no_step() -> None:
    """It recursed until Python had enough."""
    scene = fs.Scene("inside", dt=DT, duration=1.0)
    others: list[fs.Simulation] = []

    def load(t: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        for other in others:
            other.step()
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)

    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, load=load)
    sim = fs.Simulation(scene).step()
    others.append(sim.fork())
    with pytest.raises(fs.InputError, match="step: a step of 'inside' is being taken or made ready, and a function of"):
        sim.step()
    others.clear()
    assert sim.step().state.step == 2
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1, position=(1.0, 0.0, 0.0), load=lambda t: fs.simulate(scene))
    with pytest.raises(fs.InputError, match="begin: a step of 'inside' is being taken or made ready"):
        fs.simulate(scene)
