"""The site: sphinx-build -W -b html docs site.

Needs the extra `docs` and no network. The pages of the API, commands and gallery are filled from the code while they are read.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

import femsim as fs  # noqa: E402

project = "femsim"
copyright = "femsim developers, BSD-3-Clause"
version = release = fs.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]
highlight_language = "none"  # indented blocks are commands

autodoc_typehints = "none"  # types, shapes and units stand in the docstrings
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "pydata_sphinx_theme"
html_title = "femsim"
html_show_sourcelink = False
html_sidebars: dict[str, list[str]] = {page: [] for page in ("index", "guide/start", "guide/contributing")}  # no page beside
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}

#: Pages of the API by the beginning of the module that has the names; the first that fits counts.
TOPICS = {
    "femsim.scene.reading": "runs",
    "femsim.scene": "scenes",
    "femsim.model": "bodies",
    "femsim.run": "runs",
    "femsim": "studies",
    "meshes": "meshes",
    "materials": "materials",
    "contact": "contact",
    "viz": "pictures",
}


def api(topic: str) -> str:
    """Return directives for the public names of a page."""
    parts = []
    for name in sorted(names_of(topic), key=lambda name: (not name[0].isupper(), name.lower())):
        thing = getattr(fs, name)
        if isinstance(thing, type):
            kind = "exception" if issubclass(thing, Exception) else "class"
        else:
            kind = "function"
        directive = f".. auto{kind}:: femsim.{name}"
        if thing is fs.Scene:  # its calls stand in several files
            directive += "\n   :inherited-members: SceneContents"
        if not callable(thing):  # a table or a list of names
            directive = f".. data:: femsim.{name}\n\n   {', '.join(thing)}."
        parts.append(f"```{{eval-rst}}\n{directive}\n```\n")
    return "\n".join(parts)


def names_of(topic: str) -> list[str]:
    """Return the public names of a page of the API."""
    return [
        name
        for name, module in fs._MODULE_OF.items()
        if next(page for start, page in TOPICS.items() if f"{module}.".startswith(f"{start}.")) == topic
    ]


def commands() -> str:
    """Return the help of each command."""
    from rich.console import Console

    from femsim.cli import app

    parts = []
    for name in sorted(app):
        if name.startswith("-"):
            continue
        text = io.StringIO()
        app.help_print([name], console=Console(file=text, width=88, force_terminal=False, no_color=True))
        body = "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())
        parts.append(f"## femsim {name}\n\n```text\n{body}\n```\n")
    return "\n".join(parts)


def gallery() -> str:
    """Return a section for each scene that comes with femsim: picture, what it is, how to run it."""
    parts = []
    for path in fs.list_scenes():
        words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        first, _, rest = words.partition("\n")
        picture = f"pictures/gallery/{path.stem}.png"
        shown = f"![{path.stem}](../{picture})\n" if (DOCS / picture).is_file() else ""
        parts.append(f"## {path.stem}\n\n{first}\n\n{shown}\n```text\nfemsim run scenes/{path.name}\n\n{rest.strip()}\n```\n")
    return "\n".join(parts)


FILLED = {"guide/commands": commands, "guide/gallery": gallery} | {
    f"guide/api/{topic}": partial(api, topic) for topic in TOPICS.values()
}


#: Pages of measured numbers, which the site has as files.
RECORD = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+data/results/\w+\.md)\)")
#: Pages that stand outside of docs, and where the site has them.
OUTSIDE = {"(../benchmarks/README.md": "(guide/benchmarks.md", "(../CONTRIBUTING.md": "(guide/contributing.md"}


def fill(app: Any, page: str, source: list[str]) -> None:
    """Append what the code says to the pages that wait for it, and turn links to pages outside."""
    for outside, inside in OUTSIDE.items():
        source[0] = source[0].replace(outside, inside)
    source[0] = RECORD.sub(r"{download}`\1 <\2>`", source[0])
    if page in FILLED:
        source[0] += "\n" + FILLED[page]()


def escape_bars(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Leave bars of magnitudes alone, which reStructuredText takes for substitutions."""
    for number, line in enumerate(lines):
        pieces = line.split("``")
        pieces[::2] = [piece.replace("|", r"\|") for piece in pieces[::2]]
        lines[number] = "``".join(pieces)


def setup(app: Any) -> dict[str, bool]:
    """Connect with Sphinx."""
    app.connect("source-read", fill)
    app.connect("autodoc-process-docstring", escape_bars)
    return {"parallel_read_safe": True}
