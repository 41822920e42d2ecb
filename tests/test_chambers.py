"""Pressure in closed chambers: derivatives, closed forms, pumps, energy, sensors, what is no chamber."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hollow_boxes import hollow_box, without

import femsim as fs
from femsim.model.actuators import Chamber, find_chamber
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.corotational import CorotationalBody
from femsim.step.state import State
from femsim.step.system import System

E, NU = 1e5, 0.3
RUBBER = fs.Elastic(E, NU, 1000.0, name="rubber")
STEP = StepSettings(0.02, 0.75, np.zeros(3))


def hollow_ball(divisions: int, inner: int, radius: float = 0.03) -> fs.TetMesh:
    mesh = fs.ball_tets(radius, divisions)
    hole = radius * inner / (divisions // 2)
    return without(mesh, (np.linalg.norm(mesh.points[mesh.tets], axis=2) < hole * (1 + 1e-9)).all(axis=1))


def box_chamber(**drive: Any) -> tuple[CorotationalBody, Chamber, np.ndarray]:
    """A chamber and its nodes in a disturbed place, (k, 3)."""
    mesh = hollow_box()
    body = CorotationalBody("box", mesh.points, mesh.tets, RUBBER, velocity=np.zeros(3))
    chamber = Chamber("chamber", body, 0, find_chamber(body, None), **(drive or {"pressure": lambda t: 2e4}))
    rng = np.random.default_rng(3)
    return body, chamber, body.rest + 1e-3 * rng.standard_normal(body.rest.shape)


def volume_twin(points: np.ndarray, triangles: np.ndarray) -> float:
    return sum(np.linalg.det(points[corners]) for corners in triangles) / 6.0


def gradient_at(chamber: Chamber, q: np.ndarray) -> np.ndarray:
    chamber.prepare([q.ravel()], 0.0)
    return chamber.gradient.copy()


def test_volume_and_force_are_those_of_the_surface() -> None:
    body, chamber, q = box_chamber()
    triangles = find_chamber(body, None)
    gradient = gradient_at(chamber, q)
    assert chamber.volume == pytest.approx(volume_twin(q, triangles), rel=1e-12)
    h, x = 1e-6, q.copy()
    for number, row in enumerate(chamber.rows[0][1]):
        x.ravel()[row] = q.ravel()[row] + h
        high = volume_twin(x, triangles)
        x.ravel()[row] = q.ravel()[row] - h
        assert (high - volume_twin(x, triangles)) / (2 * h) == pytest.approx(gradient[number], abs=1e-10)
        x.ravel()[row] = q.ravel()[row]
    forces = gradient.reshape(-1, 3)
    np.testing.assert_allclose(forces.sum(axis=0), 0.0, atol=1e-18)
    np.testing.assert_allclose(np.cross(q[chamber.nodes], forces).sum(axis=0), 0.0, atol=1e-18)


def dense(chamber: Chamber, q: np.ndarray, pressure: float) -> np.ndarray:
    chamber.prepare([q.ravel()], 0.0)
    m = len(chamber.rows[0][1])
    out = np.zeros(m * m)
    out[chamber._flat] = chamber.stiffness(pressure)
    return out.reshape(m, m)


@pytest.mark.parametrize("pressure", [2e4, -2e4])
def test_stiffness_is_the_positive_part_of_the_derivative(pressure: float) -> None:
    """K(p) and K(-p) are the positive parts of -+p H, so K(p) - K(-p) = -p H: against differences of the force."""
    _, chamber, q = box_chamber()
    K, other = dense(chamber, q, pressure), dense(chamber, q, -pressure)
    h, rows = 1e-6, chamber.rows[0][1]
    H = np.empty_like(K)
    for number, row in enumerate(rows):
        x = q.copy()
        x.ravel()[row] += h
        high = gradient_at(chamber, x)
        x.ravel()[row] -= 2 * h
        H[:, number] = (high - gradient_at(chamber, x)) / (2 * h)
    np.testing.assert_allclose(K - other, -pressure * H, atol=1e-7 * abs(pressure) * 0.01)
    np.testing.assert_allclose(K, K.T, atol=1e-12 * np.abs(K).max())
    values = np.linalg.eigvalsh(K)
    assert values.min() > -1e-12 * values.max() and values.max() > 0.0
    shift = np.tile(np.eye(3), (len(rows) // 3, 1))
    np.testing.assert_allclose(K @ shift, 0.0, atol=1e-12 * np.abs(K).max())


@pytest.mark.parametrize("drive", [{"pressure": lambda t: 3e3}, {"volume": lambda t: 1.1e-6, "bulk": 1e5}])
def test_the_tangent_is_all_of_the_derivative_of_the_force(drive: dict[str, Callable[[float], float]]) -> None:
    """With the positive part alone a finger under pressure took six linearisations a step. That part is what is asked for."""
    _, chamber, q = box_chamber(**drive)
    settings, rows = StepSettings(0.02, 1.0, np.zeros(3)), chamber.rows[0][1]
    m = len(rows)
    chamber.prepare([q.ravel()], 0.0)
    room, b = (np.empty((m, m)) if "volume" in drive else np.empty(len(chamber.entries[0]))), np.empty(m)  # type: ignore[index]
    chamber.assemble(settings, room, b)

    def exerted(v: np.ndarray) -> np.ndarray:
        x = q.copy()
        x.ravel()[rows] += 0.02 * v
        chamber.prepare([x.ravel()], 0.0, v)
        return chamber.exerted().copy()

    def tangent(positive: bool) -> tuple[np.ndarray, bool]:
        other, out = chamber.tangent(settings, room, b, positive=positive), np.zeros((m, m))
        if "volume" in drive:
            return room.copy(), other
        assert chamber.entries is not None
        out[chamber.entries] = room
        return out, other

    v, h = np.random.default_rng(4).normal(0.0, 0.02, m), 1e-5
    K = np.stack([(exerted(v - h * e) - exerted(v + h * e)) / (2 * h) for e in np.eye(m)], axis=1)
    exerted(v)
    found, other = tangent(False)
    np.testing.assert_allclose(found, K, atol=1e-6 * np.abs(K).max())
    assert not other and np.linalg.eigvalsh(found).min() < -0.01 * np.abs(found).max()
    definite, other = tangent(True)
    assert other and np.linalg.eigvalsh(definite).min() > -1e-12 * np.abs(definite).max()
    assert not tangent(True)[1]


def test_a_finger_under_pressure_takes_few_linearisations() -> None:
    """3.4 a step, and 5 at most, with the positive part of the stiffness alone."""
    mesh = without(
        box := fs.box_tets((0.016, 0.016, 0.06), (4, 4, 12)),
        ((middle := box.points[box.tets].mean(axis=1))[:, 0] < 0.0)
        & (np.abs(middle - (-0.002, 0.0, 0.0)) < (0.002, 0.004, 0.025)).all(axis=1),
    )
    scene = fs.Scene("finger", dt=0.01, duration=0.4)
    silicone = fs.Elastic(3e5, 0.45, 1100.0, rayleigh_beta=2e-3, name="silicone")
    body = scene.add_soft("finger", mesh, silicone, fixed=lambda x: x[:, 2] > 0.0299)
    scene.pressurize(body, fs.Profile([0.0, 0.3], [0.0, 6e4]))
    run = fs.simulate(scene)
    assert run.verdict == "good" and np.mean(run.steps["solves"]) < 2.2


@pytest.mark.parametrize("drive", [{"pressure": lambda t: 3e3 + t}, {"volume": lambda t: 1.1e-6, "bulk": 1e5}])
def test_what_is_added_to_the_system(drive: dict[str, Callable[[float], float]]) -> None:
    body, chamber, q = box_chamber(**drive)
    alone, both = System([body]), System([body], [chamber])
    v = np.zeros(body.n_v)
    state = State(q.ravel().copy(), v, 0.5)
    for system in (alone, both):
        system.assemble(state, STEP, v)
    m, rows = body.n_v, chamber.rows[0][1]
    extra = np.zeros((m, m))
    pressure = 3e3 + 0.515
    if "volume" in drive:
        stiffness = 1e5 / 1e-6  # the chamber is a cube of 10 mm
        pressure = stiffness * (1.1e-6 - volume_twin(q, find_chamber(body, None)))
        extra[np.ix_(rows, rows)] += 0.015 * stiffness * np.outer(chamber.gradient, chamber.gradient)
    extra[np.ix_(rows, rows)] += 0.015 * dense(chamber, q, pressure)
    np.testing.assert_allclose((both.A - alone.A).toarray(), extra, atol=1e-9 * np.abs(extra).max())
    np.testing.assert_allclose((both.b - alone.b)[rows], pressure * chamber.gradient, rtol=1e-9, atol=1e-12)


def still(mesh: fs.TetMesh, *, dt: float = 0.5, steps: int = 12, law: str = "corotational") -> fs.Scene:
    """A free body in large time steps, which take it to rest."""
    scene = fs.Scene("still", dt=dt, duration=dt * steps, gravity=(0, 0, 0), theta=1.0)
    scene.add_soft("body", mesh, RUBBER, law=law)
    return scene


def test_a_surface_by_corners_of_quadratic_elements_is_pressed_at_the_middles_of_its_edges_too() -> None:
    """By the numbers of the mesh that was given; pressure at the corners alone dented the faces."""
    mesh = hollow_box(1)
    corners = find_chamber(CorotationalBody("body", mesh.points, mesh.tets, RUBBER, velocity=np.zeros(3)), 0)
    ends = []
    for where in (corners, 0):
        scene = fs.Scene("still", dt=0.5, duration=3.0, gravity=(0, 0, 0), theta=1.0)
        scene.add_soft("body", mesh, RUBBER, element="quadratic")
        scene.pressurize("body", lambda t: 2e3, where=where)
        run = fs.simulate(scene)
        assert run.status == "converged"
        ends.append(run.stepper.state.q - scene.body("body").initial_q())
    assert np.abs(ends[1]).max() > 1e-5
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-3 * np.abs(ends[1]).max())


def test_a_surface_is_divided_where_edges_have_middles_and_stays_closed() -> None:
    """The sides of a box; two triangles share the diagonal that is no edge of an element and has no middle."""
    mesh = fs.box_tets((0.02, 0.02, 0.02), 1)
    scene = fs.Scene("box", dt=0.1, duration=0.1)
    scene.add_soft("body", mesh, RUBBER, element="quadratic")
    body = scene.body("body").tetrahedra()
    assert body is not None
    top = (mesh.points[mesh.surface_triangles][:, :, 2] > 0).all(axis=1)
    first, second = mesh.surface_triangles[top].tolist()
    apex = next(k for k in range(3) if first[k] not in second)
    r, p, q = first[apex:] + first[:apex]
    (s,) = set(second) - {p, q}
    hull = np.vstack([mesh.surface_triangles[~top], [[r, p, s], [s, q, r]]])
    divided = find_chamber(body, hull)
    assert len(divided) == 10 * 4 + 2 * 3
    edges = divided[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    assert {tuple(edge) for edge in edges.tolist()} == {tuple(edge) for edge in edges[:, ::-1].tolist()}
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert volume_twin(body.rest, divided) == pytest.approx(0.02**3, rel=1e-12)
    areas = np.linalg.norm(np.cross(*(body.rest[divided[:, k]] - body.rest[divided[:, 0]] for k in (1, 2))), axis=1)
    assert areas.min() > 1e-6


def test_equal_pressure_inside_and_outside_scales_the_body_exactly() -> None:
    """Uniform stress: a co-rotational body scaled by s has 3 K (s - 1) on its rest area, the pressure p s^2."""
    scene, pressure = still(hollow_box(2), steps=60), 2e4
    body = scene.body("body")
    assert isinstance(body, CorotationalBody)
    outside = fs.make_tetmesh(body.rest, body.tets, name="all", source="test").surface_triangles
    for number in range(2):
        scene.pressurize("body", lambda t: pressure, where=number)
    chambers = np.concatenate([find_chamber(body, 0), find_chamber(body, 1)])
    hull = outside[~np.isin(outside, chambers).all(axis=1)]
    scene.pressurize("body", lambda t: -pressure, where=hull)
    run = fs.simulate(scene)
    assert run.status == "converged"
    bulk = E / (3 * (1 - 2 * NU))
    s = (-3 * bulk + np.sqrt((3 * bulk) ** 2 + 12 * bulk * pressure)) / (2 * pressure)
    x = run.stepper.state.q.reshape(-1, 3)
    x, rest = x - x.mean(axis=0), body.rest - body.rest.mean(axis=0)
    U, _, Vt = np.linalg.svd(x.T @ rest)  # a free body may turn a little
    np.testing.assert_allclose(x @ U @ Vt, s * rest, atol=1e-10)
    assert s < 0.95


def test_thick_sphere_swells_as_lame_says() -> None:
    """u(a) = p a^3 / (b^3 - a^3) ((1 - 2 nu) a / E + (1 + nu) b^3 / (2 E a^2)); the mesh, a polyhedron, converges to it."""
    pressure, a, b = 50.0, 0.018, 0.03
    exact = pressure * a**3 / (b**3 - a**3) * ((1 - 2 * NU) * a / E + (1 + NU) * b**3 / (2 * E * a**2))
    error = []
    for divisions in (10, 20):
        scene = still(hollow_ball(divisions, 3 * divisions // 10))
        scene.sensor("air", scene.pressurize("body", lambda t: pressure), kind="chamber")
        run = fs.simulate(scene)
        body = scene.body("body")
        assert isinstance(body, CorotationalBody) and run.status == "converged"
        inner = np.isclose(np.linalg.norm(body.rest, axis=1), a)
        x = run.stepper.state.q.reshape(-1, 3)
        grown = np.linalg.norm(x - x.mean(axis=0), axis=1)[inner].mean() - a
        error.append(grown / exact - 1.0)
        air = run.chambers["air"]
        assert air.pressure == pytest.approx(np.full(12, pressure))
        assert air.volume[-1] == pytest.approx(volume_twin(x, find_chamber(body, None)), rel=1e-9)
    assert abs(error[1]) < 0.04
    assert abs(4 * error[1] - error[0]) / 3 < 0.01  # second order in the size of the elements


def test_a_pump_fills_the_chamber() -> None:
    """The fluid takes its volume but for its own compression; walls that give keep the pressure far below a rigid vessel's."""
    scene = still(hollow_box(), steps=30)
    fluid = fs.Profile([0.0, 5.0], [1e-6, 1.2e-6])
    pump = scene.pressurize("body", volume=fluid, bulk=1e7, name="pump")
    scene.sensor("fluid", pump, kind="chamber")
    run = fs.simulate(scene)
    fluid_sensor = run.chambers["fluid"]
    assert run.status == "converged"
    assert fluid_sensor.volume[-1] == pytest.approx(1.2e-6, rel=0.02)
    assert fluid_sensor.pressure[-1] == pytest.approx(1e7 * (1.2e-6 - fluid_sensor.volume[-1]) / 1e-6, rel=1e-6)
    expected = 1e7 * (np.array([fluid(t) for t in fluid_sensor.time]) - fluid_sensor.volume) / 1e-6  # as it flows, too
    np.testing.assert_allclose(fluid_sensor.pressure, expected, rtol=0.4)
    given = still(hollow_box(), steps=60)
    given.sensor("fluid", given.pressurize("body", lambda t: fluid_sensor.pressure[-1]), kind="chamber")
    assert fs.simulate(given).chambers["fluid"].volume[-1] == pytest.approx(fluid_sensor.volume[-1], rel=1e-6)


