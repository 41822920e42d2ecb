"""The nonlinear step: its residual, Newton's method, and the energy-momentum scheme."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hollow_boxes import hollow_box
from pendulums import PENDULUMS, swing
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import WarmStart
from contact.solvers import make_solver
from contact.solvers.auto import Auto
from femsim.model.actuators import find_chamber
from femsim.model.bodies.momentum_kernels import step_forces
from femsim.model.bodies.rigid_kernels import free_rotation
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from femsim.step.advance import take_step
from femsim.step.newton import Newton, Solved, solve_step
from femsim.step.stepper import Stepper
from materials import Elastic, Law, MooneyRivlin, Ogden

NU = 0.3
LAWS: list[Law] = [
    fs.Corotational(), fs.StVenantKirchhoff(), fs.StableNeoHookean(), MooneyRivlin(3e4, 1e4), Ogden((3e4, -1e4), (1.7, -2.5)),
]  # fmt: skip
RATE = np.array([0.0, 0.0, 4.0 * np.pi])


def rubber(law: Law, young: float = 1e5, nu: float = NU, **damping: float) -> Elastic:
    """Material of a law; laws with a shear modulus of their own say theirs."""
    mu = law.shear_modulus or young / (2.0 * (1.0 + nu))
    return Elastic(2.0 * mu * (1.0 + nu), nu, 1000.0, law=law, name="rubber", **damping)


def spinning(
    law: Law, element: Any, *, young: float = 1e5, nu: float = NU, dt: float = 0.01, beta: float = 0.0, **options: Any
) -> Stepper:
    """A free bar that turns twice a second, from its shape at rest."""
    scene = fs.Scene("spin", dt=dt, gravity=(0, 0, 0), **options)
    scene.add_soft("bar", fs.box_tets((0.06, 0.03, 0.02), (2, 1, 1)), rubber(law, young, nu, rayleigh_beta=beta), element=element)
    stepper = Stepper(scene, make_solver("auto"))
    body, state = scene.bodies[0], stepper.state
    state.v[:] = np.cross(RATE, state.q.reshape(-1, 3) - body.centre_of_mass(state.q)).ravel()
    state.v_hat = state.v.copy()
    return stepper


def spin_and_energy(stepper: Stepper) -> tuple[float, float]:
    """Angular momentum about z through the origin, and energy, of the first body."""
    body, state = stepper.scene.bodies[0], stepper.state
    assert isinstance(body, SoftBody)
    x, v = state.q.reshape(-1, 3), state.v.reshape(-1, 3)
    spin = float((body.node_mass[:, None] * np.cross(x, v)).sum(axis=0)[2])
    return spin, body.kinetic_energy(state.q, state.v) + body.elastic_energy(state.q)


# ------------------------------------------------------------------ energy and momentum


@pytest.mark.parametrize("element", ["linear", "quadratic"])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_spinning_rubber_keeps_momentum_and_energy(law: Law, element: str) -> None:
    """Half a turn at a tight tolerance, without damping."""
    stepper = spinning(law, element, integrator="energy-momentum", strain_damping=0.0, nonlinear_tolerance=5e-9)
    spin, energy = spin_and_energy(stepper)
    largest = 0.0
    for _ in range(25):
        report = stepper.step()
        assert report.nonlinear_residual <= 5e-9 and report.solves > 2
        now = spin_and_energy(stepper)
        assert now == pytest.approx((spin, energy), rel=1e-8)
        largest = max(largest, report.elastic_energy)
    assert largest > 1e-4 * energy  # it does swell and shrink


@pytest.mark.parametrize(("young", "nu"), [(1e5, 0.3), (1e6, 0.45)])
@pytest.mark.parametrize("element", ["linear", "quadratic"])
@pytest.mark.parametrize("law", [fs.StableNeoHookean(), fs.Corotational()], ids=lambda law: type(law).__name__)
def test_at_the_default_tolerance_energy_never_grows(law: Law, element: str, young: float, nu: float) -> None:
    """In free flight a tenth of the tolerance is asked for: at all of it the co-rotational bar loses ten times as much spin."""
    stepper = spinning(law, element, young=young, nu=nu, integrator="energy-momentum")
    spin, energy = spin_and_energy(stepper)
    for _ in range(50):
        assert stepper.step().nonlinear_residual <= 1e-5
        now = spin_and_energy(stepper)
        assert now[0] == pytest.approx(spin, rel=1e-6) and energy * (1 - 1e-3) < now[1] <= energy * (1 + 1e-7)


def test_one_linearisation_a_step_loses_what_the_solved_step_keeps() -> None:
    """Backward Euler once linearised, solved, and the mid-point rule solved: the measured failure, and its cure."""
    kept = []
    for options in ({"nonlinear_tolerance": None}, {"nonlinear_tolerance": 1e-8}, {"nonlinear_tolerance": 1e-8, "theta": 0.5}):
        stepper = spinning(fs.StableNeoHookean(), "linear", **{"theta": 1.0} | options)
        spin, _ = spin_and_energy(stepper)
        reports = [stepper.step() for _ in range(50)]
        kept.append(spin_and_energy(stepper)[0] / spin)
        solved = options["nonlinear_tolerance"] is not None
        assert all((report.solves > 1, report.nonlinear_residual <= 1e-8) == (solved, solved) for report in reports)
        assert all(report.solution.converged for report in reports)
    assert kept[0] < 0.3 and kept[1] == pytest.approx(0.625, abs=0.01) and kept[2] == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("law", [fs.Corotational(), fs.StableNeoHookean()], ids=lambda law: type(law).__name__)
def test_damping_by_stiffness_does_not_brake_turns(law: Law) -> None:
    """The mid-point rule keeps the angular momentum of a free bar; K of the start took all but 7 % of it, or turned it round."""
    for dt, steps in ((0.01, 20), (0.06, 1)):
        stepper = spinning(law, "linear", young=1e6, beta=0.01, theta=0.5, dt=dt)
        spin = spin_and_energy(stepper)[0]
        for _ in range(steps):
            stepper.step()
        assert spin_and_energy(stepper)[0] == pytest.approx(spin, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "beta"),
    [({"integrator": "energy-momentum", "strain_damping": 0.0}, b) for b in (0.0, 0.02)] + [({"theta": 0.5}, 0.0)],
)
def test_a_vibration_is_of_second_order_in_dt(options: dict[str, Any], beta: float) -> None:
    """A clamped bar is let go from straight; its tip after 40 ms at three steps. Damped by stiffness too: else 2.7."""
    found = []
    for steps in (16, 32, 64):
        scene = fs.Scene("swing", dt=0.04 / steps, nonlinear_tolerance=1e-9, **options)
        mesh = fs.box_tets((0.06, 0.02, 0.02), (4, 1, 1))
        material = rubber(fs.StableNeoHookean(), 2e4, rayleigh_beta=beta)
        scene.add_soft("bar", mesh, material, fixed=lambda x: x[:, 0] < -0.0299)
        stepper = Stepper(scene, make_solver("auto"))
        for _ in range(steps):
            stepper.step()
        found.append(stepper.state.q.reshape(-1, 3)[np.argmax(mesh.points[:, 0]), 2])
    order = np.log2((found[0] - found[1]) / (found[1] - found[2]))
    assert abs(found[2] - found[0]) > 1e-7 and order == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("law", ["corotational", "stable_neo_hookean"])
def test_a_released_bar_of_rubber_swings_as_far_as_it_should(law: str) -> None:
    """Nearly incompressible, quadratic elements, mid-point rule, clamped at one end: 13.6 mm by steps of 2.5 ms and less.

    Once linearised it gained 0.7 times the drop in this first swing.
    """
    scene = fs.Scene("released", dt=0.005, duration=0.125, theta=0.5)
    mesh = fs.box_tets((0.1, 0.03, 0.03), (10, 3, 3), alternating=False)
    material = Elastic(263824.0, 0.499, 1070.0, name="rubber")
    bar = scene.add_soft("bar", mesh, material, law=law, element="quadratic", fixed=lambda x: x[:, 0] > 0.0499)
    tip = int(np.argmin(((mesh.points - (-0.05, 0, 0)) ** 2).sum(axis=1)))
    scene.sensor("tip", bar, kind="marker", node=tip)
    run = fs.simulate(scene, quiet=True)
    height = run.markers["tip"].position[:, 2] - mesh.points[tip, 2]
    assert run.status == "converged" and height.min() == pytest.approx(-0.0136, rel=0.01)
    energy = sum(run.steps[f"{kind}_energy_J"] for kind in ("kinetic", "elastic", "potential"))
    drop = run.steps["potential_energy_J"][0] - run.steps["potential_energy_J"].min()
    assert np.abs(energy - energy[0]).max() < 0.01 * drop


@pytest.mark.parametrize("law", ["corotational", "st_venant_kirchhoff", "stable_neo_hookean"])
def test_nearly_incompressible_rubber_swings_by_energy_momentum(law: str) -> None:
    """Few solves a step, and energy that never grows: damping of the whole lambda at each point took 31 solves and locked."""
    scene = fs.Scene("released", dt=0.005, duration=0.125, integrator="energy-momentum")
    mesh = fs.box_tets((0.1, 0.03, 0.03), (4, 2, 2))
    material = Elastic(263824.0, 0.499, 1070.0, name="rubber")
    scene.add_soft("bar", mesh, material, law=law, element="quadratic", fixed=lambda x: x[:, 0] > 0.0499)
    run = fs.simulate(scene, quiet=True)
    energy = sum(run.steps[f"{kind}_energy_J"] for kind in ("kinetic", "elastic", "potential"))
    drop = run.steps["potential_energy_J"][0] - run.steps["potential_energy_J"].min()
    assert run.status == "converged" and run.steps["substeps"].max() == 1 and run.steps["solves"].mean() < 4.0
    assert np.diff(energy).max() < 1e-4 * drop and energy[-1] > energy[0] - 0.2 * drop


@pytest.mark.parametrize("element", ["linear", "quadratic"])
def test_damping_by_stiffness_leaves_rotation_alone(element: str) -> None:
    """By K of the start a bar with a beta of 2 ms lost 0.65 of its angular momentum in a turn, and kinetic energy with it."""
    scene = fs.Scene("spin", dt=0.01, gravity=(0, 0, 0), nonlinear_tolerance=1e-8)
    mesh = fs.box_tets((0.06, 0.03, 0.02), (2, 1, 1))
    scene.add_soft("bar", mesh, rubber(fs.StableNeoHookean(), rayleigh_beta=2e-3), element=element, angular_velocity=RATE)
    stepper = Stepper(scene, make_solver("auto"))
    spin, energy = spin_and_energy(stepper)
    for _ in range(50):
        assert stepper.step().solution.converged
        before, (now, energy_now) = energy, spin_and_energy(stepper)
        energy = energy_now
        assert now == pytest.approx(spin, rel=1e-8) and energy <= before * (1.0 + 1e-6)
    assert energy > 0.999 * 0.5 * spin * RATE[2]


def test_what_energy_momentum_cannot_solve_is_taken_by_backward_euler() -> None:
    """With too few solves for either scheme: velocities would turn round and grow, and now fall; solved again, it goes on."""
    stepper = spinning(fs.StableNeoHookean(), "linear", young=1e7, nu=0.45, dt=0.02, max_solves=3)
    energy = [spin_and_energy(stepper)[1]]
    for _ in range(4):
        report = take_step(stepper, 1)
        energy.append(spin_and_energy(stepper)[1])
        assert report.theta == 1.0 and len(report.parts) == 1 and not report.solution.converged
    assert np.diff(energy).max() < 0.0
    stepper.newton = replace(stepper.newton, max_solves=25)
    report = take_step(stepper, 1)
    assert report.theta == 0.5 and report.solution.converged and stepper.settings.conserving


def test_a_tumbling_cube_gets_no_energy_from_nothing() -> None:
    """A soft cube of 8 g thrown on a floor with spin, dt 10 ms; once linearised it reached 12 J."""
    for tolerance in (None, 1e-4):
        scene = fs.Scene("tumbling", dt=0.01, duration=0.6, nonlinear_tolerance=tolerance, theta=1.0)
        scene.add_floor()
        scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 3), Elastic(1e6, 0.4, 1000.0), position=(0, 0, 0.05),
                       velocity=(1.0, 0, 0), angular_velocity=(0, 60.0, 0))  # fmt: skip
        stepper = Stepper(scene, make_solver("auto"))
        largest = max(report.kinetic_energy + report.elastic_energy for report in (stepper.step() for _ in range(60)))
        assert (largest < 0.06) == (tolerance is not None), largest


def test_strain_damping_takes_vibration_and_leaves_rotation() -> None:
    energies = []
    for damping in (0.0, 0.05, 0.5):
        stepper = spinning(fs.Corotational(), "linear", integrator="energy-momentum", strain_damping=damping,
                           nonlinear_tolerance=1e-9)  # fmt: skip
        spin, _ = spin_and_energy(stepper)
        for _ in range(50):
            stepper.step()
        assert spin_and_energy(stepper)[0] == pytest.approx(spin, rel=1e-8)
        energies.append(spin_and_energy(stepper)[1])
    assert energies[0] > energies[1] > energies[2] > 0.98 * energies[0]


# ------------------------------------------------------------------ forces of the energy-momentum step


def moved(body: SoftBody, seed: int, size: float) -> np.ndarray:
    return body.rest + size * np.random.default_rng(seed).standard_normal(body.rest.shape)


def room(body: SoftBody) -> np.ndarray:
    """Room for the stress of each point."""
    return np.empty((*body.point_elements().weight.shape, 6))


@pytest.mark.parametrize("element", ["linear", "quadratic"])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_step_forces_do_the_work_of_the_energy(law: Law, element: Any) -> None:
    """f . (x1 - x0) is the change of energy, to rounding; no net force, no moment about the middle; f itself at equal ends."""
    scene = fs.Scene("one", theta=1.0)
    scene.add_soft("body", fs.box_tets((0.02, 0.02, 0.02), 1), rubber(law, nu=0.45), element=element)
    body = scene.bodies[0]
    assert isinstance(body, SoftBody)
    x0, x1 = moved(body, 1, 6e-4), moved(body, 2, 6e-4) @ fs_rotation(0.4).T
    force = np.empty_like(x0)
    step_forces(x0, x1, *body.point_elements(), np.zeros(1), force, room(body))
    gained = body.elastic_energy(x1.ravel()) - body.elastic_energy(x0.ravel())
    size = np.abs(force * (x1 - x0)).sum()
    assert abs((force * (x1 - x0)).sum() - gained) < 1e-11 * size
    assert np.abs(force.sum(axis=0)).max() < 1e-12 * np.abs(force).sum()
    assert np.abs(np.cross(0.5 * (x0 + x1), force).sum(axis=0)).max() < 1e-12 * np.abs(force).sum() * 0.02
    step_forces(x0, x0, *body.point_elements(), np.full(1, 0.3), force, room(body))
    body.update_elements(x0.ravel())
    np.testing.assert_allclose(force, body.internal_force, rtol=0, atol=1e-9 * np.abs(force).max())
    step_forces(x0, x1, *body.point_elements(), np.full(1, 0.3), damped := np.empty_like(x0), room(body))
    assert (damped * (x1 - x0)).sum() > gained + 1e-3 * abs(gained)


def fs_rotation(angle: float) -> np.ndarray:
    """Rotation about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("nu", [0.3, 0.45])
