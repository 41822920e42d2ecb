"""The health verdict of a run: good, doubtful or wrong, and the reasons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from femsim.scene.health_bounds import Bounds

Verdict = Literal["good", "doubtful", "wrong"]
#: From good to bad.
VERDICTS: tuple[Verdict, ...] = ("good", "doubtful", "wrong")
#: What tells most about the cause comes first.
_FIRST = (
    "failed", "infeasible", "jammed", "locked", "folded", "led_overlap", "left_stop", "energy_stop", "collapsed", "inverted",
    "energy", "penetration", "between_nodes", "snagged",
)  # fmt: skip


@dataclass(frozen=True)
class When:
    """A step and the time at its end, s."""

    step: int
    time: float

    def __str__(self) -> str:
        return f"step {self.step} at {self.time:.4g} s"


@dataclass
class Reason:
    """Why a run is not good: a quantity that passed its bound.

    Attributes
    ----------
    verdict : {"doubtful", "wrong"}
        What it makes of the run.
    kind : str
        The bound, a field of :class:`femsim.scene.health_bounds.HealthBounds`, or "infeasible", "jammed", "locked", "failed",
        "collapsed", "flipped", "folded".
    bodies : list of str
        Names of the parts, bodies or actuators that it is about.
    value, bound : float
        Worst value, and the bound that it passed.
    step, time_s : int and float
        Step that first passed the lower bound, and the time at its end.
    worst_step, worst_time_s : int and float
        The same of the worst value.
    text : str
        What was seen, in words.
    advice : str
        What to change.
    """

    verdict: Verdict
    kind: str
    bodies: list[str]
    value: float
    bound: float
    step: int
    time_s: float
    worst_step: int
    worst_time_s: float
    text: str
    advice: str

    def __str__(self) -> str:
        first = f"from step {self.step} at {self.time_s:.4g} s"
        worst = "" if self.worst_step == self.step else f", worst in step {self.worst_step} at {self.worst_time_s:.4g} s"
        bound = f" (bound {self.bound:g})" if math.isfinite(self.bound) and self.bound > 0.0 else ""
        return f"{self.verdict}: {self.text}{bound}, {first}{worst}. {self.advice}".rstrip()


@dataclass
class Findings:
    """Reasons found so far, at most one for each kind and pair or body."""

    reasons: dict[str, Reason] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Worst of all reasons."""
        return max((reason.verdict for reason in self.reasons.values()), key=VERDICTS.index, default="good")

    def judge(self, kind: str, bodies: Sequence[str], value: float, bounds: Bounds, when: When, text: str, advice: str) -> None:
        """Take in a value of a step; what is below the bounds is no reason. Seven things that a reason consists of.

        Parameters
        ----------
        kind, bodies, value, text, advice
            See :class:`Reason`.
        bounds : (float, float)
            What must be passed to be doubtful, and to be wrong.
        when : When
            The step.
        """
        if not value > bounds[0]:
            return
        key = " ".join([kind, *sorted(bodies)])
        verdict: Verdict = "wrong" if value > bounds[1] else "doubtful"
        bound = bounds[VERDICTS.index(verdict) - 1]
        known = self.reasons.get(key)
        if known is None:
            self.reasons[key] = Reason(
                verdict, kind, list(bodies), value, bound, when.step, when.time, when.step, when.time, text, advice
            )
        elif value > known.value or verdict != known.verdict == "doubtful":
            known.value, known.text, known.advice = value, text, advice
            known.worst_step, known.worst_time_s = when.step, when.time
            if verdict == "wrong":
                known.verdict, known.bound = verdict, bound

    def ordered(self) -> list[Reason]:
        """Reasons, wrong ones first, then those that tell most, then by step."""

        def rank(reason: Reason) -> tuple[int, int, int]:
            telling = _FIRST.index(reason.kind) if reason.kind in _FIRST else len(_FIRST)
            return -VERDICTS.index(reason.verdict), telling, reason.step

        return sorted(self.reasons.values(), key=rank)

    def as_json(self) -> dict[str, Any]:
        """``verdict`` and ``reasons`` for run.json; a bound that is infinite is null."""
        reasons = []
        for reason in self.ordered():
            entry = asdict(reason) | {"sentence": str(reason)}
            for name in ("value", "bound"):
                entry[name] = entry[name] if math.isfinite(entry[name]) else None
            reasons.append(entry)
        return {"verdict": self.verdict, "reasons": reasons}


def headline(health: Mapping[str, Any]) -> str:
    """Verdict of run.json's ``health`` and its first reason in a line; how many more there are."""
    verdict, reasons = health.get("verdict"), health.get("reasons", [])
    if not verdict:
        return "unknown"
    if not reasons:
        return str(verdict)
    first = str(reasons[0].get("sentence", "")).partition(": ")[2]
    more = f" ({len(reasons) - 1} more in run.json)" if len(reasons) > 1 else ""
    return f"{verdict}: {first}{more}"
