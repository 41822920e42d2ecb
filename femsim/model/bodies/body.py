"""What the system asks of every body; `body_defaults` has the answers that suit most."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast, get_args

import numpy as np
import scipy.sparse as sp

from contact import GroupKind
from femsim.base.errors import InputError
from femsim.model.bodies.deforming import Deforming
from femsim.model.bodies.outputs import Drawing, DrawnFrame, Marker
from femsim.model.bodies.soft_output import PressedSurface
from femsim.model.frames import HoldFrame, Tetrahedra
from femsim.model.parts import Part


@dataclass(frozen=True)
class StepSettings:
    """Settings of the time integration that bodies need.

    Attributes
    ----------
    dt : float, s
        Time step.
    theta : float
        Integration parameter in [1/2, 1]: 1/2 is papers/001 eq. (9), 1 backward Euler.
    gravity : ndarray, (3,), m/s^2
        Acceleration of gravity.
    conserving : bool
        Whether elastic stress is that of the energy-momentum step, by which soft bodies and rods keep energy and angular
        momentum exactly; theta is then 1/2.
    strain_damping : float
        Damping of strain changes in that step: the largest alpha of :mod:`femsim.model.bodies.momentum_kernels`, of which a part
        acts, see :mod:`femsim.model.bodies.evenness`.
    linear : bool
        Whether a step is its first linearisation, papers/001 eq. (9), whose gyroscopic forces are those of its start; else
        they are those of the velocities that it ends with, or has in its middle.
    """

    dt: float
    theta: float
    gravity: np.ndarray
    conserving: bool = False
    strain_damping: float = 0.0
    linear: bool = False


@dataclass
class StepStart:
    """Where a step of one body starts.

    Attributes
    ----------
    q, v : ndarray, (n_q,) and (n_v,)
        Coordinates and velocities; of prescribed rows the velocity for which the step is that of the others.
    t : float, s
        Time.
    """

    q: np.ndarray
    v: np.ndarray
    t: float


@dataclass
class BodyStep:
    """One step of one body, for :meth:`Body.balance`.

    Attributes
    ----------
    q, v : ndarray, (n_q,) and (n_v,)
        State at the start of the step.
    q_new, v_new : ndarray, (n_q,) and (n_v,)
        State at its end.
    v_hat : ndarray, (n_v,)
        Representative velocity of the step.
    b, external : ndarray, (n_v,), N and N m
        Right-hand side of the body, and the part of it that gravity, loads and joints make.
    drive : ndarray, (n_v,), N and N m
        Force of the drives on prescribed rows; zero elsewhere.
    dt : float, s
        Length of the step.
    driven : bool
        Whether the velocity of the whole body (of the base of a gripper) is prescribed.
    """

    q: np.ndarray
    v: np.ndarray
    q_new: np.ndarray
    v_new: np.ndarray
    v_hat: np.ndarray
    b: np.ndarray
    external: np.ndarray
    drive: np.ndarray
    dt: float
    driven: bool


@dataclass
class BodyForces:
    """Forces on a body in one step beside those of contacts and couplings.

    Attributes
    ----------
    outside : ndarray, (3,), N
        Gravity, loads, and damping against the world.
    held : ndarray, (3,), N
        Force of what holds or drives the body.
    drive : ndarray, (6,), N and N m, or None
        Wrench of the drive on a driven body, for a sensor of kind mount.
    power : float, W
        Power of what holds the body from outside the system, such as the moving frame at the end of a rod.
    lost : float, W
        Power that the damping of its own joints takes; it is in ``power`` and :meth:`Body.damping_power`.
    magnitude : float, N
        Sum of the magnitudes of all forces in b and of drives, from which rounding errors of the balance follow.
    """

    outside: np.ndarray
    held: np.ndarray
    drive: np.ndarray | None
    power: float
    magnitude: float
    lost: float = 0.0


class LinkPlaces(NamedTuple):
    """Where rigid links are.

    Attributes
    ----------
    rotation, centre : ndarray, (k, 3, 3) and (k, 3), m
        World rotation and centre of mass of each.
    origin, reference : ndarray, (k, 3), m
        Points that the first six rows of v move, and that torques are about.
    screw : ndarray, (m, 6)
        How joints move them, see :meth:`Body.link_screws`, one link after the other.
    """

    rotation: np.ndarray
    centre: np.ndarray
    origin: np.ndarray
    reference: np.ndarray
    screw: np.ndarray


class Body(Protocol):
    """A body: constant data and methods that read a state. It fills its own block of A, couplings those between bodies."""

    name: str
    kind: GroupKind
    n_q: int
    n_v: int
    #: Whether it holds itself to the world or to a motion, as rods do by their ends; prescribed velocities are not that.
    is_held: bool

    def reset(self) -> None:
        """Forget what earlier steps left as starting points of inner iterations."""
        ...

    def memory(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Give what the next step reads beside the coordinates q, where the last one ended; arrays that do not change."""
        ...

    def recall(self, memory: Mapping[str, np.ndarray], q: np.ndarray) -> None:
        """Go back, to the last bit, to where :meth:`memory` was asked at q."""
        ...

    def initial_q(self) -> np.ndarray:
        """Coordinates at the start, (n_q,)."""
        ...

    def initial_v(self) -> np.ndarray:
        """Velocities at the start, (n_v,)."""
        ...

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Pattern of the diagonal block of A: CSC indptr (n_v + 1,) and sorted row indices."""
        ...

    def assemble(
        self,
        q: np.ndarray,
        v: np.ndarray,
        t: float,
        settings: StepSettings,
        data: np.ndarray,
        b: np.ndarray,
        external: np.ndarray,
    ) -> None:
        """Fill the block of A (CSC data) and b of eq. (9).

        ``external`` (n_v,) N becomes the force of gravity, loads and joints within b. Nothing else changes ``data`` until the
        body fills it again, here or in :meth:`tangent`.
        """
        ...

    def moved(self, q: np.ndarray, v_hat: np.ndarray, time: float) -> np.ndarray:
        """Coordinates (n_q,) that q becomes at velocity v_hat in a time, s."""
        ...

    def residual(
        self,
        moved: np.ndarray,
        start: StepStart,
        settings: StepSettings,
        v_hat: np.ndarray,
        external: np.ndarray,
        out: np.ndarray,
        inertia: np.ndarray,
    ) -> None:
        """Fill what the body's equations of the step lack at v_hat, forces evaluated at the coordinates ``moved``, (n_v,) N.

        ``out`` becomes rate of momentum - internal forces - external ones; contact, drives and couplings must make up for it.
        ``inertia`` (n_v,) becomes its rate of momentum, ``external`` (n_v,) the force of gravity, loads and joints.
        """
        ...

    def tangent(self, settings: StepSettings, data: np.ndarray) -> None:
        """Fill the block of A (CSC data), the derivative of the last :meth:`residual` by v_hat, or a definite stand-in."""
        ...

    def positive_tangent(self, settings: StepSettings, data: np.ndarray) -> bool:
        """Fill the same, surely positive definite; whether the last one that was filled may be another one."""
        ...

    def whole_tangent(self, settings: StepSettings, data: np.ndarray) -> bool:
        """Fill the whole derivative of the last :meth:`residual` by v_hat, not symmetric; False where ``tangent`` is near it."""
        ...

    def row_rotations(self) -> np.ndarray | None:
        """Rotation since the start of each triple of rows of its block of A, (n_v / 3, 3, 3), as it was filled last; None: none.

        Factors of an earlier block turn along: R A R^T with these blocks in R should come near to the present one.
        """
        ...

    def accept(self, v_hat: np.ndarray) -> None:
        """Take the solution of the equations that were assembled last, before anything else is evaluated."""
        ...

    def advance(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        settings: StepSettings,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Fill the state at the end of the step from the representative velocity."""
        ...

    def fly(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        external: np.ndarray,
        dt: float,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Change the velocities at the end of a step that :meth:`advance` filled to those of free flight, to the last digits.

        Asked of bodies of generalized coordinates without contact, drive or coupling; ``external`` (n_v,) is all that acts.
        """
        ...

    def calm(
        self, q: np.ndarray, v_hat: np.ndarray, v: np.ndarray, settings: StepSettings, held: np.ndarray, push: np.ndarray
    ) -> None:
        """Take from the velocities v at the end of an energy-momentum step what is too fast for it, by forces within the body.

        See :mod:`femsim.model.bodies.calming`. Velocities of rows that are ``held``, (n_v,) bool, stay; ``push`` (n_v,)
        N s and N m s gains the impulses on them.
        """
        ...

    def touch(self, touched: bool) -> None:
        """Take whether contacts push on the body in the step that ends, where strain is damped."""
        ...

    def inertia(self, q: np.ndarray, q_new: np.ndarray) -> sp.spmatrix | np.ndarray:
        """Mass matrix (n_v, n_v) that relates an impulse at the end of a step, from q to q_new, to the change of velocity there.

        A ``dia_matrix`` where it has a diagonal and nothing else; an array (k, m, m) where it is k blocks of m rows that follow
        one another.
        """
        ...

    # ---- balance: what a step did to the body

    inverted_elements: int

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step that change the momentum of the body, beside those of contacts and couplings."""
        ...

    def acted(self) -> dict[str, np.ndarray]:
        """Name what acted inside the body in the last step, for sensors: forces at joints, wrenches at held ends."""
        ...

    def take_acted(self, acted: Mapping[str, np.ndarray]) -> None:
        """Answer from now on that this acted, in the form of :meth:`acted`: the mean of a step that was taken in sub-steps."""
        ...

    def inside_out(self, q: np.ndarray) -> np.ndarray:
        """Elements (m,) bool that are inverted beyond recovery at coordinates q; empty for a body without elements."""
        ...

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Linear momentum (3,), kg m/s."""
        ...

    def centre_of_mass(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass (3,), m."""
        ...

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic energy, J."""
        ...

    def damping_power(self, v_hat: np.ndarray) -> float:
        """Power that drives count in ``external`` but lose to their own implicit damping, W."""
        ...

    def elastic_energy(self, q: np.ndarray) -> float:
        """Elastic energy, J."""
        ...

    def viscous_loss(self) -> float:
        """Energy that its viscous branches have taken since the start, J."""
        ...

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        ...

    # ---- outputs: what it is called, how it is drawn and read

    #: What it is called in messages, ``run.json`` and lists: "soft body", "rod", "rigid body", "gripper".
    what: str
    #: Whether its parts are links with a pose of their own, and a motion may drive its base.
    rigid: bool
    #: Whether a part of it may hold the end of a rod.
    holds_rods: bool
    #: Whether its joints let links give way to contact where its base is driven.
    gives_way: bool
    #: What to say to who drives it by a motion although it is not rigid: "is a rod; hold ...".
    advice: str

    def joint_names(self) -> list[str]:
        """Names of its joints, by the fingers that they move; none for most bodies."""
        ...

    def joint_link(self, name: str) -> int:
        """Link that hangs on a joint of this name; -1 for no such joint."""
        ...

    def joint_state(self, q: np.ndarray, v: np.ndarray, link: int) -> tuple[float, float, float, float, int, float]:
        """Position and speed (rad or m) of the joint of a link, effort and dry friction (N m or N), row of v, ratio.

        The ratio is its speed over that of the row.
        """
        ...

    def hangs_on(self, link: int) -> list[int]:
        """Links that the joint of a link carries: it, and all behind it."""
        ...

    def drive_joint(self, name: str, drive: Mapping[str, Any]) -> None:
        """Set how a joint is driven: fields of :class:`femsim.model.bodies.tree_joints.Motor`."""
        ...

    def link_pose(self, q: np.ndarray, link: int) -> tuple[np.ndarray, np.ndarray]:
        """World rotation (3, 3) and centre of mass (3,), m, of a part of a rigid body."""
        ...

    def drawing(self, link: int) -> Drawing | None:
        """Points and cells of a part at the start; None where its shapes draw it, moved by ``link_pose``."""
        ...

    def frame(self, q: np.ndarray, v: np.ndarray, force: np.ndarray, names: Collection[str]) -> DrawnFrame:
        """Points of its ``drawing`` and the fields among ``names`` that it has; ``force`` (n_v,) of contacts, N and N m."""
        ...

    def marker(self, what: str, link: int, node: int | None, at: np.ndarray | None) -> Marker:
        """Marker on a part: at a node (or link of a rod), or at a place (3,), m; ``what`` begins the messages."""
        ...

    def marker_position(self, q: np.ndarray, marker: Marker) -> np.ndarray:
        """Position of a marker, (3,), m, world."""
        ...

    def sensor_kinds(self, link: int) -> frozenset[str]:
        """Kinds of sensors that a part has beside those that every part has, see :mod:`femsim.scene.sensor_kinds`."""
        ...

    def describe(self) -> dict[str, Any]:
        """Entries of the body in ``run.json`` beside its mass, in units that their names end in."""
        ...

    def tetrahedra(self) -> Tetrahedra | None:
        """Its tetrahedra, which chambers and tendons act on; None without any."""
        ...

    def tetrahedra_at_start(self) -> Tetrahedra | None:
        """Return them with the nodes where they start."""
        ...

    def pressed_surface(self) -> PressedSurface | None:
        """Its surface, for contact area and pressure; None without one."""
        ...

    def surface_distance(self, points: np.ndarray) -> np.ndarray:
        """Distance of points (k, 3), m, to its surface at the start, (k,), m; a rigid body is asked through its shapes."""
        ...

    def hold_frame(self, link: int, pose: np.ndarray, radius: float) -> HoldFrame:
        """Frame on a part that holds the end of a rod, at a pose (7,); ``radius`` (m) is that of the rod's contacts."""
        ...

    def held_end(self, end: int, back: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Wrench (6,), N and N m, of a rod on the frame that holds its end (0 start, 1 end), and the place (3,), m, of that.

        The place is that in the last step, ``back`` s before its end.
        """
        ...

    def link_momentum(self, q: np.ndarray, v: np.ndarray, link: int) -> tuple[float, np.ndarray]:
        """Mass of a link, kg; and its momentum, kg m/s, followed by its angular momentum about its own centre, kg m^2/s, (6,)."""
        ...

    # ---- contact

    @property
    def contact_radius(self) -> float:
        """How far its surface lies from these points, m."""
        ...

    def contact_points(self, q: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Positions of nodes, by their numbers (k,), that have contact with shapes: (k, 3), m."""
        ...

    def contact_rows(self, nodes: np.ndarray) -> np.ndarray:
        """First of the rows of its v that move each of these nodes, (k,): three of velocity, then any of angular velocity."""
        ...

    def deforming(self, part: Part) -> Deforming | None:
        """Surface or strand by which a part has contact with others of its kind; None where it has none."""
        ...

    def reference(self, q: np.ndarray, link: int) -> np.ndarray:
        """Point (3,), m, that torques on a part are about."""
        ...

    def link_origin(self, q: np.ndarray, link: int) -> np.ndarray:
        """Point (3,), m, that the first six rows of v, velocity and angular velocity, move a rigid link about."""
        ...

    def link_places(self, q: np.ndarray, links: Sequence[int]) -> LinkPlaces:
        """Poses, origins, references and screws of rigid links, all at once."""
        ...

    def link_rows(self, link: int) -> np.ndarray:
        """Rows of its v behind the first six that move a rigid link too, (k,): those of the joints between the base and it."""
        ...

    def rows_between(self, a: int, b: int) -> np.ndarray:
        """Rows of its v of the joints on the way from one rigid link to another, (k,), each once, in order.

        Those of mimic joints that move both links are among them.
        """
        ...

    def row_parents(self) -> tuple[int, ...] | None:
        """Row of its v that each one hangs on, (n_v,), see :class:`contact.Group`; None where it is no tree."""
        ...

    def link_screws(self, q: np.ndarray, link: int) -> np.ndarray:
        """How each of these rows moves a rigid link: velocity at its ``link_origin`` and angular velocity, (k, 6), world."""
        ...

    # ---- joints of its own that follow a motion exactly, or have limits

    def driven_rows(self) -> np.ndarray:
        """Rows of its v whose velocity a motion of its own prescribes, (k,)."""
        ...

    def driven_velocity(self, q: np.ndarray, t: float, dt: float) -> np.ndarray:
        """Velocities of the :meth:`driven_rows`, (k,), m/s or rad/s, that end a step of dt from time t, s, on their motion."""
        ...

    def driven_rate(self, t: float, dt: float) -> np.ndarray:
        """Velocities of these rows, (k,), m/s or rad/s, that their motion has at time t, s, at the end of a step of dt."""
        ...

    def end_driven(self, velocity: np.ndarray) -> None:
        """Take the velocities, (k,), m/s or rad/s, with which these rows end the steps that are assembled from now on."""
        ...

    def limits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Rows of v (k,), entries of q (k,), ranges (k, 2) that these may not leave and links (k,) of joints with hard limits."""
        ...


def check_body(body: object) -> Body:
    """Return a body of your own after a check that it answers everything that :class:`Body` lists, in the sizes that it states.

    Raises
    ------
    InputError
        Names what the body lacks, or the first answer that does not fit its ``kind``, ``n_q`` or ``n_v``.
    """
    name = getattr(body, "name", type(body).__name__)
    wanted = [member for member in {**Body.__annotations__, **vars(Body)} if not member.startswith("_")]
    lacking = sorted(member for member in wanted if not hasattr(body, member))
    if lacking:
        raise InputError(
            f"body {name!r} lacks {', '.join(lacking)}; give its class these, or derive it from fs.BodyDefaults, which answers "
            "for a body without elements, joints and memory."
        )
    checked = cast(Body, body)
    if checked.kind not in get_args(GroupKind):
        raise InputError(f"kind of body {name!r} is {checked.kind!r}; allowed are {', '.join(map(repr, get_args(GroupKind)))}.")
    per_q, per_v = {"nodes": (3, 3), "links": (7, 6), "generalized": (1, 1)}[checked.kind]
    if checked.n_q % per_q or checked.n_v % per_v or (checked.n_q * per_v != checked.n_v * per_q and per_q > 1):
        raise InputError(
            f"body {name!r} of kind {checked.kind!r} has n_q {checked.n_q} and n_v {checked.n_v}; allowed are "
            f"{per_q} coordinates and {per_v} velocities for each of its points."
        )
    indptr, indices = checked.pattern()
    for what, size, right in (
        ("initial_q", len(checked.initial_q()), checked.n_q),
        ("initial_v", len(checked.initial_v()), checked.n_v),
        ("pattern, column pointers", len(indptr), checked.n_v + 1),
        ("pattern, rows", len(indices), int(indptr[-1])),
    ):
        if size != right:
            raise InputError(f"body {name!r}: {what} has length {size}; it must be {right}.")
    return checked
