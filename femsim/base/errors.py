"""The exception of wrong input, and the sentence that names the nearest known word."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable


class InputError(ValueError):
    """Wrong input; the message names the file and field, the value, what is allowed and what to do."""


def nearest(name: str, options: Iterable[str]) -> str | None:
    """Find the option that a mistyped name most likely means.

    Parameters
    ----------
    name : str
        Name that was given.
    options : iterable of str
        Known names.

    Returns
    -------
    str or None
        The most similar option, or None when none is similar.
    """
    by_lower = {option.lower(): option for option in options}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, options: Iterable[str]) -> str:
    """Suggest the nearest option and list all of them; the end of a sentence that starts "... is unknown".

    Parameters
    ----------
    name : str
        Name that was given.
    options : iterable of str
        Known names.

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


def what_to_do(error: OSError) -> str:
    """Say what the user can do about a file that cannot be read or written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free the disk, or choose another folder by --out; femsim resume goes on with a run"
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ESTALE):
        return "it or its folder was moved or removed meanwhile; put it back and use femsim resume, or run again"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "choose a folder that you may write to by --out"
    if error.errno == errno.EFBIG:
        return "raise the limit of file sizes (ulimit -f), or choose another folder by --out"
    return "see to the disk, or choose another folder by --out"
