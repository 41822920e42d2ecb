"""Optional packages: whether one is installed, and the sentence that says how to install it."""

from __future__ import annotations

import importlib.util
import sys

from femsim.base.errors import InputError


def require(module: str, what: str, extra: str) -> None:
    """Refuse what needs a package that is not installed.

    Parameters
    ----------
    module : str
        Module of the package, e.g. "mcap.reader".
    what : str
        What needs it, as the subject of the message.
    extra : str
        Extra of femsim that installs it.

    Raises
    ------
    InputError
        It is not there.
    """
    package = module.split(".")[0]
    if (package in sys.modules and sys.modules[package] is None) or importlib.util.find_spec(package) is None:
        raise InputError(f'{what} needs {package}: pip install "femsim[{extra}]".')
