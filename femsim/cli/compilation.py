"""The kernels of the common scenes, compiled ahead, so that the first run of a scene starts as fast as any other."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain
from pathlib import Path

from femsim.base.files import replacing
from femsim.base.numba_cache import folder_in_use, kernel_digest
from femsim.base.place import ROOT

#: Scenes that call nearly all kernels that scenes call, and how long each runs (s): to its first contacts.
SCENES = {
    "soft_mat_folding": 0.05,
    "soft_gripper": 0.05,
    "soft_ball_gripping": 0.5,
    "held_rods": 0.05,
    "released_beam": 0.02,
    "anisotropic_box": 0.05,
    "cable_winding": 0.02,
}
_RUN = "import sys; from femsim.cli import execute; sys.exit(execute(sys.argv[1:]))"
#: Our packages with kernels.
_PACKAGES = ("contact", "femsim")


def compile_ahead(scenes: dict[str, float], say: Callable[[str], None]) -> list[str]:
    """Run the beginning of scenes in processes of their own, two at once where there are two cores.

    The first scene runs alone, with a process beside it that compiles too (see ``beside``): what all scenes share is then
    compiled once, and not by two of them at the same time.

    Parameters
    ----------
    scenes : dict of str to float
        Names of scenes and how long to run each, s. What has been run with these sources is skipped.
    say : callable
        Told in a line what is done and what is left.

    Returns
    -------
    list of str
        What went wrong, a line each.
    """
    folder = folder_in_use()
    if not folder:
        return ["no folder for compiled kernels can be written (see femsim doctor)"]
    digest = kernel_digest(ROOT / name for name in _PACKAGES)  # the folder may be the user's, and hold older kernels too
    mark = Path(folder) / f"compiled-ahead-{digest}"
    done = set(mark.read_text(encoding="utf-8").split()) if mark.is_file() else set()
    left = {name: duration for name, duration in scenes.items() if name not in done}
    if not left:
        say(f"kernels of {len(scenes)} scenes are compiled already, in {folder}")
        return []
    say(f"compiling the kernels of scenes, once, one to two minutes: {', '.join(left)}")
    began, wrong = time.perf_counter(), []
    with (
        tempfile.TemporaryDirectory(prefix="femsim-") as scratch,
        ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool,
    ):
        first, *others = left
        ended = [(first, _start(first, left[first], Path(scratch) / first, beside=True))]
        waiting = {pool.submit(_start, name, left[name], Path(scratch) / name): name for name in others}
        ends = ((waiting[finished], finished.result()) for finished in as_completed(waiting))
        for number, (name, trouble) in enumerate(chain(ended, ends), 1):
            if trouble:
                wrong.append(f"{name}: {trouble}")
            else:
                done.add(name)
            say(f"{number} of {len(left)}, {time.perf_counter() - began:.0f} s: {name}{' FAILED' if trouble else ''}")
    mark.parent.mkdir(parents=True, exist_ok=True)
    with replacing(mark) as temporary:
        temporary.write_text("\n".join(sorted(done)) + "\n", encoding="utf-8")
    return wrong


def _start(name: str, duration: float, out: Path, *, beside: bool = False) -> str:
    """Run a scene with the output of a user's run; return what went wrong, "" where nothing did."""
    command = [sys.executable, "-c", _RUN, "run", name, "--duration", str(duration), "--out", str(out), "--quiet"]
    command += [] if beside else ["--threads", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode in (0, 3):  # 3: a step did not converge, which is no matter here
        return ""
    return (ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"])[-1]
