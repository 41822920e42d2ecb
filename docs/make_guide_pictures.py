"""Draw pictures of the pages own_gripper, own_cable, gripper and contact: python docs/make_guide_pictures.py [NAME...]."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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


if __name__ == "__main__":
    import sys

    for name in sys.argv[1:] or ("finger", "cable", "gripper", "touching", "faces"):
        {"finger": finger, "cable": cable, "gripper": gripper, "touching": touching, "faces": faces}[name]()
