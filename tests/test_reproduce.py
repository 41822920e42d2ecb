"""Stage reproduction of papers: tiny scenes from command to page, what is stored and resumed, wrong input, measurements."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slow_twins import body_between_nodes

import femsim as fs
from contact import make_solver
from femsim.cli import execute
from femsim.studies.reproduction import box, cable, command, cond, page, scaling, trials
from femsim.studies.reproduction.anisotropic import GRAVITY, dissipation_path
from femsim.studies.reproduction.measuring import (
    InternalForce,
    Settings,
    Step,
    first_below,
    follow,
    reference_solver,
    row_of,
    soft_body,
)
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import number

Raw = dict[str, Any]
ROOT = Path(fs.__file__).resolve().parent.parent


def first_number(cell: str) -> float:
    found = re.match(r"-?[\d.]+(e-?\d+)?", cell.strip())
    assert found, cell
    return float(found[0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything on tiny scenes."""
    out = tmp_path_factory.mktemp("reproduction") / "page"
    done = fs.reproduce(out, size="tiny")
    assert done.failures == {} and done.kept == () and done.made == tuple(cond.PARTS)
    assert done.page == out / "index.md"
    return out


def raw(folder: Path, part: str) -> Raw:
    return json.loads((folder / "raw" / f"{part}.json").read_text(encoding="utf-8"))["raw"]  # type: ignore[no-any-return]


def test_the_page_has_every_table_and_figure(folder: Path) -> None:
    text = (folder / "index.md").read_text(encoding="utf-8")
    headings = " ".join(re.findall(r"^## (.*)$", text, re.MULTILINE))
    for roman in ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"):
        assert re.search(rf"\b{roman}\b", headings), roman
    assert {int(n) for n in re.findall(r"Figure (\d+)", headings)} == set(range(6, 15))
    assert "Not made yet" not in text and "do not fit" not in text and "nan" not in text
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert len(pictures) == 9 and all((folder / picture).stat().st_size > 5000 for picture in pictures)
    links = re.findall(r"\(raw/([a-z_]+)\.json\)", text)
    assert links == list(cond.PARTS)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count(" | ") for line in table.splitlines()[2:]}) == 1, table
    assert not list(folder.rglob("*.tmp*"))


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("evaluation", command.EVALUATIONS.values(), ids=lambda evaluation: evaluation.name)
def test_the_page_that_is_shipped_is_what_its_numbers_give(evaluation: page.Evaluation, tmp_path: Path) -> None:
    """docs/reproduction is written from data/results/reproduction, byte for byte, and links to the numbers."""
    shipped, raw = ROOT / "docs" / "reproduction" / evaluation.file, ROOT / "data" / "results" / "reproduction"
    records = {part: json.loads((raw / f"{part}.json").read_text(encoding="utf-8")) for part in evaluation.parts}
    made, unreadable = page.make_page(evaluation, tmp_path, records, {}, "../../data/results/reproduction")
    assert unreadable == []
    assert made.read_bytes() == shipped.read_bytes()
    links = re.findall(r"\]\(([^)]*\.json)\)", shipped.read_text(encoding="utf-8"))
    assert len(links) == len(evaluation.parts) and all((shipped.parent / link).is_file() for link in links)


