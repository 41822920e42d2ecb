"""A picture of which only the part that changes is drawn anew.

Software renderers pay for every pixel of an antialiased picture, whether it shows something new or not. What rests is therefore
drawn once; of each frame only the rectangle around what moves is drawn, through the same camera cut to it, and pasted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from viz.camera import VIEW_ANGLE, View
from viz.marks import COLOURS

FloatArray = npt.NDArray[np.float64]
Picture = npt.NDArray[np.uint8]
Rectangle = tuple[int, int, int, int]

__all__ = ["Canvas", "Rectangle", "render_environment"]

#: Pixels around a rectangle, for what antialiasing and interpolation spread.
MARGIN = 4
#: Sides of the drawn rectangle are multiples of this, so that its buffers are seldom made anew.
STEP = 32
#: Share of the picture above which drawing it whole is no dearer.
MOST = 0.8
#: Contrast, of 1, above which an edge is smoothed, and how far small details may be blurred, of 1.
SEEN_EDGE, SOFTEST = 0.05, 0.25
#: Steps of the search for the ends of a stair; VTK's 12 leave waves in edges that are nearly upright.
LONGEST_STAIR = 40
#: Line of a vertex shader: all of an actor is before all others, and in its own order.
IN_FRONT = "gl_Position.z = 0.0001 * gl_Position.z - 0.9999 * gl_Position.w;"


def render_environment() -> dict[str, str]:
    """Variables that make VTK draw without a display; empty if there is one or the user has chosen."""
    if os.environ.get("DISPLAY") or "VTK_DEFAULT_OPENGL_WINDOW" in os.environ or not sys.platform.startswith("linux"):
        return {}
    return {"VTK_DEFAULT_OPENGL_WINDOW": "vtkEGLRenderWindow"}


@contextmanager
def without_display() -> Iterator[None]:
    """Apply `render_environment` while a window is created."""
    added = render_environment()
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


class Canvas:
    """A window that is not on a screen, with its actors, seen whole or in part.

    Parameters
    ----------
    view : View
        The camera, m; its view angle is `VIEW_ANGLE`.
    size : (int, int)
        Width and height of the picture, pixel.
    transparent : bool
        Pictures have no background and a fourth number, the opacity. They are always drawn whole.

    Edges are smoothed in the finished picture (FXAA): software draws one sample a pixel and a pass over it in half the time of
    four samples, and edges come out no rougher. That pass knows no opacity, so transparent pictures have four samples.
    """

    def __init__(self, view: View, size: tuple[int, int], transparent: bool = False) -> None:
        import vtkmodules.vtkRenderingOpenGL2  # noqa: F401  (it makes windows and mappers that draw)
        from vtkmodules.vtkRenderingCore import vtkRenderer, vtkRenderWindow

        self._size = size
        self._transparent = transparent
        with without_display():
            self._window: Any = vtkRenderWindow()
            self._window.SetOffScreenRendering(True)
            self._window.SetSize(*size)
        self._window.SetMultiSamples(8 if transparent else 0)
        self._window.SetAlphaBitPlanes(transparent)
        self._renderer: Any = vtkRenderer()
        self._renderer.SetBackground(1.0, 1.0, 1.0)
        self._renderer.SetBackgroundAlpha(0.0 if transparent else 1.0)
        self._renderer.SetAutomaticLightCreation(False)
        self._renderer.SetUseFXAA(not transparent)
        smoothing = self._renderer.GetFXAAOptions()
        smoothing.SetRelativeContrastThreshold(SEEN_EDGE)
        smoothing.SetHardContrastThreshold(SEEN_EDGE / 2)
        smoothing.SetSubpixelBlendLimit(SOFTEST)
        smoothing.SetEndpointSearchIterations(LONGEST_STAIR)
        self._renderer.SetUseOIT(False)  # the arrows need no order, and a pass of its own is a quarter of a picture
        self._window.AddRenderer(self._renderer)
        self._camera: Any = self._renderer.GetActiveCamera()
        self.look(view)
        self._add_lights(view)

    def look(self, view: View) -> None:
        """Place the camera."""
        ahead = (view.focal_point - view.position) / np.linalg.norm(view.focal_point - view.position)
        right = np.cross(ahead, view.up)
        right /= np.linalg.norm(right)
        self._eye = view.position
        self._axes = np.column_stack([right, np.cross(right, ahead), ahead])
        self._camera.SetPosition(view.position)
        self._camera.SetFocalPoint(view.focal_point)
        self._camera.SetViewUp(view.up)

    def _add_lights(self, view: View) -> None:
        from vtkmodules.vtkRenderingCore import vtkLight

        ahead = view.position - view.focal_point
        reach = float(np.linalg.norm(ahead))
        above = view.up / np.linalg.norm(view.up)
        right = np.cross(above, ahead / reach)
        for side, height, strength in ((-0.6, 0.9, 0.66), (0.9, 0.1, 0.46), (0.0, 2.5, 0.22)):
            light = vtkLight()
            light.SetLightTypeToSceneLight()
            light.SetPosition(*(view.focal_point + ahead + reach * (side * right + height * above)))
            light.SetFocalPoint(*view.focal_point)
            light.SetIntensity(strength)
            self._renderer.AddLight(light)

    def add(self, mesh: Any, colour: str, *, ambient: float = 0.36, diffuse: float = 0.74, specular: float = 0.06) -> Any:
        """Add a mesh with normals at its points; return its actor."""
        from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

        mapper, actor = vtkPolyDataMapper(), vtkActor()
        mapper.SetInputData(mesh)
        mapper.ScalarVisibilityOff()
        actor.SetMapper(mapper)
        looks = actor.GetProperty()
        looks.SetColor(*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)))
        looks.SetAmbient(ambient)
        looks.SetDiffuse(diffuse)
        looks.SetSpecular(specular)
        looks.SetSpecularPower(25.0)
        looks.SetInterpolationToPhong()
        self._renderer.AddActor(actor)
        return actor

    @staticmethod
    def colour(actor: Any, array: str, highest: float) -> None:
        """Colour an actor by an array of its points, from 0 to `highest`."""
        from vtkmodules.vtkCommonCore import vtkLookupTable

        table, mapper = vtkLookupTable(), actor.GetMapper()
        n = 256
        stops = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in COLOURS]) / 255
        place = np.linspace(0.0, 1.0, len(stops))
        table.SetNumberOfTableValues(n)
        for k in range(n):
            table.SetTableValue(k, [*(float(np.interp(k / (n - 1), place, stops[:, c])) for c in range(3)), 1.0])
        table.SetNanColor(0.66, 0.66, 0.66, 1.0)
        table.SetTableRange(0.0, highest)
        mapper.SetLookupTable(table)
        mapper.UseLookupTableScalarRangeOn()
        mapper.SetScalarModeToUsePointFieldData()
        mapper.SelectColorArray(array)
        mapper.InterpolateScalarsBeforeMappingOn()
        mapper.ScalarVisibilityOn()

    def add_ground(self, plane: Any, image: Any) -> None:
        """Add a plane with texture coordinates and an image on it, unlit."""
        from vtkmodules.vtkRenderingCore import vtkTexture

        actor = self.add(plane, "#ffffff", ambient=0.0, diffuse=1.0, specular=0.0)
        actor.GetProperty().LightingOff()
        texture = vtkTexture()
        texture.SetInputData(image)
        texture.InterpolateOn()
        actor.SetTexture(texture)

    def add_ghost(self, actor: Any, opacity: float) -> Any:
        """Add the part of an actor that others hide, faint; return its actor, whose mesh is its own."""
        from vtkmodules.vtkRenderingCore import vtkActor, vtkPolyDataMapper

        ghost = vtkActor()
        mapper = vtkPolyDataMapper()
        mapper.ScalarVisibilityOff()
        ghost.SetMapper(mapper)
        ghost.GetProperty().DeepCopy(actor.GetProperty())
        ghost.GetProperty().SetOpacity(opacity)
        place = "//VTK::PositionVC::Impl"
        ghost.GetShaderProperty().AddVertexShaderReplacement(place, True, f"{place}\n{IN_FRONT}\n", False)
        self._renderer.AddActor(ghost)
        return ghost

    def close(self) -> None:
        """Free the window."""
        self._window.Finalize()

    def whole(self) -> Picture:
        """Draw all of it, shape (height, width, 3), or 4 where it is transparent."""
        return self._drawn((0, 0, *self._size))

    def part(self, rectangle: Rectangle, picture: Picture) -> Picture:
        """Draw a rectangle, or a little more; return a copy of `picture` with it pasted in."""
        wider = self._wider(rectangle)
        left, low, right, high = wider
        height = self._size[1]
        new = picture.copy()
        new[height - high : height - low, left:right] = self._drawn(wider)
        return new

    def around(self, points: list[FloatArray]) -> Rectangle | None:
        """Return the rectangle (left, low, right, high), pixel from the lower left, that shows all points, each array (k, 3) m.

        None where that is most of the picture, or behind the camera.
        """
        if self._transparent:
            return None
        seen = [p for p in points if len(p)]
        if not seen:
            return (0, 0, 0, 0)
        local = (np.concatenate(seen) - self._eye) @ self._axes
        if not np.isfinite(local).all() or local[:, 2].min() <= 0.0:
            return None
        width, height = self._size
        scale = height / 2 / np.tan(np.radians(VIEW_ANGLE / 2))
        flat = scale * local[:, :2] / local[:, 2:] + (width / 2, height / 2)
        least = np.clip(np.floor(flat.min(axis=0)) - MARGIN, 0, self._size).astype(int)
        most = np.clip(np.ceil(flat.max(axis=0)) + MARGIN, 0, self._size).astype(int)
        if np.prod(most - least) > MOST * width * height:
            return None
        return int(least[0]), int(least[1]), int(most[0]), int(most[1])

    def _wider(self, rectangle: Rectangle) -> Rectangle:
        """Widen a rectangle to the window that is there, where it is not much larger, or to multiples of `STEP`."""
        needed = rectangle[2] - rectangle[0], rectangle[3] - rectangle[1]
        here = tuple(self._window.GetSize())
        sides = tuple(min(max(STEP, -(-n // STEP) * STEP), whole) for n, whole in zip(needed, self._size, strict=True))
        if all(h >= n for h, n in zip(here, needed, strict=True)) and here[0] * here[1] <= 1.3 * sides[0] * sides[1]:
            sides = here
        left, low = (
            max(0, min(begin, whole - side)) for begin, whole, side in zip(rectangle[:2], self._size, sides, strict=True)
        )
        return left, low, left + sides[0], low + sides[1]

    def _drawn(self, rectangle: Rectangle) -> Picture:
        """Draw a rectangle through the part of the camera's view that belongs to it."""
        from vtkmodules.util.numpy_support import vtk_to_numpy
        from vtkmodules.vtkCommonCore import vtkUnsignedCharArray

        left, low, right, high = rectangle
        wide, tall = right - left, high - low
        if tuple(self._window.GetSize()) != (wide, tall):
            self._window.SetSize(wide, tall)
        tangent = np.tan(np.radians(VIEW_ANGLE / 2)) * tall / self._size[1]
        self._camera.SetViewAngle(2.0 * np.degrees(np.arctan(tangent)))
        self._camera.SetWindowCenter((left + right - self._size[0]) / wide, (low + high - self._size[1]) / tall)
        self._renderer.ResetCameraClippingRange()
        self._window.Render()
        pixels = vtkUnsignedCharArray()
        read = self._window.GetRGBACharPixelData if self._transparent else self._window.GetPixelData
        read(0, 0, wide - 1, tall - 1, 0, pixels, 0)
        flat: Any = vtk_to_numpy(pixels)  # type: ignore[no-untyped-call]
        return np.ascontiguousarray(flat.reshape(tall, wide, -1)[::-1])
