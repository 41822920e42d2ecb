"""Scene files: find them, read their parameters, build the scene.

A scene file is a Python file with a function ``build(**parameters) -> fs.Scene``. Its parameters are keyword arguments with
defaults, described in the numpydoc section "Parameters" of its docstring, one entry each::

    young_modulus : float, Pa
        Young's modulus of the ball.

that is ``name : type, unit``; a dimensionless number has the unit 1, a word or a switch none.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.util
import inspect
import math
import os
import re
import sys
import traceback
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from femsim.base import errors
from femsim.base.errors import InputError, did_you_mean, meant, naming_parameters, number_alone
from femsim.base.files import is_file
from femsim.base.place import ROOT

if TYPE_CHECKING:
    from femsim.scene.scene import Scene

SCENES = ROOT / "scenes"
"""Folder of the scenes that come with femsim."""

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_UNIONS = (typing.Union, types.UnionType)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a scene.

    Attributes
    ----------
    name : str
        Name, as in ``--set NAME=VALUE``.
    default : object
        Default value; ``inspect.Parameter.empty`` when the scene has none, so that it must be given.
    type : object
        Type that values are converted to: float, int, bool, str, Path, a tuple of those, a Literal, or one of them or None.
    unit : str
        Unit from the docstring, "1" for a dimensionless number, "" when the docstring names none.
    description : str
        What it is, from the docstring, on one line.
    """

    name: str
    default: Any
    type: Any
    unit: str
    description: str

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty

    @property
    def number(self) -> type[float] | type[int] | None:
        """What numbers it takes, also where it takes something else beside them, as None; None for no number."""
        kinds = typing.get_args(self.type) if typing.get_origin(self.type) in _UNIONS else (self.type,)
        return float if float in kinds else int if int in kinds else None


@naming_parameters
def load_scene(path: str | Path, /, **parameters: Any) -> Scene:
    """Build the scene of a scene file.

    Parameters
    ----------
    path : path
        A scene file, or the name of a scene that comes with femsim (see :func:`list_scenes`).
    **parameters
        Values for parameters of its ``build``, in the units of its docstring; strings are converted ("5e5", "0,0,1", "yes").

    Returns
    -------
    Scene
        The scene; its ``parameters`` holds value and unit of every parameter of ``build``.

    Raises
    ------
    InputError
        A missing file, a file without ``build``, an unknown or missing parameter, a value of the wrong type or not finite,
        a ``build`` that fails or does not return a Scene.
    MeshError, MaterialError, ContactError
        What ``build`` met in its meshes, materials and shapes.
    """
    path = find_scene(path)
    build = _build_function(path)
    known = {parameter.name: parameter for parameter in _parameters_of(build, path)}
    for name in parameters:
        if name not in known:
            raise InputError(f"{path}: the scene has no parameter {name!r}{did_you_mean(name, known)}")
    missing = [name for name, parameter in known.items() if parameter.required and name not in parameters]
    if missing:
        raise InputError(f"{path}: the scene needs {', '.join(missing)}; give each by --set NAME=VALUE.")
    given = {name: convert_parameter(value, known[name], path) for name, value in parameters.items()}

    from femsim.scene.scene import Scene

    with scene_errors(path, "build"):
        scene = build(**given)
    if not isinstance(scene, Scene):
        raise InputError(
            f"{path}: build returned {type(scene).__name__}, but must return the fs.Scene that it made; "
            "end it with 'return scene'."
        )
    scene.parameters = {
        name: {"value": given.get(name, parameter.default), "unit": parameter.unit} for name, parameter in known.items()
    } | scene.parameters
    return scene


@naming_parameters
def scene_parameters(path: str | Path) -> list[Parameter]:
    """Read the parameters of a scene file from the signature and the docstring of its ``build``.

    Parameters
    ----------
    path : path
        A scene file, or the name of a scene that comes with femsim.

    Returns
    -------
    list of Parameter
        In the order of the signature.

    Raises
    ------
    InputError
        A missing file, a file without ``build`` or one that cannot be imported.
    """
    path = find_scene(path)
    return _parameters_of(_build_function(path), path)


