"""Kernels for a copy of the sources: those of changed files, and of files that name these, are left to the copy to compile."""

from __future__ import annotations

from pathlib import Path

import pytest
import shared_kernels
from shared_kernels import kept_in, link_kernels

#: Files with kernels, each of which names the one before it, one that names none of them, and one without kernels.
FILES = {
    "contact/inner_kernels.py": "njit: x + 1\n",
    "contact/outer_kernels.py": "from contact.inner_kernels import x\nnjit: 2 * x\n",
    "femsim/step/far_kernels.py": "from contact.outer_kernels import x\nnjit: 3 * x\n",
    "femsim/step/other_kernels.py": "njit: 4\n",
    "femsim/step/plain.py": "from contact.inner_kernels import x\n",
}
KERNELS = {"inner_kernels", "outer_kernels", "far_kernels", "other_kernels"}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources whose kernels are all compiled, one compiled kernel a file; return a copy of these sources."""
    root, shared = tmp_path / "root", tmp_path / "shared"
    for folder in (root, tmp_path / "copy"):
        for name, text in FILES.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name in FILES:
        path = root / name
        if path.stem in KERNELS:
            kept = kept_in(shared, path.parent)
            kept.mkdir(parents=True, exist_ok=True)
            (kept / f"{path.stem}.x-1.py311.nbi").write_text(path.stem)
    monkeypatch.setattr(shared_kernels, "ROOT", root)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(shared))
    return tmp_path / "copy"


def linked(copy: Path, without: tuple[str, ...] = ()) -> set[str]:
    """Files of the copy whose kernels are linked into a new cache."""
    cache = copy.parent / "cache"
    link_kernels(cache, copy, without)
    found = list(cache.rglob("*.nbi"))
    assert {path.parent for path in found} <= {kept_in(cache, copy / "contact"), kept_in(cache, copy / "femsim" / "step")}
    return {path.name.partition(".")[0] for path in found}


def test_kernels_of_the_same_text_are_shared(copy: Path) -> None:
    assert linked(copy) == KERNELS
    ours = shared_kernels.ROOT / "contact" / "inner_kernels.py"
    assert (copy / "contact" / "inner_kernels.py").stat().st_mtime_ns == ours.stat().st_mtime_ns  # by which numba knows it


@pytest.mark.parametrize(
    ("changed", "shared"),
    [
        ("contact/inner_kernels.py", {"other_kernels"}),
        ("contact/outer_kernels.py", {"inner_kernels", "other_kernels"}),
        ("femsim/step/far_kernels.py", KERNELS - {"far_kernels"}),
        ("femsim/step/plain.py", KERNELS),
    ],
)
def test_changed_kernels_and_those_that_name_them_are_not(copy: Path, changed: str, shared: set[str]) -> None:
    """A kernel contains those that it calls: one of the old ones would run in the copy. The file keeps the time of its change."""
    (copy / changed).write_text(FILES[changed] + "# changed\n")
    when = (copy / changed).stat().st_mtime_ns
    assert linked(copy) == shared and (copy / changed).stat().st_mtime_ns == when


def test_new_kernels_and_those_that_name_them_are_not(copy: Path) -> None:
    (copy / "contact" / "new_kernels.py").write_text("njit: 5\n")
    (copy / "femsim" / "step" / "other_kernels.py").write_text("from contact.new_kernels import x\nnjit: 4 * x\n")
    assert linked(copy) == KERNELS - {"other_kernels"}


def test_kernels_are_left_out_by_name(copy: Path) -> None:
    assert linked(copy, without=("outer_kernels",)) == KERNELS - {"outer_kernels"}
