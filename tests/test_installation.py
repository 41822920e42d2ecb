"""An installation with core dependencies only: every command that needs an extra names it. And nothing goes to the network."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small_scene import scene_file

import femsim as fs

ROOT = Path(fs.__file__).resolve().parent.parent
#: Modules that the extras bring.
EXTRAS = (
    "h5py", "trimesh", "pytetwild", "viser", "ezc3d", "mcap", "mcap_ros2", "rosbags", "dask", "distributed", "pandas", "pyarrow",
    "optuna", "SALib", "mujoco", "elastica",
)  # fmt: skip
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def core_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Work in a folder where no extra can be imported; with a run in it."""
    monkeypatch.chdir(tmp_path)
    scene_file(tmp_path)
    fs.write_fclib(tmp_path / "p.hdf5", fs.make_local_problem(np.eye(3), np.zeros(3), 0.5))
    for name in list(sys.modules):
        if name.split(".")[0] in EXTRAS:
            monkeypatch.delitem(sys.modules, name)
    for name in EXTRAS:
        monkeypatch.setitem(sys.modules, name, None)
    return tmp_path


def surface(folder: Path) -> None:
    ball = fs.sphere_triangles(0.02, 1)
    points = "".join("v {} {} {}\n".format(*p) for p in ball.points)
    (folder / "ball.obj").write_text(points + "".join("f {} {} {}\n".format(*(t + 1)) for t in ball.triangles))
    (folder / "solid.py").write_text(
        "import femsim as fs\n\n\ndef build() -> fs.Scene:\n    scene = fs.Scene('a', dt=0.01, theta=1.0)\n"
        "    scene.add_soft('ball', fs.load_volume('ball.obj', edge_length=0.01), 'ecoflex_00_50')\n    return scene\n"
    )


def sweep(folder: Path) -> None:
    (folder / "s.toml").write_text('scene = "small_cube.py"\n[parameters]\nsteps = { values = [2, 3] }\n')


def study(folder: Path) -> None:
    (folder / "t.toml").write_text(
        'scene = "small_cube.py"\nsampling = { method = "saltelli", count = 8 }\n[parameters]\n'
        "side = { between = [0.01, 0.02] }\n"
        "young_modulus = { between = [1e4, 1e5] }\n" + '[metrics]\nweight = "final(floor_fz_N)"\n'
    )


def calibration(folder: Path) -> None:
    (folder / "c.toml").write_text(
        'scene = "small_cube.py"\n[free]\nside = { between = [0.01, 0.02] }\n[[experiments]]\nname = "a"\n'
        'readings = [{ logs = ["a.csv"] }]\n'
    )
    (folder / "a.csv").write_text("time,Fx,Fy,Fz\n" + "".join(f"{0.01 * k},0,0,1\n" for k in range(20)))


