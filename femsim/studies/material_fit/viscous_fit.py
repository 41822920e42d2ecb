"""Least-squares fit of an elastic law and Prony terms to tests with a time: a held stretch relaxes, pulls have several rates.

The recursion is compiled (njit): a fit asks for it thousands of times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contact.compiled import njit
from femsim.base.errors import InputError, did_you_mean, naming_parameters
from femsim.studies.comparison.agreement import autocorrelation
from femsim.studies.material_fit.fit import FIT_LAWS, FITS, LawFit, MaterialFit, describe_law, stable_range
from femsim.studies.material_fit.tensile_test import TensileTest, read_tensile_test
from materials import Law, Prony, creep, loss_factor

#: Rates of pulls that tell relaxation from the curve of the law differ at least by this factor.
_RATES = 3.0
#: Parts of a test over which its rate is looked at, and the part of the largest rate below which it stands.
_PIECES, _STANDS = 20, 0.1
#: A test begins at once where its first strain is this part of its largest; noise of the stretch matters from this part of the
#: error on, if it is more than what rounding leaves.
_AT_ONCE, _NOISY, _ROUNDED = 0.1, 0.3, 1e-5
#: Starts of the g.
_STARTS = (0.1, 0.5)


@dataclass(frozen=True)
class ViscousFit:
    """What :func:`fit_viscous` found.

    Attributes
    ----------
    tests : tuple of TensileTest
        The tests.
    fit : MaterialFit
        The law, whose constants are the long-term ones, and the error of law and terms together.
    prony : tuple of (g, tau)
        The terms: part of the long-term shear modulus, and relaxation time (s), the quickest first.
    g_half : tuple of float
        Half of the 95 % interval of each g; residuals that hang together count as fewer.
    tau_factor : tuple of float
        Factor by which each tau may be longer or shorter, of the same kind.
    """

    tests: tuple[TensileTest, ...]
    fit: MaterialFit
    prony: Prony
    g_half: tuple[float, ...]
    tau_factor: tuple[float, ...]

    @property
    def law(self) -> LawFit:
        """The law."""
        return self.fit.laws[0]

    @property
    def undetermined(self) -> tuple[int, ...]:
        """Terms, from 1, that the tests do not determine: g not known to its own size, or tau not to a factor of 10."""
        both = zip(self.prony, self.g_half, self.tau_factor, strict=True)
        return tuple(k for k, ((g, _), half, factor) in enumerate(both, start=1) if not (half < g and factor < 10.0))

    @property
    def notes(self) -> tuple[str, ...]:
        """What makes terms wrong beyond their intervals: a test without its pull, a noisy stretch."""
        out, stiff = [], 3.0 * self.law.shear_modulus * (1.0 + sum(g for g, _ in self.prony))
        for test in self.tests:
            strain = test.stretch - 1.0
            if abs(strain[0]) > _AT_ONCE * np.abs(strain).max():
                out.append(
                    f"{test.name} begins at a strain of {strain[0]:.3g}, taken as put on at once with its first sample: terms as "
                    "quick as the pull are not believable; give its samples too"
                )
            noise = _noise(_time(test), test.stretch)
            if noise > _ROUNDED and noise * stiff > _NOISY * self.law.error:
                part = 100.0 * min(noise * stiff / self.law.error, 1.0)
                out.append(
                    f"{test.name}: noise of the stretch, {noise:.2g}, makes {part:.0f} % of the error: quick terms come out too "
                    "small and too slow; give the stretch of the drive, or smooth it"
                )
        return tuple(out)

    def stress(self, test: TensileTest) -> np.ndarray:
        """Engineering stress (n,), Pa, of law and terms at the samples of a test."""
        return viscous_stress(self.law.law, self.law.shear_modulus, self.prony, _time(test), test.stretch)

    def summary(self) -> str:
        """Law, terms with their intervals, loss factor and creep."""
        law = self.law
        lines = [
            f"{self.fit.test.name}: {self.fit.samples} samples, error {law.error:.3g} Pa, {100 * law.relative_error:.2f}%",
            f"{law.label}, long-term  {describe_law(law.law, law.shear_modulus)}; G {law.shear_modulus:.5g} Pa",
        ]
        for k, ((g, tau), half, factor) in enumerate(zip(self.prony, self.g_half, self.tau_factor, strict=True), start=1):
            told = "  the tests do not determine it" if k in self.undetermined else ""
            lines.append(f"term {k}            g {g:.4g} +- {half:.2g}, tau {tau:.4g} s (by a factor of {factor:.3g}){told}")
        times = [tau for _, tau in self.prony]
        for frequency in np.geomspace(1.0 / (2.0 * math.pi * max(times)), 1.0 / (2.0 * math.pi * min(times)), 3):
            lines.append(f"loss factor       {float(loss_factor(self.prony, frequency)):.3g} at {frequency:.3g} Hz")
        for t in (1.0, 60.0):
            grown = float(creep(self.prony, t) / creep(self.prony, 0.0)) - 1.0
            lines.append(f"creep             {100 * grown:.3g} % in the first {'second' if t == 1.0 else 'minute'}")
        return "\n".join([*lines, *(f"note              {note}" for note in self.notes)])


def viscous_stress(law: Law, shear_modulus: float, prony: Prony, time: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """Return the engineering stress of an incompressible body in uniaxial tension.

    Parameters
    ----------
    law : Law
        Long-term law.
    shear_modulus : float, Pa
        Its initial shear modulus, long-term.
    prony : sequence of (g, tau)
        Terms.
    time, stretch : ndarray, (n,), s and 1
        History: relaxed before the first sample, between samples at a constant rate of strain, exactly.

    Returns
    -------
    ndarray, (n,), Pa
        Force over rest area. The deviator of the stretch is (2, -1, -1)/3 times l - 1/sqrt(l), see
        :mod:`femsim.model.bodies.viscous_kernels`; a spring of strain (2, -1, -1)/3 y bears 2 G g y (2 + l^(-3/2))/3.
    """
    stress = np.asarray(law.nominal_stress(stretch, shear_modulus=shear_modulus))
    if not prony:
        return stress
    g, tau = np.array(prony, dtype=np.float64).T
    strain = stretch - stretch**-0.5
    steps, changes = np.diff(time, prepend=time[0]), np.diff(strain, prepend=0.0)
    z = steps[:, None] / tau
    kept = np.exp(-z)
    taken = np.where(z > 1e-12, -np.expm1(-z) / np.maximum(z, 1e-12), 1.0) * changes[:, None]
    springs = np.empty_like(kept)
    _recursion(kept, taken, springs)
    return np.asarray(stress + shear_modulus * (springs @ g) * (2.0 / 3.0) * (2.0 + stretch**-1.5))


@njit(cache=True)
def _recursion(kept: np.ndarray, taken: np.ndarray, springs: np.ndarray) -> None:
    """Fill springs[k] = kept[k] springs[k - 1] + taken[k], (n, b), from nothing."""
    for b in range(kept.shape[1]):
        last = 0.0
        for k in range(kept.shape[0]):
            last = kept[k, b] * last + taken[k, b]
            springs[k, b] = last


@naming_parameters
def fit_viscous(
    tests: TensileTest | str | Path | Sequence[TensileTest | str | Path],
    terms: int = 2,
    law: str = "ogden_1",
    *,
    min_strain: float = -0.5,
    max_strain: float = 1.0,
) -> ViscousFit:
    """Fit an elastic law and Prony terms together to tests with a time, by least squares in engineering stress.

    Parameters
    ----------
    tests : TensileTest or path, or a sequence of them
        Each with a column "time (s)". A held stretch or a return in one of them, or pulls at rates that differ three times or
        more, tell relaxation from the curve of the law; one pull at one rate does not.
    terms : int
        Number of terms, 1 to 5.
    law : str
        Name out of ``FIT_LAWS``.
    min_strain, max_strain : float
        Engineering strains between which samples are used.

    Returns
    -------
    ViscousFit

    Raises
    ------
    InputError
        A test without time, tests that cannot tell, or wrong values.
    """
    from scipy.optimize import least_squares

    given = (tests,) if isinstance(tests, (TensileTest, str, Path)) else tests
    read = tuple(test if isinstance(test, TensileTest) else read_tensile_test(test) for test in given)
    if not read:
        raise InputError("no tensile test is given; name at least one.")
    if law not in FITS:
        raise InputError(f"law {law!r} cannot be fitted{did_you_mean(law, FIT_LAWS)}")
    if not 1 <= terms <= 5:
        raise InputError(f"{terms!r} Prony terms are asked for; allowed are 1 to 5.")
    _check_that_they_tell(read)
    used = [(test.stretch - 1.0 >= min_strain) & (test.stretch - 1.0 <= max_strain) for test in read]
    stretch = np.concatenate([test.stretch[u] for test, u in zip(read, used, strict=True)])
    stress = np.concatenate([test.stress[u] for test, u in zip(read, used, strict=True)])
    make, starts = FITS[law]
    unknown = len(starts(1.0)[0])
    if len(stretch) < 5 + unknown + 2 * terms:
        raise InputError(f"{len(stretch)} samples lie between the strains {min_strain:g} and {max_strain:g}: too few for a fit.")
    size = float(np.sqrt(np.mean(stress**2)))
    unit = stretch - stretch**-2.0  # stress of a neo-Hookean rubber of G = 1 Pa
    shear = float(unit @ stress / (unit @ unit))
    if shear <= 0.0:
        raise InputError(f"{read[0].name}: the stress falls as the stretch grows (G = {shear:.3g} Pa); check the signs.")
    span = min(float(np.median(np.diff(_time(test)))) for test in read), max(float(np.ptp(_time(test))) for test in read)
    tau = np.geomspace(2.0 * span[0], span[1], terms + 2)[1:-1]

    def misfit(x: np.ndarray) -> np.ndarray:
        found, modulus = make(x[:unknown])
        pairs = tuple(zip(x[unknown::2].tolist(), np.exp(x[unknown + 1 :: 2]).tolist(), strict=True))
        all_of = [
            (viscous_stress(found, modulus, pairs, _time(t), t.stretch) - t.stress)[u] for t, u in zip(read, used, strict=True)
        ]
        return np.concatenate(all_of) / size

    results = []
    for g in _STARTS:
        for start in starts(shear / (1.0 + g * terms)):
            x = np.concatenate([start, np.column_stack([np.full(terms, g), np.log(tau)]).ravel()])
            bounds = _bounds(law, x, unknown, shear, span)
            results.append(least_squares(misfit, x, bounds=bounds, x_scale="jac", max_nfev=400))
    best = min(results, key=lambda r: r.cost)
    memory = max(_memory(of_test) for of_test in np.split(best.fun, np.cumsum([u.sum() for u in used])[:-1]))
    return _found(read, law, best.x, best.fun, best.jac, unknown, size, (stretch.min() - 1.0, stretch.max() - 1.0), memory)


def _noise(time: np.ndarray, stretch: np.ndarray) -> float:
    """Deviation of a stretch from the line between its neighbours, (n,) each, as that of noise; few corners do not count."""
    ahead, behind = np.diff(time)[1:], np.diff(time)[:-1]
    part = np.divide(behind, ahead + behind, out=np.full(len(ahead), 0.5), where=ahead + behind > 0.0)
    off = stretch[1:-1] - (1.0 - part) * stretch[:-2] - part * stretch[2:]
    own = np.sqrt(1.0 + part**2 + (1.0 - part) ** 2)
    return 1.4826 * float(np.median(np.abs(off) / own)) if len(off) else 0.0


def _memory(residuals: np.ndarray) -> float:
    """How many residuals of a test, (n,), go on one independent one."""
    return 1.0 + 2.0 * float(autocorrelation(residuals[:, None]).sum()) if len(residuals) else 1.0


def _bounds(law: str, x: np.ndarray, unknown: int, shear: float, span: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the unknowns about a start x: those of the law, then g and log(tau) of each term; ``span`` of the samples, s."""
    low, high = np.full(len(x), -np.inf), np.full(len(x), np.inf)
    if law.startswith("ogden"):  # an exponent keeps its sign
        low[:unknown:2], high[:unknown:2] = math.log(shear) - 25.0, math.log(shear) + 5.0
        positive = x[1:unknown:2] > 0.0
        low[1:unknown:2], high[1:unknown:2] = np.where(positive, 0.1, -15.0), np.where(positive, 15.0, -0.1)
    low[unknown::2], high[unknown::2] = 0.0, 100.0
    low[unknown + 1 :: 2], high[unknown + 1 :: 2] = math.log(0.1 * span[0]), math.log(10.0 * span[1])
    return low, high


