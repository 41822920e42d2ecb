"""FCLib files, which nobody here wrote: every solver on each, judged by the checker that comes with the files."""

from __future__ import annotations

import importlib.util
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.tables.common import Settings
from contact import ContactError, FclibProblem, LocalProblem, Solution, make_solver, read_fclib
from femsim.studies.problems.solve import judge_answer, solve_function, solve_problem
from femsim.studies.reproduction.text import markdown, number, short

SOLVERS = ("cond", "pgs", "apgd", "ccs", "admm", "subadmm", "canal", "exact")
TOLERANCE, TIGHT = 1e-6, 1e-8
#: CPU time that a solver may have for a file, s, and the two numbers of iterations from which the time of one is taken.
CAP, FEW, MORE = 20.0, 20, 80
#: Limits of iterations whatever the time; the exact solver keeps its own.
LIMITS = {"cond": 100_000, "pgs": 100_000, "apgd": 100_000, "ccs": 20_000, "admm": 20_000, "subadmm": 20_000, "canal": 1000}
#: CPU time of Siconos 4.4 on a machine like the one of the targets, ms, W given: file, tolerance of ours, its figure.
SICONOS: tuple[tuple[str, float, float], ...] = (
    ("ball_E1_dt1e-3", TIGHT, 7.0),
    ("mat_E0.5_dt1e-2_mu0.4", TIGHT, 114.0),
    ("chain160_dt1e-3_mu0.3", TIGHT, 217.0),
    ("Spheres-i099-356-679", TOLERANCE, 8.0),
    ("Capsules-i100-1090", TOLERANCE, 11.0),
    ("KaplasTower-i1061-4", TOLERANCE, 12.0),
    ("BoxesStack1-i100000-32", TOLERANCE, 62.0),
)
OURS = ("ball_", "mat_", "chain160_")
#: The stages of the exact solver that a solver which is given W does not have.
_FORMING = ("factorize", "operator")


@dataclass(frozen=True)
class Outcome:
    """What a solver did with a file; ``natmap_si`` and ``dyn`` are those of the checker."""

    said: str
    iterations: int = 0
    ms: float = 0.0
    natmap: float = float("inf")
    dyn: float = float("inf")
    forming: float = 0.0
    passed: bool = False
    command_passed: bool = True
    own: float = float("inf")

    @property
    def wrong(self) -> bool:
        """Whether the solver said converged and the checker says no."""
        return self.said == "converged" and not self.passed


