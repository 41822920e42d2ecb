"""The loop of a run: step after step until the end, an interrupt or a failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from contact import ContactError
from femsim.base.signals import interruptible
from femsim.base.status import Status
from femsim.run.health import closing_pairs
from femsim.run.patience import Patience, StepTooLongError
from femsim.run.progress import progress
from femsim.run.recorder import Recorder
from femsim.run.turn import turn_of
from femsim.step.adaptive import StepLengths, take_adaptive_step
from femsim.step.advance import take_step
from femsim.step.newton import NOT_SOLVED
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper

OnStep = Callable[[Stepper, StepReport], None]
Until = Callable[[dict[str, float]], str | None]


@dataclass
class _Tally:
    """Which steps of a run did not converge, had no solution or were halved: how many, and the first.

    ``nonlinear`` says that the first that did not converge had its
    contact problem solved, but not its equations of motion.
    """

    unconverged: int = 0
    first_bad: int = 0
    nonlinear: bool = False
    infeasible: int = 0
    first_infeasible: str = ""
    halved: int = 0
    first_halved: int = 0

    def count(self, number: int, report: StepReport, parts: Sequence[str]) -> None:
        """Count a step; ``parts`` are the names of all parts."""
        if not report.solution.converged:
            self.unconverged += 1
            if not self.first_bad:
                self.first_bad = number
                self.nonlinear = report.solution.message.startswith(NOT_SOLVED)
        if report.solution.status == "infeasible":
            self.infeasible += 1
            pairs = [" and ".join(pair) for pair in closing_pairs(report, parts)]
            names = ", ".join([*pairs, *report.contradicting, *report.leaders]) or "contacts"
            self.first_infeasible = self.first_infeasible or f"step {number}, {names}: {report.solution.message}"
        if report.halved:
            self.halved += 1
            self.first_halved = self.first_halved or number

    def verdict(self, done: int, ended: str) -> tuple[Status, str]:
        """Status of a run that came to its end, and the sentence."""
        if self.halved:
            ended = f" Taken in sub-steps: {self.halved} of {done}, first step {self.first_halved}.{ended}"
        if self.infeasible:
            return (
                "not converged",
                f"{self.unconverged} of {done} steps did not converge, {self.infeasible} of them because their contacts or "
                "joints are infeasible: bodies are closed in, or held, by others that do not give way. First "
                f"{self.first_infeasible}{ended}",
            )
        if self.unconverged and self.nonlinear:
            return (
                "not converged",
                f"{self.unconverged} of {done} steps did not solve the equations of motion, first step {self.first_bad}; take a "
                f"smaller dt, or raise nonlinear_tolerance or max_solves of the scene.{ended}",
            )
        if self.unconverged:
            return (
                "not converged",
                f"{self.unconverged} of {done} steps stopped at the iteration limit, first step {self.first_bad}; "
                f"raise max_iterations or the tolerance.{ended}",
            )
        return "converged", f"All {done} steps converged by true residuals.{ended}"


@dataclass
class Course:
    """How far a run has come, and what its end will say: what a checkpoint keeps of the loop.

    Attributes
    ----------
    done : int
        Steps done.
    tally : _Tally
        Which of them were not solved.
    first_step, wall : float, s
        Wall time of the first step, and of a run before it was stopped.
    timings : dict of str to float, s
        Time of the stages then, see :class:`~femsim.step.stepper.Stepper`.
    """

    done: int = 0
    tally: _Tally = field(default_factory=_Tally)
    first_step: float = 0.0
    wall: float = 0.0
    timings: dict[str, float] = field(default_factory=dict)

    def carried(self, stepper: Stepper, wall: float) -> dict[str, Any]:
        """As JSON knows it, for :meth:`of`, with the times until now."""
        return asdict(self) | {"wall": self.wall + wall, "timings": stepper.timings}

    @classmethod
    def of(cls, carried: dict[str, Any]) -> Course:
        """Take back what :meth:`carried` gave."""
        return cls(**(carried | {"tally": _Tally(**carried["tally"])}))


@dataclass(frozen=True)
class LoopEnd:
    """How a loop ended: status, sentence, and the signal that ended it, or 0."""

    status: Status
    message: str
    signal: int = 0


def run_loop(
    stepper: Stepper,
    recorder: Recorder,
    n_steps: int,
    course: Course,
    after_step: Callable[[], None],
    *,
    max_halvings: int,
    quiet: bool,
    on_step: OnStep | None,
    until: Until | None,
    patience: Patience,
    lengths: StepLengths | None = None,
) -> LoopEnd:
    """Step until the end, an interrupt or a failure, from where ``course`` stands, which keeps how far it came.

    Between steps other threads may move the bodies of the scene: a simulation of it, or another run.

    ``after_step`` is called when a step is recorded and the run goes on: for checkpoints and the like. With ``lengths`` each step
    is taken in parts as the motion needs. The 11 parameters are all that a run and a recorded simulation do differently.
    """
    ended, turn = "", turn_of(stepper.scene)
    take = take_step if lengths is None else partial(take_adaptive_step, lengths=lengths)
    if not course.done and recorder.frame_due(stepper.state.t):
        with turn.of_run(stepper):
            recorder.frame(None)
    with interruptible() as interrupted, progress(quiet, n_steps, stepper.settings.dt) as advance, patience:
        for number in range(course.done + 1, n_steps + 1):
            with turn.of_run(stepper):
                timings, began = dict(stepper.timings), time.perf_counter()
                try:
                    with patience.step(number, number * stepper.settings.dt), turn.step():
                        report = take(stepper, max_halvings=max_halvings)
                except StepTooLongError:
                    message = (
                        f"Step {number} at {number * stepper.settings.dt:.4f} s took more than max_step_seconds, "
                        f"{patience.limit:g} s; all steps before it are recorded. Allow more, a smaller max_halvings, or take a "
                        "smaller dt."
                    )
                    return LoopEnd("failed", message)
                except (ContactError, np.linalg.LinAlgError) as error:  # the step gave numbers that nothing can go on with
                    recorder.health.fail(number, number * stepper.settings.dt, f"{error}")
                    return LoopEnd("failed", f"Step {number} at {number * stepper.settings.dt:.4f} s failed: {error}")
                recorder.problem(number)
                if not report.finite:
                    recorder.health.fail(number, report.time, report.solution.message)
                    return LoopEnd("failed", f"Step {number} at {report.time:.4f} s failed: {report.solution.message}")
                recorder.step(report, timings)
                course.done = number
                if recorder.health.stop:
                    return LoopEnd("failed", f"Ended after step {number} of {n_steps}: {recorder.health.stop}")
                if number == 1:
                    course.first_step = time.perf_counter() - began
                course.tally.count(number, report, stepper.scene.part_names)
                if on_step is not None:
                    on_step(stepper, report)
                    stepper.described.refuse_changes("on_step")
            advance(report)
            if until is not None and (reason := until(recorder.last_row())):
                ended = f" Ended after step {number} of {n_steps}: {reason}"
                break
            if interrupted() and number < n_steps:
                message = f"Interrupted after step {number} of {n_steps}; all steps so far are recorded."
                return LoopEnd("interrupted", message, interrupted.number)
            if number < n_steps:
                after_step()
    return LoopEnd(*course.tally.verdict(course.done, ended), interrupted.number)
