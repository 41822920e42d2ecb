"""Sweep files, cases, metrics, the process of a case, and what a sweep says and writes; clusters are in test_sweep_cluster.py."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import psutil
import pytest
from inline_engine import Inline
from small_scene import scene_file

import femsim as fs
from femsim.studies.sweeps import case as case_module, sampling, sweep as sweep_module
from femsim.studies.sweeps.case import Job, finish_folder, new_row, read_row, run_case, satisfies, work_folder
from femsim.studies.sweeps.file import read_sweep
from femsim.studies.sweeps.folder import begun_folder, check_folder
from femsim.studies.sweeps.metrics import Condition, parse_condition, parse_metric
from femsim.studies.sweeps.process import CaseProcess
from femsim.studies.sweeps.results import make_table, write_table
from femsim.studies.sweeps.sampling import make_cases
from viz.ending import is_locked

ODD = '''"""Goes wrong as it is told."""

import ctypes
import os
import time

import femsim as fs


def build(
    how: str = "well", where: float = 0.0, seed: int = 0, n: int = 1, label: str = "", pair: tuple[float, float] = (0.0, 0.0)
):
    """Go wrong.

    Parameters
    ----------
    how : str
        well, error, crash, lock.
    """
    if how == "error":
        raise ValueError("no such thing")
    if how == "crash":
        os.abort()
    if how == "lock":  # a thread of this process cannot do anything about it
        ctypes.PyDLL(None).sleep(1000)
    if how == "memory":
        kept = bytearray(3 * 10**9)
        time.sleep(1000 + len(kept))
    print("what a scene prints does no harm")
    scene = fs.Scene("odd", dt=0.01, duration=0.03, theta=1.0)
    scene.add_floor()
    rubber = fs.Elastic(1e5, 0.3, 1000.0)
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber, position=(where, 0.0, 0.01))
    scene.sensor("cube", "cube")
    return scene
'''


def write(folder: Path, text: str, name: str = "s.toml", scene: str = ODD) -> Path:
    scene_file(folder, scene, "odd.py")
    path = folder / name
    path.write_text('scene = "odd.py"\n' + text, encoding="utf-8")
    return path


def values(path: Path, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(case.parameters[name] for name in names) for case in make_cases(read_sweep(path), path).cases]


# ------------------------------------------------------------------ cases


def test_the_product_of_axes_lists_and_seeds(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'seeds = 2\ncases = [{label = "a", n = 1}, {label = "b", n = 2}]\n[parameters]\nhow = "well"\n'
        'where = {range = [0.1, 10], count = 3, scale = "log"}\n',
    )
    got = values(path, "label", "n", "where", "seed", "how")
    where = (0.1, 1.0, 10.0)
    want = [(label, n, x, seed, "well") for label, n in (("a", 1), ("b", 2)) for x in where for seed in (0, 1)]
    assert [(a, b, pytest.approx(c), d, e) for a, b, c, d, e in want] == got
    assert [case.number for case in make_cases(read_sweep(path), path).cases] == list(range(1, 13))


@pytest.mark.parametrize("method", ["random", "latin_hypercube", "sobol"])
def test_samples_keep_their_bounds_and_their_seed(tmp_path: Path, method: str) -> None:
    text = (
        f'sampling = {{method = "{method}", count = 64, seed = %d}}\n[parameters]\n'
        'where = {between = [1e-3, 1e3], scale = "log"}\n'
        "n = {between = [1, 4]}\npair = {values = [[0, 0], [1, 2]]}\n"
    )
    got = values(write(tmp_path, text % 1), "where", "n", "pair")
    assert got == values(write(tmp_path, text % 1), "where", "n", "pair")
    assert got != values(write(tmp_path, text % 2), "where", "n", "pair")
    assert len(got) == 128 and {pair for *_, pair in got} == {(0.0, 0.0), (1.0, 2.0)}
    x = np.array([[np.log10(a), b] for a, b, _ in got[:64]])
    assert {type(n) for _, n, _ in got} == {int} and set(x[:, 1]) == {1, 2, 3, 4}
    assert np.all(np.abs(x[:, 0]) <= 3)
    if method != "random":  # one in each of 64 strata, 16 of each whole number
        assert sorted(np.floor((x[:, 0] + 3) / 6 * 64)) == list(range(64))
        assert [int((x[:, 1] == k).sum()) for k in (1, 2, 3, 4)] == [16] * 4


def test_numbers_that_may_be_left_out_are_sampled_too(tmp_path: Path) -> None:
    scene = ODD.replace("n: int = 1", "n: int | None = None").replace("where: float = 0.0", "where: float | None = None")
    text = "sampling.count = 4\n[parameters]\nwhere = {between = [1, 2]}\nn = {between = [3, 4]}\n"
    got = values(write(tmp_path, text, scene=scene), "where", "n")
    assert {n for _, n in got} == {3, 4} and {type(n) for _, n in got} == {int} and all(1.0 <= where <= 2.0 for where, _ in got)
    path = write(tmp_path, "sampling.count = 4\nparameters.pair = {between = [1, 2]}\n")
    with pytest.raises(fs.InputError, match=r"parameters\.pair is sampled, but is no number"):
        values(path, "pair")


def test_whole_numbers_keep_bounds_that_are_none(tmp_path: Path) -> None:
    text = "sampling.count = 64\n[parameters]\nn = {between = [2.3, 9.8], scale = '%s'}\n"
    for scale in ("linear", "log"):
        assert {n for (n,) in values(write(tmp_path, text % scale), "n")} == set(range(3, 10)), scale
        path = write(tmp_path, f"sampling.count = 4\nparameters.n = {{between = [2.3, 2.7], scale = '{scale}'}}\n")
        with pytest.raises(fs.InputError, match=r"parameters\.n is between \[2\.3, 2\.7\], where there is no whole number"):
            values(path, "n")


def test_normal_samples_have_their_mean_and_deviation(tmp_path: Path) -> None:
    path = write(tmp_path, "sampling.count = 4096\nparameters.where = {normal = [5, 2]}\n")
    x = np.array(values(path, "where"))[:, 0]
    assert abs(x.mean() - 5) < 0.01 and abs(x.std() - 2) < 0.01  # a Latin hypercube: far better than 2/64


def test_equal_cases_are_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, "parameters.where = {values = [0.0, 0.1, 0, 0.1]}\n")
    cases = make_cases(read_sweep(path), path)
    assert [case.parameters["where"] for case in cases.cases] == [0.0, 0.1]
    assert cases.duplicates == 2


def one_id(path: Path) -> str:
    (only,) = make_cases(read_sweep(path), path).cases
    return only.id


def test_the_digest_sees_what_numbers_depend_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = one_id(write(tmp_path, "parameters.where = 0.25\n"))
    same = ["parameters.where = 0.25\nparameters.n = 1\n", 'parameters.where = 0.25\nmetrics.a = "max(cube_fx_N)"\n',
            "parameters.where = 0.25\nlimits.time = 5\n"]  # fmt: skip
    other = ["parameters.where = 0.250001\n", "parameters.where = 0.25\nparameters.n = 2\n",
             "parameters.where = 0.25\nsettings.dt = 0.005\n", 'parameters.where = 0.25\nsettings.solver = "cond"\n',
             'parameters.where = 0.25\nstop = ["cube_fz_N > 1"]\n']  # fmt: skip
    assert {one_id(write(tmp_path, text)) for text in same} == {base}
    ids = [one_id(write(tmp_path, text)) for text in other]
    ids.append(one_id(write(tmp_path, "parameters.where = 0.25\n", scene=ODD + "\n# another scene\n")))
    (tmp_path / "note").write_text("one")
    ids.append(one_id(write(tmp_path, 'parameters.where = 0.25\nparameters.label = "note"\n')))
    (tmp_path / "note").write_text("two")
    ids.append(one_id(write(tmp_path, 'parameters.where = 0.25\nparameters.label = "note"\n')))
    beside = ODD.replace('label: str = ""', 'label: str = "note"')  # a file that nobody names
    for text in ("one", "two"):
        (tmp_path / "note").write_text(text)
        ids.append(one_id(write(tmp_path, "parameters.where = 0.25\n", scene=beside)))
    for bound in ("8.8099991", "8.8100009"):
        ids.append(one_id(write(tmp_path, f'parameters.where = 0.25\nstop = ["cube_fz_N > {bound}"]\n')))
    monkeypatch.setattr(sampling, "source_version", lambda: "9.9")
    ids.append(one_id(write(tmp_path, "parameters.where = 0.25\n")))
    assert len({base, *ids}) == len(ids) + 1


# ------------------------------------------------------------------ wrong files

WRONG = [
    ("parameters.pair = [[1]]\n", "parameters.pair is neither a value nor a table with one of values, range"),
    ("parameters.where = {range = ['a', 2], count = 2}\n", "parameters.where.range.1 is 'a', but must be a"),
    ("parameters.wher = 1\n", "parameters.wher: the scene odd.py has no such parameter; did you mean 'where'?"),
    ("parameter.where = 1\n", "parameter: the key is unknown; did you mean 'parameters'?"),
    ("parameters.where = {betwen = [0, 1]}\n", "parameters.where.betwen: the key is unknown; did you mean 'between'?"),
    ("limits.tiem = 1\n", "limits.tiem: the key is unknown; did you mean 'time'?"),
    ("parameters.where = {values = []}\n", "parameters.where has an empty list"),
    ("parameters.where = {values = [1], range = [0, 1]}\n", "give exactly one"),
    ("parameters.where = {range = [0, 1]}\n", "needs count together with range"),
    ("parameters.where = {between = [1, 0]}\n", "the first must be below the second"),
    ("parameters.where = {between = [0, 1]}\n", "samples where, but has no [sampling]"),
    ("sampling.count = 3\n", "no parameter with between or normal"),
    ('sampling = {method = "sobol", count = 100}\nparameters.where = {between = [0, 1]}\n', "only: 64 or 128"),
    ('sampling.count = 3\nparameters.where = {between = [0, 1], scale = "log"}\n', "both must be positive"),
    ('sampling.count = 3\nparameters.label = {between = [0, 1]}\n', "parameters.label is sampled, but is no number"),
    ('parameters.where = "far"\n', "parameter 'where' is 'far', but must be a number"),
    ('metrics.a = "maximum(cube_fx_N)"\n', "whose reduction is unknown; did you mean 'max'?"),
    ('metrics.a = "max cube_fx_N"\n', "write REDUCTION(COLUMN)"),
    ('metrics.a = "max(cube_fx_N, 2, 1)"\n', "ends before it starts"),
    ('metrics.status = "max(cube_fx_N)"\n', "the table has a column of this name already"),
    ('stop = ["cube_fx_N = 2"]\n', "write COLUMN > NUMBER"),
    ("cases = [{where = 1}, {n = 1}]\n", "different parameters"),
    ("cases = [{where = 1}]\nparameters.where = 2\n", "names where in [parameters] and in [[cases]]"),
    ("outputs.frames = [2]\n", "outputs.frames names case 2; allowed are 1 to 1"),
    ("settings.tolerance = -1\n", "settings.tolerance is -1"),
    ("parameters.where = {range = [0, 1], count = 200}\nparameters.n = {range = [1, 101], count = 101}\n",
     "the sweep has 20200 cases, more than 10000; make it smaller, or confirm the number by --yes"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_wrong_files_are_sentences(tmp_path: Path, call: Any, text: str, words: str) -> None:
    path = write(tmp_path, text)
    status, _, error = call("sweep", str(path), "--out", str(tmp_path / "out"))
    assert status == 2 and words in error and str(path.parent) in error, error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_seeds_need_a_seed(tmp_path: Path, call: Any) -> None:
    scene_file(tmp_path)
    (tmp_path / "s.toml").write_text('scene = "small_cube.py"\nseeds = [1]\n')
    status, _, error = call("sweep", str(tmp_path / "s.toml"))
    assert status == 2 and "has no parameter 'seed'" in error


def test_many_cases_may_be_confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MANY_CASES", 3)
    path = write(tmp_path, "parameters.n = {values = [1, 2, 3, 4]}\n")
    with pytest.raises(fs.InputError, match="4 cases, more than 3"):
        make_cases(read_sweep(path), path)
    assert len(make_cases(read_sweep(path), path, many=True).cases) == 4


# ------------------------------------------------------------------ metrics


def test_reductions_and_windows() -> None:
    table = {"time_s": np.array([0.1, 0.2, 0.3, 0.4]), "x": np.array([1.0, -5.0, 2.0, 4.0])}
    want = {
        "max(x)": 4, "min(x)": -5, "mean(x)": 0.5, "median(x)": 1.5, "absmax(x)": 5, "first(x)": 1, "final(x)": 4,
        "rms(x)": np.sqrt(46 / 4), "std(x)": np.sqrt(45 / 4), "mean( x , 0.2, 3e-1 )": -1.5, "final(x, 0, 0.3)": 2,
    }  # fmt: skip
    assert {text: parse_metric(text).value(table) for text in want} == pytest.approx(want)
    late = parse_metric("mean(x, 0.5, 0.6)")
    assert np.isnan(late.value(table)) and late.lacking(table).startswith(
        "no step ends in its window, 0.5 to 0.6 s; the last one"
    )
    assert late.missed_by(0.4) == "its window, 0.5 to 0.6 s, lies outside the run, which lasts 0.4 s" and not late.missed_by(0.5)
    assert parse_metric("max(x)").lacking(table | {"x": np.array([1.0, np.nan, 2.0, 4.0])}) == "x is not finite in some step"
    assert not parse_metric("max(x)").missed_by(0.1) and not parse_metric("max(x)").lacking(table)


def test_conditions() -> None:
    assert parse_condition(" abs(x)>=-1.5e3") == Condition("x", True, ">=", -1500.0)
    assert str(parse_condition("x > 0.04000004")) == "x > 0.04000004" and str(parse_condition("abs(x) < 50")) == "abs(x) < 50"
    row = {"x": -2.0}
    for text, holds in (("x > -3", True), ("x > -2", False), ("x >= -2", True), ("abs(x) < 2", False), ("abs(x) <= 2", True)):
        assert parse_condition(text).holds(row) is holds, text


# ------------------------------------------------------------------ one case


def job(folder: Path, **options: Any) -> Job:
    path = scene_file(folder, ODD, "odd.py")
    defaults: dict[str, Any] = {"parameters": {}, "folder": str(folder / "cases")}
    return Job(**{"case": 1, "id": "0123456789abcdef", "scene": str(path), "source": ODD} | defaults | options)


def test_a_case_keeps_what_was_asked_for(tmp_path: Path) -> None:
    asked = job(tmp_path, metrics={"f": "final(cube_fz_N)", "late": "max(cube_fz_N, 5, 6)"}, series=["cube_fz_N"], fps=100.0)
    row = run_case(asked)
    folder = tmp_path / "cases" / asked.id
    assert row["status"] == "converged" and json.loads(json.dumps(row | {"metrics": {}})) == read_row(folder) | {"metrics": {}}
    run = fs.simulate(fs.load_scene(tmp_path / "odd.py"))
    assert row["metrics"]["f"] == run.sensors["cube"].force[-1, 2] and np.isnan(row["metrics"]["late"])
    assert row["message"].endswith(
        "Metric late has no number: no step ends in its window, 5 to 6 s; the last one ends at 0.03 s."
    )
    series = np.genfromtxt(folder / "series.csv", delimiter=",", names=True)
    assert series.dtype.names == ("time_s", "cube_fz_N")
    np.testing.assert_allclose(series["cube_fz_N"], run.sensors["cube"].force[:, 2], rtol=1e-9)
    assert (folder / "run" / "frames.pvd").is_file()
    assert not [path for path in folder.parent.iterdir() if path != folder]


def test_a_stop_condition_ends_a_case(tmp_path: Path) -> None:
    row = run_case(job(tmp_path, stop=["time_s >= 0.02"]))
    assert row["status"] == "converged" and row["health"]["steps"] == 2
    assert row["message"] == "All 2 steps converged by true residuals. Ended after step 2 of 3: time_s >= 0.02."


def test_a_case_without_its_scene_file_brings_it_along(tmp_path: Path) -> None:
    asked = job(tmp_path)
    (tmp_path / "odd.py").write_text("not this one")
    assert run_case(asked)["status"] == "converged"


def test_another_version_on_a_worker_is_refused(tmp_path: Path) -> None:
    row = run_case(job(tmp_path, version="0.0.1", origin="another:/opt/femsim"))
    assert row["status"] == "failed" and "install the same on both" in row["message"]


def test_a_change_of_femsim_during_a_sweep_is_said(tmp_path: Path) -> None:
    """On one machine there are no two installations to make equal."""
    row = run_case(job(tmp_path, version="0.0.1"))
    assert row["status"] == "failed" and row["message"].startswith("femsim was changed since the sweep began (it was 0.0.1, and")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_a_full_disk_is_said_and_leaves_nothing_behind(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(number, "No space left on device")

    monkeypatch.setattr(case_module, "_write_series", full)
    row = run_case(job(tmp_path, series="all"))
    assert row["status"] == "failed" and row["disk"] and row["again"] and "No space left" in row["message"]
    monkeypatch.setattr(case_module, "finish_folder", full)
    row = run_case(job(tmp_path))
    assert row["disk"] and "cannot be written (No space left on device)" in row["message"]
    assert [path.name for path in (tmp_path / "cases").iterdir()] == ["0123456789abcdef"]


def test_a_folder_finished_twice_is_there_once(tmp_path: Path) -> None:
    asked = job(tmp_path)
    final = tmp_path / "cases" / asked.id
    for number in (1, 2):
        finish_folder(work_folder(final, number), final, new_row(asked) | {"attempts": number})
    assert list(final.parent.iterdir()) == [final]
    assert read_row(final)["attempts"] == 2
    (final / "case.json").write_text('{"half')
    assert read_row(final) is None


def test_a_finished_case_is_enough_only_for_what_it_holds(tmp_path: Path) -> None:
    held = job(tmp_path, metrics={"a": "max(x)"}, series=["x", "y"])
    row = new_row(held) | {"status": "converged"}
    enough = [{"metrics": {}}, {"series": ["y"]}, {"metrics": {"a": "max(x)"}}]
    assert all(satisfies(row, job(tmp_path, **options)) for options in enough)
    lacking = [{"metrics": {"a": "min(x)"}}, {"metrics": {"b": "max(x)"}}, {"series": ["z"]}, {"series": "all"}, {"fps": 10.0}]
    assert not any(satisfies(row, job(tmp_path, **options)) for options in lacking)
    drawn = new_row(job(tmp_path, fps=10.0)) | {"status": "converged"}
    assert [satisfies(drawn, job(tmp_path, fps=fps)) for fps in (0.0, 10.0, 100.0)] == [True, True, False]
    assert not satisfies(row | {"status": "timed out"}, job(tmp_path))
    assert satisfies(row | {"status": "not converged"}, job(tmp_path))
    assert not satisfies(None, job(tmp_path))


@pytest.fixture
def process() -> Iterator[CaseProcess]:
    made = CaseProcess()
    yield made
    made.close()


def test_a_process_survives_errors_crashes_and_hangs(tmp_path: Path, process: CaseProcess) -> None:
    rows = {
        how: process.run(job(tmp_path, id=f"{how:0>16}", parameters={"how": how}, **limits))
        for how, limits in {
            "error": {}, "crash": {"retries": 1}, "lock": {"time": 1.0}, "memory": {"memory": 2e9}, "well": {},
        }.items()
    }  # fmt: skip
    assert {how: (row["status"], row["attempts"]) for how, row in rows.items()} == {
        "error": ("failed", 1), "crash": ("failed", 2), "lock": ("timed out", 1), "memory": ("out of memory", 1),
        "well": ("converged", 1),
    }  # fmt: skip
    assert "line 21: build failed with ValueError: no such thing" in rows["error"]["message"]
    assert "SIGABRT" in rows["crash"]["message"]
    assert {how for how, row in rows.items() if row.get("again")} == {"crash"}  # the others would fail again
    assert rows["lock"]["message"] == "Killed after its time limit of 1 s; raise limits.time."
    assert "more than 2 GB" in rows["memory"]["message"]
    # each has its folder, and nothing else is left
    assert sorted(path.name for path in (tmp_path / "cases").iterdir()) == sorted(f"{how:0>16}" for how in rows)


def test_a_case_that_ended_just_before_it_was_killed_is_kept(tmp_path: Path, process: CaseProcess) -> None:
    """Its row, which had reached the disk, was replaced by one that said "timed out"."""
    asked, ended = job(tmp_path), tmp_path / "ended"
    finish_folder(work_folder(ended, 1), ended, new_row(asked) | {"status": "converged"})
    wait = f"import shutil; shutil.copytree({str(ended)!r}, {str(tmp_path / 'cases' / asked.id)!r}); time.sleep(1000)"
    source = ODD.replace("    scene = fs.Scene(", f"    {wait}\n    scene = fs.Scene(")
    path = scene_file(tmp_path, source, "late.py")
    row = process.run(job(tmp_path, scene=str(path), source=source, time=1.0))
    assert row["status"] == "converged" and read_row(tmp_path / "cases" / asked.id) == row


def kill_children(module: str) -> None:
    """Kill the processes that this one has started with a module."""
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if module in child.cmdline():
                child.kill()


def test_a_case_that_is_stopped_has_no_row(tmp_path: Path, process: CaseProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for it may see the process die before it sees anything else; that was a row "its process died"."""
    asked, raised = job(tmp_path, parameters={"how": "lock"}), list[str]()

    def run() -> None:
        try:
            process.run(asked)
        except RuntimeError as error:
            raised.append(str(error))

    process.run(job(tmp_path, id=f"{'well':0>16}"))
    with monkeypatch.context() as patch:
        patch.setattr(process, "close", lambda: kill_children("femsim.studies.sweeps.process"))
        waiting = threading.Thread(target=run)
        waiting.start()
        time.sleep(0.5)
        process.stop()
        waiting.join(timeout=30.0)
    assert raised == ["the process for cases was stopped"] and not (tmp_path / "cases" / asked.id).exists()


