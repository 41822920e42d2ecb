"""No input hangs, crashes or fills the memory: every file of the corpus ends as a sentence, soon, in bounded memory.

The child that reads files of others has its limits; they are tested with readers that break them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import meshio
import numpy as np
import pytest
from bad_files import CORPUS, size_of, write_corpus
from killed_runs import in_child

import femsim as fs
import foreign
from foreign import child

#: The bound of a file: 5 s, and memory of 20 times the file and 200 MB.
SECONDS, TIMES_FILE, BYTES = 5.0, 20, 200_000_000
HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="module")
def endings(folder: Path) -> dict[str, tuple[str, float, float]]:
    """How each file ended: words, seconds, bytes."""
    found: dict[str, tuple[str, float, float]] = {}
    names, root = list(CORPUS), Path(fs.__file__).resolve().parent.parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(HERE)])}
    while len(found) < len(names):  # a file that kills the process is met once
        command = [sys.executable, str(HERE / "bad_files.py"), str(folder), str(len(found)), "20"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
        for line in done.stdout.splitlines():
            name, *ended = json.loads(line)
            found[name] = tuple(ended)
        if len(found) < len(names):
            found[names[len(found)]] = (f"killed ({done.returncode}) {done.stderr[-200:]}", 20.0, 0.0)
    return found


@pytest.mark.parametrize("name", CORPUS)
def test_a_bad_file_is_a_sentence_soon_and_in_bounded_memory(
    name: str, folder: Path, endings: dict[str, tuple[str, float, float]]
) -> None:
    ended, seconds, memory = endings[name]
    assert ended.startswith("refused: ") and name.split(".")[0] in ended, ended
    assert seconds < 4 * SECONDS, (seconds, ended)  # the limit is of processor time, and CI's machines are shared
    assert memory < TIMES_FILE * size_of(folder / name) + BYTES, (memory / 1e6, ended)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("indefinite.hdf5", "eigenvalue -0.5"),
        ("external_link.hdf5", "link to another place or file"),
        ("external_storage.hdf5", "kept in another file"),
        ("virtual.hdf5", "kept in another file"),
        ("soft_link.hdf5", "link to another place or file"),
        ("triplets_of_3e8.hdf5", "m = 300000000"),
        ("infinite.csv", "line 9: column 'Fx' holds 'inf', which is infinite"),
        ("far_away.obj", "coordinate is 1e+07 m, but at most 1e+06 m"),
        ("tiny.vtk", "spans 1e-11 m, but at least 1e-09 m"),
        ("empty_tensile.csv", "has 0 samples"),
        ("columns_200000.csv", "200000 columns in line 1; at most 5000"),
        ("cut_in_header.ply", "its header has no end_header: it is cut off"),
        ("cut_ansys.msh", "is cut off: it ends where more should follow"),
        ("bracket_ansys.msh", "is cut off: it ends where more should follow"),
        ("no_coordinates.obj", "a table of shape (1, 0)"),
        ("two_corners.ply", "quad cells have 2 corners"),
        ("one_row_cut.csv", "one line of numbers (2), and that is cut off"),
        ("number_of_400_digits.toml", "has a whole number of 400 digits"),
        ("laughs.vtu", "defines entities"),
        ("heap.hdf5", "claim 18446744073709551615 bytes of a heap of 4283"),
        ("brackets_20000.toml", "nested more deeply than 64 levels"),
        ("cut_at_842.c3d", "842 bytes: it is cut off"),
        ("density_1e308.toml", "density is 1e+308, but must be a number greater than 0 and at most 1e12"),
        ("huge_moment.urdf", "has ixx '1e308' in <inertia>; allowed are numbers up to 1e+09"),
        ("huge_capsule.urdf", "allowed are lengths up to 1e+06 m. Are its units right?"),
        ("claims_1e12.npz", "claims (1000000000000,) values, but has 0 bytes"),
    ],
)
def test_the_sentence_says_what_is_wrong(name: str, words: str, endings: dict[str, tuple[str, float, float]]) -> None:
    assert words in endings[name][0]


@pytest.mark.parametrize("dt", [1e3, 1e308])
def test_a_time_step_of_minutes_is_refused(dt: float) -> None:
    with pytest.raises(fs.InputError, match="allowed are positive numbers up to 100 s"):
        fs.Scene("a", dt=dt, theta=1.0)
    scene = fs.Scene("a", dt=0.01, duration=2e3, theta=1.0)
    scene.add_rigid("ball", fs.Sphere(0.1), density=1e3)
    with pytest.raises(fs.InputError, match="allowed are positive numbers of seconds up to 100"):
        fs.simulate(scene, dt=dt)
    with pytest.raises(fs.InputError, match=r"density of b.*allowed are positive numbers up to 1e\+12"):
        scene.add_rigid("b", fs.Sphere(0.1), density=1e308)


# ---------------------------------------------------------------------- the child


def _ends(how: str) -> dict[str, object]:
    """Be a reader that is stopped in some way."""
    if how == "loops":
        while True:
            pass
    if how == "sleeps":
        time.sleep(100)
    if how == "fills":
        return {"values": np.ones(100_000_000)}
    if how == "answers too much":
        return {"values": np.ones(6_000_000)}
    if how == "crashes":
        os.abort()
    if how == "writes":
        Path(os.environ["TMPDIR"], "written").write_text("x" * 100)
    if how == "exits":
        sys.exit(1)
    return {
        "numbers": np.arange(6.0).reshape(2, 3),
        "bytes": np.array([1, 2], np.uint8),
        "none": np.zeros((0, 3)),
        "words": ["é"],
    }


def test_arrays_come_back_as_they_are() -> None:
    found = foreign.call(_ends, 10, how="well")
    assert found["words"] == ["é"] and found["bytes"].dtype == np.uint8 and found["none"].shape == (0, 3)
    np.testing.assert_array_equal(found["numbers"], [[0, 1, 2], [3, 4, 5]])
    found["numbers"][0, 0] = 7.0  # they belong to the caller


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("loops", "takes longer than 1 s"),
        ("sleeps", "takes longer than 1 s"),
        ("fills", "takes more memory than 20 times its size and 150 MB"),
        ("answers too much", "more memory"),
        ("crashes", "crashed on it"),
        ("writes", "File too large|crashed on it .SIGXFSZ"),
        ("exits", "no reader could make sense of it"),
    ],
)
def test_a_reader_that_breaks_a_limit_is_stopped(how: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(child, "SECONDS", 1)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    child._helper.stop()
    with monkeypatch.context() as patch, pytest.raises(foreign.Refused, match=words):
        if how == "sleeps":
            patch.setattr(child, "WALL", 2)
        foreign.call(_ends, 10, how=how)
    assert not (tmp_path / "written").exists() or not (tmp_path / "written").read_text()
    assert foreign.call(_ends, 10, how="well")["words"] == ["é"]  # and the next one is read


def test_the_first_obj_file_of_a_process_is_read(tmp_path: Path) -> None:
    """It was refused where texture has numbers of its own: the library that reads it took what so small a file may take."""
    pytest.importorskip("trimesh", reason="the extra mesh is not installed")
    box = fs.box_tets((0.1, 0.1, 0.1), 1).surface()
    corners = [" ".join(f"{corner + 1}/{k % 3 + 1}" for k, corner in enumerate(t)) for t in box.triangles]
    lines = [f"v {x} {y} {z}" for x, y, z in box.points] + ["vt 0 0", "vt 1 0", "vt 0 1"] + [f"f {words}" for words in corners]
    (tmp_path / "box.obj").write_text("\n".join(lines))
    child._helper.stop()
    assert len(fs.load_surface(tmp_path / "box.obj").triangles) == len(box.triangles)


def test_a_helper_that_was_killed_is_started_again() -> None:
    foreign.call(_ends, 10, how="well")
    process = child._helper.process
    assert process is not None
    process.kill()
    process.wait()
    assert foreign.call(_ends, 10, how="well")["words"] == ["é"]


def test_a_process_that_was_forked_has_a_helper_of_its_own() -> None:
    """Both read at the same time, and neither takes the other's answers."""

    def helper_after(calls: int) -> int:
        for _ in range(calls):
            assert foreign.call(_ends, 10, how="well")["words"] == ["é"]
        assert child._helper.process is not None
        return child._helper.process.pid

    ours = helper_after(1)
    ends, begins = os.pipe()
    pid = in_child(lambda: os.write(begins, str(helper_after(5)).encode()))
    assert helper_after(5) == ours and os.waitpid(pid, 0)[1] == 0
    assert int(os.read(ends, 20)) != ours
    os.close(ends)
    os.close(begins)


def test_a_child_costs_a_small_mesh_little(tmp_path: Path) -> None:
    """Wall time, for children take none of this process; the median of many, with the helper there."""
    path = tmp_path / "small.vtk"
    box = fs.box_tets((1.0, 1.0, 1.0), 3)
    meshio.write(path, meshio.Mesh(box.points, [("tetra", box.tets)]))
    fs.load_tetmesh(path)

    def median() -> float:
        took = []
        for _ in range(15):
            began = time.perf_counter()
            fs.load_tetmesh(path)
            took.append(time.perf_counter() - began)
        return float(np.median(took))

    with foreign.in_this_process():
        fs.load_tetmesh(path)
        alone = median()
    assert median() < alone + 0.1
