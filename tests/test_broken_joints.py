"""What joints leave without contact: until they break, and of a weld that keeps contact what it holds anyway."""

from __future__ import annotations

import numpy as np
import pytest

import femsim as fs

G = 9.81
SIDE, THICK = 0.03, 0.006
RUBBER = fs.Elastic(1e5, 0.4, 1000.0, rayleigh_beta=1e-3, name="rubber")


def lid(
    kind: str, *, contact: bool = False, strength: float = 0.2, sunk: float = 0.0, faces: bool = False, wide: float = 1.0
) -> fs.Scene:
    """A lid on a box, or on a soft cube, that a pull of 0.5 N throws up from 0.02 to 0.05 s; without it falls back."""
    scene = fs.Scene("lid", dt=0.005, duration=0.8)
    scene.add_floor()
    where = None
    if kind == "soft":
        cube = scene.add_soft("cube", fs.box_tets((SIDE,) * 3, 3), RUBBER, position=(0, 0, SIDE / 2))
        where = lambda x: x[:, 2] > SIDE / 2 - 1e-6  # noqa: E731
    else:
        cube = scene.add_rigid("cube", fs.Box((SIDE / 2,) * 3), density=1000.0, position=(0, 0, SIDE / 2))
    plate = scene.add_rigid(
        "lid", fs.Box((wide * SIDE / 2, wide * SIDE / 2, THICK / 2)), density=2000.0, position=(0, 0, SIDE + THICK / 2 - sunk),
        load=lambda t: ((0, 0, 0.5 if 0.02 < t < 0.05 else 0.0), (0, 0, 0)),
    )  # fmt: skip
    scene.contact_by_faces(plate, on=faces)
    scene.join(cube, plate, at=(0, 0, SIDE), breakable=strength, contact=contact, where=where, name="glue")
    scene.sensor("glue", "glue", kind="reaction")
    scene.sensor("lid", "lid")
    scene.sensor("height", "lid", kind="marker")
    return scene


@pytest.mark.parametrize("contact", [False, True])
@pytest.mark.parametrize("kind", ["rigid", "soft"])
def test_a_lid_lies_where_it_falls_back_when_its_joint_has_broken(kind: str, contact: bool) -> None:
    """It went through the box to the floor, unseen, since what a joint holds together has no contact."""
    run = fs.simulate(lid(kind, contact=contact))
    height = run.markers["height"].position[:, 2]
    assert height.max() > 1.5 * SIDE  # thrown
    assert height[-1] == pytest.approx(SIDE + THICK / 2, abs=3e-4)
    assert run.sensors["lid"].force[-1, 2] == pytest.approx(2000.0 * SIDE**2 * THICK * G, rel=1e-3)
    assert run.verdict == "good", run.summary()


def test_glue_beside_contact_bears_no_force_of_its_own() -> None:
    """Contact at a glued node asks for what the glue gives; rounding made the two contradict each other, by 1e14 N."""
    scene = fs.Scene("glued", dt=0.005, duration=0.05, gravity=(0, 0, 0))
    cube = scene.add_soft("cube", fs.box_tets((SIDE,) * 3, 3), RUBBER)
    plate = scene.add_rigid(
        "plate", fs.Box((SIDE / 2, SIDE / 2, THICK / 2)), density=2000.0, position=(0, 0, SIDE / 2 + THICK / 2),
        velocity=(0, 0, 1.0), angular_velocity=(2, 0, 1),
    )  # fmt: skip
    scene.join(cube, plate, at=(0, 0, SIDE / 2), where=lambda x: x[:, 2] > SIDE / 2 - 1e-6, contact=True, name="glue")
    scene.sensor("glue", "glue", kind="reaction")
    run = fs.simulate(scene)
    assert run.verdict == "good" and run.steps["converged"].all()
    assert np.abs(run.sensors["glue"].force).max() < 5.0
    momentum = np.array([run.steps[f"momentum_{axis}_kgmps"] for axis in "xyz"])
    np.testing.assert_allclose(momentum[2], 2000.0 * SIDE**2 * THICK, rtol=1e-9)


@pytest.mark.parametrize("faces", [False, True])
@pytest.mark.parametrize(("kind", "sunk"), [("rigid", 1e-5), ("soft", 1e-5), ("soft", -1e-5)])
def test_a_weld_that_keeps_contact_holds_what_overlaps(kind: str, sunk: float, faces: bool) -> None:
    run = fs.simulate(lid(kind, contact=True, strength=50.0, sunk=sunk, faces=faces), duration=0.1)
    assert run.steps["converged"].all() and run.verdict == "good", run.summary()
    assert np.abs(run.sensors["glue"].force).max() < 2.0
    assert np.abs(run.sensors["lid"].force).max() == 0.0


