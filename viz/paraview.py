"""Script that shows a run in ParaView: bodies coloured by a field, rods as tubes, contact forces as arrows, the time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from viz.camera import VIEW_ANGLE, placed_camera
from viz.errors import VizError
from viz.files import replacing
from viz.marks import COLOURS
from viz.series import open_frames
from viz.stage import ARROW, RigidColours, legend
from viz.survey import Survey, chosen_field, frames_of, is_line, is_soft
from viz.vtk_series import EXTENSION

__all__ = ["write_paraview_script"]

_SCRIPT = """# Shows this run in ParaView 5.11 or newer: paraview --script=show_in_paraview.py
# With PICTURE=FILE.png in the environment it saves a picture of the last frame: pvbatch show_in_paraview.py
import os

from paraview.simple import *

# the run folder: that of this file, which ParaView's window does not name; where it was written; the working folder
PLACES = [os.path.dirname(os.path.abspath(globals().get("__file__", "x"))), {here!r}, os.getcwd()]
HERE = next((place for place in PLACES if os.path.isfile(os.path.join(place, {first!r}))), None)
if HERE is None:
    raise SystemExit("no frames in " + " or ".join(PLACES) + "; start ParaView in the run folder.")
PARTS = {parts!r}  # name, kind, file, point or cell field
FIELD, LIMIT, LEGEND = {field!r}, {limit!r}, {legend!r}  # coloured from 0 to the limit
ARROW_SCALE = {arrow!r}  # m/N
LIGHT_TO_DARK, GREYS, RED, INK = {colours!r}, {greys!r}, {red!r}, [0.17, 0.18, 0.21]

paraview.simple._DisableFirstRenderCameraReset()  # it would make room for the whole floor
view = GetActiveViewOrCreate("RenderView")
view.UseColorPaletteForBackground = 0
view.Background = [1.0, 1.0, 1.0]
view.ViewSize = [1280, 960]
view.OrientationAxesLabelColor = INK
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
        shown.GlyphType.TipResolution = shown.GlyphType.ShaftResolution = 24
        shown.GlyphTransform.Translate = [-1.0, 0.0, 0.0]  # the tip is at the contact
    look = Show(shown, view)
    if place:
        ColorBy(look, (place, FIELD))
        bar_of = look
    else:
        look.ColorArrayName = ["POINTS", ""]
        look.AmbientColor = look.DiffuseColor = RED if kind == "contacts" else GREYS[number]
    if name == "floor":
        look.AmbientColor = look.DiffuseColor = [0.93, 0.94, 0.95]
        look.Ambient, look.Diffuse = 1.0, 0.0  # as light from wherever one looks
colours.RescaleTransferFunction(0.0, LIMIT)
if bar_of is not None:
    bar_of.SetScalarBarVisibility(view, True)
    bar = GetScalarBar(colours, view)
    bar.Title, bar.ComponentTitle = LEGEND, ""
    bar.HorizontalTitle = 1
    bar.AutomaticLabelFormat, bar.LabelFormat, bar.RangeLabelFormat = 0, "%g", "%g"
    bar.WindowLocation, bar.Position, bar.ScalarBarLength = "Any Location", [0.9, 0.4], 0.4
    bar.TitleColor = bar.LabelColor = INK
clock = AnnotateTimeFilter(registrationName="time", Input=sources[0], Format="t = {{time:.{digits}f}} s")
clock = Show(clock, view)
clock.WindowLocation, clock.Color, clock.FontSize = "Upper Left Corner", INK, 24
view.CameraViewUp = {up!r}
view.CameraFocalPoint = {focus!r}
view.CameraPosition = {position!r}
view.CameraViewAngle = {angle!r}
view.CenterOfRotation = {focus!r}
Render(view)
if "PICTURE" in os.environ:
    SaveScreenshot(os.environ["PICTURE"], view)
"""


def write_paraview_script(run_dir: Path, field: str | None = None) -> Path:
    """Write ``RUN/show_in_paraview.py``; an existing one is replaced.

    The script opens each part as a source with its name, colours soft bodies and rods by the field with the colours, range and
    camera of `render_run`, and draws rods as tubes, contact forces as arrows and all other parts in grey. It shows the time and a
    colour bar with the unit. The run folder may be moved.

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
    radius, hues = 0.0, RigidColours(survey.still)
    for name in series.parts:
        data = frames[0].read(name)
        place = "POINTS" if field in data.point_data else "CELLS" if field in data.cell_data else ""
        kind = "tetra" if is_soft(data) else "line" if is_line(data) else "contacts" if name == "contacts" else "triangle"
        if kind == "line":
            radius = float(np.asarray(data.point_data["radius"])[0])
        ending = "vtkhdf" if series.path.suffix == ".vtkhdf" else f"{EXTENSION['points' if kind == 'contacts' else kind]}.series"
        parts.append((name, kind, f"frames/{name}.{ending}", place if kind in ("tetra", "line") else ""))
    view = placed_camera("iso", survey.framed, 4 / 3)
    last = max(series.times[-1], 1e-9)
    quantity, unit, _ = legend(field, 0.0)  # as in the files: not scaled
    text = _SCRIPT.format(
        legend=f"{quantity} [{unit}]" if unit else quantity,
        here=str(run_dir.resolve()), parts=parts, field=field, limit=survey.limit, arrow=survey.arrow_scale, first=parts[0][2],
        colours=[_rgb(c) for c in COLOURS], greys=[_rgb(hues.of(name)) for name in series.parts], red=_rgb(ARROW), radius=radius,
        up=view.up.tolist(), focus=view.focal_point.tolist(), position=view.position.tolist(), angle=VIEW_ANGLE,
        digits=max(2, 3 - math.floor(math.log10(last))),
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
