"""The site of the docs: it builds without a warning (so without a broken link) and lists what the code has."""

from __future__ import annotations

import html
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

import femsim as fs

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(not (DOCS / "conf.py").is_file(), reason="the docs are not here (they come with the repository)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    pytest.importorskip("myst_parser", reason="the extra docs is not installed")
    pytest.importorskip("pydata_sphinx_theme", reason="the extra docs is not installed")
    out = tmp_path_factory.mktemp("site")
    words = ["-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(out / "doctrees"), str(DOCS), str(out / "html")]
    proxies = {name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")}  # no network
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=os.environ | proxies, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


def pages(site: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(site.rglob("*.html")):
        if "_static" not in path.parts:
            yield path, path.read_text(encoding="utf-8")


def test_every_page_is_in_the_site_and_says_something(site: Path) -> None:
    for source in sorted(DOCS.rglob("*.md")):
        page = site / source.relative_to(DOCS).with_suffix(".html")
        text = page.read_text(encoding="utf-8")
        assert "<h1>" in text and len(re.findall(r"<p[ >]", text)) > 2, page
        assert page.stem == "index" or f"{page.stem}.html" in (site / "index.html").read_text(encoding="utf-8")


def test_links_and_pictures_within_the_site_exist(site: Path) -> None:
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages(site)}
    count, wrong = 0, []
    for path, text in pages(site):
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            link = html.unescape(link)
            if re.match(r"(https?|data|mailto|javascript):", link):
                continue
            count += 1
            name, _, anchor = link.partition("#")
            target = (path.parent / unquote(name.partition("?")[0])).resolve() if name else path
            if not target.exists() or (anchor and target.suffix == ".html" and unquote(anchor) not in anchors[target]):
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert count > 500 and not wrong, wrong


def test_nothing_is_fetched_from_the_network(site: Path) -> None:
    for path, text in pages(site):
        fetched = re.findall(
            r'<(?:script|img)[^>]*src="(?:https?:)?//[^"]*"|<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//[^"]*"', text
        )
        assert not fetched, (path, fetched)


def test_the_api_has_every_public_name(site: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((site / "guide" / "api").glob("*.html"))]
    names = [re.findall(r'id="femsim\.(\w+)"', text) for text in texts]
    assert sorted(itertools.chain(*names)) == sorted(fs.__all__)  # each once
    assert len(texts) == len(list((DOCS / "guide" / "api").glob("*.md"))) and all(names)  # a page a topic
    text = next(text for text, found in zip(texts, names, strict=True) if "Scene" in found)
    assert "margin (float, m) –" in re.sub("<[^>]*>", "", text)  # types with units


def test_the_commands_are_all_there(site: Path) -> None:
    from femsim.cli import app

    text = (site / "guide" / "commands.html").read_text(encoding="utf-8")
    names = {name for name in app if not name.startswith("-")}
    assert {"run", "view", "report"} <= names
    for name in names:
        assert f'id="femsim-{name}"' in text and f"Usage: femsim {name}" in text
        assert f"`femsim {name}" in (DOCS / "guide" / "commands.md").read_text(encoding="utf-8")
    assert "\x1b" not in text


def test_every_scene_has_a_section_and_a_picture_in_the_gallery(site: Path) -> None:
    text = (site / "guide" / "gallery.html").read_text(encoding="utf-8")
    for path in fs.list_scenes():
        picture = DOCS / "pictures" / "gallery" / f"{path.stem}.png"
        assert picture.is_file(), f"make it: python docs/make_gallery.py {path.stem}"
        assert f"femsim run scenes/{path.name}" in text and f'alt="{path.stem}"' in text
    names = {path.stem for path in fs.list_scenes()}
    assert {path.stem for path in (DOCS / "pictures" / "gallery").glob("*.png")} == names


def test_the_examples_of_the_first_page_run(tmp_path: Path) -> None:
    text = (DOCS / "guide" / "start.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    space: dict[str, object] = {}
    exec(code[0].replace("duration=0.5", "duration=0.05"), space)
    exec(code[1], space)
    run = space["run"]
    assert isinstance(run, fs.Run) and run.status == "converged"


def test_the_bar_at_the_top_has_the_sections_and_no_more(site: Path) -> None:
    """Few and short enough for a window of 1280 pixels; the pages of a section are at the left of each."""
    text = (site / "guide" / "robots.html").read_text(encoding="utf-8")
    bar = text[text.index("bd-header") : text.index("</header>")]
    titles = [" ".join(title.split()) for title in re.findall(r'class="nav-link nav-internal"[^>]*>([^<]*)<', bar)]
    assert set(titles) == {"Getting started", "Tutorials", "How to", "Reference", "Measured", "Contributing"}
    assert "nav-item dropdown" not in bar  # nothing behind "More"
    beside = text[text.index("bd-sidebar-primary") :]
    assert "Paths of robots" in beside[: beside.index("</main>")]
