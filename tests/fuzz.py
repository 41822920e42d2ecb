"""A seeded fuzzer of all readers: good files, bad files and changes to both, read by the doors of a user.

    python tests/fuzz.py --inputs 1000000 --seed 1 --report data/results/fuzz.md

or in pieces, `--inputs 50000 --first 50000 --save 1.json` and so on, then `--join *.json --report data/results/fuzz.md`.

Inputs are read one after the other by a worker process with limits, foreign libraries in the worker itself. An input that ends
the worker (too long, too much memory, a crash) is read again by the door of a user, where a child has the limits; there it must
end as a sentence, in time and memory. A failure is an error that is no sentence, an accepted value that is not finite,
more than 5 s of processor time, or more memory than 20 times the file and 200 MB. Input N of a seed is always the same.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import platform
import resource
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bad_files import CORPUS, size_of
from fuzz_doors import read
from fuzz_seeds import Seed, seeds

#: Processor seconds that one input may take in the worker before it is tried by the user's door, and there.
QUICK, SECONDS = 0.5, 5.0
TIMES_FILE, BYTES = 20, 200_000_000
#: How often the kinds come.
_WEIGHTS = {
    "tetmesh": 4.0, "surface": 3.0, "log": 4.0, "mapped": 2.0, "frame": 2.0, "robot": 2.0, "path": 2.0, "hdf": 0.5,
    "repair": 0.2, "run": 0.5, "report": 0.3, "swept": 0.2, "row": 0.3, "resume": 0.1, "bench": 0.2,
}  # fmt: skip
#: Numbers that a file must not be believed.
_WORDS = (
    b"0",
    b"-1",
    b"1e308",
    b"-1e999",
    b"nan",
    b"inf",
    b"4294967295",
    b"9" * 24,
    b"2147483648",
    b"99999999999",
    b"1e-320",
    b"",
    b"x",
)
_VALUES = (
    "null", "true", "0", "-1", "1.5", "1e308", "NaN", "-Infinity", "1" + "0" * 400, '""', '"x"', '"nan"', "[]", "[1]", "[[]]",
    "[null]", "{}", '{"a": 1}', '"' + "9" * 50 + '"',
)  # fmt: skip
_INTEGERS = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1)


# ---------------------------------------------------------------------- changes


def changed(all_seeds: list[Seed], seed: int, number: int) -> tuple[Seed, bytes]:
    """Input N of a seed: a file to start from, and what it became."""
    rng = np.random.default_rng((seed, number))
    kinds = sorted({s.kind for s in all_seeds})
    weights = np.array([_WEIGHTS.get(kind, 1.0) for kind in kinds])
    kind = kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]
    of_kind = [s for s in all_seeds if s.kind == kind]
    start = of_kind[int(rng.integers(len(of_kind)))]
    data = bytearray(start.data)
    for _ in range(int(rng.geometric(0.6))):
        data = _CHANGES[int(rng.integers(len(_CHANGES)))](data, rng, all_seeds)
    return start, bytes(data[:300_000])


def _span(data: bytearray, rng: np.random.Generator, most: int = 64) -> tuple[int, int]:
    start = int(rng.integers(len(data) + 1))
    return start, min(len(data), start + int(rng.integers(1, most)))


def _flip(data: bytearray, rng: np.random.Generator, _: list[Seed]) -> bytearray:
    for _ in range(int(rng.integers(1, 4)) if data else 0):
        data[int(rng.integers(len(data)))] = int(rng.integers(256))
    return data


def _cut(data: bytearray, rng: np.random.Generator, _: list[Seed]) -> bytearray:
    return data[: int(rng.integers(len(data) + 1))]


def _remove(data: bytearray, rng: np.random.Generator, _: list[Seed]) -> bytearray:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def _repeat(data: bytearray, rng: np.random.Generator, _: list[Seed]) -> bytearray:
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * int(rng.integers(1, 200)) + data[end:]


def _insert(data: bytearray, rng: np.random.Generator, _: list[Seed]) -> bytearray:
    start, _end = _span(data, rng)
    return data[:start] + rng.integers(256, size=int(rng.integers(1, 16)), dtype=np.uint8).tobytes() + data[start:]


def _word(data: bytearray, rng: np.random.Generator, _: list[Seed]) -> bytearray:
    """Put another number in the place of one."""
    start = int(rng.integers(len(data) + 1))
    while start < len(data) and not 48 <= data[start] <= 57:
        start += 1
    end = start
    while end < len(data) and (48 <= data[end] <= 57 or data[end] in b".e+-"):
        end += 1
    return data[:start] + _WORDS[int(rng.integers(len(_WORDS)))] + data[end:]


def _integer(data: bytearray, rng: np.random.Generator, _: list[Seed]) -> bytearray:
    """Overwrite 2, 4 or 8 bytes, aligned or not, by an extreme whole number."""
    width = int(rng.choice([2, 4, 8]))
    if len(data) >= width:
        start = int(rng.integers(len(data) - width + 1))
        start -= start % width if rng.random() < 0.7 else 0
        value = _INTEGERS[int(rng.integers(len(_INTEGERS)))] & ((1 << 8 * width) - 1)
        data[start : start + width] = value.to_bytes(width, "little" if rng.random() < 0.8 else "big")
    return data


def _splice(data: bytearray, rng: np.random.Generator, all_seeds: list[Seed]) -> bytearray:
    other = all_seeds[int(rng.integers(len(all_seeds)))].data
    start = int(rng.integers(len(other) + 1))
    cut = int(rng.integers(len(data) + 1))
    return data[:cut] + other[start : start + int(rng.integers(1, 400))] + data[cut:]


def _value(data: bytearray, rng: np.random.Generator, _: list[Seed]) -> bytearray:
    """Put a value of another kind in the place of one of a JSON file, which can be read still."""
    try:
        whole = json.loads(data)
        places = list(_places(whole))
        if not places:
            return data
        holder, key = places[int(rng.integers(len(places)))]
        holder[key] = json.loads(_VALUES[int(rng.integers(len(_VALUES)))])
        return bytearray(json.dumps(whole), "utf-8")
    except (ValueError, RecursionError):  # it is none, or was broken by a change before
        return data


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places of values in a JSON value: what holds them, and by which key."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield value, key
        yield from _places(entry)


_CHANGES = (_flip, _flip, _cut, _remove, _repeat, _insert, _word, _word, _integer, _integer, _splice, _value, _value)


# ---------------------------------------------------------------------- reading


@dataclass
class Tally:
    """How the inputs ended, by kind of reader; what failed."""

    inputs: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    ended: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: float = 0.0
    most_memory: float = 0.0
    failures: list[str] = field(default_factory=list)
    stopped: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, how: str) -> None:
        self.inputs += 1
        self.ended.setdefault(kind, Counter())[how] += 1

    def join(self, saved: dict[str, Any]) -> None:
        """Add the tally of another run, as `--save` wrote it."""
        self.inputs += saved["inputs"]
        self.seconds, self.cpu = self.seconds + saved["seconds"], self.cpu + saved["cpu"]
        self.slowest, self.most_memory = max(self.slowest, saved["slowest"]), max(self.most_memory, saved["most_memory"])
        self.failures += saved["failures"]
        self.stopped.update(saved["stopped"])
        for kind, ended in saved["ended"].items():
            self.ended.setdefault(kind, Counter()).update(ended)


def judge(kind: str, path: Path) -> str:
    """Read a file: "read", "refused", or what is wrong."""
    import femsim as fs

    try:
        values = read(kind, path)
    except (fs.InputError, fs.MeshError, fs.MaterialError, fs.ContactError, fs.VizError):
        return "refused"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return "read" if all(np.isfinite(value).all() for value in values) else "accepted a value that is not finite"


def fuzz(inputs: int, seed: int, most_seconds: float = np.inf, first: int = 0) -> Tally:
    """Read so many inputs, or as many as there is time for once the first files are made."""
    from foreign.child import _helper

    tally, used = Tally(), sum(os.times()[:4])
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        folder = Path(name)
        all_seeds, number = seeds(folder), first
        warm(all_seeds, folder)
        began = time.monotonic()  # to import and to make the first files takes long on a busy machine
        while number < first + inputs and time.monotonic() - began < most_seconds:
            until = min(first + inputs, number + 2000)
            reached, status = _worker(all_seeds, seed, number, until, folder, tally, most_seconds - (time.monotonic() - began))
            if status:  # what ended the worker is read by the user's door
                _by_door(all_seeds, seed, reached, folder, tally)
                reached += 1
            elif reached < until:
                break
            number = reached
    _helper.stop()  # its time is known when it has ended
    tally.seconds, tally.cpu = time.monotonic() - began, sum(os.times()[:4]) - used
    return tally


def warm(all_seeds: list[Seed], folder: Path) -> None:
    """Read the good files once, by the child and in this process: imports and kernels are there before an input is timed."""
    import foreign

    judge("surface", folder / "a.obj")
    with foreign.in_this_process():
        for first in (seed for seed in all_seeds if seed.name not in CORPUS):
            (folder / first.name).write_bytes(first.data)
            judge(first.kind, folder / first.name)


def _worker(
    all_seeds: list[Seed], seed: int, start: int, stop: int, folder: Path, tally: Tally, most_seconds: float
) -> tuple[int, int]:
    """Read inputs in a process with limits; return the first that was not read, and how the process ended."""
    place = mmap.mmap(-1, 8)
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        _read_many(all_seeds, seed, start, stop, folder, place, theirs, most_seconds)
    os.close(theirs)
    with open(ours, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            kind, how, detail = json.loads(line) if line.endswith("\n") else ("?", "?", "")
            if kind == "?":
                continue
            tally.add(kind, how)
            if detail:
                tally.failures.append(detail)
    status = os.waitpid(child, 0)[1]
    return start + struct.unpack("<Q", place[:])[0], status


def _read_many(
    all_seeds: list[Seed], seed: int, start: int, stop: int, folder: Path, place: mmap.mmap, pipe: int, most_seconds: float
) -> None:
    import foreign
    from foreign.child import _address_space

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1), os.dup2(null, 2)
    sys.stdout = sys.stderr = open(null, "w")
    limit = _address_space() + BYTES + TIMES_FILE * 300_000
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    began = time.monotonic()
    with foreign.in_this_process(), open(pipe, "w", encoding="utf-8") as out:
        for number in range(start, stop):
            if time.monotonic() - began > most_seconds:
                break
            first, data = changed(all_seeds, seed, number)
            path = folder / first.name
            path.write_bytes(data)
            signal.setitimer(signal.ITIMER_PROF, QUICK)
            how = judge(first.kind, path)
            signal.setitimer(signal.ITIMER_PROF, 0)
            bad = how not in ("read", "refused")
            detail = f"input {number} of seed {seed} ({first.kind}, {first.name}): {how}" if bad else ""
            out.write(json.dumps([first.kind, "failed" if bad else how, detail]) + "\n")
            out.flush()
            place[:] = struct.pack("<Q", number + 1 - start)
    os._exit(0)


class _Running:
    """Stands, in a process that was forked, for the helper that the process before it started: it runs."""

    def poll(self) -> None:
        """Say that it has not ended."""

    kill = wait = poll


def _by_door(all_seeds: list[Seed], seed: int, number: int, folder: Path, tally: Tally) -> None:
    """Read an input as a user does, in a process of its own; measure it.

    The helper, which forks the child that has the limits, is that of this process: one with warm libraries for all inputs.
    """
    from foreign.child import _helper

    first, data = changed(all_seeds, seed, number)
    path = folder / first.name
    path.write_bytes(data)
    _helper.start()
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        _helper.owner, _helper.process = os.getpid(), _Running()  # type: ignore[assignment]
        Path("/proc/self/clear_refs").write_text("5")
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, 2 * SECONDS)
        before, used = _peak(), time.process_time()
        how = judge(first.kind, path)
        answer = [how, time.process_time() - used, _peak() - before]
        with open(theirs, "w", encoding="utf-8") as out:
            out.write(json.dumps(answer))
        os._exit(0)
    os.close(theirs)
    with open(ours, encoding="utf-8") as stream:
        text = stream.read()
    os.waitpid(child, 0)
    if not text:
        _helper.stop()  # a request may be half done
    how, seconds, memory = json.loads(text) if text else ("ended the process of the user", 0.0, 0.0)
    tally.slowest, tally.most_memory = max(tally.slowest, seconds), max(tally.most_memory, memory)
    if how in ("read", "refused") and (seconds > SECONDS or memory > TIMES_FILE * size_of(path) + BYTES):
        how = f"took {seconds:.1f} s and {memory / 1e6:.0f} MB"
    if how not in ("read", "refused"):
        tally.failures.append(f"input {number} of seed {seed} ({first.kind}, {first.name}): {how}")
    tally.stopped[first.name] += 1
    tally.add(first.kind, f"{how} by itself" if how in ("read", "refused") else "failed")


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def report(tally: Tally, seed: int) -> str:
    """Write a tally as a page."""
    names = ["read", "refused", "read by itself", "refused by itself", "failed"]
    rows = [
        f"| {kind} | {sum(ended.values())} | " + " | ".join(str(ended[name]) for name in names) + " |"
        for kind, ended in sorted(tally.ended.items())
    ]
    total: Counter[str] = sum(tally.ended.values(), Counter())
    rows.append(f"| all | {tally.inputs} | " + " | ".join(str(total[name]) for name in names) + " |")
    failures = "\n".join(f"- {text}" for text in tally.failures[:50]) or "None."
    stopped = ", ".join(f"{count} of {name}" for name, count in tally.stopped.most_common()) or "none"
    return f"""# Readers under fuzzing

