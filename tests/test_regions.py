"""Soft bodies of several materials: their equations are the sums of those of their parts; layers as in books; what the door says.

The residual and the matrix of a body are sums over its elements, so those of a body with regions are sums over bodies of one
material on the elements of each.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import femsim as fs
from femsim.model.bodies.body import StepSettings, StepStart
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.bodies.hyperelastic import HyperelasticBody
from femsim.model.bodies.mixture import Region
from femsim.model.bodies.soft import SoftBody
from femsim.model.bodies.soft_bodies import make_soft_body
from femsim.run.info import describe_friction

GUM = fs.Elastic(2e5, 0.4, 1100.0, name="gum")
STIFF = fs.Elastic(3e6, 0.3, 1500.0, name="stiff")
FOAM = fs.Elastic(4e4, 0.1, 300.0, name="foam")
MIXTURES = {
    "corotational": (GUM, STIFF, FOAM),
    "damped": (GUM.replace(rayleigh_beta=0.02), STIFF, FOAM.replace(rayleigh_beta=0.005)),
    "laws": (
        GUM.replace(law=fs.Ogden((2e4, 1e4, -5e3), (2.0, 4.0, -2.0))),
        STIFF.replace(law="st_venant_kirchhoff"),
        FOAM.replace(law=fs.MooneyRivlin(1e4, 2e3)),
    ),
    "terms": (
        GUM.replace(law="stable_neo_hookean", prony=((0.4, 0.02),)),
        STIFF.replace(law=fs.Ogden((1e5,), (3.0,))),
        FOAM.replace(prony=((0.2, 0.005), (0.7, 0.3)), rayleigh_beta=0.01),
    ),
}
SCHEMES = {
    "conserving": StepSettings(0.01, 0.5, np.array([0.0, 0.0, -9.81]), conserving=True),
    "backward": StepSettings(0.01, 1.0, np.array([0.0, 0.0, -9.81])),
}
each_mixture = pytest.mark.parametrize("mixture", MIXTURES)
each_element = pytest.mark.parametrize("element", ["linear", "quadratic"])


def bar() -> fs.TetMesh:
    """A bar of three layers, of which two are regions."""
    mesh = fs.box_tets((0.02, 0.02, 0.06), (1, 1, 3))
    return mesh.with_region("middle", lambda x: np.abs(x[:, 2]) < 0.01).with_region("top", lambda x: x[:, 2] > 0.01)


def mixed(mesh: fs.TetMesh, materials: tuple[fs.Elastic, ...], element: Any) -> SoftBody:
    """The bar of its materials."""
    regions = [Region(name, one, mesh.regions[name]) for name, one in zip(mesh.regions, materials[1:], strict=True)]
    return make_soft_body("bar", mesh, materials[0], element=element, velocity=np.zeros(3), regions=regions)[0]


def parts(mesh: fs.TetMesh, materials: tuple[fs.Elastic, ...], element: Any, quick: bool) -> list[SoftBody]:
    """A body of one material for each layer, of the quick kind or of that for any law: their damping by K is not the same."""
    bottom = np.setdiff1d(np.arange(len(mesh.tets)), np.concatenate(list(mesh.regions.values())))
    out: list[SoftBody] = []
    for tets, one in zip((bottom, *mesh.regions.values()), materials, strict=True):
        nodes, own = np.unique(mesh.tets[tets], return_inverse=True)
        layer = fs.make_tetmesh(mesh.points[nodes], own.reshape(-1, 4), name="layer", source="test")
        if element == "quadratic" or quick:
            out.append(make_soft_body("layer", layer, one, element=element, velocity=np.zeros(3))[0])
        else:
            out.append(HyperelasticBody("layer", layer.points, layer.tets, one, elements=layer.tets, velocity=np.zeros(3)))
    return out


def step(body: SoftBody, place: Any, how: StepSettings) -> tuple[np.ndarray, np.ndarray]:
    """Residual and tangent of a step between places that a function gives, after one that was made before it."""
    q0, q1, q2 = (place(body.rest, amount).ravel() for amount in (0.02, 0.05, 0.12))
    room = np.empty(len(body.pattern()[1])), np.empty(body.n_v), np.empty(body.n_v)
    before = (q1 - q0) / how.dt
    body.assemble(q0, before, 0.0, how, *room)
    body.advance(q0, before, before, how, np.empty_like(q0), np.empty_like(q0))
    still = np.zeros_like(before)  # where the whole and its parts turn by different amounts, they damp by K of other places
    body.assemble(q1, still, 0.0, how, *room)
    v_hat = (q2 - q1) / how.dt
    residual, inertia, external = (np.empty(body.n_v) for _ in range(3))
    start = StepStart(q1, still, 0.0)
    body.residual(body.moved(q1, v_hat, how.theta * how.dt), start, how, v_hat, external, residual, inertia)
    body.tangent(how, room[0])
    indptr, indices = body.pattern()
    return residual, scipy.sparse.csc_matrix((room[0], indices, indptr)).toarray()


def bent(rest: np.ndarray, amount: float) -> np.ndarray:
    """Turned, stretched, sheared and bent places of points."""
    x, y, z = (rest / 0.02).T
    moved = np.column_stack(
        [x + amount * z * z, (1.0 - amount) * y + amount * np.sin(x + z), (1.0 + 2.0 * amount) * z + amount * x]
    )
    c, s = np.cos(2.0 * amount), np.sin(2.0 * amount)
    return 0.02 * moved @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@each_element
@each_mixture
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_equations_of_a_mixture_are_the_sums_of_those_of_its_parts(mixture: str, element: str, scheme: str) -> None:
    mesh, materials, how = bar(), MIXTURES[mixture], SCHEMES[scheme]
    body = mixed(mesh, materials, element)
    residual, tangent = step(body, bent, how)
    wanted, matrix = np.zeros_like(residual), np.zeros_like(tangent)
    mass, sizes = np.zeros(body.n_nodes), []
    for part in parts(mesh, materials, element, quick=isinstance(body, CorotationalBody)):
        own = np.array([np.linalg.norm(body.rest - point, axis=1).argmin() for point in part.rest])
        rows = (3 * own[:, None] + np.arange(3)).ravel()
        its_residual, its_tangent = step(part, bent, how)
        wanted[rows] += its_residual
        matrix[np.ix_(rows, rows)] += its_tangent
        mass[own] += part.node_mass
        sizes.append(np.abs(its_residual).max())
    np.testing.assert_allclose(body.node_mass, mass, rtol=1e-13)
    np.testing.assert_allclose(residual, wanted, rtol=0, atol=1e-12 * max(sizes))
    np.testing.assert_allclose(tangent, matrix, rtol=0, atol=1e-12 * np.abs(matrix).max())
    assert min(sizes) > 1e-3 * max(sizes)  # each takes part


@each_element
@pytest.mark.parametrize("material", [GUM, MIXTURES["laws"][0], MIXTURES["terms"][2]], ids=["linear", "ogden", "prony"])
def test_regions_of_the_same_material_change_no_bit(material: fs.Elastic, element: str) -> None:
    mesh, how = bar(), SCHEMES["conserving"]
    one = make_soft_body("bar", mesh, material, element=element, velocity=np.zeros(3))[0]  # type: ignore[arg-type]
    for first, second in zip(step(one, bent, how), step(mixed(mesh, (material,) * 3, element), bent, how), strict=True):
        np.testing.assert_array_equal(first, second)


def test_layers_that_damp_evenly_keep_the_quick_elements() -> None:
    assert isinstance(mixed(bar(), MIXTURES["corotational"], "linear"), CorotationalBody)
    assert isinstance(
        mixed(bar(), tuple(one.replace(prony=((0.4, 0.02),)) for one in MIXTURES["corotational"]), "linear"), CorotationalBody
    )
    assert not isinstance(mixed(bar(), MIXTURES["damped"], "linear"), CorotationalBody)


@each_element
def test_layers_in_series_share_the_stress(element: str) -> None:
    """Pulled along its axis at nu = 0, each layer stretches by stress over modulus, and no node inside carries a force."""
    moduli = (1e5, 4e5, 2e5)
    body = mixed(bar(), tuple(fs.Elastic(E, 0.0, 1000.0) for E in moduli), element)
    stress = 2e4
    ends = np.cumsum([0.0, *(0.02 * (1.0 + stress / E) for E in moduli)])
    x = body.rest.copy()
    x[:, 2] = np.interp(x[:, 2] - x[:, 2].min(), [0.0, 0.02, 0.04, 0.06], ends)
    body.update_elements(x.ravel())
    inside = (body.rest[:, 2] > -0.0299) & (body.rest[:, 2] < 0.0299)
    assert np.abs(body.internal_force[inside]).max() < 1e-12 * stress
    assert body.internal_force[body.rest[:, 2] > 0.0299].sum(axis=0) == pytest.approx([0.0, 0.0, stress * 0.02**2], abs=1e-12)
    np.testing.assert_allclose(body.stress[:, 2], stress, rtol=1e-9)  # nominal and true, since nothing contracts


def layered(element: str = "quadratic", **regions: Any) -> fs.Scene:
    """A cantilever of two layers under a tenth of its weight."""
    mesh = fs.box_tets((0.1, 0.01, 0.008), (10, 1, 2)).with_region("upper", lambda x: x[:, 2] > 0.0)
    scene = fs.Scene("layers", dt=1.0, gravity=(0.0, 0.0, -0.981), theta=1.0)
    soft = fs.Elastic(1e6, 0.0, 1000.0, name="soft")
    scene.add_soft("beam", mesh, soft, element=element, regions=regions, fixed=lambda x: x[:, 0] < -0.0499)  # type: ignore[arg-type]
    return scene


def test_a_cantilever_of_two_layers_hangs_as_beam_theory_says() -> None:
    """Deflection w L^4 / 8 B of its own weight, B that of the composite section about its neutral axis; shear is 0.5 %."""
    other = fs.Elastic(8e6, 0.0, 3000.0, name="hard")
    scene = layered(upper=other)
    run = fs.simulate(scene, duration=25.0)
    end = run.stepper.state.q.reshape(-1, 3)
    height, width, length = 0.004, 0.01, 0.1
    moduli, centres = np.array([1e6, 8e6]), np.array([-0.5, 0.5]) * height
    neutral = moduli @ centres / moduli.sum()
    stiffness = (moduli * (width * height**3 / 12.0 + width * height * (centres - neutral) ** 2)).sum()
    weight = (1000.0 + 3000.0) * width * height * 0.981
    body = scene.bodies[0]
    assert isinstance(body, SoftBody)
    tip = body.rest[:, 0] > 0.0499
    assert (body.rest - end)[tip, 2].mean() == pytest.approx(weight * length**4 / (8.0 * stiffness), rel=0.02)


def test_a_body_of_regions_turns_freely_as_one() -> None:
    """Energy-momentum step, 30 steps at 2 rev/s: angular momentum stays to the tolerance of the step, energy does not grow."""
    mesh = bar()
    scene = fs.Scene("spin", dt=0.01, gravity=(0.0, 0.0, 0.0), nonlinear_tolerance=1e-10)
    scene.add_soft(
        "bar", mesh, MIXTURES["laws"][0], regions={"middle": MIXTURES["laws"][1], "top": MIXTURES["laws"][2]},
        angular_velocity=(4.0 * np.pi, 0.0, 0.0),
    )  # fmt: skip
    body = scene.bodies[0]

    def spin(state: Any) -> np.ndarray:
        x, v = state.q.reshape(-1, 3), state.v.reshape(-1, 3)
        return np.cross(x - body.centre_of_mass(x), body.node_mass[:, None] * v).sum(axis=0)  # type: ignore[attr-defined]

    with fs.Simulation(scene) as sim:
        before, energies = spin(sim.state), []
        for _ in range(30):
            energies.append(body.kinetic_energy(sim.state.q, sim.state.v) + body.elastic_energy(sim.state.q))
            sim.step()
        np.testing.assert_allclose(spin(sim.state), before, rtol=0, atol=1e-9 * np.linalg.norm(before))
    assert max(energies) <= energies[0] * (1.0 + 1e-9)


def test_a_restored_mixture_goes_on_with_the_same_bits() -> None:
    scene = layered(element="linear", upper=MIXTURES["terms"][2])
    scene.dt = 0.01
    with fs.Simulation(scene) as sim:
        saved = sim.step(3).save()
        first = sim.step(3).state.q.copy()
        sim.restore(saved)
        assert sim.step(3).state.q.tobytes() == first.tobytes()


def test_materials_of_regions_are_written_and_drawn(tmp_path: Path) -> None:
    scene = layered(upper="pla")
    run = fs.simulate(scene, duration=1.0, out=tmp_path / "run", fields=("default", "material"))
    entry = run.info["bodies"]["beam"]
    assert entry["material"]["name"] == "soft" and entry["regions"]["upper"]["name"] == "pla"
    assert entry["regions"]["upper"]["law"] == "corotational"
    assert entry["regions"]["upper"]["elements"] == 60 and entry["regions"]["upper"]["young_modulus_Pa"] == 3.5e9
    part = fs.read_part(fs.read_pvd(tmp_path / "run" / "frames.pvd")[-1][1]["beam"])
    material = part.cell_data["material"]
    centres = scene.bodies[0].rest[scene.bodies[0].tets].mean(axis=1)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(material, (centres[:, 2] > 0.0).astype(float))


@pytest.mark.parametrize(
    ("regions", "words"),
    [
        ({"uper": GUM}, "region 'uper' of beam: its mesh has no such region; did you mean 'upper'?"),
        ({7: GUM}, "region 7 of beam: its mesh has no such region; there are right, upper."),
        ({"upper": "pal"}, "region 'upper' of beam: material 'pal' is not in the library; did you mean 'pla'"),
        ({"upper": fs.material("pla")}, "material is the card 'pla'; give what its elastic() returns, or the name of a card."),
        ({"upper": 3e6}, "region 'upper' of beam: material is 3000000.0; give the name of a card"),
        ({"upper": GUM.replace(rayleigh_alpha=2.0)}, "has rayleigh_alpha 2 1/s, that of the body 0 1/s, but a body has one"),
        ({"upper": GUM, "right": STIFF}, "share 30 tetrahedra, which can have one material; leave one of the two out of regions"),
        (["pla"], "regions of beam are ['pla']; allowed is a material for each name"),
    ],
)
def test_wrong_regions_are_refused(regions: Any, words: str) -> None:
    mesh = fs.box_tets((0.1, 0.01, 0.008), (10, 1, 2)).with_region("upper", lambda x: x[:, 2] > 0.0)
    mesh = mesh.with_region("right", lambda x: x[:, 0] > 0.0)
    with pytest.raises((fs.InputError, fs.MaterialError), match=re.escape(words)):
        fs.Scene("wrong").add_soft("beam", mesh, GUM, regions=regions)


def test_a_mesh_without_regions_says_how_to_name_some() -> None:
    with pytest.raises(fs.InputError, match=re.escape("it has none: name some by mesh.with_region")):
        fs.Scene("wrong").add_soft("beam", fs.box_tets((0.1, 0.01, 0.01), 1), GUM, regions={"base": STIFF})


def test_each_material_of_a_body_is_looked_at() -> None:
    scene = layered(element="linear", upper=fs.Elastic(3.0, 0.49, 1.2, name="film"))
    modulus, density, locks = scene.notes
    assert modulus.startswith("young_modulus of region 'upper' of beam is 3 Pa") and "in g/cm^3" in density
    assert locks.startswith("poisson_ratio of region 'upper' of beam is 0.49")


def test_metal_in_rubber_turns_in_few_linearisations() -> None:
    """Residuals that hardly fall ask for the definite tangent: with the derivatives 193 were taken."""
    mesh = fs.box_tets((0.08, 0.02, 0.02), (8, 2, 2)).with_region("tip", lambda x: x[:, 0] > 0.02)
    scene = fs.Scene("metal", dt=0.01, duration=0.25)
    scene.add_soft(
        "beam",
        mesh,
        fs.Elastic(8e4, 0.3, 1000.0),
        regions={"tip": fs.Elastic(5e11, 0.3, 1000.0)},
        fixed=lambda x: x[:, 0] < -0.0399,
    )
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged"
    assert run.info["health"]["verdict"] == "good"
    assert run.steps["solves"].sum() < 170  # 155


@each_element
@pytest.mark.parametrize("sole", ["bottom", "top"])
@pytest.mark.parametrize("ground", ["floor", "slab", "stone"])
def test_the_region_that_touches_has_its_own_friction(sole: str, ground: str, element: Any) -> None:
    """A block slides at mu g of the layer that it lies on: on a plane, on a soft body, and on the faces of a small box."""
    mesh = fs.box_tets((0.03, 0.03, 0.02), (2, 2, 2)).with_region("sole", lambda x: (x[:, 2] < 0.0) == (sole == "bottom"))
    pull = 9.0
    scene = fs.Scene("sliding", dt=0.005, duration=0.1, gravity=(pull, 0.0, -9.81))
    block = scene.add_soft("block", mesh, STIFF, regions={"sole": GUM}, position=(0.0, 0.0, 0.01), element=element)
    if ground == "floor":
        scene.add_floor(name="floor")
    elif ground == "slab":
        slab = fs.box_tets((0.1, 0.06, 0.01), (4, 3, 1))
        scene.add_soft("slab", slab, STIFF, position=(0.0, 0.0, -0.005), fixed=lambda x: x[:, 2] < -0.0099)
    else:
        stone = fs.Box((0.05, 0.03, 0.005))
        scene.add_obstacle("stone", stone, position=(0.0, 0.0, -0.005))
        scene.contact_by_faces("stone")
    scene.set_friction("stiff", ground, 0.1)
    scene.set_friction("gum", ground, 0.6)
    scene.sensor("ground", block, partner=ground)
    run = fs.simulate(scene, quiet=True)
    assert run.status == "converged"
    force, weight = run.sensors["ground"].force[-15:], 9.81 * 0.03 * 0.03 * 0.01 * (1100.0 + 1500.0)
    assert force[:, 2].mean() == pytest.approx(weight, rel=0.05)
    tilt = 0.03 if ground == "slab" else 1e-3  # of contacts of two surfaces that both give way
    assert np.median(-force[:, 0] / force[:, 2]) == pytest.approx(0.6 if sole == "bottom" else 0.1, rel=tilt)


def test_what_is_said_of_a_region_comes_before_its_body_and_its_material() -> None:
    def friction(**regions: Any) -> tuple[fs.Scene, list[Any]]:
        mesh = fs.box_tets((0.02, 0.02, 0.02), 1).with_region("pad", lambda x: x[:, 2] < 0.0)
        scene = fs.Scene("pads", default_friction=0.2)
        scene.add_soft("finger", mesh, STIFF, regions={"pad": GUM}, position=(0.0, 0.0, 0.02), **regions)
        scene.add_floor()
        scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1, position=(0.0, 0.0, 0.06))
        if not regions:
            scene.set_friction("gum", "floor", 0.3)
        return scene, scene.part_names

    def of_pad(scene: fs.Scene) -> float:
        return float(scene.pair_friction().values[-1, 1])  # regions come after all parts; the floor is the second

    scene, names = friction()
    assert names == ["finger", "floor", "ball"]
    assert scene.pair_friction().values[0, 1] == 0.2
    assert of_pad(scene) == 0.3
    scene.set_friction("finger", "floor", 0.4)
    assert of_pad(scene) == scene.pair_friction().values[0, 1] == 0.4
    scene.set_friction("finger.pad", "floor", 0.7)
    scene.set_friction("finger", "floor", 0.5)
    assert of_pad(scene) == 0.7
    assert scene.pair_friction().values[0, 1] == 0.5
    assert {"bodies": ["floor", "finger.pad"], "coefficient": 0.7} in describe_friction(scene)
    assert of_pad(friction(surface="skin")[0]) == 0.2  # the surface of a body is that of its regions too


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("set_friction", "friction: body or surface 'finger.pda' is unknown; did you mean 'finger.pad'?"),
        ("set_restitution", "restitution: body or surface 'finger.pda' is unknown; did you mean 'finger'?"),
    ],
)
def test_a_misspelt_region_is_told(call: str, words: str) -> None:
    mesh = fs.box_tets((0.02, 0.02, 0.02), 1).with_region("pad", lambda x: x[:, 2] < 0.0)
    scene = fs.Scene("pads")
    scene.add_soft("finger", mesh, STIFF, regions={"pad": GUM}, position=(0.0, 0.0, 0.02))
    scene.add_floor()
    with pytest.raises(fs.InputError, match=re.escape(words)):
        getattr(scene, call)("finger.pda", "floor", 0.5)


def test_names_of_regions_and_of_their_surfaces_are_taken() -> None:
    """Friction of "finger.pad" was that of a body of this name, and nothing could be said of the region."""
    mesh = fs.box_tets((0.02, 0.02, 0.02), 1).with_region("pad", lambda x: x[:, 2] < 0.0)

    def ball(scene: fs.Scene, name: str) -> None:
        scene.add_rigid(name, fs.Sphere(0.01), mass=0.1, position=(0.0, 0.0, 0.06))

    scene = fs.Scene("pads")
    scene.add_soft("finger", mesh, STIFF, regions={"pad": GUM})
    with pytest.raises(fs.InputError, match=re.escape("body name 'finger.pad' is taken")):
        ball(scene, "finger.pad")
    for name in ("finger.pad", "gum"):
        with pytest.raises(fs.InputError, match=f"contact group '{name}': the name is empty or that of a body, surface, region"):
            scene.contact_group(name, ["finger"])
    scene = fs.Scene("pads")
    ball(scene, "finger.pad")
    with pytest.raises(fs.InputError, match=re.escape("region 'pad' of finger: 'finger.pad' is a body too")):
        scene.add_soft("finger", mesh, STIFF, regions={"pad": GUM})


def test_a_body_with_the_name_of_a_region_s_surface_is_told_apart_from_it() -> None:
    """As with the surface of another body: silently only the body was meant, and the pad kept its default."""
    mesh = fs.box_tets((0.02, 0.02, 0.02), 1).with_region("pad", lambda x: x[:, 2] < 0.0)

    def with_ball(surface: str) -> fs.Scene:
        scene = fs.Scene("pads", default_friction=0.2)
        scene.add_soft("finger", mesh, STIFF, regions={"pad": GUM})
        scene.add_rigid("gum", fs.Sphere(0.01), mass=0.1, position=(0.0, 0.0, 0.06), surface=surface)
        scene.add_floor()
        return scene

    with pytest.raises(fs.InputError, match=re.escape("'gum' is a body and the surface of 'finger.pad'")):
        with_ball("rubber").set_friction("gum", "floor", 0.7)
    scene = with_ball("gum")
    scene.set_friction("gum", "floor", 0.7)
    assert list(scene.pair_friction().values[2]) == [0.2, 0.7, 0.2, 0.7]  # finger, ball, floor, pad
