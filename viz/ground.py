"""The ground of a picture: a chequered floor with shadows, or shadows alone where a scene has no floor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from viz.canvas import Canvas
from viz.marks import round_down
from viz.survey import Survey

FloatArray = npt.NDArray[np.float64]
Shade = npt.NDArray[np.float32]

__all__ = ["Ground"]

#: Darkness, of 1, that a picture of 256 grey levels does not show.
UNSEEN = 0.5 / 256
#: How much of red, green and blue a shadow takes.
TINT = np.array([1.0, 0.96, 0.90], np.float32)


class Ground:
    """A plane that fades into the background, softly shaded under the bodies.

    Parameters
    ----------
    canvas : Canvas
        Where it is drawn.
    centre : ndarray, shape (3,), m
        Middle of the plane.
    up : ndarray, shape (3,)
        Its normal, of length 1.
    survey : Survey
        Extent of the scene.
    chequered : bool
        A floor of the scene, with a chequer whose squares are a round length. Otherwise there is none: only the shadow is drawn,
        so that bodies in the air are seen to be there.
    transparent : bool
        Only the shadow is drawn, black of little opacity, for a background that is not known.
    """

    PIXELS = 640
    SHADOW = 0.42  # darkest shade, of 1

    def __init__(
        self,
        canvas: Canvas,
        centre: FloatArray,
        up: FloatArray,
        survey: Survey,
        *,
        chequered: bool = True,
        transparent: bool = False,
    ) -> None:
        import pyvista

        half = 2.0 * survey.size
        helper = np.array([1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
        x = np.cross(np.cross(up, helper), up)
        x /= np.linalg.norm(x)
        self._axes = np.column_stack([x, np.cross(up, x), up])
        self._centre = centre
        self._half = half
        #: Height at which the shadow of a body has faded away; things that hang in the air have a pale one.
        self._reach = (0.3 if chequered else 1.2) * survey.size
        self._blur, self._spread = _blur((0.011 if chequered else 0.016) * self.PIXELS, self.PIXELS)
        self._transparent = transparent
        corners = centre + half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) @ self._axes[:, :2].T
        plane: Any = pyvista.PolyData(corners, [4, 0, 1, 2, 3])
        plane.active_texture_coordinates = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.float32)

        ticks = ((np.arange(self.PIXELS) + 0.5) / self.PIXELS * 2 - 1) * half
        a, b = np.meshgrid(ticks, ticks)
        side = round_down(survey.size / 4)
        a0, b0 = (self._axes.T @ centre)[:2]  # the squares' edges lie at round coordinates
        odd = (np.floor((a + a0) / side) + np.floor((b + b0) / side)) % 2 > 0
        tone = np.where(odd[:, :, None], np.array([232.0, 236.0, 241.0]), np.array([246.0, 248.0, 250.0]))
        if not chequered:
            tone = np.full_like(tone, 247.0)
        fade = np.clip(1.0 - np.hypot(a, b) / half, 0.0, 1.0)[:, :, None]
        self._bright = (255.0 + (tone - 255.0) * np.minimum(1.0, 1.8 * fade)).astype(np.float32)
        self._image: Any = pyvista.ImageData(dimensions=(self.PIXELS, self.PIXELS, 1))
        channels = 4 if transparent else 3
        self._image.point_data["rgb"] = np.zeros((self.PIXELS**2, channels), np.uint8)
        if not transparent:
            self._image.point_data["rgb"] = self._bright.reshape(-1, 3).astype(np.uint8)
        canvas.add_ground(plane, self._image)
        self._rest = np.zeros((self.PIXELS, self.PIXELS), np.float32)  # darkness under what never moves, before it is blurred
        self._settled = self._pixels().copy()  # the image of what rests
        self._cast: tuple[slice, slice] | None = None  # where the image is another

    def settle(self, samples: list[FloatArray]) -> None:
        """Darken the ground under what never moves, given points on its surface, each (k, 3) m."""
        self._rest = np.zeros((self.PIXELS, self.PIXELS), np.float32)
        self._darken(self._rest, self._places(samples))
        self._cast = None
        whole = slice(0, self.PIXELS), slice(0, self.PIXELS)
        self._shade(*whole, self._rest)
        self._settled = self._pixels().copy()

    def cast(self, samples: list[FloatArray]) -> FloatArray:
        """Darken the ground under what moves as well, given points on its surface, each (k, 3) m.

        Returns
        -------
        ndarray, shape (4, 3) or (0, 3), m
            Corners of the rectangle of the ground that is not as `settle` left it.
        """
        if self._cast is not None:
            self._pixels()[self._cast] = self._settled[self._cast]
            self._image.Modified()
            self._cast = None
        places = self._places(samples)
        rows, columns, strength = places
        if not rows.size:
            return np.zeros((0, 3))
        around = [(max(0, int(place.min()) - self._spread), int(place.max()) + self._spread + 1) for place in (rows, columns)]
        self._cast = slice(*around[0]), slice(*around[1])
        near = self._near(*self._cast)
        dark = self._rest[near].copy()
        self._darken(dark, (rows - near[0].start, columns - near[1].start, strength))
        shade = self._shade(*self._cast, dark)
        seen = shade > UNSEEN
        if not seen.any():
            return np.zeros((0, 3))
        ends = []
        for axis, place in enumerate(self._cast):  # of the part with a shadow that one sees
            where = place.start + np.flatnonzero(seen.any(axis=1 - axis))
            ends.append(2.0 * self._half * (np.array([where[0] - 1, where[-1] + 2]) / self.PIXELS - 0.5))
        corners = np.array([(a, b) for a in ends[1] for b in ends[0]])
        return np.asarray(self._centre + corners @ self._axes[:, :2].T, dtype=np.float64)

    def _places(self, samples: list[FloatArray]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], FloatArray]:
        """Rows, columns and darkness of the pixels below points."""
        points = np.concatenate([np.zeros((0, 3)), *samples])
        a, b, height = ((points - self._centre) @ self._axes).T
        column = np.floor((a / self._half + 1) / 2 * self.PIXELS)
        row = np.floor((b / self._half + 1) / 2 * self.PIXELS)
        strength = 1.0 - np.abs(height) / self._reach
        on = (strength > 0) & (column >= 0) & (column < self.PIXELS) & (row >= 0) & (row < self.PIXELS)
        return row[on].astype(np.intp), column[on].astype(np.intp), strength[on]

    def _pixels(self) -> npt.NDArray[np.uint8]:
        """Return the image, shape (PIXELS, PIXELS, 3 or 4), itself and no copy."""
        return np.asarray(self._image.point_data["rgb"]).reshape(self.PIXELS, self.PIXELS, -1)

    @staticmethod
    def _darken(dark: Shade, places: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], FloatArray]) -> None:
        rows, columns, strength = places
        np.maximum.at(dark, (rows, columns), strength)

    def _near(self, rows: slice, columns: slice) -> tuple[slice, slice]:
        """Return a rectangle with all around it that the blur brings into it."""
        low, high = ([max(0, s.start - self._spread) for s in (rows, columns)], [s.stop + self._spread for s in (rows, columns)])
        return slice(low[0], min(high[0], self.PIXELS)), slice(low[1], min(high[1], self.PIXELS))

    def _shade(self, rows: slice, columns: slice, dark: Shade) -> Shade:
        """Draw a rectangle of the ground with its shadow, given the darkness `_near` it; return how dark that is, of 1."""
        near = self._near(rows, columns)
        shade = self.SHADOW * (self._blur[rows, near[0]] @ dark @ self._blur[columns, near[1]].T)
        image = self._pixels()
        if self._transparent:
            image[rows, columns, 3] = (255.0 * shade).astype(np.uint8)
        else:
            bright = self._bright[rows, columns]
            image[rows, columns] = (bright * (1.0 - shade[:, :, None] * TINT)).astype(np.uint8)
        self._image.Modified()
        return np.asarray(shade)


def _blur(deviation: float, n: int) -> tuple[Shade, int]:
    """Return the matrix, (n, n), that blurs a column by a Gaussian of so many pixels, and how far that reaches."""
    reach = int(4.0 * deviation + 0.5)
    away = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    weight = np.where(away <= reach, np.exp(-0.5 * (away / deviation) ** 2), 0.0)
    return (weight / weight[n // 2].sum()).astype(np.float32), reach + 1
