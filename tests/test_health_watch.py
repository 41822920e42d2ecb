"""The health watch on steps that are made up: what each number of a report does to the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import femsim as fs
from femsim.run.health import HealthWatch
from femsim.run.verdict import Reason
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper
from femsim.step.vitals import Depth, Vitals

JOULE = {"kinetic_energy": 0.0, "elastic_energy": 0.0, "work": 0.0, "friction_loss": 0.0}


class Watched:
    """A watch of two cubes of 8 g above a floor, to which steps are told."""

    def __init__(self, speed: float = 0.0, height: float = 0.1, **bounds: Any) -> None:
        scene = fs.Scene("two", dt=0.01, gravity=(0, 0, 0), theta=1.0, health=fs.HealthBounds(**bounds))
        scene.add_floor()
        for k, name in enumerate(("first", "second")):
            mesh, rubber = fs.box_tets((0.02, 0.02, 0.02), 1), fs.Elastic(1e5, 0.3, 1e3)
            scene.add_soft(name, mesh, rubber, position=(0.1 * k, 0, height), velocity=(speed, 0, 0))
        self.stepper = Stepper(scene, fs.make_solver("exact"))
        self.report = self.stepper.step()
        self.watch = HealthWatch(self.stepper)
        self.steps = 0

    def tell(self, vitals: Vitals | None = None, **values: Any) -> None:
        """One more step, of which only this is said."""
        self.steps += 1
        told: StepReport = replace(self.report, **(JOULE | values), vitals=vitals or Vitals(inverted=(0, 0)))
        told.step, told.time = self.steps, 0.01 * self.steps
        self.watch.look(told)

    def reason(self, kind: str) -> Reason:
        """The one reason of a kind."""
        (reason,) = (one for one in self.watch.findings.reasons.values() if one.kind == kind)
        return reason

    @property
    def kinds(self) -> set[str]:
        return {one.kind for one in self.watch.findings.reasons.values()}


def test_energy_rises_from_its_lowest() -> None:
    """What damping took before does not hide what comes from nowhere later."""
    watched = Watched()
    for held in (1.0, 0.4, 0.5):
        watched.tell(kinetic_energy=held, work=1.0)
    assert watched.reason("energy").value == pytest.approx(0.1) and watched.reason("energy").verdict == "doubtful"


def test_known_losses_do_not_hide_what_comes_from_nowhere() -> None:
    """Friction or a dashpot that takes as much as comes from nowhere leaves kinetic + elastic - work as it was."""
    for loss in ("friction_loss", "viscous_loss"):
        watched = Watched()
        for lost in (0.0, 0.1):
            watched.tell(kinetic_energy=1.0, work=1.0, **{loss: lost})
        assert watched.reason("energy").value == pytest.approx(0.1)


def test_energy_that_went_adds_up() -> None:
    """1 J of work went in; friction took 0.2 J, dashpots 0.1 J, 0.4 J are there: 0.3 J went elsewhere."""
    watched = Watched()
    watched.tell(kinetic_energy=0.3, elastic_energy=0.1, work=1.0, friction_loss=0.2, viscous_loss=0.1)
    start = watched.stepper.state.energy
    energy = watched.watch.as_json()["energy"]
    assert energy["passed_J"] == pytest.approx(1.0 + start)
    assert (energy["friction_loss_J"], energy["viscous_loss_J"]) == (0.2, 0.1)
    assert energy["other_loss_J"] == pytest.approx(0.3 + start)
    watched.tell(kinetic_energy=np.inf, work=1.0)
    assert watched.watch.as_json()["energy"]["other_loss_J"] is None


def test_work_that_is_taken_out_is_no_loss() -> None:
    """A drive that brakes takes 0.48 J of 0.8 J: 0.4 J are then 0.08 J too much, of the 0.8 J that passed."""
    watched = Watched(speed=10.0)
    watched.tell(kinetic_energy=0.4, work=-0.48)
    assert watched.reason("energy").value == pytest.approx(0.1)


def test_the_scale_is_what_went_in_and_not_what_is_left_of_it() -> None:
    """1 J goes in and out again; a rise of 5 mJ is little beside it."""
    watched = Watched()
    for held, work in ((1.0, 1.0), (0.0, 0.0), (0.005, 0.0)):
        watched.tell(kinetic_energy=held, work=work)
    assert watched.watch.findings.verdict == "good"
    watched.tell(kinetic_energy=0.02, work=0.0)
    assert watched.reason("energy").value == pytest.approx(0.02)


def test_what_undoes_penetration_is_put_in() -> None:
    watched = Watched()
    for _ in range(3):
        watched.tell(Vitals(inverted=(0, 0), pushed=0.1), kinetic_energy=0.1 * (watched.steps + 1))
    assert watched.watch.findings.verdict == "good"
    watched.tell(kinetic_energy=0.5)
    assert watched.reason("energy").value == pytest.approx(0.2 / 0.5)


def test_energy_of_what_overlaps_at_the_start_asks_for_another_start() -> None:
    """... where it is no more than what pushed it apart; beyond that a smaller step may help."""
    for pushed, touching in ((0.2, True), (0.01, False)):
        watched = Watched(height=0.009)
        watched.tell(Vitals(inverted=(0, 0), pushed=pushed), kinetic_energy=pushed)
        watched.tell(kinetic_energy=pushed + 0.02)
        reason = watched.reason("energy").advice
        assert ("floor" in reason and "overlaps at the start" in reason and "by 1 mm" in reason) == touching
        assert ("smaller dt" in reason) != touching
    watched = Watched()
    watched.tell(Vitals(inverted=(0, 0), pushed=0.2), kinetic_energy=0.2)
    watched.tell(kinetic_energy=0.22)
    assert "smaller dt" in watched.reason("energy").advice
    watched = Watched(height=0.009)  # a later bump that is known is none of the start's
    watched.tell(Vitals(inverted=(0, 0), pushed=0.2), kinetic_energy=0.2)
    watched.tell(Vitals(inverted=(0, 0), pushed=0.02, mended=0.02), kinetic_energy=0.22)
    assert "what the steps before let in" in watched.reason("energy").advice


def test_what_undoes_penetration_went_in_also_where_a_drive_takes_it_out() -> None:
    """A hand that starts inside the floor: contact puts in 1 J, its damper takes 1 J; 5 mJ are little beside it."""
    watched = Watched()
    watched.tell(Vitals(inverted=(0, 0), pushed=1.0), kinetic_energy=0.005, work=-1.0)
    assert watched.watch.findings.verdict == "good"
    watched.tell(kinetic_energy=0.05, work=-1.0)
    assert watched.reason("energy").value == pytest.approx(0.05, rel=1e-2)


def test_elements_that_recover_start_again() -> None:
    watched = Watched(inverted=(3.0, 5.0))
    for inverted in (1, 1, 1, 0, 1, 1, 1, 0):
        watched.tell(Vitals(inverted=(0, inverted)))
    assert watched.watch.findings.verdict == "good", "three steps in a row at most"
    for _ in range(4):
        watched.tell(Vitals(inverted=(0, 2)))
    reason = watched.reason("inverted")
    assert reason.bodies == ["second"] and (reason.value, reason.verdict) == (4.0, "doubtful")
    watched.watch.finish(watched.steps)
    assert reason.verdict == "wrong" and reason.text.endswith("and the run ends so")


def test_elements_that_recovered_before_the_end_leave_a_doubt() -> None:
    watched = Watched()
    for inverted in (1, 0):
        watched.tell(Vitals(inverted=(0, inverted)))
    watched.watch.finish(watched.steps)
    assert watched.reason("inverted").verdict == "doubtful"


def test_creep_adds_up_and_is_that_of_a_pair() -> None:
    watched = Watched()
    size = watched.stepper.vital_signs.sizes.of_pair(0, 1)[0]
    for k in range(9):
        pair = (0, 1) if k % 2 else (1, 0)
        watched.tell(Vitals(inverted=(0, 0), creep=Depth(pair, 1.0, 0.01)))
        watched.tell(Vitals(inverted=(0, 0), creep=Depth((1, 2), 1.0, 0.004)))
    reason = watched.reason("creep")
    names = watched.stepper.scene.part_names
    assert reason.bodies == sorted(names[:2]) and reason.value == pytest.approx(0.09)
    assert (reason.step, reason.worst_step) == (11, 17) and f"{1e3 * 0.09 * size:.3g} mm" in reason.text


def test_a_reason_keeps_its_worst_step() -> None:
    watched = Watched()
    for value in (0.0, 0.02, 0.05, 0.03, 0.2, 0.15):
        watched.tell(wrench_balance=value, unbalanced=1)
    reason = watched.reason("balance")
    assert reason.bodies == ["second"] and "second lacks 0.2 of the largest force on it" in reason.text
    assert (reason.value, reason.step, reason.worst_step, reason.verdict, reason.bound) == (0.2, 2, 5, "wrong", 0.1)


def test_shares_of_the_steps() -> None:
    watched = Watched()
    stopped = replace(watched.report.solution, status="stopped at the limit")
    for k in range(40):
        watched.tell(**({"solution": stopped} if k in (7, 30) else {}))
    watched.watch.finish(watched.steps)
    reason = watched.reason("unconverged")
    assert (reason.value, reason.step, reason.verdict) == (0.05, 8, "doubtful") and "2 of 40 steps" in reason.text
    assert watched.kinds == {"unconverged"}


def test_a_solver_near_its_limit_is_said_by_the_mean_of_the_solves_of_a_step() -> None:
    """The solver of the last solve may have another limit than those of the others."""
    watched = Watched()
    for effort in (0.79, 0.81, 0.81, 0.2):
        solution = replace(watched.report.solution, iterations=1000, details={"max_iterations": 25, "effort": effort})
        watched.tell(solution=solution)
    watched.watch.finish(watched.steps)
    assert watched.reason("limit").value == 0.5 and watched.kinds == {"limit"}


@pytest.mark.parametrize(("steps", "every", "doubtful"), [(4, 2, False), (19, 4, True), (40, 5, False), (40, 4, True)])
def test_solvers_that_fail_now_and_then_are_named_where_they_are_many_of_twenty_steps(
    steps: int, every: int, doubtful: bool
) -> None:
    """Two of the first four steps that `auto` passed on were half of a run: *doubtful*, and good six steps later."""
    watched = Watched()
    passed_on = replace(watched.report.solution, details={"tried": ("cond", "canal")})
    for k in range(steps):
        watched.tell(**({"solution": passed_on} if k % every == 0 else {}))
    watched.watch.finish(watched.steps)
    assert watched.kinds == ({"fallbacks"} if doubtful else set())


def test_effort_is_the_part_of_the_iterations_allowed() -> None:
    scene = fs.Scene("landing", dt=0.01, theta=1.0)
    scene.add_floor()
    scene.add_soft(
        "cube", fs.box_tets((0.02, 0.02, 0.02), 2), fs.Elastic(1e4, 0.3, 1000.0), position=(0, 0, 0.0101), velocity=(0, 0, -0.5)
    )
    stepper = Stepper(scene, fs.make_solver("cond", max_iterations=500))
    for _ in range(2):
        report = stepper.step()
    assert report.solves > 1 and report.solution.iterations > report.solves
    assert report.solution.details["effort"] == pytest.approx(report.solution.iterations / (500 * report.solves), rel=1e-12)


def test_inverted_elements_of_all_bodies_are_counted() -> None:
    """The first cube is pushed through itself, the second is not; both counts are seen, and their sum."""
    stepper = Stepper(Watched().stepper.scene, fs.make_solver("exact"), dt=1e-6)  # too short a step to recover in
    state = stepper.state.copy()
    points = state.q[stepper.system.q_slices[0]].reshape(-1, 3)
    points[points[:, 2] > 0.1, 2] -= 0.05
    stepper.restore(state)
    report = stepper.step()
    first, second = report.vitals.inverted
    assert first > 0 and second == 0 and report.inverted_elements == first


def test_halves_add_what_they_push_out_and_keep_the_worst_of_the_rest() -> None:
    halves = [
        Vitals(pushed=0.1, mended=0.01, way=(0, 0.3), turn=(1, 0.2)),
        Vitals(pushed=0.2, mended=0.02, way=(1, 0.1), turn=(0, 0.5), inverted=(0, 1)),
    ]
    whole = Vitals.joined(halves)
    assert (whole.pushed, whole.mended) == pytest.approx((0.3, 0.03)) and whole.way == (0, 0.3) and whole.turn == (0, 0.5)
    assert whole.inverted == (0, 1)


def test_sliding_is_no_creep() -> None:
    """A box pushed on a floor: below the friction limit it sticks, far above it slides, fast."""
    found = {}
    for push in (0.2, 0.9):
        scene = fs.Scene("push", dt=0.01, duration=0.1, gravity=(0, 0, -10.0), theta=1.0)
        scene.add_floor()
        scene.add_rigid(
            "box", fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0, 0, 0.01), load=lambda t, p=push: ((p, 0, 0), (0, 0, 0))
        )
        scene.set_friction("box", "floor", 0.5)
        stepper = Stepper(scene, fs.make_solver("exact"))
        for _ in range(5):
            report = stepper.step()
        found[push] = report.vitals.creep.depth, float(np.abs(report.forces.contacts.u[:, 1]).max())
    assert found[0.9][1] > 0.1 and found[0.9][0] == 0.0
    assert found[0.2][1] < 1e-6


def test_a_reason_without_advice_ends_with_its_sentence() -> None:
    reason = Reason("wrong", "failed", ["box"], 3.0, 1.0, 2, 0.02, 2, 0.02, "box has left the scene", "")
    assert str(reason) == "wrong: box has left the scene (bound 1), from step 2 at 0.02 s."
    assert str(replace(reason, advice="Hold it.")).endswith("s. Hold it.")


def test_ways_are_relative_to_the_extent_of_the_body() -> None:
    scene = fs.Scene("way", dt=0.01, gravity=(0, 0, 0), theta=1.0)
    scene.add_floor()
    scene.add_rigid("ball", fs.Sphere(0.02), mass=0.1, position=(0, 0, 0.0205), velocity=(3.0, 0, 0))
    scene.set_friction("ball", "floor", 0.0)
    report = Stepper(scene, fs.make_solver("exact")).step()
    assert report.vitals.way == (1, pytest.approx(0.03 / 0.04, rel=1e-3))


def test_links_that_fixed_joints_hold_go_ways_by_the_largest_of_them() -> None:
    """Files mark sensors by boxes of 1 mm, which pass through nothing that the trunk around them does not hit."""
    trunk = fs.RobotLink.solid("trunk", fs.Piece(fs.Box((0.1, 0.1, 0.1))), 5.0)
    chip = fs.RobotLink.solid("chip", fs.Piece(fs.Box((5e-4, 5e-4, 5e-4))), 1e-3)
    leg = fs.RobotLink.solid("leg", fs.Piece(fs.Box((0.02, 0.02, 0.02))), 0.1)
    joints = [
        fs.RobotJoint("mount", "trunk", "chip", "fixed", (0, 0, -0.1)),
        fs.RobotJoint("hip", "trunk", "leg", "revolute", (0.2, 0, 0)),
    ]
    scene = fs.Scene("falls", dt=0.01, gravity=(0, 0, 0), theta=1.0)
    scene.add_floor()
    robot = fs.Robot("dog", [trunk, chip, leg], joints)
    scene.add_robot(robot, base="free", position=(0, 0, 0.11), velocity=(3.0, 0, -0.5))
    far, way = Stepper(scene, fs.make_solver("exact")).step().vitals.way
    assert scene.part_names[far] == "dog" and way == pytest.approx(0.01 * np.hypot(3.0, 0.5) / (0.2 * np.sqrt(3.0)), rel=0.1)


def test_ways_are_the_same_in_every_direction() -> None:
    """A soft cube that is thrown along its diagonal, straight and turned."""
    found = []
    for turn in ((0.0, 0.0, 0.0), (0.0, 0.0, 0.7)):
        scene = fs.Scene("way", dt=0.01, gravity=(0, 0, 0), theta=1.0)
        scene.add_floor()
        scene.add_soft(
            "cube", fs.box_tets((0.02, 0.02, 0.02), 1), fs.Elastic(1e5, 0.3, 1000.0), position=(0, 0, 0.0105), rotation=turn,
            velocity=(1.0, 0.0, 0.0),
        )  # fmt: skip
        scene.set_friction("cube", "floor", 0.0)
        found.append(Stepper(scene, fs.make_solver("exact")).step().vitals.way[1])
    assert found[0] == pytest.approx(0.01 / (0.02 * np.sqrt(3.0)), rel=1e-3)
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def swinging(bar: float, limits: tuple[float, float] = (-10.0, 10.0)) -> StepReport:
    """Report of a step of a fixed robot whose arm turns at 200 rad/s, away from a bar at a place along it, m."""
    arm = fs.RobotLink.solid("arm", fs.Piece(fs.Box((0.1, 0.005, 0.005)), (0.1, 0.0, 0.0)), 0.1)
    base = fs.RobotLink.solid("base", fs.Piece(fs.Box((0.01, 0.01, 0.01)), (0.0, 0.0, -0.05)), 1.0)
    robot = fs.Robot("robot", [base, arm], [fs.RobotJoint("turn", "base", "arm", "revolute", axis=(0, 0, 1), limits=limits)])
    scene = fs.Scene("swing", dt=0.01, gravity=(0, 0, 0))
    scene.add_robot(robot, speeds={"turn": 200.0})
    scene.add_rigid("bar", fs.Box((0.005, 0.005, 0.1)), mass=0.1, position=(bar, -0.04, 0.0))
    return Stepper(scene, fs.make_solver("exact")).step()


def test_a_link_that_swings_goes_a_way_though_its_base_stands() -> None:
    vitals = swinging(0.15).vitals
    extent = 2.0 * np.linalg.norm((0.1, 0.005, 0.005))
    assert vitals.way == (1, pytest.approx(0.01 * 200.0 * 0.1 / extent, rel=1e-3))
    assert vitals.turn == (1, pytest.approx(2.0, rel=1e-3))


def test_the_limit_of_a_joint_is_nothing_near() -> None:
    report = swinging(100.0, (-10.0, 2.5))
    assert len(report.forces.contacts.gap) == 1
    assert report.vitals.way == (-1, 0.0) and report.vitals.turn == (-1, 0.0)


def test_the_body_that_lacks_most_is_named() -> None:
    """One linearisation of a long step: the first cube falls freely as a whole, the second is stretched and swings."""
    scene = fs.Scene("two", dt=0.02, theta=0.5, nonlinear_tolerance=None)
    for k, name in enumerate(("calm", "stretched")):
        scene.add_soft(name, fs.box_tets((0.02, 0.02, 0.02), 1), fs.Elastic(1e4, 0.3, 1e3), position=(0.1 * k, 0, 0.1))
    stepper = Stepper(scene, fs.make_solver("exact"))
    state = stepper.state.copy()
    second = stepper.system.q_slices[1]
    points = state.q[second].reshape(-1, 3)
    points[:] = points.mean(axis=0) + (points - points.mean(axis=0)) @ np.array(
        [[1.0, 0.8, 0.0], [-0.8, 1.5, 0.0], [0.0, 0.0, 0.7]]
    )
    stepper.restore(state)
    report = stepper.step()
    assert report.nonlinear_residual > 1e-3 and report.lacking == 1
    watch = HealthWatch(stepper)
    watch.look(replace(report, nonlinear_residual=0.7))
    (reason,) = (one for one in watch.findings.reasons.values() if one.kind == "residual")
    assert reason.bodies == ["stretched"] and reason.text.endswith("stretched the largest part of it")


def test_the_body_that_balances_worst_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = fs.Scene("two", dt=0.01, theta=1.0)
    for k, name in enumerate(("good", "off")):
        scene.add_rigid(name, fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(0.1 * k, 0, 0.1))
    stepper = Stepper(scene, fs.make_solver("exact"))
    assert stepper.step().wrench_balance < 1e-12
    off = scene.body("off")
    momentum = type(off).momentum
    monkeypatch.setattr(type(off), "momentum", lambda self, q, v: momentum(self, q, v) * (1.01 if self is off else 1.0))
    report = stepper.step()
    assert report.unbalanced == 1 and report.wrench_balance == pytest.approx(0.01, rel=1e-6)


@pytest.mark.parametrize("dt", [1e-2, 1e-3])
def test_a_body_that_a_plate_stops_without_weight_is_not_out_of_balance(dt: float) -> None:
    """What is left of 100 m/s is rounding, and forces of rounding are nothing that could balance."""
    scene = fs.Scene("shot", dt=dt, duration=20 * dt, gravity=(0, 0, 0))
    scene.add_obstacle("plate", fs.Box((0.1, 0.1, 0.0005)))
    scene.add_rigid("ball", fs.Sphere(0.01), density=1000.0, position=(0, 0, 0.05), velocity=(0, 0, -100.0))
    run = fs.simulate(scene, quiet=True)
    assert run.steps["kinetic_energy_J"].max() < 1e-20
    assert run.verdict == "good" and run.steps["wrench_balance"].max() < 1e-4


def test_elastic_energies_of_all_bodies_are_summed() -> None:
    """Two stretched cubes, the first more than the second."""
    stepper = Stepper(Watched().stepper.scene, fs.make_solver("exact"), dt=1e-6)
    state = stepper.state.copy()
    for q, factor in zip(stepper.system.q_slices, (1.1, 1.05), strict=True):
        points = state.q[q].reshape(-1, 3)
        points[:] = points.mean(axis=0) + factor * (points - points.mean(axis=0))
    stepper.restore(state)
    report = stepper.step()
    first, second = (
        body.elastic_energy(stepper.state.q[q]) for body, q in zip(stepper.scene.bodies, stepper.system.q_slices, strict=True)
    )
    assert first > 3.0 * second > 0.0 and report.elastic_energy == pytest.approx(first + second, rel=1e-12)
