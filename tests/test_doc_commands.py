"""Commands that the docs show: each is one of ours with options that it has, on a scene that exists and takes its parameters."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from femsim.cli import app
from femsim.scene.scene_file import find_scene, scene_parameters

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"^ {4}(?:\.venv/bin/)?femsim (.*)$", re.MULTILINE)

pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the docs are not here (they come with the repository)")


def shown(text: str) -> list[list[str]]:
    """Words of the commands of a page; those with [options] say their form and are none."""
    lines = COMMAND.findall(text.replace("\\\n", ""))
    return [words for line in lines for words in [shlex.split(line, comments=True)] if not any("[" in word for word in words)]


COMMANDS = [(page.stem, words) for page in PAGES if page.is_file() for words in shown(page.read_text(encoding="utf-8"))]


def check(words: list[str]) -> None:
    """Read a command as the command line does, and look at its scene."""
    app.parse_args(words, exit_on_error=False, print_error=False)
    scene = next((word for word in words if re.fullmatch(r"scenes/\w+\.py", word)), None)
    if scene is None:
        return
    known = {parameter.name for parameter in scene_parameters(find_scene(ROOT / scene))}
    given = {value.partition("=")[0] for option, value in pairwise(words) if option == "--set"}
    assert given <= known, f"{scene} has no {sorted(given - known)}"


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=[f"{page}-{' '.join(words)}" for page, words in COMMANDS])
def test_a_command_of_the_docs_is_one_of_ours(page: str, words: list[str]) -> None:
    check(words)


def test_wrong_ones_are_found() -> None:
    (good,) = shown("    femsim run scenes/capstan.py --out \\\nruns/a   # a comment\n    femsim run RUN [--out DIR]\n")
    assert good == ["run", "scenes/capstan.py", "--out", "runs/a"]
    for wrong in (
        "runn scenes/capstan.py",
        "run scenes/capstan.py --speeed 2",
        "run scenes/capstan.py --set nothing=1",
        "run scenes/none.py",
    ):
        with pytest.raises(Exception, match=r"[Uu]nknown|nothing|none"):
            check(wrong.split())
    assert len(COMMANDS) > 60
