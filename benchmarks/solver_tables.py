"""Makes the tables and pictures on solvers: every solver on the same steps and on problems of others.

    python benchmarks/solver_tables.py [--out FOLDER] [--quick] [--only fclib,guide,...] [--data FOLDER]

Text between the markers ``<!-- NAME -->`` and ``<!-- end NAME -->`` of the pages is replaced, all else is kept.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

# one thread, before numpy is imported; and the packages of this folder's own checkout
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.tables import conditioning, convergence, presets, proximal, saved_problems
from benchmarks.tables.common import ROOT, Settings

#: Modules by the names of the blocks they make.
TABLES: dict[tuple[str, ...], Callable[[Settings], dict[str, str]]] = {
    ("convergence",): convergence.make,
    ("fclib", "targets"): saved_problems.make,
    ("presets",): presets.make,
    ("operators",): proximal.make,
    ("conditioning", "guide"): conditioning.make,
}
NAMES = tuple(name for names in TABLES for name in names)
#: Block that says when and where all others were made.
RUN = "run"
#: Pages with blocks, in the folder of the project.
PAGES = (Path("data", "results", "solvers.md"),)


def replace_block(pages: Sequence[Path], name: str, text: str) -> None:
    """Put a text between the markers of a block, which one of the pages has.

    Raises
    ------
    ValueError
        The pages have no such markers, or have them twice.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    found = {page: page.read_text(encoding="utf-8") for page in pages}
    if sum(len(pattern.findall(old)) for old in found.values()) != 1:
        raise ValueError(f"the pages must hold the markers {begin} and {end} once; add them where the block belongs.")
    for page, old in found.items():
        if pattern.search(old):
            page.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", old), encoding="utf-8")


def make_tables(pages: Sequence[Path], settings: Settings, only: Sequence[str] = NAMES) -> None:
    """Make the tables that are asked for, and write the page of each after it."""
    for names, make in TABLES.items():
        if not set(names) & set(only):
            continue
        started = time.process_time()
        blocks = make(settings)
        for name, text in blocks.items():
            replace_block(pages, name, text)
        said = f"{time.process_time() - started:.0f} s CPU" if blocks else "no data, left as it is"
        print(f"{', '.join(names)}: {said}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and make the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT, help=f"folder with {' and '.join(map(str, PAGES))}")
    parser.add_argument("--quick", action="store_true", help="tiny scenes, no figure means anything: give another --out")
    parser.add_argument("--only", default=",".join(NAMES), help=f"blocks, separated by commas, of: {', '.join(NAMES)}")
    parser.add_argument("--data", type=Path, help="folder with FCLib files and check_fc.py; their tables are made with it only")
    chosen = parser.parse_args(arguments)
    only = chosen.only.split(",")
    unknown = [name for name in only if name not in NAMES]
    if unknown:
        parser.error(f"--only names {unknown[0]!r}; allowed are {', '.join(NAMES)}.")
    pages = [chosen.out / page for page in PAGES]
    if missing := [page for page in pages if not page.is_file()]:
        parser.error(f"--out is {chosen.out}, which holds no {missing[0].relative_to(chosen.out)}; copy ours there.")
    if chosen.data is not None and not (chosen.data / "check_fc.py").is_file():
        parser.error(f"--data is {chosen.data}, which holds no check_fc.py; name the folder of FCLib files and their checker.")
    pictures = chosen.out / "docs" / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    before, started = os.getloadavg()[0], time.strftime("%Y-%m-%d %H:%M")
    make_tables(pages, Settings("tiny" if chosen.quick else "full", chosen.data, pictures=pictures), only)
    load = f"load {before:.1f} before and {os.getloadavg()[0]:.1f} after, of which this job makes 1"
    text = f"{started}, {platform.platform()}, {os.cpu_count()} CPUs, {load}"
    print(text)
    if set(only) == set(NAMES):
        replace_block(pages, RUN, f"Last made as a whole: {text}.")


if __name__ == "__main__":
    main()
