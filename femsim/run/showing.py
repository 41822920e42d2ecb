"""What a run shows of itself: a table for notebooks, its film, its plots, and a table of pandas."""

from __future__ import annotations

import base64
import html
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from femsim.base.errors import InputError
from femsim.base.notebook import Shown

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["film_of", "plots_of", "table_of"]


def film_of(folder: Path | None, **options: Any) -> Shown:
    """Draw a run folder; return its film as a page that a notebook shows."""
    from viz import render_run

    if folder is None:
        raise InputError("the run has no folder, so no frames to draw; give fs.simulate(..., out=FOLDER).")
    with tempfile.TemporaryDirectory(prefix="femsim_show_") as scratch:
        out = options.pop("out", None)
        settings: dict[str, Any] = {"mp4": False, "html": True, "stills": 0, "size": (960, 720)} | options
        drawn = render_run(folder, out=Path(scratch) if out is None else out, **settings)
        if drawn.html is None:
            raise InputError("html=False leaves nothing that a notebook could show; leave it out, or use fs.render_run.")
        page = drawn.html.read_text(encoding="utf-8")
        kept = () if out is None else (drawn.html, *(path for path in (drawn.mp4, drawn.gif) if path), *drawn.frames)
    width, height = settings["size"]
    style = f"width:100%;max-width:{width + 40}px;height:{height + 150}px;border:0"
    frame = f'<iframe srcdoc="{html.escape(page)}" style="{style}"></iframe>'
    return Shown(frame, tuple(kept), f"film of {drawn.seconds:.3g} s")


def plots_of(
    name: str, steps: Mapping[str, np.ndarray], readings: Mapping[str, np.ndarray], out: Path | None, **options: Any
) -> Shown:
    """Plot the tables of a run; return the figures as a notebook shows them."""
    from viz import Look, plot_runs

    with tempfile.TemporaryDirectory(prefix="femsim_plot_") as scratch:
        folder = Path(scratch) / (re.sub(r"[^\w.-]+", "_", name) or "run")
        folder.mkdir()
        for file, table in (("steps.csv", steps), ("sensors.csv", readings)):
            if len(table) > 1:
                values = np.column_stack(list(table.values()))
                np.savetxt(folder / file, values, fmt="%.10g", delimiter=",", header=",".join(table), comments="")
        look = options.pop("look", Look() if out is not None else Look(formats=("png",)))
        kind = next((kind for kind in ("png", "svg") if kind in look.formats), None)
        if kind is None:
            raise InputError(f"the formats are {', '.join(look.formats)}; a notebook shows png or svg, so name one of them too.")
        written = plot_runs([folder], Path(scratch) / "plots" if out is None else out, look=look, **options)
        figures = [(path.stem, path.read_bytes()) for path in written if path.suffix == f".{kind}"]
    media = {"png": "image/png", "svg": "image/svg+xml"}[kind]
    shown = "".join(
        f'<img alt="{html.escape(stem)}" style="max-width:100%" '
        f'src="data:{media};base64,{base64.b64encode(figure).decode("ascii")}"><br>'
        for stem, figure in figures
    )
    pictures = tuple(figure for _, figure in figures) if kind == "png" else ()
    return Shown(shown, () if out is None else tuple(written), f"plots of {', '.join(stem for stem, _ in figures)}", pictures)


def table_of(columns: Mapping[str, np.ndarray]) -> DataFrame:
    """Make a table of pandas, by time."""
    try:
        import pandas
    except ImportError as error:
        raise InputError('tables need pandas, which is not installed; pip install pandas (or "femsim[sweep]").') from error
    return pandas.DataFrame({name: values for name, values in columns.items() if name != "time_s"}, index=_index(columns, pandas))


def _index(columns: Mapping[str, np.ndarray], pandas: Any) -> Any:
    return pandas.Index(columns["time_s"], name="time_s")
