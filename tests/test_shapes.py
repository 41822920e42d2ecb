"""Shapes: signed distances against slow twins, every region and border, the mesh grid, validation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from contact.errors import ContactError
from contact.sdf_grid import make_grid, triangle_table, triangle_tree
from contact.sdf_kernels import BEYOND, TOGETHER, distance_beyond, offset_from_closest, signed_distance as every, supported
from contact.shapes import (
    Box,
    Capsule,
    Cylinder,
    Mesh,
    PlacedShape,
    Plane,
    Sphere,
    closest_points_on_triangles,
    signed_distance,
)

BOX = Box((0.3, 0.2, 0.5))
SPHERE = Sphere(0.4)
CAPSULE = Capsule(0.2, 0.35)
CYLINDER = Cylinder(0.3, 0.45)
PRIMITIVES = [Plane(), BOX, SPHERE, CAPSULE, CYLINDER]
SOLIDS = [BOX, SPHERE, CAPSULE, CYLINDER]


def kind(value):
    return type(value).__name__


# ---- slow twins


def naive_distance(shape, p):
    """Signed distance of one point by projection on the solid, or by the list of faces when inside."""
    if isinstance(shape, Plane):
        return p[2]
    if isinstance(shape, Sphere):
        return np.linalg.norm(p) - shape.radius
    if isinstance(shape, Capsule):
        a, b = np.array([0, 0, -shape.half_length]), np.array([0, 0, shape.half_length])
        t = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        return np.linalg.norm(p - (a + t * (b - a))) - shape.radius
    if isinstance(shape, Box):
        nearest = np.clip(p, -shape.half_extents, shape.half_extents)
        if (nearest != p).any():
            return np.linalg.norm(p - nearest)
        return -min(min(h - x, h + x) for h, x in zip(shape.half_extents, p, strict=True))
    rho = np.hypot(p[0], p[1])
    radial, axial = min(rho, shape.radius), np.clip(p[2], -shape.half_length, shape.half_length)
    if radial < rho or axial != p[2]:
        return np.hypot(rho - radial, p[2] - axial)
    return -min(shape.radius - rho, shape.half_length - p[2], shape.half_length + p[2])


def surface_samples(shape, n):
    """Points spread over the surface of a solid, written down from its parametrisation."""
    if isinstance(shape, Box):
        u = np.linspace(-1, 1, n)
        a, b = (g.ravel() for g in np.meshgrid(u, u))
        faces = [np.roll(np.column_stack([np.full(a.size, s), a, b]), k, axis=1) for s in (-1, 1) for k in range(3)]
        return np.concatenate(faces) * shape.half_extents
    angle = np.linspace(0, 2 * np.pi, 2 * n, endpoint=False)

    def revolve(r, z):
        return np.concatenate([np.column_stack([r * np.cos(a), r * np.sin(a), z]) for a in angle])

    s, t = np.linspace(0, 1, n), np.linspace(0, np.pi / 2, n)
    if isinstance(shape, Sphere):
        polar = np.linspace(0, np.pi, n)
        return revolve(shape.radius * np.sin(polar), shape.radius * np.cos(polar))
    r, h = shape.radius, shape.half_length
    side = (np.full(n, r), h * (2 * s - 1))
    if isinstance(shape, Cylinder):
        profile = [side, (r * s, np.full(n, h)), (r * s, np.full(n, -h))]
    else:
        profile = [side, (r * np.sin(t), h + r * np.cos(t)), (r * np.sin(t), -h - r * np.cos(t))]
    return np.concatenate([revolve(*part) for part in profile])


def segment_distance(p, a, b):
    t = np.clip(np.einsum("...k,...k", p - a, b - a) / np.einsum("...k,...k", b - a, b - a), 0.0, 1.0)
    return np.linalg.norm(p - (a + t[..., None] * (b - a)), axis=-1)


def exact_mesh_distance(p, points, triangles):
    """Signed distance of p (n, 3): every triangle as plane or three segments; sign by the winding number."""
    a, b, c = (points[triangles[:, i]] for i in range(3))
    q = p[:, None, :]
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    height = np.einsum("ntk,tk->nt", q - a, normal)
    foot = q - height[..., None] * normal
    inside = np.ones(height.shape, dtype=bool)
    for u, v in ((a, b), (b, c), (c, a)):
        inside &= np.einsum("ntk,tk->nt", foot - u, np.cross(normal, v - u)) >= 0.0
    edges = np.minimum(np.minimum(segment_distance(q, a, b), segment_distance(q, b, c)), segment_distance(q, c, a))
    distance = np.where(inside, np.abs(height), edges).min(axis=1)
    # solid angle of each triangle: van Oosterom & Strackee 1983
    ra, rb, rc = a - q, b - q, c - q
    la, lb, lc = (np.linalg.norm(r, axis=2) for r in (ra, rb, rc))
    top = np.einsum("ntk,ntk->nt", ra, np.cross(rb, rc))
    bottom = (
        la * lb * lc
        + np.einsum("ntk,ntk->nt", ra, rb) * lc
        + np.einsum("ntk,ntk->nt", rb, rc) * la
        + np.einsum("ntk,ntk->nt", rc, ra) * lb
    )
    winding = 2.0 * np.arctan2(top, bottom).sum(axis=1) / (4.0 * np.pi)
    return np.where(winding > 0.5, -distance, distance)


def box_mesh(half):
    points = np.array(list(itertools.product((-1.0, 1.0), repeat=3))) * half
    triangles = []
    for axis, side in itertools.product(range(3), (-1, 1)):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        corner = {
            (u, v): int(np.flatnonzero((np.sign(points)[:, [axis, i, j]] == (side, u, v)).all(axis=1))[0])
            for u, v in itertools.product((-1, 1), repeat=2)
        }
        loop = [corner[-1, -1], corner[1, -1], corner[1, 1], corner[-1, 1]][::side]
        triangles += [[loop[0], loop[1], loop[2]], [loop[0], loop[2], loop[3]]]
    return points, np.array(triangles)


def torus_mesh(n=24, m=12, large=0.3, small=0.12):
    """A torus with a square-wave tube: not convex, with ridges and grooves."""
    u, v = 2 * np.pi * np.arange(n) / n, 2 * np.pi * np.arange(m) / m
    tube = small * (1.0 + 0.3 * (np.arange(m) % 2))
    points = [
        ((large + r * np.cos(w)) * np.cos(a), (large + r * np.cos(w)) * np.sin(a), r * np.sin(w))
        for a in u
        for w, r in zip(v, tube, strict=True)
    ]
    triangles = []
    for i, j in itertools.product(range(n), range(m)):
        a, b = i * m + j, (i + 1) % n * m + j
        c, d = (i + 1) % n * m + (j + 1) % m, i * m + (j + 1) % m
        triangles += [[a, b, c], [a, c, d]]
    return np.array(points), np.array(triangles)


# ---- primitives


@pytest.mark.parametrize("shape", PRIMITIVES, ids=kind)
def test_distance_equals_slow_twin(shape):
    rng = np.random.default_rng(1)
    p = rng.uniform(-0.7, 0.7, (3000, 3))
    distance, normal = signed_distance(shape, p)
    np.testing.assert_allclose(distance, [naive_distance(shape, q) for q in p], rtol=0, atol=2e-15)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, rtol=0, atol=1e-15)
    assert 50 < (distance < 0).sum() < 2950


@pytest.mark.parametrize("shape", SOLIDS, ids=kind)
def test_foot_is_on_the_surface_and_no_surface_point_is_nearer(shape):
    rng = np.random.default_rng(2)
    p = rng.uniform(-0.8, 0.8, (200, 3))
    distance, normal = signed_distance(shape, p)
    foot = p - distance[:, None] * normal
    assert max(abs(naive_distance(shape, q)) for q in foot) < 1e-14
    samples = surface_samples(shape, 80)
    nearest = np.array([np.linalg.norm(samples - q, axis=1).min() for q in p])
    assert (nearest >= np.abs(distance) - 1e-14).all()
    assert (nearest <= np.abs(distance) + 0.03).all()


@pytest.mark.parametrize("shape", PRIMITIVES, ids=kind)
def test_normal_equals_central_differences(shape):
    rng = np.random.default_rng(3)
    p, h = rng.uniform(-1, 1, (2000, 3)), 1e-6
    _, normal = signed_distance(shape, p)
    steps = h * np.eye(3)
    difference = np.column_stack([(signed_distance(shape, p + e)[0] - signed_distance(shape, p - e)[0]) / (2 * h) for e in steps])
    # where the nearest surface point jumps within the step there is no gradient: left out by the normals at
    # the ends
    ends = [signed_distance(shape, p + sign * e)[1] for e in steps for sign in (-1, 1)]
    smooth = np.all([np.linalg.norm(n - normal, axis=1) < 1e-3 for n in ends], axis=0)
    assert smooth.mean() > 0.99
    np.testing.assert_allclose(normal[smooth], difference[smooth], rtol=0, atol=2e-9)


def test_box_outside_regions():
    """All 26 regions around a box: faces, edges, corners; and at +-1e-12 across each border."""
    half = BOX.half_extents
    for region in itertools.product((-1, 0, 1), repeat=3):
        if region == (0, 0, 0):
            continue
        side = np.array(region, dtype=float)
        p = side * (half + 0.1) + (side == 0) * 0.4 * half
        (distance,), (normal,) = signed_distance(BOX, [p])
        count = np.abs(side).sum()
        assert distance == pytest.approx(0.1 * np.sqrt(count), rel=1e-14)
        np.testing.assert_allclose(normal, side / np.sqrt(count), atol=1e-14)
        for axis in range(3):  # the border between this region and its neighbour along the axis
            for border in (-half[axis], half[axis]):
                at = p.copy()
                at[axis] = border
                ends = np.array([at, at, at])
                ends[0, axis] -= 1e-12
                ends[2, axis] += 1e-12
                distance, normal = signed_distance(BOX, ends)
                np.testing.assert_allclose(distance, [naive_distance(BOX, q) for q in ends], rtol=0, atol=1e-16)
                if (np.delete(side, axis) != 0).any():  # smooth there; elsewhere it is the surface itself
                    np.testing.assert_allclose(normal - normal[1], 0.0, atol=1.1e-11)


@pytest.mark.parametrize("step", [-1e-12, 0.0, 1e-12])
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_box_surface_and_edges(axis, side, step):
    """On a face, an edge and a corner, and 1e-12 inside and outside of it."""
    half = BOX.half_extents
    p = 0.3 * half
    p[axis] = side * (half[axis] + step)
    (distance,), (normal,) = signed_distance(BOX, [p])
    assert distance == pytest.approx(step, abs=2e-16)
    np.testing.assert_array_equal(normal, side * np.eye(3)[axis])
    other = (axis + 1) % 3
    p[other] = half[other] + step
    (distance,), (normal,) = signed_distance(BOX, [p])
    assert distance == pytest.approx(step * np.sqrt(2) if step > 0 else step, abs=3e-16)
    if step > 0:
        np.testing.assert_allclose(normal, (side * np.eye(3)[axis] + np.eye(3)[other]) / np.sqrt(2), atol=1e-3)
    else:
        assert np.abs(normal).sum() == 1.0
        assert abs(normal[axis]) + normal[other] == 1.0
        assert normal[axis] in (0.0, side)
    last = (axis + 2) % 3
    p[last] = -half[last] - step
    (distance,), (normal,) = signed_distance(BOX, [p])
    assert distance == pytest.approx(step * np.sqrt(3) if step > 0 else step, abs=4e-16)


def test_box_inside_ties():
    cube = Box((1.0, 1.0, 1.0))
    points = [[0, 0, 0], [0.5, 0.5, 0.5], [-0.5, 0.5, 0.5], [0.2, -0.5, 0.5], [0.2, 0.1, -0.5]]
    distance, normal = signed_distance(cube, points)
    np.testing.assert_array_equal(distance, [-1, -0.5, -0.5, -0.5, -0.5])
    np.testing.assert_array_equal(normal, [[1, 0, 0], [1, 0, 0], [-1, 0, 0], [0, -1, 0], [0, 0, -1]])
    p = np.array([0.5, 0.5, 0.1])  # 1e-12 across the diagonal plane x = y
    _, normal = signed_distance(cube, p + 1e-12 * np.eye(3)[:2])
    np.testing.assert_array_equal(normal, [[1, 0, 0], [0, 1, 0]])


def test_cylinder_regions():
    r, h = CYLINDER.radius, CYLINDER.half_length
    w = np.sqrt(0.5)
    cases = [
        ((r + 0.1, 0, 0.2), 0.1, (1, 0, 0)),  # side
        ((0, -0.1, h + 0.2), 0.2, (0, 0, 1)),  # upper cap
        ((0, 0.1, -h - 0.2), 0.2, (0, 0, -1)),  # lower cap
        ((0, r + 0.3, h + 0.4), 0.5, (0, 0.6, 0.8)),  # upper rim
        ((-r - 0.4, 0, -h - 0.3), 0.5, (-0.8, 0, -0.6)),  # lower rim
        ((0, r - 0.05, 0), -0.05, (0, 1, 0)),  # inside, near the side
        ((0.1, 0, h - 0.05), -0.05, (0, 0, 1)),  # inside, near the upper cap
        ((0.1, 0, 0.05 - h), -0.05, (0, 0, -1)),  # inside, near the lower cap
        ((0, 0, 0), -r, (1, 0, 0)),  # on the axis
        ((0, 0, h + 0.1), 0.1, (0, 0, 1)),  # on the axis, outside
        ((0, 0, h - r), -r, (1, 0, 0)),  # tie of side and cap: the side
    ]
    points, distances, normals = (np.array(column, dtype=float) for column in zip(*cases, strict=True))
    distance, normal = signed_distance(CYLINDER, points)
    np.testing.assert_allclose(distance, distances, rtol=0, atol=1e-16)
    np.testing.assert_allclose(normal, normals, rtol=0, atol=1e-15)
    rim = np.array([r, 0.0, h])
    for dr, dz in itertools.product((-1e-12, 0.0, 1e-12), repeat=2):
        p = rim + np.array([dr, 0.0, dz])
        (distance,), (normal,) = signed_distance(CYLINDER, [p])
        assert distance == pytest.approx(naive_distance(CYLINDER, p), abs=1e-16)
        assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-15)
        if dr > 0 and dz > 0:
            np.testing.assert_allclose(normal, [w, 0, w], atol=1e-3)
    for z in (h - 1e-12, h, h + 1e-12):  # from side to rim: smooth
        (distance,), (normal,) = signed_distance(CYLINDER, [[r + 0.1, 0, z]])
        assert distance == pytest.approx(0.1, abs=1e-16)
        np.testing.assert_allclose(normal, [1, 0, 0], atol=1.1e-11)
    for x in (r - 1e-12, r, r + 1e-12):  # from cap to rim: smooth
        (distance,), (normal,) = signed_distance(CYLINDER, [[x, 0, h + 0.1]])
        assert distance == pytest.approx(0.1, abs=2e-16)
        np.testing.assert_allclose(normal, [0, 0, 1], atol=1.1e-11)


def test_capsule_regions():
    r, h = CAPSULE.radius, CAPSULE.half_length
    points = [[0, 0, 0], [0, 0, h], [0, 0, h + 0.1], [0, 0, -h - 0.3], [0, -0.5, 0.1], [0.3, 0, h + 0.4]]
    distance, normal = signed_distance(CAPSULE, points)
    np.testing.assert_allclose(distance, [-r, -r, 0.1 - r, 0.3 - r, 0.5 - r, 0.5 - r], rtol=0, atol=1e-15)
    expected = [[1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, -1], [0, -1, 0], [0.6, 0, 0.8]]
    np.testing.assert_allclose(normal, expected, rtol=0, atol=1e-15)
    for end in (-h, h):  # from the side to the round end: smooth
        for step in (-1e-12, 0.0, 1e-12):
            (distance,), (normal,) = signed_distance(CAPSULE, [[0.3, 0, end + step]])
            assert distance == pytest.approx(0.3 - r, abs=1e-16)
            np.testing.assert_allclose(normal, [1, 0, 0], atol=1e-11)


def test_sphere_and_plane():
    distance, normal = signed_distance(SPHERE, [[0, 0, 0], [0, -0.4, 0], [0, 0.4 + 1e-12, 0]])
    np.testing.assert_allclose(distance, [-0.4, 0, 1e-12], rtol=0, atol=1e-16)
    np.testing.assert_array_equal(normal, [[0, 0, 1], [0, -1, 0], [0, 1, 0]])
    distance, normal = signed_distance(Plane(), [[5, 6, 1e-12], [0, 0, 0], [1, 2, -3]])
    np.testing.assert_array_equal(distance, [1e-12, 0, -3])
    np.testing.assert_array_equal(normal, [[0, 0, 1]] * 3)


# ---- mesh


def spike_mesh(n=20):
    """A thin tetrahedron, one side cut into n slivers that meet at the tip: the sign there needs angles."""
    front = np.column_stack([np.linspace(-0.2, 0.2, n + 1), np.zeros(n + 1), np.zeros(n + 1)])
    points = np.vstack([front, [0.0, 0.3, 0.0], [0.0, 0.1, 1.0]])
    back, tip = n + 1, n + 2
    sides = [[i, i + 1, tip] for i in range(n)] + [[n, back, tip], [back, 0, tip]]
    return points, np.array(sides + [[i + 1, i, back] for i in range(n)])


@pytest.mark.parametrize(
    "make",
    [torus_mesh, lambda: box_mesh(np.array([0.3, 0.2, 0.5])), spike_mesh],
    ids=["torus", "box", "spike"],
)
def test_grid_nodes_are_exact(make):
    """Against all triangles by brute force, signed by solid angles, at nodes all over the grid."""
    points, triangles = make()
    grid = make_grid(points, triangles, resolution=25, padding=0.1)
    rng = np.random.default_rng(4)
    index = rng.integers(0, grid.values.shape, (4000, 3))
    exact = exact_mesh_distance(grid.origin + grid.spacing * index, points, triangles)
    np.testing.assert_allclose(grid.values[tuple(index.T)], exact, rtol=0, atol=1e-14)
    assert (exact < 0).sum() > 60


def needles_mesh():
    """A slab far from the origin, closed, with triangles that were cut in two again and again, some of them into needles."""
    points, triangles = box_mesh(np.array([0.3, 0.2, 0.02]))
    for _ in range(9):
        a, b, c = triangles[0]
        neighbour = next(t for t in range(1, len(triangles)) if {a, b} <= set(triangles[t].tolist()))
        (d,) = set(triangles[neighbour].tolist()) - {a, b}
        points, m = np.vstack([points, points[a] + 0.4 * (points[b] - points[a])]), len(points)
        rest = np.delete(triangles, [0, neighbour], axis=0)
        triangles = np.vstack([[a, m, c], rest, [m, b, c], [b, m, d], [m, a, d]])
    mesh = Mesh(points + np.array([1000.0, -500.0, 200.0]), triangles)  # which checks that it is closed
    return mesh.points, mesh.triangles


@pytest.mark.parametrize("make", [torus_mesh, spike_mesh, needles_mesh])
def test_grid_nodes_have_the_bits_of_a_search_through_all_triangles(make):
    """Blocks, boxes and planes only leave out triangles that are not the closest ones; ties go to the first."""
    points, triangles = make()
    grid = make_grid(points, triangles, resolution=22, padding=0.13)
    corners, normals = triangle_table(points, triangles)
    everything = np.arange(len(triangles))
    nodes = np.stack(np.meshgrid(*map(np.arange, grid.values.shape), indexing="ij"), axis=-1).reshape(-1, 3)
    for i, j, k in nodes[np.random.default_rng(9).permutation(len(nodes))[:3000]]:
        x, y, z = grid.origin + grid.spacing * np.array([i, j, k])
        assert grid.values[i, j, k] == every((x, y, z), corners, normals, everything, len(everything)), (i, j, k)


def test_a_plane_that_bounds_a_triangle_lies_before_it():
    """For any offset, also one of no length, the plane says no more than the true distance of any other place."""
    rng = np.random.default_rng(10)
    for corners in rng.standard_normal((300, 1, 3, 3)):
        corners[0, 2] = np.where(rng.uniform() < 0.5, corners[0, 2], corners[0, 0] + 1e-9 * corners[0, 2])  # half are needles
        p, x = rng.standard_normal((2, 3))
        foot = closest_points_on_triangles(p, corners)[0]
        distance = np.linalg.norm(p - foot)
        for offset in (p - foot, rng.standard_normal(3), np.zeros(3)):
            level, slope = supported(tuple(p), tuple(offset), corners, 0)
            true = np.linalg.norm(x - closest_points_on_triangles(x, corners)[0])
            assert level + np.dot(slope, x - p) <= true + 1e-14
            if np.array_equal(offset, p - foot):
                assert level == pytest.approx(distance, abs=1e-7)  # through the closest point


def test_mesh_distance_between_nodes():
    """Interpolation stays within its bound everywhere, and is of second order beside a smooth surface."""
    points, triangles = torus_mesh()
    mesh = Mesh(points, triangles)
    grid = mesh.grid()
    rng = np.random.default_rng(5)
    lower, upper = mesh.aabb
    p = rng.uniform(lower - 0.05, upper + 0.05, (3000, 3))
    distance, normal = signed_distance(mesh, p)
    error = np.abs(distance - exact_mesh_distance(p, points, triangles))
    assert error.max() <= 0.5 * np.sqrt(3) * grid.spacing
    assert np.median(error) < 0.02 * grid.spacing
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, rtol=0, atol=1e-14)


def test_a_grid_is_measured_where_something_is_near_to_the_same_bits():
    """Points in one corner of a torus, also on both sides of the border between chunks, leave most of its grid unknown."""
    late, early = Mesh(*torus_mesh()), Mesh(*torus_mesh())
    whole = early.grid()
    nodes = np.random.default_rng(8).uniform(4.0, 14.0, (300, 3))
    nodes[:3] = [[8.5] * 3, [9.0] * 3, [8.0, 8.0, 9.0]]
    p = whole.origin + whole.spacing * nodes
    for found, same in zip(signed_distance(late, p), signed_distance(early, p), strict=True):
        assert np.isfinite(found).all() and found.tobytes() == same.tobytes()
    begun = late.growing_grid()
    assert begun.known.sum() == 8 < begun.known.size
    measured = begun.values.copy()
    assert np.isnan(measured).mean() > 0.9
    assert late.grid().values.tobytes() == whole.values.tobytes() and late.growing_grid() is begun
    assert np.nanmax(np.abs(measured - whole.values)) == 0.0


def test_mesh_normal_is_the_gradient_of_the_interpolant():
    mesh = Mesh(*torus_mesh(), resolution=20)
    grid = mesh.grid()
    rng = np.random.default_rng(6)
    cell = rng.integers(0, np.array(grid.values.shape) - 1, (500, 3))
    p = grid.origin + grid.spacing * (cell + rng.uniform(0.01, 0.99, (500, 3)))
    h = 1e-3 * grid.spacing
    slope = np.column_stack(
        [(signed_distance(mesh, p + e)[0] - signed_distance(mesh, p - e)[0]) / (2 * h) for e in h * np.eye(3)]
    )
    slope /= np.linalg.norm(slope, axis=1)[:, None]
    np.testing.assert_allclose(signed_distance(mesh, p)[1], slope, rtol=0, atol=1e-9)


def test_box_mesh_equals_box():
    half = np.array([0.3, 0.2, 0.5])
    mesh, box = Mesh(*box_mesh(half)), Box(half)
    spacing = mesh.grid().spacing
    rng = np.random.default_rng(7)
    p = rng.uniform(-half - 0.09, half + 0.09, (5000, 3))
    (d_mesh, n_mesh), (d_box, n_box) = signed_distance(mesh, p), signed_distance(box, p)
    assert np.abs(d_mesh - d_box).max() <= 0.5 * np.sqrt(3) * spacing
    # exact where it is linear: beside a face, more than two cells from all edges and from the medial surface,
    # which has a sheet between opposite faces too
    q = np.abs(p) - half
    order = np.sort(q, axis=1)
    clear = (order[:, 1] < -2 * spacing) & (order[:, 2] > order[:, 1] + 4 * spacing)
    clear &= order[:, 2] > 2 * spacing - half.min()
    assert clear.sum() > 500
    np.testing.assert_allclose(d_mesh[clear], d_box[clear], rtol=0, atol=1e-14)
    np.testing.assert_allclose(n_mesh[clear], n_box[clear], rtol=0, atol=1e-11)


def test_outside_the_grid():
    mesh = Mesh(*box_mesh(np.array([0.3, 0.2, 0.5])))
    reach = mesh.grid().origin + mesh.grid().spacing * (np.array(mesh.grid().values.shape) - 1)
    assert (reach >= [0.4 - 1e-12, 0.3 - 1e-12, 0.6 - 1e-12]).all()
    distance, normal = signed_distance(mesh, [reach + 1e-9, -reach - 1e-9, reach - 1e-9])
    assert distance[0] == distance[1] == np.inf and np.isfinite(distance[2])
    np.testing.assert_array_equal(normal[:2], 0.0)
    wide = mesh.grid(largest_radius=0.25)
    assert (wide.origin <= [-0.65 + 1e-12, -0.55 + 1e-12, -0.85 + 1e-12]).all()
    assert wide is mesh.grid(0.25)
    assert mesh.grid(0.1 * mesh.grid().spacing) is mesh.grid()  # as many whole cells


@pytest.mark.parametrize("make", [torus_mesh, spike_mesh, needles_mesh, lambda: box_mesh(np.array([0.3, 0.2, 0.5]))])
def test_beyond_a_grid_the_distance_has_the_bits_of_a_search_through_all_triangles(make):
    """The tree only leaves out triangles that are not the closest ones; ties go to the first, and near bounds change nothing."""
    points, triangles = make()
    tree = triangle_tree(points, triangles)
    n = -(-len(triangles) // TOGETHER)
    assert len(tree) == n * BEYOND
    corners = np.ascontiguousarray(tree[12 * n :].reshape(-1, 3, 3))
    assert {t.tobytes() for t in corners} == {t.tobytes() for t in points[triangles]}
    rng, low, high = np.random.default_rng(11), points.min(axis=0), points.max(axis=0)
    size = float((high - low).max())
    # all around, far away, along axes through the middle, where many triangles are as close, beside vertices, and inside
    where = rng.uniform(low - size, high + size, (300, 3))
    where[:50] += 30.0 * size * rng.standard_normal((50, 3))
    where[50:90] = 0.5 * (low + high) + size * np.repeat([(0, 0, 1.5), (0, -2, 0), (1.25, 0, 0), (3, 3, 3)], 10, axis=0)
    where[90:150] = points[rng.integers(0, len(points), 60)] + 0.1 * size * rng.standard_normal((60, 3))
    ties = 0
    for x, y, z in where:
        squares, offsets = [], []
        for t in range(len(corners)):
            offset = offset_from_closest((x, y, z), corners, t)[0]
            squares.append(offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2])
            offsets.append(offset)
        first = int(np.argmin(squares))
        ties += squares.count(squares[first]) > 1
        distance = float(np.sqrt(squares[first]))
        exact = (distance, *(part / distance for part in offsets[first]))
        for bound in (np.inf, 2.0 * distance, (1.0 + 1e-12) * distance):
            assert distance_beyond(x, y, z, bound, tree, 0, n) == exact
        for bound in (0.99 * distance, 0.3 * distance, 0.0, -size):
            assert distance_beyond(x, y, z, bound, tree, 0, n) == (np.inf, 0.0, 0.0, 0.0)
    assert ties > 10
    assert distance_beyond(*corners[3, 1], np.inf, tree, 0, n) == (0.0, 0.0, 0.0, 1.0)


# ---- features, bounds


@pytest.mark.parametrize(
    ("shape", "counts"),
    [
        (Plane(), (0, 0, 0)),
        (BOX, (8, 26, 56)),
        (SPHERE, (1, 1, 1)),
        (CAPSULE, (2, 3, 4)),
        (CYLINDER, (32, 48, 64)),
        (Mesh(*box_mesh(np.array([0.3, 0.2, 0.5])), resolution=8), (8, 26, 44)),
    ],
    ids=lambda value: kind(value) if not isinstance(value, tuple) else "",
)
def test_features_lie_on_the_surface_and_within_the_bounds(shape, counts):
    for extra, count in enumerate(counts):
        points, radii = shape.features(extra)
        assert points.shape == (count, 3) and radii.shape == (count,)
        if count == 0:
            continue
        solid = BOX if isinstance(shape, Mesh) else shape
        depth = np.array([naive_distance(solid, p) for p in points])
        np.testing.assert_allclose(depth, -radii, rtol=0, atol=1e-15)
        lower, upper = shape.aabb
        assert (points - radii[:, None] >= lower - 1e-15).all() and (points + radii[:, None] <= upper + 1e-15).all()
        assert len(np.unique(points.round(12), axis=0)) == count


@pytest.mark.parametrize("shape", SOLIDS, ids=kind)
def test_bounds_are_tight(shape):
    samples = surface_samples(shape, 81)
    lower, upper = shape.aabb
    np.testing.assert_allclose(samples.min(axis=0), lower, rtol=0, atol=1e-3)
    np.testing.assert_allclose(samples.max(axis=0), upper, rtol=0, atol=1e-3)
    assert np.linalg.norm(samples, axis=1).max() == pytest.approx(shape.bounding_radius, abs=1e-12)


# ---- validation


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sphere(0.0), ["Sphere", "radius", "0.0"]),
        (lambda: Sphere(float("nan")), ["radius", "nan"]),
        (lambda: Sphere("0.1"), ["radius", "'0.1'"]),
        (lambda: Capsule(0.1, -1.0), ["Capsule", "half_length", "-1.0"]),
        (lambda: Capsule(1e308, 0.1), ["Capsule", "radius", "1e+308", "up to 1e+06 m"]),
        (lambda: Box((1.0, 2e6, 1.0)), ["Box", "half_extents along y", "2e+06", "up to 1e+06 m"]),
        (lambda: Cylinder(float("inf"), 1.0), ["Cylinder", "radius", "inf"]),
        (lambda: Box(1.0, 2.0, 3.0), ["half_extents is one argument, not 3", "Box((1.0, 2.0, 3.0)), in m"]),
        (lambda: Box((1.0, 2.0)), ["Box", "half_extents", "(2,)", "(3,)"]),
        (lambda: Box((1.0, -2.0, 1.0)), ["half_extents", "-2.0", "positive"]),
        (lambda: Box((1.0, np.nan, 1.0)), ["half_extents", "nan", "finite"]),
        (lambda: Box("abc"), ["half_extents", "abc"]),
        (lambda: BOX.features(-1), ["extra", "-1"]),
        (lambda: signed_distance(BOX, [[0.0, 1.0]]), ["points", "(1, 2)"]),
        (lambda: signed_distance(BOX, [[0.0, 1.0, np.inf]]), ["points", "(0, 2)", "inf"]),
        (lambda: PlacedShape(BOX, -1), ["body", "-1"]),
        (lambda: PlacedShape(BOX, 0, surface=1.5), ["surface", "1.5"]),
        (lambda: PlacedShape("box", 0), ["shape", "'box'"]),
        (lambda: PlacedShape(BOX, 0, rotation=2 * np.eye(3)), ["rotation", "determinant 8"]),
        (lambda: PlacedShape(BOX, 0, rotation=np.diag([1.0, 1.0, -1.0])), ["rotation", "determinant -1"]),
        (lambda: PlacedShape(BOX, 0, translation=[0, 0]), ["translation", "(2,)"]),
    ],
)
def test_bad_shapes_say_what_is_wrong(make, words):
    with pytest.raises(ContactError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, t: (p, t[1:]), ["'pad'", "3 open edges", "0 non-manifold"]),
        (lambda p, t: (p, np.vstack([t, t[:1]])), ["0 open edges", "3 non-manifold"]),
        (lambda p, t: (p, np.vstack([t[:1, ::-1], t[1:]])), ["3 edges", "same direction"]),
        (lambda p, t: (p, t[:, ::-1]), ["inside out", "-0.24"]),
        (lambda p, t: (p, t + 1), ["vertices 1 to 8", "0 to 7"]),
        (lambda p, t: (p, t.astype(float)), ["triangles", "float64"]),
        (lambda p, t: (p, t[:0]), ["triangles", "(0, 3)"]),
        (lambda p, t: (p[:, :2], t), ["points", "(8, 2)"]),
        (lambda p, t: (p * [1, 1, 0], t), ["no area"]),
        (lambda p, t: (p, t, 3), ["resolution", "3"]),
    ],
)
def test_bad_meshes_say_what_is_wrong(change, words):
    points, triangles = box_mesh(np.array([0.3, 0.2, 0.5]))
    with pytest.raises(ContactError) as caught:
        Mesh(*change(points, triangles), name="pad")
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_grid_that_is_too_large_says_so():
    mesh = Mesh(*box_mesh(np.array([0.3, 0.2, 0.5])), name="finger")
    with pytest.raises(ContactError, match=r"Mesh finger: a distance grid with resolution 48 .* lower Mesh.resolution"):
        mesh.grid(largest_radius=20.0)


def test_arrays_of_shapes_are_read_only():
    half = np.array([0.3, 0.2, 0.5])
    box = Box(half)
    half[0] = 9.0
    assert box.half_extents[0] == 0.3
    with pytest.raises(ValueError, match="read-only"):
        box.half_extents[0] = 1.0
