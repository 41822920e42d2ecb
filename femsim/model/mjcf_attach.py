"""Models of other MJCF files that one attaches: <model> in <asset>, and <attach> where its bodies go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import Element

import foreign
from femsim.base.errors import InputError, did_you_mean
from femsim.base.files import is_file
from femsim.model.mjcf_includes import include
from foreign.text import read_xml

#: Models that are attached in all, also by models that are attached.
_MOST_MODELS = 100
#: What an attached model leaves behind: its surroundings, and what is put elsewhere.
_LEFT = {"compiler", "option", "size", "visual", "statistic", "default", "worldbody", "keyframe", "custom"}
#: Attributes that name something of the same file, and elements whose class is that of the file where they say none.
_NAMES = (
    "name", "class", "childclass", "mesh", "joint", "joint1", "joint2", "tendon1", "tendon2", "body1", "body2", "geom1", "geom2"
)  # fmt: skip
_ENDS = ("joint1", "joint2", "body1", "body2", "geom1", "geom2")
_WITH_CLASS = {"mesh", "pair", "joint"}
#: Attributes of <compiler> that say only where files are, or nothing about a robot.
_PLACES = {"meshdir", "assetdir", "texturedir", "strippath", "usethread", "discardvisual", "fusestatic", "convexhull"}
#: What <compiler> says where it says nothing.
_USUAL = {"angle": "degree", "eulerseq": "xyz", "autolimits": "true", "inertiafromgeom": "auto", "balanceinertia": "false",
          "fitaabb": "false", "coordinate": "local", "settotalmass": "-1"}  # fmt: skip

#: Outer <default> elements of attached models, by the name of their class; they have nothing from those of the file.
Bases = dict[str, list[Element]]


def attach(path: Path, root: Element) -> Bases:
    """Put bodies, meshes, pairs and equalities of other models in place of each <attach> of a file, with its prefix in all names.

    A model has the defaults of its own file alone, as MuJoCo has it; its <option> is left behind.

    Raises
    ------
    InputError
        A model that is not there, cannot be read, or has other units than this file, or too many of them.
    """
    return _Attaching(path, root, [0]).bases


class _Attaching:
    """Attaches what one file asks for; ``count`` are the models so far, of all files."""

    def __init__(self, path: Path, root: Element, count: list[int]) -> None:
        self.path, self.root, self.count = path, root, count
        self.bases: Bases = {}
        self.models: dict[str, Path] = {}
        for asset in root.findall("asset"):
            for model in asset.findall("model"):
                file = (path.resolve().parent / model.get("file", "")).resolve()
                self.models[model.get("name") or _own_name(file)] = file
                asset.remove(model)
        for world in root.findall("worldbody"):
            self._below(world)

    def _wrong(self, what: str) -> InputError:
        return InputError(f"{self.path}: <attach> {what}")

    def _below(self, element: Element) -> None:
        """Replace what is to be attached within an element."""
        for k, child in enumerate(element):
            if child.tag == "attach":
                element[k] = self._attached(child)
            else:
                self._below(child)

    def _attached(self, element: Element) -> Element:
        """Frame with the bodies of a model; its other sections go to the file."""
        name, prefix = element.get("model", ""), element.get("prefix", "")
        self.count[0] += 1
        if self.count[0] > _MOST_MODELS:
            raise self._wrong(f"puts in more than {_MOST_MODELS} models; allowed are {_MOST_MODELS}, none of them within itself.")
        file, other = self._model(name)
        inner = _Attaching(file, other, self.count).bases
        main = f"{prefix}main of {name}"
        if main in self.bases:
            raise self._wrong(f"puts in the model {name!r} twice with the prefix {prefix!r}; give each another prefix.")
        kind, held = self._chosen(other, element.get("body"), main)
        if element.get("body") is not None and any(one.tag == "replicate" for top in held for one in top.iter()):
            raise self._wrong(f"names the body {element.get('body')!r}, which has a <replicate>; attach all of {name!r}.")
        self._own_classes(file, other, main, inner)
        named = None if element.get("body") is None else {one.get("name", "") for top in held for one in top.iter()}
        for section in other:
            if section.tag not in _LEFT:
                if named is not None and section.tag in ("contact", "equality"):
                    section[:] = [one for one in section if all(one.get(key, "") in named | {""} for key in _ENDS)]
                _each(section, lambda one: _rename(one, prefix, main))
                self.root.append(section)
        for top in held:
            _each(top, lambda one: _rename(one, prefix, main))
        self.bases[main] = other.findall("default")
        self.bases |= {_class(base, prefix, main): elements for base, elements in inner.items()}
        for default in (one for elements in (self.bases[main], *inner.values()) for one in elements):
            _each(default, lambda one: _rename(one, prefix, main))
            default.attrib.pop("class", None)
        frame = Element("frame", {"childclass": _class(kind, prefix, main)})
        frame.extend(held)
        return frame

    def _model(self, name: str) -> tuple[Path, Element]:
        """File and root of a model, with what it includes."""
        if name not in self.models:
            raise self._wrong(f"names the model {name!r}, which no <asset> has{did_you_mean(name, list(self.models))}")
        file = self.models[name]
        if not is_file(file):
            raise self._wrong(f"has the model {name!r} of the file {file}, which is not there; correct its name.")
        try:
            root = read_xml(file)
        except (OSError, foreign.Refused) as error:
            raise self._wrong(f"has the file {file}, which cannot be read ({error}); mend it.") from error
        if root.tag != "mujoco":
            raise self._wrong(f"has the file {file}, whose root is <{root.tag}>; give one of MJCF.")
        include(file, root)
        ours, theirs = _compiler(self.root), _compiler(root)
        for key in sorted(ours.keys() | theirs.keys()):
            if ours.get(key) != theirs.get(key):
                said = " and ".join(f"{which} {one[key]!r}" if key in one else f"{which} nothing" for which, one in
                                    (("there", theirs), ("here", ours)))  # fmt: skip
                raise self._wrong(f"has the file {file}, whose <compiler> differs in {key} ({said}); write both files alike.")
        return file, root

    def _chosen(self, other: Element, body: str | None, main: str) -> tuple[str, list[Element]]:
        """Class by default of the body of a name and this body, or of all that the world of a model holds."""
        worlds = other.findall("worldbody")
        if body is None:
            return main, [one for world in worlds for one in world]
        found = [one for world in worlds for one in _bodies(world, main) if one[1].get("name") == body]
        if not found:
            known = [one.get("name", "") for world in worlds for _, one in _bodies(world, main)]
            raise self._wrong(f"names the body {body!r}, which its model has not{did_you_mean(body, known)}")
        return found[0][0], [found[0][1]]

    def _own_classes(self, file: Path, other: Element, main: str, inner: Bases) -> None:
        """Name meshes by their files, which are found from here, and give the outer class of a model to what says none."""
        compiler = {key: value for one in other.findall("compiler") for key, value in one.attrib.items()}
        folder = file.parent / compiler.get("meshdir", compiler.get("assetdir", ""))
        for mesh in (one for asset in other.findall("asset") for one in asset.findall("mesh")):
            if mesh.get("file"):
                mesh.attrib.setdefault("name", Path(mesh.get("file", "")).stem)
                mesh.set("file", str(folder / mesh.get("file", "")))
        for section in (one for tag in ("asset", "contact", "equality") for one in other.findall(tag)):
            for one in section:
                if one.tag in _WITH_CLASS and one.get("class") is None:
                    one.set("class", main)


def _own_name(file: Path) -> str:
    """Name that a model gives itself, by which it is known where no other one is given."""
    try:
        return read_xml(file).get("model") or file.stem
    except (OSError, foreign.Refused):  # said where it is attached
        return file.stem


def _each(element: Element, change: Callable[[Element], None]) -> None:
    """Change an element and all in it."""
    for one in element.iter():
        change(one)


def _rename(element: Element, prefix: str, main: str) -> None:
    """Put a prefix in front of all names in an element; classes become those of the model, also where it has no prefix."""
    for key in _NAMES:
        if given := element.get(key):
            element.set(key, _class(given, prefix, main) if "class" in key else prefix + given)


def _class(name: str, prefix: str, main: str) -> str:
    """Name of a class of a model; without a prefix files may have classes of one name, which differ."""
    return main if name in ("main", main) else (prefix or f"{main} ") + name


def _bodies(element: Element, inherited: str) -> list[tuple[str, Element]]:
    """Bodies in an element, each with the class that it has by default."""
    out = []
    for child in element:
        if child.tag == "body":
            out.append((inherited, child))
        if child.tag in ("body", "frame"):
            out += _bodies(child, child.get("childclass", inherited))
    return out


def _compiler(root: Element) -> dict[str, str]:
    """Collect what the <compiler> of a file says about a robot."""
    said = {key: value for one in root.findall("compiler") for key, value in one.attrib.items()}
    return {key: value for key, value in (_USUAL | said).items() if key not in _PLACES}
