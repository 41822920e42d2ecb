"""A simulation in the browser: how the hand pulls, what the page asks for, the newest frame, and the mouse of a real browser."""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from browser import Browser, find_browser
from imageio.v3 import imread
from page_surface import placed
from scipy.spatial.transform import Rotation

import femsim as fs
from femsim.run.frames import Shown
from femsim.run.hand import Hand
from femsim.run.play import Player, play
from viz import LiveSeries, Pull, VizError
from viz.page_body import PageBody, fitted_pose, quaternion

viser = pytest.importorskip("viser", reason="the extra view is not installed")
pytest.importorskip("trimesh", reason="the extra view is not installed")

FIRST_PORT, G = 18480, 9.81


def box_and_cube(**options: Any) -> fs.Scene:
    """A box and a soft cube that rest on a floor."""
    scene = fs.Scene("box_and_cube", dt=0.01, duration=0.1, **options)
    scene.add_floor()
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=0.5, position=(0.0, 0.0, 0.05))
    rubber = fs.Elastic(2e5, 0.4, 1000.0, rayleigh_beta=1e-3)
    scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.04), 3), rubber, position=(0.2, 0.0, 0.0201))
    return scene


@pytest.mark.parametrize("part", ["box", "cube"])
def test_a_hand_lifts_a_body_and_holds_it_where_the_band_bears_its_weight(part: str) -> None:
    sim = fs.Simulation(box_and_cube())
    sim.step(5)
    top = (
        sim.pose("box")[1] + np.array([0.0, 0.0, 0.05])
        if part == "box"
        else sim.points("cube")[np.argmax(sim.points("cube")[:, 2])]
    )
    mass, place = (0.5 if part == "box" else 0.064), top + np.array([0.0, 0.0, 0.3])
    hand = Hand(sim, part, top, strength=3.0, length=0.05)
    for _ in range(300):
        force = hand.pull(place)
        assert sim.step().converged
    np.testing.assert_allclose(force, [0.0, 0.0, mass * G], atol=0.06 * mass * G)  # the cube still swings a little
    assert hand.point[2] == pytest.approx(place[2] - mass * G / hand.stiffness, abs=5e-3)
    assert hand.stiffness <= 3.0 * mass * G / 0.05 * (1.0 + 1e-9)
    hand.let_go()
    sim.step(150)
    assert sim.verdict == "good" and np.abs(sim.state.v[2]) < 1e-6 and not sim.save().pushes


def test_the_newest_frame_is_that_of_the_bodies() -> None:
    sim, series = fs.Simulation(box_and_cube()), LiveSeries()
    shown = Shown(sim.stepper, series)
    shown.write(None)
    assert series.read(0, "contacts").n_points == 0
    sim.step(10)
    shown.write(sim.report)
    assert series.times == [pytest.approx(0.1)] and {"floor", "box", "cube", "contacts"} <= set(series.parts)
    cube = series.read(0, "cube")
    np.testing.assert_array_equal(np.asarray(cube.points), sim.points("cube"))
    assert cube.n_cells == len(sim.stepper.scene.body("cube").tets) and "von_mises" in [*cube.cell_data, *cube.point_data]
    np.testing.assert_allclose(np.asarray(series.read(0, "box").points).mean(axis=0), sim.pose("box")[1], atol=1e-12)
    force = np.asarray(series.read(0, "contacts").point_data["force"]).sum(axis=0)
    assert abs(abs(force[2]) - (0.5 + 0.064) * G) < 0.5
    with pytest.raises(VizError, match="has no part 'ball'"):
        series.read(0, "ball")