def test_power_is_pressure_times_flow_and_energy_never_grows() -> None:
    scene = still(hollow_box(), dt=0.005, steps=40)
    scene.sensor("air", scene.pressurize("body", fs.Profile([0.0, 0.1], [0.0, 8e3])), kind="chamber")
    scene.add_rigid("away", fs.Sphere(0.01), mass=0.1, position=(1.0, 0, 0))
    run = fs.simulate(scene)
    steps, air = run.steps, run.chambers["air"]
    flow = np.diff(np.concatenate([[1e-6], air.volume]))
    np.testing.assert_allclose(steps["work_J"][-1], (air.pressure * flow).sum(), rtol=1e-3)
    lost = steps["work_J"] - steps["kinetic_energy_J"] - steps["elastic_energy_J"]
    assert steps["work_J"][-1] > 1e-5 and np.diff(lost).min() > -1e-12
    np.testing.assert_allclose(steps["momentum_x_kgmps"], 0.0, atol=1e-12)


@pytest.mark.parametrize("bulk", [1e5, 1e7])
def test_a_fluid_that_is_pressed_gives_back_what_it_took(bulk: float) -> None:
    """A hollow box that starts pressed flat swings around what is in it: both keep their energy but for a hundredth.

    By the volume in the middle of steps the fluid did work of up to twelve times the energy of the box.
    """
    scene = fs.Scene("swing", dt=0.002, duration=0.2, gravity=(0, 0, 0), strain_damping=0.0)
    flat = np.array([1.15, 1.15, 0.7])
    body = scene.add_soft("body", hollow_box(), RUBBER, start_points=lambda x: x * flat)
    volume = 1e-6 * float(flat.prod())
    scene.sensor("fluid", scene.pressurize(body, volume=lambda t: volume, bulk=bulk), kind="chamber")
    box = scene.body("body")
    at_first = box.elastic_energy(box.initial_q())
    run = fs.simulate(scene)
    own = run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"]
    stored = 0.5 * bulk / 1e-6 * (run.chambers["fluid"].volume - volume) ** 2
    assert run.status == "converged" and stored.max() > 1e-3 * at_first
    np.testing.assert_allclose(own + stored, at_first, rtol=0.01)


