"""What it costs to solve the equations of a step and not only to linearise them: contact problems and CPU time by scene.

    python -m benchmarks.solves [--steps N] [--repeat N] [SCENE...]

Each scene takes its steps twice side by side, one of each in turn: as it is shipped, and linearised once a step. The least of the
repeated CPU times of a step counts. Prints a table for data/results/checks.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

# one thread, before numpy is imported; and the packages of this folder's own checkout
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import time

import numpy as np

from contact import ContactError
from contact.solvers import make_solver
from femsim.run.simulate import MAX_HALVINGS
from femsim.scene.scene_file import load_scene
from femsim.step.advance import take_step
from femsim.step.stepper import Stepper

SCENES = Path(__file__).resolve().parents[1] / "scenes"
#: Steps at the start whose times do not count.
FIRST = 5


@dataclass(frozen=True)
class Steps:
    """Of each step: contact problems, iterations, CPU time of its stage *solve* and of all of it, s; (n,) each."""

    solves: np.ndarray
    iterations: np.ndarray
    solve: np.ndarray
    whole: np.ndarray


class Timed:
    """A scene that takes steps, and what they cost."""

    def __init__(self, path: Path, once: bool) -> None:
        self.stepper = Stepper(load_scene(path), make_solver("auto"))
        self.stepper.clock = time.thread_time  # type: ignore[method-assign]
        if once:
            self.stepper.newton = replace(self.stepper.newton, tolerance=None)
        self.once, self.rows = once, list[tuple[float, ...]]()

    def step(self) -> None:
        """Take one, in halves where it must be; from where one linearisation leads nowhere on there are no numbers."""
        if self.rows and np.isnan(self.rows[-1][0]):
            self.rows.append(self.rows[-1])
            return
        solving, started = self.stepper.timings["solve"], time.thread_time()
        try:
            report = take_step(self.stepper, MAX_HALVINGS)
        except ContactError:
            if not self.once:
                raise
            self.rows.append((np.nan,) * 4)
            return
        whole = time.thread_time() - started
        self.rows.append((report.solves, report.solution.iterations, self.stepper.timings["solve"] - solving, whole))


def measured(path: Path, steps: int, repeat: int) -> tuple[Steps, Steps, int]:
    """Take the first steps of a scene, as shipped and linearised once; the number of steps that it has in all is the third."""
    passes: list[list[np.ndarray]] = [[], []]
    for _ in range(repeat):
        both = [Timed(path, once) for once in (False, True)]
        scene = both[0].stepper.scene
        total = round(scene.duration / scene.dt)
        for _ in range(min(steps, total)):
            for one in both:
                one.step()
        for rows, one in zip(passes, both, strict=True):
            rows.append(np.array(one.rows))
    usual, plain = (Steps(*np.concatenate([rows[0][:, :2], np.min(rows, axis=0)[:, 2:]], axis=1).T) for rows in passes)
    return usual, plain, total


def line(name: str, usual: Steps, plain: Steps, total: int) -> str:
    """Row of the table."""

    def ratio(a: np.ndarray, b: np.ndarray) -> str:
        quotient = a[FIRST:].sum() / b[FIRST:].sum()
        return f"{quotient:.2f}" if np.isfinite(quotient) else "-"

    n = len(usual.solves)
    steps = f"{n}" if n == total else f"{n} of {total}"
    return (
        f"| {name} | {steps} | {usual.solves.mean():.2f} / {usual.solves.max():.0f} | {(usual.solves > 1).mean():.0%} | "
        f"{1e3 * usual.solve[FIRST:].mean():.2f} | {ratio(usual.solve, plain.solve)} | "
        f"{1e3 * usual.whole[FIRST:].mean():.2f} | {ratio(usual.whole, plain.whole)} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("scenes", nargs="*", help="names of shipped scenes; default all of them")
    parser.add_argument("--steps", type=int, default=400, help="steps of each scene, at most (default 400)")
    parser.add_argument("--repeat", type=int, default=2, help="times that each is run (default 2)")
    given = parser.parse_args()
    print("| scene | steps | solves a step, mean / largest | steps with more than one | solve, ms | x once | step, ms | x once |")
    print("|---|---|---|---|---|---|---|---|")
    for name in given.scenes or sorted(path.stem for path in SCENES.glob("*.py")):
        print(line(name, *measured(SCENES / f"{name}.py", given.steps, given.repeat)), flush=True)


if __name__ == "__main__":
    main()
