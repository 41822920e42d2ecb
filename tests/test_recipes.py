"""The recipes of CONTRIBUTING.md, performed: each is applied to a copy of the code as a contributor would, and then used.

The recipe of a body is performed in test_own_body.py, those of a sensor and of a column in test_declarations.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shared_kernels import link_kernels

import femsim as fs

ROOT = Path(fs.__file__).resolve().parent.parent
PACKAGES = ("femsim", "foreign", "materials", "meshes", "contact", "viz", "scenes", "data")

SOLVER = '''"""Projected Jacobi iteration on the dense W: each force is pulled against its contact velocity and projected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse.linalg as sla

from contact.cone import project_strict
from contact.problem import ContactProblem
from contact.solvers.base import Solution, SolverOptions, WarmStart
from contact.solvers.judge import Judge, drive


@dataclass(frozen=True)
class JacobiOptions(SolverOptions):
    """Options of the projected Jacobi iteration.

    Attributes
    ----------
    relaxation : float
        Factor on the step.
    """

    solver_name: ClassVar[str] = "jacobi"

    max_iterations: int = 2000
    relaxation: float = 0.5


class _Iterations:
    def __init__(self, problem: ContactProblem, options: JacobiOptions) -> None:
        self.problem, self.best, self.over, self.failed = problem, -1, False, False
        J = problem.J.toarray()
        self._solve = sla.factorized(problem.A)
        self.W = J @ np.column_stack([self._solve(row) for row in J]) if len(J) else np.zeros((0, 0))
        self.free = J @ self._solve(problem.b) + problem.phi.ravel()
        self.rho = options.relaxation / max(np.abs(self.W).sum(axis=1).max(initial=0.0), 1e-300)
        self.lam = np.zeros((problem.n_contacts, 3))

    def until(self, aim, limit):
        pulled = self.lam - self.rho * (self.W @ self.lam.ravel() + self.free).reshape(-1, 3)
        new = np.array([project_strict(*p, mu) for p, mu in zip(pulled, self.problem.friction)]).reshape(-1, 3)
        step, self.lam, self.best = float(np.abs(new - self.lam).max(initial=0.0)), new, self.best + 1
        return [(None, None, step)]

    def answer(self):
        return self._solve(self.problem.b + self.problem.J.T @ self.lam.ravel()), self.lam


class Jacobi:
    """Projected Jacobi iteration."""

    description = "Jacobi: projected Jacobi iteration on W"

    def __init__(self, options: JacobiOptions | None = None) -> None:
        self.options = options or JacobiOptions()

    def solve(self, problem: ContactProblem, warm_start: WarmStart | None = None) -> Solution:
        """Solve."""
        judge = Judge(problem, self.options.tolerance)
        drive(_Iterations(problem, self.options), judge, self.options.max_iterations)
        return judge.solution({}, {})