def test_water_that_is_pumped_in_obeys_its_law_at_the_end_of_each_step() -> None:
    """What is far too stiff for the step neither swings about its rest nor takes work that nothing gets.

    By the volume in its middle the ends of steps said 611 and -582 kPa in turn for 14.8 kPa, and the run was good.
    """
    scene = fs.Scene("pump", dt=0.01, duration=0.3, gravity=(0, 0, 0))
    body, water = scene.add_soft("body", hollow_box(), RUBBER), fs.Profile([0.0, 0.2], [1e-6, 1.08e-6])
    scene.sensor("water", scene.pressurize(body, volume=water, bulk=2e9), kind="chamber")
    run = fs.simulate(scene)
    fluid, steps = run.chambers["water"], run.steps
    at_end = 2e9 * (np.array([water(t) for t in fluid.time]) - fluid.volume) / 1e-6
    assert fluid.pressure[-1] > 1e4
    np.testing.assert_allclose(at_end, fluid.pressure, atol=0.05 * fluid.pressure[-1])  # half a step apart as it flows
    np.testing.assert_allclose(at_end[-6:], fluid.pressure[-1], rtol=1e-4)
    np.testing.assert_allclose(steps["work_J"], np.cumsum(fluid.pressure * np.diff(fluid.volume, prepend=1e-6)), rtol=1e-3)
    lost = steps["work_J"] - steps["kinetic_energy_J"] - steps["elastic_energy_J"]
    assert np.diff(lost).min() > -1e-5 * steps["work_J"][-1] and lost[-1] < 1e-3 * steps["work_J"][-1]


