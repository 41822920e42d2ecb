"""Single steps of papers/000 and 002: a nut on a bolt (Figure 7), dishes (Figure 9), inner methods on those (Table II)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from contact import ContactProblem
from femsim.scene.scene_file import load_scene
from femsim.studies.reproduction.budgets import Budget, digits, last_problem, measure_all
from femsim.studies.reproduction.measuring import Raw, Settings
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import image, markdown, number, percent, picture, section, short

#: Sizes of the wrenches in a case, N and N m, and of those with which a nut is laid on its bolt; turns of the nut.
NUT, DISHES, LAY, TURNS = (10.0, 0.5), (5.0, 0.2), (3.0, 0.1), (1.0, 5.0)
#: Friction of the thread, and steps until bolt and nut lie, and the dishes.
FRICTION, _LAID, _AT_REST = 0.1, 12, 24
#: Largest gap of a contact that counts as closed, m.
_CLOSED = 1e-6
_LITERAL = {"beta_rule": "paper", "acceleration": 0, "inner": "tight"}
CANAL, LITERAL, SUBADMM, PGS = "`canal`", "`canal`, as printed", "`subadmm`", "`pgs`"
#: Rows of Table II, by the names in the file of the paper.
INNER = {"newton": "`canal`, as printed", "dogleg": "trust region, dogleg", "damped": "damped Newton"}
#: Model and solver of the simulators in Table I, as solvers of ours.
MODELS = (
    ("NCP", "PGS", "pgs", 1000), ("NCP", "Newton (CANAL)", "canal", 60), ("NCP", "ADMM (SubADMM)", "subadmm", 1000),
    ("convex", "PGS", "pgs-ccp", 1000), ("convex", "ADMM", "admm-ccp", 1000),
)  # fmt: skip


def _wrench(rng: np.random.Generator, size: tuple[float, float]) -> np.ndarray:
    """Return a force and a torque of given sizes in directions drawn uniformly, (6,)."""
    push, turn = rng.standard_normal(3), rng.standard_normal(3)
    return np.concatenate([size[0] * push / np.linalg.norm(push), size[1] * turn / np.linalg.norm(turn)])


def torn(problem: ContactProblem, seed: int, size: tuple[float, float]) -> ContactProblem:
    """Add a random wrench to each rigid body of a problem, at its centre of mass; the seed gives the directions."""
    rng, b = np.random.default_rng(seed), problem.b.copy()
    for group in problem.groups:
        b[group.start : group.stop] += _wrench(rng, size)
    return replace(problem, b=b)


def laid_nut(seed: int, steps: int = _LAID) -> ContactProblem:
    """Return the problem of a nut that lies askew on its bolt, pressed there by gravity and a small wrench."""
    rng = np.random.default_rng(seed)
    scene = load_scene("bolt_nut", turns=float(rng.uniform(*TURNS)), friction=FRICTION)
    wrench = _wrench(rng, LAY)
    (nut,) = scene.bodies
    nut.load = lambda _: (wrench[:3], wrench[3:])  # type: ignore[attr-defined]
    problem = last_problem(scene, steps)
    b = problem.b.copy()
    b[:6] -= wrench
    return replace(problem, b=b)


def _budgets(settings: Settings) -> list[Budget]:
    outer = tuple(range(1, settings.some(21, 16, 4)))
    many = (1, 3, 10, 30, 100, 300, 1000)[: settings.some(7, 6, 3)]
    return [
        Budget(CANAL, "canal", {}, outer), Budget(LITERAL, "canal", _LITERAL, outer), Budget(SUBADMM, "subadmm", {}, many),
        Budget(PGS, "pgs", {}, many),
    ]  # fmt: skip


def _of_cases(problems: list[ContactProblem]) -> Raw:
    closed = [int((problem.phi[:, 0] * problem.dt < _CLOSED).sum()) for problem in problems]
    return {"contacts": [problem.n_contacts for problem in problems], "closed": closed, "velocities": problems[0].n}


def measure_nuts(settings: Settings) -> Raw:
    """Tear at nuts on their bolts."""
    poses, wrenches = settings.some(10, 3, 1), settings.some(10, 4, 2)
    settings.say(f"nuts: {poses} poses, {wrenches} wrenches each")
    laid = [laid_nut(pose, _LAID if not settings.tiny else 2) for pose in range(poses)]
    problems = [torn(problem, 100 * pose + k, NUT) for pose, problem in enumerate(laid) for k in range(wrenches)]
    return {**_of_cases(problems), "poses": poses, "wrenches": wrenches, "rows": measure_all(problems, _budgets(settings))}


def measure_dishes(settings: Settings) -> Raw:
    """Tear at a pile of dishes, by all solvers and by the inner methods of Table II."""
    cases, outer = settings.some(100, 12, 2), int(published("table_II", "000")["outer"])
    settings.say(f"dishes: {cases} cases")
    pile = last_problem(load_scene("dish_piling", pot_on_top=True), _AT_REST if not settings.tiny else 2)
    problems = [torn(pile, seed, DISHES) for seed in range(cases)]
    settings.say("dishes: inner methods")
    inner = [
        Budget(label, "canal", {**_LITERAL, "inner_method": method, "max_newton": 100}, (outer,))
        for method, label in INNER.items()
    ]
    ours = Budget(CANAL, "canal", {}, (outer,))
    models = [Budget(f"`{solver}`", solver, {}, (limit,)) for _, _, solver, limit in MODELS]
    if settings.tiny:
        models = [each._replace(counts=(10,)) for each in models]
    return {
        **_of_cases(problems),
        "rows": measure_all(problems, _budgets(settings)),
        "inner": measure_all(problems, [*inner, ours]),
        "models": measure_all(problems, models),
    }


# ---------------------------------------------------------------------- the page


def _median(row: Raw, name: str) -> np.ndarray:
    return np.asarray(np.median(np.array(row[name]), axis=0))


def _draw(figure: Path, rows: Raw) -> None:
    """Draw residual by time and time by iterations; lines are medians, bands have the quartiles."""
    with picture(figure, 2) as (left, right):
        for label, row in rows.items():
            name = label.replace("`", "")
            residual = np.maximum(np.array(row["residual"]), 1e-17)
            low, middle, high = np.percentile(residual, (25, 50, 75), axis=0)
            ms = _median(row, "ms")
            (line,) = left.loglog(ms, middle, marker=".", label=name)
            left.fill_between(ms, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
            right.loglog(row["counts"], ms, marker=".", label=name)
        left.set(xlabel="CPU ms", ylabel="residual of the paper", ylim=(1e-14, None))
        right.set(xlabel="iterations", ylabel="CPU ms")
        right.legend(fontsize="x-small")


def _table(rows: Raw) -> str:
    """Table of medians at some counts of iterations."""
    lines = []
    for label, row in rows.items():
        if label == LITERAL:  # drawn, and in Table II
            continue
        counts, residual = row["counts"], np.array(row["residual"])
        shown = [k for k, count in enumerate(counts) if count in (5, 10, 20, 100, 1000)] or [len(counts) - 1]
        for k in shown:
            lines.append(
                [
                    label, str(counts[k]), number(float(np.median(residual[:, k])), 2),
                    percent((residual[:, k] <= 1e-6).mean()), percent((residual[:, k] <= 1e-8).mean()),
                    number(float(np.median(np.array(row["ms"])[:, k]))),
                ]
            )  # fmt: skip
    return markdown(["solver", "iterations", "residual, median", "<= 1e-6", "<= 1e-8", "CPU ms, median"], lines)


def first_count(row: Raw, level: float) -> int | None:
    """Count the iterations from which the median residual is at most a level; None where it never is."""
    good = np.flatnonzero(_median(row, "residual") <= level)
    return int(row["counts"][good[0]]) if len(good) else None


def _said(row: Raw, level: float) -> str:
    count = first_count(row, level)
    return f"not in {row['counts'][-1]}" if count is None else f"after {count}"


def _growth(row: Raw) -> str:
    """Newton steps of an outer iteration at the start and at the end."""
    newton = np.array(row["newton"], dtype=float).mean(axis=0)
    counts, last = row["counts"], len(newton) - 1
    half = last // 2
    late = (newton[last] - newton[half]) / (counts[last] - counts[half]) if last else newton[0]
    return f"{short(newton[0])} Newton steps in the first outer iteration, {short(late)} in the later ones (mean)"


def _beside(rows: Raw) -> str:
    """Compare PGS and SubADMM with CANAL in the time that it takes for its last but few iterations."""
    canal, found = rows[CANAL], []
    k = min(11, len(canal["counts"]) - 1)
    ms, reached = float(_median(canal, "ms")[k]), float(_median(canal, "residual")[k])
    for label in (SUBADMM, PGS):
        times, residuals = _median(rows[label], "ms"), _median(rows[label], "residual")
        within = np.flatnonzero(times <= ms)
        found.append(
            f"{label} {short(float(residuals[within[-1]]))} ({rows[label]['counts'][within[-1]]} iterations)"
            if len(within)
            else f"{label} has not ended its first iteration ({short(float(times[0]))} ms)"
        )
    count = canal["counts"][k]
    return f"In the {short(ms)} ms of {count} iterations of `canal`, which reach {short(reached)}: {'; '.join(found)}."


def _cases_text(raw: Raw) -> str:
    contacts, closed = np.array(raw["contacts"]), np.array(raw["closed"])
    return (
        f"{len(contacts)} cases, {raw['velocities']} velocities, {_range(contacts)} contacts, of which {_range(closed)} are "
        "closed at the start"
    )


def _range(values: np.ndarray) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


def write_nuts(raws: dict[str, Raw], figures: Path) -> str:
    """Figure 7."""
    raw, given = raws["nuts"], published("figure_7", "000")
    rows = raw["rows"]
    _draw(figures / "canal_nuts.png", rows)
    return section(
        f"An M48 nut on its bolt in {raw['poses']} poses, {raw['wrenches']} random wrenches each (paper: {given['poses']} and "
        f"{given['wrenches']}, at most {given['contacts']} contacts). Not given, and ours: ISO profile with 0.2 mm of "
        f"radial play, "
        f"friction {FRICTION}, nuts 1 to 5 turns up and laid askew by gravity and {LAY[0]:g} N, {LAY[1]:g} N m; wrenches of "
        f"{NUT[0]:g} N and {NUT[1]:g} N m. {_cases_text(raw)}.",
        _table(rows),
        image("Nuts: residual by time, time by iterations", figures / "canal_nuts.png"),
        points=[
            f"To 1e-8 (median): `canal` {_said(rows[CANAL], 1e-8)} (paper: {given['canal']}), `subadmm` "
            f"{_said(rows[SUBADMM], 1e-8)} (paper: {given['subadmm']}), `pgs` {_said(rows[PGS], 1e-8)} (paper: "
            f"{given['pgs']}).",
            f"Time: {_growth(rows[CANAL])} (paper: {given['cost']}).",
            _beside(rows),
        ],
    )  # fmt: skip


def write_dishes(raws: dict[str, Raw], figures: Path) -> str:
    """Figure 9."""
    raw, given = raws["dishes"], published("figure_9", "000")
    rows = raw["rows"]
    _draw(figures / "canal_dishes.png", rows)
    return section(
        "Bowl, bowl, plate and pot on each other, from the floor up, 0.1 kg each and the pot 5 kg, at rest; a random wrench "
        "on each. "
        f"Not given, and ours: sizes (`scenes/dish_piling.py`), friction 0.5, wrenches of {DISHES[0]:g} N and {DISHES[1]:g} "
        f"N m. "
        f"{_cases_text(raw)} (paper: {given['cases']} cases).",
        _table(rows),
        image("Dishes: residual by time, time by iterations", figures / "canal_dishes.png"),
        points=[
            f"To 1e-8 (median): `canal` {_said(rows[CANAL], 1e-8)} (paper: {given['canal']}); to 1e-6: `subadmm` "
            f"{_said(rows[SUBADMM], 1e-6)} (paper: {given['subadmm']}), `pgs` {_said(rows[PGS], 1e-6)} (paper: "
            f"{given['pgs']}).",
            f"Time: {_growth(rows[CANAL])}.",
            _beside(rows),
            "The outer loop of CANAL converges linearly; superlinear (paper) are its inner Newton steps.",
        ],
    )  # fmt: skip


def _inner_row(label: str, row: Raw, given: Any) -> list[str]:
    newton, unfinished = np.array(row["newton"])[:, 0], np.array(row["unfinished"])[:, 0]
    outer = row["counts"][0]
    paper = "-" if given is None else f"{given['inner']}; {given['failure']} %; {given['digits'].text}"
    return [
        label, number(float(newton.mean())), percent(unfinished.sum() / (outer * len(unfinished))),
        percent((unfinished > 0).mean()), f"{digits(np.array(row['residual'])[:, 0]).mean():.2f}",
        number(float(np.median(np.array(row["ms"])))), paper,
    ]  # fmt: skip


def write_inner(raws: dict[str, Raw], _: Path) -> str:
    """Table II."""
    inner, given = raws["dishes"]["inner"], published("table_II", "000")
    lines = [_inner_row(label, inner[label], given[name]) for name, label in INNER.items()]
    lines.append(_inner_row(f"{CANAL}, our default", inner[CANAL], None))
    steps = [float(np.mean(inner[label]["newton"])) for label in INNER.values()]
    return section(
        f"The cases above, {given['outer']} outer iterations each; inner problems to 1e-10, at most 100 steps each (the "
        f"paper gives "
        "neither).",
        markdown(
            [
                "inner method", "Newton steps a case", "inner problems missed", "cases with one", "-log10 residual", "CPU ms",
                "paper: steps; failures; -log10",
            ],
            lines,
        ),
        points=[
            f"Dogleg takes {number(steps[1] / steps[0], 2)} times the Newton steps of `canal`, damped Newton "
            f"{number(steps[2] / steps[0], 2)} times (paper: 3.9 and 8.1)."
        ],
    )  # fmt: skip


def write_models(raws: dict[str, Raw], _: Path) -> str:
    """Table I."""
    rows, given = raws["dishes"]["models"], published("table_I", "000")
    simulators = {name: value for name, value in given.items() if name != "title"}
    lines = []
    for model, method, solver, _limit in MODELS:
        row = rows[f"`{solver}`"]
        of = [name for name, (theirs, solvers) in simulators.items() if theirs == model and method in solvers.split(", ")]
        middle = number(float(_median(row, "residual")[0]), 2)
        lines.append([model, method, f"`{solver}`", ", ".join(of) or "-", str(row["counts"][0]), middle])
    return section(
        "What femsim has of the models and solvers of the paper's table, on the cases of the dishes:",
        markdown(["model", "method", "solver here", "in", "iterations", "residual, median"], lines),
        points=[
            "The convex model keeps its own law: more iterations do not help. Polygonal cones (LCP: Bullet, DART, ODE) and PGS "
            "in "
            "substeps (TGS) are not here."
        ],
    )
