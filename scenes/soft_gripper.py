"""A silicone gripper on a linear actuator grasps a rigid PLA object, lifts it and holds it (papers/001, section V-C6).

A good result: every step converges, the object follows the jaws, the penetration stays below a micrometre, and during the hold
the wrenches on the two jaws balance the weight of object and fingers. With mounted=true the object stands on a force/torque
sensor, as in the paper's experiment, and the fingers only close on it. Chambers and tendons can also bend the fingers.
"""

from __future__ import annotations

import numpy as np

import femsim as fs

#: Thickness of a finger at its root, its width, and its thickness at the tip, m.
ROOT, WIDTH, TIP = 0.015, 0.025, 0.010
#: Inward bend of a finger at its tip, and length at the root that its jaw holds, m.
HOOK, GRIPPED = 0.005, 0.004
#: Depth of the tendon below the inner side, m.
TENDON = 0.002
#: Clearance between each finger and the object, and between tips and floor, m.
OPENING, CLEARANCE = 0.005, 0.002


def finger_mesh(length: float, cells: tuple[int, int, int]) -> fs.TetMesh:
    """Make a finger of structured tetrahedra: tapered, bent inwards at the tip, with a flat closed chamber behind its inner wall.

    Parameters
    ----------
    length : float, m
        From tip to root, along z.
    cells : tuple, 1
        Cells across the thickness (x, the inner side at the largest x), the width (y) and the length (z). The chamber is one
        cell thick, the second from the outer side, with walls of two cells at the sides and the ends.
    """
    _, wide, long = cells
    block = fs.box_tets((1.0, 1.0, 1.0), cells, alternating=False)
    cell = np.floor((block.points[block.tets].mean(axis=1) + 0.5) * cells).astype(int)
    hollow = (cell[:, 0] == 1) & (cell[:, 1] >= 2) & (cell[:, 1] < wide - 2) & (cell[:, 2] >= 2) & (cell[:, 2] < long - 2)
    tets = block.tets[~hollow]
    used, numbers = np.unique(tets, return_inverse=True)
    x, y, z = block.points[used].T
    tip = 0.5 - z  # 0 at the root, 1 at the tip
    thickness = ROOT + (TIP - ROOT) * tip
    points = np.column_stack([(x - 0.5) * thickness + HOOK * tip**2, WIDTH * y, length * (z - 0.5)])
    return fs.make_tetmesh(points, numbers.reshape(tets.shape), name="finger", source=f"finger_mesh({length}, {cells})")


def gripped(object: str, scale: float) -> tuple[fs.Box | fs.Cylinder | fs.Mesh, float, float]:
    """Shape of an object by its name or file, its lowest place in z and its half width in x, m."""
    if object == "box":
        return fs.Box((0.015, 0.015, 0.015)), -0.015, 0.015
    if object == "cylinder":
        return fs.Cylinder(0.015, 0.015), -0.015, 0.015
    surface = fs.load_surface(fs.mesh_file(object), scale=scale)
    return fs.mesh_shape(fs.mesh_file(object), scale=scale), surface.bounds[0, 2], np.abs(surface.bounds[:, 0]).max()


