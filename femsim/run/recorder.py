"""The run folder: frames for ParaView, steps.csv, sensors.csv, run.json; everything readable while the run goes on."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from contact import write_fclib
from contact.fclib import import_h5py
from femsim.base.errors import InputError
from femsim.model.actuators import ACTUATOR_COLUMNS, Actuator
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from femsim.run.frames import Frames
from femsim.run.gauges import Gauges
from femsim.run.instruments import Instrument
from femsim.scene.scene import GAUGE_COLUMNS, Scene, SensorSpec
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper

STEP_COLUMNS = (
    "step", "time_s", "contacts", "iterations", "dynamics_residual", "contact_residual", "step_norm", "max_penetration_m",
    "max_slip_mps", "kinetic_energy_J", "elastic_energy_J", "work_J", "momentum_x_kgmps", "momentum_y_kgmps",
    "momentum_z_kgmps", "wrench_balance", "virtual_slip_mps", "inverted_elements", "converged", "substeps",
    "ms_assemble", "ms_detect", "ms_solve", "ms_measure", "ms_record", "ms_step", "potential_energy_J",
    "friction_loss_J",
)  # fmt: skip
WRENCH = ("fx_N", "fy_N", "fz_N", "tx_Nm", "ty_Nm", "tz_Nm")
MARKER = ("x_m", "y_m", "z_m")


def sensor_columns(scene: Scene) -> list[str]:
    """Header of sensors.csv of a scene."""
    columns = ["time_s"]
    for sensor in scene.sensors:
        own = (ACTUATOR_COLUMNS | GAUGE_COLUMNS).get(sensor.kind, MARKER if sensor.kind == "marker" else WRENCH)
        columns += [f"{sensor.name}_{c}" for c in own]
    read = [sensor.name for sensor in scene.sensors if sensor.reading is not None]
    return columns + [f"{name}_measured_{c}" for name in read for c in WRENCH]


class TableWriter:
    """CSV file that grows by a row a step and is flushed row by row.

    Parameters
    ----------
    path : Path, optional
        File; None keeps the rows in memory only.
    columns : sequence of str
        Header.
    """

    def __init__(self, path: Path | None, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.rows: list[list[float]] = []
        self._file: IO[str] | None = path.open("w", newline="", encoding="utf-8") if path else None
        if self._file:
            csv.writer(self._file).writerow(self.columns)

    def add(self, row: Sequence[float]) -> None:
        """Add a row."""
        self.rows.append(list(row))
        if self._file:
            csv.writer(self._file).writerow([f"{x:.10g}" if isinstance(x, float) else x for x in row])
            self._file.flush()

    def column(self, name: str) -> np.ndarray:
        """One column as an array."""
        return np.array([row[self.columns.index(name)] for row in self.rows], dtype=np.float64)

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()
            self._file = None


class Recorder:
    """Writes what a stepper does.

    Parameters
    ----------
    stepper : Stepper
        The simulation.
    folder : Path, optional
        Run folder, already made; None records the tables in memory and no frames.
    fps : float, 1/s
        Frames a simulated second.
    fields, format, precision
        Of the frames, see :class:`femsim.run.frames.Frames`.
    dump : range
        Steps whose contact problems are written to ``problems/``; default none.

    Attributes
    ----------
    problems : list of str
        Files of contact problems written so far, relative to the run folder.

    Raises
    ------
    InputError
        Unknown field, format or precision, a frame rate that is not positive, or problems to write without a folder.
    ContactError
        Problems to write, and h5py is missing.
    VizError
        Frames in the format vtkhdf, and h5py is missing.
    """

    def __init__(
        self,
        stepper: Stepper,
        folder: Path | None,
        *,
        fps: float = 100.0,
        fields: Sequence[str] | None = None,
        format: str = "pvd",
        precision: str = "float64",
        dump: range = range(0),
    ) -> None:
        if not (np.isfinite(fps) and fps > 0):
            raise InputError(f"fps is {fps}; allowed are positive numbers of frames a simulated second.")
        if dump and folder is None:
            raise InputError("dump_problems asks for files, but no run folder is written; name one by out.")
        if dump:
            import_h5py()
        self.stepper, self.folder, self.dump = stepper, folder, dump
        self.problems: list[str] = []
        self.frame_interval = 1.0 / fps
        self._next_frame = 0.0
        sensors, settings = stepper.scene.sensors, stepper.settings
        self._instruments = {
            s.name: Instrument(s.reading, settings.dt, settings.gravity) for s in sensors if s.reading is not None
        }
        self.gauges = Gauges(stepper)
        columns = sensor_columns(stepper.scene)
        self.steps = TableWriter(folder / "steps.csv" if folder else None, STEP_COLUMNS)
        self.sensor_table = TableWriter(folder / "sensors.csv" if folder else None, columns)
        self.frames: Frames | None = None
        if folder:
            self.frames = Frames(stepper, folder, fields=fields, format=format, precision=precision)

    def frame(self, report: StepReport | None) -> None:
        """Write a frame of the current state; None at the start, before any step."""
        if self.frames:
            self.frames.write(report)

    def sensor_row(self, report: StepReport) -> list[float]:
        """Read all sensors after a step."""
        stepper = self.stepper
        names = [p.name for p in stepper.scene.parts]
        row: list[float] = [report.time]
        measured: list[float] = []
        actuators = {c.name: c for c in stepper.scene.couplings if isinstance(c, Actuator)}
        for sensor in stepper.scene.sensors:
            k = names.index(sensor.part)
            body = stepper.body_of(k)
            gauge = self.gauges.read(sensor, report)
            if sensor.actuator:
                row += actuators[sensor.actuator].reading()
            elif gauge is not None:
                row += [float(x) for x in gauge]
            elif sensor.kind == "contact":
                row += [float(x) for x in report.forces.wrench[k]]
            elif sensor.kind == "mount":
                row += [float(x) for x in report.mount.get(sensor.hold or (body.name if body else ""), np.zeros(6))]
            elif isinstance(body, Rod) and sensor.kind != "marker":
                row += [float(x) for x in body.end_wrench[0 if sensor.kind == "start" else 1]]
            elif isinstance(body, Rod):
                start = stepper.system.q_slices[stepper.scene.parts[k].body].start + 7 * sensor.node
                row += [float(x) for x in stepper.state.q[start : start + 3]]
            elif isinstance(body, SoftBody):
                nodes = stepper.state.q[stepper.system.q_slices[stepper.scene.parts[k].body]].reshape(-1, 3)
                place = nodes[list(sensor.corners)].T @ sensor.weights if sensor.corners else nodes[sensor.node]
                row += [float(x) for x in place]
            else:
                row += [float(x) for x in stepper.link_pose(k)[1]]
            if sensor.name in self._instruments:
                measured += [float(x) for x in self._reading(sensor, k, report.time, np.array(row[-6:]))]
        return row + measured

    def _reading(self, sensor: SensorSpec, part: int, time: float, wrench: np.ndarray) -> np.ndarray:
        """Give what the instrument of a sensor shows of its wrench, (6,)."""
        stepper, reading, body = self.stepper, sensor.reading, self.stepper.body_of(part)
        assert reading is not None
        rotation, origin = stepper.link_pose(part)
        if sensor.kind in ("start", "end") and isinstance(body, Rod):
            origin = body.end_frames[sensor.kind == "end", :3]
        elif sensor.hold:
            origin = stepper.held_centre(sensor.hold)
        elif isinstance(body, SoftBody | Rod):
            origin = stepper.placed.reference[part]
        tool = None
        if reading.tool == "body" and body is not None:
            q = stepper.state.q[stepper.system.q_slices[stepper.scene.parts[part].body]]
            tool = (body.mass, body.centre_of_mass(q))
        elif reading.tool is not None:
            tool = (reading.tool[0], origin + rotation @ reading.tool[1])
        names = [p.name for p in stepper.scene.parts]
        pose = stepper.link_pose(names.index(reading.frame) if reading.turns and reading.frame != "body" else part)
        return self._instruments[sensor.name].read(time, wrench, origin, pose, tool)

    def problem(self, step: int) -> None:
        """Write the contact problem of a step, when it was asked for, to problems/step_NNNNN.hdf5."""
        problem = self.stepper.problem
        if self.folder is None or problem is None or step not in self.dump:
            return
        name = f"problems/step_{step:05d}.hdf5"
        (self.folder / name).parent.mkdir(exist_ok=True)
        write_fclib(self.folder / name, problem, title=f"{self.stepper.scene.name}, step {step}", description="Units are SI.")
        self.problems.append(name)

    def frame_due(self, time: float) -> bool:
        """Whether a frame is due at a time (s)."""
        if time < self._next_frame - 1e-9:
            return False
        self._next_frame += self.frame_interval * max(1.0, np.floor((time - self._next_frame) / self.frame_interval + 1.0 + 1e-9))
        return True

    def step(self, report: StepReport, timings: dict[str, float]) -> None:
        """Record a step: rows of both tables, and a frame when one is due."""
        with self.stepper.timed("record"):
            self.sensor_table.add(self.sensor_row(report))
            if self.frame_due(report.time):
                self.frame(report)
        s, m = report.solution, report.metrics
        spent = {stage: 1e3 * (self.stepper.timings[stage] - timings[stage]) for stage in timings}
        self.steps.add(
            [
                report.step, report.time, len(report.contacts.gap), s.iterations, m.dynamics_residual, m.contact_residual,
                float(s.history.step_norm[-1]) if len(s.history.step_norm) else 0.0, report.max_penetration, report.max_slip,
                report.kinetic_energy, report.elastic_energy, report.work, *(float(x) for x in report.momentum),
                report.wrench_balance, float(s.details.get("virtual_slip", 0.0)), report.inverted_elements, int(s.converged),
                len(report.parts),
                spent["assemble"], spent["detect"], spent["solve"], spent["measure"], spent["record"], sum(spent.values()),
                report.potential_energy, report.friction_loss,
            ]
        )  # fmt: skip

    def last_row(self) -> dict[str, float]:
        """Return what the last step wrote to both tables, by name of the column."""
        tables = (self.sensor_table, self.steps)
        return {name: float(value) for table in tables for name, value in zip(table.columns, table.rows[-1], strict=True)}

    def close(self) -> None:
        """Close all files; the frames and tables are complete up to the last step."""
        self.steps.close()
        self.sensor_table.close()
        if self.frames:
            self.frames.close()
