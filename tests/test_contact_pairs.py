"""Contact left out by pair and by group; contacts reported pair by pair, in columns and in frames."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import femsim as fs
from femsim.scene.pairs import ignored_pairs

G = 9.81
CUBE = fs.Box((0.01, 0.01, 0.01))


def shelf() -> fs.Scene:
    """A cube on a shelf above a floor, and one beside it on the floor."""
    scene = fs.Scene("shelf", dt=0.01, duration=0.4, theta=1.0)
    scene.add_floor()
    scene.add_obstacle("shelf", fs.Box((0.05, 0.05, 0.005)), position=(0, 0, 0.03), surface="wood")
    for name, place in (("cube", (0.0, 0.0, 0.045)), ("other", (0.2, 0.0, 0.01))):
        scene.add_rigid(name, CUBE, mass=0.1, position=place)
        scene.sensor(f"{name}_floor", name, partner="floor")
    return scene


@pytest.mark.parametrize("said", ["pair", "handles", "surface", "group", "nothing"])
def test_a_body_falls_through_what_it_ignores(said: str) -> None:
    scene = shelf()
    if said == "pair":
        scene.ignore_contact("shelf", "cube")
    elif said == "handles":
        scene.ignore_contact(scene.add_rigid("third", CUBE, mass=0.1, position=(0, 0, 0.045)), "shelf")
        scene.ignore_contact("third", "cube")
        scene.sensor("third_floor", "third", partner="floor")
    elif said == "surface":
        scene.ignore_contact("cube", "wood")
    elif said == "group":
        scene.ignore_contact(scene.contact_group("things", ["cube", "other"]), "shelf")
    run = fs.simulate(scene)
    falls = "third" if said == "handles" else "cube"
    floor = run.sensors[f"{falls}_floor"].force[-1, 2]
    assert floor == pytest.approx(0.0 if said == "nothing" else 0.1 * G, rel=1e-6)
    assert run.sensors["other_floor"].force[-1, 2] == pytest.approx(0.1 * G, rel=1e-6)
    assert run.verdict == "good", run.summary()
    if said == "handles":  # only what was named is left out
        assert run.sensors["cube_floor"].force[-1, 2] == 0.0
        assert run.info["ignored_contacts"] == ["third and shelf", "third and cube"]


def test_members_of_a_group_pass_through_each_other() -> None:
    """Soft cubes, a rod and a rigid cube that start inside each other all come to rest on the floor, each with its weight."""
    scene = fs.Scene("heap", dt=0.01, duration=0.3, theta=1.0)
    scene.add_floor()
    soft = fs.Elastic(1e5, 0.3, 1000.0, name="soft")
    for name, x in (("a", 0.0), ("b", 0.005)):
        scene.add_soft(name, fs.box_tets((0.02, 0.02, 0.02), 1), soft, position=(x, 0, 0.0101))
    rod = np.linspace([-0.03, 0.0, 0.0021], [0.03, 0.0, 0.0021], 9)
    scene.add_rod("rod", rod, fs.circular_section(0.002), soft, translational_damping=1.0)
    scene.add_rigid("cube", CUBE, mass=0.008, position=(0, 0, 0.0101))
    scene.contact_group("soft ones", ["a", "b"])
    scene.ignore_contact(scene.contact_group("heap", ["soft ones", "rod", "cube"]))
    for name in ("a", "b", "rod", "cube"):
        scene.sensor(name, name)
    run = fs.simulate(scene)
    for name in ("a", "b", "rod", "cube"):
        assert run.sensors[name].force[-1, 2] == pytest.approx(scene.body(name).mass * G, rel=1e-3), name


def test_driven_parts_that_ignore_each_other_are_no_fault() -> None:
    def through(ignore: bool) -> fs.Run:
        scene = fs.Scene("through", dt=0.01, duration=0.1, gravity=(0, 0, 0))
        scene.add_obstacle("wall", fs.Box((0.01, 0.1, 0.1)))
        scene.add_rigid("hand", CUBE, mass=0.1, position=(-0.03, 0, 0))
        scene.drive("hand", fs.Motion([0, 0.1], [(0, 0, 0), (0.03, 0, 0)]))
        if ignore:
            scene.ignore_contact("hand", "wall")
        return fs.simulate(scene)

    assert through(True).verdict == "good"
    assert through(False).verdict == "wrong"


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda s: s.ignore_contact("cub", "shelf"), "'cub' is unknown; did you mean 'cube'"),
        (lambda s: s.ignore_contact("cube"), "'cube' is one body.*self_contact=True"),
        (lambda s: s.ignore_contact("cube", "cube"), "'cube' is one body"),
        (lambda s: s.contact_group("cube", ["other"]), "name is empty or that of a body"),
        (lambda s: s.contact_group("wood", ["other"]), "name is empty or that of a body, surface"),
        (lambda s: s.contact_group("all", "cube"), r"members are 'cube'; give a list"),
        (lambda s: s.contact_group("all", ["cube", "wood"]), "'wood' is a surface"),
        (lambda s: s.contact_group("all", ["cube", "nothing"]), "'nothing' is unknown"),
        (lambda s: s.sensor("x", "cube", kind="pair", reach=0.1), "reach is for the kinds gap, not 'pair'"),
    ],
)
def test_wrong_words_are_refused(call: object, match: str) -> None:
    assert callable(call)
    with pytest.raises(fs.InputError, match=match):
        call(shelf())


def test_a_pair_that_is_ignored_has_no_sensor() -> None:
    scene = shelf()
    scene.ignore_contact("cube", "shelf")
    scene.sensor("none", "cube", partner="shelf")
    with pytest.raises(fs.InputError, match=r"never has contact with 'shelf' here .*ignored"):
        fs.simulate(scene, duration=0.01)


def test_contacts_are_reported_pair_by_pair(tmp_path: Path) -> None:
    """A pushed stack of two cubes: what each pair reports is what sensors of its two forces read, and the frames say whose."""
    scene = fs.Scene("stack", dt=0.01, duration=0.1, theta=1.0)
    scene.add_floor()
    scene.add_rigid("low", CUBE, mass=0.2, position=(0, 0, 0.01), load=lambda t: ((1.0, 0, 0), (0, 0, 0)))
    scene.add_rigid("high", CUBE, mass=0.1, position=(0, 0, 0.03), load=lambda t: ((0.01, 0, 0), (0, 0, 0)))
    scene.add_rigid("far", CUBE, mass=0.1, position=(1, 0, 5.0))
    scene.set_friction("low", "floor", 0.1)
    assert scene.sense_pairs() == ["low-floor", "high-floor", "far-floor", "low-high", "low-far", "high-far"]
    assert scene.sense_pairs() and len(scene.sensors) == 6  # once each
    scene.sensor("all", "low", kind="pair")
    scene.sensor("bottom", "low", partner="floor")
    scene.sensor("top", "low", partner="high")
    run = fs.simulate(scene, out=tmp_path / "run", fields=("default", "parts"))
    found = {name: series.values for name, series in run.gauges.items()}
    force = run.sensors["bottom"].force[-1]
    floor = {name: values[-1] for name, values in found["low-floor"].items()}
    assert floor["contacts"] == floor["slipping"] == 4
    assert floor["normal_N"] == pytest.approx(force[2], rel=1e-9) and force[2] == pytest.approx(0.3 * G, rel=1e-6)
    assert floor["tangential_N"] == pytest.approx(0.1 * force[2], rel=1e-6)
    speed = 0.1 * (1.01 - 0.1 * 0.3 * G) / 0.3  # both together, from rest
    assert floor["slip_mps"] == pytest.approx(speed, rel=1e-4)
    high = {name: values[-1] for name, values in found["low-high"].items()}
    top = run.sensors["top"].force[-1]
    assert high["normal_N"] == pytest.approx(-top[2], rel=1e-9) and high["slipping"] == 0.0 and high["contacts"] >= 3
    assert found["all"]["contacts"][-1] == floor["contacts"] + high["contacts"]
    assert found["all"]["normal_N"][-1] == pytest.approx(floor["normal_N"] + high["normal_N"], rel=1e-12)
    assert not any(values[-1] for values in found["high-far"].values())
    frames = fs.open_frames(tmp_path / "run")
    drawn = frames.read(len(frames.times) - 1, "contacts")
    names = json.loads((tmp_path / "run" / "run.json").read_text())["parts"]
    sides = np.asarray(drawn.point_data["parts"], dtype=int)
    pressing = np.asarray(drawn.point_data["state"]) > 0
    pairs = {frozenset(names[k] for k in row) for row in sides[pressing].tolist()}
    assert pairs == {frozenset(("low", "floor")), frozenset(("low", "high"))}
    own = [sum((sides[:, 0] == k) * np.asarray(drawn.point_data["force"])[:, 2]) for k in range(len(names))]
    other = [sum((sides[:, 1] == k) * np.asarray(drawn.point_data["force"])[:, 2]) for k in range(len(names))]
    assert own[names.index("high")] - other[names.index("high")] == pytest.approx(-top[2], rel=1e-5)


def test_pairs_of_a_robot_are_those_that_can_meet(tmp_path: Path) -> None:
    """The base of a crane that stands on the world meets no obstacle, its other links do, and each other but for neighbours."""
    text = (Path(__file__).parent / "crane.urdf").read_text(encoding="utf-8")
    mesh = '<mesh filename="meshes/hook.stl" scale="0.5 0.5 0.5"/>'
    assert mesh in text
    (tmp_path / "crane.urdf").write_text(text.replace(mesh, '<box size="0.02 0.02 0.02"/>'), encoding="utf-8")
    scene = fs.Scene("crane", dt=0.01, duration=0.02, theta=1.0)
    scene.add_floor(-0.2)
    scene.add_robot(tmp_path / "crane.urdf")
    scene.ignore_contact(scene.contact_group("upper", ["crane.mast", "crane.jib"]), "floor")
    own = ["crane-crane.jib", "crane-crane.hook", "crane.mast-crane.hook"]
    assert scene.sense_pairs() == ["crane.hook-floor", *own]
    assert fs.simulate(scene).gauges["crane.hook-floor"].values["contacts"].tolist() == [0.0, 0.0]


def test_the_base_of_a_robot_is_named_like_its_other_links() -> None:
    """The name of the robot alone means all of it."""
    box = fs.Piece(fs.Box((0.02, 0.02, 0.02)))
    links = [fs.RobotLink.solid(name, box, 1.0) for name in ("foot", "hand")]
    joint = fs.RobotJoint("pin", "foot", "hand", axis=(0, 1, 0), position=(0.1, 0, 0))

    def scene() -> fs.Scene:
        made = fs.Scene("robot", dt=0.01)
        made.add_floor()
        made.add_robot(fs.Robot("arm", links, [joint]), position=(0, 0, 0.1))
        return made

    def ignored(made: fs.Scene, name: str) -> bool:
        return bool(ignored_pairs(made)[made.part_names.index("floor"), made.part_names.index(name)])

    base, whole = scene(), scene()
    base.ignore_contact("arm.foot", "floor")
    assert ignored(base, "arm") and not ignored(base, "arm.hand")
    whole.ignore_contact("arm", "floor")
    assert ignored(whole, "arm") and ignored(whole, "arm.hand")
    with pytest.raises(fs.InputError, match=r"'arm\.fot' is unknown; did you mean 'arm\.foot'"):
        base.ignore_contact("arm.fot", "floor")
