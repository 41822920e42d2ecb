"""What frames show of a rod: fields on its centre line."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np


def rod_fields(
    start: np.ndarray,
    line: np.ndarray,
    axes: np.ndarray,
    quaternions: np.ndarray,
    v: np.ndarray,
    force: np.ndarray,
    joints: np.ndarray,
    names: Collection[str],
) -> dict[str, np.ndarray]:
    """Fields at the ends of the links: those of links as means of the two at a joint, those of joints as they are.

    Parameters
    ----------
    start, line : ndarray, (n + 1, 3), m
        Ends of the n links, at the start and now.
    axes : ndarray, (n, 3, 3)
        World rotations of the links, their columns the axes 1, 2, 3.
    quaternions : ndarray, (n, 4)
        The same as quaternions, w first.
    v, force : ndarray, (n, 3), m/s and N
        Velocities of the links and contact forces on them.
    joints : ndarray, (n + 1, 6), N and N m
        Elastic force and moment in each joint, world.
    names : collection of str
        Fields that are wanted; names of others are passed over.

    Returns
    -------
    dict of str to ndarray
        ``velocity``, ``contact_force`` (half of that on each of the two links) and ``displacement`` (n + 1, 3); ``tension`` N,
        ``bending_moment`` and ``twisting_moment`` N m, (n + 1,); ``rotation`` (n + 1, 4), w >= 0.
    """
    n = len(axes)
    before = [0, *range(n)]  # link before and behind each end
    behind = [*range(n), n - 1]
    out: dict[str, np.ndarray] = {}
    if "velocity" in names:
        out["velocity"] = 0.5 * (v[before] + v[behind])
    if "contact_force" in names:
        half = 0.5 * force
        out["contact_force"] = np.zeros_like(line)
        out["contact_force"][:-1] += half
        out["contact_force"][1:] += half
    if "displacement" in names:
        out["displacement"] = line - start
    along = axes[:, :, 2]
    tangent = along[before] + along[behind]
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    twist = (joints[:, 3:] * tangent).sum(axis=1)
    if "tension" in names:
        out["tension"] = (joints[:, :3] * tangent).sum(axis=1)
    if "bending_moment" in names:
        out["bending_moment"] = np.linalg.norm(joints[:, 3:] - twist[:, None] * tangent, axis=1)
    if "twisting_moment" in names:
        out["twisting_moment"] = twist
    if "rotation" in names:
        first, second = quaternions[before], quaternions[behind]
        mean = first + np.where((first * second).sum(axis=1, keepdims=True) < 0.0, -second, second)
        mean /= np.linalg.norm(mean, axis=1, keepdims=True)
        out["rotation"] = np.where(mean[:, :1] < 0.0, -mean, mean)
    return out
