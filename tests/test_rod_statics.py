"""Rods against closed forms and published answers: large deflection, buckling, rings and helices, and the first frequency."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg as sl
from lone_rods import (
    CABLE,
    NO_GRAVITY,
    ROUND,
    Stepped,
    balanced,
    beam,
    force,
    mass_matrix,
    stiffness,
    tangent,
    tip,
)
from scipy.optimize import brentq
from slow_rods import CLAMPED, heavy_cantilever, line

from femsim.base.rotations import quaternion_from_vector, quaternion_multiply
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.rod_end import RodEnd
from materials import Elastic, RodSection

# ---------------------------------------------------------------------- statics


@pytest.mark.parametrize("weight", [4.2, 33.0])
def test_cantilever_under_its_weight_is_second_order(weight: float) -> None:
    expected = heavy_cantilever(weight, 1e4)
    errors, counts = [], (10, 20, 40)
    for n in counts:
        rod = Rod("rod", line(n), **beam(), start=CLAMPED)
        q = rod.initial_q()
        for part in (0.2, 1.0):
            q = balanced(rod, q, np.array([0.0, 0.0, -part * weight]))
        errors.append(np.linalg.norm(tip(rod, q)[[0, 2]] - expected))
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert order == pytest.approx(2.0, abs=0.1)
    assert errors[1] < (1.2e-3 if weight < 10 else 2.7e-3)


def test_cantilever_under_tip_load() -> None:
    """P L^2/EI = 10: Mattiasson (1981), elliptic integrals: tip at 1 - 0.55500, 0.81061 below."""
    tips = []
    for n in (20, 40):
        size = {"load": 0.0}
        rod = Rod(
            "rod",
            line(n),
            **beam(1e6),
            start=CLAMPED,
            end=RodEnd(load=lambda t, p=size: (np.array([0, 0, -p["load"]]), NO_GRAVITY)),
        )
        q = rod.initial_q()
        for size["load"] in (1.0, 3.0, 6.0, 10.0):
            q = balanced(rod, q)
        tips.append(tip(rod, q)[[0, 2]])
    better = tips[1] + (tips[1] - tips[0]) / 3  # second order taken out
    np.testing.assert_allclose(better, [1 - 0.55500, -0.81061], atol=5e-5)
    np.testing.assert_allclose(tips[1], [1 - 0.55500, -0.81061], atol=1e-3)


def critical(lowest: Callable[[float], float], low: float, high: float) -> float:
    """Load where the smallest eigenvalue of the tangent changes its sign."""
    return brentq(lowest, low, high, xtol=1e-6)


def smallest_eigenvalue(K: np.ndarray) -> float:
    assert np.abs(K - K.T).max() < 1e-4 * np.abs(K).max()
    return float(np.linalg.eigvalsh(0.5 * (K + K.T))[0])


def test_euler_buckling() -> None:
    """A clamped-free column buckles at pi^2/4 E I/L^2."""
    n, stretch = 20, 1e5
    size = {"load": 0.0}
    rod = Rod(
        "rod", line(n), **beam(stretch), start=CLAMPED, end=RodEnd(load=lambda t: (np.array([-size["load"], 0, 0]), NO_GRAVITY))
    )

    def lowest(load: float) -> float:
        size["load"] = load
        q = rod.initial_q()
        rod.centres(q)[:] *= 1 - load / stretch
        # the links are rigid: the gaps at the joints take the shortening, that at the clamp half of one
        assert np.abs(force(rod, q)).max() < 1e-9 * stretch
        return smallest_eigenvalue(tangent(rod, q))

    load = critical(lowest, 2.0, 3.0)
    assert load == pytest.approx(math.pi**2 / 4, rel=2e-3)


def test_clamped_twist_buckling() -> None:
    """A rod between two clamps that is twisted buckles at a torque of 8.98682 E I/L (tan x = x, 2 x = 8.98682)."""
    n = 20
    bending_twist = brentq(lambda x: math.sin(x) - x * math.cos(x), 4.0, 4.7) * 2
    assert bending_twist == pytest.approx(8.98682, abs=5e-6)
    angle = {"end": 0.0}
    end = RodEnd("clamped", lambda t: (NO_GRAVITY, np.array([angle["end"], 0, 0])))
    rod = Rod("rod", line(n), **beam(1e5), start=CLAMPED, end=end)  # G J = E I = 1

    def lowest(torque: float) -> float:
        angle["end"] = torque
        rod.reset()
        q = rod.initial_q()
        share = (np.arange(n) + 0.5) / n
        for pose, part in zip(q.reshape(-1, 7), share, strict=True):
            pose[3:] = quaternion_multiply(quaternion_from_vector(np.array([part * torque, 0, 0])), pose[3:])
        assert np.abs(force(rod, q)).max() < 1e-9
        assert rod.joint_wrenches(q)[n // 2, 3] == pytest.approx(torque, rel=1e-9)
        return smallest_eigenvalue(tangent(rod, q))

    torque = critical(lowest, 8.0, 10.0)
    assert torque == pytest.approx(8.98682, rel=2e-3)


def test_bend_of_45_degrees() -> None:
    """Bathe and Bolourchi (1979): an arc of 45 degrees, radius 100, loaded across its plane; the published answers spread."""
    elastic, section = (
        Elastic(1e7, 0.0, 1.0),
        RodSection(1.0, 1 / 12, 1 / 12, 1 / 6, 5 / 6, 5 / 6, 0.5),
    )  # GJ = 2 GI, as they all do
    tips = {}
    for n in (16, 32):
        angle = np.linspace(0, math.pi / 4, n + 1)
        points = 100 * np.column_stack([np.sin(angle), 1 - np.cos(angle), 0 * angle])[:, [1, 0, 2]]
        size = {"load": 0.0}
        rod = Rod(
            "rod",
            points,
            section,
            elastic,
            start=CLAMPED,
            end=RodEnd(load=lambda t, p=size: (np.array([0, 0, p["load"]]), NO_GRAVITY)),
        )
        q = rod.initial_q()
        for size["load"] in (60.0, 150.0, 300.0, 450.0, 600.0):
            q = balanced(rod, q)
            tips[n, size["load"]] = tip(rod, q)
    # Bathe and Bolourchi, Simo and Vu-Quoc (1986), Cardona and Geradin (1988), Crisfield (1990)
    for load, published in (
        (300.0, [[22.5, 59.2, 39.5], [22.33, 58.84, 40.08], [22.14, 58.64, 40.35], [22.16, 58.53, 40.53]]),
        (600.0, [[15.9, 47.2, 53.4], [15.79, 47.23, 53.37], [15.55, 47.04, 53.50], [15.61, 46.84, 53.71]]),
    ):
        better = tips[32, load] + (tips[32, load] - tips[16, load]) / 3
        assert np.linalg.norm(tips[32, load] - better) < 0.03
        assert np.all(better > np.min(published, axis=0)) and np.all(better < np.max(published, axis=0)), (load, better)


def test_end_moment_bends_a_rod_to_a_circle() -> None:
    """M = 2 pi E I/L closes the ring, exactly also for few links: all joints turn alike."""
    size = {"moment": 0.0}
    rod = Rod(
        "rod", line(12), **beam(), start=CLAMPED, end=RodEnd(load=lambda t: (NO_GRAVITY, np.array([0, -size["moment"], 0])))
    )
    q = rod.initial_q()
    for size["moment"] in np.linspace(0.1, 1.0, 10) * 2 * math.pi:
        q = balanced(rod, q)
    np.testing.assert_allclose(tip(rod, q), 0.0, atol=1e-9)
    bending = np.linalg.norm(rod.strains(q)[:-1, 3:5], axis=1)
    np.testing.assert_allclose(bending, 2 * math.pi, rtol=1e-9)


def test_end_moment_along_no_axis_bends_a_rod_to_a_helix() -> None:
    """A rod of one bending stiffness under an end moment M: its tangent turns about M at the rate |M|/EI, whatever G J is."""
    moment, torsion = np.array([2.0, 0.0, 6.0]), 0.7
    errors, counts = [], (12, 24)
    for n in counts:
        size = {"part": 0.0}
        rod = Rod(
            "rod", line(n), **beam(torsion=torsion), start=CLAMPED,
            end=RodEnd(load=lambda t, p=size: (NO_GRAVITY, p["part"] * moment)),
        )  # fmt: skip
        q = rod.initial_q()
        for size["part"] in (0.25, 0.5, 0.75, 1.0):
            q = balanced(rod, q)
        rate = np.linalg.norm(moment)
        axis = moment / rate
        along, across = axis[0] * axis, np.array([1.0, 0, 0]) - axis[0] * axis
        expected = along + (math.sin(rate) * across + (1 - math.cos(rate)) * np.cross(axis, across)) / rate
        errors.append(np.linalg.norm(tip(rod, q) - expected))
        twist = moment[0] / (0.5 * torsion)  # along the tangent, as at the clamp
        np.testing.assert_allclose(rod.strains(q)[:-1, 5], twist, rtol=0.04 * (12 / n) ** 2)
    assert errors[1] < 0.01 and 3.5 < errors[0] / errors[1] < 4.5


def test_rest_curvature_makes_a_helix_out_of_a_straight_rod() -> None:
    """Curvature 1/m and twist of a helix, held at one end: it rolls up until nothing is left of the energy."""
    n, curvature = 40, np.array([0.0, 5.0, 3.0])
    rod = Rod("rod", line(n), **beam(), rest_curvature=curvature, start=CLAMPED)
    q = rod.initial_q()
    start = rod.elastic_energy(q)
    assert start == pytest.approx(0.5 * (25 + 9) * (n - 0.5) / n, rel=1e-9)  # the last half link has no joint
    q = balanced(rod, q)
    assert rod.elastic_energy(q) < 1e-12 * start
    rate = np.linalg.norm(curvature)
    spin = rod.axes(rod.initial_q())[0] @ curvature  # the frames turn about an axis that is fixed in space
    axis = spin / rate
    along = axis[0] * axis
    across = np.array([1.0, 0, 0]) - along
    expected = along + (math.sin(rate) * across + (1 - math.cos(rate)) * np.cross(axis, across)) / rate
    np.testing.assert_allclose(tip(rod, q), expected, atol=1e-3)


def test_hanging_rod_stretches_by_its_weight() -> None:
    """Weight w hangs from a clamp: stretch w/(2 EA), and each joint carries what is below it."""
    weight, stretch = 50.0, 1e4
    rod = Rod("rod", -line(16, axis=2), **beam(stretch), start=CLAMPED)
    q = balanced(rod, rod.initial_q(), np.array([0.0, 0.0, -weight]))
    assert -1.0 - tip(rod, q)[2] == pytest.approx(weight / 2 / stretch, rel=1e-7)
    np.testing.assert_allclose(rod.joint_wrenches(q)[:-1, 2], -weight * (1 - np.arange(16) / 16), rtol=1e-5)


# ---------------------------------------------------------------------- dynamics


def test_first_frequency_of_a_cantilever() -> None:
    """Euler-Bernoulli: 1.8751^2/(2 pi) sqrt(EI/(rho A L^4)) = 2.7106 Hz for 0.1 m of the cable of papers/001."""
    n = 20
    rod = Rod("rod", line(n, 0.1), ROUND, CABLE, start=CLAMPED)
    root = brentq(lambda x: math.cos(x) * math.cosh(x) + 1, 1.8, 1.95)
    expected = root**2 / (2 * math.pi) * math.sqrt(CABLE.young_modulus * ROUND.second_moment_1 / (1259.0 * ROUND.area * 0.1**4))
    assert expected == pytest.approx(2.7106, abs=1e-4)
    q = rod.initial_q()
    modes = sl.eigh(stiffness(rod, q), mass_matrix(rod, q), eigvals_only=True)
    assert math.sqrt(modes[0]) / (2 * math.pi) == pytest.approx(expected, rel=3e-3)
    # and in time: small motion at theta = 1/2 keeps the beat and the amplitude
    moving = Stepped(rod, 2e-3, 0.5)
    _, shape = sl.eigh(stiffness(rod, q), mass_matrix(rod, q), subset_by_index=[0, 0])
    moving.v = 1e-3 * shape[:, 0] / np.linalg.norm(shape.reshape(-1, 6)[-1, :3])
    crossings, peaks, last = [], [0.0], 0.0
    side = shape.reshape(-1, 6)[-1, :3] / np.linalg.norm(shape.reshape(-1, 6)[-1, :3])
    for _ in range(700):
        moving.step()
        now = float((rod.centres(moving.q)[-1] - rod.centres(q)[-1]) @ side)
        if last < 0 <= now:
            crossings.append(moving.t - 2e-3 * now / (now - last))
            peaks.append(0.0)
        peaks[-1] = max(peaks[-1], abs(now))
        last = now
    frequency = (len(crossings) - 1) / (crossings[-1] - crossings[0])
    assert frequency == pytest.approx(expected, rel=3e-3)
    assert peaks[2] == pytest.approx(peaks[1], rel=1e-2)
