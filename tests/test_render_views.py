"""What a picture shows of a run: what is framed, where cameras look, what a plane takes away."""

import numpy as np
import pytest
from drawn_runs import SIZE, cube_tets, is_rigid, is_soft, read_png, write_run

import viz.camera as viewpoint
import viz.stage as stage
import viz.survey as survey
from viz import VizError, render_run


def test_front_view_shows_x_right_z_up_and_all_that_moves(tmp_path, drawing):
    """The box is right of the cube; both rise by 1.5 times their size; the 10 m floor is not framed."""
    result = render_run(write_run(tmp_path), size=SIZE, stills=2, mp4=False, camera="front", arrows=False)
    first, last = (read_png(path)[:, :280] for path in result.frames)  # the colour bar is right of that
    rows, columns = np.nonzero(is_rigid(first))
    width = np.ptp(columns) + 1
    assert 45 < width < 130  # 40 mm of the 120 mm that fill most of the 320 pixels
    rows_last, _ = np.nonzero(is_rigid(last))
    # Seen face on: the rise in pixels is 1.5 widths (perspective changes it little).
    assert (rows.max() - rows_last.max()) / width == pytest.approx(1.5, rel=0.1)
    assert np.nonzero(is_soft(first))[1].mean() < columns.mean() - width
    for picture in (first, last):
        edge = np.concatenate([is_rigid(picture)[[0, -1]].ravel(), is_rigid(picture)[:, [0, -1]].ravel()])
        assert not edge.any()  # nothing is cut off


def test_survey_frames_the_movers_and_takes_95_percent_of_the_frames(tmp_path):
    found = survey.Survey.of(survey.frames_of(write_run(tmp_path, 50), 1), "von_mises")
    np.testing.assert_allclose(found.corners.min(axis=0), [-0.02, -0.02, 0.0], atol=1e-9)
    np.testing.assert_allclose(found.corners.max(axis=0), [0.10, 0.02, 0.10], atol=1e-9)
    assert 0.95 * 2e4 <= found.limit <= 1.25 * 2e4  # one value in each frame, from 0 to 2e4 Pa
    assert found.decimals == 2


def test_a_large_fixed_body_is_not_framed_but_a_small_one_is():
    still_small, still_large, mover = (
        np.eye(3)[None].repeat(2, 0),
        50 * np.eye(3)[None].repeat(2, 0),
        np.zeros((2, 3, 3)),
    )
    mover[1] = 1.0
    boxes = {"mover": list(mover), "small": list(still_small + 3), "large": list(still_large)}
    corners, still = survey.framed_corners(boxes, set())
    assert corners.max() == 4.0
    assert still == {"small", "large"}


@pytest.mark.parametrize("camera", ["iso", "front", "side", "top"])
def test_fitted_view_shows_all_corners_tightly(camera):
    corners = np.random.default_rng(3).uniform([-1, -2, 0], [4, 1, 2], (60, 3))
    direction, up = (np.array(v) for v in viewpoint.CAMERAS[camera])
    view = viewpoint.fitted_view(direction / np.linalg.norm(direction), up, corners, 4 / 3)
    ahead = (view.focal_point - view.position) / np.linalg.norm(view.focal_point - view.position)
    right = np.cross(ahead, view.up)
    rays = corners - view.position
    tan = np.tan(np.radians(viewpoint.VIEW_ANGLE / 2))
    x, y = rays @ right / (rays @ ahead) / (tan * 4 / 3), rays @ view.up / (rays @ ahead) / tan
    assert (rays @ ahead > 0).all()
    assert max(np.abs(x + 0.05).max() / 0.8, np.abs(y).max() / 0.8) == pytest.approx(1.0, abs=0.05)
    assert y.max() == pytest.approx(-y.min(), abs=0.03)


