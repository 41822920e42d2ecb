"""Do robots move as Pinocchio and MuJoCo say? Mass matrix, bias and Jacobians of URDF files, at random places and speeds.

    pip install pin mujoco example-robot-data
    python benchmarks/judge_robots.py FOLDER            # every .urdf below it
    python benchmarks/judge_robots.py data/robots

With Pinocchio each robot is compared twice, its base held and free; with MuJoCo, where its parser takes the file, with its base
held, and without the Jacobians. Printed are the largest differences over the largest value of each quantity; the exit status is 1
where one is above 1e-10. Files that femsim refuses are listed with its sentence. A joint that mimics another is one of its
own for both judges; their models are reduced to the joints that are free (v = G v_free).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import femsim as fs  # noqa: E402

#: Agreement that is asked for, and random states of each robot.
TOLERANCE, STATES = 1e-10, 5
GRAVITY = np.array([0.3, -0.2, -9.81])


@dataclass(frozen=True)
class Judged:
    """Largest relative differences from Pinocchio, and how many velocities the robot has."""

    speeds: int
    mass: float
    bias: float
    jacobian: float


def without_geometry(path: Path) -> str:
    """Text of a URDF file without its visuals and collisions, whose meshes the dynamics do not need."""
    tree = ElementTree.parse(path)
    for link in tree.getroot().iter("link"):
        for piece in [*link.findall("visual"), *link.findall("collision")]:
            link.remove(piece)
    return ElementTree.tostring(tree.getroot(), encoding="unicode")


def robot_of(text: str, base: Literal["fixed", "free"]) -> tuple[Any, dict[str, tuple[str, float, float]]]:
    """Our robot of a URDF text, and which of its joints follow another one: (name, factor, offset)."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "robot.urdf"
        file.write_text(text, encoding="utf-8")
        robot = fs.load_robot(file)
    if not robot.joint_names():
        raise ValueError("it has no joint that moves")
    scene = fs.Scene("judged", gravity=tuple(GRAVITY))
    scene.add_robot(robot, name="robot", base=base, self_contact=False)
    return scene.bodies[0], {joint.name: joint.mimic for joint in robot.joints if joint.mimic is not None}


