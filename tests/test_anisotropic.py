"""Friction that differs by direction, from the scene to the path of a sliding box."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import femsim as fs

SCENE = Path(__file__).resolve().parents[1] / "scenes" / "anisotropic_box.py"


def largest_dissipation_path(mu: tuple[float, float], angle: float, velocity: tuple[float, float]) -> np.ndarray:
    """Where a point comes to rest under dv/dt = -g M^2 v / |M v|, an integration that knows nothing of contact solvers."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    squared = turn @ np.diag([mu[0] ** 2, mu[1] ** 2]) @ turn.T

    def rate(_t: float, y: np.ndarray) -> np.ndarray:
        v = y[2:]
        return np.concatenate([v, -9.81 * squared @ v / np.sqrt(v @ squared @ v)])

    def stopped(_t: float, y: np.ndarray) -> float:
        return float(np.hypot(y[2], y[3]) - 1e-6)

    stopped.terminal = True  # type: ignore[attr-defined]
    path = solve_ivp(rate, (0.0, 5.0), [0.0, 0.0, *velocity], rtol=1e-9, atol=1e-12, events=stopped)
    return np.asarray(path.y[:2, -1])


def rest(dt: float, **parameters: float) -> np.ndarray:
    run = fs.simulate(fs.load_scene(SCENE, dt=dt, **parameters), solver="exact")
    assert run.status == "converged"
    return np.asarray(run.markers["box"].position[-1, :2])


@pytest.mark.parametrize(("mu", "angle"), [((0.5, 0.2), 0.0), ((0.2, 0.5), 0.6)])
def test_path_of_largest_dissipation(mu: tuple[float, float], angle: float) -> None:
    """Papers/001 section V-G: first order in dt towards the independent integration, and near it."""
    expected = largest_dissipation_path(mu, angle, (1.0, 1.0))
    coarse, fine = (rest(dt, mu_along=mu[0], mu_across=mu[1], angle=angle) for dt in (0.01, 0.005))
    assert np.linalg.norm(fine - expected) < 0.012 * np.linalg.norm(expected)
    assert np.linalg.norm(2.0 * fine - coarse - expected) < 0.25 * np.linalg.norm(fine - expected)


def test_isotropic_law_would_go_elsewhere() -> None:
    """The bend is not small: with the mean coefficient the box stops far from there."""
    mean = np.sqrt(0.5 * 0.2)
    bent, straight = (largest_dissipation_path(mu, 0.0, (1.0, 1.0)) for mu in ((0.5, 0.2), (mean, mean)))
    assert np.linalg.norm(bent - straight) > 0.2 * np.linalg.norm(bent)


def test_all_contact_solvers_of_the_run_agree() -> None:
    scene = fs.load_scene(SCENE)
    ends = []
    for solver, options in (("exact", {}), ("cond", {"tolerance": 1e-8})):
        run = fs.simulate(scene, solver=solver, duration=0.1, **options)
        assert run.status == "converged"
        ends.append(run.markers["box"].position[-1])
    assert np.allclose(ends[0], ends[1], atol=1e-7)


def test_direction_turns_with_the_body_that_carries_it() -> None:
    """A box on an obstacle, the direction carried by the driven plate: turned by 90 degrees the coefficients change places."""

    def build(yaw: float) -> fs.Scene:
        scene = fs.Scene("turned", dt=0.005, duration=0.05, theta=1.0)
        plate = scene.add_rigid("plate", fs.Box((0.5, 0.5, 0.01)), density=1000.0, position=(0, 0, -0.01), rotation=(0, 0, yaw))
        scene.drive(plate, fs.Motion([0.0, 1.0], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.0)]))
        box = scene.add_rigid("box", fs.Box((0.1, 0.1, 0.001)), density=1000.0, position=(0, 0, 0.001), velocity=(1.0, 0.0, 0.0))
        scene.set_friction(box, plate, (0.8, 0.1), direction=(1.0, 0.0, 0.0))
        scene.sensor("box", box, kind="marker")
        return scene

    along, across = (fs.simulate(build(yaw), solver="exact").markers["box"].position[-1, 0] for yaw in (0.0, np.pi / 2))
    for mu, reached in ((0.8, along), (0.1, across)):
        # velocity 1 - 9.81 mu dt k after step k
        expected = sum(0.005 * (1.0 - 9.81 * mu * 0.005 * k) for k in range(1, 11))
        assert reached == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    ("coefficient", "direction", "words"),
    [
        ((0.5, 0.2), None, ["box", "floor", "direction=(x, y, z)"]),
        ((0.5, 0.0), (1, 0, 0), ["0.0", "two positive numbers"]),
        ((0.5, 0.2, 0.1), (1, 0, 0), ["coefficients"]),
        ((0.5, 0.2), (0, 0, 0), ["direction", "not zero"]),
        ((0.5, np.nan), (1, 0, 0), ["coefficients", "nan"]),
        (0.5, (1, 0, 0), ["direction needs two coefficients"]),
    ],
)
def test_wrong_coefficients_get_a_sentence(coefficient: object, direction: object, words: list[str]) -> None:
    scene = fs.Scene("wrong", theta=1.0)
    scene.add_floor()
    box = scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), density=1000.0)
    with pytest.raises(fs.InputError) as error:
        scene.set_friction(box, "floor", coefficient, direction=direction)  # type: ignore[arg-type]
    assert all(word in str(error.value) for word in words), error.value


def test_soft_body_cannot_carry_the_direction() -> None:
    from meshes import box_tets

    scene = fs.Scene("wrong", theta=1.0)
    scene.add_floor()
    soft = scene.add_soft("soft", box_tets((0.1, 0.1, 0.1), 1), fs.Elastic(1e5, 0.3, 1000.0, name="m"))
    with pytest.raises(fs.InputError, match="carries the direction, so it must be one of \\['floor'\\], not 'soft'"):
        scene.set_friction("floor", soft, (0.5, 0.2), direction=(1, 0, 0))


def test_setting_one_coefficient_again_ends_anisotropy() -> None:
    scene = fs.load_scene(SCENE)
    scene.set_friction("box", "floor", 0.3)
    found, names = scene.pair_friction(), scene.part_names
    assert [rule.coefficients for rule in scene.friction_rules] == [None]
    assert found.values[names.index("box"), names.index("floor")] == pytest.approx(0.3)
