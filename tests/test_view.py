"""The view in the browser: what it shows of whole and growing runs, its controls, and the page itself in a real browser."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

import numpy as np
import pytest
from browser import Browser, find_browser
from page_surface import placed
from small_scene import cube_scene, scene_file

import femsim as fs
from viz import VizError, open_frames, view_run
from viz.view import LOOK, RunView

viser = pytest.importorskip("viser", reason="the extra view is not installed")
pytest.importorskip("trimesh", reason="the extra view is not installed")

FIRST_PORT = 18080  # viser takes the next free one


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a soft cube that slides, a driven box, a rod and contacts; 5 frames."""
    out = tmp_path_factory.mktemp("ran") / "run"
    scene = cube_scene()
    wood = fs.Elastic(1e6, 0.4, 1000.0, name="cord")
    scene.add_rod(
        "cord", np.column_stack([np.full(5, -0.05), np.linspace(0, 0.05, 5), np.full(5, 0.03)]), fs.circular_section(0.002), wood
    )
    fs.simulate(scene, out=out, fps=100.0, quiet=True)
    return out


@pytest.fixture
def run(ran: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ran, tmp_path / "run"))


@pytest.fixture
def view_of() -> Iterator[Callable[..., RunView]]:
    opened: list[RunView] = []

    def make(*arguments: Any, **options: Any) -> RunView:
        opened.append(RunView(*arguments, **({"port": FIRST_PORT} | options)))
        return opened[-1]

    yield make
    for view in opened:
        view.close()


def drawn(view: RunView, name: str) -> Any:
    """The newest surface that the page holds of a body, where it is."""
    body = view._bodies[name]
    return placed(body.newest, body.frame)


def colours(view: RunView, name: str) -> np.ndarray:
    """The colours of its points, (n, 3 or 4), 0 to 255, as stored."""
    data = view._bodies[name].newest.glb_data
    length = int.from_bytes(data[12:16], "little")
    tree = json.loads(data[20 : 20 + length])
    accessor = tree["accessors"][tree["meshes"][0]["primitives"][0]["attributes"]["COLOR_0"]]
    start = 20 + length + 8 + tree["bufferViews"][accessor["bufferView"]].get("byteOffset", 0)
    width = {"VEC3": 3, "VEC4": 4}[accessor["type"]]
    return np.frombuffer(data, np.uint8, accessor["count"] * width, start).reshape(-1, width).astype(int)


def shrink(run: Path, frames: int) -> str:
    """Cut the list of frames, as it was while the run went on; return the whole one."""
    whole = (run / "frames.pvd").read_text(encoding="utf-8")
    times = sorted(set(re.findall(r'timestep="([^"]*)"', whole)), key=float)
    kept = [line for line in whole.splitlines() if not any(f'timestep="{time}"' in line for time in times[frames:])]
    (run / "frames.pvd").write_text("\n".join(kept) + "\n", encoding="utf-8")
    return whole


def test_it_shows_the_frame_of_the_slider(run: Path, view_of: Callable[..., RunView]) -> None:
    series = open_frames(run)
    view = view_of(run)
    assert set(view._bodies) == {"cube", "box", "cord"}
    for number in (0, 4, 2):
        view._slider.value = number
        view.tick(0.03)
        assert view.shown == number and f"frame {number} of 4" in view._text.content
        points = np.asarray(series.read(number, "cube").points)
        seen = drawn(view, "cube").bounds
        assert np.allclose(seen, [points.min(axis=0), points.max(axis=0)], atol=1e-6)
        points = np.asarray(series.read(number, "box").points)
        assert np.allclose(drawn(view, "box").bounds, [points.min(axis=0), points.max(axis=0)], atol=1e-6)
        axis = np.asarray(series.read(number, "cord").points)
        assert np.allclose(drawn(view, "cord").bounds.mean(axis=0), (axis.min(axis=0) + axis.max(axis=0)) / 2, atol=1e-4)