@pytest.mark.usefixtures("undrawn")
def test_results_may_be_stored_apart_from_the_page(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the command line without --out: where this repository has them."""
    for part in cond.PARTS:
        monkeypatch.setitem(cond.PARTS, part, lambda _, name=part: raw(folder, name))
    monkeypatch.chdir(tmp_path)
    assert execute(["reproduce", "cond", "--only", "I", "--quiet"]) == 0
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*") if path.is_file()) == [
        "data/results/reproduction/box.json", "docs/reproduction/figures/fig6_box.png", "docs/reproduction/index.md"
    ]  # fmt: skip
    assert "[box.json](../../data/results/reproduction/box.json)" in Path("docs/reproduction/index.md").read_text("utf-8")


def test_every_section_names_the_command_that_makes_it(folder: Path) -> None:
    text = (folder / "index.md").read_text(encoding="utf-8")
    only = re.findall(r"^`femsim reproduce cond --only (\w+)`", text, re.MULTILINE)
    assert len(only) == len(cond.SECTIONS) and set(only) <= set(cond.EVALUATION.names)


@pytest.mark.usefixtures("undrawn")
def test_what_is_stored_is_kept_and_only_makes_it_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for part in cond.PARTS:
        monkeypatch.setitem(cond.PARTS, part, lambda _, name=part: calls.append(name) or raw(folder, name))
    assert fs.reproduce(folder, size="tiny").kept == tuple(cond.PARTS)
    assert calls == []
    done = fs.reproduce(folder, size="tiny", only=["VII", "fig14"])
    assert calls == ["mat", "anisotropic"] and done.made == ("mat", "anisotropic") and done.kept == ()
    fs.reproduce(folder, size="tiny", fresh=True)
    assert len(calls) == 2 + len(cond.PARTS)


@pytest.mark.usefixtures("undrawn")
def test_other_code_or_another_size_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for part in cond.PARTS:
        monkeypatch.setitem(cond.PARTS, part, lambda _, name=part: calls.append(name) or raw(folder, name))
    monkeypatch.setattr(command, "_code", lambda: "other")
    fs.reproduce(folder, size="tiny")
    assert calls == list(cond.PARTS)


@pytest.mark.usefixtures("undrawn")
def test_a_part_that_fails_is_said_and_the_others_go_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., tuple[int, str, str]]
) -> None:
    """Also from the command line, with its exit status; the next call makes what is missing."""
    for part in cond.PARTS:
        monkeypatch.setitem(cond.PARTS, part, lambda _, name=part: raw(folder, name))

    def broken(_: Settings) -> Raw:
        raise RuntimeError("the mat is lost")

    good = cond.PARTS["mat"]
    monkeypatch.setitem(cond.PARTS, "mat", broken)
    status, out, err = call("reproduce", "cond", "--quick", "--out", str(tmp_path / "new"))
    assert status == 3 and "RuntimeError: the mat is lost" in err and "index.md" in out
    text = (tmp_path / "new" / "index.md").read_text(encoding="utf-8")
    assert text.count("**The part `mat` failed when it was last tried:** RuntimeError: the mat is lost") == 3  # II, VII, IX
    assert text.count("Not made yet (missing: mat)") == 3
    assert "## Table III" in text and "fig8_ball.png" in text
    monkeypatch.setitem(cond.PARTS, "mat", good)
    status, out, err = call("reproduce", "cond", "--quick", "--quiet", "--out", str(tmp_path / "new"))
    assert status == 0 and out.startswith("made: mat, stored before: box, ball,") and err == ""
    text = (tmp_path / "new" / "index.md").read_text(encoding="utf-8")
    assert "failed" not in text and "Not made yet" not in text


@pytest.mark.usefixtures("undrawn")
def test_an_interrupted_call_leaves_a_page_of_what_is_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Settings) -> Raw:
        raise KeyboardInterrupt

    monkeypatch.setitem(cond.PARTS, "box", lambda _: raw(folder, "box"))
    monkeypatch.setitem(cond.PARTS, "mat", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fs.reproduce(tmp_path / "new", size="tiny")
    text = (tmp_path / "new" / "index.md").read_text(encoding="utf-8")
    assert "fig6_box.png" in text and text.count("Not made yet") == len(cond.SECTIONS) - 1


@pytest.mark.usefixtures("undrawn")
def test_results_that_do_not_fit_are_said(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in cond.PARTS:
        monkeypatch.setitem(cond.PARTS, part, lambda _, name=part: {} if name == "box" else raw(folder, name))
    done = fs.reproduce(tmp_path / "new", size="tiny")
    assert set(done.failures) == {"I"}
    text = done.page.read_text(encoding="utf-8")
    assert text.count("The stored results do not fit (KeyError: 'errors')") == 1
    assert "## Table IX" in text


@pytest.mark.usefixtures("undrawn")
def test_an_unreadable_result_counts_as_missing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in cond.PARTS:
        monkeypatch.setitem(cond.PARTS, part, lambda _, name=part: raw(folder, name))
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "box.json").write_text('{"part": "box", "si', encoding="utf-8")  # cut off
    assert "box" in fs.reproduce(tmp_path, size="tiny").made


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cond", "--only", "III,X"], "there is no table or figure 'X'"),
        (["cond", "--only", "fig5"], "there are I, fig6, II"),
        (["cond", "--data", "."], "has no file authors_program_N160.csv"),
        (["cond", "--out", "file"], "is a file"),
        (["admm", "--only", "test5"], "there are test1"),
        (["nonsense"], "cond"),
    ],
)
def test_wrong_input_is_said(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., tuple[int, str, str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    status, _, err = call("reproduce", *arguments)
    assert status == 2 and said in err
    assert not (tmp_path / "docs").exists()


def test_wrong_paper_is_said(tmp_path: Path) -> None:
    with pytest.raises(fs.InputError, match="did you mean 'admm'"):
        fs.reproduce(tmp_path, "adm")


def test_evaluations_share_no_part_and_no_page() -> None:
    """Their results and pages lie side by side."""
    parts = [part for evaluation in command.EVALUATIONS.values() for part in evaluation.parts]
    files = [evaluation.file for evaluation in command.EVALUATIONS.values()]
    assert len(set(parts)) == len(parts) and len(set(files)) == len(files)


def test_wrong_size_is_said(tmp_path: Path) -> None:
    with pytest.raises(fs.InputError, match="allowed are 'full', 'quick' and 'tiny'"):
        fs.reproduce(tmp_path, size="huge")  # type: ignore[arg-type]


# ---------------------------------------------------------------------- the numbers


def test_virtual_nodes_give_table_i(folder: Path) -> None:
    errors = raw(folder, "box")["errors"]
    compared = {name: values for name, values in published("table_I").items() if name.startswith("COND")}
    assert len(compared) == 3
    for name, values in compared.items():
        np.testing.assert_allclose(errors[name], values, atol=1.5e-4)
    assert max(errors["COND, multipliers (our default)"]) < 1e-5


def test_penalties_sink_by_the_weight_tilt_by_the_push_and_creep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the friction limit: the push at the centre tilts it, and all four corners creep at F / (4 grip)."""
    force, (stiffness, _, grip) = 0.05, box.PENALTY
    monkeypatch.setattr(box, "FORCE", force)
    monkeypatch.setattr(box, "STEPS", 3000)
    *_, before, last = box.penalty_states(1.0)
    assert last[1] == pytest.approx(box.HALF - box.MASS * box.GRAVITY / (4.0 * stiffness), abs=1e-6)
    upright = 4.0 * stiffness * box.HALF**2 - box.MASS * box.GRAVITY * box.HALF  # the weight helps to tip it
    assert last[2] == pytest.approx(-force * box.HALF / upright, rel=1e-3)
    assert last[0] - before[0] == pytest.approx(box.STEP * force / (4.0 * grip), rel=1e-3)


def test_tighter_stops_make_smaller_errors(folder: Path) -> None:
    """Of COND on the ball: iterations grow and force errors fall from the step rule to the residual; so for fixed numbers."""
    for part in ("ball", "mat"):
        rows = raw(folder, part)["rows"]
        step, residual = (trials.average(rows, "cond", stop, "error") for stop in (trials.STEP_RULE, trials.RESIDUAL_RULE))
        assert residual < 0.1 * step
    rows = raw(folder, "mat")["rows"]
    few, many = (trials.average(rows, "ccs", f"{count} iterations", "error") for count in trials.FIXED)
    assert many < 0.1 * few


def test_trials_are_drawn_from_the_ranges_and_counted(folder: Path) -> None:
    ball = raw(folder, "ball")
    assert len(ball["drawn"]) == 2 and {row["trial"] for row in ball["rows"]} == {1, 2}
    assert all(0.5e6 < trial["young_modulus"] < 2e6 and 0.4 < trial["friction"] < 0.6 for trial in ball["drawn"])
    assert ball["reference"]["converged"] == ball["reference"]["steps"]
    assert len(ball["curves"]["time"]) == 12


def test_steps_are_drawn_from_the_whole_run() -> None:
    drawn = trials.draw_steps(np.random.default_rng(0), 400, 20, 2)
    assert len(drawn) == 20 and all(len(part) == 2 and part == sorted(part) for part in drawn)
    everything = np.sort(np.concatenate(drawn))
    assert ((everything - 1) // 10 == np.arange(40)).all()


def test_cable_runs(folder: Path) -> None:
    """The solver that reaches its residual leaves the force of the tool, one that is stopped by its step does not."""
    loops = raw(folder, "cable")["loops"]
    assert loops["banded"]["error"] == [0.0, 0.0] and loops["banded"]["dynamics"] < 1e-12
    assert loops["cond"]["error"][0] > 0.01 and loops["cond"]["step_norm"] < cable.THRESHOLD
    rows = raw(folder, "position_based")["rows"]
    errors = {name: row["error"][0] for name, row in rows.items()}
    assert errors.pop("banded (what auto picks)") == 0.0
    assert len(errors) == 4 and min(errors.values()) > 1e-3


def test_a_force_curve_that_ended_is_said() -> None:
    curve = np.zeros((3, 3))
    assert cable.error_text(cable.force_error(curve + np.array([3.0, 0.0, 4.0]), curve), 0) == "5.00 / 5.00"
    assert cable.error_text(cable.force_error(curve[:1], curve), 2) == "failed at step 2"


def test_box_follows_the_integration_to_first_order(folder: Path) -> None:
    text = (folder / "index.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^\| 0\.5, 0\.2 \|.*$", text, re.MULTILINE)
    assert float(line.split("|")[4]) == pytest.approx(1.0, abs=0.1)


def test_isotropic_integration_is_a_straight_stop() -> None:
    end = dissipation_path((0.3, 0.3))[-1]
    length = 2.0 / (2.0 * 0.3 * GRAVITY)  # |v|^2 / (2 mu g)
    np.testing.assert_allclose(end, np.full(2, length / np.sqrt(2.0)), rtol=1e-5)


def test_inverse_gives_the_forces_of_the_forward_solve(folder: Path) -> None:
    """Tighter residuals bring both nearer together."""
    cases = raw(folder, "invertible")["ball"]["proximal"]
    assert np.mean(cases["1e-06"]["wrong"]) < 0.1 * np.mean(cases["1e-04"]["wrong"])


def test_exponents_are_fitted() -> None:
    nodes = np.array([100.0, 300.0, 1000.0])
    exponent, straight = scaling.fit(nodes, 2e-3 * nodes**1.5)
    assert exponent == pytest.approx(1.5) and straight < 0.999
    assert scaling.fit(nodes, 3.0 + 0.1 * nodes)[1] == pytest.approx(1.0)


# ---------------------------------------------------------------------- the yardsticks


def test_forces_are_compared_on_the_nodes() -> None:
    problem = body_between_nodes(np.random.default_rng(1), 4, 3)
    exact = reference_solver().solve(problem)
    wrong = replace(exact, lam=1.5 * exact.lam)
    step = Step(1, problem, None, exact, 0.0, 0.0, None, None, None)  # type: ignore[arg-type]
    row = row_of(step, wrong, 0.002)
    nodes = np.concatenate([np.arange(g.start, g.stop) for g in problem.groups if g.kind == "nodes"])
    size = float(np.linalg.norm((problem.J.T @ exact.lam.ravel())[nodes]))
    assert size > 0
    assert row.error == pytest.approx(0.5 * size) and row.norm_error == pytest.approx(0.5 * size)
    assert row.relative_error == pytest.approx(0.5)
    assert row.ms == 2.0
    assert row.dynamics > 1e-3 > row_of(step, exact, 0.002).dynamics


def test_internal_force_is_that_of_the_end_of_the_step_and_leaves_the_run_alone() -> None:
    settings = Settings("tiny")
    paths = []
    for measured in (False, True):
        scene = settings.ball()
        gauge = InternalForce(scene)
        for step in follow(scene, make_solver("exact", tolerance=1e-10), 8):
            if measured:
                force = gauge(step, step.solution)
                body = soft_body(step.stepper.scene)
                body.update_elements(step.stepper.state.q[step.stepper.system.q_slices[0]])
                np.testing.assert_allclose(force, body.internal_force.ravel(), rtol=1e-9, atol=1e-9)
                gauge(step, replace(step.solution, v=-50.0 * step.solution.v))  # far from where the run goes
        paths.append(step.stepper.state.q)
    assert np.array_equal(*paths)


def test_first_below() -> None:
    assert first_below(np.array([1.0, 1e-5, 1.0, 1e-6]), 1e-4) == 2
    assert first_below(np.array([1.0, 0.5]), 1e-4) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234.5, "1234"),
        (12.345, "12.3"),
        (0.00123456, "0.00123"),
        (1.234e-8, "1.23e-8"),
        (np.nan, "-"),
        (-2.5, "-2.50"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_tiny_scenes_are_small_and_the_others_are_those_that_are_shipped() -> None:
    settings = Settings("tiny")
    for scene in (settings.ball(), settings.mat(), settings.pulled_mat()):
        assert scene.bodies[0].n_v < 500
    assert Settings("quick").ball().bodies[0].n_v == Settings().ball().bodies[0].n_v > 4000
