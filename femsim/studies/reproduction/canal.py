"""The page of papers/000 and 002 (CANAL and SubADMM), section VII."""

from __future__ import annotations

from femsim.studies.reproduction import pouring, quadrupeds, single_step, tasks
from femsim.studies.reproduction.page import Evaluation, Section
from femsim.studies.reproduction.paper import published


def _lead() -> list[str]:
    """How the page is to be read."""
    return [
        "- The figures of the papers are not in the text that we have: the words on them stand beside our numbers.",
        f"- Times are CPU time of one thread in ms on a busy machine, with all of Python; the paper's are from "
        f"{published('machine', '000')}.",
        "- The residual is the paper's, |l - T(l - u)| over the number of contacts with impulses l = dt lam and the strict "
        "operator T, where the velocities u follow from the forces.",
        "- `canal` and `subadmm` have our defaults. `canal`, as printed, has the rule of the paper for the penalty, inner "
        "problems "
        "to 1e-10, and no acceleration.",
    ]  # fmt: skip


EVALUATION = Evaluation(
    "canal",
    "canal.md",
    "The tests of papers/000 and 002 (CANAL, SubADMM), ours beside the paper's",
    _lead,
    {
        "assembly": tasks.measure_assembly,
        "dishes": single_step.measure_dishes,
        "nuts": single_step.measure_nuts,
        "piling": tasks.measure_piling,
        "pouring": pouring.measure,
        "quadrupeds": quadrupeds.measure,
    },
    (
        Section(("I",), "Table I: models and solvers", ("dishes",), single_step.write_models),
        Section(("fig7",), "Figure 7: bolt and nut, single step", ("nuts",), single_step.write_nuts),
        Section(("assembly",), "Section VII-A2: a nut is screwed on by an arm", ("assembly",), tasks.write_assembly),
        Section(("fig9",), "Figure 9: dishes, single step", ("dishes",), single_step.write_dishes),
        Section(("piling",), "Section VII-B2: a pot is piled by a hand", ("piling",), tasks.write_piling),
        Section(("fig11",), "Figure 11: pouring", ("pouring",), pouring.write),
        Section(("II",), "Table II: inner methods of CANAL", ("dishes",), single_step.write_inner),
        Section(("III",), "Table III: splittings of ADMM", ("quadrupeds",), quadrupeds.write),
    ),
)
