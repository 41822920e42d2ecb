"""Rods in scenes: contact at the centre and on the surface, sensors, balances, outputs, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import femsim as fs
from contact import contact_velocity, make_problem, metrics_kernels as kernels
from contact.metrics import balance
from contact.solvers import make_solver
from femsim.step.point_contacts import PointFamily
from femsim.step.stepper import Stepper

RUBBER = fs.Elastic(2e6, 0.4, 1200.0, name="rubber")
ROUND = fs.circular_section(0.003)
NO_GRAVITY = (0.0, 0.0, 0.0)


def line(n: int, start: tuple[float, ...], end: tuple[float, ...]) -> np.ndarray:
    return np.linspace(start, end, n + 1)


def floor_scene(contact: str, mu: float, load: Callable[[float], np.ndarray], **options: float) -> tuple[fs.Scene, float]:
    """A rod of ten links along y that lies on a floor under a load spread by mass; the scene and the weight of the rod."""
    scene = fs.Scene("floor", **({"dt": 0.01, "duration": 0.3, "theta": 1.0} | options))
    scene.add_floor()
    rod = scene.add_rod("rod", line(10, (0, 0, 0.003), (0, 0.1, 0.003)), ROUND, RUBBER, load=load, contact=contact)
    scene.set_friction(rod, "floor", mu)
    scene.sensor("rod", rod)
    scene.sensor("floor", "floor")
    return scene, 9.81 * scene.bodies[0].mass


# ---------------------------------------------------------------------- contact


@pytest.mark.parametrize("along", [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8)])
def test_stick_and_slip_on_a_floor(along: tuple[float, float]) -> None:
    """Coulomb: a push of 0.99 mu m g moves nothing, one of 1.01 mu m g accelerates the rod by 0.01 mu g."""
    mu, direction = 0.4, np.array([*along, 0.0])
    for part in (0.99, 1.01):
        scene, weight = floor_scene("centre", mu, lambda t: direction * push)  # noqa: B023
        push = part * mu * weight
        run = fs.simulate(scene)
        assert run.status == "converged"
        body, state = scene.bodies[0], run.stepper.state
        speed = body.momentum(state.q, state.v) / body.mass
        if part < 1:
            assert np.abs(state.v.reshape(-1, 6)[:, :3]).max() < 1e-7
        else:
            assert speed == pytest.approx(0.01 * mu * 9.81 * 0.3 * direction, abs=1e-6 * mu)
        assert run.sensors["floor"].force[-1] == pytest.approx([*min(part, 1) * mu * weight * direction[:2], -weight], abs=1e-6)
        assert run.steps["max_penetration_m"].max() < 1e-12


def test_a_rod_pushed_across_rolls_on_its_surface() -> None:
    """Rolling without slip of a cylinder that is pushed at its centre: acceleration F / (m + I / r^2) = 2 F / (3 m)."""
    for contact, expected in (("surface", 2.0 / 3.0), ("centre", 0.0)):
        scene, weight = floor_scene(contact, 0.4, lambda t: np.array([0.2 * weight, 0.0, 0.0]))  # noqa: B023
        run = fs.simulate(scene)
        body, state = scene.bodies[0], run.stepper.state
        speed = body.momentum(state.q, state.v)[0] / body.mass
        assert speed == pytest.approx(expected * 0.2 * 9.81 * 0.3, rel=1e-6, abs=1e-7)
        if contact == "surface":
            spin = state.v.reshape(-1, 6)[:, 3:]
            assert spin == pytest.approx(np.tile([0.0, speed / 0.003, 0.0], (10, 1)), rel=1e-5, abs=1e-5)
            # friction that rolls the rod: F / 3
            assert run.sensors["floor"].force[-1][0] == pytest.approx(0.2 * weight / 3.0, rel=1e-4)
            # about the centre of the rod, 3 mm above the floor
            assert run.sensors["rod"].torque[-1] == pytest.approx([0, 0.003 * 0.2 * weight / 3.0, 0], rel=1e-3, abs=1e-7)


@pytest.mark.parametrize("contact", ["centre", "surface"])
def test_rows_are_the_derivative_of_the_gap_and_do_the_work_of_the_forces(contact: str) -> None:
    """J v of random velocities is the velocity of the point of contact, from poses moved by a small time; J^T lam its force."""
    rng = np.random.default_rng(4)
    scene = fs.Scene("rows", gravity=NO_GRAVITY, margin=0.01, theta=1.0)
    scene.add_obstacle("ball", fs.Sphere(0.05), position=(0.02, 0.04, -0.052))
    scene.add_rigid("box", fs.Box((0.2, 0.02, 0.01)), mass=1.0, position=(0.0, 0.08, 0.014))
    scene.add_rod("rod", line(8, (0, 0, 0), (0.01, 0.1, 0.0)), ROUND, RUBBER, contact=contact)
    scene.contact_by_faces("box", on=False)
    stepper = Stepper(scene, make_solver("auto"))
    system, state, model = stepper.system, stepper.state, stepper.contacts
    rod = scene.bodies[1]
    q = state.q[system.q_slices[1]].reshape(-1, 7)
    q[:, 3:] = Rotation.from_rotvec(0.3 * rng.standard_normal((8, 3))).as_quat()[:, [3, 0, 1, 2]]
    stepper.system.assemble(state, stepper.settings, np.zeros(system.n))
    (found,) = model.detect(state, model.places.read(state), [0.01])
    points = model.families[0]
    assert isinstance(points, PointFamily)
    contacts = found.contacts.select(points.point_part[found.contacts.point] == 2)  # not the ball and the box
    rows = model.rows([replace(found, contacts=contacts)], np.zeros(system.n), 0.01)
    problem = rows.problem(system, 0.01)
    assert {int(s) for s in contacts.shape} == {0, 1} and problem.n_contacts == len(contacts.gap) > 5
    v = rng.standard_normal(system.n)
    u = contact_velocity(problem, v) - problem.phi
    box_v, rod_v = v[system.v_slices[0]], v[system.v_slices[1]].reshape(-1, 6)
    for m in range(problem.n_contacts):
        link, where = int(contacts.point[m]) - int(np.flatnonzero(points.point_part == 2)[0]), contacts.position[m]
        velocity = rod_v[link, :3].copy()
        if contact == "surface":
            velocity += np.cross(rod_v[link, 3:], where - rod.centres(q)[link])
        if contacts.shape[m] == 1:
            velocity -= box_v[:3] + np.cross(box_v[3:], where - state.q[:3])
        assert u[m] == pytest.approx(contacts.frame[m] @ velocity, abs=1e-12)
    lam = np.abs(rng.standard_normal((problem.n_contacts, 3)))
    forces, _ = model.accept(rows, lam, u)
    assert forces.generalized == pytest.approx(problem.J.T @ lam.ravel(), abs=1e-12)
    assert forces.wrench[:, :3].sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
    assert forces.contacts.force.sum(axis=0) == pytest.approx(forces.wrench[2, :3], abs=1e-12)
    acted, arm = forces.generalized[system.v_slices[1]].reshape(-1, 6), rod.centres(q) - forces.contacts.reference[2]
    assert forces.wrench[2, 3:] == pytest.approx((np.cross(arm, acted[:, :3]) + acted[:, 3:]).sum(axis=0), abs=1e-12)


def test_a_fast_rod_does_not_jump_through_a_thin_floor() -> None:
    """30 mm a step onto a box of 10 mm: the margin grows with the speed of the links."""
    scene = fs.Scene("fast", dt=0.01, duration=0.1, gravity=NO_GRAVITY, theta=1.0)
    scene.add_obstacle("plate", fs.Box((0.1, 0.1, 0.005)), position=(0.0, 0.0, -0.005))
    scene.add_rod("rod", line(10, (0, -0.05, 0.05), (0, 0.05, 0.05)), ROUND, RUBBER, velocity=(0.0, 0.0, -3.0))
    run = fs.simulate(scene)
    state = run.stepper.state
    assert run.status == "converged" and run.steps["max_penetration_m"].max() < 1e-9
    assert scene.bodies[0].centres(state.q)[:, 2].min() > 0.003 - 1e-9


def test_momentum_passes_between_a_rod_and_a_free_box() -> None:
    """Without gravity the momentum of a rod that hits a box is that of both, step by step, and the balance closes."""
    scene = fs.Scene("hit", dt=0.005, duration=0.3, gravity=NO_GRAVITY, theta=1.0)
    scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.02, position=(0.0, 0.05, -0.03))
    rod = scene.add_rod("rod", line(12, (0, 0, 0), (0, 0.1, 0)), ROUND, RUBBER, velocity=(0.1, 0.0, -0.3))
    scene.sensor("rod", rod)
    scene.sensor("box", "box")
    run = fs.simulate(scene)
    assert run.status == "converged"
    momentum = np.column_stack([run.steps[f"momentum_{c}_kgmps"] for c in "xyz"])
    start = scene.bodies[1].mass * np.array([0.1, 0.0, -0.3])
    assert momentum == pytest.approx(np.tile(start, (60, 1)), abs=1e-9)
    assert np.abs(run.sensors["box"].force).max() > 0.01
    assert run.sensors["rod"].force == pytest.approx(-run.sensors["box"].force, abs=1e-15)
    assert run.steps["wrench_balance"].max() < 1e-6
    energy = run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"]
    assert np.diff(energy).max() < 1e-12 and energy[-1] < 0.99 * energy[0]


def test_a_led_rod_over_a_floor_balances_and_never_gains_energy() -> None:
    scene = fs.Scene("driven", dt=0.01, duration=0.6, theta=1.0)
    scene.add_floor()
    rod = scene.add_rod(
        "rod", line(20, (0, 0, 0.004), (0.2, 0, 0.004)), ROUND, RUBBER, translational_damping=0.5,
        start=fs.RodEnd("clamped", motion=fs.Motion([0, 0.5], [(0, 0, 0), (0, 0.05, 0.05)], [(0, 0, 0), (0, -0.5, 1)])),
    )  # fmt: skip
    scene.sensor("hand", rod, kind="start")
    run = fs.simulate(scene)
    assert run.status == "converged" and run.steps["contacts"].max() > 3
    assert run.steps["wrench_balance"].max() < 1e-6
    gained = run.steps["kinetic_energy_J"] + run.steps["elastic_energy_J"] - run.steps["work_J"]
    assert np.diff(gained).max() < 1e-9 and run.steps["work_J"][-1] > 1e-4


def test_solvers_agree_on_a_rod() -> None:
    """COND and the exact solver, through the same interface, on a stiffly damped short rod that presses on a floor."""
    forces = []
    for solver in ("auto", "exact", "cond", "pgs"):
        scene, weight = floor_scene("centre", 0.3, lambda t: np.array([0.01, 0.0, 0.0]), dt=1e-4, duration=1e-3)
        run = fs.simulate(scene, solver, tolerance=1e-6, max_iterations=200_000)
        assert run.status == "converged", solver
        forces.append(run.sensors["floor"].force[-1])
        assert forces[-1] == pytest.approx(forces[0], abs=1e-4 * weight), solver


# ---------------------------------------------------------------------- sensors


def test_a_hanging_rod_pulls_its_hand_by_its_weight() -> None:
    """Rod on tool: downwards by the weight; clamped level and stiff also by its moment, from the rod's side."""
    scene = fs.Scene("hang", dt=0.01, duration=2.0, theta=1.0)
    options = {"translational_damping": 2.0}
    down = scene.add_rod("down", line(10, (0, 0, 1), (0, 0, 0.9)), ROUND, RUBBER, start=fs.RodEnd("hinged"), **options)
    scene.sensor("top", down, kind="start")
    scene.sensor("tip", down, kind="marker", node=9)
    run = fs.simulate(scene)
    weight = 9.81 * scene.bodies[0].mass
    assert run.sensors["top"].force[-1] == pytest.approx([0.0, 0.0, -weight], abs=1e-6 * weight)
    assert run.sensors["top"].torque[-1] == pytest.approx(np.zeros(3), abs=1e-9)
    assert run.markers["tip"].position[-1] == pytest.approx([0.0, 0.0, 0.905], abs=1e-4)

    steel = fs.Elastic(2e11, 0.3, 7800.0, name="steel")
    level = fs.Scene("level", dt=0.01, duration=2.0, theta=1.0)
    rod = level.add_rod("rod", line(10, (0, 0, 0), (0, 0.1, 0)), ROUND, steel, end=fs.RodEnd("clamped"), **options)
    level.sensor("hand", rod, kind="end")
    run = fs.simulate(level)
    weight = 9.81 * level.bodies[0].mass
    assert run.sensors["hand"].force[-1] == pytest.approx([0.0, 0.0, -weight], abs=1e-6 * weight)
    # the weight acts at y = -0.05 from the hand: (0, -0.05, 0) x (0, 0, -w)
    assert run.sensors["hand"].torque[-1] == pytest.approx([0.05 * weight, 0.0, 0.0], abs=1e-5 * weight)


