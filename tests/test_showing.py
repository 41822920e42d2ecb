"""What objects say of themselves, on a line and in a notebook; plots and film of a run; its table of pandas."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import femsim as fs
from femsim.base.notebook import card
from viz import Look


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> fs.Run:
    return fs.simulate(scene(), out=tmp_path_factory.mktemp("showing") / "press")


def scene() -> fs.Scene:
    made = fs.Scene("press <1>", dt=0.01, duration=0.04, theta=1.0)
    made.add_floor()
    made.add_soft("cube", fs.box_tets((0.04,) * 3, 2), "ecoflex_00_50", position=(0, 0, 0.02))
    made.sensor("below", "floor")
    made.sensor("corner", "cube", kind="marker", node=0)
    return made


def test_every_object_says_on_a_line_what_it_is(run: fs.Run) -> None:
    body = scene().bodies[0]
    swept = fs.SweepResult("converged", "all.", Path("runs/grip"), Path("results.parquet"), {"converged": 8}, 8, 0)
    studied = fs.SensitivityResult("converged", "done.", Path("runs/s"), {}, (), 8, 0, {})
    fitted = fs.CalibrationResult(
        "converged", "done.", Path("runs/beam"), {"stiffness": 1.5, "mass": 2.0}, {"stiffness": (1.4, 1.6)}, {}, np.eye(2), (),
        {}, {}, {}, {}, 1.0, 3, 3,
    )  # fmt: skip
    for thing, words in (
        (scene(), r"<Scene 'press <1>': cube; 0.04 s in steps of 0.01 s>"),
        (run, r"<Run 'press <1>': converged, 4 steps to 0.04 s, health \w+, .*press>"),
        (run.sensors["below"], r"<SensorSeries, 4 steps, force up to [0-9.]+ N, torque up to [0-9.e-]+ N m>"),
        (run.sensors["below"].at(2), r"<SensorSeries, t = 0.03 s, force up to [0-9.]+ N, .*>"),
        (run.markers["corner"], r"<MarkerSeries, 4 steps, moves by [0-9.e-]+ m>"),
        (fs.box_tets((0.04, 0.02, 0.01), 2), r"<TetMesh '.*': \d+ nodes, \d+ tetrahedra, 40 x 20 x 10 mm>"),
        (body, r"<\w+Body 'cube'>"),
        (swept, r"<Sweep 'grip': converged; cases: 8 converged>"),
        (studied, r"<Sensitivity 's': converged; indices of no metric>"),
        (fitted, r"<Calibration 'beam': converged; stiffness = 1.5 \(1.4 to 1.6\); mass = 2 \(-\)>"),
        (fs.make_solver("pgs-ncp"), r"<solver 'pgs-ncp'>"),
        (fs.make_solver("cond", tolerance=1e-4), r"<solver 'cond': tolerance=0.0001>"),
        (fs.open_frames(str(run.folder)), r"<Frames of .*frames.pvd: \d+, parts floor, cube, contacts>"),
        (fs.Profile([0.0, 0.3], [0.0, 5.0]), r"<Profile 0 at 0 s, 5 at 0.3 s>"),
    ):
        assert re.fullmatch(words, repr(thing)), repr(thing)
    largest = np.linalg.norm(run.sensors["below"].force, axis=1).max()
    assert f"force up to {largest:.4g} N" in repr(run.sensors["below"])


def test_scene_and_run_show_themselves_in_a_notebook(run: fs.Run) -> None:
    shown = scene()._repr_html_()
    assert "<b>Scene press &lt;1&gt;</b>" in shown and "<td" in shown and "below (contact)" in shown and "<1>" not in shown
    shown = run._repr_html_()
    assert "converged" in shown and "below (sensors)" in shown and "corner (markers)" in shown and "max penetration" in shown
    assert card("a & b", ("x",), [("<y>",)], ["z"]).count("&") == 3


@pytest.mark.usefixtures("undrawn")
def test_a_run_is_plotted_without_a_folder_too(run: fs.Run, tmp_path: Path) -> None:
    shown = fs.simulate(scene()).plot(sensors=["below"], axes=["fz"])
    assert shown._repr_html_().count("<img") == 1 and 'alt="forces"' in shown._repr_html_()
    assert repr(shown) == "<plots of forces>" and not shown.paths
    kept = run.plot(tmp_path / "figures")
    assert {path.name for path in kept.paths} >= {"forces.svg", "markers.svg", "energy.svg"}
    assert all(path.is_file() for path in kept.paths)
    with pytest.raises(fs.VizError, match="did you mean 'below'"):
        run.plot(sensors=["belov"])


def test_ipython_is_given_figures_as_png(run: fs.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of notebooks that clean HTML show pictures; SVG is HTML."""
    pytest.importorskip("IPython", reason="the extra dev is not installed")
    given: list[object] = []
    monkeypatch.setattr("IPython.display.display", lambda *things: given.extend(things))
    run.plot(sensors=["below"], axes=["fz"])._ipython_display_()
    assert [type(thing).__name__ for thing in given] == ["Image"] and given[0].data.startswith(b"\x89PNG")
    given.clear()
    run.plot(sensors=["below"], axes=["fz"], look=Look(formats=("svg",)))._ipython_display_()
    assert [type(thing).__name__ for thing in given] == ["HTML"] and "image/svg+xml" in given[0].data
    with pytest.raises(fs.InputError, match="png or svg"):
        run.plot(look=Look(formats=("pdf",)))


def test_a_film_is_shown_and_needs_a_folder(run: fs.Run) -> None:
    with pytest.raises(fs.InputError, match="no folder"):
        fs.simulate(scene(), duration=0.01).show()
    if not fs.probe_rendering().ok:
        pytest.skip("no OpenGL on this machine")
    shown = run.show(size=(160, 120))
    assert "<iframe srcdoc=" in shown._repr_html_() and "const times=[" in shown._repr_html_()
    assert not (run.folder / "pictures").exists() if run.folder else False


def test_the_table_of_pandas_has_all_columns_by_time(run: fs.Run) -> None:
    pytest.importorskip("pandas")
    table = run.to_pandas()
    assert table.index.name == "time_s" and len(table) == 4
    np.testing.assert_array_equal(table["below_fz_N"], run.sensors["below"].force[:, 2])
    assert set(table.columns) == set(run.table()) - {"time_s"}


def test_a_table_is_read_by_name_and_can_be_called(run: fs.Run) -> None:
    """Of a run it could only be called, and of a case of run_many only be read."""
    for table in (run.table, pickle.loads(pickle.dumps(run.table))):
        assert list(table) == list(table()) and type(table()) is dict
        np.testing.assert_array_equal(table["below_fz_N"], run.sensors["below"].force[:, 2])
        with pytest.raises(KeyError, match="column of this run 'below_fz' is unknown; did you mean 'below_fz_N'"):
            table["below_fz"]


def test_a_run_may_be_given_where_its_folder_is_asked_for(run: fs.Run, tmp_path: Path) -> None:
    """Reports and plots ended in "expected str, bytes or os.PathLike object, not Run", fs.render_run(run) in "not iterable"."""
    assert fs.write_report(run, tmp_path / "page.html", stills=0).is_file()
    assert {path.name for path in fs.plot_run(run, tmp_path / "plots")} >= {"forces.png"}
    assert fs.render_run(run, out=tmp_path / "pictures", stills=1, mp4=False).frames
    with pytest.raises(fs.InputError, match=r"the run has no folder, from which files are read; give fs\.simulate\(\.\.\., out="):
        fs.write_report(fs.simulate(scene()), tmp_path / "none.html")
