"""Pictures: write the time series that ParaView opens, render it, plot the tables of a run.

The tour, in the order of use:

`vtk_series`
    `PvdSeries` writes a PVD index beside one .vtu/.vtp file a body and frame, safe against a killed run;
    `read_pvd` and `read_part` read the series back. `vtk_xml` makes its files.
`vtk_hdf`
    `HdfSeries` writes the same as VTKHDF, topology once and compressed.
`parts`
    `PartFrame` is one body at one time, in both formats.
`series`
    `open_frames` reads a run folder in either format.
`render`
    `probe_rendering` says whether this machine can draw (and which packages to install when not);
    `render_run` makes stills and films of run folders without a display. `survey` looks through a run before the first
    picture, `stage` draws, `film` writes.
`view`
    `view_run` shows a run in the browser, also while it goes on.
`paraview`
    `write_paraview_script` writes a script that shows a run in ParaView.
`plots`
    `plot_runs` draws forces, solver, energy and penetration from the tables of run folders, `plot_run` of one;
    `plot_convergence` draws residuals of several solvers.
`comparison`
    `plot_comparison` lays a run over the logs of an experiment; `comparison_page` makes one HTML page of it.
`calibration`
    `plot_calibration` draws how a calibration converged, `plot_profiles` its profiles; `calibration_page` makes one HTML page.
`sweep_plots`
    `plot_sweep` draws the metrics of a sweep over its parameters, `plot_sensitivity` indices of sensitivity.
`report`
    `write_report` writes one HTML page about a run. `page` has the pieces of both pages.

Units are SI. Wrong input raises `VizError`. VTK, pyvista, matplotlib and imageio are imported when they are
first needed, so importing this package costs nothing. It imports nothing else of femsim.
"""

from viz.calibration import calibration_page, plot_calibration, plot_profiles
from viz.comparison import comparison_page, plot_comparison
from viz.errors import VizError
from viz.paraview import write_paraview_script
from viz.parts import PartFrame
from viz.plots import plot_convergence, plot_run, plot_runs
from viz.render import RenderingStatus, RenderResult, probe_rendering, render_run
from viz.report import write_report
from viz.series import FrameSeries, open_frames
from viz.sweep_plots import plot_sensitivity, plot_sweep
from viz.view import view_run
from viz.vtk_hdf import HdfSeries
from viz.vtk_series import PvdSeries, read_part, read_pvd

__all__ = [
    "FrameSeries",
    "HdfSeries",
    "PartFrame",
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
    "plot_profiles",
    "plot_run",
    "plot_runs",
    "plot_sensitivity",
    "plot_sweep",
    "probe_rendering",
    "read_part",
    "read_pvd",
    "render_run",
    "view_run",
    "write_paraview_script",
    "write_report",
]
