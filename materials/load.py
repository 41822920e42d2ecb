"""The library of materials: TOML cards and friction pairs, each value with its unit and source."""

import difflib
import math
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import foreign
from foreign import text
from materials.elastic import Elastic
from materials.errors import MaterialError
from materials.laws import LAWS, Law
from materials.viscous import Prony

_PACKED = Path(__file__).resolve().parent / "_data"  # a wheel has its copy of the cards here; a clone never has this folder
LIBRARY = _PACKED if _PACKED.is_dir() else _PACKED.parents[1] / "data" / "materials"
"""Folder of the cards: one `NAME.toml` per material, and `friction.toml` with the pairs."""

_FRICTION_FILE = "friction.toml"
#: Keys of the card of a log, which is no card of a material.
_LOG_KEYS = {"axes", "markers", "columns", "time", "units", "frame", "tare", "gravity", "filter", "sensor", "window", "topic"}
_UNITS = {
    "young_modulus": "Pa",
    "poisson_ratio": "1",
    "density": "kg/m3",
    "rayleigh_alpha": "1/s",
    "rayleigh_beta": "s",
}
# pydantic reads this attribute of a plain dataclass, so the classes need no import of it.
_CONFIG = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True)
class Quantity:
    """One number of a card.

    Parameters
    ----------
    value : float
        The number, in `unit`.
    unit : str
        SI unit; "1" for a dimensionless number.
    source : str
        Origin of the number: data sheet, standard, paper, or the remark that it is typical or assumed.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _CONFIG

    value: float
    unit: str
    source: str


@dataclass(frozen=True)
class LawCard:
    """Elastic law of a card.

    Parameters
    ----------
    kind : str
        Name of the law: one of `materials.LAWS`.
    source : str
        Where the constants come from.
    unit : str
        Unit of the moduli, "Pa".
    c10, c01 : float or None
        Constants of "mooney_rivlin".
    mu, alpha : tuple of float or None
        Constants and exponents of "ogden".
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _CONFIG

    kind: str
    source: str
    unit: str = "Pa"
    c10: float | None = None
    c01: float | None = None
    mu: tuple[float, ...] | None = None
    alpha: tuple[float, ...] | None = None

    def law(self) -> Law:
        """Return the law.

        Raises
        ------
        MaterialError
            If there is no such law, or a constant is missing, out of range, or belongs to another law.
        """
        cls = LAWS.get(self.kind)
        if cls is None:
            near = difflib.get_close_matches(self.kind, LAWS, n=1, cutoff=0.0)[0]
            raise MaterialError(f"law.kind is {self.kind!r}; did you mean {near!r}? Allowed are {', '.join(LAWS)}.")
        needed = [field.name for field in fields(cls)]  # type: ignore[arg-type]  # all laws are dataclasses
        for key in ("c10", "c01", "mu", "alpha"):
            if (getattr(self, key) is not None) != (key in needed):
                cure = "add it" if key in needed else "remove it"
                raise MaterialError(f"law.{key} is {getattr(self, key)!r}, but law {self.kind!r} has {needed or 'none'}; {cure}.")
        return cls(**{key: getattr(self, key) for key in needed})


@dataclass(frozen=True)
class PronyCard:
    """Prony terms of a card.

    Parameters
    ----------
    terms : tuple of (float, float)
        Pairs (g, tau): part of the long-term shear modulus, and relaxation time in s.
    source : str
        Where they come from.
    unit : tuple of str
        Units of the two, ("1", "s").
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _CONFIG

    terms: tuple[tuple[float, float], ...]
    source: str
    unit: tuple[str, str] = ("1", "s")


@dataclass(frozen=True)
class Material:
    """One card of the library.

    Parameters
    ----------
    name : str
        Name of the card, equal to its file name without `.toml`.
    title : str
        The material in words.
    young_modulus, poisson_ratio, density : Quantity
        Pa, dimensionless, kg/m3.
    rayleigh_alpha, rayleigh_beta : Quantity or None
        Rayleigh damping, 1/s and s, if the card has it.
    law : LawCard or None
        Elastic law for large strain; co-rotational if the card has none. Its initial shear modulus agrees with E and nu.
    prony : PronyCard or None
        Viscoelasticity; `young_modulus` is then the long-term one.
    note : str
        What a user should know before trusting the numbers.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _CONFIG

    name: str
    title: str
    young_modulus: Quantity
    poisson_ratio: Quantity
    density: Quantity
    rayleigh_alpha: Quantity | None = None
    rayleigh_beta: Quantity | None = None
    law: LawCard | None = None
    prony: PronyCard | None = None
    note: str = ""

    def elastic(self, **changes: float | str | Law | Prony) -> Elastic:
        """Return the card's constants, optionally with some replaced.

        Parameters
        ----------
        **changes
            New values by field name of `Elastic`, in its units.

        Raises
        ------
        MaterialError
            If a name is no field or a value is out of range.
        """
        constants = Elastic(
            young_modulus=self.young_modulus.value,
            poisson_ratio=self.poisson_ratio.value,
            density=self.density.value,
            rayleigh_alpha=self.rayleigh_alpha.value if self.rayleigh_alpha else 0.0,
            rayleigh_beta=self.rayleigh_beta.value if self.rayleigh_beta else 0.0,
            name=self.name,
            law=self.law.law() if self.law else "corotational",  # type: ignore[arg-type]  # a name is allowed, see Elastic
            prony=self.prony.terms if self.prony else (),
        )
        return constants.replace(**changes)


