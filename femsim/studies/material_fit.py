"""Fit of elastic laws to a tensile test: constants, errors, a picture and a material card."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contact.fclib import replacing
from femsim.base.errors import InputError, did_you_mean
from materials import (
    Corotational,
    Elastic,
    Law,
    MooneyRivlin,
    Ogden,
    StableNeoHookean,
    StVenantKirchhoff,
)
from materials.laws import Loading

_MODULUS = {"pa": 1.0, "kpa": 1e3, "mpa": 1e6, "n/mm2": 1e6, "gpa": 1e9}
_RATIO = {"": 1.0, "1": 1.0, "-": 1.0, "mm/mm": 1.0, "m/m": 1.0, "%": 0.01}
# loadings in which a fitted law is checked, compressed to half and pulled as far as the test went
_LOADINGS: tuple[Loading, ...] = ("uniaxial", "equibiaxial", "planar")


@dataclass(frozen=True)
class TensileTest:
    """A uniaxial test.

    Attributes
    ----------
    name : str
        Name of the file without its ending.
    stretch : ndarray, (n,)
        Length over rest length.
    stress : ndarray, (n,), Pa
        Engineering stress: force over rest area.
    """

    name: str
    stretch: np.ndarray
    stress: np.ndarray


@dataclass(frozen=True)
class LawFit:
    """A law fitted to a test.

    Attributes
    ----------
    label : str
        Name of the law, with the number of terms for Ogden.
    law : Law
        The law with its constants.
    shear_modulus : float, Pa
        Initial shear modulus.
    error : float, Pa
        Root mean square of the difference in engineering stress, over the range.
    relative_error : float
        The same over the root mean square of the measured stress.
    stable_from, stable_to : float
        Stretches around 1 between which the stress rises with the stretch, in uniaxial, equibiaxial and planar loading of the
        incompressible law; looked for from half to the end of the range.
    """

    label: str
    law: Law
    shear_modulus: float
    error: float
    relative_error: float
    stable_from: float
    stable_to: float

    @property
    def constants(self) -> int:
        """Number of constants fitted."""
        return 2 * len(self.law.mu) if isinstance(self.law, Ogden) else 2 if self.label == "mooney_rivlin" else 1


@dataclass(frozen=True)
class MaterialFit:
    """What :func:`fit_material` found.

    Attributes
    ----------
    test : TensileTest
        The whole test.
    strain_range : tuple of float
        Engineering strains of the first and the last sample used.
    samples : int
        Samples used.
    laws : tuple of LawFit
        One for each law asked for, in that order.
    """

    test: TensileTest
    strain_range: tuple[float, float]
    samples: int
    laws: tuple[LawFit, ...]

    @property
    def best(self) -> LawFit:
        """Law with the fewest constants among those within 5 % of the smallest error; only stable ones where there are any."""
        end = 1.0 + self.strain_range[1]
        stable = [fit for fit in self.laws if fit.stable_from <= 0.5 and fit.stable_to >= end * (1.0 - 1e-9)]
        near = [fit for fit in stable or self.laws if fit.error <= 1.05 * min(other.error for other in stable or self.laws)]
        return min(near, key=lambda fit: fit.constants)

    def summary(self) -> str:
        """Table of the laws: constants, error, stable range."""
        low, high = self.strain_range
        lines = [
            f"{self.test.name}: {self.samples} samples, engineering strain {low:.3g} to {high:.3g}",
            f"{'law':22} {'G Pa':>9} {'error Pa':>9} {'error':>7}  {'stable stretches':16}  constants",
        ]
        for fit in self.laws:
            stable = f"{fit.stable_from:.3g} to {fit.stable_to:.3g}"
            lines.append(
                f"{fit.label:22} {fit.shear_modulus:9.4g} {fit.error:9.3g} {100 * fit.relative_error:6.2f}%  {stable:16}  "
                f"{describe_law(fit.law, fit.shear_modulus)}"
            )
        return "\n".join(lines)


def _one_constant(law: Law) -> Callable[[np.ndarray], tuple[Law, float]]:
    return lambda x: (law, math.exp(x[0]))


def _mooney(x: np.ndarray) -> tuple[Law, float]:
    law = MooneyRivlin(float(x[0] ** 2), float(x[1] ** 2))
    return law, law.shear_modulus


def _ogden(x: np.ndarray) -> tuple[Law, float]:
    """Read x as (log(mu_p alpha_p), alpha_p) term by term: both of one sign always."""
    alpha = x[1::2]
    law = Ogden(tuple((np.exp(x[::2]) / alpha).tolist()), tuple(alpha.tolist()))
    return law, law.shear_modulus


#: From the name of a law to its function of the unknowns, and to the starts for a test of initial shear modulus G.
_FITS: dict[str, tuple[Callable[[np.ndarray], tuple[Law, float]], Callable[[float], list[list[float]]]]] = {
    "corotational": (_one_constant(Corotational()), lambda g: [[math.log(g)]]),
    "st_venant_kirchhoff": (_one_constant(StVenantKirchhoff()), lambda g: [[math.log(g)]]),
    "stable_neo_hookean": (_one_constant(StableNeoHookean()), lambda g: [[math.log(g)]]),
    "neo_hookean": (
        lambda x: (MooneyRivlin(0.5 * math.exp(x[0]), 0.0), math.exp(x[0])),
        lambda g: [[math.log(g)]],
    ),
    "mooney_rivlin": (_mooney, lambda g: [[math.sqrt(0.4 * g), math.sqrt(0.1 * g)], [math.sqrt(0.1 * g), math.sqrt(0.4 * g)]]),
    "ogden_1": (_ogden, lambda g: [[math.log(2 * g), 2.0], [math.log(2 * g), -2.0]]),
    "ogden_2": (
        _ogden,
        lambda g: [[math.log(g), a, math.log(0.3 * g), b] for a, b in ((1.5, 5.0), (2.0, -2.0), (3.0, -5.0), (1.2, 3.5))],
    ),
    "ogden_3": (
        _ogden,
        lambda g: [
            [math.log(g), a, math.log(0.3 * g), b, math.log(0.01 * g), c]
            for a, b, c in ((1.5, -2.0, 6.0), (2.0, 4.0, -4.0), (1.2, 3.0, 8.0))
        ],
    ),
}
FIT_LAWS = tuple(_FITS)
"""Names that :func:`fit_material` knows; "neo_hookean" is Mooney-Rivlin with c01 = 0."""


def read_tensile_test(path: str | Path) -> TensileTest:
    """Read engineering strain (or stretch) and stress from a CSV file.

    Parameters
    ----------
    path : path-like
        Text with lines of head, if any, then a line of column names, then numbers; separated by semicolons, tabs or commas. One
        column is named "engineering strain", "strain" or "stretch" (in parentheses 1, mm/mm or %), one "engineering stress",
        "nominal stress" or "stress" with its unit, e.g. "Engineering Stress (MPa)". Columns of true strain and stress are not
        used; other columns may stand beside.

    Returns
    -------
    TensileTest
        Samples in the order of the file.

    Raises
    ------
    InputError
        The file cannot be read, a column or its unit is missing, or a line is no numbers.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise InputError(f"{path}: the tensile test cannot be read ({reason}); check the path.") from None
    lines = text.splitlines()
    separator = max(";\t,", key=text.count)
    rows = list(csv.reader(lines, delimiter=separator))
    first = 0
    for row in rows:
        first += 1
        names = [re.sub(r"\s+", " ", re.sub(r"\(.*\)", "", cell)).strip().lower() for cell in row]
        x = next((names.index(n) for n in ("engineering strain", "nominal strain", "stretch", "strain") if n in names), None)
        y = next((names.index(n) for n in ("engineering stress", "nominal stress", "stress") if n in names), None)
        if x is not None and y is not None:
            break
    else:
        raise InputError(
            f"{path}: no line names a column 'engineering strain' (or 'stretch') and a column 'engineering stress (MPa)'; "
            "add such a line above the numbers."
        )
    factor_x = _unit(path, row[x], _RATIO)
    factor_y = _unit(path, row[y], _MODULUS)
    values = []
    for index, cells in enumerate(rows[first:], start=first + 1):
        if not any(cell.strip() for cell in cells):
            continue
        try:
            pair = float(cells[x]), float(cells[y])
        except (ValueError, IndexError):
            pair = (math.nan, math.nan)
        if not (math.isfinite(pair[0]) and math.isfinite(pair[1])):
            raise InputError(f"{path}, line {index}: {separator.join(cells)!r} has no two finite numbers; correct or remove it.")
        values.append(pair)
    data = np.array(values, dtype=np.float64).reshape(-1, 2)
    stretch = factor_x * data[:, 0] + (0.0 if names[x] == "stretch" else 1.0)
    if len(stretch) and stretch.min() <= 0.0:
        raise InputError(
            f"{path}: the smallest stretch is {stretch.min():.4g}, but must be greater than 0; check column {row[x]!r}."
        )
    return TensileTest(path.stem, stretch, factor_y * data[:, 1])


