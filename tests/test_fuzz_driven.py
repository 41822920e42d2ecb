"""Random scenes of what is driven: one of each kind, and that each check sees the fault that it is there for."""

from __future__ import annotations

from dataclasses import replace

import fuzz_driven
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

STRAIGHT = Rotation.identity()


@pytest.fixture(autouse=True)
def kernels_may_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any step, which then takes what it takes."""
    monkeypatch.setattr(fuzz_driven, "STEP_SECONDS", 1e3)
    monkeypatch.setattr(fuzz_driven, "SECONDS", 1e4)


def first_of(kind: str, floor: bool) -> int:
    """Number of the first scene of one thing of a kind, by the default solver and by steps of one length."""
    drawn = ((number, fuzz_driven.draw(2, number)) for number in range(400))
    return next(
        number for number, one in drawn
        if [name for name, _ in one.things] == [kind] and one.floor == floor and one.solver == "auto"
        and one.settings["dt"] != "auto" and "theta" not in one.settings
    )  # fmt: skip


@pytest.mark.parametrize("kind", sorted(fuzz_driven.KINDS))
def test_nothing_is_found(kind: str) -> None:
    told = fuzz_driven.examine(2, first_of(kind, floor=kind == "inflated"), 8, twin=kind in ("robot", "held"))
    assert told["verdict"] == "good" and not told["found"], told
    assert told["work"] and kind in fuzz_driven.table([told])


def test_each_check_sees_its_fault() -> None:
    """Planted in what a run told: nothing touches, so that work is known sharply."""
    drawn = fuzz_driven.draw(2, first_of("held", floor=False))
    seen = fuzz_driven.run(drawn, STRAIGHT, 6)
    assert not fuzz_driven.check(drawn, seen) and not seen.touched
    work, more = np.array(seen.work), 0.05 * seen.size
    for fault, words in (
        (replace(seen, work=list(work - more)), "energy grows"), (replace(seen, table=list(work + more)), "work in the table"),
        (replace(seen, unbalanced=(0.01, "bar")), "change of its momentum"), (replace(seen, apart=(1e-6, "bar")), "opposite"),
        (replace(seen, seconds=[9e3]), "a step takes 9e+03 s"), (replace(seen, energy=[np.nan]), "not finite"),
    ):  # fmt: skip
        assert any(words in one for one in fuzz_driven.check(drawn, fault)), words


def test_twins_see_a_run_that_is_not_turned_and_a_state_that_is_not_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, build = fuzz_driven.draw(2, first_of("held", floor=False)), fuzz_driven.build
    seen = fuzz_driven.run(drawn, STRAIGHT, 4)
    monkeypatch.setattr(fuzz_driven, "build", lambda one, turned, **settings: build(one, STRAIGHT, **settings))
    assert "turned it ends" in fuzz_driven.twins(drawn, seen, 4)[0]
    monkeypatch.setattr(fuzz_driven.fs.Simulation, "restore", lambda self, saved: None)
    found = " ".join(fuzz_driven.same_bits(drawn, 2))
    assert "restored" in found and "from a file" in found and "reset" in found and "a fork" not in found
