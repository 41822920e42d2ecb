"""What the scene refuses: the type of the error, and that its words name the field, the value and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import meshio
import numpy as np
import pytest

import femsim as fs

RUBBER = fs.Elastic(1e5, 0.3, 1000.0, name="rubber")
CUBE = fs.box_tets((0.02, 0.02, 0.02), 2)
FINGER = fs.Finger("left", fs.Box((0.01, 0.01, 0.01)), offset=(-0.03, 0, 0), closing=(1, 0, 0))
NAN = float("nan")


def scene_with_all() -> fs.Scene:
    scene = fs.Scene("all", theta=1.0)
    scene.add_floor()
    scene.add_soft("cube", CUBE, RUBBER, position=(0, 0, 0.1))
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), density=100.0, position=(0.2, 0, 0.1))
    scene.add_gripper("gripper", [FINGER], position=(0.5, 0, 0.1))
    return scene


def refuse(call: Callable[[fs.Scene], object], *words: str, error: type[ValueError] = fs.InputError) -> None:
    """Make sure that a call on the scene raises one sentence or two with these words, and leaves the scene as it was."""
    scene = scene_with_all()
    before = [len(x) for x in (scene.bodies, scene.parts, scene.sensors, scene.motions, scene.fixed_nodes, scene.meshes)]
    with pytest.raises(error) as caught:
        call(scene)
    message = str(caught.value)
    assert type(caught.value) is error
    assert "\n" not in message and message.endswith((".", "?"))
    for word in words:
        assert word in message, f"{word!r} is not in: {message}"
    after = [len(x) for x in (scene.bodies, scene.parts, scene.sensors, scene.motions, scene.fixed_nodes, scene.meshes)]
    assert after == before


# ------------------------------------------------------------------ the scene itself


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dt": 0.0}, ("dt is 0.0 s", "positive")),
        ({"dt": -0.01}, ("dt is -0.01 s", "positive")),
        ({"dt": NAN}, ("dt is nan", "positive")),
        ({"dt": "0.01"}, ("dt is '0.01'", "a number of seconds")),
        ({"duration": 0}, ("duration is 0 s", "positive")),
        ({"theta": 0.4}, ("theta is 0.4", "0.5", "1")),
        ({"theta": NAN}, ("theta is nan",)),
        ({"gravity": (0, 0)}, ("gravity is (0, 0)", "3 finite numbers")),
        ({"gravity": (0, 0, NAN)}, ("gravity", "nan", "3 finite numbers")),
        ({"margin": -1e-3}, ("margin is -0.001 m", "positive")),
        ({"correction": 1.5}, ("correction is 1.5", "from 0 to 1")),
        ({"max_correction": 0.0}, ("max_correction is 0.0 m/s", "positive")),
    ],
)
def test_options_of_the_scene(options: dict[str, object], words: tuple[str, ...]) -> None:
    scene = fs.Scene("x", theta=0.5)

    def set_later() -> None:
        """It was taken, and failed in a kernel or gave other numbers."""
        for name, value in options.items():
            setattr(scene, name, value)

    for give in (lambda: fs.Scene("x", **options), set_later):  # type: ignore[arg-type]
        with pytest.raises(fs.InputError) as caught:
            give()
        for word in words:
            assert word in str(caught.value)


def test_settings_that_are_set_later_are_those_of_a_scene_made_with_them() -> None:
    """A tuple of gravity failed in a kernel by a TypeError; theta was read by a step that has none."""
    scene, g = fs.Scene("x"), np.array([0.0, 0.0, -1.0])
    scene.gravity = g
    g[2] = 5.0
    assert scene.gravity.tolist() == [0.0, 0.0, -1.0]
    scene.gravity = (0, 0, -2)  # type: ignore[assignment]
    assert isinstance(scene.gravity, np.ndarray) and scene.gravity.tolist() == [0.0, 0.0, -2.0]
    scene.dt = "auto"
    scene.dt_bounds = (1e-4, 5e-3)
    assert scene.adaptive and scene.dt == 5e-3
    scene.dt = 0.02
    assert not scene.adaptive and scene.dt == 0.02
    with pytest.raises(fs.InputError, match="nonlinear_tolerance is None; the energy-momentum step must be solved"):
        scene.nonlinear_tolerance = None
    scene.theta = 1.0
    assert scene.integrator == "theta"
    scene.nonlinear_tolerance = None
    with pytest.raises(fs.InputError, match="the energy-momentum step must be solved"):
        scene.integrator = "energy-momentum"
    scene.nonlinear_tolerance = 1e-4
    scene.integrator = "energy-momentum"
    assert scene.theta == 0.5


@pytest.mark.parametrize(
    ("options", "integrator", "theta"),
    [
        ({}, "energy-momentum", 0.5),
        ({"integrator": "energy-momentum"}, "energy-momentum", 0.5),
        ({"theta": 1.0}, "theta", 1.0),
        ({"theta": 0.5}, "theta", 0.5),
        ({"integrator": "theta"}, "theta", 1.0),
        ({"nonlinear_tolerance": None}, "theta", 1.0),
    ],
)
def test_how_a_step_is_taken(options: dict[str, Any], integrator: str, theta: float) -> None:
    """By energy-momentum, unless theta or one linearisation a step asks for the theta rule."""
    scene = fs.Scene("x", **options)
    assert (scene.integrator, scene.theta) == (integrator, theta)
    with pytest.raises(fs.InputError, match=r"theta is 1\.0; the energy-momentum step has none of its own, so leave it out"):
        fs.Scene("x", integrator="energy-momentum", theta=1.0)


def test_default_friction_is_checked() -> None:
    with pytest.raises(fs.MaterialError, match=r"default: the coefficient is -0\.1"):
        fs.Scene("x", default_friction=-0.1, theta=1.0)


# ------------------------------------------------------------------ meshes of soft bodies


def written(folder: Path, points: np.ndarray, cells: list[tuple[str, np.ndarray]], name: str = "mesh.vtu") -> Path:
    path = folder / name
    meshio.Mesh(points, cells).write(path)
    return path


def refuse_mesh(path: Path, *words: str) -> None:
    refuse(lambda scene: scene.add_soft("ball", path, RUBBER), path.name, *words, error=fs.MeshError)


def test_a_missing_mesh_names_the_file_and_those_beside_it(tmp_path: Path) -> None:
    written(tmp_path, CUBE.points, [("tetra", CUBE.tets)], "ball.vtu")
    refuse_mesh(tmp_path / "bal.vtu", "no such file", "did you mean 'ball.vtu'")
    refuse_mesh(tmp_path / "ball.docx", "'.docx'", ".vtu", "convert")
    with pytest.raises(fs.InputError, match=r"'ball_r31.vtu' is found neither here nor with femsim; did you mean 'ball_r30.vtu'"):
        fs.mesh_file("ball_r31.vtu")


def test_a_mesh_without_tetrahedra(tmp_path: Path) -> None:
    refuse_mesh(
        written(tmp_path, np.eye(3), [("triangle", np.array([[0, 1, 2]]))]), "no linear tetrahedra", "triangle", "mesh the"
    )


def test_a_file_that_is_no_mesh(tmp_path: Path) -> None:
    (tmp_path / "mesh.vtu").write_text("not a mesh")
    refuse_mesh(tmp_path / "mesh.vtu", "cannot be read", "check")


def test_inverted_elements_are_listed(tmp_path: Path) -> None:
    tets = CUBE.tets.copy()
    tets[[3, 17]] = tets[[3, 17]][:, [1, 0, 2, 3]]
    refuse_mesh(written(tmp_path, CUBE.points, [("tetra", tets)]), "2 of 48 tetrahedra are inverted", "elements 3, 17", "swap")


def test_elements_of_zero_volume_are_listed(tmp_path: Path) -> None:
    points = CUBE.points.copy()
    flat = CUBE.tets[5]
    points[flat[3]] = points[flat[:3]].mean(axis=0)
    refuse_mesh(written(tmp_path, points, [("tetra", CUBE.tets)]), "zero volume", "5", "mesh the body again")


def test_a_coordinate_that_is_not_finite(tmp_path: Path) -> None:
    points = CUBE.points.copy()
    points[7, 1] = NAN
    refuse_mesh(written(tmp_path, points, [("tetra", CUBE.tets)]), "7", "finite")


# ------------------------------------------------------------------ bodies


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((1e5, 0.5, 1000.0), ("poisson_ratio is 0.5", "between -1 and 0.5", "0.49")),
        ((1e5, -1.0, 1000.0), ("poisson_ratio is -1.0", "between -1 and 0.5")),
        ((1e5, NAN, 1000.0), ("poisson_ratio is nan",)),
        ((1e5, 0.3, -1.0), ("density is -1.0", "greater than 0 and at most 1e12 kg/m3")),
        ((0.0, 0.3, 1000.0), ("young_modulus is 0.0", "greater than 0 and at most 1e16 Pa")),
    ],
)
def test_values_of_a_material(values: tuple[float, float, float], words: tuple[str, ...]) -> None:
    refuse(lambda scene: scene.add_soft("ball", CUBE, fs.Elastic(*values, name="mine")), "'mine'", *words, error=fs.MaterialError)


def test_an_unknown_material_names_the_nearest() -> None:
    words = ("'ecoflex_0050'", "did you mean 'ecoflex_00_50'", "femsim materials")
    refuse(lambda scene: scene.add_soft("ball", CUBE, "ecoflex_0050"), *words, error=fs.MaterialError)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"position": (0, 0)}, ("position of ball is (0, 0)", "3 finite numbers")),
        ({"velocity": (0, 0, NAN)}, ("velocity of ball", "nan")),
        ({"angular_velocity": (1, 2)}, ("angular_velocity of ball", "3 finite numbers")),
        ({"rotation": (0, 0, float("inf"))}, ("rotation of ball", "inf")),
        ({"scale": 0.0}, ("scale of ball is 0.0", "positive")),
        ({"fixed": lambda x: x[:, 2] > 0}, None),
        ({"fixed": lambda x: x[:, 2] < -20}, ("fixed of ball", "chooses no node; widen it")),
        ({"fixed": lambda x: True}, ("fixed of ball", "shape ()", "one bool a node", "(27,)")),
        ({"fixed": lambda x: x > 0}, ("fixed of ball", "(27, 3)", "one bool a node")),
        ({"fixed": lambda x: x[:, 2]}, ("fixed of ball", "float64", "one bool a node")),
    ],
)
def test_options_of_a_soft_body(options: dict[str, object], words: tuple[str, ...] | None) -> None:
    if words is None:
        scene_with_all().add_soft("ball", CUBE, RUBBER, **options)  # type: ignore[arg-type]
    else:
        refuse(lambda scene: scene.add_soft("ball", CUBE, RUBBER, **options), *words)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "contacts", "a/b", "a,b", "a b", ".hidden", "Kugel ä", "x" * 101])
def test_names_that_files_and_tables_cannot_carry(name: str) -> None:
    refuse(lambda scene: scene.add_soft(name, CUBE, RUBBER), f"body name {name!r}")
    refuse(lambda scene: scene.add_rigid(name, fs.Sphere(0.01), mass=1.0), f"body name {name!r}")
    refuse(lambda scene: scene.add_obstacle(name, fs.Plane()), f"body name {name!r}")


@pytest.mark.parametrize("name", ["floor", "cube", "box", "gripper", "gripper.left"])
def test_duplicate_names(name: str) -> None:
    refuse(lambda scene: scene.add_soft(name, CUBE, RUBBER), repr(name), "taken", "choose another")
    refuse(lambda scene: scene.add_gripper(name, [FINGER]), repr(name), "taken", "choose another")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ("ball has density None and mass None", "exactly one")),
        ({"mass": 1.0, "density": 1.0}, ("density 1.0 and mass 1.0", "exactly one")),
        ({"mass": -1.0}, ("mass of ball is -1.0 kg", "positive")),
        ({"density": -5.0}, ("density of ball is -5.0 kg/m^3", "positive")),
        ({"mass": NAN}, ("mass of ball is nan",)),
        ({"mass": 1.0, "angular_velocity": (1, 2)}, ("angular_velocity of ball", "3 finite numbers")),
    ],
)
def test_options_of_a_rigid_body(options: dict[str, object], words: tuple[str, ...]) -> None:
    refuse(lambda scene: scene.add_rigid("ball", fs.Sphere(0.01), **options), *words)  # type: ignore[arg-type]


def test_shapes() -> None:
    refuse(lambda scene: scene.add_rigid("wall", fs.Plane(), mass=1.0), "wall", "Plane", "add_floor")
    refuse(lambda scene: scene.add_rigid("x", fs.Box((0.1, 0.1, -0.1)), mass=1.0), "Box", "-0.1", error=fs.ContactError)
    refuse(lambda scene: scene.add_rigid("x", fs.Sphere(0.0), mass=1.0), "Sphere", "0.0", error=fs.ContactError)


def finger(**changes: object) -> fs.Finger:
    return fs.Finger(**({"name": "left", "pad": FINGER.pad, "offset": FINGER.offset, "closing": FINGER.closing} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fingers", "options", "words"),
    [
        ([], {}, ("gripper hand has no finger", "fs.Finger")),
        ([FINGER, FINGER], {}, ("['left', 'left']", "a name of its own")),
        ([finger(name="a b")], {}, ("'hand.a b'", "letters")),
        ([finger(closing=(0, 0, 0))], {}, ("closing direction of hand.left is zero", "give the direction")),
        ([finger(offset=(1, 2))], {}, ("offset of hand.left is (1, 2)", "3 finite numbers")),
        ([finger(mass=0.0)], {}, ("mass of hand.left is 0.0 kg", "positive")),
        ([finger(pad=fs.Plane())], {}, ("pad of hand.left is a Plane", "use a Box")),
        ([FINGER], {"mass": -1.0}, ("mass of hand is -1.0 kg", "positive")),
        ([FINGER], {"joint_damping": -1.0}, ("joint_damping -1.0", ">= 0")),
        ([FINGER], {"joint_limits": (0.1, 0.0)}, ("joint_limits (0.1, 0.0)", "below")),
        ([FINGER], {"joint_limits": (NAN, 0.1)}, ("joint_limits (nan, 0.1)", "below")),
        ([FINGER], {"joint_limits": (0.01, 0.1)}, ("joint_limits (0.01, 0.1)", "with 0 between them")),
    ],
)
def test_grippers(fingers: list[fs.Finger], options: dict[str, object], words: tuple[str, ...]) -> None:
    refuse(lambda scene: scene.add_gripper("hand", fingers, **options), *words)  # type: ignore[arg-type]


# ------------------------------------------------------------------ drives, friction, sensors

UP = fs.Motion([0.0, 1.0], [(0, 0, 0), (0, 0, 0.1)])
CLOSE = fs.Profile([0.0, 1.0], [0.0, 5.0])


@pytest.mark.parametrize(
    ("what", "options", "words"),
    [
        ("cube", {"motion": UP}, ("'cube' is a soft body", "hold nodes")),
        ("floor", {"motion": UP}, ("'floor' is an obstacle", "add_rigid")),
        ("boxx", {"motion": UP}, ("'boxx'", "did you mean 'box'")),
        ("box", {}, ("drive of box", "exactly one of motion, force and position")),
        ("box", {"motion": UP, "force": CLOSE}, ("drive of box", "exactly one")),
        ("box", {"motion": (0, 0, 1)}, ("motion is (0, 0, 1)", "function of time", "fs.Motion")),
        ("gripper", {"force": 5.0, "fingers": True}, ("force is 5.0", "function of time", "fs.Profile")),
        ("gripper", {"motion": UP, "fingers": True}, ("a motion drives the base", "force or position")),
        ("gripper", {"force": CLOSE}, ("drive fingers", "fingers=True", "left")),
        ("gripper", {"force": CLOSE, "fingers": ["lef"]}, ("finger 'lef'", "did you mean 'left'")),
        ("gripper", {"position": CLOSE, "fingers": True, "stiffness": -1.0}, ("stiffness of the servo is -1.0 N/m", "positive")),
        ("gripper", {"position": CLOSE, "fingers": True, "damping": -1.0}, ("damping is -1.0", ">= 0")),
        ("gripper", {"position": CLOSE, "fingers": True, "max_force": 0.0}, ("max_force 0.0", "> 0")),
        ("box", {"force": CLOSE, "fingers": True}, ("drive of box", "drive fingers")),
    ],
)
def test_drives(what: str, options: dict[str, object], words: tuple[str, ...]) -> None:
    refuse(lambda scene: scene.drive(what, **options), *words)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fs.Profile([0.0, 1.0, 1.0], [1.0, 2.0, 3.0]), ("time 1.0 s (entry 2)", "must increase")),
        (lambda: fs.Profile([0.0, 1.0], [1.0]), ("2 times and values of shape (1,)", "one value")),
        (lambda: fs.Profile([0.0, NAN], [1.0, 2.0]), ("not finite",)),
        (lambda: fs.Motion([0.0, 1.0], [(0, 0), (1, 1)]), ("Motion displacements", "(2, 2)", "3 numbers")),
        (lambda: fs.Motion([0.0], [(0, 0, 0)], [(0, 0, NAN)]), ("Motion rotations", "not finite")),
    ],
)
def test_profiles_and_motions(make: Callable[[], object], words: tuple[str, ...]) -> None:
    with pytest.raises(fs.InputError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


def test_friction() -> None:
    refuse(lambda scene: scene.set_friction("cube", "flor", 0.5), "'flor'", "did you mean 'floor'")
    refuse(lambda scene: scene.set_friction("cube", "floor", -0.5), "-0.5", "at least 0", error=fs.MaterialError)
    refuse(lambda scene: scene.set_friction("cube", "floor", NAN), "nan", "finite", error=fs.MaterialError)


@pytest.mark.parametrize(
    ("name", "on", "options", "words"),
    [
        ("s", "gripper.lft", {}, ("sensor s: part 'gripper.lft'", "did you mean 'gripper.left'")),
        ("s", "cube", {"kind": "force"}, ("sensor s has kind 'force'", "'contact', 'mount', 'marker', 'start', 'end'")),
        ("s", "cube", {"kind": "mount"}, ("sensor s", "'mount' needs", "'cube'")),
        ("s", "floor", {"kind": "mount"}, ("'mount' needs", "'floor'")),
        ("s", "gripper.left", {"kind": "mount"}, ("'mount' needs", "base of a gripper")),
        ("s", "cube", {"kind": "marker"}, ("where on 'cube'", "node=, 0 to 26, or at=")),
        ("s", "cube", {"kind": "marker", "node": 27}, ("node 27 of 'cube'", "0 to 26")),
        ("a,b", "cube", {}, ("'a,b'", "comma", "choose another")),
        ("", "cube", {}, ("''", "empty")),
    ],
)
def test_sensors(name: str, on: str, options: dict[str, object], words: tuple[str, ...]) -> None:
    refuse(lambda scene: scene.sensor(name, on, **options), *words)  # type: ignore[arg-type]


def test_two_sensors_of_one_name() -> None:
    scene = scene_with_all()
    scene.sensor("s", "cube")
    with pytest.raises(fs.InputError, match="sensor 's' exists already; choose another name"):
        scene.sensor("s", "floor")


# ------------------------------------------------------------------ found only when it is simulated


def test_a_scene_without_bodies() -> None:
    scene = fs.Scene("empty", theta=1.0)
    scene.add_floor()
    with pytest.raises(fs.InputError, match="scene 'empty' has no body that moves; add one by add_soft"):
        fs.simulate(scene)


@pytest.mark.parametrize(
    ("options", "words", "error"),
    [
        ({"solver": "condd"}, ("'condd'", "'cond'", "femsim solvers"), fs.ContactError),
        ({"solver_options": {"tol": 1}}, ("no option 'tol'", "tolerance"), fs.ContactError),
        ({"solver_options": {"tolerance": 0.5}}, ("solver_options holds a tolerance", "the argument tolerance"), fs.InputError),
        ({"tolerance": 0.0}, ("tolerance", "0.0", "between 0 and 1"), fs.ContactError),
        ({"tolerance": NAN}, ("tolerance", "nan"), fs.ContactError),
        ({"max_iterations": 0}, ("max_iterations", "0", ">= 1"), fs.ContactError),
        ({"dt": 0.0}, ("dt is 0.0 s", "positive"), fs.InputError),
        ({"dt": -1.0}, ("dt is -1.0 s", "positive"), fs.InputError),
        ({"duration": NAN}, ("duration is nan s", "positive"), fs.InputError),
        ({"duration": 0.001}, ("duration 0.001 s", "shorter", "at least one step"), fs.InputError),
        ({"fps": 0.0}, ("fps is 0.0", "positive"), fs.InputError),
        ({"fields": ("velocit",)}, ("field 'velocit'", "did you mean 'velocity'"), fs.InputError),
        ({"scene_path": "no_such_scene.py"}, ("no_such_scene.py", "cannot be read"), fs.InputError),
    ],
)
def test_options_of_a_simulation(options: dict[str, object], words: tuple[str, ...], error: type[ValueError]) -> None:
    with pytest.raises(error) as caught:
        fs.simulate(scene_with_all(), **options)  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("value", [(0.0, 0.0), np.zeros((5, 3)), 1.0])
def test_a_load_of_wrong_shape(value: object) -> None:
    scene = fs.Scene("x", duration=0.01, theta=1.0)
    scene.add_soft("ball", CUBE, RUBBER, load=lambda t: value)  # type: ignore[arg-type, return-value]
    with pytest.raises(fs.InputError, match=r"load of ball gave shape .* at 0.01 s; allowed are \(3,\) and \(27, 3\), in N"):
        fs.simulate(scene)
    scene = fs.Scene("x", duration=0.01, theta=1.0)
    scene.add_rigid("box", fs.Box((0.01, 0.01, 0.01)), mass=1.0, load=lambda t: (0.0, 0.0, 0.0))  # type: ignore[arg-type, return-value]
    with pytest.raises(fs.InputError, match=r"load of box gave shape \(3,\).*\(force, torque\)"):
        fs.simulate(scene)


def test_a_mount_sensor_of_a_body_that_nothing_drives_is_refused() -> None:
    scene = fs.Scene("free", theta=1.0)
    scene.add_rigid("box", fs.Box((0.1, 0.1, 0.1)), mass=1.0)
    scene.sensor("s", "box", kind="mount")
    with pytest.raises(fs.InputError, match=r"sensor s: kind 'mount' measures the drive of 'box', which has none"):
        fs.simulate(scene, duration=0.01)


_SHAPES = "Plane, Box, Sphere, Capsule, Cylinder, Mesh, Revolved, Thread, Cone, Compound"


@pytest.mark.parametrize(
    ("shape", "is_what"),
    [(fs.box_triangles((0.1, 0.1, 0.1)), "a TriMesh"), ("part.stl", "a str"), (fs.Box, "the class Box"), (None, "a NoneType")],
)
def test_what_is_no_shape_is_refused_by_name(shape: Any, is_what: str) -> None:
    """A TriMesh had "no mass properties" or "no triangles to draw"; a class was "a type"."""
    finger = fs.Finger("left", shape, offset=(0, 0, 0), closing=(1, 0, 0))
    scene, box = fs.Scene("shapes"), fs.Box((0.01, 0.01, 0.01))
    for what, call in (
        ("shape of part", lambda: scene.add_rigid("part", shape, mass=0.1)),
        ("shape of part", lambda: scene.add_obstacle("part", shape)),
        ("pad of hand.left", lambda: scene.add_gripper("hand", [finger])),
    ):
        with pytest.raises(fs.InputError, match=rf"^{what} is {is_what}; allowed are {_SHAPES}\. A TriMesh m becomes one by"):
            call()
    if shape is not None:  # none is no base
        with pytest.raises(fs.InputError, match=f"^base of hand is {is_what}; allowed are"):
            scene.add_gripper("hand", [fs.Finger("left", box, (0, 0, 0), (1, 0, 0))], base=shape)
    with pytest.raises(fs.InputError, match="base of hand is a Plane, which has no mass"):
        scene.add_gripper("hand", [fs.Finger("left", box, (0, 0, 0), (1, 0, 0))], base=fs.Plane())


@pytest.mark.parametrize("points", [fs.box_triangles((0.1, 0.1, 0.1)), "part.stl", 5])
def test_a_mesh_of_one_argument_says_how_to_make_it(points: Any) -> None:
    with pytest.raises(
        fs.ContactError, match=r"triangles are missing; give points .*Mesh\(m\.points, m\.triangles\).*mesh_shape"
    ):
        fs.Mesh(points)


def test_a_setting_set_later_acts_or_is_refused() -> None:
    """A box on a slope of 20 degrees stays with friction 0.5 and slides with 0.2, given late: it was taken and did nothing."""
    speeds = []
    for friction in (0.5, 0.2):
        scene = fs.Scene("slope", dt=0.01, duration=0.1, theta=1.0, gravity=(9.81 * np.sin(0.35), 0.0, -9.81 * np.cos(0.35)))
        scene.default_friction = friction
        scene.add_floor()
        scene.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), mass=0.1, position=(0.0, 0.0, 0.02))
        speeds.append(fs.Simulation(scene).step(10).state.v[0])
    assert speeds == pytest.approx([0.0, 0.981 * (np.sin(0.35) - 0.2 * np.cos(0.35))], abs=1e-6)
    for name, meant in (("friction", "default_friction"), ("timestep", "dt"), ("gravitiy", "gravity")):
        with pytest.raises(AttributeError, match=f"no setting '{name}'; did you mean '{meant}'"):
            setattr(scene, name, 0.1)
    scene.mine = 1.0  # type: ignore[attr-defined]  # as any object of Python
