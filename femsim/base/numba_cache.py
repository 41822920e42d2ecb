"""Where numba keeps compiled kernels: a folder named by a digest of the kernels' sources.

numba refreshes a cached kernel only when the kernel's *own file* changes, so a kernel that calls one from another file
could run stale code. Here every change of any file with kernels gives a new folder, and such a cache cannot be met again.
Reading all those files takes 10 ms, so it waits until numba is imported: ``femsim --help`` does without.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_KEPT_FOLDERS = 8
_trouble = ""


def cache_trouble() -> str:
    """Return what is wrong with the cache of this process, a sentence without its end; empty where nothing is."""
    return _trouble


def use_source_digest_with_numba(packages: Iterable[Path]) -> None:
    """Call :func:`use_source_digest` when numba is first imported; at once where it already is.

    Parameters
    ----------
    packages : iterable of Path
        The folders whose ``*.py`` files may hold kernels.
    """
    if "numba" in sys.modules:
        use_source_digest(packages)
    else:
        sys.meta_path.insert(0, _BeforeNumba(list(packages)))


def folder_in_use() -> str:
    """Return the folder of compiled kernels of this process; empty where there is none."""
    importlib.import_module("numba")
    return os.environ.get("NUMBA_CACHE_DIR", "")


def is_folder_empty() -> bool:
    """Return whether the folder of this process has no compiled kernels yet, so that all that is called will be compiled."""
    folder = folder_in_use()
    return not folder or next(Path(folder).rglob("*.nbi"), None) is None


class _BeforeNumba:
    """Stands first among the finders of modules, finds nothing, and names the folder when Python looks for numba."""

    def __init__(self, packages: list[Path]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Name the folder, once, before numba reads the environment."""
        if name == "numba" and self.packages:
            packages, self.packages = self.packages, []  # it stays in the list: Python is walking through that
            use_source_digest(packages)


def use_source_digest(packages: Iterable[Path]) -> Path | None:
    """Set ``NUMBA_CACHE_DIR``, unless the user has set it. Call it before the first kernel is decorated.

    Parameters
    ----------
    packages : iterable of Path
        The folders whose ``*.py`` files may hold kernels.

    Returns
    -------
    Path or None
        The folder in use; None when no folder at all can be written (numba then looks for a place of its own).
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        _tell_trouble(Path(given), None)
        return Path(given)
    folder = cache_folder(kernel_digest(packages))
    _tell_trouble(user_cache_folder() / "femsim", folder)
    if folder is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(folder)
        if "numba" in sys.modules:  # it has read the environment already
            sys.modules["numba"].config.CACHE_DIR = str(folder)
    return folder


def _tell_trouble(wanted: Path, used: Path | None) -> None:
    """Say once in a process when the folder that should hold the kernels cannot be written, and what follows."""
    global _trouble
    if (used is not None and used.is_relative_to(wanted)) or _can_write(wanted):
        return
    instead = f"they are kept in {used}" if used is not None else "numba looks for another place, or compiles in each process"
    _trouble = f"the folder of compiled kernels {wanted} cannot be written; {instead}"
    logging.getLogger("femsim").warning("femsim: %s (make it writable, or set NUMBA_CACHE_DIR).", _trouble)


def _can_write(folder: Path) -> bool:
    """Whether a folder can be written, or made."""
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def kernel_digest(packages: Iterable[Path]) -> str:
    """Compute a digest of all Python files in some folders that mention ``njit``.

    Parameters
    ----------
    packages : iterable of Path
        Folders, walked recursively.

    Returns
    -------
    str
        16 hexadecimal digits; depends on the files' contents and their places inside the packages, not on times.
    """
    digest = hashlib.blake2b(digest_size=8)
    for package in packages:
        for path in sorted(_python_files(os.fspath(package))):
            with open(path, "rb") as file:
                text = file.read()
            if b"njit" in text:
                digest.update(f"{package.name}/{os.path.relpath(path, package)}:{len(text)}:".encode())
                digest.update(text)
    return digest.hexdigest()


def cache_folder(digest: str) -> Path | None:
    """Create the folder of a digest: in the user's cache folder, else in the temporary folder.

    Parameters
    ----------
    digest : str
        What :func:`kernel_digest` gave.

    Returns
    -------
    Path or None
        An existing folder that this user may write to, or None.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    for place in (_in_user_cache, _in_temporary_folder):
        try:
            parent = place(user)
            folder = parent / f"numba-{digest}"
            if not folder.is_dir():
                # compiled code is loaded from here: nobody else may put it there
                parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                folder.mkdir(exist_ok=True, mode=0o700)
                _remove_old_folders(parent, keep=folder)
            if folder.lstat().st_uid == user and os.access(folder, os.W_OK | os.X_OK):
                return folder
        except OSError:
            continue
    try:
        return Path(tempfile.mkdtemp(prefix=f"femsim-numba-{digest}-"))
    except OSError:
        return None


def user_cache_folder() -> Path:
    """Return the folder where this system keeps a user's caches; it may not exist.

    Returns
    -------
    Path
        ``$XDG_CACHE_HOME`` or ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on Windows.
    """
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):
        return Path(xdg)
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    return home / ".cache"


def _in_user_cache(user: int) -> Path:
    return user_cache_folder() / "femsim"


def _in_temporary_folder(user: int) -> Path:
    return Path(tempfile.gettempdir()) / f"femsim-{user}"


def _python_files(folder: str) -> Iterator[str]:
    """Walk a folder for ``*.py`` files."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _python_files(entry.path)


def _remove_old_folders(parent: Path, keep: Path) -> None:
    """Remove all but the newest few caches of former sources; those in use are only compiled again."""
    others = sorted((path for path in parent.glob("numba-*") if path != keep), key=lambda path: path.lstat().st_mtime)
    for path in others[: -(_KEPT_FOLDERS - 1)]:
        shutil.rmtree(path, ignore_errors=True)