# ---------------------------------------------------------------------- outputs


def test_frames_and_description(tmp_path: Path) -> None:
    scene, weight = floor_scene("centre", 0.4, lambda t: np.zeros(3), duration=0.05)
    fs.simulate(scene, out=tmp_path / "run")
    frames = fs.read_pvd(tmp_path / "run" / "frames.pvd")
    assert len(frames) == 6
    rod = fs.read_part(frames[-1][1]["rod"])
    assert rod.n_points == 11 and rod.n_cells == 1 and list(rod.lines) == [11, *range(11)]
    assert rod.points == pytest.approx(line(10, (0, 0, 0.003), (0, 0.1, 0.003)), abs=1e-6)
    forces = {"contact_force", "tension", "bending_moment", "twisting_moment"}
    assert set(rod.point_data) == {"radius", "velocity", "displacement"} | forces
    assert rod.point_data["radius"] == pytest.approx(0.003)
    assert rod.point_data["contact_force"].sum(axis=0) == pytest.approx([0, 0, weight], rel=1e-5, abs=1e-6)
    fs.simulate(scene, out=tmp_path / "few", fields=("tension",))
    few = fs.read_part(fs.read_pvd(tmp_path / "few" / "frames.pvd")[-1][1]["rod"])
    assert set(few.point_data) == {"radius", "tension"}
    entry = json.loads((tmp_path / "run" / "run.json").read_text())["bodies"]["rod"]
    assert entry["links"] == 10 and entry["length_m"] == pytest.approx(0.1) and entry["ends"] == ["free", "free"]
    assert entry["section"]["contact_radius"] == 0.003 and entry["material"]["name"] == "rubber"
    assert entry["translational_damping_Nspm2"] == 0.0 and "mesh" not in entry