@pytest.mark.parametrize(
    ("camera", "sight", "right"),
    [("front", [0, 1, 0], [1, 0, 0]), ("side", [-1, 0, 0], [0, 1, 0]), ("top", [0, 0, -1], [1, 0, 0])],
)
def test_named_cameras_look_where_they_say(camera, sight, right):
    direction, up = (np.array(v) for v in viewpoint.CAMERAS[camera])
    np.testing.assert_allclose(-direction, sight)
    np.testing.assert_allclose(np.cross(-direction, up), right)


def test_cameras_by_angles_and_their_refusals():
    corners = np.random.default_rng(3).uniform([-1, -2, 0], [4, 1, 2], (60, 3))
    front = viewpoint.placed_camera("front", corners, 4 / 3)
    same = viewpoint.placed_camera("0,0", corners, 4 / 3)
    np.testing.assert_allclose(same.position, front.position)
    near = viewpoint.placed_camera("0,0,2", corners, 4 / 3)
    np.testing.assert_allclose(near.position - near.focal_point, (front.position - front.focal_point) / 2)
    right = viewpoint.placed_camera("90,0", corners, 4 / 3)
    side = viewpoint.placed_camera("side", corners, 4 / 3)
    np.testing.assert_allclose(right.position, side.position)
    above = viewpoint.placed_camera("0,90", corners, 4 / 3)
    np.testing.assert_allclose((above.position - above.focal_point)[:2], 0.0, atol=1e-9)
    for text, message in (
        ("frnt", "did you mean 'front'"),
        ("10", "'azimuth,elevation'"),
        ("10,95", "-90 to 90"),
        ("10,20,0", "zoom 0.01 to 100"),
        ("follow:", "names no body"),
    ):
        with pytest.raises(VizError, match=message):
            viewpoint.placed_camera(text, corners, 4 / 3)


def test_a_camera_follows_a_body(tmp_path, drawing):
    """The cube rises by three times its half width; followed, it stays where it is in the picture."""
    run = write_run(tmp_path)
    drawn = render_run(run, size=SIZE, stills=2, mp4=False, camera="follow:cube,0,0", arrows=False, scale_bar=False)
    masks = [is_soft(read_png(path))[:, :270] for path in drawn.frames]
    first = np.argwhere(masks[0]).mean(axis=0)
    dark = read_png(drawn.frames[1])[:, :270]
    blue = (dark[..., 2] > 1.5 * dark[..., 0]) & (dark.sum(axis=-1) < 320)  # its stress is the largest at last
    assert np.abs(np.argwhere(blue).mean(axis=0) - first).max() < 6.0
    with pytest.raises(VizError, match="did you mean 'cube'"):
        render_run(run, camera="follow:cub")


def test_clip_takes_away_what_lies_beyond_the_plane(tmp_path, drawing):
    import pyvista

    points, tets = cube_tets(1.0)
    cube = pyvista.UnstructuredGrid({10: tets}, points)
    shown = survey.Survey(points + 4.0, 1.0, 0.0, 0.0, 2)
    for text, axis, low, high in (("x=0.25", 0, -1, 0.25), ("-z=0.5", 2, 0.5, 1), ("y=-1.5", 1, None, None)):
        left = stage.Clip.read(text, shown).applied(cube)
        if low is None:
            assert left.n_cells == 0
        else:
            np.testing.assert_allclose(left.bounds[2 * axis : 2 * axis + 2], [low, high], atol=1e-6)
    assert stage.Clip.read("y", shown).place == 4.0
    for text in ("w", "", "xy", "x=a", "x=nan", "-"):
        with pytest.raises(VizError, match="is not allowed; write an axis"):
            stage.Clip.read(text, shown)
    run = write_run(tmp_path)
    whole, cut = (
        read_png(render_run(run, out=tmp_path / str(clip), size=SIZE, stills=1, mp4=False, arrows=False, clip=clip).frames[0])
        for clip in (None, "z=0.05")
    )
    assert (whole != cut).any(axis=2).mean() > 0.01
