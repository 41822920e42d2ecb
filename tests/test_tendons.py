"""Tendons in soft bodies: derivatives, a bar they shorten, force balance, slack, energy, sensors, what is no tendon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import femsim as fs
from femsim.model.actuators import Tendon, route
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.swings import elastic_tension
from femsim.step.state import State
from femsim.step.system import System

E = 1e5
RUBBER = fs.Elastic(E, 0.3, 1000.0, name="rubber")
CORK = fs.Elastic(E, 0.0, 1000.0, name="cork")  # no lateral strain: uniaxial stress is uniaxial strain
STEP = StepSettings(0.02, 0.75, np.zeros(3))
LENGTH, SIDE = 0.06, 0.01
BENT = np.array([(-0.028, 0.001, 0.002), (-0.01, -0.003, 0.004), (0.012, 0.004, 0.0), (0.03, 0.005, -0.005)])


def bar() -> fs.TetMesh:
    return fs.box_tets((LENGTH, SIDE, SIDE), (6, 1, 1))


def bent_tendon(**drive: Any) -> tuple[CorotationalBody, Tendon, np.ndarray]:
    """A tendon along a bent way, and its body in a disturbed place, (n, 3)."""
    mesh = bar()
    body = CorotationalBody("bar", mesh.points, mesh.tets, RUBBER, velocity=np.zeros(3))
    tendon = Tendon("tendon", 0, *route(body, BENT), body.rest, **drive)
    return body, tendon, body.rest + 1e-3 * np.random.default_rng(5).standard_normal(body.rest.shape)


def length_twin(body: CorotationalBody, q: np.ndarray) -> float:
    """Length of the way through the points, each carried by its tetrahedron."""
    total, last = 0.0, None
    for point in BENT:
        for corners in body.tets:
            weights = np.linalg.solve(np.vstack([body.rest[corners].T, np.ones(4)]), [*point, 1.0])
            if weights.min() > -1e-9:
                break
        now = weights @ q[corners]
        total += 0.0 if last is None else float(np.linalg.norm(now - last))
        last = now
    return total


def test_length_and_force_are_those_of_the_way() -> None:
    body, tendon, q = bent_tendon(force=lambda t: 3.0)
    assert tendon.length == pytest.approx(np.linalg.norm(np.diff(BENT, axis=0), axis=1).sum(), rel=1e-12)
    tendon.prepare([q.ravel()], 0.0)
    assert tendon.length == pytest.approx(length_twin(body, q), rel=1e-12)
    h, x = 1e-7, q.copy()
    for number, row in enumerate(tendon.rows[0][1]):
        x.ravel()[row] = q.ravel()[row] + h
        high = length_twin(body, x)
        x.ravel()[row] = q.ravel()[row] - h
        assert (high - length_twin(body, x)) / (2 * h) == pytest.approx(tendon.gradient[number], abs=1e-7)
        x.ravel()[row] = q.ravel()[row]
    forces = tendon.gradient.reshape(-1, 3)
    np.testing.assert_allclose(forces.sum(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(np.cross(q[tendon.nodes], forces).sum(axis=0), 0.0, atol=1e-16)


@pytest.mark.parametrize("drive", [{"force": lambda t: 2.0 + t}, {"pull": lambda t: 0.01, "stiffness": 300.0}])
def test_what_is_added_to_the_system_is_the_derivative_of_the_force(drive: dict[str, Any]) -> None:
    body, tendon, q = bent_tendon(**drive)
    alone, both = System([body]), System([body], [tendon])
    v = np.zeros(body.n_v)
    for system in (alone, both):
        system.assemble(State(q.ravel().copy(), v, 0.5), STEP, v)
    rows = tendon.rows[0][1]

    def force(x: np.ndarray) -> np.ndarray:
        tendon.prepare([x.ravel()], 0.515)
        tension = 2.515 if "force" in drive else 300.0 * (tendon.length - tendon._rest_length + 0.01)
        return -tension * tendon.gradient

    np.testing.assert_allclose((both.b - alone.b)[rows], force(q), atol=1e-12)
    derivative, h = np.empty((len(rows), len(rows))), 1e-6
    for number, row in enumerate(rows):
        high, low = q.copy(), q.copy()
        high.ravel()[row] += h
        low.ravel()[row] -= h
        derivative[:, number] = (force(high) - force(low)) / (2 * h)
    added = (both.A - alone.A).toarray()[np.ix_(rows, rows)] / 0.015
    np.testing.assert_allclose(added, -derivative, atol=1e-6 * np.abs(derivative).max())
    values = np.linalg.eigvalsh(added)
    assert values.min() > -1e-12 * values.max()


def bar_scene(*, dt: float = 0.5, steps: int = 40) -> fs.Scene:
    """A free bar in large time steps, which take it to rest."""
    scene = fs.Scene("bar", dt=dt, duration=dt * steps, gravity=(0, 0, 0), nonlinear_tolerance=None, theta=1.0)
    scene.add_soft("bar", bar(), CORK)
    return scene


def edges(body: CorotationalBody) -> list[tuple[np.ndarray, float]]:
    """Four ways along the edges of the bar and the part of the end's area that each end node has; same on both ends."""
    found = []
    for y in (-1, 1):
        for z in (-1, 1):
            ends = 0.5 * np.array([[-LENGTH, y * SIDE, z * SIDE], [LENGTH, y * SIDE, z * SIDE]])
            # Kuhn's division cuts the end from (-, -) to (+, +)
            found.append((np.linspace(*ends, 4), 1 / 3 if y == z else 1 / 6))
    return found


