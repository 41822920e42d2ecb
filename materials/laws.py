"""Elastic laws for large strain: energy per rest volume as a function of the principal stretches.

A law sets the shape of the stress-stretch curve. :class:`materials.Elastic` sets its scale: the initial shear modulus is
E / (2 (1 + nu)), and the volumetric term makes Hooke's law with E and nu hold exactly at small strain. With the principal
stretches s_1, s_2, s_3 (in an inverted element the smallest is negative), J = s_1 s_2 s_3, I_1 = sum s_i^2,
I_2 = sum over pairs s_i^2 s_j^2, and the Lame constants mu and lambda:

- co-rotational: mu sum (s_i - 1)^2 + lambda/2 (sum s_i - 3)^2;
- Saint Venant-Kirchhoff: mu sum E_i^2 + lambda/2 (sum E_i)^2, E_i = (s_i^2 - 1)/2;
- stable neo-Hookean (Smith, de Goes and Kim, "Stable Neo-Hookean Flesh Simulation", ACM Trans. Graph. 37, 2018, eq. 14):
  m/2 (I_1 - 3) - m/2 log((I_1 + 1)/4) - 3/4 m (J - 1) + l/2 (J - 1)^2 with m = 4/3 mu, l = lambda + 5/6 mu;
- Mooney-Rivlin: c10 (I_1 - 3) + c01 (I_2 - 3) - (2 c10 + 4 c01)(J - 1) + l/2 (J - 1)^2 with l = lambda + 2 c10;
- Ogden: sum_p mu_p (sum_i (s_i^alpha_p - 1)/alpha_p - (J - 1)) + l/2 (J - 1)^2 with l = lambda + sum mu_p; below a stretch of 0.1
  the powers continue as parabolas, so they are defined for inverted elements too.

Departure from textbooks: Mooney-Rivlin and Ogden use the full, not the isochoric stretches, and volumetric terms that are
polynomials of J. They tend to the textbook laws as nu tends to 1/2, and are finite at J <= 0.
"""

import difflib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from materials.errors import MaterialError

Floats = NDArray[np.float64]
Loading = Literal["uniaxial", "equibiaxial", "planar"]
MAX_TERMS = 6
"""Most terms of an Ogden law."""


class Law(ABC):
    """Base class of the elastic laws.

    Attributes
    ----------
    kind : str
        Name of the law in cards and in ``add_soft(law=...)``.
    """

    kind: ClassVar[str] = ""

    @property
    def shear_modulus(self) -> float | None:
        """Initial shear modulus from the law's constants, Pa; None if it has none."""
        return None

    @abstractmethod
    def slopes(self, stretches: Floats, shear_modulus: float) -> Floats:
        """Return the derivatives of the energy, without its volumetric term, with respect to the principal stretches.

        Parameters
        ----------
        stretches : ndarray, (..., 3)
            Principal stretches.
        shear_modulus : float, Pa
            Initial shear modulus to which the law is scaled.

        Returns
        -------
        ndarray, (..., 3), Pa
        """

    def nominal_stress(self, stretch: ArrayLike, loading: Loading = "uniaxial", shear_modulus: float | None = None) -> Floats:
        """Nominal stress (force per rest area) of an incompressible body in homogeneous stretch.

        Parameters
        ----------
        stretch : array_like, (n,)
            Stretch, greater than 0; 1 at rest.
        loading : {"uniaxial", "equibiaxial", "planar"}
            Lateral stretches: both stretch^(-1/2); the second equal to the first; the second 1.
        shear_modulus : float, Pa, optional
            Initial shear modulus; default: from the law's constants.

        Returns
        -------
        ndarray, (n,), Pa
            Force per rest area along the (first) direction of stretch.

        Raises
        ------
        MaterialError
            If a stretch is not greater than 0, the loading is unknown, or no shear modulus is known.
        """
        first = np.atleast_1d(np.asarray(stretch, dtype=np.float64))
        shear = self.shear_modulus if shear_modulus is None else shear_modulus
        if shear is None:
            raise MaterialError(f"law {self.kind!r} has no constants of its own; give shear_modulus in Pa.")
        if not (np.isfinite(first).all() and (first > 0.0).all()):
            raise MaterialError(f"law {self.kind!r}: stretch is {stretch!r}, but must be finite and greater than 0; 1 is rest.")
        if loading not in get_args(Loading):
            raise MaterialError(f"law {self.kind!r}: loading is {loading!r}; allowed are {', '.join(get_args(Loading))}.")
        second = {"uniaxial": first**-0.5, "equibiaxial": first, "planar": np.ones_like(first)}[loading]
        third = 1.0 / (first * second)
        slopes = self.slopes(np.stack([first, second, third], axis=-1), float(shear))
        return slopes[:, 0] - slopes[:, 2] * third / first  # the pressure cancels the stress in the third direction