def log(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(b"x" * 2000) and None


@pytest.mark.parametrize(
    ("arguments", "prepare", "extra"),
    [
        ("run small_cube.py --out r --format vtkhdf", None, "hdf"),
        ("run small_cube.py --out r --dump-problems 1", None, "hdf"),
        ("run solid.py --out r", surface, "mesh"),
        ("solve p.hdf5", None, "hdf"),
        ("bench p.hdf5", None, "hdf"),
        ("view r", None, "view"),
        ("compare r log.mcap", log("log.mcap"), "logs"),
        ("compare r log.c3d", log("log.c3d"), "logs"),
        ("compare r log.bag", log("log.bag"), "logs"),
        ("sweep s.toml", sweep, "sweep"),
        ("sensitivity t.toml", study, "sweep|identify"),
        ("calibrate c.toml", calibration, "sweep|identify"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    arguments: str, prepare: Callable[[Path], None] | None, extra: str, core_only: Path, call: Call
) -> None:
    if prepare is not None:
        prepare(core_only)
    if " r" in arguments and "--out" not in arguments:
        assert call("run", "small_cube.py", "--duration", "0.15", "--out", "r", "--quiet")[0] == 0
    status, _, err = call(*arguments.split())
    assert status == 2 and "Traceback" not in err, err
    assert any(f"femsim[{name}]" in err for name in extra.split("|")), err


def test_the_rest_works_without_extras(core_only: Path, call: Call) -> None:
    for arguments in (
        "run small_cube.py --out r --quiet", "describe small_cube.py", "scenes", "materials", "solvers", "plot r --formats svg",
        "report r",
        "paraview r", "selftest --list", "--version",
    ):  # fmt: skip
        status, _, err = call(*arguments.split())
        assert status == 0, (arguments, err)


def test_doctor_says_which_extras_are_there_and_how_to_get_the_others(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from femsim.cli import doctor

    needed = doctor._requirements()
    assert needed["hdf"] == ["h5py"] and {"dask", "optuna"} <= set(needed["identify"])
    monkeypatch.setattr(doctor, "_requirements", lambda: needed | {"hdf": ["h5py", "no-such-package"]})
    status, out, _ = call("doctor")
    assert status == 0
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith("  ") and line.strip()}
    assert set(doctor._EXTRAS) <= set(lines)
    assert "no (no-such-package missing): " in lines["hdf"] and "-e '.[hdf]'" in lines["hdf"]
    assert lines["sweep"].rstrip().endswith("yes")
    assert "written and read back" in out and " s for a small kernel" in out
    block = out.partition("for a bug report\n")[2]
    assert f"femsim {fs.__version__}" in block and "factorization " in block and str(Path.home()) + "/" not in block


def test_the_columns_of_doctor_stay_apart_and_its_block_fits_a_terminal(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from femsim.cli import doctor

    longest = "a-package-with-a-long-name"
    monkeypatch.setattr(doctor, "_PACKAGES", ("numpy", longest))
    monkeypatch.setattr(doctor, "_EXTRAS", doctor._EXTRAS | {"hdf": "a purpose that takes far more words than all others"})
    out = call("doctor")[1]
    table, _, rest = out.partition("\nextras\n")
    extras, _, block = rest.partition("for a bug report\n")
    assert f"\n{longest}  MISSING\n" in table
    for lines, wide in ((table.splitlines(), longest), (extras.splitlines(), f"  identify  {doctor._EXTRAS['hdf']}")):
        filled = [line for line in lines if line.strip()]
        assert len(filled) >= 8
        for line in filled:  # all have their last column in one place, two blanks behind the others
            assert line[len(wide) :].startswith("  ") and line[len(wide) + 2] != " ", line
    lines = block.partition("\n\n")[0].splitlines()
    assert len(lines) > 8 and max(map(len, lines)) <= 80
    assert f"numpy {doctor._found(('numpy',))[0]['numpy']}," in block


def test_doctor_says_that_the_cache_cannot_be_written(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "nowhere"))
    status, out, _ = call("doctor")
    assert status == 0 and "NOT CACHED" in out and "set NUMBA_CACHE_DIR" in out


# ---------------------------------------------------------------------- network

WATCH = """
import json, sys
asked = []
def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.bind", "urllib.Request"):
        if not (event == "socket.connect" and isinstance(arguments[1], (str, bytes))):  # a Unix socket
            asked.append([event, repr(arguments[1:])])
sys.addaudithook(hook)
from femsim.cli import execute
statuses = [execute(words) for words in json.loads(sys.argv[1])]
ours = list(asked)
import socket
socket.getaddrinfo("localhost", 1)  # the hook sees a connection where there is one
print("\\n" + json.dumps([statuses, ours, len(asked) - len(ours)]))
"""


def test_nothing_goes_to_the_network(tmp_path: Path) -> None:
    scene_file(tmp_path)
    fs.write_fclib(tmp_path / "p.hdf5", fs.make_local_problem(np.eye(3), np.zeros(3), 0.5))
    commands = [
        "run small_cube.py --out r --quiet",
        "plot r --formats svg",
        "report r",
        "solve p.hdf5",
        "describe small_cube.py",
        "materials",
        "doctor",
    ]
    words = json.dumps([command.split() for command in commands])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", WATCH, words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    statuses, asked, seen = json.loads(done.stdout.splitlines()[-1])
    assert statuses == [0] * len(commands), done.stderr
    assert asked == [] and seen


def test_no_file_of_ours_imports_what_goes_to_the_network() -> None:
    """Only the page of a run listens; cases of a sweep ask for the name of their machine, the child of readers has a pair."""
    forbidden = {
        "urllib.request",
        "http.client",
        "requests",
        "httpx",
        "ftplib",
        "smtplib",
        "socketserver",
        "http.server",
        "xmlrpc",
    }
    allowed = {"socket": {"viz/scene_page.py", "viz/gate.py", "foreign/child.py", "femsim/studies/sweeps/case.py"}}
    wrong = []
    for package in ("femsim", "foreign", "materials", "meshes", "contact", "viz", "scenes"):
        for path in (ROOT / package).rglob("*.py"):
            name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            if not any(module.split(".")[0] in text for module in (*forbidden, *allowed)):
                continue
            for node in ast.walk(ast.parse(text)):
                found = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                found += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                wrong += [f"{name}: {module}" for module in found if module in forbidden]
                wrong += [f"{name}: {module}" for module in found if module in allowed and name not in allowed[module]]
    assert not wrong, wrong


def test_the_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {fs.__version__}\n" in text and "\nlicense: BSD-3-Clause\n" in text