def _unit(path: Path, title: str, known: dict[str, float]) -> float:
    found = re.search(r"\((.*)\)", title)
    unit = (found.group(1) if found else "").strip()
    if unit.lower() not in known:
        allowed = ", ".join(name for name in known if name)
        raise InputError(f"{path}: column {title!r} has unit {unit!r}; allowed are {allowed} in parentheses behind the name.")
    return known[unit.lower()]


def fit_material(
    test: TensileTest | str | Path,
    laws: Sequence[str] = FIT_LAWS,
    *,
    min_strain: float = 0.05,
    max_strain: float = 1.0,
) -> MaterialFit:
    """Fit elastic laws to a tensile test by least squares in engineering stress, as incompressible bodies.

    Constants are kept where a law is stable: c10, c01 >= 0 of Mooney-Rivlin, mu_p alpha_p > 0 of Ogden.

    Parameters
    ----------
    test : TensileTest or path
        The test; a path is read by :func:`read_tensile_test`.
    laws : sequence of str
        Names out of ``FIT_LAWS``.
    min_strain, max_strain : float
        Engineering strains between which samples are used. Default 0.05 (grips settle below) to 1.

    Returns
    -------
    MaterialFit

    Raises
    ------
    InputError
        Unknown law, wrong range, fewer than 5 samples in it, or stresses that do not pull.
    """
    from scipy.optimize import least_squares

    if not isinstance(test, TensileTest):
        test = read_tensile_test(test)
    for name in laws:
        if name not in _FITS:
            raise InputError(f"law {name!r} cannot be fitted{did_you_mean(name, FIT_LAWS)}")
    if not -1.0 < min_strain < max_strain < math.inf:
        raise InputError(f"min_strain is {min_strain} and max_strain {max_strain}; allowed is -1 < min_strain < max_strain.")
    used = (test.stretch - 1.0 >= min_strain) & (test.stretch - 1.0 <= max_strain)
    stretch, stress = test.stretch[used], test.stress[used]
    if len(stretch) < 5:
        reach = f"{test.stretch.min() - 1:.3g} to {test.stretch.max() - 1:.3g}" if len(test.stretch) else "none"
        raise InputError(
            f"{test.name}: {len(stretch)} samples lie between the strains {min_strain:g} and {max_strain:g}, but a fit needs 5; "
            f"the test has strains {reach}."
        )
    unit = stretch - stretch**-2.0  # stress of a neo-Hookean rubber of G = 1 Pa
    start = float(unit @ stress / (unit @ unit))
    if start <= 0.0:
        raise InputError(f"{test.name}: the stress falls as the stretch grows (G = {start:.3g} Pa); check the signs.")
    fits = []
    size = float(np.sqrt(np.mean(stress**2)))
    for name in laws:
        make, starts = _FITS[name]

        def misfit(x: np.ndarray, make: Callable[[np.ndarray], tuple[Law, float]] = make) -> np.ndarray:
            law, shear = make(x)
            return (law.nominal_stress(stretch, shear_modulus=shear) - stress) / size

        results = []
        for guess in starts(start):
            low, high = np.full(len(guess), -np.inf), np.full(len(guess), np.inf)
            if name.startswith("ogden"):  # an exponent keeps the sign and the size range of its start
                exponents = np.array(guess[1::2])
                low[1::2], high[1::2] = np.where(exponents > 0, 0.1, -15.0), np.where(exponents > 0, 15.0, -0.1)
                low[::2], high[::2] = math.log(start) - 25.0, math.log(start) + 5.0
            results.append(least_squares(misfit, guess, bounds=(low, high), x_scale="jac", max_nfev=2000))
        best = min(results, key=lambda r: r.cost)
        law, shear = make(best.x)
        relative = float(np.sqrt(np.mean(best.fun**2)))
        stable = _stable_range(law, shear, float(stretch.max()))
        fits.append(LawFit(name, law, shear, relative * size, relative, *stable))
    return MaterialFit(test, (float(stretch.min() - 1.0), float(stretch.max() - 1.0)), len(stretch), tuple(fits))


