"""Units of the files of others: their SI values, and how they stand in column names and headers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from femsim.base.errors import InputError

_KGF, _LBF, _INCH = 9.80665, 4.4482216152605, 0.0254
_LONGEST_NAME = 200
TIME_UNITS = {
    "s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "µs": 1e-6, "\u03bcs": 1e-6, "ns": 1e-9,
    "min": 60.0, "mins": 60.0, "minutes": 60.0, "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hours": 3600.0,
}  # fmt: skip
#: SI value of one unit, by what is measured.
UNITS: dict[str, dict[str, float]] = {
    "force": {
        "N": 1.0, "uN": 1e-6, "mN": 1e-3, "cN": 1e-2, "daN": 10.0, "kN": 1e3, "kg": _KGF, "kgf": _KGF, "g": 1e-3 * _KGF,
        "gf": 1e-3 * _KGF, "lbf": _LBF, "lb": _LBF,
    },
    "torque": {
        "Nm": 1.0, "mNm": 1e-3, "Nmm": 1e-3, "Ncm": 1e-2, "kgfm": _KGF, "kgfcm": 1e-2 * _KGF, "lbfin": _LBF * _INCH,
        "lbin": _LBF * _INCH, "inlb": _LBF * _INCH, "lbfft": 12 * _LBF * _INCH,
    },
    "length": {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": _INCH},
    "angle": {"rad": 1.0, "deg": math.pi / 180.0},
    "rate": {"rad/s": 1.0, "radps": 1.0, "deg/s": math.pi / 180.0, "degps": math.pi / 180.0, "rpm": math.pi / 30.0},
    "speed": {"m/s": 1.0, "mps": 1.0, "cm/s": 1e-2, "mm/s": 1e-3, "mmps": 1e-3},
    "pressure": {"Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "hPa": 100.0, "mbar": 100.0, "bar": 1e5, "psi": _LBF / _INCH**2},
    "area": {"m2": 1.0, "m^2": 1.0, "cm2": 1e-4, "mm2": 1e-6},
    "volume": {"m3": 1.0, "m^3": 1.0, "l": 1e-3, "L": 1e-3, "ml": 1e-6, "mL": 1e-6, "cm3": 1e-6, "mm3": 1e-9},
    "energy": {"J": 1.0, "mJ": 1e-3, "kJ": 1e3},
    "number": {"1": 1.0, "%": 1e-2},
}  # fmt: skip
#: What is measured by columns of a run, by the units that their names end in, and the units as they are written; the names of
#: numbers end in none.
COLUMN_UNITS = {
    "N": ("force", "N"), "Nm": ("torque", "N m"), "m": ("length", "m"), "rad": ("angle", "rad"), "radps": ("rate", "rad/s"),
    "mps": ("speed", "m/s"), "Pa": ("pressure", "Pa"), "m2": ("area", "m^2"), "m3": ("volume", "m^3"), "J": ("energy", "J"),
    "": ("number", "1"),
}  # fmt: skip
#: What names of times have in them.
_OF_TIME = re.compile(r"time|stamp|elapsed|clock|\bt$", re.IGNORECASE)
#: Units of these are taken off the names of all columns of a table; others are letters and words too often (tau_l, mean_bar).
_IN_NAMES = ("force", "torque", "length", "angle")


def plain_unit(unit: str) -> str:
    """Write a unit without blanks, dots and dashes: "N·m", "N m" and "N-m" are "Nm"."""
    return re.sub(r"[\s.*·⋅\-_]", "", unit)


def is_unit(text: str) -> bool:
    """Whether a text is a unit of time, force, torque, length or angle."""
    unit = plain_unit(text)
    return bool(unit) and (unit in TIME_UNITS or any(unit in UNITS[kind] for kind in _IN_NAMES))


def units_of_row(cells: Sequence[str]) -> list[str]:
    """Read a line of a header as units, "(ms)", "mN", "-" for none; empty where most of its cells are none that are known."""
    units = [re.sub(r"^[(\[]\s*(.*?)\s*[)\]]$", r"\1", cell) for cell in cells]
    stated = [unit for unit in units if unit not in ("", "-")]
    known = sum(unit in TIME_UNITS or any(plain_unit(unit) in kind for kind in UNITS.values()) for unit in stated)
    return ["" if unit == "-" else unit for unit in units] if 2 * known > len(stated) else []


def _ends_in_unit(name: str) -> bool:
    """Whether the last word of a name is a unit of anything, or a number."""
    last = re.split(r"[\s_]", name)[-1]
    return last.isdigit() or last in TIME_UNITS or any(last in units for units in UNITS.values())


def split_unit(name: str) -> tuple[str, str]:
    """Split "Fx (N)", "Fx [N]", "Fx / N", "Fx, N", "Fx in N", "Fx mN" and "left_fx_N" into name and unit.

    What is no unit stays in the name. "v m/s" is no velocity in m over seconds: what ends in a unit before the stroke is none of
    these. After a blank alone a letter is none either, nor are min, the smallest, and in; h is one of times alone, since "F_h" is
    horizontal.
    """
    if len(name) > _LONGEST_NAME:  # the time of the search grows with its square
        return name, ""
    match = re.fullmatch(r"(.+?)\s*[\[(]([^\])]*)[\])]", name) or re.fullmatch(r"(.+?)_([A-Za-zµ\u03bc]+)", name)
    stroke = None if match else re.fullmatch(r"(.+?)\s*/\s*([A-Za-zµ\u03bc·. ]+)", name)
    if stroke and not _ends_in_unit(stroke[1]):
        match = stroke
    if not match:
        match = re.fullmatch(r"(.+?)(?:,\s*|\s+in\s+)([A-Za-zµ\u03bc·. ]+)", name)
        match = match or re.fullmatch(r"(.+?)\s+(?!(?:min|in)$)((?:[mk]?N[ ·.]?)?[A-Za-zµ\u03bc]{2,})", name)
    if match and is_unit(match[2]) and (plain_unit(match[2]) != "h" or _OF_TIME.search(match[1])):
        return match[1].strip(), match[2]
    return name, ""


def stated_unit(name: str, kind: str) -> str:
    """Return the unit that the name of a column ends in, such as "p_kPa" or "p [kPa]"; "" where it has none.

    After a dash, a comma or a blank, only units of the quantity count (mean_bar is no torque); in brackets all do but single
    letters, such as "(l)" for left, so that a wrong one is refused.
    """
    match = re.search(
        r"(?:(?:_|\s/\s*|,\s*|\sin\s+|\s(?=\S\S))([A-Za-z0-9/^]+)|[\[(]([^\[\]()]+)[\])])$", name[-_LONGEST_NAME:].strip()
    )
    if not match:
        return ""
    unit = plain_unit(match[1] or match[2])
    of_another = match[1] is None and len(unit) > 1 and any(unit in units for units in UNITS.values())
    return unit if unit in UNITS[kind] or of_another else ""


def unit_factor(where: str, kind: str, given: str | float | None, stated: str) -> float:
    """SI value of the unit of a column.

    Parameters
    ----------
    where : str
        The column, for the message.
    kind : str
        What it measures, a key of ``UNITS``.
    given : str or float, optional
        What the card says: the name of a unit, or its SI value.
    stated : str
        What the file says, where the card says nothing; "" is the SI unit.

    Raises
    ------
    InputError
        No unit of that kind.
    """
    unit = stated if given is None else given
    if not isinstance(unit, str):
        return unit
    if unit and plain_unit(unit) not in UNITS[kind]:
        raise InputError(f"{where} has the unit {unit!r}, which is none of a {kind}; set units.{kind} in the card.")
    return UNITS[kind][plain_unit(unit)] if unit else 1.0
