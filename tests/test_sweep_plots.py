"""Figures of a sweep: what is drawn, and refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from command_line import Call

from viz import VizError, plot_sweep, sweep_plots


def sweep_folder(folder: Path, columns: dict[str, Any], varied: list[str], metrics: list[str]) -> Path:
    table = pandas.DataFrame({"status": "converged"} | columns)
    table.to_parquet(folder / "results.parquet", index=False)
    (folder / "sweep.json").write_text(json.dumps({"varied": varied, "metrics": dict.fromkeys(metrics, "max(x)")}))
    return folder


def grid(folder: Path) -> Path:
    """Two parameters on a grid of 4 x 3, the second one of a name that the table has already; a failed case beside them."""
    x, y = (a.ravel() for a in np.meshgrid([1.0, 10.0, 100.0, 1000.0], [0.1, 0.2, 0.3], indexing="ij"))
    columns = {"stiffness": [*x, 5.0], "parameter_case": [*y, 7.0], "force": [*(x * y), np.nan], "case": range(13)}
    return sweep_folder(folder, columns | {"status": ["converged"] * 12 + ["failed"]}, ["stiffness", "case"], ["force"])


def names(paths: list[Path]) -> list[str]:
    assert all(path.stat().st_size > 1000 for path in paths)
    return [path.name for path in paths]


def words(path: Path) -> list[str]:
    return re.findall(r">([^<>\n]+)<", path.read_text())


def test_a_grid_gives_curves_a_map_parallel_coordinates_and_pairs(tmp_path: Path) -> None:
    written = plot_sweep(grid(tmp_path))
    want = [f"{name}.{ending}" for name in ("curves", "map_force", "parallel", "pairs") for ending in ("png", "svg", "pdf")]
    assert names(written) == want and {path.parent for path in written} == {tmp_path / "plots"}
    curves = words(tmp_path / "plots" / "curves.svg")
    assert {"stiffness", "force", "parameter_case 0.1", "parameter_case 0.3"} <= set(curves)
    assert "parameter_case 7" not in curves  # the failed case
    assert "(log)" in words(tmp_path / "plots" / "parallel.svg")


def test_what_is_drawn_is_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {}
    monkeypatch.setattr(sweep_plots, "save_figure", lambda figure, path: drawn.setdefault(path.stem, figure))
    plot_sweep(grid(tmp_path))
    lines = drawn["curves"].axes[0].get_lines()
    assert drawn["curves"].axes[0].get_xscale() == "log" and len(lines) == 3
    for line, y in zip(lines, (0.1, 0.2, 0.3), strict=True):
        np.testing.assert_allclose(line.get_xydata(), [[x, x * y] for x in (1, 10, 100, 1000)])
    mesh = drawn["map_force"].axes[0].collections[0].get_array()
    np.testing.assert_allclose(np.reshape(mesh, (3, 4)), np.outer([0.1, 0.2, 0.3], [1, 10, 100, 1000]))
    (paths,) = drawn["parallel"].axes[0].collections
    first, last = paths.get_segments()[0], paths.get_segments()[-1]
    np.testing.assert_allclose(first, [[0, 0], [1, 0], [2, 0]])
    np.testing.assert_allclose(last, [[0, 1], [1, 1], [2, 1]])
    points = drawn["pairs"].axes[3].collections[0].get_offsets()  # second row, first column
    np.testing.assert_allclose(points, [(x, y) for x in (1, 10, 100, 1000) for y in (0.1, 0.2, 0.3)])
    axis = drawn["pairs"].axes[3]  # lines of the grid cut through its dots
    assert axis.collections[0].get_zorder() > axis.xaxis.get_zorder()


def test_cases_that_are_wrong_by_their_health_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were drawn as the others are."""
    drawn: dict[str, Any] = {}
    monkeypatch.setattr(sweep_plots, "save_figure", lambda figure, path: drawn.setdefault(path.stem, figure))
    x, y = (a.ravel() for a in np.meshgrid([1.0, 2.0, 3.0], [5.0, 6.0], indexing="ij"))
    columns = {"x": x, "y": y, "f": x * y, "verdict": ["good", "wrong", "doubtful", "good", "good", "good"]}
    plot_sweep(sweep_folder(tmp_path, columns, ["x", "y"], ["f"]))
    where = {"curves": (0, (1.0, 6.0)), "map_f": (0, (0.5, 1.5)), "pairs": (3, (1.0, 6.0))}
    for name, (axis, place) in where.items():
        (ring,) = [line for line in drawn[name].axes[axis].get_lines() if line.get_label() == "wrong by its health"]
        assert ring.get_markerfacecolor() == "none" and np.array_equal(ring.get_xydata(), [place]), name
    (paths,) = drawn["parallel"].axes[0].collections
    assert [dashes is not None for _, dashes in paths.get_linestyle()] == [False, True] + 4 * [False]
    for name, figure in drawn.items():
        assert "wrong by its health" in [text.get_text() for legend in figure.legends for text in legend.get_texts()], name
    drawn.clear()
    plot_sweep(sweep_folder(tmp_path, columns | {"verdict": "good"}, ["x", "y"], ["f"]))
    assert not drawn["map_f"].legends and not drawn["pairs"].legends


