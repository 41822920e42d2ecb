"""The series opened by the real program; skipped where ParaView is absent."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from paraview_runs import run_in_paraview
from small_frames import TET_POINTS, make_frame, make_series

from viz import PartFrame, PvdSeries, VizError, write_paraview_script
from viz.camera import placed_camera
from viz.survey import Survey, frames_of


def test_paraview_opens_the_series(tmp_path):
    times = [0.0, 0.1 + 0.2, 0.5, 2.25]
    with make_series(tmp_path) as series:
        for number, time in enumerate(times):
            series.write_frame(time, make_frame(number))
    result_file = tmp_path / "result.json"
    series_file = tmp_path / "frames" / "ball.vtu.series"
    run_in_paraview([str(tmp_path / "frames.pvd"), str(series_file), str(result_file)], tmp_path)
    result = json.loads(result_file.read_text())

    assert result["pvd"]["times"] == times
    assert result["series"]["times"] == times
    for number, blocks in enumerate(result["pvd"]["frames"]):
        frame = make_frame(number)
        assert list(blocks) == ["ball", "pad", "contacts"]
        n_contacts = number % 3
        assert [blocks[name]["points"] for name in blocks] == [5, 4, n_contacts]
        assert [blocks[name]["cells"] for name in blocks] == [2, 2, n_contacts]
        assert blocks["ball"]["arrays"] == {
            "point velocity": [3, 5],
            "point marker": [1, 5],
            "cell von_mises": [1, 2],
        }
        assert blocks["contacts"]["arrays"] == {
            "point force": [3, n_contacts],
            "point gap": [1, n_contacts],
            "point state": [1, n_contacts],
        }
        points = np.asarray(frame["ball"].points)
        expected = np.column_stack([points.min(axis=0), points.max(axis=0)]).ravel()
        np.testing.assert_allclose(blocks["ball"]["bounds"], expected, rtol=1e-15)
        np.testing.assert_allclose(result["series"]["frames"][number]["only"]["bounds"], expected, rtol=1e-15)


def write_run(folder: Path) -> Path:
    """A run with a soft body, a rod and one contact."""
    with PvdSeries(folder / "frames.pvd", folder / "frames") as series:
        series.add_part("ball", TET_POINTS, np.array([[0, 1, 2, 3], [1, 2, 3, 4]]), "tetra")
        series.add_part("rod", TET_POINTS, None, "line")
        series.add_part("contacts", None, None, "points")
        for number in range(2):
            fields = {"radius": np.full(5, 0.1), "von_mises": np.arange(5.0)}
            frame = {
                "ball": PartFrame(TET_POINTS, {}, {"von_mises": np.array([1.0, 2.0])}),
                "rod": PartFrame(TET_POINTS + 2.0, fields),
                "contacts": PartFrame(TET_POINTS[:number], {"force": np.ones((number, 3))}),
            }
            series.write_frame(number, frame)
    return folder


def test_the_script_names_each_part_its_file_and_where_its_field_is(tmp_path):
    path = write_paraview_script(write_run(tmp_path))
    assert path == tmp_path / "show_in_paraview.py"  # not paraview.py, which would hide the module
    text = path.read_text()
    compile(text, str(path), "exec")
    for part in (
        ("ball", "tetra", "frames/ball.vtu.series", "CELLS"),
        ("rod", "line", "frames/rod.vtp.series", "POINTS"),
        ("contacts", "contacts", "frames/contacts.vtp.series", ""),
    ):
        assert repr(part) in text and (tmp_path / part[2]).is_file()
    survey = Survey.of(frames_of(tmp_path, 1), "von_mises")
    assert f"ARROW_SCALE = {survey.arrow_scale!r}  " in text and "ScaleFactor = ARROW_SCALE" in text and survey.arrow_scale > 0.0
    view = placed_camera("iso", survey.framed, 4 / 3)
    assert f"CameraPosition = {view.position.tolist()!r}" in text and "'von Mises stress [Pa]'" in text
    assert 'Format="t = {time:.3f} s"' in text
    with pytest.raises(VizError, match="did you mean 'von_mises'"):
        write_paraview_script(tmp_path, "von_mses")


def test_paraview_runs_the_script(tmp_path):
    """From another folder, with the run folder moved. Drawing needs an X server with Debian's ParaView; skipped without one."""
    run = write_paraview_script(write_run(tmp_path / "written"))
    run = (tmp_path / "written").rename(tmp_path / "moved") / run.name
    server, program = shutil.which("xvfb-run"), shutil.which("pvbatch")
    if server is None or program is None:
        pytest.skip("pvbatch or xvfb-run is not on the PATH")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "DISPLAY"))}
    environment["PICTURE"] = str(tmp_path / "picture.png")
    # ParaView opens and closes the display, and a server that starts again when the last one left refuses whoever comes meanwhile
    command = [server, "-a", "-s", "-screen 0 1280x1024x24 -noreset", program, str(run)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, cwd="/")
    if "bad X server connection" in child.stderr:
        pytest.skip("no X server could be started")
    assert child.returncode == 0 and "Traceback" not in child.stdout + child.stderr, child.stdout + child.stderr
    import imageio.v3

    picture = imageio.v3.imread(tmp_path / "picture.png")[..., :3].astype(int)
    red = (picture[..., 0] > 100) & (picture[..., 1] < 60) & (picture[..., 2] < 80)
    assert picture.shape[:2] == (960, 1280) and red.sum() > 50  # the arrow of the contact force
    rows, columns = np.nonzero((picture[80:880, 160:1100] < 240).any(axis=2))  # without clock, axes and colour bar
    assert np.ptp(rows) > 400 or np.ptp(columns) > 400  # the bodies fill the picture
    assert (picture[:60, :200] < 100).all(axis=2).sum() > 50  # the time
