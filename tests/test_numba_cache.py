"""The folder of compiled kernels: named by the sources, found where it can be written, left to the user who sets one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import femsim as fs
from femsim.base import numba_cache
from femsim.base.numba_cache import cache_folder, kernel_digest

KERNEL = "from numba import njit\n\n\n@njit(cache=True)\ndef twice(x):\n    return 2 * x\n"


@pytest.fixture
def packages(tmp_path: Path) -> list[Path]:
    """Two packages: one with kernels in two places, one with none."""
    for name, text in (
        ("one/__init__.py", ""),
        ("one/kernels.py", KERNEL),
        ("one/deeper/more.py", KERNEL.replace("2", "3")),
        ("two/__init__.py", "VALUE = 1\n"),
        ("two/data.txt", "njit\n"),
    ):
        path = tmp_path / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [tmp_path / "sources" / "one", tmp_path / "sources" / "two"]


@pytest.mark.parametrize("name", ["one/kernels.py", "one/deeper/more.py"])
def test_the_digest_changes_with_any_kernel_source(packages: list[Path], name: str) -> None:
    before = kernel_digest(packages)
    path = packages[0].parent / name
    times = path.stat()
    path.write_text(path.read_text().replace("* x", "- x"))  # same size
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert kernel_digest(packages) != before


def test_the_digest_changes_when_a_kernel_source_moves_comes_or_goes(packages: list[Path]) -> None:
    digests = {kernel_digest(packages)}
    (packages[0] / "kernels.py").rename(packages[0] / "others.py")
    digests.add(kernel_digest(packages))
    (packages[1] / "new.py").write_text(KERNEL)
    digests.add(kernel_digest(packages))
    (packages[0] / "others.py").unlink()
    digests.add(kernel_digest(packages))
    assert len(digests) == 4


def test_the_digest_does_not_change_with_anything_else(packages: list[Path]) -> None:
    before = kernel_digest(packages)
    (packages[1] / "__init__.py").write_text("VALUE = 2\n")
    (packages[1] / "data.txt").write_text("njit njit\n")
    (packages[0] / "__pycache__").mkdir()
    (packages[0] / "__pycache__" / "old.py").write_text(KERNEL)
    os.utime(packages[0] / "kernels.py", (1.0, 1.0))
    assert kernel_digest(packages) == before


def test_the_folder_is_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = cache_folder("0123")
    assert folder == tmp_path / "cache" / "femsim" / "numba-0123"
    assert folder is not None and folder.stat().st_mode & 0o777 == 0o700
    assert cache_folder("0123") == folder


def test_without_a_home_that_can_be_written_it_is_a_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")  # root may write everywhere, but not below a file
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    folder = cache_folder("0123")
    assert folder is not None and folder.is_dir() and folder.parent.parent == tmp_path / "temporary"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    assert cache_folder("0123") is None


def test_only_the_newest_few_folders_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for number in range(12):
        folder = cache_folder(f"{number:04d}")
        assert folder is not None
        os.utime(folder, (1000.0 + number, 1000.0 + number))
    left = sorted(path.name for path in (tmp_path / "femsim").iterdir())
    assert left == [f"numba-{number:04d}" for number in range(12 - numba_cache._KEPT_FOLDERS, 12)]


def start(modules: str = "femsim, os, numba", **environment: str) -> str:
    """Import femsim in a fresh process and return the folder that numba then uses."""
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    root = Path(fs.__file__).resolve().parent.parent
    code = f"import {modules}; print(numba.config.CACHE_DIR, os.environ['NUMBA_CACHE_DIR'], sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.dont_write_bytecode = True; {code}"],
        env=kept | {"PYTHONPATH": str(root)} | environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    first, second = done.stdout.split()
    assert first == second
    return first


def test_femsim_tells_numba_the_folder(tmp_path: Path) -> None:
    root = Path(fs.__file__).resolve().parent.parent
    digest = kernel_digest(root / name for name in ("femsim", "foreign", "materials", "meshes", "contact", "viz"))
    assert start(XDG_CACHE_HOME=str(tmp_path)) == str(tmp_path / "femsim" / f"numba-{digest}")


def test_femsim_tells_numba_the_folder_where_numba_comes_first(tmp_path: Path) -> None:
    orders = ("numba, femsim, os", "os, femsim, contact.cone, numba")
    first, later = (start(names, XDG_CACHE_HOME=str(tmp_path)) for names in orders)
    assert first == later and Path(first).is_dir() and Path(first).parent == tmp_path / "femsim"


def test_femsim_reads_no_kernels_before_numba_is_imported(tmp_path: Path) -> None:
    code = (
        "import os, sys, femsim, femsim.cli\nprint('numba' in sys.modules, 'NUMBA_CACHE_DIR' in os.environ)\n"
        "import numba\nprint('NUMBA_CACHE_DIR' in os.environ)"
    )
    out, err = started(tmp_path, code).communicate(timeout=300)
    assert out.split() == ["False", "False", "True"], err


def test_a_folder_that_the_user_sets_is_kept(tmp_path: Path) -> None:
    assert start(NUMBA_CACHE_DIR=str(tmp_path / "mine"), XDG_CACHE_HOME=str(tmp_path / "cache")) == str(tmp_path / "mine")
    assert not (tmp_path / "cache").exists()


# ------------------------------------------------------------------ faults

USES_A_KERNEL = (
    "import femsim\nimport numpy as np\nfrom contact.cone import project_forces\nprint('begin', flush=True)\n"
    "lam = np.empty((1, 3))\nproject_forces(np.array([[1.0, 3.0, 4.0]]), np.full((1, 2), 0.5), True, lam)\n"
    "print(','.join(f'{x:.17g}' for x in lam[0]), flush=True)\n"
)


def started(cache: Path, code: str) -> subprocess.Popen[str]:
    root = str(Path(fs.__file__).resolve().parent.parent)
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": root, "XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def test_two_processes_on_a_cold_cache_of_which_one_is_killed(tmp_path: Path) -> None:
    """Whenever it is killed, the other one and the next one have the right kernels."""
    said = set()
    for number, delay in enumerate((0.05, 0.4)):
        cache = tmp_path / f"cache{number}"
        victim, other = started(cache, USES_A_KERNEL), started(cache, USES_A_KERNEL)
        assert victim.stdout is not None
        victim.stdout.readline()
        time.sleep(delay)
        victim.kill()
        victim.communicate()
        for process in (other, started(cache, USES_A_KERNEL)):
            out, err = process.communicate(timeout=300)
            assert process.returncode == 0, err
            said.add(out)
        assert list(cache.rglob("cone.project_forces-*.nbi"))
    assert len(said) == 1


def test_a_cache_that_cannot_be_written_is_said_once_and_by_doctor(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, so that no folder can be made there, whoever asks")
    code = "import femsim\nfrom femsim.cli import execute\nexecute(['doctor'])\nexecute(['solvers'])\n"
    process = started(tmp_path / "cache", code)
    out, err = process.communicate(timeout=300)
    words = f"the folder of compiled kernels {tmp_path / 'cache' / 'femsim'} cannot be written; they are kept in"
    assert err.count(words) == 1 and "Traceback" not in err, err
    assert words in out and "each new process may compile for a minute" in out
