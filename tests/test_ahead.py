"""Steps that are linearised first where the velocity of the last one leads: when, what it saves, and what it does not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joined_bars import double_pendulum

import femsim as fs
from contact.solvers import make_solver
from femsim.step.newton import linearise_ahead
from femsim.step.prescribed import prescribed_velocity
from femsim.step.state import State
from femsim.step.stepper import Stepper


def sagging(integrator: str | None = None, tolerance: float | None = 1e-4) -> Stepper:
    """A soft beam that is let go: held at one face that a motion lifts, it sags and comes to rest."""
    scheme = {"theta": 1.0} if integrator is None else {"integrator": integrator}
    scene = fs.Scene("sagging", dt=0.005, nonlinear_tolerance=tolerance, **scheme)
    rubber = fs.Elastic(2e5, 0.3, 1000.0, rayleigh_beta=3e-2, law=fs.StableNeoHookean(), name="rubber")
    beam = scene.add_soft("beam", fs.box_tets((0.08, 0.02, 0.01), (8, 2, 1)), rubber)
    lift = fs.Motion([0.0, 0.1], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.01)])
    scene.hold(beam, lambda x: x[:, 0] < -0.0399, lift)
    return Stepper(scene, make_solver("exact", lag=False))


def swing(stepper: Stepper, steps: int, ahead: bool | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Contact problems of each step, and where it ended; with ``ahead`` forced where it is given."""
    solves, places = [], []
    for _ in range(steps):
        if ahead is not None:
            stepper.state = replace(stepper.state, ahead=ahead)
        report = stepper.step()
        assert report.solution.converged
        solves.append(report.solves)
        places.append(stepper.state.q.copy())
    return np.array(solves), np.array(places)


@pytest.mark.parametrize("integrator", [None, "energy-momentum"])
def test_it_saves_solves_and_leads_to_the_same_motion(integrator: str | None) -> None:
    usual, there = swing(sagging(integrator), 60)
    never, plain = swing(sagging(integrator), 60, ahead=False)
    assert usual.sum() <= never.sum() - 8
    moved = np.abs(plain - plain[0]).max()
    assert np.abs(there - plain).max() < 2e-3 * moved
    # and to the same solution of each step where that is asked for sharply
    (_, there), (_, plain) = swing(sagging(integrator, 1e-9), 20), swing(sagging(integrator, 1e-9), 20, ahead=False)
    assert np.abs(there - plain).max() < 1e-6 * moved


def test_it_begins_with_a_step_that_needs_it_and_ends_where_the_start_would_do() -> None:
    """A twin that linearises each step where it starts says whether that is enough: at rest it is, while the beam sags not."""
    stepper, twin = sagging(), sagging()
    assert not stepper.state.ahead
    seen, saved, vain = set(), 0, 0
    for _ in range(200):
        before, state = stepper.state.ahead, stepper.state.copy()
        report = stepper.step()
        now, change = stepper.state.ahead, stepper.state.v_hat - state.v_hat
        twin.restore(replace(state, ahead=False))
        enough = twin.step().solves == 1
        if report.solves == 1 and not before:
            assert not now  # linearised where it starts, and solved at once
        if not enough and np.linalg.norm(change) < 0.1 * np.linalg.norm(state.v_hat):
            assert now
        saved, vain = saved + (before and report.solves == 1 and not enough), vain + (now and enough)
        seen.add((before, now))
    assert len(seen) == 4 and not now
    assert saved > 15 and vain <= 2


def test_not_where_velocities_turn_round() -> None:
    """A stiff bar, hardly damped, whose period is a few steps: each needs several solves, and the last velocity says nothing."""
    scene = fs.Scene("ringing", dt=0.01, integrator="energy-momentum", strain_damping=0.0, gravity=(0, 0, 0))
    stiff = fs.Elastic(2e5, 0.3, 1000.0, name="stiff")
    scene.add_soft("bar", fs.box_tets((0.08, 0.02, 0.01), (4, 1, 1)), stiff, fixed=lambda x: x[:, 0] < -0.0399)
    stepper = Stepper(scene, make_solver("exact"))
    rows = stepper.state.v.reshape(-1, 3)
    rows[:] = np.random.default_rng(1).standard_normal(rows.shape) * (stepper.state.q.reshape(-1, 3)[:, :1] > -0.03)
    stepper.state.v_hat = stepper.state.v.copy()
    changes, asked = [], []
    for _ in range(20):
        velocity = stepper.state.v_hat
        assert stepper.step().solves > 1
        changes.append(np.linalg.norm(stepper.state.v_hat - velocity) / np.linalg.norm(stepper.state.v_hat))
        asked.append(stepper.state.ahead)
    assert min(changes) > 0.8 and not any(asked)