def load_checker(folder: Path) -> Any:
    """Import the checker of the data folder."""
    spec = importlib.util.spec_from_file_location("check_fc", folder / "check_fc.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(folder / "check_fc.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _timed(name: str, options: dict[str, Any], file: FclibProblem, path: Path) -> tuple[Solution, float]:
    """Solve from zero by a new solver; return the CPU time too."""
    solver = make_solver(name, **options)
    run = solve_function(file, name, path)
    started = time.process_time()
    solution = run(solver, None)
    return solution, time.process_time() - started


def _limit(name: str, tolerance: float, cap: float, file: FclibProblem, path: Path) -> int:
    """Iterations that fit into the time; also compiles what the solver needs."""
    _timed(name, {"tolerance": tolerance, "max_iterations": FEW}, file, path)
    (few, start), (more, end) = (_timed(name, {"tolerance": tolerance, "max_iterations": n}, file, path) for n in (FEW, MORE))
    if more.iterations <= few.iterations:
        return LIMITS[name]
    each = max((end - start) / (more.iterations - few.iterations), 1e-6)
    return int(min(LIMITS[name], max(MORE, (cap - start) / each)))


def outcome(checker: Any, name: str, path: Path, tolerance: float, cap: float) -> Outcome:
    """Solve a file by a solver within a time and ask the checker."""
    file = read_fclib(path)
    try:
        limit = None
        if name in LIMITS:
            limit = _limit(name, tolerance, cap, file, path)
        else:
            _timed(name, {"tolerance": tolerance}, file, path)  # compiles
        options = {"tolerance": tolerance, "max_iterations": limit}
        solution, spent = _timed(name, options, file, path)
        times = [spent]
        while len(times) < 5 and sum(times) < 0.5:
            times.append(_timed(name, options, file, path)[1])
    except ContactError:
        return Outcome("not applicable")
    answer = judge_answer(file, solution, name, tolerance, path)
    problem = checker.read_problem(str(path))
    found = checker.check(problem, answer.r, v=answer.v)
    passed = found["natmap_si"] <= tolerance and found["dyn"] <= tolerance
    total = sum(solution.timings.values())
    forming = sum(solution.timings.get(stage, 0.0) for stage in _FORMING) / total if total else 0.0
    command_passed = True
    if solution.converged and not passed:  # the command measures the answer anew and asks for more
        again = solve_problem(path, name, tolerance=tolerance, max_iterations=limit)
        by_checker = checker.check(problem, again.r, v=again.v)
        good = by_checker["natmap_si"] <= tolerance and by_checker["dyn"] <= tolerance
        command_passed = good or again.status != "converged"
    return Outcome(
        solution.status, solution.iterations, 1e3 * statistics.median(times), found["natmap_si"], found["dyn"],
        forming, passed, command_passed,
    )  # fmt: skip


def solve_and_check(checker: Any, name: str, path: Path, limit: int) -> Outcome:
    """Solve a file once by a compiled solver with a limit of iterations, and ask the checker."""
    file = read_fclib(path)
    try:
        _timed(name, {"tolerance": TOLERANCE, "max_iterations": 3}, file, path)
        solution, spent = _timed(name, {"tolerance": TOLERANCE, "max_iterations": limit}, file, path)
    except ContactError:
        return Outcome("not applicable")
    answer = judge_answer(file, solution, name, TOLERANCE, path)
    found = checker.check(checker.read_problem(str(path)), answer.r, v=answer.v)
    passed = found["natmap_si"] <= TOLERANCE and found["dyn"] <= TOLERANCE
    own = float(solution.details.get("law_residual", float("inf")))
    return Outcome(
        solution.status, solution.iterations, 1e3 * spent, found["natmap_si"], found["dyn"], passed=passed, own=own,
    )  # fmt: skip


def _cell(result: Outcome) -> str:
    if result.said == "not applicable":
        return "n/a"
    mark = "" if result.passed else f"**no**, {short(max(result.natmap, result.dyn))}; "
    return f"{mark}{result.iterations}; {short(result.ms)}"


def make(settings: Settings) -> dict[str, str]:
    """Make the table of all files and that of the targets; a sentence where there is no data."""
    if settings.data is None:
        return {}
    checker = load_checker(settings.data)
    files = sorted(settings.data.glob("*.hdf5"))
    if settings.tiny:
        files = sorted(sorted(files, key=lambda path: path.stat().st_size)[:3])
    cap = 0.2 if settings.tiny else CAP
    results = {path.stem: {name: outcome(checker, name, path, TOLERANCE, cap) for name in SOLVERS} for path in files}
    lines = []
    for path in files:
        file, found = read_fclib(path), results[path.stem]
        form = "local" if isinstance(file.problem, LocalProblem) else "global"
        disagree = [name for name in SOLVERS if found[name].wrong]
        solved = [(found[name].ms, name) for name in SOLVERS if found[name].passed]
        best = min(solved)[1] if solved else "none"
        worst = found[best] if solved else Outcome("none")
        lines.append(
            [
                path.stem,
                f"{form} {file.spacedim}D",
                str(file.problem.n_contacts),
                *(_cell(found[name]) for name in SOLVERS),
                f"{best}: {short(worst.natmap)}, {short(worst.dyn)}",
                ", ".join(disagree) if disagree else "none",
            ]
        )
    header = ["file", "form", "contacts", *SOLVERS, "fastest: natmap_si, dyn", "converged, but the checker disagrees"]
    everything = [result for found in results.values() for result in found.values()]
    applicable = {name: [found[name] for found in results.values() if found[name].said != "not applicable"] for name in SOLVERS}
    counts = ", ".join(f"{name} {sum(r.passed for r in rows)} of {len(rows)}" for name, rows in applicable.items())
    summary = (
        f"{sum(any(r.passed for r in found.values()) for found in results.values())} of {len(results)} files are solved by at "
        f"least one solver. Passed, of those that apply: {counts}. A solver said converged and the checker disagreed: "
        f"{sum(r.wrong for r in everything)} times; the same for the verdict of `femsim solve`: "
        f"{sum(not r.command_passed for r in everything)} times."
    )
    return {"fclib": f"{markdown(header, lines)}\n\n{summary}", "targets": _targets(checker, settings, files)}


def _targets(checker: Any, settings: Settings, files: list[Path]) -> str:
    """Table of the exact solver beside the figures of Siconos."""
    figures = {name: (tolerance, siconos) for name, tolerance, siconos in SICONOS}
    lines = []
    for path in files:
        if path.stem not in figures and not path.stem.startswith(OURS) and not settings.tiny:
            continue
        tolerance, siconos = figures.get(path.stem, (TIGHT, float("nan")))
        result = outcome(checker, "exact", path, tolerance, CAP)
        without = result.ms * (1.0 - result.forming)
        lines.append(
            [
                path.stem,
                f"{tolerance:.0e}",
                "yes" if result.passed else "**no**",
                short(max(result.natmap, result.dyn)),
                number(result.ms),
                number(without),
                number(siconos),
                number(without / siconos, 2),
            ]
        )
    header = ["file", "tolerance", "reached", "checker", "exact ms", "of which not forming W", "Siconos ms, W given", "ratio"]
    return markdown(header, lines)
