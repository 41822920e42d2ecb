"""Compiled kernels are those of the sources that are there, also where only what they contain has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contact.kernel_sources import sources_digest
from femsim.step import end_velocity_kernels  # noqa: F401  what its kernels are made of is asked below

ROOT = Path(__file__).resolve().parents[1]
INNER = """
from contact.compiled import njit
from made.sizes import FACTOR


@njit(cache=True, inner=True)
def scaled(x: float) -> float:
    return FACTOR * x + {shift}
"""
OUTER = """
from contact.compiled import njit
from made import inner_kernels as inner


@njit(cache=True)
def twice(x: float) -> float:
    return 2.0 * inner.scaled(x)
"""


def answer(folder: Path, cache: Path) -> tuple[float, int]:
    """What the kernel says of 1 in a process of its own, and how many were compiled for that."""
    code = (
        "from contact.compiled import Kernel\nfrom made.outer_kernels import twice\n"
        "print(twice(1.0), sum(twice.stats.cache_misses.values()))"
    )
    own = {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]), "NUMBA_CACHE_DIR": str(cache)}
    own["PYTHONDONTWRITEBYTECODE"] = "1"  # Python takes its own for that of a source which changed within the second
    found = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **own}, check=True, capture_output=True, text=True, timeout=300
    )
    value, missed = found.stdout.split()
    return float(value), int(missed)


def written(package: Path, factor: float, shift: float) -> None:
    package.mkdir(exist_ok=True)
    (package / "sizes.py").write_text(f"FACTOR = {factor}\n", encoding="utf-8")
    (package / "inner_kernels.py").write_text(INNER.format(shift=shift), encoding="utf-8")


def test_a_kernel_is_compiled_again_where_what_it_contains_has_changed(tmp_path: Path) -> None:
    package, cache = tmp_path / "made", tmp_path / "cache"
    written(package, 3.0, 0.0)
    (package / "__init__.py").touch()
    (package / "outer_kernels.py").write_text(OUTER, encoding="utf-8")
    assert answer(tmp_path, cache) == (6.0, 1)
    assert answer(tmp_path, cache) == (6.0, 0)
    written(package, 3.0, 1.0)  # a kernel that it calls
    assert answer(tmp_path, cache) == (8.0, 1)
    written(package, 5.0, 1.0)  # a constant of that one
    assert answer(tmp_path, cache) == (12.0, 1)
    assert answer(tmp_path, cache) == (12.0, 0)


@pytest.mark.parametrize(
    ("module", "other"), [("contact.deformable_kernels", "contact.vertex_kernels"), ("contact.cone", "numpy")]
)
def test_digests_are_those_of_a_module_and_of_what_it_takes(module: str, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a module of ours that it names, also on the way, and of no other package."""
    assert sources_digest.__wrapped__(module) == sources_digest(module)
    monkeypatch.setattr(sys.modules[other], "__file__", str(ROOT / "README.md"))
    assert (sources_digest.__wrapped__(module) != sources_digest(module)) is other.startswith("contact")
