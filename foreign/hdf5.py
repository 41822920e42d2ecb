"""What HDF5 files hold, by h5py. Call it through `foreign.call`: it may take for ever."""

from __future__ import annotations

import math
import mmap
import os
import struct
from typing import Any

import numpy as np

from foreign.child import Refused

#: A file may claim more numbers than it holds, as it may be compressed; not more than this, bytes, and times the file.
_TIMES_FILE, _BYTES = 16, 50_000_000
#: Members of one group, and depth of groups.
_MOST_MEMBERS, _DEEPEST = 1000, 6
#: How a global heap begins: its mark, its version, three zeros.
_HEAP = b"GCOL\1\0\0\0"


def read_groups(path: str, wanted: list[str]) -> dict[str, Any]:
    """Read every dataset of some groups at the top of a file; only what the file itself holds.

    Parameters
    ----------
    path : str
        HDF5 file.
    wanted : list of str
        Names of groups.

    Returns
    -------
    dict
        ``top``: names of all at the top; ``groups``: paths of the groups found; ``texts``: ``[path, list of texts]`` of datasets
        of texts; ``kinds``: types of what is neither; ``=PATH``: numbers of a dataset.

    Raises
    ------
    Refused
        A link to another place or file, numbers that are kept in another file, or more of them than the file can hold.
    """
    import h5py

    most = _TIMES_FILE * os.path.getsize(path) + _BYTES
    out: dict[str, Any] = {"top": [], "groups": [], "texts": [], "kinds": {}}

    def visit(group: Any, where: str, depth: int) -> None:
        nonlocal most
        if depth > _DEEPEST or len(group) > _MOST_MEMBERS:
            raise Refused(f"its group {where} holds {len(group)} members at depth {depth}; that is no contact problem")
        out["groups"].append(where)
        for name in group:
            place = f"{where}/{name}"
            node = _own(group, name, place)
            if isinstance(node, h5py.Group):
                visit(node, place, depth + 1)
            elif isinstance(node, h5py.Dataset):
                if node.is_virtual or node.external:
                    raise Refused(f"its {place} is kept in another file, which is not read; write the numbers into this one")
                if node.shape is None:
                    out["kinds"][place] = "nothing"
                    continue
                most -= math.prod(node.shape) * node.dtype.itemsize
                if most < 0:
                    raise Refused(f"its {place} claims {node.shape} values, more than a file of its size can hold")
                if node.dtype.kind in "iuf":
                    values = np.asarray(node[()])
                    out[f"={place}"] = values.astype(values.dtype.newbyteorder("="))
                elif node.dtype.kind in "SO":
                    out["texts"].append([place, _texts(node)])
                else:
                    out["kinds"][place] = str(node.dtype)

    _check_heaps(path)
    with h5py.File(path, "r") as file:
        out["top"] = [str(name) for name in file]
        for name in wanted:
            if name in file:
                node = _own(file, name, name)
                if isinstance(node, h5py.Group):
                    visit(node, name, 1)
    return out


def read_links(path: str) -> dict[str, Any]:
    """Read which files the index of VTKHDF frames links: ``files``, a list of ``[part, file]`` in its order.

    Raises
    ------
    Refused
        It is no such index, or a part has no file.
    """
    import h5py

    _check_heaps(path)
    with h5py.File(path, "r", locking=False) as file:
        root, files = file["VTKHDF"], []
        if len(root["Assembly"]) > _MOST_MEMBERS:
            raise Refused(f"it lists {len(root['Assembly'])} parts; at most {_MOST_MEMBERS} are read")
        for name in root["Assembly"]:
            link = root.get(name, getlink=True)  # of older runs; else the data of the part are links
            link = link if isinstance(link, h5py.ExternalLink) else root[name].get("Points", getlink=True)
            if not isinstance(link, h5py.ExternalLink):
                raise Refused(f"its part {name} names no file")
            files.append([str(name), str(link.filename)])
    return {"files": files}


