"""What kind of problem it is: sizes, rank and ratio of masses, and the categories of papers/004 by which solvers differ."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from contact import ContactProblem, LocalProblem

#: Ratio of the masses of bodies from which it is a trait of a problem.
HEAVY = 100.0
#: Singular values below this part of the largest are zero; matrices whose smaller side is longer are not decomposed.
_ZERO, _LARGEST = 1e-9, 1200
#: Categories, as pages name them.
CATEGORIES = ("independent", "redundant", "dense", "mass ratio", "joints", "soft")


class Traits(NamedTuple):
    """Traits of a problem.

    Attributes
    ----------
    velocities, contacts, rows : int
        Rows of A, contacts, and rows of joints, limits and motors. Of the local form only contacts are known.
    rank : float
        Rank of the constraints (J and G, or W); nan where the matrix is too large.
    density : float
        Constraints over velocities, d_jc of papers/004; nan for the local form.
    mass_ratio : float
        Largest over smallest mass of the free rigid bodies; nan where there are none, or only one.
    soft : bool
        Whether there are soft bodies or rods.
    """

    velocities: int
    contacts: int
    rows: int
    rank: float
    density: float
    mass_ratio: float
    soft: bool

    @property
    def constraints(self) -> int:
        """Rows of all constraints."""
        return 3 * self.contacts + self.rows

    @property
    def categories(self) -> tuple[str, ...]:
        """Those of :data:`CATEGORIES` that hold.

        "independent" or "redundant": the rank is full, or less. "dense": as many constraints as velocities or more; of the local
        form, a rank of at most half. "mass ratio": 100 or more.
        """
        known = math.isfinite(self.rank)
        dense = self.density >= 1.0 if math.isfinite(self.density) else known and 2 * self.rank <= self.constraints
        holds = (
            known and self.rank >= self.constraints, known and self.rank < self.constraints, dense, self.mass_ratio >= HEAVY,
            self.rows > 0, self.soft,
        )  # fmt: skip
        return tuple(name for name, good in zip(CATEGORIES, holds, strict=True) if good)


def traits(problem: ContactProblem | LocalProblem) -> Traits:
    """Find the traits of a problem."""
    nc = problem.n_contacts
    if isinstance(problem, LocalProblem):
        return Traits(0, nc, 0, _rank(sp.csr_matrix(problem.W)), math.nan, math.nan, soft=False)
    rows = problem.rows
    all_rows = problem.J if rows is None else sp.vstack([problem.J, rows.G])
    count = 0 if rows is None else rows.G.shape[0]
    # velocities in units in which A has a unit diagonal, and constraints of length 1
    scaled = sp.csr_matrix(all_rows.multiply(problem.weight[None, :]))
    length = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    scaled = sp.diags(1.0 / np.where(length > 0, length, 1.0)) @ scaled
    masses = [
        float(problem.diagonal[group.start : group.start + 3].mean())
        for group in problem.groups
        if group.kind == "generalized" and group.stop - group.start == 6
    ]
    ratio = max(masses) / min(masses) if len(masses) > 1 else math.nan
    soft = any(group.stride for group in problem.groups)
    return Traits(problem.n, nc, count, _rank(scaled), (3 * nc + count) / problem.n, ratio, soft)


def _rank(matrix: sp.spmatrix) -> float:
    """Rank by singular values; nan where the matrix is too large."""
    if 0 in matrix.shape:
        return 0.0
    if min(matrix.shape) > _LARGEST:
        return math.nan
    values = np.linalg.svd(matrix.toarray(), compute_uv=False)
    return float((values > _ZERO * values[0]).sum())
