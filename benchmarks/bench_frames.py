"""What writing frames costs beside the steps of a run: ``python -m benchmarks.bench_frames [--format FORMAT] [--folder DIR]``."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import femsim as fs
from femsim.run.frames import Frames
from viz.background import Worker


def measure(scene: str, out: Path, **options: object) -> dict[str, float]:
    """Run a scene: frames, CPU and wall time of its thread within them, CPU time of the thread that writes, and all, in s."""
    spent = {"cpu": 0.0, "behind": 0.0, "wall": 0.0, "frames": 0.0}
    write, start = Frames.write, Worker.start

    def timed(self: Frames, report: object) -> None:
        cpu, wall = time.thread_time(), time.perf_counter()
        write(self, report)  # type: ignore[arg-type]
        spent["cpu"] += time.thread_time() - cpu
        spent["wall"] += time.perf_counter() - wall
        spent["frames"] += 1.0

    def started(self: Worker, work: Callable[[], None]) -> None:
        def counted() -> None:
            cpu = time.thread_time()
            work()
            spent["behind"] += time.thread_time() - cpu

        start(self, counted)

    Frames.write, Worker.start = timed, started  # type: ignore[method-assign]
    try:
        cpu, wall = time.process_time(), time.perf_counter()
        fs.simulate(fs.load_scene(scene), out=out, **options)  # type: ignore[arg-type]
        return spent | {"run_cpu": time.process_time() - cpu, "run_wall": time.perf_counter() - wall}
    finally:
        Frames.write, Worker.start = write, start  # type: ignore[method-assign]


def main() -> None:
    """Print a line a repetition."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", default="soft_ball_gripping")
    parser.add_argument("--format", default="pvd")
    parser.add_argument("--fields", default="default")
    parser.add_argument("--fps", type=float, default=100.0)
    parser.add_argument("--folder", type=Path, default=None, help="where the run folder goes; default the temporary folder")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    fs.simulate(fs.load_scene(given.scene), duration=0.02)
    for _ in range(given.repeat):
        folder = Path(tempfile.mkdtemp(dir=given.folder))
        try:
            m = measure(given.scene, folder / "run", format=given.format, fields=given.fields.split(","), fps=given.fps)
        finally:
            shutil.rmtree(folder)
        each, rest_cpu, rest_wall = 1e3 / m["frames"], m["run_cpu"] - m["cpu"] - m["behind"], m["run_wall"] - m["wall"]
        print(
            f"{given.format}, {m['frames']:.0f} frames: the run waits {each * m['wall']:.2f} ms a frame, "
            f"{100 * m['wall'] / rest_wall:.1f} % of the rest; CPU {each * m['cpu']:.2f} ms in its thread and "
            f"{each * m['behind']:.2f} ms behind, {100 * (m['cpu'] + m['behind']) / rest_cpu:.1f} % of the rest"
        )


if __name__ == "__main__":
    main()