def test_pull_and_moments_in_the_frames(tmp_path: Path) -> None:
    """A rod under a dead pull, moment and torque: the fields at every joint are those of statics."""
    scene = fs.Scene("pull", dt=0.01, duration=1.0, gravity=NO_GRAVITY, theta=1.0)
    stiff = fs.Elastic(2e9, 0.4, 1200.0, name="stiff")
    scene.add_rod(
        "rod", line(6, (0, 0, 0), (0.06, 0, 0)), ROUND, stiff, start=fs.RodEnd("clamped"), translational_damping=5.0,
        end=fs.RodEnd("free", load=lambda t: (np.array([3.0, 0.0, 0.0]), np.array([2e-4, 0.0, 1e-3]))),
    )  # fmt: skip
    fs.simulate(scene, out=tmp_path / "run", fps=1.0)
    rod = fs.read_part(fs.read_pvd(tmp_path / "run" / "frames.pvd")[-1][1]["rod"])
    inner = slice(0, 6)  # the last joint is the free end
    assert rod.point_data["tension"][inner] == pytest.approx(3.0, rel=1e-4)
    assert rod.point_data["twisting_moment"][inner] == pytest.approx(2e-4, rel=1e-2)
    assert rod.point_data["bending_moment"][5] == pytest.approx(1e-3, rel=0.02)  # less the pull times what the tip bends


