"""Read one VTK XML file (.vtu or .vtp) with every number checked, before VTK gets to see any.

A file of frames may be cut off or damaged. VTK believes what it reads: a corner 10^9 of a cell ends the process when the cell is
drawn. Here the header is read as text, each array is unpacked to the length that the header needs, and the cells are checked
(:mod:`viz.cells`). That is the layout that :mod:`viz.vtk_xml` writes, and VTK itself with appended raw data, compressed or not;
files in other layouts are read by VTK in a child with limits (:mod:`foreign.vtk_files`), and their cells are checked here.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

import foreign
from foreign.vtk_files import read_vtk
from viz.cells import SECTIONS, CellRows, Field, make_data_set
from viz.claims import check_claim, check_xml
from viz.errors import VizError

if TYPE_CHECKING:
    import pyvista

__all__ = ["read_part"]

_KINDS = {"UnstructuredGrid": "tetra", "PolyData": "poly"}
_DTYPES = {f"{name}{8 * width}": f"{kind}{width}" for name, kind in (("Int", "i"), ("UInt", "u")) for width in (1, 2, 4, 8)} | {
    "Float32": "f4",
    "Float64": "f8",
}
_APPENDED = b'<AppendedData encoding="raw">'
_COMPRESSORS = {None, "vtkLZ4DataCompressor", "vtkZLibDataCompressor"}
#: The header of a file is not longer, bytes.
_HEADER = 1 << 20
#: Unpacked blocks of at most so many bytes are kept, 32 of them: the cells of a body are packed in the same bytes in every frame.
_KEPT = 4_000_000


class _Other(Exception):  # noqa: N818 - it reads "it is of another layout"
    """The file is of a layout that only VTK reads."""


class _Layout(NamedTuple):
    """How the data of a file are stored, and the bytes of all of them."""

    data: memoryview
    order: str
    width: int
    compressor: str | None


def read_part(file: Path) -> pyvista.DataSet:
    """Read one .vtu or .vtp file.

    Parameters
    ----------
    file : Path
        A data file that `read_pvd` listed.

    Returns
    -------
    pyvista.UnstructuredGrid or pyvista.PolyData
        Points [m], cells and fields, as written.

    Raises
    ------
    VizError
        When the file is missing, of another kind, cut off or damaged.
    """
    file = Path(file)
    if file.suffix not in (".vtu", ".vtp"):
        raise VizError(f"{file} cannot be read as a part; allowed are .vtu and .vtp files.")
    if not file.is_file():
        raise VizError(f"{file} does not exist although an index lists it; was it moved away from its .pvd file?")
    try:
        try:
            return _read(file, file.read_bytes())
        except _Other:
            check_xml(file)
            return _read_by_vtk(file)
    except VizError:
        raise
    except (foreign.Refused, ValueError, struct.error, zlib.error) as error:
        raise VizError(f"{file} cannot be read ({error}); it is cut off or damaged: write the frames again.") from None


# ---------------------------------------------------------------------- the layout of femsim


def _read(file: Path, content: bytes) -> pyvista.DataSet:
    """Read a file with appended raw data; raise _Other for other layouts, ValueError for a damaged one."""
    where = content.find(_APPENDED, 0, _HEADER)
    start = content.find(b"_", where + len(_APPENDED), where + len(_APPENDED) + 80) if where >= 0 else -1
    if start < 0 or b"<!DOCTYPE" in content[:where]:
        raise _Other
    try:
        root = ElementTree.fromstring(content[:where] + b"</VTKFile>")
    except ElementTree.ParseError as error:
        raise ValueError(f"its header is not XML: {error}") from None
    kind, order = _KINDS.get(root.get("type", "")), {"LittleEndian": "<", "BigEndian": ">"}.get(root.get("byte_order", ""))
    pieces = root.findall("*/Piece")
    if kind is None or order is None or len(pieces) != 1 or root.get("compressor") not in _COMPRESSORS:
        raise _Other
    width = 8 if root.get("header_type") == "UInt64" else 4
    layout = _Layout(memoryview(content)[start + 1 :], order, width, root.get("compressor"))
    piece = pieces[0]
    n_points = _whole(piece, "NumberOfPoints")

    def values(array: ElementTree.Element, rows: int | None) -> npt.NDArray[Any]:
        return _values(file, array, layout, rows)

    points = next((values(array, n_points) for array in piece.iterfind("Points/DataArray")), np.zeros((0, 3)))
    if kind == "tetra":
        rows = {"": _rows(piece, "Cells", _whole(piece, "NumberOfCells"), values)}
    else:
        counts = {name: _whole(piece, f"NumberOf{name}") for name in SECTIONS}
        rows = {name: _rows(piece, name, count, values) for name, count in counts.items() if count}
    n_cells = sum(len(section.offsets) for section in rows.values())
    fields = [
        Field(place, array.get("Name", ""), values(array, count), _component_names(array))
        for place, count in (("PointData", n_points), ("CellData", n_cells))
        for array in piece.iterfind(f"{place}/DataArray")
    ]
    return make_data_set(points, rows, fields)


def _rows(piece: ElementTree.Element, section: str, count: int, values: Any) -> CellRows:
    """Read the cells of one kind."""
    arrays = {array.get("Name"): array for array in piece.iterfind(f"{section}/DataArray")}
    if {"connectivity", "offsets"} - set(arrays):
        raise _Other
    types = values(arrays["types"], count) if "types" in arrays else None
    return CellRows(values(arrays["connectivity"], None), values(arrays["offsets"], count), types)


def _whole(piece: ElementTree.Element, name: str) -> int:
    """Read a count; none is 0."""
    text = piece.get(name, "0").strip()
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError(f"its {name} is {text[:30]!r}")
    return int(text)


def _component_names(array: ElementTree.Element) -> tuple[str, ...]:
    names = (array.get(f"ComponentName{number}") for number in range(9))
    return tuple(name for name in names if name is not None)


def _values(file: Path, array: ElementTree.Element, layout: _Layout, rows: int | None) -> npt.NDArray[Any]:
    """Read an array of so many rows, or as many as there are."""
    name, components = array.get("Name", ""), int(array.get("NumberOfComponents", "1") or 1)
    if array.get("format") != "appended" or array.get("type") not in _DTYPES:
        raise _Other
    dtype = np.dtype(layout.order + _DTYPES[array.get("type", "")])
    if not 1 <= components <= 1000:
        raise ValueError(f"its array {name!r} claims {components} components")
    wanted = None if rows is None else rows * components * dtype.itemsize
    if wanted is not None:
        check_claim(file, wanted, f"{rows} rows of {name!r}")
    data = _unpacked(file, layout, _whole(array, "offset"), wanted)
    if len(data) % (components * dtype.itemsize) or (wanted is not None and len(data) != wanted):
        raise ValueError(f"its array {name!r} has {len(data)} bytes where {wanted} should be")
    found = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)
    return found.reshape(-1, components) if components > 1 else found


def _unpacked(file: Path, layout: _Layout, begin: int, wanted: int | None) -> bytes | memoryview:
    """Unpack the bytes of an array: a header of numbers of blocks and bytes, then the blocks; or a length, and the bytes."""
    number = f"{layout.order}{{}}{'Q' if layout.width == 8 else 'I'}"

    def numbers(place: int, count: int) -> tuple[int, ...]:
        return struct.unpack_from(number.format(count), layout.data, place)

    if layout.compressor is None:
        (length,) = numbers(begin, 1)
        return _taken(layout.data, begin + layout.width, length)
    blocks, size, last = numbers(begin, 3)
    if not blocks:
        return b""
    whole = (blocks - 1) * size + (last or size)
    check_claim(file, whole, f"{blocks} blocks of {size} bytes")
    if wanted is not None and whole != wanted:
        raise ValueError(f"an array has {whole} bytes where {wanted} should be")
    if blocks * layout.width > len(layout.data):
        raise ValueError(f"an array claims {blocks} blocks")
    lengths, place, out = numbers(begin + 3 * layout.width, blocks), begin + (3 + blocks) * layout.width, []
    unpack = _lz4 if layout.compressor == "vtkLZ4DataCompressor" else _zlib
    for k, length in enumerate(lengths):
        out.append(unpack(_taken(layout.data, place, length), (last or size) if k == blocks - 1 else size))
        place += length
    return out[0] if blocks == 1 else b"".join(out)


def _taken(data: memoryview, place: int, length: int) -> memoryview:
    if place + length > len(data):
        raise ValueError("an array goes on behind the end of the file")
    return data[place : place + length]


def _zlib(block: memoryview, size: int) -> bytes:
    out = zlib.decompressobj().decompress(block, size)
    if len(out) != size:
        raise ValueError(f"a block unpacks to {len(out)} bytes where {size} should be")
    return out


def _lz4(block: memoryview, size: int) -> bytes | memoryview:
    """Unpack one block of LZ4: those of literals only, which frames mostly are, without a copy; others by VTK."""
    if len(block) == size + _literals(size):
        begin = len(block) - size
        if size < 15 or block[0] == 0xF0:
            return block[begin:]
    return (_unpacked_before if size <= _KEPT else _unpacked_by_vtk)(bytes(block), size)


def _unpacked_by_vtk(block: bytes, size: int) -> bytes:
    from vtkmodules.vtkIOCore import vtkLZ4DataCompressor

    if size > 256 * len(block):  # no LZ4 is denser
        raise ValueError(f"a block of {len(block)} bytes claims {size}")
    compressor: Any = vtkLZ4DataCompressor()
    compressor.AddObserver("ErrorEvent", lambda *_: None)  # else it prints
    out = compressor.Uncompress(block, len(block), size) if block else None
    if out is None or out.GetNumberOfValues() != size:
        raise ValueError(f"a block does not unpack to {size} bytes")
    return bytes(memoryview(out))


_unpacked_before = lru_cache(maxsize=32)(_unpacked_by_vtk)


def _literals(size: int) -> int:
    """Bytes before the literals of a block that holds nothing else, see `viz.vtk_xml.lz4_literals`."""
    return 1 if size < 15 else 2 + (size - 15) // 255


# ---------------------------------------------------------------------- other layouts


def _read_by_vtk(file: Path) -> pyvista.DataSet:
    """Read a file by VTK in a child, and check its cells here."""
    full = file.resolve()
    found = foreign.call(read_vtk, full.stat().st_size, libraries=["vtkmodules.vtkIOXML"], path=str(full))
    rows = {
        name: CellRows(found[f"{name} connectivity"], found[f"{name} offsets"], found.get("types")) for name in found["sections"]
    }
    fields = [
        Field(place, str(name), found[f"{place} {number}"], tuple(labels))
        for place in ("PointData", "CellData")
        for number, (name, labels) in enumerate(found[place])
    ]
    return make_data_set(found["points"], rows, fields)
