"""Extrapolation of the refinements of the exact solver: as many steps as there are different errors, and fewer with contacts."""

from __future__ import annotations

import numpy as np
import pytest
from slow_twins import random_spd
from small_blocks import soft_block
from stiff_nets import net_of_springs

from contact import WarmStart, make_solver, measure
from contact.solvers import Exact, ExactOptions
from contact.solvers.mixing import Iterate, Mixing


def iterate(A: np.ndarray, near: np.ndarray, b: np.ndarray, v: np.ndarray) -> Iterate:
    """One refinement v + A~^-1 (b - A v); the forces only follow."""
    step = np.linalg.solve(near, b - A @ v)
    return Iterate(v + step, A @ (v + step), np.array([[v[0] + step[0], 1.0, 2.0]]), step, A @ step)


def test_it_ends_after_as_many_steps_as_there_are_different_errors() -> None:
    """A~^-1 A has three eigenvalues, one of them above 2: the refinement alone diverges."""
    rng = np.random.default_rng(0)
    near, n = random_spd(rng, 12, 5.0), 12
    root = np.linalg.cholesky(near)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = root @ Q @ np.diag([0.5] * 4 + [1.3] * 4 + [2.5] * 4) @ Q.T @ root.T
    b = rng.standard_normal(n)
    wanted, mixing, v = np.linalg.solve(A, b), Mixing(), np.zeros(n)
    for _ in range(4):
        last = iterate(A, near, b, v)
        v, Av, forces = mixing.extrapolated(last)
        np.testing.assert_allclose(Av, A @ v, atol=1e-10)
        assert forces[0, 0] == pytest.approx(v[0]) and forces[0, 1:] == pytest.approx([1.0, 2.0])
    np.testing.assert_allclose(v, wanted, atol=1e-9)
    alone = np.zeros(n)
    for _ in range(4):
        alone = iterate(A, near, b, alone).v
    assert np.abs(alone - wanted).max() > 1.0
    mixing.forget()
    last = iterate(A, near, b, np.zeros(n))
    assert mixing.extrapolated(last)[0] is last.v


def test_iterates_are_not_changed_and_equal_ones_do_no_harm() -> None:
    rng = np.random.default_rng(1)
    A, near, b = random_spd(rng, 6), random_spd(rng, 6), rng.standard_normal(6)
    first = iterate(A, near, b, np.zeros(6))
    kept = [part.copy() for part in first]
    mixing = Mixing()
    for _ in range(7):  # more than it remembers
        v, _, _ = mixing.extrapolated(first)
        np.testing.assert_allclose(v, first.v, atol=1e-12)
    assert all(np.array_equal(part, own) for part, own in zip(first, kept, strict=True))


def test_older_factors_need_fewer_iterations_with_contacts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors of a block half as stiff, kept as they are: each answer holds to the same tolerance."""
    soft, stiff = soft_block(1e5, 3), soft_block(1.7e5, 3)
    monkeypatch.setattr("contact.solvers.exact._too_slow", lambda *_: False)

    def iterations() -> int:
        solver = Exact(ExactOptions())
        first = solver.solve(soft)
        found = solver.solve(stiff, WarmStart(first.v, first.lam))
        residual = measure(stiff, found.v, found.lam)
        assert found.converged and found.details["factorizations"] == 0
        assert max(residual.dynamics_residual, residual.contact_residual) <= 1e-8
        return found.iterations

    mixed = iterations()
    monkeypatch.setattr(Mixing, "extrapolated", lambda _self, last: (last.v, last.Av, last.forces))
    assert mixed < 0.7 * iterations()


@pytest.mark.parametrize("seed", [0, 2])
def test_nothing_is_extrapolated_where_only_the_contact_law_is_missing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A net so stiff that contact problems need all of their sweeps: combinations of their answers took it further away."""
    problem = net_of_springs(seed)
    found = make_solver("exact", tolerance=1e-7).solve(problem)
    assert found.converged and found.iterations > 3
    monkeypatch.setattr(Mixing, "extrapolated", lambda _self, last: (last.v, last.Av, last.forces))
    alone = make_solver("exact", tolerance=1e-7).solve(problem)
    assert np.array_equal(found.v, alone.v) and np.array_equal(found.lam, alone.lam)