def shortened(run: fs.Run) -> float:
    """Length of the bar over that at rest, where each cross section is as at rest."""
    x = run.stepper.state.q.reshape(-1, 3)
    body = run.stepper.scene.body("bar")
    assert isinstance(body, CorotationalBody)
    s = float(np.ptp(x[:, 0]) / LENGTH)
    np.testing.assert_allclose(x - x.mean(axis=0), body.rest * [s, 1, 1], atol=1e-8)
    return s


def test_tendons_along_its_edges_shorten_a_bar_as_hooke_says() -> None:
    """Uniform stress, co-rotational: E A (1 - s) is the force of all tendons; at 30 % of strain."""
    scene, total = bar_scene(), 0.3 * E * SIDE**2
    body = scene.body("bar")
    assert isinstance(body, CorotationalBody)
    for k, (way, part) in enumerate(edges(body)):
        scene.sensor(f"t{k}", scene.add_tendon("bar", way, lambda t, part=part: part * total), kind="tendon")
    run = fs.simulate(scene)
    assert run.status == "converged" and shortened(run) == pytest.approx(0.7, abs=1e-7)
    assert run.tendons["t0"].force == pytest.approx(np.full(40, total / 3))
    assert run.tendons["t0"].length[-1] == pytest.approx(0.7 * LENGTH, abs=1e-8)


def test_tendons_pulled_by_length_share_the_strain_with_the_bar() -> None:
    """k_i (s L - L + pull) = E A (1 - s) part_i, with stiffness in the same parts."""
    scene, pull, stiffness = bar_scene(), 0.012, 400.0
    body = scene.body("bar")
    assert isinstance(body, CorotationalBody)
    for k, (way, part) in enumerate(edges(body)):
        tendon = scene.add_tendon("bar", way, pull=fs.Profile([0.0, 5.0], [0.0, pull]), stiffness=part * stiffness)
        scene.sensor(f"t{k}", tendon, kind="tendon")
    run = fs.simulate(scene)
    s = (E * SIDE**2 + stiffness * (LENGTH - pull)) / (E * SIDE**2 + stiffness * LENGTH)
    assert run.status == "converged" and shortened(run) == pytest.approx(s, abs=1e-7)
    assert run.tendons["t1"].force[-1] == pytest.approx(E * SIDE**2 * (1 - s) / 6, rel=1e-6)


def test_a_slack_tendon_does_nothing() -> None:
    scene = bar_scene(steps=5)
    scene.sensor("t", scene.add_tendon("bar", [0, 6], pull=lambda t: -0.001), kind="tendon")
    run = fs.simulate(scene)
    assert not run.tendons["t"].force.any()
    body = scene.body("bar")
    assert isinstance(body, CorotationalBody)
    np.testing.assert_allclose(run.stepper.state.q.reshape(-1, 3), body.rest, atol=1e-12)


