"""How kernels are compiled: without the functions that nothing calls, and without collecting garbage."""

from __future__ import annotations

import ast
import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.registry import CPUDispatcher
from numba.core.types.functions import BaseFunction

import femsim as fs
from contact import make_solver
from contact.compiled import Fixed, Kernel, njit, one_at_a_time
from femsim.step.advance import take_step
from femsim.step.stepper import Stepper

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("foreign", "materials", "meshes", "contact", "viz", "femsim", "scenes")


@njit(cache=False, inner=True)
def halved(x: float) -> float:
    return 0.5 * x


@njit(cache=False, forceinline=True)
def doubled(x: float) -> float:
    return 2.0 * x


@njit(cache=False)
def between(x: np.ndarray) -> float:
    total = 0.0
    for value in x:
        total += doubled(value) - halved(value)
    return total


def functions_of(kernel: object) -> tuple[bool, bool]:
    """Whether a compiled kernel has a function for Python and one for C."""
    (made,) = kernel.overloads.values()  # type: ignore[attr-defined]
    names = [function.name for function in made.library.get_defined_functions()]
    return any("cpython" in name for name in names), any("cfunc" in name for name in names)


def test_kernels_have_the_functions_that_something_calls() -> None:
    assert between(np.array([1.0, 2.0, 3.0])) == 9.0
    assert functions_of(between) == (True, False)
    assert functions_of(halved) == (False, False) == functions_of(doubled)
    plain = numba.njit(halved.py_func)
    assert plain(3.0) == 1.5 and functions_of(plain) == (True, True)  # so it is seen where there is one


def test_python_can_call_an_inner_kernel_before_and_after_a_kernel_does() -> None:
    @njit(cache=False, inner=True)
    def third(x: float) -> float:
        return x / 3.0

    @njit(cache=False)
    def ninth(x: float) -> float:
        return third(third(x))

    assert third(6.0) == 2.0
    assert ninth(18.0) == 2.0
    assert third(6.0) == 2.0 and third(np.float32(6.0)) == 2.0
    with pytest.raises(TypeError):
        third()


def test_it_is_known_while_a_kernel_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way = []
    monkeypatch.setattr(CPUDispatcher, "compile", lambda self, sig: under_way.append(Kernel.under_way))
    njit(cache=False)(lambda x: x).compile("float64(float64)")
    assert (under_way, Kernel.under_way) == ([1], 0)


def test_garbage_is_collected_again_after_compiling_also_after_a_failure() -> None:
    seen = []

    class Watcher(numba.core.event.Listener):
        def on_start(self, event: object) -> None:
            seen.append(gc.isenabled())

        def on_end(self, event: object) -> None: ...

    @njit(cache=False)
    def good(x: float) -> float:
        return x + 1.0

    @njit(cache=False)
    def bad(x: float) -> float:
        return good(x) + x.nothing  # type: ignore[attr-defined,no-any-return]

    watcher = Watcher()
    with numba.core.event.install_listener("numba:compile", watcher):
        with pytest.raises(numba.TypingError):
            bad(1.0)
        assert gc.isenabled()
        good(np.float32(1.0))
    assert gc.isenabled() and len(seen) >= 3 and not any(seen)


def test_numbers_that_stand_in_a_call_are_compiled_as_any_other() -> None:
    @njit(cache=False, inner=True)
    def weighed(x: float, n: int, minus: bool = False) -> float:
        return -n * x if minus else n * x

    @njit(cache=False)
    def total(x: float, m: int) -> float:
        count = 0
        count += m
        return weighed(x, 2) + weighed(x, 3, False) + weighed(x, m, True) + weighed(x, n=count, minus=True)

    assert total(1.0, 4) == 2.0 + 3.0 - 4.0 - 4.0
    integer, truth = numba.int64, numba.bool_
    given = {(numba.float64, integer, numba.types.Omitted(False)), (numba.float64, integer, truth)}
    assert set(weighed.overloads) == given


def divided(x: float, y: float) -> float:
    return x / y


@numba.extending.overload(divided, strict=False)  # the annotations of a lambda differ
def divided_by_what_the_caller_thinks_of_zeros(x: numba.types.Type, y: numba.types.Type) -> Callable[[float, float], float]:
    return lambda x, y: x / y


