"""Files that are whole or not there: written under a temporary name, then renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file in one step: a temporary name, then a rename."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(content, indent=2, default=_plain) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)