# ------------------------------------------------------------------ the table


def test_the_table_has_one_tidy_row_a_case(tmp_path: Path) -> None:
    path = write(tmp_path, 'metrics.f = "max(cube_fz_N)"\nparameters.pair = {values = [[0, 0], [1, 2]]}\nparameters.seed = 3\n')
    cases = make_cases(read_sweep(path), path).cases
    row = {
        "status": "converged", "message": "", "attempts": 1, "metrics": {"f": 2.5}, "wall_s": 1.0, "version": "0.1",
        "health": {
            "steps": 3, "unconverged_steps": 0, "mean_iterations": 2.0, "verdict": "wrong", "reasons": [{"sentence": "wrong: a"}],
        }, "versions": {"numpy": "2.4.6"},
    }  # fmt: skip
    got = pandas.read_parquet(write_table(make_table(cases, {cases[1].id: row}, {"f": "max(cube_fz_N)"}), tmp_path))
    assert list(got["case"]) == [1, 2] and list(got["id"]) == [case.id for case in cases]
    assert list(got["status"]) == ["not run", "converged"] and list(got["pair"]) == ["(0.0, 0.0)", "(1.0, 2.0)"]
    assert np.isnan(got["f"][0]) and got["f"][1] == 2.5 and list(got["seed"]) == [3, 3]
    assert list(got["verdict"]) == ["", "wrong"] and list(got["verdict_reason"]) == ["", "wrong: a"]
    assert list(got["numpy"]) == ["", "2.4.6"] and list(got["steps_done"]) == [0, 3]
    assert not list(tmp_path.glob(".*"))