def test_what_numba_makes_of_an_operator_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ask = BaseFunction.get_call_type

    def counting(function: BaseFunction, *call: object) -> object:
        asked.append((function, *call[:2]))
        return ask(function, *call)

    monkeypatch.setattr(BaseFunction, "get_call_type", counting)

    @njit(cache=False)
    def product(x: np.ndarray, y: float) -> float:
        return x[0] * y + x[1] * y + x[2] * y - x[3] * y

    assert product(np.arange(4, dtype=np.float32), 2.0) == 0.0  # float32: not asked by another test
    assert 1 <= len(asked) == len(set(asked))
    assert BaseFunction.get_call_type is counting

    @njit(cache=False)
    def bad(x: float) -> float:
        return product(x) + x.nothing  # type: ignore[attr-defined,no-any-return]

    with pytest.raises(numba.TypingError):
        bad(1.0)
    assert BaseFunction.get_call_type is counting


def test_shorter_ways_lead_to_the_same_code() -> None:
    """Loops, branches, calls, arrays that are made and dropped: compiled by numba itself, the instructions are the same."""

    def mixed(x: np.ndarray, n: int) -> float:
        work, total, last = np.zeros(n), 0.0, 0.0
        for k in range(n):
            work[k] = doubled(x[k]) if x[k] > 0.0 else max(x[k], -1.0) ** 2
            if work[k] > 10.0:
                break
            while last < work[k]:
                last += 0.5
            total += work[k] / (last + 1.0) if last > -0.5 else 0.0
        return total + work[n - 1]

    here, there = njit(cache=False)(mixed), numba.jit(nopython=True, no_cfunc_wrapper=True)(mixed)
    x = np.array([1.5, -0.5, 3.0, 7.0, -2.0])
    assert here(x, 5) == there(x, 5) == mixed(x, 5)

    def instructions(kernel: object) -> list[str]:
        (text,) = kernel.inspect_llvm().values()  # type: ignore[attr-defined]
        names = r'[%@]("[^"]*"|[^\s,()]+)'
        return [re.sub(names, "", line) for line in text.splitlines() if line.startswith("  ")]

    assert len(instructions(here)) > 100 and any(" fmul double" in line for line in instructions(here))
    assert instructions(here) == instructions(there)


def test_what_is_remembered_is_that_of_the_options_of_the_caller() -> None:
    """A function of numba is compiled for the options of who calls it: with the wrong ones, zeros would raise or not."""

    @njit(cache=False)
    def careful(x: float, y: float) -> float:
        return divided(x, y)

    @njit(cache=False, error_model="numpy")
    def careless(x: float, y: float) -> float:
        return divided(x, y)

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            careful(1.0, 0.0)
        assert careless(1.0, 0.0) == np.inf
        careful.recompile()
        careless.recompile()


def test_one_process_at_a_time_writes_the_files_of_a_kernel(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom contact.compiled import njit\n\n\n"
        "@njit(cache=True)\ndef grown(x):\n    return x + 1\n\n\n"
        "print('called', flush=True)\nprint(grown(1 if sys.argv[1] == 'int' else 1.5), flush=True)\n"
    )
    cache = tmp_path / "cache"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}

    def start(kind: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, str(script), kind], env=environment, stdout=subprocess.PIPE, text=True)

    assert start("int").communicate()[0] == "called\n2\n"
    (folder,) = {path.parent for path in cache.rglob("*.nbc")}
    with one_at_a_time(folder):
        other = start("float")
        assert other.stdout is not None and other.stdout.readline() == "called\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=3.0)
        assert 1 == len(list(folder.glob("*.nbc")))
    assert other.communicate()[0] == "2.5\n"
    assert len(list(folder.glob("*.nbc"))) == 2


