"""Evaluations of papers, and their pages: sections in the order of the paper, made of the stored results of the parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from femsim.base.files import replacing
from femsim.studies.reproduction.measuring import Raw, Settings


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    names : tuple of str
        Tables, figures and tests of the paper, as ``--only`` knows them.
    title : str
        Heading.
    parts : tuple of str
        Parts that it is made of.
    write : callable
        Gives the text from the raw results by part, and draws into the folder of figures.
    """

    names: tuple[str, ...]
    title: str
    parts: tuple[str, ...]
    write: Callable[[dict[str, Raw], Path], str]


@dataclass(frozen=True)
class Evaluation:
    """What is measured for a paper, and the page that is made of it.

    Attributes
    ----------
    name : str
        As ``femsim reproduce`` knows it.
    file : str
        Name of the page.
    title : str
        Heading of the page.
    lead : callable
        Gives the lines of a list below it, how the page is to be read.
    parts : dict
        What is measured, by name: each gives its raw results. Names are those of files, so no two evaluations share one.
    sections : tuple of Section
        Of the page, in its order.
    """

    name: str
    file: str
    title: str
    lead: Callable[[], Sequence[str]]
    parts: dict[str, Callable[[Settings], Raw]]
    sections: tuple[Section, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Tables and figures of all sections."""
        return tuple(name for section in self.sections for name in section.names)


_SIZES = {"full": "full", "quick": "quick: fewer trials and steps", "tiny": "tiny scenes: no figure means anything"}


def command(evaluation: Evaluation, section: Section, record: Mapping[str, Any]) -> str:
    """Command that makes a section again."""
    quick = " --quick" if record["size"] == "quick" else ""
    data = " --data FOLDER" if record["data"] else ""
    return f"femsim reproduce {evaluation.name} --only {section.names[0]}{quick}{data}"


def make_page(
    evaluation: Evaluation, folder: Path, records: Mapping[str, Raw], failures: Mapping[str, str], raw: str = "raw"
) -> tuple[Path, list[str]]:
    """Write the page and the figures from what is there.

    Parameters
    ----------
    evaluation : Evaluation
        What the page is of.
    folder : Path
        Folder of the page, which exists.
    records : mapping
        Stored results by part, see :mod:`femsim.studies.reproduction.command`.
    failures : mapping
        Sentences on parts that failed when they were last tried.
    raw : str
        Folder of the stored results, relative to that of the page.

    Returns
    -------
    Path
        The page.
    list of str
        Sections that could not be made of what is stored.
    """
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    raws = {name: record["raw"] for name, record in records.items()}
    chapters, unreadable = [], []
    for section in evaluation.sections:
        lines = [f"## {section.title}", ""]
        missing = [name for name in section.parts if name not in records]
        for name in section.parts:
            if name in failures:
                lines += [f"**The part `{name}` failed when it was last tried:** {failures[name]}", ""]
        if missing:
            lines += [
                f"Not made yet (missing: {', '.join(missing)}); run "
                f"`femsim reproduce {evaluation.name} --only {section.names[0]}`."
            ]
        else:
            of = [records[name] for name in section.parts]
            seconds = sum(record["wall_s"] for record in of)
            sizes = "; ".join(dict.fromkeys(_SIZES[record["size"]] for record in of))
            lines += [f"`{command(evaluation, section, of[0])}` ({sizes}; {seconds:.0f} s).", ""]
            try:
                lines.append(section.write(raws, figures))
            except Exception as error:  # results of another version: the other sections are good
                unreadable.append(section.names[0])
                lines.append(f"**The stored results do not fit ({type(error).__name__}: {error}).** Run the command above.")
        chapters.append("\n".join(lines))
    path = folder / evaluation.file
    with replacing(path) as temporary:
        temporary.write_text("\n\n".join([_head(evaluation, records, raw), *chapters]) + "\n", encoding="utf-8")
    return path, unreadable


def _head(evaluation: Evaluation, records: Mapping[str, Raw], raw: str) -> str:
    """Title, how it was measured, machine, versions, and links to the raw numbers."""
    lines = [
        f"# {evaluation.title}",
        "",
        f"Made by `femsim reproduce {evaluation.name}`; the command above each section makes it again.",
        "",
        *evaluation.lead(),
    ]
    if not records:
        return "\n".join(lines)
    machines = dict.fromkeys(
        "{processor}, {cpus} CPUs, Python {python}".format(**record["machine"]) for record in records.values()
    )
    versions = dict.fromkeys(", ".join(f"{name} {v}" for name, v in record["versions"].items()) for record in records.values())
    links = ", ".join(f"[{name}.json]({raw}/{name}.json)" for name in evaluation.parts if name in records)
    total = sum(record["wall_s"] for record in records.values())
    return "\n".join(
        [
            *lines,
            "",
            f"Machine: {'; '.join(machines)}. Versions: {'; '.join(versions)}. All parts together: {total / 60.0:.1f} minutes.",
            "",
            f"Raw numbers, each with date, load of the machine and digest of the code: {links}.",
        ]
    )
