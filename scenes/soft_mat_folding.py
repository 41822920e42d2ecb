"""A two-finger hand folds a soft mat on a table (papers/001, section V-C3).

The hand grips the edge that overhangs the table, carries it over in an arc while turning, lays it on the other edge, opens and
retracts; the mat sticks to the table and slides on it, and its folded half lies on the other with friction.

A good result: every step converges, the held edge follows the hand, no node penetrates the table or the other half of the mat by
more than a micrometre, and the mat stays folded without the hand.
"""

from __future__ import annotations

import math

import numpy as np

import femsim as fs

#: Half sizes of a pad, its distance from the mat before closing, and the distance from the grip to the centre of the hand, m.
PAD, OPENING, REACH = (0.012, 0.04, 0.0015), 0.004, 0.08
#: Overhang of the edge beyond the table, and the part of it that the pads hold, m.
OVERHANG, HELD = 0.026, 0.02


def build(
    young_modulus: float = 75e3,
    poisson_ratio: float = 0.35,
    friction: float = 0.3,
    grip_friction: float = 0.8,
    density: float = 1000.0,
    length: float = 0.3,
    width: float = 0.2,
    thickness: float = 0.005,
    cells: tuple[int, int] = (31, 22),
    grip_force: float = 10.0,
    carry_time: float = 2.0,
    arc_height: float = 0.12,
    damping_time: float = 5e-3,
    dt: float = 0.01,
    theta: float = 1.0,
) -> fs.Scene:
    """Fold a mat in half.

    Parameters
    ----------
    young_modulus : float, Pa
        Young's modulus of the mat; the paper uses 50 to 100 kPa.
    poisson_ratio : float, 1
        Poisson's ratio of the mat; the paper uses 0.3 to 0.4.
    friction : float, 1
        Coulomb coefficient between the mat and the table or itself; the paper uses 0.1 to 0.5.
    grip_friction : float, 1
        Coulomb coefficient between the mat and the pads.
    density : float, kg/m^3
        Density of the mat.
    length, width, thickness : float, m
        Size of the mat along the motion of the hand, across it, and upwards.
    cells : tuple, 1
        Cells along and across; there is one through the thickness. The default gives 1472 nodes and 4092 tetrahedra (paper:
        1477 and 4100).
    grip_force : float, N
        Force of the upper finger; the lower one holds its position.
    carry_time : float, s
        Time from lifting to laying down.
    arc_height : float, m
        Height of the hand's arc above the table.
    damping_time : float, s
        Rayleigh damping proportional to the stiffness (beta).
    dt : float, s
        Time step.
    theta : float, 1
        Integration parameter, 0.5 (mid-point) to 1 (backward Euler).
    """
    approach, close, lift = 0.4, 0.7, 0.8
    laid = lift + carry_time
    release, retreat, away_at, rest = laid + 0.1, laid + 0.3, laid + 0.5, laid + 1.2
    # linearised once a step: where the step is solved, a thin mat moves further in it than the normals of its contacts hold
    scene = fs.Scene("soft_mat_folding", dt=dt, duration=rest, theta=theta, nonlinear_tolerance=None)
    table = scene.add_obstacle(
        "table", fs.Box((length, width, 0.01)), position=(-0.5 * length - OVERHANG, 0.0, -0.01), surface="table"
    )
    foam = fs.Elastic(young_modulus, poisson_ratio, density, rayleigh_beta=damping_time, name="mat")
    mesh = fs.box_tets((length, width, thickness), (*cells, 1))
    mat = scene.add_soft("mat", mesh, foam, position=(0.0, 0.0, 0.5 * thickness), self_contact=True)

    grip = np.array([0.5 * length - HELD + PAD[0], 0.0, 0.5 * thickness])
    # when the hand opens, the inner pad is between the halves, two millimetres above the lower one
    lowest = 1.5 * thickness + 2.0 * PAD[2] + OPENING + 2e-3
    way, away = -2.0 * grip[0], 0.08
    start = grip + np.array([REACH + away, 0.0, 0.0])
    out = 0.5 * thickness + OPENING + PAD[2]
    hand = scene.add_gripper(
        "hand",
        [
            fs.Finger("upper", fs.Box(PAD), offset=(-REACH, 0.0, out), closing=(0.0, 0.0, -1.0), mass=0.05),
            fs.Finger("lower", fs.Box(PAD), offset=(-REACH, 0.0, -out), closing=(0.0, 0.0, 1.0), mass=0.05),
        ],
        position=start,
        mass=0.5,
        joint_limits=(-0.001, OPENING + 0.5 * thickness),
    )
    scene.contact_by_faces(table, on=False)  # nodes against distances, as in the paper
    scene.set_friction(mat, table, friction)
    scene.set_friction(mat, mat, friction)
    scene.set_friction(mat, hand, grip_friction)

    reach_out = fs.Profile([0.0, approach, retreat, away_at], [away, 0.0, 0.0, away])
    carry = fs.Profile([lift, laid], [0.0, 1.0])

    def motion(t: float) -> tuple[np.ndarray, np.ndarray]:
        s = carry(t)
        turn = math.pi * s
        along = np.array([math.cos(turn), 0.0, math.sin(turn)])  # from the grip to the hand
        held = grip + np.array([0.5 * way * (1.0 - along[0]), 0.0, (lowest - grip[2]) * s + arc_height * along[2]])
        return held + (REACH + reach_out(t)) * along - start, np.array([0.0, -turn, 0.0])

    scene.drive(hand, motion)
    closing = [approach, close, release, retreat]
    scene.drive(hand, fingers=["lower"], position=fs.Profile(closing, [0.0, OPENING, OPENING, 0.0]), stiffness=1e5)
    scene.drive(hand, fingers=["upper"], force=fs.Profile(closing, [-1.0, grip_force, grip_force, -1.0]))
    scene.sensor("table", "table")
    scene.sensor("mat", mat)
    scene.sensor("upper_finger", "hand.upper")
    scene.sensor("lower_finger", "hand.lower")
    scene.sensor("hand_base", hand, kind="mount")
    middle, half = np.array([0.0, 0.0, 0.5 * thickness]), np.array([0.5 * length, 0.0, 0.0])
    scene.sensor("edge", mat, kind="marker", at=middle + half)
    scene.sensor("other_edge", mat, kind="marker", at=middle - half)
    return scene