@dataclass(frozen=True)
class Corotational(Law):
    """Linear elasticity of the co-rotated strain: the default."""

    kind: ClassVar[str] = "corotational"

    def slopes(self, stretches: Floats, shear_modulus: float) -> Floats:
        """See :meth:`Law.slopes`."""
        return 2.0 * shear_modulus * (stretches - 1.0)


@dataclass(frozen=True)
class StVenantKirchhoff(Law):
    """Linear elasticity of Green's strain, for small strain and large rotation; it softens below a stretch of 0.58."""

    kind: ClassVar[str] = "st_venant_kirchhoff"

    def slopes(self, stretches: Floats, shear_modulus: float) -> Floats:
        """See :meth:`Law.slopes`."""
        return shear_modulus * stretches * (stretches**2 - 1.0)


@dataclass(frozen=True)
class StableNeoHookean(Law):
    """Neo-Hookean rubber, stable at rest, which recovers from inversion (Smith, de Goes and Kim, 2018)."""

    kind: ClassVar[str] = "stable_neo_hookean"

    def slopes(self, stretches: Floats, shear_modulus: float) -> Floats:
        """See :meth:`Law.slopes`."""
        square = (stretches**2).sum(axis=-1, keepdims=True)
        return 4.0 / 3.0 * shear_modulus * stretches * (1.0 - 1.0 / (square + 1.0))


@dataclass(frozen=True)
class MooneyRivlin(Law):
    """Mooney-Rivlin rubber; with c01 = 0 neo-Hookean.

    Parameters
    ----------
    c10, c01 : float
        Constants of I_1 and I_2, Pa, at least 0 and not both 0; the initial shear modulus is 2 (c10 + c01).

    Raises
    ------
    MaterialError
        If a constant is not a finite number of at least 0, or both are 0.
    """

    kind: ClassVar[str] = "mooney_rivlin"
    c10: float
    c01: float

    def __post_init__(self) -> None:
        """Convert and check the constants."""
        for field in ("c10", "c01"):
            given = getattr(self, field)
            value = _number(given)
            if not 0.0 <= value < math.inf:
                raise MaterialError(
                    f"law mooney_rivlin: {field} is {given!r}, but must be a finite number of at least 0 Pa (a negative one is "
                    f"unstable in some loading); correct {field}, or take another law."
                )
            object.__setattr__(self, field, value)
        if self.c10 + self.c01 <= 0.0:
            raise MaterialError("law mooney_rivlin: c10 and c01 are both 0 Pa, but their sum must be greater than 0; give one.")

    @property
    def shear_modulus(self) -> float:
        """Initial shear modulus 2 (c10 + c01), Pa."""
        return 2.0 * (self.c10 + self.c01)

    def slopes(self, stretches: Floats, shear_modulus: float) -> Floats:
        """See :meth:`Law.slopes`."""
        scale = shear_modulus / self.shear_modulus
        others = (stretches**2).sum(axis=-1, keepdims=True) - stretches**2
        return 2.0 * scale * stretches * (self.c10 + self.c01 * others)