@pytest.mark.skipif(not fs.probe_rendering().ok, reason="no OpenGL on this machine")
def test_rods_are_drawn_as_tubes(tmp_path: Path) -> None:
    import imageio.v3

    scene, _ = floor_scene("centre", 0.4, lambda t: np.zeros(3), duration=0.02)
    fs.simulate(scene, out=tmp_path / "run")
    drawn = {}
    for field in ("von_mises", "velocity"):
        result = fs.render_run(
            tmp_path / "run", out=tmp_path / field, stills=1, mp4=False, size=(320, 240), arrows=False, field=field
        )
        drawn[field] = imageio.v3.imread(result.frames[0]).astype(int)
    picture = drawn["von_mises"]
    orange = (picture[..., 0] - picture[..., 2]) > 60  # the colour of rods, which no floor has
    # the camera fits the line of 0.1 m into most of the picture; the tube is 6 mm thick
    assert 0.05 < orange.mean() < 0.3
    assert np.abs(drawn["velocity"] - picture).max() > 60  # coloured by a field, with a bar
    with pytest.raises(fs.VizError, match="no soft body or rod of the run has a field 'tensoin'; did you mean 'tension'"):
        fs.render_run(tmp_path / "run", out=tmp_path / "x", stills=1, mp4=False, field="tensoin")


