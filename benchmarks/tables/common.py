"""What the tables of the pages on solvers need beside what the reproduction of papers/001 measures with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from femsim.studies.reproduction import measuring

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Settings(measuring.Settings):
    """How the tables are made: sizes and scenes of the reproduction; ``data`` holds FCLib files and ``check_fc.py``.

    Attributes
    ----------
    pictures : Path
        Folder for pictures.
    """

    pictures: Path = Path()
