"""Structured primitives in numpy: tetrahedra and triangle surfaces, deterministic, centred at 0."""

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshes.errors import MeshError
from meshes.surface import TriMesh, make_trimesh
from meshes.tetmesh import TetMesh, make_tetmesh, tet_determinants

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def box_tets(size: ArrayLike, divisions: int | Sequence[int], *, alternating: bool = True) -> TetMesh:
    """Return a box of structured tetrahedra, six per cell (Kuhn's division: any two cells fit).

    Parameters
    ----------
    size : array_like, shape (3,), m
        Edge lengths along x, y, z.
    divisions : int or sequence of 3 int
        Cells along x, y, z, each at least 1.
    alternating : bool
        Make each cell the mirror image of its neighbours (default), so that no diagonal dominates: a box bends without leaning
        sideways or twisting, and with even numbers of cells it is its own mirror image. False: all cells alike.

    Raises
    ------
    MeshError
        If a length is not positive or a number of cells is less than 1.
    """
    lengths = _positive("box_tets", "size", size, 3)
    counts = _counts("box_tets", "divisions", divisions, ("x", "y", "z"))
    points, tets = _lattice(counts, "alternating" if alternating else "alike")
    source = f"box_tets({lengths.tolist()}, {counts}{'' if alternating else ', alternating=False'})"
    return make_tetmesh(0.5 * points * lengths, tets, name="box", source=source)


def cylinder_tets(radius: float, length: float, divisions: Sequence[int]) -> TetMesh:
    """Return a solid cylinder along z of structured tetrahedra.

    A square lattice is mapped onto the disc; the nodes of the lateral surface lie exactly on the radius.

    Parameters
    ----------
    radius, length : float
        Radius and full length, m.
    divisions : sequence of 2 int
        Cells across the diameter (even, at least 2) and along z (at least 1).

    Raises
    ------
    MeshError
        If a length is not positive or a number of cells is not allowed.
    """
    r, h = _positive("cylinder_tets", "radius and length", (radius, length), 2).tolist()
    across, along = _counts("cylinder_tets", "divisions", divisions, ("the diameter", "the length"))
    _require_even("cylinder_tets", "divisions[0]", across)
    points, tets = _lattice((across, across, along), "outward")
    bent = np.column_stack([r * _to_ball(points[:, :2]), 0.5 * h * points[:, 2]])
    return make_tetmesh(bent, tets, name="cylinder", source=f"cylinder_tets({r}, {h}, {(across, along)})")


def ball_tets(radius: float, divisions: int) -> TetMesh:
    """Return a solid ball of structured tetrahedra.

    A cube lattice is mapped onto the ball, shell by shell; the surface nodes lie exactly on the radius, so the volume is slightly
    less than that of the sphere. The mesh is symmetric about the three coordinate planes.

    Parameters
    ----------
    radius : float
        Radius, m.
    divisions : int
        Cells across the diameter, even, at least 2: (d + 1)^3 nodes and 6 d^3 tetrahedra.

    Raises
    ------
    MeshError
        If the radius is not positive or the number of cells is not allowed.
    """
    (r,) = _positive("ball_tets", "radius", (radius,), 1).tolist()
    (count,) = _counts("ball_tets", "divisions", (divisions,), ("the diameter",))
    _require_even("ball_tets", "divisions", count)
    points, tets = _lattice((count, count, count), "outward")
    return make_tetmesh(r * _to_ball(points), tets, name="ball", source=f"ball_tets({r}, {count})")


def box_triangles(size: ArrayLike) -> TriMesh:
    """Return the surface of a box, 12 triangles.

    Parameters
    ----------
    size : array_like, shape (3,), m
        Edge lengths along x, y, z.

    Raises
    ------
    MeshError
        If a length is not positive.
    """
    lengths = _positive("box_triangles", "size", size, 3)
    return _convex(0.5 * lengths * _CORNERS, _BOX_FACES, "box", f"box_triangles({lengths.tolist()})")