@dataclass(frozen=True)
class FrictionPair:
    """Coulomb friction coefficient between two materials of the library; the order does not matter.

    Parameters
    ----------
    a, b : str
        Names of cards; they may be equal.
    value : float
        Coefficient, dimensionless, at least 0.
    source : str
        Where the number comes from.
    note : str
        Range, static value or conditions.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _CONFIG

    a: str
    b: str
    value: float
    source: str
    note: str = ""


@dataclass(frozen=True)
class _FrictionFile:
    __pydantic_config__: ClassVar[dict[str, Any]] = _CONFIG

    pair: tuple[FrictionPair, ...] = ()


def materials() -> tuple[str, ...]:
    """Return the names of all cards of the library, sorted.

    Raises
    ------
    MaterialError
        If the folder of the cards is missing.
    """
    if not LIBRARY.is_dir():
        raise MaterialError(f"the folder of the material cards, {LIBRARY}, is missing; install femsim again.")
    return tuple(sorted(path.stem for path in LIBRARY.glob("*.toml") if path.name != _FRICTION_FILE))


@cache
def material(name: str) -> Material:
    """Return one card of the library.

    Parameters
    ----------
    name : str
        Name of the card, one of `materials()`.

    Returns
    -------
    Material
        The card; the same object at every call.

    Raises
    ------
    MaterialError
        If there is no such card (the nearest name is given) or the card is wrong.
    """
    names = materials()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else f"the library has {', '.join(names)}. "
        raise MaterialError(f"material {name!r} is not in the library; {hint}`femsim materials` lists all cards.")
    return load_card(LIBRARY / f"{name}.toml")


def load_card(path: str | Path) -> Material:
    """Read and check one material card, from the library or from a user's own file.

    Cards of logs, which say what columns are, are read by ``fs.compare(..., card)`` and ``femsim compare --card``.

    Parameters
    ----------
    path : path-like
        A TOML file with the fields of `Material`; each quantity is a table of value, unit and source.

    Returns
    -------
    Material
        The card; its `name` is the file name without the suffix.

    Raises
    ------
    MaterialError
        If the file is missing or no TOML, a key is unknown or missing, a unit is not the one asked
        for, a source is empty, or a value is out of range; the message names file and field.
    """
    path = Path(path)
    content = _read_toml(path)
    _refuse_other_files(path, content)
    card: Material = _validated(Material, {"name": path.stem, **content}, path)
    if card.name != path.stem:
        raise MaterialError(f"{path}: name is {card.name!r}, but must be the file name {path.stem!r}; rename one of the two.")
    for field, unit in _UNITS.items():
        quantity: Quantity | None = getattr(card, field)
        if quantity is None:
            continue
        if quantity.unit != unit:
            raise MaterialError(f"{path}: {field}.unit is {quantity.unit!r}, but must be {unit!r}; convert the value.")
        _check_source(quantity.source, f"{path}: {field}.source")
    if card.law is not None:
        _check_source(card.law.source, f"{path}: law.source")
        if card.law.unit != "Pa":
            raise MaterialError(f"{path}: law.unit is {card.law.unit!r}, but must be 'Pa'; convert the constants.")
    if card.prony is not None:
        _check_source(card.prony.source, f"{path}: prony.source")
        if card.prony.unit != ("1", "s"):
            raise MaterialError(f"{path}: prony.unit is {list(card.prony.unit)!r}, but must be ['1', 's']; convert the terms.")
    try:
        constants = card.elastic()
        shear = constants.law.shear_modulus
        if shear is not None and abs(shear - constants.lame_mu) > 0.01 * constants.lame_mu:
            raise MaterialError(
                f"the law's initial shear modulus is {shear:.6g} Pa, but young_modulus and poisson_ratio give "
                f"{constants.lame_mu:.6g} Pa; make young_modulus {2.0 * shear * (1.0 + constants.poisson_ratio):.6g} Pa."
            )
    except MaterialError as error:
        raise MaterialError(f"{path}: {error}") from None
    return card


def friction(a: str, b: str) -> FrictionPair | None:
    """Return the friction pair of two materials, in either order, or None if the library has none.

    Parameters
    ----------
    a, b : str
        Names of cards.

    Raises
    ------
    MaterialError
        If the library's friction file is wrong.
    """
    return _friction_by_pair().get(frozenset((a, b)))


def friction_pairs() -> tuple[FrictionPair, ...]:
    """Return all friction pairs of the library in the order of the file."""
    return tuple(_friction_by_pair().values())


@cache
def _friction_by_pair() -> dict[frozenset[str], FrictionPair]:
    return load_friction(LIBRARY / _FRICTION_FILE)


def load_friction(path: str | Path) -> dict[frozenset[str], FrictionPair]:
    """Read and check a file of friction pairs.

    Parameters
    ----------
    path : path-like
        A TOML file of `[[pair]]` tables with the fields of `FrictionPair`; names must be cards.

    Returns
    -------
    dict
        From the unordered pair of names to the pair.

    Raises
    ------
    MaterialError
        If the file is missing or no TOML, a key is unknown or missing, a name is no card, a
        coefficient is negative, a source is empty, or a pair is given twice.
    """
    path = Path(path)
    known = materials()
    table: dict[frozenset[str], FrictionPair] = {}
    for number, pair in enumerate(_validated(_FrictionFile, _read_toml(path), path).pair):
        where = f"{path}: pair[{number}] ({pair.a} / {pair.b})"
        for name in (pair.a, pair.b):
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
                raise MaterialError(f"{where}: {name!r} is not a material of the library; did you mean {near!r}?")
        if not (math.isfinite(pair.value) and pair.value >= 0.0):
            raise MaterialError(f"{where}: value is {pair.value!r}, but must be at least 0; correct the coefficient.")
        _check_source(pair.source, f"{where}: source")
        key = frozenset((pair.a, pair.b))
        if key in table:
            raise MaterialError(f"{where}: the pair stands twice (the order does not matter); remove one of the two.")
        table[key] = pair
    return table


def _refuse_other_files(path: Path, content: dict[str, Any]) -> None:
    """Say of a file that is no card of a material, but of a log or of friction, what it is and what reads it."""
    if content.keys() & (set(_UNITS) | {"law", "prony"}):
        return
    if found := sorted(content.keys() & _LOG_KEYS):
        raise MaterialError(
            f"{path}: this is the card of a log (it has {', '.join(found)}), which fs.compare(run, log, card) and femsim compare "
            "--card read; load_card reads cards of materials, with young_modulus, poisson_ratio and density."
        )
    if "pair" in content:
        raise MaterialError(
            f"{path}: this holds friction pairs, which fs.friction(a, b) reads from the library; load_card reads cards of "
            "materials, with young_modulus, poisson_ratio and density."
        )


def _check_source(source: str, where: str) -> None:
    if not source.strip():
        raise MaterialError(
            f"{where} is empty, but every value needs a source; name the data sheet, standard or paper, "
            "or say that the value is typical or assumed."
        )


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return text.read_toml(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise MaterialError(f"{path}: the file cannot be read ({reason}); check the path.") from None
    except foreign.Refused as error:
        raise MaterialError(f"{path}: this is not a TOML file ({error}); correct the line named.") from None


def _validated(cls: type[Any], data: dict[str, Any], path: Path) -> Any:
    """Convert a TOML table to the dataclass; report one invalid key in one sentence, unknown keys first."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(cls).validate_python(data)
    except ValidationError as error:
        # A misspelt key is also a missing one; the misspelling is the better message.
        errors = sorted(error.errors(include_url=False), key=lambda e: e["type"] != "unexpected_keyword_argument")
        first = errors[0]
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        if first["type"] == "unexpected_keyword_argument":
            allowed = _keys_at(cls, first["loc"][:-1])
            near = difflib.get_close_matches(str(first["loc"][-1]), allowed, n=1, cutoff=0.0)[0]
            problem = f"unknown key; did you mean {near!r}? Allowed are {', '.join(allowed)}."
        elif first["type"] == "missing":
            problem = "the key is missing; add it."
        else:
            problem = f"the value is {repr(first['input'])[:300]}, but: {first['msg'].lower()}; correct it."
        raise MaterialError(f"{path}: {field}: {problem}") from None


def _keys_at(cls: type[Any], location: tuple[int | str, ...]) -> list[str]:
    if not location:
        inner = cls
    elif location == ("law",):
        inner = LawCard
    elif location == ("prony",):
        inner = PronyCard
    else:
        inner = FrictionPair if cls is _FrictionFile else Quantity
    return [key for key in inner.__dataclass_fields__ if not key.startswith("__")]
