"""The exceptions of the engine and the sentence that names the nearest right word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Wrong input; the message names the file and field, the value, what is allowed and what to do."""


def nearest(name: str, options: Iterable[str]) -> str | None:
    """Find the option that a mistyped name most likely meant.

    Parameters
    ----------
    name : str
        What was given.
    options : iterable of str
        What is known.

    Returns
    -------
    str or None
        The most similar option, or None when none is similar.
    """
    by_lower = {option.lower(): option for option in options}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, options: Iterable[str]) -> str:
    """Say which option was meant and which there are, to be put behind "... is unknown".

    Parameters
    ----------
    name : str
        What was given.
    options : iterable of str
        What is known.

    Returns
    -------
    str
        ``"; did you mean 'x'? There are x, y."``, without the question when nothing is similar.
    """
    known = sorted(set(options))
    guess = nearest(name, known)
    question = f"; did you mean {guess!r}? There" if guess else "; there"
    if not known:
        return "; there is none."
    return f"{question} {'is only' if len(known) == 1 else 'are'} {', '.join(known)}."