def _stable_range(law: Law, shear: float, furthest: float) -> tuple[float, float]:
    """Stretches around 1 between which the stress rises in every loading."""
    edges = []
    for reach in (0.5, max(furthest, 1.0)):
        stretch = np.linspace(1.0, reach, 400)
        edge = reach
        for loading in _LOADINGS:
            stress = law.nominal_stress(stretch, loading, shear)
            falling = np.diff(stress) / np.diff(stretch) <= 0.0 if reach != 1.0 else np.zeros(1, dtype=bool)
            if falling.any():
                limit = float(stretch[np.argmax(falling)])
                edge = max(edge, limit) if reach < 1.0 else min(edge, limit)
        edges.append(edge)
    return edges[0], edges[1]


def describe_law(law: Law, shear: float) -> str:
    """Constants of a law in words."""
    if isinstance(law, MooneyRivlin):
        return f"c10 {law.c10:.5g} Pa, c01 {law.c01:.5g} Pa"
    if isinstance(law, Ogden):
        return ", ".join(f"mu {mu:.5g} Pa alpha {alpha:.4g}" for mu, alpha in zip(law.mu, law.alpha, strict=True))
    return f"G {shear:.5g} Pa"


def write_card(
    path: str | Path, fit: MaterialFit, chosen: LawFit, *, poisson_ratio: float = 0.49, density: float = 1000.0
) -> Path:
    """Write a material card that ``fs.load_card`` and, in ``data/materials``, every scene can read.

    Parameters
    ----------
    path : path-like
        File to write, NAME.toml.
    fit, chosen : MaterialFit, LawFit
        The fit, and the law of it that the card is of.
    poisson_ratio, density : float, 1 and kg/m3
        What a tensile test does not tell.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        The name does not end in .toml, or there is no such folder.
    MaterialError
        A constant is out of range.
    """
    path = Path(path)
    if path.suffix != ".toml":
        raise InputError(f"{path}: a card is a TOML file; let its name end in .toml.")
    young = 2.0 * chosen.shear_modulus * (1.0 + poisson_ratio)
    Elastic(young, poisson_ratio, density, law=chosen.law)
    low, high = fit.strain_range
    source = (
        f"least-squares fit of {chosen.label} by femsim fit-material to {fit.test.name}, engineering strain {low:.3g} to "
        f"{high:.3g}, error {100 * chosen.relative_error:.2g} %"
    )
    text = [
        f'title = "{_quoted(fit.test.name)}, fitted"',
        'note = "From one tensile test; no compression, no shear."',
    ]
    values = (
        ("young_modulus", young, "Pa", f"2 G (1 + nu) of the {source}"),
        ("poisson_ratio", poisson_ratio, "1", "not from the test: given to femsim fit-material, or assumed (0.49)"),
        ("density", density, "kg/m3", "not from the test: given to femsim fit-material, or assumed (1000)"),
    )
    for field, value, unit, origin in values:
        text += ["", f"[{field}]", f"value = {value!r}", f'unit = "{unit}"', f'source = "{_quoted(origin)}"']
    text += ["", "[law]", f'kind = "{chosen.law.kind}"']
    if isinstance(chosen.law, MooneyRivlin):
        text += [f"c10 = {chosen.law.c10!r}", f"c01 = {chosen.law.c01!r}"]
    elif isinstance(chosen.law, Ogden):
        text += [f"mu = {list(chosen.law.mu)!r}", f"alpha = {list(chosen.law.alpha)!r}"]
    text += ['unit = "Pa"', f'source = "{_quoted(source)}"', ""]
    _check_folder(path)
    with replacing(path) as temporary:
        temporary.write_text("\n".join(text), encoding="utf-8")
    return path


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
    _check_folder(Path(path))
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"{path}: the picture's name must end in .png, .svg or .pdf; rename it.")
    low, high = fit.strain_range
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
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
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=120, format=path.suffix[1:].lower())
    return path


def _check_folder(path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        reason = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise InputError(f"the output {path} {reason}; name a file in a folder that exists.")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
