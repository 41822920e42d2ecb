"""Bodies without contact keep the momentum that the forces on them leave: what rounding took is given back.

The equations of a step keep linear momentum exactly, since inner forces cancel. Numbers do not: the entries of A by which they
cancel are rounded, so a stiff body loses a part eps k dt^2 / m of its momentum in each step, k being the stiffness and m the mass
of a node. A translation changes no inner force, so that part is one velocity for all of the body.
What is more than rounding can be is left as it is: it is a defect, and the balance of the body shows it. Robots, whose momenta
are counted apart from the speeds of their joints, take the impulses of gravity and loads instead of those that the solver found
to its tolerance.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from contact import ContactProblem
from contact.metrics import any_of
from femsim.model.bodies.body import BodyStep, StepSettings
from femsim.step.state import State
from femsim.step.system import System

#: Rounding of the sum of the forces on a body, over the sum of the magnitudes of A_ii v_i.
_ROUNDINGS = 32.0 * np.finfo(np.float64).eps


def keep_momentum(
    system: System,
    settings: StepSettings,
    problem: ContactProblem,
    v_hat: np.ndarray,
    lam: np.ndarray,
    old: State,
    new: State,
    driven: Collection[int],
) -> None:
    """Give bodies the linear momentum that the impulses of a step leave them, where nothing holds them.

    Bodies with prescribed velocities, couplings or contact forces stay as they are: there a change of velocity, however small,
    would be one of the contact velocity.

    Parameters
    ----------
    system : System
        The bodies.
    settings : StepSettings
        Settings of the step.
    problem : ContactProblem
        The last one of the step.
    v_hat : ndarray, (n,)
        Its answer.
    lam : ndarray, (nc, 3), N
        Contact forces that act.
    old, new : State
        Start and end of the step; the velocities of ``new`` are changed.
    driven : collection of int
        Bodies that a motion drives.
    """
    coupled = system.coupled
    pushed = problem.pushed(lam) if any_of(lam) else None
    for k, (body, q, v) in enumerate(zip(system.bodies, system.q_slices, system.v_slices, strict=True)):
        by_motion = body.driven_rows()
        if k in coupled or k in driven or len(system.prescribed[v].nonzero()[0]) > len(by_motion):
            continue
        outside = slice(v.start, v.start + 6) if body.kind == "generalized" else v  # limits of joints push within the body
        if pushed is not None and any_of(pushed[outside]):
            continue
        if body.kind == "generalized":
            body.fly(old.q[q], old.v[v], v_hat[v], system.external[v], settings.dt, new.q[q], new.v[v])
            continue
        nothing = np.zeros(body.n_v)
        step = BodyStep(
            old.q[q], old.v[v], new.q[q], new.v[v], v_hat[v], system.b[v], system.external[v], nothing, settings.dt, False
        )
        forces = body.balance(step)
        if forces.held.any():
            continue
        lost = body.momentum(old.q[q], old.v[v]) + settings.dt * forces.outside - body.momentum(new.q[q], new.v[v])
        if np.abs(lost).max() <= _ROUNDINGS * settings.dt * float(problem.diagonal[v] @ np.abs(v_hat[v])):
            new.v[v].reshape(-1, 3 if body.kind == "nodes" else 6)[:, :3] += lost / body.mass
