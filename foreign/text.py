"""JSON, TOML, XML and npz archives whose sizes and nesting are checked before they are believed; they need no child."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import XML, Element, ParseError, TreeBuilder
from xml.parsers.expat import ExpatError, ParserCreate
from xml.parsers.expat.errors import XML_ERROR_UNBOUND_PREFIX, codes

import numpy as np

from foreign.child import Refused

#: Largest files that people write by hand or that a run writes, bytes.
TOML_BYTES, XML_BYTES, JSON_BYTES, TEXT_BYTES = 4_000_000, 4_000_000, 256_000_000, 2_000_000_000
#: Levels of tables and lists in a file; parts of a dotted key.
DEEPEST, MOST_PARTS = 64, 32
#: Arrays of one npz archive, and how far deflation may have shrunk it.
_MOST_ARRAYS, _TIMES_FILE, _BYTES = 10_000, 20, 50_000_000

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![\w\-.])(?:{_PART}){{{MOST_PARTS}}}")  # no second try: its time is that of the text


def read_toml(path: Path, *, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Read a TOML file; ``parse_float`` makes a number of the digits of one that is not whole.

    Raises
    ------
    OSError, Refused
        It cannot be opened; it is too large, no TOML, or nested too deeply.
    """
    text = read_text(path, TOML_BYTES)
    if _LONG_KEY.search(text):  # tomllib's time grows with the square of the parts
        raise Refused(f"a key has more than {MOST_PARTS} parts")
    try:
        content = tomllib.loads(text, parse_float=parse_float)
    except RecursionError:
        raise Refused(f"it is nested more deeply than {DEEPEST} levels") from None
    except ValueError as error:
        raise Refused(str(error)) from None
    for value in _check_depth(content):
        if type(value) is int and not -(1 << 63) <= value < 1 << 63:  # TOML allows no others, Python's reader does
            raise Refused(f"it has a whole number of {len(str(value).lstrip('-'))} digits")
    return content


def read_xml(path: Path) -> Element:
    """Read an XML file that declares no document type, so that it has no entities, of its own or of other files.

    As other readers do, it takes empty lines before the declaration, and names with prefixes that nothing declares, as they are.

    Raises
    ------
    OSError, Refused
        It cannot be opened; it is too large, no XML, declares a document type, or is nested too deeply.
    """
    text = read_text(path, XML_BYTES)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise Refused("it declares a document type or entities, which are not read")
    text = text.lstrip("\ufeff \t\r\n")
    try:
        root = _parse(text)
    except (ParseError, ValueError, ExpatError) as error:
        raise Refused(f"it is no XML: {error}") from None
    level, depth = [root], 1
    while level:
        if depth > DEEPEST:
            raise Refused(f"it is nested more deeply than {DEEPEST} levels")
        level, depth = [child for element in level for child in element], depth + 1
    return root


def _parse(text: str) -> Element:
    """Parse XML; where a prefix has no namespace, without any."""
    try:
        return XML(text)
    except ParseError as error:
        if error.code != codes[XML_ERROR_UNBOUND_PREFIX]:
            raise
    builder, parser = TreeBuilder(), ParserCreate()
    parser.StartElementHandler = lambda tag, given: builder.start(
        tag, {key: value for key, value in given.items() if not key.startswith("xmlns")}
    )
    parser.EndElementHandler, parser.CharacterDataHandler = builder.end, builder.data
    parser.Parse(text, True)
    return builder.close()


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    OSError, Refused
        It cannot be opened; it is too large, no JSON, or nested too deeply.
    """
    return parse_json(read_text(path, JSON_BYTES))


def parse_json(text: str) -> Any:
    """Read a text of JSON, see `read_json`."""
    try:
        content = json.loads(text)
    except RecursionError:
        raise Refused(f"it is nested more deeply than {DEEPEST} levels") from None
    except ValueError as error:
        raise Refused(str(error)) from None
    _check_depth(content)
    return content


def decoded(data: bytes) -> str:
    """Text of a table that some other program wrote: UTF-8, with or without a mark, else Latin-1 (a degree or micro sign)."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_text(path: Path, most: int = TEXT_BYTES, encoding: str = "utf-8") -> str:
    """Read a text of at most so many bytes.

    Raises
    ------
    OSError, Refused
        It cannot be opened; it is no regular file, too large, or not in that encoding.
    """
    data = read_bytes(path, most)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise Refused(f"it is no {encoding[:5].upper()} text") from None


def read_bytes(path: Path, most: int = TEXT_BYTES) -> bytes:
    """Read a file of at most so many bytes; a pipe or a device, which may never end, is refused."""
    if path.exists() and not path.is_file():
        raise Refused("it is a folder" if path.is_dir() else "it is no file but a pipe or a device")
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise Refused(f"it has {size} bytes; at most {most} are read")
        return stream.read(size)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an npz archive; the size of each is checked against its header and the file before it is allocated.

    Raises
    ------
    OSError, Refused
        It cannot be opened; it is no archive, claims more than it holds, or holds what are no numbers.
    """
    if path.exists() and not path.is_file():
        raise Refused("it is no file")
    with path.open("rb") as stream:
        return unpack_npz(stream, os.fstat(stream.fileno()).st_size)


def unpack_npz(stream: IO[bytes], size: int) -> dict[str, np.ndarray]:
    """Read the arrays of an npz archive of so many bytes that is open already, see `read_npz`."""
    left = _TIMES_FILE * size + _BYTES
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
            if len(members) > _MOST_ARRAYS:
                raise Refused(f"it claims {len(members)} arrays; at most {_MOST_ARRAYS} are read")
            arrays = {}
            for member in members:
                left -= member.file_size
                if left < 0 or member.file_size < 0:
                    raise Refused("its arrays are larger than a file of its size can hold")
                arrays[member.filename.removesuffix(".npy")] = _npy(archive, member)
            return arrays
    except Refused:
        raise
    except OSError:
        raise
    except Exception as error:  # zipfile and numpy on damaged archives: errors of many kinds
        raise Refused(f"{type(error).__name__}: {error}") from None


def _npy(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if read is None:
            raise Refused(f"{member.filename} is of version {version} of numpy's format")
        shape, fortran, dtype = read(stream)
        if dtype.kind not in "biufUS" or dtype.itemsize == 0 or min(shape, default=0) < 0:
            raise Refused(f"{member.filename} holds {dtype} {shape}, which are no numbers")
        data = stream.read()
    if math.prod(shape) * dtype.itemsize != len(data):
        raise Refused(f"{member.filename} claims {shape} values, but has {len(data)} bytes")
    return np.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if fortran else "C")


def _check_depth(content: Any) -> list[Any]:
    """Refuse nesting beyond DEEPEST, without recursion; return what is neither a table nor a list."""
    level, depth = [content], 0
    leaves: list[Any] = []
    while level:
        if depth > DEEPEST:
            raise Refused(f"it is nested more deeply than {DEEPEST} levels")
        inner: list[Any] = []
        for value in level:
            for held in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
                (inner if isinstance(held, (dict, list)) else leaves).append(held)
        level, depth = inner, depth + 1
    return leaves
