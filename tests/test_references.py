"""What docstrings and comments refer to by ``:mod:``, ``:class:``, ``:func:``, ``:meth:``, ``:attr:`` or ``:data:`` exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("femsim", "contact", "foreign", "materials", "meshes", "viz")
REFERENCE = re.compile(r":(?:mod|class|func|meth|attr|data):`~?([\w.\s]+)`")
#: Names of others, which these pages do not look up.
OTHERS = ("numpy", "scipy", "gymnasium", "matplotlib", "pandas")


@dataclass
class Module:
    """Names that a module has, and the members and bases of its classes."""

    names: set[str] = field(default_factory=set)
    members: dict[str, set[str]] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    #: first and last line of each class
    lines: dict[str, tuple[int, int]] = field(default_factory=dict)


def assigned(nodes: list[ast.stmt]) -> set[str]:
    """Names that statements define, imports included."""
    out: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            out.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            out |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            out |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.If | ast.Try):
            out |= assigned([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)])
    return out


@cache
def read(text: str) -> Module:
    """Read the names of a module."""
    tree, out = ast.parse(text), Module()
    out.names = assigned(tree.body)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            stored = [n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
            own = {n.attr for n in stored if isinstance(n.value, ast.Name) and n.value.id == "self"}
            out.members[node.name] = assigned(node.body) | own
            out.bases[node.name] = [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]
            out.lines[node.name] = (node.lineno, node.end_lineno or node.lineno)
    return out


@cache
def modules() -> dict[str, Module]:
    out = {}
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        out[name] = read(path.read_text(encoding="utf-8"))
    out["femsim"] = read((ROOT / "femsim" / "__init__.pyi").read_text(encoding="utf-8"))
    return out


def has(kind: str, member: str, *more: Module) -> bool:
    """Whether a class of this name, or one that it derives from, has a member."""
    found = [module for module in (*modules().values(), *more) if kind in module.members]
    return any(
        member in module.members[kind] or any(has(base, member, *more) for base in module.bases[kind] if base != kind)
        for module in found
    )


def known(name: str, at: str, module: Module, line: int) -> bool:
    """Whether what a line of the module called ``at`` refers to exists."""
    for size in range(name.count(".") + 1, 0, -1):
        parts = name.split(".")
        # a module by its whole name, or one that stands beside this one
        for whole in (".".join(parts[:size]), ".".join([*at.split(".")[:-1], *parts[:size]])):
            if whole in modules():
                rest = parts[size:]
                if not rest:
                    return True
                there = modules()[whole].names
                return rest[0] in there if len(rest) == 1 else rest[0] in there and has(rest[0], rest[1])
    first, *rest = name.split(".")
    within = [kind for kind, (start, stop) in module.lines.items() if start <= line <= stop]
    if rest:
        return first in module.names and has(first, rest[0], module)
    return first in module.names or any(has(kind, first, module) for kind in within)


def references(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of everything that a text refers to."""
    for found in REFERENCE.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, re.sub(r"\s+", "", found[1])


def dangling(at: str, text: str) -> list[str]:
    """References of a module that lead nowhere."""
    module = read(text)
    return [
        f"{at}:{line}: {name}"
        for line, name in references(text)
        if name.split(".")[0] not in OTHERS and not known(name, at, module, line)
    ]


def test_what_docstrings_refer_to_exists() -> None:
    wrong, count = [], 0
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            at = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            count += sum(1 for _ in references(text))
            wrong += dangling(at, text)
    assert count > 500
    assert not wrong, "\n".join(wrong)


def test_a_reference_that_leads_nowhere_is_seen() -> None:
    text = '''"""See :mod:`contact.cone`, :func:`contact.cone.nothing`, :class:`One` and :meth:`One.there`, :meth:`One.gone`."""
class One:
    """Has :meth:`there`, no :meth:`gone`."""
    def there(self): self.here = 1
    def also(self): ":attr:`here`, :attr:`nowhere`"
'''
    assert [line.rsplit(" ", 1)[1] for line in dangling("contact.made_up", text)] == [
        "contact.cone.nothing", "One.gone", "gone", "nowhere",
    ]  # fmt: skip
