"""Section V-G of papers/001: the path of a box under anisotropic friction, beside an integration without a contact solver."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

import femsim as fs
from benchmarks.tables.common import ROOT, Settings, markdown, number, picture

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


def _simulated(mu: tuple[float, float], dt: float) -> np.ndarray:
    """Places of the box, (steps + 1, 2)."""
    scene = fs.load_scene(ROOT / "scenes" / "anisotropic_box.py", mu_along=mu[0], mu_across=mu[1], dt=dt)
    run = fs.simulate(scene, solver="exact", duration=DURATION)
    assert run.status == "converged"
    return np.asarray(run.markers["box"].position[:, :2])


def make(settings: Settings) -> dict[str, str]:
    """Make the table of the ends of the paths, and the picture after the paper's Fig. 14."""
    lines = []
    paths = []
    for mu in COEFFICIENTS[: settings.some(len(COEFFICIENTS), 1)]:
        expected = dissipation_path(mu)
        time_steps = TIME_STEPS[: settings.some(len(TIME_STEPS), 2)]
        boxes = [_simulated(mu, dt) for dt in time_steps]
        errors = [float(np.linalg.norm(box[-1] - expected[-1])) for box in boxes]
        order = float(np.log2(errors[-2] / errors[-1]))
        extrapolated = float(np.linalg.norm(2.0 * boxes[-1][-1] - boxes[-2][-1] - expected[-1]))
        lines.append(
            [
                f"{mu[0]:g}, {mu[1]:g}",
                f"{1e3 * expected[-1, 0]:.2f}, {1e3 * expected[-1, 1]:.2f}",
                " / ".join(number(1e3 * error) for error in errors),
                f"{order:.2f}",
                number(1e3 * extrapolated),
            ]
        )
        paths.append((mu, expected, boxes[-1]))
    _draw(paths, settings)
    ends = " / ".join(f"{1e3 * dt:g}" for dt in TIME_STEPS)
    header = [
        "mu1, mu2", "integration comes to rest at x, y mm", f"box ends off by mm, dt {ends} ms", "order in dt", "extrapolated mm",
    ]  # fmt: skip
    return {"V-G": markdown(header, lines)}


def _draw(paths: list[tuple[tuple[float, float], np.ndarray, np.ndarray]], settings: Settings) -> None:
    with picture(settings.pictures / "solvers_anisotropic.png", 1) as (axis,):
        for mu, expected, box in paths:
            (line,) = axis.plot(*box.T, linewidth=3.0, alpha=0.5, label=f"box, mu = ({mu[0]:g}, {mu[1]:g})")
            axis.plot(*expected.T, "--", color=line.get_color(), linewidth=1.0)
        axis.set(xlabel="x [m]", ylabel="y [m]", title="dashed: integration of largest dissipation", aspect="equal")
        axis.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
