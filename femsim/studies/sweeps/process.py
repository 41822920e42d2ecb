"""A process that runs cases one after the other, and that can be killed when a case hangs, grows or crashes.

A case can hold Python's lock forever or end its process, and a thread cannot be killed. So cases do not run in the Dask worker
itself. All cases of a process share its imports, compiled kernels and caches.
"""

from __future__ import annotations

import faulthandler
import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from femsim.base.place import ROOT
from femsim.base.status import FINISHED
from femsim.studies.sweeps.case import Job, Row, finish_folder, new_row, read_row, run_case, satisfies, to_json, work_folder

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
#: What the first case of a process may take more than others: kernels may have to be compiled, s.
COMPILE_S = 120.0
_LOOK_S = 0.5
_COLD = "--cold"
_START_S = 300.0
_IDLE_S = 600.0


class CaseProcess:
    """A process for cases; it starts with the first case.

    Numerical libraries use one thread, as in a run, so that results do not depend on which process ran a case. Otherwise they are
    left as the environment has them: MKL's mode for the same bits on other processors (``MKL_CBWR``) gives other ones than a run.

    Parameters
    ----------
    warm_up : bool
        Compile what nearly every scene uses before the first case, so that this is no part of the time of a case. False where
        the first job only builds its scene, which needs no kernels.
    """

    def __init__(self, *, warm_up: bool = True) -> None:
        self._options = [] if warm_up else [_COLD]
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._stopped = False

    def run(self, job: Job, memory_limit: float | None = None) -> Row:
        """Run a case. A process that hangs, grows or dies is replaced, and the case is tried again where that may help.

        Parameters
        ----------
        job : Job
            The case.
        memory_limit : float, bytes, optional
            Used where the job has no limit of its own.

        Returns
        -------
        dict
            Row of the case; its status is "timed out" or "out of memory" where it was killed at a limit.

        Raises
        ------
        RuntimeError
            The process did not start, or it was stopped meanwhile: that is no result of the case.
        """
        started = time.perf_counter()
        for attempt in range(1, job.retries + 2):
            pid = self._started().pid
            status, message, row = self._attempt(job, job.memory or memory_limit)
            if row is None and job.folder:  # it may have ended just before it was killed
                done = read_row(Path(job.folder) / job.id)
                row = done if done is not None and satisfies(done, job) else None
            if row is not None:
                row["attempts"] = attempt
                return row
            if self._stopped:
                raise RuntimeError("the process for cases was stopped")
            if job.folder:
                shutil.rmtree(work_folder(Path(job.folder) / job.id, pid), ignore_errors=True)
            if status != "failed":  # it would be killed again
                break
        row = new_row(job) | {
            "status": status, "message": message, "attempts": attempt, "wall_s": time.perf_counter() - started,
            "again": status == "failed",
        }  # fmt: skip
        if job.folder:
            final = Path(job.folder) / job.id
            with suppress(OSError):  # the row itself still reaches the table
                finish_folder(work_folder(final, threading.get_native_id()), final, row)
        return row

    def _attempt(self, job: Job, memory: float | None) -> tuple[str, str, Row | None]:
        process = self._started()
        assert process.stdin is not None and process.stdout is not None and self._errors is not None
        self._errors.seek(0)
        self._errors.truncate()
        deadline = time.monotonic() + (job.time or float("inf"))
        try:
            process.stdin.write(to_json(job).encode() + b"\n")
            process.stdin.flush()
            while not select.select([process.stdout], [], [], max(0.0, min(_LOOK_S, deadline - time.monotonic())))[0]:
                if time.monotonic() >= deadline:
                    self.close()
                    limit = "time_limit" if job.built else "limits.time"  # of run_many, of a file
                    return "timed out", f"Killed after its time limit of {job.time:g} s; raise {limit}.", None
                if memory and _memory(process.pid) > memory:
                    self.close()
                    return "out of memory", f"Killed since its process took more than {1e-9 * memory:.3g} GB of memory.", None
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if line.endswith(b"\n"):
            row: Row = json.loads(line)
            if row["status"] not in (*FINISHED, "failed"):
                row["status"] = "failed"
            return row["status"], row["message"], row
        code = process.wait()
        self._errors.seek(0)
        tail = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
        self.close()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return "failed", f"Its process died ({how}){': ' + tail[0] if tail else ''}.", None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
            environment = os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": path}
            self._errors = tempfile.TemporaryFile()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "femsim.studies.sweeps.process", *self._options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                start_new_session=True,  # Ctrl-C is the client's business
            )
            assert self._process.stdout is not None
            # imports and the first use of kernels are not part of a case's time
            if not select.select([self._process.stdout], [], [], _START_S)[0] or self._process.stdout.readline() != b"ready\n":
                self._errors.seek(0)
                text = self._errors.read().decode(errors="replace").strip()
                self.close()
                raise RuntimeError(f"the process for cases did not start: {text}")
        return self._process

    def stop(self) -> None:
        """Kill the process for good, also while another thread waits for a case."""
        self._stopped = True
        self.close()

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None


def _memory(pid: int) -> float:
    """Resident memory of a process, bytes; 0 when the process is gone."""
    import psutil

    try:
        return float(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0.0


def serve() -> None:
    """Be the process: a job a line on stdin, a row a line on stdout, until stdin ends or no job comes for ten minutes.

    Output of the scene goes to stderr.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    jobs: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            jobs.put(line)
        os._exit(0)  # whoever asked is gone; what is half done is under another name

    if _COLD not in sys.argv[1:]:
        _warm_up()
    answers.write("ready\n")
    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            job = Job(**json.loads(jobs.get(timeout=_IDLE_S)))
        except queue.Empty:  # the sweep is over, or its client is lost; the next one starts a new process
            return
        if job.time is not None:  # for a case that hangs in compiled code when nobody is left to kill it
            faulthandler.dump_traceback_later(job.time + 10.0, exit=True)
        began = time.perf_counter()
        row = run_case(job)
        row["served_s"] = time.perf_counter() - began  # with the writing of the folder, which the row in it cannot hold
        faulthandler.cancel_dump_traceback_later()
        answers.write(json.dumps(row, default=str) + "\n")


def _warm_up() -> None:
    """Import and compile what nearly every scene uses: two steps of a cube on a floor."""
    from femsim.run.simulate import simulate
    from femsim.scene.scene import Scene
    from materials import Elastic
    from meshes import box_tets

    scene = Scene("warm_up", dt=0.01, duration=0.02)
    scene.add_floor()
    rubber = Elastic(1e5, 0.3, 1000.0)
    scene.add_soft("cube", box_tets((0.02, 0.02, 0.02), 2), rubber, position=(0.0, 0.0, 0.01))
    simulate(scene)


if __name__ == "__main__":
    serve()