def build(
    young_modulus: float = 8.3e4,
    poisson_ratio: float = 0.42,
    friction: float = 2.1,
    squeeze: float = 0.010,
    lift_height: float = 0.04,
    object: str = "box",
    mounted: bool = False,
    pressure: float = 0.0,
    tendon_force: float = 0.0,
    finger: str = "made",
    mesh_unit: str = "m",
    edge_length: float = 0.0025,
    length: float = 0.05,
    cells: tuple[int, int, int] = (5, 10, 34),
    damping_time: float = 0.01,
    dt: float = 0.01,
    duration: float = 2.5,
    law: str = "corotational",
) -> fs.Scene:
    """Close two silicone fingers on an object, lift it and hold it.

    Parameters
    ----------
    young_modulus : float, Pa
        Young's modulus of the fingers; the paper uses 83 kPa and, in random trials, 50 to 100 kPa.
    poisson_ratio : float, 1
        Poisson's ratio of the fingers; the paper uses 0.42 and, in random trials, 0.4 to 0.49.
    friction : float, 1
        Coulomb coefficient between fingers and object; the paper uses 2.1 and, in random trials, 0.5 to 2.1.
    squeeze : float, m
        Travel of each jaw after its finger is in contact.
    lift_height : float, m
        Height to which the jaws lift the object.
    object : str, shape
        "box" (30 mm), "cylinder" (radius 15 mm, upright), or a file with a closed surface, z up.
    mounted : bool, choice
        Whether the object stands on a force/torque sensor, without floor and lift.
    pressure : float, Pa
        Chamber pressure after the jaws have closed; it bends the fingers inwards. A finger from a file must have a chamber.
    tendon_force : float, N
        Force in a tendon below the inner side of each made finger, after the jaws have closed; it bends them inwards.
    finger : str, file
        "made", or a file with tetrahedra (.msh, .vtu, ...) or a closed surface (.stl, .obj, .ply), which is then meshed;
        z points to the jaw, x inwards.
    mesh_unit : str, choice
        Length unit of the files: "m", "cm" or "mm".
    edge_length : float, m
        Edge length of the tetrahedra that fill a surface.
    length : float, m
        Length of a made finger.
    cells : tuple, 1
        Cells of a made finger across thickness, width and length, at least 4, 5 and 5.
    damping_time : float, s
        Rayleigh damping of the fingers proportional to the stiffness (beta).
    dt : float, s
        Time step.
    duration : float, s
        Simulated time.
    law : str, choice
        Elastic law of the fingers, see docs/materials.md.
    """
    if tendon_force != 0.0 and finger != "made":
        raise fs.InputError(
            f"tendon_force is {tendon_force} N, but finger is {finger!r}; the tendon is routed for made fingers only."
        )
    if min(cells[0] - 3, *(c - 4 for c in cells[1:])) < 1:
        raise fs.InputError(f"cells is {cells}; a finger with a chamber needs at least 4, 5 and 5.")
    scale = fs.length_scale(mesh_unit)
    scene = fs.Scene("soft_gripper", dt=dt, duration=duration, theta=1.0)
    pla = fs.material("pla").elastic()
    shape, low, half = gripped(object, scale)
    if not mounted:
        scene.add_floor()
    target = scene.add_rigid("object", shape, density=pla.density, position=(0.0, 0.0, -low), surface=pla.name)
    scene.contact_by_faces(target, on=False)  # nodes against distances, as in the paper, whatever the meshes
    mesh = (
        finger_mesh(length, cells)
        if finger == "made"
        else fs.load_volume(fs.mesh_file(finger), edge_length=edge_length, scale=scale)
    )
    silicone = fs.material("ecoflex_00_50").elastic().replace(
        young_modulus=young_modulus, poisson_ratio=poisson_ratio, rayleigh_beta=damping_time
    )  # fmt: skip
    bottom, top = mesh.bounds[:, 2]
    height = CLEARANCE + top - bottom
    meet = half + mesh.bounds[1, 0] - mesh.points[mesh.points[:, 2] > top - GRIPPED, 0].max()
    if squeeze > meet:
        raise fs.InputError(f"squeeze is {squeeze} m, but the jaws meet at {meet:.6g} m; choose a smaller squeeze.")
    for name, side in (("left", -1.0), ("right", 1.0)):
        start = side * (half + OPENING)
        body = scene.add_soft(
            name, mesh, silicone, law=law,
            position=(start + side * mesh.bounds[1, 0], 0.0, CLEARANCE - bottom),
            rotation=(0.0, 0.0, 0.0) if side < 0 else (0.0, 0.0, np.pi),
        )  # fmt: skip
        closed = (-side * (OPENING + squeeze), 0.0, 0.0)
        lifted = (closed[0], 0.0, 0.0 if mounted else lift_height)
        motion = fs.Motion([0.1, 0.7, 0.9, 1.6], [(0.0, 0.0, 0.0), closed, closed, lifted])
        jaw = scene.hold(body, lambda x: x[:, 2] > height - GRIPPED, motion, name=f"{name}_jaw")
        if pressure != 0.0:
            air = scene.pressurize(body, fs.Profile([0.3, 0.7], [0.0, pressure]))
            scene.sensor(f"{name}_chamber", air, kind="chamber")
        if tendon_force != 0.0:
            tip = np.linspace(0.02, 0.98, 9)
            inside = (start + side * (-HOOK * tip**2 + HOOK + TENDON), 0.0 * tip, height - length * tip)
            tendon = scene.add_tendon(body, np.column_stack(inside), fs.Profile([0.3, 0.7], [0.0, tendon_force]))
            scene.sensor(f"{name}_tendon", tendon, kind="tendon")
        scene.set_friction(body, target, friction)
        scene.sensor(f"{name}_finger", body)
        scene.sensor(f"{name}_jaw", jaw, kind="mount")
        for spot, level in (("tip", bottom), ("middle", 0.5 * (bottom + top))):
            outside = (mesh.bounds[0, 0], mesh.bounds[:, 1].mean(), level)
            node = int(np.argmin(((mesh.points - outside) ** 2).sum(axis=1)))
            scene.sensor(f"{name}_{spot}", body, kind="marker", node=node)
    scene.sensor("object", target)
    scene.sensor("object_centre", target, kind="marker")
    if mounted:
        scene.drive(target, fs.Motion([0.0], [(0.0, 0.0, 0.0)]))
        scene.sensor("force_torque", target, kind="mount")
    return scene
