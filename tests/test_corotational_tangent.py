"""Newton's tangent of co-rotational elements: a plain twin, finite differences of the residual, stand-ins, fewer solves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import polar, solve_sylvester
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import ContactError
from contact.solvers import Exact, ExactOptions
from femsim.model.bodies import corotational_tangent_kernels as kernels
from femsim.model.bodies.body import StepSettings, StepStart
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.soft import SoftBody
from femsim.model.bodies.soft_bodies import make_soft_body
from femsim.step.stepper import Stepper
from femsim.step.system import System
from materials import Corotational, Elastic, Law, StableNeoHookean, StVenantKirchhoff
from meshes.generate import box_tets

NOTHING = np.zeros(3)


def box(nu: float = 0.4, beta: float = 0.0, cells: tuple[int, int, int] = (2, 2, 3)) -> CorotationalBody:
    mesh = box_tets((0.04, 0.03, 0.05), cells)
    rubber = Elastic(1e5, nu, 1000.0, rayleigh_beta=beta)
    return CorotationalBody("box", mesh.points, mesh.tets, rubber, velocity=np.zeros(3))


def strained(body: CorotationalBody, strain: float, seed: int = 0) -> np.ndarray:
    """Positions turned and strained by about a part, (3 n,)."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    edge = 0.015
    return np.asarray(((body.rest + strain * edge * rng.standard_normal(body.rest.shape)) @ turn.T).ravel())


def residual(body: SoftBody, start: StepStart, settings: StepSettings, v: np.ndarray) -> np.ndarray:
    out, inertia, external = np.empty(body.n_v), np.empty(body.n_v), np.empty(body.n_v)
    body.residual(start.q + settings.theta * settings.dt * v, start, settings, v, external, out, inertia)
    return out


def filled(body: SoftBody, fill: Any) -> np.ndarray:
    data = np.full(len(body.pattern()[1]), np.nan)
    fill(data)
    indptr, indices = body.pattern()
    return np.asarray(sp.csc_matrix((data, indices, indptr), shape=(body.n_v, body.n_v)).toarray())


def cross(a: np.ndarray) -> np.ndarray:
    return np.cross(np.eye(3), a)


