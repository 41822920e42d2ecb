"""What several commands print and read: folders that are free, assignments, tables, progress."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from femsim.base.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def default_folder(name: str, overwrite: bool) -> Path:
    """Choose runs/NAME; where that exists and must stay, the first of runs/NAME-2, ... that does not exist."""
    if overwrite:
        return Path("runs") / name
    return free_name(Path("runs") / name)


def free_name(path: Path) -> Path:
    """Return the path; where it exists, the first of PATH-2, ... that does not exist."""
    numbers = (path if number == 1 else path.with_name(f"{path.name}-{number}") for number in itertools.count(1))
    return next(folder for folder in numbers if not folder.exists())


def read_assignments(texts: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE of --set."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"--set {text!r} is not NAME=VALUE; write for instance --set young_modulus=5e5.")
        if name.strip() in values:
            raise InputError(
                f"--set {name.strip()} is given twice, {values[name.strip()]!r} and {value.strip()!r}; leave one out."
            )
        values[name.strip()] = value.strip()
    return values


def make_console() -> Console:
    """Return a console for stdout, as wide as the terminal, or 160 columns where there is none."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:  # rich would end the process with status 1
            raise BrokenPipeError

    return Output() if sys.stdout.isatty() else Output(width=160)


def make_table(*columns: str) -> Table:
    """Return an empty table."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


class Bar:
    """Progress bar for ``progress(done, total)`` callbacks."""

    def __init__(self, what: str, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), disable=quiet)
        self._task = self._bar.add_task(what, total=None)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None and not self._bar.tasks[0].completed:
            self._bar.live.transient = True  # nothing began: the sentence about the error stands alone
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show progress."""
        self._bar.update(self._task, completed=done, total=total)
