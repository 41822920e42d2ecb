"""Makes the small contact problems in data/problems: one step each of scenes of our own, as FCLib files.

    python benchmarks/make_problems.py [--out FOLDER] [--only NAME ...]

Each scene runs to a step in which its contacts are of the kind that the file is named for; the problem of that step is written
without its answer. The same code writes the same problems.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import femsim as fs
from contact import ContactProblem, LocalProblem, make_local_problem
from femsim.studies.problems.sets import arm
from femsim.studies.reproduction.measuring import Settings

OUT = Path(__file__).resolve().parents[1] / "data" / "problems"
RUBBER = fs.Elastic(2e5, 0.4, 1100.0, rayleigh_beta=2e-3, name="rubber")


def problem_of(scene: fs.Scene, step: int) -> ContactProblem:
    """Run a scene and return the problem of a step."""
    with tempfile.TemporaryDirectory() as folder:
        fs.simulate(scene, duration=step * scene.dt, out=Path(folder) / "run", dump_problems=(step, step), quiet=True)
        (file,) = (Path(folder) / "run" / "problems").glob("*.hdf5")
        problem = fs.read_fclib(file).problem
    assert isinstance(problem, ContactProblem) and problem.n_contacts
    return problem


def ball_on_floor() -> ContactProblem:
    """Return the problem of a soft ball that has just landed and slides."""
    scene = fs.Scene("ball_on_floor", dt=0.005, duration=0.1, default_friction=0.4, theta=1.0)
    scene.add_floor()
    scene.add_soft("ball", fs.ball_tets(0.02, 2), RUBBER, position=(0.0, 0.0, 0.0215), velocity=(0.5, 0.2, -0.4))
    return problem_of(scene, 6)


def rod_on_post() -> ContactProblem:
    """Return the problem of a rope that slides round a post."""
    return problem_of(fs.load_scene("capstan", wrap=90.0), 150)


def stack() -> ContactProblem:
    """Return the problem of three boxes, one on the other, pushed sideways: more forces than the motion can tell apart."""
    scene = fs.Scene("stack", dt=0.01, duration=0.1, default_friction=0.5, theta=1.0)
    scene.add_floor()
    for k, turn in enumerate((0.0, 0.3, 0.1)):
        scene.add_rigid(
            f"box_{k}", fs.Box((0.05, 0.05, 0.02)), mass=0.3 + k, position=(0.0, 0.0, 0.02 + 0.04 * k), rotation=(0.0, 0.0, turn),
            load=lambda t: ((2.0, 0.5, 0.0), (0.0, 0.0, 0.02)),
        )  # fmt: skip
    return problem_of(scene, 4)


def stack_of_rows() -> LocalProblem:
    """Return the stack in the local form: W = J A^-1 J^T, q = J A^-1 b + phi."""
    problem = stack()
    J, phi = problem.J.toarray(), problem.phi
    W = J @ np.linalg.solve(problem.A.toarray(), J.T)
    return make_local_problem(0.5 * (W + W.T), (J @ np.linalg.solve(problem.A.toarray(), problem.b)).reshape(-1, 3) + phi,
                              problem.friction)  # fmt: skip


def plane_blocks() -> LocalProblem:
    """Return two blocks of 1 and 2 kg on each other in the plane, the upper one pushed: one contact each, masses alone in W."""
    lower, upper, dt = 2.0, 1.0, 0.01
    weight, push = 9.81 * dt, 6.0 * dt / upper
    # rows: floor n, t, (second t), between n, t, (second t); u = W r + q with the velocities of the lower and upper block
    J = np.array([[1.0, 0.0], [-1.0, 1.0]])
    part = J @ np.diag([1.0 / lower, 1.0 / upper]) @ J.T
    W, q = np.zeros((6, 6)), np.zeros((2, 3))
    W[np.ix_([0, 3], [0, 3])] = W[np.ix_([1, 4], [1, 4])] = part
    q[:, 0], q[:, 1] = J @ [-weight, -weight], J @ [0.0, push]
    return make_local_problem(W, q, np.array([0.3, 0.4]))


def mat_pulled() -> ContactProblem:
    """Return the problem of a soft mat that is pulled over the floor: every node of its lower side slides or sticks."""
    return problem_of(Settings("tiny").pulled_mat(), 20)


def anisotropic_box() -> ContactProblem:
    """Return the problem of a box thrown over a floor with two friction coefficients."""
    return problem_of(fs.load_scene("anisotropic_box"), 20)


def cube_gripped() -> ContactProblem:
    """Return the problem of a soft cube between two fingers and the floor, as it is lifted."""
    return problem_of(Settings("tiny").ball(), 40)


def mat_on_itself() -> ContactProblem:
    """Return the problem of a folded strip whose upper half falls on its lower half."""
    side, thickness, gap = 0.06, 0.004, 0.006
    straight = fs.box_tets((side, 0.02, thickness), (8, 1, 1), alternating=False)
    # bend the right half over the left one
    radius = 0.5 * (thickness + gap)
    along, height, points = straight.points[:, 0], straight.points[:, 2], straight.points.copy()
    arc = np.pi * radius
    angle = np.clip(along / radius + 0.5 * np.pi, 0.0, np.pi)
    flat = np.where(along < -0.5 * arc, along + 0.5 * arc, np.where(along > 0.5 * arc, 0.5 * arc - along, 0.0))
    points[:, 0] = flat + (radius - height) * np.sin(angle)
    points[:, 2] = radius - (radius - height) * np.cos(angle)
    strip = fs.make_tetmesh(points, straight.tets, name="strip", source="make_problems.py")
    scene = fs.Scene("folded", dt=0.005, duration=0.2, theta=1.0, default_friction=0.3)
    scene.add_floor(-0.5 * thickness)
    scene.add_soft("strip", strip, fs.Elastic(2e4, 0.3, 1100.0, rayleigh_beta=5e-3, name="strip"), self_contact=True)
    return problem_of(scene, 24)


def soft_on_soft() -> ContactProblem:
    """Return the problem of a soft cube that falls, turned, on another one."""
    scene = fs.Scene("soft_on_soft", dt=0.005, duration=0.2, default_friction=0.5, theta=1.0)
    scene.add_floor()
    scene.add_soft("lower", fs.box_tets((0.04, 0.04, 0.02), (2, 2, 1), alternating=False), RUBBER, position=(0.0, 0.0, 0.01))
    scene.add_soft(
        "upper", fs.box_tets((0.03, 0.03, 0.02), (2, 2, 1), alternating=False), RUBBER, position=(0.004, 0.0, 0.0305),
        rotation=(0.0, 0.0, 0.4),
        velocity=(0.1, 0.0, -0.2),
    )  # fmt: skip
    return problem_of(scene, 8)


def mixed() -> ContactProblem:
    """Return the problem of a rigid box on a soft cube on the floor, with a rope across the box."""
    scene = fs.Scene("mixed", dt=0.005, duration=0.2, default_friction=0.4, theta=1.0)
    scene.add_floor()
    scene.add_soft("cube", fs.box_tets((0.04, 0.04, 0.02), (2, 2, 1), alternating=False), RUBBER, position=(0.0, 0.0, 0.01))
    scene.add_rigid("box", fs.Box((0.015, 0.015, 0.01)), density=800.0, position=(0.003, 0.0, 0.031), velocity=(0.0, 0.1, -0.1))
    x = np.linspace(-0.05, 0.05, 13)
    scene.add_rod(
        "rope", np.column_stack([x, 0.0 * x, 0.0445 + 0.0 * x]), fs.circular_section(0.002),
        fs.Elastic(1e6, 0.4, 1200.0, rayleigh_beta=2e-3, name="rope"), translational_damping=0.1,
    )  # fmt: skip
    return problem_of(scene, 16)


def jointed_arm() -> ContactProblem:
    """Return the problem of an arm of six links on hinges with motors and one limit, whose tip lies on the floor."""
    return arm()


#: Files by their names.
PROBLEMS: dict[str, Callable[[], ContactProblem | LocalProblem]] = {
    "anisotropic_box": anisotropic_box,
    "arm": jointed_arm,
    "ball_on_floor": ball_on_floor,
    "cube_gripped": cube_gripped,
    "mat_on_itself": mat_on_itself,
    "mat_pulled": mat_pulled,
    "mixed": mixed,
    "plane_blocks": plane_blocks,
    "rod_on_post": rod_on_post,
    "soft_on_soft": soft_on_soft,
    "stack": stack,
    "stack_of_rows": stack_of_rows,
}


def main() -> None:
    """Read the command line and write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the files")
    parser.add_argument("--only", choices=PROBLEMS, nargs="+", default=list(PROBLEMS), help="which of them")
    chosen = parser.parse_args()
    folder = chosen.out
    for name in chosen.only:
        make = PROBLEMS[name]
        problem = make()
        path = folder / f"{name}.hdf5"
        said = (make.__doc__ or "").removeprefix("Return the problem of ").removeprefix("Return ").strip()
        fs.write_fclib(path, problem, title=name, description=said, spacedim=2 if name == "plane_blocks" else 3)
        answer = fs.solve_problem(path, "exact", tolerance=1e-8)
        print(f"{name}: {problem.n_contacts} contacts, {path.stat().st_size / 1e3:.0f} kB, exact: {answer.status}")


if __name__ == "__main__":
    main()
