"""A robot winds a cable round a post (papers/001, section V-C5).

One end of a rubber cable of 0.4 m is clamped at the foot of a post; a robot lifts the other end and carries it twice round the
post. A good result: every step converges, the penetration stays below a nanometre, the final wrap angle is 721 degrees
(:func:`wrap_angle`), and the pull on the robot grows to about 10 N. With 80 or more links the force no longer depends on their
number; links longer than a quarter of the post's radius are too coarse.

The path of the held end follows the published robot data to 0.01 mm: up a straight line for 5 s, then a rising involute, the path
of the end of a taut cable that winds onto the post. ``trajectory`` replaces it by a file.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

import femsim as fs

AXIS = np.array([0.492, -0.2025])  # m, of the post, which stands upright on z = 0
POST_RADIUS, RADIUS, LENGTH = 0.02, 0.002, 0.4  # m
LIFT_STEPS, WIND_STEPS, STEP = 500, 5000, 0.01  # steps of s
EASE_STEPS = 20
#: Largest allowed distance from the end of the cable to the first position of a path, m.
REACH = 0.01


def build(
    mu: float = 1.3,
    young_modulus: float = 2.954e6,
    poisson_ratio: float = 0.49,
    density: float = 1259.0,
    links: int = 320,
    damping: float = 4.0,
    rotational_damping: float = 0.0,
    contact: Literal["centre", "surface"] = "centre",
    trajectory: str = "",
    duration: float = 55.0,
    dt: float = 0.01,
    theta: float = 1.0,
) -> fs.Scene:
    """Clamp a cable at the post and move its other end along a path.

    Parameters
    ----------
    mu : float, 1
        Coulomb coefficient between cable and post.
    young_modulus : float, Pa
        Young's modulus of the cable.
    poisson_ratio : float, 1
        Poisson's ratio of the cable.
    density : float, kg/m^3
        Density of the cable.
    links : int, 1
        Number of links; 80 or more.
    damping : float, N s/m^2
        Drag per metre of cable.
    rotational_damping : float, N s
        Rotational drag, N m s/rad per metre of cable.
    contact : str, choice
        Where contact forces act: at the "centre" of a link, as in the paper, or on its "surface", where friction also turns it.
    trajectory : str, file
        File with positions of the held end, one per 0.01 s unless it says their times: any that fs.load_path reads. Default: the
        path described above.
    duration : float, s
        Simulated time; the path lasts 55 s.
    dt : float, s
        Time step.
    theta : float, 1
        Integration parameter, 0.6 to 1; the mid-point rule (0.5) is unstable here.
    """
    scene = fs.Scene("cable_winding", dt=dt, duration=duration, theta=theta, margin=5e-4)
    start = np.array([AXIS[0] + POST_RADIUS + RADIUS, AXIS[1], 0.1])
    end = start + LENGTH * np.array([0.0, 1.0, 0.0])
    times, path = robot_path(trajectory) if trajectory else own_path()
    away = float(np.linalg.norm(path[0] - end))
    if away > REACH:
        raise fs.InputError(
            f"trajectory {trajectory} starts at {np.round(path[0], 4).tolist()} m, {1e3 * away:.1f} mm away from the end of the "
            f"cable at {np.round(end, 4).tolist()} m; allowed are {1e3 * REACH:g} mm."
        )
    # the path starts a fraction of a millimetre from the end of the cable, so its first positions are blended in
    ease = np.minimum(np.arange(1, len(path) + 1) / EASE_STEPS, 1.0)
    way = ease[:, None] * (path - end)
    cable = scene.add_rod(
        "cable",
        start + np.linspace(0.0, 1.0, links + 1)[:, None] * (end - start),
        fs.circular_section(RADIUS, shear_factor=1.0),
        fs.Elastic(young_modulus, poisson_ratio, density, name="cable"),
        start=fs.RodEnd("clamped"),
        end=fs.RodEnd("hinged", motion=fs.Motion([0.0, *times], [(0.0, 0.0, 0.0), *way], smooth=False)),
        translational_damping=damping,
        rotational_damping=rotational_damping,
        contact=contact,
    )
    height = 0.35
    post = scene.add_obstacle("post", fs.Cylinder(POST_RADIUS, 0.5 * height), position=(*AXIS, 0.5 * height), surface="post")
    scene.set_friction(cable, post, mu)
    scene.sensor("tool", cable, kind="end")
    scene.sensor("clamp", cable, kind="start")
    scene.sensor("post", post)
    return scene


def robot_path(trajectory: str) -> tuple[np.ndarray, np.ndarray]:
    """Return times (n,), s, and positions (n, 3), m, of a file; the first is reached one step after the start, or at its time."""
    path = fs.load_path(trajectory, dt=STEP)
    return path.times + max(path.clock, STEP), path.positions


def own_path() -> tuple[np.ndarray, np.ndarray]:
    """Return times (n,), s, and positions (n, 3), m, of the held end, one per step."""
    reach = POST_RADIUS + RADIUS
    foot = np.array([AXIS[0] + reach, AXIS[1], 0.0])
    lift = foot + np.linspace([0.0, 0.399804, 0.100524], [0.0, 0.302059, 0.362222], LIFT_STEPS)
    part = np.arange(1, WIND_STEPS + 1) / WIND_STEPS
    wound = 12.5 * part  # rad, angle at which the cable leaves the post
    free = 0.302059 + (0.0648157 - 0.302059) * part  # m, horizontal distance from there to the held end
    wind = np.column_stack(
        [
            AXIS[0] + reach * np.cos(wound) - free * np.sin(wound),
            AXIS[1] + reach * np.sin(wound) + free * np.cos(wound),
            0.362222 + (0.395 - 0.362222) * part,
        ]
    )
    return STEP * np.arange(1, LIFT_STEPS + WIND_STEPS + 1), np.concatenate([lift, wind])


def wrap_angle(run: fs.Run) -> float:
    """Angle (degree) round the post from the clamp to the point at which the cable is 0.1 mm off it, at the end of a run.

    It exceeds the rotation of the tangent by the few degrees in which a straight cable gains that distance.
    """
    q = run.stepper.state.q[run.stepper.system.q_slices[0]]
    centres = q.reshape(-1, 7)[:, :2] - AXIS
    angle = np.degrees(np.unwrap(np.arctan2(centres[:, 1], centres[:, 0])))
    gap = np.hypot(*centres.T) - POST_RADIUS - RADIUS
    last = int(np.flatnonzero(gap < 1e-4)[-1])
    return float(np.interp(1e-4, gap[last : last + 2], angle[last : last + 2]))
