"""The stress scenes. Each is as small as what is hard about it allows; lengths in m, SI units."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from contact.shapes import Box, Capsule, Sphere
from femsim.base.errors import InputError
from femsim.model.bodies.rod_end import RodEnd
from femsim.model.drives import Motion, Profile
from femsim.scene.checks import Finger
from femsim.scene.scene import Scene
from femsim.studies.selftest.stress import Holds, Stress
from materials import Elastic, circular_section
from meshes import TetMesh, ball_tets, box_tets, make_tetmesh

SIDE = 0.02


def _rubber(young_modulus: float = 1e5, poisson_ratio: float = 0.3, density: float = 1000.0) -> Elastic:
    return Elastic(young_modulus, poisson_ratio, density, rayleigh_beta=1e-4, name="rubber")


def _scene(dt: float = 0.01, floor: bool = True, **options: Any) -> Scene:
    scene = Scene("stress", dt=dt, duration=10.0, **options)
    if floor:
        scene.add_floor()
    return scene


def _cube(cells: int = 2, side: float = SIDE) -> TetMesh:
    return box_tets((side, side, side), cells)


def _drop(material: Elastic | None = None, *, dt: float = 0.01, height: float = 0.005, cells: int = 2, **soft: Any) -> Scene:
    """Drop a soft cube on the floor."""
    scene = _scene(dt)
    scene.add_soft("cube", _cube(cells), material or _rubber(), position=(0, 0, 0.5 * SIDE + height), **soft)
    return scene


def _stack(rigid: Callable[[int], bool], count: int = 10) -> Scene:
    scene = _scene()
    for k in range(count):
        place = (0, 0, SIDE * (k + 0.5))
        if rigid(k):
            scene.add_rigid(f"box{k}", Box((SIDE / 2,) * 3), density=1000.0, position=place)
        else:
            scene.add_soft(f"cube{k}", _cube(1), _rubber(1e6), position=place)
    return scene


def _masses(below: float, above: float, soft: bool = False) -> Scene:
    scene = _scene()
    if soft:
        scene.add_soft("below", _cube(1), _rubber(1e7, density=below), position=(0, 0, SIDE / 2))
    else:
        scene.add_rigid("below", Box((SIDE / 2,) * 3), density=below, position=(0, 0, SIDE / 2))
    scene.add_rigid("above", Box((SIDE / 2,) * 3), density=above, position=(0, 0, 1.5 * SIDE + 1e-4))
    return scene


def _two(lower: Elastic, upper: Elastic) -> Scene:
    """One soft cube on another."""
    scene = _scene()
    scene.add_soft("lower", _cube(2, 2 * SIDE), lower, position=(0, 0, SIDE))
    scene.add_soft("upper", _cube(1), upper, position=(0.001, 0.002, 2.5 * SIDE + 5e-4))
    return scene


def _slope(friction: float, soft: bool) -> Scene:
    scene = _scene(gravity=(3.0, 0.0, -9.3), default_friction=friction)
    if soft:
        scene.add_soft("cube", _cube(), _rubber(1e6), position=(0, 0, SIDE / 2))
    else:
        scene.add_rigid("box", Box((SIDE / 2,) * 3), density=1000.0, position=(0, 0, SIDE / 2))
    return scene


def _fall(kind: str) -> Scene:
    """Drop something from 2 m; it starts just above the floor with the speed of the fall."""
    scene, speed = _scene(2e-3), (0, 0, -math.sqrt(2 * 9.81 * 2.0))
    if kind == "soft":
        scene.add_soft("cube", _cube(), _rubber(1e6), position=(0, 0, SIDE), velocity=speed)
    elif kind == "ball":
        scene.add_soft("ball", ball_tets(SIDE / 2, 4), _rubber(1e6), position=(0, 0, SIDE), velocity=speed)
    else:
        scene.add_rigid(
            "box", Box((SIDE / 2,) * 3), density=1000.0, position=(0, 0, SIDE), rotation=(0.3, 0.4, 0), velocity=speed
        )
    return scene


def _shot(soft: bool, dt: float) -> Scene:
    """Shoot at 100 m/s onto a plate of 1 mm."""
    scene = _scene(dt, floor=False, gravity=(0, 0, 0))
    scene.add_obstacle("plate", Box((0.1, 0.1, 0.0005)), position=(0, 0, 0))
    if soft:
        scene.add_soft("cube", _cube(), _rubber(1e6), position=(0, 0, 0.05), velocity=(0, 0, -100.0))
    else:
        scene.add_rigid("ball", Sphere(SIDE / 2), density=1000.0, position=(0, 0, 0.05), velocity=(0, 0, -100.0))
    return scene


def _press(depth: float, soft: bool, **material: Any) -> Scene:
    """Drive a plate down by so much, with a cube between it and the floor."""
    scene = _scene()
    if soft:
        scene.add_soft("cube", _cube(), _rubber(), position=(0, 0, SIDE / 2), **material)
    else:
        scene.add_rigid("box", Box((SIDE / 2,) * 3), density=1000.0, position=(0, 0, SIDE / 2))
    plate = scene.add_rigid("plate", Box((0.03, 0.03, 0.005)), mass=0.1, position=(0, 0, SIDE + 0.0055))
    scene.drive(plate, Motion([0.0, 0.3], [(0, 0, 0), (0, 0, -depth)]))
    return scene


def _held(motions: list[tuple[str, tuple[float, float, float]]]) -> Scene:
    """Hold the top, the bottom or both of a cube and lead them away."""
    scene = _scene()
    cube = scene.add_soft("cube", _cube(), _rubber(), position=(0, 0, 0.75 * SIDE))
    tops = {"top": lambda x: x[:, 2] > 1.2 * SIDE, "bottom": lambda x: x[:, 2] < 0.3 * SIDE, "all": lambda x: x[:, 2] > -1.0}
    for number, (place, way) in enumerate(motions):
        scene.hold(cube, tops[place], Motion([0, 0.25], [(0, 0, 0), way]), name=f"hold{number}")
    return scene


def _crossing() -> Scene:
    scene = _scene(floor=False)
    for name, sign in (("left", -1.0), ("right", 1.0)):
        plate = scene.add_rigid(name, Box((0.005, 0.02, 0.02)), mass=0.1, position=(0.02 * sign, 0, 0))
        scene.drive(plate, Motion([0, 0.25], [(0, 0, 0), (-0.04 * sign, 0, 0)]))
    scene.add_rigid("far", Sphere(0.01), mass=0.1, position=(0, 0.5, 0.5))
    return scene


def _wall() -> Scene:
    scene = _scene(floor=False)
    scene.add_obstacle("wall", Box((0.01, 0.05, 0.05)), position=(0.05, 0, 0))
    probe = scene.add_rigid("probe", Box((0.01, 0.01, 0.01)), mass=0.1)
    scene.drive(probe, Motion([0, 0.25], [(0, 0, 0), (0.06, 0, 0)]))
    scene.add_rigid("far", Sphere(0.01), mass=0.1, position=(0, 0.5, 0.5))
    return scene


def _hand(deep: float, force: float) -> Scene:
    scene = _scene(floor=False)
    scene.add_obstacle("table", Box((0.2, 0.2, 0.01)), position=(0, 0, -0.01))
    pad = Box((0.003, 0.01, 0.01))
    fingers = [
        Finger(name, pad, offset=(0.02 * sign, 0, -0.05), closing=(-sign, 0, 0)) for name, sign in (("left", -1), ("right", 1))
    ]
    hand = scene.add_gripper("hand", fingers, position=(0, 0, 0.08))
    scene.drive(hand, Motion([0, 0.25], [(0, 0, 0), (0, 0, -0.02 - deep)]))
    scene.drive(hand, force=Profile([0, 0.1], [0, force]), fingers=True)
    return scene


def _tendon(force: float) -> Scene:
    scene = _scene()
    scene.add_soft("block", box_tets((0.02, 0.02, 0.08), (2, 2, 6)), _rubber(1e5, 0.4), position=(0, 0, 0.041))
    scene.add_tendon("block", [(0.009, 0, 0.005), (0.009, 0, 0.04), (0.009, 0, 0.078)], Profile([0, 0.2], [0.0, force]))
    return scene


def _chamber(pressure: float) -> Scene:
    box = box_tets((0.03, 0.03, 0.03), 3)
    cell = np.floor(box.points[box.tets].mean(axis=1) / 0.01 + 1.5).astype(int)
    tets = box.tets[~(cell == 1).all(axis=1)]
    used, numbers = np.unique(tets, return_inverse=True)
    scene = _scene()
    hollow = make_tetmesh(box.points[used], numbers.reshape(tets.shape), name="hollow", source="selftest")
    body = scene.add_soft("hollow", hollow, _rubber(1e5), position=(0, 0, 0.015))
    scene.pressurize(body, Profile([0, 0.2], [0.0, pressure]))
    return scene


def _rod(scene: Scene, name: str, points: np.ndarray, **options: Any) -> None:
    scene.add_rod(name, points, circular_section(0.002), Elastic(1e6, 0.4, 1000.0, name="cord"), **options)


def _knot(way: float) -> Scene:
    """Pull the ends of an overhand knot apart."""
    t = np.linspace(-1.6 * math.pi, 1.6 * math.pi, 60)
    points = 0.01 * np.column_stack([t**3 / 12 - 1.1 * t, 0.35 * t * np.clip(9 - t**2, -16, 9) / 4, t**4 / 60 - t**2 / 3.2])
    scene = _scene(5e-3, floor=False, gravity=(0, 0, 0))
    lead = [Motion([0, 0.25], [(0, 0, 0), (sign * way, 0, 0)]) for sign in (-1.0, 1.0)]
    _rod(scene, "cord", points, start=RodEnd("clamped", motion=lead[0]), end=RodEnd("clamped", motion=lead[1]), self_contact=True)
    return scene


def _tangle(count: int) -> Scene:
    scene = _scene(5e-3)
    for k in range(count):
        angle = math.pi * k / count
        line = np.linspace(-0.03, 0.03, 13)[:, None] * [math.cos(angle), math.sin(angle), 0.0]
        _rod(scene, f"rod{k}", np.add(line, (0.0, 0.0, 0.004 + 0.006 * k)))
    return scene


def _needle(shape: Any, high: float) -> Scene:
    scene = _scene()
    scene.add_soft("cube", _cube(3), _rubber(), position=(0.0012, 0.0013, SIDE / 2))
    tip = scene.add_rigid("tip", shape, mass=0.01, position=(0, 0, high))
    scene.drive(tip, Motion([0, 0.25], [(0, 0, 0), (0, 0, -0.01)]))
    return scene


def _wedge() -> Scene:
    scene = _scene()
    for name, sign in (("left", -1.0), ("right", 1.0)):
        scene.add_rigid(name, Box((0.01,) * 3), density=1000.0, position=(0.0101 * sign, 0, 0.01))
    wedge = scene.add_rigid("wedge", Box((0.007,) * 3), mass=0.1, position=(0, 0, 0.032), rotation=(0, math.pi / 4, 0))
    scene.drive(wedge, Motion([0, 0.25], [(0, 0, 0), (0, 0, -0.006)]))
    return scene


def _tumble(soft: bool, friction: float = 5.0, **options: Any) -> Scene:
    scene = _scene(gravity=(9.5, 0, -2.5), default_friction=friction, **options)
    if soft:
        scene.add_soft("cube", _cube(), _rubber(), position=(0, 0, SIDE / 2))
    else:
        scene.add_rigid("box", Box((SIDE / 2,) * 3), density=1000.0, position=(0, 0, SIDE / 2))
    return scene


def _spin(kind: str, **options: Any) -> Scene:
    """Let a body turn without weight, about an axis that is none of its own."""
    scene, turn = _scene(floor=False, gravity=(0, 0, 0), **options), (0.1, 10.0, 0.1)
    if kind == "rigid":
        scene.add_rigid("bar", Box((0.01, 0.02, 0.04)), density=1000.0, angular_velocity=turn)
    elif kind == "soft":
        scene.add_soft("bar", box_tets((0.01, 0.02, 0.04), (1, 2, 4)), _rubber(1e6), angular_velocity=turn)
    else:
        _rod(scene, "rod", np.linspace([-0.05, 0, 0], [0.05, 0, 0], 11), angular_velocity=turn)
    return scene


def _overlap(depth: float, soft: bool = False) -> Scene:
    scene = _scene()
    if soft:
        scene.add_soft("lower", _cube(), _rubber(), position=(0, 0, SIDE / 2))
        scene.add_soft("upper", _cube(), _rubber(), position=(0, 0, 1.5 * SIDE - depth))
    else:
        scene.add_rigid("ball", Sphere(0.01), density=1000.0, position=(0, 0, 0.01 - depth))
    return scene


def _sized(side: float, dt: float, young_modulus: float) -> Scene:
    scene = _scene(dt, margin=0.05 * side)
    scene.add_soft("cube", _cube(2, side), _rubber(young_modulus), position=(0, 0, 0.55 * side))
    return scene


def _chain(dt: float) -> Scene:
    scene = _scene(dt)
    end = RodEnd("clamped")
    _rod(scene, "rod", np.linspace([0, 0, 0.05], [0.1, 0, 0.05], 13), start=end)
    return scene


def _tower(cells: int) -> Scene:
    """Six boxes of one size, soft and rigid by turns; the soft ones have so many cells along an edge."""
    scene = _scene()
    for k in range(6):
        place = (0, 0, SIDE * (k + 0.5))
        if k % 2:
            scene.add_rigid(f"box{k}", Box((SIDE / 2,) * 3), density=1000.0, position=place)
        else:
            scene.add_soft(f"cube{k}", _cube(cells), _rubber(1e6), position=place)
    return scene


def _between(half: tuple[float, float, float], turn: tuple[float, float, float], speed: float = 0.0) -> Scene:
    """Drop a rigid box on a soft cube of two cells an edge, between whose nodes it has room."""
    scene = _scene(5e-3)
    scene.add_soft("cube", _cube(2, 2 * SIDE), _rubber(2e5), position=(0, 0, SIDE))
    place = (0.008, 0.009, 2 * SIDE + float(np.linalg.norm(half)) + 5e-4)
    scene.add_rigid("box", Box(half), density=2000.0, position=place, rotation=turn, velocity=(0, 0, -speed))
    return scene


def _mixed() -> list[Stress]:
    """Rigid boxes on soft bodies whose nodes do not bear them."""
    brick, stands = (0.006, 0.005, 0.004), Holds(top=5.3 * SIDE)
    return [
        Stress("tower_mixed_2", "rigid and soft boxes of one size, two cells each", partial(_tower, 2), stands, short=1.0),
        Stress("tower_mixed_3", "the same, three cells each", partial(_tower, 3), stands, short=1.0),
        Stress("brick_between_nodes", "a rigid box on a soft cube, between its nodes", partial(_between, brick, (0, 0, 0.3)),
               Holds(top=2 * SIDE)),
        Stress("brick_on_its_corner", "a rigid box falls with a corner between the nodes of a soft cube",
               partial(_between, brick, (0.6, 0.5, 0.2), 0.5), Holds(below=0.9 * SIDE / 5)),
    ]  # fmt: skip


def _many() -> list[Stress]:
    """Write the rows of parameters as scenes."""
    out = []
    for modulus, name in ((1e3, "1 kPa"), (1e4, "10 kPa"), (1e6, "1 MPa"), (1e8, "100 MPa"), (1e9, "1 GPa"), (2e11, "200 GPa")):
        out.append(
            Stress(
                f"young_{modulus:.0e}",
                f"a cube of {name} falls",
                partial(_drop, _rubber(modulus)),
                Holds(penetration=2e-3),
            )
        )
    for ratio in (0.0, 0.45, 0.499):
        out.append(Stress(f"poisson_{ratio:g}", f"Poisson's ratio {ratio:g}", partial(_drop, _rubber(1e5, ratio))))
    out.append(
        Stress(
            "poisson_0.499_quadratic",
            "Poisson's ratio 0.499, quadratic elements",
            partial(_drop, _rubber(1e5, 0.499), element="quadratic", cells=1),
        )
    )
    for dt in (1e-4, 5e-4, 2e-3, 5e-3, 2e-2, 5e-2):
        out.append(
            Stress(
                f"dt_{1e3 * dt:g}_ms",
                f"a cube falls in steps of {1e3 * dt:g} ms",
                partial(_drop, dt=dt),
                Holds(penetration=2e-3),
                short=min(0.3, 100 * dt) if dt < 5e-3 else 0.6,
            )
        )
    for friction in (0.0, 0.3, 1.0, 2.0, 5.0):
        for soft in (False, True):
            out.append(
                Stress(
                    f"friction_{friction:g}_{'soft' if soft else 'rigid'}",
                    f"a {'cube' if soft else 'box'} on a slope of 18 degrees, friction {friction:g}",
                    partial(_slope, friction, soft),
                    Holds(within=200.0),
                    ("left_stop",) if friction == 0.0 else (),  # it slides for ever
                )
            )
    for force in (10.0, 100.0, 1e3, 1e4):
        out.append(
            Stress(
                f"tendon_{force:g}_N",
                f"a tendon pulls with {force:g} N in a block of 0.1 MPa",
                partial(_tendon, force),
                Holds(energy=0.05),
                ("inverted",),
                short=0.4,
            )
        )
    return out


def stress_scenes() -> list[Stress]:
    """Return all stress scenes."""
    steel, jelly = Elastic(2e11, 0.3, 7800.0, name="steel"), _rubber(1e3)
    thin = Holds(below=-0.001, within=100.0)
    return [
        Stress("stack_rigid", "ten rigid boxes on each other", partial(_stack, lambda k: True)),
        Stress("stack_soft", "ten soft cubes on each other", partial(_stack, lambda k: False)),
        Stress("stack_mixed", "rigid and soft by turns", partial(_stack, lambda k: bool(k % 2)), Holds(top=9.3 * SIDE)),
        *_mixed(),
        Stress("heavy_on_light", "mass ratio a million, the heavy one above", partial(_masses, 1.0, 1e6)),
        Stress("light_on_heavy", "mass ratio a million, the light one above", partial(_masses, 1e6, 1.0)),
        Stress("heavy_on_soft", "a million times heavier than the soft cube below", partial(_masses, 10.0, 1e7, soft=True),
               Holds(below=-0.02)),
        Stress("steel_on_jelly", "200 GPa on 1 kPa", partial(_two, jelly, steel), Holds(penetration=2e-3), ("inverted",)),
        Stress("jelly_on_steel", "1 kPa on 200 GPa", partial(_two, steel, jelly), Holds(penetration=2e-3)),
        *_many(),
        Stress("fall_rigid", "a box from 2 m onto a corner", partial(_fall, "rigid"), Holds(penetration=2e-3)),
        Stress("fall_soft", "a soft cube from 2 m", partial(_fall, "soft"), Holds(penetration=2e-3)),
        Stress("fall_ball", "a soft ball from 2 m", partial(_fall, "ball"), Holds(penetration=2e-3)),
        Stress("shot_rigid_10_ms", "100 m/s onto a plate of 1 mm, a metre a step", partial(_shot, False, 0.01), thin),
        Stress("shot_rigid_1_ms", "100 m/s onto a plate of 1 mm, 0.1 m a step", partial(_shot, False, 1e-3), thin,
               short=0.02),
        Stress("shot_soft_0.1_ms", "a soft cube at 100 m/s onto a plate of 1 mm", partial(_shot, True, 1e-4), thin,
               ("inverted",), short=0.002),
        Stress("plate_beyond_floor_rigid", "a driven plate through a rigid box into the floor", partial(_press, 0.01, False),
               None,
               ("infeasible",), short=0.35),
        Stress("plate_beyond_floor_soft", "a driven plate through a soft cube below the floor", partial(_press, 0.03, True), None,
               ("infeasible", "led_overlap", "inverted"), short=0.35),
        Stress("crush_to_5_percent", "a driven plate crushes a soft cube to 5 % of its height",
               partial(_press, 0.95 * SIDE, True), Holds(), ("inverted",), short=0.35),
        Stress("crush_to_5_percent_hyperelastic", "the same, neo-Hookean",
               partial(_press, 0.95 * SIDE, True, law="stable_neo_hookean"), Holds(), ("inverted",), short=0.35),
        Stress("hold_beyond_floor", "held nodes are driven below the floor", partial(_held, [("bottom", (0, 0, -0.02))]), None,
               ("infeasible", "led_overlap", "penetration"), short=0.35),
        Stress("conflicting_holds", "two holds drive the same nodes apart",
               partial(_held, [("top", (0.02, 0, 0)), ("top", (-0.02, 0, 0))]), None, refused="hold"),
        Stress("holds_apart", "two holds tear a cube to five times its length",
               partial(_held, [("top", (0, 0, 0.08)), ("bottom", (0, 0, 0.0))]), Holds(energy=0.05),
               short=0.35),
        Stress("holds_through", "two holds drive top and bottom of a cube through each other",
               partial(_held, [("top", (0, 0, -0.03)), ("bottom", (0, 0, 0.005))]), None, ("inverted", "led_overlap"),
               short=0.35),
        Stress("crossing_plates", "two driven plates through each other", _crossing, None, ("led_overlap",), short=0.35),
        Stress("driven_through_wall", "a driven probe into a fixed wall", _wall, None, ("led_overlap",), short=0.35),
        Stress("hand_into_table", "fingers of a driven hand 10 mm into a table", partial(_hand, 0.01, 0.1), None,
               ("led_overlap", "infeasible", "penetration"), short=0.35),
        Stress("jaws_through_each_other", "fingers close on nothing", partial(_hand, -0.03, 1.0), None,
               ("led_overlap", "penetration"), short=0.35),
        Stress("chamber_10_kPa", "10 kPa in a box of 0.1 MPa", partial(_chamber, 1e4), Holds(energy=0.05)),
        Stress("chamber_1_MPa", "1 MPa in a box of 0.1 MPa", partial(_chamber, 1e6), Holds(energy=0.05), ("inverted",)),
        Stress("knot_loose", "the ends of a knot are driven 10 mm", partial(_knot, 0.01), Holds(below=-1.0)),
        Stress("knot_tight", "a knot is pulled tight", partial(_knot, 0.06), Holds(below=-1.0)),
        Stress("tangle_of_3_rods", "three rods fall across each other", partial(_tangle, 3)),
        Stress("tangle_of_8_rods", "eight rods fall across each other", partial(_tangle, 8)),
        Stress("rod_dt_50_ms", "a clamped rod swings in steps of 50 ms", partial(_chain, 0.05), Holds(below=-0.2),
               short=1.0),
        Stress("needle", "a needle of 1 mm into a cube with cells of 7 mm", partial(_needle, Capsule(0.0005, 0.02), 0.041), None,
               refused="it would pass between them"),
        Stress("edge", "the edge of a plate of 1 mm into a cube with cells of 7 mm",
               partial(_needle, Box((0.03, 0.0005, 0.01)), 0.031), None, ("between_nodes",)),
        Stress("wedge", "an edge is driven between two boxes", _wedge, Holds(), ("penetration",)),
        Stress("tumble_soft", "a soft cube tumbles down a wall", partial(_tumble, True), Holds(within=1e3),
               ("left_stop",), short=0.5),
        Stress("tumble_rigid", "a box tumbles down a wall", partial(_tumble, False), Holds(within=1e3),
               ("left_stop",), short=0.5),
        Stress("tumble_energy_momentum", "a soft cube tumbles, energy-momentum",
               partial(_tumble, True, integrator="energy-momentum"),
               Holds(within=1e3), ("left_stop",), short=0.5),
        Stress("spin_rigid", "a bar turns about its middle axis", partial(_spin, "rigid"), Holds(below=-0.1)),
        Stress("spin_soft", "a soft bar turns without weight", partial(_spin, "soft"), Holds(below=-0.1)),
        Stress("spin_rod", "a rod turns without weight", partial(_spin, "rod"), Holds(below=-0.1)),
        Stress("overlap_rigid", "a ball starts 3 mm in the floor", partial(_overlap, 0.003),
               Holds(energy=math.inf, penetration=3.1e-3), short=0.05),
        Stress("overlap_deep", "a ball starts with its centre in the floor", partial(_overlap, 0.012), None, refused="overlap"),
        Stress("overlap_soft", "a soft cube starts half in another", partial(_overlap, SIDE / 2, True), None, refused="overlap"),
        Stress("kilometre", "a cube of 1 km falls 50 m", partial(_sized, 1e3, 0.05, 1e9),
               Holds(penetration=50.0, below=-1.0, within=1e4), short=5.0),
        Stress("micrometre", "a cube of 1 um falls", partial(_sized, 1e-6, 1e-5, 1e5),
               Holds(penetration=1e-7, below=-1e-7, within=1.0), short=5e-4),
    ]  # fmt: skip


def chosen(names: tuple[str, ...]) -> list[Stress]:
    """Return the scenes of these names; all without names.

    Raises
    ------
    InputError
        An unknown name.
    """
    from femsim.base.errors import meant

    scenes = {stress.name: stress for stress in stress_scenes()}
    for name in names:
        if name not in scenes:
            raise InputError(f"there is no stress scene {name!r};{meant(name, scenes)} femsim selftest --list lists them.")
    return [scenes[name] for name in names] if names else list(scenes.values())