def test_a_sweep_that_ends_leaves_alone_what_another_study_writes_in_its_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A calibration with --cases: its half folders were removed under its hands. What lost workers left goes."""
    path = write(tmp_path, "")
    (asked,) = sweep_module.plan_sweep(path, out=tmp_path / "out").jobs
    final = tmp_path / "out" / "cases" / asked.id
    other, lost = work_folder(final.with_name("f" * 16), 2), work_folder(final, 2)

    def sweep_ends_meanwhile(job: Job, row: dict[str, Any], work: Path) -> None:
        finish_folder(work_folder(final, 1), final, new_row(asked) | {"status": "converged"})
        (tmp_path / "out" / "sweep.json").write_text("{}")
        for left in (other, lost):
            left.mkdir()
        assert sweep_module.sweep(path, out=tmp_path / "out", resume=True).ran == 0
        assert work.is_dir() and other.is_dir() and not lost.exists()

    monkeypatch.setattr(case_module, "_simulate", sweep_ends_meanwhile)
    row = run_case(asked)
    assert row["message"] == "" and [one.name for one in final.parent.glob(".*")] == [other.name]


def test_a_table_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any) -> None:
    path = write(tmp_path, "")
    plan = sweep_module.plan_sweep(path, out=tmp_path / "out")
    final = tmp_path / "out" / "cases" / plan.jobs[0].id
    finish_folder(work_folder(final, 1), final, new_row(plan.jobs[0]) | {"status": "converged"})
    (tmp_path / "out" / "sweep.json").write_text("{}")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sweep_module, "write_table", full)
    status, _, error = call("sweep", str(path), "--out", str(tmp_path / "out"), "--resume")
    assert status == 2 and "No space left on device" in error and "which are kept" in error
    monkeypatch.undo()
    status, out, _ = call("sweep", str(path), "--out", str(tmp_path / "out"), "--resume")
    assert status == 0 and "run now   0, taken from before 1" in out
    assert json.loads((tmp_path / "out" / "sweep.json").read_text())["status"] == "converged"


def test_an_empty_folder_takes_a_sweep(tmp_path: Path, call: Any) -> None:
    path = write(tmp_path, "")
    (tmp_path / "out").mkdir()
    status, _, error = call("sweep", str(path), "--out", str(tmp_path / "out"))
    assert status == 0 and (tmp_path / "out" / "sweep.json").is_file(), error


def test_folders_are_not_mixed_up(tmp_path: Path, call: Any) -> None:
    path = write(tmp_path, "")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").touch()
    status, _, error = call("sweep", str(path), "--out", str(tmp_path / "out"))
    assert status == 2 and "exists; go on with it by --resume" in error
    status, _, error = call("sweep", str(path), "--out", str(tmp_path / "out"), "--resume")
    assert status == 2 and "is no sweep (it has no sweep.json)" in error


def test_one_sweep_at_a_time_works_on_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of two that ended removed what the other was writing."""
    monkeypatch.setattr(sweep_module, "Engine", Inline)
    path, out = write(tmp_path, "parameters.where = {values = [0, 1]}\n"), tmp_path / "out"
    refused = pytest.raises(fs.InputError, match=r"another process is working on the folder .*out; wait until it ends")

    def look(row: dict[str, Any]) -> None:
        locked.append(is_locked(out))
        with refused:
            fs.sweep(path, out=out, resume=True)

    for resume in (False, True):
        locked: list[bool | None] = []
        assert fs.sweep(path, out=out, resume=resume, on_row=look).status == "converged"
        assert locked == [True, True] and is_locked(out) is False
        for row in out.glob("cases/*/case.json"):
            row.unlink()


