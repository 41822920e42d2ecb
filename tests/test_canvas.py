"""Pictures of which only the part that changes is drawn: they are those that are drawn whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

from viz import PartFrame, PvdSeries, probe_rendering
from viz.camera import placed_camera
from viz.canvas import Canvas
from viz.ground import Ground
from viz.stage import Stage
from viz.survey import Survey, frames_of

SIZE = (480, 360)
#: Pixels at corners, where edges cross and the pass that smooths them may go either way.
FEW = 4
CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
FACES = np.array(
    [0, 1, 3, 0, 3, 2, 4, 6, 7, 4, 7, 5, 0, 4, 5, 0, 5, 1, 2, 3, 7, 2, 7, 6, 0, 2, 6, 0, 6, 4, 1, 5, 7, 1, 7, 3]
).reshape(12, 3)
TETS = np.array([[0, 4, 2, 1], [6, 4, 7, 2], [5, 4, 1, 7], [3, 1, 2, 7], [1, 4, 2, 7]])

pytestmark = pytest.mark.skipif(not probe_rendering().ok, reason=probe_rendering().message)


def write_run(folder: Path, lifts: list[float], posts: list[float]) -> Path:
    """Write a soft cube that is lifted [m] between two posts, one of which moves sideways [m], on a floor; a contact below it."""
    floor = np.array([[-5, -5, 0], [5, -5, 0], [5, 5, 0], [-5, 5, 0]], dtype=float)
    soft, post = 0.02 * CORNERS, CORNERS * (0.01, 0.01, 0.05) + (0, 0, 0.05)
    with PvdSeries(folder / "frames.pvd", folder / "frames") as series:
        series.add_part("cube", soft, TETS, "tetra")
        series.add_part("left", post, FACES, "triangle")
        series.add_part("right", post, FACES, "triangle")
        series.add_part("floor", floor, np.array([[0, 1, 2], [0, 2, 3]]), "triangle")
        series.add_part("contacts", None, None, "points")
        for number, (lift, aside) in enumerate(zip(lifts, posts, strict=True)):
            up = np.array([0.0, 0.0, 0.02 + lift])
            series.write_frame(
                0.1 * number,
                {
                    "cube": PartFrame(soft + up, {"von_mises": np.linspace(0.0, 2e4, 8)}),
                    "left": PartFrame(post - (0.08, 0, 0)),
                    "right": PartFrame(post + np.array([0.08 + aside, 0, 0])),
                    "floor": PartFrame(floor),
                    "contacts": PartFrame(np.array([[0, 0, lift]]), {"force": np.array([[0, 0, 3.0]])}),
                },
            )
    return folder


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, ...]]]:
    """What was drawn: the rectangles."""
    seen: list[tuple[int, ...]] = []
    draw = Canvas._drawn

    def watched(self: Canvas, rectangle: tuple[int, int, int, int]) -> Any:
        seen.append(rectangle)
        return draw(self, rectangle)

    monkeypatch.setattr(Canvas, "_drawn", watched)
    yield seen


def staged(folder: Path, looked_at: list[int] | None = None) -> tuple[Stage, list[Any]]:
    frames = frames_of(folder, 1)
    survey = Survey.of([frames[k] for k in looked_at] if looked_at else frames, "von_mises")
    view = placed_camera("iso", survey.framed, SIZE[0] / SIZE[1])
    return Stage(frames[0], survey, view, SIZE, "von_mises", True), frames


def differences(one: np.ndarray, other: np.ndarray) -> tuple[int, int]:
    """Pixels that differ by more than 2 of 255; and those of which nothing within a pixel is alike in the other, by more than 48.

    Rounding gives a pixel on an edge to one side or the other, and which it is differs between machines.
    """
    apart = np.abs(one.astype(int) - other.astype(int)).max(axis=2)
    alone = [np.maximum(low_of(b) - a, a - high_of(b)).max(axis=2) for a, b in ((one, other), (other, one))]
    return int((apart > 2).sum()), int((np.maximum(*alone) > 48).sum())


def low_of(picture: np.ndarray) -> np.ndarray:
    """Least of each pixel and its neighbours, by colour."""
    return ndimage.minimum_filter(picture.astype(int), size=(3, 3, 1))


def high_of(picture: np.ndarray) -> np.ndarray:
    """Most of each pixel and its neighbours, by colour."""
    return ndimage.maximum_filter(picture.astype(int), size=(3, 3, 1))


def test_a_picture_drawn_in_part_is_the_whole_one(tmp_path: Path, drawn: list[tuple[int, ...]]) -> None:
    stage, frames = staged(write_run(tmp_path, [0.0, 0.01, 0.03, 0.06], [0.0] * 4))
    for k, frame in enumerate(frames):
        in_part = stage.draw(frame)
        left, low, right, high = drawn[-1]
        assert 0 < (right - left) * (high - low) < 0.6 * SIZE[0] * SIZE[1]
        whole = stage._canvas.whole()
        some, much = differences(in_part, whole)
        assert some < 0.002 * SIZE[0] * SIZE[1] and much <= FEW, k
    assert drawn[0] == (0, 0, *SIZE)  # what rests
    assert differences(stage.draw(frames[0]), stage.draw(frames[-1]))[1] > 1000


def test_what_rested_and_moves_after_all_leaves_no_trace(tmp_path: Path, drawn: list[tuple[int, ...]]) -> None:
    stage, frames = staged(write_run(tmp_path, [0.0, 0.01, 0.02, 0.03], [0.15, 0.15, -0.04, -0.04]), [0, 1])
    assert set(stage._resting) == {"left", "right"}
    before = stage.draw(frames[1])
    after = stage.draw(frames[2])
    assert set(stage._resting) == {"left"} and differences(before, after)[1] > 1000
    some, much = differences(after, stage._canvas.whole())
    assert some < 0.002 * SIZE[0] * SIZE[1] and much <= FEW


def test_a_frame_that_shows_nothing_new_is_not_drawn(tmp_path: Path, drawn: list[tuple[int, ...]]) -> None:
    creep = 1e-6  # m, of a scene of 0.2 m in 480 pixels: a pixel is 0.5 mm
    stage, frames = staged(write_run(tmp_path, [0.02, 0.02 + creep, 0.02 + 2 * creep, 0.0202], [0.0] * 4))
    first = stage.draw(frames[0])
    count = len(drawn)
    assert stage.draw(frames[1]) is first and stage.draw(frames[2]) is first and len(drawn) == count
    assert stage.draw(frames[3]) is not first and len(drawn) == count + 1


def test_a_camera_near_the_scene_draws_it_whole(tmp_path: Path, drawn: list[tuple[int, ...]]) -> None:
    frames = frames_of(write_run(tmp_path, [0.0, 0.01], [0.0, 0.0]), 1)
    survey = Survey.of(frames, "von_mises")
    stage = Stage(frames[0], survey, placed_camera("iso", survey.framed, 4 / 3), SIZE, "von_mises", True)
    behind = np.array([[0.0, 0.0, 1e3], [0.0, 0.0, -1e3]])
    assert stage._canvas.around([behind]) is None and stage._canvas.around([]) == (0, 0, 0, 0)
    near = Stage(frames[0], survey, placed_camera("0,60,5", survey.framed, 4 / 3), SIZE, "von_mises", True)
    near.draw(frames[0])
    assert drawn == [(0, 0, *SIZE)]


def test_a_shadow_leaves_the_ground_as_it_was() -> None:
    survey = Survey(np.array([[-1, -1, 0], [1, 1, 1.0]]), 1, 1, 1, 2)
    view = placed_camera("iso", survey.corners, 4 / 3)
    there, here = (np.random.default_rng(0).uniform([x, -0.2, 0.1], [x + 0.3, 0.2, 0.2], (2000, 3)) for x in (-1.0, 0.5))
    resting = here + np.array([0.0, 1.0, 0.0])

    def image(*casts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        ground = Ground(Canvas(view, (64, 64)), np.zeros(3), np.array([0, 0, 1.0]), survey)
        ground.settle([resting])
        for samples in casts:
            corners = ground.cast(samples)
        return np.array(ground._image.point_data["rgb"]), corners

    moved, corners = image([there], [here])
    fresh, _ = image([here])
    bare, nothing = image([there], [])
    assert (moved == fresh).all() and (bare == image([])[0]).all() and len(nothing) == 0
    assert (moved != bare).any() and (bare != 255).any()
    assert (corners.min(axis=0)[:2] < [0.5, -0.2]).all() and (corners.max(axis=0)[:2] > [0.8, 0.2]).all()
    together = Ground(Canvas(view, (64, 64)), np.zeros(3), np.array([0, 0, 1.0]), survey)
    together.cast([here, resting])
    np.testing.assert_allclose(np.array(together._image.point_data["rgb"]), moved.astype(int), atol=1)


def test_arrows_are_seen_through_what_hides_them(tmp_path: Path) -> None:
    """The force on the cube ends below it and comes from below the floor."""
    folder = write_run(tmp_path, [0.0, 0.03], [0.0, 0.0])
    stage, frames = staged(folder)
    red = stage.draw(frames[0]).astype(int)
    ghost = stage._arrows.actors[1]
    ghost.SetVisibility(False)
    bare = stage._canvas.whole().astype(int)

    def reddish(picture: np.ndarray) -> int:
        return int((picture[:, :, 0] > picture[:, :, 1:].max(axis=2) + 25).sum())

    assert reddish(red) > reddish(bare) + 50
