"""What single elements of an MJCF file say, with what they have by default: words, turns, shapes, meshes and masses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import cast
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

from contact import Box, Capsule, ContactError, Cylinder, Shape, Sphere
from femsim.base.errors import InputError
from femsim.model.mjcf_assets import MeshAssets
from femsim.model.mjcf_meshes import KINDS, Moments, ellipsoid, fitted, mass_of_ellipsoid, mass_of_mesh
from femsim.model.mjcf_words import ATTRIBUTES, DEFAULTS
from femsim.model.robot_files import MISSPELT, MOST, ElementReader
from femsim.model.solids import mass_properties
from meshes import TriMesh

_TURNS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
#: kg/m^3, of geoms without mass.
_DENSITY = "1000"


class MjcfElements(ElementReader):
    """Reads single elements by the <compiler>, the defaults and the meshes of their file.

    Parameters
    ----------
    path : path
        The file, for messages.
    root : Element
        Its root.
    balance_inertia : bool
        Whether inertias that no body has are replaced.
    bases : mapping of str to sequence of Element
        Outer <default> elements of the models that are attached to it, by the name of their class.
    """

    def __init__(self, path: Path, root: Element, balance_inertia: bool, bases: Mapping[str, Sequence[Element]]) -> None:
        super().__init__(path, balance_inertia)
        self.root = root
        for element in root.findall("compiler"):
            self.check_attributes("<compiler>", element, ATTRIBUTES["compiler"])
        compiler = {key: value for element in root.findall("compiler") for key, value in element.attrib.items()}
        whole = Element("compiler", compiler)
        angle = self.word("<compiler>", whole, "angle", "degree", ("degree", "radian"))
        self.angle = math.pi / 180.0 if angle == "degree" else 1.0
        self.says_angle = "angle" in compiler
        self.order = compiler.get("eulerseq", "xyz")
        if len(self.order) != 3 or self.order.lower().strip("xyz") or len({c.islower() for c in self.order}) > 1:
            raise self.wrong(
                "<compiler>", f"has eulerseq {self.order!r}; allowed are three of x, y, z, all small or all capital."
            )
        if compiler.get("coordinate", "local") != "local":
            raise self.wrong("<compiler>", "has global coordinates; save the model by MuJoCo's own tools first, in local ones.")
        #: kg, kg m^2: what each body has at least
        self.least = [self.number("<compiler>", whole, key, "0") for key in ("boundmass", "boundinertia")]
        #: groups of the geoms that have mass
        self.groups = self.numbers("<compiler>", whole, "inertiagrouprange", 2, "0 5")
        #: kg; not above 0: as the bodies say
        self.total = self.number("<compiler>", whole, "settotalmass", "-1")
        self.balance_inertia |= self.word("<compiler>", whole, "balanceinertia", "false", ("true", "false")) == "true"
        self.from_geoms = self.word("<compiler>", whole, "inertiafromgeom", "auto", ("true", "false", "auto"))
        self.fits_around = self.word("<compiler>", whole, "fitaabb", "false", ("true", "false")) == "true"
        self.limited = self.word("<compiler>", whole, "autolimits", "true", ("true", "false")) == "true"
        self.defaults: dict[str, dict[str, dict[str, str]]] = {"main": {}}
        for element in root.findall("default"):
            if element.get("class", "main") != "main":
                raise self.wrong("<default>", f"has class {element.get('class')!r}; the outer one is 'main'; put it within.")
            self._default(element, "main", self.defaults["main"])
        for base, elements in bases.items():
            self.defaults[base] = {}
            for element in elements:
                self._default(element, base, self.defaults[base])
        folder = path.resolve().parent / compiler.get("meshdir", compiler.get("assetdir", ""))
        self.meshes = MeshAssets(self, self._meshes(), folder)
        #: how meshes have mass that do not say it
        self.mesh_inertia = "exact" if compiler.get("exactmeshinertia") == "true" else "legacy"

    def word(self, where: str, element: Element, key: str, default: str, allowed: tuple[str, ...]) -> str:
        """Value of an attribute that is one of some words."""
        given = element.get(key, default)
        if given not in allowed:
            raise self.wrong(where, f"has {key} {given!r} in <{element.tag}>; allowed are {', '.join(allowed)}.")
        return given

    def _default(self, element: Element, name: str, above: Mapping[str, Mapping[str, str]]) -> None:
        own = {tag: dict(values) for tag, values in above.items()}
        for child in element:
            if child.tag in ATTRIBUTES:
                self.check_attributes(f"<default> {name!r}", child, ATTRIBUTES[child.tag])
            self.check_tag("<default>", child, DEFAULTS)
            if child.tag != "default":
                own.setdefault(child.tag, {}).update(child.attrib)
        self.defaults[name] = own
        for child in element.findall("default"):
            if not (label := child.get("class", "")):
                raise self.wrong("a <default>", "within another has no class; give it one.")
            if label in self.defaults:
                raise self.wrong("a <default>", f"has class {label!r}, as another one has; rename one of them.")
            self._default(child, label, own)

    def check_tag(self, where: str, element: Element, known: set[str]) -> None:
        """Refuse an element whose name is a misspelt one, which would not be read; note another one that is not known."""
        if element.tag in known:
            return
        if meant := get_close_matches(element.tag, known, 1, cutoff=MISSPELT):
            raise self.wrong(where, f"holds <{element.tag}>, which is unknown; did you mean <{meant[0]}>?")
        self.note(f"{where}<{element.tag}> is not read")

    def whole(self, where: str, element: Element, inherited: str, kind: str = "") -> Element:
        """Element with the attributes that it has by default, by its tag or as one of a kind."""
        name = element.get("class", inherited)
        if name not in self.defaults:
            raise self.wrong(where, f"has class {name!r}, which no <default> defines; correct its name.")
        if not kind:
            self.check_attributes(where, element, ATTRIBUTES[element.tag])
        return Element(element.tag, {**self.defaults[name].get(kind or element.tag, {}), **element.attrib})

    def _meshes(self) -> dict[str, Element]:
        out: dict[str, Element] = {}
        for asset in self.root.findall("asset"):
            for element in asset.findall("mesh"):
                whole = self.whole("a <mesh>", element, "main")
                name = whole.get("name") or Path(whole.get("file", "")).stem
                if not name:
                    raise self.wrong("a <mesh>", "has neither name nor file; name it.")
                if out.setdefault(name, whole).attrib != whole.attrib:
                    self.note(f"the mesh {name!r} is given twice; the first is read, {out[name].get('file') or 'of numbers'}")
        return out

    def turn(self, where: str, element: Element) -> np.ndarray:
        """Rotation vector (3,), rad, of an element."""
        given = [key for key in _TURNS if element.get(key)]
        if len(given) > 1:
            raise self.wrong(where, f"is turned by {' and '.join(given)}; give one of them.")
        if not given:
            return np.zeros(3)
        key = given[0]
        values = self.numbers(where, element, key, {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}[key])
        if key == "euler":
            return np.asarray(self._by_euler(values).as_rotvec())
        size = float(np.linalg.norm(values[: 4 if key == "quat" else 3]))
        if not size > 1e-9:
            raise self.wrong(where, f"has {key} {element.get(key)!r}; it must not be zero.")
        if key == "quat":
            return np.asarray(Rotation.from_quat(values[[1, 2, 3, 0]]).as_rotvec())
        if key == "axisangle":
            return np.asarray(self.angle * values[3] / size * values[:3])
        if key == "zaxis":
            return _from_z(values / size)
        x = values[:3] / size
        y = values[3:] - x * (x @ values[3:])
        if not np.linalg.norm(y) > 1e-9:
            raise self.wrong(where, f"has xyaxes {element.get(key)!r}; the two must not be parallel.")
        y /= np.linalg.norm(y)
        return np.asarray(Rotation.from_matrix(np.column_stack([x, y, np.cross(x, y)])).as_rotvec())

    def _by_euler(self, values: np.ndarray) -> Rotation:
        """Turn by three angles, one about each axis of eulerseq, which may name an axis twice in a row, as SciPy's may not."""
        first, second, third = (
            Rotation.from_euler(axis, angle) for axis, angle in zip(self.order.lower(), self.angle * values, strict=True)
        )
        # small letters turn about axes that turn along
        return first * second * third if self.order.islower() else third * second * first

    def moments(self, what: str, geom: Element, shape: Shape | TriMesh) -> Moments:
        """Mass, centre of mass and inertia about it of a geom, in the frame of its shape."""
        shell = geom.get("shellinertia") == "true"
        if geom.get("type") == "mesh":
            name = geom.get("mesh", "")
            asset = self.meshes.asset(what, name)
            way = self.word(f"mesh {name!r}", asset, "inertia", "shell" if shell else self.mesh_inertia, KINDS)
            unit, centre, inertia = mass_of_mesh(self.meshes.surface(what, name), way)
            if not unit > 0.0:
                raise self.wrong(what, "has a mesh that encloses nothing, or is inside out; give the body an <inertial>.")
        else:
            if shell:
                self.note(f"{what} counts as solid, not as a shell; give the body an <inertial>")
            if geom.get("type") == "ellipsoid":  # its own, not those of its facets
                unit, centre, inertia = mass_of_ellipsoid(self._sizes(what, geom, "ellipsoid")[0])
            else:
                unit, centre, inertia = mass_properties(cast(Shape, shape))
        mass = self._mass(what, geom, unit)
        return mass, centre, inertia * (mass / unit)

    def locks(self, what: str, joint: Element) -> bool:
        """Whether damping locks a joint, so that it stays where the file draws it."""
        try:
            damping = float(joint.get("damping", "0"))
        except ValueError:  # several numbers, or none
            return False
        if locked := MOST < damping < np.inf:
            self.note(f"{what} is read as fixed, where the file draws it, since its damping of {damping:g} lets nothing move it")
        return locked

    def has_mass(self, what: str, geom: Element) -> bool:
        """Whether the group of a geom is one of those that have mass."""
        return bool(self.groups[0] <= self.number(what, geom, "group", "0") <= self.groups[1])

    def at_least(self, mass: float, centre: np.ndarray, inertia: np.ndarray) -> Moments:
        """Mass, centre and inertia of a body, with what each body has at least."""
        moments, axes = np.linalg.eigh(inertia)
        if moments[0] >= self.least[1]:
            return max(mass, self.least[0]), centre, inertia
        return max(mass, self.least[0]), centre, (axes * np.maximum(moments, self.least[1])) @ axes.T

    def _mass(self, what: str, geom: Element, unit: float) -> float:
        """Mass of a geom, kg, of one with a given mass at density 1."""
        if geom.get("mass") is not None:
            return self.number(what, geom, "mass")
        density = self.number(what, geom, "density", _DENSITY)
        if density < 0.0:
            raise self.wrong(what, f"has the density {density:g} kg/m^3; allowed are numbers from 0.")
        return density * unit

    def form(
        self, what: str, geom: Element, kind: str, has_contact: bool, weighed: bool
    ) -> tuple[Shape | TriMesh, np.ndarray, np.ndarray] | None:
        """Shape of a geom, a surface where a mesh is drawn only, and its place and turn; None where it is not drawn either."""
        if kind != "mesh":
            return self._primitive(what, geom, kind)
        name, place = geom.get("mesh", ""), self.numbers(what, geom, "pos", 3, "0 0 0")
        self.meshes.asset(what, name)
        try:
            shape = self.meshes.solid(what, name) if has_contact else self.meshes.surface(what, name)
        except InputError as error:
            if has_contact or not weighed:
                raise
            self.note(f"{what}, which is drawn only, is left out: {str(error).removeprefix(f'{self.path}: ')}")
            return None
        return shape, place, self.turn(what, geom)

    def _primitive(self, what: str, geom: Element, kind: str) -> tuple[Shape, np.ndarray, np.ndarray]:
        """Box, sphere, capsule, cylinder or ellipsoid, its place and turn."""
        sizes, place, turn = self._sizes(what, geom, kind)
        try:
            return _shape(kind, sizes), place, turn
        except ContactError as error:
            raise self.wrong(what, f"has wrong sizes: {error}") from error

    def _sizes(self, what: str, geom: Element, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sizes of a geom that is no mesh, its place and turn."""
        place, turn = self.numbers(what, geom, "pos", 3, "0 0 0"), self.turn(what, geom)
        size = {"sphere": 1, "box": 3, "ellipsoid": 3}.get(kind, 2)
        if name := geom.get("mesh"):
            sizes, place, turn = self._fitted(what, geom, kind, name, place, turn)
        elif geom.get("fromto") and kind != "sphere":
            ends = self.numbers(what, geom, "fromto", 6)
            way = ends[3:] - ends[:3]
            length = float(np.linalg.norm(way))
            if not length > 0.0:
                raise self.wrong(what, "has a fromto of no length; give two points.")
            place, turn = 0.5 * (ends[:3] + ends[3:]), _from_z(-way / length)  # z goes to where it comes from
            first = float(geom.get("size", "").split()[0]) if _numbers(geom.get("size", "")) else 0.0
            if not first:
                raise self.wrong(what, "has a fromto without size; give its radius.")
            sizes = np.array([first, first, 0.5 * length] if size == 3 else [first, 0.5 * length])  # a box is square
        else:
            words = geom.get("size", "").split()
            geom.set("size", " ".join(words[:size]) if kind != "sphere" else " ".join(words[:1]))
            sizes = self.numbers(what, geom, "size", size)
        if kind == "capsule" and geom.get("mesh") and sizes[1] < 1.0 / MOST:
            sizes = sizes[:1]  # it is round
        if not ((sizes >= 1.0 / MOST) & (sizes <= MOST)).all():
            raise self.wrong(what, f"has the sizes {sizes.tolist()} m; allowed are numbers from {1.0 / MOST:g} to {MOST:g}.")
        return sizes, place, turn

    def _fitted(
        self, what: str, geom: Element, kind: str, name: str, place: np.ndarray, turn: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sizes of a geom that is fitted to a mesh, its place and turn; the mesh would be where the geom is said to be."""
        if geom.get("fromto"):
            raise self.wrong(what, f"has fromto, and is fitted to the mesh {name!r}; leave one of them out.")
        way = self.word(f"mesh {name!r}", self.meshes.asset(what, name), "inertia", self.mesh_inertia, KINDS)
        own = Rotation.from_rotvec(turn)
        try:
            sizes, centre, axes = fitted(kind, self.meshes.surface(what, name), way, self.fits_around)
        except ValueError as error:
            raise self.wrong(what, f"is fitted to the mesh {name!r}: {error}; give its sizes instead.") from error
        turned = np.asarray((own * Rotation.from_matrix(axes)).as_rotvec())
        return self.number(what, geom, "fitscale", "1") * sizes, place + own.apply(centre), turned


def _numbers(text: str) -> bool:
    """Whether a text is some finite numbers."""
    try:
        return bool(text.split()) and all(math.isfinite(float(word)) for word in text.split())
    except ValueError:
        return False


def _shape(kind: str, sizes: np.ndarray) -> Shape:
    """Shape of a kind, by half its extents, or radius and half its length, m."""
    if kind == "box":
        return Box(tuple(sizes))
    if len(sizes) == 1:
        return Sphere(float(sizes[0]))
    if kind == "ellipsoid":
        return ellipsoid(sizes)
    return (Capsule if kind == "capsule" else Cylinder)(float(sizes[0]), float(sizes[1]))


def _from_z(direction: np.ndarray) -> np.ndarray:
    """Rotation vector (3,), rad, of the smallest turn from z to a unit vector."""
    axis = np.cross([0.0, 0.0, 1.0], direction)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        return np.zeros(3) if direction[2] > 0.0 else np.array([math.pi, 0.0, 0.0])
    return np.asarray(math.atan2(sine, float(direction[2])) / sine * axis)
