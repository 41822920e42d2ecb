"""Contact of soft bodies and rods with the corners, edges and faces of rigid parts: rows, weight, momentum, edges, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import femsim as fs
import meshes
from contact import DeformableDetector, Surface, make_solver
from contact.side_kernels import EDGE_EDGE, VERTEX_FACE
from femsim.model import faces as rigid_faces
from femsim.model.parts import Part
from femsim.step.advance import take_step
from femsim.step.contact_family import Found, Rates
from femsim.step.contacts import ContactRows
from femsim.step.deforming_contacts import DeformingFamily
from femsim.step.report import StepReport
from femsim.step.state import State
from femsim.step.stepper import Stepper

G = 9.81
RUBBER = fs.Elastic(2e5, 0.3, 1000.0, rayleigh_beta=1e-3, name="rubber")
CABLE = fs.Elastic(1e6, 0.4, 1200.0, rayleigh_beta=1e-3, name="cable")


def held_scene() -> fs.Scene:
    """A soft block between the fingers of a gripper, on a box, below a lever on a hinge, beside an obstacle and a rod; askew."""
    scene = fs.Scene("held", dt=0.005, duration=0.1)
    scene.add_soft("block", fs.box_tets((0.04, 0.04, 0.04), 2), RUBBER)
    fingers = [fs.Finger(f"f{s}", fs.Box((0.005, 0.008, 0.007)), (s * 0.03, 0.0, -0.05), (-s, 0.1, 0.0)) for s in (-1, 1)]
    scene.add_gripper("gripper", fingers, position=(0, 0.003, 0.05), rotation=(0.05, 0.04, 0.2))
    scene.add_rigid(
        "box", fs.Box((0.01, 0.012, 0.005)), density=900.0, position=(0.004, 0.006, -0.026), rotation=(0.1, 0.05, 0.7)
    )
    links = [
        fs.RobotLink("foot", 0.3, inertia=1e-4 * np.eye(3)),
        fs.RobotLink(
            "lever", 0.05, (0.03, 0.0, 0.0), 1e-5 * np.eye(3), shapes=[fs.Piece(fs.Box((0.03, 0.004, 0.005)), (0.03, 0.0, 0.0))]
        ),
    ]
    hinge = fs.RobotJoint("hinge", "foot", "lever", "revolute", (0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0), limits=(-2.0, 2.0))
    scene.add_robot(fs.Robot("arm", links, [hinge]), position=(-0.03, 0.004, 0.029), rotation=(0.1, 0.05, 0.1))
    octahedron = np.vstack([np.eye(3), -np.eye(3)]) * 0.012
    triangles = [[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]]
    scene.add_obstacle("stone", fs.Mesh(octahedron, triangles), position=(-0.004, 0.034, 0.003), rotation=(0.3, 0.2, 0.1))
    x = np.linspace(-0.03, 0.03, 9)
    points = np.column_stack([x, 0 * x - 0.0235, 0.1 * x + 0.004])
    scene.add_rod("rod", points, fs.circular_section(0.003), CABLE, contact="surface")
    scene.contact_by_faces("gripper", "box", "arm", "stone")
    return scene


def family_of(stepper: Stepper) -> DeformingFamily:
    family = stepper.contacts.families[1]
    assert isinstance(family, DeformingFamily)
    return family


def all_rows(stepper: Stepper, margin: float = 0.012) -> tuple[ContactRows, Found]:
    """Rows of all contacts closer than a margin, m, and those of surfaces and strands as they were found."""
    found = stepper.contacts.detect(stepper.state, stepper.placed, [margin] * len(stepper.contacts.families))
    return stepper.contacts.rows(found, np.zeros(stepper.system.n), stepper.scene.dt), found[1]


def carried(stepper: Stepper, part: int, position: np.ndarray, there: State) -> np.ndarray:
    """Where a point of a rigid part or obstacle, (3,) m, is in another state."""
    own = stepper.scene.parts[part]
    if own.body < 0:
        return position
    body, q = stepper.system.bodies[own.body], stepper.system.q_slices[own.body]
    (R, c), (R_there, c_there) = (body.link_pose(state.q[q], own.link) for state in (stepper.state, there))
    return np.asarray(c_there + R_there @ R.T @ (position - c))


def test_rows_are_the_velocities_where_contacts_act() -> None:
    """J v of contacts with links of a gripper, a rigid body and an obstacle, against differences of places by each side."""
    stepper = Stepper(held_scene(), make_solver("exact"))
    rows, found = all_rows(stepper)
    c, system = found.contacts, stepper.system
    own = rows.families[1]
    J = sp.csr_matrix((own.data, own.indices, own.indptr), shape=(3 * len(own), system.n))
    family, names = family_of(stepper), stepper.scene.part_names
    sides_of = family.sides(own, np.zeros((len(own), 3)))
    parts = sides_of.part
    touched = {frozenset((names[a], names[b])) for a, b in parts}
    for name in ("gripper.f-1", "gripper.f1", "box", "arm.lever", "stone"):
        assert frozenset((name, "block")) in touched
    assert {frozenset(("rod", "block")), frozenset(("rod", "stone"))} & touched
    assert {VERTEX_FACE, EDGE_EDGE} <= set(c.kind[own.keep])
    rng, h = np.random.default_rng(0), 1e-6
    v = np.where(system.prescribed, 0.0, rng.standard_normal(system.n))  # the foot of the arm stands
    ends = [system.moved(stepper.state, v, s * h) for s in (1.0, -1.0)]
    u = (J @ v).reshape(-1, 3)
    rigid = [part.body < 0 or system.bodies[part.body].rigid for part in stepper.scene.parts]
    checked = 0
    for k, m in enumerate(own.keep):
        sides = []
        for side in range(2):
            part = int(parts[k, side])
            if rigid[part]:
                moved = [carried(stepper, part, c.position[m, side], end) for end in ends]
                sides.append((moved[0] - moved[1]) / (2 * h))
                continue
            owner = stepper.scene.parts[part]
            if owner.name != "block":
                break
            q, nodes = system.q_slices[owner.body], sides_of.point[k, side]
            first, second = (system.bodies[owner.body].contact_points(end.q[q], owner.nodes) for end in ends)
            weights = zip(nodes, sides_of.weight[k, side], strict=True)
            sides.append(sum(w * (first[n] - second[n]) / (2 * h) for n, w in weights if n >= 0))
        if len(sides) == 2:
            np.testing.assert_allclose(u[k], c.frame[m] @ (sides[0] - sides[1]), atol=2e-8)
            checked += 1
    assert checked > 10


def test_forces_are_those_of_the_problem_and_add_up() -> None:
    """The generalized force is J^T lam also on joints of a gripper; wrenches of all parts add up to nothing."""
    stepper = Stepper(held_scene(), make_solver("exact"))
    rows, _ = all_rows(stepper)
    lam = np.random.default_rng(1).standard_normal((len(rows.phi), 3))
    forces, _ = stepper.contacts.accept(rows, lam, np.zeros_like(lam))
    free = ~stepper.system.prescribed
    np.testing.assert_allclose(forces.generalized[free], (rows.J.T @ lam.ravel())[free], atol=1e-11)
    np.testing.assert_allclose(forces.wrench[:, :3].sum(axis=0), 0.0, atol=1e-11)


def test_forces_that_follow_act_at_one_point() -> None:
    """Within a step contacts act at one place on both sides, also where they are still open: no force turns all bodies."""
    scene = fs.Scene("near", dt=0.005, duration=0.1, gravity=(0, 0, 0))
    scene.add_soft("block", fs.box_tets((0.04, 0.04, 0.04), 2), RUBBER)
    scene.add_rigid("box", fs.Box((0.01, 0.012, 0.005)), density=900.0, position=(0.004, 0.006, 0.028), rotation=(0.1, 0.05, 0.7))
    scene.contact_by_faces("box")
    stepper = Stepper(scene, make_solver("exact"))
    rows, _ = all_rows(stepper)
    system = stepper.system
    there = system.moved(stepper.state, 0.05 * np.random.default_rng(2).standard_normal(system.n), 0.005)
    moved = stepper.contacts.moved(rows, there, np.zeros(system.n), 0.005, middle=True)
    assert len(moved.phi) >= 4 and moved.families[1].found.contacts.gap.min() > 1e-4
    lam = np.random.default_rng(3).standard_normal(len(moved.phi) * 3)
    force = moved.J.T @ lam
    on_block, on_box = (force[system.v_slices[k]] for k in (0, 1))
    x, centre = there.q[system.q_slices[0]].reshape(-1, 3), moved.placed.origin[1]
    torque = np.cross(x, on_block.reshape(-1, 3)).sum(axis=0) + np.cross(centre, on_box[:3]) + on_box[3:]
    np.testing.assert_allclose(torque, 0.0, atol=1e-13)


def test_contacts_with_faces_are_not_contacts_at_nodes_too() -> None:
    """No pair of parts is in both families, and rigid parts keep their contact with each other."""
    stepper = Stepper(held_scene(), make_solver("exact"))
    points, surfaces = (
        {frozenset(pair) for pair in family.gaps(stepper.state, stepper.placed, 0.02)[0].tolist()}
        for family in stepper.contacts.families[:2]  # the third is that of the limits of joints
    )
    assert points and surfaces and not points & surfaces
    contacts = []
    for faces in (False, True):
        scene = fs.Scene("rigid", dt=0.005, duration=0.05)
        scene.add_rigid("a", fs.Box((0.01, 0.01, 0.01)), density=900.0)
        scene.add_obstacle("b", fs.Box((0.01, 0.01, 0.01)), position=(0, 0, -0.0201))
        scene.contact_by_faces("a", "b", on=faces)
        contacts.append(fs.simulate(scene).steps["contacts"].tolist())
    assert contacts[0] == contacts[1] and contacts[0][-1] > 0


def test_speeds_are_those_of_the_corners() -> None:
    """A box that turns on the spot comes near with its corners; a driven one as fast as it will be driven."""
    scene = fs.Scene("turning", dt=0.005, duration=0.1, gravity=(0, 0, 0))
    scene.add_soft("block", fs.box_tets((0.04, 0.04, 0.04), 1), RUBBER)
    scene.add_rigid("box", fs.Box((0.03, 0.002, 0.002)), density=900.0, position=(0, 0, 0.03), angular_velocity=(0, 0, 10.0))
    scene.add_rigid("hand", fs.Box((0.01, 0.01, 0.01)), density=900.0, position=(0, 0, -0.05))
    scene.drive("hand", lambda t: (np.array([0.0, 0.0, 0.2 * t]), np.zeros(3)))
    scene.contact_by_faces("box", "hand")
    stepper = Stepper(scene, make_solver("exact"))
    stepper.step()
    system, state = stepper.system, stepper.state
    v_prescribed = np.zeros(system.n)
    v_prescribed[system.v_slices[2].start + 2] = 0.5  # of the step to come; the last one went at 0.2 m/s
    assert system.prescribed[system.v_slices[2]].all() and not system.prescribed[system.v_slices[1]].any()
    speeds = family_of(stepper).speeds(stepper.placed, Rates(state.v_hat, v_prescribed))
    corner = 10.0 * np.linalg.norm([0.03, 0.002])
    assert 0.999 * corner <= speeds[0, 1] <= 1.01 * corner
    np.testing.assert_allclose(speeds[0, 2], 0.5, atol=1e-3)


def small_box(faces: bool) -> fs.Scene:
    """A box of 12 x 10 x 8 mm lands on a soft cube between whose nodes, 20 mm apart, it has room."""
    scene = fs.Scene("small", dt=0.005, duration=0.5)
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 2), RUBBER, position=(0, 0, 0.02))
    scene.add_rigid("box", fs.Box((0.006, 0.005, 0.004)), density=2000.0, position=(0.008, 0.009, 0.0445), rotation=(0, 0, 0.3))
    scene.sensor("box", "box")
    scene.sensor("area", "box", kind="area")
    if not faces:
        scene.contact_by_faces("box", on=False)
    return scene


def test_a_box_lies_between_the_nodes_of_a_soft_cube() -> None:
    """It bears its weight by its corners; without faces it falls to the floor, and the verdict says what would help."""
    through, run = fs.simulate(small_box(False)), fs.simulate(small_box(True))
    assert through.verdict == "wrong" and "contact_by_faces" in " ".join(through.reasons)
    assert run.status == "converged" and run.verdict == "good"
    weight = 2000.0 * 0.012 * 0.01 * 0.008 * G
    np.testing.assert_allclose(run.sensors["box"].force[-1], [0, 0, weight], atol=1e-6 * weight)
    assert run.steps["max_penetration_m"].max() < 1e-7
    assert run.steps["wrench_balance"].max() < 1e-7
    assert run.stepper.state.q[-5] > 0.0435 and np.abs(run.stepper.state.v).max() < 1e-5


@pytest.mark.parametrize("options", [{"theta": 1.0}, {}])
def test_a_box_thrown_at_a_soft_cube_keeps_their_momentum(options: dict[str, float]) -> None:
    scene = fs.Scene("collision", dt=0.002, duration=0.1, gravity=(0, 0, 0), default_friction=0.4, **options)
    scene.add_soft("a", fs.box_tets((0.05, 0.05, 0.05), 3), RUBBER, velocity=(1.0, 0.2, 0.0))
    box = fs.Box((0.025, 0.02, 0.015))
    scene.add_rigid("b", box, density=1000.0, position=(0.071, 0.011, 0.007), rotation=(0.2, 0.1, 0.5), velocity=(-1.0, 0.0, 0.3))
    scene.contact_by_faces("b")
    run = fs.simulate(scene, solver="exact", tolerance=1e-12)
    assert run.status == "converged" and run.steps["contacts"].max() > 5
    p = np.column_stack([run.steps[f"momentum_{c}_kgmps"] for c in "xyz"])
    assert np.abs(p - p[0]).max() < 1e-12
    energy = np.asarray(run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"] - run.steps["work_J"])
    assert np.diff(energy).max() < 1e-9
    assert run.steps["max_penetration_m"].max() < 5e-5


def test_rigid_and_soft_boxes_stand_on_each_other() -> None:
    """Six of one size, by turns: their edges are where those of the next are."""
    scene = fs.Scene("stack", dt=0.01, duration=1.0)
    scene.add_floor()
    rubber = fs.Elastic(1e6, 0.3, 1000.0, name="rubber")
    for k in range(6):
        place = (0.0, 0.0, 0.02 * (k + 0.5))
        if k % 2:
            scene.add_rigid(f"box{k}", fs.Box((0.01, 0.01, 0.01)), density=1000.0, position=place)
        else:
            scene.add_soft(f"cube{k}", fs.box_tets((0.02, 0.02, 0.02), 1), rubber, position=place)
    scene.sensor("floor", "floor")
    run = fs.simulate(scene)
    assert run.verdict == "good" and run.status == "converged"
    weight = sum(body.mass for body in scene.bodies) * G
    np.testing.assert_allclose(run.sensors["floor"].force[-1, 2], -weight, rtol=1e-2)
    top = run.stepper.state.q[run.stepper.system.q_slices[5]][:3]
    assert np.hypot(top[0], top[1]) < 1e-4 and 0.1085 < top[2] < 0.11


def test_a_rod_has_no_contact_with_the_face_that_holds_it() -> None:
    """The links beside a held end are left out, others are not: the rod hangs down and lies against the side of its holder."""
    scene = fs.Scene("holder", dt=0.005, duration=0.3)
    scene.add_obstacle("post", fs.Box((0.01, 0.01, 0.04)), position=(-0.01, 0.0, -0.0395))
    line, soft = np.zeros((13, 3)), fs.Elastic(1e5, 0.4, 1200.0, rayleigh_beta=1e-3, name="soft")
    line[:, 0] = np.linspace(0.0, 0.06, 13)
    held = fs.RodEnd("clamped", on="post")
    scene.add_rod("rod", line, fs.circular_section(0.002), soft, start=held, translational_damping=1.0)
    scene.contact_by_faces("post")
    run = fs.simulate(scene)
    assert run.status == "converged" and run.verdict == "good"
    assert run.stepper.system.bodies[0].centres(run.stepper.state.q)[-1, 2] < -0.02


@pytest.mark.parametrize("faces", [False, True])
def test_a_cable_lies_on_the_edge_of_a_table(faces: bool) -> None:
    """Its centre line stays a radius away from the edge, between the centres of its links too; without faces it cuts it."""
    radius, links = 0.002, 11
    scene = fs.Scene("edge", dt=0.005, duration=0.4, default_friction=0.8)
    scene.add_obstacle("table", fs.Box((0.1, 0.05, 0.02)), position=(-0.1, 0.0, -0.02))
    x = np.linspace(-0.08, 0.072, links + 1)
    points = np.column_stack([x, 0 * x, 0 * x + radius])
    scene.add_rod("cable", points, fs.circular_section(radius), CABLE, translational_damping=1.0, start=fs.RodEnd("clamped"))
    if faces:
        scene.contact_by_faces("table")
    run = fs.simulate(scene)
    assert run.status == "converged"
    rod, q = run.stepper.system.bodies[0], run.stepper.state.q
    line = rod.centres(q)
    t = np.linspace(0.0, 1.0, 201)[:, None, None]
    along = (line[:-1] + t * np.diff(line, axis=0)).reshape(-1, 3)
    edge = np.hypot(along[:, 0], along[:, 2])  # of the table, at x = z = 0
    assert along[:, 2].min() < -0.01  # it hangs over it
    assert edge.min() > radius - 1e-6 if faces else edge.min() < 0.8 * radius


def test_a_needle_is_no_longer_too_thin() -> None:
    """By its corners a needle presses a soft cube in; without faces the scene is refused."""

    def needle(faces: bool) -> fs.Scene:
        scene = fs.Scene("needle", dt=0.005, duration=0.3)
        scene.add_floor()
        scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 2), RUBBER, position=(0, 0, 0.02))
        needle = scene.add_rigid("needle", fs.Box((0.001, 0.001, 0.02)), mass=0.01, position=(0.006, 0.004, 0.061))
        scene.drive(needle, lambda t: (np.array([0.0, 0.0, -0.01 * t]), np.zeros(3)))
        scene.sensor("needle", needle)
        scene.contact_by_faces(needle, on=faces)
        return scene

    with pytest.raises(fs.InputError, match="contact_by_faces"):
        fs.simulate(needle(False))
    run = fs.simulate(needle(True))
    assert run.verdict == "good" and run.sensors["needle"].force[-1, 2] > 0.05


def test_what_cannot_have_faces_is_said() -> None:
    scene = fs.Scene("wrong", dt=0.005, duration=0.1)
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 1), RUBBER)
    scene.add_rigid("ball", fs.Sphere(0.01), density=900.0, position=(0, 0, 0.05))
    scene.add_rigid("disc", fs.Revolved([(0.0, 0.0), (0.01, 0.0)], 0.005), density=900.0, position=(0, 0, 0.11))
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), density=900.0, position=(0, 0, 0.08))
    finger = fs.Finger("left", fs.Box((0.01, 0.01, 0.01)), (0.05, 0, 0), (-1, 0, 0))
    scene.add_gripper("hand", [finger], position=(0, 0, 0.2))
    for names, words in (
        ((), "names nothing"), (("cube",), "deforms"), (("disc",), "has a Revolved; name parts"), (("floor",), "Plane"),
        (("bax",), "did you mean 'box'"), (("box", "disc"), "Sphere, Capsule, Cylinder and Cone"), ((["box"],), "one by one"),
    ):  # fmt: skip
        with pytest.raises(fs.InputError, match=words):
            scene.contact_by_faces(*names)
    scene.contact_by_faces("hand", "box")
    assert {part.name for part in scene.parts if part.by_faces} == {"box", "hand.left"}
    scene.contact_by_faces("hand", on=False)
    assert {part.name: part.by_faces for part in scene.parts} == {
        "floor": None, "cube": None, "ball": None, "disc": None, "box": True, "hand.left": False, "hand": None
    }  # fmt: skip
    scene.set_friction("cube", "box", (0.3, 0.6), direction=(1.0, 0.0, 0.0))
    with pytest.raises(fs.InputError, match="differs by direction"):
        Stepper(scene, make_solver("exact"))


def test_what_is_beside_a_rigid_box_is_not_deep_inside() -> None:
    """A box overhangs the border of a soft cube, 0.4 mm deep; nodes beside it are up to 20 mm away from its upright edges."""
    cube = fs.box_tets((0.06, 0.06, 0.06), 8).surface()
    box = fs.box_tets((0.045, 0.045, 0.045), 1).surface()
    soft = Surface(len(cube.points), cube.triangles, np.full(len(cube.triangles), 0.004))
    hard = Surface(len(box.points), box.triangles, np.full(len(box.triangles), 0.0225), rigid=True)
    turn, place = Rotation.from_rotvec([0.0, 0.0, 0.3]).as_matrix(), np.array([0.003, 0.0034, 0.03 + 0.0225 - 4e-4])
    points = np.concatenate([cube.points, box.points @ turn.T + place])
    detector = DeformableDetector([soft, hard], np.array([[False, True], [True, False]]), points)
    found = detector.detect(points, 1e-4)
    assert len(found) > 20 and found.gap.min() == pytest.approx(-4e-4, abs=1e-9)
    assert np.abs(found.frame[found.gap < 0.0, 0, 2]).min() > 0.99


def test_what_is_beside_a_large_box_is_not_inside_far_from_its_rim() -> None:
    """A corner 0.5 mm beside a side of a table looks at another one, 36 mm off: it was 38 mm inside of that, and pushed so."""
    box = fs.box_tets((0.1, 0.1, 0.1), 1).surface()
    hard = Surface(len(box.points), box.triangles, np.full(len(box.triangles), 0.05), rigid=True)
    corner = np.array([-0.0142, 0.0505, 0.0499])
    tip = corner + np.array([(0, 0, 0), (-0.01, -0.0004, -0.004), (-0.01, -0.0004, 0.004), (-0.01, 0.001, 0)])
    triangles = ConvexHull(tip).simplices
    inwards = np.einsum(
        "ti,ti->t", np.cross(*(tip[triangles[:, k]] - tip[triangles[:, 0]] for k in (1, 2))), tip.mean(0) - tip[triangles[:, 0]]
    )
    triangles[inwards > 0] = triangles[inwards > 0][:, ::-1]
    soft = Surface(4, triangles.astype(np.int64), np.full(4, 0.002))
    points = np.concatenate([tip, box.points])
    found = DeformableDetector([soft, hard], np.array([[False, True], [True, False]]), points).detect(points, 1e-3)
    assert len(found) == 0 or found.gap.min() > 0.0


def test_what_presses_on_a_flat_face_does_not_depend_on_its_triangles() -> None:
    """A soft block has contact with a table by its 9 nodes above it and where rims cross, however fine the mesh of the table."""
    found = []
    for n in ((1, 1, 1), (16, 16, 1)):
        scene = fs.Scene("table", dt=0.005, duration=0.1)
        table = fs.box_tets((0.1, 0.1, 0.02), n).surface()
        scene.add_obstacle("table", fs.Mesh(table.points, table.triangles), position=(0.0, 0.0, -0.01))
        scene.add_soft("block", fs.box_tets((0.04, 0.04, 0.04), 2), RUBBER, position=(0.003, 0.002, 0.02))
        _, own = all_rows(Stepper(scene, make_solver("exact")), 0.001)
        found.append(len(own.contacts))
    assert found == [9, 9]


def test_crossings_of_a_box_do_not_depend_on_the_diagonals_of_its_faces() -> None:
    """The same box turned about itself, which moves them: edges in reach came and went, one that tumbled slid 0.7 mm further."""
    cube = fs.box_tets((0.06, 0.06, 0.06), 4).surface()
    soft = Surface(len(cube.points), cube.triangles, np.full(len(cube.triangles), 0.006))
    rng, half, crossings = np.random.default_rng(4), np.array([0.008, 0.014, 0.019]), 0
    for _ in range(40):
        turn = Rotation.random(rng=rng).as_matrix()
        low = (abs(turn) @ half)[2]
        place, found = np.array([*rng.uniform(-0.02, 0.02, 2), 0.03 + low + rng.uniform(-5e-4, 2e-3)]), []
        for own in (np.eye(3), Rotation.from_rotvec([0, 0, np.pi / 2]).as_matrix(), np.diag([1.0, -1.0, -1.0])):
            part = Part("box", -1, 0, "metal", shapes=[(fs.Box(abs(own.T @ half)), np.eye(3), np.zeros(3))])
            (hard,) = rigid_faces.faces(part)
            points = np.concatenate([cube.points, hard.rest @ (turn @ own).T + place])
            detector = DeformableDetector([soft, hard.shape], np.array([[False, True], [True, False]]), points)
            contacts = detector.detect(points, 8e-3)
            found.append(np.sort(contacts.gap[contacts.kind == EDGE_EDGE]))
        assert all(len(one) == len(found[0]) and np.allclose(one, found[0], atol=1e-12) for one in found)
        crossings += len(found[0])
    assert crossings > 20


def test_the_edge_of_a_box_presses_a_flat_surface_between_its_nodes() -> None:
    """A box that sinks into a soft cube bends its top along its edges, which never cut the edges of its elements."""
    scene = fs.Scene("sinking", dt=0.005, duration=0.25)
    scene.add_floor()
    foam = fs.Elastic(3e4, 0.3, 1000.0, rayleigh_beta=5e-3, name="foam")
    scene.add_soft("cube", fs.box_tets((0.06, 0.06, 0.03), (6, 6, 3)), foam, position=(0, 0, 0.015))
    box = fs.Box((0.0165, 0.0165, 0.01))
    scene.add_rigid("box", box, mass=0.25, position=(0.001, 0.002, 0.0401), rotation=(0, 0, 0.4))
    run = fs.simulate(scene)
    assert run.status == "converged" and run.verdict == "good"
    assert run.stepper.state.q[-5] < 0.0392  # it sank by a twelfth of an element
    assert run.steps["max_penetration_m"].max() < 2e-6


def ball(radius: float, facets: int) -> fs.Mesh:
    """A ball whose meridians and parallels are polygons of so many sides."""
    around = 2 * np.pi * np.arange(facets) / facets
    heights = np.linspace(-np.pi / 2, np.pi / 2, facets // 2 + 1)[1:-1]
    ring = np.column_stack([np.cos(around), np.sin(around), 0 * around])
    points = np.vstack([[0, 0, -1], *[np.cos(h) * ring + (0, 0, np.sin(h)) for h in heights], [0, 0, 1]])
    last, triangles = len(points) - 1, []
    for k in range(facets):
        after = (k + 1) % facets
        triangles += [(0, 1 + after, 1 + k), (last, last - facets + k, last - facets + after)]
        for first in range(1, last - facets, facets):
            a, b, c, d = first + k, first + after, first + facets + k, first + facets + after
            triangles += [(a, b, c), (b, d, c)]
    return fs.Mesh(radius * points, np.array(triangles))


def with_part(shape: fs.Box | fs.Sphere | fs.Mesh, *, askew: bool = False, on: bool | None = None) -> set[str]:
    """Which of a soft cube with elements of 20 mm and a rod has contact with a shape by its faces.

    Half of an end link counts as one of the rod, which makes their mean length 20 mm.
    """
    scene = fs.Scene("size", dt=0.005, duration=0.1)
    scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 2), RUBBER)
    x = np.linspace(0.0, 0.08, 4)
    scene.add_rod("rod", np.column_stack([x, 0 * x, 0 * x + 0.1]), fs.circular_section(0.002), CABLE)
    scene.add_obstacle("part", shape, position=(0, 0, 0.5))
    if on is not None:
        scene.contact_by_faces("part", on=on)
    for other in ("cube", "rod") if askew else ():
        scene.set_friction(other, "part", (0.3, 0.6), direction=(1.0, 0.0, 0.0))
    found, names = Stepper(scene, make_solver("exact")).contacts.by_faces, scene.part_names
    assert np.array_equal(found, found.T) and not found.diagonal().any()
    return {names[k] for k in np.flatnonzero(found[names.index("part")])}


@pytest.mark.parametrize(
    ("half", "small"),
    [
        ((0.02, 0.02, 0.02), True),  # two elements wide
        ((0.05, 0.05, 0.009), True),  # thinner than an element
        ((0.039, 0.1, 0.011), True),  # a bar
        ((0.041, 0.1, 0.011), False),
        ((0.05, 0.05, 0.05), False),
    ],
)
def test_boxes_have_contact_by_faces_with_soft_bodies_and_small_ones_with_all(
    half: tuple[float, float, float], small: bool
) -> None:
    """The scene says otherwise, and friction that differs by direction keeps it at the nodes."""
    box, both = fs.Box(half), {"cube", "rod"}
    assert with_part(box) == (both if small else {"cube"})
    assert with_part(box, on=True) == both and not with_part(box, on=False) and not with_part(box, askew=True)


def test_meshes_have_it_with_soft_bodies_where_they_have_edges() -> None:
    """Beside that where they are small: sides that turn by 15 degrees are none, by 60 they are. To a rod both are coarse."""
    assert with_part(ball(0.05, 24)) == {"rod"} and not with_part(fs.Sphere(0.05))
    assert with_part(ball(0.05, 6)) == {"cube", "rod"} and with_part(ball(0.02, 24)) == {"cube", "rod"}


def test_what_has_passed_a_face_is_pushed_out_down_to_half_of_what_is_behind_it() -> None:
    """Of the extents of the whole mesh, the outer wall of a tube pushed what was in it: a rod took 20 minutes for a step."""
    block = fs.box_tets((0.04, 0.03, 0.02), 2).surface()
    behind = rigid_faces.thickness(fs.Mesh(block.points, block.triangles))
    np.testing.assert_allclose(np.unique(np.round(behind, 9)), [0.02, 0.03, 0.04])
    mesh = fs.box_tets((0.1, 0.1, 0.1), 10)
    middle = np.abs(mesh.points[mesh.tets].mean(axis=1)[:, :2]).max(axis=1)
    nodes, tets = np.unique(mesh.tets[middle > 0.04], return_inverse=True)
    tube = meshes.make_tetmesh(mesh.points[nodes], tets.reshape(-1, 4)).surface()  # walls of 10 mm
    pipe = fs.Mesh(tube.points, tube.triangles)
    part = Part("pipe", -1, 0, "metal", shapes=[(pipe, np.eye(3), np.zeros(3))])
    depth = rigid_faces.faces(part)[0].shape.depth  # type: ignore[union-attr]
    assert depth.min() == pytest.approx(0.005) and depth.max() == pytest.approx(0.05)  # ends are seen along the tube
    normals = np.cross(*(pipe.points[pipe.triangles[:, k]] - pipe.points[pipe.triangles[:, 0]] for k in (1, 2)))
    assert (depth[np.abs(normals[:, 2]) < 1e-12] < 0.0051).mean() > 0.85  # but for those that look along a wall


def test_a_driven_box_by_faces_slides_with_its_friction() -> None:
    """A vertex just ahead of its edge is held by what crosses there, so none springs up to 0.19 mm into the box."""
    scene = fs.Scene("pressed", dt=0.005, duration=0.2, gravity=(0, 0, 0))
    mesh = fs.box_tets((0.06, 0.06, 0.02), (6, 6, 2))
    scene.add_soft("block", mesh, RUBBER, position=(0, 0, -0.01), fixed=lambda x: x[:, 2] < -0.0199)
    box = scene.add_rigid("box", fs.Box((0.017, 0.017, 0.01)), mass=0.1, position=(0, 0, 0.01))
    scene.drive(box, fs.Motion([0.0, 0.05, 0.2], [(0, 0, 0), (0, 0, -4e-4), (0.012, 0, -4e-4)]))
    scene.set_friction("block", box, 0.4)
    scene.contact_by_faces(box)
    scene.sensor("box", box)
    simulation = fs.Simulation(scene)
    deepest, share = 0.0, []
    for _ in range(40):
        simulation.step(1)
        deepest = max(deepest, simulation.report.max_penetration)
        force = simulation.read("box").force
        share.append(-force[0] / force[2])
    assert simulation.verdict == "good"
    assert deepest < 1e-5
    assert np.mean(share[-12:]) == pytest.approx(0.4, rel=0.05)


def test_what_is_driven_and_links_meet_nodes_unless_the_scene_says_otherwise() -> None:
    """By faces, what a hand holds would creep outwards where it turns, and steps of a gripper take twice as long."""

    def pairs(*by_faces: str) -> set[str]:
        scene = fs.Scene("moved", dt=0.005, duration=0.1)
        scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 2), RUBBER)
        pad = fs.Box((0.002, 0.01, 0.01))
        scene.add_rigid("free", pad, mass=0.1, position=(0.1, 0, 0))
        scene.drive(scene.add_rigid("led", pad, mass=0.1, position=(0.2, 0, 0)), fs.Motion([0.0, 0.1], [(0, 0, 0), (0, 0, 0.1)]))
        scene.add_gripper("hand", [fs.Finger("left", pad, (0.3, 0, 0), (1, 0, 0))])
        if by_faces:
            scene.contact_by_faces(*by_faces)
        found, names = Stepper(scene, make_solver("exact")).contacts.by_faces, scene.part_names
        return {names[k] for k in np.flatnonzero(found[names.index("cube")])}

    assert pairs() == {"free"}
    assert pairs("led", "hand.left") == {"free", "led", "hand.left"}


def test_a_part_may_be_small_to_one_body_and_large_to_another() -> None:
    scene = fs.Scene("two", dt=0.005, duration=0.1)
    scene.add_soft("coarse", fs.box_tets((0.04, 0.04, 0.04), 1), RUBBER)
    scene.add_soft("fine", fs.box_tets((0.04, 0.04, 0.04), 8), RUBBER, position=(0.1, 0, 0))
    x = np.linspace(0.0, 0.06, 7)
    scene.add_rod("rod", np.column_stack([x, 0 * x, 0 * x + 0.1]), fs.circular_section(0.002), CABLE)
    scene.add_rigid("stone", ball(0.0125, 24), density=900.0, position=(0, 0, -0.1))
    stepper, names = Stepper(scene, make_solver("exact")), scene.part_names
    a, b = np.nonzero(np.triu(stepper.contacts.by_faces))
    assert {frozenset((names[i], names[j])) for i, j in zip(a, b, strict=True)} == {
        frozenset(("coarse", "stone")), frozenset(("rod", "stone"))
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mesh", "radius", "expected"),
    [("ball", 2e-3, False), ("ball", 5e-4, True), ("box", 2e-3, True), ("dented", 2e-3, True)],
)
def test_rods_meet_meshes_by_faces_but_round_ones_sampled_finely(mesh: str, radius: float, expected: bool) -> None:
    """Cells of the ball's sampled distance are 0.8 mm; a box has keen edges, and a dent a valley."""
    a, b = np.meshgrid(np.pi * np.arange(1, 24) / 24, 2.0 * np.pi * np.arange(48) / 48, indexing="ij")
    across = np.sin(a)
    points = np.vstack([np.stack([across * np.cos(b), across * np.sin(b), np.cos(a)], -1).reshape(-1, 3), (0, 0, 1), (0, 0, -1)])
    surface = fs.box_tets((0.04, 0.04, 0.04), 1).surface()
    if mesh != "box":
        hull = ConvexHull(points)
        out = np.einsum("ni,ni->n", np.cross(*(points[hull.simplices[:, k]] - points[hull.simplices[:, 0]] for k in (1, 2))),
                        hull.equations[:, :3]) > 0.0  # fmt: skip
        points[-2] *= 0.99 if mesh == "dented" else 1.0
        shape = fs.Mesh(0.02 * points, np.where(out[:, None], hull.simplices, hull.simplices[:, ::-1]))
    else:
        shape = fs.Mesh(surface.points, surface.triangles)
    scene = fs.Scene("mesh", dt=0.005, duration=0.1)
    scene.add_obstacle("part", shape, position=(0, 0, 0.5))
    x = np.linspace(0.0, 0.06, 31)
    scene.add_rod("rod", np.column_stack([x, 0 * x, 0 * x]), fs.circular_section(radius), CABLE)
    found = Stepper(scene, make_solver("exact")).contacts.by_faces
    assert found.any() == expected


