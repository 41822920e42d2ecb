"""What is wrong in each mutant of `mutants.py`, and which tests must see it: the tables of all rooms, group after group."""

from __future__ import annotations

import mutants_of_contact
import mutants_of_model
import mutants_of_runs
import mutants_of_step
from mutant import Mutant

GROUPS = ("physics", "sensors", "energies", "judges")
#: The folders whose files each table changes.
TABLES: dict[tuple[str, ...], tuple[Mutant, ...]] = {
    ("contact/",): mutants_of_contact.MUTANTS,
    ("femsim/model/",): mutants_of_model.MUTANTS,
    ("femsim/step/",): mutants_of_step.MUTANTS,
    ("femsim/run/", "femsim/scene/", "femsim/studies/"): mutants_of_runs.MUTANTS,
}
MUTANTS = tuple(sorted((one for table in TABLES.values() for one in table), key=lambda one: GROUPS.index(one.group)))
