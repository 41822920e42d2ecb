"""The stress scenes of ``femsim selftest``: each ends as it states, short form of some; the judge can fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import femsim as fs
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper
from femsim.studies.selftest.scenes import chosen
from femsim.studies.selftest.stress import MOST_STEPS, Holds, Watch, duration_of, energy_created, run_stress

#: Quick ones of each kind: what must hold, what the verdict must name, what is refused.
QUICK = ("stack_rigid", "fall_ball", "young_1e+09", "micrometre", "plate_beyond_floor_rigid", "needle", "overlap_rigid",
         "overlap_deep", "spin_rod", "tower_mixed_2", "brick_between_nodes")  # fmt: skip


def test_there_are_sixty_and_names_are_unique() -> None:
    names = [stress.name for stress in chosen(())]
    assert len(names) >= 60 and len(set(names)) == len(names)


@pytest.mark.parametrize("name", QUICK)
def test_it_ends_as_it_states(name: str) -> None:
    (stress,) = chosen((name,))
    outcome = run_stress(stress)
    assert outcome.passed, outcome.text


def test_energy_from_nowhere_is_seen() -> None:
    """Work of 1 J, and then 0.5 J more than that; or as much that friction takes away at once."""
    steps = {name: np.array(values) for name, values in (
        ("kinetic_energy_J", [0.0, 1.0, 1.5]), ("elastic_energy_J", [0.0, 0.0, 0.0]), ("work_J", [0.0, 1.0, 1.0]),
        ("friction_loss_J", [0.0, 0.0, 0.0]), ("viscous_loss_J", [0.0, 0.0, 0.0]),
    )}  # fmt: skip
    assert energy_created(steps, 1e-9) == pytest.approx(0.5 / 1.5)
    steps |= {"kinetic_energy_J": np.array([0.0, 1.0, 1.0]), "friction_loss_J": np.array([0.0, 0.0, 0.5])}
    assert energy_created(steps, 1e-9) == pytest.approx(0.5)


def test_a_scene_that_runs_although_it_must_be_refused_fails() -> None:
    (stack,) = chosen(("stack_rigid",))
    outcome = run_stress(replace(stack, refused="overlap"))
    assert not outcome.passed and "must be refused" in outcome.text


def test_a_wrong_verdict_where_every_bound_holds_fails() -> None:
    """A plate through a box below the floor: no bound that is wide enough makes it right."""
    (stress,) = chosen(("plate_beyond_floor_rigid",))
    wide = Holds(energy=np.inf, penetration=1.0, inverted=99, below=-1.0)
    outcome = run_stress(replace(stress, holds=wide, may_name=()))
    assert not outcome.passed and "every bound holds, but the verdict is wrong and names infeasible" in outcome.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_the_command_and_not_only_one_scene(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., tuple[int, str, str]]
) -> None:
    """It comes in the second of three scenes; the page has the first."""
    steps: list[str] = []
    step = Watch.step

    def signalled(self: Watch, stepper: Stepper, report: StepReport) -> None:
        steps.append(stepper.scene.bodies[0].name)
        if len(set(steps)) == 2:
            os.kill(os.getpid(), number)
        step(self, stepper, report)

    monkeypatch.setattr(Watch, "step", signalled)
    names = ("spin_rod", "overlap_rigid", "micrometre")
    page = tmp_path / "page.md"
    status, out, err = call("selftest", *names, "--out", str(page))
    assert (status, err) == (130, "femsim: interrupted.\n"), (out, err)
    assert len(set(steps)) == 2 and len(out.splitlines()) == 1 and "spin_rod" in out
    text = page.read_text(encoding="utf-8")
    assert "1 of 1 ended as they state. The other 2 of 3 have not run yet." in text
    assert "| spin_rod |" in text and "| overlap_rigid |" not in text


def test_unknown_names_are_said() -> None:
    with pytest.raises(fs.InputError, match="stack_rigit"):
        chosen(("stack_rigit",))


def test_the_long_form_is_ten_seconds_or_so_many_steps() -> None:
    """A cube of 1 um in steps of 10 us would take a million."""
    (small,), (cube,) = chosen(("micrometre",)), chosen(("young_1e+04",))
    assert duration_of(small, small.build().dt, True) == pytest.approx(MOST_STEPS * 1e-5)
    assert duration_of(cube, cube.build().dt, True) == 10.0
    assert duration_of(cube, cube.build().dt, False) == cube.short
