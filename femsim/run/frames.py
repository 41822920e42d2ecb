"""Frames of a run: which parts there are, what fields they carry, and the series that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np

from femsim.base.errors import InputError, did_you_mean
from femsim.model.fields import FRAME_FIELDS
from femsim.run.columns import cell
from femsim.step.contacts import StepContacts
from femsim.step.placed import Placed
from femsim.step.report import StepReport
from femsim.step.stepper import Stepper
from viz import HdfSeries, LiveSeries, PartFrame, PvdSeries

FrameFormat = Literal["pvd", "vtkhdf"]
Precision = Literal["float64", "float32"]

#: All names that --fields takes.
FIELDS = tuple(field.name for field in FRAME_FIELDS if not field.always)
#: What is written when nothing is asked for: the others are large or cost more.
DEFAULT_FIELDS = tuple(field.name for field in FRAME_FIELDS if field.default and not field.always)
#: Names of the components of fields that are neither scalars nor vectors.
COMPONENTS = {field.name: field.components for field in FRAME_FIELDS if field.components}
#: Side of the square that stands for an infinite floor in the frames, in units of the scene's diagonal.
FLOOR_SIZE = 2.0


def chosen_fields(fields: Sequence[str] | None) -> tuple[str, ...]:
    """Check names of fields, or one; "default" and "all" stand for lists. None means default.

    Raises
    ------
    InputError
        An unknown name.
    """
    chosen: list[str] = []
    for name in ("default",) if fields is None else (fields,) if isinstance(fields, str) else fields:
        if name not in FIELDS and name not in ("all", "default"):
            raise InputError(f"field {name!r} is unknown{did_you_mean(name, (*FIELDS, 'all', 'default'))}")
        chosen += {"all": FIELDS, "default": DEFAULT_FIELDS}.get(name, (name,))
    return tuple(dict.fromkeys(chosen))


class Shown:
    """Gives the state of a stepper to a series as frames.

    Parameters
    ----------
    stepper : Stepper
        The simulation.
    series : PvdSeries, HdfSeries or LiveSeries
        Takes them: on disk, or the newest alone in memory.
    fields : sequence of str, optional
        See :class:`Frames`.

    Raises
    ------
    InputError
        An unknown field.
    """

    def __init__(self, stepper: Stepper, series: PvdSeries | HdfSeries | LiveSeries, fields: Sequence[str] | None = None) -> None:
        self.stepper, self.fields, self._series = stepper, chosen_fields(fields), series
        self._add_parts()

    def _add_parts(self) -> None:
        stepper, parts, series = self.stepper, self.stepper.scene.parts, self._series
        #: of parts that their shapes draw, the points in the frame of the part
        self._shapes: dict[int, np.ndarray] = {}
        drawings = [None if (body := stepper.body_of(k)) is None else body.drawing(p.link) for k, p in enumerate(parts)]
        for k, (part, drawing) in enumerate(zip(parts, drawings, strict=True)):
            if drawing is None:
                if part.visual is None:
                    raise InputError(f"part {part.name!r} cannot be drawn: its body gives no drawing and its shapes no visual.")
                self._shapes[k] = part.visual.points
        self._widen_planes()
        self._drawn = range(len(parts))
        for k, (part, drawing) in enumerate(zip(parts, drawings, strict=True)):
            if drawing is not None:
                series.add_part(part.name, drawing.points, drawing.cells, drawing.kind)
            elif part.visual is not None:
                series.add_part(part.name, self._shapes[k], part.visual.triangles, "triangle")
        series.add_part("contacts", None, None, "points")

    def _widen_planes(self) -> None:
        """Make the squares that stand for infinite planes reach under all that the scene holds at the start."""
        parts, placed = self.stepper.scene.parts, self.stepper.placed
        planes = [k for k in self._shapes if (visual := parts[k].visual) is not None and visual.name == "plane"]
        others = [self._part_frame(k, None, placed).points for k in range(len(parts)) if k not in planes]
        if not planes or not others:
            return
        low, high = (getattr(np.concatenate(others), side)(axis=0) for side in ("min", "max"))
        for k in planes:
            _, turn, place = parts[k].shapes[0]
            foot = 0.5 * (low + high) - ((0.5 * (low + high) - place) @ turn[:, 2]) * turn[:, 2]
            self._shapes[k] = foot + FLOOR_SIZE * np.linalg.norm(high - low) * (self._shapes[k] - place)

    def write(self, report: StepReport | None) -> None:
        """Write a frame of the current state, with the time that the tables have; None at the start, before any step."""
        stepper, placed = self.stepper, self.stepper.placed
        parts = {stepper.scene.parts[k].name: self._part_frame(k, report, placed) for k in self._drawn}
        fields = _over_step(() if report is None else report.parts)
        points, sides = fields.pop("position"), fields.pop("part")
        parts["contacts"] = PartFrame(points, fields | ({"parts": sides} if "parts" in self.fields else {}))
        self._series.write_frame(float(cell(stepper.state.t)), parts)

    def _part_frame(self, k: int, report: StepReport | None, placed: Placed) -> PartFrame:
        """Points and fields of a part in the current state, in which the parts are ``placed``."""
        stepper, body = self.stepper, self.stepper.body_of(k)
        if body is None:
            return PartFrame(self._shapes[k])
        if k in self._shapes:
            return PartFrame(self._shapes[k] @ placed.rotation[k].T + placed.translation[k])
        system, state, index = stepper.system, stepper.state, stepper.scene.parts[k].body
        rows = system.v_slices[index]
        force = np.zeros(body.n_v) if report is None else report.forces.node_force[rows]
        drawn = body.frame(state.q[system.q_slices[index]], state.v[rows], force, self.fields)
        return PartFrame(drawn.points, drawn.point_data, drawn.cell_data)


def _over_step(parts: Sequence[tuple[float, StepContacts]]) -> dict[str, np.ndarray]:
    """Contacts of a step that may have been taken in parts, each of a length (s); none before any: what frames show, by name.

    Forces are means over the step, all else is as in the last part that has the contact.
    """
    names = ("position", "force", "normal", "gap", "state", "part")
    if not parts:
        none, whole = np.zeros((0, 3)), np.zeros((0, 2), dtype=np.int64)
        return dict.fromkeys(names[:3], none) | {"gap": none[:, 0], "state": whole[:, 0], "part": whole}
    if len(parts) == 1:
        return {name: getattr(parts[0][1], name) for name in names}
    back = [contacts for _, contacts in reversed(parts)]
    every = {name: np.concatenate([getattr(contacts, name) for contacts in back]) for name in names}
    lengths = np.array([dt for dt, _ in parts])
    weights = np.repeat(lengths[::-1] / lengths.sum(), [len(contacts.gap) for contacts in back])
    keys = np.concatenate([contacts.key for contacts in back])
    _, last, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    force = np.zeros((len(last), 3))
    np.add.at(force, same.ravel(), weights[:, None] * every["force"])
    return {name: values[last] for name, values in every.items()} | {"force": force}


class Frames(Shown):
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
    written : dict, optional
        What :meth:`written` gave, of a run that goes on: the frames behind it are taken away.

    Raises
    ------
    InputError
        An unknown field, format or precision.
    VizError
        h5py is missing, or the frames of a run that goes on are not there.
    """

    def __init__(
        self,
        stepper: Stepper,
        folder: Path,
        *,
        fields: Sequence[str] | None = None,
        format: str = "pvd",
        precision: str = "float64",
        written: dict[str, Any] | None = None,
    ) -> None:
        check_options(format, precision)
        fields = chosen_fields(fields)
        points_dtype = cast(Precision, precision)
        series: PvdSeries | HdfSeries
        if format == "pvd":
            series = PvdSeries(
                folder / "frames.pvd", folder / "frames", points_dtype=points_dtype, components=COMPONENTS, background=True,
                goes_on=written is not None,
            )  # fmt: skip
        else:
            series = HdfSeries(
                folder / "frames.vtkhdf", folder / "frames", points_dtype=points_dtype, background=True,
                goes_on=written is not None,
            )  # fmt: skip
        self.series = series
        super().__init__(stepper, series, fields)
        if written is not None:
            self.series.go_on(written)

    def written(self) -> dict[str, Any]:
        """Return what there is to go on from, as JSON knows it; all of it is in the files when this returns."""
        return self.series.written()

    @property
    def settled(self) -> bool:
        """Whether all frames so far are in the files."""
        return self.series.settled

    def settle(self) -> None:
        """Wait until all frames so far are in the files."""
        self.series.settle()

    def close(self) -> None:
        """End the series; it is complete up to the last frame."""
        self.series.close()


def check_options(format: str, precision: str) -> None:
    """Raise InputError unless format and precision are known ones."""
    for what, value, allowed in (("format", format, get_args(FrameFormat)), ("precision", precision, get_args(Precision))):
        if value not in allowed:
            raise InputError(f"{what} is {value!r}; allowed are {' and '.join(map(repr, allowed))}.")
