"""The page: sections in the order of the paper, made of the stored results of the parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from femsim.base.files import replacing
from femsim.studies.reproduction import (
    acceleration,
    anisotropic,
    box,
    cable,
    invertible,
    position_based,
    scaling,
    soft_scenes,
    stiffness,
)
from femsim.studies.reproduction.measuring import Raw, Settings
from femsim.studies.reproduction.paper import published
from femsim.studies.reproduction.text import markdown

#: What is measured, by name: each gives its raw results.
PARTS: dict[str, Callable[[Settings], Raw]] = {
    "box": box.measure,
    "mat": soft_scenes.measure_mat,
    "ball": soft_scenes.measure_ball,
    "stiffness": stiffness.measure,
    "cable": cable.measure,
    "gripper": soft_scenes.measure_gripper,
    "scaling": scaling.measure,
    "position_based": position_based.measure,
    "invertible": invertible.measure,
    "anisotropic": anisotropic.measure,
}


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    names : tuple of str
        Tables and figures of the paper, as ``--only`` knows them.
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


SECTIONS = (
    Section(("I", "fig6"), "Table I and Figure 6: virtual nodes", ("box",), box.write),
    Section(("II", "fig7"), "Table II and Figure 7: soft mat folding", ("mat",), soft_scenes.write_mat),
    Section(("III", "fig8"), "Table III and Figure 8: soft ball gripping", ("ball",), soft_scenes.write_ball),
    Section(("IV",), "Table IV: three stiffnesses", ("stiffness",), stiffness.write),
    Section(("V", "fig9"), "Table V and Figure 9: cable winding", ("cable",), cable.write),
    Section(("VI", "fig10"), "Table VI and Figure 10: soft gripper", ("gripper",), soft_scenes.write_gripper),
    Section(("fig11",), "Figure 11: scalability", ("scaling",), scaling.write),
    Section(("VII",), "Table VII: contact-constraint splitting", ("mat",), soft_scenes.write_splitting),
    Section(("VIII", "fig12"), "Table VIII and Figure 12: position-based dynamics", ("position_based",), position_based.write),
    Section(("fig13",), "Figure 13: invertible contact", ("invertible",), invertible.write),
    Section(("fig14",), "Figure 14: anisotropic friction", ("anisotropic",), anisotropic.write),
    Section(("IX",), "Table IX: Chebyshev acceleration", acceleration.SCENES, acceleration.write),
)
NAMES = tuple(name for section in SECTIONS for name in section.names)
_SIZES = {"full": "full", "quick": "quick: fewer trials and steps", "tiny": "tiny scenes: no figure means anything"}


def command(section: Section, record: Mapping[str, Any]) -> str:
    """Command that makes a section again."""
    quick = " --quick" if record["size"] == "quick" else ""
    data = " --data FOLDER" if record["data"] else ""
    return f"femsim reproduce cond --only {section.names[0]}{quick}{data}"


def make_page(folder: Path, records: Mapping[str, Raw], failures: Mapping[str, str], raw: str = "raw") -> tuple[Path, list[str]]:
    """Write ``index.md`` and the figures from what is there.

    Parameters
    ----------
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
    for section in SECTIONS:
        lines = [f"## {section.title}", ""]
        missing = [name for name in section.parts if name not in records]
        for name in section.parts:
            if name in failures:
                lines += [f"**The part `{name}` failed when it was last tried:** {failures[name]}", ""]
        if missing:
            lines += [f"Not made yet (missing: {', '.join(missing)}); run `femsim reproduce cond --only {section.names[0]}`."]
        else:
            of = [records[name] for name in section.parts]
            seconds = sum(record["wall_s"] for record in of)
            sizes = "; ".join(dict.fromkeys(_SIZES[record["size"]] for record in of))
            lines += [f"`{command(section, of[0])}` ({sizes}; {seconds:.0f} s).", ""]
            try:
                lines.append(section.write(raws, figures))
            except Exception as error:  # results of another version: the other sections are good
                unreadable.append(section.names[0])
                lines.append(f"**The stored results do not fit ({type(error).__name__}: {error}).** Run the command above.")
        chapters.append("\n".join(lines))
    path = folder / "index.md"
    with replacing(path) as temporary:
        temporary.write_text("\n\n".join([_head(records, raw), *chapters]) + "\n", encoding="utf-8")
    return path, unreadable


def _head(records: Mapping[str, Raw], raw: str) -> str:
    """Title, how it was measured, machine, versions, and what each part took."""
    lines = [
        "# The evaluation of papers/001, ours beside the paper's",
        "",
        "Made by one command, `femsim reproduce cond`, which runs everything below and writes this page, its figures and the "
        f"raw numbers (folder `{raw}`, one JSON file a part); nothing here is edited by hand. The command above each section "
        "makes it again.",
        "",
        "How to read it: times are CPU time of one thread in ms; the paper's are from "
        f"{published('cores')} cores of {published('machine')}. Residuals are the true ones of the contact law and of the "
        "dynamics (`contact/metrics.py`), never a step norm. *Step* is the paper's stop: the norm of the change of an iteration, "
        "in m/s; there the best iterate up to that one is returned. In Tables II, III, V, VI, VII and IX the solvers answer the "
        "same steps of a run that our own solver drives, from the same start, so that errors of a step do not go into the next "
        "and the penetration is what a step adds; in the paper each solver drives a run of its own. Sizes, grips, densities and "
        "paths that the paper does not give are ours, so figures differ for that reason too. In Figures 7 to 10 the line is the "
        "run, the marks are the solvers stopped by their step norm on sampled steps, and less than 1e-12 mm is drawn as that. "
        "The numbers in the sentences, and which claims hold, are computed from what was measured.",
    ]
    if not records:
        return "\n".join(lines)
    machines = dict.fromkeys(
        "{platform}, {processor}, {cpus} CPUs, Python {python}".format(**record["machine"]) for record in records.values()
    )
    versions = dict.fromkeys(", ".join(f"{name} {v}" for name, v in record["versions"].items()) for record in records.values())
    table = [
        [
            name, record["size"], record["made"], f"{record['wall_s']:.0f}", f"{record['cpu_s']:.0f}",
            f"{record['load'][0]:.1f} to {record['load'][1]:.1f}", f"`{record['code']}`", f"[{name}.json]({raw}/{name}.json)",
        ]
        for name in PARTS
        for record in [records.get(name)]
        if record is not None
    ]  # fmt: skip
    total = sum(record["wall_s"] for record in records.values())
    return "\n".join(
        [
            *lines,
            "",
            f"Machine: {'; '.join(machines)}. Versions: {'; '.join(versions)}. All parts together: {total / 60.0:.1f} minutes.",
            "",
            markdown(["part", "size", "made", "wall s", "CPU s", "load of the machine", "code", "raw numbers"], table),
        ]
    )