def test_a_disk_that_is_full_at_the_start_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any) -> None:
    """One was left that neither a plain call nor --resume took."""
    monkeypatch.setattr(sweep_module, "Engine", Inline)
    path, out = write(tmp_path, "parameters.where = {values = [0, 1]}\n"), tmp_path / "out"

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(sweep_module.shutil, "copyfile", full)
        status, _, error = call("sweep", str(path), "--out", str(out))
    assert status == 2 and "No space left on device" in error and not out.exists()
    assert call("sweep", str(path), "--out", str(out), "--workers", "1")[0] == 0


def test_a_folder_that_came_while_the_sweep_began_is_refused_and_stays(tmp_path: Path, call: Any) -> None:
    """The scene makes it as another process would, after it was looked for; it was taken, and removed where writing failed."""
    out = tmp_path / "out"
    lines = f"    os.makedirs({str(out)!r}, exist_ok=True)\n    open({str(out / 'cases')!r}, 'a').close()\n    print("
    path = write(tmp_path, "", scene=ODD.replace("    print(", lines))
    status, _, error = call("sweep", str(path), "--out", str(out), "--workers", "1")
    assert status == 2 and f"the folder {out} cannot be written (File exists); choose another by --out." in error
    assert [path.name for path in out.iterdir()] == ["cases"]


