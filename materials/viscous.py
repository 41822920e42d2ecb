"""Viscoelasticity: Prony terms (g, tau), and the numbers that an experiment shows: relaxation, loss factor, creep.

The shear modulus that a body shows at a time t after a step of strain is

    mu(t) = mu (1 + sum_i g_i exp(-t/tau_i)),

mu the **long-term** (relaxed) one, that of Young's modulus and Poisson's ratio of the material; at once the body is 1 + sum g
times as stiff. The bulk modulus does not relax. Programs whose g' are parts of the instantaneous modulus have
g = g' / (1 - sum g').
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from materials.errors import MaterialError

#: Terms (g, tau): part of the long-term shear modulus, dimensionless, and relaxation time, s.
Prony = tuple[tuple[float, float], ...]

#: Largest sum of g: no rubber is so many times stiffer at once than after a long time.
MOST_PRONY = 1000.0


def checked_prony(where: str, prony: object) -> Prony:
    """Return Prony terms as pairs of floats.

    Parameters
    ----------
    where : str
        How messages begin.
    prony : sequence of (g, tau)
        g at least 0 (dimensionless), tau greater than 0 (s).

    Raises
    ------
    MaterialError
        Something else; the message says which term.
    """
    allowed = "give pairs (g, tau) such as ((0.1, 0.05), (0.05, 1.0)), tau in seconds, or () for none"
    if isinstance(prony, (str, bytes)) or not isinstance(prony, Iterable):
        raise MaterialError(f"{where}prony is {prony!r}, but must be a list of pairs; {allowed}.")
    terms = []
    for number, term in enumerate(prony, start=1):
        try:
            g, tau = (math.nan if isinstance(value, (bool, str, bytes)) else float(value) for value in term)
        except (TypeError, ValueError):
            raise MaterialError(f"{where}prony has {term!r} as term {number}, which is no pair; {allowed}.") from None
        if not (0.0 <= g < math.inf and 0.0 < tau < math.inf):
            raise MaterialError(
                f"{where}prony has {term!r} as term {number}, but g must be at least 0 and tau greater than 0 s, both finite; "
                f"{allowed}."
            )
        terms.append((g, tau))
    total = sum(g for g, _ in terms)
    if total > MOST_PRONY:
        raise MaterialError(
            f"{where}the g of prony sum up to {total:g}, but at most {MOST_PRONY:g} is allowed; they are parts of the long-term "
            "modulus, dimensionless: divide moduli by it."
        )
    return tuple(terms)


def relaxation(prony: object, time: ArrayLike) -> np.ndarray:
    """Return the shear stress at times (s) after a step of strain, over that after a long time: 1 + sum g exp(-t/tau)."""
    g, tau = _arrays(prony)
    return np.asarray(1.0 + np.exp(-np.asarray(time, dtype=np.float64)[..., None] / tau) @ g)


def complex_modulus(prony: object, frequency: ArrayLike, poisson_ratio: float = 0.5) -> np.ndarray:
    """Return the complex modulus at frequencies over the long-term one: storage and loss modulus are its parts.

    Parameters
    ----------
    prony : sequence of (g, tau)
        Terms, tau in s.
    frequency : array-like, Hz
        Of small oscillations.
    poisson_ratio : float
        Long-term Poisson's ratio; the modulus is that of tension and bending. The default, 1/2, gives that of shear too.

    Returns
    -------
    ndarray of complex
        1 in slow motion.
    """
    g, tau = _arrays(prony)
    turn = 2j * math.pi * np.asarray(frequency, dtype=np.float64)[..., None] * tau
    shear = 1.0 + (turn / (1.0 + turn)) @ g
    return np.asarray(1.0 / _in_tension(1.0 / shear, poisson_ratio))


def loss_factor(prony: object, frequency: ArrayLike, poisson_ratio: float = 0.5) -> np.ndarray:
    """Return the loss factor tan(delta), loss over storage modulus, at frequencies; parameters as :func:`complex_modulus`.

    The amplitude of a free oscillation falls by about exp(-pi tan(delta)) in a period.
    """
    modulus = complex_modulus(prony, frequency, poisson_ratio)
    return np.asarray(modulus.imag / modulus.real)


def creep(prony: object, time: ArrayLike, poisson_ratio: float = 0.5) -> np.ndarray:
    """Return the strain at times (s) after a load is put on, over that after a long time: 1 / (1 + sum g) at once, 1 in the end.

    Parameters
    ----------
    prony : sequence of (g, tau)
        Terms, tau in s.
    time : array-like, s
        Since the load is on; it stays constant.
    poisson_ratio : float
        Long-term Poisson's ratio, for a load in tension or bending; the default, 1/2, is right for shear too.
    """
    from scipy.linalg import eigh

    g, tau = _arrays(prony)
    since = np.asarray(time, dtype=np.float64)
    root = np.sqrt(g)
    # the strains x of the springs of the branches, times root: (1 + root root^T) y' = - y / tau, the load being constant
    rates, modes = eigh(np.diag(1.0 / tau), np.eye(len(g)) + np.outer(root, root))
    start = modes.T @ root  # of y = root / (1 + sum g) in these modes
    return _in_tension(1.0 - np.exp(-since[..., None] * rates) @ (start * (modes.T @ root)), poisson_ratio)


def prony_of_loss_factor(loss: float, low: float, high: float, terms: int = 3) -> Prony:
    """Return terms whose loss factor is about the same between two frequencies, as that of many rubbers is.

    Relaxation times are spread evenly (in log) over the band, from 1/(2 pi high) to 1/(2 pi low), and the g fitted by least
    squares; ``loss_factor`` says how well.

    Parameters
    ----------
    loss : float
        Loss factor tan(delta), dimensionless, at least 0.
    low, high : float, Hz
        The band, 0 < low < high.
    terms : int
        Number of terms, at least 1; about one a decade keeps the loss factor within a tenth.

    Raises
    ------
    MaterialError
        A value is out of range.
    """
    from scipy.optimize import nnls

    if not 0.0 <= loss < math.inf:
        raise MaterialError(f"loss is {loss!r}, but must be at least 0 and finite; give a loss factor such as 0.1.")
    if not 0.0 < low < high < math.inf:
        raise MaterialError(f"the band is from {low!r} to {high!r} Hz; allowed is 0 < low < high.")
    if terms < 1:
        raise MaterialError(f"terms is {terms!r}; allowed is at least 1.")
    tau = (
        np.geomspace(1.0 / low, 1.0 / high, terms) / (2.0 * math.pi)
        if terms > 1
        else np.array([0.5 / math.pi / math.sqrt(low * high)])
    )
    turn = 2j * math.pi * np.geomspace(low, high, 20 * terms)[:, None] * tau
    share = turn / (1.0 + turn)
    g, _ = nnls(share.imag - loss * share.real, np.full(len(turn), loss))
    return tuple((float(a), float(t)) for a, t in zip(g, tau, strict=True))


def _arrays(prony: object) -> tuple[np.ndarray, np.ndarray]:
    """All g, and all tau (s)."""
    terms = np.array(checked_prony("", prony), dtype=np.float64).reshape(-1, 2)
    return terms[:, 0], terms[:, 1]


def _in_tension(compliance: np.ndarray, poisson_ratio: float) -> np.ndarray:
    """Compliance in tension from that in shear, each over its long-term value; the bulk modulus does not relax."""
    if not -1.0 < poisson_ratio <= 0.5:
        raise MaterialError(f"poisson_ratio is {poisson_ratio!r}, but must be above -1 and at most 0.5; correct it.")
    shear = 2.0 * (1.0 + poisson_ratio)  # its part, of 3: 1/E = 1/(9 K) + 1/(3 mu)
    return np.asarray((shear * compliance + 1.0 - 2.0 * poisson_ratio) / 3.0)
