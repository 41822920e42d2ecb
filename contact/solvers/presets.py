"""Solvers of the papers by their names: one of our engines with other defaults, each of which an option may still change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from contact.solvers.sweeps import LocalSolver, PgsOptions


@dataclass(frozen=True)
class PgsCcpOptions(PgsOptions):
    """PGS-CCP of papers/004: cone projection without correction. Solves the convex relaxation."""

    solver_name: ClassVar[str] = "pgs-ccp"

    operator: Literal["strict", "lagged", "proximal"] = "proximal"
    local: LocalSolver = "cone"
    least_relaxation: float = 1.0


@dataclass(frozen=True)
class PgsCcpDsOptions(PgsCcpOptions):
    """PGS-CCP with the correction of De Saxce, as Table I of papers/004 marks it."""

    solver_name: ClassVar[str] = "pgs-ccp-ds"

    operator: Literal["strict", "lagged", "proximal"] = "lagged"


@dataclass(frozen=True)
class PgsNcpOptions(PgsOptions):
    """PGS-NCP of papers/004: normal force, then tangent by the smaller entry of W_tt. Diverges where the two differ much."""

    solver_name: ClassVar[str] = "pgs-ncp"

    local: LocalSolver = "decoupled-min"
    least_relaxation: float = 1.0


@dataclass(frozen=True)
class NbgsOptions(PgsOptions):
    """NBGS of papers/004: least energy on the section of the cone, no correction. Not the contact law where W_nt != 0."""

    solver_name: ClassVar[str] = "nbgs"

    operator: Literal["strict", "lagged", "proximal"] = "proximal"
    local: LocalSolver = "ellipse"
    least_relaxation: float = 1.0


@dataclass(frozen=True)
class RaisimOptions(NbgsOptions):
    """RaiSim of papers/004: the energy of NBGS, found by a walk from the sticking force. Not the contact law where W_nt != 0."""

    solver_name: ClassVar[str] = "raisim"

    local: LocalSolver = "bisection"


@dataclass(frozen=True)
class RaisimDsOptions(RaisimOptions):
    """RaiSim-DS of papers/004: with the correction of De Saxce."""

    solver_name: ClassVar[str] = "raisim-ds"

    operator: Literal["strict", "lagged", "proximal"] = "lagged"


@dataclass(frozen=True)
class RaisimDsEsOptions(RaisimDsOptions):
    """RaiSim-DS-ES of papers/004: ends where the energy no longer changes, which says little about accuracy."""

    solver_name: ClassVar[str] = "raisim-ds-es"

    stop: Literal["law", "plateau"] = "plateau"
