"""Steps that cannot be solved: what is put back, what the halves give, what is reported; large deformation and inversion.

Over 600 lines: all of them plant failures by the same solver and scenes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hollow_boxes import hollow_box
from small_scene import DT, STEPS, cube_scene

import femsim as fs
from contact import ContactError, ContactProblem, Solution, Solver, WarmStart, make_solver
from contact.solvers.exact import Exact, ExactOptions
from femsim.model.actuators import Chamber, Tendon
from femsim.model.bodies.soft import SoftBody
from femsim.model.couplings import CouplingDefaults
from femsim.run.sensors import sensor_columns
from femsim.step.advance import newly_inside_out, take_step
from femsim.step.measure import measure
from femsim.step.report import StepReport
from femsim.step.state import VERSION, State
from femsim.step.stepper import Stepper
from femsim.step.system import System
from femsim.studies.sweeps.metrics import parse_metric

RUBBER = fs.Elastic(1e5, 0.3, 1000.0, rayleigh_beta=1e-3, name="rubber")
CABLE = fs.Elastic(1e6, 0.4, 1200.0, rayleigh_beta=1e-3, name="cable")
G = 9.81


class Exacting:
    """The exact solver without memory, so that equal problems give equal bits; ``spoils`` says what a solve is to give."""

    description = "planted"

    def __init__(self, spoils: Callable[[ContactProblem], str | None] = lambda problem: None) -> None:
        self._solver, self._spoils = Exact(ExactOptions(tolerance=1e-10, lag=False)), spoils
        self.calls: list[float] = []

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        self.calls.append(problem.dt)
        how = self._spoils(problem)
        if how == "raises":
            raise ContactError("planted")
        solution = self._solver.solve(problem, warm_start)
        if how is None:
            return solution
        solution = replace(solution, residuals=None)  # what is planted was not judged
        if how == "nan":
            v = np.full_like(solution.v, np.nan)
            return replace(solution, v=v, lam=np.full_like(solution.lam, np.nan), status="failed", message="Planted NaN.")
        if how == "failed":
            return replace(solution, status="failed", message="Planted failure.")
        return replace(solution, v=0.9 * solution.v, lam=0.5 * solution.lam, status="stopped at the limit", message="Planted.")


def planted(how: str, longest: float) -> Callable[[ContactProblem], str | None]:
    """Spoil every step longer than this, s."""
    return lambda problem: how if problem.dt > 1.0001 * longest else None


def joined_scene() -> fs.Scene:
    """Each thing with a memory: soft bodies of two laws that touch, a rod that bodies hold, a gripper, a pump and a tendon."""
    scene = fs.Scene("joined", dt=0.01, duration=0.05, theta=1.0)
    scene.add_floor()
    block = fs.box_tets((0.06, 0.06, 0.03), (3, 3, 2))
    low = scene.add_soft("low", block, RUBBER, position=(0, 0, 0.015))
    law = replace(RUBBER, law=fs.StableNeoHookean())
    scene.add_soft("high", block, law, position=(0.004, 0.006, 0.0451), rotation=(0, 0, 0.4), velocity=(0.1, 0, -0.3))
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0.12, 0, 0.05), velocity=(0, 0.1, 0))
    x = np.linspace(0.03, 0.1, 9)
    points = np.column_stack([x, 0 * x, 0.012 + (x - 0.03) * 0.03 / 0.07])
    ends = fs.RodEnd("clamped", on=low), fs.RodEnd("hinged", on="box")
    scene.add_rod("rod", points, fs.circular_section(0.003), CABLE, start=ends[0], end=ends[1], translational_damping=0.1)
    arm = scene.add_rigid("arm", fs.Box((0.01, 0.01, 0.01)), mass=0.2, position=(-0.1, 0, 0.1))
    scene.drive(arm, fs.Motion([0.0, 0.1], [(0, 0, 0), (0, 0, 0.02)], [(0, 0, 0), (0, 0.3, 0)]))
    hollow = scene.add_soft("hollow", hollow_box(), RUBBER, position=(-0.1, 0.1, 0.015), velocity=(0, 0.2, 0))
    pump = scene.pressurize(hollow, volume=lambda t: 1e-6 * (1.0 + 2.0 * t), bulk=1e5, name="pump")
    tendon = scene.add_tendon(hollow, [(-0.112, 0.11, 0.025), (-0.088, 0.11, 0.025)], pull=lambda t: 0.02 * t, name="tendon")
    for name in ("low", "hollow"):
        scene.sensor(name, name)
    scene.sensor("low on floor", "low", partner="floor", where=lambda x: x[:, 0] < 0.01)
    scene.sensor("sliding", "hollow", kind="slip")
    scene.sensor("area", "low", kind="area")
    scene.sensor("energy", "high", kind="energy")
    scene.sensor("pump", pump, kind="chamber")
    scene.sensor("tendon", tendon, kind="tendon")
    scene.sensor("start", "rod", kind="start")
    scene.sensor("wrist", "arm", kind="mount")
    scene.sensor("middle", "rod", kind="marker", node=4)
    return scene


def numbers(report: StepReport) -> dict[str, np.ndarray]:
    """All that a report says but times, by name."""
    names = ("step", "time", "max_penetration", "max_slip", "kinetic_energy", "elastic_energy", "work", "momentum")
    names += ("wrench_balance", "inverted_elements", "potential_energy", "friction_loss")
    found = {name: getattr(report, name) for name in names}
    found |= {f"solution {name}": getattr(report.solution, name) for name in ("v", "lam", "iterations")}
    found |= {f"metrics {name}": value for name, value in vars(report.metrics).items()}
    found |= {f"forces {name}": value for name, value in vars(report.forces).items() if name != "contacts"}
    found |= {f"contacts {name}": value for name, value in vars(report.contacts).items()}
    found |= {f"mount {name}": value for name, value in report.mount.items()}
    found |= {f"acted {thing} {name}": value for thing, named in report.acted.items() for name, value in named.items()}
    return {name: np.array(value) for name, value in found.items()}


def bits(stepper: Stepper, report: StepReport) -> dict[str, np.ndarray]:
    """All that is there after a step, by name."""
    assert stepper.problem is not None
    found = stepper.state.arrays() | numbers(report)
    found |= {"A": stepper.problem.A.data, "b": stepper.problem.b, "phi": stepper.problem.phi}
    found |= {f"placed {name}": value for name, value in vars(stepper.placed).items() if name != "rigid"}
    for k, coupling in enumerate(stepper.system.couplings):
        found[f"coupling {k}"] = np.concatenate(coupling.forces)
        found[f"power {k}"] = np.array(coupling.power)
    for k, body in enumerate(stepper.system.bodies):
        for name in ("end_frames", "end_wrench", "internal_force", "_quaternion", "_rotated", "strain", "joint_force"):
            if hasattr(body, name):
                found[f"body {k} {name}"] = getattr(body, name)
    return {name: np.array(value) for name, value in found.items()}


def assert_same_bits(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    assert list(a) == list(b)
    for name, value in a.items():
        np.testing.assert_array_equal(value, b[name], err_msg=name)


def steps_of(stepper: Stepper, sizes: list[float]) -> list[StepReport]:
    """Take steps of given lengths, s."""
    reports = []
    for dt in sizes:
        stepper.settings = replace(stepper.settings, dt=dt)
        reports.append(stepper.step())
    return reports


def simulate_with(solver: Solver, monkeypatch: pytest.MonkeyPatch, scene: fs.Scene, **options: Any) -> fs.Run:
    with monkeypatch.context() as patch:
        patch.setattr("femsim.run.simulate.make_solver", lambda name, **chosen: solver)
        return fs.simulate(scene, **options)


# ------------------------------------------------------------------ what is put back


@pytest.mark.parametrize("done", [0, 3])
def test_what_is_put_back_is_what_was_there_to_the_last_bit(done: int) -> None:
    stepper = Stepper(joined_scene(), Exacting())
    for _ in range(done):
        stepper.step()
    before = stepper.state
    kept = before.copy()
    there = bits(stepper, stepper.step())
    assert len(there["contacts/1/keys"]) > 0 and len(stepper.system.couplings) == 4
    if done:
        assert there["contacts/0/forces"].any() and there["coupling 0"].any() and there["body 2 joint_force"].size == 0
    for _ in range(2):  # a state serves more than once
        stepper.restore(before)
        for report in steps_of(stepper, [0.003, 0.001]):
            assert report.finite
        assert not np.array_equal(stepper.state.q, there["q"])
        assert before == kept  # nobody writes into a state
        stepper.restore(before)
        (again,) = steps_of(stepper, [0.01])
        assert_same_bits(bits(stepper, again), there)
    after = stepper.state
    ahead = bits(stepper, stepper.step())
    stepper.restore(after)
    assert_same_bits(bits(stepper, stepper.step()), ahead)


def carried_scene(seed: int) -> fs.Scene:
    """A gripper that closes on a soft block and drags a rod by a finger; a hollow body with a pump and a tendon; at random."""
    rng = np.random.default_rng(seed)
    scene = fs.Scene("carried", dt=0.005, duration=0.05, theta=1.0)
    scene.add_floor()
    block = fs.box_tets((0.02, 0.02, 0.03), (2, 2, 2))
    law = replace(RUBBER, law=fs.StableNeoHookean()) if seed % 2 else RUBBER
    scene.add_soft("block", block, law, position=(0, 0, 0.0149), velocity=0.1 * rng.standard_normal(3))
    pad = fs.Box((0.005, 0.02, 0.02))
    fingers = [
        fs.Finger(name, pad, offset=(side * 0.0152, 0, -0.05), closing=(-side, 0, 0), mass=0.05)
        for name, side in (("left", -1), ("right", 1))
    ]
    hand = scene.add_gripper("hand", fingers, mass=0.3, position=(0, 0, 0.07))
    scene.drive("hand", fs.Motion([0.0, 0.1], [(0, 0, 0), 0.02 * rng.random(3)], [(0, 0, 0), 0.2 * rng.standard_normal(3)]))
    scene.drive(hand, fingers=True, force=lambda t: 2.0 + 20.0 * t)
    x = np.linspace(0.0202, 0.08, 9)
    points = np.column_stack([x, 0 * x, np.full(9, 0.02)])
    scene.add_rod("rod", points, fs.circular_section(0.002), CABLE, start=fs.RodEnd("clamped", on="hand.right"))
    hollow = scene.add_soft("hollow", hollow_box(), RUBBER, position=(-0.1, 0.1, 0.015), velocity=0.2 * rng.standard_normal(3))
    scene.pressurize(hollow, volume=lambda t: 1e-6 * (1.0 + 2.0 * t), bulk=1e5, name="pump")
    scene.add_tendon(hollow, [(-0.112, 0.11, 0.025), (-0.088, 0.11, 0.025)], pull=lambda t: 0.02 * t, name="tendon")
    return scene


@pytest.mark.parametrize("seed", [1, 2])
def test_a_state_goes_on_in_another_process_to_the_last_bit(seed: int, tmp_path: Path) -> None:
    """Saved after five steps; five more; a fresh simulation that reads the file takes the same five, with the same reports."""
    stepper = Stepper(carried_scene(seed), Exacting())
    for _ in range(5):
        report = stepper.step()
        placed = stepper.contacts.places.read(stepper.state)  # at the end, where the fingers have got to
        assert report.max_penetration == stepper.contacts.max_penetration(stepper.state, placed)
        np.testing.assert_array_equal(stepper.placed.rotation, placed.rotation)
        np.testing.assert_array_equal(stepper.placed.translation, placed.translation)
    assert (
        report.max_penetration > 0.0
        and len(report.contacts.gap) > 8
        and report.contacts.force.any()
        and len(stepper.system.couplings) == 3
    )
    stepper.state.sensors["sum"] = np.array([0.25])
    stepper.state.save(tmp_path / "state.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]
    wanted = [bits(stepper, stepper.step()) for _ in range(5)]
    fresh = Stepper(carried_scene(seed), Exacting())
    fresh.restore(State.load(tmp_path / "state.npz"))
    for step in wanted:
        assert_same_bits(bits(fresh, fresh.step()), step)
    assert fresh.state == stepper.state and fresh.state.sensors == stepper.state.sensors
    assert not stepper.state.differences(fresh.state)


def test_a_speed_beyond_that_of_light_is_no_answer() -> None:
    """What is looked for so far away divides by zero; the step has failed, whatever its residuals say."""
    stepper = Stepper(cube_scene(), Exacting())
    stepper.state.v[:] = 1e9
    with pytest.raises(ContactError, match=r"lead to a speed of .*e\+09 m/s or rad/s; take a smaller dt"):
        take_step(stepper, 2)


def test_a_state_knows_its_energy() -> None:
    """At the start, where asking for it is no step, and after a step."""
    scene = cube_scene()
    stepper = Stepper(scene, Exacting())
    first = stepper.state.copy()
    assert stepper.state.energy == stepper.system.energy(stepper.state) and stepper.state == first
    report = stepper.step()
    assert stepper.state.energy == report.kinetic_energy + report.elastic_energy > 0.0


def test_a_step_passes_on_what_it_does_not_change() -> None:
    stepper = Stepper(cube_scene(), Exacting())
    stepper.state = replace(stepper.state, halving_is_vain=True, sensors={"sum": np.array(0.25)})
    stepper.step()
    assert stepper.state.halving_is_vain and stepper.state.sensors == {"sum": np.array(0.25)}


def test_couplings_are_put_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before the next step a pump says its volume and a tendon its length, and each got what it remembered."""
    recalled: list[tuple[str, float]] = []
    for kind in (CouplingDefaults, Chamber, Tendon):
        monkeypatch.setattr(kind, "memory", lambda self: {"work": np.array(self.power)})
        monkeypatch.setattr(kind, "recall", lambda self, memory: recalled.append((self.name, float(memory["work"]))))
    stepper = Stepper(joined_scene(), Exacting())
    for _ in range(2):
        stepper.step()
    before, couplings = stepper.state, stepper.system.couplings
    sizes = [coupling.reading()[1:] for coupling in couplings]
    powers = [(coupling.name, coupling.power) for coupling in couplings]
    stepper.step()
    assert [coupling.reading()[1:] for coupling in couplings] != sizes and not recalled
    stepper.restore(before)
    assert (
        [coupling.reading()[1:] for coupling in couplings] == sizes and recalled == powers and any(power for _, power in powers)
    )