def stretch_twin(body: CorotationalBody, q: np.ndarray, branch: float | None = None) -> np.ndarray:
    """2 mu dU : dU + lambda tr(dU)^2, element by element, the change of U by Sylvester's equation.

    With a ``branch``, 2 branch mu dev(dU) : dev(dU).
    """
    out = np.zeros((body.n_v, body.n_v))
    x, points = q.reshape(-1, 3), body.point_elements()
    for e, nodes in enumerate(body.tets):
        F = x[nodes].T @ points.gradient[e, 0]
        U = polar(F)[1]
        changes = []
        for k in range(12):
            change = np.outer(np.eye(3)[k % 3], points.gradient[e, 0, k // 3])
            changes.append(solve_sylvester(U, U, change.T @ F + F.T @ change))
        by = np.array(changes)
        traces = np.trace(by, axis1=1, axis2=2)
        la, mu = body.lame_lambda[e], body.lame_mu[e]
        if branch is not None:
            la, mu = -2.0 / 3.0 * branch * mu, branch * mu
        K = 2.0 * mu * np.einsum("aij,bij->ab", by, by) + la * np.outer(traces, traces)
        rows = (3 * nodes[:, None] + np.arange(3)).ravel()
        out[np.ix_(rows, rows)] += points.weight[e, 0] * K
    return out


def twin(body: CorotationalBody, q: np.ndarray, elastic: float, viscous: float) -> np.ndarray:
    """The formulas as they stand, element by element, with the inverse of tr(U) I - U."""
    out = np.zeros((body.n_v, body.n_v))
    x = q.reshape(-1, 3)
    gradient, volume = body.point_elements().gradient[:, 0], body.point_elements().weight[:, 0]
    for e, nodes in enumerate(body.tets):
        F = x[nodes].T @ gradient[e]
        R, U = polar(F)
        g, h = gradient[e] @ R.T, gradient[e] @ F.T
        la, mu = body.lame_lambda[e], body.lame_mu[e]
        W = R @ np.linalg.inv(np.trace(U) * np.eye(3) - U) @ R.T
        c = 2.0 * mu - la * (np.trace(U) - 3.0)
        for a in range(4):
            for b in range(4):
                H = 2.0 * mu * (g[a] @ g[b]) * np.eye(3) + la * np.outer(g[a], g[b]) - c * cross(g[a]).T @ W @ cross(g[b])
                D = la * np.outer(h[a], h[b]) + mu * np.outer(h[b], h[a]) + mu * (gradient[e, a] @ gradient[e, b]) * F @ F.T
                rows, columns = (slice(3 * nodes[k], 3 * nodes[k] + 3) for k in (a, b))
                out[rows, columns] += volume[e] * (elastic * H + viscous * D)
    return out


@pytest.mark.parametrize(("elastic", "viscous"), [(1.0, 0.0), (0.0, 1.0), (0.7, 1.6)])
def test_the_blocks_are_those_of_the_formulas(elastic: float, viscous: float) -> None:
    body = box()  # 72 elements: two chunks and a part
    body._lame_lambda[:40] *= 2.0
    body._lame_mu[20:60] *= 0.5
    q = strained(body, 0.05)
    body.update_elements(q)
    found = filled(body, lambda data: body._fill_tangent(elastic, np.full(1, viscous), 0.3, data, positive=False))
    wanted = twin(body, q, elastic, viscous) + 0.3 * np.diag(body._row_mass)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize("positive", [False, True])
def test_prony_terms_add_the_form_of_the_stretch_and_what_their_stress_resists(positive: bool) -> None:
    body, branch = box(), 0.6
    body._lame_lambda[:40] *= 2.0
    body._lame_mu[20:60] *= 0.5
    q = strained(body, 0.05)
    body.update_elements(q)
    stress = 1e4 * np.random.default_rng(3).standard_normal((len(body.tets), 6))
    pull, points = np.zeros((body.n_v, body.n_v)), body.point_elements()
    for e, nodes in enumerate(body.tets):
        S = stress[e][[0, 3, 4, 3, 1, 5, 4, 5, 2]].reshape(3, 3)
        rows = (3 * nodes[:, None] + np.arange(3)).ravel()
        pull[np.ix_(rows, rows)] += points.weight[e, 0] * np.kron(points.gradient[e, 0] @ S @ points.gradient[e, 0].T, np.eye(3))

    def blocks(*prony: Any) -> np.ndarray:
        scratch, out = body._tangent_room
        kernels.element_tangents(
            body._gradient, body._volume, body._lame_lambda, body._lame_mu, body._quaternion, body._strain, np.empty((0, 6)),
            0.7, 1.6, *prony, positive, scratch, out,
        )  # fmt: skip
        return out.copy()

    added = blocks(branch, stress) - blocks(0.0, np.empty((0, 6)))
    wanted = 0.7 * (stretch_twin(body, q, branch) + (0.0 if positive else 1.0) * pull)
    found = np.zeros_like(wanted)
    for e, nodes in enumerate(body.tets):
        for pair, (a, b) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]):
            K, i, j = added[e, pair].reshape(3, 3), *(slice(3 * nodes[c], 3 * nodes[c] + 3) for c in (a, b))
            found[i, j] += K
            found[j, i] += K.T
            found[i, i] -= K
            found[j, j] -= K.T
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize("theta", [0.5, 1.0])
@pytest.mark.parametrize("beta", [0.0, 0.01])
def test_the_tangent_is_the_derivative_of_the_residual(theta: float, beta: float) -> None:
    """At strains of 10 %, where the stiffness that only turns along is wrong by several percent."""
    body, settings = box(beta=beta), StepSettings(0.01, theta, NOTHING)
    start = StepStart(strained(body, 0.0), np.zeros(body.n_v), 0.0)
    v = (strained(body, 0.1) - start.q) / (theta * settings.dt)
    room = np.empty(len(body.pattern()[1])), np.empty(body.n_v), np.empty(body.n_v)
    body.assemble(start.q, start.v, 0.0, settings, *room)
    way, h = np.random.default_rng(1).standard_normal(body.n_v), 1e-5
    slope = (residual(body, start, settings, v + h * way) - residual(body, start, settings, v - h * way)) / (2.0 * h)
    residual(body, start, settings, v)
    A = filled(body, lambda data: body.tangent(settings, data))
    np.testing.assert_allclose(A @ way, slope, rtol=0, atol=1e-7 * np.abs(slope).max())
    turned = A @ way + theta * settings.dt * _turned_for_exact(body, way)
    assert np.abs(turned - slope).max() > 1e-2 * np.abs(slope).max()


