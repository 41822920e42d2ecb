"""Scene files: found, read for their parameters, built; what is wrong with one is said with its place and cure."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from small_scene import FILE, scene_file

import femsim as fs
from femsim.scene.scene_file import SCENES, find_scene, scene_doc

HEAD = "import femsim as fs\n\n"


def build(folder: Path, signature: str, body: str = "return fs.Scene('x', theta=1.0)", doc: str = "") -> Path:
    docstring = f'    """Build.\n\n{doc}\n    """\n' if doc else ""
    return scene_file(folder, f"{HEAD}\ndef build({signature}) -> fs.Scene:\n{docstring}    {body}\n", "mine.py")


# ------------------------------------------------------------------ what works


def test_a_scene_is_built_with_its_defaults(tmp_path: Path) -> None:
    scene = fs.load_scene(scene_file(tmp_path))
    assert isinstance(scene, fs.Scene) and scene.name == "small_cube"
    assert scene.parameters == {
        "young_modulus": {"value": 1e5, "unit": "Pa"},
        "side": {"value": 0.02, "unit": "m"},
        "steps": {"value": 4, "unit": "1"},
        "floor": {"value": True, "unit": ""},
        "where": {"value": (0.0, 0.0), "unit": "m"},
    }


def test_values_are_converted_from_text_and_reach_the_scene(tmp_path: Path) -> None:
    scene = fs.load_scene(scene_file(tmp_path), young_modulus="2e4", side="0.04", steps="7", floor="no", where="0.5, -1")
    cube = scene.body("cube")
    assert scene.duration == pytest.approx(0.07)
    assert cube.elastic.young_modulus == 2e4
    assert [part.name for part in scene.parts] == ["cube"]
    assert cube.rest.mean(axis=0) == pytest.approx([0.5, -1.0, 0.02])
    assert scene.parameters["steps"] == {"value": 7, "unit": "1"}
    assert scene.parameters["where"] == {"value": (0.5, -1.0), "unit": "m"}


def test_parameters_are_read_from_signature_and_docstring(tmp_path: Path) -> None:
    found = fs.scene_parameters(scene_file(tmp_path))
    assert [(p.name, p.default, p.type, p.unit) for p in found] == [
        ("young_modulus", 1e5, float, "Pa"),
        ("side", 0.02, float, "m"),
        ("steps", 4, int, "1"),
        ("floor", True, bool, ""),
        ("where", (0.0, 0.0), tuple[float, float], "m"),
    ]
    assert found[0].description == "Young's modulus of the cube."
    assert not found[0].required


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        ("float, kg/m^3", "kg/m^3"),
        ("float, m/s, optional", "m/s"),
        ("(3,) float, m", "m"),
        ("float, optional", ""),
        ("{'a', 'b'}", ""),
        ("float, default 3", ""),
        ("tuple[float, float], N", "N"),
    ],
)
def test_units_are_found(kind: str, unit: str, tmp_path: Path) -> None:
    path = build(tmp_path, "x=1.0", doc=f"    Parameters\n    ----------\n    x : {kind}\n        Something.")
    assert fs.scene_parameters(path)[0].unit == unit


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("float", "5e5", 5e5),
        ("float", " 3 ", 3.0),
        ("int", "1e3", 1000),
        ("int", "9007199254740993", 9007199254740993),
        ("bool", "Yes", True),
        ("bool", "0", False),
        ("str", "box", "box"),
        ("tuple[float, float, float]", "0,0,1", (0.0, 0.0, 1.0)),
        ("tuple[float, ...]", "(1, 2)", (1.0, 2.0)),
        ("list[int]", "1,2,3", [1, 2, 3]),
        ("float | None", "none", None),
        ("float | None", "2", 2.0),
        ("int | str", "seven", "seven"),
        ("Literal['a', 'b']", "b", "b"),
        ("Path", "a/b", Path("a/b")),
    ],
)
def test_text_becomes_the_annotated_type(annotation: str, text: str, value: Any, tmp_path: Path) -> None:
    path = scene_file(
        tmp_path,
        f"from __future__ import annotations\nfrom pathlib import Path\nfrom typing import Literal\n{HEAD}\n"
        f"def build(x: {annotation}):\n    scene = fs.Scene('x', theta=1.0)\n    scene.given = x\n    return scene\n",
    )
    given = fs.load_scene(path, x=text).given  # type: ignore[attr-defined]
    assert given == value and type(given) is type(value)


def test_without_annotation_the_default_gives_the_type(tmp_path: Path) -> None:
    path = build(
        tmp_path, "a=1, b=True, c='word', d=(0, 0)", "scene = fs.Scene('x', theta=1.0); scene.given = (a, b, c, d); return scene"
    )
    scene = fs.load_scene(path, a="1.5", b="no", c="2", d="1,2.5")
    assert scene.given == (1.5, False, "2", (1.0, 2.5))  # type: ignore[attr-defined]


def test_two_files_of_one_name_and_a_quick_edit_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = build(tmp_path / "a", "", "return fs.Scene('first', theta=1.0)")
    second = build(tmp_path / "b", "", "return fs.Scene('other', theta=1.0)")
    assert [fs.load_scene(path).name for path in (first, second, first)] == ["first", "other", "first"]
    build(tmp_path / "a", "", "return fs.Scene('third', theta=1.0)")  # same size, same second
    assert fs.load_scene(first).name == "third"
    assert not list(tmp_path.rglob("__pycache__"))


def test_scenes_that_come_with_femsim_are_found_by_name() -> None:
    names = [path.stem for path in fs.list_scenes()]
    assert "soft_ball_gripping" in names and names == sorted(names)
    assert find_scene("soft_ball_gripping") == SCENES / "soft_ball_gripping.py"
    for path in fs.list_scenes():
        assert scene_doc(path).splitlines()[0].endswith("."), path
        for parameter in fs.scene_parameters(path):
            assert parameter.unit and parameter.description, f"{path}: {parameter.name} has no unit or description"


def test_only_files_with_a_build_are_listed(tmp_path: Path) -> None:
    scene_file(tmp_path)
    scene_file(tmp_path, "x = 1\n", "helper.py")
    scene_file(tmp_path, "def build(:\n", "broken.py")
    assert fs.list_scenes(tmp_path) == [tmp_path / "small_cube.py"]


# ------------------------------------------------------------------ what is wrong


def refusal(path: str | Path, **values: Any) -> str:
    with pytest.raises(fs.InputError) as caught:
        fs.load_scene(path, **values)
    return str(caught.value)


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    path = scene_file(tmp_path)
    message = refusal(tmp_path / "smal_cube.py")
    assert "smal_cube.py' does not exist" in message and f"did you mean {str(path)!r}" in message
    assert "soft_ball_gripping" in refusal("soft_ball_griping")
    assert "does not exist" in refusal(tmp_path / "nowhere" / "x.py")
    assert "is a folder" in refusal(tmp_path)


def test_a_file_without_build_is_no_scene(tmp_path: Path) -> None:
    path = scene_file(tmp_path, "x = 1\n")
    assert refusal(path) == f"{path} has no function 'build', so it is no scene; write 'def build(...) -> fs.Scene:' in it."


def test_a_file_that_fails_is_named_with_its_line(tmp_path: Path) -> None:
    path = scene_file(tmp_path, HEAD + "import nothing_of_that_name\n")
    assert f"{path}, line 3: the file failed with ModuleNotFoundError" in refusal(path)
    path = scene_file(tmp_path, HEAD + "def build(:\n    pass\n")
    assert f"{path}, line 3: the file failed with SyntaxError" in refusal(path)
    path = scene_file(tmp_path, "raise SystemExit('enough')\n")
    assert f"{path}, line 1: the file failed with SystemExit: enough" in refusal(path)
    path.write_bytes(b"\x00\xff")
    assert f"{path}" in refusal(path) and "SyntaxError" in refusal(path)


def test_scenes_that_come_with_femsim_are_listed_once() -> None:
    """By their names and by their paths they filled a screen."""
    with pytest.raises(fs.InputError) as error:
        find_scene(SCENES / "soft_bal.py")
    message = str(error.value)
    assert "did you mean 'soft_ball_gripping'?" in message and message.count("squeezed_ball") == 1


def test_a_build_that_fails_is_named_with_its_line(tmp_path: Path) -> None:
    path = build(tmp_path, "", "return 1 / 0")
    assert refusal(path) == f"{path}, line 5: build failed with ZeroDivisionError: division by zero; correct the scene file."


def test_a_build_that_fails_inside_a_library_names_both_places(tmp_path: Path) -> None:
    path = build(tmp_path, "", "import json; json.loads('{')")
    message = refusal(path)
    assert f"{path}, line 5: build failed with JSONDecodeError" in message and "json" in message.split("from ")[1]


def test_our_own_sentences_pass_through_a_build(tmp_path: Path) -> None:
    path = build(tmp_path, "", "fs.material('ecoflex_00_51')")
    with pytest.raises(fs.MaterialError, match="ecoflex_00_5"):
        fs.load_scene(path)
    path = build(tmp_path, "", "return fs.Scene('x', dt=0, theta=1.0)")
    assert refusal(path).startswith("dt is 0 s")


def test_a_build_must_return_a_scene(tmp_path: Path) -> None:
    path = build(tmp_path, "", "fs.Scene('x', theta=1.0)")
    assert f"{path}: build returned NoneType" in refusal(path) and "return scene" in refusal(path)


def test_an_unknown_parameter_names_the_nearest_and_all(tmp_path: Path) -> None:
    path = scene_file(tmp_path)
    message = refusal(path, young_moduls="1e5")
    assert f"{path}: the scene has no parameter 'young_moduls'; did you mean 'young_modulus'?" in message
    assert "floor, side, steps, where, young_modulus." in message
    assert "there is none" in refusal(build(tmp_path, ""), a=1)


def test_a_parameter_may_be_named_path(tmp_path: Path) -> None:
    text = "def build(path: str = '') -> fs.Scene:\n    return fs.Scene(path, dt=0.01, duration=0.1)\n"
    file = tmp_path / "follow.py"
    file.write_text(f"import femsim as fs\n\n\n{text}")
    assert fs.load_scene(file, path="tool").name == "tool"


def test_a_parameter_without_default_must_be_given(tmp_path: Path) -> None:
    path = build(tmp_path, "force: float, mass: float, side=1.0")
    assert refusal(path, side=2) == f"{path}: the scene needs force, mass; give each by --set NAME=VALUE."
    assert fs.load_scene(path, force=1, mass="2").name == "x"
    assert fs.scene_parameters(path)[0].required


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("young_modulus", "soft", ("'soft'", "a number (Pa)", "no number", "5e5")),
        ("young_modulus", "nan", ("'nan'", "a number (Pa)", "not finite")),
        ("young_modulus", float("nan"), ("nan", "not finite")),
        ("young_modulus", "inf", ("'inf'", "not finite")),
        ("young_modulus", "", ("''", "no number")),
        ("young_modulus", True, ("True", "truth value")),
        ("steps", "2.5", ("'2.5'", "a whole number", "not a whole number")),
        ("floor", "perhaps", ("'perhaps'", "true or false", "yes")),
        ("where", "1,2,3", ("'1,2,3'", "2 values, each a number (m)", "3 items instead of 2")),
        ("where", "1,x", ("'1,x'", "no number")),
        ("where", 3.0, ("3.0", "2 values")),
    ],
)
def test_a_wrong_value_names_file_parameter_value_and_what_is_allowed(
    name: str, value: Any, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = scene_file(tmp_path)
    message = refusal(path, **{name: value})
    assert message.startswith(f"{path}: parameter {name!r} is ")
    for word in words:
        assert word in message


def test_parameters_that_cannot_be_set_are_refused(tmp_path: Path) -> None:
    assert "positional-only" in refusal(build(tmp_path, "a=1.0, /"))
    assert "annotations of build cannot be read (NameError" in refusal(build(tmp_path, "a: 'Unknown' = 1.0"))


def test_the_example_of_this_file_is_a_scene_without_findings() -> None:
    compile(FILE, "FILE", "exec")
    assert scene_doc(SCENES / "soft_ball_gripping.py").count("\n") >= 2
