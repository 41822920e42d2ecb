"""Benchmark of the hanging cable: its reference is the measured one, our sag is near it, rivals that are absent are named."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import bench_cable


def test_reference_is_the_known_sag() -> None:
    """Found earlier by another program, of whose shear nothing is known: (36.679, -385.513) mm."""
    assert 1e3 * bench_cable.reference_tip() == pytest.approx([36.679, -385.513], abs=0.025)
    assert np.linalg.norm(bench_cable.reference_tip(0.5) - bench_cable.reference_tip()) > 1e-5  # shear counts


def test_our_cable_hangs_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 links at large steps: the tip is 8^2 times as far off as with the 320 of the benchmark."""
    monkeypatch.setattr(bench_cable, "LINKS", 40)
    monkeypatch.setattr(bench_cable, "DT", 0.02)
    row = bench_cable.run_ours(8.0)
    assert row.off_mm == pytest.approx(0.636, abs=0.005)
    assert row.ms > 0.0
    assert float(row.note.split()[-1]) < 1e-8


def test_absent_rivals_are_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench_cable, "PROGRAMS", {"no_such_rival": bench_cable.run_mujoco})
    assert bench_cable.compare(0.1) == []
    assert "no_such_rival is not installed and left out; pip install 'femsim[rivals]'" in capsys.readouterr().out
