"""The position-based rod: its kernels against plain twins, statics against closed forms, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from slow_rods import ENDS, Joint, frames_and_links, heavy_cantilever, line, shaken, uneven

import femsim as fs
from femsim.base.rotations import quaternion_multiply, quaternion_to_matrix
from femsim.model.bodies.rod import Rod
from femsim.studies.reproduction import xpbd_kernels as kernels
from femsim.studies.reproduction.xpbd import simulate_xpbd

SCENES = Path(__file__).resolve().parents[1] / "scenes"
YOUNG, DENSITY, RADIUS = 2.954e6, 1259.0, 0.002
WEIGHT = 9.81 * DENSITY * math.pi * RADIUS**2  # N/m


# ---------------------------------------------------------------------- kernels against plain twins


def inverse_masses(rod: Rod) -> tuple[np.ndarray, np.ndarray]:
    mass, inertia = np.zeros(rod.n_links + 2), np.zeros((rod.n_links + 2, 3))
    mass[1:-1], inertia[1:-1] = 1.0 / rod.link_mass, 1.0 / rod.link_inertia
    return mass, inertia


def turned(quaternion: np.ndarray, step: np.ndarray) -> np.ndarray:
    new = quaternion + 0.5 * quaternion_multiply(np.array([0.0, *step]), quaternion)
    return new / np.linalg.norm(new)


def plain_projection(rod: Rod, poses: np.ndarray, k: int, h: float, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poses, lam and wrenches J^T d (2, 6) after one projection of joint k, by dense matrices in the axes of the joint."""
    joint = Joint(rod, poses, k)
    rows = 3 if joint.hinged else 6
    J, e, compliance = joint.J[:rows], joint.e[:rows], np.diag(1.0 / np.diag(joint.K)[:rows])
    mass, inertia = inverse_masses(rod)
    inverse = np.zeros((12, 12))
    for side in range(2):
        p, o = k + side, 6 * side
        R = quaternion_to_matrix(poses[p, 3:])
        inverse[o : o + 3, o : o + 3] = mass[p] * np.eye(3)
        inverse[o + 3 : o + 6, o + 3 : o + 6] = R @ np.diag(inertia[p]) @ R.T
    # gap_rows are world rows of the gap, J[:3] the same in the axes of the joint
    middle = np.linalg.lstsq(joint.gap_rows.T, J[:3].T, rcond=None)[0]
    axes = np.kron(np.eye(rows // 3), middle)
    own = axes.T @ lam[k, :rows]
    d = -np.linalg.solve(h * h * J @ inverse @ J.T + compliance, e + compliance @ own)
    wrench = J.T @ d
    move = h * h * inverse @ wrench
    new, new_lam = poses.copy(), lam.copy()
    for side in range(2):
        p, o = k + side, 6 * side
        new[p, :3] += move[o : o + 3]
        new[p, 3:] = turned(poses[p, 3:], move[o + 3 : o + 6])
    new_lam[k, :rows] += axes @ d
    return new, new_lam, wrench.reshape(2, 6)


@pytest.mark.parametrize("amount", [0.0, 1e-4, 0.3])
@pytest.mark.parametrize("ends", ENDS)
def test_joint_against_plain_matrices(ends: str, amount: float) -> None:
    rod = uneven(ends)
    rng = np.random.default_rng(5)
    poses = frames_and_links(rod, shaken(rod, rng, amount))
    joints, mass = rod.joints(), inverse_masses(rod)
    for k in range(rod.n_links + 1):
        lam = 0.01 * rng.normal(size=(rod.n_links + 1, 6))
        h = 10.0 ** rng.uniform(-5, -2)
        got, got_lam, wrench = poses.copy(), lam.copy(), np.zeros((2, 6))
        kernels.project_joint(
            k, got, joints.arm, joints.kind, joints.stiffness, joints.rest, *mass, h * h, got_lam, wrench,
            np.empty((6, 6)), np.empty(6),
        )  # fmt: skip
        if joints.kind[k] == 0:  # a free end
            assert np.array_equal(got, poses) and np.array_equal(got_lam, lam)
            continue
        expected, expected_lam, both = plain_projection(rod, poses, k, h, lam)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11)
        np.testing.assert_allclose(got_lam, expected_lam, rtol=1e-7, atol=1e-9 * np.abs(expected_lam).max())
        frame = {0: 0, rod.n_links: 1}.get(k)
        if frame is not None:
            np.testing.assert_allclose(wrench[frame], both[frame], rtol=1e-7, atol=1e-9 * np.abs(both).max())
        assert np.array_equal(wrench[[side for side in range(2) if side != frame]], np.zeros((1 if frame is not None else 2, 6)))


def test_solve_against_numpy() -> None:
    rng = np.random.default_rng(0)
    for n in (3, 6):
        half = rng.normal(size=(n, n))
        S, y = half @ half.T + np.eye(n), rng.normal(size=n)
        solved = y.copy()
        kernels.solve_spd(S.copy(), solved, n)
        np.testing.assert_allclose(solved, np.linalg.solve(S, y), rtol=1e-10)


def test_contact_force_stays_in_the_cone() -> None:
    """Sticks without way and gap, slides on the rim of the cone against the way, or lets go; the force moved the point."""
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(200):
        frame = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        frame *= np.linalg.det(frame)
        start, before, now = 1e-3 * rng.normal(size=(3, 3))
        gap, mu, weight = 1e-3 * rng.normal(), rng.uniform(0.0, 1.5), 10.0 ** rng.uniform(0, 3)
        earlier = np.zeros(3) if rng.uniform() < 0.5 else weight * 1e-3 * np.array([1.0, 0.2 * mu, -0.3 * mu])
        poses, lam = np.array([[*now, 1.0, 0.0, 0.0, 0.0]]), earlier.copy()
        kernels.project_contact(poses, 0, start, before, frame, gap, mu, weight, lam)
        after = poses[0, :3]
        np.testing.assert_allclose(after - now, frame.T @ (lam - earlier) / weight, atol=1e-15)
        distance, way = gap + frame[0] @ (after - start), frame[1:] @ (after - before)
        size, rim = float(np.linalg.norm(lam[1:])), mu * lam[0]
        assert lam[0] >= 0.0 and distance > -1e-15 and size <= rim * (1 + 1e-12)
        if lam[0] == 0.0:
            seen.add("open")
            continue
        assert abs(distance) < 1e-15
        if size < rim * (1 - 1e-9):
            seen.add("stick")
            assert way == pytest.approx(np.zeros(2), abs=1e-15)
        elif mu > 0.0:
            seen.add("slip")
            # what is left of the way points against the force
            assert way @ lam[1:] == pytest.approx(-np.linalg.norm(way) * size, rel=1e-6)
    assert seen == {"open", "stick", "slip"}


def test_velocities_are_what_moved_the_poses() -> None:
    """Prediction and velocities are inverse to each other; forces change momentum, drag is implicit and by axes of the link."""
    rng = np.random.default_rng(2)
    rod = uneven("free")
    poses = frames_and_links(rod, shaken(rod, rng, 0.3))
    n, h = len(poses), 1e-3
    mass, inertia = inverse_masses(rod)
    velocity, force = rng.normal(size=(n, 6)) * [1, 1, 1, 50, 50, 50], 1e-4 * rng.normal(size=(n, 6))
    force[:, 3:] *= 1e-4
    expected = velocity.copy()
    axes = [quaternion_to_matrix(p[3:]) for p in poses]
    for p in range(1, n - 1):
        expected[p, :3] += h * mass[p] * force[p, :3]
        expected[p, 3:] += h * axes[p] @ (inertia[p] * (axes[p].T @ force[p, 3:]))
    now, got = poses.copy(), velocity.copy()
    kernels.predict(now, got, mass, inertia, force, h)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-15)
    for p in range(n):
        np.testing.assert_allclose(now[p, 3:], turned(poses[p, 3:], h * expected[p, 3:]), atol=1e-14)
    back = got.copy()
    back[1:-1] = 0.0
    kernels.find_velocities(now, poses, mass, h, back)
    np.testing.assert_allclose(back, expected, rtol=1e-9, atol=1e-9)
    damping = np.zeros((n, 4))
    damping[1:-1] = rng.uniform(0.5, 1.5, (n - 2, 4)) / (h * np.column_stack([mass[1:-1], inertia[1:-1]]))
    for p in range(1, n - 1):
        expected[p, :3] /= 1.0 + h * damping[p, 0] * mass[p]
        expected[p, 3:] = axes[p] @ (axes[p].T @ expected[p, 3:] / (1.0 + h * damping[p, 1:] * inertia[p]))
    kernels.slow_down(poses, got, mass, inertia, damping, h)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


