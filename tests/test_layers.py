"""The arrows between the packages, what an import costs, the public names, and the rules of the kernels."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import femsim as fs

ROOT = Path(fs.__file__).resolve().parent.parent
ROOMS = ("foreign", "materials", "meshes", "contact", "viz")
OURS = {*ROOMS, "femsim", "scenes", "tests", "benchmarks"}
ALLOWED = {room: {room, "foreign"} for room in ROOMS} | {"femsim": {"femsim", *ROOMS}, "scenes": {"femsim"}}
#: The rooms of the engine, from the bottom up.
INSIDE = ("base", "model", "scene", "step", "run", "studies", "gym", "cli")
#: Folders whose ``__init__`` is a tour: the rooms, and every folder in them.
TOURED = sorted(
    path.parent.relative_to(ROOT).as_posix()
    for room in (*ROOMS, *(f"femsim/{room}" for room in INSIDE))
    for path in (ROOT / room).rglob("__init__.py")
)
HEAVY = ("pyvista", "vtk", "vtkmodules", "matplotlib", "imageio", "imageio_ffmpeg", "numba", "scipy", "meshio", "h5py")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """What a file consists of, from the top down: each is parsed once, however many tests ask for it."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))))


def sources(package: str) -> Iterator[tuple[Path, tuple[ast.AST, ...]]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        yield path, nodes(path)


def imported(source: tuple[ast.AST, ...], package: str) -> Iterator[tuple[int, str]]:
    """Line and top-level package of each import, wherever it stands; a relative one is the package's own."""
    for node in source:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, package if node.level else (node.module or "").split(".")[0]


@pytest.mark.parametrize("package", ALLOWED)
def test_packages_import_only_what_lies_below(package: str) -> None:
    files = list(sources(package))
    assert files
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path, source in files
        for line, name in imported(source, package)
        if name in OURS - ALLOWED[package]
    ]
    assert not wrong, wrong


def test_kernels_are_cached_and_have_no_fastmath() -> None:
    kernels, wrong = 0, []
    for package in ("femsim", *ROOMS):
        for path, source in sources(package):
            good = set()
            for function in source:
                for decorator in function.decorator_list if isinstance(function, ast.FunctionDef) else ():
                    call = decorator if isinstance(decorator, ast.Call) else None
                    name = ast.unparse(call.func if call else decorator).split(".")[-1]
                    if name not in ("njit", "jit", "vectorize", "guvectorize"):
                        continue
                    kernels += 1
                    options = {key.arg: ast.unparse(key.value) for key in call.keywords} if call else {}
                    if name == "njit" and options.get("cache") == "True" and "fastmath" not in options:
                        good.add(id(call.func if call else decorator))
            # also those that are no decorators: compiled = njit(function)
            for node in source:
                is_name = isinstance(node, ast.Name) and node.id in ("njit", "jit")
                is_attribute = isinstance(node, ast.Attribute) and node.attr in ("njit", "jit")
                if (is_name or is_attribute) and id(node) not in good:
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert kernels > 30
    assert not wrong, f"not @njit(cache=True), or with fastmath: {wrong}"


def test_rooms_import_only_what_lies_below() -> None:
    """A room imports what lies below it; nothing inside imports the public face, and every room has its tour."""
    wrong = []
    for path, source in sources("femsim"):
        place = path.relative_to(ROOT / "femsim").parts
        if len(place) == 1:
            continue  # the face
        assert place[0] in INSIDE, f"{path.relative_to(ROOT)} is in no room"
        for node in source:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{path.relative_to(ROOT)}:{node.lineno}: imports name their room"
                names = (
                    [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "femsim" else [node.module or ""]
                )
            for name in names:
                room = name.split(".")[1:2]
                if name.split(".")[0] == "femsim" and (not room or INSIDE.index(room[0]) > INSIDE.index(place[0])):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} imports {name}")
    assert not wrong, wrong
    for room in INSIDE:
        assert ast.get_docstring(ast.parse((ROOT / "femsim" / room / "__init__.py").read_text(encoding="utf-8"))), room


@pytest.mark.parametrize("package", ["femsim", *ROOMS])
def test_files_import_each_other_without_a_circle(package: str) -> None:
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): source
        for path, source in sources(package)
    }
    arrows: dict[str, set[str]] = {name: set() for name in modules}
    for name, source in modules.items():
        for node in source:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
                for alias in node.names:
                    deeper = f"{node.module}.{alias.name}"
                    arrows[name].add(deeper if deeper in modules else node.module or "")
    while arrows:
        free = {name for name, below in arrows.items() if not (below & set(arrows)) - {name}}
        assert free, f"these import each other in a circle: {sorted(arrows)}"
        arrows = {name: below for name, below in arrows.items() if name not in free}


def classes_of_bodies() -> set[str]:
    """Names of all classes in the files of bodies that derive from the defaults of a body, and of the protocol itself."""
    found = {"Body", "BodyDefaults"}
    classes = [node for _, source in sources("femsim/model/bodies") for node in source if isinstance(node, ast.ClassDef)]
    for _ in classes:
        found |= {one.name for one in classes if {ast.unparse(base).split("[")[0] for base in one.bases} & found}
    return found


