"""The wheel: built here, installed into an empty environment, used from another folder, uninstalled. No network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from shared_kernels import link_kernels

import femsim as fs

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("femsim", "foreign", "materials", "meshes", "contact", "viz", "scenes")

pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="the sources are not here")


def done(command: list[str], folder: Path, **variables: str) -> str:
    """Run a command as a user of another folder would: nothing of ours is on the path of Python."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    environment |= variables
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def pip(*words: str, folder: Path) -> None:
    done([sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *words], folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="the extra dev is not installed")
    pytest.importorskip("pip", reason="this environment has no pip")
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(folder), str(ROOT), folder=folder)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the wheel; what it depends on is that of the present one. At the end it is uninstalled."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False)
    python = str(folder / "venv" / "bin" / "python")
    pip("--python", python, "install", "--no-compile", "--no-deps", "--no-index", str(wheel), folder=folder)
    site = Path(done([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    others = site / "others.pth"  # only now, so that pip takes nothing there for its own
    others.write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))
    yield folder
    others.unlink()
    pip("--python", python, "uninstall", "--yes", "femsim", folder=folder)
    left = [path.name for path in site.iterdir() if path.name.partition("-")[0] in PACKAGES]
    assert not left, left
    assert not (folder / "venv" / "bin" / "femsim").exists()


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def test_the_metadata_are_complete(wheel: Path) -> None:
    said = metadata(wheel)
    assert said["Name"] == "femsim" and said["Version"] == fs.__version__ and said["Requires-Python"] == ">=3.11"
    assert said["Summary"] and said["Author"] and said["Keywords"] and said["License-Expression"] == "BSD-3-Clause"
    assert said["Description-Content-Type"] == "text/markdown" and "# femsim" in said.get_payload()
    assert set(said.get_all("Provides-Extra") or []) >= {"mesh", "hdf", "view", "logs", "sweep", "identify", "docs", "dev"}
    assert "Typing :: Typed" in (said.get_all("Classifier") or [])


def test_it_holds_our_packages_and_their_data_only(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names} == {*PACKAGES, f"femsim-{fs.__version__}.dist-info"}
    assert {"femsim/py.typed", "femsim/__init__.pyi", "femsim/_data/logs/LICENSE_beam.txt"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]
    assert wheel.stat().st_size < 3_000_000


def test_the_main_job_runs_from_another_folder(installed: Path) -> None:
    femsim = str(installed / "venv" / "bin" / "femsim")
    assert done([femsim, "--version"], installed).strip().endswith(fs.__version__)
    place = done([str(installed / "venv" / "bin" / "python"), "-c", "import femsim; print(femsim.__file__)"], installed).strip()
    assert Path(place).is_relative_to(installed)
    link_kernels(installed / "kernels", Path(place).parent.parent)
    done([femsim, "run", "soft_ball_gripping", "--out", "ball", "--quiet"], installed, NUMBA_CACHE_DIR=str(installed / "kernels"))
    info = json.loads((installed / "ball" / "run.json").read_text(encoding="utf-8"))
    assert info["status"] == "converged" and info["health"]["verdict"] == "good" and info["versions"]["femsim"] == fs.__version__
    table = np.genfromtxt(installed / "ball" / "sensors.csv", delimiter=",", names=True)
    carried = -(table["left_finger_fz_N"] + table["right_finger_fz_N"])[-1]
    assert carried == pytest.approx(9.81 * 0.1131, rel=1e-3)  # N, the weight of the ball


def test_scenes_cards_and_files_are_found(installed: Path) -> None:
    code = (
        "import femsim\nfrom femsim.base.place import data_folder\nfrom femsim.cli import execute\n"
        "for name in ('scenes', 'materials', 'solvers'):\n    assert execute([name]) == 0\n    print(end='\\f', flush=True)\n"
        "print(femsim.mesh_file('pad.stl'), *data_folder('logs').iterdir())"
    )
    scenes, cards, _, files = done([str(installed / "venv" / "bin" / "python"), "-c", code], installed).split("\f")
    assert all(path.stem in scenes for path in fs.list_scenes())
    assert all(path.stem in cards for path in (ROOT / "data" / "materials").glob("*.toml") if path.stem != "friction")
    for path in files.split():
        assert Path(path).is_relative_to(installed) and Path(path).stat().st_size > 100
