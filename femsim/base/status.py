"""How a run, a solved problem, a sweep or a calibration ended: four words, the same for all of them.

converged
    It was done to the end, and everything in it converged: every step by its true residuals, every case, the refinement.
not converged
    It was done to the end, but something in it did not converge. Results are written; the message says what and where.
interrupted
    The user stopped it. Results up to there are written.
failed
    It could not go on: a value was not finite, no case ran, or a process or disk was lost. What there is, is written.

A contact solver has words of its own (``contact.solvers.judge``): converged, infeasible, stopped at rounding, stopped at the
limit, failed. A step whose solver stopped is not converged, and so is its run. Parts of a study may end in other ways too: a
case of a sweep "timed out", a solver in a benchmark "not applicable".

Beside the status, a run has a *health verdict* (good, doubtful, wrong): what its numbers are worth as physics, see
:mod:`femsim.run.verdict`. A run that is wrong exits as one that did not converge.
"""

from __future__ import annotations

from typing import Literal

Status = Literal["converged", "not converged", "interrupted", "failed"]
#: With these there is a result to the end.
FINISHED: tuple[Status, ...] = ("converged", "not converged")

#: Exit statuses of the command line.
OK, INTERNAL, WRONG_INPUT, NOT_CONVERGED, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_STATUS: dict[Status, int] = {
    "converged": OK, "not converged": NOT_CONVERGED, "interrupted": INTERRUPTED, "failed": NOT_CONVERGED,
}  # fmt: skip


def exit_status(status: Status, verdict: str = "good") -> int:
    """Exit status of a run: that of its status, and 3 where it is "converged" but wrong."""
    return NOT_CONVERGED if status == "converged" and verdict == "wrong" else EXIT_STATUS[status]