@pytest.mark.parametrize("late", [False, True])
def test_only_a_folder_that_was_made_here_is_removed(tmp_path: Path, late: bool) -> None:
    """Nothing of one that another process made between the look and the making, all of one that is new."""
    out = tmp_path / "deep" / "out"
    check_folder(out, "sweep", resume=False)
    if late:
        out.mkdir(parents=True)
        (out / "theirs").touch()
    with ExitStack() as held, pytest.raises(fs.InputError, match="File exists" if late else "No space left"):
        with begun_folder(out, held):
            (out / "ours").touch()
            raise OSError(errno.ENOSPC, "No space left on device")
    assert [path.name for path in out.parent.rglob("*")] == (["out", "theirs"] if late else [])


def test_a_dry_run_shows_cases_time_and_disk(tmp_path: Path, call: Any) -> None:
    path = write(tmp_path, 'parameters.where = {range = [0, 1], count = 12}\noutputs.series = "all"\noutputs.frames = [1]\n')
    status, out, error = call("sweep", str(path), "--dry-run", "--workers", "3", "--out", str(tmp_path / "out"))
    assert status == 0, error
    assert "0.0909091" in out and "... 2 more" in out and "cases     12; 0 are there already" in out
    assert "a case    3 steps," in out and "on 3 workers" in out and "kB in" in out
    assert not (tmp_path / "out").exists()


