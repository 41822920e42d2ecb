"""Stage materials: constants, cards, friction, damping."""

import math

import numpy as np
import pytest

import materials
from materials import (
    LIBRARY,
    Elastic,
    FrictionTable,
    MaterialError,
    damping_ratio,
    friction,
    friction_pairs,
    load_card,
    load_friction,
    material,
    rayleigh_from_ratios,
)

NAMES = {
    "aluminium", "dragon_skin_10", "dragon_skin_10_beam", "dragon_skin_30", "ecoflex_00_30", "ecoflex_00_50", "glass", "pla",
    "pvc_cable", "rubber_cable", "soft_ball_rubber", "steel",
}  # fmt: skip


def test_all_public_names_exist():
    assert all(hasattr(materials, name) for name in materials.__all__)


# Elastic


def test_moduli_obey_their_definitions():
    """A state of pure stretch and of pure shear, written out from sigma = lambda tr(e) I + 2 mu e."""
    solid = Elastic(young_modulus=3.0e5, poisson_ratio=0.42, density=1070.0)
    lam, mu = solid.lame_lambda, solid.lame_mu
    stretch = np.diag([1.0, -0.42, -0.42])  # uniaxial tension: the sides contract by nu
    stress = lam * np.trace(stretch) * np.eye(3) + 2.0 * mu * stretch
    assert np.allclose(stress, np.diag([3.0e5, 0.0, 0.0]), atol=1e-9 * 3e5)
    pressure = lam * 3.0 + 2.0 * mu  # stress of unit stretch in all directions, volume change 3
    assert solid.bulk_modulus == pytest.approx(pressure / 3.0, rel=1e-13)
    assert solid.p_wave_speed == pytest.approx(math.sqrt((lam + 2.0 * mu) / 1070.0), rel=1e-13)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("young_modulus", 0.0), ("young_modulus", -1.0), ("young_modulus", math.inf),
        ("young_modulus", math.nan),
        ("young_modulus", "1e6"), ("young_modulus", True), ("young_modulus", None), ("poisson_ratio", 0.5),
        ("poisson_ratio", -1.0), ("poisson_ratio", math.nan), ("density", 0.0), ("density", -1000.0),
        ("rayleigh_alpha", -1e-9), ("rayleigh_beta", -1e-9), ("rayleigh_beta", math.inf),
    ],
)  # fmt: skip
def test_elastic_refuses(field, value):
    good = {"young_modulus": 1e6, "poisson_ratio": 0.3, "density": 1000.0, "name": "gum"}
    with pytest.raises(MaterialError) as caught:
        Elastic(**{**good, field: value})
    assert field in str(caught.value) and repr(value) in str(caught.value) and "gum" in str(caught.value)


@pytest.mark.parametrize("nu", [-1.0 + 1e-12, 0.5 - 1e-12])
def test_elastic_accepts_up_to_the_border(nu):
    assert Elastic(1e6, nu, 1000.0).poisson_ratio == nu


def test_replace_validates_and_names_the_nearest_field():
    solid = Elastic(1e6, 0.3, 1000.0)
    assert solid.replace(density=2.0) == Elastic(1e6, 0.3, 2.0)
    with pytest.raises(MaterialError, match=r"'densty'.*did you mean 'density'"):
        solid.replace(densty=2.0)
    with pytest.raises(MaterialError, match=r"poisson_ratio is 0\.5"):
        solid.replace(poisson_ratio=0.5)


# Library


def test_library_is_complete_and_every_number_has_a_source():
    assert set(materials.materials()) == NAMES
    for name in materials.materials():
        card = material(name)
        assert card.elastic().name == name
        for quantity in (card.young_modulus, card.poisson_ratio, card.density):
            assert len(quantity.source) > 10


def test_values_of_the_article():
    """Section V-C of the COND article (and the issue's list)."""
    assert material("ecoflex_00_50").elastic() == Elastic(83e3, 0.42, 1070.0, name="ecoflex_00_50")
    assert material("soft_ball_rubber").elastic() == Elastic(1e6, 0.35, 1000.0, name="soft_ball_rubber")
    assert material("rubber_cable").elastic() == Elastic(2.954e6, 0.49, 1259.0, name="rubber_cable")
    assert friction("ecoflex_00_50", "pla").value == 2.1
    assert friction("pla", "ecoflex_00_50") is friction("ecoflex_00_50", "pla")
    assert friction("soft_ball_rubber", "pla").value == 0.5
    assert friction("rubber_cable", "steel").value == 1.3
    assert friction("steel", "steel").value == 0.57
    assert friction("glass", "pla") is None


def test_unknown_material_names_the_nearest_and_the_command():
    with pytest.raises(MaterialError, match=r"'ecoflex_0050'.*did you mean 'ecoflex_00_50'.*femsim materials"):
        material("ecoflex_0050")
    with pytest.raises(MaterialError, match="steel"):
        material("friction")


GOOD = """
title = "gum"
[young_modulus]
value = 1e6
unit = "Pa"
source = "assumed"
[poisson_ratio]
value = 0.3
unit = "1"
source = "assumed"
[density]
value = 1000
unit = "kg/m3"
source = "assumed"
"""