@pytest.mark.parametrize("dt", [0.01, 0.002])
def test_a_cable_that_becomes_slack_and_taut_gives_back_what_it_took(dt: float) -> None:
    """A free bar, pressed short, swings against a cable that is slack then: the energy of both stays, from step to step.

    By the elongation in the middle of steps the bar had 1.4 to 1.6 times its energy in 0.4 s, and was called good.
    """
    scene = fs.Scene("swing", dt=dt, duration=0.3, gravity=(0, 0, 0), strain_damping=0.0, nonlinear_tolerance=1e-8)
    short = fs.box_tets((0.1, 0.02, 0.02), (8, 1, 1))
    body = scene.add_soft("bar", short, fs.Elastic(2e4, 0.3, 1000.0), start_points=lambda x: x * np.array([0.9, 1, 1]))
    tendon = scene.add_tendon(body, [(0.036, 0, 0), (0, 0, 0), (-0.036, 0, 0)], pull=lambda t: -0.008)
    scene.sensor("cable", tendon, kind="tendon")
    bar = scene.body("bar")
    at_first = bar.elastic_energy(bar.initial_q())
    run = fs.simulate(scene)
    long = run.tendons["cable"].length - 0.08
    own = run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"]
    assert run.status == "converged" and long.min() < -1e-3 and long.max() > 1e-5  # both happened
    np.testing.assert_allclose(own + 0.5e4 * np.maximum(long, 0.0) ** 2, at_first, rtol=1e-5)
    np.testing.assert_allclose(run.steps["work_J"], own - at_first, atol=1e-5 * at_first)


def test_the_work_of_stiff_cables_is_what_the_bar_stores() -> None:
    """Pulled slowly by steel: E A (1 - s) is the force of all cables, half of it times the way their work, in steps of 10 ms too.

    By the free length in the middle of steps cables were taut and slack in turn and took 200 times the work, those of 10 N/mm 7
    times, in a run that was good.
    """
    scene, pull = fs.Scene("bar", dt=0.01, duration=0.4, gravity=(0, 0, 0)), 0.006
    scene.add_soft("bar", bar(), CORK)
    body = scene.body("bar")
    assert isinstance(body, CorotationalBody)
    for k, (way, part) in enumerate(edges(body)):
        tendon = scene.add_tendon("bar", way, pull=fs.Profile([0.0, 0.2], [0.0, pull]), stiffness=part * 1e6)
        scene.sensor(f"t{k}", tendon, kind="tendon")
    run = fs.simulate(scene)
    cable = run.tendons["t0"]
    assert run.verdict == "good"
    assert cable.force[-1] == pytest.approx(E * SIDE**2 * pull / LENGTH / 3, rel=0.01)
    assert run.steps["work_J"][-1] == pytest.approx(0.5 * E * SIDE**2 * pull**2 / LENGTH, rel=0.01)
    longer = cable.length[-10:] - (LENGTH - pull)
    np.testing.assert_allclose(1e6 / 3 * longer, cable.force[-10:], rtol=0.02)


@pytest.mark.parametrize("damping", [0.0, 0.5])
@pytest.mark.parametrize(
    ("first", "last"), [(0.01, 0.02), (-0.01, 0.02), (0.03, -0.01), (-0.01, -0.02), (0.0, 0.01), (0.01, 0.01)]
)
def test_the_tension_of_a_step_is_the_change_of_energy_over_that_of_length(first: float, last: float, damping: float) -> None:
    """Damped in full it is that of the end where the cable is taut all the way, and never gives more than the cable had."""

    def energy(longer: float) -> float:
        return 150.0 * max(longer, 0.0) ** 2

    tension, slope = elastic_tension(300.0, first, last, damping)
    taken = tension * (last - first) - (energy(last) - energy(first))
    assert taken == pytest.approx(0.0, abs=1e-15) if not damping else taken >= -1e-15 and tension >= 0.0
    if damping and min(first, last) >= 0.0:
        assert tension == pytest.approx(300.0 * last)
    assert tension == pytest.approx(300.0 * first) if first == last else True
    h = 1e-7
    rise = (elastic_tension(300.0, first, last + h, damping)[0] - elastic_tension(300.0, first, last - h, damping)[0]) / (2 * h)
    assert slope == pytest.approx(2.0 * rise, abs=1e-4)