class Clock:
    """Stands for the module ``time``: nothing but sleep takes time, so that a player keeps up on any machine."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, time: float) -> None:
        self.now += time


@pytest.fixture
def player_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Player]]:
    monkeypatch.setattr("femsim.run.play.time", Clock())
    opened: list[Player] = []

    def make(scene: fs.Scene, **options: Any) -> Player:
        opened.append(Player(scene, **({"port": FIRST_PORT} | options)))
        return opened[-1]

    yield make
    for player in opened:
        player.close()


def go_on(player: Player, steps: int) -> None:
    """Let it go on for so many steps, at least."""
    end, until = player.sim.state.step + steps, time.process_time() + 60.0
    while player.sim.state.step < end:
        assert time.process_time() < until
        player.tick()


def test_the_mouse_pulls_and_the_buttons_stop_it_and_start_it_again(player_of: Callable[..., Player]) -> None:
    player = player_of(box_and_cube())
    sim, view = player.sim, player.view
    go_on(player, 15)  # beyond the duration of the scene
    assert "health: good" in view._text.content and set(view._bodies) == {"box", "cube"}
    at = sim.pose("box")[1] + [0.0, 0.0, 0.05]
    view.drag("box", "start", at, at)
    view.drag("box", "update", at, at + np.array([0.0, 0.0, 0.2]))
    go_on(player, 40)
    assert set(sim.save().pushes) == {"box"} and sim.pose("box")[1][2] > 0.1
    view.drag("box", "end", at, at)
    go_on(player, 2)
    assert not sim.save().pushes
    view.pause(True)
    before = sim.state.step
    for _ in range(5):
        player.tick()
    assert sim.state.step == before and view._go.label == "Go on"
    view._ask_again()
    player.tick()
    assert sim.state.step <= 1 and not view.paused
    assert not view.asked_again()


def test_the_camera_steps_back_after_a_body_unless_the_visitor_has_turned_it(
    player_of: Callable[..., Player], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = fs.Scene("thrown", dt=0.01, duration=0.1, gravity=(0.0, 0.0, 0.0))
    scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=0.5, velocity=(0.0, 0.0, 1.0))
    player = player_of(scene)
    view = player.view
    first = view._server.initial_camera
    start, aim = np.array(first.position), np.array(first.look_at)
    cameras = [SimpleNamespace(position=start, look_at=aim), SimpleNamespace(position=2.0 * start, look_at=aim)]
    clients = {number: SimpleNamespace(camera=camera) for number, camera in enumerate(cameras)}
    monkeypatch.setattr(view._server, "get_clients", lambda: clients)

    def top_is_seen(camera: Any) -> bool:
        """Whether the top of the box is inside the angle of the camera."""
        ahead, to = camera.look_at - camera.position, player.sim.pose("box")[1] + [0.0, 0.0, 0.05] - camera.position
        return bool(ahead @ to > np.cos(np.radians(12.0)) * np.linalg.norm(ahead) * np.linalg.norm(to))

    go_on(player, 1)
    view.look()
    assert np.array_equal(first.position, start) and top_is_seen(cameras[0])  # it is still in the picture
    go_on(player, 15)
    view.show("")
    assert not top_is_seen(cameras[0])
    view.pull = Pull("box", np.zeros(3), np.zeros(3), 1)
    view.look()
    assert np.array_equal(cameras[0].position, start)  # not while the mouse pulls
    view.pull = None
    view.look()
    assert top_is_seen(cameras[0]) and np.array_equal(cameras[1].position, 2.0 * start)
    assert np.allclose(first.position, cameras[0].position)  # also of those who come later
    go_on(player, 500)
    view.show("")
    view.look()
    assert np.allclose(first.position, cameras[0].position) and not top_is_seen(cameras[0])  # one that flies off is let go


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of points of each surface that is loaded from now on."""
    sizes: list[int] = []
    real = pkgutil.resolve_name("viz.page_body:_glb")

    def counted(points: np.ndarray, *arguments: Any) -> bytes:
        sizes.append(len(points))
        return bytes(real(points, *arguments))

    monkeypatch.setattr("viz.page_body._glb", counted)
    return sizes


def test_bodies_that_rest_are_not_loaded_again(player_of: Callable[..., Player], loads: list[int]) -> None:
    player = player_of(box_and_cube())
    go_on(player, 100)
    loads.clear()
    go_on(player, 60)
    assert not loads
    at = player.sim.points("cube").max(axis=0)
    player.view.drag("cube", "start", at, at)
    player.view.drag("cube", "update", at, at + np.array([0.0, 0.0, 0.1]))
    go_on(player, 40)
    assert len(loads) > 3


def test_a_rigid_body_moves_without_being_loaded_again(player_of: Callable[..., Player], loads: list[int]) -> None:
    player = player_of(box_and_cube())
    view = player.view
    go_on(player, 5)
    body = view._bodies["box"]
    node = body.newest
    corners = len(placed(node, body.frame).vertices)
    loads.clear()
    at = player.sim.pose("box")[1] + [0.05, 0.05, 0.05]  # a corner: it turns
    view.drag("box", "start", at, at)
    view.drag("box", "update", at, at + np.array([0.1, 0.0, 0.2]))
    go_on(player, 60)
    view.show("")
    rotation, place = player.sim.pose("box")
    assert np.abs(rotation - np.eye(3)).max() > 0.05 and place[2] > 0.06
    assert body.newest is node and corners not in loads
    points = np.asarray(view._frame(0).read("box").points)
    seen = np.abs(placed(node, body.frame).vertices[:, None] - points[None]).max(axis=2)
    assert seen.min(axis=1).max() < 1e-6 and seen.min(axis=0).max() < 1e-6


