"""Whole tangents of rods: their kernels against plain twins, and the linearisations that they spare."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from slow_rods import ENDS, shaken, uneven

import femsim as fs
from femsim.model.bodies.body import StepSettings, StepStart
from femsim.model.bodies.rod import Rod
from femsim.step import whole_kernels as kernels
from materials import Elastic

DT = 0.01


class Stepping:
    """A rod in an energy-momentum step, its equations and their derivative by v_hat."""

    def __init__(self, rod: Rod, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rod, n = rod, rod.n_v
        self.settings = StepSettings(DT, 0.5, np.array([0.0, 0.0, -9.81]), conserving=True)
        self.start = StepStart(shaken(rod, rng, 0.2), rng.normal(size=n), 0.0)
        self.v_hat = self.start.v + rng.normal(size=n)
        rod.assemble(self.start.q, self.start.v, 0.0, self.settings, np.empty(len(rod.pattern()[1])), np.empty(n), np.empty(n))

    def lacking(self, v_hat: np.ndarray) -> np.ndarray:
        out, n = np.empty(self.rod.n_v), self.rod.n_v
        moved = self.rod.moved(self.start.q, v_hat, 0.5 * DT)
        self.rod.residual(moved, self.start, self.settings, v_hat, np.empty(n), out, np.empty(n))
        return out

    def differences(self) -> np.ndarray:
        step = 1e-5 * np.eye(self.rod.n_v)
        return np.array([self.lacking(self.v_hat + h) - self.lacking(self.v_hat - h) for h in step]).T / 2e-5

    def tangent(self) -> np.ndarray:
        self.lacking(self.v_hat)
        starts, rows = self.rod.pattern()
        data = np.full(len(rows), np.nan)
        assert self.rod.whole_tangent(self.settings, data)
        return sp.csc_matrix((data, rows, starts)).toarray()


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_the_derivative_of_the_equations(ends: str, seed: int) -> None:
    step = Stepping(uneven(ends), seed)
    found, exact = step.tangent(), step.differences()
    size = np.sqrt(np.outer(*2 * [np.abs(np.diag(exact))]))
    assert np.abs((found - exact) / size).max() < 1e-5
    assert np.abs((exact - exact.T) / size).max() > 1e-2  # which no symmetric matrix is


def test_a_load_on_a_free_end_counts_by_its_lever() -> None:
    pull = np.array([300.0, 0.0, 0.0])
    end = fs.RodEnd("free", load=lambda t: (pull, np.zeros(3)))
    elastic = Elastic(2e3, 0.3, 1100.0, name="soft")
    rod = Rod("rod", np.linspace((0.0, 0.0, 0.0), (0.2, 0.0, 0.0), 6), fs.circular_section(0.004), elastic, end=end)
    step = Stepping(rod, 0)
    step.v_hat[:] = step.start.v
    found, exact = step.tangent(), step.differences()
    last = slice(rod.n_v - 3, rod.n_v)
    # half the tip's lever, 20 mm, times the pull and half a step; to what the link turns in a step
    assert np.abs(exact[last, last]).max() > 0.5 * 300.0 * 0.02 * 0.5 * DT
    assert np.abs((found - exact)[last, last]).max() < 0.2 * np.abs(exact[last, last]).max()


def test_forces_are_left_as_they_were() -> None:
    step = Stepping(uneven("clamped"), 2)
    before = step.lacking(step.v_hat), step.rod.end_force(0), step.rod.end_force(1)
    step.tangent()
    after = step.lacking(step.v_hat), step.rod.end_force(0), step.rod.end_force(1)
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def test_backward_euler_has_none() -> None:
    rod = uneven("clamped")
    assert not rod.whole_tangent(StepSettings(DT, 1.0, np.zeros(3)), np.empty(len(rod.pattern()[1])))


# ---------------------------------------------------------------------- contacts that are held


def contacts(seed: int) -> tuple[np.ndarray, sp.csr_matrix, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Matrix (n, n), rows of nine contacts on it, the third of them on nothing, speeds, forces, scales and friction."""
    rng = np.random.default_rng(seed)
    n, nc = 12, 9
    A = rng.normal(size=(n, n)) + 8.0 * np.eye(n)
    J = rng.normal(size=(3 * nc, n)) * (rng.random((3 * nc, n)) < 0.4)
    J[6:9] = 0.0
    u, lam = 0.2 * rng.normal(size=(nc, 3)), rng.normal(size=(nc, 3)) * [1.0, 0.3, 0.3]
    return A, sp.csr_matrix(J), u, lam, rng.uniform(0.5, 2.0, nc), rng.uniform(0.0, 1.0, nc)


