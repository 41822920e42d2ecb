"""What the page says of randomised trials: the tables, figures and sentences that Tables II, III, V, VI and IX share."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from femsim.studies.reproduction.measuring import Raw
from femsim.studies.reproduction.text import image, markdown, number, percent, picture, section, short, times
from femsim.studies.reproduction.trials import (
    REFERENCE,
    RESIDUAL,
    RESIDUAL_RULE,
    STEP_RULE,
    average,
    chosen_rows,
    missed,
)

#: Least penetration that is drawn, mm, and markers of the solvers.
FLOOR, MARKERS = 1e-12, {"cond": "o", "pgs": "s", "apgd": "^"}
#: From N to the unit of the errors.
FACTORS = {"N": 1.0, "mN": 1e3}


def rule(stop: str, threshold: float) -> str:
    """Name of a stopping rule for a reader."""
    return {STEP_RULE: f"step < {threshold:.0e}", RESIDUAL_RULE: f"residual {RESIDUAL:.0e}"}.get(stop, stop)


def scene_section(
    raw: Raw,
    paper: Raw,
    figure: Path,
    *,
    scene: str,
    curve: str,
    caption: str,
    points: Sequence[str],
    tables: Sequence[str] = (),
    pictures: Sequence[str] = (),
) -> str:
    """Write the section of a scene, and draw its figure.

    Parameters
    ----------
    raw : dict
        Of :func:`~femsim.studies.reproduction.trials.run_trials`.
    paper : dict
        The published table.
    figure : Path
        File of the figure.
    scene : str
        The scene in words.
    curve : str
        What is drawn beside the penetration.
    caption : str
        Of the figure.
    points : sequence of str
        Sentences of this scene, after those of all.
    tables, pictures : sequence of str
        More of them, after the first.
    """
    draw_curves(raw, figure, f"{curve} [N]")
    fineness = f"{paper['links']} links" if "links" in paper else f"{paper['nodes']} and {paper['tetrahedra']}"
    return section(
        trials_sentence(raw, f"{scene} ({raw['mesh']}; paper: {fineness})", paper["dynamics_ms"]),
        solver_table(raw, paper),
        *tables,
        image(caption, figure),
        *pictures,
        points=[*common_text(raw, paper), *points],
    )


def _published_cell(row: Raw) -> str:
    """Write a row of the paper: MP; error; ST (of which assembly); IN."""
    assembly = f" ({row['assembly_ms']:g})" if "assembly_ms" in row else ""
    return f"{row['penetration']:g}; {row['error']:g}; {row['ms']:g}{assembly}; {row['iterations']:g}"


def solver_table(raw: Raw, paper: Raw) -> str:
    """Table of the solvers as in Tables II, III, V and VI, from the trials and the published table."""
    unit = paper["error_unit"]
    factor = FACTORS[unit]
    lines = []
    rows = raw["rows"]
    for solver in ("cond", "pgs", "apgd"):
        for stop in (STEP_RULE, RESIDUAL_RULE):
            count = len(chosen_rows(rows, solver, stop))
            lines.append(
                [
                    solver,
                    rule(stop, raw["threshold"])
                    + (f" ({count - missed(rows, solver, stop)}/{count})" if stop == RESIDUAL_RULE else ""),
                    number(average(rows, solver, stop, "iterations")),
                    f"{number(average(rows, solver, stop, 'ms'))} ({short(average(rows, solver, stop, 'assembly_ms'))})",
                    short(average(rows, solver, stop, "penetration")),
                    f"{number(factor * average(rows, solver, stop, 'norm_error'))} "
                    f"({percent(average(rows, solver, stop, 'relative_error'))})",
                    f"{short(average(rows, solver, stop, 'dynamics'))}; {short(average(rows, solver, stop, 'contact'))}",
                    _published_cell(paper[solver]) if stop == STEP_RULE else "-",
                ]
            )
    exact = chosen_rows(rows, "auto", RESIDUAL_RULE)
    lines.append(
        [
            "auto",
            f"residual {REFERENCE:.0e} ({sum(row['converged'] for row in exact):.0f}/{len(exact)})",
            number(average(rows, "auto", RESIDUAL_RULE, "iterations")),
            number(average(rows, "auto", RESIDUAL_RULE, "ms")),
            short(average(rows, "auto", RESIDUAL_RULE, "penetration")),
            "reference",
            f"{short(average(rows, 'auto', RESIDUAL_RULE, 'dynamics'))}; "
            f"{short(average(rows, 'auto', RESIDUAL_RULE, 'contact'))}",
            "-",
        ]
    )
    header = [
        "solver", "stop (converged)", "iterations", "CPU ms (assembly)", "penetration mm", f"error {unit}",
        "dynamics; contact residual", f"paper: mm; {unit}; ms; iterations",
    ]  # fmt: skip
    return markdown(header, lines)


def trials_sentence(raw: Raw, what: str, paper_ms: float) -> str:
    """Say how many trials and samples there are, what was drawn, and how the runs went; DT beside the paper's, ms."""
    drawn, reference = raw["drawn"], raw["reference"]
    ranges = ", ".join(
        f"{name} {short(min(values))} to {short(max(values))}"
        for name in drawn[0]
        for values in [[trial[name] for trial in drawn]]
    )
    samples = len(chosen_rows(raw["rows"], "cond", STEP_RULE))
    several = len(reference["picked"]) > 1
    picked = f" ({', '.join(f'{name} in {count}' for name, count in reference['picked'].items())})" if several else ""
    driver, tolerance = raw["driver"]
    return (
        f"{len(drawn)} random trials ({ranges}) of {what}, each run by `{driver}` to {tolerance:.0e}: {reference['converged']} "
        f"of {reference['steps']} steps converged{picked}, DT {number(reference['dynamics_ms'])} ms (paper: {paper_ms}), "
        f"solver {number(reference['solver_ms'])} ms a step. Means over {samples} of these steps."
    )