# ---------------------------------------------------------------------- whole runs


def cantilever(links: int) -> fs.Scene:
    """Rubber of 0.1 m, clamped level: w L^3 / EI = 4.18 and E A L^2 / EI = 1e4."""
    scene = fs.Scene("cantilever", dt=0.01, duration=1.5, theta=1.0)
    rod = scene.add_rod(
        "rod", line(links, 0.1), fs.circular_section(RADIUS, shear_factor=1.0), fs.Elastic(YOUNG, 0.0, DENSITY),
        start=fs.RodEnd("clamped"), translational_damping=1.0,
    )  # fmt: skip
    scene.sensor("hand", rod, kind="start")
    return scene


def test_cantilever_converges_to_the_elastica() -> None:
    """With substeps to the answer of the same links, with links to Reissner's rod; the clamp carries weight and moment."""
    moment = math.pi * RADIUS**4 / 4.0
    expected = heavy_cantilever(WEIGHT * 0.1**3 / (YOUNG * moment), 1e4)
    scene = cantilever(5)
    run = fs.simulate(scene, duration=3.0)
    exact = scene.bodies[0].centre_line(run.stepper.state.q)[-1]
    errors = []
    for substeps in (10, 20, 40, 80, 160):
        answer = simulate_xpbd(scene, substeps=substeps)
        errors.append(np.linalg.norm(answer.centre_line[-1] - exact) / 0.1)
    assert answer.status == "finished" and answer.time[-1] == pytest.approx(1.5)
    assert np.all(np.diff(np.log2(errors)) < -1.0), errors  # at least first order
    assert errors[0] > 0.1 and errors[-1] < 5e-4
    assert np.linalg.norm(answer.centre_line[-1][[0, 2]] / 0.1 - expected) < 0.017  # five links
    hand = answer.sensors["hand"]
    assert hand.force[-1] == pytest.approx([0.0, 0.0, -0.1 * WEIGHT], abs=1e-4 * 0.1 * WEIGHT)
    lever = answer.centres[-1, :, 0].mean()
    assert hand.torque[-1] == pytest.approx([0.0, lever * 0.1 * WEIGHT, 0.0], rel=1e-3, abs=1e-12)
    fine = simulate_xpbd(cantilever(10), substeps=300)
    assert np.linalg.norm(fine.centre_line[-1][[0, 2]] / 0.1 - expected) < 0.006


