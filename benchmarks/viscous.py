"""Prony terms against their closed forms: relaxation, creep and loss factor of small bodies, as drawn in docs/materials.md.

python -m benchmarks.viscous --out docs/pictures
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import femsim as fs

TERMS = ((0.5, 0.05), (0.3, 0.4))
SILICONE = fs.prony_of_loss_factor(0.11, 0.5, 20.0, 3)
YOUNG, NU, SIDE = 1e5, 0.3, 0.02
NO_GRAVITY = (0.0, 0.0, 0.0)


def sheared(
    motion: object, duration: float, dt: float, prony: object, rayleigh_beta: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Time (s) and force over G A of a block whose top follows a motion; mid-point rule, so that a force is that of mid-step."""
    scene = fs.Scene("block", dt=dt, duration=duration, gravity=NO_GRAVITY, theta=0.5)
    material = fs.Elastic(YOUNG, NU, 10.0, prony=prony)  # type: ignore[arg-type]  # checked there
    block = scene.add_soft("block", fs.box_tets((SIDE, SIDE, SIDE), 1), material, fixed=lambda x: x[:, 2] < 0.0)
    scene.sensor("top", scene.hold(block, lambda x: x[:, 2] > 0.0, motion), kind="mount")  # type: ignore[arg-type]
    top = fs.simulate(scene, quiet=True).sensors["top"]
    return top.time - 0.5 * dt, top.force[:, 0] / (material.lame_mu * SIDE**2)


def relaxation(dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Time since the middle of the step in which it is sheared by 1 %, and force over that in the end."""
    shift = 0.01 * SIDE
    motion = fs.Motion([0.0, dt, 9.0], [(0, 0, 0), (shift, 0, 0), (shift, 0, 0)], smooth=False)
    times, force = sheared(motion, 1.5, dt, TERMS)
    return times[3:] - 0.5 * dt, force[3:] / 0.01


def pulled(dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Time since the middle of the step in which a bar is loaded by a constant pull, and its strain over that in the end."""
    scene = fs.Scene("bar", dt=dt, duration=1.5, gravity=NO_GRAVITY, theta=1.0)
    mesh = fs.box_tets((0.03, 0.01, 0.01), (3, 1, 1))
    load = np.zeros((len(mesh.points), 3))
    for triangle in mesh.surface_triangles:
        side = mesh.points[triangle, 0]
        if np.ptp(side) < 1e-9 and abs(side[0]) > 0.0149:
            load[triangle, 0] += np.sign(side[0]) * 0.01 / 6.0
    scene.add_soft("bar", mesh, fs.Elastic(YOUNG, NU, 1000.0, prony=TERMS, rayleigh_alpha=200.0), load=lambda t: load)
    for sign, name in ((-1, "left"), (1, "right")):
        node = int(np.argmin(((mesh.points - (sign * 0.015, 0.005, 0.005)) ** 2).sum(axis=1)))
        scene.sensor(name, "bar", kind="marker", node=node)
    run = fs.simulate(scene, quiet=True)
    longer = run.markers["right"].position[:, 0] - run.markers["left"].position[:, 0] - 0.03
    return run.markers["left"].time - 0.5 * dt, longer / (0.03 * 0.01 / (1e-4 * YOUNG))


def loss(frequency: float, prony: object) -> float:
    """Loss factor of the block in its third period."""
    dt = 1.0 / (40.0 * frequency)

    def sway(t: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        return (1e-4 * np.sin(2.0 * np.pi * frequency * t), 0.0, 0.0), (0.0, 0.0, 0.0)

    times, force = sheared(sway, 3.0 / frequency, dt, prony)
    modulus = 2j * (force[80:120] @ np.exp(-2j * np.pi * frequency * times[80:120]))
    return float(modulus.imag / modulus.real)


def cost() -> list[str]:
    """CPU time of a step of a ball on the floor, with and without terms."""
    lines = []
    for law, element in (("corotational", "linear"), ("stable_neo_hookean", "linear"), ("corotational", "quadratic")):
        spent = []
        for prony in ((), SILICONE):
            scene = fs.Scene("ball", dt=0.01, duration=0.3, theta=1.0)
            scene.add_floor()
            material = fs.Elastic(2e5, 0.4, 1000.0, prony=prony)
            scene.add_soft("ball", fs.ball_tets(0.03, 8), material, position=(0, 0, 0.03), law=law, element=element)  # type: ignore[arg-type]
            fs.simulate(scene, duration=0.05, quiet=True)
            began = time.process_time()
            run = fs.simulate(scene, quiet=True)
            spent.append((time.process_time() - began) / len(run.steps["step"]))
        lines.append(f"{law}, {element}: {1e3 * spent[0]:.1f} ms a step, {1e3 * spent[1]:.1f} with three terms")
    return lines


def main() -> None:
    """Print what was found, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--cost", action="store_true", help="only the cost")
    chosen = parser.parse_args()
    if chosen.cost:
        print("\n".join(cost()))
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    held, creeping, damped = figure.subplots(1, 3)
    fine = np.linspace(0.0, 1.5, 400)
    held.plot(fine, fs.relaxation(TERMS, fine), "k", linewidth=1.0, label="closed form")
    creeping.plot(fine, fs.creep(TERMS, fine, NU), "k", linewidth=1.0, label="closed form")
    for dt, marker in ((0.02, "o"), (0.005, ".")):
        times, force = relaxation(dt)
        print(f"relaxation, dt {dt}: largest error {np.abs(force / fs.relaxation(TERMS, times) - 1.0).max():.2g}")
        held.plot(
            times[:: max(1, len(times) // 40)],
            force[:: max(1, len(times) // 40)],
            marker,
            markersize=4,
            label=f"dt {1e3 * dt:g} ms",
        )
        times, strain = pulled(dt)
        after = times > 0.05
        print(
            f"creep, dt {dt}: largest error {np.abs(strain / fs.creep(TERMS, times, NU) - 1.0)[after].max():.2g} from 0.05 s on"
        )
        creeping.plot(
            times[:: max(1, len(times) // 40)],
            strain[:: max(1, len(times) // 40)],
            marker,
            markersize=4,
            label=f"dt {1e3 * dt:g} ms",
        )
    held.set(xlabel="time, s", ylabel="force / final force", title="sheared at once and held")
    creeping.set(xlabel="time, s", ylabel="strain / final strain", title="pulled by a constant force")
    band = np.geomspace(0.2, 50.0, 200)
    damped.semilogx(band, fs.loss_factor(SILICONE, band), "k", linewidth=1.0, label="three terms")
    damped.semilogx(band, 2.0 * np.pi * band * 0.11 / (8.0 * np.pi), "0.6", linewidth=1.0, label="rayleigh_beta, right at 4 Hz")
    for frequency in (0.5, 1.0, 2.0, 4.0, 8.0, 20.0):
        found, wanted = loss(frequency, SILICONE), float(fs.loss_factor(SILICONE, frequency))
        print(f"loss factor at {frequency} Hz: {found:.4f}, closed form {wanted:.4f}")
        damped.plot(frequency, found, "o", color="C0", markersize=4, label="simulated" if frequency == 1.0 else None)
    damped.set(xlabel="frequency, Hz", ylabel="loss factor", ylim=(0.0, 0.3), title="swayed to and fro")
    for axes in (held, creeping, damped):
        axes.legend(fontsize=8, loc="upper left" if axes is damped else "best")
    path = chosen.out / "viscoelasticity.png"
    figure.savefig(path, dpi=110)
    print(path)


if __name__ == "__main__":
    main()
