"""Benchmark of a step: ``--check`` says which kernels take a fifth longer than they did, against the product with the matrix."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from benchmarks import bench_step


@pytest.fixture
def before() -> dict[str, Any]:
    figures = {name: 10.0 + k for k, name in enumerate(bench_step.CHECKED)}
    instants = {"rest": figures, "closing": {name: 1.5 * value for name, value in figures.items()}}
    return {"ratios_to_matvec": instants, "mat": {"ratios_to_matvec": {"sliding": {"one COND iteration": 0.7}}}}


def test_what_takes_as_long_as_before_passes(before: dict[str, Any]) -> None:
    now = copy.deepcopy(before)
    now["mat"]["ratios_to_matvec"]["sliding"]["one COND iteration"] *= 0.99 * bench_step.ALLOWED
    now["ratios_to_matvec"]["rest"]["stage detect"] *= 3.0  # at one instant alone: the machine was disturbed
    now["ratios_to_matvec"]["rest"]["whole step"] = 1e9  # not a kernel
    del now["ratios_to_matvec"]["rest"]["stage measure"], before["ratios_to_matvec"]["closing"]["stage measure"]
    assert bench_step.losses(before, now) == []


def test_what_takes_longer_at_every_instant_is_named(before: dict[str, Any]) -> None:
    now = copy.deepcopy(before)
    for figures in now["ratios_to_matvec"].values():
        figures["stage detect"] *= 1.3
    now["mat"]["ratios_to_matvec"]["sliding"]["one COND iteration"] *= 1.01 * bench_step.ALLOWED
    assert bench_step.losses(before, now) == [
        "ball: stage detect takes 14.3 products with the matrix, before 11: 1.30 times as long",
        "mat: one COND iteration takes 0.848 products with the matrix, before 0.7: 1.21 times as long",
    ]
