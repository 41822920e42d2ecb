"""Write the list of kernels that first steps call, in their order: python docs/make_kernels.py.

Takes a few steps of each scene, with output, in processes of their own. A test holds that the list has nearly all that the main
job calls; a list that is out of date costs a first start some time and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from femsim.cli.kernel_list import LIST

ROOT = Path(__file__).resolve().parent.parent
#: Scenes whose first steps are listed, and how long each runs, s: as far as the first start of such a scene is to be shortened.
SCENES = {"soft_gripper": 0.02, "soft_ball_gripping": 0.02, "soft_mat_folding": 0.02}
#: Runs a scene and prints the kernels that Python called, in the order of their first calls.
CALLS = """
import json, sys
from contact.compiled import InnerKernel, Kernel
from femsim.cli import execute
from femsim.cli.kernel_list import kinds_of, write_types
from femsim.scene.scene_file import find_scene, load_scene
called, depth, compile_ = [], [0], Kernel.compile
def noted(kernel, sig):
    if not depth[0] and not isinstance(kernel, InnerKernel):
        called.append((kernel.py_func.__module__, kernel.py_func.__name__, write_types(sig)))
    depth[0] += 1
    try:
        return compile_(kernel, sig)
    finally:
        depth[0] -= 1
Kernel.compile = noted
name, duration, out = sys.argv[1:]
execute(["run", name, "--duration", duration, "--out", out, "--quiet", "--threads", "1"])
print(json.dumps([sorted(kinds_of(load_scene(find_scene(name)))), called]))
"""


def calls(name: str, duration: float) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Kinds of bodies of a scene with its integrator; the kernels that its first steps call, in order: module, name, types."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-c", CALLS, name, str(duration), str(Path(scratch) / "run")]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    kinds, called = json.loads(done.stdout.splitlines()[-1])
    return kinds, [tuple(call) for call in dict.fromkeys(map(tuple, called))]


def write_list(scenes: dict[str, float], path: Path) -> int:
    """Write the list of some scenes and return how many kernels it has.

    The order is that of the first scene; what another one calls besides stands behind what it calls before.
    """
    order: list[tuple[str, str, str]] = []
    callers: dict[tuple[str, str, str], list[str]] = {}
    lines = ["# Kernels that first steps call, in order; written by docs/make_kernels.py, read by femsim/cli/kernel_list.py."]
    for name, duration in scenes.items():
        kinds, called = calls(name, duration)
        lines.append(" ".join(["scene", name, *kinds]))
        place = 0
        for call in called:
            if call in callers:
                place = order.index(call) + 1
            else:
                order.insert(place, call)
                place += 1
            callers.setdefault(call, []).append(name)
    lines += [f"{module} {kernel} {','.join(callers[call])} {types}" for call in order for module, kernel, types in [call]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(order)


if __name__ == "__main__":
    print(f"{write_list(SCENES, LIST)} kernels in {LIST}")
