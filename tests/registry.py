"""What the registry of solvers means for tests that walk over it."""

from __future__ import annotations

from contact import SOLVERS

#: Presets of papers that solve another law, end early or may diverge, as their descriptions say: they need not converge.
LIMITED = {name for name, entry in SOLVERS.items() if getattr(entry.options, "operator", "") == "proximal"}
LIMITED |= {"pgs-ncp", "raisim-ds-es"}
