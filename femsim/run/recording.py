"""The run that a simulation records while it is stepped from outside."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from femsim.base.status import FINISHED
from femsim.run.folder import remove_replaced
from femsim.run.loop import Course
from femsim.run.result import Run
from femsim.run.simulate import Begun, Call, finish, note_verdict, opened
from femsim.scene.scene import Scene
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper


class Recording:
    """The run that a simulation records.

    Parameters
    ----------
    scene, begun
        What is recorded.
    call : Call
        What was asked for.
    out, overwrite
        Run folder, or None, and whether it may replace another run.
    """

    def __init__(self, scene: Scene, begun: Begun, call: Call, out: str | Path | None, overwrite: bool) -> None:
        self._held, self._started = ExitStack(), time.perf_counter()
        found = self._held.enter_context(opened(scene, begun, call.solver, out, overwrite, None))
        self.recorder, self._file, _ = found
        self.recorder.on_verdict = partial(note_verdict, self.recorder, self._file)
        self._file.info["stepped"] = True
        self._file.write()
        self._course, self._parts = Course(), scene.part_names
        if self.recorder.frame_due(begun.stepper.state.t):
            self.recorder.frame(None)

    def step(self, report: StepReport, timings: dict[str, float]) -> tuple[list[float], list[float]]:
        """Record a step; return its rows of both tables."""
        self.recorder.step(report, timings)
        self._course.done += 1
        self._course.tally.count(self._course.done, report, self._parts)
        self._file.beat(self._course.done)
        return self.recorder.sensor_table.last, self.recorder.steps.last

    def close(self, stepper: Stepper, failure: str, cut: str) -> Run:
        """Complete the files; ``failure`` is that of a step, ``cut`` the error of others that ended it."""
        status, message = self._course.tally.verdict(self._course.done, "")
        if failure:
            status, message = "failed", failure
            if not (health := self.recorder.health).stop:  # what stops a run is a reason already
                health.fail(self._course.done + 1, stepper.state.t, failure.partition(" failed: ")[2] or failure)
        elif cut:
            status, message = "interrupted", f"Ended after step {self._course.done} by {cut}."
        with self._held:
            wall = time.perf_counter() - self._started
            run = finish(stepper, self.recorder, self._file, self._course, status, message, wall)
        if run.folder and status in FINISHED:
            remove_replaced(run.folder)
        return run
