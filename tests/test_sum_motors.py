"""Motors on sums of joints of a robot: those of the joints where a sum has one, by hand where it has two, and of MJCF files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import femsim as fs

M = np.array([0.3, 0.5])


def sliders(*springs: fs.RobotSpring) -> fs.Robot:
    """Two boxes of the masses M that slide along x on a base by joints "i" and "j"."""
    base = fs.RobotLink.solid("base", fs.Piece(fs.Box((0.01,) * 3)), 1.0)
    boxes = [fs.RobotLink.solid(n, fs.Piece(fs.Box((0.01,) * 3)), m) for n, m in zip("ab", M, strict=True)]
    joints = [
        fs.RobotJoint(joint, "base", link, "prismatic", position=(0.0, y, 0.0), axis=(1.0, 0.0, 0.0))
        for joint, link, y in (("i", "a", 0.1), ("j", "b", -0.1))
    ]
    return fs.Robot("sliders", [base, *boxes], joints, springs=springs)


def scene_of(robot: fs.Robot, dt: float = 0.004, duration: float = 0.4, **more: Any) -> fs.Scene:
    """A robot "r" with a sensor on each joint."""
    scene = fs.Scene("motors", dt=dt, duration=duration, **more)
    scene.add_robot(robot, name="r", speeds={"i": 0.3})
    for joint in "ij":
        scene.sensor(joint, f"r.{joint}", kind="prismatic")
    return scene


DRIVES: list[dict[str, Any]] = [
    {"motion": fs.Profile([0.0, 0.2], [0.0, 0.1]), "stiffness": 200.0, "max_effort": 2.0},  # reaches its limit
    {"motion": fs.Profile([0.0, 0.2], [0.0, 0.1]), "stiffness": 200.0, "damping": 1.0, "effort": lambda t: np.sin(30.0 * t)},
    {"velocity": lambda t: 0.5, "damping": 20.0, "max_effort": 0.5},  # begins at its limit
    {"effort": lambda t: np.sin(9.0 * t), "max_effort": 0.7},
]


@pytest.mark.parametrize("theta", [None, 0.7, 1.0])
@pytest.mark.parametrize("drive", DRIVES)
def test_a_motor_on_the_sum_of_one_joint_is_one_of_that_joint(drive: dict[str, Any], theta: float | None) -> None:
    """Same places, speeds and efforts; what calms joints at the end of an energy-momentum step is in those of joints alone."""
    found = []
    for target in ("i", "t"):
        scene = scene_of(sliders(fs.RobotSpring("t", {"i": 1.0}, 0.0)), theta=theta, max_solves=25)
        scene.drive_joint("r", target, **drive)
        scene.sensor("t", "r.t", kind="spring")
        found.append(fs.simulate(scene))
    joint, own = (run.gauges["i"].values for run in found)
    assert own["position_m"] == pytest.approx(joint["position_m"], abs=1e-12)
    assert own["speed_mps"] == pytest.approx(joint["speed_mps"], abs=1e-11)
    pulled = found[1].tendons["t"].force
    assert -pulled == pytest.approx(joint["force_N"], abs=1e-9 if theta == 1.0 else 0.02)
    assert np.abs(pulled).max() > 0.4
    assert [str(run.verdict) for run in found] == ["good", "good"]


@pytest.mark.parametrize(("most", "force"), [(np.inf, None), (0.6, 0.6)])
def test_a_motor_pulls_two_joints_against_their_springs(most: float, force: float | None) -> None:
    """Each joint is displaced by its coefficient times the effort over its own stiffness; at its limit that is its effort."""
    c, k, K, target = np.array([1.0, -2.0]), np.array([60.0, 90.0]), 300.0, 0.05
    own = [fs.RobotSpring(f"s{joint}", {joint: 1.0}, k[n], damping=8.0) for n, joint in enumerate("ij")]
    scene = scene_of(sliders(*own, fs.RobotSpring("t", {"i": 1.0, "j": -2.0}, 0.0)), 0.005, 4.0)
    scene.drive_joint("r", "t", lambda t: target, stiffness=K, max_effort=most)
    scene.sensor("t", "r.t", kind="spring")
    run = fs.simulate(scene)
    by_hand = K * target / (1.0 + K * np.sum(c * c / k)) if force is None else force
    assert -run.tendons["t"].force[-1] == pytest.approx(by_hand, rel=1e-7)
    at = [run.gauges[joint].values["position_m"][-1] for joint in "ij"]
    assert at == pytest.approx(by_hand * c / k, rel=1e-7)


def test_damping_of_a_motor_on_a_sum_is_critical_for_what_it_moves() -> None:
    """The sum goes to its target by (1 + w t) exp(-w t); what has no part in it nearly stays."""
    c, K, target = np.array([1.0, -2.0]), 50.0, 0.02
    scene = fs.Scene("critical", dt=0.001, duration=0.4, gravity=(0.0, 0.0, 0.0))
    scene.add_robot(sliders(fs.RobotSpring("t", {"i": 1.0, "j": -2.0}, 0.0)), name="r")
    scene.drive_joint("r", "t", lambda t: target, stiffness=K)
    for joint in "ij":
        scene.sensor(joint, f"r.{joint}", kind="prismatic")
    run = fs.simulate(scene)
    x = np.column_stack([run.gauges[joint].values["position_m"] for joint in "ij"])
    t = 0.001 * np.arange(1, len(x) + 1)
    w = np.sqrt(K * np.sum(c * c / M))
    assert x @ c == pytest.approx(target * (1.0 - (1.0 + w * t) * np.exp(-w * t)), abs=1e-3 * target)
    free = x @ (np.array([2.0, 1.0]) * M)
    assert free == pytest.approx(0.0, abs=1e-4 * target)  # but for what calms each joint alone at the end of steps


def test_commands_move_the_sum_and_runs_go_on_with_the_same_bits() -> None:
    """``set`` takes the name of the robot and of the sum; what the motor remembers of the last step is restored."""
    scene = scene_of(sliders(fs.RobotSpring("t", {"i": 1.0, "j": -2.0}, 0.0)), duration=2.0)
    scene.drive_joint("r", "t", lambda t: 0.0, stiffness=300.0, damping=20.0, max_effort=3.0)
    simulation = fs.Simulation(scene)
    simulation.step(10)
    saved, after = simulation.save(), []
    for _ in range(2):
        simulation.restore(saved)
        simulation.set("r.t", 0.2)
        simulation.step(200)
        after.append(simulation.state.q.tobytes())
    assert after[0] == after[1]
    at = [float(simulation.read(joint).values["position_m"]) for joint in "ij"]
    assert at[0] - 2.0 * at[1] == pytest.approx(0.2, abs=1e-3)


FINGER = """<mujoco><compiler angle="radian"/><option gravity="0 0 0" timestep="0.0001"/><worldbody><body name="near">
<joint name="i" axis="0 1 0" damping="0.002"/><geom size="0.01" pos="0 0 0.02" mass="0.05"/>
<body name="far" pos="0 0 0.04"><joint name="j" axis="0 1 0" ref="0.1" stiffness="0.02" damping="0.002" springref="0.3"/>
<geom size="0.01" pos="0 0 0.02" mass="0.03"/></body></body></worldbody>
<tendon><fixed name="both"><joint joint="i" coef="1"/><joint joint="j" coef="0.7"/></fixed><fixed name="j">
<joint joint="j" coef="2"/></fixed><fixed name="loose"><joint joint="i" coef="1"/><joint joint="j" coef="1"/></fixed></tendon>
<actuator><position name="a" tendon="both" kp="0.5" kv="0.01" forcerange="-0.3 0.3"/><motor tendon="j"/><motor joint="i"/>
</actuator></mujoco>"""


def test_tendons_that_actuators_pull_are_sums_to_drive(tmp_path: Path) -> None:
    """Read with coefficients and without stiffness, said in a note, and moved as MuJoCo's actuator moves them."""
    path = tmp_path / "finger.xml"
    path.write_text(FINGER)
    robot = fs.load_robot(path)
    pulled = {spring.name: (dict(spring.joints), spring.stiffness) for spring in robot.springs}
    assert pulled == {"j": ({"j": 1.0}, 0.02), "both": ({"i": 1.0, "j": 0.7}, 0.0), "j_": ({"j": 2.0}, 0.0)}
    said = "actuators pull sums of joints; drive them by drive_joint: 'both', 'j_'"
    assert any(note.endswith(said) for note in robot.notes)
    scene = fs.Scene("finger", dt=0.0005, duration=0.3, gravity=(0.0, 0.0, 0.0))
    scene.add_robot(robot, name="r", joints={"j": 0.1})
    scene.drive_joint("r", "both", lambda t: 1.2, stiffness=0.5, damping=0.01, max_effort=0.3)
    scene.sensor("pull", "r.both", kind="torsion")
    for joint in "ij":
        scene.sensor(joint, f"r.{joint}", kind="revolute")
    run = fs.simulate(scene)
    at = np.column_stack([run.gauges[joint].values["angle_rad"] for joint in "ij"])
    torque = run.gauges["pull"].values["torque_Nm"]
    assert torque.min() == pytest.approx(-0.3, abs=1e-12) and run.gauges["pull"].values["angle_rad"] == pytest.approx(
        at @ (1.0, 0.7), abs=1e-12
    )
    _beside_mujoco(at, torque)


