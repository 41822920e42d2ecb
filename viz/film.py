"""Pictures and films on disk."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from viz.errors import VizError
from viz.files import replacing, temporary_name

#: zlib's strategy that packs runs alone: a fifth larger than with level 6, in less than half the time.
RUNS = 3
#: Bytes between us and ffmpeg, as many as Linux gives users.
PIPE = 1 << 20


class Film:
    """An mp4 or GIF (by suffix) that is written under a temporary name and renamed when complete."""

    def __init__(self, path: Path, size: tuple[int, int], fps: float) -> None:
        try:
            import imageio_ffmpeg
        except ImportError as error:
            raise VizError("films need imageio-ffmpeg; pip install imageio-ffmpeg, or ask for none.") from error
        self._path = path
        self._temporary = Path(temporary_name(path))
        source = [
            "-f",
            "rawvideo",
            "-pix_fmt",
            "rgb24",
            "-s",
            f"{size[0]}x{size[1]}",
            "-r",
            str(fps),
            "-i",
            "-",
        ]
        coding = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-crf", "18", "-movflags", "+faststart"]
        if path.suffix == ".gif":  # at most 640 pixels wide, 25 frames per second, with an optimised palette
            scale = f"fps={min(fps, 25.0)},scale='min(640,iw)':-1:flags=lanczos"
            coding = ["-vf", f"{scale},split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=bayer:bayer_scale=4"]
        self._process = subprocess.Popen(
            [
                imageio_ffmpeg.get_ffmpeg_exe(),
                "-y",
                "-loglevel",
                "error",
                *source,
                *coding,
                str(self._temporary),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        _widen(self._process.stdin)

    def add(self, picture: npt.NDArray[np.uint8]) -> None:
        """Append a picture, shape (height, width, 3)."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(np.ascontiguousarray(picture).data)
        except BrokenPipeError:
            self._end()

    def finish(self) -> None:
        """Complete the film and rename it."""
        self._end()
        os.replace(self._temporary, self._path)

    def abandon(self) -> None:
        """Discard an unfinished film; no effect after `finish`."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        self._temporary.unlink(missing_ok=True)

    def _end(self) -> None:
        _, complaint = self._process.communicate()
        if self._process.returncode != 0:
            lines = complaint.decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise OSError(f"ffmpeg could not write {self._path}: {lines[-1]}; is the disk full?")


def _widen(pipe: IO[bytes] | None) -> None:
    """Let a pipe hold as much as the system allows: a picture is 60 times what it holds at first, and each turn costs."""
    with suppress(ImportError, AttributeError, OSError):  # other systems than Linux; a user with too many wide pipes
        import fcntl

        assert pipe is not None
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)


def write_png(path: Path, picture: npt.NDArray[np.uint8]) -> Path:
    """Write a picture, shape (height, width, 3 or 4)."""
    from PIL import Image

    with replacing(path) as temporary:
        Image.fromarray(picture).save(temporary, "PNG", compress_level=4, compress_type=RUNS)
    return path
