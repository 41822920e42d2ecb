"""Execute the notebooks of the docs where they stand: python docs/make_notebooks.py [NAME...].

Each runs in an empty folder, so that it needs nothing but femsim. Needs nbclient, nbformat and ipykernel (extra dev).
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parent / "guide"


def execute(path: Path) -> Any:
    """Run all cells of a notebook in order, in a new kernel and an empty folder; return it with their outputs.

    Parameters
    ----------
    path : Path
        A notebook; it is not changed.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        A cell raised.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory(prefix="femsim_notebook_") as scratch:
        client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": scratch}})
        # a progress bar of pyvista's misses the package ipywidgets, which jupyter brings
        client.execute(env=os.environ | {"PYTHONWARNINGS": "ignore:IProgress not found"})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
    return notebook


def main(names: list[str]) -> None:
    """Execute and rewrite the named notebooks, or all of them."""
    import nbformat

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(execute(path), path)
            print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
