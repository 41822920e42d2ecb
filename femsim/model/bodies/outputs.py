"""What bodies answer to frames, sensors and the run folder, and the answers that suit most of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from contact import GroupKind
from femsim.base.errors import InputError
from femsim.model.bodies.soft_output import PressedSurface
from femsim.model.frames import HoldFrame, Tetrahedra
from materials import Elastic


@dataclass(frozen=True)
class Drawing:
    """What frames show of a part at the start.

    Attributes
    ----------
    kind : {"tetra", "line", "points"}
        What its cells are.
    points : ndarray, (n, 3), m
        Points, world.
    cells : ndarray of int, (m, 4), optional
        Corners of tetrahedra; lines and loose points need none.
    """

    kind: Literal["tetra", "line", "points"]
    points: np.ndarray
    cells: np.ndarray | None = None


@dataclass(frozen=True)
class DrawnFrame:
    """What frames show of a part in one state: points (n, 3), m, and fields by name, on points (n, ...) and cells (m, ...)."""

    points: np.ndarray
    point_data: Mapping[str, np.ndarray] = field(default_factory=dict)
    cell_data: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Marker:
    """A material point of a part: nodes or links of the body with their weights, or the centre of a rigid part.

    Attributes
    ----------
    part : int
        Link of a rigid part.
    points : tuple of int
        Nodes, or links of a rod; none for a rigid part.
    weights : tuple of float
        Their weights, which sum to one; none where a single node or link is the point.
    """

    part: int = 0
    points: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()


def points_of(kind: GroupKind, q: np.ndarray) -> np.ndarray | None:
    """Nodes, or centres of links, of coordinates q: (n, 3), m, a view; None for generalized coordinates."""
    if kind == "nodes":
        return q.reshape(-1, 3)
    return q.reshape(-1, 7)[:, :3] if kind == "links" else None


def point_fields(
    x: np.ndarray, start: np.ndarray, v: np.ndarray, force: np.ndarray, names: Collection[str]
) -> dict[str, np.ndarray]:
    """Fields on points from positions x, those at the start (m), velocities (m/s) and contact forces (N), (n, 3) each."""
    out: dict[str, np.ndarray] = {}
    if "velocity" in names:
        out["velocity"] = v
    if "contact_force" in names:
        out["contact_force"] = force
    if "displacement" in names:
        out["displacement"] = x - start
    return out


def describe_elastic(elastic: Elastic) -> dict[str, Any]:
    """Entry of a material in ``run.json``; Prony terms where there are any."""
    entry: dict[str, Any] = {
        "name": elastic.name, "young_modulus_Pa": elastic.young_modulus, "poisson_ratio": elastic.poisson_ratio,
        "density_kgpm3": elastic.density, "rayleigh_alpha_1ps": elastic.rayleigh_alpha, "rayleigh_beta_s": elastic.rayleigh_beta,
    }  # fmt: skip
    if elastic.prony:
        entry |= {"prony_g": [g for g, _ in elastic.prony], "prony_tau_s": [tau for _, tau in elastic.prony]}
    return entry


class OutputDefaults:
    """Answers of a body whose points are its nodes or links, or of a rigid one whose parts are drawn by their shapes."""

    name: str
    kind: GroupKind
    #: coordinates at the start, (n_q,); no answer here, so that a body without its own is said to lack it
    initial_q: Callable[[], np.ndarray]
    what: str = "body"
    rigid: bool = False
    holds_rods: bool = True
    gives_way: bool = False
    advice: str = "is no rigid body; drive rigid bodies and grippers."

    @property
    def contact_radius(self) -> float:
        """The points lie on the surface."""
        return 0.0

    def link_pose(self, q: np.ndarray, link: int) -> tuple[np.ndarray, np.ndarray]:
        """World rotation (3, 3) and centre of mass (3,), m, of a part."""
        raise InputError(f"{self.name}: a {self.what} has no rigid parts, so none of them has a pose.")

    def joint_names(self) -> list[str]:
        """No joints."""
        return []

    def joint_link(self, name: str) -> int:
        """No joint."""
        return -1

    def joint_state(self, q: np.ndarray, v: np.ndarray, link: int) -> tuple[float, float, float, float, int, float]:
        """Refuse: it has no joints with coordinates."""
        raise InputError(f"{self.name}: a {self.what} has no joint that turns or slides.")

    def hangs_on(self, link: int) -> list[int]:
        """Nothing but the link."""
        return [link]

    def drive_joint(self, name: str, drive: Mapping[str, Any]) -> None:
        """Refuse: it has no joints."""
        raise InputError(f"{self.name}: a {self.what} has no joint {name!r} to drive.")

    def drawing(self, link: int) -> Drawing | None:
        """Loose points at the nodes or centres of links; nothing for a rigid part, which its shapes draw."""
        points = points_of(self.kind, self.initial_q())
        return None if points is None else Drawing("points", points)

    def frame(self, q: np.ndarray, v: np.ndarray, force: np.ndarray, names: Collection[str]) -> DrawnFrame:
        """Points with velocity, contact force and displacement, and with the radius that pictures draw, if any."""
        x, start = points_of(self.kind, q), points_of(self.kind, self.initial_q())
        if x is None or start is None:
            raise InputError(f"{self.name}: a {self.what} has no points to draw; its parts need shapes.")
        stride = 3 if self.kind == "nodes" else 6
        velocity, pull = (rows.reshape(-1, stride)[:, :3] for rows in (v, force))
        radius = {"radius": np.full(len(x), self.contact_radius)} if self.contact_radius > 0.0 else {}
        return DrawnFrame(x, radius | point_fields(x, start, velocity, pull, names))

    def marker(self, what: str, link: int, node: int | None, at: np.ndarray | None) -> Marker:
        """Marker on a node, a link of a rod, or the centre of a rigid part."""
        if at is not None:
            raise InputError(f"{what}: 'at' places a marker on a soft body, instead of a node; leave one of them out.")
        points = points_of(self.kind, self.initial_q())
        if points is None:
            if node is not None:
                raise InputError(f"{what}: node is {node}, but {self.name!r} is rigid and has no nodes; leave it out.")
            return Marker(link)
        if node is None:
            last = len(points) - 1
            raise InputError(f"{what}: where on {self.name!r}? Give node=, 0 to {last}, or at=, a place on a soft body.")
        if node not in range(len(points)):
            raise InputError(f"{what}: node {node} of {self.name!r}; allowed are 0 to {len(points) - 1}.")
        return Marker(link, (int(node),))

    def marker_position(self, q: np.ndarray, marker: Marker) -> np.ndarray:
        """Position of a marker, (3,), m, world."""
        points = points_of(self.kind, q)
        if points is None:
            return self.link_pose(q, marker.part)[1]
        if marker.weights:
            return np.asarray(points[list(marker.points)].T @ marker.weights)
        return np.asarray(points[marker.points[0]])

    def sensor_kinds(self, link: int) -> frozenset[str]:
        """Kinds of sensors that this part has beside those of every part."""
        return frozenset({"energy"})

    def describe(self) -> dict[str, Any]:
        """Nothing beside mass and velocities."""
        return {}

    def tetrahedra(self) -> Tetrahedra | None:
        """No tetrahedra."""
        return None

    def tetrahedra_at_start(self) -> Tetrahedra | None:
        """No tetrahedra."""
        return None

    def pressed_surface(self) -> PressedSurface | None:
        """No surface with an area."""
        return None

    def surface_distance(self, points: np.ndarray) -> np.ndarray:
        """Refuse: its parts have no surface of their own but their shapes."""
        raise InputError(f"{self.name}: a {self.what} has no surface that could hold the end of a rod.")

    def hold_frame(self, link: int, pose: np.ndarray, radius: float) -> HoldFrame:
        """Refuse: nothing of it can carry a frame."""
        raise InputError(f"{self.name}: a {self.what} carries no frame, for a joint or the end of a rod.")

    def held_end(self, end: int, back: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Refuse: only rods have ends."""
        raise InputError(f"{self.name}: a {self.what} has no ends that anything holds.")

    def link_momentum(self, q: np.ndarray, v: np.ndarray, link: int) -> tuple[float, np.ndarray]:
        """Refuse: it has no links that joints carry."""
        raise InputError(f"{self.name}: a {self.what} has no links on joints.")