def test_what_is_deep_in_another_passes_through_it_also_when_the_joint_has_broken() -> None:
    run = fs.simulate(lid("rigid", sunk=0.8 * THICK, wide=0.9), duration=0.5)
    assert any("pass through each other also when the joint between them breaks" in note for note in run.info["notes"])
    assert run.markers["height"].position[-1, 2] == pytest.approx(THICK / 2, abs=1e-6)  # on the floor
    shallow = fs.simulate(lid("rigid", sunk=0.2 * THICK, wide=0.9), duration=0.5)
    assert any("once the joint between them breaks" in note for note in shallow.info["notes"])


def test_a_simulation_goes_back_to_before_its_joint_broke() -> None:
    """What waits for a joint follows the state, also in a fork that goes on from before the break."""
    sim = fs.Simulation(lid("soft"))
    sim.step(3)
    saved, twin = sim.save(), sim.fork()
    first = [dict(sim.step().row()) for _ in range(80)]
    assert first[-1]["glue_fz_N"] == 0.0 and first[-1]["lid_fz_N"] != 0.0  # it broke, and lies again
    sim.restore(saved)
    for again in (sim, twin):
        for row in first:
            new = again.step().row()
            assert {k: v for k, v in new.items() if "ms_" not in k} == {k: v for k, v in row.items() if "ms_" not in k}


def pair(*, spin: float = 1.0, apart: float = 0.0, wall: bool = False, **weld: float) -> fs.Scene:
    """Two boxes side by side, each welded to a bar that spins or the world; where a weld may break, 20 N push box b."""
    scene = fs.Scene("pair", dt=0.01, duration=0.3, gravity=(0, 0, 0), default_friction=0.3)
    turn, on = (0.0, 0.0 if wall else spin, 0.0 if wall else 0.3 * spin), "world"
    if not wall:
        on = scene.add_rigid("bar", fs.Box((0.04, 0.02, 0.005)), mass=0.2, angular_velocity=turn).name
    for name, x in (("a", -1.0), ("b", 1.0)):
        scene.add_rigid(
            name, fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(x * (0.02 + 0.5 * apart), 0, 0.025), angular_velocity=turn,
            load=(lambda t: ((-20.0 if t > 0.05 else 0.0, 0, 0), (0, 0, 0))) if weld and name == "b" else None,
        )  # fmt: skip
        scene.join(name, on, at=(0.02 * x, 0, 0.005), **(weld if name == "b" else {}))  # type: ignore[arg-type]
    scene.sensor("b", "b")
    return scene


@pytest.mark.parametrize("wall", [False, True])
@pytest.mark.parametrize("apart", [0.0, 1e-9])
def test_boxes_welded_to_one_body_may_touch(wall: bool, apart: float) -> None:
    """Contact asks for what both welds give; by rounding steps did not converge, or were halved again and again."""
    run = fs.simulate(pair(apart=apart, wall=wall))
    assert run.steps["converged"].all() and run.verdict == "good", run.summary()
    assert (run.steps["substeps"] == 1).all()
    assert np.abs(run.sensors["b"].force).max() == 0.0


def test_boxes_welded_to_the_world_press_when_one_weld_has_broken() -> None:
    run = fs.simulate(pair(wall=True, breakable=10.0))
    force = run.sensors["b"].force[:, 0]
    assert (force[:5] == 0.0).all()
    assert force[-1] == pytest.approx(20.0, rel=1e-6)


def test_soft_cubes_glued_to_both_sides_of_a_plate_may_touch() -> None:
    scene = fs.Scene("sandwich", dt=0.01, duration=0.1, theta=1.0)
    plate = scene.add_rigid("plate", fs.Box((SIDE / 2, SIDE / 2, 5e-4)), mass=1e-3)
    for name, side in (("upper", 1.0), ("lower", -1.0)):
        cube = scene.add_soft(name, fs.box_tets((SIDE,) * 3, 2), RUBBER, position=(0, 0, 0.5 * side * SIDE))
        scene.join(cube, plate, at=(0, 0, 0), where=lambda x: np.abs(x[:, 2]) < 1e-6)
        if side > 0.0:
            scene.hold(cube, lambda x: x[:, 2] > SIDE - 1e-6, fs.Motion([0.0], [(0, 0, 0)]))
    run = fs.simulate(scene)
    assert run.steps["converged"].all() and run.verdict == "good", run.summary()
