"""Materials: parameters in, numbers out.

The room defines the constants of solids and surfaces. It imports nothing else of femsim.

- `LIBRARY` is the folder of the cards, `data/materials` of a clone and `materials/_data` of a wheel: one TOML card per
  material (each value with unit and source) and `friction.toml` with the Coulomb coefficients of pairs. To add a material, add
  a card: the file name is its name.
- `load`: `materials()` lists the cards, `material(name)` reads one, `load_card(path)` reads your own,
  `friction(a, b)` looks up a pair.
- `elastic`: `Elastic`, the validated constants of a body, with the derived moduli.
- `laws`: elastic laws for large strain (`StableNeoHookean`, `MooneyRivlin`, `Ogden`, ...), part of `Elastic`.
- `friction`: `FrictionTable`, the coefficients of one scene by pair of surface materials.
- `viscous`: Prony terms of viscoelastic solids; relaxation, creep and loss factor that follow from them.
- `damping`: conversion between Rayleigh's alpha and beta and damping ratios.
- `rod_section`: `RodSection`, the cross section of a rod: circular, rectangular or custom.

>>> from materials import material
>>> ball = material("soft_ball_rubber").elastic(young_modulus=5e5)
>>> ball.poisson_ratio
0.35

Invalid input raises `MaterialError` (in `errors`), a ValueError, with a sentence that names file, field and remedy.
"""

from materials.damping import damping_ratio, rayleigh_from_ratios
from materials.elastic import Elastic
from materials.errors import MaterialError
from materials.friction import FrictionTable
from materials.laws import (
    LAWS,
    Corotational,
    Law,
    MooneyRivlin,
    Ogden,
    StableNeoHookean,
    StVenantKirchhoff,
)
from materials.load import (
    LIBRARY,
    FrictionPair,
    LawCard,
    Material,
    PronyCard,
    Quantity,
    friction,
    friction_pairs,
    load_card,
    load_friction,
    material,
    materials,
)
from materials.rod_section import RodSection, circular_section, rectangular_section
from materials.viscous import Prony, complex_modulus, creep, loss_factor, prony_of_loss_factor, relaxation

__all__ = [
    "LAWS",
    "LIBRARY",
    "Corotational",
    "Elastic",
    "FrictionPair",
    "FrictionTable",
    "Law",
    "LawCard",
    "Material",
    "MaterialError",
    "MooneyRivlin",
    "Ogden",
    "Prony",
    "PronyCard",
    "Quantity",
    "RodSection",
    "StVenantKirchhoff",
    "StableNeoHookean",
    "circular_section",
    "complex_modulus",
    "creep",
    "damping_ratio",
    "friction",
    "friction_pairs",
    "load_card",
    "load_friction",
    "loss_factor",
    "material",
    "materials",
    "prony_of_loss_factor",
    "rayleigh_from_ratios",
    "rectangular_section",
    "relaxation",
]
