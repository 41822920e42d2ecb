"""Benchmark of all sizes: its rows run, its verdicts and its table say what was measured."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bench_scale, scale_scenes


def measured(mean: float, **more: Any) -> dict[str, Any]:
    return {
        "mean": mean,
        "median": mean,
        "worst": 2 * mean,
        "bad": 0,
        "solves": 1.0,
        "picked": {"exact": 3},
        "memory": 1.0,
    } | more


@pytest.mark.parametrize(
    "build",
    [
        scale_scenes.box, scale_scenes.gripped_cube, partial(scale_scenes.cable, 10), partial(scale_scenes.rope, 10),
        partial(scale_scenes.pile, 2), partial(scale_scenes.pressed_cube, 3), partial(scale_scenes.mat, 5),
    ],
)  # fmt: skip
def test_rows_are_measured(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_scale, "ROWS", {"tiny": bench_scale.Row("tiny", build, 1.0, 1.0, 1.0, 3, 1)})
    found = bench_scale.measure("tiny")
    assert found["bad"] == 0 and sum(found["picked"].values()) == 3 and found["solves"] >= 1.0
    assert 0.0 < found["median"] <= found["worst"] and found["memory"] > 10.0


def test_scenes_have_the_nodes_that_rows_name() -> None:
    for name, row in bench_scale.ROWS.items():
        if row.nodes and not row.big:
            assert len(row.build().parts[0].nodes) > 0 and row.build().bodies[0].n_v == 3 * row.nodes, name
    assert bench_scale.ROWS["mat"].build().bodies[0].n_v == 3 * 1458


def test_a_row_is_judged_by_the_quiet_machine() -> None:
    """At twice the time that 444f2af took when it was quiet, twice the target will do."""
    row = bench_scale.ROWS["box"]
    assert bench_scale.verdict(0.2, row.must, row.aim, 1.0) == "reached"
    assert bench_scale.verdict(0.5, row.must, row.aim, 1.0) == "2.0 times too much"
    assert bench_scale.verdict(0.5, row.must, row.aim, 2.0) == "reached"
    assert bench_scale.verdict(0.5, row.must, row.aim, 5.0) == "aim reached"
    said = bench_scale.line("box", measured(3.0), measured(2.0 * row.then))
    assert said.split(" | ")[1:3] == ["0.74", "1.48"] and "6.0 times too much" in said and "`exact` 3" in said


def test_the_table_replaces_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{bench_scale.START}\nold\n{bench_scale.END}\nafter\n")
    found = {"cube1k": measured(10.0), "cube10k": measured(10.0 * 10.648**1.2), "output": measured(1.0)}
    bench_scale.write(page, bench_scale.table(found, {}))
    text = page.read_text()
    assert "old" not in text and text.startswith("before\n") and text.endswith(f"{bench_scale.END}\nafter\n")
    assert "n^1.20 from 1000 to 10648" in text and text.count("\n| ") == 5  # two lines of the head
    bench_scale.write(page, "once more")
    assert page.read_text() == f"before\n{bench_scale.START}\nonce more\n{bench_scale.END}\nafter\n"
