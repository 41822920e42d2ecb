"""One body on a page in the browser: it moves without being loaded again, and is shown while the browser loads its new shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from viz.survey import FloatArray

__all__ = ["PageBody", "fitted_pose", "quaternion"]

#: Scale of a node that is not shown: one that is made invisible would end the drag of the mouse that holds it.
_HIDDEN = 1e-6
#: Part of 255 by which colours change that nobody sees.
_SAME_COLOUR = 3


class PageBody:
    """A body as one or two GLB nodes of viser, of which one is shown, in a frame that goes along with the body.

    A node holds the surface in the axes of the frame, so a rigid motion changes the pose of the frame alone. A change of shape or
    colour needs a new GLB. A browser shows nothing of a node while it reads its GLB, so this goes to the other node, which is too
    small to be seen; the two change places with the next picture. It also forgets where the node was, so the mouse drags the
    frame, which is never loaded again.

    Parameters
    ----------
    scene : viser.SceneApi
        Where the nodes are added.
    name : str
        Name of the body.

    Attributes
    ----------
    frame : handle
        The frame.
    nodes : list
        Handles of the nodes.
    shown : int
        Number of the one that is shown.
    """

    def __init__(self, scene: Any, name: str) -> None:
        self._scene, self._name = scene, name
        self.frame: Any = scene.add_frame(f"/bodies/{name}", show_axes=False)
        self.nodes: list[Any] = []
        self.shown = 0
        self._loading = False
        self._visible = True
        self._first: FloatArray | None = None  # points that turns are measured from
        self._axes = 0  # counts them
        self._axes_of: list[int] = []  # of each node
        self._poses: list[tuple[FloatArray, FloatArray]] = []  # of each node, world
        self._look: tuple[FloatArray, npt.NDArray[np.uint8]] | None = None

    @property
    def newest(self) -> Any:
        """The node with the newest surface."""
        return self.nodes[1 - self.shown if self._loading else self.shown]

    @property
    def visible(self) -> bool:
        """Whether the body is shown."""
        return self._visible

    def settle(self) -> None:
        """Show the surface that was sent with the last picture."""
        if self._loading:
            self.shown, self._loading = 1 - self.shown, False
            self._show()

    def hide(self) -> None:
        """Show nothing of it until it is drawn again."""
        self._visible, self._look, self._first = False, None, None
        self._show()

    def draw(
        self, points: FloatArray, normals: FloatArray, triangles: npt.NDArray[Any], colours: npt.NDArray[np.uint8],
        unseen: float, *, fresh: bool = False,
    ) -> None:  # fmt: skip
        """Show a surface from now on, or where its shape is new from the next picture on.

        Parameters
        ----------
        points : ndarray, (n, 3), m
            Points, world.
        normals : ndarray, (n, 3)
            Unit normals.
        triangles : ndarray, (t, 3)
            Numbers of the corners.
        colours : ndarray, (n, 3), 0 to 255
            Linear colours.
        unseen : float, m
            Points may be so far from where they are drawn.
        fresh : bool
            The points are others than before (of a cut, say), however many there are.
        """
        self.settle()
        if fresh or self._first is None or self._first.shape != points.shape:
            self._first, self._look, self._axes = np.array(points), None, self._axes + 1
        rotation, place = fitted_pose(self._first, points)
        local = (points - place) @ rotation
        self._move(rotation, place)
        if self._look is not None:
            moved = float(np.abs(local - self._look[0]).max(initial=0.0))
            changed = int(np.abs(colours.astype(np.int64) - self._look[1]).max(initial=0))
            if moved <= unseen and changed <= _SAME_COLOUR:
                return
        self._look = local, colours
        self._load(_glb(local, normals @ rotation, triangles, colours), rotation, place)

    def _load(self, glb: bytes, rotation: FloatArray, place: FloatArray) -> None:
        number = 1 - self.shown if len(self.nodes) == 2 else len(self.nodes)
        if number == len(self.nodes):
            self.nodes.append(self._scene.add_glb(f"/bodies/{self._name}/{number}", glb, scale=_HIDDEN))
            self._axes_of.append(self._axes)
            self._poses.append((rotation, place))
        else:
            self.nodes[number].glb_data = glb
            self._axes_of[number] = self._axes
        self._move(rotation, place)
        self._loading = self._visible and len(self.nodes) == 2
        if not self._loading:  # there is no other to show
            self.shown, self._visible = number, True
            self._show()

    def _show(self) -> None:
        for number, node in enumerate(self.nodes):
            node.visible = self._visible
            node.scale = 1.0 if number == self.shown else _HIDDEN

    def _move(self, rotation: FloatArray, place: FloatArray) -> None:
        """Move the frame, and with it the nodes that have its axes; others stay where they are."""
        self.frame.position, self.frame.wxyz = place, quaternion(rotation)
        for number, node in enumerate(self.nodes):
            if self._axes_of[number] == self._axes:
                self._poses[number] = rotation, place
            own, at = self._poses[number]
            node.position, node.wxyz = (at - place) @ rotation, quaternion(rotation.T @ own)


def fitted_pose(first: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Find the rigid motion that is nearest to that of some points: R (3, 3) and p (3,) of x = R (first - mean) + p.

    Parameters
    ----------
    first, points : ndarray, (n, 3), m
        The same points before and now.
    """
    place = points.mean(axis=0)
    if not np.isfinite(points).all():
        return np.eye(3), place
    left, _, right = np.linalg.svd((points - place).T @ (first - first.mean(axis=0)))
    left[:, 2] *= np.sign(np.linalg.det(left) * np.linalg.det(right))
    return left @ right, place


def quaternion(rotation: FloatArray) -> FloatArray:
    """Return the unit quaternion w, x, y, z of a rotation matrix, w >= 0."""
    r = rotation
    square = np.array(
        [
            [1 + r[0, 0] + r[1, 1] + r[2, 2], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]],
            [r[2, 1] - r[1, 2], 1 + r[0, 0] - r[1, 1] - r[2, 2], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]],
            [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], 1 - r[0, 0] + r[1, 1] - r[2, 2], r[1, 2] + r[2, 1]],
            [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], 1 - r[0, 0] - r[1, 1] + r[2, 2]],
        ]
    )  # 4 q q^T
    row = square[int(np.argmax(np.diag(square)))]
    row = row / np.linalg.norm(row)
    return np.asarray(-row if row[0] < 0.0 else row)


def _glb(points: FloatArray, normals: FloatArray, triangles: npt.NDArray[Any], colours: npt.NDArray[np.uint8]) -> bytes:
    """Pack a surface with normals and colours."""
    import trimesh

    solid = trimesh.Trimesh(points, triangles, vertex_normals=normals, vertex_colors=colours, process=False)
    packed: Any = solid.export(file_type="glb", include_normals=True, tree_postprocessor=_make_matt)
    return bytes(packed)


def _make_matt(tree: dict[str, Any]) -> None:
    """Give a glTF tree one non-metallic material: glTF's default is metal, which is black without an environment."""
    tree["materials"] = [{"pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": 0.9}, "doubleSided": True}]
    for mesh in tree["meshes"]:
        for primitive in mesh["primitives"]:
            primitive["material"] = 0
