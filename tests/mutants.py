"""Mutants: the code with one thing wrong in physics, sensors, energies or judges, and the tests that must notice each.

    python tests/mutants.py --report data/results/mutants.md            # all of them
    python tests/mutants.py --only SOME_WORDS --tree /tmp/tree  # some, in a tree that stays for the next time
    python tests/mutants.py --kept /tmp/kept.json               # but those that an earlier run killed, whose row is the same

Each mutant changes one text in a copy of the working tree, and runs the tests that its row names. It is *killed* when one of them
fails and *survives* when all pass; a survivor asks for a test. The tests are run on the code as it is first, since a test that
fails anyway notices nothing. Kernels are compiled once for all: of a mutant in a file of kernels only that file is compiled
again, and those that import it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path

from mutant import Mutant
from mutant_table import MUTANTS

ROOT = Path(__file__).resolve().parents[1]
#: What is copied: all that the named tests read.
_COPIED = ("femsim", "contact", "foreign", "materials", "meshes", "viz", "scenes", "data", "tests", "pyproject.toml")
#: Seconds of processor time after which tests of a mutant, and those of the code as it is, are ended; what never ends is noticed.
_SECONDS, _FIRST_SECONDS = 300, 3600


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant: how it ended, the processor time of its tests (s), and the test that noticed."""

    mutant: Mutant
    ended: str
    seconds: float
    noticed: str


class Tree:
    """A copy of the working tree in which mutants are made, and the compiled kernels of its tests."""

    def __init__(self, folder: Path) -> None:
        self.code, self.kernels = folder / "code", folder / "kernels"
        for name in _COPIED:
            _copy_changed(ROOT / name, self.code / name)
        self._imports = {path: _imported(path, self.code) for path in self.code.rglob("*.py")}

    def run(self, tests: str, kernels: Path, seconds: int = _SECONDS) -> tuple[str, float, str]:
        """Run tests: "killed" or "survived", processor time (s), the first that failed."""
        names = [f"tests/{name}" for name in tests.split()]
        env = {**os.environ, "PYTHONPATH": str(self.code), "NUMBA_CACHE_DIR": str(kernels), "PYTHONDONTWRITEBYTECODE": "1"}
        env |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-rfE", *names],
            cwd=self.code, env=env, capture_output=True, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
        )  # fmt: skip
        after, status, text = os.times(), done.returncode, done.stdout
        if status not in (0, 1):
            text = "FAILED without-an-end" if status < 0 else "FAILED at-collection"
        ends = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
        first = ends[0].partition(" ")[2].partition(" - ")[0] if ends else ""
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return ("survived" if status == 0 else "killed"), used, first.removeprefix("tests/")

    def try_one(self, mutant: Mutant) -> Outcome:
        """Make a mutant, run its tests, and take it back."""
        path = self.code / mutant.file
        text, stamp = path.read_text(encoding="utf-8"), path.stat()
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.file} has {text.count(mutant.old)} times {mutant.old!r}; a mutant needs one")
        kernels = self._kernels_without(path) if "njit" in text else self.kernels
        try:
            path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
            return Outcome(mutant, *self.run(mutant.tests, kernels))
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            if kernels != self.kernels:
                shutil.rmtree(kernels)

    def _kernels_without(self, path: Path) -> Path:
        """Copy the compiled kernels, as links, but for a file and all that import it: numba looks at the own file only."""
        stale, found = {path}, {path}
        while found:
            found = {other for other, names in self._imports.items() if names & found} - stale
            stale |= found
        kernels = Path(tempfile.mkdtemp(prefix="kernels", dir=self.kernels.parent))
        stems = {(other.parent.name, other.stem) for other in stale}
        for entry in self.kernels.rglob("*.nb?"):
            if (entry.parent.name.rpartition("_")[0], entry.name.partition(".")[0]) not in stems:
                target = kernels / entry.relative_to(self.kernels)
                target.parent.mkdir(exist_ok=True)
                os.link(entry, target)
        return kernels


def _copy_changed(source: Path, target: Path) -> None:
    """Make a file or folder what its source is; files that are the same stay, with the times by which numba knows them."""
    paths = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
    wanted = {target / path.relative_to(source): path for path in paths if "__pycache__" not in path.parts}
    for path in target.rglob("*") if target.is_dir() else []:
        if path.is_file() and path not in wanted:
            path.unlink()
    for path, original in wanted.items():
        if not path.exists() or path.read_bytes() != original.read_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(original, path)


