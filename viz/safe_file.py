"""A file for h5py whose changes reach the disk frame by frame: what is new first, then what points to it.

HDF5 writes whenever it likes, cannot take a write that fails (a full disk ends the process when the file is closed), and a
process that is killed in between leaves whatever it was at. Here its writes go to memory; `SafeFile.commit` puts them on disk:
first what lies beyond the old end, then the pages that changed, the highest first, since the headers at the beginning point to
what lies behind them. A commit that fails leaves the file as it was, and HDF5 never hears of it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["SafeFile"]

#: Bytes that are written together.
PAGE = 4096


class SafeFile:
    """A new file as h5py wants it: ``h5py.File(SafeFile(path), "w")``.

    Parameters
    ----------
    path : Path
        File; an existing one is emptied.

    Raises
    ------
    OSError
        It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
        self._end = 0  # of what is on the disk
        self._tail = bytearray()  # what comes behind
        self._pages: dict[int, bytearray] = {}  # changed ones of what is on the disk
        self._place = 0
        self.failed = False

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        size = self._end + len(self._tail)
        self._place = offset + (0 if whence == os.SEEK_SET else self._place if whence == os.SEEK_CUR else size)
        return self._place

    def tell(self) -> int:
        """Return the place."""
        return self._place

    def readinto(self, buffer: memoryview) -> int:
        """Read from the place on; zeros beyond the end."""
        out, begin = memoryview(buffer).cast("B"), self._place
        stop = begin + len(out)
        out[:] = bytes(len(out))
        if begin < self._end:
            old = os.pread(self._handle, min(stop, self._end) - begin, begin)
            out[: len(old)] = old
            for number in range(begin // PAGE, (min(stop, self._end) - 1) // PAGE + 1):
                page = self._pages.get(number)
                if page is not None:
                    first, last = max(begin, number * PAGE), min(stop, number * PAGE + len(page))
                    out[first - begin : last - begin] = page[first - number * PAGE : last - number * PAGE]
        if stop > self._end:
            first = max(begin, self._end)
            new = self._tail[first - self._end : stop - self._end]
            out[first - begin : first - begin + len(new)] = new
        self._place = stop
        return len(out)

    def read(self, count: int) -> bytes:
        """Read so many bytes from the place on."""
        buffer = bytearray(count)
        self.readinto(memoryview(buffer))
        return bytes(buffer)

    def write(self, data: memoryview) -> int:
        """Write at the place, in memory."""
        given, begin = memoryview(data).cast("B"), self._place
        stop = begin + len(given)
        inside = min(stop, self._end)
        for number in range(begin // PAGE, (inside - 1) // PAGE + 1 if inside > begin else 0):
            page = self._pages.get(number)
            if page is None:
                start = number * PAGE
                page = self._pages[number] = bytearray(os.pread(self._handle, min(PAGE, self._end - start), start))
            first, last = max(begin, number * PAGE), min(inside, (number + 1) * PAGE)
            page[first - number * PAGE : last - number * PAGE] = given[first - begin : last - begin]
        if stop > self._end:
            first = max(begin, self._end)
            missing = first - self._end - len(self._tail)
            if missing > 0:
                self._tail += bytes(missing)
            self._tail[first - self._end : stop - self._end] = given[first - begin :]
        self._place = stop
        return len(given)

    def truncate(self, size: int) -> int:
        """Cut the file, or fill it with zeros, to a size."""
        if size >= self._end:
            del self._tail[size - self._end :]
            self._tail += bytes(size - self._end - len(self._tail))
        return size  # HDF5 only ever cuts what it has not used; what is on the disk stays

    def flush(self) -> None:
        """Do nothing: :meth:`commit` writes."""

    def commit(self) -> None:
        """Put all changes on the disk; after one that failed, no more.

        Raises
        ------
        OSError
            The disk is full, or the file cannot be written; ``filename`` is its path. The file is what it was before.
        """
        if self.failed:
            return
        try:
            self._put(self._tail, self._end)
            numbers = sorted(self._pages, reverse=True)
            while numbers:
                run = [numbers.pop(0)]
                while numbers and numbers[0] == run[-1] - 1:
                    run.append(numbers.pop(0))
                self._put(b"".join(self._pages[number] for number in reversed(run)), run[-1] * PAGE)
        except OSError as error:
            self.failed = True
            with suppress(OSError):
                os.ftruncate(self._handle, self._end)
            error.filename = str(self.path)
            raise
        self._end += len(self._tail)
        self._tail = bytearray()
        self._pages.clear()

    def _put(self, data: bytes | bytearray, place: int) -> None:
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._handle, rest, place)
            rest, place = rest[written:], place + written

    def close(self) -> None:
        """Close the file as it is on the disk."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
