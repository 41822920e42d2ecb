"""Figure 11 of papers/001: solver time of COND, PGS and APGD over the number of nodes of a mat."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import numpy as np

from contact import make_solver
from femsim.studies.reproduction.measuring import Raw, Settings, first_below, follow, limited, run_row, soft_body, solve, warm_up
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import image, markdown, number, picture, section

THRESHOLD, RESIDUAL, COND_LIMIT, DUAL_LIMIT = 1e-4, 1e-5, 5000, 100
#: Cells along a side of the mat, and the most for the dual solvers, because of their dense W.
CELLS = (10, 16, 26, 38, 56)
DUAL_CELLS = 26
#: Steps in which the mat is pulled and slides.
SAMPLED = (14, 20, 26)
FIRST = "by the paper's stop"


def measure(settings: Settings) -> Raw:
    """Time the solvers on mats of several sizes."""
    sizes = (3, 4, 5) if settings.tiny else CELLS[: settings.some(len(CELLS), 4)]
    rows = []
    for cells in sizes:
        scene = settings.pulled_mat(cells=cells)
        nodes = soft_body(scene).n_nodes
        settings.say(f"scaling: {nodes} nodes")
        names = ["cond", *(["pgs", "apgd"] if cells <= DUAL_CELLS else [])]
        limits = {"cond": COND_LIMIT, "pgs": DUAL_LIMIT, "apgd": DUAL_LIMIT}
        residual = {name: make_solver(name, tolerance=RESIDUAL, max_iterations=limits[name]) for name in names}
        stopped = {name: make_solver(name, tolerance=1e-14) for name in names}
        for step in follow(scene, make_solver("cond", tolerance=1e-6), SAMPLED[-1]):
            if step.number == SAMPLED[0] - 1:
                warm_up([*residual.values(), *(limited(solver, 2) for solver in stopped.values())], step)
            if step.number not in SAMPLED:
                continue
            for name in names:
                found, seconds = solve(residual[name], step)
                row = run_row(limited(stopped[name], first_below(found.history.step_norm, THRESHOLD)), step)
                rows.append(
                    {
                        "solver": name, "nodes": nodes, "contacts": step.problem.n_contacts, "step_ms": row.ms,
                        "step_iterations": row.iterations, "residual_ms": 1e3 * seconds, "residual_iterations": found.iterations,
                        "assembly_ms": row.assembly_ms, "converged": bool(found.converged),
                    }
                )  # fmt: skip
    return {"rows": rows}


def fit(nodes: np.ndarray, ms: np.ndarray) -> tuple[float, float]:
    """Exponent of ms = c nodes^p by least squares of logarithms, and R squared of the straight line ms = a + b nodes."""
    exponent = float(np.polyfit(np.log(nodes), np.log(ms), 1)[0])
    line = np.polyval(np.polyfit(nodes, ms, 1), nodes)
    spread = float(((ms - ms.mean()) ** 2).sum())
    return exponent, 1.0 - float(((ms - line) ** 2).sum()) / spread if spread else 1.0


def _curve(rows: list[Raw], solver: str, value: Any) -> tuple[np.ndarray, np.ndarray]:
    nodes = sorted({row["nodes"] for row in rows if row["solver"] == solver})
    values = [statistics.fmean(value(row) for row in rows if row["solver"] == solver and row["nodes"] == n) for n in nodes]
    return np.array(nodes, dtype=float), np.array(values)


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table, figure with fitted exponents, and text."""
    rows = raws["scaling"]["rows"]
    columns = {
        FIRST: lambda row: row["step_ms"],
        "to residual 1e-05": lambda row: row["residual_ms"],
        "of an iteration": lambda row: (row["step_ms"] - row["assembly_ms"]) / max(row["step_iterations"], 1),
    }
    lines, exponents = [], {}
    with picture(figures / "fig11_scaling.png", 2) as axes:
        for solver in ("cond", "pgs", "apgd"):
            cells = []
            for name, value in columns.items():
                nodes, ms = _curve(rows, solver, value)
                exponents[solver, name] = fit(nodes, ms)
                cells.append(", ".join(number(x) for x in ms))
            nodes, ms = _curve(rows, solver, columns[FIRST])
            contacts = _curve(rows, solver, lambda row: row["contacts"])[1]
            found = [row for row in rows if row["solver"] == solver]
            power = ", ".join(f"{exponents[solver, name][0]:.2f}" for name in columns)
            lines.append(
                [solver, ", ".join(f"{n:.0f}" for n in nodes), ", ".join(f"{n:.0f}" for n in contacts), *cells, power,
                 f"{sum(row['converged'] for row in found)}/{len(found)}"]
            )  # fmt: skip
            axis = axes[0] if solver == "cond" else axes[1]
            axis.plot(nodes, ms, "o-", label=f"{solver}: n^{exponents[solver, FIRST][0]:.2f}")
        for axis, solver in zip(axes, ("cond", "pgs"), strict=True):
            axis.set(xlabel="nodes", ylabel="solver CPU time [ms]", xscale="log", yscale="log")
            nodes = _curve(rows, solver, columns[FIRST])[0]
            axis.set_xticks(nodes, [f"{n:.0f}" for n in nodes])
            axis.minorticks_off()
            axis.legend()
    header = ["solver", "nodes", "contacts", *(f"ms {name}" for name in columns), "exponents of the three", "at the residual"]
    counts = _curve(rows, "cond", lambda row: row["residual_iterations"])[1]
    exponent, straight = exponents["cond", FIRST]
    return section(
        "A square mat of 0.3 x 0.3 x 0.01 m (E 75 kPa, mu 0.3) is pulled over the floor on all nodes of its lower side; mean of "
        f"steps {', '.join(map(str, SAMPLED))}.",
        markdown(header, lines),
        image("Solver time over nodes", figures / "fig11_scaling.png"),
        points=[
            f"COND by the paper's stop grows as n^{exponent:.2f} (a straight line fits with R squared {straight:.4f}; paper: "
            f"linear, {published('figure_11')['r_squared']}); to the same true residual as "
            f"n^{exponents['cond', 'to residual 1e-05'][0]:.2f}, with {number(counts[0])} to {number(counts[-1])} iterations.",
            f"PGS and APGD grow as n^{exponents['pgs', FIRST][0]:.2f} and n^{exponents['apgd', FIRST][0]:.2f} (paper: more than "
            f"linearly), since W is dense; measured on the smaller mats, at most {DUAL_LIMIT} iterations.",
        ],
    )