#: Says whether what simulates was there when the scene was built.
WATCHED = ODD.replace(
    "    print(",
    """    import sys
    with open("built.txt", "a") as file:
        file.write(f"{'femsim.run.simulate' in sys.modules}\\n")
    print(""",
)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('metrics.f = "max(cube_fz)"', ["--dry-run"]),
        ('stop = ["abs(cube_fz) > 1"]', ["--dry-run"]),
        ('outputs.series = ["cube_fz"]', []),
    ],
)
def test_a_column_that_is_not_there_is_said_before_anything_runs(
    text: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any
) -> None:
    """The scene is built once, in a process that has not even loaded what simulates."""
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, f"{text}\n", scene=WATCHED)
    status, _, error = call("sweep", str(path), *options, "--out", str(tmp_path / "out"))
    assert status == 2 and "the scene writes no column 'cube_fz'; did you mean 'cube_f" in error
    assert (tmp_path / "built.txt").read_text() == "False\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [["--dry-run"], []])
def test_a_window_outside_the_run_is_said_before_anything_runs(tmp_path: Path, call: Any, options: list[str]) -> None:
    """The metric was NaN in all cases, and the sweep ended as converged."""
    path = write(tmp_path, 'parameters.where = {values = [0, 1]}\nmetrics.late = "max(cube_fz_N, 5, 6)"\n')
    status, _, error = call("sweep", str(path), *options, "--out", str(tmp_path / "out"))
    assert status == 2 and "metrics.late: its window, 5 to 6 s, lies outside the run, which lasts 0.03 s; write other" in error
    assert not (tmp_path / "out").exists()


def test_where_only_some_cases_are_too_short_they_say_so(tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The duration is a parameter here: the first case misses the window, the second does not."""
    monkeypatch.setattr(sweep_module, "Engine", Inline)
    timed = ODD.replace("duration=0.03", "duration=0.01 * n")
    text = 'parameters.n = {values = [1, 3]}\nmetrics.late = "max(time_s, 0.015, 0.03)"\n'
    path = write(tmp_path, text, scene=timed)
    status, out, error = call("sweep", str(path), "--out", str(tmp_path / "out"))
    assert status == 0 and "2 of 2 cases are finished, 1 have no number of metric late (column message)" in out, error
    table = pandas.read_parquet(tmp_path / "out" / "results.parquet")
    assert "Metric late has no number: no step ends in its window" in table["message"][0] and table["late"][1] == pytest.approx(
        0.03
    )
