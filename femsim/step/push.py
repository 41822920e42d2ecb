"""Forces from outside the scene on points of its parts: of a hand that pulls, or of a test whether a robot keeps its feet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from contact import closest_points_on_triangles
from femsim.base.errors import InputError
from femsim.base.rotations import cross
from femsim.model.bodies.body import Body
from femsim.model.bodies.outputs import points_of
from femsim.step.rows_kernels import Sums
from femsim.step.stepper import Stepper
from meshes import boundary_triangles

#: Nodes or links of a body that deforms share a force within this part of its size around the point, so that none is torn out.
_REACH = 0.1
#: How far a point may be outside a body, in heights of its nearest element or lengths of its nearest link, as for markers.
_OUTSIDE = 4.0
#: What the shares may lack of the point, relative to that distance, and tries to find some of which none is negative.
_CLOSE, _TRIES = 1e-9, 20
#: Share of a force that is none.
_NOTHING = 1e-12


@dataclass(frozen=True)
class Push:
    """A force on a point of a part; the point goes with the part, the force keeps its direction.

    Attributes
    ----------
    part : int
        Number of the part.
    force : ndarray, (3,), N
        World.
    place : ndarray, (3,), m
        The point of a rigid part, from its centre of mass, in its frame; zero of others.
    nodes, weights : ndarray, (k,)
        Nodes or links of others that share the force, and their shares, whose sum is 1; empty of a rigid part.
    """

    part: int
    force: np.ndarray
    place: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray

    @classmethod
    def at(cls, stepper: Stepper, part: int, point: np.ndarray | None, force: np.ndarray) -> Push:
        """Push a part at the point of it that is nearest to a point of the world, (3,), m; None: at its centre of mass.

        Of a rod that is a point of its centre line.

        Raises
        ------
        InputError
            The part is an obstacle, which nothing moves, or the point is far outside a body that deforms.
        """
        name, body, nothing = stepper.scene.part_names[part], stepper.body_of(part), np.zeros(0)
        if body is None:
            raise InputError(f"push of {name!r}: it is an obstacle, which no force moves; push a body.")
        if body.rigid:
            rotation, centre = stepper.link_pose(part)
            place = np.zeros(3) if point is None else (point - centre) @ rotation
            return cls(part, force, place, nothing.astype(np.int64), nothing)
        points = _points(stepper, part)
        if point is None:
            q = stepper.state.q[stepper.system.q_slices[stepper.scene.parts[part].body]]
            inertia = body.inertia(q, q)
            diagonal = inertia.diagonal(axis1=1, axis2=2).ravel() if isinstance(inertia, np.ndarray) else inertia.diagonal()
            masses = diagonal.reshape(len(points), -1)[:, 0]
            return cls(part, force, np.zeros(3), np.arange(len(points)), masses / masses.sum())
        return cls(part, force, np.zeros(3), *_shares(points, *_few(name, body, points, point)))

    def point(self, stepper: Stepper) -> np.ndarray:
        """Where it acts now, (3,), m."""
        if len(self.nodes):
            return np.asarray(self.weights @ _points(stepper, self.part)[self.nodes])
        rotation, centre = stepper.link_pose(self.part)
        return np.asarray(centre + rotation @ self.place)

    def add(self, stepper: Stepper, out: np.ndarray) -> None:
        """Add it to forces on the rows of all bodies, (n,), N and N m."""
        if len(self.nodes):
            points = _points(stepper, self.part)
            rows = out[stepper.system.v_slices[stepper.scene.parts[self.part].body]].reshape(len(points), -1)
            rows[self.nodes, :3] += self.weights[:, None] * self.force
            return
        placed = stepper.placed
        acting = np.arange(len(placed.reference)) == self.part
        wrench = np.zeros((len(acting), 6))
        wrench[self.part, :3] = self.force
        wrench[self.part, 3:] = cross(self.point(stepper) - placed.reference[self.part], self.force)
        stepper.contacts.places.spread(placed, Sums(wrench, acting.astype(float), out), out)

    def memory(self) -> dict[str, np.ndarray]:
        """Return it as arrays."""
        return {
            "part": np.array(self.part),
            "force": self.force,
            "place": self.place,
            "nodes": self.nodes,
            "weights": self.weights,
        }

    @classmethod
    def of(cls, memory: Mapping[str, np.ndarray]) -> Push:
        """Make the push of which :meth:`memory` gave these arrays."""
        return cls(int(memory["part"]), memory["force"], memory["place"], memory["nodes"], memory["weights"])


def pushed(stepper: Stepper, pushes: Collection[Push]) -> np.ndarray | None:
    """Sum of pushes on the rows of all bodies, (n,), N and N m; None without any."""
    if not pushes:
        return None
    out = np.zeros(stepper.system.n)
    for push in pushes:
        push.add(stepper, out)
    return out


def _few(name: str, body: Body, points: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of a body, (n, 3), m, and their weights, whose mean is the place of it that is nearest to a point, (3,), m.

    Those of the tetrahedron that holds it, else of the nearest triangle of the surface; of a rod, two neighbouring links.
    """
    mesh = body.tetrahedra()
    if mesh is not None:
        corners = points[mesh.tets]
        weights = _barycentric(corners, point)
        least = np.nan_to_num(weights.min(axis=1), nan=-np.inf)
        best = int(np.argmax(least))
        if least[best] >= 0.0:
            return mesh.tets[best], weights[best]
        triangles = boundary_triangles(mesh.tets)
        closest = closest_points_on_triangles(point, points[triangles])
        nearest = int(np.argmin(np.linalg.norm(closest - point, axis=1)))
        _check_near(name, points, point, -least[best])
        a, b, c = points[triangles[nearest]]
        along = np.linalg.lstsq(np.column_stack([b - a, c - a]), closest[nearest] - a, rcond=None)[0]
        return triangles[nearest], np.array([1.0 - along.sum(), *along])
    if body.kind == "links" and len(points) > 1:
        start, way = points[:-1], np.diff(points, axis=0)
        square = np.maximum(np.einsum("ij,ij->i", way, way), np.finfo(float).tiny)
        part = np.einsum("ij,ij->i", point - start, way) / square
        low, high = np.zeros(len(way)), np.ones(len(way))
        low[0], high[-1] = -0.5, 1.5  # half a link beyond the centres of the first and the last one
        part = np.clip(part, low, high)
        away = np.linalg.norm(start + part[:, None] * way - point, axis=1)
        k = int(np.argmin(away))
        _check_near(name, points, point, away[k] / np.sqrt(square[k]))
        return np.array([k, k + 1]), np.array([1.0 - part[k], part[k]])
    return np.array([np.argmin(np.linalg.norm(points - point, axis=1))]), np.ones(1)


