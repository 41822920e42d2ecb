"""Pictures: time series for ParaView, renderings, plots and reports of runs.

The tour, in the order of use:

`vtk_series`
    `PvdSeries` writes a PVD index and one .vtu/.vtp file per body and frame, safe if the run is killed;
    `read_pvd` and `read_part` read the series back. `vtk_xml` writes the files, `vtk_reading` reads them with every number
    checked.
`vtk_hdf`
    `HdfSeries` writes the same data as compressed VTKHDF, topology only once, into files that no kill breaks (`safe_file`);
    both write in a thread (`background`).
`parts`
    `PartFrame` is one body at one time, for both formats.
`series`
    `open_frames` reads a run folder in either format; `repair_frames` (in `repair`) mends one that a kill left. `claims` says
    what a file may claim to hold.
`ending`
    how a run ended, also one that was killed and could not say so.
`render`
    `probe_rendering` reports whether this machine can draw (and if not, which packages to install);
    `render_run` makes stills and films of run folders without a display. `schedule` chooses frames, `survey` scans a run before
    the first picture, `camera` places the camera, `stage` draws, on a `canvas`, with the `ground` below and the `marks` on top;
    `film` and `animation` write; `cells` makes VTK's data sets.
`view`
    `view_run` shows a run in the browser, even while it is running, with curves of sensors (`view_plot`); `scene_page` draws
    bodies (`page_body`), contact forces and floor there, `gate` says who may see it.
`play`
    `PlayView` shows a simulation while it is stepped, and what the mouse pulls there; `LiveSeries` holds its newest frame.
`paraview`
    `write_paraview_script` writes a script that shows a run in ParaView.
`plots`
    `plot_runs` plots forces, solver, energy and penetration from the tables of run folders (`tables` reads them), `plot_run`
    those of one;
    `plot_convergence` plots the residuals of several solvers, `plot_performance` their performance profiles. `look` has size,
    font and labels of all of them, `fonts` the letters that travel with an SVG.
`comparison`
    `plot_comparison` plots runs over experiment logs, and their errors; `comparison_page` makes an HTML page of it.
`calibration`
    `plot_calibration` plots the convergence of a calibration, `plot_profiles` its profiles; `calibration_page` makes an HTML
    page.
`sweep_plots`
    `plot_sweep` plots the metrics of a sweep over its parameters, `plot_sensitivity` Sobol indices.
`report`
    `write_report` writes an HTML page about a run. `page` has the building blocks of all pages.

`files` writes files that are whole or not there. Units are SI. Invalid input raises `VizError` (in `errors`). VTK, pyvista,
matplotlib and imageio are imported on first use, so importing this package costs nothing. It imports nothing else of femsim.
"""

from viz.calibration import calibration_page, plot_calibration, plot_profiles
from viz.comparison import ComparedRun, comparison_page, plot_comparison
from viz.errors import VizError
from viz.look import Look
from viz.paraview import write_paraview_script
from viz.parts import PartFrame
from viz.play import LiveSeries, PlayView, Pull
from viz.plots import plot_convergence, plot_performance, plot_run, plot_runs
from viz.render import RenderingStatus, RenderResult, probe_rendering, render_run
from viz.repair import repair_frames
from viz.report import write_report
from viz.series import FrameSeries, open_frames
from viz.sweep_plots import plot_sensitivity, plot_sweep
from viz.view import view_run
from viz.vtk_hdf import HdfSeries
from viz.vtk_reading import read_part
from viz.vtk_series import PvdSeries, read_pvd

__all__ = [
    "ComparedRun",
    "FrameSeries",
    "HdfSeries",
    "LiveSeries",
    "Look",
    "PartFrame",
    "PlayView",
    "Pull",
    "PvdSeries",
    "RenderResult",
    "RenderingStatus",
    "VizError",
    "calibration_page",
    "comparison_page",
    "open_frames",
    "plot_calibration",
    "plot_comparison",
    "plot_convergence",
    "plot_performance",
    "plot_profiles",
    "plot_run",
    "plot_runs",
    "plot_sensitivity",
    "plot_sweep",
    "probe_rendering",
    "read_part",
    "read_pvd",
    "render_run",
    "repair_frames",
    "view_run",
    "write_paraview_script",
    "write_report",
]
