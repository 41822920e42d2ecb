"""The command line: exit statuses, what goes to which stream, and that every end is a sentence."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from command_line import Call, Command, assert_sentence, info
from small_scene import FILE, scene_file

import femsim as fs
from femsim.cli import app

ROOT = Path(fs.__file__).resolve().parent.parent
SCENE = ROOT / "scenes" / "soft_ball_gripping.py"


# ------------------------------------------------------------------ run


@pytest.fixture
def folder(scene: str, call: Call) -> Path:
    assert call("run", scene, "--set", "steps=2", "--out", "cube", "--quiet")[0] == 0
    return Path("cube")


def test_run_writes_a_folder_and_prints_a_summary(scene: str, call: Call) -> None:
    status, out, err = call("run", scene, "--set", "young_modulus=2e5", "--set", "steps=2", "--out", "results/cube")
    assert status == 0
    for words in (
        "status             converged",
        "steps              2 (0.020 s",
        "wrench balance",
        "results/cube",
        "femsim render",
    ):
        assert words in out
    assert "Traceback" not in err
    content = info(Path("results/cube"))
    assert content["parameters"]["young_modulus"] == {"value": 2e5, "unit": "Pa"} and content["settings"]["steps"] == 2
    assert Path("results/cube/scene.py").read_text(encoding="utf-8") == FILE


def test_run_takes_all_options(scene: str, call: Call) -> None:
    status, out, err = call(
        "run", scene, "--solver", "cond", "--tolerance", "1e-6", "--max-iterations", "900", "--duration", "0.02", "--dt", "0.005",
        "--fps", "50", "--fields", "von_mises, velocity", "--format", "pvd", "--quiet",
    )  # fmt: skip
    assert (status, out, err) == (0, "", "")
    folder = Path("runs/small_cube")
    content = info(folder)
    options = content["solver"]["options"]
    assert options["tolerance"] == 1e-6 and options["max_iterations"] == 900
    assert content["settings"]["dt_s"] == 0.005 and content["settings"]["steps"] == 4 and content["settings"]["fps"] == 50
    frames = fs.read_pvd(folder / "frames.pvd")
    cube = fs.read_part(frames[-1][1]["cube"])
    assert len(frames) == 2 and {*cube.point_data, *cube.cell_data} == {"von_mises", "velocity"}


def test_run_never_replaces_unasked(scene: str, call: Call) -> None:
    assert call("run", scene, "--quiet")[0] == 0
    named = ("run", scene, "--quiet", "--out", "runs/small_cube")
    assert_sentence(*call(*named), "runs/small_cube exists", "--out", "--overwrite")
    assert call("run", scene, "--quiet", "--set", "steps=2")[0] == 0  # unnamed: a new folder beside the old one
    assert [info(Path("runs") / name)["settings"]["steps"] for name in ("small_cube", "small_cube-2")] == [4, 2]
    assert call("run", scene, "--quiet", "--overwrite", "--set", "steps=1")[0] == 0
    assert info(Path("runs/small_cube"))["settings"]["steps"] == 1


def test_a_scene_that_comes_with_femsim_runs_by_name(scene: str, call: Call) -> None:
    status, _, err = call("run", "soft_ball_gripping", "--duration", "0.01", "--fps", "1", "--quiet", "--out", "ball")
    assert status == 0, err
    assert Path("ball/scene.py").read_bytes() == SCENE.read_bytes()


def test_not_converged_is_3_and_said_also_when_quiet(scene: str, call: Call) -> None:
    status, out, err = call("run", scene, "--solver", "exact", "--max-iterations", "1", "--quiet")
    assert status == 3 and out == ""
    err, _, health = err.partition("\n")
    assert health.startswith("femsim: health wrong: 4 of 4 steps did not converge") and health.count("\n") == 1
    assert err == "femsim: not converged: 4 of 4 steps stopped at the iteration limit, first step 1; " \
        "raise max_iterations or the tolerance."  # fmt: skip
    assert info(Path("runs/small_cube"))["status"] == "not converged"


def test_numbers_that_are_none_are_3_and_said(scene: str, call: Call) -> None:
    Path(scene).write_text(FILE.replace("position=(*where", "load=lambda t: (0, 0, 1e307), position=(*where"))
    status, out, err = call("run", scene, "--quiet")
    assert status == 3 and out == "" and err.startswith("femsim: failed: Step 1 at 0.0100 s failed")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["smal_cube.py"], ("'smal_cube.py' does not exist", "did you mean 'small_cube.py'")),
        (["."], ("folder",)),
        (["--set", "young=1"], ("no parameter 'young'", "young_modulus")),
        (["--set", "young_modulus=soft"], ("parameter 'young_modulus' is 'soft'", "a number (Pa)")),
        (["--set", "young_modulus=nan"], ("'nan'", "not finite")),
        (["--set", "young_modulus"], ("--set", "'young_modulus'", "NAME=VALUE")),
        (["--set", "=3"], ("--set", "NAME=VALUE")),
        (["--set", "young_modulus=-1"], ("young_modulus is -1.0", "greater than 0 and at most 1e16 Pa")),
        (["--dt", "0"], ("dt is 0", "positive")),
        (["--dt", "soon"], ("--dt", "soon")),
        (["--duration", "-1"], ("duration is -1", "positive")),
        (["--duration", "0.001"], ("duration 0.001 s", "at least one step")),
        (["--solver", "cnd"], ("'cnd'", "'cond'", "femsim solvers")),
        (["--tolerance", "0"], ("tolerance", "between 0 and 1")),
        (["--max-iterations", "0"], ("max_iterations", ">= 1")),
        (["--max-iterations", "1.5"], ("--max-iterations", "1.5")),
        (["--fps", "0"], ("fps is 0", "positive")),
        (["--fields", "velocit"], ("'velocit'", "did you mean 'velocity'")),
        (["--format", "vtk"], ("--format", "vtk", "pvd")),
        (["--out", "/dev/null/run"], ("/dev/null/run", "cannot be written", "--out")),
        (["--no-such-option"], ("--no-such-option", "femsim run --help")),
    ],
)
def test_wrong_input_to_run(arguments: list[str], words: tuple[str, ...], scene: str, call: Call) -> None:
    named = [] if arguments[0] in ("smal_cube.py", ".") else [scene]
    assert_sentence(*call("run", *named, *arguments), *words)
    assert sorted(os.listdir()) == [scene] or sorted(os.listdir()) == ["runs", scene]
    assert not Path("runs").exists() or not os.listdir("runs")


def test_the_first_run_says_that_it_compiles(scene: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody looks on; compiling begins before there is a progress bar."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    wrong = ("run", scene, "--out", "/dev/null/run")  # ends it before the first step
    assert "compiling" not in call(*wrong)[2]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "compiling" not in call(*wrong, "--quiet")[2]
    assert call(*wrong)[2].startswith("femsim: compiling kernels first, once for all runs")
    (tmp_path / "kernel.nbi").touch()
    assert "compiling" not in call(*wrong)[2]


def test_wrong_scenes(scene: str, call: Call) -> None:
    Path(scene).write_text("import femsim as fs\n\n\ndef build():\n    return 1 / 0\n")
    assert_sentence(*call("run", scene), f"{scene}, line 5", "ZeroDivisionError", "correct the scene file")
    Path(scene).write_text("x = 1\n")
    assert_sentence(*call("run", scene), "no function 'build'")
    Path(scene).write_text("import femsim as fs\n\n\ndef build():\n    return fs.Scene('empty', theta=1.0)\n")
    assert_sentence(*call("run", scene), "'empty' has no body that moves")
    Path(scene).write_text(FILE.replace("fs.box_tets((side, side, side), 2)", "'ball.vtu'"))
    assert_sentence(*call("run", scene), "ball.vtu", "no such file")


def test_a_function_of_the_scene_that_fails_in_the_run_is_no_bug_of_femsim(scene: str, call: Call) -> None:
    Path(scene).write_text(FILE.replace("position=(*where", "load=lambda t: 1 / 0, position=(*where"))
    line = 1 + Path(scene).read_text().splitlines().index(next(x for x in Path(scene).read_text().splitlines() if "1 / 0" in x))
    assert_sentence(*call("run", scene, "--quiet"), f"{scene}, line {line}", "a function of the scene", "ZeroDivisionError")
    assert info(Path("runs/small_cube"))["status"] == "failed"


# ------------------------------------------------------------------ the other commands


def test_describe(scene: str, call: Call) -> None:
    status, out, _ = call("describe", scene)
    assert status == 0
    assert "A soft cube on a floor.\n\nIt stays there." in out
    rows = [line.split() for line in out.splitlines()]
    assert "young_modulus 100000.0 Pa Young's modulus of the cube.".split() in rows
    assert "side 0.02 m Edge length.".split() in rows
    assert "27 nodes, 48 tets" in out and "0.008 kg" in out and "sensors: cube" in out
    assert_sentence(*call("describe", "nothing.py"), "'nothing.py' does not exist")


def test_describe_refuses_and_notes_what_a_run_does(scene: str, call: Call) -> None:
    """It said nothing of a sensor that every run refuses, nor of values that the scene itself had noted."""
    Path(scene).write_text(
        "import femsim as fs\n\n\ndef build(gravity: float = -9.81, kind: str = 'mount'):\n"
        "    scene = fs.Scene('a', dt=0.01, duration=0.1, gravity=(0, 0, gravity))\n"
        "    scene.add_rigid('box', fs.Box((0.01, 0.01, 0.01)), density=1.5)\n"
        "    scene.sensor('wrist', 'box', kind=kind)\n    return scene\n"
    )
    status, out, err = call("describe", scene)
    assert status == 2 and "kind" in out and "sensor wrist: kind 'mount' measures the drive of 'box', which has none" in err
    Path(scene).write_text(Path(scene).read_text().replace("-9.81", "-9810.0").replace("'mount'", "'contact'"))
    status, out, _ = call("describe", scene)
    assert status == 0 and "note: gravity is 9810" in out and "note: density of box is 1.5 kg/m^3" in out


def test_describe_a_scene_that_must_be_given_something(scene: str, call: Call) -> None:
    Path(scene).write_text(FILE.replace("young_modulus: float = 1e5", "young_modulus: float"))
    status, out, err = call("describe", scene)
    assert (status, err) == (0, "") and "must be given" in out


def test_scenes(call: Call) -> None:
    status, out, _ = call("scenes")
    assert status == 0
    (line,) = (line for line in out.splitlines() if "soft_ball_gripping" in line)
    assert line.split()[0] == "soft_ball_gripping" and "grasps a soft ball" in line  # what `femsim run` takes in any folder
    assert str(ROOT / "scenes") in out


def test_materials(call: Call) -> None:
    status, out, _ = call("materials")
    assert status == 0
    for name in fs.materials():
        assert any(line.split()[:1] == [name] for line in out.splitlines()), name
    line = next(line for line in out.splitlines() if line.startswith("ecoflex_00_50"))
    assert "8.3e+04 Pa" in line and "0.42" in line
    assert "friction pair" in out


def test_solvers(call: Call) -> None:
    status, out, _ = call("solvers")
    assert status == 0
    for name, entry in fs.SOLVERS.items():
        assert f"{name}: {entry.description}" in out
        for option in fields(entry.options):
            assert option.name in out
    assert any(line.split() == ["tolerance", "1e-05"] for line in out.splitlines())


def test_doctor(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    status, out, _ = call("doctor")
    assert status == 0 and out.splitlines()[-1] == "OK"
    for name in ("python", "numpy", "numba", "kernels", "pictures"):
        assert any(line.startswith(name) for line in out.splitlines()), name
    assert call("doctor", "--rendering")[0] == (0 if fs.probe_rendering().ok else 2)
    monkeypatch.setattr("femsim.cli.doctor._PACKAGES", ("numpy", "no-such-package"))
    status, out, _ = call("doctor")
    assert status == 2 and out.splitlines()[-1] == "NOT OK: install no-such-package (./go setup does it)."


def test_plot(folder: Path, call: Call) -> None:
    status, out, _ = call("plot", str(folder), "--formats", "png")
    assert status == 0
    paths = [Path(line) for line in out.splitlines()]
    assert folder / "plots" / "forces.png" in paths and all(path.stat().st_size > 0 for path in paths)
    assert_sentence(*call("plot", "nowhere"), "nowhere does not exist", "give the folder")


def test_render(folder: Path, call: Call) -> None:
    status = fs.probe_rendering()
    if not status.ok:
        pytest.skip(status.message)
    code, out, err = call("render", str(folder), "--stills", "1", "--no-mp4", "--quiet")
    assert code == 0, err
    code, out, err = call("render", str(folder), "--stills", "2", "--no-mp4", "--out", "pictures", "--camera", "front")
    assert code == 0, err
    pictures = [Path(line) for line in out.splitlines() if line.endswith(".png")]
    assert len(pictures) == 2 and all(path.parent == Path("pictures") and path.stat().st_size > 1000 for path in pictures)
    assert len(list((folder / "pictures").glob("*.png"))) == 1


def test_wrong_input_to_render(folder: Path, call: Call) -> None:
    assert_sentence(*call("render", "nowhere", "--quiet"), "nowhere does not exist", "give the folder")
    assert_sentence(*call("render", str(folder), "--every", "0", "--quiet"), "every is 0", "1")
    assert_sentence(*call("render", str(folder), "--stills", "few"), "--stills", "few")
    assert_sentence(*call("render", str(folder), "--size", "wide"), "--size is 'wide'", "1920x1080")
    assert_sentence(*call("render", str(folder), "--size", "20x20", "--quiet"), "64 to 8192")
    assert_sentence(*call("render", str(folder), "--speed", "0", "--quiet"), "speed is 0", "1 is real time")
    assert_sentence(*call("render", str(folder), "--camera", "tip", "--quiet"), "did you mean 'top'?")


# ------------------------------------------------------------------ every end


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], [], ["run", "--help"], ["plot", "--help"]])
def test_help(arguments: list[str], call: Call) -> None:
    status, out, err = call(*arguments)
    assert status == 0 and err == "" and "Usage: femsim" in out
    if "run" not in arguments and "plot" not in arguments:
        for command in ("run", "describe", "scenes", "materials", "solvers", "doctor", "render", "plot"):
            assert command in out
        assert "Exit status" in out


@pytest.mark.parametrize("command", [name for name in app if not name.startswith("-")])
def test_help_tells_what_an_option_does_and_no_empty_default(command: str, call: Call) -> None:
    _, out, _ = call(command, "--help")
    words = " ".join(out.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())
    assert not any(f"[default: {empty}]" in words for empty in ("None", "()", '""', "False")) and "--empty-" not in words
    assert not re.search(r"--[\w-]+ [A-Z|]+(\.\.\.)? \[default", words)  # nothing said between


def test_version(call: Call) -> None:
    assert call("--version") == (0, f"{fs.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rum"], ("rum", "femsim --help")),
        (["run"], ("SCENE", "femsim run --help")),
        (["plot"], ("RUNS", "femsim plot --help")),
        (["scenes", "more"], ("'more'", "femsim scenes --help")),
    ],
)
def test_wrong_commands(arguments: list[str], words: tuple[str, ...], call: Call) -> None:
    status, out, err = call(*arguments)
    assert_sentence(status, out, err, *words)


def test_a_crash_says_that_it_is_a_bug(scene: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr("femsim.run.simulate.simulate", crash)
    status, out, err = call("run", scene)
    assert status == 1 and out == ""
    assert "Traceback" in err and "ZeroDivisionError: in the middle" in err
    assert err.splitlines()[-1].startswith("femsim: this is a bug in femsim; please report it")


def test_a_full_disk_is_no_bug(scene: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device", "runs/small_cube/steps.csv")

    monkeypatch.setattr("femsim.run.simulate.simulate", full)
    assert_sentence(*call("run", scene), "runs/small_cube/steps.csv: No space left on device", "free the disk", "--out")


def test_ctrl_c_outside_the_steps(scene: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("femsim.run.simulate.simulate", stop)
    assert call("run", scene) == (130, "", "femsim: interrupted.\n")


# ------------------------------------------------------------------ the real command

COMMAND = [sys.executable, "-c", "from femsim.cli import main; main()"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "it did not come to that within a minute"
        time.sleep(0.02)


def interrupted(command: Command, true: Callable[[], bool]) -> tuple[int, str]:
    """Press Ctrl-C when something is true; exit status and what the command said on stderr."""
    try:
        wait_until(true)
    finally:
        os.kill(command.pid, signal.SIGINT)
    return command.wait()


def lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n") if path.exists() else 0


def test_the_command_is_installed() -> None:
    script = Path(sys.executable).with_name("femsim")
    if not script.exists():
        pytest.skip("femsim is not installed in the environment of this Python (./go setup does it)")
    done = subprocess.run([str(script), "run", "nothing.py"], capture_output=True, text=True, timeout=60, check=False)
    assert_sentence(done.returncode, done.stdout, done.stderr, "'nothing.py' does not exist")


def test_times_of_solvers_are_those_of_one_thread(tmp_path: Path) -> None:
    """The command says so before numpy loads its threads, which it must not do by itself."""
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.endswith("_NUM_THREADS")}
    problem = ROOT / "data" / "problems" / "ball_on_floor.hdf5"
    words = ["bench", str(problem), "--solvers", "exact", "--repeat", "1", "--out", "bench", "--quiet"]
    done = subprocess.run([*COMMAND, *words], env=environment, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "bench" / "bench.json").read_text("utf-8"))["machine"]["threads"] == "1"


FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


@FORKS
def test_ctrl_c_ends_a_run_with_130_and_readable_results(tmp_path: Path) -> None:
    path = scene_file(tmp_path)
    command = Command("run", str(path), "--set", "steps=1000000", "--out", str(tmp_path / "cube"), said=tmp_path)
    status, err = interrupted(command, lambda: lines(tmp_path / "cube" / "steps.csv") > 3)
    assert status == 130, err
    assert "Traceback" not in err
    assert "status             interrupted: Interrupted after step" in (tmp_path / "out").read_text(encoding="utf-8")
    content = info(tmp_path / "cube")
    steps = content["health"]["steps"]
    assert content["status"] == "interrupted" and steps >= 3
    assert lines(tmp_path / "cube" / "steps.csv") == lines(tmp_path / "cube" / "sensors.csv") == steps + 1
    frames = fs.read_pvd(tmp_path / "cube" / "frames.pvd")
    assert len(frames) == steps + 1
    for _, files in (frames[0], frames[-1]):
        assert fs.read_part(files["cube"]).n_points == 27


@FORKS
def test_ctrl_c_while_the_scene_is_built(tmp_path: Path) -> None:
    sleep = "    import pathlib, time\n    pathlib.Path(__file__).with_name('ready').touch()\n    time.sleep(60)\n    scene = "
    path = scene_file(tmp_path, FILE.replace("    scene = ", sleep))
    ended = interrupted(Command("run", str(path), said=tmp_path), (tmp_path / "ready").exists)
    assert (*ended, (tmp_path / "out").read_text(encoding="utf-8")) == (130, "femsim: interrupted.\n", "")


def test_a_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    process = start(tmp_path, "materials")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), err) == (0, "")


def test_a_warning_is_a_note_without_the_line_of_code_that_gave_it(tmp_path: Path) -> None:
    scene = tmp_path / "warns.py"
    scene.write_text(
        "import warnings\n"
        "import femsim as fs\n"
        "def build():\n"
        "    warnings.warn('the ball is coarse.')\n"
        "    scene = fs.Scene('warns', duration=0.01)\n"
        "    scene.add_rigid('ball', fs.Sphere(0.01), mass=0.01)\n"
        "    return scene\n"
    )
    done = subprocess.run([sys.executable, "-m", "femsim", "describe", str(scene)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "femsim: note: the ball is coarse." in done.stderr
    assert "UserWarning" not in done.stderr and "warns.py" not in done.stderr


def test_names_of_files_are_read_also_where_python_keeps_a_c_locale(tmp_path: Path) -> None:
    """Python would read them as ASCII then, and end with a traceback where one is printed."""
    scene_file(tmp_path).rename(tmp_path / "w\u00fcrfel.py")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = ["run", "w\u00fcrfel.py", "--set", "steps=1", "--out", "\u00fcbung"]
    for words, status in ((run, 0), (["describe", "\u00e4rm.py"], 2)):
        done = subprocess.run([*COMMAND, *words], env=environment, cwd=tmp_path, capture_output=True, check=False)
        said = done.stdout.decode() + done.stderr.decode()
        assert done.returncode == status and "Traceback" not in said, said
        assert any(word in said for word in (*words, "small_cube") if not word.startswith("-"))
    assert (tmp_path / "\u00fcbung" / "run.json").is_file()
