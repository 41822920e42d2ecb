"""Element sets of Abaqus files: meshio gives those of ``*ELEMENT, ELSET=`` to wrong blocks where other blocks have none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np


def element_sets(path: str, corners: Sequence[int]) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Read the labels of the elements of each block, and those in each set.

    Parameters
    ----------
    path : str
        File that meshio has read.
    corners : sequence of int
        How many nodes the elements of each block have, by meshio.

    Returns
    -------
    blocks : list of ndarray of int
        Labels of the elements of each ``*ELEMENT`` block in the order of the file.
    sets : dict of str to ndarray of int
        Labels of the elements in each set, also of sets of sets.

    Raises
    ------
    ValueError
        If the numbers of the file are not as its keywords and ``corners`` say.
    """
    blocks: list[np.ndarray] = []
    sets: dict[str, list[np.ndarray]] = {}
    spelt: dict[str, str] = {}  # names by what they are in capitals, since case does not count
    for keyword, options, lines in _cards(path):
        words = [word.strip() for line in lines for word in line.split(",") if word.strip()]
        name = _plain(options.get("ELSET", ""))
        name = spelt.setdefault(name.upper(), name)
        if keyword == "ELEMENT":
            labels = np.array(words, dtype=np.int64).reshape(-1, corners[len(blocks)] + 1)[:, 0]
            blocks.append(labels)
            if name:
                sets.setdefault(name, []).append(labels)
        elif keyword == "ELSET":
            members = [spelt.get(_plain(word).upper(), word) for word in words]
            sets.setdefault(name, []).extend(_members(members, "GENERATE" in options, sets))
    if len(blocks) != len(corners):
        raise ValueError("it has other blocks of elements than meshio has read")
    return blocks, {name: np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *labels])) for name, labels in sets.items()}


def _plain(name: str) -> str:
    """Return a name without its quotes."""
    return name.strip('"')


def _members(words: list[str], generate: bool, sets: dict[str, list[np.ndarray]]) -> Iterator[np.ndarray]:
    """Labels of the words of a set: numbers, ranges if ``generate``, or names of other sets."""
    if generate:
        for first, last, step in np.array(words, dtype=np.int64).reshape(-1, 3).tolist():
            yield np.arange(first, last + 1, step)
        return
    for word in words:
        yield from sets[word] if word in sets else [np.array([int(word)])]


def _cards(path: str) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """Keyword, options and data lines of each card; keywords and names of options in capitals."""
    keyword, options, lines = "", {}, []  # type: str, dict[str, str], list[str]
    with open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.startswith("**"):
                continue
            if not line.startswith("*"):
                lines.append(line)
                continue
            yield keyword, options, lines
            first, *rest = line[1:].split(",")
            pairs = [word.partition("=") for word in rest]
            keyword, lines = first.strip().upper(), []
            options = {name.strip().upper(): value.strip() for name, _, value in pairs}
    yield keyword, options, lines
