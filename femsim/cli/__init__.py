"""The command line: ``femsim run | solve | bench | compare | sweep | calibrate | render | view | doctor | ...``.

`base`
    the app, shared types of options, and how every error becomes a sentence: `execute(arguments)` returns the exit status.
`tools`
    what several commands print and read: tables, progress bars, NAME=VALUE, names of folders that are free.
`scenes`
    run, resume, repair, describe, scenes, materials, fit-material, doctor.
`problems`
    solve, bench, solvers.
`studies`
    compare, sweep, sensitivity, calibrate, reproduce, selftest.
`pictures`
    render, plot, report, view, play, paraview.
`doctor`, `compilation`
    what works on this machine; the kernels of the common scenes, compiled ahead.
`beside`, `kernel_list`
    a second process that compiles for a first run; which kernels that will call.

A command is a function under ``@app.command``; it registers itself when its module is imported; help, site and tests find it
there. It reads its arguments, calls a function of the rooms below, prints, and returns an exit status of ``femsim.base.status``.
Rooms are imported inside the commands, so that ``femsim --help`` loads nothing heavy. A command has a parameter for each option,
however many these are.
"""

from femsim.cli import pictures, problems, scenes, studies
from femsim.cli.base import app, execute, main

__all__ = ["app", "execute", "main", "pictures", "problems", "scenes", "studies"]
