"""Which solver when: conditioning, iterations and times of COND and of the exact solver, and what auto picks."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import femsim as fs
from benchmarks.tables.common import Settings
from contact.metrics import contact_velocity
from contact.solvers import Solution, auto as auto_module, make_solver
from femsim.studies.reproduction.measuring import Step, follow, solve, spread, warm_up
from femsim.studies.reproduction.text import markdown, number, short

TOLERANCES = (1e-5, 1e-8)
LIMIT = 20_000
SOLVERS = ("cond", "exact")
#: Samples with fewer rows that press say nothing about the dense part of the exact solver.
FEWEST_ROWS = 30
#: Rows that press are few up to here, which is where a guide should part: none of the scenes is between 400 and 2000.
FEW_ROWS = 1000
#: Solvers that keep something of earlier steps: they see them all.
LEARNING = ("exact", "auto")


@dataclass
class _Sample:
    """One step: conditioning, entries of A, size, rows that press; by solver and tolerance iterations, ms; what auto picked."""

    kappa: float
    nnz: int
    n: int
    rows: int
    iterations: dict[tuple[str, float], int]
    ms: dict[tuple[str, float], float]
    stages: dict[tuple[str, float], dict[str, float]]
    picked: dict[float, str]
    converged: dict[tuple[str, float], bool]


def _sample(step: Step, answers: dict[tuple[str, float], tuple[Solution, float]]) -> _Sample:
    problem, warm = step.problem, step.warm_start
    assert warm is not None
    pressing = (contact_velocity(problem, warm.v)[:, 0] <= 0) | warm.lam.any(axis=1)
    stages = {}
    for key, (solution, seconds) in answers.items():
        total = sum(solution.timings.values())
        stages[key] = {name: seconds * value / total for name, value in solution.timings.items()}
    return _Sample(
        auto_module.conditioning(problem),
        problem.A.nnz,
        problem.n,
        3 * int(pressing.sum()),
        {key: solution.iterations for key, (solution, _) in answers.items()},
        {key: 1e3 * seconds for key, (_, seconds) in answers.items()},
        stages,
        {t: answers["auto", t][0].details["picked"] for t in TOLERANCES},
        {key: solution.converged for key, (solution, _) in answers.items()},
    )


def _samples(scene: fs.Scene, driver: str, end: float, settings: Settings) -> list[_Sample]:
    """Samples over the part of a run in which something happens."""
    last = settings.some(round(end / scene.dt), 12)
    chosen = spread(max(2, round(0.2 * last)), last, settings.some(12, 2))
    solvers = {(name, t): make_solver(name, tolerance=t, max_iterations=LIMIT if name == "cond" else None)
               for name in (*SOLVERS, "auto") for t in TOLERANCES}  # fmt: skip
    found = []
    tight = driver == "cond"
    for step in follow(scene, make_solver(driver, tolerance=1e-9, max_iterations=LIMIT if tight else None), last):
        if step.number == 1:
            warm_up([solver for (name, _), solver in solvers.items() if name not in LEARNING], step)
        answers = {key: solve(solver, step) for key, solver in solvers.items() if step.number in chosen or key[0] in LEARNING}
        if step.number in chosen:
            found.append(_sample(step, answers))
    return found


def _times(samples: list[_Sample], key: tuple[str, float]) -> str:
    """Mean and median."""
    values = [s.ms[key] for s in samples]
    return f"{number(statistics.fmean(values))} ({number(statistics.median(values))})"


def _line(name: str, samples: list[_Sample]) -> list[str]:
    kappa = statistics.median(s.kappa for s in samples)
    cells = [name, number(kappa), number(statistics.median(s.rows for s in samples))]
    for tolerance in TOLERANCES:
        decades = -math.log10(tolerance)
        cond, exact = ("cond", tolerance), ("exact", tolerance)
        failed = sum(not s.converged[cond] for s in samples)
        iterations = statistics.fmean(s.iterations[cond] for s in samples)
        rate = statistics.fmean(s.iterations[cond] / (decades * math.sqrt(s.kappa)) for s in samples)
        ((favourite, count),) = Counter(s.picked[tolerance] for s in samples).most_common(1)
        best = [min(s.ms[n, tolerance] for n in SOLVERS) for s in samples]
        # a pick that has no column of its own counts by the time of auto
        picked = [s.ms.get((s.picked[tolerance], tolerance), s.ms["auto", tolerance]) for s in samples]
        right = sum(ms <= 1.05 * least for ms, least in zip(picked, best, strict=True))
        cells += [
            f"{number(iterations)}{f' ({failed} not converged)' if failed else ''}; {short(rate)}",
            _times(samples, cond),
            _times(samples, exact),
            f"{favourite} {count}/{len(samples)}; {right}/{len(samples)}; {_times(samples, ('auto', tolerance))}",
        ]
    return cells


def _constants(samples: list[_Sample]) -> str:
    """Fit the constants of the cost model of auto to all samples."""
    iteration = [
        s.stages["cond", t]["iterate"] / (s.iterations["cond", t] * s.nnz)
        for s in samples
        for t in TOLERANCES
        if s.iterations["cond", t] > 50
    ]
    rate = [
        s.iterations["cond", t] / (-math.log10(t) * math.sqrt(s.kappa))
        for s in samples
        for t in TOLERANCES
        if s.converged["cond", t] and s.iterations["cond", t] > 50
    ]
    solve_part, matrix, right = [], [], []
    for s in (s for s in samples if s.rows >= FEWEST_ROWS):
        for t in TOLERANCES:
            parts = s.stages["exact", t]
            solve_part.append((sum(parts.values()) - parts["contact"] - parts["operator"]) / s.n**1.5)
            matrix.append([float(s.rows) ** 2, float(s.rows) ** 3])
            right.append(parts["contact"] + parts["operator"])
    lines = [
        ["_COND_ITERATIONS", number(auto_module._COND_ITERATIONS), *map(number, np.quantile(rate, (0.5, 0.25, 0.75)))],
        ["_COND_SECOND", number(auto_module._COND_SECOND), *map(number, np.quantile(iteration, (0.5, 0.25, 0.75)))],
        ["_SOLVE_SECOND", number(auto_module._SOLVE_SECOND), *map(number, np.quantile(solve_part, (0.5, 0.25, 0.75)))],
    ]
    table, seconds = np.array(matrix), np.array(right)
    weight = 1.0 / np.maximum(seconds, 1e-6)  # relative errors count, not the slowest samples alone
    fitted = _nonnegative(table * weight[:, None], seconds * weight)
    for name, value in zip(("_SWEEP_SECOND", "_NEWTON_SECOND"), fitted, strict=True):
        lines.append([name, number(getattr(auto_module, name)), number(value), "-", "-"])
    return markdown(["constant of auto.py", "now", "median or fit", "quartile", "quartile"], lines)


def _nonnegative(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    from scipy.optimize import nnls

    scale = np.linalg.norm(matrix, axis=0)
    return np.asarray(nnls(matrix / scale, right)[0] / scale)


def _guide(samples: dict[str, list[_Sample]]) -> str:
    """Say by range of conditioning and number of contacts which of both was the faster one, and by how much."""
    lines = []
    for low, high in itertools.pairwise((0.0, 500.0, 2000.0, 20_000.0, math.inf)):
        for few in (True, False):
            inside = {
                name: [s for s in values if low <= s.kappa < high and (s.rows <= FEW_ROWS) == few]
                for name, values in samples.items()
            }
            everything = [s for values in inside.values() for s in values]
            if not everything:
                continue
            cells = [
                f"{low:g} to {high:g}" if high < math.inf else f"above {low:g}",
                f"up to {math.ceil(max(s.rows for s in everything) / 3)}",
            ]
            for tolerance in TOLERANCES:
                cond, exact = (statistics.fmean(s.ms[name, tolerance] for s in everything) for name in SOLVERS)
                faster = "cond" if cond < exact else "exact"
                cells.append(f"{number(cond)} / {number(exact)}: {faster} by {max(cond, exact) / min(cond, exact):.1f}")
            lines.append([*cells, "; ".join(name for name, values in inside.items() if values)])
    header = ["conditioning of A", "contacts that press", *(f"cond / exact ms to {t:.0e}" for t in TOLERANCES), "measured on"]
    return markdown(header, lines)


def make(settings: Settings) -> dict[str, str]:
    """Make the table, the fit of the cost model and the guide."""
    cases: dict[str, tuple[Callable[[], fs.Scene], str, float]] = {}
    for dt, end in ((0.01, 1.2), (0.005, 1.0), (0.001, 0.4)):
        for modulus in (1e5, 1e6, 1e7):
            name = f"ball {modulus / 1e6:g} MPa, {1e3 * dt:g} ms"
            cases[name] = ((lambda e=modulus, d=dt: settings.ball(young_modulus=e, dt=d)), "exact", end)  # type: ignore[misc]
    for modulus in (75e3, 1e7):
        cases[f"mat {modulus / 1e6:g} MPa, 10 ms"] = ((lambda e=modulus: settings.pulled_mat(e)), "cond", 0.4)  # type: ignore[misc]
    if settings.tiny:
        cases = {name: cases[name] for name in ("ball 1 MPa, 10 ms", "mat 0.075 MPa, 10 ms")}
    samples = {name: _samples(scene(), driver, end, settings) for name, (scene, driver, end) in cases.items()}
    header = ["scene", "kappa", "rows that press"]
    for t in TOLERANCES:
        header += [
            f"cond {t:.0e}: its; its/(decade sqrt kappa)",
            "cond ms, mean (median)",
            "exact ms",
            "auto picks; right; its ms",
        ]
    table = markdown(header, [_line(name, values) for name, values in samples.items()])
    constants = _constants([s for values in samples.values() for s in values])
    return {"conditioning": f"{table}\n\n{constants}", "guide": _guide(samples)}
