"""Tests stand alone: none imports another, and private names are read only in the test of the module that has them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from conftest import LONG

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
#: Modules that a test (or a helper of tests) is the test of, where it reads private names of them.
OWNERS = {
    "fuzz": ["foreign/child.py"],
    "test_bad_files": ["foreign/child.py"],
    "test_bench": ["femsim/studies/problems/bench.py"],
    "test_auto": ["contact/solvers/auto.py"],
    "test_corotational_tangent": [
        "femsim/model/bodies/corotational.py",
        "femsim/model/bodies/soft.py",
        "femsim/step/system.py",
    ],
    "test_momentum_kernels": ["femsim/model/bodies/momentum_kernels.py", "femsim/model/bodies/corotational.py"],
    "test_multigrid": ["contact/solvers/multigrid.py", "contact/solvers/auto.py"],
    "test_turns": ["contact/delassus.py"],
    "test_canal": ["contact/solvers/strict_newton.py"],
    "test_canvas": ["viz/ground.py", "viz/stage.py"],
    "test_chambers": ["femsim/model/actuators.py"],
    "test_cond_kernels": ["contact/solvers/cond.py"],
    "test_contact_geometry": ["contact/deformable.py"],
    "test_couplings": ["femsim/model/couplings.py"],
    "test_fuzz": ["foreign/child.py"],
    "test_gym": ["femsim/run/simulation.py"],
    "test_hyperelastic": ["femsim/model/bodies/hyperelastic.py"],
    "test_installation": ["femsim/cli/doctor.py"],
    "test_layers": ["femsim/__init__.py"],
    "test_numba_cache": ["femsim/base/numba_cache.py"],
    "test_rod_momentum": ["femsim/model/bodies/rod_step.py"],
    "test_render": ["viz/canvas.py"],
    "test_render_guard": ["viz/render.py"],
    "test_render_looks": ["viz/ground.py", "viz/stage.py"],
    "test_simulation": ["contact/delassus.py"],
    "test_soft": ["femsim/model/bodies/soft.py", "femsim/model/bodies/corotational_kernels.py"],
    "test_subadmm": ["contact/solvers/subadmm.py"],
    "test_tendons": ["femsim/model/actuators.py"],
    "test_touching": ["femsim/step/deforming_contacts.py"],
    "test_play": ["viz/play.py", "viz/scene_page.py"],
    "test_view": ["viz/view.py", "viz/scene_page.py", "viz/view_plot.py"],
    "test_viscous": ["femsim/model/bodies/soft.py"],
}
#: Public although they begin so: methods of named tuples, the way out of a child process, and what notebooks ask for.
PUBLIC = {"_replace", "_fields", "_asdict", "_exit", "_repr_html_", "_ipython_display_"}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def stored_in(owner: str) -> frozenset[str]:
    return frozenset(stored(tree_of(ROOT / owner)))


def stored(tree: ast.Module) -> set[str]:
    """Names that a module defines: attributes of its classes and variables that it assigns, functions and classes."""
    attributes = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
    out = {n.attr for n in attributes if isinstance(n.value, ast.Name) and n.value.id == "self"}
    out |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return out | {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def imported_tests(tree: ast.Module) -> set[str]:
    """Modules of tests that a module imports, in any of the ways to write it."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            whole = node.level or module == "tests"  # then the names may be modules; elsewhere they are what a module has
            names += [module, *(alias.name for alias in node.names if whole)]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            names += [str(node.args[0].value)] if called in ("import_module", "__import__", "importorskip") else []
    return {name for name in names if name.split(".")[-1].startswith("test_")}


def private_reads(tree: ast.Module, owners: Sequence[str] = ()) -> set[str]:
    """Private names that a module reads or assigns, with lines, but for its own and those of modules that it is the test of."""
    read = {n.attr: n.lineno for n in ast.walk(tree) if isinstance(n, ast.Attribute) and private(n.attr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            read |= {alias.name: node.lineno for alias in node.names if private(alias.name)}
    allowed = stored(tree)
    for owner in owners:
        allowed |= stored_in(owner)
    return {f"line {line} reads {name}" for name, line in read.items() if name not in allowed}


@pytest.mark.parametrize("path", sorted(TESTS.glob("*.py")), ids=lambda path: path.stem)
def test_it_stands_alone(path: Path) -> None:
    tree = tree_of(path)
    assert not imported_tests(tree) and not private_reads(tree, OWNERS.get(path.stem, ()))


@pytest.mark.parametrize(
    "line",
    [
        "import test_soft",
        "import numpy, tests.test_soft as soft",
        "from test_soft import RUBBER",
        "from tests.test_soft import RUBBER",
        "from tests import small_scene, test_soft",
        "from . import test_soft",
        "def f():\n    from test_soft import RUBBER",
        "soft = importlib.import_module('test_soft')",
        "soft = pytest.importorskip('tests.test_soft')",
    ],
)
def test_an_import_of_a_test_is_seen(line: str) -> None:
    assert imported_tests(ast.parse(line))
    assert not imported_tests(ast.parse(line.replace("test_soft", "slow_rods")))


def test_private_reads_are_seen() -> None:
    tree = ast.parse("from femsim.model.bodies.soft import _kept\nbody._kept.x, body.__class__, pair._replace(), body.q")
    assert private_reads(tree) == {"line 1 reads _kept"}
    assert private_reads(ast.parse("body._a = 1")) == {"line 1 reads _a"}
    assert not private_reads(
        ast.parse("class A:\n    def __init__(self):\n        self._a = 1\n    def f(self):\n        self._a")
    )
    assert private_reads(ast.parse("rod._hidden"), ["femsim/model/bodies/rod.py"]) == {"line 1 reads _hidden"}


def test_owners_are_tests_that_need_it() -> None:
    """No test keeps a right to private names that it does not use."""
    for stem, owners in OWNERS.items():
        tree = tree_of(TESTS / f"{stem}.py")
        for owner in owners:
            assert private_reads(tree, [one for one in owners if one != owner]), f"{stem} reads nothing private of {owner}"


def test_files_that_come_first_exist() -> None:
    assert [name for name in LONG if not (TESTS / f"test_{name}.py").is_file()] == [] and len(set(LONG)) == len(LONG)
