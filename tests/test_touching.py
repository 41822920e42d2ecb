"""Soft bodies and rods in contact with each other and themselves: momentum, weight, friction, folding, knots, start, solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from crossing_surfaces import crossings

import femsim as fs
from contact import ContactError, ContactProblem, make_solver
from contact.side_kernels import EDGE_EDGE, POINT_SEGMENT, VERTEX_FACE
from femsim.run.selection import exerted
from femsim.step.contact_family import FamilyRows, Found, Rates
from femsim.step.deforming_contacts import DeformingFamily
from femsim.step.report import StepReport
from femsim.step.rows_kernels import Given
from femsim.step.stepper import Stepper

G = 9.81
RUBBER = fs.Elastic(2e5, 0.3, 1000.0, rayleigh_beta=1e-3, name="rubber")
CABLE = fs.Elastic(1e6, 0.4, 1200.0, rayleigh_beta=1e-3, name="cable")
RADIUS = 0.004


def line(length: float, links: int, *, y: float = 0.0, z: float = 0.0, slope: float = 0.0) -> np.ndarray:
    x = np.linspace(-0.5 * length, 0.5 * length, links + 1)
    return np.column_stack([x, y + slope * x, z + 0 * x])


def across(points: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(points[:, [1, 0, 2]])


def total_energy(run: fs.Run) -> np.ndarray:
    return np.asarray(run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"] - run.steps["work_J"])


def momentum(run: fs.Run) -> np.ndarray:
    return np.column_stack([run.steps[f"momentum_{c}_kgmps"] for c in "xyz"])


def mixed_scene(*, contact: str = "centre", reverse: bool = False) -> fs.Scene:
    """Two blocks, one on the other, a rod across them and a rod across that."""
    scene = fs.Scene("mixed", dt=0.005, duration=0.1, theta=1.0)
    scene.add_floor()
    block = fs.box_tets((0.06, 0.06, 0.03), (3, 3, 2))
    bodies: list[Callable[[], fs.Handle]] = [
        lambda: scene.add_soft("low", block, RUBBER, position=(0, 0, 0.015)),
        lambda: scene.add_soft("high", block, RUBBER, position=(0.004, 0.006, 0.0451), rotation=(0, 0, 0.4)),
        lambda: scene.add_rod(
            "rod", line(0.14, 20, z=0.0645), fs.circular_section(RADIUS), CABLE, translational_damping=0.1, contact=contact
        ),
        lambda: scene.add_rod(
            "thin",
            across(line(0.08, 16, z=0.0711)),
            fs.circular_section(0.0025),
            CABLE,
            translational_damping=0.1,
            contact=contact,
        ),
    ]
    for add in bodies[::-1] if reverse else bodies:
        add()
    for name in ("low", "high", "rod", "thin", "floor"):
        scene.sensor(name, name)
    return scene


@pytest.fixture(scope="module")
def pressed() -> Stepper:
    """The mixed scene after 10 steps: contacts of every kind press, on the surface of rods, too."""
    stepper = Stepper(mixed_scene(contact="surface"), make_solver("exact"))
    for _ in range(10):
        assert stepper.step().solution.converged
    return stepper


def deforming(stepper: Stepper) -> DeformingFamily:
    """The contacts of deforming bodies with each other."""
    family = stepper.contacts.families[1]
    assert isinstance(family, DeformingFamily)
    return family


def found_within(stepper: Stepper, margin: float) -> Found:
    """Contacts of deforming bodies in the current state."""
    return stepper.contacts.detect(stepper.state, stepper.placed, [margin, margin])[1]


def rows_of(stepper: Stepper, found: Found) -> tuple[FamilyRows, sp.csr_matrix]:
    """Rows of these contacts at rest, and their Jacobian."""
    rows = deforming(stepper).rows(found, Given(stepper.system.prescribed, np.zeros(stepper.system.n), 0.005, 0.2, 0.5))
    return rows, sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(3 * len(rows), stepper.system.n))


def test_rows_are_the_velocities_of_the_points_in_contact(pressed: Stepper) -> None:
    """J v of every contact from the state moved by a tiny step, by the weights of the points; all kinds are there."""
    family, system, found = deforming(pressed), pressed.system, found_within(pressed, 5e-3)
    c, where = found.contacts, found.points
    rows, J = rows_of(pressed, found)
    assert set(c.kind) == {VERTEX_FACE, EDGE_EDGE, POINT_SEGMENT} and len(rows) == len(c)
    rng = np.random.default_rng(2)
    v = rng.standard_normal(system.n)
    v[system.prescribed] = 0.0
    u = (J @ v).reshape(-1, 3)
    # by hand: velocity of the point of the surface or line, for rods plus w x (place of the contact - that point)
    for m in range(len(c)):
        sides = []
        for side in range(2):
            velocity, turn, point_of_gap = np.zeros((3, 3))
            for point, weight in zip(c.point[m, side], c.weight[m, side], strict=True):
                for node, share in zip(family._node[point], family._weight[point], strict=True):
                    row = family._row[node]
                    velocity += weight * share * v[row : row + 3]
                    turn += weight * share * (v[row + 3 : row + 6] if family._columns[row] == 6 else np.zeros(3))
                    point_of_gap += weight * share * where[node]
            sides.append(velocity + np.cross(turn, c.position[m, side] - point_of_gap))
        np.testing.assert_allclose(u[m], c.frame[m] @ (sides[0] - sides[1]), atol=1e-12)


def test_links_that_turn_about_their_centres_close_no_gap(pressed: Stepper) -> None:
    """The line through the centres does not move; rows did see up to a quarter of a link times the difference of two turns."""
    found = found_within(pressed, 5e-3)
    _, J = rows_of(pressed, found)
    v = np.zeros(pressed.system.n)
    for body, rows in zip(pressed.system.bodies, pressed.system.v_slices, strict=True):
        if body.kind == "links":
            v[rows].reshape(-1, 6)[:, 3:] = np.random.default_rng(3).standard_normal((body.n_links, 3))
    u = (J @ v).reshape(-1, 3)
    assert (np.abs(u[:, 1:]).max(axis=1) > 1e-4).sum() > 10  # rods roll
    np.testing.assert_allclose(u[:, 0], 0.0, atol=1e-12)


def test_a_rigid_motion_moves_no_contact(pressed: Stepper) -> None:
    """All bodies turn and move as one: every relative velocity at a closed contact is zero, up to gap times the spin."""
    system, state, found = pressed.system, pressed.state, found_within(pressed, 5e-3)
    kept, J = rows_of(pressed, found)
    spin, speed = np.array([0.3, -0.7, 1.1]), np.array([1.0, 2.0, -0.5])
    v = np.zeros(system.n)
    for body, q, rows in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        if body.kind == "links":
            own = v[rows].reshape(-1, 6)
            own[:, :3], own[:, 3:] = speed + np.cross(spin, body.centres(state.q[q])), spin
        else:
            v[rows] = (speed + np.cross(spin, state.q[q].reshape(-1, 3))).ravel()
    u = np.linalg.norm((J @ v).reshape(-1, 3), axis=1)
    gap = np.abs(found.contacts.gap[kept.keep])
    assert len(u) > 30
    assert (u <= np.linalg.norm(spin) * gap + 1e-12).all()


def test_forces_on_nodes_are_those_of_the_problem(pressed: Stepper) -> None:
    """The generalized force is J^T lam; wrenches of parts in contact add up to those of the outside."""
    contacts = pressed.contacts
    found = contacts.detect(pressed.state, pressed.placed, [5e-3, 5e-3])
    rows = contacts.rows(found, np.zeros(pressed.system.n), 0.005)
    lam = np.random.default_rng(1).standard_normal((len(rows.phi), 3))
    forces, _ = contacts.accept(rows, lam, np.zeros_like(lam))
    expected = rows.J.T @ lam.ravel()
    free = ~pressed.system.prescribed
    np.testing.assert_allclose(forces.generalized[free], expected[free], atol=1e-11)
    inner = forces.wrench[:, :3].sum(axis=0)
    np.testing.assert_allclose(inner, 0.0, atol=1e-11)  # the floor is a part, too: all forces are internal


def stacked_problem() -> ContactProblem:
    """A block that lands askew on another one, in the step in which they touch."""
    scene = fs.Scene("stack", dt=0.01, duration=0.1, theta=1.0)
    scene.add_floor()
    mesh = fs.box_tets((0.1, 0.1, 0.1), 3)
    scene.add_soft("low", mesh, RUBBER, position=(0, 0, 0.05))
    scene.add_soft("top", mesh, RUBBER, position=(0.004, 0.003, 0.1505), rotation=(0, 0, 0.3))
    stepper = Stepper(scene, make_solver("exact"))
    for _ in range(5):
        stepper.step()
    assert stepper.problem is not None
    return stepper.problem


@pytest.mark.parametrize("solver", ["cond", "pgs", "apgd", "ccs"])
def test_solvers_agree_on_bodies_in_contact(pressed: Stepper, solver: str) -> None:
    """To 1e-8 by true residuals; COND on two blocks: rods that touch on their surface are too stiff for it (docs/contact.md)."""
    problem = stacked_problem() if solver == "cond" else pressed.problem
    assert problem is not None
    reference = make_solver("exact", tolerance=1e-11).solve(problem)
    found = make_solver(solver, tolerance=1e-8, max_iterations=100000).solve(problem)
    assert found.converged
    difference = found.v - reference.v
    energy = np.sqrt(difference @ (problem.A @ difference) / (reference.v @ (problem.A @ reference.v)))
    assert energy < 1e-5
    if solver == "cond":
        assert found.details["virtual_nodes"] > 20


def test_banded_refuses_rods_that_touch_and_auto_does_not_pick_it() -> None:
    scene = fs.Scene("rods", dt=0.005, duration=0.1, theta=1.0)
    scene.add_rod("a", line(0.1, 10), fs.circular_section(RADIUS), CABLE, start=fs.RodEnd("clamped"), end=fs.RodEnd("clamped"))
    scene.add_rod("b", across(line(0.1, 10, z=0.0081)), fs.circular_section(RADIUS), CABLE)
    run = fs.simulate(scene)
    assert run.status == "converged"
    problem = run.stepper.problem
    assert problem is not None and problem.n_contacts > 0
    with pytest.raises(ContactError, match="rods alone"):
        make_solver("banded").solve(problem)
    assert make_solver("auto").solve(problem).details["picked"] != "banded"


def test_two_free_cubes_that_collide_keep_their_momentum() -> None:
    """Linear momentum to rounding, angular momentum within the gap times the force, and energy never grows."""
    scene = fs.Scene("collision", dt=0.002, duration=0.1, gravity=(0, 0, 0), default_friction=0.4, theta=1.0)
    mesh = fs.box_tets((0.05, 0.05, 0.05), 3)
    scene.add_soft("a", mesh, RUBBER, velocity=(1.0, 0.2, 0.0))
    scene.add_soft("b", mesh, RUBBER, position=(0.071, 0.011, 0.007), rotation=(0.2, 0.1, 0.5), velocity=(-1.0, 0.0, 0.3))
    run = fs.simulate(scene, solver="exact", tolerance=1e-12)
    assert run.status == "converged"
    p = momentum(run)
    assert np.abs(p - p[0]).max() < 1e-12
    assert run.steps["contacts"].max() > 5
    assert np.diff(total_energy(run)).max() < 1e-9
    assert run.steps["max_penetration_m"].max() < 2e-4  # corners meet edges at 4 mm a step
    system, state = run.stepper.system, run.stepper.state
    v0 = system.initial_state()

    def spin(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        mass = np.concatenate([body.node_mass for body in system.bodies])
        return np.cross(q.reshape(-1, 3), mass[:, None] * v.reshape(-1, 3)).sum(axis=0)

    # b turned a away: it lost speed along x
    assert state.v.reshape(-1, 3)[: len(mesh.points), 0].mean() < 0.5
    start, end = spin(v0.q, v0.v), spin(state.q, state.v)
    assert np.linalg.norm(end - start) < 0.03 * 0.125 * 0.05  # of m v times the size; co-rotation itself keeps it to a per cent


def test_layers_of_a_cable_turn_as_one() -> None:
    """Two strands along each other on a drum slip by nothing where they turn about it, and their friction turns nothing.

    By the velocities of their centre lines alone they slipped by the spin times their distance, and what braked them came from
    nowhere. What selected contacts exert is what all do.
    """
    scene = fs.Scene("layers", dt=0.005, duration=0.1)
    for name, away in (("inner", 0.02), ("outer", 0.02 + 2.05 * RADIUS)):
        angle = np.linspace(0.0, 2.0, 41)
        points = away * np.column_stack([np.cos(angle), 0.0 * angle, np.sin(angle)])
        scene.add_rod(name, points, fs.circular_section(RADIUS), CABLE)
    stepper = Stepper(scene, make_solver("exact"))
    system, contacts = stepper.system, stepper.contacts
    rows = contacts.rows(contacts.detect(stepper.state, stepper.placed, [1e-3, 1e-3]), np.zeros(system.n), 0.005)
    places = [body.centres(stepper.state.q[q]) for body, q in zip(system.bodies, system.q_slices, strict=True)]
    v = np.zeros((system.n // 6, 6))
    v[:, :3] = np.cross([0.0, 3.0, 0.0], np.concatenate(places) - (0.1, 0.0, 0.2))
    u = (rows.J @ v.ravel()).reshape(-1, 3)
    assert len(u) > 30
    np.testing.assert_allclose(u, 0.0, atol=1e-12)
    lam = np.random.default_rng(4).standard_normal((len(u), 3))
    forces, _ = contacts.accept(rows, lam, np.zeros_like(lam))
    moments = np.cross(np.concatenate(places), forces.node_force.reshape(-1, 6)[:, :3])
    assert np.abs(moments[:, 1]).max() > 1e-3
    assert abs(moments[:, 1].sum()) < 1e-13
    for part, place in enumerate(places):
        own = slice(0, len(place)) if part == 0 else slice(len(places[0]), None)
        about = np.cross(forces.contacts.reference[part], forces.wrench[part, :3])
        np.testing.assert_allclose(forces.wrench[part, 3:] + about, moments[own].sum(axis=0), atol=1e-13)
        shares = (forces.contacts.part == part).astype(float)
        selected = exerted([(0.005, forces.contacts)], lambda _, shares=shares: shares, part)
        np.testing.assert_allclose(selected, forces.wrench[part], atol=1e-13)


def test_rods_that_slide_along_each_other_keep_their_angular_momentum() -> None:
    """They lost 7 %: equal and opposite friction on the centre lines, two radii apart, turned them."""
    scene = fs.Scene("along", dt=0.001, duration=0.02, gravity=(0, 0, 0), default_friction=0.3)
    stiff = fs.Elastic(1e8, 0.3, 1200.0, name="stiff")
    scene.add_rod("a", line(0.1, 20), fs.circular_section(0.002), stiff)
    thrown = line(0.1, 20, z=0.0041) + np.array([0.003, 0.0, 0.0])
    scene.add_rod("b", thrown, fs.circular_section(0.002), stiff, velocity=(0.3, 0.0, -0.2))
    run = fs.simulate(scene)
    system, state, start = run.stepper.system, run.stepper.state, run.stepper.system.initial_state()
    before, after = (
        sum(b.angular_momentum(x.q[q], x.v[v]) for b, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True))
        for x in (start, state)
    )
    assert run.status == "converged" and run.steps["friction_loss_J"][-1] > 5e-6
    np.testing.assert_allclose(after, before, atol=1e-6 * np.linalg.norm(before))


@pytest.mark.parametrize("contact", ["centre", "surface"])
def test_crossing_rods_keep_their_momentum(contact: str) -> None:
    """A rod thrown on another one, both free: linear momentum to rounding; they do not pass."""
    scene = fs.Scene("crossing", dt=0.002, duration=0.06, gravity=(0, 0, 0), default_friction=0.4, theta=1.0)
    scene.add_rod("a", line(0.1, 12), fs.circular_section(RADIUS), CABLE, contact=contact)
    thrown = across(line(0.1, 15, z=0.012)) + np.array([0.011, 0.007, 0.0])
    scene.add_rod("b", thrown, fs.circular_section(RADIUS), CABLE, velocity=(0.1, 0.0, -0.5), contact=contact)
    run = fs.simulate(scene)
    assert run.status == "converged"
    p = momentum(run)
    assert np.abs(p - p[0]).max() < 1e-10
    assert np.diff(total_energy(run)).max() < 1e-9
    assert run.steps["max_penetration_m"].max() < 2e-5
    a, b = (
        body.centres(run.stepper.state.q[q])
        for body, q in zip(run.stepper.system.bodies, run.stepper.system.q_slices, strict=True)
    )
    assert b[:, 2].mean() > a[:, 2].mean() + RADIUS


def test_rods_that_collide_on_their_surface_end_each_step_apart_and_keep_their_spin() -> None:
    """One step ended 0.058 mm deep, gained 0.8 % of the energy and was halved; one of 5 ms lost a per cent of the spin."""
    scene = fs.Scene("collision", dt=5e-4, duration=0.012, gravity=(0, 0, 0), default_friction=0.5)
    stiff = fs.Elastic(1e7, 0.3, 1200.0, name="stiff")
    scene.add_rod("a", line(0.2, 20), fs.circular_section(0.003), stiff, velocity=(0, 0, 0.5), contact="surface")
    askew = line(0.2, 20) @ np.array([[0.36, 0.93, 0.0], [-0.93, 0.36, 0.0], [0.0, 0.0, 1.0]]) + (0.03, 0.02, 0.014)
    scene.add_rod("b", askew, fs.circular_section(0.003), stiff, velocity=(0.3, 0, -0.5), contact="surface")
    run = fs.simulate(scene)
    system, state = run.stepper.system, run.stepper.state
    start = system.initial_state()
    before, after = (
        sum(b.angular_momentum(x.q[q], x.v[v]) for b, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True))
        for x in (start, state)
    )
    assert run.status == "converged" and run.steps["contacts"].any() and run.steps["elastic_energy_J"][-1] > 1e-4
    assert run.steps["substeps"].max() == 1
    assert run.steps["max_penetration_m"].max() < 1e-8
    assert np.diff(total_energy(run)).max() < 1e-12
    np.testing.assert_allclose(after, before, atol=1e-5 * np.linalg.norm(before))


def test_a_rod_that_slides_over_the_edges_of_a_soft_arch_flies_no_further_than_it_is_thrown() -> None:
    """By backward Euler at 5 ms; along the face of the start it went on straight past the edge, and rose to 1.5 mm.

    A body that leaves an edge with v flies on straight; of the next face, which falls away by d, it is v^2 sin^2 d / 2 g away.
    """
    speed, edges, turn = 0.5, 8, np.radians(120.0)
    scene = fs.Scene("arch", dt=0.005, duration=0.05, theta=1.0, default_friction=0.0)
    box = fs.box_tets((1.0, 1.0, 1.0), (edges, 2, 1))
    angle, away = turn * box.points[:, 0], 0.05 + 0.02 * box.points[:, 2]
    arch = replace(box, points=np.column_stack([away * np.sin(angle), 0.08 * box.points[:, 1], away * np.cos(angle)]))
    soft = fs.Elastic(1e6, 0.3, 500.0, rayleigh_beta=5e-3, name="soft")
    scene.add_soft("arch", arch, soft, fixed=lambda x: np.hypot(x[:, 0], x[:, 2]) < 0.041)
    points = across(line(0.06, 6)) + np.array([-0.02, 0.0, 0.0595])
    heavy = fs.Elastic(1e8, 0.4, 2e4, rayleigh_beta=1e-3, name="heavy")
    uphill = speed * np.array([np.cos(np.radians(19.0)), 0.0, np.sin(np.radians(19.0))])
    scene.add_rod("rod", points, fs.circular_section(0.003), heavy, velocity=uphill)
    scene.sensor("gap", "rod", kind="gap", partner="arch")
    run = fs.simulate(scene)
    flight = (speed * np.sin(turn / edges)) ** 2 / (2.0 * G)
    assert run.status == "converged" and 0.5 * flight < run.gauges["gap"].values["gap_m"].max() < flight


def test_stacked_bodies_carry_their_weight() -> None:
    """At rest, each body feels its own weight from its contacts; rod on rod on block on block on floor; forces balance."""
    scene = mixed_scene()
    scene.duration = 0.5
    run = fs.simulate(scene)
    assert run.status == "converged"
    weight = {name: scene.body(name).mass * G for name in ("low", "high", "rod", "thin")}
    for name, value in weight.items():
        np.testing.assert_allclose(run.sensors[name].force[-1], [0, 0, value], atol=5e-3 * value)
    np.testing.assert_allclose(run.sensors["floor"].force[-1, 2], -sum(weight.values()), rtol=2e-3)
    assert run.steps["wrench_balance"].max() < 1e-9
    assert run.steps["max_penetration_m"].max() < 1e-4
    assert np.diff(total_energy(run)).max() < 1e-8


def test_the_order_of_bodies_does_not_matter() -> None:
    runs = [fs.simulate(mixed_scene(reverse=reverse), tolerance=1e-10) for reverse in (False, True)]
    for name in ("low", "high", "rod", "thin"):
        q = [r.stepper.state.q[r.stepper.system.q_slices[r.stepper.scene.bodies.index(r.stepper.scene.body(name))]] for r in runs]
        np.testing.assert_allclose(q[0], q[1], atol=2e-7)
        np.testing.assert_allclose(runs[0].sensors[name].force, runs[1].sensors[name].force, atol=2e-4)


@pytest.mark.parametrize(("slope", "slides"), [(0.45, False), (0.55, True)])
def test_a_block_on_a_soft_slope_sticks_below_mu_and_slides_above(slope: float, slides: bool) -> None:
    """Gravity leans by ``slope`` against a friction of 0.5 between two soft blocks; the lower one stands on a sticky floor."""
    lean = np.arctan(slope)
    scene = fs.Scene("slope", dt=0.005, duration=0.5, gravity=(G * np.sin(lean), 0, -G * np.cos(lean)), theta=1.0)
    base = fs.box_tets((0.12, 0.06, 0.02), (6, 3, 1))
    scene.add_soft("base", base, RUBBER, position=(0, 0, 0.01), surface="base", fixed=lambda p: p[:, 2] < 1e-9)
    scene.add_soft("block", fs.box_tets((0.04, 0.04, 0.01), (3, 3, 1)), RUBBER, position=(-0.03, 0.001, 0.02501))
    scene.set_friction("base", "rubber", 0.5)
    run = fs.simulate(scene)
    assert run.status == "converged"
    speed = run.stepper.state.v[run.stepper.system.v_slices[1]].reshape(-1, 3)[:, 0].mean()
    if slides:
        expected = G * (np.sin(lean) - 0.5 * np.cos(lean)) * 0.5
        np.testing.assert_allclose(speed, expected, rtol=0.1)
    else:
        assert abs(speed) < 1e-9  # creep below 1e-6 mm/s


def folded_mat(young_modulus: float, radius: float, *, self_contact: bool) -> fs.Scene:
    """A mat of 140 x 60 x 4 mm that lies folded over at the start, both layers apart, and falls together."""
    thickness = 0.004
    mesh = fs.box_tets((0.14, 0.06, thickness), (14, 6, 1))
    scene = fs.Scene("mat", dt=0.005, duration=0.12, default_friction=0.3, theta=1.0)
    scene.add_floor()
    mat = fs.Elastic(young_modulus, 0.3, 1000.0, rayleigh_beta=1e-2, name="mat")
    scene.add_soft("mat", mesh, mat, position=(0, 0, 0.5 * thickness), self_contact=self_contact)
    scene.sensor("mat", "mat")
    scene.sensor("slip", "mat", kind="slip")
    body = scene.body("mat")
    x, height = body.rest[:, 0], body.rest[:, 2] - 0.5 * thickness
    angle, beyond = np.clip(x / radius, 0, np.pi), np.maximum(x - np.pi * radius, 0)
    middle = np.column_stack(
        [
            np.where(x < 0, x, radius * np.sin(angle) - beyond),
            body.rest[:, 1],
            0.5 * thickness + radius - radius * np.cos(angle),
        ]
    )
    start = middle + height[:, None] * np.column_stack([-np.sin(angle), 0 * angle, np.cos(angle)])
    body.initial_q = lambda: start.ravel().copy()
    return scene


def test_a_folded_mat_lies_on_itself() -> None:
    """Gravity lays the upper layer on the lower one: no vertex or edge gets inside, energy never grows; else it falls through."""
    through = fs.simulate(folded_mat(8e3, 0.008, self_contact=False))
    triangles = through.stepper.scene.parts[1].triangles
    assert crossings(through.stepper.state.q.reshape(-1, 3), triangles) > 10
    reports: list[StepReport] = []
    run = fs.simulate(folded_mat(8e3, 0.008, self_contact=True), on_step=lambda stepper, report: reports.append(report))
    assert run.status == "converged"
    assert run.steps["max_penetration_m"].max() < 1e-5
    assert run.steps["inverted_elements"].max() == 0
    assert np.diff(total_energy(run)).max() < 1e-8
    assert not crossings(run.stepper.state.q.reshape(-1, 3), triangles)
    last = reports[-1]
    assert (last.contacts.gap[last.contacts.point[:, 1, 0] >= 0] < 1e-6).sum() >= 4  # of the mat with itself
    np.testing.assert_allclose(run.sensors["mat"].force[-1], last.forces.wrench[1, :3], atol=1e-12)
    # every contact is one of the mat, and a contact with itself counts once
    loss = run.steps["friction_loss_J"]
    assert loss[-1] > 1e-6
    np.testing.assert_allclose(run.gauges["slip"].values["friction_J"], loss, rtol=1e-9, atol=1e-15)


def test_a_knot_pulled_tight_does_not_pass_through_itself() -> None:
    """An overhand knot in a rope, pulled by both ends: penetration stays far below the radius, so it cannot slip through."""
    t = np.linspace(-2.15, 2.15, 2000)
    curve = 0.024 * np.column_stack([t**3 - 3 * t, t**4 - 4 * t**2, (t**5 - 10 * t) / 7])
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
    points = np.column_stack([np.interp(np.linspace(0, along[-1], 101), along, curve[:, c]) for c in range(3)])
    scene = fs.Scene("knot", dt=0.002, duration=1.0, gravity=(0, 0, 0), default_friction=0.2, theta=1.0)
    ends = [fs.RodEnd("hinged", motion=fs.Motion([0, 0.9], [(0, 0, 0), (side * 0.2, -0.02, 0)])) for side in (-1, 1)]
    scene.add_rod(
        "rope", points, fs.circular_section(0.003, bending=0.02), fs.Elastic(2e6, 0.4, 1200.0, rayleigh_beta=2e-3, name="rope"),
        start=ends[0], end=ends[1], self_contact=True, translational_damping=0.5,
    )  # fmt: skip
    scene.sensor("rope", "rope")
    run = fs.simulate(scene)
    assert run.status == "converged"
    assert run.steps["max_penetration_m"].max() < 0.1 * 0.003
    assert run.steps["contacts"][-1] > 5  # it is tight: without self contact there is none
    np.testing.assert_allclose(run.sensors["rope"].force[-1], 0.0, atol=1e-12)  # inner forces cancel
    centres = scene.body("rope").centres(run.stepper.state.q)
    straight = np.linalg.norm(centres[-1] - centres[0])
    assert straight < 0.95 * scene.body("rope").lengths.sum()  # the knot takes its length


@pytest.mark.parametrize("speed", [2.0, 10.0])
def test_fast_bodies_do_not_pass_through_thin_ones(speed: float) -> None:
    """A block and a rod shot at a mat of 4 mm: 10 m/s are 20 mm a step; the margin of the detection grows with the speed."""
    scene = fs.Scene("shot", dt=0.002, duration=0.02, gravity=(0, 0, 0), theta=1.0)
    mat = fs.box_tets((0.08, 0.08, 0.004), (6, 6, 1))
    scene.add_soft("mat", mat, RUBBER, fixed=lambda p: np.abs(p[:, 0]) > 0.0399)
    scene.add_soft("block", fs.box_tets((0.02, 0.02, 0.02), 2), RUBBER, position=(0.003, 0.002, 0.04), velocity=(0, 0, -speed))
    scene.add_rod("rod", line(0.03, 6, y=0.001, z=-0.03), fs.circular_section(0.002), CABLE, velocity=(0, 0, speed))
    run = fs.simulate(scene)
    assert run.status == "converged"
    system, state = run.stepper.system, run.stepper.state
    block = state.q[system.q_slices[1]].reshape(-1, 3)
    rod = run.stepper.system.bodies[2].centres(state.q[system.q_slices[2]])
    mid = state.q[system.q_slices[0]].reshape(-1, 3)[np.abs(mat.points[:, :2]).max(axis=1) < 0.015, 2].mean()
    assert block[:, 2].mean() > mid and rod[:, 2].mean() < mid


def test_bodies_that_overlap_at_the_start_are_named() -> None:
    def scene(height: float, rod_height: float) -> fs.Scene:
        mesh = fs.box_tets((0.05, 0.05, 0.05), 2)
        scene = fs.Scene("start", duration=0.01, theta=1.0)
        scene.add_soft("low", mesh, RUBBER)
        scene.add_soft("high", mesh, RUBBER, position=(0.003, 0.004, height))
        scene.add_rod("rod", line(0.2, 10, y=0.2, z=rod_height), fs.circular_section(RADIUS), CABLE)
        scene.add_rod("other", across(line(0.2, 10, y=0.01)) + np.array([0, 0.2, 0]), fs.circular_section(RADIUS), CABLE)
        return scene

    with pytest.raises(fs.InputError, match=r"'low' and 'high' overlap by 20 mm at the start; allowed are less than"):
        fs.simulate(scene(0.03, 0.1))
    with pytest.raises(fs.InputError, match=r"'rod' and 'other' overlap by 6 mm"):
        fs.simulate(scene(0.06, 0.002))
    run = fs.simulate(scene(0.048, 0.1))
    (note,) = run.info["notes"]
    assert note == "low and high overlap by 2 mm at the start; contact pushes them apart, at up to 0.5 m/s"
    assert run.status == "converged"


def test_self_contact_is_off_by_default_and_costs_nothing() -> None:
    scene = fs.Scene("one", duration=0.02, theta=1.0)
    scene.add_soft("cube", fs.box_tets((0.1, 0.1, 0.1), 2), RUBBER)
    assert len(Stepper(scene, make_solver("exact")).contacts.families) == 1


def test_a_rod_reaches_to_its_ends() -> None:
    """The points of a straight rod with links of two lengths: its ends and the centres between them."""
    x = np.concatenate([np.linspace(0, 0.03, 4), np.linspace(0.03, 0.05, 5)[1:]])
    points = np.column_stack([x, 0 * x, 0 * x])
    scene = fs.Scene("ends", duration=0.01, theta=1.0)
    scene.add_rod("rod", points, fs.circular_section(RADIUS), CABLE)
    scene.add_rod("other", across(line(0.1, 10, z=0.2)), fs.circular_section(RADIUS), CABLE)
    found = found_within(Stepper(scene, make_solver("exact")), 0.0)
    centres = 0.5 * (points[1:] + points[:-1])
    np.testing.assert_allclose(found.points[:9], np.concatenate([points[:1], centres, points[-1:]]), atol=1e-15)


def test_the_margin_follows_what_closes() -> None:
    """Bodies that fly together close by nothing; their common speed does not widen the margin between them."""
    scene = fs.Scene("flight", duration=0.01, theta=1.0)
    mesh = fs.box_tets((0.05, 0.05, 0.05), 1)
    scene.add_soft("a", mesh, RUBBER, velocity=(5.0, 0, 0))
    scene.add_soft("b", mesh, RUBBER, position=(0.2, 0, 0), velocity=(5.0, 0, 0))
    scene.add_soft("c", mesh, RUBBER, position=(0.4, 0, 0), velocity=(2.0, 4.0, 0))
    stepper = Stepper(scene, make_solver("exact"))
    speeds = deforming(stepper).speeds(stepper.placed, Rates(stepper.state.v_hat, np.zeros(stepper.system.n)))
    np.testing.assert_allclose(speeds, [[0, 0, 5.0], [0, 0, 5.0], [5.0, 5.0, 0]], atol=1e-12)