def chamfered_box_triangles(size: ArrayLike, chamfer: float) -> TriMesh:
    """Return the surface of a box with its 12 edges chamfered at 45 degrees, 44 triangles.

    Parameters
    ----------
    size : array_like, shape (3,), m
        Outer edge lengths along x, y, z.
    chamfer : float
        Length cut off each face at each edge, m, less than half the smallest edge.

    Raises
    ------
    MeshError
        If a length is not positive or the chamfer too large.
    """
    lengths = _positive("chamfered_box_triangles", "size", size, 3)
    (cut,) = _positive("chamfered_box_triangles", "chamfer", (chamfer,), 1).tolist()
    if cut >= 0.5 * lengths.min():
        raise MeshError(
            f"chamfered_box_triangles: chamfer is {cut} m, but must be less than half the smallest edge "
            f"({0.5 * lengths.min()} m); reduce it."
        )
    # Corner c of the box becomes three points 3 c + axis: on that face, moved inwards along the other axes.
    half = 0.5 * lengths
    points = np.concatenate([corner * np.where(np.eye(3, dtype=bool), half, half - cut) for corner in _CORNERS])
    faces: list[list[int]] = []
    for number, face in enumerate(_BOX_FACES):
        faces.append([3 * corner + number // 2 for corner in face])
    for a, b in itertools.combinations(range(8), 2):
        across = [axis for axis in range(3) if _CORNERS[a, axis] == _CORNERS[b, axis]]
        if len(across) == 2:
            faces.append([3 * a + across[0], 3 * b + across[0], 3 * b + across[1], 3 * a + across[1]])
    faces += [[3 * corner, 3 * corner + 1, 3 * corner + 2] for corner in range(8)]
    return _convex(points, faces, "chamfered box", f"chamfered_box_triangles({lengths.tolist()}, {cut})")


def sphere_triangles(radius: float, subdivisions: int = 3) -> TriMesh:
    """Return a sphere: an icosahedron whose triangles are repeatedly divided into four.

    Parameters
    ----------
    radius : float
        Radius of all points, m.
    subdivisions : int
        Number of divisions s, 0 to 7: 20 * 4^s triangles.

    Raises
    ------
    MeshError
        If the radius is not positive or the number of divisions not allowed.
    """
    (r,) = _positive("sphere_triangles", "radius", (radius,), 1).tolist()
    if isinstance(subdivisions, bool) or not isinstance(subdivisions, (int, np.integer)) or not 0 <= subdivisions <= 7:
        raise MeshError(f"sphere_triangles: subdivisions is {subdivisions!r}, but must be an integer from 0 to 7.")
    g = 0.5 * (1.0 + np.sqrt(5.0))
    signs = ((-1.0, -g), (1.0, -g), (-1.0, g), (1.0, g))
    points = np.array([np.roll((0.0, a, b), shift) for shift in range(3) for a, b in signs])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    # The faces are the triples of mutual neighbours (edge 2 before scaling).
    near = np.abs(points @ points.T - 1.0 / np.sqrt(5.0)) < 1e-9
    triangles = np.array(
        [t for t in itertools.combinations(range(12), 3) if near[t[0], t[1]] and near[t[1], t[2]] and near[t[0], t[2]]]
    )
    triangles = _outward(points, triangles)
    for _ in range(int(subdivisions)):
        points, triangles = _subdivided(points, triangles)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    return make_trimesh(r * points, triangles, name="sphere", source=f"sphere_triangles({r}, {subdivisions})")


def cylinder_triangles(radius: float, length: float, segments: int = 48) -> TriMesh:
    """Return the closed surface of a cylinder along z.

    Parameters
    ----------
    radius, length : float
        Radius and full length, m.
    segments : int
        Sides of the polygon, at least 3.

    Raises
    ------
    MeshError
        If a length is not positive or there are fewer than 3 segments.
    """
    r, h = _positive("cylinder_triangles", "radius and length", (radius, length), 2).tolist()
    n = _segments("cylinder_triangles", "segments", segments, 3)
    profile = np.array([[r, -0.5 * h], [r, 0.5 * h]])
    return _revolved(profile, (-0.5 * h, 0.5 * h), n, "cylinder", f"cylinder_triangles({r}, {h}, {n})")


def capsule_triangles(radius: float, length: float, segments: int = 48, rings: int = 12) -> TriMesh:
    """Return the closed surface of a capsule along z.

    Parameters
    ----------
    radius : float
        Radius, m.
    length : float
        Length of the straight part, between the centres of the two half spheres, m.
    segments : int
        Sides of the polygon around z, at least 3.
    rings : int
        Bands of triangles on each half sphere, at least 1.

    Raises
    ------
    MeshError
        If a length is not positive or a number is too small.
    """
    r, h = _positive("capsule_triangles", "radius and length", (radius, length), 2).tolist()
    n = _segments("capsule_triangles", "segments", segments, 3)
    k = _segments("capsule_triangles", "rings", rings, 1)
    angle = 0.5 * np.pi * np.arange(k) / k  # 0 on the equator; the pole is a separate point
    upper = np.column_stack([r * np.cos(angle), 0.5 * h + r * np.sin(angle)])
    profile = np.concatenate([(upper * (1.0, -1.0))[::-1], upper])
    poles = (-0.5 * h - r, 0.5 * h + r)
    return _revolved(profile, poles, n, "capsule", f"capsule_triangles({r}, {h}, {n}, {k})")


_CORNERS: Floats = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
# Face 2 a and 2 a + 1: the corners at -1 and +1 on axis a, in the order around the face.
_BOX_FACES = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]]


