"""What a step did, read from its solution and its two states; reading changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from contact.compiled import Fixed
from contact.metrics import norm
from contact.metrics_kernels import NET_FRACTION, NOISE_FRACTION, TINY
from femsim.base.wrenches import move_wrench
from femsim.model.bodies.body import BodyStep, StepSettings
from femsim.model.holds import held_wrench
from femsim.scene.scene import Scene
from femsim.step.contacts import ContactForces
from femsim.step.end_velocity import EndVelocity
from femsim.step.newton import Solved, measured
from femsim.step.prescribed import held_points, leaders_of
from femsim.step.report import StepReport
from femsim.step.residual_kernels import sum_on_bodies
from femsim.step.rows_kernels import largest_slip
from femsim.step.state import State
from femsim.step.system import System

# every step hands over the same kinds of arrays
_sum_on_bodies = Fixed(sum_on_bodies)


def measure(
    scene: Scene,
    system: System,
    settings: StepSettings,
    solved: Solved,
    end: EndVelocity,
    forces: ContactForces,
    old: State,
    new: State,
    max_penetration: float,
    still: float,
    owner: np.ndarray,
) -> StepReport:
    """Report a step: residuals by the yardstick, energies, momentum, wrenches of drives and the balance of forces.

    The 11 parameters are all that is known at the end of a step, since nothing is worked out twice.

    Parameters
    ----------
    scene : Scene
        What is simulated.
    system : System
        As the step assembled it.
    settings : StepSettings
        Settings of the step.
    solved : Solved
        The last contact problem of the step, its answer and the nonlinear residual.
    end : EndVelocity
        Velocities at the end, and the forces that lead to them.
    forces : ContactForces
        What these mean for parts and nodes.
    old, new : State
        Start and end of the step.
    max_penetration : float, m
        Largest penetration at the end.
    still : float, m/s
        Speed that counts as none: a balance of forces is relative at least to the force that makes it.
    owner : ndarray, (np,)
        Body of each part, see :attr:`femsim.step.contacts.Contacts.owner`.
    """
    problem, solution = solved.problem, solved.solution
    dt = problem.dt
    friction_loss = old.friction_loss - float(end.work[:, 1:].sum()) - end.friction_beyond
    reaction = system.reaction(solution.v, forces.generalized + system.joints.pushed()) + end.held
    work = old.work + dt * float((system.external + reaction) @ solution.v)
    work += end.driving + dt * sum(coupling.power for coupling in system.couplings)
    joint_loss = old.joint_loss + dt * sum(coupling.lost for coupling in system.couplings)
    contact_force, force_sum = _on_bodies(owner, forces, len(system.bodies))
    momentum, kinetic, elastic, potential, balance = np.zeros(3), 0.0, 0.0, 0.0, 0.0
    inverted, unbalanced = 0, -1
    mount: dict[str, np.ndarray] = {}
    for index, (body, q, v) in enumerate(zip(system.bodies, system.q_slices, system.v_slices, strict=True)):
        own = body.balance(
            BodyStep(
                old.q[q], old.v[v], new.q[q], new.v[v], solution.v[v], system.b[v], system.external[v], reaction[v], dt,
                index in scene.motions,
            )
        )  # fmt: skip
        after = body.momentum(new.q[q], new.v[v])
        rate = (after - body.momentum(old.q[q], old.v[v])) / dt
        contact = contact_force[index]
        couplings = system.coupling_forces(index)
        # relative to the largest force: net contact, outside, of the drive, of a coupling (see metrics.balance)
        largest = max(norm(contact), norm(own.outside), norm(own.held), *map(norm, couplings))
        mass = body.mass
        least = max(mass * still / dt, TINY)  # finite, also where forces are not
        scale = max(least, largest, NET_FRACTION * float(force_sum[index]), NOISE_FRACTION * own.magnitude)
        lacking = rate - own.outside - own.held - contact
        left = norm(lacking - couplings.sum(axis=0) if len(couplings) else lacking) / scale
        balance, unbalanced = max(balance, left), index if left > balance else unbalanced
        if own.drive is not None:
            mount[body.name] = own.drive
        work += dt * own.power
        joint_loss += dt * own.lost
        work -= dt * body.damping_power(solution.v[v])
        momentum += after
        kinetic += body.kinetic_energy(new.q[q], new.v[v])
        elastic += body.elastic_energy(new.q[q])
        potential -= mass * float(scene.gravity @ body.centre_of_mass(new.q[q]))
        inverted += body.inverted_elements
    mount |= dict(driven for coupling in system.couplings if (driven := coupling.mounted()) is not None)
    if scene.holds:
        acted = replace(old, q=old.q + settings.theta * (new.q - old.q))
        late = np.zeros_like(reaction) if forces.late is None else end.held - forces.late
        _add_holds(mount, scene, system, ((acted, reaction - late), (new, late)))
    contradicting = system.joints.names(solution.details.get("contradicting_rows", ()))
    return StepReport(
        old.step + 1, new.t, solution, measured(problem, solution), forces, max_penetration,
        largest_slip(forces.contacts.state, forces.contacts.u), kinetic, elastic, work, momentum, balance, mount, inverted,
        potential, friction_loss, system.acted(), ((dt, forces.contacts),), solved.residual, solved.solves,
        viscous_loss=sum(body.viscous_loss() for body in system.bodies),
        unbalanced=unbalanced, lacking=system.lacks_most(),
        joint_loss=joint_loss,
        contradicting=contradicting,
        leaders=leaders_of(scene, system, contradicting) if contradicting else (),
    )  # fmt: skip


def _on_bodies(owner: np.ndarray, forces: ContactForces, bodies: int) -> tuple[np.ndarray, np.ndarray]:
    """Sum of the contact forces on each body, (bodies, 3), N, and of their sizes, (bodies,), N; without those on obstacles.

    ``owner`` (np,) is the body of each part.
    """
    force, size = np.empty((bodies, 3)), np.empty(bodies)
    _sum_on_bodies(owner, forces.wrench, forces.force_sum, force, size)
    return force, size


def _add_holds(mount: dict[str, np.ndarray], scene: Scene, system: System, reactions: Sequence[tuple[State, np.ndarray]]) -> None:
    """Add the wrenches on held nodes to those of drives; a body that holds nodes bears theirs too.

    Each of the ``reactions`` on prescribed rows, (n,), N and N m, acts where a state has the bodies: first those of the step, at
    places by which positions are linear in it, where springs act too, then those at its end. Of these only positions are read.
    """
    for hold in scene.holds:
        acting = []
        for state, reaction in reactions:
            points = held_points(system, hold, state)
            forces = reaction[system.v_slices[hold.body].start + hold.rows].reshape(-1, 3)
            acting.append((state, points.mean(axis=0), held_wrench(points, forces, points.mean(axis=0))))
        if hold.gives_way:
            acting = [(*acting[0][:2], mount[hold.name])]
        mount[hold.name] = np.sum([wrench for _, _, wrench in acting], axis=0)
        if hold.leader < 0:
            continue
        leader = system.bodies[hold.leader].name
        for state, mean, wrench in acting:
            arm = mean - state.q[system.q_slices[hold.leader]][:3]
            mount[leader] = mount[leader] + np.concatenate([wrench[:3], move_wrench(wrench[:3], wrench[3:], arm)])
