"""What a person would say about a comparison: one sentence an axis, a constant in it, the frame or sign that would fit better."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from femsim.studies.comparison.agreement import Agreement
from femsim.studies.comparison.readers import Channel
from viz.comparison import SHOWN_UNITS

__all__ = ["better_frame", "constant_hint", "sentence"]

#: An axis agrees below this part of the range of the log; its shape is right from this correlation on.
AGREES, SHAPE = 0.05, 0.95
#: A constant explains the misfit where it makes this part of its square; a gain is spoken of where it is so far from 1.
MOST, FAR_GAIN = 0.7, 0.1
#: A constant is spoken of where the log is a line of the run that leaves at most so much of the misfit, and of what the best gain
#: alone leaves, and where it is at least this part of the range.
LINE, ALONE, LEAST = 0.3, 0.5, 0.02
#: Another frame is suggested where it leaves less than this part of the misfit, and that is at least this part of the range.
BETTER, WORTH = 0.5, 0.2


def sentence(channel: Channel, values: Agreement, lag: float, range_: float) -> str:
    """Say in words how an axis of a run differs from its log.

    Parameters
    ----------
    channel : Channel
        Name and unit of the axis.
    values : Agreement
        The run against the log.
    lag : float, s
        Remaining delay of the log; NaN where it is not known.
    range_ : float, unit of the axis
        Largest range of the log among the axes of the group: an axis that hardly moves beside the others is measured by theirs.

    Returns
    -------
    str
        Without a full stop.
    """
    name, (factor, unit) = channel.name, SHOWN_UNITS[channel.unit]

    def size(value: float) -> str:
        return f"{abs(factor * value):.3g} {unit}".removesuffix(" 1")

    late = f"; the log comes {1e3 * abs(lag):.3g} ms {'later' if lag > 0 else 'earlier'}" if lag and math.isfinite(lag) else ""
    if values.rmse <= AGREES * range_:
        return f"{name} agrees within {size(values.rmse)} RMS{late}"
    right = values.correlation >= SHAPE
    by_gain = right and values.gain > 0.0 and abs(values.gain - 1.0) > FAR_GAIN
    turned = values.correlation <= -SHAPE
    if values.bias**2 > MOST * values.rmse**2 and not ((by_gain or turned) and abs(values.offset) < LEAST * range_):
        shape = "; its shape is right" if right else ""
        return f"{name} of the run reads {size(values.bias)} too {'high' if values.bias > 0 else 'low'}{shape}{late}"
    if turned:
        return f"{name} has the opposite sign; its shape is right{late}"
    if by_gain:
        return f"{name} of the run is {1.0 / values.gain:.3g} times that of the log; its shape is right{late}"
    if right:
        return f"{name} follows the log with {size(values.rmse)} RMS of error{late}"
    return f"{name} differs in shape: {size(values.rmse)} RMS of error where the log ranges over {size(range_)}{late}"


def constant_hint(channel: Channel, simulated: np.ndarray, measured: np.ndarray, values: Agreement) -> str:
    """Say that a constant is in the log, or in the run, and that no parameter should be fitted to it; "" for none.

    A fit turns a constant into a gain, so that it shows in the line log = gain run + offset alone.

    Parameters
    ----------
    channel : Channel
        Name and unit of the axis.
    simulated, measured : ndarray, (n,)
        Without gaps.
    values : Agreement
        Theirs.
    """
    if not values.correlation >= SHAPE or values.gain <= 0.0:
        return ""
    left = math.sqrt(max(1.0 - values.correlation**2, 0.0)) * float(measured.std())
    gain = float(simulated @ measured) / float(simulated @ simulated)
    by_gain = float(np.sqrt(np.mean((measured - gain * simulated) ** 2)))
    if left > LINE * values.rmse or left > ALONE * by_gain or abs(values.offset) < LEAST * float(np.ptp(measured)):
        return ""
    factor, unit = SHOWN_UNITS[channel.unit]
    size = f"{abs(factor * values.offset):.3g} {unit}".removesuffix(" 1")
    what = "makes" if abs(values.gain - 1.0) <= LEAST else f"and a gain of {values.gain:.3g} make"
    return (
        f"a constant {size} {what} {100 * (1.0 - (left / values.rmse) ** 2):.0f} % of the misfit of {channel.name}: a bias, or a "
        "tare or weight that only one of them has; take it off by tare of the card. What is fitted to it is not to be believed"
    )


def better_frame(channels: Sequence[Channel], simulated: np.ndarray, measured: np.ndarray) -> str:
    """Suggest another frame or sign of a log where it fits clearly better: one of the 48 turns and mirrors of its axes.

    Parameters
    ----------
    channels : sequence of Channel
        Three of a group are turned together; groups of other sizes are left alone.
    simulated, measured : ndarray, (n, k)
        Without gaps.

    Returns
    -------
    str
        A sentence with what to write into the card; "" where nothing fits clearly better.
    """
    groups: dict[str, list[int]] = {}
    for k, channel in enumerate(channels):
        groups.setdefault(channel.group, []).append(k)
    own = next((ks for name, ks in groups.items() if name == "force" and len(ks) == 3), None)
    if own is None:
        return ""
    s, m = simulated[:, own], measured[:, own]
    worst = float(np.sqrt(np.mean((s - m) ** 2)))
    span = float(np.ptp(m, axis=0).max())
    if not span or worst < WORTH * span:
        return ""
    fits = []
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            turn = np.zeros((3, 3))
            turn[range(3), order] = signs
            fits.append((float(np.sqrt(np.mean((s - m @ turn.T) ** 2))), turn))
    best = min(fit[0] for fit in fits)
    if best > BETTER * worst:
        return ""
    # an axis without force turns either way: the one that changes least, without a mirror, stands for all
    alike = [turn for error, turn in fits if error <= 1.2 * best + 1e-9 * worst]
    turn = max(alike, key=lambda turn: (np.linalg.det(turn), np.trace(turn)))
    sign = 1 if np.linalg.det(turn) > 0 else -1
    fit = f"forces would fit better ({best:.3g} instead of {worst:.3g} N RMS) with"
    if sign < 0 and turn.min() == 0.0:  # a mirror that swaps two axes is no frame
        a, b = (channels[own[k]].name for k in range(3) if not turn[k, k])
        return f"{fit} {a} and {b} swapped: are axes.{a} and axes.{b} of the card, or its frame.rotation, right?"
    rotation = (sign * turn).astype(int).tolist()
    turned = rotation != np.eye(3, dtype=int).tolist()
    written = ([f"rotation = {rotation}"] if turned else []) + (["sign = -1"] if sign < 0 else [])
    several = "; an axis without force leaves open which of several" if len(alike) > 1 else ""
    return f"{fit} {' and '.join(written)} in [frame] of the card, after what it says now{several}"