class Nodes:
    """Stands for viser's scene."""

    def add_frame(self, name: str, show_axes: bool) -> SimpleNamespace:
        assert not show_axes
        return SimpleNamespace(name=name, position=np.zeros(3), wxyz=np.eye(4)[0])

    def add_glb(self, name: str, glb_data: bytes, scale: float) -> SimpleNamespace:
        place, turn = np.zeros(3), np.eye(4)[0]
        return SimpleNamespace(name=name, glb_data=glb_data, scale=scale, position=place, wxyz=turn, visible=True)


def test_a_soft_body_is_on_the_page_while_its_new_shape_is_loaded() -> None:
    """A browser shows nothing of a node while it reads what is new, so what is sent is hidden until the next picture."""
    solid = Rotation.from_rotvec((0.3, 0.2, 0.1))
    corners, triangles = np.eye(4)[:, :3] + [5.0, 0.0, 0.0], np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])
    grey = np.full((4, 3), 90, dtype=np.uint8)
    body = PageBody(Nodes(), "pad")

    def draw(points: np.ndarray, colours: np.ndarray = grey, fresh: bool = False) -> list[float]:
        """Draw, and return the largest x of what each node holds, of that which is shown first."""
        body.draw(points, corners, triangles, colours, 1e-6, fresh=fresh)
        assert all(node.visible for node in body.nodes)
        assert [node.scale == 1.0 for node in body.nodes] == [number == body.shown for number in range(len(body.nodes))]
        tops = [float(placed(node, body.frame).vertices[:, 0].max()) for node in body.nodes]
        return tops if body.shown == 0 else tops[::-1]

    stretched = [corners * [1.0 + k, 1.0, 1.0] for k in range(4)]
    assert draw(stretched[0]) == pytest.approx([6.0])
    assert draw(stretched[0]) == pytest.approx([6.0])
    assert draw(stretched[1])[1] == pytest.approx(12.0) and body.shown == 0
    assert draw(stretched[2])[1] == pytest.approx(18.0) and body.shown == 1
    assert draw(stretched[2])[0] == pytest.approx(18.0) and body.newest is body.nodes[body.shown]
    held = [node.glb_data for node in body.nodes]
    turned = solid.apply(stretched[2])
    assert draw(turned)[0] == pytest.approx(turned[:, 0].max(), abs=1e-6)  # moved, not loaded again
    assert held == [node.glb_data for node in body.nodes]
    draw(turned, np.full((4, 3), 200, dtype=np.uint8))
    assert held[body.shown] == body.nodes[body.shown].glb_data and body.newest is not body.nodes[body.shown]
    assert draw(stretched[3], fresh=True)[0] == pytest.approx(turned[:, 0].max(), abs=1e-6)  # as it was, where it was
    body.hide()
    assert not body.visible and not any(node.visible for node in body.nodes)
    assert draw(stretched[1])[0] == pytest.approx(12.0) and body.visible
    assert [node.name for node in (body.frame, *body.nodes)] == ["/bodies/pad", "/bodies/pad/0", "/bodies/pad/1"]


@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (3.1, 0.2, 0.0), (0.0, 3.14159, 0.0), (0.1, -0.2, 3.1), (1.0, -1.5, 2.0)])
def test_the_nearest_rigid_motion_and_its_quaternion(turn: tuple[float, float, float]) -> None:
    first = np.random.default_rng(3).normal(size=(40, 3))
    rotation = Rotation.from_rotvec(turn).as_matrix()
    for flat in (False, True):
        first[:, 2] *= 0.0 if flat else 1.0
        points = (first - first.mean(axis=0)) @ rotation.T + [1.0, 2.0, 3.0]
        found, place = fitted_pose(first, points)
        np.testing.assert_allclose(found, rotation, atol=1e-12)
        np.testing.assert_allclose(place, [1.0, 2.0, 3.0], atol=1e-12)
        w, x, y, z = quaternion(found)
        np.testing.assert_allclose(Rotation.from_quat([x, y, z, w]).as_matrix(), rotation, atol=1e-12)


