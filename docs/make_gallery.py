"""Run each scene that comes with femsim, shortly, and draw its last frame: python docs/make_gallery.py [NAME...].

Writes docs/pictures/gallery/NAME.png. The page docs/gallery.md lists all scenes by itself.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import femsim as fs

PICTURES = Path(__file__).resolve().parent / "pictures" / "gallery"

#: Seconds shown where that is not the scene's own duration.
SECONDS = {
    "cable_winding": 30.0,
    "held_rods": 1.3,
    "released_beam": 0.12,
    "soft_mat_crumpling": 1.0,
    "soft_mat_folding": 1.8,
    "squeezed_ball": 0.8,
}
#: Field shown where that is not what `render_run` takes.
FIELDS = {"held_rods": "tension"}
#: Scenes from the front, and scenes whose arrows of contact forces would hide them.
FRONT, BARE = ("soft_mat_crumpling",), ("soft_mat_crumpling", "soft_mat_folding")


def main(names: list[str]) -> None:
    """Draw the named scenes, or all of them."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for path in fs.list_scenes():
        name = path.stem
        if names and name not in names:
            continue
        scene = fs.load_scene(path)
        seconds = SECONDS.get(name, scene.duration)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            run = fs.simulate(scene, duration=seconds, fps=max(1.0, 4.0 / seconds), out=folder / "run", scene_path=path)
            drawn = fs.render_run(
                folder / "run",
                out=folder,
                size=(800, 600),
                stills=2,
                mp4=False,
                field=FIELDS.get(name),
                camera="front" if name in FRONT else "iso",
                arrows=name not in BARE,
            )
            os.replace(drawn.frames[-1], PICTURES / f"{name}.png")
        print(f"{name}: {seconds:g} s, {run.status}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
