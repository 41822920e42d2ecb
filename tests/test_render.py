"""Pictures of a run, as far as they can be judged without eyes: framing, colours, order, the guard.

Over 600 lines: all of them draw the same few run folders.
"""

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import viz.camera as viewpoint
import viz.canvas as canvas
import viz.ground as ground
import viz.marks as marks
import viz.render as render
import viz.series as series
import viz.stage as stage
import viz.survey as survey
from meshes import box_tets
from viz import HdfSeries, PartFrame, PvdSeries, VizError, probe_rendering, render_run
from viz.canvas import Canvas

SIZE = (320, 240)


@pytest.fixture(scope="session")
def drawing():
    status = probe_rendering()
    if not status.ok:
        pytest.skip(status.message)


@pytest.fixture
def fresh_probe():
    render._probe_once.cache_clear()
    yield
    render._probe_once.cache_clear()


def cube_tets(half: float) -> tuple[np.ndarray, np.ndarray]:
    """A cube as five tetrahedra."""
    points = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float) * half
    return points, np.array([[0, 4, 2, 1], [6, 4, 7, 2], [5, 4, 1, 7], [3, 1, 2, 7], [1, 4, 2, 7]])


BOX_FACES = np.array(
    [
        0,
        1,
        3,
        0,
        3,
        2,
        4,
        6,
        7,
        4,
        7,
        5,
        0,
        4,
        5,
        0,
        5,
        1,
        2,
        3,
        7,
        2,
        7,
        6,
        0,
        2,
        6,
        0,
        6,
        4,
        1,
        5,
        7,
        1,
        7,
        3,
    ]
).reshape(12, 3)


def write_run(folder: Path, n_frames: int = 7, *, at_cells: bool = True, force: float = 3.0) -> Path:
    """Write a soft cube that rises 60 mm, a rigid box 80 mm to its right, a huge floor and one contact."""
    points, tets = cube_tets(0.02)
    floor = np.array([[-5, -5, 0], [5, -5, 0], [5, 5, 0], [-5, 5, 0]], dtype=float)
    with PvdSeries(folder / "frames.pvd", folder / "frames") as series:
        series.add_part("cube", points, tets, "tetra")
        series.add_part("box", points, BOX_FACES, "triangle")
        series.add_part("floor", floor, np.array([[0, 1, 2], [0, 2, 3]]), "triangle")
        series.add_part("contacts", None, None, "points")
        for number in range(n_frames):
            lift = np.array([0.0, 0.0, 0.02 + 0.06 * number / max(1, n_frames - 1)])
            stress = np.full(5 if at_cells else 8, 2e4 * number / max(1, n_frames - 1))
            touching = number == 0
            series.write_frame(
                0.04 * number,
                {
                    "cube": PartFrame(
                        points + lift,
                        {"velocity": np.full((8, 3), 0.1)} | ({} if at_cells else {"von_mises": stress}),
                        {"von_mises": stress} if at_cells else {},
                    ),
                    "box": PartFrame(points + lift + [0.08, 0, 0]),
                    "floor": PartFrame(floor + 0.001 * number * np.eye(3)[0]),  # a conveyor: moving, still not framed
                    "contacts": PartFrame(
                        np.full((int(touching), 3), [0.04, 0.0, 0.06]),
                        {"force": np.full((int(touching), 3), [0, 0, force])},
                    ),
                },
            )
    return folder


def an_empty_canvas() -> Canvas:
    return Canvas(viewpoint.View(np.array([0.0, -3.0, 0.0]), np.zeros(3), np.array([0.0, 0.0, 1.0])), (64, 64))


def read_png(path: Path) -> np.ndarray:
    import imageio.v3

    return imageio.v3.imread(path).astype(int)


def is_rigid(picture: np.ndarray) -> np.ndarray:
    """Mask of the bluish grey of the box: darker than the floor, blue above red by the colour's own ratio."""
    red, green, blue = np.moveaxis(picture, -1, 0)
    return (blue > 70) & (blue < 215) & (blue > 1.2 * red) & (blue < 1.6 * red) & (green > red) & (green < blue)


