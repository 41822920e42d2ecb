"""Pictures: write the time series that ParaView opens, render it, plot the tables of a run.

The tour, in the order of use:

`vtk_series`
    `PvdSeries` writes a PVD index beside one .vtu/.vtp file a body and frame, safe against a killed run;
    `PartFrame` is one body at one time; `read_pvd` and `read_part` read the series back.
`render`
    `probe_rendering` says whether this machine can draw (and which packages to install when not);
    `render_run` makes stills and a film of a run folder without a display.
`plots`
    `plot_run` draws forces, solver, energy and penetration from the tables of a run folder; `plot_convergence` draws
    residuals of several solvers.
`comparison`
    `plot_comparison` lays a run over the logs of an experiment; `comparison_page` makes one HTML page of it.

Units are SI. Wrong input raises `VizError`. VTK, pyvista, matplotlib and imageio are imported when they are
first needed, so importing this package costs nothing. It imports nothing else of femsim.
"""

from viz.comparison import comparison_page, plot_comparison
from viz.errors import VizError
from viz.plots import plot_convergence, plot_run
from viz.render import RenderingStatus, RenderResult, probe_rendering, render_run
from viz.vtk_series import PartFrame, PvdSeries, read_part, read_pvd

__all__ = [
    "PartFrame",
    "PvdSeries",
    "RenderResult",
    "RenderingStatus",
    "VizError",
    "comparison_page",
    "plot_comparison",
    "plot_convergence",
    "plot_run",
    "probe_rendering",
    "read_part",
    "read_pvd",
    "render_run",
]
