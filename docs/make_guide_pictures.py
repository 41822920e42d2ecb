"""Draw pictures of the pages own_gripper, own_cable, gripper, contact and outputs: python docs/make_guide_pictures.py [NAME...].

`view` and `play` are pictures of the pages in the browser: they need Chromium and the extra view, and without a graphics card
they take minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from browser import Browser

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "pictures"


def finger() -> None:
    """Draw a finger from the side, with the axes of its file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    height = np.linspace(0.0, 50.0, 60)  # mm, from the tip
    bend = 5.0 * (1.0 - height / 50.0) ** 2
    thick = 10.0 + 5.0 * height / 50.0
    figure, axes = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
    axes.fill(np.concatenate([bend, (bend + thick)[::-1]]), np.concatenate([height, height[::-1]]), color="#a9d3b4", ec="#2b2f36")
    axes.fill([-3, 18, 18, -3], [46, 46, 56, 56], color="#8fa3b8", ec="#2b2f36", alpha=0.8)
    axes.fill([20, 38, 38, 20], [-2, -2, 22, 22], color="#c6cbd1", ec="#2b2f36")
    axes.text(20, 51, "jaw, holds\nthe upper 4 mm", ha="left", va="center", fontsize=9)
    axes.text(29, 10, "object", ha="center", va="center", fontsize=9)
    axes.text(9.5, 24, "finger", ha="center", va="center", fontsize=9, rotation=90)
    axes.text(9, -2.5, "tip", ha="center", va="top", fontsize=9)
    for end, name in (((-14.0, 12.0), "z, to the jaw"), ((-2.0, 0.0), "x, to the object")):
        axes.annotate("", end, (-14.0, 0.0), arrowprops={"arrowstyle": "-|>", "color": "#c8102e", "lw": 2})
        axes.text(
            end[0] + (0 if end[1] else -6), end[1] + (1.5 if end[1] else -4.5), name, color="#c8102e", fontsize=9, ha="center"
        )
    axes.plot(-14, 0, "o", color="#c8102e", ms=4)
    axes.set(xlim=(-24, 40), ylim=(-8, 58), aspect="equal")
    axes.axis("off")
    figure.savefig(PICTURES / "finger_frame.png", dpi=160)


def cable() -> None:
    """Run the scene of own_cable.md without and with slack; draw both at their end."""
    import re
    import shutil
    import tempfile

    import femsim as fs

    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "guide" / "own_cable.md").read_text(encoding="utf-8"), flags=re.S)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "my_cable.py").write_text(code, encoding="utf-8")
        runs = [folder / "no slack", folder / "slack of 40 mm"]
        for run, slack in zip(runs, (0.0, 0.04), strict=True):
            fs.simulate(fs.load_scene(folder / "my_cable.py", slack=slack), out=run)
        drawn = fs.render_run(
            runs, out=folder / "drawn", field="tension", camera="24,22,1.02", size=(800, 520), stills=2, mp4=False
        )
        shutil.copy(drawn.frames[-1], PICTURES / "own_cable.png")


def gripper() -> None:
    """Run the soft gripper in four ways; draw six moments side by side."""
    import tempfile

    from make_gallery import Shot, draw, side_by_side

    import femsim as fs

    shot = Shot(options={"arrows": False, "camera": "30,22"})
    ways = (
        ({}, 4.0, (1e-9, 1.0, 4.0)), ({"mounted": True, "object": "cylinder"}, 1.48, (1.48,)),
        ({"squeeze": 0.006, "tendon_force": 0.5}, 2.48, (2.48,)), ({"squeeze": 0.005, "pressure": 10000.0}, 2.48, (2.48,)),
    )  # fmt: skip
    panels: list[Path] = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, (parameters, seconds, moments) in enumerate(ways):
            run = Path(scratch) / f"run{number}"
            fs.simulate(fs.load_scene("soft_gripper", **parameters), duration=seconds, fps=25.0, out=run)
            panels += draw(run, moments, Path(scratch) / f"drawn{number}", (480, 360), shot)
        side_by_side(panels, 3, PICTURES / "soft_gripper.png")


def touching() -> None:
    """Run the scene of contact.md and draw its end."""
    import re
    import shutil
    import tempfile
    import textwrap

    import femsim as fs

    text = (DOCS / "contact.md").read_text(encoding="utf-8")
    code = textwrap.dedent(text[text.index("    import numpy as np") : text.index("All its 240 steps")])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "stack.py").write_text(re.sub(r"\n+$", "\n", code), encoding="utf-8")
        fs.simulate(fs.load_scene(folder / "stack.py"), fps=25.0, out=folder / "run")
        drawn = fs.render_run(folder / "run", out=folder / "drawn", camera="32,18,1.4", size=(800, 600), stills=2, mp4=False)
        shutil.copy(drawn.frames[-1], PICTURES / "touching.png")