def test_samples_give_points_and_words_give_lines(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 40))
    columns = {"a": a, "b": b, "kind": ["x", "y"] * 20, "f": a + b, "g": a * b}
    folder = sweep_folder(tmp_path, columns, ["a", "b", "kind"], ["f", "g"])
    assert names(plot_sweep(folder, tmp_path / "elsewhere"))[::3] == ["curves.png", "parallel.png", "pairs.png"]
    folder = sweep_folder(tmp_path, {"a": np.r_[a[:5], a[:5]], "kind": ["x"] * 5 + ["y"] * 5, "f": b[:10]}, ["a", "kind"], ["f"])
    plot_sweep(folder)
    assert {"kind x", "kind y"} <= set(words(tmp_path / "plots" / "curves.svg"))


@pytest.mark.parametrize("size", [1e-15, 1.0, 1e9])
def test_no_power_of_ten_lies_on_the_names_of_pairs(size: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = {}
    monkeypatch.setattr(sweep_plots, "save_figure", lambda figure, path: drawn.setdefault(path.stem, figure))
    values = size * np.array([0.5, 1.0, 1.5, 2.5])
    columns = {"width": [1.0, 2.0, 3.0, 4.0], "error": values, "case": range(4)}
    plot_sweep(sweep_folder(tmp_path, columns, ["width", "error"], ["case"]))
    figure = drawn["pairs"]
    figure.draw_without_rendering()
    axes = [axis for one in figure.axes if one.get_visible() for axis in (one.xaxis, one.yaxis)]
    assert len(axes) == 12 and not any(axis.get_offset_text().get_text() for axis in axes)
    ticks = [float(tick.get_text()) for tick in figure.axes[3].get_yticklabels()]
    assert min(ticks) <= values[1] and max(ticks) >= values[2] and len(set(ticks)) == len(ticks)


def test_one_parameter_with_one_metric_is_a_curve(tmp_path: Path) -> None:
    folder = sweep_folder(tmp_path, {"a": [1.0, 2.0, 3.0], "f": [1.0, 4.0, 9.0]}, ["a"], ["f"])
    assert names(plot_sweep(folder)) == ["curves.png", "curves.svg", "curves.pdf"]


@pytest.mark.parametrize(("highest", "ticks"), [(8.0, {"1", "2", "5"}), (1.2, {"1", "1.1", "1.2"})])
def test_a_short_logarithmic_axis_has_plain_numbers(highest: float, ticks: set[str], tmp_path: Path) -> None:
    a = np.geomspace(1.0, highest, 5)
    folder = sweep_folder(tmp_path, {"a": a, "f": 700.0 * a}, ["a"], ["f"])
    (folder / "sweep.json").write_text(json.dumps({"varied": ["a"], "metrics": {"f": "max(x)"}, "scales": {"a": "log"}}))
    plot_sweep(folder)
    curves = words(folder / "plots" / "curves.svg")
    assert ticks <= set(curves) and not [word for word in curves if "10" in word and "\N{MULTIPLICATION SIGN}" in word]


@pytest.mark.parametrize(
    ("columns", "lacks"),
    [
        ({"a": [1.0, 2.0], "f": [1.0, 2.0], "status": ["failed", "not run"]}, "finished case"),
        ({"a": [1.0, 2.0], "f": [np.nan, np.nan]}, "metric with a value"),
        ({"a": ["x", "y"], "f": [1.0, 2.0]}, "number that varies"),
    ],
)
def test_nothing_to_draw_is_said(tmp_path: Path, columns: dict[str, Any], lacks: str) -> None:
    with pytest.raises(VizError, match=f"has no {lacks}"):
        plot_sweep(sweep_folder(tmp_path, columns, ["a"], ["f"]))


def test_no_sweep_is_said(tmp_path: Path) -> None:
    with pytest.raises(VizError, match="has no table of a sweep"):
        plot_sweep(tmp_path)
    (tmp_path / "sweep.json").write_text('{"status": "running"}')
    with pytest.raises(VizError, match=r"was killed before it wrote a table; go on by femsim sweep FILE --resume"):
        plot_sweep(tmp_path)


def test_the_command_draws_into_the_folder_that_is_asked_for(tmp_path: Path, call: Call) -> None:
    """Of one sweep; the figures of two have the same names."""
    folder = sweep_folder(tmp_path, {"a": [1.0, 2.0, 3.0], "f": [1.0, 4.0, 9.0]}, ["a"], ["f"])
    out = tmp_path / "elsewhere"
    assert call("plot", str(folder), "--out", str(out), "--formats", "png")[0] == 0
    assert [path.name for path in out.iterdir()] == ["curves.png"] and not (folder / "plots").exists()
    status, _, err = call("plot", str(folder), str(folder), "--out", str(out))
    assert status == 2 and "each sweep gets plots of its own; plot one sweep" in err
    for option in ("--sensors", "--axes"):
        status, _, err = call("plot", str(folder), option, "fx")
        assert status == 2 and "these are sweeps, of which metrics are drawn" in err
