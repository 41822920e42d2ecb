"""Solvers of papers/004 on problems of our own: how many each solves by kind, its ranks, and the metrics of the paper."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contact import read_fclib
from femsim.studies.problems.arena import expand_sets
from femsim.studies.problems.bench import BenchRow, bench
from femsim.studies.problems.pages import profiles_of, solved_by_category
from femsim.studies.problems.profiles import Profile, largest_ratio
from femsim.studies.problems.sets import GENERATED
from femsim.studies.problems.traits import Traits, traits
from femsim.studies.reproduction.measuring import Raw, Settings
from femsim.studies.reproduction.text import image, markdown, number, picture, section, short

#: Solvers of the paper, and ours beside them.
PAPER = (
    "pgs-ccp", "pgs-ccp-ds", "pgs-ncp", "nbgs", "raisim", "raisim-ds", "raisim-ds-es", "admm-ccp", "admm-ncp-fp", "admm-ncp-la",
    "admm-ncp-sa",
)  # fmt: skip
OURS = ("pgs", "apgd", "admm", "subadmm", "canal", "exact")
#: Sets of problems, tolerance, and CPU time of a solve, s.
SETS, TOLERANCE, _SECONDS = ("small", "stack", "ring", "mechanisms"), 1e-6, 5.0
#: Residuals of which the first iteration is stored, and metrics, relative where the paper's depend on units.
LEVELS, METRICS = (1e-2, 1e-4, 1e-6), ("natural_map", "dual_relative", "complementarity_relative")


@dataclass(frozen=True)
class _Row:
    """A stored row, as pages of a benchmark need it."""

    problem: str
    solver: str
    status: str
    iterations: int
    cpu_ms: float
    contacts: int = 0
    velocities: int = 0
    message: str = ""


def _stored(row: BenchRow) -> Raw:
    residual = np.asarray(row.curve_residual, dtype=float)
    reached = [np.flatnonzero(residual <= level) for level in LEVELS]
    return {
        "problem": row.problem, "solver": row.solver, "status": row.status, "iterations": row.iterations,
        "cpu_ms": _finite(row.cpu_ms), "first": [int(found[0]) + 1 if len(found) else None for found in reached],
        **{name: _finite(getattr(row, name)) for name in METRICS},
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return float(f"{value:.3g}") if math.isfinite(value) else None


def _known(sets: Sequence[str]) -> dict[str, Traits]:
    """Traits of all problems of sets, by the names that a benchmark gives them."""
    found: dict[str, Traits] = {}
    for name in sets:
        if name in GENERATED:
            found |= {f"{name}, {one}": traits(problem) for one, problem in GENERATED[name]()}
        else:
            found |= {path.stem: traits(read_fclib(path).problem) for path in expand_sets([name])}
    return found


def measure(settings: Settings) -> Raw:
    """Solve all problems by all solvers from nothing."""
    sets = SETS if not settings.tiny else ("mechanisms",)
    limit = settings.some(3000, 500, 30)

    def say(done: int, total: int) -> None:
        if done % 60 == 0:
            settings.say(f"suite: {done} of {total}")

    rows = bench(
        sets, [*PAPER, *OURS], tolerance=TOLERANCE, max_iterations=limit, repeat=settings.some(3, 1), time_limit=_SECONDS,
        progress=say,
    )  # fmt: skip
    known = {name: [None if isinstance(x, float) and math.isnan(x) else x for x in of] for name, of in _known(sets).items()}
    return {"rows": [_stored(row) for row in rows], "traits": known, "limit": limit}


# ---------------------------------------------------------------------- the page


def _rows(raw: Raw) -> list[_Row]:
    return [
        _Row(
            row["problem"], row["solver"], row["status"], row["iterations"],
            math.nan if row["cpu_ms"] is None else row["cpu_ms"],
        )
        for row in raw["rows"]
    ]  # fmt: skip


def _traits(raw: Raw) -> dict[str, Traits]:
    return {name: Traits._make(math.nan if x is None else x for x in of) for name, of in raw["traits"].items()}


def ranks(profiles: dict[str, Profile]) -> dict[str, tuple[int, float]]:
    """Rank, from 1, and area below the profile of each solver."""
    end = largest_ratio(profiles)
    areas = {name: profile.area(end) for name, profile in profiles.items()}
    return {name: (1 + sum(other > area for other in areas.values()), area) for name, area in areas.items()}


def _sizes(known: dict[str, Traits]) -> str:
    """Say which problems there are, and their smallest and largest sizes."""
    count = Counter(name.partition(", ")[0] if ", " in name else SETS[0] for name in known)
    sizes = {key: [getattr(traits, key) for traits in known.values()] for key in ("velocities", "contacts", "rows")}
    sizes["velocities"] = [n for n in sizes["velocities"] if n]  # files in local form have none
    said = ", ".join(f"{min(values)} to {max(values)} {key}" for key, values in sizes.items())
    return f"{', '.join(f'{name} ({n})' for name, n in count.items())}; {said}"


def _named(solver: str) -> str:
    return f"`{solver}`" if solver in PAPER else f"`{solver}` *"


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Tables of the problems, of what is solved, of ranks and metrics; performance profiles."""
    raw = raws["suite"]
    rows, known = _rows(raw), _traits(raw)
    profiles = {measure: profiles_of(rows, measure) for measure in ("iterations", "ms")}
    with picture(figures / "dual_profiles.png", 2) as panels:
        for axes, (measure, found) in zip(panels, profiles.items(), strict=True):
            end = 1.1 * largest_ratio(found)
            for k, name in enumerate(sorted(found, key=lambda name: -profiles["iterations"][name].area(1e3))):
                profile = found[name]
                last = profile.share[-1] if len(profile.share) else 0.0
                tau, share = np.append(profile.tau, end), np.append(profile.share, last)
                axes.step(tau, share, where="post", label=name, linestyle=("-", "--", ":")[k // 6 % 3])
            axes.set(xscale="log", xlabel=f"{measure} over the best", ylabel="share of the problems", xlim=(1, end), ylim=(0, 1))
        axes.legend(fontsize="xx-small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    header, lines = solved_by_category(rows, known)
    placed = {measure: ranks(found) for measure, found in profiles.items()}
    cells = {name: [f"{found[name][0]} ({found[name][1]:.2f})" for found in placed.values()] for name, *_ in lines}
    solved = [[_named(name), *counts, *cells[name]] for name, *counts in lines]
    names = [line[0] for line in lines]
    metrics = []
    for name in names:
        own = [row for row in raw["rows"] if row["solver"] == name and row["status"] in ("converged", "not converged")]
        firsts = [[row["first"][k] or math.inf for row in own] for k in range(len(LEVELS))]
        middles = [np.median([math.inf if row[key] is None else row[key] for row in own]) for key in METRICS]
        metrics.append(
            [
                _named(name), *(short(float(value)) for value in middles),
                *(number(float(np.median(first))) if np.isfinite(np.median(first)) else "-" for first in firsts[1:]),
            ]
        )  # fmt: skip
    shown = ("solver", "natural map, N", "dual, relative", "complementarity, relative")
    best = {measure: min(found, key=lambda name: found[name][0]) for measure, found in placed.items()}
    own_best = {measure: min(PAPER, key=lambda name: found[name][0]) for measure, found in placed.items()}
    return section(
        f"{len(known)} problems from nothing ({_sizes(known)}), tolerance {TOLERANCE:g}, at most {raw['limit']} iterations "
        f"and {_SECONDS:g} s of CPU time each. Our residuals say what is solved. Solvers with a star are ours, or other "
        "papers'. Categories overlap: redundant (the rank of the constraints is less than their number), dense (at least as "
        "many constraints as velocities), ratio of masses of 100 or more, joints, soft bodies.",
        markdown([*header, "rank by iterations (area)", "by CPU ms (area)"], solved),
        image("Performance profiles by iterations and by time", figures / "dual_profiles.png"),
        "Metrics of the paper (largest of a contact, median over all answers) and median iterations to a residual:",
        markdown(
            [*shown, *(f"to {level:g}" for level in LEVELS[1:])],
            metrics,
        ),
        points=[
            f"First by iterations: `{best['iterations']}`, of those of the paper `{own_best['iterations']}`; by time "
            f"`{best['ms']}`, of "
            f"those of the paper `{own_best['ms']}`.",
            "Iterations are not alike: an outer one of `canal` and `exact` has many steps, one of `pgs` is a sweep. `pgs-ccp`, "
            "`admm-ccp`, `nbgs` and `raisim` hold other laws where something slides, so they cannot pass there.",
        ],
    )  # fmt: skip
