"""The mat that a hand folds (papers/001, V-C3), coarser: held, carried, laid on itself, kept there by friction; one crumpled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from crossing_surfaces import crossings

import femsim as fs
from femsim.base.rotations import quaternion_to_matrix
from femsim.step.report import StepReport
from femsim.step.state import State
from femsim.step.stepper import Stepper

SCENES = Path(__file__).resolve().parents[1] / "scenes"
WEIGHT = 0.3 * 0.2 * 0.005 * 1000.0 * 9.81
FRICTION = 0.3
#: Times at which the mat is held, lies down, is let go, the hand is away, and all rests, s.
HELD, LAID, LET_GO, AWAY, END = 0.8, 2.8, 3.1, 3.4, 3.7


class Fold:
    """A run of the scene, and what its tables lack: where the edge is in the frame of the hand, forces of the mat on itself."""

    def __init__(self) -> None:
        scene = self.scene = fold_scene()
        mat, hand = scene.bodies.index(scene.body("mat")), scene.bodies.index(scene.body("hand"))
        rest = scene.body("mat").rest
        edge = (rest[:, 0] > 0.1499) & (np.abs(rest[:, 1]) < 0.03)
        self.in_hand: list[np.ndarray] = []
        self.own_forces: list[np.ndarray] = []  # normal, friction (nc, 2), N
        self.lowest: list[float] = []
        self.when_let_go: State | None = None

        def look(stepper: Stepper, report: StepReport) -> None:
            system, q = stepper.system, stepper.state.q
            x, pose = q[system.q_slices[mat]].reshape(-1, 3), q[system.q_slices[hand]]
            self.in_hand.append((x[edge] - pose[:3]) @ quaternion_to_matrix(pose[3:7]))
            self.own_forces.append(own_forces(report))
            self.lowest.append(float(x[x[:, 0] < 0.12, 2].min()))
            if report.step == round(LET_GO / 0.01):
                self.when_let_go = stepper.state.copy()

        self.run = fs.simulate(scene, duration=END, on_step=look)
        self.x = self.run.stepper.state.q[self.run.stepper.system.q_slices[mat]].reshape(-1, 3)
        self.triangles = scene.parts[[part.name for part in scene.parts].index("mat")].triangles

    def at(self, marker: str, time: float) -> np.ndarray:
        """Position of a marker at a time, (3,), m."""
        return np.asarray(self.run.markers[marker].position[round(time / 0.01) - 1])


def fold_scene() -> fs.Scene:
    return fs.load_scene(SCENES / "soft_mat_folding.py", cells=(30, 8), young_modulus=50e3, friction=FRICTION)


def own_forces(report: StepReport) -> np.ndarray:
    """Normal force and friction of the contacts of the mat with itself, (nc, 2), N."""
    own = report.contacts.point[:, 1, 0] >= 0
    force, normal = report.contacts.force[own], report.contacts.normal[own]
    press = np.einsum("mi,mi->m", force, normal)
    return np.column_stack([press, np.linalg.norm(force - press[:, None] * normal, axis=1)])


@pytest.fixture(scope="module")
def fold() -> Fold:
    return Fold()


def test_every_step_converges_balances_and_keeps_the_mat_out_of_the_table(fold: Fold) -> None:
    """No step misses 1e-8 by true residuals, nothing is passed, no element turns inside out, all forces balance."""
    steps = fold.run.steps
    assert fold.run.status == "converged"
    assert steps["wrench_balance"].max() < 1e-6
    assert steps["max_penetration_m"].max() < 1e-5
    assert steps["inverted_elements"].max() == 0
    assert min(fold.lowest) > -1e-5
    assert np.isfinite(fold.run.sensors["table"].force).all()


def test_the_held_edge_goes_with_the_hand(fold: Fold) -> None:
    """From where it is held to where it is let go, over half a turn, the edge stays within 0.5 mm of where the pads took it."""
    held = np.array(fold.in_hand)[round(HELD / 0.01) : round(LAID / 0.01)]
    assert np.abs(held - held[0]).max() < 5e-4
    assert fold.at("edge", 1.8)[2] > 0.12  # half-way it is at the top of the arc
    assert fold.at("edge", LAID)[0] == pytest.approx(-0.15, abs=1e-3)


def test_the_folded_half_lies_on_the_other(fold: Fold) -> None:
    """The upper edge lies one and a half thicknesses above the table, the table carries everything, no edge cuts a triangle."""
    edge, other = fold.at("edge", END), fold.at("other_edge", END)
    np.testing.assert_allclose([edge[2], other[2]], [0.0075, 0.0025], atol=5e-5)
    assert edge[0] == pytest.approx(other[0], abs=0.006)
    assert not crossings(fold.x, fold.triangles, 1e-5)
    assert -fold.run.sensors["table"].force[-1, 2] == pytest.approx(WEIGHT, rel=1e-3)
    press = fold.own_forces[-1][:, 0]
    assert 0.05 * WEIGHT < press.sum() < WEIGHT


def test_friction_on_itself_keeps_the_fold_in_place(fold: Fold) -> None:
    """Coulomb's law between the halves: forces inside the cone, some stick, and the edge rests; without friction it slides on."""
    landed = [forces for forces in fold.own_forces[round(LET_GO / 0.01) :] if len(forces)]
    forces = np.concatenate(landed)
    closed = forces[:, 0] > 1e-3
    share = forces[closed, 1] / (FRICTION * forces[closed, 0])
    assert (forces[:, 1] - FRICTION * forces[:, 0]).max() < 1e-7
    assert share.max() > 0.999  # some slid
    last = fold.own_forces[-1]
    sticks = (last[:, 0] > 1e-3) & (last[:, 1] < 0.99 * FRICTION * last[:, 0])
    assert sticks.any()
    assert moved(fold.at("edge", AWAY), fold.at("edge", END)) < 2e-5

    scene = fold_scene()
    scene.set_friction("mat", "mat", 0.0)
    stepper = Stepper(scene, fs.make_solver("auto"))
    assert fold.when_let_go is not None
    stepper.restore(fold.when_let_go)
    corner = np.argmin(np.linalg.norm(scene.body("mat").rest - [0.15, 0.0, 0.0025], axis=1))
    edge: list[np.ndarray] = []
    while stepper.state.t < END - 1e-9:
        report = stepper.step()
        assert report.solution.converged
        assert np.abs(own_forces(report)[:, 1]).max(initial=0.0) < 1e-9
        edge.append(stepper.state.q[stepper.system.q_slices[0]].reshape(-1, 3)[corner].copy())
    assert moved(edge[round((AWAY - LET_GO) / 0.01) - 1], edge[-1]) > 2e-3


