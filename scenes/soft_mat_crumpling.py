"""Two walls compress a soft mat on a floor, then a lid presses the crumpled heap flat.

A good result: every step converges, the mat lies on itself in several layers with friction, no penetration exceeds a tenth of a
millimetre, and the mat springs open when lid and walls retract.
"""

from __future__ import annotations

import numpy as np

import femsim as fs


def build(
    young_modulus: float = 50e3,
    poisson_ratio: float = 0.35,
    friction: float = 0.3,
    density: float = 1000.0,
    length: float = 0.24,
    width: float = 0.12,
    thickness: float = 0.004,
    cells: tuple[int, int] = (36, 16),
    wave: float = 0.006,
    narrow: float = 0.3,
    pressed: float = 0.03,
    damping_time: float = 5e-3,
    dt: float = 0.005,
    theta: float = 1.0,
) -> fs.Scene:
    """Crumple a mat.

    Parameters
    ----------
    young_modulus : float, Pa
        Young's modulus of the mat.
    poisson_ratio : float, 1
        Poisson's ratio of the mat.
    friction : float, 1
        Coulomb coefficient between the mat and everything, including itself.
    density : float, kg/m^3
        Density of the mat.
    length, width, thickness : float, m
        Size of the mat along the motion of the walls, across it, and upwards.
    cells : tuple, 1
        Cells along and across; there is one through the thickness.
    wave : float, m
        Height of the initial waves, oblique to the walls, which trigger buckling.
    narrow : float, 1
        Final distance between the walls, as a fraction of the length.
    pressed : float, m
        Final height of the lid above the floor.
    damping_time : float, s
        Rayleigh damping proportional to the stiffness (beta).
    dt : float, s
        Time step.
    theta : float, 1
        Integration parameter, 0.5 (mid-point) to 1 (backward Euler).
    """
    pushed, lowered, opened = 1.2, 1.9, 2.5
    # linearised once a step: where the step is solved, a thin mat moves further in it than the normals of its contacts hold
    scene = fs.Scene(
        "soft_mat_crumpling", dt=dt, duration=opened + 0.5, theta=theta, default_friction=friction, nonlinear_tolerance=None
    )
    scene.add_floor()
    foam = fs.Elastic(young_modulus, poisson_ratio, density, rayleigh_beta=damping_time, name="mat")
    flat = fs.box_tets((length, width, thickness), (*cells, 1))
    points = flat.points.copy()
    phase = (3.0 * points[:, 0] + 0.7 * points[:, 1]) / length
    points[:, 2] += 0.5 * wave * (1.0 - np.cos(2.0 * np.pi * phase))
    points[:, 2] -= points[:, 2].min()
    mesh = fs.make_tetmesh(points, flat.tets, name="mat", source="soft_mat_crumpling")
    mat = scene.add_soft("mat", mesh, foam, self_contact=True)

    # half sizes; the lid fits between the walls and starts above any point that the mat can reach
    tall, thick, start_height = 0.5 * length, 0.005, 0.6 * length
    way = 0.5 * length * (1.0 - narrow)
    for name, side in (("left", -1.0), ("right", 1.0)):
        centre = (side * (0.5 * length + thick + 1e-3), 0.0, tall + 1e-3)
        wall = scene.add_rigid(name, fs.Box((thick, width, tall)), density=1000.0, position=centre)
        steps = [(0, 0, 0), (-side * way, 0, 0), (-side * way, 0, 0), (0, 0, 0)]
        scene.drive(wall, fs.Motion([0.0, pushed, lowered, opened], steps))
        scene.sensor(name, wall, kind="mount")
    scene.contact_by_faces("left", "right")  # at the nodes, the rim of the mat would get under a wall, into its gap to the floor
    lid = scene.add_rigid(
        "lid",
        fs.Box((0.5 * length * narrow - 1e-3, width, thick)),
        density=1000.0,
        position=(0.0, 0.0, start_height + thick),
    )
    down = (0, 0, pressed - start_height)
    scene.drive(lid, fs.Motion([0.0, pushed, lowered, opened], [(0, 0, 0), (0, 0, 0), down, (0, 0, 0)]))
    scene.sensor("lid", lid, kind="mount")
    scene.sensor("floor", "floor")
    scene.sensor("mat", mat)
    return scene
