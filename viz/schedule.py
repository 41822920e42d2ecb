"""Which frames of runs are drawn: stills, the pictures of a film in its own time, and what is looked at before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from viz.survey import Frame

#: Frames, evenly spaced, that are looked at beside those that are drawn.
SURVEYED = 7


class Schedule(NamedTuple):
    """Frames of runs side by side, and which of them are drawn.

    Attributes
    ----------
    rows : list of list of Frame
        For each frame of the longest run, a frame of each run.
    stills : set of int
        Numbers of the rows that become stills.
    film : list of int
        Number of the row that each picture of the film shows; empty without a film.
    """

    rows: list[list[Frame]]
    stills: set[int]
    film: list[int]

    @property
    def times(self) -> list[float]:
        """Time of each row, s."""
        return [max(frame.time for frame in row) for row in self.rows]

    @property
    def numbers(self) -> list[int]:
        """Rows that are drawn, in order."""
        return sorted({*self.stills, *self.film})

    def looked_at(self, run: int) -> list[Frame]:
        """Frames of a run that say what moves, how far, and what its fields are: all that are drawn, and some between."""
        numbers = sorted({*self.numbers, *still_numbers(len(self.rows), SURVEYED)})  # also of one still
        return list(dict.fromkeys(self.rows[number][run] for number in numbers))


def schedule(runs: list[list[Frame]], stills: int, film: tuple[float, float] | None) -> Schedule:
    """Choose frames of runs for stills and for a film of (pictures a second, seconds of the run in a second); None: no film."""
    rows = nearest_frames(runs)
    plan = Schedule(rows, still_numbers(len(rows), stills), [])
    return plan if film is None else plan._replace(film=film_numbers(plan.times, *film))


def nearest_frames(runs: list[list[Frame]]) -> list[list[Frame]]:
    """For each frame of the longest run, the frames of all runs nearest to it in time."""
    longest = max(runs, key=lambda frames: (frames[-1].time, len(frames)))
    times = [np.array([frame.time for frame in frames]) for frames in runs]
    return [
        [frames[int(np.argmin(np.abs(own - frame.time)))] for frames, own in zip(runs, times, strict=True)] for frame in longest
    ]


def film_numbers(times: Sequence[float], fps: float, speed: float) -> list[int]:
    """For each picture of a film the number of the frame that it shows: the last one up to its time."""
    count = int(np.floor((times[-1] - times[0]) * fps / speed + 1e-6)) + 1
    moments = times[0] + np.arange(count) * speed / fps
    numbers = np.searchsorted(times, moments + 1e-6 * speed / fps, side="right") - 1
    return [*(int(number) for number in numbers[:-1]), len(times) - 1]  # a film ends as the run ends


def still_numbers(n_frames: int, stills: int) -> set[int]:
    """Numbers of evenly spaced frames, first and last included; of one, the last."""
    return {round(float(x)) for x in np.linspace(0, n_frames - 1, stills)} if stills != 1 else {n_frames - 1}