def is_soft(picture: np.ndarray) -> np.ndarray:
    """Mask of the sand colour at the low end of the range: red above blue, little saturated; no arrows."""
    red, green, blue = np.moveaxis(picture, -1, 0)
    return (red > 1.15 * blue) & (green > 0.75 * red)


def test_stills_are_evenly_spaced_first_and_last_included(tmp_path, drawing):
    seen = []
    result = render_run(
        write_run(tmp_path, 11),
        size=SIZE,
        stills=3,
        mp4=False,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert [path.name for path in result.frames] == [f"frame_{i:06d}.png" for i in (0, 5, 10)]
    assert all(path.parent == tmp_path / "pictures" for path in result.frames)
    assert result.mp4 is None and not list(tmp_path.rglob("*.mp4"))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert read_png(result.frames[0]).shape == (240, 320, 3)


def test_every_draws_every_nth_and_the_last(tmp_path, drawing):
    result = render_run(write_run(tmp_path, 8), out=tmp_path / "o", size=SIZE, stills=9, mp4=False, every=3)
    assert [path.name for path in result.frames] == [f"frame_{i:06d}.png" for i in (0, 3, 6, 7)]


def test_film_has_the_frames_size_and_codec(tmp_path, drawing):
    import imageio_ffmpeg

    result = render_run(write_run(tmp_path, 7), size=(321, 239), stills=2, fps=10, speed=0.4)
    assert result.mp4 == tmp_path / "pictures" / "run.mp4"
    command = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-i",
        str(result.mp4),
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    ]
    decoded = subprocess.run(command, capture_output=True, check=True)
    facts = next(line for line in decoded.stderr.decode().splitlines() if "Video:" in line)
    for fact in ("h264", "yuv420p", "322x240", "10 fps"):
        assert fact in facts
    pictures = np.frombuffer(decoded.stdout, np.uint8).reshape(-1, 240, 322, 3).astype(int)
    assert len(pictures) == 7  # 0.24 s, 0.4 times as fast
    assert result.seconds == pytest.approx(0.7)
    for still, picture in zip(result.frames, (pictures[0], pictures[-1]), strict=True):
        assert np.abs(read_png(still) - picture).mean() < 3.0  # the same picture, but for compression
    assert np.abs(pictures[0] - pictures[-1]).mean() > 5.0
    assert not list(tmp_path.rglob("*tmp*"))


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


def test_colours_follow_the_field_on_cells_and_on_points_alike(tmp_path, drawing):
    pictures = []
    for at_cells in (True, False):
        run = write_run(tmp_path / str(at_cells), at_cells=at_cells)
        result = render_run(run, size=SIZE, stills=2, mp4=False, arrows=False)
        pictures.append([read_png(path) for path in result.frames])
    np.testing.assert_array_equal(pictures[0], pictures[1])
    first, last = pictures[0]
    assert is_soft(first)[:, :260].sum() > 500 > 10 * is_soft(last)[:, :260].sum()  # sand at first ...
    dark_blue = (last[..., 2] > 1.5 * last[..., 0]) & (last.sum(axis=-1) < 300)
    assert dark_blue[:, :260].sum() > 500  # ... the dark end at last (the colour bar is right of column 260)


def test_arrows_are_red_and_can_be_left_out(tmp_path, drawing):
    def red(arrows: bool, number: int) -> int:
        result = render_run(run, out=tmp_path / "o", size=SIZE, stills=2, mp4=False, arrows=arrows)
        picture = read_png(result.frames[number])
        return int(((picture[..., 0] > 2 * picture[..., 1]) & (picture[..., 0] > 90)).sum())

    run = write_run(tmp_path / "run")
    assert red(True, 0) > 10
    assert red(True, 1) == 0  # the contact has opened
    assert red(False, 0) == 0


