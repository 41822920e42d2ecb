"""Performance profiles: which share of problems a solver answers within a factor of the best (Dolan and More 2002).

For problem p and solver s with cost t, the ratio is r = t / min of t over the solvers whose answer passed the yardstick, infinite
where that of s did not; the profile is the share of problems with r at most tau. Problems that nobody solves stay in the count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

#: Times below this are the noise of the clock, ms.
FLOOR_MS = 0.01
#: Ratios at which tables give the profile.
AT = (1.0, 2.0, 10.0)


class Profile(NamedTuple):
    """Profile of one solver by one measure.

    Attributes
    ----------
    solved : int
        Problems solved.
    tau : ndarray, (k,)
        Ratios at which the share grows, ascending; empty where nothing was solved.
    share : ndarray, (k,)
        Share of the problems with a ratio of at most tau.
    """

    solved: int
    tau: np.ndarray
    share: np.ndarray

    def at(self, tau: float) -> float:
        """Share of the problems with a ratio of at most ``tau``."""
        below = int(np.searchsorted(self.tau, tau, side="right"))
        return float(self.share[below - 1]) if below else 0.0

    def area(self, largest: float) -> float:
        """Mean of the share over log2 tau from 1 to ``largest``, by which solvers are ranked; the share at 1 where that is 1."""
        if largest <= 1.0:
            return self.at(1.0)
        ends = np.log2(np.append(np.minimum(self.tau, largest), largest))
        return float((self.share * np.diff(ends)).sum() / math.log2(largest))


def performance_profiles(costs: Mapping[str, Sequence[float]], floor: float = 0.0) -> dict[str, Profile]:
    """Return the profile of each solver.

    Parameters
    ----------
    costs : mapping of str to sequence of float, (problems,)
        By solver: its cost on each problem; nan or inf where it gave no answer that passed.
    floor : float
        Costs below this count as this.
    """
    names = list(costs)
    table = np.array([[float(cost) for cost in costs[name]] for name in names]).reshape(len(names), -1)
    table = np.where(np.isfinite(table), np.maximum(table, floor), np.inf)
    problems = table.shape[1]
    best = table.min(axis=0, initial=np.inf)
    profiles: dict[str, Profile] = {}
    for name, row in zip(names, table, strict=True):
        solved = np.isfinite(row)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(best > 0, row / best, np.where(row > 0, np.inf, 1.0))
        ratios = np.sort(ratio[solved])
        tau, counts = np.unique(ratios, return_counts=True)
        share = np.cumsum(counts) / problems if problems else np.zeros(0)
        profiles[name] = Profile(int(solved.sum()), tau[np.isfinite(tau)], share[np.isfinite(tau)])
    return profiles


def largest_ratio(profiles: Mapping[str, Profile]) -> float:
    """Largest ratio in any of the profiles, at least 1: the end of their common axis."""
    return max((float(profile.tau[-1]) for profile in profiles.values() if len(profile.tau)), default=1.0)