def read_index(path: str) -> dict[str, Any]:
    """Read how many steps the index of VTKHDF frames gives each part: ``parts``, ``[part, steps]``, -1 where that links a file.

    Raises
    ------
    Refused
        It lists too many parts.
    """
    import h5py

    _check_heaps(path)
    with h5py.File(path, "r", locking=False) as file:
        root, parts = file["VTKHDF"], []
        if len(root["Assembly"]) > _MOST_MEMBERS:
            raise Refused(f"it lists {len(root['Assembly'])} parts; at most {_MOST_MEMBERS} are read")
        for name in root["Assembly"]:
            linked = isinstance(root.get(name, getlink=True), h5py.ExternalLink)  # of older runs
            parts.append([str(name), -1 if linked else int(root[name]["Steps"].attrs["NSteps"])])
    return {"parts": parts}


def check_frames(paths: list[str]) -> dict[str, Any]:
    """Walk all that is read of VTKHDF files later, except the numbers: groups, attributes, types, the places of all chunks.

    HDF5 may walk for ever or crash where these are damaged; damaged numbers it unpacks or refuses.

    Raises
    ------
    Refused
        A link to another place, numbers that are kept in another file, or what are no numbers.
    """
    import h5py

    def walk(group: Any, where: str, depth: int) -> None:
        if depth > _DEEPEST or len(group) > _MOST_MEMBERS:
            raise Refused(f"its group {where} holds {len(group)} members at depth {depth}; these are no frames")
        for key in group.attrs:
            group.attrs[key]
        for name in group:
            place = f"{where}/{name}"
            node = _own(group, name, place)
            if isinstance(node, h5py.Group):
                walk(node, place, depth + 1)
                continue
            if not isinstance(node, h5py.Dataset) or node.shape is None or node.dtype.kind not in "iuf":
                raise Refused(f"its {place} holds no numbers")
            if node.is_virtual or node.external:
                raise Refused(f"its {place} is kept in another file, which is not read")
            if node.chunks:
                node.id.chunk_iter(lambda _: None)

    for path in paths:
        try:
            _check_heaps(path)
            with h5py.File(path, "r", locking=False) as file:
                walk(_own(file, "VTKHDF", "VTKHDF"), "VTKHDF", 1)
        except Exception as error:  # of many kinds; one of several files must be named
            raise Refused(f"{os.path.basename(path)}: {error}") from None
    return {}


def _check_heaps(path: str) -> None:
    """Walk the global heaps, where texts are kept: HDF5 walks on for ever where an object leaves its heap.

    A heap ("GCOL", version 1, three zeros, length of 8 bytes) is a row of objects: number and uses (2 bytes each), 4 bytes, the
    length of the data (8 bytes), the data filled up to 8 bytes. Object 0 is the free rest; its length has the head in it. See the
    HDF5 File Format Specification, III.E. Lengths of 8 bytes, which all common libraries write, are looked at; for
    others the limits of the child hold.
    """
    if not os.path.getsize(path):
        return
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(_HEAP)
        while at >= 0:
            length = int.from_bytes(data[at + 8 : at + 16], "little")
            end = min(at + length, len(data))
            place = at + 16
            while place + 16 <= end:
                number, size = struct.unpack_from("<H6xQ", data, place)
                step = 16 + (size + 7) // 8 * 8 if number else size
                if not 0 < step <= end - place:
                    raise Refused(f"its texts at byte {at} claim {size} bytes of a heap of {length}: it is damaged")
                place += step
            at = data.find(_HEAP, at + 16)


def _own(group: Any, name: str, place: str) -> Any:
    """Member of a group that the file itself holds."""
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise Refused(f"its {place} is a link to another place or file, which is not followed; write the numbers into this one")
    return group[name]


def _texts(node: Any) -> list[str]:
    values = np.asarray(node[()], dtype=object).ravel()
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in values]
