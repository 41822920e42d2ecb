"""Robots from files in the format MJCF of MuJoCo: the common subset, see :func:`read_mjcf`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, cast
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

from femsim.base.errors import did_you_mean
from femsim.model.joint_springs import RobotSpring
from femsim.model.mjcf_attach import Bases, attach
from femsim.model.mjcf_elements import MjcfElements
from femsim.model.mjcf_includes import include
from femsim.model.mjcf_left import equality_left, friction_left, keys_left, tendons_left
from femsim.model.mjcf_meshes import Moments
from femsim.model.mjcf_replicate import replicate
from femsim.model.mjcf_springs import spring_dampers, tendon_springs
from femsim.model.mjcf_words import ATTRIBUTES, EQUALITIES, FLAGS
from femsim.model.robot_files import MOST
from femsim.model.robots import JointKind, Robot, RobotJoint, RobotLink
from femsim.model.solids import Piece
from meshes import TriMesh, make_trimesh

#: Sections that say nothing about a robot, those that would change it and cannot be read, and elements of bodies of both kinds.
_PASSED = {"option", "size", "visual", "statistic", "asset", "default", "compiler", "custom", "keyframe", "worldbody"}
_NOTED = {"actuator", "sensor", "extension"}
_BODY = {"inertial", "joint", "freejoint", "geom", "body"}
_BODY_PASSED = {"site", "camera", "light"}
#: Elements of bodies, assets and contact, which sections of a whole file hold.
_WITHIN = _BODY | _BODY_PASSED | {"frame", "mesh", "texture", "material", "hfield", "pair", "exclude"}
#: So many trees or joints of a file are named in a message.
_SHOWN = 12
_KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical"}
_SHAPES = ("box", "sphere", "capsule", "cylinder", "ellipsoid", "mesh")


@dataclass(frozen=True)
class _Held:
    """What a body or the world holds: the element, the pose of the <frame> around it in that body, and its class by default."""

    element: Element
    place: np.ndarray
    turn: Rotation
    inherited: str


@dataclass(frozen=True)
class _Place:
    """Where a link's frame is: the link, and the origin and rotation of a body's frame in it."""

    link: str
    origin: np.ndarray


def read_mjcf(path: Path, root: Element, balance_inertia: bool, tree: str | None) -> Robot:
    """Read a robot from the root element of an MJCF file: its only tree, or that whose body in the world has the name ``tree``.

    Read are a tree of bodies in <worldbody>, inertia (given, or that of the geoms, times what settotalmass asks for), joints
    hinge, slide, ball and free with range, ref, damping (above 1e9 it locks them), stiffness, springdamper, frictionloss,
    armature, geoms box, sphere, capsule, cylinder, ellipsoid (as a mesh of its volume, with its own inertia) and mesh (from
    files or numbers), also fitted to a mesh, frames, <replicate>, included files, attached models, defaults with classes,
    angles in degrees or radians, all ways to write a turn, <equality><joint>, and that of a fixed tendon over two joints, as
    mimic; springs and dampers of fixed tendons, and those that actuators pull; who has contact with whom by contype,
    conaffinity, <contact><exclude> and <pair>. Noted and left out are actuators, sensors, other tendons, springs of balls,
    other equalities, friction, keyframes, and what stands still in the world. Refused is what would make another robot:
    composites, several trees without a choice, other geoms that count.

    Raises
    ------
    InputError
        What is wrong or not read in it: one sentence that names file and element.
    """
    include(path, root)
    return _Reader(path, root, balance_inertia, attach(path, root)).robot(tree)


class _Reader(MjcfElements):
    """Reads the tree of one file."""

    def __init__(self, path: Path, root: Element, balance_inertia: bool, bases: Bases) -> None:
        super().__init__(path, root, balance_inertia, bases)
        self.links: list[RobotLink] = []
        self.joints: list[RobotJoint] = []
        #: position of each joint with a ref where the file draws it, rad or m
        self.drawn: dict[str, float] = {}
        #: where joints have their springref, rad or m, and springs that are read
        self.rests: dict[str, float] = {}
        self.joint_springs: list[RobotSpring] = []
        #: balls with springs, as a note names them, and time constant (s) and damping ratio of joints by springdamper
        self.springs: list[str] = []
        self.dampers: dict[str, tuple[float, float]] = {}
        #: largest angle of each range, as the file has it
        self.turns: list[float] = []
        #: body and masks (contype, conaffinity) of each geom that has contact, and the body of each that has a name
        self.masks: list[tuple[str, int, int]] = []
        self.body_of: dict[str, str] = {}
        #: bodies of geoms that say their friction, by the coefficient
        self.friction: dict[float, list[str]] = {}
        #: origin of the frame of each body in that of its link, m
        self.origins: dict[str, np.ndarray] = {}
        #: names in other trees of the file
        self.elsewhere: set[str] = set()

    # ---- the tree

    def robot(self, tree: str | None) -> Robot:
        """Read all of it, or of one tree."""
        replicate(self)
        self._note_surroundings()
        for child in self.root:
            if child.tag in _NOTED:
                self.note(f"<{child.tag}> is not read")
            elif child.tag not in _PASSED and child.tag not in ("equality", "contact", "tendon"):
                part = "is not read here; this file seems to be a part of a model, so give the one that includes it."
                other = "is not read; save the model as one plain file by MuJoCo (mj_saveLastXML), or take it out."
                raise self.wrong(f"<{child.tag}>", part if child.tag in _WITHIN else other)
        held = [one for world in self.root.findall("worldbody") for one in self._content("<worldbody>", world, "main")]
        bodies = [one for one in held if one.element.tag == "body"]
        others = {one.element.tag for one in held} - {"body"} - _BODY_PASSED
        if others - {"geom"}:
            tag = min(others - {"geom"})
            raise self.wrong("<worldbody>", f"holds <{tag}>, which is not read; save the model as one plain file by MuJoCo.")
        if others:
            self.note("geoms of the world are left out; add obstacles to the scene")
        self.body_of |= {one.element.get("name", ""): "world" for one in held if one.element.tag == "geom"}
        top = self._chosen(bodies, tree)
        name = tree or self.root.get("model", "").strip() or self.path.stem
        inherited = top.element.get("childclass", top.inherited)
        joints = [one.element for one in self._joints_of("the base", list(self._content("the base", top.element, inherited)))]
        kinds = ["free" if joint.tag == "freejoint" else joint.get("type", "hinge") for joint in joints]
        if kinds and kinds != ["free"]:
            self.links.append(RobotLink("world"))
            self._body(top, _Place("world", np.zeros(3)))
        else:
            if kinds:
                self.note("its base has a free joint; say base='free' in add_robot")
                keys = ("damping", "frictionloss", "armature")
                lost = [key for key in keys if self._first("the free joint", joints[0], key) != 0.0]
                if lost:
                    self.note(f"{' and '.join(lost)} of the free joint {'is' if len(lost) == 1 else 'are'} left out")
            self._body(top, None)
        if len(self.turns) > 1 and max(self.turns) <= 2.0 * np.pi and not self.says_angle:
            self.note(
                f"ranges of its {len(self.turns)} joints are up to {max(self.turns):.4g} degrees, as no <compiler> says what "
                'angles are; if they are radians, say <compiler angle="radian"/>, in it or in one that includes it'
            )
        if self.springs:
            self.note(f"springs of balls are left out: {_first_of(self.springs)}; those of joints of one coordinate are read")
        if drawn := ", ".join(f"{joint!r}: {at:.6g}" for joint, at in self.drawn.items()):
            self.note(f"joints are drawn at their ref; start there by joints={{{drawn}}} in add_robot")
        if self.friction:
            self.note(friction_left(self.friction))
        if self.dampers:
            own = (self._weighed(), self.joints, kinds == ["free"], self.drawn, self.rests)
            self.joints, self.joint_springs[:0] = spring_dampers(self, self.dampers, *own)
        coupled = self._mimics()
        if starts := [one for frame in self.root.findall("keyframe") for one in frame.findall("key")]:
            self.note(keys_left(starts, coupled, kinds == ["free"]))
        return self.finished(name, self._weighed(), coupled, self._no_contact(), self.joint_springs)

    def _chosen(self, bodies: Sequence[_Held], tree: str | None) -> _Held:
        """Body of the world with the tree that is asked for, or the only one."""
        names = [one.element.get("name", "") for one in bodies]
        if not names:
            raise self.wrong("<worldbody>", "holds 0 bodies; a robot is one tree of them, so give the file that has it.")
        if tree is None and len(names) == 1:
            return bodies[0]
        shown = _first_of([*map(repr, names)])
        if tree is None:
            joints = [len([*one.element.iter("joint"), *one.element.iter("freejoint")]) for one in bodies]
            first = max(zip(joints, names, strict=True), key=lambda one: (bool(one[1]), one[0]))[1] or "NAME"
            raise self.wrong(
                "<worldbody>",
                f"holds {len(names)} trees, of the bodies {shown}; a robot is one: say which by tree={first!r} in add_robot or "
                "load_robot, and add the others, also loose ones with base='free', by calls of their own.",
            )
        if not tree or names.count(tree) != 1:
            how_many = "two trees or more" if tree and tree in names else "no tree"
            raise self.wrong("<worldbody>", f"has {how_many} of the name {tree!r}; its bodies are {shown}; give the name of one.")
        if self.total > 0.0 and len(names) > 1:
            raise self.wrong("<compiler>", "has settotalmass, which is that of all trees; take it out, and give masses instead.")
        chosen = bodies[names.index(tree)]
        self.elsewhere = {one.get("name", "") for other in bodies if other is not chosen for one in other.element.iter()}
        return chosen

    def _weighed(self) -> list[RobotLink]:
        """Links; their masses add up to settotalmass, where that is given."""
        mass = sum(link.mass for link in self.links)
        if not (self.total > 0.0 and mass > 0.0):
            return self.links
        factor = self.total / mass
        return [replace(link, mass=factor * link.mass, inertia=factor * np.asarray(link.inertia)) for link in self.links]

    def _note_surroundings(self) -> None:
        """Note what <option> says of the surroundings, which a scene has."""
        for option in self.root.findall("option"):
            self.check_attributes("<option>", option, ATTRIBUTES["option"])
            for child in option:
                self.check_tag("<option>", child, {"flag"})
            off = {key for flag in option.findall("flag") for key in self._flags_off(flag)}
            for key in sorted(off & FLAGS.keys()):
                self.note(f'<flag {key}="disable"> of <option> is left out; {FLAGS[key]}')
            gravity = self.numbers("<option>", option, "gravity", 3, "0 0 -9.81")
            if "gravity" not in off and np.abs(gravity - (0.0, 0.0, -9.81)).max() > 1e-9:
                given = ", ".join(f"{one:g}" for one in gravity)
                self.note(f"its gravity, ({given}) m/s^2, is left out; give it to fs.Scene")
            for key, count in (("wind", 3), ("density", 1), ("viscosity", 1)):
                if self.numbers("<option>", option, key, count, " ".join(["0"] * count)).any():
                    self.note(f"{key} of <option> is left out; bodies move without air")

    def _flags_off(self, flag: Element) -> set[str]:
        """Names of the flags that are off."""
        self.check_attributes("<option>", flag, ATTRIBUTES["option flag"])
        return {key for key in flag.keys() if self.word("<option>", flag, key, "", ("enable", "disable")) == "disable"}

    def _no_contact(self) -> list[tuple[str, str]]:
        """Pairs of bodies without contact: by <exclude>, and where no geoms have masks that match and no <pair> names them."""
        excluded: list[tuple[str, str]] = []
        named: set[tuple[str, str]] = set()
        for element in (one for contact in self.root.findall("contact") for one in contact):
            self.check_tag("<contact>", element, {"exclude", "pair"})
            if element.tag == "exclude":
                self.check_attributes("<contact>", element, ATTRIBUTES["exclude"])
                known = [link.name for link in self.links]
                if (pair := self._pair(element, "excludes body", "body", known)) is not None:
                    excluded.append(pair)
            elif element.tag == "pair":
                self.whole("<contact>", element, "main")  # checks attributes and class
                if (geoms := self._pair(element, "pairs geom", "geom", list(self.body_of))) is None:
                    continue
                named.add((self.body_of[geoms[0]], self.body_of[geoms[1]]))
                if len(element.attrib) > 2 + ("name" in element.attrib):
                    self.note("of <contact><pair> only the pair is read; friction is set in the scene")
        named |= {(b, a) for a, b in named}
        unmatched = [pair for pair in self._unmatched() if pair not in named]
        return [pair for pair in excluded if "world" not in pair] + [pair for pair in unmatched if pair not in excluded]

    def _pair(self, element: Element, does: str, key: str, known: list[str]) -> tuple[str, str] | None:
        """Two names of an element of <contact>, which must be known; None where one is of another tree."""
        first, second = element.get(f"{key}1", ""), element.get(f"{key}2", "")
        if self.elsewhere & {first, second}:
            return None
        for name in (first, second):
            if name not in known and (key, name) != ("body", "world"):
                raise self.wrong("<contact>", f"{does} {name!r}, which is not there{did_you_mean(name, known)}")
        return first, second

    def _unmatched(self) -> list[tuple[str, str]]:
        """Pairs of bodies whose geoms have no masks that match: contype of one and conaffinity of the other share no bit."""
        bodies: dict[str, list[tuple[int, int]]] = {}
        for body, kind, other in self.masks:
            bodies.setdefault(body, []).append((kind, other))
        out = []
        for (a, first), (b, second) in combinations(bodies.items(), 2):
            matches = {bool(i & m or k & j) for i, j in first for k, m in second}
            if matches == {False}:
                out.append((a, b))
            elif len(matches) > 1:
                self.note(f"geoms of bodies {a!r} and {b!r} have contact by masks in part; here all of theirs have it")
        if any(not (kind & 1 or other & 1) for _, kind, other in self.masks):
            self.note(
                "masks of geoms are read between bodies of the robot; what else is in the scene has contact with all of them"
            )
        return out

    def _content(self, where: str, element: Element, inherited: str, outer: _Held | None = None) -> Iterator[_Held]:
        """Yield what a body or the world holds, also within <frame>, which is a pose and a class for all in it."""
        place, turn = (np.zeros(3), Rotation.identity()) if outer is None else (outer.place, outer.turn)
        for child in element:
            if child.tag != "frame":
                yield _Held(child, place, turn, inherited)
                continue
            self.check_attributes(where, child, ATTRIBUTES["frame"])
            own = self.numbers(where, child, "pos", 3, "0 0 0"), self.turn(where, child)
            kind = child.get("childclass", inherited)
            yield from self._content(where, child, kind, _Held(child, *_moved(place, turn, *own), kind))

    def _joints_of(self, where: str, held: Sequence[_Held]) -> list[_Held]:
        """Joints among what a body holds, with the attributes that they have by default."""
        chosen = [one for one in held if one.element.tag in ("joint", "freejoint")]
        return [replace(one, element=self.whole(f"a joint of {where}", one.element, one.inherited)) for one in chosen]

    def _body(self, own: _Held, above: _Place | None) -> None:
        """Read a body and those in it; its links and joints go to the lists. The base has nothing above it."""
        element = own.element
        name = element.get("name") or f"body{len(self.links) + 1}"
        where = f"body {name!r}"
        self.check_attributes(where, element, ATTRIBUTES["body"])
        held = list(self._content(where, element, element.get("childclass", own.inherited)))
        for one in held:
            if one.element.tag not in _BODY | _BODY_PASSED:
                tag = one.element.tag
                raise self.wrong(where, f"holds <{tag}>, which is not read; save the model as one plain file by MuJoCo.")
        pose = self.numbers(where, element, "pos", 3, "0 0 0"), self.turn(where, element)
        place, around = _moved(own.place, own.turn, *pose)
        turn = np.asarray(around.as_rotvec())
        if above is None and (place.any() or np.any(turn)):
            at, about = (", ".join(f"{one:.6g}" for one in values) for values in (place, turn))
            self.note(
                f"the pose of {where}, the base, is left out; say where it stands in add_robot, by position=({at}) and "
                f"rotation=({about}) as in the file"
            )
        if self.number(where, element, "gravcomp", "0") != 0.0:
            self.note(f"gravcomp of {where} is left out; let motors bear its weight, by inverse_dynamics")
        joints = self._joints_of(where, held)
        origin = np.zeros(3)  # of the body's frame in that of its link
        if above is not None:
            origin = self._hang(name, joints, above, place, turn)
        self.origins[name] = origin
        mass, centre, inertia, shapes, visuals = self._matter(name, where, held)
        moved = [Piece(one.shape, np.asarray(one.position) + origin, one.rotation) for one in shapes]
        seen = [_shifted(one, origin) for one in visuals]
        self.links.append(RobotLink(name, mass, centre + origin, inertia, moved, seen))
        for one in held:
            if one.element.tag == "body":
                self._body(one, _Place(name, origin))

    def _hang(self, name: str, joints: list[_Held], above: _Place, place: np.ndarray, turn: np.ndarray) -> np.ndarray:
        """Add the joints of a body, one behind the other; return the origin of its frame in that of its link.

        The frame of a link lies where its joint turns; links without mass are between several joints of a body.
        """
        start, rotation = above.origin + place, Rotation.from_rotvec(turn).as_matrix()
        if not joints:
            self.joints.append(RobotJoint(f"{name}_mount", above.link, name, "fixed", start, turn))
            return np.zeros(3)
        parent, anchor = above.link, np.zeros(3)
        for k, held in enumerate(joints):
            joint = held.element
            label = joint.get("name") or (f"{name}_joint" if len(joints) == 1 else f"{name}_joint{k + 1}")
            kind = joint.get("type", "hinge")
            what = f"joint {label!r}"
            if joint.tag == "freejoint" or kind not in _KINDS:
                raise self.wrong(
                    what, f"is {'free' if joint.tag == 'freejoint' else kind!r}; allowed below the base are {', '.join(_KINDS)}."
                )
            self.rests[label] = (1.0 if kind == "slide" else self.angle) * self._first(what, joint, "springref")
            at = held.place + held.turn.apply(self.numbers(what, joint, "pos", 3, "0 0 0"))
            child = name if k == len(joints) - 1 else f"{name}_{k + 1}"
            if child != name:
                self.links.append(RobotLink(child))
            way, frame = (start + rotation @ at, turn) if k == 0 else (at - anchor, np.zeros(3))
            axis, ref = held.turn.apply(self.numbers(what, joint, "axis", 3, "0 0 1")), self._ref(what, joint, kind)
            if self.locks(what, joint):
                self.joints.append(RobotJoint(label, parent, child, "fixed", way, frame))
                parent, anchor = child, at
                continue
            if ref:
                # the frame at position zero; the file draws it at ref
                back = -ref * axis / max(float(np.linalg.norm(axis)), 1.0 / MOST)
                there = Rotation.from_rotvec(frame)
                behind = np.asarray((there * Rotation.from_rotvec(back)).as_rotvec())
                way, frame = (way + there.apply(back), frame) if kind == "slide" else (way, behind)
                self.drawn[label] = ref
            given = cast(JointKind, _KINDS[kind])
            self.joints.append(RobotJoint(label, parent, child, given, way, frame, axis, **self._options(what, joint, kind)))
            parent, anchor = child, at
        return -anchor

    def _ref(self, what: str, joint: Element, kind: str) -> float:
        """Position of a joint where the file draws it, rad or m; a ball has none."""
        ref = self.number(what, joint, "ref", "0")
        return 0.0 if kind == "ball" else ref if kind == "slide" else self.angle * ref

    def _options(self, what: str, joint: Element, kind: str) -> dict[str, Any]:
        """Numbers of a joint beside its place."""
        unit = 1.0 if kind == "slide" else self.angle
        label, stiffness = what.removeprefix("joint "), self._first(what, joint, "stiffness")
        both = self.numbers(what, joint, "springdamper", 2, "0 0")
        if both.any() and kind == "ball":
            self.springs.append(f"{label} (by springdamper)")
        elif both.any():
            self.dampers[next(reversed(self.rests))] = (time, ratio) = float(both[0]), float(both[1])
            if min(time, ratio) <= 0.0:
                raise self.wrong(what, f"has springdamper {time:g} {ratio:g}; allowed are two positive numbers.")
        elif stiffness != 0.0 and kind == "ball":
            self.springs.append(f"{label} ({stiffness:.6g} N m/rad)")
        elif stiffness != 0.0:
            name = next(reversed(self.rests))  # its own
            self.joint_springs.append(RobotSpring(name, {name: 1.0}, stiffness, self.rests[name]))
        if len(joint.get("damping", "").split()) > 1:
            self.note(f"of the damping of {what} the first number is read; it is linear")
        out: dict[str, Any] = {
            "damping": self._first(what, joint, "damping"),
            "rotor_inertia": self.number(what, joint, "armature", "0"),
        }
        rub = self.number(what, joint, "frictionloss", "0")
        limited = self.word(what, joint, "limited", "auto", ("true", "false", "auto"))
        if limited == "true" or (limited == "auto" and self.limited and joint.get("range")):
            low, high = unit * self.numbers(what, joint, "range", 2)
            if low == high == 0.0 and limited == "auto":
                self.note(f"the range of {what} is 0 to 0, which is none: the joint has no stops")
            elif kind == "ball":
                self.note(f"the range of {what} is left out; a ball has none")
            else:
                out["limits"] = float(low), float(high)
                if kind == "hinge":
                    self.turns.append(max(abs(low), abs(high)) / unit)
        if kind != "ball":
            out["friction"] = rub
        elif rub:
            self.note(f"the friction of {what} is left out; a ball has none")
        motors = self.word(what, joint, "actuatorfrclimited", "auto", ("true", "false", "auto"))
        if joint.get("actuatorfrcrange") and motors != "false" and kind != "ball":
            least, most = self.numbers(what, joint, "actuatorfrcrange", 2)
            out["max_effort"] = float(max(abs(least), abs(most)))
            if -least != most:
                self.note(f"motors of {what} are limited to {out['max_effort']:g} both ways, not to {least:g} and {most:g}")
        return out

    def _first(self, what: str, joint: Element, key: str) -> float:
        """First number of an attribute of a joint, 0 where it has none."""
        first = (joint.get(key) or "0").split()[:1]
        return self.number(what, Element(joint.tag, {key: "".join(first)}), key)

    def _mimics(self) -> list[RobotJoint]:
        """Joints, with those that follow others by an equality, of two joints or of a tendon over two."""
        joints = {joint.name: joint for joint in self.joints}
        given = [one for equality in self.root.findall("equality") for one in equality]
        keeps: list[str] = []
        for element in [self.whole("an <equality>", one, "main", "equality") for one in given]:
            names = [element.get(key, "") for key in ("joint1", "joint2")]
            where = f"the equality of {names[0]!r}"
            self.check_tag("<equality>", element, EQUALITIES)
            if element.tag == "joint":
                self.check_attributes(where, element, ATTRIBUTES["equality joint"])
            active = self.word(where, element, "active", "true", ("true", "false")) == "true"
            pulled: dict[str, float] = {}
            if element.tag == "tendon" and active:
                where = f"the equality of tendon {element.get('tendon1', '')!r}"
                pulled = self._pulled(element)
                names = self._follower_first(list(pulled), joints)
            first, second = names[0], names[-1]
            if self.elsewhere & set(names) - {""}:
                self.note(f"{where} and {second!r} is left out; it is one of another tree")
                continue
            if not (active and second and (element.tag == "joint" or pulled)):
                self.note(equality_left(self, self.origins, element, active))
                continue
            if locked := [one for one in names if one in joints and joints[one].kind == "fixed"]:
                self.note(f"{where} and {second!r} is left out; {locked[0]!r} is read as fixed")
                continue
            words = element.get("polycoef", "").split()
            element.set("polycoef", " ".join(words + ["0", "1", "0", "0", "0"][len(words) :]))
            shape = self.numbers(where, element, "polycoef", 5)
            if first not in joints or (shape[2:].any() and not pulled):
                raise self.wrong(where, "names no joint, or is more than linear; allowed is joint1 = a + b joint2.")
            if pulled:  # its length stays: what it asks for beside, then what one joint asks of the other
                shape[:2] = shape[0] / pulled[first], -pulled[second] / pulled[first]
                keeps.append(element.get("tendon1", ""))
            own = joints[first]
            if own.mimic is not None:
                raise self.wrong(where, "is the second of this joint; it can follow one joint, so take one of them out.")
            # it is between ways from where the file draws both
            offset = float(shape[0]) + self.drawn.get(first, 0.0) - float(shape[1]) * self.drawn.get(second, 0.0)
            if pulled and second in joints and not _meet(own.limits, joints[second].limits, float(shape[1]), offset):
                self.note(f"{where} is left out; at no position are both {first!r} and {second!r} within their ranges")
                continue
            joints[first] = replace(own, mimic=(second, float(shape[1]), offset))
        if fixed := [one for tendon in self.root.findall("tendon") for one in tendon]:
            pairs = [(one, self.whole("a <tendon>", one, "main", "tendon")) for one in fixed if one.tag == "fixed"]
            pulled_by = tendon_springs(self, pairs, joints, self.rests, keeps, [one.name for one in self.joint_springs])
            self.joint_springs += pulled_by.values()
            if said := tendons_left(pairs, [*joints], keeps, [*pulled_by], len(fixed)):
                self.note(said)
        return list(joints.values())

    def _pulled(self, element: Element) -> dict[str, float]:
        """Coefficients of the two joints whose sum an equality of a fixed tendon keeps; of another equality none."""
        fixed = [one for tendon in self.root.findall("tendon") for one in tendon.findall("fixed")]
        found = [one for one in fixed if one.get("name", "") == element.get("tendon1", "")]
        if element.get("tendon2") or len(found) != 1:
            return {}
        what = f"tendon {found[0].get('name')!r}"
        pulled = {one.get("joint", ""): self.number(what, one, "coef") for one in found[0].findall("joint")}
        return pulled if len(pulled) == 2 and all(pulled.values()) else {}

    @staticmethod
    def _follower_first(names: list[str], joints: Mapping[str, RobotJoint]) -> list[str]:
        """Two joints in the order follower, leader: the second follows the first, unless it follows another one already."""
        taken = [one in joints and joints[one].mimic is not None for one in names]
        return (names if taken == [False, True] else names[::-1]) or [""]

    # ---- matter

    def _mask(self, what: str, geom: Element, key: str) -> int:
        """Bits of a mask, 32 at most."""
        value = self.number(what, geom, key, "1")
        if value != int(value) or not -(2**31) <= value < 2**32:
            raise self.wrong(what, f"has {key} {geom.get(key)!r}; allowed are whole numbers of 32 bits.")
        return int(value) & 0xFFFFFFFF

    def _matter(
        self, name: str, where: str, held: Sequence[_Held]
    ) -> tuple[float, np.ndarray, np.ndarray, list[Piece], list[Piece | TriMesh]]:
        """Mass, centre, inertia, shapes and drawn shapes of a body, in its frame."""
        shapes: list[Piece] = []
        visuals: list[Piece | TriMesh] = []
        parts: list[Moments] = []
        inertial = next((one for one in held if one.element.tag == "inertial"), None)
        given = inertial is not None and self.from_geoms != "true"
        geoms = [one for one in held if one.element.tag == "geom"]
        for k, one in enumerate(geoms, 1):
            geom = self.whole(f"a geom of {where}", one.element, one.inherited)
            what = f"geom {geom.get('name') or k} of {where}"
            if geom.get("name"):
                self.body_of[geom.get("name", "")] = name
            masks = self._mask(what, geom, "contype"), self._mask(what, geom, "conaffinity")
            has_contact = any(masks)
            kind = geom.get("type", "sphere")
            if kind not in _SHAPES:
                if given and not has_contact:
                    self.note(f"{what} is left out, a {kind}")
                    continue
                raise self.wrong(what, f"is a {kind}; allowed are {', '.join(_SHAPES)}.")
            if has_contact:
                self.masks.append((name, *masks))
                self._rub(name, what, geom)
            form = self.form(what, geom, kind, has_contact, given or not self.has_mass(what, geom))
            if form is None:
                continue
            shape, *pose = form
            place, turn = _moved(one.place, one.turn, *pose)
            if isinstance(shape, TriMesh):
                points = turn.apply(shape.points) + place
                visuals.append(make_trimesh(points, shape.triangles, name=shape.name, source=shape.source))
            else:
                (shapes if has_contact else visuals).append(Piece(shape, place, np.asarray(turn.as_rotvec())))
            if not given and self.has_mass(what, geom):
                mass, centre, inertia = self.moments(what, geom, shape)
                R = turn.as_matrix()
                parts.append((mass, place + R @ centre, R @ inertia @ R.T))
        if given and inertial is not None:
            return *self.at_least(*self._inertial(where, inertial)), shapes, visuals
        if self.from_geoms == "false" and inertial is None:
            parts = []
        return *self.at_least(*_summed(parts)), shapes, visuals

    def _rub(self, name: str, what: str, geom: Element) -> None:
        """Keep what a geom of a body says of its friction; those of condim 1 have none."""
        slips = geom.get("condim", "") == "1"
        if slips or geom.get("friction"):
            bodies = self.friction.setdefault(0.0 if slips else self._first(what, geom, "friction"), [])
            bodies += [name] * (name not in bodies)

    def _inertial(self, where: str, held: _Held) -> Moments:
        element = held.element
        self.check_attributes(where, element, ATTRIBUTES["inertial"])
        mass, centre = self.number(where, element, "mass"), self.numbers(where, element, "pos", 3)
        if element.get("fullinertia"):
            xx, yy, zz, xy, xz, yz = self.numbers(where, element, "fullinertia", 6)
            own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        else:
            own = np.diag(self.numbers(where, element, "diaginertia", 3))
        centre, around = _moved(held.place, held.turn, centre, self.turn(where, element))
        turn = around.as_matrix()
        inertia = turn @ own @ turn.T
        return mass, centre, self.balanced(where, mass, 0.5 * (inertia + inertia.T))


def _meet(own: tuple[float, float], other: tuple[float, float], factor: float, offset: float) -> bool:
    """Whether a joint that follows another one, by factor and offset, is somewhere within its range while that one is."""
    ends = sorted(factor * end + offset for end in other)
    return max(own[0], ends[0]) <= min(own[1], ends[1])


def _first_of(names: Sequence[str]) -> str:
    """Return the first of many names, and how many more there are."""
    return ", ".join(names[:_SHOWN]) + f" and {len(names) - _SHOWN} more" * (len(names) > _SHOWN)


def _moved(place: np.ndarray, turn: Rotation, own: np.ndarray, rotation: np.ndarray) -> tuple[np.ndarray, Rotation]:
    """Pose, in which a frame is, of what has a place and a rotation vector in that frame."""
    return place + turn.apply(own), turn * Rotation.from_rotvec(rotation)


def _shifted(seen: Piece | TriMesh, by: np.ndarray) -> Piece | TriMesh:
    """Move what is drawn."""
    if isinstance(seen, Piece):
        return Piece(seen.shape, np.asarray(seen.position) + by, seen.rotation)
    return make_trimesh(seen.points + by, seen.triangles, name=seen.name, source=seen.source)


def _summed(parts: Sequence[Moments]) -> Moments:
    """Mass, centre of mass and inertia about it of parts, each given by its own."""
    mass = sum(own for own, _, _ in parts)
    if not mass > 0.0:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    middle = sum((own * at for own, at, _ in parts), np.zeros(3)) / mass
    total = np.zeros((3, 3))
    for own, at, inertia in parts:
        arm = at - middle
        total += inertia + own * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return mass, middle, 0.5 * (total + total.T)
