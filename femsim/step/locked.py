"""Contacts that friction locks: forces that cancel one another there have no bound, and no force undoes an overlap.

Where a linkage presses its finger on a floor at an angle at which friction holds it whatever presses, or where a peg touches both
sides of a rigid hole, contact forces may grow together without moving anything. To push parts out of an overlap of rounding, a
step would then let them grow until rounding or its solver ends it. Such an overlap stays as it is instead.
"""

from __future__ import annotations

import math

import numpy as np

from contact import ContactProblem
from contact.metrics import any_of
from contact.metrics_kernels import TINY
from femsim.model.bodies.body import StepSettings
from femsim.model.contact_rules import ContactRules
from femsim.step.report import StepReport
from femsim.step.state import State
from femsim.step.system import System

#: Steps that push nothing apart after one that only found bounded forces so.
UNPUSHED = 8
#: Forces run away that are so many times those of the step before, and as what carries all bodies, stops them in a step and
#: undoes their overlap.
_GROWN = 10.0
#: Deepest overlap that may stay, in contact margins.
_SHALLOW = 1e-2


def usual_force(system: System, settings: StepSettings, state: State) -> float:
    """Force, N, that carries all bodies and stops them within a step where they are in a state."""
    moving = zip(system.bodies, system.q_slices, system.v_slices, strict=True)
    energy = sum(body.kinetic_energy(state.q[q], state.v[v]) for body, q, v in moving)
    mass = sum(body.mass for body in system.bodies)
    return mass * float(np.linalg.norm(settings.gravity)) + math.sqrt(2.0 * mass * energy) / settings.dt


def undoing_force(gap: np.ndarray, problem: ContactProblem, rules: ContactRules) -> np.ndarray:
    """Force, N, (nc,), that undoes the overlap of each contact, of gaps in m, as fast as a step does where nothing else resists.

    In zero gravity, and beside stiff bodies, it is far above what carries them, and no sign that anything is locked.
    """
    speed = np.minimum(rules.correction * np.maximum(-gap, 0.0) / problem.dt, rules.max_correction)
    return speed / np.maximum(problem.compliance[:, 0], TINY)


def runs_away(
    report: StepReport,
    before: State,
    system: System,
    settings: StepSettings,
    margin: float,
    problem: ContactProblem,
    rules: ContactRules,
) -> bool:
    """Whether contacts press so much more than in the step before, ``before``, that undoing their overlaps may be why.

    Parameters
    ----------
    report : StepReport
        Of the step.
    before : State
        Where it started.
    system, settings : System and StepSettings
        What it moved, and how.
    margin : float, m
        Contact margin of the scene.
    problem, rules : ContactProblem and ContactRules
        Its contact problem, and how fast overlaps are undone.
    """
    if report.solution.status == "infeasible":
        return False
    pressed = before.pressed if len(before.pressed) else np.zeros_like(report.forces.force_sum)
    grown = report.forces.force_sum > _GROWN * pressed
    if not any_of(grown):
        return False
    contacts = report.contacts
    size = np.linalg.norm(contacts.force, axis=1)
    usual = usual_force(system, settings, before)
    pushed = (contacts.gap < 0.0) & (size > _GROWN * usual) & grown[contacts.part].any(axis=1)
    if not pushed.any() or -float(contacts.gap[pushed].min()) > _SHALLOW * margin:
        return False
    return bool((pushed & (size > _GROWN * (usual + undoing_force(contacts.gap, problem, rules)))).any())


def calmer(report: StepReport, first: StepReport) -> bool:
    """Whether a step that pushed nothing apart is solved by forces so much smaller than those of the first that it counts."""
    if not (report.finite and report.solution.converged):
        return False
    return not first.solution.converged or report.forces.force_sum.max() * _GROWN < first.forces.force_sum.max()


def locked_parts(report: StepReport, first: StepReport) -> tuple[int, ...]:
    """Parts whose contacts press much less where nothing is pushed apart than they did in the first step."""
    much = first.forces.force_sum > _GROWN * report.forces.force_sum
    return tuple(np.flatnonzero(much & (report.forces.force_sum > 0.0)).tolist())
