"""Solvers of the papers by their names: one of our engines with other defaults, each of which an option may still change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from contact.solvers.penalty import Policy
from contact.solvers.splitting import AdmmOptions, Operator
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


@dataclass(frozen=True)
class PAdmmOptions(AdmmOptions):
    """P-ADMM of papers/003: scaled by contact, balanced, no momentum. With operator "proximal" its law too."""

    solver_name: ClassVar[str] = "p-admm"

    policy: Policy = "balanced"
    accelerate: bool = False


@dataclass(frozen=True)
class PFadmmOptions(AdmmOptions):
    """P-FADMM of papers/003: scaled by contact, momentum with restart, fixed rho 0.05."""

    solver_name: ClassVar[str] = "p-fadmm"

    penalty: float | Literal["spectral"] = 0.05
    policy: Policy = "fixed"


@dataclass(frozen=True)
class FadmmOptions(PFadmmOptions):
    """FADMM of papers/003: as P-FADMM, not scaled; rho in m/(N s)."""

    solver_name: ClassVar[str] = "fadmm"

    scaling: Literal["contact", "none"] = "none"


@dataclass(frozen=True)
class AdmmNcpFpOptions(AdmmOptions):
    """ADMM-NCP-FP of papers/004: correction of De Saxce, fixed rho 1 m/(N s), not scaled."""

    solver_name: ClassVar[str] = "admm-ncp-fp"

    operator: Operator = "lagged"
    penalty: float | Literal["spectral"] = 1.0
    policy: Policy = "fixed"
    every: int = 1
    scaling: Literal["contact", "none"] = "none"
    accelerate: bool = False


@dataclass(frozen=True)
class AdmmNcpLaOptions(AdmmNcpFpOptions):
    """ADMM-NCP-LA of papers/004: rho changes by 1.5 where one residual is ten times the other."""

    solver_name: ClassVar[str] = "admm-ncp-la"

    policy: Policy = "linear"


@dataclass(frozen=True)
class AdmmNcpSaOptions(AdmmNcpFpOptions):
    """ADMM-NCP-SA of papers/004: rho from the largest eigenvalue of W, changed by a power of the condition number."""

    solver_name: ClassVar[str] = "admm-ncp-sa"

    penalty: float | Literal["spectral"] = "spectral"
    policy: Policy = "spectral"


@dataclass(frozen=True)
class AdmmCcpOptions(AdmmNcpFpOptions):
    """ADMM-CCP of papers/004: no correction, fixed rho 1 m/(N s). Solves the convex relaxation."""

    solver_name: ClassVar[str] = "admm-ccp"

    operator: Operator = "proximal"
