"""Where bodies and couplings stand in a system: every entry of A by its row and column, against dense masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from femsim.step.layout import Layout, lay_out


@dataclass
class Blocks:
    """As much of a body as its layout asks for: a pattern of random columns."""

    name: str
    n_q: int
    n_v: int
    seed: int
    kind: str = "nodes"

    def row_parents(self) -> None:
        """No tree."""

    def pattern(self) -> tuple[np.ndarray, np.ndarray]:
        full = np.random.default_rng(self.seed).random((self.n_v, self.n_v)) < 0.4
        columns, rows = np.nonzero(full.T | np.eye(self.n_v, dtype=bool))
        return np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=self.n_v))]), rows


@dataclass
class Pull:
    """As much of a coupling: rows of bodies, and which entries of its block it fills; all without any."""

    rows: tuple[tuple[int, np.ndarray], ...]
    entries: tuple[np.ndarray, np.ndarray] | None = None


BODIES: list[Any] = [Blocks("soft", 9, 9, 0), Blocks("cart", 7, 6, 1, "generalized"), Blocks("rod", 14, 12, 2, "links")]
WHOLE = Pull(((0, np.array([1, 4])), (2, np.array([0, 1, 7]))))
PART = Pull(((1, np.arange(3)),), (np.array([0, 2]), np.array([2, 0])))


def columns_of(layout: Layout) -> np.ndarray:
    return np.repeat(np.arange(len(layout.starts) - 1), np.diff(layout.starts))


@pytest.mark.parametrize("couplings", [[], [WHOLE], [WHOLE, PART]])
def test_every_entry_is_of_its_body_or_coupling(couplings: list[Any]) -> None:
    layout = lay_out(BODIES, couplings)
    assert layout.q == [slice(0, 9), slice(9, 16), slice(16, 30)] and layout.v == [slice(0, 9), slice(9, 15), slice(15, 27)]
    assert [(g.name, g.start, g.stop, g.kind) for g in layout.groups] == [
        ("soft", 0, 9, "nodes"), ("cart", 9, 15, "generalized"), ("rod", 15, 27, "links"),
    ]  # fmt: skip
    columns, places = columns_of(layout), np.arange(len(layout.rows))
    keys = 27 * columns + layout.rows
    assert (np.diff(keys) > 0).all()  # column after column, rows ascending, none twice
    seen = np.zeros(len(keys), dtype=bool)
    for body, v, entries in zip(BODIES, layout.v, layout.entries, strict=True):
        starts, rows = body.pattern()
        own = places[entries]
        np.testing.assert_array_equal(layout.rows[own], v.start + rows)
        np.testing.assert_array_equal(columns[own], v.start + np.repeat(np.arange(body.n_v), np.diff(starts)))
        seen[own] = True
    assert layout.between.tolist() == places[~seen].tolist()
    for coupling, coupled, entries in zip(couplings, layout.coupled_rows, layout.coupled_entries, strict=True):
        expected = np.concatenate([layout.v[k].start + own for k, own in coupling.rows])
        np.testing.assert_array_equal(coupled, expected)
        i, j = coupling.entries or (part.ravel() for part in np.indices((len(coupled), len(coupled))))
        np.testing.assert_array_equal(layout.rows[entries], coupled[i])
        np.testing.assert_array_equal(columns[entries], coupled[j])
        seen[entries] = True
    assert seen.all()


def test_a_body_beside_a_coupling_keeps_its_entries_together() -> None:
    """So that its block is filled in place."""
    layout = lay_out(BODIES, [Pull(((0, np.array([1, 4])), (2, np.array([0]))))])
    assert isinstance(layout.entries[1], slice) and not isinstance(layout.entries[0], slice)


def test_nothing_has_no_rows() -> None:
    layout = lay_out([], [])
    assert layout.groups == () and layout.rows.shape == (0,) and layout.starts.tolist() == [0]
