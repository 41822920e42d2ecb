"""Springs on sums of joints of a robot: what they pull with, by hand and beside MuJoCo, and that they keep energy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import femsim as fs


def sliders(springs: Sequence[fs.RobotSpring], masses: tuple[float, float] = (0.3, 0.5)) -> fs.Robot:
    """Two boxes "a" and "b" that slide along x on a base by joints "i" and "j"."""
    base = fs.RobotLink.solid("base", fs.Piece(fs.Box((0.01,) * 3)), 1.0)
    boxes = [fs.RobotLink.solid(n, fs.Piece(fs.Box((0.01,) * 3)), m) for n, m in zip("ab", masses, strict=True)]
    joints = [
        fs.RobotJoint(joint, "base", link, "prismatic", position=(0.0, y, 0.0), axis=(1.0, 0.0, 0.0))
        for joint, link, y in (("i", "a", 0.1), ("j", "b", -0.1))
    ]
    return fs.Robot("sliders", [base, *boxes], joints, springs=springs)


def swing(
    spring: fs.RobotSpring, dt: float, duration: float, joints: dict[str, float], damping: float = 0.0, **more: object
) -> fs.Run:
    """Let both boxes go where they are, without weight."""
    scene = fs.Scene("springs", dt=dt, duration=duration, gravity=(0.0, 0.0, 0.0), strain_damping=damping)
    scene.add_robot(sliders([spring]), name="r", joints=joints, **more)  # type: ignore[arg-type]
    for joint in "ij":
        scene.sensor(joint, f"r.{joint}", kind="prismatic")
    return fs.simulate(scene)


def places(run: fs.Run) -> np.ndarray:
    """Positions of both joints, (n, 2), m."""
    return np.column_stack([run.gauges[joint].values["position_m"] for joint in "ij"])


def speeds(run: fs.Run) -> np.ndarray:
    """Their speeds, (n, 2), m/s."""
    return np.column_stack([run.gauges[joint].values["speed_mps"] for joint in "ij"])


C, M, K = np.array([1.0, -2.0]), np.array([0.3, 0.5]), 40.0


def test_two_sliders_swing_as_by_hand_and_keep_their_energy() -> None:
    """s = i - 2 j swings by w^2 = k (1/m_i + 4/m_j); what has no part in s goes on as it went."""
    at, rest = {"i": 0.02, "j": 0.01}, 0.03
    spring = fs.RobotSpring("t", {"i": 1.0, "j": -2.0}, K, rest)
    w = np.sqrt(K * np.sum(C * C / M))
    found = {}
    for dt in (0.002, 0.001):
        run = swing(spring, dt, 0.2, at, speeds={"i": 0.1})
        x, v = places(run), speeds(run)
        t = dt * np.arange(1, len(x) + 1)
        s0, r0 = -rest, 0.1  # C @ (0.02, 0.01) is 0
        s = rest + s0 * np.cos(w * t) + r0 / w * np.sin(w * t)
        found[dt] = np.abs(x @ C - s).max()
        free = x @ (np.array([2.0, 1.0]) * M)  # the force has no part along this
        assert free == pytest.approx(2.0 * M[0] * (0.02 + 0.1 * t) + M[1] * 0.01, abs=1e-12)
        energy = 0.5 * v**2 @ M + 0.5 * K * (x @ C - rest) ** 2
        assert energy == pytest.approx(np.full(len(t), 0.5 * M[0] * 0.1**2 + 0.5 * K * rest**2), rel=1e-11)
    assert found[0.002] < 2e-3 * rest and found[0.001] < 0.3 * found[0.002]


def test_a_spring_is_slack_within_its_range_and_gives_back_what_it_took() -> None:
    """Between its ends the boxes go on as they went; beyond either it throws them back with the energy that they had."""
    spring = fs.RobotSpring("t", {"i": 1.0, "j": -2.0}, K, (-0.01, 0.02))
    run = swing(spring, 0.002, 1.0, {"i": 0.0, "j": 0.0}, speeds={"i": 0.2, "j": -0.1})
    s, v = places(run) @ C, speeds(run)
    beyond = np.maximum(s - 0.02, 0.0) + np.maximum(-0.01 - s, 0.0)
    energy = 0.5 * v**2 @ M + 0.5 * K * beyond**2
    assert energy == pytest.approx(np.full(len(s), 0.5 * (M[0] * 0.04 + M[1] * 0.01)), rel=1e-10)
    assert s.max() > 0.025 and s.min() < -0.015
    inside = (s[1:] > -0.01) & (s[1:] < 0.02) & (s[:-1] > -0.01) & (s[:-1] < 0.02)
    assert np.diff(v, axis=0)[inside] == pytest.approx(0.0, abs=1e-12) and inside.sum() > 20


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_damped_springs_come_to_rest_where_forces_balance(theta: float) -> None:
    """Against a constant effort: s is its rest plus effort over stiffness; a joint that is held exactly bears the other part."""
    scene = fs.Scene("rest", dt=0.005, duration=4.0, theta=theta)
    robot = sliders([fs.RobotSpring("t", {"i": 1.0, "j": -2.0}, K, 0.01, damping=3.0)])
    scene.add_robot(robot, name="r")
    scene.drive_joint("r", "i", effort=lambda t: 0.8)
    scene.drive_joint("r", "j", lambda t: 0.0)
    for joint in "ij":
        scene.sensor(joint, f"r.{joint}", kind="prismatic")
    run = fs.simulate(scene)
    assert run.gauges["i"].values["position_m"][-1] == pytest.approx(0.01 + 0.8 / K, abs=1e-9)
    assert run.gauges["j"].values["force_N"][-1] == pytest.approx(-2.0 * 0.8, abs=1e-7)


def test_stiff_springs_do_not_turn_their_joints_round_in_each_step() -> None:
    """One of 1e8 N/m, a hundred swings a step, comes to rest, and the joint that it couples follows."""
    run = swing(fs.RobotSpring("t", {"i": 1.0, "j": -2.0}, 1e8, 0.0), 0.005, 0.3, {"i": 1e-4}, damping=0.05, speeds={"i": 0.1})
    s = places(run) @ C
    assert np.abs(s[-10:]).max() < 1e-9
    assert np.ptp(speeds(run)[-10:], axis=0) == pytest.approx(0.0, abs=1e-6)


def test_inverse_dynamics_and_mimics_have_the_springs() -> None:
    """Efforts bear the springs; the coefficient of a joint that mimics another counts there, with its factor and offset."""
    joints = [
        fs.RobotJoint("i", "base", "a", "prismatic", position=(0, 0.1, 0), axis=(1, 0, 0)),
        fs.RobotJoint("j", "base", "b", "prismatic", position=(0, -0.1, 0), axis=(1, 0, 0), mimic=("i", 0.5, 0.1)),
    ]
    plain = sliders([])
    spring = fs.RobotSpring("t", {"i": 1.0, "j": -3.0}, K, (-0.2, 0.1), damping=0.7)
    robot = fs.Robot("m", plain.links, joints, springs=[spring])
    for at, speed in ((0.3, 0.0), (0.3, 0.2), (-0.2, 0.0), (-1.0, 0.1)):
        s, rate = at - 3.0 * (0.5 * at + 0.1), (1.0 - 1.5) * speed
        beyond = max(s - 0.1, 0.0) + min(s + 0.2, 0.0)
        found = robot.inverse_dynamics({"i": at}, {"i": speed})["i"]
        assert found == pytest.approx((K * beyond + 0.7 * rate) * (1.0 - 1.5), abs=1e-12)


def test_runs_go_on_with_the_same_bits() -> None:
    """What a spring remembers of the last steps is saved and restored."""
    scene = fs.Scene("springs", dt=0.005, duration=1.0)
    scene.add_robot(sliders([fs.RobotSpring("t", {"i": 1.0, "j": -2.0}, 1e5, 0.01)]), name="r", speeds={"i": 0.3})
    simulation = fs.Simulation(scene)
    for _ in range(5):
        simulation.step()
    saved = simulation.save()
    after = []
    for _ in range(2):
        simulation.restore(saved)
        for _ in range(5):
            simulation.step()
        after.append((simulation.state.q.tobytes(), simulation.state.v.tobytes()))
    assert after[0] == after[1]


@pytest.mark.parametrize(("theta", "damping"), [(None, 0.0), (None, 0.6), (1.0, 0.6)])
def test_sensors_read_what_springs_pull_with(theta: float | None, damping: float) -> None:
    """Momentum of each box changes by minus its coefficient times the force, which is that of the sum and of its speed.

    Dampers also calm joints at the end of the energy-momentum step, by 1e-5 of the force here.
    """
    scene = fs.Scene("read", dt=0.002, duration=0.2, gravity=(0.0, 0.0, 0.0), theta=theta, strain_damping=0.0)  # type: ignore[arg-type]
    spring = fs.RobotSpring("t", {"i": 1.0, "j": -2.0}, K, (0.01, 0.03), damping=damping)
    scene.add_robot(sliders([spring]), name="r", joints={"i": 0.06}, speeds={"i": 0.1})
    for joint in "ij":
        scene.sensor(joint, f"r.{joint}", kind="prismatic")
    scene.sensor("own", "r.t", kind="spring")
    scene.sensor("only", "r", kind="spring")  # the robot has this one alone
    run = fs.simulate(scene)
    force, length = (run.tendons["own"].by_column()[name] for name in ("force_N", "length_m"))
    assert list(run.tendons["own"].by_column()) == ["force_N", "length_m"]
    assert np.array_equal(run.tendons["only"].force, force)
    assert length == pytest.approx(places(run) @ C, abs=1e-14)
    v = np.vstack([[0.1, 0.0], speeds(run)])
    calmed = 1e-4 if theta is None and damping else 1e-9
    assert np.diff(v, axis=0) * M / scene.dt == pytest.approx(np.outer(-force, C), abs=calmed)
    s = np.concatenate([[0.06], length])
    ends = K * (np.maximum(s - 0.03, 0.0) + np.minimum(s - 0.01, 0.0))
    rates = np.diff(s) / scene.dt
    both = (s[1:] > 0.03) & (s[:-1] > 0.03) if theta is None else np.ones(len(force), dtype=np.bool_)
    by_hand = (ends[1:] if theta else 0.5 * (ends[:-1] + ends[1:])) + damping * rates
    assert both.sum() > 10 and force[both] == pytest.approx(by_hand[both], abs=1e-6)
    assert force.max() > 1.0 and force.min() < -0.1


HINGES = """<mujoco><compiler angle="radian"/><worldbody><body name="base"><geom size="0.02" mass="1"/>
<body name="t"><joint name="i" axis="0 1 0" stiffness="0.5" springref="0.2"/><geom size="0.02" pos="0 0 0.1" mass="0.1"/>
<body name="b" pos="0 0 0.2"><joint name="j" axis="0 1 0"/><geom size="0.02" pos="0 0 0.1" mass="0.1"/></body></body>
</body></worldbody><tendon><fixed name="t" stiffness="300"><joint joint="i" coef="0.02"/><joint joint="j" coef="0.01"/></fixed>
</tendon></mujoco>"""


def hinges(tmp_path: Path) -> fs.Scene:
    """A finger whose joint "i" has a spring of that name, and a tendon that is named as its first link."""
    (tmp_path / "hinges.xml").write_text(HINGES)
    scene = fs.Scene("hinges", dt=0.002, duration=0.02, strain_damping=0.0)
    scene.add_robot(tmp_path / "hinges.xml", name="r", joints={"i": 0.5})
    return scene


def test_springs_of_files_are_read_in_the_units_of_their_sum_beside_joints_and_links_of_their_name(tmp_path: Path) -> None:
    """A hinge of N m and rad; a tendon on pulleys in m/rad of N and m, or as another one where its coefficients are numbers."""
    scene = hinges(tmp_path)
    scene.sensor("hinge", "r.i", kind="torsion")
    scene.sensor("tendon", "r.t", kind="spring")
    scene.sensor("turned", "r.t", kind="torsion")
    scene.sensor("motor", "r.i", kind="revolute")
    scene.sensor("other", "r.j", kind="revolute")
    scene.sensor("touch", "r.t")
    scene.sensor("place", "r.i", kind="marker")
    run = fs.simulate(scene)
    hinge, tendon = run.gauges["hinge"].values, run.tendons["tendon"].by_column()
    i, j = (np.concatenate([[start], run.gauges[n].values["angle_rad"]]) for n, start in (("motor", 0.5), ("other", 0.0)))
    assert list(hinge) == ["torque_Nm", "angle_rad"] and hinge["angle_rad"] == pytest.approx(i[1:], abs=1e-14)
    assert hinge["torque_Nm"] == pytest.approx(0.5 * (0.5 * (i[1:] + i[:-1]) - 0.2), rel=1e-9)
    pulled = 0.02 * i + 0.01 * j
    assert tendon["length_m"] == pytest.approx(pulled[1:], abs=1e-14)
    assert tendon["force_N"] == pytest.approx(300.0 * (0.5 * (pulled[1:] + pulled[:-1]) - 0.02 * 0.2), rel=1e-9)
    assert np.array_equal(run.gauges["turned"].values["torque_Nm"], tendon["force_N"])
    assert run.gauges["motor"].values["torque_Nm"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("on", "kind", "said"),
    [
        ("r", "torsion", "'r' has ['r.i', 'r.t'] of kind 'torsion'; name one of them"),
        ("r.k", "spring", "nothing of kind 'spring' is on 'r.k'; did you mean"),
        ("r.t", "prismatic", "kind 'prismatic' needs a joint of a robot that slides"),
        ("r.i", "tendon", "'r.i' has no kind 'tendon'; use 'torsion' or 'spring', or name the body"),
    ],
)
def test_wrong_sensors_of_springs_are_refused(tmp_path: Path, on: str, kind: str, said: str) -> None:
    """With what there is."""
    with pytest.raises(fs.InputError) as error:
        hinges(tmp_path).sensor("s", on, kind=kind)
    assert said in str(error.value)


def test_sums_that_slide_have_no_torque() -> None:
    """A spring between sliders has kind "spring" alone."""
    scene = fs.Scene("read", dt=0.002, duration=0.2)
    scene.add_robot(sliders([fs.RobotSpring("t", {"i": 1.0}, K)]), name="r")
    with pytest.raises(fs.InputError, match=r"'r\.t' has no kind 'torsion'; use 'spring', or name the body"):
        scene.sensor("s", "r.t", kind="torsion")


TENDONS = """<mujoco><compiler angle="radian"/><worldbody><body name="base"><geom size="0.02" mass="1"/>
<body name="a"><joint name="i" axis="0 1 0" springref="0.2"/><geom size="0.02" pos="0 0 0.1" mass="0.1"/>
<body name="b" pos="0 0 0.2"><joint name="j" axis="0 1 0" ref="0.3" springref="-0.1"/>
<geom size="0.02" pos="0 0 0.1" mass="0.1"/></body></body>
<body name="c"><joint name="k" axis="1 0 0"/><geom size="0.02" pos="0.1 0 0.1" mass="0.1"/></body></body></worldbody>
<default><default class="soft"><tendon stiffness="0.7"/></default></default>
<tendon><fixed name="t" stiffness="0.4" springlength="0.001"><joint joint="i" coef="1"/><joint joint="j" coef="-3"/>
<joint joint="k" coef="1"/></fixed><fixed name="u" class="soft" damping="0.05"><joint joint="i" coef="2"/>
<joint joint="k" coef="-1"/></fixed>
<fixed name="w" stiffness="2" springlength="-0.3 0.2"><joint joint="j" coef="1.5"/></fixed></tendon></mujoco>"""


def test_springs_of_tendons_pull_as_those_of_mujoco(tmp_path: Path) -> None:
    """Forces at random places and speeds: three joints, a class, length at rest by springref, a range of it, a damper."""
    path = tmp_path / "springs.xml"
    path.write_text(TENDONS)
    robot = fs.load_robot(path)
    assert [spring.name for spring in robot.springs] == ["t", "u", "w"] and not any("tendon" in note for note in robot.notes)
    stiff = {"t": (0.4, {"i": 1, "j": -3, "k": 1}, 0.001, 0.001), "u": (0.7, {"i": 2, "k": -1}, 0.4, 0.4)}
    stiff["w"] = (2.0, {"j": 1.5}, -0.3, 0.2)
    rng = np.random.default_rng(5)
    bare = fs.Robot("bare", robot.links, robot.joints)
    for _ in range(20):
        at, speed = (dict(zip("ijk", rng.uniform(-0.5, 0.5, 3), strict=True)) for _ in range(2))
        own, without = (one.inverse_dynamics(at, speed) for one in (robot, bare))
        by_hand = dict.fromkeys("ijk", 0.0)
        for name, (k, coefficients, low, high) in stiff.items():
            s = sum(c * at[joint] for joint, c in coefficients.items())
            rate = sum(c * speed[joint] for joint, c in coefficients.items())
            pull = k * (max(s - high, 0.0) + min(s - low, 0.0)) + (0.05 * rate if name == "u" else 0.0)
            for joint, c in coefficients.items():
                by_hand[joint] += c * pull
        assert {joint: own[joint] - without[joint] for joint in "ijk"} == pytest.approx(by_hand, abs=1e-13)
        _beside_mujoco(at, speed, by_hand)


def _beside_mujoco(at: dict[str, float], speed: dict[str, float], efforts: dict[str, float]) -> None:
    """Compare with MuJoCo's passive forces, where it is installed."""
    try:
        import mujoco
    except ImportError:
        return
    model = mujoco.MjModel.from_xml_string(TENDONS)
    data = mujoco.MjData(model)
    for name in "ijk":
        data.joint(name).qpos[0], data.joint(name).qvel[0] = at[name], speed[name]
    mujoco.mj_forward(model, data)
    assert {name: -float(data.joint(name).qfrc_passive[0]) for name in "ijk"} == pytest.approx(efforts, abs=1e-13)


