"""A gripper grasps a soft ball, lifts it and holds it (papers/001, section V-C4).

A good result: every step converges, the ball follows the gripper without visible slip, the penetration stays below a micrometre
once the grip is closed, and the two fingers together carry the weight of 1.1 N while they hold the ball.
"""

from __future__ import annotations

import femsim as fs


def build(
    young_modulus: float = 1e6,
    poisson_ratio: float = 0.35,
    density: float = 1000.0,
    friction: float = 0.5,
    grip_force: float = 20.0,
    lift_height: float = 0.06,
    damping_time: float = 1e-3,
    mesh: str = "ball_r30.vtu",
    pad: str = "box",
    dt: float = 0.01,
    theta: float = 1.0,
) -> fs.Scene:
    """Grip, lift and hold a soft ball of 30 mm radius.

    Parameters
    ----------
    young_modulus : float, Pa
        Young's modulus of the ball; the paper uses 0.5 to 2 MPa.
    poisson_ratio : float, 1
        Poisson's ratio of the ball; the paper uses 0.3 to 0.4.
    density : float, kg/m^3
        Density of the ball.
    friction : float, 1
        Coulomb coefficient between ball and fingers, and ball and floor; the paper uses 0.4 to 0.6.
    grip_force : float, N
        Closing force of each finger.
    lift_height : float, m
        Height to which the gripper lifts the ball.
    damping_time : float, s
        Rayleigh damping proportional to the stiffness (beta).
    mesh : str, file
        Mesh of the ball: a shipped file or a path.
    pad : str, shape
        Finger pads: "box", or an STL file (shipped or a path).
    dt : float, s
        Time step.
    theta : float, 1
        Integration parameter, 0.5 (mid-point) to 1 (backward Euler).
    """
    radius, half_pad, opening = 0.03, 0.003, 0.004
    scene = fs.Scene("soft_ball_gripping", dt=dt, duration=2.0, theta=theta)
    scene.add_floor()
    rubber = fs.Elastic(young_modulus, poisson_ratio, density, rayleigh_beta=damping_time, name="ball")
    sphere = fs.load_tetmesh(fs.mesh_file(mesh))
    ball = scene.add_soft("ball", sphere, rubber, position=(0.0, 0.0, -sphere.points[:, 2].min()))
    shape = fs.Box((half_pad, 0.02, 0.02)) if pad == "box" else fs.mesh_shape(fs.mesh_file(pad))
    reach = radius + opening + half_pad
    gripper = scene.add_gripper(
        "gripper",
        [
            fs.Finger("left", shape, offset=(-reach, 0.0, -0.06), closing=(1.0, 0.0, 0.0)),
            fs.Finger("right", shape, offset=(reach, 0.0, -0.06), closing=(-1.0, 0.0, 0.0)),
        ],
        position=(0.0, 0.0, radius + 0.06),
        mass=0.5,
        joint_limits=(-0.01, 0.03),
    )
    scene.set_friction(ball, gripper, friction)
    scene.set_friction(ball, "floor", friction)
    # 0.1 s rest, close in 0.4 s, hold 0.2 s, lift in 0.8 s, hold 0.5 s
    scene.drive(gripper, force=fs.Profile([0.1, 0.2, 0.5], [0.0, 0.5, grip_force], name="grip_force"), fingers=True)
    scene.drive(gripper, fs.Motion([0.7, 1.5], [(0.0, 0.0, 0.0), (0.0, 0.0, lift_height)]))
    scene.sensor("left_finger", "gripper.left")
    scene.sensor("right_finger", "gripper.right")
    scene.sensor("floor", "floor")
    scene.sensor("gripper_base", gripper, kind="mount")
    return scene
