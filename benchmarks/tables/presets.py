"""Engines and the presets of the papers on the FCLib files: how many each solves, by the checker that comes with the files."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.tables.common import Settings
from benchmarks.tables.saved_problems import TOLERANCE, load_checker, solve_and_check
from contact import SOLVERS
from contact.solvers.base import SolverOptions
from femsim.studies.reproduction.text import markdown, number, short

#: Iterations that each may have.
LIMIT, FEW = 3000, 20
ENGINES = ("pgs", "apgd", "ccs", "admm", "subadmm", "canal")


def _own_law(options: type[SolverOptions]) -> str:
    """Law that a solver's defaults solve: "exact", "relaxed" or "energy"."""
    if getattr(options, "operator", "") != "proximal":
        return "exact"
    return str(getattr(options(), "law", "relaxed"))


def make(settings: Settings) -> dict[str, str]:
    """Make the table; nothing where there is no data."""
    if settings.data is None:
        return {}
    checker = load_checker(settings.data)
    files: list[Path] = sorted(settings.data.glob("*.hdf5"))
    if settings.tiny:
        files = sorted(files, key=lambda path: path.stat().st_size)[:3]
    names = [*ENGINES, *(name for name, entry in SOLVERS.items() if entry.preset_of)]
    lines = []
    for name in names:
        found = [solve_and_check(checker, name, path, FEW if settings.tiny else LIMIT) for path in files]
        passed = [result for result in found if result.passed]
        met = [result for result in found if result.own <= TOLERANCE]
        lines.append(
            [
                name,
                _own_law(SOLVERS[name].options),
                str(len(passed)),
                str(len(met)),
                str(sum(result.wrong for result in found)),
                number(statistics.median([result.iterations for result in passed])) if passed else "-",
                short(statistics.median([result.ms for result in passed])) if passed else "-",
                number(sum(result.ms for result in found) / 1e3),
            ]
        )
    header = [
        "solver", f"law (of {len(files)} files:)", "passed", "own law met", "converged, but the checker disagrees",
        "iterations, median of passed", "CPU ms, median of passed", "CPU s, all files",
    ]  # fmt: skip
    return {"presets": markdown(header, lines)}