@pytest.mark.parametrize("self_contact", [False, True])
def test_a_chamber_whose_walls_pass_through_each_other_is_wrong(self_contact: bool) -> None:
    """A suction cup that is too soft: its ceiling went 12 mm through its floor, and the run was good."""
    scene = fs.Scene("suction", dt=0.01, duration=0.4, gravity=(0, 0, 0), theta=1.0)
    mesh = fs.box_tets((0.04, 0.04, 0.02), (8, 8, 4))
    middle = mesh.points[mesh.tets].mean(axis=1)
    hollow = without(mesh, (np.abs(middle) < [0.015, 0.015, 0.005]).all(axis=1))
    soft = fs.Elastic(1e5, 0.4, 1000.0)
    cup = scene.add_soft("cup", hollow, soft, fixed=lambda x: x[:, 2] < -0.0099, self_contact=self_contact)
    scene.sensor("air", scene.pressurize(cup, fs.Profile([0.0, 0.3], [0.0, -2e4])), kind="chamber")
    run = fs.simulate(scene)
    reasons = [reason["sentence"] for reason in run.info["health"]["reasons"] if reason["kind"] == "collapsed"]
    if self_contact:
        assert run.chambers["air"].volume.min() > 0.0 and not reasons
        return
    assert run.info["health"]["verdict"] == "wrong" and run.chambers["air"].volume.min() < 0.0
    assert "the walls of cup.chamber1 passed through each other" in reasons[0] and "self_contact=True" in reasons[0]


