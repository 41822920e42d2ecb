"""What a step does not do twice: each shortcut gives what the general way gives, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from posed_contacts import make_contacts
from random_chains import chain

import femsim as fs
from contact import Detector, make_solver
from contact.solvers import dense_kernels as kernels
from femsim.model.bodies.body_defaults import BodyDefaults
from femsim.step.force_memory import ForceMemory
from femsim.step.state import State
from femsim.step.stepper import Stepper

RNG_SEED = 5
GRIPPER = 2


@pytest.mark.parametrize("links", [[0], [0, 1, 2], [2, 1]])
def test_links_of_a_gripper_are_where_each_of_them_says(links: list[int]) -> None:
    contacts, state = make_contacts(np.random.default_rng(RNG_SEED))
    body, q = contacts.system.bodies[GRIPPER], state.q[contacts.system.q_slices[GRIPPER]]
    for _ in range(2):  # the second time the links are known
        together = body.link_places(q, links)
        for own, expected in zip(together, BodyDefaults.link_places(body, q, links), strict=True):
            np.testing.assert_array_equal(own, expected)
    assert together.rotation.shape == (len(links), 3, 3) and len(together.screw) == sum(link > 0 for link in links)


def sunk_box(*, on_a_box: bool) -> tuple[Stepper, State]:
    """A box on a floor or on another box, and a state in which it is 0.1 mm in it."""
    scene = fs.Scene("sunk", dt=0.01, duration=1.0)
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), density=500.0, position=(0.0, 0.0, 0.02))
    if on_a_box:
        scene.add_obstacle("table", fs.Box((0.1, 0.1, 0.01)), position=(0.0, 0.0, -0.01))
    else:
        scene.add_floor()
    stepper = Stepper(scene, make_solver("auto"))
    there = stepper.state.copy()
    there.q[:3] += [1e-3, 0.0, -1e-4]
    return stepper, there


@pytest.mark.parametrize("rough", [False, True])
def test_nothing_near_is_as_contacts_are_but_for_their_number(rough: bool) -> None:
    """Rows and forces of a box in the air have the shapes and kinds of numbers of those of one that lies."""
    scene = fs.Scene("thrown", dt=0.01, duration=1.0)
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), density=500.0, position=(0.0, 0.0, 0.02))
    scene.add_floor()
    if rough:
        scene.set_friction("box", "floor", (0.3, 0.6), direction=(1.0, 0.0, 0.0))
    stepper = Stepper(scene, make_solver("auto"))
    contacts, nothing, made = stepper.contacts, np.zeros(stepper.system.n), []
    for height in (0.0, 1.0):
        there = stepper.state.copy()
        there.q[2] += height
        placed = contacts.places.read(there)
        rows = contacts.rows(contacts.detect(there, placed, [1e-3]), nothing, 0.01)
        made.append((rows, placed, contacts.accept(rows, np.ones((len(rows.phi), 3)), np.zeros((len(rows.phi), 3)))))
    (lying, _, (pressed, known)), (flying, placed, (free, unknown)) = made
    assert len(lying.phi) == 4 and len(flying.phi) == 0
    pairs: list[tuple[object, object]] = [(lying, flying), (pressed, free), (pressed.contacts, free.contacts)]
    for lies, flies in [*pairs, *zip(lying.families, flying.families, strict=True), *zip(known, unknown, strict=True)]:
        for name, expected in vars(lies).items():
            own = getattr(flies, name)
            if isinstance(expected, np.ndarray):
                assert own.dtype == expected.dtype and own.shape[1:] == expected.shape[1:], name
    assert flying.J.shape == (0, stepper.system.n) and flying.J.indices.dtype == lying.J.indices.dtype
    assert flying.placed is placed and free.contacts.reference is placed.reference
    for acting, least in ((pressed, 4.0), (free, 0.0)):
        assert acting.force_sum.sum() >= least and np.abs(acting.generalized).max() >= least
    assert not (free.wrench.any() or free.force_sum.any() or free.node_force.any() or free.generalized.any())
    assert free.generalized.shape == pressed.generalized.shape and free.wrench.shape == pressed.wrench.shape


@pytest.mark.parametrize("on_a_box", [False, True])
def test_overlaps_are_those_that_a_search_finds(on_a_box: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all contacts are of points, those found for the end of a step say it; edges are looked for again."""
    stepper, there = sunk_box(on_a_box=on_a_box)
    contacts, nothing = stepper.contacts, np.zeros(stepper.system.n)
    start = contacts.rows(contacts.detect(stepper.state, stepper.placed, [1e-3]), nothing, 0.01)
    arrived = contacts.places.read(there)
    moved = contacts.moved(start, there, nothing, 0.01, middle=False, placed=arrived)
    searched = contacts.overlapping(there, arrived)
    assert len(searched[1]) >= 4 and searched[1].min() == pytest.approx(-1e-4)
    for rows in (moved, start):  # those of the start are of another place
        for own, expected in zip(contacts.overlapping(there, arrived, rows), searched, strict=True):
            np.testing.assert_array_equal(own, expected)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("looked for contacts again")

    monkeypatch.setattr(Detector, "detect_placed", refuse)
    if on_a_box:
        with pytest.raises(AssertionError, match="looked for"):
            contacts.overlapping(there, arrived, moved)
    else:
        contacts.overlapping(there, arrived, moved)


