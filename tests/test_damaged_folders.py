"""Files of runs and sweeps that were damaged or changed by hand: a sentence, or they are made again; never a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz_doors
import numpy as np
import pandas
import pytest
from fuzz_seeds import seeds
from small_scene import scene_file

import femsim as fs
from femsim.base.errors import InputError
from femsim.run.simulate import Call
from femsim.studies.sweeps.case import read_row
from femsim.studies.sweeps.results import make_table
from femsim.studies.sweeps.sampling import Case
from viz import VizError, plot_sweep
from viz.gate import Gate

ROW: dict[str, Any] = {
    "id": "case", "status": "converged", "message": "", "metrics": {"f": 1.5}, "health": {"verdict": "good"},
    "outputs": {"metrics": {}, "series": [], "fps": 0.0},
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Folder of a run of ten steps from a scene file."""
    file = scene_file(tmp_path, fuzz_doors.DROP)
    fs.simulate(fs.load_scene(file), out=tmp_path / "run", scene_path=file)
    return tmp_path / "run"


def change(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    info = json.loads(path.read_text())
    change(info)
    path.write_text(json.dumps(info))


# ---------------------------------------------------------------------- sweeps


def sweep(folder: Path, **said: Any) -> Path:
    info = {"varied": ["friction"], "metrics": {"f": "max(a_fx_N)"}} | said
    (folder / "sweep.json").write_text(json.dumps(info))
    columns = {"status": ["converged"] * 3, "friction": [0.1, 0.2, 0.3], "f": [1.0, 3.0, 2.0], "word": list("abc")}
    pandas.DataFrame(columns).to_parquet(folder / "results.parquet", index=False)
    return folder


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"varied": 3}, "varied is no list of names"),
        ({"varied": [3]}, "varied is no list of names"),
        ({"metrics": [None]}, "metrics is no list of names"),
        ({"varied": ["speed"]}, "lacks the column 'speed'"),
        ({"metrics": {"g": ""}}, "lacks the column 'g'"),
        ({"metrics": {"word": ""}}, "has no metric with a value"),
    ],
)
def test_words_of_a_sweep_that_do_not_fit_its_table_are_said(said: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(VizError, match=words):
        plot_sweep(sweep(tmp_path, **said))


def test_a_table_of_a_sweep_is_read_in_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = sweep(tmp_path)
    monkeypatch.setattr(pandas, "read_parquet", lambda *_: pytest.fail("a file of others is read in this process"))
    assert plot_sweep(folder)
    data = (folder / "results.parquet").read_bytes()
    for wrong in (b"", data[:-9], data[:40] + bytes(200) + data[240:]):
        (folder / "results.parquet").write_bytes(wrong)
        with pytest.raises(VizError, match="has no table of a sweep"):
            plot_sweep(folder)


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": None}, {"message": 3}, {"metrics": {"f": "much"}}, {"metrics": {"f": 10**30}}, {"metrics": []},
        {"health": None}, {"outputs": {}}, {"outputs": ROW["outputs"] | {"series": [[]]}},
        {"outputs": ROW["outputs"] | {"metrics": None}}, {"outputs": ROW["outputs"] | {"fps": "100"}},
    ],
)  # fmt: skip
def test_a_row_of_a_case_that_is_not_whole_is_none(wrong: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "case.json").write_text(json.dumps(ROW))
    assert read_row(folder) == ROW
    (folder / "case.json").write_text(json.dumps(ROW | wrong))
    assert read_row(folder) is None


def test_a_damaged_health_of_a_case_leaves_gaps_in_the_table() -> None:
    row = ROW | {"health": {"verdict": 3, "reasons": [1], "steps": [], "mean_iterations": "x"}, "wall_s": None, "versions": 7}
    table = make_table([Case(1, "case", {})], {"case": row}, {"f": "max(a_fx_N)"})
    assert table["f"][0] == 1.5 and table["verdict"][0] == "3" and table["verdict_reason"][0] == ""
    assert np.isnan(table["mean_iterations"][0]) and np.isnan(table["wall_s"][0]) and table["steps_done"][0] == 0


