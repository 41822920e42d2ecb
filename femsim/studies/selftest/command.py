"""Run the stress scenes, and write what came of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from femsim.base.files import replacing, write_errors
from femsim.base.place import __version__
from femsim.base.versions import machine
from femsim.studies.selftest.scenes import chosen
from femsim.studies.selftest.stress import LONG, Outcome, run_stress


def selftest(names: tuple[str, ...] = (), *, long: bool = False, each: Callable[[Outcome], None] | None = None) -> list[Outcome]:
    """Run stress scenes.

    Parameters
    ----------
    names : tuple of str
        Which; default all.
    long : bool
        For ten simulated seconds each, instead of the short time of each scene.
    each : callable, optional
        Called with each outcome as it is there.

    Raises
    ------
    InputError
        An unknown name.
    KeyboardInterrupt
        Somebody asked the process to end; ``each`` knows of the scenes that were done.
    """
    outcomes = []
    for stress in chosen(names):
        outcome = run_stress(stress, long=long)
        outcomes.append(outcome)
        if each is not None:
            each(outcome)
    return outcomes


def write_outcomes(path: Path, outcomes: Sequence[Outcome], *, long: bool, asked: int) -> None:
    """Write a page with a table of the outcomes so far, of so many scenes that were asked for."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    form = f"{LONG:g} simulated seconds each" if long else "the short form, some tenths of a simulated second each"
    rows = [
        f"| {o.stress.name} | {o.stress.what} | {o.stress.demand} | {o.ended if o.passed else '**failed**'} | "
        f"{o.verdict or '-'}{': ' + ', '.join(o.reasons) if o.reasons else ''} | {_cell(o.text)} |"
        for o in outcomes
    ]
    where = machine()
    so_far = "" if len(outcomes) == asked else f" The other {asked - len(outcomes)} of {asked} have not run yet."
    text = f"""# Stress scenes

Written by `femsim selftest{" --long" if long else ""} --out {path.name}` of femsim {__version__} ({form}; Python
{where["python"]}, {sum(o.seconds for o in outcomes):.0f} s of processor time).
{len(outcomes) - len(failed)} of {len(outcomes)} ended as they state.{so_far}

| scene | what is hard | what must hold | ended | verdict of the run | seen |
|---|---|---|---|---|---|
{chr(10).join(rows)}
"""
    with write_errors(path, "choose another place"), replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:160]
