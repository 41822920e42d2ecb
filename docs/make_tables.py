"""Write the tables of docs/outputs.md that the code declares: python docs/make_tables.py.

Each stands between two comments of the page; a test holds that the page has exactly what the code says.
"""

from __future__ import annotations

import re
from pathlib import Path

from femsim.model.fields import field_table
from femsim.run.columns import step_table
from femsim.scene.sensor_kinds import sensor_table

PAGE = Path(__file__).resolve().parent / "outputs.md"
TABLES = {"columns of steps.csv": step_table, "kinds of sensors": sensor_table, "fields of the frames": field_table}


def filled(page: str) -> str:
    """Return the page with its tables as the code declares them now.

    Raises
    ------
    ValueError
        A table whose two comments the page lacks.
    """
    for name, table in TABLES.items():
        start, end = f"<!-- {name}, by docs/make_tables.py -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(page):
            raise ValueError(f"the page lacks {start!r} or {end!r}; put both where the table is to stand.")
        whole = f"{start}\n\n{table()}\n\n{end}"
        page = pattern.sub(lambda _, whole=whole: whole, page)  # type: ignore[misc]
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