def draw_curves(raw: Raw, path: Path, label: str) -> None:
    """Draw penetration and gauge of trial 0 over time, with what the solvers stopped by their step say."""
    curves = raw["curves"]
    values = np.array(curves["gauge"])
    columns = [values[:, k] for k in range(3)] if raw["axes"] else [values]
    labels = [f"{label}, {axis}" for axis in "xyz"] if raw["axes"] else [label]
    with picture(path, 1 + len(columns)) as axes:
        axes[0].plot(curves["time"], np.maximum(curves["penetration"], FLOOR), "k-", lw=1.0, label="the run, end of step")
        for axis, column, text in zip(axes[1:], columns, labels, strict=True):
            axis.plot(curves["time"], column, "k-", lw=1.0, label="the run")
            axis.set(xlabel="time [s]", ylabel=text)
        for solver, marker in MARKERS.items():
            found = chosen_rows(raw["dense"], solver, STEP_RULE)
            when = [row["time"] for row in found]
            style = {"linestyle": "", "marker": marker, "markersize": 4, "fillstyle": "none", "label": solver}
            axes[0].plot(when, [max(row["penetration"], FLOOR) for row in found], **style)
            for k, axis in enumerate(axes[1:]):
                axis.plot(when, [row["gauge"][k] if raw["axes"] else row["gauge"] for row in found], **style)
        axes[0].set(xlabel="time [s]", ylabel="penetration [mm]", yscale="log")
        axes[0].legend(fontsize=6)
        axes[1].legend(fontsize=6)


def common_text(raw: Raw, paper: Raw) -> list[str]:
    """Sentences for each of the scenes."""
    rows = raw["rows"]
    ms = {name: average(rows, name, STEP_RULE, "ms") for name in ("cond", "pgs", "apgd")}
    same = {name: average(rows, name, RESIDUAL_RULE, "ms") for name in ms}
    counts = {name: average(rows, name, STEP_RULE, "iterations") for name in ms}
    penetration = {name: average(rows, name, STEP_RULE, "penetration") for name in ms}
    relative = {name: average(rows, name, STEP_RULE, "relative_error") for name in ms}
    auto = average(rows, "auto", RESIDUAL_RULE, "ms")
    kappa = statistics.median(row["conditioning"] for row in chosen_rows(rows, "cond", STEP_RULE))
    theirs = {name: paper[name]["ms"] / paper["cond"]["ms"] for name in ("pgs", "apgd")}
    here = {name: ms[name] / ms["cond"] for name in theirs}
    claims = {
        "COND is the fastest by its stop": min(here.values()) > 1.0,
        f"COND is at least {min(theirs.values()):.0f} times as fast": min(here.values()) >= min(theirs.values()),
        "COND needs the fewest iterations": counts["cond"] <= min(counts["pgs"], counts["apgd"]),
        "COND penetrates least": min(penetration, key=lambda name: penetration[name]) == "cond",
    }
    if paper["cond"]["error"] > 1.1 * paper["apgd"]["error"]:
        claims["COND has a larger error than APGD"] = relative["cond"] > relative["apgd"]
    holds, fails = ([claim for claim, true in claims.items() if true is wanted] for wanted in (True, False))
    sentences = [
        f"Statements of the paper that hold here: {'; '.join(holds) or 'none'}. Those that do not: {'; '.join(fails) or 'none'}.",
        f"Time relative to COND, by the paper's stop: PGS {times(ms['pgs'] / ms['cond'])}, APGD {times(ms['apgd'] / ms['cond'])} "
        f"(paper: {theirs['pgs']:.0f} and {theirs['apgd']:.0f}); to the residual {RESIDUAL:.0e} "
        f"{times(same['pgs'] / same['cond'])} and {times(same['apgd'] / same['cond'])}; `auto` to {REFERENCE:.0e} "
        f"{times(auto / ms['cond'])}. Median conditioning of A: {number(kappa)}.",
    ]
    return sentences


def acceleration_lines(name: str, raw: Raw, paper: str) -> list[list[str]]:
    """Lines of Table IX for a scene."""
    rows, lines = raw["rows"], []
    for stop in (STEP_RULE, RESIDUAL_RULE):
        cells = []
        for variant in ("plain", "cond", "Barzilai-Borwein"):
            count = len(chosen_rows(rows, variant, stop))
            failed = missed(rows, variant, stop) if stop == RESIDUAL_RULE else 0
            cells.append(
                number(average(rows, variant, stop, "iterations")) + (f" ({failed} of {count} not converged)" if failed else "")
            )
        lines.append([name, rule(stop, raw["threshold"]), *cells, paper if stop == STEP_RULE else "-"])
    return lines
