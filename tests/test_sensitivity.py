"""Sensitivity: the design of Saltelli, indices of functions that are known, a whole study with real runs, bad input."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from inline_engine import Inline
from small_scene import scene_file

import femsim as fs
from femsim.cli import execute
from femsim.studies.sweeps import sweep as sweep_module
from femsim.studies.sweeps.case import run_case
from femsim.studies.sweeps.file import Sampling, read_sweep
from femsim.studies.sweeps.process import CaseProcess
from femsim.studies.sweeps.sampling import make_cases, unit_samples
from femsim.studies.sweeps.sensitivity import sobol_indices
from viz import VizError, plot_sensitivity

SCENE = '''"""A box rests on a floor: the floor carries its weight."""

import femsim as fs


def build(a: float = 0.0, b: float = 0.0, idle: float = 0.0, count: int = 1) -> fs.Scene:
    """Let it rest.

    Parameters
    ----------
    a, b, idle : float, 1
        The mass is (10 + 2 a + b) kg.
    """
    if a > 0.99:
        raise ValueError("too heavy")
    scene = fs.Scene("box", dt=0.01, duration=0.01, theta=1.0)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), mass=10.0 + 2.0 * a + b, position=(0.0, 0.0, 0.1))
    if b > 0.95:
        scene.drive("box", fs.Motion([0.0, 0.01], [(0, 0, 0), (0, 0, -0.05)]))
    scene.sensor("floor", "floor")
    return scene
'''
AXES = "[parameters]\na = { between = [0, 0.9] }\nb = { between = [0, 0.9] }\nidle = { between = [0, 1] }\n"
DESIGN = '[sampling]\nmethod = "saltelli"\ncount = 16\n'
METRICS = '[metrics]\nweight = "final(floor_fz_N)"\nlateral = "max(step)"\n'


def write(folder: Path, text: str, name: str = "s.toml") -> Path:
    scene_file(folder, SCENE, "box.py")
    path = folder / name
    path.write_text(f'scene = "box.py"\n{text}', encoding="utf-8")
    return path


def design(count: int, dimension: int, seed: int = 0) -> np.ndarray:
    """Values of the parameters of a design, (count, dimension + 2, dimension), as the sweep makes it."""
    unit = unit_samples(Sampling(method="saltelli", count=count, seed=seed), dimension)
    return unit.reshape(count, dimension + 2, dimension)


def run_here(patch: pytest.MonkeyPatch) -> None:
    """Run cases in this process."""
    patch.setattr(sweep_module, "Engine", Inline)
    patch.setattr(CaseProcess, "run", lambda self, job: run_case(job))


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    run_here(monkeypatch)


# ------------------------------------------------------------------------------------------------ numbers


def test_the_design_is_that_of_salib() -> None:
    from SALib.sample.sobol import sample

    problem = {"num_vars": 3, "names": ["a", "b", "c"], "bounds": [[0.0, 1.0]] * 3}
    theirs = sample(problem, 8, calc_second_order=False, seed=np.random.default_rng(7))
    np.testing.assert_array_equal(design(8, 3, 7).reshape(-1, 3), theirs)


def test_indices_of_the_function_of_ishigami() -> None:
    """Known values for a = 7, b = 0.1 (Ishigami and Homma, ISUMA 1990): nothing of the third parameter but with the first."""
    x = math.pi * (2.0 * design(2048, 3) - 1.0)
    y = np.sin(x[..., 0]) + 7.0 * np.sin(x[..., 1]) ** 2 + 0.1 * x[..., 2] ** 4 * np.sin(x[..., 0])
    found = sobol_indices(("x1", "x2", "x3"), y, 0)
    assert found is not None
    assert found.mean == pytest.approx(3.5, abs=0.02) and found.deviation == pytest.approx(3.7208, abs=0.02)
    for pairs, known in ((found.first, (0.3139, 0.4424, 0.0)), (found.total, (0.5576, 0.4424, 0.2437))):
        for (index, half), exact in zip(pairs, known, strict=True):
            assert index == pytest.approx(exact, abs=0.02) and 0.0 < half < 0.1
    again = sobol_indices(("x1", "x2", "x3"), y, 0)
    assert again == found


def test_intervals_hold_the_truth_as_often_as_they_say_for_random_points_and_always_for_a_sequence() -> None:
    """The bootstrap takes points for independent, which those of a sequence are not: its errors are far smaller."""
    parts = np.array([12.0, 3.0, 3.0, 1.0]) / 19.0  # of a + b c: a 1/12; b, c alone 1/4 1/12 each; both 1/144
    exact = np.array([*parts[:3], parts[0], *(parts[1:3] + parts[3])])
    hits, errors = [], []
    for random in (True, False):
        inside, squares = [], []
        for seed in range(60):
            x = design(128, 3, seed)
            if random:
                points = np.random.default_rng(seed).random((128, 2, 3))
                x = np.stack([points[:, 0]] + [np.where(np.arange(3) == k, points[:, 1], points[:, 0]) for k in range(3)]
                             + [points[:, 1]], axis=1)  # fmt: skip
            found = sobol_indices(("a", "b", "c"), x[..., 0] + x[..., 1] * x[..., 2], seed)
            assert found is not None
            index, half = np.array([*found.first, *found.total]).T
            inside.append(np.abs(index - exact) <= half)
            squares.append((index - exact) ** 2)
        hits.append(np.mean(inside))
        errors.append(np.sqrt(np.mean(squares)))
    assert 0.9 <= hits[0] <= 0.99 and hits[1] >= 0.99
    assert errors[1] < 0.3 * errors[0]


def test_a_metric_that_does_not_vary_has_no_indices() -> None:
    assert sobol_indices(("a", "b"), np.full((16, 4), 2.5), 0) is None


# ------------------------------------------------------------------------------------------------ a study with runs


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, fs.SensitivityResult]:
    folder = tmp_path_factory.mktemp("sensitivity")
    path = write(folder, AXES + DESIGN + METRICS)
    with pytest.MonkeyPatch.context() as patch:
        run_here(patch)
        return path, fs.sensitivity(path, out=folder / "study")


def test_a_study_finds_what_the_weight_depends_on(studied: tuple[Path, fs.SensitivityResult]) -> None:
    """Mass 2 a + b: 4/5 of the variance is of a, 1/5 of b; the idle parameter has exactly nothing."""
    _, result = studied
    assert result.status == "converged" and result.counts == {"converged": 80} and result.left_out == 0
    own = result.indices["weight"]
    assert own.parameters == ("a", "b", "idle") and own.mean == pytest.approx(-9.81 * 11.35, rel=0.01)
    for (index, half), exact in zip((*own.first, *own.total), (0.8, 0.2, 0.0, 0.8, 0.2, 0.0), strict=True):
        assert abs(index - exact) <= max(half, 1e-9)
    assert own.total[2] == pytest.approx((0.0, 0.0), abs=1e-9)
    assert "lateral" not in result.indices
    assert [w.split(" ")[0] for w in result.warnings] == ["lateral", "indices"]


def test_the_folder_holds_table_picture_and_numbers(studied: tuple[Path, fs.SensitivityResult]) -> None:
    _, result = studied
    content = json.loads((result.folder / "sensitivity.json").read_text())
    own = result.indices["weight"]
    assert content["indices"]["weight"]["parameters"]["b"] == dict(
        zip(("first", "first_half", "total", "total_half"), (*own.first[1], *own.total[1]), strict=True)
    )
    assert content["samples"] == 16 and content["warnings"] == list(result.warnings)
    rows = list(csv.reader((result.folder / "sensitivity.csv").read_text().splitlines()))
    assert rows[0] == ["metric", "parameter", "first", "first_half", "total", "total_half"]
    assert [row[:2] for row in rows[1:]] == [["weight", "a"], ["weight", "b"], ["weight", "idle"]]
    assert float(rows[1][4]) == pytest.approx(own.total[0][0], rel=1e-5)
    svg = (result.folder / "sensitivity.svg").read_text()
    assert all(f">{word}<" in svg or f"<!-- {word} -->" in svg for word in ("idle", "weight", "total"))
    assert (result.folder / "sensitivity.png").stat().st_size > 5000 and (result.folder / "results.parquet").is_file()
    assert not list(result.folder.glob(".sens*"))


@pytest.mark.usefixtures("inline")
def test_resume_runs_nothing_twice_and_a_larger_count_only_what_is_new(
    studied: tuple[Path, fs.SensitivityResult], capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = studied
    ran: list[str] = []
    again = fs.sensitivity(path, out=result.folder, resume=True, on_row=lambda row: ran.append(row["id"]))
    assert ran == [] and again.indices == result.indices
    with pytest.raises(fs.InputError, match=r"--resume"):
        fs.sensitivity(path, out=result.folder)
    before = make_cases(read_sweep(path), path).order
    path.write_text(path.read_text().replace("count = 16", "count = 32"))
    assert make_cases(read_sweep(path), path).order[: len(before)] == before
    assert execute(["sensitivity", str(path), "--out", str(result.folder), "--resume", "--workers", "1"]) == 0
    out = capsys.readouterr().out
    assert "160 of 160 cases are finished" in out and "first order" in out and "warning: lateral does not vary" in out
    content = json.loads((result.folder / "sensitivity.json").read_text())
    assert json.loads((result.folder / "sweep.json").read_text())["counts"]["ran"] == 80
    assert content["indices"]["weight"]["parameters"]["a"]["total"] == pytest.approx(0.8, abs=0.1)


@pytest.mark.usefixtures("inline")
def test_samples_with_a_failed_case_are_left_out_and_said(tmp_path: Path) -> None:
    """A tenth of the range of a fails: both of its values in a sample must be good, so that about a fifth of them go."""
    path = write(tmp_path, AXES.replace("a = { between = [0, 0.9] }", "a = { between = [0, 1.1] }") + DESIGN + METRICS)
    result = fs.sensitivity(path, out=tmp_path / "study", workers=1)
    assert result.status == "not converged" and result.counts["failed"] > 0
    values = 1.1 * design(16, 3)[..., 0]
    assert result.left_out == (values > 0.99).any(axis=1).sum() > 0
    assert any(f"{result.left_out} samples are left out" in text for text in result.warnings)
    assert set(result.indices) == {"weight"}
    bad = write(tmp_path, AXES.replace("a = { between = [0, 0.9] }", "a = { between = [0.8, 3] }") + DESIGN + METRICS, "bad.toml")
    few = fs.sensitivity(bad, out=tmp_path / "bad", workers=1)
    assert few.status == "failed" and "samples have all their cases; 8 are needed" in few.message and few.indices == {}
    assert json.loads((tmp_path / "bad" / "sensitivity.json").read_text())["status"] == "failed"


@pytest.mark.usefixtures("inline")
def test_samples_with_a_wrong_case_are_left_out_and_said(tmp_path: Path) -> None:
    """Boxes that are driven through the floor counted, and made all of the variance."""
    path = write(tmp_path, AXES.replace("b = { between = [0, 0.9] }", "b = { between = [0, 1] }") + DESIGN + METRICS)
    result = fs.sensitivity(path, out=tmp_path / "study", workers=1)
    through = (design(16, 3)[..., 1] > 0.95).any(axis=1)
    assert result.status == "not converged" and "wrong by their health" in result.message
    assert result.left_out == through.sum() > 0
    assert any(f"{result.left_out} samples are left out" in text for text in result.warnings)
    assert result.indices["weight"].deviation < 0.5 * 9.81 * 2.9  # half of what the weight of a box ranges over


@pytest.mark.usefixtures("inline")
def test_a_metric_without_numbers_is_named_and_costs_the_others_nothing(tmp_path: Path) -> None:
    """All were without indices, and the message spoke of samples without cases."""
    late = 'late = "max(step, 0.015, 0.02)"\n'
    ends = 'stop = ["step >= 1"]\n'  # before the window, which is inside the run as planned
    design, longer = DESIGN.replace("16", "8"), "[settings]\nduration = 0.02\n"
    path = write(tmp_path, ends + AXES + design + longer + METRICS + late)
    result = fs.sensitivity(path, out=tmp_path / "study", workers=1)
    assert result.status == "not converged" and set(result.indices) == {"weight"} and result.left_out == 0
    assert result.message.startswith("Indices need 8 of the 8 samples, and late has numbers in all cases of 0 only")
    assert "late has numbers in all cases of 0 samples only, and no indices" in result.warnings
    alone = write(tmp_path, ends + AXES + design + longer + "[metrics]\n" + late, "alone.toml")
    result = fs.sensitivity(alone, out=tmp_path / "alone", workers=1)
    assert result.status == "failed" and "late has numbers in all cases of 0 only" in result.message and not result.indices


def test_whole_numbers_and_equal_cases(tmp_path: Path) -> None:
    """Equal cases are run once, and stand in the design as often as it says."""
    path = write(
        tmp_path,
        "[parameters]\na = { between = [0, 0.9] }\ncount = { between = [1, 2] }\n[sampling]\nmethod = 'saltelli'\ncount = 8\n",
    )
    cases = make_cases(read_sweep(path), path)
    assert len(cases.order) == 32 and cases.duplicates > 0 and set(cases.order) == {case.id for case in cases.cases}
    values = {case.id: case.parameters for case in cases.cases}
    table = [(values[key]["a"], values[key]["count"]) for key in cases.order]
    for a, mixed_a, mixed_count, b in zip(*(table[k::4] for k in range(4)), strict=True):
        assert mixed_a == (b[0], a[1]) and mixed_count == (a[0], b[1])


# ------------------------------------------------------------------------------------------------ what is wrong


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (AXES + METRICS, r"samples a, b, idle, but has no \[sampling\]"),
        (AXES + DESIGN.replace("saltelli", "sobol") + METRICS, r'sampling\.method is "sobol"; a study of sensitivity needs "sal'),
        ("[parameters]\na = 0.5\n" + METRICS, r"sampling\.method is none"),
        (AXES + DESIGN, r"metrics is missing; name at least one"),
        (AXES + "count = { values = [1, 2] }\n" + DESIGN + METRICS, r"parameters\.count is a list"),
        ("[[cases]]\ncount = 2\n" + AXES + DESIGN + METRICS, r"\[\[cases\]\] is a list"),
        (AXES + DESIGN.replace("16", "4") + METRICS, r"sampling\.count is 4; at least 8"),
        (
            AXES + DESIGN.replace("16", "20") + METRICS,
            r"has count 20; a Sobol sequence is balanced for powers of two only: 16 or 32",
        ),
        (AXES + DESIGN.replace("16", "4096") + METRICS, r"has 20480 cases, more than 10000; .* --yes"),
        (AXES.replace("idle", "idel") + DESIGN + METRICS, r"no such parameter 'idel'|did you mean 'idle'"),
        (AXES + DESIGN + METRICS.replace("floor_fz", "flor_fz"), r"no column 'flor_fz_N'; did you mean 'floor_fz_N'"),
        ("[parameters", r"is not valid TOML"),
    ],
)
def test_wrong_files_are_refused_in_words(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(fs.InputError, match=message):
        fs.sensitivity(write(tmp_path, text), out=tmp_path / "study", workers=1)
    assert not (tmp_path / "study").exists()


def test_a_dry_run_refuses_what_a_study_refuses(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    """It listed the cases of a sweep that is no study of sensitivity, and ended well."""
    status, out, error = call("sensitivity", str(write(tmp_path, "[parameters]\na = 0.5\n" + METRICS)), "--dry-run")
    assert status == 2 and out == "" and 'sampling.method is none; a study of sensitivity needs "saltelli"' in error


def test_no_bars_without_indices(tmp_path: Path) -> None:
    with pytest.raises(VizError, match="without indices"):
        plot_sensitivity({}, tmp_path / "x.png")
