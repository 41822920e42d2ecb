"""The shape of a rod at the start: lengths of its links, whether points can be a rod, and the axes of its section along it."""

from __future__ import annotations

import numpy as np

from femsim.base.errors import InputError
from femsim.base.rotations import cross, quaternion_conjugate, quaternion_multiply, vector_from_quaternion

#: Largest ratio of the lengths of neighbours; with it the tension stiffness stays definite up to MAX_TENSION of rod_make.
MAX_RATIO = 3.0
#: Largest turn from one link to the next at the start, rad; the joint's formulas hold up to pi.
MAX_TURN = 2.0


def link_lengths(name: str, points: np.ndarray) -> np.ndarray:
    """Lengths (n,) of the links between points (n + 1, 3); InputError where they cannot be a rod."""
    if len(points) < 2:
        raise InputError(f"rod {name}: points has {len(points)} rows; a rod needs at least the two ends of one link.")
    steps = np.diff(points, axis=0)
    lengths = np.asarray(np.linalg.norm(steps, axis=1))
    shortest = int(np.argmin(lengths))
    if lengths[shortest] <= 1e-9 * lengths.sum():
        raise InputError(
            f"rod {name}: link {shortest} has length {lengths[shortest]:.3g} m, between points {shortest} and {shortest + 1}; "
            "remove one of these points, every link needs a length."
        )
    tangents = steps / lengths[:, None]
    ratios = lengths[1:] / lengths[:-1]
    if len(ratios) and max(ratios.max(), 1.0 / ratios.min()) > MAX_RATIO * (1.0 + 1e-9):
        worst = int(np.argmax(np.maximum(ratios, 1.0 / ratios)))
        raise InputError(
            f"rod {name}: links {worst} and {worst + 1} have lengths {lengths[worst]:.3g} m and {lengths[worst + 1]:.3g} m; "
            f"neighbours may differ by a factor of {MAX_RATIO}, so spread the points more evenly."
        )
    turns = np.arctan2(np.linalg.norm(np.cross(tangents[:-1], tangents[1:]), axis=1), (tangents[:-1] * tangents[1:]).sum(axis=1))
    if len(turns) and turns.max() > MAX_TURN:
        sharpest = int(np.argmax(turns)) + 1
        raise InputError(
            f"rod {name}: the centre line turns by {turns.max():.3g} rad at point {sharpest}; allowed are {MAX_TURN} rad, so "
            "give more points round this bend."
        )
    crossing = _first_crossing(points, 1e-6 * float(lengths.min()))
    if crossing is not None:
        raise InputError(
            f"rod {name}: the centre line crosses itself, links {crossing[0]} and {crossing[1]} meet; move the points apart."
        )
    return lengths


def _first_crossing(points: np.ndarray, tolerance: float) -> tuple[int, int] | None:
    """Two links that are no neighbours and come closer than the tolerance, m; None where there are none.

    The tips of a closed ring may lie on each other. Distances of segments as in Ericson, Real-Time Collision Detection, section
    5.1.9.
    """
    n = len(points) - 1
    i, j = np.triu_indices(n, 2)
    if n > 2 and np.linalg.norm(points[0] - points[-1]) < tolerance:
        keep = (i > 0) | (j < n - 1)
        i, j = i[keep], j[keep]
    if not len(i):
        return None
    p, r = points[i], points[i] - points[j]
    d, e = points[i + 1] - p, points[j + 1] - points[j]
    dd, ee, de = (d * d).sum(axis=1), (e * e).sum(axis=1), (d * e).sum(axis=1)
    dr, er = (d * r).sum(axis=1), (e * r).sum(axis=1)
    area = dd * ee - de * de
    skew = area > 1e-12 * dd * ee
    s = np.clip((de * er - dr * ee) / np.where(skew, area, 1.0), 0.0, 1.0) * skew
    t = np.clip((de * s + er) / ee, 0.0, 1.0)
    s = np.clip((de * t - dr) / dd, 0.0, 1.0)
    gap = r + s[:, None] * d - t[:, None] * e
    near = np.flatnonzero((gap * gap).sum(axis=1) < tolerance * tolerance)
    return (int(i[near[0]]), int(j[near[0]])) if len(near) else None


