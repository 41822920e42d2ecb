"""What works on this machine: versions, caches, compilation, direct solver, extras, rendering; and a block for bug reports."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import textwrap
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

#: What nothing works without, as imports; and the extras by what needs them.
_PACKAGES = (
    "numpy", "scipy", "numba", "meshio", "vtk", "pyvista", "pydantic", "cyclopts", "rich", "imageio",
    "imageio-ffmpeg", "matplotlib",
)  # fmt: skip
_EXTRAS = {
    "mesh": "soft bodies from closed surfaces",
    "hdf": "contact problems as files, frames as VTKHDF",
    "view": "a run in the browser",
    "logs": "logs in C3D, MCAP and ROS bags",
    "sweep": "sweeps, sensitivity, many runs from Python",
    "gym": "environments of gymnasium",
    "identify": "calibration",
    "rivals": "benchmarks against MuJoCo, PyElastica and Pinocchio",
    "docs": "the site",
}

#: Columns of a terminal that the lines for a bug report fit into.
_WIDTH = 80


def examine(*, only_rendering: bool = False) -> tuple[str, bool]:
    """Examine the machine.

    Parameters
    ----------
    only_rendering : bool
        Look at rendering alone.

    Returns
    -------
    report : str
        Lines to print.
    healthy : bool
        Whether simulations can run; with ``only_rendering``, whether pictures can be made.
    """
    from femsim.base.numba_cache import cache_trouble
    from viz import probe_rendering

    rendering = probe_rendering()
    if only_rendering:
        return rendering.message, rendering.ok
    from contact.linear import make_factorization

    found, missing = _found(_PACKAGES)
    backend = make_factorization().name
    remark = "" if backend == "pardiso" else " of scipy, 15 times slower than MKL: install pypardiso where it exists (x86-64)"
    cache, cached = _cache()
    trouble = cache_trouble()
    rows = [
        ("python", f"{platform.python_version()} on {platform.platform()}, {os.cpu_count()} cores"),
        *((package, number or "MISSING") for package, number in found.items()),
        ("factorization", f"{backend}{remark}"),
        ("kernels", cache),
        *([("", f"{trouble}: each new process may compile for a minute")] if trouble else []),
        ("threads", _threads()),
        ("compilation", _compilation()),
        ("pictures", "yes" if rendering.ok else f"no: {rendering.message}"),
    ]
    lines = [*_columns(rows), "", "extras", *(f"  {line}" for line in _columns(_extras()))]
    for said in ("", "for a bug report", *_for_a_report(found, backend, cache, rendering.ok), ""):
        # of lists of packages, a terminal would break names in two
        block = textwrap.wrap(said, _WIDTH - 4, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        lines += [said] if said in ("", "for a bug report") else [f"    {line}" for line in block]
    if not cached:
        lines.append(
            "Kernels are compiled anew by every command, which takes minutes: make the folder writable, or set NUMBA_CACHE_DIR."
        )
    lines.append("OK" if not missing else f"NOT OK: install {', '.join(missing)} (./go setup does it).")
    return "\n".join(lines), not missing


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Write a table without rules: each column is as wide as its longest entry, and two blanks part it from the next."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _found(packages: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Versions of packages, "" for those that are missing, and these."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found, [package for package, number in found.items() if not number]


def _cache() -> tuple[str, bool]:
    """Write to the cache of compiled kernels, read it back, remove it: a sentence, and whether it works."""
    from femsim.base.numba_cache import folder_in_use

    folder = folder_in_use()
    if not folder:
        return "NOT CACHED: no folder of this user can be written", False
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".femsim-doctor-") as file:
            file.write(b"cached")
            file.flush()
            if Path(file.name).read_bytes() != b"cached":
                raise OSError(None, "what was written is not what is read")
    except OSError as error:
        return f"NOT CACHED: {folder} cannot be written ({error.strerror or error})", False
    files = sum(1 for _ in Path(folder).rglob("*.nbi"))
    return f"cached in {folder} ({files} there, written and read back)", True


def _compilation() -> str:
    """Compile a small kernel that no cache has, and time it."""
    import numba

    def doubled(value: float) -> float:
        return value + value

    began = time.perf_counter()
    try:
        correct = float(numba.vectorize(["float64(float64)"])(doubled)(3.0)) == 6.0
    except Exception as error:  # whatever LLVM and its packaging throw
        return f"NO: numba cannot compile here ({type(error).__name__}: {str(error).splitlines()[0][:100]})"
    took = time.perf_counter() - began
    return f"{took:.1f} s for a small kernel (usual: 0.3 to 2 s)" if correct else "WRONG: what is compiled does not compute"


def _threads() -> str:
    """Say whether the threads of BLAS can be set."""
    number = _found(("threadpoolctl",))[0]["threadpoolctl"]
    if number:
        return f"set by threadpoolctl {number}"
    return "NOT SET: results may depend on OMP_NUM_THREADS; install threadpoolctl (./go setup does it)"


def _extras() -> list[tuple[str, str, str]]:
    """Say of each extra: its name, what it is for, and yes, or no and the command that installs it."""
    needed = _requirements()
    rows = []
    for extra, purpose in _EXTRAS.items():
        missing = _found(tuple(needed.get(extra, ())))[1]
        said = "yes" if not missing else f"no ({', '.join(missing)} missing): {install_command(extra)}"
        rows.append((extra, purpose, said))
    return rows


def _requirements() -> dict[str, list[str]]:
    """Find the packages of each extra, with those of the extras that it contains."""
    direct: dict[str, list[str]] = {}
    for text in distribution("femsim").requires or []:
        match = re.fullmatch(r"\s*([\w.-]+)(?:\[([\w,-]+)\])?[^;]*;.*extra\s*==\s*['\"]([\w-]+)['\"].*", text)
        if match:
            name, inner, extra = match.groups()
            names = [f"[{part}]" for part in inner.split(",")] if name == "femsim" and inner else [name]
            direct.setdefault(extra, []).extend(names)
    return {
        extra: [n for name in names for n in (direct.get(name[1:-1], []) if name.startswith("[") else [name])]
        for extra, names in direct.items()
    }


def install_command(extra: str) -> str:
    """Command that installs an extra: from the clone that this is, or for an installed wheel."""
    from femsim.base.place import ROOT

    if (ROOT / "pyproject.toml").is_file():
        return f"{sys.executable} -m pip install -c constraints.txt -e '.[{extra}]'  (in {ROOT})"
    return f"{sys.executable} -m pip install 'femsim[{extra}]'"


def _for_a_report(found: dict[str, str], backend: str, cache: str, pictures: bool) -> list[str]:
    """Few lines to copy: nothing that names a person or a folder."""
    from femsim.base.place import __version__
    from femsim.base.threads import pools

    settings = [f"{name}={os.environ[name]}" for name in sorted(os.environ) if re.match(r"(OMP|MKL|OPENBLAS|NUMBA)_", name)]
    settings = [text for text in settings if "/" not in text]
    present, _ = _found(tuple(dict.fromkeys(name for names in _requirements().values() for name in names)))
    return [
        f"femsim {__version__}{_commit()}, python {platform.python_version()}, {platform.platform()}",
        f"{_processor()}, {os.cpu_count()} cores, {_memory()}",
        ", ".join(f"{name} {number or 'MISSING'}" for name, number in found.items()),
        "extras: " + (", ".join(f"{name} {number}" for name, number in present.items() if number) or "none"),
        f"factorization {backend}, pictures {'yes' if pictures else 'no'}, kernels {cache.split(' ')[0]}",
        "threads: " + (", ".join(f"{p['library']} {p['version']} {p['threads']}" for p in pools()) or "unknown"),
        f"environment: {', '.join(settings) or 'nothing set'}",
    ]


def _commit() -> str:
    """Commit of a clone, "" where it is none: read from its files, for git may not be there."""
    from femsim.base.place import ROOT

    try:
        folder = ROOT / ".git"
        if folder.is_file():  # of a worktree
            folder = (ROOT / folder.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
        head = (folder / "HEAD").read_text(encoding="utf-8").strip()
        if head.startswith("ref: "):
            name = head.removeprefix("ref: ")
            places = [folder / name, folder / "../.." / name]
            head = next(place.read_text(encoding="utf-8").strip() for place in places if place.is_file())
    except (OSError, StopIteration):
        return ""
    return f" at {head[:10]}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GB of memory"
    except (AttributeError, OSError, ValueError):
        return "memory unknown"
