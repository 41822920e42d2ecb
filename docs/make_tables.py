"""Write the tables of outputs.md and guide/commands.md that the code declares: python docs/make_tables.py.

Each stands between two comments of its page; a test holds that the pages have exactly what the code says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from femsim.model.fields import field_table
from femsim.run.columns import step_table
from femsim.scene.sensor_kinds import sensor_table


def command_table() -> str:
    """Return the table of all commands."""
    from femsim.cli import app

    lines = ["| command | what it does |", "|---|---|"]
    for name in sorted(name for name in app if not name.startswith("-")):
        arguments = [argument for argument in app[name].assemble_argument_collection() if argument.show]
        given = [argument.names[0].lstrip("-").upper() for argument in arguments if argument.index is not None]
        first = app[name].help.split("\n\n")[0].replace("\n", " ")
        lines.append(f"| `{' '.join(['femsim', name, *given])}` | {first} |")
    return "\n".join(lines)


DOCS = Path(__file__).resolve().parent
#: Tables by name, by page.
TABLES: dict[Path, dict[str, Callable[[], str]]] = {
    DOCS / "outputs.md": {
        "columns of steps.csv": step_table,
        "kinds of sensors": sensor_table,
        "fields of the frames": field_table,
    },
    DOCS / "guide" / "commands.md": {"commands": command_table},
}


def filled(page: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """Return the page with its tables as the code declares them now.

    Raises
    ------
    ValueError
        A table whose two comments the page lacks.
    """
    for name, table in tables.items():
        start, end = f"<!-- {name}, by docs/make_tables.py -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(page):
            raise ValueError(f"the page lacks {start!r} or {end!r}; put both where the table is to stand.")
        whole = f"{start}\n\n{table()}\n\n{end}"
        page = pattern.sub(lambda _, whole=whole: whole, page)  # type: ignore[misc]
    return page


if __name__ == "__main__":
    for path, tables in TABLES.items():
        path.write_text(filled(path.read_text(encoding="utf-8"), tables), encoding="utf-8")