def _turned_for_exact(body: CorotationalBody, way: np.ndarray) -> np.ndarray:
    """What changes where the stiffness only turns along."""
    turned = filled(body, lambda data: SoftBody._fill_tangent(body, 1.0, np.zeros(1), 0.0, data, positive=False))
    exact = filled(body, lambda data: body._fill_tangent(1.0, np.zeros(1), 0.0, data, positive=False))
    return np.asarray((turned - exact) @ way)


def test_the_tangent_of_an_energy_momentum_step_takes_viscosity_where_the_strain_is() -> None:
    """Viscosity of strain is most of the stiffness of a step; it was the largest error of the tangent."""
    body, settings = box(beta=0.01), StepSettings(0.01, 0.5, NOTHING, conserving=True, strain_damping=0.05)
    start = StepStart(strained(body, 0.08), np.zeros(body.n_v), 0.0)
    rng = np.random.default_rng(2)
    v, way, h = 0.02 * rng.standard_normal(body.n_v), rng.standard_normal(body.n_v), 1e-6
    slope = (residual(body, start, settings, v + h * way) - residual(body, start, settings, v - h * way)) / (2.0 * h)
    residual(body, start, settings, v)
    A = filled(body, lambda data: body.tangent(settings, data))
    factors = 0.5 * settings.dt, np.full(1, settings.dt * (0.05 + 0.01 / settings.dt)), body._mass_factor(0.5 * settings.dt)
    turned = filled(body, lambda data: SoftBody._fill_tangent(body, *factors, data, positive=False))
    np.testing.assert_allclose(A, A.T, rtol=0, atol=1e-13 * np.abs(A).max())
    error, old = (np.linalg.norm(matrix @ way - slope) / np.linalg.norm(slope) for matrix in (A, turned))
    assert error < 0.03 and error < 0.2 * old


@pytest.mark.parametrize("law", [Corotational(), StVenantKirchhoff(), StableNeoHookean()], ids=lambda law: type(law).__name__)
@pytest.mark.parametrize(("strain", "most"), [(0.0, 0.06), (0.002, 0.09), (0.02, 0.2)])
def test_the_tangent_of_a_light_stiff_body_that_turns_leads_to_the_end_of_a_step(law: Law, strain: float, most: float) -> None:
    """What an iterate lacks falls by the largest eigenvalue of I - A^-1 J; A is definite, though F_m seems squeezed.

    With the stress of F_m in place of that of the step it is 1.0 to 1.9.
    """
    edge, dt = 0.009, 0.01
    mesh = box_tets((0.018, 0.011, edge), (2, 2, 1))
    body = make_soft_body("foam", mesh, Elastic(3e6, 0.3, 240.0, law=law), element="linear", velocity=NOTHING)[0]
    settings = StepSettings(dt, 0.5, NOTHING, conserving=True, strain_damping=0.05)
    rng = np.random.default_rng(0)
    turn = Rotation.from_rotvec(0.1 * np.array([1.0, 2.0, 3.0]) / 14**0.5)
    x0, x1 = (body.rest + strain * edge * rng.standard_normal(body.rest.shape) for _ in range(2))
    start = StepStart(x0.ravel(), np.zeros(body.n_v), 0.0)
    v, h = ((turn.apply(x1) - x0) / dt).ravel(), 1e-6 * edge / dt
    J = np.empty((body.n_v, body.n_v))
    for k, way in enumerate(np.eye(body.n_v)):
        J[:, k] = (residual(body, start, settings, v + h * way) - residual(body, start, settings, v - h * way)) / (2.0 * h)
    residual(body, start, settings, v)
    A = filled(body, lambda data: body.tangent(settings, data))
    assert np.linalg.eigvalsh(A).min() > 0.0
    assert np.abs(np.linalg.eigvals(np.eye(body.n_v) - np.linalg.solve(A, J))).max() < most


# ---------------------------------------------------------------------- definite stand-ins


def squeezed(body: CorotationalBody, part: float) -> np.ndarray:
    """Pressed together along z, as thick as before."""
    return np.asarray((body.rest * [1.0, 1.0, 1.0 - part]).ravel())


