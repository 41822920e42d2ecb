"""How plots look: size, font, names of the curves, formats; figures for papers are the same figures with another look."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from viz.errors import VizError

__all__ = ["COLOURS", "STYLE", "WIDTH", "Look", "plot_folder", "unknown"]

# Okabe & Ito (2008): distinguishable with all common kinds of colour vision.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STYLE: dict[Any, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,  # dots and bars above the grid
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "svg.hashsalt": "femsim",
}
WIDTH = 5.5  # inches: one and a half columns of a paper
MM = 1.0 / 25.4  # inches
FORMATS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class Look:
    """Size, font, names and formats of figures.

    Attributes
    ----------
    width, height : float or None, mm
        Size of a figure; None takes 140 mm, and the height that its panels need.
    font : float, pt
        Size of labels; numbers and legends are a ninth smaller.
    labels : tuple of str
        Names of the runs in legends, in their order; none takes the names of their folders.
    formats : tuple of str
        "png", "svg", "pdf". Fonts are embedded in SVG and PDF, as text.

    Raises
    ------
    VizError
        A size, font or format that is not allowed.
    """

    width: float | None = None
    height: float | None = None
    font: float = 9.0
    labels: tuple[str, ...] = ()
    formats: tuple[str, ...] = FORMATS

    def __post_init__(self) -> None:
        for name, value in (("width", self.width), ("height", self.height)):
            if value is not None and not 30.0 <= value <= 1000.0:
                raise VizError(
                    f"the {name} of a figure is {value:g} mm; allowed are 30 to 1000, a column of a paper has 80 to 90."
                )
        if not 4.0 <= self.font <= 30.0:
            raise VizError(f"the font is {self.font:g} pt; allowed are 4 to 30.")
        if not self.formats:
            raise VizError(f"no format of the figures is given; allowed are {', '.join(FORMATS)}.")
        for name in self.formats:
            if name not in FORMATS:
                raise VizError(unknown("the format", name, FORMATS))

    @property
    def inches(self) -> float:
        """Width, inches."""
        return WIDTH if self.width is None else self.width * MM

    def size(self, height: float) -> tuple[float, float]:
        """Width and height of a figure, inches, given the height that its panels need with the default font."""
        return self.inches, height * max(1.0, self.font / 9.0) if self.height is None else self.height * MM

    @property
    def settings(self) -> dict[Any, Any]:
        """What matplotlib is told."""
        smaller = self.font * 8.0 / 9.0
        sizes = {"font.size": self.font, "axes.labelsize": self.font, "axes.titlesize": self.font, "legend.fontsize": smaller}
        return STYLE | sizes | {"xtick.labelsize": smaller, "ytick.labelsize": smaller}

    def names(self, folders: Sequence[str]) -> list[str]:
        """Names of runs in legends, given those of their folders."""
        if self.labels and len(self.labels) != len(folders):
            labels, runs = (f"{n} {what}{'s' * (n != 1)}" for n, what in ((len(self.labels), "label"), (len(folders), "run")))
            raise VizError(f"{labels} are given for {runs}; give one for each, in the same order.")
        if len(set(self.labels)) < len(self.labels):
            raise VizError(f"the labels {list(self.labels)} are not all different; curves of equal names cannot be told apart.")
        return list(self.labels) or list(folders)

    def columns(self, labels: Iterable[str]) -> int:
        """How many entries of a legend stand side by side."""
        longest = max((len(text) for text in labels), default=1)
        return int(np.clip(self.inches * 72.0 / (self.font * (0.55 * longest + 4.5)), 1, 5))


def unknown(what: str, name: str, allowed: Iterable[str]) -> str:
    """Sentence about a name that does not exist, with the nearest one."""
    allowed = list(allowed)
    near = difflib.get_close_matches(name, allowed, 1, 0.4)
    there = f"did you mean {near[0]!r}? There" if near else "there"
    return f"{what} {name!r} is not known; {there} are: {', '.join(allowed) or 'none'}."


def plot_folder(out: Path) -> Path:
    """Make the folder of figures; VizError where it cannot be made, or has the name of a figure."""
    if out.suffix.removeprefix(".").lower() in FORMATS and not out.is_dir():
        raise VizError(f"{out} has the name of one figure, and several are drawn; give a folder, e.g. {out.with_suffix('')}.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise VizError(f"the plot folder {out} cannot be made ({error.strerror}); choose another folder.") from error
    return out
