"""Building blocks of self-contained HTML pages, shared by all reports."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Sequence
from pathlib import Path

__all__ = ["number", "page", "picture", "table", "warnings", "write_page"]

_CSS = (
    "body{font:15px/1.45 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#1c2733}"
    "table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}th,td{padding:.25em .7em;text-align:right;"
    "border-bottom:1px solid #e3e6ea;white-space:nowrap}th:first-child,td:first-child{text-align:left}"
    "table.text th,table.text td{text-align:left;white-space:normal}svg,img{max-width:100%;height:auto}"
    "figure{display:inline-block;width:48%;min-width:20em;margin:.4em 1% .4em 0;vertical-align:top}"
    "figcaption{font-size:13px;color:#5a6572}pre{font-size:12px;background:#f5f7f9;padding:.8em;overflow-x:auto}"
    ".warnings{background:#fff3e0;border-left:4px solid #d55e00;padding:.6em 1em .6em 2em}"
    ".good{color:#00704f;font-weight:600}.bad{color:#b34700;font-weight:600}"
)
_KINDS = {".png": "image/png", ".svg": "image/svg+xml"}


def page(title: str, body: str) -> str:
    """Make a page; the title is escaped, the body is HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>'
        f"{html.escape(title)}</title><style>{_CSS}</style></head><body>\n{body}</body></html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, text: bool = False) -> str:
    """Make a table; cells are escaped. Numbers are right-aligned, words (`text`) left-aligned."""
    top = "".join(f"<th>{html.escape(x)}</th>" for x in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    style = ' class="text"' if text else ""
    return f"<table{style}><tr>{top}</tr>{body}</table>\n"


def warnings(texts: Sequence[str]) -> str:
    """Make the block of warnings; empty without any."""
    items = "".join(f"<li>{html.escape(text)}</li>" for text in texts)
    return f'<h2>Warnings</h2><ul class="warnings">{items}</ul>\n' if texts else ""


def picture(path: Path, caption: str) -> str:
    """Make a figure with its .png or .svg file embedded."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    words = html.escape(caption)
    return (
        f'<figure><img alt="{words}" src="data:{_KINDS[path.suffix]};base64,{data}"><figcaption>{words}</figcaption></figure>\n'
    )


def number(value: float | None) -> str:
    """Write a number for a table; "-" for None."""
    return "-" if value is None else f"{value:.4g}"


def write_page(path: Path, text: str) -> None:
    """Write a page in one step: a temporary name, then a rename."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