def carried_frames(name: str, tangents: np.ndarray, normal: np.ndarray | None) -> np.ndarray:
    """Quaternions (n, 4) with axis 3 along the tangents (n, 3) and axis 1 carried from link to link without twist."""
    from scipy.spatial.transform import Rotation  # slow to import

    if normal is None:
        normal = np.eye(3)[int(np.argmin(np.abs(tangents[0])))]
    first = normal - (normal @ tangents[0]) * tangents[0]
    size = float(np.linalg.norm(first))
    if size <= 1e-6 * float(np.linalg.norm(normal)):
        raise InputError(f"rod {name}: normal {normal.tolist()} lies along the first link; give a direction across it.")
    first /= size
    axes = np.column_stack([first, cross(tangents[0], first), tangents[0]])
    quaternions = np.empty((len(tangents), 4))
    quaternions[0] = Rotation.from_matrix(axes).as_quat()[[3, 0, 1, 2]]
    for k in range(1, len(tangents)):
        axis = cross(tangents[k - 1], tangents[k])
        half = np.concatenate([[1.0 + float(tangents[k - 1] @ tangents[k])], axis])
        turned = quaternion_multiply(half / np.linalg.norm(half), quaternions[k - 1])
        quaternions[k] = turned / np.linalg.norm(turned)
    return quaternions


def turns_at_start(quaternions: np.ndarray, joint_lengths: np.ndarray) -> np.ndarray:
    """Turn of each joint at the start, (n + 1, 3), rad: from link to link, at the ends that of half a joint."""
    n = len(quaternions)
    turn = np.zeros((n + 1, 3))
    for k in range(1, n):
        turn[k] = vector_from_quaternion(quaternion_multiply(quaternion_conjugate(quaternions[k - 1]), quaternions[k]))
    if n > 1:
        for k, inner in ((0, 1), (n, n - 1)):
            turn[k] = turn[inner] * joint_lengths[k] / joint_lengths[inner]
    return turn


def turns_at_rest(name: str, rest_curvature: np.ndarray, joint_lengths: np.ndarray) -> np.ndarray:
    """Turn of each joint at rest, (n + 1, 3), rad, for a curvature (3,) or (n - 1, 3), 1/m; InputError where it is too sharp."""
    n = len(joint_lengths) - 1
    each = np.ndim(rest_curvature) == 2
    curvature = checked(name, "rest_curvature", rest_curvature, (n - 1, 3) if each else (3,))
    if each and n > 1:
        curvature = curvature[[0, *range(n - 1), n - 2]]  # half joints at the ends bend as the joint beside them
    turn = joint_lengths[:, None] * (np.zeros(3) if each and n == 1 else curvature)
    largest = float(np.linalg.norm(turn, axis=1).max())
    if largest > MAX_TURN:
        raise InputError(
            f"rod {name}: rest_curvature turns a joint by {largest:.3g} rad; allowed are {MAX_TURN}, so take more links."
        )
    return np.asarray(turn)


def checked(name: str, field: str, given: np.ndarray, shape: tuple[int | None, ...]) -> np.ndarray:
    """Array of numbers of a shape (None: any length); InputError otherwise."""
    try:
        values = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full((), np.nan)
    fits = values.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, values.shape, strict=True))
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise InputError(f"rod {name}: {field} has shape {values.shape}; allowed are numbers of shape ({wanted}).")
    if not np.all(np.isfinite(values)):
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise InputError(f"rod {name}: {field}{list(bad)} is {values[bad]}; remove or repair it, every number must be finite.")
    return values