def list_scenes(folder: Path = SCENES) -> list[Path]:
    """List the scenes that come with femsim, without running them.

    Parameters
    ----------
    folder : Path
        Folder of scene files.

    Returns
    -------
    list of Path
        Each file that has a ``build``, sorted by name.
    """
    found = []
    for path in sorted(folder.glob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue  # describe and run say what is wrong with it
        if any(isinstance(node, ast.FunctionDef) and node.name == "build" for node in tree.body):
            found.append(path)
    return found


def scene_doc(path: str | Path) -> str:
    """Read the docstring of a scene file, without running it.

    Parameters
    ----------
    path : path
        A scene file, or the name of a scene that comes with femsim.

    Returns
    -------
    str
        The docstring without common indentation; a sentence that there is none, so that there is always a first line.

    Raises
    ------
    InputError
        A missing file, or one that is no Python.
    """
    path = find_scene(path)
    with scene_errors(path, "reading the file"):
        return ast.get_docstring(ast.parse(path.read_bytes(), str(path))) or "(The file has no docstring.)"


#: Files that newcomers give for a scene, by suffix.
_SCENE_FILES = (".py", "")
_OTHER_FILES = {
    ".urdf": "a robot (URDF), which has links and joints but no experiment: scene.add_robot puts it into one, femsim describe "
    "shows it",
    ".xml": "a file of another simulator, of which femsim reads the robots of MJCF: scene.add_robot puts one into a scene, "
    "femsim describe shows it; docs/guide/coming_from.md says how the words of others are called here",
    ".sdf": "a world of another simulator, which femsim does not read: docs/guide/coming_from.md has the words of both",
    **dict.fromkeys((".stl", ".obj", ".ply"), "a surface: fs.load_volume makes a soft body of it, fs.Mesh a rigid one"),
    **dict.fromkeys((".vtu", ".msh", ".vtk"), "a mesh, not an experiment: fs.load_tetmesh reads it for scene.add_soft"),
    **dict.fromkeys((".toml", ".ini"), "a file of settings, not a scene: femsim sweep, calibrate and compare --card read those"),
}  # fmt: skip


def find_scene(path: str | Path) -> Path:
    """Find a scene file by its path, or by the name of a scene that comes with femsim.

    Parameters
    ----------
    path : path
        Path or name.

    Returns
    -------
    Path
        An existing file.

    Raises
    ------
    InputError
        There is none; the nearest ones are named.
    """
    asked = Path(path)
    other = _OTHER_FILES.get(asked.suffix.lower())
    if other:
        raise InputError(f"{str(asked)!r} is {other}; write a scene in Python that uses it (docs/guide/start.md).")
    if is_file(asked):
        if asked.suffix.lower() not in _SCENE_FILES:
            raise InputError(f"{str(asked)!r} is no scene: a scene is a Python file, .py (docs/guide/start.md has a first one).")
        return asked
    ours = {file.stem: file for file in list_scenes()}
    if str(asked) in ours:
        return ours[str(asked)]
    if os.path.isdir(asked):
        if (asked / "run.json").is_file():
            raise InputError(f"{str(asked)!r} is the folder of a run, not a scene; femsim resume {asked} goes on with it.")
        raise InputError(f"scene {str(asked)!r} is a folder; name a scene file in it.")
    if asked.parent.is_dir() and SCENES.is_dir() and asked.parent.samefile(SCENES):  # those that come with femsim, each once
        raise InputError(f"scene file {str(asked)!r} does not exist{did_you_mean(asked.stem, ours)}")
    beside = [str(file) for file in list_scenes(asked.parent)]
    raise InputError(f"scene file {str(asked)!r} does not exist{did_you_mean(str(asked), (*ours, *beside))}")


def _build_function(path: Path) -> Callable[..., Any]:
    module = _import_file(path)
    build = getattr(module, "build", None)
    if not inspect.isfunction(build):
        raise InputError(f"{path} has no function 'build', so it is no scene; write 'def build(...) -> fs.Scene:' in it.")
    return build


def _import_file(path: Path) -> ModuleType:
    """Run a scene file as a module of a name of its own, so that two files of one name do not meet."""
    place = hashlib.blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()
    name = f"femsim_scene_{re.sub(r'[^0-9A-Za-z_]', '_', path.stem)}_{place}"
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses of the scene look themselves up
    try:
        with scene_errors(path, "the file"):
            source = path.read_bytes()
            if b"\0" in source:  # Python before 3.11.4 says so with a plain ValueError
                raise SyntaxError("source code cannot contain null bytes")
            # not loader.exec_module: its bytecode cache goes by seconds and sizes, and misses a quick edit
            exec(compile(source, str(path), "exec"), module.__dict__)
    except BaseException:  # no half-made module stays, also not after Ctrl-C or sys.exit in the file
        del sys.modules[name]
        raise
    return module


@contextmanager
def scene_errors(path: Path, what: str) -> Iterator[None]:
    """Turn what the code of a scene file raises into a sentence with its line; all other exceptions pass as they are.

    Parameters
    ----------
    path : Path
        The scene file, as it was given to :func:`load_scene`.
    what : str
        What the block does, the subject of the sentence.

    Raises
    ------
    InputError
        An exception that passed through a line of the file, and is not one of our sentences about input already.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if is_input_error(error):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        if not lines and not isinstance(error, SyntaxError):
            raise  # not the scene's fault
        line, message = lines[-1] if lines else None, str(error)
        if isinstance(error, SyntaxError):
            line, message = error.lineno, error.msg
        last = frames[-1]
        own = last.filename in (str(path), __file__, errors.__file__) or last.name == "__getattr__"
        inside = "" if own else f", from {last.filename} line {last.lineno}"
        guess = ""
        if isinstance(error, AttributeError) and error.obj is not None and "did you mean" not in message:
            guess = meant(error.name, (name for name in dir(error.obj) if not name.startswith("_")))
        message = message.rstrip(".") + (f";{guess}" if guess else inside)
        raise InputError(
            f"{path}{f', line {line}' if line else ''}: {what} failed with {type(error).__name__}: "
            f"{message}{'' if message.endswith('?') else ';'} correct the scene file."
        ) from error


def is_input_error(error: BaseException) -> bool:
    """Tell whether an exception is one of the sentences about wrong input that our packages raise.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    bool
        True for InputError, MeshError, MaterialError, ContactError, VizError and their subclasses.
    """
    if isinstance(error, InputError):
        return True
    classes = (("meshes", "MeshError"), ("materials", "MaterialError"), ("contact", "ContactError"), ("viz", "VizError"))
    # a package that is not loaded cannot have raised anything
    return any(isinstance(error, getattr(sys.modules.get(module), name, ())) for module, name in classes)


# ------------------------------------------------------------------ parameters


def _parameters_of(build: Callable[..., Any], path: Path) -> list[Parameter]:
    texts = documented(inspect.getdoc(build) or "", "Parameters")
    try:
        hints = typing.get_type_hints(build)
    except Exception as error:
        raise InputError(
            f"{path}: the annotations of build cannot be read ({type(error).__name__}: {error}); correct them."
        ) from error
    parameters = []
    for name, parameter in inspect.signature(build).parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise InputError(f"{path}: parameter {name!r} of build is positional-only; remove the '/' behind it.")
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        unit, description = texts.get(name, ("", ""))
        kind = hints.get(name, _kind_of(parameter.default))
        parameters.append(Parameter(name, parameter.default, kind, unit, description))
    return parameters


def _kind_of(default: Any) -> Any:
    """Type of a parameter without annotation: that of its default, where 1 may well mean 1.0."""
    if default is inspect.Parameter.empty or default is None:
        return Any
    if isinstance(default, bool | str | Path):
        return type(default)
    if isinstance(default, int | float):
        return float
    if isinstance(default, tuple):
        return tuple[tuple(_kind_of(item) for item in default)]  # type: ignore[misc]
    return Any


def documented(doc: str, section: str) -> dict[str, tuple[str, str]]:
    """Read the entries ``name : type, unit`` of a section of a numpydoc docstring.

    Parameters
    ----------
    doc : str
        Docstring without common indentation, as ``inspect.getdoc`` gives it.
    section : str
        Title of the section, e.g. "Parameters".

    Returns
    -------
    dict
        From each name to its unit ("" without one) and its description on one line.
    """
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", doc + "\n", re.MULTILINE | re.DOTALL)
    entries: dict[str, tuple[str, str]] = {}
    if found is None:
        return entries
    for entry in re.finditer(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n|\n)*)", found[1], re.MULTILINE):
        names, _, kind = entry[1].partition(":")
        for name in names.split(","):
            entries[name.strip()] = (_unit(kind), " ".join(entry[2].split()))
    return entries


def _unit(kind: str) -> str:
    """Take the unit of "float, m/s, optional": what stands behind the first comma outside brackets."""
    plain = re.sub(r"\[[^\]]*\]|\([^)]*\)|\{[^}]*\}", lambda match: " " * len(match[0]), kind)
    start = plain.find(",")
    while start >= 0:
        end = plain.find(",", start + 1)
        word = kind[start + 1 : end if end >= 0 else None].strip()
        if word and word != "optional" and not word.startswith("default"):
            return word
        start = end
    return ""


def convert_parameter(value: Any, parameter: Parameter, path: Path) -> Any:
    """Convert a value, a string or not, to the type of a parameter.

    Parameters
    ----------
    value : object
        What was given.
    parameter : Parameter
        One of :func:`scene_parameters`.
    path : Path
        The scene file, named in the message.

    Raises
    ------
    InputError
        The value does not fit the type.
    """
    try:
        return _convert(value, parameter.type)
    except (ValueError, TypeError, OverflowError) as error:
        unit = f" ({parameter.unit})" if parameter.unit not in ("", "1") else ""
        reason = str(error) or "it cannot be converted"
        raise InputError(
            f"{path}: parameter {parameter.name!r} is {value!r}, but must be {_in_words(parameter.type)}{unit}: {reason}."
        ) from None


def _convert(value: Any, kind: Any) -> Any:
    """Convert a value, a string or not, to a type of :class:`Parameter`; ValueError says what is wrong."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin is typing.Literal:
        for choice in arguments:
            if value == choice or str(value) == str(choice):
                return choice
        raise ValueError("it is none of these")
    if origin in _UNIONS:
        return _convert_to_any(value, arguments)
    if origin in (tuple, list) or kind in (tuple, list):
        return _convert_items(value, origin or kind, arguments)
    if kind is bool:
        return _convert_bool(value)
    if kind in (int, float):
        number = _finite(value)
        if kind is float:
            return number
        if number != int(number):
            raise ValueError("it is not a whole number")
        return int(value) if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value) else int(number)
    if kind in (str, Path):
        if not isinstance(value, str | Path):
            raise ValueError("it is no text")
        return kind(value)
    return value


