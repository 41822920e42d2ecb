"""Renderings that cannot be: wrong input, a renderer that dies, a film that is interrupted."""

import subprocess

import pytest
from drawn_runs import SIZE, write_run

import viz.canvas as canvas
import viz.render as render
from viz import PvdSeries, VizError, probe_rendering, render_run


@pytest.fixture
def fresh_probe():
    render._probe_once.cache_clear()
    yield
    render._probe_once.cache_clear()


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
