"""Robots from files in the format URDF: links with inertia, visuals and collision shapes, and joints."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

import foreign
from contact import Box, Capsule, ContactError, Cylinder, Shape, Sphere
from femsim.base.arguments import shown
from femsim.base.errors import InputError, did_you_mean, naming_parameters
from femsim.base.files import is_file
from femsim.base.place import data_folder
from femsim.model.mjcf import read_mjcf
from femsim.model.robot_files import MISSPELT, ElementReader
from femsim.model.robots import JointKind, Robot, RobotJoint, RobotLink
from femsim.model.solids import Piece
from foreign.text import read_xml
from meshes import MeshError, TriMesh, make_trimesh

#: Elements that are read past without a word, since they say nothing about mechanics, and those of other programs.
_PASSED = {"material", "verbose", "safety_controller", "calibration"}
_OTHERS = {"transmission", "gazebo", "sensor", "ros2_control", "plugin", "drake", "mujoco", "group"}
_KNOWN = {
    "robot": {"link", "joint"},
    "link": {"inertial", "visual", "collision"},
    "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"},
}
#: Attributes of what is read of links and joints.
_ATTRIBUTES = {
    "origin": {"xyz", "rpy"}, "mass": {"value"}, "inertia": {"ixx", "ixy", "ixz", "iyy", "iyz", "izz"}, "axis": {"xyz"},
    "limit": {"lower", "upper", "effort", "velocity"}, "dynamics": {"damping", "friction"},
    "mimic": {"joint", "multiplier", "offset"}, "box": {"size"}, "sphere": {"radius"}, "cylinder": {"radius", "length"},
    "capsule": {"name", "radius", "length"}, "mesh": {"filename", "scale"},
}  # fmt: skip
#: Stops of a joint that turns by more than this are rather degrees, rad.
_DEGREES = 20.0
_SHAPES = ("box", "sphere", "cylinder", "capsule", "mesh")
_TYPES = ("fixed", "revolute", "continuous", "prismatic", "floating", "planar")

Packages = Mapping[str, str | Path]


@naming_parameters
def load_robot(
    path: str | Path, *, packages: Packages | None = None, balance_inertia: bool = False, tree: str | None = None
) -> Robot:
    """Read a robot from a URDF or MJCF file.

    Read are links with inertia, visual and collision geometry (box, sphere, cylinder, capsule, mesh), and joints with type, axis,
    limits, damping, dry friction and mimic. A collision mesh that is not closed becomes its convex hull; a range from 0 to 0 is
    none, with a note. Not read are colours, transmissions and what belongs to other programs; visual meshes that are not found
    or cannot be read are left out with a note. Of MJCF that is read which :func:`femsim.model.mjcf.read_mjcf` lists.

    Parameters
    ----------
    path : path
        The file, or the name of one in ``data/robots``, e.g. "arm7.urdf"; an xacro file has to be turned into URDF first.
    packages : dict of str to path, optional
        Folders of packages that mesh files name as ``package://NAME/...``. Without it the folders above the file are searched.
    balance_inertia : bool
        Inertias that no body has become that of a ball with the same trace, as MuJoCo's option of that name does, which MJCF
        files may set themselves, and those of links without mass are left out; with a note each. Default False: they are errors.
    tree : str, optional
        Of an MJCF file with several trees the one to read, by the name of its body in the world; the robot has its name.

    Returns
    -------
    Robot
        Its links, in metres and kilogrammes.

    Raises
    ------
    InputError
        A file that cannot be read, or what is wrong in it: one sentence that names file, element and what to do.
    """
    path = _file(path)
    if not isinstance(tree, str | None):
        raise InputError(f"{path}: tree is {tree!r}; give the name of a body.")
    if packages is not None and not isinstance(packages, Mapping):
        raise InputError(
            f"{path}: packages is {shown(packages)}; give folders by names of packages: {{'arm_description': 'folder'}}."
        )
    try:
        root = read_xml(path)
    except (OSError, foreign.Refused) as error:
        raise InputError(f"{path}: cannot be read as a robot ({error}); give a URDF or MJCF file.") from error
    if root.tag == "mujoco":
        return read_mjcf(path, root, balance_inertia, tree)
    if root.tag == "mujocoinclude":
        raise InputError(f"{path}: its root element is <mujocoinclude>, a part of a model; give the MJCF file that includes it.")
    if root.tag != "robot":
        raise InputError(f"{path}: its root element is <{root.tag}>; a URDF file has <robot>, an MJCF file <mujoco>.")
    if tree is not None:
        raise InputError(f"{path}: tree is {tree!r}; a URDF file is one tree, so leave it out.")
    return _Reader(path, root, packages or {}, balance_inertia).robot()


def _is_zero(text: str) -> bool:
    """Whether a text is numbers, all of them zero."""
    return bool(text.split()) and not text.strip("0. \t\r\n")


def _file(name: str | Path) -> Path:
    """File of a robot: one of your own, or one that comes with femsim."""
    if not isinstance(name, str | os.PathLike):
        raise InputError(f"load_robot: path is {name!r}; give the name or path of a URDF or MJCF file.")
    if Path(name).exists():
        return Path(name)
    folder = data_folder("robots")
    if (folder / name).is_file():
        return folder / name
    known = sorted(path.name for path in folder.iterdir())
    raise InputError(f"robot file {str(name)!r} is found neither here nor with femsim{did_you_mean(str(name), known)}")


class _Reader(ElementReader):
    """Reads the elements of one file; messages name file and element."""

    def __init__(self, path: Path, root: Element, packages: Packages, balance_inertia: bool) -> None:
        super().__init__(path, balance_inertia)
        self.root, self.packages = root, packages
        #: joints whose effort or velocity is 0 in the file, which stands for no bound
        self.boundless: list[str] = []

    def robot(self) -> Robot:
        """Read all of it."""
        name = self.root.get("name", "").strip() or self.path.stem
        if any("xacro" in key or "xacro" in element.tag for element in self.root.iter() for key in (*element.keys(), "")):
            raise InputError(f"{self.path}: it has elements of xacro; turn it into URDF first, by 'xacro FILE > robot.urdf'.")
        self._note_unknown(self.root, "robot", "the robot")
        links = [self._link(element) for element in self.root.findall("link")]
        joints = [self._joint(element) for element in self.root.findall("joint")]
        if self.boundless:
            most = f"{', '.join(self.boundless[:6])}{' and others' if len(self.boundless) > 6 else ''}"
            self.note(f"effort or velocity 0 in <limit> is taken for no bound, of {most}")
        return self.finished(name, links, joints)

    # ---- elements

    def _note_unknown(self, element: Element, kind: str, where: str) -> None:
        """Note elements that are not read, and attributes of links and joints; refuse misspelt ones."""
        for child in element:
            if child.tag in _KNOWN[kind] or child.tag in _PASSED:
                continue
            if child.tag not in _OTHERS and difflib.get_close_matches(child.tag, _KNOWN[kind], cutoff=MISSPELT):
                raise self.wrong(where, f"has an element <{child.tag}>{did_you_mean(child.tag, _KNOWN[kind])}")
            self.note(f"<{child.tag}> of {where} is not read")
        for inner in element.iter() if kind != "robot" else ():
            if inner.tag in _ATTRIBUTES:
                self.check_attributes(where, inner, _ATTRIBUTES[inner.tag])

    def _name(self, element: Element) -> str:
        name = element.get("name", "").strip()
        if not name:
            raise self.wrong(f"a <{element.tag}>", "has no name; give it one.")
        return name

    def _origin(self, where: str, element: Element | None) -> tuple[np.ndarray, np.ndarray]:
        """Place (3,), m, and rotation vector (3,), rad, of the <origin> of an element; zero where it has none."""
        origin = None if element is None else element.find("origin")
        if origin is None:
            return np.zeros(3), np.zeros(3)
        turn = Rotation.from_euler("xyz", self.numbers(where, origin, "rpy", 3, "0 0 0"))
        return self.numbers(where, origin, "xyz", 3, "0 0 0"), turn.as_rotvec()

    def _link(self, element: Element) -> RobotLink:
        name = self._name(element)
        where = f"link {name!r}"
        self._note_unknown(element, "link", where)
        mass, centre, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
        inertial = element.find("inertial")
        if inertial is not None:
            given, moments = inertial.find("mass"), inertial.find("inertia")
            if given is None or moments is None:
                raise self.wrong(where, "has an <inertial> without <mass> or <inertia>; give both.")
            mass = self.number(where, given, "value")
            centre, vector = self._origin(where, inertial)
            keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
            xx, xy, xz, yy, yz, zz = (self.number(where, moments, k, None if k[1] == k[2] else "0") for k in keys)
            turn = Rotation.from_rotvec(vector).as_matrix()
            inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
            inertia = 0.5 * (inertia + inertia.T)
            inertia = self.balanced(where, mass, inertia)
        shapes = [piece for one in element.findall("collision") for piece in self._collision(where, one)]
        visuals = [piece for one in element.findall("visual") for piece in self._visual(where, one)]
        return RobotLink(name, mass, centre, inertia, shapes, visuals)

    def _bound(self, where: str, limit: Element, key: str) -> float:
        """Read a number of a <limit>, of any size: some files say so that there is none."""
        return self.number(where, limit, key, "0", most=math.inf)

    def _geometry(self, where: str, element: Element) -> Element:
        """Element of the shape of a <visual> or <collision>."""
        geometry = element.find("geometry")
        shape = None if geometry is None else next(iter(geometry), None)
        if shape is None:
            raise self.wrong(where, f"has a <{element.tag}> without a shape in <geometry>; give one of {', '.join(_SHAPES)}.")
        if shape.tag not in _SHAPES:
            raise self.wrong(where, f"has the shape <{shape.tag}>{did_you_mean(shape.tag, _SHAPES)}")
        return shape

    def _primitive(self, where: str, shape: Element) -> Shape:
        """Box, sphere, cylinder or capsule."""
        try:
            if shape.tag == "box":
                return Box(tuple(0.5 * self.numbers(where, shape, "size", 3)))
            radius = self.number(where, shape, "radius")
            if shape.tag == "sphere":
                return Sphere(radius)
            half = 0.5 * self.number(where, shape, "length")
            return Cylinder(radius, half) if shape.tag == "cylinder" else Capsule(radius, half)
        except ContactError as error:
            raise self.wrong(where, f"has a <{shape.tag}> with wrong sizes: {error}") from error

    def _mesh(self, where: str, shape: Element, *, drawn: bool = False) -> TriMesh:
        """Surface of a mesh file, in metres; a file that is not found is a MeshError where it is drawn only."""
        filename = shape.get("filename", "")
        scale = self.numbers(where, shape, "scale", 3, "1 1 1")
        if not scale.all():
            raise self.wrong(
                where, f"has a mesh with scale {' '.join(map(str, scale.tolist()))}; allowed are numbers other than 0."
            )
        surface = self.surface_of(self._find(where, filename, drawn))
        triangles = surface.triangles if scale.prod() > 0.0 else surface.triangles[:, ::-1]  # a mirror turns them inside out
        return make_trimesh(surface.points * scale, triangles, name=surface.name, source=surface.source)

    def _find(self, where: str, filename: str, drawn: bool) -> Path:
        """File of a mesh."""
        if not filename:
            raise self.wrong(where, "has a <mesh> without filename; give it.")
        package, inside = "", filename
        if filename.startswith("package://"):
            package, _, inside = filename[len("package://") :].partition("/")
        elif filename.startswith("file://"):
            inside = filename[len("file://") :]
        for folder in self._folders(package):
            if is_file(folder / inside):
                return folder / inside
        hint = "give load_robot(..., packages={...}) its folder" if package else "put it beside the robot"
        if package in self.packages:
            hint = f"packages says {str(self.packages[package])!r} for {package!r}, which has no {inside!r}; give its folder"
        elif package and self.packages:
            hint = f"packages has {', '.join(map(repr, self.packages))}; give the folder of {package!r}"
        if drawn:
            raise MeshError(f"{filename!r} is not found; {hint}, or correct its name")
        without = "or give a <box>, which has contact as well"
        raise self.wrong(where, f"has the mesh {filename!r}, which is not found; {hint}, or correct its name, {without}.")

    def _folders(self, package: str) -> Iterator[Path]:
        """Folders in which a mesh of a package may be."""
        above = self.path.resolve().parent
        if not package:
            yield above
            return
        if package in self.packages:
            yield Path(self.packages[package])
        for folder in (above, *above.parents):
            yield folder / package
            if folder.name == package:
                yield folder

    def _collision(self, where: str, element: Element) -> list[Piece]:
        shape = self._geometry(where, element)
        place, turn = self._origin(where, element)
        if shape.tag != "mesh":
            return [Piece(self._primitive(where, shape), place, turn)]
        try:
            surface = self._mesh(where, shape)
        except MeshError as error:
            raise self.wrong(where, f"has a collision mesh that cannot be read: {error}") from error
        return [Piece(self.solid(where, surface), place, turn)]

    def _visual(self, where: str, element: Element) -> list[Piece | TriMesh]:
        shape = self._geometry(where, element)
        place, turn = self._origin(where, element)
        if shape.tag != "mesh":
            if any(_is_zero(shape.get(key, "")) for key in ("size", "radius", "length")):
                self.note(f"a visual <{shape.tag}> of {where}, which has no size, is left out")
                return []
            return [Piece(self._primitive(where, shape), place, turn)]
        try:
            surface = self._mesh(where, shape, drawn=True)
        except MeshError as error:
            self.note(f"a visual mesh of {where} is left out: {error}")
            return []
        points = surface.points @ Rotation.from_rotvec(turn).as_matrix().T + place
        return [make_trimesh(points, surface.triangles, name=surface.name, source=surface.source)]

    def _joint(self, element: Element) -> RobotJoint:
        name, kind = self._name(element), element.get("type", "")
        where = f"joint {name!r}"
        if kind not in _TYPES:
            raise self.wrong(where, f"has type {kind!r}; allowed are {', '.join(_TYPES)}.")
        self._note_unknown(element, "joint", where)
        parent, child = self._end(where, element, "parent"), self._end(where, element, "child")
        place, turn = self._origin(where, element)
        limit = element.find("limit")
        if kind in ("revolute", "prismatic") and limit is None:
            raise self.wrong(
                where, f"is {kind} and has no <limit>; give lower, upper, effort and velocity, or the type continuous."
            )
        limits = (-math.inf, math.inf) if limit is None else self._range(where, kind, limit)
        options = {} if limit is None else self._most(name, kind, limit)
        dynamics = element.find("dynamics")
        if dynamics is not None:
            options["damping"] = self.number(where, dynamics, "damping", "0")
            if kind not in ("fixed", "floating"):
                options["friction"] = self.number(where, dynamics, "friction", "0")
        axis, mimic = element.find("axis"), self._mimic(where, kind, element.find("mimic"))
        direction = (
            np.array([1.0, 0.0, 0.0]) if axis is None or kind in ("fixed", "floating") else self.numbers(where, axis, "xyz", 3)
        )
        known = cast(JointKind, kind)
        return RobotJoint(name, parent, child, known, place, turn, direction, limits=limits, mimic=mimic, **options)  # type: ignore[arg-type]

    def _end(self, where: str, element: Element, role: str) -> str:
        """Link of one end of a joint, the parent or the child."""
        end = element.find(role)
        if end is None or not end.get("link"):
            raise self.wrong(where, f"has no <{role} link=...>; give it.")
        return end.get("link", "")

    def _range(self, where: str, kind: str, limit: Element) -> tuple[float, float]:
        """Read the stops of a joint, rad or m; infinite without any."""
        none = (-math.inf, math.inf)
        said = limit.get("lower") is not None or limit.get("upper") is not None
        if kind not in ("revolute", "prismatic"):
            if kind != "fixed" and said:
                self.note(f"lower and upper of {where} are left out; a {kind} joint has no stops")
            return none
        if not said:
            self.note(f"the <limit> of {where} has no lower and no upper: the joint has no stops")
            return none
        lower, upper = self._bound(where, limit, "lower"), self._bound(where, limit, "upper")
        if lower == upper == 0.0:  # as the format has it where nothing is said; MuJoCo and RaiSim read no stops, too
            self.note(
                f"lower and upper of {where} are both 0, which is taken for no range: the joint has no stops; give it "
                "the type fixed if it stands still"
            )
            return none
        if lower == upper:
            raise self.wrong(
                where, f"has lower and upper {lower:g} in <limit>; give it the type fixed, or continuous without stops."
            )
        if kind == "revolute" and _DEGREES < max(abs(lower), abs(upper)) <= 720.0:
            self.note(f"the range of {where} is {lower:g} to {upper:g} rad; are these degrees?")
        return lower, upper

    def _most(self, name: str, kind: str, limit: Element) -> dict[str, float]:
        """Most effort and speed of a joint, as :class:`RobotJoint` calls them; without those that a file gives as 0."""
        where = f"joint {name!r}"
        most: dict[str, float] = {}
        for key, own in (("effort", "max_effort"), ("velocity", "max_speed")):
            value = self._bound(where, limit, key)
            if value > 0.0:  # 0 is what files say that know no bound
                most[own] = value
            elif value == 0.0 and limit.get(key) is not None and kind != "fixed" and name not in self.boundless:
                self.boundless.append(name)
            elif value < 0.0:
                raise self.wrong(where, f"has {key} {value:g} in <limit>; allowed are numbers from 0.")
        return most

    def _mimic(self, where: str, kind: str, mimic: Element | None) -> tuple[str, float, float] | None:
        """Name of the joint that a joint follows, factor and offset."""
        if mimic is None:
            return None
        if kind == "fixed":
            self.note(f"<mimic> of {where} is left out; a fixed joint does not move")
            return None
        return mimic.get("joint", ""), self.number(where, mimic, "multiplier", "1"), self.number(where, mimic, "offset", "0")
