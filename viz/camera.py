"""Cameras: by name, by angles, given, or following a body."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from viz.errors import VizError

FloatArray = npt.NDArray[np.float64]
Camera = str | Sequence[Sequence[float]]
# Direction from the scene to the camera, and which way is up in the picture.
CAMERAS: dict[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "iso": ((0.55, -1.0, 0.48), (0.0, 0.0, 1.0)),
    "front": ((0.0, -1.0, 0.0), (0.0, 0.0, 1.0)),
    "side": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "top": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)),
}
VIEW_ANGLE = 24.0  # degrees, vertical: a long lens, little distortion
FOLLOW = "follow:"
#: How much of the surroundings a camera that follows a body shows, in sizes of the body.
AROUND = 3.0
_ALLOWED = (
    f"allowed are {', '.join(map(repr, CAMERAS))}, 'azimuth,elevation' or 'azimuth,elevation,zoom' in degrees (28,23,1.5), "
    "'follow:BODY', or three 3-vectors (position, focal point, up)"
)


@dataclass(frozen=True)
class View:
    """Camera position and focal point [m], its up direction, and the body that it follows."""

    position: FloatArray
    focal_point: FloatArray
    up: FloatArray
    follows: str = ""


def followed_body(camera: Camera) -> str:
    """Return the body that a camera follows, "" for one that stands still."""
    return camera[len(FOLLOW) :].partition(",")[0].strip() if isinstance(camera, str) and camera.startswith(FOLLOW) else ""


def parts_of(body: str, parts: Collection[str]) -> list[str]:
    """Return the drawn parts of a body; VizError, with the nearest name, where there are none."""
    found = [name for name in parts if name == body or name.startswith(f"{body}.")]
    if not found:
        owners = list(dict.fromkeys([*parts, *(name.split(".")[0] for name in parts)]))
        near = difflib.get_close_matches(body, owners, 1, 0.3)
        raise VizError(
            f"the camera shall follow {body!r}, but the frames have no such body; "
            + (f"did you mean {near[0]!r}? They" if near else "they")
            + f" have: {', '.join(sorted(owners)) or 'none'}."
        )
    return found


def placed_camera(camera: Camera, corners: FloatArray, aspect: float, box: FloatArray | None = None) -> View:
    """Place a camera.

    Parameters
    ----------
    camera : str or three 3-vectors
        As in `render_run`.
    corners : ndarray, shape (n, 3), m
        What the picture must show.
    aspect : float
        Width by height of the picture.
    box : ndarray, shape (m, 3), m, optional
        Corners of the body that the camera follows, in the first frame.

    Returns
    -------
    View
        Position, focal point, up.
    """
    if not isinstance(camera, str):
        return _given(camera)
    body = followed_body(camera)
    text = camera.partition(",")[2] if body else camera
    if camera.startswith(FOLLOW) and (not body or box is None):
        raise VizError(f"the camera {camera!r} is not allowed: it names no body; {_ALLOWED}.")
    if body and box is not None:
        middle = (box.min(axis=0) + box.max(axis=0)) / 2
        corners = middle + AROUND * (box - middle)
    if text in CAMERAS or (body and not text):
        direction, up = (np.array(v) for v in CAMERAS[text or "iso"])
        zoom = 1.0
    else:
        direction, up, zoom = _angles(camera, text)
    fitted = fitted_view(direction / np.linalg.norm(direction), up, corners, aspect)
    near = fitted.focal_point + (fitted.position - fitted.focal_point) / zoom
    return View(near, fitted.focal_point, fitted.up, body)


def _angles(camera: str, text: str) -> tuple[FloatArray, FloatArray, float]:
    """Read azimuth, elevation (degrees) and zoom; return direction, up and zoom."""
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not np.isfinite(numbers).all():
        begun = [name for name in CAMERAS if len(text) > 1 and (text.lower().startswith(name) or name.startswith(text.lower()))]
        near = begun or difflib.get_close_matches(text.lower(), CAMERAS, 1, 0.6)
        hint = f" did you mean {near[0]!r}?" if near else ""
        raise VizError(f"the camera {camera!r} is not known;{hint} {_ALLOWED}.")
    azimuth, elevation = np.radians(numbers[:2])
    zoom = numbers[2] if len(numbers) == 3 else 1.0
    if abs(numbers[1]) > 90.0 or not 0.01 <= zoom <= 100.0:
        raise VizError(f"the camera {camera!r} is not allowed; the elevation is -90 to 90 degrees, the zoom 0.01 to 100.")
    flat = np.array([np.sin(azimuth), -np.cos(azimuth), 0.0])
    direction = np.cos(elevation) * flat + np.sin(elevation) * np.array([0.0, 0.0, 1.0])
    up = np.cos(elevation) * np.array([0.0, 0.0, 1.0]) - np.sin(elevation) * flat  # defined also straight from above
    return direction, up, zoom


def _given(camera: Sequence[Sequence[float]]) -> View:
    try:
        explicit = np.array(camera, dtype=np.float64)
    except (TypeError, ValueError):
        explicit = np.empty(0)
    if explicit.shape != (3, 3) or not np.isfinite(explicit).all():
        raise VizError(f"the camera {camera!r} is not allowed; give three 3-vectors (position, focal point, up).")
    sight = explicit[1] - explicit[0]
    if np.linalg.norm(np.cross(sight, explicit[2])) <= 1e-9 * np.linalg.norm(sight) * np.linalg.norm(explicit[2]):
        raise VizError(f"the camera {camera!r} looks along its own up direction or nowhere; choose another up vector.")
    return View(explicit[0], explicit[1], explicit[2])


def fitted_view(direction: FloatArray, up: FloatArray, corners: FloatArray, aspect: float) -> View:
    """Place the camera so that all corners just fit, with space at the right for the colour bar."""
    right = np.cross(up, direction)
    right /= np.linalg.norm(right)
    above = np.cross(direction, right)
    local = corners @ np.column_stack([right, above, direction])  # x right, y up, z towards the camera
    tan_y = np.tan(np.radians(VIEW_ANGLE / 2))
    reach = np.array([0.80 * tan_y * aspect, 0.80 * tan_y])  # the share of the picture that is filled
    middle = (local.min(axis=0) + local.max(axis=0)) / 2
    distance = 0.0
    for _ in range(20):  # centre what perspective shows, then step back until it fits; converges at once or nearly so
        offset = local - middle
        distance = float((np.abs(offset[:, :2]) / reach + offset[:, 2:]).max()) or 1.0
        seen = offset[:, :2] / (distance - offset[:, 2:])
        middle[:2] += 0.5 * distance * (seen.min(axis=0) + seen.max(axis=0)) / 2
    middle[0] += 0.05 * distance * tan_y * aspect  # shift the scene left, away from the colour bar
    focal = right * middle[0] + above * middle[1] + direction * middle[2]
    return View(focal + distance * direction, focal, above)
