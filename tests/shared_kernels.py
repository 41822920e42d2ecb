"""Kernels for a copy of our sources: linked from those that are compiled already, so that a test of the copy compiles few.

numba keeps the kernels of a folder of sources under the name of that folder and a digest of its path, and asks when a file was
changed. Where it has kept none yet, or keeps them elsewhere, nothing is linked and the copy compiles.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection
from pathlib import Path

import femsim as fs

ROOT = Path(fs.__file__).resolve().parent.parent
PACKAGES = ("contact", "femsim")


def kept_in(cache: Path, folder: Path) -> Path:
    """Where numba keeps the kernels of a folder of sources."""
    return cache / f"{folder.name}_{hashlib.sha1(str(folder).encode()).hexdigest()}"


def changed_kernels(copy: Path) -> set[Path]:
    """Files with kernels that are others in the copy, and those that name one of them, whose kernels may contain its own."""
    texts = {path.relative_to(copy): path.read_bytes() for name in PACKAGES for path in (copy / name).rglob("*.py")}
    texts = {name: text for name, text in texts.items() if b"njit" in text}
    changed = {name for name, text in texts.items() if not is_same(copy, name)}
    while more := {name for name in texts.keys() - changed if any(one.stem.encode() in texts[name] for one in changed)}:
        changed |= more
    return changed


def is_same(copy: Path, name: Path) -> bool:
    """Whether a file of the copy has the text of ours."""
    return (ROOT / name).is_file() and (ROOT / name).read_bytes() == (copy / name).read_bytes()


def link_kernels(cache: Path, copy: Path = ROOT, without: Collection[str] = ()) -> None:
    """Put kernels of this process's cache into another one, for a copy of the sources or for the sources themselves.

    Parameters
    ----------
    cache : Path
        The other cache.
    copy : Path
        The folder with the copied packages. What has been changed in them is left out.
    without : collection of str
        Files of kernels that are left out too, without ".py".
    """
    shared, changed = Path(os.environ.get("NUMBA_CACHE_DIR", "nowhere")), changed_kernels(copy)
    for name in PACKAGES:
        for path in (copy / name).rglob("*.py"):
            ours = ROOT / path.relative_to(copy)
            if path.stem in without or path.relative_to(copy) in changed or not is_same(copy, path.relative_to(copy)):
                continue
            if path != ours:
                os.utime(path, ns=(path.stat().st_atime_ns, ours.stat().st_mtime_ns))
            to = kept_in(cache, path.parent)
            to.mkdir(parents=True, exist_ok=True)
            for kernel in kept_in(shared, ours.parent).glob(f"{path.stem}.*.nb[ic]"):
                link(kernel, to / kernel.name)


def link(path: Path, other: Path) -> None:
    """Give a file another name, or copy it where it cannot have one."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copy2(path, other)
