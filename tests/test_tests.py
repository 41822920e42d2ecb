"""Tests stand alone: none imports another, and private names are read only in the test of the module that has them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
#: Modules that a test (or a helper of tests) is the test of, where it reads private names of them.
OWNERS = {
    "slow_rods": ["femsim/model/bodies/rod.py"],
    "test_bench": ["femsim/studies/problems/bench.py"],
    "test_chambers": ["femsim/model/actuators.py"],
    "test_cond_kernels": ["contact/solvers/cond.py"],
    "test_contact_geometry": ["contact/deformable.py"],
    "test_couplings": ["femsim/model/couplings.py"],
    "test_hyperelastic": ["femsim/model/bodies/hyperelastic.py"],
    "test_layers": ["femsim/__init__.py"],
    "test_numba_cache": ["femsim/base/numba_cache.py"],
    "test_plots": ["viz/plots.py"],
    "test_render": ["viz/render.py", "viz/stage.py"],
    "test_soft": ["femsim/model/bodies/soft.py", "femsim/model/bodies/corotational_kernels.py"],
    "test_substeps": ["femsim/model/bodies/soft.py"],
    "test_tendons": ["femsim/model/actuators.py"],
    "test_touching": ["femsim/step/deforming_contacts.py"],
    "test_view": ["viz/view.py"],
}
#: Public although they begin so: methods of named tuples.
PUBLIC = {"_replace", "_fields", "_asdict"}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def stored(tree: ast.Module) -> set[str]:
    """Names that a module defines: attributes and variables that it assigns, functions and classes."""
    out = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    out |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return out | {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("path", sorted(TESTS.glob("*.py")), ids=lambda path: path.stem)
def test_it_stands_alone(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            assert not [m for m in modules if m.startswith("test_")], f"{path.name}:{node.lineno} imports a test"
    read = {n.attr: n.lineno for n in ast.walk(tree) if isinstance(n, ast.Attribute) and private(n.attr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            read |= {alias.name: node.lineno for alias in node.names if private(alias.name)}
    allowed = stored(tree)
    for owner in OWNERS.get(path.stem, ()):
        allowed |= stored(ast.parse((ROOT / owner).read_text(encoding="utf-8")))
    wrong = {f"{path.name}:{line} reads {name}" for name, line in read.items() if name not in allowed}
    assert not wrong, wrong
