"""Files that are whole or not there, TOML files and their sentences, and the four words for how something ended."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, get_args

import pytest
from pydantic import BaseModel, ConfigDict, Field

import femsim as fs
from femsim.base import files, status
from femsim.base.toml_files import checked, read_toml
from foreign import whole

Replacing = Callable[[Path], AbstractContextManager[Path | str]]
BOTH = pytest.mark.parametrize("replacing", [files.replacing, whole.replacing], ids=["femsim", "foreign"])


@BOTH
def test_a_file_is_replaced_at_the_end_and_not_before(replacing: Replacing, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    with replacing(path) as name:
        temporary = Path(name)
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == tmp_path and temporary.suffix == ".csv"
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


@BOTH
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("odd"), KeyboardInterrupt()])
def test_a_failure_in_the_middle_leaves_the_old_file_and_no_other(
    replacing: Replacing, tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as temporary:
        Path(temporary).write_text("half of the n")
        raise error
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@BOTH
def test_an_error_names_the_file_and_not_the_temporary_one(replacing: Replacing, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as caught, replacing(tmp_path / "absent" / "a.txt") as temporary:
        Path(temporary).write_text("text")
    assert caught.value.filename == str(tmp_path / "absent" / "a.txt")


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "report"
    with pytest.raises(ValueError, match="odd"), files.replacing(path) as temporary:
        temporary.mkdir()
        (temporary / "a.txt").write_text("a")
        raise ValueError("odd")
    assert list(tmp_path.iterdir()) == []
    with files.replacing(path) as temporary:
        temporary.mkdir()
        (temporary / "a.txt").write_text("a")
        assert not path.exists()
    assert (path / "a.txt").read_text() == "a" and list(tmp_path.iterdir()) == [path]


def test_write_json_keeps_the_old_file_when_it_cannot_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    files.write_json(path, {"status": "running"})
    old = path.read_text()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.write_json(path, {"status": "converged"})
    assert path.read_text() == old and list(tmp_path.iterdir()) == [path]


def test_a_write_error_is_a_sentence() -> None:
    with pytest.raises(fs.InputError, match=re.escape("a.npz cannot be written (No space left on device); free the disk.")):
        with files.write_errors("a.npz", "free the disk"):
            raise OSError(28, "No space left on device")


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    length: Annotated[float, Field(gt=0)] = 1.0
    width: float


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    one: Inner | None = None
    many: Annotated[list[Inner], Field(max_length=9)] = []
    named: dict[str, Annotated[Inner, Field()]] = {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[on]", "on: the key is unknown; did you mean 'one'? There are many, named, one."),
        ("[one]\nwidth = 1\nwidht = 2", "one.widht: the key is unknown; did you mean 'width'? There are length, width."),
        ("[[many]]\nwidth = 1\n[[many]]\nwidth = 1\nlenght = 2", "many.2.lenght: the key is unknown; did you mean 'length'?"),
        ("[named.one]\nwidth = 1\nlenght = 2", "named.one.lenght: the key is unknown; did you mean 'length'? There are length"),
        ("[one]\nlength = 2", "one.width is missing; add it."),
        ("[one]\nwidth = 1\nlength = -2", "one.length is -2, but must be greater than 0."),
    ],
)
def test_a_wrong_key_or_value_is_named_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(fs.InputError, match=re.escape(f"{path}: {sentence}")):
        checked(Outer, read_toml(path, "file"), path)


def test_a_file_that_is_missing_or_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(fs.InputError, match=r"the card .*none.toml cannot be read \(No such file"):
        read_toml(tmp_path / "none.toml", "card")
    (tmp_path / "bad.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(fs.InputError, match=r"bad.toml is not valid TOML"):
        read_toml(tmp_path / "bad.toml", "card")


def test_every_word_for_an_end_has_an_exit_status_and_a_sentence() -> None:
    words = get_args(status.Status)
    assert set(words) == set(status.EXIT_STATUS) and set(status.FINISHED) < set(words)
    assert [status.EXIT_STATUS[word] for word in words] == [0, 3, 130, 3]
    for word in words:
        assert f"\n{word}\n    " in (status.__doc__ or ""), word


def test_files_are_replaced_in_one_place() -> None:
    """Beside it, films and series grow by pictures, a case moves a folder over an older one, and figures move together."""
    root = Path(fs.__file__).resolve().parent.parent
    places = {
        str(path.relative_to(root))
        for package in ("femsim", "foreign", "viz", "contact", "materials", "meshes")
        for path in (root / package).rglob("*.py")
        if "os.replace(" in path.read_text(encoding="utf-8")
    }
    assert places == {
        "foreign/whole.py",
        "viz/film.py",
        "viz/vtk_hdf.py",
        "viz/animation.py",
        "femsim/studies/sweeps/case.py",
        "femsim/studies/calibration/report.py",
    }
