"""The notebooks of the docs: they run, and say what their stored outputs say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
NAMES = ("grip_and_read_forces", "sweep_and_calibrate")
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")

pytestmark = pytest.mark.skipif(not (DOCS / "make_notebooks.py").is_file(), reason="the docs are not here")


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_notebooks", DOCS / "make_notebooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outputs(notebook: Any) -> list[list[Any]]:
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: list[Any]) -> str:
    return "".join(output.text for output in cell if output.output_type == "stream" and output.name == "stdout")


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_prints_what_it_has_stored(name: str, tmp_path: Path) -> None:
    """Kinds of outputs, words and numbers; machines differ in the last digits, fits of noisy logs by a part of their interval.
    One worker runs its cases, which are shorter than the start of a second one.
    """
    pytest.importorskip("nbclient", reason="the extra dev is not installed")
    pytest.importorskip("ipykernel", reason="the extra dev is not installed")
    import nbformat

    module = maker()
    path = module.NOTEBOOKS / f"{name}.ipynb"
    copy = tmp_path / path.name
    copy.write_text(path.read_text(encoding="utf-8").replace("workers=2", "workers=1"), encoding="utf-8")
    stored, new = outputs(nbformat.read(path, as_version=4)), outputs(module.execute(copy))
    assert len(stored) == len(new) >= 6
    for before, after in zip(stored, new, strict=True):
        assert [output.output_type for output in before] == [output.output_type for output in after]
        assert NUMBER.sub("#", printed(before)) == NUMBER.sub("#", printed(after))
        numbers = [[float(text) for text in NUMBER.findall(printed(cell))] for cell in (before, after)]
        assert numbers[1] == pytest.approx(numbers[0], rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_shows_on_a_code_host(name: str) -> None:
    """Executed in order and without errors, figures as PNG, no script, no path of a machine, small."""
    nbformat = pytest.importorskip("nbformat", reason="the extra dev is not installed")
    path = DOCS / "guide" / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(output.output_type != "error" and output.get("name") != "stderr" for cell in code for output in cell.outputs)
    assert any("image/png" in output.get("data", {}) for cell in code for output in cell.outputs)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<script|<iframe|/tmp/|/home/|/root/|site-packages", text)
    assert path.stat().st_size < 300_000
    for link in re.findall(r"\]\(([^)#]+)\)", "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")):
        assert (path.parent / link).is_file(), link


def test_every_notebook_is_named_here() -> None:
    assert sorted(path.stem for path in (DOCS / "guide").glob("*.ipynb")) == sorted(NAMES)
