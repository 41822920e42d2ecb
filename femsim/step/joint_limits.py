"""Limits of joints as rows of the contact problem: a joint at the end of its range is pushed back, and never pulled.

Each end of a range in reach is a contact without friction whose normal row has one entry, 1 or -1 on the row of the joint, and
whose tangents are empty: the law is Signorini's between the distance to the end, rad or m, and the force of the stop, N m or N.
So every solver knows them. Coordinates of joints are linear in their speeds, and the law holds at the end of a step to its
tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from femsim.model.contact_rules import Breaks
from femsim.model.parts import Part
from femsim.step.contact_family import Deep, FamilyRows, Found, Near, Rates, Sides, no_rows
from femsim.step.joint_rows_kernels import largest_speed
from femsim.step.placed import Placed
from femsim.step.rows_kernels import Given, Sums, normal_offsets
from femsim.step.state import State
from femsim.step.system import System
from femsim.step.whole_joints import WholeJoints


@dataclass
class _Reached:
    """Ends of ranges within the margin: their numbers (k,), and the distances to them (k,), rad or m."""

    end: np.ndarray
    gap: np.ndarray


class LimitFamily:
    """The family of the limits of joints.

    Parameters
    ----------
    system : System
        The bodies.
    parts : sequence of Part
        The parts; a limit belongs to that of the link which the joint moves.

    Attributes
    ----------
    row, coordinate, sign, bound, part : ndarray, (ends,)
        Row of v and entry of q of each end of a range, 1 for the lower and -1 for the upper one, where it is (rad or m), and
        the part that the joint moves.
    """

    #: what it bears is no force between parts
    hidden = True

    def __init__(self, system: System, parts: Sequence[Part]) -> None:
        self.whole_joints = WholeJoints((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        number = {(part.body, part.link): k for k, part in enumerate(parts)}
        found: list[tuple[int, int, float, float, int]] = []
        for index, (body, v, q) in enumerate(zip(system.bodies, system.v_slices, system.q_slices, strict=True)):
            rows, coordinates, ranges, links = body.limits()
            for row, coordinate, (low, high), link in zip(rows, coordinates, ranges, links, strict=True):
                for sign, bound in ((1.0, low), (-1.0, high)):
                    if np.isfinite(bound):
                        found.append(
                            (v.start + int(row), q.start + int(coordinate), sign, float(bound), number[index, int(link)])
                        )
        columns = list(zip(*found, strict=True)) or [(), (), (), (), ()]
        self.row, self.coordinate, self.part = (np.array(columns[k], dtype=np.int64) for k in (0, 1, 4))
        self.sign, self.bound = (np.array(columns[k], dtype=np.float64) for k in (2, 3))
        n, self._no_rows = len(self.row), no_rows()
        self._near = Near(np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.bool_))
        #: of all ends together, of which those in reach have the first: rows of J, frames, and what carries their forces
        self._indptr, self._column = np.repeat(np.arange(n + 1), 3)[2:].astype(np.int32), self.row.astype(np.int32)
        self._frame, self._no_point = np.tile(np.eye(3), (n, 1, 1)), np.full((n, 2, 3), -1)

    def _gap(self, state: State) -> np.ndarray:
        return np.asarray(self.sign * (state.q[self.coordinate] - self.bound))

    def detect(self, state: State, placed: Placed, margin: float | np.ndarray) -> Found:
        """Find the ends of ranges within a margin, rad or m."""
        gap = self._gap(state)
        near = (gap <= float(margin)).nonzero()[0]
        return Found(_Reached(near, gap[near]), np.zeros((0, 3)), placed)

    def speeds(self, placed: Placed, rates: Rates) -> float:
        """Largest speed of a joint that has limits, rad/s or m/s."""
        return largest_speed(self.row, rates.v_hat, rates.v_prescribed)

    def rows(self, found: Found, given: Given) -> FamilyRows:
        """One row an end; joints that follow a motion have none."""
        reached: _Reached = found.contacts
        if not len(reached.end):
            return self._no_rows.of(found)
        keep = (~given.prescribed[self.row[reached.end]]).nonzero()[0]
        end, gap, n = reached.end[keep], reached.gap[keep], len(keep)
        phi, nothing = np.zeros((n, 3)), np.zeros(n)
        phi[:, 0] = normal_offsets(gap, given)
        return FamilyRows(
            found, keep, self._indptr[: 3 * n + 1], self._column[end], self.sign[end], phi, nothing, end, self._frame[:n], gap,
            nothing,
        )  # fmt: skip

    def moved(self, rows: FamilyRows, there: State, placed: Placed, given: Given, *, middle: bool) -> FamilyRows:
        """Return the same rows: they are those of all states."""
        return rows

    def on_same_features(self, rows: FamilyRows, there: State, placed: Placed, given: Given) -> FamilyRows:
        """Return the same rows."""
        return rows

    def accept(self, rows: FamilyRows, lam: np.ndarray, sums: Sums) -> np.ndarray:
        """Add what the stops exert on the joints to the rows of these, N m or N; no part bears a force of them."""
        if not len(rows):
            return rows.phi
        end = rows.found.contacts.end[rows.keep]
        np.add.at(sums.node_force, self.row[end], self.sign[end] * lam[:, 0])
        pressing = np.zeros((len(end), 3))
        pressing[:, 0] = lam[:, 0]
        return pressing

    def sides(self, rows: FamilyRows, pressing: np.ndarray) -> Sides:
        """Return ends of ranges, one by one, with what presses on them in the first of three columns."""
        reached: _Reached = rows.found.contacts
        n = len(rows)
        part, acting = np.empty((n, 2), dtype=np.int64), np.empty((n, 2, 3))
        part[:] = self.part[reached.end[rows.keep], None]
        place = rows.found.placed.translation[part[:, 0]]
        acting[:] = place[:, None]
        return Sides(
            place, acting, rows.frame[:, 0], reached.gap[rows.keep], pressing, part, self._no_point[:n], np.zeros((n, 2, 3))
        )

    def gaps(self, state: State, placed: Placed, reach: float, known: Found | None = None) -> Near:
        """None: they are no distances between parts."""
        return self._near

    def leading(self, state: State, placed: Placed, deep: Deep) -> list[Breaks]:
        """None."""
        return []

    def max_penetration(self, state: State, placed: Placed) -> float:
        """None."""
        return 0.0

    def overlaps(self, state: State) -> list[tuple[int, int, float, float]]:
        """None."""
        return []