def test_a_run_can_be_repeated_and_its_sensors_are_in_the_table(tmp_path: Any) -> None:
    scene = still(hollow_box(), dt=0.01, steps=3)
    scene.pressurize("body", lambda t: 1e3 * t)
    scene.sensor("air", "body", kind="chamber")
    first, second = fs.simulate(scene, out=tmp_path / "run"), fs.simulate(scene)
    np.testing.assert_array_equal(first.stepper.state.q, second.stepper.state.q)
    header, *rows = (tmp_path / "run" / "sensors.csv").read_text().splitlines()
    assert header == "time_s,air_pressure_Pa,air_volume_m3"
    assert float(rows[-1].split(",")[1]) == pytest.approx(30.0)


def box_scene(holes: int = 2) -> fs.Scene:
    return still(hollow_box(holes))


def opened() -> np.ndarray:
    body = box_scene().body("body")
    assert isinstance(body, CorotationalBody)
    return find_chamber(body, 0)[1:]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.pressurize("body"), "exactly one of pressure and volume"),
        (lambda s: s.pressurize("body", lambda t: 1.0, volume=lambda t: 1.0), "exactly one of pressure and volume"),
        (lambda s: s.pressurize("body", 3.0), "pressure is 3.0, but must be a function"),
        (lambda s: s.pressurize("body", lambda t: 1.0), r"there are 2, of 1000, 1000 mm\^3"),
        (lambda s: s.pressurize("body", lambda t: 1.0, where=2), "number 2 does not exist"),
        (lambda s: s.pressurize("body", lambda t: 1.0, where=lambda x: x[:, 0] < -1), "of 0 of 2 chambers"),
        (lambda s: s.pressurize("body", lambda t: 1.0, where=lambda x: x[:, 0]), "one bool a node"),
        (lambda s: s.pressurize("body", lambda t: 1.0, where=opened()), "not closed: 3 of its edges .* 0 to more"),
        (lambda s: s.pressurize("body", lambda t: 1.0, where=np.vstack([opened(), opened()])), "more than two; every edge"),
        (lambda s: s.pressurize("body", lambda t: 1.0, where=np.array([[0, 1, 9999]])), "names node 9999"),
        (lambda s: s.pressurize("body", lambda t: 1.0, where=np.zeros((3, 2))), r"shape \(3, 2\)"),
        (lambda s: s.pressurize("ball", lambda t: 1.0), "'ball' is no soft body"),
        (lambda s: s.pressurize("nobody", lambda t: 1.0), "'nobody' is unknown"),
        (lambda s: s.pressurize("body", volume=lambda t: 1.0, where=0, bulk=0.0), "bulk of body.chamber1"),
        (lambda s: s.pressurize("body", lambda t: 1.0, where=0, name="ball"), "'ball' is taken"),
        (lambda s: s.pressurize("body", lambda t: 1.0, where=0, bulk=2e9), "bulk is that of the fluid of volume; leave it out"),
        (lambda s: [s.pressurize("body", lambda t: 1.0, where=0) for _ in range(2)], "body.chamber1 is the same chamber"),
        (lambda s: s.pressurize("body", volume=fs.Profile([0, 1], [1e-6, -1e-6]), where=0), "fluid is -1e-06 m.3; allowed"),
        (lambda s: s.pressurize("body", volume=fs.Profile([0, 1], [1, 8]), where=0),
         r"volume of the fluid is 8 m\^3, 8e\+06 times the 1e-06 m\^3 of the chamber; allowed are 0 to 0.001 m\^3. Write"),
        (lambda s: s.sensor("air", "body", kind="chamber"), "nothing of kind 'chamber' is on 'body'; there is none"),
        (lambda s: s.sensor("air", s.pressurize("body", lambda t: 1.0, where=0)), "no kind 'contact'; use 'chamber'"),
    ],
)  # fmt: skip
def test_what_cannot_be_pressurized_is_refused(call: Callable[[fs.Scene], Any], message: str) -> None:
    scene = box_scene()
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1)
    with pytest.raises(fs.InputError, match=message):
        call(scene)


