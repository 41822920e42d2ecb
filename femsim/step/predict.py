"""Where a step will lead, guessed from the steps before it: the solve starts there, and equations are linearised there.

The representative velocities of the last steps, as long as those were as long as this one, are continued by a constant, a line or
a parabola. Which of them is told by what each would have said of the last step: where motion is smooth the parabola is nearest,
where contacts come and go the last velocity is.
"""

from __future__ import annotations

import math

import numpy as np

from contact.compiled import njit
from femsim.step.state import State

#: Velocities before the last one that a state keeps.
KEPT = 3
#: A higher polynomial takes the place of a lower one where its error of the last step is below this part of that of the lower.
_CLEARLY = 0.85
#: Weights of the last velocities, newest first, by which a constant, a line and a parabola are continued.
_WEIGHTS = np.array([[1.0, 0.0, 0.0], [2.0, -1.0, 0.0], [3.0, -3.0, 1.0]])


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
    if state.dt != dt or not len(state.before):
        return state.v_hat
    guess = np.empty_like(state.v_hat)
    degree = _continue(state.v_hat, state.before, weight, still, _WEIGHTS, guess)
    return guess if degree > 0 else state.v_hat


@njit(cache=True, _nrt=False)
def _continue(
    last: np.ndarray, before: np.ndarray, weight: np.ndarray, still: float, weights: np.ndarray, guess: np.ndarray
) -> int:
    """Fill velocities (n,) that continue the last and those before it, (k, n), newest first; return the degree of the polynomial.

    With 0 they are the last velocity, and nothing is filled.
    """
    n, size = last.shape[0], 0.0
    for i in range(n):
        size += weight[i] * weight[i]
    degree, least = 0, np.inf
    for k in range(min(before.shape[0], weights.shape[0])):
        error = 0.0
        for i in range(n):
            said = 0.0
            for j in range(k + 1):
                said += weights[k, j] * before[j, i]
            missed = weight[i] * (last[i] - said)
            error += missed * missed
        error = math.sqrt(error)
        if k == 0 and error <= still * math.sqrt(size):
            return 0
        if error < _CLEARLY * least:
            degree, least = k, error
    for i in range(n if degree > 0 else 0):
        guess[i] = weights[degree, 0] * last[i]
        for j in range(degree):
            guess[i] += weights[degree, j + 1] * before[j, i]
    return degree


def remembered(state: State, dt: float) -> np.ndarray:
    """Velocities that a step of length dt, s, leaves for the next beside its own: of steps as long, newest first, (k, n)."""
    if state.dt != dt:
        return np.zeros((0, len(state.v_hat)))
    return np.array([state.v_hat, *state.before[: KEPT - 1]])