def test_states_are_equal_by_their_bits() -> None:
    state = Stepper(joined_scene(), Exacting()).state
    other = state.copy()
    assert state == other and state.differences(other) == []
    other.v[0] = -0.0 if state.v[0] == 0.0 else -state.v[0]
    other.bodies[0]["rotations"][0] = np.nextafter(other.bodies[0]["rotations"][0], 2.0)
    assert state != other and state.differences(other) == ["body/0/rotations", "v"]


def test_files_that_are_no_state_of_the_scene_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    with pytest.raises(fs.InputError, match=r"state\.npz: cannot be read as the state of a simulation"):
        State.load(path)
    path.write_text("not this")
    with pytest.raises(fs.InputError, match="cannot be read as the state"):
        State.load(path)
    np.savez(path, q=np.zeros(3))
    with pytest.raises(fs.InputError, match=f"holds none of femsim's states; this femsim reads version {VERSION}"):
        State.load(path)
    np.savez(path, version=np.array(VERSION + 1))
    with pytest.raises(fs.InputError, match=f"holds version {VERSION + 1} of femsim's states"):
        State.load(path)
    with pytest.raises(fs.InputError, match=r"scene 'joined' has .* Restore a state of this scene"):
        Stepper(joined_scene(), Exacting()).restore(Stepper(cube_scene(), Exacting()).state)


