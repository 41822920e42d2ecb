"""Where the bodies and couplings of a system stand: their rows of q and v, and their entries of A."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contact import Group
from femsim.model.bodies.body import Body
from femsim.model.couplings import Coupling


class Layout(NamedTuple):
    """Layout of a system.

    Attributes
    ----------
    q, v : list of slice
        Coordinates and rows of v of each body.
    groups : tuple of Group
        Rows of v of each body, with its name and kind.
    rows, starts : ndarray, (nnz,) and (n + 1,), int64
        Pattern of A: row indices, and where columns start.
    entries : list of slice or ndarray
        Where the entries of each body's block are among these, in the order of its own pattern.
    coupled_rows : list of ndarray
        Rows of v of each coupling.
    coupled_entries : list of ndarray
        Where the entries of its block are.
    between : ndarray
        Entries that are of no body, only of couplings.
    """

    q: list[slice]
    v: list[slice]
    groups: tuple[Group, ...]
    rows: np.ndarray
    starts: np.ndarray
    entries: list[slice | np.ndarray]
    coupled_rows: list[np.ndarray]
    coupled_entries: list[np.ndarray]
    between: np.ndarray


def lay_out(bodies: Sequence[Body], couplings: Sequence[Coupling]) -> Layout:
    """Lay bodies out one after the other, and add the blocks of couplings to their pattern."""
    q: list[slice] = []
    v: list[slice] = []
    entries: list[slice | np.ndarray] = []
    groups, starts, rows = [], [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    nq = nv = nnz = 0
    for body in bodies:
        p, i = body.pattern()
        q.append(slice(nq, nq + body.n_q))
        v.append(slice(nv, nv + body.n_v))
        entries.append(slice(nnz, nnz + len(i)))
        groups.append(Group(body.name, nv, nv + body.n_v, body.kind, body.row_parents()))
        starts.append(p[1:] + nnz)
        rows.append(i + nv)
        nq, nv, nnz = nq + body.n_q, nv + body.n_v, nnz + len(i)
    coupled = [np.concatenate([v[k].start + r for k, r in coupling.rows]) for coupling in couplings]
    alone = Layout(
        q, v, tuple(groups), np.concatenate(rows), np.concatenate(starts), entries, coupled, [], np.zeros(0, dtype=np.int64)
    )
    return _coupled(alone, couplings) if couplings else alone


def _coupled(alone: Layout, couplings: Sequence[Coupling]) -> Layout:
    """Add the blocks of the couplings to the pattern of the bodies."""
    n = len(alone.starts) - 1
    own = n * np.repeat(np.arange(n), np.diff(alone.starts)) + alone.rows
    blocks = [
        (n * r[None, :] + r[:, None]).ravel() if c.entries is None else n * r[c.entries[1]] + r[c.entries[0]]
        for c, r in zip(couplings, alone.coupled_rows, strict=True)
    ]
    keys = np.unique(np.concatenate([own, *blocks]))
    place = np.searchsorted(keys, own)
    free = np.ones(len(keys), dtype=np.bool_)
    free[place] = False
    return alone._replace(
        rows=keys % n,
        starts=np.concatenate([[0], np.cumsum(np.bincount(keys // n, minlength=n))]),
        entries=[in_one(place[entries]) for entries in alone.entries],
        coupled_entries=[np.searchsorted(keys, block) for block in blocks],
        between=np.flatnonzero(free),
    )


def in_one(where: np.ndarray) -> slice | np.ndarray:
    """Ascending places as a slice where they follow each other: arrays take it in a fraction of the time of a list of them."""
    if not len(where):
        return slice(0, 0)
    return slice(int(where[0]), int(where[-1]) + 1) if where[-1] - where[0] == len(where) - 1 else where