# ---------------------------------------------------------------------- runs


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("gravity", lambda info: info["settings"].update(gravity_mps2=["down", 0, 0]), "no numbers for gravity or a mass"),
        ("mass", lambda info: info["bodies"]["ball"].update(mass_kg=None), "no numbers for gravity or a mass"),
        ("nan", lambda info: info["bodies"]["ball"].update(mass_kg=float("nan")), "no numbers for gravity or a mass"),
        ("times", lambda lines: [lines[0], lines[3], *lines[2:]], "its times are not finite and ascending"),
        ("late", lambda lines: [*lines[:-1], "1e308" + lines[-1][lines[-1].index(",") :]], "to 1e.308 s in one step"),
        ("jump", lambda lines: [*lines[:-1], "2147483648" + lines[-1][lines[-1].index(",") :]], "to 2.147e.09 s in one step"),
        ("huge", lambda lines: [*lines[:4], lines[4].rpartition(",")[0] + ",1e200", *lines[5:]], "reaches 1e.200 in wrist_tz"),
    ],
)
def test_a_damaged_run_is_not_compared(run: Path, name: str, wrong: Any, words: str) -> None:
    log = run / "log.csv"
    log.write_text("time,Fx,Fy,Fz\n" + "".join(f"{0.01 * k:.2f},{k % 3}.5,0,1\n" for k in range(12)))
    card = {"time": {"offset": 0.0}}
    fs.compare(run, log, card, sensor="wrist")
    if name in ("times", "late", "jump", "huge"):
        path = run / "sensors.csv"
        path.write_text("\n".join(wrong(path.read_text().splitlines())) + "\n")
    else:
        change(run / "run.json", wrong)
    with pytest.raises(InputError, match=words):
        fs.compare(run, log, card, sensor="wrist")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda info: info["call"].update(stepps=3), "its call cannot be read .unknown 'stepps'"),
        (lambda info: info["call"].update(threads="many"), "its call cannot be read .threads: Input should be"),
        (lambda info: info["call"].update(duration=[]), "its call cannot be read .duration: Input should be"),
        (lambda info: info.update(scene=[]), "does not say what was asked for"),
        (lambda info: info.pop("parameters"), "does not say what was asked for"),
        (lambda info: info["scene"].update(file=3, digest=""), "is not the one that"),
    ],
)
def test_a_run_json_that_was_changed_is_not_gone_on_with(run: Path, wrong: Any, words: str) -> None:
    change(run / "run.json", lambda info: info.update(status="interrupted"))
    change(run / "run.json", wrong)
    with pytest.raises(InputError, match=words):
        fs.resume(run)


def test_run_json_says_the_scene_that_a_forced_run_goes_on_with(run: Path, tmp_path: Path) -> None:
    change(run / "run.json", lambda info: info.update(status="interrupted"))
    file = tmp_path / json.loads((run / "run.json").read_text())["scene"]["file"].rpartition("/")[2]
    file.write_text(file.read_text().replace("1e3", "2e3"))
    mass = json.loads((run / "run.json").read_text())["bodies"]["ball"]["mass_kg"]
    info = fs.resume(run, force=True).info
    assert info["bodies"]["ball"]["mass_kg"] == pytest.approx(2 * mass)
    assert json.loads((run / "run.json").read_text())["bodies"]["ball"]["mass_kg"] == pytest.approx(2 * mass)


def test_damaged_lines_of_the_index_of_frames_are_taken_out(run: Path) -> None:
    whole, path = fs.repair(run), run / "frames.pvd"
    lines = path.read_bytes().splitlines(keepends=True)
    n = sum(b"<DataSet" in line for line in lines)
    k = next(k for k, line in enumerate(lines) if b"<DataSet" in line)
    name = lines[k].partition(b'name="')[2].partition(b'"')[0]
    for wrong in (
        lines[k].replace(b'timestep="', b'timestep="x'), lines[k].replace(name, b"\xff"), lines[k][:20] + b"\n",
        lines[k].replace(b'timestep="', b'timestep="nan" a="').replace(b'nan" a="0', b"nan"),
    ):  # fmt: skip
        path.write_bytes(b"".join([*lines[:k], wrong, *lines[k + 1 :]]))
        assert fs.repair(run) == [f"frames.pvd: damaged lines taken out; {n - 1} are left."]
        assert len(fs.open_frames(run).times) == 11 and fs.repair(run) == whole == []
    path.write_bytes(b"".join([*lines[:k], lines[k].replace(b'file="', b'file="\0'), *lines[k + 1 :]]))
    assert fs.repair(run) == ["frames.pvd: 1 frames taken out whose files are missing or empty."]


# ---------------------------------------------------------------------- the page of a run, and the fuzzer


@pytest.mark.parametrize("path", ["/?token=\udcff", "//[x/?token=1"])
@pytest.mark.parametrize("origin", ["http://localhost:8080", "http://[x"])
def test_a_request_that_is_no_address_is_refused(path: str, origin: str) -> None:
    headers = pytest.importorskip("websockets.datastructures").Headers
    asked = headers({"Host": "localhost:8080", "Origin": origin})
    assert Gate("127.0.0.1").objection(path, asked)


def test_the_fuzzer_starts_from_good_files_of_every_kind(tmp_path: Path) -> None:
    """A kind whose good files are refused would be fuzzed in vain."""
    kinds: dict[str, set[str]] = {}
    for seed in seeds(tmp_path):
        path = tmp_path / seed.name
        path.write_bytes(seed.data)
        if seed.kind in fuzz_doors.DOORS and path.stat().st_size:
            found = kinds.setdefault(seed.kind, set())
            if "read" not in found:
                try:
                    fuzz_doors.read(seed.kind, path)
                    found.add("read")
                except (fs.InputError, fs.MaterialError, VizError) as error:
                    found.add(str(error))
    assert {kind for kind, found in kinds.items() if "read" in found} == set(fuzz_doors.DOORS), kinds


def test_a_call_that_run_json_keeps_is_the_call(run: Path) -> None:
    held = json.loads((run / "run.json").read_text())["call"]
    assert set(held) == set(Call.__dataclass_fields__)
