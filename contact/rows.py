"""Rows beside contacts: joints, limits, motors and dry friction, each a velocity and a bounded force along it.

Row i has the velocity ``w = G v + offset + softness lam_r`` and the force ``lam_r`` with ``low <= lam_r <= high``, which joins
the dynamics as ``A v = b + J^T lam + G^T lam_r``. Inside its bounds a force holds w = 0; at ``low`` w may be positive, at
``high`` negative: ``lam_r = clip(lam_r - rho w, low, high)`` for any rho > 0.

=================== ============= ============ =============================================
row                 low           high
=================== ============= ============ =============================================
equality (joint)    -inf          inf          w = 0
limit               0             inf          0 <= w  _|_  lam_r >= 0
motor, dry friction -f            f            pulls with f against w until w = 0
=================== ============= ============ =============================================
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from contact.checked import real_array, real_matrix, spread
from contact.errors import ContactError


@dataclass(frozen=True)
class Rows:
    """Rows of a contact problem; build them with :func:`make_rows`, which validates.

    Attributes
    ----------
    G : scipy.sparse.csr_matrix, (p, n)
        Velocity of each row by those of the problem. Rows may depend on each other.
    offset : ndarray, (p,), m/s or rad/s
        Added to G v: error over time step of a joint, speed of a motor.
    low, high : ndarray, (p,), N or N m
        Bounds of the force; infinite where there is none.
    softness : ndarray, (p,), m/(N s) or rad/(N m s)
        Velocity by which a row gives way to its force; 0 is rigid.
    vector : ndarray of int, (p,)
        Number of the vector that each row is a component of, as of the force of a joint; at most that of the row. Of forces that
        are not unique, the least do not hang on the axes of a vector.
    """

    G: sp.csr_matrix
    offset: np.ndarray
    low: np.ndarray
    high: np.ndarray
    softness: np.ndarray
    vector: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.offset.shape[0])

    @property
    def is_equality(self) -> np.ndarray:
        """Whether each row has no bound, (p,) bool."""
        return np.asarray(np.isinf(self.low) & np.isinf(self.high))

    def velocity(self, v: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """W = G v + offset + softness forces, (p,), m/s, of velocities (n,) and forces (p,), N."""
        return np.asarray(self.G @ v + self.offset + self.softness * forces)


def make_rows(
    G: sp.spmatrix | sp.sparray | np.ndarray,
    offset: npt.ArrayLike = 0.0,
    low: npt.ArrayLike = -np.inf,
    high: npt.ArrayLike = np.inf,
    softness: npt.ArrayLike = 0.0,
    vector: npt.ArrayLike | None = None,
) -> Rows:
    """Validate arrays once and build :class:`Rows`; numbers stand for all rows.

    Parameters
    ----------
    G : sparse matrix or ndarray, (p, n)
        Velocity of each row by those of the problem.
    offset : float or ndarray, (p,), m/s
        Added to G v. Default 0.
    low, high : float or ndarray, (p,), N
        Bounds of the force. Default none, an equality.
    softness : float or ndarray, (p,), m/(N s)
        Velocity by which a row gives way to its force. Default rigid.
    vector : ndarray of int, (p,), optional
        Number of the vector that each row is a component of, at most that of the row. Default: each is by itself.

    Raises
    ------
    ContactError
        Wrong sizes, values that are not finite (bounds may be infinite), bounds in the wrong order, or negative softness.
    """
    G = real_matrix("G of the rows", G, sp.csr_matrix)
    G.sum_duplicates()
    G.sort_indices()
    p = G.shape[0]
    filled: dict[str, np.ndarray] = {}
    for name, given in (("offset", offset), ("low", low), ("high", high), ("softness", softness)):
        values = real_array(f"{name} of the rows", given)
        if values.shape not in ((), (p,)):
            raise ContactError(f"{name} of the rows has shape {values.shape}; allowed are a number or ({p},), as G has rows.")
        filled[name] = spread(values, (p,))
    for name, values in (("G", G.data), ("offset", filled["offset"]), ("softness", filled["softness"])):
        if not np.isfinite(values).all():
            bad = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ContactError(f"{name} of the rows holds {values[bad]} at entry {bad}; every value must be finite.")
    least, most = filled["low"], filled["high"]
    wrong = np.flatnonzero(~((least <= most) & (least < np.inf) & (most > -np.inf)))
    if len(wrong):
        raise ContactError(f"row {wrong[0]} has the bounds {least[wrong[0]]} and {most[wrong[0]]}; low must not be above high.")
    if (filled["softness"] < 0).any():
        bad = int(np.argmin(filled["softness"]))
        raise ContactError(f"softness of row {bad} is {filled['softness'][bad]}; allowed are values >= 0.")
    own = np.arange(p) if vector is None else np.asarray(vector)
    if own.shape != (p,) or own.dtype.kind not in "iu" or (own < 0).any() or (own > np.arange(p)).any():
        raise ContactError(
            f"vector of the rows is {vector!r:.80}; allowed are ({p},) integers from 0 on, each at most the number of its row."
        )
    return Rows(G, **filled, vector=own.astype(np.int64))
