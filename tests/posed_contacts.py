"""Bodies of three kinds and a floor at random poses, with all contacts between them."""

from __future__ import annotations

import numpy as np
from slow_twins import random_frame

from contact import Box, Plane, Sphere
from femsim.base.rotations import quaternion_from_vector
from femsim.model.bodies.articulated import ArticulatedBody, Link
from femsim.model.bodies.corotational import CorotationalBody
from femsim.model.contact_rules import ContactRules
from femsim.model.parts import Part
from femsim.step.contacts import Contacts
from femsim.step.state import State
from femsim.step.system import System
from materials import Elastic
from meshes.generate import box_tets

EYE, ORIGIN = np.eye(3), np.zeros(3)


def make_contacts(rng: np.random.Generator, *, correction: float = 0.2, max_correction: float = 0.5) -> tuple[Contacts, State]:
    """A rigid sphere, a soft block of 12 nodes, a gripper with two fingers and a floor, at random poses."""
    rigid = ArticulatedBody(
        "rigid", [Link("rigid", 0.5, 1e-3 * EYE, ORIGIN)], position=rng.standard_normal(3),
        quaternion=quaternion_from_vector(rng.standard_normal(3)), velocity=ORIGIN, angular_velocity=ORIGIN,
    )  # fmt: skip
    mesh = box_tets((0.02, 0.02, 0.04), (1, 1, 2))
    soft = CorotationalBody("ball", mesh.points, mesh.tets, Elastic(1e5, 0.3, 1000.0), velocity=ORIGIN)
    axes = [a / np.linalg.norm(a) for a in rng.standard_normal((2, 3))]
    links = [
        Link("base", 0.8, 1e-3 * EYE, ORIGIN),
        Link("left", 0.1, 1e-4 * EYE, 0.1 * rng.standard_normal(3), axes[0]),
        Link("right", 0.1, 1e-4 * EYE, 0.1 * rng.standard_normal(3), axes[1]),
    ]
    gripper = ArticulatedBody(
        "gripper", links, position=rng.standard_normal(3), quaternion=quaternion_from_vector(rng.standard_normal(3)),
        velocity=ORIGIN, angular_velocity=ORIGIN, joint_positions=np.array([0.02, -0.01]),
    )  # fmt: skip
    system = System([rigid, soft, gripper])
    state = system.initial_state()
    state.q[system.q_slices[1]] += 0.002 * rng.standard_normal(36)
    box, placed = Box((0.01, 0.02, 0.03)), (random_frame(rng), 0.02 * rng.standard_normal(3))
    parts = [
        Part("rigid", 0, 0, "steel", [(Sphere(0.03), *placed)]),
        Part("ball", 1, 0, "rubber", nodes=np.arange(12)),
        Part("gripper", 2, 0, "steel", [(box, EYE, ORIGIN)]),
        Part("gripper.left", 2, 1, "steel", [(box, *placed)]),
        Part("gripper.right", 2, 2, "pad", [(box, random_frame(rng), ORIGIN)]),
        Part("floor", -1, 0, "wood", [(Plane(), EYE, ORIGIN)]),
    ]
    surfaces = ["steel", "rubber", "pad", "wood"]
    friction = np.arange(16.0).reshape(4, 4)
    friction = friction + friction.T
    pairs = ~np.eye(6, dtype=bool)
    pairs[2:5, 2:5] = False  # links of one gripper
    own = [surfaces.index(part.surface) for part in parts]
    friction = friction[np.ix_(own, own)]
    return Contacts(system, parts, ContactRules(friction, np.zeros_like(friction), pairs, correction, max_correction)), state