DAMPED = """<mujoco><compiler settotalmass="3"/><worldbody><body name="a">{free}<geom size="0.02" mass="1"/>
<body name="b"><joint name="i" axis="0 1 0" armature="0.01" springdamper="0.05 0.8" stiffness="3" damping="2" ref="20"
springref="30"/><geom size="0.02" pos="0 0 0.1" mass="0.2"/><body name="c" pos="0 0 0.2">
<joint name="j" type="slide" axis="0 1 1" range="1 2" springdamper="0.1 1.2"/><geom size="0.02" pos="0.1 0.1 0.1" mass="0.1"/>
<body name="d"><joint name="k" axis="1 0 0" damping="0.3"/><geom size="0.02" pos="0.1 0.1 0.2" mass="0.1"/></body></body></body>
</body></worldbody><equality><joint joint1="k" joint2="i"/></equality></mujoco>"""


@pytest.mark.parametrize("free", ["", "<freejoint/>"])
def test_time_constants_and_damping_ratios_of_joints_are_those_of_mujoco(free: str, tmp_path: Path) -> None:
    """By the inertia that a joint feels where it is drawn, all others loose, also those that an equality couples.

    They take the place of stiffness and damping; a range without 0 does not matter. With one joint that is its own inertia.
    """
    path = tmp_path / "damped.xml"
    path.write_text(DAMPED.format(free=free))
    robot = fs.load_robot(path)
    damping = {joint.name: joint.damping for joint in robot.joints}
    springs = {spring.name: spring for spring in robot.springs}
    assert damping["k"] == 0.3 and list(springs) == ["i", "j"] and not any("springdamper" in note for note in robot.notes)
    assert springs["i"].slack[0] == pytest.approx(np.deg2rad(30.0)) and springs["j"].slack == (0.0, 0.0)
    for name, time, ratio in (("i", 0.05, 0.8), ("j", 0.1, 1.2)):  # of the same inertia
        assert springs[name].stiffness == pytest.approx(0.5 * damping[name] / (time * ratio * ratio), rel=1e-12)
    if not free:
        alone = DAMPED.split('<body name="c"')[0] + "</body></body></worldbody></mujoco>"
        path.write_text(alone.format(free="").replace('settotalmass="3"', ""))
        own = 0.2 * (0.1**2 + 0.4 * 0.02**2) + 0.01
        assert fs.load_robot(path).joints[0].damping == pytest.approx(2.0 * own / 0.05, rel=1e-12)
    try:
        import mujoco
    except ImportError:
        return
    model = mujoco.MjModel.from_xml_string(DAMPED.format(free=free))
    for name in "ij":
        k = model.joint(name).id
        assert springs[name].stiffness == pytest.approx(float(np.ravel(model.jnt_stiffness[k])[0]), rel=1e-9)
        assert damping[name] == pytest.approx(float(np.ravel(model.dof_damping[model.jnt_dofadr[k]])[0]), rel=1e-9)


