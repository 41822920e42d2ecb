"""Table VIII and Figure 12 of papers/001: COND and position-based dynamics with fixed work a step, on the cable."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np

from contact import make_solver
from femsim.studies.reproduction.cable import Clocked, converged, error_text, force_error, run_loop, steps_to_take, thinned
from femsim.studies.reproduction.measuring import Raw, Settings
from femsim.studies.reproduction.paper import printed, published
from femsim.studies.reproduction.text import image, markdown, number, picture, section, short, times
from femsim.studies.reproduction.xpbd import simulate_xpbd


def measure(settings: Settings) -> Raw:
    """Run the winding by each."""
    steps = settings.some(steps_to_take(settings), 1500, 30)
    rows: dict[str, Raw] = {}
    settings.say("position-based: reference")
    reference = run_loop(settings.cable(), steps, converged())
    curves = {"reference": thinned(reference.force)}

    def add(name: str, links: int, force: np.ndarray, failed: int, penetration: float, ms: float) -> None:
        rows[name] = {
            "links": links, "error": force_error(force, reference.force), "late": force_error(force[-len(force) // 2 :],
            reference.force[len(force) - len(force[-len(force) // 2 :]) : len(force)]), "failed": failed,
            "penetration": penetration, "ms": ms,
        }  # fmt: skip
        curves[name] = thinned(force)

    for iterations in (100, 200):
        settings.say(f"position-based: COND by {iterations} iterations")
        scene = settings.cable()
        loop = run_loop(scene, steps, Clocked(make_solver("cond", tolerance=1e-14, max_iterations=iterations)))
        add(
            f"COND, {iterations} iterations", scene.bodies[0].n_v // 6, loop.force, loop.failed, loop.penetration,
            loop.dynamics_ms + loop.solver_ms,
        )  # fmt: skip
    for substeps in (100, 200):
        settings.say(f"position-based: XPBD by {substeps} substeps")
        scene = settings.cable(links=published("table_VIII")["xpbd_links"])
        taken = settings.some(substeps, substeps, substeps // 10)
        run = simulate_xpbd(scene, substeps=taken, duration=steps * scene.dt)
        force = run.sensors["tool"].force
        add(
            f"XPBD, {substeps} substeps", scene.bodies[0].n_v // 6, force, 0 if len(force) == steps else len(force) + 1,
            1e3 * float(run.penetration.max(initial=0.0)), 1e3 * statistics.median(run.seconds),
        )  # fmt: skip
    rows["banded (what auto picks)"] = {
        "links": settings.cable().bodies[0].n_v // 6, "error": (0.0, 0.0), "late": (0.0, 0.0), "failed": 0,
        "penetration": reference.penetration, "ms": reference.dynamics_ms + reference.solver_ms,
    }  # fmt: skip
    return {"rows": rows, "curves": curves, "steps": steps, "dt": settings.cable().dt}


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table, figure and text."""
    raw, paper = raws["position_based"], published("table_VIII")
    rows, seconds = raw["rows"], raw["steps"] * raw["dt"]
    lines = [
        [
            name, str(row["links"]), error_text(row["error"], row["failed"]), number(row["late"][0]), short(row["penetration"]),
            number(row["ms"]), printed(paper[name]) if name in paper else "-",
        ]
        for name, row in rows.items()
    ]  # fmt: skip
    header = [
        "method and work a step", "links", "tool force error N, mean / max", "mean of the second half", "penetration mm", "ms a "
        "step",
        "paper: mm; N; ms",
    ]  # fmt: skip
    with picture(figures / "fig12_position_based.png", 3) as axes:
        for name in ("reference", "COND, 200 iterations", "XPBD, 100 substeps", "XPBD, 200 substeps"):
            curve = np.array(raw["curves"][name])
            t = np.linspace(0.0, seconds * len(curve) / len(raw["curves"]["reference"]), len(curve))
            for k, axis in enumerate(axes):
                style = {"color": "k", "lw": 1.6} if name == "reference" else {"lw": 0.9}
                axis.plot(t, curve[:, k], label=name, **style)
        for k, axis in enumerate(axes):
            limit = 1.3 * float(np.abs(np.array(raw["curves"]["reference"])[:, k]).max()) or 1.0
            axis.set(xlabel="time [s]", ylabel=f"force on the tool, {'xyz'[k]} [N]", ylim=(-limit, limit))
        axes[0].legend(fontsize=6)
    coarse, fine, cond = (rows[name] for name in ("XPBD, 100 substeps", "XPBD, 200 substeps", "COND, 200 iterations"))
    theirs_coarse, theirs_fine, theirs = (
        paper[name] for name in ("XPBD, 100 substeps", "XPBD, 200 substeps", "COND, 200 iterations")
    )
    return section(
        f"The winding, one run of {raw['steps']} steps each (paper: {published('trials')} trials), errors against the converged "
        "run (the paper's: against its experiment); ms are medians of CPU time with assembly and detection. XPBD is our "
        "`simulate_xpbd`, after the publication that the paper names.",
        markdown(header, lines),
        image("Force on the tool", figures / "fig12_position_based.png"),
        points=[
            f"XPBD: twice the substeps divide the mean error by {number(coarse['error'][0] / fine['error'][0], 2)} (paper: "
            f"{theirs_coarse[1] / theirs_fine[1]:.1f}). It takes {times(fine['ms'] / cond['ms'])} the time of COND by 200 "
            f"iterations (paper: {theirs_fine[2] / theirs[2]:.0f} times).",
        ],
    )
