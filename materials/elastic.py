"""Isotropic elasticity: the constants of one solid, validated once."""

import dataclasses
import difflib
import math
from dataclasses import dataclass

from materials.errors import MaterialError
from materials.laws import Corotational, Law, as_law
from materials.viscous import Prony, checked_prony

_ADVICE = {
    "young_modulus": (
        "greater than 0 and at most 1e16 Pa",
        "give Young's modulus in pascal, for example 1e6 for a soft rubber",
    ),
    "poisson_ratio": ("between -1 and 0.5, both excluded", "take 0.49 for a nearly incompressible rubber"),
    "density": ("greater than 0 and at most 1e12 kg/m3", "give the density in kg/m3, for example 1000"),
    "rayleigh_alpha": ("at least 0 and at most 1e12 1/s", "take 0 for no mass-proportional damping"),
    "rayleigh_beta": ("at least 0 and at most 1e12 s", "take 0 for no stiffness-proportional damping"),
}

#: No matter comes near these, and with numbers beyond them masses and stiffnesses overflow.
_MOST = {"young_modulus": 1e16, "density": 1e12, "rayleigh_alpha": 1e12, "rayleigh_beta": 1e12}


_DEFAULT_LAW = Corotational()


def _allowed(field: str, value: float) -> bool:
    if field == "poisson_ratio":
        return -1.0 < value < 0.5
    if field.startswith("rayleigh"):
        return 0.0 <= value <= _MOST[field]
    return 0.0 < value <= _MOST[field]


@dataclass(frozen=True)
class Elastic:
    """Constants of an isotropic elastic or viscoelastic solid, with Rayleigh damping.

    Parameters
    ----------
    young_modulus : float
        Young's modulus E, Pa, greater than 0.
    poisson_ratio : float
        Poisson's ratio nu, dimensionless, in the open interval (-1, 0.5).
    density : float
        Mass per volume, kg/m3, greater than 0.
    rayleigh_alpha : float
        Mass-proportional damping, 1/s, at least 0: damping matrix D = alpha M + beta K.
    rayleigh_beta : float
        Stiffness-proportional damping, s, at least 0.
    name : str
        Name shown in messages and used to look up friction pairs.
    law : Law or str
        Elastic law for large strain (see `materials.laws`), by name if it has no constants. The constants of a law only set the
        shape of its curve: they are scaled so that E and nu hold at small strain. Default co-rotational.
    prony : sequence of (g, tau)
        Viscoelasticity by Prony terms (see `materials.viscous`): g, at least 0, a part of the long-term shear modulus, that of
        E and nu; tau, s, greater than 0, the time in which it relaxes. Default (): none. For soft bodies.

    Raises
    ------
    MaterialError
        If a value is not a number or not in its range, the law is unknown, or it is not co-rotational and nu is negative; the
        message names the field.
    """

    young_modulus: float
    poisson_ratio: float
    density: float
    rayleigh_alpha: float = 0.0
    rayleigh_beta: float = 0.0
    name: str = ""
    law: Law = _DEFAULT_LAW
    prony: Prony = ()

    def __post_init__(self) -> None:
        """Convert every constant to float and check its range."""
        where = f"material {self.name!r}: " if self.name else "material: "
        for field, (allowed, advice) in _ADVICE.items():
            given = getattr(self, field)
            try:
                value = math.nan if isinstance(given, (bool, str, bytes)) else float(given)
            except (TypeError, ValueError):
                value = math.nan
            if not _allowed(field, value):
                raise MaterialError(f"{where}{field} is {given!r}, but must be a number {allowed}; {advice}.")
            object.__setattr__(self, field, value)
        object.__setattr__(self, "law", as_law(where, self.law))
        object.__setattr__(self, "prony", checked_prony(where, self.prony))
        if self.poisson_ratio < 0.0 and not isinstance(self.law, Corotational):
            raise MaterialError(
                f"{where}poisson_ratio is {self.poisson_ratio!r}, but law {self.law.kind!r} needs at least 0; "
                "take a larger one, or the co-rotational law."
            )

    @classmethod
    def from_law(
        cls,
        law: Law,
        poisson_ratio: float,
        density: float,
        *,
        rayleigh_alpha: float = 0.0,
        rayleigh_beta: float = 0.0,
        name: str = "",
        prony: Prony = (),
    ) -> "Elastic":
        """Return the solid whose law has exactly the given constants: E = 2 G (1 + nu), G the law's shear modulus.

        Parameters
        ----------
        law : Law
            Law with constants, Pa.
        poisson_ratio, density, rayleigh_alpha, rayleigh_beta, name, prony
            See the class.

        Raises
        ------
        MaterialError
            If the law has no constants, or a value is out of range.
        """
        shear = law.shear_modulus
        if shear is None:
            raise MaterialError(f"material {name!r}: law {law.kind!r} has no constants of its own; give young_modulus instead.")
        return cls(2.0 * shear * (1.0 + poisson_ratio), poisson_ratio, density, rayleigh_alpha, rayleigh_beta, name, law, prony)

    @property
    def lame_lambda(self) -> float:
        """First Lame constant E nu / ((1 + nu)(1 - 2 nu)), Pa."""
        nu = self.poisson_ratio
        return self.young_modulus * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))

    @property
    def lame_mu(self) -> float:
        """Shear modulus E / (2 (1 + nu)), Pa."""
        return self.young_modulus / (2.0 * (1.0 + self.poisson_ratio))

    @property
    def bulk_modulus(self) -> float:
        """Bulk modulus E / (3 (1 - 2 nu)), Pa."""
        return self.young_modulus / (3.0 * (1.0 - 2.0 * self.poisson_ratio))

    @property
    def p_wave_speed(self) -> float:
        """Speed of the pressure wave sqrt((lambda + 2 mu) / rho), m/s."""
        return math.sqrt((self.lame_lambda + 2.0 * self.lame_mu) / self.density)

    def replace(self, **changes: float | str | Law | Prony) -> "Elastic":
        """Return a copy with some fields changed, validated again.

        Parameters
        ----------
        **changes
            New values by field name, in the units of the class.

        Raises
        ------
        MaterialError
            If a name is no field (the nearest one is given) or a value is out of range.
        """
        fields = [field.name for field in dataclasses.fields(self)]
        for key in changes:
            if key not in fields:
                near = difflib.get_close_matches(key, fields, n=1, cutoff=0.0)[0]
                raise MaterialError(
                    f"material {self.name!r}: {key!r} is not a field; did you mean {near!r}? The fields are {', '.join(fields)}."
                )
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # checked by __post_init__
