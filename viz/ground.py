"""The ground of a picture: a chequered floor with shadows, or shadows alone where a scene has no floor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from viz.marks import round_down
from viz.survey import Survey

FloatArray = npt.NDArray[np.float64]

__all__ = ["Ground"]


class Ground:
    """A plane that fades into the background, softly shaded under the bodies.

    Parameters
    ----------
    plotter : pyvista.Plotter
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
        plotter: Any,
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
        self._blur = (0.011 if chequered else 0.016) * self.PIXELS
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
        self._bright = 255.0 + (tone - 255.0) * np.minimum(1.0, 1.8 * fade)
        self._image: Any = pyvista.ImageData(dimensions=(self.PIXELS, self.PIXELS, 1))
        channels = 4 if transparent else 3
        self._image.point_data["rgb"] = np.zeros((self.PIXELS**2, channels), np.uint8)
        if not transparent:
            self._image.point_data["rgb"] = self._bright.reshape(-1, 3).astype(np.uint8)
        texture: Any = pyvista.Texture(self._image)  # type: ignore[no-untyped-call]
        texture.interpolate = True
        texture.mipmap = True
        plotter.add_mesh(plane, texture=texture, lighting=False)

    def cast(self, samples: list[FloatArray]) -> None:
        """Darken the ground given points on the surfaces of all bodies, each (k, 3) m."""
        from scipy.ndimage import gaussian_filter

        dark = np.zeros((self.PIXELS, self.PIXELS))
        for points in samples:
            a, b, height = ((points - self._centre) @ self._axes).T
            column = np.floor((a / self._half + 1) / 2 * self.PIXELS)
            row = np.floor((b / self._half + 1) / 2 * self.PIXELS)
            strength = 1.0 - np.abs(height) / self._reach
            on = (strength > 0) & (column >= 0) & (column < self.PIXELS) & (row >= 0) & (row < self.PIXELS)
            np.maximum.at(dark, (row[on].astype(np.intp), column[on].astype(np.intp)), strength[on])
        shade = self.SHADOW * gaussian_filter(dark, self._blur)
        if self._transparent:
            self._image.point_data["rgb"][:, 3] = (255.0 * shade).reshape(-1).astype(np.uint8)
        else:
            picture = self._bright * (1.0 - shade[:, :, None] * np.array([1.0, 0.96, 0.90]))
            self._image.point_data["rgb"][:] = picture.reshape(-1, 3).astype(np.uint8)
        self._image.Modified()
