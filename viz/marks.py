"""What is written on a picture: time, speed of the film, name of the run, colour bar, scale bar."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

INK = "#2b2f36"
COLOURS = ("#f0dfb4", "#a9d3b4", "#4fb0b8", "#2a72ad", "#2f4796", "#33297a")  # light to dark, also in grey
TICKS = 4  # steps of the colour bar
#: A scale bar is about this share of the width of a picture.
BAR_SHARE = 0.12

#: Power of the size of a picture that letters follow below 1280 x 960.
SHRINK = 0.6

__all__ = ["COLOURS", "INK", "Marks", "length_text", "over", "round_down", "side_by_side"]


def round_down(value: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is not above a positive value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * max(factor for factor in (1, 2, 5) if factor * power <= value))


def length_text(metres: float) -> str:
    """Write a length with the unit that suits it: 20 mm, 0.5 µm, 2 m."""
    factor, unit = next((f, u) for f, u in ((1.0, "m"), (1e-2, "cm"), (1e-3, "mm"), (1e-6, "µm"), (0.0, "nm")) if metres >= f)
    if unit == "cm":  # of a scene of some decimetres mm are read more easily up to 50
        factor, unit = (1e-3, "mm") if metres < 0.1 else (factor, unit)
    return f"{metres / (factor or 1e-9):.3g} {unit}"


class Marks:
    """The marks of the pictures of one run; those that do not change are drawn once.

    Parameters
    ----------
    size : (int, int)
        Width and height of a picture, pixel.
    title : str
        Name of the run; "" for none.
    metres_per_pixel : float, m
        At the middle of the scene; 0 for no scale bar.
    bar : (str, str, float, bool), optional
        Colour bar: quantity, unit, upper end in that unit, whether some values lie above it.
    """

    def __init__(
        self, size: tuple[int, int], title: str, metres_per_pixel: float, bar: tuple[str, str, float, bool] | None
    ) -> None:
        from PIL import Image, ImageDraw

        self._size = size
        #: Pixels for one of a picture of 1280 x 960; in small pictures, which stand side by side, letters shrink less.
        share = min(size[0] / 1280, size[1] / 960)
        self._pixels = share if share >= 1.0 else share**SHRINK
        width, height = size
        layers: list[Any] = [Image.new("RGBA", size, (0, 0, 0, 0)) for _ in range(3)]
        pens = [ImageDraw.Draw(layer) for layer in layers]
        if title:
            pens[0].text((0.97 * width, 0.035 * height), title, INK, self._font(26), anchor="rt")
        if metres_per_pixel > 0.0:
            self._scale_bar(pens[1], metres_per_pixel)
        if bar is not None:
            self._colour_bar(pens[2], *bar)
        self._marks = [(box, layer.crop(box)) for layer in layers if (box := layer.getbbox())]

    def put(self, picture: npt.NDArray[np.uint8], time: str, speed: str = "") -> npt.NDArray[np.uint8]:
        """Return a picture, shape (height, width, 3 or 4), with the marks, the time and the speed of the film."""
        from PIL import Image

        new = picture.copy()
        for (left, top, right, bottom), mark in self._marks:  # the rest of the picture, most of it, is left as it is
            window = new[top:bottom, left:right]
            window[:] = self._laid(Image.fromarray(window), mark)
        at = (0.03 * self._size[0], 0.035 * self._size[1])
        font = self._font(30)
        self._write(new, at, time, font)
        if speed:
            self._write(new, (at[0], at[1] + 1.4 * font.size), speed, self._font(22))
        return new

    @staticmethod
    def _laid(under: Any, mark: Any) -> npt.NDArray[np.uint8]:
        """Lay a mark with transparency over a part of a picture."""
        both = under.convert("RGBA")
        both.alpha_composite(mark)
        return np.asarray(both.convert(under.mode))

    @staticmethod
    def _write(picture: npt.NDArray[np.uint8], at: tuple[float, float], text: str, font: Any) -> None:
        """Write a text whose upper left corner is at a place [pixel]."""
        from PIL import Image, ImageDraw

        left, top, right, bottom = ImageDraw.Draw(Image.new("L", (1, 1))).textbbox(at, text, font, anchor="lt")
        x, y = max(0, int(left) - 1), max(0, int(top) - 1)
        window = picture[y : int(bottom) + 2, x : int(right) + 2]
        written = Image.fromarray(window)
        ImageDraw.Draw(written).text((at[0] - x, at[1] - y), text, INK, font, anchor="lt")
        window[:] = np.asarray(written)

    def _font(self, size: float) -> Any:
        return _font(max(8, round(size * self._pixels)))

    def _scale_bar(self, pen: Any, metres_per_pixel: float) -> None:
        """Draw a length of the scene at the lower left."""
        length = round_down(BAR_SHARE * self._size[0] * metres_per_pixel * 1.5)
        across = length / metres_per_pixel
        left, low = 0.03 * self._size[0], 0.965 * self._size[1]
        thick, end = max(1.0, 2.5 * self._pixels), 8 * self._pixels
        pen.rectangle((left, low - thick, left + across, low), fill=INK)
        for x in (left, left + across - thick):
            pen.rectangle((x, low - thick / 2 - end, x + thick, low - thick / 2 + end), fill=INK)
        pen.text((left + across / 2, low - end - 4 * self._pixels), length_text(length), INK, self._font(22), anchor="mb")

    def _colour_bar(self, pen: Any, quantity: str, unit: str, limit: float, beyond: bool) -> None:
        """Draw the colours at the right edge, the numbers right of them, what they mean above."""
        width, height = self._size
        texts = [f"{limit * tick / TICKS:.3g}" for tick in range(TICKS + 1)]
        texts[-1] = f"≥ {texts[-1]}" if beyond else texts[-1]
        widest = max(self._font(21).getlength(text) for text in texts)
        right = min(0.940 * width, 0.995 * width - widest - 8 * self._pixels)
        left = right - 0.015 * width
        top, bottom = round(0.28 * height), round(0.76 * height)
        stops = np.array([[int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in COLOURS], dtype=float)
        place = np.linspace(0.0, 1.0, len(stops))
        for y in range(top, bottom):
            share = (bottom - 0.5 - y) / (bottom - top)
            colour = tuple(round(float(np.interp(share, place, stops[:, k]))) for k in range(3))
            pen.rectangle((left, y, right, y + 1), fill=colour)
        for tick, text in enumerate(texts):
            at = (right + 8 * self._pixels, bottom - (bottom - top) * tick / TICKS)
            pen.text(at, text, INK, self._font(21), anchor="lm")
        font = self._font(22)
        longest = int(16 * min(1.0, width / 1280 / self._pixels))  # letters; no wider than in a large picture
        for line, text in enumerate(reversed([*_lines(quantity, longest), *([f"in {unit}"] if unit else [])])):
            pen.text((0.985 * width, top - (0.8 + 1.25 * line) * font.size), text, INK, font, anchor="rs")


@functools.cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.truetype(_font_file(), size)


@functools.cache
def _font_file() -> str:
    """Return the file of the font that matplotlib brings; importing that takes as long as three pictures."""
    found = importlib.util.find_spec("matplotlib")
    for folder in found.submodule_search_locations or () if found else ():
        file = Path(folder) / "mpl-data/fonts/ttf/DejaVuSans.ttf"
        if file.is_file():
            return str(file)
    import matplotlib

    return f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"  # where a system keeps it elsewhere


def _lines(text: str, longest: int) -> list[str]:
    """Break a text into lines."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > longest:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def side_by_side(pictures: Sequence[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    """Set pictures side by side; one alone is not copied."""
    return pictures[0] if len(pictures) == 1 else np.hstack(list(pictures))


def over(pictures: Sequence[npt.NDArray[np.uint8]], background: tuple[int, int, int] = (255, 255, 255)) -> npt.NDArray[np.uint8]:
    """Set pictures side by side and lay those with transparency, shape (height, width, 4), over a background."""
    whole = side_by_side(pictures)
    if whole.shape[2] == 3:
        return whole
    share = whole[:, :, 3:] / 255.0
    return np.asarray(share * whole[:, :, :3] + (1.0 - share) * np.array(background) + 0.5, dtype=np.uint8)
