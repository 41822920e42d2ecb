"""The material card of a fitted law: a TOML file with the source of each value."""

from __future__ import annotations

from pathlib import Path

from femsim.base.errors import InputError
from femsim.base.files import check_output, replacing, write_errors
from femsim.studies.material_fit.fit import LawFit, MaterialFit
from materials import Elastic, MooneyRivlin, Ogden, Prony


def write_card(
    path: str | Path,
    fit: MaterialFit,
    chosen: LawFit,
    *,
    poisson_ratio: float = 0.49,
    density: float = 1000.0,
    prony: Prony = (),
) -> Path:
    """Write a material card that ``fs.load_card`` and, in the library of materials, every scene can read.

    Parameters
    ----------
    path : path-like
        File to write, NAME.toml.
    fit, chosen : MaterialFit, LawFit
        The fit, and which of its laws goes into the card.
    poisson_ratio, density : float, 1 and kg/m3
        Values that a tensile test does not give.
    prony : sequence of (g, tau)
        Prony terms of a :class:`~femsim.studies.material_fit.viscous_fit.ViscousFit`, of which ``fit`` and ``chosen`` are the
        ``fit`` and ``law``.

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
    Elastic(young, poisson_ratio, density, law=chosen.law, prony=prony)
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
    if prony:
        terms = [list(term) for term in prony]
        text += ["[prony]", f"terms = {terms!r}", 'unit = ["1", "s"]', f'source = "with the law: {_quoted(source)}"', ""]
    check_output(path, "name a file in a folder that exists")
    with write_errors(path, "free the disk or choose another place"), replacing(path) as temporary:
        temporary.write_text("\n".join(text), encoding="utf-8")
    return path


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
