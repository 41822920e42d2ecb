"""What joints resist turns of rigid bodies with: against differences of their forces, on chains of links, and in runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_trees import random_body
from scipy.linalg import null_space

import femsim as fs
from contact import make_solver
from femsim.base.rotations import cross_matrix
from femsim.model.bodies.body import StepSettings
from femsim.model.bodies.tree_kernels import SPHERICAL
from femsim.model.frames import LinkFrame
from femsim.model.joined import positive_part, turning_stiffness
from femsim.step.stepper import Stepper


@pytest.mark.parametrize("link", [0, 1, 2, 6])
def test_the_stiffness_of_a_chain_is_the_derivative_of_its_forces(link: int) -> None:
    """Two forces on a link that turns, and slides, on others; but for the turns of one ball joint, which have no order."""
    rng = np.random.default_rng(3)
    body = random_body(rng)
    q0 = body.initial_q()
    frame = LinkFrame(body, link, np.concatenate([rng.standard_normal(3), [1.0, 0.0, 0.0, 0.0]]))
    local, forces, m = 0.3 * rng.standard_normal((2, 3)), rng.standard_normal((2, 3)), len(frame.rows)
    turn = body.link_pose(q0, link)[0]

    def push(q: np.ndarray) -> np.ndarray:
        frame.place(q)
        G, arms = frame.jacobian(), local @ turn @ body.link_pose(q, link)[0].T
        pushes = [(G[:3] - cross_matrix(arm) @ G[3:]).T @ force for arm, force in zip(arms, forces, strict=True)]
        return np.asarray(np.sum(pushes, axis=0))

    J, h = np.empty((m, m)), 1e-6
    for k, way in enumerate(np.eye(m)):
        J[:, k] = (push(frame.moved(q0, way, h)) - push(frame.moved(q0, way, -h))) / (2.0 * h)
    frame.place(q0)
    K = turning_stiffness(frame.jacobian(), forces.sum(axis=0), local.T @ forces)
    assert np.abs(J[:3]).max() < 1e-8 * np.abs(J).max() and np.abs(J[3:, :3]).max() < 1e-8 * np.abs(J).max()
    J = J[3:, 3:]
    wanted = -np.tril(J) - np.tril(J, -1).T  # a joint is turned with the base that it is on
    wanted[:3, :3] = -0.5 * (J[:3, :3] + J[:3, :3].T)
    for joint in body.joints:
        if body.tree.kind[joint.link] == SPHERICAL:
            own = np.isin(frame.rows[3:], joint.row + np.arange(3))
            ordered = np.triu(np.outer(own, own), 1)
            wanted[ordered | ordered.T] = K[ordered | ordered.T]
    np.testing.assert_allclose(K, wanted, rtol=0, atol=1e-7 * np.abs(K).max())
    assert len(K) == 3 or np.abs(K[3:]).max() > 0.1


def test_the_positive_part_is_that_of_the_eigenvalues() -> None:
    K = np.random.default_rng(2).standard_normal((7, 7))
    K += K.T
    part = positive_part(K)
    assert np.array_equal(part, part.T)
    np.testing.assert_allclose(part - positive_part(-K), K, rtol=0, atol=1e-13)
    assert np.linalg.eigvalsh(part).min() > -1e-13 and np.abs(part @ positive_part(-K)).max() < 1e-12


def two(kind: str) -> fs.Scene:
    """Two bodies on a joint."""
    scene = fs.Scene("two", dt=0.01, theta=1.0)
    scene.add_rigid("a", fs.Box((0.05, 0.02, 0.01)), mass=0.2)
    scene.add_rigid("b", fs.Box((0.05, 0.02, 0.01)), mass=0.2, position=(0.1, 0.02, 0.03))
    axis = {"axis": (0.0, 1.0, 0.0)} if kind in ("hinge", "slider") else {}
    scene.join("a", "b", kind, at=(0.05, 0.01, 0.015), **axis)  # type: ignore[arg-type]
    return scene


@pytest.mark.parametrize("kind", ["ball", "hinge", "weld", "slider"])
def test_a_tangent_is_the_part_of_the_derivative_of_the_force_that_resists(kind: str) -> None:
    """A joint that pulls: that of both bodies, of a slider that of the one that slides. At rest, in A, and broken it has none."""
    stepper, settings = Stepper(two(kind), make_solver("auto")), StepSettings(0.01, 1.0, np.zeros(3))
    (joint,), state, bodies = stepper.system.couplings, stepper.state, stepper.system.bodies
    q = [state.q[own] for own in stepper.system.q_slices]
    assert joint.entries is not None
    block, b, v = np.empty(len(joint.entries[0])), np.empty(12), np.zeros(12)
    joint.prepare(q, 0.01)
    joint.assemble(settings, block, b)
    assert not block.any() and not b.any()
    constraint = joint.constraint()
    assert constraint is not None
    lam = np.zeros(len(constraint.offset))
    lam[: 2 if kind == "slider" else 3] = (3.0, -4.0) if kind == "slider" else (5.0, 1.0, 1.5)  # along the arms

    def push(at: np.ndarray) -> np.ndarray:
        joint.prepare([one.moved(own, at[k : k + 6], 0.01) for one, own, k in zip(bodies, q, (0, 6), strict=True)], 0.01, at)
        joint.take_rows(lam)
        return joint.push().copy()

    J, h = np.empty((12, 12)), 1e-5
    for k, way in enumerate(np.eye(12)):
        J[:, k] = (push(v + h * way) - push(v - h * way)) / (2.0 * h)
    push(v)
    assert not joint.tangent(settings, block, b, positive=False) and not b.any()
    found = np.zeros((12, 12))
    found[joint.entries] = block
    wanted = -0.5 * (J + J.T)
    if kind == "slider":  # of the second body the force turns along
        assert not found[:3].any() and not found[6:].any()
        found, wanted = found[3:6, 3:6], positive_part(wanted[3:6, 3:6])
    else:  # where the joint stays closed, as the force of the second body acts where the first one has it
        ways = null_space(constraint.G)
        found, wanted = ways.T @ found @ ways, ways.T @ wanted @ ways
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())
    assert found.any()
    joint.break_off()
    joint.tangent(settings, block, b, positive=False)
    assert not block.any()


def test_a_tangent_of_glue_is_that_of_the_body_which_nodes_pull() -> None:
    """Where nodes and body move together, by forces along the arms."""
    scene = fs.Scene("glued", dt=0.01, theta=1.0)
    scene.add_soft("cube", fs.box_tets((0.02, 0.02, 0.02), 1), fs.Elastic(1e5, 0.3, 1000.0))
    scene.add_rigid("hand", fs.Box((0.02, 0.02, 0.01)), mass=0.2, position=(0.01, 0.0, -0.04))
    scene.join("cube", "hand", at=(0.0, 0.0, -0.01), where=lambda x: x[:, 2] < -0.0099)
    stepper, settings = Stepper(scene, make_solver("auto")), StepSettings(0.01, 1.0, np.zeros(3))
    (joint,), state, bodies = stepper.system.couplings, stepper.state, stepper.system.bodies
    q = [state.q[stepper.system.q_slices[k]] for k, _ in joint.rows]
    nodes, m = joint.rows[0][1], len(joint.rows[0][1]) + 6
    assert joint.entries is not None and bodies[joint.rows[1][0]].name == "hand"
    block, b = np.empty(len(joint.entries[0])), np.empty(m)
    joint.prepare(q, 0.01)
    joint.assemble(settings, block, b)
    constraint = joint.constraint()
    assert constraint is not None
    lam = -50.0 * (q[0][nodes].reshape(-1, 3) - q[1][:3]).ravel()

    def push(at: np.ndarray) -> np.ndarray:
        moved = q[0].copy()
        moved[nodes] += 0.01 * at[:-6]
        joint.prepare([moved, bodies[joint.rows[1][0]].moved(q[1], at[-6:], 0.01)], 0.01, at)
        joint.take_rows(lam)
        return joint.push().copy()

    h = 1e-5
    J = np.stack([(push(h * way) - push(-h * way)) / (2.0 * h) for way in np.eye(m)], axis=1)
    push(np.zeros(m))
    joint.tangent(settings, block, b, positive=False)
    found, ways = np.zeros((m, m)), null_space(constraint.G)
    found[joint.entries] = block
    found, wanted = ways.T @ found @ ways, -0.5 * ways.T @ (J + J.T) @ ways
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())
    assert found.any()


def test_a_swinging_chain_takes_few_linearisations() -> None:
    """Of six bars, the last one heavy: 5.7 a step where no turn under the pull of a joint was resisted."""
    scene = fs.Scene("chain", dt=0.01, duration=0.6, theta=1.0)
    last: Any = "world"
    for k in range(6):
        bar = scene.add_rigid(f"bar{k}", fs.Box((0.05, 0.01, 0.01)), mass=1.0 if k == 5 else 0.1, position=(0.05 + 0.1 * k, 0, 0))
        scene.join(bar, last, "ball", at=(0.1 * k, 0.0, 0.0))
        last = bar
    run = fs.simulate(scene)
    assert run.verdict == "good" and run.steps["solves"].mean() < 3.0
