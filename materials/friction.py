"""Coulomb friction coefficients by pair of surface materials."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from materials.errors import MaterialError


class FrictionTable:
    """Friction coefficients of unordered pairs of surface materials, with a default.

    Parameters
    ----------
    default : float
        Coefficient of all other pairs, dimensionless, at least 0.

    Raises
    ------
    MaterialError
        If the default is negative or not finite.
    """

    def __init__(self, default: float = 0.5) -> None:
        self._default = _checked(default, "default")
        self._pairs: dict[tuple[str, str], float] = {}

    def __repr__(self) -> str:
        pairs = "".join(f", {a} - {b} {mu:g}" for (a, b), mu in sorted(self._pairs.items()))
        return f"<FrictionTable: {self._default:g} by default{pairs}>"

    @property
    def default(self) -> float:
        """Coefficient of pairs without a value, dimensionless."""
        return self._default

    @default.setter
    def default(self, value: float) -> None:
        self._default = _checked(value, "default")

    @property
    def pairs(self) -> dict[tuple[str, str], float]:
        """Copy of the pairs with a value: sorted pair of names to coefficient."""
        return dict(self._pairs)

    @staticmethod
    def check(mu: float, what: str) -> float:
        """Return a coefficient as a number; MaterialError, which says ``what`` it is of, when negative or not finite."""
        return _checked(mu, what)

    def set(self, a: str, b: str, mu: float) -> None:
        """Set the coefficient of the pair (a, b), in either order.

        Parameters
        ----------
        a, b : str
            Surface material names; they may be equal.
        mu : float
            Coulomb coefficient, dimensionless, at least 0.

        Raises
        ------
        MaterialError
            If mu is negative or not finite.
        """
        self._pairs[_key(a, b)] = _checked(mu, f"pair {a!r} / {b!r}")

    def get(self, a: str, b: str) -> float:
        """Return the coefficient of the pair (a, b), or the default."""
        return self._pairs.get(_key(a, b), self._default)

    def matrix(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return the coefficients between all surfaces, for lookup by number.

        Parameters
        ----------
        names : sequence of str, length k
            Surface material of each surface number.

        Returns
        -------
        ndarray, shape (k, k)
            Symmetric matrix of coefficients, dimensionless.
        """
        values = [[self.get(a, b) for b in names] for a in names]
        return np.array(values, dtype=np.float64).reshape(len(names), len(names))


def _key(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _checked(mu: float, what: str) -> float:
    try:
        value = math.nan if isinstance(mu, (bool, str, bytes)) else float(mu)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value >= 0.0):
        raise MaterialError(
            f"friction, {what}: the coefficient is {mu!r}, but must be a finite number of at least 0; use 0 for no friction."
        )
    return value