def test_a_body_without_a_chamber_and_a_pressure_that_is_no_number_are_refused() -> None:
    scene = fs.Scene("solid", theta=1.0)
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), RUBBER)
    with pytest.raises(fs.InputError, match=r"encloses no chamber, .* hole in its wall"):
        scene.pressurize("cube", lambda t: 1.0)
    scene = box_scene(1)
    scene.pressurize("body", lambda t: float("nan"))
    with pytest.raises(fs.InputError, match=r"body.chamber1: pressure is nan Pa at 0.5 s"):
        fs.simulate(scene)
    scene = box_scene(2)
    scene.pressurize("body", lambda t: 1.0, where=0)
    scene.pressurize("body", volume=lambda t: 1e-6 if t < 1.0 else -1e-6, where=1)
    with pytest.raises(fs.InputError, match=r"body.chamber2: volume of the fluid is -1e-06 m\^3 at 1 s; allowed"):
        fs.simulate(scene)


def test_the_work_of_a_pressure_is_that_of_the_change_of_volume_where_the_chamber_turns() -> None:
    """By backward Euler dV/dx at the end of a step, times its way, was 12 times as much."""
    scene = fs.Scene("turning", dt=0.01, duration=0.2, gravity=(0, 0, 0), theta=1.0)
    body = scene.add_soft("body", hollow_box(), RUBBER, angular_velocity=(0, 0, 5.0))
    scene.sensor("air", scene.pressurize(body, fs.Profile([0.0, 0.1], [0.0, 3e3])), kind="chamber")
    run = fs.simulate(scene)
    air = run.chambers["air"]
    work = (air.pressure * np.diff(air.volume, prepend=1e-6)).sum()
    assert run.steps["work_J"][-1] == pytest.approx(work, rel=1e-9)
