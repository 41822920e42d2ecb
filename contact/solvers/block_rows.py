"""Product of a matrix of 3x3 blocks with a vector, in vector instructions.

The bottleneck of every iteration of COND. numba's own code for it is scalar, because its compiler may not reorder sums; here
four lanes hold the three rows of a block row, so that each block is three multiplications of a column with one number, in a fixed
order: the result has the same bits on every run, those of ``block_product`` in tests/slow_twins.py.

It is written in LLVM's language by hand because that is worth it: the same sums as a plain loop of numba (nine accumulators, the
fastest of three forms tried) take 2.0 to 2.2 times as long, 100 us instead of 46 on the gripped ball (18 838 blocks), 99 instead
of 50 on a mat (18 682 blocks), on a Xeon with AVX-512. COND does one product an iteration, and ``auto`` picks COND in every step
of the soft mat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

from contact.compiled import njit
from contact.linear import same_pattern


@intrinsic
def block_row(_typing: Any, values: Any, col: Any, x: Any, y: Any, first: Any, last: Any, row: Any) -> Any:
    """Fill y[3 row : 3 row + 3] with the sum over k in first..last-1 of block k times x[3 col[k] : 3 col[k] + 3]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arrays = zip(signature.args[:4], args[:4], strict=True)
        data, column, vector, out = (arrayobj.make_array(kind)(context, builder, array).data for kind, array in arrays)
        k_first, k_last, i = args[4:]
        integer, lane, four = ir.IntType(64), ir.IntType(32), ir.VectorType(ir.DoubleType(), 4)
        zero, undefined = ir.Constant(four, [0.0] * 4), ir.Constant(four, ir.Undefined)
        same = ir.Constant(ir.VectorType(lane, 4), [0] * 4)

        def times(number: Any, factor: int) -> Any:
            return builder.mul(number, ir.Constant(integer, factor))

        def entry(pointer: Any, start: Any, offset: int) -> Any:
            return builder.gep(pointer, [builder.add(start, ir.Constant(integer, offset))])

        before, loop, after = builder.block, builder.append_basic_block("blocks"), builder.append_basic_block("row_done")
        builder.cbranch(builder.icmp_signed("<", k_first, k_last), loop, after)
        builder.position_at_end(loop)
        k = builder.phi(integer)
        k.add_incoming(k_first, before)
        sums = [builder.phi(four) for _ in range(3)]
        base_x, base = times(builder.sext(builder.load(builder.gep(column, [k])), integer), 3), times(k, 9)
        new = []
        for c, total in enumerate(sums):  # one sum for each column, so that none waits for another
            total.add_incoming(zero, before)
            number = builder.insert_element(undefined, builder.load(entry(vector, base_x, c)), ir.Constant(lane, 0))
            pointer = builder.bitcast(entry(data, base, 3 * c), four.as_pointer())
            product = builder.fmul(builder.load(pointer, align=8), builder.shuffle_vector(number, undefined, same))
            new.append(builder.fadd(total, product))
            total.add_incoming(new[-1], loop)
        k_next = builder.add(k, ir.Constant(integer, 1))
        k.add_incoming(k_next, loop)
        builder.cbranch(builder.icmp_signed("<", k_next, k_last), loop, after)
        builder.position_at_end(after)
        ends = [builder.phi(four) for _ in range(3)]
        for end, value in zip(ends, new, strict=True):
            end.add_incoming(zero, before)
            end.add_incoming(value, loop)
        whole = builder.fadd(builder.fadd(ends[0], ends[1]), ends[2])
        base_y = times(i, 3)
        for c in range(3):
            builder.store(builder.extract_element(whole, ir.Constant(lane, c)), entry(out, base_y, c))
        return context.get_dummy_value()

    return types.void(values, col, x, y, first, last, row), generate


@njit(cache=True)
def apply_blocks(ptr: np.ndarray, col: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Update the first rows of y to those of A x.

    Parameters
    ----------
    ptr, col : ndarray, (rows + 1,) int64, (blocks,) int32
        Compressed rows of 3x3 blocks.
    values : ndarray, (9 blocks + 1,), N s/m
        The blocks, each by columns; one more number follows (any finite one), because columns are read four numbers at a time.
    x, y : ndarray, (3 rows or longer,), m/s and N
        C-order.
    """
    for i in range(ptr.shape[0] - 1):
        block_row(values, col, x, y, ptr[i], ptr[i + 1], i)


class BlockPattern:
    """3x3 block rows of A in the rows of x, and the place of each entry of its CSC data there; depends on the pattern of A only.

    ``values`` holds the blocks as ``block_rows.apply_blocks`` wants them: each by columns, and one zero behind the last. Entries
    that A does not have are set here, once: ones on the diagonal of padding rows, else zeros.
    """

    def __init__(self, A: sp.csc_matrix, rows: np.ndarray, size: int) -> None:
        self.indptr, self.indices = A.indptr, A.indices
        padding = np.setdiff1d(np.arange(size), rows)
        columns = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        values = np.concatenate([np.arange(1.0, A.nnz + 1.0), -np.ones(len(padding))])
        i, j = np.concatenate([rows[A.indices], padding]), np.concatenate([rows[columns], padding])
        blocks = sp.csr_matrix((values, (i, j)), shape=(size, size)).tobsr((3, 3))
        blocks.sort_indices()
        self.ptr = blocks.indptr.astype(np.int64)
        self.col = blocks.indices.astype(np.int32)
        flat = blocks.data.transpose(0, 2, 1).ravel()
        self.values = np.zeros(9 * len(self.col) + 1)
        self.values[:-1][flat < 0] = 1.0
        own = np.flatnonzero(flat > 0)
        self.places = np.empty(A.nnz, dtype=np.uint32)  # without a sign, which a kernel would ask for at each entry
        self.places[flat[own].astype(np.int64) - 1] = own

    def matches(self, A: sp.csc_matrix) -> bool:
        """Whether A has this pattern; with the same arrays nothing is compared."""
        return same_pattern((self.indptr, self.indices), A)
