"""What compiled code of a kernel is made of: its own file, and those that this takes kernels and constants from."""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from pathlib import Path

#: Packages whose files kernels are made of, beside that of the kernel.
_OURS = ("contact", "femsim")
_FROM = re.compile(r"^from[ ]+([\w.]+)[ ]+import[ ]+(\([^)]*\)|[^\n#]*)", re.MULTILINE)
_IMPORT = re.compile(r"^import[ ]+([\w.]+)", re.MULTILINE)


@cache
def sources_digest(module: str) -> str:
    """Digest of the texts that the kernels of a module are compiled from.

    The compiler puts kernels that a kernel calls, and constants, into its code. It asks whether the file of the kernel is the one
    that was compiled, but not of theirs: after an update, code with a part of the older version would run. Files are followed
    from module to module as far as they belong to us.

    Parameters
    ----------
    module : str
        Name of a module that is imported, and all that it imports.
    """
    found, left = {}, [module]
    packages = (*_OURS, module.partition(".")[0])
    while left:
        name = left.pop()
        file = getattr(sys.modules.get(name), "__file__", None)
        if name in found or file is None:
            continue
        found[name], imported = _read(file)
        for package, names in imported:
            if package.partition(".")[0] not in packages:
                continue
            # a package itself only gathers names: those of its modules count, and where what it gathers comes from
            is_package = hasattr(sys.modules.get(package), "__path__")
            left += [] if is_package else [package]
            left += _gathered(package, names) if is_package else []
    return hashlib.sha256("".join(f"{name} {found[name]} " for name in sorted(found)).encode()).hexdigest()


def _gathered(package: str, names: tuple[str, ...]) -> list[str]:
    """Modules of a package, or those that define what it hands on."""
    out = []
    for name in names:
        if f"{package}.{name}" in sys.modules:
            out.append(f"{package}.{name}")
            continue
        one = getattr(sys.modules[package], name, None)
        out.append(getattr(getattr(one, "py_func", one), "__module__", None) or package)
    return out


@cache
def _read(file: str) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    """Digest of a file, and what it imports: modules, and the names from each."""
    content = Path(file).read_bytes()
    text = content.decode("utf-8", errors="replace")
    imported = [(name, ()) for name in _IMPORT.findall(text)]
    for package, names in _FROM.findall(text):
        imported.append((package, tuple(re.findall(r"(\w+)(?:\s+as\s+\w+)?\s*(?:,|\)|$)", names.replace("(", "")))))
    return hashlib.sha256(content).hexdigest(), tuple(imported)
