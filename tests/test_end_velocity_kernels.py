"""Kernels around the contact problem at the end of a step, each against its formula with numpy."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from contact.masses_kernels import BlockRows
from femsim.step import end_velocity_kernels as kernels
from femsim.step.rows_kernels import Given, normal_offsets

RNG_SEED = 7
NC, N, DT = 5, 8, 0.01


def some_contacts() -> tuple[np.random.Generator, sp.csr_matrix]:
    rng = np.random.default_rng(RNG_SEED)
    return rng, sp.csr_matrix(rng.standard_normal((3 * NC, N)) * (rng.random((3 * NC, N)) < 0.6))


def test_closed_are_contacts_that_press_or_hardly_part() -> None:
    lam, u = np.zeros((4, 3)), np.zeros((4, 3))
    lam[0, 0], u[:, 0] = 1.0, [1.0, 2e-3, 5e-4, -1.0]
    closed = np.empty(4, dtype=np.int64)
    for restitution, bounces in ((np.zeros(4), False), (np.array([0.0, 0.5, 0.0, 0.0]), False), (np.full(4, 0.5), True)):
        assert kernels.close_contacts(lam, u, 1e-3, restitution, closed) == (3, bounces)
        assert closed[:3].tolist() == [0, 2, 3]


def test_velocities_without_forces_have_what_restitution_asks_for() -> None:
    rng, J = some_contacts()
    (old, new), surface, restitution = rng.standard_normal((2, N)), rng.standard_normal((NC, 3)), rng.random(NC)
    rebound, none = np.empty(3), np.zeros(NC)
    closed, forces, q = np.array([0, 2, 4]), rng.standard_normal((3, 3)), np.empty((3, 3))
    blocks = rng.standard_normal((9, 3, 3))
    W = BlockRows(np.array([0, 3, 6, 9]), np.tile(np.arange(3), 3), blocks)
    dense = blocks.reshape(3, 3, 3, 3).transpose(0, 2, 1, 3).reshape(9, 9)
    by_rows = J.indptr, J.indices, J.data
    kernels.rebounds(*by_rows, old, np.zeros(N), surface, none, restitution, closed, 1e-6, 9.81, DT, rebound)
    kernels.velocities_without_forces(*by_rows, new, surface, rebound, closed, W, forces, q)
    before, expected = (J @ old).reshape(NC, 3) + surface, (J @ new).reshape(NC, 3) + surface
    assert (before[closed, 0] > 0).any() and (before[closed, 0] < 0).any()
    expected[:, 0] += restitution * np.minimum(before[:, 0], 0.0)
    np.testing.assert_allclose(q, expected[closed] - (dense @ forces.ravel()).reshape(3, 3), rtol=0, atol=1e-13)


def test_groups_are_numbered_as_chains_of_blocks_join_contacts() -> None:
    indptr, indices, group = np.array([0, 2, 3, 5, 7]), np.array([0, 2, 1, 0, 2, 3, 3]), np.empty(4, dtype=np.int64)
    assert kernels.number_groups(indptr, indices, group) == 3
    assert group.tolist() == [0, 1, 0, 2]


def test_a_change_of_forces_pushes_and_does_work_at_the_end() -> None:
    rng, J = some_contacts()
    lam, u, surface, ends = (*rng.standard_normal((3, NC, 3)), rng.standard_normal(N))
    closed, forces, whole, impulse, work = (
        np.array([1, 3]),
        rng.standard_normal((2, 3)),
        lam.copy(),
        np.empty(N),
        np.empty((NC, 3)),
    )
    kernels.change_forces(J.indptr, J.indices, J.data, closed, forces, DT, whole, impulse)
    acting = lam.copy()
    acting[closed] = forces
    assert np.array_equal(whole, acting)
    np.testing.assert_allclose(impulse, DT * (J.T @ (acting - lam).ravel()), rtol=0, atol=1e-15)
    kernels.work_of_forces(J.indptr, J.indices, J.data, lam, u, acting, surface, ends, DT, work)
    late = 0.5 * DT * (acting - lam) * ((J @ ends).reshape(NC, 3) + 2.0 * surface)
    np.testing.assert_allclose(work, DT * lam * u + late, rtol=0, atol=1e-15)


def test_offsets_of_gaps_and_of_penetrations() -> None:
    given = Given(np.zeros(0, dtype=np.bool_), np.zeros(0), DT, 0.2, 0.5)
    np.testing.assert_allclose(normal_offsets(np.array([0.0, 0.03, -0.01, -1.0]), given), [0.0, 3.0, -0.2, -0.5], rtol=1e-15)
