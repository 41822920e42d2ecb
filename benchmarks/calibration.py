"""How fast this machine is right now: two kernels to divide figures by, and the clock that all figures share.

Time is CPU time of the calling thread (``time.thread_time``), so that other jobs disturb it as little as they
can; of several repeats the best one is the figure, and the median says how noisy it was.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

#: Entries of the triad's arrays: three of them (24 MB) do not fit into a core's own cache.
TRIAD_SIZE = 1_000_000


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs of one thing: the best and the median."""

    best: float
    median: float


def timing_of(samples: Sequence[float]) -> Timing:
    """Best and median of samples in seconds."""
    return Timing(min(samples), statistics.median(samples))


def cpu_timing(
    function: Callable[[], object],
    *,
    repeat: int,
    inner: int = 1,
    before: Callable[[], object] | None = None,
) -> Timing:
    """Time a function after one call that is not counted.

    Parameters
    ----------
    function : callable
        What to time.
    repeat : int
        Samples.
    inner : int
        Calls a sample; the sample is their mean.
    before : callable, optional
        Called before each sample, outside the clock.

    Returns
    -------
    Timing
        Seconds of thread CPU time a call.
    """
    samples = []
    for number in range(repeat + 1):
        if before is not None:
            before()
        started = time.thread_time()
        for _ in range(inner):
            function()
        if number:
            samples.append((time.thread_time() - started) / inner)
    return timing_of(samples)


@dataclass(frozen=True)
class Calibration:
    """The machine at one moment.

    Attributes
    ----------
    matvec : Timing, s
        scipy's product ``A @ x`` with the assembled matrix of the scene in CSR: most of an iteration is one.
    triad : Timing, s
        ``a = b + s c`` in numpy, two passes over arrays of ``TRIAD_SIZE``: memory alone.
    """

    matvec: Timing
    triad: Timing


def calibrate(A: sp.csc_matrix, *, repeat: int) -> Calibration:
    """Time both kernels.

    Parameters
    ----------
    A : scipy.sparse.csc_matrix, (n, n)
        An assembled matrix; only its values and pattern matter.
    repeat : int
        Samples, of 20 products and of 2 triads.
    """
    matrix = sp.csr_matrix(A)
    rng = np.random.default_rng(0)
    x = rng.standard_normal(matrix.shape[1])
    a, b, c = np.empty(TRIAD_SIZE), rng.standard_normal(TRIAD_SIZE), rng.standard_normal(TRIAD_SIZE)

    def triad() -> None:
        np.multiply(c, 1.5, out=a)
        np.add(a, b, out=a)

    return Calibration(cpu_timing(lambda: matrix @ x, repeat=repeat, inner=20), cpu_timing(triad, repeat=repeat, inner=2))