# ---------------------------------------------------------------------- the balance of links


def test_balance_of_links_leaves_torques_out() -> None:
    rng = np.random.default_rng(3)
    A, J = 4.0 * np.eye(12), np.zeros((3, 12))
    J[:, :3] = np.eye(3)
    b, v, lam = rng.standard_normal(12), rng.standard_normal(12), np.array([[1.0, 0.2, 0.1]])
    problem = make_problem(A, b, J, np.zeros(1), 0.5, dt=0.01, groups=[fs.Group("rod", 0, 12, "links")])
    r = (4.0 * v - b - J.T @ lam[0]).reshape(2, 6)[:, :3].sum(axis=0)
    force, weight = lam[0], b.reshape(2, 6)[:, :3].sum(axis=0)
    scale = max(np.linalg.norm(force), np.linalg.norm(weight))
    assert balance(problem, v, lam) == pytest.approx(np.linalg.norm(r) / scale, rel=1e-12)
    turned = b.copy()
    turned[[3, 4, 5, 9, 10, 11]] += 7.0
    other = make_problem(A, turned, J, np.zeros(1), 0.5, dt=0.01, groups=problem.groups)
    assert balance(other, v, lam) == pytest.approx(balance(problem, v, lam), rel=1e-12)
    with pytest.raises(fs.ContactError, match="'rod' has 9 rows; a group of links has 6 rows a link"):
        make_problem(np.eye(9), np.zeros(9), np.zeros((0, 9)), np.zeros(0), 0.5, dt=0.01, groups=[fs.Group("rod", 0, 9, "links")])


def test_cond_counts_the_balance_of_links_as_the_yardstick_does() -> None:
    rng = np.random.default_rng(5)
    b, Av, force = rng.standard_normal((3, 24))
    start, stop, stride = np.array([0, 18]), np.array([18, 24]), np.array([6, 3])
    for g in range(2):
        own = slice(start[g], stop[g])
        others = np.ones(24, dtype=bool)
        others[own] = False
        total, net = (
            np.linalg.norm(x[own].reshape(-1, stride[g])[:, :3].sum(axis=0)) for x in (Av - b - force, force)
        )  # fmt: skip
        scale = max(net, 0.3)
        found = kernels.worst_balance(
            start, stop, stride, np.full(2, 0.3), np.ones(24), b, np.where(others, b + force, Av), force, 1.0
        )
        assert found == pytest.approx(total / scale, rel=1e-12)
    scales = np.empty(2)
    kernels.holding_forces(start, stop, stride, b, Av, scales)
    for g in range(2):
        held = (b - Av)[start[g] : stop[g]].reshape(-1, stride[g])[:, :3].sum(axis=0)
        assert scales[g] == pytest.approx(np.linalg.norm(held), rel=1e-12)


