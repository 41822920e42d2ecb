"""What a sweep costs beside its simulations: 1000 short cases on two workers.

    python benchmarks/bench_sweep.py                 # about two minutes; --cases and --workers to change it

The cases are a soft cube of 27 nodes that falls on a floor, 20 steps. After warm-up, that is from the end of the 20th case to the
end of the 20th from last, it prints

- busy: share of the time in which the processes for cases were at work on one, from their own clocks. What else runs on the
  machine slows cases, but does not change this share much;
- idle cores: share of all cores that nobody used, and the share that this sweep used, from the kernel's counters. Only these say
  what the sweep does with an idle machine; other work counts against the second;
- overhead a case, all that is not the steps: in its process (building the scene, metrics, folder) and outside (Dask, pipes), as
  wall time, and the same in CPU time of all processes of the sweep.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import psutil

import femsim as fs

SCENE = '''"""A soft cube falls on a floor."""

import femsim as fs


def build(k: float = 1.0):
    """Let it fall."""
    scene = fs.Scene("cube", dt=0.01, duration=0.2, theta=1.0)
    scene.add_floor()
    rubber = fs.Elastic(1e5 * k, 0.3, 1000.0)
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=(0.0, 0.0, 0.03))
    scene.sensor("floor", "floor")
    return scene
'''
EDGE = 20


class Watch:
    """CPU time of this process and all it started, and of the machine, at two instants."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, Any]] = []

    def mark(self) -> None:
        me = psutil.Process()
        used = sum(sum(p.cpu_times()[:2]) for p in (me, *me.children(recursive=True)))
        self.marks.append((used, psutil.cpu_times()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    print(f"load before: {psutil.getloadavg()[0]:.2f} on {psutil.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "cube.py").write_text(SCENE)
        (folder / "sweep.toml").write_text(
            f'scene = "cube.py"\nsampling.count = {arguments.cases}\nparameters.k = {{ between = [1, 10], scale = "log" }}\n'
            'metrics.top = "max(floor_fz_N)"\n'
        )
        watch, served = Watch(), dict[str, float]()

        def on_row(row: dict[str, Any]) -> None:
            served[row["id"]] = row["served_s"]
            if len(served) in (EDGE, arguments.cases - EDGE):
                watch.mark()

        result = fs.sweep(folder / "sweep.toml", out=folder / "out", workers=arguments.workers, on_row=on_row)
        import pandas

        table = pandas.read_parquet(result.table).sort_values("ended_s")
    inside = table.iloc[EDGE:-EDGE]
    window = inside["ended_s"].iloc[-1] - table["ended_s"].iloc[EDGE - 1]
    n = len(inside)
    stepping = (inside["wall_s"] - inside["overhead_s"]).sum()
    (used_0, machine_0), (used_1, machine_1) = watch.marks
    cores = psutil.cpu_count() or 1
    total = sum(b - a for a, b in zip(machine_0, machine_1, strict=True))
    idle = machine_1.idle - machine_0.idle
    steal = getattr(machine_1, "steal", 0.0) - getattr(machine_0, "steal", 0.0)
    used = used_1 - used_0
    at_work = sum(served[name] for name in inside["id"])
    outside = (arguments.workers * window - at_work) / n
    print(f"{result.message} {n} cases in {window:.1f} s, {n / window:.1f} a second, {arguments.workers} workers")
    print(f"busy              {at_work / window / arguments.workers:.1%} of the processes' time")
    print(
        f"machine           {idle / total:.1%} of {cores} cores idle, {steal / total:.1%} stolen, "
        f"{used / total:.1%} used by the sweep"
    )
    print(
        f"steps             {1e3 * stepping / n:.1f} ms a case wall time, "
        f"{1e3 * inside['cpu_s'].mean():.1f} ms CPU of the whole case"
    )
    print(
        f"overhead          {1e3 * (at_work - stepping) / n:.1f} ms a case in its process, "
        f"{1e3 * outside:.1f} ms outside, wall time"
    )
    print(f"CPU outside cases {1e3 * (used - inside['cpu_s'].sum()) / n:.1f} ms a case (client, scheduler, workers)")
    print(f"load after: {psutil.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()
