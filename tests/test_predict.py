"""Where a step is thought to lead: by the velocities of the steps before it, and by which of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import femsim as fs
from contact.solvers import make_solver
from femsim.step.advance import take_step
from femsim.step.predict import predicted, remembered
from femsim.step.state import State
from femsim.step.stepper import Stepper

DT = 0.01
WEIGHT = np.array([1.0, 2.0])


def after(velocities: list[np.ndarray]) -> State:
    """State after steps of the same length with these representative velocities."""
    state = State(np.zeros(2), np.zeros(2), 0.0)
    for v in velocities:
        state = replace(state, v_hat=v, dt=DT, before=remembered(state, DT))
    return state


def curve(*coefficients: float) -> list[np.ndarray]:
    """Velocities at the times 0 to 5, by powers of the time."""
    return [np.array([sum(c * t**k for k, c in enumerate(coefficients)), 1.0]) for t in range(6)]


@pytest.mark.parametrize("coefficients", [(2.0,), (2.0, -1.0), (2.0, -1.0, 0.3)])
def test_smooth_motion_is_continued_exactly(coefficients: tuple[float, ...]) -> None:
    *known, truth = curve(*coefficients)
    np.testing.assert_allclose(predicted(after(known), DT, WEIGHT), truth, rtol=1e-12)


def test_a_jump_leaves_the_last_velocity() -> None:
    known = curve(2.0, -1.0)[:5]
    known[-1] = np.array([5.0, 1.0])
    np.testing.assert_array_equal(predicted(after(known), DT, WEIGHT), known[-1])
    # not on a row that does not count
    straight = predicted(after(known), DT, np.array([0.0, 2.0]))
    assert straight[1] == pytest.approx(1.0)
    shaking = [np.array([(-1.0) ** k, 1.0]) for k in range(5)]
    np.testing.assert_array_equal(predicted(after(shaking), DT, WEIGHT), shaking[-1])


def test_rest_stays_rest() -> None:
    creeping = [np.array([1e-17 * k, 0.0]) for k in range(5)]
    np.testing.assert_array_equal(predicted(after(creeping), DT, WEIGHT, still=1e-9), creeping[-1])
    assert predicted(after(creeping), DT, WEIGHT)[0] == pytest.approx(5e-17)


def test_as_many_as_are_known() -> None:
    velocities = curve(2.0, -1.0, 0.3)
    for k in range(1, 6):
        state = after(velocities[:k])
        assert len(state.before) == min(k - 1, 3)
        np.testing.assert_array_equal(state.before, velocities[:k][-2::-1][:3] if k > 1 else np.zeros((0, 2)))
    assert predicted(after(velocities[:2]), DT, WEIGHT).tolist() == velocities[1].tolist()


def test_steps_of_another_length_say_nothing() -> None:
    state = after(curve(2.0, -1.0)[:5])
    np.testing.assert_array_equal(predicted(state, 0.5 * DT, WEIGHT), state.v_hat)
    assert remembered(state, 0.5 * DT).shape == (0, 2)


def test_what_is_not_finite_is_not_continued() -> None:
    known = curve(2.0, -1.0)[:5]
    known[0] = np.array([np.nan, 1.0])
    assert np.isfinite(predicted(after(known), DT, WEIGHT)).all()


def swinging(tolerance: float | None = 1e-4) -> Stepper:
    """A cable that swings from one end."""
    scene = fs.Scene("cable", dt=0.001, nonlinear_tolerance=tolerance)
    line = np.linspace(0.0, 1.0, 33)[:, None] * [0.4, 0.0, 0.0]
    rubber = fs.Elastic(2.954e6, 0.49, 1259.0, rayleigh_beta=1e-3, name="cable")
    scene.add_rod("cable", line, fs.circular_section(0.002), rubber, start=fs.RodEnd("clamped"))
    return Stepper(scene, make_solver("banded"))


def test_it_saves_solves_and_leads_to_the_same_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    def swing() -> tuple[int, np.ndarray]:
        stepper, solves = swinging(), 0
        for _ in range(80):
            report = take_step(stepper)
            assert report.solution.converged
            solves += report.solves
        return solves, stepper.state.q

    usual, there = swing()
    monkeypatch.setattr("femsim.step.stepper.predicted", lambda state, *_: state.v_hat)
    plain, where = swing()
    assert usual <= 0.75 * plain
    np.testing.assert_allclose(there, where, rtol=0, atol=1e-6)


def test_one_linearisation_a_step_starts_at_the_last_velocity(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in papers/001."""
    monkeypatch.setattr("femsim.step.stepper.predicted", None)
    stepper = swinging(None)
    assert [stepper.step().solves for _ in range(3)] == [1, 1, 1]


def test_a_state_that_is_restored_goes_on_with_the_same_bits() -> None:
    stepper = swinging()
    for _ in range(7):
        stepper.step()
    state = stepper.state.copy()
    assert len(state.before) == 3
    ends = []
    for _ in range(2):
        for _ in range(4):
            stepper.step()
        ends.append(stepper.state.q.tobytes())
        stepper.restore(State.from_arrays(state.arrays()))
    assert ends[0] == ends[1]
