"""Frames of a run: which parts there are, what fields they carry, and the series that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast, get_args

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.model.bodies.rod import Rod
from femsim.model.bodies.soft import SoftBody
from femsim.model.bodies.soft_output import ELEMENT_FIELDS, SoftOutput
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper
from viz import HdfSeries, PartFrame, PvdSeries

FrameFormat = Literal["pvd", "vtkhdf"]
Precision = Literal["float64", "float32"]

POINT_FIELDS = ("velocity", "contact_force", "displacement", "contact_pressure")
ROD_FIELDS = ("velocity", "contact_force", "displacement", "tension", "bending_moment", "twisting_moment", "rotation")
#: All names that --fields takes.
FIELDS = tuple(dict.fromkeys(POINT_FIELDS + ELEMENT_FIELDS + ROD_FIELDS))
#: What is written when nothing is asked for: the others are large or cost more.
DEFAULT_FIELDS = (*POINT_FIELDS, "von_mises", "tension", "bending_moment", "twisting_moment")
#: Names of the components of fields that are neither scalars nor vectors.
COMPONENTS = {"rotation": ("w", "x", "y", "z"), "cauchy_stress": ("XX", "YY", "ZZ", "XY", "YZ", "XZ")}
#: Half the side of the square that stands for an infinite floor in the frames, in units of the scene's size.
FLOOR_SIZE = 4.0


def chosen_fields(fields: Sequence[str] | None) -> tuple[str, ...]:
    """Check names of fields; "default" and "all" stand for lists. None means default.

    Raises
    ------
    InputError
        An unknown name.
    """
    chosen: list[str] = []
    for name in ("default",) if fields is None else fields:
        if name not in FIELDS and name not in ("all", "default"):
            raise InputError(f"field {name!r} is unknown{did_you_mean(name, (*FIELDS, 'all', 'default'))}")
        chosen += {"all": FIELDS, "default": DEFAULT_FIELDS}.get(name, (name,))
    return tuple(dict.fromkeys(chosen))


class Frames:
    """Writes the state of a stepper as frames of a time series.

    Parameters
    ----------
    stepper : Stepper
        The simulation.
    folder : Path
        Run folder.
    fields : sequence of str, optional
        Names out of :data:`FIELDS`, "all" or "default"; default :data:`DEFAULT_FIELDS`. A body carries those that it knows.
    format : {"pvd", "vtkhdf"}
        "pvd": ``frames.pvd`` and a file a part and frame, for ParaView 5.11 and newer. "vtkhdf": ``frames.vtkhdf`` and a file a
        part, a fraction of the size, for ParaView 5.12 and newer; needs h5py.
    precision : {"float64", "float32"}
        Precision of positions; fields are float32 always.

    Raises
    ------
    InputError
        An unknown field, format or precision.
    VizError
        h5py is missing.
    """

    def __init__(
        self,
        stepper: Stepper,
        folder: Path,
        *,
        fields: Sequence[str] | None = None,
        format: str = "pvd",
        precision: str = "float64",
    ) -> None:
        check_options(format, precision)
        self.stepper, self.fields = stepper, chosen_fields(fields)
        points_dtype = cast(Precision, precision)
        self.series: PvdSeries | HdfSeries
        if format == "pvd":
            self.series = PvdSeries(
                folder / "frames.pvd", folder / "frames", points_dtype=points_dtype, components=COMPONENTS, background=True
            )
        else:
            self.series = HdfSeries(folder / "frames.vtkhdf", folder / "frames", points_dtype=points_dtype, background=True)
        self._add_parts()

    def _add_parts(self) -> None:
        scene, series = self.stepper.scene, self.series
        soft = [b.rest for b in scene.bodies if isinstance(b, SoftBody)]
        rods = [b.centre_line(b.initial_q()) for b in scene.bodies if isinstance(b, Rod)]
        size = max((float(np.ptp(points, axis=0).max()) for points in soft + rods), default=0.1)
        self._visuals: list[tuple[int, str, np.ndarray]] = []
        self._soft_outputs: dict[int, SoftOutput] = {}
        for k, part in enumerate(scene.parts):
            body = self.stepper.body_of(k)
            if isinstance(body, SoftBody):
                series.add_part(part.name, body.rest, body.tets, "tetra")
                self._soft_outputs[k] = SoftOutput(body)
                self._visuals.append((k, part.name, body.rest))
            elif isinstance(body, Rod):
                line = body.centre_line(body.initial_q())
                series.add_part(part.name, line, None, "line")
                self._visuals.append((k, part.name, line))
            elif part.visual is not None:
                points = part.visual.points
                if part.visual.name == "plane":
                    (_, turn, place), size_now = part.shapes[0], FLOOR_SIZE * size
                    points = size_now * (points - place) @ turn @ turn.T + place
                series.add_part(part.name, points, part.visual.triangles, "triangle")
                self._visuals.append((k, part.name, points))
        series.add_part("contacts", None, None, "points")

    def write(self, report: StepReport | None) -> None:
        """Write a frame of the current state; None at the start, before any step."""
        stepper = self.stepper
        parts: dict[str, PartFrame] = {}
        for k, name, points in self._visuals:
            body = stepper.body_of(k)
            if isinstance(body, SoftBody):
                parts[name] = self._soft_frame(k, body, report)
            elif isinstance(body, Rod):
                parts[name] = self._rod_frame(k, body, points, report)
            else:
                rotation, position = stepper.link_pose(k)
                parts[name] = PartFrame(points if body is None else points @ rotation.T + position)
        if report is None:
            none, scalar = np.zeros((0, 3)), np.zeros(0)
            parts["contacts"] = PartFrame(none, {"force": none, "normal": none, "gap": scalar, "state": scalar.astype(int)})
        else:
            c = report.contacts
            parts["contacts"] = PartFrame(c.position, {"force": c.force, "normal": c.normal, "gap": c.gap, "state": c.state})
        self.series.write_frame(stepper.state.t, parts)

    def close(self) -> None:
        """End the series; it is complete up to the last frame."""
        self.series.close()

    def _soft_frame(self, part: int, body: SoftBody, report: StepReport | None) -> PartFrame:
        system, state = self.stepper.system, self.stepper.state
        index = self.stepper.scene.parts[part].body
        q, rows = state.q[system.q_slices[index]], system.v_slices[index]
        x = q.reshape(-1, 3)
        force = np.zeros((len(x), 3)) if report is None else report.forces.node_force[rows].reshape(-1, 3)
        output = self._soft_outputs[part]
        point_data: dict[str, np.ndarray] = {}
        if "velocity" in self.fields:
            point_data["velocity"] = state.v[rows].reshape(-1, 3)
        if "contact_force" in self.fields:
            point_data["contact_force"] = force
        if "displacement" in self.fields:
            point_data["displacement"] = x - body.rest
        if "contact_pressure" in self.fields:
            point_data["contact_pressure"] = output.contact_pressure(x, force)
        return PartFrame(x, point_data, output.elements(q, self.fields))

    def _rod_frame(self, part: int, body: Rod, start: np.ndarray, report: StepReport | None) -> PartFrame:
        """Centre line with fields at the ends of the links: those of links as means, those of joints as they are."""
        system, state = self.stepper.system, self.stepper.state
        index = self.stepper.scene.parts[part].body
        q, rows = state.q[system.q_slices[index]], system.v_slices[index]
        line = body.centre_line(q)
        before = [0, *range(body.n_links)]  # link before and behind each end
        behind = [*range(body.n_links), body.n_links - 1]
        point_data: dict[str, np.ndarray] = {"radius": np.full(len(line), body.section.contact_radius)}
        if "velocity" in self.fields:
            velocity = state.v[rows].reshape(-1, 6)[:, :3]
            point_data["velocity"] = 0.5 * (velocity[before] + velocity[behind])
        if "contact_force" in self.fields:
            force = np.zeros_like(line)
            if report is not None:
                half = 0.5 * report.forces.node_force[rows].reshape(-1, 6)[:, :3]
                force[:-1] += half
                force[1:] += half
            point_data["contact_force"] = force
        if "displacement" in self.fields:
            point_data["displacement"] = line - start
        along = body.axes(q)[:, :, 2]
        tangent = along[before] + along[behind]
        tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
        joints = body.joint_wrenches(q)
        twist = (joints[:, 3:] * tangent).sum(axis=1)
        for name, values in (
            ("tension", (joints[:, :3] * tangent).sum(axis=1)),
            ("bending_moment", np.linalg.norm(joints[:, 3:] - twist[:, None] * tangent, axis=1)),
            ("twisting_moment", twist),
        ):
            if name in self.fields:
                point_data[name] = values
        if "rotation" in self.fields:
            first, second = body.quaternions(q)[before], body.quaternions(q)[behind]
            mean = first + np.where((first * second).sum(axis=1, keepdims=True) < 0.0, -second, second)
            mean /= np.linalg.norm(mean, axis=1, keepdims=True)
            point_data["rotation"] = np.where(mean[:, :1] < 0.0, -mean, mean)
        return PartFrame(line, point_data)


def check_options(format: str, precision: str) -> None:
    """Raise InputError unless format and precision are known ones."""
    for what, value, allowed in (("format", format, get_args(FrameFormat)), ("precision", precision, get_args(Precision))):
        if value not in allowed:
            raise InputError(f"{what} is {value!r}; allowed are {' and '.join(map(repr, allowed))}.")