def _imported(path: Path, root: Path) -> set[Path]:
    """Files of ours that a file imports from, also by ``from package import module``."""
    text, out = path.read_text(encoding="utf-8"), set()
    for found in re.finditer(r"^\s*(?:from (\S+) import ([^#\n]*)|import (\S+))", text, re.MULTILINE):
        module = found[1] or found[3]
        names = [name.split(" as ")[0].strip(" ()") for name in (found[2] or "").split(",")]
        out |= {root / Path(*module.split(".")).with_suffix(".py")}
        out |= {root / Path(*module.split("."), f"{name}.py") for name in names if name}
    return out


def killed_before(kept: Path | None) -> dict[Mutant, Outcome]:
    """Mutants that an earlier run killed, by their rows."""
    if kept is None or not kept.exists():
        return {}
    stored = json.loads(kept.read_text(encoding="utf-8"))
    found = [Outcome(Mutant(*row), ended, seconds, noticed) for row, ended, seconds, noticed in stored]
    return {outcome.mutant: outcome for outcome in found if outcome.ended == "killed"}


def try_all(mutants: tuple[Mutant, ...], folder: Path, report: Path | None = None, kept: Path | None = None) -> list[Outcome]:
    """Run the tests on the code as it is, then on each mutant that no earlier run killed."""
    if not mutants:
        raise SystemExit("no mutant has these words")
    tree, before = Tree(folder), killed_before(kept)
    named = sorted({name for mutant in mutants if mutant not in before for name in mutant.tests.split()})
    if not named:
        raise SystemExit("all of them were killed before")
    status, seconds, first = tree.run(" ".join(named), tree.kernels, _FIRST_SECONDS)
    print(f"the code as it is: {seconds:.0f} s", flush=True)
    if status == "killed":
        raise SystemExit(f"{first} fails on the code as it is; mend it first.")
    outcomes: list[Outcome] = []
    for mutant in mutants:
        if mutant in before:
            outcomes.append(before[mutant])
            continue
        outcomes.append(tree.try_one(mutant))
        last = outcomes[-1]
        print(f"{last.ended:9} {last.seconds:5.1f} s  {mutant.group}: {mutant.what}  [{last.noticed}]", flush=True)
    if report:
        report.write_text(page(outcomes, seconds), encoding="utf-8")
    if kept:
        stored = [[astuple(one.mutant), one.ended, one.seconds, one.noticed] for one in outcomes]
        kept.write_text(json.dumps(stored), encoding="utf-8")
    return outcomes


def page(outcomes: list[Outcome], before: float) -> str:
    """Write what came of them as a page."""
    killed = sum(one.ended == "killed" for one in outcomes)
    rows = "\n".join(
        f"| {one.mutant.group} | {one.mutant.what} | `{one.mutant.file}` | {one.ended} | `{one.noticed}` | {one.seconds:.0f} |"
        for one in outcomes
    )
    return f"""# Mutants: would a test notice?

Written by `python tests/mutants.py --report data/results/mutants.md` (Python {platform.python_version()}). Each row is the
code with one thing wrong in physics, sensors, energies or judges: one text of one file replaced by another (`MUTANTS` in
`tests/mutant_table.py`). It is killed when a test that the table names fails, and survives when all of these pass; a survivor
asks for a test. Rows that an earlier run killed and that are the same since are taken over (`--kept`).

**{killed} of {len(outcomes)} are killed.** Processor time: {sum(one.seconds for one in outcomes):.0f} s, and {before:.0f} s
for the tests of those of the last run on the code as it is, compiling included.

| group | what is wrong | file | ended | first test that noticed | s |
|---|---|---|---|---|---|
{rows}

`tests/test_mutants.py` holds in CI that each text stands in its file exactly once and that the tests exist, so that the table
stays one of this code.
"""


def main() -> int:
    """Run from the command line; 1 where something survives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", default="", help="those whose group, file or words have this")
    parser.add_argument("--tree", type=Path, help="folder for the copy that stays; default a temporary one")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--kept", type=Path, help="outcomes as JSON: read first, written at the end")
    asked = parser.parse_args()
    chosen = tuple(m for m in MUTANTS if asked.only in f"{m.group} {m.what} {m.file}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        outcomes = try_all(chosen, asked.tree or Path(name), asked.report, asked.kept)
    left = [one for one in outcomes if one.ended == "survived"]
    print(f"{len(outcomes) - len(left)} of {len(outcomes)} killed in {time.monotonic() - began:.0f} s")
    for one in left:
        print(f"survived: {one.mutant.group}: {one.mutant.what} ({one.mutant.file})")
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())
