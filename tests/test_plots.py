"""Figures of a run's tables: the right columns, units and refusals."""

import re
from pathlib import Path

import numpy as np
import pytest

from viz import VizError, plot_run, plot_runs, plots
from viz.plots import _read_table

STEPS = (
    "step,time_s,contacts,iterations,dynamics_residual,contact_residual,step_norm,max_penetration_m,"
    "kinetic_energy_J,elastic_energy_J,work_J"
)


def write_tables(folder: Path, *, sensors: bool = True, energy: float = 1.0) -> Path:
    time = 0.01 * np.arange(1, 41)
    columns = [np.arange(40), time, 0 * time, 5 + np.arange(40) % 3, 1e-6 * time, 1e-7 * time, time]
    columns += [np.where(time < 0.1, 0.0, 1e-7), energy * time, energy * time**2, energy * time]
    np.savetxt(folder / "steps.csv", np.column_stack(columns), delimiter=",", header=STEPS, comments="")
    if sensors:
        names = [f"{s}_{c}" for s in ("left", "base") for c in ("fx_N", "fy_N", "fz_N", "tx_Nm", "ty_Nm", "tz_Nm")]
        table = np.column_stack([time, *(np.sin(time * k) for k in range(12))])
        header = ",".join(["time_s", *names, "marker_x_m"])
        np.savetxt(folder / "sensors.csv", np.column_stack([table, time]), delimiter=",", header=header, comments="")
    return folder


def svg_text(path: Path) -> str:
    return " ".join(re.findall(r">([^<>\n]+)<", path.read_text()))


def test_four_figures_with_units(tmp_path):
    written = plot_run(write_tables(tmp_path))
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        f"plots/{name}.{ending}" for name in ("forces", "solver", "energy", "penetration") for ending in ("png", "svg", "pdf")
    ]
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in written[::3])
    text = {path.stem: svg_text(path) for path in written[1::3]}
    for name, words in {
        "forces": ["left", "base", "force [N]", "time [s]"],
        "solver": ["iterations [1]", "residual [1]", "dynamics", "contact", "time [s]"],
        "energy": ["energy [J]", "kinetic", "elastic", "work", "time [s]"],
        "penetration": ["largest penetration [mm]", "time [s]"],
    }.items():
        for word in words:
            assert word in text[name], (name, word)
    assert "marker" not in text["forces"]


def test_curves_are_the_columns(tmp_path, monkeypatch):
    """Each line drawn is its column in the unit of its axis; zeros are gaps on logarithmic axes."""
    drawn = {}

    def keep(figure, path):
        drawn[path.stem] = [
            (line.get_label(), axis.get_yscale(), np.asarray(line.get_ydata(), dtype=float))
            for axis in figure.axes
            for line in axis.lines
        ]

    monkeypatch.setattr(plots, "save_figure", keep)
    plot_run(write_tables(tmp_path, energy=0.01))
    time = 0.01 * np.arange(1, 41)
    assert [label for label, _, _ in drawn["forces"]] == ["$F_x$", "$F_y$", "$F_z$"] * 2
    for (_, scale, y), k in zip(drawn["forces"], (0, 1, 2, 6, 7, 8), strict=True):
        assert scale == "linear"
        np.testing.assert_allclose(y, np.sin(time * k))
    np.testing.assert_allclose(drawn["solver"][0][2], 5 + np.arange(40) % 3)
    np.testing.assert_allclose(drawn["solver"][1][2], 1e-6 * time)
    np.testing.assert_allclose(drawn["solver"][2][2], 1e-7 * time)
    assert [scale for _, scale, _ in drawn["solver"]] == ["linear", "log", "log"]
    for (_, _, y), power in zip(drawn["energy"], (1, 2, 1), strict=True):
        np.testing.assert_allclose(y, 10.0 * time**power)  # mJ
    ((_, scale, depth),) = drawn["penetration"]
    assert scale == "log"
    np.testing.assert_allclose(depth, np.where(time < 0.1, np.nan, 1e-4))  # mm


def test_without_sensors_and_elsewhere(tmp_path):
    written = plot_run(write_tables(tmp_path, sensors=False), tmp_path / "a" / "b")
    assert sorted(path.name for path in written) == sorted(
        f"{name}.{ending}" for name in ("solver", "energy", "penetration") for ending in ("png", "svg", "pdf")
    )
    assert all(path.parent == tmp_path / "a" / "b" for path in written)


def test_several_runs_are_laid_over_each_other(tmp_path, monkeypatch):
    """A panel a quantity, a curve a run that has it, in the unit of the axis."""
    (tmp_path / "soft").mkdir()
    (tmp_path / "stiff").mkdir()
    runs = [write_tables(tmp_path / "soft"), write_tables(tmp_path / "stiff", sensors=False, energy=3.0)]
    drawn, save = {}, plots.save_figure

    def keep(figure, path):
        drawn[path.stem] = [[(line.get_label(), line.get_ydata()) for line in axis.lines] for axis in figure.axes]
        save(figure, path)

    monkeypatch.setattr(plots, "save_figure", keep)
    written = plot_runs(runs)
    assert {path.parent for path in written} == {tmp_path / "soft" / "plots"} and len(written) == 12
    assert [[label for label, _ in axis] for axis in drawn["energy"]] == [["soft", "stiff"]] * 3
    np.testing.assert_allclose(drawn["energy"][1][1][1], 3.0 * (0.01 * np.arange(1, 41)) ** 2)
    np.testing.assert_allclose(drawn["penetration"][0][0][1][-1], 1e-4)  # mm
    assert [[label for label, _ in axis] for axis in drawn["forces"]] == [["soft"]] * 6
    text = svg_text(tmp_path / "soft" / "plots" / "solver.svg")
    assert "soft" in text and "stiff" in text
    with pytest.raises(VizError, match="no run folder"):
        plot_runs([])


def test_the_same_tables_give_the_same_svg(tmp_path):
    run = write_tables(tmp_path)
    first = [path.read_bytes() for path in plot_run(run, tmp_path / "1") if path.suffix == ".svg"]
    second = [path.read_bytes() for path in plot_run(run, tmp_path / "2") if path.suffix == ".svg"]
    assert first == second


def test_an_unfinished_last_line_is_left_out_but_a_broken_middle_is_refused(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("time_s,x\n1,2\n3,4\n5")
    np.testing.assert_array_equal(_read_table(table, ("x",))["x"], [2.0, 4.0])
    table.write_text("time_s,x\n1,2\n3,oops\n5,6\n")
    with pytest.raises(VizError, match=r"t\.csv, line 3"):
        _read_table(table, ("x",))


def test_wrong_input_gets_a_sentence(tmp_path):
    with pytest.raises(VizError, match="does not exist"):
        plot_run(tmp_path / "none")
    with pytest.raises(VizError, match=r"steps\.csv does not exist"):
        plot_run(tmp_path)
    (tmp_path / "steps.csv").write_text(STEPS.replace("work_J", "warmth") + "\n")
    with pytest.raises(VizError, match=r"lacks the columns \['work_J'\]"):
        plot_run(tmp_path)
    (tmp_path / "steps.csv").write_text(STEPS + "\n")
    with pytest.raises(VizError, match="no rows"):
        plot_run(tmp_path)
    (tmp_path / "steps.csv").write_text("")
    with pytest.raises(VizError, match="lacks the columns"):
        plot_run(tmp_path)
