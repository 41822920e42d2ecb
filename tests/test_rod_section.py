"""Cross sections of rods: closed forms, tables of the literature and a stress function of our own."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.sparse.linalg import spsolve

from materials import MaterialError, RodSection, circular_section, rectangular_section


def test_circle() -> None:
    section = circular_section(0.002)
    assert section.area == pytest.approx(math.pi * 4e-6, rel=1e-15)
    moment = quad(lambda y: y * y * 2 * math.sqrt(4e-6 - y * y), -0.002, 0.002)[0]
    assert section.second_moment_1 == section.second_moment_2 == pytest.approx(moment, rel=1e-8)
    assert section.torsion_constant == section.polar_moment == pytest.approx(2 * moment, rel=1e-8)
    assert section.contact_radius == 0.002
    assert circular_section(0.002, shear_factor=1.0).shear_factor_2 == 1.0


def test_a_rope_loses_stiffness_and_no_mass() -> None:
    rope, solid = circular_section(0.002, bending=1e-4), circular_section(0.002)
    assert (rope.bending_factor, solid.bending_factor) == (1e-4, 1.0)
    assert (rope.second_moment_1, rope.polar_moment) == (solid.second_moment_1, solid.polar_moment)
    with pytest.raises(MaterialError, match=r"bending is 0\.0, but must be"):
        circular_section(0.002, bending=0.0)


def test_rectangle() -> None:
    section = rectangular_section(0.004, 0.001)
    assert section.area == pytest.approx(4e-6, rel=1e-15)
    # bending about axis 1, along the width, moves the height
    assert section.second_moment_1 == pytest.approx(quad(lambda y: 0.004 * y * y, -5e-4, 5e-4)[0], rel=1e-12)
    assert section.second_moment_2 == pytest.approx(quad(lambda x: 0.001 * x * x, -2e-3, 2e-3)[0], rel=1e-12)
    assert section.contact_radius == 5e-4
    turned = rectangular_section(0.001, 0.004)
    assert (turned.second_moment_1, turned.second_moment_2) == (section.second_moment_2, section.second_moment_1)
    assert turned.torsion_constant == section.torsion_constant


@pytest.mark.parametrize(
    ("ratio", "table"),
    [
        (1.0, 0.1406),
        (1.2, 0.1661),
        (1.5, 0.1958),
        (2.0, 0.229),
        (2.5, 0.249),
        (3.0, 0.263),
        (4.0, 0.281),
        (5.0, 0.291),
        (10.0, 0.312),
    ],
)
def test_torsion_of_a_rectangle_against_the_table(ratio: float, table: float) -> None:
    """Timoshenko and Goodier, Theory of Elasticity, section 109: torsion constant over (long side)(short side)^3."""
    digits = 4 if ratio < 2 else 3
    assert rectangular_section(0.002 * ratio, 0.002).torsion_constant / (ratio * 0.002**4) == pytest.approx(
        table, abs=6 * 10.0 ** -(digits + 1)
    )


def test_torsion_of_a_thin_strip() -> None:
    """One third minus the loss at the two ends, 0.210 of the thickness each way."""
    short, long = 1e-3, 1.0
    zeta5 = sum(1.0 / n**5 for n in range(1, 3000, 2))
    expected = long * short**3 / 3 * (1 - 192 * zeta5 / math.pi**5 * short / long)
    assert rectangular_section(long, short).torsion_constant == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("sides", [(1.0, 1.0), (1.0, 3.0)])
def test_torsion_of_a_rectangle_against_its_stress_function(sides: tuple[float, float]) -> None:
    """Prandtl: laplace(F) = -2 in the section, F = 0 on its edge, torsion constant = 2 integral of F; by differences."""

    def solved(n: int) -> float:
        h = sides[0] / n
        counts = [round(side / h) - 1 for side in sides]
        second = [sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], (m, m)) / h**2 for m in counts]
        laplace = sp.kron(second[0], sp.eye(counts[1])) + sp.kron(sp.eye(counts[0]), second[1])
        return float(2 * h * h * spsolve(laplace.tocsc(), -2.0 * np.ones(counts[0] * counts[1])).sum())

    coarse, fine = solved(24), solved(48)
    assert rectangular_section(*sides).torsion_constant == pytest.approx(fine + (fine - coarse) / 3, rel=2e-5)


def test_shear_factors_are_those_of_the_parabolic_stress() -> None:
    """1/k = A/I^2 integral of (S/b)^2 dA with S the first moment beyond the height y and b the width there."""

    def factor(width: object, first_moment: object, half: float, area: float, moment: float) -> float:
        energy = quad(lambda y: first_moment(y) ** 2 / width(y), -half, half)[0]  # type: ignore[operator]
        return moment**2 / (area * energy)

    round_section = circular_section(1.0)
    k = factor(
        lambda y: 2 * math.sqrt(max(1 - y * y, 1e-300)), lambda y: 2 / 3 * max(1 - y * y, 0.0) ** 1.5, 1.0,
        round_section.area, round_section.second_moment_1,
    )  # fmt: skip
    assert round_section.shear_factor_1 == round_section.shear_factor_2 == pytest.approx(k, rel=1e-8)
    flat = rectangular_section(3.0, 2.0)
    k = factor(lambda y: 3.0, lambda y: 1.5 * (1 - y * y), 1.0, flat.area, flat.second_moment_1)
    assert flat.shear_factor_1 == flat.shear_factor_2 == pytest.approx(k, rel=1e-10)


@pytest.mark.parametrize("bad", [0.0, -1e-3, math.nan, math.inf, "2 mm", None, True])
def test_bad_sizes_are_refused(bad: float) -> None:
    with pytest.raises(MaterialError, match=r"circular rod section: radius is .*, but must be a finite number greater than 0 m"):
        circular_section(bad)
    with pytest.raises(MaterialError, match="rectangular rod section: height is"):
        rectangular_section(0.01, bad)
    with pytest.raises(MaterialError, match=r"rod section: area is .* greater than 0 m2; correct area"):
        RodSection(bad, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)


def test_bad_combinations_are_refused() -> None:
    with pytest.raises(MaterialError, match=r"shear_factor_2 is 1.2, but must be greater than 0 and at most 1"):
        RodSection(1.0, 1.0, 1.0, 1.0, 1.0, 1.2, 1.0)
    with pytest.raises(MaterialError, match=r"torsion_constant is 2.1 m4, but must not exceed the polar moment .* = 2 m4"):
        RodSection(1.0, 1.0, 1.0, 2.1, 1.0, 1.0, 1.0)
