"""Scales of contacts by W where it costs little: bodies whose part of A is narrow, as that of rods, or small."""

from __future__ import annotations

import numpy as np

from contact import narrow_kernels as kernels
from contact.problem import ContactProblem, force_scales

#: Widest block of A that is inverted near its diagonal, rows; and the most products in all blocks, about 10 ms.
_WIDEST, _MOST_PRODUCTS = 64, 2e7


def narrow_scales(problem: ContactProblem) -> np.ndarray | None:
    """Force per velocity of each contact by its block of W, (nc,), N s/m, where bodies are narrow.

    Blocks of rows of A that nothing couples to others are bodies, or bodies that springs tie together. One is narrow where no
    entry is more than 64 places off its diagonal: a rod, a chain of links, a rigid body, a net of few nodes. Of these the inverse
    near the diagonal is exact (:func:`contact.narrow_kernels.invert_band`); other blocks count with the diagonal of A, as in
    ``problem.scales``. Rows of joints count as absent.

    Parameters
    ----------
    problem : ContactProblem
        A problem with isotropic friction.

    Returns
    -------
    ndarray or None
        None where no block is narrow but for single rows, where the narrow ones are too many, or where one of them is not
        positive definite.
    """
    A, J, n = problem.A, problem.J, problem.n
    start, width = np.empty(n + 1, dtype=np.int64), np.empty(n, dtype=np.int64)
    count = kernels.find_blocks(A.indptr, A.indices, start, width)
    start, width = start[: count + 1], width[:count]
    sizes = np.diff(start)
    width[width > _WIDEST] = 0
    if not width.any() or float(sizes @ (width + 1) ** 2) > _MOST_PRODUCTS:
        return None
    place = np.concatenate([[0], np.cumsum(np.repeat(width + 1, sizes))])
    flat, compliance = np.zeros(place[-1]), np.empty((problem.n_contacts, 3))
    if not kernels.near_diagonal(A.indptr, A.indices, A.data, start, width, place, flat):
        return None
    kernels.compliances(J.indptr, J.indices, J.data, np.repeat(start[1:], sizes), place, flat, compliance.reshape(-1))
    if problem.softness is not None:
        compliance += problem.softness
    return force_scales(compliance)
