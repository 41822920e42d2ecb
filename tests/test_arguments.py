"""Arguments of the wrong kind are named in a sentence, whichever call of a scene they are given to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import femsim as fs
from femsim.base.arguments import wrong_argument
from femsim.base.errors import naming_parameters

FOAM = fs.Elastic(1e5, 0.3, 1000.0, name="foam")
CUBE = fs.box_tets((0.02, 0.02, 0.02), 1)
LINE = np.linspace((0, 0.3, 0.2), (0.1, 0.3, 0.2), 6)
#: what no parameter takes, and what few take
STRANGE: tuple[Any, ...] = (object(), np, b"x", ["a"], {}, "x", None, (1.0, 2.0), np.zeros((2, 2)), 0.5, lambda: 0)


def scene() -> fs.Scene:
    made = fs.Scene("wrong", dt=0.01, duration=0.1)
    made.add_floor()
    for name, x in (("box", 0.0), ("hand", 0.3)):
        made.add_rigid(name, fs.Box((0.01, 0.01, 0.01)), mass=0.1, position=(x, 0, 0.2))
    made.add_soft("cube", CUBE, FOAM, position=(0.1, 0, 0.2))
    return made


#: each call with arguments that are right
CALLS: dict[str, dict[str, Any]] = {
    "add_soft": dict(name="c", mesh=CUBE, material=FOAM, position=(0, 0, 0.4), fixed=None, load=None, surface=None),
    "add_rigid": dict(
        name="c", shape=fs.Box((0.01, 0.01, 0.01)), density=500.0, position=(0, 0, 0.4), surface="rigid", load=None
    ),
    "add_rod": dict(name="r", points=LINE, section=fs.circular_section(0.002), material=FOAM, start="clamped", surface="foam"),
    "add_obstacle": dict(name="o", shape=fs.Box((0.01, 0.01, 0.01)), position=(0, 0, 0.05), surface="rigid"),
    "drive": dict(what="hand", motion=fs.Motion([0, 1], [(0, 0, 0), (0, 0, 0.1)]), stiffness=(1e3, 10.0), max_force=5.0),
    "hold": dict(what="cube", where=lambda x: x[:, 2] > 0.205, motion=fs.Motion([0], [(0, 0, 0)]), name="h"),
    "join": dict(a="box", b="hand", kind="hinge", at=(0.1, 0, 0.2), axis=(0, 0, 1), contact=False),
    "add_tendon": dict(what="cube", points=[(0.095, 0, 0.195), (0.105, 0, 0.205)], pull=lambda t: 0.0, stiffness=1e4),
    "set_friction": dict(a="box", b="floor", coefficient=0.3),
    "set_restitution": dict(a="box", b="floor", coefficient=0.3),
    "set_softness": dict(a="box", b="floor", softness=1e-6),
    "contact_group": dict(name="g", members=["box", "floor"]),
    "ignore_contact": dict(a="box", b="floor"),
    "sensor": dict(name="z", on="box", kind="contact"),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_no_call_takes_is_a_sentence(call: str) -> None:
    """None of them ends in an error of Python, at once or in the first step."""
    getattr(scene(), call)(**CALLS[call])
    for name in CALLS[call]:
        for strange in STRANGE:
            made = scene()
            try:
                getattr(made, call)(**{**CALLS[call], name: strange})
            except ValueError as error:
                assert type(error) is not ValueError, f"{name}={strange!r}: {error}"
                assert str(error).endswith((".", "?")), f"{name}={strange!r}: {error}"


#: functions that read files or begin studies, with arguments that are right
FUNCTIONS: dict[str, dict[str, Any]] = {
    "load_path": dict(
        file="arm7_lift.csv", dt=0.01, orientation=None, orientations=None, columns=None, time="time", time_unit="s", length="m",
        angle="rad", topic=None, base=None, max_speed=5.0, max_turn=20.0, jumps=False,
    ),
    "load_robot": dict(path="no.urdf", packages=None, balance_inertia=False),
    "load_run": dict(folder="no_run"),
    "load_scene": dict(path="no_scene.py"),
    "scene_parameters": dict(path="no_scene.py"),
    "resume": dict(folder="no_run", scene=None),
    "repair": dict(folder="no_run"),
    "sweep": dict(path="no.toml", out=None),
    "sensitivity": dict(path="no.toml", out=None),
    "calibrate": dict(path="no.toml", out=None),
    "compare": dict(run="no_run", log="no.csv", card=None, sensor=None),
    "read_log": dict(path="no.csv", card=None),
    "fit_material": dict(test="no.csv", laws=("neo_hookean",)),
    "fit_viscous": dict(tests=["no.csv"], terms=2),
    "bench": dict(problems=["no.hdf5"], solvers=None),
    "solve_problem": dict(path="no.hdf5", solver="auto"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_no_function_takes_is_a_sentence(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for parameter in FUNCTIONS[name]:
        for strange in STRANGE:
            try:
                given = {**FUNCTIONS[name], parameter: strange}
                first = [given.pop("path")] if name == "load_scene" else []  # a scene may have a parameter path
                getattr(fs, name)(*first, **given)
            except (ValueError, fs.ContactError) as error:
                assert type(error) is not ValueError, f"{parameter}={strange!r}: {error}"
                assert str(error).rstrip().endswith((".", "?")), f"{parameter}={strange!r}: {error}"


def test_arguments_that_lack_are_named_and_errors_within_a_call_are_not_theirs() -> None:
    with pytest.raises(TypeError, match=r"^join\(\) lacks 'at'; give it too\. It takes a, at, axis, b, breakable, "):
        scene().join("box", "world", "hinge", axis=(0, 0, 1))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Motion\(\) lacks 'times', 'displacements'; give them too\."):
        fs.Motion()  # type: ignore[call-arg]

    @naming_parameters
    def given(x: float = 0.0) -> float:
        return abs()  # type: ignore[call-arg]

    with pytest.raises(TypeError, match=r"^abs\(\)"):
        given()


def test_kinds_that_only_the_type_checker_knows_are_met() -> None:
    assert wrong_argument(fs.run_many, (3, [{}]), {}) == "build is 3, but must be a function or a text or a path."
    assert wrong_argument(fs.run_many, ("scene.py", object()), {}) is None  # a DataFrame, as far as one can ask


@pytest.mark.parametrize(
    ("call", "change", "said"),
    [
        ("set_friction", dict(a=None), "set_friction: a is None, but must be a Handle or a text."),
        ("add_rigid", dict(surface=3), "add_rigid: surface is 3, but must be a text."),
        ("add_rod", dict(self_contact="x"), "add_rod: self_contact is 'x', but must be True or False."),
        ("add_rigid", dict(load=5.0), "load is 5.0, but must be a function of time in s"),
        (
            "pressurize",
            dict(what="cube", pressure=5.0),
            "pressure is 5.0, but must be a function of time in s; use fs.Profile.",
        ),
        ("add_soft", dict(fixed=lambda: 0), "but must be a function of points or None."),
        (
            "drive",
            dict(motion=(0, 0, 1)),
            "motion is (0, 0, 1), but must be a function of time in s; use fs.Motion or fs.Profile.",
        ),
        ("join", dict(limits=[]), "join: limits is [], but must be two numbers or None."),
        ("add_soft", dict(self_contact=0.5), "self_contact is 0.5, but must be True or False."),
        ("sensor", dict(on=["box"]), "sensor: on is ['box'], but must be a Handle or a text."),
        ("sensor", dict(kind=[]), "sensor: kind is [], but must be a text."),
        ("add_rod", dict(start="fixed"), "did you mean 'clamped'?"),
    ],
)
def test_the_argument_is_named(call: str, change: dict[str, Any], said: str) -> None:
    made = scene()
    with pytest.raises(fs.InputError) as caught:
        getattr(made, call)(**{**CALLS.get(call, {}), **change})
    assert said in str(caught.value)


def test_a_word_says_how_a_rod_is_held() -> None:
    by_word, by_end = scene(), scene()
    by_word.add_rod("r", LINE, fs.circular_section(0.002), FOAM, start="clamped", end="hinged")
    by_end.add_rod("r", LINE, fs.circular_section(0.002), FOAM, start=fs.RodEnd("clamped"), end=fs.RodEnd("hinged"))
    for made in (by_word, by_end):
        made.duration = 0.05
    runs = [fs.simulate(made) for made in (by_word, by_end)]
    assert np.array_equal(runs[0].steps["kinetic_energy_J"], runs[1].steps["kinetic_energy_J"])


def test_other_values_pass() -> None:
    """Numbers of numpy, lists for arrays, and anything for what cannot be asked."""

    def takes(
        x: float, n: int, flag: bool, v: Sequence[float] | np.ndarray, way: Literal["a", "b"], table: Mapping[str, float],
        f: Callable[[float], float] | None, path: str | Path, names: Sequence[str], *rest: str, anything: Any = None,
    ) -> None: ...  # fmt: skip

    right = (np.float64(1), np.int64(2), np.True_, [1, 2, np.float32(3)], "b", {}, None, Path(), ("a", "b"), "more", "rest")
    assert wrong_argument(takes, right, {"anything": object()}) is None
    assert wrong_argument(takes, (np.array(1.0), 2, 1, np.zeros(3), *right[4:]), {}) is None
    for place, wrong in enumerate(("x", None, "yes", ["a"], "c", [1], 5, 3.0, "ab")):
        said = wrong_argument(takes, (*right[:place], wrong, *right[place + 1 :]), {})
        assert said and said.startswith(f"{('x', 'n', 'flag', 'v', 'way', 'table', 'f', 'path', 'names')[place]} is {wrong!r}")
    assert wrong_argument(takes, (1.0,), {}) is None  # Python says that itself


def test_errors_of_others_stay_what_they_are() -> None:
    def fails(function: Callable[[], None]) -> None:
        function()

    def broken() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        naming_parameters(fails)(broken)
    with pytest.raises(fs.InputError, match=r"fails: function is 3, but must be a function\."):
        naming_parameters(fails)(3)  # type: ignore[arg-type]
