"""Do two checkouts compute the same? Run every shipped scene with each, then compare their files bit by bit.

    python benchmarks/same_bits.py record before --checkout ../before
    python benchmarks/same_bits.py record after --checkout .
    python benchmarks/same_bits.py compare before after

``record`` runs the scenes of a checkout with its own code, all fields in the frames; with ``--instructions avx2`` or ``sse4.2``
as on an older processor. ``compare`` reads the recorded folders: ``steps.csv`` without its times, ``sensors.csv``, the frames,
and the status. It prints a line per scene and exits with 1 where anything differs; of ``steps.csv`` it then prints the largest
relative difference and the column it is in, of ``sensors.csv`` the largest difference in each unit over the largest value in it.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
#: Scenes that take minutes are run for a part of their duration, s.
DURATIONS = {"cable_winding": 6.0, "cable_pull": 2.0, "capstan": 1.0}
#: What lets compiled kernels, MKL and the BLAS of numpy and scipy use no newer instructions than these.
INSTRUCTIONS = {
    "native": {},
    "avx2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+bmi,+bmi2,+sse4.2,+popcnt",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "sse4.2": {
        "NUMBA_CPU_NAME": "nehalem",
        "NUMBA_CPU_FEATURES": "+sse4.2,+popcnt",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OPENBLAS_CORETYPE": "Nehalem",
    },
}


def record(folder: Path, checkout: Path, names: list[str], instructions: str) -> int:
    """Run scenes of a checkout into ``folder/NAME``; return how many could not be run."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = (
        os.environ
        | INSTRUCTIONS[instructions]
        | {
            "PYTHONPATH": str(checkout),
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
    )
    bad = 0
    for path in sorted((checkout / "scenes").glob("*.py")):
        if names and path.stem not in names:
            continue
        out = folder / path.stem
        call = [sys.executable, "-c", "import sys; from femsim.cli import execute; sys.exit(execute(sys.argv[1:]))"]
        call += ["run", str(path), "--out", str(out.resolve()), "--overwrite", "--fields", "all", "--quiet"]
        if path.stem in DURATIONS:
            call += ["--duration", str(DURATIONS[path.stem])]
        done = subprocess.run(call, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        bad += done.returncode not in (0, 3)
        print(
            f"{path.stem:24s} exit {done.returncode} {done.stderr.strip().splitlines()[-1:] if done.returncode else ''}",
            flush=True,
        )
    return bad


def read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV file, without the columns that hold times of the computer."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    keep = [k for k, name in enumerate(header) if not name.startswith("ms_")]
    return [header[k] for k in keep], [[row[k] for k in keep] for row in rows]


def compare_tables(a: Path, b: Path) -> str:
    """Say how two tables differ; empty where they do not. Columns that only the second has are no difference."""
    (names, rows), (other_names, other_rows) = read_table(a), read_table(b)
    missing = [name for name in names if name not in other_names]
    if missing or len(rows) != len(other_rows):
        return f"{a.name}: columns {missing} missing, {len(rows)} against {len(other_rows)} rows"
    places = [other_names.index(name) for name in names]
    worst, where = 0.0, ""
    for name, k, place in zip(names, range(len(names)), places, strict=True):
        first, second = ([row[i] for row in table] for table, i in ((rows, k), (other_rows, place)))
        if first == second:
            continue
        x, y = np.array(first, dtype=np.float64), np.array(second, dtype=np.float64)
        scale = max(float(np.abs(x[np.isfinite(x)]).max(initial=0.0)), 1e-300)
        difference = float(np.nanmax(np.abs(x - y))) / scale
        if difference >= worst:
            worst, where = difference, name
    return f"{a.name}: {worst:.1e} of the largest value in {where}" if where else ""


def compare_readings(a: Path, b: Path) -> str:
    """Say how two tables of sensors differ in each unit, over the largest value in it; empty where they do not."""
    (names, rows), (other_names, other_rows) = read_table(a), read_table(b)
    if (names, rows) == (other_names, other_rows) or names != other_names or len(rows) != len(other_rows):
        return compare_tables(a, b)
    x, y = (np.array([[cell or "nan" for cell in row] for row in table], dtype=np.float64) for table in (rows, other_rows))
    said = []
    for unit in dict.fromkeys(name.rpartition("_")[2] for name in names):
        columns = [k for k, name in enumerate(names) if name.rpartition("_")[2] == unit]
        largest = float(np.nanmax(np.abs(x[:, columns]), initial=0.0))
        difference = float(np.nanmax(np.abs(x - y)[:, columns], initial=0.0))
        if difference:
            said.append(f"{unit} {difference / max(largest, 1e-300):.1e}")
    return f"{a.name}: {', '.join(said)} of the largest"


def digest(folder: Path) -> str:
    """Digest of all frames of a run: names and contents of the files."""
    total = hashlib.blake2b(digest_size=16)
    for path in sorted((folder / "frames").rglob("*")):
        if path.is_file():
            total.update(f"{path.relative_to(folder)}:".encode())
            total.update(path.read_bytes())
    return total.hexdigest()


def compare(before: Path, after: Path) -> int:
    """Compare the runs of two folders; return how many differ."""
    different = 0
    for a in sorted(path for path in before.iterdir() if (path / "run.json").is_file()):
        b = after / a.name
        said = []
        if not (b / "run.json").is_file():
            said.append("not run")
        else:
            tables = [compare_tables(a / "steps.csv", b / "steps.csv"), compare_readings(a / "sensors.csv", b / "sensors.csv")]
            said += [text for text in tables if text]
            if digest(a) != digest(b):
                said.append("frames differ")
            statuses = [json.loads((run / "run.json").read_text(encoding="utf-8"))["status"] for run in (a, b)]
            if statuses[0] != statuses[1]:
                said.append(f"status {statuses[0]!r} against {statuses[1]!r}")
        different += bool(said)
        print(f"{a.name:24s} {'; '.join(said) or 'same bits'}")
    return different


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("record", help="run the scenes of a checkout")
    one.add_argument("folder", type=Path)
    one.add_argument("--checkout", type=Path, default=ROOT, help="folder of the clone; default this one")
    one.add_argument("--scenes", nargs="*", default=[], help="names of scenes; default all")
    one.add_argument("--instructions", choices=list(INSTRUCTIONS), default="native", help="newest that may be used")
    two = commands.add_parser("compare", help="compare two recorded folders")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    chosen = parser.parse_args()
    if chosen.command == "record":
        return min(record(chosen.folder, chosen.checkout.resolve(), chosen.scenes, chosen.instructions), 1)
    return min(compare(chosen.before, chosen.after), 1)


if __name__ == "__main__":
    sys.exit(main())
