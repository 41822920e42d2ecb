"""The picture of a fit: the measured curve, the laws, and their differences."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from femsim.base.errors import InputError
from femsim.base.files import check_output, replacing, write_errors
from femsim.studies.material_fit.fit import MaterialFit
from femsim.studies.material_fit.viscous_fit import ViscousFit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_fit(fit: MaterialFit, path: str | Path) -> Path:
    """Draw the measured curve and the fitted laws, and below them the differences; PNG, SVG or PDF by the name's ending.

    Parameters
    ----------
    fit : MaterialFit
        What to draw.
    path : path-like
        File to write.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        The name ends in no format of pictures, or there is no such folder.
    """
    path, figure = _new_figure(path)
    low, high = fit.strain_range
    curve, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    shown = (fit.test.stretch - 1.0 <= 1.25 * high) & (fit.test.stretch - 1.0 >= 0.0)
    strain, stress = fit.test.stretch[shown] - 1.0, 1e-3 * fit.test.stress[shown]
    curve.plot(strain, stress, "k.", markersize=3, label="measured")
    for law in fit.laws:
        computed = 1e-3 * law.law.nominal_stress(1.0 + strain, shear_modulus=law.shear_modulus)
        (line,) = curve.plot(strain, computed, linewidth=1.2, label=f"{law.label}: {100 * law.relative_error:.2g} %")
        below.plot(strain, computed - stress, linewidth=1.0, color=line.get_color())
    curve.axvspan(low, high, color="0.93", zorder=0)
    below.axvspan(low, high, color="0.93", zorder=0)
    span = float(np.abs(stress).max())
    curve.set_ylim(-0.05 * span, 1.3 * span)
    below.set_ylim(-0.2 * span, 0.2 * span)
    curve.set(ylabel="engineering stress, kPa", title=f"{fit.test.name}: laws fitted in the grey range")
    below.set(ylabel="law - measured, kPa", xlabel="engineering strain")
    below.axhline(0.0, color="k", linewidth=0.5)
    curve.legend(fontsize=8)
    return _save(figure, path)


def plot_viscous_fit(fit: ViscousFit, path: str | Path) -> Path:
    """Draw stress over time, measured and fitted, and below it the stretch; PNG, SVG or PDF by the name's ending.

    Parameters
    ----------
    fit : ViscousFit
        What to draw.
    path : path-like
        File to write.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        The name ends in no format of pictures, or there is no such folder.
    """
    path, figure = _new_figure(path)
    curve, below = figure.subplots(2, 1, height_ratios=[3, 1])
    relaxed = fit.law.law.nominal_stress
    for test in fit.tests:
        assert test.time is not None
        since = test.time - test.time[0]
        (line,) = curve.plot(since, 1e-3 * fit.stress(test), linewidth=1.2, label=f"{test.name}, fitted")
        curve.plot(since, 1e-3 * test.stress, "k.", markersize=2)
        long_term = relaxed(test.stretch, shear_modulus=fit.law.shear_modulus)
        curve.plot(since, 1e-3 * long_term, ":", linewidth=1.0, color=line.get_color())
        below.plot(since, test.stretch - 1.0, linewidth=1.0, color=line.get_color())
    curve.set(ylabel="engineering stress, kPa", title="measured (dots), fitted (lines), long-term law (dotted)")
    below.set(ylabel="engineering strain", xlabel="time, s")
    curve.legend(fontsize=8)
    return _save(figure, path)


def _new_figure(path: str | Path) -> tuple[Path, Figure]:
    """Check the name of a picture, and make an empty one."""
    check_output(Path(path), "name a file in a folder that exists")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"{path}: the picture's name must end in .png, .svg or .pdf; rename it.")
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    return path, figure


def _save(figure: Figure, path: Path) -> Path:
    """Write a picture whole or not at all."""
    with write_errors(path, "free the disk or choose another place"), replacing(path) as temporary:
        figure.savefig(temporary, dpi=120)
    return path