def test_arrow_of_the_largest_force_is_a_sixth_of_the_scene_and_longer_ones_are_cut(tmp_path, drawing):
    found = survey.Survey.of(survey.frames_of(write_run(tmp_path), 1), "von_mises")
    assert found.largest_force == pytest.approx(3.0)
    import pyvista

    arrows = stage.Arrows(an_empty_canvas(), found)
    tail = pyvista.PolyData(np.array([[1.0, 2.0, 3.0], [0, 0, 0], [-5, 0, 0]]))
    tail.point_data["force"] = np.array([[0, 0, 3.0], [1.5, 0, 0], [0, 90.0, 0]])
    arrows.point(tail)
    points = np.asarray(pyvista.wrap(arrows._actor.GetMapper().GetInput()).points)
    upward, impact = points[points[:, 2] > 1.0], points[points[:, 0] < -4.0]
    sideways = points[(points[:, 2] < 1.0) & (points[:, 0] > -4.0)]
    assert np.ptp(impact[:, 1]) == pytest.approx(0.2 * found.size, rel=1e-5)
    assert found.size == pytest.approx(np.sqrt(0.12**2 + 0.04**2 + 0.10**2))
    assert upward[:, 2].max() == pytest.approx(3.0)  # the tip is at the contact
    assert np.ptp(upward[:, 2]) == pytest.approx(0.16 * found.size, rel=1e-5)
    assert sideways[:, 0].max() == pytest.approx(0.0, abs=1e-6)
    assert np.ptp(sideways[:, 0]) == pytest.approx(0.08 * found.size, rel=1e-5)


def test_arrows_are_shorter_where_many_forces_act(tmp_path):
    found = survey.Survey.of(survey.frames_of(write_run(tmp_path), 1), "von_mises")
    assert found.arrow_scale == 0.16 * found.size / 3.0
    many = replace(found, crowd=4.0 * survey.FEW_ARROWS)
    assert many.arrow_scale == 0.5 * found.arrow_scale
    assert survey.Survey.joint([found, many]).arrow_scale == many.arrow_scale
    assert replace(found, largest_force=0.0, crowd=0.0).arrow_scale == 0.0


def test_survey_counts_the_forces_of_the_frame_with_most_of_them():
    import pyvista

    def frame(number: int, forces: list[float]) -> SimpleNamespace:
        contacts = pyvista.PolyData(np.zeros((len(forces), 3)))
        contacts.point_data["force"] = np.outer(forces, [0.0, 0.6, 0.8])
        parts = {"contacts": contacts, "box": pyvista.Cube()}
        return SimpleNamespace(number=number, time=0.1 * number, series=SimpleNamespace(parts=tuple(parts)), read=parts.get)

    found = survey.Survey.of([frame(0, [2.0, 2.0, 1.0]), frame(1, [4.0, np.nan])], "von_mises")
    assert found.largest_force == pytest.approx(4.0)
    assert found.crowd == pytest.approx(5.0 / 4.0)


def test_a_cut_takes_the_colours_of_the_inside(tmp_path):
    """A block whose inside is stressed: its surface says 1, its inside up to 9."""
    block = box_tets((0.1, 0.1, 0.1), 6)
    points, tets = block.points, block.tets
    offset = np.abs(points - (points.min(axis=0) + points.max(axis=0)) / 2)
    depth = offset.max(axis=1) / offset.max()  # 1 on the surface, 0 in the middle
    with PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames") as series:
        series.add_part("block", points, tets, "tetra")
        series.write_frame(0.0, {"block": PartFrame(points, {"von_mises": 1.0 + 12.0 * (1.0 - depth)}, {})})
    frames = survey.frames_of(tmp_path, 1)
    assert survey.Survey.of(frames, "von_mises").limit == pytest.approx(1.0)
    assert survey.Survey.of(frames, "von_mises", inside=True).limit > 8.0


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


def test_a_sharp_edge_keeps_two_normals_and_follows_the_motion(drawing):
    import pyvista

    points, _ = cube_tets(1.0)
    skin = stage.Skin(pyvista.PolyData.from_regular_faces(points, BOX_FACES))
    assert skin.mesh.n_points == 24
    quarter_turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    skin.move(pyvista.PolyData.from_regular_faces(points @ quarter_turn.T + 5.0, BOX_FACES))
    normals = np.asarray(skin.mesh.active_normals)
    np.testing.assert_allclose(np.sort(np.abs(normals), axis=1), np.tile([0, 0, 1.0], (24, 1)), atol=1e-6)
    outward = np.einsum("ij,ij->i", normals, skin.mesh.points - 5.0)
    np.testing.assert_allclose(outward, 1.0, atol=1e-6)


