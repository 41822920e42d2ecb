"""Fonts in SVG files: the letters that a figure uses travel with it, so that it looks the same everywhere and stays text."""

from __future__ import annotations

import base64
import functools
import html
import io
import re

__all__ = ["with_fonts"]

_FILES = {("normal", "normal"): "DejaVuSans", ("oblique", "normal"): "DejaVuSans-Oblique", ("normal", "bold"): "DejaVuSans-Bold"}
_TEXT = re.compile(r"<(text|tspan)\b([^>]*)>([^<]*)(?=<)")


def with_fonts(svg: str) -> str:
    """Return an SVG of matplotlib (``svg.fonttype`` "none") with the fonts that its texts use, reduced to their letters."""
    used: dict[tuple[str, str], set[str]] = {}
    for _, style, text in _TEXT.findall(svg):
        slant = "oblique" if "italic" in style or "oblique" in style else "normal"
        weight = "bold" if re.search(r"\b(bold|700)\b", style) and slant == "normal" else "normal"
        used.setdefault((slant, weight), set()).update(html.unescape(text))
    faces = "".join(
        f"@font-face{{font-family:'DejaVu Sans';font-style:{'italic' if slant == 'oblique' else slant};font-weight:{weight};"
        f"src:url(data:font/woff;base64,{_subset(_FILES[slant, weight], ''.join(sorted(letters)))}) format('woff')}}"
        for (slant, weight), letters in sorted(used.items())
        if letters - {"\n", " "}
    )
    place = svg.find("<defs>")
    if not faces or place < 0:
        return svg
    return f"{svg[:place]}<defs><style>{faces}</style></defs>\n {svg[place:]}"


@functools.lru_cache(maxsize=64)
def _subset(font: str, letters: str) -> str:
    """Reduce a font to some letters, as WOFF in base 64."""
    import matplotlib
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    options = Options()
    options.layout_features = ["kern"]
    options.name_IDs = [0, 1, 2, 13, 14]  # copyright, names and licence stay
    options.hinting = False
    options.drop_tables += ["FFTM"]  # of the editor that made the font
    whole = TTFont(f"{matplotlib.get_data_path()}/fonts/ttf/{font}.ttf", recalcTimestamp=False)
    subsetter = Subsetter(options)
    subsetter.populate(text=letters)
    subsetter.subset(whole)
    whole.flavor = "woff"
    data = io.BytesIO()
    whole.save(data)
    return base64.b64encode(data.getvalue()).decode("ascii")
