"""Where contacts are in a step that is linearised more than once: they follow the bodies, as long as that leads on."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np

from femsim.step.contacts import ContactRows

#: Linearisations in a row that may leave more than half of the least residual before them while contacts follow the bodies: after
#: the last one contacts stay on the features that they are on; after STAYING more of them, where they are. Rounding decides where
#: they stop: measured on nine random scenes that end elsewhere where they are turned, with 3 four do, with 4 three. Seventy
#: others take 5.5 linearisations a step with 2, 5.2 with 4, 5.4 with 6 and 10.
PATIENCE, STAYING = 4, 10
#: The same by the theta rule, where a heap of cylinders gained 0.6 % of its energy in a step with 4.
PATIENCE_BY_THETA = 2


class Follow(Protocol):
    """Rows of the contacts of a step where a v_hat, (n,), leads; on the same features as others, where these are given.

    Where v_hat is a guess, they are those of the start unless bodies turn.
    """

    def __call__(self, v_hat: np.ndarray, on: ContactRows | None = None, *, guess: bool = False) -> ContactRows:
        """Return them."""
        ...


class Following:
    """The rows of the contacts at each linearisation of a step.

    Contacts follow the bodies to the place about which a step is linearised, until ``patience`` linearisations in a
    row leave more than half of the least residual before them. Then (where it is 0, from the start) they stay on the features
    that they are on; after STAYING more such linearisations they stay where they are.

    Attributes
    ----------
    now : callable or None
        Gives the rows by a velocity; None where they stay as they are.
    followed : bool
        Whether they follow to other features too, until now.
    """

    def __init__(self, follow: Follow | None, patience: int) -> None:
        self._asked, self.now, self.followed = follow, follow, patience > 0
        self._patience, self._left = patience, patience or STAYING

    def begin(self, rows: ContactRows, guess: np.ndarray, place: np.ndarray | None) -> ContactRows:
        """Return the rows of the first linearisation: at a place, or at the start with a guess of where the step leads."""
        if self._asked is None:
            return rows
        begun = self._asked(guess, guess=True) if place is None else self._asked(place)
        if not self.followed:
            self.now = partial(self._asked, on=begun)
        return begun

    def rows(self, led: ContactRows, v: np.ndarray, place: np.ndarray) -> ContactRows:
        """Return the rows at the next place; where that is the last answer v, (n,), they are ``led`` there already."""
        return led if self.now is None or place is v else self.now(place)

    def judge(self, led: ContactRows, residual: float, least: float) -> None:
        """Decide how contacts go on, by the last residual and the least one before; ``led`` are the rows where its answer is."""
        if self._asked is None or self.now is None:
            return
        if residual > 0.5 * least:
            self._left -= 1
        else:
            self._left = self._patience if self.followed else STAYING
        if self._left == 0:
            self.now = partial(self._asked, on=led) if self.followed else None
            self.followed, self._left = False, STAYING
