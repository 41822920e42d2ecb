"""What is said to a newcomer: nearest words, words of other programs, numbers with units, files that are no scenes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small_scene import scene_file

import femsim as fs
from femsim.base.errors import meant, nearest, number_alone
from femsim.step.stepper import Stepper


def scene() -> fs.Scene:
    made = fs.Scene("words", dt=0.01, duration=0.01, theta=1.0)
    made.add_floor()
    return made


def cube(**options: object) -> fs.Scene:
    made = scene()
    made.add_soft("cube", fs.box_tets((0.04,) * 3, 2), "ecoflex_00_50", position=(0, 0, 0.02), **options)  # type: ignore[arg-type]
    return made


def finished() -> fs.Run:
    return fs.simulate(cube())


def arm_scene() -> fs.Scene:
    scene = fs.Scene("arm", dt=0.01, duration=0.1)
    scene.add_robot("arm7.urdf", name="arm")
    return scene


@pytest.mark.parametrize(
    ("attempt", "kind", "words"),
    [
        (lambda: fs.simulat, AttributeError, "'simulat'; did you mean 'simulate'?"),
        (lambda: fs.load_runs, AttributeError, "'load_runs'; did you mean 'load_run'?"),
        (lambda: fs.load_urdf, AttributeError, "'load_urdf'; did you mean 'load_robot'?"),
        (lambda: fs.load_mjcf, AttributeError, "'load_mjcf'; did you mean 'load_robot'?"),
        (lambda: fs.read_run, AttributeError, "'read_run'; did you mean 'load_run'?"),
        (lambda: fs.open_run, AttributeError, "'open_run'; did you mean 'load_run'?"),
        (lambda: fs.SoftBody, AttributeError, "'SoftBody'; did you mean 'Scene.add_soft'?"),
        (lambda: fs.load_stl, AttributeError, "'load_stl'; did you mean 'mesh_shape'?"),
        (lambda: fs.load_path("arm7_lift.csv").motion(strt=1), TypeError, "parameter 'strt'; did you mean 'start'"),  # type: ignore[call-arg]
        (lambda: fs.load_robot("arm7.urdf").reach("hand", (0, 0, 1), tol=0), TypeError, "has no parameter 'tol'"),  # type: ignore[call-arg]
        (lambda: arm_scene().join("arm.left_fingr", "world", at=(0, 0, 0)), fs.InputError, "did you mean 'arm.left_finger'"),
        (lambda: arm_scene().join("arm", "wrld", at=(0, 0, 0)), fs.InputError, "did you mean 'world'"),
        (lambda: fs.__wrong__, AttributeError, "no attribute '__wrong__'$"),
        (lambda: finished().times, AttributeError, r"a run has no attribute 'times'; did you mean .*steps\['time_s'\]"),  # type: ignore[attr-defined]
        (lambda: finished().marker, AttributeError, "a run has no attribute 'marker'; did you mean 'markers'"),  # type: ignore[attr-defined]
        (lambda: fs.cylinder_tets(0.01, 0.1, (2, 2, 8)), fs.MeshError, "2 integers of at least 1: cells along the diameter and"),
        (lambda: fs.make_solver("pgss"), fs.ContactError, "did you mean 'pgs'"),
        (lambda: fs.make_solver("pgs", max_iter=3), fs.ContactError, "did you mean 'max_iterations'"),
        (lambda: fs.simulate(scene(), max_iter=3), TypeError, r"simulate\(\) has no parameter 'max_iter'; did you mean 'max_it"),
        (lambda: fs.Scene("a", durations=1.0), TypeError, r"Scene\(\) has no parameter 'durations'; did you mean 'duration'"),
        (lambda: cube(pos=(0, 0, 1)), TypeError, r"add_soft\(\) has no parameter 'pos'; did you mean 'position'\? There"),
        (lambda: fs.RodEnd("clamped", moton=None), TypeError, r"RodEnd\(\) has no parameter 'moton'; did you mean 'motion'"),  # type: ignore[call-arg]
        (lambda: fs.Reading(frme="body"), TypeError, r"Reading\(\) has no parameter 'frme'; did you mean 'frame'"),  # type: ignore[call-arg]
        (lambda: fs.Finger("left", fs.Sphere(0.01)), TypeError, r"Finger\(\) lacks 'offset', 'closing'; give them"),  # type: ignore[call-arg]
        (lambda: fs.HealthBounds(penetraton=(0.1, 0.2)), TypeError, "did you mean 'penetration'"),  # type: ignore[call-arg]
        (lambda: fs.Piece(fs.Sphere(0.01), ofset=(0, 0, 0)), TypeError, r"Piece\(\) has no parameter 'ofset'"),  # type: ignore[call-arg]
        (lambda: fs.Compound(piece=()), TypeError, "did you mean 'pieces'"),  # type: ignore[call-arg]
        (lambda: cube(element="tet10"), fs.InputError, "did you mean 'quadratic'"),
        (lambda: cube(element="quadratc"), fs.InputError, "did you mean 'quadratic'"),
        (lambda: cube(law="neohookean"), fs.MaterialError, "did you mean 'stable_neo_hookean'"),
        (lambda: cube(law="Neo-Hookean"), fs.MaterialError, "did you mean 'stable_neo_hookean'"),
        (lambda: cube(law="ogdn"), fs.MaterialError, "did you mean 'ogden'"),
        (lambda: fs.RodEnd("fixed"), fs.InputError, "did you mean 'clamped'"),  # type: ignore[arg-type]
        (lambda: fs.RodEnd("clampd"), fs.InputError, "did you mean 'clamped'"),  # type: ignore[arg-type]
        (lambda: fs.RodEnd("pinned"), fs.InputError, "did you mean 'hinged'"),  # type: ignore[arg-type]
        (lambda: scene().add_rod("r", np.eye(3), fs.circular_section(0.01), "pvc_cable", end=fs.RodEnd), fs.InputError,  # type: ignore[arg-type]
         "end of r is the class RodEnd; allowed are an fs.RodEnd"),
        (lambda: cube().hold("cube", [0, 1], on="world"), fs.InputError, "given as fixed=... of scene.add_soft instead"),
        (lambda: cube().sensor("x", "cube", kind="force"), fs.InputError, "did you mean 'contact'"),
        (lambda: cube().sensor("x", "cube", kind="markr"), fs.InputError, "did you mean 'marker'"),
        (lambda: cube().sensor("x", "cube", kind="zzz"), fs.InputError, "'zzz'; allowed are"),
    ],
)  # fmt: skip
def test_the_nearest_word_is_named(attempt: Callable[[], object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        attempt()


@pytest.mark.parametrize(
    ("text", "number"),
    [("10ms", "0.01"), ("2 s", "2"), ("10 kPa", "10000"), ("0.5MPa", "500000"), ("-3e1 mm", "-0.03"), ("5µm", "5e-06")],
)
def test_a_number_with_a_unit_is_written_without(text: str, number: str) -> None:
    assert number_alone(text) == f"without a unit, which is SI: {number}"
    assert float(number_alone(text).split()[-1]) == pytest.approx(float(number))


@pytest.mark.parametrize("text", ["10", "ten ms", "3 mPa", "3 parsec", "", "1e5", "1.2.3 s"])
def test_other_texts_are_not_guessed(text: str) -> None:
    assert number_alone(text) == ""


def test_units_are_not_doubled(call: Callable[..., tuple[int, str, str]]) -> None:
    status, _, err = call("run", "soft_ball_gripping", "--set", "dt=10ms")
    assert status == 2 and "must be a number (s): write it without a unit, which is SI: 0.01." in err
    status, _, err = call("run", "soft_ball_gripping", "--duration", "20ms")
    assert status == 2 and "without a unit, which is SI: 0.02" in err


@pytest.mark.parametrize(
    ("name", "words"),
    [("arm.urdf", "a robot"), ("hand.xml", "another simulator"), ("part.stl", "fs.load_volume"), ("ball.vtu", "fs.load_tetmesh"),
     ("grip.toml", "femsim sweep")],
)  # fmt: skip
def test_files_that_are_no_scenes_get_a_sentence(
    name: str, words: str, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    (tmp_path / name).write_text("", encoding="utf-8")
    for command in ("run",) if name.endswith((".urdf", ".xml")) else ("run", "describe"):  # a robot is described
        status, out, err = call(command, str(tmp_path / name))
        assert (status, out) == (2, "") and words in err and "write a scene in Python" in err


def test_only_our_names_are_listed() -> None:
    assert set(dir(fs)) == {*fs.__all__, "__version__"}
    assert not [name for name in dir(fs) if name in ("ast", "os", "Path", "annotations", "importlib")]


@pytest.mark.parametrize("name", ["peg_in_hole", "crank_pusher", "held_rods", "soft_gripper", "cable_pull", "soft_ball_gripping"])
def test_what_a_scene_is_made_of_says_what_it_is(name: str) -> None:
    """No object of ours shows an address, and none of those that people hold fills the screen."""
    made = fs.load_scene(name)
    todo: list[object] = [made, Stepper(made, fs.make_solver("cond"))]
    known: set[int] = set()
    kept = []  # else a number of memory could be met again
    while todo:
        thing = todo.pop()
        if id(thing) in known:
            continue
        known.add(id(thing))
        kept.append(thing)
        if isinstance(thing, (list, tuple, set, dict)):
            todo.extend(thing.values() if isinstance(thing, dict) else thing)
        elif type(thing).__module__.startswith(("femsim.model", "femsim.scene", "materials")):
            assert " object at 0x" not in repr(thing), type(thing)
            assert len(repr(thing)) < 1000 or type(thing).__name__.startswith("_"), type(thing)
            todo.extend(getattr(thing, "__dict__", {}).values())
    assert len(kept) > 50


def test_motions_holds_and_tables_of_friction_name_what_matters() -> None:
    lift = fs.Motion([0, 1], [(0, 0, 0), (0, 0, 0.1)], [(0, 0, 0), (0, 0, 1.5707963)], name="lift")
    assert repr(lift) == "<Motion 'lift': 2 key frames from 0 to 1 s, at last moved by 0, 0, 0.1 m, turned by 90 degrees>"
    assert repr(fs.Profile(range(20), range(20))) == "<Profile 20 key frames from 0 to 19 s, 0 to 19>"
    table = fs.FrictionTable(0.3)
    table.set("rubber", "steel", 0.8)
    assert repr(table) == "<FrictionTable: 0.3 by default, rubber - steel 0.8>"
    (hold, *_) = fs.load_scene("soft_gripper").holds
    assert re.fullmatch(r"<Hold '\w+': \d+ nodes of body \d+ follow a motion>", repr(hold))
    run = fs.simulate(cube())
    assert re.fullmatch(r"<Stepper of 'words' at 0.01 s, 81 velocities>", repr(run.stepper))


def test_what_is_no_material_and_no_scene_is_named() -> None:
    with pytest.raises(fs.InputError, match=r"material is 100000.0; .* fs.Elastic\(density=1070, young_modulus=1e5"):
        scene().add_soft("cube", fs.box_tets((0.04,) * 3, 2), 1e5, position=(0, 0, 0.02))  # type: ignore[arg-type]
    fs.Elastic(density=1070, young_modulus=1e5, poisson_ratio=0.45)  # as the message says
    for given, words in (
        ("soft_ball_gripping", r"fs.load_scene\('soft_ball_gripping'\) makes one"),
        (cube, "build.. returns one"),
    ):
        with pytest.raises(fs.InputError, match=words):
            fs.simulate(given)  # type: ignore[arg-type]
        with pytest.raises(fs.InputError, match=words):
            fs.Simulation(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("folder", ["results/grip", Path("grip")])
def test_a_folder_in_place_of_the_solver_is_told_where_it_goes(folder: str) -> None:
    with pytest.raises(fs.InputError, match=r"solver '.*grip' is unknown; a folder for results is out='.*grip'\.$"):
        fs.simulate(cube(), folder)


def test_results_answer_a_wrong_name_with_those_that_there_are() -> None:
    made = cube()
    made.sensor("grip", "cube")
    run = fs.simulate(made)
    with pytest.raises(KeyError) as caught:
        run.sensors["gripp"]
    assert str(caught.value) == "sensor of this run 'gripp' is unknown; did you mean 'grip'? There is only grip."
    with pytest.raises(KeyError, match=r"column of steps.csv 'iteration' is unknown; did you mean 'iterations'"):
        run.steps["iteration"]
    with pytest.raises(
        KeyError, match=r"marker of this run 'grip' is unknown; there is none\. Read it by run\.sensors\['grip'\]"
    ):
        run.markers["grip"]
    assert run.sensors.get("gripp") is None and "gripp" not in run.sensors and dict(run.sensors) == run.sensors
    again = pickle.loads(pickle.dumps(run.steps))
    assert type(again) is type(run.steps) and again.what == run.steps.what and list(again) == list(run.steps)


def test_words_of_others_lead_to_commands(call: Callable[..., tuple[int, str, str]]) -> None:
    from femsim.cli import base

    _, listed, _ = call("--help")
    commands = set(re.findall(r"^│ (?:\* )?([a-z-]+) ", listed, flags=re.M))
    assert {"run", "render", "resume"} <= commands
    assert not commands & set(base.OTHER_WORDS)
    for said in base.OTHER_WORDS.values():
        assert re.match(r"femsim ([a-z-]+) ", said)[1] in commands  # type: ignore[index]
    status, out, err = call("film", "runs/a")
    assert (status, out) == (2, "") and "no command 'film'; femsim render RUN makes pictures and a film" in err


def test_names_of_runs_fields_cameras_and_sensors_are_guessed(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    made = cube()
    made.sensor("left_jaw", "cube")
    fs.simulate(made, out=tmp_path / "mine")
    for words, expected in (
        (("plot", str(tmp_path / "mien")), f"did you mean {tmp_path / 'mine'}?"),
        (("plot", str(tmp_path / "other")), "give the folder that a run wrote. The latest run there: mine."),
        (("plot", str(tmp_path / "mine" / "deep" / "er")), "give the folder that a run wrote."),
        (("plot", str(tmp_path / "mine"), "--sensors", "left"), "did you mean 'left_jaw'?"),
        (("render", str(tmp_path / "mine"), "--field", "stress"), "did you mean 'von_mises'?"),
        (("render", str(tmp_path / "mine"), "--camera", "isometric"), "did you mean 'iso'?"),
    ):
        status, _, err = call(*words)
        assert status == 2 and expected in err, (words, err)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("scene.frobnicate('b')", "no attribute 'frobnicate'; correct the scene file."),
        ("scene.fix('b')", "a scene has no attribute 'fix'; did you mean 'add_soft(..., fixed=...)'? correct the scene file."),
        ("scene.add_cable('b')", "a scene has no attribute 'add_cable'; did you mean 'add_rod'? correct the scene file."),
        ("scene.add_ridgid('b', fs.Sphere(0.1))", "no attribute 'add_ridgid'; did you mean 'add_rigid'? correct the scene file."),
        ("scene.add_rigid('b', fs.Sphere(0.1), mas=1.0)", "shape, surface, velocity; correct the scene file."),
    ],
)
def test_a_slip_in_a_scene_file_is_named_with_its_line(
    line: str, words: str, tmp_path: Path, call: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        f"import femsim as fs\n\n\ndef build() -> fs.Scene:\n    scene = fs.Scene('a', dt=0.01, duration=0.1)\n    {line}\n"
    )
    status, _, err = call("describe", str(path))
    assert status == 2 and f"{path}, line 6: build failed with " in err and words in " ".join(err.split())
    assert "errors.py" not in err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[time]\noffset = "none"', ["time.offset is 'none', but must be a number or 'auto'."]),
        ('[time]\noffset = "10ms"', ["time.offset is '10ms', but must be a number or 'auto': write it without a unit"]),
        (
            '[axes]\nfx = "A"\nfy = "A"',
            ["the file has the column 'A' under axes.fx and under axes.fy; a column is one component."],
        ),
        ('[markers]\na = ["x", "x", "z"]', ["the file has the column 'x' twice under markers.a; a column is one component."]),
        ("[frame]\nrotation = [1, 2]", ["frame.rotation is [1, 2]; allowed are a rotation vector"]),
        (
            'senor = "a"\n[time]\noffset = "x"',
            ["time.offset is 'x', but must be a number", "senor: the key is unknown; did you mean"],
        ),
    ],
)
def test_a_wrong_entry_of_a_card_is_one_sentence(content: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "card.toml"
    path.write_text(content)
    with pytest.raises(fs.InputError) as caught:
        fs.read_log(tmp_path / "log.csv", path)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(words)
    for line, said in zip(lines, words, strict=True):
        assert line.startswith(f"{path}: {said}")


def test_a_sweep_file_is_no_calibration_and_a_value_of_no_kind_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text('scene = "a.py"\n[parameters]\nradius = { values = [1, 2] }\n')
    with pytest.raises(fs.InputError, match="is a sweep file; femsim sweep runs it"):
        fs.calibrate(path)
    path.write_text("experiments = []\n" + path.read_text() + "hard = [[1]]\n")
    with pytest.raises(fs.InputError) as caught:
        fs.calibrate(path)
    said = "but must be true or false, an integer, a number, a string or a list"
    lines = str(caught.value).splitlines()
    assert f"{path}: parameters.radius is {{'values': [1, 2]}}, {said}." in lines
    assert f"{path}: parameters.hard is [[1]], {said} of such." in lines
    assert len(lines) == 4 and f"{path}: free is missing; add it." in lines


def test_what_is_mixed_up_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., tuple[int, str, str]]
) -> None:
    """Run and log in the wrong order, a run given as a scene, a field where nothing can have one."""
    ball = fs.Scene("drop", dt=0.01, duration=0.12, theta=1.0)
    ball.add_rigid("ball", fs.Sphere(0.1), density=1e3, position=(0, 0, 0.2))
    ball.sensor("ball", "ball")
    monkeypatch.chdir(tmp_path)
    fs.simulate(ball, out="run", fps=100.0, quiet=True)
    Path("log.csv").write_text("time,Fx,Fy,Fz\n" + "".join(f"{0.01 * k},0,0,{k}\n" for k in range(9)))
    status, _, err = call("compare", "log.csv", "run")
    assert status == 2 and "The run comes first, then the logs." in " ".join(err.split())
    status, _, err = call("compare", "run", "log.csv", "--sensor", "bal")
    assert status == 2 and "sensor 'bal', which is asked for, is not in the run; did you mean 'ball'?" in " ".join(err.split())
    status, _, err = call("run", "run")
    assert status == 2 and "'run' is the folder of a run, not a scene; femsim resume run goes on with it." in " ".join(
        err.split()
    )
    status, _, err = call("render", "run", "--field", "velocity")
    assert status == 2 and "the field 'velocity' has nothing to colour" in " ".join(err.split())


def test_nearest_and_meant() -> None:
    assert nearest("pos", ["position", "rotation"]) == "position"
    assert nearest("po", ["position", "rotation"]) is None
    assert nearest("add", ["add_soft", "add_rigid"]) is None  # two begin so
    assert nearest("nothere.py", ["scene_over.py"]) is None  # the ending is all that they share
    assert nearest("arm8.urdf", ["arm7.urdf", "quadruped.urdf"]) == "arm7.urdf"
    assert meant("tet-10", ["linear"], {"tet_10": "quadratic"}) == " did you mean 'quadratic'?"
    assert meant(3, ["linear"]) == ""


def test_decorated_calls_keep_their_signature_and_documentation() -> None:
    import inspect

    assert "solver" in inspect.signature(fs.simulate).parameters
    assert re.search("Parameters", fs.Scene.add_soft.__doc__ or "")
    assert list(inspect.signature(fs.Scene).parameters)[:1] == ["name"]


@pytest.fixture
def wrong_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a scene, a run, and files of other kinds than those that are asked for."""
    monkeypatch.chdir(tmp_path)
    scene_file(tmp_path)
    fs.simulate(fs.load_scene("small_cube.py", steps=12), out="run")
    experiments = '[[experiments]]\nname = "a"\nreadings = [{ logs = ["log.csv"] }]\n'
    for name, text in {
        "log.csv": "time,Fx\n0,1\n",
        "quotes.toml": "scene = small_cube.py\n",
        "sweep.toml": 'scene = "small_cube.py"\n[parameters]\nsteps = { values = [2, 3] }\n[metrics]\nw = "final(cube_fz_N)"\n',
        "frames.toml": 'scene = "small_cube.py"\n[outputs]\nframes = [0, 5]\n',
        "seeds.toml": 'scene = "small_cube.py"\nseeds = [1, "a"]\n',
        "fit.toml": 'scene = "small_cube.py"\n[free]\nside = { between = [0.01, 0.02] }\n' + experiments,
        "value.toml": 'scene = "small_cube.py"\n[free]\nside = 0.01\n' + experiments,
        "unit.toml": 'scene = "small_cube.py"\n[free]\nside = { between = ["10mm", 0.02] }\n' + experiments,
        "unread.toml": 'scene = "small_cube.py"\n[free]\nside = { between = [0.01, 0.02] }\n[[experiments]]\nname = "a"\n'
        "readings = []\n",
        "card.toml": '[markers]\ntip = ["x", "y", "z"]\n',
        "markers.csv": "time,x,y,z\n" + "".join(f"{k / 10},0,0,{k}\n" for k in range(20)),
        "test.csv": "strain,stress\n0,0\n1,1\n",
        "one.csv": "engineering strain,engineering stress (MPa)\n0.1,0.2\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "run",
            "run needs SCENE, for instance: femsim run soft_ball_gripping (femsim scenes lists more) (see 'femsim run --help')",
        ),
        ("plot", "plot needs RUNS, for instance: femsim plot runs/soft (see"),
        ("run small_cube.py --out", "--out is given without a value. (see 'femsim run --help')"),
        ("run log.csv", "'log.csv' is no scene: a scene is a Python file, .py"),
        ("run small_cube.py --fps fast", "--fps is 'fast', but must be a number. (see"),
        (
            "run small_cube.py --dt 10ms",
            "--dt is '10ms', but must be a number or auto: write it without a unit, which is SI: 0.01. (see",
        ),
        ("reproduce", "reproduce needs PAPER, for instance: femsim reproduce cond --quick (see"),
        ("run small_cube.py more", "run takes no further word, but 'more' is given; options are written --NAME VALUE."),
        ("run small_cube.py --set side=1 --set side=2", "--set side is given twice, '1' and '2'; leave one out."),
        (
            "sweep small_cube.py",
            "small_cube.py is a Python file, not a sweep file (.toml); a scene is run by femsim run small_cube.py.",
        ),
        ("sweep fit.toml", "fit.toml is a calibration file; femsim calibrate runs it."),
        ("sweep quotes.toml", "line 1, column 9); words stand in quotes."),
        ("sweep frames.toml --dry-run", "frames.toml: outputs.frames.1 is 0, but must be greater than or equal to 1.\n"),
        ("sweep seeds.toml --dry-run", "seeds.toml: seeds is [1, 'a'], but must be an integer or a list of such.\n"),
        ("calibrate sweep.toml", "sweep.toml is a sweep file; femsim sweep runs it."),
        ("calibrate value.toml", "value.toml: free.side is 0.01, but must be a table, { ... }."),
        ("calibrate unit.toml", "is '10mm', but must be a number: write it without a unit, which is SI: 0.01."),
        ("plot small_cube.py", "small_cube.py is a scene, not the folder of a run; run it first: femsim run small_cube.py"),
        ("render log.csv", "log.csv is a file; give the folder that a run wrote."),
        ("report nowhere", "the run folder nowhere does not exist; give the folder that a run wrote."),
        ("plot run --labels a,b", "2 labels are given for 1 run; give one for each"),
        ("render run --camera follow:zzz", "the frames have no such body; they have: cube."),
        ("solve log.csv", "log.csv is no HDF5 file; name an FCLib file (.hdf5)."),
        ("solve log.csv --solver pgs:tol=3", "'tol' (did you mean 'tolerance'?)"),
        ("run nothere.py", "'nothere.py' does not exist; there are "),
        ("render run/frames.pvd", "run/frames.pvd is a file of the run run; give that folder."),
        ("resume run/run.json", "run/run.json is a file of the run run; give that folder."),
        ("compare log.csv run", "log.csv is a file; give the folder that a run wrote. The run comes first, then the logs."),
        ("compare run markers.csv --card card.toml", "marker 'tip' is not in run, which has no markers."),
        ("calibrate unread.toml", "experiments.1.readings is [], but must have at least 1 entry."),
        ("render run --stills -1", "stills is -1; it must be 0 (no pictures, only the film) or more."),
        ("render run --size 640", "--size is '640'; write WIDTHxHEIGHT in pixels, e.g. 1920x1080."),
        ("render run --field tension", "has a field 'tension'; present are: "),
        ("render run --field cauchy_stress", "von_mises; femsim run --fields records others.\n"),
        ("calibrate fit.toml --cases log.csv --out new", "log.csv is a file; choose another by --cases.\n"),
        ("plot run --sensors cub", "'cub' is not known; did you mean 'cube'? There are: cube."),
        ("plot run --out log.csv", "log.csv cannot be made (File exists); choose another folder."),
        (
            "plot run --out forces.png",
            "forces.png has the name of one figure, and several are drawn; give a folder, ",
        ),
        ("report run --out page.pdf", "the page page.pdf would be HTML; let its name end in .html."),
        ("play small_cube.py --out run --no-open", "the output folder run exists; choose another by --out.\n"),
        ("play", "for instance: femsim play soft_ball_gripping (see"),
        (
            "reproduce cond --only fig77",
            "'fig77'; did you mean 'fig7'? there are I, fig6, II, fig7",
        ),
        ("fit-material test.csv", "column 'stress' has no unit; write one of Pa, kPa, MPa, N/mm2, GPa in brackets"),
        ("fit-material one.csv", "has 1 sample below"),
        ("selftest stack_rigd", "'stack_rigd'; did you mean 'stack_rigid'? femsim selftest --list lists them.\n"),
        ("help", "there is no command 'help'; femsim --help lists the commands."),
        ("export run", "there is no command 'export'; femsim run writes frames"),
    ],
)
def test_the_sentence_says_what_to_do(
    words: str, said: str, wrong_things: None, call: Callable[..., tuple[int, str, str]]
) -> None:
    """Read by a person, one by one, for commands of all kinds; none begins with an empty progress bar."""
    status, _, err = call(*words.split())
    assert status == 2 and err.strip().startswith("femsim: ") and said in err, err