def test_its_first_line_is_the_health_verdict_also_when_it_changes(run: Path, view_of: Callable[..., RunView]) -> None:
    view = view_of(run)
    assert view._text.content.startswith("**health: good**")
    info = json.loads((run / "run.json").read_text(encoding="utf-8"))
    reasons = [{"sentence": "wrong: box and wall are 3 mm in each other"}]
    (run / "run.json").write_text(json.dumps(info | {"health": {"verdict": "wrong", "reasons": reasons}}), encoding="utf-8")
    time.sleep(1.1 * LOOK)
    view.tick(0.03)
    assert view._text.content.startswith("**health: wrong** (wrong: box and wall are 3 mm in each other)")
    (run / "run.json").write_text('{"hea', encoding="utf-8")  # caught in the middle of a change
    time.sleep(1.1 * LOOK)
    view.tick(0.03)
    assert "frame 0 of 4" in view._text.content


def test_it_plays_in_the_time_of_the_run_and_stops_at_the_end(run: Path, view_of: Callable[..., RunView]) -> None:
    view = view_of(run)
    view._grows = lambda: False  # type: ignore[method-assign]
    view._speed.value = "0.5 x"
    view._toggle()
    assert view._play.label == "Pause"
    seen = []
    for _ in range(8):
        view.tick(0.01)
        seen.append(view.shown)
    assert seen == [0, 1, 1, 2, 2, 3, 3, 4]
    assert view._play.label == "Play"
    view._toggle()  # from the start again
    assert (view.shown, view._play.label) == (0, "Pause")
    view._toggle()
    view.tick(0.1)
    assert view.shown == 0