def _beside_mujoco(at: np.ndarray, torque: np.ndarray) -> None:
    """Compare places and pulls with MuJoCo's, at a fifth of the step, where it is installed."""
    try:
        import mujoco
    except ImportError:
        return
    model = mujoco.MjModel.from_xml_string(FINGER)
    data = mujoco.MjData(model)
    data.actuator("a").ctrl[0] = 1.2
    for k in range(len(at)):
        force = 0.0
        for _ in range(5):
            mujoco.mj_step(model, data)
            force += 0.2 * float(data.actuator("a").force[0])
        assert at[k] == pytest.approx(data.qpos, abs=5e-3)
        assert -torque[k] == pytest.approx(force, abs=5e-3)


@pytest.mark.parametrize(
    ("name", "drive", "said"),
    [
        ("t", {"motion": lambda t: 0.0}, "drive_joint of r.t: this is a sum of joints, which a servo moves; give a stiffness"),
        ("t", {"velocity": lambda t: 0.0}, "give damping, N s/m"),
        ("tt", {"effort": lambda t: 0.0}, "joint 'tt' is unknown; did you mean 't'?"),
        ("t", {"motion": lambda t: 0.0, "stiffness": -1.0}, "stiffness of r.t"),
    ],
)
def test_wrong_drives_of_sums_are_refused(name: str, drive: dict[str, Any], said: str) -> None:
    """Each by what to do."""
    scene = scene_of(sliders(fs.RobotSpring("t", {"i": 1.0, "j": 2.0}, 0.0)))
    with pytest.raises(fs.InputError) as error:
        scene.drive_joint("r", name, **drive)
    assert said in str(error.value)


def test_a_sum_is_driven_once_by_what_is_finite() -> None:
    """A second drive is refused, and a motion that ends in nan."""
    scene = scene_of(sliders(fs.RobotSpring("t", {"i": 1.0, "j": 2.0}, 0.0)))
    scene.drive_joint("r", "t", lambda t: 0.0 if t < 0.1 else float("nan"), stiffness=10.0)
    with pytest.raises(fs.InputError, match="it is driven already"):
        scene.drive_joint("r", "t", effort=lambda t: 0.0)
    with pytest.raises(fs.InputError, match=r"r\.t"):
        fs.simulate(scene)