@dataclass(frozen=True)
class Ogden(Law):
    """Ogden's law for rubber and silicone.

    Parameters
    ----------
    mu : sequence of float
        Constants mu_p, Pa, at most 6.
    alpha : sequence of float
        Exponents, dimensionless, as many as ``mu``; mu_p alpha_p greater than 0. Half their sum is the initial shear modulus.

    Raises
    ------
    MaterialError
        If a number is not finite, the numbers of constants and exponents differ, or a product mu_p alpha_p is not
        greater than 0 (its term would be unstable).

    Notes
    -----
    Convention of Ogden (1972), W = sum mu_p/alpha_p (...). Constants of programs that write 2 mu_p/alpha_p^2 are converted
    by mu_p = 2 mu_p'/alpha_p.
    """

    kind: ClassVar[str] = "ogden"
    mu: tuple[float, ...]
    alpha: tuple[float, ...]

    def __post_init__(self) -> None:
        """Convert and check the constants."""
        for field, unit in (("mu", "Pa"), ("alpha", "1")):
            given: object = getattr(self, field)
            values = tuple(_number(x) for x in given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
            if not 1 <= len(values) <= MAX_TERMS or not all(math.isfinite(x) for x in values):
                raise MaterialError(
                    f"law ogden: {field} is {given!r}, but must be 1 to {MAX_TERMS} finite numbers ({unit}); correct it."
                )
            object.__setattr__(self, field, values)
        if len(self.mu) != len(self.alpha):
            raise MaterialError(
                f"law ogden: mu has {len(self.mu)} numbers and alpha {len(self.alpha)}, but each term needs one of both; "
                "give equally many."
            )
        for p, (mu, alpha) in enumerate(zip(self.mu, self.alpha, strict=True)):
            if mu * alpha <= 0.0:
                raise MaterialError(
                    f"law ogden: mu[{p}] alpha[{p}] is {mu * alpha:g} Pa, but must be greater than 0, or the law is unstable in "
                    "some loading; give both the same sign, or leave the term out."
                )

    @property
    def shear_modulus(self) -> float:
        """Initial shear modulus, half the sum of mu_p alpha_p, Pa."""
        return 0.5 * sum(mu * alpha for mu, alpha in zip(self.mu, self.alpha, strict=True))

    def slopes(self, stretches: Floats, shear_modulus: float) -> Floats:
        """See :meth:`Law.slopes`; without the parabolas below a stretch of 0.1."""
        scale = shear_modulus / self.shear_modulus
        out = np.zeros_like(stretches)
        for mu, alpha in zip(self.mu, self.alpha, strict=True):
            out += scale * mu * stretches ** (alpha - 1.0)
        return out


LAWS: dict[str, type[Law]] = {law.kind: law for law in (Corotational, StVenantKirchhoff, StableNeoHookean, MooneyRivlin, Ogden)}
"""The laws by name."""
#: What the laws are called elsewhere, letters alone.
_OTHER_WORDS = {
    "neohookean": "stable_neo_hookean", "neohooke": "stable_neo_hookean", "stableneohookean": "stable_neo_hookean",
    "svk": "st_venant_kirchhoff", "stvk": "st_venant_kirchhoff", "saintvenantkirchhoff": "st_venant_kirchhoff",
    "corot": "corotational", "corotated": "corotational", "linear": "corotational", "mr": "mooney_rivlin",
}  # fmt: skip


def as_law(where: str, given: object) -> Law:
    """Return a law that is given directly or by name.

    Parameters
    ----------
    where : str
        Start of the error message.
    given : Law or str
        A law, or the name of one without constants.

    Raises
    ------
    MaterialError
        If it is neither, or the law needs constants.
    """
    if isinstance(given, Law):
        return given
    named = LAWS.get(given) if isinstance(given, str) else None
    if named is None:
        near = _OTHER_WORDS.get(re.sub("[^a-z]", "", str(given).lower())) or next(
            iter(difflib.get_close_matches(str(given).lower().replace("-", "_"), LAWS, 1, 0.5)), ""
        )
        question = f" did you mean {near!r}?" if near else ""
        raise MaterialError(
            f"{where}law is {given!r};{question} allowed are {', '.join(LAWS)}, or a law such as MooneyRivlin(c10, c01)."
        )
    if named in (MooneyRivlin, Ogden):
        raise MaterialError(
            f"{where}law is {given!r}, which needs constants; give MooneyRivlin(c10, c01), Ogden(mu, alpha) or a card."
        )
    return named()


def _number(given: object) -> float:
    try:
        return math.nan if isinstance(given, (bool, str, bytes)) else float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