def _convert_to_any(value: Any, kinds: Iterable[Any]) -> Any:
    # a text fits everything, so it is tried last
    choices = sorted(kinds, key=lambda kind: kind is str)
    if type(None) in choices and (value is None or (isinstance(value, str) and value.lower() in ("none", ""))):
        return None
    reasons = []
    for kind in choices:
        if kind is not type(None):
            try:
                return _convert(value, kind)
            except (ValueError, TypeError) as error:
                reasons.append(str(error))
    raise ValueError(" and ".join(dict.fromkeys(reasons)))


def _convert_items(value: Any, container: type, kinds: tuple[Any, ...]) -> Any:
    if isinstance(value, str):
        text = value.strip().strip("()[]")
        items: list[Any] = [item.strip() for item in text.split(",")] if text else []
    else:
        items = list(value)
    if not kinds:
        kinds = (Any,) * len(items)
    elif container is list or (len(kinds) == 2 and kinds[1] is Ellipsis):
        kinds = (kinds[0],) * len(items)
    if len(items) != len(kinds):
        raise ValueError(f"it has {len(items)} items instead of {len(kinds)}, to be separated by commas")
    return container(_convert(item, kind) for item, kind in zip(items, kinds, strict=True))


def _convert_bool(value: Any) -> bool:
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"allowed are {', '.join((*_TRUE, *_FALSE))}")


def _finite(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError("it is a truth value")
    try:
        number = float(value)
    except (ValueError, TypeError):
        hint = number_alone(value) if isinstance(value, str) else ""
        raise ValueError(f"write it {hint}" if hint else "it is no number (write it like 0.05 or 5e5)") from None
    if not math.isfinite(number):
        raise ValueError("it is not finite")
    return number


def _in_words(kind: Any) -> str:
    """Say a type as a user would."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin in _UNIONS:
        return " or ".join("none" if kind is type(None) else _in_words(kind) for kind in arguments)
    if origin is list or (origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis):
        return f"a list, each item {_in_words(arguments[0])}"
    if origin is tuple:
        return f"{len(arguments)} values, each {' or '.join(dict.fromkeys(_in_words(kind) for kind in arguments))}"
    return {float: "a number", int: "a whole number", bool: "true or false", str: "a text", Path: "a path"}.get(
        kind, getattr(kind, "__name__", str(kind))
    )