def moved(start: np.ndarray, end: np.ndarray) -> float:
    return float(np.linalg.norm(end - start))


@pytest.fixture(scope="module")
def crumpled() -> tuple[fs.Run, list[int]]:
    """The crumpled mat, coarser, and how many contacts with itself pressed in each step."""
    scene = fs.load_scene(SCENES / "soft_mat_crumpling.py", cells=(24, 8), dt=0.01)
    pressing: list[int] = []

    def count(stepper: Stepper, report: StepReport) -> None:
        assert report.finite
        own = report.contacts.point[:, 1, 0] >= 0
        pressing.append(int((np.linalg.norm(report.contacts.force[own], axis=1) > 1e-3).sum()))

    return fs.simulate(scene, on_step=count), pressing


def test_a_crumpled_mat_stays_finite_and_springs_open(crumpled: tuple[fs.Run, list[int]]) -> None:
    """Every step converges; in the heap it presses on itself; the lid has to be pushed down; it ends as long as before."""
    run, pressing = crumpled
    assert run.status == "converged"
    assert run.steps["wrench_balance"].max() < 1e-6
    assert max(pressing) > 5
    assert run.steps["inverted_elements"][-1] == 0
    length = np.ptp(run.stepper.state.q[run.stepper.system.q_slices[0]].reshape(-1, 3)[:, 0])
    assert length > 0.95 * 0.24
    assert run.steps["max_penetration_m"].max() < 5e-4
    assert run.sensors["lid"].force[:, 2].min() < -10.0  # what the drive presses with
