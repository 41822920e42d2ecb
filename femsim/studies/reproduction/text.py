"""Numbers, tables and figures of the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from femsim.base.files import replacing
from viz.look import STYLE


def number(value: float, digits: int = 3) -> str:
    """Write a number with few digits; a dash where there is none."""
    if not math.isfinite(value):
        return "-"
    if value == 0.0:
        return "0"
    if 0.001 <= abs(value) < 10 ** max(digits, 5):
        decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
        return f"{value:.{decimals}f}"
    return f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e")


short = partial(number, digits=2)


def percent(value: float) -> str:
    """Write a share."""
    return f"{number(100.0 * value, 2)} %"


def times(ratio: float) -> str:
    """Write how many times as large something is."""
    return f"{number(ratio, 2)} times" if math.isfinite(ratio) else "an unknown number of times"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def image(caption: str, path: Path) -> str:
    """Show a picture of the folder of figures on the page."""
    return f"![{caption}](figures/{path.name})"


def section(*blocks: str, points: Sequence[str]) -> str:
    """Join paragraphs, tables and pictures, and a list of sentences at the end."""
    return "\n\n".join([*blocks, "\n".join(f"- {point}" for point in points)])


@contextmanager
def picture(path: Path, panels: int) -> Iterator[Any]:
    """Give a row of axes, in the style of all plots, and write them as a PNG."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.4 * panels, 3.2), layout="constrained")
        yield figure.subplots(1, panels, squeeze=False)[0]
        with replacing(path) as temporary:
            figure.savefig(temporary, dpi=200, format="png")
