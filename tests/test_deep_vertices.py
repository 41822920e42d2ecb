"""What is far from a vertex is not looked at closely; none is inside that would not be by a look further."""

from __future__ import annotations

import numpy as np

import femsim as fs
from contact.deformable import DeformableContacts, DeformableDetector, Surface
from contact.side_kernels import VERTEX_FACE


def inside(found: DeformableContacts) -> set[tuple[int, int, int, float]]:
    """Vertices that are inside: body, other body, vertex and gap."""
    own = (found.kind == VERTEX_FACE) & (found.gap < 0.0)
    body, vertex, gap = found.body[own], found.point[own, 0, 0], found.gap[own]
    return {(int(a), int(b), int(p), float(g)) for (a, b), p, g in zip(body, vertex, gap, strict=True)}


def test_what_is_inside_is_so_by_every_margin() -> None:
    """A face ahead of a vertex that is nearer than the one behind it says that it is outside, also beyond the margin."""
    rng, found = np.random.default_rng(3), 0
    blocks = [fs.box_tets((0.04, 0.03, 0.05), 3), fs.box_tets((0.08, 0.08, 0.004), (6, 6, 1)), fs.ball_tets(0.02, 6)]
    for trial in range(120):
        bodies, points = [], []
        for _ in range(3):
            surface = blocks[rng.integers(3)].surface()
            used, corners = np.unique(surface.triangles, return_inverse=True)
            corners = corners.reshape(-1, 3)
            turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            turn *= np.sign(np.linalg.det(turn))
            size = 10.0 ** rng.uniform(-5.0, -3.0)
            own = surface.points[used] @ turn.T + rng.uniform(-0.03, 0.03, 3) + size * rng.normal(size=(len(used), 3))
            bodies.append(Surface(len(used), corners, rng.uniform(0.005, 0.02, len(corners)), rigid=bool(rng.integers(2))))
            points.append(own)
        where = np.concatenate(points)
        detector = DeformableDetector(bodies, ~np.eye(3, dtype=np.bool_), where)
        near, far = (inside(detector.detect(where, margin)) for margin in (0.0, 0.004))
        assert near <= far, trial
        found += len(near)
    assert found > 1000
