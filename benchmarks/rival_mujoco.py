"""The box, the mat and the ball by MuJoCo."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import femsim as fs
from benchmarks import rival_tasks as tasks
from benchmarks.rival_tasks import Result, Run, Task, timed
from meshes import TetMesh

#: Contact of MuJoCo: as it comes, and as stiff and dry as holds: twice the time step, elliptic cones, stiffer tangents.
CONTACTS = {
    "default": ("", ""),
    "stiff": ('solref="{twice} 1" solimp="0.99 0.999 0.0005"', 'cone="elliptic" impratio="10"'),
}


def mujoco_of(task: Task, contact: str, body: str) -> tuple[Any, Any]:
    """Model and data of MuJoCo, with a floor and one of the :data:`CONTACTS`; of its solvers the one that is quicker there."""
    import mujoco

    mujoco.set_mju_user_warning(lambda _: None)  # of soft bodies that its linear solver does not get to the end; else in a file
    solver = "CG" if "flexcomp" in body else "Newton"
    geoms, options = CONTACTS[contact]
    geoms = geoms.format(twice=2.0 * task.dt)
    model = mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <option timestep="{task.dt}" gravity="0 0 {-tasks.GRAVITY}" integrator="discrete" solver="{solver}" {options}/>
      <default><geom {geoms}/></default>
      <worldbody>
        <geom name="floor" type="plane" size="5 5 0.1" friction="0.3 0 0"/>
        {body.format(contact=geoms)}
      </worldbody>
    </mujoco>""")
    return model, mujoco.MjData(model)


def flex(name: str, mesh: TetMesh, material: fs.Elastic, friction: float, place: tuple[float, float, float]) -> str:
    """Soft body of MuJoCo on the same tetrahedra, its points without a size of their own as far as it allows."""
    points = " ".join(f"{x:.9g}" for x in (mesh.points + place).ravel())
    elements = " ".join(map(str, mesh.tets.ravel()))
    corners = mesh.points[mesh.tets]
    volume = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])).sum() / 6.0
    return f"""
    <flexcomp name="{name}" type="direct" dim="3" point="{points}" element="{elements}" mass="{material.density * volume}"
              radius="1e-5">
      <contact selfcollide="none" friction="{friction} 0 0" {{contact}}/>
      <elasticity young="{material.young_modulus}" poisson="{material.poisson_ratio}" damping="{material.rayleigh_beta}"/>
    </flexcomp>"""


def points_of(data: Any) -> np.ndarray:
    """Places of the nodes of a flex, (n, 3), m."""
    return np.asarray(data.flexvert_xpos).reshape(-1, 3).copy()


def mujoco_box(task: Task, force: float, contact: str) -> Result:
    """Make the same box for MuJoCo."""
    import mujoco

    size = " ".join(3 * [str(tasks.BOX_HALF)])
    box = f'<geom type="box" size="{size}" mass="{tasks.BOX_MASS}" friction="{tasks.BOX_FRICTION} 0 0"/>'
    model, data = mujoco_of(task, contact, f'<body pos="0 0 {tasks.BOX_HALF}"><freejoint/>{box}</body>')
    data.xfrc_applied[1, 0] = force
    way, heights = [], []

    def look(_: int) -> None:
        way.append(float(data.qpos[0]))
        heights.append(float(data.qpos[2]))

    times = timed(partial(mujoco.mj_step, model, data), task, look)
    return Result(f"MuJoCo, {contact}", *times, tasks.box_quality(task, force, way, heights))


def mujoco_mat(task: Task, force: float, contact: str) -> Result:
    """Make the same mat for MuJoCo; the pull is shared by the nodes by their masses."""
    import mujoco

    model, data = mujoco_of(
        task, contact, flex("mat", tasks.mat_mesh(), tasks.MAT, tasks.MAT_FRICTION, (0.0, 0.0, tasks.MAT_HEIGHT / 2))
    )
    data.xfrc_applied[1:, 0] = force * model.body_mass[1:] / model.body_mass.sum()
    place, depth = [], []

    def look(_: int) -> None:
        points = points_of(data)
        place.append(float(points[:, 0].mean()))
        depth.append(-float(points[:, 2].min()))

    times = timed(partial(mujoco.mj_step, model, data), task, look)
    return Result(f"MuJoCo, {contact}", *times, tasks.mat_quality(task, force, place, depth))


def mujoco_ball(task: Task, contact: str) -> Result:
    """Make the same ball for MuJoCo, and a hand on a slide, led by a servo, whose fingers slide, pushed by the same force."""
    import mujoco

    mesh, standing = tasks.ball_mesh()
    size = " ".join(map(str, tasks.PAD))
    fingers = "".join(
        f'<body pos="{side * tasks.REACH} 0 0"><joint name="{name}" type="slide" axis="{-side} 0 0"/><geom type="box" '
        f'size="{size}" mass="{tasks.FINGER}" friction="{tasks.BALL_FRICTION} 0 0"/></body>'
        for name, side in (("left", -1.0), ("right", 1.0))
    )
    hand = (
        f'<body pos="0 0 {tasks.BALL_RADIUS}"><joint name="lift" type="slide" axis="0 0 1"/>'
        f'<inertial pos="0 0 0" mass="{tasks.HAND}" diaginertia="1e-3 1e-3 1e-3"/>{fingers}</body>'
    )
    ball = flex("ball", mesh, tasks.BALL_MATERIAL, tasks.BALL_FRICTION, (0.0, 0.0, standing))
    model, data = mujoco_of(task, contact, hand + ball)
    lift, *pads = (int(model.joint(name).dofadr[0]) for name in ("lift", "left", "right"))
    place, below, depth = int(model.joint("lift").qposadr[0]), [], []

    def step() -> None:
        t = data.time + task.dt
        rate = (tasks.height(t) - tasks.height(t - task.dt)) / task.dt
        data.qfrc_applied[lift] = tasks.STIFF * (tasks.height(t) - data.qpos[place]) + tasks.DAMP * (rate - data.qvel[lift])
        data.qfrc_applied[pads] = tasks.CLOSE(t)
        mujoco.mj_step(model, data)

    def look(_: int) -> None:
        below.append(float(data.qpos[place]) - float(points_of(data)[:, 2].mean()))
        depth.append(max([0.0, *(-np.asarray(data.contact.dist))]))

    times = timed(step, task, look)
    return Result(f"MuJoCo, {contact}", *times, tasks.ball_quality(task, below, depth))


#: What it does of each kind of task, with each of the :data:`CONTACTS`.
RUNS: dict[str, list[Run]] = {
    kind: [partial(run, contact=contact) for contact in CONTACTS]
    for kind, run in {"box": mujoco_box, "mat": mujoco_mat, "ball": mujoco_ball}.items()
}
