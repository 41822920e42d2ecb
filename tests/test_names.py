"""Every command with names that are not ASCII, in a locale that knows only ASCII."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from killed_runs import cube_run, killed_at
from small_scene import scene_file

import femsim as fs
from femsim.base.place import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")

#: What the child does with each line of words; `view` and `play` serve until Ctrl-C, `reproduce` would repeat a paper. Of the
#: three commands that run cases `sensitivity` starts a cluster.
CHILD = """
import builtins, os, signal, sys, threading
from inline_engine import Inline
from femsim.cli import execute
from femsim.cli.base import app
from femsim.studies.calibration import calibrate
from femsim.studies.sweeps import sweep
say, engine = print, sweep.Engine
def say_and_end(*words, **options):
    say(*words, **options)
    if "Ctrl-C ends it" in str(words):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
builtins.print, calibrate.Engine = say_and_end, Inline
if {known}:
    print("COMMANDS", *sorted(name for name in app if not name.startswith("-")))
for words, wanted in {commands!r}:
    sweep.Engine = Inline if words[0] == "sweep" else engine
    status = execute(words)
    if status != wanted:
        sys.exit(f"{{words}} gave {{status}}, not {{wanted}}")
"""


def in_c_locale(commands: list[tuple[list[str], int]], folder: Path, *, known: bool = False) -> str:
    """Do commands, and say what they printed."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "PYTHONUTF8", "PYTHONIO"))
    }
    environment |= {
        "LC_ALL": "C",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)]),
        "PYTHONCOERCECLOCALE": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(commands=commands, known=known)], env=environment, capture_output=True, cwd=folder,
        check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:] + done.stdout.decode(errors="replace")[-1000:]
    return done.stdout.decode(errors="replace")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "Prüfstand ü"
    path.mkdir()
    return path


def test_every_command(folder: Path) -> None:
    for extra in ("h5py", "viser", "dask", "pandas", "SALib", "optuna"):
        pytest.importorskip(extra)
    scene = scene_file(folder, name="würfel.py")
    run, study = str(folder / "läuft"), folder / "größe.toml"
    problem = str(folder / "läuft" / "problems" / "step_00001.hdf5")
    killed_at(3, cube_run(scene, folder / "getötet", 5, checkpoint_every=1))
    log, card, test = folder / "messung ö.csv", folder / "karte ß.toml", folder / "zug ä.csv"
    log.write_text("time_s,fx_N,fy_N,fz_N\n" + "".join(f"{0.01 * k},0,0,{0.08 + 0.01 * k}\n" for k in range(1, 25)))
    card.write_text('sensor = "cube"\n[time]\noffset = 0.0\n')
    strain = np.linspace(0.02, 0.6, 12)
    stress = 1e5 * (1 + strain - (1 + strain) ** -2.0) / 3e6
    test.write_text(
        "engineering strain,engineering stress (MPa)\n" + "".join(f"{e:g},{s:g}\n" for e, s in zip(strain, stress, strict=True))
    )
    study.write_text('scene = "würfel.py"\n[parameters]\nyoung_modulus = { values = [1e5, 2e5] }\n', encoding="utf-8")
    sensitive, fitted = folder / "empfindlich ä.toml", folder / "abgleich ß.toml"
    sensitive.write_text(
        'scene = "würfel.py"\n[parameters]\nyoung_modulus = { between = [1e5, 2e5] }\nside = { between = [0.02, 0.021] }\n'
        '[sampling]\nmethod = "saltelli"\ncount = 8\n[metrics]\nweight = "final(cube_fz_N)"\n', encoding="utf-8",
    )  # fmt: skip
    fitted.write_text(
        'scene = "würfel.py"\n[parameters]\nsteps = 24\n[free]\nyoung_modulus = { between = [5e4, 2e5], scale = "log" }\n'
        '[search]\nmethod = "sobol"\nevaluations = 4\nbatch = 4\n[refine]\nevaluations = 4\n'
        '[[experiments]]\nname = "ruhe"\nreadings = [{ logs = ["messung ö.csv"], card = { time = { offset = 0.0 } } }]\n',
        encoding="utf-8",
    )
    ok = [
        ["run", str(scene), "--out", run, "--dump-problems", "1:1", "--set", "steps=24"],
        ["run", str(scene), "--out", f"{run}2", "--format", "vtkhdf"],
        ["describe", str(scene)], ["scenes"], ["solvers"], ["materials"], ["selftest", "overlap_deep", "--out", run + ".md"],
        ["plot", run], ["report", run, "--stills", "0"], ["paraview", run], ["repair", run],
        ["render", run, "--stills", "1", "--no-mp4", "--quiet"],
        ["resume", str(folder / "getötet")],
        ["solve", problem, "--out", str(folder / "lösung.npz")],
        ["bench", problem, "--solvers", "exact", "--repeat", "1", "--quiet", "--out", str(folder / "vergleich ü")],
        ["compare", run, str(log), "--card", str(card), "--out", str(folder / "gegenüber")],
        ["fit-material", str(test), "--law", "neo_hookean", "--out", str(folder / "gummi ü.toml")],
        ["sweep", str(study), "--out", str(folder / "reihe ö"), "--workers", "1", "--quiet"],
        ["sensitivity", str(sensitive), "--out", str(folder / "einfluss ü"), "--workers", "1", "--quiet"],
        ["calibrate", str(fitted), "--out", str(folder / "angepaßt"), "--workers", "1", "--quiet"],
        ["doctor"],
    ]  # fmt: skip
    others = [
        (["view", run, "--no-open"], 0),
        (["play", str(scene), "--no-open", "--out", str(folder / "spiel ü")], 0),
        (["reproduce", "cond", "--only", "tafel_ü", "--out", str(folder / "blatt ü")], 2),
    ]
    printed = in_c_locale([*((words, 0) for words in ok), *others], folder, known=True)
    commands = next(line.split()[1:] for line in printed.splitlines() if line.startswith("COMMANDS"))
    assert {words[0] for words, _ in [*((words, 0) for words in ok), *others]} == set(commands), "each command once"
    assert json.loads((Path(run) / "run.json").read_text(encoding="utf-8"))["scene"]["file"] == str(scene)
    assert len(fs.open_frames(Path(f"{run}2")).times) == 5
    assert (folder / "lösung.npz").is_file() and (folder / "gummi ü.toml").is_file() and (folder / "läuft.md").is_file()
