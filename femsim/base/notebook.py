"""What notebooks show: objects as a heading, a table and a few lines of HTML, in which text is escaped; figures as pictures."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Shown", "card"]


@dataclass(frozen=True, repr=False)
class Shown:
    """Something that a notebook shows.

    Attributes
    ----------
    content : str
        HTML.
    paths : tuple of Path
        Files that were written for it; they stay only in a folder of the user's.
    words : str
        What it is, for a terminal.
    pictures : tuple of bytes
        The content as PNG. IPython is given these: readers of notebooks that clean HTML, such as code hosts, show them too.
    """

    content: str
    paths: tuple[Path, ...] = ()
    words: str = ""
    pictures: tuple[bytes, ...] = ()

    def _repr_html_(self) -> str:
        return self.content

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, Image, display

        display(*([Image(data=picture, retina=True) for picture in self.pictures] or [HTML(self.content)]))

    def __repr__(self) -> str:
        return f"<{self.words or 'HTML for a notebook'}{''.join(f', {path}' for path in self.paths)}>"


def card(title: str, head: Sequence[str], rows: Sequence[Sequence[object]], lines: Sequence[str] = ()) -> str:
    """Make a heading, a table and lines below it.

    Parameters
    ----------
    title : str
        Heading.
    head : sequence of str
        Heads of the columns; none for a table without a head row.
    rows : sequence of sequence
        Cells; numbers should be texts already.
    lines : sequence of str
        Below the table.
    """
    first = "".join(f'<th style="text-align:left">{html.escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{html.escape(str(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    table = f"<table>{f'<tr>{first}</tr>' if first else ''}{body}</table>" if rows else ""
    return f"<div><b>{html.escape(title)}</b>{table}{''.join(f'<div>{html.escape(line)}</div>' for line in lines)}</div>"