def test_elements_that_are_pressed_together_can_be_made_definite() -> None:
    body, settings = box(), StepSettings(0.01, 1.0, NOTHING)
    q = squeezed(body, 0.2)
    body.update_elements(q)
    kept, stand_in = (
        filled(body, lambda data, p=p: body._fill_tangent(1.0, np.zeros(1), 0.0, data, positive=p)) for p in (False, True)
    )
    scale = np.abs(kept).max()
    assert np.linalg.eigvalsh(kept).min() < -1e-3 * scale
    assert np.linalg.eigvalsh(stand_in).min() > -1e-10 * scale
    data = np.empty(len(body.pattern()[1]))
    body.tangent(settings, data)
    assert body.positive_tangent(settings, data)
    same = data.copy()
    assert not body.positive_tangent(settings, data) and np.array_equal(data, same)  # it has been left already


@pytest.mark.parametrize("amount", [0.02, 0.15])
def test_the_stand_in_asks_for_changes_of_the_stretch(amount: float) -> None:
    body = box()
    body._lame_lambda[:40] *= 2.0
    body._lame_mu[20:60] *= 0.5
    q = strained(body, amount)
    body.update_elements(q)
    K = filled(body, lambda data: body._fill_tangent(1.0, np.zeros(1), 0.0, data, positive=True))
    wanted = stretch_twin(body, q)
    np.testing.assert_allclose(K, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())
    turned = np.cross([0.3, -0.5, 0.8], q.reshape(-1, 3)).ravel()
    assert np.abs(K @ turned).max() < 1e-12 * np.abs(K).max() * np.abs(turned).max()


@pytest.mark.parametrize("branch", [0.0, 0.7])
@pytest.mark.parametrize("positive", [False, True])
def test_each_element_is_definite_where_asked_for_and_where_it_is_all_but_inverted(positive: bool, branch: float) -> None:
    """Random elements, some inverted: blocks are finite, and the whole of an element is semidefinite; with Prony terms too."""
    body = box(cells=(1, 1, 1))
    stress = 1e5 * np.random.default_rng(5).standard_normal((len(body.tets) if branch else 0, 6))
    scratch, blocks = np.zeros(kernels.TANGENT_SCRATCH), np.empty((len(body.tets), 6, 9))
    met = [0, 0]
    unknown = np.empty((0, 6))
    for seed in range(60):
        body.update_elements(strained(body, 1.5, seed))
        kernels.element_tangents(
            body._gradient, body._volume, body._lame_lambda, body._lame_mu, body._quaternion, body._strain, unknown, 1.0, 0.0,
            branch, stress, positive, scratch, blocks,
        )  # fmt: skip
        assert np.isfinite(blocks).all()
        for e in range(len(body.tets)):
            K = np.zeros((4, 3, 4, 3))
            for pair, (a, b) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]):
                K[a, :, b] = blocks[e, pair].reshape(3, 3)
                K[b, :, a] = K[a, :, b].T
            for a in range(4):
                K[a, :, a] = -sum(K[a, :, b] for b in range(4) if b != a)
            values = np.linalg.eigvalsh(K.reshape(12, 12))
            U = np.eye(3) + body._strain[e][[0, 3, 5, 3, 1, 4, 5, 4, 2]].reshape(3, 3)
            flat = np.trace(U) - np.linalg.eigvalsh(U).max() <= 0.5
            met[0] += flat
            assert values.min() > -1e-9 * values.max() or not (positive or flat)
            met[1] += values.min() < -1e-6 * values.max()
    assert met[0] > 10 and (met[1] > 10) != positive


def test_a_matrix_whose_diagonal_is_not_positive_is_never_left() -> None:
    """Its diagonal is the norm of the residual, and solvers divide by its root: an overload failed for want of eigenvalues."""
    system, settings = System([box()]), StepSettings(0.05, 1.0, NOTHING)
    (body,) = system.bodies
    assert isinstance(body, CorotationalBody)
    state = system.remember(system.initial_state())
    system.assemble(state, settings, np.zeros(system.n))
    v = (0.45 * body.rest.ravel() - state.q) / settings.dt  # pressed together from all sides
    system.residual(settings, v, np.zeros(system.n))
    plain = np.diag(filled(body, lambda data: body.tangent(settings, data)))
    assert plain.min() < -1e-2 * plain.max()
    system.linearise(settings, v)
    assert system.diagonal().min() > 0.0 and np.linalg.eigvalsh(system.A.toarray()).min() > 0.0
    np.testing.assert_allclose(system.A @ v - system.b, system._residual, rtol=0, atol=1e-10 * np.abs(system.b).max())
    system.residual(settings, v, np.zeros(system.n))
    assert not system.linearise(settings, v, positive=True)  # it is that which was left


