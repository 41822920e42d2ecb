"""An engine of sweeps without processes, for tests of what is above it; what clusters do is tested in test_sweep_cluster.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from femsim.studies.sweeps.case import Job, Row, run_case
from femsim.studies.sweeps.engine import Engine


class Inline(Engine):
    """Runs cases in this process, one after the other."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    @property
    def threads(self) -> int:
        return 1

    def run(self, jobs: Iterable[Job]) -> Iterator[Row]:
        return map(run_case, jobs)