def landing(**options: Any) -> fs.Scene:
    """A box that lands askew on a pad, by half a millimetre."""
    scene = fs.Scene("landing", dt=0.005, duration=0.1, **options)
    mesh = fs.box_tets((0.05, 0.05, 0.01), (5, 5, 1))
    scene.add_soft("pad", mesh, RUBBER, position=(0, 0, -0.005), fixed=lambda x: x[:, 2] < -0.0099)
    box = scene.add_rigid("box", fs.Box((0.012, 0.012, 0.012)), mass=0.05, position=(0, 0, 0.0125), rotation=(0, 0, 0.5))
    scene.set_friction(box, "pad", 0.5)
    return scene


@pytest.mark.parametrize(("tolerance", "bound"), [(1e-4, 1e-6), (None, 1e-9)])
def test_crossings_that_were_left_out_count_where_others_do_not_hold_in_the_end(tolerance: float | None, bound: float) -> None:
    """Steps with some left out would end up to 4.7 um deep. Where each is linearised once, none are: nothing asks again."""
    simulation = fs.Simulation(landing(nonlinear_tolerance=tolerance))
    deepest = 0.0
    for _ in range(12):
        simulation.step(1)
        deepest = max(deepest, simulation.report.max_penetration)
    assert deepest <= bound


