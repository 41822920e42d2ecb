"""What is written on a picture: times, colour bar, scale bar."""

import numpy as np
import pytest

import viz.marks as marks


def test_marks_are_the_same_on_a_part_as_on_the_whole():
    """They are laid on copies of small windows: the picture around them, and the one that came in, stay as they are."""
    rng = np.random.default_rng(4)
    for channels in (3, 4):
        below = rng.integers(0, 256, (480, 640, channels), dtype=np.uint8)
        before = below.copy()
        drawn = marks.Marks((640, 480), "a run", 1e-4, ("stress", "kPa", 20.0, True))
        above = drawn.put(below, "t = 0.50 s", "0.1 x real time")
        np.testing.assert_array_equal(below, before)
        changed = (above != below).any(axis=2)
        assert changed[:60, :200].any() and changed[400:, :200].any() and changed[100:400, 560:].any()
        assert not changed[100:400, 100:500].any()


def test_letters_can_be_read_in_small_pictures_and_stay_on_them():
    """Panels side by side: 480 x 360 has letters of more than half the size of 1280 x 960, the bar's numbers end at the edge."""
    white = np.full((960, 1280, 3), 255, np.uint8)
    bar = ("von Mises stress", "kPa", 0.75, True)  # its numbers are the widest: 0.188, 0.562, ≥ 0.75

    def ink(size):
        picture = marks.Marks(size, "", 0.0, bar).put(white[: size[1], : size[0]], "t = 0.00 s")
        return (picture < 128).all(axis=2)

    heights = [np.ptp(np.nonzero(ink(size)[: size[1] // 8, : size[0] // 4].any(axis=1))) for size in ((1280, 960), (480, 360))]
    assert 0.5 * heights[0] < heights[1] < 0.7 * heights[0]
    for size in ((1280, 960), (640, 480), (480, 360), (320, 240)):
        seen = np.nonzero(ink(size).any(axis=0))[0]
        assert seen[-1] < size[0] - 1  # nothing is cut off
        words = np.nonzero(ink(size)[: int(0.27 * size[1])][int(0.12 * size[1]) :].any(axis=0))[0]
        assert words[0] > 0.72 * size[0]  # nor reaches into the scene


def test_speed_is_written_on_the_film_but_not_on_the_stills(tmp_path, drawing):
    drawn = marks.Marks((320, 240), "", 0.0, None)
    white = np.full((240, 320, 3), 255, np.uint8)
    plain, slow = drawn.put(white, "t = 0.00 s"), drawn.put(white, "t = 0.00 s", "0.1 x real time")
    below = slice(17, 40)  # the line below the time
    assert (plain[below] == 255).all() and (slow[below] < 128).any()
    assert (plain[:17] == slow[:17]).all() and (plain[:17] < 128).any()


def test_a_scale_bar_is_as_long_as_it_says():
    picture = marks.Marks((1280, 960), "", 1e-4, None).put(np.full((960, 1280, 3), 255, np.uint8), "")
    dark = np.nonzero((picture[925] < 100).all(axis=1))[0]  # through the bar
    # 0.15 of the width is 23 mm: the bar is 20 mm long
    assert np.ptp(dark) == pytest.approx(0.020 / 1e-4, abs=3)
    for metres, text in ((0.02, "20 mm"), (0.5, "50 cm"), (2.0, "2 m"), (5e-6, "5 µm"), (0.05, "50 mm"), (2e-9, "2 nm")):
        assert marks.length_text(metres) == text
