"""Pendulums of every kind of body: scenes, and the period and amplitude of their swing to a high order in the step.

They are soft enough for steps of a millisecond to follow all that vibrates in them, and their weight begins smoothly, so that
little does: the order of a method supposes both.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.interpolate import CubicHermiteSpline

import femsim as fs
from contact.solvers import make_solver
from femsim.model.bodies.articulated import ArticulatedBody
from femsim.step.stepper import Stepper
from materials import Elastic


def weight(t: float) -> float:
    """Acceleration, m/s^2, that begins in a tenth of a second."""
    return 9.81 * math.sin(0.5 * math.pi * min(t / 0.1, 1.0)) ** 2


def free_scene(dt: float, strain_damping: float = 0.0) -> fs.Scene:
    """A scene of the energy-momentum step, without damping by default."""
    return fs.Scene("pendulum", dt=dt, gravity=(0.0, 0.0, 0.0), integrator="energy-momentum", strain_damping=strain_damping,
                    nonlinear_tolerance=1e-8)  # fmt: skip


def falling(scene: fs.Scene) -> Callable[[float], np.ndarray]:
    """The weight of the body that the scene gets next, N."""
    number = len(scene.bodies)
    return lambda t: np.array([0.0, 0.0, -weight(t) * scene.bodies[number].mass])


def hinged_rod(scene: fs.Scene) -> None:
    """A rubber rod on a ball joint, let go from level."""
    x = np.linspace(0.0, 0.1, 4)
    scene.add_rod("body", np.column_stack([x, 0 * x, 0 * x]), fs.circular_section(0.01), Elastic(3e4, 0.4, 1200.0),
                  start=fs.RodEnd("hinged"), load=falling(scene))  # fmt: skip


def clamped_rod(scene: fs.Scene) -> None:
    """A soft rod clamped above, let go from 45 degrees."""
    s = np.linspace(0.0, 0.1, 4)
    scene.add_rod("body", np.column_stack([0.7 * s, 0 * s, -0.7 * s]), fs.circular_section(0.005), Elastic(3e4, 0.4, 1200.0),
                  start=fs.RodEnd("clamped"), load=falling(scene))  # fmt: skip


def soft_bar(scene: fs.Scene) -> None:
    """A bar of neo-Hookean rubber hinged on the nodes of one edge, let go from level."""
    mesh = fs.box_tets((0.1, 0.03, 0.03), (2, 1, 1))
    scene.add_soft("body", mesh, Elastic(2e4, 0.3, 1000.0), law="stable_neo_hookean", position=(0.05, 0.0, -0.015),
                   fixed=lambda p: (p[:, 0] < 1e-9) & (p[:, 2] > -1e-9), load=falling(scene))  # fmt: skip


def box_on_a_rod(scene: fs.Scene) -> None:
    """A rigid box that a short rod hangs on a ball joint, let go from level."""
    scene.add_rigid("body", fs.Box((0.03, 0.02, 0.01)), mass=0.05, position=(0.05, 0.0, 0.0),
                    load=lambda t: ((0.0, 0.0, -0.05 * weight(t)), (0.0, 0.0, 0.0)))  # fmt: skip
    hang(scene, "body", 0.02)


def gripper_on_a_rod(scene: fs.Scene) -> None:
    """A gripper hung like the box, its weight on the base; a soft servo holds its finger, which slides as the base swings."""
    finger = fs.Finger("left", fs.Box((0.01, 0.005, 0.005)), (0.02, 0.0, -0.015), (1.0, 0.0, 0.0), mass=0.03)
    scene.add_gripper("body", [finger], position=(0.04, 0.0, 0.0), mass=0.05, base=fs.Box((0.02, 0.02, 0.01)), joint_damping=0.0)
    scene.drive("body", fingers=True, position=lambda t: 0.0, stiffness=40.0, damping=0.0)
    body = scene.bodies[-1]
    assert isinstance(body, ArticulatedBody)
    body.load = lambda t: (np.array([0.0, 0.0, -0.08 * weight(t)]), np.zeros(3))
    hang(scene, "body", 0.02)


def hang(scene: fs.Scene, body: str, length: float) -> None:
    """Hang a body on a rod from a ball joint at the origin."""
    ends = np.array([[0.0, 0.0, 0.0], [length, 0.0, 0.0]])
    scene.add_rod("string", ends, fs.circular_section(0.005), Elastic(3e4, 0.4, 5000.0),
                  start=fs.RodEnd("hinged"), end=fs.RodEnd("clamped", on=body))  # fmt: skip


PENDULUMS: dict[str, Callable[[fs.Scene], None]] = {
    "rod, hinged": hinged_rod, "rod, clamped": clamped_rod, "soft, hinged": soft_bar, "rigid": box_on_a_rod,
    "articulated": gripper_on_a_rod,
}  # fmt: skip


def paths(build: Callable[[fs.Scene], None], steps: list[float], duration: float) -> np.ndarray:
    """Coordinates of the first body at the ends of the longest step, (steps, times, n_q), each step a part of the longest."""
    out = []
    for dt in steps:
        scene = free_scene(dt)
        build(scene)
        stepper, every, places = Stepper(scene, make_solver("auto", tolerance=1e-10)), round(steps[0] / dt), []
        for k in range(round(duration / dt)):
            report = stepper.step()
            assert report.solution.converged, report.solution.message
            if (k + 1) % every == 0:
                places.append(stepper.state.q[stepper.system.q_slices[0]].copy())
        out.append(np.array(places))
    return np.array(out)


def swing(build: Callable[[fs.Scene], None], dt: float, duration: float, strain_damping: float = 0.0) -> tuple[float, float]:
    """Period (s) of the swing and the amplitude (m) of the centre of mass at its first turning back, of the body named "body"."""
    scene = free_scene(dt, strain_damping)
    build(scene)
    stepper = Stepper(scene, make_solver("auto", tolerance=1e-11))
    index = next(k for k, body in enumerate(scene.bodies) if body.name == "body")
    body, q, v = scene.bodies[index], stepper.system.q_slices[index], stepper.system.v_slices[index]
    times, x, rate = [], [], []
    for _ in range(round(duration / dt)):
        report = stepper.step()
        assert report.solution.converged, report.solution.message
        state = stepper.state
        times.append(state.t)
        x.append(body.centre_of_mass(state.q[q])[0])
        rate.append(body.momentum(state.q[q], state.v[v])[0] / body.mass)
    path = CubicHermiteSpline(times, x, rate)
    crossings = path.roots(extrapolate=False)
    turning = path.derivative().roots(extrapolate=False)
    turning = turning[turning > crossings[0]]
    return float(2.0 * (crossings[1] - crossings[0])), float(abs(path(turning[0])))