@pytest.mark.parametrize("element", ["linear", "quadratic"])
def test_step_forces_are_those_of_the_formulas(element: Any, nu: float) -> None:
    """Slow twin: Gonzalez' stress of Saint Venant and Kirchhoff, whose energy is quadratic, is that of the mean strain.

    At nu 0.45 a part of lambda acts on the mean dilatation of a quadratic element, its damping too.
    """
    scene, damping = fs.Scene("one", theta=1.0), 0.2
    material = rubber(fs.StVenantKirchhoff(), nu=nu)
    scene.add_soft("body", fs.box_tets((0.02, 0.02, 0.02), 1), material, element=element)
    body = scene.bodies[0]
    assert isinstance(body, SoftBody)
    x0, x1 = moved(body, 1, 6e-4), moved(body, 2, 6e-4) @ fs_rotation(0.4).T
    elements = body.point_elements()
    wanted, stresses = np.zeros_like(x0), room(body)
    of_points = float(elements.point_lambda[0])
    assert (of_points < material.lame_lambda) == (element == "quadratic" and nu > 0.4)

    found = []

    def stress(strain: np.ndarray) -> np.ndarray:
        return 2.0 * material.lame_mu * strain + of_points * np.trace(strain) * np.eye(3)

    for nodes, gradients, weights in zip(elements.elements, elements.gradient, elements.weight, strict=True):
        ends = [[x[nodes].T @ gradient for gradient in gradients] for x in (x0, x1)]
        strains = np.array([[0.5 * (F.T @ F - np.eye(3)) for F in at] for at in ends])
        mean = np.trace(strains, axis1=2, axis2=3) @ weights / weights.sum()
        pressure = (material.lame_lambda - of_points) * (mean.mean() + damping * (mean[1] - mean[0]))
        for p, (gradient, weight) in enumerate(zip(gradients, weights, strict=True)):
            S = stress(strains[:, p].mean(axis=0)) + damping * stress(strains[1, p] - strains[0, p]) + pressure * np.eye(3)
            wanted[nodes] += weight * gradient @ (0.5 * (ends[0][p] + ends[1][p]) @ S).T
            found.append(S[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
    force = np.empty_like(x0)
    step_forces(x0, x1, *elements, np.full(1, damping), force, stresses)
    np.testing.assert_allclose(force, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())
    np.testing.assert_allclose(stresses.reshape(-1, 6), found, rtol=0, atol=1e-10 * np.abs(found).max())


def test_the_free_rotation_is_that_of_the_formula() -> None:
    """Slow twin: omega = I^-1 (L0 + exp(-dt omega) L0)/2 by scipy; False where there is none to be found."""
    rng = np.random.default_rng(7)
    frame = Rotation.from_rotvec(rng.standard_normal(3)).as_matrix()
    inertia = frame @ np.diag([0.02, 0.03, 0.045]) @ frame.T
    spin, omega = inertia @ np.array([3.0, 8.0, -4.0]), np.empty(3)
    assert free_rotation(np.linalg.inv(inertia), spin, 0.02, omega)
    at_end = Rotation.from_rotvec(-0.02 * omega).apply(spin)
    np.testing.assert_allclose(inertia @ omega, 0.5 * (spin + at_end), rtol=0, atol=1e-14)
    assert at_end @ np.linalg.solve(inertia, at_end) == pytest.approx(spin @ np.linalg.solve(inertia, spin), rel=1e-13)
    fast = [n for n in range(10, 60) if not free_rotation(np.linalg.inv(inertia), n * spin, 0.02, omega)]
    assert fast and not free_rotation(np.linalg.inv(inertia), fast[0] * spin, 0.02, omega)
    np.testing.assert_allclose(omega, np.linalg.solve(inertia, fast[0] * spin), rtol=1e-13)


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_the_equations_of_a_rod_are_those_of_its_first_linearisation(theta: float) -> None:
    """At rest, where a step starts, the residual is -b of ``assemble``, which is checked elsewhere; damping is A v's.

    Gyroscopic forces are those of the start in its first linearisation alone.
    """
    scene = fs.Scene("rod", dt=0.01, theta=theta)
    x = np.linspace(0.0, 0.1, 6)
    cable = Elastic(1e6, 0.4, 1200.0, rayleigh_alpha=3.0, rayleigh_beta=2e-3)
    scene.add_rod("rod", np.column_stack([x, 0.3 * x**2, 0 * x]), fs.circular_section(0.003), cable, rest_curvature=np.zeros(3),
                  start=fs.RodEnd("clamped"), translational_damping=0.2, rotational_damping=1e-4)  # fmt: skip
    stepper = Stepper(scene, make_solver("auto"))
    system, state, nothing = stepper.system, stepper.state, np.zeros(stepper.system.n)
    state.v[:] = np.random.default_rng(5).standard_normal(system.n)
    system.assemble(state, stepper.settings, nothing)
    first_A, first_b = system.A.toarray(), system.b.copy()
    rod = scene.bodies[0]
    assert isinstance(rod, Rod)
    gyroscopic = np.zeros((rod.n_links, 6))
    for i, (axes, inertia) in enumerate(zip(rod.axes(state.q), rod.link_inertia, strict=True)):
        w = state.v[6 * i + 3 : 6 * i + 6]
        gyroscopic[i, 3:] = np.cross(w, axes @ (inertia * (axes.T @ w)))
    for linear in (True, False):
        settings = replace(stepper.settings, linear=linear)
        system.residual(settings, nothing, nothing)
        system.linearise(settings, nothing)
        np.testing.assert_allclose(system.A.toarray(), first_A, rtol=1e-12, atol=1e-12 * np.abs(first_A).max())
        expected = first_b if linear else first_b + gyroscopic.ravel()
        np.testing.assert_allclose(system.b, expected, rtol=0, atol=1e-11 * np.abs(first_b).max())
    way = np.random.default_rng(6).standard_normal(system.n)

    def equations(at: np.ndarray) -> np.ndarray:
        system.residual(stepper.settings, at, nothing)
        system.linearise(stepper.settings, at)
        return np.asarray(system.A @ at - system.b)

    h = 1e-7  # rest is bent: what A drops of the curvature of the energy is some parts of a hundred
    change = (equations(h * way) - equations(-h * way)) / (2 * h)
    assert np.linalg.norm(first_A @ way - change) < 0.05 * np.linalg.norm(change)


@pytest.mark.parametrize("element", ["linear", "quadratic"])
def test_an_inverted_end_has_the_stress_of_the_middle(element: Any) -> None:
    scene = fs.Scene("one", theta=1.0)
    scene.add_soft("body", fs.box_tets((0.02, 0.02, 0.02), 1), rubber(fs.Corotational()), element=element)
    body = scene.bodies[0]
    assert isinstance(body, SoftBody)
    x0 = moved(body, 3, 2e-4)
    x1 = x0 * [1.0, 1.0, -0.2]
    force = np.empty_like(x0)
    step_forces(x0, x1, *body.point_elements(), np.zeros(1), force, stress := room(body))
    body.update_elements(0.5 * (x0 + x1).ravel())
    if element == "linear":
        np.testing.assert_allclose(force, body.internal_force, rtol=0, atol=1e-9 * np.abs(force).max())
    assert np.isfinite(force).all() and np.isnan(stress).all()


# ------------------------------------------------------------------ Newton


def stretched() -> Stepper:
    """A bar of neo-Hookean rubber that hangs in a hundredfold gravity: a smooth problem, no mode of it projected."""
    scene = fs.Scene("hanging", dt=0.02, gravity=(0, 0, -300.0), nonlinear_tolerance=1e-12, theta=1.0)
    mesh = fs.box_tets((0.02, 0.02, 0.06), (1, 1, 3))
    scene.add_soft("bar", mesh, rubber(fs.StableNeoHookean()), fixed=lambda x: x[:, 2] > 0.0299)
    return Stepper(scene, make_solver("exact", tolerance=1e-13, lag=False))


def solved(stepper: Stepper, newton: Newton) -> Solved:
    """Solve one step of a scene without contact, from its start."""
    system, state = stepper.system, stepper.state
    still = np.zeros(system.n)
    system.assemble(state, stepper.settings, still)
    rows = stepper.contacts.rows(
        stepper.contacts.detect(state, stepper.placed, [0.0] * len(stepper.contacts.families)), still, stepper.settings.dt
    )
    warm = WarmStart(state.v_hat, np.zeros((0, 3)))
    return solve_step(system, stepper.settings, rows, stepper.solver, warm, newton)


def test_newton_converges_quadratically_on_a_smooth_case() -> None:
    residuals = solved(stretched(), Newton(1e-12, 20, 0.0)).residuals
    tail = [r for r in residuals if 1e-11 < r < 0.05]
    assert len(tail) >= 3 and residuals[-1] <= 1e-12
    for before, after in pairwise(tail):
        assert after < 3.0 * before**1.7


def test_a_dropped_iterate_is_seen_in_the_residual() -> None:
    whole = solved(stretched(), Newton(1e-12, 20, 0.0))
    short = solved(stretched(), Newton(1e-12, whole.solves - 1, 0.0))
    assert whole.solution.converged and whole.residual <= 1e-12
    assert not short.solution.converged and short.residual > 1e-12 and "still lack" in short.solution.message
    assert short.residuals == whole.residuals[:-1]


def test_rounding_of_stiff_forces_is_no_reason_to_go_on() -> None:
    """A tolerance that numbers cannot reach: the step is solved to rounding, and says what is left; real errors count."""
    stepper = spinning(fs.StVenantKirchhoff(), "linear", young=1e8, integrator="energy-momentum", nonlinear_tolerance=1e-14)
    for _ in range(3):
        report = stepper.step()
        assert report.solution.converged and 1e-14 < report.nonlinear_residual < 1e-7 and report.solves < 25
    system, settings = stepper.system, stepper.settings
    v, nothing = stepper.state.v_hat, np.zeros(system.n)
    system.assemble(stepper.state, settings, nothing)
    true = solved(stepper, Newton(1e-14, 25, 0.0)).solution.v
    assert system.residual(settings, true, nothing) <= system.rounding < 1e-6
    for part in (1e-10, 1e-8, 1e-6):  # a velocity wrong by a hundred thousand roundings and more
        wrong = true + part * np.abs(v).max() * np.random.default_rng(2).standard_normal(system.n)
        assert system.residual(settings, wrong, nothing) > system.rounding
    assert solved(stepper, Newton(1e-14, 2, 0.0)).solution.status == "stopped at the limit"


def test_stiff_bodies_that_spin_freely_are_converged() -> None:
    """Their forces cancel only to rounding: by weights near none they took thousands of iterations, or were called wrong."""
    stepper = spinning(fs.Corotational(), "quadratic", young=1e7, nu=0.45, integrator="energy-momentum")
    for _ in range(5):
        report = stepper.step()
        assert report.solution.converged and report.solution.iterations < 100


def test_a_step_that_is_not_solved_is_said() -> None:
    scene = fs.Scene("spin", dt=0.05, duration=0.1, gravity=(0, 0, -300.0), max_solves=2, theta=1.0)
    scene.add_soft("bar", fs.box_tets((0.06, 0.02, 0.02), (3, 1, 1)), rubber(fs.StableNeoHookean(), 2e4),
                   fixed=lambda x: x[:, 0] < -0.0299)  # fmt: skip
    run = fs.simulate(scene, max_halvings=0, quiet=True)
    assert run.status == "not converged" and "did not solve the equations of motion" in run.message
    assert run.steps["nonlinear_residual"][0] > 1e-4 and run.steps["converged"][0] == 0
    assert "nonlinear residual" in run.summary() and run.info["health"]["largest_nonlinear_residual"] > 1e-4


def test_the_linearised_equations_are_the_derivative_of_the_residual() -> None:
    """A soft body with a tendon, damping and a fixed face: A v - b about v is the residual there, A its derivative."""
    scene = fs.Scene("joined", dt=0.005, theta=1.0)
    mesh = fs.box_tets((0.06, 0.02, 0.02), (3, 1, 1))
    scene.add_soft("bar", mesh, rubber(fs.StVenantKirchhoff(), rayleigh_beta=1e-3, rayleigh_alpha=2.0),
                   fixed=lambda x: x[:, 0] < -0.0299)  # fmt: skip
    scene.add_tendon("bar", [(-0.02, 0.005, 0.0), (0.02, -0.005, 0.005)], force=lambda t: 0.3)
    stepper = Stepper(scene, make_solver("auto"))
    system, nothing = stepper.system, np.zeros(stepper.system.n)
    stepper.state.q *= 1.1  # in tension, so that no mode of the stiffness is projected
    system.assemble(stepper.state, stepper.settings, nothing)
    free = ~system.prescribed
    rng = np.random.default_rng(4)
    v, way = 0.02 * rng.standard_normal(system.n) * free, rng.standard_normal(system.n) * free

    def equations(at: np.ndarray) -> np.ndarray:
        system.residual(stepper.settings, at, nothing)
        system.linearise(stepper.settings, at)
        return np.asarray(system.A @ at - system.b)

    h = 1e-6
    change = (equations(v + h * way) - equations(v - h * way)) / (2 * h)
    equations(v)
    np.testing.assert_allclose((system.A @ way)[free], change[free], rtol=0, atol=2e-5 * np.abs(change).max())


@pytest.mark.parametrize(
    ("name", "dt", "amplitude"),
    [
        ("rod, clamped", 0.004, True), ("rod, hinged", 0.004, False), ("soft, hinged", 0.004, True), ("rigid", 0.004, True),
    ],
)  # fmt: skip
def test_pendulums_are_of_second_order(name: str, dt: float, amplitude: bool) -> None:
    """Period and amplitude of the swing at three steps, with the damping of strain that scenes have by default."""
    found = np.array([swing(PENDULUMS[name], dt / 2**k, 0.65, 0.05) for k in range(3)])
    first, second = np.abs(np.diff(found, axis=0))
    order = np.log2(first / second)
    assert order[0] == pytest.approx(2.0, abs=0.1), found
    if amplitude:
        assert order[1] == pytest.approx(2.0, abs=0.15), found


# ------------------------------------------------------------------ rods, couplings, rigid bodies


def test_a_tendon_holds_at_the_end_of_the_step() -> None:
    """Tension by the length that there is, in one large step."""
    scene = fs.Scene("tendon", dt=0.05, duration=0.05, gravity=(0, 0, 0), nonlinear_tolerance=1e-6, theta=1.0)
    mesh = fs.box_tets((0.04, 0.02, 0.02), (4, 2, 2))
    body = scene.add_soft("bar", mesh, rubber(fs.Corotational()), fixed=lambda x: x[:, 0] < -0.0199)
    tendon = scene.add_tendon(body, [(-0.015, 0.0, 0.005), (0.015, 0.0, 0.005)], pull=lambda t: 0.05 * t, stiffness=500.0)
    scene.sensor("pull", tendon, kind="tendon")
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged" and run.steps["solves"][0] > 1
    series = run.tendons["pull"]
    force, length = series.force[-1], series.length[-1]
    assert force > 0.1 and force == pytest.approx(500.0 * (length - 0.03 + 0.05 * 0.05), rel=1e-4)


def test_a_pump_holds_at_the_end_of_the_step() -> None:
    """Pressure by the volume that there is, in one large step."""
    scene = fs.Scene("pump", dt=0.05, duration=0.05, gravity=(0, 0, 0), nonlinear_tolerance=1e-6, theta=1.0)
    body = scene.add_soft("body", hollow_box(), rubber(fs.Corotational()))
    rest, bulk = float(find_chamber_volume(scene)), 3e4
    pump = scene.pressurize(body, volume=lambda t: rest * (1.0 + 4.0 * t), bulk=bulk)
    scene.sensor("pump", pump, kind="chamber")
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged" and run.steps["solves"][0] > 1
    series = run.chambers["pump"]
    assert series.pressure[-1] > 100.0
    assert series.pressure[-1] == pytest.approx(bulk * (rest * 1.2 - series.volume[-1]) / rest, rel=1e-4)


def find_chamber_volume(scene: fs.Scene) -> float:
    """Volume of the only chamber of the first body at rest, m^3."""
    body = scene.bodies[0].tetrahedra()
    assert body is not None
    corners = body.rest[find_chamber(body, None)]
    return float(np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0)


def test_loads_turn_with_what_they_act_on() -> None:
    """The torque of a force at the free end of a rod, where the step leads: the lever of the turned last link."""
    scene, pull = fs.Scene("rod", dt=0.02, gravity=(0, 0, 0), theta=1.0), np.array([0.0, 0.01, 0.02])
    x = np.linspace(0.0, 0.1, 6)
    scene.add_rod("rod", np.column_stack([x, 0 * x, 0 * x]), fs.circular_section(0.003), Elastic(1e6, 0.4, 1200.0),
                  start=fs.RodEnd("clamped"), end=fs.RodEnd(load=lambda t: (pull, np.zeros(3))))  # fmt: skip
    stepper = Stepper(scene, make_solver("auto"))
    system, v = stepper.system, np.zeros(stepper.system.n)
    v[-3:] = 0.0, 0.0, 10.0  # the last link turns by 0.2 rad about z
    system.assemble(stepper.state, stepper.settings, 0 * v)
    np.testing.assert_allclose(system.external[-3:], np.cross([0.01, 0, 0], pull), atol=1e-15)
    system.residual(stepper.settings, v, 0 * v)
    system.linearise(stepper.settings, v)
    np.testing.assert_allclose(system.external[-3:], np.cross([0.01 * np.cos(0.2), 0.01 * np.sin(0.2), 0], pull), atol=1e-12)


def test_forces_of_relinearised_rods_balance() -> None:
    """A rod swung by both ends and one that a body carries, at steps that take several solves: wrenches balance all the same."""
    scene = fs.Scene("swung", dt=0.01, duration=0.2, theta=1.0)
    cable = Elastic(1e6, 0.4, 1200.0, rayleigh_alpha=0.5, rayleigh_beta=2e-3, name="cable")

    def swing(t: float) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.0, 0.03 * np.sin(20 * t), 0.02 * t]), np.array([2.0 * t, 0.0, 5.0 * t])

    x = np.linspace(0.0, 0.1, 13)
    along = np.column_stack([x, 0 * x, 0 * x])
    scene.add_rod("held", along, fs.circular_section(0.003), cable, start=fs.RodEnd("clamped", swing), end=fs.RodEnd("hinged"))
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=0.02, position=(0.11, 0.2, 0))
    other = along + np.array([0.0, 0.2, 0.0])
    scene.add_rod("carried", other, fs.circular_section(0.003), cable, start=fs.RodEnd("clamped"),
                  end=fs.RodEnd("clamped", on="box"))  # fmt: skip
    run = fs.simulate(scene, tolerance=1e-10, quiet=True)
    assert run.status == "converged" and run.steps["solves"].mean() > 1.5
    assert run.steps["wrench_balance"].max() < 1e-6 and run.steps["nonlinear_residual"].max() <= 1e-4


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_a_free_rigid_body_keeps_its_energy(theta: float) -> None:
    """About its middle axis, where it tumbles; 15 % were lost in half a second. The turn is of second order in dt."""
    poses = []
    for dt in (0.01, 0.005, 0.0025):
        scene = fs.Scene("top", dt=dt, theta=theta, gravity=(0, 0, 0))
        scene.add_rigid("box", fs.Box((0.03, 0.02, 0.01)), density=1000.0, angular_velocity=(0.1, 12.0, 0.1))
        stepper = Stepper(scene, make_solver("auto", tolerance=1e-12))
        body, state = scene.bodies[0], stepper.state
        start = body.kinetic_energy(state.q, state.v)
        for _ in range(round(0.5 / dt)):
            stepper.step()
            state = stepper.state
            assert body.kinetic_energy(state.q, state.v) == pytest.approx(start, rel=1e-7)
        poses.append(state.q[3:7])
    first, second = (np.linalg.norm(a - b) for a, b in pairwise(poses))
    assert first > 1e-6 and np.log2(first / second) == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"integrator": "verlet"}, "integrator is 'verlet'; allowed are 'theta', 'energy-momentum'"),
        ({"strain_damping": 2.0}, "strain_damping is 2.0; allowed are values from 0"),
        ({"integrator": "energy-momentum", "theta": 0.7}, "theta is 0.7; the energy-momentum step has none of its own"),
        ({"integrator": "energy-momentum", "nonlinear_tolerance": None}, "the energy-momentum step must be solved"),
        ({"max_solves": 0}, "max_solves is 0; allowed are whole numbers from 1"),
        ({"nonlinear_tolerance": -1.0}, "nonlinear_tolerance is -1"),
    ],
)
def test_settings_that_are_none_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(fs.InputError, match=words):
        fs.Scene("s", **options)


