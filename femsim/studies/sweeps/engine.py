"""Hand cases to a Dask cluster and collect their rows as they end.

One task is one case. A thread of a Dask worker only waits for its ``CaseProcess``, so the worker stays alive and answers its
scheduler whatever a case does. A lost worker costs the cases it was running: the scheduler gives them to another worker.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import spawn
from types import TracebackType
from typing import TYPE_CHECKING, Any

from femsim.base.errors import InputError
from femsim.base.signals import ignoring_hangup
from femsim.studies.sweeps.case import Job, Row, new_row
from femsim.studies.sweeps.process import THREADS, CaseProcess

if TYPE_CHECKING:
    from distributed import Client

#: Longest wait for the answer of a scheduler, s.
_CONNECT_S = 10.0
_ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://.+:[0-9]+")
#: Ctrl-C and the end of the terminal are the client's business
_NO_INTERRUPT = [
    f"import signal; hasattr(signal, {name!r}) and signal.signal(signal.{name}, signal.SIG_IGN)" for name in ("SIGINT", "SIGHUP")
]
_of_thread = threading.local()


class SchedulerLost(Exception):  # noqa: N818 (what happened, not a fault of the code)
    """The scheduler no longer answers; cases that have ended are on disk."""


@contextmanager
def _script_left_out() -> Iterator[None]:
    """Let processes that multiprocessing starts here leave out the main module of this one."""
    whole = spawn.get_preparation_data

    def without_main(name: str) -> dict[str, Any]:
        return {key: value for key, value in whole(name).items() if not key.startswith("init_main")}

    spawn.get_preparation_data = without_main
    try:
        yield
    finally:
        spawn.get_preparation_data = whole


class Engine:
    """A Dask cluster for cases: ``with Engine() as engine: for row in engine.run(jobs): ...``.

    The workers are new Python processes. They do not run the script again that started them, as multiprocessing would have it,
    since their cases name files; so a script needs no ``if __name__ == "__main__":``.

    Parameters
    ----------
    scheduler : str, optional
        Address of an existing scheduler, e.g. "tcp://127.0.0.1:8786"; default a new cluster on this machine.
    workers : int, optional
        Processes of the new cluster; default one per core that this process may use.

    Raises
    ------
    InputError
        Dask is not installed, the scheduler does not answer, or the number of workers is wrong.
    """

    def __init__(self, scheduler: str | None = None, workers: int | None = None) -> None:
        if workers is not None and (scheduler is not None or workers < 1):
            raise InputError(
                f"workers is {workers}" + (", but an existing cluster has its own workers; leave it out." if scheduler else
                "; allowed are numbers from 1.")
            )  # fmt: skip
        if scheduler is not None and not _ADDRESS.fullmatch(scheduler):
            raise InputError(f"the scheduler {scheduler!r} is no address; write it like tcp://HOST:8786.")
        self.scheduler, self.workers = scheduler, workers or len(os.sched_getaffinity(0))
        self._client: Client | None = None
        self._cluster: Any = None
        self._until_exit = ExitStack()

    def __enter__(self) -> Engine:
        try:
            import dask
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise InputError(f'sweeps need {error.name}, which is not installed; install "femsim[sweep]".') from error
        if self.scheduler is None:
            # the nanny sets these before Python starts in the worker
            environment = {"distributed.nanny.pre-spawn-environ": dict.fromkeys(THREADS, "1")}
            with ExitStack() as stack, dask.config.set(environment), ignoring_hangup():  # what is started here ignores it too
                stack.enter_context(_script_left_out())
                self._cluster = LocalCluster(
                    n_workers=self.workers, threads_per_worker=1, processes=True, dashboard_address=None,
                    scheduler_kwargs={"dashboard_address": ":0"},  # its server of HTTP takes any free port
                    preload=_NO_INTERRUPT, silence_logs=logging.CRITICAL,
                )  # fmt: skip
                self._until_exit = stack.pop_all()  # workers that replace lost ones leave it out too
            self._client = Client(self._cluster, set_as_default=False)
        else:
            self._quiet = logging.getLogger("distributed"), logging.getLogger("distributed").level
            self._quiet[0].setLevel(logging.CRITICAL)
            try:
                self._client = Client(self.scheduler, timeout=_CONNECT_S, set_as_default=False)
            except (OSError, ValueError, TypeError) as error:
                self._quiet[0].setLevel(self._quiet[1])
                raise InputError(
                    f"the scheduler {self.scheduler!r} does not answer in {_CONNECT_S:g} s ({type(error).__name__}: {error}); "
                    "start it by 'dask scheduler', or correct the address, which is like tcp://HOST:8786."
                ) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(Exception):  # what matters is on disk already
            if self._client is not None:
                self._client.close(timeout=5)
        if self._cluster is not None:
            with self._until_exit, suppress(Exception):
                self._cluster.close(timeout=10)
        else:
            self._quiet[0].setLevel(self._quiet[1])

    @property
    def threads(self) -> int:
        """Number of cases that the cluster runs at once, now; 0 also when its scheduler is lost."""
        assert self._client is not None
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            return 0

    def run(self, jobs: Iterable[Job]) -> Iterator[Row]:
        """Run cases and yield their rows in the order in which they end.

        When the caller stops iterating, cases that have not started are cancelled.

        Parameters
        ----------
        jobs : iterable of Job
            The cases, with different ids.

        Yields
        ------
        dict
            Row of a case.

        Raises
        ------
        SchedulerLost
            The scheduler no longer answers.
        """
        from distributed import as_completed

        assert self._client is not None
        listed = list(jobs)
        job_of: dict[Any, Job] = {}
        try:
            futures = self._client.map(run_on_worker, listed, pure=False, retries=2)
            job_of = {future.key: job for future, job in zip(futures, listed, strict=True)}
            for future in as_completed(futures, loop=self._client.loop):
                if future.status == "cancelled":  # we cancel only when nobody iterates any more
                    raise SchedulerLost("The scheduler was lost.")
                job = job_of.pop(future.key)
                error = future.exception()  # both wait once more where the worker that had the row was lost in the meantime
                row: Row = future.result() if error is None else _not_run(job, error)
                future.release()
                yield row
        except (OSError, asyncio.CancelledError, concurrent.futures.CancelledError) as error:  # while a row was on its way
            raise SchedulerLost("The scheduler was lost.") from error
        finally:
            with suppress(Exception):
                if job_of and self._client.status == "running":
                    self._client.cancel([future for future in futures if future.key in job_of], force=True)


def _not_run(job: Job, error: BaseException) -> Row:
    """Row of a case that no worker could run."""
    return new_row(job) | {"message": f"The cluster could not run it: {type(error).__name__}: {error}"}


def run_on_worker(job: Job) -> Row:
    """Run a case on a Dask worker, in the process of this thread."""
    from distributed import get_worker

    if not hasattr(_of_thread, "process"):
        _of_thread.process = CaseProcess()
    worker = get_worker()
    manager = getattr(worker, "memory_manager", None)  # none without a limit
    limit = getattr(manager, "memory_limit", None)
    return _of_thread.process.run(job, limit / worker.state.nthreads if limit else None)
