"""What the health verdict and checkpoints cost beside the steps of a run: ``python -m benchmarks.bench_trust [--scene NAME]``."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import femsim as fs
from femsim.run.checkpoint import Checkpoints
from femsim.run.health import HealthWatch
from femsim.run.recorder import Recorder
from femsim.step.vitals import VitalSigns

#: Checkpoints of a run are so many seconds apart, unless it asks for others.
EVERY = 600.0


def measure(scene: str, out: Path, steps: int, every: int, **options: Any) -> dict[str, float]:
    """Run some steps: CPU time of the process, s, in vitals, in the verdict, in checkpoints, and in all; checkpoints made."""
    spent = {"vitals": 0.0, "verdict": 0.0, "checkpoints": 0.0, "made": 0.0}

    def counted(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return work(*arguments, **named)
            finally:
                spent[name] += time.process_time() - began
                spent["made"] += name == "checkpoints" and work is save

        return run

    read, look, save, carried = VitalSigns.read, HealthWatch.look, Checkpoints.save, Recorder.carried
    VitalSigns.read, HealthWatch.look = counted("vitals", read), counted("verdict", look)  # type: ignore[method-assign]
    Checkpoints.save = counted("checkpoints", save)  # type: ignore[method-assign]
    Recorder.carried = counted("checkpoints", carried)  # type: ignore[method-assign]
    try:
        loaded = fs.load_scene(scene)
        began = time.process_time()
        fs.simulate(loaded, duration=steps * loaded.dt, out=out, checkpoint_every=every, quiet=True, **options)
        return spent | {"all": time.process_time() - began}
    finally:
        VitalSigns.read, HealthWatch.look = read, look  # type: ignore[method-assign]
        Checkpoints.save, Recorder.carried = save, carried  # type: ignore[method-assign]


def main() -> None:
    """Print a line a repetition."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", default="soft_ball_gripping")
    parser.add_argument("--format", default="pvd")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--every", type=int, default=20, help="steps between two checkpoints")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    fs.simulate(fs.load_scene(given.scene), duration=2 * fs.load_scene(given.scene).dt)  # compiles
    for _ in range(given.repeat):
        with tempfile.TemporaryDirectory() as folder:
            m = measure(given.scene, Path(folder) / "run", given.steps, given.every, format=given.format)
        step = (m["all"] - m["checkpoints"]) / given.steps
        one = m["checkpoints"] / max(m["made"], 1.0)
        print(
            f"{given.scene} {given.format}: {1e3 * step:.2f} ms of CPU time a step, of it vitals "
            f"{m['vitals'] / given.steps / step:.2%}, verdict {m['verdict'] / given.steps / step:.2%}; "
            f"a checkpoint {1e3 * one:.0f} ms, {one / EVERY:.4%} of the "
            f"{EVERY:.0f} s to the next"
        )


if __name__ == "__main__":
    main()
