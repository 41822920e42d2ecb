"""What a rod is made of: masses and damping of its links, stiffness of its joints, its shape at the start and at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from femsim.base.rotations import quaternion_from_vector, quaternion_multiply
from femsim.model.bodies import rod_kernels as kernels
from femsim.model.bodies.rod_end import END_KINDS, RodEnd
from femsim.model.bodies.rod_joints import RodJoints
from femsim.model.bodies.rod_shape import carried_frames, checked, link_lengths, turns_at_rest, turns_at_start
from materials import Elastic, RodSection

#: Largest pull that enters A as tension stiffness, as a fraction of the shear stiffness k G A.
MAX_TENSION = 0.7


@dataclass(frozen=True)
class RodMake:
    """A rod as arrays that no step changes.

    Attributes
    ----------
    lengths : ndarray, (n,), m
        Lengths of the links at rest.
    mass : ndarray, (n,), kg
        Of the links.
    inertia : ndarray, (n, 3), kg m^2
        Of the links about the axes of the section, through their centres.
    joints : RodJoints
        What joins them to each other and to the frames of the ends.
    q : ndarray, (7 n,)
        Centres (m) and quaternions at the start.
    frames : ndarray, (2, 7)
        Positions (m) and quaternions of the frames of start and end at the start.
    """

    lengths: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray
    joints: RodJoints
    q: np.ndarray
    frames: np.ndarray


def make_rod(
    name: str,
    points: np.ndarray,
    section: RodSection,
    elastic: Elastic,
    ends: tuple[RodEnd, RodEnd],
    normal: np.ndarray | None,
    rest_curvature: np.ndarray | None,
) -> RodMake:
    """Make the arrays of a rod; parameters and errors are those of :class:`femsim.model.bodies.rod.Rod`."""
    points = checked(name, "points", points, (None, 3))
    lengths = link_lengths(name, points)
    tangents = np.diff(points, axis=0) / lengths[:, None]
    quaternions = carried_frames(name, tangents, None if normal is None else checked(name, "normal", normal, (3,)))
    arm = np.concatenate([[0.0], 0.5 * lengths, [0.0]])
    between = arm[:-1] + arm[1:]
    turn = turns_at_start(quaternions, between)
    rest = turn if rest_curvature is None else turns_at_rest(name, rest_curvature, between)
    frames = [
        [*points[0], *quaternion_multiply(quaternions[0], quaternion_from_vector(-turn[0]))],
        [*points[-1], *quaternion_multiply(quaternions[-1], quaternion_from_vector(turn[-1]))],
    ]
    q = np.column_stack([0.5 * (points[1:] + points[:-1]), quaternions]).ravel()
    mass, inertia = _masses(section, elastic, lengths)
    kind = np.full(len(between), kernels.FULL, dtype=np.int64)
    kind[[0, -1]] = [END_KINDS[end.kind] for end in ends]
    stiffness, ceiling = _stiffness(section, elastic, between)
    return RodMake(lengths, mass, inertia, RodJoints(kind, arm, stiffness, rest, ceiling), q, np.array(frames))


def _masses(section: RodSection, elastic: Elastic, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mass (n,), kg, and inertia (n, 3), kg m^2, of links: slender bars with the rotary inertia of the section."""
    mass = elastic.density * section.area * lengths
    slender = mass * lengths**2 / 12.0
    rotary = elastic.density * lengths[:, None] * [section.second_moment_1, section.second_moment_2, section.polar_moment]
    return mass, np.ascontiguousarray(rotary + slender[:, None] * [1.0, 1.0, 0.0])


def _stiffness(section: RodSection, elastic: Elastic, lengths: np.ndarray) -> tuple[np.ndarray, float]:
    """Stiffness of joints of these lengths, (n + 1, 6), and the largest pull that enters A as tension stiffness, N."""
    young, shear = elastic.young_modulus, elastic.lame_mu
    along = [
        section.shear_factor_1 * shear * section.area,
        section.shear_factor_2 * shear * section.area,
        young * section.area,
    ]
    solid = np.array([young * section.second_moment_1, young * section.second_moment_2, shear * section.torsion_constant])
    return np.array([*along, *section.bending_factor * solid]) / lengths[:, None], MAX_TENSION * min(along[:2])