def asked(source: Iterable[ast.AST], classes: set[str]) -> list[int]:
    """Lines that ask for the class of a body."""
    out = []
    for node in source:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass") and len(node.args) == 2:
            names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            names |= {n.attr for n in ast.walk(node.args[1]) if isinstance(n, ast.Attribute)}
            out += [node.lineno] if names & classes else []
    return out


def test_a_body_answers_and_nobody_asks_for_its_class() -> None:
    classes = classes_of_bodies()
    assert {"Rod", "TreeBody", "ArticulatedBody", "LinkedBody", "SoftBody", "CorotationalBody"} <= classes
    wrong = {
        path.relative_to(ROOT).as_posix(): lines
        for path, source in sources("femsim")
        if path.relative_to(ROOT).parts[:2] != ("femsim", "model") and (lines := asked(source, classes))
    }
    assert not wrong, wrong


def test_who_asks_for_the_class_of_a_body_is_seen() -> None:
    tree = ast.parse("isinstance(body, Rod)\nisinstance(body, str | rod.Rod)\nisinstance(body, str)\nRod(body)")
    assert asked(ast.walk(tree), classes_of_bodies()) == [1, 2]


def unnamed(folder: Path) -> list[str]:
    """Files of a folder that its tour does not name; the kernels of a file that it names are ``NAME_kernels`` without a word."""
    tour = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    words = set(re.findall(r"`([a-z0-9_]+)(?:\([a-z, ]*\))?`", tour))
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return sorted(name for name in files if name not in words and name.removesuffix("_kernels") not in words)


@pytest.mark.parametrize("folder", TOURED)
def test_every_tour_names_every_file(folder: str) -> None:
    assert unnamed(ROOT / folder) == []


def test_a_file_that_a_tour_leaves_out_is_seen(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""A tour.\n\n`ropes`, ``posts``\n    Ropes, posts and nets.\n"""\n')
    for name in ("ropes", "ropes_kernels", "posts", "nets", "nets_kernels"):
        (tmp_path / f"{name}.py").touch()
    assert unnamed(tmp_path) == ["nets", "nets_kernels"]


def test_public_names_have_one_home() -> None:
    stub = ast.parse(Path(fs.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    names = [alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert len(names) == len(set(names)) > 100
    assert fs.__all__ == sorted(names)
    for name in names:
        home = importlib.import_module(fs._MODULE_OF[name])
        assert getattr(fs, name) is getattr(home, name), name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Scen'"):
        fs.Scen  # noqa: B018
    assert "Scene" in dir(fs)


def python(code: str, folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    search = os.pathsep.join(map(str, (*path, ROOT)))
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": search},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("start", ["import femsim", "from femsim.cli import execute; assert execute(['--help']) == 0"])
def test_nothing_heavy_is_imported_at_the_start(start: str, tmp_path: Path) -> None:
    report = f"import sys; print('loaded:', *[name for name in {HEAVY} if name in sys.modules])"
    done = python(f"{start}\n{report}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_who_hands_out_cases_imports_no_kernels(tmp_path: Path) -> None:
    """The client of a sweep and its Dask workers, which wait for the process of the cases to import them."""
    done = python("import sys, femsim.studies.sweeps.command; print('numba' in sys.modules, 'contact' in sys.modules)", tmp_path)
    assert done.stdout == "False False\n", done.stdout + done.stderr


def test_a_small_body_imports_no_formats_of_robots_and_no_trees(tmp_path: Path) -> None:
    """They need the room of scipy for places and turns, a tenth of a start."""
    scene = "import sys, small_scene, femsim.run.simulate; exec(small_scene.FILE); build()"
    named = "'femsim.model.urdf' in sys.modules, 'scipy.spatial' in sys.modules"
    done = python(f"{scene}; print({named})", tmp_path, ROOT / "tests")
    assert done.stdout == "False False\n", done.stdout + done.stderr


def test_comparing_with_a_log_imports_no_statistics(tmp_path: Path) -> None:
    """Of scipy, whose rooms for signals and statistics take over a second."""
    work = """import sys, numpy as np, femsim.studies.calibration.estimate as e
from femsim.studies.comparison import agreement, alignment
x = np.sin(np.arange(1500.0) ** 1.1)[:, None]
alignment.find_lag(x, x[300:], np.ones(1), least=-2000, greatest=2000)
agreement.mean_and_confidence([1.0, 2.0])
e.estimate([x], [np.ones((1500, 1, 1))], np.zeros(1), 0.95, known_noise=False)
print([name for name in ("scipy.signal", "scipy.stats") if name in sys.modules])"""
    done = python(work, tmp_path)
    assert done.stdout == "[]\n", done.stdout + done.stderr


@pytest.mark.parametrize("name", ROOMS)
def test_a_package_of_another_by_our_name_is_named(name: str, tmp_path: Path) -> None:
    intruder = tmp_path / name / "__init__.py"
    intruder.parent.mkdir()
    intruder.write_text("raise RuntimeError('the intruder was run')\n")
    done = python("import femsim", tmp_path, tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: femsim needs its own package")
    assert repr(name) in last and str(intruder) in last and "virtual environment" in last


def test_a_namespace_package_of_another_by_our_name_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "contact").mkdir()  # a plain folder of that name, where Python starts: ours still comes first
    done = python("import femsim; print(femsim.SOLVERS['cond'].description)", tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("COND")