def column() -> fs.Scene:
    """A slender column, pressed far beyond where it would buckle; it stays straight."""
    scene = fs.Scene("column", dt=0.05, duration=1.0, theta=1.0, gravity=(0.0, 0.0, 0.0), integrator="theta")
    rubber = fs.Elastic(1e6, 0.3, 1000.0)
    bar = scene.add_soft("bar", fs.box_tets((0.01, 0.01, 0.1), (1, 1, 10)), rubber, position=(0.0, 0.0, 0.05))
    scene.hold(bar, lambda x: x[:, 2] < 1e-9, fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0)] * 2))
    scene.hold(bar, lambda x: x[:, 2] > 0.0999, fs.Motion([0.0, 0.2], [(0.0, 0.0, 0.0), (0.0, 0.0, -0.02)], smooth=False))
    return scene


def test_where_the_tangent_is_not_definite_a_step_is_solved_with_one_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    whole = SoftBody.positive_tangent

    def counted(self: SoftBody, settings: StepSettings, data: np.ndarray) -> bool:
        asked.append(whole(self, settings, data))
        return asked[-1]

    monkeypatch.setattr(SoftBody, "positive_tangent", counted)
    stepper = Stepper(column(), Exact(ExactOptions()))
    for _ in range(4):
        report = stepper.step()
        assert report.solution.converged and report.nonlinear_residual <= 1e-4
    assert any(asked)
    monkeypatch.setattr(SoftBody, "positive_tangent", lambda self, settings, data: bool(self.tangent(settings, data)))
    stepper = Stepper(column(), Exact(ExactOptions()))
    with pytest.raises(ContactError, match="not positive definite"):
        for _ in range(4):
            stepper.step()


# ---------------------------------------------------------------------- steps


def sheared(integrator: str) -> fs.Scene:
    """A rubber strip between two ends, one of which is moved aside and up: it bends, turns and is strained by 20 %."""
    scene = fs.Scene("sheared", dt=0.01, duration=0.5, integrator=integrator, theta=1.0 if integrator == "theta" else None)
    rubber = fs.Elastic(1e5, 0.42, 1000.0, rayleigh_beta=0.01)
    strip = scene.add_soft("strip", fs.box_tets((0.008, 0.01, 0.06), (2, 2, 12)), rubber, position=(0.0, 0.0, 0.03))
    scene.hold(strip, lambda x: x[:, 2] < 1e-9, fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0)] * 2))
    scene.hold(strip, lambda x: x[:, 2] > 0.0599, fs.Motion([0.0, 0.5], [(0.0, 0.0, 0.0), (0.05, 0.0, 0.005)]))
    return scene


@pytest.mark.parametrize("integrator", ["theta", "energy-momentum"])
def test_fast_steps_need_fewer_solves(integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def solves() -> int:
        stepper, total = Stepper(sheared(integrator), Exact(ExactOptions())), 0
        for _ in range(40):
            report = stepper.step()
            assert report.solution.converged and report.nonlinear_residual <= 1e-4
            total += report.solves
        return total

    exact = solves()
    monkeypatch.setattr(CorotationalBody, "_fill_tangent", SoftBody._fill_tangent)
    assert exact < 0.8 * solves()


def test_light_stiff_foam_that_turns_and_lands_needs_few_linearisations() -> None:
    """Where answers are far, derivatives led past the end of the search: 7 linearisations a step in the mean, 25 at most."""
    scene = fs.Scene("foam", dt=0.01)
    scene.add_floor()
    scene.add_soft(
        "box", box_tets((0.018, 0.011, 0.009), (2, 2, 1)), Elastic(3e6, 0.3, 240.0), position=(0.0, 0.0, 0.02),
        rotation=(0.5, -0.4, 0.8), velocity=(-0.15, 0.0, -0.2), angular_velocity=(5.0, -9.0, -2.0),
    )  # fmt: skip
    stepper, solves = Stepper(scene, Exact(ExactOptions(tolerance=1e-8))), []
    for _ in range(30):
        report = stepper.step()
        assert report.solution.converged
        solves.append(report.solves)
    assert sum(solves) < 160 and max(solves) <= 12