def test_a_step_that_fails_is_said_and_stops_it(player_of: Callable[..., Player], monkeypatch: pytest.MonkeyPatch) -> None:
    player = player_of(box_and_cube())
    go_on(player, 2)

    def fail(*_: Any) -> None:
        raise fs.StepFailedError("step 3 failed: it is too much.")

    monkeypatch.setattr(player.sim, "step", fail)
    end = time.monotonic() + 20.0
    while "it is too much" not in player.view._text.content:
        assert time.monotonic() < end
        player.tick()
    assert player.view.paused


def test_it_records_what_was_pulled(tmp_path: Path) -> None:
    ticks = iter(range(40))
    run = play(box_and_cube(), port=FIRST_PORT, open_browser=False, out=tmp_path / "run", until=lambda: next(ticks, None) is None)
    assert run is not None and run.status == "converged" and (tmp_path / "run" / "frames.pvd").is_file()


def test_wrong_input(tmp_path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    status, _, err = call("play", "nothing")
    assert status == 2 and "scene file 'nothing' does not exist" in err
    status, _, err = call("play", "pouring", "--port", "70000", "--no-open")
    assert (status, err) == (2, "femsim: port is 70000; allowed are 1 to 65535.\n")
    status, _, err = call("play", "soft_ball_gripping", "--field", "colour", "--no-open", "--out", str(tmp_path / "run"))
    assert status == 2 and "field 'colour'" in err
    status, _, err = call("play", "soft_ball_gripping", "--solver", "cnd", "--no-open")
    assert status == 2 and "did you mean 'cond'" in err


@pytest.mark.parametrize("kind", ["rigid", "soft"])
def test_a_body_is_pulled_in_a_real_browser(kind: str, tmp_path: Path, player_of: Callable[..., Player]) -> None:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    scene = fs.Scene("box", dt=0.01, duration=0.1)
    scene.add_floor()
    if kind == "rigid":
        scene.add_rigid("box", fs.Box((0.05, 0.05, 0.05)), mass=0.5, position=(0.0, 0.0, 0.05))
    else:
        rubber = fs.Elastic(2e5, 0.4, 500.0, rayleigh_beta=1e-2)
        scene.add_soft("box", fs.box_tets((0.1, 0.1, 0.1), 2), rubber, position=(0.0, 0.0, 0.0501))
    player = player_of(scene)

    def height() -> float:
        """Of the middle of the body, m."""
        sim = player.sim
        return float(sim.pose("box")[1][2] if kind == "rigid" else sim.points("box")[:, 2].mean())

    held = list[tuple[float, float]]()  # where the page says that the mouse has hold, and the middle of the body, height in m
    taken = player.view.drag

    def drag(name: str, phase: str, at: Any, to: Any) -> None:
        held.append((at[2], height()))
        taken(name, phase, at, to)

    player.view.drag = drag  # type: ignore[method-assign]
    with Browser(program, tmp_path / "profile") as page:
        page.open(player.view.url)
        end = time.monotonic() + 300.0  # a busy machine without a graphics card draws few pictures a second

        def goes_on(steps: int) -> bool:
            assert time.monotonic() < end
            go_on(player, steps)
            return True

        def drawn() -> bool:
            """Whether the body is in the middle of the page, some time after its words; before, a press turns the camera."""
            return bool(imread(page.picture(), extension=".png")[400, 440, :3].min() < 220)

        while "health: good" not in page.text() or not drawn():
            goes_on(20)

        def mouse(kind: str, y: float, **more: Any) -> None:
            page.call("Input.dispatchMouseEvent", type=kind, x=440, y=y, button="left", **more)

        def pulled() -> bool:
            """Press on the box and move up until the press has arrived, which is said some pictures later."""
            mouse("mousePressed", 400, clickCount=1, buttons=1)
            for number in range(60):
                mouse("mouseMoved", 400 - 15 * min(number, 10), buttons=1)
                if player.view.pull is not None and number >= 10:
                    return True
                goes_on(5)
            mouse("mouseReleased", 250, clickCount=1)
            return False

        mouse("mouseMoved", 400)
        assert pulled()
        while height() < 0.055:  # as may the way of the mouse
            goes_on(5)
        assert set(player.sim.save().pushes) == {"box"}
        mouse("mouseReleased", 250, clickCount=1)
        while player.view.pull is not None:
            goes_on(2)
    assert len(held) > 5 and all(abs(at - middle) < 0.06 for at, middle in held), held  # also after its new shapes were loaded
