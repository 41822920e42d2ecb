"""What a step reports: solution, residuals, contacts, energies, balance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from contact import Metrics, Solution
from femsim.step.contacts import StepContacts


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
    contacts : StepContacts
        Contacts and their forces.
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
        Work that friction has taken since the start.
    parts : tuple of (float, StepContacts)
        Length (s) and contacts of each part that the step was taken in, see ``femsim.step.advance``; one if it was not halved.
    """

    step: int
    time: float
    solution: Solution
    metrics: Metrics
    contacts: StepContacts
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
    parts: tuple[tuple[float, StepContacts], ...]

    @property
    def finite(self) -> bool:
        """Whether the step gave finite numbers."""
        return self.solution.status != "failed" and math.isfinite(self.kinetic_energy) and math.isfinite(self.elastic_energy)