def plain_state(u: np.ndarray, lam: np.ndarray, scale: float, friction: float) -> tuple[int, np.ndarray]:
    p = lam - scale * u
    if p[0] <= 0.0:
        return kernels.OPEN, np.zeros(2)
    size = float(np.hypot(*p[1:]))
    if size <= friction * p[0]:
        return kernels.STICKS, np.zeros(2)
    return kernels.SLIDES, friction * p[1:] / size


@pytest.mark.parametrize("seed", range(6))
def test_states_and_the_system_of_contacts_that_are_held(seed: int) -> None:
    A, J, u, lam, scale, friction = contacts(seed)
    n, nc, give = len(A), len(u), 1e-3
    state, way = np.empty(nc, dtype=np.int8), np.empty((nc, 2))
    unknown = kernels.states(J.indptr, u, lam, scale, friction, state, way)
    pushes, meets = [], []
    for i in range(nc):
        rows = J.toarray()[3 * i : 3 * i + 3]
        if not rows.any():
            assert state[i] == kernels.ASIDE
            continue
        kind, along = plain_state(u[i], lam[i], scale[i], friction[i])
        assert state[i] == kind
        assert np.allclose(way[i], along, rtol=1e-12, atol=0.0)
        if kind == kernels.STICKS:
            pushes += list(rows)
            meets += list(rows)
        elif kind == kernels.SLIDES:
            pushes.append(rows[0] + along @ rows[1:])
            meets.append(rows[0])
    assert unknown == len(pushes)
    plain = np.block([[A, -np.array(pushes).T], [np.array(meets), -give * np.eye(unknown)]])
    full = sp.csr_matrix(A)
    most = full.nnz + 4 * J.nnz + unknown
    starts, columns, entries = np.empty(n + unknown + 1, np.int32), np.empty(most, np.int32), np.empty(most)
    size = kernels.held_system(
        full.indptr, full.indices, full.data, J.indptr, J.indices, J.data, state, way, give, starts, columns, entries
    )
    assert starts[-1] == size <= most
    assert all(a <= b for a, b in pairwise(starts))
    found = sp.csr_matrix((entries[:size], columns[:size], starts), shape=(n + unknown, n + unknown)).toarray()
    assert np.allclose(found, plain, rtol=1e-13, atol=1e-14)


# ---------------------------------------------------------------------- what they spare


def swinging(*, floor: bool) -> fs.Scene:
    """A cable of 20 links, 0.9 m and 1 GPa, that is let go at an angle; over a floor it strikes after half a second."""
    scene = fs.Scene("swinging", dt=0.01, duration=0.8)
    points = np.linspace((0.0, 0.0, 0.0), (0.8, 0.3, -0.3), 21)
    section = fs.circular_section(0.004, bending=1e-3)
    scene.add_rod("cable", points, section, Elastic(1e9, 0.4, 1200.0, name="cable"), start=fs.RodEnd("hinged"))
    if floor:
        scene.add_floor(height=-0.6)
    return scene


@pytest.mark.parametrize(("floor", "most"), [(False, 4.0), (True, 6.0)])
def test_a_stiff_cable_that_swings_takes_few_linearisations(floor: bool, most: float) -> None:
    run = fs.simulate(swinging(floor=floor), quiet=True)
    assert run.verdict == "good", run.reasons
    assert np.mean(run.steps["solves"]) < most  # 2.4 and 3.4; by symmetric tangents alone 11 and 14
    assert (run.steps["contacts"].max() > 0) == floor
    energy = sum(np.array(run.steps[f"{kind}_energy_J"]) for kind in ("kinetic", "elastic", "potential"))
    assert np.diff(energy).max() < 1e-6 * np.ptp(run.steps["potential_energy_J"])