def test_what_moves_elsewhere_does_not_shake_a_box_at_rest() -> None:
    """What lies on elements may sink by a part of its own way in a step before that is taken again, of nobody else's."""
    scene = landing()
    scene.add_rigid("stone", fs.Sphere(0.03), mass=0.1, position=(1, 0, 0), angular_velocity=(0, 0, 200))  # falls for ever
    simulation = fs.Simulation(scene)
    simulation.step(120)
    stepper = simulation.stepper
    pad = stepper.system.v_slices[0]
    for _ in range(10):
        simulation.step(1)
        assert np.abs(stepper.state.v[pad]).max() < 1e-6


@pytest.mark.parametrize("mended", [False, True])
def test_steps_that_leave_contacts_out_in_vain_grow_rare(monkeypatch: pytest.MonkeyPatch, mended: bool) -> None:
    """Between flat pads every ninth step was taken twice, with four linearisations for one; until one is not in vain."""
    plain, tried = Stepper.step, list[int]()

    def step(self: Stepper, *, whole: bool = True, pushing: bool = True) -> StepReport:
        number = self.state.step
        report = plain(self, whole=whole, pushing=pushing)
        if not whole:
            tried.append(number)
            report.spared = not (mended and number == 26)
        return report

    monkeypatch.setattr(Stepper, "step", step)
    scene = fs.Scene("resting", dt=0.005, duration=3.0)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.02)), mass=0.1, position=(0, 0, 0.02))
    stepper = Stepper(scene, make_solver("exact"))
    for _ in range(420):
        take_step(stepper, 0)
    if mended:
        assert tried[:6] == [0, 9, 26, 27, 36, 53]
    else:
        assert tried == [0, 9, 26, 59, 124, 253, 382]


def test_what_goes_astray_without_contacts_that_others_seem_to_hold_is_not_tried_in_each_step() -> None:
    """A soft cube that plates squeeze went further than contacts were looked for, and each step at rest had two searches."""
    scene = fs.Scene("plates", dt=0.002, duration=0.2)
    scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 4), fs.Elastic(2e5, 0.4, 1000.0))
    for name, side in (("left", 1.0), ("right", -1.0)):
        plate = scene.add_rigid(name, fs.Box((0.011, 0.007, 0.0135)), mass=0.1, position=(0, 0.0275 * side, 0))
        scene.drive(plate, fs.Motion([0, 0.1], [(0, 0, 0), (0, -0.0045 * side, 0)]))
        scene.set_friction(plate, "cube", 1.0)
        scene.contact_by_faces(plate)
    result = fs.simulate(scene)
    assert result.verdict == "good" and result.steps["contacts"][-40:].min() > 20
    assert sum(result.steps["solves"][-40:]) < 120  # 240 with both searches