def test_links_survive_a_file(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    scene, _ = floor_scene("surface", 0.4, lambda t: np.zeros(3), duration=0.02)
    run = fs.simulate(scene, out=tmp_path / "run", dump_problems=(2, 2))
    problem = fs.read_fclib(tmp_path / "run" / run.info["problems"][0]).problem
    assert problem.groups == (fs.Group("rod", 0, 60, "links"),)


# ---------------------------------------------------------------------- what is refused


def refuse(call: Callable[[fs.Scene], object], match: str) -> None:
    scene = fs.Scene("bad", theta=1.0)
    scene.add_floor()
    scene.add_rod("hung", line(4, (0, 0, 1), (0, 0, 0.9)), ROUND, RUBBER, start=fs.RodEnd("clamped"))
    before = len(scene.bodies), len(scene.parts), len(scene.sensors)
    with pytest.raises(fs.InputError, match=match):
        call(scene)
    assert (len(scene.bodies), len(scene.parts), len(scene.sensors)) == before


@pytest.mark.parametrize(
    ("points", "options", "match"),
    [
        (np.zeros((1, 3)), {}, "rod cable: points has 1 rows"),
        (np.zeros(3), {}, "rod cable: points has shape"),
        ([(0, 0, 0), (0, 0, 0), (0, 0, 1)], {}, "rod cable: link 0 has length 0 m"),
        ([(0, 0, 0), (np.nan, 0, 0), (0, 0, 1)], {}, r"rod cable: points\[1, 0\] is nan"),
        ([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0.5, 1, 0), (0.5, 0.2, 0), (0.5, -0.6, 0)], {}, "rod cable: .*crosses itself"),
        (line(3, (0, 0, 0), (1, 0, 0)), {"contact": "edge"}, "contact of cable is 'edge'.*'centre' and 'surface'"),
        (line(3, (0, 0, 0), (1, 0, 0)), {"translational_damping": -1.0}, "rod cable: translational_damping is -1"),
        (line(3, (0, 0, 0), (1, 0, 0)), {"normal": (1, 0)}, "normal of cable"),
        (line(3, (0, 0, 0), (1, 0, 0)), {"velocity": (1, 0, np.nan)}, "velocity of cable"),
        (line(3, (0, 0, 0), (1, 0, 0)), {"angular_velocity": 3.0}, "angular_velocity of cable"),
        (line(3, (0, 0, 0), (1, 0, 0)), {"end": fs.RodEnd("hinged", motion=3.0)}, "end of cable: motion is 3.0"),
        (
            line(3, (0, 0, 0), (1, 0, 0)),
            {"start": fs.RodEnd(load=(1, 2))},
            r"start of cable: load is \(1, 2\), .* returns \(force, torque\)",
        ),
    ],
)
def test_bad_rods_are_refused(points: np.ndarray, options: dict[str, object], match: str) -> None:
    refuse(lambda scene: scene.add_rod("cable", points, ROUND, RUBBER, **options), match)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda scene: scene.sensor("s", "hung", kind="end"), "kind 'end' needs a rod that is held at its end, not 'hung'"),
        (
            lambda scene: scene.sensor("s", "floor", kind="start"),
            "kind 'start' needs a rod .* not 'floor'",
        ),
        (lambda scene: scene.sensor("s", "hung", kind="mount"), "'mount' needs"),
        (lambda scene: scene.sensor("s", "hung", kind="marker", node=4), "node 4 of 'hung'; allowed are 0 to 3"),
        (lambda scene: scene.sensor("s", "hung", kind="marker", node=1.5), "node 1.5 of 'hung'; allowed are 0 to 3"),
        (lambda scene: scene.sensor("s", "hung", kind="marker"), "where on 'hung'[?] Give node=, 0 to"),
        (lambda scene: scene.drive("hung", fs.Motion([0.0], [(0, 0, 0)])), "'hung' is a rod; hold an end of it by fs.RodEnd"),
        (lambda scene: scene.set_friction("floor", "hung", (0.1, 0.2), direction=(1, 0, 0)), r"\['floor'\], not 'hung'"),
    ],
)
def test_what_does_not_fit_a_rod_is_refused(call: Callable[[fs.Scene], object], match: str) -> None:
    refuse(call, match)


