"""Run the scenes that come with femsim and draw them: python docs/make_gallery.py [--runs FOLDER] [NAME...].

Writes docs/pictures/gallery/NAME.png, and for some scenes docs/pictures/FILE.png, several moments side by side. The page
docs/guide/gallery.md lists all scenes by itself. Runs that FOLDER has already are drawn again, not run.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import femsim as fs

PICTURES = Path(__file__).resolve().parent / "pictures"


@dataclass(frozen=True)
class Shot:
    """How a scene is shown.

    Attributes
    ----------
    seconds : float, s
        Moment of the gallery's picture; 0 for the end.
    every : float, s
        Time between frames; moments are multiples of it.
    panels : str
        File in docs/pictures of several moments side by side; "" for none.
    moments : tuple of float, s
        These moments.
    columns : int
        Panels in a row.
    options : dict
        Of `fs.render_run`.
    """

    seconds: float = 0.0
    every: float = 0.1
    panels: str = ""
    moments: tuple[float, ...] = ()
    columns: int = 3
    options: dict[str, Any] = field(default_factory=dict)


BARE = {"arrows": False}  # where arrows would hide what they push
SHOTS = {
    "anisotropic_box": Shot(0.3, options=BARE | {"camera": "follow:box,20,35,1.1"}),
    "arm_lifts_ball": Shot(options={"camera": "-35,18"}),
    "arm_screws_nut": Shot(options=BARE),
    "arm_winds_cable": Shot(30.0, 5.0, options=BARE | {"camera": "-60,16,1.0"}),
    "cable_pull": Shot(options=BARE),
    "cable_winding": Shot(30.0, 5.0, "cable_winding", (15.0, 30.0, 55.0), options=BARE | {"camera": "28,20,1.2"}),
    "crank_pusher": Shot(0.9, options=BARE),
    "dishes_by_hand": Shot(4.4, 0.1, options=BARE),
    "falling_bars": Shot(options=BARE),
    "hand_piles_pot": Shot(0.8, 0.1, options=BARE),
    "hanging_cable": Shot(every=0.5, options={"camera": "follow:cable,20,6,4"}),
    "held_rods": Shot(1.3, options={"field": "tension"}),
    "nut_by_hand": Shot(options=BARE),
    "peg_in_hole": Shot(options=BARE | {"camera": "28,28,1.1"}),
    "pouring": Shot(1.6, 0.05, options=BARE),
    "quadruped_drop": Shot(every=0.5, options=BARE),
    "released_beam": Shot(0.1, 0.02, options={"camera": "20,12"}),
    "robot_boxes": Shot(1.9, options=BARE),
    "soft_ball_gripping": Shot(0.0, 0.1, "soft_ball_gripping", (0.1, 0.6, 2.0), options={"camera": "28,16"}),
    "soft_mat_crumpling": Shot(1.0, 0.1, "mat_crumpling", (0.0, 0.6, 1.0, 1.9, 2.2, 3.0), options=BARE | {"camera": "8,8"}),
    "soft_mat_folding": Shot(1.8, 0.2, "mat_folding", (0.8, 1.4, 1.8, 2.2, 3.0, 4.0), options=BARE),
    "squeezed_ball": Shot(0.46, 0.02),
    "wrecking_ball": Shot(0.5, 0.1, options=BARE | {"camera": "30,20"}),
}


def run_scene(path: Path, shot: Shot, folder: Path) -> None:
    """Run a scene as far as its pictures need it, unless the folder has it."""
    if not (folder / "run.json").is_file():
        scene = fs.load_scene(path)
        seconds = max((shot.seconds or scene.duration, *shot.moments))
        run = fs.simulate(scene, duration=seconds, fps=1.0 / shot.every, out=folder, scene_path=path)
        print(f"{path.stem}: {seconds:g} s, {run.status}", flush=True)


def draw(run: Path, moments: Sequence[float], out: Path, size: tuple[int, int], shot: Shot) -> list[Path]:
    """Draw a run at some moments (s), 0 for the end; return the pictures."""
    times = fs.open_frames(run).times
    drawn = fs.render_run(run, out=out, size=size, stills=len(times), mp4=False, **shot.options)
    wanted = [len(times) - 1 if not moment else int(np.abs(np.asarray(times) - moment).argmin()) for moment in moments]
    return [drawn.frames[number] for number in wanted]


def side_by_side(pictures: Sequence[Path], columns: int, out: Path) -> None:
    """Put pictures of one size into a table."""
    from PIL import Image

    images = [Image.open(path).convert("RGB") for path in pictures]
    width, height = images[0].size
    table = Image.new("RGB", (columns * width, -(-len(images) // columns) * height), "white")
    for number, image in enumerate(images):
        table.paste(image, (number % columns * width, number // columns * height))
    table.save(out, optimize=True)


def main() -> None:
    """Draw the named scenes, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=Path)
    given = parser.parse_args()
    (PICTURES / "gallery").mkdir(parents=True, exist_ok=True)
    for path in fs.list_scenes():
        if given.names and path.stem not in given.names:
            continue
        shot = SHOTS.get(path.stem, Shot())
        with tempfile.TemporaryDirectory() as scratch:
            run = (given.runs or Path(scratch)) / path.stem
            run_scene(path, shot, run)
            (picture,) = draw(run, [shot.seconds], Path(scratch) / "one", (800, 600), shot)
            side_by_side([picture], 1, PICTURES / "gallery" / f"{path.stem}.png")
            if shot.panels:
                moments = [moment or 1e-9 for moment in shot.moments]  # here 0 is the start
                panels = draw(run, moments, Path(scratch) / "panels", (480, 360), shot)
                side_by_side(panels, shot.columns, PICTURES / f"{shot.panels}.png")


if __name__ == "__main__":
    main()
