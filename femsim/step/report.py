"""What a step reports: solution, residuals, contacts, energies, balance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from contact import Metrics, Solution
from femsim.step.contacts import ContactForces, StepContacts
from femsim.step.vitals import Vitals

#: What acted in each body and coupling, by its name: arrays by name.
Acted = dict[str, dict[str, np.ndarray]]


@dataclass
class StepReport:
    """What one step did; the columns of steps.csv.

    Attributes
    ----------
    step : int
        Number of the step, from 1.
    time : float, s
        Time at its end.
    solution : Solution
        Answer of the solver.
    metrics : Metrics
        Residuals of the answer on the contact problem itself (not the nodal one), by the yardstick.
    forces : ContactForces
        Contact forces on parts and nodes.
    max_penetration : float, m
        Largest penetration at the end of the step.
    max_slip : float, m/s
        Largest tangential speed of a pressing contact.
    kinetic_energy, elastic_energy, work : float, J
        Energies at the end of the step, and work of gravity, loads and drives since the start.
    momentum : ndarray, (3,), kg m/s
        Linear momentum of all bodies.
    wrench_balance : float
        Worst body's |rate of momentum - gravity - loads - contact forces - drive|, relative to the net force on it.
    mount : dict of str to ndarray
        Wrench of the drive on each driven body and on each hold of soft nodes, (6,).
    inverted_elements : int
        Elements with negative volume at the end of the step.
    potential_energy : float, J
        Of gravity at the end of the step, zero at the world's origin.
    friction_loss : float, J
        Work that friction of contacts has taken since the start, of impacts with restitution no more than these took in all.
    acted : dict of str to dict of str to ndarray
        What acted in each body and coupling, by its name: wrenches of rod ends, forces of joints, pressures.
    parts : tuple of (float, StepContacts)
        Length (s) and contacts of each sub-step, see ``femsim.step.advance``; one if the step was not halved.
    nonlinear_residual : float
        What the equations of the step lack with all forces at its end, see :meth:`femsim.step.system.System.residual`.
    solves : int
        Contact problems solved, one for each linearisation.
    viscous_loss : float, J
        What the viscous branches of all bodies have taken since the start.
    joint_loss : float, J
        What damping and dry friction of joints have taken since the start; ``work`` is less by it.
    other_loss : float, J
        What ``work`` since the start is more than other losses and the energy gained: material damping, impacts and the time step
        took it.
    sank : bool
        Whether bodies ended so much deeper in each other that halves of the step are worth a try.
    spared : bool
        Whether bodies ended deeper in each other than they may, or went further than contacts were looked for, where some were
        left out that others seemed to hold.
    gained : bool
        Whether it made so much energy from nothing that halves of it are worth a try.
    time_error : float, m
        Estimated local error of the step, see :func:`femsim.step.adaptive.local_error`; 0 where its length is fixed.
    theta : float
        Integration parameter of the step: 1 where backward Euler took one that the energy-momentum scheme could not solve.
    unbalanced, lacking : int
        Number of the body whose forces balance worst, and of the one that has the largest share in the nonlinear residual; -1
        where everything holds exactly.
    contradicting : tuple of str
        Joints that ask for what cannot be together, where the step is infeasible; of the last sub-step.
    leaders : tuple of str
        What leads what these joints hold, in words: exact motions, holds, fixed nodes.
    vitals : Vitals
        What it says about the health of the run beside its residuals.
    ends : tuple of (float, ndarray, ndarray)
        Integration parameter of each sub-step, and the coordinates and velocities at its end.
    """

    step: int
    time: float
    solution: Solution
    metrics: Metrics
    forces: ContactForces
    max_penetration: float
    max_slip: float
    kinetic_energy: float
    elastic_energy: float
    work: float
    momentum: np.ndarray
    wrench_balance: float
    mount: dict[str, np.ndarray]
    inverted_elements: int
    potential_energy: float
    friction_loss: float
    acted: Acted
    parts: tuple[tuple[float, StepContacts], ...]
    nonlinear_residual: float
    solves: int
    viscous_loss: float = 0.0
    joint_loss: float = 0.0
    other_loss: float = 0.0
    sank: bool = False
    spared: bool = False
    gained: bool = False
    time_error: float = 0.0
    theta: float = 1.0
    unbalanced: int = -1
    lacking: int = -1
    contradicting: tuple[str, ...] = ()
    leaders: tuple[str, ...] = ()
    vitals: Vitals = field(default_factory=Vitals)
    ends: tuple[tuple[float, np.ndarray, np.ndarray], ...] = ()

    @property
    def contacts(self) -> StepContacts:
        """Contacts and their forces; those of the last sub-step."""
        return self.forces.contacts

    @property
    def halved(self) -> bool:
        """Whether it was taken in sub-steps because it failed, not because an adaptive step asked for them."""
        return len(self.parts) > 1 and self.time_error == 0.0

    @property
    def finite(self) -> bool:
        """Whether the step gave finite numbers."""
        return self.solution.status != "failed" and math.isfinite(self.kinetic_energy) and math.isfinite(self.elastic_energy)
