"""The stress scenes of ``femsim selftest``: each ends as it states, short form of some; the judge can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import femsim as fs
from femsim.studies.selftest.scenes import chosen
from femsim.studies.selftest.stress import energy_created, run_stress

#: Quick ones of each kind: what must hold, what the verdict must name, what is refused.
QUICK = ("stack_rigid", "fall_ball", "young_1e+09", "micrometre", "plate_beyond_floor_rigid", "needle", "overlap_rigid",
         "overlap_deep", "spin_rod")  # fmt: skip


def test_there_are_sixty_and_names_are_unique() -> None:
    names = [stress.name for stress in chosen(())]
    assert len(names) >= 60 and len(set(names)) == len(names)


@pytest.mark.parametrize("name", QUICK)
def test_it_ends_as_it_states(name: str) -> None:
    (stress,) = chosen((name,))
    outcome = run_stress(stress)
    assert outcome.passed, outcome.text


def test_energy_from_nowhere_is_seen() -> None:
    """Work of 1 J, and then 0.5 J more than that."""
    steps = {name: np.array(values) for name, values in (
        ("kinetic_energy_J", [0.0, 1.0, 1.5]), ("elastic_energy_J", [0.0, 0.0, 0.0]), ("work_J", [0.0, 1.0, 1.0])
    )}  # fmt: skip
    assert energy_created(steps, 1e-9) == pytest.approx(0.5 / 1.5)


def test_a_scene_that_runs_although_it_must_be_refused_fails() -> None:
    (stack,) = chosen(("stack_rigid",))
    outcome = run_stress(replace(stack, refused="overlap"))
    assert not outcome.passed and "must be refused" in outcome.text


def test_unknown_names_are_said() -> None:
    with pytest.raises(fs.InputError, match="stack_rigit"):
        chosen(("stack_rigit",))
