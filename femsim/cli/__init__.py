"""The command line: ``femsim run | solve | bench | reproduce | describe | scenes | materials | fit-material | solvers | ...``.

``base`` holds the app, exit statuses, types of options and the way errors become sentences; ``tools`` what several commands
print and read; each other module a family of commands, which register themselves when it is imported.

Exit status: 0 done and converged, 1 internal error, 2 wrong input, 3 finished but some step did not converge, 130 interrupted.
Heavy imports stay inside the commands, so that ``femsim --help`` is quick.
"""

from femsim.cli import pictures, problems, scenes, studies
from femsim.cli.base import app, execute, main

__all__ = ["app", "execute", "main", "pictures", "problems", "scenes", "studies"]
