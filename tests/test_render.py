"""What a rendering writes: stills, films and pages, of one run or several, with little work."""

import subprocess

import numpy as np
import pytest
from drawn_runs import SIZE, cube_tets, read_png, write_run

import viz.series as series
import viz.survey as survey
from viz import HdfSeries, PartFrame, PvdSeries, VizError, render_run
from viz.canvas import Canvas
from viz.schedule import film_numbers, nearest_frames


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


def test_several_runs_stand_side_by_side_at_the_same_time(tmp_path, drawing):
    """The short run stays at its end while the long one goes on; both share camera and colours."""
    short, long = write_run(tmp_path / "short", 4), write_run(tmp_path / "long", 7)
    result = render_run([short, long], size=SIZE, stills=2, mp4=False, arrows=False)
    assert [path.name for path in result.frames] == ["frame_000000.png", "frame_000006.png"]
    assert all(path.parent == short / "pictures" for path in result.frames)
    assert read_png(result.frames[0]).shape == (240, 640, 3)
    rows = nearest_frames([survey.frames_of(short, 1), survey.frames_of(long, 1)])
    assert [(a.number, b.number) for a, b in rows] == [(0, 0), (1, 1), (2, 2), (3, 3), (3, 4), (3, 5), (3, 6)]
    with pytest.raises(VizError, match="no run folder"):
        render_run([])


def test_gif_has_all_frames(tmp_path, drawing):
    import imageio.v3

    result = render_run(write_run(tmp_path), size=SIZE, stills=0, mp4=False, gif=True)
    assert result.gif == tmp_path / "pictures" / "run.gif" and result.mp4 is None
    assert imageio.v3.improps(result.gif, index=None).shape[:3] == (7, 240, 320)


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


def test_a_film_is_in_real_time_and_shows_each_frame_until_the_next():
    times = list(np.arange(0.0, 2.0 + 1e-9, 0.01))  # 100 frames a second
    numbers = film_numbers(times, 25.0, 1.0)
    assert len(numbers) == 51 and numbers[:3] == [0, 4, 8] and numbers[-1] == 200
    assert len(film_numbers(times, 25.0, 0.1)) == 501
    slow = film_numbers([0.0, 0.1, 0.2], 20.0, 1.0)
    assert slow == [0, 0, 1, 1, 2]
    assert film_numbers([0.3], 25.0, 1.0) == [0]


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
