"""Copies of what is in a <replicate> of an MJCF file, each moved on from the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

from femsim.model.mjcf_elements import MjcfElements
from femsim.model.mjcf_words import ATTRIBUTES

#: Elements that the copies of a file may be in all.
_MOST = 100_000
#: What a body has for itself, so that a <replicate> in it cannot hold it.
_OF_BODY = {"joint", "freejoint", "inertial"}
#: Attributes of other sections that name something, and of what kind it is.
_ENDS = {f"{kind}{k}": kind for kind in ("body", "geom", "joint") for k in (1, 2)}


def replicate(reader: MjcfElements) -> None:
    """Put frames with copies in place of each <replicate> in the world of a file, inner ones first.

    A copy has its number, with as many digits as their count has, behind each name, after what ``sep`` says. What <contact> and
    <equality> say of something in it, they then say of each copy.

    Raises
    ------
    InputError
        Wrong numbers, too many copies, or joints or inertia of a body in a <replicate>.
    """
    left = _MOST
    for world in reader.root.findall("worldbody"):
        left = _below(reader, world, left)


def _below(reader: MjcfElements, element: Element, left: int) -> int:
    """Do so within an element, where so many elements may still be made; return how many may be made then."""
    held = []
    for child in element:
        left = _below(reader, child, left)
        if child.tag != "replicate":
            held.append(child)
            continue
        count = _count(reader, child)
        names = {("joint" if one.tag == "freejoint" else one.tag, one.get("name", "")) for one in child.iter()}
        sections = [one for one in reader.root if one.tag in ("contact", "equality")]
        left -= count * (len(list(child.iter())) + sum(bool(_ends(one, names)) for section in sections for one in section))
        if left < 0:
            raise reader.wrong("a <replicate>", f"makes more than {_MOST} elements of the file; allowed are so many in all.")
        suffixes = [f"{child.get('sep', '')}{k:0{len(str(count))}d}" for k in range(count)]
        held += _copies(reader, child, suffixes)
        for section in sections:
            section[:] = [copy for one in section for copy in _saying(one, names, suffixes)]
    element[:] = held
    return left


def _count(reader: MjcfElements, element: Element) -> int:
    """Check a <replicate>, and return how many copies it makes."""
    reader.check_attributes("a <replicate>", element, ATTRIBUTES["replicate"])
    if tags := sorted({one.tag for one in _held(element)} & _OF_BODY):
        raise reader.wrong("a <replicate>", f"holds <{tags[0]}>, which a body has for itself; put it there.")
    count = reader.number("a <replicate>", element, "count")
    if count != int(count):
        raise reader.wrong("a <replicate>", f"has count {element.get('count')!r}; allowed are whole numbers.")
    return max(int(count), 0)


def _held(element: Element) -> Iterator[Element]:
    """Yield what a body around an element gets from it, also within frames."""
    for child in element:
        yield child
        if child.tag == "frame":
            yield from _held(child)


def _copies(reader: MjcfElements, element: Element, suffixes: Sequence[str]) -> Iterator[Element]:
    """Yield frames with the copies: each is moved by offset in the frame of the one before, its angles are multiples of euler."""
    offset, angles = (reader.numbers("a <replicate>", element, key, 3, "0 0 0") for key in ("offset", "euler"))
    place = np.zeros(3)
    for k, suffix in enumerate(suffixes):
        frame = Element("frame", {"pos": _words(place), "euler": _words(k * angles)})
        if kind := element.get("childclass"):
            frame.set("childclass", kind)
        frame.extend(deepcopy(list(element)))
        for one in frame.iter():
            _add(one, ["name"], suffix)
        yield frame
        place = place + Rotation.from_rotvec(reader.turn("a <replicate>", frame)).apply(offset)


def _words(numbers: np.ndarray) -> str:
    """Text of numbers, with all their digits."""
    return " ".join(map(repr, numbers.tolist()))


def _ends(one: Element, names: set[tuple[str, str]]) -> list[str]:
    """Return the attributes by which an element of a section names something that is copied."""
    return [key for key, kind in _ENDS.items() if one.get(key) and (kind, one.get(key, "")) in names]


def _saying(one: Element, names: set[tuple[str, str]], suffixes: Sequence[str]) -> list[Element]:
    """Return copies of an element of such a section, or itself where it names nothing that was copied."""
    ends = _ends(one, names)
    if not ends or not suffixes:
        return [one]
    copies = [deepcopy(one) for _ in suffixes]
    for copy, suffix in zip(copies, suffixes, strict=True):
        _add(copy, ["name", *ends], suffix)
    return copies


def _add(element: Element, keys: Sequence[str], suffix: str) -> None:
    """Write a suffix behind the names that an element has."""
    for key in keys:
        if given := element.get(key):
            element.set(key, given + suffix)
