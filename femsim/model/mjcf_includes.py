"""Files that an MJCF file includes."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

import foreign
from femsim.base.errors import InputError
from femsim.base.files import is_file
from foreign.text import read_xml

#: Files that one may include.
_MOST_FILES = 100


def include(path: Path, root: Element) -> None:
    """Put what other files hold in place of each <include> below the root of a file, each file once.

    They are sought as by MuJoCo: from the folder of this file, then from that of the file that includes them.

    Raises
    ------
    InputError
        A file that is not there, is in it already, or cannot be read, or too many of them.
    """
    _include(path, root, path, {path.resolve()})


def _include(path: Path, element: Element, own: Path, files: set[Path]) -> None:
    """Do so for an element of the file ``own``; ``files`` are those that are in it already."""
    held: list[Element] = []
    for child in element:
        if child.tag != "include":
            _include(path, child, own, files)
            held.append(child)
            continue
        sought = [(one.resolve().parent / child.get("file", "")).resolve() for one in (path, own)]
        file = next(filter(is_file, sought), sought[0])
        if not is_file(file):
            raise InputError(f"{path}: <include> has the file {file}, which is not there; correct its name.")
        if file in files or len(files) > _MOST_FILES:
            what = "which is in it already" if file in files else f"but more than {_MOST_FILES} files are not read"
            raise InputError(f"{path}: <include> has the file {file}, {what}; leave it out.")
        files.add(file)
        try:
            root = read_xml(file)
        except (OSError, foreign.Refused) as error:
            raise InputError(f"{path}: <include> has the file {file}, which cannot be read ({error}); mend it.") from error
        _include(path, root, file, files)
        held += root
    element[:] = held