def test_measuring_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured twice, a step reports the same, and no state has changed."""
    measured = 0

    def twice(scene: fs.Scene, system: System, *step: Any) -> StepReport:
        nonlocal measured
        old, new = step[4], step[5]
        before = old.copy(), system.remember(new).copy()
        first = measure(scene, system, *step)
        assert (old, system.remember(new)) == before
        assert_same_bits(numbers(measure(scene, system, *step)), numbers(first))
        assert (old, system.remember(new)) == before
        measured += 1
        return first

    monkeypatch.setattr("femsim.step.stepper.measure", twice)
    stepper, plain = Stepper(joined_scene(), Exacting()), Stepper(joined_scene(), Exacting())
    for _ in range(3):
        report = stepper.step()
    monkeypatch.undo()
    for _ in range(3):
        wanted = plain.step()
    assert measured == 3 and stepper.state == plain.state
    assert_same_bits(numbers(report), numbers(wanted))


def test_nothing_changes_where_no_step_is_halved() -> None:
    with_halves, without = (fs.simulate(joined_scene(), max_halvings=n) for n in (6, 0))
    assert with_halves.status == "converged" and with_halves.message == without.message
    for name, column in with_halves.table().items():
        if not name.startswith("ms_"):
            np.testing.assert_array_equal(column, without.table()[name], err_msg=name)
    assert (with_halves.steps["substeps"] == 1).all() and with_halves.info["health"]["halved_steps"] == 0
    assert "halved" not in with_halves.summary()


# ------------------------------------------------------------------ what the halves give


@pytest.mark.parametrize("how", ["raises", "nan", "failed", "not converged"])
def test_a_run_whose_long_steps_fail_is_the_run_with_short_steps(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulate_with(Exacting(planted(how, 0.0025)), monkeypatch, joined_scene())
    fine = simulate_with(Exacting(), monkeypatch, joined_scene(), dt=0.0025)
    assert run.status == fine.status == "converged"
    assert run.message.endswith("Taken in sub-steps: 5 of 5, first step 1.")
    assert (run.steps["substeps"] == 4).all() and len(fine.steps["step"]) == 20
    np.testing.assert_allclose(run.stepper.state.q, fine.stepper.state.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.stepper.state.v, fine.stepper.state.v, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(run.steps["time_s"], np.cumsum(np.full(5, 0.01)))

    def by_four(column: np.ndarray) -> np.ndarray:
        return column.reshape(5, 4, *column.shape[1:])

    # sensors: what acted is the mean over the step, all else what is there at its end
    columns = {name: by_four(values) for name, values in fine.table().items() if name not in fine.steps}
    with_header = sensor_columns(fine.stepper.scene)
    assert sorted(["time_s", *columns]) == sorted(with_header)
    for name, values in columns.items():
        acts = name.endswith(("_N", "_Nm", "_Pa"))
        wanted = values.mean(axis=1) if acts else values[:, -1]
        np.testing.assert_allclose(run.table()[name], wanted, rtol=0, atol=1e-10 if name.endswith("_Pa") else 1e-12, err_msg=name)
        if not name.startswith("wrist"):  # it is only lifted and turned about y
            assert np.abs(wanted).max() > 1e-9, name
        if acts and name.endswith("z_N"):
            assert np.ptp(values, axis=1).max() > 1e-6, name  # the mean is something else than the end
    for name in ("kinetic_energy_J", "elastic_energy_J", "work_J", "max_penetration_m", "contacts", "momentum_z_kgmps"):
        np.testing.assert_allclose(run.steps[name], by_four(fine.steps[name])[:, -1], rtol=1e-9, atol=1e-14, err_msg=name)
    for name in ("dynamics_residual", "contact_residual", "wrench_balance", "max_slip_mps"):
        # residuals are rounding: the same solves give the same bits, but for the time that is summed differently
        np.testing.assert_allclose(run.steps[name], by_four(fine.steps[name]).max(axis=1), rtol=1e-2, atol=1e-10, err_msg=name)
    assert run.steps["iterations"].sum() == fine.steps["iterations"].sum()


def test_only_the_step_that_fails_is_halved_and_only_the_half_that_fails_again() -> None:
    """The second step fails, then its second half: the step sizes are 10, 5, 2.5, 2.5, 10, 10 ms."""
    failing = {2: DT, 4: 0.5 * DT}  # by the number of the solve: 10, (10), 5, (5), 2.5, 2.5, 10, 10
    solver = Exacting(lambda problem: "nan" if len(solver.calls) in failing else None)
    stepper = Stepper(cube_scene(nonlinear_tolerance=None), solver)
    reports = [take_step(stepper, 6) for _ in range(STEPS)]
    half, quarter = 0.5 * DT, 0.25 * DT
    assert solver.calls == [DT, DT, half, half, quarter, quarter, DT, DT]
    assert [len(report.parts) for report in reports] == [1, 3, 1, 1] and [report.step for report in reports] == [1, 2, 3, 4]
    by_hand = Stepper(cube_scene(nonlinear_tolerance=None), Exacting())
    wanted = steps_of(by_hand, [DT, half, quarter, quarter, DT, DT])
    np.testing.assert_allclose(stepper.state.q, by_hand.state.q, rtol=0, atol=1e-15)
    weights = np.array([0.5, 0.25, 0.25])
    mount = sum(w * report.mount["box"] for w, report in zip(weights, wanted[1:4], strict=True))
    np.testing.assert_allclose(reports[1].mount["box"], mount, rtol=1e-12, atol=1e-15)
    assert reports[1].solution.message.startswith("The step was taken in 3 sub-steps. Converged in ")
    assert stepper.settings.dt == DT and stepper.state.t == pytest.approx(STEPS * DT, abs=1e-15)


def test_a_law_that_gives_nan_once_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, latest = [0], [np.zeros(0)]

    def update(self: SoftBody, q: np.ndarray) -> None:
        known = np.array_equal(q, latest[0])
        original(self, q)
        latest[0] = q.copy()
        asked[0] += not known
        if not known and asked[0] == 3:  # that of the end of the second step
            self.internal_force[4], self._energy = np.nan, np.nan

    original = SoftBody.update_elements
    monkeypatch.setattr(SoftBody, "update_elements", update)
    failed = simulate_with(Exacting(), monkeypatch, cube_scene(nonlinear_tolerance=None), max_halvings=0)
    assert failed.status == "failed" and failed.message.startswith("Step 2 at 0.0200 s failed: ")
    asked[0] = 0
    run = simulate_with(Exacting(), monkeypatch, cube_scene(nonlinear_tolerance=None))
    assert run.status == "converged" and run.steps["substeps"].tolist() == [1, 2, 1, 1]
    by_hand = Stepper(cube_scene(nonlinear_tolerance=None), Exacting())
    steps_of(by_hand, [DT, 0.5 * DT, 0.5 * DT, DT, DT])
    np.testing.assert_allclose(run.stepper.state.q, by_hand.state.q, rtol=0, atol=1e-12)


def test_a_step_that_is_not_finite_may_end_as_one_that_is_not_converged(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoils(problem: ContactProblem) -> str:
        return "nan" if problem.dt > 0.6 * DT else "not converged"

    run = simulate_with(Exacting(spoils), monkeypatch, cube_scene(nonlinear_tolerance=None), max_halvings=2)
    assert run.status == "not converged" and (run.steps["substeps"] == 2).all() and not run.steps["converged"].any()
    assert np.isfinite(run.stepper.state.q).all()
    # without smaller steps there is nothing to go on with
    assert simulate_with(Exacting(spoils), monkeypatch, cube_scene(nonlinear_tolerance=None), max_halvings=0).status == "failed"


# ------------------------------------------------------------------ where halving does not help


def test_a_solver_that_never_converges_costs_little_and_gives_what_it_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Exacting(lambda problem: "not converged")
    reports: list[StepReport] = []

    def keep(stepper: Stepper, report: StepReport) -> None:
        reports.append(report)

    run = simulate_with(solver, monkeypatch, cube_scene(nonlinear_tolerance=None), max_halvings=3, on_step=keep)
    # once down to an eighth, and then no more
    assert [round(DT / dt) for dt in solver.calls] == [1, 2, 4, 8, 1, 1, 1]
    assert run.status == "not converged" and (run.steps["substeps"] == 1).all() and not run.steps["converged"].any()
    assert run.message.startswith("4 of 4 steps stopped at the iteration limit, first step 1;") and "sub-steps" not in run.message
    plain = simulate_with(
        Exacting(lambda problem: "not converged"), monkeypatch, cube_scene(nonlinear_tolerance=None), max_halvings=0, on_step=keep
    )
    after, wanted = bits(run.stepper, reports[3]), bits(plain.stepper, reports[-1])
    assert after.pop("halving_is_vain") and not wanted.pop("halving_is_vain")
    assert_same_bits(after, wanted)
    for name, column in run.table().items():
        if not name.startswith("ms_"):
            np.testing.assert_array_equal(column, plain.table()[name], err_msg=name)


def test_halving_is_tried_again_after_a_step_that_is_solved() -> None:
    bad = {1, 2, 3, 4, 6, 7}  # step 1: solves 1 to 3 in vain; step 2: as it comes; step 3: solve 5; step 4: solve 6 and 7
    solver = Exacting(lambda problem: "not converged" if len(solver.calls) in bad else None)
    stepper = Stepper(cube_scene(nonlinear_tolerance=None), solver)
    reports = [take_step(stepper, 2) for _ in range(4)]
    assert [round(DT / dt) for dt in solver.calls] == [1, 2, 4, 1, 1, 1, 2, 4, 4, 2]
    assert [report.solution.converged for report in reports] == [False, False, True, True]
    assert [len(report.parts) for report in reports] == [1, 1, 1, 3]


def test_halving_is_tried_again_after_a_step_that_halves_have_saved() -> None:
    how = {1: "not converged", 2: "not converged", 3: "nan", 6: "not converged"}  # by the number of the solve
    solver = Exacting(lambda problem: how.get(len(solver.calls)))
    stepper = Stepper(cube_scene(nonlinear_tolerance=None), solver)
    vain = []
    for _ in range(3):  # in vain; NaN, so tried all the same; and now again
        take_step(stepper, 1)
        vain.append(stepper.state.halving_is_vain)
    assert vain == [True, False, False]
    assert [round(DT / dt) for dt in solver.calls] == [1, 2, 1, 2, 2, 1, 2, 2]


def test_numbers_that_stay_none_end_the_run_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Exacting(lambda problem: "raises" if len(solver.calls) > 2 else None)
    run = simulate_with(
        solver, monkeypatch, cube_scene(nonlinear_tolerance=None), max_halvings=2, out=tmp_path / "run", dump_problems=(2, 3)
    )
    assert run.status == "failed" and run.message == "Step 3 at 0.0300 s failed: planted"
    assert len(run.steps["step"]) == 2 and run.stepper.state.step == 2 and len(solver.calls) == 5


@pytest.mark.parametrize(("how", "words"), [("nan", "detect: points[0] is [nan, nan, nan]"), ("failed", "Planted failure.")])
def test_and_say_what_they_said(how: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Exacting(lambda problem: how if len(solver.calls) > 2 else None)
    run = simulate_with(solver, monkeypatch, cube_scene(nonlinear_tolerance=None), max_halvings=2)
    assert run.status == "failed" and run.message.startswith(f"Step 3 at 0.0300 s failed: {words}")
    assert len(run.steps["step"]) == 2 and len(solver.calls) == 5


# ------------------------------------------------------------------ what is said


def test_words_and_numbers_of_halved_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Exacting(lambda problem: "nan" if len(solver.calls) in (2, 3, 7) else None)
    run = simulate_with(solver, monkeypatch, cube_scene(nonlinear_tolerance=None), out=tmp_path / "run", dump_problems=(2, 2))
    assert run.steps["substeps"].tolist() == [1, 3, 2, 1]
    assert run.message == "All 4 steps converged by true residuals. Taken in sub-steps: 2 of 4, first step 2."
    assert "halved steps       2, into 2 to 3 sub-steps (most, step 2 at 0.020 s)" in run.summary().splitlines()
    health = run.info["health"]
    assert (health["halved_steps"], health["most_substeps"]) == (2, 3) and run.info["settings"]["max_halvings"] == 6
    assert parse_metric("max(substeps)").value(run.table()) == 3.0
    # the problem of a step that was halved is that of its last part
    assert fs.read_fclib(tmp_path / "run" / "problems" / "step_00002.hdf5").problem.dt == 0.5 * DT
    assert sorted(path.suffix for path in (tmp_path / "run").iterdir() if path.is_file()) == [".csv", ".csv", ".json", ".pvd"]


@pytest.mark.parametrize("value", [-1, 21, 1.5, True, "2"])
def test_a_depth_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(fs.InputError, match=r"max_halvings is .*; allowed are whole numbers from 0 \(never\) to 20\."):
        fs.simulate(cube_scene(nonlinear_tolerance=None), max_halvings=value)


def test_the_depth_from_the_command_line(scene: str, call: Callable[..., tuple[int, str, str]]) -> None:
    status, _, err = call("run", scene, "--max-halvings", "-1")
    assert status == 2 and "max_halvings is -1; allowed are" in err
    assert call("run", scene, "--max-halvings", "2", "--quiet", "--out", "run")[0] == 0
    assert '"max_halvings": 2' in Path("run/run.json").read_text(encoding="utf-8")


# ------------------------------------------------------------------ inversion and large deformation


def blow_scene(height: float) -> fs.Scene:
    """A cube, held at its foot, that gets a blow of 1 ms on its top, just when a step of 10 ms asks."""
    scene = fs.Scene("blow", dt=0.01, duration=0.04, gravity=(0, 0, 0), nonlinear_tolerance=None, theta=1.0)
    mesh = fs.box_tets((0.02, 0.02, 0.02), 2)
    top = np.flatnonzero(mesh.points[:, 2] > mesh.points[:, 2].max() - 1e-6)

    def load(t: float) -> np.ndarray:
        force = np.zeros_like(mesh.points)
        if abs(t - 0.02) < 5e-4:
            force[top, 2] = -height
        return force

    scene.add_soft("cube", mesh, RUBBER, position=(0, 0, 0.01), load=load, fixed=lambda x: x[:, 2] < 1e-6)
    return scene


def least_volume(body: SoftBody, q: np.ndarray) -> float:
    """Smallest volume of an element over that at rest."""
    corners, rest = q.reshape(-1, 3)[body.tets], body.rest[body.tets]
    return float((np.linalg.det(corners[:, 1:] - corners[:, :1]) / np.linalg.det(rest[:, 1:] - rest[:, :1])).min())


def test_a_step_that_turns_elements_inside_out_is_halved_until_it_does_not() -> None:
    volumes: list[float] = []

    def watch(stepper: Stepper, report: StepReport) -> None:
        body, q = stepper.scene.bodies[0], stepper.state.q
        assert isinstance(body, SoftBody)
        volumes.append(least_volume(body, q))
        assert body.inside_out(q).any() == (volumes[-1] <= -1.0)

    whole = fs.simulate(blow_scene(20.0), max_halvings=0, on_step=watch)
    assert min(volumes) < -10.0 and whole.steps["inverted_elements"][-1] > 0  # and they stay so
    volumes.clear()
    run = fs.simulate(blow_scene(20.0), on_step=watch)
    assert run.status == "converged" and run.steps["substeps"][1] > 1 and (run.steps["substeps"][[0, 2, 3]] == 1).all()
    assert min(volumes) > -1.0 and run.steps["inverted_elements"][1] > 0  # inverted for a moment
    assert run.steps["inverted_elements"][-1] == 0 and volumes[-1] > 0.9


def test_an_element_that_was_inside_out_before_is_no_reason() -> None:
    stepper = Stepper(blow_scene(0.0), Exacting())
    body, old = stepper.scene.bodies[0], stepper.state
    assert isinstance(body, SoftBody)
    mirrored = State(old.q * np.tile([1.0, 1.0, -1.0], body.n_nodes), old.v, 0.0)
    for state, inside_out in ((old, False), (mirrored, True)):
        body.update_elements(state.q)
        assert body.inside_out(state.q).all() == (body.inverted_elements > 0) == inside_out
    assert newly_inside_out(stepper.system, old, mirrored) and not newly_inside_out(stepper.system, mirrored, mirrored)


@pytest.mark.parametrize("law", [fs.Corotational(), fs.StableNeoHookean()])
def test_an_inverted_element_recovers(law: fs.Law) -> None:
    """The middle node of a cube starts beyond the top, the elements there inverted; no step needs halves."""
    scene = fs.Scene("inverted", dt=0.01, duration=0.3, gravity=(0, 0, 0), theta=1.0)
    mesh, elastic = fs.box_tets((0.02, 0.02, 0.02), 2), replace(RUBBER, law=law)
    scene.add_soft("cube", mesh, elastic, position=(0, 0, 0.01), fixed=lambda x: x[:, 2] < 1e-6)
    stepper = Stepper(scene, make_solver("auto"))
    body, q = stepper.scene.bodies[0], stepper.state.q
    assert isinstance(body, SoftBody)
    middle = int(np.argmin(np.linalg.norm(body.rest - [0, 0, 0.01], axis=1)))
    q[3 * middle + 2] += 0.015
    assert least_volume(body, q) < -0.4
    reports = [take_step(stepper, 6) for _ in range(30)]
    assert all(report.finite and report.solution.converged and len(report.parts) == 1 for report in reports)
    assert reports[-1].inverted_elements == 0
    x = stepper.state.q.reshape(-1, 3)
    np.testing.assert_allclose(x, body.rest, atol=2e-5)


def test_a_ball_is_squeezed_to_half_its_height() -> None:
    radius, weight = 0.03, 0.0
    scene = fs.Scene("squeezed", dt=0.01, duration=0.3, theta=1.0)
    ball = scene.add_soft("ball", fs.ball_tets(radius, 4), RUBBER, position=(0, 0, 0))
    for name, side in (("low", -1), ("high", 1)):
        scene.add_rigid(name, fs.Box((0.08, 0.08, 0.005)), mass=1.0, position=(0, 0, side * (radius + 0.005 + 1e-5)))
        scene.drive(name, fs.Motion([0.0, 0.2], [(0, 0, 0), (0, 0, -0.5 * side * radius)]))
        scene.sensor(name, name)
    body = scene.body(ball.name)
    heights: list[float] = []
    run = fs.simulate(scene, on_step=lambda s, r: heights.append(float(np.ptp(s.state.q[: body.n_q].reshape(-1, 3)[:, 2]))))
    assert run.status == "converged" and (run.steps["substeps"] == 1).all() and (run.steps["inverted_elements"] == 0).all()
    assert heights[-1] == pytest.approx(radius, rel=1e-2)
    assert run.steps["max_penetration_m"].max() < 1e-9 and run.steps["wrench_balance"].max() < 1e-6
    low, high = (run.sensors[name].force for name in ("low", "high"))
    weight = body.mass * G
    assert high[-1, 2] > 20.0  # two orders above its weight
    np.testing.assert_allclose(low[-1] + high[-1], [0, 0, -weight], atol=1e-4 * high[-1, 2])


def test_a_mat_is_crumpled_by_four_walls() -> None:
    side, height = 0.06, 0.002
    scene = fs.Scene("crumpled", dt=0.005, duration=0.2, default_friction=0.3, theta=1.0)
    scene.add_floor()
    elastic = replace(RUBBER, rayleigh_beta=2e-3)
    # cells that are all alike: a wall comes 0.9 mm into a mat of mirrored ones, which is its own mirror image
    mesh = fs.box_tets((side, side, height), (8, 8, 1), alternating=False)
    scene.add_soft("mat", mesh, elastic, position=(0, 0, 0.5 * height), self_contact=True)
    for name, axis, sign in (("left", 0, -1), ("right", 0, 1), ("front", 1, -1), ("back", 1, 1)):
        place, half, way = np.array([0, 0, 0.02]), np.full(3, 0.06), np.zeros(3)
        place[axis], half[axis], way[axis] = sign * (0.5 * side + 0.0052), 0.005, -sign * 0.3 * side
        scene.add_rigid(name, fs.Box(half), mass=1.0, position=place)
        scene.drive(name, fs.Motion([0.0, 0.2], [(0, 0, 0), way]))
    run = fs.simulate(scene)
    assert run.status == "converged" and run.steps["wrench_balance"].max() < 1e-6
    assert run.steps["max_penetration_m"].max() < 2e-5  # a step that ends deeper is halved
    body = scene.bodies[0]
    x = run.stepper.state.q[: body.n_q].reshape(-1, 3)
    assert np.ptp(x[:, 2]) > 5 * height and np.ptp(x[:, 0]) < 0.45 * side and np.ptp(x[:, 1]) < 0.45 * side
