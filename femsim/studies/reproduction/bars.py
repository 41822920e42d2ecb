"""Test 4 of papers/003 (Figures 12 and 13): 15 deformable bars on a heap, as soft as rubber and as stiff as steel."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from contact import make_solver
from contact.linear import make_factorization, make_quasi_definite
from contact.problem import isotropic
from contact.solvers.linear_steps import LinearStep, PrimalStep, SaddleStep
from femsim.studies.problems.sets import bars
from femsim.studies.reproduction.measuring import Raw, Settings
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.splittings import OURS, TOLERANCE, Method, below, curve, draw, p_admm, p_fadmm, said
from femsim.studies.reproduction.text import image, markdown, number, picture, section

_MODULI = (1e6, 2e11)
_LIMIT = 1500


def _median_ms(call: Callable[[int], object], times: int) -> float:
    """CPU time of a call, ms, without that of the first one."""
    seconds = []
    for index in range(times + 1):
        started = time.process_time()
        call(index)
        seconds.append(time.process_time() - started)
    return 1e3 * float(np.median(seconds[1:]))


def measure(settings: Settings) -> Raw:
    """Solve the heap at both stiffnesses by splittings and two Newton methods; time factorizations and solves by themselves."""
    raw: Raw = {}
    cells = (4, 1, 1) if settings.tiny else (12, 3, 3)
    for modulus in _MODULI:
        settings.say(f"bars: {modulus:g} Pa")
        problem = bars(modulus, cells)
        same = isotropic(problem)
        steps: dict[str, LinearStep] = {
            "saddle": SaddleStep(same, make_quasi_definite("auto", 1)), "primal": PrimalStep(same, make_factorization("auto", 1))
        }  # fmt: skip
        linear = {}
        for name, step in steps.items():
            penalty, right = np.repeat(same.scales / 0.1, 3), np.zeros(3 * problem.n_contacts)

            def factorize(index: int, step: LinearStep = step, penalty: np.ndarray = penalty) -> None:
                step.prepare(penalty * (1.0 + index))

            def solve(_: int, step: LinearStep = step, right: np.ndarray = right) -> None:
                step.solve(right)

            linear[name] = [_median_ms(factorize, 5), _median_ms(solve, 20)]
        rows = [curve(problem, method, _LIMIT) for method in (OURS, p_admm(), p_fadmm())]
        relaxed = make_solver("p-admm", tolerance=TOLERANCE, max_iterations=_LIMIT, operator="proximal").solve(problem)
        for name in ("cond-newton", "canal"):
            rows.append(curve(problem, Method(f"`{name}`", name, {}), 100))
        for row in rows:
            row.pop("forces")
        raw[f"{modulus:g}"] = {
            "rows": rows, "linear": linear, "contacts": problem.n_contacts, "velocities": problem.n,
            "relaxed": [relaxed.iterations, relaxed.details["factorizations"], relaxed.details["law_residual"]],
        }  # fmt: skip
    return raw


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table of both stiffnesses, and the curves."""
    raw, given = raws["bars"], published("test_4", "003")
    lines = []
    with picture(figures / "admm_bars.png", 2) as panels:
        for axes, (name, case) in zip(panels, raw.items(), strict=True):
            draw(axes, case["rows"], f"E = {name} Pa")
            axes.set_xscale("log")
            for row in case["rows"]:
                its = [said(below(row, level), len(row["residual"])) for level in (1e-4, TOLERANCE)]
                lines.append([name, row["label"], *its, str(row["factorizations"] or "-"), number(row["ms"])])
    soft, stiff = raw.values()
    ours = [below(case["rows"][0], TOLERANCE) or _LIMIT for case in (soft, stiff)]
    saddle, primal = (np.median([case["linear"][name] for case in (soft, stiff)], axis=0) for name in ("saddle", "primal"))
    unknowns = soft["velocities"] + 3 * soft["contacts"]
    return section(
        f"15 bars of 208 nodes ({soft['velocities']} velocities; paper: {given['unknowns']}) in five layers of three, density "
        "1000 kg/m^3, "
        "nu 0.3, Rayleigh 0.01 s, friction 0.3, steps of 50 ms. Not given, and ours: bars of 0.6 x 0.15 x 0.15 m, laid across "
        "each other instead of dropped with random turns (`scenes/falling_bars.py` drops them), one step from nothing. "
        f"{soft['contacts']} contacts, {unknowns} unknowns of the saddle point (paper: {given['contacts']} and "
        f"{given['saddle_unknowns']}).",
        markdown(["E, Pa", "method", "iterations to 1e-4", "to 1e-6", "factorizations", "CPU ms"], lines),
        image("Residuals of the bars", figures / "admm_bars.png"),
        points=[
            f"A factorization takes {number(saddle[0])} ms and a solve {number(saddle[1])} ms in the saddle-point form of the "
            "paper (paper: "
            f"{given['factorization_ms']} and {given['solve_ms']} on {published('machine', '003')}), "
            f"{number(primal[0])} and {number(primal[1])} in the primal form, which `admm` takes here.",
            f"`admm` needs {ours[0]} iterations at 1e6 Pa and {ours[1]} at 2e11 Pa, {number(max(ours) / min(ours), 2)} times as "
            "many (paper: a "
            f"comparable number), with {soft['rows'][0]['factorizations']} and {stiff['rows'][0]['factorizations']} "
            "factorizations (paper: "
            f"{given['factorizations']} on average) and one solve each (paper: {given['solves']}, its tolerance is not given).",
            "The paper's convex law, by P-ADMM with the proximal operator: "
            + " and ".join(
                f"{case['relaxed'][0]} iterations, {case['relaxed'][1]} factorizations, its own law to "
                f"{number(case['relaxed'][2], 2)}"
                for case in (soft, stiff)
            )
            + ".",
        ],
    )  # fmt: skip