def test_a_users_own_card(tmp_path):
    path = tmp_path / "gum.toml"
    path.write_text(GOOD + '[rayleigh_beta]\nvalue = 1e-3\nunit = "s"\nsource = "assumed"\n')
    assert load_card(path).elastic() == Elastic(1e6, 0.3, 1000.0, rayleigh_beta=1e-3, name="gum")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[density]", "[densty]", r"densty: unknown key; did you mean 'density'"),
        ("value = 1e6", "valeu = 1e6", r"young_modulus\.valeu: unknown key; did you mean 'value'"),
        ('source = "assumed"\n[poisson', "[poisson", r"young_modulus\.source: the key is missing"),
        ('source = "assumed"\n[poisson', 'source = " "\n[poisson', r"young_modulus\.source is empty"),
        ('"kg/m3"', '"g/cm3"', r"density\.unit is 'g/cm3', but must be 'kg/m3'"),
        ("value = 0.3", "value = 0.5", r"poisson_ratio is 0\.5"),
        ("value = 1000", "value = nan", r"density\.value: the value is nan"),
        ("value = 1000", 'value = "heavy"', r"density\.value: the value is 'heavy'"),
        ("[density]", "[density", r"not a TOML file"),
        (
            'title = "gum"',
            'name = "other"\ntitle = "gum"',
            r"name is 'other', but must be the file name 'gum'",
        ),
    ],
)
def test_a_wrong_card_is_named(tmp_path, old, new, says):
    path = tmp_path / "gum.toml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(MaterialError, match=says) as caught:
        load_card(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('sensor = "box"\n[axes]\nfz = "Fz"', r"gum\.toml: this is the card of a log \(it has axes, sensor\), which fs\.compare"),
        (
            '[[pair]]\na = "steel"\nb = "pla"\nvalue = 1\nsource = "x"',
            r"gum\.toml: this holds friction pairs, which",
        ),
    ],
)
def test_a_card_of_another_kind_is_named_and_what_reads_it(tmp_path, text, says):
    path = tmp_path / "gum.toml"
    path.write_text(text)
    with pytest.raises(MaterialError, match=says):
        load_card(path)


def test_a_missing_card_is_named(tmp_path):
    with pytest.raises(MaterialError, match="cannot be read"):
        load_card(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[pair]]\na = "stele"\nb = "pla"\nvalue = 1\nsource = "x"', "'stele' is not a material.*'steel'"),
        ('[[pair]]\na = "steel"\nb = "pla"\nvalue = -1\nsource = "x"', "value is -1.0"),
        ('[[pair]]\na = "steel"\nb = "pla"\nmu = 1\nvalue = 1\nsource = "x"', r"pair\[0\]\.mu: unknown key"),
        (
            '[[pair]]\na = "steel"\nb = "pla"\nvalue = 1\nsource = "x"\n'
            '[[pair]]\na = "pla"\nb = "steel"\nvalue = 2\nsource = "x"',
            r"pair\[1\].*stands twice",
        ),
    ],
)
def test_a_wrong_friction_file_is_named(tmp_path, text, says):
    path = tmp_path / "friction.toml"
    path.write_text(text)
    with pytest.raises(MaterialError, match=says):
        load_friction(path)


def test_pairs_are_listed_in_the_order_of_the_file():
    text = (LIBRARY / "friction.toml").read_text()
    assert len(friction_pairs()) == text.count("[[pair]]")
    assert friction_pairs()[0].a == "soft_ball_rubber"


# Friction table


def test_friction_table():
    table = FrictionTable(default=0.3)
    table.set("steel", "gum", 0.9)
    table.set("gum", "gum", 0.0)
    assert table.get("gum", "steel") == table.get("steel", "gum") == 0.9
    assert np.array_equal(table.matrix(["gum", "steel"]), [[0.0, 0.9], [0.9, 0.3]])
    assert table.matrix([]).shape == (0, 0)
    table.set("gum", "steel", 0.4)
    assert table.pairs == {("gum", "steel"): 0.4, ("gum", "gum"): 0.0}


@pytest.mark.parametrize("mu", [-0.1, math.nan, math.inf, "0.5", None, True])
def test_friction_table_refuses(mu):
    with pytest.raises(MaterialError, match="default"):
        FrictionTable(default=mu)
    with pytest.raises(MaterialError, match="'a' / 'b'"):
        FrictionTable().set("a", "b", mu)


# Damping


def test_damping_ratio_is_the_decay_of_an_oscillator():
    """x'' + (alpha + beta w^2) x' + w^2 x = 0 has roots with real part -zeta w."""
    alpha, beta, omega = 0.7, 3e-3, 40.0
    roots = np.roots([1.0, alpha + beta * omega**2, omega**2])
    assert damping_ratio(alpha, beta, omega) == pytest.approx(-roots.real.mean() / omega, rel=1e-12)


def test_rayleigh_round_trip():
    rng = np.random.default_rng(3)
    for _ in range(50):
        alpha, beta, w1, w2 = rng.uniform([0.0, 0.0, 1.0, 30.0], [5.0, 0.1, 20.0, 300.0])
        found = rayleigh_from_ratios(damping_ratio(alpha, beta, w1), w1, damping_ratio(alpha, beta, w2), w2)
        assert found == pytest.approx((alpha, beta), rel=1e-9)


def test_pure_stiffness_or_mass_damping_leaves_the_other_exactly_zero():
    """Round-off must neither leave a trace nor look like a negative constant."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        constant, w1, w2 = rng.uniform([0.1, 1.0, 30.0], [2.0, 20.0, 300.0])
        assert rayleigh_from_ratios(constant * w1 / 2, w1, constant * w2 / 2, w2)[0] == 0.0
        assert rayleigh_from_ratios(constant / (2 * w1), w1, constant / (2 * w2), w2)[1] == 0.0


def test_damping_refuses():
    with pytest.raises(MaterialError, match="omega"):
        damping_ratio(1.0, 1.0, 0.0)
    with pytest.raises(MaterialError, match="different frequencies"):
        rayleigh_from_ratios(0.1, 10.0, 0.1, 10.0)
    with pytest.raises(MaterialError, match="must be at least 0"):
        rayleigh_from_ratios(0.01, 10.0, 0.5, 30.0)