def _lattice(counts: Sequence[int], cells_are: Literal["alike", "outward", "alternating"]) -> tuple[Floats, Ints]:
    """Return points in [-1, 1]^3 and positive tetrahedra; outward: cell diagonals point outward."""
    axes = [np.linspace(-1.0, 1.0, count + 1) for count in counts]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = np.stack(np.meshgrid(*[np.arange(count) for count in counts], indexing="ij"), axis=-1).reshape(-1, 1, 1, 3)
    paths = np.array(
        [np.cumsum([np.zeros(3, int), *np.eye(3, dtype=int)[list(p)]], axis=0) for p in itertools.permutations(range(3))]
    )
    steps = np.broadcast_to(paths, (len(cells), 6, 4, 3))
    if cells_are == "outward":
        steps = np.where(2 * cells + 1 < np.array(counts), 1 - steps, steps)
    elif cells_are == "alternating":
        steps = np.where(cells % 2 == 1, 1 - steps, steps)
    index = cells + steps
    strides = np.array([(counts[1] + 1) * (counts[2] + 1), counts[2] + 1, 1])
    tets = (index @ strides).reshape(-1, 4)
    negative = tet_determinants(points, tets) < 0.0
    tets[negative] = tets[negative][:, [0, 1, 3, 2]]
    return points, tets


def _to_ball(points: Floats) -> Floats:
    """Map the cube [-1, 1]^d onto the unit ball, each shell of the cube onto a sphere."""
    shell = np.abs(points).max(axis=1, keepdims=True)
    direction = points / np.where(shell > 0.0, shell, 1.0)
    bent = np.tan(0.25 * np.pi * direction)  # equal angles along an edge of the shell
    norm = np.linalg.norm(bent, axis=1, keepdims=True)
    ball: Floats = shell * bent / np.where(norm > 0.0, norm, 1.0)
    return ball


def _subdivided(points: Floats, triangles: Ints) -> tuple[Floats, Ints]:
    edges = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    unique, inverse = np.unique(edges, axis=0, return_inverse=True)
    middle = inverse.reshape(-1, 3) + len(points)
    a, b, c = triangles.T
    ab, bc, ca = middle.T
    finer = np.stack([[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]).transpose(2, 0, 1).reshape(-1, 3)
    return np.concatenate([points, 0.5 * points[unique].sum(axis=1)]), finer


def _revolved(profile: Floats, poles: tuple[float, float], segments: int, name: str, source: str) -> TriMesh:
    """Revolve a profile of (radius, z), ascending in z, about z and close it at two points on the axis."""
    turn = 2.0 * np.pi * np.arange(segments) / segments
    rings = [np.column_stack([r * np.cos(turn), r * np.sin(turn), np.full(segments, z)]) for r, z in profile]
    points = np.concatenate([*rings, [[0.0, 0.0, poles[0]], [0.0, 0.0, poles[1]]]])
    here = np.arange(segments)
    after = np.roll(here, -1)
    triangles = []
    for ring in range(len(profile) - 1):
        low, high = ring * segments, (ring + 1) * segments
        triangles.append(np.column_stack([low + here, low + after, high + after]))
        triangles.append(np.column_stack([low + here, high + after, high + here]))
    bottom, top = len(points) - 2, len(points) - 1
    last = (len(profile) - 1) * segments
    triangles.append(np.column_stack([after, here, np.full(segments, bottom)]))
    triangles.append(np.column_stack([last + here, last + after, np.full(segments, top)]))
    return make_trimesh(points, np.concatenate(triangles), name=name, source=source)


def _convex(points: Floats, faces: Sequence[Sequence[int]], name: str, source: str) -> TriMesh:
    """Fan-triangulate the faces of a convex body around the origin and orient them outward."""
    fans = [[face[0], face[i], face[i + 1]] for face in faces for i in range(1, len(face) - 1)]
    return make_trimesh(points, _outward(points, np.array(fans)), name=name, source=source)


def _outward(points: Floats, triangles: Ints) -> Ints:
    """Orient the triangles of a convex body around the origin outward."""
    corners = points[triangles]
    inward = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) < 0.0
    return np.where(inward[:, None], triangles[:, [0, 2, 1]], triangles)


def _positive(function: str, what: str, values: ArrayLike, count: int) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (count,) or not np.isfinite(numbers).all() or (numbers <= 0.0).any():
        raise MeshError(
            f"{function}: {what} is {numbers.tolist()}, but must be finite, greater than 0, in m, and "
            f"{count} in number; correct it."
        )
    return numbers


def _counts(function: str, what: str, values: int | Sequence[int], along: tuple[str, ...]) -> tuple[int, ...]:
    count = len(along)
    numbers = (values,) * count if isinstance(values, (int, np.integer)) else tuple(values)
    if len(numbers) != count:
        ways = f"{', '.join(along[:-1])} and {along[-1]}"
        raise MeshError(f"{function}: {what} is {numbers!r}, but must be {count} integers of at least 1: cells along {ways}.")
    return tuple(_segments(function, what, number, 1) for number in numbers)


def _segments(function: str, what: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise MeshError(f"{function}: {what} is {value!r}, but must be an integer of at least {least}.")
    return int(value)


def _require_even(function: str, what: str, value: int) -> None:
    if value % 2:
        raise MeshError(f"{function}: {what} is {value}, but must be even; take {value + 1}.")
