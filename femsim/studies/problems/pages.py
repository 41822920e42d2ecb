"""What a benchmark writes beside its rows: metrics of papers/004, performance profiles, and a page."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from contact import ContactProblem, LocalProblem, contact_velocity, isotropic, to_isotropic
from contact.cone import project_forces
from femsim.base.files import replacing, write_errors
from femsim.studies.problems.profiles import AT, FLOOR_MS, Profile, largest_ratio, performance_profiles
from femsim.studies.problems.traits import CATEGORIES, Traits
from viz import plot_performance

_ADVICE = "free the disk or choose another place"
#: Measures that are profiled: column of a row, unit, and the least value that counts.
MEASURES = {"iterations": ("iterations", "1", 1.0), "ms": ("cpu_ms", "ms", FLOOR_MS)}


class Row(Protocol):
    """What a page needs of a row of a benchmark; see :class:`femsim.studies.problems.bench.BenchRow`."""

    @property
    def problem(self) -> str: ...  # noqa: D102
    @property
    def solver(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def message(self) -> str: ...  # noqa: D102
    @property
    def contacts(self) -> int: ...  # noqa: D102
    @property
    def velocities(self) -> int: ...  # noqa: D102
    @property
    def iterations(self) -> int: ...  # noqa: D102
    @property
    def cpu_ms(self) -> float: ...  # noqa: D102


def paper_metrics(problem: ContactProblem | LocalProblem, v: np.ndarray, lam: np.ndarray) -> dict[str, float]:
    """Metrics of papers/004 eqs. 156 to 162 by contact, the largest of all, by the names of columns of a benchmark.

    Parameters
    ----------
    problem : ContactProblem or LocalProblem
        The problem; of two coefficients a contact, in the variables of one.
    v : ndarray, (n,), m/s
        Velocity; not used for a local problem.
    lam : ndarray, (nc, 3), N
        Contact forces.
    """
    lam = lam.reshape(-1, 3)
    if isinstance(problem, LocalProblem):
        u, friction = problem.contact_velocity(lam), problem.friction
    else:
        u = contact_velocity(problem, v)
        u[:, 1:] *= problem.tangent_stretch
        lam, friction = to_isotropic(problem, lam), isotropic(problem).friction
    corrected = u.copy()
    corrected[:, 0] += friction * np.linalg.norm(u[:, 1:], axis=1)

    def closest(trial: np.ndarray) -> np.ndarray:
        out = np.empty_like(trial)
        project_forces(trial, np.column_stack([friction, friction]), False, out)
        return out

    def largest(values: np.ndarray) -> float:
        return float(np.linalg.norm(values, axis=1).max(initial=0.0))

    # what uh lacks of the dual cone is minus the projection of -uh on the cone
    dual, power = largest(closest(-corrected)), float(np.abs((corrected * lam).sum(axis=1)).max(initial=0.0))
    speed, force = largest(u), largest(lam)
    return {
        "natural_map": largest(lam - closest(lam - corrected)),
        "dual_residual": dual,
        "dual_relative": dual / speed if speed else 0.0,
        "complementarity": power,
        "complementarity_relative": power / (speed * force) if speed * force else 0.0,
    }


def profiles_of(rows: Sequence[Row], measure: str) -> dict[str, Profile]:
    """Return the profiles of all solvers by a measure, over answers that passed the yardstick; all problems count.

    Parameters
    ----------
    rows : sequence of Row
        Rows of a benchmark.
    measure : {"iterations", "ms"}
        What is compared.
    """
    column, _, floor = MEASURES[measure]
    problems = list(dict.fromkeys(row.problem for row in rows))
    costs = {row.solver: [math.nan] * len(problems) for row in rows}
    for row in rows:
        if row.status == "converged":
            costs[row.solver][problems.index(row.problem)] = getattr(row, column)
    return performance_profiles(costs, floor)


def write_profiles(folder: Path, rows: Sequence[Row], tolerance: float, known: Mapping[str, Traits]) -> None:
    """Write profile.csv, solved.csv, problems.csv, a plot of each measure, and the page bench.md into a folder."""
    found = {measure: profiles_of(rows, measure) for measure in MEASURES}
    solved, points = [], []
    for measure, profiles in found.items():
        end = largest_ratio(profiles)
        for solver, profile in profiles.items():
            solved.append([measure, solver, profile.solved, *(profile.at(tau) for tau in AT), profile.area(end)])
            points += [[measure, solver, tau, share] for tau, share in zip(profile.tau, profile.share, strict=True)]
        plot_performance(
            {solver: (profile.tau, profile.share) for solver, profile in _ranked(profiles)}, folder / f"profile_{measure}.png",
            label=f"{measure} over that of the best solver", title=f"answers to {tolerance:g}",
        )  # fmt: skip
    _write_table(folder / "profile.csv", ["measure", "solver", "tau", "share"], points)
    _write_table(folder / "solved.csv", ["measure", "solver", "solved", *(f"share_at_{tau:g}" for tau in AT), "area"], solved)
    traits = [[name, *of, " ".join(word.replace(" ", "_") for word in of.categories)] for name, of in known.items()]
    _write_table(folder / "problems.csv", ["problem", *Traits._fields, "categories"], traits)
    page = folder / "bench.md"
    with write_errors(page, _ADVICE), replacing(page) as temporary:
        temporary.write_text(_page(rows, found, tolerance, known), encoding="utf-8")


def _ranked(profiles: dict[str, Profile]) -> list[tuple[str, Profile]]:
    end = largest_ratio(profiles)
    return sorted(profiles.items(), key=lambda item: -item[1].area(end))


def _write_table(path: Path, header: list[str], lines: list[list[object]]) -> None:
    with write_errors(path, _ADVICE), replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in line] for line in lines)


def solved_by_category(rows: Sequence[Row], known: Mapping[str, Traits]) -> tuple[list[str], list[list[str]]]:
    """Count the problems that each solver solved in each category: header and lines of a table, by how many of all."""
    groups = {"all": {row.problem for row in rows}}
    for category in CATEGORIES:
        if members := {name for name in groups["all"] if name in known and category in known[name].categories}:
            groups[category] = members
    lines = []
    for solver in dict.fromkeys(row.solver for row in rows):
        solved = {row.problem for row in rows if row.solver == solver and row.status == "converged"}
        lines.append([solver, *(str(len(solved & members)) for members in groups.values())])
    lines.sort(key=lambda line: -int(line[1]))
    return ["solver", *(f"{name} ({len(members)})" for name, members in groups.items())], lines


def _page(rows: Sequence[Row], found: dict[str, dict[str, Profile]], tolerance: float, known: Mapping[str, Traits]) -> str:
    """Markdown: who solved how many and how fast, then each problem."""
    problems = list(dict.fromkeys(row.problem for row in rows))
    text = [
        "# Contact solvers compared",
        "",
        f"{len(problems)} problems, tolerance {tolerance:g}. An answer counts where our metrics pass it, whatever the solver "
        "says. Shares are of all problems; a ratio is to the best solver whose answer passed.",
        "",
    ]
    for measure, profiles in found.items():
        end = largest_ratio(profiles)
        header = ["solver", "solved", *(f"within {tau:g} x the best" for tau in AT), "area"]
        lines = [
            [name, f"{profile.solved} of {len(problems)}", *(f"{profile.at(tau):.2f}" for tau in AT), f"{profile.area(end):.2f}"]
            for name, profile in _ranked(profiles)
        ]
        text += [f"## By {measure}", "", *_table(header, lines), "", f"![Profile](profile_{measure}.png)", ""]
    text += ["## Solved, by kind of problem", "", *_table(*solved_by_category(rows, known)), ""]
    for problem in problems:
        own = [row for row in rows if row.problem == problem]
        header = ["solver", "status", "iterations", "CPU ms", "dynamics", "contact", "natural map N", "dual m/s", "compl. W"]
        lines = []
        for row in own:
            names = ("dynamics_residual", "contact_residual", "natural_map", "dual_residual", "complementarity")
            numbers = [_number(getattr(row, name), ".1e") for name in names]
            lines.append([row.solver, row.status, str(row.iterations), _number(row.cpu_ms, ".4g"), *numbers])
        size = f"{own[0].contacts} contacts" + (f", {own[0].velocities} velocities" if own[0].velocities else "")
        kinds = ", ".join(known[problem].categories) if problem in known else ""
        text += [f"## {problem}", "", f"{size}{'; ' if kinds else ''}{kinds}.", "", *_table(header, lines), ""]
        text += [f"- {row.solver}: {row.message}" for row in own if row.status != "converged"]
        text.append("")
    return "\n".join(text)


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "-"


def _table(header: list[str], lines: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines)]
