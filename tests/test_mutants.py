"""The table of mutants is one of this code, and a mutant that no test notices is seen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import mutants
import pytest
from mutant import Mutant
from mutant_table import GROUPS, MUTANTS, TABLES


def test_there_are_sixty_of_all_groups() -> None:
    groups = Counter(mutant.group for mutant in MUTANTS)
    assert sum(groups.values()) >= 60 and set(groups) == set(GROUPS)
    assert min(groups.values()) >= 10
    assert len({mutant.what for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("rooms", TABLES, ids=lambda rooms: rooms[0])
def test_each_table_has_the_mutants_of_its_rooms(rooms: tuple[str, ...]) -> None:
    """In the order of their groups, so that a new one has one place."""
    own = TABLES[rooms]
    assert own and all(mutant.file.startswith(rooms) for mutant in own)
    numbers = [GROUPS.index(mutant.group) for mutant in own]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.what)
def test_each_text_stands_once_and_its_tests_exist(mutant: Mutant) -> None:
    text = (mutants.ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1 and mutant.new != mutant.old
    compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
    for name in mutant.tests.split():
        file, _, test = name.partition("::")
        written = (mutants.ROOT / "tests" / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in written, name


def test_the_pages_have_the_rows_and_the_count_of_the_table() -> None:
    n, page = len(MUTANTS), (mutants.ROOT / "data/results/mutants.md").read_text(encoding="utf-8")
    rows = [tuple(cell.strip("` ") for cell in line.split("|")[1:4]) for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:] == [(mutant.group, mutant.what, mutant.file) for mutant in MUTANTS]
    assert f"**{n} of {n} are killed.**" in page
    for name, words in (
        ("data/results/acceptance_trust.md", f"[{n} of {n} killed](mutants.md)"),
        ("docs/measured.md", f"[{n} mistakes](../data/results/mutants.md)"),
    ):
        assert words in (mutants.ROOT / name).read_text(encoding="utf-8"), name


def test_a_mutant_that_nothing_notices_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    (root / "tests").mkdir(parents=True)
    (root / "ours.py").write_text("def twice(x):\n    return 2 * x\n\n\ndef thrice(x):\n    return 3 * x\n")
    (root / "tests" / "test_ours.py").write_text(
        "import pytest\nfrom ours import twice\n\n\n@pytest.mark.parametrize('x', [2], ids=['of two'])\n"
        "def test_twice(x):\n    assert twice(x) == 4\n"
    )
    monkeypatch.setattr(mutants, "ROOT", root)
    monkeypatch.setattr(mutants, "_COPIED", ("ours.py", "tests"))
    wrong = Mutant("physics", "twice is thrice", "ours.py", "2 * x", "3 * x", "test_ours.py")
    unseen = Mutant("physics", "thrice is twice", "ours.py", "3 * x", "2 * x", "test_ours.py")
    report, kept = tmp_path / "report.md", tmp_path / "kept.json"
    found = mutants.try_all((wrong, unseen), tmp_path / "tree", report, kept)
    assert [one.ended for one in found] == ["killed", "survived"]
    assert found[0].noticed == "test_ours.py::test_twice[of two]" and "**1 of 2 are killed.**" in report.read_text()
    assert (tmp_path / "tree" / "code" / "ours.py").read_text() == (root / "ours.py").read_text()
    again = mutants.try_all((wrong, unseen), tmp_path / "tree", None, kept)
    assert [one.ended for one in again] == ["killed", "survived"] and list(mutants.killed_before(kept)) == [wrong]
    missing = Mutant("physics", "none", "ours.py", "5 * x", "", "test_ours.py")
    with pytest.raises(SystemExit, match="has 0 times"):
        mutants.try_all((missing,), tmp_path / "tree")