def test_loads_of_a_wrong_shape_are_refused() -> None:
    for ends, load, match in (
        ({}, lambda t: np.zeros(4), r"load of rod gave shape \(4,\) at 0.01 s; allowed are \(3,\) and \(5, 6\)"),
        ({"end": fs.RodEnd(load=lambda t: np.zeros(3))}, None, r"load of end of rod gave shape \(3,\)"),
    ):
        scene = fs.Scene("bad", theta=1.0)
        scene.add_rod("rod", line(5, (0, 0, 0), (1, 0, 0)), ROUND, RUBBER, load=load, **ends)
        with pytest.raises(fs.InputError, match=match):
            fs.simulate(scene, duration=0.01)


def test_a_motion_of_an_end_that_is_not_finite_is_named() -> None:
    scene = fs.Scene("bad", theta=1.0)
    lost = fs.RodEnd("clamped", motion=lambda t: (np.full(3, np.nan if t > 0.01 else 0.0), np.zeros(3)))
    scene.add_rod("rod", line(5, (0, 0, 0), (1, 0, 0)), ROUND, RUBBER, end=lost)
    with pytest.raises(fs.InputError, match=r"the motion of the end of rod is not finite at 0\.0\d+ s; correct the function"):
        fs.simulate(scene)


@pytest.mark.parametrize("rails", ["surface", "centre"])
def test_a_rod_rolls_down_two_others_by_its_own_radius(rails: str) -> None:
    """Of those that contact does not turn it feels the surface too: it did roll as if on their centre lines, 0.013 m away."""
    lean, along, across = 0.35, np.linspace(-0.1, 0.1, 11), np.linspace(-0.03, 0.03, 9)
    scene = fs.Scene("rails", dt=0.002, duration=0.1, gravity=(0.0, -9.81 * np.sin(lean), -9.81 * np.cos(lean)))
    stiff = fs.Elastic(1e10, 0.3, 1200.0)
    for name, x in (("left", -0.02), ("right", 0.02)):
        points = np.column_stack([np.full(11, x), along, np.zeros(11)])
        scene.add_rod(name, points, fs.circular_section(0.01), stiff, start="clamped", end="clamped", contact=rails)
    points = np.column_stack([across, np.full(9, 0.08), np.full(9, 0.01301)])
    rod = scene.add_rod("rod", points, fs.circular_section(0.003), fs.Elastic(1e9, 0.3, 1200.0), contact="surface")
    for name in ("left", "right"):
        scene.set_friction(rod, name, 0.4)
    run = fs.simulate(scene)
    assert run.status == "converged" and run.verdict == "good"
    velocity = run.stepper.state.v[run.stepper.system.v_slices[-1]].reshape(-1, 6).mean(axis=0)
    assert -velocity[1] == pytest.approx(0.003 * velocity[3], rel=0.01)
    assert -velocity[1] == pytest.approx(2.0 / 3.0 * 9.81 * np.sin(lean) * 0.1, rel=0.02)


@pytest.mark.parametrize("aside", [0.0, 0.5])
def test_a_thin_thread_of_long_links_swings_by_backward_euler(aside: float) -> None:
    """Its links turn about their own axes a thousand times as easily as across them, and spin must not pass from there to here.

    Gyroscopic forces of the start of a step did that, by -20 a step at 10 ms: 1e9 J after 26 steps.
    """
    scene = fs.Scene("thread", dt=0.01, theta=1.0)
    nylon = fs.Elastic(2e9, 0.4, 1150.0, name="nylon")
    scene.add_rod("thread", line(20, (0, 0, 0), (0.3, 0, 0)), fs.circular_section(1.5e-4), nylon, start="clamped",
                  velocity=(0.0, aside, 0.0))  # fmt: skip
    sim = fs.Simulation(scene)
    sim.step(40)
    points = sim.points("thread")
    assert sim.verdict == "good" and points[-1, 0] < -0.03 and points[-1, 2] < -0.2
    np.testing.assert_allclose(np.linalg.norm(np.diff(points, axis=0), axis=1), 0.015, rtol=0.05)  # of links that meet askew
    assert aside or np.abs(points[:, 1]).max() < 1e-12
