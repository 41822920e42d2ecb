"""Cross sections of rods: areas, second moments, torsion constant and shear factors."""

from __future__ import annotations

import math
from dataclasses import dataclass

from materials.errors import MaterialError

_FIELDS = {
    "area": "m2",
    "second_moment_1": "m4",
    "second_moment_2": "m4",
    "torsion_constant": "m4",
    "shear_factor_1": "",
    "shear_factor_2": "",
    "contact_radius": "m",
    "bending_factor": "",
}


@dataclass(frozen=True)
class RodSection:
    """Cross section of a rod in its principal axes 1 and 2; axis 3 is the tangent of the rod.

    Use :func:`circular_section` or :func:`rectangular_section` for common shapes, and give the numbers for any other.

    Parameters
    ----------
    area : float
        Area A, m2.
    second_moment_1 : float
        Integral of x2^2 dA, m4: rotary inertia, and resists bending about axis 1.
    second_moment_2 : float
        Integral of x1^2 dA, m4: rotary inertia, and resists bending about axis 2.
    torsion_constant : float
        St. Venant's constant, m4: torque = G torsion_constant times twist. At most the polar moment, which only a circle reaches.
    shear_factor_1, shear_factor_2 : float
        Fraction of G A that resists shear along axis 1 and 2, in (0, 1].
    contact_radius : float
        Radius of the round contact surface, m.
    bending_factor : float
        Bending and torsional stiffness, as a fraction of that of a solid section. Default 1; threads that slide on each other
        resist bending and twist far less, with the same inertia.

    Raises
    ------
    MaterialError
        If a value is not a finite number greater than 0, or out of its range; the message names the field.
    """

    area: float
    second_moment_1: float
    second_moment_2: float
    torsion_constant: float
    shear_factor_1: float
    shear_factor_2: float
    contact_radius: float
    bending_factor: float = 1.0

    def __post_init__(self) -> None:
        """Convert every number to float and check its range."""
        for field, unit in _FIELDS.items():
            value = _positive("rod section", field, unit, getattr(self, field))
            if field.startswith("shear") and value > 1.0:
                raise MaterialError(
                    f"rod section: {field} is {value!r}, but must be greater than 0 and at most 1; use 1 for no loss."
                )
            object.__setattr__(self, field, value)
        if self.torsion_constant > (1.0 + 1e-9) * self.polar_moment:
            raise MaterialError(
                f"rod section: torsion_constant is {self.torsion_constant!r} m4, but must not exceed the polar moment "
                f"second_moment_1 + second_moment_2 = {self.polar_moment:.6g} m4; check the units of the section."
            )

    @property
    def polar_moment(self) -> float:
        """Integral of x1^2 + x2^2 over the section, m4: rotary inertia about the tangent is density times this, per metre."""
        return self.second_moment_1 + self.second_moment_2


def circular_section(radius: float, *, shear_factor: float = 0.9, bending: float = 1.0) -> RodSection:
    """Circular section: a solid rod, or a rope of many threads.

    Parameters
    ----------
    radius : float
        Radius, m, greater than 0.
    shear_factor : float
        Fraction of G A that resists shear, in (0, 1]. Default 9/10, from the energy of the parabolic shear stress. Cowper (1966)
        gives 6 (1 + nu) / (7 + 6 nu); the program of papers/001 uses 1.
    bending : float
        Bending and torsional stiffness, as a fraction of that of a solid circle. Default 1; threads that slide on each other
        resist bending and twist far less, e.g. 1e-4.

    Returns
    -------
    RodSection
        Area pi r^2, second moments pi r^4 / 4, torsion constant pi r^4 / 2.

    Raises
    ------
    MaterialError
        If the radius or bending is not greater than 0 or the shear factor is out of range.
    """
    radius = _positive("circular rod section", "radius", "m", radius)
    bending = _positive("circular rod section", "bending", "", bending)
    second = 0.25 * math.pi * radius**4
    return RodSection(math.pi * radius**2, second, second, 2.0 * second, shear_factor, shear_factor, radius, bending)


def rectangular_section(width: float, height: float, *, shear_factor: float = 5.0 / 6.0) -> RodSection:
    """Rectangular section, ``width`` along axis 1 and ``height`` along axis 2.

    Parameters
    ----------
    width, height : float
        Sides, m, greater than 0.
    shear_factor : float
        Fraction of G A that resists shear, in (0, 1]. Default 5/6, from the energy of the parabolic shear stress.

    Returns
    -------
    RodSection
        Its torsion constant is St. Venant's series (Timoshenko and Goodier, Theory of Elasticity, section 109); contact uses the
        largest circle inside the section.

    Raises
    ------
    MaterialError
        If a side is not greater than 0 or the shear factor is out of range.
    """
    width = _positive("rectangular rod section", "width", "m", width)
    height = _positive("rectangular rod section", "height", "m", height)
    long, short = max(width, height), min(width, height)
    # the remainder of the sum is below 1e-14
    series = sum(math.tanh(0.5 * n * math.pi * long / short) / n**5 for n in range(1, 2000, 2))
    torsion = long * short**3 / 3.0 * (1.0 - 192.0 * short / (math.pi**5 * long) * series)
    return RodSection(
        width * height, width * height**3 / 12.0, height * width**3 / 12.0, torsion, shear_factor, shear_factor, 0.5 * short
    )


def _positive(where: str, field: str, unit: str, given: float) -> float:
    try:
        value = math.nan if isinstance(given, (bool, str, bytes)) else float(given)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 < value < math.inf:
        unit = f" {unit}" if unit else ""
        raise MaterialError(f"{where}: {field} is {given!r}, but must be a finite number greater than 0{unit}; correct {field}.")
    return value
