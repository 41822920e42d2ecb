"""What is said to a newcomer: nearest words, words of other programs, numbers with units, files that are no scenes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import femsim as fs
from femsim.base.errors import meant, nearest, number_alone


def scene() -> fs.Scene:
    made = fs.Scene("words", dt=0.01, duration=0.01, theta=1.0)
    made.add_floor()
    return made


def cube(**options: object) -> fs.Scene:
    made = scene()
    made.add_soft("cube", fs.box_tets((0.04,) * 3, 2), "ecoflex_00_50", position=(0, 0, 0.02), **options)  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("attempt", "kind", "words"),
    [
        (lambda: fs.simulat, AttributeError, "'simulat'; did you mean 'simulate'?"),
        (lambda: fs.__wrong__, AttributeError, "no attribute '__wrong__'$"),
        (lambda: fs.make_solver("pgss"), fs.ContactError, "did you mean 'pgs'"),
        (lambda: fs.make_solver("pgs", max_iter=3), fs.ContactError, "did you mean 'max_iterations'"),
        (lambda: fs.simulate(scene(), max_iter=3), TypeError, r"simulate\(\) has no parameter 'max_iter'; did you mean 'max_it"),
        (lambda: fs.Scene("a", durations=1.0), TypeError, r"Scene\(\) has no parameter 'durations'; did you mean 'duration'"),
        (lambda: cube(pos=(0, 0, 1)), TypeError, r"add_soft\(\) has no parameter 'pos'; did you mean 'position'\? There"),
        (lambda: cube(element="tet10"), fs.InputError, "did you mean 'quadratic'"),
        (lambda: cube(element="quadratc"), fs.InputError, "did you mean 'quadratic'"),
        (lambda: cube(law="neohookean"), fs.MaterialError, "did you mean 'stable_neo_hookean'"),
        (lambda: cube(law="Neo-Hookean"), fs.MaterialError, "did you mean 'stable_neo_hookean'"),
        (lambda: cube(law="ogdn"), fs.MaterialError, "did you mean 'ogden'"),
        (lambda: fs.RodEnd("fixed"), fs.InputError, "did you mean 'clamped'"),  # type: ignore[arg-type]
        (lambda: fs.RodEnd("clampd"), fs.InputError, "did you mean 'clamped'"),  # type: ignore[arg-type]
        (lambda: fs.RodEnd("pinned"), fs.InputError, "did you mean 'hinged'"),  # type: ignore[arg-type]
        (lambda: cube().sensor("x", "cube", kind="force"), fs.InputError, "did you mean 'contact'"),
        (lambda: cube().sensor("x", "cube", kind="markr"), fs.InputError, "did you mean 'marker'"),
        (lambda: cube().sensor("x", "cube", kind="zzz"), fs.InputError, "'zzz'; allowed are"),
    ],
)  # fmt: skip
def test_the_nearest_word_is_named(attempt: Callable[[], object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        attempt()


@pytest.mark.parametrize(
    ("text", "number"),
    [("10ms", "0.01"), ("2 s", "2"), ("10 kPa", "10000"), ("0.5MPa", "500000"), ("-3e1 mm", "-0.03"), ("5µm", "5e-06")],
)
def test_a_number_with_a_unit_is_written_without(text: str, number: str) -> None:
    assert number_alone(text) == f"without a unit, which is SI: {number}"
    assert float(number_alone(text).split()[-1]) == pytest.approx(float(number))


@pytest.mark.parametrize("text", ["10", "ten ms", "3 mPa", "3 parsec", "", "1e5", "1.2.3 s"])
def test_other_texts_are_not_guessed(text: str) -> None:
    assert number_alone(text) == ""


def test_units_are_not_doubled(call: Callable[..., tuple[int, str, str]]) -> None:
    status, _, err = call("run", "soft_ball_gripping", "--set", "dt=10ms")
    assert status == 2 and "must be a number (s): write it without a unit, which is SI: 0.01." in err
    status, _, err = call("run", "soft_ball_gripping", "--duration", "20ms")
    assert status == 2 and "without a unit, which is SI: 0.02" in err


@pytest.mark.parametrize(
    ("name", "words"),
    [("arm.urdf", "a robot"), ("hand.xml", "another simulator"), ("part.stl", "fs.load_volume"), ("ball.vtu", "fs.load_tetmesh"),
     ("grip.toml", "femsim sweep")],
)  # fmt: skip
def test_files_that_are_no_scenes_get_a_sentence(
    name: str, words: str, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    (tmp_path / name).write_text("", encoding="utf-8")
    for command in ("run",) if name.endswith(".urdf") else ("run", "describe"):  # a robot is described
        status, out, err = call(command, str(tmp_path / name))
        assert (status, out) == (2, "") and words in err and "write a scene in Python" in err


def test_only_our_names_are_listed() -> None:
    assert set(dir(fs)) == {*fs.__all__, "__version__"}
    assert not [name for name in dir(fs) if name in ("ast", "os", "Path", "annotations", "importlib")]


def test_nearest_and_meant() -> None:
    assert nearest("pos", ["position", "rotation"]) == "position"
    assert nearest("po", ["position", "rotation"]) is None
    assert nearest("add", ["add_soft", "add_rigid"]) is None  # two begin so
    assert meant("tet-10", ["linear"], {"tet_10": "quadratic"}) == " did you mean 'quadratic'?"
    assert meant(3, ["linear"]) == ""


def test_decorated_calls_keep_their_signature_and_documentation() -> None:
    import inspect

    assert "solver" in inspect.signature(fs.simulate).parameters
    assert re.search("Parameters", fs.Scene.add_soft.__doc__ or "")
    assert list(inspect.signature(fs.Scene).parameters)[:1] == ["name"]
