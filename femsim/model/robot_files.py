"""What readers of robot files share: attributes as numbers, messages that name file and element, meshes as shapes."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from contact import ContactError, Mesh
from femsim.base.errors import InputError
from femsim.model.joint_springs import RobotSpring
from femsim.model.robots import Robot, RobotJoint, RobotLink, common_range, no_body_has
from meshes import TriMesh, load_surface

#: Largest number that is believed, of whatever unit.
MOST = 1e9
#: How alike a name that is not read and a known one are (`difflib`) for the first to be a slip of the pen.
MISSPELT = 0.8
#: What names of robots and their links, by which files of runs are named, do not hold.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-]")


class ElementReader:
    """Reads elements of one file.

    Parameters
    ----------
    path : path
        The file, for messages.
    balance_inertia : bool
        Whether inertias that no body has are replaced.

    Attributes
    ----------
    notes : list of str
        What is not read.
    """

    def __init__(self, path: Path, balance_inertia: bool) -> None:
        self.path, self.balance_inertia = path, balance_inertia
        self.notes: list[str] = []
        #: Shapes of meshes by name and contents, and whether these are closed: equal ones are one shape, with one distance grid.
        self._solids: dict[tuple[str, bytes, bytes], tuple[Mesh, bool]] = {}
        self._surfaces: dict[Path, TriMesh] = {}

    def wrong(self, where: str, what: str) -> InputError:
        """Make the error that something is wrong with an element."""
        return InputError(f"{self.path}: {where} {what}")

    def note(self, what: str) -> None:
        """Say something once."""
        said = f"{self.path.name}: {what}"
        if said not in self.notes:
            self.notes.append(said)

    def check_attributes(self, where: str, element: Element, known: Collection[str]) -> None:
        """Note attributes that are not known; refuse misspelt ones, in whose place the default would be read."""
        for key in element.attrib.keys() - set(known):
            if meant := difflib.get_close_matches(key, known, 1, cutoff=MISSPELT):
                raise self.wrong(where, f"has {key!r} in <{element.tag}>, which is unknown; did you mean {meant[0]!r}?")
            self.note(f"{key!r} in <{element.tag}> is not read")

    def numbers(
        self, where: str, element: Element, key: str, count: int, default: str | None = None, most: float = MOST
    ) -> np.ndarray:
        """Numbers of an attribute, (count,), finite and not beyond what a robot has."""
        text = element.get(key, default)
        if text is None:
            raise self.wrong(where, f"has a <{element.tag}> without {key}; give it.")
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            values = np.zeros(0)
        if len(values) != count or not np.isfinite(values).all():
            allowed = "a finite number" if count == 1 else f"{count} finite numbers"
            raise self.wrong(
                where, f"has {key} {text[:60]!r} in <{element.tag}>; allowed {'is' if count == 1 else 'are'} {allowed}."
            )
        if np.abs(values).max() > most:
            raise self.wrong(where, f"has {key} {text[:60]!r} in <{element.tag}>; allowed are numbers up to {most:g}.")
        return values

    def number(self, where: str, element: Element, key: str, default: str | None = None, most: float = MOST) -> float:
        """Read a number of an attribute, finite and not beyond what a robot has."""
        return float(self.numbers(where, element, key, 1, default, most)[0])

    def balanced(self, where: str, mass: float, inertia: np.ndarray) -> np.ndarray:
        """Inertia that some body has, where that was asked for, with a note where it is another one."""
        if not self.balance_inertia:
            return inertia
        trace = float(np.trace(inertia))
        if mass == 0.0 and inertia.any():
            self.note(f"the inertia of {where}, which has no mass, is left out")
            return np.zeros((3, 3))
        if no_body_has(inertia, mass) and trace > 0.0 and np.isfinite(trace):
            self.note(f"the inertia of {where}, which no body has, is replaced by that of a ball, {trace / 3.0:.4g} kg m^2")
            return trace / 3.0 * np.eye(3)
        return inertia

    def surface_of(self, file: Path) -> TriMesh:
        """Surface of a mesh file, as :func:`meshes.load_surface` reads it, once for all that name it."""
        if file not in self._surfaces:
            self._surfaces[file] = load_surface(file)
        return self._surfaces[file]

    def finished(
        self,
        name: str,
        links: Sequence[RobotLink],
        joints: Sequence[RobotJoint],
        no_contact: Sequence[tuple[str, str]] = (),
        springs: Sequence[RobotSpring] = (),
    ) -> Robot:
        """Make the robot; links whose names hold what those of files may not are called otherwise, with a note."""
        names = {link.name: link.name for link in links}
        changed = [own for own in names if _NOT_IN_NAMES.search(own)]
        for own in changed:
            called = _NOT_IN_NAMES.sub("_", own)
            while called in names.values():
                called += "_"
            names[own] = called
        if changed:
            more = f", and so on with {len(changed) - 1} more" if len(changed) > 1 else ""
            self.note(f"link {changed[0]!r} is called {names[changed[0]]!r} here, since files are named by it{more}")
        renamed = [
            replace(one, parent=names.get(one.parent, one.parent), child=names.get(one.child, one.child)) for one in joints
        ]

        def made(joints: Sequence[RobotJoint]) -> Robot:
            return Robot(
                _NOT_IN_NAMES.sub("_", name).lstrip("_.-") or "robot",
                [replace(link, name=names[link.name]) for link in links], joints, source=str(self.path), notes=self.notes,
                no_contact=[(names[first], names[second]) for first, second in no_contact], springs=springs,
            )  # fmt: skip

        robot = made(renamed)
        hindering = {own: lead.name for lead in robot.joints for own in common_range(lead, robot.joints)[2]}
        for own, lead in hindering.items():
            self.note(f"the range of joint {own!r} is left out; it mimics {lead!r}, and leaves that no range to move in")
        free = (-math.inf, math.inf)
        return made([replace(one, limits=free) if one.name in hindering else one for one in renamed]) if hindering else robot

    def solid(self, where: str, surface: TriMesh) -> Mesh:
        """Shape of a closed surface; the convex hull of one that is not, with a note."""
        key = (surface.name, surface.points.tobytes(), surface.triangles.tobytes())
        if key not in self._solids:
            self._solids[key] = self._make_solid(where, surface)
        solid, closed = self._solids[key]
        if not closed:
            self.note(f"the collision mesh {surface.name} of {where} is not closed; its convex hull is taken")
        return solid

    def _make_solid(self, where: str, surface: TriMesh) -> tuple[Mesh, bool]:
        """Make the shape of a surface, and say whether it is closed."""
        try:
            return Mesh(surface.points, surface.triangles, name=surface.name), True
        except ContactError:
            pass
        try:
            return hull(surface.points, surface.name), False
        except (QhullError, ContactError) as error:
            raise self.wrong(
                where,
                f"has the collision mesh {surface.name}, which is neither closed nor has it a hull of any volume (it is flat, or "
                "has too few points); give it a thickness, or a box in its place.",
            ) from error


def hull(points: np.ndarray, name: str) -> Mesh:
    """Convex hull of points (n, 3), m, its triangles outward."""
    hull = ConvexHull(points)
    number = np.full(len(points), -1)
    number[hull.vertices] = np.arange(len(hull.vertices))
    triangles = hull.simplices.copy()
    a, b, c = (points[triangles[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    return Mesh(points[hull.vertices], number[triangles], name=f"hull of {name}")
