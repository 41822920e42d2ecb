"""The scene: plain calls that describe bodies, drives and sensors; a ``Stepper`` sets it in motion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from contact import Mesh
from femsim.base.errors import InputError, did_you_mean, naming_all_parameters, no_attribute
from femsim.scene import pairs
from femsim.scene.body_calls import BodyCalls
from femsim.scene.checks import Handle, Vector
from femsim.scene.contact_calls import ContactCalls
from femsim.scene.motion_calls import MotionCalls
from femsim.scene.reading import Reading
from femsim.scene.sensing import make_sensor
from meshes import FILES, load_surface

#: What others call the calls of a scene, and what is one here.
_OTHER_WORDS = {
    **dict.fromkeys(("simulate", "run", "play"), "fs.simulate(scene)"),
    **dict.fromkeys(("step", "reset", "render"), "fs.Simulation(scene)"),
    **dict.fromkeys(("fix", "fixed", "add_fixed", "fix_nodes", "add_boundary", "clamp"), "add_soft(..., fixed=...)"),
    **dict.fromkeys(("add_force", "apply_force", "set_force", "add_load"), "add_rigid(..., load=...)"),
    **dict.fromkeys(("add_plane", "add_ground", "add_ground_plane"), "add_floor"),
    **dict.fromkeys(("add_wall", "add_static", "add_static_body", "add_collider", "add_table"), "add_obstacle"),
    **dict.fromkeys(
        ("add_box", "add_sphere", "add_ball", "add_cylinder", "add_capsule", "add_cube", "add_rigid_body"), "add_rigid"
    ),
    **dict.fromkeys(("add_soft_body", "add_deformable", "add_fem", "add_mesh", "add_cloth", "add_softbody"), "add_soft"),
    **dict.fromkeys(("add_cable", "add_rope", "add_string", "add_beam", "add_cosserat_rod", "add_wire"), "add_rod"),
    **dict.fromkeys(("add_joint", "add_weld", "add_hinge", "add_constraint", "weld", "glue", "attach", "hinge"), "join"),
    **dict.fromkeys(("add_sensor", "add_marker", "add_probe", "record"), "sensor"),
    **dict.fromkeys(("add_pressure", "set_pressure", "inflate", "add_chamber", "add_cavity"), "pressurize"),
    **dict.fromkeys(("add_muscle", "add_actuator_cable", "add_tendons"), "add_tendon"),
    **dict.fromkeys(("add_urdf", "load_urdf", "add_mjcf", "load_robot", "add_arm"), "add_robot"),
    **dict.fromkeys(("move", "set_motion", "add_motion", "animate", "prescribe"), "drive"),
    **dict.fromkeys(("disable_contact", "exclude", "ignore_collision", "filter_contact"), "ignore_contact"),
    "set_gravity": "gravity", "set_dt": "dt", "set_timestep": "dt", "friction": "set_friction", "add_friction": "set_friction",
}  # fmt: skip


@partial(naming_all_parameters, at_once=True)
class Scene(BodyCalls, MotionCalls, ContactCalls):
    """Bodies, their drives and sensors.

    Parameters
    ----------
    name : str
        Name of the scene; also the default name of its run folder.
    dt : float, s, or "auto"
        Time step. "auto": as short as the motion needs, between ``dt_bounds``; tables have one row per longest step.
    duration : float, s
        Simulated time; a run takes the nearest whole number of steps.
    theta : float, optional
        Integration parameter in [1/2, 1] of the theta rule, which it chooses: 1 is backward Euler, the choice for slow
        manipulation and statics, since it damps all vibration; 1/2 the mid-point rule of papers/001 eq. (9).
    gravity : (3,) float, m/s^2
        Acceleration of gravity.
    margin : float, m
        Pairs closer than this (plus the distance covered in one step) enter the problem as contacts.
    correction, max_correction : float, 1 and m/s
        Fraction of a penetration that one step removes, in [0, 1], and the largest speed for it. Default 0.2 and 0.5.
    default_friction : float
        Coulomb coefficient of pairs of surfaces that neither the scene nor the material library sets. Default 0.5.
    nonlinear_tolerance : float or None
        Largest residual of the equations of motion at the end of a step, relative to the largest forces in them. Default 1e-4. A
        step is linearised and solved again until it is met; in free flight, where nothing touches or is held, until a tenth of
        it is. None: one linearisation a step by the theta rule, as in papers/001.
    max_solves : int
        Most linearisations of a step before it is halved. Default 25.
    integrator : {"energy-momentum", "theta"}, optional
        How a step is taken. "energy-momentum", the default where neither ``theta`` is given nor one linearisation a step, takes
        elastic stress from both ends of the step, by which soft bodies, rods and rigid bodies in free motion keep angular
        momentum and never gain energy, at any stiffness; it is second order in dt. A step that neither it nor its halves
        can solve is taken by backward Euler. "theta" evaluates forces at one place within the step; without ``theta`` this is
        its end.
    strain_damping : float
        Fraction of strain changes that "energy-momentum" damps at most, in contact and where strain turns round from step to
        step, from 0 (keeps the energy) to 1. Default 0.05.
    dt_bounds : (float, float), s
        Shortest and longest step of ``dt="auto"``. Default 0.1 and 10 ms.
    time_tolerance : float, m
        Largest position error of one such step, root mean square over the worst body. Default 1e-5.
    health : HealthBounds, optional
        Bounds of the health verdict of its runs.
    thin_shapes : bool
        Whether to accept shapes thin enough to pass between the surface nodes of a soft body: needles, small balls. Contact with
        soft bodies acts at their nodes, so such a shape enters without a force: keep the two apart. The health verdict says so
        if it happens.
    most_per_pair : int
        Number of contacts kept for a pair of parts where one has a Revolved or Thread, chosen so that they can carry what all
        could. Default 120.
    largest_size : float, m
        A moving rigid body larger than this gets a note that asks whether it is given in millimetres. Default 3.

    Raises
    ------
    InputError
        A value outside its range.
    """

    def sense_pairs(self) -> list[str]:
        """Add a sensor of kind "pair", named "A-B", for each pair of parts that may have contact.

        Call it when all bodies, drives and ignored pairs are there.

        Returns
        -------
        list of str
            Names of the sensors.
        """
        return pairs.sense_pairs(self)

    if not TYPE_CHECKING:  # which knows the names better

        def __getattr__(self, name: str) -> NoReturn:
            """Name the nearest of what a scene has, or what another word means here; asked for what is not there."""
            raise no_attribute("a scene", name, [known for known in dir(type(self)) if not known.startswith("_")], _OTHER_WORDS)

    def sensor(
        self,
        name: str,
        on: Handle | str,
        *,
        kind: str = "contact",
        node: int | None = None,
        at: Vector | None = None,
        reading: Reading | None = None,
        partner: Handle | str | None = None,
        where: Callable[[np.ndarray], np.ndarray] | np.ndarray | None = None,
        reach: float | None = None,
    ) -> None:
        """Record a force/torque sensor, a marker or another quantity, one row per step.

        Parameters
        ----------
        name : str
            Column prefix in sensors.csv.
        on : Handle or str
            The part: a body, ``"gripper.left"``, an obstacle; or a joint of a robot, ``"arm.elbow"``, for the link on it; or
            what else a kind reads by its name, as ``"arm.spring"``.
        kind : str
            "contact" (default), "mount", "start", "end", "reaction", "chamber", "tendon", "joint", "revolute", "prismatic",
            "torsion", "spring", "marker", "gap", "area", "slip", "pair" or "energy"; docs/outputs.md has a table of what each
            reads, with units, signs and points.
        node : int, optional
            Node of a marker on a soft body, or link of a marker on a rod.
        at : (3,), m, optional
            Instead of a node: place of a marker on a soft body at rest, world. It moves as if glued to the nearest element,
            also up to a few elements off the surface, as the ball of a motion capture system.
        reading : Reading, optional
            What an instrument shows of the wrench (frame, point, tool, filter, sampling, bias, noise), in further columns
            ``NAME_measured``.
        partner : Handle or str, optional
            Count contacts with this part, or those of this gripper, alone (contact, area, slip, pair); the other side of a gap.
        where : callable or array of int, optional
            Count contacts on a part of the surface alone (the same kinds): ``where(points (n, 3) m) -> (n,) bool`` on the
            surface at the start, world, or numbers of nodes or links. A contact of several nodes counts by their weights.
        reach : float, m, optional
            Largest gap that is reported. Default 0.01.

        Raises
        ------
        InputError
            Unknown part or kind, or a node or place that does not exist.
        """
        self.sensors.append(make_sensor(self, name, on, kind, node, at, reading, partner, where, reach))


def mesh_file(name: str) -> Path:
    """Path of a mesh: a file of your own, or one that comes with femsim.

    Parameters
    ----------
    name : str
        Path of a file, or the name of a file in ``data/meshes``, e.g. "ball_r30.vtu".

    Raises
    ------
    InputError
        No such file.
    """
    if Path(name).is_file():
        return Path(name)
    path = FILES / name
    if not path.is_file():
        known = sorted(p.name for p in FILES.iterdir())
        raise InputError(f"mesh file {name!r} is found neither here nor with femsim{did_you_mean(name, known)}")
    return path


def mesh_shape(path: str | Path, *, scale: float = 1.0, resolution: int = 48) -> Mesh:
    """Read a closed surface as a contact shape.

    Parameters
    ----------
    path : path
        .stl, .obj, .ply, .vtk or .vtu, in metres after ``scale``.
    scale : float
        Factor on the coordinates (1e-3 for millimetres).
    resolution : int
        Cells of its distance grid along the longest side.
    """
    surface = load_surface(path, scale=scale)
    return Mesh(surface.points, surface.triangles, resolution=resolution, name=str(path))
