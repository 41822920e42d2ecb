"""The box, the mat and the ball by Drake, with its contact solver SAP and hydroelastic contact of rigid shapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import femsim as fs
from benchmarks import rival_tasks as tasks
from benchmarks.rival_tasks import Result, Run, Task, timed
from meshes import TetMesh

#: What Drake has in place of Coulomb friction: the default, which lags, and one that is convex and lifts what slides.
CONTACTS = ("lagged", "sap")
#: Hydroelastic modulus of the rigid box, Pa.
MODULUS = 1e7
#: Side of the floor and its thickness, m.
FLOOR, THICKNESS = 10.0, 0.1


class Plant:
    """A plant of Drake with a floor, to which bodies are added before it is started.

    Parameters
    ----------
    dt : float
        Time step, s.
    contact : str
        One of the :data:`CONTACTS`.
    friction : float
        Coefficient of the floor.
    pull : float, optional
        What pulls all bodies along x beside gravity, m/s^2.
    """

    def __init__(self, dt: float, contact: str, friction: float, pull: float = 0.0) -> None:
        from pydrake.math import RigidTransform
        from pydrake.multibody.plant import AddMultibodyPlant, MultibodyPlantConfig
        from pydrake.systems.framework import DiagramBuilder

        self.dt, self._builder = dt, DiagramBuilder()
        config = MultibodyPlantConfig(time_step=dt, discrete_contact_approximation=contact)
        self.plant, _ = AddMultibodyPlant(config, self._builder)
        self.plant.mutable_gravity_field().set_gravity_vector([pull, 0.0, -tasks.GRAVITY])
        self.add_box(self.plant.world_body(), RigidTransform([0.0, 0.0, -0.5 * THICKNESS]), (FLOOR, FLOOR, THICKNESS), friction)

    def add_box(self, body: Any, pose: Any, sides: tuple[float, float, float], friction: float, modulus: float = 0.0) -> None:
        """Give a body a box to be touched by: rigid, or with a hydroelastic modulus (Pa), as one of two that touch must be."""
        from pydrake.geometry import AddCompliantHydroelasticProperties, AddRigidHydroelasticProperties, Box

        surface = _surface(friction)
        if modulus > 0.0:
            AddCompliantHydroelasticProperties(max(sides), modulus, surface)
        else:
            AddRigidHydroelasticProperties(max(sides), surface)
        self.plant.RegisterCollisionGeometry(body, pose, Box(*sides), f"box of {body.name()}", surface)

    def add_soft(self, mesh: TetMesh, material: fs.Elastic, friction: float, standing: float) -> Callable[[], np.ndarray]:
        """Add a co-rotational body on the same tetrahedra, raised; what returns the places of its nodes, (n, 3) m."""
        from pydrake.common import MemoryFile
        from pydrake.geometry import GeometryInstance, InMemoryMesh, Mesh
        from pydrake.math import RigidTransform
        from pydrake.multibody.fem import DeformableBodyConfig, MaterialModel

        config = DeformableBodyConfig()
        config.set_youngs_modulus(material.young_modulus)
        config.set_poissons_ratio(material.poisson_ratio)
        config.set_mass_density(material.density)
        config.set_stiffness_damping_coefficient(material.rayleigh_beta)
        config.set_mass_damping_coefficient(0.0)
        config.set_material_model(MaterialModel.kCorotated)
        shape = Mesh(InMemoryMesh(mesh_file=MemoryFile(_vtk(mesh), ".vtk", "mesh")))
        instance = GeometryInstance(RigidTransform([0.0, 0.0, standing]), shape, "soft")
        instance.set_proximity_properties(_surface(friction))
        model = self.plant.mutable_deformable_model()
        body = model.RegisterDeformableBody(instance, config, 1.0)
        return lambda: np.asarray(model.GetPositions(self.context, body)).T

    def start(self) -> Callable[[], None]:
        """End the building; what takes a step, by :attr:`context`."""
        from pydrake.systems.analysis import Simulator

        if not self.plant.is_finalized():
            self.plant.Finalize()
        simulator = Simulator(self._builder.Build())
        self.context = self.plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
        simulator.Initialize()
        count = 0

        def step() -> None:
            nonlocal count
            count += 1
            simulator.AdvanceTo(count * self.dt)

        return step


def _surface(friction: float) -> Any:
    """Properties of a surface with a coefficient of friction."""
    from pydrake.geometry import AddContactMaterial, ProximityProperties
    from pydrake.multibody.plant import CoulombFriction

    surface = ProximityProperties()
    AddContactMaterial(friction=CoulombFriction(friction, friction), properties=surface)
    return surface


def _vtk(mesh: TetMesh) -> str:
    """Write a mesh as text of a VTK file, which is what Drake reads."""
    points = "\n".join(" ".join(f"{x:.17g}" for x in point) for point in mesh.points)
    tets = "\n".join(" ".join(map(str, (4, *tet))) for tet in mesh.tets)
    n, m = len(mesh.points), len(mesh.tets)
    return (
        "# vtk DataFile Version 3.0\nmesh\nASCII\nDATASET UNSTRUCTURED_GRID\n"
        f"POINTS {n} double\n{points}\nCELLS {m} {5 * m}\n{tets}\nCELL_TYPES {m}\n" + "10\n" * m
    )


def _solid_box(mass: float, half: tuple[float, float, float]) -> Any:
    """Mass and inertia of a solid box."""
    from pydrake.multibody.tree import SpatialInertia

    return SpatialInertia.SolidBoxWithMass(mass, *(2.0 * side for side in half))


def drake_box(task: Task, force: float, contact: str) -> Result:
    """Make the same box for Drake; gravity is tilted by the pull."""
    from pydrake.math import RigidTransform

    plant = Plant(task.dt, contact, tasks.BOX_FRICTION, pull=force / tasks.BOX_MASS)
    body = plant.plant.AddRigidBody("box", _solid_box(tasks.BOX_MASS, (tasks.BOX_HALF,) * 3))
    plant.add_box(body, RigidTransform(), (2.0 * tasks.BOX_HALF,) * 3, tasks.BOX_FRICTION, MODULUS)
    plant.plant.Finalize()
    plant.plant.SetDefaultFloatingBaseBodyPose(body, RigidTransform([0.0, 0.0, tasks.BOX_HALF]))
    step, way, heights = plant.start(), [], []

    def look(_: int) -> None:
        place = plant.plant.EvalBodyPoseInWorld(plant.context, body).translation()
        way.append(float(place[0]))
        heights.append(float(place[2]))

    times = timed(step, task, look)
    return Result(f"Drake, {contact}", *times, tasks.box_quality(task, force, way, heights))


def drake_mat(task: Task, force: float, contact: str) -> Result:
    """Make the same mat for Drake; gravity is tilted by the pull."""
    mass = tasks.MAT.density * tasks.MAT_SIDE * tasks.MAT_SIDE * tasks.MAT_HEIGHT
    plant = Plant(task.dt, contact, tasks.MAT_FRICTION, pull=force / mass)
    points = plant.add_soft(tasks.mat_mesh(), tasks.MAT, tasks.MAT_FRICTION, tasks.MAT_HEIGHT / 2)
    step, place, depth = plant.start(), [], []

    def look(_: int) -> None:
        now = points()
        place.append(float(now[:, 0].mean()))
        depth.append(-float(now[:, 2].min()))

    times = timed(step, task, look)
    return Result(f"Drake, {contact}", *times, tasks.mat_quality(task, force, place, depth))


def drake_ball(task: Task, contact: str) -> Result:
    """Make the same ball for Drake, and a hand on a slide, led by a servo, whose fingers slide, pushed by the same force."""
    from pydrake.math import RigidTransform
    from pydrake.multibody.tree import PrismaticJoint, SpatialInertia, UnitInertia

    mesh, standing = tasks.ball_mesh()
    plant = Plant(task.dt, contact, tasks.BALL_FRICTION)
    made, raised = plant.plant, RigidTransform([0.0, 0.0, tasks.BALL_RADIUS])
    points = plant.add_soft(mesh, tasks.BALL_MATERIAL, tasks.BALL_FRICTION, standing)
    hand = made.AddRigidBody("hand", SpatialInertia(tasks.HAND, np.zeros(3), UnitInertia.SolidSphere(0.05)))
    lift = PrismaticJoint("lift", made.AddFrame(_at("raised", made.world_frame(), raised)), hand.body_frame(), [0.0, 0.0, 1.0])
    joints, fingers = [made.AddJoint(lift)], []
    for name, side in (("left", -1.0), ("right", 1.0)):
        finger = made.AddRigidBody(name, _solid_box(tasks.FINGER, tasks.PAD))
        plant.add_box(finger, RigidTransform(), tuple(2.0 * half for half in tasks.PAD), tasks.BALL_FRICTION)
        frame = made.AddFrame(_at(f"{name} finger", hand.body_frame(), RigidTransform([side * tasks.REACH, 0.0, 0.0])))
        joints.append(made.AddJoint(PrismaticJoint(name, frame, finger.body_frame(), [-side, 0.0, 0.0])))
        fingers.append(finger)
    for joint in joints:
        made.AddJointActuator(joint.name(), joint)
    made.Finalize()
    advance, below, depth = plant.start(), [], []

    def step() -> None:
        context = plant.context
        t = context.get_time() + task.dt
        rate = (tasks.height(t) - tasks.height(t - task.dt)) / task.dt
        off, fast = tasks.height(t) - joints[0].get_translation(context), rate - joints[0].get_translation_rate(context)
        made.get_actuation_input_port().FixValue(context, [tasks.STIFF * off + tasks.DAMP * fast, tasks.CLOSE(t), tasks.CLOSE(t)])
        advance()

    def look(_: int) -> None:
        now = points()
        below.append(float(joints[0].get_translation(plant.context)) - float(now[:, 2].mean()))
        depth.append(max(_deepest(now, made.EvalBodyPoseInWorld(plant.context, one).translation()) for one in fingers))

    times = timed(step, task, look)
    return Result(f"Drake, {contact}", *times, tasks.ball_quality(task, below, depth))


def _at(name: str, frame: Any, pose: Any) -> Any:
    """Make a frame at a pose in another one."""
    from pydrake.multibody.tree import FixedOffsetFrame

    return FixedOffsetFrame(name, frame, pose)


def _deepest(points: np.ndarray, middle: np.ndarray) -> float:
    """How deep a point is in a pad with its middle there, m: the way to the nearest side."""
    return float((np.array(tasks.PAD) - np.abs(points - middle)).min(axis=1).max(initial=0.0))


#: What it does of each kind of task: the box with each of the :data:`CONTACTS`, what is soft, which takes long, with the first.
RUNS: dict[str, list[Run]] = {
    "box": [partial(drake_box, contact=contact) for contact in CONTACTS],
    "mat": [partial(drake_mat, contact=CONTACTS[0])],
    "ball": [partial(drake_ball, contact=CONTACTS[0])],
}
