"""Meshes of MJCF files: surfaces from files or from numbers in the text, each read once."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial import QhullError
from scipy.spatial.transform import Rotation

from contact import ContactError, Mesh
from femsim.base.files import is_file
from femsim.model.robot_files import ElementReader, hull
from foreign import Refused
from foreign.binary_meshes import mujoco_msh
from foreign.text import read_bytes
from meshes import MeshError, TriMesh, load_surface, make_trimesh, merged

#: The words of lines of an .obj file that begin an object or group, and of those that are a face.
_BEGINS, _IS_FACE = re.compile(rb"^[ \t]*[og](?=\s)", re.MULTILINE), re.compile(rb"[ \t]*f\s")


class MeshAssets:
    """The <mesh> assets of a file.

    Parameters
    ----------
    reader : ElementReader
        Reads numbers and makes messages.
    assets : mapping of str to Element
        What is given of each mesh, with what it has by default.
    folder : path
        Where their files are.
    """

    def __init__(self, reader: ElementReader, assets: Mapping[str, Element], folder: Path) -> None:
        self.reader, self.assets, self.folder = reader, assets, folder
        self._surfaces: dict[str, TriMesh] = {}
        self._solids: dict[str, Mesh] = {}

    def asset(self, what: str, name: str) -> Element:
        """<mesh> of a name, for an element."""
        if name not in self.assets:
            raise self.reader.wrong(what, f"has the mesh {name!r}, which no <asset> names; correct its name.")
        return self.assets[name]

    def solid(self, what: str, name: str) -> Mesh:
        """Shape of a mesh, for an element."""
        if name not in self._solids:
            self._solids[name] = self.reader.solid(what, self.surface(what, name))
        return self._solids[name]

    def surface(self, what: str, name: str) -> TriMesh:
        """Surface of a mesh, in metres, for an element."""
        asset = self.asset(what, name)
        if name not in self._surfaces:
            self._surfaces[name] = self._read(f"mesh {name!r}", name, asset)
        return self._surfaces[name]

    def _read(self, where: str, name: str, asset: Element) -> TriMesh:
        """Read a mesh: what its file or its numbers say, moved and scaled."""
        reader = self.reader
        if asset.get("builtin"):
            raise reader.wrong(where, f"is the builtin {asset.get('builtin')!r}; give its vertex and face, or a file.")
        if bool(asset.get("file")) == bool(asset.get("vertex")):
            raise reader.wrong(where, "has both file and vertex or none of them; give one.")
        if asset.get("face") and asset.get("file"):
            raise reader.wrong(where, "has file and face; leave out face, which belongs to vertex.")
        scale = reader.numbers(where, asset, "scale", 3, "1 1 1")
        if not scale.all():
            raise reader.wrong(where, f"has the scale {asset.get('scale')!r}; allowed are numbers other than 0.")
        surface = self._of_file(where, asset) if asset.get("file") else self._of_numbers(where, name, asset)
        middle, turn = reader.numbers(where, asset, "refpos", 3, "0 0 0"), reader.numbers(where, asset, "refquat", 4, "1 0 0 0")
        if not turn.any():
            raise reader.wrong(where, f"has refquat {asset.get('refquat')!r}; it must not be zero.")
        points = surface.points
        if middle.any() or turn[1:].any():
            points = Rotation.from_quat(turn[[1, 2, 3, 0]]).inv().apply(points - middle)
        triangles = surface.triangles if scale.prod() > 0.0 else surface.triangles[:, ::-1]  # a mirror turns them inside out
        return make_trimesh(points * scale, triangles, name=surface.name, source=surface.source)

    def _of_file(self, where: str, asset: Element) -> TriMesh:
        """Read a file of a mesh."""
        file = self.folder / asset.get("file", "")
        if not is_file(file):
            raise self.reader.wrong(where, f"has the file {file}, which is not there; correct its name, or meshdir.")
        try:
            if file.suffix.lower() == ".msh":
                return self._surface(where, file.stem, str(file), *mujoco_msh(file))
            return self._first_object(where, file) if file.suffix.lower() == ".obj" else self.reader.surface_of(file)
        except (MeshError, OSError) as error:
            raise self.reader.wrong(where, f"cannot be read: {error}") from error
        except Refused as error:
            raise self.reader.wrong(where, f"has the file {file}, which cannot be read: {error}; save it as .stl.") from error

    def _first_object(self, where: str, file: Path) -> TriMesh:
        """Read the first object or group of an .obj file that has faces, as MuJoCo does; the others are noted."""
        data = read_bytes(file)
        if len(_BEGINS.findall(data)) < 2:
            return self.reader.surface_of(file)
        kept, count, begins = [], 0, True
        for line in data.splitlines(keepends=True):
            begins = begins or _BEGINS.match(line) is not None
            if _IS_FACE.match(line):
                count, begins = count + begins, False
                if count > 1:
                    continue
            kept.append(line)
        if count < 2:
            return self.reader.surface_of(file)
        self.reader.note(f"{where} is the first of {count} objects of {file.name}, as in MuJoCo; give each a file of its own")
        with tempfile.TemporaryDirectory() as folder:
            first = Path(folder) / file.name
            first.write_bytes(b"".join(kept))
            surface = load_surface(first)
        own, corners = np.unique(surface.triangles, return_inverse=True)
        return make_trimesh(surface.points[own], corners.reshape(-1, 3), name=surface.name, source=str(file))

    def _of_numbers(self, where: str, name: str, asset: Element) -> TriMesh:
        """Read a mesh whose numbers are in the text."""
        points, triangles = (self._triples(where, asset, key) for key in ("vertex", "face"))
        if not (triangles == triangles.astype(np.int64)).all():
            raise self.reader.wrong(where, "has a face with numbers that are not whole; give numbers of its points from 0.")
        return self._surface(where, name, str(self.reader.path), points, triangles.astype(np.int64))

    def _triples(self, where: str, asset: Element, key: str) -> np.ndarray:
        """Numbers of an attribute by threes, (n, 3), none where it is not there."""
        count = len(asset.get(key, "").split())
        if not count:
            return np.zeros((0, 3))
        if count % 3:
            raise self.reader.wrong(where, f"has {count} numbers in {key}; allowed are three for each, so that they divide by 3.")
        return self.reader.numbers(where, asset, key, count).reshape(-1, 3)

    def _surface(self, where: str, name: str, source: str, points: np.ndarray, triangles: np.ndarray) -> TriMesh:
        """Surface of points and triangles, the convex hull where there are none of these."""
        if not len(triangles):
            return self._hull(where, name, source, points)
        try:
            whole = make_trimesh(points, triangles, name=name, source=source)
            return make_trimesh(*merged(whole.points, whole.triangles), name=name, source=source)
        except MeshError as error:
            raise self.reader.wrong(where, f"cannot be read: {error}") from error

    def _hull(self, where: str, name: str, source: str, points: np.ndarray) -> TriMesh:
        """Convex hull of points."""
        try:
            shape = hull(points, name)
        except (QhullError, ContactError, ValueError) as error:
            raise self.reader.wrong(
                where, f"has {len(points)} points and no face, and their hull has no volume; give four that lie in no plane."
            ) from error
        return make_trimesh(shape.points, shape.triangles, name=name, source=source)
