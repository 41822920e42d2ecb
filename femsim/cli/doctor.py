"""What works on this machine: versions, caches, direct solver, rendering."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("numpy", "scipy", "numba", "meshio", "vtk", "pyvista", "pydantic", "imageio-ffmpeg", "matplotlib")


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
    from contact.linear import make_factorization
    from femsim.base.numba_cache import cache_trouble
    from viz import probe_rendering

    rendering = probe_rendering()
    if only_rendering:
        return rendering.message, rendering.ok
    lines = [f"python         {platform.python_version()} on {platform.platform()}, {os.cpu_count()} cores"]
    missing = []
    for package in _PACKAGES:
        try:
            lines.append(f"{package:<15}{version(package)}")
        except PackageNotFoundError:
            missing.append(package)
            lines.append(f"{package:<15}MISSING")
    backend = make_factorization().name
    remark = "" if backend == "pardiso" else " of scipy, 15 times slower than MKL: install pypardiso where it exists (x86-64)"
    lines.append(f"factorization  {backend}{remark}")
    lines.append(f"kernels        cached in {os.environ.get('NUMBA_CACHE_DIR', 'the place numba chooses')}")
    if cache_trouble():
        lines.append(f"               {cache_trouble()}: each new process may compile for a minute")
    lines.append(f"pictures       {'yes' if rendering.ok else 'no: ' + rendering.message}")
    healthy = not missing
    lines.append("OK" if healthy else f"NOT OK: install {', '.join(missing)} (./go setup does it).")
    return "\n".join(lines), healthy
