"""Figure 14 of papers/001 (section V-G): the path of a box under anisotropic friction, beside an integration without contact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

from femsim.run.result import end_with
from femsim.run.simulate import simulate
from femsim.scene.scene_file import load_scene
from femsim.studies.reproduction.measuring import Raw, Settings, linearised_once
from femsim.studies.reproduction.text import image, markdown, number, picture, section

COEFFICIENTS = ((0.5, 0.2), (0.2, 0.5), (0.4, 0.1), (0.3, 0.3))
TIME_STEPS = (0.01, 0.005, 0.0025)
#: All boxes have come to rest by then, s.
DURATION = 1.6
GRAVITY, SPEED = 9.81, 1.0


def dissipation_path(mu: tuple[float, float]) -> np.ndarray:
    """Places, (k, 2), of a point under dv/dt = -g M^2 v / |M v|, M = diag(mu), from (1, 1) m/s to rest."""
    squared = np.square(mu)

    def rate(_t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([y[2:], -GRAVITY * squared * y[2:] / np.sqrt(squared @ y[2:] ** 2)])

    def stopped(_t: float, y: np.ndarray) -> float:
        return float(np.hypot(y[2], y[3]) - 1e-7)

    stopped.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(rate, (0.0, 5.0), [0.0, 0.0, SPEED, SPEED], rtol=1e-10, atol=1e-13, events=stopped)
    return np.asarray(found.y[:2].T)


def _simulated(mu: tuple[float, float], dt: float) -> tuple[np.ndarray, str]:
    """Places of the box, (steps + 1, 2), and the status of the run."""
    scene = load_scene("anisotropic_box", mu_along=mu[0], mu_across=mu[1], dt=dt)
    run = simulate(linearised_once(scene), solver="exact", duration=DURATION, quiet=True)
    end_with(run)
    return np.asarray(run.markers["box"].position[:, :2]), run.status


def measure(settings: Settings) -> Raw:
    """Throw the box with all coefficients and time steps."""
    cases = []
    for mu in COEFFICIENTS[: settings.some(len(COEFFICIENTS), 2, 1)]:
        settings.say(f"anisotropic: mu {mu[0]:g}, {mu[1]:g}")
        expected = dissipation_path(mu)
        boxes = [_simulated(mu, dt) for dt in TIME_STEPS]
        cases.append(
            {
                "mu": mu, "expected": expected[-1].tolist(), "ends": [path[-1].tolist() for path, _ in boxes],
                "status": [status for _, status in boxes], "path": boxes[-1][0][::8].tolist(),
                "integrated": expected.tolist(),
            }
        )  # fmt: skip
    return {"cases": cases}


def write(raws: dict[str, Raw], figures: Path) -> str:
    """Table, figure and text."""
    cases = raws["anisotropic"]["cases"]
    lines, orders, extrapolated, converged = [], [], [], True
    for case in cases:
        expected, ends = np.array(case["expected"]), np.array(case["ends"])
        errors = np.linalg.norm(ends - expected, axis=1)
        orders.append(float(np.log2(errors[-2] / errors[-1])))
        extrapolated.append(1e3 * float(np.linalg.norm(2.0 * ends[-1] - ends[-2] - expected)))
        converged &= all(status == "converged" for status in case["status"])
        lines.append(
            [
                "{:g}, {:g}".format(*case["mu"]), f"{1e3 * expected[0]:.2f}, {1e3 * expected[1]:.2f}",
                " / ".join(number(1e3 * error) for error in errors), f"{orders[-1]:.2f}", number(extrapolated[-1]),
            ]
        )  # fmt: skip
    with picture(figures / "fig14_anisotropic.png", 1) as (axis,):
        for case in cases:
            (line,) = axis.plot(*np.array(case["path"]).T, lw=3.0, alpha=0.5, label="box, mu = ({:g}, {:g})".format(*case["mu"]))
            axis.plot(*np.array(case["integrated"]).T, "--", color=line.get_color(), lw=1.0)
        axis.set(xlabel="x [m]", ylabel="y [m]", title="dashed: integration of largest dissipation", aspect="equal")
        axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.05, 1.0))  # beside the paths, not over them
    tried = " / ".join(f"{1e3 * dt:g}" for dt in TIME_STEPS)
    header = [
        "mu1, mu2", "integration comes to rest at x, y mm", f"box ends off by mm, dt {tried} ms", "order in dt",
        "extrapolated mm",
    ]  # fmt: skip
    return section(
        "`scenes/anisotropic_box.py`, a flat box of 0.2 x 0.2 m thrown with (1, 1) m/s, beside an integration (`solve_ivp`) of "
        "dv/dt = -g M^2 v / |M v|, M = diag(mu1, mu2), which knows nothing of contact solvers.",
        markdown(header, lines),
        image("Paths of the box", figures / "fig14_anisotropic.png"),
        points=[
            f"{'All runs converged.' if converged else 'Some runs did not converge.'} The error is of order "
            f"{min(orders):.2f} to {max(orders):.2f} in the time step (backward Euler: 1). The paper gives no number."
        ],
    )