def test_more_sweeps_help_as_more_substeps_do() -> None:
    scene = cantilever(5)
    run = fs.simulate(scene, duration=3.0)
    exact = scene.bodies[0].centre_line(run.stepper.state.q)[-1]
    one, four = (
        np.linalg.norm(simulate_xpbd(scene, substeps=20, iterations=sweeps).centre_line[-1] - exact) for sweeps in (1, 4)
    )
    assert four < 0.5 * one


@pytest.mark.parametrize("along", [0.9, 1.2])
def test_stick_and_slip_on_a_floor(along: float) -> None:
    """Below mu m g it creeps by less than a hundredth of what it would slide; above it slides with (push - mu m g) / m."""
    mu, mass = 0.4, WEIGHT * 0.1 / 9.81
    scene = fs.Scene("floor", dt=0.005, duration=0.5, theta=1.0)
    floor = scene.add_floor()
    points = line(10, 0.1) + np.array([0.0, 0.0, RADIUS])
    rod = scene.add_rod(
        "rod", points, fs.circular_section(RADIUS), fs.Elastic(YOUNG, 0.4, DENSITY),
        load=lambda t: np.array([along * mu * mass * 9.81, 0.0, 0.0]),
    )  # fmt: skip
    scene.set_friction(rod, floor, mu)
    scene.sensor("floor", "floor")
    run = simulate_xpbd(scene, substeps=50)
    way = run.centres[:, :, 0].mean(axis=1) - run.centres[0, :, 0].mean()
    slide = 0.5 * 0.2 * mu * 9.81 * 0.5**2
    if along > 1.0:
        assert way[-1] == pytest.approx(slide, rel=0.03)
    else:
        assert abs(way[-1]) < 0.01 * slide
    force = run.sensors["floor"].force
    assert force[-1] == pytest.approx([min(along, 1.0) * mu * mass * 9.81, 0.0, -mass * 9.81], rel=0.01, abs=1e-6)
    assert np.all(np.linalg.norm(force[:, :2], axis=1) <= mu * -force[:, 2] * (1 + 1e-9))
    assert run.penetration.max() < 1e-9


def test_mass_proportional_damping_slows_a_fall() -> None:
    """v = g / alpha at the end, and the drag of the same size does the same."""
    speeds = []
    for elastic, drag in ((fs.Elastic(YOUNG, 0.3, DENSITY, rayleigh_alpha=20.0), 0.0), (fs.Elastic(YOUNG, 0.3, DENSITY), None)):
        scene = fs.Scene("fall", dt=0.01, duration=0.6, theta=1.0)
        per_metre = 20.0 * WEIGHT / 9.81 if drag is None else drag
        scene.add_rod("rod", line(4, 0.1), fs.circular_section(RADIUS), elastic, translational_damping=per_metre)
        run = simulate_xpbd(scene, substeps=20)
        speeds.append((run.centres[-1, :, 2] - run.centres[-2, :, 2]) / 0.01)
    np.testing.assert_allclose(speeds[0], -9.81 / 20.0, rtol=0.02)
    np.testing.assert_allclose(speeds[0], speeds[1], rtol=1e-9)