def test_no_place_is_looked_for_in_the_cache_for_a_kernel_that_nothing_calls(tmp_path: Path) -> None:
    """Looking makes a folder and writes a file into it, for each of hundreds of kernels at each start."""
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\nfrom contact.compiled import njit\n\n\n"
        "@njit(cache=True)\ndef grown(x):\n    return x + 1\n\n\n"
        f"cache = Path({str(tmp_path / 'cache')!r})\n"
        "print(len(list(cache.rglob('*'))), grown(1), len(list(cache.rglob('*.nbc'))))\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "0 2 1\n"


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def kernel_options(function: ast.FunctionDef) -> dict[str, str] | None:
    """Options of a kernel's decorator; None for other functions."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "njit":
            return {str(key.arg): ast.unparse(key.value) for key in decorator.keywords}
    return None


def uses_outside_kernels(tree: ast.Module, names: set[str]) -> list[str]:
    """Names that code outside of kernels reads, with their lines."""
    found: list[str] = []

    def walk(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef) and kernel_options(child) is not None:
                continue
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load) and child.id in names:
                found.append(f"line {child.lineno} uses {child.id}")
            walk(child)

    walk(tree)
    return found


def test_only_kernels_call_inner_kernels() -> None:
    """Python could, but each process would compile them once more."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    inner: dict[str, set[str]] = {}
    for path, tree in trees.items():
        options = {node.name: kernel_options(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
        inner[module_name(path)] = {n for n, o in options.items() if o and "True" in (o.get("inner"), o.get("forceinline"))}
    assert sum(map(len, inner.values())) > 100
    wrong = []
    for path, tree in trees.items():
        names = set(inner[module_name(path)])
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names |= {a.asname or a.name for a in node.names if a.name in inner.get(node.module or "", ())}
        wrong += [f"{path.relative_to(ROOT)}: {use}" for use in uses_outside_kernels(tree, names)]
    assert not wrong, f"called from Python, so not inner=True and not forceinline=True: {wrong}"


def test_uses_of_inner_kernels_are_seen() -> None:
    source = "@njit(cache=True)\ndef f(x):\n    return g(x)\ndef h(x):\n    return g(x)\n"
    assert uses_outside_kernels(ast.parse(source), {"g"}) == ["line 5 uses g"]


def test_all_kernels_are_compiled_here() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if "numba" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == "numba" and any(a.name in ("njit", "jit") for a in node.names)
    ]
    assert not wrong, f"from contact.compiled import njit: {wrong}"


class Two(NamedTuple):
    x: np.ndarray
    y: np.ndarray


@njit(cache=False, error_model="python")
def quotient(x: float, y: float) -> float:
    return x / y


@njit(cache=False)
def product(two: Two, factor: float) -> float:
    return float((two.x * two.y).sum() * factor)


def test_a_kernel_for_one_place_is_asked_once_what_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its later calls go to the compiled code at once; with checks, arrays of another kind are refused."""
    asked: list[object] = []
    typed = Kernel.typeof_pyval
    monkeypatch.setattr(Kernel, "typeof_pyval", lambda kernel, value: (asked.append(value), typed(kernel, value))[1])
    two, call = Two(np.array([1.0, 2.0]), np.array([3.0, 5.0])), Fixed(product)
    assert call(two, 2.0) == 26.0 and len(asked) >= 2
    asked.clear()
    assert [call(Two(two.y, two.y), 1.0), call(two, -1.0)] == [34.0, -13.0] and not asked
    with pytest.raises(ZeroDivisionError):
        Fixed(quotient)(1.0, 0.0)
    monkeypatch.setattr(Fixed, "checks", True)
    assert call(two, 2.0) == 26.0
    with pytest.raises(TypeError, match="product was called with"):
        call(Two(two.x[::-1], two.y), 2.0)
    assert Fixed(lambda x: 2 * x)(4) == 8  # also what is not compiled


def test_the_kernels_of_steps_get_the_same_kinds_of_arrays_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fixed, "checks", True)
    scene = fs.Scene("all", dt=0.005, default_friction=0.4)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), density=400.0, position=(0.0, 0.0, 0.0501), velocity=(0.5, 0.0, 0.0))
    scene.add_rigid("other", fs.Box((0.05, 0.05, 0.05)), density=400.0, position=(0.101, 0.02, 0.0501))
    scene.add_rigid("roller", fs.Cylinder(0.04, 0.05), density=400.0, position=(0.3, 0.0, 0.0501))
    rubber = fs.Elastic(1e5, 0.35, 1000.0, rayleigh_beta=2e-3, name="rubber")
    scene.add_soft("cube", fs.box_tets((0.03, 0.03, 0.03), 1), rubber, position=(0.0, 0.3, 0.0152))
    line = np.linspace((0.0, -0.3, 0.002), (0.1, -0.3, 0.002), 5)
    scene.add_rod("rope", line, fs.circular_section(0.002), rubber, start=fs.RodEnd("hinged"))
    arm = scene.add_robot("arm7.urdf", name="arm", position=(0.0, 1.0, 0.0), joints={"joint2": 0.6, "joint4": 1.9})
    scene.drive_joint(arm, "joint1", fs.Profile([0.0, 1.0], [0.0, 0.5]), stiffness=2000.0)
    scene.add_robot("quadruped.urdf", name="dog", base="free", position=(1.0, 0.0, 0.5))
    stepper = Stepper(scene, make_solver("auto"))
    for _ in range(4):
        assert take_step(stepper).solution.converged
