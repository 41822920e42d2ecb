"""Time profiles and prescribed motions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from femsim.base.errors import InputError
from femsim.base.rotations import quaternion_from_vector, quaternion_to_matrix
from femsim.model.drives import Motion, Profile, Smoothness, as_pieces, driven_pose
from femsim.model.profile_kernels import value_of

TIMES, VALUES = [0.5, 1.0, 3.0], [2.0, -1.0, 4.0]


@pytest.mark.parametrize("smooth", [True, False])
def test_key_values_are_met_and_held_outside(smooth: bool) -> None:
    profile = Profile(TIMES, VALUES, smooth=smooth)
    assert [profile(t) for t in TIMES] == pytest.approx(VALUES, abs=1e-15)
    assert profile(-7.0) == 2.0 and profile(0.0) == 2.0
    assert profile(3.0 + 1e-9) == 4.0 and profile(99.0) == 4.0
    assert isinstance(profile(0.7), float)


def test_straight_lines_between_key_values() -> None:
    profile = Profile(TIMES, VALUES, smooth=False)
    assert profile(0.75) == pytest.approx(0.5) and profile(1.5) == pytest.approx(0.25)


def test_smooth_is_the_cubic_with_zero_slope_at_the_ends() -> None:
    """3 s^2 - 2 s^3 between two key values."""
    profile = Profile(TIMES, VALUES)
    for s in np.linspace(0, 1, 11):
        blend = 3 * s**2 - 2 * s**3
        assert profile(0.5 + 0.5 * s) == pytest.approx(2.0 - 3.0 * blend, abs=1e-14)
        assert profile(1.0 + 2.0 * s) == pytest.approx(-1.0 + 5.0 * blend, abs=1e-14)


def test_smooth_has_no_kink_and_straight_has() -> None:
    h = 1e-5

    def jump(profile: Profile, t: float) -> float:
        return (profile(t + h) - 2 * profile(t) + profile(t - h)) / h

    smooth, straight = Profile(TIMES, VALUES), Profile(TIMES, VALUES, smooth=False)
    for t in TIMES:
        assert abs(jump(smooth, t)) < 1e-2  # speed at h from rest: about 36 h
        assert abs(jump(straight, t)) > 2.0


def test_smooth_never_overshoots() -> None:
    values = [Profile(TIMES, VALUES)(t) for t in np.linspace(0.0, 4.0, 1001)]
    assert min(values) >= -1.0 - 1e-12 and max(values) <= 4.0 + 1e-12


@pytest.mark.parametrize("smooth", [True, False])
def test_one_key_value_is_a_constant(smooth: bool) -> None:
    profile = Profile([2.0], [7.0], smooth=smooth)
    assert profile(-1.0) == profile(2.0) == profile(5.0) == 7.0


@pytest.mark.parametrize(
    ("times", "values", "says"),
    [
        ([0.0, 1.0], [1.0], r"Profile: 2 times and values of shape \(1,\); allowed is one value for each time"),
        ([0.0], [[1.0]], r"values of shape \(1, 1\)"),
        ([], [], "Profile: 0 times"),
        ([0.0, np.nan], [1.0, 2.0], "Profile: a time or value is not finite"),
        ([0.0, 1.0], [1.0, np.inf], "Profile: a time or value is not finite"),
        ([0.0, 1.0, 1.0], [1.0, 2.0, 3.0], r"Profile: time 1.0 s \(entry 2\) does not lie after 1.0 s"),
        ([0.0, 2.0, 1.5, 1.0], [1.0, 2.0, 3.0, 4.0], r"time 1\.5 s \(entry 2\) does not lie after 2\.0 s"),
    ],
)
def test_wrong_profiles_are_refused(times: list, values: list, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Profile(times, values)


def test_a_motion_is_six_profiles() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
    for smooth in (True, False):
        motion = Motion(TIMES, x.tolist(), w.tolist(), smooth=smooth)
        for t in (0.0, 0.5, 0.6, 1.0, 2.2, 5.0):
            displacement, rotation = motion(t)
            for i in range(3):
                assert displacement[i] == Profile(TIMES, x[:, i].tolist(), smooth=smooth)(t)
                assert rotation[i] == Profile(TIMES, w[:, i].tolist(), smooth=smooth)(t)


def test_a_motion_without_rotations_does_not_turn() -> None:
    displacement, rotation = Motion([0.0, 1.0], [(0, 0, 0), (0, 0, 0.2)], smooth=False)(0.5)
    assert displacement.tolist() == [0, 0, 0.1] and rotation.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([0.0, 1.0], [(0, 0, 0)]), r"Motion displacements: 2 times and values of shape \(1, 3\).*of 3 numbers"),
        (([0.0], [(0, 0)]), r"Motion displacements: 1 times and values of shape \(1, 2\)"),
        (([0.0], [(0, 0, 0)], [(0, 0)]), r"Motion rotations: 1 times and values of shape \(1, 2\)"),
        (([0.0], [(0, 0, 0)], [(0, 0, np.nan)]), "Motion rotations: a time or value is not finite"),
        (([1.0, 0.0], [(0, 0, 0)] * 2), r"Motion displacements: time 0\.0 s \(entry 1\)"),
    ],
)
def test_wrong_motions_are_refused(arguments: tuple, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Motion(*arguments)


def test_driven_pose_moves_and_turns_from_the_start_in_the_world() -> None:
    start = quaternion_from_vector(np.array([0.3, -0.2, 0.9]))
    q0 = np.concatenate([[1.0, 2.0, 3.0], start, [0.5, 0.5]])
    turn = np.array([0.1, 0.7, -0.4])
    motion = Motion([0.0, 2.0], [(0, 0, 0), (0.1, 0.2, 0.3)], [(0, 0, 0), tuple(turn)])
    position, quaternion = driven_pose(q0, motion, 0.0)
    np.testing.assert_allclose(np.concatenate([position, quaternion]), q0[:7], atol=1e-15)
    position, quaternion = driven_pose(q0, motion, 2.0)
    np.testing.assert_allclose(position, [1.1, 2.2, 3.3], atol=1e-15)
    expected = Rotation.from_rotvec(turn).as_matrix() @ quaternion_to_matrix(start)
    np.testing.assert_allclose(quaternion_to_matrix(quaternion), expected, atol=1e-14)
    position, quaternion = driven_pose(q0, motion, 1.0)  # half way: half of both
    np.testing.assert_allclose(position, [1.05, 2.1, 3.15], atol=1e-15)
    expected = Rotation.from_rotvec(0.5 * turn).as_matrix() @ quaternion_to_matrix(start)
    np.testing.assert_allclose(quaternion_to_matrix(quaternion), expected, atol=1e-14)


@pytest.mark.parametrize("smooth", [True, False, "spline", "monotone"])
def test_extremes_of_a_profile_are_those_of_many_places(smooth: Smoothness) -> None:
    rng = np.random.default_rng(3)
    times = np.cumsum(rng.uniform(0.1, 0.4, 12))
    profile = Profile(times.tolist(), rng.normal(size=12).tolist(), smooth=smooth)
    every = [profile(t) for t in np.linspace(times[0] - 0.1, times[-1] + 0.1, 40001)]
    keys = [profile(t) for t in times]
    assert profile.extremes() == pytest.approx((min(every + keys), max(every + keys)), abs=1e-6)
    if smooth == "spline":
        speed = np.diff(every)
        assert np.abs(np.diff(speed)).max() < 1e-6 and abs(speed[0]) < 1e-12


@pytest.mark.parametrize("smooth", [True, False, "spline", "monotone"])
def test_the_largest_rate_of_a_profile_is_that_of_many_places(smooth: Smoothness) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        times = np.cumsum(rng.uniform(0.1, 0.4, 12))
        profile = Profile(times.tolist(), rng.normal(size=12).tolist(), smooth=smooth)
        fastest, when = profile.fastest
        every = np.abs([profile.rate(t) for t in np.linspace(times[0], times[-1], 20001)])
        assert fastest == pytest.approx(every.max(), rel=5e-3) and fastest >= every.max() - 1e-12
        assert max(abs(profile.rate(when + step)) for step in (-1e-9, 1e-9)) == pytest.approx(fastest, rel=1e-6)
    assert Profile([0.7], [2.5], smooth=smooth).fastest == (0.0, 0.0)


def test_a_wrong_way_between_values_is_named() -> None:
    with pytest.raises(InputError, match="'cubic'; allowed are True, False, 'spline' and 'monotone'"):
        Profile([0.0, 1.0], [0.0, 1.0], smooth="cubic")  # type: ignore[arg-type]


def test_many_profiles_at_once_have_the_bits_of_each() -> None:
    rng = np.random.default_rng(3)
    kinds: list[Smoothness] = [True, False, "spline", "monotone"]
    profiles = [
        Profile(np.cumsum(rng.random(n) + 0.1), rng.standard_normal(n), smooth=kind) for n in (2, 3, 40) for kind in kinds
    ]
    profiles += [Profile([0.7], [2.5]), Profile([0.7], [2.5], smooth=False)]
    pieces = as_pieces(profiles)
    assert as_pieces([]).last.shape == (0,)
    when = [-1.0, 50.0, *rng.uniform(0.0, 25.0, 50).tolist(), *(t for profile in profiles for t in profile.times.tolist())]
    for t in when:
        assert [value_of(pieces, k, t) for k in range(len(profiles))] == [profile(t) for profile in profiles]
