"""The data that come with femsim: every file has its row in the README and can be read, and a wheel finds its own copy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from full_sets import DATA

import femsim as fs
from femsim.base import place
from femsim.studies.reproduction.paper import printed, published

ROOT = DATA.parent
#: What is made of an installed wheel, from a folder that has nothing to do with it.
USE = """
import sys
import femsim as fs, materials, meshes
from femsim.base.place import data_folder
root = sys.argv[1]
for found in (fs.__file__, materials.LIBRARY, meshes.FILES, data_folder("reference")):
    assert str(found).startswith(root), found
assert fs.material("soft_ball_rubber").elastic().young_modulus > 0 and materials.friction_pairs()
assert len(fs.load_tetmesh(fs.mesh_file("ball_r30.vtu")).tets) == 6598
assert fs.load_scene("soft_ball_gripping").bodies[0].n_nodes == 1480
assert fs.read_fclib(data_folder("problems") / "plane_blocks.hdf5").spacedim == 2
from femsim.studies.reproduction.paper import published
assert published("table_II")["nodes"] == 1477
print("good")
"""


def files() -> list[Path]:
    return [path for path in sorted(DATA.rglob("*")) if path.is_file() and path != DATA / "README.md"]


def test_every_file_has_its_row_and_every_row_its_file() -> None:
    rows = re.findall(r"^\| `([^`]+)` (\|.*\|)$", (DATA / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = [name for name, _ in rows if "/" in name]
    assert sorted(named) == sorted(path.relative_to(DATA).as_posix() for path in files())
    for name, cells in rows:
        if "/" in name:
            assert len(cells.strip("|").split("|")) == 5 and all(cell.strip() for cell in cells.strip("|").split("|")), name


def test_files_are_small() -> None:
    assert all(path.stat().st_size < 110_000 for path in files() if "results" not in path.parts)


@pytest.mark.parametrize("path", sorted((DATA / "logs").glob("*.csv")), ids=lambda path: path.stem)
def test_logs_are_read(path: Path) -> None:
    if path.stem.startswith("beam"):
        log = fs.read_log(path, {"markers": {f"tip_{k}": [f"tip_{k}_{axis}_m" for axis in "xyz"] for k in (1, 2, 3)}})
        frames = 500 if "gravity" in path.stem else 600
        assert len(log.time) == frames and log.time[-1] == pytest.approx(0.01 * (frames - 1))
    else:
        test = fs.read_tensile_test(path)
        assert test.stretch.max() > 4.0 and len(test.stretch) > 50


@pytest.mark.parametrize("path", sorted((DATA / "problems").glob("*.hdf5")), ids=lambda path: path.stem)
def test_problems_are_solved(path: Path) -> None:
    result = fs.solve_problem(path, "exact", tolerance=1e-8)
    assert result.status == "converged", result


def test_published_numbers_keep_their_digits() -> None:
    """Of Table I as the paper prints it; every table has a title, and the figures that stand twice agree."""
    assert printed(published("table_I")["penalty 1"]) == "0.0000; 30.23; 12.24"
    with (DATA / "reference" / "papers_001.toml").open("rb") as file:
        tables = {name: table for name, table in tomllib.load(file).items() if isinstance(table, dict)}
    assert [name for name in tables if name.startswith("table_")] == [
        f"table_{roman}" for roman in ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
    ]
    assert all(table["title"] for table in tables.values())
    for scene, roman in (("mat", "II"), ("ball", "III"), ("cable", "V"), ("gripper", "VI")):
        assert tables["table_IX"][scene][1] == tables[f"table_{roman}"]["cond"]["iterations"], scene


def test_a_missing_folder_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="install femsim again"):
        place.data_folder("absent")
    monkeypatch.setattr(place, "ROOT", tmp_path)  # as in a wheel: a folder data beside femsim is another's
    monkeypatch.setattr(place, "_PACKED", tmp_path)
    (tmp_path / "data" / "reference").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="reference is missing"):
        place.data_folder("reference")


def test_a_wheel_has_the_data_and_no_package_called_data(tmp_path: Path) -> None:
    """Built without a network, unpacked beside a foreign folder `data`, and used from elsewhere."""
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("femsim-*.whl")
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    top = {path.name for path in site.iterdir() if path.suffix != ".dist-info"}
    assert top == {"femsim", "foreign", "materials", "meshes", "contact", "viz", "scenes"}
    packed = {"materials": site / "materials" / "_data", "meshes": site / "meshes" / "_data"}
    for name in ("materials", "meshes", "logs", "problems", "reference", "robots", "trajectories"):
        folder = packed.get(name, site / "femsim" / "_data" / name)
        assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in (DATA / name).iterdir()), name
    (notices,) = site.glob("femsim-*.dist-info/licenses/data")
    assert {path.name for path in notices.rglob("*.*")} == {
        "README.md", "LICENSE_beam.txt", "LICENSE_tensile.txt", "LICENSE_cable_winding.txt"
    }  # fmt: skip
    for name in ("materials", "meshes", "reference", "problems"):
        (site / "data" / name).mkdir(parents=True)  # another's
    elsewhere.mkdir()
    environment = os.environ | {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", USE, str(site)], cwd=elsewhere, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout == "good\n", done.stderr
