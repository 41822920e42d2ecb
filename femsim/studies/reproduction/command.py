"""``femsim reproduce PAPER``: run the parts, store each result when it is there, and make the page of what is stored."""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from femsim.base.errors import InputError, did_you_mean, meant
from femsim.base.files import replacing, write_json
from femsim.base.place import ROOT
from femsim.base.versions import machine, versions
from femsim.studies.reproduction import admm, canal, cond, dual
from femsim.studies.reproduction.cable import PUBLISHED_FILE
from femsim.studies.reproduction.measuring import Raw, Settings, Size
from femsim.studies.reproduction.page import Evaluation, make_page
from foreign.text import read_json

#: Evaluations by the name of their paper's method.
EVALUATIONS: dict[str, Evaluation] = {of.name: of for of in (cond.EVALUATION, admm.EVALUATION, canal.EVALUATION, dual.EVALUATION)}
#: Parts that read the folder of data.
_WITH_DATA = ("cable",)
#: Packages that a result depends on.
_SOURCES = ("femsim", "foreign", "contact", "materials", "meshes", "scenes")


@dataclass(frozen=True)
class Reproduction:
    """What :func:`reproduce` did.

    Attributes
    ----------
    page : Path
        The page.
    made, kept : tuple of str
        Parts that were run, and parts whose stored results were good.
    failures : dict of str to str
        Sentences on the parts that failed in this call, and on sections whose stored results do not fit.
    seconds : float, s
        Wall time.
    """

    page: Path
    made: tuple[str, ...]
    kept: tuple[str, ...]
    failures: dict[str, str]
    seconds: float


def reproduce(
    out: str | Path,
    paper: str = "cond",
    *,
    raw: str | Path | None = None,
    size: Size = "full",
    only: Sequence[str] = (),
    data: str | Path | None = None,
    fresh: bool = False,
    say: Callable[[str], None] | None = None,
) -> Reproduction:
    """Run the evaluation of a paper and write a page of tables and figures, ours beside the paper's.

    The result of each part is stored as ``PART.json`` when it is there, so that a call that was interrupted
    goes on where it was: parts stored with the same size, the same data and the same code are kept. A part that fails is said
    on the page, and the others go on.

    Parameters
    ----------
    out : path
        Folder of the page; made if it is not there.
    paper : str
        "cond": papers/001 section V. "admm": papers/003 section 8. "canal": papers/000 section VII, and papers/002.
        "dual": the solvers of papers/004.
    raw : path, optional
        Folder of the stored results; made if it is not there. Default: ``raw`` in the folder of the page.
    size : {"full", "quick", "tiny"}
        All of it (about half an hour), less of it on the same scenes (some minutes), or tiny scenes that only show that
        everything runs.
    only : sequence of str
        Tables and figures to make again, e.g. ("III", "fig11"), whatever is stored. Default: all that are not stored.
    data : path, optional
        Folder with ``authors_program_N160.csv``, the forces of the program published with the paper. Without it that comparison
        is left out.
    fresh : bool
        Keep nothing that is stored.
    say : callable, optional
        Told what is being done.

    Returns
    -------
    Reproduction
        The page, and what was made.

    Raises
    ------
    InputError
        An unknown paper, size or name in ``only``, a folder of data without the file, or a file where the folder should be.
    """
    if paper not in EVALUATIONS:
        raise InputError(f"there is no evaluation {paper!r}{did_you_mean(paper, EVALUATIONS)}")
    evaluation = EVALUATIONS[paper]
    _check(evaluation.names, size, only, data)
    page_folder = Path(out)
    folder = Path(raw) if raw is not None else page_folder / "raw"
    for path in (page_folder, folder):
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; give a folder by --out.")
        path.mkdir(parents=True, exist_ok=True)
    settings = Settings(size, None if data is None else Path(data), say or (lambda _: None))
    asked = {part for section in evaluation.sections for part in section.parts if not only or set(only) & set(section.names)}
    code, started = _code(), time.perf_counter()
    made, kept, failures = [], [], {}
    try:
        for part in evaluation.parts:
            if part not in asked:
                continue
            stored = _read(folder, part)
            good = stored is not None and (stored["size"], stored["code"], stored["data"]) == (
                size,
                code,
                part in _WITH_DATA and data is not None,
            )
            if good and not only and not fresh:
                kept.append(part)
                continue
            failure = _make(folder, part, evaluation.parts[part], settings, code)
            made.append(part)
            if failure:
                failures[part] = failure
    finally:  # also when it was interrupted
        page, unreadable = _page(evaluation, page_folder, folder)
    failures |= {name: "the stored results do not fit; run it again by --only." for name in unreadable}
    return Reproduction(page, tuple(made), tuple(kept), failures, time.perf_counter() - started)


def _check(names: Sequence[str], size: str, only: Sequence[str], data: str | Path | None) -> None:
    """Refuse wrong arguments of :func:`reproduce`."""
    if size not in ("full", "quick", "tiny"):
        raise InputError(f"size is {size!r}; allowed are 'full', 'quick' and 'tiny'.")
    for name in only:
        if name not in names:
            raise InputError(f"there is no table or figure {name!r};{meant(name, names)} there are {', '.join(names)}.")
    if data is not None and not (Path(data) / PUBLISHED_FILE).is_file():
        raise InputError(f"folder of data {data} has no file {PUBLISHED_FILE}; give the folder that holds it.")


def _make(folder: Path, part: str, measure: Callable[[Settings], Raw], settings: Settings, code: str) -> str:
    """Run a part and store its result, or what went wrong, which is returned in a sentence."""
    error = folder / f"{part}.error.json"
    load, wall, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    try:
        raw = measure(settings)
    except Exception as failure:  # whatever goes wrong in a part must not take the others with it
        sentence = f"{type(failure).__name__}: {failure}"
        settings.say(f"{part}: failed: {sentence}")
        write_json(error, {"message": sentence, "trace": traceback.format_exc(), "made": time.strftime("%Y-%m-%d %H:%M")})
        return sentence
    record = {
        "part": part,
        "size": settings.size,
        "code": code,
        "data": part in _WITH_DATA and settings.data is not None,
        "made": time.strftime("%Y-%m-%d %H:%M"),
        "wall_s": round(time.perf_counter() - wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
        "load": [round(load, 2), round(os.getloadavg()[0], 2)],
        "machine": machine() | {"threads": os.environ.get("OMP_NUM_THREADS", "not set")},
        "versions": versions(),
        "raw": raw,
    }
    path = folder / f"{part}.json"
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")
    error.unlink(missing_ok=True)
    settings.say(f"{part}: done in {record['wall_s']:.0f} s")
    return ""


def _read(folder: Path, part: str) -> dict[str, Any] | None:
    """Read what is stored of a part; None where there is nothing that can be read."""
    try:
        record = read_json(folder / f"{part}.json")
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and "raw" in record else None


def _page(evaluation: Evaluation, page_folder: Path, folder: Path) -> tuple[Path, list[str]]:
    """Make the page of everything that is stored in a folder, and of the failures."""
    records = {part: record for part in evaluation.parts if (record := _read(folder, part)) is not None}
    failures = {}
    for part in evaluation.parts:
        try:
            failures[part] = read_json(folder / f"{part}.error.json")["message"]
        except (OSError, ValueError):
            continue
    return make_page(evaluation, page_folder, records, failures, Path(os.path.relpath(folder, page_folder)).as_posix())


def _code() -> str:
    """Digest of all our sources that a result depends on."""
    digest = hashlib.blake2b(digest_size=4)
    for package in _SOURCES:
        for path in sorted((ROOT / package).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
