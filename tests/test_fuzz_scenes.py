"""Random scenes: a few of them, that they are always the same, and that each check sees the fault that it is there for."""

from __future__ import annotations

from dataclasses import replace

import fuzz_scenes
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

STRAIGHT = Rotation.identity()


@pytest.fixture(autouse=True)
def kernels_may_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any step, which then takes what it takes."""
    monkeypatch.setattr(fuzz_scenes, "STEP_SECONDS", 1e3)
    monkeypatch.setattr(fuzz_scenes, "SECONDS", 1e4)


def in_space(number: int) -> bool:
    return fuzz_scenes.draw(7, number).ground == "space"


@pytest.mark.parametrize("number", [3, 5, 8])
def test_nothing_is_found(number: int) -> None:
    told = fuzz_scenes.examine(7, number, 10, turn=True)
    assert told["verdict"] == "good" and not told["found"], told


def test_contacts_follow_so_long_that_a_turned_scene_ends_alike() -> None:
    """Where they stopped was decided by rounding: after twelve steps bodies were 0.09 of their size apart. Here none stops."""
    told = fuzz_scenes.examine(1, 5054, 12, turn=True)
    assert told["verdict"] == "good" and not told["found"], told


def test_a_scene_is_always_the_same() -> None:
    one, other = (fuzz_scenes.run(fuzz_scenes.draw(7, 5), STRAIGHT, 4) for _ in range(2))
    assert np.array_equal(one.momenta, other.momenta) and one.rows[-1]["kinetic_energy_J"] == other.rows[-1]["kinetic_energy_J"]
    assert len({str(fuzz_scenes.draw(7, number).settings) for number in range(30)}) > 5


def test_each_check_sees_its_fault() -> None:
    """Planted in what a run told, on a floor and in space."""
    drawn = next(fuzz_scenes.draw(7, n) for n in range(100) if fuzz_scenes.draw(7, n).ground == "floor")
    told = fuzz_scenes.run(drawn, STRAIGHT, 12)
    assert not fuzz_scenes.check(drawn, told)
    more = [row | {"elastic_energy_J": row["elastic_energy_J"] + 0.1 * (k > 5)} for k, row in enumerate(told.rows)]
    aside = told.forces + np.array((5.0, 0.0, 0.0))
    for fault, words in (
        (replace(told, rows=more), "energy grows"), (replace(told, forces=told.forces * 1.5 + 1e-3), "differ from the momentum"),
        (replace(told, forces=aside), "cone of friction"), (replace(told, least=-0.5 * drawn.size), "in the ground"),
        (replace(told, seconds=[9e3]), "a step takes 9e+03 s"),
    ):  # fmt: skip
        assert any(words in one for one in fuzz_scenes.check(drawn, fault)), words
    drawn = next(fuzz_scenes.draw(7, n) for n in range(100) if in_space(n) and "theta" not in fuzz_scenes.draw(7, n).settings)
    told = fuzz_scenes.run(drawn, STRAIGHT, 4)
    assert not fuzz_scenes.check(drawn, told)
    grown = np.linspace(1.0, 1.1, len(told.spins))[:, None]
    assert "angular momentum" in " ".join(fuzz_scenes.check(drawn, replace(told, spins=told.spins * grown)))
    assert "momentum changes" in " ".join(fuzz_scenes.check(drawn, replace(told, momenta=told.momenta + grown)))


def test_an_error_is_a_finding_and_a_sentence_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(fuzz_scenes, "run", fail)
    told = fuzz_scenes.examine(7, 3, 10, turn=False)
    assert "ZeroDivisionError" in told["found"][0]

    def refuse(*_: object, **__: object) -> None:
        raise fuzz_scenes.fs.InputError("too large")

    monkeypatch.setattr(fuzz_scenes, "run", refuse)
    told = fuzz_scenes.examine(7, 3, 10, turn=False)
    assert told["verdict"] == "refused" and not told["found"]
    page = fuzz_scenes.report([told], "a command")
    assert "| 1 | 1 | 0 |" in page and "too large" in page