def _barycentric(corners: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Barycentric coordinates of a point, (3,), in tetrahedra with these corners, (m, 4, 3): (m, 4); NaN in flat ones."""
    a, b, c = (corners[:, k] - corners[:, 0] for k in (1, 2, 3))
    normals = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.einsum("mij,mj->mi", normals, point - corners[:, 0]) / np.einsum("mj,mj->m", normals[:, 0], a)[:, None]
    return np.column_stack([1.0 - inner.sum(axis=1), inner])


def _check_near(name: str, points: np.ndarray, point: np.ndarray, heights: float) -> None:
    """Refuse a point that is far outside a body of these points, so many heights of its nearest element or link."""
    if heights > _OUTSIDE:
        low, high = (limits.round(4).tolist() for limits in (points.min(axis=0), points.max(axis=0)))
        raise InputError(
            f"push of {name!r}: at is {tuple(float(x) for x in point)} m, far outside it, which spans {low} to {high} now; give "
            "a point in it or near it."
        )


def _shares(points: np.ndarray, few: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Spread a force on a few points of a body, (n, 3), m, over those around, so that it acts at the same place.

    Shares fall with the distance, and are tilted as moving least squares are until their mean is that place; points whose share
    would be negative are left out. Where nothing is left that has this mean, the few points bear it alone.
    """
    place = weights @ points[few]
    away = np.linalg.norm(points - place, axis=1)
    reach = _REACH * float(np.linalg.norm(np.ptp(points, axis=0)))
    share = np.maximum(1.0 - (away - away.min()) / reach, 0.0)
    chosen, wanted = np.flatnonzero(share), np.array([1.0, 0.0, 0.0, 0.0])
    for _ in range(_TRIES):
        basis = np.column_stack([np.ones(len(chosen)), (points[chosen] - place) / reach])
        moments = basis.T @ (share[chosen, None] * basis)
        found = share[chosen] * (basis @ np.linalg.lstsq(moments, wanted, rcond=None)[0])
        if np.abs(basis.T @ found - wanted).max() > _CLOSE:
            break
        shares = found > _NOTHING  # on an edge of a body only its nodes do; the others get what rounding leaves
        if shares.all():
            return chosen, found
        chosen = chosen[shares]
    return few, weights


def _points(stepper: Stepper, part: int) -> np.ndarray:
    """Where the nodes or the centres of the links of a body that deforms are now, (n, 3), m."""
    index = stepper.scene.parts[part].body
    points = points_of(stepper.system.bodies[index].kind, stepper.state.q[stepper.system.q_slices[index]])
    if points is None:
        raise InputError(f"push of {stepper.scene.part_names[part]!r}: its body is neither rigid nor made of points.")
    return points
