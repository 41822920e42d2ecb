"""Bodies by their class, for who works on one kind alone: drives of robots, and studies of rods or soft bodies.

Everybody else asks a body what it answers (``body``) and never for its class; a test finds who does.
"""

from __future__ import annotations

from collections.abc import Iterable

from femsim.model.bodies.body import Body
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from femsim.model.bodies.tree import TreeBody


def robot(body: Body) -> TreeBody | None:
    """Body as a robot; None where it is none."""
    return body if isinstance(body, TreeBody) else None


def rods(bodies: Iterable[Body]) -> list[Rod]:
    """Those that are rods."""
    return [body for body in bodies if isinstance(body, Rod)]


def soft_bodies(bodies: Iterable[Body]) -> list[SoftBody]:
    """Those that are soft bodies of tetrahedra."""
    return [body for body in bodies if isinstance(body, SoftBody)]