@pytest.mark.parametrize(("theta", "integrator"), [(1.0, "theta"), (0.5, "theta"), (0.5, "energy-momentum")])
def test_loads_of_the_solved_step_act_at_theta_dt(theta: float, integrator: str) -> None:
    """A load that grows with time on a free block that also stretches: its momentum is the sum of dt times the load then."""

    def load(t: float) -> np.ndarray:
        return np.array([20.0 * t, 0.0, 0.0])

    given = {"theta": theta} if integrator == "theta" else {}
    scene = fs.Scene("pulled", dt=0.01, integrator=integrator, gravity=(0, 0, 0), nonlinear_tolerance=1e-10, **given)
    scene.add_soft("block", fs.box_tets((0.02, 0.02, 0.02), 1), rubber(fs.StableNeoHookean(), 1e3), load=load)
    stepper = Stepper(scene, make_solver("exact"))
    block, state = scene.bodies[0], stepper.state
    state.v[:] = 3.0 * state.q
    solves = [stepper.step().solves for _ in range(4)]
    assert max(solves) > 1, "the equations were solved, not only linearised"
    wanted = sum(0.01 * load(0.01 * (k + theta)) for k in range(4))
    np.testing.assert_allclose(block.momentum(stepper.state.q, stepper.state.v), wanted, rtol=1e-6, atol=1e-12)


def test_a_step_whose_contact_problems_are_not_solved_ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a jam none of 25 was, at half a second each; a stretched bar needs them all, and a solver that owns to none stops it."""

    def bar() -> fs.Simulation:
        scene = fs.Scene("bar", dt=0.02, gravity=(0.0, 0.0, 0.0))
        law = MooneyRivlin(2e4, 5e3)
        stretched = (2.5, 0.7, 0.7)
        scene.add_soft(
            "bar", fs.box_tets((0.02,) * 3, 2), Elastic(1e5, 0.4, 1000.0), law=law, start_points=lambda x: x * np.array(stretched)
        )
        return fs.Simulation(scene, max_halvings=0)

    with bar() as sim:
        assert sim.step().report.solves == 25
    solve = Auto.solve
    monkeypatch.setattr(Auto, "solve", lambda *given: replace(solve(*given), status="stopped at the limit"))
    with bar() as sim:
        assert sim.step().report.solves == 5 and not sim.converged
