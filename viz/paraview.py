"""Script that shows a run in ParaView: bodies coloured by a field, rods as tubes, contact forces as arrows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from viz.errors import VizError
from viz.files import replacing
from viz.marks import COLOURS
from viz.series import open_frames
from viz.stage import ARROW, RIGID, legend
from viz.survey import Survey, chosen_field, frames_of, is_line, is_soft
from viz.vtk_series import EXTENSION

__all__ = ["write_paraview_script"]

_SCRIPT = """# Shows this run in ParaView 5.11 or newer: paraview --script=show_in_paraview.py
# With PICTURE=FILE.png in the environment it saves a picture of the last frame: pvbatch show_in_paraview.py
import os

from paraview.simple import *

HERE = os.path.dirname(os.path.abspath(globals().get("__file__", {here!r} + "/show_in_paraview.py")))
PARTS = {parts!r}  # name, kind, file, point or cell field
FIELD, LIMIT, LEGEND = {field!r}, {limit!r}, {legend!r}  # coloured from 0 to the limit
ARROW_SCALE, SIZE = {arrow!r}, {size!r}  # m/N, m
LIGHT_TO_DARK, GREYS, RED = {colours!r}, {greys!r}, {red!r}

view = GetActiveViewOrCreate("RenderView")
view.UseColorPaletteForBackground = 0
view.Background = [1.0, 1.0, 1.0]
view.ViewSize = [1280, 960]
colours = GetColorTransferFunction(FIELD)
colours.RGBPoints = [x for k, c in enumerate(LIGHT_TO_DARK) for x in (k / (len(LIGHT_TO_DARK) - 1) * LIMIT, *c)]
colours.ColorSpace = "Lab"
colours.AutomaticRescaleRangeMode = "Never"
sources = [OpenDataFile(os.path.join(HERE, file)) for _, _, file, _ in PARTS]
animation = GetAnimationScene()
animation.UpdateAnimationUsingDataTimeSteps()
animation.GoToLast()
bar_of = None
for number, ((name, kind, file, place), shown) in enumerate(zip(PARTS, sources)):
    RenameSource(name, shown)
    shown.UpdatePipeline(animation.AnimationTime)
    if kind == "line":
        shown = Tube(registrationName=name + " tube", Input=shown, Radius={radius!r}, NumberofSides=16)
    if kind == "contacts":
        if ARROW_SCALE == 0:
            continue
        shown = Glyph(registrationName="contact forces", Input=shown, GlyphType="Arrow", GlyphMode="All Points")
        shown.OrientationArray = shown.ScaleArray = ["POINTS", "force"]
        shown.ScaleFactor = ARROW_SCALE
        shown.GlyphTransform.Translate = [-1.0, 0.0, 0.0]  # the tip is at the contact
    look = Show(shown, view)
    if place:
        ColorBy(look, (place, FIELD))
        bar_of = look
    else:
        look.ColorArrayName = ["POINTS", ""]
        look.AmbientColor = look.DiffuseColor = RED if kind == "contacts" else GREYS[number % len(GREYS)]
    if name == "floor":
        look.AmbientColor = look.DiffuseColor = [0.93, 0.94, 0.95]
colours.RescaleTransferFunction(0.0, LIMIT)
if bar_of is not None:
    bar_of.SetScalarBarVisibility(view, True)
    bar = GetScalarBar(colours, view)
    bar.Title, bar.ComponentTitle = LEGEND, ""
    bar.TitleColor = bar.LabelColor = [0.17, 0.18, 0.21]
view.CameraViewUp = [0.0, 0.0, 1.0]
view.CameraFocalPoint = {middle!r}
view.CameraPosition = [m + 2.2 * SIZE * d for m, d in zip({middle!r}, (0.44, -0.80, 0.38))]
view.CameraViewAngle = 30.0
Render(view)
if "PICTURE" in os.environ:
    SaveScreenshot(os.environ["PICTURE"], view)
"""


def write_paraview_script(run_dir: Path, field: str | None = None) -> Path:
    """Write ``RUN/show_in_paraview.py``; an existing one is replaced.

    The script opens each part as a source with its name, colours soft bodies and rods by the field with the colours and range of
    `render_run`, and draws rods as tubes, contact forces as arrows and all other parts in grey. The run folder may be moved.

    Parameters
    ----------
    run_dir : Path
        Run folder with frames in either format.
    field : str, optional
        Field of soft bodies or rods; default as in `render_run`.

    Returns
    -------
    Path
        The script.

    Raises
    ------
    VizError
        When there are no frames, no body has the field, or the script cannot be written.
    """
    run_dir = Path(run_dir)
    series = open_frames(run_dir)
    frames = frames_of(run_dir, max(1, len(series.times) // 20))
    required, field = field is not None, chosen_field(frames[0]) if field is None else field
    survey = Survey.of(frames, field, required)
    parts: list[tuple[str, str, str, str]] = []
    radius = 0.0
    for name in series.parts:
        data = frames[0].read(name)
        place = "POINTS" if field in data.point_data else "CELLS" if field in data.cell_data else ""
        kind = "tetra" if is_soft(data) else "line" if is_line(data) else "contacts" if name == "contacts" else "triangle"
        if kind == "line":
            radius = float(np.asarray(data.point_data["radius"])[0])
        ending = "vtkhdf" if series.path.suffix == ".vtkhdf" else f"{EXTENSION['points' if kind == 'contacts' else kind]}.series"
        parts.append((name, kind, f"frames/{name}.{ending}", place if kind in ("tetra", "line") else ""))
    middle = (survey.corners.min(axis=0) + survey.corners.max(axis=0)) / 2
    quantity, unit, _ = legend(field, 0.0)  # as in the files: not scaled
    text = _SCRIPT.format(
        legend=f"{quantity} [{unit}]" if unit else quantity,
        here=str(run_dir.resolve()), parts=parts, field=field, limit=survey.limit, arrow=survey.arrow_scale, size=survey.size,
        colours=[_rgb(c) for c in COLOURS], greys=[_rgb(c) for c in RIGID], red=_rgb(ARROW), radius=radius,
        middle=[float(x) for x in middle],
    )  # fmt: skip
    path = run_dir / "show_in_paraview.py"
    try:
        with replacing(path) as temporary:
            Path(temporary).write_text(text, encoding="utf-8")
    except OSError as error:
        raise VizError(f"{path} cannot be written ({error.strerror}); make the run folder writable.") from error
    return path


def _rgb(colour: str) -> list[float]:
    """Read #rrggbb as three numbers from 0 to 1."""
    return [round(int(colour[k : k + 2], 16) / 255, 3) for k in (1, 3, 5)]