def test_forces_of_the_same_contacts_are_recalled_as_those_of_some() -> None:
    rng = np.random.default_rng(RNG_SEED)
    keys, forces = np.array([7, 3, 11, 5]), rng.standard_normal((4, 3))
    frames = np.array([np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in keys])
    order = np.argsort(keys)
    same = ForceMemory.of(keys, forces).recall(keys[order], frames)
    more = ForceMemory.of(np.append(keys, 9), np.vstack([forces, [1.0, 2.0, 3.0]])).recall(keys[order], frames)
    np.testing.assert_array_equal(same, more)
    np.testing.assert_allclose(same, np.einsum("mij,mj->mi", frames, forces[order]))
    none = ForceMemory.of(keys, -0.0 * forces).recall(keys[order], frames)
    assert not none.any() and not np.signbit(none).any()  # as sums of numpy begin at 0.0
    other = ForceMemory.of(keys, forces).recall(np.array([3, 5, 6, 11]), frames)  # as many, but not the same
    assert other[1].any() and not other[2].any()


def test_a_solver_of_chains_keeps_places_of_one_pattern_only() -> None:
    rng = np.random.default_rng(RNG_SEED)
    problems = [chain(5, 3, rng), chain(8, 6, rng)]
    solver = make_solver("banded")
    for problem in (*problems, *problems):
        kept, fresh = solver.solve(problem), make_solver("banded").solve(problem)
        assert kept.converged
        np.testing.assert_array_equal(kept.v, fresh.v)
        np.testing.assert_array_equal(kept.lam, fresh.lam)


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_rows_of_links_on_a_floor_are_their_frames_and_moments(held: bool, turns: bool) -> None:
    """With held links rows go the general way, and those of others are the same."""
    scene = fs.Scene("rope", dt=0.005, duration=0.1, default_friction=0.3)
    scene.add_floor()
    line = np.linspace((0.0, 0.0, 0.002), (0.1, 0.0, 0.002), 9)
    rubber = fs.Elastic(2.954e6, 0.49, 1259.0, name="rope")
    scene.add_rod("rope", line, fs.circular_section(0.002), rubber, contact="surface" if turns else "centre")
    stepper = Stepper(scene, make_solver("auto"))
    contacts, system, n = stepper.contacts, stepper.system, stepper.system.n
    prescribed = np.zeros(n, dtype=np.bool_)
    prescribed[[1, 12]] = held
    system.set_prescribed(prescribed)
    given = np.where(prescribed, 0.3, 0.0)
    rows = contacts.rows(contacts.detect(stepper.state, stepper.placed, [1e-3]), given, 0.005)
    J, c = rows.J.toarray(), rows.families[0].found.contacts
    assert len(c) == 8
    centres = stepper.state.q.reshape(-1, 7)[:, :3]
    for m in range(8):
        lever = c.position[m] - centres[c.point[m]]
        expected = np.zeros((3, n))
        expected[:, 6 * c.point[m] : 6 * c.point[m] + 6] = np.hstack([c.frame[m], turns * np.cross(lever, c.frame[m])])
        moved = expected @ given
        expected[:, prescribed] = 0.0
        np.testing.assert_array_equal(J[3 * m : 3 * m + 3], expected)
        np.testing.assert_allclose(rows.surface[m], moved, rtol=0.0, atol=1e-15)


def test_a_condensed_problem_is_judged_in_one_call_as_in_four() -> None:
    rng = np.random.default_rng(RNG_SEED)
    k = 5
    root = rng.standard_normal((3 * k, 3 * k))
    WT, q, lam = root @ root.T, rng.standard_normal(3 * k), rng.standard_normal(3 * k)
    lam[:3] = 0.0
    shift, centre, mu, rho = rng.uniform(0.0, 1.0, k), rng.standard_normal(3 * k), np.full(k, 0.4), rng.uniform(0.5, 2.0, k)
    u, expected = np.empty(3 * k), np.empty(3 * k)
    found = kernels.judge(WT, q, lam, shift, centre, mu, rho, u)
    kernels.velocities(WT, q, lam, expected)
    kernels.add_proximal(shift, centre, lam, expected)
    np.testing.assert_array_equal(u, expected)
    assert found == (*kernels.velocity_error(lam, u, q, mu, rho), *kernels.natural_map(lam, u, mu, rho, True))
    error, speed, reach, wrong, size = found
    forces = wrong / size
    for leniency in (100.0, 1e-3):
        expected_of = (max(forces, error / speed / leniency), speed, reach, forces)
        assert kernels.residual(WT, q, lam, shift, centre, mu, rho, u, leniency) == expected_of


@pytest.mark.parametrize(("max_solves", "searches"), [(25, 2), (1, 1)])
def test_what_was_not_solved_is_no_reason_to_search_further(
    max_solves: int, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clamped bar whose end is thrown further than it was expected to go; with one linearisation the step is not solved.

    Where velocities are wild everything is in reach, and such a search took minutes.
    """
    scene = fs.Scene("thrown", dt=0.01, duration=1.0, max_solves=max_solves)
    scene.add_floor(-0.1)
    rubber = fs.Elastic(1e5, 0.3, 1000.0, name="rubber")
    scene.add_soft(
        "bar",
        fs.box_tets((0.1, 0.02, 0.02), (4, 1, 1)),
        rubber,
        fixed=lambda x: x[:, 0] < -0.0499,
        load=lambda t: (0.0, 0.0, 4.0),
    )
    stepper, found = Stepper(scene, make_solver("auto")), []
    detect = stepper.contacts.detect
    monkeypatch.setattr(stepper.contacts, "detect", lambda *given: found.append(given) or detect(*given))
    report = stepper.step()
    assert report.solution.converged == (max_solves > 1) and len(found) == searches