def _found(
    tests: tuple[TensileTest, ...], law: str, x: np.ndarray, residuals: np.ndarray, jacobian: np.ndarray, unknown: int,
    size: float, strains: tuple[float, float], memory: float,
) -> ViscousFit:  # fmt: skip
    """Put the result together: x is the unknowns of the law, then g and log(tau) of each term.

    Of ``memory`` residuals one counts: those of a model that is not exact, or of noise that was filtered, hang together.
    """
    from scipy.special import stdtrit

    made, shear = FITS[law][0](x[:unknown])
    relative = float(np.sqrt(np.mean(residuals**2)))
    low, high = (float(strain) for strain in strains)
    one = LawFit(law, made, shear, relative * size, relative, *stable_range(made, shear, 1.0 + high))
    whole = TensileTest(
        ", ".join(test.name for test in tests),
        np.concatenate([test.stretch for test in tests]),
        np.concatenate([test.stress for test in tests]),
    )
    variance = memory * float(residuals @ residuals) / max(len(residuals) - len(x), 1)
    wide_by = float(stdtrit(max(len(residuals) / memory - len(x), 1.0), 0.975))
    # a singular value of nothing is a direction that the tests do not tell: its variance is without bound
    _, values, directions = np.linalg.svd(jacobian, full_matrices=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(variance * ((directions / np.maximum(values, 1e-12 * values[0])[:, None]) ** 2).sum(axis=0))
    order = np.argsort(x[unknown + 1 :: 2])
    g, tau = x[unknown::2][order], np.exp(x[unknown + 1 :: 2][order])
    half, wide = wide_by * spread[unknown::2][order], np.exp(np.minimum(wide_by * spread[unknown + 1 :: 2][order], 50.0))
    prony = tuple((float(a), float(b)) for a, b in zip(g, tau, strict=True))
    return ViscousFit(
        tests, MaterialFit(whole, (low, high), len(residuals), (one,)), prony,
        tuple(float(value) for value in half), tuple(float(value) for value in wide),
    )  # fmt: skip


def _time(test: TensileTest) -> np.ndarray:
    """Time of the samples, (n,), s."""
    if test.time is None:
        why = test.no_time or "add a column 'time (s)' that does not fall"
        raise InputError(f"{test.name}: Prony terms need the time of each sample; {why}.")
    return test.time


def _check_that_they_tell(tests: tuple[TensileTest, ...]) -> None:
    """Refuse tests that are all pulls at one rate: any relaxation looks like a softer law there."""
    fastest = []
    for test in tests:
        time = _time(test)
        if len(time) < 2 or time[-1] <= time[0]:
            raise InputError(f"{test.name}: the time does not grow; give samples in the order in which they were taken.")
        ends = np.interp(np.linspace(time[0], time[-1], _PIECES + 1), time, test.stretch)
        rates = np.diff(ends) / (time[-1] - time[0]) * _PIECES
        fastest.append(float(rates.max()))
        if rates.min() < _STANDS * np.abs(rates).max():
            return
    if max(fastest) < _RATES * min(fastest):
        raise InputError(
            f"{', '.join(test.name for test in tests)}: pulled at {min(fastest):.3g} to {max(fastest):.3g} 1/s without a pause, "
            "which does not tell Prony terms from the curve of the law; give a test in which the stretch is held or goes back, "
            "or tests at rates that differ three times or more."
        )
