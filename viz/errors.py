"""The one exception of the picture room."""

from __future__ import annotations


class VizError(ValueError):
    """Wrong input; the message says what was given, what is allowed and what to do."""
