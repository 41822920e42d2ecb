"""Least-squares fit of elastic laws to a tensile test: constants, errors, and the stretches over which each law is stable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from femsim.base.errors import InputError, did_you_mean, naming_parameters
from femsim.studies.material_fit.tensile_test import TensileTest, read_tensile_test
from materials import Corotational, Law, MooneyRivlin, Ogden, StableNeoHookean, StVenantKirchhoff
from materials.laws import Loading

#: Stretches in one of so many parts of the range are alike; stresses there that differ by this part of all, and hang together in
#: the order of the file by this autocorrelation, are of another time, not noise.
_PARTS, _DIFFER, _TOGETHER = 100, 0.02, 0.5
#: Loadings in which a fitted law is checked, compressed to half and pulled as far as the test went.
_LOADINGS: tuple[Loading, ...] = ("uniaxial", "equibiaxial", "planar")


@dataclass(frozen=True)
class LawFit:
    """A law fitted to a test.

    Attributes
    ----------
    label : str
        Name of the law, with the number of terms for Ogden.
    law : Law
        The law with its constants.
    shear_modulus : float, Pa
        Initial shear modulus.
    error : float, Pa
        Root mean square of the difference in engineering stress, over the range.
    relative_error : float
        The same over the root mean square of the measured stress.
    stable_from, stable_to : float
        Stretches around 1 between which the stress rises with the stretch, in uniaxial, equibiaxial and planar loading of the
        incompressible law; looked for from half to the end of the range.
    """

    label: str
    law: Law
    shear_modulus: float
    error: float
    relative_error: float
    stable_from: float
    stable_to: float

    @property
    def constants(self) -> int:
        """Number of constants fitted."""
        return 2 * len(self.law.mu) if isinstance(self.law, Ogden) else 2 if self.label == "mooney_rivlin" else 1


@dataclass(frozen=True)
class MaterialFit:
    """What :func:`fit_material` found.

    Attributes
    ----------
    test : TensileTest
        The whole test.
    strain_range : tuple of float
        Engineering strains of the first and the last sample used.
    samples : int
        Samples used.
    laws : tuple of LawFit
        One for each law asked for, in that order.
    differ : float
        Root mean square of what stresses at one stretch differ by, relative, where that is no noise: the stretch is held or goes
        back, or several pulls follow each other. Else 0.
    """

    test: TensileTest
    strain_range: tuple[float, float]
    samples: int
    laws: tuple[LawFit, ...]
    differ: float = 0.0

    @property
    def best(self) -> LawFit:
        """Law with the fewest constants among those within 5 % of the smallest error; only stable ones where there are any."""
        end = 1.0 + self.strain_range[1]
        stable = [fit for fit in self.laws if fit.stable_from <= 0.5 and fit.stable_to >= end * (1.0 - 1e-9)]
        near = [fit for fit in stable or self.laws if fit.error <= 1.05 * min(other.error for other in stable or self.laws)]
        return min(near, key=lambda fit: fit.constants)

    def summary(self) -> str:
        """Table of the laws: constants, error, stable range."""
        low, high = self.strain_range
        lines = [
            f"{self.test.name}: {self.samples} samples, engineering strain {low:.3g} to {high:.3g}",
            f"{'law':22} {'G Pa':>9} {'error Pa':>9} {'error':>7}  {'stable stretches':16}  constants",
        ]
        for fit in self.laws:
            stable = f"{fit.stable_from:.3g} to {fit.stable_to:.3g}"
            lines.append(
                f"{fit.label:22} {fit.shear_modulus:9.4g} {fit.error:9.3g} {100 * fit.relative_error:6.2f}%  {stable:16}  "
                f"{describe_law(fit.law, fit.shear_modulus)}"
            )
        if self.differ:
            lines.append(
                f"note: stresses at one stretch differ by {100 * self.differ:.2g} % (rms), and a law has one there: the stretch "
                "is held or goes back, or several pulls follow each other. Give one pull, or fit Prony terms too (--prony)"
            )
        return "\n".join(lines)


def _one_constant(law: Law) -> Callable[[np.ndarray], tuple[Law, float]]:
    return lambda x: (law, math.exp(x[0]))


def _mooney(x: np.ndarray) -> tuple[Law, float]:
    law = MooneyRivlin(float(x[0] ** 2), float(x[1] ** 2))
    return law, law.shear_modulus


def _ogden(x: np.ndarray) -> tuple[Law, float]:
    """Read x as (log(mu_p alpha_p), alpha_p) term by term: both of one sign always."""
    alpha = x[1::2]
    law = Ogden(tuple((np.exp(x[::2]) / alpha).tolist()), tuple(alpha.tolist()))
    return law, law.shear_modulus


#: From the name of a law to its function of the unknowns, and to the starts for a test of initial shear modulus G.
FITS: dict[str, tuple[Callable[[np.ndarray], tuple[Law, float]], Callable[[float], list[list[float]]]]] = {
    "corotational": (_one_constant(Corotational()), lambda g: [[math.log(g)]]),
    "st_venant_kirchhoff": (_one_constant(StVenantKirchhoff()), lambda g: [[math.log(g)]]),
    "stable_neo_hookean": (_one_constant(StableNeoHookean()), lambda g: [[math.log(g)]]),
    "neo_hookean": (
        lambda x: (MooneyRivlin(0.5 * math.exp(x[0]), 0.0), math.exp(x[0])),
        lambda g: [[math.log(g)]],
    ),
    "mooney_rivlin": (_mooney, lambda g: [[math.sqrt(0.4 * g), math.sqrt(0.1 * g)], [math.sqrt(0.1 * g), math.sqrt(0.4 * g)]]),
    "ogden_1": (_ogden, lambda g: [[math.log(2 * g), 2.0], [math.log(2 * g), -2.0]]),
    "ogden_2": (
        _ogden,
        lambda g: [[math.log(g), a, math.log(0.3 * g), b] for a, b in ((1.5, 5.0), (2.0, -2.0), (3.0, -5.0), (1.2, 3.5))],
    ),
    "ogden_3": (
        _ogden,
        lambda g: [
            [math.log(g), a, math.log(0.3 * g), b, math.log(0.01 * g), c]
            for a, b, c in ((1.5, -2.0, 6.0), (2.0, 4.0, -4.0), (1.2, 3.0, 8.0))
        ],
    ),
}
FIT_LAWS = tuple(FITS)
"""Names that :func:`fit_material` knows; "neo_hookean" is Mooney-Rivlin with c01 = 0."""


@naming_parameters
def fit_material(
    test: TensileTest | str | Path,
    laws: Sequence[str] = FIT_LAWS,
    *,
    min_strain: float = 0.05,
    max_strain: float = 1.0,
) -> MaterialFit:
    """Fit elastic laws to a tensile test by least squares in engineering stress, as incompressible bodies.

    Constants are kept where a law is stable: c10, c01 >= 0 of Mooney-Rivlin, mu_p alpha_p > 0 of Ogden.

    Parameters
    ----------
    test : TensileTest or path
        The test; a path is read by :func:`read_tensile_test`.
    laws : sequence of str
        Names out of ``FIT_LAWS``.
    min_strain, max_strain : float
        Engineering strains between which samples are used. Default 0.05 (grips settle below) to 1.

    Returns
    -------
    MaterialFit

    Raises
    ------
    InputError
        Unknown law, wrong range, fewer than 5 samples in it, or stresses that do not pull.
    """
    if not isinstance(test, TensileTest):
        test = read_tensile_test(test)
    for name in laws:
        if name not in FITS:
            raise InputError(f"law {name!r} cannot be fitted{did_you_mean(name, FIT_LAWS)}")
    if not -1.0 < min_strain < max_strain < math.inf:
        raise InputError(f"min_strain is {min_strain} and max_strain {max_strain}; allowed is -1 < min_strain < max_strain.")
    used = (test.stretch - 1.0 >= min_strain) & (test.stretch - 1.0 <= max_strain)
    stretch, stress = test.stretch[used], test.stress[used]
    if len(stretch) < 5:
        reach = f"{test.stretch.min() - 1:.3g} to {test.stretch.max() - 1:.3g}" if len(test.stretch) else "none"
        raise InputError(
            f"{test.name}: {len(stretch)} samples lie between the strains {min_strain:g} and {max_strain:g}, but a fit needs 5; "
            f"the test has strains {reach}."
        )
    unit = stretch - stretch**-2.0  # stress of a neo-Hookean rubber of G = 1 Pa
    start = float(unit @ stress / (unit @ unit))
    if start <= 0.0:
        raise InputError(f"{test.name}: the stress falls as the stretch grows (G = {start:.3g} Pa); check the signs.")
    fits = [_fit_law(name, stretch, stress, start) for name in laws]
    strains = (float(stretch.min() - 1.0), float(stretch.max() - 1.0))
    return MaterialFit(test, strains, len(stretch), tuple(fits), _differ(stretch, stress, fits))


def _differ(stretch: np.ndarray, stress: np.ndarray, fits: Sequence[LawFit]) -> float:
    """See :class:`MaterialFit`: what the best law leaves at samples (n,), beside its mean over those of like stretches."""
    best = min(fits, key=lambda fit: fit.error)
    left = stress - np.asarray(best.law.nominal_stress(stretch, shear_modulus=best.shear_modulus))
    part = np.floor(_PARTS * (stretch - stretch.min()) / max(float(np.ptp(stretch)), 1e-12)).astype(np.int64)
    left = left - (np.bincount(part, left) / np.maximum(np.bincount(part), 1))[part]
    power = float(left @ left)
    relative = math.sqrt(power / float(stress @ stress))
    return relative if relative > _DIFFER and float(left[1:] @ left[:-1]) > _TOGETHER * power else 0.0


def _fit_law(name: str, stretch: np.ndarray, stress: np.ndarray, start: float) -> LawFit:
    """Fit one law from all its starts, of which the best result counts; ``start`` is the shear modulus of a neo-Hookean fit."""
    from scipy.optimize import least_squares

    make, starts = FITS[name]
    size = float(np.sqrt(np.mean(stress**2)))

    def misfit(x: np.ndarray) -> np.ndarray:
        law, shear = make(x)
        return (law.nominal_stress(stretch, shear_modulus=shear) - stress) / size

    results = []
    for guess in starts(start):
        low, high = np.full(len(guess), -np.inf), np.full(len(guess), np.inf)
        if name.startswith("ogden"):  # an exponent keeps the sign and the size range of its start
            exponents = np.array(guess[1::2])
            low[1::2], high[1::2] = np.where(exponents > 0, 0.1, -15.0), np.where(exponents > 0, 15.0, -0.1)
            low[::2], high[::2] = math.log(start) - 25.0, math.log(start) + 5.0
        results.append(least_squares(misfit, guess, bounds=(low, high), x_scale="jac", max_nfev=2000))
    best = min(results, key=lambda r: r.cost)
    law, shear = make(best.x)
    relative = float(np.sqrt(np.mean(best.fun**2)))
    return LawFit(name, law, shear, relative * size, relative, *stable_range(law, shear, float(stretch.max())))


def stable_range(law: Law, shear: float, furthest: float) -> tuple[float, float]:
    """Smallest and largest stretch between which the nominal stress rises with it, uniaxial, equibiaxial and planar.

    Parameters
    ----------
    law : Law
        The law, taken as incompressible.
    shear : float, Pa
        Shear modulus.
    furthest : float
        Stretch up to which to look; below 1 down to 0.5.
    """
    edges = []
    for reach in (0.5, max(furthest, 1.0)):
        stretch = np.linspace(1.0, reach, 400)
        edge = reach
        for loading in _LOADINGS:
            stress = law.nominal_stress(stretch, loading, shear)
            falling = np.diff(stress) / np.diff(stretch) <= 0.0 if reach != 1.0 else np.zeros(1, dtype=bool)
            if falling.any():
                limit = float(stretch[np.argmax(falling)])
                edge = max(edge, limit) if reach < 1.0 else min(edge, limit)
        edges.append(edge)
    return edges[0], edges[1]


def describe_law(law: Law, shear: float) -> str:
    """Constants of a law in words."""
    if isinstance(law, MooneyRivlin):
        return f"c10 {law.c10:.5g} Pa, c01 {law.c01:.5g} Pa"
    if isinstance(law, Ogden):
        return ", ".join(f"mu {mu:.5g} Pa alpha {alpha:.4g}" for mu, alpha in zip(law.mu, law.alpha, strict=True))
    return f"G {shear:.5g} Pa"
