"""Small scenes that ask for what cannot be, and one or two that are only rough: what verdicts are tested on."""

from __future__ import annotations

from typing import Any

import femsim as fs


def rubber(young_modulus: float = 1e5, poisson_ratio: float = 0.3, **more: float) -> fs.Elastic:
    """Soft material of 1 g/cm^3."""
    return fs.Elastic(young_modulus, poisson_ratio, 1000.0, name="rubber", **more)


def crushed_box(duration: float = 0.12, **options: Any) -> fs.Scene:
    """A free rigid box between the floor and a plate that is driven down through it."""
    s = fs.Scene("crushed_box", dt=0.01, duration=duration, theta=1.0, **options)
    s.add_floor()
    s.add_rigid("box", fs.Box((0.02, 0.02, 0.02)), density=1000.0, position=(0, 0, 0.02))
    plate = s.add_rigid("plate", fs.Box((0.05, 0.05, 0.005)), density=1000.0, position=(0, 0, 0.0501))
    s.drive(plate, fs.Motion([0.0, 0.2], [(0, 0, 0), (0, 0, -0.02)], smooth=False))
    return s


def plate_past_floor(duration: float = 0.6) -> fs.Scene:
    """A driven plate presses a soft cube down, further than the floor allows."""
    s = fs.Scene("plate_past_floor", dt=0.01, duration=duration, theta=1.0)
    s.add_floor()
    s.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 3), rubber(), position=(0, 0, 0.01))
    plate = s.add_rigid("plate", fs.Box((0.03, 0.03, 0.005)), mass=0.1, position=(0, 0, 0.026))
    s.drive(plate, fs.Motion([0.1, 1.0], [(0, 0, 0), (0, 0, -0.06)]))
    return s


def driven_through_wall(depth: float = 0.03) -> fs.Scene:
    """A driven rigid probe goes so deep into a fixed wall; a far ball is there only so that something is free."""
    s = fs.Scene("driven_through_wall", dt=0.01, duration=0.3, theta=1.0)
    s.add_obstacle("wall", fs.Box((0.01, 0.05, 0.05)), position=(0.05, 0, 0))
    probe = s.add_rigid("probe", fs.Box((0.01, 0.01, 0.01)), mass=0.1)
    s.drive(probe, fs.Motion([0, 0.3], [(0, 0, 0), (0.03 + depth, 0, 0)]))
    s.add_rigid("far", fs.Sphere(0.01), mass=0.1, position=(0, 0.5, 0.5))
    return s


def gripper_into_table(deep: float = 0.01) -> fs.Scene:
    """The base of a gripper is led so much too deep: its fingers go into the table."""
    s = fs.Scene("gripper_into_table", dt=0.01, duration=0.3, theta=1.0)
    s.add_obstacle("table", fs.Box((0.2, 0.2, 0.01)), position=(0, 0, -0.01))
    pad = fs.Box((0.003, 0.01, 0.01))
    fingers = [
        fs.Finger("left", pad, offset=(-0.02, 0, -0.05), closing=(1, 0, 0)),
        fs.Finger("right", pad, offset=(0.02, 0, -0.05), closing=(-1, 0, 0)),
    ]
    hand = s.add_gripper("hand", fingers, position=(0, 0, 0.08))
    s.drive(hand, fs.Motion([0, 0.3], [(0, 0, 0), (0, 0, -0.02 - deep)]))
    s.drive(hand, force=fs.Profile([0, 0.1], [0, 0.1]), fingers=True)
    return s


def crossing_jaws(force: float = 1.0) -> fs.Scene:
    """The fingers of a gripper that has nothing between them close, through each other."""
    s = fs.Scene("crossing_jaws", dt=0.01, duration=0.3, theta=1.0)
    pad = fs.Box((0.003, 0.01, 0.01))
    fingers = [
        fs.Finger("left", pad, offset=(-0.02, 0, -0.05), closing=(1, 0, 0)),
        fs.Finger("right", pad, offset=(0.02, 0, -0.05), closing=(-1, 0, 0)),
    ]
    hand = s.add_gripper("hand", fingers, position=(0, 0, 0.3))
    s.drive(hand, fs.Motion([0, 0.3], [(0, 0, 0), (0, 0, 0.01)]))
    s.drive(hand, force=fs.Profile([0, 0.1], [0, force]), fingers=True)
    return s


def tendon_overload(force: float = 50.0, duration: float = 0.6) -> fs.Scene:
    """A tendon pulls harder than a soft block can bear."""
    s = fs.Scene("tendon_overload", dt=0.01, duration=duration, theta=1.0)
    s.add_floor()
    material = rubber(poisson_ratio=0.4, rayleigh_beta=1e-3)
    s.add_soft("block", fs.box_tets((0.02, 0.02, 0.08), (2, 2, 6)), material, position=(0, 0, 0.041))
    route = [(0.009, 0, 0.005), (0.009, 0, 0.04), (0.009, 0, 0.078)]
    s.add_tendon("block", route, fs.Profile([0, 0.5], [0.0, force]))
    return s


def needle(radius: float = 0.0005, cells: int = 4) -> fs.Scene:
    """A needle is driven into a soft cube."""
    s = fs.Scene("needle", dt=0.01, duration=0.1, theta=1.0)
    s.add_floor()
    s.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), cells), rubber(), position=(0.0012, 0.0013, 0.01))
    tip = s.add_rigid("needle", fs.Capsule(radius, 0.02), mass=0.01, position=(0, 0, 0.045))
    s.drive(tip, fs.Motion([0, 0.8], [(0, 0, 0), (0, 0, -0.02)]))
    return s


def tumbling_cube(friction: float = 5.0, dt: float = 0.01, duration: float = 1.0, theta: float | None = 1.0) -> fs.Scene:
    """A light soft cube tumbles down a slope of large friction."""
    s = fs.Scene("tumbling_cube", dt=dt, duration=duration, gravity=(9.5, 0, -2.5), default_friction=friction, theta=theta)
    s.add_floor()
    s.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 2), rubber(), position=(0, 0, 0.01))
    return s


def overlapping(depth: float) -> fs.Scene:
    """A rigid ball begins so deep in the floor."""
    s = fs.Scene("overlapping", dt=0.01, duration=0.05, theta=1.0)
    s.add_floor()
    s.add_rigid("ball", fs.Sphere(0.01), density=1000.0, position=(0, 0, 0.01 - depth))
    return s
