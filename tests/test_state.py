"""A state by itself: each of its numbers is copied, saved, read and compared; files that are damaged are refused."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import femsim as fs
from femsim.step.force_memory import ForceMemory
from femsim.step.state import VERSION, State


def full_state() -> State:
    """Every field differs from its default, and all numbers from one another."""
    forces = [ForceMemory(np.array([3, 5 + k]), np.full((2, 3), 0.1 * k)) for k in (1, 2)]
    couplings = {"rest": np.array([13.0])}, {"rest": np.array([14.0])}
    return State(
        np.array([1.0, 2.0, -0.0]), np.array([3.0, 4.0]), 0.5, np.array([5.0, 6.0]), 7, 8.5, 9.5, True,
        ({"strain": np.array([[10.0, 11.0]]), "count": np.array(12)}, {}), couplings, tuple(forces),
        {"slid/slip": np.array(15.0), "seen/noise": np.array([16, 17], dtype=np.uint64)}, 0.25, 18, True,
        np.array([[19.0, 20.0], [21.0, 22.0]]), 23.5, True, 24.5, 25, 26,
        np.array([27.0, 28.0]), 29,
    )  # fmt: skip


def assert_same(a: State, b: State) -> None:
    """Field by field, without the comparison of the class."""
    for one in fields(State):
        x, y = getattr(a, one.name), getattr(b, one.name)
        if one.name == "contacts":
            x, y = ([vars(forces) for forces in state.contacts] for state in (a, b))
        assert type(x) is type(y) and repr(x) == repr(y), one.name


def test_every_field_has_a_value_of_its_own() -> None:
    """So that the tests below see each of them, also one that is added."""
    state, plain = full_state(), State(np.zeros(3), np.zeros(2), 0.0)
    assert all(repr(getattr(state, one.name)) != repr(getattr(plain, one.name)) for one in fields(State))


def test_a_copy_says_the_same_and_shares_nothing() -> None:
    state = full_state()
    copied = state.copy()
    assert_same(copied, state)
    mine, others = state.arrays(), copied.arrays()
    assert not [name for name in mine if np.shares_memory(mine[name], others[name])]
    start = State(np.zeros(3), np.ones(2), 0.0)
    assert start.v_hat.tolist() == [1.0, 1.0] and not np.shares_memory(start.v, start.v_hat)


def test_a_file_says_the_same(tmp_path: Path) -> None:
    full_state().save(tmp_path / "state.npz")
    assert_same(State.load(tmp_path / "state.npz"), full_state())


@pytest.mark.parametrize("name", sorted(full_state().arrays().keys() - {"counts"}))
def test_a_number_that_differs_is_seen_and_named(name: str) -> None:
    state, arrays = full_state(), full_state().arrays()
    arrays[name] = ~arrays[name] if arrays[name].dtype == np.bool_ else arrays[name] + 1
    other = State.from_arrays(arrays)
    assert state != other and state.differences(other) == other.differences(state) == [name]


def test_so_is_one_that_is_missing_or_of_another_kind() -> None:
    state = full_state()
    for other, name in (
        (replace(state, sensors={"slid/slip": state.sensors["slid/slip"]}), "sensor/seen/noise"),
        (replace(state, couplings=(state.couplings[0], {})), "coupling/1/rest"),
        (replace(state, v=state.v.astype(np.float32)), "v"),
        (replace(state, q=-state.q * [-1.0, -1.0, 1.0]), "q"),  # -0.0 and 0.0
        (replace(state, sensors=state.sensors | {"slid/slip": np.array([15.0])}), "sensor/slid/slip"),
        (replace(state, sensors=state.sensors | {"seen/noise": state.sensors["seen/noise"].view(np.int64)}), "sensor/seen/noise"),
    ):
        assert state != other and other != state and state.differences(other) == other.differences(state) == [name]
    assert state == full_state() and state != 1 and not state.differences(full_state())


@pytest.mark.parametrize("part", [0.0, 0.02, 0.5, 0.98])
def test_a_file_that_is_cut_off_is_refused(part: float, tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    full_state().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(fs.InputError, match=r"state\.npz: cannot be read as the state of a simulation"):
        State.load(path)


@pytest.mark.parametrize("shape", [(), (3,), (3, 2)])
def test_so_is_a_file_with_a_single_array(shape: tuple[int, ...], tmp_path: Path) -> None:
    with (tmp_path / "state.npz").open("wb") as file:
        np.save(file, np.zeros(shape))
    with pytest.raises(fs.InputError, match=r"cannot be read as the state|holds none of femsim's states"):
        State.load(tmp_path / "state.npz")


@pytest.mark.parametrize("name", ["counts", "q", "contacts/1/forces", "halving_is_vain"])
def test_so_is_one_that_lacks_an_array(name: str, tmp_path: Path) -> None:
    arrays = {key: value for key, value in full_state().arrays().items() if key != name}
    np.savez(tmp_path / "state.npz", version=np.array(VERSION), **arrays)
    with pytest.raises(fs.InputError, match=rf"is no complete state \('{name}'"):
        State.load(tmp_path / "state.npz")


def test_a_save_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.npz"
    full_state().save(path)

    def full_disk(file: object, **arrays: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space"):
        replace(full_state(), t=1.0).save(path)
    assert State.load(path) == full_state() and [one.name for one in tmp_path.iterdir()] == ["state.npz"]