def test_it_follows_a_run_that_goes_on(run: Path, view_of: Callable[..., RunView]) -> None:
    whole = shrink(run, 2)
    view = view_of(run)
    view._newest.value = True
    view.tick(0.03)
    assert view.shown == 1 and "frame 1 of 1" in view._text.content
    (run / "frames.pvd").write_text(whole[: len(whole) // 2], encoding="utf-8")  # caught in the middle of a change
    time.sleep(1.1 * LOOK)
    view.tick(0.03)
    (run / "frames.pvd").write_text(whole, encoding="utf-8")
    time.sleep(1.1 * LOOK)
    view.tick(0.03)
    assert view.shown == 4 and "frame 4 of 4" in view._text.content and view._slider.max == 4
    view._slider.value = 2  # by hand: no longer the newest
    view.tick(0.03)
    assert view.shown == 2 and not view._newest.value


def test_fields_and_arrows(run: Path, view_of: Callable[..., RunView]) -> None:
    view = view_of(run)
    view._slider.value = 4
    view.tick(0.03)
    assert {"von_mises", "tension", "velocity"} <= set(view._field.options)
    assert "von Mises stress" in view._bar.content
    before, cord = colours(view, "cube"), colours(view, "cord")
    assert np.ptp(before, axis=0).max() > 10 and np.ptp(cord, axis=0).max() == 0  # a rod has no von Mises stress
    view._field.value = "velocity"
    view.tick(0.03)
    assert "speed" in view._bar.content and "m/s" in view._bar.content
    assert np.abs(before - colours(view, "cube")).max() > 10

    contacts = open_frames(run).read(4, "contacts")
    force = np.asarray(contacts.point_data["force"])
    large = np.linalg.norm(force, axis=1) > 0.01 * np.linalg.norm(force, axis=1).max()
    ends = np.asarray(view._arrow_handle.points)
    assert view._arrow_handle.visible and np.allclose(ends[:, 1], np.asarray(contacts.points)[large], atol=1e-6)
    along = ends[:, 1] - ends[:, 0]
    assert np.allclose(np.cross(along, force[large]), 0.0, atol=1e-6 * np.abs(force).max())
    assert np.all(np.sum(along * force[large], axis=1) > 0)
    view._arrows.value = False
    view.tick(0.03)
    assert not view._arrow_handle.visible


def test_a_cut_takes_away_a_part_of_soft_bodies_only_and_gives_it_back(run: Path, view_of: Callable[..., RunView]) -> None:
    view = view_of(run)
    whole, box = drawn(view, "cube").bounds, drawn(view, "box").bounds
    low, high = view._survey.corners.min(axis=0), view._survey.corners.max(axis=0)
    middle = whole.mean(axis=0)
    view._place.value = (middle[0] - low[0]) / (high[0] - low[0])
    for cut, kept in (("x < at", 1), ("x > at", 0)):
        view._cut.value = cut
        view.tick(0.03)
        bounds = drawn(view, "cube").bounds
        assert bounds[kept, 0] == pytest.approx(whole[kept, 0], abs=1e-6)
        assert bounds[1 - kept, 0] == pytest.approx(middle[0], abs=1e-6)
    assert np.array_equal(drawn(view, "box").bounds, box)
    view._slider.value = 3
    view.tick(0.03)  # the cut stays through other frames
    points = np.asarray(open_frames(run).read(3, "cube").points)
    assert drawn(view, "cube").bounds[0, 0] == pytest.approx(points[:, 0].min(), abs=1e-6)
    assert drawn(view, "cube").bounds[1, 0] == pytest.approx(middle[0], abs=1e-6)
    view._place.value = 0.0
    view.tick(0.03)
    assert not view._bodies["cube"].visible
    view._cut.value = "none"
    view.tick(0.03)
    assert view._bodies["cube"].visible
    assert np.allclose(drawn(view, "cube").bounds, [points.min(axis=0), points.max(axis=0)], atol=1e-6)


def test_a_sensor_is_plotted_with_its_values_at_the_moment_shown(run: Path, view_of: Callable[..., RunView]) -> None:
    view = view_of(run)
    table = np.genfromtxt(run / "sensors.csv", delimiter=",", names=True)
    name = next(column for column in table.dtype.names if column.endswith("_fz_N"))[: -len("_fz_N")]
    plot = view._plot
    assert f"{name} force" in plot.choice.options and plot._plot is None
    plot.choice.value = f"{name} force"
    view._slider.value = 3
    view.tick(0.03)
    times, fx, fy, fz, now = plot._plot.data
    assert np.allclose(times, table["time_s"]) and np.allclose(fz, table[f"{name}_fz_N"])
    assert np.allclose(fx, table[f"{name}_fx_N"]) and np.allclose(fy, table[f"{name}_fy_N"])
    shown = open_frames(run).times[3]
    assert times[int(now.argmax())] == pytest.approx(shown) and (now == now.min()).sum() == len(times) - 1
    row = int(np.argmin(abs(table["time_s"] - shown)))
    assert f"fz {table[f'{name}_fz_N'][row]:.4g} N" in plot._values.content and plot._values.visible
    for series, axis in zip(plot._plot.series[1:4], "xyz", strict=True):  # the legend: values in the colours of their curves
        assert f'<b style="color:{series["stroke"]}">f{axis} ' in plot._values.content
    plot.choice.value = "none"
    view.tick(0.03)
    assert plot._plot is None and not plot._values.visible


def test_every_column_of_sensors_can_be_plotted(run: Path, view_of: Callable[..., RunView]) -> None:
    view = view_of(run)
    header = (run / "sensors.csv").read_text(encoding="utf-8").splitlines()[0].split(",")[1:]
    drawn_columns = {column for _, columns, _, _ in view._plot._sources().values() for column in columns}
    lacking = {column for column in header if column not in drawn_columns}
    assert all(re.search(r"_t[xyz]_Nm$", column) for column in lacking)  # of sensors whose torques are all zero
    for choice in view._plot.choice.options:
        view._plot.choice.value = choice
        view.tick(0.03)


def test_the_camera_turns_to_a_side(run: Path, view_of: Callable[..., RunView]) -> None:
    class Seen:
        """Stands for a visitor's camera."""

        camera: Any = None
        aspect = 1.2

        def __init__(self) -> None:
            self.camera = self

        def atomic(self) -> Any:
            return nullcontext()

    view, client = view_of(run), Seen()
    for camera, ahead in (("front", (0, 1, 0)), ("side", (-1, 0, 0)), ("top", (0, 0, -1))):
        view._look_from(camera, client)
        along = np.asarray(client.look_at) - np.asarray(client.position)  # type: ignore[attr-defined]
        assert np.allclose(along / np.linalg.norm(along), ahead, atol=1e-9)
    away = np.linalg.norm(along)
    client.aspect = 0.4  # a narrow picture shows the same width from farther away
    view._look_from("top", client)
    assert np.linalg.norm(np.asarray(client.look_at) - np.asarray(client.position)) > 1.5 * away  # type: ignore[attr-defined]


def test_a_field_picked_while_a_frame_is_drawn_gets_its_own_colours(run: Path, view_of: Callable[..., RunView]) -> None:
    view = view_of(run)
    stress, read = view._survey.limit, view._frame

    def pick_then_read(number: int) -> Any:  # as the page's own thread may do at any time
        view._field.value = "velocity"
        return read(number)

    view._frame = pick_then_read  # type: ignore[method-assign]
    view._slider.value = 3
    view.tick(0.03)
    view._frame = read  # type: ignore[method-assign]
    view.tick(0.03)
    assert "speed" in view._bar.content and view._survey.limit < 0.01 * stress


def test_a_frame_picked_while_another_is_drawn_is_drawn_next(run: Path, view_of: Callable[..., RunView]) -> None:
    view = view_of(run)
    read = view._frame

    def pick_then_read(number: int) -> Any:  # as digits of a number are typed
        view._slider.value = 4
        return read(number)

    view._frame = pick_then_read  # type: ignore[method-assign]
    view._slider.value = 2
    view.tick(0.03)
    view._frame = read  # type: ignore[method-assign]
    assert view.shown == 2 and view._slider.value == 4
    view.tick(0.03)
    assert view.shown == 4 and "frame 4 of 4" in view._text.content


def test_a_taken_port_is_passed_over(run: Path, view_of: Callable[..., RunView]) -> None:
    first, second = view_of(run), view_of(run)
    assert first.url != second.url and second.url.startswith("http://localhost:")


def test_view_run_says_where_and_ends(run: Path) -> None:
    addresses: list[str] = []
    view_run(run, port=FIRST_PORT, open_browser=False, ready=addresses.append, until=lambda: bool(addresses))
    assert len(addresses) == 1


def answer(url: str, path: str = "", websocket: bool = False, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Send a request as anybody may; status, headers and body."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
    extra = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "A" * 22 + "=="}
    connection.request("GET", path or f"/?{address.query}", headers=(extra if websocket else {}) | headers)
    response = connection.getresponse()
    body = response.read() if response.status != 101 else b""
    connection.close()
    return response.status, dict(response.headers), body


def test_only_the_page_itself_with_its_token_is_answered(run: Path, view_of: Callable[..., RunView]) -> None:
    url = view_of(run).url
    port = urlsplit(url).port
    status, headers, body = answer(url)
    assert status == 200 and b"<html" in body.lower()
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    kept, own = cookie.split(";")[0], f"http://127.0.0.1:{port}"
    assert answer(url, "/", Cookie=kept)[0] == 200
    assert answer(url, "/", True, Cookie=kept, Origin=own)[0] == 101
    for path, websocket, more, words in (
        ("/", False, {}, "lacks its token"),
        ("/?token=" + "x" * 32, False, {}, "lacks its token"),
        ("/", True, {"Origin": own}, "lacks its token"),
        ("/", True, {"Origin": own, "Cookie": kept[:-1] + "!"}, "lacks its token"),
        ("/", True, {"Origin": "http://evil.example", "Cookie": kept}, "a page at 'http://evil.example' may not"),
        ("/", True, {"Origin": f"http://localhost:{port + 1}", "Cookie": kept}, "may not use this one"),
        ("/", True, {"Origin": "null", "Cookie": kept}, "a page at 'null' may not"),
        ("/", False, {"Host": f"evil.example:{port}", "Cookie": kept}, "the host 'evil.example"),
        ("/", True, {"Host": "evil.example", "Origin": "http://evil.example", "Cookie": kept}, "no name of this machine"),
        ("", False, {"Host": f"localhost.evil.example:{port}"}, "no name of this machine"),
    ):
        status, _, body = answer(url, path, websocket, **more)
        assert status == 403 and words in body.decode(), (path, more, body)


def test_a_browser_keeps_the_token_and_a_stranger_has_none(run: Path, view_of: Callable[..., RunView]) -> None:
    """A client that keeps cookies opens the printed address once; then the page without its token is answered, to it alone."""
    url = view_of(run).url
    plain = url.partition("?")[0]
    browser, stranger = (build_opener(ProxyHandler({}), HTTPCookieProcessor()) for _ in range(2))
    with pytest.raises(HTTPError, match="403"):
        browser.open(plain, timeout=10)
    for address in (url, plain):
        with browser.open(address, timeout=10) as page:
            assert page.status == 200 and b"<html" in page.read().lower()
    with pytest.raises(HTTPError, match="403") as refused:
        stranger.open(plain, timeout=10)
    assert b"lacks its token" in refused.value.read()


def test_a_server_that_starts_otherwise_is_refused(
    run: Path, view_of: Callable[..., RunView], monkeypatch: pytest.MonkeyPatch
) -> None:
    import websockets.asyncio.server as module

    class Other:  # as if viser had another name for the function
        def __init__(self, **_: Any) -> None:
            assert module.serve.__module__ == "viz.gate"

        def stop(self) -> None: ...

    monkeypatch.setattr("viser.ViserServer", Other)
    with pytest.raises(VizError, match="open to every web page"):
        view_of(run)


def test_wrong_input(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., tuple[int, str, str]]
) -> None:
    with pytest.raises(VizError, match="port is 70000; allowed are 1 to 65535"):
        RunView(run, port=70000)
    with pytest.raises(VizError, match="no soft body or rod of the run has a field 'colour'"):
        RunView(run, field="colour")
    with pytest.raises(VizError, match=r"the host '192\.0\.2\.1' cannot be listened at"):
        RunView(run, host="192.0.2.1", port=FIRST_PORT)
    status, _, err = call("view", str(tmp_path / "nothing"))
    assert status == 2 and "nothing" in err and err.count("\n") == 1
    status, _, err = call("view", str(run), "--set", "a=1")
    assert (status, err) == (2, "femsim: --set and --out are for scenes; a run folder is shown as it is.\n")
    scene = scene_file(tmp_path)
    for shown in (str(scene), "soft_ball_gripping"):  # also the name of one that comes with femsim
        status, _, err = call("view", shown, "--out", str(run))
        assert status == 2 and "exists already; choose another by --out" in err
    status, _, err = call("view", str(scene), "--set", "side=-1", "--out", str(tmp_path / "new"))
    assert status == 2 and not (tmp_path / "new").exists()
    monkeypatch.setitem(sys.modules, "viser", None)
    status, _, err = call("view", str(scene), "--out", str(tmp_path / "new"))
    assert status == 2 and 'pip install "femsim[view]"' in err and not (tmp_path / "new").exists()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    with Browser(program, tmp_path / "profile") as page:
        yield page


def dark_part(picture: bytes) -> float:
    """Part of the view that is dark, without the panel and the browser's own notice."""
    import matplotlib.image

    pixels = matplotlib.image.imread(io.BytesIO(picture), format="png")[..., :3]
    return float((pixels[200:, :800].mean(axis=-1) < 0.85).mean())


def test_a_scene_in_a_real_browser_while_it_runs(tmp_path: Path, browser: Browser) -> None:
    scene = scene_file(tmp_path)
    words = ["view", scene.name, "--set", "steps=100000", "--out", "cube", "--no-open", "--port", str(FIRST_PORT)]
    root = str(Path(__file__).resolve().parent.parent)
    code = f"import sys; sys.path.insert(0, {root!r}); from femsim.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        browser.open(process.stdout.readline().split()[0])
        browser.wait_for("document.body && / of \\d+/.test(document.body.innerText)")
        assert "frame 0 of" in browser.text() and "von Mises stress" in browser.text()

        def count() -> int:
            return int(re.findall(r"frame \d+ of (\d+)", browser.text())[0])

        some = count()
        browser.wait_for(f"/of (\\d+)/.exec(document.body.innerText)[1] > {some}")  # the run goes on
        play = "[...document.querySelectorAll('button')].find(e => e.innerText == 'Play')"
        picture = "Math.max(...[...document.querySelectorAll('canvas')].map(e => e.getBoundingClientRect().right))"
        assert browser.run(f"{picture} <= {play}.getBoundingClientRect().left")  # nothing is behind the controls
        browser.click(play)
        browser.wait_for("!document.body.innerText.includes('frame 0 of') && document.body.innerText.includes('Pause')")

        browser.click("document.querySelector('input[value=von_mises]')")
        option = "[...document.querySelectorAll('[role=option]')].find(e => e.innerText == 'velocity')"
        browser.wait_for(f"!!{option}")
        browser.click(option)
        browser.wait_for("/speed \\[.*m.s\\]/.test(document.body.innerText)")
        dark, end = dark_part(browser.picture()), time.monotonic() + 60.0
        while dark <= 0.2 and time.monotonic() < end:  # rendering by software lags behind the words
            time.sleep(0.5)
            dark = dark_part(browser.picture())
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=60)
        finally:  # where it did not end, the run that it started is not left behind
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0
    assert '"interrupted"' in (tmp_path / "cube" / "run.json").read_text(encoding="utf-8")
    assert dark > 0.2, dark  # the cube; the lines on the floor are thin