def test_a_held_finger_bends_and_its_mount_feels_nothing_of_the_tendon() -> None:
    """The motor sits on the held end: at rest the mount feels neither force nor torque; work is force times way."""
    scene = fs.Scene("finger", dt=0.02, duration=3.0, gravity=(0, 0, 0), theta=1.0)
    finger = scene.add_soft("finger", fs.box_tets((LENGTH, SIDE, SIDE), (12, 2, 2)), RUBBER.replace(rayleigh_beta=0.02))
    hold = scene.hold(finger, lambda x: x[:, 0] < -0.0299, fs.Motion([0.0], [(0, 0, 0)]))
    way = np.linspace((-0.03, 0, 0.003), (0.03, 0, 0.003), 7)
    pull = scene.add_tendon(finger, way, fs.Profile([0.0, 0.5], [0.0, 0.3]))
    scene.sensor("mount", hold, kind="mount")
    scene.sensor("pull", pull, kind="tendon")
    body = scene.body("finger")
    assert isinstance(body, CorotationalBody)
    tip = int(np.argmax(body.rest @ [1, 0, 0.01]))
    scene.sensor("tip", finger, kind="marker", node=tip)
    run = fs.simulate(scene)
    assert run.status == "converged"
    np.testing.assert_allclose(run.sensors["mount"].force[-1], 0.0, atol=1e-6)
    np.testing.assert_allclose(run.sensors["mount"].torque[-1], 0.0, atol=1e-8)
    position = run.markers["tip"].position
    assert position[-1, 2] - position[0, 2] > 0.008  # towards the tendon
    pulled, steps = run.tendons["pull"], run.steps
    way_in = -np.diff(np.concatenate([[LENGTH], pulled.length]))
    np.testing.assert_allclose(steps["work_J"][-1], (pulled.force * way_in).sum(), rtol=3e-2)
    lost = steps["work_J"] - steps["kinetic_energy_J"] - steps["elastic_energy_J"]
    assert np.diff(lost).min() > -1e-9 and steps["elastic_energy_J"][-1] > 1e-4


def add(*arguments: Any, **options: Any) -> Callable[[fs.Scene], Any]:
    return lambda scene: scene.add_tendon("bar", *arguments, **options)


def one(t: float) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (add([0, 6]), "exactly one of force and pull"),
        (add([0, 6], one, pull=one), "exactly one of force and pull"),
        (add([0, 6], 2.0), "force is 2.0, but must be a function"),
        (add([0, 99], one), "nodes 0 to 99; allowed are 0 to 27"),
        (add([0], one), "at least two"),
        (add([[0, 0, 0], [0, 0]], one), "points are no array"),
        (add([(0, 0, 0), (np.nan, 0, 0)], one), "finite"),
        (add([(0, 0, 0), (0, 0, 0.01)], one), r"point 1, \[.*\] m, lies outside the body, 7.071 mm from its node"),
        (add([(0, 0, 0), (0, 0, 0), (0.01, 0, 0)], one), "points 0 and 1 are in one place"),
        (add([0, 6], pull=one, stiffness=-1.0), "stiffness of bar.tendon1"),
        (lambda s: s.add_tendon("ball", [0, 6], one), "'ball' is no soft body"),
        (lambda s: s.sensor("t", "bar", kind="tendon"), "nothing of kind 'tendon' is on 'bar'; there is none"),
        (lambda s: s.sensor("t", add([0, 6], one)(s), kind="chamber"), "no kind 'chamber'; use 'tendon'"),
        (lambda s: s.add_tendon("bar", BENT, lambda t: 1.0, stiffness=5.0), "stiffness is that of a cable that is pulled; leave"),
    ],
)
def test_what_is_no_tendon_is_refused(call: Callable[[fs.Scene], Any], message: str) -> None:
    scene = bar_scene()
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1)
    with pytest.raises(fs.InputError, match=message):
        call(scene)


def test_a_tendon_that_pushes_is_refused() -> None:
    scene = bar_scene()
    scene.add_tendon("bar", [0, 6], lambda t: -1.0, name="t")
    with pytest.raises(fs.InputError, match=r"t: force is -1 N at 0.5 s"):
        fs.simulate(scene)


def test_the_work_of_a_tendon_is_that_of_its_change_of_length_where_it_turns() -> None:
    scene = fs.Scene("turning", dt=0.01, duration=0.2, gravity=(0, 0, 0), theta=1.0)
    scene.add_soft("bar", bar(), RUBBER, angular_velocity=(0, 0, 5.0))
    way = [(-0.5 * LENGTH, 0.0, 0.0), (0.5 * LENGTH, 0.0, 0.0)]
    scene.sensor("pull", scene.add_tendon("bar", way, fs.Profile([0.0, 0.1], [0.0, 0.1])), kind="tendon")
    run = fs.simulate(scene)
    pull = run.tendons["pull"]
    work = -(pull.force * np.diff(pull.length, prepend=LENGTH)).sum()
    assert run.steps["work_J"][-1] == pytest.approx(work, rel=1e-9)