def judge(path: Path, base: Literal["fixed", "free"], seed: int = 0) -> Judged:
    """Compare a robot with Pinocchio's, its base held or free."""
    import pinocchio

    fixed = base == "fixed"
    text = without_geometry(path)
    body, follows = robot_of(text, base)
    model = pinocchio.buildModelFromXML(text) if fixed else pinocchio.buildModelFromXML(text, pinocchio.JointModelFreeFlyer())
    model.gravity.linear = GRAVITY
    data, rng = model.createData(), np.random.default_rng(seed)
    names = body.joint_names()
    differences = np.zeros(3)
    for _ in range(STATES):
        places, speeds = rng.uniform(-1.0, 1.0, len(names)), rng.normal(size=len(names))
        q, v = body.initial_q().copy(), np.zeros(body.n_v)
        G = np.zeros((model.nv, body.n_v))
        qp = pinocchio.neutral(model)
        if not fixed:
            turn = rng.normal(size=4)
            q[:3], q[3:7] = rng.normal(size=3), turn / np.linalg.norm(turn)
            v[:6] = rng.normal(size=6)
        for name, place, speed in zip(names, places, speeds, strict=True):
            joint = body.joint(name)
            q[joint.coordinate], v[joint.row] = place, speed
        rate = np.zeros(body.n_v)
        if not fixed:
            pose, origin = body.frame_pose(q, 0)
            R, arm = pose, body.link_pose(q, 0)[1] - origin
            qp[:3], qp[3:7] = origin, _xyzw(R)
            # local velocity of the frame of the base by that of its centre of mass
            G[:3, :3], G[3:6, 3:6] = R.T, R.T
            G[:3, 3:6] = R.T @ _cross(arm)
        for index in range(1 if fixed else 2, model.njoints):
            name, place = model.names[index], model.joints[index]
            own, factor, offset = follows.get(name, (name, 1.0, 0.0))
            joint = body.joint(own)
            angle = factor * q[joint.coordinate] + offset
            qp[place.idx_q : place.idx_q + place.nq] = (np.cos(angle), np.sin(angle)) if place.nq == 2 else angle
            G[place.idx_v, joint.row] = factor
        vp = G @ v
        if not fixed:  # Pinocchio's bias is that of a local acceleration of zero; ours of the acceleration of the centre of mass
            turning = v[3:6]
            rate[:3] = np.cross(turning, v[:3])
        rows = slice(6, None) if fixed else slice(None)
        M = pinocchio.crba(model, data, qp)
        M = np.triu(M) + np.triu(M, 1).T
        theirs = (G.T @ M @ G)[rows, rows]
        ours = body.mass_matrix(q)[rows, rows]
        differences[0] = max(differences[0], _relative(ours, theirs))
        theirs = (G.T @ pinocchio.nonLinearEffects(model, data, qp, vp))[rows]
        ours = body.inverse_dynamics(q, v, rate, GRAVITY)[rows]
        differences[1] = max(differences[1], _relative(ours, theirs))
        pinocchio.computeJointJacobians(model, data, qp)
        pinocchio.updateFramePlacements(model, data)
        for link, name in enumerate(body.links):
            if not model.existFrame(name, pinocchio.FrameType.BODY):
                continue
            frame = model.getFrameId(name, pinocchio.FrameType.BODY)
            J = pinocchio.getFrameJacobian(model, data, frame, pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            J = J.reshape(6, model.nv) @ G  # of one joint it is a row
            S = body.link_jacobian(q, link)
            arm = body.link_pose(q, link)[1] - body.frame_pose(q, link)[1]
            J[:3] -= _cross(arm) @ J[3:]
            differences[2] = max(differences[2], _relative(S[:, rows], J[:, rows]))
    return Judged(body.n_v - (6 if fixed else 0), *differences.tolist())


def judge_by_mujoco(path: Path, seed: int = 0) -> tuple[float, float] | None:
    """Differences of mass matrix and bias from MuJoCo, the base held; None where its parser refuses the file."""
    import mujoco

    text = without_geometry(path)
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError:
        return None
    body, follows = robot_of(text, "fixed")
    model.opt.gravity[:] = GRAVITY
    data, rng, names = mujoco.MjData(model), np.random.default_rng(seed), body.joint_names()
    differences = np.zeros(2)
    for _ in range(STATES):
        q, v = body.initial_q().copy(), np.zeros(body.n_v)
        for name in names:
            joint = body.joint(name)
            q[joint.coordinate], v[joint.row] = rng.uniform(-1.0, 1.0), rng.normal()
        G = np.zeros((model.nv, body.n_v))
        for index in range(model.njnt):
            one = model.joint(index)
            own, factor, offset = follows.get(one.name, (one.name, 1.0, 0.0))
            joint = body.joint(own)
            data.qpos[one.qposadr[0]] = factor * q[joint.coordinate] + offset
            G[one.dofadr[0], joint.row] = factor
        data.qvel[:] = G @ v
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        differences[0] = max(differences[0], _relative(body.mass_matrix(q)[6:, 6:], (G.T @ M @ G)[6:, 6:]))
        ours = body.inverse_dynamics(q, v, np.zeros(body.n_v), GRAVITY)
        differences[1] = max(differences[1], _relative(ours[6:], (G.T @ data.qfrc_bias)[6:]))
    return float(differences[0]), float(differences[1])


def _relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max(initial=0.0) / max(np.abs(b).max(initial=0.0), 1e-300)) if a.size else 0.0


def _cross(a: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def _xyzw(R: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(R).as_quat())


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    worst, good, also = 0.0, 0, 0
    for path in sorted(chosen.folder.rglob("*.urdf")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                held, free = judge(path, "fixed"), judge(path, "free")
                beside = judge_by_mujoco(path)
        except (fs.InputError, ValueError) as error:
            print(f"{path.name:36s} not compared: {' '.join(str(error).split()).split('robot.urdf: ')[-1][:120]}")
            continue
        values = [max(getattr(one, name) for one in (held, free)) for name in ("mass", "bias", "jacobian")]
        good += max(values) <= TOLERANCE
        worst = max(worst, *values)
        said = ", ".join(f"{name} {value:.1e}" for name, value in zip(("mass matrix", "bias", "Jacobians"), values, strict=True))
        if beside is not None:
            worst, also = max(worst, *beside), also + (max(beside) <= TOLERANCE)
            said += f"; MuJoCo: mass matrix {beside[0]:.1e}, bias {beside[1]:.1e}"
        print(f"{path.name:36s} {held.speeds:3d} joints: {said}", flush=True)
    print(f"{good} robots within {TOLERANCE:g} of Pinocchio, {also} of MuJoCo; the largest difference is {worst:.1e}")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
