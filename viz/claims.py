"""What a file of frames claims to hold, before anything is allocated for it: a damaged one is refused by a sentence."""

from __future__ import annotations

import re
from pathlib import Path

from viz.errors import VizError

__all__ = ["check_claim", "check_xml"]

#: A file may claim so many times its size, since numbers that are all the same are written in little, and so many bytes more.
TIMES_FILE, BYTES = 300, 200_000_000
#: Bytes of a number; those of a cell in all its arrays.
_NUMBER, _CELL = 8, 64
_COUNTS = re.compile(rb"NumberOf(Points|Cells|Verts|Lines|Strips|Polys|Tuples|Components)\s*=\s*[\"']\s*(\d+)")


def check_claim(file: Path, claimed: float, what: str) -> None:
    """Refuse a file that claims more bytes than one of its size can hold.

    Raises
    ------
    VizError
        It does.
    """
    size = file.stat().st_size
    if claimed > TIMES_FILE * size + BYTES:
        raise VizError(
            f"{file} claims {what}, {claimed:.3g} bytes; a file of {size} bytes cannot hold that. It is damaged: "
            "write the frames again."
        )


def check_xml(file: Path) -> None:
    """Refuse a .vtu or .vtp file whose pieces and arrays claim more than it can hold.

    Raises
    ------
    VizError
        They do.
    """
    most = {name: 0 for name in (b"Points", b"Cells", b"Tuples", b"Components")}
    for name, number in _COUNTS.findall(file.read_bytes()):
        known = name if name in most else b"Cells"
        most[known] = max(most[known], int(number))
    rows = most[b"Points"] + most[b"Tuples"]
    claimed = _NUMBER * (rows + most[b"Cells"]) * max(most[b"Components"], 1) + _CELL * most[b"Cells"]
    check_claim(file, claimed, f"{most[b'Points']} points and {most[b'Cells']} cells")