def test_winding_begins_as_ours_does() -> None:
    """The driven end pulls with what simulate says, to 5 %, as long as the cable hangs; nothing penetrates the post."""
    scene = fs.load_scene(SCENES / "cable_winding.py", links=80)
    run = simulate_xpbd(scene, substeps=60, duration=3.0)
    ours = fs.simulate(scene, duration=3.0)
    force = ours.sensors["tool"].force[-1]
    assert np.linalg.norm(run.sensors["tool"].force[-1] - force) < 0.05 * np.linalg.norm(force)
    assert np.abs(run.centres[-1] - scene.bodies[0].centres(ours.stepper.state.q)).max() < 5e-3
    assert run.penetration.max() < 1e-6
    assert run.sensors["tool"].torque == pytest.approx(np.zeros((300, 3)), abs=1e-12)  # a ball joint
    again = simulate_xpbd(scene, substeps=60, duration=0.1)  # a scene can run again, always from its start
    assert np.array_equal(again.centres, run.centres[:10])


def test_numbers_that_are_not_finite_end_the_run() -> None:
    scene = fs.Scene("storm", dt=0.01, duration=0.05, theta=1.0)
    scene.add_rod(
        "rod", line(3, 0.1), fs.circular_section(RADIUS), fs.Elastic(YOUNG, 0.3, DENSITY),
        load=lambda t: np.array([1e308 if t > 0.025 else 0.0, 0.0, 0.0]),
    )  # fmt: skip
    with np.errstate(all="ignore"):
        run = simulate_xpbd(scene, substeps=5)
    assert run.status == "failed" and "Step 3" in run.message
    assert len(run.time) == len(run.centres) == len(run.seconds) == 2
    assert np.isfinite(run.centre_line).all()


# ---------------------------------------------------------------------- bad input


def with_ball(scene: fs.Scene) -> None:
    scene.add_rigid("ball", fs.Sphere(0.01), mass=0.1, position=(0.0, 1.0, 0.0))


def second_rod(scene: fs.Scene) -> None:
    scene.add_rod("other", line(3) + np.array([0.0, 1.0, 0.0]), fs.circular_section(RADIUS), fs.Elastic(YOUNG, 0.3, DENSITY))


@pytest.mark.parametrize(
    ("change", "options", "match"),
    [
        (with_ball, {}, r"1 rod and ball; XPBD takes one rod and obstacles"),
        (second_rod, {}, r"2 rods; XPBD takes one rod"),
        (lambda scene: None, {"substeps": 0}, r"substeps is 0; allowed are whole numbers from 1"),
        (lambda scene: None, {"substeps": 2.5}, r"substeps is 2.5"),
        (lambda scene: None, {"iterations": True}, r"iterations is True"),
        (lambda scene: None, {"duration": math.nan}, r"duration is nan s"),
        (lambda scene: None, {"duration": 0.004}, r"at least half a step of 0.01 s"),
    ],
)
def test_what_it_cannot_do_is_refused(change: Callable[[fs.Scene], None], options: dict[str, object], match: str) -> None:
    scene = cantilever(3)
    change(scene)
    with pytest.raises(fs.InputError, match=match):
        simulate_xpbd(scene, **options)


def test_rods_it_does_not_know_are_refused() -> None:
    for options, elastic, match in (
        ({"contact": "surface"}, fs.Elastic(YOUNG, 0.3, DENSITY), "contact 'surface'"),
        ({}, fs.Elastic(YOUNG, 0.3, DENSITY, rayleigh_beta=1e-3), "rayleigh_beta 0.001 s"),
    ):
        scene = fs.Scene("scene", theta=1.0)
        scene.add_rod("rod", line(3), fs.circular_section(RADIUS), elastic, **options)
        with pytest.raises(fs.InputError, match=match):
            simulate_xpbd(scene)
    scene = fs.Scene("scene", theta=1.0)
    floor = scene.add_floor()
    rod = scene.add_rod("rod", line(3), fs.circular_section(RADIUS), fs.Elastic(YOUNG, 0.3, DENSITY))
    scene.set_friction(rod, floor, (0.2, 0.4), direction=(1.0, 0.0, 0.0))
    with pytest.raises(fs.InputError, match="friction that differs by direction"):
        simulate_xpbd(scene)
    with pytest.raises(fs.InputError, match="0 rods"):
        simulate_xpbd(fs.Scene("empty", theta=1.0))
