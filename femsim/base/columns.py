"""Columns of a run by name, which can also be called."""

from __future__ import annotations

from typing import Any

import numpy as np

from femsim.base.errors import Named


class Columns(Named[np.ndarray]):
    """Columns by name, (n_steps,) each: ``table["time_s"]``; ``table()`` is a dict of them."""

    def __call__(self) -> dict[str, np.ndarray]:
        """Return a dict of the same columns."""
        return dict(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Columns, (self.what, dict(self))