def test_shadow_falls_below_the_body_and_fades_with_height(drawing):
    corners = np.array([[-1, -1, 0], [1, 1, 1.0]])
    floor = ground.Ground(an_empty_canvas(), np.zeros(3), np.array([0, 0, 1.0]), survey.Survey(corners, 1, 1, 1, 2))
    n = floor.PIXELS

    def darkening(height: float) -> np.ndarray:
        patch = np.random.default_rng(0).uniform([1.0, 2.0, height], [1.5, 2.5, height], (5000, 3))
        floor.cast([patch])
        return (floor._bright.reshape(-1, 3) - np.asarray(floor._image.point_data["rgb"]))[:, 0].reshape(n, n)

    low = darkening(0.0)
    row, column = np.unravel_index(np.argmax(low), low.shape)  # rows run along y, columns along x
    at = ((np.array([column, row]) + 0.5) / n * 2 - 1) * floor._half
    assert (at > [0.9, 1.9]).all() and (at < [1.6, 2.6]).all()
    assert darkening(0.5 * floor._reach).max() == pytest.approx(0.5 * low.max(), rel=0.1)
    assert darkening(1.1 * floor._reach).max() < 1.5


@pytest.mark.parametrize(
    ("field", "limit", "expected"),
    [
        ("von_mises", 2.3e4, ("von Mises stress", "kPa", 1e3)),
        ("von_mises", 2.3e6, ("von Mises stress", "MPa", 1e6)),
        ("velocity", 0.5, ("speed", "mm/s", 1e-3)),
        ("contact_force", 12.0, ("contact force", "N", 1.0)),
        ("max_gap_m", 2e-3, ("max gap", "mm", 1e-3)),
        ("damage", 0.2, ("damage", "", 1.0)),
    ],
)
def test_legend_units(field, limit, expected):
    assert stage.legend(field, limit) == expected


def test_wrong_input_gets_a_sentence(tmp_path):
    run = write_run(tmp_path / "run", 2)
    empty = tmp_path / "empty"
    PvdSeries(empty / "frames.pvd", empty / "frames").close()
    (tmp_path / "bare").mkdir()
    for folder, options, message in [
        (tmp_path / "none", {}, "does not exist"),
        (tmp_path / "bare", {}, "holds neither frames.pvd"),
        (empty, {}, "lists no frames"),
        (run, {"field": "von_mizes"}, r"did you mean 'von_mises'\? Present are: velocity, von_mises"),
        (run, {"size": (10, 10)}, "64 to 8192"),
        (run, {"fps": 0}, "fps is 0"),
        (run, {"every": 0}, "every is 0"),
        (run, {"stills": 0, "mp4": False}, "at least one still"),
        (run, {"camera": "back"}, "'iso', 'front', 'side', 'top'"),
        (run, {"camera": [(0, 0, 1), (0, 0, 0)]}, "three 3-vectors"),
        (run, {"camera": [(0, 0, 1), (0, 0, 0), (0, 0, 1)]}, "its own up direction"),
    ]:
        with pytest.raises(VizError, match=message):
            render_run(folder, **options)
    assert not (run / "pictures").exists()
    (run / "frames" / "cube_000001.vtu").unlink()
    with pytest.raises(VizError, match=r"cube_000001\.vtu does not exist"):
        render_run(run)


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "died of SIGSEGV"),
        ("raise RuntimeError('no GL here')", r"status 1 \(RuntimeError: no GL here\)"),
        ("import time; time.sleep(60)", "took longer than"),
    ],
)
def test_a_dying_renderer_becomes_a_sentence_with_the_packages(tmp_path, monkeypatch, fresh_probe, probe, message):
    monkeypatch.setattr(render, "PROBE", probe)
    monkeypatch.setattr(render, "PROBE_SECONDS", 3.0)
    run = write_run(tmp_path, 2)
    with pytest.raises(VizError, match=message) as caught:
        render_run(run)
    assert "apt-get install -y --no-install-recommends libegl1 libgl1-mesa-dri" in str(caught.value)
    assert not (run / "pictures").exists()


