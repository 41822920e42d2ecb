"""The HTML page about a run: what it says of good, bad, unfinished and damaged runs, and that it needs no other file."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from small_scene import cube_scene, scene_file

import femsim as fs
from femsim.cli import execute
from viz import VizError, probe_rendering, write_report

VOID = {"meta", "img", "br"}


class Tags(HTMLParser):
    """Tables by the heading above them, texts of list items, sources of pictures; tags must close in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.items: list[str] = []
        self.sources: list[str] = []
        self._text = self._heading = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.tables.setdefault(self._heading, []).append([])
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        self._text = ""

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "h2":
            self._heading = self._text
        elif tag in ("td", "th"):
            self.tables[self._heading][-1].append(self._text)
        elif tag == "li":
            self.items.append(self._text)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a scene file."""
    folder = tmp_path_factory.mktemp("ran")
    path = scene_file(folder)
    out = folder / "run"
    assert execute(["run", str(path), "--set", "young_modulus=2e5", "--out", str(out), "--quiet"]) == 0
    return out


@pytest.fixture
def copy(ran: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ran, tmp_path / "run"))


def read(path: Path) -> Tags:
    return Tags(path.read_text(encoding="utf-8"))


def edit_steps(run: Path, column: str, values: dict[int, str]) -> None:
    """Change cells of steps.csv by row number from 0."""
    with (run / "steps.csv").open(newline="") as stream:
        header, *rows = list(csv.reader(stream))
    for row, value in values.items():
        rows[row][header.index(column)] = value
    with (run / "steps.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])


def test_command_writes_a_page_that_needs_no_other_file(copy: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    before = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    status, out, err = call("report", str(copy), "--stills", "2", "--quiet")
    assert (status, out.strip(), err) == (0, str(copy / "report.html"), "")
    assert {p: p.read_bytes() for p in before} == before
    assert {p for p in copy.rglob("*") if p.is_file()} - before.keys() == {copy / "report.html"}
    page = read(copy / "report.html")
    assert page.sources and all(source.startswith("data:image/") for source in page.sources)
    kinds = [source.split(";")[0] for source in page.sources]
    assert kinds.count("data:image/svg+xml") == 4  # forces, solver, energy, penetration
    if probe_rendering().ok:
        assert kinds.count("data:image/png") == 2 and page.items == []


def test_numbers_of_the_page_are_those_of_the_run(copy: Path) -> None:
    edit_steps(copy, "max_penetration_m", {0: "1e-9", 1: "1e-9", 2: "0.0025", 3: "1e-9"})
    page = read(write_report(copy, stills=0))
    assert ["young_modulus", "200000", "Pa"] in page.tables["Parameters"]
    (row,) = (row for row in page.tables["Health"] if row[0] == "penetration")
    assert row == ["penetration", "2.5", "1e-06", "mm", "0.03"]
    info = json.loads((copy / "run.json").read_text())
    told = {row[0]: row[1] for row in page.tables["To repeat this run"]}
    assert told["command"] == info["command"] and told["version of numpy"] == info["versions"]["numpy"]
    assert told["mesh of cube, digest"] == info["bodies"]["cube"]["mesh"]["digest"]
    stages = {row[0]: row[1] for row in page.tables["Timings"][1:]}
    assert stages == {name: f"{info['timings_s'][name]:.4g}" for name in ("assemble", "detect", "solve", "measure", "record")}
    assert "rubber" in next(row for row in page.tables["Bodies"] if row[0] == "cube")[3]
    assert page.items == []


def test_a_body_is_made_of_the_materials_of_its_regions_too(copy: Path) -> None:
    info = json.loads((copy / "run.json").read_text())
    info["bodies"]["cube"]["regions"] = {"base": {"name": "pla", "young_modulus_Pa": 3.5e9, "elements": 12}}
    (copy / "run.json").write_text(json.dumps(info))
    made = next(row for row in read(write_report(copy, stills=0)).tables["Bodies"] if row[0] == "cube")[3]
    assert "rubber" in made and made.endswith("; region base: name pla, young_modulus_Pa 3.5e+09, elements 12")


def test_the_health_verdict_comes_first(copy: Path) -> None:
    text = write_report(copy, stills=0).read_text(encoding="utf-8")
    assert text.index('<p>Health: <span class="good">good</span></p>') < text.index("<p><span class=")
    info = json.loads((copy / "run.json").read_text())
    reasons = [{"sentence": "wrong: box & wall are <3 mm in each other"}, {"sentence": "doubtful: it creeps"}]
    health = info["health"] | {"verdict": "wrong", "reasons": reasons}
    (copy / "run.json").write_text(json.dumps(info | {"health": health, "notes": ["the time step is 10 s"]}))
    page = write_report(copy, stills=0)
    assert '<p>Health: <span class="bad">wrong</span></p>' in page.read_text(encoding="utf-8")
    assert read(page).items == ["wrong: box & wall are <3 mm in each other", "doubtful: it creeps", "the time step is 10 s"]


def test_steps_that_failed_are_warned_of(copy: Path) -> None:
    edit_steps(copy, "converged", {1: "0", 3: "0"})
    edit_steps(copy, "inverted_elements", {2: "5"})
    info = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(info | {"status": "not converged", "message": "2 of <4> steps stopped."}))
    page = read(write_report(copy, stills=0))
    assert page.items == [
        "The run is not converged: 2 of <4> steps stopped.",
        "2 of 4 steps did not converge: steps 2, 4 (first at 0.02 s, last at 0.04 s).",
        "1 of 4 steps ended with inverted elements; at most 5 at once: steps 3 (first at 0.03 s, last at 0.03 s).",
    ]


def test_a_killed_run_without_frames_is_told_as_it_is(copy: Path) -> None:
    info = json.loads((copy / "run.json").read_text())
    kept = {name: value for name, value in info.items() if name not in ("timings_s", "health", "solver", "friction")}
    (copy / "run.json").write_text(json.dumps(kept | {"status": "running", "message": ""}))
    (copy / "frames.pvd").unlink()
    text = (copy / "steps.csv").read_text()
    (copy / "steps.csv").write_text(text[: text.rindex(",")])  # cut in the last row
    page = read(write_report(copy))
    assert (
        "The run is killed: killed at step 4 of 4" in page.items[0]
        and "neither frames.pvd nor" in page.items[1]
        and len(page.items) == 2
    )
    (copy / "steps.csv").unlink()
    page = read(write_report(copy))
    assert "No tables" in page.items[1] and "Health" not in page.tables and "Parameters" in page.tables


def test_a_run_without_a_scene_file(tmp_path: Path) -> None:
    fs.simulate(cube_scene(), out=tmp_path / "run")
    page = fs.write_report(tmp_path / "run", tmp_path / "page.html", stills=0)
    assert page == tmp_path / "page.html" and not (tmp_path / "run" / "report.html").exists()
    assert "Parameters" not in read(page).tables


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "it has no run.json); give the folder that a run wrote"), ("{", "is no JSON"), ("[1]", "must hold an object")],
)
def test_what_is_no_run_is_refused(content: str | None, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(VizError, match=re.escape(words)):
        write_report(tmp_path)


def test_the_report_of_a_sweep_is_its_plots(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(
        VizError,
        match=re.escape(
            f"the folder of a sweep, not of a run: its runs are in {tmp_path / 'cases'}; draw it by femsim plot {tmp_path}, go"
        ),
    ):
        write_report(tmp_path)


def test_a_calibration_has_its_own_page(tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text("{}")
    with pytest.raises(VizError, match=re.escape(f"of a calibration, not of a run: its page is {tmp_path / 'report.html'}; go")):
        write_report(tmp_path)


def test_wrong_words_of_the_user_are_refused(copy: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    status, _, err = call("report", str(copy), "--field", "von_mise", "--quiet")
    assert status == 2 and "did you mean 'von_mises'" in err and not (copy / "report.html").exists()
    status, _, err = call("report", str(copy), "--stills", "-1")
    assert status == 2 and "stills is -1" in err
    status, _, err = call("report", str(copy), "--out", str(copy / "absent" / "page.html"))
    assert status == 2 and "in a folder that exists" in err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("friction", [1, None, {"surfaces": 3}]), ("friction", 5), ("bodies", {"cube": 3}), ("bodies", {"cube": {"mesh": 1}}),
        ("bodies", {"cube": {"regions": {"base": 1}}}),
        ("timings_s", {"solve": "long", "wall": 10**400}), ("process", 7), ("process", {"step": "x", "pid": 10**400}),
    ],
)  # fmt: skip
def test_values_of_other_kinds_in_run_json_are_passed_over(ran: Path, tmp_path: Path, name: str, value: object) -> None:
    """JSON that can be read, but was edited or comes from elsewhere."""
    copy = tmp_path / "run"
    shutil.copytree(ran, copy)
    info = json.loads((copy / "run.json").read_text())
    status = "running" if name == "process" else info["status"]
    (copy / "run.json").write_text(json.dumps(info | {name: value, "status": status}))
    page = Tags(write_report(copy, stills=0).read_text(encoding="utf-8"))
    assert page.tables
