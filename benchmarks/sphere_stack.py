"""Solvers on the first step of scenes/sphere_stack.py, from nothing to 1e-6: python benchmarks/sphere_stack.py.

papers/003 test 1 gives words, no table: ADMM with balanced steps is exact in less than 20 iterations (A), FADMM with rho 0.05 is
slow there. Its stop is on its own residuals, ours on the contact law.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import femsim as fs

#: Solvers and options.
ROWS = (
    ("admm", {}), ("admm", {"every": 1}), ("p-admm", {}), ("p-admm", {"every": 1}), ("fadmm", {}), ("p-fadmm", {}),
    ("apgd", {}), ("pgs", {}), ("canal", {}), ("exact", {}),
)  # fmt: skip


def main() -> None:
    """Print the table."""
    print("| solver | A: iterations | ms | B: iterations | ms |\n|---|---|---|---|---|")
    problems = {}
    for case in "AB":
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "run"
            fs.simulate(fs.load_scene("sphere_stack", case=case), duration=0.01, out=out, dump_problems=(1, 1))
            problems[case] = fs.read_fclib(next(out.rglob("*.hdf5"))).problem
    for name, options in ROWS:
        cells = []
        for case in "AB":
            seconds = []
            for _ in range(6):  # the first one compiles
                solver = fs.make_solver(name, tolerance=1e-6, max_iterations=5000, **options)
                started = time.process_time()
                answer = solver.solve(problems[case])
                seconds.append(time.process_time() - started)
            count = str(answer.iterations) if answer.status == "converged" else f"not in {answer.iterations}"
            cells += [count, f"{1e3 * np.median(seconds[1:]):.1f}"]
        print(f"| {name}{''.join(f', {k} {v}' for k, v in options.items())} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
