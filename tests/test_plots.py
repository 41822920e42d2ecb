"""Figures of a run's tables: the right columns, units and refusals."""

import re
from pathlib import Path

import numpy as np
import pytest

from viz import Look, VizError, plot_run, plot_runs, plots
from viz.tables import read_table

FIGURES = ("forces", "torques", "markers", "solver", "energy", "penetration")
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


def test_figures_with_units(tmp_path):
    written = plot_run(write_tables(tmp_path))
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        f"plots/{name}.{ending}" for name in FIGURES for ending in ("png", "svg", "pdf")
    ]
    assert all(path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" for path in written[::3])
    text = {path.stem: svg_text(path) for path in written[1::3]}
    for name, words in {
        "forces": ["left", "base", "force [N]", "time [s]"],
        "torques": ["left", "base", "torque [N m]", "time [s]"],
        "markers": ["marker", "position [mm]", "time [s]"],
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
    for (_, _, y), k in zip(drawn["torques"], (3, 4, 5, 9, 10, 11), strict=True):
        np.testing.assert_allclose(y, np.sin(time * k))
    ((_, _, x),) = drawn["markers"]
    np.testing.assert_allclose(x, 1e3 * time)  # mm
    np.testing.assert_allclose(drawn["solver"][0][2], 5 + np.arange(40) % 3)
    np.testing.assert_allclose(drawn["solver"][1][2], 1e-6 * time)
    np.testing.assert_allclose(drawn["solver"][2][2], 1e-7 * time)
    assert [scale for _, scale, _ in drawn["solver"]] == ["linear", "log", "log"]
    for (_, _, y), power in zip(drawn["energy"], (1, 2, 1), strict=True):
        np.testing.assert_allclose(y, 10.0 * time**power)  # mJ
    ((_, scale, depth),) = drawn["penetration"]
    assert scale == "log"
    np.testing.assert_allclose(depth, np.where(time < 0.1, np.nan, 1e-4))  # mm


@pytest.mark.usefixtures("undrawn")
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
    written = plot_runs(runs, look=Look(formats=("svg",)))
    assert {path.parent for path in written} == {tmp_path / "soft" / "plots"} and len(written) == 6
    assert [[label for label, _ in axis] for axis in drawn["energy"]] == [["soft", "stiff"]] * 3
    np.testing.assert_allclose(drawn["energy"][1][1][1], 3.0 * (0.01 * np.arange(1, 41)) ** 2)
    np.testing.assert_allclose(drawn["penetration"][0][0][1][-1], 1e-4)  # mm
    assert [[label for label, _ in axis] for axis in drawn["forces"]] == [["soft"]] * 6
    text = svg_text(tmp_path / "soft" / "plots" / "solver.svg")
    assert "soft" in text and "stiff" in text
    with pytest.raises(VizError, match="no run folder"):
        plot_runs([])


@pytest.mark.parametrize("several", [False, True])
def test_hundreds_of_sensors_go_on_in_further_figures_without_those_that_stay_zero(several, tmp_path, monkeypatch):
    """Pairs of a hand that never touch; the layout of a figure with 450 panels did not end in ten minutes."""
    time = 0.01 * np.arange(1, 41)
    pairs = [f"a-b{k}_{what}" for k in range(60) for what in ("contacts_1", "slip_mps")]
    moving = [name for name in pairs if "b7_" in name or "b4" in name]  # twelve pairs
    forces = [f"finger{k}_f{axis}_N" for k in range(30) for axis in "xyz"]
    columns = [np.sin(time) if name in moving or "1_f" in name else 0 * time for name in pairs + forces]
    (tmp_path / "other").mkdir()
    run, other = write_tables(tmp_path, sensors=False), write_tables(tmp_path / "other", sensors=False)
    header = ",".join(["time_s", *pairs, *forces])
    np.savetxt(run / "sensors.csv", np.column_stack([time, *columns]), delimiter=",", header=header, comments="")
    drawn = {}
    monkeypatch.setattr(plots, "save_figure", lambda figure, path: drawn.update({path.stem: figure.axes}))
    plot_runs([run, other] if several else [run], look=Look(formats=("svg",)), figures=["gauges", "forces"])
    assert set(drawn) == {"gauges", "gauges_2", "forces"} and [len(drawn[name]) for name in ("gauges", "gauges_2")] == [20, 4]
    assert len(drawn["forces"]) == (9 if several else 3)  # of finger1, finger11 and finger21
    with pytest.raises(VizError, match=r"'gauge'.*gauges"):
        plot_runs([run], figures=["gauge"])
    shown = {axis.get_ylabel() for name in ("gauges", "gauges_2") for axis in drawn[name]}
    assert shown == {f"{name.rpartition('_')[0].replace('_', ' ')} [{name.rpartition('_')[2]}]" for name in moving}


def test_the_same_tables_give_the_same_svg(tmp_path):
    run = write_tables(tmp_path)
    first, second = (plot_runs([run], tmp_path / name, axes=["fx", "x"], look=Look(formats=("svg",))) for name in "12")
    assert [path.name for path in first] == ["forces.svg", "markers.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_an_unfinished_last_line_is_left_out_but_a_broken_middle_is_refused(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("time_s,x\n1,2\n3,4\n5")
    np.testing.assert_array_equal(read_table(table, ("x",))["x"], [2.0, 4.0])
    table.write_text("time_s,x\n1,2\n3,oops\n5,6\n")
    with pytest.raises(VizError, match=r"t\.csv, line 3"):
        read_table(table, ("x",))


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


def test_sensors_axes_and_look_are_chosen(tmp_path, monkeypatch):
    """One column of a paper: the curves asked for, in the size and font asked for, in the formats asked for."""
    drawn, save = {}, plots.save_figure

    def keep(figure, path):
        drawn[path.name] = (figure.get_size_inches() * 25.4, [[line.get_label() for line in axis.lines] for axis in figure.axes],
                            figure.axes[0].yaxis.label.get_size())  # fmt: skip
        save(figure, path)

    monkeypatch.setattr(plots, "save_figure", keep)
    run = write_tables(tmp_path)
    written = plot_runs([run], sensors=["left"], axes=["fz", "tx"], look=Look(85.0, 60.0, 7.0, formats=("pdf", "svg")))
    assert [path.name for path in written] == ["forces.pdf", "forces.svg", "torques.pdf", "torques.svg"]
    size, lines, font = drawn["forces.pdf"]
    np.testing.assert_allclose(size, [85.0, 60.0])
    assert lines == [["$F_z$"]] and font == 7.0
    assert drawn["torques.svg"][1] == [["$M_x$"]]
    plot_runs([run], axes=["x"], look=Look(formats=("png",)))
    assert drawn["markers.png"][1] == [["$x$"]]
    two = plot_runs([run, write_tables_in(tmp_path / "b")], axes=["fx"], look=Look(labels=("soft", "stiff"), formats=("svg",)))
    assert "soft" in svg_text(two[0]) and "stiff" in svg_text(two[0])
    for options, message in (
        ({"sensors": ["lefd"]}, "did you mean 'left'"),
        ({"axes": ["fw"]}, "There are: fx, fy, fz"),
        ({"sensors": ["marker"], "axes": ["fz"]}, "no sensor marker has an axis fz"),
        ({"look": Look(labels=("a", "b"))}, "2 labels are given for 1 run;"),
    ):
        with pytest.raises(VizError, match=message):
            plot_runs([run], **options)
    for wrong, message in (({"width": 8.5}, "8.5 mm; allowed"), ({"font": 99.0}, "99 pt"), ({"formats": ("pfd",)}, "mean 'pdf'")):
        with pytest.raises(VizError, match=message):
            Look(**wrong)


def write_tables_in(folder: Path) -> Path:
    folder.mkdir()
    return write_tables(folder)


def test_fonts_travel_with_svg_and_pdf(tmp_path):
    """The letters of an SVG are in the fonts that it carries; a PDF has its fonts embedded as TrueType."""
    import base64
    import io

    from fontTools.ttLib import TTFont

    written = {path.suffix: path for path in plot_runs([write_tables(tmp_path)], axes=["fx"])}
    svg = written[".svg"].read_text(encoding="utf-8")
    faces = re.findall(r"font-style:(\w+);font-weight:\w+;src:url\(data:font/woff;base64,([^)]+)\)", svg)
    letters = {style: set(TTFont(io.BytesIO(base64.b64decode(data))).getBestCmap()) for style, data in faces}
    assert set(map(ord, "force[N]time.0")) <= letters["normal"] and ord("Q") not in letters["normal"]
    assert {ord("F"), ord("x")} <= letters["italic"]  # of the symbol
    assert len(svg) < 120_000
    pdf = written[".pdf"].read_bytes()
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
