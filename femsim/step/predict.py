"""Where a step will lead, guessed from the steps before it: the solve starts there, and equations are linearised there.

The representative velocities of the last steps, as long as those were as long as this one, are continued by a constant, a line or
a parabola. Which of them is told by what each would have said of the last step: where motion is smooth the parabola is nearest,
where contacts come and go the last velocity is.
"""

from __future__ import annotations

import numpy as np

from contact.metrics import norm
from femsim.step.state import State

#: Velocities before the last one that a state keeps.
KEPT = 3
#: A higher polynomial takes the place of a lower one where its error of the last step is below this part of that of the lower.
_CLEARLY = 0.85
#: Weights of the last velocities, newest first, by which a constant, a line and a parabola are continued.
_WEIGHTS = ((1.0,), (2.0, -1.0), (3.0, -3.0, 1.0))


def predicted(state: State, dt: float, weight: np.ndarray, still: float = 0.0) -> np.ndarray:
    """Guess the representative velocity of the next step, (n,).

    Parameters
    ----------
    state : State
        Start of the step.
    dt : float, s
        Its length; velocities of steps of another length say nothing of it, and the last one is returned.
    weight : ndarray, (n,)
        Of each row in the norm of errors; zero where velocities are prescribed.
    still : float, m/s
        Where velocities changed by less from step to step they are taken for constant, so that rest stays rest to the last bit.
    """
    known = [state.v_hat, *state.before] if state.dt == dt else [state.v_hat]
    if len(known) < 2:
        return state.v_hat
    none = still * norm(weight)
    guess, least = state.v_hat, np.inf
    for weights in _WEIGHTS:
        if len(known) <= len(weights):
            break
        missed = known[0] - _continued(weights, known[1:])
        error = norm(weight * missed)
        if guess is state.v_hat and error <= none:
            break
        if error < _CLEARLY * least:
            guess, least = _continued(weights, known), error
    return guess


def _continued(weights: tuple[float, ...], known: list[np.ndarray]) -> np.ndarray:
    """Continue velocities, newest first, by so many of them."""
    out = weights[0] * known[0]
    for factor, v in zip(weights[1:], known[1:], strict=False):
        out += factor * v
    return out


def remembered(state: State, dt: float) -> np.ndarray:
    """Velocities that a step of length dt, s, leaves for the next beside its own: of steps as long, newest first, (k, n)."""
    if state.dt != dt:
        return np.zeros((0, len(state.v_hat)))
    return np.array([state.v_hat, *state.before[: KEPT - 1]])
