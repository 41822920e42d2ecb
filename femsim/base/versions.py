"""Where results come from: what a file of results says about the machine, the versions and the command."""

from __future__ import annotations

import os
import platform
import sys
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

_PACKAGES = ("femsim", "numpy", "scipy", "numba", "meshio", "vtk", "pyvista")


def machine() -> dict[str, Any]:
    """Describe the machine, for a file of results."""
    return {
        "platform": platform.platform(), "processor": platform.processor() or platform.machine(),
        "cpus": os.cpu_count(), "python": platform.python_version(),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions of femsim and of the packages that its numbers depend on."""
    return {package: _version(package) for package in _PACKAGES}


def provenance() -> dict[str, Any]:
    """Say where the results of a study come from: versions, machine, command and the time of writing."""
    return {
        "versions": versions(), "machine": machine(), "command": " ".join(sys.argv),
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }  # fmt: skip


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
