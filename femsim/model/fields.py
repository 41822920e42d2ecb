"""The fields that frames can carry, each declared once: for ``--fields``, the help, the docs and the legends of pictures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FrameField:
    """One field of the frames; a body computes it in ``frame`` under this name.

    Attributes
    ----------
    name : str
        Name in the files, and for ``--fields``.
    unit : str
        Unit, "" for none.
    of : str
        What carries it, for the docs.
    text : str
        What it is, for the docs.
    default : bool
        Whether frames have it when nothing is asked for.
    always : bool
        Whether frames have it whatever is asked for; ``--fields`` does not take it.
    components : tuple of str
        Names of its components where it is neither a scalar nor a vector.
    """

    name: str
    unit: str
    of: str
    text: str
    default: bool = True
    always: bool = False
    components: tuple[str, ...] = ()


FRAME_FIELDS = (
    FrameField("velocity", "m/s", "soft, rod", "of the node; rods: mean of the links at a joint"),
    FrameField("contact_force", "N", "soft, rod", "sum on the node"),
    FrameField("displacement", "m", "soft, rod", "x - x at rest; rods: since the start"),
    FrameField(
        "contact_pressure", "Pa", "soft",
        "normal force over tributary area in the deformed shape: of the triangle that the force opposes most, and of those at "
        "the node within 60 degrees of it",
    ),
    FrameField("von_mises", "Pa", "soft, by element", "of the Cauchy stress"),
    FrameField(
        "cauchy_stress", "Pa", "soft, by element",
        "XX, YY, ZZ, XY, YZ, XZ: P F^T / J with P = R (2 mu e + lambda tr(e) 1), e = R^T F - 1; NaN where J <= 0",
        default=False, components=("XX", "YY", "ZZ", "XY", "YZ", "XZ"),
    ),
    FrameField(
        "strain_energy_density", "J/m^3", "soft, by element", "mu e:e + lambda/2 tr(e)^2, per volume at rest", default=False,
    ),
    FrameField(
        "rotation", "", "soft, by element; rod",
        "unit quaternion w, x, y, z of R with w >= 0; rods: mean of the links at a joint",
        default=False, components=("w", "x", "y", "z"),
    ),
    FrameField(
        "principal_stretches", "", "soft, by element",
        "eigenvalues of R^T F, largest first; the last is negative in inverted elements", default=False,
    ),
    FrameField("material", "", "soft, by element", "0 for that of the body, 1, 2, ... for those of its `regions`", default=False),
    FrameField("tension", "N", "rod", "at the joints"),
    FrameField("bending_moment", "N m", "rod", "at the joints"),
    FrameField("twisting_moment", "N m", "rod", "at the joints"),
    FrameField(
        "parts", "", "contacts", "numbers in `parts` of run.json, from 0: the part that `force` is on, the other",
        default=False, components=("on", "other"),
    ),
    FrameField("radius", "m", "rod", "of the contacts", always=True),
)  # fmt: skip


def field_table() -> str:
    """Return the table of all fields for docs/outputs.md."""
    lines = ["| field | of | unit | meaning |", "|---|---|---|---|"]
    for field in FRAME_FIELDS:
        text = "; ".join([field.text] * bool(field.text) + ["always there"] * field.always)
        lines.append(f"| `{field.name}` | {field.of} | {field.unit or '1'} | {text} |")
    return "\n".join(lines)


def field_help() -> str:
    """Return the help of ``--fields``."""
    asked = [field for field in FRAME_FIELDS if not field.always]
    shared = ", ".join(field.name for field in asked if field.of != "rod")
    rods = ", ".join(field.name for field in asked if field.of == "rod")
    return (
        f"Fields in the frames, separated by commas: {shared}; of rods {rods}; 'default' and 'all' stand for lists, so that "
        "default,rotation adds one."
    )