Written by `python tests/fuzz.py --inputs {tally.inputs} --seed {seed} --report data/results/fuzz.md` (Python
{platform.python_version()}, {tally.cpu:.0f} s of processor time, {1e3 * tally.cpu / max(tally.inputs, 1):.1f} ms an input). An
input is a good or a bad file of some kind with some changes: bytes flipped, parts cut, repeated, removed or put in from other
files, numbers replaced by extreme ones, values of JSON files by those of another kind. Each is read by the same function that a
user's file is.

A failure is an error that is no sentence, an accepted value that is not finite, more than {SECONDS:.0f} s of processor time, or
more memory than {TIMES_FILE} times the file and {BYTES / 1e6:.0f} MB. "By itself" are those that took more than
{QUICK:g} s among others: each is read again in a process of its own, as a user's file is, by a child with limits; where the child
is stopped, the file is refused with a sentence. The process that asked took at most {tally.slowest:.2f} s of processor time and
{tally.most_memory / 1e6:.0f} MB for one of them. By the file that they were made from: {stopped}.

| reader | inputs | {" | ".join(names)} |
|---|---|---|---|---|---|---|
{chr(10).join(rows)}

Failures: {len(tally.failures)}

{failures}
"""


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--save", type=Path, help="JSON of the tally, to be joined")
    parser.add_argument("--join", type=Path, nargs="+", help="tallies of several runs; none is run")
    asked = parser.parse_args()
    if asked.join:
        tally = Tally()
        for path in asked.join:
            tally.join(json.loads(path.read_text()))
    else:
        tally = fuzz(asked.inputs, asked.seed, asked.seconds, asked.first)
    text = report(tally, asked.seed)
    if asked.report:
        asked.report.write_text(text, encoding="utf-8")
    if asked.save:
        asked.save.write_text(json.dumps(tally.__dict__))
    print(text, tally.stopped)
    return bool(tally.failures)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    sys.exit(main())
