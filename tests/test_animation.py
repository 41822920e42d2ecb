"""A film as one page, in a real browser: it plays without a network, fits the window, and obeys the keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from browser import Browser, find_browser

from viz.animation import Animation


def test_a_film_plays_fits_the_window_and_obeys_the_keys(tmp_path: Path) -> None:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    film = Animation(tmp_path / "film.html", (1280, 960), 5, "ball & floor", "femsim", 2)
    for number in range(5):
        film.add(np.full((960, 1280, 3), 40 * number, dtype=np.uint8), 0.5 * number)
    film.finish()
    with Browser(program, tmp_path / "profile", (900, 640)) as page:
        page.open((tmp_path / "film.html").as_uri())
        page.wait_for("document.querySelector('img') && document.querySelector('img').naturalWidth == 1280")
        assert "ball & floor" in page.text() and "t = 0.00 s" in page.text()
        end = "document.getElementById('bar').getBoundingClientRect().bottom"
        assert page.run(f"{end} <= window.innerHeight && document.documentElement.scrollWidth <= window.innerWidth")
        box = page.run("(() => {const b = document.querySelector('img').getBoundingClientRect(); return b.width / b.height})()")
        assert box == pytest.approx(4 / 3, rel=0.01)

        play = "document.getElementById('play')"
        page.click(play)
        page.wait_for(f"{play}.innerText == 'Pause' && document.body.innerText.includes('t = 1.00 s')")
        page.wait_for(f"{play}.innerText == 'Play' && document.body.innerText.includes('t = 2.00 s')")
        for kind in ("keyDown", "keyUp"):  # the button has the focus since it was clicked
            page.call("Input.dispatchKeyEvent", type=kind, key="ArrowLeft", code="ArrowLeft", windowsVirtualKeyCode=37)
        page.wait_for("document.body.innerText.includes('t = 1.50 s')", 10.0)