'''

SHAPE = '''@dataclass(frozen=True)
class Post:
    """An endless round post along z.

    Attributes
    ----------
    radius : float, m
        Radius.
    """

    radius: float

    def __post_init__(self) -> None:
        positive("Post", "radius", self.radius)

    @property
    def bounding_radius(self) -> float:
        """Radius of the enclosing ball about the origin, m."""
        return 1e3

    @property
    def aabb(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper corner, (3,) each, m."""
        corner = np.array([self.radius, self.radius, 1e3])
        return -corner, corner

    def features(self, extra: int = 0) -> tuple[FloatArray, FloatArray]:
        """No points."""
        return np.zeros((0, 3)), np.zeros(0)


'''

DISTANCE = '''@njit(cache=True, inner=True)
def post_distance(x: float, y: float, z: float, radius: float) -> Distance:
    """Distance to an endless post along z."""
    length = np.sqrt(x * x + y * y)
    if length == 0.0:
        return -radius, 1.0, 0.0, 0.0
    return length - radius, x / length, y / length, 0.0


'''

CARD = """title = "A foam of the test"

[young_modulus]
value = 5.0e4
unit = "Pa"
source = "made up"

[poisson_ratio]
value = 0.2
unit = "1"
source = "made up"

[density]
value = 50
unit = "kg/m3"
source = "made up"
"""

SCENE = '''"""A light ball rests on a post that lies across.

A good result: the post carries the weight of the ball.
"""

from __future__ import annotations

import femsim as fs
from contact.shapes import Post


def build(mass: float = 0.5) -> fs.Scene:
    """Put the ball on the post.

    Parameters
    ----------
    mass : float, kg
        Mass of the ball.
    """
    scene = fs.Scene("resting_ball", dt=0.01, duration=0.05, gravity=(-9.81, 0, 0), theta=1.0)
    scene.add_obstacle("post", Post(0.02))
    scene.add_rigid("ball", fs.Sphere(0.01), mass=mass, position=(0.03, 0, 0))
    scene.sensor("post", "post")
    return scene
'''

COMMAND = '''

@app.command
def greet(name: str) -> int:
    """Greet somebody.

    Parameters
    ----------
    name
        Who.
    """
    print(f"hello {name}")
    return OK
'''


def put(path: Path, before: str, text: str) -> None:
    """Insert a text before the first place where another stands."""
    content = path.read_text(encoding="utf-8")
    assert before in content, f"{path.name} no longer has {before!r}: change the recipe with it"
    path.write_text(content.replace(before, text + before, 1), encoding="utf-8")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code with every recipe applied."""
    root = tmp_path_factory.mktemp("clone")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__", "results"))
    # a solver: one file and one line in SOLVERS
    (root / "contact/solvers/jacobi.py").write_text(SOLVER)
    registry = root / "contact/solvers/__init__.py"
    put(registry, "from contact.solvers.presets import", "from contact.solvers.jacobi import Jacobi, JacobiOptions\n")
    put(registry, '    "ccs": SolverEntry(', '    "jacobi": SolverEntry(Jacobi.description, JacobiOptions, Jacobi),\n')
    # a shape: its class and its lines in Shape and the table, its distance and a line in the dispatch, how it is drawn
    shapes, kernels = root / "contact/shapes.py", root / "contact/detect_kernels.py"
    put(shapes, "Shape = Plane | Box", SHAPE)
    put(shapes, "Plane | Box | Sphere | Capsule | Cylinder | Mesh", "Post | ")
    put(
        shapes,
        "            elif isinstance(shape, Sphere):\n                self.kind[s]",
        "            elif isinstance(shape, Post):\n                self.kind[s], self.size[s, 0] = kernels.POST, shape.radius\n",
    )
    put(kernels, "PLANE, BOX, SPHERE", "POST = 9\n")
    put(kernels, "@njit(cache=True, inner=True)\ndef shape_distance(", DISTANCE)
    put(kernels, "    if k == SPHERE:\n        return", "    if k == POST:\n        return post_distance(x, y, z, size[s, 0])\n")
    solids = root / "femsim/model/solids.py"
    put(
        solids,
        "    elif isinstance(shape, Plane):",
        "    elif isinstance(shape, Post):\n        surface = cylinder_triangles(shape.radius, 10.0 * shape.radius)\n",
    )
    put(solids, "from femsim.base.errors", "from contact.shapes import Post\n")
    # a material: a card; a scene: a file; a command: a function
    (root / "data/materials/test_foam.toml").write_text(CARD)
    (root / "scenes/resting_ball.py").write_text(SCENE)
    with (root / "femsim/cli/scenes.py").open("a") as file:
        file.write(COMMAND)
    return root


@pytest.fixture(scope="module")
def environment(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The copy comes first, with our kernels but for those that the shape changes."""
    cache = tmp_path_factory.mktemp("kernels")
    link_kernels(cache, clone)
    return os.environ | {"PYTHONPATH": str(clone), "NUMBA_CACHE_DIR": str(cache)}


@pytest.fixture(scope="module")
def said(environment: dict[str, str], folder: Path) -> list[str]:
    """What commands of the copy print, in one process and a folder of its own: a text each."""
    commands = (
        "solvers", "materials", "scenes", "describe resting_ball", "greet you",
        "run resting_ball --solver jacobi --out run --quiet",
    )  # fmt: skip
    code = (
        "import sys\nfrom femsim.cli import execute\n"
        "for words in sys.argv[1:]:\n    assert execute(words.split()) == 0, words\n    print(end='\\f', flush=True)"
    )
    command = [sys.executable, "-c", code, *commands]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\f")[:-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("used")


def test_each_is_listed_at_once(said: list[str]) -> None:
    solvers, materials, scenes, scene, greeting, _ = said
    assert "Jacobi: projected Jacobi iteration on W" in solvers and "test_foam" in materials and "resting_ball" in scenes
    assert "mass" in scene and greeting == "hello you\n"


@pytest.mark.usefixtures("said")
def test_the_scene_runs_with_the_new_solver_on_the_new_shape(folder: Path) -> None:
    """The ball of 0.5 kg presses on the post with 4.905 N against x, at 0 mm."""
    table = np.genfromtxt(folder / "run/sensors.csv", delimiter=",", names=True)
    assert table["post_fx_N"][-1] == pytest.approx(-0.5 * 9.81, rel=1e-4)
    steps = np.genfromtxt(folder / "run/steps.csv", delimiter=",", names=True)
    assert steps["converged"].all() and steps["max_penetration_m"].max() < 1e-6
    assert "post" in (folder / "run/frames.pvd").read_text()


def test_the_distance_of_the_shape_is_exact(environment: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import numpy as np, femsim; from contact.shapes import Post, signed_distance\n"
        "x = np.random.default_rng(0).uniform(-0.1, 0.1, (50, 3)); d, n = signed_distance(Post(0.02), x)[:2]\n"
        "length = np.hypot(x[:, 0], x[:, 1]); assert np.abs(d - (length - 0.02)).max() < 1e-15\n"
        "assert np.abs(n - np.column_stack([x[:, :2] / length[:, None], 0 * d])).max() < 1e-12"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