def test_probe_runs_once_per_process(monkeypatch, fresh_probe):
    calls = []

    def counted(*arguments, **options):
        calls.append(arguments)
        return subprocess.CompletedProcess(arguments, 0, "", "")

    monkeypatch.setattr(render.subprocess, "run", counted)
    assert probe_rendering().ok and probe_rendering().ok
    assert len(calls) == 1


def test_egl_is_asked_for_only_without_a_display(monkeypatch):
    monkeypatch.setattr(canvas.sys, "platform", "linux")
    monkeypatch.delenv("VTK_DEFAULT_OPENGL_WINDOW", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    assert canvas.render_environment() == {"VTK_DEFAULT_OPENGL_WINDOW": "vtkEGLRenderWindow"}
    monkeypatch.setenv("VTK_DEFAULT_OPENGL_WINDOW", "vtkOSOpenGLRenderWindow")
    assert canvas.render_environment() == {}
    monkeypatch.delenv("VTK_DEFAULT_OPENGL_WINDOW")
    monkeypatch.setenv("DISPLAY", ":0")
    assert canvas.render_environment() == {}


def test_an_interrupted_film_leaves_no_file(tmp_path, drawing):
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        render_run(write_run(tmp_path), size=SIZE, progress=stop)
    assert not list(tmp_path.rglob("*.mp4"))


def test_several_runs_stand_side_by_side_at_the_same_time(tmp_path, drawing):
    """The short run stays at its end while the long one goes on; both share camera and colours."""
    short, long = write_run(tmp_path / "short", 4), write_run(tmp_path / "long", 7)
    result = render_run([short, long], size=SIZE, stills=2, mp4=False, arrows=False)
    assert [path.name for path in result.frames] == ["frame_000000.png", "frame_000006.png"]
    assert all(path.parent == short / "pictures" for path in result.frames)
    assert read_png(result.frames[0]).shape == (240, 640, 3)
    rows = render._side_by_side([survey.frames_of(short, 1), survey.frames_of(long, 1)])
    assert [(a.number, b.number) for a, b in rows] == [(0, 0), (1, 1), (2, 2), (3, 3), (3, 4), (3, 5), (3, 6)]
    with pytest.raises(VizError, match="no run folder"):
        render_run([])


def test_gif_has_all_frames(tmp_path, drawing):
    import imageio.v3

    result = render_run(write_run(tmp_path), size=SIZE, stills=0, mp4=False, gif=True)
    assert result.gif == tmp_path / "pictures" / "run.gif" and result.mp4 is None
    assert imageio.v3.improps(result.gif, index=None).shape[:3] == (7, 240, 320)


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


def test_a_field_that_is_zero_nearly_everywhere_has_a_range(tmp_path):
    points, tets = cube_tets(0.02)
    with PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames") as series:
        series.add_part("cube", points, tets, "tetra")
        for number in range(30):
            values = np.zeros(8)
            values[0] = 7.9 * (number == 29)
            series.write_frame(number, {"cube": PartFrame(points, {"contact_pressure": values})})
    assert survey.Survey.of(survey.frames_of(tmp_path, 1), "contact_pressure").limit == pytest.approx(8.0)


def test_vtkhdf_gives_the_same_picture(tmp_path, drawing):
    pytest.importorskip("h5py")
    points, tets = cube_tets(0.02)
    pictures = []
    for name, kind in (("frames.pvd", PvdSeries), ("frames.vtkhdf", HdfSeries)):
        folder = tmp_path / kind.__name__
        folder.mkdir()
        with kind(folder / name, folder / "frames") as series:
            series.add_part("cube", points, tets, "tetra")
            series.add_part("contacts", None, None, "points")
            for number in range(3):
                contacts = PartFrame(points[:number], {"force": np.ones((number, 3))})
                series.write_frame(number, {"cube": PartFrame(points, {}, {"von_mises": np.arange(5.0)}), "contacts": contacts})
        pictures.append(read_png(render_run(folder, size=SIZE, stills=1, mp4=False).frames[0]))
    np.testing.assert_array_equal(*pictures)


def test_the_range_is_that_of_the_surface_and_says_where_it_ends(tmp_path):
    """A hot inner node and one hot node of twenty on the surface do not set the range."""
    import pyvista

    grid = pyvista.ImageData(dimensions=(6, 6, 6)).to_tetrahedra()
    points = np.asarray(grid.points, dtype=float)
    inner = ((points > 0) & (points < 5)).all(axis=1)
    stress = np.where(inner, 9e6, 1e3)
    stress[np.flatnonzero(~inner)[::20]] = 5e4
    with PvdSeries(tmp_path / "frames.pvd", tmp_path / "frames") as series:
        series.add_part("cube", points, grid.cells.reshape(-1, 5)[:, 1:], "tetra")
        for number in range(3):
            series.write_frame(number, {"cube": PartFrame(points, {"von_mises": stress})})
    found = survey.Survey.of(survey.frames_of(tmp_path, 1), "von_mises")
    assert found.limit == pytest.approx(1e3)
    assert found.beyond  # the colour bar says "≥"


def test_a_film_is_in_real_time_and_shows_each_frame_until_the_next():
    times = list(np.arange(0.0, 2.0 + 1e-9, 0.01))  # 100 frames a second
    numbers = render._film_numbers(times, 25.0, 1.0)
    assert len(numbers) == 51 and numbers[:3] == [0, 4, 8] and numbers[-1] == 200
    assert len(render._film_numbers(times, 25.0, 0.1)) == 501
    slow = render._film_numbers([0.0, 0.1, 0.2], 20.0, 1.0)
    assert slow == [0, 0, 1, 1, 2]
    assert render._film_numbers([0.3], 25.0, 1.0) == [0]


def test_only_frames_of_the_film_are_drawn(tmp_path, drawing):
    seen = []
    run = write_run(tmp_path, 26)  # 1 s at 25 a second
    render_run(run, size=SIZE, stills=2, fps=5, progress=lambda done, total: seen.append(total))
    assert seen[-1] == 6


def test_a_film_is_drawn_with_little_work(tmp_path, drawing, monkeypatch):
    """Counts, since times say little: one window, a picture for each that is new and one of what rests, each file read once."""
    windows, drawn, pixels, files = [], [], [], []
    make, draw, read = Canvas.__init__, Canvas._drawn, series.read_part

    def counted_window(self, *arguments):
        make(self, *arguments)
        windows.append(self)

    def counted_picture(self, rectangle):
        drawn.append(rectangle)
        picture = draw(self, rectangle)
        pixels.append(picture.shape[0] * picture.shape[1])
        return picture

    def counted_file(file):
        files.append(file)
        return read(file)

    monkeypatch.setattr(Canvas, "__init__", counted_window)
    monkeypatch.setattr(Canvas, "_drawn", counted_picture)
    monkeypatch.setattr(series, "read_part", counted_file)
    run = write_run(tmp_path, 26)  # 1 s at 25 a second
    result = render_run(run, size=(640, 480), stills=2, fps=10)
    assert result.seconds == pytest.approx(1.1)
    assert len(windows) == 1
    assert windows[0]._window.GetMultiSamples() == 0  # four samples a pixel take software twice as long as the pass over edges
    assert len(drawn) == 1 + 11  # stills are among the pictures of the film
    assert sum(pixels[1:]) < 0.6 * 11 * 640 * 480  # only what changes
    assert len(files) == len(set(files))


def test_edges_are_smooth(tmp_path, drawing):
    """Across a slanted edge the tones go over, in all pictures; nearly upright edges have no stairs of a whole pixel."""
    import pyvista

    for transparent in (False, True):
        view = viewpoint.View(np.array([0.0, -3.0, 0.0]), np.zeros(3), np.array([0.0, 0.0, 1.0]))
        drawn = Canvas(view, (160, 120), transparent)
        edge = pyvista.PolyData(np.array([[-9.0, 0, -9], [0.1, 0, -9], [-0.3, 0, 9], [-9, 0, 9]]), [4, 0, 1, 2, 3])
        edge.point_data.active_normals = np.tile(np.float32([0, -1, 0]), (4, 1))
        drawn.add(edge, "#000000")
        picture = drawn.whole().astype(float)
        drawn.close()
        dark = 1.0 - picture[..., :3].mean(axis=2) / 255.0 if not transparent else picture[..., 3] / 255.0
        assert dark.max() > 0.9 and dark.min() == 0.0
        # where the edge is, row by row: the shades of its pixels count as parts of one
        place = (dark / dark.max()).sum(axis=1)
        straight = np.polyval(np.polyfit(np.arange(120), place, 1), np.arange(120))
        assert np.abs(place - straight)[4:-4].max() < 0.3  # 0.5 without smoothing


def test_values_of_cells_come_to_points_as_their_mean():
    import pyvista

    grid = pyvista.ImageData(dimensions=(4, 4, 4)).to_tetrahedra()
    values = np.random.default_rng(2).random(grid.n_cells)
    bare = grid.copy()
    bare.clear_data()
    bare.cell_data["values"] = values
    expected = np.asarray(bare.cell_data_to_point_data()["values"])
    np.testing.assert_allclose(survey.to_points(grid, values), expected, rtol=1e-14)


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


def test_transparent_stills_have_no_background_and_films_a_white_one(tmp_path, drawing):
    import imageio.v3

    drawn = render_run(write_run(tmp_path), size=SIZE, stills=1, transparent=True, html=True)
    still = imageio.v3.imread(drawn.frames[0])
    assert still.shape == (240, 320, 4)
    assert (still[5, 160] == [255, 255, 255, 0]).all() or still[5, 160, 3] == 0
    assert (still[..., 3] == 255).mean() > 0.03
    film = imageio.v3.imread(drawn.mp4, index=0)
    assert film[5, 160].min() > 245


def test_the_page_holds_the_pictures_and_their_times(tmp_path, drawing):
    import base64
    import io
    import json

    from PIL import Image

    drawn = render_run(write_run(tmp_path / "lift & hold"), size=SIZE, stills=0, mp4=False, html=True)
    text = drawn.html.read_text(encoding="utf-8")
    times = json.loads(text.partition("const times=")[2].partition(";")[0])
    assert times == pytest.approx([0.04 * k for k in range(7)])
    pictures = [line.strip('",') for line in text.partition("const pictures=[")[2].partition("];")[0].split() if line]
    assert len(pictures) == 7
    assert Image.open(io.BytesIO(base64.b64decode(pictures[3]))).size == SIZE
    assert "lift &amp; hold" in text and "http" not in text and not list(tmp_path.rglob("*.tmp.*"))


def test_colours_and_fields_without_a_choice(tmp_path):
    colours = stage.RigidColours(frozenset({"table"}))
    names = ("gripper", "gripper.left", "table", "peg", "gripper.right")
    assert [colours.of(name) for name in names] == [
        stage.RIGID[0],
        stage.RIGID[0],
        stage.OBSTACLE,
        stage.RIGID[1],
        stage.RIGID[0],
    ]
    line = np.array([[0, 0, 0], [0, 0, 1.0]])
    points, tets = cube_tets(0.02)
    for soft in (False, True):
        folder = tmp_path / str(soft)
        folder.mkdir()
        with PvdSeries(folder / "frames.pvd", folder / "frames") as series:
            series.add_part("rod", line, None, "line")
            parts = {"rod": PartFrame(line, {"radius": np.full(2, 0.01), "tension": np.ones(2)})}
            if soft:
                series.add_part("cube", points, tets, "tetra")
                parts["cube"] = PartFrame(points, {"von_mises": np.ones(8)})
            series.write_frame(0.0, parts)
        assert survey.chosen_field(survey.frames_of(folder, 1)[0]) == ("von_mises" if soft else "tension")
