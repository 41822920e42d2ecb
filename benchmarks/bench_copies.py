"""What Python costs a small scene: N copies in one scene, of N islands, against N scenes of one.

    python benchmarks/bench_copies.py                # two minutes; --steps to change it

Soft cubes beside each other fall 0.5 mm onto a floor; each has a Young's modulus of its own. Prints CPU time (best of three) of a
step, of that a copy, and the ratio to a copy alone. What islands save is what Python costs; a scene of islands is also solved
by another method than a small one, and to a residual that all of them share.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import femsim as fs

_SIDE = 0.02


def build(copies: int, cells: int, steps: int) -> fs.Scene:
    """Put cubes beside each other."""
    scene = fs.Scene("copies", dt=0.005, duration=0.005 * steps, theta=1.0)
    scene.add_floor()
    mesh = fs.box_tets((_SIDE,) * 3, cells, alternating=False)
    for k in range(copies):
        rubber = fs.Elastic(1e5 * (1.0 + 0.01 * k), 0.3, 1000.0)
        scene.add_soft(f"cube_{k}", mesh, rubber, position=(2 * _SIDE * k, 0.0, 0.5 * _SIDE + 5e-4))
    return scene


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--cells", type=int, nargs="+", default=[2, 4, 6])
    options = parser.parse_args()
    fs.simulate(build(2, 2, 5))  # kernels are compiled
    print(f"{'nodes':>6} {'copies':>6} {'step, ms':>9} {'a copy, ms':>10} {'alone / copy':>12} {'iterations':>10}  status")
    for cells in options.cells:
        alone = 0.0
        for copies in options.copies:
            times = []
            for _ in range(3):
                scene = build(copies, cells, options.steps)
                began = time.process_time()
                run = fs.simulate(scene)
                times.append(1e3 * (time.process_time() - began) / options.steps)
            one = min(times) / copies
            alone = alone or one
            iterations = float(np.mean(run.steps["iterations"]))
            nodes = (cells + 1) ** 3
            print(
                f"{nodes:6} {copies:6} {min(times):9.2f} {one:10.2f} {alone / one:12.2f} {iterations:10.1f}  {run.status}",
                flush=True,
            )


if __name__ == "__main__":
    main()