def test_springdampers_that_say_nothing_are_refused_and_those_of_balls_noted(tmp_path: Path) -> None:
    """As MuJoCo refuses them; a ball has no spring here."""
    path = tmp_path / "damped.xml"
    path.write_text(DAMPED.format(free="").replace("0.1 1.2", "0.1 0"))
    with pytest.raises(fs.InputError, match=r"joint 'j' has springdamper 0\.1 0; allowed are two positive numbers"):
        fs.load_robot(path)
    ball = '<joint name="j" type="ball" springdamper="0.1 1"/>'
    head, tail = DAMPED.format(free="").split('<joint name="j"')
    path.write_text(head + ball + tail.split("/>", 1)[1])
    assert any("springs of balls are left out: 'j' (by springdamper)" in note for note in fs.load_robot(path).notes)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"joints": {"x": 1.0}}, "names 'x', no joint of one coordinate"),
        ({"joints": {}}, "give coefficients by names of joints"),
        ({"joints": {"i": 0.0}}, "has the coefficient 0.0 of 'i'"),
        ({"stiffness": -1.0}, "has stiffness -1.0; allowed are numbers from 0"),
        ({"rest": (0.2, 0.1)}, "allowed is a number, or two, the lower one first"),
        ({"damping": float("nan")}, "has damping nan"),
    ],
)
def test_wrong_springs_are_refused(wrong: dict[str, object], said: str) -> None:
    """Each by a sentence that names the spring."""
    given: dict[str, object] = {"name": "t", "joints": {"i": 1.0}, "stiffness": 1.0} | wrong
    with pytest.raises(fs.InputError, match="robot 'sliders': spring 't'") as error:
        sliders([fs.RobotSpring(**given)])  # type: ignore[arg-type]
    assert said in str(error.value)
