"""The progress bar of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from femsim.step.report import StepReport


@contextmanager
def progress(quiet: bool, n_steps: int, dt: float) -> Iterator[Callable[[StepReport], None]]:
    """Progress bar with simulated time, speed and remaining time."""
    if quiet:
        yield lambda report: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("simulating"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
        console=console,
    ) as bar:
        task = bar.add_task("", total=n_steps, text="compiling kernels (first run only) ...")
        first: list[tuple[int, float]] = []

        def advance(report: StepReport) -> None:
            now = time.perf_counter()
            if not first:
                first.append((report.step, now))
            speed = (report.step - first[0][0]) * dt / max(now - first[0][1], 1e-9)
            text = f"{report.time:.2f} s of {n_steps * dt:.2f} s, {speed:.2f} x real time"
            bar.update(task, completed=report.step, text=text)

        yield advance
