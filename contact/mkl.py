"""Factors in the memory of MKL, whose direct solver Pardiso takes the addresses of arrays."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

#: What a call of Pardiso may be asked for.
ANALYSE, FACTORIZE, SOLVE, FORWARD, BACKWARD = 11, 22, 33, 331, 333
_RELEASE = -1
#: Kinds of real matrices.
STRUCTURALLY_SYMMETRIC, POSITIVE_DEFINITE, INDEFINITE = 1, 2, -2


def address(array: np.ndarray) -> int:
    """Where the numbers of an array lie; of a vector in a tenth of the time that numpy takes to say so."""
    if array.ndim == 1 and array.size and array.flags.writeable:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    return int(array.ctypes.data)


@cache
def load_mkl() -> Any:
    """Load MKL, once: from the environment that Python runs in, where pip puts it, else as pypardiso finds it.

    pypardiso's own search walks through the whole environment, twice: half a second.
    """
    if "PYPARDISO_MKL_RT" not in os.environ:
        for path in sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"), key=lambda path: len(path.name)):
            with suppress(OSError):
                return ctypes.CDLL(str(path))
    from pypardiso import PyPardisoSolver

    return PyPardisoSolver(mtype=POSITIVE_DEFINITE).libmkl


class MklFactors:
    """Factors of one matrix, released with this object or by :meth:`release`.

    Parameters
    ----------
    kind : int
        Kind of the matrix.
    threads : int
        Threads of MKL.

    Attributes
    ----------
    options : ndarray of int32, (64,)
        MKL's ``iparm``, read and written by each call.
    held : bool
        Whether a matrix has been analysed, so that there is something to release.
    """

    def __init__(self, kind: int, threads: int) -> None:
        self._mkl = load_mkl()
        self._pardiso = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 16)(("pardiso", self._mkl))
        self._threads = threads
        self._handle = np.zeros(64, dtype=np.int64)
        self.options = np.zeros(64, dtype=np.int32)
        #: scalar arguments: one, kind of the matrix, phase, size, columns, silence, error
        self._numbers = np.array([1, kind, 0, 0, 0, 0, 0], dtype=np.int32)
        #: addresses of what stays where it is, and, made by ``take``, of the matrix
        self._places = [address(self._handle), address(self.options)]
        self._places += [address(self._numbers) + 4 * k for k in range(len(self._numbers))]
        self._arrays: tuple[np.ndarray, ...] = ()
        self._matrix: list[int] = []
        self.held = False

    def __del__(self) -> None:
        if getattr(self, "held", False) and not sys.is_finalizing():
            self.release()

    def take(self, values: np.ndarray, indptr: np.ndarray, indices: np.ndarray, marks: np.ndarray) -> None:
        """Take a matrix in compressed rows, of symmetric kinds the upper triangle; the arrays are kept as they are.

        ``values`` are float64, or float32 where the options ask for single precision; ``indptr``, ``indices`` and ``marks``,
        (n,), by which options choose rows, are int32.
        """
        self._arrays = values, indptr, indices, marks
        self._matrix = [address(array) for array in self._arrays]

    def analyse(self) -> int:
        """Order the pattern of the matrix by the options; return MKL's error, 0 for none."""
        error = self.call(ANALYSE, *self._nothing())
        self.held = error == 0
        return error

    def factorize(self, schur: np.ndarray | None = None) -> int:
        """Factorize the matrix; return MKL's error. ``schur``, (m, m) in Fortran order, takes what is left of the marked rows."""
        b, x = self._nothing()
        return self.call(FACTORIZE, b, x if schur is None else schur)

    def call(self, phase: int, b: np.ndarray, x: np.ndarray, columns: int = 1) -> int:
        """One call of Pardiso; return its error. b and x have the type of the matrix and are in Fortran order."""
        handle, options, one, kind, asked, size, width, silent, status = self._places
        numbers = self._numbers
        numbers[2:] = phase, len(self._arrays[1]) - 1, columns, 0, 0
        before = self._mkl.MKL_Set_Num_Threads_Local(self._threads)
        self._pardiso(handle, one, one, kind, asked, size, *self._matrix, width, options, silent, address(b), address(x), status)
        self._mkl.MKL_Set_Num_Threads_Local(before)
        return int(numbers[-1])

    def release(self) -> None:
        """Give the memory of the factors back; the next matrix is analysed anew."""
        if self.held:
            self.call(_RELEASE, *self._nothing())
        self._handle[:] = 0
        self.held = False

    def _nothing(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a right-hand side and a solution for calls that read and write none."""
        kind = self._arrays[0].dtype
        return np.zeros(1, kind), np.zeros(1, kind)
