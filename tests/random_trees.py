"""Random robots with every kind of joint, and their slow twins: kinematics by 4x4 matrices, the rest by finite differences."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

import femsim as fs
from femsim.model.bodies.tree import TreeBody
from femsim.model.bodies.tree_kernels import PRISMATIC, REVOLUTE, SPHERICAL, move


def random_inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """Inertia of a cloud of points: any real body's."""
    x = 0.1 * rng.standard_normal((6, 3))
    x -= x.mean(axis=0)
    return mass / 6 * sum(p @ p * np.eye(3) - np.outer(p, p) for p in x)


def random_robot(rng: np.random.Generator) -> fs.Robot:
    """A branched robot of eight links: turning, sliding, ball, fixed and universal joints, rotors, and one joint that mimics."""
    links = [
        fs.RobotLink(f"l{k}", mass := 0.2 + 0.1 * k, 0.1 * rng.standard_normal(3), random_inertia(rng, mass)) for k in range(8)
    ]
    kinds = ["revolute", "prismatic", "spherical", "fixed", "universal", "continuous", "revolute"]
    parents = [0, 1, 0, 3, 4, 2, 6]
    joints = [
        fs.RobotJoint(
            f"j{k + 1}", f"l{parent}", f"l{k + 1}", kind, 0.2 * rng.standard_normal(3), rng.standard_normal(3),  # type: ignore[arg-type]
            rng.standard_normal(3), rng.standard_normal(3), rotor_inertia=0.01 * (k == 5), damping=0.02,
            mimic=("j6", -0.7, 0.1) if k == 6 else None,
        )
        for k, (kind, parent) in enumerate(zip(kinds, parents, strict=True))
    ]  # fmt: skip
    return fs.Robot("random", links, joints)


def random_body(rng: np.random.Generator) -> TreeBody:
    """Its body at a random pose."""
    body = random_robot(rng).body("random", rng.standard_normal(3), np.array([1.0, 0, 0, 0]), {}, {})
    q = body.initial_q()
    out = q.copy()
    move(body.tree, q, rng.standard_normal(body.n_v), 1.0, False, out)
    return TreeBody("random", body.tree, body.links, body.above, body.joints, out, rng.standard_normal(body.n_v))


def slow_frames(body: TreeBody, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (links, 3, 3) and centres of mass (links, 3) by products of 4x4 matrices."""
    tree, frames = body.tree, []
    for k in range(len(body.links)):
        T = np.eye(4)
        if k == 0:
            T[:3, :3] = Rotation.from_quat(q[[4, 5, 6, 3]]).as_matrix()
            T[:3, 3] = q[:3] - T[:3, :3] @ tree.centre[0]
        else:
            fixed, moving, c = np.eye(4), np.eye(4), int(tree.coordinate[k])
            fixed[:3, :3], fixed[:3, 3] = tree.turn[k], tree.place[k]
            at = tree.ratio[k] * q[c] + tree.offset[k]
            if tree.kind[k] == REVOLUTE:
                moving[:3, :3] = Rotation.from_rotvec(at * tree.axis[k]).as_matrix()
            elif tree.kind[k] == PRISMATIC:
                moving[:3, 3] = at * tree.axis[k]
            elif tree.kind[k] == SPHERICAL:
                moving[:3, :3] = Rotation.from_quat(q[[c + 1, c + 2, c + 3, c]]).as_matrix()
            T = frames[int(tree.parent[k])] @ fixed @ moving
        frames.append(T)
    rotation = np.array([T[:3, :3] for T in frames])
    return rotation, np.array([T[:3, :3] @ c + T[:3, 3] for T, c in zip(frames, tree.centre, strict=True)])


def slow_jacobian(body: TreeBody, q: np.ndarray, link: int, h: float = 1e-5) -> np.ndarray:
    """Jacobian (6, n_v) of a link by central differences along each velocity."""
    S = np.empty((6, body.n_v))
    for a in range(body.n_v):
        ends = []
        for sign in (1.0, -1.0):
            moved = q.copy()
            move(body.tree, q, np.eye(body.n_v)[a], sign * h, False, moved)
            ends.append(slow_frames(body, moved))
        (turned, c1), (before, c0) = ends
        S[:3, a] = (c1[link] - c0[link]) / (2 * h)
        S[3:, a] = Rotation.from_matrix(turned[link] @ before[link].T).as_rotvec() / (2 * h)
    return S


def slow_mass(body: TreeBody, q: np.ndarray) -> np.ndarray:
    """Mass matrix as a sum over the links."""
    M, rotation = np.diag(body.tree.rotor).astype(float), slow_frames(body, q)[0]
    for k in range(len(body.links)):
        S, inertia = slow_jacobian(body, q, k), rotation[k] @ body.tree.inertia[k] @ rotation[k].T
        M += body.tree.mass[k] * S[:3].T @ S[:3] + S[3:].T @ inertia @ S[3:]
    return M


def slow_inverse_dynamics(
    body: TreeBody, q: np.ndarray, v: np.ndarray, rate: np.ndarray, gravity: np.ndarray, h: float = 1e-4
) -> np.ndarray:
    """Forces of d'Alembert: rates of the momenta of the links by differences along a motion with these velocities and rates."""

    def momenta(t: float) -> np.ndarray:
        moved = q.copy()
        move(body.tree, q, v + 0.5 * t * rate, t, False, moved)
        rotation = slow_frames(body, moved)[0]
        out = np.empty((len(body.links), 6))
        for k in range(len(body.links)):
            twist = slow_jacobian(body, moved, k) @ (v + t * rate)
            out[k, :3] = body.tree.mass[k] * twist[:3]
            out[k, 3:] = rotation[k] @ body.tree.inertia[k] @ rotation[k].T @ twist[3:]
        return out

    change = (momenta(h) - momenta(-h)) / (2 * h)
    change[:, :3] -= body.tree.mass[:, None] * gravity
    out = body.tree.rotor * rate
    for k in range(len(body.links)):
        out += slow_jacobian(body, q, k).T @ change[k]
    return out
