"""Rods in rings that are as tight as they are thick: every facet around a link is held off, not some of them in turn."""

from __future__ import annotations

import numpy as np
import pytest

import femsim as fs
from contact import make_solver
from contact.deformable import DeformableDetector, Strand, Surface
from femsim.step.advance import take_step
from femsim.step.stepper import Stepper
from meshes.tetmesh import make_tetmesh

INNER, OUTER, LENGTH, FACETS, PARTS = 3.2e-3, 6e-3, 12e-3, 16, 4
ROD = 3.5e-3


def tube() -> fs.TetMesh:
    """A ring about the z axis, one cell thick."""
    angle = 2.0 * np.pi * np.arange(FACETS) / FACETS
    z = np.linspace(-0.5 * LENGTH, 0.5 * LENGTH, PARTS + 1)
    points = np.array([[r * np.cos(a), r * np.sin(a), h] for a in angle for r in (INNER, OUTER) for h in z])
    around = ((0, 0), (1, 0), (1, 1), (0, 1))
    tets = []
    for i in range(FACETS):
        for k in range(PARTS):
            corner = [((i + di) % FACETS * 2 + dr) * (PARTS + 1) + k + dk for dk in (0, 1) for di, dr in around]
            for a, b in ((1, 2), (2, 3), (3, 7), (7, 4), (4, 5), (5, 1)):
                tet = [corner[0], corner[a], corner[b], corner[6]]
                if np.linalg.det(points[tet[1:]] - points[tet[0]]) < 0.0:
                    tet[1], tet[2] = tet[2], tet[1]
                tets.append(tet)
    return make_tetmesh(points, np.array(tets), name="tube", source="this test")


def test_a_link_in_a_ring_has_contact_with_each_facet_around_it() -> None:
    shell = tube().surface()
    line = np.array([[0.0, 0.0, -2e-3], [0.0, 0.0, 1e-3], [0.0, 0.0, 4e-3]])  # between the rings of vertices
    points = np.concatenate([shell.points, line])
    bodies = [
        Surface(len(shell.points), shell.triangles, np.full(len(shell.triangles), 1e-3)),
        Strand(np.array([0.0, 3e-3, 6e-3]), ROD),
    ]
    found = DeformableDetector(bodies, np.array([[False, True], [True, False]]), points).detect(points, 1e-4)
    middle = len(shell.points) + 1
    own = (found.point == middle).any(axis=(1, 2)) & (np.abs(found.gap - (INNER * np.cos(np.pi / FACETS) - ROD)) < 1e-9)
    angle = np.sort(np.degrees(np.arctan2(found.frame[own, 0, 1], found.frame[own, 0, 0])))
    assert np.diff(angle) == pytest.approx(np.full(FACETS - 1, 360.0 / FACETS), abs=1e-6)


def test_no_facet_of_a_tight_ring_springs_into_the_rod() -> None:
    """A ring that is 0.3 mm too tight presses evenly; before, every second facet was 66 um inside the rod, in turn."""
    scene = fs.Scene("ring", dt=0.005, duration=0.4, theta=1.0, gravity=(0, 0, 0))
    rubber = fs.Elastic(2e5, 0.3, 1000.0, name="rubber", rayleigh_beta=0.01)

    def widened(points: np.ndarray) -> np.ndarray:
        radius = np.hypot(points[:, 0], points[:, 1])
        wider = (radius + 1.05 * (ROD - INNER) * INNER / radius) / radius
        return np.column_stack([points[:, 0] * wider, points[:, 1] * wider, points[:, 2]])

    ring = scene.add_soft("ring", tube(), rubber, start_points=widened)
    scene.hold(ring, lambda points: np.hypot(points[:, 0], points[:, 1]) > OUTER - 1e-4, fs.Motion([0.0], [(0, 0, 0)]))
    z = np.linspace(-0.03, 0.03, 17)
    stiff = fs.Elastic(1e8, 0.3, 1200.0, name="stiff")
    rod = scene.add_rod("rod", np.column_stack([0 * z, 0 * z, z]), fs.circular_section(ROD), stiff, start="clamped")
    scene.set_friction(rod, ring, 0.0)
    stepper = Stepper(scene, make_solver("auto"))
    for _ in range(30):
        report = take_step(stepper)
    assert report.solution.converged and report.max_penetration < 1e-7
    found = report.forces.contacts
    force, height = np.linalg.norm(found.force, axis=1), found.position[:, 2]
    deep = np.abs(height - height[np.argmax(force)]) < 2e-4
    assert deep.sum() >= FACETS and np.ptp(force[deep]) < 0.02 * force.max()