def test_one_linearisation_a_step_is_that_of_its_start() -> None:
    stepper, usual = sagging(tolerance=None), sagging(tolerance=None)
    _, forced = swing(stepper, 5, ahead=True)
    _, plain = swing(usual, 5)
    assert not usual.state.ahead and forced.tobytes() == plain.tobytes()


def test_a_state_says_whether() -> None:
    """Restored in the midst of it, a run goes on with the same bits."""
    stepper = sagging()
    while not stepper.state.ahead:
        stepper.step()
    state = stepper.state.copy()
    first = swing(stepper, 4)
    again = sagging()
    again.restore(State.from_arrays(state.arrays()))
    second = swing(again, 4)
    assert first[1].tobytes() == second[1].tobytes() and first[0].tolist() == second[0].tolist()


def test_the_place_is_the_last_velocity_with_what_is_prescribed() -> None:
    stepper = sagging()
    swing(stepper, 6)
    system, state, settings = stepper.system, stepper.state, stepper.settings
    given = prescribed_velocity(stepper.scene, system, state, settings)
    system.assemble(state, settings, given)
    assembled, b = system.A.copy(), system.b.copy()
    ahead = linearise_ahead(system, state, settings, state.v_hat, given, given, stepper.newton)
    assert ahead is not None and system.prescribed.any()
    place, free = ahead.place, ~system.prescribed
    np.testing.assert_array_equal(place[system.prescribed], given[system.prescribed])
    np.testing.assert_array_equal(place[~system.prescribed], state.v_hat[~system.prescribed])
    # A v - b about it is what the equations lack there: a force as large balances them
    lacking = system.A @ place - system.b
    assert system.residual(settings, place, np.zeros(system.n)) > 1e-6 > 1e4 * system.residual(settings, place, lacking)
    # and what forces are there beyond the linearisation of the start
    np.testing.assert_allclose((lacking - (assembled @ place - b))[free], ahead.force[free], rtol=0, atol=1e-12 * np.abs(b).max())
    assert np.abs(ahead.force[free]).max() > 1e-6 * np.abs(b).max() and ahead.rate == 0.0


def test_where_forces_are_not_finite_the_start_is_taken() -> None:
    stepper = sagging()
    swing(stepper, 2)
    system, state, settings = stepper.system, stepper.state, stepper.settings
    given = prescribed_velocity(stepper.scene, system, state, settings)
    system.assemble(state, settings, given)
    A, b = system.A.data.copy(), system.b.copy()
    with np.errstate(all="ignore"):
        assert linearise_ahead(system, state, settings, np.full(system.n, 1e200), given, given, stepper.newton) is None
    assert system.A.data.tobytes() == A.tobytes() and system.b.tobytes() == b.tobytes()


def test_what_joints_open_beyond_their_linearisation_counts() -> None:
    """Bars that swing: the opening that a velocity leads to, against what the rows at the start say of it."""
    stepper = Stepper(double_pendulum(0.01, 0.5), make_solver("exact"))
    for _ in range(20):
        stepper.step()
    system, state, settings = stepper.system, stepper.state, stepper.settings
    given = np.zeros(system.n)
    system.assemble(state, settings, given)
    rows = system.joint_rows()
    ahead = linearise_ahead(system, state, settings, state.v_hat, given, given, stepper.newton)
    assert rows is not None and ahead is not None
    said = settings.dt * (rows.G @ state.v_hat + rows.offset)
    opening = np.concatenate([system.couplings[k].opening for k in system.joints.numbers])
    assert ahead.rate == pytest.approx(np.abs(opening - said).max() / settings.dt, rel=1e-6)
    assert ahead.rate > stepper.newton.still  # so the next step is linearised ahead too
    stepper.step()
    assert stepper.state.ahead
