"""What soft bodies of every elastic law share: nodes, lumped mass, loads, the step, Prony terms, Rayleigh damping."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from contact import GroupKind
from femsim.base.errors import InputError
from femsim.model.bodies.body import BodyForces, BodyStep, StepSettings, StepStart
from femsim.model.bodies.body_defaults import BodyDefaults
from femsim.model.bodies.calming import CALMING, calm_edges, edge_lengths, edge_stiffness
from femsim.model.bodies.deforming import Deforming, surface
from femsim.model.bodies.evenness import Evenness
from femsim.model.bodies.hyperelastic_kernels import PointElements
from femsim.model.bodies.mixture import Mixture, Region
from femsim.model.bodies.momentum_kernels import step_forces
from femsim.model.bodies.node_kernels import node_rotations, same_numbers
from femsim.model.bodies.outputs import Drawing, DrawnFrame, Marker, point_fields
from femsim.model.bodies.soft_output import PressedSurface
from femsim.model.bodies.viscous import Branches
from femsim.model.frames import PatchFrame, Placed, surface_patch
from femsim.model.parts import Part
from materials import Elastic
from meshes.quadratic import EDGES

#: Turn of a body in half a step, rad, above which what damps is the stiffness of the middle of the step, if turning is more than
#: this part of its kinetic energy about its centre: what is crumpled turns beside.
_TURNS, _MOSTLY = 1e-3, 0.5
#: Stress of the points where a step does not know it.
NO_STRESS = np.empty((0, 1, 6))

Load = Callable[[float], np.ndarray]


def von_mises(stress: np.ndarray) -> np.ndarray:
    """Von Mises values, (m,), of stresses (m, 6): xx, yy, zz, xy, yz, zx."""
    xx, yy, zz, xy, yz, zx = stress.T
    return np.asarray(np.sqrt(0.5 * ((xx - yy) ** 2 + (yy - zz) ** 2 + (zz - xx) ** 2) + 3.0 * (xy**2 + yz**2 + zx**2)))


class SoftBody(BodyDefaults, ABC):
    """Deformable body of tetrahedra; a subclass gives the law and the kind of element.

    The law of a subclass makes its constants in :meth:`_make_elements`, the forces in :meth:`_update` and the stiffness in
    :meth:`_fill_matrix`, and answers for the fields of its drawn tetrahedra at the last update.

    Parameters
    ----------
    name : str
        Name in outputs.
    points : ndarray, (n, 3), m
        Rest positions, already placed in the world.
    tets : ndarray, (m, 4)
        Node numbers of the tetrahedra that are drawn, positive volume.
    elastic : Elastic
        Material (SI).
    elements : ndarray, (e, k)
        Nodes of the finite elements: ``tets``, or elements with more nodes whose subdivision they are.
    velocity : ndarray, (3,), m/s
        Initial velocity of all nodes.
    angular_velocity : ndarray, (3,), rad/s, optional
        Initial angular velocity about the centre of mass; zero by default.
    load : callable, optional
        ``load(t) -> (n, 3)`` nodal forces in N, or ``(3,)`` total force spread by mass.
    regions : sequence of Region
        Elements that have other materials.

    Attributes
    ----------
    mixture : Mixture
        Its materials, and which each element has.
    elements : ndarray, (e, k)
        As given.
    node_mass : ndarray, (n,), kg
        Lumped mass of the nodes.
    internal_force : ndarray, (n, 3), N
        Force of the elements against deformation at the last update.
    inverted_elements : int
        How many elements were inverted there.
    """

    kind: GroupKind = "nodes"

    def __init__(
        self,
        name: str,
        points: np.ndarray,
        tets: np.ndarray,
        elastic: Elastic,
        *,
        elements: np.ndarray,
        velocity: np.ndarray,
        angular_velocity: np.ndarray | None = None,
        load: Load | None = None,
        regions: Sequence[Region] = (),
    ) -> None:
        self.name = name
        self.rest = self._start = np.ascontiguousarray(points, dtype=np.float64)
        self.tets = np.ascontiguousarray(tets, dtype=np.int64)
        self.elements = np.ascontiguousarray(elements, dtype=np.int64)
        self.elastic = elastic
        self.mixture = Mixture(elastic, regions, len(self.elements))
        self._beta, self._no_branch = self.mixture.rayleigh_beta, np.zeros(len(self.mixture.materials))
        self._damped = bool(self._beta.any())
        self.load = load
        self._damping: sp.csc_matrix | None = None  # entries of beta K, where that is what damps
        self._velocity = np.asarray(velocity, dtype=np.float64)
        self._angular_velocity = np.zeros(3) if angular_velocity is None else np.asarray(angular_velocity, dtype=np.float64)
        n = self.n_nodes = len(self.rest)
        self.n_q = self.n_v = 3 * n
        self.node_mass = np.empty(n)
        self.internal_force = np.empty((n, 3))
        self.inverted_elements = 0
        self._stands_in = False  # whether the last tangent is one that is surely definite in place of the derivative
        self._step_stress = NO_STRESS
        self._energy = 0.0
        self._updated_at = np.full(self.n_q, np.nan)
        self._damped_at = np.full(self.n_q, np.nan)  # where the matrix of damping is of
        self._make_elements()
        self._unturned = self._quaternion.copy()
        self._row_mass, self._mass = np.repeat(self.node_mass, 3), float(self.node_mass.sum())
        self._inertia: sp.dia_matrix | None = None
        #: its Prony terms, if it has any
        prony = [one.prony for one in self.mixture.materials]
        self.branches = Branches(prony, self.mixture.of, self._branch_points) if any(prony) else None
        #: whether beta K is a part of K, the same everywhere
        self._damped_alike = self.branches is None and self._damped and bool((self._beta == self._beta[0]).all())
        #: how evenly its edges change their lengths
        self._evenness = Evenness(self._edge_stiffness)
        self.reset()

    # ---- law: what a subclass gives

    _indptr: np.ndarray
    _indices: np.ndarray
    _quaternion: np.ndarray
    _lame_lambda: np.ndarray
    _lame_mu: np.ndarray

    @abstractmethod
    def _make_elements(self) -> None:
        """Fill the masses of the nodes; make the constants of the elements, identity quaternions and the CSC pattern of A."""

    @abstractmethod
    def _update(self, x: np.ndarray) -> tuple[float, int]:
        """Update rotations, strains and ``internal_force`` for positions x (n, 3) m; energy (J), number of inverted elements."""

    @abstractmethod
    def _fill_matrix(
        self, stiffness_factor: np.ndarray, mass_factor: float, data: np.ndarray, branch: np.ndarray | None = None
    ) -> None:
        """Fill the CSC entries of mass_factor M + stiffness_factor K at the last update, with a factor of each material, (r,).

        K has ``branch``, (r,), times the shear modulus more where U changes in the frame of the rest shape: Prony terms.
        """

    @abstractmethod
    def point_elements(self) -> PointElements:
        """Give the elements and their law as the kernels of integration points take them."""

    @property
    @abstractmethod
    def strain(self) -> np.ndarray:
        """Co-rotated strain sym(R^T F) - I of each drawn tetrahedron at the last update, (m, 6): xx, yy, zz, xy, yz, zx."""

    @property
    @abstractmethod
    def stress(self) -> np.ndarray:
        """True (Cauchy) stress of each drawn tetrahedron at the last update, (m, 6), Pa: xx, yy, zz, xy, yz, zx, world frame."""

    @abstractmethod
    def von_mises(self) -> np.ndarray:
        """Von Mises value of the true stress of each drawn tetrahedron at the last update, (m,), Pa."""

    @property
    @abstractmethod
    def energy_density(self) -> np.ndarray:
        """Elastic energy by volume at rest of each drawn tetrahedron at the last update, (m,), J/m^3."""

    @property
    @abstractmethod
    def principal_stretches(self) -> np.ndarray:
        """Stretches of each drawn tetrahedron at the last update, (m, 3), largest first."""

    @property
    @abstractmethod
    def rotations(self) -> np.ndarray:
        """Rotation of each drawn tetrahedron from rest at the last update, (m, 4): unit quaternions w, x, y, z, w >= 0."""

    @abstractmethod
    def _rotation_of_elements(self) -> np.ndarray:
        """Give a quaternion of the rotation of each element at the last update, (e, 4), of either sign."""

    @property
    def lame_lambda(self) -> np.ndarray:
        """First Lame constant of each element, (e,), Pa; a view."""
        return self._lame_lambda[: len(self.elements)]

    @property
    def lame_mu(self) -> np.ndarray:
        """Second Lame constant of each element, (e,), Pa; a view."""
        return self._lame_mu[: len(self.elements)]

    # ---- nodes

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        return self._mass

    def carry(self, mass: np.ndarray) -> None:
        """Hang further mass on the nodes, (n,) kg: weight and inertia without stiffness."""
        self.node_mass = self.node_mass + mass
        self._row_mass, self._mass, self._inertia = np.repeat(self.node_mass, 3), float(self.node_mass.sum()), None

    def start_at(self, points: np.ndarray) -> None:
        """Start from other positions than those at rest, (n, 3) m: strained, as a hand would hold it."""
        self._start = points

    def reset(self) -> None:
        """Forget the last positions: the search for rotations starts as in a new body, so a second run gives the same bits."""
        self._quaternion[:] = self._unturned
        self._started_from = self._quaternion.copy()
        self._updated_at[:] = np.nan
        self._damped_at[:] = np.nan
        self._evenness.reset()
        if self.branches is not None:
            self.branches.reset()

    def memory(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Where the search for the rotations at q starts, or has started; how edges have changed; strains of Prony terms."""
        known = same_numbers(q, self._updated_at)
        own = {"rotations": self._started_from if known else self._quaternion.copy()} | self._evenness.memory()
        return own if self.branches is None else own | self.branches.memory()

    def recall(self, memory: Mapping[str, np.ndarray], q: np.ndarray) -> None:
        """Make the update at q again: all that follows from it has the same bits as then."""
        self._quaternion[:] = memory["rotations"]
        self._updated_at[:] = np.nan
        self._damped_at[:] = np.nan
        self.update_elements(q)
        self._evenness.recall(memory)
        if self.branches is not None:
            self.branches.recall(memory["branch_strain"], float(memory["viscous_loss"]))

    def initial_q(self) -> np.ndarray:
        """Node positions at the start."""
        return self._start.ravel().copy()

    def initial_v(self) -> np.ndarray:
        """Node velocities at the start: of a body that turns about its centre of mass, added masses included, as if rigid."""
        arm = self._start - self.centre_of_mass(self._start)
        return np.asarray(self._velocity + np.cross(self._angular_velocity, arm)).ravel()

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """CSC pattern of the body's block of A."""
        return self._indptr, self._indices

    def update_elements(self, q: np.ndarray) -> None:
        """Update forces, energy and the count of inverted elements for positions q (3 n,), m; no work when q is the last one."""
        if same_numbers(q, self._updated_at):
            return
        self._started_from = self._quaternion.copy()
        self._updated_at[:] = q
        self._energy, self.inverted_elements = self._update(q.reshape(-1, 3))

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
        """Fill A = M/(theta dt) + alpha M + (theta dt + beta) K and b = M v/(theta dt) - f + f_ext (eq. 9 for theta = 1/2)."""
        implicit = settings.theta * settings.dt
        self.update_elements(q)
        if self._damped and not settings.conserving:
            self._update_damping(q, self._damps_at(q, v, settings))
        force = self.internal_force
        if settings.strain_damping > 0.0:
            self._evenness.begin(edge_lengths(q.reshape(-1, 3), self._edges[0]))
        if self.branches is not None:
            self.branches.begin(q, settings)
            force = force.copy()
            self.branches.add_forces(q.reshape(-1, 3), q.reshape(-1, 3) if settings.conserving else None, force)
        stiffness = self._stiffness_factor(settings) + self._beta
        if self._damped_alike and not settings.conserving and same_numbers(q, self._damped_at):
            np.multiply(self._damping_matrix().data, stiffness[0] / self._beta[0], out=data)  # quicker than to fill it again
            data[self._on_diagonal] += self._mass_factor(implicit) * self._row_mass
        else:
            self._fill_matrix(stiffness, self._mass_factor(implicit), data, self._branch_share(implicit, stiffness))
        self._fill_external(t + implicit, settings, external)
        np.multiply(self._row_mass, v, out=b)
        b /= implicit
        b += external
        b -= force.ravel()

    def _stiffness_factor(self, settings: StepSettings) -> float:
        """Factor of K in A, s: theta dt, and more where changes of strain are damped."""
        return settings.theta * settings.dt * (1.0 + 2.0 * self._evenness.damping(settings))

    def _fill_external(self, t: float, settings: StepSettings, external: np.ndarray) -> None:
        """Fill gravity and loads at a time, (3 n,) N."""
        force = external.reshape(-1, 3)
        np.multiply(self.node_mass[:, None], settings.gravity, out=force)
        if self.load is not None:
            load = np.asarray(self.load(t), dtype=np.float64)
            force += load if load.ndim == 2 else (self.node_mass / self.mass)[:, None] * load

    def moved(self, q: np.ndarray, v_hat: np.ndarray, time: float) -> np.ndarray:
        """Return q + time v_hat."""
        return np.asarray(q + time * v_hat)

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
        """Fill M (v_hat - v)/(theta dt) + alpha M v_hat + beta K v_hat + f - f_ext, f at ``moved``, K as :meth:`_damps_at` says.

        In an energy-momentum step beta is a viscosity of strain instead: beta/dt more of what damps changes of strain.
        """
        implicit = settings.theta * settings.dt
        self.update_elements(moved)
        force = self.internal_force
        x1 = (start.q + settings.dt * v_hat).reshape(-1, 3)
        self._step_stress = self._stress_room if settings.conserving else NO_STRESS
        if settings.conserving:
            force = np.empty_like(force)
            x0 = start.q.reshape(-1, 3)
            damping = self._evenness.damping(settings) + self._beta / settings.dt
            self._step_forces(x0, x1, damping, force, self._step_stress)
        if self.branches is not None:
            force = force if settings.conserving else force.copy()
            self.branches.add_forces(moved.reshape(-1, 3), x1 if settings.conserving else None, force)
        self._fill_external(start.t + implicit, settings, external)
        inertia[:] = self._row_mass * (v_hat - start.v) / implicit
        out[:] = inertia + self.elastic.rayleigh_alpha * self._row_mass * v_hat + force.ravel() - external
        if self._damped and not settings.conserving:
            out += self._damping_matrix() @ v_hat

    def _step_forces(self, x0: np.ndarray, x1: np.ndarray, damping: np.ndarray, force: np.ndarray, stress: np.ndarray) -> None:
        """Fill forces and stresses of an energy-momentum step, see :func:`momentum_kernels.step_forces`; damping (r,)."""
        step_forces(x0, x1, *self.point_elements(), damping, force, stress)

    @cached_property
    def _stress_room(self) -> np.ndarray:
        """Room for the stress of each point in an energy-momentum step, (m, p, 6)."""
        return np.empty((*self.point_elements().weight.shape, 6))

    def tangent(self, settings: StepSettings, data: np.ndarray) -> None:
        """Fill M/(theta dt) + alpha M + theta dt K of the last residual + beta K that damps (energy-momentum: the same K)."""
        self._stands_in = self._linearise(settings, data, positive=False)

    def positive_tangent(self, settings: StepSettings, data: np.ndarray) -> bool:
        """Fill the same with the stiffness of each element positive semidefinite; whether that was not filled already."""
        before = self._stands_in
        self._stands_in = self._linearise(settings, data, positive=True)
        return self._stands_in and not before

    def _linearise(self, settings: StepSettings, data: np.ndarray, *, positive: bool) -> bool:
        implicit = settings.theta * settings.dt
        viscous = self._stiffness_factor(settings) - implicit + (self._beta if settings.conserving else 0.0 * self._beta)
        stands_in = self._fill_tangent(implicit, viscous, self._mass_factor(implicit), data, positive=positive)
        if self._damped and not settings.conserving:
            data += self._damping_matrix().data
        return stands_in

    def _fill_tangent(self, elastic: float, viscous: np.ndarray, mass_factor: float, data: np.ndarray, *, positive: bool) -> bool:
        """Fill the CSC entries of mass_factor M + elastic K + viscous K, the latter as strain is damped, at the last update.

        ``viscous``, (r,), is of each material. Returns whether K is another one than it would be if not ``positive``.
        """
        stiffness = elastic + viscous
        self._fill_matrix(stiffness, mass_factor, data, self._branch_share(elastic, stiffness))
        return False

    def row_rotations(self) -> np.ndarray:
        """Rotation of each node at the last update, the mean of those of its elements."""
        out = np.empty((self.n_nodes, 3, 3))
        node_rotations(self.elements, self._rotation_of_elements(), out)
        return out

    def _mass_factor(self, implicit: float) -> float:
        return 1.0 / implicit + self.elastic.rayleigh_alpha

    def _branch_share(self, implicit: float, stiffness: np.ndarray) -> np.ndarray | None:
        """Shear modulus of the branches over that of the law, (r,), in a matrix with ``stiffness`` times K; None without any."""
        return None if self.branches is None else np.asarray(self.branches.stiffness * implicit / stiffness)

    @cached_property
    def _on_diagonal(self) -> np.ndarray:
        """Entries of the pattern on its diagonal, (3 n,)."""
        return np.flatnonzero(self._indices == np.repeat(np.arange(self.n_v), np.diff(self._indptr)))

    def _fill_damping(self, data: np.ndarray) -> None:
        """Fill the CSC entries of beta K of the laws alone at the last update, of what resists no turn."""
        self._fill_matrix(self._beta, 0.0, data)

    def _damps_at(self, q: np.ndarray, v: np.ndarray, settings: StepSettings) -> np.ndarray:
        """Positions (3 n,), m, whose K damps: q, or where v (3 n,) leads in half a step if the body turns on the way.

        K at the start would resist the way of a body that turns, and take its angular momentum.
        """
        turns = not settings.linear and self._turns(q, v, 0.5 * settings.dt)
        return q + 0.5 * settings.dt * v if turns else q

    def _turns(self, q: np.ndarray, v: np.ndarray, time: float) -> bool:
        """Whether the body moves mostly as a rigid one that turns, and so far in a time, s: by its angular momentum."""
        x, u, mass = q.reshape(-1, 3), v.reshape(-1, 3), self.node_mass[:, None]
        arm, speed = x - (mass * x).sum(axis=0) / mass.sum(), u - (mass * u).sum(axis=0) / mass.sum()
        weighted = mass * arm
        spin, second = weighted.T @ speed, weighted.T @ arm
        momentum = np.array([spin[1, 2] - spin[2, 1], spin[2, 0] - spin[0, 2], spin[0, 1] - spin[1, 0]])
        rate = np.linalg.solve(np.trace(second) * np.eye(3) - second, momentum)
        turning = float(momentum @ rate) > _MOSTLY * float((mass * speed * speed).sum())
        return turning and time * float(np.linalg.norm(rate)) > _TURNS

    def _update_damping(self, q: np.ndarray, place: np.ndarray) -> None:
        """Fill the matrix of damping at a place, perhaps another than q, (3 n,) m each; the elements are left as they were."""
        if place is q:
            self._fill_matrix(self._beta, 0.0, self._damping_matrix().data)
        elif not same_numbers(place, self._damped_at):
            started = self._started_from
            self.update_elements(place)
            self._fill_damping(self._damping_matrix().data)
            self._quaternion[:] = started
            self.update_elements(q)
        self._damped_at[:] = place

    def _damping_matrix(self) -> sp.csc_matrix:
        """Return beta K that damps; one matrix for all steps, since scipy checks the pattern of a new one."""
        if self._damping is None:
            data = np.empty(len(self._indices))
            self._damping = sp.csc_matrix((data, self._indices, self._indptr), shape=(self.n_v, self.n_v))
        return self._damping

    def advance(
        self,
        q: np.ndarray,
        v: np.ndarray,
        v_hat: np.ndarray,
        settings: StepSettings,
        q_new: np.ndarray,
        v_new: np.ndarray,
    ) -> None:
        """Fill q + dt v_hat and v + (v_hat - v)/theta; the branches of Prony terms go on."""
        self._evenness.end(settings)
        np.multiply(settings.dt, v_hat, out=q_new)
        q_new += q
        if self.branches is not None:
            self.branches.end(q, q_new, settings.dt)
        np.subtract(v_hat, v, out=v_new)
        v_new /= settings.theta
        v_new += v

    def calm(
        self, q: np.ndarray, v_hat: np.ndarray, v: np.ndarray, settings: StepSettings, held: np.ndarray, push: np.ndarray
    ) -> None:
        """Calm the edges of its tetrahedra, as stiff as these along them."""
        edges, stiffness = self._edges
        mobility = np.where(held[::3], 0.0, 1.0 / self.node_mass)
        if self._evenness.touched:
            v_hat = np.zeros_like(v_hat)
        impulse = CALMING * settings.strain_damping * settings.dt**2 * stiffness
        calm_edges(q.reshape(-1, 3), edges, impulse, mobility, v_hat.reshape(-1, 3), v.reshape(-1, 3), push.reshape(-1, 3))

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        young_modulus = np.array([one.young_modulus for one in self.mixture.materials])
        return edge_stiffness(self.rest, self.tets, young_modulus[self._drawn_material])

    def _edge_stiffness(self) -> np.ndarray:
        return self._edges[1]

    @property
    def _drawn_material(self) -> np.ndarray:
        """Which material each of its drawn tetrahedra has, (len(tets),)."""
        return np.repeat(self.mixture.of, len(self.tets) // len(self.elements))

    def touch(self, touched: bool) -> None:
        """Damp in full from the next step on, or less where it moves evenly."""
        self._evenness.touched = touched

    def inertia(self, q: np.ndarray, q_new: np.ndarray) -> sp.dia_matrix:
        """Masses of the nodes."""
        if self._inertia is None:
            self._inertia = sp.dia_matrix((self._row_mass[None], [0]), shape=(self.n_v, self.n_v))
        return self._inertia

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Linear momentum, kg m/s."""
        return np.asarray(self.node_mass @ v.reshape(-1, 3))

    def centre_of_mass(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass, (3,), m."""
        return np.asarray(self.node_mass @ q.reshape(-1, 3) / self.mass)

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic energy, J."""
        return float(0.5 * np.dot(self._row_mass * v, v))

    def elastic_energy(self, q: np.ndarray) -> float:
        """Elastic energy, J; with Prony terms, that of their springs at the end of the last step too."""
        self.update_elements(q)
        return self._energy if self.branches is None else self._energy + self.branches.energy

    def viscous_loss(self) -> float:
        """Energy that the dashpots of Prony terms have taken since the start, J."""
        return 0.0 if self.branches is None else self.branches.loss

    def _branch_points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Elements, gradients, weights and shear moduli for the branches."""
        points = self.point_elements()
        return points.elements, points.gradient, points.weight, points.lame_mu

    # ---- balance

    def balance(self, step: BodyStep) -> BodyForces:
        """Sum up the forces of a step; mass-proportional damping acts against the world."""
        outside = step.external.reshape(-1, 3).sum(axis=0)
        outside -= self.elastic.rayleigh_alpha * self.momentum(step.q, step.v_hat)
        magnitude = float(np.abs(step.b).sum() + np.abs(step.drive).sum())
        return BodyForces(outside, step.drive.reshape(-1, 3).sum(axis=0), None, 0.0, magnitude)

    def inside_out(self, q: np.ndarray) -> np.ndarray:
        """Tetrahedra that are inverted beyond recovery, (m,) bool: their volume is that at rest with the opposite sign, or more.

        The elastic laws push an inverted element back (that of Saint Venant and Kirchhoff does not always), so it may be
        inverted for a moment; only a step that went too far makes its mirror image, or more, of it.
        """

        def volume(x: np.ndarray) -> np.ndarray:
            return np.asarray(np.linalg.det(x[self.tets[:, 1:]] - x[self.tets[:, :1]]))

        return np.asarray(volume(q.reshape(-1, 3)) <= -volume(self.rest))

    # ---- contact

    def deforming(self, part: Part) -> Deforming | None:
        """Its surface, where the part has triangles."""
        return surface(self.rest, self.tets, part.nodes, part.triangles) if len(part.triangles) else None

    # ---- outputs

    what = "soft body"
    advice = "is a soft body; drive rigid bodies and grippers, or hold nodes of it by hold."

    def tetrahedra(self) -> SoftBody:
        """Its own nodes and tetrahedra."""
        return self

    def tetrahedra_at_start(self) -> Placed:
        """Return them with the nodes where they start."""
        return Placed(self.name, self._start, self.tets, self.n_nodes, self.middles)

    @cached_property
    def middles(self) -> np.ndarray:
        """Nodes in the middle of edges, each with the two ends of its edge, (k, 3); none where elements are linear."""
        number, ends = self.elements[:, 4:], np.sort(self.elements[:, EDGES], axis=2)
        return np.unique(np.column_stack([number.ravel(), ends[:, : number.shape[1]].reshape(-1, 2)]), axis=0)

    @cached_property
    def _surface(self) -> PressedSurface:
        return PressedSurface(self.tets, self.n_nodes, self.middles)

    def pressed_surface(self) -> PressedSurface:
        """Surface of its tetrahedra."""
        return self._surface

    def drawing(self, link: int) -> Drawing:
        """Tetrahedra at rest."""
        return Drawing("tetra", self.rest, self.tets)

    def frame(self, q: np.ndarray, v: np.ndarray, force: np.ndarray, names: Collection[str]) -> DrawnFrame:
        """Nodes with their fields, tetrahedra with those of elements."""
        x, force = q.reshape(-1, 3), force.reshape(-1, 3)
        fields = point_fields(x, self.rest, v.reshape(-1, 3), force, names)
        if "contact_pressure" in names:
            fields["contact_pressure"] = self._surface.pressure(x, force)
        return DrawnFrame(x, fields, self.element_fields(q, names))

    def element_fields(self, q: np.ndarray, names: Collection[str]) -> dict[str, np.ndarray]:
        """Fields of its drawn tetrahedra at positions q (3 n,), m.

        Those of ``von_mises`` (m,) Pa, of the Cauchy stress; ``cauchy_stress`` (m, 6) Pa: XX, YY, ZZ, XY, YZ, XZ, world frame;
        ``strain_energy_density`` (m,) J per m^3 at rest; ``rotation`` (m, 4): unit quaternion w, x, y, z of the rotation from
        rest, w >= 0; ``principal_stretches`` (m, 3), largest first; and ``material`` (m,), number in its mixture; that ``names``
        has. Stress of inverted elements is NaN.
        """
        self.update_elements(q)
        values: dict[str, Callable[[], np.ndarray]] = {
            "von_mises": self.von_mises,
            "cauchy_stress": lambda: self.stress,
            "strain_energy_density": lambda: self.energy_density,
            "rotation": lambda: self.rotations,
            "principal_stretches": lambda: self.principal_stretches,
            "material": lambda: self._drawn_material.astype(np.float64),
        }
        return {name: value() for name, value in values.items() if name in names}

    def marker(self, what: str, link: int, node: int | None, at: np.ndarray | None) -> Marker:
        """Marker at a node, or glued to the element that is nearest to a place, also outside it."""
        if at is None or node is not None:
            return super().marker(what, link, node, at)
        edges = self.rest[self.tets[:, 1:]] - self.rest[self.tets[:, :1]]
        inner = np.einsum("mi,mij->mj", at - self.rest[self.tets[:, 0]], np.linalg.inv(edges))
        weights = np.column_stack([1.0 - inner.sum(axis=1), inner])
        nearest = int(np.argmax(weights.min(axis=1)))
        if weights[nearest].min() < -4.0:
            low, high = (limits.round(4).tolist() for limits in (self.rest.min(axis=0), self.rest.max(axis=0)))
            raise InputError(
                f"{what}: at is {tuple(float(x) for x in at)} m, far outside {self.name!r}, which spans {low} to {high}; "
                "give a point in it or near it."
            )
        if weights[nearest].min() < 0.0:  # outside, where large elements far away have larger weights than small ones beside it
            within = np.maximum(weights, 0.0) / np.maximum(weights, 0.0).sum(axis=1, keepdims=True)
            nearest = int(np.argmin(np.linalg.norm(np.einsum("mi,mic->mc", within, self.rest[self.tets]) - at, axis=1)))
        return Marker(link, tuple(int(n) for n in self.tets[nearest]), tuple(float(w) for w in weights[nearest]))

    def describe(self) -> dict[str, Any]:
        """Its material, and those of its regions."""
        return self.mixture.describe()

    def surface_distance(self, points: np.ndarray) -> np.ndarray:
        """Distance to the closest triangle of its surface at the start."""
        return np.array([surface_patch(self.tetrahedra_at_start(), point, 0.0)[2] for point in points])

    def hold_frame(self, link: int, pose: np.ndarray, radius: float) -> PatchFrame:
        """Frame spread over the surface nodes within the radius."""
        started = self.tetrahedra_at_start()
        nodes, weights, _ = surface_patch(started, pose[:3], radius)
        return PatchFrame(started, nodes, weights, pose)
