"""The sparsity pattern of a matrix of 3 x 3 blocks."""

from __future__ import annotations

import numpy as np


def block_pattern(keys: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """CSC pattern of a matrix of 3 x 3 blocks.

    Parameters
    ----------
    keys : ndarray of int64
        column n + row of the blocks, in any order, repeated or not.
    n : int
        Block rows.

    Returns
    -------
    indptr, indices : ndarray of int64
        The pattern, (3 n + 1,) and sorted rows.
    unique : ndarray of int64
        The keys, sorted, each once.
    place : ndarray of int64
        Where the block of each unique key begins in its first scalar column.
    """
    unique = np.unique(keys)
    column, row = unique // n, unique % n
    block_count = np.bincount(column, minlength=n)
    block_start = np.concatenate([[0], np.cumsum(block_count)])
    # CSC of scalars: the three columns of a block column have the same rows
    indptr = np.concatenate([[0], np.cumsum(np.repeat(3 * block_count, 3))]).astype(np.int64)
    rows_of_column = (3 * row[:, None] + np.arange(3)).ravel()
    indices = np.concatenate([np.tile(rows_of_column[3 * block_start[c] : 3 * block_start[c + 1]], 3) for c in range(n)]).astype(
        np.int64
    )
    place = indptr[3 * column] + 3 * (np.arange(len(unique)) - block_start[column])
    return indptr, indices, unique, place