def faces() -> None:
    """Draw soft and rigid boxes on each other, with contact at nodes and by faces."""
    import shutil
    import tempfile

    import femsim as fs

    rubber = fs.Elastic(1e6, 0.3, 1000.0, name="rubber")
    with tempfile.TemporaryDirectory() as scratch:
        runs = [Path(scratch) / "at nodes", Path(scratch) / "by faces"]
        for run in runs:
            scene = fs.Scene("stack", dt=0.01, duration=0.4)
            scene.add_floor()
            for k in range(4):
                place = (0.0, 0.0, 0.02 * (k + 0.5))
                if k % 2 == 0:
                    scene.add_soft(f"cube{k}", fs.box_tets((0.02, 0.02, 0.02), 1), rubber, position=place)
                    continue
                scene.add_rigid(f"box{k}", fs.Box((0.01, 0.01, 0.01)), density=1000.0, position=place)
                scene.contact_by_faces(f"box{k}", on=run.name == "by faces")
            fs.simulate(scene, out=run, max_halvings=0)
        drawn = fs.render_run(
            runs,
            out=Path(scratch) / "drawn",
            field="displacement",
            camera="24,14,1.0",
            size=(800, 520),
            stills=2,
            mp4=False,
            arrows=False,
        )
        shutil.copy(drawn.frames[-1], PICTURES / "by_faces.png")


@contextmanager
def shown(show: Callable[..., Any], shown_thing: Any, size: tuple[int, int]) -> Iterator[Browser]:
    """Show something by `view_run` or `play`, and open its page in a browser."""
    import tempfile
    import threading

    sys.path.insert(0, str(DOCS.parent / "tests"))
    from browser import Browser, find_browser

    program = find_browser()
    if program is None:
        raise SystemExit("these pictures need Chromium (apt-get install chromium)")
    ended, urls = threading.Event(), list[str]()
    options = {"open_browser": False, "ready": urls.append, "until": ended.is_set}
    server = threading.Thread(target=show, args=(shown_thing,), kwargs=options)
    server.start()
    try:
        with tempfile.TemporaryDirectory() as profile, Browser(program, Path(profile)) as page:
            while not urls:
                time.sleep(0.1)
            page.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)
            page.open(urls[0])
            page.wait_for("document.body && document.body.innerText.includes('t = ')")
            late = time.monotonic() + 20.0
            while "Software WebGL" not in page.text() and time.monotonic() < late:  # the notice that there is no graphics card
                time.sleep(0.5)
            if "Software WebGL" in page.text():
                notice = "e.offsetWidth && e.parentElement.innerText.startsWith('Software WebGL')"
                page.click(f"[...document.querySelectorAll('button')].find(e => {notice})")
            yield page
    finally:
        ended.set()
        server.join()


def control(label: str, kind: str = "input") -> str:
    """JavaScript of what a label of the page stands beside."""
    found = f"[...document.querySelectorAll('label')].find(e => e.innerText == '{label}')"
    return (
        f"(() => {{let e = {found}; while (!e.querySelector('{kind}')) e = e.parentElement; return e.querySelector('{kind}')}})()"
    )


def choose(page: Browser, label: str, value: str) -> None:
    """Pick from a menu of the page."""
    page.click(control(label))
    option = f"[...document.querySelectorAll('[role=option]')].find(e => e.innerText == '{value}' && e.checkVisibility())"
    page.wait_for(f"!!{option}")
    page.click(option)


def enter(page: Browser, label: str, value: str) -> None:
    """Write a number beside a slider of the page."""
    page.click(control(label, "input[inputmode]"))
    page.run("document.activeElement.select()")
    page.call("Input.insertText", text=value)
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13)


def view() -> None:
    """Draw the page of `femsim view`: the ball cut open, and the force on a finger."""
    import tempfile

    import femsim as fs

    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "ball"
        fs.simulate(fs.load_scene("soft_ball_gripping"), out=run)
        with shown(fs.view_run, run, (1280, 760)) as page:
            enter(page, "Frame", "100")
            top = "(/kPa.\\s+0\\s+(\\S+)/.exec(document.body.innerText) || [])[1]"
            of_surface = page.run(top)
            choose(page, "Cut away", "y < at")
            page.wait_for(f"{top} && {top} != '{of_surface}'", 120.0)  # the stress is larger inside
            choose(page, "Sensor", "left_finger force")
            page.wait_for("document.body.innerText.includes('at 1 s')")
            time.sleep(8.0)  # drawing by software lags behind
            (PICTURES / "view.png").write_bytes(page.picture())


def play() -> None:
    """Draw the page of `femsim play`: the mouse pulls the ball that the fingers hold."""
    import re

    import femsim as fs
    from femsim.run.play import play as step

    with shown(step, fs.load_scene("soft_ball_gripping"), (1280, 640)) as page:
        enter(page, "Pull", "20")
        while float(re.findall(r"t = ([\d.]+) s", page.text())[0]) < 1.7:  # it is lifted
            time.sleep(1.0)
        page.click("[...document.querySelectorAll('button')].find(e => e.innerText == 'iso')")
        time.sleep(5.0)

        def mouse(kind: str, x: float, **more: Any) -> None:
            page.call("Input.dispatchMouseEvent", type=kind, x=x, y=352, button="left", **more)

        mouse("mouseMoved", 440)
        time.sleep(1.0)
        mouse("mousePressed", 440, clickCount=1, buttons=1)
        for k in range(15):
            time.sleep(0.5)
            mouse("mouseMoved", 440 - 10 * k, buttons=1)
        time.sleep(8.0)
        (PICTURES / "play.png").write_bytes(page.picture())


if __name__ == "__main__":
    functions = {one.__name__: one for one in (finger, cable, gripper, touching, faces, view, play)}
    for name in sys.argv[1:] or functions:
        functions[name]()
